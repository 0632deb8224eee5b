/* overlap: which calls of the driver may come between two launches that overlap. */
#include "internal.h"

#include <string.h>

/* Prefixes of names. Any other call may wait for running kernels, or may put work between the
 * launches of a stream. It ends the overlap: a race may then be missed, but none is invented. */
static const char *const prefix[] = {
	"cuInit", "cuDriverGet", "cuGet", "cuDeviceGet", "cuDevicePrimaryCtxGet",
	"cuDevicePrimaryCtxRetain", "cuCtxGet", "cuCtxSet", "cuCtxPush", "cuCtxPop",
	"cuModuleGet", "cuModuleLoad", "cuLibraryGet", "cuLibraryLoad", "cuKernelGet",
	"cuKernelSet", "cuFuncGet", "cuFuncSet", "cuOccupancy", "cuTensorMap", "cuPointerGet",
	"cuMemGet", "cuEventCreate", "cuStreamCreate", "cuStreamGet", "cuStreamIsCapturing",
	"cuThreadExchange", "cuLaunchKernel", "cuLaunchCooperativeKernel",
};

bool inject_allows_overlap(const char *call)
{
	if (!strcmp(call, "cuLaunchCooperativeKernelMultiDevice"))
		return false;
	for (size_t k = 0; k < ARRAY_SIZE(prefix); k++)
		if (!strncmp(call, prefix[k], strlen(prefix[k])))
			return true;
	return false;
}
