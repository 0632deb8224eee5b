#include "matrix.h"
#include "real.h"

#include <math.h>
#include <string.h>

uint64_t packed_get(const void *at, unsigned bits, unsigned n)
{
	const unsigned char *p = at;
	uint64_t v = 0;

	if (bits < 8)
		return p[n * bits / 8] >> (n * bits % 8) & ((1u << bits) - 1);
	memcpy(&v, p + n * (bits / 8), bits / 8);
	return v;
}

void packed_set(void *at, unsigned bits, unsigned n, uint64_t v)
{
	unsigned char *p = at;

	if (bits < 8) {
		unsigned char mask = (unsigned char)(((1u << bits) - 1) << (n * bits % 8));
		unsigned char *b = &p[n * bits / 8];
		*b = (unsigned char)((*b & ~mask) | (v << (n * bits % 8) & mask));
		return;
	}
	memcpy(p + n * (bits / 8), &v, bits / 8);
}

static uint64_t of_int(enum type t, int v)
{
	return type_kind(t) == KIND_FLOAT ? real_round(t, real_of_int(v), RN, true)
		: (uint64_t)(int64_t)v & type_mask(t);
}

uint64_t matrix_pick(struct rng *r, enum type t, enum values v)
{
	if (type_kind(t) != KIND_FLOAT)
		return rng_once_in(r, 8) ? type_pick(r, t) : rng_bits(r) & type_mask(t);
	/* the product of two has 4 bits, so that 256 of them fit a 11-bit mantissa */
	if (v == VALUES_EXACT)
		return of_int(t, (int)rng_below(r, 5) - 2);
	if (v == VALUES_SPECIAL && rng_once_in(r, 40))
		return type_pick(r, t);
	/* 2^-4 to 2^3, and zeros */
	struct real x = { REAL_FINITE, rng_once_in(r, 2), 1ull << 40 | rng_bits(r) >> 24,
		-44 + (int)rng_below(r, 8) };
	return rng_once_in(r, 16) ? 0 : real_round(t, x, RZ, true);
}

uint64_t matrix_pick_acc(struct rng *r, enum type t, enum values v)
{
	if (type_kind(t) != KIND_FLOAT)
		return rng_once_in(r, 3) ? 0x7fffff00u + rng_below(r, 512)
			: rng_bits(r) & type_mask(t);
	if (v == VALUES_EXACT)
		return of_int(t, (int)rng_below(r, 65) - 32);
	return matrix_pick(r, t, v);
}

long double matrix_value(enum type t, uint64_t bits)
{
	if (type_kind(t) != KIND_FLOAT)
		return (long double)type_extend(t, bits);
	return real_approx(real_of(t, bits));
}

/* The terms of a sum */
struct terms {
	unsigned n;
	long double p[257];
	/* of the finite ones */
	long double magnitude, largest;
};

static void add_term(struct terms *t, long double p)
{
	t->p[t->n++] = p;
	if (!isfinite(p))
		return;
	t->magnitude += fabsl(p);
	t->largest = fmaxl(t->largest, fabsl(p));
}

/* Error of a sum. Hardware aligns the products of a step to the largest and truncates; it keeps the
 * bits of f32, but 13 of them for fp8 on Hopper. */
static long double bound(const struct dot *x, const struct terms *t)
{
	const long double unit = t->largest * 0x1p-13L;
	long double sum = unit;

	if (x->d == T_f64)
		return t->magnitude * 0x1p-52L * t->n;
	if (x->a != T_e4m3 && x->a != T_e5m2)
		return t->magnitude * 0x1p-23L * (t->n + 1);
	for (unsigned k = 0; k < t->n; k++)
		sum += isfinite(t->p[k]) ? fminl(fabsl(t->p[k]), unit) : 0;
	return sum;
}

void matrix_dot(const struct dot *x, const long double *a, const long double *b, unsigned k,
	long double c, struct want *w)
{
	struct terms t = { .n = 0 };
	long double sum = c;

	add_term(&t, c);
	for (unsigned n = 0; n < k; n++) {
		long double p = x->b1 == '&' ? (a[n] && b[n]) : x->b1 == '^' ? (a[n] != b[n])
			: a[n] * b[n];
		sum += p;
		add_term(&t, p);
	}
	w->type = x->d;
	if (type_kind(x->d) != KIND_FLOAT) {
		if (x->satfinite)
			sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
		w->v = (uint32_t)(int64_t)sum;
		return;
	}
	if (isnan(sum)) {
		w->how = WANT_NAN;
		return;
	}
	if (sum == 0) /* of either sign */
		w->care = ~(1ull << (type_bits(x->d) - 1));
	w->v = real_round(x->d, real_of_long(sum), RN, false);
	w->real = sum;
	w->tol = bound(x, &t) + (x->d == T_f16 ? t.magnitude * 0x1p-10L : 0)
		+ ldexpl(1, 1 - real_fmt(x->d)->bias);
	if (t.magnitude + w->tol > real_approx(real_of(x->d, real_fmt(x->d)->max)))
		w->how = WANT_ANY; /* in some orders it overflows */
	else if (x->values != VALUES_EXACT && isfinite(sum))
		w->how = WANT_NEAR;
}
