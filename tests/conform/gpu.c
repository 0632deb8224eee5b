/* Runs a program on a GPU by the driver API, which is loaded at run time: this needs no toolkit. */
#include "conform.h"

#include <dlfcn.h>
#include <stdlib.h>

/* The part of the driver API used here; every function returns 0 for success. */
#define CU_FUNCTIONS \
CU(cuInit, (unsigned)) \
CU(cuDeviceGet, (int *, int)) \
CU(cuDeviceGetAttribute, (int *, int, int)) \
CU(cuDevicePrimaryCtxRetain, (void **, int)) \
CU(cuCtxSetCurrent, (void *)) \
CU(cuCtxSynchronize, (void)) \
CU(cuMemAlloc_v2, (uint64_t *, size_t)) \
CU(cuMemFree_v2, (uint64_t)) \
CU(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t)) \
CU(cuMemcpyDtoH_v2, (void *, uint64_t, size_t)) \
CU(cuModuleLoadDataEx, (void **, const void *, unsigned, int *, void **)) \
CU(cuModuleGetFunction, (void **, void *, const char *)) \
CU(cuModuleUnload, (void *)) \
CU(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	unsigned, void *, void **, void **)) \
CU(cuGetErrorName, (int, const char **)) \
CU(cuTensorMapEncodeTiled, (void *, unsigned, uint32_t, void *, const uint64_t *, \
	const uint64_t *, const uint32_t *, const uint32_t *, unsigned, unsigned, unsigned, \
	unsigned)) \
CU(cuTensorMapEncodeIm2col, (void *, unsigned, uint32_t, void *, const uint64_t *, \
	const uint64_t *, const int32_t *, const int32_t *, uint32_t, uint32_t, \
	const uint32_t *, unsigned, unsigned, unsigned, unsigned))
static struct {
#define CU(name, args) int (*name) args;
	CU_FUNCTIONS
#undef CU
} cu;

static bool check(int status, const char *what, struct consan_err *e)
{
	const char *name = "";

	if (!status)
		return true;
	if (cu.cuGetErrorName)
		cu.cuGetErrorName(status, &name);
	return err_set(e, CONSAN_ERR_LAUNCH, 0, 0, "%s: error %d %s", what, status, name ? name : "");
}
#define CHECK(call, e) check(cu.call, #call, e)

bool gpu_open(struct consan_err *e)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *context;
	int device, major;

	if (!lib)
		return err_set(e, CONSAN_ERR_LAUNCH, 0, 0, "no GPU: libcuda.so.1 is not here");
#define CU(name, args) \
	*(void **)&cu.name = dlsym(lib, #name); \
	if (!cu.name) \
		return err_set(e, CONSAN_ERR_LAUNCH, 0, 0, "the driver has no " #name);
	CU_FUNCTIONS
#undef CU
	if (!CHECK(cuInit(0), e) || !CHECK(cuDeviceGet(&device, 0), e)
			|| !CHECK(cuDevicePrimaryCtxRetain(&context, device), e)
			|| !CHECK(cuCtxSetCurrent(context), e)
			|| !CHECK(cuDeviceGetAttribute(&major, 75, device), e))
		return false;
	return major == 9 || err_set(e, CONSAN_ERR_LAUNCH, 0, 0,
		"the programs are for sm_90a, the GPU is sm_%d0",
		major);
}

/* Maps of the tensors of a program, in the driver's encoding */
static bool make_maps(const struct program *p, uint64_t in, uint64_t out, unsigned char *maps,
	struct consan_err *e)
{
	for (unsigned k = 0; k < p->n; k++) {
		const struct item *i = &p->item[k];
		if (!i->map)
			continue;
		const struct consan_tensormap_args *a = &i->map->args;
		uint64_t address = a->address + (i->map_out ? out + i->out_at : in + i->in_at);
		void *map = maps + CONSAN_TENSORMAP_BYTES * i->map_index;
		bool ok = a->im2col
			? CHECK(cuTensorMapEncodeIm2col(map, a->type, a->rank, (void *)address,
				a->dim,
				a->stride, a->lower, a->upper, a->channels, a->pixels,
					a->elem_stride,
				a->interleave, a->swizzle, a->l2, a->oob), e)
			: CHECK(cuTensorMapEncodeTiled(map, a->type, a->rank, (void *)address,
				a->dim,
				a->stride, a->box, a->elem_stride, a->interleave, a->swizzle, a->l2,
				a->oob), e);
		if (!ok)
			return false;
	}
	return true;
}

static bool load(const struct program *p, unsigned level, void **module, struct consan_err *e)
{
	enum { ERROR_LOG = 5, ERROR_LOG_BYTES = 6, OPTIMIZATION_LEVEL = 7 };
	static char log[4096];
	int option[] = { ERROR_LOG, ERROR_LOG_BYTES, OPTIMIZATION_LEVEL };
	void *value[] = { log, (void *)sizeof log, (void *)(uintptr_t)level };
	int status;

	log[0] = 0;
	status = cu.cuModuleLoadDataEx(module, p->ptx.at, 3, option, value);
	return !status || err_set(e, CONSAN_ERR_LAUNCH, 0, 0, "error %d: %.400s", status, log);
}

bool gpu_run(const struct program *p, unsigned level, unsigned char *out, struct consan_err *e)
{
	uint64_t in_at, out_at, maps_at;
	const size_t map_bytes = CONSAN_TENSORMAP_BYTES * (p->nmaps + 1);
	unsigned char *maps = base_alloc_aligned(128, map_bytes);
	void *module, *kernel;
	void *args[] = { &in_at, &out_at, &maps_at };
	bool ok;

	/* A failure leaves the context broken: nothing is freed then. */
	ok = CHECK(cuMemAlloc_v2(&in_at, p->in_bytes), e)
		&& CHECK(cuMemAlloc_v2(&out_at, p->out_bytes), e)
		&& CHECK(cuMemAlloc_v2(&maps_at, map_bytes), e)
		&& make_maps(p, in_at, out_at, maps, e)
		&& CHECK(cuMemcpyHtoD_v2(in_at, p->in, p->in_bytes), e)
		&& CHECK(cuMemcpyHtoD_v2(out_at, p->out, p->out_bytes), e)
		&& CHECK(cuMemcpyHtoD_v2(maps_at, maps, map_bytes), e);
	free(maps);
	return ok && load(p, level, &module, e)
		&& CHECK(cuModuleGetFunction(&kernel, module, "conform"), e)
		&& CHECK(cuLaunchKernel(kernel, p->ctas, 1, 1, CTA_THREADS, 1, 1, 0, NULL, args,
			NULL), e)
		&& CHECK(cuCtxSynchronize(), e)
		&& CHECK(cuMemcpyDtoH_v2(out, out_at, p->out_bytes), e)
		&& CHECK(cuModuleUnload(module), e) && CHECK(cuMemFree_v2(in_at), e)
		&& CHECK(cuMemFree_v2(out_at), e) && CHECK(cuMemFree_v2(maps_at), e);
}
