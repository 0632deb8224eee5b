/* tensormap_args: what a program says when it describes a tensor for TMA, the
 * arguments of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col as plain
 * integers. Numbers are those of the driver API's enums. */
#ifndef CONSAN_TENSORMAP_ARGS_H
#define CONSAN_TENSORMAP_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#define TENSORMAP_BYTES 128

struct tensormap_args {
	bool im2col;
	uint32_t type;             /* CUtensorMapDataType */
	uint32_t rank;
	uint64_t address;          /* globalAddress */
	const uint64_t *dim;       /* rank of them, elements */
	const uint64_t *stride;    /* rank - 1 of them, bytes */
	const uint32_t *box;       /* tiled: rank of them */
	const uint32_t *elem_stride; /* rank of them */
	const int32_t *lower, *upper; /* im2col: pixel box corners, rank - 2 of them */
	uint32_t channels, pixels; /* im2col: per pixel, per column */
	uint32_t interleave, swizzle, l2, oob; /* CUtensorMap... enums */
};

#endif
