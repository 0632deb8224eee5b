/* gpu_replay: --gpu-then-cpu. A launch that a GPU is about to run also runs on the executor, in a forked
 * copy of the process that has the memory of the GPU at the same addresses, so that pointers in it mean
 * the same; the copy never calls the driver. What it writes stays there. */
#include "gpu_parts.h"

#include "copy.h"
#include "internal.h"
#include "repair.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What the copy reports, before its findings. */
struct outcome {
	uint64_t ctas;             /* that ran to their ends */
	bool stray;                /* it ended at an access outside of the memory that it has */
	char why[sizeof ((struct coverage *)0)->not_replayed]; /* it did not run to its end */
};

struct gpu_replay {
	pid_t pid;
	int from;                  /* a pipe */
	double until;
	uint64_t ctas;             /* of the whole grid */
	bool own_memory;           /* the executor's, which is known without a driver */
	char *kernel;
	struct consan_module *module;
};

/* ---- which launches, and which of their clusters ---- */

bool gpu_replays(const struct consan *c)
{
	return c->opt.gpu_then_cpu;
}

uint64_t gpu_replay_memory(const struct consan *c)
{
	return c->opt.gpu_then_memory << 20;
}

static uint64_t hash_of(const struct gpu_launch *l)
{
	const uint32_t word[] = { l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
		l->cluster[0], l->cluster[1], l->cluster[2], l->shared_dynamic };
	uint64_t h = 0xcbf29ce484222325u;

	for (const char *s = l->kernel; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	for (size_t k = 0; k < ARRAY_SIZE(word); k++)
		h = (h ^ word[k]) * 0x100000001b3u;
	return h | 1;
}

bool gpu_replay_wants(struct consan *c, const struct gpu_launch *l)
{
	uint64_t key, n;

	if (!c->opt.gpu_then_cpu)
		return false;
	pthread_mutex_lock(&c->launching);
	key = hash_of(l);
	n = number_map_get(&c->replayed, key) + 1;
	number_map_put(&c->replayed, key, n);
	pthread_mutex_unlock(&c->launching);
	return !c->opt.gpu_then_launches || n <= c->opt.gpu_then_launches;
}

void gpu_replay_refused(struct consan *c, const char *kernel, const char *why)
{
	struct coverage *v;

	pthread_mutex_lock(&c->launching);
	v = session_coverage(c, kernel);
	snprintf(v->not_replayed, sizeof v->not_replayed, "%.*s", (int)sizeof v->not_replayed - 1, why);
	results_coverage(c->records, v);
	pthread_mutex_unlock(&c->launching);
}

/* Pairs of neighbours, as these share what lies between them; the first and the last cluster are among
 * them. NULL: all of the n clusters run. */
static uint32_t *choose_sample(uint64_t n, uint64_t most, size_t *count)
{
	const uint64_t pairs = most / 2;
	uint32_t *id;

	*count = 0;
	if (n <= most)
		return NULL;
	id = base_alloc((most + 1) * sizeof *id);
	if (!pairs)
		id[(*count)++] = 0;
	for (uint64_t k = 0; k < pairs; k++) {
		const uint64_t first = pairs > 1 ? k * (n - 2) / (pairs - 1) : 0;

		id[(*count)++] = (uint32_t)first;
		id[(*count)++] = (uint32_t)first + 1;
	}
	return id;
}

/* ---- in the copy of the process ---- */

static int by_address(const void *a, const void *b)
{
	const struct gpu_region *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

#define PAGE 4096u

static bool is_mapped(uint64_t page)
{
	return !msync((void *)(uintptr_t)page, PAGE, MS_ASYNC);
}

/* Pages of the region that hold nothing else get memory of this process. Those at the ends of pinned
 * memory may hold other memory of the program, and are there; addresses of device memory belong to the
 * driver, and more than one allocation may lie in a page, the first of which maps it. */
static bool map_region(const struct gpu_region *r, uint64_t *mapped)
{
	uint64_t from = r->at & -(uint64_t)PAGE, to = (r->at + r->bytes + PAGE - 1) & -(uint64_t)PAGE;

	if (r->host && from < r->at && is_mapped(from))
		from += PAGE;
	if (r->host && to > r->at + r->bytes && is_mapped(to - PAGE))
		to -= PAGE;
	if (from < *mapped)
		from = *mapped;
	if (from >= to)
		return true;
	*mapped = to;
	return mmap((void *)(uintptr_t)from, to - from, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* First of all: the copy's own memory may not be placed where a region belongs, at addresses that fork()
 * left free. `region` is in order. */
static bool map_regions(const struct gpu_region *region, size_t n)
{
	uint64_t mapped = 0;

	for (size_t k = 0; k < n; k++)
		if (!map_region(&region[k], &mapped))
			return false;
	for (size_t k = 0; k < n; k++)
		memcpy((void *)(uintptr_t)region[k].at, region[k].copy, region[k].bytes);
	for (size_t k = 0; k < n; k++)
		exec_mem_add((void *)(uintptr_t)region[k].at, region[k].bytes,
			region[k].host ? MEM_HOST : MEM_DEVICE, false);
	return true;
}

static void explain(const struct exec_result *r, const struct consan *c, uint64_t clusters,
	struct outcome *out)
{
	switch (r->status) {
	case EXEC_TIMEOUT:
		snprintf(out->why, sizeof out->why, "stopped after %g seconds (--gpu-then-seconds): %llu of %llu "
			"clusters ended", c->partial->seconds, (unsigned long long)r->clusters,
			(unsigned long long)clusters);
		break;
	case EXEC_STOPPED:
		snprintf(out->why, sizeof out->why, "%s", !r->waits ? "stopped" : c->partial->sample
			? "waits for CTAs outside the sample (--gpu-then-ctas=0 replays all)"
			: "waits for memory that other work of the program writes");
		break;
	case EXEC_UNSUPPORTED:
	case EXEC_BAD_LAUNCH:
		snprintf(out->why, sizeof out->why, "%.*s", (int)sizeof out->why - 1, r->err.text);
		break;
	default:
		break;
	}
}

/* A launch in the copy. */
struct copied {
	struct consan *c;
	const struct gpu_launch *g;
	struct consan_launch l;
	struct session_part part;
	uint64_t clusters;         /* that run */
};

/* The place of an edit is a site that the copy has made. The process knows the instruction by another,
 * as its code was loaded before the fork. */
static uint32_t known_site(uint32_t site, uint32_t known)
{
	const struct site *own = site_get(site), *s;

	for (uint32_t k = site < known ? site : 1; k < known; k++) {
		s = site_get(k);
		if (k == site || (s->ptx_line == own->ptx_line && s->ptx_col == own->ptx_col
				&& !strcmp(s->module, own->module) && !strcmp(s->kernel, own->kernel)))
			return k;
	}
	return 0;
}

static void use_known_sites(struct finding_edit *e, uint32_t known)
{
	if (e->kind == EDIT_NONE)
		return;
	e->site = known_site(e->site, known);
	e->until = e->until ? known_site(e->until, known) : 0;
	if (!e->site)
		e->kind = EDIT_NONE;
}

/* The findings, which stay until the copy ends; other: of another schedule. */
static const struct finding *const *take_findings(struct check *check, const struct explored *other,
	uint32_t known, size_t *n)
{
	const struct finding *const *found, **out;
	size_t own = check_findings(check, &found);
	struct finding *copy;

	copy = base_alloc((own + other->finding.n + 1) * sizeof *copy);
	out = base_alloc((own + other->finding.n + 1) * sizeof *out);
	*n = 0;
	for (size_t k = 0; k < own + other->finding.n; k++) {
		const struct finding *f = k < own ? found[k] : &other->finding.at[k - own];
		bool again = false;

		for (size_t i = 0; i < *n && !again; i++)
			again = finding_same(&copy[i], f);
		if (again)
			continue;
		copy[*n] = *f;
		use_known_sites(&copy[*n].edit, known);
		use_known_sites(&copy[*n].also, known);
		out[*n] = &copy[*n];
		(*n)++;
	}
	return out;
}

static const struct finding *const *run_copy(struct copied *x, struct outcome *out, size_t *n)
{
	struct consan *c = x->c;
	struct check_config config = { .policy = c->policy, .gluon = consan_python_has("gluon"),
		.triton = consan_python_has("triton"), .xla = consan_python_has("xla"),
		.user = c, .global = !c->opt.no_global, .where = session_allocation };
	const uint32_t known = site_count();
	struct explored other = { 0 };
	struct exec_result r = { 0 };
	struct check *check;

	session_silence(c, &config);
	c->alone = true;
	c->control = NULL;
	c->partial = &x->part;
	config.launch = session_describe(c, &x->l, x->g->number);
	if (!x->part.partial && c->opt.explore)
		session_explore(c, &x->l, x->g->params, &config, &other);
	else if (!x->part.partial)
		session_reverse(c, &x->l, x->g->params, &config, &other);
	check = check_open(&config);
	session_run(c, &x->l, x->g->params, &config.launch, check, NULL, NULL, &r);
	if (r.status == EXEC_TIMEOUT && !x->part.limited)
		check_timed_out(check);
	else
		explain(&r, c, x->clusters, out);
	out->ctas = r.ctas;
	out->stray = r.status == EXEC_FAULT && r.fault == FAULT_GLOBAL_OOB;
	check_truncate(check, session_last(&r));
	repair_place(c, x->l.kernel->module->ptx, check, UNTRIED_gpu_mode);
	return take_findings(check, &other, known, n);
}

static _Noreturn void copy_main(struct copied *x, const struct gpu_region *region, size_t n, int to)
{
	struct outcome out = { 0 };
	const struct finding *const *found = NULL;
	size_t count = 0;

	if (!map_regions(region, n))
		snprintf(out.why, sizeof out.why, "its memory cannot be mapped");
	else
		found = run_copy(x, &out, &count);
	_exit(!copy_put(to, &out, sizeof out) || !explore_put(to, found, count));
}

/* ---- in the process ---- */

/* The program's own code, with the variables where the launch will find them. */
static struct consan_module *load(struct consan *c, const struct gpu_launch *g, const struct gpu_input *in,
	struct consan_err *e)
{
	const struct ptx_module *own = g->module->ptx;
	const struct exec_places places = { in->user, in->global };
	struct ptx_module *ptx = ptx_parse(own->name, own->text, own->ntext, e);
	struct exec_module *exec = ptx ? exec_load_at(ptx, &places, e) : NULL;
	const char *name;
	uint64_t bytes, most;
	const void *from;
	void *at;

	if (!exec)
		return NULL;
	if (in->nregs)
		exec_set_registers(exec, g->kernel, in->nregs);
	for (size_t k = 0; (name = gpu_module_const(g->module, k)); k++)
		if (exec_symbol(exec, name, &at, &most) && (from = in->constant(in->user, name, &bytes)))
			memcpy(at, from, bytes < most ? bytes : most);
	return session_module(c, ptx, exec, 0);
}

static struct gpu_replay *refuse(struct consan *c, const char *kernel, const char *why)
{
	gpu_replay_refused(c, kernel, why);
	return NULL;
}

static void describe(struct copied *x, const struct gpu_input *in)
{
	const struct gpu_launch *g = x->g;

	x->l.shared_dynamic = g->shared_dynamic;
	x->l.cooperative = in->cooperative;
	x->l.queue = g->queue;
	x->l.programmatic = g->programmatic;
	memcpy(x->l.grid, g->grid, sizeof x->l.grid);
	memcpy(x->l.block, g->block, sizeof x->l.block);
	if (g->clustered)
		memcpy(x->l.cluster, g->cluster, sizeof x->l.cluster);
}

/* --timeout makes a launch that takes so long a hang, our own limit does not. */
static void set_limit(const struct consan *c, struct session_part *part)
{
	const double own = c->opt.gpu_then_seconds, hang = c->opt.timeout;

	part->limited = !hang || (own && own < hang);
	part->seconds = part->limited ? own : hang;
}

struct gpu_replay *gpu_replay_open(struct consan *c, const struct gpu_launch *g, const struct gpu_input *in)
{
	const uint64_t per = (uint64_t)g->cluster[0] * g->cluster[1] * g->cluster[2];
	const uint64_t ctas = (uint64_t)g->grid[0] * g->grid[1] * g->grid[2];
	const uint64_t most = c->opt.gpu_then_ctas ? c->opt.gpu_then_ctas : ctas;
	struct copied x = { .c = c, .g = g };
	struct gpu_region *region;
	struct gpu_replay *r;
	struct consan_err e = { 0 };
	struct consan_module *m;
	uint32_t *sample;
	int fd[2];

	if (in->own_memory && explore_shares_memory())
		return refuse(c, g->kernel, "kernels can access memory that is shared with other processes");
	m = load(c, g, in, &e);
	x.l.kernel = m ? consan_kernel(m, g->kernel, &e) : NULL;
	if (!x.l.kernel || pipe2(fd, O_CLOEXEC)) {
		consan_unload(m);
		return refuse(c, g->kernel, x.l.kernel ? "no pipe to a copy of the process" : e.text);
	}
	describe(&x, in);
	region = base_alloc((in->nregions + 1) * sizeof *region);
	if (in->nregions)
		memcpy(region, in->region, in->nregions * sizeof *region);
	qsort(region, in->nregions, sizeof *region, by_address);
	sample = choose_sample(ctas / per, most / per ? most / per : 1, &x.part.n);
	x.part.sample = sample;
	x.part.partial = sample || !in->alone;
	set_limit(c, &x.part);
	x.clusters = sample ? x.part.n : ctas / per;
	r = base_alloc(sizeof *r);
	*r = (struct gpu_replay){ .from = fd[0], .ctas = ctas, .module = m, .kernel = base_strdup(g->kernel),
		.own_memory = in->own_memory,
		.until = x.part.seconds > 0
			? copy_patience(x.part.seconds * (double)(c->opt.explore + 2)) : 0 };
	pthread_mutex_lock(&c->launching);
	r->pid = copy_fork();
	if (!r->pid) {
		c->gpu = c->gpu ? c->gpu : exec_device_for(in->sm);
		close(fd[0]);
		copy_main(&x, region, in->nregions, fd[1]);
	}
	pthread_mutex_unlock(&c->launching);
	close(fd[1]);
	free(region);
	free(sample);
	return r;
}

/* The copy ended at an access outside of the memory that was copied: certainly outside of all memory, or
 * perhaps in some that nothing points to. The finding goes unless it is certain. */
static void judge_stray(const struct gpu_launch *l, struct explored *x, struct outcome *out)
{
	size_t n = 0;

	for (size_t k = 0; k < x->finding.n; k++) {
		struct finding *f = &x->finding.at[k];
		const uint64_t addr = f->side[0].addr;
		uint64_t from = 0, bytes = 0;
		const bool fault = f->rule == rule_by_code("CS903");

		if (!fault || (l->memory && l->memory(l->user, addr, &from, &bytes) && addr - from >= bytes)) {
			x->finding.at[n++] = *f;
			continue;
		}
		snprintf(out->why, sizeof out->why, "ended at address 0x%llx, in memory that was not copied, as "
			"no parameter, variable or copied memory points to it", (unsigned long long)addr);
		finding_free(f);
	}
	x->finding.n = n;
}

static void account(struct consan *c, const struct gpu_replay *r, const struct outcome *out)
{
	struct coverage *v = session_coverage(c, r->kernel);

	v->replayed++;
	v->replay_ctas += r->ctas;
	v->replayed_ctas += out->ctas;
	if (*out->why)
		snprintf(v->not_replayed, sizeof v->not_replayed, "%s", out->why);
	results_coverage(c->records, v);
}

bool gpu_replay_ended(const struct gpu_replay *r)
{
	struct pollfd from = { .fd = r->from, .events = POLLIN };

	return r->pid <= 0 || poll(&from, 1, 0) > 0;
}

void gpu_replay_end(struct consan *c, struct gpu_replay *r, const struct gpu_launch *l)
{
	struct explored found = { 0 };
	struct outcome out = { 0 };
	bool ended;

	if (!r)
		return;
	ended = r->pid > 0 && copy_get(r->from, &out, sizeof out, r->until) && explore_get(r->from, &found);
	close(r->from);
	if (r->pid > 0) {
		kill(r->pid, SIGKILL);
		copy_reap(r->pid);
	}
	if (!ended)
		snprintf(out.why, sizeof out.why, r->pid > 0 ? "the copy of the process ended early"
			: "the process could not be copied");
	if (out.stray && !r->own_memory)
		judge_stray(l, &found, &out);
	pthread_mutex_lock(&c->launching);
	session_take_replayed(c, &found);
	account(c, r, &out);
	view_announce(c);
	pthread_mutex_unlock(&c->launching);
	explored_free(&found);
	consan_unload(r->module);
	free(r->kernel);
	free(r);
}
