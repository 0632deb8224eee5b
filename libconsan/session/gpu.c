/* gpu: see gpu.h. Connects the decoder, the checker and the session: the records of a launch
 * in, findings out. */
#include "gpu_parts.h"

#include "instrument/decode/decode.h"
#include "libconsan/base/base.h"
#include "gpu_maps.h"
#include "internal.h"
#include "repair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Waking a worker and copying events costs some 0.3 ms on a host of an H200. Decoding and
 * checking overlap only for clusters that recorded so much that this is repaid: 1.5 MiB. */
#define QUEUE_CHUNKS (1536 * 1024 / RECORD_CHUNK_BYTES)

static struct event_sink *on_precheck_begin(void *user, const struct cluster_info *info)
{
	const struct gpu_running *f = user;
	struct event_sink *sink = check_cluster_begin(f->check, info);

	return f->queued ? event_queue_begin(sink) : sink;
}

static void on_precheck_end(void *user, struct event_sink *sink)
{
	const struct gpu_running *f = user;

	check_cluster_end(f->check, f->queued ? event_queue_end(sink) : sink);
}

static struct event_sink *on_begin(void *user, const struct cluster_info *info)
{
	struct gpu_running *f = user;
	struct cluster_info with = *info;
	struct event_sink *sink;

	with.recorder = recorder_begin(f->c->recorders, &with);
	sink = check_cluster_begin(f->check, &with);
	if (f->c->banks)
		sink = banks_begin(f->c->banks, sink);
	return f->c->save ? event_writer_begin(f->c->save, info, sink) : sink;
}

static void on_end(void *user, struct event_sink *sink)
{
	struct gpu_running *f = user;

	if (f->c->save)
		sink = event_writer_end(sink);
	if (f->c->banks)
		sink = banks_end(sink);
	check_cluster_end(f->check, sink);
}

static bool on_box(void *user, struct decode_box *b)
{
	return gpu_maps_box(((const struct gpu_running *)user)->l->maps, b);
}

/* Allocations by malloc() of a kernel are known in emulated GPU mode only. */
static bool on_memory(void *user, uint64_t addr, uint64_t *from, uint64_t *bytes)
{
	const struct gpu_running *f = user;
	const struct gpu_module *m = f->l->module;

	return f->l->memory && (m->code->emulated || !ptx_find(m->ptx, "malloc")) &&
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

/* Where a CTA's shared memory ends, from the addresses of its variables, which the kernel
 * records: the dynamic variable is the last one. 0: not known. On a GPU no variable has address
 * 0, so addresses of 0 mean that the kernel ended before it recorded them. */
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
	if (!high && !(l->module->code->emulated && f->nsymbols == 1))
		return 0;
	return f->hidden || (l->shared_dynamic && !dynamic) ? 0 : end;
}

static struct launch_info describe(const struct gpu_launch *l,
	const struct rewrite_func *f, const struct ev_symbol *symbols)
{
	uint32_t end = shared_end(l, f, symbols);
	struct launch_info i = { .kernel = f->func->name, .id = l->number - 1,
		.device = l->device,
		.shared_static = (end ? end : l->shared) - l->shared_dynamic,
		.shared_dynamic = l->shared_dynamic, .sm = l->sm,
		.regs_per_thread = (l->nregs + 7) & ~7u, /* as allocated */
		.tensor = f->tensor,
		.symbols = symbols, .nsymbols = f->nsymbols, .queue = l->queue,
		.programmatic = l->programmatic, .clustered = l->clustered, .apart = !f->hands_over };

	memcpy(i.grid, l->grid, sizeof i.grid);
	memcpy(i.block, l->block, sizeof i.block);
	for (unsigned d = 0; d < 3; d++)
		i.cluster[d] = l->cluster[d] ? l->cluster[d]
			: f->func->reqnctapercluster[d] ? f->func->reqnctapercluster[d] : 1;
	return i;
}

static void explain_unchecked(const struct gpu_launch *l, const struct rewrite_func *f,
	const struct decode_result *r, char why[320])
{
	const unsigned long long kib =
		((unsigned long long)l->dropped + l->lost) * (RECORD_CHUNK_BYTES / 1024);

	if (l->lost)
		snprintf(why, 320, "%llu KiB of records that were drained while the kernel ran did not fit into "
			"the host's memory, so that %u of %llu clusters were not checked; "
			"--gpu-host-memory gives more", kib, r->blind, (unsigned long long)r->clusters);
	else if (l->dropped)
		snprintf(why, 320, "%llu KiB of records did not fit into the GPU memory that is reserved for "
			"them, so that %u of %llu clusters were not checked; --gpu-memory gives more%s%s", kib,
			r->blind, (unsigned long long)r->clusters,
			l->chunk ? "" : ", --gpu-drain empties it while the kernel runs",
			l->module->code->global ? ", --gpu-global=no records less" : "");
	else if (!l->ended)
		snprintf(why, 320, "%s: %llu of %llu clusters ended; what it had recorded until then was checked%s",
			l->fault ? l->fault : "it was stopped, as it did not end",
			(unsigned long long)(r->clusters - r->unfinished), (unsigned long long)r->clusters,
			f->unrecorded && !l->module->unrecorded && !r->refused
			? "; --gpu-global records addresses of global memory, too" : "");
	else if (r->damaged)
		snprintf(why, 320, "records of the GPU are damaged or missing in %u places, so that what is "
			"reported of the launch may be wrong", r->damaged);
	else if (r->unknown_maps)
		snprintf(why, 320, "%u tensor copies went through a tensor map that could not be "
			"read (%.*s); what came after a load was not checked", r->unknown_maps,
			(int)sizeof l->maps->unread, l->maps->unread);
	else if (r->moving_maps)
		snprintf(why, 320, "%u tensor copies went through a tensor map that the kernel edits more "
			"than once; what they accessed in global memory was not checked", r->moving_maps);
	else if (r->foreign)
		snprintf(why, 320, "calls went to functions of another module, which --backend=gpu does "
			"not follow");
}

static void account(struct consan *c, const struct gpu_launch *l, const struct rewrite_func *f,
	const struct decode_result *r, const char *why)
{
	struct coverage *v = session_coverage(c, f->func->name);

	v->launches++;
	if (*why)
		snprintf(v->unchecked, sizeof v->unchecked, "%s", why);
	else
		v->checked++;
	v->clusters += r->clusters;
	v->ctas += r->ctas;
	v->events += r->events;
	v->dropped += ((uint64_t)l->dropped + l->lost) * (RECORD_CHUNK_UNITS / 4);
	v->warp_ops += r->records;
	v->hidden |= gpu_hidden(l->module, l->kernel);
	v->sites = f->sites;
	if (v->sites_executed < r->sites_executed)
		v->sites_executed = r->sites_executed;
	results_coverage(c->records, v);
}

/* Is there a finding above a note? Then clusters that were skipped are checked, too. */
static bool found_any(struct check *k, const struct decode_result *r)
{
	const struct finding *const *found;
	size_t n = check_findings(k, &found);

	for (size_t i = 0; i < n; i++)
		if (found[i]->severity != SEV_NOTE)
			return true;
	return r->damaged;
}

static uint32_t count_unskipped(const struct launch_info *i, const uint8_t *skip)
{
	uint32_t n = cluster_whole(i), work = 0;

	for (uint32_t k = 0; k < n; k++)
		work += !skip || !skip[k];
	return work;
}

/* There is no pre-check if all events are wanted, or if global memory is recorded: then all
 * clusters are decoded together, and coarse events save little. */
static bool has_precheck(const struct consan *c, const struct decode_launch *d)
{
	return !c->save && !c->banks && (!d->code->global || d->screened);
}

/* A screened launch has something to report: it is checked with all events of global memory, as these can
 * change what is reported. False: its other records cannot be copied. */
static bool unscreen(struct gpu_running *f, struct check_config *config, struct decode_launch *d)
{
	if (d->skip) {
		const void *pool = f->l->whole(f->l->user, &d->chunks);

		if (!pool)
			return false;
		d->pool = pool;
		d->skip = NULL;
	}
	d->screened = false;
	config->global = true;
	config->memory = f->memory;
	return true;
}

/* Does the launch have anything to report, notes included? Decodes it into coarse events,
 * which takes half of the time. False leaves f->check without findings, true closes it. */
static bool precheck(struct gpu_running *f, struct decode_launch *d, struct decode_result *r)
{
	struct decode_launch coarse = *d;
	const struct finding *const *found;

	coarse.coarse = true;
	coarse.cluster_begin = on_precheck_begin;
	coarse.cluster_end = on_precheck_end;
	decode_run(&coarse, r);
	if (!r->damaged && !check_findings(f->check, &found))
		return false;
	check_close(f->check);
	return true;
}

/* Leaves the findings to report in f->check, after up to three passes:
 *  1. the pre-check, most launches' only one;
 *  2. in the order that is decoded fastest, without clusters that are identical to another;
 *  3. if there are findings: all clusters, in the exact order of their records, as the report
 *     needs to know which access came first.
 * If it is known that the third would follow and nothing was skipped, it takes the place of the
 * second. */
static void run(struct gpu_running *f, struct check_config *config, struct decode_launch *d,
	struct decode_result *r)
{
	struct gpu_cost *cost = f->l->cost ? f->l->cost : &(struct gpu_cost){ 0 };
	/* the shadow of its check contains earlier grids, so it can be checked only once */
	const bool once = config->memory && check_memory_overlaps(config->memory, &config->launch);
	bool complete = !d->skip || f->l->chunk; /* no more records can be copied */
	struct check_config quiet = *config;

	quiet.found = NULL;
	cost->clusters = count_unskipped(&config->launch, d->skip);
	f->queued = 2 * cost->clusters <= d->jobs && d->chunks / QUEUE_CHUNKS >= cost->clusters;
	if (has_precheck(f->c, d)) {
		f->check = check_open(&quiet);
		if (!precheck(f, d, r))
			return;
		cost->again = true;
		if (d->screened && unscreen(f, config, d)) {
			complete = true;
			quiet = *config;
			quiet.found = NULL;
		}
	}
	d->exact = once || f->c->save || f->c->banks || (cost->again && complete);
	f->check = check_open(d->exact && complete ? config : &quiet);
	decode_run(d, r);
	if ((d->exact && complete) || !found_any(f->check, r))
		return;
	if (!complete) {
		d->pool = f->l->whole(f->l->user, &d->chunks);
		if (!d->pool)
			return;
		d->skip = NULL;
	}
	d->exact = true;
	cost->again = true;
	check_close(f->check);
	/* the first pass of this launch must not count as an earlier grid in the second */
	if (config->memory)
		check_memory_idle(config->memory, config->launch.queue, false);
	f->check = check_open(config);
	decode_run(d, r);
}

/* The state that launches share. NULL if it is not needed, or if records are missing: a
 * synchronization may be among them. */
static struct check_memory *memory_for(struct consan *c, const struct gpu_launch *l)
{
	bool freed = __atomic_exchange_n(&c->freed, false, __ATOMIC_ACQ_REL);

	if (freed || l->dropped || l->lost)
		check_memory_idle(c->memory, l->queue, freed);
	return l->module->code->global && !l->dropped && !l->lost ? c->memory : NULL;
}

/* If nothing was found, later launches skip clusters that are identical to those of this one.
 * If something was found, adds a note if identical clusters could not be checked. */
static void note_identical(struct consan *c, const struct gpu_running *f,
	const struct decode_launch *d, const struct decode_result *r)
{
	struct gpu_module *m = f->l->module;
	const bool found = found_any(f->check, r);
	char text[400];

	if (f->l->retired && found) {
		snprintf(text, sizeof text, "%s: %u of %u clusters were checked in detail; each of the "
			"others recorded the same as one of these, and its records were discarded while "
			"the kernel ran", f->l->kernel, count_unskipped(d->info, d->skip), cluster_whole(d->info));
		consan_remark(c, REMARK_NOTE, text);
	}
	if (!found && d->skip && f->l->ended && !f->l->dropped && !f->l->lost &&
			!r->unknown_maps && !r->moving_maps && !r->foreign)
		for (uint32_t k = 0; k < m->nsignatures; k++)
			gpu_add_clean(m, m->signature[k]);
}

static struct result_launch running_launch(const struct gpu_launch *l)
{
	struct result_launch record = { .id = l->number - 1, .kernel = (char *)l->kernel,
		.state = LAUNCH_RUNNING, .status = (char *)RESULT_RECORDED };
	uint64_t ctas = 1, many = 1;

	for (unsigned d = 0; d < 3; d++) {
		ctas *= l->grid[d];
		many *= l->cluster[d] ? l->cluster[d] : 1;
	}
	record.whole = ctas / many;
	memcpy(record.grid, l->grid, sizeof record.grid);
	memcpy(record.block, l->block, sizeof record.block);
	memcpy(record.cluster, l->cluster, sizeof record.cluster);
	return record;
}

static void note_others(struct consan *c, const struct gpu_running *f)
{
	char text[600];

	if (!f->l->beside || !check_with_others(f->check))
		return;
	snprintf(text, sizeof text, "races between threads of %s on global memory: other launches ran beside it, "
		"through which its threads may be ordered%s%s", f->l->kernel, f->l->why_alone ? ", and " : "",
		f->l->why_alone ? f->l->why_alone : "");
	consan_remark(c, REMARK_NOT_SEEN, text);
}

/* The launch that gpu_wants() has recorded will not be checked. */
static void give_up(struct consan *c, const char *kernel, uint32_t number)
{
	const struct result_launch record = { .id = number - 1, .kernel = (char *)kernel,
		.state = LAUNCH_DONE, .status = (char *)"unchecked" };

	if (number)
		results_launch(c->records, &record);
}

void gpu_running_begin(struct gpu_running *f, struct consan *c, const struct gpu_launch *l)
{
	*f = (struct gpu_running){ .c = c, .l = l, .func = rewrite_find(l->module->code, l->kernel),
		.config = { .policy = c->policy, .gluon = consan_python_has("gluon"),
			.triton = consan_python_has("triton"), .xla = consan_python_has("xla"),
			.global = l->module->code->global && !l->screened, .memory = memory_for(c, l),
			.found = session_found, .user = c, .aborted = l->fault },
		.decode = { .code = l->module->code, .sites = l->module->sites, .site = l->module->site,
			.info = &f->config.launch, .pool = l->pool, .chunks = l->chunks, .chunk = l->chunk,
			.incomplete = l->incomplete, .waited = l->waited, .tickets = l->tickets,
			.ended = l->ended, .fault = l->fault, .skip = l->skip, .screened = l->screened,
			.jobs = gpu_workers(c), .user = f, .box = on_box, .memory = on_memory,
			.cluster_begin = on_begin, .cluster_end = on_end } };
	f->decode.func = f->func;
	f->memory = f->config.memory;
	if (l->screened || !l->module->code->global) {
		f->config.memory = NULL;
		check_memory_idle(c->memory, l->queue, false); /* as the check would */
	}
	f->decode.grid_order = l->tickets && f->func->orders_grid;
	f->symbols = symbols_of(l, f->func);
	f->config.launch = describe(l, f->func, f->symbols);
	if (c->save)
		event_writer_launch(c->save, &f->config.launch);
	f->decode.shared = f->func->reserved ? 0 : shared_end(l, f->func, f->symbols);
	f->decode.shared_all = l->shared;
	l->maps->base = decode_params(l->pool);
}

void gpu_running_end(struct gpu_running *f)
{
	const struct gpu_launch *l = f->l;
	struct result_launch record = running_launch(l);
	struct consan *c = f->c;
	char why[320] = "";

	note_others(c, f);
	note_identical(c, f, &f->decode, &f->result);
	repair_place(c, l->module->ptx, f->check, UNTRIED_gpu_mode);
	explain_unchecked(l, f->func, &f->result, why);
	if (!l->ended && !l->fault)
		check_timed_out(f->check);
	session_settle(c, f->check, f->result.refused ? f->result.refused - 1 : UINT32_MAX);
	session_operation(c, l->op, f->check, f->config.launch.id, l, f->decode.screened);
	view_announce(c);
	check_close(f->check);
	if (!l->ended)
		check_memory_idle(c->memory, l->queue, false);
	if (c->save)
		event_writer_launch_end(c->save, &f->config.launch, UINT32_MAX, why);
	memcpy(record.cluster, f->config.launch.cluster, sizeof record.cluster);
	record.state = LAUNCH_DONE;
	record.status = l->ended ? "ok" : l->fault ? "fault" : "hang";
	results_launch(c->records, &record);
	c->checked++;
	session_tell_next(c);
	account(c, l, f->func, &f->result, why);
	for (size_t k = 0; k < f->func->nsymbols; k++)
		free((char *)f->symbols[k].name);
	free(f->symbols);
}

void gpu_check(struct consan *c, const struct gpu_launch *l)
{
	const struct rewrite_func *f = rewrite_find(l->module->code, l->kernel);
	struct gpu_running running;
	double start;

	if (!f) {
		give_up(c, l->kernel, l->number);
		return;
	}
	if (f->refused) {
		gpu_unchecked(c, l->kernel, l->number, l->queue, f->refused);
		return;
	}
	pthread_mutex_lock(&c->launching);
	gpu_running_begin(&running, c, l);
	start = progress_seconds();
	run(&running, &running.config, &running.decode, &running.result);
	if (l->cost)
		l->cost->check = progress_seconds() - start;
	gpu_running_end(&running);
	pthread_mutex_unlock(&c->launching);
}

static void note_module(struct consan *c, struct gpu_module *m, const struct rewrite_func *f)
{
	const uint64_t kernel = (uint64_t)(f - m->code->func.at) + 1;
	char text[600];

	if (number_set_has(&m->noted, kernel))
		return;
	number_set_add(&m->noted, kernel);
	snprintf(text, sizeof text, "accesses of %.200s to global memory are not checked, as not all of them can be "
		"recorded: %.200s", f->func->name, m->unrecorded);
	consan_remark(c, REMARK_NOTE, text);
}

static void note_all(struct consan *c)
{
	char text[300];

	snprintf(text, sizeof text, "accesses to global memory are not checked by this backend with %s; --no-global "
		"says that they need not be", c->opt.gpu_global == SWITCH_NO ? "--gpu-global=no" : c->opt.gpu_drain
		? "--gpu-drain unless --gpu-global is given" : "--bank-conflicts unless --gpu-global is given");
	if (!c->noted_unrecorded)
		consan_remark(c, REMARK_NOTE, text);
	c->noted_unrecorded = true;
}

void gpu_note_unrecorded(struct consan *c, const struct gpu_launch *l)
{
	const struct rewrite_func *f = rewrite_find(l->module->code, l->kernel);

	if (!f || f->refused || !f->unrecorded || c->opt.no_global)
		return;
	pthread_mutex_lock(&c->launching);
	if (l->module->unrecorded)
		note_module(c, l->module, f);
	else
		note_all(c);
	pthread_mutex_unlock(&c->launching);
}

void gpu_named(struct consan *c, const char *name)
{
	results_process(c->records, program_invocation_name, name);
}

uint32_t gpu_wants(struct consan *c, const char *kernel)
{
	char *demangled = demangle(kernel, NAME_FULL);
	uint32_t number = 0;

	pthread_mutex_lock(&c->launching);
	if (session_wants(c, kernel, demangled)) { /* the process may end while it runs */
		number = ++c->launches;
		results_launch(c->records, &(struct result_launch){ .id = number - 1,
			.kernel = (char *)kernel, .state = LAUNCH_RUNNING });
	}
	session_begun(c);
	pthread_mutex_unlock(&c->launching);
	free(demangled);
	return number;
}

void gpu_begins(struct consan *c, const struct gpu_launch *l)
{
	const struct result_launch record = running_launch(l);

	pthread_mutex_lock(&c->launching);
	results_launch(c->records, &record); /* in the place of gpu_wants()'s */
	pthread_mutex_unlock(&c->launching);
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

void gpu_unchecked(struct consan *c, const char *kernel, uint32_t number, uint64_t queue, const char *why)
{
	struct coverage *v;

	pthread_mutex_lock(&c->launching);
	give_up(c, kernel, number);
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

unsigned gpu_workers(const struct consan *c)
{
	long n = c->opt.jobs ? (long)c->opt.jobs : sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : (unsigned)n;
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

/* The default leaves it to options that need few clusters to be checked, and to kernels whose accesses cannot
 * all be recorded: what is not checked then is a note. What was asked for and is not checked counts as such. */
enum gpu_global gpu_global_of(const struct options *o)
{
	if (o->no_global || o->gpu_global == SWITCH_NO)
		return GPU_GLOBAL_NO;
	if (o->gpu_global == SWITCH_YES)
		return GPU_GLOBAL_YES;
	return o->gpu_drain || o->bank_conflicts ? GPU_GLOBAL_NO : GPU_GLOBAL_IF_ALL;
}

enum gpu_global gpu_global(const struct consan *c)
{
	return gpu_global_of(&c->opt);
}

bool gpu_drains(const struct consan *c)
{
	return c->opt.gpu_drain;
}

bool gpu_each(const struct consan *c)
{
	return c->opt.gpu_each || c->save || (c->banks && gpu_global(c));
}
