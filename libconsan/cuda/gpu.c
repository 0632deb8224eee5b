/* gpu: the session of this process and its sticky error. */
#include "gpu.h"

#include "libconsan/base/base.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct hint { unsigned sm; char suffix; bool of_program; };

static struct {
	pthread_mutex_t lock;
	struct consan *c;
	int broken;             /* why there is no session */
	_Atomic int sticky;
	bool forked;
	_Atomic unsigned launching;
	VEC(struct hint) hint;
	VEC(const char *) no_runtime; /* paths, "" for the program */
} gpu = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* libjansson.a is linked in, though it is not built for shared libraries: its
 * one reference to data outside is to stdin, which -Wl,--wrap turns into this. */
FILE *__wrap_stdin;

void gpu_say(const char *fmt, ...)
{
	va_list ap;
	char text[1024];

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "consan: %s\n", text);
}

/* A name of its own for every process image: a pid comes again after exec. */
static char *record_path(const char *dir)
{
	struct text path = { 0 };
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	text_printf(&path, "%s/%ld-%lld%09ld.jsonl", dir, (long)getpid(),
		(long long)now.tv_sec, now.tv_nsec);
	return path.at;
}

static void before_fork(void)
{
	pthread_mutex_lock(&gpu.lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&gpu.lock);
}

/* The parent's session stays the parent's: its threads and its place in the
 * record file are not here. CUDA forbids this use as well. */
static void after_fork_child(void)
{
	if (gpu.c) {
		gpu.forked = true;
		gpu.broken = cudaErrorInitializationError;
	}
	pthread_mutex_unlock(&gpu.lock);
}

/* The newest image of the program itself decides; libraries only if it has
 * none, for they come with images for every GPU there is. */
static void announce(struct consan *c)
{
	bool own = false;

	for (size_t i = 0; i < gpu.hint.n; i++)
		own |= gpu.hint.at[i].of_program;
	for (size_t i = 0; i < gpu.hint.n; i++)
		if (gpu.hint.at[i].of_program == own)
			consan_arch_hint(c, gpu.hint.at[i].sm, gpu.hint.at[i].suffix);
}

static void remark_no_runtime(struct consan *c)
{
	for (size_t i = 0; i < gpu.no_runtime.n; i++) {
		const char *path = gpu.no_runtime.at[i];
		struct text t = { 0 };

		text_printf(&t, "%s: its CUDA runtime is static and stripped, so its kernels "
			"cannot be watched; relink with -cudart shared, or keep the symbols",
			*path ? path : program_invocation_name);
		consan_remark(c, REMARK_NOTE, t.at);
		text_free(&t);
	}
}

static int open_session(void)
{
	const char *dir = getenv("CONSAN_RESULTS");
	struct err e = { 0 };
	char *path;

	gpu.c = consan_open(getenv("CONSAN_OPTIONS"), &e);
	if (!gpu.c) {
		gpu_say("%s", e.text);
		return gpu.broken = cudaErrorInitializationError;
	}
	if (dir && *dir) {
		path = record_path(dir);
		if (!consan_record_to(gpu.c, path, &e))
			gpu_say("findings are lost: %s: %s", path, e.text);
		free(path);
	}
	consan_progress_to(gpu.c, getenv(PROGRESS_ENV));
	announce(gpu.c);
	remark_no_runtime(gpu.c);
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	return 0;
}

static int session(void)
{
	int error;

	pthread_mutex_lock(&gpu.lock);
	error = gpu.broken;
	if (!gpu.c && !error)
		error = open_session();
	pthread_mutex_unlock(&gpu.lock);
	return error;
}

int gpu_ready(void)
{
	int error = session();

	return error ? error : gpu.sticky;
}

struct consan *gpu_session(void)
{
	return gpu.c;
}

const struct consan_device *gpu_device(void)
{
	return consan_device(gpu.c);
}

void gpu_fault(int error)
{
	int none = 0;

	atomic_compare_exchange_strong(&gpu.sticky, &none, error);
}

void gpu_reset(void)
{
	gpu.sticky = 0;
}

void gpu_remark(enum consan_remark kind, const char *fmt, ...)
{
	va_list ap;
	char text[1024];

	if (session())
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	consan_remark(gpu.c, kind, text);
}

void gpu_no_runtime(const char *path)
{
	vec_push(&gpu.no_runtime, base_strdup(path));
	if (!*path)
		gpu_say("the CUDA runtime in this program is static and stripped: "
			"relink with -cudart shared, or keep the symbols");
}

/* table.c: a call of the program that has no implementation. */
void gpu_unsupported(const char *name)
{
	gpu_remark(REMARK_CALL_UNSUPPORTED, "%s", name);
}

void gpu_hint(unsigned sm, char suffix, bool of_program)
{
	pthread_mutex_lock(&gpu.lock);
	vec_push(&gpu.hint, ((struct hint){ sm, suffix, of_program }));
	if (gpu.c)
		consan_arch_hint(gpu.c, sm, suffix);
	pthread_mutex_unlock(&gpu.lock);
}

enum consan_status gpu_launch(const struct consan_launch *l, struct err *e)
{
	enum consan_status status;

	atomic_fetch_add(&gpu.launching, 1);
	status = consan_launch(gpu.c, l, e);
	atomic_fetch_sub(&gpu.launching, 1);
	return status;
}

/* Findings are on disk as they are made; this ends the session of a process
 * that ends normally. A launch still running on another thread keeps it. */
__attribute__((destructor)) static void close_session(void)
{
	if (!gpu.c && gpu.no_runtime.n)
		session();
	if (!gpu.c || gpu.forked)
		return;
	gpu.broken = cudaErrorCudartUnloading;
	if (!atomic_load(&gpu.launching))
		consan_close(gpu.c);
}
