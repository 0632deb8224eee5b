/* texture_args: a texture or surface object as kernels see it: where its texels lie, and how they
 * are read. Enums have the numbers of the driver API. */
#ifndef CONSAN_TEXTURE_ARGS_H
#define CONSAN_TEXTURE_ARGS_H

#include <stdbool.h>
#include <stdint.h>

enum consan_texel {
	CONSAN_TEXEL_U8, CONSAN_TEXEL_U16, CONSAN_TEXEL_U32,
	CONSAN_TEXEL_S8, CONSAN_TEXEL_S16, CONSAN_TEXEL_S32,
	CONSAN_TEXEL_F16, CONSAN_TEXEL_F32,
};
enum { CONSAN_ADDRESS_WRAP, CONSAN_ADDRESS_CLAMP, CONSAN_ADDRESS_MIRROR, CONSAN_ADDRESS_BORDER };

/* Where the texels of a level are: the first one, and bytes from row to row, from plane or layer to the
 * next one. */
struct consan_level { uint64_t at, pitch, slice; };
enum { CONSAN_MOST_LEVELS = 18 };  /* of 131072 texels */

struct consan_texture {
	struct consan_level level[CONSAN_MOST_LEVELS];
	uint32_t levels;           /* of a mipmapped array; 0: it is none, and has level 0 */
	uint32_t width, height, depth; /* texels of level 0; of missing dimensions 0 */
	uint32_t layers;           /* 0: none. Of a cubemap: faces, six for each layer */
	bool cube, layered;
	bool surface;              /* a surface object, else a texture object */
	bool linear_memory;        /* not an array: texels are read by their index only */
	uint8_t format;            /* enum consan_texel */
	uint8_t channels;          /* 1, 2 or 4 */
	/* of texture objects: */
	uint8_t address[3];        /* CONSAN_ADDRESS_..., for each dimension */
	bool linear;               /* linear filtering, else the nearest texel */
	bool normalized;           /* coordinates from 0 to 1 */
	bool as_float;             /* integers are read as floats from 0 or -1 to 1 */
	bool srgb;                 /* the first three channels are converted from sRGB */
	bool level_linear;         /* of mipmapped arrays: two levels are filtered, else one is chosen */
	float bias, least, most;   /* is added to a level of detail, and what that is clamped to */
	float border[4];
};

/* Texels of a level, of n in level 0; 0 of a missing dimension. */
static inline uint32_t consan_texture_size(uint32_t n, uint32_t level)
{
	return n && level ? n >> level ? n >> level : 1 : n;
}

/* Bytes of a channel of enum consan_texel. */
static inline unsigned consan_texel_bytes(unsigned format)
{
	static const uint8_t bytes[] = { 1, 2, 4, 1, 2, 4, 2, 4 };

	return bytes[format];
}

#endif
