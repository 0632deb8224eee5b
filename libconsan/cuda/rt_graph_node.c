/* rt_graph_node: nodes of graphs for events and memory, and parameters of nodes, in the runtime API. */
#include "internal.h"

/* Takes ownership of the contents of op. */
static cudaError_t add(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
	size_t nafter, struct op *op)
{
	struct graph *g = graph_of(graph);

	return rt(!g || !node ? cudaErrorInvalidValue
		: graph_add(g, op, (const void *const *)after, nafter, (struct node **)node));
}

static struct node *node_with(cudaGraphNode_t node, enum op_kind kind)
{
	struct node *n = node_of(node);

	return n && n->op.kind == kind ? n : NULL;
}

/* ---- events ---- */

static cudaError_t add_event(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
	size_t nafter, enum op_kind kind, cudaEvent_t event)
{
	struct op op = { .kind = kind, .event = event };

	return cuda_event_of(event) ? add(node, graph, after, nafter, &op)
		: rt(cudaErrorInvalidResourceHandle);
}

static cudaError_t get_event(cudaGraphNode_t node, enum op_kind kind, cudaEvent_t *event)
{
	struct node *n = node_with(node, kind);

	if (!n || !event)
		return rt(cudaErrorInvalidValue);
	*event = (cudaEvent_t)n->op.event;
	return cudaSuccess;
}

static cudaError_t set_event(struct node *n, enum op_kind kind, cudaEvent_t event)
{
	if (!n || n->op.kind != kind || !cuda_event_of(event))
		return rt(cudaErrorInvalidValue);
	n->op.event = event;
	return cudaSuccess;
}

#define EVENT_NODE(name, kind) \
	cudaError_t cudaGraphAdd##name##Node(cudaGraphNode_t *node, cudaGraph_t graph, \
		const cudaGraphNode_t *after, size_t nafter, cudaEvent_t event) \
	{ \
		return add_event(node, graph, after, nafter, kind, event); \
	} \
	cudaError_t cudaGraph##name##NodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) \
	{ \
		return get_event(node, kind, event); \
	} \
	cudaError_t cudaGraph##name##NodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) \
	{ \
		return set_event(node_of(node), kind, event); \
	} \
	cudaError_t cudaGraphExec##name##NodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, \
		cudaEvent_t event) \
	{ \
		return set_event(graph_exec_node(exec, node), kind, event); \
	}
EVENT_NODE(EventRecord, OP_EVENT_RECORD)
EVENT_NODE(EventWait, OP_EVENT_WAIT)

/* ---- memory ---- */

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
	size_t nafter, struct cudaMemAllocNodeParams *p)
{
	struct op op;
	int error = graph_of(graph) && p ? graph_alloc(graph_of(graph), p->bytesize, &op)
		: cudaErrorInvalidValue;

	if (error)
		return rt(error);
	p->dptr = op.memory.at;
	return add(node, graph, after, nafter, &op);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
	size_t nafter, void *at)
{
	struct op op;
	int error = graph_of(graph) ? graph_release(graph_of(graph), at, &op) : cudaErrorInvalidValue;

	return error ? rt(error) : add(node, graph, after, nafter, &op);
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, struct cudaMemAllocNodeParams *p)
{
	struct node *n = node_with(node, OP_ALLOC);

	if (!n || !p)
		return rt(cudaErrorInvalidValue);
	*p = (struct cudaMemAllocNodeParams){ .bytesize = n->op.memory.bytes, .dptr = n->op.memory.at,
		.poolProps = { .allocType = cudaMemAllocationTypePinned,
			.location.type = cudaMemLocationTypeDevice } };
	return cudaSuccess;
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *at)
{
	struct node *n = node_with(node, OP_RELEASE);

	if (!n || !at)
		return rt(cudaErrorInvalidValue);
	*(void **)at = n->op.memory.at;
	return cudaSuccess;
}

/* ---- parameters of copies, fills and host functions ---- */

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *p)
{
	struct op op = { .kind = OP_COPY };
	int error = node_with(node, OP_COPY) ? copy_3d(p, &op.copy) : cudaErrorInvalidValue;

	if (!error)
		error = copy_check(&op.copy);
	return rt(error ? error : node_set(node_of(node), &op));
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst, const void *src, size_t n,
	enum cudaMemcpyKind kind)
{
	struct op op = { .kind = OP_COPY, .copy = copy_line(dst, src, n, kind) };
	int error = node_with(node, OP_COPY) ? copy_check(&op.copy) : cudaErrorInvalidValue;

	return rt(error ? error : node_set(node_of(node), &op));
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *p)
{
	struct node *n = node_with(node, OP_FILL);
	const struct fill *f = n ? &n->op.fill : NULL;

	if (!n || !p)
		return rt(cudaErrorInvalidValue);
	*p = (struct cudaMemsetParams){ .dst = f->dst, .pitch = f->pitch, .value = f->value,
		.elementSize = f->unit, .width = f->width, .height = f->height };
	return cudaSuccess;
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams *p)
{
	struct op op = { .kind = OP_FILL };
	int error = node_with(node, OP_FILL) ? fill_of(p, &op.fill) : cudaErrorInvalidValue;

	return rt(error ? error : node_set(node_of(node), &op));
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *p)
{
	struct node *n = node_with(node, OP_HOST);

	if (!n || !p)
		return rt(cudaErrorInvalidValue);
	*p = (struct cudaHostNodeParams){ .fn = n->op.host.call, .userData = n->op.host.user };
	return cudaSuccess;
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const struct cudaHostNodeParams *p)
{
	struct node *n = node_with(node, OP_HOST);

	if (!n || !p || !p->fn)
		return rt(cudaErrorInvalidValue);
	n->op.host.call = p->fn;
	n->op.host.user = p->userData;
	return cudaSuccess;
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
	cudaGraph_t child)
{
	struct node *n = graph_exec_node(exec, node);
	struct op op = { .kind = OP_GRAPH };

	if (!n || n->op.kind != OP_GRAPH || !graph_of(child))
		return rt(cudaErrorInvalidValue);
	op.graph = graph_dup(graph_of(child), false);
	return rt(node_set(n, &op));
}
