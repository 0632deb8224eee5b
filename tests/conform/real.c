#include "real.h"

#include <math.h>

#define NAN_OF(e, m) ((1ull << ((e) + (m))) - 1)
static const struct fmt fmts[T_COUNT] = {
	[T_f16] = { 5, 10, 15, true, true, NAN_OF(5, 10), 0x7bff, 0 },
	[T_bf16] = { 8, 7, 127, true, true, NAN_OF(8, 7), 0x7f7f, 0 },
	[T_tf32] = { 8, 10, 127, true, true, NAN_OF(8, 10), 0x3fbff, 13 },
	[T_f32] = { 8, 23, 127, true, true, NAN_OF(8, 23), 0x7f7fffff, 0 },
	[T_f64] = { 11, 52, 1023, true, true, NAN_OF(11, 52), 0x7fefffffffffffff, 0 },
	[T_e4m3] = { 4, 3, 7, true, false, 0x7f, 0x7e, 0 },
	[T_e5m2] = { 5, 2, 15, true, true, 0x7f, 0x7b, 0 },
	[T_e3m2] = { 3, 2, 3, true, false, 0, 0x1f, 0 },
	[T_e2m3] = { 2, 3, 1, true, false, 0, 0x1f, 0 },
	[T_e2m1] = { 2, 1, 1, true, false, 0, 0x7, 0 },
	[T_ue8m0] = { 8, 0, 127, false, false, 0xff, 0xfe, 0 },
};

const struct fmt *real_fmt(enum type t) { return &fmts[t]; }

static uint64_t magnitude(const struct fmt *f, uint64_t bits)
{
	return bits >> f->shift & ((1ull << (f->ebits + f->mbits)) - 1);
}

bool real_is_nan(enum type t, uint64_t bits)
{
	const struct fmt *f = &fmts[t];
	uint64_t v = magnitude(f, bits);

	return f->has_inf ? v > f->max + 1 : f->nan && v == f->nan;
}

bool real_is_subnormal(enum type t, uint64_t bits)
{
	const struct fmt *f = &fmts[t];
	uint64_t v = magnitude(f, bits);

	return f->mbits && v && v >> f->mbits == 0;
}

struct real real_of(enum type t, uint64_t bits)
{
	const struct fmt *f = &fmts[t];
	uint64_t v = magnitude(f, bits), e = v >> f->mbits, m = v & ((1ull << f->mbits) - 1);
	struct real r = { REAL_FINITE, f->sign && bits >> f->shift >> (f->ebits + f->mbits) & 1,
		0, 0 };

	if (real_is_nan(t, bits))
		r.kind = REAL_NAN;
	else if (f->has_inf && v > f->max)
		r.kind = REAL_INF;
	else if (v == 0 && f->mbits)
		r.kind = REAL_ZERO;
	else {
		bool normal = e || !f->mbits;
		r.m = m | (normal ? 1ull << f->mbits : 0);
		r.e = (normal ? (int)e : 1) - f->bias - (int)f->mbits;
	}
	return r;
}

struct real real_of_int(__int128 v)
{
	struct real r = { v ? REAL_FINITE : REAL_ZERO, v < 0,
		v < 0 ? -(unsigned __int128)v : (unsigned __int128)v, 0 };

	return r;
}

static unsigned width(unsigned __int128 m)
{
	return m >> 64 ? 128 - (unsigned)__builtin_clzll((uint64_t)(m >> 64))
		: m ? 64 - (unsigned)__builtin_clzll((uint64_t)m) : 0;
}

/* m >> n, with the lowest bit set if bits were lost */
static unsigned __int128 shift_sticky(unsigned __int128 m, unsigned n)
{
	if (n == 0)
		return m;
	if (n > 127)
		return m != 0;
	return m >> n | (m << (128 - n) != 0);
}

/* top bit at 126 - spare */
static struct real normalise(struct real a, unsigned spare)
{
	unsigned at = 127 - spare, w = width(a.m);

	if (w > at) {
		a.m = shift_sticky(a.m, w - at);
		a.e += (int)(w - at);
	} else {
		a.m <<= at - w;
		a.e -= (int)(at - w);
	}
	return a;
}

static struct real make(int kind, bool negative)
{
	struct real r = { kind, negative, 0, 0 };

	return r;
}

struct real real_add(struct real a, struct real b, enum rounding r)
{
	if (a.kind == REAL_NAN || b.kind == REAL_NAN)
		return make(REAL_NAN, false);
	if (a.kind == REAL_INF || b.kind == REAL_INF) {
		if (a.kind == b.kind && a.negative != b.negative)
			return make(REAL_NAN, false);
		return a.kind == REAL_INF ? a : b;
	}
	if (a.kind == REAL_ZERO && b.kind == REAL_ZERO)
		return make(REAL_ZERO, a.negative == b.negative ? a.negative : r == RM);
	if (a.kind == REAL_ZERO || b.kind == REAL_ZERO)
		return a.kind == REAL_ZERO ? b : a;
	a = normalise(a, 1);
	b = normalise(b, 1);
	if (a.e < b.e) {
		struct real t = a;
		a = b;
		b = t;
	}
	b.m = shift_sticky(b.m, (unsigned)(a.e - b.e));
	if (a.negative == b.negative) {
		a.m += b.m;
		return a;
	}
	if (a.m == b.m)
		return make(REAL_ZERO, r == RM);
	if (a.m > b.m) {
		a.m -= b.m;
		return a;
	}
	b.m -= a.m;
	b.e = a.e;
	return b;
}

/* Exact for mantissas of up to 60 bits; the narrow products that occur have at most 53. */
struct real real_mul(struct real a, struct real b)
{
	bool negative = a.negative != b.negative;

	if (a.kind == REAL_NAN || b.kind == REAL_NAN)
		return make(REAL_NAN, false);
	if (a.kind == REAL_INF || b.kind == REAL_INF)
		return make(a.kind == REAL_ZERO || b.kind == REAL_ZERO ? REAL_NAN : REAL_INF,
			negative);
	if (a.kind == REAL_ZERO || b.kind == REAL_ZERO)
		return make(REAL_ZERO, negative);
	a.m *= b.m;
	a.e += b.e;
	a.negative = negative;
	return a;
}

struct real real_div(struct real a, struct real b)
{
	bool negative = a.negative != b.negative;
	struct real q;

	if (a.kind == REAL_NAN || b.kind == REAL_NAN || (a.kind == b.kind && a.kind != REAL_FINITE))
		return make(REAL_NAN, false);
	if (a.kind == REAL_INF || b.kind == REAL_ZERO)
		return make(REAL_INF, negative);
	if (a.kind == REAL_ZERO || b.kind == REAL_INF)
		return make(REAL_ZERO, negative);
	a = normalise(a, 0);
	q = make(REAL_FINITE, negative);
	/* b has at most 53 bits, so the quotient has 73 or more */
	q.m = a.m / b.m << 1 | (a.m % b.m != 0);
	q.e = a.e - b.e - 1;
	return q;
}

struct real real_sqrt(struct real a)
{
	unsigned __int128 root = 0, bit;

	if (a.kind == REAL_NAN || (a.negative && a.kind != REAL_ZERO))
		return make(REAL_NAN, false);
	if (a.kind != REAL_FINITE)
		return a;
	a = normalise(a, 1);
	if (a.e & 1) {
		a.m <<= 1;
		a.e--;
	}
	/* 63 bits of root, found one by one */
	for (bit = (unsigned __int128)1 << 63; bit; bit >>= 1)
		if ((root | bit) * (root | bit) <= a.m)
			root |= bit;
	a.m = root << 1 | (root * root != a.m);
	a.e = a.e / 2 - 1;
	return a;
}

struct real real_negate(struct real a)
{
	a.negative = !a.negative;
	return a;
}

int real_compare(struct real a, struct real b)
{
	struct real d;

	if (a.kind == REAL_INF && b.kind == REAL_INF && a.negative == b.negative)
		return 0;
	d = real_add(a, real_negate(b), RN);
	return d.kind == REAL_ZERO ? 0 : d.negative ? -1 : 1;
}

bool real_order(int cmp, int order)
{
	switch (cmp) {
	case 0: return order == 0;
	case 1: return order != 0;
	case 2: return order < 0;
	case 3: return order <= 0;
	case 4: return order > 0;
	default: return order >= 0;
	}
}

/* m * 2^-drop, rounded; drop > 0 */
static unsigned __int128 round_off(unsigned __int128 m, unsigned drop, bool negative,
	enum rounding r)
{
	unsigned __int128 kept = drop > 127 ? 0 : m >> drop;
	/* twice the lost part against one unit of the kept part */
	unsigned __int128 lost = drop > 127 ? m : m - (kept << drop);
	int half = lost == 0 ? -2 : drop > 128 ? -1 : drop == 128 ? (m >> 127 ? (m << 1 ? 1 : 0)
		: -1)
		: lost > (unsigned __int128)1 << (drop - 1) ? 1
		: lost == (unsigned __int128)1 << (drop - 1) ? 0 : -1;
	bool up = false;

	switch (r) {
	case RN: up = half > 0 || (half == 0 && kept & 1); break;
	case RNA: up = half >= 0; break;
	case RZ: break;
	case RM: up = lost && negative; break;
	case RP: up = lost && !negative; break;
	}
	return kept + up;
}

struct real real_integral(struct real a, enum rounding r)
{
	if (a.kind != REAL_FINITE || a.e >= 0)
		return a;
	a.m = round_off(a.m, (unsigned)-a.e, a.negative, r);
	a.e = 0;
	if (!a.m)
		a.kind = REAL_ZERO;
	return a;
}

__int128 real_int(struct real a)
{
	const __int128 most = (__int128)1 << 120;
	__int128 v;

	if (a.kind == REAL_ZERO || a.kind == REAL_NAN)
		return 0;
	if (a.kind == REAL_INF || (int)width(a.m) + a.e > 120)
		return a.negative ? -most : most;
	v = a.e >= 0 ? (__int128)(a.m << a.e) : (__int128)(a.m >> -a.e);
	return a.negative ? -v : v;
}

uint64_t real_round(enum type t, struct real a, enum rounding r, bool satfinite)
{
	const struct fmt *f = &fmts[t];
	const uint64_t sign = f->sign && a.negative ? 1ull << (f->ebits + f->mbits) : 0;
	const uint64_t inf = f->has_inf && !satfinite ? f->max + 1 : f->max;
	uint64_t v;
	int e, least = 1 - f->bias - (int)f->mbits;

	if (a.kind == REAL_NAN)
		return (f->nan ? f->nan : f->max) << f->shift;
	if (a.kind == REAL_ZERO)
		return sign << f->shift;
	if (a.kind == REAL_INF)
		return (inf | sign) << f->shift;
	/* the exponent of the last place */
	e = a.e + (int)width(a.m) - 1 - (int)f->mbits;
	if (e < least)
		e = least;
	if (a.e >= e)
		v = (uint64_t)a.m << (a.e - e);
	else
		v = (uint64_t)round_off(a.m, (unsigned)(e - a.e), a.negative, r);
	/* The carry of a mantissa that was rounded up goes into the exponent. */
	if (e > least + 3000)
		e = least + 3000;
	v += (uint64_t)(e - least) << f->mbits;
	if (v > f->max) {
		bool away = r == RN || r == RNA || (r == RM && a.negative) || (r == RP
			&& !a.negative);
		v = away ? inf : f->max;
	}
	return (v | sign) << f->shift;
}

long double real_approx(struct real a)
{
	long double v;

	if (a.kind == REAL_NAN)
		return NAN;
	if (a.kind == REAL_INF)
		return a.negative ? -INFINITY : INFINITY;
	v = ldexpl((long double)(uint64_t)(a.m >> 64), 64) + (long double)(uint64_t)a.m;
	v = ldexpl(v, a.e);
	return a.negative ? -v : v;
}

struct real real_of_long(long double v)
{
	struct real r = { isnan(v) ? REAL_NAN : isinf(v) ? REAL_INF : v == 0 ? REAL_ZERO
		: REAL_FINITE, signbit(v) != 0, 0, 0 };

	if (r.kind == REAL_FINITE) {
		r.m = (uint64_t)ldexpl(frexpl(fabsl(v), &r.e), 64);
		r.e -= 64;
	}
	return r;
}
