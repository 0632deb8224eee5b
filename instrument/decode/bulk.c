/* bulk: turns records of bulk and tensor copies into events, and keeps the signals that they
 * will make. */
#include "events.h"
#include "libconsan/ptx/opcodes.h"

/* Ends a cluster at a load that signals an unknown number of bytes, as all later waits may
 * depend on it. After a fault no map in global memory is known, but what is unfinished then is
 * not judged anyway. */
static void end_cluster(struct dcluster *c)
{
	const struct event e = { .kind = EV_HANG, .lanes = FULL, .hang.why = HANG_LOST };

	emit(c, &e);
	c->stopped = true;
}

static bool find_box(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct plan_bulk *b, unsigned lane, struct event *e, struct record_copy *copy)
{
	struct event_bulk *to = &e->bulk;
	const struct decode_launch *l = c->job->l;
	const int32_t *word = c->warp[warp].source[lane].word;
	unsigned n = b->other->n > 1 ? b->other->list[1].n : 0;
	struct refusal why;
	const struct plan *p = &c->job->info[r->site].plan;
	struct decode_box box = { .map = p->map ? p->map : record_value(c, r, &b->other->list[0], lane),
		.shared = to->addr, .wants_global = c->sink && c->sink->want_global,
		.rows = b->rows, .load = b->copy == COPY_LOAD, .placed = decodes_global(c->job) && n,
		.overwrites = b->copy == COPY_STORE, .mode = b->mode,
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
	to->bytes = box.extent;
	to->tx_count = box.bytes;
	copy->align = box.align;
	to->spans = (struct ev_spans){ box.spans, box.nspans };
	if (box.in_global && maps_rewritten(&c->job->maps, box.map)) {
		c->result.moving_maps++;
		box.ngspans = box.npadding = 0;
	}
	to->global = (struct ev_gspans){ box.gspans, box.ngspans };
	to->padding = (uint16_t)box.npadding;
	if (box.in_global)
		emit_map_read(c, warp, r->site, e->lanes, &box, true);
	return true;
}

/* The bytes of both sides that .cp_mask names. */
static void add_masked(struct dcluster *c, uint64_t global, uint32_t mask, struct event_bulk *to)
{
	c->span.n = c->gspan.n = 0;
	for (uint32_t at = 0, n; span_masked(mask, to->bytes, &at, &n); at += n) {
		vec_push(&c->span, ((struct ev_span){ to->addr + at, n }));
		if (to->global.n)
			vec_push(&c->gspan, ((struct ev_gspan){ global + at, n }));
	}
	to->spans = (struct ev_spans){ c->span.at, (uint32_t)c->span.n };
	to->global = (struct ev_gspans){ c->gspan.at, (uint32_t)c->gspan.n };
	if (!c->span.n)
		to->bytes = 0;
}

static void add_bulk_signals(struct dcluster *c, const struct event *e, bool pair)
{
	const struct event_bulk *b = &e->bulk;
	uint32_t ranks = b->multicast ? b->cta_mask : 1u << b->owner;

	for EACH_LANE(rank, ranks) {
		struct signal s = { .site = e->site, .lanes = e->lanes, .cta = e->cta, .warp = e->warp,
			.op = b->async_op, .tx = b->tx_count };
		uint32_t peer = b->multicast ? rank : b->mbarrier_owner;

		if (pair && b->multicast)
			peer = (rank & ~1u) | (b->mbarrier_owner & 1);
		if (peer < c->info.nctas)
			model_add_signal(model_of(c, peer, b->mbarrier), &s);
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
		struct event_bulk *to = &e.bulk;
		struct ev_gspan span = { 0 };
		uint64_t at = record_value(c, r, b.shared, l), mbar, src[32];
		struct record_copy copy = { .copy = b.copy, .tensor = b.tensor, .far = far, .at = at,
			.pair = ptx_has(i, MOD_cta_group_2), .multicast = b.multicast };

		to->tensor = b.tensor;
		to->reduce = reduces;
		to->multicast = b.multicast;
		to->pair = copy.pair;
		to->async_op = ++c->ops;
		to->mbarrier = EV_NO_MBARRIER;
		to->owner = record_owner(c, &e, at, far);
		to->addr = OFFSET(at);
		to->mode = b.copy == COPY_STORE ? MODE_READ : reduces ? MODE_RMW : MODE_WRITE;
		if (b.size)
			to->bytes = (uint32_t)record_value(c, r, b.size, l);
		to->tx_count = to->bytes;
		if (b.tensor && !find_box(c, warp, r, &b, l, &e, &copy))
			continue;
		if (!b.tensor && b.copy != COPY_PEER && c->sink && c->sink->want_global) {
			span = (struct ev_gspan){ c->warp[warp].source[l].at, to->bytes };
			to->global = (struct ev_gspans){ &span, to->bytes != 0 };
		}
		if (b.bytes)
			add_masked(c, span.addr, (uint32_t)record_value(c, r, b.bytes, l), to);
		if (b.copy == COPY_PEER) {
			copy.other = record_value(c, r, b.other, l);
			src[l] = OFFSET(copy.other);
			to->source = src;
		} else if (!b.tensor && decodes_global(c->job)) {
			copy.other = c->warp[warp].source[l].at;
		}
		copy.bytes = (uint32_t)to->tx_count;
		copy.extent = to->bytes;
		copy.global = to->global;
		if (b.copy == COPY_STORE) {
			refused_bulk(c, warp, r, l, &copy);
			to->tx_count = 0;
			emit(c, &e);
			continue;
		}
		mbar = record_value(c, r, b.mbar, l);
		to->mbarrier = OFFSET(mbar);
		to->mbarrier_owner = record_owner(c, &e, mbar, far || copy.pair);
		to->cta_mask = b.mask ? (uint32_t)record_value(c, r, b.mask, l) & 0xffff : 0;
		copy.mbar = mbar;
		copy.mask = to->cta_mask;
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
		e.bulk_wait.pending = (uint32_t)i->operand[0].imm;
		e.bulk_wait.read = ptx_has(i, MOD_read);
		emit(c, &e);
	} else {
		on_bulk_copy(c, warp, r);
	}
}
