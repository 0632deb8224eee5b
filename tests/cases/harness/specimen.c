/* specimen: see specimen.h. */
#include "specimen.h"
#include "libconsan/base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the process because the file is malformed. */
_Noreturn static void bad(const char *path, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void bad(const char *path, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", path);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

/* ---- text ---- */

char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	struct text t = { 0 };
	char part[4096];
	size_t n;

	if (!f)
		bad(path, "cannot be read");
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

/* The comment after the code of a line; NULL: none. */
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
	bad(s->path, "no line is marked %s", mark);
}

static void read_expectation(struct specimen *s, char *words)
{
	struct expectation *e = &s->expect[s->nexpect];
	char *save, *word = strtok_r(words, " ", &save);

	if (s->nexpect++ == MAX_EXPECT || !word || strlen(word) != 5)
		bad(s->path, "bad expect");
	snprintf(e->code, sizeof e->code, "%s", word);
	while ((word = strtok_r(NULL, " ", &save))) {
		if (!strncmp(word, "hint:", 5)) {
			snprintf(e->hint, sizeof e->hint, "%s", word + 5);
			continue;
		}
		if (*word != '@') {
			snprintf(e->severity, sizeof e->severity, "%s", word);
			continue;
		}
		if (e->nlines == MAX_MARKS)
			bad(s->path, "too many marks");
		e->line[e->nlines++] = marked_line(s, word);
	}
}

static void read_edit(struct specimen *s, const char *words)
{
	struct expected_edit *e = &s->edit[s->nedits];
	char mark[32];

	if (s->nedits++ == MAX_MARKS || sscanf(words, "%7s %7s %31s", e->kind, e->verified, mark) != 3)
		bad(s->path, "bad edit");
	e->line = marked_line(s, mark);
}

static unsigned number_of(const char *words, const char *name, unsigned otherwise)
{
	const char *at = strstr(words, name);

	return at && at < words + line_length(words) ? (unsigned)strtoul(at + strlen(name), NULL, 0) : otherwise;
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
		s->preferred = number_of(value, "preferred=", 0);
	} else if (!strcmp(copy, "// options")) {
		snprintf(s->options, sizeof s->options, "%s", value);
	} else if (!strcmp(copy, "// arg")) {
		if (s->nargs == MAX_ARGS)
			bad(s->path, "too many arguments");
		s->arg[s->nargs++] = strchr(line, ':') + 2;
		s->cpu_only |= !strncmp(s->arg[s->nargs - 1], "multicast", 9)
			|| !strncmp(s->arg[s->nargs - 1], "texture", 7)
			|| !strncmp(s->arg[s->nargs - 1], "surface", 7);
	} else if (!strcmp(copy, "// expect")) {
		read_expectation(s, value);
	} else if (!strcmp(copy, "// edit")) {
		read_edit(s, value);
	} else if (!strcmp(copy, "// also")) {
		snprintf(s->also, sizeof s->also, "%s", value);
	} else if (!strcmp(copy, "// groups")) {
		s->groups = (unsigned)strtoul(value, NULL, 10);
	}
}

void specimen_read(struct specimen *s, const char *path)
{
	*s = (struct specimen){ .path = path, .text = read_file(path), .block = 32, .grid = 1,
		.cluster = 1 };
	for (const char *at = s->text; *at; at += line_length(at) + (at[line_length(at)] != 0)) {
		if (s->nlines == MAX_LINES)
			bad(path, "too many lines");
		s->line[s->nlines++] = at;
	}
	for (size_t i = 0; i < s->nlines; i++) {
		const char *c = trailing(s->line[i]);

		if (!strncmp(s->line[i], "// ", 3))
			read_header(s, s->line[i]);
		for (int k = 0; c && k < NTWINS; k++)
			s->twins |= has_word(c, line_length(c), twin_name[k]);
	}
	if (s->twins != (s->nexpect > 0))
		bad(path, "a pair has `expect` and lines that differ");
}

char *specimen_twin(const struct specimen *s, enum twin twin)
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

bool specimen_differs(const struct specimen *s, size_t line)
{
	const char *c = trailing(s->line[line]);

	return c && (has_word(c, line_length(c), twin_name[RACY])
		|| has_word(c, line_length(c), twin_name[FIXED]));
}

/* ---- arguments ---- */

/* The value of each word is its index. */
static uint64_t make_buffer(const struct specimen_maker *make, uint64_t bytes)
{
	uint32_t *word = base_alloc(bytes);
	uint64_t at;

	for (uint64_t i = 0; i < bytes / 4; i++)
		word[i] = (uint32_t)i;
	at = make->buffer(make, word, bytes);
	free(word);
	return at;
}

/* tensor f16 dim=64,64 box=64,8 swizzle=0 pitch=128 over=0: innermost dimension first. pitch: bytes
 * from row to row, by default those of a row. over=1: it lies in the buffer of the argument before */
static void make_tensor(const struct specimen *s, const char *spec,
	struct specimen_maker *make, unsigned char *map)
{
	static const struct { const char *name; unsigned type, bytes; } types[] = {
		{ "f16", 6, 2 }, { "f32", 7, 4 },
	};
	uint64_t dim[2], stride[1];
	uint32_t box[2], step[2] = { 1, 1 };
	const char *dims = strstr(spec, "dim="), *boxes = strstr(spec, "box=");
	unsigned which = !strncmp(spec, "f32", 3);
	struct consan_tensormap_args a = { .type = types[which].type, .rank = 2, .dim = dim,
		.stride = stride, .box = box, .elem_stride = step,
		.swizzle = number_of(spec, "swizzle=", 0) };

	if (!dims || sscanf(dims, "dim=%lu,%lu", &dim[0], &dim[1]) != 2 ||
			!boxes || sscanf(boxes, "box=%u,%u", &box[0], &box[1]) != 2)
		bad(s->path, "bad tensor");
	stride[0] = number_of(spec, "pitch=", (unsigned)(dim[0] * types[which].bytes));
	a.address = number_of(spec, "over=", 0) ? make->newest : make_buffer(make, stride[0] * dim[1]);
	make->map(make->user, &a, map);
}

/* texture width=32 height=4, of floats: an object over the buffer of the argument before */
static uint64_t make_object(const struct specimen_maker *make, const char *spec, bool surface)
{
	struct consan_texture t = { .width = number_of(spec, "width=", 1),
		.height = number_of(spec, "height=", 1), .surface = surface,
		.format = CONSAN_TEXEL_F32, .channels = 1, .linear = number_of(spec, "linear=", 0) };

	memset(t.address, CONSAN_ADDRESS_CLAMP, sizeof t.address);
	t.level[0] = (struct consan_level){ make->newest, t.width * 4, t.width * 4 };
	return make->texture(make, &t);
}

void specimen_argument(const struct specimen *s, size_t i, struct specimen_maker *make,
	unsigned char value[CONSAN_TENSORMAP_BYTES])
{
	const char *spec = strchr(s->arg[i], ' ') + 1;
	uint64_t n;

	if (!strncmp(s->arg[i], "tensor", 6)) {
		make_tensor(s, spec, make, value);
		return;
	}
	n = strtoull(spec, NULL, 0);
	make->device = number_of(spec, "device=", 0);
	if (!strncmp(s->arg[i], "buffer", 6))
		n = make->newest = make_buffer(make, n);
	else if (!strncmp(s->arg[i], "multicast", 9))
		n = make->newest = make->multicast(make, n);
	else if (!strncmp(s->arg[i], "texture", 7) || !strncmp(s->arg[i], "surface", 7))
		n = make_object(make, spec, s->arg[i][0] == 's');
	memcpy(value, &n, sizeof n);
}
