/* ptxas: the assembler as a process. It assembles a kernel together with the functions that write its
 * records, as the driver does, while nvJitLink assembles each function so that others could call it:
 * then setmaxnreg is ignored, and wgmma serialized. Files are anonymous memory. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libconsan/base/base.h"

extern char **environ;

static struct {
	char *path;                /* NULL: there is none */
	char version[128];
} found;
static pthread_once_t found_once = PTHREAD_ONCE_INIT;

/* What the process finds open. */
enum { IN = 3, OUT = 4, FIRST_OWN = 16 };

/* A number that is none of those. -1: failed */
static int new_file(void)
{
	int fd = memfd_create("consan", MFD_CLOEXEC), own;

	if (fd < 0)
		return -1;
	own = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OWN);
	close(fd);
	return own;
}

static bool write_all(int fd, const char *at, size_t n)
{
	while (n) {
		ssize_t k = write(fd, at, n);

		if (k < 0 && errno != EINTR)
			return false;
		at += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
	return true;
}

static void read_file(int fd, struct text *t)
{
	char part[1 << 13];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, part, sizeof part, at)) > 0) {
		text_add(t, part, (size_t)n);
		at += n;
	}
}

/* The environment without what consan-run sets up for the program. */
static char **environment(void)
{
	size_t n = 0, kept = 0;
	char **copy;

	while (environ[n])
		n++;
	copy = base_alloc((n + 2) * sizeof *copy);
	copy[kept++] = "CONSAN_UNWATCHED=1"; /* makers/exec.c */
	for (size_t k = 0; k < n; k++)
		if (strncmp(environ[k], "LD_PRELOAD=", 11) && strncmp(environ[k], "CUDA_INJECTION64_PATH=", 22))
			copy[kept++] = environ[k];
	return copy;
}

/* If something else in the program waited for the process, its status is not known; then the output
 * decides. */
static bool wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno == ECHILD;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* True: it has ended without an error. log: what it prints. */
static bool run(const char *path, char **argv, int in, int out, struct text *log)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int err = new_file();
	char **env;
	sigset_t none;
	pid_t pid;
	bool good;

	if (err < 0)
		return false;
	env = environment();
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_adddup2(&files, err, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
	if (in >= 0)
		posix_spawn_file_actions_adddup2(&files, in, IN);
	if (out >= 0)
		posix_spawn_file_actions_adddup2(&files, out, OUT);
	good = !posix_spawn(&pid, path, &files, &attr, argv, env) && wait_for(pid);
	read_file(err, log);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	free(env);
	close(err);
	return good;
}

/* ---- where it is ---- */

static bool is_program(const char *path)
{
	return !access(path, X_OK);
}

static char *in_path(void)
{
	const char *at = getenv("PATH"), *end;
	struct text t = { 0 };

	for (; at && *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, ':');
		t.n = 0;
		text_add(&t, at, (size_t)(end - at));
		text_printf(&t, "/ptxas");
		if (is_program(t.at))
			return t.at;
	}
	text_free(&t);
	return NULL;
}

static char *find_path(void)
{
	static const char *const pattern[] = { "/usr/local/cuda/bin/ptxas", "/usr/local/cuda*/bin/ptxas",
		"/opt/*/*/lib/python*/site-packages/nvidia/*/bin/ptxas",
		"/usr/*/lib/python*/*-packages/nvidia/*/bin/ptxas",
		"/opt/*/*/lib/python*/site-packages/triton/backends/nvidia/bin/ptxas",
		"/usr/*/lib/python*/*-packages/triton/backends/nvidia/bin/ptxas" };
	const char *own = getenv("CONSAN_PTXAS");
	char *path = NULL;
	glob_t g;

	if (own && *own)
		return is_program(own) ? base_strdup(own) : NULL;
	path = in_path();
	for (size_t k = 0; !path && k < ARRAY_SIZE(pattern); k++) {
		if (glob(pattern[k], 0, NULL, &g))
			continue;
		for (size_t i = 0; !path && i < g.gl_pathc; i++)
			path = is_program(g.gl_pathv[i]) ? base_strdup(g.gl_pathv[i]) : NULL;
		globfree(&g);
	}
	return path;
}

static void find(void)
{
	char name[] = "ptxas", option[] = "--version", *argv[] = { name, option, NULL };
	char *path = find_path();
	struct text log = { 0 };
	const char *version;

	if (path && run(path, argv, -1, -1, &log) && log.n && (version = strstr(log.at, "release "))) {
		snprintf(found.version, sizeof found.version, "ptxas %.*s",
			(int)strcspn(version + 8, "\n"), version + 8);
		found.path = path;
	} else {
		free(path);
	}
	text_free(&log);
}

const char *inject_ptxas(void)
{
	pthread_once(&found_once, find);
	return found.path ? found.version : NULL;
}

void *inject_run_ptxas(const char *ptx, size_t n, const char *arch, unsigned registers, size_t *bytes,
	char why[INJECT_WHY])
{
	char name[] = "ptxas", target[32], most[40], from[] = "/proc/self/fd/3", to_file[] = "/proc/self/fd/4",
		output[] = "-o";
	char *argv[] = { name, target, from, output, to_file, registers ? most : NULL, NULL };
	int in = new_file(), out = new_file();
	struct text log = { 0 }, code = { 0 };
	bool good = false;

	snprintf(target, sizeof target, "-arch=sm_%s", arch);
	snprintf(most, sizeof most, "-maxrregcount=%u", registers);
	if (in >= 0 && out >= 0 && write_all(in, ptx, n))
		good = run(found.path, argv, in, out, &log);
	if (good)
		read_file(out, &code);
	else if (log.n)
		snprintf(why, INJECT_WHY, "ptxas: %.200s", log.at);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	text_free(&log);
	*bytes = code.n;
	return code.n ? code.at : NULL;
}
