/* origin_dir: the folder of the store in which the processes of the program remember what machine
 * code was made from (libconsan/origin/). */
#include "run.h"

#include "libconsan/options/options.h"
#include "libconsan/origin/origin.h"

#include <stdlib.h>
#include <string.h>

/* PTX of some ten thousand kernels, as it is compressed */
#define STORE_BYTES (UINT64_C(512) << 20)

/* The folder in `dir` begins with a dot, as the other files there are records. */
static char *own_dir(const char *dir)
{
	struct text t = { 0 };

	text_printf(&t, "%s/.origin", dir);
	return t.at;
}

/* As the program may change its working directory. */
static char *absolute(char *dir)
{
	char *real = realpath(dir, NULL);

	free(dir);
	return real;
}

char *open_origin(const struct options *o, const char *dir)
{
	struct consan_err e = { 0 };
	char *origin = NULL;

	if (!*o->code_cache)
		origin = origin_default_dir();
	else if (strcmp(o->code_cache, "none"))
		origin = base_strdup(o->code_cache);
	if (origin && !origin_make_dir(origin, &e)) {
		if (*o->code_cache)
			print_error("--code-cache: %s; what is compiled is remembered for this run only", e.text);
		free(origin);
		origin = NULL;
	}
	if (!origin) {
		origin = own_dir(dir);
		origin_make_dir(origin, NULL);
	}
	origin = absolute(origin);
	setenv(ORIGIN_ENV, origin ? origin : "", 1);
	return origin;
}

void close_origin(const char *dir, char *origin)
{
	char *own;

	if (origin) {
		own = own_dir(dir);
		own = absolute(own);
		origin_trim(origin, own && !strcmp(own, origin) ? 0 : STORE_BYTES);
		free(own);
	}
	free(origin);
}
