/* tcgen05_copy: cp, from shared to tensor memory, and commit, which signals an mbarrier when the
 * operations before it are complete. */
#include "tcgen05_event.h"
#include "tmem.h"

#include "libconsan/ptx/ptx.h"

enum { NO_PART = 0xff };

struct cp_args {
	uint32_t at, desc;         /* slots */
	bool pair;
	uint8_t rows, columns;     /* of the source, in rows of 4-byte cells: 4 or 8 columns */
	uint8_t part[4];           /* warp window: the 32 source rows that it gets, or NO_PART */
	uint8_t packed;            /* bits of an element that is unpacked to a byte; 0: none */
};

struct cp {
	struct tc_op o;
	const struct cp_args *args;
	uint32_t at;
	uint64_t desc;
};

/* The pieces of a row lie next to each other in K (ISA, "Shared memory descriptor"); a packed row
 * of 16 elements begins a piece. */
static unsigned pieces_of(const struct cp_args *a, uint64_t desc, uint32_t *out)
{
	const struct wg_desc d = wg_desc_decode(desc);
	uint32_t two[2 * TMEM_LANES];
	const unsigned n = a->columns / 4, rows = a->rows < 8 ? 8 : a->rows;

	wg_desc_pieces(&d, false, rows, two);
	for (unsigned r = 0; r < a->rows; r++)
		for (unsigned i = 0; i < n; i++)
			out[r * n + i] = two[2 * r + i];
	return a->rows * n;
}

/* 16 elements of 4 or 6 bits at `from` become 16 bytes. */
static void unpack(unsigned char *to, const unsigned char *from, unsigned bits)
{
	for (unsigned i = 0; i < 16; i++) {
		uint16_t two;

		memcpy(&two, from + i * bits / 8, 2);
		to[i] = (unsigned char)(two >> i * bits % 8 & ((1u << bits) - 1));
	}
}

static void copy(const struct cp *o, struct cta *c)
{
	const struct cp_args *a = o->args;
	const unsigned n = a->columns / 4, column = o->at & 0xffff, lane = o->at >> 16;
	uint32_t piece[2 * TMEM_LANES];

	pieces_of(a, o->desc, piece);
	for (unsigned w = 0; w < 4; w++)
		for (unsigned r = 0; r < 32 && a->part[w] != NO_PART; r++) {
			const unsigned row = 32u * a->part[w] + r, to = (lane + 32 * w + r) % TMEM_LANES;

			for (unsigned i = 0; row < a->rows && i < n; i++) {
				unsigned char *cell =
					(unsigned char *)&c->async->tmem.cell[to][column + 4 * i];
				const unsigned char *from = c->shared + piece[row * n + i];

				if (a->packed)
					unpack(cell, from, a->packed);
				else
					memcpy(cell, from, 16);
			}
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
	struct cta *cta[2];
	const unsigned ctas = tc_ctas(w->cta, o->args->pair, cta);
	uint32_t piece[2 * TMEM_LANES];
	const unsigned n = pieces_of(o->args, o->desc, piece);

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
	uint32_t piece[2 * TMEM_LANES];

	tc_spans(w, &t, piece, pieces_of(a, o->desc, piece));
	t.part = t.spans.n;
	tc_area(&s, MODE_WRITE, OPERAND_D, ctas, o->at & 0xffff, a->columns);
	for (unsigned p = 0; p < 4; p++)
		for (unsigned r = 0; r < 32 && a->part[p] != NO_PART; r++)
			if (32u * a->part[p] + r < a->rows)
				tc_area_lanes(&s, ((o->at >> 16) + 32 * p + r) % TMEM_LANES, 1);
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
	static const struct { uint16_t shape, warpx; uint8_t rows, columns, part[4]; } form[] = {
		{ MOD_128x256b, 0, 128, 8, { 0, 1, 2, 3 } },
		{ MOD_128x128b, 0, 128, 4, { 0, 1, 2, 3 } },
		{ MOD_4x256b, 0, 4, 8, { 0, NO_PART, NO_PART, NO_PART } },
		{ MOD_64x128b, MOD_warpx2_02_13, 64, 4, { 0, 1, 0, 1 } },
		{ MOD_64x128b, MOD_warpx2_01_23, 64, 4, { 0, 0, 1, 1 } },
		{ MOD_32x128b, MOD_warpx4, 32, 4, { 0, 0, 0, 0 } },
	};
	struct cp_args *a = dec_alloc(d, sizeof *a);

	dec_unchecked(d, TMEM_UNCHECKED);
	for (size_t k = 0; k < ARRAY_SIZE(form); k++)
		if (form[k].shape == ptx_pick(i, MG_tshape) && form[k].warpx == ptx_pick(i, MG_warpx)) {
			a->rows = form[k].rows;
			a->columns = form[k].columns;
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
	dec_unchecked(d, TMEM_UNCHECKED);
	put_addr(x, 0, dec_addr(d, &i->operand[0]));
	x->o[3] = ptx_has(i, MOD_cta_group_2);
	x->i.u = i->noperands > 1;
	if (x->i.u)
		x->o[2] = dec_src(d, &i->operand[1], TY_b16);
	x->fn = op_commit;
	return true;
}
