/* operation_calls: handlers of the driver's calls that copy and fill memory, make edges between
 * streams, or wait, for operations.c. A call counts when it has succeeded. Calls in a stream that is
 * captured become nodes of a graph, whose launch tells what they do (graph.c). */
#include "callback.h"
#include "operations.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* cuda.h maps these names to newer versions; here each one is meant. */
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamBatchMemOp
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync
#undef cuCtxSynchronize

#define AT(p) ((uint64_t)(uintptr_t)(p))
#define ARRAY NULL

static CUstream stream_or(CUstream s, CUstream none)
{
	return s ? s : none;
}

/* ---- copies and fills ---- */

static void copied(const struct inject_call *c, CUstream s, const struct operations_area *to,
	const struct operations_area *from, bool async)
{
	struct order_op *op;

	if (!c->succeeded || inject_capturing(s))
		return;
	op = operations_issue(s, c->name, NULL);
	order_returned(operations_order(), order_copy(operations_memory(to->addr),
		operations_memory(from->addr), async), 0, op);
	operations_copy(op, to, from);
}

static void copied_row(const struct inject_call *c, CUstream s, uint64_t to, uint64_t from, size_t bytes,
	bool async)
{
	const struct operations_area a = operations_row(to, bytes), b = operations_row(from, bytes);

	copied(c, s, &a, &b, async);
}

static void copied_3d(const struct inject_call *c, CUstream s, const CUDA_MEMCPY3D *p, bool async)
{
	struct operations_area to, from;

	operations_copy_areas(p, &to, &from);
	copied(c, s, &to, &from, async);
}

static CUDA_MEMCPY3D plane(const CUDA_MEMCPY2D *p)
{
	return (CUDA_MEMCPY3D){ .srcXInBytes = p->srcXInBytes, .srcY = p->srcY,
		.srcMemoryType = p->srcMemoryType, .srcHost = p->srcHost, .srcDevice = p->srcDevice,
		.srcPitch = p->srcPitch, .dstXInBytes = p->dstXInBytes, .dstY = p->dstY,
		.dstMemoryType = p->dstMemoryType, .dstHost = p->dstHost, .dstDevice = p->dstDevice,
		.dstPitch = p->dstPitch, .WidthInBytes = p->WidthInBytes, .Height = p->Height, .Depth = 1 };
}

static CUDA_MEMCPY3D as_3d(const void *p, bool peer)
{
	const CUDA_MEMCPY3D_PEER *q = p;

	if (!peer)
		return *(const CUDA_MEMCPY3D *)p;
	return (CUDA_MEMCPY3D){ .srcXInBytes = q->srcXInBytes, .srcY = q->srcY, .srcZ = q->srcZ,
		.srcMemoryType = q->srcMemoryType, .srcHost = q->srcHost, .srcDevice = q->srcDevice,
		.srcPitch = q->srcPitch, .srcHeight = q->srcHeight, .dstXInBytes = q->dstXInBytes,
		.dstY = q->dstY, .dstZ = q->dstZ, .dstMemoryType = q->dstMemoryType, .dstHost = q->dstHost,
		.dstDevice = q->dstDevice, .dstPitch = q->dstPitch, .dstHeight = q->dstHeight,
		.WidthInBytes = q->WidthInBytes, .Height = q->Height, .Depth = q->Depth };
}

#define IS_PEER(p) _Generic((p), const CUDA_MEMCPY3D_PEER *: true, default: false)

static void filled(const struct inject_call *c, CUstream s, const struct operations_area *at, bool async)
{
	struct order_op *op;

	if (!c->succeeded || inject_capturing(s))
		return;
	op = operations_issue(s, c->name, NULL);
	order_returned(operations_order(), order_fill(operations_memory(at->addr), async), 0, op);
	operations_fill(op, at);
}

static void filled_rows(const struct inject_call *c, CUstream s, uint64_t at, size_t pitch, size_t width,
	size_t height, bool async)
{
	const struct operations_area a = { at, height > 1 ? pitch : width, 0, width, height, 1 };

	filled(c, s, &a, async);
}

/* One handler for each version of a call. */
#define HANDLER(call, body) \
	static void on_##call(const struct inject_call *c) \
	{ \
		const call##_params *p = c->params; \
		body; \
	}
#define VERSIONS(call, suffix, body, body_of_thread) \
	HANDLER(call, body) HANDLER(call##suffix, body_of_thread)
#define OWN(none) stream_or(p->hStream, none)

#define COPY(call, to, from) VERSIONS(call, _ptds, \
	copied_row(c, CU_STREAM_LEGACY, AT(to), AT(from), p->ByteCount, false), \
	copied_row(c, CU_STREAM_PER_THREAD, AT(to), AT(from), p->ByteCount, false))
#define COPY_ASYNC(call, to, from) VERSIONS(call, _ptsz, \
	copied_row(c, OWN(CU_STREAM_LEGACY), AT(to), AT(from), p->ByteCount, true), \
	copied_row(c, OWN(CU_STREAM_PER_THREAD), AT(to), AT(from), p->ByteCount, true))
#define AS_2D(s, async) const CUDA_MEMCPY3D all = plane(p->pCopy); copied_3d(c, s, &all, async)
#define AS_3D(s, async) const CUDA_MEMCPY3D all = as_3d(p->pCopy, IS_PEER(p->pCopy)); \
	copied_3d(c, s, &all, async)
#define COPY_2D(call) VERSIONS(call, _ptds, AS_2D(CU_STREAM_LEGACY, false), \
	AS_2D(CU_STREAM_PER_THREAD, false))
#define COPY_2D_ASYNC(call) VERSIONS(call, _ptsz, AS_2D(OWN(CU_STREAM_LEGACY), true), \
	AS_2D(OWN(CU_STREAM_PER_THREAD), true))
#define COPY_3D(call) VERSIONS(call, _ptds, AS_3D(CU_STREAM_LEGACY, false), \
	AS_3D(CU_STREAM_PER_THREAD, false))
#define COPY_3D_ASYNC(call) VERSIONS(call, _ptsz, AS_3D(OWN(CU_STREAM_LEGACY), true), \
	AS_3D(OWN(CU_STREAM_PER_THREAD), true))
#define FILL(call, size) VERSIONS(call, _ptds, \
	filled_rows(c, CU_STREAM_LEGACY, AT(p->dstDevice), 0, p->N * size, 1, false), \
	filled_rows(c, CU_STREAM_PER_THREAD, AT(p->dstDevice), 0, p->N * size, 1, false))
#define FILL_ASYNC(call, size) VERSIONS(call, _ptsz, \
	filled_rows(c, OWN(CU_STREAM_LEGACY), AT(p->dstDevice), 0, p->N * size, 1, true), \
	filled_rows(c, OWN(CU_STREAM_PER_THREAD), AT(p->dstDevice), 0, p->N * size, 1, true))
#define FILL_2D(call, size) VERSIONS(call, _ptds, \
	filled_rows(c, CU_STREAM_LEGACY, AT(p->dstDevice), p->dstPitch, p->Width * size, p->Height, false), \
	filled_rows(c, CU_STREAM_PER_THREAD, AT(p->dstDevice), p->dstPitch, p->Width * size, p->Height, false))
#define FILL_2D_ASYNC(call, size) VERSIONS(call, _ptsz, \
	filled_rows(c, OWN(CU_STREAM_LEGACY), AT(p->dstDevice), p->dstPitch, p->Width * size, p->Height, true), \
	filled_rows(c, OWN(CU_STREAM_PER_THREAD), AT(p->dstDevice), p->dstPitch, p->Width * size, p->Height, true))
#include "operation_calls.def"
#undef COPY
#undef COPY_ASYNC
#undef COPY_2D
#undef COPY_2D_ASYNC
#undef COPY_3D
#undef COPY_3D_ASYNC
#undef FILL
#undef FILL_ASYNC
#undef FILL_2D
#undef FILL_2D_ASYNC

static void copied_apart(const struct inject_call *c, CUstream s, uint64_t to, uint64_t from, size_t bytes,
	bool during_call)
{
	const struct operations_area a = operations_row(to, bytes), b = operations_row(from, bytes);
	struct order_op *op;

	if (!c->succeeded || inject_capturing(s))
		return;
	op = operations_issue(s, c->name, NULL);
	order_returned(operations_order(), order_copy(operations_memory(to), operations_memory(from), true), 0, op);
	operations_copy_apart(s, op, c->name, &a, &b, during_call);
}

/* Each element of attrs is of the copies from its element of first on. */
struct batch {
	const CUdeviceptr *to, *from;
	const size_t *bytes;
	size_t n;
	const CUmemcpyAttributes *attrs;
	const size_t *first;
	size_t nattrs;
};

/* The copies of a batch have no order among themselves, which is not checked. */
static void batch(const struct inject_call *c, CUstream s, const struct batch *b)
{
	for (size_t k = 0, a = 0; c->succeeded && k < b->n; k++) {
		while (a + 1 < b->nattrs && b->first[a + 1] <= k)
			a++;
		if (!b->nattrs || b->attrs[a].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
				|| operations_memory(AT(b->from[k])) == ORDER_PAGEABLE)
			copied_row(c, s, AT(b->to[k]), AT(b->from[k]), b->bytes[k], true);
		else
			copied_apart(c, s, AT(b->to[k]), AT(b->from[k]), b->bytes[k],
				b->attrs[a].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL);
	}
}

#define BATCH(call, none) HANDLER(call, \
	batch(c, OWN(none), &(struct batch){ p->dsts, p->srcs, p->sizes, p->count, p->attrs, p->attrsIdxs, \
		p->numAttrs }))
BATCH(cuMemcpyBatchAsync, CU_STREAM_LEGACY)
BATCH(cuMemcpyBatchAsync_ptsz, CU_STREAM_PER_THREAD)
BATCH(cuMemcpyBatchAsync_v2, CU_STREAM_LEGACY)
BATCH(cuMemcpyBatchAsync_v2_ptsz, CU_STREAM_PER_THREAD)

/* Copies and fills whose bytes are not followed. */
static void not_followed(const struct inject_call *c, CUstream s)
{
	if (!c->succeeded || inject_capturing(s))
		return;
	operations_close(operations_open(operations_issue(s, c->name, NULL)));
	operations_not_followed(c->name);
}

#define NOT_FOLLOWED(call, none) HANDLER(call, not_followed(c, OWN(none)))
NOT_FOLLOWED(cuMemcpy3DBatchAsync, CU_STREAM_LEGACY)
NOT_FOLLOWED(cuMemcpy3DBatchAsync_ptsz, CU_STREAM_PER_THREAD)
NOT_FOLLOWED(cuMemcpy3DBatchAsync_v2, CU_STREAM_LEGACY)
NOT_FOLLOWED(cuMemcpy3DBatchAsync_v2_ptsz, CU_STREAM_PER_THREAD)
#undef NOT_FOLLOWED
#define NOT_FOLLOWED(call, none) HANDLER(call, not_followed(c, stream_or(p->stream, none)))
NOT_FOLLOWED(cuMemBatchDecompressAsync, CU_STREAM_LEGACY)
NOT_FOLLOWED(cuMemBatchDecompressAsync_ptsz, CU_STREAM_PER_THREAD)

/* ---- functions of the host ---- */

/* A function that a stream calls. What it accesses is not recorded, but it has its place in the stream, and
 * when it begins, the host knows what it waited for: it may set a flag for other threads. So ours is called
 * instead, and calls the program's. */
struct host_call {
	struct order_op *op;       /* a reference */
	CUhostFn function;         /* one of the two */
	CUstreamCallback callback;
	void *user;
};
static _Thread_local struct host_call *replaced; /* between the begin and the end of the driver's call */

static struct host_call take_call(void *user)
{
	const struct host_call call = *(struct host_call *)user;

	free(user);
	order_host_runs(operations_order(), call.op);
	order_op_put(operations_order(), call.op);
	return call;
}

static void CUDA_CB run_function(void *user)
{
	const struct host_call call = take_call(user);

	call.function(call.user);
}

static void CUDA_CB run_callback(CUstream s, CUresult r, void *user)
{
	const struct host_call call = take_call(user);

	call.callback(s, r, call.user);
}

/* function, callback, user: the call's arguments; one of the first two is NULL. */
static void host_function(const struct inject_call *c, CUstream s, CUhostFn *function,
	CUstreamCallback *callback, void **user)
{
	struct order_op *op;

	if (!c->enter) {
		if (!c->succeeded && replaced) {
			order_op_put(operations_order(), replaced->op);
			free(replaced);
		}
		replaced = NULL;
		return;
	}
	replaced = NULL;
	if (inject_capturing(s) || !*(function ? (void **)function : (void **)callback))
		return;
	op = operations_issue(s, c->name, NULL);
	replaced = base_alloc(sizeof *replaced);
	*replaced = (struct host_call){ order_op_get(operations_order(), op), function ? *function : NULL,
		callback ? *callback : NULL, *user };
	operations_close(operations_open(op));
	if (function)
		*function = run_function;
	else
		*callback = run_callback;
	*user = replaced;
}

/* The driver takes its arguments from these. */
#define FUNCTION host_function(c, s, (CUhostFn *)(uintptr_t)&p->fn, NULL, (void **)(uintptr_t)&p->userData)
#define CALLBACK host_function(c, s, NULL, (CUstreamCallback *)(uintptr_t)&p->callback, \
	(void **)(uintptr_t)&p->userData)
VERSIONS(cuLaunchHostFunc, _ptsz, CUstream s = OWN(CU_STREAM_LEGACY); FUNCTION,
	CUstream s = OWN(CU_STREAM_PER_THREAD); FUNCTION)
VERSIONS(cuStreamAddCallback, _ptsz, CUstream s = OWN(CU_STREAM_LEGACY); CALLBACK,
	CUstream s = OWN(CU_STREAM_PER_THREAD); CALLBACK)
#undef FUNCTION
#undef CALLBACK

/* ---- stream memory operations ---- */

static void value(const struct inject_call *c, CUstream s, uint64_t addr, unsigned bytes, bool write)
{
	if (c->succeeded && !inject_capturing(s))
		operations_value(operations_issue(s, c->name, NULL), addr, bytes, write);
}

#define VALUE(call, bytes, write) VERSIONS(call, _ptsz, \
	value(c, stream_or(p->stream, CU_STREAM_LEGACY), p->addr, bytes, write), \
	value(c, stream_or(p->stream, CU_STREAM_PER_THREAD), p->addr, bytes, write))
#define VALUES(VALUE) \
	VALUE(cuStreamWriteValue32, 4, true) VALUE(cuStreamWriteValue32_v2, 4, true) \
	VALUE(cuStreamWriteValue64, 8, true) VALUE(cuStreamWriteValue64_v2, 8, true) \
	VALUE(cuStreamWaitValue32, 4, false) VALUE(cuStreamWaitValue32_v2, 4, false) \
	VALUE(cuStreamWaitValue64, 8, false) VALUE(cuStreamWaitValue64_v2, 8, false)
VALUES(VALUE)
#undef VALUE

static void values(const struct inject_call *c, CUstream s, const CUstreamBatchMemOpParams *op, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		switch (op[k].operation) {
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
			value(c, s, op[k].writeValue.address, 4, true);
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			value(c, s, op[k].writeValue.address, 8, true);
			break;
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
			value(c, s, op[k].waitValue.address, 4, false);
			break;
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			value(c, s, op[k].waitValue.address, 8, false);
			break;
		default:
			break;
		}
}

#define BATCH_OF_VALUES(call) VERSIONS(call, _ptsz, \
	values(c, stream_or(p->stream, CU_STREAM_LEGACY), p->paramArray, p->count), \
	values(c, stream_or(p->stream, CU_STREAM_PER_THREAD), p->paramArray, p->count))
BATCH_OF_VALUES(cuStreamBatchMemOp)
BATCH_OF_VALUES(cuStreamBatchMemOp_v2)

/* ---- events ---- */

struct known_event {
	CUevent handle;
	struct order_event order;
	bool foreign;              /* other processes may record it */
};

static struct {
	pthread_mutex_t lock;
	VEC(struct known_event) at;
} events = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Under the lock. */
static struct known_event *event_of(CUevent e)
{
	for (size_t k = 0; k < events.at.n; k++)
		if (events.at.at[k].handle == e)
			return &events.at.at[k];
	return NULL;
}

static struct known_event *event_made(CUevent e)
{
	struct known_event *known = event_of(e);

	if (known)
		return known;
	vec_push(&events.at, ((struct known_event){ .handle = e }));
	return &events.at.at[events.at.n - 1];
}

/* A handle may have been that of an event which ended with its context. */
static void event_created(CUevent handle, bool foreign)
{
	struct known_event *e;

	pthread_mutex_lock(&events.lock);
	e = event_made(handle);
	order_event_free(&e->order);
	e->foreign = foreign;
	pthread_mutex_unlock(&events.lock);
}

/* It stands for more than what this process recorded in one stream. */
static void event_is_foreign(CUevent e)
{
	pthread_mutex_lock(&events.lock);
	event_made(e)->foreign = true;
	pthread_mutex_unlock(&events.lock);
}

static void on_event_destroyed(const struct inject_call *c)
{
	struct known_event *e;

	if (!c->enter)
		return;
	pthread_mutex_lock(&events.lock);
	e = event_of(((const cuEventDestroy_v2_params *)c->params)->hEvent);
	if (e) {
		order_event_free(&e->order);
		*e = events.at.at[--events.at.n];
	}
	pthread_mutex_unlock(&events.lock);
}

void operations_recorded(CUevent event, CUstream s)
{
	const order_line line = operations_line(s);
	struct known_event *e;

	pthread_mutex_lock(&events.lock);
	e = event_made(event);
	order_record(operations_order(), &e->order, line, 0);
	pthread_mutex_unlock(&events.lock);
}

static void recorded(const struct inject_call *c, CUevent e, CUstream s)
{
	if (c->succeeded && !inject_capturing(s))
		operations_recorded(e, s);
}

/* By other work than that of streams that are known: after all that was issued until now. */
static void waits_for_all(const struct inject_call *c, CUstream s)
{
	if (c->succeeded && !inject_capturing(s))
		operations_join_all(operations_line(s));
}

static bool was_recorded(CUevent event)
{
	const struct known_event *e;
	bool was;

	pthread_mutex_lock(&events.lock);
	e = event_of(event);
	was = e && e->order.clock;
	pthread_mutex_unlock(&events.lock);
	return was;
}

/* A wait for an event that was captured makes the stream a part of the capture. */
static void waits(const struct inject_call *c, CUstream s, CUevent event)
{
	struct consan_call call = { .rule = "CS1007", .kernel = "", .reason = "",
		.error = "the event was never recorded before this call" };
	order_line line;
	struct known_event *e;
	char name[64];
	uint32_t stack;
	bool edge;

	if (!c->succeeded || inject_capturing(s))
		return;
	line = operations_line(s);
	stack = was_recorded(event) ? 0 : operations_stack(false);
	pthread_mutex_lock(&events.lock);
	e = event_of(event);
	if (!e || e->foreign) {
		operations_join_all(line);
		pthread_mutex_unlock(&events.lock);
		return;
	}
	call.stack = stack;
	edge = order_wait(operations_order(), line, &e->order, call.stack);
	pthread_mutex_unlock(&events.lock);
	if (edge)
		return;
	inject_call_name(c->name, name, sizeof name);
	call.name = name;
	consan_call_failed(inject_session(), &call);
}

static void host_waited_event(const struct inject_call *c, CUevent event)
{
	struct known_event *e;

	if (!c->succeeded)
		return;
	pthread_mutex_lock(&events.lock);
	e = event_of(event);
	if (e && e->order.clock)
		order_host_waits_event(operations_order(), &e->order);
	pthread_mutex_unlock(&events.lock);
}

void operations_node_recorded(CUevent event, const struct order_op *op)
{
	pthread_mutex_lock(&events.lock);
	order_record_op(operations_order(), &event_made(event)->order, op, 0);
	pthread_mutex_unlock(&events.lock);
}

void operations_node_waits(struct order_op *op, CUevent event)
{
	const struct known_event *e;

	pthread_mutex_lock(&events.lock);
	e = event_of(event);
	if (e)
		order_wait_op(operations_order(), op, &e->order);
	pthread_mutex_unlock(&events.lock);
}

HANDLER(cuEventCreate, if (c->succeeded) event_created(*p->phEvent, false))
HANDLER(cuIpcOpenEventHandle, if (c->succeeded) event_created(*p->phEvent, true))
HANDLER(cuIpcGetEventHandle, if (c->succeeded) event_is_foreign(p->event))
/* all streams of a context */
HANDLER(cuCtxRecordEvent, if (c->succeeded) event_is_foreign(p->hEvent))
HANDLER(cuGreenCtxRecordEvent, if (c->succeeded) event_is_foreign(p->hEvent))
HANDLER(cuEventRecord, recorded(c, p->hEvent, OWN(CU_STREAM_LEGACY)))
HANDLER(cuEventRecord_ptsz, recorded(c, p->hEvent, OWN(CU_STREAM_PER_THREAD)))
HANDLER(cuEventRecordWithFlags, recorded(c, p->hEvent, OWN(CU_STREAM_LEGACY)))
HANDLER(cuEventRecordWithFlags_ptsz, recorded(c, p->hEvent, OWN(CU_STREAM_PER_THREAD)))
HANDLER(cuStreamWaitEvent, waits(c, OWN(CU_STREAM_LEGACY), p->hEvent))
HANDLER(cuStreamWaitEvent_ptsz, waits(c, OWN(CU_STREAM_PER_THREAD), p->hEvent))
HANDLER(cuEventSynchronize, host_waited_event(c, p->hEvent))
HANDLER(cuEventQuery, host_waited_event(c, p->hEvent))

/* All streams of a context wait. */
static void context_waits(const struct inject_call *c)
{
	if (c->succeeded)
		operations_join_all(ORDER_NO_LINE);
}

HANDLER(cuWaitExternalSemaphoresAsync, waits_for_all(c, stream_or(p->stream, CU_STREAM_LEGACY)))
HANDLER(cuWaitExternalSemaphoresAsync_ptsz, waits_for_all(c, stream_or(p->stream, CU_STREAM_PER_THREAD)))

/* ---- streams, waits of the host ---- */

static void stream_created(const struct inject_call *c)
{
	if (c->succeeded)
		operations_line(*((const cuStreamCreate_params *)c->params)->phStream);
}

static void stream_destroyed(const struct inject_call *c)
{
	if (c->enter)
		operations_stream_ended(((const cuStreamDestroy_v2_params *)c->params)->hStream);
}

static void host_waited(const struct inject_call *c, CUstream s)
{
	if (c->succeeded)
		order_host_waits(operations_order(), operations_line(s), ORDER_PROMISED);
}

HANDLER(cuStreamSynchronize, host_waited(c, OWN(CU_STREAM_LEGACY)))
HANDLER(cuStreamSynchronize_ptsz, host_waited(c, OWN(CU_STREAM_PER_THREAD)))
HANDLER(cuStreamQuery, host_waited(c, OWN(CU_STREAM_LEGACY)))
HANDLER(cuStreamQuery_ptsz, host_waited(c, OWN(CU_STREAM_PER_THREAD)))

static void device_waited(const struct inject_call *c, CUcontext of)
{
	if (c->succeeded)
		order_host_waits_device(operations_order(), operations_context_device(of), ORDER_PROMISED);
}

static void context_waited(const struct inject_call *c)
{
	device_waited(c, NULL);
}

HANDLER(cuCtxSynchronize_v2, device_waited(c, p->ctx))

/* A release that is not ordered by a stream: it waits for the devices. */
static void all_waited(const struct inject_call *c)
{
	if (c->succeeded)
		order_host_waits_device(operations_order(), -1, ORDER_PROMISED);
}

static void capture_ended(const struct inject_call *c)
{
	struct consan_call call = { .rule = "CS1008", .kernel = "", .reason = "",
		.error = "a stream that joined the capture has work that the stream which began it "
			"does not wait for" };
	char name[64];

	if (c->enter || *c->result != CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
		return;
	inject_call_name(c->name, name, sizeof name);
	call.name = name;
	call.stack = operations_stack(false);
	consan_call_failed(inject_session(), &call);
	inject_call_handled();
}

/* Names by NVTX */
static void on_stream_name(const void *handle, const char *line)
{
	const bool busy = inject_busy;

	if (!inject_session())
		return;
	inject_busy = true;
	order_line_name(operations_order(), operations_line((CUstream)(uintptr_t)handle), line);
	inject_busy = busy;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void *(*get)(uint32_t id));
int InitializeInjectionNvtx2(const void *(*get)(uint32_t id))
{
	return consan_nvtx(get, on_stream_name);
}

/* ---- memory ---- */

static void allocated(const struct inject_call *c, CUdeviceptr at, size_t bytes, CUstream s)
{
	if (c->succeeded && at && !inject_capturing(s))
		operations_alloc(operations_issue(s, c->name, NULL), at, bytes);
}

static void released(const struct inject_call *c, CUdeviceptr at, CUstream s)
{
	if (c->succeeded && at && !inject_capturing(s))
		operations_free(operations_issue(s, c->name, NULL), at);
}

static void shared_with_host(uint64_t at, size_t bytes)
{
	operations_shared_with_host();
	operations_forget(at, bytes);
}

/* *at: only if the call has succeeded */
#define OWNED(call, at, bytes) HANDLER(call, if (c->succeeded) operations_forget(AT(at), bytes))
OWNED(cuMemAlloc_v2, *p->dptr, p->bytesize)
OWNED(cuMemAllocPitch_v2, *p->dptr, *p->pPitch * p->Height)
OWNED(cuMemMap, p->ptr, p->size)
#define OWNED_BY_HOST(call, at) HANDLER(call, if (c->succeeded) shared_with_host(AT(at), p->bytesize))
OWNED_BY_HOST(cuMemAllocManaged, *p->dptr)
OWNED_BY_HOST(cuMemAllocHost_v2, *p->pp)
OWNED_BY_HOST(cuMemHostAlloc, *p->pp)
OWNED_BY_HOST(cuMemHostRegister_v2, p->p)
HANDLER(cuMemAllocAsync, if (c->succeeded)
	allocated(c, *p->dptr, p->bytesize, OWN(CU_STREAM_LEGACY)))
HANDLER(cuMemAllocAsync_ptsz, if (c->succeeded)
	allocated(c, *p->dptr, p->bytesize, OWN(CU_STREAM_PER_THREAD)))
HANDLER(cuMemAllocFromPoolAsync, if (c->succeeded)
	allocated(c, *p->dptr, p->bytesize, OWN(CU_STREAM_LEGACY)))
HANDLER(cuMemAllocFromPoolAsync_ptsz, if (c->succeeded)
	allocated(c, *p->dptr, p->bytesize, OWN(CU_STREAM_PER_THREAD)))
HANDLER(cuMemFreeAsync, released(c, p->dptr, OWN(CU_STREAM_LEGACY)))
HANDLER(cuMemFreeAsync_ptsz, released(c, p->dptr, OWN(CU_STREAM_PER_THREAD)))

/* ---- the table ---- */

#define BOTH(call, suffix) INJECT_HANDLER(call, on_##call) INJECT_HANDLER(call##suffix, on_##call##suffix)

const struct inject_handler inject_operation_handlers[] = {
#define COPY(call, to, from) BOTH(call, _ptds)
#define COPY_ASYNC(call, to, from) BOTH(call, _ptsz)
#define COPY_2D(call) BOTH(call, _ptds)
#define COPY_2D_ASYNC(call) BOTH(call, _ptsz)
#define COPY_3D(call) BOTH(call, _ptds)
#define COPY_3D_ASYNC(call) BOTH(call, _ptsz)
#define FILL(call, size) BOTH(call, _ptds)
#define FILL_ASYNC(call, size) BOTH(call, _ptsz)
#define FILL_2D(call, size) BOTH(call, _ptds)
#define FILL_2D_ASYNC(call, size) BOTH(call, _ptsz)
#include "operation_calls.def"
#define VALUE(call, bytes, write) BOTH(call, _ptsz)
	VALUES(VALUE)
	BOTH(cuMemcpyBatchAsync, _ptsz)
	BOTH(cuMemcpyBatchAsync_v2, _ptsz)
	BOTH(cuMemcpy3DBatchAsync, _ptsz)
	BOTH(cuMemcpy3DBatchAsync_v2, _ptsz)
	BOTH(cuMemBatchDecompressAsync, _ptsz)
	BOTH(cuLaunchHostFunc, _ptsz)
	BOTH(cuStreamAddCallback, _ptsz)
	BOTH(cuStreamBatchMemOp, _ptsz)
	BOTH(cuStreamBatchMemOp_v2, _ptsz)
	INJECT_HANDLER(cuEventCreate, on_cuEventCreate)
	INJECT_HANDLER(cuIpcOpenEventHandle, on_cuIpcOpenEventHandle)
	INJECT_HANDLER(cuIpcGetEventHandle, on_cuIpcGetEventHandle)
	INJECT_HANDLER(cuCtxRecordEvent, on_cuCtxRecordEvent)
	INJECT_HANDLER(cuGreenCtxRecordEvent, on_cuGreenCtxRecordEvent)
	INJECT_HANDLER(cuCtxWaitEvent, context_waits)
	INJECT_HANDLER(cuGreenCtxWaitEvent, context_waits)
	BOTH(cuWaitExternalSemaphoresAsync, _ptsz)
	INJECT_HANDLER(cuEventDestroy, on_event_destroyed)
	INJECT_HANDLER(cuEventDestroy_v2, on_event_destroyed)
	BOTH(cuEventRecord, _ptsz)
	BOTH(cuEventRecordWithFlags, _ptsz)
	BOTH(cuStreamWaitEvent, _ptsz)
	INJECT_HANDLER(cuEventSynchronize, on_cuEventSynchronize)
	INJECT_HANDLER(cuEventQuery, on_cuEventQuery)
	INJECT_HANDLER(cuStreamCreate, stream_created)
	INJECT_HANDLER(cuStreamCreateWithPriority, stream_created)
	INJECT_HANDLER(cuStreamDestroy, stream_destroyed)
	INJECT_HANDLER(cuStreamDestroy_v2, stream_destroyed)
	BOTH(cuStreamSynchronize, _ptsz)
	BOTH(cuStreamQuery, _ptsz)
	INJECT_HANDLER(cuCtxSynchronize, context_waited)
	INJECT_HANDLER(cuCtxSynchronize_v2, on_cuCtxSynchronize_v2)
	INJECT_HANDLER(cuStreamEndCapture, capture_ended)
	INJECT_HANDLER(cuStreamEndCapture_ptsz, capture_ended)
	INJECT_HANDLER(cuMemFree_v2, all_waited)
	INJECT_HANDLER(cuMemFreeHost, all_waited)
	INJECT_HANDLER(cuMemHostUnregister, all_waited)
	INJECT_HANDLER(cuMemAlloc_v2, on_cuMemAlloc_v2)
	INJECT_HANDLER(cuMemAllocManaged, on_cuMemAllocManaged)
	INJECT_HANDLER(cuMemAllocPitch_v2, on_cuMemAllocPitch_v2)
	INJECT_HANDLER(cuMemAllocHost_v2, on_cuMemAllocHost_v2)
	INJECT_HANDLER(cuMemHostAlloc, on_cuMemHostAlloc)
	INJECT_HANDLER(cuMemHostRegister_v2, on_cuMemHostRegister_v2)
	INJECT_HANDLER(cuMemMap, on_cuMemMap)
	BOTH(cuMemAllocAsync, _ptsz)
	BOTH(cuMemAllocFromPoolAsync, _ptsz)
	BOTH(cuMemFreeAsync, _ptsz)
	{ 0, NULL },
};
