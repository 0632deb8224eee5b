/* region: the named regions of a program (the inline functions of consan/region.h find these
 * functions by name). Counts the errors in each region; the session decides which launches
 * are checked. */
#include "queue.h"

#include <pthread.h>
#include <stdlib.h>

#define VISIBLE __attribute__((visibility("default")))

void consan_run_region_begin(const char *name);
size_t consan_run_region_end(void);
bool consan_run_expect_clean(void);

struct region {
	char *name;
	uint64_t errors; /* occurrences before the region began */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct region) open;

/* Launches belong to the region in which they are issued: they run before it ends. */

/* Occurrences of errors since the region began (NULL: since the start). Requires the lock. */
static uint64_t errors_in(const struct region *r)
{
	uint64_t now = device_session() ? consan_errors_seen(device_session()) : 0;

	return now - (r ? r->errors : 0);
}

VISIBLE void consan_run_region_begin(const char *name)
{
	struct region r = { .name = base_strdup(name ? name : "") };

	if (device_ready()) {
		free(r.name);
		return;
	}
	engine_wait_all(-1);
	pthread_mutex_lock(&lock);
	r.errors = consan_errors_seen(device_session());
	vec_push(&open, r);
	consan_in_region(device_session(), open.n > 0);
	pthread_mutex_unlock(&lock);
}

VISIBLE size_t consan_run_region_end(void)
{
	uint64_t errors = 0;

	engine_wait_all(-1);
	pthread_mutex_lock(&lock);
	if (open.n) {
		errors = errors_in(&open.at[--open.n]);
		free(open.at[open.n].name);
		consan_in_region(device_session(), open.n > 0);
	}
	pthread_mutex_unlock(&lock);
	return errors;
}

VISIBLE bool consan_run_expect_clean(void)
{
	const struct region *inner;
	uint64_t errors;

	engine_wait_all(-1);
	pthread_mutex_lock(&lock);
	inner = open.n ? &open.at[open.n - 1] : NULL;
	errors = errors_in(inner);
	if (errors)
		remark(REMARK_NOTE, "%s%s was expected to be clean: %llu occurrences of errors",
			inner ? "region " : "the program", inner ? inner->name : "",
			(unsigned long long)errors);
	pthread_mutex_unlock(&lock);
	return !errors;
}
