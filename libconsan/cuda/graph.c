/* graph: CUDA graphs, lists of operations that run when the graph is launched (internal.h
 * explains the order of nodes). */
#include "internal.h"

#include <stdlib.h>

static _Atomic unsigned long long ids = 1;

static struct graph *make(bool executable)
{
	struct graph *g = base_alloc(sizeof *g);

	g->executable = executable;
	g->id = ids++;
	handle_put(g, executable ? HANDLE_GRAPH_EXEC : HANDLE_GRAPH, g);
	return g;
}

struct graph *graph_new(void)
{
	return make(false);
}

struct graph *graph_of(const void *handle)
{
	return handle_get(handle, HANDLE_GRAPH);
}

struct graph *graph_exec_of(const void *handle)
{
	return handle_get(handle, HANDLE_GRAPH_EXEC);
}

int graph_add(struct graph *g, struct op *op, const void *const *after, size_t nafter,
	struct node **out)
{
	struct node *n, *before;
	size_t i;

	for (i = 0; i < nafter; i++) {
		before = handle_get(after[i], HANDLE_NODE);
		if (!before || before->graph != g) {
			op_free(op);
			return cudaErrorInvalidValue;
		}
	}
	n = base_alloc(sizeof *n);
	*n = (struct node){ .graph = g, .op = *op };
	vec_push(&g->node, n);
	handle_put(n, HANDLE_NODE, n);
	if (out)
		*out = n;
	return 0;
}

struct graph *graph_dup(const struct graph *g, bool executable)
{
	struct graph *copy = make(executable);
	struct op op;
	size_t i;

	for (i = 0; i < g->node.n; i++) {
		op = op_dup(&g->node.at[i]->op);
		graph_add(copy, &op, NULL, 0, NULL);
		copy->node.at[i]->off = g->node.at[i]->off;
	}
	return copy;
}

int graph_run(const struct graph *g)
{
	int error = 0;
	size_t i;

	for (i = 0; i < g->node.n && !error; i++)
		if (!g->node.at[i]->off)
			error = op_run(&g->node.at[i]->op);
	return error;
}

void graph_free(struct graph *g)
{
	size_t i;

	handle_drop(g, g->executable ? HANDLE_GRAPH_EXEC : HANDLE_GRAPH);
	for (i = 0; i < g->node.n; i++) {
		handle_drop(g->node.at[i], HANDLE_NODE);
		op_free(&g->node.at[i]->op);
		free(g->node.at[i]);
	}
	vec_free(&g->node);
	free(g);
}

bool graph_replace(struct graph *to, const struct graph *from)
{
	struct op op;
	size_t i;

	if (to->node.n != from->node.n)
		return false;
	for (i = 0; i < to->node.n; i++)
		if (to->node.at[i]->op.kind != from->node.at[i]->op.kind)
			return false;
	for (i = 0; i < to->node.n; i++) {
		op = op_dup(&from->node.at[i]->op);
		op_free(&to->node.at[i]->op);
		to->node.at[i]->op = op;
	}
	return true;
}

int graph_launch(const void *exec, const void *stream)
{
	struct graph *g = graph_exec_of(exec);
	struct op op = { .kind = OP_GRAPH };

	if (!g)
		return cudaErrorInvalidValue;
	op.graph = graph_dup(g, true);
	return stream_issue(stream, &op);
}

int graph_nodes(const void *graph, void **nodes, size_t *n)
{
	struct graph *g = graph_of(graph);
	size_t i;

	if (!g || !n)
		return cudaErrorInvalidValue;
	for (i = 0; nodes && i < *n; i++)
		nodes[i] = i < g->node.n ? g->node.at[i] : NULL;
	if (!nodes || *n > g->node.n)
		*n = g->node.n;
	return 0;
}
