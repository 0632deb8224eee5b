/* candidate: see candidate.h. A finding's own edit is one candidate, or several at different
 * places. Where the checker knows what is wrong but not how the program should say it, there are
 * more: which wait of a hang, which count, which side of a synchronization lacks its fence. */
#include "candidate.h"
#include "missing_wait.h"

#include "libconsan/event/event.h"
#include "libconsan/finding/finding.h"
#include "libconsan/finding/hint_codes.h"
#include "libconsan/finding/rule_codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the edits that hints name those that change an instruction are the surest; then comes what is
 * inserted at one instruction, then barriers. Further places of an edit come later. */
static unsigned order_of(const struct finding *f, const struct place *p, size_t k)
{
	const unsigned kind = p->kind == EDIT_CHANGE ? 0 : f->edit.kind != EDIT_BETWEEN ? 1 : 2;

	return (unsigned)(4 * k) + kind + (f->severity == SEV_WARNING ? 8 : 0);
}

static bool same_candidate(const struct candidate *a, const struct candidate *b)
{
	return a->nplaces == b->nplaces && place_same(&a->place[0], &b->place[0])
		&& (a->nplaces < 2 || place_same(&a->place[1], &b->place[1]));
}

static void add(struct candidates *c, const struct candidate *x)
{
	size_t i = 0;

	if (!c->of[x->finding].counts || c->all.n == MAX_CANDIDATES)
		return;
	while (i < c->all.n && !same_candidate(&c->all.at[i], x))
		i++;
	if (i < c->all.n && c->all.at[i].order <= x->order)
		return;
	if (i == c->all.n)
		vec_push(&c->all, *x);
	c->all.at[i] = *x;
	c->all.at[i].when = candidate_when(c->f[x->finding]);
}

static void add_places(struct candidates *c, size_t i, const struct place *to, size_t n,
	unsigned order)
{
	for (size_t k = 0; k < n && c->tried; k++) {
		struct candidate x = { { to[k] }, 1, i, order + order_of(c->f[i], &to[k], k),
			0, *to[k].form == '^' };

		add(c, &x);
		if (!to[k].moved)
			continue;
		/* an arrive that one lane executes for its warp covers the others only behind a barrier */
		x.place[1] = to[k];
		x.place[1].moved = NULL;
		snprintf(x.place[1].ptx, sizeof x.place[1].ptx, "bar.warp.sync 0xffffffff;");
		x.nplaces = 2;
		x.order++;
		add(c, &x);
	}
}

/* ---- guesses ---- */

static void add_edit(struct candidates *c, size_t i, const struct finding_edit *e, unsigned order)
{
	struct place to[PLACES];

	add_places(c, i, to, place_edit(c->placer, e, PLACES, to), order);
}

static void add_change(struct candidates *c, size_t i, uint32_t site, const char *form,
	unsigned order)
{
	struct finding x = { 0 };

	edit_set(&x, EDIT_CHANGE, site, 0, form);
	add_edit(c, i, &x.edit, order);
}

/* In a hang, any of the waits may test the wrong parity, or count threads that do not arrive. */
static void add_waits(struct candidates *c, size_t i)
{
	const struct finding *f = c->f[i];

	for (unsigned k = 0; k < f->nwaiters; k++) {
		const struct finding_waiter *w = &f->waiter[k];
		const bool some = w->on.expected > w->on.pending && w->on.pending;
		char form[24];

		snprintf(form, sizeof form, "#1=%u", w->on.expected - w->on.pending);
		if (!strcmp(w->on.kind, "named barrier") && some)
			add_change(c, i, w->who.site, form, 0);
		if (w->on.init && some)
			add_change(c, i, w->on.init, form, UNSURE);
		if (edit_has_modifier(site_get(w->who.site)->ptx, ".parity"))
			add_change(c, i, w->who.site, "^2", 0);
	}
}

/* In a hang that waits for an mbarrier on which no thread arrives, an arrive or a commit on another
 * one may be meant for it. */
static void add_strays(struct candidates *c, size_t i)
{
	const struct finding *f = c->f[i];

	for (unsigned k = 0; k < f->nstrays; k++) {
		struct finding x = { 0 };
		struct text t = { 0 };
		char form[24];

		snprintf(form, sizeof form, "+%d", f->stray[k].delta);
		edit_set(&x, EDIT_CHANGE, f->stray[k].site, 0, form);
		text_printf(&t, "arrive on ");
		demangle_symbol(&t, f->barrier.name);
		text_printf(&t, " rather than on ");
		demangle_symbol(&t, f->stray[k].from);
		snprintf(x.edit.words, sizeof x.edit.words, "%s", t.at);
		text_free(&t);
		add_edit(c, i, &x.edit, 2);
	}
}

/* A wait that a rule about an mbarrier names may test the wrong parity. */
static void add_parities(struct candidates *c, size_t i)
{
	const struct finding *f = c->f[i];

	for (unsigned k = 0; k < f->nsides; k++)
		if (edit_has_modifier(site_get(f->side[k].site)->ptx, ".parity"))
			add_change(c, i, f->side[k].site, "^2", UNSURE / 2);
}

/* A phase that is complete too early may count too few arrivals: one, as many again, or one where
 * all lanes of a warp arrive. */
static void add_counts(struct candidates *c, size_t i)
{
	const struct finding *f = c->f[i];
	const uint32_t n = f->barrier.expected, count[] = { n + 1, 2 * n, n == 1 ? 32 : n + 1 };

	if (!f->barrier.init || !n || f->nwaiters)
		return;
	for (size_t k = 0; k < ARRAY_SIZE(count); k++) {
		char form[24];

		snprintf(form, sizeof form, "#1=%u", count[k]);
		add_change(c, i, f->barrier.init, form, (unsigned)(UNSURE + k));
	}
}

/* Waits that leave no group pending do where the number of later groups differs between paths. */
static void add_full_waits(struct candidates *c, size_t i)
{
	const struct finding *f = c->f[i];
	struct finding_edit e = f->edit;
	char *group = strstr(e.ptx, "wait_group");
	size_t n;

	if (!group)
		return;
	if (e.kind == EDIT_CHANGE) {
		add_change(c, i, e.site, "#0=0", UNSURE / 2);
	} else {
		n = strcspn(group, " ");
		snprintf(group + n, sizeof e.ptx - (size_t)(group + n - e.ptx), " 0;");
		add_edit(c, i, &e, UNSURE / 2);
	}
	if (f->rule != CS308)
		return;
	e = (struct finding_edit){ .kind = EDIT_BEFORE, .site = f->side[0].site,
		.ptx = "cp.async.bulk.wait_group.read 0;" };
	add_edit(c, i, &e, UNSURE / 2);
}

static const struct { unsigned hint; const char *after, *before; } fences[] = {
	{ HINT_tc_fence_missing, "tcgen05.fence::before_thread_sync;",
		"tcgen05.fence::after_thread_sync;" },
	{ HINT_release_and_acquire, "fence.acq_rel.gpu;", "fence.acq_rel.gpu;" },
	{ HINT_strong_and_weak, "fence.acq_rel.gpu;", "fence.acq_rel.gpu;" },
};

/* A fence that belongs to both sides of a synchronization: after the earlier access, before the
 * later one, or both. The threads that release and acquire may be others than those of the
 * accesses. */
static void add_fences(struct candidates *c, size_t i)
{
	const struct finding *f = c->f[i];
	struct place *after, *before;
	size_t k = 0, n, m, g;

	while (k < ARRAY_SIZE(fences) && fences[k].hint != f->hint_id)
		k++;
	if (k == ARRAY_SIZE(fences) || f->nsides < 2)
		return;
	after = base_alloc(4 * PLACES * sizeof *after);
	before = after + 2 * PLACES;
	for (g = 0; g < 2; g++) { /* a race of two clusters names them in either order */
		struct finding_edit e = { .kind = EDIT_AFTER, .site = f->side[!g].site };

		snprintf(e.ptx, sizeof e.ptx, "%s", fences[k].after);
		n = place_edit(c->placer, &e, PLACES, after);
		n += place_beside(c->placer, &e, after + n);
		if (!strcmp(f->edit.ptx, fences[k].after) && n < PLACES)
			n += place_edit(c->placer, &f->edit, PLACES, after + n);
		e = (struct finding_edit){ .kind = EDIT_BEFORE, .site = f->side[g].site };
		snprintf(e.ptx, sizeof e.ptx, "%s", fences[k].before);
		m = place_edit(c->placer, &e, PLACES, before);
		m += place_beside(c->placer, &e, before + m);
		add_places(c, i, after, n, 4);
		add_places(c, i, before, m, 4);
		for (size_t a = 0; a < n; a++)
			for (size_t b = 0; b < m; b++)
				add(c, &(struct candidate){ { after[a], before[b] }, 2, i,
					(unsigned)(9 + 4 * (a + b)), 0, false });
	}
	free(after);
}

/* What the rule alone says, if the hint names another edit. */
static void add_by_rule(struct candidates *c, size_t i)
{
	struct finding x = *c->f[i];

	x.edit = (struct finding_edit){ .kind = EDIT_NONE };
	edit_by_rule(&x);
	if (*x.edit.ptx)
		add_edit(c, i, &x.edit, 4);
}

static void add_missing_wait(struct candidates *c, size_t i)
{
	/* not on the stack, which may be small: it is the program's */
	struct candidate *x = base_alloc(MISSING_WAITS * sizeof *x);
	const size_t n = missing_wait(c->placer, c->f[i], x);

	for (size_t k = 0; k < n; k++) {
		x[k].finding = i;
		add(c, &x[k]);
	}
	free(x);
}

/* ---- the edits that findings show ---- */

void candidates_show(struct candidates *c, size_t i, const struct finding_edit *e,
	const struct finding_edit *also, bool hint)
{
	static const struct finding_edit none;

	check_edit(c->check, i, e, also ? also : &none, hint);
}

struct finding_edit candidate_edit(const struct candidates *c, const struct candidate *x,
	unsigned k)
{
	struct finding_edit e;

	if (k >= x->nplaces)
		return (struct finding_edit){ .kind = EDIT_NONE };
	if (!x->place[k].moved)
		return place_to_edit(&x->place[k]);
	e = place_to_edit(&x->place[k]);
	e.until = e.site;
	e.site = c->f[x->finding]->edit.site;
	e.kind = x->place[k].kind == EDIT_BEFORE ? EDIT_MOVE_BEFORE : EDIT_MOVE;
	return e;
}

/* The finding shows the first place until another one is known to be better. */
void candidates_add(struct candidates *c, size_t i)
{
	struct finding_edit e = c->f[i]->edit;
	const bool warp = e.kind == EDIT_BETWEEN && !strncmp(e.ptx, "bar.warp.sync", 13);
	struct place to[PLACES];
	char named[sizeof e.ptx];
	size_t n;

	/* warps with roles of their own have named barriers */
	if (!strcmp(e.ptx, "bar.sync 0;") && place_barrier(c->placer, e.site, named, sizeof named))
		snprintf(e.ptx, sizeof e.ptx, "%s", named);
	n = place_edit(c->placer, &e, c->tried ? PLACES : 1, to);
	add_places(c, i, to, n, 0);
	if (n && e.kind != EDIT_CHANGE) {
		const struct candidate first = { { to[0] }, 1, i, 0, 0, false };
		const struct finding_edit placed = candidate_edit(c, &first, 0);

		candidates_show(c, i, &placed, NULL, true);
	}
	if (!c->tried || c->all.n == MAX_CANDIDATES)
		return;
	add_waits(c, i);
	add_strays(c, i);
	add_parities(c, i);
	add_counts(c, i);
	add_full_waits(c, i);
	add_fences(c, i);
	add_missing_wait(c, i);
	add_by_rule(c, i);
	/* the example is of one warp, but others may be involved as well */
	if (warp && place_barrier(c->placer, e.site, e.ptx, sizeof e.ptx))
		add_edit(c, i, &e, 0);
	if (e.kind != EDIT_BETWEEN || strncmp(e.ptx, "bar", 3) || !strcmp(e.ptx, "bar.sync 0;")
		|| !strncmp(e.ptx, "barrier.cluster", 15))
		return;
	snprintf(e.ptx, sizeof e.ptx, "bar.sync 0;");
	add_edit(c, i, &e, 0);
}
