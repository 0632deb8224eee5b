/* ipc_race: races between operations of processes that share memory, by cudaIpcGetMemHandle(), by memory pools
 * (ipc.c) or by handles of virtual memory management (vmm.c).
 *
 * Each such memory has a log, shared as well, of what operations of all processes accessed, when they
 * were issued, and when their process knew them to be complete. Processes synchronize by means that
 * are not observed (pipes, MPI), but what another process learns that way is at most that an operation is
 * complete, and only once it knows that itself. So an operation that was issued before another process
 * knew a conflicting one to be complete is not ordered after it, whatever the processes did.
 *
 * Kernels that synchronize through memory at system scope, and events that are shared, tell another
 * process more. Once there is one of these, nothing is compared any more, which a remark says. */
#include "queue.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 2048, MOST_OF_ONE = 256, SPINS = 1000 };

#define PATIENCE 10.0 /* seconds: a process that has the log for longer was stopped */

struct access {
	_Atomic int32_t pid;         /* 0: it is being written, or its writer was killed then */
	bool write;
	struct order_place place;    /* of the operation, in its process */
	uint64_t from, to;           /* in the memory */
	uint64_t issued, known;      /* progress_now(); known 0: not yet */
	char kernel[128], call[48], line[40];
};

struct ipc_log {
	_Atomic int32_t owner;       /* process that changes it */
	_Atomic bool others;         /* the processes synchronize by other means, too */
	uint32_t n;                  /* so far; a ring */
	struct access at[MOST];
};

size_t ipc_log_bytes(void)
{
	return sizeof(struct ipc_log);
}

static bool has_ended(int32_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

/* False: a process that has it does not go on. On a busy machine the owner may have to wait for a processor. */
static bool lock_log(struct ipc_log *l)
{
	const struct timespec shortly = { .tv_nsec = 1000000 };
	const double until = progress_seconds() + PATIENCE;
	int32_t owner = 0;

	for (unsigned i = 0; i < SPINS || progress_seconds() < until; i++) {
		if (atomic_compare_exchange_weak(&l->owner, &owner, (int32_t)getpid()))
			return true;
		if (owner && has_ended(owner))
			atomic_compare_exchange_strong(&l->owner, &owner, 0);
		owner = 0;
		if (i < SPINS)
			sched_yield();
		else
			nanosleep(&shortly, NULL);
	}
	return false;
}

static void unlock_log(struct ipc_log *l)
{
	atomic_store(&l->owner, 0);
}

/* ---- what this process shares, and knows to be complete ---- */

struct mine { struct ipc_log *log; uint32_t index; struct order_place place; };
struct watched { struct ipc_log *log; uint64_t at, bytes, offset; }; /* offset: in the memory */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of both; before that of a log */
static VEC(struct mine) pending;
static VEC(struct watched) watched;
static _Atomic bool events;      /* events are shared */

/* The processes synchronize by other means, too: nothing is compared any more. */
static void end_all(void)
{
	for (size_t i = 0; i < watched.n; i++)
		atomic_store(&watched.at[i].log->others, true);
}

void ipc_race_known(bool all)
{
	size_t kept = 0;

	if (!ipc_any())
		return;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < pending.n; i++) {
		const struct mine *m = &pending.at[i];
		struct access *a = &m->log->at[m->index];

		if (!all && !order_any_knows(hb(), m->place, ORDER_KNOWN)) {
			pending.at[kept++] = *m;
			continue;
		}
		if (!lock_log(m->log)) {
			end_all();
			continue;
		}
		if (a->pid == getpid() && a->place.line == m->place.line && a->place.epoch == m->place.epoch)
			a->known = progress_now();
		unlock_log(m->log);
	}
	pending.n = kept;
	pthread_mutex_unlock(&lock);
}

void ipc_race_forget(struct ipc_log *l)
{
	size_t kept = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < watched.n; i++)
		if (watched.at[i].log == l)
			watched.at[i--] = watched.at[--watched.n];
	for (size_t i = 0; i < pending.n; i++)
		if (pending.at[i].log != l)
			pending.at[kept++] = pending.at[i];
	pending.n = kept;
	pthread_mutex_unlock(&lock);
}

/* ---- accesses ---- */

static void report(const struct order_side *by, const struct access *mine, const struct access *old,
	uint64_t addr, uint64_t bytes)
{
	char line[96], edge[400];
	struct order_report r = { .rule = mine->write && old->write ? "CS1001" : "CS1002", .now = *by,
		.addr = addr, .bytes = bytes, .edge = edge, .hint = "" };

	snprintf(line, sizeof line, "%s of process %d", old->line, (int)old->pid);
	r.now.what = mine->write ? "write" : "read";
	r.old = (struct order_side){ .what = old->write ? "write" : "read", .line = line, .device = by->device,
		.call = { .name = old->call, .kernel = *old->kernel ? old->kernel : NULL } };
	snprintf(edge, sizeof edge, "%s in %s was issued before process %d knew %s in %s to be complete: let that "
		"process wait for it before it tells this one to go on", by->call.kernel ? "the kernel" : by->call.name,
		by->line, (int)old->pid, *old->kernel ? "the kernel" : old->call, old->line);
	consan_operations_race(device_session(), &r);
}

/* An operation of another process that this one is not ordered with. The operations of a process that was
 * killed are complete when its parent learns of its end. */
static const struct access *find_race(const struct ipc_log *l, const struct access *mine)
{
	const uint32_t first = l->n > MOST ? l->n - MOST : 0;

	for (uint32_t i = first; i < l->n; i++) {
		const struct access *a = &l->at[i % MOST];

		if (a->pid && a->pid != mine->pid && (a->write || mine->write) && a->from < mine->to && mine->from < a->to
				&& (a->known ? a->known > mine->issued : !has_ended(a->pid)))
			return a;
	}
	return NULL;
}

static void append(struct ipc_log *l, const struct access *a)
{
	const uint32_t index = l->n % MOST;
	struct access *to = &l->at[index];

	/* the process may be killed at any moment, and another one then has the log */
	atomic_store(&to->pid, 0);
	to->write = a->write;
	to->place = a->place;
	to->from = a->from;
	to->to = a->to;
	to->issued = a->issued;
	to->known = a->known;
	memcpy(to->kernel, a->kernel, sizeof to->kernel);
	memcpy(to->call, a->call, sizeof to->call);
	memcpy(to->line, a->line, sizeof to->line);
	atomic_store(&to->pid, a->pid);
	l->n++;
	vec_push(&pending, ((struct mine){ l, index, a->place }));
}

/* Do they synchronize with other processes? */
static bool any_strong(const struct order_range *range, size_t n)
{
	const unsigned system = ORDER_STRONG | ORDER_SYSTEM;

	for (size_t i = 0; i < n; i++)
		if ((range[i].flags & system) == system)
			return true;
	return false;
}

static void compare(const struct watched *w, const struct order_side *by, struct order_place at,
	uint64_t issued, const struct order_range *range, size_t n)
{
	const uint64_t base = w->at, bytes = w->bytes, offset = w->offset;
	struct ipc_log *l = w->log;
	struct access mine = { .pid = getpid(), .place = at, .issued = issued }, other;
	unsigned kept = 0;
	bool found = false;

	if (atomic_load(&l->others))
		return;
	if (!lock_log(l)) { /* what is missing here could hide races from all */
		atomic_store(&l->others, true);
		return;
	}
	snprintf(mine.kernel, sizeof mine.kernel, "%s", by->call.kernel ? by->call.kernel : "");
	snprintf(mine.call, sizeof mine.call, "%s", by->call.name);
	snprintf(mine.line, sizeof mine.line, "%s", by->line);
	for (size_t i = 0; i < n && kept < MOST_OF_ONE; i++) {
		const uint64_t from = range[i].addr, to = from + range[i].bytes;
		const struct access *race;

		if (to <= base || from >= base + bytes)
			continue;
		mine.from = offset + (from > base ? from - base : 0);
		mine.to = offset + (to < base + bytes ? to : base + bytes) - base;
		mine.write = range[i].flags & ORDER_WRITE;
		race = found ? NULL : find_race(l, &mine);
		if (race) {
			struct order_side side = *by;

			found = true;
			other = *race; /* which another process may have written at random */
			other.kernel[sizeof other.kernel - 1] = other.call[sizeof other.call - 1] =
				other.line[sizeof other.line - 1] = 0;
			side.site = range[i].site;
			report(&side, &mine, &other, base - offset + (mine.from > other.from ? mine.from : other.from),
				(mine.to < other.to ? mine.to : other.to)
				- (mine.from > other.from ? mine.from : other.from));
		}
		append(l, &mine);
		kept++;
	}
	unlock_log(l);
}

static void on_accesses(void *unused, const struct order_side *by, struct order_place at, uint64_t issued,
	const struct order_range *range, size_t n)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	if (events || any_strong(range, n))
		end_all();
	for (size_t i = 0; i < watched.n; i++)
		compare(&watched.at[i], by, at, issued, range, n);
	pthread_mutex_unlock(&lock);
}

void ipc_race_watch(struct ipc_log *l, const void *at, size_t bytes, size_t offset)
{
	pthread_mutex_lock(&lock);
	vec_push(&watched, ((struct watched){ l, (uint64_t)(uintptr_t)at, bytes, offset }));
	pthread_mutex_unlock(&lock);
	order_watch(hb(), on_accesses, NULL);
}

void ipc_race_unwatch(const void *at)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < watched.n; i++)
		if (watched.at[i].at == (uint64_t)(uintptr_t)at)
			watched.at[i--] = watched.at[--watched.n];
	pthread_mutex_unlock(&lock);
}

void ipc_race_events(void)
{
	events = true;
}
