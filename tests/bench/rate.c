/* rate: warp instructions that the executor runs in a second, unchecked, on one core: an ALU loop
 * and a shared-memory loop. The time is the process's own, so that others on the machine matter less. */
#include "libconsan/exec/exec.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char alu[] =
	".version 9.0\n.target sm_90\n.address_size 64\n"
	".visible .entry loop(.param .u32 n)\n{\n"
	".reg .pred %p<2>; .reg .b32 %r<16>; .reg .f32 %f<8>;\n"
	"ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r3, 0; mov.u32 %r5, 12345;\n"
	"cvt.rn.f32.u32 %f1, %r2; mov.f32 %f2, 0f3F800001; mov.f32 %f3, 0f00000000;\n"
	"LOOP:\n"
	"fma.rn.f32 %f1, %f1, %f2, %f3; fma.rn.f32 %f4, %f1, %f2, %f1;\n"
	"add.s32 %r4, %r3, %r2; xor.b32 %r5, %r5, %r4; shl.b32 %r6, %r5, 3; add.s32 %r5, %r5, %r6;\n"
	"fma.rn.f32 %f3, %f4, %f2, %f3; mul.f32 %f5, %f1, %f4; add.f32 %f3, %f3, %f5;\n"
	"and.b32 %r7, %r5, 255; or.b32 %r8, %r7, %r4; sub.s32 %r9, %r8, %r6;\n"
	"add.s32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra LOOP;\n"
	"ret;\n}\n";

static const char shared[] =
	".version 9.0\n.target sm_90\n.address_size 64\n"
	".visible .entry loop(.param .u32 n)\n{\n"
	".reg .pred %p<2>; .reg .b32 %r<16>;\n"
	".shared .align 4 .b8 tile[4096];\n"
	"ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r3, 0; mov.u32 %r4, tile;\n"
	"shl.b32 %r5, %r2, 2; add.s32 %r6, %r4, %r5; st.shared.u32 [%r6], %r2;\n"
	"LOOP:\n"
	"ld.shared.u32 %r7, [%r6]; add.s32 %r7, %r7, %r3; st.shared.u32 [%r6], %r7;\n"
	"ld.shared.u32 %r8, [%r6]; xor.b32 %r9, %r8, %r7; st.shared.u32 [%r6], %r9;\n"
	"add.s32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra LOOP;\n"
	"ret;\n}\n";

static int rate(const char *name, const char *ptx, uint32_t n)
{
	struct consan_err e = { 0 };
	struct ptx_module *p = ptx_parse(name, ptx, strlen(ptx), &e);
	struct exec_module *m = p ? exec_load(p, &e) : NULL;
	const struct exec_kernel *k = m ? exec_kernel(m, "loop", &e) : NULL;
	struct exec_launch l = { .device = exec_device_for(90), .kernel = k,
		.grid = { 4, 1, 1 }, .block = { 256, 1, 1 }, .cluster = { 1, 1, 1 },
		.params = &n, .jobs = 1 };
	struct exec_result r = { 0 };
	struct timespec a, b;
	double s;

	if (!k || (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a), exec_run(&l, &r) != EXEC_OK)) {
		printf("  %-30s failed: %s\n", name, e.code ? e.text : r.err.text);
		return 1;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	s = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
	printf("  %-30s %8.0f M warp-ops/s  %6.2f G lane-ops/s\n", name,
		(double)r.warp_ops / s / 1e6, (double)r.warp_ops * 32 / s / 1e9);
	exec_unload(m);
	return 0;
}

int main(void)
{
	return rate("ALU loop", alu, 200000) | rate("shared-memory loop", shared, 200000);
}
