/* Tensor maps and copies, mbarriers, cp.async, bulk copies, mma.sync and wgmma as instructions:
 * against results of an H200 (the tables *_h200.def), and against rules of the ISA that are
 * visible in a value or an event. One file, because all tests share one small interpreter of PTX
 * snippets. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libconsan/exec/exec.h"
#include "libconsan/exec/num.h"
#include "libconsan/exec/tensormap.h"

static uint64_t fnv(const void *p, size_t n)
{
	const unsigned char *c = p;
	uint64_t h = 1469598103934665603ull;

	for (size_t i = 0; i < n; i++)
		h = (h ^ c[i]) * 1099511628211ull;
	return h;
}

/* ---- tensor copies against hardware ---- */

#define P(...) { __VA_ARGS__ }
static const struct tensor_case {
	bool im2col;
	uint32_t type, rank, interleave, swizzle, oob;
	uint64_t dim[5], stride[4];
	uint32_t box[5], step[5];
	int32_t at[5], lower[3], upper[3];
	uint16_t offset[3];
	uint32_t pixels, op, dst;
	uint64_t shared, global;
} tensor_cases[] = {
#define CASE(im, type, rank, il, sw, oob, dim, st, box, es, at, lo, up, off, px, op, dst, sh, gl) \
	{ im, type, rank, il, sw, oob, dim, st, box, es, at, lo, up, off, px, op, dst, sh, gl },
#include "tensor_h200.def"
};

#define SHARED 65536u
#define GLOBAL (1u << 20)
static _Alignas(1024) unsigned char shared[SHARED], global[GLOBAL];

static void fill(bool store)
{
	for (uint32_t i = 0; i < GLOBAL / 4; i++) {
		uint32_t v = i * 2654435761u;

		memcpy(global + 4 * i, &v, 4);
	}
	for (uint32_t i = 0; i < SHARED / 4; i++) {
		uint32_t v = store ? i * 2654435761u % 97 * 0x01010101u & 0x3f3f3f3fu : 0xeeeeeeee;

		memcpy(shared + 4 * i, &v, 4);
	}
}

static bool in_global(void *user, uint64_t addr, uint64_t bytes)
{
	(void)user;
	return addr >= (uintptr_t)global && addr + bytes <= (uintptr_t)global + GLOBAL;
}

/* Encodes a map into bytes, and reads it back. */
static bool make(const struct consan_tensormap_args *a, struct tensormap *m, struct consan_err *e)
{
	_Alignas(64) unsigned char bytes[CONSAN_TENSORMAP_BYTES];

	return exec_tensormap(a, bytes, e) && !tensormap_unpack(m, bytes, TM_IM2COL);
}

static void run_case(const struct tensor_case *t, int number)
{
	static const enum tensor_red reds[] = { RED_NONE, RED_NONE, RED_ADD, RED_MIN, RED_MAX,
		RED_XOR, RED_INC, RED_DEC };
	struct consan_tensormap_args a = { .im2col = t->im2col, .type = t->type, .rank = t->rank,
		.address = (uintptr_t)global + 65536, .dim = t->dim, .stride = t->stride,
		.box = t->box, .elem_stride = t->step, .lower = t->lower, .upper = t->upper,
		.channels = t->box[0], .pixels = t->pixels, .interleave = t->interleave,
		.swizzle = t->swizzle, .oob = t->oob };
	struct tensormap m;
	struct tensor_copy c = { .map = &m, .shared = shared, .dst = t->dst,
		.pad_end = UINT64_MAX };
	struct consan_err e = { 0 };

	cr_assert(make(&a, &m, &e), "case %d: %s", number, e.text);
	cr_assert_null(tensormap_check(&m));
	memcpy(c.at, t->at, sizeof c.at);
	memcpy(c.offset, t->offset, sizeof c.offset);
	if (!t->shared) {
		cr_assert_not_null(tensor_copy_check(&c, !t->op), "case %d", number);
		return;
	}
	cr_assert_null(tensor_copy_check(&c, !t->op), "case %d", number);
	cr_assert(tensor_spans(&c, in_global, NULL));
	fill(t->op);
	if (t->op)
		tensor_store(&c, reds[t->op]);
	else
		tensor_load(&c);
	cr_assert_eq(fnv(shared, SHARED), t->shared, "case %d", number);
	cr_assert_eq(fnv(global, GLOBAL), t->global, "case %d", number);
}

Test(tensor, copies_as_on_hardware)
{
	for (size_t i = 0; i < ARRAY_SIZE(tensor_cases); i++)
		run_case(&tensor_cases[i], (int)i);
}

/* Stores and reductions write whole units of 16 bytes at the inner edge. The tensor has 2 of the
 * box's 3 rows. */
Test(tensor, edge_of_a_store)
{
	static const struct { uint8_t type, bytes; } types[] = {
		{ TT_u8, 1 }, { TT_f16, 2 }, { TT_u32, 4 }, { TT_u64, 8 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types) * 3 * 16; i++) {
		const uint32_t bytes = types[i / 48].bytes, swizzle = i / 16 % 3;
		const bool red = swizzle == 2 && bytes > 1;
		uint64_t dim[] = { 1 + i % 16, 2 }, stride[] = { 256 };
		uint32_t box[] = { 64 / bytes, 3 }, one[] = { 1, 1 }, in, n;
		struct consan_tensormap_args a = { .type = types[i / 48].type, .rank = 2,
			.address = (uintptr_t)global, .dim = dim, .stride = stride, .box = box,
			.elem_stride = one, .swizzle = red ? 0 : swizzle };
		struct tensormap m;
		struct tensor_copy c = { .map = &m, .shared = shared, .pad_end = UINT64_MAX };
		struct consan_err e = { 0 };

		if (swizzle == TSW_32)
			box[0] = 32 / bytes;
		if (dim[0] > box[0])
			dim[0] = box[0];
		in = (uint32_t)dim[0] * bytes;
		n = (in + 15) & ~15u;
		memset(global, 0, 1024);
		memset(shared, 1, 1024);
		cr_assert(make(&a, &m, &e), "%s", e.text);
		/* the padding of the last row is beside the allocation */
		if (i % 2)
			c.pad_end = (uintptr_t)global + 256 + in;
		tensor_store(&c, red ? RED_ADD : RED_NONE);
		for (uint32_t at = 0; at < 1024; at++) {
			const uint32_t end = at < 256 || !(i % 2) ? n : in;

			cr_assert_eq(global[at], at < 512 && at % 256 < end,
				"type %u, width %lu, swizzle %u, byte %u", a.type, dim[0], swizzle, at);
		}
	}
}

/* 16 elements of 4 or 6 bits are dense in global memory and take 16 bytes of shared memory. A store
 * of what was loaded leaves global memory unchanged; 4-bit types have none. */
Test(tensor, padded_types)
{
	static const struct { uint8_t type, bytes, swizzle; } cases[] = {
		{ TT_u4x16_p64, 8, TSW_NONE }, { TT_u4x16_p64, 8, TSW_128 },
		{ TT_u6x16_p32, 12, TSW_NONE }, { TT_u6x16_p32, 12, TSW_128_ATOM32 },
	};

	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		const uint32_t n = cases[k].bytes, row = 16 * n; /* 256 elements */
		uint64_t dim[] = { 256, 5 }, stride[] = { row };
		uint32_t box[] = { 128, 4 }, one[] = { 1, 1 };
		struct consan_tensormap_args a = { .type = cases[k].type, .rank = 2,
			.address = (uintptr_t)global, .dim = dim, .stride = stride, .box = box,
			.elem_stride = one, .swizzle = cases[k].swizzle };
		struct tensormap m;
		struct tensor_copy c = { .map = &m, .shared = shared, .at = { 128, 2 },
			.pad_end = UINT64_MAX };
		static unsigned char before[4096];
		struct consan_err e = { 0 };

		fill(false);
		memcpy(before, global, sizeof before);
		cr_assert(make(&a, &m, &e), "%s", e.text);
		cr_assert_null(tensormap_check(&m));
		cr_assert_null(tensor_copy_check(&c, true));
		cr_assert_eq(tensor_box_bytes(&c), 4 * 8 * n);
		cr_assert_eq(tensor_box_extent(&c), 4 * 128);
		tensor_load(&c);
		for (uint32_t r = 0; r < 4; r++)
			for (uint32_t g = 0; g < 8; g++) {
				const unsigned char *got = shared + tensor_swizzle(cases[k].swizzle,
					r * 128 + g * 16);

				for (uint32_t i = 0; i < 16; i++)
					cr_assert_eq(got[i], i < n && r < 3
						? before[(2 + r) * row + (8 + g) * n + i] : 0);
			}
		cr_assert_eq(!tensor_copy_check(&c, false), n == 12);
		if (n == 8)
			continue;
		memset(global + 2 * row, 0, 2 * row);
		tensor_store(&c, RED_NONE);
		for (uint32_t r = 2; r < 4; r++)
			for (uint32_t i = 0; i < row; i++)
				cr_assert_eq(global[r * row + i], i < row / 2 ? 0 : before[r * row + i]);
		c.at[0] = 64;
		cr_assert_not_null(tensor_copy_check(&c, true));
	}
}

Test(tensor, gather4_takes_four_rows)
{
	uint64_t dim[] = { 64, 100 }, stride[] = { 256 };
	uint32_t box[] = { 8, 1 }, one[] = { 1, 1 };
	struct consan_tensormap_args a = { .type = TT_u32, .rank = 2, .address = (uintptr_t)global,
		.dim = dim, .stride = stride, .box = box, .elem_stride = one };
	struct tensormap m;
	struct tensor_copy c = { .map = &m, .shared = shared, .rows = true,
		.at = { 4, 7, 99, 100, 0 } };
	struct consan_err e = { 0 };

	fill(false);
	cr_assert(make(&a, &m, &e), "%s", e.text);
	cr_assert_eq(tensor_box_bytes(&c), 128);
	tensor_load(&c);
	for (unsigned r = 0; r < 4; r++)
		for (unsigned i = 0; i < 8; i++) {
			uint32_t got, want = c.at[1 + r] < 100
				? ((uint32_t)c.at[1 + r] * 64 + 4 + i) * 2654435761u : 0;

			memcpy(&got, shared + r * 32 + i * 4, 4);
			cr_assert_eq(got, want);
		}
}

Test(tensor, swizzles_are_involutions_within_their_span)
{
	static const uint32_t span[TSW_COUNT] = { 16, 32, 64, 128, 128, 128, 128 };

	for (uint32_t s = 0; s < TSW_COUNT; s++)
		for (uint32_t at = 0; at < 4096; at += 8) {
			uint32_t to = tensor_swizzle(s, at);

			cr_assert_eq(tensor_swizzle(s, to), at);
			cr_assert_eq(to / span[s], at / span[s]);
		}
}

/* One bad argument at a time; the message names it. */
Test(tensor, the_encoder_names_the_bad_argument)
{
	static uint64_t dim[3], stride[2];
	static uint32_t box[3], step[3];
	static struct consan_tensormap_args a;
	static _Alignas(64) unsigned char map[128];
#define BAD(change, word) do { \
		struct consan_err e = { 0 }; \
		memcpy(dim, ((uint64_t[]){ 64, 64, 8 }), sizeof dim); \
		memcpy(stride, ((uint64_t[]){ 256, 16384 }), sizeof stride); \
		memcpy(box, ((uint32_t[]){ 32, 8, 2 }), sizeof box); \
		memcpy(step, ((uint32_t[]){ 1, 1, 1 }), sizeof step); \
		a = (struct consan_tensormap_args){ .type = TT_f32, .rank = 3, .address = 4096, \
			.dim = dim, .stride = stride, .box = box, .elem_stride = step }; \
		cr_assert(exec_tensormap(&a, map, &e), "%s", e.text); \
		change; \
		cr_assert(!exec_tensormap(&a, map, &e)); \
		cr_assert(strstr(e.text, word), "%s", e.text); \
	} while (0)
	BAD(a.type = 16, "tensorDataType");
	BAD(a.rank = 0, "tensorRank");
	BAD(a.rank = 6, "tensorRank");
	BAD((a.interleave = 1, a.rank = 2), "tensorRank");
	BAD(a.address = 4104, "globalAddress");
	BAD((a.interleave = 2, a.address = 4112), "globalAddress");
	BAD(dim[1] = 0, "globalDim[1]");
	BAD(dim[2] = (1ull << 32) + 1, "globalDim[2]");
	BAD(stride[0] = 264, "globalStrides[0]");
	BAD(stride[1] = 1ull << 40, "globalStrides[1]");
	BAD(box[2] = 0, "boxDim[2]");
	BAD(box[1] = 257, "boxDim[1]");
	BAD(box[0] = 3, "boxDim[0]");
	BAD(step[1] = 9, "elementStrides[1]");
	BAD(a.interleave = 3, "interleave");
	BAD(a.swizzle = 7, "swizzle");
	BAD(a.swizzle = TSW_64, "inner dimension");
	BAD(a.l2 = 4, "l2Promotion");
	BAD(a.oob = 2, "oobFill");
	BAD((a.oob = 1, a.type = TT_u32), "oobFill");
#undef BAD
	struct consan_err e = { 0 };
	cr_assert(!exec_tensormap(&a, map + 8, &e));
	cr_assert(strstr(e.text, "tensorMap"), "%s", e.text);
}

/* ---- running instructions ---- */

#define HEAD ".version 8.7\n.target sm_90a\n.address_size 64\n"

struct params { uint64_t out, in, a, b; };
struct run {
	struct exec_result r;
	struct params p;
	uint32_t threads, cluster;
	enum exec_async async;
	bool unchecked;
	/* recorded by the sink */
	struct event_sink sink;
	unsigned count[EV_COUNT];
	unsigned fault;
	struct event bulk, signal, blocked;
	char text[300];
};

static void on_event(struct event_sink *s, const struct event *e)
{
	struct run *u = (struct run *)((char *)s - offsetof(struct run, sink));

	u->count[e->kind]++;
	if (e->kind == EV_FAULT)
		u->fault = e->fault.fault;
	if (e->kind == EV_BULK)
		u->bulk = *e;
	if (e->kind == EV_MBARRIER_SIGNAL)
		u->signal = *e;
	if (e->kind == EV_BLOCKED) {
		u->blocked = *e;
		snprintf(u->text, sizeof u->text, "%s", e->blocked.text ? e->blocked.text : "");
	}
}

static struct event_sink *begin(void *user, const struct cluster_info *c)
{
	struct run *u = user;

	(void)c;
	u->sink.event = on_event;
	u->sink.want_global = true;
	return &u->sink;
}

static enum exec_status go(struct run *u, const char *text)
{
	struct exec_observer o = { .user = u, .cluster_begin = u->unchecked ? NULL : begin };
	struct consan_err e = { 0 };
	struct ptx_module *p = ptx_parse("test.ptx", text, strlen(text), &e);
	struct exec_module *m;
	struct exec_launch l = { .device = exec_device_for(90),
		.grid = { u->cluster ? u->cluster : 1, 1, 1 },
		.block = { u->threads ? u->threads : 32, 1, 1 },
		.cluster = { u->cluster ? u->cluster : 1, 1, 1 },
		.params = &u->p, .jobs = 1, .timeout = 20, .observer = &o, .async = u->async };

	cr_assert(p, "line %d: %s", e.line, e.text);
	m = exec_load(p, &e);
	cr_assert(m, "%s", e.text);
	l.kernel = exec_kernel(m, "k", &e);
	cr_assert(l.kernel, "%s", e.text);
	exec_run(&l, &u->r);
	exec_unload(m);
	return u->r.status;
}

static void *device(size_t bytes)
{
	void *at = aligned_alloc(1024, (bytes + 1023) & ~(size_t)1023);

	memset(at, 0, bytes);
	exec_mem_add(at, bytes, MEM_DEVICE, false);
	return at;
}

#define ENTRY HEAD ".visible .entry k(.param .u64 out, .param .u64 in, .param .u64 a, " \
	".param .u64 b)\n{\n" \
	".reg .pred %p<10>;\n.reg .b16 %rs<10>;\n.reg .b32 %r<200>;\n.reg .b64 %rd<40>;\n" \
	".shared .align 1024 .b8 sm[1024];\n.shared .align 8 .b64 bar;\n" \
	"ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\nld.param.u64 %rd3, [a];\n" \
	"ld.param.u64 %rd4, [b];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, sm;\nmov.u32 %r3, bar;\n" \
	"mul.wide.u32 %rd5, %r1, 4;\nadd.s64 %rd6, %rd1, %rd5;\nsetp.eq.u32 %p1, %r1, 0;\n"

/* ---- mbarriers against hardware ---- */

struct script { struct text t; unsigned n; };

static void append(struct script *s, const char *instruction)
{
	text_printf(&s->t, "%s;\n", instruction);
}

static void store_reg(struct script *s, const char *reg)
{
	text_printf(&s->t, "st.global.u32 [%%rd1+%u], %s;\n", 4 * s->n++, reg);
}

static void test_token(struct script *s, unsigned token)
{
	text_printf(&s->t, "mbarrier.test_wait.shared.b64 %%p2, [bar], %%rd%u;\n"
		"selp.u32 %%r9, 1, 0, %%p2;\n", token);
	store_reg(s, "%r9");
}

static void test_parity(struct script *s, unsigned parity)
{
	text_printf(&s->t, "mbarrier.test_wait.parity.shared.b64 %%p2, [bar], %u;\n"
		"selp.u32 %%r9, 1, 0, %%p2;\n", parity);
	store_reg(s, "%r9");
}

static void arrive(struct script *s, unsigned token, unsigned count)
{
	text_printf(&s->t, "mbarrier.arrive.shared.b64 %%rd%u, [bar], %u;\n", token, count);
}

static void pending(struct script *s, unsigned token)
{
	text_printf(&s->t, "mbarrier.pending_count.b64 %%r9, %%rd%u;\n", token);
	store_reg(s, "%r9");
}

Test(tensor, mbarrier_as_on_hardware)
{
	static const uint32_t want[] = { 0, 1, 0, 3, 2, 0, 1, 1, 1, 0, 1, 0, 1, 1, 0, 1, 0, 0, 0, 1,
		1, 0, 0, 1, 1, 1, 0, 1, 2 };
	struct script s = { 0 };
	struct run u = { .threads = 1 };
	uint32_t *out = device(4096);

	text_printf(&s.t, "%s", ENTRY);
	append(&s, "mbarrier.init.shared.b64 [bar], 3");
	test_parity(&s, 0);
	test_parity(&s, 1);
	append(&s, "mbarrier.arrive.shared.b64 %rd11, [bar]");
	test_token(&s, 11);
	pending(&s, 11);
	append(&s, "mbarrier.arrive.noComplete.shared.b64 %rd12, [bar], 1");
	pending(&s, 12);
	test_token(&s, 12);
	append(&s, "mbarrier.arrive.shared.b64 %rd13, [bar]");
	test_token(&s, 11);
	test_token(&s, 13);
	test_parity(&s, 0);
	test_parity(&s, 1);
	pending(&s, 13);
	arrive(&s, 11, 2);
	test_token(&s, 11);
	arrive(&s, 12, 1);
	test_token(&s, 11);
	test_token(&s, 12);
	test_parity(&s, 0);
	test_parity(&s, 1);
	append(&s, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 100");
	arrive(&s, 11, 3);
	test_token(&s, 11);
	test_parity(&s, 0);
	append(&s, "mbarrier.complete_tx.shared::cluster.relaxed.cluster.b64 [bar], 60");
	test_token(&s, 11);
	append(&s, "mbarrier.complete_tx.shared::cluster.relaxed.cluster.b64 [bar], 40");
	test_token(&s, 11);
	test_parity(&s, 0);
	test_parity(&s, 1);
	/* bytes may arrive before they are expected */
	append(&s, "mbarrier.complete_tx.shared::cluster.relaxed.cluster.b64 [bar], 16");
	append(&s, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16");
	arrive(&s, 11, 2);
	test_token(&s, 11);
	arrive(&s, 12, 1);
	test_token(&s, 11);
	append(&s, "mbarrier.arrive_drop.shared.b64 %rd11, [bar]");
	arrive(&s, 12, 2);
	test_token(&s, 11);
	arrive(&s, 13, 2);
	test_token(&s, 13);
	test_parity(&s, 0);
	test_parity(&s, 1);
	append(&s, "mbarrier.arrive.noComplete.shared.b64 %rd11, [bar], 1");
	pending(&s, 11);
	text_printf(&s.t, "ret;\n}\n");
	u.p.out = (uintptr_t)out;
	cr_assert_eq(go(&u, s.t.at), EXEC_OK, "%s", u.r.err.text);
	cr_assert_eq(s.n, ARRAY_SIZE(want));
	for (unsigned i = 0; i < s.n; i++)
		cr_assert_eq(out[i], want[i], "observation %u is %u", i, out[i]);
	text_free(&s.t);
}

Test(tensor, a_wait_without_arrivals_is_explained)
{
	struct run u = { .threads = 32 };

	cr_assert_eq(go(&u, ENTRY
		"@%p1 mbarrier.init.shared.b64 [bar], 2;\nbar.sync 0;\n"
		"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;\n"
		"L:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra L;\nret;\n"
		"}\n"),
		EXEC_HANG);
	cr_assert_eq(u.blocked.blocked.on, WAIT_MBARRIER);
	cr_assert_eq(u.blocked.blocked.missing, 1);
	cr_assert_eq(u.blocked.blocked.tx_count, 512);
	cr_assert(strstr(u.text, "1 of 2 arrivals pending, tx-count 512"), "%s", u.text);
}

/* ---- asynchronous copies ---- */

#define LOAD_BYTES "mov.u32 %r5, 128;\n" \
	"@%p1 mbarrier.init.shared.b64 [bar], 1;\nbar.sync 0;\n" \
	"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;\n" \
	"@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes " \
	"[%r2], [%rd2], %r5, [%r3];\n"
#define EARLY_AND_LATE "mad.lo.u32 %r6, %r1, 4, %r2;\nld.shared.u32 %r7, [%r6];\n" \
	"L:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra L;\n" \
	"ld.shared.u32 %r8, [%r6];\nst.global.u32 [%rd6], %r7;\nst.global.u32 [%rd6+128], %r8;\n" \
	"ret;\n}\n"

static void check_bulk(enum exec_async async, bool early)
{
	struct run u = { .async = async };
	uint32_t *out = device(4096), *in = device(4096);

	for (uint32_t i = 0; i < 32; i++)
		in[i] = i + 100;
	u.p = (struct params){ .out = (uintptr_t)out, .in = (uintptr_t)in };
	cr_assert_eq(go(&u, ENTRY LOAD_BYTES EARLY_AND_LATE), EXEC_OK, "%s", u.r.err.text);
	for (uint32_t i = 0; i < 32; i++) {
		cr_assert_eq(out[i], early ? i + 100 : 0);
		cr_assert_eq(out[32 + i], i + 100);
	}
	cr_assert_eq(u.count[EV_BULK], 1);
	cr_assert_eq(u.bulk.lanes, 1);
	cr_assert_eq(u.bulk.bulk.mode, MODE_WRITE);
	cr_assert_eq(u.bulk.bulk.bytes, 128);
	cr_assert_eq(u.bulk.bulk.tx_count, 128);
	cr_assert_eq(u.bulk.bulk.global.n, 1);
	cr_assert_eq(u.count[EV_MBARRIER_SIGNAL], 1);
	cr_assert_eq(u.signal.mbarrier_signal.async_op, u.bulk.bulk.async_op);
	cr_assert_eq(u.signal.mbarrier_signal.tx_count, 128);
	cr_assert_eq(u.signal.mbarrier_signal.addr, u.bulk.bulk.mbarrier);
}

Test(tensor, bulk_load_lands_when_it_is_waited_for)
{
	check_bulk(ASYNC_LATE, false);
	check_bulk(ASYNC_EARLY, true);
}

/* Rows of 32 bytes under the 128-byte swizzle are 128 bytes apart. */
Test(tensor, tensor_load_with_holes)
{
	struct run u = { 0 };
	uint32_t *out = device(4096), *in = device(4096);
	void *map = device(128);
	uint64_t dim[] = { 16, 4 }, stride[] = { 64 };
	uint32_t box[] = { 8, 2 }, one[] = { 1, 1 };
	struct consan_tensormap_args a = { .type = TT_u32, .rank = 2, .address = (uintptr_t)in,
		.dim = dim,
		.stride = stride, .box = box, .elem_stride = one, .swizzle = TSW_128 };
	struct consan_err e = { 0 };

	for (uint32_t i = 0; i < 64; i++)
		in[i] = i + 1;
	cr_assert(exec_tensormap(&a, map, &e), "%s", e.text);
	u.p = (struct params){ .out = (uintptr_t)out, .in = (uintptr_t)in, .a = (uintptr_t)map };
	cr_assert_eq(go(&u, ENTRY "mov.u32 %r4, 4;\nmov.u32 %r5, 3;\n"
		"@%p1 mbarrier.init.shared.b64 [bar], 1;\nbar.sync 0;\n"
		"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;\n"
		"@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
		" [%r2], [%rd3, {%r4, %r5}], [%r3];\n"
		"L:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra L;\n"
		"mad.lo.u32 %r6, %r1, 4, %r2;\nld.shared.u32 %r7, [%r6];\n"
		"ld.shared.u32 %r8, [%r6+128];\n"
		"st.global.u32 [%rd6], %r7;\nst.global.u32 [%rd6+128], %r8;\nret;\n}\n"),
		EXEC_OK, "%s", u.r.err.text);
	for (uint32_t i = 0; i < 32; i++) {
		cr_assert_eq(out[i], i < 8 ? 3 * 16 + 4 + i + 1 : 0, "%u", i);
		cr_assert_eq(out[32 + i], 0);
	}
	cr_assert_eq(u.bulk.bulk.tx_count, 64);
	cr_assert_eq(u.bulk.bulk.bytes, 160);
	cr_assert_eq(u.bulk.bulk.spans.n, 4);
	cr_assert_eq(u.bulk.bulk.global.n, 1);
}

Test(tensor, bulk_store_and_reduction)
{
	struct run u = { 0 };
	uint32_t *out = device(4096);

	for (uint32_t i = 0; i < 32; i++)
		out[32 + i] = 7;
	u.p.out = (uintptr_t)out;
	cr_assert_eq(go(&u, ENTRY "mad.lo.u32 %r6, %r1, 4, %r2;\nst.shared.u32 [%r6], %r1;\n"
		"fence.proxy.async.shared::cta;\nbar.sync 0;\nmov.u32 %r5, 128;\n"
		"add.s64 %rd7, %rd1, 128;\n"
		"@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], %r5;\n"
		"@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 "
		"[%rd7], [%r2], %r5;\n"
		"@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;\nret;\n}\n"),
		EXEC_OK, "%s", u.r.err.text);
	for (uint32_t i = 0; i < 32; i++) {
		cr_assert_eq(out[i], i);
		cr_assert_eq(out[32 + i], i + 7);
	}
	cr_assert_eq(u.count[EV_BULK_COMMIT], 1);
	cr_assert_eq(u.count[EV_BULK_WAIT], 1);
}

Test(tensor, cp_async_zero_fills_and_lands_late)
{
	struct run u = { 0 };
	uint32_t *out = device(4096), *in = device(4096);

	for (uint32_t i = 0; i < 128; i++)
		in[i] = i + 1;
	u.p = (struct params){ .out = (uintptr_t)out, .in = (uintptr_t)in };
	/* odd lanes read 4 of 16 bytes; the first wait leaves the group pending */
	cr_assert_eq(go(&u, ENTRY "mad.lo.u32 %r6, %r1, 16, %r2;\nmul.wide.u32 %rd7, %r1, 16;\n"
		"add.s64 %rd8, %rd2, %rd7;\nand.b32 %r7, %r1, 1;\nsetp.ne.u32 %p3, %r7, 0;\n"
		"selp.u32 %r8, 4, 16, %p3;\ncp.async.cg.shared.global [%r6], [%rd8], 16, %r8;\n"
		"cp.async.commit_group;\ncp.async.wait_group 1;\nld.shared.u32 %r9, [%r6];\n"
		"cp.async.wait_group 0;\nld.shared.u32 %r10, [%r6];\n"
		"ld.shared.u32 %r11, [%r6+12];\n"
		"st.global.u32 [%rd6], %r9;\nst.global.u32 [%rd6+128], %r10;\n"
		"st.global.u32 [%rd6+256], %r11;\n"
		"ret;\n}\n"), EXEC_OK, "%s", u.r.err.text);
	for (uint32_t i = 0; i < 32; i++) {
		cr_assert_eq(out[i], 0);
		cr_assert_eq(out[32 + i], 4 * i + 1);
		cr_assert_eq(out[64 + i], i % 2 ? 0 : 4 * i + 4);
	}
	cr_assert_eq(u.count[EV_CP_ASYNC], 2);
}

Test(tensor, cp_async_arrives_at_an_mbarrier)
{
	struct run u = { 0 };
	uint32_t *out = device(4096), *in = device(4096);

	in[3] = 33;
	u.p = (struct params){ .out = (uintptr_t)out, .in = (uintptr_t)in };
	cr_assert_eq(go(&u, ENTRY "@%p1 mbarrier.init.shared.b64 [bar], 32;\nbar.sync 0;\n"
		"mad.lo.u32 %r6, %r1, 4, %r2;\nadd.s64 %rd8, %rd2, %rd5;\n"
		"cp.async.ca.shared.global [%r6], [%rd8], 4;\n"
		"cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n"
		"L:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra L;\n"
		"ld.shared.u32 %r8, [%r6];\nst.global.u32 [%rd6], %r8;\nret;\n}\n"),
		EXEC_OK, "%s", u.r.err.text);
	cr_assert_eq(out[3], 33);
	cr_assert_eq(u.count[EV_MBARRIER_SIGNAL], 1);
	cr_assert_eq(u.signal.mbarrier_signal.arrivals, 32);
}

/* Each CTA of a pair stores into the other one. */
Test(tensor, st_async_and_red_async_reach_the_peer)
{
	struct run u = { .cluster = 2 };
	uint32_t *out = device(4096);

	u.p.out = (uintptr_t)out;
	cr_assert_eq(go(&u, ENTRY "mov.u32 %r10, %cluster_ctarank;\nxor.b32 %r11, %r10, 1;\n"
		"mad.lo.u32 %r6, %r1, 4, %r2;\nmov.u32 %r12, 5;\nst.shared.u32 [%r6+128], %r12;\n"
		"@%p1 mbarrier.init.shared.b64 [bar], 1;\n"
		"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;\n"
		"barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
		"mapa.shared::cluster.u32 %r7, %r6, %r11;\n"
		"mapa.shared::cluster.u32 %r8, %r3, %r11;\n"
		"mad.lo.u32 %r9, %r10, 100, %r1;\n"
		"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 "
		"[%r7], %r9, [%r8];\n"
		"red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add"
		".shared::cluster.u32 [%r7+128], %r9, [%r8];\n"
		"L:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0;\n"
		"@!%p2 bra L;\n"
		"ld.shared.u32 %r13, [%r6];\nld.shared.u32 %r14, [%r6+128];\n"
		"mul.wide.u32 %rd7, %r10, 256;\n"
		"add.s64 %rd8, %rd6, %rd7;\nst.global.u32 [%rd8], %r13;\n"
		"st.global.u32 [%rd8+128], %r14;\n"
		"barrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}\n"), EXEC_OK, "%s",
		u.r.err.text);
	for (uint32_t r = 0; r < 2; r++)
		for (uint32_t i = 0; i < 32; i++) {
			cr_assert_eq(out[64 * r + i], 100 * (1 - r) + i);
			cr_assert_eq(out[64 * r + 32 + i], 100 * (1 - r) + i + 5);
		}
	cr_assert_eq(u.count[EV_BULK], 128);
	cr_assert_eq(u.count[EV_MBARRIER_SIGNAL], 128);
}

/* ---- operands that are refused ---- */

static unsigned fault_of(const char *body, uint32_t threads)
{
	struct run u = { .threads = threads };
	struct text t = { 0 };
	uint32_t *in = device(4096);

	u.p = (struct params){ .out = (uintptr_t)in, .in = (uintptr_t)in };
	text_printf(&t, "%s%s", ENTRY, body);
	cr_assert_eq(go(&u, t.at), EXEC_FAULT, "%s", body);
	text_free(&t);
	return u.fault;
}

Test(tensor, bad_operands)
{
	cr_assert_eq(fault_of("mbarrier.init.shared.b64 [%r3+4], 1;\nret;\n}\n", 1),
		FAULT_MB_PLACE);
	cr_assert_eq(fault_of("mbarrier.init.b64 [%rd2], 1;\nret;\n}\n", 1), FAULT_MB_PLACE);
	cr_assert_eq(fault_of("mov.u32 %r5, 24;\nmbarrier.init.shared.b64 [bar], 1;\n"
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
		"[%r2], [%rd2], %r5, [%r3];\n"
		"ret;\n}\n", 1), FAULT_BULK_OPERAND);
	cr_assert_eq(fault_of("mov.u32 %r5, 16;\nmbarrier.init.shared.b64 [bar], 1;\n"
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
		"[%r2+8], [%rd2], %r5, [%r3];\n"
		"ret;\n}\n", 1), FAULT_BULK_OPERAND);
	cr_assert_eq(fault_of("mov.u32 %r5, 8192;\nmbarrier.init.shared.b64 [bar], 1;\n"
		"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
		"[%r2], [%rd2], %r5, [%r3];\n"
		"ret;\n}\n", 1), FAULT_GLOBAL_OOB);
	cr_assert_eq(fault_of("cp.async.bulk.tensor.1d.shared::cluster.global.tile"
		".mbarrier::complete_tx::bytes "
		"[%r2], [%rd2, {%r1}], [%r3];\nret;\n}\n", 1), FAULT_TENSORMAP);
	cr_assert_eq(fault_of("mov.u32 %r5, 8;\n"
		"cp.async.ca.shared.global [%r2], [%rd2], 4, %r5;\nret;\n}\n", 1),
		FAULT_CP_OPERAND);
	cr_assert_eq(fault_of("cp.async.cg.shared.global [%r2+8], [%rd2], 16;\nret;\n}\n", 1),
		FAULT_CP_OPERAND);
	cr_assert_eq(fault_of("mov.u64 %rd9, 0x4000004000013fff;\nwgmma.fence.sync.aligned;\n"
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r10,%r11,%r12,%r13}, "
		"%rd9, %rd9, "
		"%p1, 1, 1, 0, 0;\nret;\n}\n", 128), FAULT_WG_DESCRIPTOR);
}

/* ---- ldmatrix and stmatrix ---- */

Test(tensor, ldmatrix_and_its_inverse)
{
	struct run u = { 0 };
	uint32_t *out = device(8192);

	/* element (row, col) of matrix m is m << 6 | row << 3 | col */
	u.p.out = (uintptr_t)out;
	cr_assert_eq(go(&u, ENTRY "mov.u32 %r5, 0;\nL:\nmad.lo.u32 %r6, %r5, 32, %r1;\n"
		"shl.b32 %r7, %r6, 1;\nadd.u32 %r8, %r7, 1;\nshl.b32 %r8, %r8, 16;\n"
		"or.b32 %r7, %r7, %r8;\n"
		"mad.lo.u32 %r9, %r6, 4, %r2;\nst.shared.u32 [%r9], %r7;\nadd.u32 %r5, %r5, 1;\n"
		"setp.lt.u32 %p2, %r5, 4;\n@%p2 bra L;\nbar.warp.sync -1;\n"
		"mad.lo.u32 %r9, %r1, 16, %r2;\n"
		"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20,%r21,%r22,%r23}, [%r9];\n"
		"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r24,%r25,%r26,%r27}, [%r9];\n"
		"stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r9], {%r24,%r25,%r26,%r27};\n"
		"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r28,%r29}, [%r9];\n"
		"st.global.u32 [%rd6], %r20;\nst.global.u32 [%rd6+128], %r23;\n"
		"st.global.u32 [%rd6+256], %r24;\n"
		"st.global.u32 [%rd6+384], %r27;\nst.global.u32 [%rd6+512], %r28;\n"
		"st.global.u32 [%rd6+640], %r29;\n"
		"ret;\n}\n"), EXEC_OK, "%s", u.r.err.text);
	for (uint32_t l = 0; l < 32; l++) {
		uint32_t g = l / 4, t = l % 4;
		uint32_t plain = (g << 3 | 2 * t) | (g << 3 | (2 * t + 1)) << 16;
		uint32_t trans = ((2 * t) << 3 | g) | ((2 * t + 1) << 3 | g) << 16;

		cr_assert_eq(out[l], plain);
		cr_assert_eq(out[32 + l], plain + (3u << 6) * 0x10001u);
		cr_assert_eq(out[64 + l], trans);
		cr_assert_eq(out[96 + l], trans + (3u << 6) * 0x10001u);
		cr_assert_eq(out[128 + l], plain);
		cr_assert_eq(out[160 + l], plain + (1u << 6) * 0x10001u);
	}
	cr_assert_eq(u.count[EV_ACCESS], 4 + 3 + 1 + 6);
}

/* ---- mma.sync and wgmma against hardware ---- */

static const uint16_t some_f16[] = { 0, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x3800 };
static const uint16_t some_bf16[] = { 0, 0x3f80, 0xbf80, 0x4000, 0xc000, 0x3f00 };
static const uint8_t some_fp8[] = { 0, 0x38, 0xb8, 0x40, 0xc0, 0x30, 0x3c, 0x44 };

static const struct mma_case {
	unsigned number;
	const char *name;
	unsigned d, a, b, c;
	uint64_t hash[3];
} mma_cases[] = {
#define CASE(number, name, d, a, b, c, h0, h1, h2) { number, name, d, a, b, c, { h0, h1, h2 } },
#include "mma_h200.def"
};

static uint32_t pairs(const uint16_t *from, uint32_t r)
{
	return from[r % 6] | (uint32_t)from[r / 6 % 6] << 16;
}

/* 8 registers of A and B, then 4 of C */
static void mma_inputs(uint32_t *in, unsigned k, unsigned t)
{
	uint64_t s = k * 1000 + t + 1;

#define NEXT() (s = s * 6364136223846793005ull + 1442695040888963407ull, (uint32_t)(s >> 32))
	NEXT();
	for (unsigned i = 0; i < 384; i++) {
		uint32_t r = NEXT(), v = r;
		bool c = i >= 256;

		if (k < 6 && c && k != 2 && k != 3)
			v = num_bits32((float)(r % 100));
		else if (k < 4)
			v = pairs(some_f16, r);
		else if (k < 6)
			v = pairs(some_bf16, r);
		else if (k < 8)
			v = num_bits32((float)((int)(r % 9) - 4)) | (c ? 0 : r >> 20);
		else if (k < 10 && c)
			v = num_bits32((float)((int)(r % 9) - 4));
		else if (k < 10)
			for (unsigned b = v = 0; b < 4; b++)
				v |= (uint32_t)some_fp8[r >> (3 * b + 5) & 7] << 8 * b;
		else if ((k == 11 || k == 15) && c)
			v = t & 1 ? 0x7fffff00u + (r & 255) : 0x80000000u + (r & 255);
		in[i] = v;
	}
#undef NEXT
}

static void list(struct text *t, unsigned first, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		text_printf(t, "%s%%r%u", i ? "," : "{", first + i);
	text_printf(t, "}");
}

Test(tensor, mma_as_on_hardware)
{
	uint32_t *in = device(4096), *out = device(4096);

	for (size_t i = 0; i < ARRAY_SIZE(mma_cases); i++) {
		const struct mma_case *c = &mma_cases[i];
		struct text t = { 0 };

		text_printf(&t, "%sadd.s64 %%rd7, %%rd2, %%rd5;\n", ENTRY);
		for (unsigned r = 0; r < 12; r++)
			text_printf(&t, "ld.global.u32 %%r%u, [%%rd7+%u];\n", 20 + r, 128 * r);
		for (unsigned r = 0; r < 4; r++)
			text_printf(&t, "mov.u32 %%r%u, 0;\n", 40 + r);
		text_printf(&t, "mma.sync.aligned.%s ", c->name);
		list(&t, 40, c->d);
		text_printf(&t, ", ");
		list(&t, 20, c->a);
		text_printf(&t, ", ");
		list(&t, 24, c->b);
		text_printf(&t, ", ");
		list(&t, 28, c->c);
		text_printf(&t, ";\n");
		for (unsigned r = 0; r < 4; r++)
			text_printf(&t, "st.global.u32 [%%rd6+%u], %%r%u;\n", 128 * r, 40 + r);
		text_printf(&t, "ret;\n}\n");
		for (unsigned k = 0; k < 3; k++) {
			struct run u = { .p = { .out = (uintptr_t)out, .in = (uintptr_t)in } };

			mma_inputs(in, c->number, k);
			cr_assert_eq(go(&u, t.at), EXEC_OK, "%s: %s", c->name, u.r.err.text);
			cr_assert_eq(fnv(out, 512), c->hash[k], "%s, input %u", c->name, k);
		}
		text_free(&t);
	}
}

static const struct wg_case {
	unsigned number, kind;
	uint64_t a, b, hash;
} wg_cases[] = {
#define CASE(number, kind, a, b, hash) { number, kind, a, b, hash },
#include "wgmma_h200.def"
};

#define WG_SHARED 131072u

static void wg_inputs(uint32_t *in, unsigned kind, unsigned number)
{
	for (uint32_t i = 0; i < WG_SHARED / 4; i++) {
		uint32_t r = i * 2654435761u ^ number * 40503u, v;

		r ^= r >> 13;
		r *= 0x5bd1e995;
		r ^= r >> 15;
		v = r;
		if (kind < 3)
			v = pairs(some_f16, r);
		else if (kind == 3)
			v = pairs(some_bf16, r);
		else if (kind == 4)
			v = num_bits32((float)((int)(r % 9) - 4)) | r >> 20;
		else if (kind == 5)
			for (unsigned b = v = 0; b < 4; b++)
				v |= (uint32_t)some_fp8[r >> (3 * b) & 7] << 8 * b;
		in[i] = v;
	}
}

static const struct { const char *name, *tail; } wg_kinds[] = {
	{ "m64n64k16.f32.f16.f16", "1, 1, 1, 0, 0" }, { "m64n64k16.f32.f16.f16", "1, 1, 1, 1, 0" },
	{ "m64n64k16.f32.f16.f16", "1, -1, 1, 0, 1" },
	{ "m64n64k16.f32.bf16.bf16", "0, 1, 1, 1, 1" },
	{ "m64n64k8.f32.tf32.tf32", "1, 1, -1" }, { "m64n64k32.f32.e4m3.e5m2", "1, 1, 1" },
	{ "m64n64k32.s32.s8.u8", "1" },
};

Test(tensor, wgmma_as_on_hardware)
{
	uint32_t *in = device(WG_SHARED), *out = device(128 * 128);

	for (size_t i = 0; i < ARRAY_SIZE(wg_cases); i++) {
		const struct wg_case *c = &wg_cases[i];
		bool is_int = c->kind == 6;
		struct run u = { .threads = 128, .unchecked = i % 2,
			.p = { .out = (uintptr_t)out, .in = (uintptr_t)in, .a = c->a, .b = c->b } };
		struct text t = { 0 };

		text_printf(&t, HEAD ".visible .entry k(.param .u64 out, .param .u64 in, "
			".param .u64 a, .param .u64 b)\n{\n"
			".reg .pred %%p<4>;\n.reg .b32 %%r<99>;\n.reg .b64 %%rd<20>;\n"
			".shared .align 1024 .b8 sm[%u];\n"
			"ld.param.u64 %%rd1, [out];\nld.param.u64 %%rd2, [in];\n"
			"ld.param.u64 %%rd3, [a];\n"
			"ld.param.u64 %%rd4, [b];\nmov.u32 %%r1, %%tid.x;\nmov.u32 %%r2, sm;\n"
			"shr.u32 %%r3, %%r2, 4;\n"
			"cvt.u64.u32 %%rd5, %%r3;\nadd.s64 %%rd3, %%rd3, %%rd5;\n"
			"add.s64 %%rd4, %%rd4, %%rd5;\n"
			"mov.u32 %%r4, %%r1;\n"
			"L:\nmul.wide.u32 %%rd6, %%r4, 4;\nadd.s64 %%rd7, %%rd2, %%rd6;\n"
			"ld.global.u32 %%r5, [%%rd7];\n"
			"mad.lo.u32 %%r6, %%r4, 4, %%r2;\nst.shared.u32 [%%r6], %%r5;\n"
			"add.u32 %%r4, %%r4, 128;\n"
			"setp.lt.u32 %%p1, %%r4, %u;\n@%%p1 bra L;\nfence.proxy.async;\n"
			"bar.sync 0;\n"
			"rem.u32 %%r7, %%r1, 7;\n", WG_SHARED, WG_SHARED / 4);
		for (unsigned r = 0; r < 32; r++)
			text_printf(&t, "add.u32 %%r%u, %%r7, %u;\n", 20 + r, r % 5);
		for (unsigned r = 0; r < 32 && !is_int; r++)
			text_printf(&t, "cvt.rn.f32.u32 %%r%u, %%r%u;\n", 20 + r, 20 + r);
		text_printf(&t, "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.%s ",
			wg_kinds[c->kind].name);
		list(&t, 20, 32);
		text_printf(&t, ", %%rd3, %%rd4, %s;\nwgmma.commit_group.sync.aligned;\n"
			"wgmma.wait_group.sync.aligned 0;\nmul.wide.u32 %%rd6, %%r1, 128;\n"
			"add.s64 %%rd7, %%rd1, %%rd6;\n",
			wg_kinds[c->kind].tail);
		for (unsigned r = 0; r < 32 && is_int; r++)
			text_printf(&t, "cvt.rn.f32.s32 %%r%u, %%r%u;\n", 20 + r, 20 + r);
		for (unsigned r = 0; r < 32; r++)
			text_printf(&t, "st.global.u32 [%%rd7+%u], %%r%u;\n", 4 * r, 20 + r);
		text_printf(&t, "ret;\n}\n");
		wg_inputs(in, c->kind, c->number);
		cr_assert_eq(go(&u, t.at), EXEC_OK, "case %u: %s", c->number, u.r.err.text);
		cr_assert_eq(fnv(out, 128 * 128), c->hash, "case %u, kind %u", c->number, c->kind);
		text_free(&t);
	}
}
