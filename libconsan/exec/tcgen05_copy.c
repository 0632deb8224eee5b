/* tcgen05_copy: cp, from shared to tensor memory, shift, within tensor memory, and commit, which
 * signals an mbarrier when the operations before it are complete. */
#include "tcgen05_event.h"
#include "tmem.h"

#include "libconsan/ptx/ptx.h"

struct cp_args {
	uint32_t at, desc;         /* slots */
	bool pair;
	uint8_t rows, columns;     /* of the source, in rows of 4-byte cells: 4 or 8 columns */
	uint8_t height;            /* rows that a warp's window gets */
	uint8_t part[4];           /* by window: rows height * part and up */
	uint8_t packed;            /* bits of an element that is unpacked to a byte; 0: none */
};

struct cp {
	struct tc_op o;
	const struct cp_args *args;
	uint32_t at;
	uint64_t desc;
};

enum { CP_PIECES = 2 * TMEM_LANES, WINDOW = 32 };

/* A packed row of 16 elements begins a piece. */
static unsigned pieces_of(const struct cp_args *a, uint64_t desc, uint32_t *out)
{
	const struct tc_desc d = tc_desc_decode(desc);

	tc_desc_k_pieces(&d, a->rows, a->columns / 4, out);
	return a->rows * (a->columns / 4u);
}

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

/* The lane to which row r of window w goes: in 4x256b, each window gets one row. */
static unsigned lane_of(const struct cp *o, unsigned w, unsigned r)
{
	return (o->at >> 16) + WINDOW * w + r;
}

static void copy(const struct cp *o, struct cta *c)
{
	const struct cp_args *a = o->args;
	const unsigned n = a->columns / 4, column = o->at & 0xffff;
	uint32_t piece[CP_PIECES];

	pieces_of(a, o->desc, piece);
	for (unsigned w = 0; w < 4; w++)
		for (unsigned r = 0; r < a->height; r++)
			for (unsigned i = 0; i < n; i++) {
				unsigned char *cell = (unsigned char *)
					&c->async->tmem.cell[lane_of(o, w, r)][column + 4 * i];
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
	const unsigned n = tc_ctas(op->warp->cta, o->args->pair, cta);

	tc_begin(c, &o->o);
	for (unsigned h = 0; h < n; h++)
		copy(o, cta[h]);
	ex_work(op->warp);
	async_free(c, op);
}

static bool inside(struct warp *w, const struct xop *x, const struct cp *o)
{
	const struct tc_desc d = tc_desc_decode(o->desc);
	const char *why = tc_desc_fault(&d, false, o->args->columns / 4u, false);
	struct cta *cta[2];
	const unsigned ctas = tc_ctas(w->cta, o->args->pair, cta);
	uint32_t piece[CP_PIECES];
	const unsigned n = pieces_of(o->args, o->desc, piece);

	if (why)
		return !ex_fault(w, x, o->o.g.op.lanes, FAULT_TCGEN05_OPERAND, SP_ANY, o->desc, 0,
			"the descriptor has %s", why);
	if ((o->at >> 16) + o->args->height > WINDOW)
		return !ex_fault(w, x, o->o.g.op.lanes, FAULT_TCGEN05_OPERAND, SP_TMEM, o->at, 0,
			"lane %u in the address of a copy to %u lanes of each warp's window", o->at >> 16,
			o->args->height);
	if (!tc_pieces_inside(w, x, "the source", piece, n, cta, ctas))
		return false;
	for (unsigned h = 0; h < ctas; h++)
		if (!tmem_check(w, x, cta[h], o->at & 0xffff, TMEM_LANES, o->args->columns))
			return false;
	return true;
}

static void emit(struct warp *w, const struct xop *x, uint32_t lanes, const struct cp *o)
{
	const struct cp_args *a = o->args;
	struct cta *cta[2];
	const uint32_t ctas = tc_mask(cta, tc_ctas(w->cta, a->pair, cta));
	struct event_tcgen05 t = { .op = TC_CP, .ctas = ctas, .d = o->at, .pair = a->pair };
	struct tc_areas s = { .n = 0 };
	uint32_t piece[CP_PIECES];

	tc_spans(w, &t, piece, pieces_of(a, o->desc, piece));
	t.part = t.spans.n;
	tc_area(&s, MODE_WRITE, OPERAND_D, ctas, o->at & 0xffff, a->columns);
	for (unsigned k = 0; k < 4; k++)
		tc_area_lanes(&s, lane_of(o, k, 0), a->height);
	tc_emit(w, x, lanes, &o->o.g.op, t, &s);
}

static enum step op_cp(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct cp_args *a = x->i.p;

	for EACH_LANE(l, lanes) {
		struct cp *o = async_new(w, x, 1u << l, sizeof *o);

		o->args = a;
		o->o.g.op.perform = perform_cp;
		o->at = r32(w, a->at)[l];
		o->desc = r64(w, a->desc)[l];
		if (!inside(w, x, o)) {
			async_free(w->cluster, o);
			return STEP_FAULT;
		}
		if (w->sink)
			emit(w, x, lanes, o);
		tc_issue(w, &o->o);
	}
	return STEP_NEXT;
}

DECODER(tcgen05_cp)
{
	static const struct { uint16_t shape, warpx; uint8_t rows, columns, height, part[4]; } form[] = {
		{ MOD_128x256b, 0, 128, 8, 32, { 0, 1, 2, 3 } },
		{ MOD_128x128b, 0, 128, 4, 32, { 0, 1, 2, 3 } },
		{ MOD_4x256b, 0, 4, 8, 1, { 0, 1, 2, 3 } },
		{ MOD_64x128b, MOD_warpx2_02_13, 64, 4, 32, { 0, 1, 0, 1 } },
		{ MOD_64x128b, MOD_warpx2_01_23, 64, 4, 32, { 0, 0, 1, 1 } },
		{ MOD_32x128b, MOD_warpx4, 32, 4, 32, { 0, 0, 0, 0 } },
	};
	struct cp_args *a = dec_alloc(d, sizeof *a);

	for (size_t k = 0; k < ARRAY_SIZE(form); k++)
		if (form[k].shape == ptx_pick(i, MG_tshape) && form[k].warpx == ptx_pick(i, MG_warpx)) {
			a->rows = form[k].rows;
			a->columns = form[k].columns;
			a->height = form[k].height;
			memcpy(a->part, form[k].part, sizeof a->part);
		}
	if (!a->rows)
		return dec_unsupported(d, "this shape of tcgen05.cp");
	if (!dec_tmem(d, &i->operand[0], &a->at))
		return false;
	for (unsigned k = 0; k < 2; k++)
		a->packed = ptx_type_of(i, k) == TY_b6x16_p32 ? 6
			: ptx_type_of(i, k) == TY_b4x16_p64 ? 4 : a->packed;
	a->pair = ptx_has(i, MOD_cta_group_2);
	a->desc = dec_src(d, &i->operand[1], TY_b64);
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

enum { SHIFT_COLUMNS = 8 /* 32 bytes */ };

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

		for (unsigned r = 0; r + 1 < WINDOW; r++)
			memcpy(&cell[r][o->at & 0xffff], &cell[r + 1][o->at & 0xffff],
				SHIFT_COLUMNS * sizeof **cell);
	}
	ex_work(op->warp);
	async_free(c, op);
}

static bool shift_inside(struct warp *w, const struct xop *x, const struct shift *o)
{
	struct cta *cta[2];
	const unsigned n = tc_ctas(w->cta, o->pair, cta);

	if (o->at >> 16 & (WINDOW - 1))
		return !ex_fault(w, x, o->o.g.op.lanes, FAULT_TCGEN05_OPERAND, SP_TMEM, o->at, 0,
			"lane %u in the address, which must be a multiple of %u", o->at >> 16, WINDOW);
	for (unsigned h = 0; h < n; h++)
		if (!tmem_check(w, x, cta[h], o->at, WINDOW, SHIFT_COLUMNS))
			return false;
	return true;
}

static void emit_shift(struct warp *w, const struct xop *x, uint32_t lanes, const struct shift *o)
{
	struct cta *cta[2];
	const uint32_t ctas = tc_mask(cta, tc_ctas(w->cta, o->pair, cta));
	struct event_tcgen05 t = { .op = TC_SHIFT, .ctas = ctas, .d = o->at, .pair = o->pair };
	struct tc_areas s = { .n = 0 };

	tc_area(&s, MODE_WRITE, OPERAND_D, ctas, o->at & 0xffff, SHIFT_COLUMNS);
	tc_area_lanes(&s, o->at >> 16, WINDOW - 1);
	tc_area(&s, MODE_READ, OPERAND_D, ctas, o->at & 0xffff, SHIFT_COLUMNS);
	tc_area_lanes(&s, (o->at >> 16) + 1, WINDOW - 1);
	tc_emit(w, x, lanes, &o->o.g.op, t, &s);
}

/* o[0]: address; i.u: cta_group::2 */
static enum step op_shift(struct warp *w, const struct xop *x, uint32_t lanes)
{
	for EACH_LANE(l, lanes) {
		struct shift *o = async_new(w, x, 1u << l, sizeof *o);

		o->o.g.op.perform = perform_shift;
		o->at = r32(w, x->o[0])[l];
		o->pair = x->i.u;
		if (!shift_inside(w, x, o)) {
			async_free(w->cluster, o);
			return STEP_FAULT;
		}
		if (w->sink)
			emit_shift(w, x, lanes, o);
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
