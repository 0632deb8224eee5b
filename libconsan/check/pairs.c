/* pairs: see pairs.h. */
#include "pairs.h"

#include "libconsan/base/base.h"

#include <stdlib.h>

static bool is(const struct pairs_tile *t, uint32_t finding, uint32_t high, uint32_t low)
{
	return t->finding == finding && t->high == high && t->low == low;
}

/* The tile's place, or a free one. */
static uint32_t place(const struct pairs *p, uint32_t finding, uint32_t high, uint32_t low)
{
	uint64_t h = finding * 0x9e3779b97f4a7c15ull ^ high * 0xbf58476d1ce4e5b9ull
		^ low * 0x94d049bb133111ebull;
	uint32_t i = (uint32_t)(h >> 32) & (p->cap - 1);

	while (p->tile[i].finding && !is(&p->tile[i], finding, high, low))
		i = (i + 1) & (p->cap - 1);
	return i;
}

static void grow(struct pairs *p)
{
	struct pairs_tile *old = p->tile;
	const uint32_t cap = p->cap;

	p->cap = cap ? 2 * cap : 64;
	p->tile = base_alloc(p->cap * sizeof *p->tile);
	for (uint32_t i = 0; i < cap; i++)
		if (old[i].finding)
			p->tile[place(p, old[i].finding, old[i].high, old[i].low)] = old[i];
	free(old);
}

bool pairs_add(struct pairs *p, uint32_t finding, uint32_t high, uint32_t low)
{
	const uint32_t across = high / PAIRS_TILE, down = low / PAIRS_TILE;
	const uint16_t bit = (uint16_t)(1u << low % PAIRS_TILE);
	struct pairs_tile *t;

	if (2 * (p->n + 1) > p->cap)
		grow(p);
	if (!is(&p->tile[p->last], finding + 1, across, down))
		p->last = place(p, finding + 1, across, down);
	t = &p->tile[p->last];
	if (!t->finding) {
		*t = (struct pairs_tile){ .finding = finding + 1, .high = across, .low = down };
		p->n++;
	}
	if (t->row[high % PAIRS_TILE] & bit)
		return false;
	t->row[high % PAIRS_TILE] |= bit;
	return true;
}

void pairs_free(struct pairs *p)
{
	free(p->tile);
	*p = (struct pairs){ 0 };
}
