/* stream: operations, streams, events and capture. Each operation runs when it is issued, so
 * that a stream never has pending work. Issue order is a legal order of each program. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* Handles 0, 1 (cudaStreamLegacy) and 2 (cudaStreamPerThread). */
enum { DEFAULT_STREAMS = 3 };
static struct stream default_stream[DEFAULT_STREAMS];

static _Atomic unsigned long long ids = DEFAULT_STREAMS;

/* ---- operations ---- */

int op_run(const struct op *op, struct order_op *order)
{
	switch (op->kind) {
	case OP_EMPTY:
		return 0;
	case OP_LAUNCH:
		return launch_run(&op->launch, order);
	case OP_COPY:
		copy_run(&op->copy);
		hb_done(order, op);
		return 0;
	case OP_FILL:
		fill_run(&op->fill);
		hb_done(order, op);
		return 0;
	case OP_HOST:
		op->host.call(op->host.user);
		return 0;
	case OP_GRAPH:
		return graph_run(op->graph, order);
	}
	return cudaErrorUnknown;
}

struct op op_dup(const struct op *op)
{
	struct op copy = *op;

	if (op->kind == OP_LAUNCH) {
		size_t n = op->launch.func->info.param_bytes + 1;

		copy.launch.params = base_alloc(n);
		memcpy(copy.launch.params, op->launch.params, n);
	} else if (op->kind == OP_GRAPH) {
		copy.graph = graph_dup(op->graph, false);
	}
	return copy;
}

void op_free(struct op *op)
{
	if (op->kind == OP_LAUNCH)
		free(op->launch.params);
	else if (op->kind == OP_GRAPH)
		graph_free(op->graph);
	op->kind = OP_EMPTY;
}

/* ---- streams ---- */

int stream_new(struct stream **out, unsigned flags, int priority)
{
	struct stream *s;
	int error = device_ready();

	if (error)
		return error;
	if (!out || flags > 1)
		return cudaErrorInvalidValue;
	s = base_alloc(sizeof *s);
	*s = (struct stream){ .flags = flags, .priority = priority, .id = ids++ };
	hb_line(s);
	handle_put(s, HANDLE_STREAM, s);
	*out = s;
	return 0;
}

int stream_free(struct stream *s)
{
	if (!handle_drop(s, HANDLE_STREAM))
		return cudaErrorInvalidResourceHandle;
	hb_stream_closed(s);
	free(s);
	return 0;
}

struct stream *stream_of(const void *handle)
{
	if ((uintptr_t)handle < DEFAULT_STREAMS)
		return &default_stream[(uintptr_t)handle];
	return handle_get(handle, HANDLE_STREAM);
}

static _Atomic unsigned long long host_waits;

void stream_host_waited(void)
{
	host_waits++;
}

/* A programmatic launch may overlap only a launch that is the previous operation of its
 * stream, and only if the host has not waited since. */
static void limit_overlap(struct stream *s, struct op *op)
{
	if (op->kind == OP_LAUNCH) {
		op->launch.programmatic &= s->launched && s->waits == host_waits;
		op->launch.queue = (uintptr_t)s;
	} else if (s == &default_stream[0] || s == &default_stream[1]) {
		stream_host_waited(); /* cudaMemcpy() and the like return when they are done */
	}
	s->launched = op->kind == OP_LAUNCH;
	s->waits = host_waits;
}

static int run_now(struct stream *s, const struct op *op, bool blocking)
{
	struct order_op *order = hb_issue(s, op);
	int error;

	guard_suspend();
	error = op_run(op, order);
	hb_returned(order, op, blocking);
	order_op_put(hb(), order);
	guard_resume();
	return error;
}

int stream_issue(const void *handle, struct op *op, bool blocking)
{
	struct stream *s = stream_of(handle);
	int error = s ? device_ready() : cudaErrorInvalidResourceHandle;

	if (!error)
		limit_overlap(s, op);
	if (!error && s->capture)
		return graph_add(s->capture, op, (const void *const *)(s->capture->node.at
			+ s->capture->node.n - (s->capture->node.n > 0)), s->capture->node.n > 0, NULL);
	if (!error)
		error = run_now(s, op, blocking);
	op_free(op);
	return error;
}

int stream_wait(const void *handle, const void *event)
{
	struct stream *s = stream_of(handle);
	struct cuda_event *m = cuda_event_of(event);
	int error = device_ready();

	if (error)
		return error;
	if (!s || !m)
		return cudaErrorInvalidResourceHandle;
	s->launched = false;
	if (!m->capture && !s->capture)
		hb_wait(s, m);
	if (!m->capture || s->capture == m->capture)
		return 0;
	if (s->capture)
		return cudaErrorStreamCaptureMerge;
	s->capture = m->capture;
	s->joined = true;
	return 0;
}

/* ---- capture ---- */

static _Atomic int captures; /* in progress */

bool stream_any_capture(void)
{
	return captures > 0;
}

int stream_capture_begin(const void *handle, struct graph *into)
{
	struct stream *s = stream_of(handle);
	int error = device_ready();

	if (error)
		return error;
	if (!s)
		return cudaErrorInvalidResourceHandle;
	if (s->capture)
		return cudaErrorIllegalState;
	if ((uintptr_t)handle < 2) /* the legacy stream synchronizes with all others */
		return cudaErrorStreamCaptureUnsupported;
	s->capture = into ? into : graph_new();
	captures++;
	s->joined = s->launched = false;
	return 0;
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

int stream_capture_end(const void *handle, struct graph **out)
{
	struct stream *s = stream_of(handle);

	if (!s)
		return cudaErrorInvalidResourceHandle;
	if (!s->capture)
		return cudaErrorIllegalState;
	if (s->joined)
		return cudaErrorStreamCaptureUnmatched;
	*out = s->capture;
	captures--;
	handle_each(HANDLE_STREAM, leave, s->capture);
	leave(&default_stream[2], *out);
	return 0;
}

int stream_capture_state(const void *handle, enum cudaStreamCaptureStatus *state,
	unsigned long long *id, struct graph **graph)
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
	handle_put(m, HANDLE_EVENT, m);
	*out = m;
	return 0;
}

struct cuda_event *cuda_event_of(const void *handle)
{
	return handle_get(handle, HANDLE_EVENT);
}

int cuda_event_record(const void *handle, const void *stream)
{
	struct cuda_event *m = cuda_event_of(handle);
	struct stream *s = stream_of(stream);
	int error = device_ready();

	if (error)
		return error;
	if (!m || !s)
		return cudaErrorInvalidResourceHandle;
	s->launched = false;
	m->capture = s->capture;
	m->recorded = !s->capture;
	if (m->recorded)
		hb_record(m, s);
	m->at = progress_seconds();
	return 0;
}

int cuda_event_free(const void *handle)
{
	struct cuda_event *m = cuda_event_of(handle);

	if (!m)
		return cudaErrorInvalidResourceHandle;
	handle_drop(handle, HANDLE_EVENT);
	order_event_free(&m->order);
	free(m);
	return 0;
}

int cuda_event_query(const void *handle)
{
	struct cuda_event *m = cuda_event_of(handle);

	if (!m)
		return cudaErrorInvalidResourceHandle;
	stream_host_waited();
	if (!m->capture && !device_ready())
		hb_event_waited(m);
	return m->capture ? cudaErrorCapturedEvent : device_ready();
}

int cuda_event_elapsed(float *ms, const void *start, const void *end)
{
	struct cuda_event *a = cuda_event_of(start), *b = cuda_event_of(end);

	if (!ms)
		return cudaErrorInvalidValue;
	if (!a || !b || !a->recorded || !b->recorded || (a->flags | b->flags) & cudaEventDisableTiming)
		return cudaErrorInvalidResourceHandle;
	*ms = (float)((b->at - a->at) * 1e3);
	return device_ready();
}
