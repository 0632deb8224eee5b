/* attempt: the edits of a launch's findings: their places in the code, and which of them, alone or
 * two together, leave no finding. */
#ifndef CONSAN_ATTEMPT_H
#define CONSAN_ATTEMPT_H

#include "libconsan/check/check.h"
#include "libconsan/ptx/ptx.h"
#include "trial.h"

/* Of a finding of the check, in the order of check_findings(). */
struct attempt_finding {
	struct trial_key key;
	bool counts;    /* above a note, not suppressed */
	bool solved;    /* set here: a kept edit removes it */
};

struct attempt_limits {
	double each, all; /* seconds of processor time: of a trial, of all */
};

/* Sets the edits of the check's findings: their places, and if `trials` is not NULL, what trying
 * them showed. untried: why they are not tried, or not all of them. Returns the seconds used. */
double attempt_edits(struct trials *trials, const struct ptx_module *m, struct check *check,
	struct attempt_finding *of, const struct attempt_limits *limits, enum finding_untried untried);

#endif
