/* tensormap: the 128 bytes that describe a tensor to TMA, and the copies that follow such a
 * description. Pure functions on host memory: a callback checks whether the bytes may be accessed.
 *
 * Rules:
 *  - The bytes are the hardware's (tensormap_bits.def), so that programs may write them themselves
 *    and maps of a GPU can be read. Only tensormap_bits.c knows them; all else uses the fields.
 *  - A box is stored in shared memory row after row of the innermost dimension, its 16-byte chunks
 *    permuted by the swizzle, which acts on bits of the shared address itself. */
#ifndef CONSAN_EXEC_TENSORMAP_H
#define CONSAN_EXEC_TENSORMAP_H

#include <string.h>

#include "libconsan/base/base.h"
#include "libconsan/ptx/ptx.h"
#include "libconsan/tensormap_args.h"

#define TENSOR_RANKS 5
#define TENSORMAP_ZERO 0xff80000cu /* the bits of word 2 that are 0 in every map */

/* In the driver's order */
enum tensor_type {
#define TENSOR_TYPE(id, bits, class, name, code, elemtype) TT_##id,
#include "tensormap.def"
	TT_COUNT
};

enum tensor_swizzle { TSW_NONE, TSW_32, TSW_64, TSW_128,
	TSW_128_ATOM32, TSW_128_ATOM32_FLIP8, TSW_128_ATOM64, TSW_COUNT,
	TSW_96 = TSW_COUNT };      /* of sm_103: no copy supports it */

/* Wide: .im2col::w and .im2col::w::128, of sm_100 */
enum tensor_mode { TM_TILE, TM_IM2COL, TM_WIDE, TM_WIDE_128, TM_COUNT };

/* Reduction operations; RED_NONE is a plain copy. */
enum tensor_red { RED_NONE, RED_ADD, RED_MIN, RED_MAX, RED_INC, RED_DEC,
	RED_AND, RED_OR, RED_XOR };

/* The fields of a map. Padding is zero. */
struct tensormap {
	uint64_t address;
	uint64_t stride[TENSOR_RANKS - 1]; /* bytes; stride[i] of dimension i + 1 */
	uint32_t dim[TENSOR_RANKS];        /* elements - 1 */
	uint16_t pixels;                   /* im2col; box[0] holds the channels */
	uint16_t box[TENSOR_RANKS];        /* elements */
	int16_t lower[3], upper[3];        /* im2col: W, H, D */
	uint8_t elem_stride[TENSOR_RANKS];
	uint8_t mode;              /* enum tensor_mode */
	uint8_t type;              /* enum tensor_type */
	uint8_t rank;              /* 1 to 5 */
	uint8_t interleave;        /* 0, 1 (16 bytes), 2 (32 bytes) */
	uint8_t swizzle;           /* enum tensor_swizzle */
	uint8_t l2, oob;
	bool unknown;              /* bits are set of which tensormap_bits.def does not know */
};

/* The bytes of a map: CONSAN_TENSORMAP_BYTES. */
void tensormap_pack(const struct tensormap *m, void *bytes);
/* NULL, or why these bytes are not a tensor map. `as`: the mode of the instruction that uses it, since
 * nothing in a map tells .im2col from .im2col::w. */
const char *tensormap_unpack(struct tensormap *m, const void *bytes, enum tensor_mode as);
uint64_t tensormap_hash(const struct tensormap *m);
/* Do the bytes of two maps mean the same? Bits that are ignored, and a driver's notes, may differ. */
bool tensormap_same(const void *a, const void *b);

/* Can these TENSORMAP_HEAD bytes be the first ones of a map? address: of the tensor. */
enum { TENSORMAP_HEAD = 16, TENSORMAP_ALIGN = 64 };
static inline bool tensormap_begins(const void *bytes, uint64_t *address)
{
	uint32_t word;

	memcpy(&word, (const char *)bytes + 8, sizeof word);
	if (word & TENSORMAP_ZERO || (word >> 4 & 7) >= TENSOR_RANKS)
		return false;
	memcpy(address, bytes, sizeof *address);
	return *address && !(*address % 16);
}

/* Types of which 16 elements of 4 or 6 bits, dense in global memory, take 16 bytes of shared
 * memory. */
static inline bool tensor_padded(uint32_t type)
{
	return type == TT_u4x16_p64 || type == TT_u6x16_p32;
}

/* NULL, or why no GPU could use this map. */
const char *tensormap_check(const struct tensormap *m);
/* NULL, or why this version does not know what a copy through such a map does. */
const char *tensormap_unsupported(const struct tensormap *m);

/* ---- one copy ---- */

struct tensor_copy {
	const struct tensormap *map;
	int32_t at[TENSOR_RANKS];  /* first element, innermost first */
	uint16_t offset[3];        /* im2col: W, H, D; wide: wHalo, wOffset */
	bool rows;                 /* gather4, scatter4: at[0] column, at[1..4] rows */
	unsigned char *shared;     /* the CTA's shared memory, 1024-aligned offsets */
	uint32_t dst;              /* offset of the box in it */
	uint64_t pad_end;          /* a store writes padding below this address only */
	const struct exec_multicast *multimem; /* of the map's address; or NULL */
};

/* Bytes of the box in global memory, as counted by complete_tx. */
uint32_t tensor_box_bytes(const struct tensor_copy *c);
/* Bytes from the box's first to its last in shared memory. More than the box has where a row is
 * shorter than the swizzle's span. */
uint32_t tensor_box_extent(const struct tensor_copy *c);
/* Are there no gaps between its rows? */
bool tensor_box_dense(const struct tensor_copy *c);
/* Elements of the box along dimension i; bits of one. */
uint32_t tensor_box_count(const struct tensormap *m, unsigned i);
uint32_t tensor_element_bits(const struct tensormap *m);
/* Bytes of one row, and from one row to the next. */
uint32_t tensor_box_row(const struct tensormap *m);
uint32_t tensor_box_pitch(const struct tensormap *m);
/* Required alignment of the shared address. */
uint32_t tensor_box_align(const struct tensormap *m);
/* Address of the byte at linear offset `at` of shared memory under a swizzle. Changes bits 3 to 6
 * only. */
uint32_t tensor_swizzle(enum tensor_swizzle s, uint32_t at);
/* NULL, or the error in these coordinates (rules C11, C25). */
const char *tensor_copy_check(const struct tensor_copy *c, bool load);
/* How an instruction uses a map. placed: c->at and c->offset are known. */
struct tensor_use {
	enum ptx_mod mode;         /* the instruction's, of MG_loadmode; MOD_NONE: .tile */
	unsigned ncoords, noffsets;
	bool load, prefetch, placed;
};
enum tensor_mode tensor_mode_of(enum ptx_mod mode);
/* The pixel box of a wide map ends before this coordinate along W. */
static inline int64_t tensor_wide_end(const struct tensormap *m)
{
	return (int64_t)m->dim[1] + 1 + m->upper[0];
}
/* True, with r filled, if c->map at addr is not a valid map or the operands do not fit it. */
bool tensor_refused(struct refusal *r, enum ev_space space, uint64_t addr,
	const struct tensor_copy *c, const struct tensor_use *u);

/* Visits the pieces of global memory that a copy accesses, in order, adjacent ones merged. False
 * from the callback ends the iteration. */
typedef bool (*tensor_span)(void *user, uint64_t addr, uint64_t bytes);
bool tensor_spans(const struct tensor_copy *c, tensor_span each, void *user);

/* The same for the bytes beside the tensor that a store or reduction overwrites: at the inner edge
 * an H200 writes whole units of 16 bytes, with what the box has there. No row has more than 15. */
bool tensor_padding(const struct tensor_copy *c, tensor_span each, void *user);

/* The copies. Every global byte must be accessible. */
void tensor_load(const struct tensor_copy *c);
void tensor_store(const struct tensor_copy *c, enum tensor_red red);

/* Reduces n bytes at src into dst, atomically element by element. `type` with b32 and b64 spelled
 * as u32 and u64. False: no such reduction. */
bool tensor_reduce(enum tensor_red red, enum tensor_type type, unsigned char *dst,
	const unsigned char *src, uint64_t n);
bool tensor_reduces(enum tensor_red red, enum tensor_type type);
/* The type of a reduction that an instruction names; TT_COUNT: there is no such reduction. */
enum tensor_type tensor_type_of(enum ptx_type t);

/* ---- tensormap.replace ---- */
enum tensor_field { TF_ADDRESS, TF_RANK, TF_BOX, TF_DIM, TF_STRIDE, TF_ELEM_STRIDE,
	TF_TYPE, TF_INTERLEAVE, TF_SWIZZLE, TF_FILL, TF_ATOMICITY };
/* Changes a field of a map, or of any 128 bytes. The value is in PTX's numbering. NULL, or the reason
 * for refusal. */
const char *tensormap_replace(void *bytes, enum tensor_field f, unsigned ord, uint64_t value);

#endif
