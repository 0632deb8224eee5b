/* plain: the common effects of a weak access on a cell, for all granules that share it. The same as
 * those of past_touch(), but that the entries may be listed (lists.h). */
#ifndef CONSAN_SHADOW_PLAIN_H
#define CONSAN_SHADOW_PLAIN_H

#include "past.h"

/* The fields of a view that the fast paths need, to be kept in registers. */
struct known {
	const uint32_t *known_generic, *known;
	uint32_t ngeneric;
};

#define INLINE static inline __attribute__((always_inline))

INLINE struct known known_of(const struct shadow_view *v)
{
	return (struct known){ v->known_generic, v->known, v->ngeneric };
}

INLINE bool is_known(struct known q, const struct cell_entry *x)
{
	return (x->agent < q.ngeneric ? q.known_generic : q.known)[x->agent] >= x->epoch;
}

/* Is now, a weak write, ordered after all recorded accesses, and does it cover their bytes? Then it
 * replaces them. */
INLINE bool plain_write(const struct shadow *s, struct known q, const struct cell *c,
	struct cell_entry now)
{
	uint32_t left = c->n, n, i;

	if (c->guard & now.bytes)
		return false;
	for (;; c = &s->cell[c->more]) {
		n = left < CELL_ENTRIES ? left : CELL_ENTRIES;
		for (i = 0; i < n; i++)
			if (c->entry[i].bytes & ~now.bytes || !is_known(q, &c->entry[i]))
				return false;
		left -= n;
		if (!left)
			return true;
	}
}

INLINE void only_write(struct cell *c, struct cell_entry now)
{
	c->entry[0] = now;
	c->n = c->writes = 1;
	c->readers = 0;
	c->init |= now.bytes;
}

/* A weak read ordered after the recorded writes. It replaces the agent's own read of these bytes by
 * these lanes, or extends that by the same instruction; reads by other agents stay until the next
 * write drops them. False: nothing was done. */
bool plain_read(struct shadow *s, const struct shadow_view *v, uint32_t home,
	struct cell_entry now);

#endif
