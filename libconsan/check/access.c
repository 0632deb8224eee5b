/* access: accesses to shared memory by threads, split into granules for the shadow; flags and locks
 * made of strong accesses. The shadow finds conflicts and calls race.c to classify them. */
#include "global.h"

#include <stdlib.h>
#include <string.h>

void view_open(struct view *v, struct cluster *c, struct warp *w, uint32_t lanes,
	const struct frontier *f, enum async_role role, uint16_t peer)
{
	bool async = role >= ROLE_BULK_LOAD;

	frontier_fit(&c->space, (struct frontier *)f);
	v->s = (struct shadow_view){
		.known_generic = async ? f->p : f->g, .known = f->g,
		.ngeneric = c->space.ngeneric,
		.self = role == ROLE_GENERIC ? w->index : NO_AGENT,
		.classify = race_classify, .invalid = race_invalid,
	};
	/* K6, st.async: accesses by engines are classified, known or not */
	if (async && (c->check->config.policy.async_across_ctas || c->generic_slots))
		v->s.known = c->zero_epochs;
	v->c = c;
	v->w = w;
	v->f = f;
	v->role = role;
	v->plane = async ? PLANE_P : PLANE_G;
	v->peer = peer;
	v->lanes = lanes;
	v->last_guard = UINT32_MAX;
	v->wgmma_warp = 0;
	v->last_entry.bytes = 0;
}

static uint32_t log2_of(uint32_t size)
{
	return (uint32_t)__builtin_ctz(size);
}

/* Lanes that access arbitrary addresses, `size` bytes each, naturally aligned. */
struct scatter {
	unsigned n;
	uint32_t addr[32], lanes[32];
};

static void gather(struct scatter *s, const struct lanes_access *x, uint32_t lanes, uint32_t shift)
{
	uint8_t place[64];

	memset(place, 0xff, sizeof place);
	s->n = 0;
	for (; lanes; lanes &= lanes - 1) {
		unsigned l = (unsigned)__builtin_ctz(lanes), h;
		uint32_t a = (uint32_t)lane_addr(x->at, l);

		for (h = a >> shift & 63; place[h] != 0xff && s->addr[place[h]] != a;)
			h = (h + 1) & 63;
		if (place[h] == 0xff) {
			place[h] = (uint8_t)s->n;
			s->addr[s->n] = a;
			s->lanes[s->n++] = 0;
		}
		s->lanes[place[h]] |= 1u << l;
	}
}

/* Adjacent addresses in a granule that belong to consecutive lanes become one entry. */
static void touch_scatter(struct view *v, struct shadow *s, const struct lanes_access *x,
	const struct scatter *sc, uint32_t shift, struct cell_entry now)
{
	uint32_t size = 1u << shift, granule = 0;
	bool weak_write = (now.what & (CELL_WRITE | CELL_STRONG)) == CELL_WRITE;

	now.bytes = 0;
	for (unsigned i = 0; i < sc->n; i++) {
		uint32_t off = sc->addr[i] % CELL_BYTES, g = sc->addr[i] / CELL_BYTES;
		uint32_t lanes = cell_lanes(sc->lanes[i], sc->addr[i], shift);
		uint32_t bytes = ((1u << size) - 1) << off;

		if (weak_write && sc->lanes[i] & (sc->lanes[i] - 1))
			race_one_instruction(v->c, x, sc->lanes[i], sc->addr[i]);
		if (now.bytes && g == granule && lanes == now.lanes) {
			now.bytes |= (uint16_t)bytes;
			continue;
		}
		if (now.bytes)
			shadow_touch(s, &v->s, granule, now);
		granule = g;
		now.lanes = lanes;
		now.bytes = (uint16_t)bytes;
	}
	if (now.bytes)
		shadow_touch(s, &v->s, granule, now);
}

static bool is_run(const struct ev_lanes *at, uint32_t bytes, uint32_t lanes, unsigned first,
	unsigned count)
{
	uint64_t base, step = bytes;

	if (lanes >> first != (count == 32 ? UINT32_MAX : (1u << count) - 1))
		return false;
	if (!at->lane)
		return count == 1 || at->stride == (int64_t)bytes;
	base = at->lane[first];
	for (unsigned i = 1; i < count; i++)
		if (at->lane[first + i] != base + i * step)
			return false;
	return true;
}

/* Records the accesses of `lanes` in shared memory as entries like `now`. */
static void touch_lanes(struct view *v, const struct lanes_access *x, uint32_t lanes,
	struct cell_entry now)
{
	struct shadow *s = &v->c->cta[v->peer].shadow;
	unsigned first = (unsigned)__builtin_ctz(lanes);
	unsigned count = (unsigned)__builtin_popcount(lanes);
	uint32_t a = (uint32_t)lane_addr(x->at, first), shift;
	struct scatter sc;

	if (!x->bytes)
		return;
	if (x->spans->n) {
		now.what |= CELL_SAME;
		now.lanes = lanes;
		shadow_spans(s, &v->s, x->spans->at, x->spans->n, now);
		return;
	}
	if (x->bytes > CELL_BYTES || x->bytes & (x->bytes - 1) || a & (x->bytes - 1)) {
		/* no single pattern of lanes: one lane after the other */
		now.what |= CELL_SAME;
		for (; lanes; lanes &= lanes - 1) {
			unsigned l = (unsigned)__builtin_ctz(lanes);
			struct ev_span span = { (uint32_t)lane_addr(x->at, l), x->bytes };

			now.lanes = 1u << l;
			shadow_spans(s, &v->s, &span, 1, now);
		}
		return;
	}
	shift = log2_of(x->bytes);
	now.what |= shift << CELL_SHIFT_AT;
	if (is_run(x->at, x->bytes, lanes, first, count)) {
		struct ev_span span = { a, count << shift };

		now.lanes = cell_lanes(1u << first, a, shift);
		shadow_spans(s, &v->s, &span, 1, now);
		return;
	}
	if (shift == 4) { /* ldmatrix, vectors of 16 bytes, cp.async */
		uint64_t seen[4] = { 0 };
		uint32_t at[32], twice = 0;

		for (uint32_t m = lanes; m; m &= m - 1) {
			unsigned l = (unsigned)__builtin_ctz(m);
			uint32_t g;

			at[l] = (uint32_t)lane_addr(x->at, l);
			g = at[l] / CELL_BYTES;
			twice |= seen[g / 64 % 4] >> (g % 64) & 1;
			seen[g / 64 % 4] |= 1ull << (g % 64);
		}
		if (!twice || !(now.what & CELL_WRITE)) {
			shadow_rows(s, &v->s, at, lanes, now);
			return;
		}
	}
	gather(&sc, x, lanes, shift);
	for (unsigned i = 0; i < sc.n; i++)
		shadow_fetch(s, sc.addr[i] / CELL_BYTES);
	touch_scatter(v, s, x, &sc, shift, now);
}

/* ---- strong locations: flags, locks, counters in shared memory (A07) ---- */

static uint32_t hash_place(unsigned cta, uint32_t addr)
{
	return (cta << 16 ^ addr >> 2) * 0x9e3779b1u >> 7;
}

static struct flag *flag_find(struct cluster *c, unsigned cta, uint32_t addr, bool make)
{
	uint32_t i;

	if (!c->nflags && !make)
		return NULL;
	if (make && 2 * (c->nflags + 1) > c->cap_flags) {
		struct flag *old = c->flag;
		uint32_t cap = c->cap_flags;

		c->cap_flags = cap ? 2 * cap : 64;
		c->flag = base_alloc(c->cap_flags * sizeof *c->flag);
		for (i = 0; i < cap; i++)
			if (!old[i].used) {
				free(old[i].heads.at);
			} else {
				uint32_t k = hash_place(old[i].cta, old[i].addr);

				while (c->flag[k & (c->cap_flags - 1)].used)
					k++;
				c->flag[k & (c->cap_flags - 1)] = old[i];
			}
		free(old);
	}
	for (i = hash_place(cta, addr);; i++) {
		struct flag *f = &c->flag[i & (c->cap_flags - 1)];

		if (f->used && f->cta == cta && f->addr == addr)
			return f;
		if (f->used)
			continue;
		if (!make)
			return NULL;
		f->cta = (uint16_t)cta;
		f->addr = addr;
		f->used = true;
		c->nflags++;
		return f;
	}
}

/* A store begins a new chain of writes. */
static void flag_clear(struct cluster *c, struct flag *f)
{
	while (f->heads.n)
		frontier_put(&c->space, f->heads.at[--f->heads.n].f);
}

static struct frontier *flag_head(struct cluster *c, struct flag *f, unsigned cta, bool wide)
{
	for (size_t i = 0; i < f->heads.n; i++)
		if (f->heads.at[i].cta == cta && f->heads.at[i].wide == wide)
			return f->heads.at[i].f;
	vec_push(&f->heads, ((struct head){ (uint16_t)cta, wide, frontier_new(&c->space) }));
	return f->heads.at[f->heads.n - 1].f;
}

void flags_reset(struct cluster *c)
{
	for (uint32_t i = 0; c->nflags && i < c->cap_flags; i++) {
		flag_clear(c, &c->flag[i]);
		c->flag[i].used = false;
	}
	c->nflags = 0;
}

void flags_free(struct cluster *c)
{
	for (uint32_t i = 0; i < c->cap_flags; i++)
		free(c->flag[i].heads.at);
	free(c->flag);
}

/* Reads acquire what the write chain has released before the instruction; warp_order_rmw() orders
 * lanes of the same instruction. Releases of another CTA's threads are acquired only if both scopes
 * include both threads (A07, G09). */
static void strong_reads(struct cluster *c, struct warp *w, const struct event *e)
{
	const struct event_access *a = access_of(e);
	struct frontier *others;

	if (!c->nflags || !(a->mode & MODE_READ) || a->flags & ACCESS_REDUCTION)
		return;
	others = e->kind == EV_OBSERVED ? frontier_new(&c->space) : NULL;
	for (uint32_t m = e->lanes; m; m &= m - 1) {
		unsigned l = (unsigned)__builtin_ctz(m);
		struct flag *f = flag_find(c, a->owner, (uint32_t)lane_addr(&a->at, l), false);

		for (size_t i = 0; f && i < f->heads.n; i++) {
			const struct head *h = &f->heads.at[i];
			bool remote = h->cta != w->cta;
			const struct frontier *from = h->f;

			if (e->kind == EV_OBSERVED) { /* lanes of one atomic do not order each other */
				frontier_copy(&c->space, others, from);
				frontier_forget(others, w->index);
				from = others;
			}
			if (remote && !(h->wide && includes_cluster(a->sem, a->scope)))
				warp_note_narrow(c, w, 1u << l, from, 0, e->site);
			else if (sem_acquires(a->sem))
				warp_acquire(c, w, 1u << l, from);
			else
				warp_observe(c, w, 1u << l, from, remote ? SCOPE_CLUSTER : 0);
		}
	}
	frontier_put(&c->space, others);
}

static void strong_writes(struct cluster *c, struct warp *w, const struct event *e)
{
	const struct event_access *a = &e->access;
	const bool rmw = a->mode == MODE_RMW, releases = sem_releases(a->sem);
	const bool wide = includes_cluster(a->sem, a->scope);

	if (!(a->mode & MODE_WRITE) || (!c->nflags && !releases && !w->released.n))
		return;
	for (uint32_t m = e->lanes; m; m &= m - 1) {
		unsigned l = (unsigned)__builtin_ctz(m);
		bool any = releases;
		struct flag *f;

		for (size_t i = 0; i < w->released.n; i++)
			any |= w->released.at[i].lanes >> l & 1;
		f = flag_find(c, a->owner, (uint32_t)lane_addr(&a->at, l), any);
		if (!f)
			continue;
		if (!rmw)
			flag_clear(c, f);
		if (releases)
			warp_release(c, w, 1u << l, flag_head(c, f, w->cta, wide));
		else if (any)
			warp_published(c, w, 1u << l, flag_head(c, f, w->cta, wide),
				wide && warp_has_narrow(w, 1u << l) ? flag_head(c, f, w->cta, false) : NULL);
	}
}

/* ---- events ---- */

static uint32_t what_of(const struct event *e)
{
	const struct event_access *a = &e->access;
	uint32_t what = e->site & CELL_SITE_MASK, scope = 0;

	if (a->mode & MODE_WRITE)
		what |= CELL_WRITE;
	if (a->mode == MODE_RMW)
		what |= CELL_PART | CELL_STRONG;
	if (a->sem != SEM_WEAK)
		what |= CELL_STRONG;
	if (a->sem == SEM_VOLATILE || a->sem == SEM_MMIO || a->scope >= SCOPE_GPU)
		scope = 2;
	else if (a->scope == SCOPE_CLUSTER)
		scope = 1;
	return what | scope << CELL_SCOPE_AT;
}

void on_access(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	const struct event_access *a = &e->access;
	const struct lanes_access x = { e, &a->at, &a->spans, a->bytes, a->overwritten, a->owner };
	const bool strong = access_is_strong(a);
	struct cell_entry now;
	struct view v;

	if (a->space == SP_GLOBAL && c->global) {
		global_access(c, e);
		return;
	}
	if (a->space != SP_SHARED || a->owner >= c->nctas)
		return;
	c->stats.accesses++;
	cluster_use_peer(c, w, e, a->owner, "access");
	now = (struct cell_entry){ .what = what_of(e), .agent = (uint16_t)w->index };
	if (strong)
		strong_reads(c, w, e);
	now.epoch = warp_stamp(w);
	for (unsigned i = 0; i < w->ngroups; i++) {
		uint32_t lanes = w->group[i].lanes & e->lanes;

		if (!lanes)
			continue;
		view_open(&v, c, w, lanes, w->group[i].f, ROLE_GENERIC, a->owner);
		touch_lanes(&v, &x, lanes, now);
	}
	if (!strong)
		return;
	strong_writes(c, w, e);
	warp_order_rmw(c, w, e);
}

void on_observed(struct cluster *c, const struct event *e)
{
	const struct event_access *a = &e->observed;
	struct warp *w = warp_of(c, e);

	if (a->space == SP_GLOBAL && c->global)
		global_reads(c, w, e);
	else if (a->space == SP_SHARED && a->owner < c->nctas)
		strong_reads(c, w, e);
}

void on_cp_async(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	const struct event_cp_async *a = &e->cp_async;
	const struct lanes_access x = { e, &a->at, &a->spans, a->bytes, 0, e->cta };
	struct cell_entry now;
	struct view v;

	c->stats.accesses++;
	groups_issue(&w->copies, e->lanes, e->site);
	now = (struct cell_entry){
		.epoch = w->copies.open, .agent = (uint16_t)agent_copies(c, w->index),
		.what = (e->site & CELL_SITE_MASK) | CELL_WRITE,
	};
	for (unsigned i = 0; i < w->ngroups; i++) {
		uint32_t lanes = w->group[i].lanes & e->lanes;

		if (!lanes)
			continue;
		view_open(&v, c, w, lanes, w->group[i].f, ROLE_COPY, e->cta);
		touch_lanes(&v, &x, lanes, now);
	}
	if (c->global)
		global_copy(c, e);
}

void access_object(struct cluster *c, struct warp *w, const struct event *e, const struct mbar *m)
{
	unsigned lane = (unsigned)__builtin_ctz(e->lanes);
	struct cell_entry now = {
		.epoch = warp_stamp(w), .agent = (uint16_t)w->index, .lanes = 1u << lane,
		.what = (e->site & CELL_SITE_MASK) | CELL_WRITE | CELL_SAME,
	};
	struct ev_span span = { m->addr, 8 };
	struct frontier *f = warp_frontier(w, lane);
	struct view v;

	if (!f)
		return;
	view_open(&v, c, w, 1u << lane, f, ROLE_GENERIC, m->cta);
	shadow_spans(&c->cta[m->cta].shadow, &v.s, &span, 1, now);
}
