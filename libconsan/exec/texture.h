/* texture: texture and surface objects, and the texels that a fetch reads. The formulas are those of
 * "Texture Fetching" in the CUDA C++ Programming Guide. */
#ifndef CONSAN_EXEC_TEXTURE_H
#define CONSAN_EXEC_TEXTURE_H

#include "libconsan/texture_args.h"

/* Of the object with this handle. False: there is none. */
bool texture_find(uint64_t handle, struct consan_texture *out);

/* A texel of a fetch. Texels of weight 0 are left out: the result does not depend on them. */
struct tap {
	uint64_t at;               /* its address; 0: the border */
	float weight;
};
enum { LEVEL_TAPS = 8, MOST_TAPS = 2 * LEVEL_TAPS };
struct fetch { unsigned n; struct tap tap[MOST_TAPS]; };

/* A level, and the weight of the next one, which is read if that is not 0. */
struct detail { unsigned level; float next; };

/* Coordinates of a texel or point: x, y, z, and texels that are added in each dimension. */
struct point { double at[3]; int32_t offset[3]; unsigned layer; struct detail detail; };

static inline unsigned texture_dims(const struct consan_texture *t)
{
	return t->depth ? 3 : t->height ? 2 : 1;
}
/* Texels of a level; 0 of a missing dimension, and of a level that there is not. */
uint32_t texture_extent(const struct consan_texture *t, unsigned dimension, uint32_t level);
/* Of a level of detail, or of the partial derivatives of the coordinates; and of fetches that name neither. */
struct detail texture_level(const struct consan_texture *t, double lod);
struct detail texture_gradient(const struct consan_texture *t, const float x[3], const float y[3]);
struct detail texture_base(const struct consan_texture *t);
/* whole: the coordinates are indices of texels, which are not filtered. */
void texture_fetch(const struct consan_texture *t, const struct point *p, bool whole, struct fetch *f);
/* The four texels of a linear filter in the order of tld4: those at (0,1), (1,1), (1,0), (0,0). */
void texture_gather(const struct consan_texture *t, const struct point *p, struct fetch *f);
/* The face of a cubemap in the direction x, y, z; p becomes a point of it, from 0 to 1. */
unsigned texture_face(struct point *p);
/* The 32 bits of a channel of the result: a float, or an integer if integers are not read as floats. */
uint32_t texture_value(const struct consan_texture *t, const struct fetch *f, unsigned channel);
/* Does texture_value() give a float? */
static inline bool texture_floats(const struct consan_texture *t)
{
	return t->as_float || t->format >= CONSAN_TEXEL_F16;
}

#endif
