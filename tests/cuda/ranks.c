/* `ranks`: launches a kernel eight times, the third time with a race. What a shard of it finds depends on
 * which launches it checks. */
#include <cuda.h>
#include <stdio.h>
#include <unistd.h>

#define OK(call) do { if ((call) != CUDA_SUCCESS) { printf("%s failed\n", #call); return 98; } } while (0)

static const char ptx[] =
	".version 8.0\n"
	".target sm_80\n"
	".address_size 64\n"
	".visible .entry exchange(.param .u64 to, .param .u32 racy)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .b32 %r<6>;\n"
	"	.reg .b64 %d<4>;\n"
	"	.shared .align 4 .b8 tile[256];\n"
	"	ld.param.u64 %d1, [to];\n"
	"	ld.param.u32 %r1, [racy];\n"
	"	mov.u32 %r2, %tid.x;\n"
	"	shl.b32 %r3, %r2, 2;\n"
	"	mov.u32 %r4, tile;\n"
	"	add.s32 %r5, %r4, %r3;\n"
	"	st.shared.u32 [%r5], %r2;\n"
	"	setp.ne.u32 %p, %r1, 0;\n"
	"	@%p bra over;\n"
	"	bar.sync 0;\n"
	"over:\n"
	"	sub.s32 %r5, %r4, %r3;\n"
	"	ld.shared.u32 %r5, [%r5+252];\n"
	"	mul.wide.u32 %d2, %r2, 4;\n"
	"	add.s64 %d3, %d1, %d2;\n"
	"	st.global.u32 [%d3], %r5;\n"
	"	ret;\n"
	"}\n";

int main(void)
{
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction kernel;
	CUdeviceptr to;

	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	OK(cuDevicePrimaryCtxRetain(&context, device));
	OK(cuCtxSetCurrent(context));
	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&kernel, module, "exchange"));
	OK(cuMemAlloc(&to, 256));
	for (int i = 1; i <= 8; i++) {
		unsigned racy = i == 3;
		void *values[] = { &to, &racy };

		OK(cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, NULL, values, NULL));
		OK(cuCtxSynchronize());
	}
	return 0;
}
