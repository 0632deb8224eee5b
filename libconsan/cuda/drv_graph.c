/* drv_graph: nodes and edges of graphs in the driver API. Handles and most structs are those of the
 * runtime API, which has the code. */
#include "internal.h"

#define NODE(n) ((cudaGraphNode_t *)(n))
#define AFTER(n) ((const cudaGraphNode_t *)(n))

/* Evaluates the call of the runtime API unless the driver is not ready. */
#define RUNTIME(expression) (drv_ready() ? drv(drv_ready()) : drv((int)(expression)))

/* ---- nodes ---- */

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n)
{
	return RUNTIME(cudaGraphAddEmptyNode(NODE(node), g, AFTER(after), n));
}

/* Parameters as one block are refused. */
static CUresult kernel_params(const CUDA_KERNEL_NODE_PARAMS *p, struct cudaKernelNodeParams *to)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->extra && !p->kernelParams) {
		remark_unsupported("a kernel node with `extra' parameters");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	*to = (struct cudaKernelNodeParams){ .func = p->func ? (void *)p->func : (void *)p->kern,
		.gridDim = { p->gridDimX, p->gridDimY, p->gridDimZ },
		.blockDim = { p->blockDimX, p->blockDimY, p->blockDimZ },
		.sharedMemBytes = p->sharedMemBytes, .kernelParams = p->kernelParams };
	return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n,
	const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct cudaKernelNodeParams k;
	CUresult error = kernel_params(p, &k);

	return error ? error : RUNTIME(cudaGraphAddKernelNode(NODE(node), g, AFTER(after), n, &k));
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct cudaKernelNodeParams k;
	CUresult error = kernel_params(p, &k);

	return error ? error : RUNTIME(cudaGraphKernelNodeSetParams((cudaGraphNode_t)node, &k));
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
	const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct cudaKernelNodeParams k;
	CUresult error = kernel_params(p, &k);

	return error ? error : RUNTIME(cudaGraphExecKernelNodeSetParams(exec, (cudaGraphNode_t)node, &k));
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *p)
{
	struct cudaKernelNodeParams k;
	CUresult error = RUNTIME(p ? cudaGraphKernelNodeGetParams((cudaGraphNode_t)node, &k)
		: cudaErrorInvalidValue);

	if (error)
		return error;
	*p = (CUDA_KERNEL_NODE_PARAMS){ .func = (CUfunction)k.func, .kernelParams = k.kernelParams,
		.gridDimX = k.gridDim.x, .gridDimY = k.gridDim.y, .gridDimZ = k.gridDim.z,
		.blockDimX = k.blockDim.x, .blockDimY = k.blockDim.y, .blockDimZ = k.blockDim.z,
		.sharedMemBytes = k.sharedMemBytes };
	return CUDA_SUCCESS;
}

static int copy_op(const CUDA_MEMCPY3D *p, struct op *op)
{
	int error = drv_ready();

	*op = (struct op){ .kind = OP_COPY };
	if (!error)
		error = p ? copy_3d_driver(p, &op->copy) : cudaErrorInvalidValue;
	return error ? error : copy_check(&op->copy);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n,
	const CUDA_MEMCPY3D *p, CUcontext context)
{
	struct op op;
	int error = graph_of(g) && node ? copy_op(p, &op) : cudaErrorInvalidValue;

	return drv(error ? error : graph_add(graph_of(g), &op, (const void *const *)after, n,
		(struct node **)node));
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *p,
	CUcontext context)
{
	struct node *n = graph_exec_node(exec, node);
	struct op op;
	int error = n ? copy_op(p, &op) : cudaErrorInvalidValue;

	return drv(error ? error : node_set(n, &op));
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *p)
{
	struct op op;
	int error = node_of(node) ? copy_op(p, &op) : cudaErrorInvalidValue;

	return drv(error ? error : node_set(node_of(node), &op));
}

static CUresult fill_params(const CUDA_MEMSET_NODE_PARAMS *p, struct cudaMemsetParams *to)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	*to = (struct cudaMemsetParams){ .dst = (void *)p->dst, .pitch = p->pitch, .value = p->value,
		.elementSize = p->elementSize, .width = p->width, .height = p->height };
	return CUDA_SUCCESS;
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n,
	const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context)
{
	struct cudaMemsetParams f;
	CUresult error = fill_params(p, &f);

	return error ? error : RUNTIME(cudaGraphAddMemsetNode(NODE(node), g, AFTER(after), n, &f));
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p)
{
	struct cudaMemsetParams f;
	CUresult error = fill_params(p, &f);

	return error ? error : RUNTIME(cudaGraphMemsetNodeSetParams((cudaGraphNode_t)node, &f));
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p,
	CUcontext context)
{
	struct cudaMemsetParams f;
	CUresult error = fill_params(p, &f);

	return error ? error : RUNTIME(cudaGraphExecMemsetNodeSetParams(exec, (cudaGraphNode_t)node, &f));
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *p)
{
	struct cudaMemsetParams f;
	CUresult error = RUNTIME(p ? cudaGraphMemsetNodeGetParams((cudaGraphNode_t)node, &f)
		: cudaErrorInvalidValue);

	if (!error)
		*p = (CUDA_MEMSET_NODE_PARAMS){ .dst = (CUdeviceptr)f.dst, .pitch = f.pitch,
			.value = f.value, .elementSize = f.elementSize, .width = f.width,
			.height = f.height };
	return error;
}

_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS), "one layout");

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n,
	const CUDA_HOST_NODE_PARAMS *p)
{
	return RUNTIME(cudaGraphAddHostNode(NODE(node), g, AFTER(after), n,
		(const struct cudaHostNodeParams *)p));
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *p)
{
	return RUNTIME(cudaGraphHostNodeGetParams((cudaGraphNode_t)node, (struct cudaHostNodeParams *)p));
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p)
{
	return RUNTIME(cudaGraphHostNodeSetParams((cudaGraphNode_t)node,
		(const struct cudaHostNodeParams *)p));
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p)
{
	return RUNTIME(cudaGraphExecHostNodeSetParams(exec, (cudaGraphNode_t)node,
		(const struct cudaHostNodeParams *)p));
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n,
	CUgraph child)
{
	return RUNTIME(cudaGraphAddChildGraphNode(NODE(node), g, AFTER(after), n, child));
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *g)
{
	return RUNTIME(cudaGraphChildGraphNodeGetGraph((cudaGraphNode_t)node, g));
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child)
{
	return RUNTIME(cudaGraphExecChildGraphNodeSetParams(exec, (cudaGraphNode_t)node, child));
}

#define EVENT_NODE(name) \
	CUresult cuGraphAdd##name##Node(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n, \
		CUevent event) \
	{ \
		return RUNTIME(cudaGraphAdd##name##Node(NODE(node), g, AFTER(after), n, event)); \
	} \
	CUresult cuGraph##name##NodeGetEvent(CUgraphNode node, CUevent *event) \
	{ \
		return RUNTIME(cudaGraph##name##NodeGetEvent((cudaGraphNode_t)node, event)); \
	} \
	CUresult cuGraph##name##NodeSetEvent(CUgraphNode node, CUevent event) \
	{ \
		return RUNTIME(cudaGraph##name##NodeSetEvent((cudaGraphNode_t)node, event)); \
	} \
	CUresult cuGraphExec##name##NodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) \
	{ \
		return RUNTIME(cudaGraphExec##name##NodeSetEvent(exec, (cudaGraphNode_t)node, event)); \
	}
EVENT_NODE(EventRecord)
EVENT_NODE(EventWait)

_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS), "one layout");

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n,
	CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	return RUNTIME(cudaGraphAddMemAllocNode(NODE(node), g, AFTER(after), n,
		(struct cudaMemAllocNodeParams *)p));
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	return RUNTIME(cudaGraphMemAllocNodeGetParams((cudaGraphNode_t)node,
		(struct cudaMemAllocNodeParams *)p));
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n, CUdeviceptr at)
{
	return RUNTIME(cudaGraphAddMemFreeNode(NODE(node), g, AFTER(after), n, (void *)at));
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *at)
{
	return RUNTIME(cudaGraphMemFreeNodeGetParams((cudaGraphNode_t)node, at));
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *handle, CUgraph g, CUcontext context,
	unsigned start, unsigned flags)
{
	return RUNTIME(cudaGraphConditionalHandleCreate((cudaGraphConditionalHandle *)handle, g, start, flags));
}

_Static_assert(sizeof(struct cudaConditionalNodeParams) <= sizeof(CUDA_CONDITIONAL_NODE_PARAMS), "it begins with it");

/* All but kernels and copies have the layout of the runtime's struct. */
CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
	const CUgraphEdgeData *edge, size_t n, CUgraphNodeParams *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->type == CU_GRAPH_NODE_TYPE_KERNEL && !edge)
		return cuGraphAddKernelNode_v2(node, g, after, n, (const CUDA_KERNEL_NODE_PARAMS *)&p->kernel);
	if (p->type == CU_GRAPH_NODE_TYPE_MEMCPY && !edge)
		return cuGraphAddMemcpyNode(node, g, after, n, &p->memcpy.copyParams, NULL);
	if (p->type == CU_GRAPH_NODE_TYPE_KERNEL || p->type == CU_GRAPH_NODE_TYPE_MEMCPY) {
		remark_unsupported("cuGraphAddNode with edge data");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	return RUNTIME(cudaGraphAddNode(NODE(node), g, AFTER(after), (const cudaGraphEdgeData *)edge, n,
		(struct cudaGraphNodeParams *)p));
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n,
	CUgraphNodeParams *p)
{
	return cuGraphAddNode_v2(node, g, after, NULL, n, p);
}

/* ---- edges ---- */

CUresult cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
	const CUgraphEdgeData *edge, size_t n)
{
	return RUNTIME(cudaGraphAddDependencies(g, AFTER(from), AFTER(to), (const cudaGraphEdgeData *)edge, n));
}

CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	return cuGraphAddDependencies_v2(g, from, to, NULL, n);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
	const CUgraphEdgeData *edge, size_t n)
{
	return RUNTIME(cudaGraphRemoveDependencies(g, AFTER(from), AFTER(to), (const cudaGraphEdgeData *)edge, n));
}

CUresult cuGraphRemoveDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	return cuGraphRemoveDependencies_v2(g, from, to, NULL, n);
}

CUresult cuGraphGetEdges_v2(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edge, size_t *n)
{
	return RUNTIME(cudaGraphGetEdges(g, NODE(from), NODE(to), (cudaGraphEdgeData *)edge, n));
}

CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
	return cuGraphGetEdges_v2(g, from, to, NULL, n);
}

CUresult cuGraphGetRootNodes(CUgraph g, CUgraphNode *nodes, size_t *n)
{
	return RUNTIME(cudaGraphGetRootNodes(g, NODE(nodes), n));
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edge, size_t *n)
{
	return RUNTIME(cudaGraphNodeGetDependencies((cudaGraphNode_t)node, NODE(nodes),
		(cudaGraphEdgeData *)edge, n));
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *n)
{
	return cuGraphNodeGetDependencies_v2(node, nodes, NULL, n);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edge, size_t *n)
{
	return RUNTIME(cudaGraphNodeGetDependentNodes((cudaGraphNode_t)node, NODE(nodes),
		(cudaGraphEdgeData *)edge, n));
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *n)
{
	return cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, n);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	return RUNTIME(cudaGraphNodeGetType((cudaGraphNode_t)node, (enum cudaGraphNodeType *)type));
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
	return RUNTIME(cudaGraphDestroyNode((cudaGraphNode_t)node));
}

CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode node, CUgraph clone)
{
	return RUNTIME(cudaGraphNodeFindInClone(NODE(out), (cudaGraphNode_t)node, clone));
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned on)
{
	return RUNTIME(cudaGraphNodeSetEnabled(exec, (cudaGraphNode_t)node, on));
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned *on)
{
	return RUNTIME(cudaGraphNodeGetEnabled(exec, (cudaGraphNode_t)node, on));
}
