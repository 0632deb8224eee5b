/* Frontiers: what is known of an agent only grows, in whatever order its lanes are added. */
#include "libconsan/check/clock.h"

#include <criterion/criterion.h>

enum { AGENT = 1, FIRST = 1, SECOND = 2, BOTH = 3 };

static struct clock_space space = { .ngeneric = 4, .nagents = 8 };

static void add(struct frontier *f, uint32_t lanes, uint32_t epoch)
{
	frontier_add(&space, f, PLANE_G, AGENT, lanes, BOTH, epoch);
}

Test(clock, lanes_one_by_one)
{
	struct frontier *f = frontier_new(&space);

	add(f, FIRST, 3);
	cr_expect_eq(frontier_full(&space, f, PLANE_G, AGENT), 0);
	cr_expect(frontier_knows(&space, f, AGENT, FIRST, 3));
	cr_expect_not(frontier_knows(&space, f, AGENT, BOTH, 3));
	add(f, SECOND, 4);
	cr_expect_eq(frontier_full(&space, f, PLANE_G, AGENT), 3);
	cr_expect(frontier_knows(&space, f, AGENT, SECOND, 4));
	frontier_put(&space, f);
	clock_space_close(&space);
}

/* An entry from before all lanes were known does not count as one that completes them. */
Test(clock, never_lowered)
{
	struct frontier *f = frontier_new(&space);

	add(f, FIRST, 3);
	add(f, BOTH, 5);
	add(f, SECOND, 6);
	cr_expect_eq(frontier_full(&space, f, PLANE_G, AGENT), 5);
	add(f, FIRST, 6);
	cr_expect_eq(frontier_full(&space, f, PLANE_G, AGENT), 6);
	frontier_put(&space, f);
	clock_space_close(&space);
}

Test(clock, same_lanes_again)
{
	struct frontier *f = frontier_new(&space), *g = frontier_new(&space);

	frontier_add(&space, f, PLANE_COLLECTIVE_G, AGENT, FIRST, BOTH, 3);
	frontier_add(&space, f, PLANE_COLLECTIVE_G, AGENT, FIRST, BOTH, 7);
	frontier_add(&space, f, PLANE_COLLECTIVE_G, AGENT, FIRST, BOTH, 5);
	cr_expect_eq(f->npart, 1);
	cr_expect_eq(frontier_lanes(&space, f, PLANE_COLLECTIVE_G, AGENT, 7), FIRST);
	frontier_join(&space, g, f);
	cr_expect(frontier_covers(g, f));
	frontier_put(&space, f);
	frontier_put(&space, g);
	clock_space_close(&space);
}
