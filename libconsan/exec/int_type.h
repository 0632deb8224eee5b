/* int_type: rows of handlers by integer type, for the decoders in ops/int.c and ops/bits.c. */
#ifndef CONSAN_EXEC_INT_TYPE_H
#define CONSAN_EXEC_INT_TYPE_H

#include "lane.h"

enum int_type { IT_U16, IT_S16, IT_U32, IT_S32, IT_U64, IT_S64, IT_U16X2, IT_S16X2, IT_COUNT };

static inline enum int_type int_type(enum ptx_type t)
{
	switch ((int)t) {
	case TY_u16: case TY_b16: return IT_U16;
	case TY_s16: return IT_S16;
	case TY_u32: case TY_b32: return IT_U32;
	case TY_s32: return IT_S32;
	case TY_u64: case TY_b64: return IT_U64;
	case TY_s64: return IT_S64;
	case TY_u16x2: return IT_U16X2;
	case TY_s16x2: return IT_S16X2;
	}
	return IT_COUNT;
}
/* [IT_COUNT] is NULL: not an integer type */
typedef const xfn int_row[IT_COUNT + 1];

#endif
