/* mma_types: PTX types to the types of the tile loops. */
#ifndef CONSAN_EXEC_MMA_TYPES_H
#define CONSAN_EXEC_MMA_TYPES_H

#include "machine.h"
#include "tile.h"

/* IN_COUNT: not a type of a matrix operand */
static inline enum tile_in tile_in_of(enum ptx_type t)
{
	switch (t) {
#define TILE_IN(id, bits) case TY_##id: return IN_##id;
	TILE_IN_LIST
#undef TILE_IN
	default: return IN_COUNT;
	}
}

static inline unsigned tile_in_bits(enum tile_in t)
{
	switch (t) {
#define TILE_IN(id, bits) case IN_##id: return bits;
	TILE_IN_LIST
#undef TILE_IN
	case IN_COUNT: break;
	}
	return 1;
}

static inline bool tile_in_int(enum tile_in t)
{
	return t == IN_s8 || t == IN_u8 || t == IN_s4 || t == IN_u4 || t == IN_b1;
}

static inline enum tile_acc tile_acc_of(enum ptx_type t)
{
	return t == TY_f16 ? ACC_f16 : t == TY_s32 ? ACC_s32 : t == TY_f64 ? ACC_f64 : ACC_f32;
}

/* mma.sync.m8n8k4 with f16 (mma_quads.c) */
bool dec_mma_quads(struct decoder *d, const struct ptx_insn *i, struct xop *x);

#endif
