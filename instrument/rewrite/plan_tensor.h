/* plan_tensor: what is recorded of tcgen05 and clusterlaunchcontrol instructions. */
#ifndef CONSAN_INSTRUMENT_PLAN_TENSOR_H
#define CONSAN_INSTRUMENT_PLAN_TENSOR_H

#include "plan.h"

/* plan.c: adds a value, unless it is a constant, which the decoder takes from the instruction. */
void plan_add(struct plan *p, const struct ptx_operand *o, enum plan_kind kind);

bool plan_tcgen05(const struct ptx_insn *i, struct plan *p);
bool plan_cancel(const struct ptx_insn *i, struct plan *p);
/* As plan_refuses() */
const char *plan_tcgen05_refuses(const struct ptx_insn *i);

#endif
