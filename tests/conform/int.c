/* Integer arithmetic. References: ISA 9.7.1, in 128-bit integers. */
#include "conform.h"

#include <stdio.h>
#include <string.h>

typedef __int128 I;

static const enum type all[] = { T_u16, T_s16, T_u32, T_s32, T_u64, T_s64 };
static const enum type pairs[] = { T_u16x2, T_s16x2 };

/* Element k of a packed operand, extended */
static I part(enum type t, uint64_t v, unsigned k)
{
	enum type e = type_element(t);
	uint64_t x = v >> k * type_bits(e) & type_mask(e);

	return type_signed(e) ? (I)type_extend(e, x) : (I)x;
}

static I clamp(I v, I lo, I hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/* ---- add, sub ---- */

enum { P_TYPE, P_OP, P_MODE, P_X };
enum { OP_ADD, OP_SUB };

static void lane_add(const struct item *i, const uint64_t *s, struct want *w)
{
	enum type t = (enum type)i->p[P_TYPE], e = type_element(t);
	uint64_t v = 0;

	for (unsigned k = 0; k < type_elements(t); k++) {
		I a = part(t, s[0], k), b = part(t, s[1], k), r = i->p[P_OP] == OP_ADD ? a + b
			: a - b;
		if (i->p[P_MODE])
			r = clamp(r, INT32_MIN, INT32_MAX);
		v |= ((uint64_t)r & type_mask(e)) << k * type_bits(e);
	}
	w->v = v;
}

void class_int_add(struct item *i, struct rng *r)
{
	enum type t = rng_once_in(r, 5) ? RNG_OF(r, pairs) : RNG_OF(r, all);
	bool sat = rng_once_in(r, 6), sub = rng_once_in(r, 2);
	char ops[32];

	if (sat)
		t = T_s32;
	if (type_elements(t) > 1)
		sub = false;
	i->p[P_TYPE] = (int)t;
	i->p[P_OP] = sub ? OP_SUB : OP_ADD;
	i->p[P_MODE] = sat;
	snprintf(ops, sizeof ops, "%s %s", type_name(t), type_name(t));
	item_scalar(i, r, lane_add, type_name(t), ops, "%s%s.%s", sub ? "sub" : "add",
		sat ? ".sat" : "", type_name(t));
}

/* ---- mul, mad ---- */

enum { LO, HI, WIDE };
static const char *const half_name[] = { ".lo", ".hi", ".wide" };

/* P_X: 1 with addend, 2 with .sat */
static void lane_mul(const struct item *i, const uint64_t *s, struct want *w)
{
	enum type t = (enum type)i->p[P_TYPE];
	unsigned bits = type_bits(t);
	/* 128 bits hold the product of two signed words, and of two unsigned ones as unsigned */
	unsigned __int128 p = (unsigned __int128)part(t, s[0], 0) * (unsigned __int128)part(t, s[1],
		0);
	uint64_t low = (uint64_t)p;
	uint64_t high = type_signed(t) ? (uint64_t)((I)p >> bits) : (uint64_t)(p >> bits);
	uint64_t v = i->p[P_MODE] == HI ? high : low;

	if (i->p[P_X] == 2)
		w->v = (uint64_t)clamp((I)(int32_t)v + (int32_t)s[2], INT32_MIN, INT32_MAX);
	else
		w->v = v + (i->p[P_X] ? s[2] : 0);
}

static void lane_mul24(const struct item *i, const uint64_t *s, struct want *w)
{
	bool sign = type_signed((enum type)i->p[P_TYPE]);
	I f[2];

	for (int k = 0; k < 2; k++) {
		f[k] = s[k] & 0xffffff;
		if (sign && f[k] >> 23)
			f[k] -= 1 << 24;
	}
	I p = f[0] * f[1]; /* 48 bits */
	I v = i->p[P_MODE] == HI ? (int32_t)(p >> 16) : (int32_t)p;
	if (i->p[P_X] == 2)
		w->v = (uint64_t)clamp(v + (int32_t)s[2], INT32_MIN, INT32_MAX);
	else
		w->v = (uint64_t)v + (i->p[P_X] ? s[2] : 0);
}

static enum type doubled(enum type t)
{
	return t == T_u16 ? T_u32 : t == T_s16 ? T_s32 : t == T_u32 ? T_u64 : T_s64;
}

void class_int_mul(struct item *i, struct rng *r)
{
	bool m24 = rng_once_in(r, 5), mad = rng_once_in(r, 2);
	enum type t = RNG_OF(r, all), d;
	int mode = (int)rng_below(r, 3);
	bool sat = mad && rng_once_in(r, 6);
	char ops[48];

	if (m24) {
		t = rng_once_in(r, 2) ? T_u32 : T_s32;
		mode %= 2;
	} else if (mode == WIDE && type_bits(t) == 64)
		mode = LO;
	if (sat) {
		t = T_s32;
		mode = HI;
	}
	d = mode == WIDE ? doubled(t) : t;
	i->p[P_TYPE] = (int)t;
	i->p[P_MODE] = mode;
	i->p[P_X] = mad ? 1 + sat : 0;
	snprintf(ops, sizeof ops, "%s %s%s%s", type_name(t), type_name(t), mad ? " " : "",
		mad ? type_name(d) : "");
	item_scalar(i, r, m24 ? lane_mul24 : lane_mul, type_name(d), ops, "%s%s%s%s.%s",
		mad ? "mad" : "mul", m24 ? "24" : "", half_name[mode], sat ? ".sat" : "",
		type_name(t));
}

/* ---- div, rem: by zero undefined ---- */

static void lane_div(const struct item *i, const uint64_t *s, struct want *w)
{
	enum type t = (enum type)i->p[P_TYPE];
	I a = part(t, s[0], 0), b = part(t, s[1], 0);

	if (b == 0)
		w->how = WANT_ANY;
	else
		w->v = (uint64_t)(i->p[P_OP] ? a % b : a / b);
}

void class_int_div(struct item *i, struct rng *r)
{
	enum type t = RNG_OF(r, all);
	char ops[32];

	i->p[P_TYPE] = (int)t;
	i->p[P_OP] = (int)rng_below(r, 2);
	snprintf(ops, sizeof ops, "%s %s", type_name(t), type_name(t));
	item_scalar(i, r, lane_div, type_name(t), ops, "%s.%s", i->p[P_OP] ? "rem" : "div",
		type_name(t));
}

/* ---- sad, abs, neg, min, max ---- */

enum { SAD, ABS, NEG, MIN, MAX };
static const char *const order_name[] = { "sad", "abs", "neg", "min", "max" };

static void lane_order(const struct item *i, const uint64_t *s, struct want *w)
{
	enum type t = (enum type)i->p[P_TYPE], e = type_element(t);
	uint64_t v = 0;

	for (unsigned k = 0; k < type_elements(t); k++) {
		I a = part(t, s[0], k), b = part(t, s[1], k), d = 0;
		switch (i->p[P_OP]) {
		case SAD: d = (I)s[2] + (a < b ? b - a : a - b); break;
		case ABS: d = a < 0 ? -a : a; break;
		case NEG: d = -a; break;
		case MIN: d = a < b ? a : b; break;
		case MAX: d = a > b ? a : b; break;
		}
		if (i->p[P_MODE] && d < 0)
			d = 0;
		v |= ((uint64_t)d & type_mask(e)) << k * type_bits(e);
	}
	w->v = v;
}

void class_int_order(struct item *i, struct rng *r)
{
	static const enum type with_sign[] = { T_s16, T_s32, T_s64 };
	static const enum type relu[] = { T_s32, T_s16x2 };
	int op = (int)rng_below(r, 5);
	bool one = op == ABS || op == NEG, mode = op >= MIN && rng_once_in(r, 4);
	enum type t = mode ? RNG_OF(r, relu) : one ? RNG_OF(r, with_sign)
		: op >= MIN && rng_once_in(r, 4) ? RNG_OF(r, pairs) : RNG_OF(r, all);
	char ops[48];

	i->p[P_TYPE] = (int)t;
	i->p[P_OP] = op;
	i->p[P_MODE] = mode;
	snprintf(ops, sizeof ops, one ? "%s" : op == SAD ? "%s %s %s" : "%s %s", type_name(t),
		type_name(t), type_name(t));
	item_scalar(i, r, lane_order, type_name(t), ops, "%s%s.%s", order_name[op],
		mode ? ".relu" : "", type_name(t));
}

/* ---- dp2a, dp4a ---- */

static void lane_dot(const struct item *i, const uint64_t *s, struct want *w)
{
	bool sa = i->p[P_X] & 1, sb = i->p[P_X] & 2;
	uint32_t sum = (uint32_t)s[2];

	for (unsigned k = 0; k < 4; k++) {
		uint8_t b = (uint8_t)(s[1] >> 8 * k);
		int y = sb ? (int8_t)b : b, x;
		if (i->p[P_OP]) { /* dp2a: halves of a with two bytes of b */
			if ((int)(k / 2) != i->p[P_MODE])
				continue;
			uint16_t a = (uint16_t)(s[0] >> 16 * (k % 2));
			x = sa ? (int16_t)a : a;
		} else {
			uint8_t a = (uint8_t)(s[0] >> 8 * k);
			x = sa ? (int8_t)a : a;
		}
		sum += (uint32_t)(x * y);
	}
	w->v = sum;
}

void class_dot(struct item *i, struct rng *r)
{
	bool two = rng_once_in(r, 2), hi = rng_once_in(r, 2);

	i->p[P_X] = (int)rng_below(r, 4);
	i->p[P_OP] = two;
	i->p[P_MODE] = hi;
	item_scalar(i, r, lane_dot, "b32", "b32 b32 b32", "%s%s.%s.%s", two ? "dp2a" : "dp4a",
		!two ? "" : hi ? ".hi" : ".lo", i->p[P_X] & 1 ? "s32" : "u32",
		i->p[P_X] & 2 ? "s32" : "u32");
}

/* ---- carry chains ---- */

enum { C_ADD, C_SUB, C_MADLO, C_MADHI, C_COUNT };
enum { LINKS = 3 };

/* p[k]: operation of link k, with bit 4 if it does not set the flag; p[LINKS]: the type. The flag
 * is the carry of additions and the borrow of subtractions. */
static void lane_carry(const struct item *i, const uint64_t *s, struct want *w)
{
	enum type t = (enum type)i->p[LINKS];
	unsigned bits = type_bits(t);
	unsigned flag = 0;

	for (unsigned k = 0; k < LINKS; k++) {
		/* operands rotate, so that links differ */
		uint64_t a = s[k], b = s[(k + 1) % 4], c = s[(k + 2) % 4];
		unsigned in = k ? flag : 0;
		unsigned __int128 v;
		int op = i->p[k] & 15;
		if (op >= C_MADLO) {
			unsigned __int128 p = (unsigned __int128)part(t, a, 0)
				* (unsigned __int128)part(t, b, 0);
			uint64_t x = op == C_MADLO ? (uint64_t)p
				: type_signed(t) ? (uint64_t)((I)p >> bits) : (uint64_t)(p >> bits);
			v = (unsigned __int128)(x & type_mask(t)) + c + in;
		} else if (op == C_ADD)
			v = (unsigned __int128)a + b + in;
		else
			v = (unsigned __int128)a - b - in;
		if (!(i->p[k] & 16))
			flag = (unsigned)(v >> bits) & 1;
		w[k].v = (uint64_t)v;
	}
	w[LINKS].v = flag;
}

void class_carry(struct item *i, struct rng *r)
{
	static const enum type types[] = { T_u32, T_s32, T_u64, T_s64 };
	enum type t = RNG_OF(r, types);
	const char *n = type_name(t);
	static const char *const reg[] = { "a", "b", "c", "e" }, *const out[] = { "d", "q", "v" };
	struct text p = { 0 };
	char dst[48], src[48];

	i->p[LINKS] = (int)t;
	for (unsigned k = 0; k < LINKS; k++) {
		/* One kind of chain: what a borrow means to an addition is not defined */
		int op = k ? (i->p[0] & 15) == C_SUB ? C_SUB : (int[]){ C_ADD, C_MADLO, C_MADHI }
			[rng_below(r, 3)] : (int)rng_below(r, C_COUNT);
		bool keep = k == 1 && rng_once_in(r, 4);
		i->p[k] = op | keep << 4;
		text_printf(&p, "%s%s%s%s.%s %s, %s, %s", op == C_ADD ? "add" : op == C_SUB ? "sub"
			: "mad",
			k ? "c" : "", op == C_MADLO ? ".lo" : op == C_MADHI ? ".hi" : "", keep ? ""
				: ".cc",
			n, out[k], reg[k], reg[(k + 1) % 4]);
		text_printf(&p, op >= C_MADLO ? ", %s; " : "; ", reg[(k + 2) % 4]);
	}
	if ((i->p[0] & 15) == C_SUB)
		text_printf(&p, "subc.%s w, 0, 0; neg.s%u w, w;", n, type_bits(t));
	else
		text_printf(&p, "addc.%s w, 0, 0;", n);
	snprintf(dst, sizeof dst, "%s %s %s %s", n, n, n, n);
	snprintf(src, sizeof src, "%s %s %s %s", n, n, n, n);
	item_scalar(i, r, lane_carry, dst, src, "%s", p.at);
	text_free(&p);
}
