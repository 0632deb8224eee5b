/* tcgen05_copy: cp, from shared to tensor memory, shift, within tensor memory, and commit, which
 * signals an mbarrier when the operations before it are complete. */
#include "tcgen05_event.h"
#include "tmem.h"

#include "libconsan/ptx/ptx.h"

struct cp_args {
	struct tc_cp cp;
	uint32_t at, desc;         /* slots */
};

struct cp {
	struct tc_op o;
	const struct cp_args *args;
	uint32_t at;
	uint64_t desc;
};

/* 16 elements of 4 or 6 bits at `from` become 16 bytes: 6 bits are at the low end, 4 bits in the
 * middle (ISA, "Optional Decompression"). */
static void unpack(unsigned char *to, const unsigned char *from, unsigned bits)
{
	for (unsigned i = 0; i < 16; i++) {
		uint16_t two;

		memcpy(&two, from + i * bits / 8, 2);
		to[i] = (unsigned char)((two >> i * bits % 8 & ((1u << bits) - 1)) << (bits == 4 ? 2 : 0));
	}
}

static void copy(const struct cp *o, struct cta *c)
{
	const struct tc_cp *a = &o->args->cp;
	const unsigned n = a->columns / 4, column = o->at & 0xffff;
	uint32_t piece[TC_CP_PIECES];

	tc_cp_pieces(a, o->desc, piece);
	for (unsigned w = 0; w < 4; w++)
		for (unsigned r = 0; r < a->height; r++)
			for (unsigned i = 0; i < n; i++) {
				unsigned char *cell = (unsigned char *)
					&c->async->tmem.cell[tc_cp_lane(o->at, w, r)][column + 4 * i];
				const unsigned char *from = c->shared
					+ piece[(a->part[w] * a->height + r) * n + i];

				if (a->packed)
					unpack(cell, from, a->packed);
				else
					memcpy(cell, from, 16);
			}
}

static void perform_cp(struct cluster *c, struct async_op *op)
{
	struct cp *o = (struct cp *)op;
	struct cta *cta[2];
	const unsigned n = tc_ctas(op->warp->cta, o->args->cp.pair, cta);

	tc_begin(c, &o->o);
	for (unsigned h = 0; h < n; h++)
		copy(o, cta[h]);
	ex_work(op->warp);
	async_free(c, op);
}

static enum step op_cp(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct cp_args *a = x->i.p;
	const struct tc_view v = tc_view(w->cta, a->cp.pair);

	for EACH_LANE(l, lanes) {
		struct cp *o = async_new(w, x, 1u << l, sizeof *o);
		struct tc_arrays arrays;
		struct refusal why;

		o->args = a;
		o->o.g.op.perform = perform_cp;
		o->at = r32(w, a->at)[l];
		o->desc = r64(w, a->desc)[l];
		if (refuse_cp(&why, &a->cp, o->at, o->desc, &v)) {
			async_free(w->cluster, o);
			return ex_refuse(w, x, 1u << l, &why);
		}
		if (w->sink)
			tc_emit(w, x, lanes, &o->o.g.op, tc_cp_event(&a->cp, o->at, o->desc, &v, &arrays));
		tc_issue(w, &o->o);
	}
	return STEP_NEXT;
}

DECODER(tcgen05_cp)
{
	struct cp_args *a = dec_alloc(d, sizeof *a);
	const char *why = tc_cp_of(i, &a->cp);

	if (why)
		return dec_unsupported(d, "%s", why);
	if (!dec_tmem(d, a->cp.to, &a->at))
		return false;
	a->desc = dec_src(d, a->cp.from, TY_b64);
	x->i.p = a;
	x->fn = op_cp;
	return true;
}

/* ---- shift ---- */

struct shift {
	struct tc_op o;
	uint32_t at;
	bool pair;
};

/* .31x256b: each of the first 31 lanes of a window gets the row of the lane after it, the last one
 * stays, for cp.4x256b to replace. */
static void perform_shift(struct cluster *c, struct async_op *op)
{
	struct shift *o = (struct shift *)op;
	struct cta *cta[2];
	const unsigned n = tc_ctas(op->warp->cta, o->pair, cta);

	tc_begin(c, &o->o);
	for (unsigned h = 0; h < n; h++) {
		uint32_t (*cell)[TMEM_STRIDE] = cta[h]->async->tmem.cell + (o->at >> 16);

		for (unsigned r = 0; r + 1 < TC_WINDOW; r++)
			memcpy(&cell[r][o->at & 0xffff], &cell[r + 1][o->at & 0xffff],
				TC_SHIFT_COLUMNS * sizeof **cell);
	}
	ex_work(op->warp);
	async_free(c, op);
}

/* o[0]: address; i.u: cta_group::2 */
static enum step op_shift(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct tc_view v = tc_view(w->cta, x->i.u);

	for EACH_LANE(l, lanes) {
		struct shift *o = async_new(w, x, 1u << l, sizeof *o);
		struct tc_arrays arrays;
		struct refusal why;

		o->o.g.op.perform = perform_shift;
		o->at = r32(w, x->o[0])[l];
		o->pair = x->i.u;
		if (refuse_shift(&why, o->at, &v)) {
			async_free(w->cluster, o);
			return ex_refuse(w, x, 1u << l, &why);
		}
		if (w->sink)
			tc_emit(w, x, lanes, &o->o.g.op, tc_shift_event(o->pair, o->at, &v, &arrays));
		tc_issue(w, &o->o);
	}
	return STEP_NEXT;
}

DECODER(tcgen05_shift)
{
	x->i.u = ptx_has(i, MOD_cta_group_2);
	x->fn = op_shift;
	return dec_tmem(d, &i->operand[0], &x->o[0]);
}

/* ---- commit ---- */

struct commit {
	struct tc_op o;
	uint32_t at, ctas;         /* offset of the mbarrier; ranks of the CTAs */
};

static void perform_commit(struct cluster *c, struct async_op *op)
{
	struct commit *o = (struct commit *)op;

	tc_begin(c, &o->o);
	for (uint32_t m = o->ctas; m; m &= m - 1)
		mbar_signal(op, &c->cta[__builtin_ctz(m)], o->at, 1, 0);
	async_free(c, op);
}

static void emit_commit(struct warp *w, const struct xop *x, uint32_t lanes, const struct commit *o)
{
	struct event e = ex_event(w, x, EV_TCGEN05_COMMIT, o->o.g.op.lanes);

	e.tcgen05_commit = (struct event_tcgen05_commit){ .async_op = o->o.g.op.id, .addr = o->at,
		.ctas = o->ctas, .pair = x->o[3], .multicast = x->i.u,
		.several = (lanes & (lanes - 1)) != 0 };
	ex_emit(w->cluster, &e);
}

/* o[0], o[1]: address; o[2]: mask, if i.u; o[3]: cta_group::2 */
static enum step op_commit(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const uint32_t all = (uint32_t)((1ull << w->cluster->info.nctas) - 1);

	for EACH_LANE(l, lanes) {
		struct commit *o = async_new(w, x, 1u << l, sizeof *o);
		struct cta *c;
		uint32_t ctas;

		o->o.g.op.perform = perform_commit;
		if (!mbar_place(w, x, l, PS_shared_cluster, ex_addr(w, get_addr(x, 0), l), true, &c,
				&o->at)) {
			async_free(w->cluster, o);
			return STEP_FAULT;
		}
		ctas = o->ctas = x->i.u ? r16(w, x->o[2])[l] : 1u << c->rank;
		if (ctas & ~all) {
			async_free(w->cluster, o);
			return ex_fault(w, x, 1u << l, FAULT_CLUSTER_RANK, SP_ANY, ctas, 0,
				"the mask 0x%x names CTAs outside the cluster", ctas);
		}
		if (w->sink)
			emit_commit(w, x, lanes, o);
		tc_issue(w, &o->o);
	}
	return STEP_NEXT;
}

DECODER(tcgen05_commit)
{
	put_addr(x, 0, dec_addr(d, &i->operand[0]));
	x->o[3] = ptx_has(i, MOD_cta_group_2);
	x->i.u = i->noperands > 1;
	if (x->i.u)
		x->o[2] = dec_src(d, &i->operand[1], TY_b16);
	x->fn = op_commit;
	return true;
}
