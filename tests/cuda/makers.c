/* makers: makes machine code as frameworks do, loads it, and runs it. Each test is one way:
 *   nvrtc               NVRTC to a cubin
 *   link-ptx, link-lto  nvJitLink of two PTX texts, or of two LTO-IR inputs
 *   link-mixed          nvJitLink of LTO-IR with a cubin of NVRTC
 *   driver-ptx, driver-mixed  the driver's linker, of two PTX texts, or of PTX and a cubin of NVRTC
 *   FILE                a cubin or fatbin that another process has made
 * The kernel `set` calls `plus_one` of the other input; it stores value + 1 for each thread.
 * Linked with NVRTC and nvJitLink, or (LOOKED_UP) looks their functions up. */
#include <cuda.h>
#include <dlfcn.h>
#include <nvJitLink.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) do { if (!(x)) { \
	fprintf(stderr, "line %d: %s\n", __LINE__, #x); \
	exit(1); \
} } while (0)
#define OK(call) do { int r_ = (call); if (r_) { \
	fprintf(stderr, "line %d: %s: %d\n", __LINE__, #call, r_); \
	exit(1); \
} } while (0)

static const char whole[] = "extern \"C\" __global__ void set(int *to, int value) "
	"{ to[threadIdx.x] = value + 1; }";
static const char kernel[] = "extern \"C\" __device__ int plus_one(int);\n"
	"extern \"C\" __global__ void set(int *to, int value) { to[threadIdx.x] = plus_one(value); }";
static const char function[] = "extern \"C\" __device__ int plus_one(int x) { return x + 1; }";

#ifdef LOOKED_UP
static void *nvrtc_lib, *link_lib;
#define NVRTC(name) ((__typeof__(&name))dlsym(nvrtc_lib, #name))
#define LINK(name) ((__typeof__(&name))dlsym(link_lib, #name))
#else
#define NVRTC(name) name
#define LINK(name) name
#endif

struct blob { char *at; size_t n; };
enum form { CUBIN, PTX, LTOIR };

static struct blob compile(const char *source, enum form form)
{
	const char *options[] = { form == PTX ? "-arch=compute_90" : "-arch=sm_90",
		form == LTOIR ? "-dlto" : "-rdc=true" };
	nvrtcProgram p;
	struct blob b;

	OK(NVRTC(nvrtcCreateProgram)(&p, source, "set.cu", 0, NULL, NULL));
	OK(NVRTC(nvrtcCompileProgram)(p, source == whole ? 1 : 2, options));
	OK(form == CUBIN ? NVRTC(nvrtcGetCUBINSize)(p, &b.n) : form == PTX ? NVRTC(nvrtcGetPTXSize)(p, &b.n)
		: NVRTC(nvrtcGetLTOIRSize)(p, &b.n));
	b.at = malloc(b.n);
	OK(form == CUBIN ? NVRTC(nvrtcGetCUBIN)(p, b.at) : form == PTX ? NVRTC(nvrtcGetPTX)(p, b.at)
		: NVRTC(nvrtcGetLTOIR)(p, b.at));
	OK(NVRTC(nvrtcDestroyProgram)(&p));
	return b;
}

static struct blob link_of(enum form form, enum form other)
{
	static const nvJitLinkInputType type[] = { NVJITLINK_INPUT_CUBIN, NVJITLINK_INPUT_PTX,
		NVJITLINK_INPUT_LTOIR };
	const char *options[] = { "-arch=sm_90", "-lto" };
	struct blob a = compile(kernel, form), b = compile(function, other), out;
	nvJitLinkHandle link;

	OK(LINK(nvJitLinkCreate)(&link, form == LTOIR ? 2 : 1, options));
	OK(LINK(nvJitLinkAddData)(link, type[form], a.at, a.n, "kernel"));
	OK(LINK(nvJitLinkAddData)(link, type[other], b.at, b.n, "function"));
	OK(LINK(nvJitLinkComplete)(link));
	OK(LINK(nvJitLinkGetLinkedCubinSize)(link, &out.n));
	out.at = malloc(out.n);
	OK(LINK(nvJitLinkGetLinkedCubin)(link, out.at));
	OK(LINK(nvJitLinkDestroy)(&link));
	return out;
}

/* Needs a context. */
static struct blob driver_link_of(enum form other)
{
	struct blob a = compile(kernel, PTX), b = compile(function, other), out;
	CUlinkState link;
	void *at;

	OK(cuLinkCreate(0, NULL, NULL, &link));
	OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, a.at, a.n, "kernel", 0, NULL, NULL));
	OK(cuLinkAddData(link, other == PTX ? CU_JIT_INPUT_PTX : CU_JIT_INPUT_CUBIN, b.at, b.n, "function",
		0, NULL, NULL));
	OK(cuLinkComplete(link, &at, &out.n));
	out.at = malloc(out.n);
	memcpy(out.at, at, out.n);
	OK(cuLinkDestroy(link));
	return out;
}

static struct blob file(const char *path)
{
	struct blob b = { malloc(1 << 20), 0 };
	FILE *f = fopen(path, "rb");

	CHECK(f);
	b.n = fread(b.at, 1, 1 << 20, f);
	fclose(f);
	return b;
}

int main(int argc, char **argv)
{
	const char *how = argc == 2 ? argv[1] : "";
	struct blob b;
	CUcontext c;
	CUmodule m;
	CUfunction f;
	CUdeviceptr to;
	int value = 41, is[32];

#ifdef LOOKED_UP
	nvrtc_lib = dlopen("libnvrtc.so.13", RTLD_NOW);
	link_lib = dlopen("libnvJitLink.so.13", RTLD_NOW);
	CHECK(nvrtc_lib && link_lib);
#endif
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&c, 0));
	OK(cuCtxSetCurrent(c));
	b = !strcmp(how, "nvrtc") ? compile(whole, CUBIN) : !strcmp(how, "link-ptx") ? link_of(PTX, PTX)
		: !strcmp(how, "link-lto") ? link_of(LTOIR, LTOIR)
		: !strcmp(how, "link-mixed") ? link_of(LTOIR, CUBIN)
		: !strcmp(how, "driver-ptx") ? driver_link_of(PTX)
		: !strcmp(how, "driver-mixed") ? driver_link_of(CUBIN) : file(how);
	CHECK(b.n > 4);
	OK(cuModuleLoadData(&m, b.at));
	OK(cuModuleGetFunction(&f, m, "set"));
	OK(cuMemAlloc(&to, sizeof is));
	OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){ &to, &value }, NULL));
	OK(cuMemcpyDtoH(is, to, sizeof is));
	for (int k = 0; k < 32; k++)
		CHECK(is[k] == 42);
	return 0;
}
