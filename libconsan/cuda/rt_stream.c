/* rt_stream: streams, events and capture of the runtime API. Graphs are in rt_graph.c. */
#include "internal.h"

#include <string.h>

/* ---- streams ---- */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
	return rt(stream_new((struct stream **)out, flags, priority));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
	return cudaStreamCreateWithPriority(out, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
	return cudaStreamCreateWithPriority(out, 0, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	return rt(stream_free((struct stream *)stream));
}

/* The stream; NULL: *error is set and recorded. */
static struct stream *check(cudaStream_t stream, const void *out, cudaError_t *error)
{
	struct stream *s = stream_of(stream);

	*error = rt(!s ? cudaErrorInvalidResourceHandle : out ? 0 : cudaErrorInvalidValue);
	return *error ? NULL : s;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	cudaError_t error;
	struct stream *s = check(stream, priority, &error);

	if (s)
		*priority = s->priority;
	return error;
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags)
{
	cudaError_t error;
	struct stream *s = check(stream, flags, &error);

	if (s)
		*flags = s->flags;
	return error;
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
	cudaError_t error;
	struct stream *s = check(stream, id, &error);

	if (s)
		*id = s->id ? s->id : (unsigned long long)(uintptr_t)stream;
	return error;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
	cudaError_t error;
	struct stream *s = check(stream, device, &error);

	if (s)
		*device = s->device;
	return error;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return rt(stream_sync(stream, false));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	return rt(stream_sync(stream, true));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	return rt(flags > cudaEventWaitExternal ? cudaErrorInvalidValue : stream_wait(stream, event, flags));
}

/* Stream attributes are hints (caches, priorities) and have no effect. */
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID a,
	const cudaLaunchAttributeValue *value)
{
	cudaError_t error;

	check(stream, value, &error);
	return error;
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID a,
	cudaLaunchAttributeValue *value)
{
	cudaError_t error;

	if (check(stream, value, &error))
		memset(value, 0, sizeof *value);
	return error;
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from)
{
	return rt(stream_of(to) && stream_of(from) ? 0 : cudaErrorInvalidResourceHandle);
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	return rt(cuda_event_new((struct cuda_event **)event, flags));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	return rt(cuda_event_free(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return rt(cuda_event_record(event, stream, false));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
	return rt(flags > cudaEventRecordExternal ? cudaErrorInvalidValue
		: cuda_event_record(event, stream, flags));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	return rt(cuda_event_sync(event, true));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return rt(cuda_event_sync(event, false));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return rt(cuda_event_elapsed(ms, start, end));
}

/* the versioned name of CUDA 12 */
cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return cudaEventElapsedTime(ms, start, end);
}

/* ---- capture ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	return rt((unsigned)mode > cudaStreamCaptureModeRelaxed ? cudaErrorInvalidValue
		: stream_capture_begin(stream, NULL, NULL, 0));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	struct graph *captured; /* graph NULL: into one that the program has */

	return rt(stream_capture_end(stream, graph ? (struct graph **)graph : &captured));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *state)
{
	return rt(stream_capture_state(stream, state, NULL, NULL, NULL, NULL));
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *state,
	unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **after,
	const cudaGraphEdgeData **edges, size_t *nafter)
{
	if (edges)
		*edges = NULL;
	return rt(stream_capture_state(stream, state, id, (struct graph **)graph,
		(const void *const **)after, nafter));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	static _Thread_local enum cudaStreamCaptureMode now;
	enum cudaStreamCaptureMode old = now;

	if (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed)
		return rt(cudaErrorInvalidValue);
	now = *mode;
	*mode = old;
	return cudaSuccess;
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
	const cudaGraphNode_t *after, const cudaGraphEdgeData *edge, size_t nafter,
	enum cudaStreamCaptureMode mode)
{
	struct graph *g = graph_of(graph);

	return rt(g && (unsigned)mode <= cudaStreamCaptureModeRelaxed ? stream_capture_begin(stream, g,
		(const void *const *)after, nafter) : cudaErrorInvalidValue);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
	const cudaGraphEdgeData *edge, size_t n, unsigned flags)
{
	return rt(stream_capture_depend(stream, (const void *const *)nodes, n,
		flags == cudaStreamSetCaptureDependencies));
}
