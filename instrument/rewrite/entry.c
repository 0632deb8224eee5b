/* entry: collects what is known of a kernel and of the functions that it can reach, before and
 * after they are rewritten. */
#include "entry.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "libconsan/ptx/opcodes.h"
#include "libconsan/ptx/ptx.h"
#include "plan.h"

bool entry_has_effect(const struct ptx_insn *i)
{
	switch (ptx_effect_of(i->op)) {
	case EF_READ: case EF_WRITE: case EF_RMW: case EF_CP_ASYNC: case EF_BULK: case EF_MBARRIER:
	case EF_WGMMA: case EF_TCGEN05: case EF_BARRIER: case EF_WARP_SYNC: case EF_CLUSTER:
	case EF_FENCE: case EF_SETMAXNREG: case EF_UNKNOWN:
		return true;
	case EF_NONE: case EF_RANK: case EF_CONTROL: case EF_EXIT: case EF_HINT: case EF_WARP:
	case EF_TENSORMAP: case EF_GRID: case EF_STOP: case EF_COUNT:
		return false;
	}
	return false;
}

bool rewrite_counts(const struct ptx_insn *i, bool global)
{
	enum ptx_effect effect = ptx_effect_of(i->op);
	enum ptx_space space = ptx_space_of(i, 0);

	if (effect == EF_READ || effect == EF_WRITE || effect == EF_RMW)
		return space != PS_param && space != PS_const && space != PS_local &&
			(space != PS_global || global);
	return entry_has_effect(i);
}

static void refuse(struct rewrite_func *info, const struct ptx_func *f, const struct ptx_insn *i,
	const char *why)
{
	struct text t = { 0 };

	if (!why || info->refused)
		return;
	text_printf(&t, "line %u: ", i->line);
	if (f != info->func)
		text_printf(&t, "in the device function %s, ", f->name);
	text_printf(&t, "%s by --backend=gpu", why);
	info->refused = t.at;
}

/* What is only refused if accesses to global memory are recorded. */
static void refuse_unrecordable(struct rewrite_func *info, const struct ptx_func *f, const struct ptx_insn *i)
{
	const bool could = !info->refused;

	refuse(info, f, i, plan_heap_refuses(f, i));
	if (ptx_is_texture(i))
		refuse(info, f, i, "access to textures and surfaces is not recorded");
	if (ptx_is_multimem(i))
		refuse(info, f, i, "access to multicast memory is not recorded");
	info->refused_global |= could && info->refused;
}

/* Is the variable declared before the first instruction, where the kernel reports its address? */
static bool declared_early(const struct ptx_func *f, const struct ptx_var *v)
{
	const char *text = f->module->text, *end = text + f->insn[0].text_at, *at = text;
	const char *line, *space;
	size_t n = strlen(v->name);

	for (; (at = memmem(at, (size_t)(end - at), v->name, n)); at += n) {
		if (strchr("_$", at[n]) || isalnum((unsigned char)at[n]) || at == text ||
				isalnum((unsigned char)at[-1]) || strchr("_$%", at[-1]))
			continue;
		for (line = at; line > text && !strchr("\n;{", line[-1]); line--)
			;
		space = strstr(line, ".shared");
		if (space && space < at)
			return true;
	}
	return false;
}

/* Variables of the kernel itself and of the module. */
static void note_symbol(struct rewrite_func *info, const struct ptx_operand *o)
{
	bool shared = (o->kind == PO_SYM || o->kind == PO_ADDR) && o->var &&
		o->var->space == PS_shared;
	bool visible = shared && (!o->var->func || o->var->func == info->func);

	info->hidden |= shared && !visible;
	info->reserved |= o->kind == PO_SREG && o->sreg >= SR_reserved_smem_offset_begin &&
		o->sreg <= SR_reserved_smem_offset_1;
	if (visible) {
		for (size_t k = 0; k < info->nsymbols; k++)
			if (info->symbol[k] == o->var)
				return;
		if (!declared_early(info->func, o->var)) {
			info->hidden = true;
			return;
		}
		info->symbol = base_resize(info->symbol,
			(info->nsymbols + 1) * sizeof *info->symbol);
		info->symbol[info->nsymbols++] = o->var;
	}
	if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned k = 0; k < o->n; k++)
			note_symbol(info, &o->list[k]);
}

static void note_insn(const struct calls *c, struct rewrite_func *info, const struct ptx_func *f,
	const struct ptx_insn *i)
{
	struct plan p;

	info->sites += rewrite_counts(i, c->global);
	info->hands_over |= i->op == OP_call || ptx_hands_over(i);
	info->tensor |= ptx_effect_of(i->op) == EF_TCGEN05;
	refuse(info, f, i, plan_refuses(i));
	if (c->global)
		refuse_unrecordable(info, f, i);
	if (f != info->func && ptx_effect_of(i->op) == EF_WGMMA)
		refuse(info, f, i, "wgmma is not recorded");
	for (unsigned o = 0; o < i->noperands; o++)
		note_symbol(info, &i->operand[o]);
	info->unrecorded += !c->global && (plan_global_of(f, i, &p) || ptx_is_texture(i)
		|| ptx_is_multimem(i));
}

void entry_analyze(const struct calls *c, struct rewrite_func *info)
{
	const struct ptx_func **reach = base_alloc((c->m->nfunc + 2) * sizeof *reach);
	size_t n = calls_reach(c, info->func, reach);

	for (size_t k = 0; k < n; k++) {
		for (size_t i = 0; i < reach[k]->ninsn; i++)
			note_insn(c, info, reach[k], &reach[k]->insn[i]);
		info->orders_grid |= c->global && plan_orders_grid(reach[k]);
	}
	free(reach);
}

void entry_count(const struct calls *c, struct rewrite_func *info)
{
	const struct ptx_func **reach = base_alloc((c->m->nfunc + 2) * sizeof *reach);
	size_t n = calls_reach(c, info->func, reach);

	for (size_t k = 1; k < n; k++)
		info->recorded += c->recorded[reach[k] - c->m->func];
	info->unbounded_stack = calls_unbounded(c, info->func);
	free(reach);
}
