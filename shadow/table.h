/* table: the last accesses to each byte of one CTA's shared memory.
 *
 * The table keeps, for each byte, every access that a later one could still conflict with, and
 * drops the others. It does not know what orders accesses: the caller's view decides that and
 * classifies conflicts. Granules with the same history share a cell, so that the effect of an
 * operation on many granules is computed once for each distinct history.
 *
 * Invariants:
 *  - one table for each CTA, used by one thread at a time;
 *  - no allocation after warming up; reset clears 4 bytes a granule;
 *  - epochs of one agent never decrease from one access to the next. */
#ifndef CONSAN_SHADOW_TABLE_H
#define CONSAN_SHADOW_TABLE_H

#include "libconsan/base/base.h"
#include "cell.h"

#include <stdbool.h>
#include <stddef.h>

#define SHADOW_BLOCK 64u /* size of a block in granules */
#define SHADOW_SPLIT UINT32_MAX

struct shadow {
	/* for each SHADOW_BLOCK granules: the cell of all of them, or SHADOW_SPLIT */
	uint32_t *block;
	uint32_t *at;            /* for each granule: its cell */
	uint32_t ncells;         /* granules */
	struct cell *cell;       /* cells.h; cell[0]: no accesses */
	void *memory;            /* allocation that holds the cells, before alignment */
	uint32_t used, cap, free;
	struct lane_lists *lists; /* lists.h */
	uint64_t visits;         /* granules accessed, for the statistics */
};

enum shadow_verdict {
	SHADOW_ORDERED,          /* old is known to have happened before now */
	SHADOW_MORALLY_STRONG,   /* not ordered, but no race: both are morally strong */
	SHADOW_EQUIVALENT,       /* so is a third access with both, or with neither */
	SHADOW_CONFLICT          /* a conflict, which the callback has recorded */
};

enum shadow_observed {
	SHADOW_NOT_OBSERVED,
	SHADOW_OBSERVED_UNFENCED, /* without the proxy fence that the access being made needs */
	SHADOW_OBSERVED
};

/* The access being made. known_generic[a] (agents below ngeneric) and known[a] (all others) are
 * epochs up to which the accessor is ordered after *all lanes* of agent a; what these do not
 * decide, classify() decides exactly.
 *   classify()  old and now overlap in `bytes` of `granule`, at least one writes
 *   observed()  called by shadow_observed(): z read x, a strong write, or a value of its chain. Of the
 *               lanes `missing` of now at a byte, those before which z is not ordered, for any lane of z,
 *               if it is morally strong to x. *unfenced is set if some lack a proxy fence.
 *   invalid()   why: SHADOW_UNWRITTEN, a read of bytes that were never written;
 *               SHADOW_GUARDED, an access to bytes of a live mbarrier object */
struct newer;                    /* past.c */
struct shadow_view {
	const uint32_t *known_generic, *known;
	uint32_t ngeneric;
	uint32_t self;           /* the agent whose lanes are in program order, or ~0 */
	/* a verdict of classify() holds for any granule; conflicts are recorded once for each history */
	bool anywhere;
	bool reported;           /* used by the table: the result of a callback is of one granule only */
	enum shadow_verdict (*classify)(struct shadow_view *v,
		const struct cell_entry *old, const struct cell_entry *now,
		uint32_t granule, uint32_t bytes);
	const struct newer *newer; /* used by the table: accesses after the one to classify */
	uint32_t (*observed)(struct shadow_view *v, const struct cell_entry *x, const struct cell_entry *z,
		const struct cell_entry *now, uint32_t granule, unsigned byte, uint32_t missing,
		bool *unfenced);
	void (*invalid)(struct shadow_view *v, const struct cell_entry *now,
		uint32_t granule, uint32_t bytes, unsigned why);
};
enum { SHADOW_UNWRITTEN, SHADOW_GUARDED };

/* Only for classify(): have strong accesses that are ordered before now observed x, in all of these
 * bytes and for each lane of now, not the same ones for all (PTX ISA 8.9.5)? */
enum shadow_observed shadow_observed(struct shadow_view *v, const struct cell_entry *x,
	const struct cell_entry *now, uint32_t granule, uint32_t bytes);

void shadow_open(struct shadow *s, uint32_t bytes);
void shadow_reset(struct shadow *s);
void shadow_close(struct shadow *s);
size_t shadow_footprint(const struct shadow *s); /* bytes of host memory */

/* Records one entry in one granule; now.bytes is the mask of its bytes. */
void shadow_touch(struct shadow *s, struct shadow_view *v, uint32_t granule,
	struct cell_entry now);
/* Records an access to all bytes of the spans; now.lanes and its shift hold for any address
 * (cell.h). */
void shadow_spans(struct shadow *s, struct shadow_view *v, const struct ev_span *span,
	uint32_t n, struct cell_entry now);
void shadow_span(struct shadow *s, struct shadow_view *v, struct ev_span span,
	struct cell_entry now);
/* Lane l accesses the whole granule at addr[l]; no granule occurs twice, unless now only reads. */
void shadow_rows(struct shadow *s, struct shadow_view *v, const uint32_t addr[32],
	uint32_t lanes, struct cell_entry now);
/* Forgets what was done to these granules: nothing has accessed or written them. */
void shadow_forget(struct shadow *s, uint32_t granule, uint32_t n);
/* The first of n granules of whose `bytes` some were never written, with these; n: none. */
uint32_t shadow_unwritten(const struct shadow *s, uint32_t granule, uint32_t n, uint32_t *bytes);
/* The bytes of the granule in which that epoch of the agent is recorded. */
uint32_t shadow_recorded(const struct shadow *s, uint32_t granule, uint32_t agent, uint32_t epoch);
/* Prefetch hint: the granule will be accessed soon. */
void shadow_fetch(const struct shadow *s, uint32_t granule);

/* Marks or unmarks a live mbarrier object: bytes [addr, addr + 8), addr 8-aligned. */
void shadow_guard(struct shadow *s, uint32_t addr, bool on);

#endif
