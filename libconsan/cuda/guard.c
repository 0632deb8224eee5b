/* guard: accesses of the host to pinned and managed memory, by page protection: while an operation
 * that the host has not waited for uses bytes of a page, or may use them, as it is queued or suspended, the page is
 * protected, and the fault of a host access is looked at (guard_fault.c).
 *
 * Pages are protected when nothing can run (guard_idle()), and free from when something begins or goes on
 * (guard_suspend()) until then. What threads of the host access in between is not seen: they are held as far as
 * that is possible (host_threads.c); consan_host_unseen() notes that they were not.
 *
 * Invariants: no page is protected while an operation runs; nothing here touches the program's memory, but for what
 * the instruction does that faults. */
#include "guard.h"
#include "limits.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct guard guard = { .lock = PTHREAD_MUTEX_INITIALIZER };
_Thread_local bool guard_inside;

void guard_lock(void)
{
	pthread_mutex_lock(&guard.lock);
	guard_inside = true;
}

void guard_unlock(void)
{
	guard_inside = false;
	pthread_mutex_unlock(&guard.lock);
}

/* ---- pages; under the lock ---- */

void guard_protect(struct area *a, size_t first, size_t n, uint8_t to)
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
			guard_protect(a, i, k - i, to);
	}
}

static void on_pending(void *user, uint64_t addr, uint64_t bytes, bool write)
{
	struct area *a = user;
	const uint8_t level = write ? NO_ACCESS : NO_WRITES;

	for (size_t i = (addr - a->at) / PAGE; i <= (addr + bytes - 1 - a->at) / PAGE; i++)
		if (a->wanted[i] < level && a->looks[i] < OPENED)
			a->wanted[i] = level;
}

void guard_want_one(struct area *a, size_t i)
{
	a->wanted[i] = guard.queued && a->looks[i] < OPENED ? a->readable[i] ? NO_WRITES : NO_ACCESS
		: FREE_PAGE;
}

void guard_want(struct area *a)
{
	for (size_t i = 0; i < a->pages; i++)
		guard_want_one(a, i);
	if (!guard.queued)
		order_pending(hb(), a->at, a->pages * PAGE, on_pending, a);
}

struct area *guard_area(uintptr_t at)
{
	for (size_t i = 0; i < guard.area.n; i++)
		if (at - guard.area.at[i].at < guard.area.at[i].pages * PAGE)
			return &guard.area.at[i];
	return NULL;
}

void guard_free_all(void)
{
	guard.queued = false;
	for (size_t i = 0; i < guard.area.n; i++)
		apply(&guard.area.at[i], true);
}

/* A forked child has no operations. */
static void in_child(void)
{
	pthread_mutex_init(&guard.lock, NULL);
	for (size_t i = 0; i < guard.area.n; i++)
		apply(&guard.area.at[i], true);
	guard.area.n = 0;
}

static void install(void)
{
	static bool watches;

	guard_install();
	if (!watches)
		pthread_atfork(NULL, NULL, in_child);
	watches = true;
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
	guard_lock();
	vec_push(&guard.area, ((struct area){ .at = from, .pages = pages, .wanted = base_alloc(pages),
		.now = base_alloc(pages), .looks = base_alloc(pages * sizeof(uint16_t)),
		.most = base_alloc(pages * sizeof(uint16_t)), .readable = base_alloc(pages) }));
	guard.idle = false;
	guard_unlock();
}

void guard_remove(void *at)
{
	const uintptr_t from = ((uintptr_t)at + PAGE - 1) / PAGE * PAGE;

	guard_lock();
	for (size_t i = 0; i < guard.area.n; i++) {
		struct area *a = &guard.area.at[i];

		if (a->at != from)
			continue;
		apply(a, true);
		free(a->wanted);
		free(a->now);
		free(a->looks);
		free(a->most);
		free(a->readable);
		*a = guard.area.at[--guard.area.n];
		break;
	}
	guard_unlock();
}

/* What the host accessed before something changed memory is forgotten. Under the lock. */
static void begin_looks(void)
{
	guard.idle = false;
	guard.written = false;
	guard.vain++;
	if (!atomic_exchange(&guard.changed, false))
		return;
	guard.vain = 0;
	guard_forget_looks();
}

void guard_suspend(void)
{
	guard_lock();
	guard.suspended++;
	guard.idle = false;
	for (size_t i = 0; i < guard.area.n && guard.guarded; i++)
		apply(&guard.area.at[i], true);
	guard_unlock();
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
	guard_lock();
	guard.suspended--;
	guard.changed = true;
	begin_looks();
	end_unseen();
	guard_unlock();
	guard_update();
}

void guard_pause(void)
{
	guard_lock();
	guard.suspended--;
	guard_unlock();
}

void guard_changed(void)
{
	guard.changed = true;
}

void guard_unseen(void)
{
	guard_lock();
	if (guard.area.n)
		consan_host_unseen(device_session());
	guard.unseen = guard.area.n;
	guard_unlock();
}

bool guard_written(void)
{
	return guard.written || guard.opened;
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
	guard_lock();
	guard.queued = queued;
	for (size_t i = 0; i < guard.area.n && !guard.suspended; i++) {
		guard_want(&guard.area.at[i]);
		if (!guard.guarded)
			install();
		apply(&guard.area.at[i], false);
	}
	guard.idle = queued && !guard.suspended;
	guard_unlock();
}

void guard_idle(void)
{
	if (guard.idle || !guard.area.n)
		return;
	guard_lock();
	begin_looks();
	end_unseen();
	guard_unlock();
	update(true);
}

bool guard_sees_all(void)
{
	return !guard.partly;
}

void guard_update(void)
{
	update(engine_pending());
}

void guard_function(void)
{
	guard_lock();
	guard.function_left = LOOKS_IN_FUNCTION;
	guard_unlock();
	update(true);
}

void guard_peek(const void *at, size_t bytes, void *to)
{
	const uintptr_t from = (uintptr_t)at;
	const struct area *a;
	size_t page;

	guard_lock();
	a = guard_area(from);
	page = a ? (from - a->at) / PAGE : 0;
	if (!a || a->now[page] != NO_ACCESS || !access_read(from, to, bytes)) {
		if (a && a->now[page] == NO_ACCESS)
			guard_protect((struct area *)a, page, 1, NO_WRITES);
		memcpy(to, at, bytes);
	}
	guard_unlock();
}
