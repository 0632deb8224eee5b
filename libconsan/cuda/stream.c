/* stream: operations, streams, events and capture. */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

/* The legacy default stream of each device; and the per-thread ones of this thread, from their first use
 * on. */
static struct stream legacy[CONSAN_DEVICES];
static _Thread_local struct stream *per_thread[CONSAN_DEVICES];
_Thread_local int stream_calls_per_thread;

__attribute__((constructor)) static void number_default_streams(void)
{
	for (int d = 0; d < CONSAN_DEVICES; d++)
		legacy[d] = (struct stream){ .device = d, .refs = 1 };
}

enum { HANDLES = 3 }; /* 0, cudaStreamLegacy, cudaStreamPerThread */
static _Atomic unsigned long long ids = HANDLES;

/* ---- streams ---- */

static struct stream *new_stream(unsigned flags, int priority, bool of_thread)
{
	struct stream *s = base_alloc(sizeof *s);

	*s = (struct stream){ .device = device_now(), .flags = flags, .priority = priority, .id = ids++,
		.per_thread = of_thread, .refs = 1 };
	hb_line(s);
	handle_put(s, HANDLE_STREAM, s);
	return s;
}

int stream_new(struct stream **out, unsigned flags, int priority)
{
	int error = device_ready();

	if (error)
		return error;
	if (!out || flags > 1)
		return cudaErrorInvalidValue;
	*out = new_stream(flags, priority, false);
	green_stream(*out);
	return 0;
}

/* Its work goes on. */
int stream_free(struct stream *s)
{
	if (!handle_drop(s, HANDLE_STREAM))
		return cudaErrorInvalidResourceHandle;
	hb_stream_closed(s);
	vec_free(&s->front);
	pthread_mutex_lock(&queue.lock);
	stream_orphan(s);
	pthread_mutex_unlock(&queue.lock);
	return 0;
}

/* As other streams: it is ordered with the legacy default stream (CUDA Runtime API, "Stream
 * synchronization behavior"). NULL: there is no device. */
static struct stream *of_this_thread(void)
{
	struct stream **s = &per_thread[device_now()];

	if (!*s && !device_ready()) {
		*s = new_stream(cudaStreamDefault, 0, true);
		hb_thread();
	}
	return *s;
}

void stream_thread_ends(void)
{
	for (int d = 0; d < CONSAN_DEVICES; d++) {
		if (per_thread[d])
			stream_free(per_thread[d]);
		per_thread[d] = NULL;
	}
}

struct stream *stream_of(const void *handle)
{
	if (handle == cudaStreamPerThread || (!handle && stream_calls_per_thread))
		return of_this_thread();
	if (!handle || handle == cudaStreamLegacy)
		return stream_legacy(device_now());
	return handle_get(handle, HANDLE_STREAM);
}

struct stream *stream_legacy(int device)
{
	return &legacy[device];
}

static _Atomic unsigned long long host_waits;

/* A programmatic launch may overlap only a launch that is the previous operation of its
 * stream, and only if the host has not waited since. */
static void limit_overlap(struct stream *s, struct op *op)
{
	if (op->kind == OP_LAUNCH) {
		op->launch.programmatic &= s->launched && s->waits == host_waits;
		op->launch.queue = (uintptr_t)s;
	}
	s->launched = op->kind == OP_LAUNCH;
	s->waits = host_waits;
}

/* ---- into a graph ---- */

static void set_front(struct stream *s, struct node *n)
{
	s->front.n = 0;
	vec_push(&s->front, n);
}

int stream_capture_op(struct stream *s, struct op *op)
{
	struct node *n;
	int error = graph_add(s->capture, op, (const void *const *)s->front.at, s->front.n, &n);

	if (!error)
		set_front(s, n);
	return error;
}

/* ---- into the queue ---- */

/* When a copy or a fill returns: "API Synchronization Behavior" of the CUDA Runtime API. */
enum returns { RETURNS_AT_ONCE, RETURNS_STAGED, RETURNS_DONE };

static enum returns copy_returns(const struct copy *c, bool blocking)
{
	const bool from_host = c->src && mem_pageable(c->src), to_host = c->dst && mem_pageable(c->dst);

	if (!copy_bytes(c))
		return blocking ? RETURNS_DONE : RETURNS_AT_ONCE;
	if (to_host)
		return RETURNS_DONE;
	if (from_host)
		return blocking ? RETURNS_DONE : RETURNS_STAGED;
	return blocking && !(mem_on_device(c->src) && mem_on_device(c->dst)) ? RETURNS_DONE
		: RETURNS_AT_ONCE;
}

static enum returns op_returns(const struct op *op, bool blocking)
{
	if (op->kind == OP_COPY)
		return copy_returns(&op->copy, blocking);
	if (op->kind == OP_FILL && blocking)
		return mem_on_device(op->fill.dst) ? RETURNS_AT_ONCE : RETURNS_DONE;
	return RETURNS_AT_ONCE;
}

/* The event of a launch that is recorded when its blocks have begun: after what precedes the launch. The
 * caller holds the lock. */
static void add_started(struct cuda_event *e, struct stream *s, struct task *launch)
{
	struct op op = { .kind = OP_RECORD };
	struct task *t = queue_add_after(s, &op, NULL, NULL, 0);

	vec_push(&t->behind, task_get(launch));
	task_put(e->task);
	e->task = t;
	e->capture = NULL;
	e->recorded = true;
}

static int enqueue(struct stream *s, struct op *op, bool blocking)
{
	struct cuda_event *started = op->kind == OP_LAUNCH ? cuda_event_of(op->launch.started) : NULL;
	const enum returns returns = op_returns(op, blocking);
	struct caller *from = op->kind == OP_LAUNCH || op->kind == OP_GRAPH || op->kind == OP_WAIT
		? caller_here() : NULL;
	const enum op_kind kind = op->kind;
	struct op issued = *op; /* for hb_returned(): what it names, not what it owns */
	struct order_op *order;
	struct task *t;
	int error;

	hb_begin();
	if (started)
		hb_record(started, s);
	order = hb_issue(s, op);
	if (returns == RETURNS_STAGED)
		copy_stage(&op->copy);
	pthread_mutex_lock(&queue.lock);
	t = kind == OP_GRAPH ? graph_enqueue(op, s, from, order)
		: queue_add(s, op, from, NULL);
	if (kind != OP_GRAPH)
		t->order = order_op_get(hb(), order);
	if (started)
		add_started(started, s, t);
	caller_put(from);
	pthread_mutex_unlock(&queue.lock);
	error = engine_issued();
	if (returns == RETURNS_DONE) {
		host_waits++;
		error = engine_wait(t, WAIT_DONE);
	}
	hb_returned(order, &issued, blocking);
	guard_update();
	order_op_put(hb(), order);
	pthread_mutex_lock(&queue.lock);
	task_put(t);
	pthread_mutex_unlock(&queue.lock);
	return error;
}

int stream_issue(const void *handle, struct op *op, bool blocking)
{
	struct stream *s = stream_of(handle);
	int error = s ? device_ready() : cudaErrorInvalidResourceHandle;

	if (!error)
		limit_overlap(s, op);
	if (!error && s->capture)
		return stream_capture_op(s, op);
	if (!error)
		error = enqueue(s, op, blocking);
	op_free(op);
	return error;
}

struct callback {
	const void *stream;
	cudaStreamCallback_t rt;
	CUstreamCallback drv;
	void *user;
};

static void call_back(void *user)
{
	struct callback *c = user;
	const int error = device_ready();

	if (c->rt)
		c->rt((cudaStream_t)c->stream, (cudaError_t)error, c->user);
	else
		c->drv((CUstream)c->stream, (CUresult)error, c->user);
	free(c);
}

int stream_callback(const void *handle, cudaStreamCallback_t rt_call, CUstreamCallback drv_call,
	void *user)
{
	struct stream *s = stream_of(handle);
	struct op op = { .kind = OP_HOST };
	struct callback *c;

	if ((!rt_call && !drv_call) || !s)
		return s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
	if (s->capture)
		return cudaErrorStreamCaptureUnsupported;
	c = base_alloc(sizeof *c);
	*c = (struct callback){ handle, rt_call, drv_call, user };
	op.host.call = call_back;
	op.host.user = c;
	op.host.always = true;
	return stream_issue(handle, &op, false);
}

static void no_longer_overlaps(struct stream *s)
{
	s->launched = false;
}

/* Adds an empty task to the stream, after `extra` as well. Returns a reference. */
static struct task *add_mark(struct stream *s, enum op_kind kind, struct task *extra)
{
	struct op op = { .kind = kind };
	struct task *t;

	pthread_mutex_lock(&queue.lock);
	t = queue_add(s, &op, NULL, extra);
	pthread_mutex_unlock(&queue.lock);
	return t;
}

static void put(struct task *t)
{
	pthread_mutex_lock(&queue.lock);
	task_put(t);
	pthread_mutex_unlock(&queue.lock);
}

/* Nodes that both streams have added to the capture come before the next one of s. */
static void join_front(struct stream *s, const struct cuda_event *m)
{
	for (size_t i = 0; i < m->front.n; i++) {
		size_t k = 0;

		while (k < s->front.n && s->front.at[k] != m->front.at[i])
			k++;
		if (k == s->front.n)
			vec_push(&s->front, m->front.at[i]);
	}
}

int stream_wait(const void *handle, const void *event, bool external)
{
	struct stream *s = stream_of(handle);
	struct cuda_event *m = cuda_event_of(event);
	int error = device_ready();

	if (error)
		return error;
	if (!s || !m)
		return cudaErrorInvalidResourceHandle;
	if (external && s->capture) {
		struct op op = { .kind = OP_EVENT_WAIT, .event = event };

		return stream_issue(handle, &op, false);
	}
	no_longer_overlaps(s);
	if (ipc_of_others(m))
		return ipc_stream_wait(m, handle);
	if (!m->capture && !s->capture)
		hb_wait(s, m);
	if (!m->capture && m->task) {
		put(add_mark(s, OP_EMPTY, m->task));
		return engine_issued();
	}
	if (!m->capture)
		return 0;
	if (s->capture && s->capture != m->capture)
		return cudaErrorStreamCaptureMerge;
	if (!s->capture) {
		s->capture = m->capture;
		s->front.n = 0;
		s->joined = true;
	}
	join_front(s, m);
	return 0;
}

int stream_sync_all(int device)
{
	int error = device_ready();

	host_waits++;
	if (!error)
		error = engine_wait_all(device);
	if (!error)
		hb_device_waited(device);
	return error;
}

/* A wait for the legacy default stream is one for all blocking streams. */
int stream_sync(const void *handle, bool query)
{
	struct stream *s = stream_of(handle);
	struct task *t = NULL;
	int error = s ? device_ready() : cudaErrorInvalidResourceHandle;

	if (error)
		return error;
	if (s->capture)
		return cudaErrorStreamCaptureUnsupported;
	if (s == stream_legacy(s->device)) {
		t = add_mark(s, OP_EMPTY, NULL);
	} else {
		pthread_mutex_lock(&queue.lock);
		t = task_get(s->tail);
		pthread_mutex_unlock(&queue.lock);
	}
	error = t ? engine_wait(t, query ? WAIT_QUERY : WAIT_DONE) : 0;
	if (!error)
		error = device_broken(s->device); /* perhaps not the current one */
	if (!error) {
		host_waits++;
		hb_stream_waited(s);
	}
	put(t);
	return error;
}

/* ---- capture ---- */

static _Atomic int captures; /* in progress */

bool stream_any_capture(void)
{
	return captures > 0;
}

/* Is each of them a node of the graph? */
static bool are_nodes(const struct graph *g, const void *const *node, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!node_of(node[i]) || node_of(node[i])->graph != g)
			return false;
	return true;
}

int stream_capture_depend(const void *handle, const void *const *after, size_t n, bool set)
{
	struct stream *s = stream_of(handle);

	if (!s)
		return cudaErrorInvalidResourceHandle;
	if (!s->capture)
		return cudaErrorIllegalState;
	if ((n && !after) || !are_nodes(s->capture, after, n))
		return cudaErrorInvalidValue;
	if (set)
		s->front.n = 0;
	for (size_t i = 0; i < n; i++)
		vec_push(&s->front, node_of(after[i]));
	return 0;
}

int stream_capture_begin(const void *handle, struct graph *into, const void *const *after, size_t n)
{
	struct stream *s = stream_of(handle);
	int error = device_ready();

	if (error)
		return error;
	if (!s)
		return cudaErrorInvalidResourceHandle;
	if (s->capture)
		return cudaErrorIllegalState;
	if (s == stream_legacy(s->device)) /* it stream synchronizes with all others */
		return cudaErrorStreamCaptureUnsupported;
	if (n && (!after || !into || !are_nodes(into, after, n)))
		return cudaErrorInvalidValue;
	s->capture = into ? into : graph_new();
	captures++;
	s->joined = s->launched = false;
	return stream_capture_depend(handle, after, n, true);
}

/* When the stream that began a capture ends it, the streams that joined it leave it. */
static void leave(void *value, void *graph)
{
	struct stream *s = value;

	if (s->capture == graph) {
		s->capture = NULL;
		s->joined = s->launched = false;
	}
}

/* ---- joins of a capture ---- */

struct unjoined { const struct stream *origin; bool any; };

/* Does the stream that began the capture come after all that this one has captured? */
static void check_join(void *value, void *user)
{
	struct stream *s = value;
	struct unjoined *u = user;

	for (size_t i = 0; i < s->front.n && s->joined && s->capture == u->origin->capture; i++)
		u->any |= !graph_covers(s->capture, u->origin->front.at, u->origin->front.n, s->front.at[i]);
}

static bool all_joined(struct stream *origin)
{
	struct consan_call call = { .rule = "CS1008", .name = "cudaStreamEndCapture", .kernel = "",
		.error = "cudaErrorStreamCaptureUnjoined: a stream of the capture has work that the "
		"stream which began it does not wait for", .reason = "" };
	struct unjoined u = { origin, false };

	handle_each(HANDLE_STREAM, check_join, &u);
	if (!u.any)
		return true;
	call.stack = consan_host_stack(&call.name);
	consan_call_failed(device_session(), &call);
	return false;
}

int stream_capture_end(const void *handle, struct graph **out)
{
	struct stream *s = stream_of(handle);
	bool joined;

	if (!s)
		return cudaErrorInvalidResourceHandle;
	if (!s->capture)
		return cudaErrorIllegalState;
	if (s->joined)
		return cudaErrorStreamCaptureUnmatched;
	joined = all_joined(s);
	*out = s->capture;
	captures--;
	handle_each(HANDLE_STREAM, leave, s->capture);
	if (!joined)
		*out = NULL;
	return joined ? 0 : cudaErrorStreamCaptureUnjoined;
}

int stream_capture_state(const void *handle, enum cudaStreamCaptureStatus *state,
	unsigned long long *id, struct graph **graph, const void *const **after, size_t *nafter)
{
	struct stream *s = stream_of(handle);

	if (!s)
		return cudaErrorInvalidResourceHandle;
	if (!state)
		return cudaErrorInvalidValue;
	*state = s->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
	if (id && s->capture)
		*id = s->capture->id;
	if (graph)
		*graph = s->capture;
	if (after)
		*after = s->capture ? (const void *const *)s->front.at : NULL;
	if (nafter)
		*nafter = s->capture ? s->front.n : 0;
	return 0;
}

/* ---- events ---- */

int cuda_event_new(struct cuda_event **out, unsigned flags)
{
	struct cuda_event *m;
	int error = device_ready();

	if (error)
		return error;
	if (!out || flags > 7)
		return cudaErrorInvalidValue;
	m = base_alloc(sizeof *m);
	m->flags = flags;
	m->device = device_now();
	if (flags & cudaEventInterprocess && (error = ipc_new_event(m))) {
		free(m);
		return error;
	}
	handle_put(m, HANDLE_EVENT, m);
	*out = m;
	return 0;
}

struct cuda_event *cuda_event_of(const void *handle)
{
	return handle_get(handle, HANDLE_EVENT);
}

int cuda_event_record(const void *handle, const void *stream, bool external)
{
	struct cuda_event *m = cuda_event_of(handle);
	struct stream *s = stream_of(stream);
	int error = device_ready();

	if (error)
		return error;
	if (!m || !s || m->device != s->device)
		return cudaErrorInvalidResourceHandle;
	if (external && s->capture) {
		struct op op = { .kind = OP_EVENT_RECORD, .event = handle };

		return stream_issue(stream, &op, false);
	}
	no_longer_overlaps(s);
	m->capture = s->capture;
	m->recorded = !s->capture;
	m->front.n = 0;
	for (size_t i = 0; s->capture && i < s->front.n; i++)
		vec_push(&m->front, s->front.at[i]);
	if (s->capture)
		return 0;
	hb_record(m, s);
	put(m->task);
	m->task = add_mark(s, OP_RECORD, NULL);
	return m->shared ? ipc_record(m, stream) : engine_issued();
}

int cuda_event_free(const void *handle)
{
	struct cuda_event *m = cuda_event_of(handle);

	if (!m)
		return cudaErrorInvalidResourceHandle;
	handle_drop(handle, HANDLE_EVENT);
	put(m->task);
	order_event_free(&m->order);
	vec_free(&m->front);
	ipc_free_event(m);
	free(m);
	return 0;
}

int cuda_event_sync(const void *handle, bool query)
{
	struct cuda_event *m = cuda_event_of(handle);
	int error;

	if (!m)
		return cudaErrorInvalidResourceHandle;
	if (m->capture)
		return cudaErrorCapturedEvent;
	error = device_ready();
	if (!error && ipc_of_others(m))
		return ipc_sync(m, query);
	if (error || !m->task)
		return error;
	error = engine_wait(m->task, query ? WAIT_QUERY : WAIT_DONE);
	if (!error)
		error = device_broken(m->device);
	if (!error) {
		host_waits++;
		hb_event_waited(m);
	}
	return error;
}

int cuda_event_elapsed(float *ms, const void *start, const void *end)
{
	struct cuda_event *a = cuda_event_of(start), *b = cuda_event_of(end);
	int error;

	if (!ms)
		return cudaErrorInvalidValue;
	if (!a || !b || a->device != b->device || !a->recorded || !b->recorded 
			|| (a->flags | b->flags) & cudaEventDisableTiming)
		return cudaErrorInvalidResourceHandle;
	error = cuda_event_sync(start, true);
	if (!error)
		error = cuda_event_sync(end, true);
	if (!error)
		*ms = (float)((b->task->done_at - a->task->done_at) * 1e3);
	return error;
}
