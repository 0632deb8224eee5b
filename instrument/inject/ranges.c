/* ranges: a sorted array; see ranges.h. */
#include "ranges.h"

#include <string.h>

/* Number of ranges that begin at or below addr. */
static size_t count(const struct ranges *e, uint64_t addr)
{
	size_t lo = 0, hi = e->list.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (e->list.at[mid].at <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void ranges_add(struct ranges *e, uint64_t at, uint64_t bytes)
{
	const struct range new = { at, bytes };
	size_t k = count(e, at);

	if (k && e->list.at[k - 1].at == at) {
		e->list.at[k - 1].bytes = bytes;
		return;
	}
	vec_push(&e->list, new);
	memmove(&e->list.at[k + 1], &e->list.at[k], (e->list.n - 1 - k) * sizeof new);
	e->list.at[k] = new;
}

void ranges_remove(struct ranges *e, uint64_t at)
{
	size_t k = count(e, at);

	if (!k || e->list.at[k - 1].at != at)
		return;
	memmove(&e->list.at[k - 1], &e->list.at[k], (e->list.n - k) * sizeof e->list.at[0]);
	e->list.n--;
}

const struct range *ranges_below(const struct ranges *e, uint64_t addr)
{
	size_t k = count(e, addr);

	return k ? &e->list.at[k - 1] : NULL;
}
