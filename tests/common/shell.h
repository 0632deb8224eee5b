/* shell: runs commands for tests and keeps their output. Header-only. */
#ifndef CONSAN_TESTS_SHELL_H
#define CONSAN_TESTS_SHELL_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char output[1 << 20]; /* stdout and stderr of the last command */

/* Runs a shell command. Returns its exit status, -1 if a signal ended it. Output that exceeds
 * `output` is lost. */
__attribute__((format(printf, 1, 2))) static inline int shell(const char *fmt, ...)
{
	char *command, rest[4096];
	va_list ap;
	FILE *in;
	int n, status;

	va_start(ap, fmt);
	n = vasprintf(&command, fmt, ap);
	va_end(ap);
	if (n < 0 || !(in = popen(command, "r")))
		abort();
	output[fread(output, 1, sizeof output - 1, in)] = 0;
	while (fread(rest, 1, sizeof rest, in) > 0)
		;
	status = pclose(in);
	free(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The build folder of this binary, BUILD/tests/... */
static inline const char *build_dir(void)
{
	static char self[4000];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *at, *tests = NULL;

	self[n < 0 ? 0 : n] = 0;
	for (at = self; (at = strstr(at, "/tests/")); at++)
		tests = at;
	if (!tests)
		abort();
	*tests = 0;
	return self;
}

#endif
