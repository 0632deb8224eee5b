/* gpu_screen: which launches can be screened (instrument/record/screen.h), what a screen must know of
 * them, and what it says. */
#include "gpu_parts.h"

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"
#include "libconsan/ptx/opcodes.h"
#include "gpu_maps.h"
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gpu_screens(const struct consan *c, const struct gpu_module *m)
{
	return gpu_global(c) && !gpu_each(c) && (!m || m->code->global);
}

static uint64_t threads_of(const struct gpu_launch *l)
{
	return ((uint64_t)l->block[0] * l->block[1] * l->block[2] + 31) / 32 * 32;
}

static uint64_t ctas_of(const struct gpu_launch *l)
{
	return (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
}

bool gpu_screen_wants_edges(struct consan *c, const struct gpu_launch *l)
{
	return l->op && c->order && order_wants(c->order);
}

/* The full check also compares a launch with others: what it did is needed then, not only that it is
 * clean by itself. */
const char *gpu_screen_refuses(struct consan *c, const struct gpu_launch *l)
{
	const struct rewrite_func *f = rewrite_find(l->module->code, l->kernel);

	if (!f || f->refused)
		return "it is not checked";
	if (!l->ended || l->fault)
		return "it did not end";
	if (l->chunk || l->lost)
		return "its records were drained";
	if (l->programmatic)
		return "it may begin before the launch before it has ended";
	if (l->beside || gpu_overlaps(c))
		return "other launches ran beside it";
	if (f->orders_grid)
		return "it has atomic or strong accesses";
	if (ptx_find(l->module->ptx, "malloc") || ptx_find(l->module->ptx, "free"))
		return "it may allocate memory";
	if (gpu_screen_wants_edges(c, l) && !l->module->place)
		return "it has too many instructions";
	if (ctas_of(l) * threads_of(l) >= SCREEN_MOST_THREADS)
		return "it has too many threads";
	return NULL;
}

const char *gpu_screen_refuses_records(const void *pool)
{
	const struct record_head *head = pool;

	if (head->dropped)
		return "records are missing";
	if (((const uint32_t *)pool)[RECORD_MAPS_AT / 4])
		return "it uses tensor maps in global memory";
	return NULL;
}

/* ---- sites ---- */

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static uint64_t mix_text(uint64_t h, const char *s)
{
	for (; s && *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return mix(h, 1);
}

/* Instructions that a report would show in the same words have the same number: the copies of one in an
 * unrolled loop. */
static uint64_t identity(const struct gpu_module *m, uint32_t k)
{
	const struct site *s = site_get(m->site[k]);
	uint64_t h = mix(m->screen.word[k] & SCREEN_KIND, (uint64_t)m->code->site.at[k].insn->op << 32);

	if (!s->loc)
		return mix(h, m->site[k]) | 1;
	h = mix(mix_text(h, s->kernel), s->value);
	h = mix(h, (uint64_t)s->constant << 2 | s->unread << 1 | s->unread_load);
	for (const struct site_loc *l = s->loc; l; l = l->inlined_at)
		h = mix(mix_text(mix_text(h, l->file), l->function), (uint64_t)l->line << 32 | l->col);
	return h | 1;
}

/* The number of the k-th site's place, which is its instruction's. */
static uint32_t number_place(struct gpu_module *m, struct number_map *numbers, uint32_t k)
{
	const enum ptx_op op = (enum ptx_op)m->code->site.at[k].insn->op;
	const uint64_t id = (uint64_t)m->site[k] << 1 | 1;
	uint64_t number = number_map_get(numbers, id);

	if (number)
		return (uint32_t)number;
	vec_push(&m->places, ((struct gpu_place){ m->site[k],
		op == OP_cp_reduce_async_bulk || op == OP_cp_reduce_async_bulk_tensor }));
	number_map_put(numbers, id, m->places.n - 1);
	return (uint32_t)m->places.n - 1;
}

void gpu_screen_open(struct gpu_module *m)
{
	struct number_map numbers = { 0 }, alike = { 0 };
	const size_t n = m->code->site.n;

	decode_screen_sites(m->code, &m->screen);
	m->place = base_alloc((2 * n + 1) * sizeof *m->place);
	m->like = m->place + n;
	vec_push(&m->places, ((struct gpu_place){ 0 }));
	for (uint32_t k = 1; k < n; k++) {
		uint64_t key, place;

		if ((m->screen.word[k] & SCREEN_KIND) == SCREEN_NONE)
			continue;
		place = number_place(m, &numbers, k);
		key = identity(m, k);
		if (!number_map_get(&alike, key))
			number_map_put(&alike, key, place);
		m->place[k] = (uint16_t)place;
		m->like[place] = (uint16_t)number_map_get(&alike, key);
	}
	if (m->places.n > UINT16_MAX) {
		free(m->place);
		m->place = NULL;
	}
	number_map_free(&numbers);
	number_map_free(&alike);
}

void gpu_screen_close(struct gpu_module *m)
{
	decode_screen_sites_free(&m->screen);
	free(m->place);
	vec_free(&m->places);
}

const uint16_t *gpu_module_places(const struct gpu_module *m, uint32_t *nlike)
{
	*nlike = (uint32_t)m->places.n;
	return m->place;
}

const struct decode_screen_sites *gpu_module_screen(const struct gpu_module *m)
{
	return &m->screen;
}

/* False: copies through such a map are not followed. */
static bool describe_map(const struct tensormap *m, struct screen_map *to)
{
	if (m->mode != TM_TILE || m->interleave || tensor_padded(m->type) || tensormap_check(m)
			|| tensormap_unsupported(m))
		return false;
	to->address = m->address;
	to->rank = m->rank;
	to->bits = tensor_element_bits(m);
	memcpy(to->stride, m->stride, sizeof to->stride);
	memcpy(to->last, m->dim, sizeof to->last);
	for (unsigned d = 0; d < m->rank; d++) {
		to->step[d] = m->elem_stride[d];
		to->count[d] = tensor_box_count(m, d);
	}
	return true;
}

void gpu_screen_describe(const struct gpu_launch *l, struct screen_job *j, struct gpu_screen_maps *maps)
{
	_Alignas(8) unsigned char bytes[CONSAN_TENSORMAP_BYTES];

	j->nctas = (uint32_t)ctas_of(l);
	j->threads = (uint32_t)threads_of(l);
	j->param_bytes = l->maps->param_bytes;
	j->nsites = l->module->screen.n;
	maps->n = 0;
	for (uint32_t at = 0; at < j->param_bytes; at += TENSORMAP_ALIGN) {
		struct screen_map to = { .offset = at };
		struct tensormap map;

		if (gpu_maps_param(l->maps, at, bytes) && !tensormap_unpack(&map, bytes, TM_IM2COL)
				&& describe_map(&map, &to))
			vec_push(maps, to);
	}
	j->nmaps = (uint32_t)maps->n;
}

/* ---- what it says ---- */

static int by_address(const void *a, const void *b)
{
	const struct screen_edge *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

void gpu_screen_accesses(const struct gpu_launch *l, void (*each)(void *user, const struct check_range *r),
	void *user)
{
	const struct gpu_module *m = l->module;
	struct screen_edge *e = base_alloc(((size_t)l->nedges + 2) * sizeof *e);
	struct check_range r = { 0 };
	uint32_t key = 0;

	if (l->nedges) {
		memcpy(e, l->edge, l->nedges * sizeof *e);
		qsort(e, l->nedges, sizeof *e, by_address);
	}
	for (uint32_t k = 0; k < l->nedges; k++) {
		/* a page ends, and the next one goes on */
		if (!e[k].key && e[k + 1].addr == e[k].addr && key && screen_alike(m->like, e[k + 1].key, key)) {
			k++;
			continue;
		}
		r.bytes = e[k].addr - r.addr;
		if (key && r.bytes)
			each(user, &r);
		key = e[k].key;
		r = (struct check_range){ .addr = e[k].addr, .write = key & 1 };
		if (!key)
			continue;
		r.site = m->places.at[key >> 1].site;
		r.strong = m->places.at[key >> 1].reduces;
	}
	free(e);
}

void gpu_screen_explain(const struct gpu_launch *l, const struct screen_result *r, char text[160])
{
	static const struct { uint32_t why; const char *text; } row[] = {
		{ SCREEN_DAMAGED, "records that are not valid" },
		{ SCREEN_FULL, "more memory than can be screened" },
		{ SCREEN_OUTSIDE, "memory outside of allocations" },
		{ SCREEN_ALIGN, "a misaligned address" },
		{ SCREEN_MAP, "a use of a tensor map that is not followed" },
		{ SCREEN_INEXACT, "accesses to single bytes, compared with other operations" },
		{ SCREEN_OTHER, "an instruction that is not followed" },
		{ SCREEN_RACE, "memory that is written and not only one thread's" },
	};
	const struct rewrite *code = l->module->code;
	const char *what = "";
	uint32_t line = 0;

	for (size_t k = 0; k < ARRAY_SIZE(row) && !*what; k++)
		if (r->why & row[k].why)
			what = row[k].text;
	if (r->site && r->site < code->site.n)
		line = code->site.at[r->site].insn->line;
	if (line)
		snprintf(text, 160, "%s, line %u of its PTX", what, line);
	else
		snprintf(text, 160, "%s, at 0x%llx", what, (unsigned long long)r->addr);
}
