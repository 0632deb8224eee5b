/* ptxas: in a process that is ptxas. Reads the PTX that it will assemble before it begins, as the
 * caller may delete the file, and the cubin when it ends. */
#include "libconsan/origin/origin.h"
#include "libconsan/ptx/ptx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct {
	struct parts parts;
	char *output;
} job;

static void at_end(int status, void *user)
{
	struct text cubin = { 0 };
	struct consan_err e = { 0 };

	(void)user;
	if (!status && text_read(&cubin, job.output, &e))
		parts_put(&job.parts, cubin.at, cubin.n);
	text_free(&cubin);
}

/* One more line of the version: Triton has the version among the keys of its cache, so that it does
 * not find there what was compiled outside of consan, whose PTX is not known. */
static void at_end_of_version(int status, void *user)
{
	(void)status, (void)user;
	printf("consan remembers the PTX of the machine code\n");
	fflush(stdout);
}

/* The value of an option that is given as --name VALUE, --name=VALUE or -n VALUE; *k moves to it. */
static const char *value_of(char **argv, int *k, const char *name)
{
	size_t n = strlen(name);

	if (strncmp(argv[*k], name, n))
		return NULL;
	if (argv[*k][n] == '=')
		return argv[*k] + n + 1;
	return !argv[*k][n] && argv[*k + 1] ? argv[++*k] : NULL;
}

static bool is_regular(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

/* Inputs are known by their contents: other arguments are values of options. */
static void note_input(const char *path)
{
	struct text all = { 0 };
	struct consan_err e = { 0 };
	char suffix;

	if (is_regular(path) && text_read(&all, path, &e)
			&& fatbin_ptx_target(all.at, all.n, &suffix))
		parts_add_ptx(&job.parts, all.at, all.n);
	text_free(&all);
}

static void watch(char **argv)
{
	const char *output = "elf.o", *value;

	for (int k = 1; argv[k]; k++) {
		if (!strcmp(argv[k], "--version") || !strcmp(argv[k], "-V")) {
			on_exit(at_end_of_version, NULL);
			return;
		}
		if ((value = value_of(argv, &k, "-o")) || (value = value_of(argv, &k, "--output-file")))
			output = value;
		else if (*argv[k] != '-')
			note_input(argv[k]);
	}
	if (!job.parts.ptx.n)
		return;
	job.output = base_strdup(output);
	on_exit(at_end, NULL);
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
	const char *dir = getenv(ORIGIN_ENV);

	(void)argc;
	if (dir && *dir && !strncmp(program_invocation_short_name, "ptxas", 5))
		watch(argv);
}
