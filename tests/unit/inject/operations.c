/* operations: races between operations in GPU mode, by the pairs of programs in
 * tests/gpu/order_client.c and a fake driver. */
#include "tests/common/fake_gpu.h"
#include "tests/common/find.h"
#include "tests/common/limits.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int driven(const char *options, const char *args)
{
	const char *dir = build_dir();

	return shell("%s DRIVER_DEVICES=2 " LIMITED
		"%s/consan-run --backend=gpu --gpu-global=no --allow-unchecked %s %s/tests/gpu/order_client %s 2>&1",
		fake_gpu("driver"), dir, options, dir, args);
}

/* The racy form has a finding of this rule, the fixed one has none. */
static void expect(const char *name, const char *rule)
{
	const bool note = !strcmp(rule, "CS1007");
	char args[100];
	int is;

	snprintf(args, sizeof args, "%s racy", name);
	is = driven("--print-level=info", args);
	cr_expect_eq(is, note ? 0 : 66, "%s: %d\n%s", args, is, output);
	cr_expect(has(output, rule), "%s: %s\n%s", args, rule, output);
	snprintf(args, sizeof args, "%s fixed", name);
	is = driven("--print-level=info", args);
	cr_expect_eq(is, 0, "%s: %d\n%s", args, is, output);
	cr_expect_not(has(output, "CS10"), "%s:\n%s", args, output);
}

Test(operations, pairs, .timeout = TEST_LIMIT)
{
	FILE *in = fopen("tests/gpu/order_client.c", "r");
	char line[512], name[64], rule[16];
	unsigned n = 0;

	needs_gpu_mode();
	cr_assert(in);
	while (fgets(line, sizeof line, in)) {
		if (sscanf(line, "CASE(%63[a-z_], %15[A-Z0-9])", name, rule) != 2)
			continue;
		expect(name, rule);
		n++;
	}
	fclose(in);
	cr_assert_geq(n, 25u);
}

/* what: arguments of driver_client */
static int beside(const char *env, const char *what)
{
	const char *dir = build_dir();

	return shell("%s DRIVER_DEVICES=2 DRIVER_CHUNKS=3 %s " LIMITED "%s/consan-run --backend=gpu --no-global "
		"%s/tests/gpu/driver_client %s 2>&1", fake_gpu("driver"), env, dir, dir, what);
}

/* Kernels that wait for another launch, or for the host, end; they are checked unless their records are
 * mixed. */
Test(operations, beside, .timeout = TEST_LIMIT)
{
	needs_gpu_mode();
	cr_expect_eq(beside("DRIVER_END=peer", "beside devices"), 0, "%s", output);
	cr_expect(has(output, "ended") && has(output, "did not end soon"), "%s", output);
	cr_expect(has(output, "1 of 1 kernel checked"), "%s", output);
	cr_expect_eq(beside("DRIVER_END=peer", "beside modules"), 0, "%s", output);
	cr_expect(has(output, "ended") && has(output, "1 of 1 kernel checked"), "%s", output);
	/* each has a copy of the kernel, but in a module that is instrumented as a whole */
	cr_expect_eq(beside("DRIVER_END=peer", "beside module"), 0, "%s", output);
	cr_expect(has(output, "ended") && has(output, "1 of 1 kernel checked"), "%s", output);
	cr_expect_eq(beside("DRIVER_END=peer", "beside whole"), 67, "%s", output);
	cr_expect(has(output, "ended") && has(output, "are mixed"), "%s", output);
	cr_expect_eq(beside("DRIVER_END=host", "beside host"), 0, "%s", output);
	cr_expect(has(output, "ended") && has(output, "1 of 1 kernel checked"), "%s", output);
	cr_expect_eq(beside("DRIVER_END=host", "stopped"), 0, "%s", output);
	cr_expect(has(output, "1 of 1 kernel checked"), "%s", output);
	cr_expect_eq(beside("", "beside devices"), 0, "%s", output);
	cr_expect_not(has(output, "did not end soon"), "%s", output);
}

/* A kernel that could not be loaded beside another one is loaded ahead by the next run. */
Test(operations, beside_later, .timeout = TEST_LIMIT)
{
	char env[5100];

	needs_gpu_mode();
	cr_assert_eq(shell("rm -rf %s/tests/gpu/beside", build_dir()), 0);
	snprintf(env, sizeof env, "DRIVER_END=peer XDG_CACHE_HOME=%.4000s/tests/gpu/beside", build_dir());
	cr_expect_eq(beside(env, "beside-many"), 67, "%s", output);
	cr_expect(has(output, "ended") && has(output, "the driver cannot load"), "%s", output);
	cr_expect_eq(beside(env, "beside-many"), 0, "%s", output);
	cr_expect(has(output, "ended") && has(output, "2 of 2 kernels checked"), "%s", output);
}

/* The branches of a graph may wait for each other. */
Test(operations, branches, .timeout = TEST_LIMIT)
{
	needs_gpu_mode();
	cr_expect_eq(beside("DRIVER_END=peer", "branches two"), 0, "%s", output);
	cr_expect(has(output, "ended") && has(output, "2 of 2 kernels checked"), "%s", output);
	cr_expect(has(output, "did not end soon"), "%s", output);
	cr_expect_eq(beside("DRIVER_END=peer", "branches same"), 0, "%s", output);
	cr_expect(has(output, "ended") && has(output, "1 of 1 kernel checked"), "%s", output);
	cr_expect_eq(beside("", "branches two"), 0, "%s", output);
	cr_expect_not(has(output, "did not end soon"), "%s", output);
}

/* What the host may have ordered by memory is not compared, and the run says so. */
Test(operations, host, .timeout = TEST_LIMIT)
{
	static const char *const name[] = { "host_told fixed", "host_tells fixed" };

	needs_gpu_mode();
	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		cr_expect_eq(driven("", name[i]), 0, "%s", output);
		cr_expect(has(output, "not seen:") && has(output, "may have ordered"), "%s", output);
	}
	/* an asynchronous copy from pinned memory, to which host code has access meanwhile */
	driven("--gpu-global", "pageable fixed");
	cr_expect(has(output, "not seen:") && has(output, "CS1003"), "%s", output);
	driven("--gpu-global=auto", "pageable fixed"); /* a note, if it was not asked for */
	cr_expect(!has(output, "not seen:") && has(output, "CS1003"), "%s", output);
	driven("--gpu-global", "fills fixed");
	cr_expect_not(has(output, "not seen:"), "%s", output);
}

/* Both calls with their stacks, streams by name, the missing edge; what is not compared. */
Test(operations, report, .timeout = TEST_LIMIT)
{
	needs_gpu_mode();
	cr_assert_eq(driven("", "fill_copy racy"), 66, "%s", output);
	cr_expect(has(output, "cuMemsetD32Async in stream 2"), "%s", output);
	cr_expect(has(output, "cuMemcpyDtoDAsync in stream 1"), "%s", output);
	cr_expect(has(output, "in fill_copy") && has(output, "in main"), "%s", output);
	cr_expect(has(output, "in stream 1 after the first"), "%s", output);
	cr_expect(has(output, "not recorded"), "%s", output);
	driven("", "named racy");
	cr_expect(has(output, "in stream \"producer\"") || has(output, "in stream 1"), "%s", output);
	driven("--gpu-global", "fill_copy fixed");
	cr_expect(has(output, "recorded kernels access"), "%s", output);
	cr_expect(has(output, "host code"), "%s", output);
}
