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
enum { MOST_TAPS = 8 };
struct fetch { unsigned n; struct tap tap[MOST_TAPS]; };

/* Coordinates of a texel or point: x, y, z. */
struct point { double at[3]; unsigned layer; };

static inline unsigned texture_dims(const struct consan_texture *t)
{
	return t->depth ? 3 : t->height ? 2 : 1;
}
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
