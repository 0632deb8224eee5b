/* wgmma_regs: plain instructions that name registers of a wgmma, or registers to which a mov may
 * have copied its accumulators. EV_REGISTER_ACCESS reports the accesses.
 *
 * nvcc moves accumulators in flight, and ptxas renames registers until no move is left. So a mov
 * that depends on a wgmma in flight takes effect directly after it, and the wgmma can still be as
 * late as its wait. Any other access happens at once: it reads what was there before. */
#include "async.h"
#include "internal.h"
#include "libconsan/ptx/opcodes.h"

/* The registers that an instruction reads, then those that it writes. */
struct reg_access {
	uint16_t nread, nwritten;
	bool move;
	bool operand;              /* one of them is an operand of a wgmma */
	bool fixed;                /* a mov: its sources change only by instructions seen here */
	struct xop mov;
	struct { const uint32_t *reg, *slot; } at;
};

static struct wg_async *group_of(const struct warp *w)
{
	return &w->cta->async->wg[w->id / 4];
}

static void report(struct warp *w, const struct xop *x, uint32_t lanes,
	const struct reg_access *a)
{
	/* a copy matters only while its value may be in flight */
	if (!w->sink || (!a->operand && !group_of(w)->unwaited))
		return;

	struct event e = ex_event(w, x, EV_REGISTER_ACCESS, lanes);

	e.register_access.move = a->move;
	e.register_access.regs = (struct ev_regs){ a->at.reg, a->nread };
	e.register_access.mode = MODE_READ;
	if (a->nread)
		ex_emit(w->cluster, &e);
	e.register_access.regs = (struct ev_regs){ a->at.reg + a->nread, a->nwritten };
	e.register_access.mode = MODE_WRITE;
	if (a->nwritten)
		ex_emit(w->cluster, &e);
}

static uint32_t newest(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static enum step op_regs(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct reg_access *a = x->i.p;
	struct wg_async *g = group_of(w);
	uint32_t moved = 0;

	report(w, x, lanes, a);
	if (!g->pending.n)
		return STEP_NEXT;
	for (unsigned k = a->nread; k < a->nread + a->nwritten; k++)
		moved = newest(moved, w->async->stamp[a->at.slot[k] / 64].moved);
	wgmma_force(w->cluster, g, moved);
	return STEP_NEXT;
}

/* ---- movs ---- */

/* The newest wgmma in flight that the mov depends on; 0: none. */
static uint32_t depends_on(const struct warp *w, const struct wg_async *g,
	const struct reg_access *a)
{
	const uint32_t oldest = g->issued - (uint32_t)g->pending.n + 1;
	uint32_t n = 0;

	for (unsigned k = 0; k < a->nread + a->nwritten; k++) {
		const struct wg_stamp *s = &w->async->stamp[a->at.slot[k] / 64];

		n = newest(n, k < a->nread ? s->written : newest(s->written, s->read));
	}
	return n >= oldest ? n : 0;
}

static enum step op_move(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct reg_access *a = x->i.p;
	struct wg_async *g = group_of(w);
	uint32_t after;

	report(w, x, lanes & ~w->dead, a);
	after = g->pending.n ? depends_on(w, g, a) : 0;
	if (!a->fixed)
		wgmma_force(w->cluster, g, after);
	if (!after || !a->fixed)
		return a->mov.fn(w, &a->mov, lanes);
	vec_push(&g->move, ((struct wg_move){ w, &a->mov, lanes, after }));
	for (unsigned k = 0; k < a->nread + a->nwritten; k++) {
		struct wg_stamp *s = &w->async->stamp[a->at.slot[k] / 64];

		if (k < a->nread)
			s->read = newest(s->read, after);
		else
			s->written = after;
		s->moved = newest(s->moved, after);
	}
	return STEP_NEXT;
}

void wgmma_moves(struct wg_async *g, uint32_t number)
{
	size_t n = 0;

	for (size_t i = 0; i < g->move.n; i++) {
		const struct wg_move m = g->move.at[i];

		if (m.after == number)
			m.mov->fn(m.warp, m.mov, m.lanes);
		else
			g->move.at[n++] = m;
	}
	g->move.n = n;
}

/* ---- decoding ---- */

static bool is_fixed(const struct ptx_operand *o, const uint8_t *regs)
{
	bool fixed = true;

	if (o->kind == PO_VEC || o->kind == PO_PAIR) {
		for (unsigned i = 0; i < o->n; i++)
			fixed &= is_fixed(&o->list[i], regs);
		return fixed;
	}
	return o->kind == PO_REG ? regs[o->reg] != WGMMA_REG_NONE
		: o->kind == PO_IMM || o->kind == PO_F32 || o->kind == PO_F64;
}

static struct reg_access *access_of(struct decoder *d, const struct ptx_insn *i,
	const uint8_t *regs)
{
	uint32_t found[WGMMA_REG_USES], *slot;
	unsigned n, nread;
	struct reg_access *a;

	if (!regs || ptx_effect_of(i->op) == EF_WGMMA)
		return NULL;
	n = wgmma_reg_uses(i, regs, found, &nread);
	if (!n)
		return NULL;
	a = dec_alloc(d, sizeof *a);
	a->nread = (uint16_t)nread;
	a->nwritten = (uint16_t)(n - nread);
	a->move = i->op == OP_mov;
	a->operand = wgmma_reg_operand(regs, found, n);
	a->fixed = a->move && is_fixed(&i->operand[1], regs);
	slot = dec_alloc(d, 2 * n * sizeof *slot);
	for (unsigned k = 0; k < n; k++)
		slot[k] = d->fn->slot[d->fn->first[found[k]]];
	memcpy(slot + n, found, n * sizeof *found);
	a->at.slot = slot;
	a->at.reg = slot + n;
	return a;
}

struct reg_access *wgmma_regs_before(struct decoder *d, const struct ptx_insn *i,
	const uint8_t *regs, const struct xop *x)
{
	struct reg_access *a = access_of(d, i, regs);
	struct xop *before;

	if (!a || a->move)
		return a;
	before = dec_before(d, op_regs);
	before->guard = x->guard;
	before->negated = x->negated;
	before->site = x->site;
	before->i.p = a;
	return NULL;
}

void wgmma_regs_move(struct xop *x, struct reg_access *a)
{
	a->mov = *x;
	x->fn = op_move;
	x->i.p = a;
}
