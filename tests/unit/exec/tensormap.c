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
