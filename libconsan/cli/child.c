/* child: the program as a child of consan-run: its signals, its end, and the processes that it leaves
 * behind. */
#include "records.h"
#include "run.h"

#include "libconsan/options/options.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS (20 * 1000000L)
#define LEFT_SECONDS 2.0  /* in which a process that the program left behind calls CUDA */
#define BUSY_SECONDS 20.0 /* the same, if it has something to do all the time */

static volatile sig_atomic_t child;       /* 0: it has ended */
static volatile sig_atomic_t interrupted; /* a signal came when it had ended */
static bool was_closed[STDERR_FILENO + 1];
static struct sigaction old_pipe, old_size, old_child;

void open_standard(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN }, by_default = { .sa_handler = SIG_DFL };

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		was_closed[fd] = fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) == fd;
	sigaction(SIGPIPE, &ignore, &old_pipe);
	sigaction(SIGXFSZ, &ignore, &old_size); /* what exceeds a limit is not written, and a message says so */
	sigaction(SIGCHLD, &by_default, &old_child); /* else the program leaves no status */
}

/* ---- signals ---- */

static const int passed[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };

/* Forwards signals sent by kill() to the program; the terminal sends its signals to both. */
static void forward(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (!child)
		interrupted = 1;
	else if (info->si_code <= 0)
		kill((pid_t)child, sig);
}

static void catch_signals(int flags)
{
	struct sigaction a = { .sa_sigaction = forward, .sa_flags = SA_SIGINFO | flags };

	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		sigaction(passed[i], &a, NULL);
}

/* ---- the child ---- */

static void run_child(const struct program *p, int exec_failed, const sigset_t *mask)
{
	int why;

	set_environment(p->options, p->lib, p->dir);
	sigaction(SIGPIPE, &old_pipe, NULL);
	sigaction(SIGXFSZ, &old_size, NULL);
	sigaction(SIGCHLD, &old_child, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (was_closed[fd])
			close(fd);
	execv(p->path, p->argv);
	why = errno;
	if (write(exec_failed, &why, sizeof why) != sizeof why)
		_exit(EXIT_INTERNAL);
	_exit(EXIT_NOT_RUN);
}

static void pause_shortly(void)
{
	const struct timespec tick = { .tv_nsec = TICK_NS };

	nanosleep(&tick, NULL);
}

static bool runs(long pid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(f);
	return state == 'R';
}

/* Has a process that the program left behind something to do? On a busy machine it may not have come to
 * its first call yet. */
static bool others_run(void)
{
	FILE *f = fopen("/proc/thread-self/children", "re");
	bool any = false;
	long pid;

	while (f && !any && fscanf(f, "%ld", &pid) == 1)
		any = runs(pid);
	if (f)
		fclose(f);
	return any;
}

/* Waits for processes that the program left behind, as a daemon. One that has called CUDA may run as long
 * as it likes; others have LEFT_SECONDS in which they sleep. Appends to `unseen` what will not be in the report. */
static void wait_for_others(const char *dir, struct text *unseen)
{
	const double began = progress_seconds();
	double until = began + LEFT_SECONDS;
	struct records r = { 0 };
	bool announced = false;
	pid_t pid, writer;

	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 || errno == EINTR) {
		if (pid)
			continue;
		records_free(&r);
		records_list(&r, dir);
		writer = records_writer(&r);
		if (interrupted && writer)
			text_printf(unseen, "process %ld, which the program left behind, still runs\n", (long)writer);
		if (!writer && until < began + BUSY_SECONDS && others_run())
			until += 1e-9 * TICK_NS;
		if (interrupted || (!writer && progress_seconds() > until))
			break;
		if (!announced && progress_seconds() > until) {
			print_error("waiting for process %ld, which the program left behind; a signal, as by "
				"Ctrl-C, ends the waiting", (long)writer);
			announced = true;
		}
		pause_shortly();
	}
	records_free(&r);
}

bool run_program(const struct program *p, int *status, struct text *unseen)
{
	struct display display = { .page = NULL };
	int exec_failed[2], why, wait_status = 0;
	sigset_t all, old;
	ssize_t n;
	pid_t pid;

	if (pipe2(exec_failed, O_CLOEXEC)) {
		print_error("%s", strerror(errno));
		*status = EXIT_INTERNAL;
		return false;
	}
	fflush(NULL);
	display_open(&display, p->dir, p->options->quiet);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old); /* until they can be forwarded */
	pid = fork();
	if (pid < 0) {
		sigprocmask(SIG_SETMASK, &old, NULL);
		display_end(&display);
		print_error("cannot fork: %s", strerror(errno));
		*status = EXIT_INTERNAL;
		return false;
	}
	if (!pid) {
		close(exec_failed[0]);
		run_child(p, exec_failed[1], &old);
	}
	child = pid;
	catch_signals(SA_RESTART);
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(exec_failed[1]);
	n = read(exec_failed[0], &why, sizeof why);
	close(exec_failed[0]);
	display_begin(&display);
	while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
		;
	child = 0;
	catch_signals(0); /* a report may be for a pipe that no process reads: a signal ends the waiting */
	if (n != sizeof why)
		wait_for_others(p->dir, unseen);
	display_end(&display);
	if (n == sizeof why) {
		print_error("cannot run %s: %s", p->path,
			why == ENOEXEC ? "not a program" : strerror(why));
		*status = EXIT_NOT_RUN;
		return false;
	}
	if (WIFSIGNALED(wait_status)) {
		print_error("%s was killed by signal %d (%s)", p->path, WTERMSIG(wait_status),
			strsignal(WTERMSIG(wait_status)));
		*status = 128 + WTERMSIG(wait_status);
	} else {
		*status = WEXITSTATUS(wait_status);
	}
	return true;
}
