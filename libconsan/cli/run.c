/* consan-run: runs a program with consan in it, and reports.
 *
 * Prepares the environment in which the dynamic linker puts libconsan-cuda.so
 * first, waits, merges what all processes recorded and says with which status
 * to end. Looks into nothing but the first bytes of the program. */
#include "libconsan/base/base.h"
#include "libconsan/finding/finding.h"
#include "libconsan/options/options.h"
#include "libconsan/session/session.h"

#include <argp.h>
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY "libconsan-cuda.so"
#define INJECTED "libconsan-gpu.so"

enum { EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127, EXIT_USAGE = 64, EXIT_OURS = 70 };

struct run {
	struct options options;
	char **argv;            /* the program's */
	char *program;          /* its path */
	char *dir;              /* where processes record */
	VEC(char *) record;
};

static volatile sig_atomic_t child;

static void say(const char *fmt, ...) PRINTF_LIKE(1, 2);
static void say(const char *fmt, ...)
{
	va_list ap;

	fputs("consan-run: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* ---- the program ---- */

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

/* As a shell looks for it. NULL: nowhere. free() it. */
static char *find_program(const char *name)
{
	const char *path = getenv("PATH"), *at, *end;
	struct text t = { 0 };

	if (strchr(name, '/'))
		return is_file(name) ? base_strdup(name) : NULL;
	for (at = path ? path : "/usr/local/bin:/bin:/usr/bin"; ; at = end + 1) {
		end = strchrnul(at, ':');
		t.n = 0;
		text_printf(&t, "%.*s/%s", (int)(end - at), end > at ? at : ".", name);
		if (is_file(t.at) && !access(t.at, X_OK))
			return t.at;
		if (!*end)
			break;
	}
	text_free(&t);
	return NULL;
}

/* The dynamic linker brings consan in: is there going to be one? */
static bool is_dynamic(const Elf64_Ehdr *h, int fd)
{
	Elf64_Phdr p;

	for (unsigned i = 0; i < h->e_phnum; i++) {
		if (pread(fd, &p, sizeof p, (off_t)(h->e_phoff + i * sizeof p)) != sizeof p)
			return false;
		if (p.p_type == PT_INTERP)
			return true;
	}
	return false;
}

/* Says what is wrong with it; 0 if it can be run. */
static int check_program(const char *path)
{
	Elf64_Ehdr h = { 0 };
	struct stat st;
	ssize_t n;
	int fd, status = 0;

	if (access(path, X_OK)) {
		say("%s: %s", path, errno == EACCES ? "not executable" : strerror(errno));
		return EXIT_NOT_RUN;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* executable but not readable: let the kernel decide */
	n = pread(fd, &h, sizeof h, 0);
	if (n >= 2 && !memcmp(&h, "#!", 2)) {
		close(fd);
		return 0;
	}
	if (n < (ssize_t)sizeof h || memcmp(h.e_ident, ELFMAG, SELFMAG)) {
		say("%s: not a program", path);
		status = EXIT_NOT_RUN;
	} else if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != EM_X86_64) {
		say("%s: not a program for 64-bit x86", path);
		status = EXIT_NOT_RUN;
	} else if (!is_dynamic(&h, fd)) {
		say("%s: statically linked: consan cannot get into it; link it dynamically", path);
		status = CONSAN_EXIT_UNCHECKED;
	} else if (!fstat(fd, &st) && st.st_mode & (S_ISUID | S_ISGID) && geteuid()) {
		say("%s: set-user-ID: the dynamic linker keeps consan out of it", path);
		status = CONSAN_EXIT_UNCHECKED;
	}
	close(fd);
	return status;
}

/* ---- the environment ---- */

/* The folder that holds our library: beside consan-run, or as installed. It is one
 * of our own, as it holds a libcuda.so.1 that is for watched programs only. */
static char *library_dir(void)
{
	static const char *const place[] = { "", "/../lib/consan" };
	struct text t = { 0 };
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	char *slash;

	if (n <= 0) {
		say("/proc/self/exe cannot be read: is /proc mounted?");
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
	say("%s is not where it should be, in %s", LIBRARY, exe);
	text_free(&t);
	return NULL;
}

/* name=first, or name=first:what it was. */
static void put_first(const char *name, const char *first)
{
	const char *old = getenv(name);
	struct text t = { 0 };

	text_printf(&t, "%s%s%s", first, old && *old ? ":" : "", old && *old ? old : "");
	setenv(name, t.at, 1);
	text_free(&t);
}

/* Built with a sanitizer, the library needs its runtime to be first. */
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

/* The program may run elsewhere, and its expect_clean heeds them, too. */
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

/* In the child: what it changes is the child's own. */
static bool set_environment(struct run *r)
{
	struct text words = { 0 }, path = { 0 };
	const char *other;
	char *lib = library_dir();

	if (!lib)
		return false;
	if (r->options.backend == OPT_BACKEND_GPU) {
		text_printf(&path, "%s/" INJECTED, lib);
		if (access(path.at, R_OK))
			say("%s is not there: consan was built without CUPTI; nothing will be checked",
				path.at);
		other = getenv("CUDA_INJECTION64_PATH");
		if (other && *other && strcmp(other, path.at))
			say("CUDA_INJECTION64_PATH: %s is not loaded, as consan is in its place", other);
		setenv("CUDA_INJECTION64_PATH", path.at, 1);
	} else {
		text_printf(&path, "%s/" LIBRARY, lib);
		put_first("LD_PRELOAD", path.at);
		put_first("LD_LIBRARY_PATH", lib);
	}
	add_sanitizer();
	absolute_suppressions(r);
	options_format(&r->options, &words);
	setenv(OPTIONS_ENV, words.at ? words.at : "", 1);
	setenv("CONSAN_RESULTS", r->dir, 1);
	text_free(&words);
	text_free(&path);
	free(lib);
	return true;
}

static bool make_dir(struct run *r)
{
	const char *tmp = getenv("TMPDIR");
	struct text t = { 0 };

	text_printf(&t, "%s/consan-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	r->dir = mkdtemp(t.at);
	if (!r->dir)
		say("cannot make a folder for the results: %s: %s", t.at, strerror(errno));
	return r->dir != NULL;
}

/* ---- the progress line ---- */

#define TICK_MS 200

struct display {
	struct progress *page;  /* NULL: nothing is shown */
	char *path;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool over;
};

static void show_line(const struct display *d, bool *shown)
{
	struct text t = { 0 };
	struct winsize w;
	unsigned width = !ioctl(STDERR_FILENO, TIOCGWINSZ, &w) && w.ws_col > 40 ? w.ws_col : 80;
	const bool any = !d->over && progress_line(d->page, progress_now(), width - 1, &t);

	if (any)
		dprintf(STDERR_FILENO, "\r%s\033[K", t.at);
	else if (*shown)
		dprintf(STDERR_FILENO, "\r\033[K");
	*shown = any;
	text_free(&t);
}

static void *display_run(void *arg)
{
	struct display *d = arg;
	bool shown = false;

	pthread_mutex_lock(&d->lock);
	while (!d->over) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += TICK_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		pthread_cond_timedwait(&d->changed, &d->lock, &until);
		show_line(d, &shown);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

/* Before the fork: the environment names the page. On a terminal only. */
static void display_open(struct display *d, const struct run *r)
{
	const char *term = getenv("TERM");
	struct text path = { 0 };

	unsetenv(PROGRESS_ENV);
	if (r->options.quiet || !isatty(STDERR_FILENO) || !term || !strcmp(term, "dumb"))
		return;
	text_printf(&path, "%s/.progress", r->dir);
	d->page = progress_open(path.at);
	d->path = path.at;
	if (d->page)
		setenv(PROGRESS_ENV, path.at, 1);
}

static void display_begin(struct display *d)
{
	if (!d->page)
		return;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->changed, NULL);
	if (!pthread_create(&d->thread, NULL, display_run, d))
		return;
	progress_close(d->page);
	d->page = NULL;
}

static void display_end(struct display *d)
{
	if (d->page) {
		pthread_mutex_lock(&d->lock);
		d->over = true;
		pthread_cond_signal(&d->changed);
		pthread_mutex_unlock(&d->lock);
		pthread_join(d->thread, NULL);
		progress_close(d->page);
	}
	if (d->path)
		unlink(d->path);
	free(d->path);
}

/* ---- running ---- */

/* The terminal sends its signals to the program as well; what someone sends to
 * us by hand is passed on. */
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

static void run_child(struct run *r, int tell)
{
	int why;

	if (set_environment(r)) {
		execv(r->program, r->argv);
		why = errno;
	} else {
		why = 0;
	}
	if (write(tell, &why, sizeof why) != sizeof why)
		_exit(EXIT_OURS);
	_exit(EXIT_NOT_RUN);
}

/* The program's exit status, 128+n when killed. False: it never ran; *status
 * is ours. */
static bool run_program(struct run *r, int *status)
{
	struct display display = { .page = NULL };
	int tell[2], why, wait_status;
	ssize_t n;
	pid_t pid;

	if (pipe2(tell, O_CLOEXEC)) {
		say("%s", strerror(errno));
		*status = EXIT_OURS;
		return false;
	}
	fflush(NULL);
	display_open(&display, r);
	pid = fork();
	if (pid < 0) {
		display_end(&display);
		say("cannot fork: %s", strerror(errno));
		*status = EXIT_OURS;
		return false;
	}
	if (!pid) {
		close(tell[0]);
		run_child(r, tell[1]);
	}
	child = pid;
	catch_signals();
	close(tell[1]);
	n = read(tell[0], &why, sizeof why);
	close(tell[0]);
	display_begin(&display);
	while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
		;
	display_end(&display);
	if (n == sizeof why) {
		if (why)
			say("cannot run %s: %s", r->program,
				why == ENOEXEC ? "not a program" : strerror(why));
		*status = why ? EXIT_NOT_RUN : EXIT_OURS;
		return false;
	}
	if (WIFSIGNALED(wait_status)) {
		say("%s was killed by signal %d (%s)", r->program, WTERMSIG(wait_status),
			strsignal(WTERMSIG(wait_status)));
		*status = 128 + WTERMSIG(wait_status);
	} else {
		*status = WEXITSTATUS(wait_status);
	}
	return true;
}

/* ---- the end ---- */

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
	if (r->dir)
		rmdir(r->dir);
	free(r->dir);
	free(r->program);
}

/* No process of the program ever called CUDA: the report should say so. */
static void note_no_cuda(struct run *r)
{
	struct results_writer *w;
	struct text path = { 0 }, text = { 0 };
	struct err e = { 0 };

	if (r->record.n)
		return;
	text_printf(&path, "%s/0.jsonl", r->dir);
	w = results_create(path.at, &e);
	if (!w) {
		text_free(&path);
		return;
	}
	text_printf(&text, r->options.backend == OPT_BACKEND_GPU
		? "%s never came to the CUDA driver, or there is none here" : "%s never called CUDA",
		r->program);
	results_remark(w, RESULT_REMARK_note, text.at);
	results_close(w);
	text_free(&text);
	vec_push(&r->record, path.at);
}

static int report(struct run *r, int program)
{
	struct err e = { 0 };
	int status = program;

	list_records(r);
	note_no_cuda(r);
	if (!consan_report(&r->options, (const char *const *)r->record.at, r->record.n,
			program, &status, &e)) {
		say("%s", e.text);
		if (!status)
			status = EXIT_OURS;
	}
	return status;
}

/* A report that cannot be written is worth knowing before the program runs. */
static bool check_writable(const char *path)
{
	char *real = options_path(path, (long)getpid());
	int fd = open(real, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0)
		say("%s: cannot write the report: %s", real, strerror(errno));
	else
		close(fd);
	free(real);
	return fd >= 0;
}

/* Nor should a malformed file of suppressions wait for the program's end. */
static bool check_suppressions(const struct options *o)
{
	struct results r = { 0 };
	struct err e = { 0 };
	bool good = true;

	for (size_t i = 0; good && i < o->suppressions.n; i++)
		good = suppress_read(&r, o->suppressions.at[i], &e);
	if (!good)
		say("%s", e.text);
	results_free(&r);
	return good;
}

static bool check_reports(const struct options *o)
{
	bool good = !*o->log_file || check_writable(o->log_file);

	for (size_t i = 0; i < o->report.n; i++)
		good &= check_writable(o->report.at[i]);
	return good && check_suppressions(o);
}

/* Processes append their events: what an earlier run saved must not stay. */
static void clear_saved(const struct options *o)
{
	char *path = options_path(o->save, (long)getpid());

	if (*o->save && !strstr(o->save, "%p") && is_file(path) && truncate(path, 0))
		say("%s: %s", path, strerror(errno));
	free(path);
}

/* As test runners say it: both set, the index from 0. */
static bool shard_of_environment(struct options *o)
{
	const char *index = getenv("CONSAN_SHARD_INDEX"), *total = getenv("CONSAN_TOTAL_SHARDS");
	struct err e = { 0 };
	char value[64];

	if (*o->shard || !index || !total)
		return true;
	snprintf(value, sizeof value, "%lu/%.20s", strtoul(index, NULL, 10) + 1, total);
	if (options_set(o, "shard", value, &e))
		return true;
	say("CONSAN_SHARD_INDEX=%s of CONSAN_TOTAL_SHARDS=%s: the index is from 0 and below "
		"the total", index, total);
	return false;
}

static int watch(struct run *r)
{
	int status;

	if (!shard_of_environment(&r->options))
		return EXIT_USAGE;

	r->program = find_program(r->argv[0]);
	if (!r->program) {
		say("%s: no such program%s%s", r->argv[0],
			is_file(r->argv[0]) ? "; did you mean ./" : "",
			is_file(r->argv[0]) ? r->argv[0] : "");
		return EXIT_NOT_FOUND;
	}
	status = check_program(r->program);
	if (status)
		return status;
	if (!check_reports(&r->options) || !make_dir(r))
		return EXIT_OURS;
	clear_saved(&r->options);
	return run_program(r, &status) ? report(r, status) : status;
}

static int replay(struct run *r)
{
	struct err e = { 0 };
	int status = 0;

	if (consan_replay(&r->options, r->options.read, &status, &e))
		return status;
	say("%s", e.text);
	return status ? status : EXIT_OURS;
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
		/* the program and everything after it is the program's */
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

const char *argp_program_version = "consan-run 0.1";

int main(int argc, char **argv)
{
	static const struct argp_child children[] = { { &options_argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = {
		.parser = parse, .args_doc = "[--] PROGRAM [ARGUMENT...]", .children = children,
		.doc = "Runs a CUDA program on an emulated GPU and reports the concurrency bugs "
			"of its kernels."
			"\vExit status: the program's own; 66 if there are errors; 67 if a kernel "
			"could not be checked or none was launched; 126 or 127 if the program "
			"cannot be run; 64 for bad usage.",
	};
	struct run r = { 0 };
	int status;

	argp_err_exit_status = EXIT_USAGE;
	options_init(&r.options);
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &r);
	status = *r.options.read ? replay(&r) : watch(&r);
	clean_up(&r);
	options_free(&r.options);
	return status;
}
