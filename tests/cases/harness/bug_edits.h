/* bug_edits: the line to edit that consan names for each planted bug of the bundled kernels, and
 * whether the launch is clean with the edit (bug_edits.def). */
#ifndef CONSAN_TESTS_BUG_EDITS_H
#define CONSAN_TESTS_BUG_EDITS_H

#include <jansson.h>
#include <stdbool.h>

/* EDIT_UNKNOWN: not in the table. LINE: a line is named. CLEAN: with the edit no finding is
 * left. */
enum edit_what { EDIT_UNKNOWN, NO_LINE, LINE, CLEAN };
/* NEAR: at a line marked "@bug", or at most three lines from it */
enum edit_where { FAR, NEAR };

struct bug_edit {
	const char *program; /* "ring/ring early_release" */
	enum edit_what what;
	enum edit_where where;
};
/* What is expected of a planted bug. */
struct bug_edit bug_edit_of(const char *program);
/* The best of the edits in a report: of those that leave no finding, else of the headlines.
 * line: the n marked lines of the file. */
struct bug_edit bug_edit_found(const json_t *report, const char *file, const unsigned *line,
	unsigned n);
/* The i-th row of the table, from 0; NULL: there are i or fewer. */
const struct bug_edit *bug_edit_row(unsigned i);

#endif
