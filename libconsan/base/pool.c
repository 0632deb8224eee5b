/* pool: see pool.h. One lock protects all of it. */
#include "pool.h"
#include "own_thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>

static struct {
	pthread_mutex_t lock;
	pthread_cond_t queued;     /* an entry was added to the queue */
	pthread_cond_t idle;       /* no worker is in some task's work() any more */
	struct pool_task *queue[POOL_MOST]; /* oldest first; a task has an entry for each worker */
	unsigned nqueue;
	unsigned workers, wanted;  /* started; at most POOL_MOST */
	unsigned arrived;          /* workers that run worker(); no lock is needed */
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .queued = PTHREAD_COND_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER };

static struct pool_task *dequeue(unsigned k)
{
	struct pool_task *t = pool.queue[k];

	for (pool.nqueue--; k < pool.nqueue; k++)
		pool.queue[k] = pool.queue[k + 1];
	return t;
}

static void *worker(void *unused)
{
	(void)unused;
	own_thread_begin();
	__atomic_fetch_add(&pool.arrived, 1, __ATOMIC_RELEASE);
	pthread_mutex_lock(&pool.lock);
	for (;;) {
		struct pool_task *t;

		while (!pool.nqueue)
			pthread_cond_wait(&pool.queued, &pool.lock);
		t = dequeue(0);
		t->running++;
		pthread_mutex_unlock(&pool.lock);
		t->work(t->arg);
		pthread_mutex_lock(&pool.lock);
		if (!--t->running)
			pthread_cond_broadcast(&pool.idle);
	}
	return NULL;
}

/* Its signals are for the threads of the program: a handler may end the thread that it runs on, or jump. */
static bool start_worker(void)
{
	static const int own_fault[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t id;
	bool started;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof own_fault / sizeof *own_fault; i++)
		sigdelset(&all, own_fault[i]);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	started = !pthread_create(&id, &attr, worker, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

/* The caller holds the lock. */
static void start_workers(void)
{
	while (pool.workers < pool.wanted && start_worker())
		__atomic_fetch_add(&pool.workers, 1, __ATOMIC_RELAXED);
}

/* A thread that is being started may hold locks of the allocator, which a child would find held
 * for ever: AddressSanitizer of GCC 12 has no handlers for fork. */
static void wait_for_started(void)
{
	while (__atomic_load_n(&pool.arrived, __ATOMIC_ACQUIRE) <
	       __atomic_load_n(&pool.workers, __ATOMIC_RELAXED))
		sched_yield();
}

/* Threads do not survive a fork: the child has none, and the lock may be held by one
 * of the parent's. pool_run() starts the child's own. */
static void reset_in_child(void)
{
	pool.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	pool.queued = pool.idle = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	pool.nqueue = pool.workers = pool.arrived = 0;
	own_threads_forget();
}

static void watch_forks(void)
{
	pthread_atfork(wait_for_started, NULL, reset_in_child);
}

void pool_open(unsigned workers)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&pool.lock);
	if (workers > POOL_MOST)
		workers = POOL_MOST;
	if (workers > pool.wanted)
		pool.wanted = workers;
	start_workers();
	pthread_mutex_unlock(&pool.lock);
}

void pool_start(struct pool_task *t, unsigned workers)
{
	t->running = 0;
	pthread_mutex_lock(&pool.lock);
	start_workers();
	if (workers > pool.workers)
		workers = pool.workers;
	for (; workers && pool.nqueue < POOL_MOST; workers--) {
		pool.queue[pool.nqueue++] = t;
		pthread_cond_signal(&pool.queued);
	}
	pthread_mutex_unlock(&pool.lock);
}

unsigned pool_workers(void)
{
	return __atomic_load_n(&pool.workers, __ATOMIC_RELAXED);
}

void pool_finish(struct pool_task *t)
{
	pthread_mutex_lock(&pool.lock);
	for (unsigned k = pool.nqueue; k-- > 0;)
		if (pool.queue[k] == t)
			dequeue(k);
	while (t->running)
		pthread_cond_wait(&pool.idle, &pool.lock);
	pthread_mutex_unlock(&pool.lock);
}

void pool_run(void (*work)(void *arg), void *arg, unsigned threads)
{
	struct pool_task t = { .work = work, .arg = arg };

	if (threads > 1)
		pool_start(&t, threads - 1);
	work(arg);
	if (threads > 1)
		pool_finish(&t);
}
