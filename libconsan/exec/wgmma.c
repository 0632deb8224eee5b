/* wgmma: the instructions and their groups. Operands in shared memory and registers are read, and
 * accumulators written, when the operation is performed: at the wait that covers it, or when
 * nothing else can progress. */
#include "async.h"
#include "internal.h"

#include <stdlib.h>

#include "libconsan/ptx/ptx.h"
#include "mma_types.h"
#include "sparse.h"
#include "tile.h"

struct args {
	struct wg_tile t;          /* all but pointers, scale_d and images */
	bool a_regs, a_mn;         /* A in registers; its image in shared memory is MN-major */
	bool imm_scale;            /* scale-d is a constant: scale */
	bool scale;
	uint32_t pred, flip;       /* slot of scale-d */
	uint32_t desc_a, desc_b;   /* slots of u64 */
	uint32_t a[4];             /* slots */
	uint32_t nd;
	uint32_t d[128];           /* slots */
	uint32_t regs[132];        /* virtual registers: D, then A */
	bool sparse;
	uint8_t selector;
	uint32_t meta;             /* slot */
	uint64_t shape;
	void (*tile)(const struct wg_tile *, struct wg_scratch *);
};

struct wg_op {
	struct group_op g;         /* op.warp is the first of the four */
	const struct args *args;
	uint32_t number;
	struct wg_operands of;
	bool scale_d;
	l32 meta[][LANES];         /* sparse: of each warp, as it is at the issue */
};

/* ---- performing ---- */

static void gather(unsigned char *to, const unsigned char *shared, const uint32_t *piece,
	unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		memcpy(to + 16 * i, shared + piece[i], 16);
}

/* Not on the stack, which can be that of a small thread of the program. */
struct sparse_scratch {
	struct tc_scratch x;
	uint32_t d[64 * 256];
};

static void sparse_product(const struct wg_op *o, const struct wg_tile *w, struct sparse_scratch *scratch)
{
	const unsigned bits = tile_in_bits(w->a_type), half = 256 / bits, n = w->n;
	const unsigned nreg = o->args->nd;
	struct tc_scratch *x = &scratch->x;
	uint32_t *d = scratch->d;
	struct tc_tile t = sparse_tile((uint8_t[]){ w->a_type, w->b_type }, (enum tile_acc)w->acc, 64,
		n, 2 * half, d, x);
	void *reg[4][128];

	t.a = w->a;
	t.b = w->b;
	t.a_mn = w->a_mn;
	t.b_mn = w->b_mn;
	t.negate_a = w->negate;
	t.satfinite = w->satfinite;
	t.accumulate = w->scale_d;
	for (unsigned row = 0; row < 64; row++)
		sparse_slots(x->slot + row * half, bits, half, sparse_meta(o->meta[row / 16],
			o->args->selector, row % 16, bits >= 16 ? 8 : 16, bits >= 16));
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned k = 0; k < nreg; k++)
			reg[i][k] = w->r[i] + w->slot[k];
		if (w->scale_d)
			sparse_get_d(d + 16 * n * i, n, (enum tile_acc)w->acc,
				(const void *const *)reg[i]);
	}
	SIMD_PICK(tc_tile)(&t, x);
	for (unsigned i = 0; i < 4; i++)
		sparse_put_d(d + 16 * n * i, n, (enum tile_acc)w->acc, reg[i]);
}

static void perform(struct cluster *c, struct async_op *op)
{
	struct wg_op *o = (struct wg_op *)op;
	const struct args *a = o->args;
	struct cta *cta = op->warp->cta;
	struct wg_async *g = &cta->async->wg[op->warp->id / 4];
	_Alignas(64) unsigned char image_a[64 * 32], image_b[256 * 64];
	const struct wg_reads *reads;
	struct wg_tile t = a->t;

	/* operations of a warpgroup take effect in order: they share D */
	while (g->pending.n && g->pending.at[0] != &o->g)
		async_force(c, &g->pending.at[0]->op);
	group_remove(&g->pending, &o->g);
	reads = wg_book_find(ex_wg_book(c->worker), &o->of);
	if (a->a_regs) {
		for (unsigned w = 0; w < 4; w++)
			for (unsigned i = 0; i < 4; i++)
				for (unsigned k = 0; k < 8; k++)
					memcpy(image_a + (16 * w + 8 * (i & 1) + k) * 32
							+ (i >> 1) * 16,
						warpgroup_warp(op->warp, w)->r + a->a[i] + 16 * k,
						16);
	} else {
		gather(image_a, cta->shared, reads->a, 128);
	}
	gather(image_b, cta->shared, reads->b, (a->sparse ? 4u : 2u) * t.n);
	t.a = image_a;
	t.b = image_b;
	t.scale_d = o->scale_d;
	t.slot = a->d;
	for (unsigned w = 0; w < 4; w++)
		t.r[w] = warpgroup_warp(op->warp, w)->r;
	if (a->sparse)
		sparse_product(o, &t, ex_scratch(c->worker, sizeof(struct sparse_scratch)));
	else
		a->tile(&t, ex_scratch(c->worker, sizeof(struct wg_scratch)));
	wgmma_moves(g, o->number);
	async_free(c, op);
}

void wgmma_force(struct cluster *c, struct wg_async *g, uint32_t number)
{
	while (g->pending.n && g->issued - g->pending.n + 1 <= number)
		async_force(c, &g->pending.at[0]->op);
}

/* ---- spans for the checker ---- */

static void emit_wgmma(struct warp *w, const struct xop *x, const struct wg_op *o,
	const struct wg_reads *reads)
{
	const struct args *a = o->args;
	struct event e = ex_event(w, x, EV_WGMMA, FULL);

	e.wgmma.async_op = o->g.op.id;
	e.wgmma.scale_d = o->scale_d;
	e.wgmma.shape = a->shape;
	e.wgmma.accumulators = (struct ev_regs){ a->regs, (uint16_t)a->nd };
	if (a->a_regs)
		e.wgmma.fragment = (struct ev_regs){ a->regs + a->nd, 4 };
	memcpy(e.wgmma.parts.at, reads->part, sizeof e.wgmma.parts.at);
	e.wgmma.spans = (struct ev_spans){ reads->span, reads->part[5] };
	ex_emit(w->cluster, &e);
}

/* ---- issue ---- */

/* False: some piece lies outside the CTA's shared memory; the fault is raised. */
static bool inside(struct warp *w, const struct xop *x, const char *name, uint64_t desc,
	uint32_t top)
{
	const struct shared_view v = ex_view(w);
	struct refusal why;

	if (!refuse_matrix_end(&why, &v, name, desc, top))
		return true;
	ex_refuse(w, x, FULL, &why);
	return false;
}

/* Checks a value that must be the same in all four warps. */
static bool same_in_group(struct warp *first, const struct xop *x, uint32_t slot, const char *name)
{
	uint64_t u = r64(first, slot)[0];
	struct refusal why;

	for (unsigned i = 0; i < 4 && !first->cluster->grid->l->carry_on; i++) {
		const l64 *v = r64(warpgroup_warp(first, i), slot);

		for (unsigned l = 0; l < LANES; l++)
			if (refuse_unlike(&why, name, v[l], u)) {
				ex_refuse(warpgroup_warp(first, i), x, 1u << l, &why);
				return false;
			}
	}
	return true;
}

static bool fill(struct warp *first, const struct xop *x, struct wg_op *o)
{
	const struct args *a = o->args;
	const struct wg_reads *reads;

	o->of = (struct wg_operands){ .n = a->t.n, .a_regs = a->a_regs,
		.b_mn = a->t.b_mn, .b_deep = a->sparse };
	if (!a->a_regs) {
		if (!same_in_group(first, x, a->desc_a, "A"))
			return false;
		o->of.a_mn = a->a_mn;
		o->of.a = r64(first, a->desc_a)[0];
	}
	if (!same_in_group(first, x, a->desc_b, "B"))
		return false;
	o->of.b = r64(first, a->desc_b)[0];
	reads = wg_book_find(ex_wg_book(first->cluster->worker), &o->of);
	if (!a->a_regs && !inside(first, x, "A", o->of.a, reads->top_a))
		return false;
	if (!inside(first, x, "B", o->of.b, reads->top_b))
		return false;
	for (unsigned w = 0; a->sparse && w < 4; w++)
		memcpy(o->meta[w], r32(warpgroup_warp(first, w), a->meta), sizeof o->meta[w]);
	o->scale_d = a->imm_scale ? a->scale : (rp(first, a->pred)[0] ^ a->flip) & 1;
	if (first->sink)
		emit_wgmma(first, x, o, reads);
	return true;
}

/* The registers of a wgmma that stays in flight. */
static void stamp(struct warp *first, const struct args *a, uint32_t number)
{
	const size_t n = first->worker->grid->k->reg_bytes / 64;

	for (unsigned i = 0; i < 4; i++) {
		struct warp_async *w = warpgroup_warp(first, i)->async;

		if (!w->nstamp) {
			w->stamp = base_resize(w->stamp, n * sizeof *w->stamp);
			memset(w->stamp, 0, n * sizeof *w->stamp);
			w->nstamp = n;
		}
		for (uint32_t k = 0; k < a->nd; k++)
			w->stamp[a->d[k] / 64].written = number;
		for (unsigned k = 0; a->a_regs && k < 4; k++)
			w->stamp[a->a[k] / 64].read = number;
	}
}

static enum step op_mma(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct args *a = x->i.p;
	struct warp *first = warpgroup_warp(w, 0);
	struct wg_async *g = &w->cta->async->wg[w->id / 4];
	struct wg_op *o;
	enum step step;

	switch (warpgroup_sync(w, x, lanes, &step)) {
	case GROUP_WAIT: return step;
	case GROUP_DONE: return STEP_NEXT;
	case GROUP_LAST: break;
	}
	o = async_new(first, x, FULL, sizeof *o + (a->sparse ? 4 * sizeof *o->meta : 0));
	o->args = a;
	o->g.op.perform = perform;
	o->g.group = g->commits;
	if (!fill(first, x, o)) {
		async_free(w->cluster, o);
		return STEP_FAULT;
	}
	o->number = ++g->issued;
	g->last = g->commits;
	g->unwaited = true;
	group_add(&g->pending, &o->g);
	async_issue(w->cluster, &o->g.op);
	if (g->pending.n)
		stamp(first, a, g->issued);
	return STEP_NEXT;
}

static enum step op_fence(struct warp *w, const struct xop *x, uint32_t lanes)
{
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (w->sink) {
		struct event e = ex_event(w, x, EV_WGMMA_FENCE, lanes);
		ex_emit(w->cluster, &e);
	}
	return STEP_NEXT;
}

static enum step op_commit(struct warp *w, const struct xop *x, uint32_t lanes)
{
	enum step step;

	switch (warpgroup_sync(w, x, lanes, &step)) {
	case GROUP_WAIT: return step;
	case GROUP_DONE: return STEP_NEXT;
	case GROUP_LAST: break;
	}
	w->cta->async->wg[w->id / 4].commits++;
	if (w->sink) {
		struct event e = ex_event(warpgroup_warp(w, 0), x, EV_WGMMA_COMMIT, FULL);
		ex_emit(w->cluster, &e);
	}
	return STEP_NEXT;
}

/* o[0]: how many groups may stay pending. One event for all four warps. Without a sink and with a
 * seed each warp waits for itself, as on a GPU. */
static enum step op_wait(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct wg_async *g = &w->cta->async->wg[w->id / 4];
	uint32_t keep;
	enum step step;

	switch (w->sink || !w->cluster->grid->l->seed ? warpgroup_sync(w, x, lanes, &step)
			: GROUP_LAST) {
	case GROUP_WAIT: return step;
	case GROUP_DONE: return STEP_NEXT;
	case GROUP_LAST: break;
	}
	keep = r32(w, x->o[0])[0];
	while (g->pending.n && g->commits > g->pending.at[0]->group &&
			g->commits - g->pending.at[0]->group > keep)
		async_force(w->cluster, &g->pending.at[0]->op);
	g->unwaited &= g->commits <= g->last || g->commits - g->last <= keep;
	if (w->sink) {
		struct event e = ex_event(warpgroup_warp(w, 0), x, EV_WGMMA_WAIT, FULL);

		e.wgmma_wait.pending = keep;
		ex_emit(w->cluster, &e);
	}
	return STEP_NEXT;
}

/* ---- decoding ---- */

DECODER(wgmma_fence)
{
	(void)d;
	(void)i;
	x->fn = op_fence;
	return true;
}

DECODER(wgmma_commit_group)
{
	(void)d;
	(void)i;
	x->fn = op_commit;
	return true;
}

DECODER(wgmma_wait_group)
{
	x->o[0] = dec_src(d, &i->operand[0], TY_u32);
	x->fn = op_wait;
	return true;
}

static bool known_types(const struct args *a, unsigned k, unsigned n)
{
	enum tile_in ta = a->t.a_type, tb = a->t.b_type;
	bool fp8 = (ta == IN_e4m3 || ta == IN_e5m2) && (tb == IN_e4m3 || tb == IN_e5m2);
	bool i8 = (ta == IN_s8 || ta == IN_u8) && (tb == IN_s8 || tb == IN_u8);
	bool same = ta == tb && (ta == IN_f16 || ta == IN_bf16 || ta == IN_tf32);
	bool b1 = ta == tb && ta == IN_b1 && !a->sparse;

	if (!fp8 && !i8 && !same && !b1)
		return false;
	if (k * tile_in_bits(ta) != (a->sparse ? 512 : 256) || n % 8 || n > 256)
		return false;
	if ((i8 || b1) != (a->t.acc == ACC_s32))
		return false;
	return a->t.acc != ACC_f16 || fp8 || ta == IN_f16;
}

/* scale-d; then imm-scale-a and -b (-1 or 1), then imm-trans-a (unless A is in registers) and -b
 * (16-bit types only) */
static bool scales(struct decoder *d, const struct ptx_insn *i, struct args *a)
{
	const unsigned at = a->sparse ? 5 : 3;
	const struct ptx_operand *s = &i->operand[at];
	int64_t imm[4] = { 1, 1, 0, 0 };
	unsigned n = 0;

	for (unsigned k = at + 1; k < i->noperands && n < 4; k++) {
		if (i->operand[k].kind != PO_IMM)
			return dec_unsupported(d,
				"wgmma with a scale or transposition that is not a constant");
		if (n == 2 && a->a_regs)
			n = 3;
		imm[n++] = i->operand[k].imm;
	}
	a->t.negate = imm[0] * imm[1] < 0;
	a->a_mn = imm[2];
	a->t.a_mn = imm[2];
	a->t.b_mn = imm[3];
	if (s->kind == PO_IMM) {
		a->imm_scale = true;
		a->scale = s->imm;
	} else {
		a->pred = dec_pred(d, s, &a->flip);
	}
	return true;
}

/* metadata and selector */
static bool take_sparse(struct decoder *d, const struct ptx_insn *i, struct args *a)
{
	const struct ptx_operand *f = &i->operand[4];

	if (f->kind != PO_IMM || f->imm < 0
		|| !sparse_selector((unsigned)f->imm, tile_in_bits(a->t.a_type) >= 16 ? 8 : 16))
		return dec_unsupported(d, "this sparsity selector");
	a->selector = (uint8_t)f->imm;
	a->meta = dec_src(d, &i->operand[3], TY_b32);
	return true;
}

static bool decode(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool sparse)
{
	const struct ptx_operand *od = &i->operand[0], *oa = &i->operand[1];
	unsigned m, n, k;
	struct args *a;

	if (!ptx_shape(ptx_pick(i, MG_shape), &m, &n, &k) || m != 64)
		return dec_unsupported(d, "this shape of wgmma");
	a = dec_alloc(d, sizeof *a);
	a->sparse = sparse;
	a->t.n = (uint16_t)n;
	a->t.acc = (uint8_t)tile_acc_of(ptx_type_of(i, 0));
	a->t.a_type = (uint8_t)tile_in_of(ptx_type_of(i, 1));
	a->t.b_type = (uint8_t)tile_in_of(ptx_type_of(i, 2));
	a->t.satfinite = ptx_has(i, MOD_satfinite);
	a->a_regs = oa->kind == PO_VEC;
	a->nd = a->t.acc == ACC_f16 ? n / 4 : n / 2;
	if (!known_types(a, k, n))
		return dec_unsupported(d, "these types of wgmma with this shape");
	if (od->kind != PO_VEC || od->n != a->nd || (a->a_regs && oa->n != 4))
		return dec_unsupported(d,
			"wgmma whose number of registers does not match its shape");
	for (unsigned j = 0; j < a->nd; j++) {
		a->d[j] = dec_dst(d, &od->list[j], a->t.acc == ACC_f32 ? TY_f32 : TY_b32);
		a->regs[j] = dec_reg_id(d, &od->list[j]);
	}
	for (unsigned j = 0; a->a_regs && j < 4; j++) {
		a->a[j] = dec_src(d, &oa->list[j], TY_b32);
		a->regs[a->nd + j] = dec_reg_id(d, &oa->list[j]);
	}
	if (!a->a_regs)
		a->desc_a = dec_src(d, oa, TY_b64);
	a->desc_b = dec_src(d, &i->operand[2], TY_b64);
	if ((sparse && !take_sparse(d, i, a)) || !scales(d, i, a))
		return false;
	a->shape = n | (uint64_t)sparse << 40 | (uint64_t)a->t.acc << 16 | (uint64_t)a->t.a_type << 24 |
		(uint64_t)a->t.b_type << 32;
	a->tile = SIMD_PICK(wg_tile);
	x->i.p = a;
	x->fn = op_mma;
	return true;
}

DECODER(wgmma_mma_async)
{
	return decode(d, i, x, false);
}

DECODER(wgmma_mma_async_sp)
{
	return decode(d, i, x, true);
}
