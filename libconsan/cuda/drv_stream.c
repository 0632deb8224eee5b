/* drv_stream: streams, events, capture and graphs of the driver API. */
#include "internal.h"

#include <string.h>

static CUresult after_ready(int error)
{
	int first = drv_ready();

	return drv(first ? first : error);
}

/* ---- streams ---- */

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority)
{
	int error = drv_ready();

	return drv(error ? error : stream_new((struct stream **)out, flags, priority));
}

CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
	return cuStreamCreateWithPriority(out, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	return after_ready(stream_free((struct stream *)stream));
}

CUresult cuStreamSynchronize(CUstream stream)
{
	return after_ready(stream_sync(stream, false));
}

CUresult cuStreamQuery(CUstream stream)
{
	return after_ready(stream_sync(stream, true));
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	return after_ready(flags > CU_EVENT_WAIT_EXTERNAL ? cudaErrorInvalidValue
		: stream_wait(stream, event, flags));
}

/* The stream; NULL: *error is set. */
static struct stream *known(CUstream stream, const void *out, CUresult *error)
{
	struct stream *s = stream_of(stream);

	*error = !s ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	return *error ? NULL : s;
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	CUresult error;
	struct stream *s = known(stream, priority, &error);

	if (s)
		*priority = s->priority;
	return error;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
	CUresult error;
	struct stream *s = known(stream, flags, &error);

	if (s)
		*flags = s->flags;
	return error;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
	CUresult error;
	struct stream *s = known(stream, id, &error);

	if (s)
		*id = s->id ? s->id : (unsigned long long)(uintptr_t)stream;
	return error;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice *device)
{
	CUresult error;
	struct stream *s = known(stream, device, &error);

	if (s)
		*device = s->device;
	return error;
}

/* Stream attributes are hints (caches, priorities) and have no effect. */
CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID a, const CUstreamAttrValue *value)
{
	CUresult error;

	known(stream, value, &error);
	return error;
}

CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID a, CUstreamAttrValue *value)
{
	CUresult error;

	if (known(stream, value, &error))
		memset(value, 0, sizeof *value);
	return error;
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from)
{
	return stream_of(to) && stream_of(from) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	struct stream *s = stream_of(stream);

	if (!s || !context)
		return s ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	*context = (CUcontext)(cuda_context_now() && device_now() == s->device ? cuda_context_now()
		: cuda_context_primary(s->device));
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
	const struct stream *s = stream_of(stream);

	if (green)
		*green = s ? (CUgreenCtx)s->green : NULL;
	return cuStreamGetCtx(stream, context);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback call, void *user, unsigned flags)
{
	return after_ready(flags ? cudaErrorInvalidValue : stream_callback(stream, NULL, call, user));
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr at, size_t n, unsigned flags)
{
	return after_ready(stream_of(stream) ? mem_attach((void *)at, n, flags) : cudaErrorInvalidResourceHandle);
}

/* ---- events ---- */

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
	int error = drv_ready();

	return drv(error ? error : cuda_event_new((struct cuda_event **)event, flags));
}

CUresult cuEventDestroy_v2(CUevent event)
{
	return after_ready(cuda_event_free(event));
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return after_ready(cuda_event_record(event, stream, false));
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
	return after_ready(flags > CU_EVENT_RECORD_EXTERNAL ? cudaErrorInvalidValue
		: cuda_event_record(event, stream, flags));
}

CUresult cuEventQuery(CUevent event)
{
	return after_ready(cuda_event_sync(event, true));
}

CUresult cuEventSynchronize(CUevent event)
{
	return after_ready(cuda_event_sync(event, false));
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	return after_ready(cuda_event_elapsed(ms, start, end));
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	return cuEventElapsedTime_v2(ms, start, end);
}

/* ---- capture ---- */

static bool capture_mode(CUstreamCaptureMode mode)
{
	return (unsigned)mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	return after_ready(capture_mode(mode) ? stream_capture_begin(stream, NULL, NULL, 0)
		: cudaErrorInvalidValue);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	struct graph *captured; /* graph NULL: into one that the program has */

	return after_ready(stream_capture_end(stream, graph ? (struct graph **)graph : &captured));
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *state)
{
	return drv(stream_capture_state(stream, (enum cudaStreamCaptureStatus *)state, NULL, NULL,
		NULL, NULL));
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *state, cuuint64_t *id,
	CUgraph *graph, const CUgraphNode **after, const CUgraphEdgeData **edges, size_t *nafter)
{
	unsigned long long number = 0;
	int error = stream_capture_state(stream, (enum cudaStreamCaptureStatus *)state, &number,
		(struct graph **)graph, (const void *const **)after, nafter);

	if (id)
		*id = number;
	if (edges)
		*edges = NULL;
	return drv(error);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *state, cuuint64_t *id,
	CUgraph *graph, const CUgraphNode **after, size_t *nafter)
{
	return cuStreamGetCaptureInfo_v3(stream, state, id, graph, after, NULL, nafter);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *state, cuuint64_t *id)
{
	return cuStreamGetCaptureInfo_v3(stream, state, id, NULL, NULL, NULL, NULL);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	static _Thread_local CUstreamCaptureMode now;
	CUstreamCaptureMode old = now;

	if (!mode || !capture_mode(*mode))
		return CUDA_ERROR_INVALID_VALUE;
	now = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *after,
	const CUgraphEdgeData *edge, size_t nafter, CUstreamCaptureMode mode)
{
	struct graph *g = graph_of(graph);

	return after_ready(g && capture_mode(mode) ? stream_capture_begin(stream, g,
		(const void *const *)after, nafter) : cudaErrorInvalidValue);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *nodes,
	const CUgraphEdgeData *edge, size_t n, unsigned flags)
{
	return after_ready(flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES ? cudaErrorInvalidValue
		: stream_capture_depend(stream, (const void *const *)nodes, n, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes, size_t n, unsigned flags)
{
	return cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, n, flags);
}

/* ---- values in memory, in the order of the stream ---- */

static int issue_value(CUstream stream, enum op_kind kind, CUdeviceptr at, uint64_t value,
	unsigned bytes, unsigned condition)
{
	struct op op = { .kind = kind, .value = { (void *)at, value, bytes, condition } };
	int error = drv_ready();

	if (!error && !stream_of(stream))
		error = cudaErrorInvalidResourceHandle;
	if (!error)
		error = value_check(&op.value);
	return error ? error : stream_issue(stream, &op, false);
}

static int issue_write(CUstream stream, CUdeviceptr at, uint64_t value, unsigned bytes, unsigned flags)
{
	return flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER ? cudaErrorInvalidValue
		: issue_value(stream, OP_WRITE, at, value, bytes, 0);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr to, cuuint32_t value, unsigned flags)
{
	return drv(issue_write(stream, to, value, 4, flags));
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr to, cuuint64_t value, unsigned flags)
{
	return drv(issue_write(stream, to, value, 8, flags));
}

/* Without the flag that flushes remote writes: there are none. */
static unsigned condition_of(unsigned flags)
{
	return flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH;
}

static int issue_wait(CUstream stream, CUdeviceptr at, uint64_t value, unsigned bytes, unsigned flags)
{
	if (condition_of(flags) > CU_STREAM_WAIT_VALUE_NOR)
		return cudaErrorInvalidValue;
	return issue_value(stream, OP_WAIT, at, value, bytes, condition_of(flags));
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags)
{
	return drv(issue_wait(stream, at, value, 4, flags));
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags)
{
	return drv(issue_wait(stream, at, value, 8, flags));
}

static int issue_one(CUstream stream, const CUstreamBatchMemOpParams *p)
{
	switch (p->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		return issue_wait(stream, p->waitValue.address, p->waitValue.value, 4, p->waitValue.flags);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return issue_wait(stream, p->waitValue.address, p->waitValue.value64, 8,
			p->waitValue.flags);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return issue_write(stream, p->writeValue.address, p->writeValue.value, 4,
			p->writeValue.flags);
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return issue_write(stream, p->writeValue.address, p->writeValue.value64, 8,
			p->writeValue.flags);
	case CU_STREAM_MEM_OP_BARRIER: /* they are in order */
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return 0;
	default:
		return cudaErrorInvalidValue;
	}
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned n, CUstreamBatchMemOpParams *list, unsigned flags)
{
	int error = list && n <= 256 && !flags ? drv_ready() : cudaErrorInvalidValue;

	for (unsigned i = 0; i < n && !error; i++)
		error = issue_one(stream, &list[i]);
	return drv(error);
}

/* ---- graphs ---- */

CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
	int error = graph && !flags ? drv_ready() : cudaErrorInvalidValue;

	if (!error)
		*graph = (CUgraph)graph_new();
	return drv(error);
}

CUresult cuGraphDestroy(CUgraph graph)
{
	struct graph *g = graph_of(graph);

	if (!g)
		return CUDA_ERROR_INVALID_VALUE;
	graph_free(g);
	return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
	struct graph *g = graph_of(graph);

	if (!g || !clone)
		return CUDA_ERROR_INVALID_VALUE;
	*clone = (CUgraph)graph_dup(g, false);
	return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	return drv(graph_nodes(graph, (void **)nodes, n));
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	return drv((int)cudaGraphInstantiate((cudaGraphExec_t *)exec, graph, flags));
}

_Static_assert(sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == sizeof(cudaGraphInstantiateParams)
	&& (int)CUDA_GRAPH_INSTANTIATE_ERROR == (int)cudaGraphInstantiateError, "both APIs have the same layout");

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
	CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
	return drv((int)cudaGraphInstantiateWithParams((cudaGraphExec_t *)exec, graph,
		(cudaGraphInstantiateParams *)p));
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
	const struct graph *g = graph_exec_of(exec);

	if (!g || !flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = g->flags;
	return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	struct graph *to = graph_exec_of(exec), *from = graph_of(graph);

	if (!to || !from || !info)
		return CUDA_ERROR_INVALID_VALUE;
	memset(info, 0, sizeof *info);
	if (graph_replace(to, from))
		return CUDA_SUCCESS;
	info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	return drv((int)cudaGraphUpload(exec, stream));
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	return after_ready(graph_launch(exec, stream));
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	struct graph *g = graph_exec_of(exec);

	if (!g)
		return CUDA_ERROR_INVALID_VALUE;
	graph_free(g);
	return CUDA_SUCCESS;
}

/* ---- what graphs hold ---- */

CUresult cuUserObjectCreate(CUuserObject *object, void *user, CUhostFn destroy, unsigned count,
	unsigned flags)
{
	return drv(user_object_new((struct user_object **)object, user, destroy, count));
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned count)
{
	return drv(user_object_count(object, count));
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned count)
{
	return drv(user_object_count(object, -(long)count));
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags)
{
	struct graph *g = graph_of(graph);

	return drv(g ? graph_hold(g, object, count, flags & CU_GRAPH_USER_OBJECT_MOVE)
		: cudaErrorInvalidValue);
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count)
{
	struct graph *g = graph_of(graph);

	return drv(g ? graph_drop(g, object, count) : cudaErrorInvalidValue);
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute a, void *value)
{
	return drv(graph_memory_attribute(device, (int)a, value, false));
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute a, void *value)
{
	return drv(graph_memory_attribute(device, (int)a, value, true));
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	return drv(device_check(device));
}
