/* plain: see plain.h. */
#include "plain.h"

#include "lists.h"

/* Is now, by the agent of x, another part of the same access: further bytes, or further lanes? */
INLINE bool is_extended(const struct cell_entry *x, struct cell_entry now)
{
	if (x->epoch != now.epoch || x->what != now.what)
		return false;
	return x->lanes == now.lanes ? !(x->bytes & now.bytes) : x->bytes == now.bytes;
}

bool plain_read(struct shadow *s, const struct shadow_view *v, uint32_t home,
	struct cell_entry now)
{
	const struct known q = known_of(v);
	struct cell *c = &s->cell[home];
	struct cell_entry *old = NULL, *part_of = NULL;
	uint32_t left = c->n, n, i, part = home;

	if (UNLIKELY(c->writes > CELL_ENTRIES) || c->guard & now.bytes || now.bytes & ~c->init)
		return false;
	/* at most one write, which is the first entry, and no read by this agent */
	if (left < CELL_ENTRIES && c->writes <= 1 && !(c->readers & reader_bit(now.agent))) {
		if (c->writes && c->entry[0].bytes & now.bytes && !is_known(q, &c->entry[0]))
			return false;
		c->entry[c->n++] = now;
		c->readers |= reader_bit(now.agent);
		return true;
	}
	for (i = 0; i < c->writes; i++) {
		const struct cell_entry *x = &c->entry[i];

		if (x->what & CELL_WRITE && x->bytes & now.bytes && !is_known(q, x))
			return false;
	}
	if (c->readers & reader_bit(now.agent)) {
		for (;; part = s->cell[part].more) {
			n = left < CELL_ENTRIES ? left : CELL_ENTRIES;
			for (i = 0; i < n; i++) {
				struct cell_entry *x = &s->cell[part].entry[i];

				if (x->agent != now.agent || x->what & CELL_WRITE)
					continue;
				if (x->what & CELL_STRONG)
					return false;
				if (is_listed(x) || is_listed(&now)) {
					if ((x->what ^ now.what) & CELL_SHIFT_MASK || x->lanes != now.lanes)
						return false;
					old = x;
					continue;
				}
				if (is_extended(x, now)) {
					part_of = x;
					continue;
				}
				if (!(x->bytes & now.bytes))
					continue;
				if (x->lanes & ~now.lanes || (x->what ^ now.what) & CELL_SHIFT_MASK) {
					if (is_known(q, x))
						return false;
					continue;
				}
				if (x->bytes & ~now.bytes)
					return false;
				old = x;
			}
			left -= n;
			if (!left)
				break;
		}
		if (part_of) {
			if (old)
				return false;
			part_of->bytes |= now.bytes;
			part_of->lanes |= now.lanes;
			return true;
		}
	} else {
		for (; left > CELL_ENTRIES; left -= CELL_ENTRIES)
			part = s->cell[part].more;
		n = left;
	}
	if (!old) {
		c->n++;
		c->readers |= reader_bit(now.agent);
		if (UNLIKELY(n == CELL_ENTRIES)) {
			part = cells_grow(s, part);
			n = 0;
		}
		old = &s->cell[part].entry[n];
	}
	*old = now;
	return true;
}
