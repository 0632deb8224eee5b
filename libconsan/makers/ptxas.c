/* ptxas: in a process that is ptxas. Reads the PTX that it will assemble before it begins, as the
 * caller may delete the file, and the cubin when it ends. */
#include "libconsan/origin/origin.h"
#include "libconsan/ptx/ptx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	struct parts parts;
	char *output;
	struct stat before;     /* of the output; zero: there was none */
	bool asks_version;
} job;

static bool is_regular(const char *path, struct stat *st)
{
	return !stat(path, st) && S_ISREG(st->st_mode);
}

/* Without code for a GPU (--gpu-name=compute_90) nothing is written: an older file is not its work. */
static bool is_written(void)
{
	struct stat now;

	return is_regular(job.output, &now) && (now.st_ino != job.before.st_ino
		|| now.st_size != job.before.st_size || now.st_mtim.tv_sec != job.before.st_mtim.tv_sec
		|| now.st_mtim.tv_nsec != job.before.st_mtim.tv_nsec);
}

static void at_end(int status, void *user)
{
	struct text cubin = { 0 };
	struct consan_err e = { 0 };

	(void)user;
	if (!status && is_written() && text_read(&cubin, job.output, &e))
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

/* ---- the inputs: files, standard input, strings ---- */

static void note_text(const char *at, size_t n)
{
	char suffix;

	if (fatbin_ptx_target(at, n, &suffix))
		parts_add_ptx(&job.parts, at, n);
}

/* The descriptor that a name stands for: of standard input, or as a shell names a pipe; -1: none. */
static int descriptor_of(const char *name)
{
	static const char *const folder[] = { "/dev/fd/", "/proc/self/fd/" };

	if (!strcmp(name, "-") || !strcmp(name, "/dev/stdin"))
		return STDIN_FILENO;
	for (unsigned i = 0; i < ARRAY_SIZE(folder); i++)
		if (!strncmp(name, folder[i], strlen(folder[i])))
			return atoi(name + strlen(folder[i]));
	return -1;
}

/* What can be read once only is replaced by a copy. */
static void make_readable_again(int fd)
{
	char part[1 << 16];
	struct stat st;
	ssize_t n;
	int copy;

	if (fstat(fd, &st) || S_ISREG(st.st_mode) || isatty(fd))
		return;
	copy = memfd_create("ptx", 0);
	if (copy < 0)
		return;
	while ((n = read(fd, part, sizeof part)) > 0)
		if (write(copy, part, (size_t)n) != n)
			break;
	lseek(copy, 0, SEEK_SET);
	dup2(copy, fd);
	close(copy);
}

/* Inputs are known by their contents: other arguments are values of options. */
static void note_input(const char *path)
{
	const int fd = descriptor_of(path);
	struct text all = { 0 };
	struct consan_err e = { 0 };
	char name[40];
	struct stat st;

	if (fd >= 0) {
		make_readable_again(fd);
		snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
		path = name;
	}
	if (is_regular(path, &st) && text_read(&all, path, &e))
		note_text(all.at, all.n);
	text_free(&all);
}

/* ---- the arguments ---- */

static void watch(char **word);

/* Options from files, separated by commas: words, which may be quoted. */
static void watch_files(const char *names)
{
	char *list = base_strdup(names), *rest = list, *name, *at, *to;
	struct consan_err e = { 0 };
	struct text all;
	VEC(char *) word;
	char quote;

	while ((name = strsep(&rest, ","))) {
		all = (struct text){ 0 };
		memset(&word, 0, sizeof word);
		if (!text_read(&all, name, &e)) {
			text_free(&all);
			continue;
		}
		text_add(&all, "", 1);
		for (at = all.at; *(at += strspn(at, " \t\r\n"));) {
			vec_push(&word, at);
			for (to = at, quote = 0; *at && (quote || !strchr(" \t\r\n", *at)); at++)
				if (*at == quote)
					quote = 0;
				else if (!quote && strchr("\"'", *at))
					quote = *at;
				else
					*to++ = *at;
			at += *at != 0;
			*to = 0;
		}
		vec_push(&word, NULL);
		watch(word.at);
		vec_free(&word);
		text_free(&all);
	}
	free(list);
}

static void set_output(const char *path)
{
	free(job.output);
	job.output = base_strdup(path);
	job.before = (struct stat){ 0 };
	if (!is_regular(path, &job.before))
		job.before = (struct stat){ 0 };
}

/* word: ends with NULL */
static void watch(char **word)
{
	const char *value;

	for (int k = 0; word[k]; k++) {
		if (!strcmp(word[k], "--version") || !strcmp(word[k], "-V"))
			job.asks_version = true;
		else if ((value = value_of(word, &k, "-o")) || (value = value_of(word, &k, "--output-file")))
			set_output(value);
		else if ((value = value_of(word, &k, "-ias"))
				|| (value = value_of(word, &k, "--input-as-string")))
			note_text(value, strlen(value));
		else if ((value = value_of(word, &k, "-optf"))
				|| (value = value_of(word, &k, "--options-file")))
			watch_files(value);
		else if (*word[k] != '-' || !word[k][1])
			note_input(word[k]);
	}
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
	const char *dir = getenv(ORIGIN_ENV);

	if (!dir || !*dir || strncmp(program_invocation_short_name, "ptxas", 5) || argc < 2)
		return;
	set_output("elf.o");
	watch(argv + 1);
	if (job.asks_version)
		on_exit(at_end_of_version, NULL);
	else if (job.parts.ptx.n)
		on_exit(at_end, NULL);
}
