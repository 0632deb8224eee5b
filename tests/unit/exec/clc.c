/* Cluster launch control: each cluster of a grid either starts or is canceled by another one. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libconsan/exec/exec.h"

/* Persistent clusters: thread 0 of the first CTA asks for more work, for all CTAs. Each CTA counts
 * its work, out[ctaid.x]++, and at first started[ctaid.x]++. before: instructions
 * before the request, more: behind the wait. */
#define KERNEL(multicast, before, more) \
	".version 8.7\n.target sm_100a\n.address_size 64\n" \
	".visible .entry k(.param .u64 out)\n{\n" \
	".reg .pred %p<8>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<10>;\n.reg .b128 %q;\n" \
	".shared .align 16 .b8 answer[16];\n.shared .align 8 .b64 bar;\n" \
	"ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n" \
	"mov.u32 %r3, %cluster_ctarank;\nmov.u32 %r9, 0;\n" \
	"setp.ne.u32 %p0, %r1, 0;\nsetp.ne.u32 %p1, %r3, 0;\nor.pred %p2, %p0, %p1;\n" \
	"@%p0 bra READY;\nmbarrier.init.shared::cta.b64 [bar], 1;\n" \
	"fence.mbarrier_init.release.cluster;\n" \
	"mul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd2, %rd1, %rd2;\nred.global.add.u32 [%rd2+32768], 1;\n" \
	"READY:\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n" \
	"LOOP:\n@%p0 bra ASK;\n" \
	"mul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd2, %rd1, %rd2;\nred.global.add.u32 [%rd2], 1;\n" \
	"mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n" \
	"ASK:\n" before "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n" \
	"@%p2 bra WAIT;\n" \
	"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes" multicast \
	".b128 [answer], [bar];\n" \
	"WAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [bar], %r9;\n" \
	"@!%p3 bra WAIT;\nxor.b32 %r9, %r9, 1;\n" \
	"ld.shared.b128 %q, [answer];\nfence.proxy.async.shared::cta;\n" \
	"clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p4, %q;\n" more \
	"@!%p4 bra END;\n" \
	"clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r2, %r5, %r6, _}, %q;\n" \
	"clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r7, %q;\n" \
	"clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r10, %q;\n" \
	"clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r11, %q;\n" \
	"setp.ne.u32 %p5, %r2, %r7;\n@%p5 trap;\nor.b32 %r5, %r5, %r6;\nor.b32 %r5, %r5, %r10;\n" \
	"or.b32 %r5, %r5, %r11;\nsetp.ne.u32 %p5, %r5, 0;\n@%p5 trap;\nadd.u32 %r2, %r2, %r3;\n" \
	"bra LOOP;\n" \
	"END:\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nret;\n}\n"

#define ALONE KERNEL("", "", "")
#define TOGETHER KERNEL(".multicast::cluster::all", "", "")
/* Asks once: what still waits at its place starts there. */
#define ONCE KERNEL("", "setp.eq.u32 %p6, %r9, 1;\n@%p6 bra END;\n", "")
/* Runs long enough that other workers take part; CTA 300 fails. */
#define FAILS KERNEL("", "mov.u32 %r13, 0;\nW:\nadd.u32 %r13, %r13, 1;\n" \
	"setp.lt.u32 %p6, %r13, 1000;\n@%p6 bra W;\n" \
	"setp.eq.u32 %p7, %r2, 300;\n@%p7 trap;\n", "")
/* Strong reads of global memory: one schedule for all clusters. */
#define COUPLED KERNEL("", "", "ld.relaxed.gpu.global.u32 %r12, [%rd1+65532];\n")

#define WORDS 16384
#define STARTED 8192

struct outcome {
	uint32_t *memory;
	unsigned started;          /* CTAs */
	struct exec_result r;
};

static struct outcome launch(const char *text, struct exec_launch l)
{
	struct consan_err e = { 0 };
	struct outcome o = { .memory = calloc(WORDS, 4) };
	struct ptx_module *p = ptx_parse("test.ptx", text, strlen(text), &e);
	struct exec_module *m;

	cr_assert(p, "line %d: %s", e.line, e.text);
	m = exec_load(p, &e);
	cr_assert(m, "%s", e.text);
	l.device = exec_device_for(100);
	l.kernel = exec_kernel(m, "k", &e);
	l.params = &o.memory;
	l.timeout = 200;
	exec_mem_add(o.memory, WORDS * 4, MEM_DEVICE, false);
	exec_run(&l, &o.r);
	exec_mem_remove(o.memory);
	exec_unload(m);
	return o;
}

static struct outcome run(const char *text, unsigned grid, unsigned cluster, unsigned shared,
	uint64_t seed, unsigned jobs, unsigned fallback)
{
	struct exec_launch l = { .grid = { grid, 1, 1 }, .block = { 32, 1, 1 },
		.cluster = { cluster, 1, 1 }, .jobs = jobs, .seed = seed, .shared_dynamic = shared,
		.async = seed ? ASYNC_RANDOM : ASYNC_LATE, .fallback = { fallback, fallback > 0,
		fallback > 0 } };
	struct outcome o = launch(text, l);

	cr_assert_eq(o.r.status, EXEC_OK, "%s", o.r.err.text);
	for (unsigned k = 0; k < grid; k++) {
		cr_assert_eq(o.memory[k], 1, "CTA %u: %u times", k, o.memory[k]);
		cr_assert_leq(o.memory[STARTED + k], 1);
		o.started += o.memory[STARTED + k];
	}
	cr_assert_eq(o.r.ctas, o.started);
	return o;
}

static unsigned started(const char *text, unsigned grid, unsigned cluster, unsigned shared,
	uint64_t seed)
{
	struct outcome one = run(text, grid, cluster, shared, seed, 1, 0);
	struct outcome two = run(text, grid, cluster, shared, seed, 2, 0);

	cr_assert_arr_eq(one.memory, two.memory, WORDS * 4, "seed %d", (int)seed);
	free(one.memory);
	free(two.memory);
	return one.started;
}

/* One CTA of this size fits each of 148 SMs. */
#define WHOLE_SM (200 << 10)

Test(clc, as_many_start_as_fit)
{
	cr_expect_eq(started(ALONE, 1000, 1, WHOLE_SM, 0), 148);
	cr_expect_eq(started(ALONE, 1000, 1, WHOLE_SM / 2, 0), 2 * 148);
	cr_expect_eq(started(TOGETHER, 1000, 2, WHOLE_SM, 0), 148);
	cr_expect_eq(started(TOGETHER, 1000, 4, WHOLE_SM, 0), 148);
}

Test(clc, half_if_all_fit)
{
	cr_expect_eq(started(ALONE, 100, 1, 0, 0), 50);
	cr_expect_eq(started(TOGETHER, 100, 2, 0, 0), 50);
	cr_expect_eq(started(ALONE, 1, 1, 0, 0), 1);
}

Test(clc, what_is_not_canceled_starts)
{
	cr_expect_eq(started(ONCE, 4 * 148, 1, WHOLE_SM, 0), 2 * 148);
	for (uint64_t seed = 1; seed < 6; seed++)
		started(ONCE, 100, 1, 0, seed);
}

Test(clc, seeds_draw_how_many_start)
{
	unsigned least = UINT32_MAX, most = 0;

	for (uint64_t seed = 1; seed < 20; seed++) {
		const unsigned n = started(seed & 1 ? ALONE : TOGETHER, 96, seed & 1 ? 1 : 2, 0, seed);

		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	cr_expect_lt(least, 30);
	cr_expect_gt(most, 40);
}

Test(clc, coupled_kernels)
{
	cr_expect_eq(started(COUPLED, 1000, 1, WHOLE_SM, 0), 148);
	for (uint64_t seed = 1; seed < 6; seed++)
		started(COUPLED, 100, 1, 0, seed);
}

/* A cluster cancels clusters of its own size only; all others start. */
Test(clc, clusters_of_two_sizes)
{
	for (uint64_t seed = 0; seed < 6; seed++) {
		struct outcome o = run(TOGETHER, 96, 4, 0, seed, 2, 2);

		cr_expect_gt(o.started, 1);
		free(o.memory);
	}
}

/* The same clusters run to their ends, whatever the number of workers. */
Test(clc, failure)
{
	const struct exec_launch l = { .grid = { 1000, 1, 1 }, .block = { 32, 1, 1 },
		.cluster = { 1, 1, 1 }, .shared_dynamic = WHOLE_SM };
	uint32_t *first = NULL;

	for (unsigned jobs = 1; jobs < 5; jobs++) {
		struct exec_launch with = l;
		struct outcome o;

		with.jobs = jobs;
		o = launch(FAILS, with);
		cr_assert_eq(o.r.status, EXEC_TRAP);
		/* CTA 300 was canceled by its place's first cluster */
		cr_expect_eq(o.r.bad_cluster, 300 % 148);
		for (unsigned k = 0; k < 300 % 148; k++)
			for (unsigned n = k; n < 1000; n += 148)
				cr_assert_eq(o.memory[n], 1, "%u jobs: CTA %u", jobs, n);
		if (!first)
			first = o.memory;
		else
			free(o.memory);
	}
	free(first);
}
