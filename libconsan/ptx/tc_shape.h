/* tc_shape: the shape of a tcgen05.mma, and where its operands are in shared and tensor memory. */
#ifndef CONSAN_PTX_TC_SHAPE_H
#define CONSAN_PTX_TC_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "ir.h"

/* Tensor memory of a CTA; TMEM_UNIT: columns that are allocated at once */
enum { TMEM_LANES = 128, TMEM_COLUMNS = 512, TMEM_UNIT = 32 };

/* Element types as operands hold them. 4- and 6-bit types: _x, as kind::f8f6f4 has them in shared
 * memory, 16 packed elements at the start of each 16 bytes; _b, in tensor memory, a byte each; the
 * others dense. s4 and u4: of a sparse mma.sync only. */
enum tc_in { TC_f16, TC_bf16, TC_tf32, TC_e4m3, TC_e5m2, TC_e3m2_x, TC_e2m3_x, TC_e2m1_x, TC_e3m2_b,
	TC_e2m3_b, TC_e2m1_b, TC_e2m1, TC_s8, TC_u8, TC_s4, TC_u4 };
enum tc_acc { TC_ACC_f32, TC_ACC_f16, TC_ACC_s32 };

/* The most of a CTA; B can have columns before the first one that is used (.ws, column shift) */
enum { TC_M = 128, TC_N = 256, TC_MORE = 32, TC_B = TC_N + TC_MORE, TC_K = 128, TC_ROW_A = 48,
	TC_ROW_B = 64, /* bytes along K */
	TC_A_PIECES = TC_M * TC_ROW_A / 16, TC_B_PIECES = TC_B * TC_ROW_B / 16 };

enum tc_kind { K_f16, K_tf32, K_f8f6f4, K_i8, K_mxf8f6f4, K_mxf4, K_mxf4nvf4 };

/* What the text of the instruction says */
struct tc_form {
	uint8_t kind;              /* enum tc_kind */
	uint8_t scale_vec;         /* N of .scale_vec::NX for K other than 96; 0: no scales */
	bool pair, ws, sparse, a_tmem, ashift;
};

/* What form and instruction descriptor say together */
struct tc_shape {
	uint16_t m, n, k;          /* of the instruction */
	uint16_t rows, b_rows;     /* of A and D, and of B, in one CTA */
	uint8_t ctas;
	/* D's columns are split into groups, each in `rows` lanes of its own (ISA, "Data Path Layout
	 * Organization": 2x2, 2x3 and 1x4). half: 16 lanes of each warp's window are used (layouts C
	 * and F). */
	uint8_t groups;
	bool half;
	bool a_mn, b_mn;
	uint8_t a_bytes, b_bytes;  /* of a row along K in memory */
	uint8_t a_type, b_type;    /* enum tc_in */
	uint8_t acc;               /* enum tc_acc */
	bool negate_a, negate_b, satfinite;
	uint8_t scales;            /* of a row; 0: none */
	uint8_t scale_id[2];
	bool ue8m0;                /* scales; else ue4m3 */
	uint8_t selector;          /* sparse */
};

/* The shape; or NULL, and *value is what *why, a format, is about. */
bool tc_shape_of(const struct tc_form *f, uint32_t idesc, unsigned ctas, struct tc_shape *s,
	const char **why, uint32_t *value);

/* The lane of a row of D, A (in tensor memory) or, for 8- and 4-bit kinds, metadata; relative to
 * the address. */
static inline unsigned tc_lane(const struct tc_shape *s, unsigned row)
{
	return s->half ? row / 16 * 32 + row % 16 : row;
}
/* Columns of D */
static inline unsigned tc_d_columns(const struct tc_shape *s)
{
	return s->n / s->groups;
}
static inline unsigned tc_a_columns(const struct tc_shape *s)
{
	return s->a_bytes / 4;
}
/* Columns of the metadata, from its address on */
unsigned tc_meta_columns(const struct tc_shape *s);
static inline bool tc_is_mx(const struct tc_form *f)
{
	return f->kind >= K_mxf8f6f4;
}
static inline bool tc_is_fp4(const struct tc_form *f)
{
	return f->kind == K_mxf4 || f->kind == K_mxf4nvf4;
}
/* Bytes of an element: 4- and 6-bit ones fill a byte here, as only dense fp4, which has no MN-major
 * form, does not. */
static inline unsigned tc_bytes_of(unsigned type)
{
	return type == TC_tf32 ? 4 : type <= TC_bf16 ? 2 : 1;
}
/* Elements of A of 16 or 32 bits: 32 bits of metadata in a row, else 64 */
static inline bool tc_is_wide(const struct tc_shape *s)
{
	return s->a_type <= TC_tf32;
}

/* Scales: the row is in lane row % TC_SCALE_LANES of its group */
enum { TC_SCALE_LANES = 32 };
/* B's scales for layout B: the lanes of each group of columns of D have its scales only. */
static inline unsigned tc_scale_groups(const struct tc_shape *s, unsigned which)
{
	return which && s->ctas == 2 ? s->groups : 1;
}
/* Four scales of a row are in a cell. K = 96: the next ones are in the cell behind those of 128
 * rows, of 256 if B has more than 128 (ISA, "Scale Factor B ID"). */
static inline unsigned tc_scale_stride(const struct tc_shape *s, unsigned which)
{
	return which && s->n > 128 ? 8 : 4;
}
/* Columns of the scales of A (which 0) or B (1). *groups: into which B's columns are split, each in
 * 128 / *groups lanes */
unsigned tc_scale_columns(const struct tc_shape *s, unsigned which, unsigned *groups);

#endif
