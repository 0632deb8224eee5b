/* driver_client: a CUDA program to run with the fake driver: `driver_client MODE`. It prints what
 * its calls return; the driver prints where each kernel records. */
#include "client.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PTX(kernel, variable) ".version 8.0\n.target sm_90\n.address_size 64\n" \
	".visible .entry " kernel "()\n{\n\t.shared .b32 " variable ";\n\t.reg .b32 %r;\n" \
	"\tld.shared.b32 %r, [" variable "];\n\tadd.u32 %r, %r, 1;\n\tret;\n}\n"
static const char text[] = PTX("kernel", "x");
static const char longer[] = PTX("kernel", "other");
/* no kernel is cut out of a module with a variable like this: it is instrumented as a whole */
static const char whole[] = PTX("kernel", "x") ".common .global .b32 shared_with_others;\n";
/* for the fake driver, which looks for names only */
static const char cubin[128] = "\177ELF\2\1\1 machine code .entry gemm";
static const char other_kernel[] = PTX("other", "x");

static CUfunction load(const char *ptx, CUmodule *m)
{
	CUfunction f;

	CHECK(cuModuleLoadData(m, ptx));
	CHECK(cuModuleGetFunction(&f, *m, "kernel"));
	return f;
}

static void launch(CUfunction f, CUstream s)
{
	CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL));
}

static CUcontext context(int device)
{
	CUcontext c;

	CHECK(cuCtxCreate(&c, NULL, 0, device));
	return c;
}

/* Two contexts alternately, the second on another device if there are two; then a stream of a
 * context that is not the current one */
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
	CHECK(cuStreamCreate(&s, 0));
	for (int k = 0; k < 6; k++) {
		CHECK(cuCtxSetCurrent(c[k % 2]));
		launch(f[k % 2], NULL);
	}
	CHECK(cuCtxSetCurrent(c[0]));
	launch(f[1], s);
}

/* Two launches, in streams of two devices or of one, of one module or two, or one that the host ends. */
static void beside(const char *what)
{
	void (*tell)(void) = (void (*)(void))(intptr_t)dlsym(RTLD_DEFAULT, "fake_flag");
	const bool one_whole = !strcmp(what, "whole");
	CUcontext c[2] = { context(0) };
	CUfunction f[2];
	CUstream s[2];
	CUmodule m[2];
	void *host;

	CHECK(cuMemAllocHost(&host, 64));
	CHECK(cuStreamCreate(&s[0], CU_STREAM_NON_BLOCKING));
	f[0] = load(one_whole ? whole : text, &m[0]);
	c[1] = !strcmp(what, "devices") ? context(1) : c[0];
	CHECK(cuStreamCreate(&s[1], CU_STREAM_NON_BLOCKING));
	f[1] = one_whole || !strcmp(what, "module") ? f[0] : load(text, &m[1]);
	CHECK(cuCtxSetCurrent(c[0]));
	launch(f[0], s[0]);
	CHECK(cuCtxSetCurrent(c[1]));
	if (strcmp(what, "host"))
		launch(f[1], s[1]);
	else
		tell();
	CHECK(cuStreamSynchronize(s[1]));
	CHECK(cuCtxSetCurrent(c[0]));
	CHECK(cuStreamSynchronize(s[0]));
	printf("ended\n");
}

/* Two kernels of a module with too many to make all of them before the first launch. */
static void beside_many(void)
{
	static const char head[] = ".version 8.0\n.target sm_90\n.address_size 64\n";
	char ptx[4096];
	CUfunction f[2];
	CUstream s[2];
	CUmodule m;

	context(0);
	strcpy(ptx, head);
	for (int k = 0; k < 8; k++)
		sprintf(ptx + strlen(ptx), ".visible .entry k%d()\n{\n\t.shared .b32 x;\n\t.reg .b32 %%r;\n"
			"\tld.shared.b32 %%r, [x];\n\tret;\n}\n", k);
	CHECK(cuModuleLoadData(&m, ptx));
	for (int k = 0; k < 2; k++) {
		CHECK(cuStreamCreate(&s[k], CU_STREAM_NON_BLOCKING));
		CHECK(cuModuleGetFunction(&f[k], m, k ? "k1" : "k0"));
	}
	launch(f[0], s[0]);
	launch(f[1], s[1]);
	CHECK(cuStreamSynchronize(s[1]));
	CHECK(cuStreamSynchronize(s[0]));
	printf("ended\n");
}

/* When the process has been stopped. */
static void *tell_later(void *tell)
{
	for (time_t before = time(NULL), now = before; now - before < 5; now = time(NULL)) {
		before = now;
		usleep(10000);
	}
	((void (*)(void))(intptr_t)tell)();
	return NULL;
}

/* The process gets no processor for long, while the end of a module waits for a launch that has yet to end. */
static void stopped(void)
{
	CUstream s;
	CUmodule m;
	pthread_t thread;
	void *host;
	pid_t child;

	context(0);
	CHECK(cuMemAllocHost(&host, 64));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	launch(load(text, &m), s);
	child = fork();
	if (!child) {
		usleep(100000);
		kill(getppid(), SIGSTOP);
		sleep(12);
		kill(getppid(), SIGCONT);
		_exit(0);
	}
	pthread_create(&thread, NULL, tell_later, dlsym(RTLD_DEFAULT, "fake_flag"));
	CHECK(cuModuleUnload(m));
	pthread_join(thread, NULL);
	waitpid(child, NULL, 0);
}

/* Contexts are destroyed, and others get their handles. */
static void again(void)
{
	for (int k = 0; k < 4; k++) {
		CUcontext c = context(0);
		CUmodule m;

		launch(load(k % 2 ? text : longer, &m), NULL);
		CHECK(cuCtxDestroy(c));
	}
}

static void primary(bool reset)
{
	for (int k = 0; k < 4; k++) {
		CUcontext c;
		CUmodule m;

		CHECK(cuDevicePrimaryCtxRetain(&c, 0));
		CHECK(cuCtxSetCurrent(c));
		launch(load(k % 2 ? text : longer, &m), NULL);
		CHECK(reset ? cuDevicePrimaryCtxReset(0) : cuDevicePrimaryCtxRelease(0));
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
			CHECK(cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0));
			CHECK(cuLibraryGetKernel(&f, l, "kernel"));
			launch((CUfunction)f, NULL);
			CHECK(cuLibraryUnload(l));
		} else {
			launch(load(ptx, &m), NULL);
			CHECK(cuModuleUnload(m));
		}
	}
}

static void print_size(const char *what, CUdeviceptr at)
{
	CUdeviceptr base;
	size_t a, b;

	CHECK(cuMemGetAddressRange(&base, &a, at + 1));
	CHECK(cuPointerGetAttribute(&b, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at));
	printf("%s: %zu %zu\n", what, a, b);
}

/* Allocations have the size that was asked for, whether a guard fits behind them or not. */
static void sizes(void)
{
	CUdeviceptr at;
	size_t pitch, rest, all;

	context(0);
	CHECK(cuMemAlloc(&at, 4000));
	print_size("plain", at);
	CHECK(cuMemAllocManaged(&at, 6000, CU_MEM_ATTACH_GLOBAL));
	print_size("managed", at);
	CHECK(cuMemAllocAsync(&at, 5000, NULL));
	print_size("async", at);
	CHECK(cuMemAllocPitch(&at, &pitch, 1000, 3, 4));
	print_size("pitched", at);
	printf("nothing: %d, too much: %d\n", cuMemAlloc(&at, 0), cuMemAlloc(&at, (size_t)-4096));
	CHECK(cuMemGetInfo(&rest, &all));
	printf("guards: %s\n", all - rest > 4000 + 5000 + 6000 + 3 * pitch ? "yes" : "no");
	CHECK(cuMemAlloc(&at, rest));
	CHECK(cuMemGetInfo(&rest, &all));
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

static void with_cubin(void)
{
	CUmodule m;
	CUfunction f;

	one(text);
	CHECK(cuModuleLoadData(&m, cubin));
	CHECK(cuModuleGetFunction(&f, m, "gemm"));
	launch(f, NULL);
}

/* A launch with too many threads; its line is in the report. */
static void refused(void)
{
	CUmodule m;
	CUfunction f;

	context(0);
	f = load(text, &m);
	printf("refused: %d\n", cuLaunchKernel(f, 1, 1, 1, 2000, 1, 1, 0, NULL, NULL, NULL)); /* refused */
}

static void (*runtime)(const char *name, const char *symbol, bool ends, int error);

/* A kernel that is not there; its line is in the report. */
static void lookup(void)
{
	CUmodule m;
	CUfunction f;

	context(0);
	launch(load(text, &m), NULL);
	printf("missing: %d\n", cuModuleGetFunction(&f, m, "kernel_of_another_module")); /* missing */
}

/* A call that fails, of the driver or of the runtime, which calls the driver. */
static void copy(bool by_runtime)
{
	CUdeviceptr at;

	context(0);
	if (by_runtime)
		runtime("cudaMalloc_v3020", NULL, false, 0);
	printf("allocation: %d\n", cuMemAlloc(&at, (size_t)-4096)); /* allocation */
	if (by_runtime)
		runtime("cudaMalloc_v3020", NULL, true, CUDA_ERROR_OUT_OF_MEMORY);
}

/* kernel<<<...>>> with too many threads, and whether the program asks for the error */
static void stub(bool asks)
{
	CUmodule m;
	CUfunction f;

	context(0);
	f = load(text, &m);
	runtime("__cudaPushCallConfiguration_v13000", NULL, false, 0);
	runtime("__cudaPushCallConfiguration_v13000", NULL, true, 0);
	runtime("cudaLaunchKernel_v7000", "kernel", false, 0);
	cuLaunchKernel(f, 1, 1, 1, 2000, 1, 1, 0, NULL, NULL, NULL);
	runtime("cudaLaunchKernel_v7000", "kernel", true, CUDA_ERROR_INVALID_VALUE);
	if (asks)
		runtime("cudaGetLastError_v3020", NULL, false, 0);
	if (asks)
		runtime("cudaGetLastError_v3020", NULL, true, CUDA_ERROR_INVALID_VALUE);
}

/* The runtime finds no code for a kernel, and asks the driver for what it need not have. */
static void no_code(void)
{
	CUmodule m;
	CUfunction f;

	context(0);
	launch(load(text, &m), NULL);
	runtime("cudaLaunchKernel_v7000", "nowhere", false, 0);
	cuModuleGetFunction(&f, m, "nowhere");
	runtime("cudaLaunchKernel_v7000", "nowhere", true, CUDA_ERROR_NO_BINARY_FOR_GPU);
}

/* A launch by a deprecated call */
static void grid(void)
{
	CUresult (*run)(CUfunction, int, int) =
		(CUresult (*)(CUfunction, int, int))(intptr_t)dlsym(RTLD_DEFAULT, "cuLaunchGrid");
	CUmodule m;

	context(0);
	CHECK(run(load(text, &m), 1, 1));
}

/* Until the file has something. */
static void await_file(const char *path)
{
	struct stat s;

	for (int k = 0; k < 2000 && !(stat(path, &s) == 0 && s.st_size); k++)
		usleep(10000);
}

/* A fat binary, as nvcc makes them */
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

/* The child continues without exec, which the driver forbids; the injected library must do
 * nothing in it. */
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

static void print_text(void *what)
{
	printf("%s\n", (char *)what);
}

static CUgraphNode kernel_node(CUgraph g, CUfunction f)
{
	CUDA_KERNEL_NODE_PARAMS p = { .func = f, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
		.blockDimX = 32, .blockDimY = 1, .blockDimZ = 1 };
	CUgraphNode n;

	CHECK(cuGraphAddKernelNode(&n, g, NULL, 0, &p));
	return n;
}

/* A graph that runs a child graph with a kernel, a kernel and a host function, in this order,
 * which is not the order of the nodes */
static CUgraph graph_of_three(CUfunction first, CUfunction second, CUgraphNode node[3])
{
	CUDA_HOST_NODE_PARAMS call = { print_text, "end" };
	CUgraph g, inner;

	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphCreate(&inner, 0));
	kernel_node(inner, first);
	CHECK(cuGraphAddHostNode(&node[0], g, NULL, 0, &call));
	node[1] = kernel_node(g, second);
	CHECK(cuGraphAddChildGraphNode(&node[2], g, NULL, 0, inner));
	CHECK(cuGraphDestroy(inner));
	CHECK(cuGraphAddDependencies(g, (CUgraphNode[]){ node[1], node[2] },
		(CUgraphNode[]){ node[0], node[1] }, (CUgraphEdgeData[2]){ 0 }, 2));
	return g;
}

/* Two launches of a graph; `what` names what is done to it before, or between them. */
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
	CHECK(cuModuleLoadData(&m, other_kernel));
	CHECK(cuModuleGetFunction(&f[1], m, "other"));
	g = graph_of_three(f[0], f[1], node);
	if (!strcmp(what, "memory"))
		CHECK(cuGraphAddMemAllocNode(&more, g, NULL, 0,
			&(CUDA_MEM_ALLOC_NODE_PARAMS){ .bytesize = 64 }));
	CHECK(cuGraphInstantiate(&run, g,
		!strcmp(what, "device") ? CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH : 0));
	CHECK(cuGraphLaunch(run, NULL));
	if (!strcmp(what, "child"))
		CHECK(cuGraphExecChildGraphNodeSetParams(run, node[2], g));
	if (!strcmp(what, "off") || !strcmp(what, "off-update"))
		CHECK(cuGraphNodeSetEnabled(run, node[1], 0));
	CHECK(cuGraphDestroy(g));
	if (!strcmp(what, "kernel")) {
		CUDA_KERNEL_NODE_PARAMS p = { .func = f[0], .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
			.blockDimX = 32, .blockDimY = 1, .blockDimZ = 1 };

		CHECK(cuGraphExecKernelNodeSetParams(run, node[1], &p));
	}
	if (!strcmp(what, "update") || !strcmp(what, "off-update")) {
		one_more = graph_of_three(f[0], f[0], node);
		CHECK(cuGraphExecUpdate(run, one_more, &(CUgraphExecUpdateResultInfo){ 0 }));
	}
	if (!strcmp(what, "again")) { /* another graph gets its handle */
		one_more = graph_of_three(f[1], f[1], node);
		CHECK(cuGraphExecDestroy(run));
		CHECK(cuGraphInstantiate(&run, one_more, 0));
	}
	if (!strcmp(what, "reset")) { /* a context to which it does not belong */
		CHECK(cuDevicePrimaryCtxRetain(&elsewhere, 0));
		CHECK(cuDevicePrimaryCtxReset(0));
	}
	CHECK(cuGraphLaunch(run, NULL));
	CHECK(cuGraphExecDestroy(run));
}

/* Two branches, of which the first has one more kernel behind; launched twice, in two streams. The first
 * kernels of both are of two modules, or the same one. */
static void branches(bool same)
{
	CUgraphNode first, last;
	CUfunction f[3];
	CUgraphExec run;
	CUstream s[2];
	CUmodule m;
	CUgraph g;

	context(0);
	f[0] = load(text, &m);
	CHECK(cuModuleLoadData(&m, other_kernel));
	CHECK(cuModuleGetFunction(&f[1], m, "other"));
	f[2] = load(text, &m);
	CHECK(cuGraphCreate(&g, 0));
	first = kernel_node(g, f[0]);
	last = kernel_node(g, f[2]);
	CHECK(cuGraphAddDependencies(g, &first, &last, &(CUgraphEdgeData){ 0 }, 1));
	kernel_node(g, f[!same]);
	CHECK(cuGraphInstantiate(&run, g, 0));
	for (int k = 0; k < 2; k++) {
		CHECK(cuStreamCreate(&s[k], CU_STREAM_NON_BLOCKING));
		CHECK(cuGraphLaunch(run, s[k]));
		CHECK(cuStreamSynchronize(s[k]));
	}
	CHECK(cuGraphExecDestroy(run));
	CHECK(cuGraphDestroy(g));
	printf("ended\n");
}

/* ---- ends: a process ends, or a thread, while the second kernel runs ---- */

static unsigned (*begun)(void);
static const char *how;
static bool by_handler;

static void act(void)
{
	if (!strcmp(how, "exit")) exit(3);
	if (!strcmp(how, "quick_exit")) quick_exit(3);
	if (!strcmp(how, "_exit")) _exit(3);
	if (!strcmp(how, "abort")) abort();
	if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
	if (!strcmp(how, "segv")) raise(SIGSEGV);
	if (!strcmp(how, "exec")) execl("/bin/sh", "sh", "-c", "exit 6", (char *)NULL);
	if (!strcmp(how, "fork")) {
		int status = 0;
		const pid_t child = fork();

		if (!child)
			exit(9);
		waitpid(child, &status, 0);
		_exit(WIFEXITED(status) && WEXITSTATUS(status) == 9 ? 4 : 5);
	}
	if (!strcmp(how, "pthread_exit")) pthread_exit(NULL);
}

static void on_signal(int signal)
{
	(void)signal;
	act();
}

static void *in_the_middle(void *launching)
{
	while (begun() < 2)
		usleep(1000);
	usleep(5000); /* a real driver's call has returned by then */
	if (by_handler)
		pthread_kill(*(pthread_t *)launching, SIGUSR1);
	else
		act();
	return NULL;
}

/* The launching thread has ended: another one launches, and the process ends. */
static void *launch_again(void *launching)
{
	CUmodule m;

	pthread_join(*(pthread_t *)launching, NULL);
	context(0);
	launch(load(longer, &m), NULL);
	exit(4);
}

static void ends(const char *from)
{
	static pthread_t launching;
	pthread_t t;
	CUmodule m;
	CUfunction f;

	begun = (unsigned (*)(void))(intptr_t)dlsym(RTLD_DEFAULT, "fake_begun");
	by_handler = !strcmp(from, "handler");
	launching = pthread_self();
	signal(SIGUSR1, on_signal);
	context(0);
	f = load(text, &m);
	launch(f, NULL);
	if (!strcmp(how, "pthread_exit") && by_handler)
		pthread_create(&t, NULL, launch_again, &launching);
	pthread_create(&t, NULL, in_the_middle, &launching);
	launch(f, NULL);
	pause();
}

/* What programs do before they call CUDA. */
static void strange(const char *what)
{
	CUmodule m;

	if (!strcmp(what, "clearenv"))
		clearenv();
	CHECK(cuInit(0));
	if (!strcmp(what, "close-all"))
		for (int k = 0; k < 256; k++)
			close(k);
	context(0);
	launch(load(text, &m), NULL);
	exit(4);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(mode, "strange") && argc > 2)
		strange(argv[2]);
	CHECK(cuInit(0));
	runtime = (void (*)(const char *, const char *, bool, int))(intptr_t)dlsym(RTLD_DEFAULT,
		"fake_runtime");
	if (!strcmp(mode, "one")) one(text);
	else if (!strcmp(mode, "cubin")) with_cubin();
	else if (!strcmp(mode, "refused")) refused();
	else if (!strcmp(mode, "lookup")) lookup();
	else if (!strcmp(mode, "failed")) copy(false);
	else if (!strcmp(mode, "failed-runtime")) copy(true);
	else if (!strcmp(mode, "ignored")) stub(false);
	else if (!strcmp(mode, "asked")) stub(true);
	else if (!strcmp(mode, "no-code")) no_code();
	else if (!strcmp(mode, "two")) two();
	else if (!strcmp(mode, "beside") && argc > 2) beside(argv[2]);
	else if (!strcmp(mode, "beside-many")) beside_many();
	else if (!strcmp(mode, "stopped")) stopped();
	else if (!strcmp(mode, "grid")) grid();
	else if (!strcmp(mode, "again")) again();
	else if (!strcmp(mode, "reset")) primary(true);
	else if (!strcmp(mode, "release")) primary(false);
	else if (!strcmp(mode, "unload")) unload(false);
	else if (!strcmp(mode, "unload-library")) unload(true);
	else if (!strcmp(mode, "sizes")) sizes();
	else if (!strcmp(mode, "forks")) forks();
	else if (!strcmp(mode, "container") && argc > 2) container(argv[2]);
	else if (!strcmp(mode, "await-file") && argc > 2) await_file(argv[2]);
	else if (!strcmp(mode, "container-and-file") && argc > 3) container(argv[2]), await_file(argv[3]);
	else if (!strcmp(mode, "graph") && argc > 2) graphs(argv[2]);
	else if (!strcmp(mode, "ends") && argc > 3) how = argv[2], ends(argv[3]);
	else if (!strcmp(mode, "branches") && argc > 2) branches(!strcmp(argv[2], "same"));
	else return 2;
	return 0;
}
