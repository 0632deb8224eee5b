/* waits: the waiters of a hang, joined where several warps wait alike. */
#ifndef CONSAN_REPORTS_WAITS_H
#define CONSAN_REPORTS_WAITS_H

#include "libconsan/base/base.h"
#include "libconsan/finding/finding.h"

/* Warps of one block that wait at the same place on the same object. */
struct wait_group {
	unsigned first;      /* index of a waiter that stands for all */
	unsigned n;          /* waiters */
	struct text warps;   /* "0-3 7" */
};
struct wait_groups {
	VEC(struct wait_group) group;
};

/* In the order of the first waiter of each. To be freed by waits_free(). */
void waits_find(struct wait_groups *w, const struct finding *f);
void waits_free(struct wait_groups *w);

/* Do both wait on the same barrier or condition? */
bool waits_same_object(const struct finding_waiter *a, const struct finding_waiter *b);
/* Is waiter i one of the group? */
bool waits_in(const struct wait_group *g, const struct finding *f, unsigned i);
/* "warps 0-3, block (0,0,0)" */
void waits_describe(struct text *t, const struct wait_group *g, const struct finding *f);

#endif
