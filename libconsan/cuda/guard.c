/* guard: accesses of the host to pinned and managed memory, by page protection: while an operation
 * that the host has not waited for uses bytes of a page, the page is protected, and the fault of a
 * host access tells its address and direction. The access is made by a single step of the processor,
 * after which the page is protected again. What is queued may use any page: at the first access it is
 * run as far as it can, which shows what it uses.
 *
 * Invariants: no page is protected while an operation runs (guard_suspend()); nothing here touches
 * the program's memory. The handlers run on the thread that faults, at an instruction of the program
 * or of a library that accesses the program's memory, so that they may take locks. */
#include "queue.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096 };
enum { FREE_PAGE, NO_WRITES, NO_ACCESS };
/* A page of which so many host accesses were no race: a neighbour of what the operations use. */
enum { MOST_STEPS = 512 };
enum { MOST_OF_FUNCTION = 4096 }; /* accesses of one host function */
enum { MOST_REPEATS = 1000 }; /* faults of a thread at one address, in a page that is not guarded */

struct area {
	uintptr_t at;
	size_t pages;
	uint8_t *wanted, *now;   /* FREE_PAGE, ... */
	uint16_t *steps;         /* host accesses since the last operation */
};

static struct {
	pthread_mutex_t lock;
	VEC(struct area) area;
	size_t guarded;          /* pages; atomic */
	unsigned suspended;
	bool queued;             /* operations have not run to their end */
	unsigned function_left;  /* accesses of the host function that are still looked at */
	_Atomic bool partly;     /* some memory shares a page with other memory: accesses to it are not seen */
	_Atomic bool given_up;   /* ... of some page, until the next operation has run */
	bool installed;
	struct sigaction segv, trap; /* the program's */
} guard = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local bool inside; /* has the lock: its own output is no access of the program */

static void lock(void)
{
	pthread_mutex_lock(&guard.lock);
	inside = true;
}

static void unlock(void)
{
	inside = false;
	pthread_mutex_unlock(&guard.lock);
}

/* ---- pages; under the lock ---- */

static void protect(struct area *a, size_t first, size_t n, uint8_t to)
{
	static const int prot[] = { [FREE_PAGE] = PROT_READ | PROT_WRITE, [NO_WRITES] = PROT_READ,
		[NO_ACCESS] = PROT_NONE };

	mprotect((void *)(a->at + first * PAGE), n * PAGE, prot[to]);
	for (size_t i = first; i < first + n; i++) {
		__atomic_fetch_add(&guard.guarded, (size_t)(to != FREE_PAGE) - (a->now[i] != FREE_PAGE),
			__ATOMIC_RELEASE);
		a->now[i] = to;
	}
}

/* Makes the pages what is wanted, or free. */
static void apply(struct area *a, bool free)
{
	for (size_t i = 0, k; i < a->pages; i = k) {
		const uint8_t to = free ? FREE_PAGE : a->wanted[i];

		for (k = i + 1; k < a->pages && (free ? FREE_PAGE : a->wanted[k]) == to
				&& a->now[k] == a->now[i]; k++)
			;
		if (a->now[i] != to)
			protect(a, i, k - i, to);
	}
}

static void on_pending(void *user, uint64_t addr, uint64_t bytes, bool write)
{
	struct area *a = user;
	const uint8_t level = write ? NO_ACCESS : NO_WRITES;

	for (size_t i = (addr - a->at) / PAGE; i <= (addr + bytes - 1 - a->at) / PAGE; i++)
		if (a->wanted[i] < level && a->steps[i] < MOST_STEPS)
			a->wanted[i] = level;
}

static void want_one(struct area *a, size_t i)
{
	a->wanted[i] = guard.queued && a->steps[i] < MOST_STEPS ? NO_ACCESS : FREE_PAGE;
	if (a->steps[i] >= MOST_STEPS)
		guard.given_up = true;
}

static void want(struct area *a)
{
	for (size_t i = 0; i < a->pages; i++)
		want_one(a, i);
	if (!guard.queued)
		order_pending(hb(), a->at, a->pages * PAGE, on_pending, a);
}

static struct area *area_of(uintptr_t at)
{
	for (size_t i = 0; i < guard.area.n; i++)
		if (at - guard.area.at[i].at < guard.area.at[i].pages * PAGE)
			return &guard.area.at[i];
	return NULL;
}

/* ---- the host's accesses ---- */

static uint32_t stack(void)
{
	return consan_host_stack(NULL);
}

/* Under the lock: until the next operation has run. */
static void free_all(void)
{
	guard.queued = false;
	for (size_t i = 0; i < guard.area.n; i++)
		apply(&guard.area.at[i], true);
}

/* Under the lock. Returns false if the page need not be guarded any more. */
static bool check(struct area *a, uintptr_t at, size_t bytes, bool write)
{
	struct order_range r = { .addr = at, .bytes = bytes, .flags = write ? ORDER_WRITE : 0 };
	const size_t page = (at - a->at) / PAGE;
	const struct task *t = engine_running();

	/* of a host function: the access is one of its operation, and counts as strong, as those of the host do */
	if (t && t->order) {
		r.flags |= ORDER_STRONG | ORDER_SYSTEM | (write ? 0 : ORDER_OBSERVES);
		order_accesses(hb(), t->order, &r, 1);
		a->steps[page]++;
		if (guard.function_left && !--guard.function_left)
			free_all();
	} else if (order_host_access(hb(), &r, stack))
		a->steps[page] = MOST_STEPS;
	else
		a->steps[page]++;
	return a->steps[page] < MOST_STEPS;
}

/* ---- faults ---- */

#if defined(__x86_64__)
enum { MOST_PAGES = 8, TRAP_FLAG = 0x100 }; /* pages that one instruction accesses */
static _Thread_local uintptr_t stepping[MOST_PAGES];
static _Thread_local unsigned nstepping;

static void step(ucontext_t *u, uintptr_t at)
{
	if (nstepping == MOST_PAGES)
		return; /* the page remains free */
	stepping[nstepping++] = at;
	u->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
	sigdelset(&u->uc_sigmask, SIGTRAP);
}

static bool is_write(const ucontext_t *u, uint8_t now)
{
	(void)now;
	return u->uc_mcontext.gregs[REG_ERR] & 2;
}

/* False: it is not ours. */
static bool stepped(ucontext_t *u)
{
	if (!nstepping)
		return false;
	lock();
	while (nstepping) {
		const uintptr_t at = stepping[--nstepping];
		struct area *a = area_of(at);
		size_t page;

		if (!a || guard.suspended)
			continue;
		page = (at - a->at) / PAGE;
		if (a->wanted[page] != a->now[page])
			protect(a, page, 1, a->wanted[page]);
	}
	unlock();
	u->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	return true;
}
#else /* only the first access to a page is seen, as if it wrote where the page may be read */
static void step(ucontext_t *u, uintptr_t at)
{
	(void)u, (void)at;
}

static bool is_write(const ucontext_t *u, uint8_t now)
{
	(void)u;
	return now == NO_WRITES;
}

static bool stepped(ucontext_t *u)
{
	(void)u;
	return false;
}
#endif

/* Has the page to do with us? */
static bool is_ours(uintptr_t at)
{
	bool ours;

	lock();
	ours = area_of(at);
	unlock();
	return ours;
}

/* What is queued may use the page. A host function is a part of that: its accesses are those of an operation,
 * and it cannot wait for others. */
static void run_queued(void)
{
	if (!guard.queued || engine_running())
		return;
	engine_try_all();
	guard_update();
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

static bool faulted(uintptr_t at, const siginfo_t *info, ucontext_t *u)
{
	struct area *a;
	bool again, write, guarded;
	size_t page;

	/* memory may be unmapped while it is registered */
	if (info->si_code == SEGV_MAPERR || !is_ours(at))
		return false;
	run_queued();
	lock();
	a = area_of(at);
	if (!a) {
		unlock();
		return false;
	}
	page = (at - a->at) / PAGE;
	write = is_write(u, a->now[page]);
	guarded = a->now[page] == NO_ACCESS || (a->now[page] == NO_WRITES && write);
	if (guarded) {
		again = check(a, at, 1, write);
		if (engine_running()) /* of a function, which may access many pages */
			want_one(a, page);
		else
			want(a);
		protect(a, page, 1, FREE_PAGE);
		if (again && a->wanted[page] != FREE_PAGE)
			step(u, at);
	}
	unlock();
	return !never_succeeds(at, guarded);
}

/* The program's own handler, or what would happen without ours. */
static void pass_on(int signal, siginfo_t *info, void *context, struct sigaction *to)
{
	if (to->sa_flags & SA_SIGINFO)
		to->sa_sigaction(signal, info, context);
	else if (to->sa_handler == SIG_DFL || (to->sa_handler == SIG_IGN && signal == SIGSEGV))
		sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	else if (to->sa_handler != SIG_IGN)
		to->sa_handler(signal);
}

static void on_segv(int signal, siginfo_t *info, void *context)
{
	const int saved = errno;

	if (!faulted((uintptr_t)info->si_addr, info, context))
		pass_on(signal, info, context, &guard.segv);
	errno = saved;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	const int saved = errno;

	if (!stepped(context))
		pass_on(signal, info, context, &guard.trap);
	errno = saved;
}

static void install_one(int signal, void (*handler)(int, siginfo_t *, void *), struct sigaction *old)
{
	struct sigaction ours = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
	struct sigaction now;

	sigaction(signal, NULL, &now);
	if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == handler)
		return;
	*old = now;
	sigaction(signal, &ours, NULL);
}

/* A forked child has no operations. */
static void in_child(void)
{
	pthread_mutex_init(&guard.lock, NULL);
	for (size_t i = 0; i < guard.area.n; i++)
		apply(&guard.area.at[i], true);
	guard.area.n = 0;
}

/* Each time: the program may have installed handlers of its own since. */
static void install(void)
{
	install_one(SIGSEGV, on_segv, &guard.segv);
	install_one(SIGTRAP, on_trap, &guard.trap);
	if (!guard.installed)
		pthread_atfork(NULL, NULL, in_child);
	guard.installed = true;
}

/* ---- what the others call ---- */

void guard_add(void *at, size_t bytes)
{
	/* of registered memory, pages that it has for itself */
	const uintptr_t from = ((uintptr_t)at + PAGE - 1) / PAGE * PAGE;
	const uintptr_t to = ((uintptr_t)at + bytes) / PAGE * PAGE;
	const size_t pages = to > from ? (to - from) / PAGE : 0;

	order_host_can_access(hb());
	if (from != (uintptr_t)at || to < (uintptr_t)at + bytes)
		guard.partly = true;
	if (!pages)
		return;
	lock();
	vec_push(&guard.area, ((struct area){ .at = from, .pages = pages, .wanted = base_alloc(pages),
		.now = base_alloc(pages), .steps = base_alloc(pages * sizeof(uint16_t)) }));
	unlock();
}

void guard_remove(void *at)
{
	const uintptr_t from = ((uintptr_t)at + PAGE - 1) / PAGE * PAGE;

	lock();
	for (size_t i = 0; i < guard.area.n; i++) {
		struct area *a = &guard.area.at[i];

		if (a->at != from)
			continue;
		apply(a, true);
		free(a->wanted);
		free(a->now);
		free(a->steps);
		*a = guard.area.at[--guard.area.n];
		break;
	}
	unlock();
}

void guard_suspend(void)
{
	lock();
	guard.suspended++;
	for (size_t i = 0; i < guard.area.n && guard.guarded; i++)
		apply(&guard.area.at[i], true);
	unlock();
}

void guard_resume(void)
{
	lock();
	guard.suspended--;
	guard.given_up = false;
	for (size_t i = 0; i < guard.area.n; i++)
		memset(guard.area.at[i].steps, 0, guard.area.at[i].pages * sizeof(uint16_t));
	unlock();
	guard_update();
}

static void update(bool queued)
{
	lock();
	guard.queued = queued;
	for (size_t i = 0; i < guard.area.n && !guard.suspended; i++) {
		want(&guard.area.at[i]);
		if (!guard.guarded || !guard.installed)
			install();
		apply(&guard.area.at[i], false);
	}
	unlock();
}

bool guard_sees_all(void)
{
#if defined(__x86_64__)
	return !guard.partly && !guard.given_up;
#else
	return false;
#endif
}

void guard_update(void)
{
	update(engine_pending());
}

void guard_function(void)
{
	lock();
	guard.function_left = MOST_OF_FUNCTION;
	unlock();
	update(true);
}

/* Are any of the bytes in memory that we protect? */
static bool is_guarded(uintptr_t from, uintptr_t end)
{
	bool any = false;

	lock();
	for (size_t i = 0; i < guard.area.n && !any; i++)
		any = from < guard.area.at[i].at + guard.area.at[i].pages * PAGE && end > guard.area.at[i].at;
	unlock();
	return any;
}

void guard_touch(const void *at, size_t bytes, bool write)
{
	uintptr_t from = (uintptr_t)at;
	const uintptr_t end = from + bytes;
	struct area *a;

	if (inside || !__atomic_load_n(&guard.guarded, __ATOMIC_ACQUIRE))
		return;
	if (!is_guarded(from, end))
		return;
	run_queued();
	lock();
	while (from < end) {
		uintptr_t to = (from / PAGE + 1) * PAGE;
		size_t page;

		to = to < end ? to : end;
		a = area_of(from);
		page = a ? (from - a->at) / PAGE : 0;
		if (a && a->now[page] != FREE_PAGE) {
			check(a, from, to - from, write);
			a->steps[page] = MOST_STEPS; /* free until the next operation */
			a->wanted[page] = FREE_PAGE;
			protect(a, page, 1, FREE_PAGE);
		}
		from = to;
	}
	unlock();
}
