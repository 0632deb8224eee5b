/* order: see order.h. */
#include "order.h"

enum ev_sem ptx_sem_of(const struct ptx_insn *i, enum ev_sem none)
{
	if (ptx_has(i, MOD_mmio))
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
