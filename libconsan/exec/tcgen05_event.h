/* tcgen05_event: the events of tcgen05 instructions. Each function does nothing without a sink,
 * but tc_spans() and tc_emit(), whose callers ask first. */
#ifndef CONSAN_EXEC_TCGEN05_EVENT_H
#define CONSAN_EXEC_TCGEN05_EVENT_H

#include "async.h"

#include "libconsan/ptx/ptx.h"

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
/* The ranks of these CTAs */
uint32_t tc_mask(struct cta *const cta[2], unsigned n);

/* TMEM_ALLOC, TMEM_DEALLOC or TMEM_RELINQUISH */
void tc_emit_alloc(struct warp *w, const struct xop *x, uint32_t lanes, enum ev_kind kind,
	uint32_t column, uint32_t columns, bool pair);
/* The store of the address that alloc returns; before tc_emit_alloc(). */
void tc_emit_address(struct warp *w, const struct xop *x, uint32_t lanes, const struct xplace *to);
/* TMEM_ACCESS; TMEM_WAIT, if s is NULL. used: as in the event */
void tc_emit_warp(struct warp *w, const struct xop *x, uint32_t lanes, enum ev_mode mode,
	bool used, const struct tc_areas *s);
void tc_emit_fence(struct warp *w, const struct xop *x, uint32_t lanes, bool before);

/* Adds these pieces of shared memory to the spans of the event; the array is valid until the next
 * event of the warp. */
void tc_spans(struct warp *w, struct event_tcgen05 *t, const uint32_t *piece, unsigned n);
/* TCGEN05 by the thread of op, an instruction that `lanes` execute; fills areas, async_op and
 * several. */
void tc_emit(struct warp *w, const struct xop *x, uint32_t lanes, const struct async_op *op,
	struct event_tcgen05 t, const struct tc_areas *s);

#endif
