/* fake_driver: libcuda.so.1 and libcupti.so in one library, for machines without a GPU. It manages
 * contexts, modules and memory and calls CUPTI's callbacks around the calls of a program, as the
 * real libraries do, and does what those seldom do, to test the injected library. Handles are used
 * again at once. Long because the two libraries share their state. Kernels do nothing, or write records
 * (fake_driver_records.c). Environment variables:
 *   DRIVER_DEVICES  number of devices     DRIVER_SM     compute capability, "90"
 *   DRIVER_MIB      device memory         DRIVER_CUPTI  error of cuptiSubscribe()
 *   DRIVER_FAULT    every kernel faults
 * The other files have more. If OLD is defined, it lacks a function that consan needs. */
#include "fake_driver.h"

#include "instrument/record/record.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef OLD
#undef cuModuleGetGlobal
#define cuModuleGetGlobal missing_function
CUresult missing_function(CUdeviceptr *at, size_t *bytes, CUmodule m, const char *name);
#endif

struct CUctx_st {
	bool live, primary, dead;
	unsigned refs, depth;
	unsigned long long id;
	CUdevice device;
};
#define VARIABLE 64 /* bytes for each of consan's variables */
struct CUmod_st { char *text; struct CUctx_st *context; char *bytes; }; /* 64 * VARIABLE, in pages of their own */
struct CUlib_st { char *text; struct CUmod_st *loaded[4]; };
struct CUfunc_st { struct CUmod_st *module; struct CUlib_st *library; char name[64]; };
struct CUstream_st { struct CUctx_st *context; unsigned flags; };

static struct CUctx_st context[4];
static struct CUmod_st *module[64];
static struct CUlib_st library[8];
/* context: NULL: of the process; before: it lies in the room in front of another one */
static struct block { char *at; size_t bytes; struct CUctx_st *context; bool before; } block[256];
enum { ROOM = 64 << 10 };        /* in front of each block */
static CUdeviceptr next_before;  /* the block in front of which the next one lies; 0: anywhere */
static struct { char *at; size_t bytes; } pinned[16];
static struct physical { int file; unsigned refs; size_t bytes; CUdeviceptr mapped; } physical[16];
static unsigned long long last_id;
static _Thread_local struct CUctx_st *stack[16];
static _Thread_local unsigned depth = 1;

unsigned long long setting(const char *name, unsigned long long otherwise)
{
	const char *s = getenv(name);

	return s && *s ? strtoull(s, NULL, 0) : otherwise;
}

#define CURRENT stack[depth - 1]
#define NEED_CONTEXT(c) do { if (!(c) || !(c)->live) return CUDA_ERROR_INVALID_CONTEXT; \
		if ((c)->dead) return CUDA_ERROR_ILLEGAL_ADDRESS; } while (0)

/* ---- CUPTI ---- */

static CUpti_CallbackFunc callback;
static bool enabled[CUPTI_DRIVER_TRACE_CBID_SIZE], runtime_enabled;
/* Calls that a callback makes have the correlation id of the call that it is for. */
static _Thread_local uint32_t call;

API CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *s, CUpti_CallbackFunc f, void *user)
{
	(void)s, (void)user;
	callback = f;
	return (CUptiResult)setting("DRIVER_CUPTI", 0); /* then consan enables no callback */
}

API CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle s, CUpti_CallbackDomain d,
	CUpti_CallbackId id)
{
	(void)s, (void)d;
	enabled[id] = on;
	return CUPTI_SUCCESS;
}

API CUptiResult cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle s, CUpti_CallbackDomain d)
{
	(void)s;
	if (d == CUPTI_CB_DOMAIN_RUNTIME_API)
		runtime_enabled = on;
	else
		memset(enabled, (int)on, sizeof enabled);
	return CUPTI_SUCCESS;
}

API CUptiResult cuptiGetResultString(CUptiResult r, const char **text)
{
	(void)r;
	*text = "CUPTI_ERROR_OF_A_TEST";
	return CUPTI_SUCCESS;
}

void call_back(CUpti_ApiCallbackSite site, CUpti_CallbackId id, const char *name,
	const void *params, const char *symbol, CUresult *r)
{
	CUpti_CallbackData d = { .callbackSite = site, .functionName = name, .functionParams = params,
		.functionReturnValue = r, .symbolName = symbol };
	static _Thread_local unsigned inside;
	static uint32_t calls;

	if (site == CUPTI_API_ENTER && !inside++)
		call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	d.correlationId = call;
	if (callback && enabled[id])
		callback(NULL, CUPTI_CB_DOMAIN_DRIVER_API, id, &d);
	if (site == CUPTI_API_EXIT)
		inside--;
}

/* Begins a call of the runtime, and ends it with an error. symbol: the kernel of a launch, or
 * NULL */
API void fake_runtime(const char *name, const char *symbol, bool ends, int error)
{
	CUpti_CallbackData d = { .callbackSite = ends ? CUPTI_API_EXIT : CUPTI_API_ENTER,
		.functionName = name, .functionReturnValue = &error, .symbolName = symbol };

	if (callback && runtime_enabled)
		callback(NULL, CUPTI_CB_DOMAIN_RUNTIME_API, 0, &d);
}

/* ---- devices and contexts ---- */

API CUresult cuInit(unsigned flags)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	static bool done;
	int (*begin)(void);
	void *lib;

	(void)flags;
	if (!done && path && (lib = dlopen(path, RTLD_NOW)) &&
			(begin = (int (*)(void))(intptr_t)dlsym(lib, "InitializeInjection")))
		begin();
	done = true;
	return setting("DRIVER_DEVICES", 1) ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

API CUresult cuDriverGetVersion(int *v)
{
	*v = 13000;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *d, int k)
{
	*d = k;
	return k < (int)setting("DRIVER_DEVICES", 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

API CUresult cuDeviceGetCount(int *n)
{
	*n = (int)setting("DRIVER_DEVICES", 1);
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetP2PAttribute(int *v, CUdevice_P2PAttribute a, CUdevice from, CUdevice to)
{
	(void)a;
	*v = 1;
	return from != to ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

API CUresult cuDeviceGetName(char *name, int n, CUdevice d)
{
	snprintf(name, (size_t)n, "fake GPU %d", d);
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d)
{
	const int sm = (int)setting("DRIVER_SM", 90);

	(void)d;
	*v = a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? sm / 10
		: a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? sm % 10 : 4;
	return CUDA_SUCCESS;
}

static struct CUctx_st *begin(CUdevice device, bool primary)
{
	for (size_t k = 0; k < COUNT(context); k++) {
		if (context[k].live)
			continue;
		context[k] = (struct CUctx_st){ .live = true, .primary = primary, .refs = 1,
			.id = ++last_id, .device = device };
		return &context[k];
	}
	return NULL;
}

static void give_up(struct block *b)
{
	if (!b->before)
		munmap(b->at - ROOM, ROOM + b->bytes);
	b->at = NULL;
}

static void end(struct CUctx_st *c)
{
	for (size_t k = 0; k < COUNT(block); k++)
		if (block[k].at && block[k].context == c) {
			give_up(&block[k]);
		}
	for (size_t k = 0; k < COUNT(module); k++)
		if (module[k] && module[k]->context == c) {
			free(module[k]->text);
			module[k]->text = NULL;
			module[k]->context = NULL;
		}
	c->live = false;
}

API CUresult cuCtxGetCurrent(CUcontext *c)
{
	*c = CURRENT;
	return CUDA_SUCCESS;
}

API CUresult cuCtxSetCurrent(CUcontext c)
{
	CURRENT = c;
	return CUDA_SUCCESS;
}

API CUresult cuCtxPushCurrent(CUcontext c)
{
	stack[depth++] = c;
	return CUDA_SUCCESS;
}

API CUresult cuCtxPopCurrent(CUcontext *c)
{
	if (depth == 1)
		return CUDA_ERROR_INVALID_CONTEXT;
	*c = stack[--depth];
	return CUDA_SUCCESS;
}

API CUresult cuCtxGetDevice(CUdevice *d)
{
	NEED_CONTEXT(CURRENT);
	*d = CURRENT->device;
	return CUDA_SUCCESS;
}

API CUresult cuCtxGetId(CUcontext c, unsigned long long *id)
{
	*id = c->id;
	return CUDA_SUCCESS;
}

API CUresult cuCtxCreate(CUcontext *c, CUctxCreateParams *p, unsigned flags, CUdevice d)
{
	(void)p, (void)flags;
	*c = CURRENT = begin(d, false);
	return *c ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API CUresult cuCtxDestroy(CUcontext c)
{
	AROUND(cuCtxDestroy_v2, (end(a.ctx), CUDA_SUCCESS), c);
}

static struct CUctx_st *primary(CUdevice d)
{
	for (size_t k = 0; k < COUNT(context); k++)
		if (context[k].live && context[k].primary && context[k].device == d)
			return &context[k];
	return NULL;
}

API CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
	struct CUctx_st *p = primary(d);

	if (p)
		p->refs++;
	*c = p ? p : begin(d, true);
	return CUDA_SUCCESS;
}

static CUresult release(CUdevice d)
{
	struct CUctx_st *p = primary(d);

	if (p && !--p->refs)
		end(p);
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRelease(CUdevice d)
{
	AROUND(cuDevicePrimaryCtxRelease_v2, release(a.dev), d);
}

API CUresult cuDevicePrimaryCtxReset(CUdevice d)
{
	AROUND(cuDevicePrimaryCtxReset_v2,
		(primary(a.dev) ? end(primary(a.dev)) : (void)0, CUDA_SUCCESS), d);
}

API CUresult cuDevicePrimaryCtxGetState(CUdevice d, unsigned *flags, int *active)
{
	*flags = 0;
	*active = primary(d) != NULL;
	return CUDA_SUCCESS;
}

/* ---- memory: of the host, not resident before it is touched ---- */

static size_t in_use(void)
{
	size_t n = 0;

	for (size_t k = 0; k < COUNT(block); k++)
		n += block[k].at ? block[k].bytes : 0;
	for (size_t k = 0; k < COUNT(physical); k++)
		n += physical[k].refs ? physical[k].bytes : 0;
	return n;
}

static size_t total_memory(void)
{
	return setting("DRIVER_MIB", 4096) << 20;
}

static CUresult allocate(CUdeviceptr *at, size_t bytes, struct CUctx_st *c)
{
	size_t k = 0;
	void *p;

	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	while (k < COUNT(block) && block[k].at)
		k++;
	if (k == COUNT(block) || bytes > total_memory() || in_use() > total_memory() - bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (next_before && bytes <= ROOM / 2) {
		block[k] = (struct block){ (char *)(uintptr_t)(next_before - ROOM / 2), bytes, c, true };
		next_before = 0;
	} else {
		p = mmap(NULL, ROOM + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			-1, 0);
		if (p == MAP_FAILED)
			return CUDA_ERROR_OUT_OF_MEMORY;
		block[k] = (struct block){ (char *)p + ROOM, bytes, c, false };
	}
	*at = (CUdeviceptr)(uintptr_t)block[k].at;
	return CUDA_SUCCESS;
}

static struct block *block_at(CUdeviceptr at)
{
	for (size_t k = 0; k < COUNT(block); k++)
		if (block[k].at && at - (CUdeviceptr)(uintptr_t)block[k].at < block[k].bytes)
			return &block[k];
	return NULL;
}

static CUresult free_block(CUdeviceptr at)
{
	struct block *b = block_at(at);

	if (!b)
		return CUDA_ERROR_INVALID_VALUE;
	give_up(b);
	return CUDA_SUCCESS;
}

API CUresult cuMemGetInfo(size_t *rest, size_t *whole)
{
	*whole = total_memory();
	*rest = total_memory() - in_use();
	return CUDA_SUCCESS;
}

API CUresult cuMemAlloc(CUdeviceptr *at, size_t bytes)
{
	NEED_CONTEXT(CURRENT);
	AROUND(cuMemAlloc_v2, allocate(a.dptr, a.bytesize, CURRENT), at, bytes);
}

API CUresult cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags)
{
	NEED_CONTEXT(CURRENT);
	AROUND(cuMemAllocManaged, allocate(a.dptr, a.bytesize, CURRENT), at, bytes, flags);
}

API CUresult cuMemAllocAsync(CUdeviceptr *at, size_t bytes, CUstream s)
{
	NEED_CONTEXT(CURRENT);
	AROUND(cuMemAllocAsync, allocate(a.dptr, a.bytesize, CURRENT), at, bytes, s);
}

API CUresult cuMemAllocPitch(CUdeviceptr *at, size_t *pitch, size_t width, size_t height,
	unsigned element)
{
	NEED_CONTEXT(CURRENT);
	*pitch = (width + 511) & ~(size_t)511;
	AROUND(cuMemAllocPitch_v2, allocate(a.dptr, *pitch * a.Height, CURRENT), at, pitch, width,
		height, element);
}

/* As current drivers without a sleeping GPU: the memory is gone at once. */
API CUresult cuMemFreeAsync(CUdeviceptr at, CUstream s)
{
	AROUND(cuMemFreeAsync, free_block(a.dptr), at, s);
}

API CUresult cuMemFree(CUdeviceptr at)
{
	AROUND(cuMemFree_v2, free_block(a.dptr), at);
}

static CUresult host_allocated(void **at, size_t bytes)
{
	size_t k = 0;

	*at = malloc(bytes);
	while (k < COUNT(pinned) - 1 && pinned[k].at)
		k++;
	pinned[k].at = *at;
	pinned[k].bytes = bytes;
	return *at ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API CUresult cuMemAllocHost(void **at, size_t bytes)
{
	AROUND(cuMemAllocHost_v2, host_allocated(a.pp, a.bytesize), at, bytes);
}

static CUresult block_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr at)
{
	struct block *b = block_at(at);

	for (size_t k = 0; k < COUNT(physical); k++)
		if (physical[k].refs && at - physical[k].mapped < physical[k].bytes) {
			*base = physical[k].mapped;
			*bytes = physical[k].bytes;
			return CUDA_SUCCESS;
		}
	if (!b)
		return CUDA_ERROR_NOT_FOUND;
	*base = (CUdeviceptr)(uintptr_t)b->at;
	*bytes = b->bytes;
	return CUDA_SUCCESS;
}

API CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr at)
{
	AROUND(cuMemGetAddressRange_v2, block_range(a.pbase, a.psize, a.dptr), base, bytes, at);
}

static CUresult attribute(void *to, CUpointer_attribute what, CUdeviceptr at)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;
	bool host = false;

	for (size_t k = 0; k < COUNT(pinned); k++)
		host |= pinned[k].at && at - (CUdeviceptr)(uintptr_t)pinned[k].at < pinned[k].bytes;
	if (!host && block_range(&base, &bytes, at))
		return CUDA_ERROR_INVALID_VALUE;
	switch (what) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)to = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(bool *)to = false;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)to = bytes;
		break;
	default:
		*(CUdeviceptr *)to = base;
		break;
	}
	return CUDA_SUCCESS;
}

API CUresult cuPointerGetAttribute(void *to, CUpointer_attribute what, CUdeviceptr at)
{
	AROUND(cuPointerGetAttribute, attribute(a.data, a.attribute, a.ptr), to, what, at);
}

/* Memory of the process, mapped or referenced by a handle */
API CUresult cuMemCreate(CUmemGenericAllocationHandle *h, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	size_t k = 0;

	(void)prop, (void)flags;
	while (k < COUNT(physical) && physical[k].refs)
		k++;
	if (k == COUNT(physical) || bytes > total_memory() || in_use() > total_memory() - bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	physical[k] = (struct physical){ fcntl(memfd_create("driver", MFD_CLOEXEC), F_DUPFD_CLOEXEC, 3), 1, bytes,
		0 };
	*h = k;
	return ftruncate(physical[k].file, (off_t)bytes) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

API void fake_before(CUdeviceptr at)
{
	next_before = at;
}

API CUdeviceptr fake_memory(unsigned k)
{
	if (k < COUNT(block))
		return (CUdeviceptr)(uintptr_t)block[k].at;
	k -= COUNT(block);
	return k < COUNT(physical) && physical[k].refs ? physical[k].mapped : 0;
}

static CUresult drop_reference(struct physical *p)
{
	if (!--p->refs)
		close(p->file);
	return CUDA_SUCCESS;
}

API CUresult cuMemRelease(CUmemGenericAllocationHandle h)
{
	return drop_reference(&physical[h]);
}

API CUresult cuMemExportToShareableHandle(void *file, CUmemGenericAllocationHandle h,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	(void)type, (void)flags;
	*(int *)file = dup(physical[h].file);
	return CUDA_SUCCESS;
}

API CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t align, CUdeviceptr where,
	unsigned long long flags)
{
	void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)align, (void)where, (void)flags;
	*at = (CUdeviceptr)(uintptr_t)p;
	return p == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

API CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
	return munmap((void *)(uintptr_t)at, bytes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

API CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle h,
	unsigned long long flags)
{
	(void)offset, (void)flags;
	physical[h].refs++;
	physical[h].mapped = at;
	return mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_FIXED | MAP_NORESERVE, physical[h].file, 0) == MAP_FAILED
		? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

API CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
	for (size_t k = 0; k < COUNT(physical); k++)
		if (physical[k].refs && physical[k].mapped == at && physical[k].bytes == bytes)
			return drop_reference(&physical[k]);
	return CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *d, size_t n)
{
	(void)at, (void)bytes, (void)d, (void)n;
	return CUDA_SUCCESS;
}

static CUresult copied(void *to, const void *from, size_t bytes)
{
	NEED_CONTEXT(CURRENT);
	memcpy(to, from, bytes);
	return CUDA_SUCCESS;
}

API CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream s)
{
	AROUND(cuMemcpyHtoDAsync_v2, copied((void *)(uintptr_t)a.dstDevice, a.srcHost, a.ByteCount), to,
		from, bytes, s);
}

API CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream s)
{
	AROUND(cuMemcpyDtoHAsync_v2, copied(a.dstHost, (const void *)(uintptr_t)a.srcDevice, a.ByteCount),
		to, from, bytes, s);
}

/* Large blocks are cleared only when they are new, and then they are 0 already. */
API CUresult cuMemsetD8(CUdeviceptr at, unsigned char value, size_t bytes)
{
	NEED_CONTEXT(CURRENT);
	if (value || bytes <= 16 << 20)
		memset((void *)(uintptr_t)at, value, bytes);
	return CUDA_SUCCESS;
}

API CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream s)
{
	AROUND(cuMemsetD8Async, cuMemsetD8(a.dstDevice, a.uc, a.N), at, value, bytes, s);
}

/* ---- streams ---- */

static CUresult stream_made(CUstream *s, unsigned flags)
{
	NEED_CONTEXT(CURRENT);
	*s = calloc(1, sizeof **s);
	**s = (struct CUstream_st){ CURRENT, flags };
	return CUDA_SUCCESS;
}

API CUresult cuStreamCreate(CUstream *s, unsigned flags)
{
	AROUND(cuStreamCreate, stream_made(a.phStream, a.Flags), s, flags);
}

API CUresult cuStreamDestroy(CUstream s)
{
	AROUND(cuStreamDestroy_v2, (free(a.hStream), CUDA_SUCCESS), s);
}

API CUresult cuStreamGetFlags(CUstream s, unsigned *flags)
{
	*flags = s->flags;
	return CUDA_SUCCESS;
}

static bool is_default(CUstream s)
{
	return (uintptr_t)s < 16;
}

static struct CUctx_st *context_of(CUstream s)
{
	return is_default(s) ? CURRENT : s->context;
}

API CUresult cuStreamGetCtx(CUstream s, CUcontext *c)
{
	*c = context_of(s);
	return CUDA_SUCCESS;
}

static CUresult waited(CUstream s)
{
	still_recording(is_default(s) ? NULL : s, true);
	NEED_CONTEXT(context_of(s));
	return CUDA_SUCCESS;
}

API CUresult cuStreamSynchronize(CUstream s)
{
	AROUND(cuStreamSynchronize, waited(a.hStream), s);
}

API CUresult cuCtxSynchronize(void)
{
	int a = 0;
	CUresult r = CUDA_SUCCESS;

	call_back(CUPTI_API_ENTER, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, "cuCtxSynchronize", &a, NULL, &r);
	r = waited(NULL);
	call_back(CUPTI_API_EXIT, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, "cuCtxSynchronize", &a, NULL, &r);
	return r;
}

API CUresult cuStreamQuery(CUstream s)
{
	AROUND(cuStreamQuery, still_recording(is_default(a.hStream) ? NULL : a.hStream, false)
		? CUDA_ERROR_NOT_READY : waited(a.hStream), s);
}

API CUresult cuStreamGetId(CUstream s, unsigned long long *id)
{
	*id = (uintptr_t)s;
	return CUDA_SUCCESS;
}

API CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *status)
{
	(void)s;
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

/* ---- modules: a variable exists if its name is in the text ---- */

static CUresult loaded(CUmodule *m, const char *text, struct CUctx_st *c)
{
	size_t k = 0;

	NEED_CONTEXT(c);
	await_kernels(&c->dead);
	if (setting("DRIVER_SM", 90) < 90)
		return CUDA_ERROR_INVALID_PTX;
	while (k < COUNT(module) && module[k] && module[k]->text)
		k++;
	if (k == COUNT(module))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!module[k]) {
		module[k] = calloc(1, sizeof *module[k]);
		module[k]->bytes = mmap(NULL, 64 * VARIABLE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	memset(module[k]->bytes, 0, 64 * VARIABLE);
	module[k]->text = strdup(text);
	module[k]->context = c;
	*m = module[k];
	return CUDA_SUCCESS;
}

static CUresult unloaded(CUmodule m)
{
	free(m->text);
	m->text = NULL;
	return CUDA_SUCCESS;
}

API CUresult cuModuleLoadData(CUmodule *m, const void *image)
{
	AROUND(cuModuleLoadData, loaded(a.module, a.image, CURRENT), m, image);
}

API CUresult cuModuleUnload(CUmodule m)
{
	AROUND(cuModuleUnload, unloaded(a.hmod), m);
}

static struct CUfunc_st *function(struct CUmod_st *m, struct CUlib_st *l, const char *name)
{
	struct CUfunc_st *f = calloc(1, sizeof *f);

	*f = (struct CUfunc_st){ .module = m, .library = l };
	snprintf(f->name, sizeof f->name, "%s", name);
	return f;
}

static CUresult find_function(CUfunction *f, CUmodule m, const char *name)
{
	if (!strstr(m->text, name))
		return CUDA_ERROR_NOT_FOUND;
	*f = function(m, NULL, name);
	return CUDA_SUCCESS;
}

API CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name)
{
	AROUND(cuModuleGetFunction, find_function(a.hfunc, a.hmod, a.name), f, m, name);
}

/* Modules of different length have different addresses of variables. */
API CUresult cuModuleGetGlobal(CUdeviceptr *at, size_t *bytes, CUmodule m, const char *name)
{
	const char *found = m->text ? strstr(m->text, name) : NULL;

	if (!found)
		return CUDA_ERROR_NOT_FOUND;
	*at = (CUdeviceptr)(uintptr_t)(m->bytes + VARIABLE * (strlen(m->text) % 64));
	*bytes = VARIABLE;
	return CUDA_SUCCESS;
}

API CUresult cuLibraryLoadData(CUlibrary *l, const void *code, CUjit_option *o, void **v,
	unsigned n, CUlibraryOption *lo, void **lv, unsigned ln)
{
	size_t k = 0;

	while (k < COUNT(library) && library[k].text)
		k++;
	if (k == COUNT(library))
		return CUDA_ERROR_OUT_OF_MEMORY;
	AROUND(cuLibraryLoadData, (library[k] = (struct CUlib_st){ .text = strdup(a.code) },
		*a.library = &library[k], CUDA_SUCCESS), l, code, o, v, n, lo, lv, ln);
}

static CUresult library_gone(struct CUlib_st *l)
{
	for (size_t k = 0; k < COUNT(context); k++)
		if (context[k].live && l->loaded[k])
			unloaded(l->loaded[k]);
	free(l->text);
	*l = (struct CUlib_st){ 0 };
	return CUDA_SUCCESS;
}

API CUresult cuLibraryUnload(CUlibrary l)
{
	AROUND(cuLibraryUnload, library_gone(a.library), l);
}

API CUresult cuLibraryGetKernel(CUkernel *k, CUlibrary l, const char *name)
{
	*k = (CUkernel)function(NULL, l, name);
	return CUDA_SUCCESS;
}

API CUresult cuLibraryGetModule(CUmodule *m, CUlibrary l)
{
	struct CUmod_st **of = &l->loaded[CURRENT - context];

	if (!l->text)
		abort(); /* as a real driver may */
	if (!*of || (*of)->context != CURRENT)
		if (loaded(of, l->text, CURRENT))
			return CUDA_ERROR_INVALID_PTX;
	*m = *of;
	return CUDA_SUCCESS;
}

API CUresult cuKernelGetFunction(CUfunction *f, CUkernel k)
{
	const struct CUfunc_st *of = (const void *)k;
	CUmodule m;

	if (cuLibraryGetModule(&m, of->library))
		return CUDA_ERROR_INVALID_HANDLE;
	*f = function(m, NULL, of->name);
	return CUDA_SUCCESS;
}

API CUresult cuFuncGetModule(CUmodule *m, CUfunction f)
{
	*m = f->module;
	return f->module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

API CUresult cuFuncGetName(const char **name, CUfunction f)
{
	*name = f->name;
	return CUDA_SUCCESS;
}

API CUresult cuFuncGetAttribute(int *v, CUfunction_attribute what, CUfunction f)
{
	(void)what, (void)f;
	*v = 32;
	return CUDA_SUCCESS;
}

API CUresult cuGetErrorName(CUresult r, const char **name)
{
	*name = r == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
	return CUDA_SUCCESS;
}

/* ---- launches ---- */

/* Prints the pool that a kernel of the program finds; those of consan have names that begin with
 * "consan_". */
CUresult run_kernel(CUfunction f, CUstream s)
{
	struct CUctx_st *c = context_of(s);
	struct record_params p = { 0 };
	CUfunction g = f;
	CUdeviceptr at;
	size_t bytes;

	NEED_CONTEXT(c);
	add_kernel_time(f->name, call);
	if (!strncmp(f->name, "consan_", 7))
		return CUDA_SUCCESS;
	if (!f->module) {
		stack[depth++] = c;
		cuKernelGetFunction(&g, (CUkernel)f);
		depth--;
	}
	if (g->module->context == c && !cuModuleGetGlobal(&at, &bytes, g->module, "consan_gpu_"))
		memcpy(&p, (void *)(uintptr_t)at, sizeof p);
	printf("%s in context %d: %u MiB, %zu MiB in use\n", g->name, (int)(c - context),
		p.pool ? p.chunks >> 8 : 0, in_use() >> 20);
	fflush(stdout);
	c->dead = setting("DRIVER_FAULT", 0);
	start_recording(&p, is_default(s) ? NULL : s, &c->dead);
	return CUDA_SUCCESS;
}

API CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream s, void **params, void **extra)
{
	AROUND_OF(cuLaunchKernel, f->name, a.blockDimX > 1024 ? CUDA_ERROR_INVALID_VALUE
		: run_kernel(a.f, a.hStream), f, gx, gy, gz, bx, by, bz,
		shared, s, params, extra);
}

API CUresult cuLaunchGrid(CUfunction f, int width, int height)
{
	AROUND_OF(cuLaunchGrid, f->name, run_kernel(a.f, NULL), f, width, height);
}
