/* screen: finds on the GPU whether a launch's accesses to global memory are clean by themselves
 * (record/screen.cu), so that its records can be checked as without --gpu-global. */
#include "context_records.h"

#include <stdlib.h>

#include "instrument/decode/decode.h"
#include "ranges.h"

#define INPUT_BYTES (4ull << 20)
#define MOST_EDGES (1u << 18)      /* behind the input: 4 MiB */
#define LEAST_PAGES 512u           /* 64 MiB */

extern const char consan_screen_ptx[];

/* The driver loads a kernel when it is first launched. */
static bool warm_up(const struct context_records *p)
{
	struct screen_job job = { .pool = (const void *)(uintptr_t)p->pool.at,
		.result = (void *)(uintptr_t)p->screen.result };
	void *args[] = { &job };

	return !cu.p_cuLaunchKernel(p->screen.screen, 1, 1, 1, 128, 1, 1, 0, p->side, args, NULL)
		&& !cu.p_cuLaunchKernel(p->screen.scan, 1, 1, 1, 256, 1, 1, 0, p->side, args, NULL)
		&& !cu.p_cuStreamSynchronize(p->side);
}

/* An eighth of what is free, or less if there is not so much in one piece. */
static bool make_table(struct context_records *p)
{
	struct screen_memory *s = &p->screen;
	size_t free_bytes = 0, total = 0;

	cu.p_cuMemGetInfo(&free_bytes, &total);
	s->pages = LEAST_PAGES;
	while (s->pages < SCREEN_MOST_PAGES && 2 * s->pages * SCREEN_PAGE_BYTES <= free_bytes / 8)
		s->pages *= 2;
	for (; s->pages >= LEAST_PAGES; s->pages /= 2)
		if (own_allocate(p, &s->table, s->pages * SCREEN_PAGE_BYTES))
			return true;
	return false;
}

void context_records_load_screen(struct context_records *p)
{
	struct screen_memory *s = &p->screen;
	CUmodule m;

	if (!p->digest || !gpu_screens(inject_session(), NULL))
		return;
	if (cu.p_cuModuleLoadData(&m, consan_screen_ptx)
			|| cu.p_cuModuleGetFunction(&s->screen, m, "consan_screen")
			|| cu.p_cuModuleGetFunction(&s->scan, m, "consan_screen_scan")
			|| !own_allocate(p, &s->result, sizeof(struct screen_result))
			|| !own_allocate(p, &s->input, INPUT_BYTES + MOST_EDGES * sizeof(struct screen_edge))
			|| !make_table(p)
			|| cu.p_cuMemsetD8Async(s->table, 0, s->pages * SCREEN_PAGE_BYTES, p->side)
			|| !warm_up(p))
		s->screen = NULL;
}

static const void *device(CUdeviceptr at)
{
	return (const void *)(uintptr_t)at;
}

/* Copies the maps and the allocations of this moment, and sets where they are. */
static bool send_input(const struct context_records *p, const struct gpu_launch *l, struct screen_job *j)
{
	struct gpu_screen_maps maps = { 0 };
	VEC(struct screen_range) ranges = { 0 };
	size_t at, bytes;
	bool good;

	gpu_screen_describe(l, j, &maps);
	inject_screen_ranges(&ranges.at, &ranges.n);
	at = maps.n * sizeof *maps.at;
	bytes = ranges.n * sizeof *ranges.at;
	good = at + bytes <= INPUT_BYTES
		&& (!at || !cu.p_cuMemcpyHtoDAsync(p->screen.input, maps.at, at, p->side))
		&& (!bytes || !cu.p_cuMemcpyHtoDAsync(p->screen.input + at, ranges.at, bytes, p->side));
	j->map = device(p->screen.input);
	j->range = device(p->screen.input + at);
	j->nranges = (uint32_t)ranges.n;
	vec_free(&maps);
	free(ranges.at);
	return good;
}

static uint32_t scan_blocks(const struct screen_memory *s)
{
	return (s->pages + SCREEN_SCAN_PAGES - 1) / SCREEN_SCAN_PAGES;
}

static void want_edges(const struct screen_memory *s, const struct gpu_launch *l, const struct site_words *w,
	struct screen_job *j)
{
	j->place = device(w->at + 2 * w->n * sizeof(uint32_t)
		+ gpu_module_screen(l->module)->tensor.n * sizeof(struct screen_tensor));
	j->like = j->place + w->n;
	j->edge = (void *)device(s->input + INPUT_BYTES);
	j->most_edges = MOST_EDGES;
}

bool context_records_screen(const struct inject_pool *pool, const struct gpu_launch *l,
	const struct site_words *w, CUdeviceptr many, uint32_t cap, struct screen_result *to)
{
	struct context_records *p = context_records(pool);
	struct screen_memory *s = &p->screen;
	const CUdeviceptr sites = w->at + w->n * sizeof(uint32_t);
	struct screen_job j = { .pool = device(pool->at), .digest = device(w->at), .site = device(sites),
		.tensor = device(sites + w->n * sizeof(uint32_t)), .result = (void *)device(s->result),
		.chunks = pool->chunks,
		.digests = device(p->digests), .many = device(many), .list = device(p->list), .cap = cap };
	void *args[] = { &j };

	screen_use_table(&j, s->table, s->pages, l->edges);
	if (l->edges)
		want_edges(s, l, w, &j);
	if (!s->screen || !send_input(p, l, &j)
			|| cu.p_cuMemsetD8Async(s->result, 0, sizeof(struct screen_result), p->side))
		return false;
	if (cu.p_cuLaunchKernel(s->screen, p->blocks, 1, 1, 128, 1, 1, 0, p->side, args, NULL)
			|| cu.p_cuLaunchKernel(s->scan, scan_blocks(s), 1, 1, 256, 1, 1, 0, p->side, args, NULL)) {
		s->screen = NULL; /* the table may not be empty */
		return false;
	}
	return !cu.p_cuMemcpyDtoHAsync(to, s->result, sizeof *to, p->side);
}

const char *context_records_screened(const struct inject_pool *pool, const struct gpu_launch *l,
	const struct screen_result *r, const struct record_head *head, char text[160])
{
	const struct screen_memory *s = &context_records(pool)->screen;
	const uint32_t given = head->next - 1, n = given < pool->chunks ? given : pool->chunks;
	const char *why = gpu_screen_refuses_records(head);

	if (why)
		return why;
	if (r->why) {
		gpu_screen_explain(l, r, text);
		return text;
	}
	if (r->edges > MOST_EDGES)
		return GPU_SCREEN_EDGES;
	return r->chunks != n || r->scanned != scan_blocks(s) ? "the GPU did not run it" : NULL;
}

struct screen_edge *context_records_edges(const struct inject_pool *pool, uint32_t n)
{
	const struct context_records *p = context_records(pool);
	struct screen_edge *e = base_alloc((n + 1) * sizeof *e);

	if (!n || (!cu.p_cuMemcpyDtoHAsync(e, p->screen.input + INPUT_BYTES, n * sizeof *e, p->side)
			&& !cu.p_cuStreamSynchronize(p->side)))
		return e;
	free(e);
	return NULL;
}
