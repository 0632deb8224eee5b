/* host_threads: which threads of the program may access memory while device work runs, as no page is protected then
 * (guard.c).
 *
 * A thread is *held* while it is in code of ours: a call that issues or waits, an access that is looked at, a
 * function of the C library that sleeps. It goes on only if no operation runs (hold()). Others are asleep in a
 * system call, or run. An operation that is to go on waits for those that run: they come to us or fall asleep.
 * That is not known of one that computes, or polls memory that is not guarded: so it gets a turn of processor time
 * (limits.h). Whether one that was asleep has run meanwhile is looked up afterwards. */
#include "engine.h"
#include "limits.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- threads that are held ---- */

enum { MOST_HELD = 1024 };       /* others count as running */
struct place {
	_Atomic pid_t tid;       /* 0: free; else it is kept, as long as places are left */
	_Atomic unsigned visits; /* how often it has come */
	_Atomic bool held;
};
static struct place places[MOST_HELD];
static _Atomic unsigned used;    /* places from here on never were */
static _Atomic unsigned held;    /* without those in a wait that they do not leave (begin_wait()) */
static _Thread_local struct place *mine;
static _Thread_local unsigned depth;

static bool is_gone(pid_t tid)
{
	return syscall(SYS_tgkill, getpid(), tid, 0) != 0;
}

/* In a handler of a fault, so without a lock. */
static struct place *find_place(void)
{
	const pid_t tid = gettid();

	for (unsigned i = 0; i < used; i++)
		if (places[i].tid == tid)
			return &places[i];
	for (unsigned i = 0; i < 2 * MOST_HELD; i++) {
		struct place *p = &places[i % MOST_HELD];
		pid_t was = p->tid;

		if ((!was || (i >= MOST_HELD && is_gone(was)))
				&& atomic_compare_exchange_strong(&p->tid, &was, tid)) {
			p->held = false;
			for (unsigned n = used; n <= i % MOST_HELD;)
				atomic_compare_exchange_strong(&used, &n, i % MOST_HELD + 1);
			return p;
		}
	}
	return NULL;
}

void host_enter(void)
{
	if (engine_running() || depth++)
		return;
	if (!mine)
		mine = find_place();
	if (!mine)
		return;
	mine->visits++;
	mine->held = true;
	held++;
}

void host_leave(void)
{
	if (engine_running() || !depth || --depth || !mine)
		return;
	mine->held = false;
	held--;
}

/* As a handler of a signal may ask, the owner of the lock is where the C library keeps it. */
bool host_is_inside(void)
{
	return depth || queue.lock.__data.__owner == gettid();
}

unsigned host_held(void)
{
	return held;
}

/* A forked child has no other threads. */
static void host_forget(void)
{
	for (unsigned i = 0; i < used; i++)
		places[i].tid = 0;
	held = depth = 0;
	mine = NULL;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, host_forget);
}

static bool is_held(pid_t tid, unsigned *visits)
{
	*visits = 0;
	for (unsigned i = 0; i < used; i++) {
		if (places[i].tid != tid)
			continue;
		*visits = places[i].visits;
		return places[i].held;
	}
	return false;
}

/* ---- the others ---- */

struct outside {
	pid_t tid;
	unsigned visits;         /* when it was first looked at, outside; ... */
	double clock;            /* ... then, the time */
	double cpu, used;        /* its processor time when it was last looked at; since the first look */
	uint64_t switches;       /* how often it has run, if it was asleep */
};
typedef VEC(struct outside) outside_vec;
static outside_vec known;        /* by host_is_settled() */
static outside_vec asleep;       /* by program_runs() */

enum thread_state { THREAD_GONE, THREAD_ASLEEP, THREAD_RUNS };

/* Where the kernel does not tell what it waits for. */
static enum thread_state state_by_status(pid_t tid)
{
	const char *state;
	char text[4096];

	if (!thread_file(tid, "status", text, sizeof text))
		return THREAD_GONE;
	state = strstr(text, "\nState:\t");
	if (!state || state[8] == 'R' || state[8] == 'D')
		return THREAD_RUNS;
	return state[8] == 'Z' || state[8] == 'X' ? THREAD_GONE : THREAD_ASLEEP;
}

/* One that waits for our lock goes on when we wait. */
static enum thread_state state_of(pid_t tid)
{
	const uint64_t lock = (uint64_t)(uintptr_t)&queue.lock;
	unsigned long long number, first;
	char text[256];

	/* else "running"; or "-1" and where it is: in a fault that the kernel handles, or at its end */
	if (!thread_file(tid, "syscall", text, sizeof text) || *text == '-'
			|| sscanf(text, "%llu %llx", &number, &first) != 2)
		return state_by_status(tid);
	return number == SYS_futex && first - lock < sizeof queue.lock ? THREAD_RUNS : THREAD_ASLEEP;
}

static double cpu_of(pid_t tid)
{
	const clockid_t clock = (clockid_t)(~(unsigned)tid << 3 | 6); /* CPUCLOCK_SCHED of a thread; clock_getres(2) */
	struct timespec t;

	return clock_gettime(clock, &t) ? 0 : (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Calls each() for threads that are neither ours nor held, until it returns false. */
static void each_outside(bool (*each)(void *user, pid_t tid, unsigned visits), void *user)
{
	struct dirent *e;
	DIR *d;
	bool more = true;

	if (program_threads() - (long)held <= 0)
		return;
	d = opendir("/proc/self/task");
	while (d && more && (e = readdir(d))) {
		const pid_t tid = atoi(e->d_name);
		unsigned visits;

		if (tid > 0 && !own_thread(tid) && !thread_waits(tid) && !is_held(tid, &visits))
			more = each(user, tid, visits);
	}
	if (d)
		closedir(d);
}

struct settled { double now, turn; bool at_once, is; outside_vec still; };

static bool look(void *user, pid_t tid, unsigned visits)
{
	struct settled *s = user;
	const enum thread_state is = state_of(tid);
	struct outside o = { .tid = tid, .visits = visits, .clock = s->now };
	bool found = false;
	double cpu;

	if (is == THREAD_GONE)
		return true;
	for (size_t i = 0; i < known.n && !found; i++) {
		found = known.at[i].tid == tid && known.at[i].visits == visits;
		if (found)
			o = known.at[i];
	}
	cpu = cpu_of(tid);
	if (found)
		o.used += cpu - o.cpu < s->turn / LOOKS_IN_TURN ? cpu - o.cpu : s->turn / LOOKS_IN_TURN;
	o.cpu = cpu;
	vec_push(&s->still, o);
	if (is == THREAD_RUNS)
		s->is &= o.used >= s->turn || s->now - o.clock >= NO_PROGRESS;
	else
		s->is &= s->at_once || s->now - o.clock >= s->turn;
	return true;
}

bool host_is_settled(bool waited_for)
{
	struct settled s = { .now = progress_seconds(), .turn = waited_for ? TURN : TURN_ALONE, .at_once = waited_for,
		.is = true };

	each_outside(look, &s);
	vec_free(&known);
	known = s.still;
	return s.is;
}

static bool note(void *user, pid_t tid, unsigned visits)
{
	bool *runs = user;
	const enum thread_state is = state_of(tid);
	struct outside o = { .tid = tid, .visits = visits };

	if (is == THREAD_GONE)
		return true;
	*runs = is == THREAD_RUNS;
	o.switches = *runs ? 0 : thread_switches(tid);
	vec_push(&asleep, o);
	return !*runs;
}

bool program_runs(void)
{
	bool runs = false;

	asleep.n = 0;
	each_outside(note, &runs);
	return runs;
}

bool program_ran(void)
{
	bool ran = false;

	for (size_t i = 0; i < asleep.n && !ran; i++)
		ran = thread_switches(asleep.at[i].tid) != asleep.at[i].switches;
	asleep.n = 0;
	return ran;
}

/* ---- when a thread that is held goes on ---- */

/* Has it been held, since then, for as long as the operation may have? slice: since it was last looked. */
static bool is_over(const struct cpu_span *since, const struct cpu_span *slice)
{
	const double clock = progress_seconds() - since->clock, hold = queue.waiting ? HOLD_BESIDE : HOLD;

	return cpu_span_seconds(since) >= hold
		|| (clock >= hold && (clock >= HOLD * PATIENT || cpu_span_seconds(slice) < WORKS));
}

bool host_still_held(const struct cpu_span *since, const struct cpu_span *slice)
{
	if (queue.busy && !queue.beside)
		queue.beside = queue.functions || is_over(since, slice);
	return queue.busy && !queue.beside;
}

bool host_hold(void)
{
	const bool may = !queue.ends && guard_any() && host_is_seen();
	struct cpu_span since;

	if (engine_running() || !queue.busy)
		return !queue.busy;
	since = cpu_span_begin();
	while (may && queue.busy && !queue.beside && !leave_wanted()) {
		const struct cpu_span slice = cpu_span_begin();
		const struct timespec until = deadline_in(TURN_ALONE);

		if (pthread_cond_timedwait(&queue.changed, &queue.lock, &until) && !host_still_held(&since, &slice))
			break;
	}
	if (queue.busy)
		guard_unseen();
	return !queue.busy;
}
