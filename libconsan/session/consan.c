/* consan: a launch. Connects the executor to the checker. */
#include "gpu.h"
#include "internal.h"

#include "libconsan/finding/finding.h"
#include "fallback.h"
#include "repair.h"
#include "trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- launches ---- */

/* A launch that runs: the `user` of the executor's observer. */
struct running {
	struct consan *c;
	struct check *check;
	const struct launch_info *info; /* has the short names of variables */
	struct crossings *watch;  /* NULL: not wanted */
	struct repair *repair;    /* so is this */
	pthread_mutex_t print;
	const _Atomic bool *cut;
};

static struct event_sink *on_cluster_begin(void *user, const struct cluster_info *info)
{
	struct running *f = user;
	struct cluster_info with = *info;
	struct event_sink *sink;

	with.launch = f->info;
	with.recorder = recorder_begin(f->c->recorders, &with);
	sink = check_cluster_begin(f->check, &with);
	if (f->watch)
		sink = crossings_begin(f->watch, info, sink);
	if (f->c->banks)
		sink = banks_begin(f->c->banks, sink);
	return f->c->save ? event_writer_begin(f->c->save, info, sink) : sink;
}

static bool on_stop(void *user)
{
	struct running *f = user;

	return *f->cut;
}

static bool on_disputed(void *user)
{
	struct running *f = user;

	return check_crossed(f->check);
}

static void on_cluster_end(void *user, struct event_sink *sink)
{
	struct running *f = user;

	if (f->c->save)
		sink = event_writer_end(sink);
	if (f->c->banks)
		sink = banks_end(sink);
	if (f->watch)
		sink = crossings_end(sink);
	check_cluster_end(f->check, sink);
	progress_cluster(f->c->progress);
	results_cluster(f->c->records, f->info->id);
}

static void on_first_write(void *user, uint64_t at, uint64_t bytes)
{
	struct running *f = user;

	repair_first_write(f->repair, at, bytes);
}

static void on_print(void *user, const char *text, size_t n)
{
	struct running *f = user;

	pthread_mutex_lock(&f->print);
	if (f->c->print)
		f->c->print(f->c->print_user, text, n);
	else
		fwrite(text, 1, n, stdout);
	pthread_mutex_unlock(&f->print);
}

enum exec_resume session_pause(struct consan *c, pthread_mutex_t *held, enum exec_pause why,
	bool changed)
{
	const struct exec_control *control = c->control;
	enum exec_resume how;

	if (c->copy && why == EXEC_PAUSE_VAIN)
		return c->alone ? EXEC_TIME : EXEC_AS_BEFORE;
	if (c->copy)
		return why != EXEC_PAUSE_STUCK ? EXEC_AS_BEFORE : c->alone ? EXEC_HUNG : EXEC_GIVE_UP;
	c->paused++;
	pthread_mutex_unlock(held);
	how = c->outside.pause(why, changed);
	pthread_mutex_lock(held);
	c->paused--;
	c->control = control;
	return how;
}

static enum exec_resume on_pause(void *user, enum exec_pause why, bool changed)
{
	struct running *f = user;

	if (f->check)
		check_settle(f->check);
	return session_pause(f->c, &f->c->launching, why, changed);
}

/* A copy of the process tries one launch: those that it makes do not take place. */
static int on_call(void *user, struct exec_call *x)
{
	struct running *f = user;
	struct consan *c = f->c;
	const struct exec_control *control = c->control;
	int error;

	if (c->copy && x->effect != RUNTIME_ASKS)
		return 0;
	c->paused++;
	pthread_mutex_unlock(&c->launching);
	error = c->outside.call(x);
	pthread_mutex_lock(&c->launching);
	c->paused--;
	c->control = control;
	return error;
}

void consan_on_pause(struct consan *c, const struct consan_outside *to)
{
	c->outside = *to;
}

/* Do name and region let a launch be checked? */
static bool may_check(const struct consan *c, const char *kernel, const char *demangled)
{
	return options_wants(&c->opt, kernel, demangled) && (!c->opt.regions || c->in_region);
}

/* Which of the launches that match, from the next one on, are to be checked? */
static struct results_next next_of(const struct consan *c)
{
	const struct options *o = &c->opt;
	const uint64_t skip = c->matched < o->launch_skip ? o->launch_skip - c->matched : 0;
	const uint64_t left = o->launch_count > c->checked ? o->launch_count - c->checked : 0;
	const uint64_t most = o->launch_count ? left : UINT64_MAX;
	uint64_t at;

	if (!c->shards)
		return (struct results_next){ skip, 1, most };
	at = (c->matched + skip) % c->shards + 1; /* of the first that is not skipped */
	return (struct results_next){ skip + (c->shard + c->shards - at) % c->shards, c->shards, most };
}

void session_tell_next(struct consan *c)
{
	const struct results_next next = next_of(c);

	results_next(c->records, &next);
}

bool session_wants(struct consan *c, const char *kernel, const char *demangled)
{
	struct results_next next;

	if (!may_check(c, kernel, demangled))
		return false;
	next = next_of(c);
	c->matched++;
	session_tell_next(c);
	return !next.skip && next.most;
}

void session_begun(struct consan *c)
{
	if (c->outside.begun && c->outside.begun())
		results_over(c->records);
}

bool consan_issued(struct consan *c, const struct consan_kernel *k)
{
	if (!may_check(c, k->info.name, k->demangled))
		return false;
	results_issued(c->records);
	return true;
}

void consan_over(struct consan *c)
{
	results_over(c->records);
}

enum consan_status session_status(enum exec_status s)
{
	switch (s) {
	case EXEC_OK: return CONSAN_OK;
	case EXEC_FAULT: case EXEC_TRAP: return CONSAN_FAULT;
	case EXEC_HANG: case EXEC_TIMEOUT: return CONSAN_HANG;
	case EXEC_STOPPED: return CONSAN_STOPPED;
	case EXEC_UNSUPPORTED: return CONSAN_UNCHECKED;
	case EXEC_BAD_LAUNCH: return CONSAN_BAD_LAUNCH;
	}
	return CONSAN_BAD_LAUNCH;
}

static const char *const status_name[] = {
	[CONSAN_OK] = "ok", [CONSAN_FAULT] = "fault", [CONSAN_HANG] = "hang",
	[CONSAN_UNCHECKED] = "unsupported", [CONSAN_BAD_LAUNCH] = "bad launch",
	[CONSAN_STOPPED] = "stopped",
};

struct launch_info session_describe(struct consan *c, const struct consan_launch *l, uint32_t id)
{
	const struct exec_kernel_info *k = &l->kernel->info;
	struct launch_info i = {
		.kernel = k->name, .id = id,
		.shared_static = k->shared_static, .shared_dynamic = l->shared_dynamic,
		.regs_per_thread = k->nregs, .sm = c->gpu->sm, .device = l->kernel->module->device, .seed = c->opt.seed,
		.reads = (uint8_t)c->opt.reads,
		.symbols = l->kernel->symbols, .nsymbols = k->nsymbols,
		.queue = l->queue, .programmatic = l->programmatic, .apart = k->apart, .tensor = k->tensor,
	};

	const uint32_t *required = k->func->reqnctapercluster;

	i.clustered = l->cluster[0] || l->preferred[0] || required[0];
	memcpy(i.grid, l->grid, sizeof i.grid);
	memcpy(i.block, l->block, sizeof i.block);
	for (unsigned d = 0; d < 3; d++)
		i.cluster[d] = l->preferred[d] ? l->preferred[d] : l->cluster[d] ? l->cluster[d]
			: required[d] ? required[d] : 1;
	return i;
}

/* Makes the parameter block from l->args, a pointer to each value. NULL if l has the block
 * already; the caller free()s it. */
static void *pack(const struct consan_launch *l)
{
	uint32_t offset, bytes;
	char *block;

	if (l->params || !l->args)
		return NULL;
	block = base_alloc(l->kernel->info.param_bytes);
	for (size_t i = 0; consan_kernel_param(l->kernel, i, &offset, &bytes); i++)
		memcpy(block + offset, l->args[i], bytes);
	return block;
}

/* The effect time of asynchronous operations. With a seed, it is random by default. */
static enum exec_async async_of(const struct options *o)
{
	switch (o->async) {
	case OPT_ASYNC_LATE: return ASYNC_LATE;
	case OPT_ASYNC_EARLY: return ASYNC_EARLY;
	case OPT_ASYNC_RANDOM: return ASYNC_RANDOM;
	}
	return o->seed ? ASYNC_RANDOM : ASYNC_LATE;
}

void session_run(struct consan *c, const struct consan_launch *l, const void *params,
	const struct launch_info *info, struct check *check, struct crossings *watch,
	struct repair *repair, struct exec_result *r)
{
	struct running running = { .c = c, .check = check, .info = info, .watch = watch, .repair = repair };
	struct exec_observer observer = { .user = &running, .print = on_print };
	struct exec_launch x = {
		.device = c->gpu, .kernel = l->kernel->exec, .id = info->id,
		.shared_dynamic = l->shared_dynamic, .params = params,
		.cooperative = l->cooperative, .seed = c->opt.seed, .control = c->control,
		.async = async_of(&c->opt), .reads = (enum exec_reads)c->opt.reads,
		/* one job for --save: a file has the events in their order */
		.jobs = c->save && check ? 1 : (unsigned)c->opt.jobs, .timeout = c->opt.timeout,
		.most = c->most, .observer = &observer,
	};

	if (c->partial) {
		x.sample = c->partial->sample;
		x.nsample = c->partial->n;
		x.partial = c->partial->partial;
		x.limited = c->partial->limited;
		x.timeout = c->partial->seconds;
	}
	if (c->outside.pause || c->partial)
		observer.pause = on_pause;
	if (c->outside.call)
		observer.call = on_call;
	if (repair && repair_keeps(repair))
		observer.first_write = on_first_write;
	if (c->outside.cut) {
		running.cut = c->outside.cut();
		observer.stop = on_stop;
	}
	x.clustered = info->clustered;
	memcpy(x.grid, info->grid, sizeof x.grid);
	memcpy(x.block, info->block, sizeof x.block);
	memcpy(x.cluster, info->cluster, sizeof x.cluster);
	memcpy(x.fallback, info->fallback, sizeof x.fallback);
	if (check) {
		observer.cluster_begin = on_cluster_begin;
		observer.cluster_end = on_cluster_end;
		observer.disputed = on_disputed;
	}
	if (check)
		progress_launch(c->progress, l->kernel->demangled,
			(uint64_t)info->grid[0] * info->grid[1] * info->grid[2]
			/ ((uint64_t)info->cluster[0] * info->cluster[1] * info->cluster[2]));
	pthread_mutex_init(&running.print, NULL);
	exec_run(&x, r);
	progress_idle(c->progress);
	pthread_mutex_destroy(&running.print);
}

void consan_unchecked(struct consan *c, const char *kernel, bool launched, const char *why)
{
	char *demangled = demangle(kernel, NAME_FULL);
	struct coverage *v;

	pthread_mutex_lock(&c->launching);
	if (may_check(c, kernel, demangled)) {
		v = session_coverage(c, kernel);
		v->launches += launched;
		snprintf(v->unchecked, sizeof v->unchecked, "%s", why);
		results_coverage(c->records, v);
	}
	pthread_mutex_unlock(&c->launching);
	free(demangled);
}

/* Why a launch is not checked: it did not run to its end, and what was left of it is not known. Empty:
 * it did. */
static void why_unchecked(const struct launch_info *info, const struct exec_result *r, char *to, size_t n)
{
	const char *by = "";

	*to = 0;
	switch (r->status) {
	case EXEC_OK:
		return;
	case EXEC_UNSUPPORTED:
	case EXEC_BAD_LAUNCH:
		snprintf(to, n, "%.*s", (int)n - 1, r->err.text);
		return;
	case EXEC_TIMEOUT: by = "stopped by --timeout"; break;
	case EXEC_STOPPED: by = "cut off by a signal handler that did not return"; break;
	case EXEC_FAULT:
	case EXEC_TRAP: by = "ended early, by a fault"; break;
	case EXEC_HANG: by = "ended early, as it hung"; break;
	}
	snprintf(to, n, "launch %u: %s: %llu of %llu clusters ended", info->id, by,
		(unsigned long long)r->clusters, (unsigned long long)cluster_whole(info));
}

static void account(struct consan *c, const struct launch_info *info, bool checked,
	const struct exec_result *r, const char *why)
{
	struct coverage *v = session_coverage(c, info->kernel);

	v->launches++;
	if (*why && (checked || r->status == EXEC_UNSUPPORTED || r->status == EXEC_BAD_LAUNCH))
		snprintf(v->unchecked, sizeof v->unchecked, "%s", why);
	else if (checked)
		v->checked++;
	else
		v->skipped++;
	v->warp_ops += r->warp_ops;
	if (checked) {
		v->clusters += r->clusters;
		v->ctas += r->ctas;
		v->events += r->events;
		if (v->sites < r->sites)
			v->sites = r->sites;
		if (v->sites_executed < r->sites_executed)
			v->sites_executed = r->sites_executed;
	}
	results_coverage(c->records, v);
}

void session_record_banks(struct consan *c)
{
	const struct bank_use *use;
	size_t n = c->banks ? banks_uses(c->banks, &use) : 0;

	for (size_t i = 0; i < n; i++)
		results_bank_use(c->records, &use[i]);
}

uint32_t session_last(const struct exec_result *r)
{
	return r->cut < UINT32_MAX ? (uint32_t)r->cut - 1 : UINT32_MAX;
}

void session_settle(struct consan *c, struct check *check, uint32_t last)
{
	const struct finding *const *found;
	size_t n;

	check_truncate(check, last);
	check_save(check);
	n = check_findings(check, &found);
	for (size_t i = 0; i < n; i++)
		session_take(c, found[i]);
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->findings.n; i++) {
		struct session_finding *s = c->findings.at[i];

		if (s->f.seen == s->before)
			continue;
		s->f.seen = s->recorded = s->before;
		s->f.clusters = s->clusters_before;
		session_record_finding(c, i);
	}
	recorders_forget(c->recorders);
	pthread_mutex_unlock(&c->lock);
}

bool session_allocation(void *user, uint64_t addr, uint64_t *base, uint64_t *bytes)
{
	struct exec_mem m;

	(void)user;
	if (!exec_mem_find(addr, &m))
		return false;
	*base = m.at;
	*bytes = m.bytes;
	return true;
}

/* ---- further schedules ---- */

struct trial {
	struct consan *c;
	const struct consan_launch *l;
	const void *params;
	struct check_config config;
	uint64_t most; /* operations; 0: no limit */
};

/* Runs in a copy of the process. */
static size_t try_schedule(void *user, uint64_t seed, const struct exec_control *control,
	const struct finding *const **found, enum explore_end *end)
{
	struct trial *t = user;
	struct consan *c = t->c;
	struct exec_result r = { 0 };
	struct check *check;
	char name[sizeof ((struct finding *)0)->schedule];

	c->opt.seed = t->config.launch.seed = seed;
	c->control = control;
	c->most = t->most ? t->most : c->alone ? 0 : EXPLORE_OPS;
	t->config.launch.schedule = NULL;
	if (control) {
		schedule_format(name, sizeof name, t->config.launch.id, control);
		t->config.launch.schedule = name;
	}
	session_silence(c, &t->config);
	check = check_open(&t->config);
	session_run(c, t->l, t->params, &t->config.launch, check, NULL, NULL, &r);
	if (r.status == EXEC_TIMEOUT)
		check_timed_out(check);
	check_truncate(check, session_last(&r));
	if (r.status == EXEC_STOPPED) {
		*end = r.limited ? EXPLORE_LIMIT : EXPLORE_WAITS;
		return 0;
	}
	return check_findings(check, found);
}

/* Half of the schedules at most are systematic: they do not vary the times at which asynchronous
 * operations take effect. */
void session_explore(struct consan *c, const struct consan_launch *l, const void *params,
	const struct check_config *config, struct explored *out)
{
	struct coverage *v = session_coverage(c, config->launch.kernel);
	struct trial trial = { c, l, params, *config, 0 };
	const struct explorer x = { try_schedule, &trial, session_found, c, c->opt.seed, c->part, c->parts };
	const uint64_t mine = c->opt.explore / c->parts + (c->part <= c->opt.explore % c->parts);
	uint64_t tried;

	if (l->kernel->info.coupled) {
		explore_search(&x, (mine + 1) / 2, out);
		v->explored += out->all && c->parts == 1;
		v->explored_shards += out->all && c->parts > 1;
		v->explored_part += !out->all;
	}
	tried = out->schedules + out->waited + out->lost;
	explore_seeds(&x, mine > tried ? mine - tried : 0, out);
	v->schedules += out->schedules;
	v->seeds += out->seeds;
}

#define REVERSE_OPS (1u << 22)
#define REVERSE_CTAS 64u

/* In one order of the threads that take a lock, a missing acquire of the first and a missing release
 * of the last show nothing. So the first launch of a kernel that takes locks is tried in reverse
 * order, too, if it is short and all its clusters are resident: others may rely on their order. */
static bool tries_reverse(struct consan *c, const struct consan_launch *l)
{
	const uint32_t *grid = l->grid;

	if (!l->kernel->info.takes_locks || c->opt.explore || c->opt.seed || c->control
		|| (uint64_t)grid[0] * grid[1] * grid[2] > REVERSE_CTAS || explore_shares_memory())
		return false;
	for (size_t k = 0; k < c->reversed.n; k++)
		if (c->reversed.at[k] == l->kernel)
			return false;
	vec_push(&c->reversed, l->kernel);
	return true;
}

void session_reverse(struct consan *c, const struct consan_launch *l, const void *params,
	const struct check_config *config, struct explored *out)
{
	struct trial trial = { c, l, params, *config, REVERSE_OPS };
	const struct explorer x = { try_schedule, &trial, session_found, c, c->opt.seed, 1, 1 };
	struct exec_control control = { .reverse = true };
	const unsigned waited = out->waited;
	const bool limited = out->limited;

	if (!tries_reverse(c, l))
		return;
	explore_one(&x, c->opt.seed, &control, out);
	out->waited = waited; /* that one is stopped by its own limit, too, and no option promises it */
	out->limited = limited;
}

/* The schedule that --schedule names for this launch; NULL: none. */
static const struct exec_control *control_of(struct consan *c, const struct consan_launch *l,
	uint32_t id, struct exec_control *control)
{
	if (!*c->opt.schedule || c->schedule.launch != id)
		return NULL;
	if (!l->kernel->info.coupled && !l->kernel->info.takes_locks) {
		consan_remark(c, REMARK_NOTE, "--schedule names a launch in which no cluster observes "
			"another: it has no effect");
		return NULL;
	}
	*control = (struct exec_control){ .at = c->schedule.at, .n = c->schedule.n,
		.reverse = c->schedule.reverse };
	return control;
}

void session_take_explored(struct consan *c, const struct explored *x)
{
	for (size_t k = 0; k < x->finding.n; k++) {
		bool known = false;

		pthread_mutex_lock(&c->lock);
		for (size_t i = 0; i < c->findings.n && !known; i++)
			known = c->findings.at[i]->before && finding_same(&c->findings.at[i]->f, &x->finding.at[k]);
		pthread_mutex_unlock(&c->lock);
		if (!known)
			session_take(c, &x->finding.at[k]);
	}
	if (x->lost)
		consan_remark(c, REMARK_NOTE, "a further schedule of a launch was not explored: its process "
			"ended early");
	if (x->limited)
		consan_remark(c, REMARK_NOTE, "--explore: a launch that may wait for the host or another launch was "
			"stopped after 2^24 operations; its further schedules were not tried");
	else if (x->waited)
		consan_remark(c, REMARK_NOTE, "--explore: schedules of a launch were not explored to their end, as "
			"it waits for the host or another launch");
}

/* A struct that was compiled with another version of its header. Members that it lacks are 0; one
 * that we lack must be. */
bool session_take_struct(void *to, size_t size, const void *from, size_t given,
	struct consan_err *e)
{
	const char *extra = from;

	memset(to, 0, size);
	memcpy(to, from, given < size ? given : size);
	for (size_t i = size; i < given; i++)
		if (extra[i])
			return err_set(e, CONSAN_ERR_LAUNCH, 0, 0, "made for a later version of consan than "
				CONSAN_VERSION);
	return true;
}

static enum consan_status launch(struct consan *c, const struct consan_launch *l,
	struct order_op *op, uint64_t launched, struct consan_err *e)
{
	struct explored other = { 0 };
	struct exec_control control;
	struct exec_result r = { 0 };
	struct check_config config = { .policy = c->policy, .gluon = consan_python_has("gluon"),
		.triton = consan_python_has("triton"), .xla = consan_python_has("xla"),
		.memory = c->memory, .found = session_found,
		.user = c, .global = !c->opt.no_global, .repeat = !base_environ("CONSAN_EACH"),
		.where = session_allocation };
	struct result_launch record;
	char why[sizeof ((struct coverage *)0)->unchecked];
	enum consan_status status;
	struct repair *repair = NULL;
	struct check *check = NULL;
	struct cpu_span began;
	void *packed;
	bool checked;
	int exit_status;

	if (consan_halted(c, &exit_status)) {
		err_set(e, CONSAN_ERR_HALTED, 0, 0, "halt-on-error: an earlier launch had an error");
		if (l->kernel)
			consan_unchecked(c, l->kernel->info.name, true, e->text);
		return CONSAN_STOPPED;
	}
	if (!l->kernel || (l->kernel->info.param_bytes && !l->params && !l->args)) {
		err_set(e, CONSAN_ERR_LAUNCH, 0, 0, l->kernel ? "no values for the kernel's parameters"
			: "no kernel");
		return CONSAN_BAD_LAUNCH;
	}
	consan_device(c);
	if (l->kernel->module->gpu || l->kernel->module->slices) {
		if (c->opt.cluster_fallback)
			consan_remark(c, REMARK_FALLBACK_NOT_TRIED,
				"instrumented kernels run as launched: use --backend=cpu");
		packed = pack(l);
		status = gpu_emulate(c, l, packed ? packed : l->params, op, e);
		free(packed);
		return status;
	}
	pthread_mutex_lock(&c->launching);
	config.launch = session_describe(c, l, c->launches++);
	config.launch.launched = launched;
	c->control = control_of(c, l, config.launch.id, &control);
	config.launch.schedule = c->control ? c->opt.schedule : NULL;
	checked = session_wants(c, l->kernel->info.name, l->kernel->demangled);
	record = (struct result_launch){ .id = config.launch.id,
		.kernel = (char *)l->kernel->info.name, .seed = c->opt.seed,
		.state = LAUNCH_RUNNING, .whole = cluster_whole(&config.launch) };
	memcpy(record.grid, config.launch.grid, sizeof record.grid);
	memcpy(record.block, config.launch.block, sizeof record.block);
	memcpy(record.cluster, config.launch.cluster, sizeof record.cluster);
	if (!checked) {
		check_memory_host_unseen(c->memory); /* it may synchronize with the host, and with others */
		check_memory_idle(c->memory, l->queue, false);
	} else if (!c->paused && __atomic_exchange_n(&c->freed, false, __ATOMIC_ACQ_REL))
		check_memory_idle(c->memory, l->queue, true);
	packed = pack(l);
	c->alone = !c->outside.alone || !l->kernel->info.polls || c->outside.alone();
	if (checked) {
		repair = repair_open(c, l, packed ? packed : l->params, &config);
		results_launch(c->records, &record);
		check = session_check(c, &config, op);
		if (c->save)
			event_writer_launch(c->save, &config.launch);
	}
	session_begun(c);

	if (checked && c->opt.explore)
		session_explore(c, l, packed ? packed : l->params, &config, &other);
	if (checked)
		session_reverse(c, l, packed ? packed : l->params, &config, &other);
	if (checked && c->opt.cluster_fallback)
		fallback_try(c, l, packed ? packed : l->params, &config);
	began = cpu_span_begin();
	session_run(c, l, packed ? packed : l->params, &config.launch, check, NULL, repair, &r);

	if (r.reads_given_up)
		consan_remark(c, REMARK_NOTE, "--reads: a launch writes so many words by strong accesses, or "
			"such large ones, that from some time on loads returned the newest value");
	status = session_status(r.status);
	c->fault = r.fault;
	if (status == CONSAN_BAD_LAUNCH || status == CONSAN_UNCHECKED)
		err_set(e, r.err.code ? r.err.code : CONSAN_ERR_LAUNCH, r.err.line, r.err.col,
			"%s", r.err.text);
	why_unchecked(&config.launch, &r, why, sizeof why);
	if (checked) {
		if (r.status == EXEC_TIMEOUT)
			check_timed_out(check);
		check_truncate(check, session_last(&r));
		repair_launch(repair, c, l, check, cpu_span_seconds(&began));
		repair_close(repair);
		session_settle(c, check, session_last(&r));
		session_take_explored(c, &other);
		session_operation(c, op, check, config.launch.id, NULL, false);
		explored_free(&other);
		view_announce(c);
		check_close(check);
		if (c->save)
			event_writer_launch_end(c->save, &config.launch, session_last(&r), why);
		record.state = LAUNCH_DONE;
		record.status = (char *)status_name[status];
		results_launch(c->records, &record);
		c->checked += status != CONSAN_BAD_LAUNCH && status != CONSAN_UNCHECKED;
		session_tell_next(c);
	}
	free(packed);
	account(c, &config.launch, checked, &r, why);
	pthread_mutex_unlock(&c->launching);
	return status;
}

enum consan_status consan_launch_op(struct consan *c, const struct consan_launch *l,
	struct order_op *op, uint64_t launched, struct consan_err *e)
{
	enum consan_status status;

	session_uses(c);
	status = launch(c, l, op, launched, e);
	session_used(c);
	return status;
}

enum consan_status consan_launch_sized(struct consan *c, const struct consan_launch *given, size_t size,
	struct consan_err *e)
{
	struct consan_launch l;

	if (!session_take_struct(&l, sizeof l, given, size, e))
		return CONSAN_BAD_LAUNCH;
	return consan_launch_op(c, &l, NULL, 0, e);
}

uint64_t consan_seed(const struct consan *c)
{
	return c->opt.seed;
}

double consan_timeout(const struct consan *c)
{
	return c->opt.timeout;
}

bool consan_blocks(const struct consan *c)
{
	return c->opt.launch_blocking;
}

unsigned consan_fault(struct consan *c)
{
	unsigned fault;

	pthread_mutex_lock(&c->launching);
	fault = c->fault;
	pthread_mutex_unlock(&c->launching);
	return fault;
}
