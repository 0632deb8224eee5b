/* suspend: grids that are suspended on their threads.
 *
 * A grid in which no thread can go on is suspended, and others run: grids of other streams, host
 * functions, the host itself. It is resumed when something else has run, or when the host may have changed
 * memory. If nothing is left that could let it go on, that is a deadlock. */
#include "engine.h"
#include "limits.h"

static double vain_at; /* when a grid that polls in vain looked for what the host did */

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
	if (queue.busy == t) {
		queue.busy = NULL;
		queue.beside = false;
	}
	pthread_cond_broadcast(&queue.changed);
	guard_pause();
	while (t->state == TASK_SUSPENDED) {
		t->cut = leave_wanted();
		engine_step(NULL, WAIT_DONE, NULL);
	}
	guard_suspend();
	if (t->cut)
		return EXEC_GIVE_UP;
	if (t->hung)
		return EXEC_HUNG;
	return t->vain && t->tried == queue.epoch ? EXEC_TIME : EXEC_CHANGED;
}

static enum exec_resume suspend(struct task *t, enum exec_pause why, bool changed)
{
	if (changed)
		wake_suspended();
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
		u = engine_pick();
		t->state = TASK_RUNNING;
		return u == t ? NULL : u;
	}
	for (u = t->next ? t->next : queue.first; u != t; u = u->next ? u->next : queue.first)
		if (engine_may_run(u))
			return u;
	return NULL;
}

static enum exec_resume yield(struct task *t, enum exec_pause why, bool changed)
{
	struct task *next;

	if (changed)
		wake_suspended(); /* also if it goes on itself: the executor reports a change once */
	next = next_after(t);
	if (!next)
		return EXEC_AS_BEFORE;
	t->state = TASK_SUSPENDED;
	t->able = true;
	engine_dispatch(next, NULL);
	return suspend(t, why, false);
}

/* It polls in vain, but does not repeat itself: it may count, or look at the clock. Anything else that
 * can run, does. If the host might act, it waits for that or, if its accesses are not seen, polls on; if nothing
 * else will happen, its time passes. */
static enum exec_resume in_vain(struct task *t, bool changed)
{
	struct task *next;
	bool may_act;

	if (changed)
		wake_suspended();
	set_suspended(t, EXEC_PAUSE_VAIN);
	next = engine_pick();
	if (next) {
		engine_dispatch(next, NULL);
		return wait_for_turn(t);
	}
	may_act = queue.functions || host_may_act(); /* while it is suspended: reports name it */
	if (may_act && host_is_seen())
		return wait_for_turn(t);
	t->state = TASK_RUNNING;
	if (!may_act) {
		pass_time();
		return EXEC_TIME;
	}
	if (progress_seconds() - vain_at < RETRY)
		return EXEC_AS_BEFORE;
	vain_at = progress_seconds();
	queue.epoch++;
	return EXEC_CHANGED;
}

enum exec_resume engine_pause(enum exec_pause why, bool changed)
{
	struct task *t = engine_running();
	enum exec_resume how;

	if (!t)
		return why == EXEC_PAUSE_STUCK ? EXEC_HUNG : why == EXEC_PAUSE_VAIN ? EXEC_TIME
			: EXEC_AS_BEFORE;
	if (changed)
		guard_changed();
	if (why != EXEC_PAUSE_STUCK && why != EXEC_PAUSE_VAIN
		&& __atomic_load_n(&queue.n, __ATOMIC_RELAXED) <= 1)
		return EXEC_AS_BEFORE;
	pthread_mutex_lock(&queue.lock);
	how = why == EXEC_PAUSE_STUCK ? suspend(t, why, changed) : why == EXEC_PAUSE_VAIN
		? in_vain(t, changed) : yield(t, why, changed);
	pthread_mutex_unlock(&queue.lock);
	return how;
}

bool engine_alone(void)
{
	const struct task *me = engine_running();
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
