/* race: classifies two overlapping accesses to shared memory, at least one a write, and determines
 * what is missing between them: is the old one known to the new one, lane by lane, and if not,
 * which rule is broken? race_report.c writes the findings. */
#include "libconsan/event/event.h"
#include "libconsan/finding/rule_codes.h"
#include "race_report.h"

unsigned race_cta_of(const struct cluster *c, const struct cell_entry *e)
{
	uint32_t index;

	switch (agent_kind(c, e->agent, &index)) {
	case AGENT_WARP: case AGENT_COPIES: case AGENT_STORES:
	case AGENT_TC: case AGENT_TMEM_LD: case AGENT_TMEM_ST:
		return c->warp[index].cta;
	case AGENT_WGMMA:
		return index / c->wg_per_cta;
	case AGENT_SLOT:
		return c->warp[c->slots.at[index].warp].cta;
	}
	return 0;
}

enum plane race_plane(const struct view *v, const struct cell_entry *old)
{
	if (old->agent >= v->c->space.ngeneric)
		return PLANE_G;
	if (v->plane != PLANE_P || race_cta_of(v->c, old) == v->peer)
		return v->plane;
	return (enum plane)(PLANE_MEMORY + v->peer);
}

/* What restricted fences order (A11): all of shared memory after an acquire, the memory of the
 * accessor's own CTA after a release. */
static uint32_t known_restricted(const struct cluster *c, const struct frontier *f,
	enum plane plane, const struct cell_entry *old, unsigned peer)
{
	const bool g = plane == PLANE_G;
	uint32_t lanes = frontier_lanes(&c->space, f, g ? PLANE_SHARED_G : PLANE_SHARED_P, old->agent,
		old->epoch);

	if (race_cta_of(c, old) == peer)
		lanes |= frontier_lanes(&c->space, f, g ? PLANE_CTA_G : PLANE_CTA_P, old->agent,
			old->epoch);
	return lanes;
}

/* ldmatrix and the like: an .aligned instruction, which all lanes execute together, so that a lane
 * that is behind it knows that the others are. */
static bool is_aligned(const struct cluster *c, const struct cell_entry *e)
{
	return e->agent < c->nwarps && (e->what & (CELL_PART | CELL_STRONG)) == CELL_PART;
}

/* Is one of two accesses of a warp such an instruction? The lanes are then as converged between the
 * two as by a shuffle, and memory is as little ordered: of both, the ISA says that the thread waits
 * until the others have executed it, and nothing of memory. */
static bool executed_together(const struct view *v, const struct cell_entry *old,
	const struct cell_entry *now)
{
	return v->role == ROLE_GENERIC && old->agent == v->w->index
		&& (is_aligned(v->c, old) || is_aligned(v->c, now));
}

/* Two of `old` and `now` that differ, if there are; -1: an engine. */
static void pick_lanes(struct race_gap *gap, uint32_t old, uint32_t now)
{
	if (old && !(now & ~(old & -old)) && old & ~now)
		old &= ~now;
	gap->old_lane = old ? __builtin_ctz(old) : -1;
	if (old && now & ~(old & -old))
		now &= ~(old & -old);
	gap->now_lane = now ? __builtin_ctz(now) : -1;
}

bool race_gap(struct cluster *c, const struct frontier *f, const struct warp *self,
	enum plane plane, unsigned peer, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t bytes, bool collective, struct race_gap *gap)
{
	uint32_t covered = 0, index;
	enum agent_kind kind;

	if (frontier_full(&c->space, f, plane, old->agent) >= old->epoch)
		return false;
	if (f->npart) {
		covered = frontier_lanes(&c->space, f, plane, old->agent, old->epoch)
			| known_restricted(c, f, plane, old, peer);
		if (collective)
			covered |= frontier_lanes(&c->space, f,
				plane == PLANE_G ? PLANE_COLLECTIVE_G : PLANE_COLLECTIVE_P, old->agent, old->epoch);
		if (collective && covered && is_aligned(c, old))
			covered = UINT32_MAX;
	}
	kind = agent_kind(c, old->agent, &index);
	if (kind >= AGENT_WGMMA || !self || index != self->index)
		self = NULL;
	for (; bytes; bytes &= bytes - 1) {
		unsigned b = (unsigned)__builtin_ctz(bytes);
		uint32_t need = cell_lanes_at(old, b) & ~covered, lanes = cell_lanes_at(now, b);

		if (!need && (self || covered))
			continue;
		/* only a lane itself knows its own operations without synchronization */
		if (self && !(need & (need - 1)) && need == lanes
			&& warp_progress(self, kind, plane, (unsigned)__builtin_ctz(need)) >= old->epoch)
			continue;
		gap->byte = b;
		pick_lanes(gap, need, lanes);
		return true;
	}
	return false;
}

static bool known_from(struct cluster *c, const struct frontier *f, const struct warp *self,
	enum plane plane, unsigned peer, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t bytes, bool collective)
{
	struct race_gap gap;

	return !race_gap(c, f, self, plane, peer, old, now, bytes, collective, &gap);
}

/* A wgmma's operands must be known to every lane of its warps: collective execution orders no
 * memory (A12), and D11 excludes the program order that would help. */
static bool gap_of_warps(const struct view *v, enum plane plane, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t bytes, bool collective, struct race_gap *gap)
{
	unsigned from = v->wgmma_warp < 4 ? v->wgmma_warp : 0;
	unsigned to = v->wgmma_warp < 4 ? v->wgmma_warp : 3;

	for (unsigned i = from; i <= to; i++) {
		const struct warp *w = v->w + i;

		for (unsigned g = 0; g < w->ngroups; g++)
			if (race_gap(v->c, w->group[g].f, NULL, plane, v->peer, old, now, bytes, collective,
				gap)) {
				gap->now = w;
				return true;
			}
	}
	return false;
}

bool race_unordered(const struct view *v, enum plane plane, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t bytes, bool collective, struct race_gap *gap)
{
	struct cell_entry issuer = *now;

	gap->now = v->w + (v->role == ROLE_WGMMA && v->wgmma_warp < 4 ? v->wgmma_warp : 0);
	if (v->role == ROLE_WGMMA)
		return gap_of_warps(v, plane, old, now, bytes, collective, gap);
	if (now->agent >= v->c->space.ngeneric)
		issuer.lanes = v->lanes; /* the engine's entry names no lane */
	return race_gap(v->c, v->f, v->w, plane, v->peer, old, &issuer, bytes, collective, gap);
}

static bool ordered(const struct view *v, enum plane plane, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t bytes, bool collective)
{
	struct race_gap gap;

	return !race_unordered(v, plane, old, now, bytes, collective, &gap);
}

/* Does any of the four warps know it, by itself or from others? Their combined knowledge is
 * computed once for each event. */
static bool known_to_warpgroup(const struct view *v, enum plane plane, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t bytes)
{
	struct cluster *c = v->c;

	if (c->combined_at != c->stats.events) {
		c->combined_at = c->stats.events;
		frontier_clear(&c->space, c->combined);
		for (unsigned i = 0; i < 4; i++)
			warp_peek(c, v->w + i, c->combined);
	}
	return known_from(c, c->combined, NULL, plane, v->peer, old, now, bytes, false);
}

/* A03: both strong, each scope includes the other's thread, same proxy and a complete overlap;
 * naturally aligned accesses of one size overlap completely. */
static bool morally_strong(const struct view *v, const struct cell_entry *old,
	const struct cell_entry *now)
{
	uint32_t scope = old->what & CELL_SCOPE_MASK, other = now->what & CELL_SCOPE_MASK;

	if (cell_shift(old) != cell_shift(now))
		return false;
	if (scope > other)
		scope = other;
	return scope || v->c->warp[old->agent].cta == v->c->warp[now->agent].cta;
}

/* One thread of the warp issues it for all lanes that an entry of it has. */
static bool is_engine(const struct view *v)
{
	return v->role == ROLE_BULK_LOAD || v->role == ROLE_BULK_STORE;
}

/* The lanes of z at a byte whose accesses are known by program order. */
static uint32_t own_lanes(const struct view *v, enum plane plane, const struct cell_entry *z,
	const struct cell_entry *now, unsigned byte)
{
	uint32_t own = 0;

	if (z->agent != v->w->index)
		return 0;
	for (uint32_t m = cell_lanes_at(z, byte) & (is_engine(v) ? v->lanes : cell_lanes_at(now, byte)); m;
		m &= m - 1)
		if (warp_progress(v->w, AGENT_WARP, plane, (unsigned)__builtin_ctz(m)) >= z->epoch)
			own |= m & -m;
	return own;
}

/* Does the frontier know z at a byte, for some lane of it: each of its lanes observed what z did. */
static bool knows_some_lane(const struct view *v, const struct frontier *f, enum plane plane,
	const struct cell_entry *z, unsigned byte)
{
	const struct clock_space *k = &v->c->space;

	return frontier_full(k, f, plane, z->agent) >= z->epoch || cell_lanes_at(z, byte)
		& (frontier_lanes(k, f, plane, z->agent, z->epoch)
		| known_restricted(v->c, f, plane, z, v->peer));
}

/* Do all lanes of the warps of a wgmma know z, or x, which z observed? fenced: with the proxy fence that they
 * need */
static bool warps_know(const struct view *v, bool fenced, const struct cell_entry *x,
	const struct cell_entry *z, const struct cell_entry *now, unsigned byte)
{
	const enum plane of_x = fenced ? race_plane(v, x) : PLANE_G;
	const enum plane of_z = fenced ? race_plane(v, z) : PLANE_G;
	const unsigned from = v->wgmma_warp < 4 ? v->wgmma_warp : 0;
	const unsigned to = v->wgmma_warp < 4 ? v->wgmma_warp : 3;

	for (unsigned i = from; i <= to; i++)
		for (unsigned g = 0; g < v->w[i].ngroups; g++) {
			const struct frontier *f = v->w[i].group[g].f;

			if (!knows_some_lane(v, f, of_z, z, byte)
				&& !known_from(v->c, f, NULL, of_x, v->peer, x, now, 1u << byte, false))
				return false;
		}
	return true;
}

/* The lanes of now for which knows_some_lane() holds. */
static uint32_t lanes_that_know(const struct view *v, enum plane plane, const struct cell_entry *z,
	const struct cell_entry *now, unsigned byte)
{
	uint32_t own;

	if (knows_some_lane(v, v->f, plane, z, byte))
		return ~0u;
	own = own_lanes(v, plane, z, now, byte);
	return own && is_engine(v) ? ~0u : own;
}

/* The lanes of now that know x, which another write may have observed, by program order. */
static uint32_t lanes_after_own(const struct view *v, enum plane plane, const struct cell_entry *x,
	const struct cell_entry *now, unsigned byte)
{
	const uint32_t need = cell_lanes_at(x, byte)
		& ~(frontier_lanes(&v->c->space, v->f, plane, x->agent, x->epoch)
		| known_restricted(v->c, v->f, plane, x, v->peer));

	return need & (need - 1) ? 0 : need & own_lanes(v, plane, x, now, byte);
}

static bool is_rmw(const struct cell_entry *e)
{
	const uint32_t rmw = CELL_WRITE | CELL_STRONG | CELL_PART;

	return (e->what & rmw) == rmw;
}

/* Gives the access its thread no value: a store, or a read-modify-write whose result is not used? */
static bool gives_nothing(const struct cell_entry *e)
{
	return e->what & CELL_WRITE && (!is_rmw(e) || e->what & CELL_UNREAD);
}

/* 8.9.2 orders x before z if z observes x. If neither gives its thread a value, the program goes on
 * alike in the execution in which z comes first, and there x is not ordered before what follows z:
 * x races with that, although this execution does not show it. */
static bool observed_by_chance(const struct cell_entry *x, const struct cell_entry *z)
{
	return is_rmw(z) && z->what & CELL_UNREAD && gives_nothing(x);
}

uint32_t race_observed(struct shadow_view *s, const struct cell_entry *x, const struct cell_entry *z,
	const struct cell_entry *now, uint32_t granule, unsigned byte, uint32_t missing, bool *unfenced)
{
	const struct view *v = (const struct view *)s;
	const struct cell_entry local = race_here(z, granule);
	uint32_t later;

	if (x->agent >= v->c->nwarps || z->agent >= v->c->nwarps || !morally_strong(v, x, z)
		|| observed_by_chance(x, z) || cell_is_stale(z))
		return missing;
	if (v->role == ROLE_WGMMA) {
		if (warps_know(v, true, x, &local, now, byte))
			return 0;
		if (!warps_know(v, false, x, &local, now, byte))
			return missing;
		*unfenced = true;
		return 0;
	}
	if (!is_engine(v))
		missing &= cell_lanes_at(now, byte);
	missing &= ~lanes_that_know(v, race_plane(v, &local), &local, now, byte);
	missing &= ~lanes_after_own(v, race_plane(v, x), x, now, byte);
	if (!missing || v->plane != PLANE_P)
		return missing;
	later = lanes_that_know(v, PLANE_G, &local, now, byte)
		| lanes_after_own(v, PLANE_G, x, now, byte);
	*unfenced |= missing & later;
	return missing & ~later;
}

static bool is_volatile(const struct cell_entry *e)
{
	return (e->what & CELL_SCOPE_MASK) == CELL_VOLATILE;
}

/* Both are morally strong. Do volatile accesses exchange data that nothing orders (CS123)? */
static bool volatile_race(const struct view *v, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t granule, uint32_t bytes)
{
	const struct cell_entry *one = is_volatile(old) ? old : now, *other = one == old ? now : old;
	const struct warp *by = one == old ? &v->c->warp[old->agent] : v->w;

	if (!is_volatile(one))
		return false;
	if (!is_volatile(other) && (!is_rmw(other) || !(one->what & CELL_WRITE)
		|| warp_publishes(by, one == old ? cell_lanes_at(old, (unsigned)__builtin_ctz(bytes))
		: v->lanes)))
		return false;
	if (ordered(v, PLANE_G, old, now, bytes, true))
		return false;
	if (old->what & now->what & CELL_WRITE && cell_shift(old) == cell_shift(now)
		&& report_equal_stores(old->what & CELL_SITE_MASK, now->what & CELL_SITE_MASK,
			race_cta_of(v->c, old) == v->w->cta))
		return false;
	if (now->what & CELL_WRITE)
		return !volatile_is_flag(v->c, v->peer, (uint64_t)granule * CELL_BYTES
			+ (unsigned)__builtin_ctz(bytes));
	return warp_observed(v->c, v->w, v->lanes, old->agent, old->epoch) == OBSERVED_NOT;
}

/* ---- the rule ---- */

enum missing { MISSING_ORDER, MISSING_FENCE };

/* The rule of an operand of wgmma or tcgen05 that is not ordered before the operation */
static unsigned operand_rule(const struct view *v)
{
	if (v->role == ROLE_WGMMA)
		return CS121;
	return v->peer == v->w->cta ? CS610 : CS611;
}

static unsigned pick_rule(const struct view *v, const struct cell_entry *old,
	const struct cell_entry *now, enum missing missing)
{
	uint32_t index;
	enum agent_kind kind = agent_kind(v->c, old->agent, &index);
	bool same_warp = index == v->w->index;
	bool old_write = old->what & CELL_WRITE, write = now->what & CELL_WRITE;

	/* asynchronous after asynchronous, and generic after asynchronous: the engine's own rule */
	switch (kind) {
	case AGENT_STORES:
		return CS105;
	case AGENT_WGMMA:
		return CS120;
	case AGENT_TC: case AGENT_TMEM_LD: case AGENT_TMEM_ST:
		return CS609;
	case AGENT_SLOT:
		if (!old_write)
			return CS105;
		if (v->role == ROLE_WGMMA || v->role == ROLE_TC)
			return operand_rule(v);
		return v->role == ROLE_COPY || v->role == ROLE_BULK_LOAD ? CS107 : CS104;
	case AGENT_WARP:
	case AGENT_COPIES:
		break;
	}
	if (missing == MISSING_FENCE && write)
		return old_write ? CS111 : CS112;
	if (missing == MISSING_FENCE)
		return kind == AGENT_COPIES ? CS113 : CS110;
	if (v->role == ROLE_COPY || v->role == ROLE_BULK_LOAD)
		return kind == AGENT_COPIES ? CS107 : CS106;
	if (kind == AGENT_COPIES)
		return CS301;
	if (v->role == ROLE_WGMMA || v->role == ROLE_TC)
		return operand_rule(v);
	if (old->what & now->what & CELL_STRONG)
		return CS108;
	if (same_warp)
		return CS103;
	return old_write && write ? CS101 : CS102;
}

/* Two writes: does whichever comes last leave the same value? The new one does not change the
 * bytes, whose newest write the old one is, or races with; or what both wrote is recorded, or they
 * always store one constant. */
static bool equal_values(const struct view *v, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t granule, uint32_t bytes)
{
	const struct event *e = v->c->now;
	bool same = old->agent < v->c->nwarps;
	uint32_t lanes = 0;

	if (!(old->what & CELL_WRITE) || is_rmw(old) || e->kind != EV_ACCESS
		|| e->access.mode != MODE_WRITE)
		return false;
	if (cell_size(old) == e->access.bytes && report_equal_stores(old->what & CELL_SITE_MASK, e->site,
		race_cta_of(v->c, old) == v->w->cta))
		return true;
	if (e->access.value) {
		for (; bytes && same; bytes &= bytes - 1)
			same = stored_same(&v->c->warp[old->agent], old->epoch, old->what & CELL_SITE_MASK,
				(uint64_t)granule * CELL_BYTES + (unsigned)__builtin_ctz(bytes), e);
		return same;
	}
	for (; bytes; bytes &= bytes - 1)
		lanes |= cell_lanes_at(now, (unsigned)__builtin_ctz(bytes));
	return !(lanes & v->lanes & ~access_unchanged(&e->access));
}

enum severity race_severity(const struct view *v, unsigned r, const struct cell_entry *old)
{
	const struct check_policy *p = &v->c->check->config.policy;
	bool copy = old->agent >= v->c->nwarps && old->agent < 2 * v->c->nwarps;

	if (!p->unread_loads && (report_unread_load(old->what & CELL_SITE_MASK)
		|| report_unread_load(v->c->now->site)))
		return SEV_NOTE;
	if (r == CS117 && v->ticket && !p->acquire_after_atomic)
		return SEV_WARNING;
	if (r == CS109 && p->collectives_order_nothing)
		return SEV_ERROR;
	/* from warp to warp through a shuffle: production code does it */
	if (r == CS109 && v->role == ROLE_GENERIC && old->agent % v->c->nwarps != v->w->index)
		return SEV_NOTE;

	/* whichever comes last, the result is the same */
	if ((r == CS101 || r == CS103) && v->equal)
		return SEV_WARNING;
	if (r == CS112)
		return p->fence_after_read ? SEV_ERROR : SEV_NOTE;
	if (r == CS113 || (r == CS111 && copy))
		return p->fence_after_cp_async ? SEV_ERROR : SEV_NOTE;
	return rule_severity(r);
}

/* Would it be ordered if the scopes of some synchronization were wider? */
static bool blocked_by_scope(const struct view *v, const struct cell_entry *old, uint32_t bytes)
{
	uint32_t known = frontier_lanes(&v->c->space, v->f, PLANE_NARROW, old->agent, old->epoch);

	for (; known && bytes; bytes &= bytes - 1)
		if (cell_lanes_at(old, (unsigned)__builtin_ctz(bytes)) & ~known)
			return false;
	return known;
}

/* Is a proxy fence ordered between the engine's access and this operation? */
static bool fenced(const struct view *v, const struct cell_entry *old)
{
	const struct clock_space *s = &v->c->space;
	unsigned from = v->wgmma_warp < 4 ? v->wgmma_warp : 0, to = v->wgmma_warp < 4 ? from : 3;

	if (v->role != ROLE_WGMMA)
		return frontier_lanes(s, v->f, PLANE_FENCED, old->agent, old->epoch);
	for (unsigned i = from; i <= to; i++)
		for (unsigned g = 0; g < v->w[i].ngroups; g++)
			if (!frontier_lanes(s, v->w[i].group[g].f, PLANE_FENCED, old->agent, old->epoch))
				return false;
	return true;
}

/* A27, K6: the async proxy alone orders the operations of one CTA; operations of two CTAs also need
 * a proxy fence between them. */
static bool across_ctas(const struct view *v, const struct cell_entry *old)
{
	return v->c->check->config.policy.async_across_ctas && v->role >= ROLE_BULK_LOAD
		&& old->agent >= v->c->space.ngeneric && race_cta_of(v->c, old) != v->w->cta
		&& !fenced(v, old);
}

/* st.async writes by the generic proxy: unlike for TMA writes, the wait for its mbarrier is no
 * proxy fence (A17). */
static bool unfenced_store(const struct view *v, const struct cell_entry *old)
{
	uint32_t index;

	return v->c->generic_slots && v->role >= ROLE_BULK_LOAD
		&& agent_kind(v->c, old->agent, &index) == AGENT_SLOT && v->c->slots.at[index].generic
		&& !fenced(v, old);
}

/* A29, C29: reductions of one proxy are atomic to each other. */
static bool same_proxy_slots(const struct view *v, const struct cell_entry *old)
{
	uint32_t index;

	return agent_kind(v->c, old->agent, &index) == AGENT_SLOT
		&& (v->role == ROLE_BULK_LOAD || v->role == ROLE_COPY)
		&& v->c->slots.at[index].generic == (v->role == ROLE_COPY);
}

/* Those of `bytes` at which old, a strong write, is not ordered before now by what is known of it. */
static uint32_t unordered_bytes(const struct view *v, enum plane plane, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t bytes)
{
	uint32_t unordered = 0;

	if ((old->what & (CELL_WRITE | CELL_STRONG)) != (CELL_WRITE | CELL_STRONG))
		return bytes;
	for (uint32_t m = bytes; m; m &= m - 1)
		if (!ordered(v, plane, old, now, m & -m, false))
			unordered |= m & -m;
	return unordered;
}

static enum shadow_verdict classify(struct view *v, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t granule, uint32_t bytes)
{
	const struct check_policy *policy = &v->c->check->config.policy;
	bool old_generic = old->agent < v->c->space.ngeneric;
	enum plane plane = race_plane(v, old);
	enum missing missing = MISSING_ORDER;
	enum shadow_observed seen;
	unsigned rule;

	if (ordered(v, plane, old, now, bytes, false)) {
		if (unfenced_store(v, old)) {
			race_report(v, now->what & CELL_WRITE ? CS111 : CS110, old, now, granule, bytes);
			return SHADOW_CONFLICT;
		}
		if (!across_ctas(v, old))
			return SHADOW_ORDERED;
		race_report(v, CS114, old, now, granule, bytes);
		return SHADOW_CONFLICT;
	}
	if (old->what & now->what & CELL_STRONG && v->role == ROLE_GENERIC
		&& old->agent < v->c->nwarps && morally_strong(v, old, now)) {
		if (volatile_race(v, old, now, granule, bytes))
			race_report(v, CS123, old, now, granule, bytes);
		if ((old->what ^ now->what) & CELL_SCOPE_MASK || observed_by_chance(old, now)
			|| v->c->warp[old->agent].cta != v->w->cta)
			return SHADOW_MORALLY_STRONG;
		return SHADOW_EQUIVALENT;
	}
	if (old->what & now->what & CELL_STRONG && same_proxy_slots(v, old))
		return SHADOW_MORALLY_STRONG;
	seen = shadow_observed(&v->s, old, now, granule, unordered_bytes(v, plane, old, now, bytes));
	v->last_seen = seen;
	if (seen == SHADOW_OBSERVED)
		return SHADOW_ORDERED;
	if (plane != PLANE_G && (seen || ordered(v, PLANE_G, old, now, bytes, false)))
		missing = MISSING_FENCE;
	rule = pick_rule(v, old, now, missing);
	if (v->role == ROLE_WGMMA && missing == MISSING_ORDER
		&& !policy->wgmma_does_not_join
		&& known_to_warpgroup(v, PLANE_G, old, now, bytes)) {
		/* the four warps synchronize at the wgmma, and one of them has the data; if it is
		 * not even fenced, that is the more serious error */
		rule = CS122;
		if (plane != PLANE_G && !known_to_warpgroup(v, plane, old, now, bytes)
			&& race_severity(v, pick_rule(v, old, now, MISSING_FENCE), old) > SEV_NOTE)
			rule = pick_rule(v, old, now, MISSING_FENCE);
	} else if (missing == MISSING_ORDER && (executed_together(v, old, now)
			|| ordered(v, PLANE_G, old, now, bytes, true))) {
		rule = CS109;
		if (plane != PLANE_G && !ordered(v, plane, old, now, bytes, true)
			&& race_severity(v, pick_rule(v, old, now, MISSING_FENCE), old) > SEV_NOTE)
			rule = pick_rule(v, old, now, MISSING_FENCE);
	} else if (missing == MISSING_ORDER && rule != CS108 && blocked_by_scope(v, old, bytes)) {
		rule = CS222;
	} else if ((rule == CS101 || rule == CS102 || rule == CS108) && old_generic) {
		const enum observed_by by = warp_observed(v->c, v->w, v->lanes, old->agent, old->epoch);

		v->ticket = by == OBSERVED_BY_TICKET;
		rule = by != OBSERVED_NOT ? CS117 : rule;
	}
	v->equal = (rule == CS101 || rule == CS103) && equal_values(v, old, now, granule, bytes);
	race_report(v, rule, old, now, granule, bytes);
	return SHADOW_CONFLICT;
}

enum shadow_verdict race_classify(struct shadow_view *s, const struct cell_entry *old_entry,
	const struct cell_entry *now_entry, uint32_t granule, uint32_t bytes)
{
	const struct cell_entry old = race_here(old_entry, granule);
	const struct cell_entry now = race_here(now_entry, granule);
	struct view *v = (struct view *)s;
	bool same = v->last_entry.bytes == bytes && v->last_entry.agent == old.agent
		&& v->last_entry.epoch == old.epoch && v->last_entry.what == old.what
		&& v->last_entry.lanes == old.lanes && v->last_lanes == now.lanes && !v->last_seen;

	if (same)
		return v->last_verdict;
	v->last_seen = SHADOW_NOT_OBSERVED;
	v->equal = v->ticket = false;
	v->last_verdict = classify(v, &old, &now, granule, bytes);
	v->last_entry = old;
	v->last_entry.bytes = v->equal ? 0 : (uint16_t)bytes; /* the next granule's may differ */
	v->last_lanes = now.lanes;
	return v->last_verdict;
}
