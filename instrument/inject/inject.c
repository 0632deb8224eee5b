/* inject: the library that CUDA_INJECTION64_PATH brings into the program. It
 * subscribes to CUPTI's driver callbacks, swaps images as they are loaded and
 * surrounds launches. What is recorded and checked is not known here. */
#include "watch.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct driver cu;
_Thread_local bool inject_busy;

static struct consan *session;
static pid_t owner;

/* libjansson.a is linked in, though it is not built for shared libraries: its
 * one reference to data outside is to stdin, which -Wl,--wrap turns into this. */
FILE *__wrap_stdin;

struct consan *inject_session(void)
{
	return session;
}

double inject_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void inject_say(const char *fmt, ...)
{
	va_list ap;

	fputs("consan: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void inject_remark(enum consan_remark kind, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	consan_remark(session, kind, text);
}

/* ---- the session ---- */

static bool open_session(void)
{
	const char *dir = getenv("CONSAN_RESULTS");
	struct text path = { 0 };
	struct err e = { 0 };
	struct timespec t;

	session = consan_open(getenv("CONSAN_OPTIONS"), &e);
	if (!session) {
		inject_say("%s", e.text);
		return false;
	}
	owner = getpid();
	if (!dir || !*dir)
		return true;
	clock_gettime(CLOCK_REALTIME, &t);
	text_printf(&path, "%s/%ld-%lld%09ld.jsonl", dir, (long)owner, (long long)t.tv_sec, t.tv_nsec);
	if (!consan_record_to(session, path.at, &e))
		inject_say("findings are lost: %s: %s", path.at, e.text);
	text_free(&path);
	return true;
}

__attribute__((destructor)) static void close_session(void)
{
	struct consan *c = session;

	session = NULL;
	if (c && owner == getpid())
		consan_close(c);
}

/* ---- the driver and CUPTI ---- */

static bool open_driver(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (!lib)
		lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib)
		return false;
	/* cuda.h maps some names to their newest version: so does the string */
#define NAME_1(name) #name
#define NAME(name) NAME_1(name)
#define CALL(name) cu.p_##name = (__typeof__(cu.p_##name))dlsym(lib, NAME(name));
	DRIVER_CALLS(CALL)
#undef CALL
	return cu.p_cuMemcpyHtoDAsync && cu.p_cuFuncGetModule && cu.p_cuModuleGetGlobal;
}

static struct {
	__typeof__(&cuptiSubscribe) subscribe;
	__typeof__(&cuptiEnableCallback) enable;
	__typeof__(&cuptiEnableDomain) enable_all;
	__typeof__(&cuptiGetResultString) text;
} cupti;

static void *open_cupti(void)
{
	static const char *const name[] = { "libcupti.so.13", "libcupti.so",
		"/usr/local/cuda/lib64/libcupti.so", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
		"/usr/local/cuda/lib/libcupti.so" };
	static const char *const pattern[] = { "/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*",
		"/usr/local/cuda*/targets/*/lib/libcupti.so*", "/opt/*/lib/libcupti.so*",
		"/opt/*/*/lib/python*/site-packages/nvidia/*/lib/libcupti.so*",
		"/usr/*/lib/python*/*-packages/nvidia/*/lib/libcupti.so*" };
	const char *said = getenv("CONSAN_CUPTI");
	void *lib = NULL;
	glob_t g;

	if (said && *said)
		return dlopen(said, RTLD_NOW);
	for (size_t i = 0; !lib && i < ARRAY_SIZE(name); i++)
		lib = dlopen(name[i], RTLD_NOW);
	for (size_t i = 0; !lib && i < ARRAY_SIZE(pattern); i++) {
		if (glob(pattern[i], 0, NULL, &g))
			continue;
		for (size_t k = 0; !lib && k < g.gl_pathc; k++)
			lib = dlopen(g.gl_pathv[k], RTLD_NOW);
		globfree(&g);
	}
	return lib;
}

/* ---- callbacks ---- */

struct seen {
	const void *ours, *original;
	char path[32];             /* what a file was swapped for, by its descriptor: */
	int file;
	struct inject_launch launch;
};

static _Thread_local struct seen seen;

static const char *program(void)
{
	return program_invocation_short_name;
}

static void swap_image(const void **image)
{
	const void *ours = *image ? inject_image(*image, program()) : NULL;

	seen.ours = ours;
	seen.original = *image;
	if (ours)
		*image = ours;
}

static void swap_file(const char **path)
{
	seen.ours = NULL;
	seen.file = *path ? inject_file(*path) : -1;
	if (seen.file < 0)
		return;
	snprintf(seen.path, sizeof seen.path, "/proc/self/fd/%d", seen.file);
	seen.ours = seen.path;
	seen.original = *path;
	*path = seen.path;
}

/* The program's own. */
static CUresult load_again(const struct inject_call *c)
{
	switch (c->id) {
	case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData: {
		const cuLibraryLoadData_params *p = c->params;

		return cu.p_cuLibraryLoadData(p->library, seen.original, p->jitOptions,
			p->jitOptionsValues, p->numJitOptions, p->libraryOptions, p->libraryOptionValues,
			p->numLibraryOptions);
	}
	case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadFromFile: {
		const cuLibraryLoadFromFile_params *p = c->params;

		return cu.p_cuLibraryLoadFromFile(p->library, seen.original, p->jitOptions,
			p->jitOptionsValues, p->numJitOptions, p->libraryOptions, p->libraryOptionValues,
			p->numLibraryOptions);
	}
	case CUPTI_DRIVER_TRACE_CBID_cuModuleLoad:
		return cu.p_cuModuleLoad(((const cuModuleLoad_params *)c->params)->module, seen.original);
	default:
		return cu.p_cuModuleLoadData(((const cuModuleLoadData_params *)c->params)->module, seen.original);
	}
}

/* What the instrumented text cannot be loaded as is loaded as it was. */
static bool loaded(const struct inject_call *c)
{
	CUresult why;

	if (!seen.ours)
		return false;
	if (!*c->result) {
		inject_make_pool();
		return true;
	}
	why = *c->result;
	*c->result = load_again(c);
	inject_refused(why, *c->result);
	return false;
}

static void on_library(const struct inject_call *c)
{
	const cuLibraryLoadData_params *p = c->params;

	if (c->enter)
		swap_image((const void **)(uintptr_t)&p->code);
	else if (loaded(c))
		inject_library(*p->library);
}

/* cuModuleLoadDataEx and cuModuleLoadFatBinary begin like cuModuleLoadData. */
static void on_module(const struct inject_call *c)
{
	if (c->enter)
		swap_image((const void **)(uintptr_t)&((const cuModuleLoadData_params *)c->params)->image);
	else
		loaded(c);
}

static void on_module_file(const struct inject_call *c)
{
	if (c->enter) {
		swap_file((const char **)(uintptr_t)&((const cuModuleLoad_params *)c->params)->fname);
		return;
	}
	loaded(c);
	if (seen.ours)
		close(seen.file);
}

/* The file may be read when the library is used. */
static void on_library_file(const struct inject_call *c)
{
	const cuLibraryLoadFromFile_params *p = c->params;

	if (c->enter)
		swap_file((const char **)(uintptr_t)&p->fileName);
	else if (loaded(c))
		inject_library(*p->library);
}

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
		if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			memcpy(l->cluster, (uint32_t[]){ v->clusterDim.x, v->clusterDim.y, v->clusterDim.z },
				sizeof l->cluster);
	}
}

/* Before or after it; none: the stream that a call without one means. */
static void surround(const struct inject_call *c, CUstream none)
{
	if (!c->enter) {
		inject_after(&seen.launch, *c->result);
		return;
	}
	seen.launch.name = c->symbol;
	if (!seen.launch.stream)
		seen.launch.stream = none;
	inject_before(&seen.launch);
}

_Static_assert(offsetof(cuLaunchCooperativeKernel_params, kernelParams) ==
	offsetof(cuLaunchKernel_params, kernelParams), "they are alike but for `extra`");

static void launch(const struct inject_call *c, CUstream none, bool together)
{
	const cuLaunchKernel_params *p = c->params;
	CUlaunchConfig with = { .gridDimX = p->gridDimX, .gridDimY = p->gridDimY, .gridDimZ = p->gridDimZ,
		.blockDimX = p->blockDimX, .blockDimY = p->blockDimY, .blockDimZ = p->blockDimZ,
		.sharedMemBytes = p->sharedMemBytes, .hStream = p->hStream };

	if (c->enter) {
		inject_describe(&seen.launch, p->f, &with, p->kernelParams, together ? NULL : p->extra);
		seen.launch.cooperative |= together;
	}
	surround(c, none);
}

static void on_launch(const struct inject_call *c)
{
	launch(c, CU_STREAM_LEGACY, false);
}

static void on_launch_ptsz(const struct inject_call *c)
{
	launch(c, CU_STREAM_PER_THREAD, false);
}

static void on_launch_together(const struct inject_call *c)
{
	launch(c, CU_STREAM_LEGACY, true);
}

static void on_launch_together_ptsz(const struct inject_call *c)
{
	launch(c, CU_STREAM_PER_THREAD, true);
}

static void launch_with(const struct inject_call *c, CUstream none)
{
	const cuLaunchKernelEx_params *p = c->params;

	if (c->enter)
		inject_describe(&seen.launch, p->f, p->config, p->kernelParams, p->extra);
	surround(c, none);
}

static void on_launch_with(const struct inject_call *c)
{
	launch_with(c, CU_STREAM_LEGACY);
}

static void on_launch_with_ptsz(const struct inject_call *c)
{
	launch_with(c, CU_STREAM_PER_THREAD);
}

/* Calls of older programs, which few drivers have still. */
static void say_unseen(CUfunction f, const char *call)
{
	char why[120];

	snprintf(why, sizeof why, "launched by %s, which --backend=gpu does not follow", call);
	gpu_unchecked(inject_session(), inject_name(f), inject_queue(CU_STREAM_LEGACY), why);
}

/* All of them begin with the function. */
static void on_launch_old(const struct inject_call *c)
{
	if (c->good)
		say_unseen(((const cuLaunch_params *)c->params)->f, c->name);
}

static void on_launch_devices(const struct inject_call *c)
{
	const cuLaunchCooperativeKernelMultiDevice_params *p = c->params;

	for (unsigned k = 0; c->good && k < p->numDevices; k++)
		say_unseen(p->launchParamsList[k].function, c->name);
}

static void on_capture(const struct inject_call *c)
{
	if (c->enter)
		inject_load_libraries();
}

static void on_tiled(const struct inject_call *c)
{
	const cuTensorMapEncodeTiled_params *p = c->params;
	struct tensormap_args a = { .type = p->tensorDataType, .rank = p->tensorRank,
		.address = (uint64_t)(uintptr_t)p->globalAddress,
		.dim = (const uint64_t *)p->globalDim, .stride = (const uint64_t *)p->globalStrides,
		.box = p->boxDim, .elem_stride = p->elementStrides, .interleave = p->interleave,
		.swizzle = p->swizzle, .l2 = p->l2Promotion, .oob = p->oobFill };

	if (c->good)
		inject_map(p->tensorMap, &a);
}

static void on_im2col(const struct inject_call *c)
{
	const cuTensorMapEncodeIm2col_params *p = c->params;
	struct tensormap_args a = { .im2col = true, .type = p->tensorDataType, .rank = p->tensorRank,
		.address = (uint64_t)(uintptr_t)p->globalAddress,
		.dim = (const uint64_t *)p->globalDim, .stride = (const uint64_t *)p->globalStrides,
		.lower = p->pixelBoxLowerCorner, .upper = p->pixelBoxUpperCorner,
		.channels = p->channelsPerPixel, .pixels = p->pixelsPerColumn,
		.elem_stride = p->elementStrides, .interleave = p->interleave,
		.swizzle = p->swizzle, .l2 = p->l2Promotion, .oob = p->oobFill };

	if (c->good)
		inject_map(p->tensorMap, &a);
}

static void on_map_moved(const struct inject_call *c)
{
	const cuTensorMapReplaceAddress_params *p = c->params;

	if (c->enter)
		inject_map_before(p->tensorMap);
	else if (c->good)
		inject_map_address(p->tensorMap, (uint64_t)(uintptr_t)p->globalAddress);
}

static void on_memory(const struct inject_call *c)
{
	inject_memory(c->id, c->params, c->result);
}

static void on_context_destroyed(const struct inject_call *c)
{
	if (c->good)
		inject_context_ended(((const cuCtxDestroy_v2_params *)c->params)->ctx, 0);
}

static void on_device_reset(const struct inject_call *c)
{
	if (c->good)
		inject_context_ended(NULL, ((const cuDevicePrimaryCtxReset_v2_params *)c->params)->dev);
}

static void on_device_released(const struct inject_call *c)
{
	CUdevice device = ((const cuDevicePrimaryCtxRelease_v2_params *)c->params)->dev;
	unsigned flags;
	int active = 0;

	if (c->good && (!cu.p_cuDevicePrimaryCtxGetState ||
			(!cu.p_cuDevicePrimaryCtxGetState(device, &flags, &active) && !active)))
		inject_context_ended(NULL, device); /* else others hold it */
}

/* Before another may get its handle. */
static void on_module_unloaded(const struct inject_call *c)
{
	if (c->enter)
		inject_unloaded(NULL);
}

static void on_library_unloaded(const struct inject_call *c)
{
	if (c->enter)
		inject_unloaded(((const cuLibraryUnload_params *)c->params)->library);
}

static const struct inject_watch watch[] = {
	INJECT_WATCH(cuLibraryLoadData, on_library)
	INJECT_WATCH(cuLibraryLoadFromFile, on_library_file)
	INJECT_WATCH(cuModuleLoadData, on_module)
	INJECT_WATCH(cuModuleLoadDataEx, on_module)
	INJECT_WATCH(cuModuleLoadFatBinary, on_module)
	INJECT_WATCH(cuModuleLoad, on_module_file)
	INJECT_WATCH(cuModuleUnload, on_module_unloaded)
	INJECT_WATCH(cuLibraryUnload, on_library_unloaded)
	INJECT_WATCH(cuCtxDestroy_v2, on_context_destroyed)
	INJECT_WATCH(cuCtxDetach, on_context_destroyed)
	INJECT_WATCH(cuDevicePrimaryCtxReset, on_device_reset)
	INJECT_WATCH(cuDevicePrimaryCtxReset_v2, on_device_reset)
	INJECT_WATCH(cuDevicePrimaryCtxRelease, on_device_released)
	INJECT_WATCH(cuDevicePrimaryCtxRelease_v2, on_device_released)
	INJECT_WATCH(cuLaunchKernel, on_launch)
	INJECT_WATCH(cuLaunchKernel_ptsz, on_launch_ptsz)
	INJECT_WATCH(cuLaunchKernelEx, on_launch_with)
	INJECT_WATCH(cuLaunchKernelEx_ptsz, on_launch_with_ptsz)
	INJECT_WATCH(cuLaunchCooperativeKernel, on_launch_together)
	INJECT_WATCH(cuLaunchCooperativeKernel_ptsz, on_launch_together_ptsz)
	INJECT_WATCH(cuLaunchCooperativeKernelMultiDevice, on_launch_devices)
	INJECT_WATCH(cuLaunch, on_launch_old)
	INJECT_WATCH(cuLaunchGrid, on_launch_old)
	INJECT_WATCH(cuLaunchGridAsync, on_launch_old)
	INJECT_WATCH(cuStreamBeginCapture, on_capture)
	INJECT_WATCH(cuStreamBeginCapture_ptsz, on_capture)
	INJECT_WATCH(cuStreamBeginCapture_v2, on_capture)
	INJECT_WATCH(cuStreamBeginCapture_v2_ptsz, on_capture)
	INJECT_WATCH(cuStreamBeginCaptureToGraph, on_capture)
	INJECT_WATCH(cuStreamBeginCaptureToGraph_ptsz, on_capture)
	INJECT_WATCH(cuTensorMapEncodeTiled, on_tiled)
	INJECT_WATCH(cuTensorMapEncodeIm2col, on_im2col)
	INJECT_WATCH(cuTensorMapReplaceAddress, on_map_moved)
	{ 0, NULL },
};

/* Only if accesses to global memory are recorded. */
static const struct inject_watch watch_memory[] = {
	INJECT_WATCH(cuMemAlloc_v2, on_memory)
	INJECT_WATCH(cuMemAllocPitch_v2, on_memory)
	INJECT_WATCH(cuMemAllocManaged, on_memory)
	INJECT_WATCH(cuMemAllocAsync, on_memory)
	INJECT_WATCH(cuMemAllocAsync_ptsz, on_memory)
	INJECT_WATCH(cuMemAllocFromPoolAsync, on_memory)
	INJECT_WATCH(cuMemAllocFromPoolAsync_ptsz, on_memory)
	INJECT_WATCH(cuMemFree_v2, on_memory)
	INJECT_WATCH(cuMemFreeAsync, on_memory)
	INJECT_WATCH(cuMemFreeAsync_ptsz, on_memory)
	INJECT_WATCH(cuMemGetAddressRange_v2, on_memory)
	INJECT_WATCH(cuPointerGetAttribute, on_memory)
	INJECT_WATCH(cuPointerGetAttributes, on_memory)
	{ 0, NULL },
};

/* By the number of the call; NULL: nobody wants to hear of it. */
static void (*on_call[CUPTI_DRIVER_TRACE_CBID_SIZE])(const struct inject_call *c);

static void watch_all(const struct inject_watch *w, CUpti_SubscriberHandle handle)
{
	for (; w->on; w++) {
		on_call[w->id] = w->on;
		cupti.enable(1, handle, CUPTI_CB_DOMAIN_DRIVER_API, w->id);
	}
}

static void CUPTIAPI callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
	const void *data)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	const CUpti_CallbackData *d = data;
	struct inject_call c = { .id = id, .name = d->functionName, .symbol = d->symbolName,
		.params = d->functionParams, .enter = d->callbackSite == CUPTI_API_ENTER,
		.result = d->callbackSite == CUPTI_API_ENTER ? NULL : d->functionReturnValue };

	(void)user;
	if (domain != CUPTI_CB_DOMAIN_DRIVER_API || inject_busy || !session || owner != getpid())
		return;
	/* with --gpu-global every call is heard of */
	if (c.enter && gpu_global(session) && !inject_passes(c.name))
		gpu_idle(session);
	if (id >= CUPTI_DRIVER_TRACE_CBID_SIZE || !on_call[id])
		return;
	c.good = !c.enter && !*c.result;
	inject_busy = true;
	inject_times_call(d->correlationId);
	/* a capture of the program's is not to end by what we ask of the driver */
	if (cu.p_cuThreadExchangeStreamCaptureMode)
		cu.p_cuThreadExchangeStreamCaptureMode(&mode);
	on_call[id](&c);
	if (cu.p_cuThreadExchangeStreamCaptureMode)
		cu.p_cuThreadExchangeStreamCaptureMode(&mode);
	inject_busy = false;
}

static bool subscribe(void)
{
	CUpti_SubscriberHandle handle;
	const char *why = "?", *said = getenv("CONSAN_CUPTI");
	void *lib = open_cupti();
	CUptiResult r;

	if (!lib) {
		inject_remark(REMARK_NOTE, "CUPTI (libcupti.so) was not found%s%s, so nothing is checked; it "
			"comes with the CUDA Toolkit, $CONSAN_CUPTI may name it", said && *said ? " at " : "",
			said ? said : "");
		return false;
	}
	cupti.subscribe = (__typeof__(cupti.subscribe))dlsym(lib, "cuptiSubscribe");
	cupti.enable = (__typeof__(cupti.enable))dlsym(lib, "cuptiEnableCallback");
	cupti.enable_all = (__typeof__(cupti.enable_all))dlsym(lib, "cuptiEnableDomain");
	cupti.text = (__typeof__(cupti.text))dlsym(lib, "cuptiGetResultString");
	if (!cupti.subscribe || !cupti.enable || !cupti.enable_all || !cupti.text) {
		inject_remark(REMARK_NOTE, "CUPTI lacks what consan needs, so nothing is checked");
		return false;
	}
	r = cupti.subscribe(&handle, callback, NULL);
	if (r) {
		cupti.text(r, &why);
		inject_remark(REMARK_NOTE, "CUPTI refused its service (%s)%s, so nothing is checked", why,
			r == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
			? ": another tool in this process uses it" : "");
		return false;
	}
	watch_all(watch, handle);
	watch_all(inject_graph_watch, handle);
	if (gpu_times(session))
		inject_times_open(lib);
	if (!gpu_global(session))
		return true;
	watch_all(watch_memory, handle);
	/* which launches overlap depends on every call between them */
	cupti.enable_all(1, handle, CUPTI_CB_DOMAIN_DRIVER_API);
	return true;
}

/* The driver calls this from cuInit(). Its result is of no consequence: the
 * program runs on in any case. */
__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void)
{
	int version = 0;

	if (session || !open_session())
		return 1;
	if (!open_driver()) {
		inject_remark(REMARK_NOTE, "the CUDA driver is too old for --backend=gpu, so nothing is checked");
		return 1;
	}
	inject_busy = true;
	cu.p_cuDriverGetVersion(&version);
	subscribe();
	inject_busy = false;
	return 1;
}
