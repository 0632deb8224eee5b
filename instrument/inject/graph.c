/* inject_graph: graphs. A graph that is instantiated is copied; when it is launched,
 * the nodes of the copy run in the launch's stream, one after the other, each kernel
 * like any launch, and an empty graph is launched in its place. Whatever cannot run so
 * runs as the program meant it, unrecorded, and is named. Who calls this on which call
 * of the driver is not known here (inject_graph_calls.c). */
#include "step.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_order.h"

struct graph {
	CUgraphExec exec;          /* the program's */
	CUgraph copy;
	CUgraphExec empty;         /* launched in its place */
	CUcontext context;         /* current when it was made, and its device */
	CUdevice device;
	bool primary;              /* the context is, of its device */
	bool for_devices;          /* kernels can launch it */
	bool half;                 /* nodes were disabled when it was updated */
	VEC(struct step) step;
	VEC(char *) kernel;        /* if it is not taken over: those in it */
	char why[200];             /* ... and why not; "": it is */
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

/* ---- taking a graph over ---- */

struct nodes { CUgraphNode *at; size_t n; };

/* free() them. */
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

/* NULL: it can be taken over, as far as its nodes say. */
static const char *refusal(CUgraph graph)
{
	struct nodes s = nodes_of(graph);
	const char *why = NULL;

	for (size_t k = 0; k < s.n && !why; k++) {
		CUgraphNodeType type = type_of(s.at[k]);
		CUgraph in = type == CU_GRAPH_NODE_TYPE_GRAPH ? graph_in(s.at[k]) : NULL;

		why = in ? refusal(in) : step_refused(s.at[k], type);
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
		if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) /* the driver does not show them */
			vec_push(&g->kernel, base_strdup("(in a conditional node)"));
		if (type == CU_GRAPH_NODE_TYPE_KERNEL && !cu.p_cuGraphKernelNodeGetParams(s.at[k], &p))
			vec_push(&g->kernel, base_strdup(inject_name(p.func ? p.func : (CUfunction)p.kern)));
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

/* behind: gets, of each node, one that it need not see the end of, else SIZE_MAX. */
static bool in_order(CUgraph graph, const struct nodes *s, size_t *order, size_t *behind)
{
	struct numbered *number = base_alloc((s->n + 1) * sizeof *number);
	size_t nedges = 0;
	bool good = !cu.p_cuGraphGetEdges(graph, NULL, NULL, NULL, &nedges);
	CUgraphNode *from = base_alloc((nedges + 1) * sizeof *from), *to = base_alloc((nedges + 1) * sizeof *to);
	CUgraphEdgeData *data = base_alloc((nedges + 1) * sizeof *data);
	struct graph_edge *edge = base_alloc((nedges + 1) * sizeof *edge);

	good = good && (!nedges || !cu.p_cuGraphGetEdges(graph, from, to, data, &nedges));
	for (size_t k = 0; k < s->n; k++) {
		number[k] = (struct numbered){ s->at[k], k };
		behind[k] = SIZE_MAX;
	}
	qsort(number, s->n, sizeof *number, by_node);
	for (size_t k = 0; good && k < nedges; k++) {
		edge[k] = (struct graph_edge){ number_of(number, s->n, from[k]), number_of(number, s->n, to[k]) };
		if (data[k].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
			behind[edge[k].to] = edge[k].from;
	}
	good = good && graph_order(s->n, edge, nedges, order);
	free(number);
	free(from);
	free(to);
	free(data);
	free(edge);
	return good;
}

/* The graph's nodes as steps, those of graphs in it in their place. */
static bool take(struct graph *g, CUgraph graph)
{
	struct nodes s = nodes_of(graph);
	size_t *order = base_alloc((s.n + 1) * sizeof *order), *behind = base_alloc((s.n + 1) * sizeof *behind);
	bool good = in_order(graph, &s, order, behind);

	for (size_t k = 0; good && k < s.n; k++) {
		size_t i = order[k];
		struct step step = { .node = s.at[i], .type = type_of(s.at[i]) };

		step.programmatic = k && behind[i] == order[k - 1];
		if (step.type == CU_GRAPH_NODE_TYPE_GRAPH)
			good = take(g, graph_in(step.node));
		else if (step_does(step.type))
			vec_push(&g->step, step);
	}
	free(order);
	free(behind);
	free(s.at);
	return good;
}

/* Later the program may have destroyed them, and still name them. */
static bool note_originals(struct graph *g, CUgraph graph)
{
	struct nodes s = nodes_of(graph);
	struct numbered *number = base_alloc((g->step.n + 1) * sizeof *number), key, *found;
	bool good = true;

	for (size_t k = 0; k < g->step.n; k++)
		number[k] = (struct numbered){ g->step.at[k].node, k };
	qsort(number, g->step.n, sizeof *number, by_node);
	for (size_t k = 0; k < s.n && good; k++) {
		good = !cu.p_cuGraphNodeFindInClone(&key.node, s.at[k], g->copy);
		found = good ? bsearch(&key, number, g->step.n, sizeof key, by_node) : NULL;
		if (found)
			g->step.at[found->k].original = s.at[k];
	}
	free(number);
	free(s.at);
	return good;
}

static bool driver_has_all(void)
{
	return cu.p_cuGraphClone && cu.p_cuGraphGetEdges && cu.p_cuGraphKernelNodeGetParams
		&& cu.p_cuGraphKernelNodeGetAttribute && cu.p_cuLaunchKernelEx && cu.p_cuGraphInstantiate;
}

/* Forgets what it is a copy of. alive: so is its context. */
static void drop(struct graph *g, bool alive)
{
	for (size_t k = 0; k < g->step.n && alive; k++)
		step_changed(&g->step.at[k]);
	for (size_t k = 0; k < g->kernel.n; k++)
		free(g->kernel.at[k]);
	if (g->copy && alive)
		cu.p_cuGraphDestroy(g->copy);
	g->copy = NULL;
	g->step.n = g->kernel.n = 0;
	g->why[0] = 0;
}

/* Runs it as the program meant it. */
static void leave(struct graph *g, CUgraph graph, const char *why)
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
	if (cu.p_cuGraphAddEmptyNode(&node, graph, NULL, 0) || cu.p_cuGraphInstantiate(&exec, graph, 0))
		exec = NULL;
	cu.p_cuGraphDestroy(graph);
	return exec;
}

static const char *reason(const struct graph *g, CUgraph graph)
{
	if (!driver_has_all())
		return "the driver is too old for that";
	if (g->for_devices)
		return "kernels may launch it, too";
	if (g->half)
		return "nodes of it were disabled before cuGraphExecUpdate";
	return refusal(graph);
}

static void copy(struct graph *g, CUgraph graph)
{
	const char *why = reason(g, graph);
	char text[80];
	CUresult r;

	if (!why && (r = cu.p_cuGraphClone(&g->copy, graph))) {
		snprintf(text, sizeof text, "the driver does not copy it (%s)", error_name(r));
		why = text;
		g->copy = NULL;
	}
	if (!why && (!take(g, g->copy) || !note_originals(g, graph)))
		why = "the driver does not say how its nodes depend on each other";
	if (!why && !g->empty)
		g->empty = make_empty();
	if (!why && !g->empty)
		why = "the driver makes no empty graph";
	if (why)
		leave(g, graph, why);
}

void inject_graph_made(CUgraphExec exec, CUgraph graph, bool for_devices)
{
	struct graph *g = base_alloc(sizeof *g);

	inject_graph_gone(exec);
	g->exec = exec;
	cu.p_cuCtxGetCurrent(&g->context);
	cu.p_cuCtxGetDevice(&g->device);
	g->primary = inject_is_primary(g->context, g->device);
	g->for_devices = for_devices;
	copy(g, graph);
	pthread_mutex_lock(&graphs.lock);
	vec_push(&graphs.at, g);
	pthread_mutex_unlock(&graphs.lock);
	if (for_devices)
		inject_remark(REMARK_NOTE, "a graph can be launched by kernels; --backend=gpu does not see it if they do");
}

static void forget(size_t k, bool alive)
{
	struct graph *g = graphs.at.at[k];

	graphs.at.at[k] = graphs.at.at[--graphs.at.n];
	drop(g, alive);
	if (g->empty && alive)
		cu.p_cuGraphExecDestroy(g->empty);
	vec_free(&g->step);
	vec_free(&g->kernel);
	free(g);
}

void inject_graph_gone(CUgraphExec exec)
{
	pthread_mutex_lock(&graphs.lock);
	for (size_t k = 0; k < graphs.at.n; k++)
		if (graphs.at.at[k]->exec == exec)
			forget(k--, true);
	pthread_mutex_unlock(&graphs.lock);
}

void inject_graphs_ended(CUcontext context, CUdevice device)
{
	pthread_mutex_lock(&graphs.lock);
	for (size_t k = 0; k < graphs.at.n; k++)
		if (context ? graphs.at.at[k]->context == context
				: graphs.at.at[k]->primary && graphs.at.at[k]->device == device)
			forget(k--, false);
	pthread_mutex_unlock(&graphs.lock);
}

/* ---- graphs that are changed ---- */

void inject_graph_updated(CUgraphExec exec, CUgraph graph)
{
	struct graph *g = find(exec);

	if (!g)
		return;
	for (size_t k = 0; k < g->step.n; k++)
		g->half |= g->step.at[k].off;
	drop(g, true);
	copy(g, graph);
}

void inject_graph_lost(CUgraphExec exec, const char *call)
{
	struct graph *g = find(exec);
	char why[120];

	if (!g || *g->why)
		return;
	snprintf(why, sizeof why, "it was changed by %s in a way that is not followed", call);
	leave(g, g->copy, why);
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
		inject_graph_lost(exec, call);
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
		inject_graph_lost(exec, call);
}

/* ---- launches ---- */

static void say_left(const struct graph *g, CUstream stream)
{
	uint64_t queue = inject_queue(stream);
	char why[300];

	snprintf(why, sizeof why, "launched in a graph that --backend=gpu cannot take apart: %s", g->why);
	for (size_t k = 0; k < g->kernel.n; k++)
		gpu_unchecked(inject_session(), g->kernel.at[k], queue, why);
}

/* Than in the stream's context, which is the current one. */
static bool elsewhere(const struct graph *g)
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

static CUresult run(struct graph *g, CUstream stream)
{
	CUresult r = 0;

	for (size_t k = 0; k < g->step.n && !r; k++) {
		struct step *s = &g->step.at[k];

		if (s->off)
			continue;
		if (s->type != CU_GRAPH_NODE_TYPE_KERNEL && gpu_global(inject_session()))
			gpu_idle(inject_session());
		r = step_run(s, stream);
	}
	return r;
}

static CUresult launch(struct graph *g, CUgraphExec *exec, CUstream stream)
{
	CUresult r;

	if (!*g->why && elsewhere(g))
		leave(g, g->copy, "it runs in several contexts");
	/* two launches of one graph do not overlap, whatever their streams */
	if (!*g->why && cu.p_cuGraphLaunch(g->empty, stream))
		leave(g, g->copy, "the driver launches no empty graph in its place");
	if (*g->why) {
		say_left(g, stream);
		return 0;
	}
	r = run(g, stream);
	if (r)
		inject_remark(REMARK_NOTE, "a graph was not run to its end: %s", error_name(r));
	*exec = g->empty;
	return r;
}

CUresult inject_graph_launch(CUgraphExec *exec, CUstream stream)
{
	struct inject_launch where = { .stream = stream };
	struct graph *g = find(*exec);
	CUresult r;

	if (inject_capturing(stream)) /* a part of what is captured: that will be launched */
		return 0;
	if (!g) {
		gpu_unchecked(inject_session(), "(in a graph)", inject_queue(stream),
			"launched in a graph that --backend=gpu has not seen made");
		return 0;
	}
	inject_enter(&where);
	r = launch(g, exec, stream);
	inject_leave(&where);
	return r;
}
