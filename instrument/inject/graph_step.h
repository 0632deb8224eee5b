/* graph_step: the nodes of a graph, one by one; see graph_step.c. */
#ifndef CONSAN_INSTRUMENT_INJECT_GRAPH_STEP_H
#define CONSAN_INSTRUMENT_INJECT_GRAPH_STEP_H

#include "operations.h"

struct step {
	CUgraphNode node;          /* in our clone of the graph */
	CUgraphNode original;      /* the program's node that was cloned; NULL: it is in a child
				      graph */
	CUgraphNodeType type;
	bool off;                  /* disabled by cuGraphNodeSetEnabled() */
	bool programmatic;         /* may begin before the end of the step before it */
	VEC(size_t) after;         /* the steps on which it depends, which come before it */
	struct order_op *op;       /* during a launch */
	size_t branch;             /* graph_branch.h */
	bool signals, ends_branch; /* `done` is recorded behind it; it is the last one of its branch, which is
				      not the first branch */
	CUevent done;              /* made before the first launch */
	CUgraphExec alone;         /* the node as a graph of its own, made when it first runs; or
				      NULL */
};
/* The driver did not report the type. */
#define STEP_UNKNOWN ((CUgraphNodeType)1000)

/* The reason why this node prevents running its graph node by node; NULL: it does not. */
const char *step_refused(CUgraphNode node, CUgraphNodeType type);
/* Is there anything to do? Not for types that are refused, and not for child graphs. */
bool step_does(CUgraphNodeType type);
/* Runs the step in a stream of the current context. */
CUresult step_run(struct step *s, CUstream stream);
/* Makes it an operation of the graph's launch: after those on which it depends, whose `op` is set. The
 * caller owns the reference s->op. stack: that of the graph's launch. */
void step_issue(struct step *s, const struct order_op *start, struct order_op *const *after,
	size_t nafter, uint32_t stack);
/* The node's parameters have changed, or it ends. */
void step_changed(struct step *s);

#endif
