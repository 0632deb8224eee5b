/* missing_wait: edits that add a wait for an mbarrier where a thread lacks one (finding_need). */
#ifndef CONSAN_MISSING_WAIT_H
#define CONSAN_MISSING_WAIT_H

#include "candidate.h"

enum { MISSING_WAITS = 64 };
/* Returns the number of candidates: 0 if the finding names no wait. */
size_t missing_wait(struct placer *p, const struct finding *f, struct candidate to[MISSING_WAITS]);

#endif
