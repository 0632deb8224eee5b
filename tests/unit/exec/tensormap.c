/* The bytes of tensor maps, and copies by the modes of sm_100. */
#include <criterion/criterion.h>
#include <string.h>

#include "libconsan/exec/exec.h"
#include "libconsan/exec/tensormap.h"

/* ---- .im2col::w and .im2col::w::128 ---- */

enum { CHANNELS = 32, W = 9, H = 4, N = 40, PIXEL = 2 * CHANNELS };

static _Alignas(1024) unsigned char shared[65536], global[N * H * W * PIXEL];

static struct tensormap wide_map(enum tensor_mode mode, int lower, int upper, uint32_t step,
	uint32_t pixels)
{
	static const uint64_t dim[] = { CHANNELS, W, H, N },
		stride[] = { PIXEL, W * PIXEL, H * W * PIXEL };
	const uint32_t one[] = { 1, step, 1, 1 };
	const struct consan_tensormap_args a = { .im2col = true, .wide = mode == TM_WIDE ? 1 : 2,
		.type = TT_f16, .rank = 4, .address = (uintptr_t)global, .dim = dim, .stride = stride,
		.elem_stride = one, .lower = &lower, .upper = &upper, .channels = CHANNELS,
		.pixels = pixels, .swizzle = TSW_64 };
	_Alignas(64) unsigned char bytes[CONSAN_TENSORMAP_BYTES];
	struct tensormap m;
	struct consan_err e = { 0 };

	cr_assert(exec_tensormap(&a, bytes, &e), "%s", e.text);
	cr_assert_null(tensormap_unpack(&m, bytes, mode));
	cr_assert_null(tensormap_check(&m));
	return m;
}

/* The pixel of a place of the walk, or -1 outside the tensor. ISA 5.5.5: along W from `at`, in the
 * box [lower, W + upper), then in the next image; all moved by wOffset. */
static int pixel_of(const int32_t *at, int lower, int upper, int step, int offset, int place)
{
	int w = at[1], n = at[3];

	while (place--) {
		w += step;
		if (w >= W + upper) {
			w = lower;
			n++;
		}
	}
	w += offset;
	return w < 0 || w >= W || n >= N || at[2] < 0 || at[2] >= H ? -1 : (n * H + at[2]) * W + w;
}

static void expect_row(uint32_t row, int pixel)
{
	for (uint32_t k = 0; k < PIXEL; k += 16) {
		const unsigned char *is = shared + tensor_swizzle(TSW_64, row * PIXEL + k);
		static const unsigned char zero[16];

		cr_assert_arr_eq(is, pixel < 0 ? zero : global + pixel * PIXEL + k, 16,
			"row %u, pixel %d", row, pixel);
	}
}

static void load_wide(const struct tensormap *m, const int32_t at[4], uint16_t halo, uint16_t offset,
	uint32_t rows)
{
	struct tensor_copy c = { .map = m, .shared = shared, .offset = { halo, offset } };

	for (uint32_t i = 0; i < sizeof global; i++)
		global[i] = (unsigned char)(i * 2654435761u >> 24 | 1);
	memcpy(c.at, at, 4 * sizeof *at);
	memset(shared, 0xee, sizeof shared);
	cr_assert_null(tensor_copy_check(&c, true));
	cr_assert_eq(tensor_box_bytes(&c), rows * PIXEL);
	cr_assert_eq(tensor_box_extent(&c), rows * PIXEL);
	tensor_load(&c);
	cr_assert_eq(shared[rows * PIXEL], 0xee);
}

Test(tensormap, wide_copies_walk_along_w)
{
	static const struct { int32_t at[4]; int lower, upper, step; uint16_t halo, offset; } cases[] = {
		{ { 0, 2, 3, 0 }, 0, 0, 1, 2, 0 }, { { 0, -1, 1, 5 }, -1, 0, 2, 1, 0 },
		{ { 0, -1, 1, 5 }, -1, 0, 2, 0, 1 }, { { 0, -3, 2, 30 }, -1, -1, 3, 0, 2 },
		{ { 0, 0, -1, 0 }, 0, 0, 1, 0, 0 }, { { 0, 4, 0, 39 }, 0, -2, 1, 5, 2 },
	};

	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		const struct tensormap m = wide_map(TM_WIDE, cases[k].lower, cases[k].upper,
			(uint32_t)cases[k].step, 50);
		const uint32_t rows = 50u + cases[k].halo;

		load_wide(&m, cases[k].at, cases[k].halo, cases[k].offset, rows);
		for (uint32_t row = 0; row < rows; row++)
			expect_row(row, pixel_of(cases[k].at, cases[k].lower, cases[k].upper, cases[k].step,
				cases[k].offset, (int)row));
	}
}

/* 128 pixels whatever the map says, and wHalo pixels that follow each 32 of them */
Test(tensormap, wide_copies_of_128_pixels)
{
	static const int32_t at[] = { 0, 2, 3, 1 };
	const struct tensormap m = wide_map(TM_WIDE_128, 0, 0, 1, 7);

	load_wide(&m, at, 3, 1, 128 + 4 * 3);
	for (uint32_t row = 0; row < 128; row++)
		expect_row(row, pixel_of(at, 0, 0, 1, 1, (int)row));
	for (uint32_t halo = 0; halo < 3; halo++)
		for (uint32_t group = 0; group < 4; group++)
			expect_row(128 + 4 * halo + group,
				pixel_of(at, 0, 0, 1, 1, (int)(32 * (group + 1) + halo)));
}

Test(tensormap, wide_swizzles)
{
	struct tensormap m = wide_map(TM_WIDE, 0, 0, 1, 8);

	for (unsigned k = 0; k < TSW_COUNT; k++) {
		m.swizzle = (uint8_t)k;
		m.mode = TM_WIDE_128;
		cr_expect_eq(!tensormap_check(&m), k != TSW_NONE && k != TSW_128_ATOM32_FLIP8, "%u", k);
		m.mode = TM_IM2COL;
		cr_expect_null(tensormap_check(&m), "%u", k);
	}
	m.mode = TM_WIDE;
	m.swizzle = TSW_64;
	m.upper[0] = -W;
	cr_expect_not_null(tensormap_check(&m), "an empty box");
}

Test(tensormap, wide_operands)
{
	const struct tensormap m = wide_map(TM_WIDE, -1, -2, 1, 8),
		fixed = wide_map(TM_WIDE_128, -1, -2, 1, 8);
#define CHECK(of, w, halo, move) tensor_copy_check(&(struct tensor_copy){ .map = of, \
	.at = { 0, w, 0, 0 }, .offset = { halo, move } }, true)

	cr_assert_null(CHECK(&m, 6, 511, 31));
	cr_assert_null(CHECK(&m, -5, 0, 0), "the first pixel may be to the left of the box");
	cr_assert_not_null(CHECK(&m, 7, 0, 0), "but not to the right");
	cr_assert_not_null(CHECK(&m, 6, 512, 0));
	cr_assert_not_null(CHECK(&m, 6, 0, 32));
	cr_assert_null(CHECK(&fixed, 6, 31, 0));
	cr_assert_not_null(CHECK(&fixed, 6, 32, 0));
#undef CHECK
}

/* ---- bytes against those of an H200 ---- */

#define P(...) { __VA_ARGS__ }

static const struct recorded {
	enum tensor_mode mode;
	uint32_t type, rank, interleave, swizzle, l2, oob;
	uint64_t address, dim[5], stride[4];
	uint32_t step[5], box[5];
	int32_t lower[3], upper[3];
	uint32_t channels, pixels, word[CONSAN_TENSORMAP_BYTES / 4];
} recorded[] = {
#define MAP(mode, type, rank, il, sw, l2, oob, at, dim, stride, step, box, low, up, ch, px, word) \
	{ mode, type, rank, il, sw, l2, oob, at, dim, stride, step, box, low, up, ch, px, word },
#define REPLACED(...)
#include "tensormap_h200.def"
};

static const struct replacement {
	enum tensor_field f;
	unsigned ord;
	uint64_t value;
	uint8_t fill;
	uint64_t word[8];
} replaced[] = {
#define MAP(...)
#define REPLACED(f, ord, value, fill, words) { f, ord, value, fill, words },
#include "tensormap_h200.def"
};

static struct consan_tensormap_args args_of(const struct recorded *r)
{
	return (struct consan_tensormap_args){ .im2col = r->mode != TM_TILE, .wide = r->mode == TM_WIDE,
		.type = r->type, .rank = r->rank, .address = r->address, .dim = r->dim,
		.stride = r->stride, .box = r->box, .elem_stride = r->step, .lower = r->lower,
		.upper = r->upper, .channels = r->channels, .pixels = r->pixels,
		.interleave = r->interleave, .swizzle = r->swizzle, .l2 = r->l2, .oob = r->oob };
}

Test(tensormap, bytes_as_the_driver_encodes_them)
{
	for (size_t k = 0; k < ARRAY_SIZE(recorded); k++) {
		const struct recorded *r = &recorded[k];
		const struct consan_tensormap_args a = args_of(r);
		static const uint32_t refused[CONSAN_TENSORMAP_BYTES / 4];
		_Alignas(64) unsigned char bytes[CONSAN_TENSORMAP_BYTES];
		struct consan_err e = { 0 };

		cr_expect_eq(exec_tensormap(&a, bytes, &e), !!memcmp(r->word, refused, sizeof refused),
			"map %zu: %s", k, e.text);
		if (!e.text[0])
			cr_expect_arr_eq(bytes, r->word, sizeof bytes, "map %zu", k);
	}
}

Test(tensormap, fields_of_what_the_driver_encodes)
{
	for (size_t k = 0; k < ARRAY_SIZE(recorded); k++) {
		const struct recorded *r = &recorded[k];
		struct tensormap m;

		if (!r->word[2] && !r->word[13])
			continue;
		cr_assert_null(tensormap_unpack(&m, r->word, r->mode), "map %zu", k);
		cr_expect(m.mode == r->mode && m.type == r->type && m.rank == r->rank &&
			m.interleave == r->interleave && m.swizzle == r->swizzle && m.l2 == r->l2 &&
			m.oob == r->oob && m.address == r->address, "map %zu", k);
		for (uint32_t i = 0; i < r->rank; i++) {
			cr_expect_eq(m.dim[i] + 1ull, r->dim[i]);
			cr_expect_eq(m.elem_stride[i], r->step[i]);
			cr_expect_eq(r->mode ? i || m.box[0] == r->channels : m.box[i] == r->box[i], 1);
			cr_expect(i + 1 == r->rank || m.stride[i] == r->stride[i]);
		}
		for (uint32_t i = 0; r->mode && i < (r->mode == TM_WIDE ? 1 : r->rank - 2); i++)
			cr_expect(m.lower[i] == r->lower[i] && m.upper[i] == r->upper[i]);
		cr_expect(!r->mode || m.pixels == r->pixels);
	}
}

Test(tensormap, replacements_as_on_hardware)
{
	for (size_t k = 0; k < ARRAY_SIZE(replaced); k++) {
		unsigned char bytes[CONSAN_TENSORMAP_BYTES];

		memset(bytes, replaced[k].fill, sizeof bytes);
		cr_assert_null(tensormap_replace(bytes, replaced[k].f, replaced[k].ord, replaced[k].value),
			"replacement %zu", k);
		cr_expect_arr_eq(bytes, replaced[k].word, sizeof replaced[k].word, "replacement %zu", k);
		cr_expect_eq(bytes[127], replaced[k].fill);
	}
}

/* What sm_90 lacks, by the encoder and by tensormap.replace */
Test(tensormap, types_and_swizzles_of_sm_100)
{
	static const uint8_t small[] = { TT_u4x16, TT_u4x16_p64, TT_u6x16_p32 };
	static const uint8_t span[] = { 0, 1, 2, 3, 3, 3, 3 };
	unsigned char bytes[CONSAN_TENSORMAP_BYTES];
	struct tensormap m = { .rank = 2, .box = { 128, 1, 1, 1, 1 },
		.elem_stride = { 1, 1, 1, 1, 1 } }, back;

	for (unsigned k = 0; k < (unsigned)TT_COUNT * TSW_COUNT; k++) {
		m.type = (uint8_t)(k / TSW_COUNT);
		m.swizzle = k % TSW_COUNT;
		tensormap_pack(&m, bytes);
		cr_assert_null(tensormap_unpack(&back, bytes, TM_TILE));
		cr_assert(back.type == m.type && back.swizzle == m.swizzle);
	}
	for (unsigned k = 0; k < TSW_COUNT; k++) {
		memset(bytes, 0, sizeof bytes);
		cr_assert_null(tensormap_replace(bytes, TF_SWIZZLE, 0, span[k]));
		cr_assert_null(tensormap_replace(bytes, TF_ATOMICITY, 0, k - span[k]));
		cr_assert_null(tensormap_replace(bytes, TF_TYPE, 0, 13 + k % 3));
		cr_assert_null(tensormap_unpack(&back, bytes, TM_TILE));
		cr_expect(back.swizzle == k && back.type == small[k % 3], "swizzle %u", k);
	}
	cr_assert_null(tensormap_replace(bytes, TF_SWIZZLE, 0, 1));
	cr_expect_not_null(tensormap_unpack(&back, bytes, TM_TILE), "an atomicity of the swizzle 32B");
}

/* Zeros, bits of unknown meaning, a swizzle that no copy supports */
Test(tensormap, other_bytes)
{
	static const uint16_t zeros[] = { 66, 67, 87, 95, 240, 255, 431, 439, 480, 511 };
	unsigned char bytes[CONSAN_TENSORMAP_BYTES], other[CONSAN_TENSORMAP_BYTES];
	struct tensormap m;

	memset(bytes, 0, sizeof bytes);
	cr_assert_null(tensormap_unpack(&m, bytes, TM_TILE));
	cr_expect_not_null(tensormap_check(&m), "a box of one byte");
	for (size_t k = 0; k < ARRAY_SIZE(zeros); k++) {
		memset(bytes, 0, sizeof bytes);
		bytes[zeros[k] / 8] = (unsigned char)(1u << zeros[k] % 8);
		cr_assert_null(tensormap_unpack(&m, bytes, TM_TILE));
		cr_expect_not_null(tensormap_unsupported(&m), "bit %u", zeros[k]);
	}
	memset(bytes, 0, sizeof bytes);
	bytes[8] = 2; /* bit 65 */
	cr_assert_null(tensormap_unpack(&m, bytes, TM_TILE));
	cr_expect_null(tensormap_unsupported(&m));
	cr_assert_null(tensormap_replace(bytes, TF_SWIZZLE, 0, 4));
	cr_assert_null(tensormap_unpack(&m, bytes, TM_TILE));
	cr_expect_not_null(tensormap_unsupported(&m), "96 bytes");
	for (unsigned span = TSW_NONE; span <= TSW_128; span++) { /* bit 85 */
		memset(bytes, 0, sizeof bytes);
		bytes[9] = (unsigned char)(span << 5);
		bytes[10] = 1 << 5;
		cr_assert_null(tensormap_unpack(&m, bytes, TM_TILE));
		cr_expect_null(tensormap_unsupported(&m));
		cr_expect_eq(m.swizzle, span);
	}
	memset(other, 0, sizeof other);
	memset(bytes, 0, sizeof bytes);
	bytes[8] = 2, bytes[10] = 1 << 5, bytes[100] = 7; /* bits 65 and 85, and a note */
	cr_expect(tensormap_same(bytes, other));
	bytes[10] |= 1 << 4;
	cr_expect_not(tensormap_same(bytes, other));
	memset(bytes, 0xff, sizeof bytes);
	cr_expect_not_null(tensormap_unpack(&m, bytes, TM_TILE));
}
