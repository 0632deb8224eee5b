/* specimen: see specimen.h. Judges nothing. */
#include "specimen.h"
#include "../libconsan/base.h"
#include "../libconsan/finding.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	struct text t = { 0 };
	char part[4096];
	size_t n;

	cr_assert(f, "%s cannot be read", path);
	while ((n = fread(part, 1, sizeof part, f)) > 0)
		text_add(&t, part, n);
	fclose(f);
	return t.at;
}

bool has_word(const char *s, size_t n, const char *word)
{
	const size_t len = strlen(word);

	for (size_t i = 0; i + len <= n; i++) {
		if (strncmp(s + i, word, len) || (i && s[i - 1] != ' '))
			continue;
		if (i + len == n || s[i + len] == ' ')
			return true;
	}
	return false;
}

/* ---- a specimen ---- */

static const char *const twin_name[] = { "racy", "fixed" };

size_t line_length(const char *s)
{
	return strcspn(s, "\n");
}

/* The comment behind the code of a line; NULL: none. */
static const char *trailing(const char *s)
{
	const char *c = strstr(s, "//");

	return c && c < s + line_length(s) && c > s + strspn(s, " \t") ? c + 2 : NULL;
}

static unsigned marked_line(const struct specimen *s, const char *mark)
{
	for (size_t i = 0; i < s->nlines; i++) {
		const char *c = trailing(s->line[i]);

		if (c && has_word(c, line_length(c), mark))
			return (unsigned)i + 1;
	}
	cr_assert_fail("%s: no line is marked %s", s->path, mark);
	return 0;
}

static void read_expectation(struct specimen *s, char *words)
{
	struct expectation *e = &s->expect[s->nexpect++];
	char *save, *word = strtok_r(words, " ", &save);

	cr_assert(s->nexpect <= MAX_EXPECT && word && rule_by_code(word) != RULE_NONE,
		"%s: bad expect", s->path);
	snprintf(e->code, sizeof e->code, "%s", word);
	while ((word = strtok_r(NULL, " ", &save))) {
		cr_assert(e->nlines < MAX_MARKS);
		e->line[e->nlines++] = marked_line(s, word);
	}
}

static unsigned number_of(const char *words, const char *name, unsigned otherwise)
{
	const char *at = strstr(words, name);

	return at ? (unsigned)strtoul(at + strlen(name), NULL, 0) : otherwise;
}

static void read_header(struct specimen *s, const char *line)
{
	char copy[512], *value;

	snprintf(copy, sizeof copy, "%.*s", (int)line_length(line), line);
	value = strchr(copy, ':');
	if (!value)
		return;
	*value++ = 0;
	value += strspn(value, " ");
	if (!strcmp(copy, "// launch")) {
		s->block = number_of(value, "block=", s->block);
		s->grid = number_of(value, "grid=", s->grid);
		s->cluster = number_of(value, "cluster=", s->cluster);
		s->shared = number_of(value, "shared=", s->shared);
		s->launches = number_of(value, "launches=", s->launches);
		s->programmatic = number_of(value, "programmatic=", 0);
	} else if (!strcmp(copy, "// options")) {
		snprintf(s->options, sizeof s->options, "%s", value);
	} else if (!strcmp(copy, "// arg")) {
		cr_assert(s->nargs < MAX_ARGS);
		s->arg[s->nargs++] = strchr(line, ':') + 2;
	} else if (!strcmp(copy, "// expect")) {
		read_expectation(s, value);
	} else if (!strcmp(copy, "// also")) {
		snprintf(s->also, sizeof s->also, "%s", value);
	}
}

void specimen_read(struct specimen *s, const char *path)
{
	*s = (struct specimen){ .path = path, .text = read_file(path), .block = 32, .grid = 1, .cluster = 1 };
	for (const char *at = s->text; *at; at += line_length(at) + (at[line_length(at)] != 0)) {
		cr_assert(s->nlines < MAX_LINES);
		s->line[s->nlines++] = at;
	}
	for (size_t i = 0; i < s->nlines; i++) {
		const char *c = trailing(s->line[i]);

		if (!strncmp(s->line[i], "// ", 3))
			read_header(s, s->line[i]);
		for (int k = 0; c && k < NTWINS; k++)
			s->twins |= has_word(c, line_length(c), twin_name[k]);
	}
	cr_assert(s->twins == (s->nexpect > 0), "%s: a pair has `expect` and lines that differ",
		path);
}

/* The PTX of one twin: lines of the other one are blank, so numbers stay. */
static char *specimen_twin(const struct specimen *s, enum twin twin)
{
	struct text t = { 0 };

	for (size_t i = 0; i < s->nlines; i++) {
		const char *c = trailing(s->line[i]);

		if (!c || !has_word(c, line_length(c), twin_name[!twin]))
			text_add(&t, s->line[i], line_length(s->line[i]));
		text_add(&t, "\n", 1);
	}
	return t.at;
}

/* ---- running one ---- */

static void *new_buffer(struct stage *g, uint64_t bytes)
{
	uint32_t *at = consan_malloc(g->c, bytes, CONSAN_MEM_DEVICE);

	cr_assert(at);
	g->buffer[g->nbuffers++] = at;
	for (uint64_t i = 0; i < bytes / 4; i++)
		at[i] = (uint32_t)i;
	return at;
}

/* tensor f16 dim=64,64 box=64,8 swizzle=0: innermost first, packed */
static void make_tensor(struct stage *g, const char *spec, unsigned char *map)
{
	static const struct { const char *name; unsigned type, bytes; } types[] = {
		{ "f16", 6, 2 }, { "f32", 7, 4 },
	};
	uint64_t dim[2], stride[1];
	uint32_t box[2], step[2] = { 1, 1 };
	unsigned which = !strncmp(spec, "f32", 3);
	struct tensormap_args a = { .type = types[which].type, .rank = 2, .dim = dim,
		.stride = stride, .box = box, .elem_stride = step,
		.swizzle = number_of(spec, "swizzle=", 0) };
	struct err e = { 0 };

	cr_assert_eq(sscanf(strstr(spec, "dim="), "dim=%lu,%lu", &dim[0], &dim[1]), 2);
	cr_assert_eq(sscanf(strstr(spec, "box="), "box=%u,%u", &box[0], &box[1]), 2);
	stride[0] = dim[0] * types[which].bytes;
	a.address = (uint64_t)(uintptr_t)new_buffer(g, stride[0] * dim[1]);
	cr_assert(consan_tensormap(&a, map, &e), "%s", e.text);
}

static void make_arguments(const struct specimen *s, struct stage *g,
	const struct consan_kernel *k, unsigned char *params)
{
	for (size_t i = 0; i < s->nargs; i++) {
		const char *value = strchr(s->arg[i], ' ') + 1;
		uint32_t offset, bytes;

		cr_assert(consan_kernel_param(k, i, &offset, &bytes), "%s: no parameter %zu",
			s->path, i);
		if (!strncmp(s->arg[i], "buffer", 6)) {
			void *at = new_buffer(g, strtoul(value, NULL, 0));

			memcpy(params + offset, &at, sizeof at);
		} else if (!strncmp(s->arg[i], "tensor", 6)) {
			cr_assert_eq(bytes, TENSORMAP_BYTES);
			make_tensor(g, value, params + offset);
		} else {
			const uint64_t n = strtoull(value, NULL, 0);

			memcpy(params + offset, &n, bytes);
		}
	}
}

enum consan_status specimen_run(const struct specimen *s, enum twin twin,
	struct stage *g)
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
		twin_name[twin], s->path, e.line, e.text);
	free(text);
	return status;
}

void stage_close(struct stage *g)
{
	for (size_t i = 0; i < g->nbuffers; i++)
		consan_free(g->c, g->buffer[i]);
	consan_unload(g->module);
	consan_close(g->c);
}
