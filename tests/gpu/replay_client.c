/* replay_client: a CUDA program to run with the fake driver, whose kernels do nothing:
 * `replay_client KERNEL [CTAS]`. What a report has of its kernels comes from their replay on the CPU. */
#include "client.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The fake driver gives all variables of a module the same 64 bytes. Both have the address of `data`,
 * whose first word is 42 and which lies behind two pointers: that of the parameter is in `list`. */
static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .global .align 8 .u64 root;\n"
	".visible .const .align 8 .u64 key;\n"
	".visible .entry race(.param .u64 p)\n{\n"
	"\t.shared .align 4 .b32 x;\n\t.reg .b64 %rd<8>;\n\t.reg .b32 %r<8>;\n\t.reg .pred %q<4>;\n"
	"\tld.param.u64 %rd1, [p];\n"
	"\tld.global.u64 %rd2, [%rd1];\n"
	"\tld.global.u64 %rd3, [root];\n"
	"\tld.const.u64 %rd4, [key];\n"
	"\tsetp.ne.u64 %q1, %rd2, %rd3;\n\t@%q1 trap;\n"
	"\tsetp.ne.u64 %q1, %rd3, %rd4;\n\t@%q1 trap;\n"
	"\tld.global.u32 %r1, [%rd2];\n"
	"\tsetp.ne.u32 %q1, %r1, 42;\n\t@%q1 trap;\n"
	"\tmov.u32 %r2, %tid.x;\n"
	"\tsetp.eq.u32 %q2, %r2, 0;\n\tsetp.eq.u32 %q3, %r2, 32;\n"
	"\t@%q2 st.shared.u32 [x], %r1;\n"
	"\t@%q3 ld.shared.u32 %r3, [x];\n"
	"\tmov.u32 %r4, %ctaid.x;\n\tmul.wide.u32 %rd5, %r4, 4;\n\tadd.u64 %rd5, %rd5, %rd2;\n"
	"\t@%q2 st.global.u32 [%rd5+4], %r4;\n"
	"\tret;\n}\n"
	/* each CTA waits for the one before it */
	".visible .entry waits(.param .u64 p)\n{\n"
	"\t.reg .b64 %rd<8>;\n\t.reg .b32 %r<8>;\n\t.reg .pred %q<4>;\n"
	"\tld.param.u64 %rd1, [p];\n\tld.global.u64 %rd2, [%rd1];\n"
	"\tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %tid.x;\n"
	"\tsetp.ne.u32 %q1, %r2, 0;\n\t@%q1 bra end;\n"
	"\tmul.wide.u32 %rd3, %r1, 4;\n\tadd.u64 %rd4, %rd2, %rd3;\n"
	"\tsetp.eq.u32 %q2, %r1, 0;\n\t@%q2 bra set;\n"
	"again:\n\tld.acquire.gpu.global.u32 %r3, [%rd4+0];\n"
	"\tsetp.eq.u32 %q3, %r3, 0;\n\t@%q3 bra again;\n"
	"set:\n\tst.release.gpu.global.u32 [%rd4+4], 1;\n"
	"end:\n\tret;\n}\n"
	/* behind the end of `list` */
	".visible .entry outside(.param .u64 p)\n{\n"
	"\t.reg .b64 %rd<8>;\n\t.reg .b32 %r<8>;\n"
	"\tld.param.u64 %rd1, [p];\n\tst.global.u32 [%rd1+4096], 1;\n\tret;\n}\n"
	/* its parameter is the complement of an address */
	".visible .entry stray(.param .u64 p)\n{\n"
	"\t.reg .b64 %rd<8>;\n\t.reg .b32 %r<8>;\n"
	"\tld.param.u64 %rd1, [p];\n\tnot.b64 %rd1, %rd1;\n\tst.global.u32 [%rd1], 1;\n\tret;\n}\n"
	".visible .entry reads(.param .u64 p)\n{\n"
	"\t.reg .b64 %rd<8>;\n\t.reg .b32 %r<8>;\n"
	"\tld.param.u64 %rd1, [p];\n\tld.global.u8 %r1, [%rd1];\n\tret;\n}\n";

#define BYTES 4096
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Launches a kernel for each allocation of the driver that is not one of the n of the program. */
static void read_others(CUfunction f, const CUdeviceptr *own, size_t n)
{
	CUdeviceptr (*memory)(unsigned) = (CUdeviceptr (*)(unsigned))(intptr_t)dlsym(RTLD_DEFAULT, "fake_memory");
	uint64_t param = own[0];
	void *params[] = { &param };
	unsigned count = 0;

	CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL)); /* consan allocates at the first one, too */
	CHECK(cuCtxSynchronize());
	for (unsigned k = 0; k < 272; k++) {
		bool ours = !(param = memory(k));

		for (size_t i = 0; i < n; i++)
			ours |= param == own[i];
		if (ours)
			continue;
		CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
		CHECK(cuCtxSynchronize());
		count++;
	}
	printf("others: %s\n", count >= 8 ? "many" : "few");
}

/* Reads consan's memory behind an allocation of the program, as a wrong index does. */
static void read_neighbour(CUfunction f)
{
	CUdeviceptr (*memory)(unsigned) = (CUdeviceptr (*)(unsigned))(intptr_t)dlsym(RTLD_DEFAULT, "fake_memory");
	void (*before)(CUdeviceptr) = (void (*)(CUdeviceptr))(intptr_t)dlsym(RTLD_DEFAULT, "fake_before");
	void (*touch)(CUdeviceptr) = (void (*)(CUdeviceptr))(intptr_t)dlsym(RTLD_DEFAULT, "fake_touch");
	CUdeviceptr own, near = 0;
	uint64_t param;
	void *params[] = { &param };

	for (unsigned k = 0; !near && k < 256; k++)
		near = memory(k);
	before(near);
	CHECK(cuMemAlloc(&own, BYTES));
	printf("neighbour: %s\n", near && near - own == 32 << 10 ? "yes" : "no");
	touch(near);
	param = own;
	CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	CHECK(cuCtxSynchronize());
}

int main(int argc, char **argv)
{
	const bool others = argc > 1 && !strcmp(argv[1], "others"), neighbour = argc > 1 && !strcmp(argv[1], "neighbour");
	const unsigned ctas = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	static char before[BYTES];
	uint32_t first[4] = { 42 };
	CUdeviceptr list, data, unused, variable;
	uint64_t param;
	void *params[] = { &param };
	CUcontext c;
	CUfunction f;
	CUmodule m;
	size_t bytes;

	if (argc < 2)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(argv[1], "waits")) /* of CTA 0 */
		first[0] = 0;
	CHECK(cuInit(0));
	CHECK(cuCtxCreate(&c, NULL, 0, 0));
	CHECK(cuModuleLoadData(&m, text));
	CHECK(cuModuleGetFunction(&f, m, others || neighbour ? "reads" : argv[1]));
	if (neighbour) {
		read_neighbour(f);
		return 0;
	}
	CHECK(cuMemAlloc(&list, BYTES));
	CHECK(cuMemAlloc(&data, BYTES));
	CHECK(cuMemAlloc(&unused, BYTES));
	CHECK(cuMemcpyHtoDAsync(list, &data, sizeof data, NULL));
	CHECK(cuMemcpyHtoDAsync(data, first, sizeof first, NULL));
	CHECK(cuModuleGetGlobal(&variable, &bytes, m, "root"));
	CHECK(cuMemcpyHtoDAsync(variable, &data, sizeof data, NULL));
	CHECK(cuMemcpyDtoHAsync(before, data, BYTES, NULL));
	if (others) {
		read_others(f, (CUdeviceptr[]){ list, data, unused }, 3);
		return 0;
	}
	param = strcmp(argv[1], "stray") ? list : ~(uint64_t)unused;
	CHECK(cuLaunchKernel(f, ctas, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	CHECK(cuCtxSynchronize());
	printf("memory %s\n", memcmp(before, (const void *)(uintptr_t)data, BYTES) ? "changed" : "unchanged");
	return 0;
}
