/* group: findings that have one cause.
 *
 * One missing barrier shows in several accesses, and threads that ran ahead break the phases of
 * later barriers. group.def says which findings may have one cause, through what they have in
 * common, and which of them names it. Two causes of different families stay two groups, and so do
 * two of one family unless one change in the program could repair both. */
#ifndef CONSAN_GROUP_H
#define CONSAN_GROUP_H

#include "types.h"

#include <stddef.h>

/* Sets `group` and `rank` of all findings and sorts them by both: groups by their highest severity,
 * then by their first occurrence; consequences as they occurred. The result does not depend on the
 * order in which the findings are given. */
void group_findings(struct finding *f, size_t n);

/* The highest severity of the group that begins at f[0]. *n: in, the findings from there on; out,
 * those of the group. */
enum severity group_severity(const struct finding *f, size_t *n);

#endif
