/* ranges: a set of address ranges, in whatever order they are added. */
#include "instrument/inject/ranges.h"

#include <criterion/criterion.h>

Test(ranges, sorted_by_address)
{
	struct ranges e = { 0 };

	cr_assert_null(ranges_below(&e, 100));
	ranges_add(&e, 300, 10);
	ranges_add(&e, 100, 50);
	ranges_add(&e, 200, 20);
	ranges_add(&e, 200, 30);
	cr_assert_eq(e.list.n, 3);
	cr_assert_null(ranges_below(&e, 99));
	cr_assert_eq(ranges_below(&e, 199)->at, 100);
	cr_assert_eq(ranges_below(&e, 200)->bytes, 30);
	cr_assert_eq(ranges_below(&e, UINT64_MAX)->at, 300);
	ranges_remove(&e, 150);
	ranges_remove(&e, 200);
	cr_assert_eq(ranges_below(&e, 250)->at, 100);
	ranges_remove(&e, 100);
	ranges_remove(&e, 300);
	cr_assert_null(ranges_below(&e, UINT64_MAX));
	vec_free(&e.list);
}
