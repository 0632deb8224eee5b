/* found: the findings of a run as rules and lines, for comparison with another run. */
#ifndef CONSAN_TESTS_FOUND_H
#define CONSAN_TESTS_FOUND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct finding;

/* One key for each finding, "CS104 108|243,87|": the rule, and for each side its line and the
 * lines where it is inlined. Ascending; found_drop() frees it. */
struct found { char *at[256]; size_t n; };

/* Of a JSON report: source lines, or PTX lines where there are none. */
struct found found_of_report(const json_t *report);
/* The key of one finding of a report; the caller free()s it. */
char *found_key(const json_t *finding);
/* Is the finding a hang of the key's rule with a thread that waits at the key's lines? Reports
 * of one hang may differ in the waiting threads they list. */
bool found_waits(const json_t *finding, const char *key);
/* Of findings in memory: PTX lines. */
struct found found_of(const struct finding *const *f, size_t n);
void found_drop(struct found *);
bool found_has(const struct found *k, const char *key);
/* Do two keys have the same lines, in either order of the sides? The rules may differ. */
bool found_same_places(const char *a, const char *b);
/* The same lines and the same rule. For a diverged warp at barriers (CS403), one of the two
 * lines is enough: a GPU that stops may show only one. */
bool found_same(const char *a, const char *b);

#endif
