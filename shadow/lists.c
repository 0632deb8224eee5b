/* lists: see lists.h. A hash of relative granules, which live as long as the table. */
#include "lists.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

#define NO_LANE 0x8000u  /* farther than shared memory is large: this lane is not in the list */
#define MAX_LISTS 1024u
#define INDEX (2 * MAX_LISTS)

struct lane_list { uint16_t granule[32]; };

struct lane_lists {
	uint32_t n, cap;
	struct lane_list *list;
	uint16_t index[INDEX];   /* number + 1 */
	bool twice[MAX_LISTS];   /* a granule occurs twice: not used */
};

void lists_open(struct shadow *s)
{
	s->lists = base_alloc(sizeof *s->lists);
}

void lists_reset(struct shadow *s)
{
	if (s->lists->n < MAX_LISTS)
		return;
	s->lists->n = 0;
	memset(s->lists->index, 0, sizeof s->lists->index);
}

void lists_close(struct shadow *s)
{
	free(s->lists->list);
	free(s->lists);
}

size_t lists_footprint(const struct shadow *s)
{
	return sizeof *s->lists + s->lists->cap * sizeof *s->lists->list;
}

static uint32_t hash_of(const struct lane_list *x)
{
	static const uint64_t odd[8] = {
		0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93,
		0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53, 0x87c37b91114253d5, 0x4cf5ad432745937f,
	};
	uint64_t word[8], sum = 0;

	memcpy(word, x, sizeof word);
	for (unsigned i = 0; i < 8; i++)
		sum += word[i] * odd[i];
	return (uint32_t)(sum >> 40) % INDEX;
}

static bool equal(const struct lane_list *x, const struct lane_list *y)
{
	uint64_t a[8], b[8], other = 0;

	memcpy(a, x, sizeof a);
	memcpy(b, y, sizeof b);
	for (unsigned i = 0; i < 8; i++)
		other |= a[i] ^ b[i];
	return !other;
}

static bool has_twice(const struct lane_list *x)
{
	for (unsigned l = 0; l < 32; l++)
		for (unsigned k = 0; k < l; k++)
			if (x->granule[l] == x->granule[k] && x->granule[l] != NO_LANE)
				return true;
	return false;
}

static bool add_list(struct lane_lists *all, const struct lane_list *x, uint32_t at)
{
	if (all->n == MAX_LISTS)
		return false;
	if (all->n == all->cap) {
		all->cap = 2 * all->cap + 16;
		all->list = base_resize(all->list, all->cap * sizeof *all->list);
	}
	all->list[all->n] = *x;
	all->twice[all->n++] = has_twice(x);
	all->index[at] = (uint16_t)all->n;
	return true;
}

bool lists_find(struct shadow *s, const uint32_t granule[32], uint32_t lanes,
	uint32_t *entry_lanes)
{
	struct lane_lists *all = s->lists;
	const uint32_t first = granule[__builtin_ctz(lanes)];
	struct lane_list x;
	uint32_t at;

	for (unsigned l = 0; l < 32; l++)
		x.granule[l] = (uint16_t)(lanes >> l & 1 ? granule[l] - first : NO_LANE);
	for (at = hash_of(&x); all->index[at]; at = (at + 1) % INDEX)
		if (equal(&x, &all->list[all->index[at] - 1]))
			break;
	if (!all->index[at] && !add_list(all, &x, at))
		return false;
	*entry_lanes = (uint32_t)(all->index[at] - 1) << 16 | first;
	return !all->twice[all->index[at] - 1];
}

static uint32_t lanes_at(const struct lane_list *x, uint16_t granule)
{
	for (unsigned l = 0; l < 32; l++)
		if (x->granule[l] == granule)
			return 1u << l;
	return 0;
}

bool lists_spell(struct shadow *s, uint32_t cell, uint32_t granule)
{
	struct cell *c = &s->cell[cell];
	bool any = false;

	for (uint32_t left = c->n, n; left; left -= n, c = &s->cell[c->more]) {
		n = left < CELL_ENTRIES ? left : CELL_ENTRIES;
		for (uint32_t i = 0; i < n; i++) {
			struct cell_entry *e = &c->entry[i];

			if (!is_listed(e))
				continue;
			e->lanes = cell_lanes(lanes_at(&s->lists->list[e->lanes >> 16],
				(uint16_t)(granule - e->lanes)), granule * CELL_BYTES, 4);
			e->what = (e->what & ~CELL_SHIFT_MASK) | 4u << CELL_SHIFT_AT;
			any = true;
		}
	}
	return any;
}
