/* graph_branch: the streams in which the branches of a graph run beside each other; see graph_branch.c. */
#ifndef CONSAN_INSTRUMENT_INJECT_GRAPH_BRANCH_H
#define CONSAN_INSTRUMENT_INJECT_GRAPH_BRANCH_H

#include "graph_step.h"

struct graph_branches {
	size_t n;                  /* of the graph; 0: not known yet */
	CUcontext context;         /* of the streams and events */
	VEC(CUstream) stream;      /* of the branches but the first, which has the launch's stream */
	CUevent begun, ended;      /* of the newest launch */
};

/* Puts each step into a branch. */
void branches_plan(struct graph_branches *b, struct step *step, size_t n);
/* Makes what is needed in the current context. False: the driver cannot. */
bool branches_open(struct graph_branches *b, struct step *step, size_t n);
/* alive: the context still exists. */
void branches_close(struct graph_branches *b, struct step *step, size_t n, bool alive);

/* Around a launch in `stream`: it begins after the one before it; `stream` continues after all branches. */
CUresult branches_begin(struct graph_branches *b, CUstream stream);
CUresult branches_end(struct graph_branches *b, CUstream stream);
/* Around a step: it begins after those on which it depends. */
CUstream branches_stream(const struct graph_branches *b, const struct step *s, CUstream stream);
CUresult branches_before(const struct step *all, const struct step *s, CUstream in);
CUresult branches_after(const struct step *s, CUstream in);

#endif
