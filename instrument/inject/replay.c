/* replay: --gpu-then-cpu: the inputs of a launch, copied from the GPU before it runs. These are its
 * parameters, the variables of its module, and all allocations to which a word of these, or of such an
 * allocation, points, as a conservative garbage collector finds them: a number that only looks like an
 * address costs a copy. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ranges.h"

struct inputs {
	struct inject_launch *l;
	struct ranges known;       /* allocations */
	VEC(struct gpu_region) region;
	VEC(struct constant { const char *name; void *copy; uint64_t bytes; }) constant;
	uint64_t bytes, most;      /* copied, and the most that may be */
	char why[240];             /* they cannot be copied; "" */
};

/* ---- copies ---- */

/* False: in->why. */
static bool copy_home(struct inputs *in, uint64_t at, uint64_t bytes, bool host, void **copy)
{
	in->bytes += bytes;
	if (in->bytes > in->most) {
		snprintf(in->why, sizeof in->why, "its inputs are more than %llu MiB (--gpu-then-memory): at "
			"least %llu bytes, of which %llu at 0x%llx", (unsigned long long)(in->most >> 20),
			(unsigned long long)in->bytes, (unsigned long long)bytes, (unsigned long long)at);
		return false;
	}
	*copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (*copy == MAP_FAILED) {
		snprintf(in->why, sizeof in->why, "no memory for a copy of its inputs, %llu bytes",
			(unsigned long long)bytes);
		return false;
	}
	if (host) {
		memcpy(*copy, (const void *)(uintptr_t)at, bytes);
		return true;
	}
	if (!cu.p_cuMemcpyDtoHAsync(*copy, (CUdeviceptr)at, bytes, in->l->stream) &&
			!cu.p_cuStreamSynchronize(in->l->stream))
		return true;
	munmap(*copy, bytes);
	snprintf(in->why, sizeof in->why, "the GPU's memory at 0x%llx could not be copied, %llu bytes",
		(unsigned long long)at, (unsigned long long)bytes);
	return false;
}

static bool has(const struct inputs *in, uint64_t at)
{
	for (size_t k = 0; k < in->region.n; k++)
		if (at - in->region.at[k].at < in->region.at[k].bytes)
			return true;
	return false;
}

static bool add_region(struct inputs *in, uint64_t at, uint64_t bytes, bool host)
{
	void *copy;

	if (has(in, at))
		return true;
	if (!copy_home(in, at, bytes, host, &copy))
		return false;
	vec_push(&in->region, ((struct gpu_region){ at, bytes, copy, host }));
	return true;
}

/* ---- what words point to ---- */

/* The lowest address that an allocation can have, and the end of the user's half. */
#define LOWEST (1ull << 16)
#define HIGHEST (1ull << 47)

/* Memory of a kind that is not noted when it is allocated. */
static bool driver_knows(uint64_t word, struct range *out, bool *host)
{
	CUdeviceptr at = 0;
	size_t bytes = 0;
	unsigned type = 0;

	if (!cu.p_cuPointerGetAttribute || word < LOWEST || word >= HIGHEST ||
			cu.p_cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)word) ||
			cu.p_cuPointerGetAttribute(&at, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, (CUdeviceptr)word) ||
			cu.p_cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, (CUdeviceptr)word))
		return false;
	*host = type == CU_MEMORYTYPE_HOST;
	*out = (struct range){ (uint64_t)at, bytes };
	return bytes && word - at < bytes && !inject_is_own(at);
}

/* ask: the driver, too, which takes too long for each word of an allocation. */
static bool add_words(struct inputs *in, const void *from, uint64_t bytes, bool ask)
{
	const struct range *last = in->known.list.n ? &in->known.list.at[in->known.list.n - 1] : NULL;
	const uint64_t low = last ? in->known.list.at[0].at : UINT64_MAX;
	const uint64_t high = last ? last->at + last->bytes : 0;
	uint64_t word;

	for (uint64_t k = 0; k + sizeof word <= bytes; k += sizeof word) {
		const struct range *r = NULL;
		struct range other;
		bool host = false;

		memcpy(&word, (const char *)from + k, sizeof word);
		if (word >= low && word < high)
			r = ranges_below(&in->known, word);
		if (r && word - r->at >= r->bytes)
			r = NULL;
		if (!r && ask && driver_knows(word, &other, &host))
			r = &other;
		if (r && !add_region(in, r->at, r->bytes, host))
			return false;
	}
	return true;
}

static bool add_variables(struct inputs *in)
{
	const struct inject_launch *l = in->l;
	const char *name;
	CUdeviceptr at;
	size_t bytes;
	void *copy;

	for (size_t k = 0; (name = gpu_module_global(l->module, k)); k++)
		if (!cu.p_cuModuleGetGlobal(&at, &bytes, l->loaded, name) &&
				!add_region(in, (uint64_t)at, bytes, false))
			return false;
	for (size_t k = 0; (name = gpu_module_const(l->module, k)); k++) {
		if (cu.p_cuModuleGetGlobal(&at, &bytes, l->loaded, name))
			continue;
		if (!copy_home(in, (uint64_t)at, bytes, false, &copy))
			return false;
		vec_push(&in->constant, ((struct constant){ name, copy, bytes }));
	}
	return true;
}

static bool gather(struct inputs *in, const void *params)
{
	const struct inject_launch *l = in->l;
	size_t variables;

	inject_allocations(&in->known);
	if (!add_variables(in))
		return false;
	variables = in->region.n;
	if (!add_words(in, params, gpu_module_params(l->module, l->kernel), true))
		return false;
	for (size_t k = 0; k < in->constant.n; k++)
		if (!add_words(in, in->constant.at[k].copy, in->constant.at[k].bytes, true))
			return false;
	for (size_t k = 0; k < in->region.n; k++) /* it grows */
		if (!add_words(in, in->region.at[k].copy, in->region.at[k].bytes, k < variables))
			return false;
	return true;
}

/* ---- the replay ---- */

static bool global_at(void *user, const char *name, uint64_t *at)
{
	const struct inputs *in = user;
	CUdeviceptr found = 0;
	size_t bytes;

	if (cu.p_cuModuleGetGlobal(&found, &bytes, in->l->loaded, name))
		return false;
	*at = (uint64_t)found;
	return true;
}

static const void *constant(void *user, const char *name, uint64_t *bytes)
{
	const struct inputs *in = user;

	for (size_t k = 0; k < in->constant.n; k++)
		if (!strcmp(in->constant.at[k].name, name)) {
			*bytes = in->constant.at[k].bytes;
			return in->constant.at[k].copy;
		}
	return NULL;
}

static struct gpu_replay *start(struct inputs *in, const struct gpu_launch *g)
{
	const struct inject_launch *l = in->l;
	struct gpu_input x = { .user = in, .global = global_at, .constant = constant, .region = in->region.at,
		.nregions = in->region.n, .cooperative = l->cooperative, .alone = !inject_may_detach() };
	char suffix;
	int regs = 0;

	x.sm = inject_sm(&suffix);
	/* of a module that is instrumented as a whole, the program's own count is not known */
	if (l->instead && !cu.p_cuFuncGetAttribute(&regs, CU_FUNC_ATTRIBUTE_NUM_REGS, l->original))
		x.nregs = (uint32_t)regs;
	return gpu_replay_open(inject_session(), g, &x);
}

static void free_inputs(struct inputs *in)
{
	for (size_t k = 0; k < in->region.n; k++)
		munmap((void *)(uintptr_t)in->region.at[k].copy, in->region.at[k].bytes);
	for (size_t k = 0; k < in->constant.n; k++)
		munmap(in->constant.at[k].copy, in->constant.at[k].bytes);
	vec_free(&in->region);
	vec_free(&in->constant);
	vec_free(&in->known.list);
}

struct gpu_replay *inject_replay(struct inject_launch *l, const struct gpu_launch *g)
{
	struct inputs in = { .l = l, .most = gpu_replay_memory(inject_session()) };
	struct gpu_replay *r = NULL;

	if (!gpu_replay_wants(inject_session(), g))
		return NULL;
	if (inject_pending(l->context))
		snprintf(in.why, sizeof in.why, "other work of the program runs beside it, and its memory changes");
	else if (gather(&in, g->params))
		r = start(&in, g);
	if (*in.why)
		gpu_replay_refused(inject_session(), l->kernel, in.why);
	free_inputs(&in);
	return r;
}
