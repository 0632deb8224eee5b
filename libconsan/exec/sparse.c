/* sparse: see sparse.h. */
#include "sparse.h"

void sparse_expand(unsigned char *out, const unsigned char *in, unsigned chunks, bool wide,
	uint64_t meta)
{
	const unsigned unit = wide ? 2 : 1;

	memset(out, 0, chunks * 4 * unit);
	for (unsigned c = 0; c < 2 * chunks; c++)
		memcpy(out + (c / 2 * 4 + (meta >> 2 * c & 3)) * unit, in + c * unit, unit);
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
