/* instrument: emulated GPU mode: instrumented PTX runs on the executor, and its records are
 * checked. tests/cases/harness/kernels.c compares the findings of all bundled kernels with
 * those of the cpu backend. Long because of the texts of the kernels. */
#include "tests/common/device_memory.h"
#include "tests/common/limits.h"
#include "tests/common/shell.h"
#include "tests/common/skip.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "instrument/decode/decode.h"
#include "libconsan/exec/internal.h"
#include "libconsan/finding/finding.h"
#include "libconsan/ptx/opcodes.h"
#include "libconsan/session/gpu.h"

/* Several streams, faults, hangs: what --backend=gpu must support */
Test(instrument, scenarios, .timeout = TEST_LIMIT)
{
	const char *dir = build_dir();

	cr_assert_eq(shell("%s/tests/gpu/scenarios %s gpu-emulated 2>&1", dir, dir), 0, "%s", output);
}

/* Some of the specimens that tests/cases/harness/cases.c runs in its own process, here as
 * programs of the driver API. */
Test(instrument, specimens, .timeout = TEST_LIMIT)
{
	const char *dir = build_dir();

	cr_assert_eq(shell("%s/tests/gpu/specimens %s gpu-emulated '' 1/20 2>&1", dir, dir), 0, "%s",
		output);
}

Test(instrument, planted_bugs, .timeout = TEST_LIMIT)
{
	const char *dir = build_dir();

	cr_assert_eq(shell("%s/tests/gpu/planted_bugs %s gpu-emulated ring 1/4 2>&1", dir, dir), 0, "%s",
		output);
}

/* Equal values are a warning, as on the cpu backend, and different ones an error. */
Test(instrument, values_of_stores, .timeout = TEST_LIMIT)
{
	const char *dir = build_dir();

	cr_assert_eq(shell("unset BXFI_MAP; CASES='tests/cases/race/cs101_*values*.ptx' CASES_PRINT=1 "
		"CASES_WITH='backend=gpu-emulated gpu-global=1' %s/tests/cases/harness/cases "
		"--filter cases/specimen 2>&1", dir), 0, "%s", output);
	cr_expect(strstr(output, "CS101 severity 1 hint:equal_values"), "%s", output);
	cr_expect(!strstr(output, "values_unknown"), "%s", output);
}

/* The findings of another schedule's records are those of the cpu backend under some schedule:
 * the other one of two unordered accesses comes first, there is no finding; a release was recorded
 * before other warps of the warpgroup recorded the preceding wait; the lanes of a warp reach
 * setmaxnreg at two times; a barrier is reused by other threads. */
Test(instrument, schedules, .timeout = TEST_LIMIT)
{
	static const struct { const char *run, *expected; } other[] = {
		{ "specimens --seed=2 %s gpu-emulated race/cs121_operand_unordered",
			"CS120 55|48 (as under --seed=" },
		{ "specimens --seed=4 %s gpu-emulated tricky/flag_through_a_chain",
			"(nothing, as under --seed=" },
		{ "specimens --seed=2 %s gpu-emulated tricky/wgmma_stage_released_one_too_early",
			"2 as expected, 0 wrong" },
		{ "planted_bugs --all --seed=1 %s gpu-emulated primed_at_init", "1 as expected, 0 wrong" },
		{ "planted_bugs --seed=3 %s gpu-emulated turns_shared", "1 as expected, 0 wrong" },
	};
	const char *dir = build_dir();

	for (size_t k = 0; k < sizeof other / sizeof *other; k++) {
		char run[160];

		snprintf(run, sizeof run, other[k].run, dir);
		cr_expect_eq(shell("%s/tests/gpu/%s 2>&1", dir, run), 0, "%s: %s", run, output);
		cr_expect(strstr(output, other[k].expected), "%s: %s", run, output);
	}
}

/* The first finding, without its number of occurrences. */
static void first_finding(char *to, size_t size)
{
	const char *at = strstr(output, "error "), *end = at ? strstr(at, "\n  seen ") : NULL;

	snprintf(to, size, "%.*s", at && end ? (int)(end - at) : 0, at ? at : "");
}

/* The reports of both backends are the same (only the executor tries edits): which warps wait where,
 * for which phase, and what is missing. */
Test(instrument, hangs, .timeout = TEST_LIMIT)
{
	static const char *const bug[] = { "ring/ring --ctas=1 --rows=256 --bug=tx_too_few",
		"ring/ring --ctas=1 --rows=256 --bug=too_few_releases",
		"ring/ring --ctas=1 --rows=256 --bug=barrier_count",
		"wgmma_gemm/wgmma_gemm --bug=producer_parity",
		"wgmma_gemm/wgmma_gemm --bug=release_own_only",
		"wgmma_gemm/wgmma_gemm --bug=mask_narrow --cluster=2x2",
		"attention/hopper --bug=no_first_turn" };
	static char first[2][1 << 14];
	const char *dir = build_dir();

	for (size_t k = 0; k < sizeof bug / sizeof *bug; k++) {
		for (unsigned b = 0; b < 2; b++) {
			cr_expect_eq(shell("%s/consan-run --backend=%s --no-source --verify-fixes=no "
				"--timeout=3 %s/kernels/%s 2>&1", dir, b ? "gpu-emulated" : "cpu", dir, bug[k]), 66, "%s: %s", bug[k], output);
			first_finding(first[b], sizeof first[b]);
		}
		cr_expect(first[0][0] && strstr(first[0], "waiting"), "%s", bug[k]);
		cr_expect_str_eq(first[1], first[0], "%s", bug[k]);
	}
}

/* Hangs are found from records: a loop that records nothing, or whose loads could return
 * another value, is reported as stopped. */
Test(instrument, hang_specimens, .timeout = TEST_LIMIT)
{
	const char *dir = build_dir();

	cr_expect_eq(shell("unset BXFI_MAP; CASES='tests/cases/hang/cs70[13-6]*.ptx' "
		"CASES_WITH='backend=gpu-emulated timeout=2' %s/tests/cases/harness/cases "
		"--filter cases/specimen 2>&1", dir), 0, "%s", output);
	cr_expect_null(strstr(output, "Tested: 0"), "none");
}

/* A program that runs in emulated GPU mode with the test's options and its own. */
struct emulated_run { const char *program, *options, *says; int status; };

static void expect_run(const struct emulated_run *run, const char *fixed)
{
	const char *dir = build_dir();

	cr_expect_eq(shell("%s/consan-run --backend=gpu-emulated %s %s %s/kernels/%s 2>&1", dir, fixed,
		run->options, dir, run->program), run->status, "%s %s: %s", run->program, run->options, output);
	cr_expect(strstr(output, run->says), "%s %s: %s", run->program, run->options, output);
}

/* With a pool that is too small, records are drained while the kernel runs: the findings are
 * the same. */
Test(instrument, drained, .timeout = TEST_LIMIT)
{
	static const struct emulated_run run[] = {
		{ "hgemm/hgemm --m=512 --n=1024 --k=640", "", "0 errors, 0 warnings, 0 notes", 0 },
		{ "hgemm/hgemm --m=512 --n=1024 --k=640", "--gpu-each", "0 errors, 0 warnings, 0 notes", 0 },
		{ "hgemm/hgemm --m=512 --n=1024 --k=640 --bug=wait_off_by_one", "",
			"1 error, 0 warnings, 0 notes, 7 consequences (CS301)", 66 },
		{ "hgemm/hgemm --m=512 --n=1024 --k=640 --bug=no_wait", "", "CS107 CS301", 66 },
		{ "wgmma_gemm/wgmma_gemm --m=1024 --n=1024 --k=1024", "--gpu-memory=2",
			"0 errors, 0 warnings, 0 notes", 0 },
		{ "wgmma_gemm/wgmma_gemm --m=1024 --n=1024 --k=1024 --bug=consumer_parity", "--gpu-memory=2",
			"CS107 CS120 CS121 CS208", 66 },
		{ "ring/ring --rows=4000", "--gpu-global", "0 errors, 0 warnings, 0 notes", 0 },
		{ "attention/fa2_shared_qkv --n=512 --h=2", "", "0 errors, 0 warnings, 0 notes", 0 },
		{ "attention/fa2_shared_qkv --n=512 --h=2 --bug=q_no_sync", "", "CS106 CS301", 66 },
		/* it does not fit into the host's memory either */
		{ "hgemm/hgemm --m=512 --n=1024 --k=640", "--gpu-each --gpu-host-memory=1", "NOT CHECKED", 67 },
		{ "ring/ring --rows=8000", "--gpu-host-memory=1", "0 errors, 0 warnings, 0 notes", 67 },
	};
	const char *left;

	for (size_t k = 0; k < sizeof run / sizeof *run; k++) {
		expect_run(&run[k], "--gpu-drain --gpu-memory=1 --gpu-times");
		left = strstr(output, "KiB left the pool");
		cr_expect(left && strncmp(left - 3, ": 0", 3), "%s: nothing was drained: %s", run[k].program,
			output);
	}
}

static const char each_leads[] =
	".version 8.0\n.target sm_80\n.address_size 64\n"
	".shared .align 4 .b8 s[4];\n"
	".visible .entry each_leads()\n{\n\t.reg .b32 %lane, %who, %round;\n\t.reg .pred %p;\n"
	"\tmov.u32 %lane, %tid.x;\n\tmov.u32 %round, 0;\n"
	"AGAIN: mov.u32 %who, 0;\n"
	"NEXT: setp.ne.u32 %p, %who, %lane;\n\t@%p bra NOT;\n\tst.shared.u32 [s], %who;\n"
	"NOT: bar.warp.sync -1;\n\tadd.u32 %who, %who, 1;\n\tsetp.lt.u32 %p, %who, 32;\n\t@%p bra NEXT;\n"
	"\tadd.u32 %round, %round, 1;\n\tsetp.lt.u32 %p, %round, 200;\n\t@%p bra AGAIN;\n\tret;\n}\n";

/* All lanes have chunks, and those of all CTAs exit at the same clock. Each chunk must be
 * recognized as complete, and nothing may come after what is taken for the end of a CTA. */
Test(instrument, drained_identical, .timeout = TEST_LIMIT)
{
	struct consan_err e = { 0 };
	struct consan *c = consan_open("backend=gpu-emulated gpu-drain=1 gpu-memory=1 jobs=1", &e);
	struct consan_module *m = consan_load_ptx(c, "k.ptx", each_leads, sizeof each_leads - 1, &e);
	struct consan_launch l = { .grid = { 64, 1, 1 }, .block = { 32, 1, 1 } };
	const struct coverage *v;

	cr_assert_not_null(m, "%s", e.text);
	l.kernel = consan_kernel(m, "each_leads", &e);
	cr_assert_eq(consan_launch(c, &l, &e), CONSAN_OK, "%s", e.text);
	cr_assert_eq(consan_raw_coverage(c, &v), 1);
	/* while the host is slow more CTAs start, and the pool may be too small for them */
	cr_expect_null(strstr(v->unchecked, "left the GPU"), "%s", v->unchecked);
	cr_expect_eq(consan_errors(c), 0);
	consan_unload(m);
	consan_close(c);
}

/* Whether all records fit or not, lanes that wait for chunks and reach their cluster barriers
 * late are not a hang. */
Test(instrument, drained_clusters, .timeout = TEST_LIMIT)
{
	const char *dir = build_dir();

	for (unsigned k = 0; k < 10; k++) {
		shell("%s/consan-run --backend=gpu-emulated --gpu-drain --gpu-memory=2 --gpu-each "
			"%s/kernels/fallback/fallback --clusters=400 --form=multicast 2>&1", dir, dir);
		cr_assert(strstr(output, "0 errors, 0 warnings, 0 notes"), "%s", output);
	}
}

static const char beside[] =
	".version 8.8\n"
	".target sm_90a\n"
	".address_size 64\n"
	".visible .entry poll_beside_waiters(.param .u64 p0)\n"
	"{\n"
	"\t.reg .pred %p, first;\n"
	"\t.reg .b32 %r, %n;\n"
	"\t.reg .b64 flag;\n"
	"\t.shared .align 8 .b8 bar[8];\n"
	"\tld.param.u64 flag, [p0];\n"
	"\tmov.u32 %r, %tid.x;\n"
	"\tsetp.eq.u32 first, %r, 0;\n"
	"\t@first mbarrier.init.shared::cta.b64 [bar], 1;\n"
	"\tbar.sync 0;\n"
	"\tmov.u32 %r, %ctaid.x;\n"
	"\tsetp.ne.u32 %p, %r, 0;\n"
	"\t@%p bra CONSUMER;\n"
	"\tmov.u32 %n, 0;\n"
	"WORK:\tadd.u32 %n, %n, 1;\n"
	"\tsetp.lt.u32 %p, %n, 3000;\n"
	"\t@%p bra WORK;\n"
	"\t@first st.release.gpu.global.u32 [flag], 1;\n"
	"\tret;\n"
	"CONSUMER:\n"
	"\t@!first bra WAIT;\n"
	"POLL:\tld.acquire.gpu.global.u32 %r, [flag];\n"
	"\tsetp.eq.u32 %p, %r, 1;\n"
	"\t@!%p bra POLL;\n"
	"\tmbarrier.arrive.shared::cta.b64 _, [bar];\n"
	"WAIT:\tmbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;\n"
	"\t@!%p bra WAIT;\n"
	"\tret;\n"
	"}\n";

/* One lane polls a flag while the others of its warp try a wait: that it has not polled since
 * the flag was set does not mean that the kernel makes no progress. */
Test(instrument, flag_and_try_wait, .timeout = TEST_LIMIT)
{
	struct consan_err e = { 0 };
	struct consan *c = consan_open("backend=gpu-emulated gpu-drain=1 jobs=2 seed=1", &e);
	struct consan_module *m = consan_load_ptx(c, "k.ptx", beside, sizeof beside - 1, &e);
	int *flag = consan_malloc(c, sizeof *flag, CONSAN_MEM_DEVICE);
	const void *args[] = { &flag };
	struct consan_launch l = { .grid = { 2, 1, 1 }, .block = { 32, 1, 1 }, .args = args };

	cr_assert_not_null(m, "%s", e.text);
	l.kernel = consan_kernel(m, "poll_beside_waiters", &e);
	for (unsigned k = 0; k < 500; k++) {
		*flag = 0;
		cr_assert_eq(consan_launch(c, &l, &e), CONSAN_OK, "%u: %s", k, e.text);
	}
	consan_free(c, flag);
	consan_unload(m);
	consan_close(c);
}

#define POLLED_BY(atomic) ".version 8.0\n.target sm_80\n.address_size 64\n" \
	".visible .entry polled(.param .u64 p0)\n{\n\t.reg .pred %p;\n\t.reg .b32 %r, %n;\n\t.reg .b64 flag;\n" \
	"\tld.param.u64 flag, [p0];\n\tmov.u32 %n, 0;\n" \
	"AGAIN:\t" atomic ";\n\tadd.u32 %n, %n, 1;\n\tsetp.lt.u32 %p, %n, 100;\n\t@%p bra AGAIN;\n\tret;\n}\n"

/* What a loop records that waits by an atomic which keeps the value does not grow with the time that it
 * waits; another one may change what others see, so each is recorded. */
Test(instrument, atomics_that_poll, .timeout = 100)
{
	static const struct { const char *ptx; bool keeps; } kernel[] = {
		{ POLLED_BY("atom.acquire.gpu.global.add.u32 %r, [flag], 0"), true },
		{ POLLED_BY("atom.global.or.b32 %r, [flag], 0"), true },
		{ POLLED_BY("atom.global.and.b32 %r, [flag], -1"), true },
		{ POLLED_BY("atom.acq_rel.gpu.global.cas.b32 %r, [flag], 7, 7"), true },
		{ POLLED_BY("atom.global.max.u32 %r, [flag], 0"), false },
	};
	const struct coverage *v;
	struct consan_err e = { 0 };

	for (size_t k = 0; k < sizeof kernel / sizeof *kernel; k++) {
		struct consan *c = consan_open("backend=gpu-emulated gpu-global=1 jobs=2", &e);
		struct consan_module *m = consan_load_ptx(c, "k.ptx", kernel[k].ptx, strlen(kernel[k].ptx), &e);
		int *flag = consan_malloc(c, sizeof *flag, CONSAN_MEM_DEVICE);
		const void *args[] = { &flag };
		struct consan_launch l = { .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .args = args };

		cr_assert_not_null(m, "%s", e.text);
		l.kernel = consan_kernel(m, "polled", &e);
		*flag = 0;
		cr_expect_eq(consan_launch(c, &l, &e), CONSAN_OK, "%zu: %s", k, e.text);
		cr_expect_eq(consan_errors(c), 0, "%zu", k);
		cr_assert_eq(consan_raw_coverage(c, &v), 1);
		cr_expect(kernel[k].keeps == (v->warp_ops < 20), "%zu: %llu records", k,
			(unsigned long long)v->warp_ops);
		consan_free(c, flag);
		consan_unload(m);
		consan_close(c);
	}
}

/* Hooks with draining record the same. */
Test(instrument, drained_specimens, .timeout = TEST_LIMIT)
{
	cr_expect_eq(shell("unset BXFI_MAP; CASES='tests/cases/[ac]*/*.ptx' "
		"CASES_WITH='backend=gpu-emulated gpu-global=1 gpu-drain=1 gpu-memory=1 timeout=10' "
		"%s/tests/cases/harness/cases --filter cases/specimen 2>&1", build_dir()), 0, "%s", output);
	cr_expect_null(strstr(output, "Tested: 0"), "none");
}

/* A cluster of which records did not fit may lack a wait: nothing is reported for it, except
 * that it was not checked; the others are checked. */
Test(instrument, overflow, .timeout = TEST_LIMIT)
{
	static const struct emulated_run run[] = {
		{ "wgmma_gemm/wgmma_gemm --m=1024 --n=1024 --k=512", "", "0 errors, 0 warnings, 0 notes", 67 },
		{ "wgmma_gemm/wgmma_gemm --m=1024 --n=1024 --k=512", "--gpu-global",
			"0 errors, 0 warnings, 0 notes", 67 },
		{ "hgemm/hgemm --m=512 --n=1024 --k=640", "", "0 errors, 0 warnings, 0 notes", 67 },
		{ "hgemm/hgemm --m=512 --n=1024 --k=640 --bug=no_wait", "", "(CS107 CS301)", 66 },
		{ "ring/ring --rows=20000", "--gpu-global", "0 errors, 0 warnings, 0 notes", 67 },
		{ "wgmma_gemm/wgmma_gemm --m=1024 --n=1024 --k=1024 --bug=one_releases", "",
			"(CS701 CS705)", 66 },
		{ "wgmma_gemm/wgmma_gemm --m=1024 --n=1024 --k=1024 --bug=one_releases", "--gpu-global",
			"(CS705)", 66 },
	};

	for (size_t k = 0; k < sizeof run / sizeof *run; k++) {
		expect_run(&run[k], "--gpu-global=no --gpu-memory=2");
		cr_expect(strstr(output, "did not fit"), "%s %s: %s", run[k].program, run[k].options, output);
	}
}

/* Short launches with few clusters: the pre-check misses no finding, and several clusters with
 * the same finding are counted. */
Test(instrument, precheck, .timeout = TEST_LIMIT)
{
#define CLEAN "0 errors, 0 warnings, 0 notes"
	static const struct { const char *program, *bug, *says; } run[] = {
		{ "ring/ring --ctas=1 --rows=256", "", CLEAN },
		{ "ring/ring --ctas=1 --rows=256", "no_empty_wait", "CS107" },
		{ "ring/ring --ctas=1 --rows=256", "early_release", "CS106" },
		{ "ring/ring --ctas=1 --rows=256", "no_syncwarp", "CS106" },
		{ "ring/ring --ctas=1 --rows=256", "no_proxy_fence", "CS110" },
		{ "ring/ring --ctas=1 --rows=256", "partial_unsynced", "CS105" },
		{ "ring/ring --ctas=1 --rows=256", "too_few_releases", "CS701" },
		{ "wgmma_gemm/wgmma_gemm --m=256 --n=128 --k=512 --ctas=2", "", CLEAN },
		{ "wgmma_gemm/wgmma_gemm --m=256 --n=128 --k=512 --ctas=2", "no_full_wait", "CS121" },
		{ "wgmma_gemm/wgmma_gemm --m=256 --n=128 --k=512 --ctas=2", "release_early", "CS120" },
		{ "wgmma_gemm/wgmma_gemm --m=256 --n=128 --k=512 --ctas=2", "no_wgmma_fence", "CS320" },
		{ "wgmma_gemm/wgmma_gemm --m=256 --n=128 --k=512 --ctas=2", "no_wgmma_commit", "CS321" },
		{ "hgemm/hgemm --m=128 --n=128 --k=256", "", CLEAN },
		{ "hgemm/hgemm --m=128 --n=128 --k=256", "no_sync", "CS301" },
		{ "hgemm/hgemm --m=128 --n=128 --k=256", "no_wait", "CS301" },
		{ "ring/ring --ctas=3 --rows=768", "", CLEAN },
		{ "ring/ring --ctas=3 --rows=768", "early_release", ", 3 clusters" },
		{ "hgemm/hgemm --m=256 --n=256 --k=128", "", CLEAN },
		{ "hgemm/hgemm --m=256 --n=256 --k=128", "no_sync", ", 2 clusters" },
	};
	const char *dir = build_dir();

	for (size_t k = 0; k < ARRAY_SIZE(run); k++) {
		shell("%s/consan-run --backend=gpu-emulated --jobs=16 --timeout=2 %s/kernels/%s %s%s 2>&1", dir,
			dir, run[k].program, *run[k].bug ? "--bug=" : "", run[k].bug);
		cr_expect_not_null(strstr(output, run[k].says), "%s %s: %s", run[k].program, run[k].bug, output);
	}
#undef CLEAN
}

static const char kernel[] =
	".version 8.0\n.target sm_80\n.address_size 64\n"
	".shared .align 16 .b8 tile[256];\n"
	".func helper() { .reg .b32 %r; mov.b32 %r, tile; st.shared.u32 [%r], 1; ret; }\n"
	".visible .entry plain(.param .u64 p)\n{\n\t.reg .b32 %r<4>;\n\t.reg .pred %p;\n"
	"L: mov.u32 %r1, tile;\n\tld.shared.u32 %r2, [%r1+4];\n\tsetp.eq.u32 %p, %r2, 0;\n"
	"\t{ .reg .b32 %r1; mov.u32 %r1, 5; @%p st.shared.u32 [tile+8], %r1; }\n"
	"\t@!%p bra L;\n\tret;\n}\n"
	".visible .entry calls()\n{\n\tcall helper, ();\n\tret;\n}\n"
	".func fences()\n{\n\twgmma.fence.sync.aligned; ret; }\n"
	".visible .entry wgmma() { call fences; ret; }\n";

/* Inserted text does not collide with the module's labels, scopes and guards. */
Test(instrument, rewritten)
{
	struct consan_err e = { 0 };
	struct gpu_module *m = gpu_module_open("k.ptx", kernel, sizeof kernel - 1, false, false, false,
		&e);
	struct ptx_module *again;
	const struct ptx_func *f;
	const char *text;
	size_t n, stores = 0;

	cr_assert_not_null(m, "%s", e.text);
	text = gpu_module_text(m, &n);
	again = ptx_parse("again.ptx", text, n, &e);
	cr_assert_not_null(again, "%s\n%s", e.text, text);
	cr_assert(ptx_verify(again, &e), "%s", e.text);
	cr_assert_not_null(strstr(text, gpu_module_variable(m)));
	f = ptx_find(again, "plain");
	for (size_t k = 0; k < f->ninsn; k++)
		stores += f->insn[k].op == OP_st && ptx_has(&f->insn[k], MOD_shared);
	cr_assert_eq(stores, 1);
	ptx_free(again);
	gpu_module_close(m);
}

/* The accesses of a function count for its callers; accesses that are not recorded are
 * reported. */
Test(instrument, counted)
{
	struct consan_err e = { 0 };
	struct ptx_module *m = ptx_parse("k.ptx", kernel, sizeof kernel - 1, &e);
	const struct rewrite_func *f;
	struct rewrite *r;

	cr_assert_not_null(m, "%s", e.text);
	r = rewrite_module(m, &(struct rewrite_options){ .number = 7 });
	cr_assert_null(rewrite_find(r, "plain")->refused);
	cr_assert_eq(rewrite_find(r, "plain")->sites, 2);
	cr_assert_eq(rewrite_find(r, "plain")->recorded, 3, "ret counts, too");
	cr_assert_null(rewrite_find(r, "calls")->refused);
	cr_assert_eq(rewrite_find(r, "calls")->sites, 1);
	cr_assert_eq(rewrite_find(r, "calls")->recorded, 2);
	cr_assert_eq(rewrite_find(r, "calls")->nsymbols, 1);
	f = rewrite_find(r, "wgmma");
	cr_assert(f->refused && strstr(f->refused, "line 24: in the device function fences, wgmma"), "%s",
		f->refused);
	cr_assert_null(rewrite_find(r, "none"));
	rewrite_free(r);
	ptx_free(m);
}

/* With accesses to global memory, kernels whose calls of malloc or free cannot be recorded are
 * refused. */
Test(instrument, heap)
{
	static const char heap[] = ".version 8.8\n.target sm_90a\n.address_size 64\n"
		".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
		".extern .func free(.param .b64 p);\n"
		".visible .entry beside() { .reg .b64 b; .param .b64 n, r, p;\n"
		"st.param.b64 [n], 256; call.uni (r), malloc, (n); ld.param.b64 b, [r];\n"
		"st.param.b64 [p], b; call.uni free, (p); ret; }\n"
		".visible .entry apart() { .reg .b64 b; .param .b64 n, p; .param .b64 r;\n"
		"st.param.b64 [n], 256; call.uni (r), malloc, (n); call.uni free, (r); ret; }\n";
	struct consan_err e = { 0 };
	struct ptx_module *m = ptx_parse("heap.ptx", heap, sizeof heap - 1, &e);
	struct rewrite *r;

	cr_assert_not_null(m, "%s", e.text);
	for (int global = 0; global < 2; global++) {
		r = rewrite_module(m, &(struct rewrite_options){ .number = 7, .global = global });
		cr_assert_null(rewrite_find(r, "beside")->refused);
		cr_assert_eq(!rewrite_find(r, "apart")->refused, !global);
		rewrite_free(r);
	}
	ptx_free(m);
}

/* The mask is among the values of the record. */
Test(instrument, bytes_by_mask)
{
	static const char text[] = ".version 8.8\n.target sm_100a\n.address_size 64\n"
		".visible .entry whole(.param .u64 p) { .shared .align 16 .b8 a[64]; .reg .b64 d;\n"
		"ld.param.u64 d, [p]; cp.async.bulk.global.shared::cta.bulk_group [d], [a], 64; ret; }\n"
		".visible .entry part(.param .u64 p) { .shared .align 16 .b8 a[64]; .reg .b64 d; .reg .b16 m;\n"
		"ld.param.u64 d, [p]; mov.b16 m, 255;\n"
		"cp.async.bulk.global.shared::cta.bulk_group.cp_mask [d], [a], 64, m; ret; }\n";
	struct consan_err e = { 0 };
	struct ptx_module *m = ptx_parse("mask.ptx", text, sizeof text - 1, &e);
	struct rewrite *r;

	cr_assert_not_null(m, "%s", e.text);
	r = rewrite_module(m, &(struct rewrite_options){ .number = 7, .global = true });
	cr_assert_null(rewrite_find(r, "whole")->refused);
	cr_assert_null(rewrite_find(r, "part")->refused);
	for (size_t k = 0; k < m->nfunc; k++) {
		const struct ptx_func *f = &m->func[k];
		struct plan p;

		for (size_t n = 0; n < f->ninsn; n++)
			if (f->insn[n].op == OP_cp_async_bulk && plan_of(f, &f->insn[n], &p))
				cr_expect_eq(p.value[p.nvalues - 1].o == &f->insn[n].operand[3], k == 1);
	}
	rewrite_free(r);
	ptx_free(m);
}

/* Only recursive functions that record make the stack depth unknown; other functions stay
 * unchanged. */
Test(instrument, unbounded_stack)
{
	static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
		".shared .align 16 .b8 tile[256];\n"
		".func plain() { call.uni plain, (); ret; }\n"
		".func even();\n"
		".func odd() { st.shared.u32 [tile], 1; call.uni even, (); ret; }\n"
		".func even() { call.uni odd, (); ret; }\n"
		".func flat() { st.shared.u32 [tile], 1; call.uni plain, (); ret; }\n"
		".visible .entry a() { call odd, (); ret; }\n"
		".visible .entry b() { call flat, (); ret; }\n"
		".visible .entry c() { st.shared.u32 [tile], 1; ret; }\n";
	struct consan_err e = { 0 };
	struct gpu_module *m = gpu_module_open("k.ptx", text, sizeof text - 1, false, false, false, &e);

	cr_assert_not_null(m, "%s", e.text);
	cr_expect(gpu_module_unbounded_stack(m, "a"));
	cr_expect_not(gpu_module_unbounded_stack(m, "b"));
	cr_expect_not(gpu_module_unbounded_stack(m, "c"));
	gpu_module_close(m);
}

/* Device functions, polled flags and wmma, with and without global memory. */
Test(instrument, functions, .timeout = TEST_LIMIT)
{
	static const char *const with[] = { "backend=gpu-emulated gpu-global=0",
		"backend=gpu-emulated gpu-global=1 jobs=1" };
	static const char *const specimen[] = { "calls/*", "quiet/flag_*", "race/cs109_*wmma" };
	const char *dir = build_dir();

	for (size_t k = 0; k < 6; k++) {
		cr_expect_eq(shell("unset BXFI_MAP; CASES='tests/cases/%s.ptx' CASES_WITH='%s' "
			"%s/tests/cases/harness/cases --filter cases/specimen 2>&1",
			specimen[k / 2], with[k % 2], dir), 0, "%s", output);
		cr_expect_null(strstr(output, "Tested: 0"), "none");
	}
}

/* In a random schedule the warps of a warpgroup leave wgmma.wait_group one by one, as on a GPU. */
Test(instrument, staggered_warps, .timeout = TEST_LIMIT)
{
	for (unsigned seed = 1; seed < 4; seed++) {
		cr_expect_eq(shell("unset BXFI_MAP; CASES='tests/cases/tricky/wgmma_*.ptx' "
			"CASES_WITH='backend=gpu-emulated seed=%u' %s/tests/cases/harness/cases "
			"--filter cases/specimen 2>&1", seed, build_dir()), 0, "%s", output);
		cr_expect_null(strstr(output, "Tested: 0"), "none");
	}
}

static void assemble(const char *path, bool drains)
{
	char out[] = "/tmp/consan-ptx-XXXXXX";
	struct consan_err e = { 0 };
	struct gpu_module *m;
	const char *text;
	FILE *f;
	size_t n;

	cr_assert_eq(shell("cat '%s'", path), 0, "%s", output);
	m = gpu_module_open(path, output, strlen(output), false, true, drains, &e);
	cr_assert_not_null(m, "%s: %s", path, e.text);
	f = fdopen(mkstemp(out), "w");
	text = gpu_module_text(m, &n);
	fwrite(text, 1, n, f);
	fclose(f);
	gpu_module_close(m);
	cr_expect_eq(shell("ptxas -O0 -arch=sm_90a -o /dev/null %s 2>&1", out), 0, "%s: %s", path, output);
	unlink(out);
}

/* ptxas accepts the hooks around calls, copies and waits. */
Test(instrument, assembled, .timeout = TEST_LIMIT)
{
	glob_t all;

	if (shell("ptxas --version"))
		SKIP_TEST("no ptxas");
	cr_assert_eq(glob("tests/cases/calls/*.ptx", 0, NULL, &all), 0);
	cr_assert_eq(glob("tests/cases/async/cs307_*.ptx", GLOB_APPEND, NULL, &all), 0);
	cr_assert_eq(glob("tests/cases/*/*token*.ptx", GLOB_APPEND, NULL, &all), 0);
	cr_assert_eq(glob("tests/cases/sets/follower_*.ptx", GLOB_APPEND, NULL, &all), 0);
	cr_assert_eq(glob("tests/cases/race/cs103_*.ptx", GLOB_APPEND, NULL, &all), 0);
	cr_assert_eq(glob("tests/cases/global/cs103_*.ptx", GLOB_APPEND, NULL, &all), 0);
	cr_assert_eq(glob("tests/cases/global/cs124_*.ptx", GLOB_APPEND, NULL, &all), 0);
	cr_assert_eq(glob("tests/cases/race/cs110_*.ptx", GLOB_APPEND, NULL, &all), 0);
	for (size_t k = 0; k < all.gl_pathc; k++)
		for (int drains = 0; drains < 2; drains++)
			assemble(all.gl_pathv[k], drains);
	globfree(&all);
}

static const char indirect[] =
	".version 8.0\n.target sm_80\n.address_size 64\n"
	".shared .b32 word;\n"
	".func known() { st.shared.u32 [word], 1; ret; }\n"
	".func unknown() { ret; }\n"
	".global .u64 table[1] = { known };\n"
	".visible .entry calls(.param .u64 p)\n{\n\t.reg .b64 %rd<3>;\n\tld.param.u64 %rd0, [p];\n"
	"\tld.global.u64 %rd1, [table];\n\tadd.u64 %rd2, %rd1, %rd0;\n"
	"\tkind: .callprototype _;\n\tcall %rd2, kind;\n\tret;\n}\n";

/* A call of a function pointer that is none of this module's functions, as if it came from
 * another module, is reported. */
Test(instrument, foreign)
{
	for (uint64_t k = 0; k < 2; k++) {
		struct consan_err e = { 0 };
		struct consan *c = consan_open("backend=gpu-emulated", &e);
		struct consan_module *m = consan_load_ptx(c, "k.ptx", indirect, sizeof indirect - 1, &e);
		const uint64_t to = FUNC_POINTER(k) - FUNC_POINTER(0); /* from the first function */
		struct consan_launch l = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .params = &to };
		const struct coverage *v;

		cr_assert_not_null(m, "%s", e.text);
		l.kernel = consan_kernel(m, "calls", &e);
		cr_assert_eq(consan_launch(c, &l, &e), CONSAN_OK, "%s", e.text);
		cr_assert_eq(consan_raw_coverage(c, &v), 1);
		cr_expect_eq(v->checked, !k);
		cr_expect_eq(strstr(v->unchecked, "another module") != NULL, k, "%s", v->unchecked);
		consan_unload(m);
		consan_close(c);
	}
}

static unsigned calls_between(const char *at, const char *end)
{
	unsigned n = 0;

	while ((at = strstr(at, "call (consan_next)")) && at < end) {
		at++;
		n++;
	}
	return n;
}

/* Records are written by functions, but not while a wgmma may be in flight. */
Test(instrument, calls_and_wgmma)
{
	static const char text[] = ".version 8.0\n.target sm_90a\n.address_size 64\n"
		".visible .entry k()\n{\n\t.shared .b32 word;\n\t.reg .f32 %f<4>;\n\t.reg .b64 %rd<2>;\n"
		"\t.reg .pred %p<2>;\n\tst.shared.u32 [word], 1;\n"
		"\twgmma.fence.sync.aligned;\n"
		"\twgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, "
		"%p0, 1, 1, 0, 0;\n\twgmma.commit_group.sync.aligned;\n"
		"loop:\n\tst.shared.u32 [word], 2;\n\twgmma.wait_group.sync.aligned 1;\n"
		"\tst.shared.u32 [word], 3;\n\t@%p1 bra loop;\n\twgmma.wait_group.sync.aligned 0;\n"
		"\tst.shared.u32 [word], 4;\n\tret;\n}\n";
	struct consan_err e = { 0 };
	struct ptx_module *m = ptx_parse("k.ptx", text, sizeof text - 1, &e);
	struct rewrite *r;
	const char *fence, *wait;

	cr_assert_not_null(m, "%s", e.text);
	r = rewrite_module(m, &(struct rewrite_options){ .number = 7 });
	fence = strstr(r->text.at, "wgmma.fence");
	wait = strstr(r->text.at, "wgmma.wait_group.sync.aligned 0");
	cr_assert(fence && wait);
	cr_expect_eq(calls_between(r->text.at, fence), 1);
	cr_expect_eq(calls_between(fence, wait), 0);
	cr_expect_eq(calls_between(wait, r->text.at + r->text.n), 2); /* the wait, the store */
	rewrite_free(r);
	ptx_free(m);
}

/* Where lanes wait for others of their warp, or end, no function is called, and lanes that a guard lets skip
 * a record wait behind it. */
Test(instrument, diverged_lanes)
{
	static const char text[] = ".version 8.0\n.target sm_90a\n.address_size 64\n"
		".visible .entry k()\n{\n\t.shared .b32 word;\n\t.reg .pred %p<2>;\n"
		"\t@%p1 st.shared.u32 [word], 1;\n\tbar.warp.sync 0xffffffff;\n"
		"\tst.shared.u32 [word], 2;\n\tbar.sync 0;\n\tret;\n}\n";
	struct consan_err e = { 0 };
	struct ptx_module *m = ptx_parse("k.ptx", text, sizeof text - 1, &e);
	const char *guarded, *skipped, *warp, *store, *bar;
	struct rewrite *r;

	cr_assert_not_null(m, "%s", e.text);
	r = rewrite_module(m, &(struct rewrite_options){ .number = 7 });
	guarded = strstr(r->text.at, "@%p1 st.shared");
	warp = strstr(r->text.at, "bar.warp.sync 0xffffffff");
	store = strstr(r->text.at, "[word], 2");
	bar = strstr(r->text.at, "bar.sync 0");
	cr_assert(guarded && warp && store && bar);
	skipped = strstr(r->text.at, "\tbar.warp.sync %cs_together");
	cr_expect(skipped && skipped < guarded);
	cr_expect_eq(calls_between(guarded, warp), 0);
	cr_expect_eq(calls_between(warp, store), 1);
	cr_expect_eq(calls_between(store, bar), 0);
	cr_expect_eq(calls_between(bar, r->text.at + r->text.n), 1); /* behind the barrier */
	rewrite_free(r);
	ptx_free(m);
}

static struct record_digest digest(uint32_t cta, uint32_t lane, uint32_t count, uint64_t sum)
{
	return (struct record_digest){ cta, lane | count << 16, (uint32_t)sum, (uint32_t)(sum >> 32) };
}

/* Clusters are identical if each lane's records are, however they fill chunks. */
Test(instrument, identical_clusters)
{
	struct launch_info i = { .grid = { 4, 1, 1 }, .block = { 64, 1, 1 }, .cluster = { 1, 1, 1 } };
	uint64_t a = 11, b = 13, c = 17, base = RECORD_DIGEST_BASE;
	struct record_digest d[] = {
		digest(0, 0, 3, (a * base + b) * base + c), digest(0, 32, 1, a),
		digest(1, 0, 1, a), digest(1, 32, 1, a), digest(1, 0, 2, b * base + c),
		digest(2, 0, 3, (b * base + a) * base + c), digest(2, 32, 1, a),
		digest(3, 32, 3, (a * base + b) * base + c), digest(3, 0, 1, a),
	};
	uint64_t cta[4], signature[4];
	uint8_t skip[4];
	uint32_t rank;

	decode_sign(&i, d, sizeof d / sizeof *d, cta);
	cr_assert_eq(decode_identical(&i, cta, signature, skip), 1);
	cr_assert(signature[0] == signature[1] && signature[0] != signature[2]);
	cr_assert(!skip[0] && skip[1] && !skip[2] && !skip[3]);
	i.cluster[0] = 2;
	cr_assert_eq(decode_cluster_of(&i, 3, &rank), 1);
	cr_assert_eq(rank, 1);
}

/* ---- digest.cu on the executor ---- */

enum { CHUNKS = 60, CTAS = 12, LISTED = 16, SITES = 5 };

/* Site 1: an address; 2: words of each lane; 3: a failed poll, which does not count; 4: an address
 * and the value of a store, which does not count. */
static const uint32_t site_word[SITES] = { 0, 1 << 12, 2 | 2 << 12, 1 | 3 << 12 | 1 << 14, 2 | 1 << 12 };

static uint32_t draw(uint32_t *seed)
{
	return *seed = *seed * 1664525u + 1013904223u, *seed >> 8;
}

/* Records of lane `lane` of a CTA's warp; every third CTA has the same, apart from polls. */
static void fill_chunk(uint32_t *unit, uint32_t cta, uint32_t lane, uint32_t ordinal,
	uint32_t *noise)
{
	uint32_t seed = 77 * (cta % 3) + lane + 1000 * ordinal, at = 1;

	unit[0] = cta;
	unit[1] = lane;
	for (unsigned k = 0; k < 10; k++) { /* with polls between them they fit */
		uint32_t site = (uint32_t[]){ 1, 2, 4 }[draw(&seed) % 3], kind = site == 2 ? 2 : 1;
		uint32_t lanes = draw(&seed) | 1, n = 1;
		bool affine = draw(&seed) % 2;

		if (draw(noise) % 8 == 0) {
			unit[4 * at] = 3 << RECORD_SITE_SHIFT;
			unit[4 * at + 1] = 1;
			unit[4 * at + 4] = draw(noise);
			at += 2;
		}
		if (draw(&seed) % 24 == 0)
			break;
		unit[4 * at] = site << RECORD_SITE_SHIFT | (affine ? RECORD_AFFINE : 0)
			| (affine && kind == 1 ? 5 : 0);
		unit[4 * at + 1] = lanes;
		unit[4 * at + 2] = draw(noise); /* the clock */
		unit[4 * at + 3] = kind == 1 ? draw(&seed) : draw(noise);
		n = kind == 1 ? (affine ? 1 : 9)
			: 1 + ((affine ? 1 : (uint32_t)__builtin_popcount(lanes)) * 2 + 3) / 4;
		for (uint32_t w = 4; w < 4 * n; w++)
			unit[4 * at + w] = draw(&seed);
		at += n;
		if (site == 4)
			unit[4 * at++] = draw(noise);
	}
}

/* The GPU computes the same signatures as the host: equal if the warps recorded the same. */
Test(instrument, digest, .timeout = TEST_LIMIT)
{
	char path[PATH_MAX] = "";
	struct consan_err e = { 0 };
	struct consan *c = consan_open("", &e);
	struct launch_info i = { .grid = { CTAS, 1, 1 }, .block = { 64, 1, 1 }, .cluster = { 2, 1, 1 } };
	uint32_t (*pool)[4 * RECORD_CHUNK_UNITS], *sites, *many, *list, noise = 5, most = 1000;
	uint32_t nsites = SITES, nctas = CTAS, cap = LISTED;
	struct record_digest *digests;
	struct consan_launch l = { 0 };
	uint64_t *sign, host[CTAS];
	struct consan_module *m;

	snprintf(path, sizeof path, "%s/instrument/record/digest_ptx.ptx", build_dir());
	if (access(path, R_OK))
		SKIP_TEST("no CUPTI, no digest_ptx.ptx");
	m = consan_load_file(c, path, 0, &e);
	cr_assert_not_null(m, "%s", e.text);
	pool = device_memory(c, NULL, (CHUNKS + 2) * sizeof *pool);
	((struct record_head *)pool)->next = CHUNKS + 1;
	for (uint32_t k = 0; k < CHUNKS; k++) /* five for each CTA, in turn for three lanes */
		fill_chunk(pool[k + 1], k % CTAS, "\0 \0!\0"[k / CTAS], k / CTAS, &noise);
	sites = device_memory(c, site_word, sizeof site_word);
	digests = device_memory(c, NULL, CHUNKS * sizeof *digests);
	many = device_memory(c, NULL, CTAS * sizeof *many);
	list = device_memory(c, NULL, CTAS * LISTED * sizeof *list);
	sign = device_memory(c, NULL, CTAS * sizeof *sign);
	l = (struct consan_launch){ .kernel = consan_kernel(m, "consan_digest", &e), .grid = { 3, 1, 1 },
		.block = { 128, 1, 1 }, .args = (const void *const[]){ &pool, &most, &sites, &nsites, &digests,
			&nctas, &many, &list, &cap } };
	cr_assert_eq(consan_launch(c, &l, &e), CONSAN_OK, "%s", e.text);
	l = (struct consan_launch){ .kernel = consan_kernel(m, "consan_sign", &e), .grid = { CTAS, 1, 1 },
		.block = { 128, 1, 1 }, .args = (const void *const[]){ &digests, &many, &list, &cap, i.grid,
			i.cluster, &sign } };
	cr_assert_eq(consan_launch(c, &l, &e), CONSAN_OK, "%s", e.text);
	cr_assert_eq(consan_errors(c), 0, "our own kernels are clean");
	decode_sign(&i, digests, CHUNKS, host);
	for (uint32_t k = 0, left; k < CHUNKS; k++) {
		struct record_digest own;

		decode_digest((const void *)pool[k + 1], sites, SITES, &own, &left);
		cr_assert_eq(memcmp(&own, &digests[k], sizeof own), 0, "the host's of chunk %u", k);
	}
	for (uint32_t k = 0; k < CTAS; k++) {
		cr_assert_eq(many[k], CHUNKS / CTAS);
		cr_assert_eq(sign[k], host[k], "CTA %u", k);
		cr_assert_eq(sign[k] == sign[k % 6], true, "every sixth CTA did the same at the same rank");
		cr_assert(k % 6 == 0 || sign[k] != sign[0]);
	}
	consan_close(c);
}
