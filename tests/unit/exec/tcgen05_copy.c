/* tcgen05_copy: copies from shared to tensor memory in all shapes and formats, and shifts, against
 * plain loops over the text of the ISA. */
#include "tcgen05_run.h"

#include <stdio.h>

static uint64_t state = 1;

static unsigned below(unsigned n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % n;
}

static struct memory *any_memory(unsigned ctas)
{
	struct memory *m = calloc(ctas, sizeof *m);

	for (unsigned h = 0; h < ctas; h++) {
		for (unsigned i = 0; i < SHARED; i++)
			m[h].shared[i] = (unsigned char)below(256);
		for (unsigned i = 0; i < TMEM_WORDS; i++)
			m[h].before[i / COLUMNS][i % COLUMNS] = below(1u << 31);
	}
	return m;
}

struct shape { const char *name; unsigned rows, pieces; };
static const struct shape shapes[] = {
	{ "128x256b", 128, 2 }, { "128x128b", 128, 1 }, { "4x256b", 4, 2 },
	{ "64x128b.warpx2::02_13", 64, 1 }, { "64x128b.warpx2::01_23", 64, 1 },
	{ "32x128b.warpx4", 32, 1 },
};
static const char *const formats[] = { "", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64" };

/* The row that this lane gets; -1: none. base: the lane of the address */
static int row_of(unsigned shape, unsigned lane, unsigned base)
{
	const unsigned warp = lane / 32;

	switch (shape) {
	case 2: return lane % 32 == base ? (int)warp : -1;
	case 3: return (int)(warp % 2 * 32 + lane % 32);
	case 4: return (int)(warp / 2 * 32 + lane % 32);
	case 5: return (int)(lane % 32);
	default: return (int)lane;
	}
}

/* Byte j of a piece in tensor memory */
static unsigned char byte_of(const unsigned char *piece, unsigned format, unsigned j)
{
	if (format == 1)
		return (unsigned char)((piece[j * 6 / 8] | piece[j * 6 / 8 + 1] << 8) >> j * 6 % 8 & 63);
	if (format == 2) /* 00xxxx00 */
		return (unsigned char)((piece[j / 2] >> j % 2 * 4 & 15) << 2);
	return piece[j];
}

static void copy(unsigned s, unsigned format, bool pair, unsigned swizzle)
{
	static const unsigned spans[] = { 16, 128, 128, 0, 64, 0, 32 };
	const unsigned span = spans[swizzle], column = 4 * below(40), ctas = pair ? 2 : 1;
	const unsigned stride = span == 16 ? 512 : 8 * span, lead = 128, start = 2048;
	const unsigned base = s == 2 ? below(32) : 0;
	struct memory *m = any_memory(ctas);
	struct consan_err e = { 0 };
	char code[120];
	unsigned bad = 0;

	snprintf(code, sizeof code, "tcgen05.cp.cta_group::%u.%s%s [%%w0], %%d0;\n", ctas,
		shapes[s].name, formats[format]);
	m->d[0] = start >> 4 | (uint64_t)lead >> 4 << 16 | (uint64_t)stride >> 4 << 32 | 1ull << 46
		| (uint64_t)swizzle << 61;
	m->w[0] = column | base << 16;
	cr_assert_eq(run_code(code, pair, m, &e), CONSAN_OK, "%s\n%s", e.text, code);
	for (unsigned h = 0; h < ctas; h++)
		for (unsigned l = 0; l < LANES; l++) {
			const int row = row_of(s, l, base);

			for (unsigned i = 0; row >= 0 && i < 16 * shapes[s].pieces; i++) {
				unsigned at = start + (unsigned)row / 8 * stride + (unsigned)row % 8 * span
					+ i / 16 * (span == 16 ? lead : 16);

				if (swizzle == 1)
					at ^= at / 128 % 4 * 32;
				else
					at ^= at / 128 % (span / 16) * 16;
				((unsigned char *)&m[h].before[l][column])[i] =
					byte_of(m[h].shared + at, format, i % 16);
			}
			bad += memcmp(m[h].before[l], m[h].after[l], sizeof m[h].after[l]) != 0;
		}
	cr_expect_eq(bad, 0, "%u lanes: swizzle %u, %s", bad, swizzle, code);
	free(m);
}

Test(tcgen05_copy, shapes)
{
	static const unsigned modes[] = { 0, 6, 4, 2 };

	for (unsigned s = 0; s < ARRAY_SIZE(shapes); s++)
		for (unsigned format = 0; format < ARRAY_SIZE(formats); format++)
			for (unsigned i = 0; i < 4; i++)
				copy(s, format, (s + i) % 2, modes[i]);
}

/* Each lane but the last of a window gets the 8 columns of the next one; then 4x256b fills the last
 * lanes. The two are pipelined. */
Test(tcgen05_copy, shift)
{
	for (unsigned pair = 0; pair < 2; pair++) {
		struct memory *m = any_memory(pair + 1);
		struct consan_err e = { 0 };
		char code[200];
		unsigned bad = 0;

		snprintf(code, sizeof code, "tcgen05.shift.cta_group::%u.down [%%w0];\n"
			"tcgen05.cp.cta_group::%u.4x256b [%%w1], %%d0;\n", pair + 1, pair + 1);
		m->d[0] = 8ull << 16 | 16ull << 32 | 1ull << 46;
		m->w[0] = 24 | 64 << 16;
		m->w[1] = 24 | 31 << 16;
		cr_assert_eq(run_code(code, pair, m, &e), CONSAN_OK, "%s", e.text);
		for (unsigned h = 0; h <= pair; h++) {
			for (unsigned l = 64; l < 95; l++)
				memcpy(&m[h].before[l][24], &m[h].before[l + 1][24], 32);
			for (unsigned w = 0; w < 4; w++)
				for (unsigned i = 0; i < 2; i++)
					memcpy(&m[h].before[32 * w + 31][24 + 4 * i],
						m[h].shared + 128 * i + 16 * w, 16);
			bad += memcmp(m[h].before, m[h].after, sizeof m[h].after) != 0;
		}
		cr_expect_eq(bad, 0, "cta_group::%u", pair + 1);
		free(m);
	}
}

/* What the ISA does not allow is a fault. */
Test(tcgen05_copy, faults)
{
	static const struct { const char *code; uint64_t d; uint32_t w0, w5; } wrong[] = {
		{ "tcgen05.shift.cta_group::1.down [%w0];\n", 0, 16 << 16, 0 },
		{ "tcgen05.shift.cta_group::1.down [%w0];\n", 0, 508, 0 },
		{ "tcgen05.cp.cta_group::1.128x128b [%w0], %d0;\n", 1ull << 46, 16 << 16, 0 },
		{ "tcgen05.cp.cta_group::1.128x128b [%w0], %d0;\n", 3ull << 61, 0, 0 },
		{ "tcgen05.cp.cta_group::1.128x128b [%w0], %d0;\n", 0x3000ull << 32, 0, 0 },
		/* M of 96, N of 4; sparse in the descriptor only; lane 32 */
		{ "tcgen05.mma.cta_group::1.kind::f16 [%w0], %d0, %d1, %w5, %true;\n", 0, 0,
			1 << 4 | 8 << 17 | 6 << 24 },
		{ "tcgen05.mma.cta_group::1.kind::f16 [%w0], %d0, %d1, %w5, %true;\n", 0, 0,
			1 << 4 | 8 << 24 },
		{ "tcgen05.mma.cta_group::1.kind::f16 [%w0], %d0, %d1, %w5, %true;\n", 0, 0,
			1 << 4 | 1 << 2 | 8 << 17 | 8 << 24 },
		{ "tcgen05.mma.cta_group::1.kind::f16 [%w0], %d0, %d1, %w5, %true;\n", 0, 32 << 16,
			1 << 4 | 8 << 17 | 8 << 24 },
		/* transposed 32-bit elements need atoms of 32 bytes, others must not have them */
		{ "tcgen05.mma.cta_group::1.kind::tf32 [%w0], %d0, %d1, %w5, %true;\n", 2ull << 61, 0,
			1 << 4 | 2 << 7 | 2 << 10 | 1 << 15 | 8 << 17 | 8 << 24 },
		{ "tcgen05.mma.cta_group::1.kind::f16 [%w0], %d0, %d1, %w5, %true;\n", 1ull << 61, 0,
			1 << 4 | 1 << 15 | 8 << 17 | 8 << 24 },
		/* N of 256 with a sparse matrix and .ws; M of 64 with block scales */
		{ "tcgen05.mma.ws.sp.cta_group::1.kind::f16 [%w0], %d0, %d1, [%w2], %w5, %true;\n", 0, 0,
			1 << 4 | 1 << 2 | 32 << 17 | 8 << 24 },
		{ "tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%w0], %d0, %d1, %w5, [%w3], [%w4], "
			"%true;\n", 0, 0, 1 << 7 | 1 << 10 | 8 << 17 | 1 << 23 | 4 << 24 },
	};

	for (size_t k = 0; k < ARRAY_SIZE(wrong); k++) {
		struct memory *m = calloc(1, sizeof *m);
		struct consan_err e = { 0 };

		m->d[0] = wrong[k].d;
		m->w[0] = wrong[k].w0;
		m->w[5] = wrong[k].w5;
		cr_expect_eq(run_code(wrong[k].code, false, m, &e), CONSAN_FAULT, "%zu: %s", k,
			wrong[k].code);
		free(m);
	}
}
