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
	const uint32_t lane = granule / TMEM_COLUMNS * CELL_BYTES + (uint32_t)__builtin_ctz(lanes);

	s->space = SP_TMEM;
	s->peer = (uint16_t)peer;
	s->addr = lane << 16 | granule % TMEM_COLUMNS;
	s->bytes = 4;
	snprintf(s->variable, sizeof s->variable, "lane %u, column %u", lane,
		granule % TMEM_COLUMNS);
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
		for (uint32_t b = 0; b < TMEM_LANES / CELL_BYTES; b++) {
			const uint32_t lanes = shadow_recorded(shadow, b * TMEM_COLUMNS + column, e->agent,
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

void tmem_explain_operation(struct cluster *c, struct finding *f, const struct cell_entry *old,
	const struct warp *by, int by_lane)
{
	char place[PLACE_BYTES];
	uint32_t index;
	const struct tc_commit *x;
	const struct mbar *m;

	agent_kind(c, old->agent, &index);
	note_reported(&c->warp[index].tc->reported, old->epoch);
	x = tc_commit_of(c->warp[index].tc, (uint32_t)__builtin_ctz(old->lanes), old->epoch);
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
	m = &c->mbars.at[x->mbar];
	report_mbar(c, f, m);
	report_edge(f, "the tcgen05.commit after the %s completes phase %llu of mbarrier %s of CTA %u: a "
		"wait for that phase must be ordered before this", f->side[1].what,
		(unsigned long long)x->phase, f->barrier.name, m->cta);
	if (by && by->cta == m->cta && race_explain_wait(f, m, x->phase, by, by_lane))
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
