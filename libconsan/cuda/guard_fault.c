/* guard_fault: an access of the host to a page that is protected; and what it does by system calls.
 *
 * The access is looked at, and then made by the handler of the fault (access.h), under one lock: the page stays
 * protected for other threads. What is queued may use any page: at an access it is run first as far as it can, which
 * shows what it uses. So may a grid that is suspended; it goes on when the host repeats an access, as it does if it
 * polls, or changes what a grid has not seen yet. If that is in vain, as data is accessed again, too, it does so each
 * time after twice as many accesses.
 *
 * The handlers run on the thread that faults, at an instruction of the program or of a library that accesses the
 * program's memory, so that they may take locks. */
#include "guard.h"
#include "limits.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static struct sigaction program; /* its own handler */

static uint32_t stack(void)
{
	return consan_host_stack(NULL);
}

/* ---- what is looked at ---- */

struct access {
	bool alone;              /* all that has not run to its end are grids that are suspended */
	bool repeats, enough;    /* guard_repeats() */
};

/* Of a host function: the access is one of its operation, and counts as strong, as those of the host do. */
static void check_function(struct area *a, size_t page, const struct task *t, struct order_range *r, bool writes)
{
	r->flags |= ORDER_STRONG | ORDER_SYSTEM | (writes ? 0 : ORDER_OBSERVES);
	order_accesses(hb(), t->order, r, 1);
	consan_host_word(device_session(), r->addr, (uint32_t)r->bytes, writes);
	a->looks[page] += a->looks[page] < OPENED;
	if (guard.function_left && !--guard.function_left) {
		guard_free_all();
		consan_host_unseen(device_session());
	}
}

/* x: in one page of the area. */
static void check(struct area *a, const struct host_access *x, const struct access *is)
{
	struct order_range r = { .addr = x->at, .bytes = x->bytes, .flags = x->writes ? ORDER_WRITE : 0 };
	const size_t page = (x->at - a->at) / PAGE;
	const struct task *t = engine_running();

	if (x->writes)
		guard.written = true;
	if (t && t->order)
		check_function(a, page, t, &r, x->writes);
	else if (consan_host_access(device_session(), &r, x->reads, is->alone, stack) && !guard.queued)
		a->looks[page] = OPENED;
	else if (!is->repeats || x->writes || is->enough) /* what only waits may take its time */
		guard_count(a, page, x->writes);
}

static bool is_guarded(const struct area *a, size_t page, bool writes)
{
	return a->now[page] == NO_ACCESS || (a->now[page] == NO_WRITES && writes);
}

/* Looks at the part of each page that is guarded. *still: one remains so. Returns whether any is ours. */
static bool check_all(const struct host_access *x, const struct access *is, bool *still)
{
	bool ours = false;

	for (uintptr_t from = x->at, to; from < x->at + x->bytes; from = to) {
		struct area *a = guard_area(from);
		const size_t page = a ? (from - a->at) / PAGE : 0;

		to = (from / PAGE + 1) * PAGE;
		to = to < x->at + x->bytes ? to : x->at + x->bytes;
		ours |= a != NULL;
		if (!a || !is_guarded(a, page, x->writes))
			continue;
		check(a, &(struct host_access){ from, to - from, x->reads, x->writes }, is);
		if (guard.queued || engine_running()) /* all other pages are guarded as they were */
			guard_want_one(a, page);
		else
			guard_want(a);
		if (a->wanted[page] != a->now[page])
			guard_protect(a, page, 1, a->wanted[page]);
		*still |= is_guarded(a, page, x->writes);
	}
	return ours;
}

/* Not known how: the page is free until something has changed memory. */
static void open_page(uintptr_t at, bool writes)
{
	struct area *a = guard_area(at);
	const size_t page = a ? (at - a->at) / PAGE : 0;

	if (!a)
		return;
	guard_open(a, page, !writes);
	guard_want_one(a, page);
	guard_protect(a, page, 1, a->wanted[page]);
}

/* Under the lock: looks at what the instruction accesses, and does it, if a page of it is still guarded then. */
static void make_access(uintptr_t at, ucontext_t *u, const struct access *is)
{
	const struct instruction x = access_decode(u, at);
	bool still = false, ours[2] = { false, false };

	for (unsigned i = 0; i < x.n; i++)
		ours[i] = check_all(&x.access[i], is, &still);
	if (still && !access_run(&x, u, ours))
		open_page(at, u->uc_mcontext.gregs[REG_ERR] & 2);
}

/* ---- faults ---- */

/* Lets what is queued, and grids that are suspended, go on as far as they can. A host function is a part of that: its
 * accesses are those of an operation, and it cannot wait for others. */
static struct access run_queued(uintptr_t at)
{
	struct access is = { 0 };
	struct tried tried;

	if (!guard.queued || engine_running())
		return is;
	guard_lock();
	is.repeats = guard_repeats(at, &is.enough);
	guard_unlock();
	tried = engine_try_all(is.enough);
	if (tried.any)
		guard_update();
	is.alone = tried.suspended;
	return is;
}

/* An access that is not guarded faults: another thread was first, or what was queued has run, and it succeeds
 * now; or the program has protected the page itself, and it never does. */
static bool never_succeeds(uintptr_t at, bool guarded)
{
	static _Thread_local struct { uintptr_t at; unsigned n; } last;

	if (guarded || last.at != at)
		last.n = 0;
	last.at = at;
	return !guarded && ++last.n > MOST_REPEATS;
}

static bool faulted_held(uintptr_t at, ucontext_t *u)
{
	const struct access is = run_queued(at);
	struct area *a;
	bool guarded;

	guard_lock();
	while (guard.suspended && !engine_running()) { /* another thread has let something run, which frees the page */
		guard_unlock();
		if (!engine_hold())
			return true;
		sched_yield();
		guard_lock();
	}
	a = guard_area(at);
	if (!a) {
		guard_unlock();
		return false;
	}
	guarded = is_guarded(a, (at - a->at) / PAGE, u->uc_mcontext.gregs[REG_ERR] & 2);
	if (guarded)
		make_access(at, u, &is);
	guard_unlock();
	return !never_succeeds(at, guarded);
}

/* Has the page to do with us? */
static bool is_ours(uintptr_t at)
{
	bool ours;

	guard_lock();
	ours = guard_area(at);
	guard_unlock();
	return ours;
}

static bool faulted(uintptr_t at, const siginfo_t *info, ucontext_t *u)
{
	bool ours;

	/* memory may be unmapped while it is registered */
	if (info->si_code == SEGV_MAPERR)
		return false;
	host_enter();
	if (!is_ours(at)) {
		host_leave();
		return false;
	}
	ours = faulted_held(at, u);
	engine_exit();
	return ours;
}

/* The program's own handler, or what would happen without ours. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
	if (program.sa_flags & SA_SIGINFO)
		program.sa_sigaction(signal, info, context);
	else if (program.sa_handler == SIG_DFL || program.sa_handler == SIG_IGN)
		sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	else
		program.sa_handler(signal);
}

static void on_segv(int signal, siginfo_t *info, void *context)
{
	const int saved = errno;
	bool ours;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	ours = faulted((uintptr_t)info->si_addr, info, context);
	pthread_setcancelstate(cancel, NULL);
	if (!ours)
		pass_on(signal, info, context);
	errno = saved;
}

void guard_install(void)
{
	struct sigaction ours = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
	struct sigaction now;

	sigaction(SIGSEGV, NULL, &now);
	if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_segv)
		return;
	program = now;
	sigaction(SIGSEGV, &ours, NULL);
}

/* ---- system calls ---- */

/* Are any of the bytes in memory that we protect? */
static bool is_any_ours(uintptr_t from, uintptr_t end)
{
	bool any = false;

	guard_lock();
	for (size_t i = 0; i < guard.area.n && !any; i++)
		any = from < guard.area.at[i].at + guard.area.at[i].pages * PAGE && end > guard.area.at[i].at;
	guard_unlock();
	return any;
}

void guard_touch(const void *at, size_t bytes, bool write)
{
	uintptr_t from = (uintptr_t)at;
	const uintptr_t end = from + bytes;
	struct access is;

	if (guard_inside || !__atomic_load_n(&guard.guarded, __ATOMIC_ACQUIRE) || !is_any_ours(from, end))
		return;
	host_enter();
	is = run_queued(from);
	guard_lock();
	for (uintptr_t to; from < end; from = to) {
		struct area *a = guard_area(from);
		const size_t page = a ? (from - a->at) / PAGE : 0;

		to = (from / PAGE + 1) * PAGE < end ? (from / PAGE + 1) * PAGE : end;
		if (!a || a->now[page] == FREE_PAGE)
			continue;
		check(a, &(struct host_access){ from, to - from, !write, write }, &is);
		guard_open(a, page, false); /* the kernel accesses it when we have returned */
		guard_want_one(a, page);
		guard_protect(a, page, 1, a->wanted[page]);
	}
	guard_unlock();
	engine_exit();
}
