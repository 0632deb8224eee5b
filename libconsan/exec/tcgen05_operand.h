/* tcgen05_operand: the shape of a tcgen05.mma, where its operands are in shared and tensor memory,
 * and copies of them without gaps, as the tile loops take them. */
#ifndef CONSAN_EXEC_TCGEN05_OPERAND_H
#define CONSAN_EXEC_TCGEN05_OPERAND_H

#include "tcgen05_tile.h"
#include "tmem.h"

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
/* Columns of the scales of A (which 0) or B (1). *groups: into which B's columns are split, each in
 * 128 / *groups lanes */
unsigned tc_scale_columns(const struct tc_shape *s, unsigned which, unsigned *groups);

/* Pieces of shared memory of A or of B (with `more` rows behind those of the shape), by rows or, if
 * MN-major, by k. Returns how many. */
unsigned tc_a_pieces(const struct tc_shape *s, uint64_t desc, uint32_t *out);
unsigned tc_b_pieces(const struct tc_shape *s, uint64_t desc, unsigned more, uint32_t *out);

/* The zero-column mask of .ws: t->zero, and by how many columns B is shifted. mask: TC_N bits */
unsigned tc_zero_mask(const struct tc_shape *s, uint64_t desc, uint64_t *mask);

/* Fill the images in x. a: descriptor or address */
void tc_gather_a(const struct tc_form *f, const struct tc_shape *s, uint64_t a, const struct cta *c,
	struct tc_scratch *x);
void tc_gather_b(const struct tc_shape *s, uint64_t desc, unsigned more, struct cta *const cta[2],
	struct tc_scratch *x);
void tc_gather_slots(const struct tc_form *f, const struct tc_shape *s, uint32_t meta,
	const struct cta *c, struct tc_scratch *x);
void tc_gather_scales(const struct tc_shape *s, unsigned which, uint32_t addr, const struct cta *c,
	float *out);

#endif
