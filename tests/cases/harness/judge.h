/* judge: compares the findings of a twin with the expectations of its specimen, by rule codes
 * and lines, not by texts. Findings of this process and of a JSON report are treated equally. */
#ifndef CONSAN_TESTS_JUDGE_H
#define CONSAN_TESTS_JUDGE_H

#include "libconsan/base/base.h"
#include "specimen.h"

#include <jansson.h>

struct finding;

#define SEEN_LINES 64

struct seen {
	char code[8];
	const char *severity, *hint; /* "note", "warning", "error"; a row of finding/hints.def */
	bool note;
	unsigned group;
	unsigned line[SEEN_LINES], nlines; /* PTX lines of its sides and of waiting threads */
};
struct seen_list {
	struct seen *at;
	size_t n, cap;
};

struct seen_list seen_of(const struct finding *const *f, size_t n);
/* The groups (finding/group.h) with something above a note. */
unsigned seen_groups(const struct seen_list *seen);
struct seen_list seen_of_report(const json_t *report);
void seen_free(struct seen_list *);
/* Appends "CS104 12|40, CS901 7"; notes are left out. */
void seen_print(struct text *to, const struct seen_list *seen);

/* Is the expectation among the findings, with all its lines, its severity and its hint?
 * instrumented: the use of a value is not recorded, so that for a read of unwritten bytes (CS901)
 * the last line is enough; severity and hint are not compared. */
bool seen_matches(const struct seen_list *seen, const struct expectation *e, bool instrumented);
/* Is it a note, or a rule that the specimen expects or allows? */
bool seen_allowed(const struct seen *f, const struct specimen *s);

/* Are there all expected findings and no others? Otherwise `why` has the differences. */
bool judge_racy(const struct specimen *s, const struct seen_list *seen, bool instrumented,
	struct text *why);
/* Are there only notes, of rules that the specimen does not expect? instrumented: also CS901. */
bool judge_silent(const struct specimen *s, const struct seen_list *seen, bool instrumented);

#endif
