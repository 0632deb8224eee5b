/* screen: screen.cu on the executor enters the same into its table as the host's version, for random
 * records of all kinds, and both say the same of cases with a known answer. */
#include "tests/common/device_memory.h"
#include "tests/common/shell.h"
#include "tests/common/skip.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "instrument/decode/decode.h"
#include "libconsan/session/session.h"

enum { CHUNKS = 24, EDGES = 4096, CTAS = 6, THREADS = 64, PAGES = 16, MAPS = 3 };

/* ---- sites ---- */

enum site_number { NO_SITE, SHARED, READ4, READ16, WRITE2, WRITE4, WRITE32, NC1, NC16, COPY16, LOAD_SIZE, STORE_48,
	TENSOR_IN, TENSOR_OUT, STRONG, COPY_SIZED, ITS_SIZE, COPY_UNLESS, ITS_PREDICATE,
	REDUCE_48, TENSOR_SUM, SITES };

#define GLOBAL (1u | 1u << 12 | DIGEST_GLOBAL | DIGEST_PLACE)
#define LANES(words) ((words) | 2u << 12 | DIGEST_PLACE)
#define BYTES(kind, shift) ((kind) | (shift) << SCREEN_DETAIL)

static const struct { uint32_t digest, site; } sites[SITES] = {
	[SHARED] = { 1 | 1u << 12, SCREEN_NONE },
	[READ4] = { GLOBAL, BYTES(SCREEN_READ, 2) }, [READ16] = { GLOBAL, BYTES(SCREEN_READ, 4) },
	[WRITE2] = { GLOBAL + 1, BYTES(SCREEN_WRITE, 1) }, [WRITE4] = { GLOBAL + 1, BYTES(SCREEN_WRITE, 2) },
	[WRITE32] = { GLOBAL, BYTES(SCREEN_WRITE, 5) }, [NC1] = { GLOBAL, BYTES(SCREEN_NC, 0) },
	[NC16] = { GLOBAL, BYTES(SCREEN_NC, 4) }, [COPY16] = { GLOBAL, BYTES(SCREEN_COPY, 4) },
	[LOAD_SIZE] = { LANES(3), SCREEN_LOAD }, [STORE_48] = { LANES(2), BYTES(SCREEN_STORE, 48) },
	[TENSOR_IN] = { LANES(4), BYTES(SCREEN_TENSOR_LOAD, 0) },
	[TENSOR_OUT] = { LANES(3), BYTES(SCREEN_TENSOR_STORE, 1) },
	[STRONG] = { LANES(2), SCREEN_HOST },
	[COPY_SIZED] = { GLOBAL, BYTES(SCREEN_COPY, 4) | SCREEN_MAYBE | SCREEN_SIZED },
	[ITS_SIZE] = { LANES(2), SCREEN_NONE },
	[COPY_UNLESS] = { GLOBAL, BYTES(SCREEN_COPY, 4) | SCREEN_MAYBE | SCREEN_SIZED | SCREEN_UNLESS },
	[ITS_PREDICATE] = { LANES(2), SCREEN_NONE },
	[REDUCE_48] = { LANES(2), BYTES(SCREEN_REDUCE, 48) },
	[TENSOR_SUM] = { LANES(3), BYTES(SCREEN_TENSOR_REDUCE, 1) },
};

static const struct screen_tensor tensors[] = { { 2, 3, { 0 }, 0, 0 }, { 2, 2, { 16 }, 0, 0 } };

#define AT 0x700000000ull

/* Half words: 40 by 9, in rows of 128 bytes, and in every other of 256; words: 198 by 6, so that a row has
 * two pieces and ends within a unit. */
static const struct screen_map maps[MAPS] = {
	{ 0, AT + 0x20000, { 128 }, { 39, 8 }, { 16, 4 }, { 1, 1 }, 16, 2, 0 },
	{ 128, AT + 0x30000, { 256 }, { 39, 8 }, { 24, 3 }, { 1, 2 }, 16, 2, 0 },
	{ 192, AT + 0x37f10, { 1024 }, { 197, 5 }, { 200, 2 }, { 1, 1 }, 32, 2, 0 },
};

/* ---- pools ---- */

static uint32_t seed;

static uint32_t draw(uint32_t below)
{
	return seed = seed * 1664525u + 1013904223u, (seed >> 8) % below;
}

struct pool { uint32_t chunk[CHUNKS + 2][4 * RECORD_CHUNK_UNITS]; };

struct writer { uint32_t *unit, at; };

static bool fits(const struct writer *w, uint32_t units)
{
	return w->at + units <= RECORD_CHUNK_UNITS;
}

static uint32_t *begin(struct writer *w, enum site_number site, uint32_t lanes, bool affine)
{
	uint32_t *r = w->unit + 4 * w->at;
	const uint32_t units = digest_units(sites[site].digest, affine, (uint32_t)__builtin_popcount(lanes));

	if (!fits(w, units))
		return NULL;
	w->at += units;
	r[0] = (uint32_t)site << RECORD_SITE_SHIFT | (affine ? RECORD_AFFINE : 0);
	r[1] = lanes;
	return r;
}

/* An access of lanes `s` bytes apart, or each at an address of its own. */
static bool add_access(struct writer *w, enum site_number site, uint32_t lanes, uint64_t addr, int32_t s,
	bool affine)
{
	uint32_t *r = begin(w, site, lanes, affine);

	if (!r)
		return false;
	if (affine) {
		r[3] = (uint32_t)addr;
		r[4] = (uint32_t)(addr >> 32);
		r[5] = (uint32_t)s;
		r[6] = 4 * (uint32_t)s;
		r[7] = 2;
		return true;
	}
	for (uint32_t l = 0; l < 32; l++) {
		const uint64_t at = addr + (uint64_t)(int64_t)s * (l ^ 5);

		r[4 + 2 * l] = (uint32_t)at;
		r[5 + 2 * l] = (uint32_t)(at >> 32);
	}
	return true;
}

static bool add_bulk(struct writer *w, uint64_t addr, uint32_t bytes)
{
	uint32_t *r = begin(w, bytes ? LOAD_SIZE : STORE_48, 1u << draw(32), bytes && draw(2));

	if (!r)
		return false;
	r[4] = (uint32_t)addr;
	r[5] = (uint32_t)(addr >> 32);
	if (bytes)
		r[6] = bytes;
	return true;
}

static bool add_tensor(struct writer *w, enum site_number site, int32_t x, int32_t y, uint32_t map)
{
	uint32_t *r = begin(w, site, 1u << draw(32), false), n = 4;

	if (!r)
		return false;
	if (site == TENSOR_IN)
		r[n++] = (uint32_t)x;
	r[n++] = (uint32_t)y;
	r[n++] = (uint32_t)maps[map].offset;
	r[n] = (uint32_t)(RECORD_PARAM >> 32);
	return true;
}

static bool add_random(struct writer *w, uint32_t cta)
{
	static const enum site_number access[] = { READ4, READ16, WRITE2, WRITE4, WRITE32, NC1, COPY16, NC16 };
	const uint32_t k = draw(12), lanes = draw(3) ? UINT32_MAX : draw(1u << 24) | 1;
	const uint64_t own = AT + 0x10000 + 0x2000 * cta; /* so that most are of one CTA */

	if (k < 8) {
		const uint32_t bytes = 1u << (sites[access[k]].site >> SCREEN_DETAIL & 15);
		const bool reads = access[k] != WRITE2 && access[k] != WRITE4 && access[k] != WRITE32;

		return add_access(w, access[k], lanes, (reads ? AT + 0x8000 : own) + 32 * draw(64),
			(int32_t)(bytes * draw(3)), draw(2));
	}
	if (k == 8)
		return add_bulk(w, AT + 16 * draw(512), 16 * (1 + draw(80)));
	if (k == 9)
		return add_bulk(w, own + 0x1000 + 16 * draw(200), 0);
	return add_tensor(w, k != 10 ? TENSOR_IN : draw(4) ? TENSOR_OUT : TENSOR_SUM,
		8 * ((int32_t)draw(8) - 2), (int32_t)draw(12) - (k != 10), draw(MAPS));
}

static void begin_chunk(struct pool *p, struct writer *w, uint32_t k, uint32_t cta, uint32_t lane)
{
	*w = (struct writer){ p->chunk[k], 1 };
	p->chunk[k][0] = cta;
	p->chunk[k][1] = lane;
}

static void fill(struct pool *p, uint32_t chunks, uint32_t most)
{
	p->chunk[0][0] = chunks + 1;
	for (uint32_t k = 1; k <= chunks; k++) {
		struct writer w;

		begin_chunk(p, &w, k, k % CTAS, 32 * draw(2));
		for (uint32_t i = draw(most); i-- && add_random(&w, k % CTAS);)
			;
	}
}

/* ---- both versions ---- */

#define TABLE_BYTES (2 * PAGES * SCREEN_PAGE_BYTES)

static bool edges; /* are wanted */
static uint32_t nedges; /* of the last launch */
static struct screen_edge last[8]; /* the first of them */
static struct consan *c;
static const struct consan_kernel *screen_kernel, *scan_kernel;

static bool load_kernels(void)
{
	char path[PATH_MAX] = "";
	struct consan_err e = { 0 };
	struct consan_module *m;

	snprintf(path, sizeof path, "%s/instrument/record/screen_ptx.ptx", build_dir());
	if (access(path, R_OK))
		return false;
	/* of several instructions that access a half word, any may be noted last */
	c = consan_open(edges ? "no-global=1" : "", &e);
	m = consan_load_file(c, path, 0, &e);
	cr_assert_not_null(m, "%s", e.text);
	screen_kernel = consan_kernel(m, "consan_screen", &e);
	scan_kernel = consan_kernel(m, "consan_screen_scan", &e);
	cr_assert(screen_kernel && scan_kernel, "%s", e.text);
	return true;
}

/* As consan_digest does. */
static void list_chunks(struct screen_job *j, const struct pool *p)
{
	struct record_digest digests[CHUNKS] = { 0 };
	uint32_t many[CTAS] = { 0 }, list[CTAS * CHUNKS] = { 0 };

	for (uint32_t k = 0; k + 1 < p->chunk[0][0]; k++) {
		const uint32_t cta = p->chunk[k + 1][0];

		digests[k] = (struct record_digest){ cta, p->chunk[k + 1][1] | 7 << 16, 0, 0 };
		list[cta * CHUNKS + many[cta]++] = k;
	}
	j->digests = device_memory(c, digests, sizeof digests);
	j->many = device_memory(c, many, sizeof many);
	j->list = device_memory(c, list, sizeof list);
	j->cap = CHUNKS;
}

static struct screen_job job_of(const struct pool *p, uint32_t nranges, const struct screen_range *range)
{
	static uint32_t digest[SITES], site[SITES];
	static uint16_t place[SITES], like[SITES];
	struct screen_job j = { .chunks = CHUNKS, .nsites = SITES, .nmaps = MAPS, .nranges = nranges,
		.pages = PAGES, .nctas = CTAS, .threads = THREADS, .param_bytes = 256 };

	for (unsigned k = 0; k < SITES; k++) {
		digest[k] = sites[k].digest;
		site[k] = sites[k].site;
		place[k] = (uint16_t)k;
		like[k] = (uint16_t)(k / 2);
	}
	j.pool = device_memory(c, p, sizeof *p);
	j.digest = device_memory(c, digest, sizeof digest);
	j.site = device_memory(c, site, sizeof site);
	j.tensor = device_memory(c, tensors, sizeof tensors);
	j.map = device_memory(c, maps, sizeof maps);
	j.range = range ? device_memory(c, range, nranges * sizeof *range) : NULL;
	j.result = device_memory(c, NULL, sizeof *j.result);
	screen_use_table(&j, (uintptr_t)device_memory(c, NULL, TABLE_BYTES), (edges ? 2 : 1) * PAGES, edges);
	list_chunks(&j, p);
	if (!edges)
		return j;
	j.place = device_memory(c, place, sizeof place);
	j.like = device_memory(c, like, sizeof like);
	j.edge = device_memory(c, NULL, EDGES * sizeof *j.edge);
	j.most_edges = EDGES;
	return j;
}

static void free_job(const struct screen_job *j)
{
	consan_free(c, (void *)(uintptr_t)j->pool);
	consan_free(c, (void *)(uintptr_t)j->digest);
	consan_free(c, (void *)(uintptr_t)j->site);
	consan_free(c, (void *)(uintptr_t)j->tensor);
	consan_free(c, (void *)(uintptr_t)j->map);
	if (j->range)
		consan_free(c, (void *)(uintptr_t)j->range);
	consan_free(c, j->result);
	consan_free(c, j->entry);
	consan_free(c, (void *)(uintptr_t)j->digests);
	consan_free(c, (void *)(uintptr_t)j->many);
	consan_free(c, (void *)(uintptr_t)j->list);
	if (!j->seen)
		return;
	consan_free(c, (void *)(uintptr_t)j->place);
	consan_free(c, (void *)(uintptr_t)j->like);
	consan_free(c, j->edge);
}

static void launch(const struct consan_kernel *k, uint32_t grid, uint32_t block, const struct screen_job *j)
{
	struct consan_err e = { 0 };
	const struct consan_launch l = { .kernel = k, .grid = { grid, 1, 1 }, .block = { block, 1, 1 },
		.args = (const void *const[]){ j } };

	cr_assert_eq(consan_launch(c, &l, &e), CONSAN_OK, "%s", e.text);
	cr_assert_eq(consan_errors(c), 0, "our own kernels are clean");
}

/* Do both have the same of page k of the first? */
static bool same_page(const struct screen_job *a, const struct screen_job *b, uint32_t k)
{
	for (uint32_t i = 0; i < PAGES; i++)
		if (b->key[i] == a->key[k])
			return a->entered[k] == b->entered[i]
				&& !memcmp(b->entry + (size_t)i * SCREEN_PAGE_WORDS,
				a->entry + (size_t)k * SCREEN_PAGE_WORDS, SCREEN_PAGE_WORDS * sizeof *a->entry)
				&& !memcmp(b->mark + (size_t)i * SCREEN_PAGE_MARKS,
				a->mark + (size_t)k * SCREEN_PAGE_MARKS, SCREEN_PAGE_MARKS * sizeof *a->mark);
	return false;
}

static void expect_same_tables(const struct screen_job *a, const struct screen_job *b, uint32_t number)
{
	unsigned pages[2] = { 0 };

	for (uint32_t k = 0; k < PAGES; k++) {
		pages[0] += a->key[k] != 0;
		pages[1] += b->key[k] != 0;
		cr_assert(!a->key[k] || same_page(a, b, k), "%u: page 0x%llx", number, (unsigned long long)a->key[k]);
	}
	cr_assert_eq(pages[0], pages[1]);
}

static int by_address(const void *a, const void *b)
{
	const struct screen_edge *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

/* If several instructions have accessed a half word, the two may have noted different ones. Returns how
 * many edges there are. */
static uint32_t expect_same_edges(const struct screen_job *a, const struct screen_job *b, bool exact)
{
	const uint32_t n = a->result->edges;

	cr_assert(n <= EDGES && b->result->edges <= EDGES);
	qsort(a->edge, n, sizeof *a->edge, by_address);
	qsort(b->edge, b->result->edges, sizeof *b->edge, by_address);
	cr_assert(!exact || (n == b->result->edges && !memcmp(a->edge, b->edge, n * sizeof *a->edge)));
	return n;
}

/* The table, but for what may have any contents, is ready for the next launch. */
static void expect_empty(const struct screen_job *j)
{
	const char *end = edges ? (const char *)j->marked : (const char *)(j->entered + PAGES);

	for (const char *at = (const char *)j->entry; at < end; at++)
		cr_assert_eq(*at, 0);
}

/* What both say: 0 or the reasons, of which one is enough to end the GPU's version. */
static uint32_t screen_both(const struct pool *p, uint32_t nranges, const struct screen_range *range,
	uint32_t number)
{
	struct screen_job gpu = job_of(p, nranges, range), host = job_of(p, nranges, range);
	const uint32_t given = p->chunk[0][0] - 1;
	uint32_t entered, why;

	launch(screen_kernel, 2, 128, &gpu);
	entered = gpu.result->why;
	host.chunks = given;
	decode_screen(&host);
	why = host.result->why;
	if (!entered && (!why || why == SCREEN_RACE)) {
		cr_assert_eq(gpu.result->chunks, given);
		expect_same_tables(&gpu, &host, number);
	}
	launch(scan_kernel, 1, 256, &gpu);
	cr_assert_eq(gpu.result->scanned, 1);
	cr_assert_eq(!gpu.result->why, !why, "%u: 0x%x, the host: 0x%x", number, gpu.result->why, why);
	if (edges && !why && !gpu.result->why)
		nedges = expect_same_edges(&gpu, &host, nranges);
	memcpy(last, edges ? gpu.edge : last, sizeof last);
	expect_empty(&gpu);
	free_job(&gpu);
	free_job(&host);
	return why;
}

Test(screen, random_records, .timeout = 300)
{
	static struct pool p;
	unsigned clean = 0, races = 0;

	if (!load_kernels())
		SKIP_TEST("no CUPTI, no screen_ptx.ptx");
	for (uint32_t k = 0; k < 30; k++) {
		uint32_t why;

		memset(&p, 0, sizeof p);
		seed = 100 + k;
		fill(&p, k < 15 ? CHUNKS : 2, k < 15 ? 60 : 5);
		why = screen_both(&p, 0, NULL, k);
		clean += !why;
		races += why == SCREEN_RACE;
	}
	cr_expect(clean && races, "%u clean, %u races", clean, races);
	consan_close(c);
}

/* ---- cases with a known answer ---- */

static const struct screen_range range[] = { { 0, 0, 0x10000 }, { AT, AT + 0x8000, AT + 0x10000 },
	{ AT + 0x20000, AT + 0x40000, AT + 0x50000 } };

/* Two accesses, in two CTAs or in two warps of one. */
struct one { enum site_number site; uint32_t lanes, at, cta, warp; int32_t step; };
static const struct known { struct one one[2]; uint32_t why; } known[] = {
	{ { { READ4, ~0u, 0, 0, 0, 4 }, { READ16, ~0u, 0, 1, 0, 16 } }, 0 },
	{ { { WRITE4, ~0u, 0, 0, 0, 4 }, { WRITE4, ~0u, 128, 1, 0, 4 } }, 0 },
	{ { { WRITE4, 1, 0, 0, 0, 4 }, { WRITE4, 1, 4, 1, 0, 4 } }, 0 },        /* one granule */
	{ { { WRITE4, 1, 0, 0, 0, 4 }, { WRITE4, 1, 0, 1, 0, 4 } }, SCREEN_RACE },
	{ { { WRITE4, 1, 0, 0, 0, 4 }, { WRITE4, 1, 0, 0, 1, 4 } }, SCREEN_RACE },
	{ { { WRITE4, ~0u, 0, 0, 0, 4 }, { READ4, ~0u, 0, 0, 0, 4 } }, 0 },     /* each lane its own */
	{ { { WRITE4, ~0u, 0, 0, 0, 4 }, { READ4, ~0u, 4, 0, 0, 4 } }, SCREEN_RACE },
	{ { { WRITE4, ~0u, 0, 0, 0, 0 }, { READ4, 1, 512, 0, 0, 0 } }, SCREEN_RACE }, /* lanes meet */
	{ { { WRITE4, 1, 0, 0, 0, 4 }, { COPY16, 1, 0, 0, 0, 16 } }, SCREEN_RACE },
	{ { { COPY16, ~0u, 0, 0, 0, 16 }, { COPY16, ~0u, 0, 1, 1, 16 } }, 0 },
	{ { { NC16, ~0u, 0, 0, 0, 16 }, { COPY16, ~0u, 256, 1, 1, 16 } }, 0 },
	{ { { NC16, 1, 0, 0, 0, 16 }, { READ4, 1, 4, 0, 0, 4 } }, 0 },
	{ { { NC16, 1, 16, 0, 0, 16 }, { WRITE4, 1, 28, 0, 0, 4 } }, SCREEN_RACE },  /* its own thread */
	{ { { WRITE2, 1, 30, 0, 0, 2 }, { COPY16, 1, 16, 0, 0, 16 } }, SCREEN_RACE },
	{ { { WRITE2, 1, 32, 0, 0, 2 }, { COPY16, 1, 16, 0, 0, 16 } }, 0 },
	{ { { COPY16, 1, 32, 0, 0, 16 }, { STORE_48, 1, 0, 0, 0, 0 } }, SCREEN_RACE },
	{ { { COPY16, 1, 48, 0, 0, 16 }, { STORE_48, 1, 0, 0, 0, 0 } }, 0 },
	{ { { COPY16, 1, 32, 0, 0, 16 }, { REDUCE_48, 1, 0, 0, 0, 0 } }, SCREEN_RACE },
	{ { { WRITE4, 1, 0, 0, 0, 4 }, { NC1, 1, 2, 0, 0, 1 } }, SCREEN_RACE }, /* not coherent */
	{ { { WRITE4, 1, 0x7ffc, 0, 0, 4 }, { READ4, 1, 0, 0, 0, 4 } }, 0 },
	{ { { WRITE4, 3, 0x7ffc, 0, 0, 4 }, { READ4, 1, 0, 0, 0, 4 } }, SCREEN_OUTSIDE },
	{ { { READ4, 1, 0xfffc, 0, 0, 4 }, { READ4, 1, 0, 0, 0, 4 } }, SCREEN_OUTSIDE },
	{ { { READ4, 1, 0x10000, 0, 0, 4 }, { READ4, 1, 0, 0, 0, 4 } }, 0 },    /* not known */
	{ { { READ4, 1, 2, 0, 0, 4 }, { READ4, 1, 0, 0, 0, 4 } }, SCREEN_ALIGN },
	{ { { STRONG, 1, 0, 0, 0, 0 }, { READ4, 1, 0, 0, 0, 4 } }, SCREEN_OTHER },
	{ { { STORE_48, 1, 0, 0, 0, 0 }, { READ4, 1, 48, 0, 0, 4 } }, 0 },
	{ { { STORE_48, 1, 0, 0, 0, 0 }, { READ4, 1, 44, 0, 0, 4 } }, SCREEN_RACE },
	{ { { STORE_48, 1, 0, 0, 0, 0 }, { STORE_48, 1, 32, 0, 0, 0 } }, SCREEN_RACE },
	{ { { STORE_48, 1, 8, 0, 0, 0 }, { READ4, 1, 0, 0, 0, 4 } }, SCREEN_ALIGN },
	{ { { STORE_48, 1, 0x7fe0, 0, 0, 0 }, { READ4, 1, 0, 0, 0, 4 } }, SCREEN_OUTSIDE },
	{ { { REDUCE_48, 1, 0, 0, 0, 0 }, { REDUCE_48, 1, 32, 1, 0, 0 } }, 0 },
	{ { { REDUCE_48, 1, 0, 0, 0, 0 }, { STORE_48, 1, 32, 1, 0, 0 } }, SCREEN_RACE },
	{ { { REDUCE_48, 1, 0, 0, 0, 0 }, { READ4, 1, 32, 0, 0, 4 } }, SCREEN_RACE },
	{ { { WRITE32, 1, 32, 0, 0, 0 }, { READ4, 1, 60, 1, 0, 4 } }, SCREEN_RACE },
};

static void add_one(struct pool *p, uint32_t k, const struct one *x)
{
	struct writer w;
	uint32_t *r;

	begin_chunk(p, &w, k, x->cta, 32 * x->warp);
	if (x->site != STORE_48 && x->site != REDUCE_48 && x->site != STRONG) {
		add_access(&w, x->site, x->lanes, AT + x->at, x->step, true);
		return;
	}
	r = begin(&w, x->site, x->lanes, false);
	r[4] = (uint32_t)AT + x->at;
	r[5] = (uint32_t)(AT >> 32);
}

Test(screen, known, .timeout = 120)
{
	static struct pool p;

	if (!load_kernels())
		SKIP_TEST("no CUPTI, no screen_ptx.ptx");
	for (uint32_t k = 0; k < ARRAY_SIZE(known); k++) {
		memset(&p, 0, sizeof p);
		p.chunk[0][0] = 3; /* the next chunk */
		add_one(&p, 1, &known[k].one[0]);
		add_one(&p, 2, &known[k].one[1]);
		cr_expect_eq(screen_both(&p, ARRAY_SIZE(range), range, k), known[k].why, "%u", k);
	}
	consan_close(c);
}

/* Boxes of the first map, by their coordinates; x is that of a load, as a store has 16. */
static const struct box { enum site_number site[2]; int32_t x[2], y[2]; uint32_t map[2], why; } boxes[] = {
	{ { TENSOR_IN, TENSOR_IN }, { 0, 0 }, { 0, 0 }, { 0, 0 }, 0 },
	{ { TENSOR_OUT, TENSOR_IN }, { 0, 0 }, { 0, 0 }, { 0, 0 }, 0 },             /* beside each other */
	{ { TENSOR_OUT, TENSOR_IN }, { 0, 24 }, { 0, 2 }, { 0, 0 }, SCREEN_RACE },
	{ { TENSOR_OUT, TENSOR_IN }, { 0, 24 }, { 0, 4 }, { 0, 0 }, 0 },
	{ { TENSOR_OUT, TENSOR_OUT }, { 0, 0 }, { 0, 4 }, { 0, 0 }, 0 },
	{ { TENSOR_OUT, TENSOR_OUT }, { 0, 0 }, { 0, 3 }, { 0, 0 }, SCREEN_RACE },
	{ { TENSOR_OUT, TENSOR_OUT }, { 0, 0 }, { 0, 1 }, { 1, 1 }, 0 },              /* every other row */
	{ { TENSOR_OUT, TENSOR_OUT }, { 0, 0 }, { 0, 2 }, { 1, 1 }, SCREEN_RACE },
	{ { TENSOR_SUM, TENSOR_SUM }, { 0, 0 }, { 0, 3 }, { 0, 0 }, 0 },
	{ { TENSOR_SUM, TENSOR_IN }, { 0, 24 }, { 0, 2 }, { 0, 0 }, SCREEN_RACE },
	{ { TENSOR_OUT, TENSOR_IN }, { 0, 0 }, { -1, 0 }, { 0, 0 }, SCREEN_MAP },
	{ { TENSOR_IN, TENSOR_OUT }, { -8, 0 }, { -2, 0 }, { 0, 0 }, 0 },
	{ { TENSOR_IN, TENSOR_OUT }, { 4, 0 }, { 0, 0 }, { 0, 0 }, SCREEN_MAP },
	{ { TENSOR_IN, TENSOR_OUT }, { 40, 0 }, { 0, 9 }, { 0, 0 }, 0 },            /* beside the tensor */
	{ { TENSOR_IN, TENSOR_IN }, { 0, 24 }, { 0, 1 }, { 2, 2 }, 0 },             /* ends within a unit */
	{ { TENSOR_IN, TENSOR_OUT }, { 0, 0 }, { 0, 2 }, { 2, 2 }, 0 },
	{ { TENSOR_IN, TENSOR_OUT }, { 0, 0 }, { 1, 2 }, { 2, 2 }, SCREEN_RACE },
	{ { TENSOR_OUT, TENSOR_OUT }, { 0, 0 }, { 3, 4 }, { 2, 2 }, SCREEN_RACE },
};

Test(screen, boxes, .timeout = 120)
{
	static struct pool p;

	if (!load_kernels())
		SKIP_TEST("no CUPTI, no screen_ptx.ptx");
	for (uint32_t k = 0; k < ARRAY_SIZE(boxes); k++) {
		const struct box *b = &boxes[k];

		memset(&p, 0, sizeof p);
		p.chunk[0][0] = 3; /* the next chunk */
		for (uint32_t i = 0; i < 2; i++) {
			struct writer w;

			begin_chunk(&p, &w, i + 1, 2 * i, 0);
			add_tensor(&w, b->site[i], b->x[i], b->y[i], b->map[i]);
		}
		cr_expect_eq(screen_both(&p, ARRAY_SIZE(range), range, k), b->why, "%u", k);
	}
	consan_close(c);
}

/* ---- edges ---- */

static void expect_edges(const struct screen_edge *e, uint32_t n)
{
	cr_assert_eq(nedges, n);
	for (uint32_t k = 0; k < n; k++)
		cr_expect(last[k].addr == e[k].addr && last[k].key == e[k].key, "%u: 0x%llx %u", k,
			(unsigned long long)last[k].addr, last[k].key);
}

static void run_two(const struct one *a, const struct one *b)
{
	static struct pool p;

	memset(&p, 0, sizeof p);
	p.chunk[0][0] = 3;
	add_one(&p, 1, a);
	add_one(&p, 2, b);
	cr_assert_eq(screen_both(&p, ARRAY_SIZE(range), range, 0), 0);
}

/* Where the bytes of another place begin, and where those of none do; pages are cut. */
Test(screen, edges, .timeout = 120)
{
	static const uint32_t reads = READ4 << 1, narrow = WRITE2 << 1 | 1, writes = WRITE4 << 1 | 1;

	edges = true;
	if (!load_kernels())
		SKIP_TEST("no CUPTI, no screen_ptx.ptx");
	run_two(&(struct one){ READ4, ~0u, 0, 0, 0, 4 }, &(struct one){ WRITE4, 1, 128, 1, 0, 4 });
	expect_edges((struct screen_edge[]){ { AT, reads, 0 }, { AT + 128, writes, 0 }, { AT + 132, 0, 0 } }, 3);
	run_two(&(struct one){ READ4, ~0u, 0x2ffc0, 0, 0, 4 }, &(struct one){ WRITE2, 3, 0x30100, 1, 0, 8 });
	expect_edges((struct screen_edge[]){ { AT + 0x2ffc0, reads, 0 }, { AT + 0x30000, 0, 0 },
		{ AT + 0x30000, reads, 0 }, { AT + 0x30040, 0, 0 }, { AT + 0x30100, narrow, 0 },
		{ AT + 0x30102, 0, 0 }, { AT + 0x30108, narrow, 0 }, { AT + 0x3010a, 0, 0 } }, 8);
	/* like[] of the two is the same */
	run_two(&(struct one){ READ16, 3, 0, 0, 0, 16 }, &(struct one){ READ4, 3, 32, 1, 0, 4 });
	expect_edges((struct screen_edge[]){ { AT, READ16 << 1, 0 }, { AT + 40, 0, 0 } }, 2);
	consan_close(c);
}

Test(screen, random_edges, .timeout = 300)
{
	static struct pool p;
	unsigned inexact = 0;

	edges = true;
	if (!load_kernels())
		SKIP_TEST("no CUPTI, no screen_ptx.ptx");
	for (uint32_t k = 0; k < 10; k++) {
		memset(&p, 0, sizeof p);
		seed = 100 + k;
		fill(&p, 1 + k / 5, 60);
		inexact += screen_both(&p, 0, NULL, k) == SCREEN_INEXACT;
	}
	cr_expect(inexact, "single bytes are read");
	consan_close(c);
}

/* A copy of which the other record is in the lane's next chunk, which is not the next one of the pool.
 * Lanes 0 and 1 copy 16 bytes each; size: the word of lane 1, NULL: there is no such record. */
static void copy_of_size(struct pool *p, enum site_number site, const uint32_t *size, bool same_chunk)
{
	const struct one other_warp = { READ4, 1, 0, 0, 1, 0 };
	struct writer w;
	uint32_t *r;

	memset(p, 0, sizeof *p);
	p->chunk[0][0] = 4;
	begin_chunk(p, &w, 1, 0, 0);
	add_access(&w, site, 3, AT + 0x1000, 16, true);
	add_one(p, 2, &other_warp);
	if (!same_chunk)
		begin_chunk(p, &w, 3, 0, 0);
	else
		p->chunk[0][0] = 3;
	if (!size)
		return;
	r = begin(&w, site + 1, 3, false);
	r[5] = site == COPY_SIZED ? 16 : 0;
	r[7] = *size;
}

Test(screen, copied_bytes, .timeout = 120)
{
	static const struct { enum site_number site; uint32_t size, bytes; } copies[] = {
		{ COPY_SIZED, 16, 32 }, { COPY_SIZED, 8, 24 }, { COPY_SIZED, 0, 16 },
		{ COPY_UNLESS, 0, 32 }, { COPY_UNLESS, 1, 16 } };
	static struct pool p;

	edges = true;
	if (!load_kernels())
		SKIP_TEST("no CUPTI, no screen_ptx.ptx");
	for (uint32_t k = 0; k < 2 * ARRAY_SIZE(copies); k++) {
		copy_of_size(&p, copies[k / 2].site, &copies[k / 2].size, k % 2);
		cr_assert_eq(screen_both(&p, ARRAY_SIZE(range), range, k), 0);
		expect_edges((struct screen_edge[]){ { AT, READ4 << 1, 0 }, { AT + 4, 0, 0 },
			{ AT + 0x1000, (uint32_t)copies[k / 2].site << 1, 0 },
			{ AT + 0x1000 + copies[k / 2].bytes, 0, 0 } }, 4);
	}
	copy_of_size(&p, COPY_SIZED, NULL, false);
	cr_expect_eq(screen_both(&p, ARRAY_SIZE(range), range, 100), SCREEN_INEXACT);
	copy_of_size(&p, COPY_SIZED, &(uint32_t){ 17 }, false);
	cr_expect_eq(screen_both(&p, ARRAY_SIZE(range), range, 101), SCREEN_ALIGN);
	copy_of_size(&p, COPY_SIZED, &(uint32_t){ 7 }, false);
	cr_expect_eq(screen_both(&p, ARRAY_SIZE(range), range, 102), SCREEN_INEXACT);
	consan_close(c);
}

/* ---- whole programs ---- */

/* What the screen says of the last kernel, and the report of the program. */
static const struct { const char *program, *screen, *report; } programs[] = {
	{ "hgemm/hgemm --m=256 --n=256 --k=128", ": clean", "0 errors, 0 warnings, 0 notes" },
	{ "hgemm/hgemm --m=256 --n=256 --k=128 --bug=no_wait", ": clean", "CS301" },
	{ "wgmma_gemm/wgmma_gemm --m=256 --n=256 --k=256", ": clean", "0 errors, 0 warnings, 0 notes" },
	{ "wgmma_gemm/wgmma_gemm --m=256 --n=256 --k=256 --bug=no_proxy_fence", ": clean", "CS110" },
	{ "ring/ring --ctas=2 --rows=512", ": clean", "0 errors, 0 warnings, 0 notes" },
	{ "ring/ring --ctas=2 --rows=512 --bug=early_release", ": clean", "CS106" },
	{ "attention/fa2_split_q --n=128", ": clean", "0 errors, 0 warnings, 0 notes" },
	{ "attention/fa2_split_q --n=72 --bug=rows_unguarded", ": it did not end", "CS903" },
	{ "attention/hopper --n=256", ": clean", "0 errors, 0 warnings, 0 notes" },
	{ "pipeline/pipeline", ": clean", "0 errors, 0 warnings, 0 notes" },
	{ "pipeline/pipeline --bug=load_not_awaited", ": clean", "CS1002" },
	{ "allreduce/allreduce", ": it has atomic or strong accesses", "0 errors, 0 warnings, 0 notes" },
};

Test(screen, programs, .timeout = 300)
{
	const char *dir = build_dir();

	for (size_t k = 0; k < ARRAY_SIZE(programs); k++) {
		shell("%s/consan-run --backend=gpu-emulated --gpu-global --gpu-times --allow-unchecked "
			"%s/kernels/%s 2>&1", dir, dir, programs[k].program);
		cr_expect(strstr(output, programs[k].screen), "%s: %s", programs[k].program, output);
		cr_expect(strstr(output, programs[k].report), "%s: %s", programs[k].program, output);
	}
}
