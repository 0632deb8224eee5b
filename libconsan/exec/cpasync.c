/* cpasync: cp.async, its groups and its arrival at mbarriers. A copy is checked
 * when it is issued and moves its bytes as late as the rules allow. */
#include "async.h"

/* One cp.async of lanes with the same number of commits. */
struct cp_op {
	struct group_op g;
	uint8_t size;              /* bytes written per lane */
	uint8_t read[LANES];       /* bytes read, the rest is filled with zero */
	uint32_t dst[LANES];       /* offsets in the CTA's shared memory */
	uint64_t src[LANES];
};

static void copy(struct cluster *c, struct async_op *op)
{
	struct cp_op *o = (struct cp_op *)op;
	unsigned char *shared = op->warp->cta->shared;

	group_remove(&op->warp->async->cp, &o->g);
	for EACH_LANE(l, op->lanes) {
		unsigned char *to = shared + o->dst[l];

		if (o->read[l] == 16) {
			memcpy(to, (const void *)(uintptr_t)o->src[l], 16);
		} else {
			memset(to, 0, o->size);
			if (o->read[l]) /* without a read the address may be 0 */
				memcpy(to, (const void *)(uintptr_t)o->src[l], o->read[l]);
		}
	}
	ex_work(op->warp);
	async_free(c, op);
}

/* o[0..1] destination, o[2..3] source, o[4] src-size (u32) or ignore-src (predicate), o[5] its
 * negation */
enum { B_SIZE, B_KIND, B_DST, B_SRC };
enum { KIND_PLAIN, KIND_SIZE, KIND_IGNORE };

static bool lane_ok(struct warp *w, const struct xop *x, unsigned l, uint64_t dst, uint64_t src,
	uint32_t read)
{
	const struct shared_view v = ex_view(w);
	uint32_t size = x->i.b[B_SIZE];
	struct refusal why;
	struct xplace p;

	if (refuse_cp_align(&why, dst, src, size, read)) {
		ex_refuse(w, x, 1u << l, &why);
		return false;
	}
	if (!ex_resolve(w, x, 1u << l, (enum ptx_space)x->i.b[B_DST], dst, size, 1, true, &p))
		return false;
	if (refuse_cp_owner(&why, &v, p.space, p.cta ? p.cta->rank : 0, dst, size)) {
		ex_refuse(w, x, 1u << l, &why);
		return false;
	}
	return !read || ex_resolve(w, x, 1u << l, (enum ptx_space)x->i.b[B_SRC], src, read, 1,
		false, &p);
}

/* True: all lanes are aligned and inside, without a check of each lane. */
static bool all_ok(struct warp *w, const struct xop *x, const uint64_t dst[LANES],
	const uint64_t src[LANES], const uint32_t read[LANES], uint32_t lanes)
{
	uint32_t size = x->i.b[B_SIZE], any = 0;
	uint64_t low = UINT64_MAX, high = 0, odd = 0, top = 0, base;

	for EACH_LANE(l, lanes) {
		odd |= dst[l];
		top = dst[l] > top ? dst[l] : top;
		if (!read[l])
			continue;
		any = 1;
		odd |= src[l];
		low = src[l] < low ? src[l] : low;
		high = src[l] > high ? src[l] : high;
	}
	base = (uint64_t)w->cta->rank << 24;
	for EACH_LANE(l, lanes)
		if (dst[l] < base)
			return false;
	return x->i.b[B_DST] == PS_shared && x->i.b[B_SRC] == PS_global && !(odd % size) &&
		top - base + size <= w->cta->shared_bytes &&
		(!any || ex_global_ok(w->worker, low, high + size - low, false));
}

static void issue(struct warp *w, const struct xop *x, uint32_t lanes, const uint64_t dst[LANES],
	const uint64_t src[LANES], const uint32_t read[LANES])
{
	struct warp_async *a = w->async;

	for (uint32_t rest = lanes, same; rest; rest &= ~same) {
		unsigned first = (unsigned)__builtin_ctz(rest);
		struct cp_op *o;

		same = 0;
		for EACH_LANE(l, rest)
			same |= (uint32_t)(a->cp_commits[l] == a->cp_commits[first]) << l;
		o = async_new(w, x, same, sizeof *o);
		o->g.op.perform = copy;
		o->g.group = a->cp_commits[first];
		o->size = x->i.b[B_SIZE];
		for EACH_LANE(l, same) {
			o->dst[l] = SHARED_OFFSET(dst[l]);
			o->src[l] = src[l];
			o->read[l] = (uint8_t)read[l];
		}
		group_add(&a->cp, &o->g);
		async_issue(w->cluster, &o->g.op);
	}
}

/* One event for each number of bytes read. Lanes that read nothing are added to the first. */
static void copy_events(struct warp *w, const struct xop *x, uint32_t lanes,
	const uint64_t dst[LANES], const uint64_t src[LANES], const uint32_t read[LANES])
{
	uint64_t at[LANES];
	uint32_t none = 0, rest, odd = ~lanes;
	bool whole; /* all lanes read all bytes */

	for (unsigned l = 0; l < LANES; l++) {
		at[l] = SHARED_OFFSET(dst[l]);
		odd |= read[l] ^ x->i.b[B_SIZE];
	}
	whole = !odd;
	for EACH_LANE(l, whole ? 0 : lanes)
		none |= (uint32_t)!read[l] << l;
	rest = lanes & ~none;
	do {
		struct event e = ex_event(w, x, EV_CP_ASYNC, lanes);
		struct event_cp_async *a = &e.cp_async;
		uint32_t some = whole ? lanes : 0;

		if (rest)
			a->source_bytes = read[__builtin_ctz(rest)];
		for EACH_LANE(l, whole ? 0 : rest)
			some |= (uint32_t)(read[l] == a->source_bytes) << l;
		e.lanes = some | none;
		a->readers = some;
		a->bytes = x->i.b[B_SIZE];
		a->source = src;
		ex_lanes(&a->at, e.lanes, at);
		ex_emit(w->cluster, &e);
		rest &= ~some;
		none = 0;
	} while (rest);
}

static enum step op_cp(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint32_t size = x->i.b[B_SIZE], read[LANES], ignore;
	uint64_t dst[LANES], src[LANES];
	struct refusal why;

	lane_addrs(w, get_addr(x, 0), dst);
	lane_addrs(w, get_addr(x, 2), src);
	ignore = x->i.b[B_KIND] == KIND_IGNORE ? rp(w, x->o[4])[0] ^ x->o[5] : 0;
	for (unsigned l = 0; l < LANES; l++)
		read[l] = x->i.b[B_KIND] == KIND_SIZE ? r32(w, x->o[4])[l]
			: ignore >> l & 1 ? 0 : size;
	for EACH_LANE(l, lanes)
		if (refuse_cp_read(&why, src[l], size, read[l]))
			return ex_refuse(w, x, 1u << l, &why);
	if (!all_ok(w, x, dst, src, read, lanes))
		for EACH_LANE(l, lanes)
			if (!lane_ok(w, x, l, dst[l], src[l], read[l]))
				return STEP_FAULT;
	if (w->sink)
		copy_events(w, x, lanes, dst, src, read);
	issue(w, x, lanes, dst, src, read);
	return STEP_NEXT;
}

DECODER(cp_async)
{
	const struct ptx_operand *n = &i->operand[2];
	unsigned hint = ptx_has(i, MOD_L2_cache_hint), more = i->noperands - 3u - hint;

	if (n->kind != PO_IMM || (n->imm != 4 && n->imm != 8 && n->imm != 16))
		return dec_unsupported(d, "cp.async of a size other than 4, 8 or 16");
	put_addr(x, 0, dec_addr(d, &i->operand[0]));
	put_addr(x, 2, dec_addr(d, &i->operand[1]));
	x->i.b[B_SIZE] = (uint8_t)n->imm;
	x->i.b[B_KIND] = KIND_PLAIN;
	x->i.b[B_DST] = (uint8_t)ptx_space_of(i, 0);
	x->i.b[B_SRC] = (uint8_t)ptx_space_of(i, 1);
	if (more) {
		const struct ptx_operand *o = &i->operand[3];

		if (o->kind == PO_REG && dec_bits(d, o) == 1) {
			x->i.b[B_KIND] = KIND_IGNORE;
			x->o[4] = dec_pred(d, o, &x->o[5]);
		} else {
			x->i.b[B_KIND] = KIND_SIZE;
			x->o[4] = dec_src(d, o, TY_u32);
		}
	}
	x->fn = op_cp;
	return true;
}

/* ---- groups ---- */

static enum step op_commit(struct warp *w, const struct xop *x, uint32_t lanes)
{
	return group_commit(w, x, lanes, w->async->cp_commits, EV_CP_ASYNC_COMMIT);
}

DECODER(cp_async_commit_group)
{
	(void)d;
	(void)i;
	x->fn = op_commit;
	return true;
}

/* o[0]: groups that may stay pending, i.w[0]: wait_all */
static enum step op_wait(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct warp_async *a = w->async;
	const l32 *n = r32(w, x->o[0]);
	uint32_t keep[LANES];
	bool all = x->i.w[0];

	for (unsigned l = 0; l < LANES; l++)
		keep[l] = all ? 0 : n[l];
	for EACH_LANE(l, all ? lanes : 0)
		a->cp_commits[l]++;
	group_wait(w->cluster, &a->cp, lanes, a->cp_commits, keep);
	if (w->sink) {
		struct event e = ex_event(w, x, EV_CP_ASYNC_WAIT, lanes);

		e.cp_async_wait.pending = keep[__builtin_ctz(lanes)];
		e.cp_async_wait.all = all;
		ex_emit(w->cluster, &e);
	}
	return STEP_NEXT;
}

DECODER(cp_async_wait_group)
{
	x->o[0] = dec_src(d, &i->operand[0], TY_u32);
	x->fn = op_wait;
	return true;
}

DECODER(cp_async_wait_all)
{
	(void)i;
	x->o[0] = dec_const(d, 32, 0);
	x->i.w[0] = true;
	x->fn = op_wait;
	return true;
}

/* ---- arrival at an mbarrier ---- */

struct arrive_op {
	struct async_op op;
	struct cta *cta;
	uint32_t at;
};

/* Each lane tracks all copies it has issued before. */
static void arrive(struct cluster *c, struct async_op *op)
{
	struct arrive_op *o = (struct arrive_op *)op;
	struct group_list *l = &op->warp->async->cp;

	for (size_t i = 0; i < l->n;) {
		struct group_op *g = l->at[i];

		if (g->op.lanes & op->lanes && (int32_t)(op->id - g->op.id) > 0) {
			async_force(c, &g->op);
			i = 0;
		} else {
			i++;
		}
	}
	mbar_signal(op, o->cta, o->at, (uint32_t)__builtin_popcount(op->lanes), 0);
	async_free(c, op);
}

/* o[0..1] address, i.b[0] space, i.b[1] .noinc */
static enum step op_arrive(struct warp *w, const struct xop *x, uint32_t lanes)
{
	bool noinc = x->i.b[1];
	uint64_t addr[LANES];

	lane_addrs(w, get_addr(x, 0), addr);
	for (uint32_t rest = lanes, same; rest; rest &= ~same) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		struct arrive_op *o;
		struct cta *cta;
		uint32_t at;

		same = same_lanes(addr, rest, l);
		if (!mbar_place(w, x, l, (enum ptx_space)x->i.b[0], addr[l], false, &cta, &at))
			return STEP_FAULT;
		o = async_new(w, x, same, sizeof *o);
		o->op.perform = arrive;
		o->cta = cta;
		o->at = at;
		if (w->sink) {
			struct event e = ex_event(w, x, EV_CP_ASYNC_ARRIVE, same);

			e.cp_async_arrive.addr = at;
			e.cp_async_arrive.async_op = o->op.id;
			e.cp_async_arrive.noinc = noinc;
			ex_emit(w->cluster, &e);
		}
		if (!noinc)
			mbar_raise(cta, at, (uint32_t)__builtin_popcount(same));
		async_issue(w->cluster, &o->op);
	}
	return STEP_NEXT;
}

DECODER(cp_async_mbarrier_arrive)
{
	put_addr(x, 0, dec_addr(d, &i->operand[0]));
	x->i.b[0] = (uint8_t)ptx_space_of(i, 0);
	x->i.b[1] = ptx_has(i, MOD_noinc);
	x->fn = op_arrive;
	return true;
}
