/* table: who touched which bytes of one CTA's shared memory last.
 *
 * The table keeps, per byte, every access that a later one could still conflict
 * with, and drops the others. It does not know what orders accesses: the
 * caller's view says that, and names the conflicts. A granule has a cell, which
 * granules with the same past share: what one operation does to many of them
 * is worked out once for each past there is.
 *
 * House rules:
 *  - one table per CTA, used by one thread at a time;
 *  - no allocation after warming up; reset clears 4 bytes a granule;
 *  - epochs of one agent never fall between two accesses. */
#ifndef CONSAN_SHADOW_TABLE_H
#define CONSAN_SHADOW_TABLE_H

#include "libconsan/base/base.h"
#include "cell.h"

#include <stdbool.h>
#include <stddef.h>

#define SHADOW_BLOCK 64u /* granules */
#define SHADOW_SPLIT UINT32_MAX

struct shadow {
	uint32_t *block;         /* of each SHADOW_BLOCK granules: the cell of all of them, or
				    SHADOW_SPLIT: */
	uint32_t *at;            /* of each granule: its cell */
	uint32_t ncells;         /* granules */
	struct cell *cell;       /* cells.h; cell[0]: nothing happened */
	void *memory;            /* in which they stand, aligned */
	uint32_t used, cap, free;
	uint64_t visits;         /* granules touched, for the statistics */
};

enum shadow_verdict {
	SHADOW_ORDERED, /* old is known to have happened before now */
	SHADOW_MUTUAL,  /* not ordered, yet no race: both strong */
	SHADOW_CLASH    /* a conflict, and the caller has taken note of it */
};

/* Whose access it is. known_generic[a] (agents below ngeneric) and known[a]
 * (all others) are epochs up to which the accessor knows *all lanes* of agent
 * a; what these do not answer, judge() does, exactly.
 *   judge()  old and now overlap in `bytes` of `granule`, at least one writes
 *   stray()  why: SHADOW_UNWRITTEN, a read of bytes never written;
 *            SHADOW_GUARDED, bytes of a live mbarrier object */
struct shadow_view {
	const uint32_t *known_generic, *known;
	uint32_t ngeneric;
	uint32_t self;  /* the agent whose lanes are in program order, or ~0 */
	bool told;      /* the table's: one of the two below was called */
	enum shadow_verdict (*judge)(struct shadow_view *v,
		const struct cell_entry *old, const struct cell_entry *now,
		uint32_t granule, uint32_t bytes);
	void (*stray)(struct shadow_view *v, const struct cell_entry *now,
		uint32_t granule, uint32_t bytes, unsigned why);
};
enum { SHADOW_UNWRITTEN, SHADOW_GUARDED };

void shadow_open(struct shadow *s, uint32_t bytes);
void shadow_reset(struct shadow *s);
void shadow_close(struct shadow *s);
size_t shadow_footprint(const struct shadow *s); /* bytes of host memory */

/* One entry in one granule; now->bytes says which bytes. */
void shadow_touch(struct shadow *s, struct shadow_view *v, uint32_t granule,
	struct cell_entry now);
/* All of these bytes; now.lanes and its shift hold for any address (cell.h). */
void shadow_spans(struct shadow *s, struct shadow_view *v, const struct ev_span *span,
	uint32_t n, struct cell_entry now);
/* lane l touches the whole granule at addr[l]; each granule stands once, or
 * now only reads */
void shadow_rows(struct shadow *s, struct shadow_view *v, const uint32_t addr[32],
	uint32_t lanes, struct cell_entry now);
/* a hint: the granule will be touched soon */
void shadow_fetch(const struct shadow *s, uint32_t granule);

/* Live mbarrier objects: bytes [addr, addr + 8), addr 8-aligned. */
void shadow_guard(struct shadow *s, uint32_t addr, bool on);

#endif
