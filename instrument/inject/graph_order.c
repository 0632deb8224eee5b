/* graph_order: see the header. Nodes are given in the order in which they were made, which
 * nearly always agrees with the edges. Then one sweep finds the order. */
#include "graph_order.h"

#include <stdint.h>
#include <stdlib.h>

#include "libconsan/base/base.h"

bool graph_order(size_t n, const struct graph_edge *edge, size_t nedges, size_t *order)
{
	size_t *first = base_alloc((n + 2) * sizeof *first);   /* first[k]: node k's first edge
								  in `next` */
	size_t *next = base_alloc((nedges + 1) * sizeof *next);
	size_t *waits = base_alloc((n + 1) * sizeof *waits);   /* number of nodes that must come
								  before; SIZE_MAX: the node is
								  in the order */
	size_t made = 0, before = SIZE_MAX;

	for (size_t k = 0; k < nedges; k++) {
		first[edge[k].from + 2]++;
		waits[edge[k].to]++;
	}
	for (size_t k = 2; k < n + 2; k++)
		first[k] += first[k - 1];
	for (size_t k = 0; k < nedges; k++) /* afterwards first[k + 1] is the end of k's edges */
		next[first[edge[k].from + 1]++] = edge[k].to;
	while (made < n && made != before) {
		before = made;
		for (size_t k = 0; k < n; k++) {
			if (waits[k])
				continue;
			waits[k] = SIZE_MAX;
			order[made++] = k;
			for (size_t i = first[k]; i < first[k + 1]; i++)
				waits[next[i]]--;
		}
	}
	free(first);
	free(next);
	free(waits);
	return made == n;
}

/* ---- branches ---- */

/* What is known of the branches while steps are put into them. */
struct branching {
	size_t n;                  /* branches so far */
	VEC(size_t) last;          /* of each branch: 1 + its last step */
	size_t **before;           /* of each step: by branch, 1 + the last step there that comes before
				      it or is it; branches from `many` on have none */
	size_t *many;
};

static size_t last_before(const struct branching *b, size_t step, size_t branch)
{
	return branch < b->many[step] ? b->before[step][branch] : 0;
}

/* Collects what comes before a step. */
static void join(struct branching *b, size_t step, const struct graph_after *after)
{
	b->before[step] = base_alloc((b->n + 1) * sizeof **b->before);
	b->many[step] = b->n;
	for (size_t k = 0; k < after->n; k++)
		for (size_t i = 0; i < b->n; i++)
			if (last_before(b, after->at[k], i) > b->before[step][i])
				b->before[step][i] = last_before(b, after->at[k], i);
}

/* The branch that ends before the step; b->n: there is none. That of a step on which it depends is
 * preferred, as nothing needs to wait then. */
static size_t choose(const struct branching *b, size_t step, const struct graph_after *after,
	const size_t *branch)
{
	size_t k;

	for (k = 0; k < after->n; k++)
		if (b->last.at[branch[after->at[k]]] == after->at[k] + 1)
			return branch[after->at[k]];
	for (k = 0; k < b->n; k++)
		if (b->before[step][k] == b->last.at[k])
			return k;
	return b->n;
}

size_t graph_branches(size_t n, const struct graph_after *after, size_t *branch)
{
	struct branching b = { .before = base_alloc((n + 1) * sizeof *b.before),
		.many = base_alloc((n + 1) * sizeof *b.many) };

	for (size_t k = 0; k < n; k++) {
		join(&b, k, &after[k]);
		branch[k] = choose(&b, k, &after[k], branch);
		if (branch[k] == b.n) {
			vec_push(&b.last, 0);
			b.n++;
		}
		b.last.at[branch[k]] = k + 1;
		b.before[k][branch[k]] = k + 1; /* there is room for one more branch */
		b.many[k] += branch[k] == b.many[k];
	}
	for (size_t k = 0; k < n; k++)
		free(b.before[k]);
	vec_free(&b.last);
	free(b.before);
	free(b.many);
	return b.n;
}
