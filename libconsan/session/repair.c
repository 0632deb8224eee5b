/* repair: see repair.h. */
#include "repair.h"
#include "place.h"
#include "trial.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With verify_fixes=auto: the first launch of at most so many kernels is prepared, if it can access
 * at most so much memory; and a process spends at most so long on trials. */
#define AUTO_KERNELS 64
#define AUTO_BYTES ((uint64_t)256 << 20)
#define AUTO_SECONDS 2.0
#define AUTO_LAUNCH 0.5     /* seconds: longer launches are not tried again */
#define ALWAYS_SECONDS 60.0 /* of a launch, with verify_fixes=yes */
enum { MAX_CANDIDATES = 48, ROUNDS = 4 }; /* of a launch; edits that are kept */

struct repair {
	struct consan *c;
	const struct consan_launch *l;
	const void *params;
	struct check_config config;
	struct trials *trials;
};

/* ---- may the launch be run again? ---- */

/* What other processes see must not change. Of memory that the program shares with them, a copy of
 * the process would not have its own. */
static bool shares_memory(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	bool shared = !f;

	while (!shared && f && fgets(line, sizeof line, f)) {
		unsigned long long from, to;
		char mode[8];
		struct exec_mem m;

		if (sscanf(line, "%llx-%llx %7s", &from, &to, mode) != 3 || mode[3] != 's')
			continue;
		for (size_t k = 0; !shared && exec_mem_at(k, &m); k++)
			shared = m.at < to && m.at + m.bytes > from;
	}
	if (f)
		fclose(f);
	return shared;
}

static uint64_t device_bytes(void)
{
	uint64_t sum = 0;
	struct exec_mem m;

	for (size_t k = 0; exec_mem_at(k, &m); k++)
		sum += m.bytes;
	return sum;
}

/* The end of a copy raises SIGCHLD, which a program may handle. */
static bool watches_children(void)
{
	struct sigaction a;

	return sigaction(SIGCHLD, NULL, &a) || (a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN);
}

/* Only under consan-run (records): a program that uses the library may not expect a fork. */
static bool cheap(struct consan *c, const struct consan_launch *l)
{
	for (size_t i = 0; i < c->prepared.n; i++)
		if (c->prepared.at[i] == l->kernel)
			return false;
	return c->records && c->prepared.n < AUTO_KERNELS && c->trial_seconds < AUTO_SECONDS
		&& !watches_children() && device_bytes() <= AUTO_BYTES;
}

/* ---- in the copy of the process ---- */

static void add_result(const struct consan *c, const struct finding *f, struct trial_result *out)
{
	struct trial_finding x = { .rule = f->rule };

	if (f->severity == SEV_NOTE
		|| suppress_match(&c->suppressions, f) < c->suppressions.suppression.n)
		return;
	for (unsigned i = 0; i < 2; i++)
		x.line[i] = i < f->nsides ? site_get(f->side[i].site)->ptx_line : 0;
	if (x.line[0] > x.line[1])
		x = (struct trial_finding){ x.rule, { x.line[1], x.line[0] } };
	out->at = base_resize(out->at, (out->n + 1) * sizeof *out->at);
	out->at[out->n++] = x;
}

/* check_config.found of a brief trial */
static void stop_at(void *user, const struct finding *f)
{
	struct trial_result result = { .done = true };

	add_result(user, f, &result);
	if (result.n)
		trial_stop(&result);
}

static bool run(void *user, const char *text, const struct trial_request *q,
	struct trial_result *out)
{
	struct repair *r = user;
	struct consan *c = r->c;
	const struct consan_kernel *old = r->l->kernel;
	struct consan_module m = { .c = c };
	struct consan_launch l = *r->l;
	const struct finding *const *found;
	struct exec_result result = { 0 };
	struct consan_err e = { 0 };
	struct check *check;
	size_t nfound;

	session_silence(c, &r->config);
	c->progress = NULL;
	c->opt.timeout = q->seconds;
	m.ptx = ptx_parse(old->module->ptx->name, text, q->n, &e);
	m.exec = m.ptx ? exec_load_like(m.ptx, old->module->exec, &e) : NULL;
	l.kernel = m.exec ? consan_kernel(&m, old->info.name, &e) : NULL;
	if (!l.kernel)
		return false;
	if (q->brief)
		r->config.found = stop_at;
	r->config.launch.symbols = l.kernel->symbols;
	r->config.launch.nsymbols = l.kernel->info.nsymbols;
	check = check_open(&r->config);
	session_run(c, &l, r->params, &r->config.launch, check, NULL, &result);
	check_truncate(check, session_last(&result));
	nfound = check_findings(check, &found);
	for (size_t i = 0; i < nfound; i++)
		add_result(c, found[i], out);
	out->idle = check_idle_waits(check);
	return result.status != EXEC_UNSUPPORTED && result.status != EXEC_BAD_LAUNCH
		&& (result.status == EXEC_OK || out->n);
}

/* ---- before the launch ---- */

struct repair *repair_open(struct consan *c, const struct consan_launch *l, const void *params,
	const struct check_config *config)
{
	struct repair *r;

	if (c->opt.verify_fixes == OPT_VERIFY_FIXES_NO
		|| (c->opt.verify_fixes == OPT_VERIFY_FIXES_AUTO && !cheap(c, l)) || shares_memory())
		return NULL;
	vec_push(&c->prepared, l->kernel);
	r = base_alloc(sizeof *r);
	*r = (struct repair){ .c = c, .l = l, .params = params, .config = *config };
	r->trials = trials_open(run, r);
	if (r->trials)
		return r;
	free(r);
	return NULL;
}

void repair_close(struct repair *r)
{
	if (!r)
		return;
	trials_close(r->trials);
	free(r);
}

/* ---- after the launch ---- */

struct candidate {
	struct place place;
	size_t finding;
	unsigned order; /* the lowest is tried first */
};

struct state { /* of a finding */
	struct trial_finding key;
	bool counts;    /* above a note, not suppressed */
	bool solved;
};

struct attempt {
	struct repair *r;
	struct check *check;
	struct placer *placer;
	const struct finding *const *f;
	struct state *state;
	size_t n;
	VEC(struct candidate) candidate;
	VEC(struct place) kept;
	double used, limit, each;
};

/* Of the edits that hints name those that change an instruction are the surest; then comes what is
 * inserted at one instruction, then barriers. Further places of an edit come later. */
static unsigned order_of(const struct finding *f, const struct place *p, size_t k)
{
	const unsigned kind = p->kind == EDIT_CHANGE ? 0 : f->edit.kind != EDIT_BETWEEN ? 1 : 2;

	return (unsigned)(4 * k) + kind + (f->severity == SEV_WARNING ? 8 : 0);
}

static void add_candidates(struct attempt *a, size_t i, const struct place *to, size_t n)
{
	for (size_t k = 0; k < n && a->r && a->state[i].counts; k++) {
		bool known = a->candidate.n == MAX_CANDIDATES;

		for (size_t c = 0; c < a->candidate.n && !known; c++)
			known = place_same(&a->candidate.at[c].place, &to[k]);
		if (!known)
			vec_push(&a->candidate, ((struct candidate){ to[k], i, order_of(a->f[i], &to[k], k) }));
	}
}

/* In a hang, any of the waits may test the wrong parity, or count threads that do not arrive. */
static void add_waits(struct attempt *a, size_t i)
{
	const struct finding *f = a->f[i];

	for (unsigned k = 0; k < f->nwaiters; k++) {
		const struct finding_waiter *w = &f->waiter[k];
		struct finding wait = { 0 };
		struct place to[PLACES];
		char form[24] = "^2";

		if (!strcmp(w->on.kind, "named barrier") && w->on.expected > w->on.pending)
			snprintf(form, sizeof form, "#1=%u", w->on.expected - w->on.pending);
		else if (!edit_has_modifier(site_get(w->who.site)->ptx, ".parity"))
			continue;
		edit_set(&wait, EDIT_CHANGE, w->who.site, 0, form);
		add_candidates(a, i, to, place_edit(a->placer, &wait.edit, to));
	}
}

/* The finding shows the first place until another one is known to be better. */
static void place_finding(struct attempt *a, size_t i)
{
	struct finding_edit e = a->f[i]->edit;
	const bool warp = e.kind == EDIT_BETWEEN && !strncmp(e.ptx, "bar.warp.sync", 13);
	struct place to[PLACES];
	char named[sizeof e.ptx];
	size_t n;

	/* warps with roles of their own have named barriers */
	if (!strcmp(e.ptx, "bar.sync 0;") && place_barrier(a->placer, e.site, named, sizeof named))
		snprintf(e.ptx, sizeof e.ptx, "%s", named);
	n = place_edit(a->placer, &e, to);
	add_candidates(a, i, to, n);
	if (n && e.kind != EDIT_CHANGE && e.kind != EDIT_MOVE) {
		const struct finding_edit placed = place_to_edit(&to[0]);

		check_edit(a->check, i, &placed, true);
	}
	add_waits(a, i);
	/* the example is of one warp, but others may be involved as well */
	if (warp && place_barrier(a->placer, e.site, e.ptx, sizeof e.ptx))
		add_candidates(a, i, to, place_edit(a->placer, &e, to));
	if (e.kind != EDIT_BETWEEN || strncmp(e.ptx, "bar", 3) || !strcmp(e.ptx, "bar.sync 0;")
		|| !strncmp(e.ptx, "barrier.cluster", 15))
		return;
	snprintf(e.ptx, sizeof e.ptx, "bar.sync 0;");
	add_candidates(a, i, to, place_edit(a->placer, &e, to));
}

static int by_order(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return (x->finding > y->finding) - (x->finding < y->finding);
}

static bool has_key(const struct trial_result *r, const struct trial_finding *key)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (!memcmp(&r->at[i], key, sizeof *key))
			return true;
	return false;
}

/* Did the edit remove findings and add none? */
static bool better(const struct attempt *a, const struct trial_result *r)
{
	size_t left = 0, before = 0;

	for (uint32_t k = 0; k < r->n; k++) {
		bool known = false;

		for (size_t i = 0; i < a->n && !known; i++)
			known = a->state[i].counts && !a->state[i].solved
				&& !memcmp(&a->state[i].key, &r->at[k], sizeof r->at[k]);
		if (!known)
			return false;
	}
	for (size_t i = 0; i < a->n; i++) {
		before += a->state[i].counts && !a->state[i].solved;
		left += a->state[i].counts && !a->state[i].solved && has_key(r, &a->state[i].key);
	}
	return left < before;
}

static struct finding_edit edit_of(const struct attempt *a, const struct candidate *c)
{
	struct finding_edit e = a->f[c->finding]->edit;

	if (!c->place.moved)
		return place_to_edit(&c->place);
	e.verified = VERIFIED_NOT_TRIED;
	return e;
}

static void keep(struct attempt *a, const struct candidate *c, const struct trial_result *r)
{
	struct finding_edit e = edit_of(a, c);

	e.verified = r->n ? VERIFIED_PART : VERIFIED_CLEAN;
	e.left = r->n;
	e.others = (uint32_t)a->kept.n;
	vec_push(&a->kept, c->place);
	for (size_t i = 0; i < a->n; i++) {
		struct state *s = &a->state[i];

		if (!s->counts || s->solved || has_key(r, &s->key))
			continue;
		s->solved = true;
		/* the hint of a hang names the wait that seemed to be the culprit */
		check_edit(a->check, i, &e, !a->f[i]->nwaiters || a->f[i]->edit.site == e.site
			|| site_get(a->f[i]->edit.site)->ptx_line == site_get(e.site)->ptx_line);
	}
}

/* The edit that a finding shows was tried, and the finding remained. */
static void refute(struct attempt *a, const struct candidate *c, const struct trial_result *r)
{
	const struct finding_edit e = edit_of(a, c);

	for (size_t i = 0; i < a->n; i++) {
		struct finding_edit shown = a->f[i]->edit;

		if (a->state[i].solved || shown.verified || shown.kind != e.kind || shown.copies != e.copies
			|| strcmp(shown.ptx, e.ptx)
			|| site_get(shown.site)->ptx_line != site_get(e.site)->ptx_line
			|| (r->done && a->state[i].counts && !has_key(r, &a->state[i].key)))
			continue;
		shown.verified = VERIFIED_NOT;
		check_edit(a->check, i, &shown, true);
	}
}

static size_t unsolved(const struct attempt *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++)
		n += a->state[i].counts && !a->state[i].solved;
	return n;
}

static void try_one(struct attempt *a, const struct candidate *c, bool brief,
	struct trial_result *r)
{
	struct trial_request q = { .seconds = a->each, .brief = brief };
	const double begin = progress_seconds();
	struct text text = { 0 };

	vec_push(&a->kept, c->place);
	place_apply(a->placer, a->kept.at, a->kept.n, &text);
	a->kept.n--;
	q.n = text.n;
	trials_try(a->r->trials, text.at, &q, r);
	text_free(&text);
	a->used += progress_seconds() - begin;
}

/* With another parity, a wait returns at once. If no thread ever arrives, that is no repair. */
static bool vacuous(const struct candidate *c, const struct trial_result *r)
{
	return *c->place.form == '^' && r->idle;
}

/* Keeps the first candidate that leaves no finding. */
static bool find_clean(struct attempt *a)
{
	for (size_t k = 0; k < a->candidate.n && a->used < a->limit; k++) {
		const struct candidate *c = &a->candidate.at[k];
		struct trial_result r;
		bool clean;

		if (a->state[c->finding].solved)
			continue;
		try_one(a, c, true, &r);
		clean = r.done && !r.n && !vacuous(c, &r);
		if (clean)
			keep(a, c, &r);
		free(r.at);
		if (clean)
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

	for (size_t k = 0; k < a->candidate.n && a->used < a->limit; k++) {
		const struct candidate *c = &a->candidate.at[k];
		struct trial_result r;

		if (a->state[c->finding].solved)
			continue;
		try_one(a, c, false, &r);
		if (r.done && better(a, &r) && !vacuous(c, &r) && (!with || r.n < best.n)) {
			free(best.at);
			best = r;
			with = c;
			continue;
		}
		if (!a->kept.n)
			refute(a, c, &r);
		free(r.at);
	}
	if (with)
		keep(a, with, &best);
	free(best.at);
	return with && a->used < a->limit;
}

/* One edit usually removes all findings. */
static void try_all(struct attempt *a)
{
	if (a->candidate.n)
		qsort(a->candidate.at, a->candidate.n, sizeof *a->candidate.at, by_order);
	for (unsigned round = 0; round < ROUNDS && unsolved(a); round++)
		if (find_clean(a) || !find_best(a))
			break;
}

void repair_launch(struct repair *r, struct consan *c, const struct consan_launch *l,
	struct check *check, double seconds)
{
	const bool always = c->opt.verify_fixes == OPT_VERIFY_FIXES_YES;
	struct attempt a = { .r = r, .check = check };

	a.n = check_findings(check, &a.f);
	if (!a.n)
		return;
	if (!always && seconds > AUTO_LAUNCH)
		a.r = NULL;
	a.each = 0.5 + 4 * seconds;
	a.limit = always ? ALWAYS_SECONDS : AUTO_SECONDS - c->trial_seconds;
	a.placer = placer_open(l->kernel->module->ptx);
	a.state = base_alloc(a.n * sizeof *a.state);
	for (size_t i = 0; i < a.n; i++) {
		struct trial_result key = { 0 };

		add_result(c, a.f[i], &key);
		a.state[i].counts = key.n;
		if (key.n)
			a.state[i].key = key.at[0];
		free(key.at);
		place_finding(&a, i);
	}
	try_all(&a);
	c->trial_seconds += a.used;
	placer_close(a.placer);
	vec_free(&a.candidate);
	vec_free(&a.kept);
	free(a.state);
}
