/* race: two overlapping accesses, at least one a write, and what is missing
 * between them. One question (is the old one known to the new one, lane by
 * lane?), then a ladder of early returns that names the rule. */
#include "libconsan/event/event.h"
#include "libconsan/finding/rule_codes.h"
#include "internal.h"

#include <stdio.h>
#include <string.h>

/* The CTA of the warp that did it, or that issued it. */
static unsigned cta_of(const struct cluster *c, const struct cell_entry *e)
{
	uint32_t index;

	switch (agent_kind(c, e->agent, &index)) {
	case AGENT_WARP: case AGENT_COPIES: case AGENT_STORES:
		return c->warp[index].cta;
	case AGENT_WGMMA:
		return index / c->wg_per_cta;
	case AGENT_SLOT:
		return c->warp[c->slots.at[index].warp].cta;
	}
	return 0;
}

/* What a restricted fence hands over (A11) counts for the doer's own CTA's memory. */
static enum plane own_plane(enum plane plane)
{
	return plane == PLANE_G ? PLANE_OWN_G : PLANE_OWN_P;
}

/* Does a frontier of warp w (own: program order and own waits count) know what
 * `old` did to `bytes` of CTA `peer`, seen by the lanes of `now` that touch the
 * same bytes? soft: or would it, if warp collectives ordered memory? */
static bool known_from(struct cluster *c, const struct frontier *f, const struct warp *own,
	enum plane plane, unsigned peer, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t bytes, bool soft)
{
	uint32_t covered = 0, index;
	enum agent_kind kind;

	if (frontier_full(&c->space, f, plane, old->agent) >= old->epoch)
		return true;
	if (f->npart) {
		covered = frontier_lanes(&c->space, f, plane, old->agent, old->epoch);
		if (cta_of(c, old) == peer)
			covered |= frontier_lanes(&c->space, f, own_plane(plane), old->agent, old->epoch);
		if (soft)
			covered |= frontier_lanes(&c->space, f,
				plane == PLANE_G ? PLANE_SOFT_G : PLANE_SOFT_P, old->agent, old->epoch);
	}
	kind = agent_kind(c, old->agent, &index);
	if (kind == AGENT_WGMMA || kind == AGENT_SLOT || !own || index != own->index)
		own = NULL;
	if (!own && !covered)
		return false;
	for (; bytes; bytes &= bytes - 1) {
		unsigned b = (unsigned)__builtin_ctz(bytes);
		uint32_t need = cell_lanes_at(old, b) & ~covered;

		if (!need)
			continue;
		/* only a lane itself knows its own doings without synchronising */
		if (!own || need & (need - 1) || need != cell_lanes_at(now, b))
			return false;
		if (warp_own(own, kind, plane, (unsigned)__builtin_ctz(need)) < old->epoch)
			return false;
	}
	return true;
}

/* A wgmma's operands must be known to every lane of the warps it stands for:
 * collective execution orders no memory (A12), and D11 takes away the program
 * order that would help. */
static bool known_to_warps(const struct view *v, enum plane plane,
	const struct cell_entry *old, const struct cell_entry *now, uint32_t bytes, bool soft)
{
	unsigned from = v->wgmma_warp < 4 ? v->wgmma_warp : 0;
	unsigned to = v->wgmma_warp < 4 ? v->wgmma_warp : 3;

	for (unsigned i = from; i <= to; i++) {
		const struct warp *w = v->w + i;

		for (unsigned g = 0; g < w->ngroups; g++)
			if (!known_from(v->c, w->group[g].f, NULL, plane, v->peer, old, now, bytes, soft))
				return false;
	}
	return true;
}

static bool ordered(const struct view *v, enum plane plane, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t bytes, bool soft)
{
	struct cell_entry issuer = *now;

	if (v->role == ROLE_WGMMA)
		return known_to_warps(v, plane, old, now, bytes, soft);
	if (v->role == ROLE_BULK_LOAD || v->role == ROLE_BULK_STORE)
		issuer.lanes = v->lanes; /* the engine's entry stands for no lane */
	return known_from(v->c, v->f, v->w, plane, v->peer, old, &issuer, bytes, soft);
}

/* Does any of the four warps know it, by itself or from others? What they know
 * together is summed up once for each event. */
static bool known_to_group(const struct view *v, enum plane plane, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t bytes)
{
	struct cluster *c = v->c;

	if (c->joint_at != c->stats.events) {
		c->joint_at = c->stats.events;
		frontier_clear(&c->space, c->joint);
		for (unsigned i = 0; i < 4; i++)
			warp_look(c, v->w + i, c->joint);
	}
	return known_from(c, c->joint, NULL, plane, v->peer, old, now, bytes, false);
}

/* A03: both strong, each scope includes the other's thread, same proxy and a
 * complete overlap; naturally aligned accesses of one size overlap completely. */
static bool mutual(const struct view *v, const struct cell_entry *old,
	const struct cell_entry *now)
{
	uint32_t scope = old->what & CELL_SCOPE_MASK, other = now->what & CELL_SCOPE_MASK;

	if (cell_shift(old) != cell_shift(now))
		return false;
	if (scope > other)
		scope = other;
	return scope || v->c->warp[old->agent].cta == v->w->cta;
}

/* ---- words ---- */

struct doer {
	unsigned warp;
	int lane;
	const char *what;
};

static const char *what_of(const struct cluster *c, const struct cell_entry *e, enum agent_kind k)
{
	bool write = e->what & CELL_WRITE, part = e->what & CELL_PART;

	uint32_t index;

	switch (k) {
	case AGENT_WARP:
		if (write && part && e->what & CELL_STRONG)
			return "atomic read-modify-write";
		if (e->what & CELL_STRONG)
			return write ? "strong write" : "strong read";
		return write ? "write" : "read";
	case AGENT_COPIES:
		return "cp.async write";
	case AGENT_STORES:
		return part ? "TMA store read" : "bulk store read";
	case AGENT_WGMMA:
		return part ? "wgmma read of B" : "wgmma read of A";
	case AGENT_SLOT:
		if (!write)
			return "bulk copy read";
		agent_kind(c, e->agent, &index);
		if (c->slots.at[index].generic)
			return e->what & CELL_STRONG ? "red.async" : "st.async";
		return part ? "TMA load write" : "bulk load write";
	}
	return "access";
}

static struct doer doer_of(const struct cluster *c, const struct cell_entry *e,
	unsigned byte, uint32_t not_lane)
{
	uint32_t index, lanes = cell_lanes_at(e, byte);
	enum agent_kind k = agent_kind(c, e->agent, &index);
	struct doer d = { index, -1, what_of(c, e, k) };

	switch (k) {
	case AGENT_WARP:
	case AGENT_COPIES:
	case AGENT_STORES:
		if (lanes & ~not_lane)
			lanes &= ~not_lane;
		d.lane = lanes ? __builtin_ctz(lanes) : -1;
		break;
	case AGENT_WGMMA:
		d.warp = index / c->wg_per_cta * c->per_cta + index % c->wg_per_cta * 4;
		break;
	case AGENT_SLOT:
		d.warp = c->slots.at[index].warp;
		d.lane = c->slots.at[index].epoch == e->epoch ? c->slots.at[index].lane : -1;
		break;
	}
	return d;
}

/* How many more groups the last wait of that lane should have covered. */
static void hint_groups(struct finding *f, const struct lane_groups *g, unsigned lane,
	uint32_t epoch, const char *wait, const char *commit)
{
	uint32_t newer = 0, committed = 0;

	for (size_t i = 0; i < g->n; i++)
		if (g->at[i].lanes >> lane & 1) {
			committed |= g->at[i].number >= epoch;
			newer += g->at[i].number > epoch;
		}
	/* the group that holds the operation is the first that is not older */
	for (size_t i = 0; i < g->n; i++)
		if (g->at[i].lanes >> lane & 1 && g->at[i].number >= epoch) {
			if (g->at[i].number > epoch)
				newer--;
			break;
		}
	if (!committed)
		report_hint(f, "the operation was not committed to a group: execute %s after it", commit);
	else if (!g->wait_site[lane])
		report_hint(f, "the issuing thread never executed %s", wait);
	else if (g->wait_count[lane] > newer)
		report_hint(f, "the issuing thread's last %s left %u groups pending, %u too many: it "
			"needs %u", wait, g->wait_count[lane], g->wait_count[lane] - newer, newer);
}

/* The warp that lacks the knowledge: of a wgmma's four, the first that does. */
static const struct warp *lacking(const struct view *v, const struct cell_entry *old)
{
	if (v->role != ROLE_WGMMA)
		return v->w;
	if (v->wgmma_warp < 4)
		return v->w + v->wgmma_warp;
	for (unsigned i = 0; i < 4; i++)
		for (unsigned g = 0; g < v->w[i].ngroups; g++)
			if (!known_from(v->c, v->w[i].group[g].f, NULL, PLANE_G, v->peer, old, old,
				old->bytes, false))
				return v->w + i;
	return v->w;
}

static void explain_load(struct cluster *c, struct finding *f, const struct cell_entry *old,
	uint32_t slot, const struct view *v, int lane)
{
	const struct slot *s = &c->slots.at[slot];
	const struct warp *w = lacking(v, old);
	const struct mb_view *seen;
	const struct mbar *m;

	if (s->epoch != old->epoch || !s->mbar) {
		report_edge(f, "no synchronisation orders the completion of the copy before this access by "
			"warp %u", w->id);
		return;
	}
	m = &c->mbars.at[s->mbar - 1];
	report_mbar(c, f, m);
	report_edge(f, "the copy completes phase %llu of mbarrier %s: a wait for that phase must be "
		"ordered before this access", (unsigned long long)s->phase, f->barrier.name);
	if (w->cta != m->cta)
		return;
	seen = &m->view[w->id];
	if (seen->passed == -2)
		report_hint(f, "warp %u never waited on this mbarrier", w->id);
	else if (seen->passed == -1)
		report_hint(f, "warp %u's wait returned immediately: it tested the parity of the phase "
			"before phase 0", w->id);
	else if (seen->passed < (int64_t)s->phase)
		report_hint(f, "warp %u's last wait returned for phase %lld: it tested a stale parity",
			w->id, (long long)seen->passed);
	else if (lane >= 0 ? !(seen->passed_lanes >> lane & 1) : w->live & ~seen->passed_lanes)
		report_hint(f, "only some lanes of warp %u waited: the others need bar.warp.sync "
			"(__syncwarp) after the wait", w->id);
	else if (seen->relaxed)
		report_hint(f, "warp %u's wait was relaxed: it needs an acquire fence after it", w->id);
	else
		report_hint(f, "warp %u waited for phase %lld, but that phase did not expect the bytes of "
			"this copy", w->id, (long long)seen->passed);
}

static void explain_fence(struct cluster *c, struct finding *f, const struct cell_entry *old,
	const struct view *v)
{
	uint32_t index;
	const struct warp *by;

	if (agent_kind(c, old->agent, &index) == AGENT_SLOT)
		index = c->slots.at[index].warp;
	by = &c->warp[index];
	report_edge(f, "warp %u's %s is ordered before this %s, but without a fence.proxy.async "
		"between them", by->id, f->side[1].what, f->side[0].what);
	if (by->global_fence || v->w->global_fence)
		report_hint(f, "fence.proxy.async.global does not cover shared memory");
	else if (!by->fence_site && v->w->fence_site && by != v->w)
		report_hint(f, "warp %u executed fence.proxy.async before it had synchronised with warp "
			"%u: let the writing threads execute it before the barrier", v->w->id, by->id);
}

static void explain_plain(struct cluster *c, struct finding *f, const struct cell_entry *old,
	const struct view *v, const struct doer *now_by, const struct doer *old_by)
{
	const struct warp *a = &c->warp[old_by->warp], *b = &c->warp[now_by->warp];

	if (v->role == ROLE_WGMMA) {
		b = lacking(v, old);
		report_edge(f, "the operands of a wgmma must be ordered before it in all its warps: no "
			"synchronisation orders warp %u's %s before warp %u", a->id, f->side[1].what, b->id);
		if (a == b)
			report_hint(f, "collective instructions order no memory: bar.warp.sync (__syncwarp) is "
				"needed even within one warp");
		return;
	}
	if (a == b) {
		report_edge(f, "no bar.warp.sync (__syncwarp) orders the %s by lane %d before this %s",
			f->side[1].what, old_by->lane, f->side[0].what);
		return;
	}
	if (v->f && frontier_full(&c->space, v->f, PLANE_G, old->agent) + 1 < old->epoch)
		report_edge(f, "the last synchronisation from warp %u to warp %u precedes the %s: another "
			"barrier, or mbarrier arrive and wait, must follow it", a->id, b->id,
			f->side[1].what);
	else
		report_edge(f, "no synchronisation orders warp %u's %s before this %s by warp %u", a->id,
			f->side[1].what, f->side[0].what, b->id);
	if (frontier_lanes(&c->space, v->f, PLANE_G, old->agent, old->epoch))
		report_hint(f, "the arrive of warp %u's elected lane does not cover lane %d's accesses: "
			"add __syncwarp() before it", a->id, old_by->lane);
}

static void explain_scope(struct cluster *c, struct finding *f, unsigned cta, unsigned from)
{
	const uint32_t *site = c->cta[cta].narrow;
	const char *file;
	uint32_t arrival, wait;

	report_edge(f, "CTA %u releases to CTA %u at .cta scope, which does not include both: release "
		"and acquire need the scope .cluster or wider", from, cta);
	if (!site[0] || !site[1])
		return;
	site_where(site[0], &file, &arrival);
	site_where(site[1], &file, &wait);
	report_hint(f, "the arrival is on line %u, the wait on line %u", arrival, wait);
}

static void explain(struct cluster *c, struct finding *f, const struct cell_entry *old,
	const struct view *v, const struct doer *now_by, const struct doer *old_by)
{
	uint32_t index;
	const struct warpgroup *g;

	switch (agent_kind(c, old->agent, &index)) {
	case AGENT_WARP:
		explain_plain(c, f, old, v, now_by, old_by);
		return;
	case AGENT_COPIES:
		snprintf(f->barrier.kind, sizeof f->barrier.kind, "cp.async group");
		f->barrier.phase = old->epoch;
		report_edge(f, "the issuing thread must wait for the group (cp.async.wait_group), then "
			"synchronise with this thread");
		if (old_by->lane >= 0 && warp_own(&c->warp[index], AGENT_COPIES, PLANE_G,
			(unsigned)old_by->lane) < old->epoch)
			hint_groups(f, &c->warp[index].copies, (unsigned)old_by->lane, old->epoch,
				"cp.async.wait_group", "cp.async.commit_group");
		else
			report_hint(f, "the issuing thread waited, but no barrier follows the wait");
		return;
	case AGENT_STORES:
		snprintf(f->barrier.kind, sizeof f->barrier.kind, "bulk group");
		f->barrier.phase = old->epoch;
		report_edge(f, "the issuing thread must wait for the group (cp.async.bulk.wait_group.read), "
			"then synchronise with this thread");
		if (old_by->lane >= 0 && warp_own(&c->warp[index], AGENT_STORES, PLANE_G,
			(unsigned)old_by->lane) < old->epoch)
			hint_groups(f, &c->warp[index].stores, (unsigned)old_by->lane, old->epoch,
				"cp.async.bulk.wait_group", "cp.async.bulk.commit_group");
		else
			report_hint(f, "the issuing thread waited, but no barrier follows the wait");
		return;
	case AGENT_WGMMA:
		g = &c->wg[index];
		snprintf(f->barrier.kind, sizeof f->barrier.kind, "wgmma group");
		f->barrier.phase = old->epoch;
		report_edge(f, "wgmma.wait_group must cover the wgmma, and synchronisation must order it "
			"before this access");
		if (old->epoch >= g->open)
			report_hint(f, "the wgmma was not yet committed to a group");
		else if (old->epoch > g->done)
			report_hint(f, "%u groups were committed after it; the last wait_group left %u pending",
				g->open - 1 - old->epoch, g->wait_site ? g->wait_count : g->open - 1);
		else
			report_hint(f, "the warpgroup waited, but it did not release the buffer after the wait");
		return;
	case AGENT_SLOT:
		explain_load(c, f, old, index, v, now_by->lane);
		return;
	}
}

/* ---- the ladder ---- */

enum missing { MISSING_ORDER, MISSING_FENCE };

static unsigned pick(const struct view *v, const struct cell_entry *old,
	const struct cell_entry *now, enum missing missing)
{
	uint32_t index;
	enum agent_kind kind = agent_kind(v->c, old->agent, &index);
	bool same_warp = index == v->w->index;
	bool old_write = old->what & CELL_WRITE, write = now->what & CELL_WRITE;

	/* async against async, and generic after async: the engine's own rule */
	switch (kind) {
	case AGENT_STORES:
		return CS105;
	case AGENT_WGMMA:
		return CS120;
	case AGENT_SLOT:
		if (!old_write)
			return CS105;
		if (v->role == ROLE_WGMMA)
			return CS121;
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
	if (v->role == ROLE_WGMMA)
		return CS121;
	if (old->what & now->what & CELL_STRONG)
		return CS108;
	if (same_warp)
		return CS103;
	return old_write && write ? CS101 : CS102;
}

static enum severity severity_of(const struct view *v, unsigned r, const struct cell_entry *old)
{
	const struct check_policy *p = &v->c->check->config.policy;
	bool copy = old->agent >= v->c->nwarps && old->agent < 2 * v->c->nwarps;

	if (r == CS109 && p->collectives_order_nothing)
		return SEV_ERROR;
	/* from warp to warp, handed on by a shuffle: production code does it */
	if (r == CS109 && old->agent % v->c->nwarps != v->w->index)
		return SEV_NOTE;

	if (r == CS112)
		return p->fence_after_read ? SEV_ERROR : SEV_NOTE;
	if (r == CS113 || (r == CS111 && copy))
		return p->fence_after_cp_async ? SEV_ERROR : SEV_NOTE;
	return rule_severity(r);
}

static void report_race(const struct view *v, unsigned rule, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t granule, uint32_t bytes)
{
	struct cluster *c = v->c;
	unsigned byte = (unsigned)__builtin_ctz(bytes);
	uint32_t n = (uint32_t)__builtin_ctz(~(bytes >> byte));
	uint64_t addr = (uint64_t)granule * CELL_BYTES + byte;
	struct finding *f = report_new(c, rule, severity_of(v, rule, old),
		now->what & CELL_SITE_MASK, old->what & CELL_SITE_MASK);
	struct doer a, b;

	if (!f)
		return;
	a = doer_of(c, now, byte, 0);
	if (v->role == ROLE_BULK_LOAD) {
		a.warp = v->w->index;
		a.lane = only_lane(v->lanes);
	}
	b = doer_of(c, old, byte, a.warp == old->agent && a.lane >= 0 ? 1u << a.lane : 0);
	if (v->role == ROLE_WGMMA && v->wgmma_warp < 4)
		a.warp += v->wgmma_warp;
	report_side(c, f, a.warp, a.lane, now->what & CELL_SITE_MASK, a.what);
	report_memory(c, f, 0, v->peer, addr, v->role == ROLE_GENERIC || v->role == ROLE_COPY
		? cell_size(now) : n);
	report_side(c, f, b.warp, b.lane, old->what & CELL_SITE_MASK, b.what);
	report_memory(c, f, 1, v->peer, addr, old->agent < 2 * c->nwarps ? cell_size(old) : n);
	if (rule == CS110 || rule == CS111 || rule == CS112 || rule == CS113) {
		explain_fence(c, f, old, v);
	} else if (rule == CS109) {
		report_edge(f, "only a warp collective (shfl, vote, match, redux) is executed between "
			"them: it converges the lanes but orders no memory");
	} else if (rule == CS114) {
		report_edge(f, "the operations of CTA %u and CTA %u are ordered, but without a "
			"fence.proxy.async between them", cta_of(c, old), v->w->cta);
	} else if (rule == CS222) {
		explain_scope(c, f, v->w->cta, cta_of(c, old));
	} else if (rule == CS108) {
		report_edge(f, "the two strong accesses differ in size, or their scopes do not include "
			"each other's thread, so they race like weak ones, and nothing else orders them");
	} else {
		explain(c, f, old, v, &a, &b);
	}
	report_send(c, f);
}

/* Would it be ordered, were the scopes of some hand-over on the way wider? */
static bool held_back(const struct view *v, const struct cell_entry *old, uint32_t bytes)
{
	uint32_t known = frontier_lanes(&v->c->space, v->f, PLANE_HELD, old->agent, old->epoch);

	for (; known && bytes; bytes &= bytes - 1)
		if (cell_lanes_at(old, (unsigned)__builtin_ctz(bytes)) & ~known)
			return false;
	return known;
}

/* Does a proxy fence lie between what an engine did and this operation? */
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

/* A27, K6: the async proxy alone orders what one CTA's operations do to each
 * other; between those of two CTAs a proxy fence must lie. */
static bool across_ctas(const struct view *v, const struct cell_entry *old)
{
	return v->c->check->config.policy.async_across_ctas && v->role >= ROLE_BULK_LOAD
		&& old->agent >= v->c->space.ngeneric && cta_of(v->c, old) != v->w->cta
		&& !fenced(v, old);
}

/* st.async writes by the generic proxy: the wait for its mbarrier is no proxy
 * fence, as it is for what TMA writes (A17). */
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

static enum shadow_verdict judge(const struct view *v, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t granule, uint32_t bytes)
{
	const struct check_policy *policy = &v->c->check->config.policy;
	bool old_generic = old->agent < v->c->space.ngeneric;
	enum plane plane = old_generic ? v->plane : PLANE_G;
	enum missing missing = MISSING_ORDER;
	unsigned rule;

	if (ordered(v, plane, old, now, bytes, false)) {
		if (unfenced_store(v, old)) {
			report_race(v, now->what & CELL_WRITE ? CS111 : CS110, old, now, granule, bytes);
			return SHADOW_CLASH;
		}
		if (!across_ctas(v, old))
			return SHADOW_ORDERED;
		report_race(v, CS114, old, now, granule, bytes);
		return SHADOW_CLASH;
	}
	if (old->what & now->what & CELL_STRONG && v->role == ROLE_GENERIC
		&& old->agent < v->c->nwarps && mutual(v, old, now))
		return SHADOW_MUTUAL;
	if (old->what & now->what & CELL_STRONG && same_proxy_slots(v, old))
		return SHADOW_MUTUAL;
	if (plane == PLANE_P && ordered(v, PLANE_G, old, now, bytes, false))
		missing = MISSING_FENCE;
	rule = pick(v, old, now, missing);
	if (v->role == ROLE_WGMMA && missing == MISSING_ORDER
		&& !policy->wgmma_does_not_join
		&& known_to_group(v, PLANE_G, old, now, bytes)) {
		/* the four warps meet at the wgmma, and one of them has the data;
		 * if it is not even fenced, that is the greater fault */
		rule = CS122;
		if (plane == PLANE_P && !known_to_group(v, PLANE_P, old, now, bytes)
			&& severity_of(v, pick(v, old, now, MISSING_FENCE), old) > SEV_NOTE)
			rule = pick(v, old, now, MISSING_FENCE);
	} else if (missing == MISSING_ORDER && ordered(v, PLANE_G, old, now, bytes, true)) {
		rule = CS109;
		if (plane == PLANE_P && !ordered(v, PLANE_P, old, now, bytes, true)
			&& severity_of(v, pick(v, old, now, MISSING_FENCE), old) > SEV_NOTE)
			rule = pick(v, old, now, MISSING_FENCE);
	} else if (missing == MISSING_ORDER && held_back(v, old, bytes)) {
		rule = CS222;
	}
	report_race(v, rule, old, now, granule, bytes);
	return SHADOW_CLASH;
}

/* An access asks the same question granule after granule: one answer, and one
 * finding, will do. */
/* The entry with its lanes as they are at byte 0 of this granule, for a look at
 * its bytes. */
static struct cell_entry here(const struct cell_entry *e, uint32_t granule)
{
	struct cell_entry local = *e;

	local.lanes = cell_lanes_at(e, granule * CELL_BYTES);
	return local;
}

enum shadow_verdict race_judge(struct shadow_view *s, const struct cell_entry *old_entry,
	const struct cell_entry *now_entry, uint32_t granule, uint32_t bytes)
{
	const struct cell_entry old = here(old_entry, granule), now = here(now_entry, granule);
	struct view *v = (struct view *)s;
	bool same = v->asked.bytes == bytes && v->asked.agent == old.agent
		&& v->asked.epoch == old.epoch && v->asked.what == old.what
		&& v->asked.lanes == old.lanes && v->asked_lanes == now.lanes;

	if (same)
		return v->answer;
	v->answer = judge(v, &old, &now, granule, bytes);
	v->asked = old;
	v->asked.bytes = (uint16_t)bytes;
	v->asked_lanes = now.lanes;
	return v->answer;
}

/* ---- bytes never written, bytes of mbarriers ---- */

/* Tensor cores fetch whole tiles, with their padding: kernels that mask the
 * result do not clear it first (A31: the value is unknown, no race). */
static bool reads_tile(const struct view *v)
{
	const struct event *e = v->c->now;

	return v->role == ROLE_WGMMA || (e->kind == EV_ACCESS && e->access.flags & ACCESS_MATRIX);
}

/* %reserved_smem_offset_*: behind the kernel's own memory, on a GPU before it; who uses
 * it clears in it what it needs, as cooperative groups do bit by bit. */
static bool reserved(const struct cluster *c, uint64_t addr)
{
	const struct launch_info *l = c->info.launch;
	bool before = l->nsymbols;

	for (size_t i = 0; i < l->nsymbols; i++)
		before &= addr < l->symbols[i].addr;
	return before || addr >= ((l->shared_static + l->shared_dynamic + 15) & ~15u);
}

/* Sets the bits of the lanes that load it: the executor reports LOAD_USED if it is used. */
static void tell_unwritten(uint32_t of_lanes, const struct event_access *a, uint32_t granule,
	uint32_t bytes)
{
	for (uint32_t m = a->unwritten ? of_lanes : 0; m; m &= m - 1) {
		unsigned l = (unsigned)__builtin_ctz(m);
		uint64_t from = lane_addr(&a->at, l);

		for (uint32_t b = bytes; b; b &= b - 1)
			if ((uint64_t)granule * CELL_BYTES + (unsigned)__builtin_ctz(b) - from < a->bytes)
				*a->unwritten |= 1u << l;
	}
}

void on_load_used(struct cluster *c, const struct event *e)
{
	const struct event_load_used *u = &e->load_used;
	struct finding *f = report_new(c, CS901, rule_severity(CS901), e->site, u->load_site);
	struct warp *w = warp_of(c, e);
	const unsigned lane = (unsigned)__builtin_ctz(e->lanes);

	if (!f)
		return;
	report_side(c, f, w->index, (int)lane, e->site, "use of the value");
	report_side(c, f, w->index, (int)lane, u->load_site, "read");
	report_memory(c, f, 1, u->owner, lane_addr(&u->at, lane), u->bytes);
	report_edge(f, "no thread of this CTA wrote these bytes before");
	report_send(c, f);
}

void race_stray(struct shadow_view *s, const struct cell_entry *now,
	uint32_t granule, uint32_t bytes, unsigned why)
{
	const struct cell_entry local = here(now, granule);
	struct view *v = (struct view *)s;
	struct cluster *c = v->c;
	unsigned byte = (unsigned)__builtin_ctz(bytes);
	uint64_t addr = (uint64_t)granule * CELL_BYTES + byte;
	uint32_t site = now->what & CELL_SITE_MASK;
	unsigned rule = why == SHADOW_GUARDED ? CS206 : CS901;
	enum severity sev = rule_severity(rule);
	struct mbar *m = NULL;
	struct finding *f;
	struct doer d;

	if (why == SHADOW_GUARDED) {
		m = mbar_of(c, v->peer, (uint32_t)addr & ~7u);
		if (!m || (now->agent == v->w->index && c->now->kind == EV_MBARRIER_INIT))
			return; /* a second init is CS204 */
	} else if (reserved(c, addr)) {
		return;
	} else if (c->now->kind == EV_ACCESS && c->now->access.flags & ACCESS_FOLLOWED) {
		tell_unwritten(c->now->lanes, &c->now->access, granule, bytes);
		return;
	} else if (v->role == ROLE_BULK_STORE) {
		sev = SEV_NOTE; /* the bytes may lie outside the tensor, clipped */
	} else if (reads_tile(v) && !c->check->config.policy.uninitialised_tile) {
		sev = SEV_NOTE;
	}
	f = report_new(c, rule, sev, site, m ? m->init.site : 0);
	if (!f)
		return;
	d = doer_of(c, &local, byte, 0);
	if (v->role == ROLE_BULK_LOAD) {
		d.warp = v->w->index;
		d.lane = only_lane(v->lanes);
	}
	report_side(c, f, d.warp, d.lane, site, d.what);
	report_memory(c, f, 0, v->peer, addr, (uint32_t)__builtin_ctz(~(bytes >> byte)));
	if (m) {
		report_side(c, f, m->init.warp, only_lane(m->init.lanes), m->init.site, "mbarrier.init");
		report_memory(c, f, 1, v->peer, m->addr, 8);
		report_mbar(c, f, m);
		report_edge(f, "the object is live: mbarrier.inval must come before its bytes are used for "
			"another purpose");
	} else {
		report_edge(f, "no thread of this CTA wrote these bytes before");
		if (sev == SEV_NOTE)
			report_hint(f, "harmless if the bytes are padding of a tile and the result is masked "
				"or not stored");
		else if (c->now->kind == EV_ACCESS && c->now->access.mode == MODE_READ)
			report_hint(f, "harmless if the value is not used, which only --backend=cpu tracks");
	}
	report_send(c, f);
}

/* Lanes of one instruction that write the same bytes. The CUDA guide allows it:
 * one of the writes is performed, any. Library code stores one value from all
 * lanes, which is a note; if the values differ, chance decides. */
void race_one_instruction(struct cluster *c, const struct lanes_access *a, uint32_t lanes,
	uint64_t addr)
{
	const struct event *e = a->e;
	const uint32_t lost = a->overwritten & lanes;
	const uint32_t kept = lanes & ~lost ? lanes & ~lost : lanes & (lanes - 1);
	const unsigned lane = (unsigned)__builtin_ctz(lost ? lost : lanes);
	const unsigned other = (unsigned)__builtin_ctz(lost ? kept : lanes & (lanes - 1));
	struct warp *w = warp_of(c, e);
	struct finding *f = report_new(c, CS103, lost ? SEV_WARNING : SEV_NOTE, e->site,
		lost ? 0 : e->site);

	if (!f)
		return;
	report_side(c, f, w->index, (int)lane, e->site, "write");
	report_memory(c, f, 0, a->owner, addr, a->bytes);
	if (lost) {
		report_edge(f, "lanes %u and %u write different values to the same bytes in one instruction: "
			"which value remains is undefined", lane, other);
		report_send(c, f);
		return;
	}
	report_side(c, f, w->index, (int)other, e->site, "write");
	report_memory(c, f, 1, a->owner, addr, a->bytes);
	report_edge(f, "lanes %u and %u write the same bytes in one instruction", lane, other);
	report_hint(f, "harmless if all lanes write the same value; else let one lane write");
	report_send(c, f);
}
