/* run: runs a twin of a specimen by libconsan in the process of the test. */
#ifndef CONSAN_TESTS_RUN_H
#define CONSAN_TESTS_RUN_H

#include "libconsan/session/session.h"
#include "specimen.h"

struct run { /* resources of a run */
	struct consan *c;
	struct consan_module *module;
	void *buffer[MAX_ARGS];
	size_t nbuffers;
};

/* Loads and launches one twin in g->c, which the caller opened. run_close() frees the
 * resources and closes g->c. */
enum consan_status run_specimen(const struct specimen *s, enum twin twin, struct run *g);
void run_close(struct run *g);

#endif
