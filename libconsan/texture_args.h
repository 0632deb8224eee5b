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

struct consan_texture {
	uint64_t at;               /* address of the first texel */
	uint64_t pitch, slice;     /* bytes from row to row, from plane or layer to the next one */
	uint32_t width, height, depth; /* texels; of missing dimensions 0 */
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
	float border[4];
};

/* Bytes of a channel of enum consan_texel. */
static inline unsigned consan_texel_bytes(unsigned format)
{
	static const uint8_t bytes[] = { 1, 2, 4, 1, 2, 4, 2, 4 };

	return bytes[format];
}

#endif
