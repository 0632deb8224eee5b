/* driven: a program for tests/gpu/driver.c: `driven MODE`. What it prints says what it met;
 * the driver says where each kernel recorded. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GOOD(call) do { \
		CUresult r_ = (call); \
		if (r_) { \
			printf("%s: error %d\n", #call, r_); \
			exit(1); \
		} \
	} while (0)

static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .entry kernel()\n{\n\t.shared .b32 x;\n\t.reg .b32 %r;\n\tld.shared.b32 %r, [x];\n\tret;\n}\n";
static const char longer[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .entry kernel()\n{\n\t.shared .b32 other;\n\t.reg .b32 %r;\n\tld.shared.b32 %r, [other];\n\tret;\n}\n";

static CUfunction load(const char *ptx, CUmodule *m)
{
	CUfunction f;

	GOOD(cuModuleLoadData(m, ptx));
	GOOD(cuModuleGetFunction(&f, *m, "kernel"));
	return f;
}

static void launch(CUfunction f, CUstream s)
{
	GOOD(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL));
}

static CUcontext context(int device)
{
	CUcontext c;

	GOOD(cuCtxCreate(&c, NULL, 0, device));
	return c;
}

/* Two contexts in turn, the second on another device if there are two; then the stream of one
 * that is not the current one. */
static void two(void)
{
	CUcontext c[2];
	CUdevice other;
	CUfunction f[2];
	CUstream s;
	CUmodule m;

	for (int k = 0; k < 2; k++) {
		c[k] = context(k && !cuDeviceGet(&other, 1));
		f[k] = load(text, &m);
	}
	GOOD(cuStreamCreate(&s, 0));
	for (int k = 0; k < 6; k++) {
		GOOD(cuCtxSetCurrent(c[k % 2]));
		launch(f[k % 2], NULL);
	}
	GOOD(cuCtxSetCurrent(c[0]));
	launch(f[1], s);
}

/* Contexts end, and others get their handles. */
static void again(void)
{
	for (int k = 0; k < 4; k++) {
		CUcontext c = context(0);
		CUmodule m;

		launch(load(k % 2 ? text : longer, &m), NULL);
		GOOD(cuCtxDestroy(c));
	}
}

static void primary(bool reset)
{
	for (int k = 0; k < 4; k++) {
		CUcontext c;
		CUmodule m;

		GOOD(cuDevicePrimaryCtxRetain(&c, 0));
		GOOD(cuCtxSetCurrent(c));
		launch(load(k % 2 ? text : longer, &m), NULL);
		GOOD(reset ? cuDevicePrimaryCtxReset(0) : cuDevicePrimaryCtxRelease(0));
	}
}

static void unload(bool libraries)
{
	context(0);
	for (int k = 0; k < 4; k++) {
		const char *ptx = k % 2 ? text : longer;
		CUlibrary l;
		CUkernel f;
		CUmodule m;

		if (libraries) {
			GOOD(cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0));
			GOOD(cuLibraryGetKernel(&f, l, "kernel"));
			launch((CUfunction)f, NULL);
			GOOD(cuLibraryUnload(l));
		} else {
			launch(load(ptx, &m), NULL);
			GOOD(cuModuleUnload(m));
		}
	}
}

static void say_size(const char *what, CUdeviceptr at)
{
	CUdeviceptr base;
	size_t a, b;

	GOOD(cuMemGetAddressRange(&base, &a, at + 1));
	GOOD(cuPointerGetAttribute(&b, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at));
	printf("%s: %zu %zu\n", what, a, b);
}

/* Allocations are as large as they were asked for, whether a guard fits behind them or not. */
static void sizes(void)
{
	CUdeviceptr at;
	size_t pitch, rest, all;

	context(0);
	GOOD(cuMemAlloc(&at, 4000));
	say_size("plain", at);
	GOOD(cuMemAllocManaged(&at, 6000, CU_MEM_ATTACH_GLOBAL));
	say_size("managed", at);
	GOOD(cuMemAllocAsync(&at, 5000, NULL));
	say_size("async", at);
	GOOD(cuMemAllocPitch(&at, &pitch, 1000, 3, 4));
	say_size("pitched", at);
	printf("nothing: %d, too much: %d\n", cuMemAlloc(&at, 0), cuMemAlloc(&at, (size_t)-4096));
	GOOD(cuMemGetInfo(&rest, &all));
	printf("guards: %s\n", all - rest > 4000 + 5000 + 6000 + 3 * pitch ? "yes" : "no");
	GOOD(cuMemAlloc(&at, rest));
	GOOD(cuMemGetInfo(&rest, &all));
	printf("left: %zu\n", rest);
}

static void one(const char *ptx)
{
	CUmodule m;
	CUfunction f;

	context(0);
	f = load(ptx, &m);
	launch(f, NULL);
	printf("waited: %d\n", cuStreamSynchronize(NULL));
}

/* By a call that the header advises against. */
static void grid(void)
{
	CUresult (*run)(CUfunction, int, int) =
		(CUresult (*)(CUfunction, int, int))(intptr_t)dlsym(RTLD_DEFAULT, "cuLaunchGrid");
	CUmodule m;

	context(0);
	GOOD(run(load(text, &m), 1, 1));
}

/* A container, as nvcc makes them. */
static void container(const char *path)
{
	FILE *f = fopen(path, "rb");
	static char bytes[1 << 20];
	CUmodule m;

	context(0);
	if (!f || !fread(bytes, 1, sizeof bytes, f))
		exit(1);
	fclose(f);
	printf("loaded: %d\n", cuModuleLoadData(&m, bytes));
}

/* The child goes on without exec, as the driver forbids; what is injected stays out of it. */
static void forks(void)
{
	int status = 0;
	CUmodule m;
	CUfunction f;

	context(0);
	f = load(text, &m);
	launch(f, NULL);
	if (!fork()) {
		launch(f, NULL);
		exit(0);
	}
	wait(&status);
	launch(f, NULL);
	printf("child: %d\n", status);
}

static const char other[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .entry other()\n{\n\t.shared .b32 x;\n\t.reg .b32 %r;\n\tld.shared.b32 %r, [x];\n\tret;\n}\n";

static void say(void *what)
{
	printf("%s\n", (char *)what);
}

static CUgraphNode kernel_node(CUgraph g, CUfunction f)
{
	CUDA_KERNEL_NODE_PARAMS p = { .func = f, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
		.blockDimX = 32, .blockDimY = 1, .blockDimZ = 1 };
	CUgraphNode n;

	GOOD(cuGraphAddKernelNode(&n, g, NULL, 0, &p));
	return n;
}

/* A kernel in a graph in it, a kernel, a word, in this order, which is not that of the nodes. */
static CUgraph three(CUfunction first, CUfunction second, CUgraphNode node[3])
{
	CUDA_HOST_NODE_PARAMS call = { say, "end" };
	CUgraph g, inner;

	GOOD(cuGraphCreate(&g, 0));
	GOOD(cuGraphCreate(&inner, 0));
	kernel_node(inner, first);
	GOOD(cuGraphAddHostNode(&node[0], g, NULL, 0, &call));
	node[1] = kernel_node(g, second);
	GOOD(cuGraphAddChildGraphNode(&node[2], g, NULL, 0, inner));
	GOOD(cuGraphDestroy(inner));
	GOOD(cuGraphAddDependencies(g, (CUgraphNode[]){ node[1], node[2] }, (CUgraphNode[]){ node[0], node[1] },
		(CUgraphEdgeData[2]){ 0 }, 2));
	return g;
}

/* Two launches of a graph; what is done to it before, or between them. */
static void graphs(const char *what)
{
	CUfunction f[2];
	CUgraphNode node[3], more;
	CUgraphExec run;
	CUmodule m;
	CUgraph g, one_more;
	CUcontext elsewhere;

	context(0);
	f[0] = load(text, &m);
	GOOD(cuModuleLoadData(&m, other));
	GOOD(cuModuleGetFunction(&f[1], m, "other"));
	g = three(f[0], f[1], node);
	if (!strcmp(what, "memory"))
		GOOD(cuGraphAddMemAllocNode(&more, g, NULL, 0, &(CUDA_MEM_ALLOC_NODE_PARAMS){ .bytesize = 64 }));
	GOOD(cuGraphInstantiate(&run, g, !strcmp(what, "device") ? CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH : 0));
	GOOD(cuGraphLaunch(run, NULL));
	if (!strcmp(what, "child"))
		GOOD(cuGraphExecChildGraphNodeSetParams(run, node[2], g));
	if (!strcmp(what, "off") || !strcmp(what, "off-update"))
		GOOD(cuGraphNodeSetEnabled(run, node[1], 0));
	GOOD(cuGraphDestroy(g));
	if (!strcmp(what, "kernel")) {
		CUDA_KERNEL_NODE_PARAMS p = { .func = f[0], .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
			.blockDimX = 32, .blockDimY = 1, .blockDimZ = 1 };

		GOOD(cuGraphExecKernelNodeSetParams(run, node[1], &p));
	}
	if (!strcmp(what, "update") || !strcmp(what, "off-update")) {
		one_more = three(f[0], f[0], node);
		GOOD(cuGraphExecUpdate(run, one_more, &(CUgraphExecUpdateResultInfo){ 0 }));
	}
	if (!strcmp(what, "again")) { /* another gets its handle */
		one_more = three(f[1], f[1], node);
		GOOD(cuGraphExecDestroy(run));
		GOOD(cuGraphInstantiate(&run, one_more, 0));
	}
	if (!strcmp(what, "reset")) { /* a context in which it does not lie */
		GOOD(cuDevicePrimaryCtxRetain(&elsewhere, 0));
		GOOD(cuDevicePrimaryCtxReset(0));
	}
	GOOD(cuGraphLaunch(run, NULL));
	GOOD(cuGraphExecDestroy(run));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	GOOD(cuInit(0));
	if (!strcmp(mode, "one")) one(text);
	else if (!strcmp(mode, "two")) two();
	else if (!strcmp(mode, "grid")) grid();
	else if (!strcmp(mode, "again")) again();
	else if (!strcmp(mode, "reset")) primary(true);
	else if (!strcmp(mode, "release")) primary(false);
	else if (!strcmp(mode, "unload")) unload(false);
	else if (!strcmp(mode, "unload-library")) unload(true);
	else if (!strcmp(mode, "sizes")) sizes();
	else if (!strcmp(mode, "forks")) forks();
	else if (!strcmp(mode, "container") && argc > 2) container(argv[2]);
	else if (!strcmp(mode, "graph") && argc > 2) graphs(argv[2]);
	else return 2;
	return 0;
}
