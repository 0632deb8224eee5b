/* sparse: see sparse.h. */
#include "sparse.h"

#include "num.h"

void sparse_slots(uint8_t *slot, unsigned bits, unsigned n, uint64_t meta)
{
	const unsigned per = bits == 32 ? 1 : bits == 4 ? 4 : 2; /* stored elements of a chunk */

	for (unsigned i = 0; i < n; i++) {
		const unsigned e = i % per, chunk = i - e;
		const unsigned nibble = (unsigned)(meta >> chunk / per * 4 & 15);

		if (bits == 32) /* 0b0100 or 0b1110 */
			slot[i] = (uint8_t)(2 * chunk + (nibble >> 1 & 1));
		else if (bits == 4)
			slot[i] = (uint8_t)(2 * chunk + 2 * (nibble >> e / 2 * 2 & 3) + e % 2);
		else
			slot[i] = (uint8_t)(2 * chunk + (nibble >> 2 * e & 3));
	}
}

/* Lane 4g + t of the quad g, ISA figures "metadata layout" of each shape:
 *   wide, 4 chunks    t is the selector: the low half for row g, the high half for row g + 8
 *   wide, 8 chunks    the same, t = 2 selector for the first half of the row, and t + 1
 *   bytes, 8 chunks   t = 2 selector for row g, t + 1 for row g + 8
 *   bytes, 16 chunks  t = 0, 1 for the first half of rows g and g + 8, t = 2, 3 for the second */
uint64_t sparse_meta(const l32 *reg, unsigned selector, unsigned row, unsigned chunks, bool wide)
{
	const l32 *quad = reg + row % 8 * 4;
	const unsigned half = row / 8;

	if (wide && chunks == 4)
		return quad[selector] >> 16 * half & 0xffff;
	if (wide)
		return (quad[2 * selector] >> 16 * half & 0xffff)
			| (quad[2 * selector + 1] >> 16 * half & 0xffff) << 16;
	if (chunks == 8)
		return quad[2 * selector + half];
	return quad[half] | (uint64_t)quad[2 + half] << 32;
}

bool sparse_selector(unsigned selector, unsigned chunks)
{
	return selector < 16 / chunks;
}

static enum tc_in type_of(enum tile_in t)
{
	static const uint8_t types[] = {
		[IN_f16] = TC_f16, [IN_bf16] = TC_bf16, [IN_tf32] = TC_tf32, [IN_e4m3] = TC_e4m3,
		[IN_e5m2] = TC_e5m2, [IN_e3m2] = TC_e3m2_b, [IN_e2m3] = TC_e2m3_b,
		[IN_e2m1] = TC_e2m1_b, [IN_e2m1x2] = TC_e2m1, [IN_s8] = TC_s8, [IN_u8] = TC_u8,
		[IN_s4] = TC_s4, [IN_u4] = TC_u4,
	};

	return (enum tc_in)types[t];
}

struct tc_tile sparse_tile(const uint8_t type[2], enum tile_acc acc, unsigned m, unsigned n,
	unsigned k, uint32_t *d, struct tc_scratch *x)
{
	for (unsigned r = 0; r < m; r++)
		x->cell[r] = d + r * n;
	return (struct tc_tile){
		.m = (uint16_t)m, .n = (uint16_t)n, .k = (uint16_t)k, .b_n = (uint16_t)n,
		.a_type = (uint8_t)type_of(type[0]), .b_type = (uint8_t)type_of(type[1]),
		.acc = acc == ACC_s32 ? TC_ACC_s32 : TC_ACC_f32, .scale_d = 1, .a = x->image_a,
		.b = x->image_b, .slot = x->slot, .block = (uint16_t)k, .groups = 1, .cell = x->cell,
	};
}

/* Register 4j + 2h + p of lane 4g + t, or half p of register 2j + h, is row 8h + g and column
 * 8j + 2t + p (ISA, fragments of mma.sync and wgmma). */
#define EACH_ELEMENT(j, h, l, n) \
	(unsigned j = 0; j < (n) / 8; j++) \
		for (unsigned h = 0; h < 2; h++) \
			for (unsigned l = 0; l < LANES; l++)

void sparse_get_d(uint32_t *d, unsigned n, enum tile_acc acc, const void *const *reg)
{
	for EACH_ELEMENT(j, h, l, n) {
		uint32_t *to = d + (8 * h + l / 4) * n + 8 * j + 2 * (l % 4);

		for (unsigned p = 0; p < 2; p++)
			to[p] = acc != ACC_f16 ? ((const l32 *)reg[4 * j + 2 * h + p])[l]
				: num_bits32(num_from_f16((uint16_t)(((const l32 *)reg[2 * j + h])[l]
					>> 16 * p)));
	}
}

void sparse_put_d(const uint32_t *d, unsigned n, enum tile_acc acc, void *const *reg)
{
	for EACH_ELEMENT(j, h, l, n) {
		const uint32_t *from = d + (8 * h + l / 4) * n + 8 * j + 2 * (l % 4);

		if (acc == ACC_f16) {
			((l32 *)reg[2 * j + h])[l] = num_to_f16(num_f32(from[0]))
				| (uint32_t)num_to_f16(num_f32(from[1])) << 16;
			continue;
		}
		for (unsigned p = 0; p < 2; p++)
			((l32 *)reg[4 * j + 2 * h + p])[l] = from[p];
	}
}
