/* graph_step: runs one node of a graph in a stream: a kernel as a launch, other nodes by an
 * equivalent call. */
#include "graph_step.h"

#include <string.h>

/* Attributes of a kernel node that its launch needs, with the condition that they are set.
 * Priorities and memory domains only matter next to other launches. */
#define ATTRIBUTES(ATTRIBUTE) \
	ATTRIBUTE(ACCESS_POLICY_WINDOW, v.accessPolicyWindow.num_bytes) \
	ATTRIBUTE(COOPERATIVE, v.cooperative) \
	ATTRIBUTE(CLUSTER_DIMENSION, v.clusterDim.x) \
	ATTRIBUTE(CLUSTER_SCHEDULING_POLICY_PREFERENCE, v.clusterSchedulingPolicyPreference) \
	ATTRIBUTE(PREFERRED_CLUSTER_DIMENSION, v.preferredClusterDim.x) \
	ATTRIBUTE(PREFERRED_SHARED_MEMORY_CARVEOUT, v.sharedMemCarveout > 0)
#define ATTRIBUTE(name, says) + 1
enum { MOST_ATTRIBUTES = ATTRIBUTES(ATTRIBUTE) };
#undef ATTRIBUTE

static unsigned attributes(CUgraphNode node, CUlaunchAttribute *to)
{
	CUlaunchAttributeValue v;
	unsigned n = 0;

#define ATTRIBUTE(name, says) \
	memset(&v, 0, sizeof v); \
	if (!cu.p_cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_##name, &v) && (says)) \
		to[n++] = (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_##name, .value = v };
	ATTRIBUTES(ATTRIBUTE)
#undef ATTRIBUTE
	return n;
}

static CUresult run_kernel(struct step *s, CUstream stream)
{
	CUDA_KERNEL_NODE_PARAMS p = { 0 };
	CUlaunchAttribute attribute[MOST_ATTRIBUTES];
	CUlaunchConfig c = { .hStream = stream, .attrs = attribute };
	CUresult r = cu.p_cuGraphKernelNodeGetParams(s->node, &p);
	CUfunction f = p.func ? p.func : (CUfunction)p.kern;
	struct inject_launch l;

	if (r)
		return r;
	c.gridDimX = p.gridDimX;
	c.gridDimY = p.gridDimY;
	c.gridDimZ = p.gridDimZ;
	c.blockDimX = p.blockDimX;
	c.blockDimY = p.blockDimY;
	c.blockDimZ = p.blockDimZ;
	c.sharedMemBytes = p.sharedMemBytes;
	c.numAttrs = attributes(s->node, attribute);
	inject_describe(&l, f, &c, p.kernelParams, p.extra);
	l.programmatic = s->programmatic;
	l.op = order_op_get(operations_order(), s->op);
	inject_before(&l);
	return inject_after(&l, cu.p_cuLaunchKernelEx(&c, l.instead ? l.instead : f, p.kernelParams,
		p.extra));
}

/* Runs the node as a graph of its own. */
static CUresult run_alone(struct step *s, CUstream stream,
	CUresult (*add)(CUgraph to, CUgraphNode node, CUcontext context))
{
	CUcontext now = NULL;
	CUgraph g = NULL;
	CUresult r;

	if (s->alone)
		return cu.p_cuGraphLaunch(s->alone, stream);
	cu.p_cuCtxGetCurrent(&now);
	r = cu.p_cuGraphCreate(&g, 0);
	if (r)
		return r;
	r = add(g, s->node, now);
	if (!r)
		r = cu.p_cuGraphInstantiate(&s->alone, g, 0);
	cu.p_cuGraphDestroy(g);
	if (!r)
		return cu.p_cuGraphLaunch(s->alone, stream);
	s->alone = NULL;
	return r;
}

static CUresult add_memcpy(CUgraph to, CUgraphNode node, CUcontext context)
{
	CUDA_MEMCPY3D p;
	CUresult r = cu.p_cuGraphMemcpyNodeGetParams(node, &p);

	return r ? r : cu.p_cuGraphAddMemcpyNode(&node, to, NULL, 0, &p, context);
}

static CUresult run_memcpy(struct step *s, CUstream stream)
{
	struct operations_area to, from;
	CUDA_MEMCPY3D p;

	if (!cu.p_cuGraphMemcpyNodeGetParams(s->node, &p)) {
		operations_copy_areas(&p, &to, &from);
		operations_copy(order_op_get(operations_order(), s->op), &to, &from);
	}
	return run_alone(s, stream, add_memcpy);
}

static CUresult add_memset(CUgraph to, CUgraphNode node, CUcontext context)
{
	CUDA_MEMSET_NODE_PARAMS p;
	CUresult r = cu.p_cuGraphMemsetNodeGetParams(node, &p);

	return r ? r : cu.p_cuGraphAddMemsetNode(&node, to, NULL, 0, &p, context);
}

static CUresult run_memset(struct step *s, CUstream stream)
{
	struct operations_area at;
	CUDA_MEMSET_NODE_PARAMS p;

	if (!cu.p_cuGraphMemsetNodeGetParams(s->node, &p)) {
		at = operations_fill_area(&p);
		operations_fill(order_op_get(operations_order(), s->op), &at);
	}
	return run_alone(s, stream, add_memset);
}

static CUresult run_host(struct step *s, CUstream stream)
{
	CUDA_HOST_NODE_PARAMS p;
	CUresult r = cu.p_cuGraphHostNodeGetParams(s->node, &p);

	return r ? r : cu.p_cuLaunchHostFunc(stream, p.fn, p.userData);
}

static CUresult run_wait(struct step *s, CUstream stream)
{
	CUevent event;
	CUresult r = cu.p_cuGraphEventWaitNodeGetEvent(s->node, &event);

	if (!r)
		operations_node_waits(s->op, event);
	return r ? r : cu.p_cuStreamWaitEvent(stream, event, 0);
}

static CUresult run_record(struct step *s, CUstream stream)
{
	CUevent event;
	CUresult r = cu.p_cuGraphEventRecordNodeGetEvent(s->node, &event);

	if (!r)
		operations_node_recorded(event, s->op);
	return r ? r : cu.p_cuEventRecord(event, stream);
}

/* Neither: the node does nothing, or it is a child graph, whose nodes are steps of their own. */
static const struct kind {
	CUresult (*run)(struct step *s, CUstream stream);
	const char *name, *refused;
} kind[] = {
	[CU_GRAPH_NODE_TYPE_KERNEL] = { run_kernel, "kernel node", NULL },
	[CU_GRAPH_NODE_TYPE_MEMCPY] = { run_memcpy, "memcpy node", NULL },
	[CU_GRAPH_NODE_TYPE_MEMSET] = { run_memset, "memset node", NULL },
	[CU_GRAPH_NODE_TYPE_HOST] = { run_host, "host node", NULL },
	[CU_GRAPH_NODE_TYPE_WAIT_EVENT] = { run_wait, "event wait node", NULL },
	[CU_GRAPH_NODE_TYPE_EVENT_RECORD] = { run_record, "event record node", NULL },
	[CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL] = { NULL, NULL, "it signals external semaphores" },
	[CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT] = { NULL, NULL, "it waits for external semaphores" },
	[CU_GRAPH_NODE_TYPE_MEM_ALLOC] = { NULL, NULL, "it allocates memory" },
	[CU_GRAPH_NODE_TYPE_MEM_FREE] = { NULL, NULL, "it frees memory" },
	[CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = { NULL, NULL, "it has batched memory operations" },
	[CU_GRAPH_NODE_TYPE_CONDITIONAL] = { NULL, NULL, "it has conditional nodes" },
};

static const char *kernel_of(const struct step *s)
{
	CUDA_KERNEL_NODE_PARAMS p = { 0 };

	if (s->type != CU_GRAPH_NODE_TYPE_KERNEL || cu.p_cuGraphKernelNodeGetParams(s->node, &p))
		return NULL;
	return inject_name(p.func ? p.func : (CUfunction)p.kern);
}

void step_issue(struct step *s, const struct order_op *start, struct order_op *const *after,
	size_t nafter, uint32_t stack)
{
	s->op = operations_issue_node(start, after, nafter, kind[s->type].name, kernel_of(s), stack);
}

const char *step_refused(CUgraphNode node, CUgraphNodeType type)
{
	CUlaunchAttributeValue v = { 0 };

	if (type == CU_GRAPH_NODE_TYPE_KERNEL && !cu.p_cuGraphKernelNodeGetAttribute(node,
			CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &v)
			&& v.deviceUpdatableKernelNode.deviceUpdatable)
		return "kernels may change its nodes";
	return type < ARRAY_SIZE(kind) ? kind[type].refused : "it has nodes of an unknown type";
}

bool step_does(CUgraphNodeType type)
{
	return kind[type].run;
}

CUresult step_run(struct step *s, CUstream stream)
{
	return kind[s->type].run(s, stream);
}

void step_changed(struct step *s)
{
	if (s->alone)
		cu.p_cuGraphExecDestroy(s->alone);
	s->alone = NULL;
}
