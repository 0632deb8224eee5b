/* guard: accesses of the host to pinned and managed memory, by page protection: while an operation
 * that the host has not waited for uses bytes of a page, the page is protected, and the fault of a
 * host access tells its address and direction. The access is made by a single step of the processor,
 * after which the page is protected again. What is queued may use any page: at the first access it is
 * run as far as it can, which shows what it uses. So may a grid that is suspended; it goes on when the host
 * calls us, or reads a word again, as it does if it polls.
 *
 * Pages are protected when nothing can run (guard_idle()), and free from when something begins or goes on
 * (guard_suspend()) until then. What other threads of the host access in between is not seen, which
 * consan_host_unseen() notes.
 *
 * Invariants: no page is protected while an operation runs; nothing here touches
 * the program's memory. The handlers run on the thread that faults, at an instruction of the program
 * or of a library that accesses the program's memory, so that they may take locks. */
#include "access.h"
#include "queue.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096 };
enum { FREE_PAGE, NO_WRITES, NO_ACCESS };
/* A page of which so many host accesses were no race: a neighbour of what the operations use. */
enum { MOST_STEPS = 512, FEWEST_STEPS = 2 };
enum { MOST_QUEUED = 1100 }; /* ... while something is queued: a page may be filled, word by word */
enum { WORDS = 8 };      /* as many times more, if grids signal the host by words of the page, or the reverse */
enum { MANY_STEPS = 1 << 15 }; /* of all pages; then a quarter for each further page, and so on */
enum { MOST_AHEAD = 256 }; /* pages that are given up without an access, behind those that were */
enum { GIVEN_UP = UINT16_MAX }; /* in place of steps */
enum { MOST_OF_FUNCTION = 4096 }; /* accesses of one host function */
enum { MOST_REPEATS = 1000 }; /* faults of a thread at one address, in a page that is not guarded */
enum { WATCHED = 8 };    /* words that the host accessed last */
enum { MOST_VAIN = 6 };
enum { STEP_WAITS = 200 };
enum { MOST_TRIES = 8 };

struct area {
	uintptr_t at;
	size_t pages;
	uint8_t *wanted, *now;   /* FREE_PAGE, ... */
	uint16_t *steps;         /* host accesses since something ran */
	uint16_t *most;          /* steps until the page is given up; 0: as usual */
	bool *readable;          /* it is given up for reads only */
};

static struct {
	pthread_mutex_t lock;
	VEC(struct area) area;
	size_t guarded;          /* pages; atomic */
	unsigned suspended;
	bool queued;             /* operations have not run to their end */
	bool idle;               /* ... and none can run: the pages are protected */
	bool alone;              /* all of these are grids that are suspended */
	bool unseen;             /* what runs, runs beside host code */
	unsigned stepping;       /* threads that make an access with a page open */
	struct { uintptr_t at; unsigned n; } watched[WATCHED]; /* since something changed memory; a ring */
	unsigned nwatched;
	_Atomic bool changed;    /* what ran has changed memory */
	bool written;            /* the host has, since something ran */
	unsigned vain;           /* how often something ran that has not */
	uint64_t steps;          /* so far */
	unsigned function_left;  /* accesses of the host function that are still looked at */
	_Atomic bool partly;     /* some memory shares a page with other memory: accesses to it are not seen */
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
		if (a->wanted[i] < level && a->steps[i] < GIVEN_UP)
			a->wanted[i] = level;
}

static void want_one(struct area *a, size_t i)
{
	a->wanted[i] = guard.queued && a->steps[i] < GIVEN_UP ? a->readable[i] ? NO_WRITES : NO_ACCESS
		: FREE_PAGE;
}

/* Steps until a page is given up that was not yet. */
static unsigned most_steps(void)
{
	unsigned most = guard.queued ? MOST_QUEUED : MOST_STEPS;

	for (uint64_t n = guard.steps; n > MANY_STEPS && most > FEWEST_STEPS; n /= 2)
		most /= 4;
	return most > FEWEST_STEPS ? most : FEWEST_STEPS;
}

/* Under the lock; something is queued. */
static void give_up(struct area *a, size_t first, size_t n, bool readable)
{
	const uintptr_t at = a->at + first * PAGE;

	for (size_t i = first; i < first + n; i++) {
		a->readable[i] = readable;
		a->steps[i] = readable ? 0 : GIVEN_UP;
		want_one(a, i);
	}
	consan_host_page_unseen(device_session(), at, at + n * PAGE, !readable);
}

static bool has_words(const struct area *a, size_t page)
{
	const uintptr_t at = a->at + page * PAGE;

	return consan_host_words(device_session(), at, at + PAGE);
}

/* The host goes through memory: as many pages again as those before this one that were given up. */
static void give_up_ahead(struct area *a, size_t page, bool readable)
{
	size_t before = 0, n = 0;

	while (before < page && before < MOST_AHEAD && a->wanted[page - before - 1] == a->wanted[page])
		before++;
	while (n < before && page + 1 + n < a->pages && a->now[page + 1 + n] == NO_ACCESS && !a->steps[page + 1 + n]
			&& !has_words(a, page + 1 + n))
		n++;
	if (!n)
		return;
	give_up(a, page + 1, n, readable);
	protect(a, page + 1, n, a->wanted[page + 1]);
}

/* The page is accessed, often perhaps: then it is given up until something has changed memory, and earlier the next
 * time. What the host reads of it matters less, as long as no grid signals by words of it. */
static void count(struct area *a, size_t page, bool write)
{
	const unsigned most = a->most[page] ? a->most[page] : most_steps();
	bool words;

	guard.steps++;
	if (++a->steps[page] < most)
		return;
	if (!guard.queued) {
		a->steps[page] = GIVEN_UP;
		return;
	}
	words = has_words(a, page);
	if (words && a->steps[page] < most * WORDS)
		return;
	a->most[page] = (uint16_t)(most > 2 * FEWEST_STEPS ? most / 2 : FEWEST_STEPS);
	give_up(a, page, 1, !write && !words);
	if (!words)
		give_up_ahead(a, page, !write);
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

/* Under the lock. x.bytes: in the page. Returns false if the page need not be guarded any more. */
static bool check(struct area *a, uintptr_t at, struct host_access x)
{
	struct order_range r = { .addr = at, .bytes = x.bytes, .flags = x.writes ? ORDER_WRITE : 0 };
	const size_t page = (at - a->at) / PAGE;
	const struct task *t = engine_running();

	guard.written |= x.writes;
	/* of a host function: the access is one of its operation, and counts as strong, as those of the host do */
	if (t && t->order) {
		r.flags |= ORDER_STRONG | ORDER_SYSTEM | (x.writes ? 0 : ORDER_OBSERVES);
		order_accesses(hb(), t->order, &r, 1);
		consan_host_word(device_session(), at, (uint32_t)x.bytes, x.writes);
		a->steps[page] += a->steps[page] < GIVEN_UP;
		if (guard.function_left && !--guard.function_left) {
			free_all();
			consan_host_unseen(device_session());
		}
	} else if (consan_host_access(device_session(), &r, x.reads, guard.alone, stack) && !guard.queued)
		a->steps[page] = GIVEN_UP;
	else
		count(a, page, x.writes);
	return a->steps[page] < GIVEN_UP;
}

/* ---- faults ---- */

enum { MOST_PAGES = 8 }; /* that one instruction accesses */
static _Thread_local uintptr_t stepping[MOST_PAGES];
static _Thread_local unsigned nstepping;

/* Where a thread cannot be stepped, or the instruction accesses more, the page remains free. */
static void step(ucontext_t *u, uintptr_t at)
{
	if (nstepping == MOST_PAGES || !access_trap(u, true))
		return;
	guard.stepping += !nstepping;
	stepping[nstepping++] = at;
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
	guard.stepping--;
	unlock();
	access_trap(u, false);
	return true;
}

/* Has the page to do with us? */
static bool is_ours(uintptr_t at)
{
	bool ours;

	lock();
	ours = area_of(at);
	unlock();
	return ours;
}

/* Does the host access the word again? Then it may poll, or change what a grid has not seen yet: grids go on first.
 * If that is in vain, as data is accessed again, too, they do so each time after twice as many accesses. Under
 * the lock. */
static bool is_again(uintptr_t at)
{
	const unsigned enough = 1u << (guard.vain < MOST_VAIN ? guard.vain : MOST_VAIN);
	unsigned i = 0;

	while (i < WATCHED && guard.watched[i].at != at)
		i++;
	if (i == WATCHED) {
		i = guard.nwatched++ % WATCHED;
		guard.watched[i].at = at;
		guard.watched[i].n = 0;
		return false;
	}
	if (++guard.watched[i].n < enough)
		return false;
	guard.watched[i].n = 0;
	return true;
}

/* What is queued may use the page. A host function is a part of that: its accesses are those of an operation,
 * and it cannot wait for others. False: something still runs. */
static bool run_queued(uintptr_t at)
{
	struct tried is;
	bool again;

	guard.alone = false;
	if (!guard.queued || engine_running())
		return true;
	lock();
	again = is_again(at);
	unlock();
	is = engine_try_all(again);
	if (is.any)
		guard_update();
	guard.alone = is.suspended;
	return !is.runs;
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

/* others: threads of the program run, which may access the page while it is open for this one. */
static bool faulted_inside(uintptr_t at, ucontext_t *u, bool others)
{
	bool again, guarded, done = run_queued(at);
	struct host_access x;
	struct area *a;
	size_t page;

	lock();
	for (unsigned i = 0; done && i < MOST_TRIES && guard.suspended && !engine_running(); i++) {
		unlock(); /* another thread lets something run, which frees the page */
		done = run_queued(at);
		lock();
	}
	a = area_of(at);
	if (!a) {
		unlock();
		return false;
	}
	page = (at - a->at) / PAGE;
	x = access_of_fault(u, a->now[page] == NO_WRITES);
	/* it may be the rest of an access that begins in the page before, or reach into the next one */
	if (at % PAGE == 0 || at % PAGE + x.bytes > PAGE)
		x.bytes = 1;
	guarded = a->now[page] == NO_ACCESS || (a->now[page] == NO_WRITES && x.writes);
	if (guarded) {
		again = check(a, at, x);
		if (guard.queued || engine_running()) /* all other pages are guarded as they were */
			want_one(a, page);
		else
			want(a);
		protect(a, page, 1, FREE_PAGE);
		if (again && a->wanted[page] != FREE_PAGE)
			step(u, at);
		if (others && guard.queued)
			consan_host_unseen(device_session());
	}
	unlock();
	return !never_succeeds(at, guarded);
}

static bool faulted(uintptr_t at, const siginfo_t *info, ucontext_t *u)
{
	const bool enters = !engine_running();
	bool ours;

	/* memory may be unmapped while it is registered */
	if (info->si_code == SEGV_MAPERR || !is_ours(at))
		return false;
	ours = faulted_inside(at, u, enters && engine_enter());
	if (enters)
		engine_exit();
	return ours;
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
	guard.stepping = 0;
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
		.now = base_alloc(pages), .steps = base_alloc(pages * sizeof(uint16_t)),
		.most = base_alloc(pages * sizeof(uint16_t)), .readable = base_alloc(pages) }));
	guard.idle = false;
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
		free(a->most);
		free(a->readable);
		*a = guard.area.at[--guard.area.n];
		break;
	}
	unlock();
}

/* An access that was seen is to be made before anything else runs. Under the lock. */
static void finish_steps(void)
{
	for (unsigned i = 0; guard.stepping && i < STEP_WAITS; i++) {
		unlock();
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
		lock();
	}
}

/* What the host accessed before something changed memory is forgotten. Under the lock. */
static void begin_steps(void)
{
	guard.idle = guard.written = false;
	guard.vain++;
	if (!atomic_exchange(&guard.changed, false))
		return;
	guard.vain = 0;
	memset(guard.watched, 0, sizeof guard.watched);
	for (size_t i = 0; i < guard.area.n; i++) {
		struct area *a = &guard.area.at[i];

		memset(a->steps, 0, a->pages * sizeof *a->steps);
		memset(a->readable, 0, a->pages);
	}
}

void guard_suspend(void)
{
	lock();
	finish_steps();
	guard.suspended++;
	guard.idle = false;
	for (size_t i = 0; i < guard.area.n && guard.guarded; i++)
		apply(&guard.area.at[i], true);
	unlock();
}

/* Under the lock. */
static void end_unseen(void)
{
	if (guard.unseen)
		consan_host_unseen(device_session());
	guard.unseen = false;
}

void guard_resume(void)
{
	lock();
	guard.suspended--;
	guard.changed = true;
	begin_steps();
	end_unseen();
	unlock();
	guard_update();
}

void guard_pause(void)
{
	lock();
	guard.suspended--;
	unlock();
}

void guard_changed(void)
{
	guard.changed = true;
}

void guard_unseen(void)
{
	lock();
	if (guard.area.n)
		consan_host_unseen(device_session());
	guard.unseen = guard.area.n;
	unlock();
}

bool guard_written(void)
{
	return guard.written;
}

bool guard_any(void)
{
	return guard.area.n;
}

bool guard_is_idle(void)
{
	return guard.idle;
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
	guard.idle = queued && !guard.suspended;
	unlock();
}

void guard_idle(void)
{
	if (guard.idle || !guard.area.n)
		return;
	lock();
	begin_steps();
	end_unseen();
	unlock();
	update(true);
}

bool guard_sees_all(void)
{
#if defined(__x86_64__)
	return !guard.partly;
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

void guard_peek(const void *at, size_t bytes, void *to)
{
	const uintptr_t from = (uintptr_t)at;
	struct area *a;

	lock();
	a = area_of(from);
	if (a && a->now[(from - a->at) / PAGE] == NO_ACCESS) {
		const size_t page = (from - a->at) / PAGE;

		protect(a, page, 1, NO_WRITES);
		memcpy(to, at, bytes);
		protect(a, page, 1, NO_ACCESS);
	} else {
		memcpy(to, at, bytes);
	}
	unlock();
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
	run_queued(from);
	lock();
	while (from < end) {
		uintptr_t to = (from / PAGE + 1) * PAGE;
		size_t page;

		to = to < end ? to : end;
		a = area_of(from);
		page = a ? (from - a->at) / PAGE : 0;
		if (a && a->now[page] != FREE_PAGE) {
			check(a, from, (struct host_access){ to - from, !write, write });
			a->steps[page] = GIVEN_UP; /* free until something runs */
			if (guard.queued)
				consan_host_page_unseen(device_session(), a->at + page * PAGE,
					a->at + (page + 1) * PAGE, true);
			a->wanted[page] = FREE_PAGE;
			protect(a, page, 1, FREE_PAGE);
		}
		from = to;
	}
	unlock();
}
