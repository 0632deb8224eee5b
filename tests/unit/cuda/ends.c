/* Tests of how programs end: however they do, from whichever thread and at whichever moment of a
 * launch, they end as without consan, what was found is reported, and a launch that did not run to
 * its end counts as not checked. tests/cuda/ends.cu is the program. */
#include "tests/common/find.h"
#include "tests/common/shell.h"
#include "libconsan/base/base.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

static int run(const char *words)
{
	return shell("cd %s/tests/cuda && COLUMNS=400 exec timeout -k 1 60 ../../consan-run %s 2>&1 </dev/null",
		build_dir(), words);
}

static void expect(const char *words, int status, const char *piece)
{
	int is = run(words);

	cr_assert_eq(is, status, "%s: status %d, expected %d\n%s", words, is, status, output);
	cr_assert(!piece || has(output, piece), "%s: no \"%s\" in\n%s", words, piece, output);
}

/* ---- the matrix ---- */

enum { CONTINUES = 4 }; /* the status of the program if it does not end early */

/* before: has it a meaning before the first call of CUDA? */
static struct how { char name[16]; int status; bool before; } hows[] = {
	{ "return", CONTINUES, true }, { "exit", 3, true }, { "quick_exit", 3, true }, { "_exit", 3, true },
	{ "abort", 134, true }, { "throw", 134, true }, { "term", 143, true }, { "kill", 137, true },
	{ "segv", 139, true }, { "exec", 6, true }, { "pthread_exit", CONTINUES, true },
	{ "fork-exit", CONTINUES, true }, { "fork-_exit", CONTINUES, true },
	{ "fork-exec", CONTINUES, true }, { "fork-calls", CONTINUES, false },
	{ "dlclose", CONTINUES, false }, { "unload", CONTINUES, false }, { "launch", CONTINUES, false },
	{ "free", CONTINUES, false }, { "reset", CONTINUES, false },
};
static const struct { const char *when; const char *from[5]; } whens[] = {
	{ "before", { "main", "thread", "handler", "atexit" } },
	{ "after", { "main", "thread", "handler", "callback", "atexit" } },
	{ "during", { "main", "thread", "handler", "process" } },
};

/* Does the launch that runs then lose its end? */
static bool cuts_off(const struct how *h, const char *from)
{
	if (!strcmp(h->name, "pthread_exit"))
		return strcmp(from, "thread") != 0; /* the main thread launches, or else ends the process */
	return h->status != CONTINUES;
}

static void one(const struct how *h, const char *from, const char *when)
{
	const bool early = !strcmp(when, "before"), amid = !strcmp(when, "during");
	char words[128];

	if (early && !h->before)
		return;
	/* the interrupted launch has locks: a launch by the handler is refused, not waited for */
	if (amid && !strcmp(h->name, "launch") && strcmp(from, "main") && strcmp(from, "thread"))
		return;
	snprintf(words, sizeof words, "--error-exitcode=0 ./ends %s %s %s", h->name, from, when);
	expect(words, h->status, early ? "never called CUDA" : "CS102");
	if (early)
		return;
	cr_assert_eq(has(output, "of 4 clusters ended"), amid && cuts_off(h, from), "%s\n%s", words, output);
	cr_assert_eq(has(output, "NOT CHECKED"), amid && cuts_off(h, from), "%s\n%s", words, output);
}

ParameterizedTestParameters(ends, matrix)
{
	return cr_make_param_array(struct how, hows, ARRAY_SIZE(hows));
}

ParameterizedTest(struct how *h, ends, matrix, .timeout = 300)
{
	for (size_t w = 0; w < ARRAY_SIZE(whens); w++)
		for (size_t f = 0; f < ARRAY_SIZE(whens[w].from) && whens[w].from[f]; f++)
			one(h, whens[w].from[f], whens[w].when);
}

/* A launch by the handler of a signal that interrupted a launch. */
Test(ends, no_launch_waits_for_itself, .timeout = 100)
{
	cr_assert_neq(run("--error-exitcode=0 ./ends launch handler during"), 124, "%s", output);
	cr_assert(has(output, "signal handler"), "%s", output);
}

/* ---- every report says so ---- */

/* A launch that did not end, and one that was stopped by the time, in each format. */
Test(ends, in_every_format, .timeout = 100)
{
	static const char *const format[] = { "txt", "json", "html", "sarif", "xml", "github" };
	char words[200];

	for (size_t i = 0; i < ARRAY_SIZE(format); i++) {
		snprintf(words, sizeof words, "--error-exitcode=0 --log-file=/dev/null --report=-.%s "
			"./ends exit thread during", format[i]);
		expect(words, 3, "0 of 4 clusters ended");
		snprintf(words, sizeof words, "--error-exitcode=0 --log-file=/dev/null --report=-.%s "
			"--timeout=0.3 ./ends return stays during", format[i]);
		expect(words, CONTINUES, "0 of 4 clusters ended");
		cr_assert(has(output, "CS705") || !strcmp(format[i], "github"), "%s", output);
	}
}
