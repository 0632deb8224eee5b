/* layout: the functions of a kernel, callees first; their frames of local
 * memory, their columns of the register file, and shared variables. */
#include "internal.h"
#include "libconsan/ptx/opcodes.h"

#include <stdlib.h>

/* Callees first. visited: 0 new, 1 in progress, 2 done. */
static void collect(struct exec_kernel *k, const struct ptx_func *f, uint8_t *visited)
{
	const struct ptx_module *m = k->module->ptx;
	bool indirect = false;

	visited[f - m->func] = 1;
	for (size_t i = 0; i < f->ninsn; i++) {
		const struct ptx_insn *in = &f->insn[i];
		const struct ptx_func *g;

		if (in->op != OP_call || !in->noperands)
			continue;
		g = in->operand[0].kind == PO_FUNC ? in->operand[0].func : NULL;
		indirect |= !g;
		k->has_calls = true;
		if (g)
			g = ptx_find(m, g->name); /* the call may name a declaration */
		if (g && g->ninsn && !visited[g - m->func])
			collect(k, g, visited);
	}
	/* any function may be called: kernels with indirect calls have few device functions */
	for (size_t i = 0; indirect && i < m->nfunc; i++)
		if (!m->func[i].entry && m->func[i].ninsn && !visited[i])
			collect(k, &m->func[i], visited);
	visited[f - m->func] = 2;
	k->fn_of[f - m->func] = (uint32_t)k->nfn;
	k->fn[k->nfn++].f = f;
}

static uint32_t align16(uint64_t n)
{
	return (uint32_t)((n + 15) & ~15ull);
}

static void lay_frame(const struct exec_kernel *k, struct kfunc *fn)
{
	const struct ptx_func *f = fn->f;
	uint64_t rets = 0;

	for (size_t i = 0; i < f->nret; i++)
		if (f->ret[i].offset + f->ret[i].size > rets)
			rets = f->ret[i].offset + f->ret[i].size;
	fn->params_at = 0;
	fn->rets_at = f == k->func ? 0 : align16(f->param_bytes);
	fn->body_at = fn->rets_at + align16(rets);
	/* plus 16 bytes for a return address, so that recursion is bounded */
	fn->frame = fn->body_at + align16(f->local_bytes) + 16;
}

/* Columns of a function start above those of all its callers. The entry, which is last, starts at
 * 0. Recursive calls save columns (call.c). */
static void lay_columns(struct exec_kernel *k)
{
	const struct ptx_module *m = k->module->ptx;
	uint32_t most[RC_COUNT] = { 0 };
	uint32_t at = SLOT_FIRST;

	for (size_t i = k->nfn; i-- > 0;) {
		const struct kfunc *fn = &k->fn[i];
		bool indirect = false;

		for (size_t n = 0; n < fn->f->ninsn; n++) {
			const struct ptx_insn *in = &fn->f->insn[n];
			const struct ptx_func *g = NULL;

			if (in->op != OP_call || !in->noperands)
				continue;
			if (in->operand[0].kind == PO_FUNC && in->operand[0].func)
				g = ptx_find(m, in->operand[0].func->name);
			else
				indirect = true;
			if (!g || k->fn_of[g - m->func] >= i)
				continue;
			struct kfunc *to = &k->fn[k->fn_of[g - m->func]];
			for (unsigned c = 0; c < RC_COUNT; c++)
				if (to->base[c] < fn->base[c] + fn->n[c])
					to->base[c] = fn->base[c] + fn->n[c];
		}
		for (size_t t = 0; indirect && t < i; t++)
			for (unsigned c = 0; c < RC_COUNT; c++)
				if (k->fn[t].base[c] < fn->base[c] + fn->n[c])
					k->fn[t].base[c] = fn->base[c] + fn->n[c];
		for (unsigned c = 0; c < RC_COUNT; c++)
			if (most[c] < fn->base[c] + fn->n[c])
				most[c] = fn->base[c] + fn->n[c];
	}
	for (unsigned c = RC_COUNT; c-- > 0;) {
		k->class_at[c] = at;
		at += most[c] * reg_class_stride((enum reg_class)c);
	}
	k->sp_slot = (at + 63) & ~63u;
	k->dynamic_slot = k->sp_slot + reg_class_stride(RC_32);
	k->reg_bytes = k->dynamic_slot + reg_class_stride(RC_32);
	slot_gap_add(k, k->sp_slot, reg_class_bytes(RC_32));
	slot_gap_add(k, k->dynamic_slot, reg_class_bytes(RC_32));
}

/* Turns columns into slots. */
static void place_registers(struct exec_kernel *k, struct kfunc *fn)
{
	static const uint32_t code[RC_COUNT] = { 0, 1, 2, 3, 3 };

	for (size_t r = 0; r < fn->f->nreg; r++) {
		enum reg_class c = dec_class((enum ptx_type)fn->f->reg[r].type);
		unsigned vec = fn->f->reg[r].vec ? fn->f->reg[r].vec : 1;

		for (unsigned e = 0; e < vec; e++) {
			uint32_t *s = &fn->slot[fn->first[r] + e];

			*s = k->class_at[c] + (fn->base[c] + *s) * reg_class_stride(c);
			slot_gap_add(k, *s, reg_class_bytes(c));
		}
	}
	for (size_t i = 0; i < fn->nzero; i++) {
		uint32_t r = fn->zero[i];

		fn->zero[i] = fn->slot[fn->first[r]]
			| code[dec_class((enum ptx_type)fn->f->reg[r].type)];
	}
}

/* Deepest stack: the longest chain of frames, and space for recursion and dynamic allocation. */
static uint32_t stack_bytes(const struct exec_kernel *k)
{
	uint32_t *deep = base_alloc(k->nfn * sizeof *deep);
	const struct ptx_module *m = k->module->ptx;
	bool open = false;
	uint32_t n;

	for (size_t i = 0; i < k->nfn; i++) {
		uint32_t below = 0;

		for (size_t j = 0; j < k->fn[i].f->ninsn; j++) {
			const struct ptx_insn *in = &k->fn[i].f->insn[j];
			const struct ptx_func *g = NULL;
			uint32_t t;

			open |= in->op == OP_alloca;
			if (in->op != OP_call || !in->noperands)
				continue;
			if (in->operand[0].kind == PO_FUNC && in->operand[0].func)
				g = ptx_find(m, in->operand[0].func->name);
			else
				open = true;
			t = g ? k->fn_of[g - m->func] : UINT32_MAX;
			if (t == UINT32_MAX)
				continue;
			if (t >= i)
				open = true;
			else if (deep[t] > below)
				below = deep[t];
		}
		deep[i] = k->fn[i].frame + below;
	}
	n = deep[k->nfn - 1];
	free(deep);
	return n + (open ? 48 << 10 : 0);
}

/* Collects shared variables used by any of the kernel's functions, statics first. */
static void mark_shared(struct decoder *d, const struct ptx_operand *o, bool dynamic)
{
	if ((o->kind == PO_SYM || o->kind == PO_ADDR) && o->var && o->var->space == PS_shared
		&& (o->var->size == 0) == dynamic)
		dec_shared_place(d, o->var);
	if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned i = 0; i < o->n; i++)
			mark_shared(d, &o->list[i], dynamic);
}

static void place_shared(struct decoder *d, bool dynamic)
{
	struct exec_kernel *k = d->k;

	for (size_t f = k->nfn; f-- > 0;) {
		const struct ptx_func *pf = k->fn[f].f;

		for (size_t i = 0; i < pf->ninsn; i++) {
			const struct ptx_insn *in = &pf->insn[i];

			for (unsigned o = 0; o < in->noperands; o++)
				mark_shared(d, &in->operand[o], dynamic);
			for (unsigned o = 0; o < in->narg; o++)
				mark_shared(d, &in->arg[o], dynamic);
		}
	}
}

void layout_functions(struct exec_kernel *k)
{
	const struct ptx_module *m = k->module->ptx;
	uint8_t *visited = base_alloc(m->nfunc + 1);

	k->fn = arena_alloc(&k->arena, (m->nfunc + 1) * sizeof *k->fn);
	k->fn_of = arena_alloc(&k->arena, (m->nfunc + 1) * sizeof *k->fn_of);
	memset(k->fn_of, 0xff, m->nfunc * sizeof *k->fn_of);
	collect(k, k->func, visited);
	free(visited);
	for (size_t i = 0; i < k->nfn; i++) {
		lay_frame(k, &k->fn[i]);
		regs_allocate(k, &k->fn[i]);
	}
	lay_columns(k);
	for (size_t i = 0; i < k->nfn; i++)
		place_registers(k, &k->fn[i]);
	k->local_stack = stack_bytes(k);
}

void layout_shared(struct decoder *d)
{
	place_shared(d, false);
	place_shared(d, true);
}
