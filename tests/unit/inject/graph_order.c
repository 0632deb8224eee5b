/* graph_order: an order for the nodes of a graph, and branches for its steps. */
#include "instrument/inject/graph_order.h"

#include <criterion/criterion.h>
#include <stdint.h>

#define MOST 64

static uint32_t state = 1;

static uint32_t draw(uint32_t below)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % below;
}

static void expect_order(size_t n, const struct graph_edge *edge, size_t nedges,
	const size_t *order)
{
	size_t place[MOST];
	bool there[MOST] = { false };

	for (size_t k = 0; k < n; k++) {
		cr_assert(order[k] < n && !there[order[k]]);
		there[order[k]] = true;
		place[order[k]] = k;
	}
	for (size_t k = 0; k < nedges; k++)
		cr_assert(place[edge[k].from] < place[edge[k].to]);
}

Test(graph_order, as_made)
{
	const struct graph_edge edge[] = { { 0, 2 }, { 1, 2 }, { 2, 4 }, { 0, 4 } };
	size_t order[5];

	cr_assert(graph_order(5, edge, 4, order));
	for (size_t k = 0; k < 5; k++)
		cr_assert_eq(order[k], k);
	cr_assert(graph_order(0, NULL, 0, order));
}

Test(graph_order, against_it)
{
	const struct graph_edge edge[] = { { 3, 2 }, { 2, 1 }, { 1, 0 }, { 3, 0 } };
	size_t order[4];

	cr_assert(graph_order(4, edge, 4, order));
	expect_order(4, edge, 4, order);
}

Test(graph_order, cycle)
{
	const struct graph_edge edge[] = { { 0, 1 }, { 1, 2 }, { 2, 1 } };
	size_t order[3];

	cr_assert_not(graph_order(3, edge, 3, order));
}

Test(graph_order, random)
{
	for (unsigned round = 0; round < 500; round++) {
		size_t n = 1 + draw(MOST), nedges = draw(4 * MOST), order[MOST], rank[MOST], made = 0;
		struct graph_edge edge[4 * MOST];

		for (size_t k = 0; k < n; k++)
			rank[k] = draw(1000);
		for (size_t k = 0; k < nedges; k++) { /* from lower ranks to higher ones, so that
							 there is no cycle */
			size_t a = draw((uint32_t)n), b = draw((uint32_t)n);

			if (rank[a] != rank[b])
				edge[made++] = rank[a] < rank[b] ? (struct graph_edge){ a, b } : (struct graph_edge){ b, a };
		}
		cr_assert(graph_order(n, edge, made, order));
		expect_order(n, edge, made, order);
	}
}

/* Is `a` before `b`, or the same? */
static bool reaches(const struct graph_after *after, size_t a, size_t b)
{
	bool any = a == b;

	for (size_t k = 0; k < after[b].n && !any; k++)
		any = after[b].at[k] >= a && reaches(after, a, after[b].at[k]);
	return any;
}

static size_t expect_branches(const struct graph_after *after, size_t n)
{
	size_t branch[MOST], last[MOST], many = graph_branches(n, after, branch), seen = 0;

	for (size_t k = 0; k < n; k++) {
		cr_assert(branch[k] <= seen && branch[k] < many);
		if (branch[k] == seen)
			seen++;
		else
			cr_assert(reaches(after, last[branch[k]], k), "step %zu", k);
		last[branch[k]] = k;
	}
	cr_assert_eq(seen, many);
	return many;
}

Test(graph_order, branches)
{
	static const size_t zero[] = { 0 }, one_two[] = { 1, 2 }, three[] = { 3 };
	/* two diamonds, one behind the other: the second one needs no streams of its own */
	const struct graph_after diamonds[] = { { NULL, 0 }, { zero, 1 }, { zero, 1 }, { one_two, 2 },
		{ three, 1 }, { three, 1 } };
	const struct graph_after apart[] = { { NULL, 0 }, { NULL, 0 }, { NULL, 0 } };
	const struct graph_after line[] = { { NULL, 0 }, { zero, 1 } };

	cr_assert_eq(expect_branches(diamonds, 6), 2);
	cr_assert_eq(expect_branches(apart, 3), 3);
	cr_assert_eq(expect_branches(line, 2), 1);
	cr_assert_eq(expect_branches(NULL, 0), 0);
}

Test(graph_order, random_branches)
{
	for (unsigned round = 0; round < 300; round++) {
		static size_t list[MOST][4];
		struct graph_after after[MOST];
		const size_t n = 1 + draw(24);

		for (size_t k = 0; k < n; k++) {
			after[k] = (struct graph_after){ list[k], k ? draw(4) : 0 };
			for (size_t i = 0; i < after[k].n; i++)
				list[k][i] = draw((uint32_t)k);
		}
		expect_branches(after, n);
	}
}
