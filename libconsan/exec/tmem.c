/* tmem: allocation of tensor memory, and the order of its asynchronous operations. A CTA is taken
 * to be alone on its SM: alloc waits for columns of its own CTA only. */
#include "tcgen05_event.h"
#include "tmem.h"

#include <stdio.h>
#include <stdlib.h>

void tmem_begin(struct cta *c)
{
	struct tmem *t = &c->async->tmem;

	t->units = 0;
	t->relinquished = false;
	t->pending.n = 0;
}

void tmem_free(struct cta *c)
{
	struct tmem *t = &c->async->tmem;

	free(t->cell);
	vec_free(&t->pending);
}

bool tmem_inside(const struct cta *c, uint32_t addr, unsigned lanes, unsigned columns)
{
	const struct tmem *t = &c->async->tmem;
	const uint32_t lane = addr >> 16, column = addr & 0xffff;

	if (!columns || lane + lanes > TMEM_LANES || column + columns > TMEM_COLUMNS)
		return false;
	for (uint32_t u = column / TMEM_UNIT; u <= (column + columns - 1) / TMEM_UNIT; u++)
		if (!(t->units >> u & 1))
			return false;
	return true;
}

bool tmem_check(struct warp *w, const struct xop *x, const struct cta *c, uint32_t addr,
	unsigned nlanes, unsigned columns)
{
	if (tmem_inside(c, addr, nlanes, columns))
		return true;
	ex_fault(w, x, ~w->dead, FAULT_TMEM_ADDRESS, SP_TMEM, addr, 4 * columns, "lanes %u to %u, "
		"columns %u to %u of the tensor memory of CTA %u are not allocated", addr >> 16,
		(addr >> 16) + nlanes - 1, addr & 0xffff, (addr & 0xffff) + columns - 1, c->rank);
	return false;
}

unsigned tc_ctas(const struct cta *c, bool pair, struct cta *cta[2])
{
	struct cluster *cl = c->cluster;

	if (!pair || cl->info.nctas < 2) {
		cta[0] = &cl->cta[c->rank];
		return 1;
	}
	cta[0] = &cl->cta[c->rank & ~1u];
	cta[1] = &cl->cta[c->rank | 1];
	return 2;
}

bool tc_pieces_inside(struct warp *w, const struct xop *x, const char *name, const uint32_t *piece,
	unsigned n, struct cta *const cta[2], unsigned ctas)
{
	uint32_t top = 0;

	for (unsigned i = 0; i < n; i++)
		top = piece[i] > top ? piece[i] : top;
	for (unsigned h = 0; h < ctas; h++)
		if (top + 16 > cta[h]->shared_bytes)
			return !ex_fault(w, x, ~w->dead, FAULT_TCGEN05_OPERAND, SP_SHARED, top, 0, "%s reaches to 0x%x, beyond the %u bytes of shared "
				"memory of CTA %u", name, top + 15, cta[h]->shared_bytes, cta[h]->rank);
	return true;
}

/* ---- the pipe ---- */

void tc_issue(struct warp *w, struct tc_op *o)
{
	o->owner = w->cta;
	group_add(&w->cta->async->tmem.pending, &o->g);
	async_issue(w->cluster, &o->g.op);
}

void tc_begin(struct cluster *c, struct tc_op *o)
{
	struct group_list *l = &o->owner->async->tmem.pending;

	while (l->n && l->at[0] != &o->g)
		async_force(c, &l->at[0]->op);
	group_remove(l, &o->g);
}

/* ---- alloc, dealloc, relinquish_alloc_permit ---- */

enum { NO_COLUMNS = TMEM_COLUMNS };

static uint32_t first_fit(const struct tmem *t, unsigned columns)
{
	const unsigned n = columns / TMEM_UNIT;
	const uint32_t mask = (1u << n) - 1;

	for (unsigned u = 0; u + n <= TMEM_COLUMNS / TMEM_UNIT; u += n)
		if (!(t->units & mask << u))
			return u * TMEM_UNIT;
	return NO_COLUMNS;
}

static void explain_alloc(const struct warp *w, const struct xwait *wait, struct event_blocked *e,
	char *buf, size_t n)
{
	snprintf(buf, n, "%u columns wanted, %u of %u are allocated", (unsigned)wait->arg,
		TMEM_UNIT * (unsigned)__builtin_popcount(w->cta->async->tmem.units), TMEM_COLUMNS);
	e->text = buf;
}

static bool valid_columns(uint32_t n)
{
	return n >= TMEM_UNIT && n <= TMEM_COLUMNS && !(n & (n - 1));
}

static enum step refuse_columns(struct warp *w, const struct xop *x, uint32_t lanes, uint32_t n)
{
	return ex_fault(w, x, lanes, FAULT_TMEM_COLUMNS, SP_TMEM, n, 0,
		"%u columns: neither 32, 64, 128, 256 nor 512", n);
}

static void take(struct tmem *t, uint32_t column, unsigned n)
{
	if (!t->cell)
		t->cell = base_alloc_aligned(64, TMEM_LANES * sizeof *t->cell);
	t->units |= (uint16_t)(((1u << n / TMEM_UNIT) - 1) << column / TMEM_UNIT);
}

/* o[0], o[1]: address; o[2]: columns; o[3]: cta_group::2; i.u: space */
static enum step op_alloc(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct tmem *t = &w->cta->async->tmem;
	const unsigned l = (unsigned)__builtin_ctz(lanes);
	const uint32_t n = r32(w, x->o[2])[l];
	struct xplace p;
	uint32_t column;
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (!valid_columns(n))
		return refuse_columns(w, x, lanes, n);
	if (t->relinquished)
		return ex_fault(w, x, lanes, FAULT_TMEM_PERMIT, SP_TMEM, 0, 0,
			"this CTA has given up its permit to allocate");
	if (!ex_resolve(w, x, 1u << l, (enum ptx_space)x->i.u, ex_addr(w, get_addr(x, 0), l), 4, 4, true,
			&p))
		return STEP_FAULT;
	column = first_fit(t, n);
	if (column == NO_COLUMNS) {
		step = ex_wait(w, WAIT_TMEM, &t->frees, ~0ull, n);
		w->wait.explain = explain_alloc;
		w->wait.arg = n;
		return step;
	}
	take(t, column, n);
	memcpy(p.host, &column, 4);
	tc_emit_address(w, x, lanes, &p);
	tc_emit_alloc(w, x, lanes, EV_TMEM_ALLOC, column, n, x->o[3]);
	ex_work(w);
	return STEP_NEXT;
}

/* o[0]: address; o[1]: columns; i.u: cta_group::2 */
static enum step op_dealloc(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct tmem *t = &w->cta->async->tmem;
	const unsigned l = (unsigned)__builtin_ctz(lanes);
	const uint32_t at = r32(w, x->o[0])[l], n = r32(w, x->o[1])[l];
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (!valid_columns(n))
		return refuse_columns(w, x, lanes, n);
	if (!tmem_inside(w->cta, at & 0xffff, TMEM_LANES, n))
		return ex_fault(w, x, lanes, FAULT_TMEM_FREE, SP_TMEM, at, 4 * n, "columns %u to %u are not "
			"allocated", at & 0xffff, (at & 0xffff) + n - 1);
	tc_emit_alloc(w, x, lanes, EV_TMEM_DEALLOC, at & 0xffff, n, x->i.u);
	t->units &= (uint16_t)~(((1u << n / TMEM_UNIT) - 1) << (at & 0xffff) / TMEM_UNIT);
	t->frees++;
	ex_work(w);
	return STEP_NEXT;
}

/* i.u: cta_group::2 */
static enum step op_relinquish(struct warp *w, const struct xop *x, uint32_t lanes)
{
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	w->cta->async->tmem.relinquished = true;
	tc_emit_alloc(w, x, lanes, EV_TMEM_RELINQUISH, 0, 0, x->i.u);
	return STEP_NEXT;
}

/* ---- decoding ---- */

bool dec_tmem(struct decoder *d, const struct ptx_operand *o, uint32_t *slot)
{
	const struct xaddr a = dec_addr(d, o);

	if (a.imm || a.slot & 1)
		return dec_unsupported(d, "a tensor memory address with an offset or of 64 bits");
	*slot = a.slot;
	return true;
}

DECODER(tcgen05_alloc)
{
	dec_unchecked(d, TMEM_UNCHECKED);
	put_addr(x, 0, dec_addr(d, &i->operand[0]));
	x->o[2] = dec_src(d, &i->operand[1], TY_u32);
	x->o[3] = ptx_has(i, MOD_cta_group_2);
	x->i.u = ptx_space_of(i, 0);
	x->fn = op_alloc;
	return true;
}

DECODER(tcgen05_dealloc)
{
	dec_unchecked(d, TMEM_UNCHECKED);
	x->o[0] = dec_src(d, &i->operand[0], TY_u32);
	x->o[1] = dec_src(d, &i->operand[1], TY_u32);
	x->fn = op_dealloc;
	return true;
}

DECODER(tcgen05_relinquish_alloc_permit)
{
	dec_unchecked(d, TMEM_UNCHECKED);
	x->i.u = ptx_has(i, MOD_cta_group_2);
	x->fn = op_relinquish;
	return true;
}
