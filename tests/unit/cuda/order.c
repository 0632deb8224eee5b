/* Tests of the rules CS10xx by the pairs of programs in tests/cuda/order.cu and inside.cu. */
#include "tests/common/find.h"
#include "tests/common/limits.h"
#include "tests/common/shell.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* Runs a form; only findings above a note count. */
static void expect(const char *program, const char *name, const char *form, const char *rule, bool found)
{
	const bool documented = !strcmp(rule, "CS1009");
	const int is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run --allow-unchecked%s ./%s %s %s 2>&1",
		build_dir(), documented ? " --knob=documented_order=1" : "", program, name, form);

	cr_expect_eq(is, found && !documented ? 66 : 0, "%s %s: status %d\n%s", name, form, is, output);
	cr_expect_eq(has(output, rule), found, "%s %s: %s\n%s", name, form, rule, output);
	cr_expect(found || has(output, "0 errors, 0 warnings"), "%s %s:\n%s", name, form, output);
}

/* The cases of a file that is a part of the program. */
static void run_cases(const char *program, const char *file, unsigned least, unsigned part,
	unsigned parts)
{
	char line[512], name[64], rule[16];
	unsigned n = 0;
	FILE *in;

	snprintf(line, sizeof line, "tests/cuda/%s", file);
	in = fopen(line, "r");
	cr_assert(in);
	while (fgets(line, sizeof line, in)) {
		if (sscanf(line, "CASE(%63[a-z_], %15[A-Z0-9])", name, rule) != 2 || n++ % parts != part)
			continue;
		expect(program, name, "racy", rule, true);
		expect(program, name, "fixed", rule, false);
	}
	fclose(in);
	cr_assert_geq(n, least);
}

Test(order, pairs_1, .timeout = TEST_LIMIT) { run_cases("order", "order.cu", 40, 0, 2); }
Test(order, pairs_2, .timeout = TEST_LIMIT) { run_cases("order", "order.cu", 40, 1, 2); }
Test(order, pairs_of_served, .timeout = TEST_LIMIT) { run_cases("order", "order_served.cuh", 15, 0, 1); }
Test(order, pairs_of_threads, .timeout = TEST_LIMIT) { run_cases("order", "order_threads.cuh", 4, 0, 1); }
Test(order, pairs_of_nodes, .timeout = TEST_LIMIT) { run_cases("inside", "inside.cu", 7, 0, 1); }
Test(order, pairs_of_launched, .timeout = TEST_LIMIT)
{
	run_cases("inside", "inside_launched.cuh", 25, 0, 1);
}

/* Programs of the host beside grids that are right: nothing is found, and nothing is said to be unseen. */
static void run_quiet(const char *file, unsigned least, unsigned times)
{
	char line[512], name[64];
	FILE *in = fopen(file, "r");
	unsigned n = 0;

	cr_assert(in);
	while (fgets(line, sizeof line, in)) {
		if (sscanf(line, "QUIET(%63[a-z_])", name) != 1 || !++n)
			continue;
		for (unsigned i = 0; i < times; i++) {
			const int is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run ./order %s fixed 2>&1",
				build_dir(), name);

			cr_expect(!is && has(output, "0 errors, 0 warnings") && !has(output, "not seen"),
				"%s: status %d\n%s", name, is, output);
		}
	}
	fclose(in);
	cr_assert_geq(n, least);
}

Test(order, quiet, .timeout = TEST_LIMIT) { run_quiet("tests/cuda/order_served.cuh", 8, 1); }
/* The threads take turns in other orders each time. */
Test(order, quiet_threads, .timeout = TEST_LIMIT) { run_quiet("tests/cuda/order_threads.cuh", 9, 2); }

/* In other orders, too. */
Test(order, served_in_other_orders, .timeout = TEST_LIMIT)
{
	static const char *const name[] = { "served_early", "served_twice", "served_copy" };

	for (unsigned i = 0; i < 9; i++) {
		int is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run --seed=%u ./order %s racy 2>&1", build_dir(),
			i + 1, name[i % 3]);

		cr_expect(is == 66 && has(output, "CS100"), "seed %u: %d\n%s", i + 1, is, output);
		is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run --seed=%u ./order %s fixed 2>&1", build_dir(),
			i + 1, name[i % 3]);
		cr_expect(!is && has(output, "0 errors"), "seed %u: %d\n%s", i + 1, is, output);
	}
}

/* What conditional nodes and grids that kernels launch do. One launch in it is refused. */
Test(order, inside, .timeout = TEST_LIMIT)
{
	static const char *const how[] = { "", "--launch-blocking", "--seed=5" };

	for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
		const int is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run %s ./inside values 2>&1",
			build_dir(), how[i]);

		cr_expect(is == 67 && has(output, "values: OK") && has(output, "0 errors, 1 warning"),
			"%s: %d\n%s", how[i], is, output);
		cr_expect(has(output, "launch by a kernel") && has(output, "the block is (2048,1,1)")
			&& !has(output, "not seen"), "%s", output);
	}
}

/* Launches beyond the limits of the device runtime fail, and the report says so. */
Test(order, inside_limits, .timeout = 100)
{
	const int is = shell("cd %s/tests/cuda && timeout 60 ../../consan-run ./inside limits 2>&1", build_dir());

	cr_expect(is == 67 && has(output, "limits: OK"), "%d\n%s", is, output);
	cr_expect(has(output, "cudaErrorLaunchOutOfResources") && has(output, "up to 120 total fire-and-forget")
		&& has(output, "up to 255 pending tail launches"), "%s", output);
}

/* The same from what instrumented kernels record. */
Test(order, gpu_emulated, .timeout = TEST_LIMIT)
{
	const int is = shell("%s/tests/gpu/operations --jobs=2 %s gpu-emulated order", build_dir(), build_dir());

	cr_expect_eq(is, 0, "%s", output);
	cr_expect(has(output, ", 0 wrong"), "%s", output);
}

/* With the operations run when they are issued, and in another order. */
Test(order, orders_of_execution, .timeout = TEST_LIMIT)
{
	static const char *const how[] = { "--launch-blocking", "--seed=3", "--backend=gpu-emulated --gpu-global" };

	for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
		int is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run %s ./order kernels racy 2>&1",
			build_dir(), how[i]);

		cr_expect(is == 66 && has(output, "CS1002"), "%s: %d\n%s", how[i], is, output);
		is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run %s ./order kernels fixed 2>&1",
			build_dir(), how[i]);
		cr_expect(!is && has(output, "0 errors"), "%s: %d\n%s", how[i], is, output);
	}
}

/* Kernels that meet, in other orders: what one has written while it only yielded must wake the other. */
Test(order, meetings_in_other_orders, .timeout = TEST_LIMIT)
{
	static const char *const name[] = { "met_start", "met_way", "met_twice" };

	for (unsigned i = 0; i < 12; i++) {
		int is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run --seed=%u ./order %s racy 2>&1",
			build_dir(), i + 1, name[i % 3]);

		cr_expect(is == 66 && has(output, "CS1002"), "seed %u: %d\n%s", i + 1, is, output);
		is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run --seed=%u ./order %s fixed 2>&1",
			build_dir(), i + 1, name[i % 3]);
		cr_expect(!is && has(output, "0 errors"), "seed %u: %d\n%s", i + 1, is, output);
	}
}

/* Instrumented kernels that ran at the same time are checked together, in the order of their tickets. */
Test(order, meetings_one_by_one, .timeout = TEST_LIMIT)
{
	static const char *const name[] = { "met_start", "met_start_copy", "met_end", "met_end_copy", "met_way" };

	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		int is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run --backend=gpu-emulated "
			"--gpu-global ./order %s fixed 2>&1", build_dir(), name[i]);

		cr_expect(!is && has(output, "0 errors"), "%s: %d\n%s", name[i], is, output);
		is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run --backend=gpu-emulated "
			"--gpu-global ./order %s racy 2>&1", build_dir(), name[i]);
		cr_expect(is == 66 && has(output, "CS1002"), "%s: %d\n%s", name[i], is, output);
	}
}

/* Both calls with their stacks, streams by name, the missing edge. */
Test(order, report, .timeout = TEST_LIMIT)
{
	int is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run ./order kernel_copy racy 2>&1", build_dir());

	cr_assert_eq(is, 66);
	cr_expect(has(output, "cudaMemcpyAsync in stream 2") && has(output, "kernel set in stream 1"), "%s", output);
	cr_expect(has(output, "kernel_copy") && has(output, "in main"), "%s", output);
	cr_expect(has(output, "in stream 1 after the first"), "%s", output);
	is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run --report=order.html ./order kernel_copy racy "
		">/dev/null 2>&1; cat order.html; rm order.html", build_dir());
	cr_expect(has(output, "Calls of the host, in their order") && has(output, "(earlier)"), "%s", output);
	is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run ./order graph_nodes racy 2>&1", build_dir());
	cr_expect(has(output, "branch 1 of a graph: memset") && has(output, "branch 2 of a graph: memset"), "%s", output);
	is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run ./order host_reads racy 2>&1", build_dir());
	cr_assert_eq(is, 66);
	cr_expect(has(output, "host access races with an operation  order.cu:") && !has(output, "libc"), "%s",
		output);
	is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run ./order named racy 2>&1", build_dir());
	cr_assert_eq(is, 66);
	cr_expect(has(output, "kernel set in stream \"producer\"") || has(output, "kernel set in stream 1"), "%s", output);
}
