/* cancel: turns records of clusterlaunchcontrol into events. Clusters that a request cancels have
 * no records. */
#include "events.h"

#include "libconsan/ptx/opcodes.h"
#include "libconsan/ptx/ptx.h"

enum { RESPONSE = 16 };

static bool refused_request(struct dcluster *c, uint32_t warp, const struct record *r,
	unsigned lane, uint64_t at, uint64_t mbar)
{
	const bool far = ptx_space_of(record_site(c, r->site)->insn, 0) != PS_shared;
	const struct shared_view v = record_view(c, warp);
	struct refusal why;

	if (!refuse_shared(&why, &v, far, at, RESPONSE) && !refuse_mbar_align(&why, mbar)
			&& !refuse_shared(&why, &v, far, mbar, 8) && !refuse_cancel(&why, &v, at, mbar))
		return false;
	refused(c, warp, r, 1u << lane, &why);
	return true;
}

static void on_request(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const bool multicast = ptx_has(i, MOD_multicast_cluster_all);
	const uint32_t all = (uint32_t)((1ull << c->info.nctas) - 1);

	for EACH_LANE(l, r->lanes) {
		struct event e = record_event(c, warp, r->site, EV_TRY_CANCEL, 1u << l);
		const uint64_t at = record_value(c, r, &i->operand[0], l);
		const uint64_t mbar = record_value(c, r, &i->operand[1], l);
		struct signal s = { .site = e.site, .lanes = e.lanes, .cta = e.cta, .warp = e.warp,
			.op = ++c->ops, .tx = RESPONSE };

		if (refused_request(c, warp, r, l, at, mbar))
			return;
		e.try_cancel = (struct event_bulk){ .async_op = s.op, .mode = MODE_WRITE, .owner = e.cta,
			.addr = OFFSET(at), .bytes = RESPONSE, .mbarrier = OFFSET(mbar),
			.mbarrier_owner = e.cta, .tx_count = RESPONSE, .multicast = multicast,
			.cta_mask = (uint16_t)(multicast ? all : 0) };
		emit(c, &e);
		for EACH_LANE(rank, multicast ? all : 1u << e.cta)
			model_add_signal(model_of(c, rank, OFFSET(mbar)), &s);
	}
}

static void on_query(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	struct event e = record_event(c, warp, r->site, EV_QUERY_CANCEL, r->lanes);

	for EACH_LANE(l, r->lanes)
		e.query_cancel.failed |= (uint32_t)!record_value(c, r, &i->operand[1], l) << l;
	e.query_cancel.first_ctaid = i->op != OP_clusterlaunchcontrol_query_cancel_is_canceled;
	emit(c, &e);
}

void emit_cancel(struct dcluster *c, uint32_t warp, const struct record *r)
{
	if (record_site(c, r->site)->insn->op == OP_clusterlaunchcontrol_try_cancel)
		on_request(c, warp, r);
	else
		on_query(c, warp, r);
}
