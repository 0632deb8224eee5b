/* scenarios: runs a program that uses CUDA in many ways (scenario.cu) under a backend that
 * instruments: `scenarios BUILD BACKEND`. */
#include "tests/common/shell.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	bool emulated;           /* not on a GPU only */
	bool global;             /* with --gpu-global; then a GPU does not see what the host accesses */
	int status;
	const char *expected[3]; /* texts of the output */
} scenario[] = {
	{ "clean", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "race", true, false, 66, { "CS102", "1 of 1 kernel checked" } },
	/* no wait between launches; streams that do not wait for the default one */
	{ "streams", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "threads", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	/* grids that may overlap */
	{ "dependent", true, true, 0, { "scenario: correct", "2 of 2 kernels checked" } },
	{ "dependent-race", true, true, 66, { "scenario: correct", "CS118", "may still be running" } },
	{ "dependent-synced", true, true, 0, { "scenario: correct", "2 of 2 kernels checked" } },
	/* what was recorded before the kernel stopped is checked */
	{ "fault", true, false, 66, { "CS102", "until then was checked" } },
	{ "trap", true, false, 66, { "CS102", "CS905", "until then was checked" } },
	{ "hang", true, false, 66, { "CS705" } },
	/* graphs, node by node */
	{ "graph", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "graph-race", true, false, 66, { "CS102", "1 of 1 kernel checked" } },
	{ "graph-unused", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "graph-update", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "graph-update-race", true, false, 66, { "CS102", "1 of 1 kernel checked" } },
	{ "graph-nodes", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "graph-nodes-race", true, false, 66, { "CS102", "1 of 1 kernel checked" } },
	{ "graph-child", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "graph-child-race", true, false, 66, { "CS102", "1 of 1 kernel checked" } },
	{ "graph-params", false, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "graph-dependent", true, true, 0, { "scenario: correct", "2 of 2 kernels checked" } },
	{ "graph-dependent-race", true, true, 66,
		{ "scenario: correct", "CS118", "may still be running" } },
	{ "graph-cluster", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "graph-together", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "graph-fault", true, false, 66, { "CS102", "until then was checked" } },
	{ "graph-memory", false, false, 67,
		{ "scenario: correct", "cannot run node by node: it allocates memory" } },
	/* modules loaded from files */
	{ "file", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "file-race", true, false, 66, { "CS102", "1 of 1 kernel checked" } },
	{ "library-file", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	/* accesses past the end of an allocation */
	{ "guard", true, true, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "guard-past", true, true, 66,
		{ "CS903", "0 bytes past the end of an allocation of 4000 bytes" } },
	{ "guard-fill", false, true, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	/* kernels in modules of their own */
	{ "variables", true, false, 0, { "scenario: correct", "2 of 2 kernels checked" } },
	{ "resident", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	/* contexts and modules that end, and whose handles are used again */
	{ "devices", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "devices-fault", true, false, 66, { "CS102", "until then was checked" } },
	{ "reset", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "contexts", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "unload", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "unload-race", true, false, 66, { "scenario: correct", "CS103" } },
	{ "unload-library", true, false, 0, { "scenario: correct", "1 of 1 kernel checked" } },
	{ "unload-library-race", true, false, 66, { "scenario: correct", "CS103" } },
	{ "memory", false, false, 0,
		{ "scenario: correct", "as there was no more", "1 of 1 kernel checked" } },
};
/* Printed by the program if the machine lacks what the scenario needs */
#define NOT_RUN "scenario: not run"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Does the output contain `what`? Lines may be folded: a blank matches any white space. */
static bool contains(const char *what)
{
	for (const char *at = output; *at; at++) {
		const char *a = at, *w = what;

		while (*w && (*a == *w || (*w == ' ' && strchr(" \n", *a)))) {
			if (*w++ == ' ')
				a += strspn(a, " \n");
			else
				a++;
		}
		if (!*w)
			return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	unsigned bad = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: scenarios BUILD BACKEND\n");
		return 2;
	}
	for (size_t k = 0; k < COUNT(scenario); k++) {
		const char *not_run;
		bool ok;

		if (!scenario[k].emulated && strcmp(argv[2], "gpu"))
			continue;
		ok = scenario[k].status == shell("timeout 600 %s/consan-run --backend=%s --timeout=2 "
			"--no-source --print-level=info %s %s/tests/gpu/scenario %s 2>&1", argv[1], argv[2],
			scenario[k].global ? "--gpu-global --allow-unchecked" : "", argv[1], scenario[k].name);
		not_run = strstr(output, NOT_RUN);
		for (size_t i = 0; !not_run && i < 3 && scenario[k].expected[i]; i++)
			ok &= contains(scenario[k].expected[i]);
		if (not_run)
			printf("-     scenarios: %s (%.*s)\n", scenario[k].name,
				(int)strcspn(not_run + 10, "\n"), not_run + 10);
		else
			printf("%-5s scenarios: %s\n%s", ok ? "ok" : "BAD", scenario[k].name, ok ? "" : output);
		fflush(stdout);
		bad += !ok && !not_run;
	}
	return bad != 0;
}
