/* threads: which thread of the program synchronizes with which, for libconsan/order: functions of the C
 * library that are found here first, as this library is preloaded (only with --knob=host_threads=1), notify
 * the library that is preloaded for CUDA, and call the real ones. std::thread, std::mutex and the like
 * are made of them.
 *
 * Calls of that library itself are none of the program's, and it holds its locks when it is notified. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>

typedef void notify(const void *object);

static struct {
	notify *release, *acquire;
	const void *base;        /* of the object that has them */
} receiver;
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void find_told(void)
{
	Dl_info info;

	receiver.release = (notify *)dlsym(RTLD_DEFAULT, "consan_thread_release");
	receiver.acquire = (notify *)dlsym(RTLD_DEFAULT, "consan_thread_acquire");
	if (receiver.release && dladdr((void *)receiver.release, &info))
		receiver.base = info.dli_fbase;
}

/* The unwinder locks, too, and is called with our locks. */
static bool is_ours(const void *pc)
{
	Dl_info info;

	return inside || !receiver.base || !receiver.acquire || !dladdr(pc, &info) || info.dli_fbase == receiver.base
		|| strstr(info.dli_fname, "libgcc_s");
}

static void send(notify *what, const void *object)
{
	inside = true;
	what(object);
	inside = false;
}

/* The newest version: dlsym() may find the oldest one, of another layout. */
static void *real(const char *name)
{
	void *f = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");

	return f ? f : dlsym(RTLD_NEXT, name);
}

#define VISIBLE __attribute__((visibility("default")))
#define OBJECT(x) ((const void *)(uintptr_t)(x))
#define RELEASE(x) send(receiver.release, OBJECT(x));
#define ACQUIRE(x) send(receiver.acquire, OBJECT(x));
#define ACQUIRED(x) if (!is) send(receiver.acquire, OBJECT(x));
#define CALL(type, name, parameters, arguments, before, after) \
	VISIBLE type name parameters \
	{ \
		static type (*next) parameters; \
		type is; \
		if (!next) \
			next = (type (*) parameters)real(#name); \
		if (is_ours(__builtin_return_address(0))) \
			return next arguments; \
		before \
		is = next arguments; \
		after \
		return is; \
	}
#include "calls.def"
#undef CALL

/* ---- the begin and the end of threads ---- */

/* What a thread begins with; its address is the object that it acquires. */
struct begin {
	void *(*run)(void *);
	int (*run_c)(void *);    /* of <threads.h> */
	void *arg;
};

static void ended(void *self)
{
	RELEASE(self)
}

static void *begin(void *user)
{
	const struct begin b = *(struct begin *)user;
	void *is;

	ACQUIRE(user)
	free(user);
	pthread_cleanup_push(ended, (void *)pthread_self());
	is = b.run ? b.run(b.arg) : (void *)(intptr_t)b.run_c(b.arg);
	pthread_cleanup_pop(true);
	return is;
}

static struct begin *new_begin(void *(*run)(void *), int (*run_c)(void *), void *arg)
{
	struct begin *b = malloc(sizeof *b);

	if (!b)
		return NULL;
	*b = (struct begin){ run, run_c, arg };
	RELEASE(b)
	return b;
}

VISIBLE int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	struct begin *b;
	int is;

	if (!next)
		next = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))
			dlsym(RTLD_NEXT, "pthread_create");
	if (is_ours(__builtin_return_address(0)) || !(b = new_begin(run, NULL, arg)))
		return next(t, attr, run, arg);
	is = next(t, attr, begin, b);
	if (is)
		free(b);
	return is;
}

static int begin_c(void *user)
{
	return (int)(intptr_t)begin(user);
}

VISIBLE int thrd_create(thrd_t *t, thrd_start_t run, void *arg)
{
	static int (*next)(thrd_t *, thrd_start_t, void *);
	struct begin *b;
	int is;

	if (!next)
		next = (int (*)(thrd_t *, thrd_start_t, void *))dlsym(RTLD_NEXT, "thrd_create");
	if (is_ours(__builtin_return_address(0)) || !(b = new_begin(NULL, run, arg)))
		return next(t, run, arg);
	is = next(t, begin_c, b);
	if (is != thrd_success)
		free(b);
	return is;
}

/* ---- once ---- */

static _Thread_local struct { const void *object; void (*run)(void); } once;

static void run_once(void)
{
	const void *object = once.object;

	once.run();
	RELEASE(object)
}

VISIBLE int pthread_once(pthread_once_t *o, void (*run)(void))
{
	static int (*next)(pthread_once_t *, void (*)(void));
	int is;

	if (!next)
		next = (int (*)(pthread_once_t *, void (*)(void)))dlsym(RTLD_NEXT, "pthread_once");
	if (is_ours(__builtin_return_address(0)))
		return next(o, run);
	once.object = o;
	once.run = run;
	is = next(o, run_once);
	ACQUIRE(o)
	return is;
}

VISIBLE void call_once(once_flag *o, void (*run)(void))
{
	pthread_once((pthread_once_t *)o, run);
}
