/* Selection and comparison. References: ISA 9.7.6 and 9.7.7. */
#include "conform.h"
#include "real.h"

#include <stdio.h>
#include <string.h>

enum { P_TYPE, P_CMP, P_BOOL, P_FTZ, P_NEG, P_OUT };

static const enum type plain[] = { T_b16, T_b32, T_b64, T_u16, T_u32, T_u64, T_s16, T_s32, T_s64,
	T_f32, T_f64 };

static struct real flushed(enum type t, uint64_t v, bool ftz)
{
	struct real a = real_of(t, v);

	if (ftz && real_is_subnormal(t, v))
		a.kind = REAL_ZERO;
	return a;
}

/* ---- selp slct mov ---- */

enum { SELP, SLCT, MOV };

static void lane_select(const struct item *i, const uint64_t *s, struct want *w)
{
	bool first = true;

	if (i->p[P_CMP] == SELP)
		first = s[2] != 0;
	else if (i->p[P_CMP] == SLCT && i->p[P_BOOL]) {
		/* a NaN selects the second; -0 is equal to 0 */
		struct real c = flushed(T_f32, s[2], i->p[P_FTZ]);
		first = c.kind != REAL_NAN && (c.kind == REAL_ZERO || !c.negative);
	} else if (i->p[P_CMP] == SLCT)
		first = (int32_t)s[2] >= 0;
	w->v = first ? s[0] : s[1];
}

void class_select(struct item *i, struct rng *r)
{
	enum type t = RNG_OF(r, plain);
	const char *n = type_name(t);
	char ops[48];

	i->p[P_CMP] = (int)rng_below(r, 3);
	i->p[P_BOOL] = (int)rng_below(r, 2);
	i->p[P_FTZ] = i->p[P_BOOL] && rng_once_in(r, 2);
	switch (i->p[P_CMP]) {
	case SELP:
		snprintf(ops, sizeof ops, "%s %s pred", n, n);
		item_scalar(i, r, lane_select, n, ops, "selp.%s", n);
		break;
	case SLCT:
		snprintf(ops, sizeof ops, "%s %s %s", n, n, i->p[P_BOOL] ? "f32" : "s32");
		item_scalar(i, r, lane_select, n, ops, "slct%s.%s.%s", i->p[P_FTZ] ? ".ftz" : "", n,
			i->p[P_BOOL] ? "f32" : "s32");
		break;
	case MOV:
		item_scalar(i, r, lane_select, n, n, "mov.%s", n);
		break;
	}
}

/* ---- setp set ---- */

/* The names for integers; floats add the unordered ones. */
static const char *const cmp_name[] = { "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs",
	"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan" };
static const char *const bool_name[] = { "", ".and", ".or", ".xor" };

static bool compares(const struct item *i, const uint64_t *s)
{
	enum type t = (enum type)i->p[P_TYPE];
	int cmp = i->p[P_CMP];

	if (type_kind(t) == KIND_FLOAT) {
		struct real a = flushed(t, s[0], i->p[P_FTZ]), b = flushed(t, s[1], i->p[P_FTZ]);
		bool unordered = a.kind == REAL_NAN || b.kind == REAL_NAN;
		if (cmp >= 16)
			return unordered == (cmp == 17);
		if (unordered)
			return cmp >= 10;
		return real_order(cmp >= 10 ? cmp - 10 : cmp, real_compare(a, b));
	}
	if (cmp >= 6) /* lo ls hi hs: unsigned */
		return real_order(cmp - 4, s[0] < s[1] ? -1 : s[0] > s[1]);
	if (type_signed(t))
		return real_order(cmp, type_extend(t, s[0]) < type_extend(t, s[1]) ? -1
			: type_extend(t, s[0]) > type_extend(t, s[1]));
	return real_order(cmp, s[0] < s[1] ? -1 : s[0] > s[1]);
}

static bool combined(const struct item *i, bool v, const uint64_t *s)
{
	bool c = (s[2] != 0) != (i->p[P_NEG] != 0);

	switch (i->p[P_BOOL]) {
	case 1: return v && c;
	case 2: return v || c;
	case 3: return v != c;
	default: return v;
	}
}

static void lane_compare(const struct item *i, const uint64_t *s, struct want *w)
{
	bool v = compares(i, s);

	if (i->p[P_OUT] == T_pred) {
		w[0].v = combined(i, v, s);
		w[1].v = combined(i, !v, s);
		return;
	}
	v = combined(i, v, s);
	w->v = !v ? 0 : i->p[P_OUT] == T_f32 ? 0x3f800000 : ~0ull;
}

void class_compare(struct item *i, struct rng *r)
{
	static const enum type outs[] = { T_u32, T_s32, T_f32 };
	enum type t = RNG_OF(r, plain), out = rng_once_in(r, 3) ? RNG_OF(r, outs) : T_pred;
	int cmp, b = rng_once_in(r, 2) ? 1 + (int)rng_below(r, 3) : 0;
	bool ftz = t == T_f32 && rng_once_in(r, 2), neg = b && rng_once_in(r, 3);
	const char *n = type_name(t);
	char ops[48];

	if (type_kind(t) == KIND_FLOAT) {
		cmp = (int)rng_below(r, 14);
		if (cmp >= 6)
			cmp += 4;
	} else if (type_kind(t) == KIND_BITS)
		cmp = (int)rng_below(r, 2);
	else
		cmp = (int)rng_below(r, type_signed(t) ? 6 : 10);
	i->p[P_TYPE] = (int)t;
	i->p[P_CMP] = cmp;
	i->p[P_BOOL] = b;
	i->p[P_FTZ] = ftz;
	i->p[P_NEG] = neg;
	i->p[P_OUT] = (int)out;
	snprintf(ops, sizeof ops, "%s %s%s", n, n, b ? " pred" : "");
	if (out == T_pred)
		item_scalar(i, r, lane_compare, "pred pred", ops,
			neg ? "setp.%s%s%s.%s d|q, a, b, !c;" : "setp.%s%s%s.%s", cmp_name[cmp],
			bool_name[b], ftz ? ".ftz" : "", n);
	else
		item_scalar(i, r, lane_compare, type_name(out), ops,
			neg ? "set.%s%s%s.%s.%s d, a, b, !c;" : "set.%s%s%s.%s.%s", cmp_name[cmp],
			bool_name[b], ftz ? ".ftz" : "", type_name(out), n);
}
