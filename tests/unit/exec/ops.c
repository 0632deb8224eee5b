/* The register-to-register instructions, run as PTX, against C: ops_cases.def with special and
 * random inputs, in full and partial warps, in both vector builds. The references are written from
 * the ISA, apart from the conversions of num.h, which num.c checks. Where the ISA does not define a
 * value (NaNs of neg, abs and cvt, division by zero, bfe.b64 beyond 255), they give the result of
 * an H200. Where there is a GPU, the cases also run on it. */
#include "tests/common/skip.h"

#include <criterion/criterion.h>

#include <dlfcn.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <xmmintrin.h>

#include "libconsan/exec/exec.h"
#include "libconsan/exec/num.h"

typedef __float128 Q; /* holds sums and products of 16-bit floats exactly */

/* ---- functions used by the expressions of ops_cases.def ---- */

#define UA ((uint32_t)a)
#define UB ((uint32_t)b)
#define UC ((uint32_t)c)
#define UE ((uint32_t)e)
#define SA ((int32_t)a)
#define SB ((int32_t)b)
#define SC ((int32_t)c)
#define HA ((uint16_t)a)
#define HB ((uint16_t)b)
#define HC ((uint16_t)c)
#define HE ((uint16_t)e)
#define PA (a & 1)
#define PB (b & 1)
#define FA f32of(a)
#define FB f32of(b)
#define FC f32of(c)
#define DA num_f64(a)
#define DB num_f64(b)
#define DC num_f64(c)
#define HFA num_from_f16(HA)
#define HFB num_from_f16(HB)
#define HFC num_from_f16(HC)
#define BFA num_from_bf16(HA)
#define BFB num_from_bf16(HB)
#define BFC num_from_bf16(HC)
#define LO(u) num_from_f16((uint16_t)(u))
#define HI(u) num_from_f16((uint16_t)((u) >> 16))
#define F(x) num_canon(x)
#define D(x) num_bits64(x)
#define W(hi, lo) ((unsigned __int128)(hi) << 64 | (lo))
#define W32(hi, lo) ((uint64_t)(uint32_t)(hi) << 32 | (uint32_t)(lo))
#define DIRECTED(mode, T, x, op, y) ({ \
	volatile T x_ = (x), y_ = (y), r_; \
	fesetround(mode); \
	r_ = x_ op y_; \
	fesetround(FE_TONEAREST); \
	r_; })
#define DIRECTED_INT(mode, T, S, x) ({ \
	volatile S x_ = (S)(x); \
	volatile T r_; \
	fesetround(mode); \
	r_ = (T)x_; \
	fesetround(FE_TONEAREST); \
	r_; })

static float f32of(uint64_t v) { return num_f32((uint32_t)v); }
static uint64_t two(uint64_t lo, uint64_t hi)
{
	return (uint16_t)lo | (uint64_t)(uint16_t)hi << 16;
}
static uint64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
	return (uint64_t)(v < lo ? lo : v > hi ? hi : v);
}
static int32_t s24(uint32_t v) { return (int32_t)(v << 8) >> 8; }
static float sat(float v) { return isnan(v) ? 0 : v > 1 ? 1 : v > 0 ? v : 0; }
static double sat16(Q v) { return v != v ? 0 : v > 1 ? 1 : v > 0 ? (double)v : 0; }
static uint64_t relu16(uint64_t h) { return h >> 15 ? 0 : h; }
static float least(float x, float y)
{
	if (isnan(x) || isnan(y))
		return isnan(x) ? y : x;
	if (x == y)
		return signbit(x) ? x : y;
	return x < y ? x : y;
}
static uint64_t xs(float r, uint32_t a, uint32_t b)
{
	return isnan(r) ? NUM_NAN32 : num_bits32(r) | ((a ^ b) & 0x80000000u);
}
/* an exact value to a double, rounded to odd: rounding again is exact */
static double odd(Q v)
{
	double r = (double)v;

	if (v != v || (Q)r == v || isinf(r) || num_bits64(r) & 1)
		return r;
	return nextafter(r, (Q)r < v ? INFINITY : -INFINITY);
}
static uint64_t half(Q v) { return num_f64_to_f16(odd(v)); }
static uint64_t brain(Q v) { return num_f64_to_bf16(odd(v)); }
/* bf16's exponents make even Q inexact: the part lost by the sum sets the last bit */
static uint64_t brain_fma(float a, float b, float c)
{
	Q p = (Q)a * b, s = p + c, t = s - p, lost = (p - (s - t)) + ((Q)c - t);
	double r = odd(s);

	if ((Q)r == s && (lost > 0 || lost < 0) && !(num_bits64(r) & 1))
		r = nextafter(r, lost > 0 ? INFINITY : -INFINITY);
	return num_f64_to_bf16(r);
}

static uint64_t bfe(uint64_t a, uint32_t b, uint32_t c, unsigned bits, bool sign)
{
	/* hardware uses the whole word for 64 bits */
	uint64_t pos = bits == 32 ? b & 255 : b, len = bits == 32 ? c & 255 : c, r = 0;
	uint64_t last = pos + len - 1 < bits - 1 ? pos + len - 1 : bits - 1;
	uint64_t s = sign && len ? a >> last & 1 : 0;

	for (unsigned i = 0; i < bits; i++)
		r |= (i < len && pos + i < bits ? a >> (pos + i) & 1 : s) << i;
	return r;
}
static uint64_t bfi(uint64_t a, uint64_t b, uint32_t c, uint32_t d, unsigned bits)
{
	uint64_t pos = bits == 32 ? c & 255 : c, len = bits == 32 ? d & 255 : d;

	for (unsigned i = 0; i < len && pos + i < bits; i++)
		b = (b & ~(1ull << (pos + i))) | (a >> i & 1) << (pos + i);
	return b;
}
static uint64_t prmt(uint32_t a, uint32_t b, uint32_t sel)
{
	uint8_t in[8], out[4];

	memcpy(in, &a, 4);
	memcpy(in + 4, &b, 4);
	for (unsigned i = 0; i < 4; i++, sel >>= 4)
		out[i] = sel & 8 ? (in[sel & 7] & 0x80 ? 0xff : 0) : in[sel & 7];
	memcpy(&a, out, 4);
	return a;
}
static uint64_t brev(uint64_t v)
{
	uint64_t r = 0;

	for (unsigned i = 0; i < 64; i++)
		r |= (v >> i & 1) << (63 - i);
	return r;
}
static uint64_t nth_set(uint32_t mask, int at, int n)
{
	int step = n > 0 ? 1 : -1;

	for (; at >= 0 && at < 32; at += step)
		if (mask >> at & 1 && (n -= step) == 0)
			return (uint64_t)at;
	return ~0u;
}
static uint64_t bits_from(unsigned at, unsigned n)
{
	uint64_t r = 0;

	for (unsigned i = at; i < at + n && i < 32; i++)
		r |= 1ull << i;
	return r;
}
static uint64_t dot(uint32_t a, uint32_t b, uint32_t c, unsigned abits, unsigned n,
	unsigned bbits, bool sa, bool sb, unsigned first)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t x = a >> abits * i & ((1u << abits) - 1),
			y = b >> bbits * (i + first) & 0xff;
		int64_t sx = sa && x >> (abits - 1) ? (int64_t)x - (1 << abits) : x;
		int64_t sy = sb && y >> 7 ? (int64_t)y - 256 : y;
		c += (uint32_t)(sx * sy);
	}
	return c;
}
static uint64_t absdiff(uint32_t a, uint32_t b, bool sign, bool sum)
{
	uint32_t r = 0, total = 0;

	for (unsigned s = 0; s < 32; s += 8) {
		int x = sign ? (int8_t)(a >> s) : (uint8_t)(a >> s);
		int y = sign ? (int8_t)(b >> s) : (uint8_t)(b >> s);
		r |= (uint32_t)abs(x - y) << s;
		total += (uint32_t)abs(x - y);
	}
	return sum ? total : r;
}

/* ---- the cases ---- */

#define CAT_(x, y) x##y
#define CAT(x, y) CAT_(x, y)
#define UNUSED __attribute__((unused))
#define CASE(reg, ptx, expr) \
static uint64_t CAT(ref_, __LINE__)(uint64_t a UNUSED, uint64_t b UNUSED, \
	uint64_t c UNUSED, uint64_t e UNUSED) \
{ \
	return (uint64_t)(expr); \
}
#include "ops_cases.def"
#undef CASE

enum reg { R_h, R_r, R_d, R_p, R_pq };
static const struct test_case {
	enum reg reg;
	const char *ptx;
	uint64_t (*ref)(uint64_t, uint64_t, uint64_t, uint64_t);
} cases[] = {
#define CASE(reg, ptx, expr) { reg, ptx, CAT(ref_, __LINE__) },
#include "ops_cases.def"
#undef CASE
};

/* ---- running them ---- */

enum { THREADS = 64, BLOCKS = 16, N = THREADS * BLOCKS };
struct input { uint64_t a, b, c, e, old, on; };
static struct input input[N];
static uint64_t output[N];

static uint64_t state = 0x9e3779b97f4a7c15u;
static uint64_t rnd64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}
/* values at which instructions change their behaviour: small, extreme, every kind of float in both
 * halves */
static uint64_t pick(void)
{
	static const uint32_t word[] = { 0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 0x7fffffff, 0x80000000,
		0xffffffff, 0xfffffffe, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000,
		0x00000001, 0x807fffff, 0x00800000, 0x7f7fffff, 0x3f000000, 0x4f000000, 0xcf000000,
		0x4f800000, 0x3c003c00, 0x7c007c00, 0x04000001, 0xfc007e00, 0x80003f80, 0x7bff7f80,
		0x00040010, 0x04080c10 };
	const unsigned n = sizeof word / sizeof *word;

	switch (rnd64() % 8) {
	case 0: return word[rnd64() % n];
	case 1: return (uint64_t)word[rnd64() % n] << 32 | word[rnd64() % n];
	case 2: return (uint64_t)(int64_t)(int32_t)word[rnd64() % n];
	case 3: return num_bits32((float)(int32_t)rnd64() * 0x1p-20f);
	case 4: return num_bits64((double)(int64_t)rnd64() * 0x1p-40);
	case 5: return rnd64() % 40;
	case 6: return two(num_to_f16((float)(int16_t)rnd64() / 64),
		num_to_bf16((float)(int16_t)rnd64() / 64));
	default: return rnd64();
	}
}

static const char *const load_of[] = { "ld.global.b16 %h0", "ld.global.b32 %r0",
	"ld.global.b64 %d0" };
static void kernel_text(struct text *t, size_t k, bool guarded)
{
	const struct test_case *x = &cases[k];

	text_printf(t, ".visible .entry k%zu%s(.param .u64 in, .param .u64 out)\n{\n"
		".reg .b16 %%h<5>; .reg .b32 %%r<5>; .reg .b64 %%d<5>; .reg .pred %%p<4>;\n"
		".reg .pred %%on; .reg .b64 %%in, %%out; .reg .b32 %%i, %%t; .reg .b64 %%x;\n"
		"mov.u32 %%i, %%ctaid.x; mov.u32 %%t, %%tid.x; mad.lo.s32 %%i, %%i, %d, %%t;\n"
		"ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out];\n"
		"mul.wide.u32 %%x, %%i, 48; add.s64 %%in, %%in, %%x;\n"
		"mul.wide.u32 %%x, %%i, 8; add.s64 %%out, %%out, %%x;\n",
		k, guarded ? "g" : "", THREADS);
	for (unsigned n = 1; n <= 4; n++)
		text_printf(t, "ld.global.b16 %%h%u, [%%in+%u]; ld.global.b32 %%r%u, [%%in+%u]; "
			"ld.global.b64 %%d%u, [%%in+%u];\n", n, 8 * n - 8, n, 8 * n - 8, n,
			8 * n - 8);
	text_printf(t, "%s, [%%in+32];\n", load_of[x->reg > R_d ? R_d : x->reg]);
	text_printf(t, "and.b32 %%t, %%r1, 1; setp.ne.b32 %%p1, %%t, 0;\n"
		"and.b32 %%t, %%r2, 1; setp.ne.b32 %%p2, %%t, 0;\n"
		"ld.global.b32 %%t, [%%in+40]; setp.ne.b32 %%on, %%t, 0;\n"
		"setp.ne.b32 %%p0, 1, 0; setp.ne.b32 %%p3, 1, 0;\n");
	/* a case of several statements starts with a brace; it is never guarded */
	text_printf(t, "%s%s\n", guarded ? "@%on " : "", x->ptx);
	switch (x->reg) {
	case R_h: text_printf(t, "cvt.u64.u16 %%d0, %%h0;\n"); break;
	case R_r: text_printf(t, "cvt.u64.u32 %%d0, %%r0;\n"); break;
	case R_d: break;
	case R_p: text_printf(t, "selp.b64 %%d0, 1, 0, %%p0;\n"); break;
	case R_pq:
		text_printf(t, "selp.b64 %%d0, 1, 0, %%p0; selp.b64 %%x, 2, 0, %%p3; "
			"or.b64 %%d0, %%d0, %%x;\n");
		break;
	}
	text_printf(t, "st.global.b64 [%%out], %%d0;\nret;\n}\n");
}

static uint64_t old_value(const struct test_case *x, const struct input *in)
{
	switch (x->reg) {
	case R_h: return (uint16_t)in->old;
	case R_r: return (uint32_t)in->old;
	case R_d: return in->old;
	case R_p: return 1;
	case R_pq: return 3;
	}
	return 0;
}
static uint64_t trim(enum reg reg, uint64_t v)
{
	return reg == R_h ? (uint16_t)v : reg == R_r ? (uint32_t)v : reg == R_d ? v : v & 3;
}

static unsigned bad;
static void run_case(struct exec_module *m, size_t k, bool guarded)
{
	const struct test_case *x = &cases[k];
	uint64_t params[2] = { (uintptr_t)input, (uintptr_t)output };
	struct exec_launch l = { .device = exec_device_for(100), .grid = { BLOCKS, 1, 1 },
		.block = { THREADS, 1, 1 }, .cluster = { 1, 1, 1 }, .params = params, .jobs = 1 };
	struct exec_result r;
	struct consan_err e = { 0 };
	char name[32];

	snprintf(name, sizeof name, "k%zu%s", k, guarded ? "g" : "");
	l.kernel = exec_kernel(m, name, &e);
	cr_assert(l.kernel, "%s: %s", x->ptx, e.text);
	memset(output, 0xee, sizeof output);
	/* a program that rounds to zero and flushes subnormals: this must not affect the kernel,
	 * and must still be set afterwards */
	const unsigned csr = _mm_getcsr(), odd_csr = csr | 0x8040 | _MM_ROUND_TOWARD_ZERO;
	_mm_setcsr(odd_csr);
	exec_run(&l, &r);
	cr_assert_eq((_mm_getcsr() ^ odd_csr) & ~0x3fu, 0);
	_mm_setcsr(csr);
	if (r.status != EXEC_OK) {
		cr_expect(false, "%s: status %d: %s", x->ptx, (int)r.status, r.err.text);
		return;
	}
	for (unsigned i = 0; i < N; i++) {
		const struct input *in = &input[i];
		uint64_t want = guarded && !in->on ? old_value(x, in)
			: trim(x->reg, x->ref(in->a, in->b, in->c, in->e));
		/* f64 NaNs: payload and sign are those of the processor */
		if (x->reg == R_d && strstr(x->ptx, "f64") && isnan(num_f64(want))
				&& isnan(num_f64(output[i])))
			continue;
		if (output[i] == want)
			continue;
		bad++;
		cr_expect(false, "%s%s: a %lx b %lx c %lx e %lx lane %u: got %lx, want %lx",
			guarded ? "@%on " : "", x->ptx, in->a, in->b, in->c, in->e, i % 32,
			output[i], want);
		return;
	}
}

static void run_all(void)
{
	struct text t = { 0 };
	struct consan_err e = { 0 };

	for (unsigned i = 0; i < N; i++)
		input[i] = (struct input){ pick(), pick(), pick(), pick(), rnd64(), rnd64() & 1 };
	text_printf(&t, ".version 9.0\n.target sm_100a\n.address_size 64\n");
	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		kernel_text(&t, k, false);
		if (cases[k].ptx[0] != '{')
			kernel_text(&t, k, true);
	}
	struct ptx_module *ptx = ptx_parse("ops", t.at, t.n, &e);
	cr_assert(ptx, "%s", e.text);
	struct exec_module *m = exec_load(ptx, &e);
	cr_assert(m, "%s", e.text);
	exec_mem_add(input, sizeof input, MEM_DEVICE, false);
	exec_mem_add(output, sizeof output, MEM_DEVICE, false);
	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		run_case(m, k, false);
		if (cases[k].ptx[0] != '{')
			run_case(m, k, true);
	}
	exec_unload(m);
	text_free(&t);
}

Test(ops, narrow_build)
{
	setenv("CONSAN_SIMD", "avx2", 1);
	run_all();
}
Test(ops, wide_build)
{
	unsetenv("CONSAN_SIMD");
	run_all();
}

/* ---- the same cases on a real GPU, if there is one ---- */

/* The part of the driver API used here; every function returns 0 for success. */
#define CU_FUNCTIONS \
CU(cuInit, (unsigned)) \
CU(cuDeviceGet, (int *, int)) \
CU(cuDeviceGetAttribute, (int *, int, int)) \
CU(cuCtxCreate_v2, (void **, unsigned, int)) \
CU(cuMemAlloc_v2, (uint64_t *, size_t)) \
CU(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t)) \
CU(cuMemcpyDtoH_v2, (void *, uint64_t, size_t)) \
CU(cuModuleLoadData, (void **, const void *)) \
CU(cuModuleGetFunction, (void **, void *, const char *)) \
CU(cuModuleUnload, (void *)) \
CU(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	unsigned, void *, void **, void **))
static struct {
#define CU(name, args) int (*name) args;
	CU_FUNCTIONS
#undef CU
} cu;
static bool cu_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib)
		return false;
#define CU(name, args) \
	*(void **)&cu.name = dlsym(lib, #name); \
	if (!cu.name) \
		return false;
	CU_FUNCTIONS
#undef CU
	return true;
}

/* hardware approximates div.full, and its NaN differs */
static bool agree(const struct test_case *x, uint64_t emulated, uint64_t real)
{
	if (strstr(x->ptx, "div.full"))
		return true;
	if (x->reg == R_r && isnan(f32of(emulated)) && isnan(f32of(real)))
		return true;
	return emulated == real || (x->reg == R_d && isnan(num_f64(emulated))
		&& isnan(num_f64(real)));
}

Test(ops, same_as_a_gpu)
{
	int device, major, minor, refused = 0;
	void *context;
	uint64_t din, dout;
	static uint64_t real[N];

	if (!cu_open() || cu.cuInit(0) || cu.cuDeviceGet(&device, 0))
		SKIP_TEST("no GPU here");
	cu.cuDeviceGetAttribute(&major, 75, device);
	cu.cuDeviceGetAttribute(&minor, 76, device);
	cr_assert(!cu.cuCtxCreate_v2(&context, 0, device));
	cu.cuMemAlloc_v2(&din, sizeof input);
	cu.cuMemAlloc_v2(&dout, sizeof output);
	for (unsigned i = 0; i < N; i++)
		input[i] = (struct input){ pick(), pick(), pick(), pick(), rnd64(), rnd64() & 1 };
	cu.cuMemcpyHtoD_v2(din, input, sizeof input);
	exec_mem_add(input, sizeof input, MEM_DEVICE, false);
	exec_mem_add(output, sizeof output, MEM_DEVICE, false);
	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		struct text t = { 0 };
		struct consan_err e = { 0 };
		void *module, *function, *args[] = { &din, &dout };
		char name[32];

		snprintf(name, sizeof name, "k%zu", k);
		text_printf(&t, ".version 8.6\n.target sm_%d%d%s\n.address_size 64\n", major, minor,
			major >= 9 ? "a" : "");
		kernel_text(&t, k, false);
		if (cu.cuModuleLoadData(&module, t.at)) {
			refused++; /* not an instruction of this GPU */
			text_free(&t);
			continue;
		}
		cr_assert(!cu.cuModuleGetFunction(&function, module, name));
		cr_assert(!cu.cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL,
			args, NULL));
		cr_assert(!cu.cuMemcpyDtoH_v2(real, dout, sizeof real));
		cu.cuModuleUnload(module);
		struct exec_module *m = exec_load(ptx_parse("ops", t.at, t.n, &e), &e);
		cr_assert(m, "%s", e.text);
		run_case(m, k, false);
		exec_unload(m);
		text_free(&t);
		for (unsigned i = 0; i < N; i++)
			if (!agree(&cases[k], output[i], real[i])) {
				cr_expect(false, "%s: a %lx b %lx c %lx e %lx: %lx, on the GPU %lx",
					cases[k].ptx,
					input[i].a, input[i].b, input[i].c, input[i].e, output[i],
					real[i]);
				break;
			}
	}
	cr_log_info("%zu cases on sm_%d%d, %d not for it", ARRAY_SIZE(cases), major, minor,
		refused);
}
