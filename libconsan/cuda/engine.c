/* engine: which task of the queue (queue.h) runs next, and what happens when none can.
 *
 * Tasks run when the host waits (host_wait.c) or a running grid is suspended (suspend.c). If no task can
 * run, the host may still change memory or issue an operation; if it cannot, that is a deadlock. */
#include "engine.h"
#include "limits.h"

static uint64_t rng;
static double retry; /* seconds until they look; each time twice as long */

struct timespec deadline_in(double seconds)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	seconds += (double)t.tv_nsec * 1e-9;
	t.tv_sec += (time_t)seconds;
	t.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9);
	return t;
}

void wake_suspended(void)
{
	queue.epoch++;
	queue.moved = progress_seconds();
	retry = RETRY;
}

/* ---- which task is next ---- */

void engine_seed(void)
{
	static uint64_t waits;

	rng = (consan_seed(device_session()) + 0x9e3779b97f4a7c15ull * waits++) * 0xd1342543de82ef95ull;
}

static uint64_t draw(void)
{
	uint64_t z;

	z = rng += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

bool engine_may_run(struct task *t)
{
	if (t->state == TASK_SUSPENDED)
		return t->able || t->hung || t->cut || t->timed || t->tried != queue.epoch;
	return t->state == TASK_QUEUED && task_ready(t) && (t->hung || op_ready(&t->op));
}

/* The first in the order of issue, or one that the seed draws. */
static struct task *first_of(bool needed)
{
	const bool drawn = consan_seed(device_session()) != 0;
	struct task *best = NULL;
	uint64_t n = 0;

	for (struct task *t = queue.first; t; t = t->next) {
		if ((needed && !t->needed) || !engine_may_run(t))
			continue;
		if (!drawn)
			return t;
		if (draw() % ++n == 0)
			best = t;
	}
	return best;
}

/* Without a seed, what no thread of the host waits for runs only if nothing else can: it may be what
 * the others wait for. */
struct task *engine_pick(void)
{
	struct task *t = NULL;

	if (!consan_seed(device_session()))
		t = first_of(true);
	return t ? t : first_of(false);
}

/* Do threads of the program run that could access memory unseen? Other than those that wait for this. */
static bool host_runs(void)
{
	return queue.functions || ipc_any() || !guard_sees_all() || program_runs();
}

/* What runs may go on while the host runs: it is looked whether it did. */
void engine_idle(void)
{
	if (!guard_is_idle() && guard_any() && program_ran())
		guard_unseen();
	guard_idle();
}

/* Threads of the program that run may access memory of operations: the task waits until they are held, or asleep.
 * False: it need not wait. */
static bool wait_for_threads(void)
{
	struct timespec until;

	if (!guard_is_idle() || !host_is_seen() || host_is_settled(true))
		return false;
	until = deadline_in(RETRY);
	pthread_cond_timedwait(&queue.changed, &queue.lock, &until);
	return true;
}

void engine_dispatch(struct task *t, const void *me)
{
	const bool launch = t->op.kind == OP_LAUNCH, host = t->op.kind == OP_HOST;

	if (!host && guard_is_idle() && host_runs())
		guard_unseen();

	if (host && !t->op.host.ours)
		queue.function_since = progress_seconds();
	if (host)
		queue.functions++;
	else
		queue.busy = t;
	if (t->state == TASK_SUSPENDED) {
		t->state = TASK_RUNNING;
		pthread_cond_broadcast(&queue.changed);
		return;
	}
	t->state = TASK_RUNNING;
	if (!host && (!launch || (me && t->waiter == me)))
		run_task(t);
	else
		run_on_worker(t);
}

/* ---- nothing can run ---- */

bool host_may_act(void)
{
	return program_may_act() && !program_out_of_time();
}

bool pass_time(void)
{
	bool any = false;

	for (struct task *t = queue.first; t; t = t->next)
		if (t->state == TASK_SUSPENDED && t->vain)
			t->timed = any = true;
	return any;
}

/* May grids that are suspended find something new? If the accesses of the host are seen, one that may wait for them
 * lets them look (guard_fault.c); else it has written, and neither runs nor comes to us any more. */
static bool host_may_have_acted(void)
{
	return !host_is_seen() || (guard_written() && host_is_settled(true)) || host_is_settled(false);
}

static void wait_for_host(void)
{
	struct timespec until;

	if (!host_may_act()) {
		if (pass_time())
			return;
		deadlock_report(true, 0);
		for (struct task *t = queue.first; t; t = t->next)
			t->hung = t->hung || task_stuck(t);
		queue.epoch++;
		return;
	}
	engine_idle();
	until = deadline_in(host_is_seen() ? TURN : retry);
	retry = retry * 2 < TURN ? retry * 2 : TURN;
	if (pthread_cond_timedwait(&queue.changed, &queue.lock, &until) && host_may_have_acted())
		queue.epoch++;
}

/* Waits until something has run; until NULL: however long it takes. False: it is past that time. */
static bool wait_for_task(const struct timespec *until)
{
	const struct timespec look = deadline_in(TURN);

	return !pthread_cond_timedwait(&queue.changed, &queue.lock, until ? until : &look) || !until;
}

/* Lets a host function that has just begun run alone for a moment. False: there is none. */
static bool wait_for_function(void)
{
	const double left = queue.function_since + TURN - progress_seconds();
	struct timespec until;

	if (!queue.functions || left <= 0)
		return false;
	until = deadline_in(left);
	pthread_cond_timedwait(&queue.changed, &queue.lock, &until);
	return true;
}

/* May a thread of ours, of a suspended grid, dispatch? Not while host code runs: what it accesses then would not be
 * seen. */
static bool may_dispatch(void)
{
	if (!guard_any() || queue.ends)
		return true;
	if (wait_is_over())
		return false; /* the host goes on at once */
	return queue.waiting || queue.trying || !host_is_seen() || host_is_settled(false);
}

bool engine_step(const void *me, enum wait_mode mode, const struct timespec *until)
{
	const bool may = me || mode == WAIT_QUERY || may_dispatch();
	struct task *t = queue.busy || !may ? NULL : engine_pick();

	if (t && t->op.kind != OP_HOST && (wait_for_function() || wait_for_threads()))
		return true;
	if (t && mode == WAIT_QUERY && t->op.kind == OP_LAUNCH && t->state == TASK_QUEUED && is_waited_for(t)) {
		pthread_cond_broadcast(&queue.changed); /* that thread runs it */
		return wait_for_task(until);
	}
	if (t) {
		engine_dispatch(t, mode == WAIT_DONE ? me : NULL);
		return true;
	}
	if (!queue.busy && mode == WAIT_QUERY) {
		engine_idle();
		return false;
	}
	if (queue.busy || queue.functions)
		return wait_for_task(until);
	wait_for_host();
	return true;
}
