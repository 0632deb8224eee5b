/* ticket: see ticket.h. */
#include "ticket.h"

#include "libconsan/ptx/opcodes.h"

bool ticket_may_be_earlier(const struct ptx_insn *i)
{
	switch (ptx_effect_of(i->op)) {
	case EF_BULK:
		return true;
	case EF_CP_ASYNC:
		return i->op == OP_cp_async_mbarrier_arrive;
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
	case EF_RMW:
		return !ticket_may_be_earlier(i);
	case EF_CLUSTER:
		return i->op == OP_barrier_cluster_wait;
	case EF_MBARRIER:
		return i->op == OP_mbarrier_test_wait || i->op == OP_mbarrier_try_wait;
	case EF_BARRIER: case EF_GRID: case EF_TCGEN05: case EF_UNKNOWN:
		return true;
	case EF_CONTROL:
		return i->op == OP_call;
	default:
		return false;
	}
}
