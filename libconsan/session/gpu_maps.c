/* gpu_maps: see gpu_maps.h. */
#include "gpu_maps.h"

#include <stdlib.h>
#include <string.h>

void gpu_launch_open(struct gpu_launch *l)
{
	struct gpu_maps *m = l->maps = base_alloc(sizeof *m);

	m->l = l;
	m->param_bytes = gpu_module_params(l->module, l->kernel);
	if (!l->map || !l->params)
		return;
	/* a map is aligned to 64 bytes */
	for (uint32_t at = 0; at + CONSAN_TENSORMAP_BYTES <= m->param_bytes; at += 64) {
		struct gpu_map p = { .at = at };

		if (l->map(l->user, at, (const char *)l->params + at, &p.map))
			vec_push(&m->param, p);
	}
}

void gpu_launch_close(struct gpu_launch *l)
{
	vec_free(&l->maps->param);
	free(l->maps);
}

/* Finds the map at this address, or of this place among the parameters. */
static bool find(const struct gpu_maps *m, uint64_t at, struct tensormap *map, bool *in_global)
{
	if (at & RECORD_PARAM)
		at -= RECORD_PARAM;
	else if (m->base && at - m->base < m->param_bytes) /* a device function uses the address */
		at -= m->base;
	else
		*in_global = true;
	if (*in_global)
		return m->l->map && m->l->map(m->l->user, at, NULL, map);
	for (size_t k = 0; k < m->param.n; k++)
		if (m->param.at[k].at == at) {
			*map = m->param.at[k].map;
			return true;
		}
	return false;
}

static _Thread_local VEC(struct ev_gspan) global_span;

static bool add_span(void *user, uint64_t addr, uint64_t bytes)
{
	(void)user;
	vec_push(&global_span, ((struct ev_gspan){ addr, bytes }));
	return global_span.n < UINT16_MAX;
}

static struct tensor_copy copy_of(const struct tensormap *map, const struct decode_box *b)
{
	struct tensor_copy copy = { .map = map, .rows = b->rows };

	memcpy(copy.at, b->at, sizeof copy.at);
	memcpy(copy.offset, b->offset, sizeof copy.offset);
	return copy;
}

static bool refused(const struct tensormap *map, struct decode_box *b)
{
	const struct tensor_use use = { .ncoords = b->ncoords, .noffsets = b->noffsets,
		.load = b->load, .placed = b->placed };
	const struct tensor_copy copy = copy_of(map, b);
	const enum ev_space space = b->in_global ? SP_GLOBAL : SP_PARAM;

	return refuse_map_align(b->refused, b->map) ||
		tensor_refused(b->refused, space, b->map & ~RECORD_PARAM, &copy, &use);
}

static void find_global(const struct tensormap *map, struct decode_box *b)
{
	struct tensor_copy copy = copy_of(map, b);

	global_span.n = 0;
	tensor_spans(&copy, add_span, NULL);
	b->npadding = (uint32_t)global_span.n;
	copy.pad_end = UINT64_MAX;
	if (b->overwrites)
		tensor_padding(&copy, add_span, NULL);
	b->npadding = (uint32_t)global_span.n - b->npadding;
	b->gspans = global_span.at;
	b->ngspans = (uint32_t)global_span.n;
}

static uint64_t hash_of(const struct tensormap *map)
{
	const unsigned char *at = (const void *)map;
	uint64_t hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < sizeof *map; i++)
		hash = (hash ^ at[i]) * 0x100000001b3ull;
	return hash;
}

uint64_t gpu_maps_hash(const struct gpu_maps *m)
{
	uint64_t h = 0;

	for (size_t k = 0; k < m->param.n; k++) {
		struct tensormap map;

		memcpy(&map, &m->param.at[k].map, sizeof map); /* with its padding */
		map.address = 0;
		h = (h ^ hash_of(&map) ^ m->param.at[k].at) * 0x100000001b3u;
	}
	return h;
}

bool gpu_maps_box(const struct gpu_maps *m, struct decode_box *b)
{
	static _Thread_local VEC(struct ev_span) span;
	struct tensormap map;
	uint32_t row, pitch;

	if (!find(m, b->map, &map, &b->in_global))
		return false;
	if (refused(&map, b))
		return true;
	b->refused = NULL;
	b->align = tensor_box_align(&map);
	b->bytes = tensor_box_bytes(&map, b->rows);
	b->extent = tensor_box_extent(&map, b->rows);
	if (b->in_global)
		b->hash = hash_of(&map);
	if (b->wants_global)
		find_global(&map, b);
	if (tensor_box_dense(&map, b->rows))
		return true;
	row = tensor_box_row(&map);
	pitch = tensor_box_pitch(&map);
	span.n = 0;
	for (uint32_t k = 0; k < b->extent; k += pitch)
		for (uint32_t i = 0; i < row; i += 16)
			vec_push(&span, ((struct ev_span){ tensor_swizzle(
				(enum tensor_swizzle)map.swizzle, b->shared + k + i), 16 }));
	b->spans = span.at;
	b->nspans = (uint32_t)span.n;
	return true;
}
