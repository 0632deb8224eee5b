/* rt_graph_memory: user objects that graphs hold, and memory of graphs, in the runtime API. */
#include "internal.h"

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *user, cudaHostFn_t destroy,
	unsigned count, unsigned flags)
{
	return rt(user_object_new((struct user_object **)object, user, destroy, count));
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count)
{
	return rt(user_object_count(object, count));
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count)
{
	return rt(user_object_count(object, -(long)count));
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
	unsigned flags)
{
	struct graph *g = graph_of(graph);

	return rt(g ? graph_hold(g, object, count, flags & cudaGraphUserObjectMove) : cudaErrorInvalidValue);
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count)
{
	struct graph *g = graph_of(graph);

	return rt(g ? graph_drop(g, object, count) : cudaErrorInvalidValue);
}

/* The memory of graphs is not counted. */
cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType a, void *value)
{
	if (device || !value)
		return rt(device ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
	*(uint64_t *)value = 0;
	return cudaSuccess;
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType a, void *value)
{
	return rt(device ? cudaErrorInvalidDevice : value ? 0 : cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
	return rt(device ? cudaErrorInvalidDevice : 0);
}
