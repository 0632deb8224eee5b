/* gpu_emulate_screen: screens a launch of emulated GPU mode, on the host (instrument/decode/screen.c). */
#include "gpu_parts.h"

#include "libconsan/base/base.h"
#include "libconsan/exec/exec.h"
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Where nothing is below an address, it is outside of all memory. */
static uint32_t find_ranges(struct screen_range **to)
{
	VEC(struct screen_range) all = { 0 };
	struct exec_mem m;

	vec_push(&all, ((struct screen_range){ 0, 0, UINT64_MAX }));
	for (size_t k = 0; exec_mem_at(k, &m); k++)
		vec_push(&all, ((struct screen_range){ m.at, m.at + m.bytes, UINT64_MAX }));
	*to = all.at;
	return (uint32_t)all.n;
}

#define SCREEN_PAGES 8192u         /* with edges, half of them are used */
#define SCREEN_EDGES (1u << 16)

/* All of it is zero. NULL: there is no memory. */
static void *open_table(struct screen_job *j, bool edges)
{
	void *table = mmap(NULL, SCREEN_PAGES * SCREEN_PAGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (table == MAP_FAILED)
		return NULL;
	screen_use_table(j, (uintptr_t)table, SCREEN_PAGES, edges);
	return table;
}

static void close_table(void *table)
{
	if (table)
		munmap(table, SCREEN_PAGES * SCREEN_PAGE_BYTES);
}

/* NULL: the launch is clean; else why it is not known to be. */
static const char *screen(struct consan *c, struct gpu_launch *g, struct screen_edge **edge, char text[160])
{
	const struct decode_screen_sites *sites = gpu_module_screen(g->module);
	struct screen_result result = { 0 };
	struct screen_range *range = NULL;
	struct gpu_screen_maps maps = { 0 };
	struct screen_job j = { .pool = g->pool, .chunks = g->chunks, .site = sites->word,
		.tensor = sites->tensor.at, .result = &result };
	uint32_t n, *digest = gpu_module_site_words(g->module, &n);
	void *table;

	g->edges = gpu_screen_wants_edges(c, g);
	table = open_table(&j, g->edges);
	if (g->edges) {
		*edge = base_alloc(SCREEN_EDGES * sizeof **edge);
		j.place = gpu_module_places(g->module, &n);
		j.like = j.place + sites->n;
		j.edge = *edge;
		j.most_edges = SCREEN_EDGES;
	}
	j.digest = digest;
	gpu_screen_describe(g, &j, &maps);
	j.map = maps.at;
	if (g->memory)
		j.nranges = find_ranges(&range);
	j.range = range;
	if (table)
		decode_screen(&j);
	close_table(table);
	vec_free(&maps);
	free(range);
	free(digest);
	g->edge = *edge;
	g->nedges = result.edges;
	gpu_screen_explain(g, &result, text);
	return !table ? "there is no memory for it" : result.edges > j.most_edges ? GPU_SCREEN_EDGES
		: result.why ? text : NULL;
}

struct screen_edge *gpu_emulate_screen(struct consan *c, struct gpu_launch *g)
{
	struct screen_edge *edge = NULL;
	char text[160];
	const char *why;

	if (!gpu_screens(c, g->module))
		return NULL;
	why = gpu_screen_refuses(c, g);
	if (!why)
		why = gpu_screen_refuses_records(g->pool);
	if (!why)
		why = screen(c, g, &edge, text);
	g->screened = !why;
	if (gpu_times(c))
		fprintf(stderr, "consan: screen of %s: %s\n", g->kernel, why ? why : "clean");
	return edge;
}
