/* access: accesses to shared memory by threads, split into granules for the shadow. The shadow
 * finds conflicts and calls race.c to classify them. */
#include "global.h"

#include <stdlib.h>
#include <string.h>

/* What is known in P of generic agents. Once threads have accessed other CTAs' memory, that says
 * nothing of agents of other CTAs than the memory's: these are classified, known or not. */
static const uint32_t *known_fenced(struct cluster *c, const struct frontier *f, uint16_t peer)
{
	struct known_fenced *k = &c->fenced;
	const size_t bytes = c->per_cta * sizeof *k->known;

	if (!c->remote)
		return f->p;
	for (uint32_t kind = 0; kind < c->space.ngeneric; kind += c->nwarps) {
		if (k->peer != peer)
			memset(k->known + kind + k->peer * c->per_cta, 0, bytes);
		memcpy(k->known + kind + peer * c->per_cta, f->p + kind + peer * c->per_cta, bytes);
	}
	k->peer = peer;
	return k->known;
}

void view_open(struct view *v, struct cluster *c, struct warp *w, uint32_t lanes,
	const struct frontier *f, enum async_role role, uint16_t peer)
{
	bool async = role >= ROLE_BULK_LOAD;

	frontier_fit(&c->space, (struct frontier *)f);
	v->s = (struct shadow_view){
		.known_generic = async ? known_fenced(c, f, peer) : f->g, .known = f->g,
		.ngeneric = c->space.ngeneric,
		.self = role == ROLE_GENERIC ? w->index : NO_AGENT,
		.classify = race_classify, .observed = race_observed, .invalid = race_invalid,
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
	v->wgmma_warp = 0;
	v->last_entry.bytes = 0;
	v->last_seen = SHADOW_NOT_OBSERVED;
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
	/* those of each element are one entry, to which further lanes are added */
	bool reduction = (now.what & (CELL_WRITE | CELL_UNREAD)) == (CELL_WRITE | CELL_UNREAD);

	now.bytes = 0;
	for (unsigned i = 0; i < sc->n; i++) {
		uint32_t off = sc->addr[i] % CELL_BYTES, g = sc->addr[i] / CELL_BYTES;
		uint32_t lanes = cell_lanes(sc->lanes[i], sc->addr[i], shift);
		uint32_t bytes = ((1u << size) - 1) << off;

		if (weak_write && sc->lanes[i] & (sc->lanes[i] - 1))
			race_one_instruction(v->c, x, sc->lanes[i], sc->addr[i]);
		if (now.bytes && g == granule && lanes == now.lanes && !reduction) {
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

	if (at->halves || lanes >> first != (count == 32 ? UINT32_MAX : (1u << count) - 1))
		return false;
	if (!at->lane)
		return count == 1 || at->stride == (int64_t)bytes;
	base = at->lane[first];
	for (unsigned i = 1; i < count; i++)
		if (at->lane[first + i] != base + i * step)
			return false;
	return true;
}

/* A full warp as rows of `width` lanes: lane l is at first + l % width * across + l / width * down. */
struct rows {
	unsigned width;
	uint32_t first, across, down;
};

/* True if across is 0 or `bytes`, as in blocks of 16 or 8 threads a row, and for a broadcast. */
static bool find_rows(struct rows *r, const struct ev_lanes *at, uint32_t bytes)
{
	unsigned l = 1;

	*r = (struct rows){ .width = 32, .first = (uint32_t)lane_addr(at, 0) };
	if (!at->lane)
		return !at->stride;
	r->across = (uint32_t)(at->lane[1] - at->lane[0]);
	while (l < 32 && (uint32_t)at->lane[l] == r->first + l * r->across)
		l++;
	if ((r->across && r->across != bytes) || l < 4 || 32 % l)
		return false;
	r->width = l;
	r->down = l < 32 ? (uint32_t)at->lane[l] - r->first : 0;
	for (; l < 32; l++)
		if ((uint32_t)(at->lane[l] - at->lane[l - r->width]) != r->down)
			return false;
	return true;
}

/* The same for two halves, whose lanes are consecutive or have one address. */
static struct rows find_halves(const struct ev_lanes *at)
{
	return (struct rows){ .width = 16, .first = (uint32_t)at->base, .across = (uint32_t)at->stride,
		.down = (uint32_t)(at->lane[16] - at->base) };
}

/* Touches each row as a whole; equal rows together. False: nothing was done. */
static inline bool touch_rows(struct view *v, struct shadow *s, struct rows r, uint32_t shift,
	struct cell_entry now)
{
	const bool weak_write = (now.what & (CELL_WRITE | CELL_STRONG)) == CELL_WRITE;
	const uint32_t span = (r.across ? r.width : 1) << shift;
	const uint32_t gap = (int32_t)r.down < 0 ? 0 - r.down : r.down;
	uint32_t lanes;

	if ((weak_write && (!r.across || !gap)) || (gap && gap < span))
		return false; /* lanes write the same bytes, or rows overlap */
	lanes = r.across ? 1 : UINT32_MAX >> (32 - r.width);
	for (unsigned l = r.width; !r.down && l < 32; l += r.width)
		lanes |= lanes << r.width;
	for (unsigned l = 0; l < (r.down ? 32 : 1); l += r.width, r.first += r.down) {
		now.lanes = cell_lanes(lanes << l, r.first, shift);
		shadow_span(s, &v->s, (struct ev_span){ r.first, span }, now);
	}
	return true;
}

/* A full warp whose lanes l, l + 4, l + 8 and so on access consecutive bytes: four columns, as where a fragment of
 * mma is stored by columns. Touches each as a whole. False: nothing was done. */
static bool touch_columns(struct view *v, struct shadow *s, const struct ev_lanes *at, struct cell_entry now)
{
	uint32_t first[4];

	if (!at->lane || at->halves || now.what & CELL_STRONG)
		return false;
	for (unsigned l = 4; l < 32; l++)
		if (at->lane[l] != at->lane[l - 4] + 1)
			return false;
	for (unsigned l = 0; l < 4; l++) {
		first[l] = (uint32_t)at->lane[l];
		for (unsigned k = 0; k < l; k++)
			if (first[l] - first[k] + 7 < 15)
				return false; /* two columns have the same bytes */
	}
	now.what = (now.what & ~CELL_SHIFT_MASK) | CELL_COLUMNS;
	for (unsigned l = 0; l < 4; l++) {
		now.lanes = cell_rotate(1u << l, 0u - 4 * first[l]);
		shadow_span(s, &v->s, (struct ev_span){ first[l], 8 }, now);
	}
	return true;
}

/* Is no granule accessed by two lanes? False may be wrong. */
static bool are_distinct(const uint32_t at[32], uint32_t lanes)
{
	uint64_t seen[4] = { 0 }, in_row = 0;
	uint32_t twice = 0;

	for (uint32_t m = lanes; m; m &= m - 1)
		in_row |= 1ull << (at[__builtin_ctz(m)] / CELL_BYTES % 64);
	if (__builtin_popcountll(in_row) == __builtin_popcount(lanes))
		return true;
	for (uint32_t m = lanes; m; m &= m - 1) {
		const uint32_t g = at[__builtin_ctz(m)] / CELL_BYTES;

		twice |= seen[g / 64 % 4] >> (g % 64) & 1;
		seen[g / 64 % 4] |= 1ull << (g % 64);
	}
	return !twice;
}

/* Addresses without a pattern, `1 << shift` bytes each. */
static __attribute__((noinline)) void touch_any(struct view *v, struct shadow *s,
	const struct lanes_access *x, uint32_t lanes, uint32_t shift, struct cell_entry now)
{
	struct scatter sc;

	if (shift == 4) { /* ldmatrix, vectors of 16 bytes, cp.async */
		const uint32_t first = (uint32_t)lane_addr(x->at, (unsigned)__builtin_ctz(lanes));
		uint32_t at[32];

		for (unsigned l = 0; l < 32; l++)
			at[l] = lanes >> l & 1 ? (uint32_t)lane_addr(x->at, l) : first;
		if (!(now.what & CELL_WRITE) || are_distinct(at, lanes)) {
			shadow_rows(s, &v->s, at, lanes, now);
			return;
		}
	}
	gather(&sc, x, lanes, shift);
	for (unsigned i = 0; i < sc.n; i++)
		shadow_fetch(s, sc.addr[i] / CELL_BYTES);
	touch_scatter(v, s, x, &sc, shift, now);
}

/* No single pattern of lanes: one lane after the other. */
static __attribute__((noinline)) void touch_each(struct view *v, struct shadow *s,
	const struct lanes_access *x, uint32_t lanes, struct cell_entry now)
{
	now.what |= CELL_SAME;
	for (; lanes; lanes &= lanes - 1) {
		unsigned l = (unsigned)__builtin_ctz(lanes);

		now.lanes = 1u << l;
		shadow_span(s, &v->s, (struct ev_span){ (uint32_t)lane_addr(x->at, l), x->bytes }, now);
	}
}

/* Records the accesses of `lanes` in shared memory as entries like `now`. */
static void touch_lanes(struct view *v, const struct lanes_access *x, uint32_t lanes,
	struct cell_entry now)
{
	struct shadow *s = &v->c->cta[v->peer].shadow;
	unsigned first = (unsigned)__builtin_ctz(lanes);
	unsigned count = (unsigned)__builtin_popcount(lanes);
	uint32_t a = (uint32_t)lane_addr(x->at, first), shift;
	struct rows rows;

	if (!x->bytes)
		return;
	if (x->spans->n) {
		now.what |= CELL_SAME;
		now.lanes = lanes;
		shadow_spans(s, &v->s, x->spans->at, x->spans->n, now);
		return;
	}
	if (x->bytes > CELL_BYTES || x->bytes & (x->bytes - 1) || a & (x->bytes - 1)) {
		touch_each(v, s, x, lanes, now);
		return;
	}
	shift = log2_of(x->bytes);
	now.what |= shift << CELL_SHIFT_AT;
	if (x->at->halves && lanes == UINT32_MAX) {
		if (touch_rows(v, s, find_halves(x->at), shift, now))
			return;
	} else if (is_run(x->at, x->bytes, lanes, first, count)) {
		now.lanes = cell_lanes(1u << first, a, shift);
		shadow_span(s, &v->s, (struct ev_span){ a, count << shift }, now);
		return;
	} else if (lanes == UINT32_MAX && find_rows(&rows, x->at, x->bytes)
		&& touch_rows(v, s, rows, shift, now)) {
		return;
	} else if (lanes == UINT32_MAX && x->bytes == 1 && touch_columns(v, s, x->at, now)) {
		return;
	}
	touch_any(v, s, x, lanes, shift, now);
}

/* ---- events ---- */

static uint32_t what_of(const struct event *e)
{
	const struct event_access *a = &e->access;
	uint32_t what = e->site & CELL_SITE_MASK, scope = 0;

	if (a->mode & MODE_WRITE)
		what |= CELL_WRITE;
	if (a->mode == MODE_RMW)
		what |= CELL_PART | CELL_STRONG | (site_get(e->site)->unread ? CELL_UNREAD : 0);
	else if (a->flags & ACCESS_MATRIX)
		what |= CELL_PART;
	if (a->flags & ACCESS_STALE)
		what |= CELL_STALE;
	if (a->sem != SEM_WEAK)
		what |= CELL_STRONG;
	if (a->sem == SEM_VOLATILE && !(a->flags & ACCESS_FLAG))
		scope = CELL_VOLATILE >> CELL_SCOPE_AT;
	else if (a->sem == SEM_VOLATILE || a->sem == SEM_MMIO || a->scope >= SCOPE_GPU)
		scope = 2;
	else if (a->scope == SCOPE_CLUSTER)
		scope = 1;
	return what | scope << CELL_SCOPE_AT;
}

/* Records the accesses of the lanes, with the knowledge of each. */
static void touch_groups(struct cluster *c, struct warp *w, const struct lanes_access *x,
	enum async_role role, struct cell_entry now)
{
	struct view v;

	for (unsigned i = 0; i < w->ngroups; i++) {
		const uint32_t lanes = w->group[i].lanes & x->e->lanes;

		if (!lanes)
			continue;
		view_open(&v, c, w, lanes, w->group[i].f, role, x->owner);
		touch_lanes(&v, x, lanes, now);
	}
}

/* A strong vector access is recorded element by element: each is strong by itself (8.2.4). */
static void touch_elements(struct cluster *c, struct warp *w, const struct lanes_access *x,
	struct cell_entry now)
{
	const uint32_t element = access_element(&x->e->access);
	struct lanes_access part = *x;
	uint64_t lane[32];
	struct ev_lanes at = *x->at;

	if (element == x->bytes) {
		touch_groups(c, w, x, ROLE_GENERIC, now);
		return;
	}
	part.at = &at;
	part.bytes = element;
	if (at.lane)
		at.lane = memcpy(lane, at.lane, sizeof lane);
	for (uint32_t i = 0; i < x->bytes; i += element) {
		touch_groups(c, w, &part, ROLE_GENERIC, now);
		at.base += element;
		for (unsigned l = 0; at.lane && l < 32; l++)
			lane[l] += element;
	}
}

/* ldmatrix, stmatrix and wmma are executed by all lanes together (.sync.aligned): what lanes did
 * before is ordered before it as by a shuffle, that is, by no promise of the ISA. For reads in a row
 * the first one counts. */
static void matrix_together(struct cluster *c, struct warp *w, const struct event_access *a)
{
	const bool matrix = a->flags & ACCESS_MATRIX, reads = matrix && a->mode == MODE_READ;

	if (matrix && !(reads && w->matrix_reads))
		warp_executed_together(c, w, UINT32_MAX);
	w->matrix_reads = reads;
}

/* Only where the table has accesses to another CTA's memory do fences have to tell memories apart.
 * Operations on mbarriers are not in it, but for init and inval. */
static void note_memory(struct cluster *c, struct warp *w, unsigned cta)
{
	if (cta == w->cta)
		return;
	w->remote |= 1u << cta;
	c->remote = true;
}

void on_access(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	const struct event_access *a = &e->access;
	const struct lanes_access x = { e, &a->at, &a->spans, a->bytes, a->overwritten, a->owner };
	struct cell_entry now;

	matrix_together(c, w, a);
	if (a->space == SP_GLOBAL && c->global) {
		c->repeat.noted = false;
		global_access(c, e);
		return;
	}
	if (a->space != SP_SHARED || a->owner >= c->nctas)
		return;
	c->stats.accesses++;
	if (a->flags & ACCESS_FLAG)
		volatile_read_flag(c, a, e->lanes);
	if (a->owner != w->cta)
		cluster_use_peer(c, w, e, a->owner, "access");
	note_memory(c, w, a->owner);
	now = (struct cell_entry){ .what = what_of(e), .agent = (uint16_t)w->index };
	if (!access_is_strong(a)) {
		now.epoch = warp_stamp(w, e->lanes);
		touch_groups(c, w, &x, ROLE_GENERIC, now);
		if (a->mode & MODE_WRITE) {
			release_plain_shared(c, &x);
			stored_note(w, e, now.epoch);
		}
		return;
	}
	acquire_reads(c, w, e);
	if (a->mode == MODE_RMW && !(now.what & CELL_UNREAD))
		warp_close_epoch(w); /* past.c tells instructions apart by their epochs */
	now.epoch = warp_stamp(w, e->lanes);
	touch_elements(c, w, &x, now);
	release_writes(c, w, e);
	warp_order_rmw(c, w, e);
}

void on_observed(struct cluster *c, const struct event *e)
{
	const struct event_access *a = &e->observed;

	if (a->space == SP_GLOBAL || (a->space == SP_SHARED && a->owner < c->nctas))
		acquire_reads(c, warp_of(c, e), e);
}

void on_cp_async(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	const struct event_cp_async *a = &e->cp_async;
	const struct lanes_access x = { e, &a->at, &a->spans, a->bytes, 0, e->cta };
	struct cell_entry now;

	c->stats.accesses++;
	groups_issue(&w->copies, e->lanes, e->site);
	now = (struct cell_entry){
		.epoch = w->copies.open, .agent = (uint16_t)agent_copies(c, w->index),
		.what = (e->site & CELL_SITE_MASK) | CELL_WRITE,
	};
	touch_groups(c, w, &x, ROLE_COPY, now);
	c->repeat.noted = false;
	if (c->global)
		global_copy(c, e);
}

void access_object(struct cluster *c, struct warp *w, const struct event *e, const struct mbar *m)
{
	unsigned lane = (unsigned)__builtin_ctz(e->lanes);
	struct cell_entry now = {
		.epoch = warp_stamp(w, 1u << lane), .agent = (uint16_t)w->index, .lanes = 1u << lane,
		.what = (e->site & CELL_SITE_MASK) | CELL_WRITE | CELL_SAME,
	};
	struct frontier *f = warp_frontier(w, lane);
	struct view v;

	if (!f)
		return;
	note_memory(c, w, m->cta);
	view_open(&v, c, w, 1u << lane, f, ROLE_GENERIC, m->cta);
	shadow_span(&c->cta[m->cta].shadow, &v.s, (struct ev_span){ m->addr, 8 }, now);
}
