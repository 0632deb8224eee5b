/* specimen: runs one twin of a specimen of tests/cases/ as a CUDA program that does not depend on
 * consan: `specimen FILE racy|fixed`. Prints how it ended, in one line:
 *   specimen: ran | refused: WHY | stopped: WHY | failed: WHY
 * refused: the driver does not accept the kernel; stopped: the kernel failed; failed: an earlier
 * call failed. specimens.c judges the run. */
#include "tests/cases/harness/specimen.h"

#include <cuda.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void end(const char *how, const char *what, CUresult error, const char *more)
{
	const char *name = NULL;

	cuGetErrorName(error, &name);
	printf("specimen: %s: %s: %s%s%.*s\n", how, what, name ? name : "unknown error",
		*more ? ": " : "", (int)strcspn(more, "\n"), more);
	exit(0);
}

static void must(CUresult error, const char *what)
{
	if (error)
		end("failed", what, error, "");
}
#define MUST(call, ...) must(call(__VA_ARGS__), #call)

/* On a machine without the device: on the first one. */
static uint64_t new_buffer(const struct specimen_maker *make, const uint32_t *words, uint64_t bytes)
{
	CUcontext context, other = NULL;
	CUdeviceptr at;
	CUdevice device;

	if (make->device && !cuDeviceGet(&device, (int)make->device)) {
		MUST(cuDevicePrimaryCtxRetain, &other, device);
		MUST(cuCtxPushCurrent, other);
	}
	MUST(cuMemAlloc, &at, bytes);
	MUST(cuMemcpyHtoD, at, words, bytes);
	if (other)
		MUST(cuCtxPopCurrent, &context);
	return at;
}

static void new_map(void *user, const struct consan_tensormap_args *a, unsigned char *map)
{
	(void)user;
	MUST(cuTensorMapEncodeTiled, (CUtensorMap *)map, (CUtensorMapDataType)a->type, a->rank,
		(void *)(uintptr_t)a->address, a->dim, a->stride, a->box, a->elem_stride,
		(CUtensorMapInterleave)a->interleave, (CUtensorMapSwizzle)a->swizzle,
		(CUtensorMapL2promotion)a->l2, (CUtensorMapFloatOOBfill)a->oob);
}

/* For recursion, which the default of 1 KiB for a thread does not allow */
#define STACK_BYTES 4096

static CUfunction load(const char *text)
{
	static char log[4096];
	CUjit_option option[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *value[] = { log, (void *)(uintptr_t)sizeof log };
	CUmodule module;
	CUfunction f;
	CUresult error;

	if (strstr(text, ".func"))
		MUST(cuCtxSetLimit, CU_LIMIT_STACK_SIZE, STACK_BYTES);
	error = cuModuleLoadDataEx(&module, text, 2, option, value);
	if (error)
		end("refused", "the driver does not assemble it", error, log);
	MUST(cuModuleEnumerateFunctions, &f, 1, module);
	return f;
}

static void launch(const struct specimen *s, CUfunction f, void **args)
{
	CUlaunchAttribute attr[3] = { 0 };
	CUlaunchConfig c = { .gridDimX = s->grid, .gridDimY = 1, .gridDimZ = 1, .blockDimX = s->block,
		.blockDimY = 1, .blockDimZ = 1, .sharedMemBytes = s->shared, .attrs = attr };
	CUresult error;

	MUST(cuStreamCreate, &c.hStream, CU_STREAM_NON_BLOCKING);
	if (s->cluster > 1) {
		attr[c.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
		attr[c.numAttrs].value.clusterDim.x = s->cluster;
		attr[c.numAttrs].value.clusterDim.y = 1;
		attr[c.numAttrs++].value.clusterDim.z = 1;
	}
	if (s->preferred) {
		attr[c.numAttrs].id = CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION;
		attr[c.numAttrs].value.preferredClusterDim.x = s->preferred;
		attr[c.numAttrs].value.preferredClusterDim.y = 1;
		attr[c.numAttrs++].value.preferredClusterDim.z = 1;
	}
	if (s->cluster > 8)
		MUST(cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
	if (s->shared)
		MUST(cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
			(int)s->shared);
	for (unsigned i = 0; !i || i < s->launches; i++) {
		if (i == 1 && s->programmatic) {
			attr[c.numAttrs].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
			attr[c.numAttrs++].value.programmaticStreamSerializationAllowed = 1;
		}
		error = cuLaunchKernelEx(&c, f, args, NULL);
		if (error)
			end(i ? "stopped" : "refused", "cuLaunchKernelEx", error, "");
	}
	error = cuStreamSynchronize(c.hStream);
	if (error)
		end("stopped", "cuStreamSynchronize", error, "");
}

int main(int argc, char **argv)
{
	static _Alignas(64) unsigned char value[MAX_ARGS][CONSAN_TENSORMAP_BYTES];
	struct specimen_maker make = { .buffer = new_buffer, .map = new_map };
	void *args[MAX_ARGS];
	struct specimen s;
	CUcontext context;
	CUdevice device;
	CUfunction f;

	if (argc != 3 || (strcmp(argv[2], "racy") && strcmp(argv[2], "fixed"))) {
		fprintf(stderr, "usage: specimen FILE racy|fixed\n");
		return 2;
	}
	specimen_read(&s, argv[1]);
	MUST(cuInit, 0);
	MUST(cuDeviceGet, &device, 0);
	MUST(cuCtxCreate, &context, NULL, 0, device);
	f = load(specimen_twin(&s, strcmp(argv[2], "racy") ? FIXED : RACY));
	for (size_t i = 0; i < s.nargs; i++) {
		specimen_argument(&s, i, &make, value[i]);
		args[i] = value[i];
	}
	launch(&s, f, args);
	printf("specimen: ran\n");
	return 0;
}
