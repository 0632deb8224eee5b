/* Movs of wgmma accumulators in flight: whenever the wgmma takes effect, the values are those of a
 * program in which it takes effect at once, as ptxas renames the registers. Only a use before the
 * wait shows what was there before. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libconsan/exec/exec.h"
#include "libconsan/ptx/ptx.h"

#define NO 1000.0f

/* A and B hold 1.0, so that each wgmma adds 16 to its accumulators. F: %f0-3, G: %f4-7. */
#define MMA(D) \
	"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " D ", %rd10, %rd10, 1, 1, 1, 0, 0;\n"
#define MMA_RS(D) "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " D \
	", {%r21, %r22, %r23, %r24}, %rd10, 1, 1, 1, 0;\n"
#define F "{%f0, %f1, %f2, %f3}"
#define G "{%f4, %f5, %f6, %f7}"
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define WAIT(n) "wgmma.wait_group.sync.aligned " #n ";\n"
#define ONE MMA(F) COMMIT

/* %f10 to %f13 afterwards; NO: not compared. late: where it differs with late operations. */
static const struct moves_case {
	const char *name, *code;
	float want[4];
	float late[4];
} cases[] = {
	{ "copy", ONE "mov.f32 %f10, %f0;\nmov.b32 %f11, %f1;\n" WAIT(0), { 16, 16, NO, NO }, { 0 } },
	{ "copy of a copy", ONE "mov.f32 %f8, %f0;\nmov.f32 %f9, %f8;\nmov.f32 %f10, %f9;\n" WAIT(0),
		{ 16, NO, NO, NO }, { 0 } },
	{ "packed", ONE "mov.b64 %rd12, {%f0, %f1};\nmov.b64 {%f10, %f11}, %rd12;\n"
		"mov.b32 {%rs0, %rs1}, %f2;\nmov.b32 %f12, {%rs0, %rs1};\n" WAIT(0),
		{ 16, 16, 16, NO }, { 0 } },
	{ "packed with another register", "mov.f32 %f9, 0f40000000;\n" ONE
		"mov.b64 %rd12, {%f0, %f9};\nmov.f32 %f9, 0f40400000;\n" WAIT(0)
		"mov.b64 {%f10, %f11}, %rd12;\nmov.f32 %f12, %f9;\n", { 16, 2, 3, NO }, { 0 } },
	{ "a copy is an accumulator", ONE "mov.f32 %f4, %f0;\nmov.f32 %f5, %f1;\nmov.f32 %f6, %f2;\n"
		"mov.f32 %f7, %f3;\n" MMA(G) COMMIT WAIT(0) "mov.f32 %f10, %f4;\nmov.f32 %f11, %f0;\n",
		{ 32, 16, NO, NO }, { 0 } },
	{ "there and back", ONE "mov.f32 %f8, %f0;\nmov.f32 %f0, %f8;\n" MMA(F) COMMIT
		"mov.f32 %f8, %f0;\nmov.f32 %f0, %f8;\n" WAIT(0) "mov.f32 %f10, %f0;\n",
		{ 32, NO, NO, NO }, { 0 } },
	{ "accumulator cleared", ONE "mov.f32 %f10, %f0;\nmov.f32 %f0, 0f3f800000;\n" MMA(F) COMMIT
		WAIT(0) "mov.f32 %f11, %f0;\nmov.f32 %f12, %f1;\n", { 16, 17, 32, NO }, { 0 } },
	{ "exchanged", MMA(F) MMA(F) MMA(G) COMMIT "mov.f32 %f8, %f0;\nmov.f32 %f0, %f4;\n"
		"mov.f32 %f4, %f8;\n" WAIT(0) "mov.f32 %f10, %f0;\nmov.f32 %f11, %f4;\n",
		{ 16, 32, NO, NO }, { 0 } },
	{ "older of two groups", ONE MMA(G) COMMIT "mov.f32 %f10, %f0;\nmov.f32 %f8, %f4;\n" WAIT(1)
		"add.f32 %f11, %f10, 0f3f800000;\n" WAIT(0) "mov.f32 %f12, %f8;\n",
		{ 16, 17, 16, NO }, { 0 } },
	{ "copy overwritten", ONE "mov.f32 %f10, %f0;\nadd.f32 %f10, %f9, 0f40a00000;\n"
		"mov.f32 %f11, %f0;\nmov.f32 %f11, 0f40c00000;\n" WAIT(0), { 5, 6, NO, NO }, { 0 } },
	{ "some lanes", "mov.f32 %f10, 0f40a00000;\n" ONE "@%p1 mov.f32 %f10, %f0;\n"
		"@!%p1 mov.f32 %f11, %f0;\n@%p1 mov.f32 %f11, 0f40c00000;\n" WAIT(0)
		"@%p1 add.f32 %f10, %f10, 0fc1300000;\n@!%p1 add.f32 %f11, %f11, 0fc1200000;\n",
		{ 5, 6, NO, NO }, { 0 } },
	{ "fragment of A", MMA_RS(F) COMMIT "mov.b32 %r21, 0;\nmov.b32 %r22, 0;\nmov.b32 %r23, 0;\n"
		"mov.b32 %r24, %r23;\n" MMA_RS(F) COMMIT WAIT(0) "mov.f32 %f10, %f0;\n",
		{ 16, NO, NO, NO }, { 0 } },
	{ "used", "mov.f32 %f8, 0f40e00000;\n" ONE "mov.f32 %f8, %f0;\nadd.f32 %f10, %f8, %f9;\n"
		WAIT(0) "mov.f32 %f11, %f8;\n", { 16, 16, NO, NO }, { 7, 16, NO, NO } },
};

static const char head[] = ".version 8.7\n.target sm_90a\n.address_size 64\n"
	".visible .entry k(.param .u64 out)\n{\n"
	".reg .pred %p<8>;\n.reg .b16 %rs<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n"
	".reg .f32 %f<32>;\n.shared .align 128 .b8 ops[2304];\n"
	"ld.param.u64 %rd1, [out];\nmov.u32 %r0, %tid.x;\nmov.u32 %r12, ops;\nmov.u32 %r10, %r0;\n"
	"L:\nmad.lo.u32 %r11, %r10, 4, %r12;\nst.shared.u32 [%r11], 0x3c003c00;\n"
	"add.u32 %r10, %r10, 128;\nsetp.lt.u32 %p6, %r10, 576;\n@%p6 bra L;\n"
	"fence.proxy.async.shared::cta;\nbar.sync 0;\n"
	"shr.u32 %r20, %r12, 4;\ncvt.u64.u32 %rd10, %r20;\nor.b64 %rd10, %rd10, 0x0000001000080000;\n"
	"and.b32 %r13, %r0, 1;\nsetp.eq.u32 %p1, %r13, 1;\n"
	"mov.b32 %r21, 0x3c003c00;\nmov.b32 %r22, %r21;\nmov.b32 %r23, %r21;\nmov.b32 %r24, %r21;\n"
	"mov.f32 %f0, 0f00000000;\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\nmov.f32 %f3, %f0;\n"
	"mov.f32 %f4, %f0;\nmov.f32 %f5, %f0;\nmov.f32 %f6, %f0;\nmov.f32 %f7, %f0;\n"
	"mov.f32 %f9, %f0;\n"
	"mul.wide.u32 %rd2, %r0, 16;\nadd.s64 %rd3, %rd1, %rd2;\nwgmma.fence.sync.aligned;\n";
static const char tail[] =
	"st.global.f32 [%rd3], %f10;\nst.global.f32 [%rd3+4], %f11;\n"
	"st.global.f32 [%rd3+8], %f12;\nst.global.f32 [%rd3+12], %f13;\nret;\n}\n";

static void ignore(struct event_sink *s, const struct event *e)
{
	(void)s;
	(void)e;
}

static struct event_sink *begin(void *user, const struct cluster_info *c)
{
	(void)c;
	((struct event_sink *)user)->event = ignore;
	return user;
}

static void run(const struct moves_case *m, enum exec_async async, bool checked, uint64_t seed)
{
	float *out = aligned_alloc(1024, 128 * 16);
	const bool late = async == ASYNC_LATE && m->late[0] != 0;
	struct event_sink sink = { 0 };
	struct exec_observer o = { .user = &sink, .cluster_begin = checked ? begin : NULL };
	uint64_t params = (uintptr_t)out;
	struct exec_launch l = { .device = exec_device_for(90), .grid = { 1, 1, 1 },
		.block = { 128, 1, 1 }, .cluster = { 1, 1, 1 }, .params = &params, .jobs = 1,
		.timeout = 20, .observer = &o, .async = async, .seed = seed };
	struct exec_result r = { 0 };
	struct consan_err e = { 0 };
	struct text t = { 0 };
	struct ptx_module *p;
	struct exec_module *module;

	text_printf(&t, "%s%s%s", head, m->code, tail);
	p = ptx_parse("moves.ptx", t.at, strlen(t.at), &e);
	cr_assert(p, "%s: line %d: %s", m->name, e.line, e.text);
	module = exec_load(p, &e);
	cr_assert(module, "%s", e.text);
	l.kernel = exec_kernel(module, "k", &e);
	cr_assert(l.kernel, "%s", e.text);
	exec_mem_add(out, 128 * 16, MEM_DEVICE, false);
	exec_run(&l, &r);
	cr_assert_eq(r.status, EXEC_OK, "%s: %s", m->name, r.err.text);
	for (unsigned i = 0; i < 128; i++)
		for (unsigned k = 0; k < 4; k++) {
			const float want = late ? m->late[k] : m->want[k];

			cr_assert(want == NO || out[4 * i + k] == want,
				"%s, async %d: %%f%u of thread %u is %g, not %g", m->name, async, 10 + k, i,
				(double)out[4 * i + k], (double)want);
		}
	exec_unload(module);
	exec_mem_remove(out);
	text_free(&t);
	free(out);
}

Test(wgmma_moves, values_do_not_depend_on_when)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		run(&cases[i], ASYNC_LATE, true, 0);
		run(&cases[i], ASYNC_LATE, false, 0);
		run(&cases[i], ASYNC_EARLY, true, 0);
		for (uint64_t seed = 1; seed < 9 && !cases[i].late[0]; seed++)
			run(&cases[i], ASYNC_RANDOM, seed % 2, seed);
	}
}
