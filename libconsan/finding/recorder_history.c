/* recorder_history: makes the history of a finding from a recorder's data: the participating
 * warps and objects, their newest steps, and the position of the finding's sides. For a finding
 * about one cluster while it runs, for one about two clusters after both have ended. */
#include "recorder_internal.h"

#include "libconsan/base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_AGENTS 24u   /* participating warps */
#define MAX_OBJECTS 64u
#define MAX_BUFFERS 96u
#define AFTER 24u        /* steps kept after the access, of a cluster that has ended */

/* The source of the steps: a recorder's ring, or a tail. */
struct step_log {
	const struct history_step *ring;
	const struct last_access *access;
	uint64_t from, at;   /* range of steps: the newest is ring[(at - 1) % size] */
	uint32_t size, naccesses, run;
	bool hashed;         /* access is recorder.access, else a list */
};

/* ---- one cluster ---- */

struct participants {       /* warps and objects of the history */
	struct { uint16_t cta, group; } agent[MAX_AGENTS]; /* group: warpgroup */
	uint32_t nagents;
	struct { uint8_t on; uint16_t peer; uint32_t addr; } object[MAX_OBJECTS];
	uint32_t nobjects;
};

/* The kind of barrier of a step, enum step_on; 0: none. */
static uint8_t barrier_of(const struct history_step *s)
{
	const enum step_on on = step_on((enum step_kind)s->kind);

	return on <= ON_CLUSTER ? (uint8_t)on : 0;
}

static bool participates(const struct participants *c, unsigned cta, unsigned warp)
{
	for (uint32_t i = 0; i < c->nagents; i++)
		if (c->agent[i].cta == cta && c->agent[i].group == warp / 4)
			return true;
	return false;
}

static void add_agent(struct participants *c, unsigned cta, unsigned warp)
{
	if (c->nagents == MAX_AGENTS || participates(c, cta, warp))
		return;
	c->agent[c->nagents].cta = (uint16_t)cta;
	c->agent[c->nagents++].group = (uint16_t)(warp / 4);
}

static bool known_object(const struct participants *c, uint8_t on, unsigned peer, uint32_t addr)
{
	for (uint32_t i = 0; i < c->nobjects; i++)
		if (c->object[i].on == on && c->object[i].peer == peer
				&& c->object[i].addr == addr)
			return true;
	return false;
}

static void add_object(struct participants *c, uint8_t on, unsigned peer, uint32_t addr)
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

static void add_objects(const struct step_log *p, struct participants *c)
{
	for (uint64_t k = p->from; k < p->at; k++) {
		const struct history_step *s = &p->ring[k % p->size];

		if (participates(c, s->cta, s->warp))
			add_object(c, barrier_of(s), s->peer, s->addr);
	}
}

static void choose_participants(const struct step_log *p, const struct finding *f,
	struct participants *c)
{
	for (unsigned i = 0; i < f->nsides; i++)
		add_agent(c, f->side[i].cta, f->side[i].warp);
	for (unsigned i = 0; i < f->nwaiters; i++)
		add_agent(c, f->waiter[i].who.cta, f->waiter[i].who.warp);
	if (strstr(f->barrier.kind, "mbarrier"))
		add_object(c, ON_MBARRIER, f->barrier.peer, (uint32_t)f->barrier.addr);
	add_objects(p, c);
}

static bool same_others(const struct history_step *a, const struct history_step *b)
{
	return a->warp == HISTORY_OTHERS && a->kind == b->kind && a->cta == b->cta
		&& a->peer == b->peer && a->addr == b->addr && a->phase == b->phase;
}

/* Collects the newest steps of the participants, the oldest last; at most `max`. Steps of other
 * warps on the same objects become one step for each phase. *left: number of older steps. */
static uint32_t choose_steps(const struct step_log *p, const struct participants *c,
	struct history_step *out, uint32_t max, uint64_t *left)
{
	uint32_t n = 0;
	uint64_t k;

	for (k = p->at; k > p->from && n < max; k--) {
		const struct history_step *s = &p->ring[(k - 1) % p->size];
		const bool own = participates(c, s->cta, s->warp);
		const uint8_t on = barrier_of(s);
		struct history_step as = *s;
		uint32_t i = 0;

		if (!own && (!on || !known_object(c, on, s->peer, s->addr)))
			continue;
		if (!own && !step_is_signal((enum step_kind)s->kind))
			as.warp = HISTORY_OTHERS;
		while (i < n && (own || !same_others(&out[i], &as)))
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

static bool is_step_of(const struct history_step *s, const struct finding_side *side)
{
	return s->site == side->site && s->cta == side->cta
		&& (s->warp == side->warp
		|| (s->kind == STEP_mma && s->warp / 4 == side->warp / 4));
}

/* The last execution of the side's access; NULL if unknown. */
static const struct last_access *find_access(const struct step_log *p,
	const struct finding_side *side)
{
	const uint32_t warp = access_warp(side->cta, side->warp);
	const uint32_t from = p->hashed ? access_slot(side->site, warp) : 0;
	const uint32_t n = p->hashed ? 1 : p->naccesses;

	for (uint32_t i = from; i < from + n; i++) {
		const struct last_access *t = &p->access[i];

		if (t->run == p->run && t->site == side->site && t->warp == warp)
			return t;
	}
	return NULL;
}

/* Returns the index of the side's step; adds a step if there is none. -1: it is older than all
 * steps. newest: a side whose time is unknown is the last step. */
static int32_t place_side(const struct step_log *p, const struct finding_side *side, bool newest,
	struct history *h)
{
	const struct last_access *t = find_access(p, side);
	struct history_step s = { .at = p->at, .site = side->site, .cta = side->cta,
		.warp = side->warp, .peer = side->peer, .addr = (uint32_t)side->addr,
		.bytes = side->bytes, .kind = STEP_access,
		.lanes = side->lane >= 0 ? 1u << side->lane : 0xffffffff };
	uint32_t i;

	for (i = h->nsteps; i-- > 0;)
		if (is_step_of(&h->step[i], side))
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

static int by_place(const void *a, const void *b)
{
	const struct history_mbarrier *m = a, *n = b;

	if (m->peer != n->peer)
		return m->peer < n->peer ? -1 : 1;
	return m->addr < n->addr ? -1 : m->addr > n->addr;
}

static void copy_mbarriers(const struct recorder *r, const struct participants *c,
	struct history *h)
{
	h->mbarrier = base_alloc((r->nmbarriers + 1) * sizeof *h->mbarrier);
	for (uint32_t i = 0; i < MBARRIERS; i++) {
		struct history_mbarrier *m = &h->mbarrier[h->nmbarriers];

		if (!r->used[i] || !known_object(c, ON_MBARRIER, r->mbarrier[i].peer,
				r->mbarrier[i].addr))
			continue;
		*m = r->mbarrier[i];
		launch_symbol(r->info.launch, m->addr, true, m->name, sizeof m->name);
		if (!*m->name)
			snprintf(m->name, sizeof m->name, "shared+0x%x", m->addr);
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
	*b = (struct history_buffer){ .kind = (uint8_t)kind, .addr = addr, .bytes = bytes,
		.site = site };
	snprintf(b->name, sizeof b->name, "%.60s", name);
	h->nbuffers++;
}

static void copy_buffers(const struct recorder *r, struct history *h)
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
	for (uint32_t i = 0; i < COPIED; i++)
		if (r->copied[i].run == r->run)
			add_buffer(h, BUFFER_STAGE, r->copied[i].addr, r->copied[i].bytes,
				r->copied[i].site, "");
	for (uint32_t i = 0; i < COLUMNS; i++) {
		const struct columns *c = &r->columns[i];
		const uint32_t n = h->nbuffers;

		add_buffer(h, BUFFER_COLUMNS, c->column, c->n, c->site, "");
		if (h->nbuffers > n)
			h->buffer[n].peer = c->cta;
	}
	qsort(h->buffer, h->nbuffers, sizeof *h->buffer, by_addr);
}

struct history *recorder_history(struct recorder *r, const struct finding *f)
{
	struct participants who = { .nagents = 0 };
	struct history *h;
	uint64_t left = 0;
	struct step_log p;

	if (!r)
		return NULL;
	p = (struct step_log){ r->ring, r->access, oldest(r->at, RING), r->at, RING, ACCESSES,
		r->run, true };
	h = base_alloc(sizeof *h);
	h->step = base_alloc((r->all->steps + FINDING_SIDES) * sizeof *h->step);
	choose_participants(&p, f, &who);
	h->nsteps = choose_steps(&p, &who, h->step, r->all->steps, &left);
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
	copy_mbarriers(r, &who, h);
	copy_buffers(r, h);
	return h;
}

/* ---- two clusters ---- */

static int by_newest(const void *a, const void *b)
{
	const struct last_access *t = a, *u = b;

	return t->at > u->at ? -1 : t->at < u->at;
}

struct recorded *recorder_steps(const struct recorder *r)
{
	/* the stack may be small: it can be the program's */
	struct last_access *newest = base_alloc(ACCESSES * sizeof *newest);
	struct recorded *s = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < ACCESSES; i++)
		if (r->access[i].run == r->run && r->access[i].global)
			newest[n++] = r->access[i];
	if (n) {
		qsort(newest, n, sizeof *newest, by_newest);
		s = base_alloc(sizeof *s);
		s->refs = 1;
		s->at = r->at;
		s->run = r->run;
		s->naccesses = n < TAIL_ACCESSES ? n : TAIL_ACCESSES;
		memcpy(s->access, newest, s->naccesses * sizeof *newest);
	}
	free(newest);
	if (!s)
		return NULL;
	for (uint64_t k = r->at > TAIL ? r->at - TAIL : 0; k < r->at; k++)
		s->ring[k % TAIL] = r->ring[k % RING];
	return s;
}

struct recorded *recorded_get(struct recorded *s)
{
	__atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED);
	return s;
}

void recorded_put(struct recorded *s)
{
	if (s && !__atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
		free(s);
}

void recorder_keep_tail(struct recorder *r, struct recorded *steps)
{
	struct tail *t = base_alloc(sizeof *t);

	t->info = r->info;
	t->steps = steps;
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
		recorded_put(t->steps);
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

/* Appends the steps of side i's cluster to h. */
static void add_cluster(const struct tail *t, const struct finding_side *side, unsigned i,
	uint32_t max, uint16_t shift, struct history *h)
{
	const struct recorded *s = t->steps;
	struct step_log p = { s->ring, s->access, oldest(s->at, TAIL), s->at, TAIL, s->naccesses,
		s->run, false };
	const struct last_access *when = find_access(&p, side);
	struct history part = { .step = base_alloc((max + 1) * sizeof *part.step) };
	struct participants who = { .nagents = 0 };
	uint64_t left = 0;

	if (when && when->at > p.from && p.at > when->at + AFTER)
		p.at = when->at + AFTER;
	add_agent(&who, side->cta, side->warp);
	add_objects(&p, &who);
	part.nsteps = choose_steps(&p, &who, part.step, max, &left);
	reverse(part.step, part.nsteps);
	h->side[i] = place_side(&p, side, true, &part);
	h->before += left;
	for (uint32_t k = 0; k < part.nsteps; k++) {
		part.step[k].cta = (uint16_t)(part.step[k].cta + shift);
		part.step[k].peer = (uint16_t)(part.step[k].peer + shift);
		if (shift && part.step[k].op) /* must differ from those of the other cluster */
			part.step[k].op |= 1u << 30;
	}
	if (i == 0 && h->side[0] >= 0)
		h->side[0] += (int32_t)h->nsteps;
	memcpy(h->step + h->nsteps, part.step, part.nsteps * sizeof *part.step);
	h->nsteps += part.nsteps;
	free(part.step);
}

struct history *recorders_history(struct recorders *all, const struct finding *f)
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
	add_cluster(early, &f->side[1], 1, (all->steps + 1) / 2, 0, h);
	add_cluster(late, &f->side[0], 0, (all->steps + 1) / 2, h->other, h);
	return h;
}
