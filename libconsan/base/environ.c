/* environ: the variables of consan, CONSAN_..., as they were when the process started: programs clear
 * their environment before they call CUDA. */
#include "base.h"

#include <stdlib.h>
#include <string.h>

enum { VARIABLES = 32 };
static struct { char *name, *value; } kept[VARIABLES];

/* As the first constructor of the process (-z initfirst), before the C library has its `environ`. */
__attribute__((constructor)) static void keep(int argc, char **argv, char **environment)
{
	size_t n = 0;

	(void)argc;
	(void)argv;
	for (char **e = environment; e && *e && n < VARIABLES; e++) {
		const char *value = strchr(*e, '=');

		if (!value || strncmp(*e, "CONSAN_", 7))
			continue;
		kept[n].name = base_strndup(*e, (size_t)(value - *e));
		kept[n++].value = base_strdup(value + 1);
	}
}

const char *base_environ(const char *name)
{
	const char *now = getenv(name);

	for (size_t i = 0; !now && i < VARIABLES && kept[i].name; i++)
		if (!strcmp(kept[i].name, name))
			return kept[i].value;
	return now;
}
