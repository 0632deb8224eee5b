/* tmem: the tensor memory of a CTA (sm_100a) and what the tcgen05 files share. PTX ISA, section
 * "Tensor Memory": 128 lanes by 512 columns of 32-bit cells; an address is lane << 16 | column. */
#ifndef CONSAN_EXEC_TMEM_H
#define CONSAN_EXEC_TMEM_H

#include "async.h"

/* tmem.c */
void tmem_begin(struct cta *c);
void tmem_free(struct cta *c);
/* tcgen05.c: performs the warp's pending loads up to the newest that writes one of these slots;
 * slot NULL: all */
void tmem_force_loads(struct warp *w, const uint32_t *slot, unsigned n);
/* Decodes a 32-bit address in tensor memory without an offset. */
bool dec_tmem(struct decoder *d, const struct ptx_operand *o, uint32_t *slot);

/* An operation of a CTA's tcgen05 pipe. They take effect in the order of issue, which the ISA
 * guarantees for the pairs that it calls pipelined and for commit. */
struct tc_op {
	struct group_op g;         /* op.perform must begin with tc_begin() */
	struct cta *owner;         /* of the pipe */
};
void tc_issue(struct warp *w, struct tc_op *o);
void tc_begin(struct cluster *c, struct tc_op *o);
/* The CTAs of a pair, or this one alone: cta[0] has the even rank. Returns how many. */
unsigned tc_ctas(const struct cta *c, bool pair, struct cta *cta[2]);
/* What the checks of operands know of them */
struct tc_view tc_view(const struct cta *c, bool pair);

#endif
