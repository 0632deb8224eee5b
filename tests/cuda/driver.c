/* Uses of the driver API: `driver NAME` runs one. Exit status 0: the API behaves as on a GPU;
 * 77: a required library is not installed. */
#include <cuda.h>
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { printf("line %d: %s\n", __LINE__, #x); return 1; } } while (0)
#define OK(x) IS(CUDA_SUCCESS, x)
#define IS(error, x) do { CUresult e_ = (x); if (e_ != (error)) { \
	printf("line %d: %s: %d\n", __LINE__, #x, (int)e_); return 1; } } while (0)

static const char ptx[] =
	".version 8.0\n"
	".target sm_80\n"
	".address_size 64\n"
	".visible .global .align 4 .u32 offset = 100;\n"
	".visible .entry set(.param .u64 to, .param .u32 value)\n"
	"{\n"
	"	.reg .b32 %r<4>;\n"
	"	.reg .b64 %d<4>;\n"
	"	ld.param.u64 %d1, [to];\n"
	"	ld.param.u32 %r1, [value];\n"
	"	ld.global.u32 %r2, [offset];\n"
	"	add.s32 %r1, %r1, %r2;\n"
	"	mov.u32 %r3, %tid.x;\n"
	"	mul.wide.u32 %d2, %r3, 4;\n"
	"	add.s64 %d3, %d1, %d2;\n"
	"	st.global.u32 [%d3], %r1;\n"
	"	ret;\n"
	"}\n";

static int begin(CUcontext *c)
{
	CUdevice d;

	OK(cuInit(0));
	OK(cuDeviceGet(&d, 0));
	OK(cuCtxCreate(c, NULL, 0, d));
	return 0;
}

static int run(CUfunction f, int value, int expect)
{
	CUdeviceptr d;
	int h[32] = { 0 };
	void *args[] = { &d, &value };

	OK(cuMemAlloc(&d, sizeof h));
	OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH(h, d, sizeof h));
	OK(cuMemFree(d));
	CHECK(h[0] == expect && h[31] == expect);
	return 0;
}

static int module(void)
{
	CUcontext c;
	CUmodule m;
	CUfunction f;
	CUdeviceptr at, d;
	size_t bytes;
	int offset = 200, value, h = 0;

	IS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&value));
	OK(cuInit(0));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&d, 4));
	if (begin(&c))
		return 1;
	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&f, m, "set"));
	if (run(f, 5, 105))
		return 1;
	OK(cuModuleGetGlobal(&at, &bytes, m, "offset"));
	CHECK(bytes == 4);
	OK(cuMemcpyHtoD(at, &offset, 4));
	if (run(f, 5, 205))
		return 1;
	OK(cuStreamWriteValue32(NULL, at, 300, 0));
	if (run(f, 5, 305))
		return 1;
	OK(cuStreamWriteValue32(NULL, at, 200, 0));
	OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
	CHECK(value == 1024);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, f, 1024, 0));
	CHECK(value == 2);
	/* packed parameters */
	struct { CUdeviceptr to; int value; } block;
	bytes = 12;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &block,
		CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END };
	OK(cuMemAlloc(&d, 4));
	block.to = d;
	block.value = 1;
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	OK(cuMemcpyDtoH(&h, d, 4));
	CHECK(h == 201);
	OK(cuMemsetD32(d, 77, 1));
	OK(cuMemcpyDtoH(&h, d, 4));
	CHECK(h == 77);
	OK(cuModuleUnload(m));
	IS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(m));
	OK(cuCtxDestroy(c));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&d, 4));
	return 0;
}

static int library(void)
{
	CUcontext c;
	CUlibrary l;
	CUkernel k;
	CUfunction f;
	CUlinkState s;
	unsigned n;
	void *out;
	size_t bytes;
	const char *name;

	if (begin(&c))
		return 1;
	OK(cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernelCount(&n, l));
	CHECK(n == 1);
	OK(cuLibraryGetKernel(&k, l, "set"));
	OK(cuKernelGetFunction(&f, k));
	OK(cuKernelGetName(&name, k));
	CHECK(!strcmp(name, "set"));
	if (run(f, 1, 101) || run((CUfunction)k, 2, 102))
		return 1;
	OK(cuLibraryUnload(l));
	OK(cuLinkCreate(0, NULL, NULL, &s));
	OK(cuLinkAddData(s, CU_JIT_INPUT_PTX, (void *)ptx, sizeof ptx, "set.ptx", 0, NULL, NULL));
	OK(cuLinkComplete(s, &out, &bytes));
	CUmodule m;
	OK(cuModuleLoadData(&m, out));
	OK(cuLinkDestroy(s));
	OK(cuModuleGetFunction(&f, m, "set"));
	return run(f, 3, 103);
}

/* dlopen() finds the same driver, and the driver finds its entry points. */
static int entry(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *at;
	CUdriverProcAddressQueryResult q;

	CHECK(lib && dlsym(lib, "cuInit"));
	CHECK(dlsym(lib, "cuMemAlloc_v2") == dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
	OK(cuInit(0));
	OK(cuGetProcAddress("cuMemAlloc", &at, 12000, 0, &q));
	CHECK(at == dlsym(lib, "cuMemAlloc_v2") && q == CU_GET_PROC_ADDRESS_SUCCESS);
	OK(cuGetProcAddress("cuMemPrefetchAsync", &at, 12000, 0, &q));
	CHECK(at == dlsym(lib, "cuMemPrefetchAsync"));
	OK(cuGetProcAddress("cuMemPrefetchAsync", &at, 13000, 0, &q));
	CHECK(at == dlsym(lib, "cuMemPrefetchAsync_v2"));
	IS(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuNothing", &at, 13000, 0, &q));
	CUarray array;
	IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
	IS(CUDA_ERROR_NOT_SUPPORTED, cuArrayGetPlane(&array, NULL, 1));
	return 0;
}

static int bad(void)
{
	static char broken[sizeof ptx];
	CUcontext c;
	CUmodule m;
	static const char elf[64] = "\177ELF\2\1\1", noise[64] = "\1\2\3\4\5\6\7";

	if (begin(&c))
		return 1;
	strcpy(broken, ptx);
	*strstr(broken, "ret;") = '(';
	IS(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&m, broken));
	IS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m, elf));
	strcpy(broken, ptx);
	memcpy(strstr(broken, "sm_80"), "sm_99", 5);
	IS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m, broken));
	IS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&m, noise));
	IS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&m, NULL));
	IS(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&m, "/nonexistent"));
	return 0;
}

static int tensormap(void)
{
	CUcontext c;
	CUtensorMap map;
	CUdeviceptr d;
	cuuint64_t dim[2] = { 64, 64 }, stride[1] = { 128 };
	cuuint32_t box[2] = { 64, 8 }, step[2] = { 1, 1 };

	if (begin(&c))
		return 1;
	OK(cuMemAlloc(&d, 8192));
	OK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, (void *)d, dim, stride,
		box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	stride[0] = 100;
	IS(CUDA_ERROR_INVALID_VALUE, cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2,
		(void *)d, dim, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	return 0;
}

/* PTX that NVRTC compiles at run time. */
static int nvrtc(void)
{
	static const char source[] = "extern \"C\" __global__ void set(int *to, int value) "
		"{ to[threadIdx.x] = value; }";
	static const char *options[] = { "--gpu-architecture=compute_90a" };
	void *lib = dlopen("libnvrtc.so.13", RTLD_NOW), *program;
	int (*create)(void **, const char *, const char *, int, void *, void *);
	int (*compile)(void *, int, const char **), (*size)(void *, size_t *), (*get)(void *, char *);
	CUcontext c;
	CUmodule m;
	CUfunction f;
	size_t n;
	char *text;

	if (!lib)
		return 77;
	create = dlsym(lib, "nvrtcCreateProgram");
	compile = dlsym(lib, "nvrtcCompileProgram");
	size = dlsym(lib, "nvrtcGetPTXSize");
	get = dlsym(lib, "nvrtcGetPTX");
	CHECK(create && compile && size && get);
	CHECK(!create(&program, source, "set.cu", 0, NULL, NULL));
	CHECK(!compile(program, 1, options));
	CHECK(!size(program, &n));
	text = malloc(n);
	CHECK(!get(program, text));
	if (begin(&c))
		return 1;
	OK(cuModuleLoadData(&m, text));
	OK(cuModuleGetFunction(&f, m, "set"));
	return run(f, 6, 6);
}

/* A library with a static runtime that is opened at run time. */
static int plugin(void)
{
	void *lib = dlopen("./plugin.so", RTLD_NOW);
	int (*small)(void);

	CHECK(lib);
	small = (int (*)(void))dlsym(lib, "small");
	CHECK(small);
	return small();
}

/* The bytes that the library spans. */
static size_t span(void *lib)
{
	struct link_map *map;
	const ElfW(Ehdr) *h;
	const ElfW(Phdr) *p;
	size_t end = 0;

	if (dlinfo(lib, RTLD_DI_LINKMAP, &map))
		return 0;
	h = (const void *)map->l_addr;
	p = (const void *)(map->l_addr + h->e_phoff);
	for (unsigned k = 0; k < h->e_phnum; k++)
		if (p[k].p_type == PT_LOAD)
			end = p[k].p_vaddr + p[k].p_memsz;
	return (end + 4095) & ~4095ul;
}

/* The same where all other memory within 2 GiB is taken. */
static int crowded(void)
{
	const size_t half = 5ul << 30;
	void *lib = dlopen("./plugin.so", RTLD_NOW), *at;
	struct link_map *map;
	size_t n = lib ? span(lib) : 0;
	char *hole;

	CHECK(n && !dlclose(lib));
	hole = mmap(NULL, 2 * half, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(hole != MAP_FAILED);
	hole += half;
	CHECK(!munmap(hole, n));
	do
		at = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	while (at != hole && at != MAP_FAILED);
	CHECK(at == hole && !munmap(hole, n));
	lib = dlopen("./plugin.so", RTLD_NOW);
	CHECK(lib && !dlinfo(lib, RTLD_DI_LINKMAP, &map) && (char *)map->l_addr == hole);
	return plugin();
}

/* ---- what a program does not notice if it ignores errors ---- */

/* Loads the module and runs its kernel once. */
static int good(CUmodule *m, CUfunction *f)
{
	CUcontext c;

	if (begin(&c))
		return 1;
	OK(cuModuleLoadData(m, ptx));
	OK(cuModuleGetFunction(f, *m, "set"));
	return run(*f, 5, 105);
}

static int missing(void)
{
	CUmodule m;
	CUfunction f;

	if (good(&m, &f))
		return 1;
	IS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&f, m, "get"));
	return 0;
}

static int refused(void)
{
	CUmodule m;
	CUfunction f;

	if (good(&m, &f))
		return 1;
	IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL));
	return 0;
}

static int stale(void)
{
	CUmodule m;
	CUfunction f;
	CUdeviceptr d;
	int value = 1;
	void *args[] = { &d, &value };

	if (good(&m, &f))
		return 1;
	OK(cuMemAlloc(&d, 128));
	IS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, (CUstream)0x1234, args,
		NULL));
	OK(cuModuleUnload(m));
	IS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL));
	return 0;
}

static int attributes(unsigned id)
{
	CUmodule m;
	CUfunction f;
	CUdeviceptr d;
	int value = 1;
	void *args[] = { &d, &value };
	CUlaunchAttribute a[2] = { { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY }, { .id = id } };
	CUlaunchConfig config = { .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32,
		.blockDimY = 1, .blockDimZ = 1, .attrs = a, .numAttrs = 1 };

	if (good(&m, &f))
		return 1;
	OK(cuMemAlloc(&d, 128));
	OK(cuLaunchKernelEx(&config, f, args, NULL));
	config.numAttrs = 2;
	IS(CUDA_ERROR_NOT_SUPPORTED, cuLaunchKernelEx(&config, f, args, NULL));
	return 0;
}

static int programmatic_event(void)
{
	return attributes(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
}

static int unknown_attribute(void)
{
	return attributes(63);
}

static int newer_ptx(void)
{
	static char newer[sizeof ptx];
	CUmodule m;
	CUfunction f;

	if (good(&m, &f))
		return 1;
	strcpy(newer, ptx);
	memcpy(strstr(newer, "sm_80"), "sm_99", 5);
	IS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m, newer));
	return 0;
}

/* A fatbin of one cubin for sm_90. */
static int no_ptx(void)
{
	static const struct {
		unsigned magic, version_and_header;
		unsigned long long bytes;
		unsigned short kind, version;
		unsigned header;
		unsigned long long size;
		unsigned rest[10];
		char image[64];
	} fatbin = { 0xBA55ED50, 16u << 16 | 1, 128, 2, 0x101, 64, 64, { 0, 0, 0, 90 }, "\177ELF\2\1\1" };
	CUmodule m;
	CUfunction f;

	if (good(&m, &f))
		return 1;
	IS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m, &fatbin));
	return 0;
}

static int no_file(void)
{
	CUmodule m;
	CUfunction f;

	if (good(&m, &f))
		return 1;
	IS(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&m, "/nonexistent"));
	return 0;
}

/* A library whose runtime consan cannot take over. */
static int unknown_plugin(void)
{
	CUmodule m;
	CUfunction f;
	void *lib;
	int (*small)(void);

	if (good(&m, &f))
		return 1;
	lib = dlopen("./unknown.so", RTLD_NOW);
	CHECK(lib);
	small = (int (*)(void))dlsym(lib, "small");
	CHECK(small && small());
	return 0;
}

static int unsupported(void)
{
	CUmodule m;
	CUfunction f;
	CUarray array;

	if (good(&m, &f))
		return 1;
	IS(CUDA_ERROR_NOT_SUPPORTED, cuArrayGetPlane(&array, NULL, 1));
	return 0;
}

/* Frameworks look for GPUs by NVML, before they call the driver. */
static int nvml(void)
{
	void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW), *handle, *same;
#define NVML(name) int (*name)() = (int (*)())dlsym(lib, #name); CHECK(name)
	unsigned count, lanes;
	unsigned long long memory[3];
	struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char name[32]; } pci;
	char name[96], uuid[96], bus[32];
	int major, minor, state;
	CUdevice d;

	CHECK(lib);
	NVML(nvmlInit_v2);
	NVML(nvmlShutdown);
	NVML(nvmlDeviceGetCount_v2);
	NVML(nvmlDeviceGetHandleByIndex_v2);
	NVML(nvmlDeviceGetHandleByPciBusId_v2);
	NVML(nvmlDeviceGetHandleByUUID);
	NVML(nvmlDeviceGetName);
	NVML(nvmlDeviceGetUUID);
	NVML(nvmlDeviceGetPciInfo_v3);
	NVML(nvmlDeviceGetMemoryInfo);
	NVML(nvmlDeviceGetCudaComputeCapability);
	NVML(nvmlDeviceGetCurrPcieLinkWidth);
	NVML(nvmlDeviceGetNvLinkState);
	IS(1, nvmlDeviceGetCount_v2(&count));
	OK(nvmlInit_v2());
	OK(nvmlDeviceGetCount_v2(&count));
	CHECK(count > 0);
	IS(2, nvmlDeviceGetHandleByIndex_v2(count, &handle));
	OK(nvmlDeviceGetHandleByIndex_v2(0, &handle));
	OK(nvmlDeviceGetPciInfo_v3(handle, &pci));
	OK(nvmlDeviceGetHandleByPciBusId_v2(pci.name, &same));
	CHECK(same == handle);
	IS(6, nvmlDeviceGetHandleByPciBusId_v2("0000:77:00.0", &same));
	OK(nvmlDeviceGetUUID(handle, uuid, 96));
	IS(7, nvmlDeviceGetUUID(handle, uuid, 8));
	OK(nvmlDeviceGetHandleByUUID(uuid, &same));
	CHECK(same == handle && !strncmp(uuid, "GPU-", 4));
	OK(nvmlDeviceGetName(handle, name, 96));
	OK(nvmlDeviceGetMemoryInfo(handle, memory));
	CHECK(memory[0] == memory[1] + memory[2]);
	OK(nvmlDeviceGetCudaComputeCapability(handle, &major, &minor));
	OK(nvmlDeviceGetCurrPcieLinkWidth(handle, &lanes));
	IS(count > 1 ? 0 : 3, nvmlDeviceGetNvLinkState(handle, 17, &state));
	IS(count > 1 ? 2 : 3, nvmlDeviceGetNvLinkState(handle, 18, &state));
	/* the driver's device at the same place */
	OK(cuInit(0));
	OK(cuDeviceGetByPCIBusId(&d, pci.legacy));
	OK(cuDeviceGetPCIBusId(bus, sizeof bus, d));
	CHECK(!strcasecmp(bus, pci.legacy));
	OK(nvmlShutdown());
	IS(1, nvmlShutdown());
	return 0;
}

/* Memory of a stream, where no context is current: only a default stream needs one. */
static int streams_memory(void)
{
	CUcontext c;
	CUstream s;
	CUdeviceptr at;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&c, 0));
	OK(cuCtxSetCurrent(c));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuCtxSetCurrent(NULL));
	OK(cuMemAllocAsync(&at, 100, s));
	OK(cuMemFreeAsync(at, s));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuMemAllocAsync(&at, 100, NULL));
	OK(cuMemAllocAsync(&at, 100, s));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuMemFreeAsync(at, NULL));
	OK(cuMemFreeAsync(at, s)); /* it was not freed */
	return 0;
}

/* Its parent runs for a millisecond in a hundred, as on a busy machine. */
static pid_t slow_down(void)
{
	const pid_t child = fork();

	for (int i = 0; !child && i < 2000 && getppid() != 1; i++) {
		kill(getppid(), SIGSTOP);
		usleep(120000);
		kill(getppid(), SIGCONT);
		usleep(1000);
	}
	if (!child)
		_exit(0);
	return child;
}

/* A query waits for the grid, which needs little of the processor's time and much of the clock's. */
static int busy_query(void)
{
	static const char loops[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry loops()\n{\n"
		"\t.reg .b32 %r;\n\t.reg .pred %p;\n\tmov.u32 %r, 0;\n"
		"again:\n\tadd.u32 %r, %r, 1;\n\tsetp.lt.u32 %p, %r, 5000000;\n\t@%p bra again;\n\tret;\n}\n";
	CUcontext c;
	CUfunction f;
	CUmodule m;
	CUresult r;
	pid_t child;

	CHECK(!begin(&c));
	OK(cuModuleLoadData(&m, loops));
	OK(cuModuleGetFunction(&f, m, "loops"));
	OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	child = slow_down();
	r = cuStreamQuery(NULL);
	kill(child, SIGKILL);
	kill(getpid(), SIGCONT);
	waitpid(child, NULL, 0);
	IS(CUDA_SUCCESS, r);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct { const char *name; int (*run)(void); } tests[] = {
		{ "module", module }, { "library", library }, { "entry", entry }, { "bad", bad },
		{ "tensormap", tensormap }, { "nvrtc", nvrtc }, { "plugin", plugin }, { "crowded", crowded },
		{ "missing", missing }, { "refused", refused }, { "stale", stale },
		{ "programmatic-event", programmatic_event }, { "unknown-attribute", unknown_attribute },
		{ "newer-ptx", newer_ptx }, { "no-ptx", no_ptx }, { "no-file", no_file },
		{ "unsupported", unsupported }, { "unknown-plugin", unknown_plugin },
		{ "nvml", nvml }, { "streams-memory", streams_memory }, { "busy-query", busy_query },
	};

	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (argc == 2 && !strcmp(argv[1], tests[i].name))
			return tests[i].run();
	return 99;
}
