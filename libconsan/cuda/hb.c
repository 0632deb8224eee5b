/* hb: tells libconsan/order what the program does: the operations that it issues, the edges that its
 * calls make, and the bytes that copies and fills access. Grids tell theirs in libconsan/session. */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

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

order_line hb_line(struct stream *s)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (!s->has_line) {
		s->line = order_line_open(hb(), kind_of(s), s->device);
		s->has_line = true;
		if (s == stream_per_thread(s->device))
			order_line_name(hb(), s->line, "the per-thread default stream");
	}
	pthread_mutex_unlock(&lock);
	return s->line;
}

void hb_stream_closed(struct stream *s)
{
	if (s->has_line)
		order_line_close(hb(), s->line);
}

/* ---- operations ---- */

static const char *fallback_name(const struct op *op)
{
	static const char *const name[] = { [OP_EMPTY] = "operation", [OP_LAUNCH] = "kernel",
		[OP_COPY] = "copy", [OP_FILL] = "memset", [OP_HOST] = "host function",
		[OP_GRAPH] = "graph launch", [OP_RECORD] = "event", [OP_FREE] = "cudaFreeAsync",
		[OP_WRITE] = "stream memory write", [OP_WAIT] = "stream memory wait",
		[OP_EVENT_RECORD] = "event record",
		[OP_EVENT_WAIT] = "event wait", [OP_ALLOC] = "allocation", [OP_RELEASE] = "release" };

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

struct order_op *hb_issue(struct stream *s, const struct op *op)
{
	const struct order_call call = call_of(op);

	return order_issue(hb(), hb_line(s), &call);
}

struct order_op *hb_issue_node(const struct order_op *start, struct order_op *const *after,
	size_t nafter, const struct op *op)
{
	const struct order_call call = call_of(op);

	return order_issue_node(hb(), start, after, nafter, &call);
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
			vec_push(&to->all, ((struct order_range){ addr + z * slice, width * height, 0, flags }));
			continue;
		}
		for (size_t y = 0; y < height; y++)
			vec_push(&to->all, ((struct order_range){ addr + z * slice + y * pitch, width, 0,
				flags }));
	}
}

void hb_done(struct order_op *o, const struct op *op)
{
	const struct copy *c = &op->copy;
	const struct fill *f = &op->fill;
	struct ranges r = { 0 };

	if (op->kind == OP_COPY && c->width) {
		if (!c->staged)
			add_rows(&r, c->src, c->src_pitch, c->src_slice, c->width, c->height, c->depth, 0);
		add_rows(&r, c->dst, c->dst_pitch, c->dst_slice, c->width, c->height, c->depth,
			ORDER_WRITE);
	} else if (op->kind == OP_FILL && f->width) {
		add_rows(&r, f->dst, f->pitch, f->slice, f->width * f->unit, f->height, f->depth,
			ORDER_WRITE);
	} else if (op->kind == OP_WRITE || op->kind == OP_WAIT) {
		vec_push(&r.all, ((struct order_range){ (uint64_t)(uintptr_t)op->value.at,
			op->value.bytes, 0, ORDER_STRONG | ORDER_SYSTEM | (op->kind == OP_WRITE ? ORDER_WRITE
				: ORDER_OBSERVES) }));
	}
	if (r.all.n)
		order_accesses(hb(), o, r.all.at, r.all.n);
	vec_free(&r.all);
}

/* What the host knows when the call that issued this operation returns. */
void hb_returned(const struct order_op *o, const struct op *op, bool blocking)
{
	if (op->kind == OP_COPY)
		order_returned(hb(), order_copy(memory_of(op->copy.dst), memory_of(op->copy.src),
			!blocking), 0, o);
	else if (op->kind == OP_FILL)
		order_returned(hb(), order_fill(memory_of(op->fill.dst), !blocking), 0, o);
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
	release_known();
	guard_update();
}

void hb_device_waited(int device)
{
	order_host_waits_device(hb(), device, ORDER_PROMISED);
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
	release_known();
	guard_update();
}
