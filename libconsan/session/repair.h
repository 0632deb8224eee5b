/* repair: which edit removes the findings of a launch.
 *
 * After a launch the edit of each finding gets its place in the code (place.h). If the launch can
 * be run again (trial.h), edits are tried, the surest first, until one leaves no finding or the time
 * is used up. An edit that removes some findings is kept while the others are looked at. A finding
 * that disappears with an edit has that edit. */
#ifndef CONSAN_REPAIR_H
#define CONSAN_REPAIR_H

#include "internal.h"

/* Before the launch runs. NULL: edits will not be tried, by the option `verify_fixes` or because it
 * would cost too much here. config is that of the launch; l and params must outlive the result. */
struct repair;
struct repair *repair_open(struct consan *c, const struct consan_launch *l, const void *params,
	const struct check_config *config);
/* After the launch, which took so many seconds: sets the edits of the check's findings. r: NULL is
 * fine. */
void repair_launch(struct repair *r, struct consan *c, const struct consan_launch *l,
	struct check *check, double seconds);
void repair_close(struct repair *r); /* NULL is fine */

#endif
