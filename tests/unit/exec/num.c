/* num: every number format against a slow reference that represents a format as a sorted list of
 * its values. Arithmetic is tested in ops.c. */
#include <criterion/criterion.h>

#include <fenv.h>
#include <math.h>
#include <stdlib.h>

#include "libconsan/exec/fmath.h"
#include "libconsan/exec/num.h"
#include "libconsan/exec/simd.h"

static uint64_t state = 88172645463325252u;
static uint64_t rnd64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* ---- the reference: values[k] is the value of code k, without sign ---- */

struct ref {
	const char *name;
	unsigned mant, bits;
	int bias;
	uint32_t max, inf, nan; /* codes */
	double *value;          /* the values up to max, then the one that would follow */
};
static struct ref refs[] = {
	{ "f16", 10, 16, 15, 0x7bff, 0x7c00, 0x7fff, NULL },
	{ "bf16", 7, 16, 127, 0x7f7f, 0x7f80, 0x7fff, NULL },
	{ "e4m3", 3, 8, 7, 0x7e, 0x7e, 0x7f, NULL },
	{ "e5m2", 2, 8, 15, 0x7b, 0x7b, 0x7f, NULL },
	{ "e3m2", 2, 6, 3, 0x1f, 0x1f, 0x1f, NULL },
	{ "e2m3", 3, 6, 1, 0x1f, 0x1f, 0x1f, NULL },
	{ "e2m1", 1, 4, 1, 0x7, 0x7, 0x7, NULL },
};
static struct num_fmt fmt_of(unsigned k)
{
	switch (k) {
	case 0: return NUM_FMT_f16;
	case 1: return NUM_FMT_bf16;
	case 2: return NUM_FMT_e4m3;
	case 3: return NUM_FMT_e5m2;
	case 4: return NUM_FMT_e3m2;
	case 5: return NUM_FMT_e2m3;
	default: return NUM_FMT_e2m1;
	}
}
static void ref_init(void)
{
	for (unsigned k = 0; k < 7; k++) {
		struct ref *r = &refs[k];
		r->value = malloc((r->max + 2) * sizeof(double));
		for (uint32_t c = 0; c <= r->max + 1; c++) {
			int e = (int)(c >> r->mant);
			double m = c & ((1u << r->mant) - 1);
			r->value[c] = e ? ldexp(m + (1u << r->mant), e - r->bias - (int)r->mant)
				: ldexp(m, 1 - r->bias - (int)r->mant);
		}
	}
}
static uint32_t ref_round(const struct ref *r, double x, enum num_round mode, bool satfinite)
{
	bool neg = signbit(x);
	double a = fabs(x);
	uint32_t sign = (uint32_t)neg << (r->bits - 1), lo = 0, hi = r->max + 1;
	uint32_t inf = satfinite ? r->max : r->inf;

	if (isnan(x))
		return r->nan;
	if (isinf(x))
		return sign | inf;
	if (a >= r->value[hi]) {
		lo = hi;
	} else {
		while (hi - lo > 1) {
			uint32_t mid = (lo + hi) / 2;
			if (r->value[mid] <= a)
				lo = mid;
			else
				hi = mid;
		}
		double below = a - r->value[lo], above = r->value[lo + 1] - a;
		bool up = false;
		if (below != 0)
			switch (mode) {
			case NUM_RN: up = below > above || (below == above && (lo & 1)); break;
			case NUM_RNA: up = below >= above; break;
			case NUM_RZ: up = false; break;
			case NUM_RM: up = neg; break;
			case NUM_RP: up = !neg; break;
			}
		lo += up;
	}
	if (lo <= r->max)
		return sign | lo;
	bool down = mode == NUM_RZ || (mode == NUM_RM && !neg) || (mode == NUM_RP && neg);
	return sign | (down ? r->max : inf);
}

static void check_narrow(unsigned k, double x)
{
	const struct num_fmt f = fmt_of(k);

	for (enum num_round m = NUM_RN; m <= NUM_RNA; m++)
		for (int s = 0; s < 2; s++) {
			uint32_t want = ref_round(&refs[k], x, m, s);
			uint32_t got = num_narrow64(num_bits64(x), f, m, s);
			if (want != got)
				cr_assert(false, "%s: f64 %a mode %d sat %d: %x, want %x",
					refs[k].name, x, m, s, got, want);
			if (isnan(x) || (double)(float)x != x)
				continue;
			got = num_narrow32(num_bits32((float)x), f, m, s);
			if (want != got)
				cr_assert(false, "%s: f32 %a mode %d sat %d: %x, want %x",
					refs[k].name, x, m, s, got, want);
		}
}

Test(num, narrow_at_every_value_and_midpoint, .init = ref_init)
{
	for (unsigned k = 0; k < 7; k++)
		for (uint32_t c = 0; c <= refs[k].max; c++) {
			double v = refs[k].value[c], mid = (v + refs[k].value[c + 1]) / 2;
			double at[] = { v, mid, nextafter(mid, 0), nextafter(mid, INFINITY),
				(double)nextafterf((float)mid, 0),
				(double)nextafterf((float)mid, INFINITY),
				nextafter(v, INFINITY), nextafter(v, 0) };
			for (unsigned n = 0; n < 8; n++) {
				check_narrow(k, at[n]);
				check_narrow(k, -at[n]);
			}
		}
}

Test(num, narrow_random_and_special, .init = ref_init)
{
	static const double special[] = { 0, INFINITY, 65504, 65519.99, 65520, 448, 464, 465, 480,
		57344, 61440, 1e30, 1e300, 1e-300, 0x1p-149, 0x1p-150, 0x1p-1074, 3.4e38, 3.5e38 };

	for (unsigned k = 0; k < 7; k++) {
		check_narrow(k, NAN);
		for (unsigned n = 0; n < sizeof special / sizeof *special; n++) {
			check_narrow(k, special[n]);
			check_narrow(k, -special[n]);
		}
		for (unsigned n = 0; n < 100000; n++) {
			check_narrow(k, num_f64(rnd64()));
			check_narrow(k, (double)num_f32((uint32_t)rnd64()));
			/* in the range of the format */
			check_narrow(k, ldexp((double)(int64_t)rnd64(),
				(int)(rnd64() % 48) - 63 - 24));
		}
	}
}

Test(num, widen_every_code, .init = ref_init)
{
	for (unsigned k = 0; k < 7; k++) {
		const struct ref *r = &refs[k];
		for (uint32_t c = 0; c < 1u << r->bits; c++) {
			uint32_t mag = c & ((1u << (r->bits - 1)) - 1);
			float got = k == 0 ? num_from_f16((uint16_t)c)
				: k == 1 ? num_from_bf16((uint16_t)c)
				: k == 2 ? num_from_e4m3((uint8_t)c)
				: k == 3 ? num_from_e5m2((uint8_t)c)
				: k == 4 ? num_from_e3m2((uint8_t)c)
				: k == 5 ? num_from_e2m3((uint8_t)c)
				: num_from_e2m1((uint8_t)c);
			bool neg = c >> (r->bits - 1);
			if (mag <= r->max)
				cr_assert(num_bits32(got) == num_bits32((float)(neg
						? -r->value[mag] : r->value[mag])),
					"%s %x", r->name, c);
			else if ((k == 0 || k == 1) && mag == r->inf)
				cr_assert(isinf(got) && !!signbit(got) == neg);
			else if (k == 3 && mag == 0x7c)
				cr_assert(isinf(got));
			else
				cr_assert(isnan(got), "%s %x is %a", r->name, c, (double)got);
		}
	}
	cr_assert_eq(num_from_ue8m0(0), 0x1p-127f);
	cr_assert_eq(num_from_ue8m0(127), 1.0f);
	cr_assert_eq(num_from_ue8m0(254), 0x1p127f);
	cr_assert(isnan(num_from_ue8m0(255)));
}

Test(num, f16_and_bf16_round_trips)
{
	for (uint32_t c = 0; c < 65536; c++) {
		uint16_t h = num_to_f16(num_from_f16((uint16_t)c));
		uint16_t b = num_to_bf16(num_from_bf16((uint16_t)c));
		cr_assert_eq(h, (c & 0x7fff) > 0x7c00 ? 0x7fff : c);
		cr_assert_eq(b, (c & 0x7fff) > 0x7f80 ? 0x7fff : c);
		cr_assert_eq(num_f64_to_f16((double)num_from_f16((uint16_t)c)), h);
		cr_assert_eq(num_f64_to_bf16((double)num_from_bf16((uint16_t)c)), b);
	}
	for (unsigned n = 0; n < 1000000; n++) {
		uint32_t u = (uint32_t)rnd64();
		cr_assert_eq(num_to_bf16(num_f32(u)), num_narrow32(u, NUM_FMT_bf16, NUM_RN, false));
	}
}

Test(num, tf32)
{
	for (unsigned n = 0; n < 1000000; n++) {
		uint32_t u = (uint32_t)rnd64(), low = u & 0x1fff, t = u & ~0x1fffu;
		bool nan = (u & 0x7fffffff) > 0x7f800000, finite = (u & 0x7f800000) != 0x7f800000;
		if (nan) {
			cr_assert_eq(num_to_tf32(u, NUM_RNA, false), 0x7fffe000u);
			continue;
		}
		if (!finite)
			continue;
		/* adding to the bits is rounding, up to infinity */
		cr_assert_eq(num_to_tf32(u, NUM_RZ, false), t);
		cr_assert_eq(num_to_tf32(u, NUM_RNA, false), low >= 0x1000 ? t + 0x2000 : t);
		cr_assert_eq(num_to_tf32(u, NUM_RN, false),
			low > 0x1000 || (low == 0x1000 && (t & 0x2000)) ? t + 0x2000 : t);
	}
	cr_assert_eq(num_to_tf32(0x7f7fffff, NUM_RN, true), 0x7f7fe000u);
	cr_assert_eq(num_to_tf32(0x7f7fffff, NUM_RN, false), 0x7f800000u);
}

Test(num, ue8m0)
{
	cr_assert_eq(num_to_ue8m0(num_bits32(1.0f), NUM_RZ, true), 127);
	cr_assert_eq(num_to_ue8m0(num_bits32(-1.5f), NUM_RZ, true), 127);
	cr_assert_eq(num_to_ue8m0(num_bits32(1.5f), NUM_RP, true), 128);
	cr_assert_eq(num_to_ue8m0(num_bits32(0x1p-127f), NUM_RP, true), 0);
	cr_assert_eq(num_to_ue8m0(num_bits32(0x1.8p-127f), NUM_RP, true), 1);
	cr_assert_eq(num_to_ue8m0(num_bits32(0), NUM_RP, true), 0);
	cr_assert_eq(num_to_ue8m0(num_bits32(3e38f), NUM_RP, true), 254);
	cr_assert_eq(num_to_ue8m0(num_bits32(3e38f), NUM_RP, false), 255);
	cr_assert_eq(num_to_ue8m0(num_bits32(INFINITY), NUM_RZ, true), 254);
	cr_assert_eq(num_to_ue8m0(NUM_NAN32, NUM_RP, true), 255);
}

/* ---- integers: against the processor under each rounding mode ---- */

static int fe_of(enum num_round m)
{
	return m == NUM_RN ? FE_TONEAREST : m == NUM_RZ ? FE_TOWARDZERO
		: m == NUM_RM ? FE_DOWNWARD : FE_UPWARD;
}
static void check_int_to_float(int64_t v)
{
	bool neg = v < 0;
	uint64_t mag = neg ? -(uint64_t)v : (uint64_t)v;

	for (enum num_round m = NUM_RN; m <= NUM_RP; m++) {
		volatile int64_t in = v;
		fesetround(fe_of(m));
		volatile float f = (float)in;
		volatile double d = (double)in;
		fesetround(FE_TONEAREST);
		cr_assert_eq(num_int_to_float(mag, neg, 23, 127, m), num_bits32(f), "%ld mode %d",
			v, m);
		cr_assert_eq(num_int_to_float(mag, neg, 52, 1023, m), num_bits64(d), "%ld mode %d",
			v, m);
	}
}
Test(num, integers_to_floats)
{
	for (int s = 0; s < 64; s++)
		for (int d = -3; d <= 3; d++) {
			check_int_to_float((int64_t)((1ull << s) + (uint64_t)d));
			check_int_to_float((int64_t)(0 - ((1ull << s) + (uint64_t)d)));
		}
	for (unsigned n = 0; n < 200000; n++)
		check_int_to_float((int64_t)rnd64() >> rnd64() % 64);
	/* beyond the range of f16 */
	cr_assert_eq(num_int_to_float(65519, false, 10, 15, NUM_RN), 0x7bff);
	cr_assert_eq(num_int_to_float(65520, false, 10, 15, NUM_RN), 0x7c00);
	cr_assert_eq(num_int_to_float(65520, true, 10, 15, NUM_RZ), 0xfbff);
	cr_assert_eq(num_int_to_float(1u << 20, false, 10, 15, NUM_RP), 0x7c00);
	cr_assert_eq(num_int_to_float(1u << 20, true, 10, 15, NUM_RP), 0xfbff);
	cr_assert_eq(num_int_to_float(0, true, 10, 15, NUM_RP), 0);
}

Test(num, floats_to_integers)
{
	cr_assert_eq(num_to_int(NAN, 32, true, false, NUM_RN), 0);
	cr_assert_eq(num_to_int(NAN, 32, false, true, NUM_RN), 0x80000000u);
	cr_assert_eq(num_to_int(NAN, 64, true, false, NUM_RN), 1ull << 63);
	cr_assert_eq(num_to_int(3e9, 32, true, false, NUM_RZ), 0x7fffffffu);
	cr_assert_eq(num_to_int(-3e9, 32, true, false, NUM_RZ), 0x80000000u);
	cr_assert_eq(num_to_int(-1, 32, false, false, NUM_RZ), 0);
	cr_assert_eq(num_to_int(1e30, 64, false, false, NUM_RZ), UINT64_MAX);
	cr_assert_eq(num_to_int(-1e30, 64, true, false, NUM_RZ), 1ull << 63);
	cr_assert_eq(num_to_int(300, 8, false, false, NUM_RZ), 255);
	cr_assert_eq(num_to_int(-300, 8, true, false, NUM_RZ), 0x80);
	cr_assert_eq(num_to_int(2.5, 32, true, false, NUM_RN), 2);
	cr_assert_eq(num_to_int(2.5, 32, true, false, NUM_RP), 3);
	cr_assert_eq(num_to_int(-2.5, 32, true, false, NUM_RM), 0xfffffffdu);
	cr_assert_eq(num_to_int(-2.5, 32, true, false, NUM_RZ), 0xfffffffeu);
	cr_assert_eq(num_to_int(1e19, 64, false, false, NUM_RZ), 10000000000000000000ull);
}

/* ---- rows, in both builds, against the scalar functions ---- */

#define ROW(name, dst, src) \
	void num_##name##_avx2(dst *, const src *, size_t); \
	void num_##name##_avx512(dst *, const src *, size_t);
#include "libconsan/exec/num_rows.def"
#undef ROW

static bool same_f32(float a, float b)
{
	return num_bits32(a) == num_bits32(b) || (isnan(a) && isnan(b));
}
#define CHECK_ROW(name, count, scalar) do { \
	for (int wide = 0; wide < 1 + (simd_level() == SIMD_512); wide++) { \
		(wide ? num_##name##_avx512 : num_##name##_avx2)(out, in, count); \
		for (size_t n = 0; n < count; n++) \
			cr_assert(same_f32(out[n], scalar), #name " %zu", n); \
	} } while (0)
Test(num, rows)
{
	enum { N = 65536 };
	static float out[N];

	cr_assert_null(simd_missing());
	{
		static uint16_t in[N];
		for (unsigned n = 0; n < N; n++)
			in[n] = (uint16_t)n;
		CHECK_ROW(f16_to_f32, N, num_from_f16(in[n]));
		CHECK_ROW(bf16_to_f32, N, num_from_bf16(in[n]));
		CHECK_ROW(f16_to_f32, 13, num_from_f16(in[n]));
	}
	{
		uint8_t in[256];
		for (unsigned n = 0; n < 256; n++)
			in[n] = (uint8_t)n;
		CHECK_ROW(e4m3_to_f32, 256, num_from_e4m3(in[n]));
		CHECK_ROW(e5m2_to_f32, 256, num_from_e5m2(in[n]));
		CHECK_ROW(e3m2_to_f32, 256, num_from_e3m2(in[n]));
		CHECK_ROW(e2m3_to_f32, 256, num_from_e2m3(in[n]));
		CHECK_ROW(e2m1_to_f32, 256, num_from_e2m1(in[n]));
		CHECK_ROW(e2m1x2_to_f32, 512, num_from_e2m1((uint8_t)(in[n / 2] >> n % 2 * 4)));
		CHECK_ROW(ue8m0_to_f32, 256, num_from_ue8m0(in[n]));
	}
	static float in[N];
	static uint16_t half[N];
	for (unsigned n = 0; n < N; n++)
		in[n] = num_f32((uint32_t)rnd64());
	for (int wide = 0; wide < 1 + (simd_level() == SIMD_512); wide++) {
		(wide ? num_f32_to_f16_avx512 : num_f32_to_f16_avx2)(half, in, N - 3);
		for (unsigned n = 0; n < N - 3; n++)
			cr_assert_eq(half[n], num_to_f16(in[n]));
		(wide ? num_f32_to_bf16_avx512 : num_f32_to_bf16_avx2)(half, in, N - 3);
		for (unsigned n = 0; n < N - 3; n++)
			cr_assert_eq(half[n], num_to_bf16(in[n]));
	}
}

/* ---- the transcendental functions: nearly always correctly rounded ---- */

static unsigned wrong;
static void near(const char *what, float x, float got, double exact)
{
	float want = (float)exact;

	if (num_bits32(got) == num_bits32(want) || (isnan(got) && isnan(want)))
		return;
	wrong++;
	cr_assert(fabsf(got - want) <= nextafterf(fabsf(want), INFINITY) - fabsf(want),
		"%s(%a) = %a, want %a", what, (double)x, (double)got, (double)want);
}
Test(num, transcendental)
{
	static const float special[] = { 0, -0.0f, INFINITY, -INFINITY, NAN, 1, -1, 0x1p-149f,
		0x1p-126f,
		-0x1p-149f, 3.4e38f, -150, 128, 127.99f, -126.5f, 0.5f, 2, 1e-8f, -1e-3f };
	unsigned n = 0;

	wrong = 0;
	for (; n < 300000; n++) {
		float x = n < sizeof special / sizeof *special ? special[n]
			: n % 2 ? num_f32((uint32_t)rnd64()) : (float)(int32_t)rnd64() * 0x1p-24f;
		near("ex2", x, fm_ex2(x), exp2((double)x));
		near("lg2", x, fm_lg2(x), log2((double)x));
		near("tanh", x, fm_tanh(x), tanh((double)x));
		if (isnan(x) || isinf(x)) {
			cr_assert(isnan(fm_sincos(x, 0)) && isnan(fm_sincos(x, 1)));
			continue;
		}
		/* ISA: absolute error 2^-20.5 in [-pi, pi] */
		if (fabsf(x) > 3.1415927f)
			continue;
		cr_assert(fabs((double)fm_sincos(x, 0) - sin((double)x)) < 0x1p-20, "sin(%a)",
			(double)x);
		cr_assert(fabs((double)fm_sincos(x, 1) - cos((double)x)) < 0x1p-20, "cos(%a)",
			(double)x);
	}
	cr_assert(wrong < n / 1000, "%u of %u not correctly rounded", wrong, n);
}
