/* pool: the worker threads of the process. They are started once, wait for work
 * and never end. */
#ifndef CONSAN_POOL_H
#define CONSAN_POOL_H

#define POOL_MOST 63 /* workers */

/* Starts workers until there are so many, or POOL_MOST. Fewer may start: the system limits
 * the number of threads. */
void pool_open(unsigned workers);
unsigned pool_workers(void); /* that were started */
/* Calls work(arg) on this thread and at the same time on at most `threads` - 1 workers.
 * Returns when all of these calls have returned. `work` takes its share from a counter
 * that all calls have in common, since it may run on this thread only: where all workers
 * are busy, or none was started. May be called from several threads, and from `work`. */
void pool_run(void (*work)(void *arg), void *arg, unsigned threads);

/* The same in two parts, for work that overlaps with the caller's own. The task must live until
 * pool_finish(). */
struct pool_task {
	void (*work)(void *arg);
	void *arg;
	unsigned running;          /* workers that are in work(); the pool's */
};
/* Queues calls of work(arg) for at most so many workers, and returns at once. */
void pool_start(struct pool_task *t, unsigned workers);
/* Withdraws the calls that no worker has begun, and waits for the others to return. */
void pool_finish(struct pool_task *t);

#endif
