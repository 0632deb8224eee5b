/* callbacks: the handlers of the driver's calls that load modules, launch kernels, encode tensor
 * maps, allocate memory or end contexts. Those of graphs are in graph_callbacks.c. */
#include "callback.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- loading modules ---- */

struct state {
	struct inject_image *image; /* that is being loaded; NULL: none, or not instrumented */
	const void *ours, *original; /* ours: NULL: the program's image is loaded */
	char path[32];             /* the replaced file name, for `file` */
	int file;
	struct inject_launch launch;
};

static _Thread_local struct state state;

static const char *program(void)
{
	return program_invocation_short_name;
}

static void swap_image(const void **image)
{
	state.image = *image ? inject_image(*image, program()) : NULL;
	state.ours = inject_image_text(state.image);
	state.original = *image;
	if (state.ours)
		*image = state.ours;
}

static void swap_file(const char **path)
{
	state.ours = NULL;
	state.image = *path ? inject_image_in(*path) : NULL;
	state.file = state.image ? inject_file(state.image, *path) : -1;
	if (state.file < 0) {
		if (inject_image_text(state.image))
			state.image = NULL;
		return;
	}
	snprintf(state.path, sizeof state.path, "/proc/self/fd/%d", state.file);
	state.ours = state.path;
	state.original = *path;
	*path = state.path;
}

/* Loads the program's own image. */
static CUresult load_original(const struct inject_call *c)
{
	switch (c->id) {
	case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData: {
		const cuLibraryLoadData_params *p = c->params;

		return cu.p_cuLibraryLoadData(p->library, state.original, p->jitOptions,
			p->jitOptionsValues, p->numJitOptions, p->libraryOptions,
			p->libraryOptionValues, p->numLibraryOptions);
	}
	case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadFromFile: {
		const cuLibraryLoadFromFile_params *p = c->params;

		return cu.p_cuLibraryLoadFromFile(p->library, state.original, p->jitOptions,
			p->jitOptionsValues, p->numJitOptions, p->libraryOptions,
			p->libraryOptionValues, p->numLibraryOptions);
	}
	case CUPTI_DRIVER_TRACE_CBID_cuModuleLoad:
		return cu.p_cuModuleLoad(((const cuModuleLoad_params *)c->params)->module,
			state.original);
	default:
		return cu.p_cuModuleLoadData(((const cuModuleLoadData_params *)c->params)->module,
			state.original);
	}
}

/* If the driver refused the instrumented text, loads the original instead. True: state.image has
 * been loaded. */
static bool check_loaded(const struct inject_call *c)
{
	CUresult why;

	if (state.image && !*c->result) {
		inject_make_pool();
		return true;
	}
	if (!state.image || !state.ours)
		return false;
	why = *c->result;
	*c->result = load_original(c);
	inject_refused(why, *c->result);
	return false;
}

static void on_library(const struct inject_call *c)
{
	const cuLibraryLoadData_params *p = c->params;

	if (c->enter)
		swap_image((const void **)(uintptr_t)&p->code);
	else if (check_loaded(c))
		inject_library(state.image, *p->library);
}

/* Also for cuModuleLoadDataEx and cuModuleLoadFatBinary, whose parameters begin like those of
 * cuModuleLoadData. */
static void on_module(const struct inject_call *c)
{
	const cuModuleLoadData_params *p = c->params;

	if (c->enter)
		swap_image((const void **)(uintptr_t)&p->image);
	else if (check_loaded(c))
		inject_loaded(state.image, *p->module);
}

static void on_module_file(const struct inject_call *c)
{
	const cuModuleLoad_params *p = c->params;

	if (c->enter) {
		swap_file((const char **)(uintptr_t)&p->fname);
		return;
	}
	if (check_loaded(c))
		inject_loaded(state.image, *p->module);
	if (state.ours)
		close(state.file);
}

/* `file` stays open, as the driver may read it when the library is first used. */
static void on_library_file(const struct inject_call *c)
{
	const cuLibraryLoadFromFile_params *p = c->params;

	if (c->enter)
		swap_file((const char **)(uintptr_t)&p->fileName);
	else if (check_loaded(c))
		inject_library(state.image, *p->library);
}

/* ---- launches ---- */

void inject_describe(struct inject_launch *l, CUfunction f, const CUlaunchConfig *c, void **params,
	void **extra)
{
	*l = (struct inject_launch){ .f = f, .grid = { c->gridDimX, c->gridDimY, c->gridDimZ },
		.block = { c->blockDimX, c->blockDimY, c->blockDimZ }, .shared = c->sharedMemBytes,
		.stream = c->hStream, .params = params, .extra = extra };
	for (unsigned k = 0; k < c->numAttrs; k++) {
		const CUlaunchAttributeValue *v = &c->attrs[k].value;

		if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
			l->cooperative = v->cooperative;
		if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
			l->programmatic = v->programmaticStreamSerializationAllowed;
		if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
			l->begun = v->launchCompletionEvent.event;
		if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
			l->begun = v->programmaticEvent.event;
		if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
			l->preferred = v->preferredClusterDim.x;
		if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			memcpy(l->cluster,
				(uint32_t[]){ v->clusterDim.x, v->clusterDim.y, v->clusterDim.z },
				sizeof l->cluster);
	}
}

/* Errors about the launch itself. CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES may be due to the hooks, and the
 * others are those of an earlier launch. */
static bool is_refusal(CUresult r)
{
	return r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_INVALID_HANDLE
		|| r == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE || r == CUDA_ERROR_NOT_SUPPORTED
		|| r == CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

/* Called before and after a launch. f: the call's function; none: the stream that NULL stands
 * for. */
static void around_launch(const struct inject_call *c, const CUfunction *f, CUstream none)
{
	if (!c->enter) {
		if (is_refusal(*c->result))
			inject_call_refused(c->name, inject_name(state.launch.f), *c->result);
		else if (*c->result)
			inject_call_handled();
		inject_after(&state.launch, *c->result);
		return;
	}
	state.launch.name = c->symbol;
	if (!state.launch.stream)
		state.launch.stream = none;
	inject_before(&state.launch);
	if (state.launch.instead)
		*(CUfunction *)(uintptr_t)f = state.launch.instead;
}

_Static_assert(offsetof(cuLaunchCooperativeKernel_params, kernelParams) ==
	offsetof(cuLaunchKernel_params, kernelParams), "they differ only in `extra`");

static void launch(const struct inject_call *c, CUstream none, bool cooperative)
{
	const cuLaunchKernel_params *p = c->params;
	CUlaunchConfig config = { .gridDimX = p->gridDimX, .gridDimY = p->gridDimY,
		.gridDimZ = p->gridDimZ,
		.blockDimX = p->blockDimX, .blockDimY = p->blockDimY, .blockDimZ = p->blockDimZ,
		.sharedMemBytes = p->sharedMemBytes, .hStream = p->hStream };

	if (c->enter) {
		inject_describe(&state.launch, p->f, &config, p->kernelParams,
			cooperative ? NULL : p->extra);
		state.launch.cooperative |= cooperative;
	}
	around_launch(c, &p->f, none);
}

static void on_launch(const struct inject_call *c)
{
	launch(c, CU_STREAM_LEGACY, false);
}

static void on_launch_ptsz(const struct inject_call *c)
{
	launch(c, CU_STREAM_PER_THREAD, false);
}

static void on_launch_cooperative(const struct inject_call *c)
{
	launch(c, CU_STREAM_LEGACY, true);
}

static void on_launch_cooperative_ptsz(const struct inject_call *c)
{
	launch(c, CU_STREAM_PER_THREAD, true);
}

static void launch_ex(const struct inject_call *c, CUstream none)
{
	const cuLaunchKernelEx_params *p = c->params;

	if (c->enter)
		inject_describe(&state.launch, p->f, p->config, p->kernelParams, p->extra);
	around_launch(c, &p->f, none);
}

static void on_launch_ex(const struct inject_call *c)
{
	launch_ex(c, CU_STREAM_LEGACY);
}

static void on_launch_ex_ptsz(const struct inject_call *c)
{
	launch_ex(c, CU_STREAM_PER_THREAD);
}

/* Old calls that few drivers still have. */
static void report_unrecorded(CUfunction f, const char *call)
{
	char why[120];

	snprintf(why, sizeof why, "launched by %s, which --backend=gpu does not support", call);
	gpu_unchecked(inject_session(), inject_name(f), 0, inject_queue(CU_STREAM_LEGACY), why);
}

/* All of these have the function as their first parameter. */
static void on_launch_old(const struct inject_call *c)
{
	if (c->succeeded)
		report_unrecorded(((const cuLaunch_params *)c->params)->f, c->name);
}

static void on_launch_devices(const struct inject_call *c)
{
	const cuLaunchCooperativeKernelMultiDevice_params *p = c->params;

	for (unsigned k = 0; c->succeeded && k < p->numDevices; k++)
		report_unrecorded(p->launchParamsList[k].function, c->name);
}

static void on_capture(const struct inject_call *c)
{
	if (c->enter)
		inject_load_libraries();
}

/* How many blocks are resident, or how large they may be, depends on the code that will run. */
#define OCCUPANCY(call) \
static void on_##call(const struct inject_call *c) \
{ \
	call##_params *p = (call##_params *)(uintptr_t)c->params; \
\
	if (c->enter) \
		p->func = inject_function(p->func); \
}
#define OCCUPANCIES(OCCUPANCY) \
	OCCUPANCY(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
	OCCUPANCY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) \
	OCCUPANCY(cuOccupancyMaxPotentialBlockSize) \
	OCCUPANCY(cuOccupancyMaxPotentialBlockSizeWithFlags) \
	OCCUPANCY(cuOccupancyAvailableDynamicSMemPerBlock) \
	OCCUPANCY(cuOccupancyMaxPotentialClusterSize) \
	OCCUPANCY(cuOccupancyMaxActiveClusters)
OCCUPANCIES(OCCUPANCY)
#undef OCCUPANCY

/* ---- lookups ---- */

static void on_function(const struct inject_call *c)
{
	if (!c->enter && !c->succeeded)
		inject_lookup_failed(c->name, ((const cuModuleGetFunction_params *)c->params)->name,
			*c->result);
}

static void on_kernel(const struct inject_call *c)
{
	if (!c->enter && !c->succeeded)
		inject_lookup_failed(c->name, ((const cuLibraryGetKernel_params *)c->params)->name,
			*c->result);
}

static void on_variable(const struct inject_call *c)
{
	if (!c->enter && !c->succeeded)
		inject_lookup_failed(c->name, "", *c->result);
}

/* ---- tensor maps, memory, contexts ---- */

static void on_tiled(const struct inject_call *c)
{
	const cuTensorMapEncodeTiled_params *p = c->params;
	struct consan_tensormap_args a = { .type = p->tensorDataType, .rank = p->tensorRank,
		.address = (uint64_t)(uintptr_t)p->globalAddress,
		.dim = (const uint64_t *)p->globalDim, .stride = (const uint64_t *)p->globalStrides,
		.box = p->boxDim, .elem_stride = p->elementStrides, .interleave = p->interleave,
		.swizzle = p->swizzle, .l2 = p->l2Promotion, .oob = p->oobFill };

	if (c->succeeded)
		inject_map_encoded(p->tensorMap, &a);
}

static void on_im2col(const struct inject_call *c)
{
	const cuTensorMapEncodeIm2col_params *p = c->params;
	struct consan_tensormap_args a = { .im2col = true, .type = p->tensorDataType,
		.rank = p->tensorRank, .address = (uint64_t)(uintptr_t)p->globalAddress,
		.dim = (const uint64_t *)p->globalDim, .stride = (const uint64_t *)p->globalStrides,
		.lower = p->pixelBoxLowerCorner, .upper = p->pixelBoxUpperCorner,
		.channels = p->channelsPerPixel, .pixels = p->pixelsPerColumn,
		.elem_stride = p->elementStrides, .interleave = p->interleave,
		.swizzle = p->swizzle, .l2 = p->l2Promotion, .oob = p->oobFill };

	if (c->succeeded)
		inject_map_encoded(p->tensorMap, &a);
}

static void on_memory(const struct inject_call *c)
{
	inject_memory(c->id, c->params, c->result);
}

static void on_context_destroyed(const struct inject_call *c)
{
	if (c->enter)
		inject_await(false);
	if (c->succeeded)
		inject_context_ended(((const cuCtxDestroy_v2_params *)c->params)->ctx, 0);
}

static void on_device_reset(const struct inject_call *c)
{
	const cuDevicePrimaryCtxReset_v2_params *p = c->params;

	if (c->enter)
		inject_await(false);
	if (c->succeeded)
		inject_context_ended(NULL, p->dev);
}

static void on_device_released(const struct inject_call *c)
{
	CUdevice device = ((const cuDevicePrimaryCtxRelease_v2_params *)c->params)->dev;
	unsigned flags;
	int active = 0;

	if (c->enter)
		inject_await(false);
	if (c->succeeded && (!cu.p_cuDevicePrimaryCtxGetState ||
			(!cu.p_cuDevicePrimaryCtxGetState(device, &flags, &active) && !active)))
		inject_context_ended(NULL, device); /* else another part of the program still
						       holds it */
}

static void on_module_unloaded(const struct inject_call *c)
{
	if (!c->enter)
		return;
	inject_await(false);
	inject_module_unloaded(((const cuModuleUnload_params *)c->params)->hmod);
}

static void on_library_unloaded(const struct inject_call *c)
{
	if (!c->enter)
		return;
	inject_await(false);
	inject_library_unloaded(((const cuLibraryUnload_params *)c->params)->library);
}

/* ---- tables ---- */

const struct inject_handler inject_handlers[] = {
	INJECT_HANDLER(cuLibraryLoadData, on_library)
	INJECT_HANDLER(cuLibraryLoadFromFile, on_library_file)
	INJECT_HANDLER(cuModuleLoadData, on_module)
	INJECT_HANDLER(cuModuleLoadDataEx, on_module)
	INJECT_HANDLER(cuModuleLoadFatBinary, on_module)
	INJECT_HANDLER(cuModuleLoad, on_module_file)
	INJECT_HANDLER(cuModuleGetFunction, on_function)
	INJECT_HANDLER(cuLibraryGetKernel, on_kernel)
	INJECT_HANDLER(cuModuleGetGlobal, on_variable)
	INJECT_HANDLER(cuModuleGetGlobal_v2, on_variable)
	INJECT_HANDLER(cuLibraryGetGlobal, on_variable)
	INJECT_HANDLER(cuLibraryGetManaged, on_variable)
	INJECT_HANDLER(cuModuleUnload, on_module_unloaded)
	INJECT_HANDLER(cuLibraryUnload, on_library_unloaded)
	INJECT_HANDLER(cuCtxDestroy_v2, on_context_destroyed)
	INJECT_HANDLER(cuCtxDetach, on_context_destroyed)
	INJECT_HANDLER(cuDevicePrimaryCtxReset, on_device_reset)
	INJECT_HANDLER(cuDevicePrimaryCtxReset_v2, on_device_reset)
	INJECT_HANDLER(cuDevicePrimaryCtxRelease, on_device_released)
	INJECT_HANDLER(cuDevicePrimaryCtxRelease_v2, on_device_released)
	INJECT_HANDLER(cuLaunchKernel, on_launch)
	INJECT_HANDLER(cuLaunchKernel_ptsz, on_launch_ptsz)
	INJECT_HANDLER(cuLaunchKernelEx, on_launch_ex)
	INJECT_HANDLER(cuLaunchKernelEx_ptsz, on_launch_ex_ptsz)
	INJECT_HANDLER(cuLaunchCooperativeKernel, on_launch_cooperative)
	INJECT_HANDLER(cuLaunchCooperativeKernel_ptsz, on_launch_cooperative_ptsz)
	INJECT_HANDLER(cuLaunchCooperativeKernelMultiDevice, on_launch_devices)
	INJECT_HANDLER(cuLaunch, on_launch_old)
	INJECT_HANDLER(cuLaunchGrid, on_launch_old)
	INJECT_HANDLER(cuLaunchGridAsync, on_launch_old)
	INJECT_HANDLER(cuStreamBeginCapture, on_capture)
	INJECT_HANDLER(cuStreamBeginCapture_ptsz, on_capture)
	INJECT_HANDLER(cuStreamBeginCapture_v2, on_capture)
	INJECT_HANDLER(cuStreamBeginCapture_v2_ptsz, on_capture)
	INJECT_HANDLER(cuStreamBeginCaptureToGraph, on_capture)
	INJECT_HANDLER(cuStreamBeginCaptureToGraph_ptsz, on_capture)
#define OCCUPANCY(call) INJECT_HANDLER(call, on_##call)
	OCCUPANCIES(OCCUPANCY)
#undef OCCUPANCY
	INJECT_HANDLER(cuTensorMapEncodeTiled, on_tiled)
	INJECT_HANDLER(cuTensorMapEncodeIm2col, on_im2col)
	{ 0, NULL },
};

/* With --gpu-global or --gpu-then-cpu only. */
const struct inject_handler inject_memory_handlers[] = {
	INJECT_HANDLER(cuMemAlloc_v2, on_memory)
	INJECT_HANDLER(cuMemAllocPitch_v2, on_memory)
	INJECT_HANDLER(cuMemAllocManaged, on_memory)
	INJECT_HANDLER(cuMemAllocAsync, on_memory)
	INJECT_HANDLER(cuMemAllocAsync_ptsz, on_memory)
	INJECT_HANDLER(cuMemAllocFromPoolAsync, on_memory)
	INJECT_HANDLER(cuMemAllocFromPoolAsync_ptsz, on_memory)
	INJECT_HANDLER(cuMemFree_v2, on_memory)
	INJECT_HANDLER(cuMemFreeAsync, on_memory)
	INJECT_HANDLER(cuMemFreeAsync_ptsz, on_memory)
	INJECT_HANDLER(cuMemGetAddressRange_v2, on_memory)
	INJECT_HANDLER(cuPointerGetAttribute, on_memory)
	INJECT_HANDLER(cuPointerGetAttributes, on_memory)
	{ 0, NULL },
};
