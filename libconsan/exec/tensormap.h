/* tensormap: the 128 bytes that describe a tensor to TMA, in consan's encoding, and the copies that
 * follow such a description. Pure functions on host memory: a callback checks whether the bytes may
 * be accessed.
 *
 * Rules:
 *  - The encoding is consan's own (the hardware's is undocumented): magic, version, then the
 *    fields. A map in any other encoding is refused.
 *  - A box is stored in shared memory row after row of the innermost dimension, its 16-byte chunks
 *    permuted by the swizzle, which acts on bits of the shared address itself. */
#ifndef CONSAN_EXEC_TENSORMAP_H
#define CONSAN_EXEC_TENSORMAP_H

#include "libconsan/base/base.h"
#include "libconsan/ptx/ptx.h"
#include "libconsan/tensormap_args.h"

#define TENSOR_RANKS 5

/* TENSOR_TYPE(id, bits, class, name), in the driver's order. class: u s f */
enum tensor_type {
#define TENSOR_TYPE(id, bits, class, name) TT_##id,
#include "tensormap.def"
	TT_COUNT
};

enum tensor_swizzle { TSW_NONE, TSW_32, TSW_64, TSW_128,
	TSW_128_ATOM32, TSW_128_ATOM32_FLIP8, TSW_128_ATOM64, TSW_COUNT };

enum tensor_mode { TM_TILE, TM_IM2COL };

/* Reduction operations; RED_NONE is a plain copy. */
enum tensor_red { RED_NONE, RED_ADD, RED_MIN, RED_MAX, RED_INC, RED_DEC,
	RED_AND, RED_OR, RED_XOR };

/* A decoded map: exactly the contents of the 128 bytes. */
#define TENSORMAP_MAGIC 0x50414d54u /* "TMAP" */
struct tensormap {
	uint32_t magic;
	uint8_t version;
	uint8_t mode;              /* enum tensor_mode */
	uint8_t type;              /* enum tensor_type */
	uint8_t rank;              /* 1 to 5 */
	uint8_t interleave;        /* 0, 1 (16 bytes), 2 (32 bytes) */
	uint8_t swizzle;           /* enum tensor_swizzle */
	uint8_t l2, oob;
	uint32_t pixels;           /* im2col; box[0] holds the channels */
	uint64_t address;
	uint64_t stride[TENSOR_RANKS - 1]; /* bytes; stride[i] of dimension i + 1 */
	uint32_t dim[TENSOR_RANKS];        /* elements - 1 */
	uint16_t box[TENSOR_RANKS];        /* elements */
	uint8_t elem_stride[TENSOR_RANKS];
	uint8_t zero;
	int16_t lower[3], upper[3];        /* im2col: W, H, D */
	uint8_t unused[24];
};
_Static_assert(sizeof(struct tensormap) == CONSAN_TENSORMAP_BYTES, "the size is the ISA's");

/* Types of which 16 elements of 4 or 6 bits, dense in global memory, take 16 bytes of shared
 * memory. */
static inline bool tensor_padded(uint32_t type)
{
	return type == TT_u4x16_p64 || type == TT_u6x16_p32;
}

/* NULL, or why these bytes are not a valid tensor map. */
const char *tensormap_check(const struct tensormap *m);

/* ---- one copy ---- */

struct tensor_copy {
	const struct tensormap *map;
	int32_t at[TENSOR_RANKS];  /* first element, innermost first */
	uint16_t offset[3];        /* im2col: W, H, D */
	bool rows;                 /* gather4, scatter4: at[0] column, at[1..4] rows */
	unsigned char *shared;     /* the CTA's shared memory, 1024-aligned offsets */
	uint32_t dst;              /* offset of the box in it */
	uint64_t pad_end;          /* a store writes padding below this address only */
};

/* Bytes of the box in global memory, as counted by complete_tx. */
uint32_t tensor_box_bytes(const struct tensormap *m, bool rows);
/* Bytes from the box's first to its last in shared memory. More than the box has where a row is
 * shorter than the swizzle's span. */
uint32_t tensor_box_extent(const struct tensormap *m, bool rows);
/* Are there no gaps between its rows? */
bool tensor_box_dense(const struct tensormap *m, bool rows);
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
struct tensor_use { unsigned ncoords, noffsets; bool load, prefetch, placed; };
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

/* ---- tensormap.replace ---- */
enum tensor_field { TF_ADDRESS, TF_RANK, TF_BOX, TF_DIM, TF_STRIDE, TF_ELEM_STRIDE,
	TF_TYPE, TF_INTERLEAVE, TF_SWIZZLE, TF_FILL, TF_ATOMICITY };
/* Values in PTX's numbering. NULL, or the reason for refusal. */
const char *tensormap_replace(struct tensormap *m, enum tensor_field f, unsigned ord,
	uint64_t value);

#endif
