/* tcgen05: tensor memory and matrices of the executor against plain loops. */
#include "libconsan/base/base.h"
#include "libconsan/consan.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

/* Runs the kernel "k" of this text with 128 threads. Returns consan_launch()'s status. */
static enum consan_status launch(struct consan *c, const char *text, uint32_t *memory,
	struct consan_err *e)
{
	struct consan_module *m = consan_load_ptx(c, "tcgen05", text, strlen(text), e);
	struct consan_launch l = { .grid = { 1, 1, 1 }, .block = { 128, 1, 1 }, .params = &memory };
	enum consan_status status;

	cr_assert(m, "%s\n%s", e->text, text);
	l.kernel = consan_kernel(m, "k", e);
	cr_assert(l.kernel, "%s", e->text);
	status = consan_launch(c, &l, e);
	consan_unload(m);
	return status;
}

static uint32_t *run(const char *text, const uint32_t *in, size_t words)
{
	struct consan_err e = { 0 };
	struct consan *c = consan_open("", &e);
	uint32_t *memory, *out = malloc(words * sizeof *out);

	cr_assert(c, "%s", e.text);
	memory = consan_malloc(c, words * sizeof *memory, CONSAN_MEM_DEVICE);
	memcpy(memory, in, words * sizeof *memory);
	cr_assert_eq(launch(c, text, memory, &e), CONSAN_OK, "%s\n%s", e.text, text);
	memcpy(out, memory, words * sizeof *out);
	consan_free(c, memory);
	consan_close(c);
	return out;
}

#define HEAD ".version 8.8\n.target sm_100a\n.address_size 64\n" \
	".visible .entry k(.param .u64 p)\n{\n" \
	".reg .b32 %th, %warp, %t, %v<130>, %w<130>, %x;\n.reg .b64 %p, %q, %da, %db;\n" \
	".reg .pred %first, %done;\n" \
	".shared .align 1024 .b8 tile[16384];\n.shared .align 8 .b64 bar;\n.shared .b32 at;\n" \
	"ld.param.u64 %p, [p];\nmov.u32 %th, %tid.x;\nshr.u32 %warp, %th, 5;\n" \
	"setp.eq.u32 %first, %th, 0;\n" \
	"setp.ne.u32 %done, %warp, 0;\n@%done bra SKIP;\n" \
	"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 512;\n" \
	"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n" \
	"SKIP:\nbar.sync 0;\nld.shared.u32 %t, [at];\n" \
	"shl.b32 %x, %warp, 21;\nadd.u32 %x, %x, %t;\n"
#define TAIL "tcgen05.wait::ld.sync.aligned;\nbar.sync 0;\n" \
	"setp.ne.u32 %done, %warp, 0;\n@%done bra END;\n" \
	"tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 512;\nEND:\nret;\n}\n"

static void registers(struct text *t, const char *name, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		text_printf(t, "%s%%%s%u", k ? ", " : "{", name, k);
	text_printf(t, "}");
}

struct form {
	const char *name, *last;   /* shape and num; operand behind the address of ld */
	unsigned n;                /* registers */
	unsigned lanes;
	/* bits of the thread and of the register: what each adds to the lane and to the column */
	struct { unsigned lane[5], column[5]; } thread;
	struct { unsigned lane[5], column[5]; } reg;
};

/* The figures of the ISA, section "Memory Layout", as sums over bits. */
static const struct form forms[] = {
	{ "32x32b.x16", "", 16, 32, { { 1, 2, 4, 8, 16 }, { 0 } }, { { 0 }, { 1, 2, 4, 8 } } },
	{ "16x64b.x16", "", 16, 16, { { 8, 0, 1, 2, 4 }, { 0, 1 } }, { { 0 }, { 2, 4, 8, 16 } } },
	{ "16x128b.x8", "", 16, 16, { { 0, 0, 1, 2, 4 }, { 1, 2 } }, { { 8 }, { 0, 4, 8, 16 } } },
	{ "16x256b.x4", "", 16, 16, { { 0, 0, 1, 2, 4 }, { 2, 4 } }, { { 0, 8 }, { 1, 0, 8, 16 } } },
	{ "16x32bx2.x16", ", 16", 16, 16, { { 1, 2, 4, 8, 0 }, { 0, 0, 0, 0, 16 } },
		{ { 0 }, { 1, 2, 4, 8 } } },
};

static unsigned sum(const unsigned step[5], unsigned bits)
{
	unsigned s = 0;

	for (unsigned k = 0; k < 5; k++)
		s += bits >> k & 1 ? step[k] : 0;
	return s;
}

/* Cell (lane, column) holds 1000 lane + column; each form loads it into registers. */
Test(tcgen05, loads)
{
	for (size_t k = 0; k < ARRAY_SIZE(forms); k++) {
		const struct form *f = &forms[k];
		struct text t = { 0 };
		uint32_t *in = calloc(128 * 16, 4), *out;
		unsigned bad = 0;

		text_printf(&t, "%s", HEAD);
		text_printf(&t, "mul.lo.u32 %%w0, %%th, 1000;\n");
		for (unsigned c = 1; c < 32; c++)
			text_printf(&t, "add.u32 %%w%u, %%w0, %u;\n", c, c);
		text_printf(&t, "tcgen05.st.sync.aligned.32x32b.x32.b32 [%%x], ");
		registers(&t, "w", 32);
		text_printf(&t, ";\ntcgen05.wait::st.sync.aligned;\n"
			"tcgen05.ld.sync.aligned.%s.b32 ", f->name);
		registers(&t, "v", f->n);
		text_printf(&t, ", [%%x]%s;\nmul.wide.u32 %%q, %%th, %u;\nadd.u64 %%q, %%q, %%p;\n",
			f->last, 4 * f->n);
		for (unsigned r = 0; r < f->n; r++)
			text_printf(&t, "st.global.b32 [%%q+%u], %%v%u;\n", 4 * r, r);
		text_printf(&t, "%s", TAIL);
		out = run(t.at, in, 128 * 16);
		for (unsigned thread = 0; thread < 128; thread++)
			for (unsigned r = 0; r < f->n; r++) {
				const unsigned lane = thread / 32 * 32 + sum(f->thread.lane, thread % 32)
					+ sum(f->reg.lane, r);
				const unsigned column = sum(f->thread.column, thread % 32)
					+ sum(f->reg.column, r);

				bad += out[thread * f->n + r] != 1000 * lane + column;
			}
		cr_expect_eq(bad, 0, "%s: %u registers", f->name, bad);
		free(out);
		free(in);
		text_free(&t);
	}
}

/* ---- D = A * B, K-major without swizzling ---- */

struct product {
	const char *kind;
	unsigned m, n, k, bits;    /* k elements of `bits` bits are 32 bytes */
	uint32_t types;            /* of the instruction descriptor: D, A, B */
	unsigned lanes_apart;      /* M = 64: rows 16 to 31 are in lanes 32 to 47, ... */
};

static const struct product products[] = {
	{ "f16", 128, 64, 16, 16, 1 << 4, 16 },
	{ "f16", 64, 32, 16, 16, 1 << 4, 32 },
	{ "f16", 128, 256, 16, 16, 1 << 4 | 1 << 7 | 1 << 10, 16 },
	{ "tf32", 128, 24, 8, 32, 1 << 4 | 2 << 7 | 2 << 10, 16 },
	{ "i8", 128, 48, 32, 8, 2 << 4 | 1 << 7 | 1 << 10, 16 },
};

static int value(unsigned k)
{
	return (int)(k * 2654435761u >> 13) % 7 - 3;
}

static uint32_t encoded(const struct product *p, int v)
{
	float f = (float)v;
	uint32_t word;

	memcpy(&word, &f, 4);
	if (p->bits == 32)
		return word;
	if (p->bits == 8)
		return (uint8_t)v;
	if (p->types >> 7 & 1)
		return word >> 16;
	return v ? (word >> 16 & 0x8000) | ((word >> 13 & 0x3fc00) - (112 << 10)) | (word >> 13 & 0x3ff)
		: 0;
}

/* Core matrices of 8 rows by 16 bytes; two along K, one after the other. */
static void put(unsigned char *to, const struct product *p, unsigned row, unsigned k, int v)
{
	const unsigned at = k * p->bits / 8;
	const uint32_t e = encoded(p, v);

	memcpy(to + row / 8 * 256 + at / 16 * 128 + row % 8 * 16 + at % 16, &e, p->bits / 8);
}

static char *matrix_program(const struct product *p)
{
	const uint32_t idesc = p->types | p->n / 8 << 17 | p->m / 16 << 24;
	const uint64_t desc = 1ull << 46 | 16ull << 32 | 8ull << 16; /* SBO 256, LBO 128 bytes */
	struct text t = { 0 };

	text_printf(&t, "%s", HEAD);
	text_printf(&t, "mul.wide.u32 %%q, %%th, 128;\nadd.u64 %%q, %%q, %%p;\n"
		"mov.u32 %%w0, tile;\nmad.lo.u32 %%w0, %%th, 128, %%w0;\n");
	for (unsigned k = 0; k < 32; k++)
		text_printf(&t, "ld.global.b32 %%w1, [%%q+%u];\nst.shared.b32 [%%w0+%u], %%w1;\n", 4 * k,
			4 * k);
	text_printf(&t, "@%%first mbarrier.init.shared.b64 [bar], 1;\nfence.proxy.async;\nbar.sync 0;\n"
		"mov.u32 %%w0, tile;\nshr.u32 %%w0, %%w0, 4;\nand.b32 %%w0, %%w0, 0x3fff;\n"
		"cvt.u64.u32 %%da, %%w0;\nor.b64 %%da, %%da, %llu;\nadd.u64 %%db, %%da, %u;\n"
		"mov.b32 %%w2, %u;\nsetp.ne.u32 %%done, %%th, %%th;\n"
		"@%%first tcgen05.mma.cta_group::1.kind::%s [%%t], %%da, %%db, %%w2, %%done;\n"
		"setp.eq.u32 %%done, %%th, %%th;\n"
		"@%%first tcgen05.mma.cta_group::1.kind::%s [%%t], %%da, %%db, %%w2, %%done;\n"
		"@%%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n"
		"W:\nmbarrier.try_wait.parity.shared.b64 %%done, [bar], 0;\n@!%%done bra W;\n"
		"tcgen05.fence::after_thread_sync;\n", (unsigned long long)desc, p->m * 32 / 16, idesc,
		p->kind, p->kind);
	for (unsigned c = 0; c < p->n; c += 8) {
		text_printf(&t, "add.u32 %%w3, %%x, %u;\ntcgen05.ld.sync.aligned.32x32b.x8.b32 ", c);
		registers(&t, "v", 8);
		text_printf(&t, ", [%%w3];\nmul.wide.u32 %%q, %%th, %u;\nadd.u64 %%q, %%q, %%p;\n",
			4 * p->n);
		for (unsigned r = 0; r < 8; r++)
			text_printf(&t, "st.global.b32 [%%q+%u], %%v%u;\n", 16384 + 4 * (c + r), r);
	}
	text_printf(&t, "%s", TAIL);
	return t.at;
}

static void multiply(const struct product *p)
{
	const size_t words = 4096 + 128 * 256;
	uint32_t *in = calloc(words, 4), *out;
	char *text = matrix_program(p);
	unsigned bad = 0;

	for (unsigned k = 0; k < p->k; k++) {
		for (unsigned r = 0; r < p->m; r++)
			put((unsigned char *)in, p, r, k, value(r * p->k + k));
		for (unsigned c = 0; c < p->n; c++)
			put((unsigned char *)in + p->m * 32, p, c, k, value(7000 + c * p->k + k));
	}
	out = run(text, in, words);
	for (unsigned r = 0; r < p->m; r++)
		for (unsigned c = 0; c < p->n; c++) {
			const unsigned lane = r / 16 * p->lanes_apart + r % 16;
			const uint32_t word = out[4096 + lane * p->n + c];
			int want = 0;
			float f;

			for (unsigned k = 0; k < p->k; k++)
				want += value(r * p->k + k) * value(7000 + c * p->k + k);
			memcpy(&f, &word, 4);
			/* once with D = 0, then added to itself */
			bad += p->bits == 8 ? (int)word != 2 * want : f != (float)(2 * want);
		}
	cr_expect_eq(bad, 0, "kind::%s, M %u, N %u: %u elements", p->kind, p->m, p->n, bad);
	free(out);
	free(in);
	free(text);
}

Test(tcgen05, products)
{
	for (size_t k = 0; k < ARRAY_SIZE(products); k++)
		multiply(&products[k]);
}

/* Operands that the ISA forbids end the launch. */
Test(tcgen05, refused)
{
	static const char *const wrong[] = {
		"add.u32 %x, %x, 0x100000;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%x];\n",
		"add.u32 %x, %x, 512;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%x];\n",
		"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32;\n",
		("mov.b64 %da, 0;\nmov.b32 %w2, 0;\n"
			"tcgen05.mma.cta_group::1.kind::f16 [%t], %da, %da, %w2, %done;\n"),
	};

	for (size_t k = 0; k < ARRAY_SIZE(wrong); k++) {
		struct consan_err e = { 0 };
		struct consan *c = consan_open("", &e);
		uint32_t *memory = consan_malloc(c, 4096, CONSAN_MEM_DEVICE);
		struct text t = { 0 };

		text_printf(&t, "%s%s%s", HEAD, wrong[k], TAIL);
		cr_expect_eq(launch(c, t.at, memory, &e), CONSAN_FAULT, "%s", wrong[k]);
		text_free(&t);
		consan_free(c, memory);
		consan_close(c);
	}
}

/* A warp that gives lanes of another window has a finding, and accesses its own. */
Test(tcgen05, other_windows)
{
	static const char code[] = "mov.u32 %v0, %th;\n"
		"tcgen05.st.sync.aligned.32x32b.x1.b32 [%x], {%v0};\ntcgen05.wait::st.sync.aligned;\n"
		"tcgen05.ld.sync.aligned.32x32b.x1.b32 {%w0}, [%t];\ntcgen05.wait::ld.sync.aligned;\n"
		"mul.wide.u32 %q, %th, 4;\nadd.u64 %q, %q, %p;\nst.global.b32 [%q], %w0;\n";
	struct consan_err e = { 0 };
	struct consan *c = consan_open("knob=tmem_window=1", &e);
	uint32_t *memory = consan_malloc(c, 4096, CONSAN_MEM_DEVICE);
	struct text t = { 0 };

	text_printf(&t, "%s%s%s", HEAD, code, TAIL);
	cr_expect_eq(launch(c, t.at, memory, &e), CONSAN_OK, "%s", e.text);
	cr_expect_eq(consan_errors(c), 1);
	for (unsigned k = 0; k < 128; k++)
		cr_expect_eq(memory[k], k, "thread %u: %u", k, memory[k]);
	text_free(&t);
	consan_free(c, memory);
	consan_close(c);
}

/* ---- every .num of every shape ---- */

/* Runs the code between HEAD and TAIL; then each thread stores n of %w0 and up. */
static uint32_t *results(const char *code, unsigned n)
{
	struct text t = { 0 };
	uint32_t *in = calloc(128 * n, 4), *out;

	text_printf(&t, "%s%smul.wide.u32 %%q, %%th, %u;\nadd.u64 %%q, %%q, %%p;\n", HEAD, code, 4 * n);
	for (unsigned r = 0; r < n; r++)
		text_printf(&t, "st.global.b32 [%%q+%u], %%w%u;\n", 4 * r, r);
	text_printf(&t, "%s", TAIL);
	out = run(t.at, in, 128 * n);
	free(in);
	text_free(&t);
	return out;
}

/* What a shape stores, it loads; the test above knows where it is. */
static void there_and_back(const char *shape, unsigned num, unsigned n, bool packed)
{
	const char *split = strstr(shape, "x2") && !strstr(shape, "x25") ? ", 128" : "";
	struct text t = { 0 };
	uint32_t *out;
	unsigned bad = 0;

	text_printf(&t, "mul.lo.u32 %%v0, %%th, 65573;\n");
	for (unsigned r = 1; r < n; r++)
		text_printf(&t, "add.u32 %%v%u, %%v0, %u;\n", r, 131101 * r);
	text_printf(&t, "tcgen05.st.sync.aligned.%s.x%u%s.b32 [%%x]%s, ", shape, num,
		packed ? ".unpack::16b" : "", split);
	registers(&t, "v", n);
	text_printf(&t, ";\ntcgen05.wait::st.sync.aligned;\ntcgen05.ld.sync.aligned.%s.x%u%s.b32 ", shape,
		num, packed ? ".pack::16b" : "");
	registers(&t, "w", n);
	text_printf(&t, ", [%%x]%s;\ntcgen05.wait::ld.sync.aligned;\n", split);
	out = results(t.at, n);
	for (unsigned thread = 0; thread < 128; thread++)
		for (unsigned r = 0; r < n; r++)
			bad += out[thread * n + r] != thread * 65573 + 131101 * r;
	cr_expect_eq(bad, 0, "%s.x%u: %u registers", shape, num, bad);
	free(out);
	text_free(&t);
}

Test(tcgen05, repetitions)
{
	static const struct { const char *name; unsigned n; } shape[] = { { "32x32b", 1 },
		{ "16x64b", 1 }, { "16x128b", 2 }, { "16x256b", 4 }, { "16x32bx2", 1 } };

	for (size_t k = 0; k < ARRAY_SIZE(shape); k++)
		for (unsigned num = 1; num * shape[k].n <= 128; num *= 2) {
			there_and_back(shape[k].name, num, num * shape[k].n, false);
			there_and_back(shape[k].name, num, num * shape[k].n, true);
		}
}

/* .unpack::16b: the halves of a register are in neighbouring columns. */
Test(tcgen05, halves)
{
	uint32_t *out = results("mov.b32 %v0, 0x11112222;\nmov.b32 %v1, 0x33334444;\n"
		"tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%x], {%v0, %v1};\n"
		"tcgen05.wait::st.sync.aligned;\n"
		"tcgen05.ld.sync.aligned.32x32b.x4.b32 {%w0, %w1, %w2, %w3}, [%x];\n"
		"tcgen05.wait::ld.sync.aligned;\n", 4);
	static const uint32_t want[] = { 0x2222, 0x1111, 0x4444, 0x3333 };

	for (unsigned k = 0; k < 4; k++)
		cr_expect_eq(out[4 * 77 + k], want[k], "column %u: 0x%x", k, out[4 * 77 + k]);
	free(out);
}

/* ---- tcgen05.ld.red ---- */

#define NAN32 0x7fffffffu

Test(tcgen05, reductions)
{
	/* of -2, 1, NaN, -0 and of 1, -2, +0, -0 */
	static const struct { const char *op; uint32_t in[4], want; } red[] = {
		{ "max.f32", { 0xc0000000, 0x3f800000, 0x7fc00000, 0x80000000 }, 0x3f800000 },
		{ "min.f32", { 0xc0000000, 0x3f800000, 0x7fc00000, 0x80000000 }, 0xc0000000 },
		{ "max.abs.f32", { 0xc0000000, 0x3f800000, 0x7fc00000, 0x80000000 }, 0x40000000 },
		{ "max.NaN.f32", { 0xc0000000, 0x3f800000, 0x7fc00000, 0x80000000 }, NAN32 },
		{ "min.abs.NaN.f32", { 0xc0000000, 0x3f800000, 0x7fc00000, 0x80000000 }, NAN32 },
		{ "max.f32", { 0xbf800000, 0xc0000000, 0x80000000, 0 }, 0 },
		{ "min.f32", { 0x3f800000, 0, 0x80000000, 0x40000000 }, 0x80000000 },
		{ "min.u32", { 3, 0x80000000, 2, 9 }, 2 },
		{ "max.u32", { 3, 0x80000000, 2, 9 }, 0x80000000 },
		{ "min.s32", { 3, 0x80000000, 2, 9 }, 0x80000000 },
		{ "max.s32", { 3, 0x80000000, 2, 9 }, 9 },
	};

	for (size_t k = 0; k < ARRAY_SIZE(red); k++) {
		struct text t = { 0 };
		uint32_t *out;

		for (unsigned r = 0; r < 4; r++)
			text_printf(&t, "mov.b32 %%v%u, 0x%x;\n", r, red[k].in[r]);
		text_printf(&t, "tcgen05.st.sync.aligned.32x32b.x4.b32 [%%x], {%%v0, %%v1, %%v2, %%v3};\n"
			"tcgen05.wait::st.sync.aligned;\n"
			"tcgen05.ld.red.sync.aligned.32x32b.x4.%s {%%w0, %%w1, %%w2, %%w3}, %%w4, [%%x];\n"
			"tcgen05.wait::ld.sync.aligned;\n", red[k].op);
		out = results(t.at, 5);
		cr_expect_eq(out[5 * 100 + 4], red[k].want, "%s: 0x%x", red[k].op, out[5 * 100 + 4]);
		cr_expect_arr_eq(out + 5 * 100, red[k].in, 16, "%s", red[k].op);
		free(out);
		text_free(&t);
	}
}

/* ---- as late as the ISA allows ---- */

/* A * B is 16 in each element: 1.0 in all of shared memory. D (column 0) is first 5. */
static uint32_t late(const char *before, const char *enable)
{
	struct text t = { 0 };
	uint32_t *out, word;
	float f;

	text_printf(&t, "mov.u32 %%w0, tile;\nmad.lo.u32 %%w0, %%th, 128, %%w0;\n");
	for (unsigned k = 0; k < 32; k++)
		text_printf(&t, "st.shared.b32 [%%w0+%u], 0x3c003c00;\n", 4 * k);
	text_printf(&t, "@%%first mbarrier.init.shared.b64 [bar], 1;\nfence.proxy.async;\n"
		"mov.b32 %%v0, 0x40a00000;\nmov.b32 %%v1, 0x40e00000;\nmov.b32 %%w0, 0;\n"
		"tcgen05.st.sync.aligned.32x32b.x1.b32 [%%x], {%%v0};\ntcgen05.wait::st.sync.aligned;\n"
		"%stcgen05.fence::before_thread_sync;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;\n"
		"mov.u32 %%w2, tile;\nshr.u32 %%w2, %%w2, 4;\ncvt.u64.u32 %%da, %%w2;\n"
		"or.b64 %%da, %%da, %llu;\nmov.b32 %%w2, %u;\nsetp.%s.u32 %%done, %%th, %%th;\n"
		"@%%first tcgen05.mma.cta_group::1.kind::f16 [%%t], %%da, %%da, %%w2, %%done;\n"
		"@%%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n"
		"W:\nmbarrier.try_wait.parity.shared.b64 %%done, [bar], 0;\n@!%%done bra W;\n"
		"tcgen05.fence::after_thread_sync;\ntcgen05.wait::ld.sync.aligned;\n"
		"tcgen05.ld.sync.aligned.32x32b.x1.b32 {%%w1}, [%%x];\ntcgen05.wait::ld.sync.aligned;\n",
		before, 1ull << 46 | 16ull << 32 | 8ull << 16, 1 << 4 | 1 << 17 | 8 << 24, enable);
	out = results(t.at, 2);
	word = strstr(before, "%w0") ? out[2 * 50] : out[2 * 50 + 1];
	memcpy(&f, &word, 4);
	free(out);
	text_free(&t);
	return (uint32_t)f;
}

#define LD "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%w0}, [%x];\n"
#define ST "tcgen05.st.sync.aligned.32x32b.x1.b32 [%x], {%v1};\n"

/* A missing wait shows: the load reads what the mma writes later, the store overwrites it. */
Test(tcgen05, late_effects)
{
	cr_expect_eq(late(LD "tcgen05.wait::ld.sync.aligned;\n", "ne"), 5);
	cr_expect_eq(late(LD, "ne"), 16);
	cr_expect_eq(late(ST "tcgen05.wait::st.sync.aligned;\n", "eq"), 7 + 16);
	cr_expect_eq(late(ST, "eq"), 7);
}

/* A register dependency orders the load before what uses the register (ISA, "Register
 * dependencies, same thread"), a later write of it, too; wait::st is not needed for the warp's own
 * load (PTX 9.4). */
Test(tcgen05, register_dependencies)
{
	cr_expect_eq(late(LD "add.u32 %v2, %w0, 1;\n", "ne"), 5);
	cr_expect_eq(late(LD "mov.b32 %w0, 0x41100000;\n", "ne"), 9);
	cr_expect_eq(late(ST LD "tcgen05.wait::ld.sync.aligned;\n", "ne"), 7);
	cr_expect_eq(late(LD "mov.b32 %v2, %v1;\n", "ne"), 16);
}
