/* tcgen05: loads and stores of tensor memory by warps, their waits, and the fences. */
#include "tcgen05_event.h"
#include "tmem.h"

/* A register of a thread is one cell, or two 16-bit halves of neighbouring columns (.pack::16b,
 * .unpack::16b). */
struct args {
	uint32_t addr;             /* slot of the tensor-memory address */
	uint8_t shape;             /* enum shape */
	bool halves;
	bool used;                 /* ptx_load_is_read() */
	uint16_t nregs;
	uint16_t lanes, columns;   /* accessed, from the address on */
	int32_t split;             /* .16x32bx2: columns between the two parts */
	uint32_t reg[128];
};

enum shape { S32x32b, S16x64b, S16x128b, S16x256b, S16x32bx2 };

/* SHAPE(mod, shape, lanes, columns of .x1, registers of .x1) */
#define SHAPES \
	SHAPE(MOD_32x32b, S32x32b, 32, 1, 1) \
	SHAPE(MOD_16x64b, S16x64b, 16, 2, 1) \
	SHAPE(MOD_16x128b, S16x128b, 16, 4, 2) \
	SHAPE(MOD_16x256b, S16x256b, 16, 8, 4) \
	SHAPE(MOD_16x32bx2, S16x32bx2, 16, 1, 1)

struct cell { unsigned lane, column; };

/* The cell of register r of thread t, without halves (ISA, "Memory Layout" of the data movement
 * shapes). */
static struct cell cell_of(const struct args *a, unsigned t, unsigned r)
{
	switch ((enum shape)a->shape) {
	case S32x32b:
		return (struct cell){ t, r };
	case S16x64b:
		return (struct cell){ t / 4 + 8 * (t & 1), 2 * r + (t >> 1 & 1) };
	case S16x128b:
		return (struct cell){ t / 4 + 8 * (r & 1), 4 * (r / 2) + t % 4 };
	case S16x256b:
		return (struct cell){ t / 4 + 8 * (r >> 1 & 1), 8 * (r / 4) + 2 * (t % 4) + (r & 1) };
	case S16x32bx2:
		return (struct cell){ t % 16, r + (t < 16 ? 0 : (unsigned)a->split) };
	}
	return (struct cell){ 0, 0 };
}

/* The 32-lane window of a warp is that of its rank modulo 4 (ISA, "Access restrictions"). */
static bool in_window(struct warp *w, const struct xop *x, const struct args *a, uint32_t *addr)
{
	const uint32_t at = r32(w, a->addr)[__builtin_ctz(~w->dead)], lane = at >> 16;

	*addr = at;
	for (unsigned l = 0; l < LANES; l++)
		if (!(w->dead >> l & 1) && r32(w, a->addr)[l] != at) {
			ex_fault(w, x, 1u << l, FAULT_TMEM_UNLIKE, SP_TMEM, r32(w, a->addr)[l], 4,
				"the address differs between the lanes");
			return false;
		}
	if (lane / 32 != w->id % 4 || lane % 32 + a->lanes > 32) {
		ex_fault(w, x, ~w->dead, FAULT_TMEM_WINDOW, SP_TMEM, at, 4,
			"warp %u does not access lanes %u to %u", w->id, lane, lane + a->lanes - 1);
		return false;
	}
	return tmem_check(w, x, w->cta, at, a->lanes, a->columns);
}

static void emit(struct warp *w, const struct xop *x, uint32_t lanes, uint32_t at,
	enum ev_mode mode)
{
	const struct args *a = x->i.p;
	const unsigned n = a->columns - (a->split ? (unsigned)a->split : 0);
	struct tc_areas s = { .n = 0 };

	for (unsigned part = 0; part < (a->split ? 2u : 1u); part++) {
		tc_area(&s, mode, OPERAND_NONE, 1u << w->cta->rank, (at & 0xffff) + (part ?
			(unsigned)a->split : 0), n);
		tc_area_lanes(&s, at >> 16, a->lanes);
	}
	tc_emit_warp(w, x, lanes, mode, a->used, &s);
}

static void load(struct warp *w, const struct args *a, uint32_t at)
{
	uint32_t (*cell)[TMEM_STRIDE] = w->cta->async->tmem.cell + (at >> 16);
	const unsigned column = at & 0xffff;

	for (unsigned r = 0; r < a->nregs; r++) {
		l32 *to = r32(w, a->reg[r]);

		for (unsigned t = 0; t < LANES; t++) {
			struct cell c = cell_of(a, t, r);

			to[t] = !a->halves ? cell[c.lane][column + c.column]
				: (cell[c.lane][column + 2 * c.column] & 0xffff)
				| cell[c.lane][column + 2 * c.column + 1] << 16;
		}
	}
}

static enum step op_ld(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint32_t at;
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (!in_window(w, x, x->i.p, &at))
		return STEP_FAULT;
	load(w, x->i.p, at);
	emit(w, x, lanes, at, MODE_READ);
	return STEP_NEXT;
}

static void store(struct warp *w, const struct args *a, uint32_t at)
{
	uint32_t (*cell)[TMEM_STRIDE] = w->cta->async->tmem.cell + (at >> 16);
	const unsigned column = at & 0xffff;

	for (unsigned r = 0; r < a->nregs; r++) {
		const l32 *from = r32(w, a->reg[r]);

		for (unsigned t = 0; t < LANES; t++) {
			struct cell c = cell_of(a, t, r);

			if (!a->halves) {
				cell[c.lane][column + c.column] = from[t];
				continue;
			}
			cell[c.lane][column + 2 * c.column] = from[t] & 0xffff;
			cell[c.lane][column + 2 * c.column + 1] = from[t] >> 16;
		}
	}
}

static enum step op_st(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint32_t at;
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (!in_window(w, x, x->i.p, &at))
		return STEP_FAULT;
	store(w, x->i.p, at);
	emit(w, x, lanes, at, MODE_WRITE);
	ex_work(w);
	return STEP_NEXT;
}

/* i.u: enum ev_mode */
static enum step op_wait(struct warp *w, const struct xop *x, uint32_t lanes)
{
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
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

static unsigned repetitions(const struct ptx_insn *i)
{
	const enum ptx_mod first = MOD_x1, m = ptx_pick(i, MG_num);

	return m ? 1u << (m - first) : 1;
}

static bool decode(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool is_store)
{
	const struct ptx_operand *at = &i->operand[is_store ? 0 : 1];
	const bool split = ptx_has(i, MOD_16x32bx2);
	const struct ptx_operand *v = &i->operand[!is_store ? 0 : split ? 2 : 1];
	const unsigned times = repetitions(i);
	struct args *a = dec_alloc(d, sizeof *a);

	switch (ptx_pick(i, MG_tshape)) {
#define SHAPE(mod, s, l, c, n) case mod: \
	a->shape = s; a->lanes = l; a->columns = (uint16_t)(c * times); \
	a->nregs = (uint16_t)(n * times); break;
	SHAPES
#undef SHAPE
	default:
		return dec_unsupported(d, "this shape of a tensor memory access");
	}
	a->halves = ptx_has(i, is_store ? MOD_unpack_16b : MOD_pack_16b);
	if (a->halves)
		a->columns *= 2;
	if (split) {
		a->split = (int32_t)i->operand[is_store ? 1 : 2].imm;
		a->columns = (uint16_t)(a->columns + a->split);
	}
	if (a->nregs > ARRAY_SIZE(a->reg) || (v->kind == PO_VEC ? v->n : 1) != a->nregs)
		return dec_unsupported(d, "a tensor memory access with another number of registers");
	if (!dec_tmem(d, at, &a->addr))
		return false;
	for (unsigned r = 0; r < a->nregs; r++) {
		const struct ptx_operand *o = v->kind == PO_VEC ? &v->list[r] : v;

		a->reg[r] = is_store ? dec_src(d, o, TY_b32) : dec_dst(d, o, TY_b32);
	}
	a->used = !is_store && dec_load_is_read(d, i);
	x->i.p = a;
	x->fn = is_store ? op_st : op_ld;
	return true;
}

DECODER(tcgen05_ld)
{
	return decode(d, i, x, false);
}

DECODER(tcgen05_st)
{
	return decode(d, i, x, true);
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
