/* Edits are tried on copies of the process: the program's memory, variables and findings are those
 * of its own run, and a trial that hangs or faults ends alone. */
#include "libconsan/exec/exec.h"
#include "libconsan/finding/rule_codes.h"
#include "libconsan/session/session.h"
#include "libconsan/event/event.h"
#include "tests/common/limits.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <errno.h>

/* The two warps exchange words without a barrier: each thread reads that of one of the other warp. */
#define EXCHANGE(tile) \
	"mov.u32 %r1, %tid.x;\n" \
	"mov.u32 %r2, " tile ";\n" \
	"shl.b32 %r3, %r1, 2;\n" \
	"add.u32 %r4, %r2, %r3;\n" \
	"st.shared.u32 [%r4], %r1;\n" \
	"xor.b32 %r3, %r3, 128;\n" \
	"add.u32 %r4, %r2, %r3;\n" \
	"ld.shared.u32 %r5, [%r4];\n"

/* Counts its threads in a module variable and in memory, and exchanges words. */
static const char ptx[] =
	".version 8.0\n.target sm_90a\n.address_size 64\n"
	".visible .global .align 4 .u32 count = 5;\n"
	".visible .entry exchange(.param .u64 out)\n{\n"
	".reg .b32 %r<6>; .reg .b64 %rd<4>;\n"
	".shared .align 4 .b8 tile[256];\n"
	EXCHANGE("tile")
	"ld.param.u64 %rd1, [out];\n"
	"red.global.add.u32 [count], 1;\n"
	"red.global.add.u32 [%rd1], 1;\n"
	"mul.wide.u32 %rd2, %r1, 4;\n"
	"add.u64 %rd2, %rd1, %rd2;\n"
	"st.global.u32 [%rd2+4], %r5;\n"
	"ret;\n}\n"
	/* the same exchange, which traps if a launch has been there before */
	".visible .global .align 4 .u32 launches;\n"
	".visible .entry once(.param .u64 out)\n{\n"
	".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n"
	".shared .align 4 .b8 tile2[256];\n"
	"ld.param.u64 %rd1, [out];\n"
	"ld.global.u32 %r6, [launches];\n"
	"ld.global.u32 %r7, [%rd1];\n"
	"or.b32 %r6, %r6, %r7;\n"
	"setp.ne.u32 %p1, %r6, 0;\n"
	"@%p1 trap;\n"
	"bar.sync 0;\n"
	EXCHANGE("tile2")
	"setp.eq.u32 %p2, %r1, 0;\n"
	"@%p2 st.global.u32 [launches], 1;\n"
	"@%p2 st.global.u32 [%rd1], 1;\n"
	"ret;\n}\n";

struct fixture {
	struct consan *c;
	struct consan_module *m;
	uint32_t *out;
};

static struct fixture start(const char *options, uint32_t *out)
{
	struct fixture x = { .out = out };
	struct consan_err e = { 0 };

	x.c = consan_open(options, &e);
	cr_assert(x.c, "%s", e.text);
	x.m = consan_load_ptx(x.c, "ptx", ptx, strlen(ptx), &e);
	cr_assert(x.m, "%s", e.text);
	if (!x.out)
		x.out = consan_malloc(x.c, 1024, CONSAN_MEM_DEVICE);
	memset(x.out, 0, 1024);
	return x;
}

static const struct finding *run_kernel(struct fixture *x, const char *name)
{
	struct consan_err e = { 0 };
	const void *args[] = { &x->out };
	const struct finding *const *f;
	const struct consan_kernel *k = consan_kernel(x->m, name, &e);
	const enum consan_status status = consan_launch(x->c, &(struct consan_launch){ .kernel = k,
		.grid = { 1, 1, 1 }, .block = { 64, 1, 1 }, .args = args }, &e);

	cr_assert_eq(status, CONSAN_OK);
	cr_assert_geq(consan_raw_findings(x->c, &f), 1);
	return f[0];
}

static const struct finding *run(struct fixture *x)
{
	return run_kernel(x, "exchange");
}

static uint32_t count_of(struct fixture *x)
{
	uint64_t bytes;
	void *at;

	cr_assert(consan_symbol(x->m, "count", &at, &bytes));
	return *(uint32_t *)at;
}

static void stop(struct fixture *x)
{
	consan_unload(x->m);
	consan_close(x->c);
}

Test(repair, trials_leave_no_trace, .timeout = TEST_LIMIT)
{
	struct fixture x = start("verify-fixes=yes jobs=1", NULL);
	const struct finding *f = run(&x);

	cr_expect_eq(f->edit.verified, VERIFIED_CLEAN);
	cr_expect_str_eq(f->edit.ptx, "bar.sync 0;");
	cr_expect_eq(count_of(&x), 5 + 64);
	cr_expect_eq(x.out[0], 64);
	f = run(&x); /* what later trials begin with is what the launch begins with */
	cr_expect_eq(count_of(&x), 5 + 128);
	cr_expect_eq(x.out[0], 128);
	cr_expect_eq(f->seen, 2 * (f->seen / 2), "occurrences of trials are not counted");
	cr_expect(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "no copy remains");
	stop(&x);
}

/* The launch has changed a variable and memory that it reads: trials begin with what was there. */
Test(repair, memory_is_put_back, .timeout = TEST_LIMIT)
{
	struct fixture x = start("verify-fixes=yes jobs=1", NULL);
	const struct finding *f = run_kernel(&x, "once");

	cr_expect_eq(f->edit.verified, VERIFIED_CLEAN);
	cr_expect_eq(x.out[0], 1, "the program's own memory stays");
	stop(&x);
}

/* The library forks only where it is asked to. */
Test(repair, not_without_being_asked, .timeout = TEST_LIMIT)
{
	static const char *const options[] = { "", "verify-fixes=no" };

	for (unsigned i = 0; i < 2; i++) {
		struct fixture x = start(options[i], NULL);
		const struct finding *f = run(&x);

		cr_expect_eq(f->edit.verified, VERIFIED_NOT_TRIED);
		cr_expect_eq(f->edit.untried, i ? UNTRIED_option : UNTRIED_library);
		cr_expect_eq(f->edit.kind, EDIT_BEFORE, "it has a place all the same");
		stop(&x);
	}
}

/* A copy of the process would write it, too. */
Test(repair, shared_memory_is_not_tried, .timeout = TEST_LIMIT)
{
	uint32_t *out = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct fixture x;
	const struct finding *f;

	cr_assert_neq((void *)out, MAP_FAILED);
	x = start("verify-fixes=yes", out);
	consan_mem_register(x.c, out, 1024);
	f = run(&x);
	cr_expect_eq(f->edit.verified, VERIFIED_NOT_TRIED);
	cr_expect_eq(out[0], 64);
	cr_expect(consan_mem_unregister(x.c, out));
	stop(&x);
}
