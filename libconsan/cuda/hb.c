/* hb: tells libconsan/order what the program does: the operations that it issues, the edges that its
 * calls make, and the bytes that copies and fills access. Grids tell theirs in libconsan/session. */
#include "library.h"
#include "queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- streams ---- */

struct order *hb(void)
{
	return consan_order(device_session());
}

static enum order_line_kind kind_of(const struct stream *s)
{
	if (s == stream_legacy(s->device))
		return ORDER_LEGACY;
	return s->flags & cudaStreamNonBlocking ? ORDER_NON_BLOCKING : ORDER_BLOCKING;
}

static void name_per_thread(const struct stream *s)
{
	static _Atomic unsigned n;
	const unsigned number = ++n;
	char name[64];

	snprintf(name, sizeof name, number > 1 ? "per-thread default stream %u" : "the per-thread default stream",
		number);
	order_line_name(hb(), s->line, name);
}

order_line hb_line(struct stream *s)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (!s->has_line) {
		s->line = order_line_open(hb(), kind_of(s), s->device);
		s->has_line = true;
		if (s->per_thread)
			name_per_thread(s);
	}
	pthread_mutex_unlock(&lock);
	return s->line;
}

void hb_stream_closed(struct stream *s)
{
	if (s->has_line)
		order_line_close(hb(), s->line);
}

/* ---- threads ---- */

enum { DELAYS = 32 };            /* of calls of each thread */
#define DELAY 2000000            /* ns */

static _Atomic unsigned threads; /* that made calls */
static pthread_key_t at_end;
static _Thread_local bool counted;
static _Thread_local unsigned delays;
static _Thread_local bool begun; /* see hb_begin() */

/* The session ends before the last threads do. */
static bool is_open(void)
{
	return device_session() && !device_broken(0);
}

static void thread_ends(void *unused)
{
	counted = false;
	if (!is_open())
		return;
	stream_thread_ends();
	order_thread_ends(hb());
}

static void make_key(void)
{
	pthread_key_create(&at_end, thread_ends);
}

void hb_thread(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (counted)
		return;
	counted = true;
	pthread_once(&once, make_key);
	pthread_setspecific(at_end, &threads);
	threads++;
}

void hb_begin(void)
{
	begun = false;
	hb_thread();
	if (threads < 2 || engine_running())
		return;
	order_begin(hb());
	begun = true;
	if (delays++ >= DELAYS)
		return;
	host_enter();
	nanosleep(&(struct timespec){ .tv_nsec = DELAY }, NULL);
	engine_exit();
}

void hb_released(const void *at)
{
	enum consan_mem kind;
	uint64_t bytes;
	void *base;

	if (!begun)
		return;
	begun = false;
	if (at && consan_mem_find(device_session(), at, &base, &bytes, &kind))
		order_host_frees(hb(), (uint64_t)(uintptr_t)base, bytes, consan_host_stack);
	order_end(hb());
}

/* For libconsan-threads.so: the calling thread synchronizes with others by this object. */
__attribute__((visibility("default"))) void consan_thread_release(const void *object);
void consan_thread_release(const void *object)
{
	if (is_open())
		order_release(hb(), (uint64_t)(uintptr_t)object);
}

__attribute__((visibility("default"))) void consan_thread_acquire(const void *object);
void consan_thread_acquire(const void *object)
{
	if (is_open())
		order_acquire(hb(), (uint64_t)(uintptr_t)object);
}

/* ---- operations ---- */

static const char *fallback_name(const struct op *op)
{
	static const char *const name[] = { [OP_EMPTY] = "operation", [OP_LAUNCH] = "kernel",
		[OP_COPY] = "copy", [OP_FILL] = "memset", [OP_HOST] = "host function", [OP_LIBRARY] = "library call",
		[OP_GRAPH] = "graph launch", [OP_RECORD] = "event", [OP_FREE] = "cudaFreeAsync",
		[OP_WRITE] = "stream memory write", [OP_WAIT] = "stream memory wait",
		[OP_EVENT_RECORD] = "event record",
		[OP_EVENT_WAIT] = "event wait", [OP_ALLOC] = "allocation", [OP_RELEASE] = "release",
		[OP_CONDITION] = "conditional node", [OP_DEFAULTS] = "graph launch",
		[OP_ENVIRONMENT] = "graph launch" };

	return name[op->kind];
}

static struct order_call call_of(const struct op *op)
{
	struct order_call call = { .name = "" };

	if (op->kind == OP_LAUNCH)
		call.kernel = op->launch.func->name;
	if (order_wants(hb()))
		call.stack = consan_host_stack(&call.name);
	if (!*call.name)
		call.name = fallback_name(op);
	return call;
}

/* The Python frames are those that the reader knows, if it is a Python program. Not under a lock. */
static uint32_t python_stack(uint32_t host)
{
	char *frames = consan_python_program() ? consan_python_frames() : NULL;
	const uint32_t python = frames ? consan_python_stack_of(frames) : 0;

	free(frames);
	return python ? python : host;
}

struct order_op *hb_issue(struct stream *s, const struct op *op)
{
	struct order_call call = call_of(op);

	if (call.stack)
		call.stack = python_stack(call.stack);
	return order_issue(hb(), hb_line(s), &call);
}

struct order_op *hb_issue_node(const struct order_op *start, struct order_op *const *after,
	size_t nafter, const struct op *op)
{
	struct order_call call = call_of(op);

	if (!call.kernel) /* the call is that of the whole graph */
		call.name = fallback_name(op);
	return order_issue_node(hb(), start, after, nafter, &call);
}

struct order_op *hb_issue_copy(const struct order_op *start, const struct op *op)
{
	struct order_call call = call_of(op);

	call.batch = true;
	return order_issue_node(hb(), start, NULL, 0, &call);
}

/* Not under a call of the program: its stack is that of the call that issued the whole. */
struct order_op *hb_issue_inside(struct order_op *in, struct order_op *const *after, size_t nafter,
	bool last, const struct op *op, const struct caller *from)
{
	struct order_call call = { .name = fallback_name(op) };

	if (op->kind == OP_LAUNCH)
		call.kernel = op->launch.func->name;
	if (order_wants(hb()))
		call.stack = caller_stack_of(from);
	return order_issue_inside(hb(), in, after, nafter, last, &call);
}

static enum order_memory memory_of(const void *at)
{
	enum consan_mem kind;
	uint64_t bytes;
	void *base;

	if (!consan_mem_find(device_session(), at, &base, &bytes, &kind))
		return ORDER_PAGEABLE;
	return kind == CONSAN_MEM_HOST ? ORDER_PINNED : kind == CONSAN_MEM_MANAGED ? ORDER_MANAGED
		: ORDER_DEVICE;
}

/* ---- accesses ---- */

struct ranges { VEC(struct order_range) all; };

/* The bytes of `depth` slices of `height` rows. */
static void add_rows(struct ranges *to, const void *at, size_t pitch, size_t slice, size_t width,
	size_t height, size_t depth, uint32_t flags)
{
	const uint64_t addr = (uint64_t)(uintptr_t)at;

	for (size_t z = 0; z < depth; z++) {
		if (height && pitch == width) {
			vec_push(&to->all, ((struct order_range){ .addr = addr + z * slice,
				.bytes = width * height, .flags = flags }));
			continue;
		}
		for (size_t y = 0; y < height; y++)
			vec_push(&to->all, ((struct order_range){ .addr = addr + z * slice + y * pitch,
				.bytes = width, .flags = flags }));
	}
}

void hb_done(struct order_op *o, const struct op *op)
{
	const struct copy *c = &op->copy;
	const struct fill *f = &op->fill;
	struct ranges r = { 0 };

	if (op->kind == OP_COPY && c->width) {
		/* pageable memory is staged: the call returns when it has been read */
		if (!c->staged && !c->read_apart && !(memory_of(c->src) == ORDER_PAGEABLE && memory_of(c->dst) != ORDER_PAGEABLE))
			add_rows(&r, c->src, c->src_pitch, c->src_slice, c->width, c->height, c->depth, 0);
		add_rows(&r, c->dst, c->dst_pitch, c->dst_slice, c->width, c->height, c->depth,
			ORDER_WRITE);
	} else if (op->kind == OP_FILL && f->width) {
		add_rows(&r, f->dst, f->pitch, f->slice, f->width * f->unit, f->height, f->depth,
			ORDER_WRITE);
	} else if (op->kind == OP_WRITE || op->kind == OP_WAIT) {
		vec_push(&r.all, ((struct order_range){ .addr = (uint64_t)(uintptr_t)op->value.at,
			.bytes = op->value.bytes, .flags = ORDER_STRONG | ORDER_SYSTEM | (op->kind == OP_WRITE ? ORDER_WRITE
				: ORDER_OBSERVES) }));
		consan_host_word(device_session(), (uint64_t)(uintptr_t)op->value.at, (uint32_t)op->value.bytes,
			op->kind == OP_WRITE);
	}
	if (op->kind == OP_CONDITION && condition_at(op->condition.values, op->condition.handle))
		vec_push(&r.all, ((struct order_range){ .addr = (uint64_t)(uintptr_t)condition_at(
			op->condition.values, op->condition.handle), .bytes = sizeof(uint32_t) }));
	if (r.all.n)
		order_accesses(hb(), o, r.all.at, r.all.n);
	vec_free(&r.all);
}

void hb_read_apart(struct stream *s, const struct op *op, bool known)
{
	struct order_call call = call_of(op);
	const struct copy *c = &op->copy;
	struct order_event read = { 0 };
	struct ranges r = { 0 };
	struct order_op *o;
	order_line line;

	if (memory_of(c->src) == ORDER_PAGEABLE)
		return;
	call.source = true;
	line = order_line_open(hb(), ORDER_NON_BLOCKING, s->device);
	order_line_name(hb(), line, "no stream");
	o = order_issue(hb(), line, &call);
	add_rows(&r, c->src, c->src_pitch, c->src_slice, c->width, c->height, c->depth, 0);
	order_accesses(hb(), o, r.all.at, r.all.n);
	order_record(hb(), &read, line, 0);
	order_wait(hb(), hb_line(s), &read, 0);
	if (known)
		order_host_waits_op(hb(), o, ORDER_PROMISED);
	order_event_free(&read);
	order_line_close(hb(), line);
	order_op_put(hb(), o);
	vec_free(&r.all);
}

void hb_accesses(struct order_op *o, const struct hb_span *span, size_t n)
{
	struct ranges r = { 0 };

	if (!o || !order_wants(hb()))
		return;
	for (size_t k = 0; k < n; k++) {
		const struct hb_span *s = span + k;
		const uint32_t flags = s->write ? ORDER_WRITE : 0;

		if (!s->grow) {
			add_rows(&r, s->at, s->pitch, s->slice, s->width, s->rows, s->slices, flags);
			continue;
		}
		for (size_t y = 0; y < s->rows; y++)
			add_rows(&r, (const char *)s->at + y * s->pitch, 0, s->slice,
				(size_t)((long)s->width + (long)y * s->grow), 1, s->slices, flags);
	}
	if (r.all.n)
		order_accesses(hb(), o, r.all.at, r.all.n);
	vec_free(&r.all);
}

static void join_lines(struct stream *from, struct stream *to)
{
	struct order_event e = { 0 };

	order_record(hb(), &e, hb_line(from), 0);
	order_wait(hb(), hb_line(to), &e, 0);
	order_event_free(&e);
}

void hb_operator(struct stream *s, struct stream *with, const char *name, const struct hb_span *span,
	size_t n, enum hb_returns returns)
{
	const struct task *t = engine_running();
	struct order_call call = { .name = name };
	struct order_op *o;

	if (t) {
		hb_accesses(t->order, span, n);
		return;
	}
	call.stack = python_stack(0);
	if (with)
		join_lines(with, s);
	o = order_issue(hb(), hb_line(s), &call);
	if (with)
		join_lines(s, with);
	hb_accesses(o, span, n);
	if (returns != HB_AT_ONCE)
		order_host_waits_op(hb(), o, returns == HB_DONE ? ORDER_PROMISED : ORDER_KNOWN);
	order_op_put(hb(), o);
}

/* What the host knows when the call that issued this operation returns. */
void hb_returned(const struct order_op *o, const struct op *op, bool blocking)
{
	if (op->kind == OP_COPY)
		order_returned(hb(), order_copy(memory_of(op->copy.dst), memory_of(op->copy.src),
			!blocking), 0, o);
	else if (op->kind == OP_FILL)
		order_returned(hb(), order_fill(memory_of(op->fill.dst), !blocking), 0, o);
	ipc_race_known(false);
}

/* ---- lifetimes ---- */

#define MOST_FREED ((uint64_t)256 << 20)

struct freed { void *at; uint64_t bytes; struct order_place when; };

/* Memory that operations released and may still use by mistake, oldest first. */
static struct {
	pthread_mutex_t lock;
	VEC(struct freed) all;
	uint64_t bytes;
} freed = { .lock = PTHREAD_MUTEX_INITIALIZER };

void hb_alloc(struct stream *s, void *at, size_t bytes)
{
	struct order_call call = { .name = "cudaMallocAsync" };
	struct order_op *o;

	if (!order_wants(hb()))
		return;
	call.stack = consan_host_stack(&call.name);
	o = order_issue(hb(), hb_line(s), &call);
	order_alloc(hb(), o, (uint64_t)(uintptr_t)at, bytes);
	order_op_put(hb(), o);
}

/* Under the lock. */
static void release_first(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		freed.bytes -= freed.all.at[i].bytes;
		mem_release(freed.all.at[i].at);
	}
	for (size_t i = n; i < freed.all.n; i++)
		freed.all.at[i - n] = freed.all.at[i];
	freed.all.n -= n;
}

bool hb_free(struct order_op *o, void *at)
{
	enum consan_mem kind;
	uint64_t bytes;
	void *base;

	if (!o || !order_wants(hb()) || !consan_mem_find(device_session(), at, &base, &bytes, &kind))
		return false;
	order_free(hb(), o, (uint64_t)(uintptr_t)at, bytes);
	pthread_mutex_lock(&freed.lock);
	vec_push(&freed.all, ((struct freed){ at, bytes, order_place(o) }));
	freed.bytes += bytes;
	while (freed.bytes > MOST_FREED)
		release_first(1);
	pthread_mutex_unlock(&freed.lock);
	return true;
}

/* The host waited. What has not run may still use the memory. */
static void release_known(void)
{
	size_t n = 0;

	pthread_mutex_lock(&freed.lock);
	if (freed.all.n && !engine_pending())
		while (n < freed.all.n && order_host_knows(hb(), freed.all.at[n].when))
			n++;
	release_first(n);
	pthread_mutex_unlock(&freed.lock);
}

/* ---- the host waits ---- */

void hb_stream_waited(struct stream *s)
{
	order_host_waits(hb(), hb_line(s), ORDER_PROMISED);
	ipc_race_known(false);
	release_known();
	guard_update();
}

void hb_device_waited(int device)
{
	order_host_waits_device(hb(), device, ORDER_PROMISED);
	ipc_race_known(false);
	release_known();
	guard_update();
}

/* ---- events ---- */

void hb_record(struct cuda_event *e, struct stream *s)
{
	order_record(hb(), &e->order, hb_line(s), 0);
}

void hb_wait(struct stream *s, const struct cuda_event *e)
{
	struct consan_call call = { .rule = "CS1007", .name = "cudaStreamWaitEvent", .kernel = "",
		.error = "the event was never recorded before this call", .reason = "" };

	if (!e->order.clock)
		call.stack = consan_host_stack(&call.name);
	if (!order_wait(hb(), hb_line(s), &e->order, call.stack))
		consan_call_failed(device_session(), &call);
}

void hb_event_waited(const struct cuda_event *e)
{
	order_host_waits_event(hb(), &e->order);
	ipc_race_known(false);
	release_known();
	guard_update();
}
