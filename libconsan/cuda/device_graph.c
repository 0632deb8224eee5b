/* device_graph: graphs that kernels launch (CUDA C++ Programming Guide, "Device Graph Launch").
 *
 * The guide's execution environments are tasks: OP_ENVIRONMENT, the launch by the host, which its stream
 * waits for; inside of it OP_GRAPH, the graph; inside of that its nodes, and the graphs that they fire and
 * forget, which their kernels need not wait for. A sibling is inside of the task around the graph; what is
 * launched as a tail is added when all else of the graph's task is done (device_grid_last()). */
#include "array.h"
#include "device_runtime.h"

/* cudaStreamGraph... */
#define STREAM_TAIL ((uint64_t)1 << 56)
#define STREAM_FIRE_AND_FORGET ((uint64_t)2 << 56)
#define STREAM_SIBLING ((uint64_t)3 << 56)

/* ---- instantiation ---- */

struct in_array { uint64_t at; bool found; };

static void look_at_array(void *value, void *user)
{
	const struct array *a = value;
	struct in_array *x = user;

	x->found |= x->at - (uintptr_t)a->at < a->slice * array_planes(a);
}

/* "Only copies involving device memory and/or pinned device-mapped host memory are permitted. Copies
 * involving CUDA arrays are not permitted." */
static bool may_copy(const void *at)
{
	struct in_array x = { .at = (uintptr_t)at };
	enum consan_mem kind;
	uint64_t bytes;
	void *base;

	handle_each(HANDLE_ARRAY, look_at_array, &x);
	return !x.found && consan_mem_find(device_session(), at, &base, &bytes, &kind);
}

/* The first node that a graph for launches by kernels must not have; NULL: none. work: it has one that
 * does something. */
static const struct node *forbidden(const struct graph *g, bool *work)
{
	for (size_t i = 0; i < g->node.n; i++) {
		const struct op *op = &g->node.at[i]->op;

		switch (op->kind) {
		case OP_LAUNCH:
			*work = true;
			if (op->launch.func->info.launches_grids)
				return g->node.at[i];
			break;
		case OP_COPY:
			*work = true;
			if (!may_copy(op->copy.dst) || !may_copy(op->copy.src))
				return g->node.at[i];
			break;
		case OP_FILL:
			*work = true;
			break;
		case OP_GRAPH:
			if (forbidden(op->graph, work))
				return g->node.at[i];
			break;
		default:
			return g->node.at[i];
		}
	}
	return NULL;
}

/* Has it a kernel that launches graphs; a node that only a stream can have? */
static void look_at(const struct graph *g, bool *launches, bool *others)
{
	for (size_t i = 0; i < g->node.n; i++) {
		const struct op *op = &g->node.at[i]->op;

		*launches |= op->kind == OP_LAUNCH && op->launch.func->info.launches_graphs;
		*others |= op->kind == OP_EVENT_RECORD || op->kind == OP_EVENT_WAIT || op->kind == OP_ALLOC;
		if (op->kind == OP_GRAPH)
			look_at(op->graph, launches, others);
		for (unsigned k = 0; op->kind == OP_CONDITION && k < op->condition.size; k++)
			look_at(op->condition.body[k], launches, others);
	}
}

void device_graph_upload(struct graph *exec)
{
	if (exec->on_device)
		graph_free(exec->on_device);
	exec->on_device = graph_dup(exec, true);
	graph_drop_objects(exec->on_device);
}

int device_graph_instantiate(struct graph *exec, const struct graph *of, unsigned long long flags,
	enum cudaGraphInstantiateResult *result, const struct node **node)
{
	const unsigned long long known = cudaGraphInstantiateFlagAutoFreeOnLaunch
		| cudaGraphInstantiateFlagUpload | cudaGraphInstantiateFlagDeviceLaunch
		| cudaGraphInstantiateFlagUseNodePriority;
	const bool device = flags & cudaGraphInstantiateFlagDeviceLaunch;
	bool launches = false, others = false, work = false;

	if (flags & ~known || (device && flags & cudaGraphInstantiateFlagAutoFreeOnLaunch))
		return cudaErrorInvalidValue;
	*node = device ? forbidden(of, &work) : NULL;
	if (*node) {
		*result = cudaGraphInstantiateNodeOperationNotSupported;
		return cudaErrorInvalidValue;
	}
	if (device && !work) {
		*result = cudaGraphInstantiateInvalidStructure;
		return cudaErrorInvalidValue;
	}
	look_at(of, &launches, &others);
	if (launches && others)
		remark_refused("the launch of graphs by the kernels of a graph", "not emulated in graphs that have "
			"nodes for events or memory, too");
	exec->flags = flags & ~(unsigned long long)cudaGraphInstantiateFlagUpload;
	exec->launches = (launches || device) && !others;
	if (device && flags & cudaGraphInstantiateFlagUpload)
		device_graph_upload(exec);
	*result = cudaGraphInstantiateSuccess;
	return 0;
}

/* ---- launches ---- */

static bool is_environment(const struct task *t)
{
	return t->op.kind == OP_ENVIRONMENT || (t->op.kind == OP_GRAPH && t->op.graph->launch_of);
}

/* The environment that the task is in; NULL: none. */
static struct task *environment_of(const struct task *t)
{
	struct task *p = t->parent;

	while (p && !is_environment(p))
		p = p->parent;
	return p;
}

uint64_t device_graph_current(const struct task *t)
{
	const struct task *in = environment_of(t);
	const struct graph *g = in ? in->op.graph->launch_of : NULL;

	return g && in->op.graph->flags & cudaGraphInstantiateFlagDeviceLaunch ? (uintptr_t)g : 0;
}

static uint64_t count_kernels(const struct graph *g)
{
	uint64_t n = 0;

	for (size_t i = 0; i < g->node.n; i++) {
		const struct op *op = &g->node.at[i]->op;

		n += op->kind == OP_LAUNCH ? 1 : op->kind == OP_GRAPH ? count_kernels(op->graph) : 0;
	}
	return n;
}

static void number_kernels(struct graph *g, uint64_t *number)
{
	for (size_t i = 0; i < g->node.n; i++) {
		struct op *op = &g->node.at[i]->op;

		if (op->kind == OP_LAUNCH)
			op->launch.launched = (*number)++;
		else if (op->kind == OP_GRAPH)
			number_kernels(op->graph, number);
	}
}

/* Under the lock: does a launch of the graph run? */
static bool runs(const struct graph *exec)
{
	for (const struct task *t = queue.first; t; t = t->next)
		if (t->op.kind == OP_GRAPH && t->op.graph->launch_of == exec)
			return true;
	return false;
}

/* Under the lock. The graph begins at once: in `in`, by the kernel t. */
static void fire(struct task *t, struct task *in, struct op *op)
{
	struct order_op *order = hb_issue_inside(t->order, NULL, 0, false, op, t->from);
	struct conditions *values = conditions_get(op->graph->values);
	struct task *u = queue_add_inside(in, op, NULL, 0);

	if (order)
		order_op_outlives(order, in->order);
	u->order = order;
	u->values = values;
	task_put(u);
}

bool device_graph_begin(struct task *t)
{
	struct op op = { .kind = OP_GRAPH, .graph = t->op.graph };
	struct conditions *values = conditions_get(op.graph->values);
	struct order_op *order = hb_issue_inside(t->order, NULL, 0, false, &op, t->from);
	struct task *u;

	t->op.graph = NULL;
	if (values)
		conditions_assign(values);
	u = queue_add_inside(t, &op, NULL, 0);
	u->order = order;
	u->values = values;
	task_put(u);
	return true;
}

static struct op launch_op(struct graph *exec, uint64_t number)
{
	struct op op = { .kind = OP_GRAPH, .graph = graph_dup(exec->on_device, true) };

	op.graph->launch_of = exec;
	op.graph->flags = exec->flags;
	number_kernels(op.graph, &number);
	return op;
}

/* The limits of the guide. Which error a launch beyond them returns is not documented. */
enum { MOST_FIRED = 120, MOST_TAILS = 255, LIMIT_ERROR = cudaErrorLaunchOutOfResources };

/* Under the lock. NULL: one launch more is within the limits. */
static const char *beyond(const struct task *in, const struct graph *exec, bool tail)
{
	if (!tail && in->op.kind == OP_GRAPH && in->op.graph->fired >= MOST_FIRED)
		return "\"a graph can have up to 120 total fire-and-forget graphs during the course of its execution\"";
	if (tail && device_grid_waiting(in, NULL) >= MOST_TAILS)
		return "\"a graph can have up to 255 pending tail launches\"";
	if (tail && in->op.graph->launch_of == exec && device_grid_waiting(in, exec))
		return "\"a given graph can have only one self-launch enqueued at a time\"";
	return NULL;
}

/* *why: set if it is a limit. */
static int issue(struct task *t, struct task *in, struct graph *exec, const struct exec_call *c, const char **why)
{
	const bool tail = c->arg[1] == STREAM_TAIL;
	struct op op;

	*why = beyond(in, exec, tail);
	if (*why)
		return LIMIT_ERROR;

	/* "a graph cannot be launched while it runs"; as a tail it follows itself */
	if (!tail && runs(exec))
		return cudaErrorInvalidValue;
	op = launch_op(exec, c->number);
	op.graph->tail = tail;
	if (tail) {
		device_grid_add_last(in, &op);
		return 0;
	}
	if (in->op.kind == OP_GRAPH)
		in->op.graph->fired++;
	fire(t, in, &op);
	return 0;
}

static bool has_copies(const struct graph *g)
{
	for (size_t i = 0; i < g->node.n; i++) {
		const struct op *op = &g->node.at[i]->op;

		if (op->kind == OP_COPY || op->kind == OP_FILL || (op->kind == OP_GRAPH && has_copies(op->graph)))
			return true;
	}
	return false;
}

int device_graph_launch(struct task *t, struct exec_call *c)
{
	struct graph *exec = graph_exec_of((const void *)(uintptr_t)c->arg[0]);
	struct task *in = environment_of(t);
	const char *why;
	int error;

	if (!in || in->op.kind != OP_GRAPH) {
		remark_refused("cudaGraphLaunch by a kernel", "a kernel launches graphs as part of a graph only");
		return cudaErrorNotSupported;
	}
	if (c->arg[1] != STREAM_TAIL && c->arg[1] != STREAM_FIRE_AND_FORGET && c->arg[1] != STREAM_SIBLING)
		return cudaErrorInvalidValue;
	if (!exec || !exec->on_device)
		return cudaErrorInvalidValue;
	if (!c->number) {
		c->value = count_kernels(exec->on_device);
		return 0;
	}
	if (c->arg[1] != STREAM_TAIL && has_copies(exec->on_device))
		remark(REMARK_NOT_SEEN, "races between a kernel and the copies and fills of a graph that it launches: "
			"their accesses are not compared");
	/* "the next graph in the tail launch list will replace the completed environment" */
	while (c->arg[1] == STREAM_SIBLING && in->op.kind == OP_GRAPH && in->op.graph->tail)
		in = environment_of(in);
	if (c->arg[1] == STREAM_SIBLING)
		in = environment_of(in);
	pthread_mutex_lock(&queue.lock);
	error = issue(t, in, exec, c, &why);
	pthread_mutex_unlock(&queue.lock);
	if (why)
		remark_refused("cudaGraphLaunch by a kernel", why);
	return error;
}
