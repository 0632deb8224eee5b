/* mbar_check: the rules about the use of mbarriers, called at the transitions of the state machine
 * (mbar.c). */
#ifndef CONSAN_CHECK_MBAR_CHECK_H
#define CONSAN_CHECK_MBAR_CHECK_H

#include "internal.h"

/* A finding about the current event and the barrier; x: the other operation, or NULL. NULL: only
 * counted. */
struct finding *mbar_report_as(struct cluster *c, unsigned rule, enum severity sev,
	const struct event *e, const struct mbar *m, const char *what, const struct past_op *x,
	const char *other);
struct finding *mbar_report(struct cluster *c, unsigned rule, const struct event *e,
	const struct mbar *m, const char *what, const struct past_op *x, const char *other);
const char *mbar_operation(const struct event *e); /* its name */
void mbar_check_early(struct cluster *c, const struct event *e, struct mbar *m);
void mbar_check_expects(struct cluster *c, const struct event *e, struct mbar *m);
void mbar_check_wait(struct cluster *c, const struct event *e, struct mbar *m, struct warp *w);
void mbar_check_late_wait(struct cluster *c, const struct event *e, struct mbar *m, int64_t seen);
void mbar_check_users(struct cluster *c, const struct event *e, const struct mbar *m);
void mbar_check_signals(struct cluster *c, const struct event *e, struct mbar *m);
void mbar_check_lag(struct cluster *c, const struct event *e, struct mbar *m, struct mb_view *v);

#endif
