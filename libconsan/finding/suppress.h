/* suppress: findings that somebody has looked at and decided to live with. A file of
 * entries, each a rule, patterns that the finding must match, and a reason:
 *
 *     # text after # is a comment
 *     CS102                               or *: any rule
 *         kernel: attention_*             mangled or demangled name
 *         source: *\/softmax.cuh:120      file or file:line of either side, inlined-at
 *                                         chain included; *.ptx:812 without line information
 *         symbol: row_max*                variable, barrier or function
 *         reason: both warps write the same value
 *
 * Patterns are shell globs, in which * matches / as well. Every one that is given
 * must match; `reason` must be given. Judges no finding itself: what it suppresses is
 * kept, counted and said. */
#ifndef CONSAN_SUPPRESS_H
#define CONSAN_SUPPRESS_H

#include "libconsan/finding/results/results.h"

/* Adds the entries of a file to r->suppression. False + e with line and column. */
bool suppress_read(struct results *r, const char *path, struct err *e);
/* Of a file that is in memory; path is for messages. */
bool suppress_parse(struct results *r, const char *path, const char *text, struct err *e);
/* The first entry of r->suppression that matches f, or r->suppression.n. */
size_t suppress_match(const struct results *r, const struct finding *f);
/* After results_finish(): moves what an entry matches to r->suppressed. */
void suppress_apply(struct results *r);

/* An entry that matches this finding, and as little else as can be. */
void suppress_write(struct text *t, const struct finding *f, const char *reason);

#endif
