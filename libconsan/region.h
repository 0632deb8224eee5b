/* consan/region.h: named regions of a program that runs under consan-run. Header-only, for C
 * and C++. Without consan-run, the functions have no effect. No library is needed (before
 * glibc 2.34: -ldl).
 *
 *     consan_region_begin("attention");
 *     attention<<<...>>>(...);
 *     if (!consan_expect_clean())
 *         return 1;
 *     consan_region_end();
 */
#ifndef CONSAN_REGION_H
#define CONSAN_REGION_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void *dlsym(void *handle, const char *symbol);

/* The function of this name in consan's library; NULL without consan-run. The handle NULL is
 * glibc's RTLD_DEFAULT. */
#define CONSAN_REGION_CALL(type, name) ((type)dlsym(NULL, #name))

/* Begins a region. Regions nest; all threads of the process share them. With --regions, only
 * launches inside a region are checked. name: for the report; copied. */
static inline void consan_region_begin(const char *name)
{
	void (*f)(const char *) = CONSAN_REGION_CALL(void (*)(const char *), consan_run_region_begin);

	if (f)
		f(name);
}

/* Ends the innermost region. Returns the number of occurrences of errors in it, including
 * occurrences of findings known before; 0 without consan-run, or without a region. */
static inline size_t consan_region_end(void)
{
	size_t (*f)(void) = CONSAN_REGION_CALL(size_t (*)(void), consan_run_region_end);

	return f ? f() : 0;
}

/* Returns true if no error has occurred in the innermost region so far (outside of regions: in
 * the program), or without consan-run. Otherwise the report names the region. */
static inline bool consan_expect_clean(void)
{
	bool (*f)(void) = CONSAN_REGION_CALL(bool (*)(void), consan_run_expect_clean);

	return f ? f() : true;
}

#undef CONSAN_REGION_CALL
#ifdef __cplusplus
}
#endif
#endif
