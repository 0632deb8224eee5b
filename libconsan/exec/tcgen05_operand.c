/* tcgen05_operand: see tcgen05_operand.h. */
#include "tcgen05_operand.h"

#include "num.h"
#include "sparse.h"

#include "libconsan/ptx/ptx.h"

/* ---- A and B ---- */

static void gather(unsigned char *to, const struct cta *c, const uint32_t *piece, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		memcpy(to + 16 * i, c->shared + piece[i], 16);
}

/* The row of the matrix in memory that is row r of A. .ashift: each row has the place of the one
 * before it, and the last one stays (ISA, tcgen05.mma; CUTLASS refreshes the last lanes after a
 * shift). */
static unsigned row_in_memory(const struct tc_form *f, const struct tc_shape *s, unsigned r)
{
	return f->ashift && r + 1u < s->rows ? r + 1 : r;
}

void tc_gather_a(const struct tc_reads *a, const struct cta *c, struct tc_scratch *x)
{
	gather(x->image_a, c, a->piece, a->n);
}

void tc_gather_tmem(const struct tc_form *f, const struct tc_shape *s, uint32_t a, unsigned group,
	const struct cta *c, struct tc_scratch *x)
{
	const unsigned first = (a >> 16) + group * s->rows;

	for (unsigned r = 0; r < s->rows; r++)
		memcpy(x->image_a + s->a_bytes * r, &c->async->tmem.cell[first
			+ tc_lane(s, row_in_memory(f, s, r))][a & 0xffff], s->a_bytes);
}

void tc_gather_b(const struct tc_shape *s, const struct tc_reads *b, struct cta *const cta[2],
	struct tc_scratch *x)
{
	const unsigned n = b->n;
	const unsigned nk = s->b_bytes / tc_bytes_of(s->b_type), row = n / nk;

	for (unsigned h = 0; h < s->ctas; h++) {
		if (!s->b_mn) {
			gather(x->image_b + h * 16 * n, cta[h], b->piece, n);
			continue;
		}
		for (unsigned k = 0; k < nk; k++) /* the columns of both CTAs next to each other */
			gather(x->image_b + 16 * row * (k * s->ctas + h), cta[h],
				b->piece + k * row, row);
	}
}

/* ---- sparse matrices ---- */

/* The metadata of a row, lowest k first: 64 bits, or 32 for elements of 16 and 32 bits. Those are in
 * lanes as the rows of mma.sp's fragments: lanes 0 to 7 of 16 have the first half of K, lanes 8 to
 * 15 the second; the halves of a cell are rows r and r + 8. */
static uint64_t metadata(const struct tc_shape *s, uint32_t meta, const struct cta *c, unsigned r)
{
	uint32_t (*cell)[TMEM_STRIDE] = c->async->tmem.cell + (meta >> 16);
	const unsigned column = meta & 0xffff, at = tc_lane(s, r / 16 * 16) + r % 8;
	const unsigned half = r & 8 ? 16 : 0;

	if (!tc_is_wide(s))
		return cell[tc_lane(s, r)][column]
			| (uint64_t)cell[tc_lane(s, r)][column + 1] << 32;
	return (cell[at][column + s->selector] >> half & 0xffff)
		| (cell[at + 8][column + s->selector] >> half & 0xffff) << 16;
}

void tc_gather_slots(const struct tc_form *f, const struct tc_shape *s, uint32_t meta,
	const struct cta *c, struct tc_scratch *x)
{
	const unsigned half = s->k / 2;

	for (unsigned r = 0; r < s->rows; r++)
		sparse_slots(x->slot + r * half, s->a_type == TC_tf32 ? 32 : tc_is_fp4(f) ? 4 : 16,
			half, metadata(s, meta, c, row_in_memory(f, s, r)));
}

/* ---- scales ---- */

void tc_gather_scales(const struct tc_shape *s, unsigned which, uint32_t addr, const struct cta *c,
	float *out)
{
	const unsigned n = which ? s->n : s->rows, groups = tc_scale_groups(s, which);

	for (unsigned r = 0; r < n; r++) {
		const unsigned group = r / (n / groups), row = r % (n / groups);
		const unsigned lane = group * (TMEM_LANES / groups) + row % TC_SCALE_LANES;

		for (unsigned j = 0; j < s->scales; j++) {
			const unsigned at = s->scale_id[which] + j;
			const uint32_t cell = c->async->tmem.cell[lane][(addr & 0xffff) + row / TC_SCALE_LANES
				+ at / 4 * tc_scale_stride(s, which)];
			const uint8_t byte = (uint8_t)(cell >> 8 * (at % 4));

			*out++ = s->ue8m0 ? num_from_ue8m0(byte) : num_from_e4m3(byte & 0x7f);
		}
	}
}

/* ---- the zero-column mask ---- */

/* Spans of used and of zeroed columns alternate; a sub-mask begins inside its first span. The
 * examples of the ISA (and CUTLASS) have it that the skip span is the zeroed one. */
unsigned tc_zero_mask(const struct tc_shape *s, uint64_t desc, uint64_t *mask)
{
	const unsigned skip = (unsigned)(desc >> 40 & 255) + 1, use = (unsigned)(desc >> 48 & 255) + 1;
	const unsigned n = s->n / (128 / s->m);

	memset(mask, 0, TC_N / 8);
	for (unsigned i = 0; desc >> 39 & 1 && i < 128u / s->m; i++) {
		bool zero = desc >> (32 + i) & 1;
		unsigned left = zero ? skip : use, start = (unsigned)(desc >> 8 * i & 255);

		left -= start < left ? start : left;
		for (unsigned c = i * n; c < (i + 1) * n; c++) {
			while (!left) {
				zero = !zero;
				left = zero ? skip : use;
			}
			mask[c / 64] |= (uint64_t)zero << c % 64;
			left--;
		}
	}
	return (unsigned)(desc >> 56 & 63);
}
