/* Conversions. References: ISA 9.7.9.21 (cvt) and cvt.pack. */
#include "conform.h"
#include "real.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { P_TO, P_FROM, P_ROUND, P_FLAGS, P_DREG };
enum { FLAG_FTZ = 1, FLAG_SAT = 2, FLAG_RELU = 4, FLAG_SATFINITE = 8, FLAG_INTEGRAL = 16 };

static const char *const round_name[] = { ".rn", ".rz", ".rm", ".rp", ".rna" };
static const char *const integral_name[] = { ".rni", ".rzi", ".rmi", ".rpi" };
static const enum type ints[] = { T_u8, T_s8, T_u16, T_s16, T_u32, T_s32, T_u64, T_s64 };

static __int128 least(enum type t)
{
	return type_signed(t) ? -((__int128)1 << (type_bits(t) - 1)) : 0;
}
static __int128 most(enum type t)
{
	return ((__int128)1 << (type_bits(t) - type_signed(t))) - 1;
}
static __int128 clamp(__int128 v, enum type t)
{
	return v < least(t) ? least(t) : v > most(t) ? most(t) : v;
}
static __int128 value(enum type t, uint64_t v)
{
	v &= type_mask(t);
	return type_signed(t) ? (__int128)type_extend(t, v) : (__int128)v;
}

/* An integer of the type in its register, which may be wider: extended by the type's sign */
static uint64_t extended(enum type t, __int128 v)
{
	return (uint64_t)value(t, (uint64_t)v);
}

static uint64_t to_int(const struct item *i, uint64_t v)
{
	enum type to = (enum type)i->p[P_TO], from = (enum type)i->p[P_FROM];
	struct real a = real_of(from, v);

	if (i->p[P_FLAGS] & FLAG_FTZ && real_is_subnormal(from, v))
		a.kind = REAL_ZERO;
	if (a.kind == REAL_NAN) /* ISA: 0, but the top bit for f64 and to 64 bits */
		return extended(to, from == T_f64 || type_bits(to) == 64
			? (__int128)1 << (type_bits(to) - 1) : 0);
	return extended(to, clamp(real_int(real_integral(a, (enum rounding)i->p[P_ROUND])), to));
}

/* ue8m0: the exponent alone; 0xff is NaN */
static uint64_t to_ue8m0(struct real a, enum rounding r, bool satfinite)
{
	struct real one = { REAL_FINITE, false, 1, 0 };
	int n = 0;

	if (a.kind == REAL_NAN)
		return 0xff;
	if (a.kind == REAL_INF)
		return satfinite ? 0xfe : 0xff;
	if (a.kind == REAL_ZERO)
		return 0;
	a.negative = false;
	for (n = 0; n <= 254; n++) {
		one.e = n - 127;
		if (real_compare(a, one) <= 0)
			break;
	}
	if (r == RP)
		return n > 254 ? satfinite ? 0xfe : 0xff : (uint64_t)n;
	return n > 254 ? 0xfe : real_compare(a, one) == 0 || n == 0 ? (uint64_t)n : (uint64_t)n - 1;
}

/* to a float from a real; w: what a NaN may be */
static uint64_t to_float(const struct item *i, enum type to, enum type from, uint64_t v,
	struct want *w)
{
	const enum rounding r = (enum rounding)i->p[P_ROUND];
	const int f = i->p[P_FLAGS];
	struct real a = type_kind(from) == KIND_FLOAT ? real_of(from, v) : real_of_int(value(from,
		v));
	uint64_t bits;

	if (f & FLAG_FTZ && from == T_f32 && real_is_subnormal(from, v))
		a.kind = REAL_ZERO;
	if (a.kind == REAL_NAN && !(f & FLAG_SAT)) {
		if (!(f & FLAG_RELU) && w)
			w->how = WANT_NAN;
		return to == T_ue8m0 ? 0xff : real_round(to, a, r, f & FLAG_SATFINITE);
	}
	if (f & FLAG_INTEGRAL)
		a = real_integral(a, r);
	if (f & FLAG_RELU && (a.negative || a.kind == REAL_ZERO))
		a = real_of_int(0);
	if (f & FLAG_SAT) {
		if (a.kind == REAL_NAN || a.negative || a.kind == REAL_ZERO)
			a = real_of_int(0);
		else if (real_compare(a, real_of_int(1)) > 0)
			a = real_of_int(1);
	}
	if (to == T_ue8m0)
		return to_ue8m0(a, r, f & FLAG_SATFINITE);
	bits = real_round(to, a, r, f & FLAG_SATFINITE);
	if (f & FLAG_FTZ && to == T_f32 && real_is_subnormal(to, bits))
		bits &= 0x80000000;
	return bits;
}

static void lane_cvt(const struct item *i, const uint64_t *s, struct want *w)
{
	enum type to = (enum type)i->p[P_TO], from = (enum type)i->p[P_FROM];

	if (type_kind(to) == KIND_FLOAT) {
		w->v = to_float(i, to, from, s[0], w);
		w->type = to;
	} else if (type_kind(from) == KIND_FLOAT)
		w->v = to_int(i, s[0]);
	else
		w->v = extended(to, i->p[P_FLAGS] & FLAG_SAT ? clamp(value(from, s[0]), to)
			: value(from, s[0]));
}

/* ---- integers: registers may be wider than the types ---- */

static enum type reg_for(struct rng *r, enum type t, enum type other)
{
	static const enum type regs[] = { T_b16, T_b32, T_b64 };
	unsigned first = type_bits(t) <= 16 ? 0 : type_bits(t) == 32 ? 1 : 2;

	/* conversions of bf16 take registers of the type's width only */
	return regs[first + (other != T_bf16 && rng_once_in(r, 3) ? rng_below(r, 3 - first) : 0)];
}

/* .sat is for conversions that can leave the range. */
static bool can_leave(enum type to, enum type from)
{
	return least(from) < least(to) || most(from) > most(to);
}

/* bf16 converts to and from integers of 16 bits and more, without .sat. */
static enum type other_int(struct rng *r, enum type f)
{
	return ints[f == T_bf16 ? 2 + rng_below(r, 6) : rng_below(r, 8)];
}

void class_cvt_int(struct item *i, struct rng *r)
{
	enum type to = RNG_OF(r, ints), from = RNG_OF(r, ints);
	char src[16];

	i->p[P_TO] = (int)to;
	i->p[P_FROM] = (int)from;
	i->p[P_FLAGS] = can_leave(to, from) && rng_once_in(r, 2) ? FLAG_SAT : 0;
	snprintf(src, sizeof src, "%s!", type_name(reg_for(r, from, to)));
	item_scalar(i, r, lane_cvt, type_name(reg_for(r, to, from)), src, "cvt%s.%s.%s",
		i->p[P_FLAGS] ? ".sat" : "", type_name(to), type_name(from));
}

/* ---- between integers and floats ---- */

static const enum type floats[] = { T_f16, T_bf16, T_f32, T_f64 };

void class_cvt_to_int(struct item *i, struct rng *r)
{
	enum type from = RNG_OF(r, floats), to = other_int(r, from);
	char src[16];

	i->p[P_TO] = (int)to;
	i->p[P_FROM] = (int)from;
	i->p[P_ROUND] = (int)rng_below(r, 4);
	i->p[P_FLAGS] = (from == T_f32 && rng_once_in(r, 2) ? FLAG_FTZ : 0)
		| (from != T_bf16 && rng_once_in(r, 3) ? FLAG_SAT : 0);
	snprintf(src, sizeof src, "%s!", type_name(from));
	item_scalar(i, r, lane_cvt, type_name(reg_for(r, to, from)), src, "cvt%s%s%s.%s.%s",
		integral_name[i->p[P_ROUND]], i->p[P_FLAGS] & FLAG_FTZ ? ".ftz" : "",
		i->p[P_FLAGS] & FLAG_SAT ? ".sat" : "", type_name(to), type_name(from));
}

void class_cvt_from_int(struct item *i, struct rng *r)
{
	enum type to = RNG_OF(r, floats), from = other_int(r, to);
	char src[16];

	i->p[P_TO] = (int)to;
	i->p[P_FROM] = (int)from;
	i->p[P_ROUND] = (int)rng_below(r, 4);
	i->p[P_FLAGS] = to != T_bf16 && rng_once_in(r, 4) ? FLAG_SAT : 0;
	snprintf(src, sizeof src, "%s!", type_name(reg_for(r, from, to)));
	item_scalar(i, r, lane_cvt, type_name(to), src, "cvt%s%s.%s.%s", round_name[i->p[P_ROUND]],
		i->p[P_FLAGS] & FLAG_SAT ? ".sat" : "", type_name(to), type_name(from));
}

/* ---- between floats ---- */

void class_cvt_float(struct item *i, struct rng *r)
{
	static const enum type three[] = { T_f16, T_f32, T_f64 };
	enum type to = RNG_OF(r, three), from = RNG_OF(r, three);
	const char *round = "";
	int f = 0;
	char src[16];

	if (rng_once_in(r, 5)) { /* bf16 has its own forms */
		if (rng_once_in(r, 2)) {
			to = T_bf16;
			from = rng_once_in(r, 2) ? T_f32 : rng_once_in(r, 2) ? T_f16 : T_f64;
		} else {
			static const enum type wider[] = { T_f16, T_f32, T_f64 };
			from = T_bf16;
			to = RNG_OF(r, wider);
		}
	}
	if (to == from) {
		if (rng_once_in(r, 2)) {
			f |= FLAG_INTEGRAL;
			i->p[P_ROUND] = (int)rng_below(r, 4);
			round = integral_name[i->p[P_ROUND]];
		}
	} else if (type_bits(to) < type_bits(from) || to == T_bf16 || (from == T_bf16
		&& to == T_f16)) {
		i->p[P_ROUND] = (int)rng_below(r, 4);
		round = round_name[i->p[P_ROUND]];
	}
	if ((to == T_f32 || from == T_f32) && to != T_bf16 && from != T_bf16 && rng_once_in(r, 2))
		f |= FLAG_FTZ;
	if (to != T_bf16 && from != T_bf16 && rng_once_in(r, 3))
		f |= FLAG_SAT;
	i->p[P_TO] = (int)to;
	i->p[P_FROM] = (int)from;
	i->p[P_FLAGS] = f;
	snprintf(src, sizeof src, "%s!", type_name(from));
	item_scalar(i, r, lane_cvt, type_name(to), src, "cvt%s%s%s.%s.%s", round,
		f & FLAG_FTZ ? ".ftz" : "", f & FLAG_SAT ? ".sat" : "", type_name(to),
			type_name(from));
}

/* f32 to f16, bf16 and tf32, with .relu and .satfinite */
void class_cvt_relu(struct item *i, struct rng *r)
{
	static const enum type tos[] = { T_f16, T_bf16, T_tf32 };
	enum type to = RNG_OF(r, tos);
	int f = rng_once_in(r, 2) ? FLAG_RELU : 0;

	i->p[P_ROUND] = (int)rng_below(r, 2);
	if (to == T_tf32 && rng_once_in(r, 2)) {
		i->p[P_ROUND] = RNA;
		f = 0;
	}
	if ((to != T_tf32 || i->p[P_ROUND] == RNA) && rng_once_in(r, 2))
		f |= FLAG_SATFINITE;
	i->p[P_TO] = (int)to;
	i->p[P_FROM] = T_f32;
	i->p[P_FLAGS] = f;
	item_scalar(i, r, lane_cvt, type_name(to), "f32!", "cvt%s%s%s.%s.f32",
		round_name[i->p[P_ROUND]],
		f & FLAG_RELU ? ".relu" : "", f & FLAG_SATFINITE ? ".satfinite" : "",
			type_name(to));
}

/* ---- pairs ---- */

/* Two sources: the first becomes the upper half. */
static void lane_pair(const struct item *i, const uint64_t *s, struct want *w)
{
	enum type to = (enum type)i->p[P_TO], from = (enum type)i->p[P_FROM];
	enum type e = type_element(to), g = type_element(from);
	uint64_t half[2] = { s[0], s[0] >> type_bits(g) };
	uint64_t v = 0;

	if (type_elements(from) == 1) {
		half[0] = s[1];
		half[1] = s[0];
	}
	for (unsigned k = 0; k < 2; k++)
		v |= to_float(i, e, g, half[k] & type_mask(g), NULL) << k * type_bits(e);
	w->v = v;
}

static void pair(struct item *i, struct rng *r, enum type to, enum type from, int f,
	enum rounding rnd)
{
	char src[32], mods[48];
	const char *n = type_name(from);

	i->p[P_TO] = (int)to;
	i->p[P_FROM] = (int)from;
	i->p[P_FLAGS] = f;
	i->p[P_ROUND] = (int)rnd;
	snprintf(mods, sizeof mods, "%s%s%s", round_name[rnd], f & FLAG_SATFINITE ? ".satfinite"
		: "",
		f & FLAG_RELU ? ".relu" : "");
	snprintf(src, sizeof src, type_elements(from) == 1 ? "%s! %s!" : "%s!", n, n);
	/* a register of 8 bits, which only cvt and mov take */
	if (to == T_e2m1x2)
		item_scalar(i, r, lane_pair, "e2m1x2", src, ".reg .b8 x; cvt%s.%s.%s x, a%s; "
			"cvt.u16.u8 d, x;", mods, type_name(to), n,
			type_elements(from) == 1 ? ", b" : "");
	else if (from == T_e2m1x2)
		item_scalar(i, r, lane_pair, type_name(to), src, ".reg .b8 x; cvt.u8.u16 x, a; "
			"cvt%s.%s.%s d, x;", mods, type_name(to), n);
	else
		item_scalar(i, r, lane_pair, type_name(to), src, "cvt%s.%s.%s", mods, type_name(to),
			n);
}

void class_cvt_pair(struct item *i, struct rng *r)
{
	static const enum type fp8[] = { T_e4m3x2, T_e5m2x2 };
	enum type to = rng_once_in(r, 2) ? T_f16x2 : T_bf16x2;
	int relu = rng_once_in(r, 3) ? FLAG_RELU : 0;

	switch (rng_below(r, 4)) {
	case 0:
		pair(i, r, RNG_OF(r, fp8), T_f32, FLAG_SATFINITE | relu, RN);
		break;
	case 1:
		pair(i, r, RNG_OF(r, fp8), T_f16x2, FLAG_SATFINITE | relu, RN);
		break;
	case 2:
		pair(i, r, T_f16x2, RNG_OF(r, fp8), relu, RN);
		break;
	default:
		pair(i, r, to, T_f32, relu | (rng_once_in(r, 3) ? FLAG_SATFINITE : 0),
			rng_once_in(r, 2) ? RN : RZ);
	}
}

/* The formats of sm_100 */
void class_cvt_narrow(struct item *i, struct rng *r)
{
	static const enum type narrow[] = { T_e2m3x2, T_e3m2x2, T_e2m1x2 };
	int relu = rng_once_in(r, 3) ? FLAG_RELU : 0;

	switch (rng_below(r, 4)) {
	case 0: {
		enum type from = rng_once_in(r, 2) ? T_f32 : T_bf16x2;
		pair(i, r, T_ue8m0x2, from, rng_once_in(r, 2) ? FLAG_SATFINITE : 0,
			rng_once_in(r, 2) ? RZ : RP);
		break;
	}
	case 1:
		pair(i, r, T_bf16x2, T_ue8m0x2, 0, RN);
		break;
	case 2:
		pair(i, r, RNG_OF(r, narrow), T_f32, FLAG_SATFINITE | relu, RN);
		break;
	default:
		pair(i, r, T_f16x2, RNG_OF(r, narrow), relu, RN);
	}
}

/* ---- stochastic rounding ---- */

enum { P_WIDTH = P_DREG + 1 /* random bits of an element */, P_PARTS };

/* The random bits of part k, 0 being the lowest, as the figures of the ISA have them: the upper one
 * of two that share 16 bits takes them in reverse. */
static unsigned random_bits(const struct item *i, uint64_t rbits, unsigned k)
{
	const unsigned width = (unsigned)i->p[P_WIDTH];
	unsigned v = 0;

	for (unsigned b = 0; b < width; b++) {
		const unsigned from = i->p[P_PARTS] == 4 && k & 1 ? width - 1 - b : b;
		unsigned at = 16 * (k / ((unsigned)i->p[P_PARTS] / 2)) + from;

		if (i->p[P_TO] == T_e2m1) /* bytes of both halves */
			at = from % 8 + from / 8 * 16 + k / 2 * 8;
		v |= (unsigned)(rbits >> at & 1) << b;
	}
	return v;
}

/* Up if the part that is cut off, with the random bits added, has a carry. */
static uint64_t stochastic(const struct item *i, uint64_t x, unsigned random)
{
	const enum type to = (enum type)i->p[P_TO];
	const struct fmt *f = real_fmt(to);
	const int flags = i->p[P_FLAGS];
	const uint64_t over = flags & FLAG_SATFINITE ? f->max : f->max + 1;
	struct real a = real_of(T_f32, x);
	const bool negative = a.negative;
	long double low, step, part;
	uint64_t v;

	if (a.kind == REAL_NAN)
		return real_round(to, a, RN, true);
	if (negative && flags & FLAG_RELU)
		return 0;
	a.negative = false;
	v = real_round(to, a, RZ, true);
	low = real_approx(real_of(to, v));
	step = v == f->max ? low - real_approx(real_of(to, v - 1))
		: real_approx(real_of(to, v + 1)) - low;
	part = a.kind == REAL_INF ? 1 : (real_approx(a) - low) / step;
	if (part >= 1)
		v = over;
	else if (ldexpl(part, i->p[P_WIDTH]) + random >= ldexpl(1, i->p[P_WIDTH]))
		v = v == f->max ? over : v + 1;
	return v | (uint64_t)negative << (f->ebits + f->mbits);
}

static void lane_stochastic(const struct item *i, const uint64_t *s, struct want *w)
{
	const unsigned n = (unsigned)i->p[P_PARTS];
	const unsigned bits = type_bits(i->dst[0]) / n;

	w->v = 0;
	for (unsigned k = 0; k < n; k++)
		w->v |= stochastic(i, s[n - 1 - k], random_bits(i, s[n], k)) << k * bits;
}

void class_cvt_stochastic(struct item *i, struct rng *r)
{
	static const enum type wide[] = { T_f16, T_bf16 }, narrow[] = { T_e4m3, T_e5m2, T_e3m2, T_e2m3,
		T_e2m1 };
	const bool pairs = rng_once_in(r, 2);
	const enum type to = pairs ? RNG_OF(r, wide) : RNG_OF(r, narrow);
	int f = rng_once_in(r, 3) ? FLAG_RELU : 0;

	f |= !pairs || rng_once_in(r, 2) ? FLAG_SATFINITE : 0;
	i->p[P_TO] = (int)to;
	i->p[P_FLAGS] = f;
	i->p[P_PARTS] = pairs ? 2 : 4;
	i->p[P_WIDTH] = to == T_f16 ? 13 : 16;
	item_scalar(i, r, lane_stochastic, to == T_e2m1 ? "b16" : "b32",
		pairs ? "f32! f32! b32!" : "f32! f32! f32! f32! b32!", "cvt.rs%s%s.%sx%d.f32 d, %s;",
		f & FLAG_RELU ? ".relu" : "", f & FLAG_SATFINITE ? ".satfinite" : "", type_name(to),
		i->p[P_PARTS], pairs ? "a, b, c" : "{a, b, c, e}, f");
}

/* ---- cvt.pack ---- */

static void lane_pack(const struct item *i, const uint64_t *s, struct want *w)
{
	unsigned bits = (unsigned)i->p[P_TO];
	bool sign = i->p[P_FLAGS];
	int64_t lo = sign ? -(1ll << (bits - 1)) : 0, hi = (1ll << (bits - sign)) - 1;
	uint64_t v = bits == 16 ? 0 : s[2] << 2 * bits;

	for (unsigned k = 0; k < 2; k++) {
		int64_t x = (int32_t)s[1 - k];
		x = x < lo ? lo : x > hi ? hi : x;
		v |= ((uint64_t)x & ((1ull << bits) - 1)) << k * bits;
	}
	w->v = v;
}

void class_cvt_pack(struct item *i, struct rng *r)
{
	static const unsigned widths[] = { 16, 8, 4, 2 };
	unsigned bits = RNG_OF(r, widths);
	bool sign = rng_once_in(r, 2);

	i->p[P_TO] = (int)bits;
	i->p[P_FLAGS] = sign;
	item_scalar(i, r, lane_pack, "b32", bits == 16 ? "s32 s32" : "s32 s32 b32",
		"cvt.pack.sat.%c%u.s32%s", sign ? 's' : 'u', bits, bits == 16 ? "" : ".b32");
}
