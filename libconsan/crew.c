/* crew: see crew.h. Each thread has a place of its own for its next task: it looks
 * there for a while before it sleeps. */
#include "crew.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ALERT_NS 5000000ull
#define AWAKE_NS 20000ull

struct hand {
	_Alignas(64) _Atomic(struct crew_task *) task;
	atomic_bool alert;         /* a task is to come */
	atomic_bool busy;          /* from crew_give() until the task is done */
	bool asleep;               /* under lock */
	void *heap;                /* its last block */
	pthread_mutex_t lock;
	pthread_cond_t wake;
};

static struct {
	pthread_mutex_t lock;
	struct hand hand[CREW_MOST];
	unsigned n;
	pid_t owner;               /* threads do not survive a fork */
} crew = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void crew_pause(unsigned *count)
{
	/* with fewer processors than threads, the other one may need this one */
	if (++*count % 1024 == 0)
		sched_yield();
	else
		__builtin_ia32_pause();
}

static struct crew_task *wait_awake(struct hand *h)
{
	uint64_t end = now() + (atomic_exchange(&h->alert, false) ? ALERT_NS : AWAKE_NS);
	struct crew_task *t;
	unsigned count = 0;

	/* only looked at at first: its line stays with whoever gives */
	while (!atomic_load_explicit(&h->task, memory_order_relaxed) || !(t = atomic_exchange(&h->task, NULL))) {
		crew_pause(&count);
		if (count % 256 == 0 && now() > end)
			return NULL;
	}
	return t;
}

static struct crew_task *wait_asleep(struct hand *h)
{
	struct crew_task *t;

	pthread_mutex_lock(&h->lock);
	h->asleep = true;
	while (!(t = atomic_exchange(&h->task, NULL)) && !atomic_load(&h->alert))
		pthread_cond_wait(&h->wake, &h->lock);
	h->asleep = false;
	pthread_mutex_unlock(&h->lock);
	return t;
}

/* The C library gives a thread's heap a few KiB at a time from the system, and takes
 * what is free at its end back: with many threads that is most of a short task. So
 * there is some from the start, with a block at its end that is never free. */
#define HEAP_BLOCKS 48u
#define HEAP_BLOCK (64u << 10)

static void *warm_heap(void)
{
	void *block[HEAP_BLOCKS], *end;

	for (unsigned k = 0; k < HEAP_BLOCKS; k++) {
		block[k] = malloc(HEAP_BLOCK);
		if (block[k])
			memset(block[k], 1, HEAP_BLOCK);
	}
	end = malloc(64);
	for (unsigned k = 0; k < HEAP_BLOCKS; k++)
		free(block[k]);
	return end;
}

static void *stand_by(void *user)
{
	struct hand *h = user;

	h->heap = warm_heap();

	for (;;) {
		struct crew_task *t = wait_awake(h);

		if (!t)
			t = wait_asleep(h);
		if (!t)
			continue;
		t->work(t->arg);
		__atomic_store_n(&t->done, true, __ATOMIC_RELEASE);
		atomic_store(&h->busy, false);
	}
	return NULL;
}

static bool start(struct hand *h)
{
	pthread_attr_t a;
	pthread_t id;
	bool good;

	*h = (struct hand){ .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	good = !pthread_create(&id, &a, stand_by, h);
	pthread_attr_destroy(&a);
	return good;
}

void crew_open(unsigned threads)
{
	pthread_mutex_lock(&crew.lock);
	if (crew.owner != getpid())
		crew.n = 0;
	crew.owner = getpid();
	while (crew.n < threads && crew.n < CREW_MOST && start(&crew.hand[crew.n]))
		crew.n++;
	pthread_mutex_unlock(&crew.lock);
}

static void rouse(struct hand *h)
{
	pthread_mutex_lock(&h->lock);
	if (h->asleep)
		pthread_cond_signal(&h->wake);
	pthread_mutex_unlock(&h->lock);
}

void crew_alert(unsigned threads)
{
	if (crew.owner != getpid())
		return;
	for (unsigned k = 0; k < crew.n && k < threads; k++) {
		atomic_store(&crew.hand[k].alert, true);
		rouse(&crew.hand[k]);
	}
}

bool crew_give(struct crew_task *t)
{
	t->given = t->done = false;
	if (crew.owner != getpid())
		return false;
	for (unsigned k = 0; k < crew.n && !t->given; k++) {
		const unsigned by = (t->hand + k) % crew.n;
		struct hand *h = &crew.hand[by];
		bool no = false;

		if (!atomic_compare_exchange_strong(&h->busy, &no, true))
			continue;
		t->given = true;
		t->by = by;
		atomic_store(&h->task, t);
		rouse(h);
	}
	return t->given;
}

void crew_wait(struct crew_task *t)
{
	struct crew_task *mine = t;
	unsigned count = 0;

	if (crew.owner != getpid() || !t->given)
		return;
	if (atomic_compare_exchange_strong(&crew.hand[t->by].task, &mine, NULL)) {
		atomic_store(&crew.hand[t->by].busy, false);
		t->work(t->arg);
		t->given = false;
		return;
	}
	while (t->given && !__atomic_load_n(&t->done, __ATOMIC_ACQUIRE))
		crew_pause(&count);
}

void crew_give_all(struct crew_hands *h, void (*work)(void *arg), void *arg, unsigned most)
{
	for (h->n = 0; h->n < most && h->n < CREW_MOST; h->n++) {
		h->task[h->n] = (struct crew_task){ .work = work, .arg = arg };
		if (!crew_give(&h->task[h->n]))
			return;
	}
}

void crew_wait_all(struct crew_hands *h)
{
	for (unsigned k = 0; k < h->n; k++)
		crew_wait(&h->task[k]);
}
