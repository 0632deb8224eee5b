/* candidate: the edits that are worth a trial for the findings of a launch. */
#ifndef CONSAN_CANDIDATE_H
#define CONSAN_CANDIDATE_H

#include "attempt.h"
#include "place.h"

#include "libconsan/check/check.h"

enum { MAX_CANDIDATES = 512 }; /* of a launch */
enum { UNSURE = 16 }; /* candidate.order of what is tried after the edits of hints and rules */

struct candidate {
	struct place place[2]; /* made together */
	unsigned nplaces;
	size_t finding;
	unsigned order; /* the lowest is tried first */
	uint64_t when;  /* candidate_when(); set by candidates_add() */
	bool waits;     /* adds or changes a wait, which may now return at once */
};

struct candidates {
	struct placer *placer;
	struct check *check;
	const struct finding *const *f; /* check_findings() */
	const struct attempt_finding *of;
	bool tried;     /* false: only the places of edits are needed */
	VEC(struct candidate) all;
};

/* Finds the place of finding i's edit, which it shows from now on, and adds what can be tried. */
void candidates_add(struct candidates *c, size_t i);
/* Findings in the order in which they occurred; those about two clusters have no place in it, and
 * come last. */
static inline uint64_t candidate_when(const struct finding *f)
{
	return f->order - 1;
}
/* Part k of the candidate as an edit of its finding; EDIT_NONE: it has no such part. */
struct finding_edit candidate_edit(const struct candidates *c, const struct candidate *x,
	unsigned k);
/* Finding i shows this edit from now on; also: NULL, or to be made with it. hint: its hint stays.
 * */
void candidates_show(struct candidates *c, size_t i, const struct finding_edit *e,
	const struct finding_edit *also, bool hint);

#endif
