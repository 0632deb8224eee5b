/* inject_step: the nodes of a graph, one by one. */
#ifndef CONSAN_INSTRUMENT_INJECT_STEP_H
#define CONSAN_INSTRUMENT_INJECT_STEP_H

#include "internal.h"

struct step {
	CUgraphNode node;          /* nobody else's */
	CUgraphNode original;      /* the program's, of which it is a copy; NULL: that is in a graph in a graph */
	CUgraphNodeType type;
	bool off;                  /* cuGraphNodeSetEnabled() */
	bool programmatic;         /* it need not wait for the end of the step before it */
	CUgraphExec alone;         /* the node as a graph of its own, made when it first runs */
};
/* The driver did not say what it is. */
#define STEP_UNKNOWN ((CUgraphNodeType)1000)

/* Why its graph cannot be taken apart; NULL: it can, as far as this node says. */
const char *step_refused(CUgraphNode node, CUgraphNodeType type);
/* Of a type that is not refused, and is no graph: is there anything to do? */
bool step_does(CUgraphNodeType type);
/* Does it in the stream, whose context is the current one. */
CUresult step_run(struct step *s, CUstream stream);
/* The node has other parameters now, or is no more. */
void step_changed(struct step *s);

#endif
