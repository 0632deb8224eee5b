/* engine: what the files that run the queue's tasks share. All functions are called with the lock of the
 * queue, but for deadline_in(). */
#ifndef CONSAN_CUDA_ENGINE_H
#define CONSAN_CUDA_ENGINE_H

#include "queue.h"

#include <time.h>

/* ---- engine.c ---- */

struct timespec deadline_in(double seconds);
/* Something has changed: what is suspended may go on. */
void wake_suspended(void);
/* Starts what a seed draws for the next wait of the host, so that it does not depend on what was drawn
 * before. */
void engine_seed(void);
bool engine_may_run(struct task *t);
/* The task to run next; NULL: none can run. */
struct task *engine_pick(void);
/* Starts or resumes the task, on this thread if the wait `me` needs it: a grid may be suspended, and then
 * keeps its thread. */
void engine_dispatch(struct task *t, const void *me);
/* Dispatches a task, or waits until something changes. False: nothing can run without the host, or what
 * runs has not ended until then. */
bool engine_step(const void *me, enum wait_mode mode, const struct timespec *until);
/* Lets time pass for grids that poll in vain. False: there is none. */
bool pass_time(void);
/* Does the host change memory, or wait for it to change, only by accesses that are seen? */
bool host_is_seen(void);
/* Nothing can run without the host. */
void engine_idle(void);
/* Does a thread of the host wait for the task, which can run it? */
bool is_waited_for(const struct task *t);
/* Might the host change memory, or issue an operation, without us? */
bool host_may_act(void);

/* ---- run_task.c ---- */

void run_task(struct task *t);
void run_on_worker(struct task *t);
/* The thread has no signals of the program. False: it cannot be started. */
bool start_thread(void *(*run)(void *));
/* A copy of the process has no workers. */
void forget_workers(void);

#endif
