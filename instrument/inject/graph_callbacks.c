/* graph_callbacks: handlers for the calls of the driver that make, change, launch and destroy
 * executable graphs. graph.c does the work. */
#include "callback.h"

#include <string.h>

static void made(const struct inject_call *c)
{
	const cuGraphInstantiate_params *p = c->params; /* the parameters of all versions begin
							   like these */

	if (c->succeeded)
		inject_graph_made(*p->phGraphExec, p->hGraph, false);
}

static void made_by_flags(const struct inject_call *c)
{
	const cuGraphInstantiateWithFlags_params *p = c->params;

	if (c->succeeded)
		inject_graph_made(*p->phGraphExec, p->hGraph,
			p->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
}

static void made_by_params(const struct inject_call *c)
{
	const cuGraphInstantiateWithParams_params *p = c->params;

	if (c->succeeded)
		inject_graph_made(*p->phGraphExec, p->hGraph,
			p->instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
}

static void updated(const struct inject_call *c)
{
	const cuGraphExecUpdate_v2_params *p = c->params; /* the parameters of both versions
							     begin like these */

	if (c->succeeded)
		inject_graph_updated(p->hGraphExec, p->hGraph);
}

static void enabled(const struct inject_call *c)
{
	const cuGraphNodeSetEnabled_params *p = c->params;

	if (c->succeeded)
		inject_graph_enabled(p->hGraphExec, p->hNode, p->isEnabled, c->name);
}

static void gone(const struct inject_call *c)
{
	if (c->enter)
		inject_graph_destroyed(((const cuGraphExecDestroy_params *)c->params)->hGraphExec);
}

/* Calls that set parameters of a node: the clone's node gets the same. */
#define CHANGES(CHANGE) \
	CHANGE(cuGraphExecMemcpyNodeSetParams, cuGraphMemcpyNodeSetParams, copyParams) \
	CHANGE(cuGraphExecMemsetNodeSetParams, cuGraphMemsetNodeSetParams, memsetParams) \
	CHANGE(cuGraphExecHostNodeSetParams, cuGraphHostNodeSetParams, nodeParams) \
	CHANGE(cuGraphExecEventRecordNodeSetEvent, cuGraphEventRecordNodeSetEvent, event) \
	CHANGE(cuGraphExecEventWaitNodeSetEvent, cuGraphEventWaitNodeSetEvent, event) \
	CHANGE(cuGraphExecNodeSetParams, cuGraphNodeSetParams, nodeParams)

#define CHANGE(call, set, with) \
static void on_##call(const struct inject_call *c) \
{ \
	const call##_params *p = c->params; \
	CUgraphNode ours = c->succeeded \
		? inject_graph_node(p->hGraphExec, p->hNode, c->name) : NULL; \
\
	if (ours && (!cu.p_##set || cu.p_##set(ours, p->with))) \
		inject_graph_diverged(p->hGraphExec, c->name); \
}
CHANGES(CHANGE)
#undef CHANGE

/* Two versions: the second one's structure has more members at its end. */
static void on_kernel(const struct inject_call *c)
{
	const cuGraphExecKernelNodeSetParams_v2_params *p = c->params;
	CUgraphNode ours = c->succeeded
		? inject_graph_node(p->hGraphExec, p->hNode, c->name) : NULL;
	CUDA_KERNEL_NODE_PARAMS all = { 0 };

	if (!ours)
		return;
	memcpy(&all, p->nodeParams, c->id == CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams
		? sizeof(CUDA_KERNEL_NODE_PARAMS_v1) : sizeof all);
	if (cu.p_cuGraphKernelNodeSetParams(ours, &all))
		inject_graph_diverged(p->hGraphExec, c->name);
}

/* All of these have the graph as their first parameter. */
static void not_followed(const struct inject_call *c)
{
	const cuGraphExecChildGraphNodeSetParams_params *p = c->params;

	if (c->succeeded)
		inject_graph_diverged(p->hGraphExec, c->name);
}

static void launch(const struct inject_call *c, CUstream none)
{
	static _Thread_local CUresult failed;
	/* both versions have the same parameters */
	cuGraphLaunch_params *p = (cuGraphLaunch_params *)(uintptr_t)c->params;

	if (c->enter)
		failed = inject_graph_launch(&p->hGraph, p->hStream ? p->hStream : none);
	else if (failed)
		*c->result = failed;
}

static void launched(const struct inject_call *c)
{
	launch(c, CU_STREAM_LEGACY);
}

static void launched_by_thread(const struct inject_call *c)
{
	launch(c, CU_STREAM_PER_THREAD);
}

const struct inject_handler inject_graph_handlers[] = {
	INJECT_HANDLER(cuGraphInstantiate, made)
	INJECT_HANDLER(cuGraphInstantiate_v2, made)
	INJECT_HANDLER(cuGraphInstantiateWithFlags, made_by_flags)
	INJECT_HANDLER(cuGraphInstantiateWithParams, made_by_params)
	INJECT_HANDLER(cuGraphInstantiateWithParams_ptsz, made_by_params)
	INJECT_HANDLER(cuGraphExecUpdate, updated)
	INJECT_HANDLER(cuGraphExecUpdate_v2, updated)
	INJECT_HANDLER(cuGraphNodeSetEnabled, enabled)
	INJECT_HANDLER(cuGraphExecDestroy, gone)
	INJECT_HANDLER(cuGraphExecKernelNodeSetParams, on_kernel)
	INJECT_HANDLER(cuGraphExecKernelNodeSetParams_v2, on_kernel)
#define CHANGE(call, set, with) INJECT_HANDLER(call, on_##call)
	CHANGES(CHANGE)
#undef CHANGE
	INJECT_HANDLER(cuGraphExecChildGraphNodeSetParams, not_followed)
	INJECT_HANDLER(cuGraphExecExternalSemaphoresSignalNodeSetParams, not_followed)
	INJECT_HANDLER(cuGraphExecExternalSemaphoresWaitNodeSetParams, not_followed)
	INJECT_HANDLER(cuGraphExecBatchMemOpNodeSetParams, not_followed)
	INJECT_HANDLER(cuGraphLaunch, launched)
	INJECT_HANDLER(cuGraphLaunch_ptsz, launched_by_thread)
	{ 0, NULL },
};
