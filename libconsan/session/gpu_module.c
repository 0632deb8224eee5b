/* gpu_module: an instrumented module, and which clusters of its launches are identical to each
 * other or to clean ones of earlier launches. */
#include "gpu_parts.h"

#include "instrument/decode/decode.h"

#include "gpu_maps.h"
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_sites(struct gpu_module *m)
{
	const struct rewrite *r = m->code;
	const struct ptx_insn *last = NULL;

	m->site = base_alloc((r->site.n + r->batch.n + r->reg_use.n + 1) * sizeof *m->site);
	for (size_t k = 1; k < r->site.n; k++) {
		const struct rewrite_site *s = &r->site.at[k];

		m->site[k] = s->insn == last ? m->site[k - 1] : ptx_site_add(s->func, s->insn);
		last = s->insn;
		for (uint32_t b = 0; b < s->nbatch; b++)
			m->site[r->site.n + s->batch + b] =
				ptx_site_add(s->func, r->batch.at[s->batch + b]);
	}
	for (size_t k = 0; k < r->reg_use.n; k++)
		m->site[r->site.n + r->batch.n + k] =
			ptx_site_add(r->reg_use.at[k].func, r->reg_use.at[k].insn);
}

/* NULL: all accesses to global memory are recorded. */
static char *lacks_global(const struct rewrite *r)
{
	if (r->site.n >= RECORD_SITES)
		return base_strdup("it has more recording sites with them than can be numbered");
	for (size_t k = 0; k < r->func.n; k++)
		if (r->func.at[k].refused_global)
			return base_strdup(r->func.at[k].refused);
	return NULL;
}

static void rewrite_with(struct gpu_module *m, const struct rewrite_options *given, enum gpu_global global)
{
	struct rewrite_options o = *given;

	o.global = global != GPU_GLOBAL_NO;
	m->code = rewrite_module(m->ptx, &o);
	m->unrecorded = global == GPU_GLOBAL_IF_ALL ? lacks_global(m->code) : NULL;
	if (!m->unrecorded)
		return;
	rewrite_free(m->code);
	o.global = false;
	m->code = rewrite_module(m->ptx, &o);
}

static struct gpu_module *open_with(const char *name, const char *text, size_t n,
	const struct rewrite_options *o, enum gpu_global global, struct consan_err *e)
{
	struct ptx_module *ptx = ptx_parse(name, text, n, e);
	struct gpu_module *m;

	if (!ptx)
		return NULL;
	m = base_alloc(sizeof *m);
	m->ptx = ptx;
	rewrite_with(m, o, global);
	snprintf(m->variable, sizeof m->variable, RECORD_VARIABLE "%u", m->code->number);
	if (m->code->site.n >= RECORD_SITES) {
		err_set(e, CONSAN_ERR_UNSUPPORTED, 0, 0,
			"%s: more recording sites than --backend=gpu can number", name);
		gpu_module_close(m);
		return NULL;
	}
	add_sites(m);
	m->sites = decode_sites_open(m->code);
	if (m->code->global)
		gpu_screen_open(m);
	return m;
}

struct gpu_module *gpu_module_open(const char *name, const char *text, size_t n, bool emulated,
	enum gpu_global global, bool drains, struct consan_err *e)
{
	static unsigned number;

	return open_with(name, text, n, &(struct rewrite_options){
		.number = __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED), .emulated = emulated,
		.drains = drains }, global, e);
}

struct gpu_module *gpu_module_cut(const char *name, const struct slices *from, const char *kernel,
	bool emulated, enum gpu_global global, bool drains, struct consan_err *e)
{
	struct gpu_module *m;
	size_t n;
	char *text = slices_cut(from, kernel, &n);

	if (!text) {
		err_set(e, CONSAN_ERR_PTX_SYMBOL, 0, 0, "%s: no kernel %s", name, kernel);
		return NULL;
	}
	/* the text is the same in each run, so that what it is assembled to can be kept */
	m = open_with(name, text, n, &(struct rewrite_options){ .emulated = emulated,
		.drains = drains, .external = true }, global, e);
	free(text);
	return m;
}
void gpu_module_close(struct gpu_module *m)
{
	if (!m)
		return;
	decode_sites_close(m->sites);
	gpu_screen_close(m);
	rewrite_free(m->code);
	ptx_free(m->ptx);
	free(m->site);
	number_set_free(&m->clean);
	number_set_free(&m->noted);
	free(m->unrecorded);
	free(m->signature);
	free(m);
}

const char *gpu_module_text(const struct gpu_module *m, size_t *n)
{
	*n = m->code->text.n;
	return m->code->text.at;
}

const char *gpu_module_variable(const struct gpu_module *m)
{
	return m->variable;
}

const uint32_t *gpu_module_cluster(const struct gpu_module *m, const char *kernel)
{
	const struct rewrite_func *f = rewrite_find(m->code, kernel);

	return f ? f->func->reqnctapercluster : NULL;
}

static const char *variable(const struct gpu_module *m, enum ptx_space space, size_t k)
{
	for (size_t i = 0; i < m->ptx->nvar; i++)
		if (m->ptx->var[i].space == space && !k--)
			return m->ptx->var[i].name;
	return NULL;
}

const char *gpu_module_global(const struct gpu_module *m, size_t k)
{
	return variable(m, PS_global, k);
}

const char *gpu_module_const(const struct gpu_module *m, size_t k)
{
	return variable(m, PS_const, k);
}

uint32_t gpu_module_sm(const struct gpu_module *m)
{
	return m->ptx->sm;
}

size_t gpu_module_insns(const struct gpu_module *m)
{
	size_t n = 0;

	for (size_t k = 0; k < m->ptx->nfunc; k++)
		n += m->ptx->func[k].ninsn;
	return n;
}

bool gpu_module_tickets(const struct gpu_module *m, const char *kernel)
{
	const struct rewrite_func *f = rewrite_find(m->code, kernel);

	return f && f->orders_grid;
}

bool gpu_module_unbounded_stack(const struct gpu_module *m, const char *kernel)
{
	const struct rewrite_func *f = rewrite_find(m->code, kernel);

	return f && f->unbounded_stack;
}

uint32_t gpu_module_params(const struct gpu_module *m, const char *kernel)
{
	const struct rewrite_func *f = rewrite_find(m->code, kernel);

	return f ? (uint32_t)f->func->param_bytes : 0;
}

bool gpu_module_param(const struct gpu_module *m, const char *kernel, size_t k,
	uint32_t *offset, uint32_t *bytes)
{
	const struct rewrite_func *f = rewrite_find(m->code, kernel);

	if (!f || k >= f->func->nparam)
		return false;
	*offset = (uint32_t)f->func->param[k].offset;
	*bytes = (uint32_t)f->func->param[k].size;
	return true;
}

/* ---- identical clusters ---- */

void gpu_add_clean(struct gpu_module *m, uint64_t signature)
{
	number_set_add(&m->clean, signature);
}

uint32_t *gpu_module_site_words(const struct gpu_module *m, uint32_t *n)
{
	uint32_t *word = base_alloc(m->code->site.n * sizeof *word);

	decode_site_words(m->code, word);
	*n = (uint32_t)m->code->site.n;
	return word;
}

/* A hash of all that a check depends on apart from the records: the kernel, the shape of its
 * launch, its tensor maps. */
static uint64_t shape_hash(const struct gpu_launch *l)
{
	uint64_t h = 0xcbf29ce484222325u;
	const uint32_t word[] = { l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
		l->block[2], l->cluster[0], l->cluster[1], l->cluster[2], l->shared, l->nregs };

	for (const char *s = l->kernel; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	for (size_t k = 0; k < ARRAY_SIZE(word); k++)
		h = (h ^ word[k]) * 0x100000001b3u;
	return h ^ gpu_maps_hash(l->maps);
}

static struct launch_info shape_of(const struct gpu_launch *l)
{
	struct launch_info i = { 0 };

	memcpy(i.grid, l->grid, sizeof i.grid);
	memcpy(i.block, l->block, sizeof i.block);
	memcpy(i.cluster, l->cluster, sizeof i.cluster);
	return i;
}

static uint64_t of_shape(uint64_t signature, uint64_t shape)
{
	return (signature ^ shape) * 0x9e3779b97f4a7c15u | 1;
}

uint32_t gpu_skip_identical(const struct gpu_launch *l, const uint64_t *cta, uint8_t *skip)
{
	struct launch_info i = shape_of(l);
	uint32_t nctas = i.grid[0] * i.grid[1] * i.grid[2], same;
	struct gpu_module *m = l->module;
	uint64_t shape = shape_hash(l);

	m->signature = base_resize(m->signature, (nctas + 1) * sizeof *m->signature);
	memset(m->signature, 0, (nctas + 1) * sizeof *m->signature);
	same = decode_identical(&i, cta, m->signature, skip);
	m->nsignatures = 0;
	for (uint32_t k = 0; k < nctas; k++) {
		if (!m->signature[k])
			continue;
		m->signature[k] = of_shape(m->signature[k], shape);
		if (!skip[k] && number_set_has(&m->clean, m->signature[k])) {
			skip[k] = 1;
			same++;
		} else if (!skip[k]) {
			m->signature[m->nsignatures++] = m->signature[k];
		}
	}
	return same;
}

static bool is_clean(const void *module, uint64_t shape, uint64_t signature)
{
	return number_set_has(&((const struct gpu_module *)module)->clean, of_shape(signature, shape));
}

struct drain *gpu_drain(const struct consan *c, const struct gpu_launch *l,
	const struct drain_pool *p, unsigned jobs)
{
	struct drain_config config = { .shape = shape_of(l), .retire = !gpu_each(c) && !l->module->code->global, .jobs = jobs,
		.most = gpu_host_memory(c) / RECORD_CHUNK_BYTES, .user = l->module,
		.key = shape_hash(l), .clean = is_clean };

	config.word = gpu_module_site_words(l->module, &config.nwords);
	return drain_open(p, &config);
}

void gpu_take_drained(struct gpu_launch *l, const struct drain *d, const struct drained *r)
{
	if (r->cta) {
		gpu_skip_identical(l, r->cta, r->skip);
		drain_choose_representatives(d, r->skip);
	}
	l->pool = r->head;
	l->chunk = r->chunk;
	l->chunks = r->n;
	l->dropped = r->head->dropped;
	l->lost = r->lost;
	l->skip = r->skip;
	l->incomplete = r->incomplete;
	l->waited = r->waited;
	l->retired = r->retired;
}

uint32_t gpu_cluster_of(const struct gpu_launch *l, uint32_t cta)
{
	struct launch_info i = shape_of(l);
	uint32_t rank;

	return decode_cluster_of(&i, cta, &rank);
}
