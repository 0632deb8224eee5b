/* deadlock: which operations wait for what, when nothing can run any more. */
#include "queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool task_stuck(const struct task *t)
{
	if (t->state == TASK_SUSPENDED)
		return !t->able;
	return t->state == TASK_QUEUED && !t->after.n && !t->behind.n && !op_ready(&t->op);
}

/* "kernel set in stream 3" */
static void name(const struct task *t, char *to, size_t n)
{
	static const char *const kind[] = { [OP_EMPTY] = "operation", [OP_LAUNCH] = "kernel", [OP_COPY] = "copy",
		[OP_FILL] = "fill", [OP_HOST] = "host function", [OP_LIBRARY] = "library call", [OP_RECORD] = "event",
		[OP_FREE] = "release", [OP_GRAPH] = "graph",
		[OP_WRITE] = "stream memory write", [OP_WAIT] = "stream memory wait",
		[OP_EVENT_RECORD] = "event record",
		[OP_EVENT_WAIT] = "event wait", [OP_ALLOC] = "allocation", [OP_RELEASE] = "release",
		[OP_CONDITION] = "conditional node", [OP_DEFAULTS] = "graph",
		[OP_ENVIRONMENT] = "graph" };
	const struct stream *s = t->stream;
	char *kernel = t->op.kind == OP_LAUNCH && t->op.launch.func
		? demangle(t->op.launch.func->name, NAME_BARE) : NULL;
	char stream[40];

	if (s == stream_legacy(s->device))
		snprintf(stream, sizeof stream, "the default stream");
	else if (s->per_thread)
		snprintf(stream, sizeof stream, "the per-thread default stream");
	else
		snprintf(stream, sizeof stream, "stream %llu", s->id);
	snprintf(to, n, "%s%.80s in %s", kernel ? "kernel " : "", kernel ? kernel : kind[t->op.kind],
		stream);
	free(kernel);
}

/* The first stuck task that it waits for, directly or by others; NULL: none. */
static const struct task *waits_for(const struct task *t)
{
	const struct task *on = NULL;

	if (task_stuck(t))
		return t;
	for (size_t i = 0; i < t->after.n && !on; i++)
		if (t->after.at[i]->state != TASK_DONE)
			on = waits_for(t->after.at[i]);
	return on;
}

/* Can it change what a grid waits for? */
static bool may_help(const struct task *t)
{
	return t->op.kind == OP_LAUNCH || t->op.kind == OP_HOST || t->op.kind == OP_WRITE;
}

void deadlock_report(bool certain, double seconds)
{
	enum { SHOWN = 3 };
	struct consan_stuck stuck[SHOWN];
	char actor[SHOWN][160], other[160], behind[160];
	struct text waits = { 0 };
	size_t n = 0, all = 0, queued = 0;

	for (struct task *t = queue.first; t; t = t->next) {
		if (!task_stuck(t))
			continue;
		if (all++ >= SHOWN)
			continue;
		name(t, actor[n], sizeof actor[n]);
		text_printf(&waits, "%s%s", n ? ", " : "", actor[n]);
		caller_set(t->from);
		stuck[n] = (struct consan_stuck){ .actor = actor[n], .stack = caller_stack(),
			.kernel = t->op.kind == OP_LAUNCH && t->op.launch.func ? t->op.launch.func->name : "" };
		n++;
	}
	caller_set(engine_running() ? engine_running()->from : NULL);
	if (all > n)
		text_printf(&waits, " and %zu more", all - n);
	text_printf(&waits, all == 1 ? " waits for memory to change" : " wait for memory to change");
	for (struct task *t = queue.first; t; t = t->next) {
		const struct task *on = task_stuck(t) || !may_help(t) ? NULL : waits_for(t);

		if (!on || queued++)
			continue;
		name(t, other, sizeof other);
		name(on, behind, sizeof behind);
		text_printf(&waits, "; %s cannot start before %s has ended", other, behind);
	}
	if (queue.waiting)
		text_printf(&waits, "; the host waits for the device");
	/* of a single grid, the checker reports the hang */
	if (certain && (all > 1 || queued || (n && !*stuck[0].kernel)))
		consan_deadlock(device_session(), "CS1020", stuck, n, waits.at, "");
	if (!certain && all) {
		consan_deadlock(device_session(), "CS1021", stuck, n, waits.at, "");
		fprintf(stderr, "consan: no progress for %.0f s: %s; other threads or processes may end this "
			"(--timeout=SECONDS limits it)\n", seconds, waits.at);
	}
	text_free(&waits);
}
