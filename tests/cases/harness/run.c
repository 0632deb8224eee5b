/* run: see run.h. */
#include "run.h"
#include "libconsan/exec/exec.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Memory at the run's placement, or where it is free in steps of 1 GiB from there. */
static void *place_buffer(struct run *g, uint64_t bytes, unsigned device)
{
	const uint64_t page = 4096, offset = g->place->at % page;
	uint64_t at = g->place->at - offset;
	void *buffer;

	g->mapped = 16u << 20;
	for (unsigned i = 0; i < 64 && !g->map; i++, at += 1u << 30) {
		void *map = mmap((void *)(uintptr_t)at, g->mapped, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

		if (map == MAP_FAILED)
			continue;
		g->map = map;
		g->used = offset;
	}
	cr_assert(g->map && g->used + bytes <= g->mapped);
	buffer = g->map + g->used;
	g->used += (bytes + g->place->gap + 255) & ~255ull;
	exec_mem_put(&(struct exec_mem){ (uintptr_t)buffer, bytes, MEM_DEVICE, false, device,
		exec_device_memory(device), false, NULL });
	return buffer;
}

static uint64_t new_buffer(const struct specimen_maker *make, const uint32_t *words, uint64_t bytes)
{
	struct run *g = make->user;
	void *at = g->place ? place_buffer(g, bytes, make->device)
		: consan_malloc_on(g->c, bytes, CONSAN_MEM_DEVICE, make->device, NULL);

	cr_assert(at && g->nbuffers < MAX_ARGS);
	g->buffer[g->nbuffers++] = at;
	memcpy(at, words, bytes);
	return (uintptr_t)at;
}

/* Addresses that no memory has. */
static uint64_t new_multicast(const struct specimen_maker *make, uint64_t bytes)
{
	struct run *g = make->user;
	struct consan_binding bound[MAX_ARGS];

	g->multicast = (uint64_t)(uintptr_t)g->buffer[0] + (UINT64_C(1) << 50);
	for (size_t i = 0; i < g->nbuffers; i++)
		bound[i] = (struct consan_binding){ g->multicast, bytes, (uintptr_t)g->buffer[i],
			(unsigned)consan_mem_device(g->buffer[i]) };
	consan_mem_multicast((void *)(uintptr_t)g->multicast, bytes, NULL, (unsigned)g->nbuffers, bound,
		g->nbuffers);
	return g->multicast;
}

static uint64_t new_texture(const struct specimen_maker *make, const struct consan_texture *t)
{
	struct run *g = make->user;

	cr_assert(g->ntextures < MAX_ARGS);
	return g->texture[g->ntextures++] = consan_texture_add(t);
}

static void new_map(void *user, const struct consan_tensormap_args *a, unsigned char *map)
{
	struct consan_err e = { 0 };

	(void)user;
	cr_assert(consan_tensormap(a, map, &e), "%s", e.text);
}

static void make_arguments(const struct specimen *s, struct run *g,
	const struct consan_kernel *k, unsigned char *params)
{
	struct specimen_maker make = { .user = g, .buffer = new_buffer,
		.multicast = new_multicast, .texture = new_texture, .map = new_map };

	for (size_t i = 0; i < s->nargs; i++) {
		_Alignas(64) unsigned char value[CONSAN_TENSORMAP_BYTES];
		uint32_t offset, bytes;

		cr_assert(consan_kernel_param(k, i, &offset, &bytes) && bytes <= sizeof value,
			"%s: no parameter %zu", s->path, i);
		specimen_argument(s, i, &make, value);
		memcpy(params + offset, value, bytes);
	}
}

enum consan_status run_specimen(const struct specimen *s, enum twin twin,
	struct run *g)
{
	char *text = specimen_twin(s, twin);
	struct consan_err e = { 0 };
	struct consan_module *m = consan_load_ptx(g->c, s->path, text, strlen(text), &e);
	const struct consan_kernel *k;
	_Alignas(64) unsigned char params[1024] = { 0 };
	enum consan_status status = CONSAN_OK;

	cr_assert(m, "%s:%d: %s", s->path, e.line, e.text);
	g->module = m;
	k = consan_kernel(m, consan_kernel_name(m, 0), &e);
	cr_assert(k, "%s: %s", s->path, e.text);
	make_arguments(s, g, k, params);
	for (unsigned i = 0; !i || (i < s->launches && status == CONSAN_OK); i++)
		status = consan_launch(g->c, &(struct consan_launch){ .kernel = k,
			.grid = { s->grid, 1, 1 }, .block = { s->block, 1, 1 },
			.cluster = { s->cluster > 1 ? s->cluster : 0, s->cluster > 1, s->cluster > 1 },
			.preferred = { s->preferred, s->preferred > 0, s->preferred > 0 },
			.shared_dynamic = s->shared,
			.params = params, .programmatic = s->programmatic && i }, &e);
	cr_assert(status != CONSAN_BAD_LAUNCH && status != CONSAN_UNCHECKED, "%s: %s:%d: %s",
		twin == RACY ? "racy" : "fixed", s->path, e.line, e.text);
	free(text);
	return status;
}

void run_close(struct run *g)
{
	if (g->multicast)
		consan_mem_unmap(g->c, (void *)(uintptr_t)g->multicast);
	for (size_t i = 0; i < g->ntextures; i++)
		consan_texture_remove(g->texture[i]);
	for (size_t i = 0; i < g->nbuffers; i++)
		if (g->place)
			exec_mem_remove(g->buffer[i]);
		else
			consan_free(g->c, g->buffer[i]);
	consan_unload(g->module);
	consan_close(g->c);
	if (g->map)
		munmap(g->map, g->mapped);
}
