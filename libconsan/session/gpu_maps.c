/* gpu_maps: see gpu_maps.h. */
#include "gpu_maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gpu_launch_open(struct gpu_launch *l)
{
	struct gpu_maps *m = l->maps = base_alloc(sizeof *m);

	m->l = l;
	m->param_bytes = gpu_module_params(l->module, l->kernel);
	pthread_mutex_init(&m->lock, NULL);
}

void gpu_launch_close(struct gpu_launch *l)
{
	pthread_mutex_destroy(&l->maps->lock);
	free(l->maps);
}

bool gpu_maps_param(const struct gpu_maps *m, uint64_t at, void *bytes)
{
	const struct gpu_launch *l = m->l;

	return l->map && l->params && at + CONSAN_TENSORMAP_BYTES <= m->param_bytes &&
		l->map(l->user, at, (const char *)l->params + at, bytes);
}

/* Reads the bytes of the map at this address, or at this place among the parameters. */
static bool find(const struct gpu_maps *m, struct decode_box *b, void *bytes)
{
	if (b->map & RECORD_PARAM)
		return gpu_maps_param(m, b->map - RECORD_PARAM, bytes);
	if (m->base && b->map - m->base < m->param_bytes) /* a device function uses the address */
		return gpu_maps_param(m, b->map - m->base, bytes);
	b->in_global = true;
	return m->l->map && m->l->map(m->l->user, b->map, NULL, bytes);
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

/* unreadable: why the bytes are no map, or NULL. */
static bool refused(const struct tensormap *map, const char *unreadable, struct decode_box *b)
{
	const struct tensor_use use = { .mode = b->mode, .ncoords = b->ncoords, .noffsets = b->noffsets,
		.load = b->load, .placed = b->placed };
	const struct tensor_copy copy = copy_of(map, b);
	const enum ev_space space = b->in_global ? SP_GLOBAL : SP_PARAM;
	const uint64_t at = b->map & ~RECORD_PARAM;

	if (refuse_map_align(b->refused, b->map))
		return true;
	if (unreadable)
		return refusal_set(b->refused, FAULT_TENSORMAP, space, at, CONSAN_TENSORMAP_BYTES, "%s",
			unreadable);
	return tensor_refused(b->refused, space, at, &copy, &use);
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

uint64_t gpu_maps_hash(const struct gpu_maps *m)
{
	_Alignas(8) unsigned char bytes[CONSAN_TENSORMAP_BYTES];
	struct tensormap map;
	uint64_t h = 0;

	/* a map is aligned to 64 bytes */
	for (uint32_t at = 0; at < m->param_bytes; at += 64) {
		if (!gpu_maps_param(m, at, bytes) || tensormap_unpack(&map, bytes, TM_IM2COL) ||
				tensormap_check(&map))
			continue;
		map.address = 0;
		h = (h ^ tensormap_hash(&map) ^ at) * 0x100000001b3u;
	}
	return h;
}

/* Returns false. */
static bool unread(struct gpu_maps *m, const struct decode_box *b, const char *why)
{
	const uint64_t at = b->map & ~RECORD_PARAM;

	pthread_mutex_lock(&m->lock);
	if (!*m->unread && b->map & RECORD_PARAM)
		snprintf(m->unread, sizeof m->unread, "at byte %llu of the parameters: %s",
			(unsigned long long)at, why);
	else if (!*m->unread)
		snprintf(m->unread, sizeof m->unread, "at 0x%llx: %s", (unsigned long long)at, why);
	pthread_mutex_unlock(&m->lock);
	return false;
}

bool gpu_maps_box(struct gpu_maps *m, struct decode_box *b)
{
	static _Thread_local VEC(struct ev_span) span;
	_Alignas(8) unsigned char bytes[CONSAN_TENSORMAP_BYTES];
	struct tensormap map;
	struct tensor_copy copy;
	const char *unreadable;
	uint32_t row, pitch;

	if (!find(m, b, bytes))
		return unread(m, b, m->base ? "no memory of the GPU that can be copied"
			: "no memory of the GPU that can be copied, and the address of the parameters is not known");
	unreadable = tensormap_unpack(&map, bytes, tensor_mode_of(b->mode));
	if (unreadable && !m->l->fault) /* the GPU can read what this version cannot */
		return unread(m, b, unreadable);
	if (map.mode >= TM_WIDE && !b->placed) /* wHalo, which counts in the size, is not recorded */
		return unread(m, b, "the size of its copies depends on an operand that is not recorded");
	if (refused(&map, unreadable, b))
		return true;
	if (tensormap_unsupported(&map))
		return unread(m, b, tensormap_unsupported(&map));
	b->refused = NULL;
	copy = copy_of(&map, b);
	b->align = tensor_box_align(&map);
	b->bytes = tensor_box_bytes(&copy);
	b->extent = tensor_box_extent(&copy);
	if (b->in_global)
		b->hash = tensormap_hash(&map);
	if (b->wants_global)
		find_global(&map, b);
	if (tensor_box_dense(&copy))
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

bool gpu_same_map(const void *a, const void *b)
{
	return tensormap_same(a, b);
}
