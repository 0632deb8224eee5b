/* tmem_form: what a tcgen05.ld or tcgen05.st accesses, and the checks of addresses in tensor
 * memory. */
#ifndef CONSAN_PTX_TMEM_FORM_H
#define CONSAN_PTX_TMEM_FORM_H

#include "refuse.h"
#include "tc_shape.h"

enum tmem_shape { S32x32b, S16x64b, S16x128b, S16x256b, S16x32bx2 };

struct tmem_form {
	const struct ptx_operand *address, *regs;
	uint8_t shape;             /* enum tmem_shape */
	bool store, halves;        /* .pack::16b, .unpack::16b: a register is two halves of cells */
	uint16_t nregs;
	uint16_t lanes, columns;   /* accessed, from the address on */
	int32_t split;             /* .16x32bx2: columns between the two parts */
};
/* NULL; or why the executor does not know this load or store. */
const char *tmem_form_of(const struct ptx_insn *i, struct tmem_form *f);

/* The areas of one operation: D in each of two CTAs, A, the scales of A and B, metadata, and some
 * to spare for operands of several parts */
struct tc_areas {
	struct ev_area at[12];
	unsigned n;
};
/* Adds an area, so far without lanes; tc_area_lanes() adds these to the last one. */
void tc_area(struct tc_areas *s, enum ev_mode mode, enum ev_operand operand, uint32_t ctas,
	uint32_t column, uint32_t columns);
void tc_area_lanes(struct tc_areas *s, unsigned first, unsigned n);
/* Of a load or store at `at` in the CTA of this rank */
void tmem_areas(const struct tmem_form *f, uint32_t at, uint32_t rank, struct tc_areas *s);

/* units: of the CTA's allocated columns, bit i: columns TMEM_UNIT * i and up. Are these columns
 * allocated, and lanes and columns in range? */
bool tmem_allocated(uint32_t units, uint32_t addr, unsigned lanes, unsigned columns);
bool refuse_tmem(struct refusal *r, uint32_t units, uint32_t rank, uint32_t addr, unsigned lanes,
	unsigned columns);
/* Lanes that no warp can access together */
bool refuse_window(struct refusal *r, const struct tmem_form *f, uint32_t at);
/* The address is in the window of another warp. Undefined for the ISA; hardware takes the lanes of
 * the warp's own window (CUTLASS's example 93 relies on it): *at becomes the address there. So it
 * is no reason to stop. */
bool refuse_other_window(struct refusal *r, const struct tmem_form *f, uint32_t warp, uint32_t *at);
/* Of alloc and dealloc */
bool refuse_columns(struct refusal *r, uint32_t n);
bool refuse_permit(struct refusal *r, bool relinquished);
bool refuse_free(struct refusal *r, uint32_t units, uint32_t column, uint32_t n);
/* .cta_group::2: two warps meet for an alloc or dealloc. rank: of the peer */
struct tmem_call { uint32_t column, columns; bool alloc; };
bool refuse_meeting(struct refusal *r, const struct tmem_call *mine, const struct tmem_call *peer,
	uint32_t rank);

#endif
