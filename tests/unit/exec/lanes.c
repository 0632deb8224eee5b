/* Exchange between lanes of a warp (shfl, vote, match, redux, movmatrix) against loops over the
 * lanes: in full warps, in parts of a warp, and in two parts that execute the same instruction with
 * different member masks. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libconsan/exec/exec.h"
#include "libconsan/exec/num.h"

/* ---- registers of one warp, and the expected result of lane l ---- */

struct lanes {
	uint64_t a[32];
	uint32_t b[32];
	uint32_t on;    /* the member mask */
};
struct result { uint32_t d, p; };

static struct result shfl(const struct lanes *w, unsigned l, int mode, uint32_t b, uint32_t c)
{
	/* the pseudocode of the ISA */
	int lane = (int)l, bval = (int)(b & 31), cval = (int)(c & 31), mask = (int)(c >> 8 & 31);
	int max = (lane & mask) | (cval & ~mask), min = lane & mask, j;
	bool p;

	switch (mode) {
	case 'u': j = lane - bval; p = j >= max; break;
	case 'd': j = lane + bval; p = j <= max; break;
	case 'x': j = lane ^ bval; p = j <= max; break;
	default: j = min | (bval & ~mask); p = j <= max; break;
	}
	return (struct result){ (uint32_t)w->a[p ? j : lane], p };
}
static uint32_t odd_lanes(const struct lanes *w)
{
	uint32_t m = 0;

	for (unsigned l = 0; l < 32; l++)
		m |= (uint32_t)(w->a[l] & 1) << l;
	return m;
}
static struct result match(const struct lanes *w, unsigned l, bool all, uint64_t keep)
{
	uint32_t m = 0;

	for (unsigned k = 0; k < 32; k++)
		m |= (uint32_t)((w->a[k] & keep) == (w->a[l] & keep)) << k;
	m &= w->on;
	return all ? (struct result){ m == w->on ? m : 0, m == w->on } : (struct result){ m, 1 };
}
static uint32_t redux(const struct lanes *w, char op)
{
	uint32_t r = 0;
	bool first = true;

	for (unsigned k = 0; k < 32; k++) {
		uint32_t v = (uint32_t)w->a[k];
		if (!(w->on >> k & 1))
			continue;
		if (first) {
			r = v;
			first = false;
			continue;
		}
		switch (op) {
		case '+': r += v; break;
		case '&': r &= v; break;
		case '|': r |= v; break;
		case '^': r ^= v; break;
		case 'm': r = v < r ? v : r; break;
		case 'M': r = v > r ? v : r; break;
		case 's': r = (int32_t)v < (int32_t)r ? v : r; break;
		case 'S': r = (int32_t)v > (int32_t)r ? v : r; break;
		}
	}
	return r;
}
static uint32_t redux_f(const struct lanes *w, bool max, bool mag, bool nan)
{
	float r = NAN;
	bool seen = false;

	for (unsigned k = 0; k < 32; k++) {
		float v = num_f32((uint32_t)w->a[k]);
		if (!(w->on >> k & 1))
			continue;
		seen |= isnan(v);
		v = mag ? fabsf(v) : v;
		if (isnan(r) || (!isnan(v) && (max ? v > r : v < r)) ||
				(v == r && signbit(v) != signbit(r) && !!signbit(r) == max))
			r = v;
	}
	return nan && seen ? NUM_NAN32 : num_canon(r);
}

#define CASES \
CASE("shfl.sync.up.b32 %r0|%p0, %r1, 1, 0, %on;", shfl(w, l, 'u', 1, 0)) \
CASE("shfl.sync.up.b32 %r0|%p0, %r1, 3, 0x1800, %on;", shfl(w, l, 'u', 3, 0x1800)) \
CASE("shfl.sync.down.b32 %r0|%p0, %r1, 16, 31, %on;", shfl(w, l, 'd', 16, 31)) \
CASE("shfl.sync.down.b32 %r0|%p0, %r1, 2, 0x181f, %on;", shfl(w, l, 'd', 2, 0x181f)) \
CASE("shfl.sync.bfly.b32 %r0|%p0, %r1, 5, 31, %on;", shfl(w, l, 'x', 5, 31)) \
CASE("shfl.sync.bfly.b32 %r0|%p0, %r1, 16, 0x100f, %on;", shfl(w, l, 'x', 16, 0x100f)) \
CASE("shfl.sync.idx.b32 %r0|%p0, %r1, %r2, 31, %on;", shfl(w, l, 'i', w->b[l], 31)) \
CASE("shfl.sync.idx.b32 %r0|%p0, %r1, %r2, 0x1c1f, %on;", shfl(w, l, 'i', w->b[l], 0x1c1f)) \
CASE("shfl.sync.idx.b32 %r0, %r1, 0, 31, %on;", ((struct result){ (uint32_t)w->a[0], 0 })) \
CASE("vote.sync.all.pred %p0, %odd, %on;", \
	((struct result){ 0, (odd_lanes(w) & w->on) == w->on })) \
CASE("vote.sync.any.pred %p0, %odd, %on;", ((struct result){ 0, (odd_lanes(w) & w->on) != 0 })) \
CASE("vote.sync.any.pred %p0, !%odd, %on;", ((struct result){ 0, (~odd_lanes(w) & w->on) != 0 })) \
CASE("vote.sync.uni.pred %p0, %odd, %on;", ((struct result){ 0, \
	(odd_lanes(w) & w->on) == w->on || !(odd_lanes(w) & w->on) })) \
CASE("vote.sync.ballot.b32 %r0, %odd, %on;", ((struct result){ odd_lanes(w) & w->on, 0 })) \
CASE("vote.ballot.sync.b32 %r0, !%odd, %on;", ((struct result){ ~odd_lanes(w) & w->on, 0 })) \
CASE("match.any.sync.b32 %r0, %r1, %on;", match(w, l, false, UINT32_MAX)) \
CASE("match.any.sync.b64 %r0, %d1, %on;", match(w, l, false, UINT64_MAX)) \
CASE("match.all.sync.b32 %r0|%p0, %r1, %on;", match(w, l, true, UINT32_MAX)) \
CASE("match.all.sync.b64 %r0|%p0, %d1, %on;", match(w, l, true, UINT64_MAX)) \
CASE("redux.sync.add.u32 %r0, %r1, %on;", ((struct result){ redux(w, '+'), 0 })) \
CASE("redux.sync.min.u32 %r0, %r1, %on;", ((struct result){ redux(w, 'm'), 0 })) \
CASE("redux.sync.max.u32 %r0, %r1, %on;", ((struct result){ redux(w, 'M'), 0 })) \
CASE("redux.sync.min.s32 %r0, %r1, %on;", ((struct result){ redux(w, 's'), 0 })) \
CASE("redux.sync.max.s32 %r0, %r1, %on;", ((struct result){ redux(w, 'S'), 0 })) \
CASE("redux.sync.and.b32 %r0, %r1, %on;", ((struct result){ redux(w, '&'), 0 })) \
CASE("redux.sync.or.b32 %r0, %r1, %on;", ((struct result){ redux(w, '|'), 0 })) \
CASE("redux.sync.xor.b32 %r0, %r1, %on;", ((struct result){ redux(w, '^'), 0 })) \
CASE("redux.sync.min.f32 %r0, %r1, %on;", ((struct result){ redux_f(w, 0, 0, 0), 0 })) \
CASE("redux.sync.max.f32 %r0, %r1, %on;", ((struct result){ redux_f(w, 1, 0, 0), 0 })) \
CASE("redux.sync.max.NaN.f32 %r0, %r1, %on;", ((struct result){ redux_f(w, 1, 0, 1), 0 })) \
CASE("redux.sync.min.abs.NaN.f32 %r0, %r1, %on;", ((struct result){ redux_f(w, 0, 1, 1), 0 }))

static struct result expect(unsigned k, const struct lanes *w, unsigned l)
{
	unsigned n = 0;
#define CASE(ptx, expr) \
	if (k == n++) \
		return expr;
	CASES
#undef CASE
	return (struct result){ 0, 0 };
}
static const char *const text_of[] = {
#define CASE(ptx, expr) ptx,
	CASES
#undef CASE
};

/* ---- running ---- */

enum { WARPS = 64, N = 32 * WARPS };
struct in { uint64_t a; uint32_t b, on; };
struct out { uint32_t d, p; };
static struct in in[N];
static struct out out[N];

static uint64_t state = 0x2545f4914f6cdd1du;
static uint64_t rnd64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* %on: the mask of the lanes that take the same branch. Warps are full, or split in two: then
 * either half executes its own copy of the instruction, or both execute the same one. */
static void kernel_text(struct text *t, size_t k, bool branch)
{
	text_printf(t, ".visible .entry k%zu%s(.param .u64 in, .param .u64 out)\n{\n"
		".reg .b32 %%r<4>; .reg .b64 %%d<4>; .reg .pred %%p<4>, %%odd, %%low;\n"
		".reg .b32 %%on, %%t, %%l; .reg .b64 %%in, %%out, %%x;\n"
		"mov.u32 %%t, %%ctaid.x; shl.b32 %%t, %%t, 5; mov.u32 %%l, %%tid.x; "
		"add.u32 %%t, %%t, %%l;\n"
		"ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out];\n"
		"mul.wide.u32 %%x, %%t, 16; add.s64 %%in, %%in, %%x;\n"
		"mul.wide.u32 %%x, %%t, 8; add.s64 %%out, %%out, %%x;\n"
		"ld.global.u64 %%d1, [%%in]; cvt.u32.u64 %%r1, %%d1; "
		"ld.global.u32 %%r2, [%%in+8];\n"
		"ld.global.u32 %%on, [%%in+12]; and.b32 %%t, %%r1, 1; setp.ne.b32 %%odd, %%t, 0;\n"
		"mov.u32 %%r0, 0; setp.ne.b32 %%p0, 0, 0;\n", k, branch ? "b" : "");
	if (branch)
		text_printf(t, "and.b32 %%t, %%on, 1; setp.ne.b32 %%low, %%t, 0;\n"
			"@%%low bra L;\n%s\nbra E;\nL: %s\nE:\n", text_of[k], text_of[k]);
	else
		text_printf(t, "%s\n", text_of[k]);
	text_printf(t, "selp.b32 %%r3, 1, 0, %%p0; st.global.v2.u32 [%%out], {%%r0, %%r3};\nret;\n"
		"}\n");
}

static void fill(void)
{
	static const uint32_t special[] = { 0, 1, 0x80000000, 0x7fc00000, 0x7f800000, 0xff800000,
		0xffffffff };

	for (unsigned v = 0; v < WARPS; v++) {
		/* lane 0's half has bit 0 set, the other half does not */
		uint32_t mask = v % 2 ? (uint32_t)rnd64() | 1 : UINT32_MAX;
		if (mask == 1)
			mask = 3;
		unsigned few = 1 + (unsigned)rnd64() % 4;
		for (unsigned l = 0; l < 32; l++) {
			struct in *i = &in[32 * v + l];
			switch (v / 2 % 4) {
			case 0: i->a = rnd64(); break;
			case 1: i->a = rnd64() % few; break;
			case 2: i->a = special[rnd64() % (sizeof special / sizeof *special)]; break;
			case 3: i->a = num_bits32((float)(int32_t)rnd64() * 0x1p-20f)
				| rnd64() % few << 32; break;
			}
			i->b = (uint32_t)rnd64() % 40;
			i->on = mask >> l & 1 ? mask : ~mask;
		}
	}
}

static void check(size_t k, bool branch)
{
	for (unsigned v = 0; v < WARPS; v++)
		for (unsigned l = 0; l < 32; l++) {
			struct lanes w;
			for (unsigned m = 0; m < 32; m++) {
				w.a[m] = in[32 * v + m].a;
				w.b[m] = in[32 * v + m].b;
			}
			w.on = in[32 * v + l].on;
			struct result want = expect((unsigned)k, &w, l);
			struct out got = out[32 * v + l];
			/* the ISA does not define a shuffle from outside the mask */
			if (!strncmp(text_of[k], "shfl", 4) && w.on != UINT32_MAX)
				got.d = want.d;
			if (strstr(text_of[k], "%p0") && got.p != want.p)
				cr_assert(false, "%s%s: warp %u lane %u mask %x: p %u, want %u",
					text_of[k], branch ? " (branch)" : "", v, l, w.on,
					got.p, want.p);
			if (strstr(text_of[k], "%r0") && got.d != want.d)
				cr_assert(false, "%s%s: warp %u lane %u mask %x: %x, want %x",
					text_of[k], branch ? " (branch)" : "", v, l, w.on,
					got.d, want.d);
		}
}

static void run(struct exec_module *m, const char *name, unsigned threads, struct exec_result *r)
{
	uint64_t params[2] = { (uintptr_t)in, (uintptr_t)out };
	struct exec_launch l = { .device = exec_device_for(100), .grid = { WARPS, 1, 1 },
		.block = { threads, 1, 1 }, .cluster = { 1, 1, 1 }, .params = params, .jobs = 1 };
	struct consan_err e = { 0 };

	l.kernel = exec_kernel(m, name, &e);
	cr_assert(l.kernel, "%s: %s", name, e.text);
	memset(out, 0xee, sizeof out);
	exec_run(&l, r);
	cr_assert_eq(r->status, EXEC_OK, "%s: status %d: %s", name, (int)r->status, r->err.text);
}
static struct exec_module *load(const struct text *t)
{
	struct consan_err e = { 0 };
	struct ptx_module *ptx = ptx_parse("lanes", t->at, t->n, &e);

	cr_assert(ptx, "%s", e.text);
	struct exec_module *m = exec_load(ptx, &e);
	cr_assert(m, "%s", e.text);
	exec_mem_add(in, sizeof in, MEM_DEVICE, false);
	exec_mem_add(out, sizeof out, MEM_DEVICE, false);
	return m;
}

Test(lanes, every_case)
{
	struct text t = { 0 };
	size_t n = sizeof text_of / sizeof *text_of;
	struct exec_result r;
	char name[32];

	text_printf(&t, ".version 9.0\n.target sm_100a\n.address_size 64\n");
	for (size_t k = 0; k < n; k++) {
		kernel_text(&t, k, false);
		kernel_text(&t, k, true);
	}
	fill();
	struct exec_module *m = load(&t);
	for (size_t k = 0; k < n; k++)
		for (int branch = 0; branch < 2; branch++) {
			snprintf(name, sizeof name, "k%zu%s", k, branch ? "b" : "");
			run(m, name, 32, &r);
			check(k, branch);
		}
	exec_unload(m);
	text_free(&t);
}

/* d[row][col] = a[col][row]; two columns a lane */
Test(lanes, movmatrix)
{
	struct text t = { 0 };
	struct exec_result r;

	text_printf(&t, ".version 9.0\n.target sm_80\n.address_size 64\n"
		".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
		".reg .b32 %%r<4>; .reg .b64 %%d<4>;\n"
		"mov.u32 %%r1, %%tid.x; ld.param.u64 %%d1, [in]; ld.param.u64 %%d2, [out];\n"
		"mul.wide.u32 %%d3, %%r1, 16; add.s64 %%d1, %%d1, %%d3;\n"
		"mul.wide.u32 %%d3, %%r1, 8; add.s64 %%d2, %%d2, %%d3;\n"
		"ld.global.u32 %%r2, [%%d1];\n"
		"movmatrix.sync.aligned.m8n8.trans.b16 %%r3, %%r2;\n"
		"st.global.u32 [%%d2], %%r3;\nret;\n}\n");
	for (unsigned l = 0; l < 32; l++)
		in[l].a = (2 * l) | (2 * l + 1) << 16; /* element = row * 8 + column */
	struct exec_module *m = load(&t);
	run(m, "k", 32, &r);
	for (unsigned l = 0; l < 32; l++)
		for (unsigned k = 0; k < 2; k++) {
			unsigned row = l / 4, col = l % 4 * 2 + k;
			cr_assert_eq(out[l].d >> 16 * k & 0xffff, col * 8 + row, "lane %u", l);
		}
	exec_unload(m);
	text_free(&t);
}

/* a block of 20 threads: the mask may name lanes that never existed */
Test(lanes, short_warp)
{
	struct text t = { 0 };
	struct exec_result r;

	text_printf(&t, ".version 9.0\n.target sm_80\n.address_size 64\n");
	kernel_text(&t, 19, false);
	fill();
	for (unsigned l = 0; l < 32; l++)
		in[l].on = UINT32_MAX;
	struct exec_module *m = load(&t);
	run(m, "k19", 20, &r);
	uint32_t sum = 0;
	for (unsigned l = 0; l < 20; l++)
		sum += (uint32_t)in[l].a;
	cr_assert_eq(out[7].d, sum);
	exec_unload(m);
	text_free(&t);
}
