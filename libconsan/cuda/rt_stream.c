/* rt_stream: streams, events, capture and graphs of the runtime API. */
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

	if (check(stream, device, &error))
		*device = 0;
	return error;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	struct stream *s = stream_of(stream);

	if (!s)
		return rt(cudaErrorInvalidResourceHandle);
	stream_host_waited();
	return rt(s->capture ? cudaErrorStreamCaptureUnsupported : device_ready());
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	return cudaStreamSynchronize(stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	return rt(stream_wait(stream, event));
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
	return rt(cuda_event_record(event, stream));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
	return rt(cuda_event_record(event, stream));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	return rt(cuda_event_query(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return rt(cuda_event_query(event));
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
	return rt(stream_capture_begin(stream, NULL));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	return rt(graph ? stream_capture_end(stream, (struct graph **)graph)
		: cudaErrorInvalidValue);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *state)
{
	return rt(stream_capture_state(stream, state, NULL, NULL));
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *state,
	unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **after,
	const cudaGraphEdgeData **edges, size_t *nafter)
{
	if (after)
		*after = NULL;
	if (edges)
		*edges = NULL;
	if (nafter)
		*nafter = 0;
	return rt(stream_capture_state(stream, state, id, (struct graph **)graph));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	static _Thread_local enum cudaStreamCaptureMode now;
	enum cudaStreamCaptureMode old = now;

	if (!mode)
		return rt(cudaErrorInvalidValue);
	now = *mode;
	*mode = old;
	return cudaSuccess;
}

/* ---- graphs ---- */

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
	int error = device_ready();

	if (error || !graph)
		return rt(error ? error : cudaErrorInvalidValue);
	*graph = (cudaGraph_t)graph_new();
	return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	struct graph *g = graph_of(graph);

	if (!g)
		return rt(cudaErrorInvalidValue);
	graph_free(g);
	return cudaSuccess;
}

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph)
{
	struct graph *g = graph_of(graph);

	if (!g || !clone)
		return rt(cudaErrorInvalidValue);
	*clone = (cudaGraph_t)graph_dup(g, false);
	return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
	return rt(graph_nodes(graph, (void **)nodes, n));
}

/* Takes ownership of the contents of op. */
static cudaError_t add(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
	size_t nafter, struct op *op)
{
	struct graph *g = graph_of(graph);

	if (!g || !node) {
		op_free(op);
		return rt(cudaErrorInvalidValue);
	}
	return rt(graph_add(g, op, (const void *const *)after, nafter, (struct node **)node));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
	const cudaGraphNode_t *after, size_t nafter)
{
	struct op op = { .kind = OP_EMPTY };

	return add(node, graph, after, nafter, &op);
}

static int kernel_op(const struct cudaKernelNodeParams *p, struct op *op)
{
	struct launch *l = &op->launch;
	int error = p ? func_find(p->func, &l->func) : cudaErrorInvalidValue;

	if (error)
		return error;
	memcpy(l->grid, &p->gridDim, sizeof l->grid);
	memcpy(l->block, &p->blockDim, sizeof l->block);
	l->shared = p->sharedMemBytes;
	error = launch_check(l);
	return error ? error : launch_pack(l, p->kernelParams, NULL, 0);
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
	const cudaGraphNode_t *after, size_t nafter, const struct cudaKernelNodeParams *p)
{
	struct op op = { .kind = OP_LAUNCH };
	int error = kernel_op(p, &op);

	if (!error)
		return add(node, graph, after, nafter, &op);
	launch_refused(p ? p->func : NULL, &op.launch, error);
	op_free(&op);
	return rt(error);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
	const cudaGraphNode_t *after, size_t nafter, const struct cudaMemcpy3DParms *p)
{
	struct op op = { .kind = OP_COPY };
	int error = copy_3d(p, &op.copy);

	if (!error)
		error = copy_check(&op.copy);
	return error ? rt(error) : add(node, graph, after, nafter, &op);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
	const cudaGraphNode_t *after, size_t nafter, void *dst, const void *src, size_t n,
	enum cudaMemcpyKind kind)
{
	struct op op = { .kind = OP_COPY, .copy = copy_line(dst, src, n, kind) };
	int error = copy_check(&op.copy);

	return error ? rt(error) : add(node, graph, after, nafter, &op);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
	const cudaGraphNode_t *after, size_t nafter, const struct cudaMemsetParams *p)
{
	struct op op = { .kind = OP_FILL };
	int error;

	if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
		return rt(cudaErrorInvalidValue);
	op.fill = (struct fill){ .dst = p->dst, .pitch = p->pitch, .value = p->value,
		.unit = p->elementSize, .width = p->width, .height = p->height, .depth = 1 };
	error = fill_check(&op.fill);
	return error ? rt(error) : add(node, graph, after, nafter, &op);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
	const cudaGraphNode_t *after, size_t nafter, const struct cudaHostNodeParams *p)
{
	struct op op = { .kind = OP_HOST };

	if (!p || !p->fn)
		return rt(cudaErrorInvalidValue);
	op.host.call = p->fn;
	op.host.user = p->userData;
	return add(node, graph, after, nafter, &op);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
	const cudaGraphNode_t *after, size_t nafter, cudaGraph_t child)
{
	struct op op = { .kind = OP_GRAPH };

	if (!graph_of(child))
		return rt(cudaErrorInvalidValue);
	op.graph = graph_dup(graph_of(child), false);
	return add(node, graph, after, nafter, &op);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	struct graph *g = graph_of(graph);

	if (!g || !exec)
		return rt(cudaErrorInvalidValue);
	*exec = (cudaGraphExec_t)graph_dup(g, true);
	return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
	unsigned long long flags)
{
	return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
	cudaGraphInstantiateParams *p)
{
	if (!p)
		return rt(cudaErrorInvalidValue);
	p->result_out = cudaGraphInstantiateSuccess;
	p->errNode_out = NULL;
	return cudaGraphInstantiate(exec, graph, p->flags);
}

/* Later launches run the operations that the source graph has now. */
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
	cudaGraphExecUpdateResultInfo *info)
{
	struct graph *to = graph_exec_of(exec), *from = graph_of(graph);

	if (!to || !from || !info)
		return rt(cudaErrorInvalidValue);
	memset(info, 0, sizeof *info);
	info->result = graph_replace(to, from) ? cudaGraphExecUpdateSuccess
		: cudaGraphExecUpdateErrorTopologyChanged;
	return rt(info->result == cudaGraphExecUpdateSuccess ? 0
		: cudaErrorGraphExecUpdateFailure);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	struct graph *g = graph_exec_of(exec);

	if (!g)
		return rt(cudaErrorInvalidValue);
	graph_free(g);
	return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
	return rt(graph_exec_of(exec) && stream_of(stream) ? device_ready() : cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	return rt(graph_launch(exec, stream));
}
