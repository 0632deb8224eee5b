/* tmem_report: the findings about tensor memory in words: the two operations, the cells, and what is
 * missing between them. */
#include "race_report.h"
#include "tcgen05.h"
#include "libconsan/finding/rule_codes.h"

#include <stdio.h>
#include <string.h>

static const char *const operand[] = { "D", "A", "scales" };

static void name_access(char *to, size_t n, const struct cell_entry *e, enum agent_kind kind,
	uint32_t site)
{
	const char *ptx = site_get(site)->ptx;
	const bool write = e->what & CELL_WRITE;
	const uint32_t role = (e->what & CELL_SCOPE_MASK) >> CELL_SCOPE_AT;

	if (kind == AGENT_TMEM_LD || kind == AGENT_TMEM_ST)
		snprintf(to, n, kind == AGENT_TMEM_LD ? "tcgen05.ld" : "tcgen05.st");
	else if (kind == AGENT_WARP)
		snprintf(to, n, "tcgen05.dealloc");
	else if (strstr(ptx, "tcgen05.cp"))
		snprintf(to, n, "tcgen05.cp write");
	else if (strstr(ptx, "tcgen05.shift"))
		snprintf(to, n, "tcgen05.shift");
	else
		snprintf(to, n, "tcgen05.mma %s of %s", write ? "write" : "read",
			operand[role < ARRAY_SIZE(operand) ? role : 0]);
}

/* A cell's address: the lane in the upper half, the column in the lower one */
static void name_cell(struct finding *f, unsigned side, unsigned peer, uint32_t granule,
	uint32_t lanes)
{
	struct finding_side *s = &f->side[side];
	const uint32_t lane = tmem_granule_lane(granule) + (uint32_t)__builtin_ctz(lanes);
	const uint32_t column = tmem_granule_column(granule);

	s->space = SP_TMEM;
	s->peer = (uint16_t)peer;
	s->addr = lane << 16 | column;
	s->bytes = 4;
	snprintf(s->variable, sizeof s->variable, "lane %u, column %u", lane, column);
}

static void name_area(struct finding_side *s, const struct ev_area *a)
{
	s->cells = (struct finding_cells){ .column = a->column, .columns = a->columns };
	memcpy(s->cells.lanes, a->lanes, sizeof s->cells.lanes);
}

/* What the shadow still has of the earlier access: not what others have overwritten since */
static void name_recorded(const struct tmem_view *t, struct finding_side *s,
	const struct cell_entry *e)
{
	const struct shadow *shadow = &t->v.c->cta[t->v.peer].tmem;
	struct finding_cells *cells = &s->cells;
	uint32_t last = 0;

	for (uint32_t column = 0; column < TMEM_COLUMNS; column++)
		for (uint32_t b = 0; b < TMEM_BLOCKS; b++) {
			const uint32_t lanes = shadow_recorded(shadow, tmem_granule(b, column), e->agent,
				e->epoch);

			if (!lanes)
				continue;
			if (!cells->columns)
				cells->column = (uint16_t)column;
			cells->columns = 1;
			cells->lanes[b / 2] |= lanes << 16 * (b & 1);
			last = column;
		}
	if (cells->columns)
		cells->columns = (uint16_t)(last + 1 - cells->column);
}

static void note_reported(uint32_t *up_to, uint32_t epoch)
{
	*up_to = *up_to > epoch ? *up_to : epoch;
}

/* The newest commit of the issuing thread for which `by` has waited last on its mbarrier, if it
 * precedes the operation. */
static const struct tc_commit *early_commit(const struct cluster *c, const struct warp *issuer,
	const struct cell_entry *old, const struct warp *by)
{
	const uint32_t lane = (uint32_t)__builtin_ctz(old->lanes);
	const struct tc_commit *found = NULL;

	for (size_t i = 0; i < issuer->tc->commit.n; i++) {
		const struct tc_commit *x = &issuer->tc->commit.at[i];
		const struct mbar *m = &c->mbars.at[x->mbar];

		if (x->lane == lane && x->epoch < old->epoch && m->live && m->cta == by->cta
			&& m->view[by->id].passed == (int64_t)x->phase && (!found || x->epoch > found->epoch))
			found = x;
	}
	return found;
}

/* Other warps wait for the mbarrier, and this one never does. */
static bool is_for_others(const struct cluster *c, const struct mbar *m, const struct warp *w)
{
	bool others = false;

	for (uint32_t i = 0; i < c->per_cta; i++)
		others |= i != w->id && (m->view[i].passed != -2 || m->view[i].polled != -2);
	return others && m->view[w->id].passed == -2;
}

/* The issuing warp arrives behind the operation by itself, and `by` has waited for that: the arrive
 * should be a commit. */
static bool plain_arrive(const struct cluster *c, struct finding *f, const struct warp *issuer,
	uint32_t epoch, const struct warp *by)
{
	const struct tc_op *op = tc_op_at(issuer->tc, epoch);
	const uint32_t n = issuer->releases, kept = ARRAY_SIZE(issuer->release);
	char place[PLACE_BYTES];

	for (uint32_t i = n > kept ? n - kept : 0; op && by && i < n; i++) {
		const uint32_t site = issuer->release[i % kept].site;
		const struct mbar *m = issuer->release[i % kept].mbar
			? &c->mbars.at[issuer->release[i % kept].mbar - 1] : NULL;

		if (!m || issuer->release[i % kept].epoch < op->issued || m->cta != by->cta
			|| m->view[by->id].passed < (int64_t)issuer->release[i % kept].phase
			|| strstr(site_get(site)->ptx, "expect_tx"))
			continue;
		report_edge(f, "warp %u's arrive on the mbarrier for which warp %u has waited does not wait "
			"for the %s, as a tcgen05.commit does", issuer->id, by->id, f->side[1].what);
		report_hint(f, HINT(tc_arrive), report_place(site, place));
		report_edit(f, site, EDIT_CHANGE,
			"tcgen05.commit.cta_group::%u.mbarrier::arrive::one.shared::cluster.b64 [];",
			strstr(site_get(f->side[1].site)->ptx, "cta_group::2") ? 2u : 1u);
		report_words(f, "arrive by tcgen05.commit");
		return true;
	}
	return false;
}

void tmem_explain_operation(struct cluster *c, struct finding *f, const struct cell_entry *old,
	const struct warp *by, int by_lane)
{
	char place[PLACE_BYTES];
	uint32_t index;
	const struct warp *issuer;
	const struct tc_commit *x, *early = NULL;
	const struct mbar *m;

	agent_kind(c, old->agent, &index);
	issuer = &c->warp[index];
	note_reported(&issuer->tc->reported, old->epoch);
	x = tc_commit_of(issuer->tc, (uint32_t)__builtin_ctz(old->lanes), old->epoch);
	m = x ? &c->mbars.at[x->mbar] : NULL;
	if (by && (!m || m->cta != by->cta || is_for_others(c, m, by))) {
		if (plain_arrive(c, f, issuer, old->epoch, by))
			return;
		early = early_commit(c, issuer, old, by);
	}
	if (early && (x || !early->epoch)) { /* without x: if it covers nothing at all */
		report_mbar(c, f, &c->mbars.at[early->mbar]);
		report_edge(f, "the tcgen05.commit that completes phase %llu of mbarrier %s precedes the %s",
			(unsigned long long)early->phase, f->barrier.name, f->side[1].what);
		report_hint(f, HINT(tc_commit_too_early), by->id, report_place(early->site, place));
		report_between(f, early->site, f->side[1].site, EDIT(tc_commit_too_early));
		return;
	}
	if (!x && by == &c->warp[index]) {
		report_edge(f, "no tcgen05.commit to an mbarrier, and no wait for its phase, comes between the "
			"two: the second may begin before the %s is complete", f->side[1].what);
		report_hint(f, HINT(tc_not_committed_between));
		report_between(f, f->side[1].site, f->side[0].site, EDIT(tc_not_committed_between));
		return;
	}
	if (!x) {
		report_edge(f, "no tcgen05.commit of the issuing thread follows the %s, so no thread can know "
			"that it is complete", f->side[1].what);
		report_hint(f, HINT(tc_not_committed));
		report_edit(f, f->side[1].site, EDIT(tc_not_committed));
		return;
	}
	report_mbar(c, f, m);
	report_edge(f, "the tcgen05.commit after the %s completes phase %llu of mbarrier %s of CTA %u: a "
		"wait for that phase must be ordered before this", f->side[1].what,
		(unsigned long long)x->phase, f->barrier.name, m->cta);
	if (by && by->cta == m->cta && race_explain_wait(c, f, m, x->phase, by, by_lane))
		return;
	report_hint(f, HINT(tc_wait_for_commit), report_place(x->site, place));
	report_between(f, x->site, f->side[0].site, EDIT(tc_wait_for_commit));
}

/* The old access is a load (0) or a store (1) of a warp. */
static void explain_access(struct finding *f, const struct tmem_view *t, unsigned store,
	const struct warp *a, uint32_t number)
{
	const struct warp *b = t->v.w;
	const char *wait = store ? "tcgen05.wait::st" : "tcgen05.wait::ld";
	const uint32_t wait_site = a->tc->access[store].wait_site;
	char place[PLACE_BYTES];

	if (tmem_waited_first(t, a, store, number)) {
		report_edge(f, "warp %u has waited for its %s, but no synchronisation orders that wait before "
			"this %s by warp %u of CTA %u", a->id, f->side[1].what, f->side[0].what, b->id, b->cta);
		if (race_explain_handoff(t->v.c, f, a, a->tc->access[store].issued[number % TC_RECENT], b,
			only_lane(t->v.lanes)))
			return;
		report_hint(f, HINT(tmem_no_sync), a->id, report_place(wait_site, place));
		report_between(f, wait_site, f->side[0].site, EDIT(tmem_no_sync));
		return;
	}
	report_edge(f, "%s of warp %u, and a synchronisation after it, must come between its %s and this "
		"%s", wait, a->id, f->side[1].what, f->side[0].what);
	if (a->tc->access[store].done >= number)
		report_hint(f, HINT(tmem_wait_too_late), a->id, wait, report_place(wait_site, place));
	else if (store)
		report_hint(f, HINT(tmem_wait_st), a->id);
	else
		report_hint(f, HINT(tmem_wait_ld), a->id);
	report_edit(f, f->side[1].site, EDIT_AFTER, "%s.sync.aligned;", wait);
}

/* The first release by the warp after its load (0) or store (1) that the later access has acquired;
 * 0: none, or it is forgotten. */
static uint32_t release_of(const struct tmem_view *t, const struct warp *by, unsigned store,
	uint32_t number)
{
	const uint32_t issued = by->tc->access[store].issued[number % TC_RECENT];
	const uint32_t n = by->releases, kept = ARRAY_SIZE(by->release);

	for (uint32_t i = n > kept ? n - kept : 0; i < n; i++)
		if (by->release[i % kept].epoch >= issued && frontier_knows_one(&t->v.c->space, t->v.f,
			by->index, UINT32_MAX, by->release[i % kept].epoch))
			return by->release[i % kept].site;
	return 0;
}

void tmem_report(const struct tmem_view *t, unsigned rule, unsigned isa,
	const struct cell_entry *old, const struct cell_entry *now, uint32_t granule, uint32_t lanes)
{
	const uint32_t site = now->what & CELL_SITE_MASK, old_site = old->what & CELL_SITE_MASK;
	struct cluster *c = t->v.c;
	uint32_t index, self;
	const enum agent_kind kind = agent_kind(c, old->agent, &index);
	const bool loaded = kind == AGENT_TMEM_LD && rule != CS606 && tmem_is_loaded(t, old);
	struct finding *f = report_new(c, rule, loaded ? SEV_NOTE : rule_severity(rule), site, old_site);
	const struct warp *by = &c->warp[index];
	char what[48];

	if ((rule == CS602 || rule == CS603) && !loaded)
		note_reported(&by->tc->access[rule == CS603].reported, old->epoch);
	if (((rule == CS604 || rule == CS605) && !f) || rule == CS635)
		note_reported(&by->tc->reported, old->epoch);
	if (!f)
		return;
	name_access(what, sizeof what, now, agent_kind(c, now->agent, &self), site);
	report_side(c, f, t->v.w->index, only_lane(t->v.lanes), site, what);
	name_cell(f, 0, t->v.peer, granule, lanes);
	name_area(&f->side[0], t->area);
	name_access(what, sizeof what, old, kind, old_site);
	report_side(c, f, index, only_lane(old->lanes), old_site, what);
	name_cell(f, 1, t->v.peer, granule, lanes);
	if (report_is_shown(c, f))
		name_recorded(t, &f->side[1], old);
	if (rule == CS606) {
		report_edge(f, "PTX ISA %s orders the %s after the %s of the same %s, %s does not",
			isa == ISA_91 ? "9.1" : "9.4", f->side[0].what, f->side[1].what,
			t->op ? "thread" : "warp", isa == ISA_91 ? "9.4" : "9.1");
	} else if (rule == CS635) {
		report_edge(f, "warp %u of CTA %u and warp %u of CTA %u issue it, and no synchronisation orders "
			"the completion of the one before the other", by->id, by->cta, t->v.w->id, t->v.w->cta);
	} else if (rule == CS607) {
		report_edge(f, "warp %u's %s is ordered before this %s, but without a tcgen05.fence on each "
			"side of the synchronisation", by->id, f->side[1].what, f->side[0].what);
		report_hint(f, HINT(tc_fence_missing));
		report_between(f, old_site, site, EDIT(tc_fence_missing));
		if (kind == AGENT_TMEM_LD || kind == AGENT_TMEM_ST)
			report_edit(f, release_of(t, by, kind == AGENT_TMEM_ST, old->epoch), EDIT_BEFORE,
				"tcgen05.fence::before_thread_sync;");
	} else if (kind == AGENT_TMEM_LD || kind == AGENT_TMEM_ST) {
		explain_access(f, t, kind == AGENT_TMEM_ST, by, old->epoch);
		if (loaded)
			report_hint(f, HINT(tmem_registers_read), by->id);
	} else {
		tmem_explain_operation(c, f, old, t->v.w, only_lane(t->v.lanes));
	}
	report_send(c, f);
}

void tmem_report_unwritten(const struct tmem_view *t, const struct cell_entry *now,
	uint32_t granule, uint32_t lanes)
{
	const uint32_t site = now->what & CELL_SITE_MASK;
	struct cluster *c = t->v.c;
	const bool note = t->partly && !c->check->config.policy.uninitialised_tile;
	struct finding *f = report_new(c, CS612, note ? SEV_NOTE : rule_severity(CS612), site, 0);
	uint32_t self;
	char what[48];

	if (!f)
		return;
	name_access(what, sizeof what, now, agent_kind(c, now->agent, &self), site);
	report_side(c, f, t->v.w->index, only_lane(t->v.lanes), site, what);
	name_cell(f, 0, t->v.peer, granule, lanes);
	name_area(&f->side[0], t->area);
	report_edge(f, "nothing has written this cell since tcgen05.alloc");
	if (t->op && t->area->mode == MODE_RMW)
		report_hint(f, HINT(tc_enable_input));
	else if (note)
		report_hint(f, HINT(tmem_half_window));
	report_send(c, f);
}
