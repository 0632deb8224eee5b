/* volatile: what the rule about volatile accesses (CS123) needs to know of a thread. A volatile
 * access is relaxed at system scope (A04), so that two of them never race, but order nothing. Data
 * that threads exchange by them without synchronization is wrong all the same; a flag is not:
 *  - a read that is polled, or that only decides where threads go, reads a flag (ptx/flag.h);
 *  - a write to a word that a thread of the cluster has read as a flag writes a flag;
 *  - a write that follows a release fence of its thread publishes, as the unlock of a lock does
 *    that others take with atomics;
 *  - a read of data after a relaxed read of the flag that publishes it does not depend on a stale
 *    cache line, as it would without volatile (CS117): last blocks are often written so. */
#include "internal.h"

#include "libconsan/event/event.h"

bool warp_publishes(const struct warp *w, uint32_t lanes)
{
	for (size_t i = 0; i < w->released.n; i++)
		lanes &= ~w->released.at[i].lanes;
	for (unsigned i = 0; i < w->ngroups; i++)
		if (w->group[i].f->by_others[READY])
			lanes &= ~w->group[i].lanes;
	return !lanes;
}

enum observed_by warp_observed(const struct cluster *c, const struct warp *w, uint32_t lanes,
	uint32_t agent, uint32_t epoch)
{
	enum observed_by by = OBSERVED_NOT;

	for (size_t i = 0; i < w->observed.n && by != OBSERVED_BY_FLAG; i++) {
		const struct observed *o = &w->observed.at[i];

		if (o->lanes & lanes && frontier_knows_one(&c->space, o->f, agent, UINT32_MAX, epoch))
			by = o->ticket ? OBSERVED_BY_TICKET : OBSERVED_BY_FLAG;
	}
	return by;
}

bool reads_ticket(const struct event *e)
{
	return site_get(e->site)->ticket;
}

bool volatile_is_flag(const struct cluster *c, uint16_t owner, uint64_t addr)
{
	for (size_t i = c->volatile_flags.n; i-- > 0;)
		if (c->volatile_flags.at[i].owner == owner
			&& addr - c->volatile_flags.at[i].addr < c->volatile_flags.at[i].bytes)
			return true;
	return false;
}

void volatile_read_flag(struct cluster *c, const struct event_access *a, uint32_t lanes)
{
	const uint16_t owner = a->space == SP_SHARED ? a->owner : VOLATILE_GLOBAL;

	for (; lanes && c->volatile_flags.n < MAX_VOLATILE_FLAGS; lanes &= lanes - 1) {
		const uint64_t addr = lane_addr(&a->at, (unsigned)__builtin_ctz(lanes));

		if (!volatile_is_flag(c, owner, addr))
			vec_push(&c->volatile_flags, ((struct volatile_flag){ addr, owner,
				(uint16_t)a->bytes }));
	}
}
