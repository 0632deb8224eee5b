/* run_task: runs one task of the queue, on the calling thread or on a worker thread.
 *
 * Worker threads are started when none is idle and never end. All functions are called with the lock of
 * the queue, which is released while the operation runs. */
#include "engine.h"

#include <signal.h>
#include <unistd.h>

static _Thread_local struct task *running;

static struct {
	VEC(struct task *) todo;        /* to be run by a worker, first in first out */
	unsigned idle;
	pthread_cond_t work;
} workers = { .work = PTHREAD_COND_INITIALIZER };

struct task *engine_running(void)
{
	return running;
}

bool engine_begun(void)
{
	const bool counted = running && running->counted;

	if (counted)
		running->counted = false;
	return counted;
}

/* After a fault nothing runs any more, but the host must not wait forever. */
static int run_unless_broken(int device, const struct op *op, struct order_op *order)
{
	const bool always = op->kind == OP_FREE || (op->kind == OP_HOST && op->host.always);

	return always || !device_broken(device) ? op_run(op, order) : 0;
}

static void task_ended(struct task *t, int error)
{
	if (error && !queue.async_error)
		queue.async_error = error;
	if (queue.busy == t) {
		queue.busy = NULL;
		queue.beside = false;
	} else {
		queue.functions--;
	}
	wake_suspended();
	queue_ended(t);
	pthread_cond_broadcast(&queue.changed);
}

/* A host function, or a handler of a signal, ended the thread. */
static void thread_ended(void *task)
{
	struct task *t = task;

	if (t->op.kind != OP_HOST)
		guard_resume();
	running = NULL;
	caller_set(NULL);
	pthread_mutex_lock(&queue.lock);
	queue.threads -= t->ours;
	task_ended(t, 0);
	pthread_mutex_unlock(&queue.lock);
}

void run_task(struct task *t)
{
	struct task *outer = running; /* suspended on this thread */
	int error;

	t->started = true;
	pthread_mutex_unlock(&queue.lock);
	running = t;
	caller_set(t->from);
	if (t->op.kind != OP_HOST)
		guard_suspend();
	pthread_cleanup_push(thread_ended, t);
	error = run_unless_broken(t->stream->device, &t->op, t->order);
	pthread_cleanup_pop(false);
	if (t->op.kind != OP_HOST)
		guard_resume();
	running = outer;
	caller_set(outer ? outer->from : NULL);
	pthread_mutex_lock(&queue.lock);
	task_ended(t, error);
}

static void *worker(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&queue.lock);
	vec_push(&queue.ours, gettid());
	for (;;) {
		struct task *t;

		workers.idle++;
		while (!workers.todo.n)
			pthread_cond_wait(&workers.work, &queue.lock);
		workers.idle--;
		t = workers.todo.at[0];
		for (size_t i = 1; i < workers.todo.n; i++)
			workers.todo.at[i - 1] = workers.todo.at[i];
		workers.todo.n--;
		run_task(t);
	}
	return NULL;
}

bool start_thread(void *(*run)(void *))
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

void run_on_worker(struct task *t)
{
	if (workers.idle <= workers.todo.n && !start_thread(worker)) {
		run_task(t);
		return;
	}
	t->ours = true;
	vec_push(&workers.todo, t);
	pthread_cond_signal(&workers.work);
}

void forget_workers(void)
{
	queue.threads = workers.idle = 0;
	workers.todo.n = 0;
	pthread_cond_init(&workers.work, NULL);
}
