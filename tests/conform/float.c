/* Floating-point arithmetic of every format, computed exactly and rounded once. References: ISA
 * 9.7.3 (f32, f64), 9.7.4 (f16, bf16), 9.7.5 (mixed precision). */
#include "conform.h"
#include "real.h"

#include <stdio.h>
#include <string.h>

enum op { ADD, SUB, MUL, FMA, MAD, DIV, RCP, SQRT, ABS, NEG, MIN, MAX, COPYSIGN };
static const char *const op_name[] = { "add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt",
	"abs", "neg", "min", "max", "copysign" };
static const char *const round_name[] = { ".rn", ".rz", ".rm", ".rp" };
enum { FLAG_FTZ = 1, FLAG_SAT = 2, FLAG_RELU = 4, FLAG_NAN = 8, FLAG_XORSIGN = 16, FLAG_ABS = 32,
	FLAG_OOB = 64 };
enum { OOB_NAN = 0x7ff7 }; /* f16 and bf16: what fills the outside of a tensor; fma.oob
	* is 0 if a factor is that, with either sign on an H200 */

/* p: operation, type, rounding, flags; type of the first operands of mixed precision */
enum { P_OP, P_TYPE, P_ROUND, P_FLAGS, P_FROM };

static struct real operand(enum type t, uint64_t v, int flags)
{
	struct real a = real_of(t, v);

	if (flags & FLAG_FTZ && real_is_subnormal(t, v))
		a.kind = REAL_ZERO;
	return a;
}

/* Preferred: a number to a NaN, unless flags has NAN; +0 to -0 for max. */
static struct real order(struct real a, struct real b, bool max, int flags)
{
	int c;

	if (a.kind == REAL_NAN || b.kind == REAL_NAN) {
		if (flags & FLAG_NAN)
			return a.kind == REAL_NAN ? a : b;
		return a.kind == REAL_NAN ? b : a;
	}
	c = real_compare(a, b);
	if (c == 0)
		return a.negative == max ? b : a;
	return (c > 0) == max ? a : b;
}

/* One element */
static uint64_t compute(const struct item *i, const uint64_t *s, struct want *w)
{
	const enum type t = type_element((enum type)i->p[P_TYPE]);
	const enum type from = i->p[P_FROM] ? type_element((enum type)i->p[P_FROM]) : t;
	const enum rounding rnd = (enum rounding)i->p[P_ROUND];
	const int flags = i->p[P_FLAGS];
	const enum op op = (enum op)i->p[P_OP];
	const uint64_t sign = 1ull << (type_bits(t) - 1);
	struct real a = operand(from, s[0], flags), b, c, r = a;
	uint64_t v;

	b = operand(op == FMA || !i->p[P_FROM] ? from : t, s[1], flags);
	c = operand(t, s[2], flags);
	if (flags & FLAG_OOB && ((s[0] & 0x7fff) == OOB_NAN || (s[1] & 0x7fff) == OOB_NAN))
		return 0;
	switch (op) {
	case ADD: r = real_add(a, b, rnd); break;
	case SUB: r = real_add(a, b.kind == REAL_NAN ? b : real_negate(b), rnd); break;
	case MUL: r = real_mul(a, b); break;
	case FMA: case MAD: r = real_add(real_mul(a, b), c, rnd); break;
	case DIV: r = real_div(a, b); break;
	case RCP: r = real_div(real_of_int(1), a); break;
	case SQRT: r = real_sqrt(a); break;
	case ABS: r.negative = false; break;
	case NEG: r.negative = !r.negative; break;
	case MIN: case MAX:
		if (flags & (FLAG_XORSIGN | FLAG_ABS))
			a.negative = b.negative = c.negative = false;
		r = order(a, b, op == MAX, flags);
		if (i->nsrc == 3)
			r = order(r, c, op == MAX, flags);
		if (flags & FLAG_XORSIGN)
			r.negative = ((s[0] ^ s[1]) & sign) != 0;
		break;
	case COPYSIGN: return (s[0] & sign) | (s[1] & (sign - 1));
	}
	if (r.kind == REAL_NAN) {
		/* f64 results keep some payload; the ISA leaves abs and neg of a NaN open */
		if ((t == T_f64 || op == ABS || op == NEG) && !(flags & (FLAG_SAT | FLAG_RELU)))
			w->how = WANT_NAN;
		if (flags & FLAG_SAT)
			return 0;
		return real_round(t, r, rnd, false);
	}
	if (flags & FLAG_RELU && (r.negative || r.kind == REAL_ZERO))
		r = real_of_int(0);
	if (flags & FLAG_SAT && r.negative)
		return 0;
	if (flags & FLAG_SAT && real_compare(r, real_of_int(1)) > 0)
		r = real_of_int(1);
	v = real_round(t, r, rnd, false);
	if (flags & FLAG_FTZ && real_is_subnormal(t, v))
		v &= sign;
	if (flags & FLAG_SAT && v == sign)
		return 0;
	return v;
}

static void lane_float(const struct item *i, const uint64_t *s, struct want *w)
{
	const enum type t = (enum type)i->p[P_TYPE];
	const unsigned bits = type_bits(type_element(t));
	uint64_t v = 0;

	for (unsigned k = 0; k < type_elements(t); k++) {
		uint64_t x[3];
		for (unsigned n = 0; n < 3; n++)
			x[n] = n < i->nsrc ? s[n] >> k * bits & type_mask(type_element(t)) : 0;
		v |= compute(i, x, w) << k * bits;
	}
	w->v = v;
	/* of a pair with a NaN, the other half is still wanted, and the NaN is canonical in all
	 * formats but f64 where it is defined */
	if (type_elements(t) > 1 && w->how == WANT_NAN)
		w->how = WANT_BITS;
}

/* Writes the instruction that p describes. */
static void emit(struct item *i, struct rng *r, const char *between)
{
	const enum type t = (enum type)i->p[P_TYPE];
	const int f = i->p[P_FLAGS];
	const enum op op = (enum op)i->p[P_OP];
	const char *n = type_name(t), *from = i->p[P_FROM] ? type_name((enum type)i->p[P_FROM]) : n;
	const unsigned nsrc = op == FMA || op == MAD ? 3
		: op == RCP || op == SQRT || op == ABS || op == NEG ? 1 : 2;
	char src[64];

	snprintf(src, sizeof src, nsrc == 3 ? "%s %s %s" : nsrc == 2 ? "%s %s" : "%s", from,
		nsrc == 3 ? from : n, n);
	i->cancels = nsrc == 3 && !i->p[P_FROM] && op != MIN && op != MAX;
	item_scalar(i, r, lane_float, n, src, "%s%s%s%s%s%s%s%s.%s%s%s", op_name[op], between,
		f & FLAG_FTZ ? ".ftz" : "", f & FLAG_NAN ? ".NaN" : "",
		f & FLAG_XORSIGN ? ".xorsign.abs" : "", f & FLAG_ABS ? ".abs" : "",
		f & FLAG_SAT ? ".sat" : "", f & FLAG_RELU ? ".relu" : "", n,
		i->p[P_FROM] ? "." : "", i->p[P_FROM] ? from : "");
}

static void rounded(struct item *i, struct rng *r, enum op op, enum type t, int flags, bool always)
{
	bool named = always || !rng_once_in(r, 4);

	i->p[P_OP] = op;
	i->p[P_TYPE] = (int)t;
	i->p[P_FLAGS] = flags;
	i->p[P_ROUND] = named ? (int)rng_below(r, 4) : RN;
	emit(i, r, named ? round_name[i->p[P_ROUND]] : "");
}

static int some(struct rng *r, int flag)
{
	return rng_once_in(r, 3) ? flag : 0;
}

void class_f32_arith(struct item *i, struct rng *r)
{
	enum op op = (enum op)rng_below(r, MAD + 1);

	rounded(i, r, op, T_f32, some(r, FLAG_FTZ) | some(r, FLAG_SAT), op >= FMA);
}

void class_f64_arith(struct item *i, struct rng *r)
{
	enum op op = (enum op)rng_below(r, MAD + 1);

	rounded(i, r, op, T_f64, 0, op >= FMA);
}

void class_f32_div(struct item *i, struct rng *r)
{
	rounded(i, r, DIV + rng_below(r, 3), T_f32, some(r, FLAG_FTZ), true);
}

void class_f64_div(struct item *i, struct rng *r)
{
	rounded(i, r, DIV + rng_below(r, 3), T_f64, 0, true);
}

void class_f32x2(struct item *i, struct rng *r)
{
	enum op op = (enum op)rng_below(r, FMA + 1);

	rounded(i, r, op, T_f32x2, some(r, FLAG_FTZ), op == FMA);
}

/* add, sub, fma of f32 with 16-bit operands */
void class_mixed(struct item *i, struct rng *r)
{
	static const enum op ops[] = { ADD, SUB, FMA };
	enum op op = RNG_OF(r, ops);

	i->p[P_FROM] = rng_once_in(r, 2) ? T_f16 : T_bf16;
	rounded(i, r, op, T_f32, some(r, FLAG_SAT), op == FMA);
}

void class_float_order(struct item *i, struct rng *r)
{
	enum op op = ABS + rng_below(r, 5);
	enum type t = rng_once_in(r, 3) ? T_f64 : T_f32;
	bool minmax = op == MIN || op == MAX;

	i->p[P_OP] = op;
	i->p[P_TYPE] = (int)t;
	if (t == T_f32 && op != COPYSIGN)
		i->p[P_FLAGS] = some(r, FLAG_FTZ) | (minmax ? some(r, FLAG_NAN)
			| some(r, FLAG_XORSIGN) : 0);
	emit(i, r, "");
}

/* min and max of three */
void class_float_order3(struct item *i, struct rng *r)
{
	int f = some(r, FLAG_FTZ) | some(r, FLAG_NAN) | some(r, FLAG_ABS);

	i->p[P_OP] = rng_once_in(r, 2) ? MIN : MAX;
	i->p[P_TYPE] = T_f32;
	i->p[P_FLAGS] = f;
	item_scalar(i, r, lane_float, "f32", "f32 f32 f32", "%s%s%s%s.f32", op_name[i->p[P_OP]],
		f & FLAG_FTZ ? ".ftz" : "", f & FLAG_NAN ? ".NaN" : "", f & FLAG_ABS ? ".abs" : "");
}

/* ---- testp ---- */

static void lane_testp(const struct item *i, const uint64_t *s, struct want *w)
{
	enum type t = (enum type)i->p[P_TYPE];
	struct real a = real_of(t, s[0]);
	bool sub = real_is_subnormal(t, s[0]);
	const bool is[] = { a.kind < REAL_INF, a.kind == REAL_INF, a.kind != REAL_NAN,
		a.kind == REAL_NAN, a.kind < REAL_INF && !sub, sub };

	w->v = is[i->p[P_OP]];
}

void class_testp(struct item *i, struct rng *r)
{
	static const char *const name[] = { "finite", "infinite", "number", "notanumber", "normal",
		"subnormal" };
	enum type t = rng_once_in(r, 2) ? T_f32 : T_f64;

	i->p[P_OP] = (int)rng_below(r, 6);
	i->p[P_TYPE] = (int)t;
	item_scalar(i, r, lane_testp, "pred", type_name(t), "testp.%s.%s", name[i->p[P_OP]],
		type_name(t));
}

/* ---- f16 and bf16 ---- */

static const enum type halves[] = { T_f16, T_f16x2, T_bf16, T_bf16x2 };
void class_half_arith(struct item *i, struct rng *r)
{
	enum type t = RNG_OF(r, halves);
	bool f16 = type_element(t) == T_f16, rn;
	enum op op = (enum op)rng_below(r, FMA + 1);
	int f = f16 ? some(r, FLAG_FTZ) | some(r, FLAG_SAT) : 0;

	if (op == FMA && !(f & FLAG_SAT))
		f |= some(r, FLAG_RELU);
	if (op == FMA && !(f & (FLAG_SAT | FLAG_FTZ)))
		f |= some(r, FLAG_OOB);
	rn = op == FMA || rng_once_in(r, 2);
	i->p[P_OP] = op;
	i->p[P_TYPE] = (int)t;
	i->p[P_FLAGS] = f;
	emit(i, r, f & FLAG_OOB ? ".rn.oob" : rn ? ".rn" : "");
}

void class_half_order(struct item *i, struct rng *r)
{
	enum type t = RNG_OF(r, halves);
	enum op op = ABS + rng_below(r, 4);
	bool f16 = type_element(t) == T_f16;

	i->p[P_OP] = op;
	i->p[P_TYPE] = (int)t;
	i->p[P_FLAGS] = (f16 ? some(r, FLAG_FTZ) : 0)
		| (op == MIN || op == MAX ? some(r, FLAG_NAN) | some(r, FLAG_XORSIGN) : 0);
	emit(i, r, "");
}
