/* repair: which edit removes the findings of a launch.
 *
 * After a launch the edit of each finding gets its place in the code (place.h). If the launch can
 * be run again (trial.h), edits are tried, the surest first, until one leaves no finding or the time
 * is used up. An edit that removes some findings is kept while the others are looked at. A finding
 * that disappears with an edit has that edit. */
#ifndef CONSAN_REPAIR_H
#define CONSAN_REPAIR_H

#include "internal.h"

/* Before the launch runs: prepares trials, unless the option `verify_fixes` is against it or they
 * would cost too much here. config is that of the launch; l and params must outlive the result. */
struct repair;
struct repair *repair_open(struct consan *c, const struct consan_launch *l, const void *params,
	const struct check_config *config);
/* Must what the launch overwrites be kept? */
bool repair_keeps(const struct repair *r);
/* While it runs: exec_observer.first_write(). What was there is kept, as the launch runs again from it. */
void repair_first_write(struct repair *r, uint64_t at, uint64_t bytes);
/* After the launch, which took so many seconds (cpu_span_seconds()): sets the edits of the check's
 * findings. */
void repair_launch(struct repair *r, struct consan *c, const struct consan_launch *l,
	struct check *check, double seconds);
void repair_close(struct repair *r); /* NULL is fine */
/* For findings of a launch that cannot be run again: sets the places of their edits in the module,
 * or leaves them if m is NULL, and why they were not tried. */
void repair_place(struct consan *c, const struct ptx_module *m, struct check *check,
	enum finding_untried untried);

#endif
