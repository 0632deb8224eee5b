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

/* What was used most can be set to 0. */
int graph_memory_attribute(int device, int attribute, void *value, bool set)
{
	int error = device_check(device);

	if (error)
		return error;
	if (!value || attribute < cudaGraphMemAttrUsedMemCurrent || attribute > cudaGraphMemAttrReservedMemHigh)
		return cudaErrorInvalidValue;
	if (set)
		return attribute != cudaGraphMemAttrUsedMemCurrent
			&& attribute != cudaGraphMemAttrReservedMemCurrent && !*(uint64_t *)value ? 0
			: cudaErrorInvalidValue;
	*(uint64_t *)value = 0;
	return 0;
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType a, void *value)
{
	return rt(graph_memory_attribute(device, (int)a, value, false));
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType a, void *value)
{
	return rt(graph_memory_attribute(device, (int)a, value, true));
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
	return rt(device_check(device));
}
