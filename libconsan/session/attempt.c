/* attempt: see attempt.h. */
#include "attempt.h"

#include "candidate.h"

#include "libconsan/event/event.h"
#include "libconsan/finding/finding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a launch: edits that are kept. Of the first SURE candidates one is kept that removes some
 * findings only, of the first PAIRED pairs are tried. */
enum { ROUNDS = 4, SURE = 64, PAIRED = 6, MAX_FOLLOWING = 16 };

struct attempt {
	struct trials *trials; /* NULL: edits are not tried */
	struct check *check;
	struct candidates c;
	struct attempt_finding *of;
	size_t n;
	struct attempt_limits limits;
	enum finding_untried untried;
	double used;
	VEC(struct candidate) following; /* a candidate, and the edit of what it brought to light */
	VEC(struct place) kept;
};

/* Is the edit at the instruction that the hint of the finding names? */
static bool at_its_edit(const struct finding *f, const struct finding_edit *e)
{
	return f->edit.site == e->site
		|| site_get(f->edit.site)->ptx_line == site_get(e->site)->ptx_line;
}

/* ---- trials ---- */

static bool same_key(const struct trial_key *a, const struct trial_key *b)
{
	return a->rule == b->rule && a->line[0] == b->line[0] && a->line[1] == b->line[1];
}

static bool has_key(const struct trial_result *r, const struct trial_key *key)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (same_key(&r->at[i].key, key))
			return true;
	return false;
}

static bool is_open(const struct attempt *a, size_t i)
{
	return a->of[i].counts && !a->of[i].solved;
}

/* Is it one of the launch's findings that remain? */
static bool is_known(const struct attempt *a, const struct trial_key *key)
{
	for (size_t i = 0; i < a->n; i++)
		if (is_open(a, i) && same_key(&a->of[i].key, key))
			return true;
	return false;
}

/* Did the edit remove findings and add none? */
static bool better(const struct attempt *a, const struct trial_result *r)
{
	size_t left = 0, before = 0;

	for (uint32_t k = 0; k < r->n; k++)
		if (!is_known(a, &r->at[k].key))
			return false;
	for (size_t i = 0; i < a->n; i++) {
		before += is_open(a, i);
		left += is_open(a, i) && has_key(r, &a->of[i].key);
	}
	return left < before;
}

/* The edit of a finding that a trial returned: for example the proxy fence that an access lacks
 * once a barrier orders it. */
static struct finding_edit edit_from(const struct attempt *a, const struct trial_finding *t)
{
	struct finding_edit e = t->edit;

	e.site = place_site(a->c.placer, t->site.line, t->site.ptx);
	e.until = t->until.line ? place_site(a->c.placer, t->until.line, t->until.ptx) : 0;
	return e;
}

static void add_following(struct attempt *a, const struct candidate *c,
	const struct trial_result *r)
{
	enum { TRIED = 3 }; /* places of an edit */

	for (uint32_t k = 0; k < r->n && c->nplaces == 1; k++) {
		const struct finding_edit e = edit_from(a, &r->at[k]);
		struct candidate both = *c;
		struct place to[PLACES];
		size_t n;

		if (is_known(a, &r->at[k].key))
			continue;
		n = place_edit(a->c.placer, &e, PLACES, to);
		for (size_t i = 0; i < n && i < TRIED && a->following.n < MAX_FOLLOWING; i++) {
			both.place[1] = to[i];
			both.nplaces = 2;
			vec_push(&a->following, both);
		}
		return; /* further ones mostly have the same edit */
	}
}

/* Do reports show both as one? Pairs of instructions of the same source places are. */
static bool same_places(const struct finding *f, const struct finding *g)
{
	bool same = f->rule == g->rule && f->nsides == g->nsides;

	for (unsigned i = 0; i < f->nsides && same; i++) {
		const struct site *s = site_get(f->side[i].site), *t = site_get(g->side[i].site);

		same = s == t || (s->loc && s->loc == t->loc);
	}
	return same;
}

/* The findings that remain, as reports count them. */
static uint32_t count_left(const struct attempt *a, const struct trial_result *r)
{
	uint32_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		bool first = is_open(a, i) && has_key(r, &a->of[i].key);

		for (size_t k = 0; k < i && first; k++)
			first = !is_open(a, k) || !has_key(r, &a->of[k].key)
				|| !same_places(a->c.f[i], a->c.f[k]);
		n += first;
	}
	return n;
}

static void keep(struct attempt *a, const struct candidate *c, const struct trial_result *r)
{
	/* two insertions at one instruction stand in the order of the text */
	const bool swap = c->nplaces == 2 && c->place[0].insn == c->place[1].insn
		&& c->place[0].kind == c->place[1].kind && !c->place[0].moved
		&& place_rank(&c->place[0]) > place_rank(&c->place[1]);
	struct finding_edit e = candidate_edit(&a->c, c, swap), also = candidate_edit(&a->c, c, !swap);

	e.verified = r->n ? VERIFIED_PART : VERIFIED_CLEAN;
	e.left = count_left(a, r);
	e.others = (uint32_t)a->kept.n;
	for (unsigned k = 0; k < c->nplaces; k++)
		vec_push(&a->kept, c->place[k]);
	for (size_t i = 0; i < a->n; i++) {
		if (!is_open(a, i) || has_key(r, &a->of[i].key))
			continue;
		a->of[i].solved = true;
		/* the hint of a hang names the wait that seemed to be the culprit */
		candidates_show(&a->c, i, &e, &also, !a->c.f[i]->nwaiters || at_its_edit(a->c.f[i], &e));
		check_culprit(a->check, i);
	}
}

/* The edit that a finding shows was tried, and the launch was not clean. */
static void refute(struct attempt *a, const struct candidate *c)
{
	const struct finding_edit e = candidate_edit(&a->c, c, 0);

	for (size_t i = 0; i < a->n && c->nplaces == 1; i++) {
		struct finding_edit shown = a->c.f[i]->edit;

		if (a->of[i].solved || shown.verified || !edit_same(&shown, &e))
			continue;
		shown.verified = VERIFIED_NOT;
		candidates_show(&a->c, i, &shown, NULL, true);
	}
}

static size_t count_open(const struct attempt *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++)
		n += is_open(a, i);
	return n;
}

static void try_one(struct attempt *a, const struct candidate *c, bool brief,
	struct trial_result *r)
{
	struct trial_request q = { .seconds = a->limits.each, .brief = brief };
	const size_t kept = a->kept.n;
	struct text text = { 0 };

	for (unsigned k = 0; k < c->nplaces; k++)
		vec_push(&a->kept, c->place[k]);
	place_apply(a->c.placer, a->kept.at, a->kept.n, &text);
	a->kept.n = kept;
	q.n = text.n;
	trials_try(a->trials, text.at, &q, r);
	text_free(&text);
	a->used += r->seconds;
}

/* With another parity, a wait returns at once. If no thread ever arrives, that is no repair. */
static bool vacuous(const struct candidate *c, const struct trial_result *r)
{
	return c->waits && r->idle;
}

/* Keeps the candidate if it leaves no finding. */
static bool try_clean(struct attempt *a, const struct candidate *c)
{
	struct trial_result r;
	bool clean;

	try_one(a, c, true, &r);
	clean = r.done && !r.n && !vacuous(c, &r);
	if (clean)
		keep(a, c, &r);
	else if (!a->kept.n)
		refute(a, c);
	free(r.at);
	return clean;
}

static bool has_time(const struct attempt *a)
{
	return a->used < a->limits.all;
}

/* Enough is left to find what removes some of the findings, if nothing removes all of them. */
static bool has_time_for_more(const struct attempt *a)
{
	return a->used < a->limits.all * 2 / 3;
}

/* Keeps the first candidate that leaves no finding. */
static bool find_clean(struct attempt *a)
{
	for (size_t k = 0; k < a->c.all.n && has_time_for_more(a); k++) {
		const struct candidate *c = &a->c.all.at[k];

		if (!a->of[c->finding].solved && try_clean(a, c))
			return true;
	}
	return false;
}

/* Keeps the candidate that leaves the fewest findings. False: none removes one, or no time is
 * left. */
static bool find_best(struct attempt *a)
{
	struct trial_result best = { 0 };
	const struct candidate *with = NULL;

	for (size_t k = 0; k < a->c.all.n && k < SURE && has_time(a); k++) {
		const struct candidate *c = &a->c.all.at[k];
		struct trial_result r;

		if (a->of[c->finding].solved)
			continue;
		try_one(a, c, false, &r);
		if (r.done && better(a, &r) && !vacuous(c, &r) && (!with || r.n < best.n)) {
			free(best.at);
			best = r;
			with = c;
			continue;
		}
		if (r.done)
			add_following(a, c, &r);
		free(r.at);
	}
	if (with)
		keep(a, with, &best);
	free(best.at);
	return with;
}

/* Can two candidates be one repair? Two places for the same text are alternatives. */
static bool can_pair(const struct attempt *a, const struct candidate *x, const struct candidate *y)
{
	return x->nplaces == 1 && y->nplaces == 1 && !a->of[x->finding].solved
		&& !a->of[y->finding].solved && strcmp(x->place[0].ptx, y->place[0].ptx)
		&& (x->place[0].kind != EDIT_CHANGE || x->place[0].insn != y->place[0].insn);
}

/* Keeps the first two candidates that leave no finding together, where neither one helps alone. */
static bool find_pair(struct attempt *a)
{
	const size_t n = a->c.all.n < PAIRED ? a->c.all.n : PAIRED;

	for (size_t i = 0; i < a->following.n && has_time(a); i++)
		if (!a->of[a->following.at[i].finding].solved && try_clean(a, &a->following.at[i]))
			return true;
	/* in the order of the sum of their numbers */
	for (size_t sum = 1; sum + 2 < 2 * n; sum++)
		for (size_t i = sum < n ? 0 : sum - n + 1; 2 * i < sum; i++) {
			const struct candidate *x = &a->c.all.at[i], *y = &a->c.all.at[sum - i];
			struct candidate both = *x;

			if (!can_pair(a, x, y))
				continue;
			if (!has_time(a))
				return false;
			both.place[both.nplaces++] = y->place[0];
			if (try_clean(a, &both))
				return true;
		}
	return false;
}

/* Of what is as sure, that of the finding that occurred first. */
static int by_order(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	return (x->finding > y->finding) - (x->finding < y->finding);
}

/* One edit usually removes all findings. */
static void try_all(struct attempt *a)
{
	if (a->c.all.n)
		qsort(a->c.all.at, a->c.all.n, sizeof *a->c.all.at, by_order);
	for (unsigned round = 0; round < ROUNDS && count_open(a); round++)
		if (find_clean(a) || (!find_best(a) && !find_pair(a)))
			break;
}

/* ---- all findings ---- */

struct occurrence { uint64_t order; size_t finding; };

/* Why an edit that could be tried was not. */
static void explain_untried(struct attempt *a)
{
	const enum finding_untried why = !a->trials ? a->untried
		: has_time(a) ? UNTRIED_not_patched : UNTRIED_no_time;

	for (size_t i = 0; i < a->n; i++) {
		struct finding_edit e = a->c.f[i]->edit;

		if (!*e.ptx || e.verified || !a->of[i].counts)
			continue;
		e.untried = why;
		candidates_show(&a->c, i, &e, &a->c.f[i]->also, true);
	}
}

static int by_event(const void *a, const void *b)
{
	const struct occurrence *x = a, *y = b;

	return x->order != y->order ? x->order < y->order ? -1 : 1
		: (x->finding > y->finding) - (x->finding < y->finding);
}

/* What occurred first is rather the cause, so that its edits must be among the candidates. */
static struct occurrence *in_order(const struct attempt *a)
{
	struct occurrence *all = a->n ? base_alloc(a->n * sizeof *all) : NULL;

	for (size_t i = 0; i < a->n; i++)
		all[i] = (struct occurrence){ candidate_when(a->c.f[i]), i };
	if (a->n)
		qsort(all, a->n, sizeof *all, by_event);
	return all;
}

double attempt_edits(struct trials *trials, const struct ptx_module *m, struct check *check,
	struct attempt_finding *of, const struct attempt_limits *limits, enum finding_untried untried)
{
	struct attempt a = { .trials = trials, .check = check, .of = of, .limits = *limits,
		.untried = untried, .c = { .check = check, .of = of, .tried = trials } };
	struct occurrence *early;

	a.n = check_findings(check, &a.c.f);
	early = in_order(&a);
	a.c.placer = m ? placer_open(m) : NULL;
	for (size_t i = 0; i < a.n && m; i++)
		candidates_add(&a.c, early[i].finding);
	free(early);
	if (trials)
		try_all(&a);
	explain_untried(&a);
	if (m)
		placer_close(a.c.placer);
	vec_free(&a.c.all);
	vec_free(&a.following);
	vec_free(&a.kept);
	return a.used;
}
