/* The executor: control flow, memory, barriers, calls, scheduling. The kernels are small PTX texts;
 * results are compared with values computed on the host. Long because of the kernels' texts. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "libconsan/exec/exec.h"

#define HEAD ".version 8.7\n.target sm_90a\n.address_size 64\n"
#define ENTRY1 HEAD ".visible .entry k(.param .u64 out)\n{\n" \
	".reg .pred %p<10>;\n.reg .b16 %rs<10>;\n.reg .b32 %r<60>;\n.reg .b64 %rd<30>;\n" \
		".reg .f32 %f<20>;\n" \
	"ld.param.u64 %rd1, [out];\ncvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %tid.x;\n" \
	"mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"

/* ---- harness ---- */

struct log {
	struct event_sink sink;
	unsigned count[EV_COUNT];
	unsigned fault, hang, blocked_kind;
	uint32_t fault_lanes;
	uint64_t fault_addr, hash;
	char blocked[200];
	uint32_t access_lanes;
	int32_t stride;
};

static void on_event(struct event_sink *s, const struct event *e)
{
	struct log *l = (struct log *)s;

	l->count[e->kind]++;
	l->hash = (l->hash ^ e->kind ^ (uint64_t)e->warp << 8 ^ (uint64_t)e->lanes << 16
		^ (e->kind == EV_ACCESS && e->access.space == SP_SHARED ? e->access.at.base : 0))
		* 0x9e3779b97f4a7c15ull;
	if (e->kind == EV_FAULT) {
		l->fault = e->fault.fault;
		l->fault_lanes = e->lanes;
		l->fault_addr = e->fault.addr;
	}
	if (e->kind == EV_HANG)
		l->hang = e->hang.why;
	if (e->kind == EV_BLOCKED) {
		l->blocked_kind = e->blocked.on;
		snprintf(l->blocked, sizeof l->blocked, "%s",
			e->blocked.text ? e->blocked.text : "");
	}
	if (e->kind == EV_ACCESS) {
		l->access_lanes = e->lanes;
		l->stride = e->access.at.lane ? -1 : e->access.at.stride;
	}
}

struct run {
	struct exec_result r;
	struct log log;
	struct text printed;
	uint32_t *out;
	uint32_t grid, block, cluster, dynamic, registers;
	unsigned jobs;
	double timeout;
	uint64_t seed;
	bool cooperative, checked;
};

#define WORDS 65536

static struct event_sink *begin(void *user, const struct cluster_info *c)
{
	struct run *u = user;

	(void)c;
	u->log.sink.event = on_event;
	u->log.sink.want_global = true;
	return &u->log.sink;
}

static void print(void *user, const char *t, size_t n)
{
	text_add(&((struct run *)user)->printed, t, n);
}

static void go(struct run *u, const char *text)
{
	struct consan_err e = { 0 };
	struct ptx_module *p = ptx_parse("test.ptx", text, strlen(text), &e);
	struct exec_module *m;
	const struct exec_kernel *k;
	struct exec_observer o = { .user = u, .cluster_begin = u->checked ? begin : NULL,
		.print = print };
	struct exec_launch l = { .device = exec_device_for(90),
		.grid = { u->grid ? u->grid : 1, 1, 1 },
		.block = { u->block ? u->block : 32, 1, 1 },
		.cluster = { u->cluster ? u->cluster : 1, 1, 1 },
		.shared_dynamic = u->dynamic, .params = &u->out, .jobs = u->jobs ? u->jobs : 1,
		.timeout = u->timeout ? u->timeout : 20, .observer = &o,
		.cooperative = u->cooperative,
		.seed = u->seed };

	cr_assert(p, "line %d: %s", e.line, e.text);
	m = exec_load(p, &e);
	cr_assert(m, "%s", e.text);
	if (u->registers)
		exec_set_registers(m, "k", u->registers);
	k = exec_kernel(m, "k", &e);
	cr_assert(k, "%s", e.text);
	l.kernel = k;
	if (!u->out) {
		u->out = calloc(WORDS, 4);
		exec_mem_add(u->out, WORDS * 4, MEM_DEVICE, false);
	}
	exec_run(&l, &u->r);
	exec_unload(m);
}

static void ok(struct run *u, const char *text)
{
	go(u, text);
	cr_assert_eq(u->r.status, EXEC_OK, "status %d: %s", u->r.status, u->r.err.text);
}

static void done(struct run *u)
{
	exec_mem_remove(u->out);
	free(u->out);
	text_free(&u->printed);
}

/* ---- control flow ---- */

Test(exec, arithmetic)
{
	struct run u = { .block = 64 };

	ok(&u, ENTRY1
		"mad.lo.s32 %r2, %r1, 7, 3;\nshl.b32 %r3, %r2, 2;\nxor.b32 %r4, %r3, %r1;\n"
		"st.global.u32 [%rd3], %r4;\nret;\n}\n");
	for (uint32_t t = 0; t < 64; t++)
		cr_assert_eq(u.out[t], ((t * 7 + 3) << 2) ^ t);
	cr_assert_eq(u.r.ctas, 1);
	cr_assert_eq(u.r.sites, u.r.sites_executed);
	done(&u);
}

Test(exec, loop_with_divergent_trip_counts)
{
	struct run u = { .block = 40 };

	ok(&u, ENTRY1
		"mov.u32 %r2, 0;\nmov.u32 %r3, 0;\n"
		"$L1:\nsetp.ge.u32 %p1, %r3, %r1;\n@%p1 bra $L2;\nadd.u32 %r2, %r2, %r3;\n"
		"add.u32 %r3, %r3, 1;\nbra.uni $L1;\n"
		"$L2:\nst.global.u32 [%rd3], %r2;\nret;\n}\n");
	for (uint32_t t = 0; t < 40; t++)
		cr_assert_eq(u.out[t], t ? t * (t - 1) / 2 : 0);
	done(&u);
}

Test(exec, divergence_reconverges)
{
	struct run u = { .block = 32 };

	/* after the join all 32 lanes are together again: activemask is full */
	ok(&u, ENTRY1
		"and.b32 %r2, %r1, 3;\nsetp.eq.u32 %p1, %r2, 0;\nsetp.eq.u32 %p2, %r2, 1;\n"
		"@%p1 bra $A;\n@%p2 bra $B;\nmov.u32 %r3, 30;\nbra.uni $J;\n"
		"$A:\nmov.u32 %r3, 10;\nbra.uni $J;\n$B:\nmov.u32 %r3, 20;\n"
		"$J:\nactivemask.b32 %r4;\nsetp.ne.u32 %p3, %r4, -1;\n@%p3 mov.u32 %r3, 99;\n"
		"st.global.u32 [%rd3], %r3;\nret;\n}\n");
	for (uint32_t t = 0; t < 32; t++)
		cr_assert_eq(u.out[t], t % 4 == 0 ? 10 : t % 4 == 1 ? 20 : 30, "lane %u: %u", t,
			u.out[t]);
	done(&u);
}

Test(exec, lane_spins_on_another_lane_of_its_warp)
{
	struct run u = { .block = 32 };

	/* lane 0 waits for a flag that lane 31 sets; lane 0's code is first */
	ok(&u, ENTRY1
		"setp.ne.u32 %p1, %r1, 0;\n@%p1 bra $S;\n"
		"$W:\nld.volatile.global.u32 %r2, [%rd1+400];\nsetp.eq.u32 %p2, %r2, 0;\n"
		"@%p2 bra $W;\nbra.uni $E;\n"
		"$S:\nsetp.ne.u32 %p3, %r1, 31;\n@%p3 bra $E;\nmov.u32 %r3, 7;\n"
		"st.volatile.global.u32 [%rd1+400], %r3;\n"
		"$E:\nmov.u32 %r4, 5;\nst.global.u32 [%rd3], %r4;\nret;\n}\n");
	for (uint32_t t = 0; t < 32; t++)
		cr_assert_eq(u.out[t], 5);
	done(&u);
}

Test(exec, spin_lock_among_lanes)
{
	struct run u = { .block = 64, .grid = 4, .jobs = 2 };

	ok(&u, ENTRY1
		"$W:\natom.global.cas.b32 %r2, [%rd1+256], 0, 1;\nsetp.ne.u32 %p1, %r2, 0;\n"
		"@%p1 bra $W;\n"
		"ld.volatile.global.u32 %r3, [%rd1];\nadd.u32 %r3, %r3, 1;\n"
		"st.volatile.global.u32 [%rd1], %r3;\n"
		"membar.gl;\natom.global.exch.b32 %r4, [%rd1+256], 0;\nret;\n}\n");
	cr_assert_eq(u.out[0], 256);
	done(&u);
}

Test(exec, early_exit_of_some_lanes)
{
	struct run u = { .block = 32 };

	ok(&u, ENTRY1
		"setp.gt.u32 %p1, %r1, 9;\n@%p1 exit;\nactivemask.b32 %r2;\n"
		"st.global.u32 [%rd3], %r2;\nret;\n}\n");
	cr_assert_eq(u.out[9], 0x3ff);
	cr_assert_eq(u.out[10], 0);
	done(&u);
}

Test(exec, jump_table)
{
	struct run u = { .block = 32 };

	ok(&u, ENTRY1
		"and.b32 %r2, %r1, 1;\n$T: .branchtargets $A, $B;\nbrx.idx %r2, $T;\n"
		"$A:\nmov.u32 %r3, 100;\nbra.uni $J;\n$B:\nmov.u32 %r3, 200;\n"
		"$J:\nst.global.u32 [%rd3], %r3;\nret;\n}\n");
	for (uint32_t t = 0; t < 32; t++)
		cr_assert_eq(u.out[t], t & 1 ? 200 : 100);
	done(&u);
}

/* ---- shared memory, barriers ---- */

#define REDUCE HEAD ".visible .entry k(.param .u64 out)\n{\n" \
	".reg .pred %p<4>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<8>;\n" \
		".shared .align 4 .b8 tile[1024];\n" \
	"ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, tile;\n" \
	"shl.b32 %r3, %r1, 2;\n" \
	"add.u32 %r4, %r2, %r3;\nst.shared.u32 [%r4], %r1;\nbar.sync 0;\nmov.u32 %r5, 128;\n" \
	"$L:\nsetp.ge.u32 %p1, %r1, %r5;\n@%p1 bra $N;\nshl.b32 %r6, %r5, 2;\n" \
	"add.u32 %r7, %r4, %r6;\n" \
	"ld.shared.u32 %r8, [%r7];\nld.shared.u32 %r9, [%r4];\nadd.u32 %r9, %r9, %r8;\n" \
	"st.shared.u32 [%r4], %r9;\n" \
	"$N:\nbar.sync 0;\nshr.u32 %r5, %r5, 1;\nsetp.ne.u32 %p2, %r5, 0;\n@%p2 bra $L;\n" \
	"setp.ne.u32 %p3, %r1, 0;\n@%p3 bra $X;\nmov.u32 %r10, %ctaid.x;\n" \
	"mul.wide.u32 %rd2, %r10, 4;\n" \
	"add.s64 %rd3, %rd1, %rd2;\nld.shared.u32 %r11, [tile];\nst.global.u32 [%rd3], %r11;\n" \
	"$X:\nret;\n}\n"

Test(exec, shared_reduction)
{
	struct run u = { .block = 256, .grid = 7, .jobs = 2 };

	ok(&u, REDUCE);
	for (uint32_t b = 0; b < 7; b++)
		cr_assert_eq(u.out[b], 256 * 255 / 2);
	cr_assert_eq(u.r.ctas, 7);
	done(&u);
}

Test(exec, events_of_a_reduction)
{
	struct run u = { .block = 256, .checked = true };

	ok(&u, REDUCE);
	cr_assert_eq(u.log.count[EV_CTA_BEGIN], 1);
	cr_assert_eq(u.log.count[EV_CTA_END], 1);
	cr_assert_eq(u.log.count[EV_BARRIER_ARRIVE], 8 * 9);
	cr_assert_eq(u.log.count[EV_BARRIER_RESUME], 8 * 9);
	/* 8 stores; 3 accesses for each active warp of each step; lane 0's two */
	cr_assert_eq(u.log.count[EV_ACCESS], 8 + 3 * (4 + 2 + 1 + 1 + 1 + 1 + 1 + 1) + 2);
	done(&u);
}

Test(exec, same_events_whatever_the_jobs)
{
	struct run a = { .block = 256, .checked = true },
		b = { .block = 256, .checked = true, .jobs = 2 };

	ok(&a, REDUCE);
	ok(&b, REDUCE);
	cr_assert_eq(a.log.hash, b.log.hash);
	cr_assert_eq(a.r.warp_ops, b.r.warp_ops);
	done(&a);
	done(&b);
}

Test(exec, seeds_shuffle_and_repeat)
{
	struct run a = { .block = 256, .checked = true }, b = a, c = a;

	b.seed = c.seed = 7;
	ok(&a, REDUCE);
	ok(&b, REDUCE);
	ok(&c, REDUCE);
	cr_assert_neq(a.log.hash, b.log.hash);
	cr_assert_eq(b.log.hash, c.log.hash);
	cr_assert_eq(b.out[0], 256 * 255 / 2);
	done(&a);
	done(&b);
	done(&c);
}

Test(exec, barrier_id_and_count_in_registers)
{
	struct run u = { .block = 128 };

	/* warps 0 and 1 wait at barrier 3, warps 2 and 3 at 4; then 1 reads 0's word */
	ok(&u, ENTRY1
		".shared .align 4 .b8 s[512];\n"
		"shr.u32 %r2, %r1, 6;\nadd.u32 %r3, %r2, 3;\nmov.u32 %r4, 64;\nmov.u32 %r5, s;\n"
		"shl.b32 %r6, %r1, 2;\n"
		"add.u32 %r7, %r5, %r6;\nst.shared.u32 [%r7], %r1;\nbar.sync %r3, %r4;\n"
		"xor.b32 %r8, %r6, 128;\n"
		"add.u32 %r8, %r8, %r5;\nld.shared.u32 %r9, [%r8];\nst.global.u32 [%rd3], %r9;\n"
		"ret;\n}\n");
	for (uint32_t t = 0; t < 128; t++)
		cr_assert_eq(u.out[t], t ^ 32);
	done(&u);
}

Test(exec, barrier_arrive_and_red)
{
	struct run u = { .block = 64 };

	ok(&u, ENTRY1
		"setp.lt.u32 %p1, %r1, 40;\nbar.red.popc.u32 %r2, 0, %p1;\n"
		"bar.red.and.pred %p2, 0, %p1;\n"
		"bar.red.or.pred %p3, 0, %p1;\nselp.u32 %r3, 1000, 0, %p2;\n"
		"selp.u32 %r4, 2000, 0, %p3;\n"
		"add.u32 %r2, %r2, %r3;\nadd.u32 %r2, %r2, %r4;\n"
		"setp.lt.u32 %p4, %r1, 32;\n@%p4 bar.arrive 1, 64;\n@!%p4 bar.sync 1, 64;\n"
		"st.global.u32 [%rd3], %r2;\nret;\n}\n");
	for (uint32_t t = 0; t < 64; t++)
		cr_assert_eq(u.out[t], 2040);
	done(&u);
}

Test(exec, barrier_of_warps_that_are_left)
{
	struct run u = { .block = 96 };

	ok(&u, ENTRY1
		"setp.lt.u32 %p1, %r1, 32;\n@%p1 exit;\nbar.sync 0;\nst.global.u32 [%rd3], %r1;\n"
		"ret;\n}\n");
	cr_assert_eq(u.out[33], 33);
	done(&u);
}

Test(exec, dynamic_shared_memory_follows_the_static)
{
	struct run u = { .block = 32, .dynamic = 128 };

	ok(&u, HEAD ".extern .shared .align 16 .b8 dyn[];\n.visible .entry k(.param .u64 out)\n{\n"
		".reg .b32 %r<20>;\n.reg .b64 %rd<8>;\n.shared .align 4 .b8 s[20];\n"
		"ld.param.u64 %rd1, [out];\nmov.u32 %r1, dyn;\nmov.u32 %r2, s;\n"
		"sub.u32 %r3, %r1, %r2;\n"
		"mov.u32 %r4, %tid.x;\nshl.b32 %r5, %r4, 2;\nadd.u32 %r6, %r1, %r5;\n"
		"st.shared.u32 [%r6], %r4;\n"
		"st.global.u32 [%rd1], %r3;\nmov.u32 %r7, %dynamic_smem_size;\n"
		"st.global.u32 [%rd1+4], %r7;\nret;\n}\n");
	cr_assert_eq(u.out[0], 32);
	cr_assert_eq(u.out[1], 128);
	done(&u);
}

/* ---- memory ---- */

Test(exec, atomics)
{
	struct run u = { .block = 128, .grid = 16, .jobs = 2 };

	ok(&u, ENTRY1
		"atom.global.add.u32 %r2, [%rd1], 1;\nred.global.max.u32 [%rd1+4], %r1;\n"
		"atom.global.inc.u32 %r3, [%rd1+8], 99;\n"
		"red.global.add.f32 [%rd1+12], 0f3F000000;\n"
		"atom.global.or.b32 %r4, [%rd1+16], %r1;\n"
		"atom.global.add.u64 %rd5, [%rd1+24], 3;\nret;\n}\n");
	cr_assert_eq(u.out[0], 2048);
	cr_assert_eq(u.out[1], 127);
	cr_assert_eq(u.out[2], 2048 % 100);
	cr_assert_eq(((float *)u.out)[3], 1024.0f);
	cr_assert_eq(u.out[4], 127);
	cr_assert_eq(((uint64_t *)u.out)[3], 6144);
	done(&u);
}

Test(exec, widths_and_vectors)
{
	struct run u = { .block = 32 };

	ok(&u, ENTRY1
		".shared .align 16 .b8 s[1024];\nmov.u32 %r2, s;\nshl.b32 %r3, %r1, 4;\n"
		"add.u32 %r2, %r2, %r3;\n"
		"sub.s32 %r4, 0, %r1;\nmov.u32 %r5, -2;\n"
		"st.shared.v4.u32 [%r2], {%r1, %r4, %r5, 17};\n"
		"ld.shared.s8 %r10, [%r2+4];\nld.shared.u8 %r11, [%r2+4];\n"
		"ld.shared.u16 %rs1, [%r2+8];\n"
		"ld.shared.v2.b64 {%rd5, %rd6}, [%r2];\ncvt.u32.u16 %r12, %rs1;\n"
		"mov.b64 {%r13, %r14}, %rd6;\n"
		"add.u32 %r10, %r10, %r11;\nadd.u32 %r10, %r10, %r12;\nadd.u32 %r10, %r10, %r14;\n"
		"st.global.u32 [%rd3], %r10;\nret;\n}\n");
	for (uint32_t t = 0; t < 32; t++) {
		uint32_t want = (uint32_t)(int8_t)-t + (uint8_t)-t + 0xfffe + 17;

		cr_assert_eq(u.out[t], want, "%u: %x, not %x", t, u.out[t], want);
	}
	done(&u);
}

Test(exec, bulk_store_of_zeros)
{
	struct run u = { .block = 32 };

	ok(&u, ENTRY1
		".shared .align 8 .b8 s[128];\nmov.u32 %r2, s;\nshl.b32 %r3, %r1, 2;\n"
		"add.u32 %r4, %r2, %r3;\nmov.u32 %r5, 9;\n"
		"st.shared.u32 [%r4], %r5;\nbar.warp.sync -1;\nsetp.eq.u32 %p1, %r1, 0;\n"
		"mov.u64 %rd4, s;\n"
		"@%p1 st.bulk.weak.shared::cta [%rd4+8], 64, 0;\nbar.warp.sync -1;\n"
		"ld.shared.u32 %r6, [%r4];\nst.global.u32 [%rd3], %r6;\nret;\n}\n");
	for (uint32_t t = 0; t < 32; t++)
		cr_assert_eq(u.out[t], t < 2 || t >= 18 ? 9 : 0);
	done(&u);
}

Test(exec, local_memory_is_the_threads_own)
{
	struct run u = { .block = 64 };

	ok(&u, ENTRY1
		".local .align 8 .b8 depot[64];\nmov.u64 %rd4, depot;\ncvta.local.u64 %rd5, %rd4;\n"
		"and.b32 %r2, %r1, 7;\nmul.wide.u32 %rd6, %r2, 8;\nadd.s64 %rd7, %rd5, %rd6;\n"
		"st.u32 [%rd7], %r1;\n"
		"add.s64 %rd8, %rd4, %rd6;\nld.local.u32 %r3, [%rd8];\n"
		"st.global.u32 [%rd3], %r3;\nret;\n}\n");
	for (uint32_t t = 0; t < 64; t++)
		cr_assert_eq(u.out[t], t);
	done(&u);
}

Test(exec, generic_addresses)
{
	struct run u = { .block = 32 };

	/* even lanes use shared, odd lanes global memory through one instruction */
	ok(&u, ENTRY1
		".shared .align 8 .b8 s[256];\nmov.u64 %rd4, s;\ncvta.shared.u64 %rd5, %rd4;\n"
		"add.s64 %rd5, %rd5, %rd2;\n"
		"add.s64 %rd6, %rd3, 1024;\nand.b32 %r2, %r1, 1;\nsetp.eq.u32 %p1, %r2, 0;\n"
		"selp.b64 %rd7, %rd5, %rd6, %p1;\n"
		"st.u32 [%rd7], %r1;\nld.u32 %r3, [%rd7];\nisspacep.shared %p2, %rd7;\n"
		"@%p2 add.u32 %r3, %r3, 100;\n"
		"st.global.u32 [%rd3], %r3;\nret;\n}\n");
	for (uint32_t t = 0; t < 32; t++)
		cr_assert_eq(u.out[t], t & 1 ? t : t + 100);
	done(&u);
}

Test(exec, module_variables)
{
	struct run u = { .block = 32 };

	ok(&u, HEAD ".const .align 4 .u32 table[4] = {5, 6, 7, 8};\n"
		".global .align 4 .u32 counter = 10;\n"
		".global .align 8 .u64 where = counter;\n"
		".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<10>;\n.reg .b64 %rd<10>;\n"
		"ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 3;\n"
		"mul.wide.u32 %rd2, %r2, 4;\n"
		"mov.u64 %rd3, table;\nadd.s64 %rd3, %rd3, %rd2;\nld.const.u32 %r3, [%rd3];\n"
		"ld.const.u32 %r5, [table+4];\n"
		"ld.global.u64 %rd4, [where];\nld.global.u32 %r4, [%rd4];\n"
		"add.u32 %r3, %r3, %r4;\nadd.u32 %r3, %r3, %r5;\n"
		"mul.wide.u32 %rd5, %r1, 4;\nadd.s64 %rd5, %rd1, %rd5;\n"
		"st.global.u32 [%rd5], %r3;\nret;\n}\n");
	for (uint32_t t = 0; t < 32; t++)
		cr_assert_eq(u.out[t], 5 + t % 4 + 10 + 6);
	done(&u);
}

/* ---- functions ---- */

Test(exec, calls)
{
	struct run u = { .block = 32 };

	ok(&u, HEAD
		".func (.param .b32 r) twice(.param .b32 a)\n{\n.reg .b32 %r<4>;\n"
		"ld.param.u32 %r1, [a];\n"
		"add.u32 %r2, %r1, %r1;\nst.param.b32 [r], %r2;\nret;\n}\n"
		".visible .entry k(.param .u64 out)\n{\n.reg .pred %p<3>;\n.reg .b32 %r<10>;\n"
		".reg .b64 %rd<5>;\n"
		"ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
		"add.s64 %rd3, %rd1, %rd2;\n"
		"mov.u32 %r3, 1;\nsetp.lt.u32 %p1, %r1, 10;\n@%p1 bra $S;\n"
		"{\n.param .b32 p0;\n.param .b32 q0;\nst.param.b32 [p0], %r1;\n"
		"call.uni (q0), twice, (p0);\nld.param.b32 %r3, [q0];\n}\n"
		"$S:\nst.global.u32 [%rd3], %r3;\nret;\n}\n");
	for (uint32_t t = 0; t < 32; t++)
		cr_assert_eq(u.out[t], t < 10 ? 1 : 2 * t);
	done(&u);
}

Test(exec, recursion_and_function_pointers)
{
	struct run u = { .block = 12 };

	/* factorial by recursion, each lane its own depth; called through a pointer */
	ok(&u, HEAD
		".func (.param .b32 r) fact(.param .b32 a)\n{\n.reg .pred %p<2>;\n"
		".reg .b32 %r<8>;\nld.param.u32 %r1, [a];\n"
		"mov.u32 %r4, 1;\nsetp.lt.u32 %p1, %r1, 2;\n@%p1 bra $D;\nsub.u32 %r2, %r1, 1;\n"
		"{\n.param .b32 p0;\n.param .b32 q0;\nst.param.b32 [p0], %r2;\n"
		"call.uni (q0), fact, (p0);\nld.param.b32 %r3, [q0];\n}\n"
		"mul.lo.u32 %r4, %r3, %r1;\n$D:\nst.param.b32 [r], %r4;\nret;\n}\n"
		".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<10>;\n.reg .b64 %rd<8>;\n"
		"ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
		"add.s64 %rd3, %rd1, %rd2;\n"
		"mov.u64 %rd4, fact;\n"
		"{\n.param .b32 p0;\n.param .b32 q0;\nst.param.b32 [p0], %r1;\n"
		"proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
		"call (q0), %rd4, (p0), proto;\nld.param.b32 %r3, [q0];\n}\n"
		"st.global.u32 [%rd3], %r3;\nret;\n}\n");
	for (uint32_t t = 0, f = 1; t < 12; t++, f *= t)
		cr_assert_eq(u.out[t], f, "%u! = %u, not %u", t, u.out[t], f);
	done(&u);
}

#define VPRINTF ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"

Test(exec, printf_of_a_kernel)
{
	struct run u = { .block = 2 };

	ok(&u, HEAD VPRINTF ".global .align 1 .b8 fmt[13] = {105, 61, 37, 100, 32, 120, 61, "
		"37, 46, 50, 102, 10, 0};\n"
		".visible .entry k(.param .u64 out)\n{\n.local .align 8 .b8 depot[16];\n"
		".reg .b32 %r<5>;\n.reg .b64 %rd<9>;\n"
		"mov.u64 %rd1, depot;\ncvta.local.u64 %rd2, %rd1;\nmov.u32 %r1, %tid.x;\n"
		"st.local.u32 [%rd1], %r1;\n"
		"mov.u64 %rd3, 0d3FF8000000000000;\nst.local.u64 [%rd1+8], %rd3;\n"
		"mov.u64 %rd4, fmt;\ncvta.global.u64 %rd5, %rd4;\n"
		"{\n.param .b64 p0;\n.param .b64 p1;\n.param .b32 q;\nst.param.b64 [p0], %rd5;\n"
		"st.param.b64 [p1], %rd2;\n"
		"call.uni (q), vprintf, (p0, p1);\nld.param.b32 %r2, [q];\n}\nret;\n}\n");
	cr_assert_str_eq(u.printed.at, "i=0 x=1.50\ni=1 x=1.50\n");
	done(&u);
}

Test(exec, malloc_in_a_kernel)
{
	struct run u = { .block = 32 };

	ok(&u, HEAD ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
		".extern .func free(.param .b64 p);\n"
		".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<5>;\n.reg .b64 %rd<9>;\n"
		"ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
		"add.s64 %rd3, %rd1, %rd2;\n"
		"mov.u64 %rd4, 24;\n{\n.param .b64 p0;\n.param .b64 q;\nst.param.b64 [p0], %rd4;\n"
		"call.uni (q), malloc, (p0);\n"
		"ld.param.b64 %rd5, [q];\n}\nst.u32 [%rd5+20], %r1;\nld.u32 %r2, [%rd5+20];\n"
		"st.global.u32 [%rd3], %r2;\n"
		"{\n.param .b64 p0;\nst.param.b64 [p0], %rd5;\ncall.uni free, (p0);\n}\nret;\n}\n");
	for (uint32_t t = 0; t < 32; t++)
		cr_assert_eq(u.out[t], t);
	done(&u);
}

/* ---- faults and hangs ---- */

Test(exec, global_out_of_bounds)
{
	struct run u = { .block = 32, .checked = true };

	go(&u, ENTRY1 "setp.eq.u32 %p1, %r1, 5;\n@%p1 st.global.u32 [%rd3+262144], %r1;\nret;\n"
		"}\n");
	cr_assert_eq(u.r.status, EXEC_FAULT);
	cr_assert_eq(u.log.fault, FAULT_GLOBAL_OOB);
	cr_assert_eq(u.log.fault_lanes, 1u << 5);
	cr_assert_eq(u.log.fault_addr, (uint64_t)(uintptr_t)u.out + WORDS * 4 + 20);
	cr_assert(strstr(u.r.err.text, "20 bytes past the end"), "%s", u.r.err.text);
	/* the process continues */
	ok(&u, REDUCE);
	done(&u);
}

Test(exec, shared_out_of_bounds_and_misaligned)
{
	struct run u = { .block = 32, .checked = true };

	go(&u, ENTRY1 ".shared .align 4 .b8 s[128];\nmov.u32 %r2, s;\nshl.b32 %r3, %r1, 3;\n"
		"add.u32 %r2, %r2, %r3;\n"
		"st.shared.u32 [%r2], %r1;\nret;\n}\n");
	cr_assert_eq(u.r.status, EXEC_FAULT);
	cr_assert_eq(u.log.fault, FAULT_SHARED_OOB);
	cr_assert_eq(u.log.fault_lanes, 1u << 16);
	go(&u, ENTRY1 ".shared .align 4 .b8 s[128];\nmov.u32 %r2, s;\n"
		"st.shared.u32 [%r2+2], %r1;\nret;\n}\n");
	cr_assert_eq(u.log.fault, FAULT_MISALIGNED);
	done(&u);
}

Test(exec, trap_and_write_to_constant)
{
	struct run u = { .block = 32, .checked = true };

	go(&u, ENTRY1 "setp.eq.u32 %p1, %r1, 3;\n@%p1 trap;\nret;\n}\n");
	cr_assert_eq(u.r.status, EXEC_TRAP);
	cr_assert_eq(u.log.fault_lanes, 8);
	go(&u, HEAD ".const .align 4 .u32 c;\n.visible .entry k(.param .u64 out)\n{\n"
		".reg .b64 %rd<3>;\n.reg .b32 %r<3>;\n"
		"mov.u64 %rd1, c;\ncvta.const.u64 %rd2, %rd1;\nst.u32 [%rd2], 1;\nret;\n}\n");
	cr_assert_eq(u.log.fault, FAULT_CONST_WRITE);
	done(&u);
}

Test(exec, deadlock_is_seen_at_once)
{
	struct run u = { .block = 64, .checked = true };

	/* warp 1 leaves, warp 0 waits for 64 threads */
	go(&u, ENTRY1 "setp.ge.u32 %p1, %r1, 32;\n@%p1 exit;\nbar.sync 1, 64;\nret;\n}\n");
	cr_assert_eq(u.r.status, EXEC_HANG);
	cr_assert_eq(u.log.count[EV_HANG], 1);
	cr_assert_eq(u.log.count[EV_BLOCKED], 1);
	cr_assert_eq(u.log.hang, HANG_DEADLOCK);
	cr_assert_eq(u.log.blocked_kind, WAIT_BAR);
	cr_assert_str_eq(u.log.blocked, "32 of 64 threads have arrived");
	done(&u);
}

Test(exec, livelock_is_seen_without_a_timeout)
{
	struct run u = { .block = 32, .grid = 3, .checked = true, .timeout = 60, .jobs = 2 };

	go(&u, ENTRY1 "$W:\nld.volatile.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p1, %r2, 0;\n"
		"@%p1 bra $W;\nret;\n}\n");
	cr_assert_eq(u.r.status, EXEC_HANG);
	cr_assert_eq(u.log.hang, HANG_LIVELOCK);
	cr_assert_eq(u.log.blocked_kind, WAIT_SPIN);
	done(&u);
}

Test(exec, timeout)
{
	struct run u = { .block = 32, .timeout = 0.3 };

	go(&u, ENTRY1 "mov.u32 %r2, 0;\n$W:\nadd.u32 %r2, %r2, 1;\nst.global.u32 [%rd3], %r2;\n"
		"bra.uni $W;\n}\n");
	cr_assert_eq(u.r.status, EXEC_TIMEOUT);
	done(&u);
}

/* ---- more than one CTA ---- */

Test(exec, later_cta_releases_an_earlier_one)
{
	struct run u = { .block = 32, .grid = 5 };

	/* each CTA but the last waits for its successor, on one worker thread */
	ok(&u, ENTRY1
		"mov.u32 %r2, %ctaid.x;\nmul.wide.u32 %rd4, %r2, 4;\nadd.s64 %rd5, %rd1, %rd4;\n"
		"setp.eq.u32 %p1, %r2, 4;\n@%p1 bra $G;\n"
		"$W:\nld.acquire.gpu.global.u32 %r3, [%rd5+4];\nsetp.eq.u32 %p2, %r3, 0;\n"
		"@%p2 bra $W;\n"
		"$G:\nmov.u32 %r4, 1;\nst.release.gpu.global.u32 [%rd5], %r4;\nret;\n}\n");
	for (uint32_t b = 0; b < 5; b++)
		cr_assert_eq(u.out[b], 1);
	done(&u);
}

Test(exec, clusters_that_cannot_be)
{
	static const char nothing[] = HEAD ".visible .entry k(.param .u64 p)\n{\nret;\n}\n";
	static const char two[] = HEAD ".visible .entry k(.param .u64 p)\n.reqnctapercluster 2\n"
		"{\nret;\n}\n";
	static const struct {
		const char *ptx; uint32_t grid, cluster; const char *why;
	} cases[] = {
		{ nothing, 4, 3, "not a multiple" }, { nothing, 32, 32, "cluster size" },
		{ two, 4, 4, ".reqnctapercluster" }, { two, 4, 1, ".reqnctapercluster" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct run u = { .grid = cases[i].grid, .cluster = cases[i].cluster };

		go(&u, cases[i].ptx);
		cr_expect_eq(u.r.status, EXEC_BAD_LAUNCH, "case %zu", i);
		cr_expect(strstr(u.r.err.text, cases[i].why), "%s", u.r.err.text);
		done(&u);
	}
}

Test(exec, cluster_barrier_and_remote_shared_memory)
{
	struct run u = { .block = 32, .grid = 4, .cluster = 2 };

	ok(&u, ENTRY1
		".shared .align 4 .b8 s[128];\nmov.u32 %r2, s;\nshl.b32 %r3, %r1, 2;\n"
		"add.u32 %r4, %r2, %r3;\n"
		"mov.u32 %r5, %cluster_ctarank;\nmov.u32 %r6, %ctaid.x;\n"
		"mad.lo.u32 %r7, %r6, 100, %r1;\nst.shared.u32 [%r4], %r7;\n"
		"barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
		"xor.b32 %r8, %r5, 1;\n"
		"mapa.shared::cluster.u32 %r9, %r4, %r8;\nld.shared::cluster.u32 %r10, [%r9];\n"
		"mad.lo.u32 %r11, %r6, 32, %r1;\nmul.wide.u32 %rd4, %r11, 4;\n"
		"add.s64 %rd5, %rd1, %rd4;\nst.global.u32 [%rd5], %r10;\n"
		"barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nret;\n}\n");
	for (uint32_t b = 0; b < 4; b++)
		for (uint32_t t = 0; t < 32; t++)
			cr_assert_eq(u.out[b * 32 + t], (b ^ 1) * 100 + t);
	done(&u);
}

Test(exec, special_registers_of_clusters)
{
	struct run u = { .block = 32, .grid = 8, .cluster = 2 };

	ok(&u, ENTRY1
		"mov.u32 %r2, %nclusterid.x;\nmov.u32 %r3, %clusterid.x;\nmov.u32 %r4, %cluster_nctaid.x;\n"
		"mov.u32 %r5, %cluster_ctaid.x;\nmov.u32 %r6, %ctaid.x;\n"
		"mad.lo.u32 %r7, %r2, 10, %r3;\nmad.lo.u32 %r7, %r7, 10, %r4;\nmad.lo.u32 %r7, %r7, 10, %r5;\n"
		"mul.wide.u32 %rd4, %r6, 4;\nadd.s64 %rd5, %rd1, %rd4;\nst.global.u32 [%rd5], %r7;\nret;\n}\n");
	for (uint32_t b = 0; b < 8; b++)
		cr_assert_eq(u.out[b], 4020 + b / 2 * 100 + b % 2, "%u: %u", b, u.out[b]);
	done(&u);
}

/* ---- rendezvous and registers ---- */

Test(exec, bar_warp_sync_of_part_of_a_warp)
{
	struct run u = { .block = 32, .checked = true };

	ok(&u, ENTRY1
		".shared .align 4 .b8 s[128];\nmov.u32 %r2, s;\nshl.b32 %r3, %r1, 2;\n"
		"add.u32 %r4, %r2, %r3;\n"
		"setp.ge.u32 %p1, %r1, 16;\n@%p1 bra $E;\nst.shared.u32 [%r4], %r1;\n"
		"bar.warp.sync 65535;\n"
		"xor.b32 %r5, %r3, 4;\nadd.u32 %r5, %r5, %r2;\nld.shared.u32 %r6, [%r5];\n"
		"st.global.u32 [%rd3], %r6;\n$E:\nret;\n}\n");
	for (uint32_t t = 0; t < 16; t++)
		cr_assert_eq(u.out[t], t ^ 1);
	cr_assert_eq(u.log.count[EV_WARP_SYNC], 1);
	done(&u);
}

Test(exec, elect_one_lane)
{
	struct run u = { .block = 64 };

	ok(&u, ENTRY1 "elect.sync %r2|%p1, -1;\nselp.u32 %r3, 1, 0, %p1;\nadd.u32 %r3, %r3, %r2;\n"
		"st.global.u32 [%rd3], %r3;\nret;\n}\n");
	for (uint32_t t = 0; t < 64; t++)
		cr_assert_eq(u.out[t], t % 32 == 0);
	done(&u);
}

Test(exec, setmaxnreg_waits_for_the_pool)
{
	struct run u = { .block = 384, .checked = true };

	ok(&u, HEAD ".visible .entry k(.param .u64 out)\n.maxntid 384, 1, 1\n.minnctapersm 1\n{\n"
		".reg .pred %p<3>;\n.reg .b32 %r<5>;\n"
		"mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 128;\n@%p1 bra $A;\n"
		"setmaxnreg.dec.sync.aligned.u32 40;\nret;\n"
		"$A:\nsetmaxnreg.inc.sync.aligned.u32 256;\nret;\n}\n");
	cr_assert_eq(u.log.count[EV_SETMAXNREG], 12);
	done(&u);
}

/* By an estimate the kernel begins with 256 registers, by ptxas with 168. Without .minnctapersm
 * ptxas ignores setmaxnreg. */
Test(exec, setmaxnreg_counts_from_the_registers_of_the_machine_code)
{
	static const char text[] = HEAD ".visible .entry k(.param .u64 out)\n.maxntid 256, 1, 1\n"
		".minnctapersm 1\n{\nsetmaxnreg.dec.sync.aligned.u32 200;\nret;\n}\n";
	static const char ignored[] = HEAD ".visible .entry k(.param .u64 out)\n.maxntid 256, 1, 1\n{\n"
		"setmaxnreg.dec.sync.aligned.u32 200;\nret;\n}\n";
	struct run u = { .block = 256 };

	ok(&u, text);
	u.registers = 165;
	ok(&u, ignored);
	go(&u, text);
	cr_assert_eq(u.r.status, EXEC_FAULT);
	u.registers = 200;
	ok(&u, text);
	done(&u);
}

Test(exec, unsupported_instruction_says_where)
{
	struct run u = { .block = 32 };

	go(&u, ENTRY1 "tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [%rd1, %rd2, {%r5}];\nret;\n}\n");
	cr_assert_eq(u.r.status, EXEC_UNSUPPORTED);
	cr_assert(strstr(u.r.err.text, "a texture with a sampler of its own"), "%s", u.r.err.text);
	done(&u);
}

/* ptxas refuses these. They would access memory behind the register. */
Test(exec, registers_of_other_types)
{
	static const char *const lines[] = {
		"shl.b32 %p1, %r1, 2;", "add.u64 %r1, %rd1, 5;", "add.u64 %rd1, %r1, %rd2;",
		"mov.u32 %r1, %p1;", "add.u32 %r1, %r2, %p1;", "cvt.u64.u32 %r1, %r2;", "mul.wide.u32 %r1, %r2, %r3;",
		"setp.eq.u32 %r1, %r2, 0;", "selp.b32 %r1, %r2, %r3, %r4;", "getctarank.u64 %rd2, %rd1;",
		"add.u32 %r1, %rd2, %r3;",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct run u = { .block = 32 };
		struct text t = { 0 };

		text_printf(&t, "%s%s\nret;\n}\n", ENTRY1, lines[i]);
		go(&u, t.at);
		cr_expect_eq(u.r.status, EXEC_UNSUPPORTED, "%s", lines[i]);
		cr_expect(strstr(u.r.err.text, "register of another type"), "%s: %s", lines[i], u.r.err.text);
		done(&u);
		text_free(&t);
	}
}

/* ISA 6.4.1: narrower address registers are extended with zeros. */
Test(exec, addresses_in_narrow_registers)
{
	struct run u = { .block = 32 };

	ok(&u, HEAD ".visible .entry k(.param .u64 out)\n{\n.reg .b16 a;\n.reg .b32 v;\n.reg .b64 o;\n"
		".shared .b32 s[4];\nld.param.u64 o, [out];\nmov.u16 a, s;\nst.shared.u32 [a+4], 7;\n"
		"ld.shared.u32 v, [s+4];\nst.global.u32 [o], v;\nret;\n}\n");
	cr_assert_eq(u.out[0], 7);
	done(&u);
}

/* Of a variable that is larger than the parameter, as much is copied as the parameter has. */
Test(exec, arguments_of_another_size)
{
	struct run u = { .block = 32 };

	ok(&u, HEAD ".func (.param .b32 r) f(.param .b32 x)\n{\n.reg .b32 v;\nld.param.b32 v, [x];\n"
		"st.param.b32 [r], v;\nret;\n}\n.visible .entry k(.param .u64 out)\n{\n.reg .b32 v;\n"
		".reg .b64 o;\nld.param.u64 o, [out];\n{\n.param .b8 x[65536];\n.param .b8 r[65536];\n"
		"st.param.b32 [x], 5;\ncall (r), f, (x);\nld.param.b32 v, [r];\n}\nst.global.b32 [o], v;\nret;\n}\n");
	cr_assert_eq(u.out[0], 5);
	done(&u);
}

Test(exec, launches_that_a_driver_refuses)
{
	struct run u = { .block = 2048 };

	go(&u, REDUCE);
	cr_assert_eq(u.r.status, EXEC_BAD_LAUNCH);
	u.block = 32;
	u.dynamic = 300 << 10;
	go(&u, REDUCE);
	cr_assert_eq(u.r.status, EXEC_BAD_LAUNCH);
	done(&u);
}
