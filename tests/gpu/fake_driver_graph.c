/* fake_driver_graph: the graphs of the fake driver. Nodes run in an order that their edges allow,
 * the last ones first where there is a choice. A call that uses what is destroyed aborts.
 *   DRIVER_CLONE  error of cuGraphClone()
 *   DRIVER_EMPTY  error of cuGraphLaunch() for an empty graph */
#include "fake_driver.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 16 }; /* of each kind of object */

struct CUgraphNode_st {
	CUgraphNodeType type;
	CUDA_KERNEL_NODE_PARAMS kernel;
	CUDA_HOST_NODE_PARAMS host;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_MEMCPY3D copy;
	CUgraph child;
	CUgraphNode of;            /* the node that this one is a copy of */
	bool off, dead;
};
struct CUgraph_st {
	CUgraphNode node[MOST], from[MOST], to[MOST];
	size_t nnodes, nedges;
};
static struct CUgraphExec_st { CUgraph graph; } made[MOST]; /* graph: NULL: free */

static CUresult add(CUgraph g, CUgraphNode *to, const CUgraphNode *after, size_t nafter,
	struct CUgraphNode_st n)
{
	CUgraphNode own = malloc(sizeof *own);

	if (g->nnodes == MOST || g->nedges + nafter > MOST)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*own = n;
	g->node[g->nnodes++] = own;
	for (size_t k = 0; k < nafter; k++) {
		g->from[g->nedges] = after[k];
		g->to[g->nedges++] = own;
	}
	*to = own;
	return CUDA_SUCCESS;
}

static CUgraphNode copy_of(const struct CUgraph_st *g, CUgraphNode n)
{
	for (size_t k = 0; k < g->nnodes; k++)
		if (g->node[k]->of == n)
			return g->node[k];
	return NULL;
}

static CUgraph copied(const struct CUgraph_st *g)
{
	CUgraph to = calloc(1, sizeof *to);

	for (size_t k = 0; k < g->nnodes; k++) {
		struct CUgraphNode_st n = *g->node[k];
		CUgraphNode own;

		n.of = g->node[k];
		n.child = n.child ? copied(n.child) : NULL;
		add(to, &own, NULL, 0, n);
	}
	for (size_t k = 0; k < g->nedges; k++) {
		to->from[k] = copy_of(to, g->from[k]);
		to->to[k] = copy_of(to, g->to[k]);
	}
	to->nedges = g->nedges;
	return to;
}

/* ---- graphs ---- */

API CUresult cuGraphCreate(CUgraph *g, unsigned flags)
{
	(void)flags;
	*g = calloc(1, sizeof **g);
	return CUDA_SUCCESS;
}

API CUresult cuGraphDestroy(CUgraph g)
{
	for (size_t k = 0; k < g->nnodes; k++)
		g->node[k]->dead = true; /* not freed, to detect later use */
	free(g);
	return CUDA_SUCCESS;
}

API CUresult cuGraphClone(CUgraph *to, CUgraph g)
{
	for (size_t k = 0; k < g->nnodes; k++)
		if (g->node[k]->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
			abort(); /* such a graph cannot be cloned */
	*to = copied(g);
	return (CUresult)setting("DRIVER_CLONE", 0);
}

API CUresult cuGraphNodeFindInClone(CUgraphNode *to, CUgraphNode n, CUgraph clone)
{
	if (n->dead)
		abort(); /* as a real driver does */
	*to = copy_of(clone, n);
	return *to ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *to, size_t *n)
{
	for (size_t k = 0; to && k < g->nnodes && k < *n; k++)
		to[k] = g->node[k];
	*n = g->nnodes;
	return CUDA_SUCCESS;
}

API CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
	size_t *n)
{
	for (size_t k = 0; from && k < g->nedges && k < *n; k++) {
		from[k] = g->from[k];
		to[k] = g->to[k];
		data[k] = (CUgraphEdgeData){ 0 };
	}
	*n = g->nedges;
	return CUDA_SUCCESS;
}

API CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
	const CUgraphEdgeData *data, size_t n)
{
	(void)data;
	for (size_t k = 0; k < n && g->nedges < MOST; k++) {
		g->from[g->nedges] = from[k];
		g->to[g->nedges++] = to[k];
	}
	return CUDA_SUCCESS;
}

/* ---- nodes ---- */

API CUresult cuGraphAddEmptyNode(CUgraphNode *to, CUgraph g, const CUgraphNode *after, size_t n)
{
	return add(g, to, after, n, (struct CUgraphNode_st){ .type = CU_GRAPH_NODE_TYPE_EMPTY });
}

API CUresult cuGraphAddKernelNode(CUgraphNode *to, CUgraph g, const CUgraphNode *after, size_t n,
	const CUDA_KERNEL_NODE_PARAMS *p)
{
	return add(g, to, after, n, (struct CUgraphNode_st){
		.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *p });
}

API CUresult cuGraphAddHostNode(CUgraphNode *to, CUgraph g, const CUgraphNode *after, size_t n,
	const CUDA_HOST_NODE_PARAMS *p)
{
	return add(g, to, after, n, (struct CUgraphNode_st){
		.type = CU_GRAPH_NODE_TYPE_HOST, .host = *p });
}

API CUresult cuGraphAddMemsetNode(CUgraphNode *to, CUgraph g, const CUgraphNode *after, size_t n,
	const CUDA_MEMSET_NODE_PARAMS *p, CUcontext c)
{
	(void)c;
	return add(g, to, after, n, (struct CUgraphNode_st){ .type = CU_GRAPH_NODE_TYPE_MEMSET, .fill = *p });
}

API CUresult cuGraphMemsetNodeGetParams(CUgraphNode n, CUDA_MEMSET_NODE_PARAMS *p)
{
	*p = n->fill;
	return CUDA_SUCCESS;
}

API CUresult cuGraphAddMemcpyNode(CUgraphNode *to, CUgraph g, const CUgraphNode *after, size_t n,
	const CUDA_MEMCPY3D *p, CUcontext c)
{
	(void)c;
	return add(g, to, after, n, (struct CUgraphNode_st){ .type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = *p });
}

API CUresult cuGraphMemcpyNodeGetParams(CUgraphNode n, CUDA_MEMCPY3D *p)
{
	*p = n->copy;
	return CUDA_SUCCESS;
}

API CUresult cuGraphAddChildGraphNode(CUgraphNode *to, CUgraph g, const CUgraphNode *after,
	size_t n, CUgraph child)
{
	return add(g, to, after, n, (struct CUgraphNode_st){
		.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = copied(child) });
}

API CUresult cuGraphAddMemAllocNode(CUgraphNode *to, CUgraph g, const CUgraphNode *after, size_t n,
	CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	(void)p;
	return add(g, to, after, n, (struct CUgraphNode_st){ .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC });
}

API CUresult cuGraphNodeGetType(CUgraphNode n, CUgraphNodeType *type)
{
	*type = n->type;
	return CUDA_SUCCESS;
}

API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode n, CUgraph *g)
{
	*g = n->child;
	return CUDA_SUCCESS;
}

API CUresult cuGraphKernelNodeGetParams(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p)
{
	*p = n->kernel;
	return CUDA_SUCCESS;
}

API CUresult cuGraphKernelNodeSetParams(CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p)
{
	n->kernel = *p;
	return CUDA_SUCCESS;
}

API CUresult cuGraphKernelNodeGetAttribute(CUgraphNode n, CUkernelNodeAttrID id,
	CUkernelNodeAttrValue *v)
{
	(void)n, (void)id, (void)v;
	return CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuGraphHostNodeGetParams(CUgraphNode n, CUDA_HOST_NODE_PARAMS *p)
{
	*p = n->host;
	return CUDA_SUCCESS;
}

/* ---- executable graphs ---- */

static CUresult instantiate(CUgraphExec *to, CUgraph g)
{
	size_t k = 0;

	while (k < MOST && made[k].graph)
		k++;
	if (k == MOST)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made[k].graph = copied(g);
	*to = &made[k];
	return CUDA_SUCCESS;
}

API CUresult cuGraphInstantiateWithFlags(CUgraphExec *to, CUgraph g, unsigned long long flags)
{
	AROUND(cuGraphInstantiateWithFlags, instantiate(a.phGraphExec, a.hGraph), to, g, flags);
}

static CUresult destroyed(CUgraphExec x)
{
	if (!x->graph)
		abort(); /* as a real driver may */
	cuGraphDestroy(x->graph);
	x->graph = NULL;
	return CUDA_SUCCESS;
}

API CUresult cuGraphExecDestroy(CUgraphExec x)
{
	AROUND(cuGraphExecDestroy, destroyed(a.hGraphExec), x);
}

static CUresult updated(CUgraphExec x, CUgraph g)
{
	if (x->graph->nnodes != g->nnodes)
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	for (size_t k = 0; k < g->nnodes; k++) {
		x->graph->node[k]->kernel = g->node[k]->kernel;
		x->graph->node[k]->host = g->node[k]->host;
	}
	return CUDA_SUCCESS;
}

API CUresult cuGraphExecUpdate(CUgraphExec x, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
	AROUND(cuGraphExecUpdate, updated(a.hGraphExec, a.hGraph), x, g, info);
}

API CUresult cuGraphExecKernelNodeSetParams(CUgraphExec x, CUgraphNode n,
	const CUDA_KERNEL_NODE_PARAMS *p)
{
	AROUND(cuGraphExecKernelNodeSetParams,
		cuGraphKernelNodeSetParams(copy_of(x->graph, a.hNode), a.nodeParams), x, n, p);
}

API CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec x, CUgraphNode n, CUgraph child)
{
	AROUND(cuGraphExecChildGraphNodeSetParams,
		(copy_of(x->graph, a.hNode)->child = copied(a.childGraph), CUDA_SUCCESS), x, n, child);
}

API CUresult cuGraphNodeSetEnabled(CUgraphExec x, CUgraphNode n, unsigned on)
{
	AROUND(cuGraphNodeSetEnabled,
		(copy_of(x->graph, a.hNode)->off = !a.isEnabled, CUDA_SUCCESS), x, n, on);
}

static CUresult run(const struct CUgraph_st *g, CUstream s)
{
	bool done[MOST] = { false };
	CUresult r = CUDA_SUCCESS;
	size_t left = g->nnodes;

	while (left && !r)
		for (size_t k = g->nnodes; k-- > 0 && !r;) {
			const struct CUgraphNode_st *n = g->node[k];
			bool ready = !done[k];

			for (size_t i = 0; i < g->nedges; i++)
				for (size_t j = 0; j < g->nnodes && g->to[i] == n; j++)
					ready &= g->node[j] != g->from[i] || done[j];
			if (!ready)
				continue;
			done[k] = true;
			left--;
			if (n->type == CU_GRAPH_NODE_TYPE_KERNEL && !n->off)
				r = run_kernel(n->kernel.func, s);
			if (n->type == CU_GRAPH_NODE_TYPE_HOST)
				n->host.fn(n->host.userData);
			if (n->type == CU_GRAPH_NODE_TYPE_GRAPH)
				r = run(n->child, s);
		}
	return r;
}

static CUresult launched(CUgraphExec x, CUstream s)
{
	if (!x->graph)
		abort(); /* as a real driver may */
	if (x->graph->nnodes == 1 && x->graph->node[0]->type == CU_GRAPH_NODE_TYPE_EMPTY)
		return (CUresult)setting("DRIVER_EMPTY", 0);
	return run(x->graph, s);
}

API CUresult cuGraphLaunch(CUgraphExec x, CUstream s)
{
	AROUND(cuGraphLaunch, launched(a.hGraph, a.hStream), x, s);
}

API CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
	AROUND(cuLaunchKernelEx, run_kernel(a.f, a.config->hStream), c, f, params, extra);
}

static CUresult run_function(CUhostFn f, void *user)
{
	f(user);
	return CUDA_SUCCESS;
}

API CUresult cuLaunchHostFunc(CUstream s, CUhostFn f, void *user)
{
	AROUND(cuLaunchHostFunc, run_function(a.fn, a.userData), s, f, user);
}
