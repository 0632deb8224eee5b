/* Video instructions. Reference: ISA 9.7.18: parts of the sources are extended, computed with
 * exactly, clamped (.sat), and combined with the third source or merged into it. */
#include "conform.h"

#include <stdio.h>

/* What to compute: struct item.data of all three classes. */
struct video {
	char op[12];
	unsigned cmp, parts;
	bool dsign, asign, bsign, sat, wrap;
	enum { MERGE, SUM, LEAST, MOST } second;
	/* Of each part: the source bits lie at [at, at + bits) of b:a, the result in d */
	unsigned a[4], b[4], d[4], abits, bbits, dbits;
	unsigned mask;
	/* vmad */
	bool minus_a, minus_b, minus_c, plus_one;
	unsigned shift;
};

static const char *const comparison[] = { "eq", "ne", "lt", "le", "gt", "ge" };

static int64_t cut(uint64_t v, unsigned at, unsigned bits, bool is_signed)
{
	const enum type t = bits == 8 ? is_signed ? T_s8 : T_u8 : bits == 16 ? is_signed ? T_s16 : T_u16
		: is_signed ? T_s32 : T_u32;

	return type_extend(t, v >> at & type_mask(t));
}

static bool compares(unsigned cmp, int64_t a, int64_t b)
{
	const bool yes[] = { a == b, a != b, a < b, a <= b, a > b, a >= b };

	return yes[cmp];
}

static __int128 compute(const struct video *v, int64_t a, int64_t b)
{
	__int128 r = a;

	switch (v->op[1] << 8 | v->op[2]) {
	case 'a' << 8 | 'd': return a + b;
	case 's' << 8 | 'u': return a - b;
	case 'a' << 8 | 'v': return a + b >= 0 ? (a + b + 1) / 2 : (a + b - 1) / 2; /* from zero */
	case 'a' << 8 | 'b': return a < b ? b - a : a - b;
	case 'm' << 8 | 'i': return a < b ? a : b;
	case 'm' << 8 | 'a': return a < b ? b : a;
	case 's' << 8 | 'e': return compares(v->cmp, a, b);
	}
	/* shifts, one bit at a time */
	for (b = v->wrap ? b % 32 : b > 32 ? 32 : b; b; b--)
		r = v->op[3] == 'l' ? 2 * r : r >= 0 ? r / 2 : (r - 1) / 2;
	/* an intermediate result has 34 bits, the highest is the sign */
	r = (r % ((__int128)1 << 34) + ((__int128)1 << 34)) % ((__int128)1 << 34);
	return r >> 33 ? r - ((__int128)1 << 34) : r;
}

static __int128 limit(__int128 v, unsigned bits, bool is_signed)
{
	const int64_t top = (1ll << (bits - is_signed)) - 1, low = is_signed ? -top - 1 : 0;

	return v > top ? top : v < low ? low : v;
}

static void lane_video(const struct item *i, const uint64_t *s, struct want *w)
{
	const struct video *v = i->data;
	const uint64_t pool = s[1] << 32 | s[0];
	const int64_t c = type_extend(v->dsign ? T_s32 : T_u32, s[2]);
	uint64_t sum = s[2], merged = s[2];
	__int128 t = 0;

	for (unsigned k = 0; k < v->parts; k++) {
		const uint64_t mask = ((1ull << v->dbits) - 1) << v->d[k];

		if (!(v->mask >> k & 1))
			continue;
		t = compute(v, cut(pool, v->a[k], v->abits, v->asign),
			cut(pool, v->b[k], v->bbits, v->bsign));
		t = v->sat ? limit(t, v->dbits, v->dsign) : t;
		sum += (uint64_t)t;
		merged = (merged & ~mask) | ((uint64_t)t << v->d[k] & mask);
	}
	t = type_extend(v->dsign ? T_s32 : T_u32, (uint32_t)t);
	w->v = (uint32_t)(v->second == SUM ? (__int128)sum : v->second == LEAST ? t < c ? t : c
		: v->second == MOST ? t > c ? t : c : (__int128)merged);
}

static const char *type32(bool is_signed)
{
	return is_signed ? "s32" : "u32";
}

static struct video *video_new(struct item *i, struct rng *r, const char *op)
{
	struct video *v = i->data = base_alloc(sizeof *v);

	snprintf(v->op, sizeof v->op, "%s", op);
	v->dsign = v->op[1] == 's' && v->op[2] == 'e' ? false : rng_once_in(r, 2);
	v->asign = rng_once_in(r, 2);
	v->bsign = rng_once_in(r, 2);
	v->cmp = rng_below(r, ARRAY_SIZE(comparison));
	return v;
}

/* The type of d and the modifiers differ: vset has a comparison, the others a type. */
static void spell(const struct video *v, struct text *t)
{
	static const char *const second[] = { "", ".add", ".min", ".max" };
	const bool set = v->op[2] == 'e';

	text_printf(t, "%s", v->op);
	if (v->parts > 1)
		text_printf(t, "%u", v->parts);
	if (!set)
		text_printf(t, ".%s", type32(v->dsign));
	text_printf(t, ".%s.%s%s", type32(v->asign), type32(v->bsign), v->sat ? ".sat" : "");
	if (v->op[1] == 's' && v->op[2] == 'h')
		text_printf(t, "%s", v->wrap ? ".wrap" : ".clamp");
	if (set)
		text_printf(t, ".%s", comparison[v->cmp]);
	text_printf(t, "%s", second[v->second]);
}

/* ---- SIMD ---- */

/* Draws the parts of a source from b:a, or leaves the default, which starts at `from`. */
static void draw_parts(struct video *v, struct rng *r, unsigned from, unsigned *at, struct text *t)
{
	const unsigned bits = 32 / v->parts;
	const bool drawn = rng_once_in(r, 2);

	if (drawn)
		text_printf(t, ".%c", bits == 8 ? 'b' : 'h');
	for (unsigned k = v->parts; k-- > 0;) {
		const unsigned part = drawn ? rng_below(r, 2 * v->parts) : from / bits + k;

		at[k] = bits * part;
		if (drawn)
			text_printf(t, "%u", part);
	}
}

void class_video(struct item *i, struct rng *r)
{
	static const char *const ops[] = { "vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset" };
	struct video *v = video_new(i, r, RNG_OF(r, ops));
	struct text t = { 0 };

	v->parts = rng_once_in(r, 2) ? 2 : 4;
	v->abits = v->bbits = v->dbits = 32 / v->parts;
	v->mask = (1u << v->parts) - 1;
	v->second = rng_once_in(r, 3) ? SUM : MERGE;
	v->sat = v->op[2] != 'e' && !v->second && rng_once_in(r, 2);
	spell(v, &t);
	text_printf(&t, " d");
	if (rng_once_in(r, 2)) {
		v->mask = 1 + rng_below(r, v->mask);
		text_printf(&t, ".%c", v->parts == 4 ? 'b' : 'h');
		for (unsigned k = v->parts; k-- > 0;)
			if (v->mask >> k & 1)
				text_printf(&t, "%u", k);
	}
	text_printf(&t, ", a");
	draw_parts(v, r, 0, v->a, &t);
	text_printf(&t, ", b");
	draw_parts(v, r, 32, v->b, &t);
	for (unsigned k = 0; k < v->parts; k++)
		v->d[k] = v->dbits * k;
	item_scalar(i, r, lane_video, "b32", "b32! b32! b32!", "%s, c;", t.at);
	text_free(&t);
}

/* ---- scalar ---- */

/* What an H200 computes otherwise (deviation.def) is drawn by classes of its own: saturation, .min
 * and .max, .h1 of the destination, and the scales of vmad. */

enum { PARTS = 9, PARTS_WITHOUT_H1 = 8 };

/* .b0 to .h0, .h1, or the whole word */
static void draw_part(struct rng *r, unsigned choices, unsigned from, unsigned *at, unsigned *bits,
	struct text *t)
{
	unsigned k = rng_below(r, choices);

	k += choices == PARTS_WITHOUT_H1 && k >= 5;
	*bits = k < 4 ? 8 : k < 6 ? 16 : 32;
	*at = from + (k < 4 ? 8 * k : k < 6 ? 16 * (k - 4) : 0);
	if (k < 6)
		text_printf(t, ".%c%u", k < 4 ? 'b' : 'h', k < 4 ? k : k - 4);
}

static void video_scalar(struct item *i, struct rng *r, bool deviates)
{
	static const char *const ops[] = { "vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr",
		"vset" };
	struct video *v = video_new(i, r, RNG_OF(r, ops));
	const bool set = v->op[2] == 'e', shift = v->op[1] == 's' && v->op[2] == 'h';
	struct text t = { 0 };

	v->parts = v->mask = 1;
	v->dbits = 32;
	v->sat = deviates && !set && rng_once_in(r, 2);
	v->wrap = rng_once_in(r, 2);
	v->bsign &= !shift;
	v->second = rng_once_in(r, 2) ? deviates ? 1 + rng_below(r, 3) : SUM : MERGE;
	spell(v, &t);
	text_printf(&t, " d");
	if (!v->second)
		draw_part(r, deviates ? PARTS : PARTS_WITHOUT_H1, 0, &v->d[0], &v->dbits, &t);
	text_printf(&t, ", a");
	draw_part(r, PARTS, 0, &v->a[0], &v->abits, &t);
	text_printf(&t, ", b");
	draw_part(r, PARTS, 32, &v->b[0], &v->bbits, &t);
	item_scalar(i, r, lane_video, "b32", shift ? "b32! b32~ b32!" : "b32! b32! b32!", "%s%s;", t.at,
		v->second || v->dbits < 32 ? ", c" : "");
	text_free(&t);
}

void class_video_scalar(struct item *i, struct rng *r)
{
	video_scalar(i, r, false);
}

void class_video_exact(struct item *i, struct rng *r)
{
	video_scalar(i, r, true);
}

/* ---- vmad ---- */

/* The final result is signed if a factor is, or the product or c is negated; then so is c. */
static void lane_vmad(const struct item *i, const uint64_t *s, struct want *w)
{
	const struct video *v = i->data;
	const uint64_t pool = s[1] << 32 | s[0];
	const bool minus = v->minus_a != v->minus_b;
	const bool is_signed = v->asign || v->bsign || minus || v->minus_c;
	const enum type t = is_signed ? T_s32 : T_u32;
	__int128 p = (__int128)cut(pool, v->a[0], v->abits, v->asign) *
		cut(pool, v->b[0], v->bbits, v->bsign), one = 1;

	/* ISA: -x is ~x + 1, for c in 32 bits before it is extended */
	if (minus)
		p = -p + type_extend(t, s[2]);
	else if (v->minus_c)
		p += (__int128)type_extend(t, (uint32_t)~s[2]) + 1;
	else
		p += (__int128)type_extend(t, s[2]) + v->plus_one;
	/* rounded down */
	one <<= v->shift;
	p = p >= 0 ? p / one : -((-p + one - 1) / one);
	w->v = (uint32_t)(v->sat ? limit(p, 32, is_signed) : p);
}

static void vmad(struct item *i, struct rng *r, bool deviates)
{
	static const unsigned shifts[] = { 0, 7, 15 };
	struct video *v = video_new(i, r, "vmad");
	struct text t = { 0 };

	v->plus_one = rng_once_in(r, 4);
	if (!v->plus_one) {
		v->minus_c = rng_once_in(r, 3);
		v->minus_a = rng_once_in(r, 3);
		v->minus_b = v->minus_c ? v->minus_a : rng_once_in(r, 3);
	}
	v->sat = deviates && rng_once_in(r, 2);
	v->shift = deviates ? RNG_OF(r, shifts) : 0;
	text_printf(&t, "vmad.%s.%s.%s%s%s", type32(v->asign || v->bsign || v->minus_c ||
		v->minus_a != v->minus_b), type32(v->asign), type32(v->bsign),
		v->plus_one ? ".po" : "", v->sat ? ".sat" : "");
	if (v->shift)
		text_printf(&t, ".shr%u", v->shift);
	text_printf(&t, " d, %sa", v->minus_a ? "-" : "");
	draw_part(r, PARTS, 0, &v->a[0], &v->abits, &t);
	text_printf(&t, ", %sb", v->minus_b ? "-" : "");
	draw_part(r, PARTS, 32, &v->b[0], &v->bbits, &t);
	item_scalar(i, r, lane_vmad, "b32", "b32! b32! b32!", "%s, %sc;", t.at, v->minus_c ? "-" : "");
	text_free(&t);
}

void class_vmad(struct item *i, struct rng *r)
{
	vmad(i, r, false);
}

void class_vmad_exact(struct item *i, struct rng *r)
{
	vmad(i, r, true);
}
