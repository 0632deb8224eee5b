/* environ: programs clear their environment before they call CUDA. The driver loads the library of GPU
 * mode by a variable of the environment when it is initialised, and that library reads consan's own; and
 * system() starts programs with what is left. */
#include "libconsan/base/base.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_kept(const char *variable)
{
	return !strncmp(variable, "CONSAN_", 7) || !strncmp(variable, "CUDA_INJECTION64_PATH=", 22)
		|| !strncmp(variable, "LD_PRELOAD=", 11) || !strncmp(variable, "LD_LIBRARY_PATH=", 16);
}

/* Replaces that of the C library. */
__attribute__((visibility("default"))) int clearenv(void);
int clearenv(void)
{
	int (*const real)(void) = (int (*)(void))(intptr_t)dlsym(RTLD_NEXT, "clearenv");
	const bool watched = base_environ("CONSAN_RESULTS");
	VEC(char *) kept = { 0 };
	int r;

	for (char **e = environ; watched && e && *e; e++)
		if (is_kept(*e))
			vec_push(&kept, base_strdup(*e));
	r = real ? real() : -1;
	for (size_t i = 0; i < kept.n; i++)
		putenv(kept.at[i]); /* which keeps it */
	vec_free(&kept);
	return r;
}
