/* mutants: a sample of what `make mutants` runs. Kernels with one
 * synchronisation deleted or weakened are found out, and what is done to the
 * PTX is what mutation.def says. */
#include <criterion/criterion.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char output[1 << 20];

/* build/tests/test_mutants -> build/tests/mutants/mutants */
static int mutants(const char *options)
{
	char self[PATH_MAX] = "", command[3 * PATH_MAX], *dir;
	size_t n;
	FILE *in;
	int rc;

	cr_assert_gt(readlink("/proc/self/exe", self, sizeof self - 1), 0);
	dir = dirname(self);
	snprintf(command, sizeof command, "%s/mutants/mutants %s %s/.. 2>&1", dir, options, dir);
	in = popen(command, "r");
	cr_assert_not_null(in);
	n = fread(output, 1, sizeof output - 1, in);
	output[n] = 0;
	rc = pclose(in);
	cr_assert(WIFEXITED(rc));
	return WEXITSTATUS(rc);
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
