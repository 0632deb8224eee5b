/* run: consan-run. Runs a program under consan and reports.
 *
 * Sets up the environment so that the dynamic linker loads libconsan-cuda.so first, runs the
 * program, merges the records of all its processes, writes the reports and determines the
 * exit status. */
#include "run.h"

#include "libconsan/finding/finding.h"
#include "libconsan/options/options.h"
#include "libconsan/session/session.h"

#include <argp.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct run {
	struct options options;
	char **argv;            /* of the program */
	char *program;          /* its path */
	char *lib;              /* folder of our libraries */
	char *dir;              /* folder of the record files */
	char *origin;           /* folder of the store of PTX */
	struct text said;       /* lines about the sources of options, for the report */
	VEC(char *) record;     /* paths of the record files */
};

static volatile sig_atomic_t child;

/* ---- the environment ---- */

/* The folder of our library: that of consan-run, or where it is installed. It has no other
 * libraries, because its libcuda.so.1 is only for programs under consan-run. NULL: not found. */
static char *library_dir(void)
{
	static const char *const place[] = { "", "/../lib/consan" };
	struct text t = { 0 };
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	char *slash;

	if (n <= 0) {
		print_error("cannot read /proc/self/exe; is /proc mounted?");
		return NULL;
	}
	exe[n] = 0;
	slash = strrchr(exe, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < ARRAY_SIZE(place); i++) {
		t.n = 0;
		text_printf(&t, "%s%s/" LIBRARY, exe, place[i]);
		if (!access(t.at, R_OK)) {
			t.at[t.n - strlen("/" LIBRARY)] = 0;
			return t.at;
		}
	}
	print_error("cannot find %s in %s or %s/../lib/consan", LIBRARY, exe, exe);
	text_free(&t);
	return NULL;
}

/* Sets name=first, or name=first:OLD if it has a value. */
static void put_first(const char *name, const char *first)
{
	const char *old = getenv(name);
	struct text t = { 0 };

	text_printf(&t, "%s%s%s", first, old && *old ? ":" : "", old && *old ? old : "");
	setenv(name, t.at, 1);
	text_free(&t);
}

/* If consan is built with a sanitizer, the sanitizer's runtime must be loaded first. */
static void add_sanitizer(void)
{
	static const char *const runtime[] = { "__asan_init", "__tsan_init" };
	Dl_info info;

	for (size_t i = 0; i < ARRAY_SIZE(runtime); i++)
		if (dlsym(RTLD_DEFAULT, runtime[i]) && dladdr(dlsym(RTLD_DEFAULT, runtime[i]), &info)) {
			put_first("LD_PRELOAD", info.dli_fname);
			put_first("ASAN_OPTIONS", "detect_leaks=0");
		}
}

/* The program reads the suppressions as well, and may change its working directory. */
static void absolute_suppressions(struct run *r)
{
	struct options *o = &r->options;

	for (size_t i = 0; i < o->suppressions.n; i++) {
		char *real = realpath(o->suppressions.at[i], NULL);

		if (real)
			o->suppressions.at[i] = arena_strndup(&o->arena, real, strlen(real));
		free(real);
	}
}

/* The folder with sitecustomize.py, which sets up the frameworks, and the package consan. It is not
 * there if only a part of consan is installed. */
static void add_python(const char *lib)
{
	struct text path = { 0 };

	text_printf(&path, "%s/python", lib);
	if (!access(path.at, R_OK))
		put_first("PYTHONPATH", path.at);
	text_free(&path);
}

/* Runs in the child, because it changes the environment. */
static void set_environment(struct run *r)
{
	struct text words = { 0 }, path = { 0 };
	const char *other;

	if (r->options.backend == OPT_BACKEND_GPU) {
		text_printf(&path, "%s/" INJECTED, r->lib);
		other = getenv("CUDA_INJECTION64_PATH");
		if (other && *other && strcmp(other, path.at))
			print_error("CUDA_INJECTION64_PATH: %s is not loaded; consan takes its place", other);
		setenv("CUDA_INJECTION64_PATH", path.at, 1);
	} else {
		text_printf(&path, "%s/" LIBRARY, r->lib);
		put_first("LD_PRELOAD", path.at);
		setenv("NVTX_INJECTION64_PATH", path.at, 0);
		put_first("LD_LIBRARY_PATH", r->lib);
	}
	path.n = 0;
	text_printf(&path, "%s/" MAKERS, r->lib);
	put_first("LD_PRELOAD", path.at);
	add_sanitizer();
	add_python(r->lib);
	absolute_suppressions(r);
	options_format(&r->options, &words);
	setenv(CONSAN_SESSION_ENV, words.at ? words.at : "", 1);
	setenv("CONSAN_RESULTS", r->dir, 1);
	text_free(&words);
	text_free(&path);
}

static bool make_dir(struct run *r)
{
	const char *tmp = getenv("TMPDIR");
	struct text t = { 0 };

	text_printf(&t, "%s/consan-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	r->dir = mkdtemp(t.at);
	if (!r->dir)
		print_error("cannot create a folder for the results: %s: %s", t.at, strerror(errno));
	return r->dir != NULL;
}

/* ---- running ---- */

/* Forwards signals sent by kill() to the program; the terminal sends its signals to both. */
static void forward(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (child > 0 && info->si_code <= 0)
		kill((pid_t)child, sig);
}

static void catch_signals(void)
{
	static const int passed[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
	struct sigaction a = { .sa_sigaction = forward, .sa_flags = SA_SIGINFO | SA_RESTART };

	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		sigaction(passed[i], &a, NULL);
}

static void run_child(struct run *r, int exec_failed)
{
	int why;

	set_environment(r);
	execv(r->program, r->argv);
	why = errno;
	if (write(exec_failed, &why, sizeof why) != sizeof why)
		_exit(EXIT_INTERNAL);
	_exit(EXIT_NOT_RUN);
}

/* Runs the program and waits for it. *status: its exit status, 128 + n if signal n ended it.
 * False: it could not be run; *status is that of consan-run. */
static bool run_program(struct run *r, int *status)
{
	struct display display = { .page = NULL };
	int exec_failed[2], why, wait_status;
	ssize_t n;
	pid_t pid;

	if (pipe2(exec_failed, O_CLOEXEC)) {
		print_error("%s", strerror(errno));
		*status = EXIT_INTERNAL;
		return false;
	}
	fflush(NULL);
	display_open(&display, r->dir, r->options.quiet);
	pid = fork();
	if (pid < 0) {
		display_end(&display);
		print_error("cannot fork: %s", strerror(errno));
		*status = EXIT_INTERNAL;
		return false;
	}
	if (!pid) {
		close(exec_failed[0]);
		run_child(r, exec_failed[1]);
	}
	child = pid;
	catch_signals();
	close(exec_failed[1]);
	n = read(exec_failed[0], &why, sizeof why);
	close(exec_failed[0]);
	display_begin(&display);
	while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
		;
	display_end(&display);
	if (n == sizeof why) {
		print_error("cannot run %s: %s", r->program,
			why == ENOEXEC ? "not a program" : strerror(why));
		*status = EXIT_NOT_RUN;
		return false;
	}
	if (WIFSIGNALED(wait_status)) {
		print_error("%s was killed by signal %d (%s)", r->program, WTERMSIG(wait_status),
			strsignal(WTERMSIG(wait_status)));
		*status = 128 + WTERMSIG(wait_status);
	} else {
		*status = WEXITSTATUS(wait_status);
	}
	return true;
}

/* ---- the report ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_records(struct run *r)
{
	DIR *d = opendir(r->dir);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		struct text t = { 0 };

		if (entry->d_name[0] == '.')
			continue;
		text_printf(&t, "%s/%s", r->dir, entry->d_name);
		vec_push(&r->record, t.at);
	}
	if (d)
		closedir(d);
	if (r->record.n)
		qsort(r->record.at, r->record.n, sizeof *r->record.at, by_name);
}

static void clean_up(struct run *r)
{
	for (size_t i = 0; i < r->record.n; i++) {
		unlink(r->record.at[i]);
		free(r->record.at[i]);
	}
	vec_free(&r->record);
	close_origin(r->dir, r->origin);
	if (r->dir)
		rmdir(r->dir);
	free(r->dir);
	free(r->lib);
	free(r->program);
	text_free(&r->said);
}

/* Adds notes to the report: where options came from, and that no process of the program called
 * CUDA. */
static void add_notes(struct run *r)
{
	struct results_writer *w;
	struct text path = { 0 }, text = { 0 };
	struct consan_err e = { 0 };
	char *rest = r->said.n ? r->said.at : NULL, *line;

	if (!r->record.n)
		text_printf(&text, r->options.backend == OPT_BACKEND_GPU
			? "%s never used the NVIDIA driver" : "%s never called CUDA", r->program);
	if (!rest && !text.n)
		return;
	text_printf(&path, "%s/0.jsonl", r->dir);
	w = results_create(path.at, &e);
	while (w && (line = strsep(&rest, "\n")))
		if (*line)
			results_remark(w, RESULT_REMARK_note, line);
	if (w && text.n)
		results_remark(w, RESULT_REMARK_note, text.at);
	results_close(w);
	text_free(&text);
	vec_push(&r->record, path.at);
}

static int report(struct run *r, int program)
{
	struct symbols *symbols = symbols_open();
	struct consan_err e = { 0 };
	int status = program;

	list_records(r);
	add_notes(r);
	if (!consan_report(&r->options, (const char *const *)r->record.at, r->record.n,
			program, symbols_resolve, symbols, &status, &e)) {
		print_error("%s", e.text);
		if (!status)
			status = EXIT_INTERNAL;
	}
	symbols_close(symbols);
	return status;
}

/* Truncates the file of --save, to which the processes append their events. */
static void clear_saved(const struct options *o)
{
	char *path = options_path(o->save, (long)getpid());

	if (*o->save && !strstr(o->save, "%p") && is_file(path) && truncate(path, 0))
		print_error("%s: %s", path, strerror(errno));
	free(path);
}

/* --shard from the environment variables of test runners; the index counts from 0. */
static bool shard_of_environment(struct options *o)
{
	const char *index = getenv("CONSAN_SHARD_INDEX"), *total = getenv("CONSAN_TOTAL_SHARDS");
	struct consan_err e = { 0 };
	char value[64];

	if (*o->shard || !index || !total)
		return true;
	snprintf(value, sizeof value, "%lu/%.20s", strtoul(index, NULL, 10) + 1, total);
	if (options_set(o, "shard", value, &e))
		return true;
	print_error("CONSAN_SHARD_INDEX=%s, CONSAN_TOTAL_SHARDS=%s: the index must be from 0 to the total "
		"less 1", index, total);
	return false;
}

static int run_and_report(struct run *r)
{
	int status;

	if (!shard_of_environment(&r->options))
		return EXIT_USAGE;

	r->lib = library_dir();
	if (!r->lib)
		return EXIT_INTERNAL;
	r->program = find_program(r->argv[0]);
	if (!r->program) {
		print_error("%s: no such program%s%s", r->argv[0],
			is_file(r->argv[0]) ? "; did you mean ./" : "",
			is_file(r->argv[0]) ? r->argv[0] : "");
		return EXIT_NOT_FOUND;
	}
	status = check_program(r->program);
	if (status)
		return status;
	if (!check_options(&r->options, r->lib))
		return EXIT_USAGE;
	if (!make_dir(r))
		return EXIT_INTERNAL;
	r->origin = open_origin(&r->options, r->dir);
	clear_saved(&r->options);
	return run_program(r, &status) ? report(r, status) : status;
}

static int replay(struct run *r)
{
	struct consan_err e = { 0 };
	int status = 0;

	if (!check_options(&r->options, NULL))
		return EXIT_USAGE;
	if (consan_replay(&r->options, r->options.read, &status, &e))
		return status;
	print_error("%s", e.text);
	return status ? status : EXIT_INTERNAL;
}

/* ---- the command line ---- */

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct run *r = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &r->options;
		return 0;
	case ARGP_KEY_ARG:
		/* the remaining arguments belong to the program */
		r->argv = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!r->argv && !*r->options.read)
			argp_error(state, "no program to run");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* Visible, so that it replaces the C library's variable: --version prints it. */
__attribute__((visibility("default")))
const char *argp_program_version = "consan-run " CONSAN_VERSION;

/* Refuses options that do not exist, and takes those from elsewhere. */
static bool take_options(struct run *r, int argc, char **argv)
{
	const char *config = NULL;
	struct consan_err e = { 0 };

	if (options_known(OPTIONS_RUN, NULL, argc, argv, &config, &e)
			&& options_preset(&r->options, config, &r->said, &e))
		return true;
	print_error("%s", e.text);
	return false;
}

int main(int argc, char **argv)
{
	const struct argp_child children[] = { { options_argp(OPTIONS_RUN), 0, NULL, 0 }, { 0 } };
	const struct argp argp = {
		.parser = parse, .args_doc = "[--] PROGRAM [ARGUMENT...]", .children = children,
		.doc = "Runs a CUDA program on an emulated GPU and reports the concurrency bugs "
			"of its kernels."
			"\vExit status: that of the program; 66 if there are errors; 67 if a kernel "
			"could not be checked, a module or call is missing, or none was launched; 126 "
			"or 127 if the program cannot be run; 64 if it was not run because an option is wrong, "
			"or a file that one names cannot be read or written; 70 if a report could not be "
			"written in the end.",
	};
	struct run r = { 0 };
	int status;

	argp_err_exit_status = EXIT_USAGE;
	options_init(&r.options);
	if (!take_options(&r, argc, argv)) {
		options_free(&r.options);
		text_free(&r.said);
		return EXIT_USAGE;
	}
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &r);
	if (r.options.said.n)
		fprintf(stderr, "%s", r.options.said.at);
	status = *r.options.read ? replay(&r) : run_and_report(&r);
	clean_up(&r);
	options_free(&r.options);
	return status;
}
