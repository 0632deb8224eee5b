/* Tests of cuda: operations of several streams and of the host run at the same time
 * (tests/cuda/async.cu): results are right in each order that the program allows, races show in the
 * values under some seed, and what nothing can end is a deadlock. */
#include "tests/common/find.h"
#include "tests/common/limits.h"
#include "tests/common/shell.h"
#include "libconsan/base/base.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static int run(const char *options, const char *name)
{
	return shell("cd %s/tests/cuda && " LIMITED "../../consan-run %s ./async %s 2>&1", build_dir(), options,
		name);
}

/* Asserts the exit status, and a part of the output unless it is NULL. */
static void expect(const char *options, const char *name, int status, const char *piece)
{
	int is = run(options, name);

	cr_assert_eq(is, status, "%s %s: status %d, expected %d\n%s", options, name, is, status, output);
	cr_assert(!piece || has(output, piece), "%s %s: no \"%s\" in\n%s", options, name, piece, output);
}

static const char *const right[] = { "flag_streams", "flag_asleep", "flag_host", "flag_managed", "host_polls",
	"ping_pong", "flag_thread", "host_function", "query", "values", "value_for_kernel", "graph", "graph_events",
	"graph_memory", "driver_graph", "completion_event",
	"pipeline_right", "legacy", "ordered_free", "staged" };

Test(async, right_in_each_order, .timeout = TEST_LIMIT)
{
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		expect("", right[i], 0, "0 errors, 0 warnings");
		expect("--seed=1", right[i], 0, "0 errors, 0 warnings");
		expect("--seed=2", right[i], 0, "0 errors, 0 warnings");
	}
}

/* A loop that waits, and whose state never repeats, does not keep others waiting. */
Test(async, slices, .timeout = TEST_LIMIT)
{
	expect("", "flag_counting", 0, "0 errors, 0 warnings");
	expect("", "counts", 0, "0 errors");
}

Test(async, instrumented_and_explored, .timeout = TEST_LIMIT)
{
	static const char *const option[] = { "--backend=gpu-emulated", "--explore=3", "--verify-fixes=yes",
		"--reads=oldest", "--jobs=1" };
	static const char *const name[] = { "flag_streams", "flag_host", "graph" };

	for (size_t k = 0; k < ARRAY_SIZE(option); k++)
		for (size_t i = 0; i < ARRAY_SIZE(name); i++)
			expect(option[k], name[i], 0, "0 errors, 0 warnings");
}

/* A copy of the process has no thread that ends the wait, and the state of these loops never repeats. */
Test(async, explored_only_in_part, .timeout = TEST_LIMIT)
{
	expect("--explore=100", "counts", 0, "were not tried");
	expect("--explore=100", "flag_counting", 0, "were not tried");
	expect("--explore=3", "flag_host", 0, "not explored to their end");
	expect("--explore=3", "flag_streams", 0, "0 errors, 0 warnings");
}

/* Without the wait for an event, the copy overwrites a buffer that a kernel still reads. */
Test(async, race_shows_in_values, .timeout = TEST_LIMIT)
{
	unsigned wrong = 0;

	for (unsigned seed = 1; seed <= 4; seed++) {
		char options[40];

		snprintf(options, sizeof options, "--error-exitcode=0 --seed=%u", seed);
		wrong += run(options, "pipeline_racy") == 2;
	}
	cr_assert(wrong, "%s", output);
	expect("", "pipeline_racy", 66, "CS1002");
	expect("--error-exitcode=0 --launch-blocking", "pipeline_racy", 0, NULL);
}

Test(async, deadlocks, .timeout = TEST_LIMIT)
{
	static const struct { const char *name, *waits; } all[] = {
		{ "deadlock", "kernel raise in stream" }, { "deadlock_event", "kernel raise in stream" },
		{ "deadlock_legacy", "kernel raise in stream" }, { "deadlock_mutual", "kernel await in stream" },
		{ "deadlock_value", "stream memory wait in stream" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		expect("", all[i].name, 66, all[i].waits);
		cr_assert(has(output, "CS1020"), "%s: %s", all[i].name, output);
		expect("--seed=3", all[i].name, 66, "CS1020");
	}
	expect("", "deadlock_host", 66, "CS702");
	cr_assert_not(has(output, "CS1020"), "%s", output);
	expect("--backend=gpu-emulated", "deadlock", 66, "CS1020");
}

/* With several threads: only what is certain is a deadlock. */
Test(async, threads, .timeout = TEST_LIMIT)
{
	expect("", "deadlock_joined", 66, "CS702");
	expect("", "deadlock_condition", 66, "CS702");
	expect("", "flag_late", 0, "0 errors, 0 warnings");
	setenv("SLEEP", "22", 1);
	expect("", "flag_late", 0, "CS1021");
	cr_assert(has(output, "no progress for 2"), "%s", output);
	expect("--timeout=1", "flag_late", 66, "CS702");
	unsetenv("SLEEP");
}

/* The order in which the operations run is explored, and what it shows is repeated by its seed. */
Test(async, explored_orders, .timeout = TEST_LIMIT)
{
	char option[64];
	unsigned long long seed;

	expect("", "hidden_order", 0, "0 errors, 0 warnings");
	expect("--explore=6", "hidden_order", 66, "CS702");
	cr_assert(strstr(output, "--seed=") && sscanf(strstr(output, "--seed=") + 7, "%llu", &seed) == 1,
		"%s", output);
	snprintf(option, sizeof option, "--seed=%llu", seed);
	expect(option, "hidden_order", 66, "CS702");
	expect("--explore=6", "ordered_right", 0, "0 errors, 0 warnings");
}

/* The same seed gives the same report, whatever the number of threads. */
Test(async, deterministic, .timeout = TEST_LIMIT)
{
	static char first[sizeof output];
	static const char *const name[] = { "pipeline_racy", "deadlock_mutual" };

	for (size_t i = 0; i < ARRAY_SIZE(name); i++)
		for (unsigned k = 0; k < 6; k++) {
			shell("cd %s/tests/cuda && " LIMITED "../../consan-run --seed=5 --jobs=%d ./async %s 2>&1"
				" | sed 's/0x[0-9a-f]*/ADDRESS/g'", build_dir(), k % 2 ? 1 : 4, name[i]);
			if (!k)
				memcpy(first, output, sizeof first);
			cr_assert_str_eq(output, first, "%s", name[i]);
		}
}

/* The queue is bounded, as a GPU's is. */
Test(async, many_operations, .timeout = TEST_LIMIT)
{
	expect("", "many", 0, "0 errors, 0 warnings");
}
