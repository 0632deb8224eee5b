/* cp.async and bulk copies. References: ISA 9.7.9.25.3 (cp.async) and 9.7.9.25.4 (bulk). */
#include "conform.h"
#include "redop.h"

#include <stdio.h>
#include <string.h>

/* Waits until the phase of parity 0 of the mbarrier at `at` is complete. */
static void wait_for(struct text *p, struct rng *r, const char *at)
{
	unsigned n = (unsigned)(rng_bits(r) >> 34);

	text_printf(p, "L%u:\n\tmbarrier.try_wait.parity.shared.b64 done, [%s], 0;\n\t@!done bra "
		"L%u;\n",
		n, at, n);
}

/* ---- cp.async ---- */

enum { P_SIZE, P_SRC, P_IGNORE, P_HOW, P_AT };
struct in { unsigned char bytes[32]; uint32_t n, ignore, pad[2]; };

static void expect_cp_async(const struct item *i, const void *inputs, const void *before,
	struct want *w)
{
	const struct in *in = inputs;
	const unsigned size = (unsigned)i->p[P_SIZE], at = (unsigned)i->p[P_AT];

	for (unsigned x = 0; x < CTA_THREADS; x++) {
		unsigned char mem[32];
		memcpy(mem, (const char *)before + x * 32, 32);
		unsigned n = i->p[P_SRC] ? in[x].n : size;
		if (i->p[P_IGNORE] && in[x].ignore & 1)
			n = 0;
		memset(mem + at, 0, size);
		memcpy(mem + at, in[x].bytes + at, n);
		for (unsigned k = 0; k < 32; k++)
			w[x * 32 + k].v = mem[k];
	}
}

static void fill_cp_async(const struct item *i, struct rng *r, void *inputs, void *out)
{
	struct in *in = inputs;

	(void)out;
	for (unsigned x = 0; x < CTA_THREADS; x++) {
		for (unsigned k = 0; k < 32; k++)
			in[x].bytes[k] = (unsigned char)rng_bits(r);
		in[x].n = rng_below(r, (unsigned)i->p[P_SIZE] + 1);
		in[x].ignore = (uint32_t)rng_bits(r);
	}
}

void class_cp_async(struct item *i, struct rng *r)
{
	struct text *p = &i->ptx;
	unsigned size = 4u << rng_below(r, 3), at = size * rng_below(r, 32 / size);
	bool cg = size == 16 && rng_once_in(r, 2);
	int how = (int)rng_below(r, 4), variant = (int)rng_below(r, 3);

	item_block(i, sizeof(struct in), 32, 32, 8, expect_cp_async);
	i->fill = fill_cp_async;
	i->p[P_SIZE] = (int)size;
	i->p[P_SRC] = variant == 1;
	i->p[P_IGNORE] = variant == 2;
	i->p[P_AT] = (int)at;
	text_printf(p, "\t.reg .b32 s, n, v;\n\t.reg .b64 l<4>;\n\t.reg .pred q, done, first;\n"
		"\tmov.u32 s, smem;\n\tmad.lo.u32 s, %%thr, 32, s;\n\tld.global.b32 n, "
			"[%%src+32];\n"
		"\tld.global.b32 v, [%%src+36];\n\tand.b32 v, v, 1;\n\tsetp.ne.u32 q, v, 0;\n"
		"\tbar.sync 0;\n");
	for (unsigned k = 0; k < 4; k++)
		text_printf(p, "\tld.global.b64 l0, [%%dst+%u];\n\tst.shared.b64 [s+%u], l0;\n",
			8 * k, 8 * k);
	if (how == 3)
		text_printf(p, "\tsetp.eq.u32 first, %%thr, 0;\n"
			"\t@first mbarrier.init.shared.b64 [smem+8192], %d;\n\tbar.sync 0;\n",
				CTA_THREADS);
	text_printf(p, "/**/\tcp.async.%s.shared.global [s+%u], [%%src+%u], %u%s;\n", cg ? "cg"
		: "ca",
		at, at, size, variant == 1 ? ", n" : variant == 2 ? ", q" : "");
	switch (how) {
	case 0:
		text_printf(p, "\tcp.async.wait_all;\n");
		break;
	case 1:
		text_printf(p, "\tcp.async.commit_group;\n\tcp.async.wait_group 0;\n");
		break;
	case 2: /* the later group is empty */
		text_printf(p, "\tcp.async.commit_group;\n\tcp.async.commit_group;\n"
			"\tcp.async.wait_group 1;\n");
		break;
	case 3:
		text_printf(p, "\tcp.async.mbarrier.arrive.noinc.shared.b64 [smem+8192];\n");
		text_printf(p, "\tmov.u32 v, smem;\n\tadd.u32 v, v, 8192;\n");
		wait_for(p, r, "v");
		text_printf(p, "\tbar.sync 0;\n\t@first mbarrier.inval.shared.b64 [smem+8192];\n");
		break;
	}
	for (unsigned k = 0; k < 4; k++)
		text_printf(p, "\tld.shared.b64 l0, [s+%u];\n\tst.global.b64 [%%dst+%u], l0;\n",
			8 * k, 8 * k);
}

/* ---- bulk copies ----
 *
 * The input's first half is copied to shared memory (at 0), the second half too (at REST), both
 * with cp.async.bulk. Then a part of the first goes to the output, or to the second half, which
 * the threads copy to the output. The CTAs are a cluster: an H200 executes bulk copies between
 * shared memories only in launches with clusters. */

enum { HALF = 16 * CTA_THREADS, REST = HALF, MBAR = 8192 };
enum { B_KIND, B_OP, B_TYPE, B_FROM, B_TO, B_BYTES, B_MASK };
enum { TO_GLOBAL, TO_SHARED };
enum { ALL_BYTES = -1 };  /* B_MASK: no .cp_mask */
static void combine(const struct item *i, uint64_t o, uint64_t b, struct want *w)
{
	redop_apply((enum redop)i->p[B_OP], (enum type)i->p[B_TYPE], SUBNORMALS_OPEN, o, b, 0, w);
}

static void expect_bulk(const struct item *i, const void *inputs, const void *before,
	struct want *w)
{
	const unsigned char *in = inputs, *old = i->p[B_KIND] == TO_GLOBAL ? before : in + HALF;
	const unsigned bytes = type_bits((enum type)i->p[B_TYPE]) / 8;
	const unsigned from = (unsigned)i->p[B_FROM], to = (unsigned)i->p[B_TO];

	for (unsigned k = 0; k < HALF / bytes; k++) {
		uint64_t o = 0, b = 0;
		unsigned at = k * bytes;
		memcpy(&o, old + at, bytes);
		w[k].v = o;
		if (at < to || at >= to + (unsigned)i->p[B_BYTES] ||
				!(i->p[B_MASK] >> ((at - to) & 15) & 1))
			continue;
		memcpy(&b, in + from + (at - to), bytes);
		combine(i, o, b, &w[k]);
	}
}

static void fill_bulk(const struct item *i, struct rng *r, void *inputs, void *out)
{
	const enum type t = (enum type)i->p[B_TYPE];
	const unsigned bytes = type_bits(t) / 8;

	for (unsigned k = 0; k < 3 * HALF / bytes; k++) {
		uint64_t v = type_pick(r, t);
		unsigned char *to = k < 2 * HALF / bytes ? inputs : out;
		memcpy(to + (k * bytes) % (k < 2 * HALF / bytes ? 2 * HALF : HALF), &v, bytes);
	}
}

static void print_bulk(struct item *i, struct rng *r)
{
	struct text *p = &i->ptx;
	const enum type t = (enum type)i->p[B_TYPE];
	const int op = i->p[B_OP], bytes = i->p[B_BYTES];
	const char *noftz = op == RED_ADD && (t == T_f16 || t == T_bf16) ? ".noftz" : "";
	char reduce[32] = "";

	if (op)
		snprintf(reduce, sizeof reduce, ".%s%s.%s", redop_name((enum redop)op), noftz,
			type_name(t));
	text_printf(p, "\t.reg .b32 s, m, v<4>;\n\t.reg .b64 x, in, out;\n\t.reg .pred first, "
		"done;\n"
		"\tmov.u32 s, smem;\n\tadd.u32 m, s, %d;\n\tmul.wide.u32 x, %%thr, %u;\n"
		"\tsub.u64 in, %%src, x;\n\tmul.wide.u32 x, %%thr, 16;\n\tsub.u64 out, %%dst, x;\n"
		"\tsetp.eq.u32 first, %%thr, 0;\n\tbar.sync 0;\n"
		"\t@first mbarrier.init.shared.b64 [m], 1;\n"
			"\tfence.mbarrier_init.release.cluster;\n"
		"\tfence.proxy.async;\n\tbar.sync 0;\n"
		"\t@first mbarrier.arrive.expect_tx.shared.b64 _, [m], %d;\n"
		"\t@first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], "
			"[in], %d, [m];\n"
		"\t@first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
			"[s+%d], [in+%d], %d, [m];\n",
		MBAR, i->in_bytes, 2 * HALF, HALF, REST, HALF, HALF);
	wait_for(p, r, "m");
	text_printf(p, "\tbar.sync 0;\n");
	if (i->p[B_KIND] == TO_GLOBAL) {
		const bool masked = i->p[B_MASK] != ALL_BYTES;

		if (masked)
			text_printf(p, "\t.reg .b16 mask;\n\tmov.b16 mask, %d;\n", i->p[B_MASK]);
		text_printf(p, "/**/\t@first cp%s.async.bulk.global.shared::cta.bulk_group%s%s "
			"[out+%d], [s+%d], "
			"%d%s;\n\tcp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;\n",
			op ? ".reduce" : "", masked ? ".cp_mask" : "", reduce, i->p[B_TO], i->p[B_FROM],
			bytes, masked ? ", mask" : "");
	} else {
		text_printf(p, "\t@first mbarrier.inval.shared.b64 [m];\n\tadd.u32 m, m, 8;\n"
			"\t@first mbarrier.init.shared.b64 [m], 1;\n"
			"\tfence.mbarrier_init.release.cluster;\n\tfence.proxy.async;\n\tbar.sync "
				"0;\n"
			"\t@first mbarrier.arrive.expect_tx.shared.b64 _, [m], %d;\n"
			"/**/\t@first cp%s.async.bulk.shared::cluster.shared::cta"
			".mbarrier::complete_tx::bytes%s "
			"[s+%d], [s+%d], %d, [m];\n", bytes, op ? ".reduce" : "", reduce,
				REST + i->p[B_TO],
			i->p[B_FROM], bytes);
		wait_for(p, r, "m");
		text_printf(p, "\tmad.lo.u32 v0, %%thr, 16, s;\n"
			"\tld.shared.v4.b32 {v0, v1, v2, v3}, [v0+%d];\n"
			"\tst.global.v4.b32 [%%dst], {v0, v1, v2, v3};\n", REST);
	}
	text_printf(p, "\tbar.sync 0;\n\t@first mbarrier.inval.shared.b64 [m];\n");
}

void class_bulk(struct item *i, struct rng *r)
{
	static const enum type adds[] = { T_u32, T_s32, T_u64, T_f32, T_f64, T_f16, T_bf16 };
	static const enum type orders[] = { T_u32, T_s32, T_u64, T_s64, T_f16, T_bf16 };
	static const enum type bits[] = { T_b32, T_b64 };
	static const enum type near_add[] = { T_u32, T_s32, T_u64 }, near_order[] = { T_u32,
		T_s32 };
	int op = rng_once_in(r, 3) ? RED_NONE : 1 + (int)rng_below(r, 8);
	bool near = rng_once_in(r, 3);
	enum type t = op == RED_NONE ? T_b64 : op == RED_INC || op == RED_DEC ? T_u32
		: op == RED_ADD ? near ? RNG_OF(r, near_add) : RNG_OF(r, adds)
		: op <= RED_MAX ? near ? RNG_OF(r, near_order) : RNG_OF(r, orders)
		: near ? T_b32 : RNG_OF(r, bits);
	unsigned pieces = 1 + rng_below(r, HALF / 16);

	i->p[B_KIND] = near ? TO_SHARED : TO_GLOBAL;
	i->p[B_OP] = op;
	i->p[B_TYPE] = (int)t;
	i->p[B_BYTES] = (int)(16 * pieces);
	i->p[B_FROM] = (int)(16 * rng_below(r, HALF / 16 - pieces + 1));
	i->p[B_TO] = (int)(16 * rng_below(r, HALF / 16 - pieces + 1));
	i->p[B_MASK] = ALL_BYTES;
	item_block(i, 32, 16, 16 * 8 / type_bits(t), type_bits(t), expect_bulk);
	i->fill = fill_bulk;
	print_bulk(i, r);
}

/* .cp_mask: bit k of the mask is byte k of each 16. */
void class_bulk_mask(struct item *i, struct rng *r)
{
	unsigned pieces = 1 + rng_below(r, HALF / 16);

	i->p[B_KIND] = TO_GLOBAL;
	i->p[B_OP] = RED_NONE;
	i->p[B_TYPE] = T_b8;
	i->p[B_BYTES] = (int)(16 * pieces);
	i->p[B_FROM] = (int)(16 * rng_below(r, HALF / 16 - pieces + 1));
	i->p[B_TO] = (int)(16 * rng_below(r, HALF / 16 - pieces + 1));
	i->p[B_MASK] = (int)rng_below(r, 1 << 16);
	item_block(i, 32, 16, 16, 8, expect_bulk);
	i->fill = fill_bulk;
	print_bulk(i, r);
}

/* ---- st.async, red.async ----
 *
 * Each thread writes into 32 bytes of the same thread in the other CTA of the cluster, what it
 * reads from the input of that thread. */

enum { A_OP, A_TYPE, A_N };

static void expect_async(const struct item *i, const void *inputs, const void *before,
	struct want *w)
{
	const enum type t = (enum type)i->p[A_TYPE];
	const unsigned bytes = type_bits(t) / 8, n = 32 / bytes;
	const struct item as_bulk = { .p = { [B_OP] = i->p[A_OP], [B_TYPE] = (int)t } };

	for (unsigned k = 0; k < CTA_THREADS * n; k++) {
		uint64_t o = 0, b = 0;
		memcpy(&o, (const char *)before + k * bytes, bytes);
		memcpy(&b, (const char *)inputs + k * bytes, bytes);
		w[k].v = o;
		if (k % n < (unsigned)i->p[A_N])
			combine(&as_bulk, o, b, &w[k]);
	}
}

static void fill_async(const struct item *i, struct rng *r, void *inputs, void *out)
{
	const enum type t = (enum type)i->p[A_TYPE];
	const unsigned bytes = type_bits(t) / 8;

	for (unsigned k = 0; k < 32 * CTA_THREADS / bytes; k++) {
		uint64_t a = type_pick(r, t), b = type_pick(r, t);
		memcpy((char *)inputs + k * bytes, &a, bytes);
		memcpy((char *)out + k * bytes, &b, bytes);
	}
}

void class_shared_async(struct item *i, struct rng *r)
{
	static const enum type stores[] = { T_b32, T_b64, T_u32, T_s64, T_f32, T_f64 };
	static const enum type adds[] = { T_u32, T_s32, T_u64 }, orders[] = { T_u32, T_s32 };
	struct text *p = &i->ptx;
	int op = rng_once_in(r, 2) ? RED_NONE : 1 + (int)rng_below(r, 8);
	enum type t = op == RED_NONE ? RNG_OF(r, stores) : op == RED_ADD ? RNG_OF(r, adds)
		: op <= RED_MAX ? RNG_OF(r, orders) : op <= RED_DEC ? T_u32 : T_b32;
	unsigned bits = type_bits(t), n = op == RED_NONE ? 1u << rng_below(r, bits == 64 ? 2 : 3)
		: 1;

	i->p[A_OP] = op;
	i->p[A_TYPE] = (int)t;
	i->p[A_N] = (int)n;
	item_block(i, 32, 32, 256 / bits, bits, expect_async);
	i->fill = fill_async;
	text_printf(p, "\t.reg .b32 s, m, z, other;\n\t.reg .b64 l<4>;\n\t.reg .b%u b<4>;\n"
		"\t.reg .pred first, done;\n\tmov.u32 m, smem;\n\tmad.lo.u32 s, %%thr, 32, m;\n"
		"\tadd.u32 m, m, %d;\n\tsetp.eq.u32 first, %%thr, 0;\n\tbar.sync 0;\n", bits, MBAR);
	for (unsigned k = 0; k < 4; k++)
		text_printf(p, "\tld.global.b64 l%u, [%%dst+%u];\n\tst.shared.b64 [s+%u], l%u;\n",
			k,
			8 * k, 8 * k, k);
	text_printf(p, "\tmov.u32 z, %%cluster_ctarank;\n\txor.b32 z, z, 1;\n"
		"\tmul.lo.u32 other, z, %u;\n\tsub.u32 other, other, %u;\n"
		"\tcvt.s64.s32 l0, other;\n\tadd.s64 l0, l0, %%src;\n",
		2 * CTA_THREADS * i->in_bytes, CTA_THREADS * i->in_bytes);
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "\tld.global.b%u b%u, [l0+%u];\n", bits, k, k * bits / 8);
	text_printf(p, "\t@first mbarrier.init.shared.b64 [m], 1;\n"
		"\tfence.mbarrier_init.release.cluster;\n\tbar.sync 0;\n"
		"\t@first mbarrier.arrive.expect_tx.shared.b64 _, [m], %u;\n"
		"\tbarrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;\n"
		"\tmapa.shared::cluster.u32 s, s, z;\n\tmapa.shared::cluster.u32 z, m, z;\n",
		CTA_THREADS * n * bits / 8);
	if (op == RED_NONE)
		text_printf(p, "/**/\tst.async.weak.shared::cluster"
			".mbarrier::complete_tx::bytes%s.%s [s], ",
			n == 1 ? "" : n == 2 ? ".v2" : ".v4", type_name(t));
	else
		text_printf(p, "/**/\tred.async.relaxed.cluster.shared::cluster."
			"mbarrier::complete_tx::bytes.%s.%s [s], ", redop_name((enum redop)op),
				type_name(t));
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "%sb%u%s", k ? ", " : n > 1 ? "{" : "", k, k + 1 == n && n > 1 ? "}"
			: "");
	text_printf(p, ", [z];\n");
	wait_for(p, r, "m");
	text_printf(p, "\tmov.u32 s, smem;\n\tmad.lo.u32 s, %%thr, 32, s;\n");
	for (unsigned k = 0; k < 4; k++)
		text_printf(p, "\tld.shared.b64 l%u, [s+%u];\n\tst.global.b64 [%%dst+%u], l%u;\n",
			k,
			8 * k, 8 * k, k);
	text_printf(p, "\tbarrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;\n"
		"\t@first mbarrier.inval.shared.b64 [m];\n");
}

/* Without an mbarrier, to global memory: a store or an addition with release semantics. */
void class_global_async(struct item *i, struct rng *r)
{
	static const enum type stores[] = { T_b8, T_s8, T_u16, T_b32, T_f32, T_u64, T_f64 };
	static const enum type adds[] = { T_u32, T_s32, T_u64 };
	static const char *const scopes[] = { ".release.gpu", ".release.sys", ".mmio.release.sys" };
	const int op = rng_once_in(r, 2) ? RED_NONE : RED_ADD;
	const enum type t = op == RED_NONE ? RNG_OF(r, stores) : RNG_OF(r, adds);
	const unsigned bits = type_bits(t);
	struct text *p = &i->ptx;

	i->p[A_OP] = op;
	i->p[A_TYPE] = (int)t;
	i->p[A_N] = 1;
	item_block(i, 32, 32, 256 / bits, bits, expect_async);
	i->fill = fill_async;
	text_printf(p, "\t.reg .b%u v;\n\tld.global.b%u v, [%%src];\n", bits < 16 ? 16 : bits, bits);
	text_printf(p, "/**/\t%s%s%s%s.%s [%%dst], v;\n", op == RED_NONE ? "st.async" : "red.async",
		RNG_OF(r, scopes), rng_once_in(r, 3) ? "" : ".global", op == RED_NONE ? "" : ".add",
		type_name(t));
}
