/* map_bits: reads maps that a kernel has changed. The encoder here is not the driver's, but
 * has its peculiarities: sizes less one, strides in two places, bits that depend on others. */
#include "instrument/decode/map_bits.h"

#include <criterion/criterion.h>
#include <string.h>

static unsigned calls;

static void field(unsigned char *map, unsigned at, unsigned width, uint64_t value)
{
	for (unsigned k = 0; k < width; k++, at++)
		map[at / 8] |= (unsigned char)((value >> k & 1) << at % 8);
}

static bool encode(const struct consan_tensormap_args *a, void *bytes)
{
	calls++;
	if (a->address % 16 || a->box[0] % 8 || a->box[0] > 64)
		return false;
	memset(bytes, 0, CONSAN_TENSORMAP_BYTES);
	field(bytes, 0, 64, a->address);
	field(bytes, 68, 3, a->rank - 1);
	field(bytes, 77, 2, a->swizzle);
	field(bytes, 86, 1, a->dim[0] > 1u << 20); /* depends on the dimension */
	for (uint32_t k = 0; k < a->rank; k++) {
		if (k + 1 < a->rank && a->stride[k] % 16)
			return false;
		if (k + 1 < a->rank) {
			field(bytes, 96 + 32 * k, 32, a->stride[k] >> 4);
			field(bytes, 224 + 4 * k, 4, a->stride[k] >> 36);
		}
		field(bytes, 256 + 32 * k, 32, a->dim[k] - 1);
		field(bytes, 416 + 3 * k, 3, a->elem_stride[k] - 1);
		field(bytes, 440 + 8 * k, 8, a->box[k] - 1);
	}
	return true;
}

static struct map_args matrix(uint64_t address, uint64_t columns, uint64_t rows, uint32_t box)
{
	return (struct map_args){ .a = { .type = 6, .rank = 2, .address = address, .swizzle = 3 },
		.dim = { columns, rows }, .stride = { columns * 2 }, .box = { 64, box },
		.elem_stride = { 1, 1 } };
}

static void expect_read(struct map_args first, struct map_args edited)
{
	unsigned char bytes[CONSAN_TENSORMAP_BYTES];
	struct map_bits *m;
	struct map_args out;

	cr_assert(encode(map_args_view(&first), bytes));
	m = map_bits_open(&first.a, bytes);
	cr_assert(encode(map_args_view(&edited), bytes));
	cr_assert(map_bits_fit(m, &edited.a));
	cr_assert(map_bits_read(m, bytes, encode, &out));
	cr_expect_eq(out.a.address, edited.a.address);
	cr_expect_arr_eq(out.dim, edited.dim, sizeof out.dim);
	cr_expect_arr_eq(out.stride, edited.stride, sizeof out.stride);
	cr_expect_arr_eq(out.box, edited.box, sizeof out.box);
	cr_expect_arr_eq(out.elem_stride, edited.elem_stride, sizeof out.elem_stride);
	free(m);
}

Test(map_bits, changed_fields)
{
	const struct map_args plain = matrix(0x7f0000001000, 64, 64, 8);

	expect_read(plain, plain);
	expect_read(plain, matrix(0x7e1234567890, 64, 64, 8));
	expect_read(plain, matrix(0x7f0000001000, 32, 1, 8));
	expect_read(plain, matrix(0x10, 8192, 1ull << 32, 256));
}

Test(map_bits, strides_are_in_two_places)
{
	struct map_args edited = matrix(0x7f0000001000, 64, 64, 8);

	edited.stride[0] = 0xabcdef1230;
	expect_read(matrix(0x7f0000001000, 64, 64, 8), edited);
}

static bool reads(const unsigned char *bytes)
{
	struct map_args first = matrix(0x7f0000001000, 64, 64, 8), out;
	unsigned char own[CONSAN_TENSORMAP_BYTES];
	struct map_bits *m;
	bool good;

	cr_assert(encode(map_args_view(&first), own));
	m = map_bits_open(&first.a, own);
	good = map_bits_read(m, bytes, encode, &out);
	calls = 0;
	cr_expect_eq(map_bits_read(m, bytes, encode, &out), good);
	cr_expect_leq(calls, 1, "it has been learned");
	free(m);
	return good;
}

Test(map_bits, unknown_bits)
{
	struct map_args m = matrix(0x7f0000001000, 64, 64, 8);
	unsigned char bytes[CONSAN_TENSORMAP_BYTES];

	cr_assert(encode(map_args_view(&m), bytes));
	cr_expect(reads(bytes));
	bytes[127] ^= 1; /* a bit that was not learned */
	cr_expect_not(reads(bytes));
	m.a.swizzle = 1;
	cr_assert(encode(map_args_view(&m), bytes));
	cr_expect_not(reads(bytes));
	memset(bytes, 0, sizeof bytes);
	cr_expect_not(reads(bytes));
}

/* An instruction changes one field and leaves a dependent bit, which the encoder would change,
 * too. */
Test(map_bits, inconsistent_bits)
{
	struct map_args m = matrix(0x7f0000001000, 64, 64, 8);
	unsigned char bytes[CONSAN_TENSORMAP_BYTES];

	cr_assert(encode(map_args_view(&m), bytes));
	bytes[256 / 8 + 2] |= 1 << 5; /* a dimension above 2^20 */
	cr_expect_not(reads(bytes));
	cr_assert(encode(map_args_view(&m), bytes));
	bytes[440 / 8] ^= 64; /* a box of 128 columns */
	cr_expect_not(reads(bytes));
}
