/* plan_bulk: what is recorded of bulk and tensor copies. */
#ifndef CONSAN_INSTRUMENT_PLAN_BULK_H
#define CONSAN_INSTRUMENT_PLAN_BULK_H

#include "plan.h"

/* Operands of bulk copies, by the syntax of the instruction. */
enum plan_copy { COPY_LOAD, COPY_STORE, COPY_PEER, COPY_PREFETCH };
struct plan_bulk {
	enum plan_copy copy;
	bool tensor, multicast, rows; /* rows: gather4 or scatter4 */
	enum ptx_mod mode;         /* of MG_loadmode, or MOD_NONE */
	const struct ptx_operand *shared, *other, *size, *mbar, *mask, *offsets;
	const struct ptx_operand *bytes; /* the mask of .cp_mask */
};
struct plan_bulk plan_bulk_of(const struct ptx_insn *i);

/* As plan_of() and plan_global_of() */
bool plan_bulk(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p);
bool plan_bulk_global(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p);

#endif
