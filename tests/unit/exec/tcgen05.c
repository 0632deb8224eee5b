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
		"tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%t];\n",
		"add.u32 %x, %x, 512;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%x];\n",
		"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32;\n",
		"mov.b64 %da, 0;\nmov.b32 %w2, 0;\n"
			"tcgen05.mma.cta_group::1.kind::f16 [%t], %da, %da, %w2, %done;\n",
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

/* A kernel that is executed only does not count as checked. */
Test(tcgen05, not_checked)
{
	struct consan_err e = { 0 };
	struct consan *c = consan_open("", &e);
	uint32_t *memory = consan_malloc(c, 4096, CONSAN_MEM_DEVICE);

	cr_expect_eq(launch(c, HEAD TAIL, memory, &e), CONSAN_OK, "%s", e.text);
	cr_assert_eq(consan_kernels(c), 1);
	cr_expect_eq(consan_coverage(c, 0)->checked, 0);
	cr_expect(*consan_coverage(c, 0)->unchecked);
	consan_free(c, memory);
	consan_close(c);
}
