/* clock: frontiers. Knows agents by number only. */
#include "clock.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

/* One allocation: p, then g. */
static void set_capacity(struct clock_space *s, struct frontier *f, uint32_t cap)
{
	uint32_t *at = base_resize(f->p, (s->ngeneric + (size_t)cap) * sizeof *at);

	memset(at + s->ngeneric + f->cap, 0, (cap - f->cap) * sizeof *at);
	f->p = at;
	f->g = at + s->ngeneric;
	f->cap = cap;
}

void frontier_fit(struct clock_space *s, struct frontier *f)
{
	if (f->cap < s->nagents)
		set_capacity(s, f, (s->nagents + 31) & ~31u);
}

struct frontier *frontier_new(struct clock_space *s)
{
	struct frontier *f = s->pool;

	if (f) {
		s->pool = f->next;
		frontier_clear(s, f);
	} else {
		f = base_alloc(sizeof *f);
		set_capacity(s, f, (s->nagents + 31) & ~31u);
		memset(f->p, 0, s->ngeneric * sizeof *f->p);
		f->empty = true;
	}
	return f;
}

/* Frees the parts that few frontiers have. */
static void drop_optional(struct frontier *f)
{
	if (f->q)
		free(f->q);
	if (f->foreign)
		foreign_put(f->foreign);
	for (unsigned i = 0; i < BY_OTHERS; i++) {
		if (f->by_others[i])
			foreign_put(f->by_others[i]);
		f->by_others[i] = NULL;
	}
	f->q = NULL;
	f->foreign = NULL;
}

static uint32_t *fit_q(struct clock_space *s, struct frontier *f)
{
	if (!f->q)
		f->q = base_alloc(s->ngeneric * sizeof *f->q);
	return f->q;
}

void frontier_put(struct clock_space *s, struct frontier *f)
{
	if (!f)
		return;
	drop_optional(f);
	f->next = s->pool;
	s->pool = f;
}

void clock_space_close(struct clock_space *s)
{
	while (s->pool) {
		struct frontier *f = s->pool;

		s->pool = f->next;
		free(f->p);
		free(f->part);
		free(f);
	}
}

void frontier_clear(struct clock_space *s, struct frontier *f)
{
	if (!f->empty)
		memset(f->p, 0, (s->ngeneric + (size_t)f->cap) * sizeof *f->p);
	f->empty = true;
	f->npart = 0;
	drop_optional(f);
}

static void fit_partials(struct frontier *f, uint32_t n)
{
	if (n <= f->cap_part)
		return;
	while (f->cap_part < n)
		f->cap_part = f->cap_part ? 2 * f->cap_part : 8;
	f->part = base_resize(f->part, f->cap_part * sizeof *f->part);
}

static void push_partial(struct frontier *f, struct partial p)
{
	fit_partials(f, f->npart + 1);
	f->part[f->npart++] = p;
}

void frontier_copy(struct clock_space *s, struct frontier *f, const struct frontier *from)
{
	f->empty = from->empty;
	if (f->cap < from->cap)
		set_capacity(s, f, from->cap);
	memcpy(f->p, from->p, s->ngeneric * sizeof *f->p);
	memcpy(f->g, from->g, from->cap * sizeof *f->g);
	memset(f->g + from->cap, 0, (f->cap - from->cap) * sizeof *f->g);
	fit_partials(f, from->npart);
	if (from->npart)
		memcpy(f->part, from->part, from->npart * sizeof *f->part);
	f->npart = from->npart;
	drop_optional(f);
	if (from->q)
		memcpy(fit_q(s, f), from->q, s->ngeneric * sizeof *f->q);
	f->foreign = foreign_get(from->foreign);
	for (unsigned i = 0; i < BY_OTHERS; i++)
		f->by_others[i] = foreign_get(from->by_others[i]);
}

void frontier_forget(struct frontier *f, uint32_t agent)
{
	uint32_t left = 0;

	f->p[agent] = 0;
	if (agent < f->cap)
		f->g[agent] = 0;
	if (f->q)
		f->q[agent] = 0;
	for (uint32_t i = 0; i < f->npart; i++)
		if (f->part[i].agent != agent)
			f->part[left++] = f->part[i];
	f->npart = left;
}

static uint32_t *full_of(struct clock_space *s, struct frontier *f,
	uint32_t plane, uint32_t agent)
{
	if (plane == PLANE_P)
		return &f->p[agent];
	frontier_fit(s, f);
	return &f->g[agent];
}

/* The epoch up to which an entry of that plane is redundant: that of the vector for which the plane
 * is a weaker form of knowledge. */
static inline uint32_t redundant_up_to(const struct frontier *f, uint32_t plane, uint32_t agent)
{
	const uint32_t ngeneric = (uint32_t)(f->g - f->p);
	const uint32_t in_g = 1u << PLANE_G | 1u << PLANE_CTA_G | 1u << PLANE_NARROW
		| 1u << PLANE_SHARED_G | 1u << PLANE_COLLECTIVE_G;
	const uint32_t in_p = 1u << PLANE_P | 1u << PLANE_CTA_P | 1u << PLANE_SHARED_P
		| 1u << PLANE_COLLECTIVE_P;

	if (in_p >> plane & 1 && agent < ngeneric)
		return f->p[agent];
	if ((in_g | in_p) >> plane & 1)
		return agent < f->cap ? f->g[agent] : 0;
	if (agent >= ngeneric)
		return 0;
	if (plane == PLANE_HALF)
		return f->p[agent];
	return plane == PLANE_Q && f->q ? f->q[agent] : 0;
}

/* Drops partials that a raised vector makes redundant. */
static void drop_redundant(struct frontier *f)
{
	uint32_t i, k;

	for (i = k = 0; i < f->npart; i++)
		if (f->part[i].epoch > redundant_up_to(f, f->part[i].plane, f->part[i].agent))
			f->part[k++] = f->part[i];
	f->npart = k;
}

/* Those of one agent */
static void drop_redundant_of(struct frontier *f, uint32_t agent)
{
	uint32_t i, k;

	for (i = k = 0; i < f->npart; i++) {
		const struct partial *p = &f->part[i];

		if (p->agent != agent || p->epoch > redundant_up_to(f, p->plane, agent))
			f->part[k++] = *p;
	}
	f->npart = k;
}

/* Partials are sorted by this key, and within a key by lanes, so that two lists are joined in one
 * pass. */
static inline uint32_t key_of(const struct partial *p)
{
	return (uint32_t)p->plane << 16 | p->agent;
}

/* add_partial() where entry number `from` has this key or a later one. */
static uint32_t insert_partial(struct frontier *f, uint32_t key, uint32_t lanes, uint32_t epoch,
	uint32_t from)
{
	uint32_t i;

	for (i = from; i < f->npart && key_of(&f->part[i]) == key;) {
		struct partial *q = &f->part[i];

		if (q->lanes == lanes) { /* no other entry of this key has any of them */
			q->epoch = q->epoch > epoch ? q->epoch : epoch;
			return from;
		}
		if (q->epoch > epoch)
			lanes &= ~q->lanes;
		else if (q->epoch < epoch)
			q->lanes &= ~lanes;
		else {
			lanes |= q->lanes;
			q->lanes = 0;
		}
		if (!lanes)
			return from;
		if (q->lanes)
			i++;
		else
			memmove(q, q + 1, (--f->npart - i) * sizeof *q);
	}
	while (i > from && f->part[i - 1].lanes > lanes)
		i--;
	push_partial(f, (struct partial){ 0 });
	memmove(&f->part[i + 1], &f->part[i], (f->npart - 1 - i) * sizeof *f->part);
	f->part[i] = (struct partial){ (uint16_t)key, (uint16_t)(key >> 16), lanes, epoch };
	return from;
}

/* Adds an entry, keeps the newest epoch for each lane and drops empty entries. No entry before number
 * `from` may have this key; the result is such a number for it and later keys. (Arguments in registers: a
 * struct of several stores that is then loaded as words stalls.) */
static inline uint32_t add_partial(struct frontier *f, uint32_t plane, uint32_t agent, uint32_t lanes,
	uint32_t epoch, uint32_t from)
{
	const uint32_t key = plane << 16 | agent;

	if (epoch <= redundant_up_to(f, plane, agent))
		return from;
	while (from < f->npart && key_of(&f->part[from]) < key)
		from++;
	if (from < f->npart)
		return insert_partial(f, key, lanes, epoch, from);
	push_partial(f, (struct partial){ (uint16_t)agent, (uint16_t)plane, lanes, epoch });
	return from;
}

void frontier_add(struct clock_space *s, struct frontier *f, enum plane plane,
	uint32_t agent, uint32_t lanes, uint32_t all, uint32_t epoch)
{
	uint32_t *full, least = epoch, left, i;

	f->empty = false;
	if (plane == PLANE_Q && !(all & ~lanes)) {
		full = &fit_q(s, f)[agent];
		*full = *full > epoch ? *full : epoch;
		return;
	}
	if (plane > PLANE_P) {
		if (lanes)
			add_partial(f, plane, agent, all & ~lanes ? lanes : UINT32_MAX, epoch, 0);
		return;
	}
	full = full_of(s, f, plane, agent);
	if (epoch <= *full || !lanes)
		return;
	if (!(all & ~lanes)) {
		*full = epoch; /* what is redundant now is dropped when it is looked at */
		return;
	}
	drop_redundant_of(f, agent);
	i = add_partial(f, plane, agent, lanes, epoch, 0);
	/* lanes that were added one by one may be complete now */
	for (left = all; i < f->npart && key_of(&f->part[i]) == (plane << 16 | agent); i++) {
		left &= ~f->part[i].lanes;
		if (f->part[i].epoch < least)
			least = f->part[i].epoch;
	}
	if (left)
		return;
	*full = least;
	drop_redundant_of(f, agent);
}

/* Elements at a time: the compiler makes vectors of loops of such a constant length only. */
#define WIDE 32u

/* Not zero: some element was raised. */
static inline uint32_t raise_some(uint32_t *restrict to, const uint32_t *restrict from, size_t n)
{
	uint32_t raised = 0;

	for (size_t i = 0; i < n; i++) {
		const uint32_t x = from[i] > to[i] ? from[i] : to[i];

		raised |= x ^ to[i];
		to[i] = x;
	}
	return raised;
}

static bool raise(uint32_t *restrict to, const uint32_t *restrict from, uint32_t n)
{
	uint32_t raised = 0;

	for (; n >= WIDE; n -= WIDE, to += WIDE, from += WIDE)
		raised |= raise_some(to, from, WIDE);
	return raised | raise_some(to, from, n);
}

static inline bool same_lanes(const struct partial *a, const struct partial *b)
{
	return a->agent == b->agent && a->plane == b->plane && a->lanes == b->lanes;
}

/* Mostly both lists have the same elected lanes, or one of the lists is new. */
static void join_partials(struct frontier *f, const struct frontier *from)
{
	uint32_t i, at = 0;

	for (i = 0; i < from->npart; i++) {
		const struct partial p = from->part[i];

		while (at < f->npart && key_of(&f->part[at]) < key_of(&p))
			at++;
		if (at < f->npart && same_lanes(&f->part[at], &p)) {
			if (f->part[at].epoch < p.epoch)
				f->part[at].epoch = p.epoch;
			at++;
			continue;
		}
		while (at > 0 && key_of(&f->part[at - 1]) == key_of(&p))
			at--;
		at = add_partial(f, p.plane, p.agent, p.lanes, p.epoch, at);
	}
}

void frontier_join(struct clock_space *s, struct frontier *f, const struct frontier *from)
{
	bool raised;

	s->joins++;
	if (from->foreign && from->foreign != f->foreign)
		foreign_join(&f->foreign, from->foreign);
	for (unsigned i = 0; i < BY_OTHERS; i++)
		if (from->by_others[i] && from->by_others[i] != f->by_others[i])
			foreign_join(&f->by_others[i], from->by_others[i]);
	if (from->empty)
		return;
	f->empty = false;
	if (f->cap < from->cap)
		set_capacity(s, f, from->cap);
	if (from->q)
		raise(fit_q(s, f), from->q, s->ngeneric);
	raised = raise(f->p, from->p, 2 * s->ngeneric); /* g begins where p ends */
	raise(f->g + s->ngeneric, from->g + s->ngeneric, from->cap - s->ngeneric);
	join_partials(f, from);
	/* A redundant entry costs time. Those of asynchronous agents, which are few, may stay until
	 * others are dropped. */
	if (f->npart && raised)
		drop_redundant(f);
}

/* Not zero: some element of a is less. */
static inline uint32_t some_less(const uint32_t *a, const uint32_t *b, size_t n)
{
	uint32_t less = 0;

	for (size_t i = 0; i < n; i++)
		less |= (uint32_t)(b[i] > a[i]);
	return less;
}

static bool at_least(const uint32_t *a, const uint32_t *b, uint32_t n)
{
	uint32_t less = 0;

	for (; n >= WIDE; n -= WIDE, a += WIDE, b += WIDE)
		less |= some_less(a, b, WIDE);
	return !(less | some_less(a, b, n));
}

bool frontier_covers(const struct frontier *f, const struct frontier *of)
{
	uint32_t i, k, n = (uint32_t)(of->g - of->p) + of->cap, have;

	/* p and g are one array, see set_capacity() */
	have = (uint32_t)(f->g - f->p) + f->cap;
	if (!at_least(f->p, of->p, n < have ? n : have))
		return false;
	for (i = have; i < n; i++)
		if (of->p[i])
			return false;
	for (i = 0; of->q && i < (uint32_t)(of->g - of->p); i++)
		if (of->q[i] > (f->q ? f->q[i] : 0))
			return false;
	if (!foreign_covers(f->foreign, of->foreign))
		return false;
	for (i = 0; i < BY_OTHERS; i++)
		if (!foreign_covers(f->by_others[i], of->by_others[i]))
			return false;
	for (i = 0; i < of->npart; i++) {
		const struct partial *p = &of->part[i];
		uint32_t left = p->lanes;

		if (redundant_up_to(f, p->plane, p->agent) >= p->epoch)
			continue;
		for (k = 0; k < f->npart; k++)
			if (f->part[k].agent == p->agent && f->part[k].plane == p->plane
				&& f->part[k].epoch >= p->epoch)
				left &= ~f->part[k].lanes;
		if (left)
			return false;
	}
	return true;
}

static struct agent_range everyone(const struct clock_space *s)
{
	return (struct agent_range){ 0, s->ngeneric, s->ngeneric };
}

/* Adds the partials of f's plane `from`, of the range's generic agents, to its plane `to`, and, if
 * `async`, those of asynchronous agents to FENCED. */
static void copy_partials(struct clock_space *s, struct frontier *f, enum plane from, enum plane to,
	struct agent_range r, bool async)
{
	struct partial *was;
	uint32_t i, n = 0;

	for (i = 0; i < f->npart; i++)
		n += f->part[i].plane == (uint16_t)from && (async || f->part[i].agent < s->ngeneric);
	if (!n)
		return;
	n = f->npart;
	was = base_alloc(n * sizeof *was);
	memcpy(was, f->part, n * sizeof *was);
	for (i = 0; i < n; i++) {
		const struct partial *p = &was[i];
		const bool generic = p->agent < s->ngeneric;

		if (p->plane == (uint16_t)from && (generic ? p->agent % r.step - r.first < r.n : async))
			frontier_add(s, f, generic ? to : PLANE_FENCED, p->agent, p->lanes, UINT32_MAX, p->epoch);
	}
	free(was);
}

void frontier_fence(struct clock_space *s, struct frontier *f, struct agent_range r)
{
	for (uint32_t a = r.first; a < s->ngeneric; a += r.step)
		raise(f->p + a, f->g + a, r.n);
	drop_redundant(f);
	copy_partials(s, f, PLANE_G, PLANE_P, r, false);
	copy_partials(s, f, PLANE_CTA_G, PLANE_CTA_P, r, false);
	copy_partials(s, f, PLANE_SHARED_G, PLANE_SHARED_P, r, false);
	copy_partials(s, f, PLANE_COLLECTIVE_G, PLANE_COLLECTIVE_P, r, false);
}

void frontier_fence_agent(struct clock_space *s, struct frontier *f, enum plane to, uint32_t agent)
{
	if (agent < f->cap && f->g[agent])
		frontier_add(s, f, to, agent, UINT32_MAX, UINT32_MAX, f->g[agent]);
	/* `to` sorts after G: what is added is not found again */
	for (uint32_t i = 0; i < f->npart; i++) {
		const struct partial p = f->part[i];

		if (p.plane == PLANE_G && p.agent == agent)
			frontier_add(s, f, to, agent, p.lanes, UINT32_MAX, p.epoch);
	}
}

void frontier_fence_global(struct clock_space *s, struct frontier *f)
{
	raise(fit_q(s, f), f->g, s->ngeneric);
	drop_redundant(f);
	copy_partials(s, f, PLANE_G, PLANE_Q, everyone(s), false);
	if (f->foreign)
		foreign_fence(&f->foreign);
}

void frontier_half(struct clock_space *s, struct frontier *f, struct agent_range r)
{
	for (uint32_t a = 0; a < s->ngeneric; a++)
		if (f->g[a] > f->p[a] && a % r.step - r.first < r.n)
			frontier_add(s, f, PLANE_HALF, a, UINT32_MAX, UINT32_MAX, f->g[a]);
	copy_partials(s, f, PLANE_G, PLANE_HALF, r, false);
}

void frontier_whole(struct clock_space *s, struct frontier *f)
{
	copy_partials(s, f, PLANE_HALF, PLANE_P, everyone(s), true);
}

void frontier_join_range_as(struct frontier *f, enum plane to, const struct frontier *from,
	enum plane plane, uint32_t first, uint32_t n)
{
	const uint32_t *full = plane == PLANE_P ? from->p : from->g;
	const uint32_t known = plane == PLANE_P ? (uint32_t)(from->g - from->p)
		: plane == PLANE_G ? from->cap : 0;
	uint32_t at = 0;

	f->empty = false;
	for (uint32_t a = first; a - first < n && a < known; a++)
		if (full[a])
			at = add_partial(f, to, a, UINT32_MAX, full[a], at);
	for (uint32_t i = 0; i < from->npart; i++) {
		const struct partial *p = &from->part[i];

		if (!i || p->plane != p[-1].plane)
			at = 0;
		if ((p->plane == (uint16_t)plane || p->plane == (uint16_t)to) && p->agent - first < n)
			at = add_partial(f, to, p->agent, p->lanes, p->epoch, at);
	}
}

void frontier_join_as(struct frontier *f, enum plane to, const struct frontier *from,
	enum plane plane)
{
	frontier_join_range_as(f, to, from, plane, 0, UINT32_MAX);
}

void frontier_join_shared(struct clock_space *s, struct frontier *f, const struct frontier *from)
{
	frontier_join_as(f, PLANE_SHARED_G, from, PLANE_G);
	frontier_join_as(f, PLANE_SHARED_P, from, PLANE_P);
	for (uint32_t i = 0; i < from->npart; i++) {
		const struct partial *p = &from->part[i];

		if (p->plane == PLANE_CTA_G || p->plane == PLANE_CTA_P || p->plane == PLANE_HALF
			|| p->plane == PLANE_FENCED || p->plane >= PLANE_MEMORY)
			frontier_add(s, f, (enum plane)p->plane, p->agent, p->lanes, UINT32_MAX, p->epoch);
	}
}

uint32_t frontier_lanes(const struct clock_space *s, const struct frontier *f,
	enum plane plane, uint32_t agent, uint32_t epoch)
{
	uint32_t lanes = 0, i;

	if (plane == PLANE_P && agent >= s->ngeneric)
		plane = PLANE_G;
	for (i = 0; i < f->npart; i++)
		if (f->part[i].agent == agent && f->part[i].plane == (uint16_t)plane
			&& f->part[i].epoch >= epoch)
			lanes |= f->part[i].lanes;
	return lanes;
}

bool frontier_knows(const struct clock_space *s, const struct frontier *f, uint32_t agent,
	uint32_t lanes, uint32_t epoch)
{
	return frontier_full(s, f, PLANE_G, agent) >= epoch
		|| !(lanes & ~frontier_lanes(s, f, PLANE_G, agent, epoch));
}

bool frontier_knows_one(const struct clock_space *s, const struct frontier *f, uint32_t agent,
	uint32_t lanes, uint32_t epoch)
{
	return frontier_full(s, f, PLANE_G, agent) >= epoch
		|| frontier_lanes(s, f, PLANE_G, agent, epoch) & lanes;
}
