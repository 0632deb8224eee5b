/* recorder: events in, the last steps out. A ring of steps for each cluster in
 * flight, a mirror of its mbarriers' counts, and for each (instruction, warp) when
 * it last touched memory; nothing is allocated while events come. */
#include "recorder.h"

#include "base.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RING 512u        /* power of two */
#define TOUCHED 1024u    /* power of two */
#define MBARRIERS 256u   /* power of two; more than half full: no new ones */
#define SPANS 64u
#define NAMED 16u        /* named barriers of a CTA */
#define MAX_AGENTS 24u   /* warps that a story may be about */
#define MAX_OBJECTS 64u
#define MAX_BUFFERS 96u
#define TAIL 128u        /* power of two: steps remembered of a cluster that is over ... */
#define TAIL_TOUCHED 64u
#define AFTER 24u        /* of these, after the access */
#define TAILS 2048u      /* ... of clusters below this number */

struct touched {             /* when did this warp last execute this access? */
	uint64_t at;
	uint32_t run, site, lanes;
	uint16_t cta, warp;
	bool global;
};

/* Where a story is taken from: a recorder's ring, or a tail. */
struct past {
	const struct history_step *ring;
	const struct touched *touched;
	uint64_t from, at;   /* steps there: the newest is ring[(at - 1) % size] */
	uint32_t size, ntouched, run;
	bool hashed;         /* touched is recorder.touched, else a list */
};

/* What is left of a cluster that is over, for findings about two of them. */
struct tail {
	struct tail *next;
	struct cluster_info info;
	uint64_t at;
	uint32_t run, ntouched;
	struct history_step ring[TAIL];
	struct touched touched[TAIL_TOUCHED];
};

struct span {
	uint32_t run, addr, bytes, site;
};

struct named {
	uint32_t arrived;    /* threads, in this generation */
	uint64_t done;
};

struct groups {              /* of one warp */
	uint64_t copies, bulks, mmas; /* committed so far */
	uint32_t open_copies;
};

struct recorder {
	struct event_sink sink; /* first: it is one */
	struct event_sink *next;
	struct recorders *all;
	struct recorder *idle;
	struct cluster_info info;
	uint32_t run;           /* tells what earlier clusters left behind */
	uint64_t at;            /* steps so far: the newest is ring[(at - 1) % RING] */
	struct history_step ring[RING];
	struct touched touched[TOUCHED];
	struct span span[SPANS];
	struct history_mbarrier mbarrier[MBARRIERS]; /* hash */
	bool used[MBARRIERS];
	uint32_t nmbarriers;
	struct named *named;    /* NAMED a CTA */
	struct groups *groups;  /* one a warp */
	uint32_t nctas, nwarps; /* what is allocated for */
	uint32_t cluster_arrived;
	uint64_t cluster_done;
};

struct recorders {
	pthread_mutex_t lock;
	struct recorder *idle;
	struct tail *tail;      /* of clusters of the launch under way */
	uint32_t steps;
};

/* ---- mirrors ---- */

static struct history_mbarrier *mbarrier(struct recorder *r, unsigned peer, uint32_t addr,
	bool make)
{
	uint32_t i = (addr >> 3) * 0x9e3779b1u >> 20 ^ peer * 37u;

	for (;; i++) {
		struct history_mbarrier *m = &r->mbarrier[i &= MBARRIERS - 1];

		if (r->used[i] && m->peer == peer && m->addr == addr)
			return m;
		if (r->used[i])
			continue;
		if (!make || r->nmbarriers > MBARRIERS / 2)
			return NULL;
		r->used[i] = true;
		r->nmbarriers++;
		*m = (struct history_mbarrier){ .peer = (uint16_t)peer, .addr = addr };
		return m;
	}
}

static struct history_phase *ledger(struct history_mbarrier *m)
{
	struct history_phase *p = &m->recent[m->phase % HISTORY_PHASES];

	if (p->phase != m->phase)
		*p = (struct history_phase){ .phase = m->phase };
	return p;
}

/* The step's effect on its mbarrier: as the checker's, without the checks. */
static void move_mbarrier(struct recorder *r, struct history_step *s, uint32_t arrivals,
	int64_t expected, int64_t landed)
{
	struct history_mbarrier *m = mbarrier(r, s->peer, s->addr, false);
	struct history_phase *p;

	if (!m)
		return;
	p = ledger(m);
	s->phase = m->phase;
	p->arrivals += arrivals;
	p->expected += expected;
	p->landed += landed;
	m->tx += expected - landed;
	m->pending -= arrivals < m->pending ? arrivals : m->pending;
	if (m->pending || m->tx || !m->live)
		return;
	s->completes = true;
	m->phase++;
	m->pending = m->count;
	ledger(m);
}

static struct groups *groups(struct recorder *r, const struct event *e)
{
	const uint32_t i = (uint32_t)e->cta * r->info.warps_per_cta + e->warp;

	return &r->groups[i < r->nwarps ? i : 0];
}

/* ---- steps ---- */

static struct history_step *push(struct recorder *r, enum step_kind kind, const struct event *e)
{
	struct history_step *s = &r->ring[r->at++ % RING];

	*s = (struct history_step){
		.at = r->at, .site = e->site, .lanes = e->lanes, .count = e->count,
		.op = e->op, .addr = (uint32_t)e->addr, .cta = e->cta, .warp = e->warp,
		.peer = e->peer, .kind = (uint8_t)kind,
	};
	return s;
}

/* The newest step of this warp that is of this kind, if it is the warp's last of
 * all; looks back a little way only. */
static struct history_step *again(struct recorder *r, enum step_kind kind, const struct event *e)
{
	for (uint64_t k = 1; k <= 16 && k <= r->at; k++) {
		struct history_step *s = &r->ring[(r->at - k) % RING];

		if (s->cta != e->cta || s->warp != e->warp)
			continue;
		return s->kind == kind && s->addr == (uint32_t)e->addr && s->peer == e->peer
			? s : NULL;
	}
	return NULL;
}

static uint32_t lanes_of(const struct event *e)
{
	return (uint32_t)__builtin_popcount(e->lanes);
}

static void touch(struct recorder *r, const struct event *e)
{
	const uint32_t key = e->site * 0x9e3779b1u + (e->cta * 64u + e->warp) * 0x85ebca6bu;

	r->touched[key >> 22] = (struct touched){ r->at, r->run, e->site, e->lanes, e->cta, e->warp,
		e->space == SP_GLOBAL || e->kind == EV_BULK || e->kind == EV_CP_ASYNC };
}

/* An access by which clusters may synchronise. How often a flag was read is luck. */
static void on_strong(struct recorder *r, const struct event *e)
{
	const enum step_kind kind = e->mode == EVM_RMW ? STEP_strong_rmw
		: e->mode == EVM_WRITE ? STEP_strong_write : STEP_strong_read;
	struct history_step *s = again(r, kind, e);

	if (!s || s->site != e->site)
		push(r, kind, e);
	else if (kind != STEP_strong_read)
		s->repeat++;
}

static void on_bulk(struct recorder *r, const struct event *e)
{
	const uint32_t addr = (uint32_t)e->addr;
	struct history_step *s;

	touch(r, e);
	if (!e->size || e->flags & EVF_PREFETCH)
		return;
	s = push(r, e->mode == EVM_READ ? STEP_bulk_store : STEP_bulk_load, e);
	s->bytes = e->size;
	s->phase = groups(r, e)->bulks;
	r->span[(addr >> 7) * 0x9e3779b1u >> 26] = (struct span){ r->run, addr, e->size, e->site };
}

static void on_init(struct recorder *r, const struct event *e)
{
	struct history_mbarrier *m = mbarrier(r, e->peer, (uint32_t)e->addr, true);

	push(r, STEP_init, e);
	if (!m)
		return;
	*m = (struct history_mbarrier){ .peer = e->peer, .addr = (uint32_t)e->addr,
		.count = e->count, .pending = e->count, .live = true };
}

static void on_inval(struct recorder *r, const struct event *e)
{
	struct history_mbarrier *m = mbarrier(r, e->peer, (uint32_t)e->addr, false);
	struct history_step *s = push(r, STEP_inval, e);

	if (m) {
		m->live = false;
		s->phase = m->phase;
	}
}

static void on_arrive(struct recorder *r, const struct event *e)
{
	const uint32_t n = lanes_of(e);
	struct history_mbarrier *m;
	struct history_step *s;
	int64_t tx = e->flags & EVF_EXPECT ? e->tx * n : 0;

	s = push(r, tx ? STEP_arrive_expect : STEP_arrive, e);
	m = mbarrier(r, e->peer, s->addr, false);
	if (e->flags & EVF_DROP && m)
		m->count -= m->count > n ? n : m->count;
	s->tx = tx;
	s->count = e->count * n;
	move_mbarrier(r, s, s->count, tx, 0);
}

static void on_test(struct recorder *r, const struct event *e)
{
	const bool passed = e->flags & EVF_TRUE;
	struct history_step *s = passed ? NULL : again(r, STEP_poll, e);
	const struct history_mbarrier *m;

	if (s) {
		s->repeat++;
		return;
	}
	s = push(r, passed ? STEP_wait : STEP_poll, e);
	m = mbarrier(r, e->peer, s->addr, false);
	if (!m)
		return;
	s->phase = m->phase;
	if (!(e->flags & EVF_PARITY))
		s->phase = (uint64_t)e->tx;
	else if ((m->phase ^ (uint64_t)e->tx) & 1)
		s->phase = m->phase - 1; /* before the first: HISTORY_NO_PHASE */
}

static void on_bar_arrive(struct recorder *r, const struct event *e)
{
	struct history_step *s = push(r, STEP_bar_arrive, e);
	struct named *n = &r->named[(e->cta % r->nctas) * NAMED + e->addr % NAMED];
	const uint32_t *block = r->info.launch->block;
	uint32_t threads = e->count ? e->count : block[0] * block[1] * block[2];

	s->peer = e->cta;
	s->phase = n->done;
	n->arrived += 32;
	if (n->arrived < threads)
		return;
	s->completes = true;
	n->arrived = 0;
	n->done++;
}

static void on_cluster_arrive(struct recorder *r, const struct event *e)
{
	struct history_step *s = push(r, STEP_cluster_arrive, e);
	const uint32_t *block = r->info.launch->block;

	s->phase = r->cluster_done;
	s->addr = 0;
	s->peer = 0;
	r->cluster_arrived += lanes_of(e);
	if (r->cluster_arrived < r->info.nctas * block[0] * block[1] * block[2])
		return;
	s->completes = true;
	r->cluster_arrived = 0;
	r->cluster_done++;
}

static void on_group_wait(struct recorder *r, const struct event *e, enum step_kind kind,
	uint64_t committed)
{
	struct history_step *s = push(r, kind, e);

	s->phase = committed > e->count ? committed - e->count : 0;
}

static void record(struct recorder *r, const struct event *e)
{
	struct history_step *s;

	switch ((enum ev_kind)e->kind) {
	case EV_ACCESS:
		if (e->space == SP_GLOBAL && (e->sem != SEM_WEAK || e->mode == EVM_RMW))
			on_strong(r, e);
		touch(r, e);
		return;
	case EV_CP_ASYNC:
		touch(r, e);
		groups(r, e)->open_copies++;
		return;
	case EV_CP_COMMIT:
		s = push(r, STEP_copy_commit, e);
		s->count = groups(r, e)->open_copies;
		groups(r, e)->open_copies = 0;
		s->phase = groups(r, e)->copies++;
		return;
	case EV_CP_WAIT:
		on_group_wait(r, e, STEP_copy_wait, groups(r, e)->copies);
		return;
	case EV_CP_ARRIVE:
		push(r, STEP_copy_arrive, e);
		return;
	case EV_BULK:
		on_bulk(r, e);
		return;
	case EV_BULK_COMMIT:
		s = push(r, STEP_bulk_commit, e);
		s->phase = groups(r, e)->bulks++;
		return;
	case EV_BULK_WAIT:
		on_group_wait(r, e, STEP_bulk_wait, groups(r, e)->bulks);
		return;
	case EV_MB_INIT:
		on_init(r, e);
		return;
	case EV_MB_INVAL:
		on_inval(r, e);
		return;
	case EV_MB_ARRIVE:
		on_arrive(r, e);
		return;
	case EV_MB_EXPECT:
		s = push(r, STEP_expect, e);
		s->tx = e->tx * lanes_of(e);
		move_mbarrier(r, s, 0, s->tx, 0);
		return;
	case EV_MB_COMPLETE:
		s = push(r, STEP_complete, e);
		s->tx = e->tx * lanes_of(e);
		move_mbarrier(r, s, 0, 0, s->tx);
		return;
	case EV_MB_SIGNAL:
		s = push(r, STEP_signal, e);
		s->tx = e->tx;
		move_mbarrier(r, s, e->count, 0, e->tx);
		return;
	case EV_MB_TEST:
		on_test(r, e);
		return;
	case EV_WG_FENCE:
		push(r, STEP_mma_fence, e);
		return;
	case EV_WG_MMA:
		touch(r, e);
		s = again(r, STEP_mma, e);
		if (s && s->phase == groups(r, e)->mmas) {
			s->repeat++;
			s->op = e->op;
			return;
		}
		s = push(r, STEP_mma, e);
		s->phase = groups(r, e)->mmas;
		return;
	case EV_WG_COMMIT:
		s = push(r, STEP_mma_commit, e);
		s->phase = groups(r, e)->mmas++;
		return;
	case EV_WG_WAIT:
		on_group_wait(r, e, STEP_mma_wait, groups(r, e)->mmas);
		return;
	case EV_BAR_ARRIVE:
		on_bar_arrive(r, e);
		return;
	case EV_BAR_RESUME:
		s = push(r, STEP_bar_leave, e);
		s->peer = e->cta;
		s->phase = r->named[(e->cta % r->nctas) * NAMED + e->addr % NAMED].done;
		s->phase -= s->phase > 0;
		return;
	case EV_WARP_SYNC:
		push(r, STEP_warp_sync, e);
		return;
	case EV_CLUSTER_ARRIVE:
		on_cluster_arrive(r, e);
		return;
	case EV_CLUSTER_WAIT:
		s = push(r, STEP_cluster_wait, e);
		s->addr = 0;
		s->peer = 0;
		s->phase = r->cluster_done - (r->cluster_done > 0);
		return;
	case EV_FENCE:
		push(r, STEP_fence, e);
		return;
	case EV_FENCE_MBINIT:
		push(r, STEP_init_fence, e);
		return;
	case EV_FENCE_PROXY:
		push(r, STEP_proxy_fence, e);
		return;
	case EV_EXIT:
		push(r, STEP_exit, e);
		return;
	case EV_CTA_BEGIN: case EV_CTA_END: case EV_MB_PENDING: case EV_REGS: case EV_WARP_MEET:
	case EV_MAP: case EV_SETMAXNREG: case EV_GRIDDEP: case EV_FAULT: case EV_BLOCKED:
	case EV_HANG: case EV_COUNT:
		return;
	}
}

static void on_event(struct event_sink *sink, const struct event *e)
{
	struct recorder *r = (struct recorder *)sink;

	record(r, e);
	r->next->event(r->next, e);
}

/* ---- the story of a finding ---- */

struct cast {                /* who and what it is about */
	struct { uint16_t cta, group; } agent[MAX_AGENTS]; /* group: four warps, as wgmma has it */
	uint32_t nagents;
	struct { uint8_t on; uint16_t peer; uint32_t addr; } object[MAX_OBJECTS];
	uint32_t nobjects;
};

/* The barrier that a step is on; 0: none. */
static uint8_t barrier_of(const struct history_step *s)
{
	const enum step_on on = step_on((enum step_kind)s->kind);

	return on <= ON_CLUSTER ? (uint8_t)on : 0;
}

static bool stars(const struct cast *c, unsigned cta, unsigned warp)
{
	for (uint32_t i = 0; i < c->nagents; i++)
		if (c->agent[i].cta == cta && c->agent[i].group == warp / 4)
			return true;
	return false;
}

static void add_agent(struct cast *c, unsigned cta, unsigned warp)
{
	if (c->nagents == MAX_AGENTS || stars(c, cta, warp))
		return;
	c->agent[c->nagents].cta = (uint16_t)cta;
	c->agent[c->nagents++].group = (uint16_t)(warp / 4);
}

static bool known_object(const struct cast *c, uint8_t on, unsigned peer, uint32_t addr)
{
	for (uint32_t i = 0; i < c->nobjects; i++)
		if (c->object[i].on == on && c->object[i].peer == peer
				&& c->object[i].addr == addr)
			return true;
	return false;
}

static void add_object(struct cast *c, uint8_t on, unsigned peer, uint32_t addr)
{
	if (!on || c->nobjects == MAX_OBJECTS || known_object(c, on, peer, addr))
		return;
	c->object[c->nobjects].on = on;
	c->object[c->nobjects].peer = (uint16_t)peer;
	c->object[c->nobjects++].addr = addr;
}

static uint64_t oldest(uint64_t at, uint32_t size)
{
	return at > size ? at - size : 0;
}

static void add_objects(const struct past *p, struct cast *c)
{
	for (uint64_t k = p->from; k < p->at; k++) {
		const struct history_step *s = &p->ring[k % p->size];

		if (stars(c, s->cta, s->warp))
			add_object(c, barrier_of(s), s->peer, s->addr);
	}
}

static void choose_cast(const struct past *p, const struct finding *f, struct cast *c)
{
	for (unsigned i = 0; i < f->nsides; i++)
		add_agent(c, f->side[i].cta, f->side[i].warp);
	for (unsigned i = 0; i < f->nwaiters; i++)
		add_agent(c, f->waiter[i].who.cta, f->waiter[i].who.warp);
	if (strstr(f->barrier.kind, "mbarrier"))
		add_object(c, ON_MBARRIER, f->barrier.peer, (uint32_t)f->barrier.addr);
	add_objects(p, c);
}

static bool same_crowd(const struct history_step *a, const struct history_step *b)
{
	return a->warp == HISTORY_OTHERS && a->kind == b->kind && a->cta == b->cta
		&& a->peer == b->peer && a->addr == b->addr && a->phase == b->phase;
}

/* The newest steps that the cast took part in, oldest last; at most `max`. Of
 * others' steps at a barrier, those of one phase are one. */
static uint32_t choose_steps(const struct past *p, const struct cast *c,
	struct history_step *out, uint32_t max, uint64_t *left)
{
	uint32_t n = 0;
	uint64_t k;

	for (k = p->at; k > p->from && n < max; k--) {
		const struct history_step *s = &p->ring[(k - 1) % p->size];
		const bool star = stars(c, s->cta, s->warp);
		const uint8_t on = barrier_of(s);
		struct history_step as = *s;
		uint32_t i = 0;

		if (!star && (!on || !known_object(c, on, s->peer, s->addr)))
			continue;
		if (!star && s->kind != STEP_signal)
			as.warp = HISTORY_OTHERS;
		while (i < n && (star || !same_crowd(&out[i], &as)))
			i++;
		if (i < n) {
			out[i].repeat++;
			out[i].completes |= s->completes;
			continue;
		}
		out[n++] = as;
	}
	*left = k;
	return n;
}

static void reverse(struct history_step *s, uint32_t n)
{
	for (uint32_t i = 0; i < n / 2; i++) {
		struct history_step t = s[i];

		s[i] = s[n - 1 - i];
		s[n - 1 - i] = t;
	}
}

static bool on_step(const struct history_step *s, const struct finding_side *side)
{
	return s->site == side->site && s->cta == side->cta
		&& (s->warp == side->warp || (s->kind == STEP_mma && s->warp / 4 == side->warp / 4));
}

/* When it last did; NULL: not known. */
static const struct touched *find_touched(const struct past *p, const struct finding_side *side)
{
	const uint32_t key = side->site * 0x9e3779b1u + (side->cta * 64u + side->warp) * 0x85ebca6bu;
	const uint32_t from = p->hashed ? key >> 22 : 0, n = p->hashed ? 1 : p->ntouched;

	for (uint32_t i = from; i < from + n; i++) {
		const struct touched *t = &p->touched[i];

		if (t->run == p->run && t->site == side->site && t->cta == side->cta
				&& t->warp == side->warp)
			return t;
	}
	return NULL;
}

/* Where side i belongs: on a step that is there, or in a new one. */
static int32_t place_side(const struct past *p, const struct finding_side *side, bool newest,
	struct history *h)
{
	const struct touched *t = find_touched(p, side);
	struct history_step s = { .at = p->at, .site = side->site, .cta = side->cta,
		.warp = side->warp, .peer = side->peer, .addr = (uint32_t)side->addr,
		.bytes = side->bytes, .kind = STEP_access,
		.lanes = side->lane >= 0 ? 1u << side->lane : 0xffffffff };
	uint32_t i;

	for (i = h->nsteps; i-- > 0;)
		if (on_step(&h->step[i], side))
			return (int32_t)i;
	if (t)
		s.at = t->at;
	else if (!newest)
		return -1;
	if (h->nsteps && s.at + 1 < h->step[0].at)
		return -1;
	for (i = h->nsteps; i && h->step[i - 1].at > s.at; i--)
		h->step[i] = h->step[i - 1];
	h->step[i] = s;
	h->nsteps++;
	return (int32_t)i;
}

static void name_of(const struct launch_info *l, uint32_t addr, char out[64])
{
	for (size_t i = 0; i < l->nsymbols; i++) {
		const struct ev_symbol *v = &l->symbols[i];

		if (addr < v->addr || addr - v->addr >= v->bytes)
			continue;
		snprintf(out, 64, addr == v->addr ? "%.50s" : "%.50s+0x%x", v->name, addr - v->addr);
		return;
	}
	snprintf(out, 64, "shared+0x%x", addr);
}

static int by_place(const void *a, const void *b)
{
	const struct history_mbarrier *m = a, *n = b;

	if (m->peer != n->peer)
		return m->peer < n->peer ? -1 : 1;
	return m->addr < n->addr ? -1 : m->addr > n->addr;
}

static void tell_mbarriers(const struct recorder *r, const struct cast *c, struct history *h)
{
	h->mbarrier = base_alloc((r->nmbarriers + 1) * sizeof *h->mbarrier);
	for (uint32_t i = 0; i < MBARRIERS; i++) {
		struct history_mbarrier *m = &h->mbarrier[h->nmbarriers];

		if (!r->used[i] || !known_object(c, ON_MBARRIER, r->mbarrier[i].peer, r->mbarrier[i].addr))
			continue;
		*m = r->mbarrier[i];
		name_of(r->info.launch, m->addr, m->name);
		h->nmbarriers++;
	}
	qsort(h->mbarrier, h->nmbarriers, sizeof *h->mbarrier, by_place);
}

static int by_addr(const void *a, const void *b)
{
	const struct history_buffer *m = a, *n = b;

	if (m->addr != n->addr)
		return m->addr < n->addr ? -1 : 1;
	return m->bytes > n->bytes ? -1 : m->bytes < n->bytes;
}

static void add_buffer(struct history *h, enum history_buffer_kind kind, uint32_t addr,
	uint32_t bytes, uint32_t site, const char *name)
{
	struct history_buffer *b = &h->buffer[h->nbuffers];

	if (!bytes || h->nbuffers == MAX_BUFFERS)
		return;
	*b = (struct history_buffer){ .kind = (uint8_t)kind, .addr = addr, .bytes = bytes, .site = site };
	snprintf(b->name, sizeof b->name, "%.60s", name);
	h->nbuffers++;
}

static void tell_buffers(const struct recorder *r, struct history *h)
{
	const struct launch_info *l = r->info.launch;

	h->shared = l->shared_static + l->shared_dynamic;
	h->buffer = base_alloc(MAX_BUFFERS * sizeof *h->buffer);
	for (size_t i = 0; i < l->nsymbols; i++)
		add_buffer(h, BUFFER_VARIABLE, l->symbols[i].addr, l->symbols[i].bytes, 0,
			l->symbols[i].name);
	if (l->shared_dynamic)
		add_buffer(h, BUFFER_DYNAMIC, h->shared - l->shared_dynamic, l->shared_dynamic, 0,
			"dynamic");
	for (uint32_t i = 0; i < SPANS; i++)
		if (r->span[i].run == r->run)
			add_buffer(h, BUFFER_STAGE, r->span[i].addr, r->span[i].bytes, r->span[i].site, "");
	qsort(h->buffer, h->nbuffers, sizeof *h->buffer, by_addr);
}

struct history *recorder_tell(struct recorder *r, const struct finding *f)
{
	struct cast cast = { .nagents = 0 };
	struct history *h;
	uint64_t left = 0;
	struct past p;

	if (!r)
		return NULL;
	p = (struct past){ r->ring, r->touched, oldest(r->at, RING), r->at, RING, TOUCHED, r->run,
		true };
	h = base_alloc(sizeof *h);
	h->step = base_alloc((r->all->steps + FINDING_SIDES) * sizeof *h->step);
	choose_cast(&p, f, &cast);
	h->nsteps = choose_steps(&p, &cast, h->step, r->all->steps, &left);
	h->before = left;
	reverse(h->step, h->nsteps);
	h->side[0] = h->side[1] = -1;
	if (f->nsides > 1)
		h->side[1] = place_side(&p, &f->side[1], false, h);
	if (f->nsides) {
		const uint32_t n = h->nsteps;

		h->side[0] = place_side(&p, &f->side[0], true, h);
		if (h->nsteps > n && h->side[1] >= h->side[0])
			h->side[1]++;
	}
	tell_mbarriers(r, &cast, h);
	tell_buffers(r, h);
	return h;
}

/* ---- two clusters ---- */

static int by_newest(const void *a, const void *b)
{
	const struct touched *t = a, *u = b;

	return t->at > u->at ? -1 : t->at < u->at;
}

/* Of clusters that others may race with in global memory. */
static void keep_tail(struct recorder *r)
{
	struct touched newest[TOUCHED];
	struct tail *t;
	uint32_t n = 0;

	if (r->info.id >= TAILS)
		return;
	for (uint32_t i = 0; i < TOUCHED; i++)
		if (r->touched[i].run == r->run && r->touched[i].global)
			newest[n++] = r->touched[i];
	if (!n)
		return;
	qsort(newest, n, sizeof *newest, by_newest);
	t = base_alloc(sizeof *t);
	t->info = r->info;
	t->at = r->at;
	t->run = r->run;
	t->ntouched = n < TAIL_TOUCHED ? n : TAIL_TOUCHED;
	memcpy(t->touched, newest, t->ntouched * sizeof *newest);
	for (uint64_t k = r->at > TAIL ? r->at - TAIL : 0; k < r->at; k++)
		t->ring[k % TAIL] = r->ring[k % RING];
	pthread_mutex_lock(&r->all->lock);
	t->next = r->all->tail;
	r->all->tail = t;
	pthread_mutex_unlock(&r->all->lock);
}

void recorders_forget(struct recorders *all)
{
	while (all && all->tail) {
		struct tail *t = all->tail;

		all->tail = t->next;
		free(t);
	}
}

static const struct tail *find_tail(const struct recorders *all, const struct finding_side *s)
{
	for (const struct tail *t = all->tail; t; t = t->next) {
		uint32_t id[3];

		if (s->cta >= t->info.nctas)
			continue;
		cluster_ctaid(&t->info, s->cta, id);
		if (!memcmp(id, s->ctaid, sizeof id))
			return t;
	}
	return NULL;
}

/* One side's part of the story, behind what is there. */
static void tell_part(const struct tail *t, const struct finding_side *side, unsigned i,
	uint32_t max, uint16_t shift, struct history *h)
{
	struct past p = { t->ring, t->touched, oldest(t->at, TAIL), t->at, TAIL, t->ntouched, t->run,
		false };
	const struct touched *when = find_touched(&p, side);
	struct history part = { .step = base_alloc((max + 1) * sizeof *part.step) };
	struct cast cast = { .nagents = 0 };
	uint64_t left = 0;

	if (when && when->at > p.from && p.at > when->at + AFTER)
		p.at = when->at + AFTER;
	add_agent(&cast, side->cta, side->warp);
	add_objects(&p, &cast);
	part.nsteps = choose_steps(&p, &cast, part.step, max, &left);
	reverse(part.step, part.nsteps);
	h->side[i] = place_side(&p, side, true, &part);
	h->before += left;
	for (uint32_t k = 0; k < part.nsteps; k++) {
		part.step[k].cta = (uint16_t)(part.step[k].cta + shift);
		part.step[k].peer = (uint16_t)(part.step[k].peer + shift);
		part.step[k].op |= shift && part.step[k].op ? 1u << 30 : 0; /* not the other's */
	}
	if (i == 0 && h->side[0] >= 0)
		h->side[0] += (int32_t)h->nsteps;
	memcpy(h->step + h->nsteps, part.step, part.nsteps * sizeof *part.step);
	h->nsteps += part.nsteps;
	free(part.step);
}

struct history *recorders_tell(struct recorders *all, const struct finding *f)
{
	const struct tail *late, *early;
	struct history *h;

	if (!all || !all->tail || f->nsides != 2 || f->side[0].space != SP_GLOBAL)
		return NULL;
	late = find_tail(all, &f->side[0]);
	early = find_tail(all, &f->side[1]);
	if (!late || !early || late == early)
		return NULL;
	h = base_alloc(sizeof *h);
	h->step = base_alloc((all->steps + 2 * FINDING_SIDES) * sizeof *h->step);
	h->other = (uint16_t)early->info.nctas;
	tell_part(early, &f->side[1], 1, (all->steps + 1) / 2, 0, h);
	tell_part(late, &f->side[0], 0, (all->steps + 1) / 2, h->other, h);
	return h;
}

/* ---- lifetimes ---- */

struct recorders *recorders_open(uint32_t steps)
{
	struct recorders *all = base_alloc(sizeof *all);

	pthread_mutex_init(&all->lock, NULL);
	all->steps = steps < RING ? steps : RING;
	return all;
}

void recorders_close(struct recorders *all)
{
	if (!all)
		return;
	recorders_forget(all);
	while (all->idle) {
		struct recorder *r = all->idle;

		all->idle = r->idle;
		free(r->named);
		free(r->groups);
		free(r);
	}
	pthread_mutex_destroy(&all->lock);
	free(all);
}

struct recorder *recorder_begin(struct recorders *all, const struct cluster_info *c)
{
	const uint32_t nwarps = c->nctas * c->warps_per_cta;
	struct recorder *r;

	if (!all || !all->steps)
		return NULL;
	pthread_mutex_lock(&all->lock);
	r = all->idle;
	if (r)
		all->idle = r->idle;
	pthread_mutex_unlock(&all->lock);
	if (!r)
		r = base_alloc(sizeof *r);
	if (r->nctas != c->nctas || r->nwarps != nwarps) {
		free(r->named);
		free(r->groups);
		r->nctas = c->nctas;
		r->nwarps = nwarps;
		r->named = base_alloc(NAMED * c->nctas * sizeof *r->named);
		r->groups = base_alloc((nwarps + 1) * sizeof *r->groups);
	} else {
		memset(r->named, 0, NAMED * c->nctas * sizeof *r->named);
		memset(r->groups, 0, nwarps * sizeof *r->groups);
	}
	if (r->nmbarriers)
		memset(r->used, 0, sizeof r->used);
	r->nmbarriers = 0;
	r->at = 0;
	r->cluster_arrived = 0;
	r->cluster_done = 0;
	r->info = *c;
	r->all = all;
	r->run++;
	return r;
}

struct event_sink *recorder_sink(struct recorder *r, struct event_sink *next)
{
	if (!r)
		return next;
	r->next = next;
	r->sink.event = on_event;
	r->sink.want_global = next->want_global;
	return &r->sink;
}

struct event_sink *recorder_next(struct event_sink *sink, struct recorder **r)
{
	*r = sink->event == on_event ? (struct recorder *)sink : NULL;
	return *r ? (*r)->next : sink;
}

void recorder_end(struct recorder *r)
{
	if (!r)
		return;
	if (r->sink.want_global)
		keep_tail(r);
	pthread_mutex_lock(&r->all->lock);
	r->idle = r->all->idle;
	r->all->idle = r;
	pthread_mutex_unlock(&r->all->lock);
}
