/* Tests of programs with several host threads: the forms in tests/cuda/threads.cu. */
#include "tests/common/find.h"
#include "tests/common/limits.h"
#include "tests/common/shell.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static int run(const char *program, const char *name, const char *form, const char *options)
{
	return shell("cd %s/tests/cuda && " LIMITED "../../consan-run --allow-unchecked %s ./%s %s %s 2>&1",
		build_dir(), options, program, name, form);
}

static void expect_clean(const char *program, const char *name, const char *form, const char *options)
{
	const int is = run(program, name, form, options);

	cr_expect(!is && has(output, "0 errors, 0 warnings"), "%s %s %s: %d\n%s", name, form, options, is, output);
}

static void expect_rule(const char *program, const char *name, const char *rule, const char *options, int status)
{
	const int is = run(program, name, "racy", options);

	cr_expect(is == status && has(output, rule), "%s racy %s: %d, not %s\n%s", name, options, is, rule, output);
	expect_clean(program, name, "fixed", options);
}

/* Runs the rows of a kind; returns their number. */
static unsigned each(const char *kind, void (*with)(const char *name, const char *rule))
{
	FILE *in = fopen("tests/cuda/threads.cu", "r");
	char line[512], pattern[64], name[64], rule[16];
	unsigned n = 0;

	cr_assert(in);
	snprintf(pattern, sizeof pattern, "%s(%%63[a-z_]%%*[, ]%%15[A-Z0-9]", kind);
	while (fgets(line, sizeof line, in)) {
		*rule = 0;
		if (sscanf(line, pattern, name, rule) < 1)
			continue;
		n++;
		with(name, rule);
	}
	fclose(in);
	return n;
}

/* Without options, calls of two threads race only if they overlap in time. On a busy machine one thread may
 * be done before the other goes on; so the program has several tries. */
static void without_options(const char *name, const char *rule)
{
	for (unsigned tries = 0; tries < 40; tries++)
		if (run("threads", name, "racy", "") == 66 && has(output, rule))
			break;
	cr_expect(has(output, rule), "%s racy: not %s\n%s", name, rule, output);
	expect_clean("threads", name, "fixed", "");
}

static void with_knob(const char *name, const char *rule)
{
	expect_rule("threads", name, rule, "--knob=host_threads=1", 0);
	expect_clean("threads", name, "racy", "");
}

static void clean(const char *name, const char *rule)
{
	(void)rule;
	expect_clean("threads", name, "racy", "");
}

static void per_thread(const char *name, const char *rule)
{
	expect_rule("threads_ptds", name, rule, "", 66);
}

Test(threads, found, .timeout = TEST_LIMIT) { cr_expect_geq(each("CASE", without_options), 4u); }
Test(threads, seen, .timeout = TEST_LIMIT) { cr_expect_geq(each("SEEN", with_knob), 14u); }
Test(threads, not_seen, .timeout = TEST_LIMIT) { cr_expect_geq(each("CLEAN", clean), 4u); }
Test(threads, default_streams, .timeout = TEST_LIMIT) { cr_expect_geq(each("PTDS", per_thread), 3u); }

Test(threads, pool_with_knob, .timeout = TEST_LIMIT)
{
	expect_clean("threads", "pool", "fixed", "--knob=host_threads=1");
	expect_clean("threads", "pool", "fixed", "--seed=7");
}

/* All cases without a default stream behave the same with both. */
Test(threads, both_defaults, .timeout = TEST_LIMIT)
{
	expect_rule("threads_ptds", "per_thread_legacy", "CS1002", "", 66);
	expect_clean("threads", "default_stream", "racy", "");
}
