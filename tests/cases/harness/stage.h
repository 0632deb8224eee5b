/* stage: a twin of a specimen, run on the executor by libconsan itself, within the running
 * test. What the findings should be is not known here (judge.h). */
#ifndef CONSAN_TESTS_STAGE_H
#define CONSAN_TESTS_STAGE_H

#include "libconsan/session/session.h"
#include "specimen.h"

struct stage { /* what a run needs, to be given back after it */
	struct consan *c;
	struct consan_module *module;
	void *buffer[MAX_ARGS];
	size_t nbuffers;
};

/* Loads and launches one twin in g->c, which the caller opened; what it made is
 * given back, with g->c, by stage_close. */
enum consan_status stage_run(const struct specimen *s, enum twin twin, struct stage *g);
void stage_close(struct stage *g);

#endif
