/* SIMD video instructions. Reference: ISA 9.7.17, "SIMD Video Instructions", without selectors and
 * masks: each part is computed exactly, and clamped (.sat) or cut to its width; .add sums the exact
 * values and c. */
#include "conform.h"

enum { P_OP, P_PARTS, P_DSIGN, P_ASIGN, P_BSIGN, P_SUM, P_SAT };

static int64_t part(const struct item *i, uint64_t v, unsigned k, bool is_signed)
{
	const enum type t = i->p[P_PARTS] == 4 ? is_signed ? T_s8 : T_u8 : is_signed ? T_s16 : T_u16;

	return type_extend(t, v >> k * type_bits(t) & type_mask(t));
}

static int64_t compute(int op, int64_t a, int64_t b)
{
	switch (op) {
	case 0: return a + b;
	case 1: return a - b;
	case 2: return a + b >= 0 ? (a + b + 1) / 2 : (a + b - 1) / 2; /* away from zero */
	case 3: return a < b ? b - a : a - b;
	case 4: return a < b ? a : b;
	default: return a < b ? b : a;
	}
}

static void lane_video(const struct item *i, const uint64_t *s, struct want *w)
{
	const unsigned n = (unsigned)i->p[P_PARTS], bits = 32 / n;
	const int64_t top = (1ll << (bits - !!i->p[P_DSIGN])) - 1, low = i->p[P_DSIGN] ? -top - 1 : 0;
	uint64_t sum = s[2], parts = 0;

	for (unsigned k = 0; k < n; k++) {
		int64_t v = compute(i->p[P_OP], part(i, s[0], k, i->p[P_ASIGN]),
			part(i, s[1], k, i->p[P_BSIGN]));

		sum += (uint64_t)v;
		if (i->p[P_SAT])
			v = v > top ? top : v < low ? low : v;
		parts |= ((uint64_t)v & ((1u << bits) - 1)) << bits * k;
	}
	w->v = (uint32_t)(i->p[P_SUM] ? sum : parts);
}

void class_video(struct item *i, struct rng *r)
{
	static const char *const ops[] = { "add", "sub", "avrg", "absdiff", "min", "max" };

	i->p[P_OP] = (int)rng_below(r, ARRAY_SIZE(ops));
	i->p[P_PARTS] = rng_once_in(r, 2) ? 2 : 4;
	i->p[P_DSIGN] = rng_once_in(r, 2);
	i->p[P_ASIGN] = rng_once_in(r, 2);
	i->p[P_BSIGN] = rng_once_in(r, 2);
	i->p[P_SUM] = rng_once_in(r, 3);
	i->p[P_SAT] = !i->p[P_SUM] && rng_once_in(r, 2);
	item_scalar(i, r, lane_video, "b32", "b32! b32! b32!", "v%s%d.%s.%s.%s%s%s", ops[i->p[P_OP]],
		i->p[P_PARTS], i->p[P_DSIGN] ? "s32" : "u32", i->p[P_ASIGN] ? "s32" : "u32",
		i->p[P_BSIGN] ? "s32" : "u32", i->p[P_SAT] ? ".sat" : "", i->p[P_SUM] ? ".add" : "");
}
