/* Tests of libconsan/order: random programs of the host API against a model that keeps every operation
 * and every edge, and searches paths. */
#include "libconsan/base/base.h"
#include "libconsan/order/order.h"

#include <criterion/criterion.h>
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

static uint32_t no_stack(void)
{
	return 0;
}

static struct order *open_it(bool documented)
{
	const struct order_config config = { .report = keep_rule, .documented = documented };

	*rule = 0;
	return order_open(&config);
}

Test(order, known_edges_are_reported_on_request)
{
	const struct order_range all = { 4096, 64, 0, ORDER_WRITE };
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
	const struct order_range did[] = { { 4096, 64, 0, ORDER_WRITE },
		{ 8192, 4, 0, ORDER_WRITE | ORDER_STRONG } };
	const struct order_range data = { 4100, 4, 0, 0 }, flag = { 8192, 4, 0, 0 };
	const struct order_call call = { .name = "kernel", .kernel = "k" };

	for (int polled = 0; polled < 2; polled++) {
		struct order *o = open_it(false);
		struct order_op *a = order_issue(o, order_line_open(o, ORDER_BLOCKING, 0), &call);

		order_accesses(o, a, did, 2);
		order_op_put(o, a);
		if (polled)
			cr_expect_not(order_host_access(o, &flag, no_stack));
		cr_expect_eq(order_host_access(o, &data, no_stack), !polled);
		cr_expect_str_eq(rule, polled ? "" : "CS1003");
		order_close(o);
	}
}

/* The host accesses memory after the issue and before the operation runs. */
Test(order, operations_that_have_not_run)
{
	const struct order_range write = { 4096, 4, 0, ORDER_WRITE }, read = { 4096, 4, 0, 0 };
	const struct order_call call = { .name = "op" };

	for (int early = 0; early < 2; early++) {
		struct order *o = open_it(false);
		order_line s = order_line_open(o, ORDER_BLOCKING, 0);
		struct order_op *a;

		if (early)
			order_host_access(o, &write, no_stack);
		a = order_issue(o, s, &call);
		if (!early)
			order_host_access(o, &write, no_stack);
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

		order_accesses(o, a, &(struct order_range){ 4096 + i % 64 * 8, 4, 0, ORDER_WRITE }, 1);
		order_op_put(o, a);
		order_record(o, &e, s, 0);
		order_wait(o, t, &e, 0);
		b = order_issue(o, t, &call);
		order_accesses(o, b, &(struct order_range){ 4096 + i % 64 * 8, 8, 0, ORDER_WRITE }, 1);
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
