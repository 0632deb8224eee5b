/* tensormap_args: the description of a tensor for TMA: the arguments of cuTensorMapEncodeTiled(),
 * cuTensorMapEncodeIm2col() and cuTensorMapEncodeIm2colWide() as integers. Enums have the numbers
 * of the driver API. */
#ifndef CONSAN_TENSORMAP_ARGS_H
#define CONSAN_TENSORMAP_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#define CONSAN_TENSORMAP_BYTES 128

struct consan_tensormap_args {
	bool im2col;               /* else tiled */
	uint32_t type;             /* CUtensorMapDataType */
	uint32_t rank;             /* 1 to 5 */
	uint64_t address;          /* globalAddress */
	const uint64_t *dim;       /* [rank], elements, innermost first */
	const uint64_t *stride;    /* [rank - 1], bytes, of dimensions 1 and up */
	const uint32_t *box;       /* tiled: [rank], elements */
	const uint32_t *elem_stride; /* [rank], elements */
	const int32_t *lower, *upper; /* im2col: corners of the pixel box, [rank - 2]; wide: [1] */
	uint32_t channels, pixels; /* im2col: channels per pixel, pixels per column */
	uint32_t interleave, swizzle, l2, oob; /* CUtensorMap... enums */
	uint32_t wide;             /* with im2col: 1 + CUtensorMapIm2ColWideMode, or 0 */
};

#endif
