/* tcgen05_event: the events of tcgen05 instructions. Each function does nothing without a sink,
 * but tc_emit(), whose callers ask first. */
#ifndef CONSAN_EXEC_TCGEN05_EVENT_H
#define CONSAN_EXEC_TCGEN05_EVENT_H

#include "async.h"

#include "libconsan/ptx/ptx.h"

/* TMEM_ALLOC, TMEM_DEALLOC or TMEM_RELINQUISH */
void tc_emit_alloc(struct warp *w, const struct xop *x, uint32_t lanes, enum ev_kind kind,
	uint32_t column, uint32_t columns, bool pair);
/* The store of the address that alloc returns; before tc_emit_alloc(). */
void tc_emit_address(struct warp *w, const struct xop *x, uint32_t lanes, const struct xplace *to);
/* TMEM_ACCESS; TMEM_WAIT, if s is NULL. used: as in the event */
void tc_emit_warp(struct warp *w, const struct xop *x, uint32_t lanes, enum ev_mode mode,
	bool used, const struct tc_areas *s);
void tc_emit_fence(struct warp *w, const struct xop *x, uint32_t lanes, bool before);

/* TCGEN05 by the thread of op, an instruction that `lanes` execute; fills async_op and several. */
void tc_emit(struct warp *w, const struct xop *x, uint32_t lanes, const struct async_op *op,
	struct event_tcgen05 t);

#endif
