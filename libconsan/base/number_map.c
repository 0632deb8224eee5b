/* number_map: see number_map.h. Open addressing, at most half full. */
#include "number_map.h"

#include "base.h"

#include <stdlib.h>

/* The entry with the key, or else the empty one where it belongs. */
static size_t entry_of(const struct number_map *m, uint64_t key)
{
	size_t k = (key * 0x9e3779b97f4a7c15ull >> 32) & (m->cap - 1);

	while (m->at[k].key && m->at[k].key != key)
		k = (k + 1) & (m->cap - 1);
	return k;
}

uint64_t number_map_get(const struct number_map *m, uint64_t key)
{
	return m->cap ? m->at[entry_of(m, key)].value : 0;
}

static void grow(struct number_map *m)
{
	const struct number_map old = *m;

	m->cap = old.cap ? 2 * old.cap : 256;
	m->at = base_alloc(m->cap * sizeof *m->at);
	for (size_t k = 0; k < old.cap; k++)
		if (old.at[k].key)
			m->at[entry_of(m, old.at[k].key)] = old.at[k];
	free(old.at);
}

void number_map_put(struct number_map *m, uint64_t key, uint64_t value)
{
	size_t k;

	if (2 * m->n >= m->cap)
		grow(m);
	k = entry_of(m, key);
	m->n += !m->at[k].key;
	m->at[k].key = key;
	m->at[k].value = value;
}

void number_map_free(struct number_map *m)
{
	free(m->at);
	*m = (struct number_map){ 0 };
}
