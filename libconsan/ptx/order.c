/* order: see order.h. */
#include "order.h"
#include "opcodes.h"

enum ev_sem ptx_sem_of(const struct ptx_insn *i, enum ev_sem none)
{
	if (ptx_has(i, MOD_mmio) && !ptx_has(i, MOD_release))
		return SEM_MMIO;
	switch (ptx_pick(i, MG_sem)) {
	case MOD_volatile: return SEM_VOLATILE;
	case MOD_relaxed: return SEM_RELAXED;
	case MOD_acquire: return SEM_ACQUIRE;
	case MOD_release: return SEM_RELEASE;
	case MOD_acq_rel: return SEM_ACQ_REL;
	case MOD_sc: return SEM_SC;
	default: return none;
	}
}

enum ev_scope ptx_scope_of(const struct ptx_insn *i, enum ev_scope none)
{
	switch (ptx_pick(i, MG_scope)) {
	case MOD_cta: return SCOPE_CTA;
	case MOD_cluster: return SCOPE_CLUSTER;
	case MOD_gpu: case MOD_gl: return SCOPE_GPU;
	case MOD_sys: return SCOPE_SYS;
	default: return none;
	}
}

static bool of_cluster(enum ptx_space s)
{
	return s == PS_shared || s == PS_shared_cluster || s == PS_local || s == PS_param;
}

bool ptx_hands_over(const struct ptx_insn *i)
{
	switch (ptx_effect_of(i->op)) {
	case EF_WRITE:
		return ptx_sem_of(i, SEM_WEAK) != SEM_WEAK && !of_cluster(ptx_space_of(i, 0));
	case EF_RMW:
		return !of_cluster(ptx_space_of(i, 0));
	case EF_GRID:
	case EF_UNKNOWN:
		return true;
	case EF_NONE: case EF_RANK: case EF_CONTROL: case EF_EXIT: case EF_READ: case EF_HINT:
	case EF_CP_ASYNC: case EF_BULK: case EF_MBARRIER: case EF_WGMMA: case EF_TCGEN05:
	case EF_BARRIER: case EF_WARP: case EF_WARP_SYNC: case EF_CLUSTER: case EF_FENCE:
	case EF_TENSORMAP: case EF_SETMAXNREG: case EF_STOP: case EF_COUNT:
		return false;
	}
	return true;
}

bool ptx_observes(const struct ptx_insn *i)
{
	switch (ptx_effect_of(i->op)) {
	case EF_READ:
		return (ptx_sem_of(i, SEM_WEAK) != SEM_WEAK || ptx_has(i, MOD_cv))
			&& !of_cluster(ptx_space_of(i, 0));
	case EF_RMW:
		return i->op != OP_red && i->op != OP_multimem_red && i->operand[0].kind != PO_SINK
			&& !of_cluster(ptx_space_of(i, 0));
	case EF_UNKNOWN:
		return true;
	case EF_NONE: case EF_RANK: case EF_CONTROL: case EF_EXIT: case EF_WRITE: case EF_HINT:
	case EF_CP_ASYNC: case EF_BULK: case EF_MBARRIER: case EF_WGMMA: case EF_TCGEN05:
	case EF_BARRIER: case EF_WARP: case EF_WARP_SYNC: case EF_CLUSTER: case EF_FENCE:
	case EF_TENSORMAP: case EF_GRID: case EF_SETMAXNREG: case EF_STOP: case EF_COUNT:
		return false;
	}
	return true;
}

bool ptx_is_multimem(const struct ptx_insn *i)
{
	return i->op == OP_multimem_ld_reduce || i->op == OP_multimem_st || i->op == OP_multimem_red
		|| i->op == OP_multimem_cp_async_bulk || i->op == OP_multimem_cp_reduce_async_bulk;
}

bool ptx_reads_texture(const struct ptx_insn *i)
{
	return i->op == OP_tex || i->op == OP_tld4 || i->op == OP_suld_b;
}

bool ptx_is_texture(const struct ptx_insn *i)
{
	return ptx_reads_texture(i) || i->op == OP_sust_b || i->op == OP_sust_p || i->op == OP_sured_b
		|| i->op == OP_sured_p;
}

bool ptx_polls_shared(const struct ptx_insn *i)
{
	const enum ptx_space s = ptx_space_of(i, 0);

	return ptx_effect_of(i->op) == EF_READ && ptx_sem_of(i, SEM_WEAK) != SEM_WEAK
		&& (s == PS_shared || s == PS_shared_cluster || s == PS_none);
}
