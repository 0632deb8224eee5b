/* consan/region.h: what a program under consan-run can say about its own parts.
 * Header-only, for C and C++: a program that is not under consan-run does
 * nothing here, and needs no library (before glibc 2.34: -ldl).
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

/* consan's function of this name, if consan is in the process. NULL is glibc's
 * RTLD_DEFAULT: the global search order. */
#define CONSAN_REGION_CALL(type, name) ((type)dlsym(NULL, #name))

/* A part of the program begins; regions nest, per process. With --regions, only
 * launches inside some region are checked. name: copied, for the report. */
static inline void consan_region_begin(const char *name)
{
	void (*f)(const char *) = CONSAN_REGION_CALL(void (*)(const char *), consan_run_region_begin);

	if (f)
		f(name);
}

/* The innermost region ends. Returns how often errors were seen inside it, those
 * known from before included; 0 without consan-run, or without a region. */
static inline size_t consan_region_end(void)
{
	size_t (*f)(void) = CONSAN_REGION_CALL(size_t (*)(void), consan_run_region_end);

	return f ? f() : 0;
}

/* Says that the innermost region (outside of any: the program) has shown no
 * error so far. If it has, returns false and the report names the region. True
 * without consan-run. */
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
