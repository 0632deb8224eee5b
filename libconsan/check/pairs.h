/* pairs: which pairs of clusters have shown a finding, so that each is counted once. Pairs that
 * come after one another are mostly of one cluster with its neighbours: a tile has a bit for each
 * pair of two runs of clusters. */
#ifndef CONSAN_CHECK_PAIRS_H
#define CONSAN_CHECK_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#define PAIRS_TILE 16u /* clusters on each side; bits of a row */

struct pairs_tile {
	uint32_t finding;              /* index + 1; 0: free */
	uint32_t high, low;            /* cluster / PAIRS_TILE */
	uint16_t row[PAIRS_TILE];      /* by the higher cluster, a bit for each lower one */
};

struct pairs {                     /* zeroed: empty */
	struct pairs_tile *tile;       /* hash; cap is a power of two */
	uint32_t n, cap;
	uint32_t last;                 /* the tile found last */
};

/* True: the finding had no such pair yet. */
bool pairs_add(struct pairs *p, uint32_t finding, uint32_t high, uint32_t low);
void pairs_free(struct pairs *p);

#endif
