/* operations: races between operations (libconsan/order) become findings of the session. */
#include "gpu_parts.h"
#include "internal.h"

#include "libconsan/exec/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "kernel saxpy in stream 2", "cudaMemcpyAsync in the default stream", "the host" */
static void name_actor(const struct order_side *s, struct finding_side *to)
{
	char *kernel = s->call.kernel ? demangle(s->call.kernel, NAME_BARE) : NULL;

	if (s->host)
		snprintf(to->actor, sizeof to->actor, "the host");
	else
		snprintf(to->actor, sizeof to->actor, "%s%.90s in %.50s", kernel ? "kernel " : "",
			kernel ? kernel : s->call.name, s->line);
	free(kernel);
}

static struct finding_side side_of(const struct order_report *r, const struct order_side *s)
{
	struct finding_side side = { .site = s->site ? s->site : s->call.stack, .host = !s->site,
		.call = s->call.stack, .lane = -1, .space = SP_GLOBAL, .addr = r->addr,
		.bytes = r->bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)r->bytes };
	struct exec_mem m;

	snprintf(side.what, sizeof side.what, "%s", s->what);
	snprintf(side.api, sizeof side.api, "%s", s->call.name);
	name_actor(s, &side);
	if (exec_mem_find(r->addr, &m)) {
		side.buffer = m.at;
		side.buffer_bytes = m.bytes;
	}
	return side;
}

/* Rows "LINE\tMARK\tTEXT\n", as in finding.timeline. */
static void add_timeline(const struct order_report *r, struct finding *f)
{
	size_t n = 0;

	for (size_t i = 0; i < r->nrows; i++) {
		const struct order_row *x = &r->row[i];
		char *name = x->kernel ? demangle(x->text, NAME_BARE) : NULL, one[200];
		const int bytes = snprintf(one, sizeof one, "%.60s\t%s\t%.100s\n", x->line,
			x->mark == ORDER_NOW ? "later" : x->mark == ORDER_OLD ? "earlier" : "",
			name ? name : x->text);

		free(name);
		if (n + (size_t)bytes >= sizeof f->timeline)
			break;
		memcpy(f->timeline + n, one, (size_t)bytes + 1);
		n += (size_t)bytes;
	}
}

static void on_report(void *user, const struct order_report *r)
{
	const unsigned rule = rule_by_code(r->rule);
	struct finding f = { .rule = rule, .severity = rule_get(rule)->severity, .nsides = 2, .seen = 1 };
	struct consan *c = user;

	finding_set_kernel(f.kernel, r->now.call.kernel ? r->now.call.kernel : r->old.call.kernel
		? r->old.call.kernel : "");
	f.launch = r->now.call.kernel ? r->now.call.launch : r->old.call.launch;
	f.side[0] = side_of(r, &r->now);
	f.side[1] = side_of(r, &r->old);
	snprintf(f.edge, sizeof f.edge, "%s", r->edge);
	snprintf(f.hint, sizeof f.hint, "%s", r->hint);
	add_timeline(r, &f);
	session_take(c, &f);
}

void consan_operations_race(struct consan *c, const struct order_report *r)
{
	on_report(c, r);
}

static void on_unchecked(void *user, const char *why)
{
	consan_remark(user, REMARK_NOT_SEEN, why);
}

struct order *consan_order(struct consan *c)
{
	const struct order_config config = { .report = on_report, .unchecked = on_unchecked, .user = c,
		.met = met_orders, .retired = met_retired, .documented = c->policy.documented_order,
		.threads = c->policy.host_threads };

	struct order *o = __atomic_load_n(&c->order, __ATOMIC_ACQUIRE);

	if (o)
		return o;
	pthread_mutex_lock(&c->lock);
	if (!c->order)
		__atomic_store_n(&c->order, order_open(&config), __ATOMIC_RELEASE);
	pthread_mutex_unlock(&c->lock);
	return c->order;
}

/* ---- the accesses of a grid ---- */

struct ranges {
	struct met_op *met;
	VEC(struct order_range) all;
	const struct gpu_launch *gpu;
	uint64_t at, bytes;        /* the allocation of the previous one */
	bool shared;               /* other operations can name it */
};

static bool find_shared(struct ranges *to, uint64_t addr)
{
	struct exec_mem m = { 0 };
	bool shared;

	if (to->gpu && to->gpu->named)
		return to->gpu->named(to->gpu->user, addr, &to->at, &to->bytes);
	shared = exec_mem_find(addr, &m) && !exec_in_heap(addr);
	to->at = m.at;
	to->bytes = m.bytes;
	return shared;
}

/* Not memory of the device heap, which the heap hands from one kernel to the next, nor what only this
 * launch had. */
static bool is_shared(struct ranges *to, uint64_t addr)
{
	if (addr - to->at >= to->bytes) {
		to->bytes = 0;
		to->shared = find_shared(to, addr);
	}
	return to->shared;
}

static void on_range(void *user, const struct check_range *r)
{
	struct ranges *to = user;

	if (!is_shared(to, r->addr))
		return;
	vec_push(&to->all, ((struct order_range){ .addr = r->addr, .bytes = r->bytes, .site = r->site,
		.flags = (r->write ? ORDER_WRITE : 0) | (r->strong ? ORDER_STRONG : 0)
			| (r->system ? ORDER_SYSTEM : 0) | (r->observes ? ORDER_OBSERVES : 0),
		.part = met_part(to->met, &r->part) }));
}

void session_launches_end(struct consan *c)
{
	while (c->launched.n)
		order_op_drop(c->order, c->launched.at[--c->launched.n].op);
}

/* They are in ascending order of their numbers. */
struct order_op *session_launched(const struct consan *c, uint32_t launch)
{
	size_t from = 0, to = c->launched.n;

	while (from < to) {
		const size_t i = (from + to) / 2;

		if (c->launched.at[i].id == launch)
			return c->launched.at[i].op;
		if (c->launched.at[i].id < launch)
			from = i + 1;
		else
			to = i;
	}
	return NULL;
}

static bool is_before(void *user, uint32_t first, uint32_t then)
{
	const struct order_op *a = session_launched(user, first), *b = session_launched(user, then);

	return !a || !b || order_before(a, b, ORDER_PROMISED);
}

/* A grid, and those that it launches, are compared thread by thread, which needs one set of grids. */
static void check_parent(struct consan *c, const struct order_op *op, uint32_t number)
{
	const struct order_op *in = order_op_in(op);
	char why[512];

	while (in && !order_op_kernel(in)) /* a graph that it launches */
		in = order_op_in(in);
	if (!in || !order_op_kernel(in) || order_before(in, op, ORDER_PROMISED)
		|| (number && number == order_op_set(in)))
		return;
	snprintf(why, sizeof why, "races between kernel %s and what it launches (%s): their accesses are not "
		"compared", order_op_kernel(in), order_op_kernel(op));
	consan_remark(c, REMARK_NOT_SEEN, why);
}

/* In its place: launches that ran at the same time are checked in an order that differs from that of their
 * numbers. */
static void keep_launched(struct consan *c, uint32_t id, struct order_op *op)
{
	size_t i;

	vec_push(&c->launched, ((struct launched){ 0 }));
	for (i = c->launched.n - 1; i > 0 && c->launched.at[i - 1].id > id; i--)
		c->launched.at[i] = c->launched.at[i - 1];
	c->launched.at[i] = (struct launched){ id, order_op_keep(c->order, op) };
}

/* A set of grids begins: the launches of earlier ones are not asked for any more. */
static void forget_others(struct consan *c, uint32_t id)
{
	struct launched own = { 0 };

	for (size_t i = 0; i < c->launched.n; i++)
		if (c->launched.at[i].id == id)
			own = c->launched.at[i];
		else
			order_op_drop(c->order, c->launched.at[i].op);
	c->launched.n = 0;
	vec_push(&c->launched, own);
}

/* Opens the check of a launch, which may run beside earlier ones. */
struct check *session_check(struct consan *c, const struct check_config *of, struct order_op *op)
{
	struct check_config config = *of;
	struct check *check;
	uint32_t number;

	if (!op)
		return check_open(of);
	config.before = is_before;
	config.host_race = host_race;
	host_begins(c, &config, op);
	keep_launched(c, of->launch.id, op);
	check = check_open(&config);
	number = check_beside(check);
	order_op_beside(op, number);
	if (of->launch.launched)
		check_parent(c, op, number);
	if (number && number != c->beside)
		forget_others(c, of->launch.id);
	c->beside = number ? number : c->beside;
	return check;
}

void gpu_note_operations(struct consan *c, bool emulated)
{
	const bool global = gpu_global(c);
	char text[500];

	if (!c->order || !order_wants(c->order) || (emulated && global)
			|| __atomic_exchange_n(&c->noted_operations, true, __ATOMIC_ACQ_REL))
		return;
	snprintf(text, sizeof text, "races between operations: copies, fills, releases%s are compared%s%s",
		global ? " and what recorded kernels access in global memory" : "",
		global ? "" : "; what kernels access in global memory is not recorded without --gpu-global",
		emulated ? "" : "; what host code accesses is not recorded by --backend=gpu, which lets "
		"launches run one after the other unless one records nothing for a second");
	consan_remark(c, REMARK_NOTE, text);
}

void session_operation(struct consan *c, struct order_op *op, struct check *check, uint32_t launch,
	const struct gpu_launch *gpu, bool screened)
{
	struct ranges ranges = { .gpu = gpu };

	if (!op || !c->order || !order_wants(c->order))
		return;
	order_op_launch(op, launch);
	if (screened && !gpu->edges) { /* nothing was to be compared with when it was screened */
		consan_remark(c, REMARK_NOT_SEEN, "races between operations: what a kernel accessed while the "
			"program began to run several operations at the same time");
		return;
	}
	ranges.met = met_begin(c, op, check);
	if (!gpu && check_silent(check))
		order_op_silent(op);
	if (screened)
		gpu_screen_accesses(gpu, on_range, &ranges);
	else
		check_accesses(check, on_range, &ranges);
	if (gpu && gpu->accessed)
		gpu->accessed(gpu->user, ranges.all.at, ranges.all.n);
	else
		order_accesses(c->order, op, ranges.all.at, ranges.all.n);
	vec_free(&ranges.all);
}
