/* graph: CUDA graphs, lists of operations that run when the graph is launched (internal.h
 * explains the order of nodes). */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

static _Atomic unsigned long long ids = 1, node_ids = 1;

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

struct node *node_of(const void *handle)
{
	return handle_get(handle, HANDLE_NODE);
}

/* The node, if it is of this graph. */
static struct node *own_node(const struct graph *g, const void *handle)
{
	struct node *n = node_of(handle);

	return n && n->graph == g ? n : NULL;
}

int graph_add(struct graph *g, struct op *op, const void *const *after, size_t nafter,
	struct node **out)
{
	struct node *n;
	size_t i;

	for (i = 0; i < nafter; i++) {
		if (!after || !own_node(g, after[i])) {
			op_free(op);
			return cudaErrorInvalidValue;
		}
	}
	n = base_alloc(sizeof *n);
	*n = (struct node){ .graph = g, .op = *op, .id = node_ids++ };
	for (i = 0; i < nafter; i++)
		vec_push(&n->after, node_of(after[i]));
	vec_push(&g->node, n);
	handle_put(n, HANDLE_NODE, n);
	if (out)
		*out = n;
	return 0;
}

struct node *graph_exec_node(const void *exec, const void *node)
{
	struct graph *g = graph_exec_of(exec);
	struct node *n = node_of(node);

	return g && n ? graph_find(g, n) : NULL;
}

static void number_nodes(const struct graph *g)
{
	for (size_t i = 0; i < g->node.n; i++)
		g->node.at[i]->place = i;
}

struct graph *graph_dup(const struct graph *g, bool executable)
{
	struct graph *copy = make(executable);
	struct node *from, *to;
	struct op op;
	size_t i, k;

	number_nodes(g);
	for (i = 0; i < g->node.n; i++) {
		from = g->node.at[i];
		op = op_dup(&from->op);
		graph_add(copy, &op, NULL, 0, &to);
		to->off = from->off;
		to->id = from->id;
		for (k = 0; k < from->after.n; k++)
			vec_push(&to->after, copy->node.at[from->after.at[k]->place]);
	}
	for (i = 0; i < g->object.n; i++)
		graph_hold(copy, g->object.at[i], 1, false);
	for (i = 0; i < g->condition.n; i++)
		vec_push(&copy->condition, g->condition.at[i]);
	if (executable)
		copy->values = g->executable ? conditions_get(g->values) : conditions_of(g);
	return copy;
}

struct node *graph_find(const struct graph *g, const struct node *of)
{
	for (size_t i = 0; i < g->node.n; i++)
		if (g->node.at[i]->id == of->id)
			return g->node.at[i];
	return NULL;
}

/* The node as part of a launch, with the values of its conditions. */
static struct op launched(const struct node *n, struct conditions *values)
{
	struct op op = n->off ? (struct op){ .kind = OP_EMPTY } : op_dup(&n->op);

	if (op.kind == OP_LAUNCH)
		op.launch.conditions = conditions_get(values);
	else if (op.kind == OP_CONDITION)
		op.condition.values = conditions_get(values);
	return op;
}

/* Adds the nodes after `first`. Returns a reference to a task after all of them. */
static struct task *expand(const struct graph *g, struct stream *s, struct caller *from,
	struct task *first, struct order_op *order, struct conditions *values)
{
	VEC(struct task *) task = { 0 }, after = { 0 };
	VEC(struct order_op *) did = { 0 }, behind = { 0 };
	struct op none = { .kind = OP_EMPTY };
	struct task *last;

	number_nodes(g);
	for (size_t i = 0; i < g->node.n; i++) {
		const struct node *n = g->node.at[i];
		struct op op = n->op.kind == OP_GRAPH ? none : launched(n, values);
		struct cuda_event *e;
		struct task *t;

		after.n = behind.n = 0;
		vec_push(&after, first);
		for (size_t k = 0; k < n->after.n; k++) {
			vec_push(&after, task.at[n->after.at[k]->place]);
			vec_push(&behind, did.at[n->after.at[k]->place]);
		}
		e = op.kind == OP_EVENT_RECORD || op.kind == OP_EVENT_WAIT ? cuda_event_of(op.event) : NULL;
		if (e && op.kind == OP_EVENT_WAIT && e->task)
			vec_push(&after, e->task);
		vec_push(&did, hb_issue_node(order, behind.at, behind.n, &n->op));
		if (e && op.kind == OP_EVENT_WAIT)
			order_wait_op(hb(), did.at[i], &e->order);
		t = queue_add_after(s, &op, from, after.at, after.n);
		t->order = order_op_get(hb(), did.at[i]);
		if (e && n->op.kind == OP_EVENT_RECORD) {
			order_record_op(hb(), &e->order, did.at[i], 0);
			task_put(e->task);
			e->task = task_get(t);
			e->recorded = true;
			e->capture = NULL;
		}
		if (n->op.kind == OP_GRAPH && !n->off) {
			struct task *child = expand(n->op.graph, s, from, t, did.at[i], values);

			task_put(t);
			t = child;
		}
		vec_push(&task, t);
	}
	vec_push(&task, task_get(first));
	last = queue_add_after(s, &none, NULL, task.at, task.n);
	for (size_t i = 0; i < task.n; i++)
		task_put(task.at[i]);
	order_join_nodes(hb(), order, did.at, did.n);
	for (size_t i = 0; i < did.n; i++)
		order_op_put(hb(), did.at[i]);
	vec_free(&task);
	vec_free(&after);
	vec_free(&did);
	vec_free(&behind);
	return last;
}

void graph_expand_inside(const struct graph *g, struct task *t, struct order_op *in)
{
	struct conditions *values = t->op.kind == OP_CONDITION ? t->op.condition.values : t->values;
	VEC(struct task *) task = { 0 }, after = { 0 };
	VEC(struct order_op *) did = { 0 }, behind = { 0 };

	number_nodes(g);
	for (size_t i = 0; i < g->node.n; i++) {
		const struct node *n = g->node.at[i];
		struct op op = launched(n, values);
		struct task *u;

		after.n = behind.n = 0;
		for (size_t k = 0; k < n->after.n; k++) {
			vec_push(&after, task.at[n->after.at[k]->place]);
			vec_push(&behind, did.at[n->after.at[k]->place]);
		}
		vec_push(&did, hb_issue_inside(in, behind.at, behind.n, false, &n->op, t->from));
		u = queue_add_inside(t, &op, after.at, after.n);
		u->order = order_op_get(hb(), did.at[i]);
		u->values = conditions_get(values);
		vec_push(&task, u);
	}
	for (size_t i = 0; i < task.n; i++) {
		task_put(task.at[i]);
		order_op_put(hb(), did.at[i]);
	}
	vec_free(&task);
	vec_free(&after);
	vec_free(&did);
	vec_free(&behind);
}

/* One task, with all else inside of it. */
static struct task *enqueue_environment(struct op *op, struct stream *s, struct caller *from,
	struct order_op *order)
{
	struct graph *exec = op->graph->launch_of;
	struct task *t;

	op->kind = OP_ENVIRONMENT;
	t = queue_add(s, op, from, exec->last);
	t->order = order_op_get(hb(), order);
	order_record_op(hb(), &exec->launched, order, 0);
	task_put(exec->last);
	exec->last = task_get(t);
	return t;
}

struct task *graph_enqueue(struct op *op, struct stream *s, struct caller *from, struct order_op *order)
{
	const struct graph *g = op->graph;
	struct op begin = { .kind = OP_EMPTY };
	struct graph *exec = g->launch_of;
	struct task *first, *last;

	order_wait_op(hb(), order, &exec->launched);
	if (exec->launches)
		return enqueue_environment(op, s, from, order);
	if (g->values)
		begin = (struct op){ .kind = OP_DEFAULTS, .defaults = conditions_get(g->values) };
	first = queue_add(s, &begin, from, exec->last);
	last = expand(g, s, from, first, order, g->values);
	order_record_op(hb(), &exec->launched, order, 0);
	task_put(exec->last);
	exec->last = task_get(last);

	task_put(first);
	task_put(s->tail);
	s->tail = task_get(last);
	return last;
}

static void node_free(struct node *n)
{
	handle_drop(n, HANDLE_NODE);
	op_free(&n->op);
	vec_free(&n->after);
	free(n->args);
	free(n);
}

void graph_free(struct graph *g)
{
	size_t i;

	handle_drop(g, g->executable ? HANDLE_GRAPH_EXEC : HANDLE_GRAPH);
	for (i = 0; i < g->node.n; i++)
		node_free(g->node.at[i]);
	for (i = 0; i < g->object.n; i++)
		user_object_count(g->object.at[i], -1);
	vec_free(&g->node);
	vec_free(&g->object);
	vec_free(&g->condition);
	conditions_put(g->values);
	if (g->on_device)
		graph_free(g->on_device);
	order_event_free(&g->launched);
	if (g->last) { /* else the caller may hold the lock */
		pthread_mutex_lock(&queue.lock);
		task_put(g->last);
		pthread_mutex_unlock(&queue.lock);
	}
	free(g);
}

bool graph_covers(const struct graph *g, struct node *const *front, size_t n, const struct node *of)
{
	bool *before = base_alloc(g->node.n + 1), covers;

	number_nodes(g);
	for (size_t i = 0; i < n; i++)
		before[front[i]->place] = true;
	for (size_t i = g->node.n; i-- > 0;)
		for (size_t k = 0; k < g->node.at[i]->after.n && before[i]; k++)
			before[g->node.at[i]->after.at[k]->place] = true;
	covers = before[of->place];
	free(before);
	return covers;
}

/* ---- changing a graph ---- */

/* Moves nodes behind those that they depend on, and keeps their order otherwise. False: there is a
 * cycle. */
static bool graph_order(struct graph *g)
{
	VEC(struct node *) order = { 0 };
	size_t i, k, placed = 0, before;
	struct node *n;

	for (i = 0; i < g->node.n; i++)
		g->node.at[i]->place = SIZE_MAX;
	do {
		before = placed;
		for (i = 0; i < g->node.n; i++) {
			n = g->node.at[i];
			for (k = 0; k < n->after.n && n->after.at[k]->place != SIZE_MAX; k++)
				;
			if (n->place != SIZE_MAX || k < n->after.n)
				continue;
			n->place = placed++;
			vec_push(&order, n);
		}
	} while (placed > before);
	if (placed == g->node.n && placed)
		memcpy(g->node.at, order.at, placed * sizeof *order.at);
	vec_free(&order);
	return placed == g->node.n;
}

static bool forget(struct node *n, const struct node *after)
{
	for (size_t k = 0; k < n->after.n; k++)
		if (n->after.at[k] == after) {
			n->after.at[k] = n->after.at[--n->after.n];
			return true;
		}
	return false;
}

int graph_depend(struct graph *g, const void *const *from, const void *const *to, size_t n, bool add)
{
	for (size_t i = 0; i < n; i++)
		if (!own_node(g, from[i]) || !own_node(g, to[i]) || from[i] == to[i])
			return cudaErrorInvalidValue;
	for (size_t i = 0; i < n; i++) {
		if (add)
			vec_push(&node_of(to[i])->after, node_of(from[i]));
		else if (!forget(node_of(to[i]), from[i]))
			return cudaErrorInvalidValue;
	}
	if (!add || graph_order(g))
		return 0;
	for (size_t i = 0; i < n; i++)
		forget(node_of(to[i]), from[i]);
	return cudaErrorInvalidValue;
}

int node_set(struct node *n, struct op *op)
{
	if (n->op.kind != op->kind) {
		op_free(op);
		return cudaErrorInvalidValue;
	}
	op_free(&n->op);
	n->op = *op;
	free(n->args);
	n->args = NULL;
	return 0;
}

/* What depended on it no longer does; on a GPU the node's own dependencies are not passed on either. */
int node_destroy(struct node *n)
{
	struct graph *g = n->graph;
	size_t left = 0;

	for (size_t i = 0; i < g->node.n; i++) {
		while (forget(g->node.at[i], n))
			;
		if (g->node.at[i] != n)
			g->node.at[left++] = g->node.at[i];
	}
	g->node.n = left;
	node_free(n);
	return 0;
}

/* ---- user objects ---- */

struct user_object {
	void (*destroy)(void *user);
	void *user;
	_Atomic long count;
};

int user_object_new(struct user_object **out, void *user, void (*destroy)(void *user), unsigned count)
{
	if (!out || !destroy || !count)
		return cudaErrorInvalidValue;
	*out = base_alloc(sizeof **out);
	**out = (struct user_object){ .destroy = destroy, .user = user, .count = count };
	handle_put(*out, HANDLE_OBJECT, *out);
	return 0;
}

int user_object_count(const void *handle, long count)
{
	struct user_object *o = handle_get(handle, HANDLE_OBJECT);

	if (!o || !count || o->count + count < 0)
		return cudaErrorInvalidValue;
	o->count += count;
	if (!o->count) {
		handle_drop(o, HANDLE_OBJECT);
		o->destroy(o->user);
		free(o);
	}
	return 0;
}

int graph_hold(struct graph *g, const void *object, unsigned count, bool move)
{
	struct user_object *o = handle_get(object, HANDLE_OBJECT);

	if (!o || !count)
		return cudaErrorInvalidValue;
	if (!move)
		o->count += count;
	for (unsigned k = 0; k < count; k++)
		vec_push(&g->object, o);
	return 0;
}

void graph_drop_objects(struct graph *g)
{
	while (g->object.n)
		user_object_count(g->object.at[--g->object.n], -1);
}

int graph_drop(struct graph *g, const void *object, unsigned count)
{
	for (size_t i = g->object.n; i-- > 0 && count;)
		if (g->object.at[i] == object) {
			g->object.at[i] = g->object.at[--g->object.n];
			user_object_count(object, -1);
			count--;
		}
	return count ? cudaErrorInvalidValue : 0;
}

/* ---- memory ---- */

struct owned { void *at; };

static void free_owned(void *user)
{
	struct owned *m = user;

	if (handle_get(m->at, HANDLE_OWNED) == m)
		mem_free(m->at);
	free(m);
}

int graph_alloc(struct graph *g, size_t bytes, struct op *op)
{
	struct user_object *object;
	struct owned *m;
	void *at = NULL;
	int error = bytes ? mem_alloc(&at, bytes, CONSAN_MEM_DEVICE) : cudaErrorInvalidValue;

	if (error)
		return error;
	m = base_alloc(sizeof *m);
	m->at = at;
	handle_put(at, HANDLE_OWNED, m);
	user_object_new(&object, m, free_owned, 1);
	graph_hold(g, object, 1, true);
	*op = (struct op){ .kind = OP_ALLOC, .memory = { at, bytes } };
	return 0;
}

int graph_release(struct graph *g, void *at, struct op *op)
{
	(void)g;
	if (!handle_get(at, HANDLE_MEMORY))
		return cudaErrorInvalidValue;
	*op = (struct op){ .kind = OP_RELEASE, .memory = { at, 0 } };
	return 0;
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
	conditions_put(to->values);
	to->values = conditions_of(from);
	return true;
}

int graph_launch(const void *exec, const void *stream)
{
	struct graph *g = graph_exec_of(exec);
	struct op op = { .kind = OP_GRAPH };

	if (!g)
		return cudaErrorInvalidValue;
	op.graph = graph_dup(g, true);
	op.graph->launch_of = g;
	op.graph->flags = g->flags;
	if (g->launches)
		graph_drop_objects(op.graph); /* the copy is released under the lock */
	if (g->flags & cudaGraphInstantiateFlagDeviceLaunch && !g->on_device)
		device_graph_upload(g);
	return stream_issue(stream, &op, false);
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
