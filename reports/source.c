/* source: lines of source files. A file may have been compiled on another machine, so it is
 * looked for under ever shorter ends of its path, in the working directory and in the roots. Files
 * are cached, because a report shows many lines of few files.
 *
 * Names of files come from debug information, which the author of the program, the event file or the
 * JSON report chose, and a report is passed on. So only files below the roots are quoted, wherever
 * links lead, and no hidden ones, as .git/config or .env are. */
#include "reports/reports.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES (64 << 20) /* a larger file is not read */

struct source {
	char *file;             /* as the compiler wrote it */
	char *path;             /* where it was found; NULL if it was not */
	bool outside;           /* it is below no root: not read */
	int64_t time;           /* of its last change, in seconds since the epoch */
	char *text;
	VEC(size_t) line;       /* offset of each line in text */
	size_t n;               /* bytes of text */
};

static VEC(struct source *) known;

/* ---- roots: real paths ---- */

static VEC(char *) roots;
static VEC(char *) further; /* by default */
static bool chosen;        /* roots are set */

/* The working tree that the folder is in: the nearest folder above it, or itself, that git manages;
 * else itself. NULL: there is no such folder, or it is the root of the file system. free() it. */
static char *tree_of(const char *folder)
{
	char *real = realpath(folder, NULL), *at = real ? base_strdup(real) : NULL, *slash;
	struct text git = { 0 };
	bool found = false;

	while (at && *at && !found) {
		git.n = 0;
		text_printf(&git, "%s/.git", at);
		found = !access(git.at, F_OK);
		slash = strrchr(at, '/');
		if (!found && slash)
			*slash = 0;
	}
	text_free(&git);
	if (found) {
		free(real);
		real = at;
	} else {
		free(at);
	}
	if (real && !strcmp(real, "/")) {
		free(real);
		real = NULL;
	}
	return real;
}

void report_source_also(const char *folder)
{
	char *tree = tree_of(folder);

	for (size_t i = 0; tree && i < further.n; i++)
		if (!strcmp(further.at[i], tree)) {
			free(tree);
			return;
		}
	if (tree)
		vec_push(&further, tree);
}

static void default_roots(void)
{
	char *tree = tree_of(".");

	if (tree)
		vec_push(&roots, tree);
	for (size_t i = 0; i < further.n; i++)
		vec_push(&roots, base_strdup(further.at[i]));
	chosen = true;
}

void report_source_roots(const struct options *o)
{
	char *folder;

	report_source_forget();
	for (size_t i = 0; i < roots.n; i++)
		free(roots.at[i]);
	roots.n = 0;
	chosen = o->source_root.n > 0;
	for (size_t i = 0; i < o->source_root.n; i++)
		if ((folder = realpath(o->source_root.at[i], NULL)))
			vec_push(&roots, folder);
}

/* Is the file, wherever it really is, below a root, and not hidden? */
static bool is_allowed(const char *path)
{
	char *real = realpath(path, NULL);
	bool allowed = false;

	for (size_t i = 0; real && i < roots.n && !allowed; i++) {
		const size_t n = strcmp(roots.at[i], "/") ? strlen(roots.at[i]) : 0;

		allowed = !strncmp(real, roots.at[i], n) && real[n] == '/' && !strstr(real + n, "/.");
	}
	free(real);
	return allowed;
}

/* ---- files ---- */

static bool read_text(struct source *s, const char *path, const struct stat *st)
{
	FILE *in = st->st_size < MAX_BYTES ? fopen(path, "re") : NULL;

	if (!in)
		return false;
	s->text = base_alloc((size_t)st->st_size + 1);
	s->n = fread(s->text, 1, (size_t)st->st_size, in);
	fclose(in);
	for (size_t i = 0; i < s->n; i++) /* columns stay */
		if ((unsigned char)s->text[i] < 0x20 ? !strchr("\n\t\r", s->text[i]) || !s->text[i]
				: s->text[i] == 0x7f)
			s->text[i] = '?';
	for (size_t at = 0; at < s->n;) {
		const char *end = memchr(s->text + at, '\n', s->n - at);

		vec_push(&s->line, at);
		at = end ? (size_t)(end - s->text) + 1 : s->n;
	}
	return true;
}

/* True: the search is over. */
static bool try(struct source *s, const char *path)
{
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	if (!is_allowed(path)) {
		if (s->path)
			return false;
		s->outside = true;
	} else if (read_text(s, path, &st)) {
		s->outside = false;
	} else {
		return false;
	}
	free(s->path);
	s->path = base_strdup(path);
	s->time = st.st_mtime;
	return !s->outside;
}

static bool try_below_roots(struct source *s, const char *end)
{
	struct text path = { 0 };
	bool found = false;

	for (size_t i = 0; i < roots.n && !found && *end != '/'; i++) {
		path.n = 0;
		text_printf(&path, "%s/%s", roots.at[i], end);
		found = try(s, path.at);
	}
	text_free(&path);
	return found;
}

static const struct source *source_of(const char *file)
{
	struct source *s;

	for (size_t i = 0; i < known.n; i++)
		if (!strcmp(known.at[i]->file, file))
			return known.at[i];
	if (!chosen)
		default_roots();
	s = base_alloc(sizeof *s);
	s->file = base_strdup(file);
	for (; file && *file; file += file ? strspn(file, "/") : 0) {
		if (try(s, file) || try_below_roots(s, file))
			break;
		file = strchr(file, '/');
		if (!file)
			break;
	}
	vec_push(&known, s);
	return s;
}

bool report_source_outside(const char *file)
{
	return file && source_of(file)->outside;
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
