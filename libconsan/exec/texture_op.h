/* texture_op: what the instructions on textures (texture_op.c) and surfaces (surface_op.c) share. */
#ifndef CONSAN_EXEC_TEXTURE_OP_H
#define CONSAN_EXEC_TEXTURE_OP_H

#include "internal.h"
#include "texture.h"

enum { COORDS = 4, VALUES = 4, MOST_BYTES = 16 };
enum { BEYOND_TRAP, BEYOND_CLAMP, BEYOND_ZERO };
enum { DETAIL_BASE, DETAIL_LEVEL, DETAIL_GRADIENT };

struct op {
	struct xaddr handle;
	uint8_t dims;              /* of the instruction: 1 to 3 */
	bool layered, cube, whole, gather, surface;
	uint8_t component;         /* of tld4 */
	uint8_t beyond;            /* of surfaces: what happens out of bounds */
	uint8_t n, size, reg;      /* values; bytes of one in memory, and of its register */
	uint8_t type;              /* enum ptx_type of a value */
	uint8_t detail;            /* DETAIL_... */
	bool samples;              /* of surfaces: x counts texels, which have a format; else bytes */
	uint8_t reduction;         /* enum reduction */
	uint32_t coord[COORDS], value[VALUES];
	uint32_t lod;              /* DETAIL_LEVEL; of a query, or SLOT_NONE */
	uint32_t gradient[2][3];   /* DETAIL_GRADIENT: by x and y of a pixel */
	uint32_t offset[3];        /* of texels; SLOT_NONE: 0 */
	uint32_t resident;         /* the predicate; or SLOT_NONE */
	uint16_t query;            /* enum ptx_mod */
};

/* Takes the lanes that have the handle of the first one, and its object. */
bool tex_next_object(struct warp *w, const struct xop *x, bool surface, uint32_t *left, uint32_t *same,
	struct consan_texture *t);
/* Is the object of the instruction's dimensions? */
bool tex_fits(struct warp *w, const struct xop *x, const struct consan_texture *t);
static inline int32_t tex_whole_at(const struct warp *w, uint32_t slot, unsigned lane)
{
	return rs32(w, slot)[lane];
}

struct tex_access {
	unsigned bytes;
	enum ev_mode mode;
	uint32_t lost, unchanged;  /* lanes whose value another one overwrites; that change nothing */
};
/* Emits an access of these lanes to memory that exists. False: a fault was raised. */
bool tex_touch(struct warp *w, const struct xop *x, uint32_t lanes, const uint64_t at[LANES],
	const struct tex_access *access);

/* ---- decoding ---- */

struct op *tex_op(struct decoder *d, struct xop *x, xfn fn);
bool tex_take_handle(struct decoder *d, const struct ptx_operand *o, struct op *op);
bool tex_take_dims(struct decoder *d, const struct ptx_insn *i, struct op *op);
/* [handle, {coordinates}] */
bool tex_take_place(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, struct op *op);
/* The registers of the values, which are written or read. */
bool tex_take_values(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, bool dst,
	struct op *op);

#endif
