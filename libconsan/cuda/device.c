/* device: the emulated GPUs of this process: the consan session behind it, the sticky
 * errors, and the properties. */
#include "queue.h"
#include "library.h"

#include "libconsan/base/base.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/syscall.h>
#include <unistd.h>

struct hint { unsigned sm; char suffix; bool of_program; };

static struct {
	pthread_mutex_t lock;
	struct consan *c;
	int broken;             /* cudaError_t: why no session can be used, or 0 */
	_Atomic int sticky[CONSAN_DEVICES]; /* cudaError_t, until cudaDeviceReset() */
	pid_t pid;              /* that opened c */
	bool forked;            /* this is a child of the process that opened c */
	_Atomic unsigned launching; /* launches in progress */
	VEC(struct hint) hint;
} device = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* libjansson.a is linked in although it is not built for shared libraries. Its only reference
 * to external data is stdin, which -Wl,--wrap=stdin redirects to this variable. */
FILE *__wrap_stdin;

static void print_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
static void print_error(const char *fmt, ...)
{
	va_list ap;
	char text[1024];

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "consan: %s\n", text);
}

/* The file name is unique for each process image: exec() keeps the process id. */
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
	if (!queue.copying) /* else the caller has it */
		pthread_mutex_lock(&queue.lock);
	pthread_mutex_lock(&device.lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&device.lock);
	if (!queue.copying)
		pthread_mutex_unlock(&queue.lock);
}

/* The child cannot use the parent's session: the session's threads do not exist in the
 * child, and both would write to one record file. CUDA does not allow this use either. */
static void after_fork_child(void)
{
	if (queue.copying) { /* it goes on with the session */
		pthread_mutex_unlock(&device.lock);
		return;
	}
	if (device.c) {
		device.forked = true;
		device.broken = cudaErrorInitializationError;
		queue.first = queue.last = queue.busy = NULL;
		queue.n = queue.functions = queue.waiting = 0;
		queue.ours.n = 0;
	}
	pthread_mutex_unlock(&device.lock);
	pthread_mutex_unlock(&queue.lock);
}

/* The newest image in the program's file determines the emulated architecture; if it has none, what
 * the program makes or reads before it asks for the GPU. */
static void hint_architectures(struct consan *c)
{
	bool own = false;

	for (size_t i = 0; i < device.hint.n; i++)
		own |= device.hint.at[i].of_program;
	for (size_t i = 0; i < device.hint.n; i++)
		if (device.hint.at[i].of_program == own)
			consan_arch_hint(c, device.hint.at[i].sm, device.hint.at[i].suffix);
}

static uint32_t host_stack(void)
{
	const uint32_t issued = caller_stack();

	return issued ? issued : consan_host_stack(NULL);
}

static void finish(void)
{
	if (device.c && !device.forked)
		engine_finish();
}

/* The process may end from a handler of a signal that interrupted us. */
static void finish_quickly(void)
{
	if (device.c && device.pid == getpid() && !engine_running()
			&& !pthread_mutex_trylock(&queue.lock)) {
		pthread_mutex_unlock(&queue.lock);
		engine_finish();
	}
}

static int open_session(void)
{
	const char *dir = base_environ("CONSAN_RESULTS");
	char *path = dir && *dir ? record_path(dir) : NULL;
	struct consan_err e = { 0 };

	device.c = consan_open(base_environ(CONSAN_SESSION_ENV), &e);
	if (!device.c) {
		print_error("%s", e.text);
		if (path)
			consan_record_failure(path, e.text);
		free(path);
		return device.broken = cudaErrorInitializationError;
	}
	if (path && !consan_record_to(device.c, path, &e))
		print_error("findings cannot be recorded: %s", e.text);
	free(path);
	consan_progress_to(device.c, base_environ(PROGRESS_ENV));
	consan_on_stack(device.c, host_stack);
	device.pid = getpid();
	consan_on_pause(device.c, &(struct consan_outside){ engine_pause, engine_alone, device_runtime_call,
		leave_flag, engine_begun });
	hint_architectures(device.c);
	/* runs before the functions of the program that were registered before its first call */
	atexit(finish);
	at_quick_exit(finish_quickly);
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	return 0;
}

int device_open(void)
{
	int error, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* not with the lock */
	pthread_mutex_lock(&device.lock);
	error = device.broken;
	if (!device.c && !error)
		error = open_session();
	pthread_mutex_unlock(&device.lock);
	pthread_setcancelstate(cancel, NULL);
	return error;
}

int device_ready(void)
{
	int error = device_open();

	return error ? error : device.sticky[device_now()];
}

struct consan *device_session(void)
{
	return device.c;
}

const struct consan_device *device_info(void)
{
	return consan_device(device.c);
}

bool device_blocks(void)
{
	const char *all = getenv("CUDA_LAUNCH_BLOCKING");

	return (all && *all && strcmp(all, "0")) || consan_blocks(device.c);
}

int device_broken(int which)
{
	return device.broken ? device.broken : device.sticky[which];
}

void device_fault(int which, int error)
{
	int none = 0;

	atomic_compare_exchange_strong(&device.sticky[which], &none, error);
}

void device_reset(int which)
{
	device.sticky[which] = 0;
}

void remark(enum consan_remark kind, const char *fmt, ...)
{
	va_list ap;
	char text[1024];

	if (device_open())
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	consan_remark(device.c, kind, text);
}

bool device_call_failed(const struct consan_call *call, bool implicit)
{
	if (device_open() || !consan_reports_calls(device.c, implicit))
		return false;
	consan_call_failed(device.c, call);
	return true;
}

void device_call_unasked(const void *thread, uint32_t stack)
{
	if (!device_open())
		consan_call_unasked(device.c, thread, stack);
}

void device_call_asked(const void *thread)
{
	if (device.c)
		consan_call_asked(device.c, thread);
}

void unchecked(const char *kernel, bool launched, const char *why)
{
	if (!device_open())
		consan_unchecked(device.c, kernel, launched, why);
}

/* It asks for several tables. */
void static_runtime_used(const char *path)
{
	static _Atomic(const char *) last;
	const char *slash = strrchr(path, '/');

	if (atomic_exchange(&last, path) == path || library_is_replaced(path))
		return;
	if (!strcmp(path, program_invocation_name))
		print_error("the CUDA runtime of this program is linked statically, its symbols are "
			"stripped, and no libcudart_static.a of its version was found: link with "
			"-cudart shared, or keep the symbols");
	remark(REMARK_NOT_LOADED, "%s: its CUDA runtime is linked statically, its symbols are stripped, and no "
		"libcudart_static.a of its version was found, so it could not start; install that version's "
		"nvidia-cuda-runtime package or CUDA Toolkit", slash ? slash + 1 : path);
}

void remark_unsupported(const char *name)
{
	remark(REMARK_CALL_UNSUPPORTED, "%s", name);
}

void remark_refused(const char *name, const char *why)
{
	remark(REMARK_CALL_UNSUPPORTED, "%s: %s", name, why);
}

void device_arch_hint(unsigned sm, char suffix, bool of_program)
{
	pthread_mutex_lock(&device.lock);
	vec_push(&device.hint, ((struct hint){ sm, suffix, of_program }));
	if (device.c)
		consan_arch_hint(device.c, sm, suffix);
	pthread_mutex_unlock(&device.lock);
}

/* --halt-on-error: ends the process as soon as a launch had an error. The records are complete: a
 * launch on another thread keeps the session open. */
static void halt(void)
{
	int status;

	if (!consan_halted(device.c, &status))
		return;
	remark(REMARK_NOTE, "the program was ended by --halt-on-error");
	fflush(NULL);
	if (!atomic_load(&device.launching))
		consan_close(device.c);
	_exit(status);
}

/* A handler of a signal ended this thread in the middle of a launch, which has locks. */
static void abandon(void *none)
{
	(void)none;
	device.broken = cudaErrorLaunchFailure;
}

enum consan_status device_launch(const struct consan_launch *l, struct order_op *op, uint64_t launched,
	struct consan_err *e)
{
	static _Thread_local bool inside;
	enum consan_status status;

	if (inside) { /* a handler of a signal launches while it interrupts a launch */
		remark(REMARK_CALL_UNSUPPORTED, "a launch by a signal handler that interrupted a launch");
		err_set(e, CONSAN_ERR_UNSUPPORTED, 0, 0, "a launch interrupts a launch");
		return CONSAN_UNCHECKED;
	}
	atomic_fetch_add(&device.launching, 1);
	inside = true;
	pthread_cleanup_push(abandon, NULL);
	status = consan_launch_op(device.c, l, op, launched, e);
	pthread_cleanup_pop(false);
	inside = false;
	atomic_fetch_sub(&device.launching, 1);
	halt();
	return status;
}

/* ---- properties ---- */

int device_attribute(int ordinal, int attribute, int *value)
{
	const struct consan_device *d;
	int error = device_ready();

	if (error)
		return error;
	if (!value || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
		return cudaErrorInvalidValue;
	d = device_info();
	switch (attribute) {
#define ATTRIBUTE(name, expression) \
	case CU_DEVICE_ATTRIBUTE_##name: *value = expression; return 0;
#include "device.def"
#undef ATTRIBUTE
	}
	*value = 0;
	return 0;
}

void device_name(char *to, size_t n)
{
	const struct consan_device *d = device_info();

	snprintf(to, n, "consan emulated sm_%u%s", d->sm, d->suffix == 'a' ? "a" : "");
}

/* Those that the runtime API does not have (CUDA in graphics) are 0: off. */
static const size_t limit_default[CU_LIMIT_MAX] = {
	[cudaLimitStackSize] = 1024, [cudaLimitPrintfFifoSize] = 1 << 20,
	[cudaLimitMallocHeapSize] = 8 << 20, [cudaLimitDevRuntimeSyncDepth] = 2,
	[cudaLimitDevRuntimePendingLaunchCount] = 2048, [cudaLimitMaxL2FetchGranularity] = 64,
};
static struct { _Atomic bool set; _Atomic size_t value; } limit_now[CONSAN_DEVICES][CU_LIMIT_MAX];

int device_limit(int limit, size_t *get, const size_t *set)
{
	const int which = device_now();
	int error = device_ready();

	if (error)
		return error;
	if (limit < 0 || (size_t)limit >= ARRAY_SIZE(limit_default))
		return cudaErrorUnsupportedLimit;
	if (!set && !get)
		return cudaErrorInvalidValue;
	if (get)
		*get = limit_now[which][limit].set ? limit_now[which][limit].value : limit_default[limit];
	if (set) {
		limit_now[which][limit].value = *set;
		limit_now[which][limit].set = true;
	}
	return 0;
}

/* ---- the end of the process ---- */

/* The end of a process by _exit(), as of workers of Python's multiprocessing: what is queued runs, so
 * that it is checked. Not in copies of the process. */
__attribute__((visibility("default"))) _Noreturn void guard__exit(int status);
_Noreturn void guard__exit(int status)
{
	finish_quickly();
#ifdef CONSAN_COVERAGE
	extern void __gcov_dump(void);
	__gcov_dump();
#endif
	for (;;)
		syscall(SYS_exit_group, status);
}

/* Closes the session when the process exits normally. Findings are already in the record
 * file. The session stays open while another thread runs a launch. */
__attribute__((destructor)) static void close_session(void)
{
	if (!device.c || device.forked)
		return;
	engine_finish();
	python_end();
	library_end();
	device.broken = cudaErrorCudartUnloading;
	if (!atomic_load(&device.launching))
		consan_close(device.c);
}
