/* api_graph: parameters of nodes of any type, nodes that copy variables of kernels, and the text of a graph, in
 * both APIs. */
#include "internal.h"

#include <stdio.h>

/* ---- nodes of any type ---- */

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *p)
{
	if (!p || !node_of(node))
		return rt(cudaErrorInvalidValue);
	switch (p->type) {
	case cudaGraphNodeTypeKernel:
		return cudaGraphKernelNodeSetParams(node, (const struct cudaKernelNodeParams *)&p->kernel);
	case cudaGraphNodeTypeMemcpy:
		return cudaGraphMemcpyNodeSetParams(node, &p->memcpy.copyParams);
	case cudaGraphNodeTypeMemset:
		return cudaGraphMemsetNodeSetParams(node, (const struct cudaMemsetParams *)&p->memset);
	case cudaGraphNodeTypeHost:
		return cudaGraphHostNodeSetParams(node, (const struct cudaHostNodeParams *)&p->host);
	case cudaGraphNodeTypeEventRecord:
		return cudaGraphEventRecordNodeSetEvent(node, p->eventRecord.event);
	case cudaGraphNodeTypeWaitEvent:
		return cudaGraphEventWaitNodeSetEvent(node, p->eventWait.event);
	default: /* "node type cannot be changed", and those of other types have nothing to be set */
		return rt(cudaErrorInvalidValue);
	}
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, struct cudaGraphNodeParams *p)
{
	if (!p || !graph_exec_node(exec, node))
		return rt(cudaErrorInvalidValue);
	switch (p->type) {
	case cudaGraphNodeTypeKernel:
		return cudaGraphExecKernelNodeSetParams(exec, node, (const struct cudaKernelNodeParams *)&p->kernel);
	case cudaGraphNodeTypeMemcpy:
		return cudaGraphExecMemcpyNodeSetParams(exec, node, &p->memcpy.copyParams);
	case cudaGraphNodeTypeMemset:
		return cudaGraphExecMemsetNodeSetParams(exec, node, (const struct cudaMemsetParams *)&p->memset);
	case cudaGraphNodeTypeHost:
		return cudaGraphExecHostNodeSetParams(exec, node, (const struct cudaHostNodeParams *)&p->host);
	case cudaGraphNodeTypeGraph:
		return cudaGraphExecChildGraphNodeSetParams(exec, node, p->graph.graph);
	case cudaGraphNodeTypeEventRecord:
		return cudaGraphExecEventRecordNodeSetEvent(exec, node, p->eventRecord.event);
	case cudaGraphNodeTypeWaitEvent:
		return cudaGraphExecEventWaitNodeSetEvent(exec, node, p->eventWait.event);
	default:
		return rt(cudaErrorInvalidValue);
	}
}

/* All but kernels and copies have the layout of the runtime's struct. */
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *p)
{
	if (p && p->type == CU_GRAPH_NODE_TYPE_KERNEL)
		return cuGraphKernelNodeSetParams_v2(node, (const CUDA_KERNEL_NODE_PARAMS *)&p->kernel);
	if (p && p->type == CU_GRAPH_NODE_TYPE_MEMCPY)
		return cuGraphMemcpyNodeSetParams(node, &p->memcpy.copyParams);
	return drv_ready() ? drv(drv_ready())
		: drv((int)cudaGraphNodeSetParams((cudaGraphNode_t)node, (struct cudaGraphNodeParams *)p));
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *p)
{
	if (p && p->type == CU_GRAPH_NODE_TYPE_KERNEL)
		return cuGraphExecKernelNodeSetParams_v2(exec, node, (const CUDA_KERNEL_NODE_PARAMS *)&p->kernel);
	if (p && p->type == CU_GRAPH_NODE_TYPE_MEMCPY)
		return cuGraphExecMemcpyNodeSetParams(exec, node, &p->memcpy.copyParams, NULL);
	return drv_ready() ? drv(drv_ready()) : drv((int)cudaGraphExecNodeSetParams(exec,
		(cudaGraphNode_t)node, (struct cudaGraphNodeParams *)p));
}

/* ---- variables of kernels ---- */

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
	size_t nafter, const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	char *at;
	int error = symbol_place(symbol, count, offset, &at);

	return error ? rt(error) : cudaGraphAddMemcpyNode1D(node, graph, after, nafter, at, src, count, kind);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
	size_t nafter, void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	char *at;
	int error = symbol_place(symbol, count, offset, &at);

	return error ? rt(error) : cudaGraphAddMemcpyNode1D(node, graph, after, nafter, dst, at, count, kind);
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *src,
	size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	char *at;
	int error = symbol_place(symbol, count, offset, &at);

	return error ? rt(error) : cudaGraphMemcpyNodeSetParams1D(node, at, src, count, kind);
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst, const void *symbol,
	size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	char *at;
	int error = symbol_place(symbol, count, offset, &at);

	return error ? rt(error) : cudaGraphMemcpyNodeSetParams1D(node, dst, at, count, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol,
	const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	char *at;
	int error = symbol_place(symbol, count, offset, &at);

	return error ? rt(error) : cudaGraphExecMemcpyNodeSetParams1D(exec, node, at, src, count, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst,
	const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	char *at;
	int error = symbol_place(symbol, count, offset, &at);

	return error ? rt(error) : cudaGraphExecMemcpyNodeSetParams1D(exec, node, dst, at, count, kind);
}

/* ---- the text of a graph, in the language of Graphviz ---- */

static const char *name_of(const struct op *op)
{
	static const char *const name[] = { [OP_EMPTY] = "EMPTY", [OP_COPY] = "MEMCPY", [OP_FILL] = "MEMSET",
		[OP_HOST] = "HOST", [OP_LIBRARY] = "LIBRARY", [OP_GRAPH] = "GRAPH",
		[OP_EVENT_RECORD] = "EVENT_RECORD", [OP_EVENT_WAIT] = "EVENT_WAIT", [OP_ALLOC] = "MEM_ALLOC",
		[OP_RELEASE] = "MEM_FREE", [OP_CONDITION] = "CONDITIONAL" };

	return op->kind == OP_LAUNCH ? op->launch.func->name : name[op->kind];
}

/* The graph, and those in it. */
static void print_graph(FILE *out, const struct graph *g)
{
	fprintf(out, "subgraph \"cluster_%llu\" {\nlabel=\"graph_%llu\"\n", g->id, g->id);
	for (size_t i = 0; i < g->node.n; i++) {
		const struct node *n = g->node.at[i];

		fprintf(out, "\"node_%llu\" [shape=\"rectangle\" label=\"%zu\\n%s\"]\n", n->id, i, name_of(&n->op));
		for (size_t k = 0; k < n->after.n; k++)
			fprintf(out, "\"node_%llu\" -> \"node_%llu\"\n", n->after.at[k]->id, n->id);
	}
	fprintf(out, "}\n");
	for (size_t i = 0; i < g->node.n; i++) {
		const struct op *op = &g->node.at[i]->op;

		if (op->kind == OP_GRAPH)
			print_graph(out, op->graph);
		for (unsigned k = 0; op->kind == OP_CONDITION && k < op->condition.size; k++)
			print_graph(out, op->condition.body[k]);
	}
}

/* What the flags ask for in addition is not printed. */
static int print_to(const void *handle, const char *path)
{
	const struct graph *g = graph_of(handle);
	FILE *out;
	bool good;

	if (!g || !path)
		return cudaErrorInvalidValue;
	out = fopen(path, "we");
	if (!out)
		return cudaErrorOperatingSystem;
	fprintf(out, "digraph dot {\n");
	print_graph(out, g);
	fprintf(out, "}\n");
	good = !ferror(out);
	return !fclose(out) && good ? 0 : cudaErrorOperatingSystem;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags)
{
	return rt(print_to(graph, path));
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned flags)
{
	return drv_ready() ? drv(drv_ready()) : drv(print_to(graph, path));
}
