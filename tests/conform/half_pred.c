/* Comparisons of f16 and bf16. References: ISA 9.7.7 and 9.7.6 (half precision set, setp). */
#include "conform.h"
#include "real.h"

#include <stdio.h>

enum { P_FROM, P_TO, P_CMP, P_BOOL, P_FTZ, P_NEG };

static const char *const cmp_name[] = { "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu",
	"leu", "gtu", "geu", "num", "nan" };
static const char *const bool_name[] = { "", ".and", ".or", ".xor" };

static bool compares(int cmp, bool ftz, enum type t, uint64_t x, uint64_t y)
{
	struct real a = real_of(t, x), b = real_of(t, y);

	if (ftz && real_is_subnormal(t, x))
		a.kind = REAL_ZERO;
	if (ftz && real_is_subnormal(t, y))
		b.kind = REAL_ZERO;
	if (a.kind == REAL_NAN || b.kind == REAL_NAN)
		return cmp >= 6 && cmp != 12;
	if (cmp >= 12)
		return cmp == 12;
	return real_order(cmp % 6, real_compare(a, b));
}

/* One result, combined with the predicate c */
static bool result(const struct item *i, const uint64_t *s, unsigned k)
{
	const enum type t = type_element((enum type)i->p[P_FROM]);
	bool v = compares(i->p[P_CMP], i->p[P_FTZ], t, s[0] >> 16 * k & 0xffff,
		s[1] >> 16 * k & 0xffff);
	bool c = (s[2] != 0) != (i->p[P_NEG] != 0);

	return i->p[P_BOOL] == 0 ? v : i->p[P_BOOL] == 1 ? v && c : i->p[P_BOOL] == 2 ? v || c
		: v != c;
}

static void lane_half_compare(const struct item *i, const uint64_t *s, struct want *w)
{
	const enum type to = (enum type)i->p[P_TO];
	const unsigned n = type_elements((enum type)i->p[P_FROM]);
	const uint64_t one = type_element(to) == T_f16 ? 0x3c00 : type_element(to) == T_bf16
		? 0x3f80
		: n == 2 ? 0xffff : ~0ull;

	if (to == T_pred) {
		for (unsigned k = 0; k < n; k++)
			w[k].v = result(i, s, k);
		return;
	}
	for (unsigned k = 0; k < n; k++)
		w->v |= result(i, s, k) ? (n == 2 ? one << 16 * k : one) : 0;
}

void class_half_compare(struct item *i, struct rng *r)
{
	static const enum type froms[] = { T_f16, T_bf16, T_f16x2, T_bf16x2 };
	static const enum type single[] = { T_u16, T_s16, T_u32, T_s32 }, two[] = { T_u32, T_s32 };
	enum type from = RNG_OF(r, froms);
	bool pair = type_elements(from) == 2, f16 = type_element(from) == T_f16;
	enum type to = rng_once_in(r, 2) ? T_pred : rng_once_in(r, 3) ? from
		: pair ? RNG_OF(r, two) : RNG_OF(r, single);
	const char *n = type_name(from), *d;
	char ops[32];

	i->p[P_FROM] = (int)from;
	i->p[P_TO] = (int)to;
	i->p[P_CMP] = (int)rng_below(r, ARRAY_SIZE(cmp_name));
	i->p[P_BOOL] = rng_once_in(r, 2) ? 1 + (int)rng_below(r, 3) : 0;
	i->p[P_FTZ] = f16 && rng_once_in(r, 2);
	i->p[P_NEG] = i->p[P_BOOL] && rng_once_in(r, 3);
	snprintf(ops, sizeof ops, "%s! %s!%s", n, n, i->p[P_BOOL] ? " pred" : "");
	d = to == T_pred && pair ? "d|q" : "d";
	item_scalar(i, r, lane_half_compare, to != T_pred ? type_name(to) : pair ? "pred pred"
		: "pred",
		ops, "%s.%s%s%s%s%s.%s %s, a, b%s%s;", to == T_pred ? "setp" : "set",
			cmp_name[i->p[P_CMP]],
		bool_name[i->p[P_BOOL]], i->p[P_FTZ] ? ".ftz" : "", to == T_pred ? "" : ".",
		to == T_pred ? "" : type_name(to), n, d, i->p[P_BOOL] ? ", " : "",
		!i->p[P_BOOL] ? "" : i->p[P_NEG] ? "!c" : "c");
}

/* ---- mov: packing and unpacking, 128 bits ---- */

enum { P_PARTS, P_BITS, P_PACK };

static void lane_pack(const struct item *i, const uint64_t *s, struct want *w)
{
	const unsigned n = (unsigned)i->p[P_PARTS], bits = (unsigned)i->p[P_BITS];
	const uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;

	if (!i->p[P_PACK]) {
		for (unsigned k = 0; k < n; k++)
			w[k].v = (bits == 64 ? s[k] : s[0] >> k * bits) & mask;
		return;
	}
	for (unsigned k = 0; k < n; k++)
		if (bits == 64)
			w[k].v = s[k];
		else
			w->v |= (s[k] & mask) << k * bits;
}

void class_mov_pack(struct item *i, struct rng *r)
{
	/* parts and the bits of each */
	static const struct { unsigned n, bits; } forms[] = { { 2, 16 }, { 2, 32 }, { 4, 16 },
		{ 2, 64 } };
	static const char *const regs[] = { "a", "b", "c", "e" }, *const outs[] = { "d", "q", "v",
		"w" };
	unsigned f = rng_below(r, ARRAY_SIZE(forms)), n = forms[f].n, bits = forms[f].bits;
	bool pack = rng_once_in(r, 2);
	struct text list = { 0 }, types = { 0 };
	char whole[8];

	i->p[P_PARTS] = (int)n;
	i->p[P_BITS] = (int)bits;
	i->p[P_PACK] = pack;
	for (unsigned k = 0; k < n; k++) {
		text_printf(&list, "%s%s", k ? ", " : "", pack || bits == 64 ? regs[k] : outs[k]);
		text_printf(&types, "%sb%u", k ? " " : "", bits);
	}
	snprintf(whole, sizeof whole, "b%u", n * bits);
	if (bits == 64)
		item_scalar(i, r, lane_pack, "b64 b64", "b64 b64",
			".reg .b128 x; mov.b128 x, {a, b}; mov.b128 {d, q}, x;");
	else if (pack)
		item_scalar(i, r, lane_pack, whole, types.at, "mov.%s d, {%s};", whole, list.at);
	else
		item_scalar(i, r, lane_pack, types.at, whole, "mov.%s {%s}, a;", whole, list.at);
	text_free(&list);
	text_free(&types);
}
