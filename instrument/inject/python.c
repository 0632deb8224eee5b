/* python: what the Python package (libconsan/python) asks of the process in GPU mode; it finds
 * these functions by name. */
#include "internal.h"

#include <string.h>

#define VISIBLE __attribute__((visibility("default")))

void *consan_run_function(const char *name);
struct consan *consan_run_session(void);

/* A function of consan.h that can be used on the session of the program; NULL: no such one. Kernels
 * are launched by the program only. */
VISIBLE void *consan_run_function(const char *name)
{
	static const struct { const char *name; void (*call)(void); } all[] = {
#define F(name) { #name, (void (*)(void))name }
		F(consan_version), F(consan_findings), F(consan_finding), F(consan_errors),
		F(consan_describe), F(consan_kernels), F(consan_coverage), F(consan_write_report),
		F(consan_clear),
#undef F
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(name, all[i].name))
			return (void *)all[i].call;
	return NULL;
}

/* The session of this process. NULL: there is none. */
VISIBLE struct consan *consan_run_session(void)
{
	return inject_session();
}
