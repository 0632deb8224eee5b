/* gpu_hidden: what a GPU's own run of a kernel can hide from GPU mode (finding/hidden.def), from the
 * instructions of the kernel and of the functions beside it. */
#include "gpu_parts.h"

#include <string.h>

#include "libconsan/ptx/opcodes.h"
#include "libconsan/ptx/ptx.h"

static bool is_local_array(const struct ptx_insn *i)
{
	const enum ptx_effect effect = ptx_effect_of(i->op);

	if ((effect != EF_READ && effect != EF_WRITE) || ptx_space_of(i, 0) != PS_local)
		return false;
	for (unsigned k = 0; k < i->noperands; k++)
		if (i->operand[k].kind == PO_ADDR && i->operand[k].reg != PTX_NO_REG)
			return true;
	return false;
}

static uint64_t of_insn(const struct ptx_func *f, const struct ptx_insn *i)
{
	const enum ptx_effect effect = ptx_effect_of(i->op);
	uint64_t bits = 0;

	if (ptx_observes(i) || ptx_polls_shared(i) || ptx_takes_lock(f, i))
		bits |= 1u << HIDDEN_order;
	if ((effect == EF_BULK && ptx_has(i, MOD_mbarrier_complete_tx_bytes)) || i->op == OP_tcgen05_commit)
		bits |= 1u << HIDDEN_completion;
	if (i->op == OP_mbarrier_test_wait || i->op == OP_mbarrier_try_wait)
		bits |= 1u << HIDDEN_arrival | (ptx_has(i, MOD_parity) ? 0 : 1u << HIDDEN_token);
	if (is_local_array(i))
		bits |= 1u << HIDDEN_local;
	return bits;
}

uint64_t gpu_hidden(const struct gpu_module *m, const char *kernel)
{
	uint64_t bits = gpu_module_unbounded_stack(m, kernel) ? 1u << HIDDEN_local : 0;

	for (size_t k = 0; k < m->ptx->nfunc; k++) {
		const struct ptx_func *f = &m->ptx->func[k];

		for (size_t n = 0; (!f->entry || !strcmp(f->name, kernel)) && n < f->ninsn; n++)
			bits |= of_insn(f, &f->insn[n]);
	}
	return bits;
}
