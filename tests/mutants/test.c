/* mutants: a sample of `make mutants`: kernels with one synchronization instruction deleted or
 * weakened are detected. */
#include "tests/common/limits.h"
#include "tests/common/shell.h"

#include <criterion/criterion.h>
#include <string.h>

static int mutants(const char *options)
{
	const char *build = build_dir();

	return shell("%s/tests/mutants/mutants %s %s 2>&1", build, options, build);
}

Test(mutants, sample, .timeout = TEST_LIMIT)
{
	cr_assert_eq(mutants("--every=7"), 0, "%s", output);
	cr_assert_not_null(strstr(output, "100.0 %"), "%s", output);
}

Test(mutants, usage)
{
	cr_assert_eq(mutants("--every=0"), 2);
	cr_assert_eq(mutants("--program=none"), 1);
}
