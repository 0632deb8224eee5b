/* device_runtime: see device_runtime.h and the CUDA C++ Programming Guide, "CUDA Dynamic Parallelism". */
#include "device_runtime.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Handles of streams that are not created. The NULL stream is one of each block. */
enum { STREAM_NULL = 0, STREAM_LEGACY, STREAM_PER_THREAD, STREAM_TAIL, STREAM_FIRE_AND_FORGET,
	FIRST_HANDLE = 256 };

/* Behind what an operation of a stream comes. */
struct behind {
	VEC(struct task *) task;     /* references, as those of op */
	VEC(struct order_op *) op;
};

struct device_stream { uint64_t handle, cta; struct behind behind; };
struct device_event { uint64_t handle; struct behind behind; };

/* Streams and events exist within the grid that made them. All under the lock of the queue. */
struct device_grid {
	VEC(struct device_stream *) stream;
	VEC(struct device_event *) event;
	VEC(struct op) last;         /* launches into cudaStreamTailLaunch that wait for all else */
	size_t nlast;                /* of these, how many have been added */
};

static _Atomic uint64_t handles = FIRST_HANDLE;

/* ---- what comes after what ---- */

static void behind_clear(struct behind *b)
{
	for (size_t i = 0; i < b->task.n; i++) {
		task_put(b->task.at[i]);
		order_op_put(hb(), b->op.at[i]);
	}
	b->task.n = b->op.n = 0;
}

static void behind_add(struct behind *b, struct task *t, struct order_op *op)
{
	vec_push(&b->task, task_get(t));
	vec_push(&b->op, order_op_get(hb(), op));
}

static void behind_join(struct behind *b, const struct behind *with)
{
	for (size_t i = 0; i < with->task.n; i++)
		behind_add(b, with->task.at[i], with->op.at[i]);
}

static void behind_free(struct behind *b)
{
	behind_clear(b);
	vec_free(&b->task);
	vec_free(&b->op);
}

static struct device_grid *grid_of(struct task *t)
{
	if (!t->grid)
		t->grid = base_alloc(sizeof *t->grid);
	return t->grid;
}

void device_grid_free(struct task *t)
{
	struct device_grid *g = t->grid;

	if (!g)
		return;
	for (size_t i = 0; i < g->stream.n; i++) {
		behind_free(&g->stream.at[i]->behind);
		free(g->stream.at[i]);
	}
	for (size_t i = 0; i < g->event.n; i++) {
		behind_free(&g->event.at[i]->behind);
		free(g->event.at[i]);
	}
	for (size_t i = g->nlast; i < g->last.n; i++)
		op_free(&g->last.at[i]);
	vec_free(&g->stream);
	vec_free(&g->event);
	vec_free(&g->last);
	free(g);
	t->grid = NULL;
}

static struct device_stream *add_stream(struct device_grid *g, uint64_t handle, uint64_t cta)
{
	struct device_stream *s = base_alloc(sizeof *s);

	*s = (struct device_stream){ .handle = handle, .cta = cta };
	vec_push(&g->stream, s);
	return s;
}

/* NULL: there is no such stream. */
static struct device_stream *stream_at(struct device_grid *g, uint64_t handle, uint64_t cta)
{
	const bool of_block = handle <= STREAM_PER_THREAD;

	if (of_block)
		handle = STREAM_NULL;
	for (size_t i = g->stream.n; i-- > 0;)
		if (g->stream.at[i]->handle == handle && (!of_block || g->stream.at[i]->cta == cta))
			return g->stream.at[i];
	return of_block ? add_stream(g, STREAM_NULL, cta) : NULL;
}

static struct device_event *event_at(const struct device_grid *g, uint64_t handle)
{
	for (size_t i = g->event.n; i-- > 0;)
		if (g->event.at[i]->handle == handle)
			return g->event.at[i];
	return NULL;
}

/* ---- launches ---- */

/* The launch that the call is; its memory operations, too. c->stream: set for all. */
static int launch_of(const struct task *t, struct exec_call *c, struct launch *l)
{
	const int device = t->stream->device;
	int error;

	if (c->function != RUNTIME_LaunchDevice && c->function != RUNTIME_LaunchDeviceV2)
		return device_copy(c, device, l);
	error = image_func_on(t->op.launch.func->image, c->kernel, device, &l->func);
	if (error)
		return error;
	memcpy(l->grid, c->grid, sizeof l->grid);
	memcpy(l->block, c->block, sizeof l->block);
	l->shared = c->shared_dynamic;
	error = launch_check(l);
	return error ? error : launch_pack(l, NULL, c->params, l->func->info.param_bytes);
}

static struct task *add_launch(struct task *t, struct op *op, const struct behind *b, bool last)
{
	struct order_op *order = hb_issue_inside(t->order, b ? b->op.at : NULL, b ? b->op.n : 0, last, op,
		t->from);
	struct task *u = queue_add_inside(t, op, b ? b->task.at : NULL, b ? b->task.n : 0);

	u->order = order;
	u->values = conditions_get(t->values);
	return u;
}

/* Under the lock: is there a slot for one launch more? Those that wait for the end of the grid surely have
 * one each; whether the others have begun depends on the GPU. */
static bool has_slot(const struct task *t, bool tail)
{
	static atomic_flag remarked = ATOMIC_FLAG_INIT;
	const size_t waiting = device_grid_waiting(t, NULL);
	size_t most = 0;

	device_limit(cudaLimitDevRuntimePendingLaunchCount, &most, NULL);
	if (tail && waiting >= most)
		return false;
	if (waiting + t->children >= most && !atomic_flag_test_and_set(&remarked))
		remark(REMARK_NOTE, "a kernel launched more grids than cudaLimitDevRuntimePendingLaunchCount: on a GPU, "
			"launches fail when so many have not begun");
	return true;
}

/* Takes ownership of the contents of op. */
static int issue(struct task *t, struct op *op, const struct exec_call *c)
{
	struct device_grid *g = grid_of(t);
	struct device_stream *s;
	struct task *u;

	if (c->stream == STREAM_TAIL) {
		device_grid_add_last(t, op);
		return 0;
	}
	if (c->stream == STREAM_FIRE_AND_FORGET) {
		task_put(add_launch(t, op, NULL, false));
		return 0;
	}
	s = stream_at(g, c->stream, c->cta);
	if (!s) {
		op_free(op);
		return cudaErrorInvalidResourceHandle;
	}
	u = add_launch(t, op, &s->behind, false);
	behind_clear(&s->behind);
	behind_add(&s->behind, u, u->order);
	task_put(u);
	return 0;
}

static int run(struct task *t, struct exec_call *c)
{
	struct op op = { .kind = OP_LAUNCH };
	int error = launch_of(t, c, &op.launch);

	pthread_mutex_lock(&queue.lock);
	if (!error && !has_slot(t, c->stream == STREAM_TAIL)) {
		error = cudaErrorLaunchOutOfResources;
		snprintf(op.launch.reason, sizeof op.launch.reason,
			"as many launches wait as cudaLimitDevRuntimePendingLaunchCount allows");
	}
	pthread_mutex_unlock(&queue.lock);
	if (error) {
		launch_refused_inside(&op.launch, error);
		op_free(&op);
		return error;
	}
	op.launch.launched = c->number;
	op.launch.conditions = conditions_get(t->op.launch.conditions);
	pthread_mutex_lock(&queue.lock);
	error = issue(t, &op, c);
	pthread_mutex_unlock(&queue.lock);
	return error;
}

void device_grid_add_last(struct task *t, struct op *op)
{
	vec_push(&grid_of(t)->last, *op);
}

size_t device_grid_waiting(const struct task *t, const struct graph *of)
{
	const struct device_grid *g = t->grid;
	size_t n = 0;

	for (size_t i = g ? g->nlast : 0; g && i < g->last.n; i++)
		n += !of || (g->last.at[i].kind == OP_GRAPH && g->last.at[i].graph->launch_of == of);
	return n;
}

bool device_grid_last(struct task *t)
{
	struct device_grid *g = t->grid;

	if (!g || g->nlast == g->last.n)
		return false;
	if (t->op.kind == OP_LAUNCH && !t->op.launch.func) /* its image was unloaded */
		return false;
	task_put(add_launch(t, &g->last.at[g->nlast++], NULL, true));
	return true;
}

/* ---- streams and events ---- */

static int new_event(struct device_grid *g, uint64_t handle)
{
	struct device_event *e = base_alloc(sizeof *e);

	e->handle = handle;
	vec_push(&g->event, e);
	return 0;
}

/* Under the lock. Streams that are destroyed go on, events are not used any more: both are kept as long as
 * the grid. */
static int orders(struct task *t, struct exec_call *c)
{
	struct device_grid *g = grid_of(t);
	const uint64_t handle = handles, *a = c->arg;
	struct device_stream *s;
	struct device_event *e;

	switch (c->function) {
	case RUNTIME_StreamCreateWithFlags:
		if (a[1] != cudaStreamNonBlocking)
			return cudaErrorInvalidValue;
		memcpy(c->out, &handle, sizeof handle);
		add_stream(g, handles++, 0);
		return 0;
	case RUNTIME_EventCreateWithFlags:
		if (a[1] != cudaEventDisableTiming)
			return cudaErrorInvalidValue;
		memcpy(c->out, &handle, sizeof handle);
		return new_event(g, handles++);
	case RUNTIME_StreamDestroy:
		return a[0] > STREAM_FIRE_AND_FORGET && stream_at(g, a[0], 0) ? 0
			: cudaErrorInvalidResourceHandle;
	case RUNTIME_EventDestroy:
		return event_at(g, a[0]) ? 0 : cudaErrorInvalidResourceHandle;
	case RUNTIME_EventRecord:
	case RUNTIME_EventRecordWithFlags:
		e = event_at(g, a[0]);
		s = stream_at(g, a[1], c->cta);
		if (!e || !s)
			return cudaErrorInvalidResourceHandle;
		behind_clear(&e->behind);
		behind_join(&e->behind, &s->behind);
		return 0;
	case RUNTIME_StreamWaitEvent:
		s = stream_at(g, a[0], c->cta);
		e = event_at(g, a[1]);
		if (!e || !s)
			return cudaErrorInvalidResourceHandle;
		behind_join(&s->behind, &e->behind);
		return 0;
	default:
		return cudaErrorNotSupported;
	}
}

/* ---- questions ---- */

static int put_int(struct exec_call *c, int value, int error)
{
	memcpy(c->out, &value, sizeof value);
	return error;
}

static int asks(struct task *t, struct exec_call *c)
{
	const int device = t->stream->device, error = (int)c->arg[0];
	const struct error_row *row;
	struct func *f = NULL;
	size_t limit = 0;
	int value = 0, result;

	switch (c->function) {
	case RUNTIME_GraphSetConditional:
		c->value = (uintptr_t)condition_at(t->op.launch.conditions, c->arg[0]);
		return 0;
	case RUNTIME_CurrentGraphExec:
		c->value = device_graph_current(t);
		return 0;
	case RUNTIME_GetErrorString:
	case RUNTIME_GetErrorName:
		row = error_find(error);
		c->value = (uintptr_t)(!row ? "unrecognized error code" : c->function == RUNTIME_GetErrorString
			? row->text : row->rt);
		return 0;
	case RUNTIME_DeviceGetAttribute:
		result = device_attribute((int)c->arg[2], (int)c->arg[1], &value);
		return put_int(c, value, result);
	case RUNTIME_DeviceGetLimit:
		result = device_limit((int)c->arg[1], &limit, NULL);
		memcpy(c->out, &limit, sizeof limit);
		return result;
	case RUNTIME_GetDeviceCount:
		return put_int(c, device_count(), 0);
	case RUNTIME_GetDevice:
		return put_int(c, device, 0);
	case RUNTIME_RuntimeGetVersion:
		return put_int(c, DEVICE_CUDA_VERSION, 0);
	case RUNTIME_DeviceGetCacheConfig:
	case RUNTIME_DeviceGetSharedMemConfig:
		return put_int(c, 0, 0);
	default:
		break;
	}
	result = c->kernel ? image_func_on(t->op.launch.func->image, c->kernel, device, &f)
		: cudaErrorInvalidDeviceFunction;
	if (result)
		return result;
	if (c->function == RUNTIME_FuncGetAttributes)
		return cudaFuncGetAttributes((struct cudaFuncAttributes *)c->out, f);
	result = func_occupancy(f, (int)c->arg[2], c->arg[3], &value);
	return put_int(c, value, result);
}

_Static_assert(sizeof(struct cudaFuncAttributes) <= RUNTIME_OUT, "out has room for it");

int device_runtime_call(struct exec_call *c)
{
	struct task *t = engine_running();
	int error;

	if (!t || t->op.kind != OP_LAUNCH || !t->op.launch.func)
		return cudaErrorNotSupported;
	switch (c->effect) {
	case RUNTIME_ASKS:
		return asks(t, c);
	case RUNTIME_RUNS:
		return c->function == RUNTIME_GraphLaunch ? device_graph_launch(t, c) : run(t, c);
	case RUNTIME_ORDERS:
		break;
	}
	pthread_mutex_lock(&queue.lock);
	error = orders(t, c);
	pthread_mutex_unlock(&queue.lock);
	return error;
}
