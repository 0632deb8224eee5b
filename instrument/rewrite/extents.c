/* extents: a sorted list; see extents.h. */
#include "extents.h"

#include <string.h>

/* How many begin at or below addr. */
static size_t count(const struct extents *e, uint64_t addr)
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

void extents_add(struct extents *e, uint64_t at, uint64_t bytes)
{
	const struct extent new = { at, bytes };
	size_t k = count(e, at);

	if (k && e->list.at[k - 1].at == at) {
		e->list.at[k - 1].bytes = bytes;
		return;
	}
	vec_push(&e->list, new);
	memmove(&e->list.at[k + 1], &e->list.at[k], (e->list.n - 1 - k) * sizeof new);
	e->list.at[k] = new;
}

void extents_remove(struct extents *e, uint64_t at)
{
	size_t k = count(e, at);

	if (!k || e->list.at[k - 1].at != at)
		return;
	memmove(&e->list.at[k - 1], &e->list.at[k], (e->list.n - k) * sizeof e->list.at[0]);
	e->list.n--;
}

const struct extent *extents_below(const struct extents *e, uint64_t addr)
{
	size_t k = count(e, addr);

	return k ? &e->list.at[k - 1] : NULL;
}
