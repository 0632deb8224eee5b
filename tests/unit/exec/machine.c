/* The executor against hardware: tests/cuda/machine.cu must print under consan-run what an H200
 * printed, with one worker and with two. Findings are not checked here. */
#include "tests/common/shell.h"

#include <criterion/criterion.h>
#include <stdio.h>

static void compare(const char *options)
{
	static char want[sizeof output];
	const char *build = build_dir();
	FILE *f = fopen("tests/cuda/machine.h200", "r");

	cr_assert(f, "run from the top of the source tree");
	want[fread(want, 1, sizeof want - 1, f)] = 0;
	fclose(f);
	shell("%s/consan-run %s %s/tests/cuda/machine 2>/dev/null", build, options, build);
	cr_assert_str_eq(output, want);
}

Test(machine, prints_what_an_h200_printed)
{
	compare("--jobs=1");
}

Test(machine, with_two_workers)
{
	compare("--jobs=2");
}

Test(machine, with_another_schedule)
{
	compare("--seed=3 --async=random");
}
