/* run: see run.h. */
#include "run.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static uint64_t new_buffer(void *user, const uint32_t *words, uint64_t bytes)
{
	struct run *g = user;
	void *at = consan_malloc(g->c, bytes, CONSAN_MEM_DEVICE);

	cr_assert(at && g->nbuffers < MAX_ARGS);
	g->buffer[g->nbuffers++] = at;
	memcpy(at, words, bytes);
	return (uintptr_t)at;
}

static void new_map(void *user, const struct tensormap_args *a, unsigned char *map)
{
	struct err e = { 0 };

	(void)user;
	cr_assert(consan_tensormap(a, map, &e), "%s", e.text);
}

static void make_arguments(const struct specimen *s, struct run *g,
	const struct consan_kernel *k, unsigned char *params)
{
	struct specimen_maker make = { .user = g, .buffer = new_buffer, .map = new_map };

	for (size_t i = 0; i < s->nargs; i++) {
		_Alignas(64) unsigned char value[TENSORMAP_BYTES];
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
	struct err e = { 0 };
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
			.cluster = { s->cluster, 1, 1 }, .shared_dynamic = s->shared,
			.params = params, .programmatic = s->programmatic && i }, &e);
	cr_assert(status != CONSAN_BAD_LAUNCH && status != CONSAN_UNCHECKED, "%s: %s:%d: %s",
		twin == RACY ? "racy" : "fixed", s->path, e.line, e.text);
	free(text);
	return status;
}

void run_close(struct run *g)
{
	for (size_t i = 0; i < g->nbuffers; i++)
		consan_free(g->c, g->buffer[i]);
	consan_unload(g->module);
	consan_close(g->c);
}
