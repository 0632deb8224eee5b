/* map_bits: which bits of a GPU's tensor map hold what a kernel edits with
 * tensormap.replace: address, dimensions, strides, box and element strides. The format
 * is the driver's own; it is learned from what the driver makes of arguments that differ
 * in one bit, and what was read is believed if the driver makes the same bytes of it.
 * Maps for im2col are not read, nor edits of type, swizzle, interleave, rank and fill. */
#ifndef CONSAN_INSTRUMENT_MAP_BITS_H
#define CONSAN_INSTRUMENT_MAP_BITS_H

#include "libconsan/tensormap_args.h"

#define MAP_RANKS 5

/* Arguments with what they point to: map_args_view() of a copy points into the copy. */
struct map_args {
	struct tensormap_args a;
	uint64_t dim[MAP_RANKS], stride[MAP_RANKS - 1];
	uint32_t box[MAP_RANKS], elem_stride[MAP_RANKS];
};

/* What the driver makes of them, TENSORMAP_BYTES. False: it refuses. */
typedef bool map_encode(const struct tensormap_args *a, void *bytes);

/* Maps that differ in nothing but what is learned; the first of them. */
struct map_bits;

/* Of a tiled map, as the driver encoded it; free() it. */
struct map_bits *map_bits_open(const struct tensormap_args *a, const void *bytes);
/* Is it of the same kind? */
bool map_bits_fit(const struct map_bits *m, const struct tensormap_args *a);
/* What the bytes say. False: nobody knows. Learns when first asked, which takes some
 * hundred calls of encode. */
bool map_bits_read(struct map_bits *m, const void *bytes, map_encode *encode, struct map_args *out);
const struct tensormap_args *map_args_view(struct map_args *m);

#endif
