/* line: lines, operations and edges. See internal.h. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines ---- */

order_line order_line_open(struct order *o, enum order_line_kind kind, int device)
{
	order_line at = ORDER_NO_LINE;
	struct line *l;

	pthread_mutex_lock(&o->lock);
	/* a destroyed stream whose work the host knows to be complete: its epochs go on */
	for (uint32_t i = 1; i < o->line.n && at == ORDER_NO_LINE; i++)
		if (!o->line.at[i].open && order_all_know(o, i, o->line.at[i].epoch))
			at = i;
	if (at == ORDER_NO_LINE) {
		at = (order_line)o->line.n;
		vec_push(&o->line, ((struct line){ 0 }));
	}
	l = &o->line.at[at];
	free(l->name);
	clock2_free(&l->clock);
	*l = (struct line){ .open = true, .kind = kind, .device = device, .epoch = l->epoch };
	if (kind != ORDER_LEGACY)
		l->number = ++o->streams;
	else
		o->legacy++;
	pthread_mutex_unlock(&o->lock);
	return at;
}

void order_line_close(struct order *o, order_line line)
{
	struct line *l;

	pthread_mutex_lock(&o->lock);
	l = &o->line.at[line];
	l->open = false;
	clock2_join(&o->closed, &l->clock);
	if (l->kind == ORDER_BLOCKING)
		clock2_join(&o->closed_blocking, &l->clock);
	pthread_mutex_unlock(&o->lock);
}

void order_line_name(struct order *o, order_line line, const char *name)
{
	pthread_mutex_lock(&o->lock);
	free(o->line.at[line].name);
	o->line.at[line].name = base_strdup(name);
	pthread_mutex_unlock(&o->lock);
}

const char *order_line_text(const struct order *o, order_line line, char *to, size_t n)
{
	const struct line *l = &o->line.at[line];

	if (l->thread && o->threads > 1)
		snprintf(to, n, "host thread %u", l->number);
	else if (l->thread)
		snprintf(to, n, "the host");
	else if (l->name)
		snprintf(to, n, "%s", l->name);
	else if (l->kind == ORDER_LEGACY && l->device)
		snprintf(to, n, "the default stream of device %d", l->device);
	else if (l->kind == ORDER_LEGACY)
		snprintf(to, n, "the default stream");
	else if (!l->number)
		snprintf(to, n, "branch %u of a %s", l->branch, l->batch ? "batch" : "graph");
	else
		snprintf(to, n, "stream %u", l->number);
	return to;
}

/* What each operation that enters the line now is ordered after. */
static void enter(struct order *o, order_line line)
{
	const struct order_clock *host = &order_self(o)->clock;
	struct line *l = &o->line.at[line];

	clock2_join(&l->clock, host);
	if (l->kind == ORDER_LEGACY)
		clock2_join(&l->clock, &o->closed_blocking);
	for (uint32_t i = 1; i < o->line.n; i++) {
		const struct line *x = &o->line.at[i];

		if (x->open && x->device == l->device
			&& ((l->kind == ORDER_LEGACY && x->kind == ORDER_BLOCKING)
			|| (l->kind == ORDER_BLOCKING && x->kind == ORDER_LEGACY)))
			clock2_join(&l->clock, &x->clock);
	}
}

/* ---- operations ---- */

static struct order_call call_copy(const struct order_call *c)
{
	return (struct order_call){ .name = base_strdup(c->name ? c->name : ""),
		.kernel = c->kernel ? base_strdup(c->kernel) : NULL, .launch = c->launch,
		.stack = c->stack, .batch = c->batch, .source = c->source };
}

struct order_op *order_op_new(struct order *o, order_line line, const struct order_call *call)
{
	struct order_op *op = base_alloc(sizeof *op);
	char name[128];

	op->held = 1;
	op->line = line;
	op->call = call_copy(call);
	op->where = base_strdup(order_line_text(o, line, name, sizeof name));
	op->device = o->line.at[line].device;
	return op;
}

void order_op_free(struct order_op *op)
{
	if (op->held || op->kept)
		return;
	order_inside_free(op);
	clock2_free(&op->clock);
	clock_free(&op->seen);
	free((char *)op->call.name);
	free((char *)op->call.kernel);
	free(op->where);
	free(op);
}

void op_unref(struct order_op *op)
{
	op->kept--;
	order_op_free(op);
}

/* Gives the operation the next epoch of its line. */
static void place(struct order *o, struct order_op *op, struct order_clock *clock)
{
	struct line *l = &o->line.at[op->line];

	op->epoch = ++l->epoch;
	clock2_set(clock, op->line, op->epoch);
	op->clock = clock2_copy(clock);
	op->unrecorded = l->unrecorded;
	order_moment(o, op->line, op, "%s", op->call.kernel ? op->call.kernel : op->call.name);
	op->issued_at = progress_now();
	o->running++;
	order_self_issued(o, op);
}

struct order_op *order_issue(struct order *o, order_line line, const struct order_call *call)
{
	struct order_op *op;

	pthread_mutex_lock(&o->lock);
	enter(o, line);
	op = order_op_new(o, line, call);
	place(o, op, &o->line.at[line].clock);
	pthread_mutex_unlock(&o->lock);
	return op;
}

/* A line on which an operation with this clock can be the next one: all that the line had is before
 * it. Branches of graphs, and of batches of copies, use lines of their own, again and again. */
static order_line branch_line(struct order *o, const struct order_clock *c, int device, bool batch)
{
	struct line *l;

	for (uint32_t i = 1; i < o->line.n; i++) {
		l = &o->line.at[i];
		if (!l->open && clock_get(&c->by[ORDER_PROMISED], i) >= l->epoch && l->device == device
				&& l->batch == batch)
			return i;
	}
	o->branches++;
	vec_push(&o->line, ((struct line){ .kind = ORDER_NON_BLOCKING, .device = device,
		.branch = ++o->branch_lines, .batch = batch }));
	return (order_line)o->line.n - 1;
}

struct order_op *order_issue_node(struct order *o, const struct order_op *start,
	struct order_op *const *after, size_t nafter, const struct order_call *call)
{
	struct order_clock clock = { 0 };
	struct order_op *op;

	pthread_mutex_lock(&o->lock);
	clock2_join(&clock, &start->clock);
	for (size_t i = 0; i < nafter; i++)
		clock2_join(&clock, &after[i]->clock);
	op = order_op_new(o, start->line, call);
	op->line = branch_line(o, &clock, start->device, call->batch);
	op->graph = order_place(start);
	place(o, op, &clock);
	clock2_free(&clock);
	pthread_mutex_unlock(&o->lock);
	return op;
}

void order_join_nodes(struct order *o, struct order_op *start, struct order_op *const *node, size_t n)
{
	pthread_mutex_lock(&o->lock);
	for (size_t i = 0; i < n; i++)
		clock2_join(&start->clock, &node[i]->clock);
	clock2_join(&o->line.at[start->line].clock, &start->clock);
	pthread_mutex_unlock(&o->lock);
}

struct order_op *order_op_get(struct order *o, struct order_op *op)
{
	pthread_mutex_lock(&o->lock);
	op->held++;
	pthread_mutex_unlock(&o->lock);
	return op;
}

void order_op_put(struct order *o, struct order_op *op)
{
	if (!op)
		return;
	pthread_mutex_lock(&o->lock);
	o->running -= !--op->held;
	order_op_free(op);
	if (!o->running)
		order_settle(o);
	order_retire(o);
	pthread_mutex_unlock(&o->lock);
}

struct order_op *order_op_keep(struct order *o, struct order_op *op)
{
	pthread_mutex_lock(&o->lock);
	op->kept++;
	pthread_mutex_unlock(&o->lock);
	return op;
}

void order_op_drop(struct order *o, struct order_op *op)
{
	pthread_mutex_lock(&o->lock);
	op_unref(op);
	pthread_mutex_unlock(&o->lock);
}

void order_op_set_met(struct order_op *op, void *met)
{
	op->met = met;
}

void *order_op_met(const struct order_op *op)
{
	return op->met;
}

void order_op_beside(struct order_op *op, uint32_t number)
{
	op->beside = number;
}

uint32_t order_op_set(const struct order_op *op)
{
	return op->beside;
}

const char *order_op_kernel(const struct order_op *op)
{
	return op->call.kernel;
}

void order_op_silent(struct order_op *op)
{
	op->silent = true;
}

void order_op_launch(struct order_op *op, uint32_t launch)
{
	op->call.launch = launch;
}

bool order_op_before(const struct order_op *a, const struct order_op *b, unsigned relation)
{
	const struct order_op *x = order_op_root(a), *y = order_op_root(b);

	if (x == y)
		return a == b || order_inside(a, b) != INSIDE_UNORDERED;
	return clock_get(&y->clock.by[relation], x->line) >= x->epoch;
}

bool order_before(const struct order_op *a, const struct order_op *b, enum order_trust trust)
{
	if (a != b && order_op_root(a) == order_op_root(b))
		return order_inside(a, b) == INSIDE_BEFORE;
	return a != b && order_op_before(a, b, trust);
}

struct order_place order_place(const struct order_op *op)
{
	return (struct order_place){ op->line, op->epoch };
}

bool order_host_knows(struct order *o, struct order_place at)
{
	bool knows;

	pthread_mutex_lock(&o->lock);
	knows = order_all_know(o, at.line, at.epoch);
	pthread_mutex_unlock(&o->lock);
	return knows;
}

bool order_any_knows(struct order *o, struct order_place at, enum order_trust trust)
{
	bool knows;

	pthread_mutex_lock(&o->lock);
	knows = clock_get(&o->host.by[trust], at.line) >= at.epoch;
	pthread_mutex_unlock(&o->lock);
	return knows;
}

/* ---- edges ---- */

void order_event_free(struct order_event *e)
{
	if (e->clock)
		clock2_free(e->clock);
	free(e->clock);
	*e = (struct order_event){ 0 };
}

void order_record(struct order *o, struct order_event *e, order_line line, uint32_t stack)
{
	pthread_mutex_lock(&o->lock);
	enter(o, line);
	if (e->clock)
		clock2_free(e->clock);
	else
		e->clock = base_alloc(sizeof *e->clock);
	*e->clock = clock2_copy(&o->line.at[line].clock);
	e->line = line;
	if (!e->number)
		e->number = ++o->events;
	order_moment(o, line, NULL, "records event %u", e->number);
	e->stack = stack;
	pthread_mutex_unlock(&o->lock);
}

void order_record_op(struct order *o, struct order_event *e, const struct order_op *op, uint32_t stack)
{
	pthread_mutex_lock(&o->lock);
	if (e->clock)
		clock2_free(e->clock);
	else
		e->clock = base_alloc(sizeof *e->clock);
	*e->clock = clock2_copy(&op->clock);
	e->line = op->line;
	e->stack = stack;
	pthread_mutex_unlock(&o->lock);
}

bool order_wait_op(struct order *o, struct order_op *op, const struct order_event *e)
{
	pthread_mutex_lock(&o->lock);
	if (e->clock)
		clock2_join(&op->clock, e->clock);
	pthread_mutex_unlock(&o->lock);
	return e->clock;
}

bool order_wait(struct order *o, order_line line, const struct order_event *e, uint32_t stack)
{
	pthread_mutex_lock(&o->lock);
	enter(o, line);
	if (e->clock)
		clock2_join(&o->line.at[line].clock, e->clock);
	else
		o->line.at[line].unrecorded = stack;
	if (e->clock)
		order_moment(o, line, NULL, "waits for event %u", e->number);
	else
		order_moment(o, line, NULL, "waits for an event that was not recorded");
	pthread_mutex_unlock(&o->lock);
	return e->clock;
}

static void host_knows(struct order *o, const struct order_clock *c, enum order_trust trust)
{
	order_self_knows(o, c, trust);
	order_retire(o);
}

/* As an operation in the line that the host waits for: that of the legacy default stream is after the
 * work of the blocking streams. */
static void host_waits(struct order *o, order_line line, enum order_trust trust)
{
	char name[64];

	enter(o, line);
	order_moment(o, order_self_line(o), NULL, "waits for %s", order_line_text(o, line, name, sizeof name));
	host_knows(o, &o->line.at[line].clock, trust);
}

void order_host_waits(struct order *o, order_line line, enum order_trust trust)
{
	pthread_mutex_lock(&o->lock);
	host_waits(o, line, trust);
	pthread_mutex_unlock(&o->lock);
}

void order_host_waits_event(struct order *o, const struct order_event *e)
{
	pthread_mutex_lock(&o->lock);
	if (e->clock)
		order_moment(o, order_self_line(o), NULL, "waits for event %u", e->number);
	if (e->clock)
		host_knows(o, e->clock, ORDER_PROMISED);
	pthread_mutex_unlock(&o->lock);
}

void order_host_waits_op(struct order *o, const struct order_op *op, enum order_trust trust)
{
	pthread_mutex_lock(&o->lock);
	host_knows(o, &op->clock, trust);
	pthread_mutex_unlock(&o->lock);
}

static void waits_device(struct order *o, int device, enum order_trust trust)
{
	struct order_clock all = clock2_copy(&o->closed);

	for (uint32_t i = 0; i < o->line.n; i++)
		if (o->line.at[i].open && !o->line.at[i].thread
			&& (device < 0 || o->line.at[i].device == device))
			clock2_join(&all, &o->line.at[i].clock);
	host_knows(o, &all, trust);
	clock2_free(&all);
}

void order_host_waits_device(struct order *o, int device, enum order_trust trust)
{
	pthread_mutex_lock(&o->lock);
	order_moment(o, order_self_line(o), NULL, "waits for the device");
	waits_device(o, device, trust);
	pthread_mutex_unlock(&o->lock);
}

/* ---- the host's side of calls ---- */

enum host_effect { NOTHING, ISSUED, BEFORE, DEVICE };
static const struct { uint8_t effect[ORDER_TRUSTS]; } calls[] = {
#define CALL(id, promised, known, source) [ORDER_CALL_##id] = { { promised, known } },
#include "calls.def"
#undef CALL
};

enum order_sync order_copy(enum order_memory to, enum order_memory from, bool async)
{
	const bool in = to == ORDER_DEVICE || to == ORDER_MANAGED;
	const bool out = from == ORDER_DEVICE || from == ORDER_MANAGED;

	if (in && out)
		return async ? ORDER_CALL_COPY_ASYNC : to == ORDER_MANAGED || from == ORDER_MANAGED
			? ORDER_CALL_COPY_MANAGED : ORDER_CALL_COPY_IN_DEVICE;
	if (!in && !out)
		return async ? ORDER_CALL_COPY_ASYNC_HOST : ORDER_CALL_COPY_HOST;
	if (out && from == ORDER_DEVICE && to == ORDER_PAGEABLE)
		return async ? ORDER_CALL_COPY_ASYNC_PAGEABLE_OUT : ORDER_CALL_COPY_TO_HOST;
	if (out)
		return async ? ORDER_CALL_COPY_ASYNC : ORDER_CALL_COPY_TO_HOST;
	if (from == ORDER_PAGEABLE)
		return async ? ORDER_CALL_COPY_ASYNC_PAGEABLE_IN : ORDER_CALL_COPY_TO_DEVICE_STAGED;
	return async ? ORDER_CALL_COPY_ASYNC : ORDER_CALL_COPY_PINNED;
}

enum order_sync order_fill(enum order_memory to, bool async)
{
	if (async)
		return ORDER_CALL_FILL_ASYNC;
	return to == ORDER_PINNED ? ORDER_CALL_FILL_PINNED
		: to == ORDER_MANAGED ? ORDER_CALL_FILL_MANAGED : ORDER_CALL_FILL;
}

/* What the operation waited for: its clock without itself. */
static void knows_before(struct order *o, const struct order_op *op, enum order_trust trust)
{
	struct order_clock c = clock2_copy(&op->clock);

	for (unsigned t = 0; t < RELATIONS; t++)
		c.by[t].at[op->line]--;
	host_knows(o, &c, trust);
	clock2_free(&c);
}

void order_returned(struct order *o, enum order_sync call, int device, const struct order_op *op)
{
	pthread_mutex_lock(&o->lock);
	for (unsigned t = ORDER_TRUSTS; t-- > 0;)
		switch (calls[call].effect[t]) {
		case NOTHING:
			break;
		case ISSUED:
			if (op)
				host_knows(o, &op->clock, t);
			break;
		case BEFORE:
			if (op)
				knows_before(o, op, t);
			break;
		case DEVICE:
			waits_device(o, device, t);
			break;
		}
	pthread_mutex_unlock(&o->lock);
}

/* ---- the module ---- */

struct order *order_open(const struct order_config *c)
{
	static uint64_t ids;
	struct order *o = base_alloc(sizeof *o);

	pthread_mutex_init(&o->lock, NULL);
	o->config = *c;
	if (!o->config.most_bytes)
		o->config.most_bytes = UINT64_C(512) << 20;
	o->id = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
	order_self(o);
	return o;
}

void order_close(struct order *o)
{
	if (!o)
		return;
	map_clear(&o->map);
	for (size_t i = 0; i < o->line.n; i++) {
		free(o->line.at[i].name);
		clock2_free(&o->line.at[i].clock);
		clock2_free(&o->line.at[i].begun);
	}
	order_objects_free(o);
	vec_free(&o->line);
	o->config.report = NULL; /* the program has ended before its operations */
	o->config.unchecked = NULL;
	order_settle(o);
	order_forget_met(o);
	vec_free(&o->met);
	vec_free(&o->unseen);
	vec_free(&o->unsettled);
	clock2_free(&o->host);
	clock2_free(&o->closed);
	clock2_free(&o->closed_blocking);
	free(o->map.zone);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

size_t order_footprint(struct order *o)
{
	size_t bytes;

	pthread_mutex_lock(&o->lock);
	bytes = sizeof *o + o->map.bytes + o->line.cap * sizeof *o->line.at;
	for (size_t i = 0; i < o->line.n; i++)
		for (unsigned t = 0; t < RELATIONS; t++)
			bytes += o->line.at[i].clock.by[t].n * sizeof(uint32_t);
	pthread_mutex_unlock(&o->lock);
	return bytes;
}

bool order_wants(struct order *o)
{
	bool wants;

	pthread_mutex_lock(&o->lock);
	wants = (o->streams || o->legacy > 1 || o->branches > 1 || o->host_access || o->threads > 1 || o->accessed)
		&& !o->full;
	pthread_mutex_unlock(&o->lock);
	return wants;
}

void order_host_can_access(struct order *o)
{
	pthread_mutex_lock(&o->lock);
	o->host_access = true;
	pthread_mutex_unlock(&o->lock);
}
