/* found: what a run found, as rules and lines, to be compared with another run's. */
#ifndef CONSAN_TESTS_FOUND_H
#define CONSAN_TESTS_FOUND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct finding;

/* What a run found, "CS104 108|243,87|": the rule, and of each side its line and those
 * at which it is inlined. Ascending. */
struct found { char *at[256]; size_t n; };

struct found found_of_report(const json_t *report); /* lines of the source, or of the PTX */
/* Of one finding of a report, to be freed */
char *found_key(const json_t *finding);
/* A hang of the key's rule, in which some thread waits at its place: which of those that
 * wait a hang is told of does not matter. */
bool found_waits(const json_t *finding, const char *key);
struct found found_of(const struct finding *const *f, size_t n); /* lines of the PTX */
void found_drop(struct found *);
bool found_has(const struct found *k, const char *key);
/* Two of those: the same lines, whichever came first, whatever their rules. */
bool found_same_places(const char *a, const char *b);
/* ... and the same rule. Of a diverged warp at barriers (CS403) a GPU that stops may show one
 * of its two places alone: that is enough. */
bool found_same(const char *a, const char *b);

#endif
