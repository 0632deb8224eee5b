/* rewrite: the time in which --backend=gpu instruments a module that is loaded, without ptxas: at
 * most 2 s for a kernel of 10,000 instructions, most of them recorded. Processor time of one
 * thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libconsan/session/gpu.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Loops of plain arithmetic, shared accesses, mbarriers, cp.async and wgmma. */
static void write_kernel(struct text *t, unsigned insns)
{
	unsigned n = 0;

	text_printf(t, ".version 8.7\n.target sm_90a\n.address_size 64\n"
		".visible .entry k(.param .u64 p)\n{\n"
		"\t.reg .b32 %%r<64>;\n\t.reg .b64 %%rd<16>;\n\t.reg .f32 %%f<64>;\n\t.reg .pred %%p<8>;\n"
		"\t.shared .align 128 .b8 tile[32768];\n\tmov.u32 %%r1, tile;\n\tld.param.u64 %%rd1, [p];\n");
	for (unsigned k = 0; n < insns; k++) {
		text_printf(t, "L%u:\n", k);
		for (unsigned i = 0; i < 8; i++, n += 3)
			text_printf(t, "\tld.shared.f32 %%f%u, [%%r1+%u];\n\tfma.rn.f32 %%f%u, %%f%u, %%f1, %%f2;\n"
				"\tst.shared.f32 [%%r1+%u], %%f%u;\n", i, 4 * i, i + 8, i, 128 + 4 * i, i + 8);
		text_printf(t, "\tcp.async.cg.shared.global [%%r1], [%%rd1], 16;\n\tcp.async.commit_group;\n"
			"\tcp.async.wait_group 0;\n\tbar.sync 0;\n"
			"\tmbarrier.try_wait.parity.shared::cta.b64 %%p1, [%%r1+1024], %%r2;\n"
			"\t@!%%p1 bra L%u;\n\twgmma.fence.sync.aligned;\n"
			"\twgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%%f40, %%f41, %%f42, %%f43}, "
			"%%rd2, %%rd3, 1, 1, 1, 0, 0;\n\twgmma.commit_group.sync.aligned;\n"
			"\twgmma.wait_group.sync.aligned 0;\n\tadd.f32 %%f50, %%f40, %%f41;\n", k);
		n += 11;
	}
	text_printf(t, "\tret;\n}\n");
}

int main(void)
{
	struct text t = { 0 };
	struct consan_err e = { 0 };
	struct gpu_module *m;
	double start, took;
	size_t bytes;

	write_kernel(&t, 10000);
	start = now();
	m = gpu_module_open("rewrite", t.at, t.n, false, false, false, &e);
	took = now() - start;
	if (!m) {
		printf("rewrite: %s\n", e.text);
		return 1;
	}
	gpu_module_text(m, &bytes);
	printf("\ninstrumenting for --backend=gpu, ptxas aside\n  %zu instructions: %.3f s, "
		"%zu KiB of PTX become %zu KiB (at most 2 s wanted)\n",
		gpu_module_insns(m), took, t.n >> 10, bytes >> 10);
	gpu_module_close(m);
	text_free(&t);
	return took > 2;
}
