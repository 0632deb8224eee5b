/* memory: the device memory that the program has allocated. It is noted when it is allocated,
 * as after a fault no call of the driver works any more. Not all kinds of memory are noted, so
 * an access is reported only if it is certain to be outside of all allocations. Each
 * allocation gets a guard region behind it, in which every access is an error. */
#include "internal.h"

#include <cupti.h>
#include <pthread.h>

#include "instrument/record/record.h"
#include "ranges.h"

/* managed: managed memory. Behind it there may be memory of the host, which some GPUs can
 * access. */
struct context_memory {
	CUcontext context;
	CUdevice device;
	bool primary;
	struct ranges plain, managed;
};

static struct {
	pthread_mutex_t lock;
	VEC(struct context_memory) context;
} memory = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void note_allocation(uint64_t at, uint64_t bytes, bool managed)
{
	struct context_memory new = { 0 };
	size_t k = 0;

	cu.p_cuCtxGetCurrent(&new.context);
	pthread_mutex_lock(&memory.lock);
	while (k < memory.context.n && memory.context.at[k].context != new.context)
		k++;
	if (k == memory.context.n) {
		cu.p_cuCtxGetDevice(&new.device);
		new.primary = inject_is_primary(new.context, new.device);
		vec_push(&memory.context, new);
	}
	ranges_add(managed ? &memory.context.at[k].managed : &memory.context.at[k].plain, at,
		bytes);
	pthread_mutex_unlock(&memory.lock);
}

static void note_free(uint64_t at)
{
	pthread_mutex_lock(&memory.lock);
	for (size_t k = 0; k < memory.context.n; k++) {
		ranges_remove(&memory.context.at[k].plain, at);
		ranges_remove(&memory.context.at[k].managed, at);
	}
	pthread_mutex_unlock(&memory.lock);
}

void inject_memory_ended(CUcontext context, CUdevice device)
{
	pthread_mutex_lock(&memory.lock);
	for (size_t k = 0; k < memory.context.n; k++) {
		struct context_memory *of = &memory.context.at[k];

		if (context ? of->context != context : !of->primary || of->device != device)
			continue;
		vec_free(&of->plain.list);
		vec_free(&of->managed.list);
		*of = memory.context.at[--memory.context.n];
		k--;
	}
	pthread_mutex_unlock(&memory.lock);
}

static bool find_below(uint64_t addr, struct range *out, bool *managed)
{
	bool found = false;

	pthread_mutex_lock(&memory.lock);
	for (size_t k = 0; k < 2 * memory.context.n; k++) {
		const struct context_memory *of = &memory.context.at[k / 2];
		const struct range *e = ranges_below(k % 2 ? &of->managed : &of->plain, addr);

		if (!e || (found && e->at < out->at))
			continue;
		*out = *e;
		*managed = k % 2;
		found = true;
	}
	pthread_mutex_unlock(&memory.lock);
	return found;
}

void inject_allocations(struct ranges *to)
{
	pthread_mutex_lock(&memory.lock);
	for (size_t k = 0; k < memory.context.n; k++) {
		const struct context_memory *of = &memory.context.at[k];

		for (size_t i = 0; i < of->plain.list.n; i++)
			ranges_add(to, of->plain.list.at[i].at, of->plain.list.at[i].bytes);
		for (size_t i = 0; i < of->managed.list.n; i++)
			ranges_add(to, of->managed.list.at[i].at, of->managed.list.at[i].bytes);
	}
	pthread_mutex_unlock(&memory.lock);
}

/* ---- guards ---- */

/* Distance behind an allocation up to which an access is judged, and the largest guard.
 * Farther away, and for cooperative launches without a guard, memory of an unknown kind may be
 * there. */
#define NEAR (64u << 10)

/* An access is judged up to NEAR behind an allocation, unless the next one begins before
 * (inject_find_memory()). */
void inject_screen_ranges(struct screen_range **to, size_t *n)
{
	struct ranges all = { 0 };

	inject_allocations(&all);
	*n = all.list.n + 1;
	*to = base_alloc(*n * sizeof **to);
	(*to)[0] = (struct screen_range){ 0, 0, NEAR };
	for (size_t k = 0; k < all.list.n; k++) {
		const struct range *e = &all.list.at[k];

		(*to)[k + 1] = (struct screen_range){ e->at, e->at + e->bytes, e->at + e->bytes + NEAR };
	}
	vec_free(&all.list);
}

/* An eighth of the allocation, in units of the driver's granularity. */
static size_t guard_of(size_t bytes)
{
	const size_t unit = 512, some = (bytes / 8 + unit) & ~(unit - 1);

	if (!bytes || bytes > SIZE_MAX / 2 || !gpu_global(inject_session()))
		return 0; /* the driver reports the error; or no access is judged */
	return some < NEAR ? some : NEAR;
}

/* For a pitched allocation: rows of at least as many bytes. */
static size_t guard_rows(size_t width, size_t rows)
{
	size_t bytes;

	if (!width || __builtin_mul_overflow(width, rows, &bytes) || !guard_of(bytes))
		return 0;
	return guard_of(bytes) / (width > 512 ? width : 512) + 1;
}

/* The size that the program asked for, from the beginning of a call to its end. */
static _Thread_local size_t asked;

static void allocate_linear(unsigned call, cuMemAlloc_v2_params *p, CUresult *result)
{
	const bool per_thread = call == CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz ||
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
				per_thread && !a->hStream ? CU_STREAM_PER_THREAD : a->hStream);
			break;
		default:
			*result = cu.p_cuMemAllocFromPoolAsync(p->dptr, asked, f->pool,
				per_thread && !f->hStream ? CU_STREAM_PER_THREAD : f->hStream);
		}
	if (!*result)
		note_allocation((uint64_t)*p->dptr, asked,
			call == CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged);
}

static void allocate_pitched(cuMemAllocPitch_v2_params *p, CUresult *result)
{
	const size_t padded = p->Height;

	if (!result) {
		asked = p->Height;
		p->Height += guard_rows(p->WidthInBytes, asked);
		return;
	}
	p->Height = asked;
	if (*result == CUDA_ERROR_OUT_OF_MEMORY && padded != asked)
		*result = cu.p_cuMemAllocPitch(p->dptr, p->pPitch, p->WidthInBytes, asked,
			p->ElementSizeBytes);
	if (!*result)
		note_allocation((uint64_t)*p->dptr, *p->pPitch * asked, false);
}

/* Is the driver's allocation the one that was noted? It is larger by the guard: at most NEAR
 * and a row. */
static bool is_noted(const struct range *noted, uint64_t at, size_t bytes)
{
	return noted->at == at && bytes >= noted->bytes &&
		bytes - noted->bytes <= noted->bytes + 2 * NEAR;
}

static void correct_size(uint64_t addr, CUpointer_attribute what, void *size)
{
	CUdeviceptr base = 0;
	struct range e;
	size_t bytes = 0;
	bool managed;

	if (what == CU_POINTER_ATTRIBUTE_RANGE_SIZE && size && find_below(addr, &e, &managed) &&
			!cu.p_cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)addr) &&
			is_noted(&e, base, bytes))
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
	case CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz: /* their parameters all begin
								      like the first one's */
		allocate_linear(call, (cuMemAlloc_v2_params *)(uintptr_t)params, result);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2:
		allocate_pitched((cuMemAllocPitch_v2_params *)(uintptr_t)params, result);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2:
	case CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync:
	case CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz:
		if (!result)
			note_free((uint64_t)((const cuMemFree_v2_params *)params)->dptr);
		break;
	case CUPTI_DRIVER_TRACE_CBID_cuMemGetAddressRange_v2: {
		const cuMemGetAddressRange_v2_params *p = params;

		if (result && !*result)
			correct_size((uint64_t)p->dptr, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p->psize);
		break;
	}
	case CUPTI_DRIVER_TRACE_CBID_cuPointerGetAttribute: {
		const cuPointerGetAttribute_params *p = params;

		if (result && !*result)
			correct_size((uint64_t)p->ptr, p->attribute, p->data);
		break;
	}
	case CUPTI_DRIVER_TRACE_CBID_cuPointerGetAttributes: {
		const cuPointerGetAttributes_params *p = params;

		for (unsigned k = 0; result && !*result && k < p->numAttributes; k++)
			correct_size((uint64_t)p->ptr, p->attributes[k], p->data[k]);
		break;
	}
	default:
		break;
	}
}

/* ---- finding the allocation of an address ---- */

static bool is_allocated(uint64_t addr, struct range *out)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;

	if (!cu.p_cuMemGetAddressRange ||
			cu.p_cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)addr))
		return false;
	*out = (struct range){ base, bytes };
	return true;
}

static bool is_variable(const struct inject_launch *l, uint64_t addr, struct range *out)
{
	const char *name;

	for (size_t k = 0; (name = gpu_module_global(l->module, k)); k++) {
		CUdeviceptr at = 0;
		size_t bytes = 0;

		if (cu.p_cuModuleGetGlobal(&at, &bytes, l->loaded, name) || addr - at >= bytes)
			continue;
		*out = (struct range){ at, bytes };
		return true;
	}
	return false;
}

/* Asks the driver, which also knows the kinds of memory that are not noted. Not possible after
 * a fault. The threads of the check have no current context and run no callbacks, so that
 * their calls would count as the program's. */
static bool driver_knows(const struct inject_launch *l, uint64_t addr, struct range *out)
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

/* An address in a guard is certainly outside: the driver knows the allocation, and it is
 * larger than the program asked for. So is one in consan's own memory. Next to an allocation without a guard an address is
 * certainly outside only if no other kind of memory can be there. */
bool inject_find_memory(const struct inject_launch *l, uint64_t addr, uint64_t *from,
	uint64_t *bytes)
{
	struct range e = { 0, 0 }, other;
	bool managed = false, guarded = false, known = find_below(addr, &e, &managed);

	if (known && addr - e.at >= e.bytes + NEAR)
		known = false;
	if (known && addr - e.at >= e.bytes && driver_knows(l, addr, &other)) {
		guarded = is_noted(&e, other.at, other.bytes) || inject_is_own(other.at);
		if (!guarded)
			e = other;
	}
	*from = e.at;
	*bytes = known ? e.bytes : 0;
	return (known && (guarded || addr - e.at < e.bytes || !(managed || l->cooperative))) ||
		addr < NEAR;
}
