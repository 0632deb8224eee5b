/* steps: the steps of a history as the timeline of the page and the trace show them. */
#ifndef CONSAN_REPORTS_STEPS_H
#define CONSAN_REPORTS_STEPS_H

#include "libconsan/base/base.h"
#include "libconsan/finding/finding.h"

/* What executes a step or an operation that it issued. */
enum engine { WARP, COPIES, TMA, TENSOR, TMEM };
extern const char *const engine_name[]; /* by enum engine */

enum engine step_engine(const struct history_step *s);
/* Does it start an asynchronous operation? */
bool step_is_issue(const struct history_step *s);
/* Does step s complete the asynchronous operation that step a issued? */
bool step_ends(const struct history_step *a, const struct history_step *s);
/* Do both concern the same phase of the same barrier? */
bool step_same_phase(const struct history_step *a, const struct history_step *b);
/* Is s a wait that the arrivals of a phase complete? */
bool step_is_wait(const struct history_step *s);

/* The number of the CTA of side i in the history of f. */
unsigned history_side_cta(const struct finding *f, unsigned i);
/* Is step i of the history that of a side? */
bool history_is_side(const struct history *y, uint32_t i);

/* "CTA 1"; blockIdx if the history has two clusters. */
void describe_cta(struct text *t, const struct finding *f, unsigned cta);
/* The object of a step: "full[1]", the number of a barrier, the size of a copy; or nothing. */
void describe_step_object(struct text *t, const struct history *y, const struct history_step *s);
/* "arrive full[1] · 3" */
void describe_step(struct text *t, const struct finding *f, const struct history_step *s);

#endif
