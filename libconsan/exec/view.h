/* view: which messages of which locations a thread must have seen. A message is a write of a
 * location, numbered by its time (reads.h). A view gives for some locations the oldest message that
 * may still be read; NULL is the empty view.
 *
 * Views are immutable and shared; a function that returns one takes over the reference to its first
 * argument and returns a reference. `floor`, by location, is the time of the oldest message that is
 * kept: an entry not above it says nothing and is left out. */
#ifndef CONSAN_EXEC_VIEW_H
#define CONSAN_EXEC_VIEW_H

#include <stdint.h>

struct view {
	uint32_t refs, n;
	struct view_entry { uint32_t location, from; } at[]; /* ascending locations */
};

struct view *view_get(struct view *v);
void view_put(struct view *v);
uint32_t view_from(const struct view *v, uint32_t location); /* 0: any message */
/* v, but of this location nothing older than `from` */
struct view *view_raise(struct view *v, uint32_t location, uint32_t from, const uint32_t *floor);
/* What both demand */
struct view *view_join(struct view *a, struct view *b, const uint32_t *floor);

#endif
