/* leave: handlers of signals that interrupt one of our calls and do not return to it: longjmp() out of
 * the call, pthread_exit(). The call has locks, and worker threads use its stack. So it ends first: the
 * handler's frames are dropped by returning from the signal, a launch that the thread runs is cut off
 * (leave_wanted()), and where the call would return to the program, the jump is made. The linker gives the
 * functions the names of those of the C library.
 *
 * Where the call would return is found by unwinding the stack; its return address is replaced. Calls that
 * only pass on a call of the C library (LEAVE_AT_ONCE) can be left at any time: a program may jump out of
 * a read() that blocks. Such a jump takes 6 us instead of 10 ns, as the stack is unwound each time.
 *
 * ThreadSanitizer cannot run this: its runtime calls a handler that has interrupted computation later, from
 * the next function that it intercepts, so that there is no frame of a signal to return from; one that has
 * interrupted a blocking call it calls within that frame, but if this returns past it, it never calls a
 * handler of that thread again. */
#include "queue.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>

#include <unwind.h>

#if !defined(__x86_64__)
#error "leave.c returns from signals and finds return addresses as on x86-64; consan runs on x86-64 only"
#endif

/* How the thread goes on when the call has ended. */
struct leave {
	_Atomic bool wanted;
	void (*jump)(struct __jmp_buf_tag *env, int value); /* NULL: pthread_exit() */
	struct __jmp_buf_tag *env;
	int value;
	void *result;               /* of pthread_exit() */
	sigset_t mask;              /* of the handler: longjmp() keeps it */
	void **slot, *caller;       /* the replaced return address, and what it was */
};
static _Thread_local struct leave leave;

bool leave_wanted(void)
{
	return leave.wanted;
}

const _Atomic bool *leave_flag(void)
{
	return &leave.wanted;
}

/* AddressSanitizer, in the program or in us, marks what lies between the variables of a frame. */
static void forget_frames(void)
{
	extern void __asan_handle_no_return(void) __attribute__((weak));

	if (__asan_handle_no_return)
		__asan_handle_no_return();
}

/* ---- the stack ---- */

extern const char leave_thunk[] __attribute__((visibility("hidden")));

/* The innermost call of ours that a handler interrupts. Frames of ours that come first, down from the
 * handler, are calls by the handler. */
struct search {
	uintptr_t beyond;           /* frames from here on are not left */
	bool apart;                 /* the handler has a stack of its own */
	uintptr_t sp;               /* of the frame before */
	uintptr_t signal;           /* the innermost signal frame before the call: its ucontext */
	uintptr_t last;             /* signal frame of the part of the stack that is searched */
	bool within;                /* the frame before is one of the call */
	void **slot;                /* where the call's return address is */
};

static bool has_state(uintptr_t pc)
{
	extern const char __start_leave_at_once[] __attribute__((visibility("hidden")));
	extern const char __stop_leave_at_once[] __attribute__((visibility("hidden")));

	return our_code((const void *)pc)
		&& !(pc >= (uintptr_t)__start_leave_at_once && pc <= (uintptr_t)__stop_leave_at_once);
}

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *u, void *user)
{
	struct search *s = user;
	const uintptr_t sp = _Unwind_GetCFA(u);
	int interrupted = 0;
	const uintptr_t pc = _Unwind_GetIPInfo(u, &interrupted);

	if (s->within)
		s->slot = (void **)(sp - sizeof(void *));
	s->within = false;
	if (interrupted && s->signal)
		return _URC_NORMAL_STOP;
	if (interrupted)
		s->last = s->sp;
	s->sp = sp;
	if (sp >= s->beyond && (s->last || !s->apart))
		return _URC_NORMAL_STOP;
	if (s->last && has_state(pc)) {
		s->signal = s->last;
		s->within = true;
	}
	return pc ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* The stack pointer that the jump sets (glibc, sysdeps/x86_64/__longjmp.S) */
static uintptr_t target_of(const struct __jmp_buf_tag *env)
{
	uintptr_t sp = (uintptr_t)env->__jmpbuf[6];

	__asm__("ror $17, %0\n\txor %%fs:0x30, %0" : "+r"(sp));
	return sp;
}

_Noreturn static void return_from_signal(uintptr_t context)
{
	forget_frames();
	__asm__ volatile("mov %0, %%rsp\n\tmov $15, %%eax\n\tsyscall" : : "r"(context) : "memory");
	__builtin_unreachable();
}

/* The return address is not where the unwinder looks for it until leave_begin() has put it back. */
__asm__(
	".pushsection .text\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa %rsp, 0\n"
	"	.cfi_undefined %rip\n"
	"	nop\n"
	"	.globl leave_thunk\n"
	"	.hidden leave_thunk\n"
	"leave_thunk:\n"
	"	sub $16, %rsp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	call leave_begin\n"
	"	.cfi_offset %rip, -8\n"
	"	call leave_end\n"
	"	nop\n"
	"	.cfi_endproc\n"
	".popsection\n");

__attribute__((used)) static void leave_begin(void) __asm__("leave_begin");
static void leave_begin(void)
{
	*leave.slot = leave.caller;
	leave.slot = NULL;
	leave.wanted = false;
}

/* Does not return if the thread has to end a call first. env NULL: it leaves all frames. */
static void end_call_first(struct leave *how)
{
	struct search s = { .beyond = how->env ? target_of(how->env) : UINTPTR_MAX };
	stack_t own;

	s.apart = !sigaltstack(NULL, &own) && own.ss_flags & SS_ONSTACK;
	if (s.apart && s.beyond - (uintptr_t)own.ss_sp < own.ss_size)
		return; /* within the handler */
	_Unwind_Backtrace(on_frame, &s);
	if (!s.signal || !s.slot)
		return;
	pthread_sigmask(SIG_SETMASK, NULL, &how->mask);
	how->slot = leave.slot;
	how->caller = leave.caller;
	if (!how->slot) { /* else a second handler interrupts the same call */
		how->slot = s.slot;
		how->caller = *s.slot;
		*s.slot = (void *)(uintptr_t)leave_thunk;
	}
	leave = *how;
	leave.wanted = true;
	return_from_signal(s.signal);
}

/* ---- functions of the C library ---- */

typedef void exit_fn(void *result);
typedef void jump_fn(struct __jmp_buf_tag *env, int value);

/* Handlers must not look for them. */
#define JUMPS(F) F(longjmp) F(_longjmp) F(siglongjmp) F(__longjmp_chk)
static struct {
	exit_fn *pthread_exit;
#define REAL(name) jump_fn *name;
	JUMPS(REAL)
#undef REAL
} real;

__attribute__((constructor)) static void find(void)
{
	real.pthread_exit = (exit_fn *)dlsym(RTLD_NEXT, "pthread_exit");
#define REAL(name) real.name = (jump_fn *)dlsym(RTLD_NEXT, #name);
	JUMPS(REAL)
#undef REAL
}

_Noreturn static void go(struct leave *how)
{
	end_call_first(how);
	forget_frames();
	if (how->jump)
		how->jump(how->env, how->value);
	else
		real.pthread_exit(how->result);
	__builtin_unreachable();
}

/* The call has ended. The handler that left it may have interrupted another one. */
__attribute__((used)) static void leave_end(void) __asm__("leave_end");
static void leave_end(void)
{
	struct leave how = leave;

	pthread_sigmask(SIG_SETMASK, &how.mask, NULL);
	go(&how);
}

#define JUMP(name) \
	__attribute__((visibility("default"))) _Noreturn void guard_##name(struct __jmp_buf_tag *env, int value); \
	_Noreturn void guard_##name(struct __jmp_buf_tag *env, int value) \
	{ \
		go(&(struct leave){ .jump = real.name, .env = env, .value = value }); \
	}
JUMPS(JUMP)
#undef JUMP

__attribute__((visibility("default"))) _Noreturn void guard_pthread_exit(void *result);
_Noreturn void guard_pthread_exit(void *result)
{
	go(&(struct leave){ .result = result });
}
