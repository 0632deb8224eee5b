/* identical: finds on the GPU which clusters of a launch recorded the same (record/digest.cu,
 * decode/identical.c), and copies only the records of their representatives to the host. */
#include "context_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "instrument/decode/decode.h"
#include "instrument/record/record.h"

#define LIST_BYTES (64ull << 20)

extern const char consan_digest_ptx[];

static bool copy_words(const struct context_records *p, CUdeviceptr to, const void *from,
	size_t bytes)
{
	return !cu.p_cuMemcpyHtoDAsync(to, from, bytes, p->side);
}

static size_t facts_bytes(uint32_t nctas)
{
	return (size_t)nctas * (sizeof(uint64_t) + sizeof(uint32_t));
}

/* What is too small is not freed: cuMemFree waits for the kernel, which may hang. */
static bool fit_facts(struct context_records *p, uint32_t nctas)
{
	CUdeviceptr at;

	if (RECORD_CHUNK_BYTES + facts_bytes(nctas) + 16 + sizeof(struct screen_result) > STAGE_BYTES)
		return false;
	if (nctas <= p->facts_for)
		return true;
	if (!own_allocate(p, &at, facts_bytes(nctas + nctas / 2)))
		return false;
	p->facts = at;
	p->facts_for = nctas + nctas / 2;
	return true;
}

/* Runs the kernels on an empty pool: the driver loads a kernel when it is first launched. */
static void warm_up(struct context_records *p)
{
	uint32_t none = 0, one = 1;
	struct { uint32_t x, y, z; } d = { 1, 1, 1 };
	void *digest[] = { &p->pool.at, &none, &p->list, &none, &p->digests, &none, &p->list,
		&p->list, &one };
	void *sign[] = { &p->digests, &p->list, &p->list, &none, &d, &d, &p->facts };
	void *gather[] = { &p->pool.at, &p->list, &p->digests, &p->stage };

	cu.p_cuMemsetD8Async(p->list, 0, 64, p->side);
	if (!fit_facts(p, 1024) || cu.p_cuLaunchKernel(p->digest, 1, 1, 1, 128, 1, 1, 0, p->side,
			digest, NULL)
			|| cu.p_cuLaunchKernel(p->sign, 1, 1, 1, 1024, 1, 1, 0, p->side, sign, NULL)
			|| cu.p_cuLaunchKernel(p->gather, 1, 1, 1, RECORD_CHUNK_UNITS, 1, 1, 0,
			p->side, gather, NULL)
			|| cu.p_cuMemcpyDtoHAsync(p->pinned, p->stage, RECORD_CHUNK_BYTES, p->side)
			|| cu.p_cuStreamSynchronize(p->side))
		p->digest = NULL;
}

void context_records_load_digest(struct context_records *p, CUdevice device)
{
	int sms = 0;
	CUmodule m;

	cu.p_cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	p->blocks = 12 * (uint32_t)(sms > 0 ? sms : 1);
	if (cu.p_cuModuleLoadData(&m, consan_digest_ptx)
			|| cu.p_cuModuleGetFunction(&p->digest, m, "consan_digest")
			|| cu.p_cuModuleGetFunction(&p->sign, m, "consan_sign")
			|| cu.p_cuModuleGetFunction(&p->gather, m, "consan_gather")
			|| !own_allocate(p, &p->digests, (size_t)p->pool.chunks * sizeof(struct record_digest))
			|| !own_allocate(p, &p->list, LIST_BYTES) || !own_allocate(p, &p->stage, STAGE_BYTES))
		p->digest = NULL;
	if (p->digest)
		warm_up(p);
}

static const struct site_words *words_of(struct context_records *p, struct gpu_module *m)
{
	struct site_words w = { .module = m };
	const struct decode_screen_sites *screen;
	const uint16_t *place;
	size_t bytes, more;
	uint32_t *word, nlike = 0;

	for (size_t k = 0; k < p->words.n; k++)
		if (p->words.at[k].module == m)
			return &p->words.at[k];
	word = gpu_module_site_words(m, &w.n);
	screen = gpu_module_screen(m);
	bytes = w.n * sizeof *word;
	more = gpu_screens(inject_session(), m) ? screen->tensor.n * sizeof *screen->tensor.at : 0;
	place = gpu_screens(inject_session(), m) ? gpu_module_places(m, &nlike) : NULL;
	if (own_allocate(p, &w.at, 2 * bytes + more + (w.n + nlike) * sizeof *place + 16)
			&& copy_words(p, w.at, word, bytes)
			&& (!gpu_screens(inject_session(), m) || copy_words(p, w.at + bytes, screen->word, bytes))
			&& (!more || copy_words(p, w.at + 2 * bytes, screen->tensor.at, more))
			&& (!place || copy_words(p, w.at + 2 * bytes + more, place, (w.n + nlike) * sizeof *place))
			&& !cu.p_cuStreamSynchronize(p->side))
		vec_push(&p->words, w);
	free(word);
	return p->words.n && p->words.at[p->words.n - 1].module == m ? &p->words.at[p->words.n - 1]
		: NULL;
}

/* How many chunks of each CTA fit into p->list. */
static uint32_t chunks_each(uint32_t nctas)
{
	uint64_t cap = LIST_BYTES / sizeof(uint32_t) / nctas;

	return cap > RECORD_SIGN_CHUNKS ? RECORD_SIGN_CHUNKS : (uint32_t)cap;
}

static uint32_t ctas_of(const struct gpu_launch *l)
{
	return l->grid[0] * l->grid[1] * l->grid[2];
}

void inject_prepare_facts(const struct inject_pool *pool, const struct gpu_launch *l)
{
	struct context_records *p = context_records(pool);

	if (p->digest) {
		words_of(p, l->module);
		fit_facts(p, ctas_of(l));
	}
}

/* Behind the facts */
static struct screen_result *screen_result(const struct context_records *p, uint32_t nctas)
{
	return (void *)(p->pinned + ((RECORD_CHUNK_BYTES + facts_bytes(nctas) + 15) & ~(size_t)15));
}

/* Starts the digest of the launch, then copies the head and the facts into p->pinned. */
static bool start_digest(const struct inject_pool *pool, const struct gpu_launch *l, uint32_t nctas,
	uint32_t most)
{
	struct context_records *p = context_records(pool);
	const struct site_words *w = p->digest ? words_of(p, l->module) : NULL;
	CUdeviceptr many;
	void *digest[] = { (void *)&pool->at, (void *)&pool->chunks, w ? (void *)&w->at : NULL,
		w ? (void *)&w->n : NULL, &p->digests, &nctas, &many, &p->list, &most };
	void *sign[] = { &p->digests, &many, &p->list, &most, (void *)l->grid, (void *)l->cluster,
		&p->facts };

	if (!w || !most || !fit_facts(p, nctas))
		return false;
	many = p->facts + (size_t)nctas * sizeof(uint64_t);
	return !cu.p_cuMemsetD8Async(many, 0, nctas * sizeof(uint32_t), p->side)
		&& !cu.p_cuLaunchKernel(p->digest, p->blocks, 1, 1, 128, 1, 1, 0, p->side, digest,
		NULL)
		&& (!gpu_screens(inject_session(), l->module)
		|| context_records_screen(pool, l, w, many, most, screen_result(p, nctas)))
		&& !cu.p_cuLaunchKernel(p->sign, nctas, 1, 1, 1024, 1, 1, 0, p->side, sign, NULL)
		&& !cu.p_cuMemcpyDtoHAsync(p->pinned, pool->at, RECORD_CHUNK_BYTES, p->side)
		&& !cu.p_cuMemcpyDtoHAsync(p->pinned + RECORD_CHUNK_BYTES, p->facts,
		facts_bytes(nctas), p->side);
}

bool inject_facts(const struct inject_pool *pool, const struct gpu_launch *l,
	struct inject_facts *f)
{
	const struct context_records *p = context_records(pool);
	uint32_t nctas = ctas_of(l), most = nctas ? chunks_each(nctas) : 0;

	if (!start_digest(pool, l, nctas, most) || cu.p_cuStreamSynchronize(p->side))
		return false;
	*f = (struct inject_facts){ .head = (const void *)p->pinned, .most = most };
	f->signature = (const void *)(p->pinned + RECORD_CHUNK_BYTES);
	f->many = (const void *)(f->signature + nctas);
	if (gpu_screens(inject_session(), l->module)) {
		const char *why = context_records_screened(pool, l, screen_result(p, nctas), f->head,
			f->unscreened);

		if (!why && l->edges) {
			f->nedges = screen_result(p, nctas)->edges;
			f->edge = context_records_edges(pool, f->nedges);
			why = f->edge ? NULL : "what it accessed could not be copied";
		}
		f->screened = !why;
		if (why && why != f->unscreened)
			snprintf(f->unscreened, sizeof f->unscreened, "%s", why);
	}
	return true;
}

/* The head and the chunks at these indices of p->list, in pinned memory. */
static const void *gather(const struct inject_pool *pool, const uint32_t *want, uint32_t n)
{
	struct context_records *p = context_records(pool);
	void *args[] = { (void *)&pool->at, &p->list, &p->digests, &p->stage };
	size_t bytes = (size_t)(n + 1) * RECORD_CHUNK_BYTES;

	if (bytes > STAGE_BYTES || !copy_words(p, p->digests, want, n * sizeof *want)
			|| cu.p_cuLaunchKernel(p->gather, n + 1, 1, 1, RECORD_CHUNK_UNITS, 1, 1, 0,
			p->side, args, NULL)
			|| !context_records_copy(p, p->pinned, p->stage, bytes))
		return NULL;
	return p->pinned;
}

/* Some CTA has more chunks than the GPU can combine: computes the signatures on the host. */
static bool sign_on_host(const struct context_records *p, const struct gpu_launch *l,
	struct inject_facts *f, uint32_t chunks)
{
	struct launch_info i = { 0 };

	if (chunks * sizeof *f->digest > STAGE_BYTES ||
			!context_records_copy(p, p->pinned, p->digests, chunks * sizeof *f->digest))
		return false;
	f->digest = (const void *)p->pinned;
	memcpy(i.grid, l->grid, sizeof i.grid);
	memcpy(i.block, l->block, sizeof i.block);
	memcpy(i.cluster, l->cluster, sizeof i.cluster);
	f->signature = f->computed = base_alloc(ctas_of(l) * sizeof *f->computed);
	decode_sign(&i, f->digest, chunks, f->computed);
	return true;
}

/* Indices into p->list of the chunks of clusters that are not skipped; returns how many. */
static uint32_t select_chunks(const struct context_records *p, const struct gpu_launch *l,
	const struct inject_facts *f, uint32_t chunks, const uint8_t *skip, uint32_t *want)
{
	uint32_t nctas = ctas_of(l), n = 0;

	for (uint32_t k = 0; !f->digest && k < nctas; k++)
		if (!skip[gpu_cluster_of(l, k)])
			for (uint32_t i = 0; i < f->many[k] && n < chunks; i++)
				want[n++] = k * f->most + i;
	if (!f->digest)
		return n;
	for (uint32_t k = 0; k < chunks; k++)
		if (f->digest[k].cta < nctas && !skip[gpu_cluster_of(l, f->digest[k].cta)])
			want[n++] = k;
	if (n * sizeof *want > LIST_BYTES || !copy_words(p, p->list, want, n * sizeof *want)
			|| cu.p_cuStreamSynchronize(p->side))
		return UINT32_MAX;
	for (uint32_t k = 0; k < n; k++)
		want[k] = k;
	return n;
}

static const void *fetch_some(const struct inject_pool *pool, const struct gpu_launch *l,
	const struct inject_facts *f, uint32_t chunks, uint8_t *skip, uint32_t *fetched)
{
	const void *some;
	uint32_t *want;

	if (!gpu_skip_identical(l, f->signature, skip))
		return NULL;
	want = base_alloc((chunks + 1) * sizeof *want);
	*fetched = select_chunks(context_records(pool), l, f, chunks, skip, want);
	some = *fetched <= chunks / 2 ? gather(pool, want, *fetched) : NULL;
	free(want);
	return some;
}

const void *inject_fetch_some(const struct inject_pool *pool, const struct gpu_launch *l,
	struct inject_facts *f, uint32_t chunks, uint8_t **skip, uint32_t *fetched)
{
	struct context_records *p = context_records(pool);
	uint32_t nctas = ctas_of(l);
	const void *some;
	bool fit = true;

	for (uint32_t k = 0; k < nctas; k++)
		fit &= f->many[k] <= f->most;
	if (!fit && !sign_on_host(p, l, f, chunks))
		return NULL;
	*skip = base_alloc(nctas + 1);
	some = fetch_some(pool, l, f, chunks, *skip, fetched);
	free(f->computed);
	if (some)
		return some;
	free(*skip);
	*skip = NULL;
	return NULL;
}
