/* map_bits: reads the arguments of a tensor map that a kernel has changed with
 * tensormap.replace: address, dimensions, strides, box and element strides. The format is the
 * driver's own. It is learned by encoding arguments that differ in one bit, and what was read
 * is trusted only if the driver encodes it to the same bytes. Maps for im2col are not read,
 * nor changes of type, swizzle, interleave, rank and fill. */
#ifndef CONSAN_INSTRUMENT_MAP_BITS_H
#define CONSAN_INSTRUMENT_MAP_BITS_H

#include "libconsan/tensormap_args.h"

#define MAP_RANKS 5

/* Arguments and the arrays that they point to. In a copy, map_args_view() sets the pointers to
 * the copy's arrays. */
struct map_args {
	struct consan_tensormap_args a;
	uint64_t dim[MAP_RANKS], stride[MAP_RANKS - 1];
	uint32_t box[MAP_RANKS], elem_stride[MAP_RANKS];
};

/* Encodes a map of CONSAN_TENSORMAP_BYTES. False: the driver refuses the arguments. */
typedef bool map_encode(const struct consan_tensormap_args *a, void *bytes);

/* A kind of maps: they differ only in fields that can be learned. Holds the first one. */
struct map_bits;

/* From a tiled map that the driver encoded; free() it. */
struct map_bits *map_bits_open(const struct consan_tensormap_args *a, const void *bytes);
/* Is a map with these arguments of the same kind? */
bool map_bits_fit(const struct map_bits *m, const struct consan_tensormap_args *a);
/* Reads a map's arguments. False: they cannot be read. The first call learns the format, with
 * some hundred calls of encode. */
bool map_bits_read(struct map_bits *m, const void *bytes, map_encode *encode, struct map_args *out);
const struct consan_tensormap_args *map_args_view(struct map_args *m);

#endif
