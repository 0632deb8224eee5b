/* replay: reports from records, and checking of saved events, which needs neither the PTX nor
 * a run of the kernel. */
#include "internal.h"

#include "libconsan/base/base.h"
#include "libconsan/finding/finding.h"
#include "reports/reports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool write_reports(struct results *r, const struct options *o, const char *only, int program,
	int *exit_status, struct consan_err *e)
{
	bool ok = true;

	session_add_run(r, o);
	results_finish(r);
	for (size_t i = 0; ok && i < o->suppressions.n; i++)
		ok = suppress_read(r, o->suppressions.at[i], e);
	suppress_apply(r);
	*exit_status = report_exit_status(r, o, program);
	ok = (only ? report_file(r, o, only, e) : report_write(r, o, e)) && ok;
	results_free(r);
	return ok;
}

bool consan_report(const struct options *o, const char *const *record, size_t nrecords,
	const char *only, int program, uint32_t (*resolve)(void *user, uint32_t site), void *user, int *exit_status,
	struct consan_err *e)
{
	struct results r = { 0 };
	bool ok = true;

	for (size_t i = 0; i < nrecords; i++) {
		if (access(record[i], F_OK) || results_read(&r, record[i], e))
			continue;
		ok = false;
		results_add_remark(&r, RESULT_REMARK_not_seen, e->text);
	}
	if (resolve)
		results_map_hosts(&r, resolve, user);
	return write_reports(&r, o, only, program, exit_status, e) && ok;
}

/* ---- the report of an open session ---- */

/* The findings and coverage that the session shows, as results. r borrows the suppressions. */
static void gather(struct consan *c, struct results *r)
{
	struct result_process p = { .pid = getpid(),
		.program = base_strdup(program_invocation_name),
		.device = base_strdup(c->gpu ? c->gpu->name : "") };
	const struct bank_use *use;
	const size_t nbanks = c->banks ? banks_uses(c->banks, &use) : 0;

	session_add_run(r, &c->opt);
	results_add_process(r, p);
	for (size_t i = 0; i < c->findings.n; i++) {
		struct finding f = c->findings.at[i]->f;

		if (f.seen <= c->findings.at[i]->cleared)
			continue;
		f.seen -= c->findings.at[i]->cleared;
		results_add_finding(r, &f);
	}
	for (size_t i = 0; i < c->coverage.n; i++)
		results_add_coverage(r, &c->coverage.at[i]);
	for (size_t i = 0; i < nbanks; i++)
		results_add_bank_use(r, &use[i]);
	results_finish(r);
	memcpy(&r->suppression, &c->suppressions.suppression, sizeof r->suppression);
	suppress_apply(r);
}

bool consan_write_report(struct consan *c, const char *path, struct consan_err *e)
{
	static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER; /* the cache of source files */
	struct results r = { 0 };
	bool ok;

	pthread_mutex_lock(&c->launching);
	pthread_mutex_lock(&c->lock);
	gather(c, &r);
	pthread_mutex_lock(&writing);
	ok = report_file(&r, &c->opt, path, e);
	report_source_forget();
	pthread_mutex_unlock(&writing);
	for (size_t i = 0; i < r.suppression.n; i++)
		r.suppression.at[i].matched = 0;
	memset(&r.suppression, 0, sizeof r.suppression);
	results_free(&r);
	pthread_mutex_unlock(&c->lock);
	pthread_mutex_unlock(&c->launching);
	return ok;
}

/* ---- replay ---- */

struct replayed {
	const struct launch_info *info;
	struct check *check;    /* NULL: excluded by --kernel-name */
	struct coverage coverage;
	uint64_t incomplete;
};

struct replay {
	const struct options *options;
	struct results results;
	struct check_policy policy;
	struct check_memory *memory;
	struct banks *banks;    /* NULL: not counted */
	struct recorders *recorders;
	VEC(struct replayed *) open;
};

static struct replayed *find(struct replay *p, const struct launch_info *l)
{
	for (size_t i = 0; i < p->open.n; i++)
		if (p->open.at[i]->info == l)
			return p->open.at[i];
	base_die("an event of a launch that is not open");
}

static void on_found(void *user, const struct finding *f)
{
	(void)user;
	(void)f; /* judge() collects all at the end of the launch */
}

static void on_launch(void *user, const struct launch_info *l)
{
	struct replay *p = user;
	struct check_config config = { .launch = *l, .policy = p->policy, .memory = p->memory,
		.found = on_found, .global = !p->options->no_global };
	struct replayed *r = base_alloc(sizeof *r);
	char *name = demangle(l->kernel, NAME_FULL);

	for (size_t i = 0; i < p->open.n; i++)
		if (p->open.at[i]->check)
			check_settle(p->open.at[i]->check);
	r->info = l;
	if (options_wants(p->options, l->kernel, name))
		r->check = check_open(&config);
	else
		r->coverage.skipped = 1;
	if (!r->check)
		check_memory_idle(p->memory, l->queue, false);
	free(name);
	finding_set_kernel(r->coverage.kernel, l->kernel);
	r->coverage.launches = 1;
	vec_push(&p->open, r);
}

static struct event_sink *on_begin(void *user, const struct cluster_info *c)
{
	struct replay *p = user;
	struct replayed *r = find(p, c->launch);
	struct event_sink *sink;
	struct cluster_info with;

	if (!r->check)
		return NULL;
	r->coverage.clusters++;
	r->coverage.ctas += c->nctas;
	with = *c;
	with.recorder = recorder_begin(p->recorders, c);
	sink = check_cluster_begin(r->check, &with);
	return p->banks ? banks_begin(p->banks, sink) : sink;
}

static void on_end(void *user, const struct cluster_info *c, struct event_sink *sink,
	bool whole)
{
	struct replay *p = user;
	struct replayed *r = find(p, c->launch);

	r->incomplete += !whole;
	if (!sink)
		return;
	if (p->banks)
		sink = banks_end(sink);
	check_cluster_end(r->check, sink);
}

static void judge(struct replay *p, struct replayed *r, const char *unchecked)
{
	const struct finding *const *found;
	struct check_stats stats = { 0 };
	size_t n;

	check_untried(r->check, UNTRIED_replay);
	n = check_findings(r->check, &found);
	for (size_t i = 0; i < n; i++)
		results_add_finding(&p->results, found[i]);
	check_stats(r->check, &stats);
	check_save(r->check);
	check_close(r->check);
	r->coverage.events = stats.events;
	r->coverage.checked = !r->incomplete && !*unchecked;
	if (*unchecked)
		snprintf(r->coverage.unchecked, sizeof r->coverage.unchecked, "%.*s",
			(int)sizeof r->coverage.unchecked - 1, unchecked);
	else if (r->incomplete)
		snprintf(r->coverage.unchecked, sizeof r->coverage.unchecked,
			"%llu of %llu saved clusters of launch %u are incomplete",
			(unsigned long long)r->incomplete,
			(unsigned long long)r->coverage.clusters, r->info->id);
}

static void on_launch_end(void *user, const struct launch_info *l, uint32_t last,
	const char *unchecked)
{
	struct replay *p = user;
	struct replayed *r = find(p, l);

	if (r->check)
		check_truncate(r->check, last);
	if (r->check)
		judge(p, r, unchecked);
	results_add_coverage(&p->results, &r->coverage);
	for (size_t i = 0; i < p->open.n; i++)
		if (p->open.at[i] == r)
			p->open.at[i] = p->open.at[--p->open.n];
	free(r);
}

static void add_banks(struct replay *p)
{
	const struct bank_use *use;
	const size_t n = banks_uses(p->banks, &use);

	for (size_t i = 0; i < n; i++)
		results_add_bank_use(&p->results, &use[i]);
}

bool consan_replay(const struct options *o, const char *path, int *exit_status,
	struct consan_err *e)
{
	struct replay p = { .options = o, .memory = check_memory_open() };
	struct event_read_stats stats;
	struct event_reader reader = {
		.user = &p, .launch = on_launch, .cluster_begin = on_begin,
		.cluster_end = on_end, .launch_end = on_launch_end,
	};
	char text[200];
	bool ok;

	*exit_status = CONSAN_EXIT_UNCHECKED;
	p.recorders = recorders_open((uint32_t)o->history);
	if (o->bank_conflicts)
		p.banks = banks_open();
	ok = session_policy(o, &p.policy, e) && event_read(path, &reader, &stats, e);
	if (ok && p.banks)
		add_banks(&p);
	banks_close(p.banks);
	recorders_close(p.recorders);
	check_memory_close(p.memory);
	vec_free(&p.open);
	if (!ok) {
		results_free(&p.results);
		return false;
	}
	if (stats.damaged) {
		snprintf(text, sizeof text, "the file is damaged or truncated in %llu place%s",
			(unsigned long long)stats.damaged, stats.damaged == 1 ? "" : "s");
		results_add_remark(&p.results, RESULT_REMARK_note, text);
	}
	if (stats.invalid) {
		snprintf(text, sizeof text, "the file is not as consan writes it: %s", stats.invalid);
		results_add_remark(&p.results, RESULT_REMARK_note, text);
	}
	return write_reports(&p.results, o, NULL, 0, exit_status, e);
}
