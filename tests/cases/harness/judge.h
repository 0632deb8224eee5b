/* judge: what was found in a twin of a specimen against what the specimen says: rule codes
 * and lines, never prose. The same for findings of this process and of a JSON report. */
#ifndef CONSAN_TESTS_JUDGE_H
#define CONSAN_TESTS_JUDGE_H

#include "libconsan/base/base.h"
#include "specimen.h"

#include <jansson.h>

struct finding;

#define SEEN_LINES 64

struct seen {
	char code[8];
	bool note;
	unsigned line[SEEN_LINES], nlines; /* of the PTX: of its sides and of those that wait */
};
struct seen_list {
	struct seen *at;
	size_t n, cap;
};

struct seen_list seen_of(const struct finding *const *f, size_t n);
struct seen_list seen_of_report(const json_t *report);
void seen_free(struct seen_list *);
/* "CS104 12|40, CS901 7": nothing of notes */
void seen_print(struct text *to, const struct seen_list *seen);

/* instrumented: what is read is recorded, not where it is used, so of a read of what nobody
 * wrote (CS901) the last line is enough. */
bool seen_matches(const struct seen_list *seen, const struct expectation *e, bool instrumented);
/* A note, or what the specimen speaks of */
bool seen_allowed(const struct seen *f, const struct specimen *s);

/* All that is expected at its lines, and nothing that is not. why: what is wrong. */
bool judge_racy(const struct specimen *s, const struct seen_list *seen, bool instrumented,
	struct text *why);
/* Notes alone, of rules that the specimen does not expect; instrumented: or CS901. */
bool judge_silent(const struct specimen *s, const struct seen_list *seen, bool instrumented);

#endif
