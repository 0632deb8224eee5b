/* tma_map: draws tensor maps and the places of copies (tma.h). */
#include "tma.h"

static unsigned round_up(unsigned v, unsigned to) { return (v + to - 1) / to * to; }

static unsigned tensor_bytes(const struct map *m)
{
	return (unsigned)m->stride[m->args.rank - 2] * (unsigned)m->dim[m->args.rank - 1];
}

static void draw_dims(struct map *m, struct rng *r, unsigned size, unsigned inner)
{
	/* sizes that are no multiple of 16 bytes, smaller and larger than the box */
	m->dim[0] = 1 + rng_below(r, 2 * inner / size + 3);
	unsigned bytes = round_up((unsigned)m->dim[0] * size, 16) + 16 * rng_below(r, 3);
	for (unsigned d = 1; d < m->args.rank; d++) {
		m->dim[d] = 1 + rng_below(r, 6);
		m->stride[d - 1] = bytes;
		bytes = bytes * (unsigned)m->dim[d] + 16 * rng_below(r, 2);
	}
	if (m->args.rank == 1)
		m->stride[0] = 0;
}

void draw_tile(struct item *i, struct rng *r, struct copy *c)
{
	static const unsigned span[] = { 0, 32, 64, 128 };
	struct map *m = i->map;
	const unsigned size = size_of(i);
	unsigned inner, total;

	m->args.swizzle = rng_below(r, 4);
	inner = m->args.swizzle ? span[m->args.swizzle] : 16 * (1 + rng_below(r, 12));
	if (inner / size > 256)
		inner = 128;
	if (m->args.swizzle && rng_once_in(r, 4))
		inner = 16 * (1 + rng_below(r, inner / 16));
	m->args.rank = 1 + rng_below(r, 5);
	do
		draw_dims(m, r, size, inner);
	while (m->args.rank > 1 ? tensor_bytes(m) > TENSOR : m->dim[0] * size > TENSOR);
	do {
		total = inner > span[m->args.swizzle] ? inner : span[m->args.swizzle];
		for (unsigned d = 0; d < 5; d++) {
			m->elem_stride[d] = d && rng_once_in(r, 4) ? 1 + rng_below(r, 3) : 1;
			m->box[d] = d ? 1 + rng_below(r, 5) : inner / size;
			total *= d && d < m->args.rank ? count(m, d) : 1;
		}
	} while (total > BOX - 1024);
	for (unsigned d = 0; d < m->args.rank; d++) {
		int edge = (int)m->dim[d] + (int)m->box[d];
		c->at[d] = (int)rng_below(r, (unsigned)edge + 2) - (c->load ? (int)m->box[d] : 0);
	}
	/* the first element is at a multiple of 16 bytes */
	c->at[0] = c->at[0] * (int)size / 16 * 16 / (int)size;
}

void draw_im2col(struct item *i, struct rng *r, struct copy *c)
{
	static const unsigned span[] = { 0, 32, 64, 128 };
	struct map *m = i->map;
	const unsigned size = size_of(i);
	unsigned inner;

	m->args.swizzle = rng_below(r, 4);
	inner = m->args.swizzle ? span[m->args.swizzle] : 16 * (1 + rng_below(r, 8));
	m->args.rank = 3 + rng_below(r, 3);
	const unsigned last = m->args.rank - 1;
	do {
		draw_dims(m, r, size, inner);
		for (unsigned d = 1; d < last; d++) {
			/* a store has no pixels before the image's edge */
			m->lower[d - 1] = c->load ? -(int)rng_below(r, 3) : 0;
			m->upper[d - 1] = -(int)rng_below(r, 2);
			m->elem_stride[d] = 1 + rng_once_in(r, 4);
		}
		/* the bounding box is not empty */
		for (unsigned d = 1; d < last; d++)
			if ((int)m->dim[d] - 1 + m->upper[d - 1] < m->lower[d - 1])
				m->upper[d - 1] = 0;
	} while (tensor_bytes(m) > TENSOR);
	m->elem_stride[0] = m->elem_stride[last] = 1;
	m->args.im2col = true;
	m->args.channels = inner / size;
	m->args.pixels = 1 + rng_below(r, (BOX - 1024) / inner < 40 ? (BOX - 1024) / inner : 40);
	c->at[0] = (int)rng_below(r, (unsigned)m->dim[0] + 1) * (int)size / 16 * 16 / (int)size;
	for (unsigned d = 1; d < last; d++) {
		int low = c->load ? m->lower[d - 1] : 0,
			high = (int)m->dim[d] - 1 + m->upper[d - 1];
		c->at[d] = high < low ? low : low + (int)rng_below(r, (unsigned)(high - low) + 1);
		c->offset[d - 1] = c->load ? (int)rng_below(r, 3) : 0;
	}
	c->at[last] = (int)rng_below(r, (unsigned)m->dim[last]);
}

/* A matrix, of which four rows are copied. */
void draw_rows(struct item *i, struct rng *r, struct copy *c)
{
	struct map *m = i->map;

	do
		draw_tile(i, r, c);
	while (m->args.rank != 2);
	m->box[1] = m->elem_stride[1] = 1;
	c->rows = true;
	for (unsigned k = 1; k < 5; k++)
		c->at[k] = (int)rng_below(r, (unsigned)m->dim[1] + 3) - (c->load ? 1 : 0);
}

void draw_interleaved(struct item *i, struct rng *r, struct copy *c)
{
	struct map *m = i->map;
	const unsigned size = size_of(i);
	unsigned bytes, total;

	m->args.interleave = 1 + rng_below(r, 2);
	m->args.swizzle = m->args.interleave == 2 ? 1 : rng_below(r, 4);
	m->args.rank = 3 + rng_below(r, 3);
	do {
		m->dim[0] = 1 + rng_below(r, 20);
		bytes = slice(m) * ((unsigned)m->dim[0] + rng_below(r, 3));
		for (unsigned d = 1; d < m->args.rank; d++) {
			m->dim[d] = 1 + rng_below(r, 5);
			m->stride[d - 1] = bytes;
			bytes = bytes * (unsigned)m->dim[d] + slice(m) * rng_below(r, 2);
		}
	} while (tensor_bytes(m) > TENSOR);
	do {
		total = slice(m);
		for (unsigned d = 0; d < 5; d++) {
			m->elem_stride[d] = rng_once_in(r, 4) ? 1 + rng_below(r, 3) : 1;
			m->box[d] = d ? 1 + rng_below(r, 5) : 16 / size * (1 + rng_below(r, 2));
			total *= d < m->args.rank ? count(m, d) : 1;
		}
	} while (total > BOX - 1024);
	for (unsigned d = 0; d < m->args.rank; d++)
		c->at[d] = (int)rng_below(r, (unsigned)m->dim[d] + m->box[d] + 2)
			- (c->load ? (int)m->box[d] : 0);
}

void finish_map(struct map *m)
{
	struct consan_tensormap_args *a = &m->args;

	a->dim = m->dim;
	a->stride = m->stride;
	a->box = m->box;
	a->elem_stride = m->elem_stride;
	a->lower = m->lower;
	a->upper = m->upper;
}
