/* inject_memory: what the program has allocated on the device, noted as it asks for
 * it, so that it is still known when the GPU has stopped a kernel and no call works
 * any more. Not all kinds of memory are: who is not known to be outside is let be.
 * Behind each there is a guard, which is nobody's. */
#include "internal.h"

#include <cupti.h>
#include <pthread.h>

#include "instrument/rewrite/rewrite.h"

/* managed: memory behind which there may be the host's own, which some GPUs reach as well. */
struct of_context { CUcontext context; CUdevice device; bool primary; struct extents at, managed; };

static struct {
	pthread_mutex_t lock;
	VEC(struct of_context) of;
} memory = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void allocated(uint64_t at, uint64_t bytes, bool managed)
{
	struct of_context new = { 0 };
	size_t k = 0;

	cu.p_cuCtxGetCurrent(&new.context);
	pthread_mutex_lock(&memory.lock);
	while (k < memory.of.n && memory.of.at[k].context != new.context)
		k++;
	if (k == memory.of.n) {
		cu.p_cuCtxGetDevice(&new.device);
		new.primary = inject_is_primary(new.context, new.device);
		vec_push(&memory.of, new);
	}
	extents_add(managed ? &memory.of.at[k].managed : &memory.of.at[k].at, at, bytes);
	pthread_mutex_unlock(&memory.lock);
}

static void freed(uint64_t at)
{
	pthread_mutex_lock(&memory.lock);
	for (size_t k = 0; k < memory.of.n; k++) {
		extents_remove(&memory.of.at[k].at, at);
		extents_remove(&memory.of.at[k].managed, at);
	}
	pthread_mutex_unlock(&memory.lock);
}

void inject_memory_ended(CUcontext context, CUdevice device)
{
	pthread_mutex_lock(&memory.lock);
	for (size_t k = 0; k < memory.of.n; k++) {
		struct of_context *of = &memory.of.at[k];

		if (context ? of->context != context : !of->primary || of->device != device)
			continue;
		vec_free(&of->at.list);
		vec_free(&of->managed.list);
		*of = memory.of.at[--memory.of.n];
		k--;
	}
	pthread_mutex_unlock(&memory.lock);
}

static bool below(uint64_t addr, struct extent *out, bool *managed)
{
	bool found = false;

	pthread_mutex_lock(&memory.lock);
	for (size_t k = 0; k < 2 * memory.of.n; k++) {
		const struct of_context *of = &memory.of.at[k / 2];
		const struct extent *e = extents_below(k % 2 ? &of->managed : &of->at, addr);

		if (!e || (found && e->at < out->at))
			continue;
		*out = *e;
		*managed = k % 2;
		found = true;
	}
	pthread_mutex_unlock(&memory.lock);
	return found;
}

/* ---- guards ---- */

/* Behind what was noted, not farther, and nobody's: nowhere else is it certain. A
 * cooperative launch has memory of the driver's, too. */
#define NEAR (64u << 10)

/* An eighth, in units in which the driver gives memory out. */
static size_t guard_of(size_t bytes)
{
	const size_t unit = 512, some = (bytes / 8 + unit) & ~(unit - 1);

	if (!bytes || bytes > SIZE_MAX / 2)
		return 0; /* the driver says what is wrong with it */
	return some < NEAR ? some : NEAR;
}

/* Of a pitched allocation: rows that are at least as much. */
static size_t guard_rows(size_t width, size_t rows)
{
	size_t bytes;

	if (!width || __builtin_mul_overflow(width, rows, &bytes) || !guard_of(bytes))
		return 0;
	return guard_of(bytes) / (width > 512 ? width : 512) + 1;
}

/* What the program asked for, between the two sides of a call. */
static _Thread_local size_t asked;

static void plain(unsigned call, cuMemAlloc_v2_params *p, CUresult *result)
{
	const bool own = call == CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz ||
		call == CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz;
	const cuMemAllocAsync_params *a = (const void *)p;
	const cuMemAllocFromPoolAsync_params *f = (const void *)p;
	const size_t padded = p->bytesize;

	if (!result) {
		asked = p->bytesize;
		p->bytesize += guard_of(asked);
		return;
	}
	p->bytesize = asked;
	if (*result == CUDA_ERROR_OUT_OF_MEMORY && padded != asked)
		switch (call) {
		case CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2:
			*result = cu.p_cuMemAlloc(p->dptr, asked);
			break;
		case CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged:
			*result = cu.p_cuMemAllocManaged(p->dptr, asked,
				((const cuMemAllocManaged_params *)(const void *)p)->flags);
			break;
		case CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync:
		case CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz:
			*result = cu.p_cuMemAllocAsync(p->dptr, asked,
				own && !a->hStream ? CU_STREAM_PER_THREAD : a->hStream);
			break;
		default:
			*result = cu.p_cuMemAllocFromPoolAsync(p->dptr, asked, f->pool,
				own && !f->hStream ? CU_STREAM_PER_THREAD : f->hStream);
		}
	if (!*result)
		allocated((uint64_t)*p->dptr, asked, call == CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged);
}

static void pitched(cuMemAllocPitch_v2_params *p, CUresult *result)
{
	const size_t padded = p->Height;

	if (!result) {
		asked = p->Height;
		p->Height += guard_rows(p->WidthInBytes, asked);
		return;
	}
	p->Height = asked;
	if (*result == CUDA_ERROR_OUT_OF_MEMORY && padded != asked)
		*result = cu.p_cuMemAllocPitch(p->dptr, p->pPitch, p->WidthInBytes, asked, p->ElementSizeBytes);
	if (!*result)
		allocated((uint64_t)*p->dptr, *p->pPitch * asked, false);
}

/* What the driver says of what begins there is true, but for the guard: a row, at most,
 * and NEAR. */
static bool same(const struct extent *noted, uint64_t at, size_t bytes)
{
	return noted->at == at && bytes >= noted->bytes && bytes - noted->bytes <= noted->bytes + 2 * NEAR;
}

static void tell_size(uint64_t addr, CUpointer_attribute what, void *size)
{
	CUdeviceptr base = 0;
	struct extent e;
	size_t bytes = 0;
	bool managed;

	if (what == CU_POINTER_ATTRIBUTE_RANGE_SIZE && size && below(addr, &e, &managed) &&
			!cu.p_cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)addr) && same(&e, base, bytes))
		*(size_t *)size = e.bytes;
}

void inject_memory(unsigned call, const void *params, CUresult *result)
{
	switch (call) {
	case CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2:
	case CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged:
	case CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync:
	case CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz:
	case CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync:
	case CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz: /* they all begin like the first */
		plain(call, (cuMemAlloc_v2_params *)(uintptr_t)params, result);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2:
		pitched((cuMemAllocPitch_v2_params *)(uintptr_t)params, result);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2:
	case CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync:
	case CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz:
		if (!result)
			freed((uint64_t)((const cuMemFree_v2_params *)params)->dptr);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuMemGetAddressRange_v2: {
		const cuMemGetAddressRange_v2_params *p = params;

		if (result && !*result)
			tell_size((uint64_t)p->dptr, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p->psize);
		break;
	}
	case CUPTI_DRIVER_TRACE_CBID_cuPointerGetAttribute: {
		const cuPointerGetAttribute_params *p = params;

		if (result && !*result)
			tell_size((uint64_t)p->ptr, p->attribute, p->data);
		break;
	}
	case CUPTI_DRIVER_TRACE_CBID_cuPointerGetAttributes: {
		const cuPointerGetAttributes_params *p = params;

		for (unsigned k = 0; result && !*result && k < p->numAttributes; k++)
			tell_size((uint64_t)p->ptr, p->attributes[k], p->data[k]);
		break;
	}
	default:
		break;
	}
}

/* ---- where an address belongs ---- */

static bool is_allocated(uint64_t addr, struct extent *out)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;

	if (!cu.p_cuMemGetAddressRange || cu.p_cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)addr))
		return false;
	*out = (struct extent){ base, bytes };
	return true;
}

static bool is_variable(const struct inject_launch *l, uint64_t addr, struct extent *out)
{
	const char *name;

	for (size_t k = 0; (name = gpu_module_global(l->module, k)); k++) {
		CUdeviceptr at = 0;
		size_t bytes = 0;

		if (cu.p_cuModuleGetGlobal(&at, &bytes, l->loaded, name) || addr - at >= bytes)
			continue;
		*out = (struct extent){ at, bytes };
		return true;
	}
	return false;
}

/* The driver knows kinds that are not noted, while it still answers. The check's threads
 * have no context of their own, and are no callbacks, in which calls would be the program's. */
static bool driver_knows(const struct inject_launch *l, uint64_t addr, struct extent *out)
{
	const bool busy = inject_busy;
	bool yes = false;

	if (!cu.p_cuCtxPushCurrent || !cu.p_cuCtxPopCurrent)
		return false;
	inject_busy = true;
	if (!cu.p_cuCtxPushCurrent(l->context)) {
		yes = is_allocated(addr, out) || is_variable(l, addr, out);
		cu.p_cuCtxPopCurrent(&(CUcontext){ NULL });
	}
	inject_busy = busy;
	return yes;
}

/* In a guard, where the driver knows what the program does not, an address is surely nobody's;
 * beside it, only of memory that has no other kind behind it. */
bool inject_find_memory(const struct inject_launch *l, uint64_t addr, uint64_t *from, uint64_t *bytes)
{
	struct extent e = { 0, 0 }, other;
	bool managed = false, guarded = false, known = below(addr, &e, &managed);

	if (known && addr - e.at >= e.bytes + NEAR)
		known = false;
	if (known && addr - e.at >= e.bytes && driver_knows(l, addr, &other)) {
		guarded = same(&e, other.at, other.bytes);
		if (!guarded)
			e = other;
	}
	*from = e.at;
	*bytes = known ? e.bytes : 0;
	return (known && (guarded || addr - e.at < e.bytes || !(managed || l->cooperative))) || addr < NEAR;
}
