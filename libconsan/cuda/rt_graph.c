/* rt_graph: graphs of the runtime API. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- graphs ---- */

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
	int error = device_ready();

	if (error || !graph || flags)
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

int fill_of(const struct cudaMemsetParams *p, struct fill *f)
{
	if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
		return cudaErrorInvalidValue;
	*f = (struct fill){ .dst = p->dst, .pitch = p->pitch, .value = p->value,
		.unit = p->elementSize, .width = p->width, .height = p->height, .depth = 1 };
	return fill_check(f);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
	const cudaGraphNode_t *after, size_t nafter, const struct cudaMemsetParams *p)
{
	struct op op = { .kind = OP_FILL };
	int error = fill_of(p, &op.fill);

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

static bool is_plain(const cudaGraphEdgeData *edge, size_t n)
{
	for (size_t k = 0; edge && k < n; k++)
		if (edge[k].type != cudaGraphDependencyTypeDefault)
			return false;
	return true;
}

/* phGraph_out is ours, and lives as long as the node. */
static cudaError_t add_conditional(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
	size_t nafter, struct cudaConditionalNodeParams *p)
{
	struct op op = { .kind = OP_CONDITION };
	const int error = condition_node(p->handle, p->type, p->size, &op.condition);

	if (error)
		return rt(error);
	p->phGraph_out = (cudaGraph_t *)op.condition.body;
	return add(node, graph, after, nafter, &op);
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
	unsigned start, unsigned flags)
{
	uint64_t made;
	const int error = condition_new(graph_of(graph), start, flags, handle ? &made : NULL);

	if (!error)
		*handle = made;
	return rt(error);
}

/* Refused: semaphore nodes, and programmatic edges. */
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
	const cudaGraphEdgeData *edge, size_t nafter, struct cudaGraphNodeParams *p)
{
	if (!p)
		return rt(cudaErrorInvalidValue);
	if (!is_plain(edge, nafter)) {
		remark_unsupported("cudaGraphAddNode with a programmatic edge");
		return rt(cudaErrorNotSupported);
	}
	switch (p->type) {
	case cudaGraphNodeTypeKernel:
		return cudaGraphAddKernelNode(node, graph, after, nafter,
			(const struct cudaKernelNodeParams *)&p->kernel);
	case cudaGraphNodeTypeMemcpy:
		return cudaGraphAddMemcpyNode(node, graph, after, nafter, &p->memcpy.copyParams);
	case cudaGraphNodeTypeMemset:
		return cudaGraphAddMemsetNode(node, graph, after, nafter,
			(const struct cudaMemsetParams *)&p->memset);
	case cudaGraphNodeTypeHost:
		return cudaGraphAddHostNode(node, graph, after, nafter,
			(const struct cudaHostNodeParams *)&p->host);
	case cudaGraphNodeTypeGraph:
		return cudaGraphAddChildGraphNode(node, graph, after, nafter, p->graph.graph);
	case cudaGraphNodeTypeEmpty:
		return cudaGraphAddEmptyNode(node, graph, after, nafter);
	case cudaGraphNodeTypeWaitEvent:
		return cudaGraphAddEventWaitNode(node, graph, after, nafter, p->eventWait.event);
	case cudaGraphNodeTypeEventRecord:
		return cudaGraphAddEventRecordNode(node, graph, after, nafter, p->eventRecord.event);
	case cudaGraphNodeTypeMemAlloc:
		return cudaGraphAddMemAllocNode(node, graph, after, nafter,
			(struct cudaMemAllocNodeParams *)&p->alloc);
	case cudaGraphNodeTypeMemFree:
		return cudaGraphAddMemFreeNode(node, graph, after, nafter, p->free.dptr);
	case cudaGraphNodeTypeConditional:
		return add_conditional(node, graph, after, nafter, &p->conditional);
	default:
		if ((unsigned)p->type >= cudaGraphNodeTypeCount)
			return rt(cudaErrorInvalidValue);
		remark(REMARK_CALL_UNSUPPORTED, "cudaGraphAddNode of a node of type %d", (int)p->type);
		return rt(cudaErrorNotSupported);
	}
}

/* ---- nodes and edges ---- */

static cudaError_t depend(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
	const cudaGraphEdgeData *edge, size_t n, bool add)
{
	struct graph *g = graph_of(graph);

	if (!g || (n && (!from || !to)))
		return rt(cudaErrorInvalidValue);
	if (!is_plain(edge, n)) {
		remark_unsupported("cudaGraphAddDependencies with a programmatic edge");
		return rt(cudaErrorNotSupported);
	}
	return rt(graph_depend(g, (const void *const *)from, (const void *const *)to, n, add));
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
	const cudaGraphNode_t *to, const cudaGraphEdgeData *edge, size_t n)
{
	return depend(graph, from, to, edge, n, true);
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
	const cudaGraphNode_t *to, const cudaGraphEdgeData *edge, size_t n)
{
	return depend(graph, from, to, edge, n, false);
}

/* The result of a query: a list of nodes, or of edges. Stores up to *n elements, and sets *n to their
 * number. */
struct list { cudaGraphNode_t *from, *to; size_t most, n; };

static void put(struct list *l, struct node *from, struct node *to)
{
	if (l->from && l->n < l->most)
		l->from[l->n] = (cudaGraphNode_t)from;
	if (l->to && l->n < l->most)
		l->to[l->n] = (cudaGraphNode_t)to;
	l->n++;
}

static cudaError_t ends(const struct list *l, cudaGraphEdgeData *edge, size_t *n)
{
	const size_t stored = l->n < *n ? l->n : *n;

	if (edge)
		memset(edge, 0, stored * sizeof *edge);
	*n = l->from || l->to ? stored : l->n;
	return cudaSuccess;
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
	cudaGraphEdgeData *edge, size_t *n)
{
	struct graph *g = graph_of(graph);
	struct list l = { from, to, n ? *n : 0, 0 };

	if (!g || !n)
		return rt(cudaErrorInvalidValue);
	for (size_t i = 0; i < g->node.n; i++)
		for (size_t k = 0; k < g->node.at[i]->after.n; k++)
			put(&l, g->node.at[i]->after.at[k], g->node.at[i]);
	return ends(&l, edge, n);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
	struct graph *g = graph_of(graph);
	struct list l = { nodes, NULL, n ? *n : 0, 0 };

	if (!g || !n)
		return rt(cudaErrorInvalidValue);
	for (size_t i = 0; i < g->node.n; i++)
		if (!g->node.at[i]->after.n)
			put(&l, g->node.at[i], NULL);
	return ends(&l, NULL, n);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
	cudaGraphEdgeData *edge, size_t *n)
{
	struct node *of = node_of(node);
	struct list l = { nodes, NULL, n ? *n : 0, 0 };

	if (!of || !n)
		return rt(cudaErrorInvalidValue);
	for (size_t k = 0; k < of->after.n; k++)
		put(&l, of->after.at[k], NULL);
	return ends(&l, edge, n);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes,
	cudaGraphEdgeData *edge, size_t *n)
{
	struct node *of = node_of(node);
	struct list l = { nodes, NULL, n ? *n : 0, 0 };

	if (!of || !n)
		return rt(cudaErrorInvalidValue);
	for (size_t i = 0; i < of->graph->node.n; i++)
		for (size_t k = 0; k < of->graph->node.at[i]->after.n; k++)
			if (of->graph->node.at[i]->after.at[k] == of)
				put(&l, of->graph->node.at[i], NULL);
	return ends(&l, edge, n);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
	static const enum cudaGraphNodeType types[] = {
		[OP_EMPTY] = cudaGraphNodeTypeEmpty, [OP_LAUNCH] = cudaGraphNodeTypeKernel,
		[OP_COPY] = cudaGraphNodeTypeMemcpy, [OP_FILL] = cudaGraphNodeTypeMemset,
		[OP_HOST] = cudaGraphNodeTypeHost, [OP_LIBRARY] = cudaGraphNodeTypeHost, [OP_GRAPH] = cudaGraphNodeTypeGraph,
		[OP_EVENT_RECORD] = cudaGraphNodeTypeEventRecord,
		[OP_EVENT_WAIT] = cudaGraphNodeTypeWaitEvent,
		[OP_ALLOC] = cudaGraphNodeTypeMemAlloc, [OP_RELEASE] = cudaGraphNodeTypeMemFree,
		[OP_CONDITION] = cudaGraphNodeTypeConditional,
	};
	struct node *n = node_of(node);

	if (!n || !type)
		return rt(cudaErrorInvalidValue);
	*type = types[n->op.kind];
	return cudaSuccess;
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node)
{
	struct node *n = node_of(node);

	return rt(n ? node_destroy(n) : cudaErrorInvalidValue);
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *out, cudaGraphNode_t node, cudaGraph_t clone)
{
	struct graph *g = graph_of(clone);
	struct node *n = node_of(node);

	if (!out || !g || !n)
		return rt(cudaErrorInvalidValue);
	*out = (cudaGraphNode_t)graph_find(g, n);
	return rt(*out ? 0 : cudaErrorInvalidValue);
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
	struct node *n = node_of(node);

	if (!n || !graph || n->op.kind != OP_GRAPH)
		return rt(cudaErrorInvalidValue);
	*graph = (cudaGraph_t)n->op.graph;
	return cudaSuccess;
}

/* ---- parameters of kernel nodes ---- */

static struct node *kernel_node(cudaGraphNode_t node)
{
	struct node *n = node_of(node);

	return n && n->op.kind == OP_LAUNCH ? n : NULL;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *p)
{
	struct node *n = kernel_node(node);
	struct launch *l;
	uint32_t offset, bytes;
	size_t i;

	if (!n || !p)
		return rt(cudaErrorInvalidValue);
	l = &n->op.launch;
	for (i = 0; consan_kernel_param(l->func->kernel, i, &offset, &bytes); i++) {
		n->args = base_resize(n->args, (i + 1) * sizeof *n->args);
		n->args[i] = (char *)l->params + offset;
	}
	*p = (struct cudaKernelNodeParams){ .func = l->func, .kernelParams = n->args,
		.sharedMemBytes = (unsigned)l->shared };
	memcpy(&p->gridDim, l->grid, sizeof l->grid);
	memcpy(&p->blockDim, l->block, sizeof l->block);
	return cudaSuccess;
}

/* The kernel's attributes stay. */
static cudaError_t set_kernel(struct node *n, const struct cudaKernelNodeParams *p)
{
	struct op op = { .kind = OP_LAUNCH };
	int error;

	if (!n || n->op.kind != OP_LAUNCH)
		return rt(cudaErrorInvalidValue);
	memcpy(op.launch.cluster, n->op.launch.cluster, sizeof op.launch.cluster);
	op.launch.cooperative = n->op.launch.cooperative;
	op.launch.programmatic = n->op.launch.programmatic;
	error = kernel_op(p, &op);
	if (!error)
		return rt(node_set(n, &op));
	launch_refused(p ? p->func : NULL, &op.launch, error);
	op_free(&op);
	return rt(error);
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *p)
{
	return set_kernel(node_of(node), p);
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
	const cudaLaunchAttributeValue *value)
{
	struct node *n = kernel_node(node);
	CUlaunchAttribute a = { .id = (CUlaunchAttributeID)id };

	if (!n || !value)
		return rt(cudaErrorInvalidValue);
	memcpy(&a.value, value, sizeof a.value);
	return rt(launch_attributes(&n->op.launch, &a, 1));
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t from, cudaGraphNode_t to)
{
	struct node *a = kernel_node(from), *b = kernel_node(to);

	if (!a || !b)
		return rt(cudaErrorInvalidValue);
	memcpy(b->op.launch.cluster, a->op.launch.cluster, sizeof b->op.launch.cluster);
	memcpy(b->op.launch.preferred, a->op.launch.preferred, sizeof b->op.launch.preferred);
	b->op.launch.cooperative = a->op.launch.cooperative;
	b->op.launch.programmatic = a->op.launch.programmatic;
	return cudaSuccess;
}

/* ---- nodes of executable graphs ---- */

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
	const struct cudaKernelNodeParams *p)
{
	return set_kernel(graph_exec_node(exec, node), p);
}

static cudaError_t set_checked(struct node *n, struct op *op, int error)
{
	return rt(error ? error : n ? node_set(n, op) : cudaErrorInvalidValue);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
	const struct cudaMemcpy3DParms *p)
{
	struct op op = { .kind = OP_COPY };
	int error = copy_3d(p, &op.copy);

	return set_checked(graph_exec_node(exec, node), &op, error ? error : copy_check(&op.copy));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst,
	const void *src, size_t n, enum cudaMemcpyKind kind)
{
	struct op op = { .kind = OP_COPY, .copy = copy_line(dst, src, n, kind) };

	return set_checked(graph_exec_node(exec, node), &op, copy_check(&op.copy));
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
	const struct cudaMemsetParams *p)
{
	struct op op = { .kind = OP_FILL };

	return set_checked(graph_exec_node(exec, node), &op, fill_of(p, &op.fill));
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
	const struct cudaHostNodeParams *p)
{
	struct op op = { .kind = OP_HOST };

	if (!p || !p->fn)
		return rt(cudaErrorInvalidValue);
	op.host.call = p->fn;
	op.host.user = p->userData;
	return set_checked(graph_exec_node(exec, node), &op, 0);
}

static bool can_be_disabled(const struct node *n)
{
	return n->op.kind == OP_LAUNCH || n->op.kind == OP_COPY || n->op.kind == OP_FILL;
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned on)
{
	struct node *n = graph_exec_node(exec, node);

	if (!n || !can_be_disabled(n))
		return rt(cudaErrorInvalidValue);
	n->off = !on;
	return cudaSuccess;
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *on)
{
	struct node *n = graph_exec_node(exec, node);

	if (!n || !on || !can_be_disabled(n))
		return rt(cudaErrorInvalidValue);
	*on = !n->off;
	return cudaSuccess;
}

/* ---- running ---- */

/* That of CUDA 11 has other parameters from the third on. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	cudaGraphInstantiateParams p = { .flags = flags };

	/* "only supported by cudaGraphInstantiateWithParams" */
	return flags & cudaGraphInstantiateFlagUpload ? rt(cudaErrorInvalidValue)
		: cudaGraphInstantiateWithParams(exec, graph, &p);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
	unsigned long long flags)
{
	return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
	cudaGraphInstantiateParams *p)
{
	struct graph *g = graph_of(graph), *made;
	const struct node *node = NULL;
	int error;

	if (!p)
		return rt(cudaErrorInvalidValue);
	p->result_out = cudaGraphInstantiateError;
	p->errNode_out = NULL;
	if (!g || !exec)
		return rt(cudaErrorInvalidValue);
	made = graph_dup(g, true);
	error = device_graph_instantiate(made, g, p->flags, &p->result_out, &node);
	p->errNode_out = (cudaGraphNode_t)node;
	if (error)
		graph_free(made);
	else
		*exec = (cudaGraphExec_t)made;
	return rt(error);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags)
{
	const struct graph *g = graph_exec_of(exec);

	if (!g || !flags)
		return rt(cudaErrorInvalidValue);
	*flags = g->flags;
	return cudaSuccess;
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
	struct graph *g = graph_exec_of(exec);
	const int error = g && stream_of(stream) ? device_ready() : cudaErrorInvalidValue;

	if (!error && g->flags & cudaGraphInstantiateFlagDeviceLaunch)
		device_graph_upload(g);
	return rt(error);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	return rt(graph_launch(exec, stream));
}
