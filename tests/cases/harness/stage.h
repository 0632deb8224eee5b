/* stage: runs a twin of a specimen by libconsan in the process of the test. */
#ifndef CONSAN_TESTS_STAGE_H
#define CONSAN_TESTS_STAGE_H

#include "libconsan/session/session.h"
#include "specimen.h"

struct stage { /* resources of a run */
	struct consan *c;
	struct consan_module *module;
	void *buffer[MAX_ARGS];
	size_t nbuffers;
};

/* Loads and launches one twin in g->c, which the caller opened. stage_close() frees the
 * resources and closes g->c. */
enum consan_status stage_run(const struct specimen *s, enum twin twin, struct stage *g);
void stage_close(struct stage *g);

#endif
