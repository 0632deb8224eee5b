/* tc_desc: see tc_desc.h. */
#include "tc_desc.h"

#include <stddef.h>

struct tc_desc tc_desc_decode(uint64_t u)
{
	static const uint8_t span[8] = { 16, 128, 128, 0, 64, 0, 32, 0 };

	return (struct tc_desc){ .start = (uint32_t)(u & 0x3fff) << 4,
		.lead = (uint32_t)(u >> 16 & 0x3fff) << 4,
		.stride = (uint32_t)(u >> 32 & 0x3fff) << 4,
		.base = (uint32_t)(u >> 49 & 7), .span = span[u >> 61],
		.swizzle = (uint8_t)(u >> 61), .absolute = u >> 52 & 1 };
}

const char *tc_desc_fault(const struct tc_desc *d, bool mn, unsigned pieces, bool wide)
{
	if (!d->span)
		return "an invalid swizzling mode";
	if (d->absolute && (d->swizzle != TC_SWIZZLE_128B || mn || d->base))
		return "the absolute mode of the leading dimension, which needs 128B swizzling, a K-major "
			"operand and no base offset";
	if (mn && wide != (d->swizzle == TC_SWIZZLE_128B_32B))
		return wide ? "a transposed operand of 32-bit elements without 128B swizzling of 32-byte "
			"atoms" : "a transposed operand with 128B swizzling of 32-byte atoms";
	if (!mn && d->span > 16 && !d->absolute
			&& (d->start & (d->span - 1)) + 16 * pieces > d->span)
		return "rows that reach beyond the atoms of its swizzling mode";
	return NULL;
}

/* Address bits 7 and up select how the pieces of a row are permuted; atoms of 32 bytes keep both of
 * their pieces together. */
static uint32_t swizzled(const struct tc_desc *d, uint32_t at)
{
	const uint32_t phase = (at >> 7) - d->base;

	if (d->swizzle == TC_SWIZZLE_128B_32B)
		return (at ^ (phase & 3) << 5) & 0x3ffff;
	return (at ^ (phase << 4 & (d->span - 16))) & 0x3ffff;
}

void tc_desc_k_pieces(const struct tc_desc *d, unsigned rows, unsigned n, uint32_t *out)
{
	const uint32_t next = d->span == 16 ? d->lead : 16;
	/* absolute mode: the pieces from this one on lie at d->lead */
	const unsigned here = d->absolute ? 8 - (d->start >> 4 & 7) : n;

	for (unsigned r = 0; r < rows; r++) {
		const uint32_t row = r / 8 * d->stride + r % 8 * d->span;

		for (unsigned j = 0; j < n; j++)
			*out++ = swizzled(d, row + (j < here ? d->start + j * next
				: d->lead + 16 * (j - here)));
	}
}

void tc_desc_mn_pieces(const struct tc_desc *d, unsigned k, unsigned n, uint32_t *out)
{
	/* blocks of `per` pieces; `high` rows of k in an atom */
	const uint32_t per = d->span / 16, high = d->swizzle == TC_SWIZZLE_128B_32B ? 4 : 8;
	const uint32_t block = d->span == 16 ? d->stride : d->lead;
	const uint32_t next = d->span == 16 ? d->lead : d->stride;

	for (unsigned i = 0; i < k; i++)
		for (unsigned c = 0; c < n; c++)
			*out++ = swizzled(d, d->start + i % high * d->span + i / high * next
				+ c / per * block + c % per * 16);
}

uint32_t tc_desc_top(const uint32_t *piece, unsigned n)
{
	uint32_t top = 0;

	for (unsigned i = 0; i < n; i++)
		top = piece[i] > top ? piece[i] : top;
	return top;
}
