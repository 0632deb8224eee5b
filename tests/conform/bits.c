/* Logic, shifts, bit fields, permutes. References: ISA 9.7.1, 9.7.8 and 9.7.9. */
#include "conform.h"

#include <stdio.h>

enum { P_TYPE, P_OP, P_MODE, P_X };

static const enum type words[] = { T_b16, T_b32, T_b64 };
static const enum type wide[] = { T_b32, T_b64 };

/* ---- logic ---- */

enum { AND, OR, XOR, NOT, CNOT, LOP3, LOP3_P };
static const char *const logic_name[] = { "and", "or", "xor", "not", "cnot" };
static const char *const bool_name[] = { "and", "or", "xor" };

static bool combine(int op, bool x, bool y)
{
	return op == AND ? x && y : op == OR ? x || y : x != y;
}

static void lane_logic(const struct item *i, const uint64_t *s, struct want *w)
{
	uint64_t v = 0;

	switch (i->p[P_OP]) {
	case AND: w->v = s[0] & s[1]; return;
	case OR: w->v = s[0] | s[1]; return;
	case XOR: w->v = s[0] ^ s[1]; return;
	case NOT: w->v = ~s[0]; return;
	case CNOT: w->v = s[0] == 0; return;
	default: break;
	}
	for (unsigned k = 0; k < 32; k++)
		v |= (uint64_t)(i->p[P_MODE] >> ((s[0] >> k & 1) << 2 | (s[1] >> k & 1) << 1
			| (s[2] >> k & 1)) & 1) << k;
	w[0].v = v;
	if (i->p[P_OP] == LOP3_P)
		w[1].v = combine(i->p[P_X], v != 0, s[3] & 1);
}

void class_logic(struct item *i, struct rng *r)
{
	static const enum type with_pred[] = { T_pred, T_b16, T_b32, T_b64 };
	int op = (int)rng_below(r, 7);
	enum type t = op <= NOT ? RNG_OF(r, with_pred) : RNG_OF(r, words);
	char ops[32];

	i->p[P_OP] = op;
	i->p[P_MODE] = (int)rng_below(r, 256);
	i->p[P_X] = (int)rng_below(r, 3);
	if (op == LOP3) {
		item_scalar(i, r, lane_logic, "b32", "b32 b32 b32", "lop3.b32 d, a, b, c, %d;",
			i->p[P_MODE]);
		return;
	}
	if (op == LOP3_P) {
		/* the ISA allows .or and .and */
		i->p[P_X] %= 2;
		item_scalar(i, r, lane_logic, "b32 pred", "b32 b32 b32 pred",
			"lop3.%s.b32 d|q, a, b, c, %d, e;", bool_name[i->p[P_X]], i->p[P_MODE]);
		return;
	}
	snprintf(ops, sizeof ops, op <= XOR ? "%s %s" : "%s", type_name(t), type_name(t));
	item_scalar(i, r, lane_logic, type_name(t), ops, "%s.%s", logic_name[op], type_name(t));
}

/* ---- shifts ---- */

enum { SHL, SHR, SHF };

static void lane_shift(const struct item *i, const uint64_t *s, struct want *w)
{
	enum type t = (enum type)i->p[P_TYPE];
	unsigned bits = type_bits(t);
	uint32_t n = (uint32_t)s[1];

	if (i->p[P_OP] == SHF) {
		uint64_t both = s[1] << 32 | s[0];
		n = (uint32_t)s[2];
		n = i->p[P_X] ? (n < 32 ? n : 32) : n & 31;
		w->v = i->p[P_MODE] ? both >> n : (n == 32 ? s[0] : both << n >> 32);
		return;
	}
	/* beyond the width all bits are shifted out */
	if (i->p[P_OP] == SHL)
		w->v = n >= bits ? 0 : s[0] << n;
	else if (type_signed(t))
		w->v = (uint64_t)(type_extend(t, s[0]) >> (n >= bits ? bits - 1 : n));
	else
		w->v = n >= bits ? 0 : s[0] >> n;
}

void class_shift(struct item *i, struct rng *r)
{
	static const enum type right[] = { T_b16, T_b32, T_b64, T_u16, T_u32, T_u64, T_s16, T_s32,
		T_s64 };
	enum type t;
	char ops[32];

	i->p[P_OP] = (int)rng_below(r, 3);
	if (i->p[P_OP] == SHF) {
		i->p[P_MODE] = (int)rng_below(r, 2);
		i->p[P_X] = (int)rng_below(r, 2);
		item_scalar(i, r, lane_shift, "b32", "b32 b32 u32~", "shf.%s.%s.b32",
			i->p[P_MODE] ? "r" : "l", i->p[P_X] ? "clamp" : "wrap");
		return;
	}
	t = i->p[P_OP] == SHL ? RNG_OF(r, words) : RNG_OF(r, right);
	i->p[P_TYPE] = (int)t;
	snprintf(ops, sizeof ops, "%s u32~", type_name(t));
	item_scalar(i, r, lane_shift, type_name(t), ops, "%s.%s",
		i->p[P_OP] == SHL ? "shl" : "shr", type_name(t));
}

/* ---- popc clz bfind brev fns ---- */

enum { POPC, CLZ, BFIND, BREV, FNS };

static uint64_t top_bit(uint64_t v, unsigned bits)
{
	while (bits-- > 0)
		if (v >> bits & 1)
			return bits;
	return UINT32_MAX;
}

static uint64_t nth_set(uint32_t mask, uint32_t base, int32_t n)
{
	int64_t count = n < 0 ? -(int64_t)n : n;
	int64_t at = base;

	if (n == 0)
		return mask >> base & 1 ? base : UINT32_MAX;
	for (; at >= 0 && at < 32; at += n > 0 ? 1 : -1)
		if (mask >> at & 1 && --count == 0)
			return (uint64_t)at;
	return UINT32_MAX;
}

static void lane_bits(const struct item *i, const uint64_t *s, struct want *w)
{
	enum type t = (enum type)i->p[P_TYPE];
	unsigned bits = type_bits(t);
	uint64_t v = 0;

	switch (i->p[P_OP]) {
	case POPC:
		for (unsigned k = 0; k < bits; k++)
			v += s[0] >> k & 1;
		break;
	case CLZ:
		v = bits - 1 - top_bit(s[0], bits);
		if (s[0] == 0)
			v = bits;
		break;
	case BFIND: /* signed: the top bit that differs from the sign */
		v = top_bit((type_signed(t) && type_extend(t, s[0]) < 0 ? ~s[0] : s[0])
			& type_mask(t), bits);
		if (i->p[P_MODE] && v != UINT32_MAX)
			v = bits - 1 - v;
		break;
	case BREV:
		for (unsigned k = 0; k < bits; k++)
			v |= (s[0] >> k & 1) << (bits - 1 - k);
		break;
	case FNS: /* undefined: a base beyond the mask, an offset without an absolute value */
		if ((uint32_t)s[1] > 31 || (int32_t)s[2] == INT32_MIN)
			w->how = WANT_ANY;
		else
			v = nth_set((uint32_t)s[0], (uint32_t)s[1], (int32_t)s[2]);
		break;
	}
	w->v = v;
}

void class_bits(struct item *i, struct rng *r)
{
	static const enum type find[] = { T_u32, T_s32, T_u64, T_s64 };
	static const char *const name[] = { "popc", "clz", "bfind", "brev" };
	int op = (int)rng_below(r, 5);
	enum type t = op == BFIND ? RNG_OF(r, find) : RNG_OF(r, wide);

	i->p[P_OP] = op;
	i->p[P_TYPE] = (int)t;
	i->p[P_MODE] = op == BFIND && rng_once_in(r, 2);
	if (op == FNS)
		item_scalar(i, r, lane_bits, "b32", "b32 u32~ s32~", "fns.b32");
	else
		item_scalar(i, r, lane_bits, op == BREV ? type_name(t) : "u32", type_name(t),
			"%s%s.%s",
			name[op], i->p[P_MODE] ? ".shiftamt" : "", type_name(t));
}

/* ---- bit fields ---- */

enum { BFE, BFI, BMSK, SZEXT };

static void lane_field(const struct item *i, const uint64_t *s, struct want *w)
{
	enum type t = (enum type)i->p[P_TYPE];
	unsigned bits = type_bits(t), pos, len;
	const uint64_t *at = i->p[P_OP] == BFI ? s + 2 : i->p[P_OP] == BFE ? s + 1 : s;
	uint64_t v = 0;

	/* positions and lengths are "restricted to the range 0..255" */
	if (i->p[P_OP] <= BFI && bits == 64 && (at[0] > 255 || at[1] > 255)) {
		w->how = WANT_ANY;
		return;
	}
	pos = (unsigned)at[0] & 255;
	len = (unsigned)at[1] & 255;
	switch (i->p[P_OP]) {
	case BFE: {
		unsigned last = pos + len - 1 < bits - 1 ? pos + len - 1 : bits - 1;
		uint64_t sign = type_signed(t) && len ? s[0] >> last & 1 : 0;
		for (unsigned k = 0; k < bits; k++)
			v |= (k < len && pos + k < bits ? s[0] >> (pos + k) & 1 : sign) << k;
		break;
	}
	case BFI:
		v = s[1];
		for (unsigned k = 0; k < len && pos + k < bits; k++)
			v = (v & ~(1ull << (pos + k))) | (s[0] >> k & 1) << (pos + k);
		break;
	case BMSK: { /* .clamp: positions beyond the word give no bits; .wrap: modulo 32 */
		uint64_t a = (uint32_t)s[0], b = (uint32_t)s[1];
		if (i->p[P_MODE] == 0) {
			a &= 31;
			b &= 31;
		}
		for (uint64_t k = a; k < 32 && k < a + b; k++)
			v |= 1ull << k;
		break;
	}
	case SZEXT: { /* the low n bits, extended; n = 0 gives 0 */
		uint64_t n = (uint32_t)s[1];
		n = i->p[P_MODE] == 0 ? n & 31 : n;
		if (n >= 32)
			v = s[0];
		else if (n) {
			v = s[0] & ((1ull << n) - 1);
			if (type_signed(t) && v >> (n - 1))
				v |= ~0ull << n;
		}
		break;
	}
	}
	w->v = v;
}

void class_field(struct item *i, struct rng *r)
{
	static const enum type extract[] = { T_u32, T_s32, T_u64, T_s64 };
	int op = (int)rng_below(r, 4);
	enum type t = op == BFE ? RNG_OF(r, extract) : op == BFI ? RNG_OF(r, wide)
		: op == BMSK ? T_b32 : rng_once_in(r, 2) ? T_u32 : T_s32;
	const char *n = type_name(t), *mode;
	char ops[48];

	i->p[P_OP] = op;
	i->p[P_TYPE] = (int)t;
	i->p[P_MODE] = (int)rng_below(r, 2);
	mode = i->p[P_MODE] ? "clamp" : "wrap";
	switch (op) {
	case BFE:
		snprintf(ops, sizeof ops, "%s u32~ u32~", n);
		item_scalar(i, r, lane_field, n, ops, "bfe.%s", n);
		break;
	case BFI:
		snprintf(ops, sizeof ops, "%s %s u32~ u32~", n, n);
		item_scalar(i, r, lane_field, n, ops, "bfi.%s", n);
		break;
	case BMSK:
		item_scalar(i, r, lane_field, n, "u32~ u32~", "bmsk.%s.b32", mode);
		break;
	case SZEXT:
		snprintf(ops, sizeof ops, "%s u32~", n);
		item_scalar(i, r, lane_field, n, ops, "szext.%s.%s", mode, n);
		break;
	}
}

/* ---- prmt ---- */

static void lane_prmt(const struct item *i, const uint64_t *s, struct want *w)
{
	/* byte k of the result for each mode and selector: ISA, tables of prmt */
	static const uint8_t pick[6][4][4] = {
		{ { 0, 1, 2, 3 }, { 1, 2, 3, 4 }, { 2, 3, 4, 5 }, { 3, 4, 5, 6 } }, /* f4e */
		{ { 0, 7, 6, 5 }, { 1, 0, 7, 6 }, { 2, 1, 0, 7 }, { 3, 2, 1, 0 } }, /* b4e */
		{ { 0, 0, 0, 0 }, { 1, 1, 1, 1 }, { 2, 2, 2, 2 }, { 3, 3, 3, 3 } }, /* rc8 */
		{ { 0, 1, 2, 3 }, { 1, 1, 2, 3 }, { 2, 2, 2, 3 }, { 3, 3, 3, 3 } }, /* ecl */
		{ { 0, 0, 0, 0 }, { 0, 1, 1, 1 }, { 0, 1, 2, 2 }, { 0, 1, 2, 3 } }, /* ecr */
		{ { 0, 1, 0, 1 }, { 2, 3, 2, 3 }, { 0, 1, 0, 1 }, { 2, 3, 2, 3 } }, /* rc16 */
	};
	uint64_t bytes = s[1] << 32 | s[0];
	uint32_t v = 0;

	for (unsigned k = 0; k < 4; k++) {
		unsigned sel = (unsigned)(s[2] >> 4 * k) & 15;
		unsigned n = i->p[P_MODE] ? pick[i->p[P_MODE] - 1][s[2] & 3][k] : sel & 7;
		uint8_t b = (uint8_t)(bytes >> 8 * n);
		if (!i->p[P_MODE] && sel & 8)
			b = b & 0x80 ? 0xff : 0;
		v |= (uint32_t)b << 8 * k;
	}
	w->v = v;
}

void class_prmt(struct item *i, struct rng *r)
{
	static const char *const mode[] = { "", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16" };

	i->p[P_MODE] = rng_once_in(r, 2) ? 0 : 1 + (int)rng_below(r, 6);
	item_scalar(i, r, lane_prmt, "b32", "b32 b32 b32", "prmt.b32%s", mode[i->p[P_MODE]]);
}
