/* Approximate functions: the exceptions from bit-for-bit equality, each with the error bound that
 * the ISA gives (9.7.3, 9.7.4). The reference is computed in long double. */
#include "conform.h"
#include "real.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ISA: the largest error, relative, absolute or in units of the last place */
#define BOUND_RCP 0x1p-23L       /* rcp.approx.f32: 1 ulp */
#define BOUND_SQRT 0x1p-23L      /* sqrt.approx.f32 */
#define BOUND_RSQRT 0x1.12p-23L  /* rsqrt.approx.f32: 2^-22.9 */
#define BOUND_SIN 0x1.6bp-21L    /* sin, cos, in [-2pi, 2pi]: 2^-20.5 absolute */
#define BOUND_SIN_FAR 0x1.3cp-15L /* in [-100pi, 100pi]: 2^-14.7 absolute */
#define BOUND_LG2 0x1p-22L       /* absolute in (0.5, 2), else relative */
#define BOUND_EX2 0x1p-22L       /* relative */
#define BOUND_TANH 0x1p-11L      /* relative */
#define BOUND_DIV_ULPS 2         /* div.approx, div.full */
#define BOUND_GROSS 0x1p-19L     /* rcp.approx.ftz.f64, rsqrt.approx.ftz.f64: 20 bits */
#define BOUND_RSQRT64 0x1.12p-23L
#define BOUND_TANH_F16 0x1.03p-11L /* 2^-10.987 absolute */
#define BOUND_TANH_BF16 0x1p-8L
#define BOUND_EX2_F16 0x1.13p-10L /* 2^-9.9 relative */
#define BOUND_EX2_BF16 0x1p-7L

enum fn { A_RCP, A_SQRT, A_RSQRT, A_SIN, A_COS, A_LG2, A_EX2, A_TANH, A_DIV, A_DIV_FULL };
static const char *const fn_name[] = { "rcp.approx", "sqrt.approx", "rsqrt.approx", "sin.approx",
	"cos.approx", "lg2.approx", "ex2.approx", "tanh.approx", "div.approx", "div.full" };

enum { P_FN, P_TYPE, P_FTZ };

static uint64_t code(enum type t, long double v, bool negative)
{
	struct real r = { isnan(v) ? REAL_NAN : isinf(v) ? REAL_INF : REAL_ZERO, negative, 0, 0 };

	return real_round(t, r, RN, false);
}

/* v, at most tol away, in a format of this type. Values beyond its range and zeros are exact. */
static void near(struct want *w, enum type t, long double v, long double tol, bool ftz)
{
	const struct fmt *f = real_fmt(t);
	long double most = real_approx(real_of(t, f->max));
	long double least = ldexpl(1, 1 - f->bias), step = ldexpl(least, -(int)f->mbits);

	w->how = WANT_NEAR;
	w->type = t;
	w->real = v;
	w->tol = tol;
	if (isnan(v) || isinf(v)) {
		w->v = code(t, v, signbit(v));
		return;
	}
	if (v == 0 && tol == 0) {
		w->how = WANT_BITS;
		w->v = code(t, 0, signbit(v));
		return;
	}
	if (fabsl(v) + tol > most) { /* rounding decides whether it is infinite */
		if (fabsl(v) - tol <= most * (1 + 2 * 0x1p-8L)) {
			w->how = WANT_ANY;
			return;
		}
		w->real = v < 0 ? -INFINITY : INFINITY;
		w->v = code(t, w->real, v < 0);
		return;
	}
	if (fabsl(v) < least) /* in the worst case flushed */
		w->tol += ftz ? least : step;
}

static void approximate(const struct item *i, const uint64_t *s, struct want *w)
{
	const enum type t = (enum type)i->p[P_TYPE];
	const bool ftz = i->p[P_FTZ] != 0;
	const int fn = i->p[P_FN];
	long double x[2], v, tol = 0, ulp;
	const struct fmt *f = real_fmt(t);
	int e;

	for (unsigned k = 0; k < i->nsrc; k++) {
		struct real a = real_of(t, s[k]);
		x[k] = real_approx(a);
		if (a.negative && a.kind != REAL_NAN)
			x[k] = copysignl(x[k], -1);
		if (ftz && real_is_subnormal(t, s[k]))
			x[k] = copysignl(0, x[k]);
	}
	switch (fn) {
	case A_RCP:
		v = 1 / x[0];
		tol = fabsl(v) * (t == T_f64 ? BOUND_GROSS : BOUND_RCP);
		break;
	case A_SQRT:
		v = sqrtl(x[0]);
		tol = fabsl(v) * BOUND_SQRT;
		break;
	case A_RSQRT:
		v = 1 / sqrtl(x[0]);
		tol = fabsl(v) * (t != T_f64 ? BOUND_RSQRT : ftz ? BOUND_GROSS : BOUND_RSQRT64);
		break;
	case A_SIN: case A_COS:
		v = fn == A_SIN ? sinl(x[0]) : cosl(x[0]);
		tol = fabsl(x[0]) <= 2 * M_PIl ? BOUND_SIN : fabsl(x[0]) <= 100 * M_PIl
			? BOUND_SIN_FAR : 2;
		if (x[0] == 0)
			tol = 0;
		break;
	case A_LG2:
		v = x[0] == 0 ? -INFINITY : log2l(x[0]);
		tol = x[0] > 0.5L && x[0] < 2 ? BOUND_LG2 : fabsl(v) * BOUND_LG2;
		break;
	case A_EX2:
		v = exp2l(x[0]);
		tol = v * (t == T_f32 ? BOUND_EX2 : t == T_f16 ? BOUND_EX2_F16 : BOUND_EX2_BF16);
		break;
	case A_TANH:
		v = tanhl(x[0]);
		tol = t == T_f32 ? fabsl(v) * BOUND_TANH : t == T_f16 ? BOUND_TANH_F16
			: BOUND_TANH_BF16;
		if (x[0] == 0)
			tol = 0;
		break;
	default:
		v = x[0] / x[1];
		/* div.approx is defined for |b| in [2^-126, 2^126]; beyond that the result is 0, or
		 * NaN if a is infinite; below it is not defined */
		if (fn == A_DIV && fabsl(x[1]) > 0x1p126L && isfinite(x[1])) {
			v = isinf(x[0]) || isnan(x[0]) ? NAN : 0;
			tol = isnan(v) ? 0 : 0x1p-149L;
		} else if (fn == A_DIV && x[1] != 0 && fabsl(x[1]) < 0x1p-126L) {
			w->how = WANT_ANY;
			return;
		} else if (isfinite(v) && v != 0) {
			frexpl(v, &e);
			ulp = ldexpl(1, e - 1 - (int)f->mbits);
			tol = BOUND_DIV_ULPS * ulp;
		}
	}
	near(w, t, v, tol, ftz);
}

/* Of a pair, each half is a result. */
static void lane_approx(const struct item *i, const uint64_t *s, struct want *w)
{
	uint64_t half[2] = { s[0] & 0xffff, s[0] >> 16 & 0xffff };

	for (unsigned k = 0; k < i->ndst; k++)
		approximate(i, i->ndst == 1 ? s : &half[k], &w[k]);
}

static void emit(struct item *i, struct rng *r, int fn, enum type t, bool ftz)
{
	const char *n = type_name(t);

	i->p[P_FN] = fn;
	i->p[P_TYPE] = (int)t;
	i->p[P_FTZ] = ftz;
	i->approximate = true;
	item_scalar(i, r, lane_approx, n, fn >= A_DIV ? "f32 f32" : n, "%s%s.%s", fn_name[fn],
		ftz ? ".ftz" : "", n);
}

void class_approx(struct item *i, struct rng *r)
{
	int fn = (int)rng_below(r, A_DIV_FULL + 1);

	if (rng_once_in(r, 8)) { /* rsqrt.approx.f64 exists without .ftz, rcp.approx.f64 does not */
		fn = rng_once_in(r, 2) ? A_RCP : A_RSQRT;
		emit(i, r, fn, T_f64, fn == A_RCP || rng_once_in(r, 2));
		return;
	}
	emit(i, r, fn, T_f32, fn != A_TANH && rng_once_in(r, 2));
}

void class_half_approx(struct item *i, struct rng *r)
{
	bool f16 = rng_once_in(r, 2), tanh = rng_once_in(r, 2);
	const char *fn = tanh ? "tanh.approx" : f16 ? "ex2.approx" : "ex2.approx.ftz";
	const char *n = f16 ? "f16" : "bf16";
	char two[16];

	if (rng_once_in(r, 2)) {
		emit(i, r, tanh ? A_TANH : A_EX2, f16 ? T_f16 : T_bf16, !tanh && !f16);
		return;
	}
	i->p[P_FN] = tanh ? A_TANH : A_EX2;
	i->p[P_TYPE] = f16 ? T_f16 : T_bf16;
	i->p[P_FTZ] = !tanh && !f16;
	i->approximate = true;
	snprintf(two, sizeof two, "%s %s", n, n);
	item_scalar(i, r, lane_approx, two, f16 ? "f16x2!" : "bf16x2!",
		".reg .b32 x; %s.%sx2 x, a; mov.b32 {d, q}, x;", fn, n);
}
