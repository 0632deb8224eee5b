/* engine: runs the tasks of the queue (queue.h): which one, when, and on which thread.
 *
 * The host runs them when it waits. If it does not call us for a while although there is work, a
 * background thread runs it: the host may look at memory until it changes. */
#include "queue.h"

#include <signal.h>
#include <time.h>

enum { MOST_TASKS = 1024 };             /* a GPU's queues are of this size, too */
#define MOST_BYTES ((size_t)256 << 20)  /* of staged memory */
#define QUIET 0.02                      /* seconds without a call until the background thread runs tasks */
#define LINGER 100                      /* so often it looks in vain until it sleeps */

static _Thread_local struct task *running;

static struct {
	VEC(struct task *) todo;        /* to be run by a thread of ours, first in first out */
	unsigned idle, threads;
	pthread_cond_t work;
	bool background;                /* its thread was started ... */
	bool asleep;                    /* ... and waits for this: */
	pthread_cond_t issued;
	uint64_t rng;
	bool seeded;
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

/* ---- running a task; all functions are called with the lock ---- */

/* After a fault nothing runs any more, but the host must not wait forever. */
static int run_unless_broken(int device, const struct op *op, struct order_op *order)
{
	const bool always = op->kind == OP_FREE || (op->kind == OP_HOST && op->host.always);

	return always || !device_broken(device) ? op_run(op, order) : 0;
}

static void execute(struct task *t)
{
	int error;

	t->started = true;
	pthread_mutex_unlock(&queue.lock);
	running = t;
	caller_set(t->from);
	error = run_unless_broken(t->stream->device, &t->op, t->order);
	caller_set(NULL);
	running = NULL;
	pthread_mutex_lock(&queue.lock);
	if (error && !queue.late)
		queue.late = error;
	if (queue.busy == t)
		queue.busy = NULL;
	else
		queue.functions--;
	queue.epoch++;
	queue_done(t);
	pthread_cond_broadcast(&queue.changed);
}

static void *worker(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&queue.lock);
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
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	started = !pthread_create(&id, &attr, run, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	engine.threads += started;
	return started;
}

/* Lets a thread of ours run the task. */
static void hand_out(struct task *t)
{
	if (engine.idle <= engine.todo.n && !start_thread(worker)) {
		execute(t);
		return;
	}
	vec_push(&engine.todo, t);
	pthread_cond_signal(&engine.work);
}

/* ---- which task is next ---- */

static uint64_t draw(void)
{
	uint64_t z;

	if (!engine.seeded)
		engine.rng = consan_seed(device_session()) * 0xd1342543de82ef95ull;
	engine.seeded = true;
	z = engine.rng += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static bool may_run(struct task *t)
{
	return t->state == TASK_SUSPENDED ? t->tried != queue.epoch
		: t->state == TASK_QUEUED && task_ready(t);
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

/* Lets a task go on, or waits until something changes. False: nothing can run. */
static bool progress(const void *me, enum wait_mode mode)
{
	struct task *t = queue.busy ? NULL : pick();

	if (t) {
		go_on(t, me);
		return true;
	}
	if (!queue.busy && (!queue.functions || mode == WAIT_QUERY))
		return false;
	pthread_cond_wait(&queue.changed, &queue.lock);
	return true;
}

/* ---- waiting ---- */

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
}

/* The caller holds the lock. */
static int wait_for(const struct goal *g, enum wait_mode mode)
{
	int error = 0;

	queue.calls++;
	if (reached(g))
		return 0;
	queue.epoch++; /* the host may have changed what a grid waits for */
	need(g, g);
	queue.waiting += mode == WAIT_DONE;
	while (!reached(g) && progress(g, mode))
		;
	queue.waiting -= mode == WAIT_DONE;
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

static int wait_and_unlock(const struct goal *g, enum wait_mode mode)
{
	int error = take_late(wait_for(g, mode)), broken;

	pthread_mutex_unlock(&queue.lock);
	if (error == cudaErrorNotReady)
		return error;
	broken = device_ready();
	return broken ? broken : error;
}

/* A host function must not wait (CUDA Programming Guide, "Host Functions"). */
static bool forbidden(void)
{
	return running && running->op.kind == OP_HOST;
}

int engine_wait(struct task *t, enum wait_mode mode)
{
	if (forbidden())
		return cudaErrorNotPermitted;
	pthread_mutex_lock(&queue.lock);
	return wait_and_unlock(&(struct goal){ t, 0, -1 }, mode);
}

int engine_wait_all(int device)
{
	if (!device_session())
		return 0;
	if (forbidden())
		return cudaErrorNotPermitted;
	pthread_mutex_lock(&queue.lock);
	return wait_and_unlock(&(struct goal){ NULL, queue.issued, device }, WAIT_DONE);
}

/* ---- the background ---- */

static void *background(void *unused)
{
	uint64_t calls = 0;
	unsigned vain = 0;

	(void)unused;
	pthread_mutex_lock(&queue.lock);
	for (;;) {
		struct timespec until = after(QUIET);

		engine.asleep = vain > LINGER;
		pthread_cond_timedwait(&engine.issued, &queue.lock, engine.asleep
			? &(struct timespec){ .tv_sec = INT32_MAX } : &until);
		engine.asleep = false;
		vain = queue.first ? 0 : vain + 1;
		if (calls == queue.calls && queue.first && !queue.waiting && !queue.busy) {
			queue.epoch++;
			while (calls == queue.calls && !queue.waiting && progress(NULL, WAIT_QUERY))
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

	pthread_mutex_lock(&queue.lock);
	queue.calls++;
	if (!engine.background)
		engine.background = start_thread(background);
	if (engine.asleep)
		pthread_cond_signal(&engine.issued);
	full = queue.n > MOST_TASKS || queue.bytes > MOST_BYTES;
	all.upto = half.upto = queue.issued;
	if (full)
		half.upto -= queue.n / 2;
	if (forbidden() || (!full && !device_blocks())) {
		pthread_mutex_unlock(&queue.lock);
		return 0;
	}
	return wait_and_unlock(full ? &half : &all, WAIT_DONE);
}
