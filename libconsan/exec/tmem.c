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
	t->call.by = NULL;
	t->pending.n = 0;
}

void tmem_free(struct cta *c)
{
	struct tmem *t = &c->async->tmem;

	free(t->cell);
	vec_free(&t->pending);
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

struct tc_view tc_view(const struct cta *c, bool pair)
{
	struct cta *cta[2];
	struct tc_view v = { .nctas = c->cluster->info.nctas, .n = tc_ctas(c, pair, cta) };

	for (unsigned h = 0; h < v.n; h++) {
		v.cta[h].rank = cta[h]->rank;
		v.cta[h].shared_bytes = cta[h]->shared_bytes;
		v.cta[h].units = cta[h]->async->tmem.units;
	}
	return v;
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

static uint32_t first_fit(uint32_t units, unsigned columns)
{
	const unsigned n = columns / TMEM_UNIT;
	const uint32_t mask = (1u << n) - 1;

	for (unsigned u = 0; u + n <= TMEM_COLUMNS / TMEM_UNIT; u += n)
		if (!(units & mask << u))
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

static void explain_call(const struct warp *w, const struct xwait *wait, struct event_blocked *e,
	char *buf, size_t n)
{
	const struct tmem_meeting *mine = &w->cta->async->tmem.call;

	(void)wait;
	if (mine->by != w)
		snprintf(buf, n, "waits for another warp of this CTA, which has not ended its %s with "
			"cta_group::2", mine->call.alloc ? "tcgen05.alloc" : "tcgen05.dealloc");
	else
		snprintf(buf, n, "waits for a warp of CTA %u to execute tcgen05.%s with cta_group::2, too",
			w->cta->rank ^ 1u, mine->call.alloc ? "alloc" : "dealloc");
	e->text = buf;
}

static enum step wait_for_columns(struct warp *w, uint32_t n)
{
	const enum step step = ex_wait(w, WAIT_TMEM, &w->cta->async->tmem.changes, ~0ull, n);

	w->wait.explain = explain_alloc;
	w->wait.arg = n;
	return step;
}

static void take(struct tmem *t, uint32_t column, unsigned n)
{
	if (!t->cell)
		t->cell = base_alloc_aligned(64, TMEM_LANES * sizeof *t->cell);
	t->units |= (uint16_t)(((1u << n / TMEM_UNIT) - 1) << column / TMEM_UNIT);
}

static void release(struct tmem *t, uint32_t column, unsigned n)
{
	t->units &= (uint16_t)~(((1u << n / TMEM_UNIT) - 1) << column / TMEM_UNIT);
	t->changes++;
}

/* .cta_group::2: a warp in each CTA of the pair executes the same alloc or dealloc. They wait for
 * each other and for columns that are free in both CTAs. STEP_NEXT: done, *column is the result of
 * an alloc. */
static enum step meet(struct warp *w, const struct xop *x, uint32_t lanes, bool alloc,
	uint32_t *column, uint32_t columns)
{
	struct tmem *t = &w->cta->async->tmem, *peer;
	struct cta *cta[2];
	struct refusal why;
	enum step step;

	if (tc_ctas(w->cta, true, cta) < 2)
		return ex_fault(w, x, lanes, FAULT_TMEM_PAIR, SP_TMEM, 0, 0,
			"the cluster has no pairs of CTAs");
	peer = &cta[!(w->cta->rank & 1)]->async->tmem;
	if (!t->call.by)
		t->call = (struct tmem_meeting){ w, { *column, columns, alloc }, false };
	if (t->call.by != w || (!t->call.done && (!peer->call.by || peer->call.done))) {
		step = ex_wait(w, WAIT_TMEM, &t->changes, ~0ull, columns);
		w->wait.explain = explain_call;
		return step;
	}
	if (!t->call.done) {
		if (refuse_meeting(&why, &t->call.call, &peer->call.call, w->cta->rank ^ 1u))
			return ex_refuse(w, x, lanes, &why);
		if (alloc) {
			const uint32_t at = first_fit((uint32_t)(t->units | peer->units), columns);

			if (at == NO_COLUMNS)
				return wait_for_columns(w, columns);
			take(t, at, columns);
			take(peer, at, columns);
			t->call.call.column = peer->call.call.column = at;
		}
		peer->call.done = true;
		peer->changes++;
	}
	*column = t->call.call.column;
	t->call.by = NULL;
	t->changes++;
	return STEP_NEXT;
}

/* The value of an operand that all lanes must agree on. False: they do not, and the launch ends. */
static bool uniform(struct warp *w, const struct xop *x, uint32_t lanes, uint32_t slot,
	const char *name, uint32_t *value)
{
	*value = r32(w, slot)[__builtin_ctz(lanes)];
	for EACH_LANE(l, lanes)
		if (r32(w, slot)[l] != *value) {
			ex_fault(w, x, 1u << l, FAULT_TMEM_COLUMNS, SP_TMEM, r32(w, slot)[l], 0,
				"%s differs between the lanes: %u and %u", name, *value, r32(w, slot)[l]);
			return false;
		}
	return true;
}

/* o[0], o[1]: address; o[2]: columns; o[3]: cta_group::2; i.u: space */
static enum step op_alloc(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct tmem *t = &w->cta->async->tmem;
	const unsigned l = (unsigned)__builtin_ctz(lanes);
	struct refusal why;
	const enum ptx_space space = (enum ptx_space)x->i.u;
	uint64_t addr = ex_addr(w, get_addr(x, 0), l);
	struct xplace p;
	uint32_t column = 0, n;
	enum step step;

	/* PTX ISA 6.4.1: an address in a register that is wider than the addresses of the state space
	 * is truncated. ThunderKittens passes a generic address, which then is that of .shared. */
	if (space == PS_shared)
		addr = (uint32_t)addr;
	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (!uniform(w, x, lanes, x->o[2], "the number of columns", &n))
		return STEP_FAULT;
	if (refuse_columns(&why, n) || refuse_permit(&why, t->relinquished))
		return ex_refuse(w, x, lanes, &why);
	if (!ex_resolve(w, x, 1u << l, space, addr, 4, 4, true, &p))
		return STEP_FAULT;
	if (x->o[3]) {
		step = meet(w, x, lanes, true, &column, n);
		if (step != STEP_NEXT)
			return step;
	} else {
		column = first_fit(t->units, n);
		if (column == NO_COLUMNS)
			return wait_for_columns(w, n);
		take(t, column, n);
	}
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
	struct refusal why;
	uint32_t at, n;
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (!uniform(w, x, lanes, x->o[0], "the address", &at)
			|| !uniform(w, x, lanes, x->o[1], "the number of columns", &n))
		return STEP_FAULT;
	at &= 0xffff;
	if (refuse_columns(&why, n) || refuse_free(&why, t->units, at, n))
		return ex_refuse(w, x, lanes, &why);
	if (x->i.u) {
		step = meet(w, x, lanes, false, &at, n);
		if (step != STEP_NEXT)
			return step;
	}
	tc_emit_alloc(w, x, lanes, EV_TMEM_DEALLOC, at, n, x->i.u);
	release(t, at, n);
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
	put_addr(x, 0, dec_addr(d, &i->operand[0]));
	x->o[2] = dec_src(d, &i->operand[1], TY_u32);
	x->o[3] = ptx_has(i, MOD_cta_group_2);
	x->i.u = ptx_space_of(i, 0);
	x->fn = op_alloc;
	return true;
}

DECODER(tcgen05_dealloc)
{
	x->o[0] = dec_src(d, &i->operand[0], TY_u32);
	x->o[1] = dec_src(d, &i->operand[1], TY_u32);
	x->i.u = ptx_has(i, MOD_cta_group_2);
	x->fn = op_dealloc;
	return true;
}

DECODER(tcgen05_relinquish_alloc_permit)
{
	(void)d;
	x->i.u = ptx_has(i, MOD_cta_group_2);
	x->fn = op_relinquish;
	return true;
}
