/* inside: what a task issues when it has run, as part of itself: the nodes of a child graph, the bodies of
 * a conditional node, the grids and graphs that are launched last. The task is done when all of that is
 * (queue_ended()). */
#include "device_runtime.h"

/* A body without nodes is a round, too: the engine must be able to stop between two of them. */
static void add_body(const struct graph *g, struct task *t, struct order_op *in)
{
	struct op none = { .kind = OP_EMPTY };

	graph_expand_inside(g, t, in);
	if (!t->children)
		task_put(queue_add_inside(t, &none, NULL, 0));
}

/* Each round is ordered after the one before. */
static bool next_round(struct task *t)
{
	const bool reads = !t->rounds || t->op.condition.type == cudaGraphCondTypeWhile;
	const struct graph *body = condition_next(&t->op.condition, t->rounds);
	struct order_op *before = t->round;

	if (reads)
		hb_done(t->order, &t->op);
	if (!body)
		return false;
	t->round = hb_issue_inside(t->order, &before, before != NULL, false, &t->op, t->from);
	order_op_put(hb(), before);
	add_body(body, t, t->round);
	t->rounds++;
	return true;
}

bool inside_next(struct task *t)
{
	if (device_broken(t->stream->device))
		return false;
	switch (t->op.kind) {
	case OP_CONDITION:
		return next_round(t);
	case OP_ENVIRONMENT:
		return !t->rounds++ && device_graph_begin(t);
	case OP_GRAPH:
		if (!t->rounds++) {
			add_body(t->op.graph, t, t->order);
			return true;
		}
		return device_grid_last(t);
	case OP_LAUNCH:
		return device_grid_last(t);
	default:
		return false;
	}
}
