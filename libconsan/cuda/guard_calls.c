/* guard_calls: system calls on memory that guard.c protects, and those that sleep. The linker gives the
 * functions the names of those of the C library, before which they are preloaded; they first check
 * the access and free the pages. */
#include "queue.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void touch_all(const struct iovec *v, int n, bool write)
{
	for (int i = 0; i < n; i++)
		guard_touch(v[i].iov_base, v[i].iov_len, write);
}

/* Our own calls have our locks. */
bool our_code(const void *pc)
{
	extern const char __ehdr_start[] __attribute__((visibility("hidden")));
	extern const char _end[] __attribute__((visibility("hidden")));

	return (const char *)pc >= __ehdr_start && (const char *)pc < _end;
}

#define CALL(type, name, parameters, arguments, touches) \
	__attribute__((visibility("default"))) type guard_##name parameters; \
	LEAVE_AT_ONCE type guard_##name parameters \
	{ \
		static type (*next) parameters; \
		if (!next) \
			next = (type (*) parameters)dlsym(RTLD_NEXT, #name); \
		if (!our_code(__builtin_return_address(0))) { \
			touches \
		} \
		return next arguments; \
	}
/* A thread that sleeps is held: when it goes on, no operation runs, whose memory it would access unseen. Not in a
 * handler of a signal that interrupts a call of ours. */
static bool begin_sleep(const void *caller)
{
	const bool is = guard_any() && queue.first && !engine_running() && !host_is_inside() && !our_code(caller);

	if (is)
		host_enter();
	return is;
}

static void end_sleep(bool held)
{
	const int saved = errno;

	if (held)
		engine_exit();
	errno = saved;
}

#define SLEEP(type, name, parameters, arguments) \
	__attribute__((visibility("default"))) type guard_##name parameters; \
	type guard_##name parameters \
	{ \
		static type (*next) parameters; \
		bool held; \
		type result; \
		if (!next) \
			next = (type (*) parameters)dlsym(RTLD_NEXT, #name); \
		held = begin_sleep(__builtin_return_address(0)); \
		result = next arguments; \
		end_sleep(held); \
		return result; \
	}
#include "guard_calls.def"
#undef CALL
#undef SLEEP
