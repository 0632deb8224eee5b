/* engine: runs the tasks of the queue (queue.h): which one, when, and on which thread.
 *
 * The host runs them when it waits. If it does not call us for a while although there is work, a
 * background thread runs it: the host may look at memory until it changes.
 *
 * A grid in which no thread can go on is suspended on its thread, and others run: grids of other
 * streams, host functions, the host itself. It is resumed when something else has run, or when the
 * host may have changed memory. If nothing is left that could let it go on, that is a deadlock. */
#include "queue.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { MOST_TASKS = 1024 };             /* a GPU's queues are of this size, too */
#define MOST_BYTES ((size_t)256 << 20)  /* of staged memory */
#define QUIET 0.02                      /* seconds without a call until the background thread runs tasks */
#define LINGER 100                      /* so often it looks in vain until it sleeps */

/* Seconds for what is queued when the process ends, or unloads its kernels: they may wait for the host */
#define FINISH 5.0
/* Seconds that a query, or an access of the host to guarded memory, waits for a grid to end: it may wait
 * for the host in a loop that has effects */
#define QUERY 2.0
#define RETRY 0.0005                    /* seconds until suspended grids look for what the host did ... */
#define RETRY_MOST 0.02                 /* ... each time twice as long */
#define LOOK 0.05                       /* seconds until a wait looks whether a handler wants to leave it */

static _Thread_local struct task *running;

static struct {
	VEC(struct task *) todo;        /* to be run by a thread of ours, first in first out */
	unsigned idle;
	pthread_cond_t work;
	bool background;                /* its thread was started ... */
	bool asleep;                    /* ... and waits for this: */
	pthread_cond_t issued;
	uint64_t rng;
	double retry;
	double vain_at;                 /* when a grid that polls in vain looked for what the host did */
	uint64_t waits;                 /* of the host */
} engine = { .work = PTHREAD_COND_INITIALIZER, .issued = PTHREAD_COND_INITIALIZER };

struct task *engine_running(void)
{
	return running;
}

static struct timespec after(double seconds)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	seconds += (double)t.tv_nsec * 1e-9;
	t.tv_sec += (time_t)seconds;
	t.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9);
	return t;
}

/* A thread that is cancelled ends when it has left the call: what it waits for, writes or runs in here is
 * with locks. Returns what unlock() takes. */
static int lock(void)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&queue.lock);
	return cancel;
}

static void unlock(int cancel)
{
	pthread_mutex_unlock(&queue.lock);
	pthread_setcancelstate(cancel, NULL);
}

/* ---- running a task; all functions are called with the lock ---- */

/* After a fault nothing runs any more, but the host must not wait forever. */
static int run_unless_broken(int device, const struct op *op, struct order_op *order)
{
	const bool always = op->kind == OP_FREE || (op->kind == OP_HOST && op->host.always);

	return always || !device_broken(device) ? op_run(op, order) : 0;
}

/* What is suspended may go on. */
static void moved(void)
{
	queue.epoch++;
	queue.moved = progress_seconds();
	engine.retry = RETRY;
}

/* Under the lock. */
static void ended(struct task *t, int error)
{
	if (error && !queue.late)
		queue.late = error;
	if (queue.busy == t)
		queue.busy = NULL;
	else
		queue.functions--;
	moved();
	queue_ended(t);
	pthread_cond_broadcast(&queue.changed);
}

/* A host function, or a handler of a signal, ended the thread. */
static void abandoned(void *task)
{
	struct task *t = task;

	if (t->op.kind != OP_HOST)
		guard_resume();
	running = NULL;
	caller_set(NULL);
	pthread_mutex_lock(&queue.lock);
	queue.threads -= t->ours;
	ended(t, 0);
	pthread_mutex_unlock(&queue.lock);
}

static void execute(struct task *t)
{
	struct task *outer = running; /* suspended on this thread */
	int error;

	t->started = true;
	pthread_mutex_unlock(&queue.lock);
	running = t;
	caller_set(t->from);
	if (t->op.kind != OP_HOST)
		guard_suspend();
	pthread_cleanup_push(abandoned, t);
	error = run_unless_broken(t->stream->device, &t->op, t->order);
	pthread_cleanup_pop(false);
	if (t->op.kind != OP_HOST)
		guard_resume();
	running = outer;
	caller_set(outer ? outer->from : NULL);
	pthread_mutex_lock(&queue.lock);
	ended(t, error);
}

static void *worker(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&queue.lock);
	vec_push(&queue.ours, gettid());
	for (;;) {
		struct task *t;

		engine.idle++;
		while (!engine.todo.n)
			pthread_cond_wait(&engine.work, &queue.lock);
		engine.idle--;
		t = engine.todo.at[0];
		for (size_t i = 1; i < engine.todo.n; i++)
			engine.todo.at[i - 1] = engine.todo.at[i];
		engine.todo.n--;
		execute(t);
	}
	return NULL;
}

/* The thread has no signals of the program. False: it cannot be started. */
static bool start_thread(void *(*run)(void *))
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t id;
	bool started;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV); /* guard.c */
	sigdelset(&all, SIGTRAP);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	started = !pthread_create(&id, &attr, run, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	queue.threads += started;
	return started;
}

/* Lets a thread of ours run the task. */
static void hand_out(struct task *t)
{
	if (engine.idle <= engine.todo.n && !start_thread(worker)) {
		execute(t);
		return;
	}
	t->ours = true;
	vec_push(&engine.todo, t);
	pthread_cond_signal(&engine.work);
}

/* ---- which task is next ---- */

static uint64_t draw(void)
{
	uint64_t z;

	z = engine.rng += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static bool may_run(struct task *t)
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
		if ((needed && !t->needed) || !may_run(t))
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
static struct task *pick(void)
{
	struct task *t = NULL;

	if (!consan_seed(device_session()))
		t = first_of(true);
	return t ? t : first_of(false);
}

/* Lets the task go on, on this thread if the wait `me` needs it: a grid may be suspended, and then
 * keeps its thread. */
static void go_on(struct task *t, const void *me)
{
	const bool launch = t->op.kind == OP_LAUNCH, host = t->op.kind == OP_HOST;

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
		execute(t);
	else
		hand_out(t);
}

/* ---- nothing can run ---- */

/* Might the host change memory, or issue an operation, without us? */
static bool host_may_act(void)
{
	return program_may_act() && !program_out_of_time();
}

/* Lets time pass for grids that poll in vain. False: there is none. */
static bool pass_time(void)
{
	bool any = false;

	for (struct task *t = queue.first; t; t = t->next)
		if (t->state == TASK_SUSPENDED && t->vain)
			t->timed = any = true;
	return any;
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
	until = after(engine.retry);
	engine.retry = engine.retry * 2 < RETRY_MOST ? engine.retry * 2 : RETRY_MOST;
	if (pthread_cond_timedwait(&queue.changed, &queue.lock, &until))
		queue.epoch++;
}

/* Waits until something has run; until NULL: however long it takes. False: it is past that time. */
static bool wait_for_task(const struct timespec *until)
{
	const struct timespec look = after(LOOK);

	return !pthread_cond_timedwait(&queue.changed, &queue.lock, until ? until : &look) || !until;
}

/* Lets a task go on, or waits until something changes. False: nothing can run without the host, or what
 * runs has not ended until then. */
static bool progress(const void *me, enum wait_mode mode, const struct timespec *until)
{
	struct task *t = queue.busy ? NULL : pick();

	if (t) {
		go_on(t, mode == WAIT_DONE ? me : NULL);
		return true;
	}
	if (!queue.busy && mode == WAIT_QUERY)
		return false;
	if (queue.busy || queue.functions)
		return wait_for_task(until);
	wait_for_host();
	return true;
}

/* ---- waiting ---- */

struct goal;
static int wait_for(const struct goal *g, enum wait_mode mode);

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

static void mark(struct task *t, const void *me)
{
	t->needed = true;
	t->waiter = me;
}

/* Tasks depend on earlier ones only. */
static void need(const struct goal *g, const void *me)
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

static void begin_wait(void)
{
	queue.waiting++;
	vec_push(&queue.ours, gettid());
}

/* Also by a thread of ours, in a host function. */
static void end_wait(void)
{
	size_t i = queue.ours.n;

	queue.waiting--;
	while (i-- > 0 && queue.ours.at[i] != gettid())
		;
	queue.ours.at[i] = queue.ours.at[--queue.ours.n];
}

/* Other orders (--explore): of the threads, only the one that made the copy is in it. */
static void run_in_copy(void *user)
{
	const struct goal *g = user;

	queue.copying = false;
	queue.ours.n = 0;
	queue.waiting = queue.threads = engine.idle = 0;
	engine.todo.n = 0;
	pthread_cond_init(&queue.changed, NULL);
	pthread_cond_init(&engine.work, NULL);
	pthread_cond_init(&engine.issued, NULL);
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

/* The caller holds the lock. */
static int wait_for(const struct goal *g, enum wait_mode mode)
{
	const struct timespec limit = after(QUERY), *until = mode == WAIT_QUERY ? &limit : NULL;
	int error = 0;

	queue.calls++;
	if (reached(g))
		return 0;
	if (mode == WAIT_DONE && !running && orders_to_explore())
		explore(g);
	/* so that a seed draws the same whatever was drawn before */
	if (!running)
		engine.rng = (consan_seed(device_session()) + 0x9e3779b97f4a7c15ull * engine.waits++)
			* 0xd1342543de82ef95ull;
	moved(); /* the host may have changed what a grid waits for */
	need(g, g);
	if (mode == WAIT_DONE)
		begin_wait();
	while (!reached(g) && !leave_wanted() && progress(g, mode, until))
		;
	if (mode == WAIT_DONE)
		end_wait();
	queue.moved = progress_seconds();
	if (!reached(g))
		error = cudaErrorNotReady;
	return error;
}

static int take_late(int error)
{
	if (!error) {
		error = queue.late;
		queue.late = 0;
	}
	return error;
}

static int wait_and_unlock(const struct goal *g, enum wait_mode mode, int cancel)
{
	int error = take_late(wait_for(g, mode)), broken;

	unlock(cancel);
	if (error == cudaErrorNotReady)
		return error;
	broken = device_ready();
	return broken ? broken : error;
}

/* A host function must not wait (CUDA Programming Guide, "Host Functions"), nor the handler of a signal
 * that interrupts an operation. */
static bool forbidden(void)
{
	return running;
}

int engine_wait(struct task *t, enum wait_mode mode)
{
	int cancel;

	if (forbidden())
		return cudaErrorNotPermitted;
	cancel = lock();
	return wait_and_unlock(&(struct goal){ t, 0, -1 }, mode, cancel);
}

int engine_wait_all(int device)
{
	int cancel;

	if (!device_session())
		return 0;
	if (forbidden())
		return cudaErrorNotPermitted;
	cancel = lock();
	return wait_and_unlock(&(struct goal){ NULL, queue.issued, device }, WAIT_DONE, cancel);
}

/* ---- suspended grids ---- */

static void set_suspended(struct task *t, enum exec_pause why)
{
	t->state = TASK_SUSPENDED;
	t->able = why != EXEC_PAUSE_STUCK && why != EXEC_PAUSE_VAIN;
	t->vain = why == EXEC_PAUSE_VAIN;
	t->timed = false;
	t->tried = queue.epoch;
}

/* Returns when the task, which is suspended, goes on. */
static enum exec_resume wait_for_turn(struct task *t)
{
	if (queue.busy == t)
		queue.busy = NULL;
	pthread_cond_broadcast(&queue.changed);
	while (t->state == TASK_SUSPENDED) {
		t->cut = leave_wanted();
		progress(NULL, WAIT_DONE, NULL);
	}
	if (t->cut)
		return EXEC_GIVE_UP;
	if (t->hung)
		return EXEC_HUNG;
	return t->vain && t->tried == queue.epoch ? EXEC_TIME : EXEC_CHANGED;
}

static enum exec_resume suspend(struct task *t, enum exec_pause why, bool changed)
{
	if (changed)
		moved();
	set_suspended(t, why);
	return wait_for_turn(t);
}

/* It could go on. Without a seed, the next one in the order of issue gets a turn; with a seed, some
 * other one, or none. */
static struct task *next_after(struct task *t)
{
	struct task *u;

	if (consan_seed(device_session())) {
		t->state = TASK_SUSPENDED;
		t->able = true;
		u = pick();
		t->state = TASK_RUNNING;
		return u == t ? NULL : u;
	}
	for (u = t->next ? t->next : queue.first; u != t; u = u->next ? u->next : queue.first)
		if (may_run(u))
			return u;
	return NULL;
}

static enum exec_resume yield(struct task *t, enum exec_pause why, bool changed)
{
	struct task *next;

	if (changed)
		moved(); /* also if it goes on itself: the executor will not tell it again */
	next = next_after(t);
	if (!next)
		return EXEC_AS_BEFORE;
	t->state = TASK_SUSPENDED;
	t->able = true;
	go_on(next, NULL);
	return suspend(t, why, false);
}

/* It polls in vain, but does not repeat itself: it may count, or look at the clock. Anything else that
 * can run, does. If the host might act, it polls on; if nothing else will happen, its time passes. */
static enum exec_resume in_vain(struct task *t, bool changed)
{
	struct task *next;
	bool may_act;

	if (changed)
		moved();
	set_suspended(t, EXEC_PAUSE_VAIN);
	next = pick();
	if (next) {
		go_on(next, NULL);
		return wait_for_turn(t);
	}
	may_act = queue.functions || host_may_act(); /* while it is suspended: reports name it */
	t->state = TASK_RUNNING;
	if (!may_act) {
		pass_time();
		return EXEC_TIME;
	}
	if (progress_seconds() - engine.vain_at < RETRY)
		return EXEC_AS_BEFORE;
	engine.vain_at = progress_seconds();
	queue.epoch++;
	return EXEC_CHANGED;
}

enum exec_resume engine_pause(enum exec_pause why, bool changed)
{
	struct task *t = running;
	enum exec_resume how;

	if (!t)
		return why == EXEC_PAUSE_STUCK ? EXEC_HUNG : why == EXEC_PAUSE_VAIN ? EXEC_TIME
			: EXEC_AS_BEFORE;
	if (why != EXEC_PAUSE_STUCK && why != EXEC_PAUSE_VAIN
		&& __atomic_load_n(&queue.n, __ATOMIC_RELAXED) <= 1)
		return EXEC_AS_BEFORE;
	pthread_mutex_lock(&queue.lock);
	how = why == EXEC_PAUSE_STUCK ? suspend(t, why, changed) : why == EXEC_PAUSE_VAIN
		? in_vain(t, changed) : yield(t, why, changed);
	pthread_mutex_unlock(&queue.lock);
	return how;
}

/* No other task can run that does not depend on it, and the host waits. */
bool engine_alone(void)
{
	const struct task *me = running;
	bool alone = true;

	if (!me)
		return true;
	pthread_mutex_lock(&queue.lock);
	for (struct task *t = queue.first; t; t = t->next) {
		t->mark = t == me;
		for (size_t i = 0; i < t->after.n && !t->mark; i++)
			t->mark = t->after.at[i]->state != TASK_DONE && t->after.at[i]->mark;
		alone &= t->mark;
	}
	alone = alone && queue.waiting && !ipc_any() && (program_threads() <= 0 || program_blocked());
	pthread_mutex_unlock(&queue.lock);
	return alone;
}

/* Another thread of the program runs a launch: it is cut off, as on a GPU. */
static bool cut_off(void)
{
	return queue.busy && !queue.busy->ours;
}

/* Runs what can run without the host, and waits for it for so long. */
static void run_all(double seconds)
{
	const struct timespec until = after(seconds);
	const double end = progress_seconds() + seconds;

	moved();
	while (queue.first && !cut_off() && progress_seconds() < end) {
		if (queue.busy || queue.functions)
			pthread_cond_timedwait(&queue.changed, &queue.lock, &until);
		else if (!progress(NULL, WAIT_QUERY, NULL))
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

	if (!device_session() || running)
		return;
	cancel = lock();
	run_all(FINISH);
	queue.ends = true;
	while (queue.first && !queue.busy && !queue.functions)
		progress(NULL, WAIT_DONE, NULL);
	unlock(cancel);
	ipc_race_known(true); /* who waits for the process knows it, too */
}

void engine_leave(const struct image *im)
{
	int cancel;

	if (!device_session() || running)
		return;
	cancel = lock();
	if (!queue.ends)
		run_all(FINISH);
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

	if (running)
		return false;
	pthread_mutex_lock(&queue.lock);
	any = queue.first;
	pthread_mutex_unlock(&queue.lock);
	return any;
}

void engine_try_all(void)
{
	int cancel;

	if (running)
		return;
	cancel = lock();
	wait_for(&(struct goal){ NULL, queue.issued, -1 }, WAIT_QUERY);
	unlock(cancel);
}

/* ---- the background ---- */

static void *background(void *unused)
{
	uint64_t calls = 0;
	unsigned vain = 0;

	(void)unused;
	pthread_mutex_lock(&queue.lock);
	vec_push(&queue.ours, gettid());
	for (;;) {
		struct timespec until = after(QUIET);

		engine.asleep = vain > LINGER;
		pthread_cond_timedwait(&engine.issued, &queue.lock, engine.asleep
			? &(struct timespec){ .tv_sec = INT32_MAX } : &until);
		engine.asleep = false;
		vain = queue.first ? 0 : vain + 1;
		if (calls == queue.calls && queue.first && !queue.waiting && !queue.busy) {
			moved();
			while (calls == queue.calls && !queue.waiting && progress(NULL, WAIT_QUERY, NULL))
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
	if (!engine.background)
		engine.background = start_thread(background);
	if (engine.asleep)
		pthread_cond_signal(&engine.issued);
	full = queue.n > MOST_TASKS || queue.bytes > MOST_BYTES;
	all.upto = half.upto = queue.issued;
	if (full)
		half.upto -= queue.n / 2;
	if (forbidden() || (!full && !device_blocks())) {
		unlock(cancel);
		return 0;
	}
	return wait_and_unlock(full ? &half : &all, WAIT_DONE, cancel);
}
