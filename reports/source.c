/* source: lines of source files. A file may have been compiled on another machine, so it is
 * looked for under ever shorter ends of its path. Files are cached, because a report shows
 * many lines of few files. */
#include "reports/reports.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_BYTES (64 << 20) /* a larger file is not read */

struct source {
	char *file;             /* as the compiler wrote it */
	char *path;             /* where it was found; NULL if it was not */
	int64_t time;           /* of its last change, in seconds since the epoch */
	char *text;
	VEC(size_t) line;       /* offset of each line in text */
	size_t n;               /* bytes of text */
};

static VEC(struct source *) known;

static bool read_text(struct source *s, const char *path, const struct stat *st)
{
	FILE *in = st->st_size < MAX_BYTES ? fopen(path, "re") : NULL;

	if (!in)
		return false;
	s->text = base_alloc((size_t)st->st_size + 1);
	s->n = fread(s->text, 1, (size_t)st->st_size, in);
	fclose(in);
	for (size_t at = 0; at < s->n;) {
		const char *end = memchr(s->text + at, '\n', s->n - at);

		vec_push(&s->line, at);
		at = end ? (size_t)(end - s->text) + 1 : s->n;
	}
	return true;
}

static const struct source *source_of(const char *file)
{
	struct source *s;
	struct stat st;

	for (size_t i = 0; i < known.n; i++)
		if (!strcmp(known.at[i]->file, file))
			return known.at[i];
	s = base_alloc(sizeof *s);
	s->file = base_strdup(file);
	for (; file && *file; file += file ? strspn(file, "/") : 0) {
		if (!stat(file, &st) && S_ISREG(st.st_mode) && read_text(s, file, &st)) {
			s->path = base_strdup(file);
			s->time = st.st_mtime;
			break;
		}
		file = strchr(file, '/');
		if (!file)
			break;
	}
	vec_push(&known, s);
	return s;
}

void report_source_forget(void)
{
	for (size_t i = 0; i < known.n; i++) {
		struct source *s = known.at[i];

		free(s->file);
		free(s->path);
		free(s->text);
		vec_free(&s->line);
		free(s);
	}
	vec_free(&known);
}

bool report_source_newer(const char *file, int64_t built)
{
	const struct source *s = source_of(file);

	return s->path && s->time > built;
}

const char *report_source_at(const char *file, unsigned line, size_t *n)
{
	const struct source *s = file ? source_of(file) : NULL;
	const char *at;

	if (!s || !line || line > s->line.n)
		return NULL;
	at = s->text + s->line.at[line - 1];
	*n = (line < s->line.n ? s->line.at[line] : s->n) - s->line.at[line - 1];
	while (*n && (at[*n - 1] == '\n' || at[*n - 1] == '\r'))
		--*n;
	return at;
}

char *report_source_line(const char *file, unsigned line)
{
	size_t n;
	const char *at = report_source_at(file, line, &n);

	return at ? base_strndup(at, n) : NULL;
}
