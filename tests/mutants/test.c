/* mutants: a sample of what `make mutants` runs. Kernels with one
 * synchronisation deleted or weakened are found out, and what is done to the
 * PTX is what mutation.def says. */
#include "tests/common/shell.h"

#include <criterion/criterion.h>
#include <string.h>

static int mutants(const char *options)
{
	const char *build = build_dir();

	return shell("%s/tests/mutants/mutants %s %s 2>&1", build, options, build);
}

Test(mutants, sample, .timeout = 300)
{
	cr_assert_eq(mutants("--every=7"), 0, "%s", output);
	cr_assert_not_null(strstr(output, "100.0 %"), "%s", output);
}

Test(mutants, usage)
{
	cr_assert_eq(mutants("--every=0"), 2);
	cr_assert_eq(mutants("--program=none"), 1);
}
