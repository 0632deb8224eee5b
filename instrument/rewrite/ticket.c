/* ticket: see ticket.h. */
#include "ticket.h"

#include "libconsan/ptx/opcodes.h"

static bool writes_register(const struct ptx_insn *i)
{
	return i->noperands && ptx_written(i) && i->operand[0].kind == PO_REG;
}

/* An arrival that returns a token observes the phase, so its place among others' matters. */
bool ticket_may_be_earlier(const struct ptx_insn *i)
{
	switch (ptx_effect_of(i->op)) {
	case EF_MBARRIER:
		return !writes_register(i);
	case EF_BULK: case EF_CP_ASYNC: case EF_BARRIER:
		return true;
	case EF_CLUSTER:
		return i->op == OP_barrier_cluster_arrive;
	case EF_WRITE: case EF_RMW:
		return i->op == OP_st_async || i->op == OP_red_async;
	default:
		return false;
	}
}

bool ticket_ends(const struct ptx_insn *i)
{
	switch (ptx_effect_of(i->op)) {
	case EF_READ:
		return ptx_has(i, MOD_mmio) || ptx_pick(i, MG_sem) != MOD_NONE;
	case EF_RMW: case EF_CLUSTER: case EF_MBARRIER:
		return !ticket_may_be_earlier(i);
	case EF_BARRIER: case EF_GRID: case EF_TCGEN05: case EF_UNKNOWN:
		return true;
	case EF_CONTROL:
		return i->op == OP_call;
	default:
		return false;
	}
}
