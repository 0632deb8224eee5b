/* host_wait: waits of the host for tasks, during which tasks run.
 *
 * If the host does not call us for a while although there is work, a background thread runs it: the host
 * may look at memory until it changes. */
#include "engine.h"
#include "limits.h"

#include <unistd.h>

enum { MOST_TASKS = 1024 };             /* a GPU's queues are of this size, too */
#define MOST_BYTES ((size_t)256 << 20)  /* of staged memory */

static struct {
	bool started;
	bool asleep;                    /* it waits for this: */
	pthread_cond_t issued;
} background = { .issued = PTHREAD_COND_INITIALIZER };

/* A thread that is cancelled ends when it has left the call: what it waits for, writes or runs in here is
 * with locks. Returns what unlock() takes. */
static int lock(void)
{
	int cancel;

	host_enter();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&queue.lock);
	return cancel;
}

/* The thread goes on in the program. */
static void unlock(int cancel)
{
	host_hold();
	host_leave();
	pthread_mutex_unlock(&queue.lock);
	pthread_setcancelstate(cancel, NULL);
}

/* The task; or (NULL) all tasks of a device (-1: of any) up to this number. */
struct goal { struct task *task; uint64_t upto; int device; };

static bool includes(const struct goal *g, const struct task *t)
{
	return g->task ? g->task == t
		: t->number <= g->upto && (g->device < 0 || g->device == t->stream->device);
}

static bool reached(const struct goal *g)
{
	if (g->task)
		return g->task->state == TASK_DONE;
	for (const struct task *t = queue.first; t && t->number <= g->upto; t = t->next)
		if (includes(g, t))
			return false;
	return true;
}

static _Thread_local bool trying; /* this thread is counted in queue.trying */
static VEC(const struct goal *) waits; /* of threads of the host; under the lock */

bool is_waited_for(const struct task *t)
{
	for (size_t i = 0; i < waits.n; i++)
		if (waits.at[i] == t->waiter)
			return true;
	return false;
}

/* A launch that a thread waits for is run by that thread, also if another one tries. */
static void mark(struct task *t, const void *me)
{
	t->needed = true;
	if (!trying || !is_waited_for(t))
		t->waiter = me;
}

/* Tasks depend on earlier ones only. */
static void mark_needed(const struct goal *g, const void *me)
{
	for (struct task *t = g->task ? g->task : queue.last; t; t = t->prev) {
		if (includes(g, t))
			mark(t, me);
		if (t->waiter != me)
			continue;
		for (size_t i = 0; i < t->after.n; i++)
			mark(t->after.at[i], me);
		for (size_t i = 0; i < t->behind.n; i++)
			mark(t->behind.at[i], me);
	}
	for (struct task *t = queue.first; t; t = t->next)
		if (t->parent && t->parent->waiter == me)
			mark(t, me);
}

static void begin_wait(const struct goal *g, enum wait_mode mode)
{
	if (mode == WAIT_QUERY) {
		trying = true;
		queue.trying++;
		pthread_cond_broadcast(&queue.changed);
		return;
	}
	vec_push(&queue.ours, gettid());
	host_leave();
	queue.waiting++;
	vec_push(&waits, g);
}

/* Also by a thread of ours, in a host function. */
static void end_wait(const struct goal *g, enum wait_mode mode)
{
	size_t i = queue.ours.n, k = waits.n;

	if (mode == WAIT_QUERY) {
		trying = false;
		queue.trying--;
		return;
	}
	host_enter();
	while (k-- > 0 && waits.at[k] != g)
		;
	waits.at[k] = waits.at[--waits.n];
	queue.waiting--;
	while (i-- > 0 && queue.ours.at[i] != gettid())
		;
	queue.ours.at[i] = queue.ours.at[--queue.ours.n];
}

bool wait_is_over(void)
{
	for (size_t i = 0; i < waits.n; i++)
		if (reached(waits.at[i]))
			return true;
	return false;
}

static int wait_for(const struct goal *g, enum wait_mode mode);

/* Other orders (--explore): of the threads, only the one that made the copy is in it. */
static void run_in_copy(void *user)
{
	const struct goal *g = user;

	queue.copying = false;
	queue.ours.n = 0;
	queue.waiting = queue.trying = 0;
	trying = false;
	waits.n = 0;
	forget_workers();
	pthread_cond_init(&queue.changed, NULL);
	pthread_cond_init(&background.issued, NULL);
	wait_for(g, WAIT_DONE);
	wait_for(&(struct goal){ NULL, queue.issued, -1 }, WAIT_QUERY);
	queue.first = queue.last = NULL;
	queue.n = 0;
	pthread_mutex_unlock(&queue.lock);
}

static void explore(const struct goal *g)
{
	struct goal goal = *g;

	queue.copying = true;
	consan_explore_order(device_session(), run_in_copy, &goal);
	queue.copying = false;
}

/* What an access of the host races with is known only when the running grid has ended; and it may wait for the host
 * in a loop that has effects. */
static bool query_step(const struct goal *g, const struct cpu_span *since)
{
	const struct cpu_span slice = cpu_span_begin();
	const struct timespec until = deadline_in(queue.beside ? TURN : TURN_ALONE);

	return engine_step(g, WAIT_QUERY, &until) || host_still_held(since, &slice);
}

/* The caller holds the lock. */
static int wait_for(const struct goal *g, enum wait_mode mode)
{
	const struct cpu_span since = cpu_span_begin();
	int error = 0;

	queue.calls++;
	if (reached(g))
		return 0;
	if (mode == WAIT_DONE && !engine_running() && orders_to_explore())
		explore(g);
	if (!engine_running())
		engine_seed();
	wake_suspended(); /* the host may have changed what a grid waits for */
	begin_wait(g, mode);
	mark_needed(g, g);
	while (!reached(g) && !leave_wanted()
			&& (mode == WAIT_QUERY ? query_step(g, &since) : engine_step(g, mode, NULL)))
		;
	end_wait(g, mode);
	queue.moved = progress_seconds();
	if (!reached(g))
		error = cudaErrorNotReady;
	return error;
}

static int take_async_error(int error)
{
	if (!error) {
		error = queue.async_error;
		queue.async_error = 0;
	}
	return error;
}

static int wait_and_unlock(const struct goal *g, enum wait_mode mode, int cancel)
{
	int error = take_async_error(wait_for(g, mode)), broken;

	unlock(cancel);
	if (error == cudaErrorNotReady)
		return error;
	broken = device_ready();
	return broken ? broken : error;
}

/* A host function must not wait (CUDA Programming Guide, "Host Functions"), nor the handler of a signal
 * that interrupts an operation. */
static bool in_operation(void)
{
	return engine_running();
}

int engine_wait(struct task *t, enum wait_mode mode)
{
	int cancel;

	if (in_operation())
		return cudaErrorNotPermitted;
	cancel = lock();
	return wait_and_unlock(&(struct goal){ t, 0, -1 }, mode, cancel);
}

int engine_wait_all(int device)
{
	int cancel;

	if (!device_session())
		return 0;
	if (in_operation())
		return cudaErrorNotPermitted;
	cancel = lock();
	return wait_and_unlock(&(struct goal){ NULL, queue.issued, device }, WAIT_DONE, cancel);
}

/* ---- the end of the process, of its kernels, of device work ---- */

/* Another thread of the program runs a launch, or waits while it runs: it is cut off, as on a GPU. */
static bool cut_off(void)
{
	return queue.busy && (!queue.busy->ours || queue.waiting);
}

/* Is time left? On a busy machine work that goes on has it in processor time; what waits for the host uses
 * none. */
static bool in_time(const struct cpu_span *since, double seconds)
{
	const double now = progress_seconds();

	return now - since->clock < seconds
		|| (now - queue.moved < TURN_ALONE && cpu_span_seconds(since) < seconds);
}

/* Runs what can run without the host, and waits for it for so long. */
static void run_for(double seconds)
{
	const struct cpu_span since = cpu_span_begin();

	wake_suspended();
	while (queue.first && !cut_off() && in_time(&since, seconds)) {
		const struct timespec until = deadline_in(TURN_ALONE);

		if (queue.busy || queue.functions)
			pthread_cond_timedwait(&queue.changed, &queue.lock, &until);
		else if (!engine_step(NULL, WAIT_QUERY, NULL))
			break;
	}
}

void engine_still(void (*call)(void *user), void *user)
{
	const int cancel = lock();

	while (queue.busy)
		pthread_cond_wait(&queue.changed, &queue.lock);
	call(user);
	unlock(cancel);
}

void engine_finish(void)
{
	int cancel;

	if (!device_session() || engine_running())
		return;
	cancel = lock();
	run_for(END_LIMIT);
	queue.ends = true;
	while (queue.first && !queue.busy && !queue.functions)
		engine_step(NULL, WAIT_DONE, NULL);
	unlock(cancel);
	ipc_race_known(true); /* a process that waits for this one knows it, too */
}

void engine_leave(const struct image *im)
{
	int cancel;

	if (!device_session() || engine_running())
		return;
	cancel = lock();
	if (!queue.ends)
		run_for(END_LIMIT);
	for (struct task *t = queue.first; t; t = t->next) {
		if (t->op.kind != OP_LAUNCH || !t->op.launch.func || t->op.launch.func->image != im)
			continue;
		if (t->state == TASK_QUEUED)
			op_free(&t->op);
		else
			t->op.launch.func = NULL;
	}
	unlock(cancel);
}

bool engine_pending(void)
{
	bool any;

	if (engine_running())
		return false;
	pthread_mutex_lock(&queue.lock);
	any = queue.first;
	pthread_mutex_unlock(&queue.lock);
	return any;
}

bool engine_hold(void)
{
	const int cancel = lock();
	const bool none = host_hold();

	host_leave(); /* the thread is held by its caller */
	pthread_mutex_unlock(&queue.lock);
	pthread_setcancelstate(cancel, NULL);
	return none;
}

void engine_exit(void)
{
	const int cancel = lock();

	host_leave();
	unlock(cancel);
}

/* Can any go on? Nothing is drawn for it. */
static bool any_may_run(void)
{
	for (struct task *t = queue.first; t; t = t->next)
		if (engine_may_run(t))
			return true;
	return queue.busy;
}

static bool all_suspended(void)
{
	for (const struct task *t = queue.first; t; t = t->next)
		if (t->op.kind != OP_LAUNCH || t->state != TASK_SUSPENDED)
			return false;
	return queue.first;
}

struct tried engine_try_all(bool again)
{
	struct tried is = { 0 };
	double moved;
	uint64_t epoch;
	int cancel;

	if (engine_running())
		return is;
	cancel = lock();
	is.any = again || !queue.first || any_may_run();
	moved = queue.moved;
	epoch = queue.epoch;
	if (is.any)
		wait_for(&(struct goal){ NULL, queue.issued, -1 }, WAIT_QUERY);
	if (queue.epoch <= epoch + 1) /* grids have looked, in vain */
		queue.moved = moved;
	is.runs = queue.busy;
	is.suspended = all_suspended();
	unlock(cancel);
	return is;
}

/* ---- the background thread ---- */

/* Accesses of the host while an operation runs are not seen, so that what need not run should wait for the
 * access that makes it run (guard.c). Can the host wait for what is queued by other means? */
bool host_is_seen(void)
{
	if (ipc_any() || !guard_sees_all())
		return false;
	for (const struct task *t = queue.first; t; t = t->next)
		if (t->op.kind == OP_HOST || t->op.kind == OP_CONDITION || t->op.kind == OP_GRAPH
				|| t->op.kind == OP_ENVIRONMENT)
			return false;
	return true;
}

static void *run_idle(void *unused)
{
	uint64_t calls = 0;
	unsigned vain = 0;

	(void)unused;
	pthread_mutex_lock(&queue.lock);
	vec_push(&queue.ours, gettid());
	for (;;) {
		struct timespec until = deadline_in(TURN);

		background.asleep = vain > IDLE_TURNS;
		pthread_cond_timedwait(&background.issued, &queue.lock, background.asleep
			? &(struct timespec){ .tv_sec = INT32_MAX } : &until);
		background.asleep = false;
		vain = queue.first ? 0 : vain + 1;
		if (calls == queue.calls && queue.first && !queue.waiting && !queue.busy
				&& (!host_is_seen() || host_is_settled(false))) {
			wake_suspended();
			while (calls == queue.calls && !queue.waiting && engine_step(NULL, WAIT_QUERY, NULL))
				;
		}
		calls = queue.calls;
	}
	return NULL;
}

int engine_issued(void)
{
	struct goal all = { NULL, 0, -1 }, half = all;
	bool full;
	int cancel;

	cancel = lock();
	queue.calls++;
	queue.moved = progress_seconds();
	if (!background.started)
		background.started = start_thread(run_idle);
	if (background.asleep)
		pthread_cond_signal(&background.issued);
	full = queue.n > MOST_TASKS || queue.bytes > MOST_BYTES;
	all.upto = half.upto = queue.issued;
	if (full)
		half.upto -= queue.n / 2;
	if (in_operation() || (!full && !device_blocks())) {
		unlock(cancel);
		return 0;
	}
	return wait_and_unlock(full ? &half : &all, WAIT_DONE, cancel);
}
