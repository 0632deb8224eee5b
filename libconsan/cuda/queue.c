/* queue: see queue.h. Tasks, and what each of them depends on. */
#include "device_runtime.h"

#include <stdlib.h>
#include <string.h>

struct queue queue = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* ---- tasks ---- */

struct task *task_get(struct task *t)
{
	if (t)
		t->refs++;
	return t;
}

static void drop_all(struct task **at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		task_put(at[i]);
}

void task_put(struct task *t)
{
	if (!t || --t->refs)
		return;
	drop_all(t->after.at, t->after.n);
	drop_all(t->behind.at, t->behind.n);
	vec_free(&t->after);
	vec_free(&t->behind);
	caller_put(t->from);
	conditions_put(t->values);
	task_put(t->parent);
	free(t);
}

static void depend(struct task *t, struct task *on)
{
	if (on && on->state != TASK_DONE)
		vec_push(&t->after, task_get(on));
}

/* Later tasks of the stream need not look at it any more. */
static void forget_done(struct task **t)
{
	if (!*t || (*t)->state != TASK_DONE)
		return;
	task_put(*t);
	*t = NULL;
}

bool task_ready(struct task *t)
{
	while (t->after.n && t->after.at[t->after.n - 1]->state == TASK_DONE)
		task_put(t->after.at[--t->after.n]);
	while (t->behind.n && (t->behind.at[t->behind.n - 1]->started
			|| t->behind.at[t->behind.n - 1]->state == TASK_DONE))
		task_put(t->behind.at[--t->behind.n]);
	return !t->after.n && !t->behind.n;
}

/* ---- streams ---- */

struct each { struct task *t; struct stream *legacy; };

static void depend_on_stream(void *value, void *user)
{
	struct each *e = user;
	struct stream *s = value;

	forget_done(&s->tail);
	if (s->device == e->legacy->device && s != e->legacy && !(s->flags & cudaStreamNonBlocking))
		depend(e->t, s->tail);
}

static void depend_on_orphans(struct task *t, int device)
{
	size_t kept = 0;

	for (size_t i = 0; i < queue.orphan.n; i++) {
		struct task *u = queue.orphan.at[i];

		if (u->state == TASK_DONE) {
			task_put(u);
			continue;
		}
		queue.orphan.at[kept++] = u;
		if (u->stream->device == device)
			depend(t, u);
	}
	queue.orphan.n = kept;
}

/* The legacy default stream waits for all blocking streams, and these wait for it (CUDA Programming
 * Guide, "Legacy Default Stream"). */
static void depend_by_default(struct task *t, struct stream *s)
{
	struct stream *legacy = stream_legacy(s->device);

	if (s == legacy) {
		handle_each(HANDLE_STREAM, depend_on_stream, &(struct each){ t, legacy });
		depend_on_orphans(t, s->device);
	} else if (!(s->flags & cudaStreamNonBlocking)) {
		forget_done(&legacy->tail);
		depend(t, legacy->tail);
	}
}

void stream_get(struct stream *s)
{
	s->refs++;
}

void stream_put(struct stream *s)
{
	if (--s->refs)
		return;
	task_put(s->tail);
	free(s);
}

void stream_orphan(struct stream *s)
{
	forget_done(&s->tail);
	if (s->tail && !(s->flags & cudaStreamNonBlocking))
		vec_push(&queue.orphan, task_get(s->tail));
	stream_put(s);
}

/* ---- the queue ---- */

static void append(struct task *t)
{
	t->prev = queue.last;
	*(queue.last ? &queue.last->next : &queue.first) = t;
	queue.last = t;
	queue.n++;
	queue.bytes += op_bytes(&t->op);
}

static void unlink_task(struct task *t)
{
	*(t->prev ? &t->prev->next : &queue.first) = t->next;
	*(t->next ? &t->next->prev : &queue.last) = t->prev;
	t->next = t->prev = NULL;
	queue.n--;
}

/* A task outside of the order of the stream, for a node of a graph. */
struct task *queue_add_after(struct stream *s, struct op *op, struct caller *from,
	struct task *const *after, size_t n)
{
	struct task *t = base_alloc(sizeof *t);

	*t = (struct task){ .op = *op, .number = ++queue.issued, .refs = 2, .stream = s };
	op->kind = OP_EMPTY;
	stream_get(s);
	for (size_t i = 0; i < n; i++)
		depend(t, after[i]);
	t->from = from;
	if (from)
		from->refs++;
	t->counted = t->op.kind == OP_LAUNCH && t->op.launch.func
		&& consan_issued(device_session(), t->op.launch.func->kernel);
	append(t);
	return t;
}

struct task *queue_add_inside(struct task *parent, struct op *op, struct task *const *after, size_t n)
{
	struct task *t = queue_add_after(parent->stream, op, parent->from, after, n);

	t->parent = task_get(parent);
	t->needed = parent->needed;
	t->waiter = parent->waiter;
	parent->children++;
	return t;
}

struct task *queue_add(struct stream *s, struct op *op, struct caller *from, struct task *extra)
{
	struct task *t;

	forget_done(&s->tail);
	t = queue_add_after(s, op, from, (struct task *[]){ s->tail, extra }, 2);
	depend_by_default(t, s);
	task_put(s->tail);
	s->tail = task_get(t);
	return t;
}

static void done(struct task *t)
{
	t->state = TASK_DONE;
	t->started = true;
	t->done_at = progress_seconds();
	queue.bytes -= op_bytes(&t->op);
	if (t->counted)
		consan_over(device_session());
	device_grid_free(t);
	order_op_put(hb(), t->round);
	order_op_put(hb(), t->order);
	t->order = t->round = NULL;
	op_free(&t->op);
	drop_all(t->after.at, t->after.n);
	drop_all(t->behind.at, t->behind.n);
	t->after.n = t->behind.n = 0;
	unlink_task(t);
	stream_put(t->stream);
	t->stream = NULL;
	task_put(t);
}

void queue_ended(struct task *t)
{
	t->state = TASK_ENDED;
	t->started = true;
	while (t && t->state == TASK_ENDED && !t->children && !inside_next(t)) {
		struct task *parent = t->parent;

		if (parent)
			parent->children--;
		done(t); /* the parent is not: it is in the queue */
		t = parent;
	}
}

/* ---- where a task was issued ---- */

struct caller *caller_here(void)
{
	enum { MOST = 64 };
	void *pc[MOST];
	const int n = consan_host_frames(device_session(), pc, MOST);
	struct caller *o;

	if (!n)
		return NULL;
	o = base_alloc(sizeof *o + (size_t)n * sizeof *pc);
	*o = (struct caller){ .refs = 1, .python = consan_python_frames(), .n = (unsigned)n };
	memcpy(o->pc, pc, (size_t)n * sizeof *pc);
	return o;
}

void caller_put(struct caller *o)
{
	if (!o || --o->refs)
		return;
	free(o->python);
	free(o);
}

static _Thread_local const struct caller *caller_now;

void caller_set(const struct caller *o)
{
	caller_now = o;
}

uint32_t caller_stack(void)
{
	return caller_stack_of(caller_now);
}

uint32_t caller_stack_of(const struct caller *o)
{
	const uint32_t python = o && o->python ? consan_python_stack_of(o->python) : 0;

	return python ? python : o ? consan_stack_of(o->pc, (int)o->n, NULL) : 0;
}
