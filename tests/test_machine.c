/* The executor against hardware: tests/cuda/machine.cu must print under
 * consan-run what an H200 printed, with one worker and with two. Whether it is
 * free of findings is not asked here. */
#include <criterion/criterion.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../libconsan/base.h"

static void read_all(FILE *f, struct text *out)
{
	char part[4096];
	size_t n;

	while ((n = fread(part, 1, sizeof part, f)) > 0)
		text_add(out, part, n);
}

/* This binary is BUILD/tests/test_machine. */
static void compare(const char *options)
{
	char self[4096] = "", *build;
	struct text command = { 0 }, want = { 0 }, got = { 0 };
	FILE *f = fopen("tests/cuda/machine.h200", "r");

	cr_assert(f, "run from the top of the source tree");
	read_all(f, &want);
	fclose(f);
	cr_assert(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	build = dirname(dirname(self));
	text_printf(&command, "%s/consan-run %s %s/tests/cuda/machine 2>/dev/null", build, options, build);
	f = popen(command.at, "r");
	cr_assert(f);
	read_all(f, &got);
	pclose(f);
	cr_assert_str_eq(got.at ? got.at : "", want.at);
	text_free(&command);
	text_free(&want);
	text_free(&got);
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
