/* Operations over the lanes of a warp and the threads of a CTA. References: ISA 9.7.9.6, 9.7.13. */
#include "conform.h"
#include "real.h"

#include <string.h>

enum { P_MODE, P_MASK, P_TYPE, P_X, P_Y };
/* What a thread reads and writes */
struct in { uint32_t a, b, c, old; uint64_t wide, pad; };
struct out { uint32_t d, p; };

static uint32_t some_mask(struct rng *r)
{
	uint32_t m = rng_once_in(r, 3) ? (uint32_t)rng_bits(r) : ~0u;

	return m ? m : 1;
}

/* Lanes of the mask execute; the others keep d = old and p = 0. */
static void head(struct item *i, struct rng *r)
{
	i->p[P_MASK] = (int)some_mask(r);
	text_printf(&i->ptx, "\t.reg .b32 a, b, c, d, m, t;\n\t.reg .b64 x;\n\t.reg .pred on, p, "
		"q;\n"
		"\tld.global.b32 a, [%%src];\n\tld.global.b32 b, [%%src+4];\n"
		"\tld.global.b32 c, [%%src+8];\n\tld.global.b32 d, [%%src+12];\n"
		"\tld.global.b64 x, [%%src+16];\n"
		"\tmov.b32 m, 0x%x;\n\tshr.u32 t, m, %%lane;\n\tand.b32 t, t, 1;\n"
		"\tsetp.ne.u32 on, t, 0;\n\tsetp.ne.u32 p, 0, 0;\n\tand.b32 t, a, 1;\n"
		"\tsetp.ne.u32 q, t, 0;\n", (uint32_t)i->p[P_MASK]);
}

static void tail(struct item *i)
{
	text_printf(&i->ptx, "\tst.global.b32 [%%dst], d;\n\tselp.b32 t, 1, 0, p;\n"
		"\tst.global.b32 [%%dst+4], t;\n");
}

static bool in_mask(const struct item *i, unsigned t)
{
	return (uint32_t)i->p[P_MASK] >> (t % 32) & 1;
}

/* Results of lanes that do not take part */
static bool stays(const struct item *i, const struct in *in, unsigned t, struct want *w)
{
	w[0].v = in[t].old;
	w[1].v = 0;
	return !in_mask(i, t);
}

/* ---- shfl ---- */

enum { UP, DOWN, BFLY, IDX };
static const char *const shfl_name[] = { "up", "down", "bfly", "idx" };

static void expect_shfl(const struct item *i, const void *inputs, const void *out, struct want *w)
{
	const struct in *in = inputs;

	(void)out;
	for (unsigned t = 0; t < CTA_THREADS; t++, w += 2) {
		if (stays(i, in, t, w))
			continue;
		unsigned lane = t % 32;
		/* P_X: b and c are immediates, the same in all lanes */
		unsigned b = (i->p[P_X] ? (unsigned)i->p[P_Y] : in[t].b) & 31;
		unsigned clampm = i->p[P_X] ? (unsigned)i->p[P_Y] >> 8 : in[t].c;
		unsigned c = clampm & 31, seg = clampm >> 8 & 31;
		unsigned most = (lane & seg) | (c & ~seg), first = lane & seg;
		int j = 0;
		bool ok = false;
		switch (i->p[P_MODE]) {
		case UP: j = (int)lane - (int)b; ok = j >= (int)most; break;
		case DOWN: j = (int)(lane + b); ok = j <= (int)most; break;
		case BFLY: j = (int)(lane ^ b); ok = j <= (int)most; break;
		case IDX: j = (int)(first | (b & ~seg)); ok = j <= (int)most; break;
		}
		if (!ok)
			j = (int)lane;
		if (in_mask(i, (unsigned)j))
			w[0].v = in[t - lane + (unsigned)j].a;
		else
			w[0].how = WANT_ANY;
		w[1].v = ok;
	}
}

static void fill_shfl(const struct item *i, struct rng *r, void *inputs, void *out)
{
	struct in *in = inputs;
	static const uint32_t common[] = { 0x1f, 0, 0x1c03, 0x1807, 0x181f, 0x100f };

	(void)i;
	(void)out;
	for (unsigned t = 0; t < CTA_THREADS; t++)
		in[t] = (struct in){ (uint32_t)rng_bits(r), rng_once_in(r, 4)
			? (uint32_t)rng_bits(r)
			: rng_below(r, 32), rng_once_in(r, 2) ? RNG_OF(r, common)
			: (uint32_t)rng_bits(r), (uint32_t)rng_bits(r), 0, 0 };
}

void class_shfl(struct item *i, struct rng *r)
{
	static const unsigned common[] = { 0x1f, 0, 0x1c03, 0x1807, 0x181f, 0x100f };
	bool pair = rng_once_in(r, 2);

	item_block(i, sizeof(struct in), sizeof(struct out), 2, 32, expect_shfl);
	i->fill = fill_shfl;
	i->p[P_MODE] = (int)rng_below(r, 4);
	i->p[P_X] = rng_once_in(r, 2);
	i->p[P_Y] = (int)(rng_below(r, 32) | RNG_OF(r, common) << 8);
	head(i, r);
	/* without the predicate d alone is compared: p is taken from a second shuffle */
	for (int k = pair ? 1 : 0; k < 2; k++) {
		text_printf(&i->ptx, "/**/\t@on shfl.sync.%s.b32 %s%s, a, ",
			shfl_name[i->p[P_MODE]],
			k && !pair ? "t" : "d", k ? "|p" : "");
		if (i->p[P_X])
			text_printf(&i->ptx, "%d, 0x%x, m;\n", i->p[P_Y] & 31, i->p[P_Y] >> 8);
		else
			text_printf(&i->ptx, "b, c, m;\n");
	}
	tail(i);
}

/* ---- vote, activemask, elect ---- */

enum { ALL, ANY, UNI, BALLOT, ACTIVE, ELECT };
static const char *const vote_name[] = { "all", "any", "uni", "ballot" };

static void expect_vote(const struct item *i, const void *inputs, const void *out, struct want *w)
{
	const struct in *in = inputs;

	(void)out;
	for (unsigned t = 0; t < CTA_THREADS; t++, w += 2) {
		uint32_t ballot = 0, m = (uint32_t)i->p[P_MASK];
		if (stays(i, in, t, w))
			continue;
		for (unsigned l = 0; l < 32; l++)
			ballot |= (in[t / 32 * 32 + l].a & 1) << l;
		if (i->p[P_X])
			ballot = ~ballot;
		ballot &= m;
		switch (i->p[P_MODE]) {
		case ALL: w[1].v = ballot == m; break;
		case ANY: w[1].v = ballot != 0; break;
		case UNI: w[1].v = ballot == m || ballot == 0; break;
		case BALLOT: w[0].v = ballot; break;
		case ACTIVE: w[0].v = m; break;
		case ELECT: /* ISA: which lane is implementation defined; hardware: the lowest */
			w[0].v = (unsigned)__builtin_ctz(m);
			w[1].v = (unsigned)__builtin_ctz(m) == t % 32;
			break;
		}
	}
}

static void fill_vote(const struct item *i, struct rng *r, void *inputs, void *out)
{
	struct in *in = inputs;

	(void)i;
	(void)out;
	for (unsigned t = 0; t < CTA_THREADS; t += 32) {
		unsigned same = rng_below(r, 4); /* all equal, often */
		for (unsigned l = 0; l < 32; l++)
			in[t + l] = (struct in){ .a = same < 2 ? same : (uint32_t)rng_bits(r),
				.old = (uint32_t)rng_bits(r) };
	}
}

void class_vote(struct item *i, struct rng *r)
{
	struct text *p = &i->ptx;
	int mode = (int)rng_below(r, 6);
	const char *not = "";

	item_block(i, sizeof(struct in), sizeof(struct out), 2, 32, expect_vote);
	i->fill = fill_vote;
	i->p[P_MODE] = mode;
	i->p[P_X] = mode <= BALLOT && rng_once_in(r, 2);
	not = i->p[P_X] ? "!" : "";
	head(i, r);
	if (mode <= BALLOT)
		text_printf(p, rng_once_in(r, 3) ? "/**/\t@on vote.%s.sync.%s %s, %sq, m;\n"
			: "/**/\t@on vote.sync.%s.%s %s, %sq, m;\n", vote_name[mode],
			mode == BALLOT ? "b32" : "pred", mode == BALLOT ? "d" : "p", not);
	else if (mode == ELECT)
		text_printf(p, "/**/\t@on elect.sync d|p, m;\n");
	else /* convergence is not guaranteed: bar.warp.sync makes it likely */
		text_printf(p, "\t@on bar.warp.sync m;\n/**/\t@on activemask.b32 d;\n");
	tail(i);
}

/* ---- match ---- */

static void expect_match(const struct item *i, const void *inputs, const void *out, struct want *w)
{
	const struct in *in = inputs;
	bool wide = i->p[P_TYPE];

	(void)out;
	for (unsigned t = 0; t < CTA_THREADS; t++, w += 2) {
		const struct in *warp = in + t / 32 * 32;
		uint32_t same = 0, m = (uint32_t)i->p[P_MASK];
		if (stays(i, in, t, w))
			continue;
		for (unsigned l = 0; l < 32; l++)
			if (m >> l & 1 && (wide ? warp[l].wide == in[t].wide
				: warp[l].b == in[t].b))
				same |= 1u << l;
		w[0].v = i->p[P_MODE] == ANY ? same : same == m ? m : 0;
		w[1].v = i->p[P_MODE] == ALL && same == m;
	}
}

static void fill_match(const struct item *i, struct rng *r, void *inputs, void *out)
{
	struct in *in = inputs;

	(void)i;
	(void)out;
	for (unsigned t = 0; t < CTA_THREADS; t += 32) {
		unsigned values = 1 + rng_below(r, 4);
		for (unsigned l = 0; l < 32; l++) {
			uint64_t v = (uint64_t)rng_below(r, values) << (rng_below(r, 2) * 32);
			in[t + l] = (struct in){ .b = (uint32_t)rng_below(r, values), .wide = v,
				.old = (uint32_t)rng_bits(r) };
		}
	}
}

void class_match(struct item *i, struct rng *r)
{
	item_block(i, sizeof(struct in), sizeof(struct out), 2, 32, expect_match);
	i->fill = fill_match;
	i->p[P_MODE] = rng_once_in(r, 2) ? ANY : ALL;
	i->p[P_TYPE] = rng_once_in(r, 2);
	head(i, r);
	text_printf(&i->ptx, "/**/\t@on match.%s.sync.b%d d%s, %s, m;\n",
		i->p[P_MODE] == ANY ? "any" : "all", i->p[P_TYPE] ? 64 : 32,
		i->p[P_MODE] == ANY ? "" : "|p", i->p[P_TYPE] ? "x" : "b");
	tail(i);
}

/* ---- redux ---- */

enum { R_ADD, R_MIN, R_MAX, R_AND, R_OR, R_XOR };
static const char *const red_name[] = { "add", "min", "max", "and", "or", "xor" };

static uint32_t combine(int op, bool sign, uint32_t a, uint32_t b)
{
	bool less = sign ? (int32_t)a < (int32_t)b : a < b;

	switch (op) {
	case R_ADD: return a + b;
	case R_MIN: return less ? a : b;
	case R_MAX: return less ? b : a;
	case R_AND: return a & b;
	case R_OR: return a | b;
	default: return a ^ b;
	}
}

static void expect_redux(const struct item *i, const void *inputs, const void *out, struct want *w)
{
	const struct in *in = inputs;

	(void)out;
	for (unsigned t = 0; t < CTA_THREADS; t++, w += 2) {
		bool first = true;
		if (stays(i, in, t, w))
			continue;
		for (unsigned l = 0; l < 32; l++) {
			uint32_t v = in[t / 32 * 32 + l].b;
			if (!in_mask(i, l))
				continue;
			w[0].v = first ? v : combine(i->p[P_MODE], i->p[P_TYPE], (uint32_t)w[0].v,
				v);
			first = false;
		}
	}
}

void class_redux(struct item *i, struct rng *r)
{
	item_block(i, sizeof(struct in), sizeof(struct out), 2, 32, expect_redux);
	i->p[P_MODE] = (int)rng_below(r, 6);
	i->p[P_TYPE] = rng_once_in(r, 2);
	head(i, r);
	text_printf(&i->ptx, "/**/\t@on redux.sync.%s.%s d, b, m;\n", red_name[i->p[P_MODE]],
		i->p[P_MODE] >= R_AND ? "b32" : i->p[P_TYPE] ? "s32" : "u32");
	tail(i);
}

/* min and max of f32; P_X: .abs, P_Y: .NaN */
static void expect_redux_f32(const struct item *i, const void *inputs, const void *out,
	struct want *w)
{
	const struct in *in = inputs;

	(void)out;
	for (unsigned t = 0; t < CTA_THREADS; t++, w += 2) {
		struct real best = { REAL_NAN, false, 0, 0 };
		bool nan = false;
		if (stays(i, in, t, w))
			continue;
		for (unsigned l = 0; l < 32; l++) {
			struct real v = real_of(T_f32, in[t / 32 * 32 + l].b);
			if (!in_mask(i, l))
				continue;
			if (i->p[P_X])
				v.negative = false;
			nan |= v.kind == REAL_NAN;
			if (v.kind == REAL_NAN)
				continue;
			int c = best.kind == REAL_NAN ? 1 : real_compare(v, best);
			if (c == 0) /* +0 > -0 */
				c = best.negative != v.negative ? (v.negative ? -1 : 1) : 0;
			if (best.kind == REAL_NAN || (i->p[P_MODE] == R_MIN ? c < 0 : c > 0))
				best = v;
		}
		if (nan && i->p[P_Y])
			best.kind = REAL_NAN;
		w[0].v = real_round(T_f32, best, RN, false);
	}
}

static void fill_redux_f32(const struct item *i, struct rng *r, void *inputs, void *out)
{
	struct in *in = inputs;

	(void)i;
	(void)out;
	for (unsigned t = 0; t < CTA_THREADS; t++) {
		uint32_t v = (uint32_t)type_pick(r, T_f32);
		if (real_is_nan(T_f32, v) && !rng_once_in(r, 8))
			v = 0x3f800000 + t;
		in[t] = (struct in){ .b = v, .old = (uint32_t)rng_bits(r) };
	}
}

void class_redux_f32(struct item *i, struct rng *r)
{
	item_block(i, sizeof(struct in), sizeof(struct out), 2, 32, expect_redux_f32);
	i->fill = fill_redux_f32;
	i->p[P_MODE] = rng_once_in(r, 2) ? R_MIN : R_MAX;
	i->p[P_X] = rng_once_in(r, 2);
	i->p[P_Y] = rng_once_in(r, 2);
	head(i, r);
	text_printf(&i->ptx, "/**/\t@on redux.sync.%s%s%s.f32 d, b, m;\n", red_name[i->p[P_MODE]],
		i->p[P_X] ? ".abs" : "", i->p[P_Y] ? ".NaN" : "");
	tail(i);
}

/* ---- reductions over a CTA ---- */

static void expect_barrier(const struct item *i, const void *inputs, const void *out,
	struct want *w)
{
	const struct in *in = inputs;
	unsigned n = 0;

	(void)out;
	for (unsigned t = 0; t < CTA_THREADS; t++)
		n += (in[t].a & 1) != (unsigned)i->p[P_X];
	for (unsigned t = 0; t < CTA_THREADS; t++, w += 2) {
		w[0].v = i->p[P_MODE] == R_ADD ? n : in[t].old;
		w[1].v = i->p[P_MODE] == R_AND ? n == CTA_THREADS : i->p[P_MODE] == R_OR ? n != 0
			: 0;
	}
}

static void fill_barrier(const struct item *i, struct rng *r, void *inputs, void *out)
{
	struct in *in = inputs;
	unsigned same = rng_below(r, 4);

	(void)i;
	(void)out;
	for (unsigned t = 0; t < CTA_THREADS; t++)
		in[t] = (struct in){ .a = same < 2 ? same : (uint32_t)rng_bits(r),
			.old = (uint32_t)rng_bits(r) };
}

void class_barrier_red(struct item *i, struct rng *r)
{
	static const char *const form[] = { "bar.red", "bar.cta.red", "barrier.red",
		"barrier.cta.red" };
	static const int modes[] = { R_ADD, R_AND, R_OR };
	bool popc;

	item_block(i, sizeof(struct in), sizeof(struct out), 2, 32, expect_barrier);
	i->fill = fill_barrier;
	i->p[P_MODE] = RNG_OF(r, modes);
	i->p[P_X] = rng_once_in(r, 2);
	popc = i->p[P_MODE] == R_ADD;
	head(i, r);
	text_printf(&i->ptx, "\tbar.sync 0;\n\t%s.%s.%s %s, %u, %sq;\n", RNG_OF(r, form),
		popc ? "popc" : red_name[i->p[P_MODE]], popc ? "u32" : "pred", popc ? "d" : "p",
		1 + rng_below(r, 14), i->p[P_X] ? "!" : "");
	tail(i);
}
