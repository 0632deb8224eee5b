/* gpu: the door of GPU mode, between the instrument room, the checker and the
 * session's records: a launch's records in, findings out. */
#include "gpu_parts.h"

#include "instrument/decode/decode.h"
#include "libconsan/base/base.h"
#include "gpu_maps.h"
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* One launch being checked. */
struct gpu_flight {
	struct consan *c;
	struct check *check;       /* NULL: gpu_brief()'s */
	const struct gpu_launch *l;
	const struct rewrite_func *func;
	struct decode_launch *d;
};

static struct event_sink *on_begin(void *user, const struct cluster_info *info, bool registers)
{
	struct gpu_flight *f = user;
	struct cluster_info with = *info;
	struct event_sink *sink;

	if (!f->check) /* what is found is found again, with its story */
		return gpu_brief_begin(f->c, info, registers);
	with.recorder = recorder_begin(f->c->recorders, &with);
	sink = recorder_sink(with.recorder, check_cluster_begin(f->check, &with));
	if (f->c->banks)
		sink = banks_begin(f->c->banks, sink);
	return f->c->save ? event_writer_begin(f->c->save, info, sink) : sink;
}

static void on_end(void *user, struct event_sink *sink, bool registers)
{
	struct gpu_flight *f = user;
	struct recorder *recorder;

	if (!f->check) {
		gpu_brief_end(f->c, sink, registers);
		return;
	}
	if (f->c->save)
		sink = event_writer_end(sink);
	if (f->c->banks)
		sink = banks_end(sink);
	check_cluster_end(f->check, recorder_next(sink, &recorder));
	recorder_end(recorder);
}

static bool on_box(void *user, struct decode_box *b)
{
	return gpu_maps_box(((const struct gpu_flight *)user)->l->maps, b);
}

/* What kernels allocate themselves only the executor knows. */
static bool on_memory(void *user, uint64_t addr, uint64_t *from, uint64_t *bytes)
{
	const struct gpu_flight *f = user;

	return f->l->memory && (f->l->module->code->polls || !ptx_find(f->l->module->ptx, "malloc")) &&
		f->l->memory(f->l->user, addr, from, bytes);
}

static struct ev_symbol *symbols_of(const struct gpu_launch *l, const struct rewrite_func *f)
{
	struct ev_symbol *s = base_alloc((f->nsymbols + 1) * sizeof *s);

	for (size_t k = 0; k < f->nsymbols; k++) {
		s[k].name = demangle_variable(f->symbol[k]->name);
		s[k].addr = decode_symbol(l->pool, k) & 0xffffff;
		s[k].bytes = f->symbol[k]->size ? (uint32_t)f->symbol[k]->size : l->shared_dynamic;
	}
	return s;
}

/* Where a CTA's own shared memory ends, as the kernel said where its variables lie: the
 * dynamic one comes last. 0: not known. On a GPU nothing lies at address 0, so that
 * a kernel which did not come to say so is told from one that did. */
static uint32_t shared_end(const struct gpu_launch *l, const struct rewrite_func *f,
	const struct ev_symbol *symbols)
{
	uint32_t end = 0, high = 0;
	bool dynamic = false;

	for (size_t k = 0; k < f->nsymbols; k++) {
		uint32_t to = symbols[k].addr + symbols[k].bytes;

		dynamic |= !f->symbol[k]->size;
		high = symbols[k].addr > high ? symbols[k].addr : high;
		end = to > end ? to : end;
	}
	if (!high && !(l->module->code->polls && f->nsymbols == 1))
		return 0;
	return f->hidden || (l->shared_dynamic && !dynamic) ? 0 : end;
}

static struct launch_info describe(struct consan *c, const struct gpu_launch *l,
	const struct rewrite_func *f, const struct ev_symbol *symbols)
{
	uint32_t end = shared_end(l, f, symbols);
	struct launch_info i = { .kernel = f->func->name, .id = c->launches++,
		.shared_static = (end ? end : l->shared) - l->shared_dynamic, .shared_dynamic = l->shared_dynamic,
		.regs_per_thread = l->nregs, .sm = l->sm, .symbols = symbols, .nsymbols = f->nsymbols,
		.queue = l->queue, .programmatic = l->programmatic, .apart = !f->hands_over };

	memcpy(i.grid, l->grid, sizeof i.grid);
	memcpy(i.block, l->block, sizeof i.block);
	for (unsigned d = 0; d < 3; d++)
		i.cluster[d] = l->cluster[d] ? l->cluster[d]
			: f->func->reqnctapercluster[d] ? f->func->reqnctapercluster[d] : 1;
	return i;
}

static void say_why(const struct gpu_launch *l, const struct rewrite_func *f,
	const struct decode_result *r, char why[320])
{
	if (r->lost)
		snprintf(why, 320, "its records could not be copied from the GPU");
	else if (l->lost)
		snprintf(why, 320, "%llu KiB of records that left the GPU while the kernel ran did not fit into the "
			"host's memory, so that %u of %llu clusters were not looked at; --gpu-host-memory gives more",
			((unsigned long long)l->dropped + l->lost) * (RECORD_CHUNK_BYTES / 1024), r->blind,
			(unsigned long long)r->clusters);
	else if (l->dropped)
		snprintf(why, 320, "%llu KiB of records did not fit into the memory that the GPU had for them, so that "
			"%u of %llu clusters were not looked at; --gpu-memory gives more%s",
			(unsigned long long)l->dropped * (RECORD_CHUNK_BYTES / 1024), r->blind,
			(unsigned long long)r->clusters, l->chunk ? "" : ", --gpu-drain makes room while the kernel runs");
	else if (l->fault)
		snprintf(why, 320, "%s; what it had recorded until then was checked%s", l->fault,
			f->unrecorded && !r->refused ? "; --gpu-global records addresses of global memory, too" : "");
	else if (r->damaged)
		snprintf(why, 320, "%u records of the GPU made no sense", r->damaged);
	else if (r->unknown_maps)
		snprintf(why, 320, "%u tensor copies went through a tensor map that no call of "
			"cuTensorMapEncode made; what came behind a load was not checked", r->unknown_maps);
	else if (r->moving_maps)
		snprintf(why, 320, "%u tensor copies went through a tensor map that the kernel edits more than "
			"once; what they touched in global memory was not checked", r->moving_maps);
	else if (r->foreign)
		snprintf(why, 320, "calls went to functions of another module, which --backend=gpu does not "
			"follow");
}

static void account(struct consan *c, const struct gpu_launch *l, const struct rewrite_func *f,
	const struct decode_result *r)
{
	struct coverage *v = session_coverage(c, f->func->name);
	char why[320] = "";

	say_why(l, f, r, why);
	v->launches++;
	if (why[0])
		memcpy(v->unchecked, why, sizeof v->unchecked);
	else
		v->checked++;
	v->clusters += r->clusters;
	v->ctas += r->ctas;
	v->events += r->events;
	v->dropped += ((uint64_t)l->dropped + l->lost) * (RECORD_CHUNK_UNITS / 4);
	v->warp_ops += r->records;
	v->sites = f->sites;
	if (v->sites_executed < r->sites_executed)
		v->sites_executed = r->sites_executed;
	results_coverage(c->records, v);
}

/* Clusters that did the same were left out; now each is to be looked at. */
static bool worth_all(struct check *k, const struct decode_result *r)
{
	const struct finding *const *found;
	size_t n = check_findings(k, &found);

	for (size_t i = 0; i < n; i++)
		if (found[i]->severity != SEV_NOTE)
			return true;
	return r->damaged;
}

static uint32_t to_check(const struct launch_info *i, const uint8_t *skip)
{
	uint32_t n = cluster_whole(i), work = 0;

	for (uint32_t k = 0; k < n; k++)
		work += !skip || !skip[k];
	return work;
}

/* What is looked at again, if anything is, is looked at there. */
static bool on_rest(void *user, struct decode_launch *with)
{
	struct gpu_flight *f = user;

	if (!f->l->rest(f->l->user, &with->pool, &with->chunks, &with->skip))
		return false;
	f->d->pool = with->pool;
	f->d->chunks = with->chunks;
	f->d->skip = with->skip;
	return true;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Leaves a check with all that there is to find. That there is something is seen in any
 * order; what is told of it is seen in the order in which it came. */
static void run(struct gpu_flight *f, const struct check_config *config, struct decode_launch *d,
	struct decode_result *r)
{
	struct gpu_cost *cost = f->l->cost ? f->l->cost : &(struct gpu_cost){ 0 };
	const bool once = config->memory && check_memory_overlaps(config->memory, &config->launch);
	struct check_config quiet = *config;
	bool clean, all; /* all: what is here is all that there is to look at */

	quiet.found = NULL;
	cost->clusters = d->rest ? 1 : to_check(&config->launch, d->skip);
	cost->threads = 1;
	clean = gpu_brief(f->c, config, f->func, d, r, cost);
	cost->clusters = to_check(&config->launch, d->skip);
	__atomic_store_n(&f->c->nothing_new, !cost->clusters, __ATOMIC_RELAXED);
	d->rest = NULL;
	if (clean || r->lost) {
		f->check = check_open(&quiet); /* which has nothing to say */
		return;
	}
	cost->again = gpu_brief_asks(f->c);
	all = !d->skip || f->l->chunk;
	d->exact = once || f->c->save || f->c->banks || (cost->again && all);
	f->check = check_open(d->exact && all ? config : &quiet);
	decode_run(d, r);
	if ((d->exact && all) || !worth_all(f->check, r))
		return;
	if (!all)
		d->pool = f->l->whole(f->l->user, &d->chunks);
	if (!d->pool)
		return;
	if (!all)
		d->skip = NULL;
	d->exact = true;
	cost->again = true;
	check_close(f->check);
	if (config->memory) /* what this very launch did is not of a grid before it */
		check_memory_idle(config->memory, config->launch.queue, false);
	f->check = check_open(config);
	decode_run(d, r);
}

/* What outlives a launch. Where records are missing, a wait may be, too. */
static struct check_memory *memory_for(struct consan *c, const struct gpu_launch *l)
{
	bool freed = __atomic_exchange_n(&c->freed, false, __ATOMIC_ACQ_REL);

	if (freed || l->dropped || l->lost)
		check_memory_idle(c->memory, l->queue, freed);
	return l->module->code->global && !l->dropped && !l->lost ? c->memory : NULL;
}

/* Where one cluster spoke for others: those that do the same later need no look, or, if
 * something was found and there is nothing else to look at, that is said. */
static void note_clean(struct consan *c, const struct gpu_flight *f, const struct decode_launch *d,
	const struct decode_result *r)
{
	struct gpu_module *m = f->l->module;
	const bool found = worth_all(f->check, r);
	char text[400];

	if (f->l->retired && found) {
		snprintf(text, sizeof text, "%s: %u of %u clusters were looked at for what was found; the others "
			"recorded the same, each as some of these, and their records were given up while the kernel ran",
			f->l->kernel, to_check(d->info, d->skip), cluster_whole(d->info));
		consan_remark(c, REMARK_NOTE, text);
	}
	if (!found && d->skip && f->l->ended && !f->l->dropped && !f->l->lost &&
			!r->unknown_maps && !r->moving_maps && !r->foreign)
		for (uint32_t k = 0; k < m->nsignatures; k++)
			gpu_note_clean(m, m->signature[k]);
}

void gpu_check(struct consan *c, const struct gpu_launch *l)
{
	const struct rewrite_func *f = rewrite_find(l->module->code, l->kernel);
	struct check_config config = { .policy = c->policy, .global = l->module->code->global,
		.found = session_found, .user = c, .broken = l->fault };
	struct gpu_flight flight = { .c = c, .l = l, .func = f };
	struct result_launch record = { .kernel = (char *)l->kernel, .state = LAUNCH_RUNNING };
	struct decode_result r = { 0 };
	struct ev_symbol *symbols;
	double start;
	struct decode_launch d = { .code = l->module->code, .sites = l->module->sites, .func = f,
		.site = l->module->site,
		.info = &config.launch, .pool = l->pool, .chunks = l->chunks, .chunk = l->chunk,
		.lacks = l->lacks, .waited = l->waited,
		.tickets = l->tickets,
		.grid_order = l->tickets && f && f->orders_grid,
		.ended = l->ended, .fault = l->fault, .skip = l->skip,
		.rest = l->rest ? on_rest : NULL, .jobs = gpu_workers(c), .user = &flight, .box = on_box, .memory = on_memory,
		.cluster_begin = on_begin, .cluster_end = on_end };

	if (!f)
		return;
	if (f->refused) {
		gpu_unchecked(c, l->kernel, l->queue, f->refused);
		return;
	}
	flight.d = &d;
	pthread_mutex_lock(&c->launching);
	config.memory = memory_for(c, l);
	symbols = symbols_of(l, f);
	config.launch = describe(c, l, f, symbols);
	record.id = config.launch.id;
	memcpy(record.grid, config.launch.grid, sizeof record.grid);
	memcpy(record.block, config.launch.block, sizeof record.block);
	memcpy(record.cluster, config.launch.cluster, sizeof record.cluster);
	results_launch(c->records, &record);
	if (c->save)
		event_writer_launch(c->save, &config.launch);
	d.shared = f->reserved ? 0 : shared_end(l, f, symbols);
	d.shared_all = l->shared;
	l->maps->base = decode_params(l->pool);
	start = seconds();
	run(&flight, &config, &d, &r);
	if (l->cost)
		l->cost->check = seconds() - start;
	note_clean(c, &flight, &d, &r);
	session_settle(c, flight.check, r.refused ? r.refused - 1 : UINT32_MAX);
	view_announce(c);
	check_close(flight.check);
	if (!l->ended)
		check_memory_idle(c->memory, l->queue, false);
	if (c->save)
		event_writer_launch_end(c->save, &config.launch, UINT32_MAX, "");
	record.state = LAUNCH_DONE;
	record.status = l->ended ? "ok" : l->fault ? "fault" : "hang";
	results_launch(c->records, &record);
	c->checked++;
	account(c, l, f, &r);
	for (size_t k = 0; k < f->nsymbols; k++)
		free((char *)symbols[k].name);
	free(symbols);
	pthread_mutex_unlock(&c->launching);
}

void gpu_stand_by(struct consan *c)
{
	crew_open(gpu_workers(c) - 1);
	pthread_mutex_lock(&c->launching);
	gpu_brief_stand_by(c);
	pthread_mutex_unlock(&c->launching);
}

void gpu_alert(const struct consan *c)
{
	if (!__atomic_load_n(&c->nothing_new, __ATOMIC_RELAXED))
		crew_alert(GPU_AWAKE);
}

void gpu_expect(struct consan *c, const struct gpu_launch *l)
{
	const struct rewrite_func *f = rewrite_find(l->module->code, l->kernel);

	gpu_stand_by(c);
	pthread_mutex_lock(&c->launching);
	if (f && !f->refused && f->unrecorded && !c->opt.no_global && !l->module->told) {
		consan_remark(c, REMARK_NOTE, "accesses to global memory are not checked by this backend; "
			"--gpu-global checks them, --no-global says that they need not be");
		l->module->told = true;
	}
	gpu_brief_expect(c, l);
	pthread_mutex_unlock(&c->launching);
}

void gpu_named(struct consan *c, const char *name)
{
	results_process(c->records, program_invocation_name, name);
}

bool gpu_wants(struct consan *c, const char *kernel)
{
	char *demangled = demangle(kernel, NAME_FULL);
	bool yes;

	pthread_mutex_lock(&c->launching);
	yes = session_wants(c, kernel, demangled);
	pthread_mutex_unlock(&c->launching);
	free(demangled);
	return yes;
}

void gpu_skip(struct consan *c, const char *kernel, uint64_t queue)
{
	struct coverage *v;

	pthread_mutex_lock(&c->launching);
	check_memory_idle(c->memory, queue, false);
	v = session_coverage(c, kernel);
	v->launches++;
	v->skipped++;
	results_coverage(c->records, v);
	pthread_mutex_unlock(&c->launching);
}

void gpu_unchecked(struct consan *c, const char *kernel, uint64_t queue, const char *why)
{
	struct coverage *v;

	pthread_mutex_lock(&c->launching);
	check_memory_idle(c->memory, queue, false);
	v = session_coverage(c, kernel);
	v->launches++;
	snprintf(v->unchecked, sizeof v->unchecked, "%s", why);
	results_coverage(c->records, v);
	pthread_mutex_unlock(&c->launching);
}

void gpu_timed(struct consan *c, const char *kernel, double seconds)
{
	struct coverage *v;

	pthread_mutex_lock(&c->launching);
	v = session_coverage(c, kernel);
	v->gpu_timed++;
	v->gpu_ns += (uint64_t)(1e9 * seconds + 0.5);
	results_coverage(c->records, v);
	pthread_mutex_unlock(&c->launching);
}

void gpu_idle(struct consan *c)
{
	__atomic_store_n(&c->freed, true, __ATOMIC_RELEASE);
}

double gpu_timeout(const struct consan *c)
{
	return c->opt.timeout;
}

uint64_t gpu_memory(const struct consan *c)
{
	return c->opt.gpu_memory << 20;
}

uint64_t gpu_host_memory(const struct consan *c)
{
	return c->opt.gpu_host_memory ? c->opt.gpu_host_memory << 20
		: (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
}

bool gpu_times(const struct consan *c)
{
	return c->opt.gpu_times;
}

bool gpu_global(const struct consan *c)
{
	return c->opt.gpu_global && !c->opt.no_global;
}

bool gpu_drains(const struct consan *c)
{
	return c->opt.gpu_drain;
}

bool gpu_each(const struct consan *c)
{
	return c->opt.gpu_each || c->save || gpu_global(c);
}
