/* session: the public functions other than the launch: sessions, the emulated device, its
 * memory, modules and kernels. */
#include "internal.h"

#include "libconsan/base/base.h"
#include "libconsan/finding/finding.h"
#include "gpu.h"
#include "instrument/rewrite/rewrite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the session ---- */

/* '-' in the word matches '_', too. */
static bool same_knob(const char *id, const char *word, size_t n)
{
	for (; n && (*id == *word || (*id == '_' && *word == '-')); n--, word++)
		id++;
	return !n && !*id;
}

static bool set_knob(struct check_policy *p, const char *word, struct consan_err *e)
{
	size_t n = strcspn(word, "=");
	unsigned long value = word[n] ? strtoul(word + n + 1, NULL, 0) : 256;
	char name[64];
	struct similar near = { .word = name };

	snprintf(name, sizeof name, "%.*s", (int)n, word);
	if (value > 255)
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--knob=%s: the value is 0 to 255", word);
#define KNOB(id, deflt, strict, rules, doc) \
	if (same_knob(#id, word, n)) { \
		p->id = (uint8_t)value; \
		return true; \
	} \
	similar_try(&near, #id);
#include "libconsan/check/policy.def"
#undef KNOB
	return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--knob=%s: there is no such knob%s%s%s "
		"(`consan explain knobs' lists them)", word, near.best ? "; did you mean " : "",
		near.best ? near.best : "", near.best ? "?" : "");
}

bool session_policy(const struct options *o, struct check_policy *p, struct consan_err *e)
{
	if (o->strict)
		check_policy_strict(p);
	else
		check_policy_default(p);
	for (size_t i = 0; i < o->knob.n; i++)
		if (!set_knob(p, o->knob.at[i], e))
			return false;
	return true;
}

/* An architecture that is not in the table would silently be another one. */
static bool check_arch(const char *arch, struct consan_err *e)
{
	unsigned sm, k = 0;
	struct text known = { 0 };
	const struct exec_device *d;
	char suffix;

	if (!*arch || !options_arch(arch, &sm, &suffix) || exec_device_for(sm)->sm == sm)
		return true;
	while ((d = exec_device_at(k++)))
		text_printf(&known, "%ssm_%u", known.n ? ", " : "", d->sm);
	err_set(e, CONSAN_ERR_OPTION, 0, 0, "--arch=%s: can be one of %s", arch, known.at);
	text_free(&known);
	return false;
}

bool consan_check_options(const struct options *o, struct consan_err *e)
{
	struct check_policy policy;
	struct schedule schedule;
	struct results r = { 0 };
	bool ok = options_agree(o, e) && check_arch(o->arch, e) && session_policy(o, &policy, e);

	if (ok && (!o->devices || o->devices > EXEC_DEVICES))
		ok = err_set(e, CONSAN_ERR_OPTION, 0, 0, "--devices=%llu: can be 1 to %u",
			(unsigned long long)o->devices, EXEC_DEVICES);
	if (ok && !strncmp(o->shard, "auto", 4))
		ok = err_set(e, CONSAN_ERR_OPTION, 0, 0, "--shard=%s: only consan-run finds the launcher",
			o->shard);
	if (ok && *o->schedule && !schedule_parse(o->schedule, &schedule))
		ok = err_set(e, CONSAN_ERR_OPTION, 0, 0, "--schedule=%s: expected LAUNCH:STEP@WARP,... "
			"or LAUNCH:reverse", o->schedule);
	for (size_t i = 0; ok && i < o->suppressions.n; i++)
		ok = suppress_read(&r, o->suppressions.at[i], e);
	results_free(&r);
	return ok;
}

const char *consan_version(void)
{
	return CONSAN_VERSION;
}

struct consan *consan_open(const char *words, struct consan_err *e)
{
	struct consan *c = base_alloc(sizeof *c);
	char *path;
	bool ok;

	options_init(&c->opt);
	c->memory = check_memory_open();
	pthread_mutex_init(&c->using, NULL);
	pthread_mutex_init(&c->launching, NULL);
	pthread_mutex_init(&c->showing, NULL);
	pthread_mutex_init(&c->lock, NULL);
	ok = options_parse(&c->opt, words, e) && consan_check_options(&c->opt, e)
		&& session_policy(&c->opt, &c->policy, e);
	if (ok && *c->opt.schedule)
		schedule_parse(c->opt.schedule, &c->schedule);
	for (size_t i = 0; ok && i < c->opt.suppressions.n; i++)
		ok = suppress_read(&c->suppressions, c->opt.suppressions.at[i], e);
	c->part = c->parts = 1;
	if (options_shards_schedules(&c->opt))
		options_shard(c->opt.shard, &c->part, &c->parts);
	else
		options_shard(c->opt.shard, &c->shard, &c->shards);
	if (c->opt.library_path.n)
		site_libraries(c->opt.library_path.at, c->opt.library_path.n);
	c->recorders = recorders_open((uint32_t)c->opt.history);
	if (c->opt.bank_conflicts)
		c->banks = banks_open();
	if (ok && *c->opt.save) {
		path = options_path(c->opt.save, getpid());
		c->save = event_writer_open(path, e);
		ok = c->save != NULL;
		free(path);
	}
	if (ok && (c->opt.backend == OPT_BACKEND_GPU || c->opt.backend == OPT_BACKEND_GPU_EMULATED))
		pool_open(gpu_workers(c) - 1);
	if (ok)
		return c;
	consan_close(c);
	return NULL;
}

bool consan_record_to(struct consan *c, const char *path, struct consan_err *e)
{
	struct results_writer *w = NULL;

	if (path) {
		w = results_create(path, e);
		if (!w) {
			results_lose(path, e->text);
			return false;
		}
		results_process(w, program_invocation_name, c->gpu ? c->gpu->name : "");
		if (consan_python_unprepared())
			results_remark(w, RESULT_REMARK_note, "Python was started without consan's part for it (python "
				"-I, -E or -S, or another PYTHONPATH): call stacks of Python and the setting up of "
				"frameworks are missing");
	}
	pthread_mutex_lock(&c->lock);
	results_close(c->records);
	c->records = w;
	session_tell_next(c);
	pthread_mutex_unlock(&c->lock);
	return true;
}

void consan_record_failure(const char *path, const char *why)
{
	struct results_writer *w = results_create(path, NULL);

	if (!w)
		results_lose(path, why);
	results_process(w, program_invocation_name, "");
	results_remark(w, RESULT_REMARK_not_seen, why);
	results_close(w);
}

void consan_progress_to(struct consan *c, const char *path)
{
	pthread_mutex_lock(&c->launching);
	progress_close(c->progress);
	c->progress = progress_open(path);
	pthread_mutex_unlock(&c->launching);
}

void consan_close(struct consan *c)
{
	struct consan_err e = { 0 };

	if (!c)
		return;
	if (c->save && !event_writer_close(c->save, &e))
		consan_remark(c, REMARK_NOTE, e.text);
	session_end_calls(c);
	for (size_t i = 0; i < c->findings.n; i++)
		if (c->findings.at[i]->recorded != c->findings.at[i]->f.seen)
			session_record_finding(c, i);
	session_record_banks(c);
	results_close(c->records);
	for (size_t i = 0; i < c->findings.n; i++) {
		finding_free(&c->findings.at[i]->f);
		free(c->findings.at[i]);
	}
	results_free(&c->suppressions);
	vec_free(&c->findings);
	number_map_free(&c->identity);
	number_map_free(&c->bug);
	number_map_free(&c->replayed);
	vec_free(&c->sorted);
	vec_free(&c->reversed);
	vec_free(&c->prepared);
	vec_free(&c->coverage);
	vec_free(&c->views);
	vec_free(&c->coverage_views);
	arena_free(&c->shown);
	arena_free(&c->covered);
	check_memory_close(c->memory);
	session_launches_end(c);
	vec_free(&c->launched);
	vec_free(&c->together.kept);
	met_close(c);
	host_close(c);
	order_close(c->order);
	banks_close(c->banks);
	recorders_close(c->recorders);
	progress_close(c->progress);
	options_free(&c->opt);
	vec_free(&c->dead);
	vec_free(&c->unloaded);
	pthread_mutex_destroy(&c->using);
	pthread_mutex_destroy(&c->launching);
	pthread_mutex_destroy(&c->showing);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void consan_remark(struct consan *c, enum consan_remark kind, const char *text)
{
	static const enum result_remark_kind to[] = {
		[REMARK_CALL_UNSUPPORTED] = RESULT_REMARK_call_unsupported,
		[REMARK_NO_PTX] = RESULT_REMARK_no_ptx,
		[REMARK_BAD_MODULE] = RESULT_REMARK_bad_module,
		[REMARK_NOTE] = RESULT_REMARK_note,
		[REMARK_FALLBACK_INVARIANT] = RESULT_REMARK_fallback_invariant,
		[REMARK_FALLBACK_NOT_INVARIANT] = RESULT_REMARK_fallback_not_invariant,
		[REMARK_FALLBACK_NOT_TRIED] = RESULT_REMARK_fallback_not_tried,
		[REMARK_NOT_LOADED] = RESULT_REMARK_not_loaded,
		[REMARK_NOT_SEEN] = RESULT_REMARK_not_seen,
	};

	results_remark(c->records, to[kind], text);
}

/* ---- the device ---- */

void consan_arch_hint(struct consan *c, unsigned sm, char suffix)
{
	pthread_mutex_lock(&c->lock);
	if (!c->gpu && (sm > c->hint_sm || (sm == c->hint_sm && suffix > c->hint_suffix))) {
		c->hint_sm = sm;
		c->hint_suffix = suffix;
	}
	pthread_mutex_unlock(&c->lock);
}

const struct consan_device *consan_device(struct consan *c)
{
	const struct exec_device *g;
	unsigned sm;
	char suffix;

	pthread_mutex_lock(&c->lock);
	if (!c->gpu) {
		if (!*c->opt.arch || !options_arch(c->opt.arch, &sm, &suffix))
			sm = c->hint_sm ? c->hint_sm : 90;
		g = c->gpu = exec_device_for(sm);
		c->device = (struct consan_device){
			.sm = g->sm, .suffix = g->suffix, .name = g->name,
			.sm_count = g->sm_count, .max_threads_per_sm = g->max_threads_per_sm,
			.max_ctas_per_sm = g->max_ctas_per_sm, .regs_per_sm = g->regs_per_sm,
			.shared_per_sm = g->shared_per_sm,
			.shared_per_cta_optin = g->shared_per_cta_optin,
			.max_cluster = g->max_cluster,
		};
		results_process(c->records, program_invocation_name, g->name);
	}
	pthread_mutex_unlock(&c->lock);
	return &c->device;
}

/* ---- memory ---- */

void *consan_malloc(struct consan *c, uint64_t bytes, enum consan_mem kind)
{
	return consan_malloc_on(c, bytes, kind, 0, NULL);
}

bool consan_free(struct consan *c, void *at)
{
	if (!exec_mem_remove(at))
		return false;
	__atomic_store_n(&c->freed, true, __ATOMIC_RELEASE);
	pthread_mutex_lock(&c->using);
	if (c->running)
		vec_push(&c->dead, at);
	else
		free(at);
	pthread_mutex_unlock(&c->using);
	return true;
}

void consan_mem_register(struct consan *c, void *at, uint64_t bytes)
{
	(void)c;
	exec_mem_add(at, bytes, MEM_HOST, false);
}

bool consan_mem_unregister(struct consan *c, void *at)
{
	(void)c;
	return exec_mem_remove(at);
}

bool consan_mem_find(struct consan *c, const void *at, void **base, uint64_t *bytes,
	enum consan_mem *kind)
{
	struct exec_mem m;

	(void)c;
	if (!exec_mem_find((uint64_t)(uintptr_t)at, &m))
		return false;
	*base = (void *)(uintptr_t)m.at;
	*bytes = m.bytes;
	*kind = m.kind == MEM_HOST ? CONSAN_MEM_HOST
		: m.kind == MEM_MANAGED ? CONSAN_MEM_MANAGED : CONSAN_MEM_DEVICE;
	return true;
}

/* ---- tensor maps ---- */

bool consan_tensormap_sized(const struct consan_tensormap_args *given, size_t size, void *map,
	struct consan_err *e)
{
	struct consan_tensormap_args a;

	return session_take_struct(&a, sizeof a, given, size, e) && exec_tensormap(&a, map, e);
}

bool consan_tensormap_address(void *map, uint64_t address, struct consan_err *e)
{
	return exec_tensormap_address(map, address, e);
}

/* ---- modules and kernels ---- */

/* --dump-ptx: writes the PTX as the program has it. That the disk is full is no reason for the program to
 * fail. */
static void dump_ptx(struct consan *c, const char *text, size_t n)
{
	char *dir = options_path(c->opt.dump_ptx, getpid());
	struct text path = { 0 };
	struct size_limit held;
	bool ok;
	FILE *f;

	while (n && !text[n - 1])
		n--;
	pthread_mutex_lock(&c->lock);
	text_printf(&path, "%s/%u.ptx", dir, c->dumped++);
	pthread_mutex_unlock(&c->lock);
	f = mkdir(dir, 0777) && errno != EEXIST ? NULL : fopen(path.at, "we");
	size_limit_begin(&held);
	ok = f && fwrite(text, 1, n, f) == n;
	ok = f && !fclose(f) && ok;
	size_limit_end(&held);
	if (!ok) {
		struct text remark = { 0 };

		text_printf(&remark, "--dump-ptx: %s: not written: %s", path.at, strerror(errno));
		consan_remark(c, REMARK_NOTE, remark.at);
		text_free(&remark);
		unlink(path.at); /* a part of it */
	}
	text_free(&path);
	free(dir);
}

/* The first kernel of own that is not in other, which may be NULL. NULL: all are in it. */
static const char *missing_kernel(const struct ptx_module *other, const struct ptx_module *own)
{
	for (size_t i = 0; i < own->nfunc; i++) {
		const struct ptx_func *f = &own->func[i], *g;

		if (!f->entry || !f->ninsn)
			continue;
		g = other ? ptx_find(other, f->name) : NULL;
		if (!g || !g->entry || !g->ninsn)
			return f->name;
	}
	return NULL;
}

/* --replace-ptx: the module to load in place of own, which is freed if it is not used. NULL:
 * the file cannot be read or parsed. again: for another device. */
static struct ptx_module *replace_ptx(struct consan *c, struct ptx_module *own, bool again,
	struct consan_err *e)
{
	const char *path = c->opt.replace_ptx, *missing;
	struct text text = { 0 }, remark = { 0 };
	struct ptx_module *other = NULL;

	if (text_read(&text, path, e))
		other = ptx_parse(path, text.at ? text.at : "", text.n, e);
	text_free(&text);
	if (!other) {
		e->line = e->col = 0; /* they refer to the file of --replace-ptx, as e->text says */
		ptx_free(own);
		return NULL;
	}
	missing = missing_kernel(other, own);
	if (missing)
		text_printf(&remark, "%s: not replaced by %s, which lacks kernel %s", own->name,
			path, missing);
	else
		text_printf(&remark, "%s: replaced by %s", own->name, path);
	if (!again)
		consan_remark(c, REMARK_NOTE, remark.at);
	text_free(&remark);
	ptx_free(missing ? other : own);
	return missing ? own : other;
}

/* --backend=gpu-emulated: instruments the module, and frees own, or returns it and *slices. */
static struct ptx_module *instrumented(struct consan *c, struct ptx_module *own,
	struct gpu_module **gpu, struct slices **slices, struct consan_err *e)
{
	struct ptx_module *ptx = NULL;
	const char *text;
	size_t n;

	if (!slice_refuses(own->text)) {
		*slices = slices_open(own->text, own->ntext);
		return own;
	}
	*gpu = gpu_module_open(own->name, own->text, own->ntext, true, gpu_global(c),
		gpu_drains(c), e);
	if (*gpu) {
		text = gpu_module_text(*gpu, &n);
		ptx = ptx_parse(own->name, text, n, e);
	}
	ptx_free(own);
	return ptx;
}

struct consan_module *session_module(struct consan *c, struct ptx_module *ptx, struct exec_module *exec,
	unsigned device)
{
	struct consan_module *m = base_alloc(sizeof *m);

	m->c = c;
	m->ptx = ptx;
	m->exec = exec;
	m->device = device;
	return m;
}

struct consan_module *consan_load_ptx_on(struct consan *c, const char *name, const char *text, size_t n,
	unsigned device, const struct consan_module *other, struct consan_err *e)
{
	struct exec_module *exec = NULL;
	struct ptx_module *ptx = NULL;
	struct gpu_module *gpu = NULL;
	struct slices *slices = NULL;
	struct consan_module *m;

	if (*c->opt.dump_ptx && !other)
		dump_ptx(c, text, n);
	ptx = ptx_parse(name, text, n, e);
	if (ptx && *c->opt.replace_ptx && missing_kernel(NULL, ptx))
		ptx = replace_ptx(c, ptx, other != NULL, e);
	if (ptx)
		consan_arch_hint(c, ptx->sm, ptx->sm_suffix);
	if (ptx && c->opt.backend == OPT_BACKEND_GPU_EMULATED)
		ptx = instrumented(c, ptx, &gpu, &slices, e);
	if (ptx)
		exec = exec_load_on(ptx, device, other ? other->exec : NULL, e);
	if (!exec) {
		gpu_module_close(gpu);
		slices_close(slices);
		return NULL;
	}
	m = session_module(c, ptx, exec, device);
	m->gpu = gpu;
	m->slices = slices;
	return m;
}

struct consan_module *consan_load_ptx(struct consan *c, const char *name, const char *text, size_t n,
	struct consan_err *e)
{
	return consan_load_ptx_on(c, name, text, n, 0, NULL, e);
}

static void unload(struct consan_module *m)
{
	struct consan_kernel *k, *next;

	for (k = m->kernels; k; k = next) {
		next = k->next;
		for (size_t i = 0; i < k->info.nsymbols; i++)
			free((char *)k->symbols[i].name);
		free(k->symbols);
		free(k->demangled);
		if (k->gpu_exec)
			exec_unload(k->gpu_exec);
		gpu_module_close(k->gpu);
		free(k);
	}
	exec_unload(m->exec);
	gpu_module_close(m->gpu);
	slices_close(m->slices);
	free(m);
}

void consan_unload(struct consan_module *m)
{
	struct consan *c = m ? m->c : NULL;

	if (!m)
		return;
	pthread_mutex_lock(&c->using);
	if (c->running)
		vec_push(&c->unloaded, m);
	else
		unload(m);
	pthread_mutex_unlock(&c->using);
}

void session_uses(struct consan *c)
{
	pthread_mutex_lock(&c->using);
	c->running++;
	pthread_mutex_unlock(&c->using);
}

void session_used(struct consan *c)
{
	pthread_mutex_lock(&c->using);
	if (!--c->running) {
		while (c->dead.n)
			free(c->dead.at[--c->dead.n]);
		while (c->unloaded.n)
			unload(c->unloaded.at[--c->unloaded.n]);
	}
	pthread_mutex_unlock(&c->using);
}

bool consan_symbol(struct consan_module *m, const char *name, void **at, uint64_t *bytes)
{
	return exec_symbol(m->exec, name, at, bytes);
}

static void name_symbols(struct consan_kernel *k)
{
	k->symbols = base_alloc(k->info.nsymbols * sizeof *k->symbols);
	for (size_t i = 0; i < k->info.nsymbols; i++) {
		k->symbols[i] = k->info.symbols[i];
		k->symbols[i].name = demangle_variable(k->info.symbols[i].name);
	}
}

const struct consan_kernel *consan_kernel(struct consan_module *m, const char *name,
	struct consan_err *e)
{
	struct consan_kernel *k;
	const struct exec_kernel *exec;

	pthread_mutex_lock(&m->c->lock);
	for (k = m->kernels; k && strcmp(k->info.name, name); k = k->next)
		;
	exec = k ? NULL : exec_kernel(m->exec, name, e);
	if (exec) {
		k = base_alloc(sizeof *k);
		k->module = m;
		k->exec = exec;
		exec_kernel_info(exec, &k->info);
		k->demangled = demangle(k->info.name, NAME_FULL);
		name_symbols(k);
		k->next = m->kernels;
		m->kernels = k;
	}
	pthread_mutex_unlock(&m->c->lock);
	return k;
}

const char *consan_kernel_name(struct consan_module *m, size_t k)
{
	for (size_t i = 0; i < m->ptx->nfunc; i++) {
		const struct ptx_func *f = &m->ptx->func[i];

		if (f->entry && f->ninsn && k-- == 0)
			return f->name;
	}
	return NULL;
}

void consan_kernel_info_sized(const struct consan_kernel *k, struct consan_kernel_info *out, size_t size)
{
	const struct exec_kernel_info *i = &k->info;
	struct consan_kernel_info all = {
		.name = i->name, .nparams = i->func->nparam,
		.param_bytes = i->param_bytes, .shared_static = i->shared_static,
		.local_bytes = i->local_bytes, .const_bytes = i->const_bytes,
		.nregs = i->nregs, .max_threads = i->max_threads,
		.sm = k->module->ptx->sm, .unsupported = i->nunsupported > 0,
		.launches_grids = i->launches_grids, .launches_graphs = i->launches_graphs,
	};
	memcpy(all.reqcluster, i->func->reqnctapercluster, sizeof all.reqcluster);
	memset(out, 0, size);
	memcpy(out, &all, size < sizeof all ? size : sizeof all);
}

bool consan_kernel_param(const struct consan_kernel *k, size_t i, uint32_t *offset,
	uint32_t *bytes)
{
	if (i >= k->info.func->nparam)
		return false;
	*offset = (uint32_t)k->info.func->param[i].offset;
	*bytes = (uint32_t)k->info.func->param[i].size;
	return true;
}

unsigned consan_occupancy(const struct consan_kernel *k, uint32_t threads,
	uint32_t shared_dynamic)
{
	consan_device(k->module->c);
	return exec_occupancy(k->module->c->gpu, k->exec, threads, shared_dynamic);
}

static void no_print(void *user, const char *text, size_t n)
{
	(void)user;
	(void)text;
	(void)n;
}

static void no_found(void *user, const struct finding *f)
{
	(void)user;
	(void)f;
}

void session_mute(struct consan *c)
{
	c->save = NULL;
	c->banks = NULL;
	c->records = NULL;
	c->print = no_print;
}

void session_silence(struct consan *c, struct check_config *config)
{
	c->copy = true;
	session_mute(c);
	config->found = no_found;
}
