/* race_report: the findings of races on shared memory, in words: the two accesses, and the
 * synchronization that is missing between them. */
#include "libconsan/event/event.h"
#include "libconsan/finding/rule_codes.h"
#include "race_report.h"
#include "tcgen05.h"

#include <stdio.h>
#include <string.h>

static const char *what_of(const struct cluster *c, const struct cell_entry *e, enum agent_kind k)
{
	bool write = e->what & CELL_WRITE, part = e->what & CELL_PART;

	uint32_t index;

	switch (k) {
	case AGENT_WARP:
		if (write && part && e->what & CELL_STRONG)
			return "atomic read-modify-write";
		if ((e->what & CELL_SCOPE_MASK) == CELL_VOLATILE)
			return write ? "volatile write" : "volatile read";
		if (e->what & CELL_STRONG)
			return write ? "strong write" : "strong read";
		return write ? "write" : "read";
	case AGENT_COPIES:
		return "cp.async write";
	case AGENT_STORES:
		return part ? "TMA store read" : "bulk store read";
	case AGENT_WGMMA:
		return part ? "wgmma read of B" : "wgmma read of A";
	case AGENT_TC:
		if (strstr(site_get(e->what & CELL_SITE_MASK)->ptx, "tcgen05.cp"))
			return "tcgen05.cp read";
		return part ? "tcgen05.mma read of B" : "tcgen05.mma read of A";
	case AGENT_TMEM_LD: case AGENT_TMEM_ST:
		break;
	case AGENT_SLOT:
		if (!write)
			return "bulk copy read";
		agent_kind(c, e->agent, &index);
		if (c->slots.at[index].generic)
			return e->what & CELL_STRONG ? "red.async" : "st.async";
		return c->slots.at[index].response ? "response of try_cancel"
			: part ? "TMA load write" : "bulk load write";
	}
	return "access";
}

struct accessor race_accessor(const struct cluster *c, const struct cell_entry *e, unsigned byte)
{
	uint32_t index, lanes = cell_lanes_at(e, byte);
	enum agent_kind k = agent_kind(c, e->agent, &index);
	struct accessor d = { index, -1, what_of(c, e, k) };

	switch (k) {
	case AGENT_WARP: case AGENT_COPIES: case AGENT_STORES:
	case AGENT_TC: case AGENT_TMEM_LD: case AGENT_TMEM_ST:
		d.lane = lanes ? __builtin_ctz(lanes) : -1;
		break;
	case AGENT_WGMMA:
		d.warp = index / c->wg_per_cta * c->per_cta + index % c->wg_per_cta * 4;
		break;
	case AGENT_SLOT:
		d.warp = c->slots.at[index].warp;
		d.lane = c->slots.at[index].epoch == e->epoch && !c->slots.at[index].several
			? c->slots.at[index].lane : -1;
		break;
	}
	return d;
}

/* Reports how many more groups the last wait of that lane should have covered. */
static void hint_groups(struct finding *f, const struct lane_groups *g, unsigned lane,
	uint32_t epoch, const char *wait, const char *commit)
{
	uint32_t newer = 0, committed = 0;
	char place[PLACE_BYTES];

	for (size_t i = 0; i < g->n; i++)
		if (g->at[i].lanes >> lane & 1) {
			committed |= g->at[i].number >= epoch;
			newer += g->at[i].number > epoch;
		}
	/* the group that contains the operation is the first that is not older */
	for (size_t i = 0; i < g->n; i++)
		if (g->at[i].lanes >> lane & 1 && g->at[i].number >= epoch) {
			if (g->at[i].number > epoch)
				newer--;
			break;
		}
	if (!committed) {
		report_hint(f, HINT(not_committed), commit);
		report_edit(f, g->site[lane], EDIT(not_committed), commit);
	} else if (!g->wait_site[lane]) {
		report_hint(f, HINT(never_waited_for_group), wait);
		report_between(f, f->side[1].site, f->side[0].site, EDIT(never_waited_for_group), wait,
			newer);
	} else if (g->wait_count[lane] > newer) {
		report_hint(f, HINT(group_left_pending), wait, g->wait_count[lane],
			g->wait_count[lane] - newer, newer);
		report_edit(f, g->wait_site[lane], EDIT(group_left_pending), newer);
	} else {
		report_hint(f, HINT(wait_precedes_group), wait, report_place(g->wait_site[lane], place));
		report_between(f, f->side[1].site, f->side[0].site, EDIT(wait_precedes_group), wait, newer);
	}
}

static void explain_load(struct cluster *c, struct finding *f, const struct cell_entry *old,
	uint32_t slot, const struct accessor *by)
{
	const struct slot *s = &c->slots.at[slot];
	const struct warp *w = &c->warp[by->warp];
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
	if (w->cta == m->cta && !race_explain_wait(c, f, m, s->phase, w, by->lane)) {
		report_hint(f, HINT(bytes_not_expected), w->id, (long long)m->view[w->id].passed);
		report_edit(f, m->expect_site, EDIT(bytes_not_expected));
	}
}

static void explain_fence(struct cluster *c, struct finding *f, const struct cell_entry *old,
	const struct view *v)
{
	char place[PLACE_BYTES];
	const struct warp *by;
	bool stored = false;
	uint32_t index, own_fence;

	if (agent_kind(c, old->agent, &index) == AGENT_SLOT) {
		stored = c->slots.at[index].generic;
		index = c->slots.at[index].warp;
	}
	by = &c->warp[index];
	own_fence = v->peer != v->w->cta && v->w->own_fence_site ? v->w->own_fence_site
		: v->peer != by->cta ? by->own_fence_site : 0;
	report_edge(f, "warp %u's %s is ordered before this %s, but without a fence.proxy.async "
		"between them", by->id, f->side[1].what, f->side[0].what);
	if (stored) {
		report_hint(f, HINT(fence_after_st_async));
		report_edit(f, f->side[0].site, EDIT(fence_after_st_async));
	} else if (by->global_fence.site && by->global_fence.epoch >= old->epoch) {
		report_hint(f, HINT(fence_of_global), report_place(by->global_fence.site, place));
		report_edit(f, by->global_fence.site, EDIT(fence_of_global));
	} else if (own_fence) {
		report_hint(f, HINT(fence_of_own_cta), report_place(own_fence, place), v->peer,
			v->peer);
		report_edit(f, own_fence, EDIT(fence_of_own_cta));
	} else if (!by->fence_site && v->w->fence_site && by != v->w) {
		report_hint(f, HINT(fence_by_reader), v->w->id, by->id);
	}
}

/* An arrive that expects bytes announces what a copy will bring: it hands no buffer back. */
static bool hands_back(uint32_t site, const char *kind)
{
	const char *ptx = site_get(site)->ptx;

	return strstr(ptx, kind) && !strstr(ptx, "expect_tx");
}

/* The newest arrive of this kind by the warp that an agent has observed and that precedes epoch
 * `before`, which may hand back a buffer; 0: none, or it is forgotten. */
static uint32_t arrive_of(const struct cluster *c, const struct frontier *f, const struct warp *w,
	uint32_t before, const char *kind)
{
	for (uint32_t i = 0; f && i < ARRAY_SIZE(w->release) && i < w->releases; i++) {
		const uint32_t k = (w->releases - 1 - i) % ARRAY_SIZE(w->release);

		if (w->release[k].epoch < before && hands_back(w->release[k].site, kind)
			&& frontier_knows_one(&c->space, f, w->index, UINT32_MAX, w->release[k].epoch))
			return w->release[k].site;
	}
	return 0;
}

/* The accessor knows what other lanes of the warp did in this epoch: their arrive did not cover this lane.
 * False: it knows of none. */
static bool hint_elected(struct cluster *c, struct finding *f, const struct cell_entry *old, const struct view *v,
	const struct warp *w, int lane)
{
	if (!v->f || !frontier_lanes(&c->space, v->f, PLANE_G, old->agent, old->epoch))
		return false;
	report_hint(f, HINT(elected_arrive), w->id, lane);
	report_edit(f, arrive_of(c, v->f, w, UINT32_MAX, "arrive"), EDIT(elected_arrive));
	return true;
}

static void hint_barrier(struct cluster *c, struct finding *f, const struct cell_entry *old, const struct view *v,
	const struct warp *w, const struct lane_groups *g, int lane)
{
	const uint32_t wait = lane >= 0 ? g->wait_site[lane] : 0;
	char place[PLACE_BYTES];

	if (hint_elected(c, f, old, v, w, lane))
		return;
	report_hint(f, HINT(no_barrier_after_wait), wait ? " at " : "",
		wait ? report_place(wait, place) : "");
	report_between(f, wait ? wait : f->side[1].site, f->side[0].site, EDIT(no_barrier_after_wait));
}

/* The warpgroup released the buffer before its wait: the arrive of one of its warps. */
static void hint_early_wgmma(struct cluster *c, struct finding *f, const struct view *v,
	const struct warpgroup *g, uint32_t first)
{
	char place[PLACE_BYTES];

	for (uint32_t i = first; i < first + 4 && i < c->nwarps; i++) {
		const uint32_t arrive = arrive_of(c, v->f, &c->warp[i], UINT32_MAX, "mbarrier.arrive");

		if (!arrive)
			continue;
		report_hint(f, HINT(released_early), c->warp[i].id, report_place(arrive, place),
			f->side[1].what);
		report_between(f, arrive, g->wait_site, EDIT(released_early));
		return;
	}
}

static void explain_plain(struct cluster *c, struct finding *f, const struct cell_entry *old,
	const struct view *v, const struct accessor *now_by, const struct accessor *old_by)
{
	const struct warp *a = &c->warp[old_by->warp], *b = &c->warp[now_by->warp];
	char place[PLACE_BYTES];
	uint32_t known, arrive;

	if (v->role == ROLE_WGMMA) {
		report_edge(f, "the operands of a wgmma must be ordered before it in all its warps: no "
			"synchronisation orders warp %u's %s before warp %u", a->id, f->side[1].what, b->id);
		if (a != b)
			return;
		report_hint(f, HINT(collective_in_warp));
		report_between(f, f->side[1].site, f->side[0].site, EDIT(collective_in_warp));
		return;
	}
	if (a == b) {
		report_edge(f, "no bar.warp.sync (__syncwarp) orders the %s by lane %d before this %s",
			f->side[1].what, old_by->lane, f->side[0].what);
		report_between(f, f->side[1].site, f->side[0].site, EDIT(collective_in_warp));
		return;
	}
	known = v->f ? frontier_full(&c->space, v->f, PLANE_G, old->agent) : 0;
	arrive = arrive_of(c, v->f, a, old->epoch, "arrive");
	if (v->f && known + 1 < old->epoch)
		report_edge(f, "the last synchronisation from warp %u to warp %u precedes the %s: another "
			"barrier, or mbarrier arrive and wait, must follow it", a->id, b->id,
			f->side[1].what);
	else
		report_edge(f, "no synchronisation orders warp %u's %s before this %s by warp %u", a->id,
			f->side[1].what, f->side[0].what, b->id);
	if (hint_elected(c, f, old, v, a, old_by->lane))
		return;
	if (a->restricted_fence.site && a->restricted_fence.epoch >= old->epoch
		&& v->peer != a->cta) {
		report_hint(f, HINT(restricted_fence), report_place(a->restricted_fence.site, place));
		report_edit(f, a->restricted_fence.site, EDIT(restricted_fence));
	} else if (a->relaxed_arrive.site && a->relaxed_arrive.epoch >= old->epoch) {
		report_hint(f, HINT(relaxed_arrive), a->id, report_place(a->relaxed_arrive.site, place));
		report_edit(f, a->relaxed_arrive.site, EDIT(relaxed_arrive));
	} else if (arrive && arrive != f->side[1].site) {
		report_hint(f, HINT(released_early), a->id, report_place(arrive, place), f->side[1].what);
		report_between(f, arrive, f->side[1].site, EDIT(released_early));
	} else {
		race_explain_handoff(c, f, a, old->epoch, b, now_by->lane);
	}
}

static void explain_scope(struct cluster *c, struct finding *f, unsigned cta, unsigned from)
{
	const uint32_t *site = c->cta[cta].narrow;
	char arrival[PLACE_BYTES], wait[PLACE_BYTES];

	report_edge(f, "CTA %u releases to CTA %u at .cta scope, which does not include both: release "
		"and acquire need the scope .cluster or wider", from, cta);
	if (!site[0] || !site[1])
		return;
	report_hint(f, HINT(scope_sites), report_place(site[0], arrival),
		report_place(site[1], wait));
	report_edit(f, report_narrower(site[0], site[1]), EDIT(scope_sites));
}

/* The wait that is too lax, or where one is missing. */
static void hint_wgmma(struct finding *f, const struct warpgroup *g, uint32_t group)
{
	char form[48];

	if (g->wait_site && g->wait_count > g->open - 1 - group) {
		report_edit(f, g->wait_site, EDIT(wgmma_left_pending), g->open - 1 - group);
		return;
	}
	snprintf(form, sizeof form, "wgmma.wait_group.sync.aligned %u;", g->open - 1 - group);
	edit_set(f, EDIT_BETWEEN, f->side[1].site, f->side[0].site, form);
}

static void explain(struct cluster *c, struct finding *f, const struct cell_entry *old,
	const struct view *v, const struct accessor *now_by, const struct accessor *old_by)
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
		if (old_by->lane >= 0 && warp_progress(&c->warp[index], AGENT_COPIES, PLANE_G,
			(unsigned)old_by->lane) < old->epoch)
			hint_groups(f, &c->warp[index].copies, (unsigned)old_by->lane, old->epoch,
				"cp.async.wait_group", "cp.async.commit_group");
		else
			hint_barrier(c, f, old, v, &c->warp[index], &c->warp[index].copies, old_by->lane);
		return;
	case AGENT_STORES:
		snprintf(f->barrier.kind, sizeof f->barrier.kind, "bulk group");
		f->barrier.phase = old->epoch;
		report_edge(f, "the issuing thread must wait for the group "
			"(cp.async.bulk.wait_group.read), then synchronise with this thread");
		if (old_by->lane >= 0 && warp_progress(&c->warp[index], AGENT_STORES, PLANE_G,
			(unsigned)old_by->lane) < old->epoch)
			hint_groups(f, &c->warp[index].stores, (unsigned)old_by->lane, old->epoch,
				"cp.async.bulk.wait_group", "cp.async.bulk.commit_group");
		else
			hint_barrier(c, f, old, v, &c->warp[index], &c->warp[index].stores, old_by->lane);
		return;
	case AGENT_WGMMA:
		g = &c->wg[index];
		snprintf(f->barrier.kind, sizeof f->barrier.kind, "wgmma group");
		f->barrier.phase = old->epoch;
		report_edge(f, "wgmma.wait_group must cover the wgmma, and synchronisation must order it "
			"before this access");
		if (old->epoch >= g->open) {
			report_hint(f, HINT(wgmma_not_committed));
			report_edit(f, g->site, EDIT(wgmma_not_committed));
		} else if (old->epoch > g->done) {
			report_hint(f, HINT(wgmma_left_pending), g->open - 1 - old->epoch,
				g->wait_site ? g->wait_count : g->open - 1);
			hint_wgmma(f, g, old->epoch);
		} else {
			report_hint(f, HINT(wgmma_not_released));
			report_between(f, g->wait_site, f->side[0].site, EDIT(wgmma_not_released));
			hint_early_wgmma(c, f, v, g, old_by->warp);
		}
		return;
	case AGENT_TC:
		tmem_explain_operation(c, f, old, &c->warp[now_by->warp], now_by->lane);
		return;
	case AGENT_TMEM_LD: case AGENT_TMEM_ST:
		return;
	case AGENT_SLOT:
		explain_load(c, f, old, index, now_by);
		return;
	}
}

/* A03: why two strong accesses are not morally strong. */
static void explain_strong(const struct view *v, struct finding *f, const struct cell_entry *old,
	const struct cell_entry *now, const struct accessor *old_by)
{
	static const char *const scope[] = { "cta", "cluster", "gpu", "sys" };
	unsigned a = (old->what & CELL_SCOPE_MASK) >> CELL_SCOPE_AT;
	unsigned b = (now->what & CELL_SCOPE_MASK) >> CELL_SCOPE_AT;
	bool cta = v->c->warp[old_by->warp].cta == v->w->cta;

	report_edge(f, "the two strong accesses are not atomic to each other, so they race like weak "
		"ones, and nothing else orders them");
	if (old->agent >= v->c->nwarps || now->agent >= v->c->nwarps)
		report_hint(f, HINT(proxies_differ));
	else if (f->side[0].bytes != f->side[1].bytes)
		report_hint(f, HINT(sizes_differ), f->side[1].bytes, f->side[0].bytes);
	else if (!cta && !(a < b ? a : b)) {
		report_hint(f, HINT(scope_too_narrow), f->side[a < b].what, scope[a < b ? a : b],
			"cluster");
		report_edit(f, f->side[a < b].site, EDIT(scope_too_narrow), "cluster");
	}
}

/* The accessor's bytes around `byte`: what its lane accessed, of an engine's access the part in
 * this granule. */
static void name_memory(struct cluster *c, struct finding *f, unsigned side, unsigned peer,
	const struct cell_entry *e, uint32_t granule, unsigned byte)
{
	const uint32_t at = granule * CELL_BYTES, below = ~(uint32_t)e->bytes & ((1u << byte) - 1);
	uint32_t size = cell_size(e), first = below ? 32 - (uint32_t)__builtin_clz(below) : 0;

	if ((e->what & CELL_SHIFT_MASK) != CELL_SAME)
		report_memory(c, f, side, peer, at + (byte & -size), size);
	else
		report_memory(c, f, side, peer, at + first,
			(uint32_t)__builtin_ctz(~((uint32_t)e->bytes >> first)));
}

void race_report(const struct view *v, unsigned rule, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t granule, uint32_t bytes)
{
	struct cluster *c = v->c;
	struct finding *f = report_new(c, rule, race_severity(v, rule, old),
		now->what & CELL_SITE_MASK, old->what & CELL_SITE_MASK);
	const bool of_fence = rule == CS110 || rule == CS111 || rule == CS112 || rule == CS113;
	struct race_gap gap;
	struct accessor a, b;

	if (!f)
		return;
	if (!race_unordered(v, of_fence ? race_plane(v, old) : PLANE_G, old, now, bytes, false, &gap)) {
		gap.byte = (unsigned)__builtin_ctz(bytes);
		gap.old_lane = race_accessor(c, old, gap.byte).lane;
		gap.now_lane = only_lane(v->lanes);
	}
	a = race_accessor(c, now, gap.byte);
	b = race_accessor(c, old, gap.byte);
	a.warp = gap.now->index;
	if (v->role != ROLE_WGMMA)
		a.lane = gap.now_lane;
	if (old->agent < 3 * c->nwarps)
		b.lane = gap.old_lane;
	report_side(c, f, a.warp, a.lane, now->what & CELL_SITE_MASK, a.what);
	name_memory(c, f, 0, v->peer, now, granule, gap.byte);
	report_side(c, f, b.warp, b.lane, old->what & CELL_SITE_MASK, b.what);
	name_memory(c, f, 1, v->peer, old, granule, gap.byte);
	if (of_fence) {
		explain_fence(c, f, old, v);
	} else if (rule == CS109) {
		report_edge(f, "only a warp collective (shfl, vote, match, redux, an .aligned instruction "
			"as ldmatrix) stands between them, or is one of them: it converges the lanes but orders "
			"no memory");
		if (v->role != ROLE_GENERIC) {
			const uint32_t arrive = arrive_of(c, v->f, &c->warp[b.warp], UINT32_MAX, "arrive");

			report_hint(f, HINT(converged_then_released), b.lane);
			report_between(f, f->side[1].site, f->side[0].site, EDIT(converged_then_released));
			if (arrive) /* the release by the elected lane */
				report_edit(f, arrive, EDIT(elected_arrive));
		}
	} else if (rule == CS117) {
		report_edge(f, "warp %u read a flag that warp %u released after its %s, but no acquire "
			"fence follows that relaxed read", c->warp[a.warp].id, c->warp[b.warp].id,
			f->side[1].what);
		report_hint(f, HINT(acquire_after_flag));
		report_edit(f, f->side[0].site, EDIT(acquire_after_flag),
			c->warp[a.warp].cta == c->warp[b.warp].cta ? "cta" : "cluster");
	} else if (rule == CS123) {
		report_edge(f, a.warp == b.warp ? "no bar.warp.sync (__syncwarp) orders lane %d's %s "
			"before this %s" : "no synchronisation orders lane %d's %s before this %s", b.lane,
			f->side[1].what, f->side[0].what);
		if (a.warp == b.warp) {
			report_hint(f, HINT(warp_synchronous));
			report_between(f, f->side[1].site, f->side[0].site, EDIT(warp_synchronous));
		} else
			report_hint(f, HINT(volatile_orders_nothing));
	} else if (rule == CS114) {
		report_edge(f, "the operations of CTA %u and CTA %u are ordered, but without a "
			"fence.proxy.async between them", race_cta_of(c, old), v->w->cta);
	} else if (rule == CS222) {
		explain_scope(c, f, v->w->cta, race_cta_of(c, old));
	} else if (rule == CS108) {
		explain_strong(v, f, old, now, &b);
	} else {
		explain(c, f, old, v, &a, &b);
	}
	report_values(c, f, old->what & now->what & CELL_WRITE);
	report_send(c, f);
}
