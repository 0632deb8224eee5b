/* Loads and stores: types, vectors, registers wider than the type, spaces, memory order.
 * References: ISA 9.7.9.8 to 9.7.9.14 and 9.4.1 (operand sizes). */
#include "conform.h"

#include <string.h>

enum { P_TYPE, P_N, P_REG, P_SPACE };
enum { GLOBAL, SHARED, LOCAL, GENERIC_GLOBAL, GENERIC_SHARED, SPACES };
static const char *const space_name[] = { ".global", ".shared", ".local", "", "" };
static const enum type types[] = { T_u8, T_s8, T_b8, T_u16, T_s16, T_b16, T_u32, T_s32, T_b32,
	T_f32,
	T_u64, T_s64, T_b64, T_f64 };

/* Sets `at` to the address of the thread's 32 bytes; from: %src or %dst holds them */
static void place(struct item *i, const char *from)
{
	struct text *p = &i->ptx;
	int s = i->p[P_SPACE];

	text_printf(p, "\t.reg .b64 at, l<4>;\n\t.reg .b32 s;\n");
	if (s == GLOBAL)
		text_printf(p, "\tmov.b64 at, %s;\n", from);
	else if (s == GENERIC_GLOBAL)
		text_printf(p, "\tcvta.global.u64 at, %s;\n", from);
	else {
		if (s == LOCAL)
			text_printf(p, "\t.local .align 32 .b8 mem[32];\n\tmov.u64 at, mem;\n");
		else
			text_printf(p, "\tmov.u32 s, smem;\n\tmad.lo.u32 s, %%thr, 32, s;\n"
				"\tcvt.u64.u32 at, s;\n\tbar.sync 0;\n");
		if (s == GENERIC_SHARED)
			text_printf(p, "\tcvta.shared.u64 at, at;\n");
		for (unsigned k = 0; k < 4; k++)
			text_printf(p, "\tld.global.b64 l%u, [%s+%u];\n\tst%s.b64 [at+%u], l%u;\n",
				k,
				from, 8 * k, space_name[s], 8 * k, k);
	}
}

static const char *reg_name(unsigned bits) { return bits == 16 ? "b16" : bits == 32 ? "b32"
	: "b64"; }

static void list(struct text *p, unsigned n)
{
	if (n == 1) {
		text_printf(p, "v0");
		return;
	}
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "%sv%u", k ? ", " : "{", k);
	text_printf(p, "}");
}

static void draw(struct item *i, struct rng *r)
{
	enum type t = RNG_OF(r, types);
	unsigned bits = type_bits(t), n = 1u << rng_below(r, 3), reg = bits < 16 ? 16 : bits;

	while (n * bits > 128)
		n /= 2;
	/* floats take registers of their width */
	while (type_kind(t) != KIND_FLOAT && reg < 64 && rng_once_in(r, 3))
		reg *= 2;
	i->p[P_TYPE] = (int)t;
	i->p[P_N] = (int)n;
	i->p[P_REG] = (int)reg;
	i->p[P_SPACE] = (int)rng_below(r, SPACES);
}

/* ---- loads: an integer is extended by its type's sign to the register ---- */

static void expect_load(const struct item *i, const void *inputs, const void *out, struct want *w)
{
	const enum type t = (enum type)i->p[P_TYPE];
	const unsigned bytes = type_bits(t) / 8, reg = (unsigned)i->p[P_REG];

	(void)out;
	for (unsigned x = 0; x < CTA_THREADS; x++)
		for (unsigned k = 0; k < (unsigned)i->p[P_N]; k++) {
			uint64_t v = 0;
			memcpy(&v, (const char *)inputs + x * 32 + k * bytes, bytes);
			v = (uint64_t)type_extend(t, v);
			w[x * i->nout + k].v = reg == 64 ? v : v & ((1ull << reg) - 1);
		}
}

void class_load(struct item *i, struct rng *r)
{
	static const char *const orders[] = { "", ".volatile", ".relaxed.cta", ".relaxed.gpu",
		".acquire.cta", ".acquire.gpu", ".relaxed.sys" };
	static const char *const caches[] = { "", ".ca", ".cg", ".cs", ".lu", ".cv" };
	struct text *p = &i->ptx;
	unsigned n, reg;
	const char *name, *order = "", *cache = "";
	bool ldu;

	draw(i, r);
	n = (unsigned)i->p[P_N];
	reg = (unsigned)i->p[P_REG];
	name = type_name((enum type)i->p[P_TYPE]);
	item_block(i, 32, n * 8, n, 64, expect_load);
	place(i, "%src");
	ldu = i->p[P_SPACE] == GLOBAL && rng_once_in(r, 6);
	if (!ldu && i->p[P_SPACE] != LOCAL)
		order = RNG_OF(r, orders);
	if (!ldu && !*order && i->p[P_SPACE] == GLOBAL)
		cache = rng_once_in(r, 4) ? ".nc" : RNG_OF(r, caches);
	text_printf(p, "\t.reg .%s v<%u>;\n/**/\t%s%s%s%s%s.%s ", reg_name(reg), n, ldu ? "ldu"
		: "ld",
		order, space_name[i->p[P_SPACE]], cache, n == 1 ? "" : n == 2 ? ".v2" : ".v4",
			name);
	list(p, n);
	text_printf(p, ", [at];\n");
	for (unsigned k = 0; k < n; k++)
		if (reg == 64)
			text_printf(p, "\tst.global.b64 [%%dst+%u], v%u;\n", 8 * k, k);
		else
			text_printf(p, "\tcvt.u64.u%u l0, v%u;\n\tst.global.b64 [%%dst+%u], l0;\n",
				reg, k,
				8 * k);
}

/* ---- stores: the low bits of the register ---- */

static void expect_store(const struct item *i, const void *inputs, const void *before,
	struct want *w)
{
	const unsigned bytes = type_bits((enum type)i->p[P_TYPE]) / 8;

	for (unsigned x = 0; x < CTA_THREADS; x++) {
		unsigned char mem[32];
		memcpy(mem, (const char *)before + x * 32, 32);
		for (unsigned k = 0; k < (unsigned)i->p[P_N]; k++)
			memcpy(mem + k * bytes, (const char *)inputs + x * 32 + 8 * k, bytes);
		for (unsigned k = 0; k < 32; k++)
			w[x * 32 + k].v = mem[k];
	}
}

void class_store(struct item *i, struct rng *r)
{
	static const char *const orders[] = { "", ".volatile", ".relaxed.cta", ".relaxed.gpu",
		".release.cta", ".release.gpu", ".relaxed.sys" };
	static const char *const caches[] = { "", ".wb", ".cg", ".cs", ".wt" };
	struct text *p = &i->ptx;
	unsigned n, reg;
	const char *order = "", *cache = "";

	draw(i, r);
	n = (unsigned)i->p[P_N];
	reg = (unsigned)i->p[P_REG];
	item_block(i, 32, 32, 32, 8, expect_store);
	place(i, "%dst");
	if (i->p[P_SPACE] != LOCAL)
		order = RNG_OF(r, orders);
	if (!*order && i->p[P_SPACE] == GLOBAL)
		cache = RNG_OF(r, caches);
	text_printf(p, "\t.reg .%s v<%u>;\n", reg_name(reg), n);
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "\tld.global.b%u v%u, [%%src+%u];\n", reg, k, 8 * k);
	text_printf(p, "/**/\tst%s%s%s%s.%s [at], ", order, space_name[i->p[P_SPACE]], cache,
		n == 1 ? "" : n == 2 ? ".v2" : ".v4", type_name((enum type)i->p[P_TYPE]));
	list(p, n);
	text_printf(p, ";\n");
	if (i->p[P_SPACE] == GLOBAL || i->p[P_SPACE] == GENERIC_GLOBAL)
		return;
	for (unsigned k = 0; k < 4; k++)
		text_printf(p, "\tld%s.b64 l%u, [at+%u];\n\tst.global.b64 [%%dst+%u], l%u;\n",
			space_name[i->p[P_SPACE]], k, 8 * k, 8 * k, k);
}

/* ---- the stack: two blocks of memory, which do not overlap, used again after a restore ---- */

static void expect_stack(const struct item *i, const void *inputs, const void *out, struct want *w)
{
	const uint64_t *in = inputs;

	(void)out;
	for (unsigned k = 0; k < CTA_THREADS; k++, in += 4, w += 4) {
		w[0].v = in[0];
		w[1].v = in[1];
		w[2].v = 0; /* alignment */
		w[3].v = 1; /* disjoint */
	}
	(void)i;
}

void class_stack(struct item *i, struct rng *r)
{
	const unsigned bits = rng_once_in(r, 2) ? 32 : 64, align = 8u << rng_below(r, 4);
	const unsigned rounds = 1 + rng_below(r, 40), label = (unsigned)(rng_bits(r) >> 34);
	const char *inner = rng_once_in(r, 2) ? "" : ", 16";
	struct text *p = &i->ptx;

	item_block(i, 32, 32, 4, 64, expect_stack);
	text_printf(p, "\t.reg .b%u a, b, n, m, s, e;\n\t.reg .b64 v<4>;\n\t.reg .b32 k;\n"
		"\t.reg .pred p, q;\n\tld.global.b64 v0, [%%src];\n\tld.global.b64 v1, [%%src+8];\n"
		"\tld.global.b%u n, [%%src+16];\n\tand.b%u n, n, 24;\n\tadd.u%u n, n, 8;\n\tmov.u32 k, 0;\n",
		bits, bits, bits, bits);
	text_printf(p, "L%u:\n/**/\tstacksave.u%u s;\n/**/\talloca.u%u a, n, %u;\n/**/\talloca.u%u b, 16%s;\n"
		"\tst.local.b64 [a], v0;\n\tst.local.b64 [b], v1;\n\tst.local.b64 [b+8], v1;\n"
		"\tld.local.b64 v2, [a];\n\tld.local.b64 v3, [b];\n/**/\tstackrestore.u%u s;\n"
		"\tadd.u32 k, k, 1;\n\tsetp.lt.u32 p, k, %u;\n\t@p bra L%u;\n",
		label, bits, bits, align, bits, inner, bits, rounds, label);
	text_printf(p, "\tst.global.b64 [%%dst], v2;\n\tst.global.b64 [%%dst+8], v3;\n"
		"\tand.b%u m, a, %u;\n\tcvt.u64.u%u v2, m;\n\tst.global.b64 [%%dst+16], v2;\n"
		"\tadd.u%u e, a, n;\n\tsetp.ge.u%u p, b, e;\n\tadd.u%u e, b, 16;\n"
		"\tsetp.ge.or.u%u q, a, e, p;\n\tselp.b64 v2, 1, 0, q;\n\tst.global.b64 [%%dst+24], v2;\n",
		bits, align - 1, bits, bits, bits, bits, bits);
}

/* ---- 128 and, on sm_100, 256 bits ---- */

static void expect_same(const struct item *i, const void *inputs, const void *out, struct want *w)
{
	(void)out;
	for (unsigned k = 0; k < CTA_THREADS * i->nout; k++)
		w[k].v = ((const uint64_t *)inputs)[k];
}

void class_wide(struct item *i, struct rng *r)
{
	struct text *p = &i->ptx;
	bool shared = rng_once_in(r, 2);
	const char *at = shared ? "s" : "%dst", *space = shared ? ".shared" : ".global";

	item_block(i, 16, 16, 2, 64, expect_same);
	text_printf(p, "\t.reg .b32 s;\n\t.reg .b64 l<2>;\n\t.reg .b128 x;\n\tmov.u32 s, smem;\n"
		"\tmad.lo.u32 s, %%thr, 16, s;\n\tbar.sync 0;\n\tld.global.b128 x, [%%src];\n"
		"\tst%s.b128 [%s], x;\n\tld%s.b128 x, [%s];\n\tmov.b128 {l0, l1}, x;\n"
		"\tst.global.v2.b64 [%%dst], {l0, l1};\n", space, at, space, at);
}

void class_wide_vector(struct item *i, struct rng *r)
{
	bool words = rng_once_in(r, 2);
	unsigned n = words ? 8 : 4;
	struct text *p = &i->ptx, list = { 0 };

	item_block(i, 32, 32, 4, 64, expect_same);
	for (unsigned k = 0; k < n; k++)
		text_printf(&list, "%sv%u", k ? ", " : "", k);
	text_printf(p, "\t.reg .b%u v<%u>;\n\tld.global.v%u.b%u {%s}, [%%src];\n"
		"\tst.global.v%u.b%u [%%dst], {%s};\n", words ? 32 : 64, n, n, words ? 32 : 64,
		list.at, n, words ? 32 : 64, list.at);
	text_free(&list);
}

/* ---- st.bulk: zeros ---- */

enum { P_BYTES };

static void expect_bulk_zero(const struct item *i, const void *inputs, const void *out,
	struct want *w)
{
	(void)out;
	for (unsigned k = 0; k < CTA_THREADS * i->nout; k++)
		w[k].v = k * 8 < (unsigned)i->p[P_BYTES] ? 0 : ((const uint64_t *)inputs)[k];
}

void class_store_bulk(struct item *i, struct rng *r)
{
	struct text *p = &i->ptx;

	item_block(i, 16, 16, 2, 64, expect_bulk_zero);
	i->p[P_BYTES] = (int)(8 * rng_below(r, 257));
	text_printf(p, "\t.reg .b64 v<2>, n, at;\n\t.reg .b32 s;\n\t.reg .pred p;\n\tmov.u32 s, "
		"smem;\n"
		"\tmad.lo.u32 s, %%thr, 16, s;\n\tld.global.v2.b64 {v0, v1}, [%%src];\n\tbar.sync "
			"0;\n"
		"\tst.shared.v2.b64 [s], {v0, v1};\n\tbar.sync 0;\n\tsetp.eq.u32 p, %%thr, 0;\n"
		"\tmov.u64 n, %d;\n\tmov.u64 at, smem;\n\t@p st.bulk.weak.shared::cta [at], n, 0;\n"
			"\tbar.sync 0;\n"
		"\tld.shared.v2.b64 {v0, v1}, [s];\n\tst.global.v2.b64 [%%dst], {v0, v1};\n",
		i->p[P_BYTES]);
}
