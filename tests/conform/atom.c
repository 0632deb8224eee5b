/* Atomics and reductions. Each thread has a location of its own, so that every value is known; one
 * class lets all threads of a CTA meet at one location. References: ISA 9.7.13.5 and 9.7.13.6. */
#include "conform.h"
#include "redop.h"

#include <stdio.h>
#include <string.h>

enum { GLOBAL, SHARED, GENERIC };
static const char *const space_name[] = { ".global", ".shared", "" };

/* b128 is two elements of b64 that are compared together. */
enum { P_OP, P_TYPE, P_N, P_SPACE, P_RED, P_B128 };
struct in { uint64_t b[2], c[2]; };
enum { MEM = 32 }; /* bytes of memory, then of old values */

static uint64_t get(const void *at, enum type t, unsigned k)
{
	uint64_t v = 0;

	memcpy(&v, (const char *)at + k * (type_bits(t) / 8), type_bits(t) / 8);
	return v;
}

static void apply(const struct item *i, uint64_t o, uint64_t b, uint64_t c, struct want *w)
{
	redop_apply((enum redop)i->p[P_OP], (enum type)i->p[P_TYPE],
		i->p[P_SPACE] == SHARED ? SUBNORMALS_KEPT : SUBNORMALS_FLUSHED, o, b, c, w);
}

static void expect_atom(const struct item *i, const void *inputs, const void *before,
	struct want *w)
{
	const struct in *in = inputs;
	enum type t = (enum type)i->p[P_TYPE];
	const unsigned half = i->nout / 2;

	for (unsigned x = 0; x < CTA_THREADS; x++, w += i->nout) {
		const char *mem = (const char *)before + x * i->out_bytes;
		for (unsigned k = 0; k < i->nout; k++)
			w[k].v = get(mem, t, k);
		bool equal = !i->p[P_B128] || !memcmp(mem, in[x].b, 16);
		for (unsigned k = 0; k < (unsigned)i->p[P_N]; k++) {
			uint64_t o = get(mem, t, k), b = get(in[x].b, t, k), c = get(in[x].c, t, k);
			if (i->p[P_B128] && i->p[P_OP] == RED_CAS)
				w[k].v = equal ? c : o;
			else
				apply(i, o, b, c, &w[k]);
			if (!i->p[P_RED])
				w[half + k].v = o;
		}
	}
}

static void fill_atom(const struct item *i, struct rng *r, void *inputs, void *out)
{
	struct in *in = inputs;
	enum type t = (enum type)i->p[P_TYPE];
	const unsigned bytes = type_bits(t) / 8;

	memset(out, 0x55, (size_t)i->out_bytes * CTA_THREADS);
	for (unsigned x = 0; x < CTA_THREADS; x++) {
		char *mem = (char *)out + x * i->out_bytes;
		for (unsigned k = 0; k < (unsigned)i->p[P_N]; k++) {
			uint64_t o = type_pick(r, t), b = rng_once_in(r, 4) ? o : type_pick(r, t),
				c = type_pick(r, t);
			memcpy(mem + k * bytes, &o, bytes);
			memcpy((char *)in[x].b + k * bytes, &b, bytes);
			memcpy((char *)in[x].c + k * bytes, &c, bytes);
		}
		if (i->p[P_B128] && rng_once_in(r, 2))
			memcpy(in[x].b, mem, 16);
	}
}

/* ---- text ---- */

static const char *reg(enum type t) { return type_bits(t) == 16 ? "b16" : type_bits(t) == 32 ? "b32"
	: "b64"; }

/* name or, of a vector, {name0, name1, ...} */
static void list(struct text *p, const char *name, unsigned n)
{
	if (n == 1) {
		text_printf(p, "%s0", name);
		return;
	}
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "%s%s%u", k ? ", " : "{", name, k);
	text_printf(p, "}");
}

static void print(struct item *i, struct rng *r)
{
	static const char *const sem[] = { "", ".relaxed", ".acquire", ".release", ".acq_rel" };
	static const char *const scope[] = { ".cta", ".cluster", ".gpu", ".sys" };
	struct text *p = &i->ptx;
	enum type t = (enum type)i->p[P_TYPE];
	unsigned n = (unsigned)i->p[P_N], bytes = type_bits(t) / 8;
	bool red = i->p[P_RED], wide = i->p[P_B128], vector = n > 1 && !wide;
	int op = i->p[P_OP], s = (int)rng_below(r, red ? 4 : 5);
	const char *order = red && s >= 2 ? ".release" : sem[s];
	bool half = type_element(t) == T_f16 || type_element(t) == T_bf16;

	text_printf(p, "\t.reg .b64 at;\n\t.reg .b32 s;\n\t.reg .%s b<%u>, c<%u>, d<%u>, m<%u>;\n",
		reg(t), n, n, n, n);
	if (wide)
		text_printf(p, "\t.reg .b128 B, C, D;\n");
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "\tld.global.b%u b%u, [%%src+%u];\n\tld.global.b%u c%u, "
			"[%%src+%u];\n",
			type_bits(t), k, k * bytes, type_bits(t), k, 16 + k * bytes);
	if (i->p[P_SPACE] == SHARED) {
		text_printf(p, "\tmov.u32 s, smem;\n\tmad.lo.u32 s, %%thr, %u, s;\n\tbar.sync 0;\n",
			MEM);
		for (unsigned k = 0; k < n; k++)
			text_printf(p, "\tld.global.b%u m%u, [%%dst+%u];\n\tst.shared.b%u [s+%u], "
				"m%u;\n",
				type_bits(t), k, k * bytes, type_bits(t), k * bytes, k);
	} else
		text_printf(p, i->p[P_SPACE] == GENERIC ? "\tcvta.global.u64 at, %%dst;\n"
			: "\tmov.b64 at, %%dst;\n");
	if (wide)
		text_printf(p, "\tmov.b128 B, {b0, b1};\n\tmov.b128 C, {c0, c1};\n");
	text_printf(p, "/**/\t%s%s%s%s.%s%s", red ? "red" : "atom", order,
		order[0] ? scope[rng_below(r, 4)] : "", space_name[i->p[P_SPACE]],
			redop_name((enum redop)op),
		half ? ".noftz" : "");
	if (vector)
		text_printf(p, ".v%u", n);
	text_printf(p, ".%s ", wide ? "b128" : type_name(t));
	if (!red) {
		if (wide)
			text_printf(p, "D");
		else
			list(p, "d", n);
		text_printf(p, ", ");
	}
	text_printf(p, "[%s], ", i->p[P_SPACE] == SHARED ? "s" : "at");
	if (wide)
		text_printf(p, op == RED_CAS ? "B, C" : "B");
	else {
		list(p, "b", n);
		if (op == RED_CAS)
			text_printf(p, ", c0");
	}
	text_printf(p, ";\n");
	if (wide)
		text_printf(p, "\tmov.b128 {d0, d1}, D;\n");
	for (unsigned k = 0; k < n; k++) {
		if (i->p[P_SPACE] == SHARED)
			text_printf(p, "\tld.shared.b%u m%u, [s+%u];\n\tst.global.b%u [%%dst+%u], "
				"m%u;\n",
				type_bits(t), k, k * bytes, type_bits(t), k * bytes, k);
		if (!red)
			text_printf(p, "\tst.global.b%u [%%dst+%u], d%u;\n", type_bits(t),
				MEM + k * bytes, k);
	}
}

/* ---- classes ---- */

static void describe(struct item *i, struct rng *r, int op, enum type t, unsigned n, int space,
	bool red)
{
	i->p[P_OP] = op;
	i->p[P_TYPE] = (int)t;
	i->p[P_N] = (int)n;
	i->p[P_SPACE] = space;
	i->p[P_RED] = red;
	item_block(i, sizeof(struct in), 2 * MEM, 2 * MEM * 8 / type_bits(t), type_bits(t),
		expect_atom);
	i->fill = fill_atom;
	print(i, r);
}

void class_atom_int(struct item *i, struct rng *r)
{
	static const enum type adds[] = { T_u32, T_s32, T_u64 };
	static const enum type orders[] = { T_u32, T_s32, T_u64, T_s64 };
	static const enum type bits[] = { T_b32, T_b64 };
	static const enum type swaps[] = { T_b16, T_b32, T_b64 };
	bool red = rng_once_in(r, 3);
	int op = (int)rng_below(r, (red ? RED_EXCH : RED_COUNT) - 1) + 1;
	enum type t = op == RED_ADD ? RNG_OF(r, adds) : op <= RED_MAX ? RNG_OF(r, orders)
		: op <= RED_DEC ? T_u32 : op == RED_CAS ? RNG_OF(r, swaps) : RNG_OF(r, bits);

	if (op >= RED_EXCH && rng_once_in(r, 4)) {
		i->p[P_B128] = 1;
		describe(i, r, op, T_b64, 2, (int)rng_below(r, 3), false);
		return;
	}
	describe(i, r, op, t, 1, (int)rng_below(r, 3), red);
}

void class_atom_float(struct item *i, struct rng *r)
{
	static const enum type types[] = { T_f32, T_f32, T_f64, T_f16, T_bf16, T_f16x2, T_bf16x2 };

	describe(i, r, RED_ADD, RNG_OF(r, types), 1, (int)rng_below(r, 3), rng_once_in(r, 3));
}

void class_atom_vector(struct item *i, struct rng *r)
{
	static const enum type types[] = { T_f32, T_f16, T_bf16, T_f16x2, T_bf16x2 };
	enum type t = RNG_OF(r, types);
	unsigned n = 2u << rng_below(r, type_bits(t) == 16 ? 3 : 2);

	describe(i, r, t == T_f32 ? RED_ADD : RED_ADD + (int)rng_below(r, 3), t, n,
		rng_once_in(r, 2) ? GLOBAL : GENERIC, rng_once_in(r, 3));
}

/* All threads of a CTA at one location of shared memory; the order does not change the result. */
static void expect_meet(const struct item *i, const void *inputs, const void *before,
	struct want *w)
{
	const struct in *in = inputs;
	const uint64_t mask = type_mask((enum type)i->p[P_TYPE]);
	const bool counts = i->p[P_OP] == RED_INC || i->p[P_OP] == RED_DEC;
	struct want v = { .v = ((const uint64_t *)before)[0] & mask };

	for (unsigned x = 0; x < CTA_THREADS; x++)
		apply(i, v.v, counts ? 100 : in[x].b[0] & mask, 0, &v);
	for (unsigned x = 0; x < CTA_THREADS; x++)
		w[x].v = v.v;
}

static void fill_meet(const struct item *i, struct rng *r, void *inputs, void *out)
{
	struct in *in = inputs;
	uint64_t first = i->p[P_OP] == RED_INC || i->p[P_OP] == RED_DEC ? rng_below(r, 100)
		: rng_bits(r);

	for (unsigned x = 0; x < CTA_THREADS; x++) {
		in[x] = (struct in){ { rng_bits(r), 0 }, { 0, 0 } };
		((uint64_t *)out)[x] = first;
	}
}

void class_atom_meet(struct item *i, struct rng *r)
{
	static const enum type types[] = { T_u32, T_s32, T_u64, T_s64 };
	int op = RED_ADD + (int)rng_below(r, 8);
	enum type t = op == RED_INC || op == RED_DEC ? T_u32 : RNG_OF(r, types);
	const char *n = type_name(t), *b = reg(t);

	if (op >= RED_AND)
		n = b;
	if (op == RED_ADD && t == T_s64)
		n = "u64";
	i->p[P_OP] = op;
	i->p[P_TYPE] = (int)t;
	item_block(i, sizeof(struct in), 8, 1, 64, expect_meet);
	i->fill = fill_meet;
	text_printf(&i->ptx, "\t.reg .b64 x;\n\t.reg .%s b, d;\n\t.reg .pred first;\n"
		"\tsetp.eq.u32 first, %%thr, 0;\n\tbar.sync 0;\n\tld.global.b64 x, [%%dst];\n"
		"\t@first st.shared.b64 [smem], x;\n", b);
	if (op == RED_INC || op == RED_DEC)
		text_printf(&i->ptx, "\tmov.b32 b, 100;\n");
	else
		text_printf(&i->ptx, "\tld.global.%s b, [%%src];\n", b);
	bool red = rng_once_in(r, 2);
	text_printf(&i->ptx, "\tbar.sync 0;\n/**/\t%s.shared.%s.%s %s[smem], b;\n\tbar.sync 0;\n",
		red ? "red" : "atom", redop_name((enum redop)op), n, red ? "" : "d, ");
	text_printf(&i->ptx, "\tld.shared.%s b, [smem];\n\tcvt.u64.u%u x, b;\n"
		"\tst.global.b64 [%%dst], x;\n", b, type_bits(t));
}
