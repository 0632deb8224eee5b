/* pairs: cubins whose PTX a compiler has kept in the same folder (pairs.def). Only files with the same bytes
 * count. */
#include "origin.h"
#include "pairs.h"

#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH = 4 };               /* folders within each other */
#define PTX_MAX (INT64_C(1) << 31) /* bytes */

/* No more of it is read: a file may have grown to any length. */
static bool begins_with(const char *path, const void *cubin, size_t bytes)
{
	FILE *f = fopen(path, "re");
	char *begin = base_alloc(bytes);
	const bool same = f && fread(begin, 1, bytes, f) == bytes && !memcmp(begin, cubin, bytes);

	free(begin);
	if (f)
		fclose(f);
	return same;
}

/* The PTX of a file that has these bytes, from its folder. */
static char *ptx_of_file(const char *path, const void *cubin, size_t bytes, size_t *n)
{
	struct text ptx = { 0 }, name = { 0 };
	struct stat is;
	struct consan_err e = { 0 };

	text_printf(&name, "%.*s.ptx", (int)(strlen(path) - strlen(".cubin")), path);
	if (stat(name.at, &is) || !S_ISREG(is.st_mode) || is.st_size >= PTX_MAX || !begins_with(path, cubin, bytes)
			|| !text_read(&ptx, name.at, &e))
		text_free(&ptx);
	*n = ptx.n;
	text_free(&name);
	return ptx.at;
}

static char *find_in(const char *dir, const void *cubin, size_t bytes, size_t *n)
{
	char *const roots[] = { (char *)dir, NULL };
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	char *ptx = NULL;
	FTSENT *at;

	while (tree && !ptx && (at = fts_read(tree))) {
		if (at->fts_info == FTS_D && at->fts_level >= DEPTH)
			fts_set(tree, at, FTS_SKIP);
		if (at->fts_info == FTS_F && at->fts_namelen > strlen(".cubin")
				&& !strcmp(at->fts_name + at->fts_namelen - strlen(".cubin"), ".cubin")
				&& (size_t)at->fts_statp->st_size >= bytes)
			ptx = ptx_of_file(at->fts_path, cubin, bytes, n);
	}
	if (tree)
		fts_close(tree);
	return ptx;
}

char *pairs_find(const void *cubin, size_t bytes, size_t *n)
{
	static const struct { const char *variable, *below, *home; } row[] = {
#define PAIRS(variable, below, home) { variable, below, home },
#include "pairs.def"
#undef PAIRS
	};
	const char *home = getenv("HOME"), *value;
	char *ptx = NULL;

	for (size_t k = 0; k < ARRAY_SIZE(row) && !ptx; k++) {
		struct text dir = { 0 };

		value = getenv(row[k].variable);
		if (value && *value)
			text_printf(&dir, "%s%s", value, row[k].below);
		else if (row[k].home && home)
			text_printf(&dir, "%s/%s", home, row[k].home);
		if (dir.n)
			ptx = find_in(dir.at, cubin, bytes, n);
		text_free(&dir);
	}
	return ptx;
}
