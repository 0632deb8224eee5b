/* Tests of the rules CS10xx by the pairs of programs in tests/cuda/order.cu. */
#include "tests/common/find.h"
#include "tests/common/shell.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* Runs a form; only findings above a note count. */
static void expect(const char *name, const char *form, const char *rule, bool found)
{
	const bool documented = !strcmp(rule, "CS1009");
	const int is = shell("cd %s/tests/cuda && timeout 60 ../../consan-run --allow-unchecked%s ./order %s %s 2>&1",
		build_dir(), documented ? " --knob=documented_order=1" : "", name, form);

	cr_expect_eq(is, found && !documented ? 66 : 0, "%s %s: status %d\n%s", name, form, is, output);
	cr_expect_eq(has(output, rule), found, "%s %s: %s\n%s", name, form, rule, output);
	cr_expect(found || has(output, "0 errors, 0 warnings"), "%s %s:\n%s", name, form, output);
}

static void run_cases(unsigned part, unsigned parts)
{
	FILE *in = fopen("tests/cuda/order.cu", "r");
	char line[512], name[64], rule[16];
	unsigned n = 0;

	cr_assert(in);
	while (fgets(line, sizeof line, in)) {
		if (sscanf(line, "CASE(%63[a-z_], %15[A-Z0-9])", name, rule) != 2 || n++ % parts != part)
			continue;
		expect(name, "racy", rule, true);
		expect(name, "fixed", rule, false);
	}
	fclose(in);
	cr_assert_geq(n, 40u);
}

Test(order, pairs_1, .timeout = 300) { run_cases(0, 2); }
Test(order, pairs_2, .timeout = 300) { run_cases(1, 2); }

/* With the operations run when they are issued, and in another order. */
Test(order, orders_of_execution, .timeout = 300)
{
	static const char *const how[] = { "--launch-blocking", "--seed=3", "--backend=gpu-emulated --gpu-global" };

	for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
		int is = shell("cd %s/tests/cuda && timeout 60 ../../consan-run %s ./order kernels racy 2>&1",
			build_dir(), how[i]);

		cr_expect(is == 66 && has(output, "CS1002"), "%s: %d\n%s", how[i], is, output);
		is = shell("cd %s/tests/cuda && timeout 60 ../../consan-run %s ./order kernels fixed 2>&1",
			build_dir(), how[i]);
		cr_expect(!is && has(output, "0 errors"), "%s: %d\n%s", how[i], is, output);
	}
}

/* Both calls with their stacks, streams by name, the missing edge. */
Test(order, report, .timeout = 60)
{
	int is = shell("cd %s/tests/cuda && timeout 60 ../../consan-run ./order kernel_copy racy 2>&1", build_dir());

	cr_assert_eq(is, 66);
	cr_expect(has(output, "cudaMemcpyAsync in stream 2") && has(output, "kernel set in stream 1"), "%s", output);
	cr_expect(has(output, "kernel_copy") && has(output, "in main"), "%s", output);
	cr_expect(has(output, "in stream 1 after the first"), "%s", output);
	is = shell("cd %s/tests/cuda && timeout 60 ../../consan-run --report=order.html ./order kernel_copy racy >/dev/null 2>&1; "
		"cat order.html; rm order.html", build_dir());
	cr_expect(has(output, "Calls of the host, in their order") && has(output, "(earlier)"), "%s", output);
	is = shell("cd %s/tests/cuda && timeout 60 ../../consan-run ./order named racy 2>&1", build_dir());
	cr_assert_eq(is, 66);
	cr_expect(has(output, "kernel set in stream \"producer\"") || has(output, "kernel set in stream 1"), "%s", output);
}
