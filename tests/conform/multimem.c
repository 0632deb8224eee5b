/* multimem: two devices have memory behind the multicast addresses: for the address of %dst + n, the
 * bytes at %dst + n and at %dst + n + MULTICAST_PART (cpu.c). Reference: ISA 9.7.9.14. */
#include "conform.h"
#include "real.h"
#include "redop.h"

#include <string.h>

enum { P_WHAT, P_OP, P_TYPE, P_N, P_WIDE };
enum what { LOAD, STORE, REDUCE };
enum { RESULT = 2 * MULTICAST_PART, OUT = 3 * MULTICAST_PART };

static uint64_t get(const void *at, enum type t, unsigned k)
{
	uint64_t v = 0;

	memcpy(&v, (const char *)at + k * (type_bits(t) / 8), type_bits(t) / 8);
	return v;
}

/* Two numbers combined exactly, and rounded to the precision of the accumulation and to the type. Of
 * fp8 the ISA does not say what is beyond the range: as cvt, the largest finite number. */
static uint64_t combine(enum redop op, enum type t, bool wide, uint64_t a, uint64_t b)
{
	const bool byte = type_bits(t) == 8;
	const enum type middle = byte ? T_f16 : T_f32;
	struct real x = real_of(t, a), y = real_of(t, b), r;
	int c;

	if (op == RED_ADD) {
		r = real_add(x, y, RN);
	} else if (x.kind == REAL_NAN || y.kind == REAL_NAN) {
		r = x.kind == REAL_NAN ? y : x;
	} else {
		c = real_compare(x, y);
		c = c ? c : y.negative - x.negative;
		r = (op == RED_MIN) == (c < 0) ? x : y;
	}
	if (wide)
		r = real_of(middle, real_round(middle, r, RN, false));
	return real_round(t, r, RN, byte);
}

static void reduced(const struct item *i, uint64_t a, uint64_t b, struct want *w)
{
	const enum redop op = (enum redop)i->p[P_OP];
	const enum type t = (enum type)i->p[P_TYPE], e = type_element(t);

	if (type_kind(t) != KIND_FLOAT || type_bits(e) >= 32) {
		redop_apply(op, t, SUBNORMALS_OPEN, a, b, 0, w);
		return;
	}
	w->v = 0;
	for (unsigned k = 0; k < type_elements(t); k++) {
		const unsigned at = k * type_bits(e);

		w->v |= combine(op, e, i->p[P_WIDE], a >> at & type_mask(e), b >> at & type_mask(e)) << at;
	}
}

static void expect_multimem(const struct item *i, const void *in, const void *before, struct want *w)
{
	const enum type t = (enum type)i->p[P_TYPE];
	const unsigned part = MULTICAST_PART * 8 / type_bits(t), result = 2 * part;

	for (unsigned x = 0; x < CTA_THREADS; x++, w += i->nout) {
		const char *mem = (const char *)before + x * OUT, *src = (const char *)in + x * MULTICAST_PART;

		for (unsigned k = 0; k < i->nout; k++)
			w[k].v = get(mem, t, k);
		for (unsigned k = 0; k < (unsigned)i->p[P_N]; k++) {
			const uint64_t a = get(mem, t, k), b = get(mem, t, part + k), v = get(src, t, k);

			switch ((enum what)i->p[P_WHAT]) {
			case LOAD:
				reduced(i, a, b, &w[result + k]);
				break;
			case STORE:
				w[k].v = w[part + k].v = v;
				break;
			case REDUCE:
				reduced(i, a, v, &w[k]);
				reduced(i, b, v, &w[part + k]);
				break;
			}
		}
	}
}

static void fill_multimem(const struct item *i, struct rng *r, void *in, void *out)
{
	const enum type t = (enum type)i->p[P_TYPE];
	const unsigned bytes = type_bits(t) / 8;

	for (unsigned k = 0; k < CTA_THREADS * MULTICAST_PART / bytes; k++) {
		uint64_t v = type_pick(r, t);

		memcpy((char *)in + k * bytes, &v, bytes);
	}
	for (unsigned k = 0; k < CTA_THREADS * OUT / bytes; k++) {
		uint64_t v = type_pick(r, t);

		memcpy((char *)out + k * bytes, &v, bytes);
	}
}

static void list(struct text *p, const char *name, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "%s%s%u", k ? ", " : n > 1 ? "{" : "", name, k);
	if (n > 1)
		text_printf(p, "}");
}

static void print(struct item *i, struct rng *r, enum what what, bool wide)
{
	static const char *const name[] = { "ld_reduce", "st", "red" };
	static const char *const sem[3][3] = { { ".weak", ".relaxed", ".acquire" },
		{ ".weak", ".relaxed", ".release" }, { "", ".relaxed", ".release" } };
	static const char *const scope[] = { ".cta", ".cluster", ".gpu", ".sys" };
	const enum type t = (enum type)i->p[P_TYPE];
	const unsigned n = (unsigned)i->p[P_N], bits = type_bits(t), s = rng_below(r, 3);
	struct text *p = &i->ptx;

	text_printf(p, "\t.reg .b64 at;\n\t.reg .b%u v<%u>;\n\tadd.u64 at, %%dst, %llu;\n", bits, n,
		(unsigned long long)MULTICAST_AT);
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "\tld.global.b%u v%u, [%%src+%u];\n", bits, k, k * bits / 8);
	text_printf(p, "/**/\tmultimem.%s%s%s%s", name[what], sem[what][s],
		s ? scope[rng_below(r, 4)] : "", rng_once_in(r, 2) ? ".global" : "");
	if (what != STORE)
		text_printf(p, ".%s", redop_name((enum redop)i->p[P_OP]));
	if (wide)
		text_printf(p, bits / type_elements(t) == 8 ? ".acc::f16" : ".acc::f32");
	if (n > 1)
		text_printf(p, ".v%u", n);
	text_printf(p, ".%s ", type_name(t));
	if (what == LOAD)
		list(p, "v", n);
	text_printf(p, what == LOAD ? ", [at];\n" : "[at], ");
	if (what != LOAD) {
		list(p, "v", n);
		text_printf(p, ";\n");
		return;
	}
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "\tst.global.b%u [%%dst+%u], v%u;\n", bits, RESULT + k * bits / 8, k);
}

static void describe(struct item *i, struct rng *r, enum what what, enum redop op, enum type t, unsigned n,
	bool wide)
{
	i->p[P_WHAT] = what;
	i->p[P_OP] = op;
	i->p[P_TYPE] = (int)t;
	i->p[P_N] = (int)n;
	i->p[P_WIDE] = wide;
	item_block(i, MULTICAST_PART, OUT, OUT * 8 / type_bits(t), type_bits(t), expect_multimem);
	i->fill = fill_multimem;
	print(i, r, what, wide);
}

void class_multimem_int(struct item *i, struct rng *r)
{
	static const enum type adds[] = { T_u32, T_s32, T_u64 }, orders[] = { T_u32, T_s32, T_u64, T_s64 },
		bits[] = { T_b32, T_b64 }, stored[] = { T_b32, T_b64, T_u32, T_u64, T_s32, T_s64 };
	static const enum redop ops[] = { RED_ADD, RED_MIN, RED_MAX, RED_AND, RED_OR, RED_XOR };
	const enum what what = (enum what)rng_below(r, 3);
	const enum redop op = RNG_OF(r, ops);

	describe(i, r, what, op, what == STORE ? RNG_OF(r, stored) : op == RED_ADD ? RNG_OF(r, adds)
		: op <= RED_MAX ? RNG_OF(r, orders) : RNG_OF(r, bits), 1, false);
}

void class_multimem_float(struct item *i, struct rng *r)
{
	static const enum type types[] = { T_f16, T_f16x2, T_bf16, T_bf16x2, T_f32, T_f64, T_e4m3x2,
		T_e5m2x2 };
	const enum what what = (enum what)rng_below(r, 3);
	enum type t = RNG_OF(r, types);
	bool byte = type_bits(type_element(t)) == 8;
	enum redop op = RED_ADD;
	unsigned least, most;

	if (what == REDUCE && byte)
		t = T_f16x2;
	byte = type_bits(type_element(t)) == 8;
	if (what == LOAD && type_bits(type_element(t)) < 32)
		op = RED_ADD + rng_below(r, 3);
	/* 32, 64 or 128 bits in all, and f64 is no vector */
	least = type_bits(t) < 32 ? 32 / type_bits(t) : 1;
	most = t == T_f64 ? 1 : 128 / type_bits(t);
	while (least < most && rng_once_in(r, 2))
		least *= 2;
	describe(i, r, what, op, t, least, what == LOAD && op == RED_ADD && type_bits(type_element(t)) < 32
		&& rng_once_in(r, 2));
}
