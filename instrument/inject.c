/* inject: the library that CUDA_INJECTION64_PATH brings into the program. It
 * subscribes to CUPTI's driver callbacks, swaps images as they are loaded and
 * surrounds launches. What is recorded and checked is not known here. */
#include "inject.h"

#include <cupti.h>
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
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
static CUresult load_again(CUpti_CallbackId id, const void *params)
{
	switch (id) {
	case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData: {
		const cuLibraryLoadData_params *p = params;

		return cu.p_cuLibraryLoadData(p->library, seen.original, p->jitOptions,
			p->jitOptionsValues, p->numJitOptions, p->libraryOptions, p->libraryOptionValues,
			p->numLibraryOptions);
	}
	case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadFromFile: {
		const cuLibraryLoadFromFile_params *p = params;

		return cu.p_cuLibraryLoadFromFile(p->library, seen.original, p->jitOptions,
			p->jitOptionsValues, p->numJitOptions, p->libraryOptions, p->libraryOptionValues,
			p->numLibraryOptions);
	}
	case CUPTI_DRIVER_TRACE_CBID_cuModuleLoad:
		return cu.p_cuModuleLoad(((const cuModuleLoad_params *)params)->module, seen.original);
	default:
		return cu.p_cuModuleLoadData(((const cuModuleLoadData_params *)params)->module, seen.original);
	}
}

/* What the instrumented text cannot be loaded as is loaded as it was. */
static void after_load(CUpti_CallbackId id, const CUpti_CallbackData *d)
{
	CUresult *r = d->functionReturnValue;

	if (!seen.ours)
		return;
	if (*r) {
		const CUresult why = *r;

		*r = load_again(id, d->functionParams);
		inject_refused(why, *r);
	} else {
		if (id == CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData ||
				id == CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadFromFile) /* it, too, comes first */
			inject_library(*((const cuLibraryLoadData_params *)d->functionParams)->library);
		inject_make_pool();
	}
	/* a library may be read when it is used */
	if (id == CUPTI_DRIVER_TRACE_CBID_cuModuleLoad)
		close(seen.file);
}

/* The stream that a call without one means depends on how it was compiled. */
static CUstream stream_of(CUpti_CallbackId id, CUstream s)
{
	bool own = id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz ||
		id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz ||
		id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz;

	return s ? s : own ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

static void describe(struct inject_launch *l, CUpti_CallbackId id, const CUpti_CallbackData *d)
{
	*l = (struct inject_launch){ .name = d->symbolName };
	if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx ||
			id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz) {
		const cuLaunchKernelEx_params *p = d->functionParams;
		const CUlaunchConfig *c = p->config;

		l->f = p->f;
		memcpy(l->grid, (uint32_t[]){ c->gridDimX, c->gridDimY, c->gridDimZ }, sizeof l->grid);
		memcpy(l->block, (uint32_t[]){ c->blockDimX, c->blockDimY, c->blockDimZ }, sizeof l->block);
		l->shared = c->sharedMemBytes;
		l->stream = stream_of(id, c->hStream);
		l->params = p->kernelParams;
		l->extra = p->extra;
		for (unsigned k = 0; k < c->numAttrs; k++) {
			if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
				l->cooperative = c->attrs[k].value.cooperative;
			if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
				l->programmatic = c->attrs[k].value.programmaticStreamSerializationAllowed;
			if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
				memcpy(l->cluster, (uint32_t[]){ c->attrs[k].value.clusterDim.x,
					c->attrs[k].value.clusterDim.y, c->attrs[k].value.clusterDim.z },
					sizeof l->cluster);
		}
	} else { /* cuLaunchCooperativeKernel lacks `extra` only */
		const cuLaunchKernel_params *p = d->functionParams;

		l->cooperative = id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel ||
			id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz;
		l->f = p->f;
		memcpy(l->grid, (uint32_t[]){ p->gridDimX, p->gridDimY, p->gridDimZ }, sizeof l->grid);
		memcpy(l->block, (uint32_t[]){ p->blockDimX, p->blockDimY, p->blockDimZ }, sizeof l->block);
		l->shared = p->sharedMemBytes;
		l->stream = stream_of(id, p->hStream);
		l->params = p->kernelParams;
		l->extra = l->cooperative ? NULL : p->extra;
	}
}

static void after_tiled(const cuTensorMapEncodeTiled_params *p)
{
	struct tensormap_args a = { .type = p->tensorDataType, .rank = p->tensorRank,
		.address = (uint64_t)(uintptr_t)p->globalAddress,
		.dim = (const uint64_t *)p->globalDim, .stride = (const uint64_t *)p->globalStrides,
		.box = p->boxDim, .elem_stride = p->elementStrides, .interleave = p->interleave,
		.swizzle = p->swizzle, .l2 = p->l2Promotion, .oob = p->oobFill };

	inject_map(p->tensorMap, &a);
}

static void after_im2col(const cuTensorMapEncodeIm2col_params *p)
{
	struct tensormap_args a = { .im2col = true, .type = p->tensorDataType, .rank = p->tensorRank,
		.address = (uint64_t)(uintptr_t)p->globalAddress,
		.dim = (const uint64_t *)p->globalDim, .stride = (const uint64_t *)p->globalStrides,
		.lower = p->pixelBoxLowerCorner, .upper = p->pixelBoxUpperCorner,
		.channels = p->channelsPerPixel, .pixels = p->pixelsPerColumn,
		.elem_stride = p->elementStrides, .interleave = p->interleave,
		.swizzle = p->swizzle, .l2 = p->l2Promotion, .oob = p->oobFill };

	inject_map(p->tensorMap, &a);
}

static void context_ended(CUpti_CallbackId id, const void *params)
{
	CUdevice device = ((const cuDevicePrimaryCtxReset_v2_params *)params)->dev;
	unsigned flags;
	int active = 0;

	switch (id) {
	case CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2:
	case CUPTI_DRIVER_TRACE_CBID_cuCtxDetach:
		inject_context_ended(((const cuCtxDestroy_v2_params *)params)->ctx, 0);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease:
	case CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2:
		if (cu.p_cuDevicePrimaryCtxGetState &&
				(cu.p_cuDevicePrimaryCtxGetState(device, &flags, &active) || active))
			break; /* others hold it */
		inject_context_ended(NULL, device);
		break;
	default:
		inject_context_ended(NULL, device);
		break;
	}
}

static void on_call(CUpti_CallbackId id, const CUpti_CallbackData *d)
{
	bool enter = d->callbackSite == CUPTI_API_ENTER, good;

	good = !enter && !*(CUresult *)d->functionReturnValue;
	switch (id) {
	case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData:
		if (enter)
			swap_image((const void **)(uintptr_t)&((const cuLibraryLoadData_params *)d->functionParams)->code);
		else
			after_load(id, d);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData:
	case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx:
	case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary:
		if (enter)
			swap_image((const void **)(uintptr_t)&((const cuModuleLoadData_params *)d->functionParams)->image);
		else
			after_load(id, d);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuModuleLoad:
		if (enter)
			swap_file((const char **)(uintptr_t)&((const cuModuleLoad_params *)d->functionParams)->fname);
		else
			after_load(id, d);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadFromFile:
		if (enter)
			swap_file((const char **)(uintptr_t)&((const cuLibraryLoadFromFile_params *)
				d->functionParams)->fileName);
		else
			after_load(id, d);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
	case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
	case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
	case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
	case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
	case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
		if (enter) {
			describe(&seen.launch, id, d);
			inject_before(&seen.launch);
		} else {
			inject_after(&seen.launch, *(CUresult *)d->functionReturnValue);
		}
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuModuleUnload: /* before another may get its handle */
		if (enter)
			inject_unloaded(NULL);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuLibraryUnload:
		if (enter)
			inject_unloaded(((const cuLibraryUnload_params *)d->functionParams)->library);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2:
	case CUPTI_DRIVER_TRACE_CBID_cuCtxDetach:
	case CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset:
	case CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2:
	case CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease:
	case CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2:
		if (good)
			context_ended(id, d->functionParams);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
	case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz:
		if (enter)
			inject_graph();
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture:
	case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz:
	case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2:
	case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz:
		if (enter)
			inject_load_libraries();
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuTensorMapEncodeTiled:
		if (good)
			after_tiled(d->functionParams);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuTensorMapEncodeIm2col:
		if (good)
			after_im2col(d->functionParams);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuTensorMapReplaceAddress: {
		const cuTensorMapReplaceAddress_params *p = d->functionParams;

		if (enter)
			inject_map_before(p->tensorMap);
		else if (good)
			inject_map_address(p->tensorMap, (uint64_t)(uintptr_t)p->globalAddress);
		break;
	}
	default:
		inject_memory(id, d->functionParams, enter ? NULL : d->functionReturnValue);
		break;
	}
}

static const CUpti_CallbackId watched[] = {
	CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData, CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData,
	CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx, CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary,
	CUPTI_DRIVER_TRACE_CBID_cuModuleLoad, CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadFromFile,
	CUPTI_DRIVER_TRACE_CBID_cuModuleUnload, CUPTI_DRIVER_TRACE_CBID_cuLibraryUnload,
	CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2, CUPTI_DRIVER_TRACE_CBID_cuCtxDetach,
	CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset, CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2,
	CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease, CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2,
	CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
	CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
	CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
	CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
	CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
	CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz,
	CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2,
	CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz,
	CUPTI_DRIVER_TRACE_CBID_cuTensorMapEncodeTiled, CUPTI_DRIVER_TRACE_CBID_cuTensorMapEncodeIm2col,
	CUPTI_DRIVER_TRACE_CBID_cuTensorMapReplaceAddress,
};

/* inject_memory()'s; only if accesses to global memory are recorded, when others are heard
 * of, too. */
static const CUpti_CallbackId watched_memory[] = {
	CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2,
	CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged, CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync,
	CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz,
	CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync,
	CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz, CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,
	CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync, CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz,
	CUPTI_DRIVER_TRACE_CBID_cuMemGetAddressRange_v2, CUPTI_DRIVER_TRACE_CBID_cuPointerGetAttribute,
	CUPTI_DRIVER_TRACE_CBID_cuPointerGetAttributes,
};

static bool handled(CUpti_CallbackId id)
{
	for (size_t k = 0; k < ARRAY_SIZE(watched); k++)
		if (watched[k] == id)
			return true;
	for (size_t k = 0; k < ARRAY_SIZE(watched_memory); k++)
		if (watched_memory[k] == id)
			return true;
	return false;
}

/* Where every call is heard of. */
static bool concerns(CUpti_CallbackId id, const CUpti_CallbackData *d)
{
	if (d->callbackSite == CUPTI_API_ENTER && !inject_passes(d->functionName))
		gpu_idle(session);
	return handled(id);
}

static void CUPTIAPI callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
	const void *data)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	const CUpti_CallbackData *d = data;

	(void)user;
	if (domain != CUPTI_CB_DOMAIN_DRIVER_API || inject_busy || !session || owner != getpid())
		return;
	if (gpu_global(session) && !concerns(id, d))
		return;
	inject_busy = true;
	/* a capture of the program's is not to end by what we ask of the driver */
	if (cu.p_cuThreadExchangeStreamCaptureMode)
		cu.p_cuThreadExchangeStreamCaptureMode(&mode);
	on_call(id, d);
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
	for (size_t k = 0; k < ARRAY_SIZE(watched); k++)
		cupti.enable(1, handle, CUPTI_CB_DOMAIN_DRIVER_API, watched[k]);
	if (gpu_global(session)) /* which launches overlap depends on every call between them */
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
