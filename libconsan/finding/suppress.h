/* suppress: suppression of known findings. A suppressions file is a list of entries, each with
 * a rule, patterns that a finding must match, and a reason:
 *
 *     # text after # is a comment
 *     CS102                               or *: any rule
 *         kernel: attention_*             mangled or demangled name
 *         source: *\/softmax.cuh:120      file or file:line of either side, inlined-at
 *                                         chain included; *.ptx:812 without line information
 *         symbol: row_max*                variable, barrier or function
 *         reason: both warps write the same value
 *
 * Patterns are shell globs, in which * matches / as well. All given patterns must match;
 * `reason` is required. Suppressed findings are kept, counted and reported. */
#ifndef CONSAN_SUPPRESS_H
#define CONSAN_SUPPRESS_H

#include "libconsan/finding/results/results.h"

/* Adds the entries of a file to r->suppression. False on failure; e has line and column. */
bool suppress_read(struct results *r, const char *path, struct consan_err *e);
/* The same for the text of a file; path is for messages. */
bool suppress_parse(struct results *r, const char *path, const char *text, struct consan_err *e);
/* The first entry of r->suppression that matches f, or r->suppression.n. */
size_t suppress_match(const struct results *r, const struct finding *f);
/* Moves the findings that an entry matches to r->suppressed. Call it after
 * results_finish(). */
void suppress_apply(struct results *r);

/* Appends an entry that matches this finding and as few others as possible. */
void suppress_write(struct text *t, const struct finding *f, const char *reason);

#endif
