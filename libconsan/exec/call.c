/* call: calls and returns of device functions.
 *
 * Every lane has a stack of call frames and a stack of local memory. Arguments are copied from the
 * caller's .param variables (which are in its local frame) to the callee's, results are copied back
 * at the return. alloca lengthens the frame of the lane's function. Registers of a function have
 * columns of their own, above those of its callers. Only a recursive call saves the columns that it
 * would overwrite. */
#include "async.h"
#include "internal.h"

#include <stdlib.h>

static unsigned char *stack_of(const struct warp *w, unsigned lane, uint32_t at)
{
	return w->local + (size_t)lane * w->worker->grid->k->local_stack + at;
}

/* ---- recursion ---- */

/* Copies columns [from, to) of every class for one lane: from the register file to saved or back.
 * Returns the bytes needed. */
static size_t columns(const struct warp *w, const struct kfunc *callee, const struct kfunc *caller,
	unsigned lane, unsigned char *buf, bool restore)
{
	const struct exec_kernel *k = w->worker->grid->k;
	size_t n = 0;

	for (unsigned c = 0; c < RC_COUNT; c++) {
		unsigned stride = reg_class_stride((enum reg_class)c);
		unsigned width = reg_class_bytes((enum reg_class)c) / LANES;
		uint32_t end = caller->base[c] + caller->n[c];

		for (uint32_t col = callee->base[c]; col < end; col++) {
			unsigned char *r = w->r + k->class_at[c] + (size_t)col * stride;

			if (c == RC_PRED) {
				l32 *p = (l32 *)r;

				if (buf && restore)
					*p = (*p & ~(1u << lane)) | (uint32_t)buf[n] << lane;
				else if (buf)
					buf[n] = *p >> lane & 1;
				n++;
			} else if (c == RC_128) {
				for (unsigned half = 0; half < 2; half++, n += 8) {
					unsigned char *at = r + half * 256 + lane * 8;

					if (buf && restore)
						memcpy(at, buf + n, 8);
					else if (buf)
						memcpy(buf + n, at, 8);
				}
			} else {
				if (buf && restore)
					memcpy(r + (size_t)lane * width, buf + n, width);
				else if (buf)
					memcpy(buf + n, r + (size_t)lane * width, width);
				n += width;
			}
		}
	}
	return n;
}

static bool runs_over(const struct kfunc *callee, const struct kfunc *caller)
{
	for (unsigned c = 0; c < RC_COUNT; c++)
		if (callee->n[c] && callee->base[c] < caller->base[c] + caller->n[c])
			return true;
	return false;
}

/* ---- call and return ---- */

/* A caller's variable may be larger than the callee's, or smaller. */
static size_t common(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool enter(struct warp *w, const struct xop *x, const struct call_site *s,
	const struct kfunc *to, unsigned l)
{
	l32 *sp = r32(w, w->worker->grid->k->sp_slot);
	uint32_t limit = w->worker->grid->k->local_stack;
	l32 *dynamic = r32(w, w->worker->grid->k->dynamic_slot);
	const uint64_t from = w->call[l].n ? w->call[l].at[w->call[l].n - 1].path : 0;
	struct call_frame f = { s->ret_pc, sp[l], dynamic[l], s, NULL,
		(from + s->ret_pc + 1) * 0x9e3779b97f4a7c15ull };
	uint32_t top = sp[l] + s->caller->frame + dynamic[l];

	if (top > limit || to->frame > limit - top) {
		ex_fault(w, x, 1u << l, FAULT_STACK, SP_LOCAL, top, to->frame,
			"call depth %zu, %u bytes of stack", w->call[l].n, limit);
		return false;
	}
	if (runs_over(to, s->caller)) {
		f.saved = base_alloc(columns(w, to, s->caller, l, NULL, false) + 1);
		columns(w, to, s->caller, l, f.saved, false);
	}
	for (unsigned a = 0; a < s->narg && a < to->f->nparam; a++)
		memcpy(stack_of(w, l, top + to->params_at + (uint32_t)to->f->param[a].offset),
			stack_of(w, l, sp[l] + s->arg[a].at), common(s->arg[a].bytes, to->f->param[a].size));
	vec_push(&w->call[l], f);
	sp[l] = top;
	dynamic[l] = 0;
	return true;
}

static enum step op_call(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct call_site *s = x->i.p;

	for EACH_LANE(l, lanes)
		if (!enter(w, x, s, s->callee, l))
			return STEP_FAULT;
	if (lanes == w->mask) {
		w->next = w->code + s->callee->entry_pc;
		return STEP_JUMP;
	}
	warp_fork(w, s->callee->entry_pc, lanes);
	warp_fork(w, s->ret_pc, w->mask & ~lanes);
	w->next = NULL;
	return STEP_JUMP;
}

static enum step op_call_indirect(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct exec_kernel *k = w->worker->grid->k;
	const struct call_site *s = x->i.p;
	uint64_t target[LANES];
	uint32_t rest = lanes;

	lane_addrs(w, s->target, target);

	while (rest) {
		uint64_t to = target[__builtin_ctz(rest)], index = FUNC_INDEX(to);
		const struct kfunc *fn;
		uint32_t same = 0;

		for EACH_LANE(l, rest)
			if (target[l] == to)
				same |= 1u << l;
		if (FUNC_POINTER(index) != to || index >= k->module->ptx->nfunc
			|| k->fn_of[index] == UINT32_MAX)
			return ex_fault(w, x, same, FAULT_TARGET, SP_ANY, to, 0,
				"call through 0x%llx, which is not a function",
				(unsigned long long)to);
		fn = &k->fn[k->fn_of[index]];
		for EACH_LANE(m, same)
			if (!enter(w, x, s, fn, m))
				return STEP_FAULT;
		warp_fork(w, fn->entry_pc, same);
		rest &= ~same;
	}
	if (w->mask & ~lanes)
		warp_fork(w, s->ret_pc, w->mask & ~lanes);
	w->next = NULL;
	return STEP_JUMP;
}

enum step op_ret(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct kfunc *fn = x->i.p;
	l32 *sp = r32(w, w->worker->grid->k->sp_slot);
	uint32_t back[LANES], rest = lanes;

	for EACH_LANE(l, lanes) {
		struct call_frame f = w->call[l].at[--w->call[l].n];

		for (unsigned r = 0; r < f.site->nret && r < fn->f->nret; r++)
			memcpy(stack_of(w, l, f.sp + f.site->ret[r].at),
				stack_of(w, l, sp[l] + fn->rets_at
					+ (uint32_t)fn->f->ret[r].offset),
				common(f.site->ret[r].bytes, fn->f->ret[r].size));
		if (f.saved) {
			columns(w, fn, f.site->caller, l, f.saved, true);
			free(f.saved);
		}
		sp[l] = f.sp;
		r32(w, w->worker->grid->k->dynamic_slot)[l] = f.dynamic;
		back[l] = f.ret_pc;
	}
	if (w->mask & ~lanes)
		warp_fork(w, (uint32_t)(x - w->code) + 1, w->mask & ~lanes);
	while (rest) {
		uint32_t to = back[__builtin_ctz(rest)], same = 0;

		for EACH_LANE(m, rest)
			if (back[m] == to)
				same |= 1u << m;
		if (same == w->mask) {
			w->next = w->code + to;
			return STEP_JUMP;
		}
		warp_fork(w, to, same);
		rest &= ~same;
	}
	w->next = NULL;
	return STEP_JUMP;
}

DECODER(ret)
{
	(void)i;
	x->fn = d->fn->f == d->k->func ? op_exit : op_ret;
	x->i.p = d->fn;
	return true;
}

/* ---- dynamic allocation (ISA, "Stack Manipulation Instructions") ----
 *
 * The memory lies behind the frame of the function, and ends with it. Stack pointers are the first
 * free byte. */

enum { LEAST_ALIGN = 8, CALL_ALIGN = 16 };

static void put_pointer(const struct warp *w, const struct xop *x, unsigned l, uint32_t at)
{
	if (x->o[2])
		r64(w, x->o[0])[l] = at;
	else
		r32(w, x->o[0])[l] = at;
}

static uint64_t get_pointer(const struct warp *w, const struct xop *x, unsigned l)
{
	return x->o[2] ? r64(w, x->o[1])[l] : r32(w, x->o[1])[l];
}

static enum step op_alloca(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct exec_kernel *k = w->worker->grid->k;
	const l32 *sp = r32(w, k->sp_slot);
	l32 *dynamic = r32(w, k->dynamic_slot);
	const uint64_t align = x->i.u;

	for EACH_LANE(l, lanes) {
		const uint64_t end = sp[l] + (uint64_t)x->o[3], size = get_pointer(w, x, l);
		const uint64_t at = (end + dynamic[l] + align - 1) & -align;

		if (size > k->local_stack || at + size > k->local_stack)
			return ex_fault(w, x, 1u << l, FAULT_STACK, SP_LOCAL, at, (uint32_t)size,
				"alloca of %llu bytes, %u bytes of stack", (unsigned long long)size,
				k->local_stack);
		put_pointer(w, x, l, (uint32_t)at);
		dynamic[l] = (uint32_t)(((at + size + CALL_ALIGN - 1) & -(uint64_t)CALL_ALIGN) - end);
	}
	return STEP_NEXT;
}

static enum step op_stacksave(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct exec_kernel *k = w->worker->grid->k;

	for EACH_LANE(l, lanes)
		put_pointer(w, x, l, r32(w, k->sp_slot)[l] + x->o[3] + r32(w, k->dynamic_slot)[l]);
	return STEP_NEXT;
}

static enum step op_stackrestore(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct exec_kernel *k = w->worker->grid->k;

	for EACH_LANE(l, lanes) {
		const uint64_t at = get_pointer(w, x, l), end = r32(w, k->sp_slot)[l] + x->o[3];

		if (at < end || at - end > r32(w, k->dynamic_slot)[l])
			return ex_fault(w, x, 1u << l, FAULT_STACK, SP_LOCAL, at, 0,
				"stackrestore of a pointer that is not of this function's stack");
		r32(w, k->dynamic_slot)[l] = (uint32_t)(at - end);
	}
	return STEP_NEXT;
}

static bool decode_stack(struct decoder *d, const struct ptx_insn *i, struct xop *x, xfn fn)
{
	const enum ptx_type t = ptx_type_of(i, 0);

	if (t != TY_u32 && t != TY_u64)
		return dec_unsupported(d, "a stack pointer of this type");
	x->fn = fn;
	x->o[2] = t == TY_u64;
	x->o[3] = d->fn->frame;
	if (fn != op_stackrestore)
		x->o[0] = dec_dst(d, &i->operand[0], t);
	if (fn != op_stacksave)
		x->o[1] = dec_src(d, &i->operand[fn == op_alloca], t);
	return true;
}

DECODER(alloca)
{
	x->i.u = i->noperands > 2 ? (uint64_t)i->operand[2].imm : LEAST_ALIGN;
	if (x->i.u < LEAST_ALIGN)
		x->i.u = LEAST_ALIGN;
	if (x->i.u & (x->i.u - 1))
		return dec_unsupported(d, "an alignment that is no power of two");
	return decode_stack(d, i, x, op_alloca);
}
DECODER(stacksave) { return decode_stack(d, i, x, op_stacksave); }
DECODER(stackrestore) { return decode_stack(d, i, x, op_stackrestore); }

/* ---- calls of functions that the executor implements ---- */

static enum step op_builtin(struct warp *w, const struct xop *x, uint32_t lanes)
{
	return builtin_call(w, x, lanes, x->i.p);
}

static bool copies(struct decoder *d, const struct ptx_operand *o, unsigned n,
	struct call_copy *to, unsigned limit)
{
	if (n > limit)
		return dec_unsupported(d, "call with %u operands", n);
	for (unsigned k = 0; k < n; k++) {
		const struct ptx_var *v = o[k].var;

		if (!v || v->space != PS_param)
			return dec_unsupported(d, "call operand that is not a .param variable");
		to[k].at = dec_frame_place(d, v);
		to[k].bytes = (uint32_t)v->size;
	}
	return true;
}

DECODER(call)
{
	struct call_site *s = dec_alloc(d, sizeof *s);
	const struct ptx_func *f = i->operand[0].kind == PO_FUNC ? i->operand[0].func : NULL;
	const struct ptx_module *m = d->k->module->ptx;

	s->caller = d->fn;
	s->nret = i->nret;
	s->narg = i->narg;
	if (!copies(d, i->ret, i->nret, s->ret, ARRAY_SIZE(s->ret)) ||
		!copies(d, i->arg, i->narg, s->arg, ARRAY_SIZE(s->arg)))
		return false;
	x->i.p = s;
	if (!f) {
		s->target = dec_addr(d, &i->operand[0]);
		s->ret_pc = (uint32_t)d->code.n + 1;
		x->fn = op_call_indirect;
		return true;
	}
	s->ret_pc = (uint32_t)d->code.n + 1;
	f = ptx_find(m, f->name);
	if (f && f->ninsn) {
		s->callee = &d->k->fn[d->k->fn_of[f - m->func]];
		x->fn = op_call;
		return true;
	}
	s->builtin = call_builtin(i->operand[0].func->name);
	if (s->builtin == BUILTIN_NONE && runtime_refusal(i->operand[0].func->name))
		return dec_unsupported(d, "%s: %s", i->operand[0].func->name,
			runtime_refusal(i->operand[0].func->name));
	if (s->builtin == BUILTIN_NONE)
		return dec_unsupported(d, "call of %s, which this module does not define",
			i->operand[0].func->name);
	s->runtime = runtime_function(i->operand[0].func->name);
	x->fn = op_builtin;
	/* addresses of the heap and the order of printed text depend on the order of clusters */
	d->k->info.coupled |= s->builtin != BUILTIN_assertfail;
	return true;
}
