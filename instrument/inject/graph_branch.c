/* graph_branch: the branches of a graph run in streams of their own, so that kernels which nothing orders
 * run beside each other, as in the program's graph: they may wait for each other through memory. The
 * edges between branches are events. */
#include "graph_branch.h"

#include <stdlib.h>

#include "graph_order.h"

void branches_plan(struct graph_branches *b, struct step *step, size_t n)
{
	struct graph_after *after = base_alloc((n + 1) * sizeof *after);
	size_t *branch = base_alloc((n + 1) * sizeof *branch);
	size_t *last = base_alloc((n + 1) * sizeof *last);

	for (size_t k = 0; k < n; k++)
		after[k] = (struct graph_after){ step[k].after.at, step[k].after.n };
	b->n = graph_branches(n, after, branch);
	for (size_t k = 0; k < n; k++) {
		step[k].branch = branch[k];
		last[branch[k]] = k;
		for (size_t i = 0; i < step[k].after.n; i++)
			step[step[k].after.at[i]].signals |= branch[step[k].after.at[i]] != branch[k];
	}
	for (size_t k = 1; k < b->n; k++) /* the launch's stream waits for these */
		step[last[k]].signals = step[last[k]].ends_branch = true;
	free(after);
	free(branch);
	free(last);
}

static bool make_event(CUevent *e)
{
	return *e || (cu.p_cuEventCreate && !cu.p_cuEventCreate(e, CU_EVENT_DISABLE_TIMING));
}

/* The streams do not synchronize with the legacy default stream: the launch's stream may be that one. */
bool branches_open(struct graph_branches *b, struct step *step, size_t n)
{
	CUcontext now = NULL;
	CUstream s;

	cu.p_cuCtxGetCurrent(&now);
	if (b->context && b->context != now)
		return false;
	b->context = now;
	if (!cu.p_cuEventRecord || !cu.p_cuStreamWaitEvent || !cu.p_cuStreamCreate || !cu.p_cuStreamDestroy
		|| !cu.p_cuEventDestroy || !make_event(&b->begun) || !make_event(&b->ended))
		return false;
	while (b->stream.n + 1 < b->n) {
		if (cu.p_cuStreamCreate(&s, CU_STREAM_NON_BLOCKING))
			return false;
		vec_push(&b->stream, s);
	}
	for (size_t k = 0; k < n; k++)
		if (step[k].signals && !make_event(&step[k].done))
			return false;
	return true;
}

static void drop_event(CUevent *e, bool alive)
{
	if (*e && alive)
		cu.p_cuEventDestroy(*e);
	*e = NULL;
}

void branches_close(struct graph_branches *b, struct step *step, size_t n, bool alive)
{
	for (size_t k = 0; k < n; k++)
		drop_event(&step[k].done, alive);
	for (size_t k = 0; k < b->stream.n && alive; k++)
		cu.p_cuStreamDestroy(b->stream.at[k]);
	vec_free(&b->stream);
	drop_event(&b->begun, alive);
	drop_event(&b->ended, alive);
	b->context = NULL;
}

CUresult branches_begin(struct graph_branches *b, CUstream stream)
{
	/* an event that was not recorded yet is no wait */
	CUresult r = cu.p_cuStreamWaitEvent(stream, b->ended, 0);

	if (!r && b->n > 1)
		r = cu.p_cuEventRecord(b->begun, stream);
	for (size_t k = 0; k < b->stream.n && !r; k++)
		r = cu.p_cuStreamWaitEvent(b->stream.at[k], b->begun, 0);
	return r;
}

CUresult branches_end(struct graph_branches *b, CUstream stream)
{
	return cu.p_cuEventRecord(b->ended, stream);
}

CUstream branches_stream(const struct graph_branches *b, const struct step *s, CUstream stream)
{
	return s->branch ? b->stream.at[s->branch - 1] : stream;
}

CUresult branches_before(const struct step *all, const struct step *s, CUstream in)
{
	CUresult r = CUDA_SUCCESS;

	for (size_t k = 0; k < s->after.n && !r; k++)
		if (all[s->after.at[k]].branch != s->branch)
			r = cu.p_cuStreamWaitEvent(in, all[s->after.at[k]].done, 0);
	return r;
}

CUresult branches_after(const struct step *s, CUstream in)
{
	return s->signals ? cu.p_cuEventRecord(s->done, in) : CUDA_SUCCESS;
}
