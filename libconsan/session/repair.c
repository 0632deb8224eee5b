/* repair: see repair.h. */
#include "repair.h"
#include "attempt.h"
#include "trial.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With verify_fixes=auto: the first launch of at most so many kernels is prepared, until so much memory has
 * been kept, which takes a tenth of a second; and a process spends at most so long on trials. */
#define AUTO_KERNELS 64
#define AUTO_BYTES ((uint64_t)256 << 20)
#define AUTO_SECONDS 2.0
#define AUTO_LAUNCH 0.5     /* seconds: longer launches are not tried again */
#define ALWAYS_SECONDS 60.0 /* of a launch, with verify_fixes=yes */

struct kept { uint64_t at, bytes; void *copy; };

struct repair {
	struct consan *c;
	const struct consan_launch *l;
	const void *params;
	struct check_config config;
	struct trials *trials; /* NULL: edits will not be tried */
	enum finding_untried untried;
	VEC(struct kept) kept; /* the memory that the launch has changed, as it was */
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

/* The end of a copy raises SIGCHLD, which a program may handle. */
static bool watches_children(void)
{
	struct sigaction a;

	return sigaction(SIGCHLD, NULL, &a) || (a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN);
}

/* Why the launch is not worth a copy of the process by default. */
static enum finding_untried too_costly(struct consan *c, const struct consan_launch *l)
{
	if (!c->records) /* a program that uses the library may not expect a fork */
		return UNTRIED_library;
	for (size_t i = 0; i < c->prepared.n; i++)
		if (c->prepared.at[i] == l->kernel)
			return UNTRIED_later_launch;
	if (c->prepared.n >= AUTO_KERNELS || c->trial_seconds >= AUTO_SECONDS)
		return UNTRIED_no_time;
	return watches_children() ? UNTRIED_signals : UNTRIED_NONE;
}

static enum finding_untried why_untried(struct consan *c, const struct consan_launch *l)
{
	enum finding_untried why = UNTRIED_NONE;

	if (c->opt.verify_fixes == OPT_VERIFY_FIXES_NO)
		return UNTRIED_option;
	if (c->opt.verify_fixes == OPT_VERIFY_FIXES_AUTO)
		why = too_costly(c, l);
	return why == UNTRIED_NONE && shares_memory() ? UNTRIED_shared : why;
}

/* ---- in the copy of the process ---- */

static struct trial_place place_of(uint32_t site)
{
	struct trial_place p = { .line = site_get(site)->ptx_line };

	snprintf(p.ptx, sizeof p.ptx, "%s", site_get(site)->ptx);
	return p;
}

/* Does it count? Notes and what is suppressed do not. */
static bool key_of(const struct consan *c, const struct finding *f, struct trial_key *key)
{
	uint32_t line[2];

	if (f->severity == SEV_NOTE
		|| suppress_match(&c->suppressions, f) < c->suppressions.suppression.n)
		return false;
	for (unsigned i = 0; i < 2; i++)
		line[i] = i < f->nsides ? site_get(f->side[i].site)->ptx_line : 0;
	*key = (struct trial_key){ f->rule, { line[line[0] > line[1]], line[line[0] <= line[1]] } };
	return true;
}

static void add_result(const struct consan *c, const struct finding *f, struct trial_result *out)
{
	struct trial_finding x = { .edit = f->edit, .site = place_of(f->edit.site),
		.until = place_of(f->edit.until) };

	if (!key_of(c, f, &x.key))
		return;
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

static void put_back(const struct repair *r)
{
	struct exec_mem m;

	for (size_t i = 0; i < r->kept.n; i++) {
		const struct kept *k = &r->kept.at[i];

		if (exec_mem_find(k->at + k->bytes - 1, &m)) /* still there */
			memcpy((void *)(uintptr_t)k->at, k->copy, k->bytes);
	}
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
	put_back(r);
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
	session_run(c, &l, r->params, &r->config.launch, check, NULL, NULL, &result);
	check_truncate(check, session_last(&result));
	if (result.status == EXEC_STOPPED)
		return false;
	nfound = check_findings(check, &found);
	for (size_t i = 0; i < nfound; i++)
		add_result(c, found[i], out);
	out->idle = check_idle_waits(check);
	return result.status != EXEC_UNSUPPORTED && result.status != EXEC_BAD_LAUNCH
		&& (result.status == EXEC_OK || out->n);
}

/* ---- before the launch ---- */

static void open_trials(struct repair *r)
{
	r->trials = trials_open(run, r);
	if (!r->trials)
		r->untried = UNTRIED_no_copy;
}

struct repair *repair_open(struct consan *c, const struct consan_launch *l, const void *params,
	const struct check_config *config)
{
	struct repair *r = base_alloc(sizeof *r);

	*r = (struct repair){ .c = c, .l = l, .params = params, .config = *config,
		.untried = config->launch.launched ? UNTRIED_part : why_untried(c, l) };
	if (r->untried != UNTRIED_NONE)
		return r;
	vec_push(&c->prepared, l->kernel);
	/* The check of such a launch goes on with what the check of an earlier one holds, which it changes. */
	if (check_memory_overlaps(c->memory, &config->launch))
		open_trials(r);
	return r;
}

static void drop_kept(struct repair *r)
{
	for (size_t i = 0; i < r->kept.n; i++)
		free(r->kept.at[i].copy);
	vec_free(&r->kept);
}

void repair_close(struct repair *r)
{
	if (!r)
		return;
	trials_close(r->trials);
	drop_kept(r);
	free(r);
}

/* ---- while it runs ---- */

bool repair_keeps(const struct repair *r)
{
	return r->untried == UNTRIED_NONE && !r->trials;
}

void repair_first_write(struct repair *r, uint64_t at, uint64_t bytes)
{
	void *copy = NULL;

	if (!repair_keeps(r)) /* it was too much */
		return;
	if (r->c->opt.verify_fixes == OPT_VERIFY_FIXES_YES || r->c->kept_bytes + bytes <= AUTO_BYTES)
		copy = malloc(bytes);
	if (!copy) {
		drop_kept(r);
		r->untried = UNTRIED_too_large;
		return;
	}
	r->c->kept_bytes += bytes;
	memcpy(copy, (const void *)(uintptr_t)at, bytes);
	vec_push(&r->kept, ((struct kept){ at, bytes, copy }));
}

/* ---- after the launch ---- */

static struct attempt_finding *findings_of(const struct consan *c, struct check *check)
{
	const struct finding *const *f;
	const size_t n = check_findings(check, &f);
	struct attempt_finding *of = n ? base_alloc(n * sizeof *of) : NULL;

	for (size_t i = 0; i < n; i++)
		of[i].counts = key_of(c, f[i], &of[i].key);
	return of;
}

static bool some_count(struct check *check, const struct attempt_finding *of)
{
	const struct finding *const *f;
	const size_t n = check_findings(check, &f);

	for (size_t i = 0; i < n; i++)
		if (of[i].counts)
			return true;
	return false;
}

void repair_launch(struct repair *r, struct consan *c, const struct consan_launch *l,
	struct check *check, double seconds)
{
	const bool always = c->opt.verify_fixes == OPT_VERIFY_FIXES_YES;
	const bool alone = r->untried != UNTRIED_part && !check_launches(check);
	const bool brief = alone && (always || seconds <= AUTO_LAUNCH);
	const struct attempt_limits limits = { .each = 0.5 + 4 * seconds,
		.all = always ? ALWAYS_SECONDS : AUTO_SECONDS - c->trial_seconds };
	struct attempt_finding *of = findings_of(c, check);

	if (brief && repair_keeps(r) && some_count(check, of))
		open_trials(r);
	if (of)
		c->trial_seconds += attempt_edits(brief ? r->trials : NULL, l->kernel->module->ptx, check,
			of, &limits, brief ? r->untried : alone ? UNTRIED_too_long : UNTRIED_part);
	free(of);
}

void repair_place(struct consan *c, const struct ptx_module *m, struct check *check,
	enum finding_untried untried)
{
	struct attempt_finding *of = findings_of(c, check);

	if (c->opt.verify_fixes == OPT_VERIFY_FIXES_NO)
		untried = UNTRIED_option;
	if (of)
		attempt_edits(NULL, m, check, of, &(struct attempt_limits){ 0 }, untried);
	free(of);
}
