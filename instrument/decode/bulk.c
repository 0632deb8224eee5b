/* bulk: turns records of bulk and tensor copies into events, and keeps the signals that they
 * will make. */
#include "events.h"
#include "libconsan/ptx/opcodes.h"

/* Ends a cluster at a load that signals an unknown number of bytes, as all later waits may
 * depend on it. After a fault no map in global memory is known, but what is unfinished then is
 * not judged anyway. */
static void end_cluster(struct dcluster *c)
{
	const struct event e = { .kind = EV_HANG, .lanes = FULL, .mode = EVH_LOST };

	emit(c, &e);
	c->stopped = true;
}

static bool find_box(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct plan_bulk *b, unsigned lane, struct event *e, struct record_copy *copy)
{
	const struct decode_launch *l = c->job->l;
	const int32_t *word = c->warp[warp].source[lane].word;
	unsigned n = b->other->n > 1 ? b->other->list[1].n : 0;
	struct refusal why;
	struct decode_box box = { .map = record_value(c, r, &b->other->list[0], lane),
		.shared = (uint32_t)e->addr, .wants_global = c->sink && c->sink->want_global,
		.rows = b->rows, .load = b->copy == COPY_LOAD, .placed = l->code->global && n,
		.ncoords = (uint8_t)(n ? n : 1), .noffsets = (uint8_t)(b->offsets ? b->offsets->n : 0),
		.refused = &why };

	for (unsigned k = 0; k < n && k < 5; k++)
		box.at[k] = b->other->list[1].list[k].kind == PO_IMM
			? (int32_t)b->other->list[1].list[k].imm : *word++;
	for (unsigned k = 0; b->offsets && k < b->offsets->n && k < 3; k++)
		box.offset[k] = (uint16_t)(b->offsets->list[k].kind == PO_IMM
			? b->offsets->list[k].imm : *word++);
	if (!l->box || !l->box(l->user, &box)) {
		c->result.unknown_maps++;
		if (box.in_global)
			emit_map_read(c, warp, r->site, e->lanes, &box, false);
		if (b->copy != COPY_STORE && !l->fault)
			end_cluster(c);
		return false;
	}
	if (box.refused) {
		emit_refusal(c, warp, e->site, e->lanes, &why);
		return false;
	}
	e->size = box.extent;
	e->tx = box.bytes;
	copy->align = box.align;
	e->spans = box.spans;
	e->nspans = (uint16_t)box.nspans;
	if (box.in_global && maps_rewritten(&c->job->maps, box.map)) {
		c->result.moving_maps++;
		box.ngspans = 0;
	}
	e->gspans = box.gspans;
	e->ngspans = (uint16_t)box.ngspans;
	if (box.in_global)
		emit_map_read(c, warp, r->site, e->lanes, &box, true);
	return true;
}

static void add_bulk_signals(struct dcluster *c, const struct event *e, bool pair)
{
	uint32_t ranks = e->flags & EVF_MULTICAST ? e->mask : 1u << e->peer;

	for EACH_LANE(rank, ranks) {
		struct signal s = { .site = e->site, .lanes = e->lanes, .cta = e->cta, .warp = e->warp,
			.op = e->op, .tx = e->tx };
		uint32_t peer = e->flags & EVF_MULTICAST ? rank : e->mbar_peer;

		if (pair && e->flags & EVF_MULTICAST)
			peer = (rank & ~1u) | (e->mbar_peer & 1);
		if (peer < c->info.nctas)
			model_add_signal(model_of(c, peer, e->mbar), &s);
	}
}

static void on_bulk_copy(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	struct plan_bulk b = plan_bulk_of(i);
	bool reduces = i->op == OP_cp_reduce_async_bulk || i->op == OP_cp_reduce_async_bulk_tensor;
	bool far = ptx_space_of(i, b.copy == COPY_STORE ? 1 : 0) == PS_shared_cluster;

	for EACH_LANE(l, r->lanes) {
		struct event e = record_event(c, warp, r->site, EV_BULK, 1u << l);
		struct ev_gspan span;
		uint64_t at = record_value(c, r, b.shared, l), mbar, src[32];
		struct record_copy copy = { .copy = b.copy, .tensor = b.tensor, .far = far, .at = at,
			.pair = ptx_has(i, MOD_cta_group_2), .multicast = b.multicast };

		e.flags = (uint8_t)((b.tensor ? EVF_TENSOR : 0) | (reduces ? EVF_REDUCE : 0) |
			(b.multicast ? EVF_MULTICAST : 0));
		e.op = ++c->ops;
		e.mbar = EV_NO_MBAR;
		e.peer = record_owner(c, &e, at, far);
		e.addr = OFFSET(at);
		e.mode = b.copy == COPY_STORE ? EVM_READ : reduces ? EVM_RMW : EVM_WRITE;
		if (b.size)
			e.size = (uint32_t)record_value(c, r, b.size, l);
		e.tx = e.size;
		if (b.tensor && !find_box(c, warp, r, &b, l, &e, &copy))
			continue;
		if (!b.tensor && b.copy != COPY_PEER && c->sink && c->sink->want_global) {
			span = (struct ev_gspan){ c->warp[warp].source[l].at, e.size };
			e.gspans = &span;
			e.ngspans = e.size != 0;
		}
		if (b.copy == COPY_PEER) {
			copy.other = record_value(c, r, b.other, l);
			src[l] = OFFSET(copy.other);
			e.lane_src = src;
		} else if (!b.tensor && c->job->l->code->global) {
			copy.other = c->warp[warp].source[l].at;
		}
		copy.bytes = (uint32_t)e.tx;
		copy.extent = e.size;
		copy.gspans = e.gspans;
		copy.ngspans = e.ngspans;
		if (b.copy == COPY_STORE) {
			refused_bulk(c, warp, r, l, &copy);
			e.tx = 0;
			emit(c, &e);
			continue;
		}
		mbar = record_value(c, r, b.mbar, l);
		e.mbar = OFFSET(mbar);
		e.mbar_peer = record_owner(c, &e, mbar, far);
		e.mask = b.mask ? (uint32_t)record_value(c, r, b.mask, l) & 0xffff : 0;
		copy.mbar = mbar;
		copy.mask = e.mask;
		refused_bulk(c, warp, r, l, &copy);
		emit(c, &e);
		add_bulk_signals(c, &e, copy.pair);
	}
}

void emit_bulk(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	struct event e = record_event(c, warp, r->site, EV_BULK_COMMIT, r->lanes);

	if (i->op == OP_cp_async_bulk_commit_group) {
		emit(c, &e);
	} else if (i->op == OP_cp_async_bulk_wait_group) {
		e.kind = EV_BULK_WAIT;
		e.count = (uint32_t)i->operand[0].imm;
		e.flags = ptx_has(i, MOD_read) ? EVF_READ : 0;
		emit(c, &e);
	} else {
		on_bulk_copy(c, warp, r);
	}
}
