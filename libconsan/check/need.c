/* need: the wait that a thread lacks: for which phase of which mbarrier, and why it has not
 * observed that phase. */
#include "race_report.h"
#include "libconsan/event/event.h"
#include "libconsan/finding/rule_codes.h"

#include <stdio.h>
#include <stdlib.h>

/* Did one place of the source initialise both alike? Loops around it may be unrolled. */
static bool same_init(const struct mbar *a, const struct mbar *b)
{
	const struct site *x = site_get(a->init.site), *y = site_get(b->init.site);

	return a->live && a->cta == b->cta && a->expected == b->expected
		&& (x == y || (x->loc && x->loc == y->loc));
}

static int by_address(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The mbarriers that were initialised like m, if they have one distance; else m alone. */
static void find_ring(struct cluster *c, const struct mbar *m, struct finding_need *to)
{
	enum { MOST = 64 };
	uint32_t at[MOST], n = 0;

	*to = (struct finding_need){ .init = m->init.site, .first = m->addr, .stride = 8, .n = 1 };
	for (size_t i = 0; i < c->mbars.n && n < MOST; i++)
		if (same_init(&c->mbars.at[i], m))
			at[n++] = c->mbars.at[i].addr;
	qsort(at, n, sizeof *at, by_address);
	for (uint32_t i = 2; i < n; i++)
		if (at[i] - at[i - 1] != at[1] - at[0])
			return;
	if (n < 2)
		return;
	to->first = at[0];
	to->stride = at[1] - at[0];
	to->n = n;
	to->index = (m->addr - at[0]) / to->stride;
}

static void need(struct cluster *c, struct finding *f, const struct mbar *m, uint64_t phase)
{
	struct finding_need *x = &f->need;

	find_ring(c, m, x);
	x->phase = phase;
	for (unsigned i = 0; i < 2; i++)
		launch_symbol(&c->check->config.launch, x->first + i * (x->n - 1) * x->stride, true, x->name[i],
			sizeof x->name[i]);
}

/* A thread that overwrites what others have read is right to test the parity of the phase before
 * phase 0 the first time. */
static bool fills_again(unsigned rule)
{
	return rule == CS105 || rule == CS106 || rule == CS602 || rule == CS609;
}

bool race_explain_wait(struct cluster *c, struct finding *f, const struct mbar *m, uint64_t phase,
	const struct warp *w, int lane)
{
	const struct mb_view *seen = &m->view[w->id];
	char name[64];

	launch_symbol(&c->check->config.launch, m->addr, true, name, sizeof name);
	if (!*name)
		snprintf(name, sizeof name, "at shared+0x%x", m->addr);
	if (seen->passed < (int64_t)phase)
		need(c, f, m, phase);
	if (seen->passed == -2) {
		report_hint(f, HINT(never_waited), w->id, name);
		report_edit(f, f->side[0].site, EDIT(never_waited));
	} else if (seen->passed == -1 && fills_again(f->rule)) {
		report_hint(f, HINT(first_round), w->id, (unsigned long long)phase);
		report_edit(f, f->side[0].site, EDIT(first_round));
	} else if (seen->passed == -1) {
		report_hint(f, HINT(fresh_parity), w->id);
		report_edit(f, seen->site, EDIT(fresh_parity));
	} else if (seen->passed < (int64_t)phase) {
		report_hint(f, HINT(stale_parity), w->id, (long long)seen->passed);
		report_edit(f, seen->site, EDIT(stale_parity));
	} else if (lane >= 0 ? !(seen->passed_lanes >> lane & 1) : w->live & ~seen->passed_lanes) {
		report_hint(f, HINT(some_lanes_waited), w->id);
		report_between(f, seen->site, f->side[0].site, EDIT(some_lanes_waited));
	} else if (seen->relaxed) {
		report_hint(f, HINT(relaxed_wait), w->id);
		report_edit(f, seen->site, EDIT(relaxed_wait));
	} else {
		return false;
	}
	return true;
}

static bool arrives_on(const struct mbar *m, const struct warp *w)
{
	for (size_t i = 0; i < m->arrivals.n; i++)
		if (m->arrivals.at[i].warp == w->index)
			return true;
	for (size_t i = 0; i < m->arrivals_before.n; i++)
		if (m->arrivals_before.at[i].warp == w->index)
			return true;
	return false;
}

bool race_explain_handoff(struct cluster *c, struct finding *f, const struct warp *a,
	uint32_t epoch, const struct warp *b, int lane)
{
	const uint32_t n = a->releases, kept = ARRAY_SIZE(a->release);

	for (uint32_t i = n > kept ? n - kept : 0; i < n; i++) {
		const struct mbar *m = a->release[i % kept].mbar
			? &c->mbars.at[a->release[i % kept].mbar - 1] : NULL;

		if (!m || a->release[i % kept].epoch < epoch || !m->live || m->cta != b->cta
			|| arrives_on(m, b))
			continue;
		if (!race_explain_wait(c, f, m, a->release[i % kept].phase, b, lane))
			continue;
		report_mbar(c, f, m);
		return true;
	}
	return false;
}
