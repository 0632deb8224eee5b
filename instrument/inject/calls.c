/* inject_calls: which calls of the driver may come between two launches that
 * overlap. What they do is not known here. */
#include "internal.h"

#include <string.h>

/* By the beginnings of names. A call that is not here, known or not, may wait for
 * what runs or put something between the launches of a stream: better a race that
 * is missed than one that is none. */
static const char *const passes[] = {
	"cuInit", "cuDriverGet", "cuGet", "cuDeviceGet", "cuDevicePrimaryCtxGet",
	"cuDevicePrimaryCtxRetain", "cuCtxGet", "cuCtxSet", "cuCtxPush", "cuCtxPop",
	"cuModuleGet", "cuModuleLoad", "cuLibraryGet", "cuLibraryLoad", "cuKernelGet",
	"cuKernelSet", "cuFuncGet", "cuFuncSet", "cuOccupancy", "cuTensorMap", "cuPointerGet",
	"cuMemGet", "cuEventCreate", "cuStreamCreate", "cuStreamGet", "cuStreamIsCapturing",
	"cuThreadExchange", "cuLaunchKernel", "cuLaunchCooperativeKernel",
};

bool inject_passes(const char *call)
{
	if (!strcmp(call, "cuLaunchCooperativeKernelMultiDevice"))
		return false;
	for (size_t k = 0; k < ARRAY_SIZE(passes); k++)
		if (!strncmp(call, passes[k], strlen(passes[k])))
			return true;
	return false;
}
