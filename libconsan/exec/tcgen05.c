/* tcgen05: loads and stores of tensor memory by warps, their waits, and the fences.
 *
 * A load or store takes effect as late as its wait. Those of one warp take effect in the order of
 * issue: PTX 9.4 guarantees that ("pipelined"), and no program can rely on another order. A store
 * has the values that its registers had when it was issued; a load is performed before an
 * instruction that names its registers (tcgen05_regs.c). */
#include "internal.h"
#include "num.h"
#include "tcgen05_event.h"
#include "tmem.h"

#include <stdio.h>

struct args {
	struct tmem_form form;
	uint32_t addr;             /* slot of the tensor-memory address */
	bool used;                 /* ptx_load_is_read() */
	/* Which cell, counted from that of the address: the sum of what thread and register add */
	uint32_t thread_at[LANES], reg_at[128];
	uint32_t reg[128];
	/* .red: slot of the result; by what; its type; inputs without sign; a NaN input is the result */
	uint32_t result;
	enum ptx_mod red;          /* MOD_NONE: no .red */
	enum ptx_type type;
	bool abs, nan;
};

struct cell { unsigned lane, column; };

/* The cell of register r of thread t, without halves (ISA, "Memory Layout" of the data movement
 * shapes). It is the sum of the cells of (t, 0) and (0, r). */
static struct cell cell_of(enum tmem_shape shape, unsigned split, unsigned t, unsigned r)
{
	switch (shape) {
	case S32x32b:
		return (struct cell){ t, r };
	case S16x64b:
		return (struct cell){ t / 4 + 8 * (t & 1), 2 * r + (t >> 1 & 1) };
	case S16x128b:
		return (struct cell){ t / 4 + 8 * (r & 1), 4 * (r / 2) + t % 4 };
	case S16x256b:
		return (struct cell){ t / 4 + 8 * (r >> 1 & 1), 8 * (r / 4) + 2 * (t % 4) + (r & 1) };
	case S16x32bx2:
		return (struct cell){ t % 16, r + (t < 16 ? 0 : split) };
	}
	return (struct cell){ 0, 0 };
}

static void place(struct args *a)
{
	const struct tmem_form *f = &a->form;
	const unsigned wide = f->halves ? 2 : 1;

	for (unsigned t = 0; t < LANES; t++) {
		const struct cell c = cell_of((enum tmem_shape)f->shape, (unsigned)f->split, t, 0);

		a->thread_at[t] = c.lane * TMEM_STRIDE + wide * c.column;
	}
	for (unsigned r = 0; r < f->nregs; r++) {
		const struct cell c = cell_of((enum tmem_shape)f->shape, (unsigned)f->split, 0, r);

		a->reg_at[r] = c.lane * TMEM_STRIDE + wide * c.column;
	}
}

/* The address in the warp's window. False: the launch ends. */
static bool in_window(struct warp *w, const struct xop *x, const struct args *a, uint32_t *addr)
{
	const struct tmem *t = &w->cta->async->tmem;
	struct refusal why;

	*addr = r32(w, a->addr)[__builtin_ctz(~w->dead)];
	for (unsigned l = 0; l < LANES; l++)
		if (!(w->dead >> l & 1) && r32(w, a->addr)[l] != *addr) {
			ex_fault(w, x, 1u << l, FAULT_TMEM_UNLIKE, SP_TMEM, r32(w, a->addr)[l], 4,
				"the address differs between the lanes");
			return false;
		}
	if (refuse_window(&why, &a->form, *addr))
		return !ex_refuse(w, x, ~w->dead, &why);
	if (refuse_other_window(&why, &a->form, w->id, addr) && w->sink) {
		struct event e = ex_event(w, x, EV_FAULT, ~w->dead);

		e.fault = (struct event_fault){ .fault = (enum ev_fault)why.mode, .text = why.why,
			.space = (enum ev_space)why.space, .addr = why.addr, .bytes = why.size };
		ex_emit(w->cluster, &e);
	}
	if (refuse_tmem(&why, t->units, w->cta->rank, *addr, a->form.lanes, a->form.columns))
		return !ex_refuse(w, x, ~w->dead, &why);
	return true;
}

static void emit(struct warp *w, const struct xop *x, uint32_t lanes, uint32_t at)
{
	const struct args *a = x->i.p;
	struct tc_areas s;

	tmem_areas(&a->form, at, w->cta->rank, &s);
	tc_emit_warp(w, x, lanes, a->form.store ? MODE_WRITE : MODE_READ, a->used, &s);
}

/* ---- performing ---- */

/* The reduction of a thread's registers. Of floats, a number wins over a NaN without .NaN; -0 is
 * less than +0 (as min and max). */
static uint32_t reduce(const struct args *a, uint32_t x, uint32_t y)
{
	const bool max = a->red == MOD_max;

	if (a->type == TY_u32)
		return max == (x > y) ? x : y;
	if (a->type == TY_s32)
		return max == ((int32_t)x > (int32_t)y) ? x : y;
	if (isnan(num_f32(x)) || isnan(num_f32(y)))
		return a->nan || (isnan(num_f32(x)) && isnan(num_f32(y))) ? NUM_NAN32
			: isnan(num_f32(x)) ? y : x;
	if (num_f32(x) == num_f32(y))
		return max == (x >> 31 < y >> 31) ? x : y;
	return max == (num_f32(x) > num_f32(y)) ? x : y;
}

static void reduce_all(struct warp *w, const struct args *a)
{
	l32 *to = r32(w, a->result);

	for (unsigned t = 0; t < LANES; t++) {
		uint32_t sum = 0;

		for (unsigned r = 0; r < a->form.nregs; r++) {
			const uint32_t v = r32(w, a->reg[r])[t] & (a->abs ? 0x7fffffff : ~0u);

			sum = r ? reduce(a, sum, v) : v;
		}
		to[t] = sum;
	}
}

static void load(struct warp *w, const struct args *a, const uint32_t *cell)
{
	for (unsigned r = 0; r < a->form.nregs; r++) {
		const uint32_t *from = cell + a->reg_at[r];
		l32 *to = r32(w, a->reg[r]);

		for (unsigned t = 0; t < LANES; t++)
			to[t] = !a->form.halves ? from[a->thread_at[t]]
				: (from[a->thread_at[t]] & 0xffff) | from[a->thread_at[t] + 1] << 16;
	}
	if (a->red)
		reduce_all(w, a);
}

static void store(const struct args *a, uint32_t *cell, const uint32_t *value)
{
	for (unsigned r = 0; r < a->form.nregs; r++)
		for (unsigned t = 0; t < LANES; t++) {
			uint32_t *to = cell + a->reg_at[r] + a->thread_at[t];
			const uint32_t v = *value++;

			if (!a->form.halves) {
				*to = v;
				continue;
			}
			to[0] = v & 0xffff;
			to[1] = v >> 16;
		}
}

/* Performs the oldest n accesses of the warp. */
static void perform(struct warp *w, size_t n)
{
	struct warp_async *q = w->async;

	for (size_t i = 0; i < n; i++) {
		const struct tmem_access *o = &q->access.at[i];
		const struct args *a = o->args;
		uint32_t *cell = &w->cta->async->tmem.cell[o->at >> 16][o->at & 0xffff];

		if (a->form.store)
			store(a, cell, q->stored.at + o->value);
		else
			load(w, a, cell);
	}
	q->access.n -= n;
	memmove(q->access.at, q->access.at + n, q->access.n * sizeof *q->access.at);
	if (!q->access.n)
		q->stored.n = 0;
	ex_work(w);
}

static bool names(const struct args *a, const uint32_t *slot, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (a->red && slot[i] == a->result)
			return true;
		for (unsigned r = 0; r < a->form.nregs; r++)
			if (slot[i] == a->reg[r])
				return true;
	}
	return false;
}

/* Performs the newest access that matches, and so all before it. */
static void force(struct warp *w, bool is_store, const uint32_t *slot, unsigned n)
{
	for (size_t i = w->async->access.n; i-- > 0;) {
		const struct args *a = w->async->access.at[i].args;

		if (a->form.store == is_store && (!slot || names(a, slot, n))) {
			perform(w, i + 1);
			return;
		}
	}
}

void tmem_force_loads(struct warp *w, const uint32_t *slot, unsigned n)
{
	force(w, false, slot, n);
}

/* ---- issue ---- */

/* No thread can wait for an access but by the warp's own wait: it is not in the cluster's queue,
 * whose operations take effect when nothing else can run. */
static void issue(struct warp *w, const struct args *a, uint32_t at)
{
	struct warp_async *q = w->async;
	const enum exec_async when = w->cluster->grid->l->async;

	vec_push(&q->access, ((struct tmem_access){ a, at, q->stored.n }));
	if (a->form.store) {
		vec_reserve(&q->stored, q->stored.n + a->form.nregs * LANES);
		for (unsigned r = 0; r < a->form.nregs; r++, q->stored.n += LANES)
			memcpy(q->stored.at + q->stored.n, r32(w, a->reg[r]), LANES * 4);
	}
	if (when == ASYNC_EARLY || (when == ASYNC_RANDOM && (ex_random(w->cluster) & 1)))
		perform(w, q->access.n);
}

static enum step op_access(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct args *a = x->i.p;
	uint32_t at;
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (!in_window(w, x, a, &at))
		return STEP_FAULT;
	if (w->sink)
		emit(w, x, lanes, at);
	issue(w, a, at);
	return STEP_NEXT;
}

/* i.u: enum ev_mode */
static enum step op_wait(struct warp *w, const struct xop *x, uint32_t lanes)
{
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	force(w, x->i.u == MODE_WRITE, NULL, 0);
	tc_emit_warp(w, x, lanes, (enum ev_mode)x->i.u, false, NULL);
	return STEP_NEXT;
}

/* i.u: before_thread_sync */
static enum step op_fence(struct warp *w, const struct xop *x, uint32_t lanes)
{
	tc_emit_fence(w, x, lanes, x->i.u);
	return STEP_NEXT;
}

/* ---- decoding ---- */

static bool decode(struct decoder *d, const struct ptx_insn *i, struct xop *x)
{
	struct args *a = dec_alloc(d, sizeof *a);
	const struct tmem_form *f = &a->form;
	const char *why = tmem_form_of(i, &a->form);

	if (why)
		return dec_unsupported(d, "%s", why);
	place(a);
	if (!dec_tmem(d, f->address, &a->addr))
		return false;
	for (unsigned r = 0; r < f->nregs; r++) {
		const struct ptx_operand *o = f->regs->kind == PO_VEC ? &f->regs->list[r] : f->regs;

		a->reg[r] = f->store ? dec_src(d, o, TY_b32) : dec_dst(d, o, TY_b32);
	}
	a->used = !f->store && dec_load_is_read(d, i);
	x->i.p = a;
	x->fn = op_access;
	return true;
}

DECODER(tcgen05_ld)
{
	return decode(d, i, x);
}

/* Each thread gets the reduction of its own registers, which are columns of one lane. */
DECODER(tcgen05_ld_red)
{
	struct args *a;

	if (!decode(d, i, x))
		return false;
	a = (struct args *)x->i.p;
	a->red = ptx_pick(i, MG_redop);
	a->type = ptx_type_of(i, 0);
	a->abs = ptx_has(i, MOD_abs);
	a->nan = ptx_has(i, MOD_NaN);
	a->result = dec_dst(d, &i->operand[1], a->type);
	if (a->red != MOD_min && a->red != MOD_max)
		return dec_unsupported(d, "this reduction of tensor memory");
	if ((a->type != TY_f32 && a->type != TY_u32 && a->type != TY_s32)
			|| ((a->abs || a->nan) && a->type != TY_f32))
		return dec_unsupported(d, "a reduction of tensor memory of this type");
	return true;
}

DECODER(tcgen05_st)
{
	return decode(d, i, x);
}

#define BARE(id, handler, what) \
DECODER(id) \
{ \
	(void)d; \
	(void)i; \
	x->i.u = what; \
	x->fn = handler; \
	return true; \
}
BARE(tcgen05_wait_ld, op_wait, MODE_READ)
BARE(tcgen05_wait_st, op_wait, MODE_WRITE)
BARE(tcgen05_fence_before_thread_sync, op_fence, true)
BARE(tcgen05_fence_after_thread_sync, op_fence, false)
