/* graph: checks the kernels of CUDA graphs. A graph that is instantiated is cloned. When it is
 * launched, the nodes of the clone are issued one after the other, each kernel like any other launch,
 * and an empty graph is launched in place of the program's. Nodes that nothing orders are issued in
 * different streams (graph_branch.c): a kernel that waits for one of another branch is not waited for
 * (pending.c). A graph for which this is not possible runs unchanged, and its kernels are reported as not
 * checked. graph_callbacks.c calls this file. */
#include "graph_branch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_order.h"

struct graph {
	CUgraphExec exec;          /* the program's executable graph */
	CUgraph clone;
	CUgraphExec empty;         /* launched in its place */
	CUcontext context;         /* current when it was instantiated, and its device */
	CUdevice device;
	bool primary;              /* `context` is the primary context of `device` */
	bool for_devices;          /* kernels may launch it (device launch) */
	bool had_disabled;         /* nodes were disabled when it was updated */
	VEC(struct step) step;
	struct graph_branches branches;
	struct order_event launched; /* the newest launch */
	VEC(char *) kernel;        /* if it runs unchanged: the names of its kernels */
	char why[200];             /* the reason why it runs unchanged; "": it does not */
};

static struct {
	pthread_mutex_t lock;
	VEC(struct graph *) at;
} graphs = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct graph *find(CUgraphExec exec)
{
	struct graph *found = NULL;

	pthread_mutex_lock(&graphs.lock);
	for (size_t k = 0; k < graphs.at.n; k++)
		if (graphs.at.at[k]->exec == exec)
			found = graphs.at.at[k];
	pthread_mutex_unlock(&graphs.lock);
	return found;
}

static PRINTF_LIKE(2, 3) void refuse(struct graph *g, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(g->why, sizeof g->why, fmt, ap);
	va_end(ap);
}

static const char *error_name(CUresult r)
{
	const char *name = "?";

	cu.p_cuGetErrorName(r, &name);
	return name;
}

/* ---- cloning a graph ---- */

struct nodes { CUgraphNode *at; size_t n; };

/* free() nodes.at. */
static struct nodes nodes_of(CUgraph graph)
{
	struct nodes s = { 0 };

	if (cu.p_cuGraphGetNodes(graph, NULL, &s.n))
		s.n = 0;
	s.at = base_alloc((s.n + 1) * sizeof *s.at);
	if (s.n && cu.p_cuGraphGetNodes(graph, s.at, &s.n))
		s.n = 0;
	return s;
}

static CUgraphNodeType type_of(CUgraphNode node)
{
	CUgraphNodeType type;

	return cu.p_cuGraphNodeGetType(node, &type) ? STEP_UNKNOWN : type;
}

static CUgraph graph_in(CUgraphNode node)
{
	CUgraph in;

	return cu.p_cuGraphChildGraphNodeGetGraph(node, &in) ? NULL : in;
}

/* The reason why a node prevents running the graph node by node; NULL: none does. */
static const char *unsupported(CUgraph graph)
{
	struct nodes s = nodes_of(graph);
	const char *why = NULL;

	for (size_t k = 0; k < s.n && !why; k++) {
		CUgraphNodeType type = type_of(s.at[k]);
		CUgraph in = type == CU_GRAPH_NODE_TYPE_GRAPH ? graph_in(s.at[k]) : NULL;

		why = in ? unsupported(in) : step_refused(s.at[k], type);
	}
	free(s.at);
	return why;
}

static void name_kernels(struct graph *g, CUgraph graph)
{
	struct nodes s = nodes_of(graph);

	for (size_t k = 0; k < s.n; k++) {
		CUgraphNodeType type = type_of(s.at[k]);
		CUgraph in = type == CU_GRAPH_NODE_TYPE_GRAPH ? graph_in(s.at[k]) : NULL;
		CUDA_KERNEL_NODE_PARAMS p = { 0 };

		if (in)
			name_kernels(g, in);
		if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) /* the driver does not list the nodes
							       in it */
			vec_push(&g->kernel, base_strdup("(in a conditional node)"));
		if (type == CU_GRAPH_NODE_TYPE_KERNEL &&
				!cu.p_cuGraphKernelNodeGetParams(s.at[k], &p))
			vec_push(&g->kernel, base_strdup(
				inject_name(p.func ? p.func : (CUfunction)p.kern)));
	}
	free(s.at);
}

struct numbered { CUgraphNode node; size_t k; };

static int by_node(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct numbered *)a)->node,
		y = (uintptr_t)((const struct numbered *)b)->node;

	return (x > y) - (x < y);
}

static size_t number_of(const struct numbered *number, size_t n, CUgraphNode node)
{
	struct numbered key = { .node = node };
	const struct numbered *found = bsearch(&key, number, n, sizeof key, by_node);

	return found ? found->k : 0;
}

struct edges {
	struct graph_edge *at;     /* numbers of nodes */
	bool *programmatic;
	size_t n;
};

/* Sorts the nodes so that each comes after those it depends on. The caller free()s what *edges has. */
static bool sort_nodes(CUgraph graph, const struct nodes *s, size_t *order, struct edges *edges)
{
	struct numbered *number = base_alloc((s->n + 1) * sizeof *number);
	size_t nedges = 0;
	bool ok = !cu.p_cuGraphGetEdges(graph, NULL, NULL, NULL, &nedges);
	CUgraphNode *from = base_alloc((nedges + 1) * sizeof *from),
		*to = base_alloc((nedges + 1) * sizeof *to);
	CUgraphEdgeData *data = base_alloc((nedges + 1) * sizeof *data);

	*edges = (struct edges){ base_alloc((nedges + 1) * sizeof *edges->at),
		base_alloc((nedges + 1) * sizeof *edges->programmatic), nedges };
	ok = ok && (!nedges || !cu.p_cuGraphGetEdges(graph, from, to, data, &nedges));
	for (size_t k = 0; k < s->n; k++)
		number[k] = (struct numbered){ s->at[k], k };
	qsort(number, s->n, sizeof *number, by_node);
	for (size_t k = 0; ok && k < nedges; k++) {
		edges->at[k] = (struct graph_edge){ number_of(number, s->n, from[k]),
			number_of(number, s->n, to[k]) };
		edges->programmatic[k] = data[k].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
	}
	ok = ok && graph_order(s->n, edges->at, nedges, order);
	free(number);
	free(from);
	free(to);
	free(data);
	return ok;
}

/* Steps, ascending. */
struct steps { VEC(size_t) list; };

static void join_steps(struct steps *to, const struct steps *with)
{
	struct steps all = { 0 };
	size_t i = 0, k = 0;

	while (i < to->list.n || k < with->list.n) {
		const size_t a = i < to->list.n ? to->list.at[i] : SIZE_MAX;
		const size_t b = k < with->list.n ? with->list.at[k] : SIZE_MAX;

		vec_push(&all.list, a < b ? a : b);
		i += a <= b;
		k += b <= a;
	}
	vec_free(&to->list);
	*to = all;
}

/* Makes the list of steps; the nodes of child graphs are inserted in the place of their node. after:
 * the steps that come before the whole graph. Adds to *last, what comes after the whole graph comes
 * after these. */
static bool add_steps(struct graph *g, CUgraph graph, const struct steps *after, struct steps *last)
{
	struct nodes s = nodes_of(graph);
	size_t *order = base_alloc((s.n + 1) * sizeof *order);
	struct edges edges;
	struct steps *done = base_alloc((s.n + 1) * sizeof *done); /* when the node is complete */
	bool ok = sort_nodes(graph, &s, order, &edges);

	for (size_t k = 0; ok && k < s.n; k++) {
		size_t i = order[k];
		struct step step = { .node = s.at[i], .type = type_of(s.at[i]) };
		struct steps before = { 0 };

		join_steps(&before, after);
		for (size_t e = 0; e < edges.n; e++) {
			if (edges.at[e].to != i)
				continue;
			join_steps(&before, &done[edges.at[e].from]);
			step.programmatic |= k && edges.programmatic[e] && edges.at[e].from == order[k - 1];
		}
		if (step_does(step.type)) {
			for (size_t n = 0; n < before.list.n; n++)
				vec_push(&step.after, before.list.at[n]);
			vec_push(&done[i].list, g->step.n);
			vec_push(&g->step, step);
		} else {
			join_steps(&done[i], &before);
		}
		if (step.type == CU_GRAPH_NODE_TYPE_GRAPH)
			ok = add_steps(g, graph_in(step.node), &before, &done[i]);
		join_steps(last, &done[i]);
		vec_free(&before.list);
	}
	for (size_t k = 0; k < s.n; k++)
		vec_free(&done[k].list);
	free(done);
	free(edges.at);
	free(edges.programmatic);
	free(order);
	free(s.at);
	return ok;
}

/* Notes the nodes that were cloned: the program may name them in later calls, even after it
 * destroyed its graph. */
static bool note_originals(struct graph *g, CUgraph graph)
{
	struct nodes s = nodes_of(graph);
	struct numbered *number = base_alloc((g->step.n + 1) * sizeof *number), key, *found;
	bool ok = true;

	for (size_t k = 0; k < g->step.n; k++)
		number[k] = (struct numbered){ g->step.at[k].node, k };
	qsort(number, g->step.n, sizeof *number, by_node);
	for (size_t k = 0; k < s.n && ok; k++) {
		ok = !cu.p_cuGraphNodeFindInClone(&key.node, s.at[k], g->clone);
		found = ok ? bsearch(&key, number, g->step.n, sizeof key, by_node) : NULL;
		if (found)
			g->step.at[found->k].original = s.at[k];
	}
	free(number);
	free(s.at);
	return ok;
}

static bool driver_has_all(void)
{
	return cu.p_cuGraphClone && cu.p_cuGraphGetEdges && cu.p_cuGraphKernelNodeGetParams
		&& cu.p_cuGraphKernelNodeGetAttribute && cu.p_cuLaunchKernelEx &&
		cu.p_cuGraphInstantiate;
}

/* Frees the clone and what was found out about it. alive: the context still exists. */
static void free_clone(struct graph *g, bool alive)
{
	branches_close(&g->branches, g->step.at, g->step.n, alive);
	for (size_t k = 0; k < g->step.n; k++) {
		if (alive)
			step_changed(&g->step.at[k]);
		vec_free(&g->step.at[k].after);
	}
	for (size_t k = 0; k < g->kernel.n; k++)
		free(g->kernel.at[k]);
	if (g->clone && alive)
		cu.p_cuGraphDestroy(g->clone);
	g->clone = NULL;
	g->step.n = g->kernel.n = 0;
	g->why[0] = 0;
}

/* Makes the graph run unchanged. */
static void run_unchanged(struct graph *g, CUgraph graph, const char *why)
{
	refuse(g, "%s", why);
	for (size_t k = 0; k < g->kernel.n; k++)
		free(g->kernel.at[k]);
	g->kernel.n = 0;
	if (cu.p_cuGraphGetNodes && cu.p_cuGraphNodeGetType && cu.p_cuGraphKernelNodeGetParams)
		name_kernels(g, graph);
}

static CUgraphExec make_empty(void)
{
	CUgraphExec exec = NULL;
	CUgraphNode node;
	CUgraph graph;

	if (!cu.p_cuGraphCreate || cu.p_cuGraphCreate(&graph, 0))
		return NULL;
	if (cu.p_cuGraphAddEmptyNode(&node, graph, NULL, 0) ||
			cu.p_cuGraphInstantiate(&exec, graph, 0))
		exec = NULL;
	cu.p_cuGraphDestroy(graph);
	return exec;
}

static const char *why_unchanged(const struct graph *g, CUgraph graph)
{
	if (!driver_has_all())
		return "the driver is too old for that";
	if (g->for_devices)
		return "kernels may launch it";
	if (g->had_disabled)
		return "nodes of it were disabled before cuGraphExecUpdate";
	return unsupported(graph);
}

static void clone_graph(struct graph *g, CUgraph graph)
{
	const char *why = why_unchanged(g, graph);
	struct steps none = { 0 }, last = { 0 };
	char text[80];
	CUresult r;

	if (!why && (r = cu.p_cuGraphClone(&g->clone, graph))) {
		snprintf(text, sizeof text, "the driver cannot clone it (%s)", error_name(r));
		why = text;
		g->clone = NULL;
	}
	if (!why && (!add_steps(g, g->clone, &none, &last) || !note_originals(g, graph)))
		why = "the driver does not report the edges between its nodes";
	vec_free(&last.list);
	branches_plan(&g->branches, g->step.at, g->step.n);
	if (!why && !g->empty)
		g->empty = make_empty();
	if (!why && !g->empty)
		why = "the driver cannot create an empty graph";
	if (why)
		run_unchanged(g, graph, why);
}

void inject_graph_made(CUgraphExec exec, CUgraph graph, bool for_devices)
{
	struct graph *g = base_alloc(sizeof *g);

	inject_graph_destroyed(exec);
	g->exec = exec;
	cu.p_cuCtxGetCurrent(&g->context);
	cu.p_cuCtxGetDevice(&g->device);
	g->primary = inject_is_primary(g->context, g->device);
	g->for_devices = for_devices;
	clone_graph(g, graph);
	pthread_mutex_lock(&graphs.lock);
	vec_push(&graphs.at, g);
	pthread_mutex_unlock(&graphs.lock);
	if (for_devices)
		inject_remark(REMARK_NOTE, "a graph can be launched by kernels; --backend=gpu does "
			"not record such launches");
}

static void remove_graph(size_t k, bool alive)
{
	struct graph *g = graphs.at.at[k];

	graphs.at.at[k] = graphs.at.at[--graphs.at.n];
	free_clone(g, alive);
	if (g->empty && alive)
		cu.p_cuGraphExecDestroy(g->empty);
	vec_free(&g->step);
	vec_free(&g->kernel);
	order_event_free(&g->launched);
	free(g);
}

void inject_graph_destroyed(CUgraphExec exec)
{
	pthread_mutex_lock(&graphs.lock);
	for (size_t k = 0; k < graphs.at.n; k++)
		if (graphs.at.at[k]->exec == exec)
			remove_graph(k--, true);
	pthread_mutex_unlock(&graphs.lock);
}

void inject_graphs_ended(CUcontext context, CUdevice device)
{
	pthread_mutex_lock(&graphs.lock);
	for (size_t k = 0; k < graphs.at.n; k++)
		if (context ? graphs.at.at[k]->context == context
				: graphs.at.at[k]->primary && graphs.at.at[k]->device == device)
			remove_graph(k--, false);
	pthread_mutex_unlock(&graphs.lock);
}

/* ---- changes of executable graphs ---- */

void inject_graph_updated(CUgraphExec exec, CUgraph graph)
{
	struct graph *g = find(exec);

	if (!g)
		return;
	for (size_t k = 0; k < g->step.n; k++)
		g->had_disabled |= g->step.at[k].off;
	free_clone(g, true);
	clone_graph(g, graph);
}

void inject_graph_diverged(CUgraphExec exec, const char *call)
{
	struct graph *g = find(exec);
	char why[120];

	if (!g || *g->why)
		return;
	snprintf(why, sizeof why, "it was changed by %s in a way that is not supported", call);
	run_unchanged(g, g->clone, why);
}

static struct step *step_of(struct graph *g, CUgraphNode node)
{
	for (size_t k = 0; k < g->step.n; k++)
		if (g->step.at[k].original == node)
			return &g->step.at[k];
	return NULL;
}

CUgraphNode inject_graph_node(CUgraphExec exec, CUgraphNode node, const char *call)
{
	struct graph *g = find(exec);
	struct step *s = g && !*g->why ? step_of(g, node) : NULL;

	if (!s) {
		inject_graph_diverged(exec, call);
		return NULL;
	}
	step_changed(s);
	return s->node;
}

void inject_graph_enabled(CUgraphExec exec, CUgraphNode node, bool on, const char *call)
{
	struct graph *g = find(exec);
	struct step *s = g && !*g->why ? step_of(g, node) : NULL;

	if (s)
		s->off = !on;
	else
		inject_graph_diverged(exec, call);
}

/* ---- launches ---- */

static void report_unchecked(const struct graph *g, CUstream stream)
{
	uint64_t queue = inject_queue(stream);
	char why[300];

	snprintf(why, sizeof why,
		"launched in a graph that --backend=gpu cannot run node by node: %s", g->why);
	for (size_t k = 0; k < g->kernel.n; k++)
		gpu_unchecked(inject_session(), g->kernel.at[k], 0, queue, why);
}

/* Does a kernel node belong to another context than the current one, which is the stream's? */
static bool spans_contexts(const struct graph *g)
{
	CUDA_KERNEL_NODE_PARAMS p = { 0 };
	CUcontext now = NULL;

	cu.p_cuCtxGetCurrent(&now);
	for (size_t k = 0; k < g->step.n; k++)
		if (g->step.at[k].type == CU_GRAPH_NODE_TYPE_KERNEL
				&& !cu.p_cuGraphKernelNodeGetParams(g->step.at[k].node, &p)
				&& p.ctx && p.ctx != now)
			return true;
	return false;
}

/* A node that is disabled is an operation that does nothing. */
static void issue(struct graph *g, struct step *s, const struct order_op *start, uint32_t stack)
{
	struct order_op **after = base_alloc((s->after.n + 1) * sizeof *after);

	for (size_t k = 0; k < s->after.n; k++)
		after[k] = g->step.at[s->after.at[k]].op;
	step_issue(s, start, after, s->after.n, stack);
	free(after);
}

/* The step in the stream of its branch. One that is disabled keeps its place in the order. */
static CUresult run_step(struct graph *g, struct step *s, CUstream stream)
{
	const CUstream in = branches_stream(&g->branches, s, stream);
	CUresult r = branches_before(g->step.at, s, in);

	if (!r && !s->off)
		r = step_run(s, in);
	return r ? r : branches_after(s, in);
}

/* The launch's stream continues behind all branches. */
static CUresult join_branches(struct graph *g, CUstream stream)
{
	CUresult r = CUDA_SUCCESS;

	for (size_t k = 0; k < g->step.n && !r; k++)
		if (g->step.at[k].ends_branch)
			r = cu.p_cuStreamWaitEvent(stream, g->step.at[k].done, 0);
	return r ? r : branches_end(&g->branches, stream);
}

static CUresult run(struct graph *g, CUstream stream)
{
	const uint32_t stack = operations_stack(false);
	struct order *order = operations_order();
	struct order_op *start = operations_issue(stream, "cuGraphLaunch", NULL);
	struct order_op **did = base_alloc((g->step.n + 1) * sizeof *did);
	CUresult r = branches_begin(&g->branches, stream);
	size_t n = 0;

	/* launches of one graph do not overlap */
	order_wait_op(order, start, &g->launched);
	for (; n < g->step.n && !r; n++) {
		struct step *s = &g->step.at[n];

		issue(g, s, start, stack);
		did[n] = s->op;
		if (!s->off && s->type != CU_GRAPH_NODE_TYPE_KERNEL && gpu_global(inject_session()))
			gpu_idle(inject_session());
		r = run_step(g, s, stream);
	}
	if (!r)
		r = join_branches(g, stream);
	order_join_nodes(order, start, did, n);
	order_record_op(order, &g->launched, start, 0);
	while (n)
		order_op_put(order, did[--n]);
	operations_close(operations_open(start));
	free(did);
	return r;
}

static CUresult launch(struct graph *g, CUgraphExec *exec, CUstream stream)
{
	CUresult r;

	if (!*g->why && spans_contexts(g))
		run_unchanged(g, g->clone, "it runs in several contexts");
	if (!*g->why && !branches_open(&g->branches, g->step.at, g->step.n))
		run_unchanged(g, g->clone, "the driver has no streams for its branches in this context");
	/* two launches of one graph do not overlap, whatever their streams: the empty graph
	 * keeps that order */
	if (!*g->why && cu.p_cuGraphLaunch(g->empty, stream))
		run_unchanged(g, g->clone, "the driver cannot launch an empty graph in its place");
	if (*g->why) {
		report_unchecked(g, stream);
		operations_close(operations_open(operations_issue(stream, "cuGraphLaunch", NULL)));
		operations_not_followed("a graph that cannot be run node by node");
		return 0;
	}
	r = run(g, stream);
	if (r)
		inject_remark(REMARK_NOTE, "a graph failed: %s", error_name(r));
	*exec = g->empty;
	return r;
}

CUresult inject_graph_launch(CUgraphExec *exec, CUstream stream)
{
	struct inject_launch where = { .stream = stream };
	struct graph *g = find(*exec);
	CUresult r;

	if (inject_capturing(stream)) /* it becomes a part of the captured graph, which will be
					 launched */
		return 0;
	if (!g) {
		gpu_unchecked(inject_session(), "(in a graph)", 0, inject_queue(stream),
			"launched in a graph whose instantiation --backend=gpu did not see");
		return 0;
	}
	inject_enter(&where);
	r = launch(g, exec, stream);
	inject_leave(&where);
	return r;
}
