/* clc: clusterlaunchcontrol: requests to cancel clusters that have not started, their responses,
 * and the queues of clusters that wait to start (clc.h). */
#include "async.h"
#include "clc.h"

#include <stdlib.h>

#define NONE UINT32_MAX
#define IN_VAIN 16 /* with a seed, one of so many requests fails although a cluster waits */

struct clc {
	uint32_t *id, *next;       /* by index: the cluster, and the index behind it in its queue */
	uint32_t *first;           /* by place: the index of the first that waits */
	uint32_t nplaces;
};

/* ---- the queues ---- */

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint32_t count_places(const struct grid *g)
{
	const uint64_t seed = g->l->seed;
	const uint64_t fit = g->max_resident < g->nclusters ? g->max_resident
		: (g->nclusters + 1) / 2;

	return (uint32_t)(seed ? 1 + mix(seed * 0x9e3779b97f4a7c15ull) % fit : fit);
}

void clc_open(struct grid *g)
{
	const uint32_t n = (uint32_t)g->nclusters;
	struct clc *c;
	uint32_t *last;

	if (!g->k->cancels || g->l->cooperative)
		return;
	c = g->clc = base_alloc(sizeof *c);
	c->nplaces = count_places(g);
	c->id = base_alloc(n * sizeof *c->id);
	c->next = base_alloc(n * sizeof *c->next);
	c->first = base_alloc(c->nplaces * sizeof *c->first);
	last = base_alloc(c->nplaces * sizeof *last);
	for (uint32_t p = 0; p < c->nplaces; p++)
		c->first[p] = NONE;
	for (uint32_t k = 0; k < n; k++) {
		const uint32_t p = (uint32_t)(k < c->nplaces || !g->l->seed ? k
			: mix(g->l->seed + k)) % c->nplaces;

		c->id[k] = (uint32_t)grid_cluster(g, k);
		c->next[k] = NONE;
		if (k < c->nplaces)
			continue;
		*(c->first[p] == NONE ? &c->first[p] : &c->next[last[p]]) = k;
		last[p] = k;
	}
	free(last);
	g->nclusters = c->nplaces;
}

void clc_close(struct grid *g)
{
	if (!g->clc)
		return;
	free(g->clc->id);
	free(g->clc->next);
	free(g->clc->first);
	free(g->clc);
}

bool clc_next(struct grid *g, uint32_t place, uint64_t *id)
{
	uint32_t k;

	if (!g->clc || (k = g->clc->first[place]) == NONE)
		return false;
	g->clc->first[place] = g->clc->next[k];
	*id = g->clc->id[k];
	return true;
}

/* The ids are the places, unless some clusters are split. */
uint32_t clc_place(const struct grid *g, uint64_t id)
{
	const struct clc *c = g->clc;
	uint32_t p = 0;

	if (!c)
		return 0;
	if (id < c->nplaces && c->id[id] == id)
		return (uint32_t)id;
	while (c->id[p] != id)
		p++;
	return p;
}

bool clc_waiting(const struct grid *g, uint32_t *place)
{
	for (uint32_t p = 0; g->clc && p < g->clc->nplaces; p++)
		if (g->clc->first[p] != NONE) {
			*place = p;
			return true;
		}
	return false;
}

/* A cluster of the same size as c, which the request takes over. */
static bool cancel(struct cluster *c, struct cluster_info *found)
{
	struct grid *g = c->grid;
	const uint32_t k = g->clc ? g->clc->first[c->place] : NONE;
	uint32_t dims[3];
	uint64_t id;

	if (k == NONE || (g->l->seed && ex_random(c) % IN_VAIN == 0))
		return false;
	*found = (struct cluster_info){ .launch = &g->info, .id = g->clc->id[k] };
	cluster_dims(found, dims);
	return !memcmp(dims, c->dims, sizeof dims) && clc_next(g, c->place, &id);
}

/* ---- the response: opaque to programs ---- */

enum { RESPONSE = 16, CANCELED = 1u << 31 };

static void respond(unsigned char *to, bool canceled, const uint32_t ctaid[3])
{
	const uint32_t word[4] = { ctaid[0], ctaid[1], ctaid[2], canceled ? CANCELED : 0 };

	memcpy(to, word, sizeof word);
}

static bool is_canceled(const struct warp *w, uint32_t slot, unsigned l)
{
	return r64(w, slot)[LANES + l] >> 32 & CANCELED;
}

static uint32_t response_word(const struct warp *w, uint32_t slot, unsigned l, unsigned k)
{
	return (uint32_t)(r64(w, slot)[k / 2 * LANES + l] >> k % 2 * 32);
}

/* ---- try_cancel ---- */

struct request {
	struct async_op op;
	uint32_t at, mbar;         /* offsets in shared memory */
	uint32_t ctas;             /* ranks that receive the response */
};

/* o[0..1] response, o[2..3] mbarrier */
enum { W_SPACE, W_MULTICAST };

static void perform(struct cluster *c, struct async_op *op)
{
	struct request *r = (struct request *)op;
	struct cluster_info other;
	uint32_t id[3] = { 0 };
	const bool canceled = cancel(c, &other);

	if (canceled)
		cluster_ctaid(&other, 0, id);
	for EACH_LANE(rank, r->ctas) {
		respond(c->cta[rank].shared + r->at, canceled, id);
		mbar_signal(op, &c->cta[rank], r->mbar, 0, RESPONSE);
	}
	ex_work(op->warp);
	async_free(c, op);
}

static bool fill(struct warp *w, const struct xop *x, unsigned l, struct request *r)
{
	const enum ptx_space space = (enum ptx_space)x->i.w[W_SPACE];
	const uint64_t addr = ex_addr(w, get_addr(x, 0), l);
	struct refusal why;
	struct xplace p;
	struct cta *mbar;

	if (!ex_resolve(w, x, 1u << l, space, addr, RESPONSE, 1, true, &p) || !mbar_place(w, x, l,
			space, ex_addr(w, get_addr(x, 2), l), true, &mbar, &r->mbar))
		return false;
	if (p.space != SP_SHARED) {
		ex_fault(w, x, 1u << l, FAULT_CANCEL_OPERAND, p.space, p.addr, RESPONSE,
			"the response is not in shared memory");
		return false;
	}
	if (refuse_cancel(&why, &(struct shared_view){ .rank = w->cta->rank },
			(uint64_t)p.cta->rank << 24 | p.addr, (uint64_t)mbar->rank << 24 | r->mbar)) {
		ex_refuse(w, x, 1u << l, &why);
		return false;
	}
	r->at = (uint32_t)p.addr;
	r->ctas = x->i.w[W_MULTICAST] ? (1u << w->cluster->info.nctas) - 1 : 1u << w->cta->rank;
	return true;
}

static void emit_request(struct warp *w, const struct xop *x, unsigned l, const struct request *r)
{
	struct event e = ex_event(w, x, EV_TRY_CANCEL, 1u << l);

	e.try_cancel = (struct event_bulk){ .async_op = r->op.id, .mode = MODE_WRITE,
		.owner = (uint16_t)w->cta->rank, .addr = r->at, .bytes = RESPONSE,
		.mbarrier = r->mbar, .mbarrier_owner = (uint16_t)w->cta->rank,
		.tx_count = RESPONSE, .multicast = x->i.w[W_MULTICAST],
		.cta_mask = x->i.w[W_MULTICAST] ? r->ctas : 0 };
	ex_emit(w->cluster, &e);
}

static enum step op_try_cancel(struct warp *w, const struct xop *x, uint32_t lanes)
{
	for EACH_LANE(l, lanes) {
		struct request *r = async_new(w, x, 1u << l, sizeof *r);

		r->op.perform = perform;
		if (!fill(w, x, l, r)) {
			async_free(w->cluster, r);
			return STEP_FAULT;
		}
		if (w->sink)
			emit_request(w, x, l, r);
		async_issue(w->cluster, &r->op);
	}
	return STEP_NEXT;
}

DECODER(clusterlaunchcontrol_try_cancel)
{
	put_addr(x, 0, dec_addr(d, &i->operand[0]));
	put_addr(x, 2, dec_addr(d, &i->operand[1]));
	x->i.w[W_SPACE] = ptx_space_of(i, 0);
	x->i.w[W_MULTICAST] = ptx_has(i, MOD_multicast_cluster_all);
	x->fn = op_try_cancel;
	d->k->cancels = true;
	return true;
}

/* ---- query_cancel ---- */

static void emit_query(struct warp *w, const struct xop *x, uint32_t lanes, uint32_t response,
	bool first)
{
	struct event e = ex_event(w, x, EV_QUERY_CANCEL, lanes);

	for EACH_LANE(l, lanes)
		e.query_cancel.failed |= (uint32_t)!is_canceled(w, response, l) << l;
	e.query_cancel.first_ctaid = first;
	ex_emit(w->cluster, &e);
}

/* o[0] predicate, o[1] response */
static enum step op_is_canceled(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint32_t yes = 0;

	if (w->sink)
		emit_query(w, x, lanes, x->o[1], false);
	for EACH_LANE(l, lanes)
		yes |= (uint32_t)is_canceled(w, x->o[1], l) << l;
	ex_set_pred(w, x->o[0], lanes, yes);
	return STEP_NEXT;
}

DECODER(clusterlaunchcontrol_query_cancel_is_canceled)
{
	x->o[0] = dec_dst(d, &i->operand[0], TY_pred);
	x->o[1] = dec_src(d, &i->operand[1], TY_b128);
	x->fn = op_is_canceled;
	return true;
}

/* o[0] response, o[1..4] words of it, as far as i.w[0] has their bits */
static enum step op_first_ctaid(struct warp *w, const struct xop *x, uint32_t lanes)
{
	if (w->sink)
		emit_query(w, x, lanes, x->o[0], true);
	for EACH_LANE(l, lanes) {
		uint32_t word[3];

		for (unsigned k = 0; k < 3; k++) /* a destination may share the response's slot */
			word[k] = response_word(w, x->o[0], l, k);
		for (unsigned k = 0; k < 3; k++)
			if (x->i.w[0] >> k & 1)
				r32(w, x->o[1 + k])[l] = word[k];
	}
	return STEP_NEXT;
}

static bool first_ctaid(struct decoder *d, const struct ptx_insn *i, struct xop *x, unsigned word)
{
	x->o[0] = dec_src(d, &i->operand[1], TY_b128);
	x->o[1 + word] = dec_dst(d, &i->operand[0], TY_u32);
	x->i.w[0] = 1u << word;
	x->fn = op_first_ctaid;
	return true;
}

/* The fourth element of the vector is unspecified. */
DECODER(clusterlaunchcontrol_query_cancel_get_first_ctaid)
{
	const struct ptx_operand *to = &i->operand[0];

	if (to->kind != PO_VEC || to->n < 3)
		return dec_unsupported(d, "get_first_ctaid without a vector of four");
	x->o[0] = dec_src(d, &i->operand[1], TY_b128);
	for (unsigned k = 0; k < 3; k++)
		x->o[1 + k] = dec_dst(d, &to->list[k], TY_u32);
	x->i.w[0] = 7;
	x->fn = op_first_ctaid;
	return true;
}

DECODER(clusterlaunchcontrol_query_cancel_get_first_ctaid_x)
{
	return first_ctaid(d, i, x, 0);
}

DECODER(clusterlaunchcontrol_query_cancel_get_first_ctaid_y)
{
	return first_ctaid(d, i, x, 1);
}

DECODER(clusterlaunchcontrol_query_cancel_get_first_ctaid_z)
{
	return first_ctaid(d, i, x, 2);
}
