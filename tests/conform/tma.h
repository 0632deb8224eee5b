/* tma: what tensor copies copy (tma.c) and how their maps are drawn (tma_map.c). */
#ifndef CONFORM_TMA_H
#define CONFORM_TMA_H

#include "conform.h"

/* By CUtensorMapDataType; flush: .ftz */
struct tma_type { enum type t; bool flush; };
enum { TMA_TYPES = 11 };
extern const struct tma_type tma_types[TMA_TYPES];

enum { TENSOR = 128 * CTA_THREADS, BOX = 64 * CTA_THREADS, MBAR = BOX + 1024 };
/* coordinates and im2col offsets are in data */
struct copy {
	int32_t at[5];
	int32_t offset[3];
	int op;
	bool load;
	bool rows;                 /* gather4, scatter4: at[1] to at[4] are rows */
	unsigned shared;           /* offset of the box */
	bool replaced;             /* the kernel makes the item's map into this one: */
	struct map target;
};

static inline const struct copy *copy_of(const struct item *i) { return i->data; }
/* The map by which the copy takes place */
static inline const struct map *map_of(const struct item *i)
{
	return copy_of(i)->replaced ? &copy_of(i)->target : i->map;
}
static inline unsigned size_of(const struct item *i)
{
	return type_bits(tma_types[map_of(i)->args.type].t) / 8;
}

/* Bytes of a slice of an interleaved layout; else 0 */
static inline unsigned slice(const struct map *m) { return 16 * m->args.interleave; }

/* Elements of the box along dimension d; dimension 0 has no stride unless it consists of slices. */
static inline unsigned count(const struct map *m, unsigned d)
{
	unsigned step = d || slice(m) ? m->elem_stride[d] : 1;

	return slice(m) && d + 2 == m->args.rank ? 1 : (m->box[d] + step - 1) / step;
}

/* Draw the map of an item whose type is known, and the place of its copy; c->load is set. */
typedef void draw_fn(struct item *i, struct rng *r, struct copy *c);
draw_fn draw_tile, draw_im2col, draw_rows, draw_interleaved;
/* Sets the pointers of m->args. */
void finish_map(struct map *m);

#endif
