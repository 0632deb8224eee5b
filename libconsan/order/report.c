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

static const char *rule_of(const struct order_access *now, const struct order_access *old, bool known)
{
	if (known)
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

static const char *name_of(const struct order_access *a)
{
	if (by_host(a))
		return "the host's access";
	return a->op->call.kernel ? "the kernel" : a->op->call.name;
}

static struct order_side side_of(const struct order_access *a)
{
	return (struct order_side){ .host = by_host(a), .what = what_of(a), .call = a->op->call,
		.line = a->op->where, .device = a->op->device, .site = a->site };
}

static void edge_of(char *to, size_t n, const struct order_access *now, const struct order_access *old)
{
	if (old->flags & LIFE_FREE && order_op_before(old->op, now->op, ORDER_PROMISED))
		snprintf(to, n, "the memory was released before, by %s in %s", name_of(old), old->op->where);
	else if (by_host(now))
		snprintf(to, n, "the host did not wait for %s in %s: call cudaStreamSynchronize() for it, or "
			"wait for an event that is recorded after it, before the host accesses the memory",
			name_of(old), old->op->where);
	else if (by_host(old))
		snprintf(to, n, "the host accessed the memory after it had issued %s in %s, without waiting: "
			"wait for it before the access, or issue it afterwards", name_of(now),
			now->op->where);
	else
		snprintf(to, n, "nothing orders %s in %s before %s in %s: record an event in %s after the "
			"first and let %s wait for it before the second", name_of(old), old->op->where,
			name_of(now), now->op->where, old->op->where, now->op->where);
}

void order_conflict(struct order *o, const struct order_access *now, const struct order_access *old,
	bool known, uint64_t addr, uint64_t bytes)
{
	char edge[320], hint[320] = "";
	struct order_report r = { .rule = rule_of(now, old, known), .now = side_of(now),
		.old = side_of(old), .addr = addr, .bytes = bytes, .edge = edge, .hint = hint };

	if (!o->config.report)
		return;
	edge_of(edge, sizeof edge, now, old);
	if (now->op->unrecorded)
		snprintf(hint, sizeof hint, "%s waits for an event that was not recorded before the wait, "
			"which has no effect", now->op->where);
	else if (now->flags & old->flags & ORDER_STRONG && !order_both_strong(now, old))
		snprintf(hint, sizeof hint, "both are atomic, but at scope gpu, which has the threads of one "
			"device only: use scope sys (atomicAdd_system(), cuda::thread_scope_system, .sys)");
	r.unrecorded = now->op->unrecorded;
	o->config.report(o->config.user, &r);
}
