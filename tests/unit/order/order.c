/* Tests of libconsan/order: random programs of the host API against a model that keeps every operation
 * and every edge, and searches paths. */
#include "libconsan/base/base.h"
#include "libconsan/order/order.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 4, EVENTS = 3, CELLS = 12, OPS = 400, CELL = 24 };

/* ---- the model: a graph of nodes; an edge is from an earlier node to a later one ---- */

struct model {
	size_t n;                /* nodes */
	bool before[OPS][OPS];   /* before[a][b]: there is a path */
	int last[STREAMS];       /* node, or -1; stream 0 is the legacy default stream */
	enum order_line_kind kind[STREAMS];
	int event[EVENTS];       /* node that was recorded, or -1 */
	int host;                /* the newest node of the host */
	struct { int node; bool write, strong; } at[CELLS][OPS];
	size_t used[CELLS];
};

static void edge(struct model *m, int from, int to)
{
	if (from < 0)
		return;
	m->before[from][to] = true;
	for (size_t k = 0; k < m->n; k++)
		m->before[k][to] |= m->before[k][from];
}

/* A node of a stream, which is after the host and what the default stream orders. */
static int in_stream(struct model *m, int s)
{
	const int node = (int)m->n++;

	edge(m, m->last[s], node);
	edge(m, m->host, node);
	for (int k = 0; k < STREAMS; k++)
		if ((m->kind[s] == ORDER_LEGACY && m->kind[k] == ORDER_BLOCKING)
			|| (m->kind[s] == ORDER_BLOCKING && m->kind[k] == ORDER_LEGACY))
			edge(m, m->last[k], node);
	m->last[s] = node;
	return node;
}

static void host_waits(struct model *m, int for_node)
{
	const int node = (int)m->n++;

	edge(m, m->host, node);
	edge(m, for_node, node);
	m->host = node;
}

/* Does the access conflict with one that has no path to it? Records it. */
static bool races(struct model *m, int node, int cell, bool write, bool strong)
{
	bool any = false;

	for (size_t i = 0; i < m->used[cell]; i++) {
		const int x = m->at[cell][i].node;

		any |= x != node && !m->before[x][node] && (write || m->at[cell][i].write)
			&& !(strong && m->at[cell][i].strong);
	}
	m->at[cell][m->used[cell]].node = node;
	m->at[cell][m->used[cell]].write = write;
	m->at[cell][m->used[cell]++].strong = strong;
	return any;
}

/* ---- both ---- */

static uint64_t rng;

static unsigned draw(unsigned n)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(rng >> 33) % n;
}

static bool reported[CELLS];

static void on_report(void *user, const struct order_report *r)
{
	(void)user;
	for (uint64_t at = r->addr; at < r->addr + r->bytes; at++)
		reported[(at - 65536 + 100) / CELL] = true;
}

/* The cells lie across the boundary of two zones of the map. */
static struct order_range cell(unsigned c, bool write, bool strong)
{
	return (struct order_range){ .addr = 65536 - 100 + (uint64_t)c * CELL, .bytes = CELL,
		.flags = (write ? ORDER_WRITE : 0) | (strong ? ORDER_STRONG : 0) };
}

static void access_cells(struct model *m, struct order *o, struct order_op *op, int node)
{
	struct order_range r[3];
	bool expect[CELLS] = { false }, touched[CELLS] = { false };
	size_t n = 0;

	memset(reported, 0, sizeof reported);
	for (unsigned k = draw(3) + 1; k; k--) {
		const unsigned c = draw(CELLS);
		const bool write = draw(2), strong = !draw(4);

		if (touched[c])
			continue;
		touched[c] = true;
		r[n++] = cell(c, write, strong);
		expect[c] = races(m, node, (int)c, write, strong);
	}
	/* one by one: of parts with one history only the first is reported */
	for (size_t i = 0; i < n; i++)
		order_accesses(o, op, &r[i], 1);
	for (unsigned c = 0; c < CELLS; c++)
		cr_assert_eq(expect[c], reported[c], "cell %u, node %d: %d", c, node, reported[c]);
}

/* Once a race was reported, what is remembered of the bytes is up to the module: forget them. */
static void forget_races(struct model *m, struct order *o)
{
	for (unsigned c = 0; c < CELLS; c++)
		if (reported[c]) {
			order_forget(o, cell(c, true, false).addr, CELL);
			m->used[c] = 0;
		}
}

static void run(uint64_t seed)
{
	static const enum order_line_kind kinds[] = { ORDER_BLOCKING, ORDER_NON_BLOCKING };
	const struct order_config config = { .report = on_report };
	const struct order_call call = { .name = "op" };
	static struct model m;
	struct order *o = order_open(&config);
	struct order_event event[EVENTS] = { { 0 } };
	order_line line[STREAMS];

	rng = seed * 77 + 5;
	memset(&m, 0, sizeof m);
	m.host = -1;
	for (unsigned s = 0; s < STREAMS; s++) {
		m.kind[s] = s ? kinds[draw(2)] : ORDER_LEGACY;
		m.last[s] = -1;
		line[s] = order_line_open(o, m.kind[s], 0);
	}
	for (unsigned e = 0; e < EVENTS; e++)
		m.event[e] = -1;
	while (m.n + STREAMS + 1 < OPS) {
		const unsigned s = draw(STREAMS), e = draw(EVENTS);
		struct order_op *op;
		int node;

		switch (draw(9)) {
		default:
			op = order_issue(o, line[s], &call);
			node = in_stream(&m, (int)s);
			access_cells(&m, o, op, node);
			forget_races(&m, o);
			if (!draw(6)) {
				order_host_waits_op(o, op, ORDER_PROMISED);
				host_waits(&m, node);
			}
			order_op_put(o, op);
			break;
		case 4:
			order_record(o, &event[e], line[s], 0);
			m.event[e] = in_stream(&m, (int)s);
			break;
		case 5:
		case 6:
			cr_assert_eq(order_wait(o, line[s], &event[e], 0), m.event[e] >= 0);
			edge(&m, m.event[e], in_stream(&m, (int)s));
			break;
		case 7:
			if (draw(3)) {
				order_host_waits_event(o, &event[e]);
				host_waits(&m, m.event[e]);
			} else {
				order_host_waits(o, line[s], ORDER_PROMISED);
				host_waits(&m, in_stream(&m, (int)s));
			}
			break;
		case 8:
			if (draw(10))
				break;
			order_host_waits_device(o, 0, ORDER_PROMISED);
			for (unsigned k = 0; k < STREAMS; k++)
				host_waits(&m, m.last[k]);
			break;
		}
	}
	for (unsigned e = 0; e < EVENTS; e++)
		order_event_free(&event[e]);
	order_close(o);
}

Test(order, agrees_with_paths)
{
	for (uint64_t seed = 0; seed < 400; seed++)
		run(seed);
}

/* ---- single rules ---- */

static char rule[16];

static void keep_rule(void *user, const struct order_report *r)
{
	(void)user;
	strcpy(rule, r->rule);
}

static const struct order_host alone;

static uint32_t no_stack(void)
{
	return 0;
}

/* ---- threads of the host ---- */

/* Two threads: the first one writes in stream 0 and waits; the second one reads in stream 1, and begins
 * its call before the first one waits (early), or after. release: the first one releases an object, which
 * the second one acquires. */
struct two { struct order *o; order_line line[2]; bool early, release, same; pthread_barrier_t begun, done; };

static const struct order_range bytes_written = { .addr = 4096, .bytes = 64, .flags = ORDER_WRITE };
static const struct order_range bytes_read = { .addr = 4096, .bytes = 64 };
static const struct order_call two_call = { .name = "op" };

static void *second_thread(void *user)
{
	struct two *t = user;
	struct order_op *op;

	if (t->early)
		order_begin(t->o);
	pthread_barrier_wait(&t->begun);
	pthread_barrier_wait(&t->done);
	if (t->release)
		order_acquire(t->o, 77);
	op = order_issue(t->o, t->line[!t->same], &two_call);
	order_accesses(t->o, op, &bytes_read, 1);
	order_op_put(t->o, op);
	order_thread_ends(t->o);
	return NULL;
}

static const char *with_threads(bool threads, bool early, bool release, bool same)
{
	const struct order_config config = { .report = keep_rule, .threads = threads };
	struct two t = { .o = order_open(&config), .early = early, .release = release, .same = same };
	struct order_op *op;
	pthread_t second;

	*rule = 0;
	pthread_barrier_init(&t.begun, NULL, 2);
	pthread_barrier_init(&t.done, NULL, 2);
	for (int i = 0; i < 2; i++)
		t.line[i] = order_line_open(t.o, ORDER_NON_BLOCKING, 0);
	cr_assert_eq(pthread_create(&second, NULL, second_thread, &t), 0);
	pthread_barrier_wait(&t.begun);
	op = order_issue(t.o, t.line[0], &two_call);
	order_accesses(t.o, op, &bytes_written, 1);
	order_op_put(t.o, op);
	order_host_waits(t.o, t.line[0], ORDER_PROMISED);
	if (release)
		order_release(t.o, 77);
	pthread_barrier_wait(&t.done);
	pthread_join(second, NULL);
	order_close(t.o);
	return rule;
}

Test(order, threads)
{
	/* later in time is after, unless the call had begun before */
	cr_expect_str_eq(with_threads(false, false, false, false), "");
	cr_expect_str_eq(with_threads(false, true, false, false), "CS1002");
	/* in one stream, too, only with config.threads */
	cr_expect_str_eq(with_threads(false, true, false, true), "");
	cr_expect_str_eq(with_threads(true, false, false, false), "CS1010");
	cr_expect_str_eq(with_threads(true, false, true, false), "");
	cr_expect_str_eq(with_threads(true, false, false, true), "CS1010");
	cr_expect_str_eq(with_threads(true, false, true, true), "");
}

/* Memory that is released while another thread issues what uses it */
static void *issues(void *user)
{
	struct two *t = user;
	struct order_op *op = order_issue(t->o, t->line[0], &two_call);

	order_accesses(t->o, op, &bytes_written, 1);
	order_op_put(t->o, op);
	return NULL;
}

static uint32_t no_call(const char **name)
{
	(void)name;
	return 0;
}

Test(order, release_by_a_thread)
{
	for (int early = 0; early < 2; early++) {
		const struct order_config config = { .report = keep_rule };
		struct two t = { .o = order_open(&config) };
		pthread_t other;

		*rule = 0;
		t.line[0] = order_line_open(t.o, ORDER_NON_BLOCKING, 0);
		if (early)
			order_begin(t.o);
		cr_assert_eq(pthread_create(&other, NULL, issues, &t), 0);
		pthread_join(other, NULL);
		if (!early)
			order_begin(t.o);
		order_host_waits_device(t.o, -1, ORDER_PROMISED);
		order_host_frees(t.o, 4096, 64, no_call);
		order_end(t.o);
		cr_expect_str_eq(rule, early ? "CS1004" : "");
		order_close(t.o);
	}
}

/* What the function of an operation could tell other threads */
Test(order, host_function)
{
	for (int ran = 0; ran < 2; ran++) {
		struct two t = { .o = order_open(&(struct order_config){ .report = keep_rule }) };
		struct order_op *op, *function;

		*rule = 0;
		for (int i = 0; i < 2; i++)
			t.line[i] = order_line_open(t.o, ORDER_NON_BLOCKING, 0);
		op = order_issue(t.o, t.line[0], &two_call);
		order_accesses(t.o, op, &bytes_written, 1);
		function = order_issue(t.o, t.line[0], &two_call);
		if (ran)
			order_host_runs(t.o, function);
		order_op_put(t.o, function);
		order_op_put(t.o, op);
		op = order_issue(t.o, t.line[1], &two_call);
		order_accesses(t.o, op, &bytes_read, 1);
		order_op_put(t.o, op);
		cr_expect_str_eq(rule, ran ? "" : "CS1002");
		order_close(t.o);
	}
}

static struct order *open_it(bool documented)
{
	const struct order_config config = { .report = keep_rule, .documented = documented };

	*rule = 0;
	return order_open(&config);
}

Test(order, known_edges_are_reported_on_request)
{
	const struct order_range all = { 4096, 64, 0, ORDER_WRITE, 0 };
	const struct order_call call = { .name = "op" };

	for (int documented = 0; documented < 2; documented++) {
		struct order *o = open_it(documented);
		order_line legacy = order_line_open(o, ORDER_LEGACY, 0);
		order_line s = order_line_open(o, ORDER_NON_BLOCKING, 0);
		struct order_op *a = order_issue(o, legacy, &call), *b;

		order_accesses(o, a, &all, 1);
		order_returned(o, order_copy(ORDER_DEVICE, ORDER_PAGEABLE, false), 0, a);
		order_op_put(o, a);
		b = order_issue(o, s, &call);
		order_accesses(o, b, &all, 1);
		order_op_put(o, b);
		cr_expect_str_eq(rule, documented ? "CS1009" : "");
		order_close(o);
	}
}

/* A grid that writes data and then a flag, and the host that reads the flag and then the data. */
Test(order, the_host_may_synchronize_by_memory)
{
	const struct order_range did[] = { { 4096, 64, 0, ORDER_WRITE, 0 },
		{ 8192, 4, 0, ORDER_WRITE | ORDER_STRONG | ORDER_SYSTEM, 0 } };
	const struct order_range data = { 4100, 4, 0, 0, 0 }, flag = { 8192, 4, 0, 0, 0 };
	const struct order_call call = { .name = "kernel", .kernel = "k" };

	for (int polled = 0; polled < 2; polled++)
		for (int silent = 0; silent < 2; silent++) {
			const bool found = !polled || silent; /* it releases nothing by the flag */
			struct order *o = open_it(false);
			struct order_op *a = order_issue(o, order_line_open(o, ORDER_BLOCKING, 0), &call);

			if (silent)
				order_op_silent(a);
			order_accesses(o, a, did, 2);
			order_op_put(o, a);
			if (polled)
				cr_expect_not(order_host_access(o, &flag, &alone, no_stack));
			cr_expect_eq(order_host_access(o, &data, &alone, no_stack), found);
			cr_expect_str_eq(rule, found ? "CS1003" : "");
			order_close(o);
		}
}

static unsigned not_checked;

static void count_unchecked(void *user, const char *why)
{
	(void)user, (void)why;
	not_checked++;
}

/* The same where accesses of the host are not reported: an operation writes data, before or after the one that
 * writes the host's flag; another stream's operation reads the data. */
Test(order, the_host_may_synchronize_unseen)
{
	const struct order_range write = { 4096, 64, 0, ORDER_WRITE, 0 }, read = { 4096, 64, 0, 0, 0 };
	const struct order_range flag = { 8192, 4, 0, ORDER_WRITE | ORDER_STRONG | ORDER_SYSTEM, 0 };
	const struct order_call call = { .name = "op" };

	for (int late = 0; late < 2; late++) {
		struct order *o = order_open(&(struct order_config){ .report = keep_rule,
			.unchecked = count_unchecked });
		order_line s = order_line_open(o, ORDER_NON_BLOCKING, 0);
		order_line t = order_line_open(o, ORDER_NON_BLOCKING, 0);
		struct order_op *op;

		*rule = 0;
		not_checked = 0;
		for (int k = 0; k < 2; k++) {
			op = order_issue(o, s, &call);
			if (k != late)
				order_host_unseen(o, op, true, false);
			order_accesses(o, op, k == late ? &write : &flag, 1);
			order_op_put(o, op);
		}
		op = order_issue(o, t, &call);
		order_accesses(o, op, &read, 1);
		order_op_put(o, op);
		cr_expect_str_eq(rule, late ? "CS1002" : "");
		cr_expect_eq(not_checked, late ? 0u : 1u);
		order_close(o);
	}
}

/* Grids that are checked together tell their accesses after operations that they are ordered before. */
Test(order, told_late)
{
	const struct order_range write = { 4096, 64, 0, ORDER_WRITE, 0 };
	const struct order_call call = { .name = "op" };

	for (int ordered = 0; ordered < 2; ordered++) {
		struct order *o = open_it(false);
		order_line s = order_line_open(o, ORDER_NON_BLOCKING, 0);
		order_line t = order_line_open(o, ORDER_NON_BLOCKING, 0);
		struct order_op *a = order_issue(o, s, &call), *b = order_issue(o, ordered ? s : t, &call);

		order_accesses(o, b, &write, 1);
		order_accesses(o, a, &write, 1);
		cr_expect_str_eq(rule, ordered ? "" : "CS1001");
		order_op_put(o, a);
		order_op_put(o, b);
		order_close(o);
	}
}

/* The host accesses memory after the issue and before the operation runs. */
Test(order, operations_that_have_not_run)
{
	const struct order_range write = { 4096, 4, 0, ORDER_WRITE, 0 }, read = { 4096, 4, 0, 0, 0 };
	const struct order_call call = { .name = "op" };

	for (int early = 0; early < 2; early++) {
		struct order *o = open_it(false);
		order_line s = order_line_open(o, ORDER_BLOCKING, 0);
		struct order_op *a;

		if (early)
			order_host_access(o, &write, &alone, no_stack);
		a = order_issue(o, s, &call);
		if (!early)
			order_host_access(o, &write, &alone, no_stack);
		order_accesses(o, a, &read, 1);
		order_op_put(o, a);
		cr_expect_str_eq(rule, early ? "" : "CS1003");
		order_close(o);
	}
}

Test(order, memory_is_bounded)
{
	const struct order_call call = { .name = "op" };
	struct order *o = open_it(false);
	struct order_event e = { 0 };
	size_t early = 0;

	for (unsigned i = 0; i < 20000; i++) {
		order_line s = order_line_open(o, ORDER_NON_BLOCKING, 0);
		order_line t = order_line_open(o, ORDER_BLOCKING, 0);
		struct order_op *a = order_issue(o, s, &call), *b;

		order_accesses(o, a, &(struct order_range){ .addr = 4096 + i % 64 * 8,
			.bytes = 4, .flags = ORDER_WRITE }, 1);
		order_op_put(o, a);
		order_record(o, &e, s, 0);
		order_wait(o, t, &e, 0);
		b = order_issue(o, t, &call);
		order_accesses(o, b, &(struct order_range){ .addr = 4096 + i % 64 * 8,
			.bytes = 8, .flags = ORDER_WRITE }, 1);
		order_op_put(o, b);
		order_line_close(o, s);
		order_line_close(o, t);
		if (i % 16 == 15)
			order_host_waits_device(o, 0, ORDER_PROMISED);
		if (i == 1000)
			early = order_footprint(o);
	}
	cr_expect_leq(order_footprint(o), early + early / 4);
	cr_expect_str_eq(rule, "");
	order_event_free(&e);
	order_close(o);
}

/* ---- operations that are part of others ----
 *
 * The model has three nodes for each operation: it begins, it accesses memory, it ends. */

enum { TREE = 40, BEGINS = 0, ACTS = 1, ENDS = 2 };

struct tree {
	size_t n;
	struct order_op *op[TREE];
	int in[TREE];                    /* -1: none */
	bool path[3 * TREE][3 * TREE];
};

static void add_path(struct tree *t, int from, int to)
{
	t->path[from][to] = true;
}

static void close_paths(struct tree *t)
{
	const size_t n = 3 * t->n;

	for (size_t k = 0; k < n; k++)
		for (size_t a = 0; a < n; a++)
			for (size_t b = 0; b < n && t->path[a][k]; b++)
				t->path[a][b] |= t->path[k][b];
}

/* Inside of `in`: after some of those there, or after all. */
static void add_inside(struct order *o, struct tree *t, int in)
{
	static const struct order_call call = { .name = "op" };
	struct order_op *after[TREE];
	const int i = (int)t->n++;
	const bool last = !draw(5);
	size_t n = 0;

	t->in[i] = in;
	add_path(t, 3 * i, 3 * i + ACTS);
	add_path(t, 3 * i + ACTS, 3 * i + ENDS);
	add_path(t, 3 * in, 3 * i);
	add_path(t, 3 * i + ENDS, 3 * in + ENDS);
	for (int k = 0; k < i; k++) {
		if (t->in[k] != in || (!last && draw(3)))
			continue;
		after[n++] = t->op[k];
		add_path(t, 3 * k + ENDS, 3 * i);
	}
	if (last)
		add_path(t, 3 * in + ACTS, 3 * i);
	t->op[i] = order_issue_inside(o, t->op[in], after, last ? 0 : n, last, &call);
}

Test(order, inside)
{
	const struct order_config config = { .report = on_report };
	const struct order_call call = { .name = "op" };

	for (uint64_t seed = 1; seed <= 300; seed++) {
		static struct tree t;
		struct order *o = order_open(&config);
		const order_line line = order_line_open(o, ORDER_NON_BLOCKING, 0);

		rng = seed;
		t = (struct tree){ 0 };
		while (t.n < TREE) {
			if (t.n < 2 || !draw(8)) {
				const int i = (int)t.n++;

				t.in[i] = -1;
				t.op[i] = order_issue(o, line, &call);
				add_path(&t, 3 * i, 3 * i + ACTS);
				add_path(&t, 3 * i + ACTS, 3 * i + ENDS);
				for (int k = 0; k < i; k++)
					if (t.in[k] < 0)
						add_path(&t, 3 * k + ENDS, 3 * i);
			} else {
				add_inside(o, &t, (int)draw((unsigned)t.n));
			}
		}
		close_paths(&t);
		for (size_t a = 0; a < t.n; a++)
			for (size_t b = 0; b < t.n; b++)
				if (a != b)
					cr_assert_eq(order_before(t.op[a], t.op[b], ORDER_PROMISED),
						t.path[3 * a + ACTS][3 * b + ACTS], "seed %d: %zu %zu",
						(int)seed, a, b);
		order_host_waits(o, line, ORDER_PROMISED);
		for (size_t i = 0; i < t.n; i++)
			order_op_put(o, t.op[i]);
		order_close(o);
	}
}

/* One that goes on after the operation in which it was issued: only what comes last in its home, and what is
 * outside of that, is ordered after it. */
Test(order, inside_outlives)
{
	const struct order_config config = { .report = on_report };
	const struct order_call call = { .name = "op" };
	struct order *o = order_open(&config);
	const order_line s = order_line_open(o, ORDER_NON_BLOCKING, 0);
	struct order_op *all = order_issue(o, s, &call), *after_all = order_issue(o, s, &call);
	struct order_op *graph = order_issue_inside(o, all, NULL, 0, false, &call);
	struct order_op *before = order_issue_inside(o, graph, NULL, 0, false, &call);
	struct order_op *grid = order_issue_inside(o, graph, &before, 1, false, &call);
	struct order_op *next = order_issue_inside(o, graph, &grid, 1, false, &call);
	struct order_op *fired = order_issue_inside(o, grid, NULL, 0, false, &call);
	struct order_op *sibling = order_issue_inside(o, grid, NULL, 0, false, &call);
	struct order_op *node = order_issue_inside(o, fired, NULL, 0, false, &call);
	struct order_op *of_sibling = order_issue_inside(o, sibling, NULL, 0, false, &call);
	struct order_op *grid_last, *tail;

	order_op_outlives(fired, graph);
	order_op_outlives(sibling, all);
	grid_last = order_issue_inside(o, grid, NULL, 0, true, &call);
	tail = order_issue_inside(o, graph, NULL, 0, true, &call);
	cr_expect(order_before(before, node, ORDER_PROMISED) && order_before(before, of_sibling, ORDER_PROMISED));
	cr_expect(!order_before(grid, node, ORDER_PROMISED), "the launching thread's knowledge counts");
	cr_expect(!order_before(node, next, ORDER_PROMISED) && !order_before(next, node, ORDER_PROMISED));
	cr_expect(!order_before(node, grid_last, ORDER_PROMISED));
	cr_expect(order_before(node, tail, ORDER_PROMISED) && !order_before(of_sibling, tail, ORDER_PROMISED));
	cr_expect(!order_before(node, of_sibling, ORDER_PROMISED));
	cr_expect(order_before(node, after_all, ORDER_PROMISED)
		&& order_before(of_sibling, after_all, ORDER_PROMISED));
	for (size_t i = 0; i < 12; i++)
		order_op_put(o, (struct order_op *[]){ all, after_all, graph, before, grid, next, fired, sibling, node,
			of_sibling, grid_last, tail }[i]);
	order_close(o);
}

/* What is inside of an operation is, for the host and for other lines, what the operation is. Two that are
 * inside of one race, if nothing orders them. */
Test(order, inside_races)
{
	const struct order_config config = { .report = on_report };
	const struct order_call call = { .name = "op" };
	struct order *o = order_open(&config);
	const order_line s = order_line_open(o, ORDER_NON_BLOCKING, 0), t = order_line_open(o, ORDER_NON_BLOCKING, 0);
	struct order_op *first = order_issue(o, s, &call), *next = order_issue(o, s, &call);
	struct order_op *other = order_issue(o, t, &call);
	struct order_op *a = order_issue_inside(o, first, NULL, 0, false, &call);
	struct order_op *b = order_issue_inside(o, first, NULL, 0, false, &call);
	struct order_op *c = order_issue_inside(o, first, &a, 1, false, &call);
	const struct order_range r = cell(3, true, false);

	memset(reported, 0, sizeof reported);
	order_accesses(o, a, &r, 1);
	order_accesses(o, c, &r, 1);
	order_accesses(o, first, &r, 1);
	order_accesses(o, next, &r, 1);
	cr_expect(!reported[3]);
	order_forget(o, r.addr, r.bytes);
	order_accesses(o, a, &r, 1);
	order_accesses(o, b, &r, 1);
	cr_expect(reported[3]);
	order_forget(o, r.addr, r.bytes);
	reported[3] = false;
	order_accesses(o, c, &r, 1);
	order_accesses(o, other, &r, 1);
	cr_expect(reported[3]);
	order_forget(o, r.addr, r.bytes);
	order_accesses(o, b, &r, 1);
	reported[3] = false;
	cr_expect(order_host_access(o, &r, &alone, NULL) && reported[3]);
	order_host_waits(o, s, ORDER_PROMISED);
	cr_expect(!order_host_access(o, &r, &alone, NULL));
	for (size_t i = 0; i < 6; i++)
		order_op_put(o, (struct order_op *[]){ first, next, other, a, b, c }[i]);
	order_close(o);
}

/* With one stream only, the branches of a graph can race. */
Test(order, branches_of_graphs)
{
	const struct order_config config = { .report = on_report };
	const struct order_call call = { .name = "op" };
	struct order *o = order_open(&config);
	const order_line s = order_line_open(o, ORDER_LEGACY, 0);
	struct order_op *start = order_issue(o, s, &call), *node[3];
	const struct order_range r = cell(3, true, false);

	node[0] = order_issue_node(o, start, NULL, 0, &call);
	node[1] = order_issue_node(o, start, node, 1, &call);
	cr_expect(!order_wants(o));
	node[2] = order_issue_node(o, start, node, 1, &call);
	cr_expect(order_wants(o));
	memset(reported, 0, sizeof reported);
	order_accesses(o, node[1], &r, 1);
	cr_expect(!reported[3]);
	order_accesses(o, node[2], &r, 1);
	cr_expect(reported[3]);
	order_join_nodes(o, start, node, 3);
	order_host_waits(o, s, ORDER_PROMISED);
	for (size_t i = 0; i < 3; i++)
		order_op_put(o, node[i]);
	order_op_put(o, start);
	order_close(o);
}
