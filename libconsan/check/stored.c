/* stored: what the plain stores of each warp to shared memory wrote, in recorded runs (access.value),
 * so that stores that race can be compared. The shadow has no room for it, but the epoch and the
 * site of a past store, with which it is found here. */
#include "internal.h"

#include "libconsan/event/event.h"

#define STORED 4096u /* the newest of a warp */

static struct stored stored_of(const struct event *e, uint32_t epoch)
{
	const struct event_access *a = &e->access;

	return (struct stored){ .epoch = epoch, .site = e->site, .value = a->value, .lanes = e->lanes,
		.bytes = a->bytes, .owner = a->owner, .list = a->at.lane != NULL, .base = a->at.base,
		.stride = a->at.stride };
}

void stored_note(struct warp *w, const struct event *e, uint32_t epoch)
{
	const struct stored s = stored_of(e, epoch);

	if (!s.value)
		return;
	if (w->stored.n < STORED)
		vec_push(&w->stored, s);
	else
		w->stored.at[w->nstored % STORED] = s;
	w->nstored++;
}

static bool may_write(const struct stored *s, uint64_t addr)
{
	for (uint32_t m = s->lanes; m && !s->list; m &= m - 1) {
		const uint64_t at = s->base + (uint64_t)((int64_t)s->stride * __builtin_ctz(m));

		if (addr - at < s->bytes)
			return true;
	}
	return s->list;
}

static bool alike(const struct stored *s, const struct stored *now)
{
	if (s->value != now->value || s->bytes != now->bytes)
		return false;
	return s->value & ACCESS_VALUE_SAME || (!s->list && !now->list && s->lanes == now->lanes
		&& s->base == now->base && s->stride == now->stride);
}

/* Of stores with lists of addresses all that may have written the byte must have written the same. */
bool stored_same(const struct warp *w, uint32_t epoch, uint32_t site, uint64_t addr,
	const struct event *e)
{
	const struct stored now = stored_of(e, 0);
	bool any = false;

	for (uint32_t k = 0; k < w->stored.n && now.value; k++) {
		const struct stored *s = &w->stored.at[(w->nstored - 1 - k) % STORED];

		if (s->epoch != epoch || s->site != site || s->owner != now.owner || !may_write(s, addr))
			continue;
		if (!alike(s, &now))
			return false;
		if (!s->list)
			return true;
		any = true;
	}
	return any;
}
