/* What the Python package asks of the process under consan-run (libconsan/cuda/python.c), without Python:
 * `package NAME`. Exit status 0: it gets what it asked for. */
#include "libconsan/consan.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CHECK(x) do { if (!(x)) { printf("line %d: %s\n", __LINE__, #x); return 1; } } while (0)
#define OK(x) CHECK((x) == CUDA_SUCCESS)

static const char ptx[] =
	".version 8.0\n"
	".target sm_80\n"
	".address_size 64\n"
	".visible .entry set(.param .u64 to)\n"
	"{\n"
	"	.reg .b64 %d<2>;\n"
	"	ld.param.u64 %d1, [to];\n"
	"	st.global.u32 [%d1], 7;\n"
	"	ret;\n"
	"}\n";

struct span { const void *at; size_t width, pitch, rows, slice, slices; long grow; size_t write; };

static void *(*function)(const char *name);
static void *(*session)(void);
static void (*run_remark)(const char *text);
static void (*recover)(void);
static void (*wait_for_all)(void);
static void (*operator)(const char *framework, const char *name);
static void (*accesses)(const char *name, int device, const void *stream, int other,
	const void *other_stream, const struct span *span, size_t n, int returns);

static int launch(int *at)
{
	void *args[] = { &at };
	CUfunction f;
	CUmodule m;

	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&f, m, "set"));
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	return 0;
}

/* The session of the program: what it has issued has run when the package asks. */
static int asks(void)
{
	size_t (*kernels)(void *) = (size_t (*)(void *))function("consan_kernels");
	size_t (*errors)(void *) = (size_t (*)(void *))function("consan_errors");
	size_t (*findings)(void *) = (size_t (*)(void *))function("consan_findings");
	void (*clear)(void *) = (void (*)(void *))function("consan_clear");
	void *(*alloc)(void *, size_t, int) = (void *(*)(void *, size_t, int))function("consan_malloc");
	bool (*release)(void *, void *) = (bool (*)(void *, void *))function("consan_free");
	bool (*add)(void *, void *, size_t) = (bool (*)(void *, void *, size_t))function("consan_mem_register");
	bool (*drop)(void *, void *) = (bool (*)(void *, void *))function("consan_mem_unregister");
	bool (*report)(void *, const char *, void *) = (bool (*)(void *, const char *, void *))
		function("consan_write_report");
	const char *(*version)(void) = (const char *(*)(void))function("consan_version");
	struct consan_module *(*load)(void *, const char *, const void *, size_t, unsigned, struct consan_err *) =
		(struct consan_module *(*)(void *, const char *, const void *, size_t, unsigned,
			struct consan_err *))function("consan_load_image");
	const struct consan_kernel *(*kernel)(struct consan_module *, const char *, struct consan_err *) =
		(const struct consan_kernel *(*)(struct consan_module *, const char *, struct consan_err *))
		function("consan_kernel");
	enum consan_status (*launch_own)(void *, const struct consan_launch *, size_t, struct consan_err *) =
		(enum consan_status (*)(void *, const struct consan_launch *, size_t, struct consan_err *))
		function("consan_launch_sized");
	void (*unload)(struct consan_module *) = (void (*)(struct consan_module *))function("consan_unload");
	struct consan_launch l = { .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };
	struct consan_err e;
	struct consan_module *own_module;
	const void *args[1];
	static char own[4096];
	CUdeviceptr at;
	void *c, *memory;

	CHECK(!function("consan_open") && !function("no such function"));
	CHECK(version && version()[0]);
	c = session();
	CHECK(c && c == session());
	OK(cuMemAlloc(&at, 64));
	CHECK(!launch((int *)at) && !launch((int *)8)); /* the second one faults */
	CHECK(kernels(c) == 1 && errors(c) == 1 && findings(c) == 1);
	CHECK(cuMemAlloc(&at, 64) != CUDA_SUCCESS);
	recover();
	OK(cuMemAlloc(&at, 64));
	CHECK(report(c, "/dev/null", NULL));
	clear(c);
	CHECK(errors(c) == 0 && findings(c) == 0);
	memory = alloc(c, 64, 0);
	CHECK(memory && !launch(memory));
	own_module = load(c, "own", ptx, strlen(ptx), 0, &e);
	CHECK(own_module && (l.kernel = kernel(own_module, "set", &e)));
	args[0] = &memory;
	l.args = args;
	CHECK(launch_own(c, &l, sizeof l, &e) == CONSAN_OK && *(int *)memory == 7);
	unload(own_module);
	CHECK(release(c, memory) && !release(c, memory) && errors(c) == 0);
	add(c, own, sizeof own);
	CHECK(drop(c, own) && !drop(c, own));
	run_remark("a remark of the package");
	return 0;
}

/* Operators that ran on the CPU: the report has how often, the most frequent first. */
static int operators(void)
{
	char name[20];

	CHECK(session());
	for (int k = 0; k < 10; k++) {
		snprintf(name, sizeof name, "op%d", k);
		for (int i = 0; i <= k; i++)
			operator("ATen", name);
	}
	operator("Other", "op9");
	return 0;
}

/* An operator that the host executes in place of a kernel of a stream races with what other streams do. */
static int races(bool ordered, bool second)
{
	struct span span = { .width = 64, .rows = 1, .slices = 1, .pitch = 64, .slice = 64, .write = 1 };
	CUstream a, b;
	CUdeviceptr at;

	OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&at, 64));
	span.at = (void *)at;
	OK(cuMemsetD32Async(at, 1, 16, a));
	wait_for_all();
	if (ordered)
		OK(cuStreamSynchronize(a));
	/* in the order of a, too: of a call that two streams order */
	accesses("aten::add_", 0, b, second ? 0 : -1, second ? a : NULL, &span, 1, 0);
	accesses("aten::add_", 0, (void *)0x1230, -1, NULL, &span, 1, 0); /* no stream */
	OK(cuCtxSynchronize());
	accesses("aten::add_", 0, NULL, -1, NULL, &span, 1, 1); /* the default stream */
	return 0;
}

static int find(void)
{
#define FIND(to, name) CHECK(*(void **)&to = dlsym(RTLD_DEFAULT, "consan_run_" name))
	FIND(function, "function");
	FIND(session, "session");
	FIND(run_remark, "remark");
	FIND(recover, "recover");
	FIND(wait_for_all, "wait");
	FIND(operator, "operator");
	FIND(accesses, "accesses");
	return 0;
}

int main(int argc, char **argv)
{
	CUcontext c;

	if (argc != 2 || find())
		return 99;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&c, 0));
	OK(cuCtxSetCurrent(c));
	if (!strcmp(argv[1], "asks"))
		return asks();
	if (!strcmp(argv[1], "operators"))
		return operators();
	if (!strcmp(argv[1], "races"))
		return races(false, false);
	if (!strcmp(argv[1], "ordered"))
		return races(true, false);
	if (!strcmp(argv[1], "both"))
		return races(false, true);
	return 99;
}
