/* report: what a conflict of two operations is called, and the edge that is missing. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

static bool by_host(const struct order_access *a)
{
	return a->flags & HOST_ACCESS;
}

static bool writes(const struct order_access *a)
{
	return a->flags & ORDER_WRITE;
}

/* The host releases memory by a call that waits for the devices. */
static bool host_release(const struct order_access *a)
{
	return a->flags & LIFE_FREE && a->op->device < 0;
}

static const char *rule_of(const struct order_access *now, const struct order_access *old,
	enum order_lack lacks)
{
	if (lacks == LACKS_VISIBLE || (lacks == LACKS_ISSUE && !host_release(now)))
		return "CS1010";
	if (lacks == LACKS_PROMISE)
		return "CS1009";
	if (old->flags & LIFE_FREE && order_op_before(old->op, now->op, ORDER_PROMISED))
		return "CS1005";
	if ((now->flags | old->flags) & LIFE_FREE)
		return "CS1004";
	if ((now->flags | old->flags) & LIFE_ALLOC)
		return "CS1006";
	if (by_host(now) || by_host(old))
		return "CS1003";
	return writes(now) && writes(old) ? "CS1001" : "CS1002";
}

static const char *what_of(const struct order_access *a)
{
	if (a->flags & LIFE_FREE)
		return "release";
	if (a->flags & LIFE_ALLOC)
		return "allocation";
	if (a->flags & ORDER_STRONG)
		return writes(a) ? "atomic write" : "atomic read";
	return writes(a) ? "write" : "read";
}

/* Not a function of the API, or an operator */
static bool is_noun(const char *name)
{
	static const char *const noun[] = { "copy", "memset", "allocation", "release" };
	bool is = strchr(name, ' ');

	for (size_t i = 0; i < ARRAY_SIZE(noun); i++)
		is |= !strcmp(name, noun[i]);
	return is;
}

/* "the kernel", "the copy", "cudaMemcpyAsync" */
static const char *name_of(const struct order_access *a, char to[80])
{
	const char *name = a->op->call.name;

	if (by_host(a))
		return "the host's access";
	if (a->op->call.kernel)
		return "the kernel";
	snprintf(to, 80, "%s%s", is_noun(name) ? "the " : "", name);
	return to;
}

struct order_side order_side_of(const struct order_access *a)
{
	return (struct order_side){ .host = by_host(a), .what = what_of(a), .call = a->op->call,
		.line = a->op->where, .device = a->op->device, .site = a->site };
}

static bool nodes_of_one(const struct order_op *a, const struct order_op *b)
{
	if (order_op_root(a) == order_op_root(b))
		return !order_op_root(a)->call.kernel;
	return a->graph.epoch && a->graph.line == b->graph.line && a->graph.epoch == b->graph.epoch;
}

static void edge_of(char *to, size_t n, const struct order *o, const struct order_access *now,
	const struct order_access *old, enum order_lack lacks)
{
	char first[64], then[64], was[80], is[80];
	const char *older = name_of(old, was), *newer = name_of(now, is);

	order_line_text(o, old->op->issued.line, first, sizeof first);
	order_line_text(o, now->op->issued.line, then, sizeof then);
	if (lacks == LACKS_ISSUE && host_release(now))
		snprintf(to, n, "%s issued %s in %s while the call of %s that releases its memory was under way: "
			"nothing orders the two calls, so that the release may come first", first, older,
			old->op->where, then);
	else if (lacks == LACKS_VISIBLE || lacks == LACKS_ISSUE)
		snprintf(to, n, "no lock, join or other synchronization of threads that consan sees orders the "
			"call or access of %s (%s in %s) before that of %s (%s in %s)", first, older,
			old->op->where, then, newer, now->op->where);
	else if (old->flags & LIFE_FREE && order_op_before(old->op, now->op, ORDER_PROMISED))
		snprintf(to, n, "the memory was released before, by %s in %s", older, old->op->where);
	else if (by_host(now))
		snprintf(to, n, "the host did not wait for %s in %s: call cudaStreamSynchronize() for it, or "
			"wait for an event that is recorded after it, before the host accesses the memory",
			older, old->op->where);
	else if (by_host(old))
		snprintf(to, n, "the host accessed the memory after it had issued %s in %s, without waiting: "
			"wait for it before the access, or issue it afterwards", newer,
			now->op->where);
	else if (now->op->call.source || old->op->call.source)
		snprintf(to, n, "%s may read its source out of the order of its stream, as its srcAccessOrder says: wait "
			"on the host between it and %s, or let it read in the order of the stream "
			"(cudaMemcpySrcAccessOrderStream)", now->op->call.source ? newer : older,
			now->op->call.source ? older : newer);
	else if (nodes_of_one(now->op, old->op) && now->op->call.batch)
		snprintf(to, n, "the copies of a batch have no order among themselves: issue one of the two behind "
			"the batch");
	else if (nodes_of_one(now->op, old->op))
		snprintf(to, n, "nothing orders %s before %s in the launch of a graph: add an edge between "
			"the nodes, or wait for an event between the calls that are captured", older,
			newer);
	else if (order_op_root(now->op) == order_op_root(old->op))
		snprintf(to, n, "nothing orders %s before %s, which a kernel launches: launch both into one "
			"stream", older, newer);
	else
		snprintf(to, n, "nothing orders %s in %s before %s in %s: record an event in %s after the "
			"first and let %s wait for it before the second", older, old->op->where,
			newer, now->op->where, old->op->where, now->op->where);
}

void order_conflict(struct order *o, const struct order_access *now, const struct order_access *old,
	enum order_lack lacks, uint64_t addr, uint64_t bytes)
{
	order_conflict_as(o, now, old, lacks, addr, bytes, "");
}

void order_conflict_as(struct order *o, const struct order_access *now, const struct order_access *old,
	enum order_lack lacks, uint64_t addr, uint64_t bytes, const char *why)
{
	char edge[400], hint[320] = "";
	struct order_row row[ORDER_ROWS];
	struct order_report r = { .rule = rule_of(now, old, lacks), .now = order_side_of(now),
		.old = order_side_of(old), .addr = addr, .bytes = bytes, .edge = edge, .hint = hint };

	if (!o->config.report)
		return;
	edge_of(edge, sizeof edge, o, now, old, lacks);
	if (now->op->unrecorded)
		snprintf(hint, sizeof hint, "%s waits for an event that was not recorded before the wait, "
			"which has no effect", now->op->where);
	else if (order_only_saw(o, now->op, old->op))
		snprintf(hint, sizeof hint, "kernels that run at the same time exchange values between the two, "
			"but no release and acquire at .sys scope that orders these accesses: "
			"st.release.sys and ld.acquire.sys, or __threadfence_system() on both sides");
	if ((now->flags | (by_host(now) ? ORDER_STRONG : 0)) & (old->flags | (by_host(old) ? ORDER_STRONG : 0))
			& ORDER_STRONG)
		snprintf(hint, sizeof hint, "an access of scope .gpu is atomic only for its own device; other "
			"devices and the host need scope .sys (atomicAdd_system, __threadfence_system)");
	if (*why)
		snprintf(hint, sizeof hint, "%s", why);
	r.unrecorded = now->op->unrecorded;
	r.row = row;
	r.nrows = order_timeline(o, now->op, old->op, row, ORDER_ROWS);
	o->config.report(o->config.user, &r);
}
