/* ends: how programs end in GPU mode, with a fake driver. However they do, they end as without consan, what
 * was found is reported, and the launch that did not end counts as not checked. */
#include "tests/common/ended.h"
#include "tests/common/fake_gpu.h"
#include "tests/common/limits.h"
#include "libconsan/base/base.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

static int driven(const char *env, const char *client)
{
	const char *dir = build_dir();

	needs_gpu_mode();
	return shell("%s DRIVER_CHUNKS=3 COLUMNS=400 " KEEP_SEGV "%s " LIMITED
		"%s/consan-run --backend=gpu --no-global --error-exitcode=0 --allow-unchecked "
		"%s/tests/gpu/driver_client %s 2>&1 </dev/null", fake_gpu("driver"), env, dir, dir, client);
}

static struct how { char name[16]; int status; } hows[] = {
	{ "exit", 3 }, { "quick_exit", 3 }, { "_exit", 3 }, { "abort", 134 }, { "kill", 137 }, { "segv", 139 },
	{ "exec", 6 }, { "fork", 4 },
};

ParameterizedTestParameters(ends, during_a_launch)
{
	return cr_make_param_array(struct how, hows, ARRAY_SIZE(hows));
}

ParameterizedTest(struct how *h, ends, during_a_launch, .timeout = TEST_LIMIT)
{
	static const char *const from[] = { "thread", "handler" };
	char words[64];

	for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
		snprintf(words, sizeof words, "ends %s %s", h->name, from[i]);
		expect_ended(words, driven("DRIVER_END=later", words), h->status, "CS901");
		cr_assert(has(output, "NOT CHECKED: launch 1 did not finish") && has(output, "0 of 1 clusters"),
			"%s\n%s", words, output);
	}
}

/* The launching thread ends: others can launch. */
Test(ends, thread_ends, .timeout = TEST_LIMIT)
{
	expect_ended("pthread_exit", driven("DRIVER_END=later", "ends pthread_exit handler"), 4, "NOT CHECKED");
	cr_assert(has(output, "0 of 1 clusters were checked") && has(output, "CS901"), "%s", output);
}

Test(ends, strange_programs, .timeout = TEST_LIMIT)
{
	static const char *const what[] = { "strange plain", "strange clearenv", "strange close-all" };

	for (size_t i = 0; i < ARRAY_SIZE(what); i++) {
		expect_ended(what[i], driven("", what[i]), 4, "1 of 1 kernel checked");
		cr_assert_not(has(output, "INCOMPLETE"), "%s: %s", what[i], output);
	}
}
