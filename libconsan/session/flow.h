/* flow: what place.c asks of a function's control flow: dominators, loops, and rows of instructions
 * that come from one place of the source. Blocks are indices of ptx_cfg.block. */
#ifndef CONSAN_FLOW_H
#define CONSAN_FLOW_H

#include "libconsan/event/event.h"
#include "libconsan/ptx/ptx.h"

struct flow {
	const struct ptx_func *f;
	const struct ptx_block *block;
	const struct ptx_cfg *g;
	uint32_t *idom; /* of each block; UINT32_MAX: of the entry, and of code that is never reached */
	uint32_t *end;  /* of each header: the last position of its loop in the order */
	/* of each instruction: the frame of the program's own code, or NULL, and the first and the last
	 * instruction of its row: those in sequence, in a block, with the same frame */
	const struct site_loc **own;
	uint32_t *first, *last;
};

/* One for each function that was asked for; place.h opens and closes it. */
struct placer {
	const struct ptx_module *m;
	VEC(struct flow) flows;
};
/* Valid until the next function is asked for. */
const struct flow *flow_of(struct placer *p, const struct ptx_func *f);

static inline uint32_t flow_position(const struct flow *w, uint32_t b)
{
	return w->block[b].order;
}

/* Is the block in the loop with this header? UINT32_MAX: true. */
bool flow_inside(const struct flow *w, uint32_t b, uint32_t loop);
/* The innermost loop around both blocks; UINT32_MAX: none. */
uint32_t flow_common_loop(const struct flow *w, uint32_t a, uint32_t b);
/* Do all threads that enter the innermost loop around the block (without one, the function) pass
 * it, in each iteration? */
bool flow_passed_by_all(const struct flow *w, uint32_t b);
/* Does every path from the entry to b pass a? */
bool flow_dominates(const struct flow *w, uint32_t a, uint32_t b);
/* Does every path from a to the end pass b? */
bool flow_follows(const struct flow *w, uint32_t a, uint32_t b);

/* ---- places of the source: a and b are frames of the program's own code (flow.own) ---- */
/* Is it the same place? An edit there changes all instructions that the compiler made of it, in
 * loops that it unrolled and in functions that it inlined. */
bool flow_same_place(const struct site_loc *a, const struct site_loc *b);
/* Is it inlined at the same places, too? If so the compiler has unrolled a loop around it. */
bool flow_same_callers(const struct site_loc *a, const struct site_loc *b);
/* Are the frames from a and b up to a's frame `own` the same? Then it is the same instruction of
 * library code inlined there. */
bool flow_same_chain(const struct site_loc *a, const struct site_loc *b,
	const struct site_loc *own);

#endif
