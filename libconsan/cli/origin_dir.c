/* origin_dir: the folder of the store in which the processes of the program remember what machine
 * code was made from (libconsan/origin/). */
#include "run.h"

#include "libconsan/options/options.h"
#include "libconsan/origin/origin.h"

#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Folders in `dir` begin with a dot, as the other files there are records. */
static char *own_dir(const char *dir, const char *name)
{
	struct text t = { 0 };

	text_printf(&t, "%s/.%s", dir, name);
	return t.at;
}

static void cache_in(const char *variable, const char *folder, const char *name)
{
	struct text path = { 0 };

	text_printf(&path, "%s/%s", folder, name);
	setenv(variable, path.at, 0);
	text_free(&path);
}

/* Where the user has not set it: compilers that can keep the PTX with the machine code do so
 * (libconsan/origin/pairs.def); others have caches of their own, as in the user's there is machine code
 * from runs without consan. lasting: the store of all runs, or NULL. */
static void set_compilers(const char *dir, const char *lasting)
{
	char *kept = own_dir(dir, "kept");

	if (!mkdir(kept, 0700)) {
		setenv("CUTE_DSL_KEEP", "ptx,cubin", 0);
		setenv("CUTE_DSL_DUMP_DIR", kept, 0);
		setenv("CUTE_DSL_LINEINFO", "1", 0);
		cache_in("CUPY_CACHE_DIR", lasting ? lasting : kept, "cupy");
		cache_in("NUMBA_CACHE_DIR", lasting ? lasting : kept, "numba");
		cache_in("WARP_CACHE_PATH", lasting ? lasting : kept, "warp");
	}
	free(kept);
}

static void remove_kept(const char *dir)
{
	char *kept = own_dir(dir, "kept");
	char *const roots[] = { kept, NULL };
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
	FTSENT *at;

	while (tree && (at = fts_read(tree)))
		if (at->fts_info != FTS_D)
			remove(at->fts_path);
	if (tree)
		fts_close(tree);
	free(kept);
}

/* As the program may change its working directory. */
static char *absolute(char *dir)
{
	char *real = realpath(dir, NULL);

	free(dir);
	return real;
}

/* The store of all runs; NULL: there is none. why: the reason, if it is one to be told. */
static char *open_lasting(const struct options *o, struct consan_err *why)
{
	char *origin = NULL;
	bool made;

	if (!*o->code_cache)
		origin = origin_default_dir();
	else if (strcmp(o->code_cache, "none"))
		origin = base_strdup(o->code_cache);
	if (!origin)
		return NULL;
	/* a home that cannot be written is nothing new */
	made = origin_make_dir(origin, *o->code_cache ? why : NULL);
	if (made && origin_trusts(origin, why))
		return origin;
	free(origin);
	return NULL;
}

char *open_origin(const struct options *o, const char *dir, bool *kept, struct consan_err *why)
{
	char *origin = open_lasting(o, why);
	const bool lasting = origin;

	*kept = lasting;
	if (!lasting) {
		origin = own_dir(dir, "origin");
		origin_make_dir(origin, NULL);
	}
	origin = absolute(origin);
	set_compilers(dir, lasting ? origin : NULL);
	setenv(ORIGIN_ENV, origin ? origin : "", 1);
	return origin;
}

void close_origin(const struct options *o, const char *dir, char *origin)
{
	char *own;

	if (dir)
		remove_kept(dir);
	if (origin) {
		own = own_dir(dir, "origin");
		own = absolute(own);
		origin_trim(origin, own && !strcmp(own, origin) ? 0
			: o->code_cache_limit << 20);
		free(own);
	}
	free(origin);
}
