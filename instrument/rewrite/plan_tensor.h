/* plan_tensor: what is recorded of tcgen05 and clusterlaunchcontrol instructions. */
#ifndef CONSAN_INSTRUMENT_PLAN_TENSOR_H
#define CONSAN_INSTRUMENT_PLAN_TENSOR_H

#include "plan.h"

bool plan_tcgen05(const struct ptx_insn *i, struct plan *p);
bool plan_cancel(const struct ptx_insn *i, struct plan *p);
/* As plan_refuses() */
const char *plan_tcgen05_refuses(const struct ptx_insn *i);

#endif
