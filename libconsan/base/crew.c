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
/* To wake one takes 10 us of the one that wakes it where processors are virtual: so each
 * does so for some more. */
#define ROUSE_FIRST 3u
#define ROUSE 2u
#define QUICK_NS 150000ull         /* so long a call is for those that are quick, */
#define OTHERS_NS 250000ull        /* ... and so long not for those that have answered one */
#define CALLS 8u
#define PACE 12000u                /* turns of its loop: some us */
#define PACES 4u                   /* of each hand at its start: one will be good */

struct hand {
	_Alignas(64) _Atomic(struct crew_task *) task;
	atomic_bool alert;         /* a task is to come */
	atomic_bool busy;          /* from crew_give() until the task is done */
	unsigned answered;         /* to which calls, last; its own */
	bool asleep;               /* under lock */
	void *heap;                /* its last block */
	pthread_mutex_t lock;
	pthread_cond_t wake;
};

static struct {
	pthread_mutex_t lock;
	struct hand hand[CREW_MOST];
	atomic_uint order[CREW_MOST]; /* which is the hand of that number */
	atomic_uint n;
	pid_t owner;               /* threads do not survive a fork */
	_Atomic uint64_t best;     /* pace */
	struct crew_task *call[CALLS]; /* under calling, as is what changes the order */
	atomic_uint ncalls;
	atomic_uint calls;         /* how often there were some, so far */
	_Atomic uint64_t called;   /* when the last one came */
	atomic_bool sought;        /* from an alert until calls are answered, or none come */
	pthread_mutex_t calling;
} crew = { .lock = PTHREAD_MUTEX_INITIALIZER, .best = UINT64_MAX, .calling = PTHREAD_MUTEX_INITIALIZER };

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

/* ---- calls ---- */

/* ns for additions of which a core does four or more at a time, if it has no other
 * thread to run. */
static uint64_t pace(void)
{
	uint64_t from = now(), ns, a = 0, b = 0, c = 0, d = 0, e = 0, best;

	for (unsigned k = 0; k < PACE; k++) {
		a += 3, b += 5, c += 7, d += 9, e += 11;
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
	}
	ns = now() - from;
	best = atomic_load(&crew.best);
	while (ns < best && !atomic_compare_exchange_weak(&crew.best, &best, ns))
		;
	return ns;
}

/* All that hear a call ask this at the same time, so that of two that share a core neither
 * is: what the one did would slow the other. */
static bool is_quick(void)
{
	uint64_t ns = pace();

	return ns < atomic_load(&crew.best) * 5 / 4;
}

/* From now on, that hand is the one of that number. */
static void promote(unsigned hand, unsigned number)
{
	unsigned k = 0;

	while (crew.order[k] != hand)
		k++;
	crew.order[k] = crew.order[number];
	crew.order[number] = hand;
}

/* ... is answered. */
static struct crew_task *uncall(unsigned k)
{
	struct crew_task *t = crew.call[k];

	for (; k + 1 < crew.ncalls; k++)
		crew.call[k] = crew.call[k + 1];
	if (!--crew.ncalls)
		crew.sought = false;
	return t;
}

static bool may_answer(const struct hand *h)
{
	if (h->answered == crew.calls)
		return now() > crew.called + OTHERS_NS;
	return is_quick() || now() > crew.called + QUICK_NS;
}

/* NULL: nobody calls, or not for this one. */
static struct crew_task *answer(struct hand *h)
{
	struct crew_task *t = NULL;
	bool no = false;

	if (!atomic_load_explicit(&crew.ncalls, memory_order_relaxed) || !may_answer(h) ||
			!atomic_compare_exchange_strong(&h->busy, &no, true))
		return NULL;
	pthread_mutex_lock(&crew.calling);
	if (crew.ncalls) {
		t = uncall(0);
		if (h->answered != crew.calls)
			promote((unsigned)(h - crew.hand), t->hand % crew.n);
		h->answered = crew.calls;
		atomic_store(&h->alert, true);
	}
	pthread_mutex_unlock(&crew.calling);
	if (!t)
		atomic_store(&h->busy, false);
	return t;
}

/* ---- hands ---- */

static struct crew_task *wait_awake(struct hand *h)
{
	const bool alerted = atomic_exchange(&h->alert, false);
	const uint64_t end = now() + (alerted ? ALERT_NS : AWAKE_NS);
	struct crew_task *t;
	unsigned count = 0;

	/* only looked at at first: its line stays with whoever gives */
	while (!atomic_load_explicit(&h->task, memory_order_relaxed) || !(t = atomic_exchange(&h->task, NULL))) {
		crew_pause(&count);
		if (count % 16 == 0 && (t = answer(h)))
			return t;
		if (alerted && !crew.sought && h->answered != crew.calls)
			return NULL; /* others do what there is, and one may share its core */
		if (count % 256 == 0 && now() > end)
			return NULL;
	}
	return t;
}

/* True: it slept. */
static bool rouse(struct hand *h)
{
	bool slept;

	pthread_mutex_lock(&h->lock);
	slept = h->asleep;
	h->asleep = false;
	if (slept)
		pthread_cond_signal(&h->wake);
	pthread_mutex_unlock(&h->lock);
	return slept;
}

/* Those that wake go on. */
static void rouse_alerted(unsigned most)
{
	for (unsigned k = 0; k < crew.n && most && crew.sought; k++)
		most -= atomic_load(&crew.hand[k].alert) && rouse(&crew.hand[k]);
}

static struct crew_task *wait_asleep(struct hand *h)
{
	struct crew_task *t;

	pthread_mutex_lock(&h->lock);
	while (!(t = atomic_exchange(&h->task, NULL)) && !atomic_load(&h->alert)) {
		h->asleep = true;
		pthread_cond_wait(&h->wake, &h->lock);
	}
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
	for (unsigned k = 0; k < PACES; k++)
		pace();
	for (;;) {
		struct crew_task *t = wait_awake(h);

		if (!t)
			t = wait_asleep(h);
		if (!t) {
			rouse_alerted(ROUSE);
			continue;
		}
		t->work(t->arg);
		atomic_store(&h->busy, false);
		__atomic_store_n(&t->done, true, __ATOMIC_RELEASE);
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
	if (crew.owner != getpid()) {
		crew.n = crew.ncalls = 0;
		crew.calling = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	}
	crew.owner = getpid();
	for (; crew.n < threads && crew.n < CREW_MOST && start(&crew.hand[crew.n]); crew.n++)
		crew.order[crew.n] = crew.n;
	pthread_mutex_unlock(&crew.lock);
}

void crew_alert(unsigned threads)
{
	if (crew.owner != getpid())
		return;
	for (unsigned k = 0; k < crew.n && k < threads; k++)
		atomic_store(&crew.hand[k].alert, true);
	crew.sought = true;
	rouse_alerted(ROUSE_FIRST);
}

bool crew_give(struct crew_task *t)
{
	t->given = t->called = t->done = false;
	if (crew.owner != getpid())
		return false;
	for (unsigned k = 0; k < crew.n && !t->given; k++) {
		const unsigned by = crew.order[(t->hand + k) % crew.n];
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

void crew_call(struct crew_task *t, unsigned n, unsigned awake)
{
	const bool here = crew.owner == getpid() && crew.n;

	for (unsigned k = 0; k < n; k++)
		t[k].given = t[k].called = t[k].done = false;
	if (!here)
		return;
	crew_alert(awake);
	pthread_mutex_lock(&crew.calling);
	crew.called = now();
	crew.calls += !crew.ncalls;
	for (unsigned k = 0; k < n && crew.ncalls < CALLS; k++) {
		t[k].given = t[k].called = true;
		crew.call[crew.ncalls] = &t[k];
		crew.ncalls++;
	}
	crew.sought = crew.ncalls;
	pthread_mutex_unlock(&crew.calling);
}

void crew_dismiss(void)
{
	if (crew.owner != getpid())
		return;
	pthread_mutex_lock(&crew.calling);
	crew.sought = crew.ncalls;
	pthread_mutex_unlock(&crew.calling);
}

static bool take_back(struct crew_task *t)
{
	struct crew_task *mine = t;
	unsigned k = 0;

	if (!t->called) {
		if (!atomic_compare_exchange_strong(&crew.hand[t->by].task, &mine, NULL))
			return false;
		atomic_store(&crew.hand[t->by].busy, false);
		return true;
	}
	pthread_mutex_lock(&crew.calling);
	while (k < crew.ncalls && crew.call[k] != t)
		k++;
	mine = k < crew.ncalls ? uncall(k) : NULL;
	pthread_mutex_unlock(&crew.calling);
	return mine;
}

void crew_wait(struct crew_task *t)
{
	unsigned count = 0;

	if (crew.owner != getpid() || !t->given)
		return;
	if (take_back(t)) {
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
