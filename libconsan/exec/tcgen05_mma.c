/* tcgen05_mma: D += A * B with D in tensor memory, by one CTA or by a pair. Operands are read and D
 * is written when the operation is performed, as late as the ISA allows. */
#include "internal.h"
#include "tcgen05_event.h"
#include "tcgen05_operand.h"

#include <math.h>
#include <stdio.h>

#include "libconsan/ptx/ptx.h"

struct args {
	struct tc_form form;
	uint8_t collector, buffer; /* enum ev_collector; 0: A, 1 to 4: B0 to B3 */
	bool imm_enable, enable;   /* enable-input-d is a constant */
	bool masked;               /* .ws has a zero-column mask */
	uint8_t ndisabled;         /* words of disable-output-lane */
	uint8_t scale_d;           /* scale-input-d */
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
	bool enable;
	uint32_t d, idesc, meta, scales[2], disabled[8];
	uint64_t a, b, mask;
	struct tc_shape shape;
};

/* ---- performing ---- */

static bool disabled(const struct mma *o, unsigned h, unsigned lane)
{
	const unsigned word = 4 * h + lane / 32;

	return word < o->args->ndisabled && o->disabled[word] >> lane % 32 & 1;
}

static unsigned d_lane(const struct mma *o, unsigned group, unsigned row)
{
	return (o->d >> 16) + tc_lane(&o->shape, row) + group * o->shape.rows;
}

static void cells_of(const struct mma *o, struct cta *c, unsigned h, uint32_t **cell)
{
	const struct tc_shape *s = &o->shape;

	for (unsigned g = 0; g < s->groups; g++)
		for (unsigned r = 0; r < s->rows; r++) {
			const unsigned lane = d_lane(o, g, r);

			*cell++ = disabled(o, h, lane) ? NULL
				: &c->async->tmem.cell[lane][o->d & 0xffff];
		}
}

/* What is the same in all CTAs */
static struct tc_tile tile_of(const struct mma *o, struct tc_scratch *x)
{
	const struct tc_shape *s = &o->shape;

	return (struct tc_tile){
		.m = s->rows, .n = s->n, .k = s->k, .b_n = s->n, .groups = s->groups,
		.a_type = s->a_type, .b_type = s->b_type, .acc = s->acc, .a_mn = s->a_mn,
		.b_mn = s->b_mn, .accumulate = o->enable, .negate_a = s->negate_a,
		.negate_b = s->negate_b, .satfinite = s->satfinite,
		.scale_d = ldexpf(1, -o->args->scale_d),
		.a = x->image_a, .b = x->image_b, .slot = o->args->form.sparse ? x->slot : NULL,
		.block = (uint16_t)(s->k / (s->scales ? s->scales : 1)),
		.scale_a = s->scales ? x->scale_a : NULL, .scale_b = s->scales ? x->scale_b : NULL,
		.cell = x->cell,
	};
}

/* B's columns behind those of the shape that a column shift brings in, in whole pieces */
static unsigned more_columns(const struct mma *o)
{
	return o->args->masked ? ((unsigned)(o->mask >> 56 & 63) + 15) & ~15u : 0;
}

static void perform(struct cluster *c, struct async_op *op)
{
	struct mma *o = (struct mma *)op;
	const struct args *a = o->args;
	const struct tc_shape *s = &o->shape;
	struct tc_scratch *x = ex_scratch(c->worker, sizeof *x);
	struct tc_tile t = tile_of(o, x);
	struct cta *cta[2];

	tc_ctas(op->warp->cta, a->form.pair, cta);
	tc_begin(c, &o->o);
	if (a->masked) {
		t.b_first = (uint16_t)tc_zero_mask(s, o->mask, x->zero);
		t.b_n = (uint16_t)(t.b_n + more_columns(o));
		t.zero = x->zero;
	}
	tc_gather_b(s, o->b, more_columns(o), cta, x);
	for (unsigned h = 0; h < s->ctas; h++) {
		tc_gather_a(&a->form, s, o->a, cta[h], x);
		if (a->form.sparse)
			tc_gather_slots(&a->form, s, o->meta, cta[h], x);
		for (unsigned k = 0; s->scales && k < 2; k++)
			tc_gather_scales(s, k, o->scales[k], cta[h], k ? x->scale_b : x->scale_a);
		cells_of(o, cta[h], h, x->cell);
		SIMD_PICK(tc_tile)(&t, x);
		t.same_b = !s->scales;
	}
	ex_work(op->warp);
	async_free(c, op);
}

/* ---- issue ---- */

/* format: of the value, or without it */
static bool refuse(struct warp *w, const struct xop *x, const struct mma *o, const char *format,
	uint32_t value)
{
	char text[200];

	snprintf(text, sizeof text, format, value);
	ex_fault(w, x, o->o.g.op.lanes, FAULT_TCGEN05_OPERAND, SP_ANY, value, 0, "%s", text);
	return false;
}

static bool shared_inside(struct warp *w, const struct xop *x, const struct mma *o, bool is_b,
	struct cta *const cta[2])
{
	const struct tc_shape *s = &o->shape;
	const struct tc_desc d = tc_desc_decode(is_b ? o->b : o->a);
	const char *name = is_b ? "B" : "A", *why;
	uint32_t piece[TC_B * TC_ROW_B / 16];
	unsigned n;

	why = tc_desc_fault(&d, is_b ? s->b_mn : s->a_mn, (is_b ? s->b_bytes : s->a_bytes) / 16u,
		s->a_type == TC_tf32);
	if (why) {
		char text[200];

		snprintf(text, sizeof text, "the descriptor of %s has %s", name, why);
		return refuse(w, x, o, text, 0);
	}
	n = is_b ? tc_b_pieces(s, o->b, more_columns(o), piece) : tc_a_pieces(s, o->a, piece);
	return tc_pieces_inside(w, x, name, piece, n, cta, s->ctas);
}

/* Half of the datapath: lanes 0 or 16 on, else lane 0 (ISA, "Data Path Layout Organization"). */
static bool lane_fits(struct warp *w, const struct xop *x, const struct mma *o, const char *name,
	uint32_t address)
{
	char text[100];

	if (address >> 16 == 0 || (o->shape.half && address >> 16 == (o->d >> 16)
			&& address >> 16 == 16))
		return true;
	snprintf(text, sizeof text, "lane %%u in the address of %s", name);
	return refuse(w, x, o, text, address >> 16);
}

static bool tensor_inside(struct warp *w, const struct xop *x, const struct mma *o,
	const char *name, uint32_t address, unsigned columns, struct cta *const cta[2])
{
	if (!lane_fits(w, x, o, name, address))
		return false;
	for (unsigned h = 0; h < o->shape.ctas; h++)
		if (!tmem_check(w, x, cta[h], address & 0xffff, TMEM_LANES, columns))
			return false;
	return true;
}

static bool inside(struct warp *w, const struct xop *x, const struct mma *o)
{
	const struct tc_form *f = &o->args->form;
	const struct tc_shape *s = &o->shape;
	struct cta *cta[2];
	unsigned groups;

	tc_ctas(w->cta, f->pair, cta);
	if (!f->a_tmem && !shared_inside(w, x, o, false, cta))
		return false;
	if (!shared_inside(w, x, o, true, cta))
		return false;
	if (!tensor_inside(w, x, o, "D", o->d, tc_d_columns(s), cta))
		return false;
	if (f->a_tmem && !tensor_inside(w, x, o, "A", (uint32_t)o->a, tc_a_columns(s), cta))
		return false;
	if (f->sparse && !tensor_inside(w, x, o, "the metadata", o->meta, tc_meta_columns(s), cta))
		return false;
	for (unsigned k = 0; s->scales && k < 2; k++)
		if (!tensor_inside(w, x, o, "the scales", o->scales[k] & 0xffff,
				tc_scale_columns(s, k, &groups), cta))
			return false;
	return true;
}

static bool valid(struct warp *w, const struct xop *x, struct mma *o)
{
	const struct args *a = o->args;
	const char *why;
	uint32_t value;

	if (a->form.pair && w->cluster->info.nctas % 2)
		return refuse(w, x, o, "the cluster has no pairs of CTAs", 0);
	if (!tc_shape_of(&a->form, o->idesc, a->form.pair ? 2 : 1, &o->shape, &why, &value))
		return refuse(w, x, o, why, value);
	if (a->masked && (o->mask >> 56 & 63) > (o->shape.m == 32 ? 16u : 32u))
		return refuse(w, x, o, "a column shift of %u in the zero-column mask",
			(uint32_t)(o->mask >> 56 & 63));
	return inside(w, x, o);
}

/* ---- events ---- */

static void area_d(struct tc_areas *areas, const struct mma *o, const struct cta *c, unsigned h)
{
	tc_area(areas, o->enable ? MODE_RMW : MODE_WRITE, OPERAND_D, 1u << c->rank, o->d & 0xffff,
		tc_d_columns(&o->shape));
	for (unsigned g = 0; g < o->shape.groups; g++)
		for (unsigned r = 0; r < o->shape.rows; r++)
			if (!disabled(o, h, d_lane(o, g, r)))
				tc_area_lanes(areas, d_lane(o, g, r), 1);
}

/* A and metadata are repeated for each group of columns of D, scales in the window of each warp. */
static void area_rows(struct tc_areas *areas, const struct mma *o, enum ev_operand operand,
	uint32_t ctas, uint32_t address, unsigned columns)
{
	const struct tc_shape *s = &o->shape;

	tc_area(areas, MODE_READ, operand, ctas, address & 0xffff, columns);
	for (unsigned g = 0; g < s->groups; g++)
		for (unsigned r = 0; r < s->rows; r++)
			tc_area_lanes(areas, (address >> 16) + tc_lane(s, r) + g * s->rows, 1);
}

static void areas_in(struct tc_areas *areas, const struct mma *o, uint32_t ctas)
{
	const struct tc_form *f = &o->args->form;
	const struct tc_shape *s = &o->shape;
	unsigned groups;

	if (f->a_tmem)
		area_rows(areas, o, OPERAND_A, ctas, (uint32_t)o->a, tc_a_columns(s));
	if (f->sparse)
		area_rows(areas, o, OPERAND_METADATA, ctas, o->meta
			+ (tc_meta_columns(s) == 2 && s->a_type > TC_tf32 ? 0 : s->selector),
			s->a_type > TC_tf32 ? 2 : 1);
	for (unsigned k = 0; s->scales && k < 2; k++) {
		tc_area(areas, MODE_READ, OPERAND_SCALES, ctas, o->scales[k] & 0xffff,
			tc_scale_columns(s, k, &groups));
		tc_area_lanes(areas, 0, TMEM_LANES);
	}
}

/* What must be equal for two mma to be pipelined: sizes, kind and the type of D. */
static uint64_t shape_key(const struct mma *o)
{
	const struct tc_form *f = &o->args->form;

	return o->shape.m | (uint64_t)o->shape.n << 16 | (uint64_t)f->kind << 32
		| (uint64_t)f->pair << 40 | (uint64_t)f->ws << 41 | (uint64_t)o->shape.acc << 48;
}

static void emit(struct warp *w, const struct xop *x, uint32_t lanes, const struct mma *o)
{
	const struct args *a = o->args;
	const struct tc_shape *s = &o->shape;
	struct cta *cta[2];
	const uint32_t ctas = tc_mask(cta, tc_ctas(w->cta, a->form.pair, cta));
	struct event_tcgen05 t = { .op = TC_MMA, .ctas = ctas, .d = o->d, .shape = shape_key(o),
		.columns = s->n, .collector = (enum ev_collector)a->collector, .buffer = a->buffer,
		.matrix = a->buffer ? o->b : o->a, .pair = a->form.pair, .ws = a->form.ws };
	struct tc_areas areas = { .n = 0 };
	uint32_t piece[TC_B * TC_ROW_B / 16];

	if (!a->form.a_tmem)
		tc_spans(w, &t, piece, tc_a_pieces(s, o->a, piece));
	t.part = t.spans.n;
	tc_spans(w, &t, piece, tc_b_pieces(s, o->b, more_columns(o), piece));
	for (unsigned h = 0; h < s->ctas; h++)
		area_d(&areas, o, cta[h], h);
	areas_in(&areas, o, ctas);
	tc_emit(w, x, lanes, &o->o.g.op, t, &areas);
}

static struct mma *new_mma(struct warp *w, const struct xop *x, unsigned l)
{
	const struct args *a = x->i.p;
	struct mma *o = async_new(w, x, 1u << l, sizeof *o);

	o->args = a;
	o->o.g.op.perform = perform;
	o->d = r32(w, a->d)[l];
	o->a = a->form.a_tmem ? r32(w, a->a)[l] : r64(w, a->a)[l];
	o->b = r64(w, a->b)[l];
	o->idesc = r32(w, a->idesc)[l];
	o->enable = a->imm_enable ? a->enable : (rp(w, a->pred)[0] ^ a->flip) >> l & 1;
	o->meta = a->form.sparse ? r32(w, a->meta)[l] : 0;
	o->mask = a->masked ? r64(w, a->mask)[l] : 0;
	for (unsigned k = 0; k < a->ndisabled; k++)
		o->disabled[k] = r32(w, a->disabled[k])[l];
	for (unsigned k = 0; a->form.scale_vec && k < 2; k++)
		o->scales[k] = r32(w, a->scales[k])[l];
	return o;
}

static enum step op_mma(struct warp *w, const struct xop *x, uint32_t lanes)
{
	for EACH_LANE(l, lanes) {
		struct mma *o = new_mma(w, x, l);

		if (!valid(w, x, o)) {
			async_free(w->cluster, o);
			return STEP_FAULT;
		}
		if (w->sink)
			emit(w, x, lanes, o);
		tc_issue(w, &o->o);
	}
	return STEP_NEXT;
}

/* ---- decoding ---- */

/* KIND(kind, N of .scale_vec::NX without a qualifier; 0: no scales) */
#define KINDS \
	KIND(f16, 0) KIND(tf32, 0) KIND(f8f6f4, 0) KIND(i8, 0) KIND(mxf8f6f4, 1) KIND(mxf4, 2) \
	KIND(mxf4nvf4, 2)

static bool decode_kind(struct decoder *d, const struct ptx_insn *i, struct tc_form *f)
{
	switch (ptx_pick(i, MG_kind)) {
#define KIND(k, vec) case MOD_kind_##k: f->kind = K_##k; f->scale_vec = vec; break;
	KINDS
#undef KIND
	default: return dec_unsupported(d, "this kind of tcgen05.mma");
	}
	if (f->kind == K_mxf4nvf4 && (ptx_has(i, MOD_scale_vec_4X) || ptx_has(i, MOD_block16)))
		f->scale_vec = 4;
	return true;
}

/* The operands behind the instruction descriptor */
static bool decode_rest(struct decoder *d, const struct ptx_insn *i, unsigned at, struct args *a)
{
	if (a->form.scale_vec) {
		for (unsigned k = 0; k < 2; k++)
			if (at >= i->noperands || !dec_tmem(d, &i->operand[at++], &a->scales[k]))
				return dec_unsupported(d, "a block-scaled tcgen05.mma without scales");
	} else if (at < i->noperands && i->operand[at].kind == PO_VEC) {
		const struct ptx_operand *v = &i->operand[at++];

		if (v->n != (a->form.pair ? 8 : 4))
			return dec_unsupported(d, "disable-output-lane of %u elements", v->n);
		a->ndisabled = (uint8_t)v->n;
		for (unsigned k = 0; k < a->ndisabled; k++)
			a->disabled[k] = dec_src(d, &v->list[k], TY_b32);
	}
	if (at >= i->noperands)
		return dec_unsupported(d, "tcgen05.mma without enable-input-d");
	if (i->operand[at].kind == PO_IMM) {
		a->imm_enable = true;
		a->enable = i->operand[at].imm;
	} else {
		a->pred = dec_pred(d, &i->operand[at], &a->flip);
	}
	if (++at == i->noperands)
		return true;
	if (a->form.ws) {
		a->masked = true;
		a->mask = dec_src(d, &i->operand[at], TY_b64);
		return true;
	}
	if (i->operand[at].kind != PO_IMM || i->operand[at].imm < 0 || i->operand[at].imm > 15)
		return dec_unsupported(d, "scale-input-d that is not a constant from 0 to 15");
	if (a->form.kind != K_f16 && a->form.kind != K_tf32)
		return dec_unsupported(d, "scale-input-d with this kind of tcgen05.mma");
	a->scale_d = (uint8_t)i->operand[at].imm;
	return true;
}

static void decode_collector(const struct ptx_insn *i, struct args *a)
{
	const enum ptx_mod m = ptx_pick(i, MG_collector);
	const unsigned c = (unsigned)(m - MOD_collector_a_fill);

	if (!m)
		return;
	a->collector = (uint8_t)(COLLECTOR_FILL + c % 4);
	a->buffer = (uint8_t)(c / 4);
}

static bool decode(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool ws,
	bool sparse)
{
	struct args *a = dec_alloc(d, sizeof *a);
	const struct ptx_operand *oa = &i->operand[1];
	unsigned at = 3;

	a->form = (struct tc_form){ .ws = ws, .sparse = sparse, .pair = ptx_has(i, MOD_cta_group_2),
		.a_tmem = oa->kind == PO_ADDR, .ashift = ptx_has(i, MOD_ashift) };
	decode_collector(i, a);
	if (a->form.ashift && !a->form.a_tmem)
		return dec_unsupported(d, ".ashift of a matrix in shared memory");
	if (!decode_kind(d, i, &a->form) || !dec_tmem(d, &i->operand[0], &a->d))
		return false;
	if (a->form.a_tmem && !dec_tmem(d, oa, &a->a))
		return false;
	if (!a->form.a_tmem)
		a->a = dec_src(d, oa, TY_b64);
	a->b = dec_src(d, &i->operand[2], TY_b64);
	if (sparse && !dec_tmem(d, &i->operand[at++], &a->meta))
		return false;
	a->idesc = dec_src(d, &i->operand[at++], TY_b32);
	x->i.p = a;
	x->fn = op_mma;
	return decode_rest(d, i, at, a);
}

#define MMA(id, ws, sparse) \
DECODER(id) \
{ \
	return decode(d, i, x, ws, sparse); \
}
MMA(tcgen05_mma, false, false)
MMA(tcgen05_mma_sp, false, true)
MMA(tcgen05_mma_ws, true, false)
MMA(tcgen05_mma_ws_sp, true, true)
