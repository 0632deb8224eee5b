/* ways: how consan fares with a program that uses the GPU in many ways (user.cu),
 * under a backend that instruments: `ways BUILD BACKEND`. Each row says what the
 * program and the report must say; global: with --gpu-global. */
#include "tests/common/shell.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *mode;
	bool emulated, global;
	int status;
	const char *says[3];
} row[] = {
	{ "clean", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "race", true, false, 66, { "CS102", "1 of 1 kernel checked" } },
	/* without a wait between launches, from streams that do not wait for the default one */
	{ "streams", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "threads", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	/* grids that may overlap */
	{ "dependent", true, true, 0, { "user: right", "2 of 2 kernels checked" } },
	{ "dependent-race", true, true, 66, { "user: right", "CS118", "may still be running" } },
	{ "dependent-synced", true, true, 0, { "user: right", "2 of 2 kernels checked" } },
	/* what was recorded before the kernel was stopped is checked */
	{ "fault", true, false, 66, { "CS102", "until then was checked" } },
	{ "trap", true, false, 66, { "CS102", "CS905", "until then was checked" } },
	{ "hang", true, false, 66, { "CS705" } },
	/* graphs, node by node */
	{ "graph", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "graph-race", true, false, 66, { "CS102", "1 of 1 kernel checked" } },
	{ "graph-unused", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "graph-update", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "graph-update-race", true, false, 66, { "CS102", "1 of 1 kernel checked" } },
	{ "graph-nodes", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "graph-nodes-race", true, false, 66, { "CS102", "1 of 1 kernel checked" } },
	{ "graph-child", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "graph-child-race", true, false, 66, { "CS102", "1 of 1 kernel checked" } },
	{ "graph-params", false, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "graph-dependent", true, true, 0, { "user: right", "2 of 2 kernels checked" } },
	{ "graph-dependent-race", true, true, 66, { "user: right", "CS118", "may still be running" } },
	{ "graph-cluster", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "graph-together", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "graph-fault", true, false, 66, { "CS102", "until then was checked" } },
	{ "graph-memory", false, false, 67, { "user: right", "cannot take apart: it allocates memory" } },
	/* modules that are read from files */
	{ "file", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "file-race", true, false, 66, { "CS102", "1 of 1 kernel checked" } },
	{ "library-file", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	/* what lies behind an allocation is nobody's */
	{ "guard", true, true, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "guard-past", true, true, 66, { "CS903", "0 bytes past the end of an allocation of 4000 bytes" } },
	{ "guard-fill", false, true, 0, { "user: right", "1 of 1 kernel checked" } },
	/* contexts and modules that end, and whose handles others get */
	{ "devices", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "devices-fault", true, false, 66, { "CS102", "until then was checked" } },
	{ "reset", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "contexts", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "unload", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "unload-race", true, false, 66, { "user: right", "CS103" } },
	{ "unload-library", true, false, 0, { "user: right", "1 of 1 kernel checked" } },
	{ "unload-library-race", true, false, 66, { "user: right", "CS103" } },
	{ "memory", false, false, 0, { "user: right", "as there was no more", "1 of 1 kernel checked" } },
};
/* The machine lacks what it takes. */
#define NOT_RUN "user: not run"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Lines may be folded: a blank stands for any. */
static bool says(const char *what)
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
		fprintf(stderr, "usage: ways BUILD BACKEND\n");
		return 2;
	}
	for (size_t k = 0; k < COUNT(row); k++) {
		const char *not_run;
		bool right;

		if (!row[k].emulated && strcmp(argv[2], "gpu"))
			continue;
		right = row[k].status == shell("timeout 120 %s/consan-run --backend=%s --timeout=2 --no-source "
			"--print-level=info %s %s/tests/gpu/user %s 2>&1", argv[1], argv[2],
			row[k].global ? "--gpu-global" : "", argv[1], row[k].mode);
		not_run = strstr(output, NOT_RUN);
		for (size_t i = 0; !not_run && i < 3 && row[k].says[i]; i++)
			right &= says(row[k].says[i]);
		if (not_run)
			printf("-     ways: %s (%.*s)\n", row[k].mode, (int)strcspn(not_run + 6, "\n"), not_run + 6);
		else
			printf("%-5s ways: %s\n%s", right ? "ok" : "BAD", row[k].mode, right ? "" : output);
		fflush(stdout);
		bad += !right && !not_run;
	}
	return bad != 0;
}
