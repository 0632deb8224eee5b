/* tc_op: tcgen05.mma, cp and shift: their operands, the checks of these, and the memory that they
 * access. The executor and the decoder of GPU records share it. */
#ifndef CONSAN_PTX_TC_OP_H
#define CONSAN_PTX_TC_OP_H

#include "tc_book.h"
#include "tmem_form.h"

/* Where the operands of a tcgen05.mma are in the instruction; NULL: there is none */
struct tc_syntax {
	struct tc_form form;
	const struct ptx_operand *d, *a, *b, *meta, *idesc, *scales[2];
	const struct ptx_operand *disabled; /* disable-output-lane, a vector */
	const struct ptx_operand *enable;   /* enable-input-d */
	const struct ptx_operand *mask;     /* zero-column mask of .ws */
	uint8_t scale_d;           /* scale-input-d */
	uint8_t collector, buffer; /* enum ev_collector; 0: A, 1 to 4: B0 to B3 */
};
/* NULL; or why the executor does not know this tcgen05.mma. */
const char *tc_syntax_of(const struct ptx_insn *i, struct tc_syntax *s);

/* The CTAs whose memory an operation accesses: the issuer, or its pair with the even rank first */
struct tc_view {
	uint32_t nctas;            /* in the cluster */
	unsigned n;
	struct { uint32_t rank, shared_bytes, units; } cta[2]; /* units: see tmem_form.h */
};

struct tc_mma {
	const struct tc_syntax *syntax;
	bool enable;
	uint32_t d, idesc, meta, scales[2], disabled[8];
	uint64_t a, b, mask;       /* a: descriptor or address */
	struct tc_shape shape;     /* set by refuse_mma() */
};
/* B's columns behind those of the shape that a column shift brings in, in whole pieces */
unsigned tc_more_columns(const struct tc_mma *m);
unsigned tc_d_lane(const struct tc_mma *m, unsigned group, unsigned row);
/* Does disable-output-lane say so, in the h-th CTA? */
bool tc_disabled(const struct tc_mma *m, unsigned h, unsigned lane);
bool refuse_mma(struct refusal *r, struct tc_mma *m, const struct tc_view *v, struct tc_book *book);

struct tc_cp {
	const struct ptx_operand *to, *from;
	bool pair;
	uint8_t rows, columns;     /* of the source, in rows of 4-byte cells: 4 or 8 columns */
	uint8_t height;            /* rows that a warp's window gets */
	uint8_t part[4];           /* by window: rows height * part and up */
	uint8_t packed;            /* bits of an element that is unpacked to a byte; 0: none */
};
enum { TC_WINDOW = 32, TC_CP_PIECES = 2 * TMEM_LANES };
/* NULL; or why the executor does not know this tcgen05.cp. */
const char *tc_cp_of(const struct ptx_insn *i, struct tc_cp *c);
/* Pieces of the source; a packed row of 16 elements begins a piece. Returns how many. */
unsigned tc_cp_pieces(const struct tc_cp *c, uint64_t desc, uint32_t *out);
/* The lane to which row r of window w goes: in 4x256b, each window gets one row. */
static inline unsigned tc_cp_lane(uint32_t at, unsigned w, unsigned r)
{
	return (at >> 16) + TC_WINDOW * w + r;
}
bool refuse_cp(struct refusal *r, const struct tc_cp *c, uint32_t at, uint64_t desc,
	const struct tc_view *v);

enum { TC_SHIFT_COLUMNS = 8 /* 32 bytes */ };
bool refuse_shift(struct refusal *r, uint32_t at, const struct tc_view *v);

/* ---- events ---- */

/* What an EV_TCGEN05 points to */
struct tc_arrays {
	struct tc_areas areas;
	struct ev_span span[TC_A_PIECES + TC_B_PIECES];
};
/* The event without async_op and several, valid as long as *x is. */
struct event_tcgen05 tc_mma_event(const struct tc_mma *m, const struct tc_view *v,
	struct tc_book *book, struct tc_arrays *x);
struct event_tcgen05 tc_cp_event(const struct tc_cp *c, uint32_t at, uint64_t desc,
	const struct tc_view *v, struct tc_arrays *x);
struct event_tcgen05 tc_shift_event(bool pair, uint32_t at, const struct tc_view *v,
	struct tc_arrays *x);

#endif
