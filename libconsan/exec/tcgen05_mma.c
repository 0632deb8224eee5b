/* tcgen05_mma: D += A * B with D in tensor memory, by one CTA or by a pair. Operands are read and D
 * is written when the operation is performed, as late as the ISA allows. */
#include "internal.h"
#include "tcgen05_event.h"
#include "tcgen05_operand.h"

#include <math.h>

#include "libconsan/ptx/ptx.h"

struct args {
	struct tc_syntax syntax;
	bool imm_enable, enable;   /* enable-input-d is a constant */
	uint32_t pred, flip;       /* slot of enable-input-d */
	uint32_t d, b, idesc;      /* slots */
	uint32_t a;                /* slot of the descriptor, or of the address in tensor memory */
	uint32_t meta, mask;       /* slots of the address of the metadata and of the mask's descriptor */
	uint32_t scales[2];        /* slots of the addresses of the scales of A and B */
	uint32_t disabled[8];      /* slots */
};

struct mma {
	struct tc_op o;
	const struct args *args;
	struct tc_mma m;
};

/* ---- performing ---- */

/* The cells of D in the groups [from, from + n); the others are not computed. */
static void cells_of(const struct mma *o, struct cta *c, unsigned h, unsigned from, unsigned n,
	uint32_t **cell)
{
	const struct tc_shape *s = &o->m.shape;

	for (unsigned g = 0; g < s->groups; g++)
		for (unsigned r = 0; r < s->rows; r++) {
			const unsigned lane = tc_d_lane(&o->m, g, r);

			*cell++ = g < from || g >= from + n || tc_disabled(&o->m, h, lane) ? NULL
				: &c->async->tmem.cell[lane][o->m.d & 0xffff];
		}
}

/* In how many parts D is computed: in tensor memory each group of columns has a copy of A, in its
 * lanes. The ISA wants them equal; hardware takes for each group its own (FlashMLA computes two
 * products at once so). */
static unsigned parts(const struct tc_form *f, const struct tc_shape *s)
{
	return f->a_tmem ? s->groups : 1;
}

/* What is the same in all CTAs */
static struct tc_tile tile_of(const struct mma *o, struct tc_scratch *x)
{
	const struct tc_shape *s = &o->m.shape;

	return (struct tc_tile){
		.m = s->rows, .n = s->n, .k = s->k, .b_n = s->n, .groups = s->groups,
		.a_type = s->a_type, .b_type = s->b_type, .acc = s->acc, .a_mn = s->a_mn,
		.b_mn = s->b_mn, .accumulate = o->m.enable, .negate_a = s->negate_a,
		.negate_b = s->negate_b, .satfinite = s->satfinite,
		.scale_d = ldexpf(1, -o->args->syntax.scale_d),
		.a = x->image_a, .b = x->image_b, .slot = o->args->syntax.form.sparse ? x->slot : NULL,
		.block = (uint16_t)(s->k / (s->scales ? s->scales : 1)),
		.scale_a = s->scales ? x->scale_a : NULL, .scale_b = s->scales ? x->scale_b : NULL,
		.cell = x->cell,
	};
}

static void perform(struct cluster *c, struct async_op *op)
{
	struct mma *o = (struct mma *)op;
	const struct tc_form *f = &o->args->syntax.form;
	const struct tc_shape *s = &o->m.shape;
	struct tc_scratch *x = ex_scratch(c->worker, sizeof *x);
	struct tc_book *book = ex_tc_book(c->worker);
	struct tc_tile t = tile_of(o, x);
	const unsigned n = parts(f, s);
	struct cta *cta[2];

	tc_ctas(op->warp->cta, f->pair, cta);
	tc_begin(c, &o->o);
	if (o->args->syntax.mask) {
		t.b_first = (uint16_t)tc_zero_mask(s, o->m.mask, x->zero);
		t.b_n = (uint16_t)(t.b_n + tc_more_columns(&o->m));
		t.zero = x->zero;
	}
	tc_gather_b(s, tc_book_b(book, s, o->m.b, tc_more_columns(&o->m)), cta, x);
	for (unsigned i = 0; i < n * s->ctas; i++) {
		const unsigned h = i / n, part = i % n;

		if (f->a_tmem)
			tc_gather_tmem(f, s, (uint32_t)o->m.a, part, cta[h], x);
		else
			tc_gather_a(tc_book_a(book, s, o->m.a), cta[h], x);
		if (f->sparse)
			tc_gather_slots(f, s, o->m.meta, cta[h], x);
		for (unsigned k = 0; s->scales && k < 2; k++)
			tc_gather_scales(s, k, o->m.scales[k], cta[h], k ? x->scale_b : x->scale_a);
		cells_of(o, cta[h], h, part * s->groups / n, s->groups / n, x->cell);
		SIMD_PICK(tc_tile)(&t, x);
		t.same_b = !s->scales;
	}
	ex_work(op->warp);
	async_free(c, op);
}

/* ---- issue ---- */

static void emit(struct warp *w, const struct xop *x, uint32_t lanes, const struct mma *o,
	const struct tc_view *v)
{
	struct tc_arrays arrays;

	tc_emit(w, x, lanes, &o->o.g.op, tc_mma_event(&o->m, v, ex_tc_book(w->cluster->worker), &arrays));
}

static struct mma *new_mma(struct warp *w, const struct xop *x, unsigned l)
{
	const struct args *a = x->i.p;
	const struct tc_syntax *s = &a->syntax;
	struct mma *o = async_new(w, x, 1u << l, sizeof *o);
	struct tc_mma *m = &o->m;

	o->args = a;
	o->o.g.op.perform = perform;
	m->syntax = s;
	m->d = r32(w, a->d)[l];
	m->a = s->form.a_tmem ? r32(w, a->a)[l] : r64(w, a->a)[l];
	m->b = r64(w, a->b)[l];
	m->idesc = r32(w, a->idesc)[l];
	m->enable = a->imm_enable ? a->enable : (rp(w, a->pred)[0] ^ a->flip) >> l & 1;
	m->meta = s->meta ? r32(w, a->meta)[l] : 0;
	m->mask = s->mask ? r64(w, a->mask)[l] : 0;
	for (unsigned k = 0; s->disabled && k < s->disabled->n; k++)
		m->disabled[k] = r32(w, a->disabled[k])[l];
	for (unsigned k = 0; s->form.scale_vec && k < 2; k++)
		m->scales[k] = r32(w, a->scales[k])[l];
	return o;
}

static enum step op_mma(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct args *a = x->i.p;
	const struct tc_view v = tc_view(w->cta, a->syntax.form.pair);

	for EACH_LANE(l, lanes) {
		struct mma *o = new_mma(w, x, l);
		struct refusal why;

		if (refuse_mma(&why, &o->m, &v, ex_tc_book(w->cluster->worker))) {
			async_free(w->cluster, o);
			return ex_refuse(w, x, 1u << l, &why);
		}
		if (w->sink)
			emit(w, x, lanes, o, &v);
		tc_issue(w, &o->o);
	}
	return STEP_NEXT;
}

/* ---- decoding ---- */

static bool decode_enable(struct decoder *d, const struct ptx_operand *o, struct args *a)
{
	if (o->kind == PO_IMM) {
		a->imm_enable = true;
		a->enable = o->imm;
	} else {
		a->pred = dec_pred(d, o, &a->flip);
	}
	return true;
}

static bool decode(struct decoder *d, const struct ptx_insn *i, struct xop *x)
{
	struct args *a = dec_alloc(d, sizeof *a);
	const struct tc_syntax *s = &a->syntax;
	const char *why = tc_syntax_of(i, &a->syntax);

	if (why)
		return dec_unsupported(d, "%s", why);
	if (!dec_tmem(d, s->d, &a->d) || (s->form.a_tmem && !dec_tmem(d, s->a, &a->a))
			|| (s->meta && !dec_tmem(d, s->meta, &a->meta)))
		return false;
	for (unsigned k = 0; s->form.scale_vec && k < 2; k++)
		if (!dec_tmem(d, s->scales[k], &a->scales[k]))
			return false;
	if (!s->form.a_tmem)
		a->a = dec_src(d, s->a, TY_b64);
	a->b = dec_src(d, s->b, TY_b64);
	a->idesc = dec_src(d, s->idesc, TY_b32);
	for (unsigned k = 0; s->disabled && k < s->disabled->n; k++)
		a->disabled[k] = dec_src(d, &s->disabled->list[k], TY_b32);
	if (s->mask)
		a->mask = dec_src(d, s->mask, TY_b64);
	x->i.p = a;
	x->fn = op_mma;
	return decode_enable(d, s->enable, a);
}

#define MMA(id) \
DECODER(id) \
{ \
	return decode(d, i, x); \
}
MMA(tcgen05_mma)
MMA(tcgen05_mma_sp)
MMA(tcgen05_mma_ws)
MMA(tcgen05_mma_ws_sp)
