/* tcgen05_mma: D += A * B with D in tensor memory, by one CTA or by a pair. Operands are read and D
 * is written when the operation is performed, as late as the ISA allows. */
#include "internal.h"
#include "num.h"
#include "tcgen05_event.h"
#include "tcgen05_tile.h"
#include "tmem.h"

#include <math.h>
#include <stdio.h>

#include "libconsan/ptx/ptx.h"

enum kind { K_f16, K_tf32, K_f8f6f4, K_i8, K_mxf8f6f4, K_mxf4, K_mxf4nvf4 };

struct args {
	uint8_t kind;              /* enum kind */
	bool pair, ws, a_tmem;
	uint8_t collector, buffer; /* enum ev_collector; 0: A, 1 to 4: B0 to B3 */
	bool imm_enable, enable;   /* enable-input-d is a constant */
	uint8_t scale_vec;         /* scales of a row along k: 1, 2, 4; 0: none */
	uint8_t ndisabled;         /* words of disable-output-lane */
	uint8_t scale_d;           /* scale-input-d */
	uint32_t pred, flip;       /* slot of enable-input-d */
	uint32_t d, b, idesc;      /* slots */
	uint32_t a;                /* slot of the descriptor, or of the address in tensor memory */
	uint32_t scales[2];        /* slots of the addresses of the scales of A and B */
	uint32_t disabled[8];      /* slots */
};

struct mma {
	struct tc_op o;
	const struct args *args;
	bool enable;
	uint32_t d, idesc, scales[2], disabled[8];
	uint64_t a, b;
};

/* ---- the instruction descriptor (ISA, "Instruction descriptor") ---- */

static unsigned field(uint32_t idesc, unsigned at, unsigned bits)
{
	return idesc >> at & ((1u << bits) - 1);
}
static unsigned m_of(uint32_t idesc) { return 16 * field(idesc, 24, 5); }
static unsigned n_of(uint32_t idesc) { return 8 * field(idesc, 17, 6); }

static const int8_t f8f6f4[8] = { TC_e4m3, TC_e5m2, -1, TC_e2m3_x, TC_e3m2_x, TC_e2m1_x, -1, -1 };

/* -1: not a type of this kind */
static int type_of(enum kind k, unsigned code, bool tmem)
{
	int t;

	switch (k) {
	case K_f16: return code == 0 ? TC_f16 : code == 1 ? TC_bf16 : -1;
	case K_tf32: return code == 2 ? TC_tf32 : -1;
	case K_i8: return code == 0 ? TC_u8 : code == 1 ? TC_s8 : -1;
	case K_f8f6f4: case K_mxf8f6f4:
		t = f8f6f4[code];
		return tmem && t >= TC_e3m2_x && t <= TC_e2m1_x ? t - TC_e3m2_x + TC_e3m2_b : t;
	case K_mxf4: case K_mxf4nvf4: return code == 1 ? TC_e2m1 : -1;
	}
	return -1;
}

static unsigned k_of(enum kind k)
{
	switch (k) {
	case K_tf32: return 8;
	case K_f16: return 16;
	case K_mxf4: case K_mxf4nvf4: return 64;
	default: return 32;
	}
}

/* ---- performing ---- */

struct shape {
	unsigned m, n, k, ctas;    /* m, n: of one CTA: rows of A and D, rows of B */
	unsigned groups;           /* into which D's columns are split over the lanes */
};

static struct shape shape_of(const struct mma *o, unsigned ctas)
{
	struct shape s = { .k = k_of(o->args->kind), .ctas = ctas, .groups = 1 };
	const unsigned m = m_of(o->idesc);

	s.m = m / (o->args->pair ? 2 : 1);
	s.n = n_of(o->idesc) / (o->args->pair ? 2 : 1);
	if (o->args->ws || o->args->pair)
		s.groups = TMEM_LANES / s.m;
	return s;
}

/* The lane of a row of a CTA's D: half of each warp's window for M = 64 of one CTA. */
static unsigned lane_of(const struct shape *s, unsigned row)
{
	return s->groups == 1 && s->m == 64 ? row / 16 * 32 + row % 16 : row;
}

static unsigned pieces_of(uint64_t desc, bool mn, unsigned rows, unsigned k, unsigned bits,
	uint32_t *out)
{
	const struct wg_desc d = wg_desc_decode(desc);

	if (!mn) {
		wg_desc_pieces(&d, false, rows, out);
		return 2 * rows;
	}
	wg_desc_mn_pieces(&d, k, rows * bits / 128, out);
	return k * (rows * bits / 128);
}

static void gather(unsigned char *to, const struct cta *c, const uint32_t *piece, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		memcpy(to + 16 * i, c->shared + piece[i], 16);
}

/* A of one CTA. In tensor memory it is repeated for each group of columns: the first copy is
 * read. */
static void gather_a(const struct mma *o, const struct shape *s, const struct cta *c, bool mn,
	unsigned bits, struct tc_scratch *x, unsigned char *to)
{
	unsigned n;

	if (!o->args->a_tmem) {
		n = pieces_of(o->a, mn, s->m, s->k, bits, x->piece);
		gather(to, c, x->piece, n);
		return;
	}
	for (unsigned r = 0; r < s->m; r++)
		memcpy(to + 32 * r, &c->async->tmem.cell[((uint32_t)o->a >> 16) + lane_of(s, r)]
			[o->a & 0xffff], 32);
}

/* B, half of whose rows are in the shared memory of each CTA of a pair. An MN-major image has all
 * columns of a row of k together. */
static void gather_b(const struct mma *o, const struct shape *s, struct cta *const cta[2], bool mn,
	unsigned bits, struct tc_scratch *x)
{
	const unsigned n = pieces_of(o->b, mn, s->n, s->k, bits, x->piece), row = n / s->k;

	for (unsigned h = 0; h < s->ctas; h++) {
		if (!mn) {
			gather(x->image_b + h * 16 * n, cta[h], x->piece, n);
			continue;
		}
		for (unsigned k = 0; k < s->k; k++)
			gather(x->image_b + 16 * row * (k * s->ctas + h), cta[h],
				x->piece + k * row, row);
	}
}

/* Byte j of the cell of a row (ISA, "Scale factors": 32 lanes, repeated in each warp's window). */
static float scale_at(const struct cta *c, uint32_t addr, unsigned row, unsigned j, bool ue8m0)
{
	const uint32_t cell = c->async->tmem.cell[row % 32][(addr & 0xffff) + row / 32];
	const uint8_t byte = (uint8_t)(cell >> 8 * j);

	return ue8m0 ? num_from_ue8m0(byte) : num_from_e4m3(byte & 0x7f);
}

static void scales_of(const struct mma *o, unsigned which, const struct cta *c, unsigned rows,
	float *out)
{
	const unsigned n = o->args->scale_vec;
	const unsigned id = which ? field(o->idesc, 4, 2) : field(o->idesc, 29, 2);

	for (unsigned r = 0; r < rows; r++)
		for (unsigned j = 0; j < n; j++)
			out[r * n + j] = scale_at(c, o->scales[which], r, (id + j) & 3,
				field(o->idesc, 23, 1));
}

static bool disabled(const struct mma *o, unsigned h, unsigned lane)
{
	const unsigned word = 4 * h + lane / 32;

	return word < o->args->ndisabled && o->disabled[word] >> lane % 32 & 1;
}

static void cells_of(const struct mma *o, const struct shape *s, struct cta *c, unsigned h,
	uint32_t **cell)
{
	for (unsigned g = 0; g < s->groups; g++)
		for (unsigned r = 0; r < s->m; r++) {
			const unsigned lane = (o->d >> 16) + lane_of(s, r) + g * s->m;

			cell[g * s->m + r] = lane >= TMEM_LANES || disabled(o, h, lane) ? NULL
				: &c->async->tmem.cell[lane][o->d & 0xffff];
		}
}

static void perform(struct cluster *c, struct async_op *op)
{
	struct mma *o = (struct mma *)op;
	const struct args *a = o->args;
	struct cta *cta[2];
	const struct shape s = shape_of(o, tc_ctas(op->warp->cta, a->pair, cta));
	struct tc_scratch *x = ex_scratch(c->worker, sizeof *x);
	const bool a_mn = !a->a_tmem && field(o->idesc, 15, 1), b_mn = field(o->idesc, 16, 1);
	const unsigned bits = 256 / s.k;
	struct tc_tile t = {
		.m = (uint16_t)s.m, .n = (uint16_t)(s.n * s.ctas), .k = (uint16_t)s.k,
		.a_type = (uint8_t)type_of(a->kind, field(o->idesc, 7, 3), a->a_tmem),
		.b_type = (uint8_t)type_of(a->kind, field(o->idesc, 10, 3), false),
		.acc = a->scale_vec ? TC_ACC_f32 : field(o->idesc, 4, 2) == 0 ? TC_ACC_f16
			: field(o->idesc, 4, 2) == 2 ? TC_ACC_s32 : TC_ACC_f32,
		.a_mn = a_mn, .b_mn = b_mn, .accumulate = o->enable,
		.negate_a = field(o->idesc, 13, 1), .negate_b = field(o->idesc, 14, 1),
		.satfinite = a->kind == K_i8 && field(o->idesc, 3, 1),
		.scale_d = ldexpf(1, -a->scale_d),
		.b = x->image_b, .groups = s.groups, .cell = x->cell,
	};

	tc_begin(c, &o->o);
	gather_b(o, &s, cta, b_mn, bits, x);
	for (unsigned h = 0; h < s.ctas; h++) {
		gather_a(o, &s, cta[h], a_mn, bits, x, x->image_a);
		t.a = x->image_a;
		if (a->scale_vec) {
			scales_of(o, 0, cta[h], s.m, x->scale_a);
			scales_of(o, 1, cta[h], t.n, x->scale_b);
			t.scale_a = x->scale_a;
			t.scale_b = x->scale_b;
			t.block = (uint16_t)(s.k / a->scale_vec);
		}
		cells_of(o, &s, cta[h], h, x->cell);
		SIMD_PICK(tc_tile)(&t, x);
	}
	ex_work(op->warp);
	async_free(c, op);
}

/* ---- issue ---- */

/* format: of the value, or without it */
static enum step refuse(struct warp *w, const struct xop *x, const struct mma *o,
	const char *format, uint32_t value)
{
	char text[100];

	snprintf(text, sizeof text, format, value);
	return ex_fault(w, x, o->o.g.op.lanes, FAULT_TCGEN05_OPERAND, SP_ANY, value, 0, "%s", text);
}

static bool valid(struct warp *w, const struct xop *x, const struct mma *o)
{
	const struct args *a = o->args;
	const unsigned m = m_of(o->idesc), n = n_of(o->idesc);

	if (field(o->idesc, 2, 1))
		return !refuse(w, x, o, "the instruction descriptor is of a sparse matrix", o->idesc);
	if (a->pair ? m != 128 && m != 256 : a->ws ? m != 32 && m != 64 && m != 128
			: m != 64 && m != 128)
		return !refuse(w, x, o, "M of %u in the instruction descriptor", m);
	if (n < 8 || n > TC_N || (a->pair && n % 16))
		return !refuse(w, x, o, "N of %u in the instruction descriptor", n);
	if (type_of(a->kind, field(o->idesc, 7, 3), false) < 0
			|| type_of(a->kind, field(o->idesc, 10, 3), false) < 0)
		return !refuse(w, x, o, "the types in the instruction descriptor 0x%x", o->idesc);
	if (a->pair && w->cluster->info.nctas % 2)
		return !refuse(w, x, o, "the cluster has no pairs of CTAs", 0);
	return true;
}

static bool operand_inside(struct warp *w, const struct xop *x, const char *name, uint64_t desc,
	bool mn, const struct shape *s, unsigned rows, struct cta *const cta[2])
{
	uint32_t piece[2 * TC_N];
	unsigned n;

	if (desc >> 61 == 1)
		return !ex_refuse_op(w, x, "swizzling of 128 bytes by atoms of 32 bytes is not supported");
	n = pieces_of(desc, mn, rows, s->k, 256 / s->k, piece);
	return tc_pieces_inside(w, x, name, piece, n, cta, s->ctas);
}

static bool inside(struct warp *w, const struct xop *x, const struct mma *o)
{
	const struct args *a = o->args;
	struct cta *cta[2];
	const struct shape s = shape_of(o, tc_ctas(w->cta, a->pair, cta));
	const unsigned columns = n_of(o->idesc) / s.groups;

	if (!a->a_tmem && !operand_inside(w, x, "A", o->a, field(o->idesc, 15, 1), &s, s.m, cta))
		return false;
	if (!operand_inside(w, x, "B", o->b, field(o->idesc, 16, 1), &s, s.n, cta))
		return false;
	for (unsigned h = 0; h < s.ctas; h++) {
		if (!tmem_check(w, x, cta[h], o->d & 0xffff, TMEM_LANES, columns))
			return false;
		if (a->a_tmem && !tmem_check(w, x, cta[h], o->a & 0xffff, TMEM_LANES, 8))
			return false;
		for (unsigned k = 0; a->scale_vec && k < 2; k++)
			if (!tmem_check(w, x, cta[h], o->scales[k] & 0xffff, 32,
					((k ? n_of(o->idesc) : s.m) + 31) / 32))
				return false;
	}
	return true;
}

/* ---- events ---- */

static void area_d(struct tc_areas *s, const struct mma *o, const struct shape *shape,
	const struct cta *c, unsigned h)
{
	tc_area(s, o->enable ? MODE_RMW : MODE_WRITE, OPERAND_D, 1u << c->rank, o->d & 0xffff,
		n_of(o->idesc) / shape->groups);
	for (unsigned g = 0; g < shape->groups; g++)
		for (unsigned r = 0; r < shape->m; r++) {
			const unsigned lane = (o->d >> 16) + lane_of(shape, r) + g * shape->m;

			if (lane < TMEM_LANES && !disabled(o, h, lane))
				tc_area_lanes(s, lane, 1);
		}
}

/* Matrix A in tensor memory is repeated for each group of columns of D, scales in the window of
 * each warp. */
static void areas_in(struct tc_areas *s, const struct mma *o, const struct shape *shape,
	uint32_t ctas)
{
	if (o->args->a_tmem) {
		tc_area(s, MODE_READ, OPERAND_A, ctas, o->a & 0xffff, 8);
		for (unsigned g = 0; g < shape->groups; g++)
			for (unsigned r = 0; r < shape->m; r++)
				tc_area_lanes(s, ((uint32_t)o->a >> 16) + lane_of(shape, r) + g * shape->m,
					1);
	}
	for (unsigned k = 0; o->args->scale_vec && k < 2; k++) {
		tc_area(s, MODE_READ, OPERAND_SCALES, ctas, o->scales[k] & 0xffff,
			((k ? n_of(o->idesc) : shape->m) + 31) / 32);
		tc_area_lanes(s, 0, TMEM_LANES);
	}
}

/* What must be equal for two mma to be pipelined: sizes, kind and the type of D. */
static uint64_t shape_key(const struct mma *o)
{
	const struct args *a = o->args;

	return m_of(o->idesc) | (uint64_t)n_of(o->idesc) << 16 | (uint64_t)a->kind << 32
		| (uint64_t)a->pair << 40 | (uint64_t)a->ws << 41
		| (a->scale_vec ? 0 : (uint64_t)field(o->idesc, 4, 2) << 48);
}

static void emit(struct warp *w, const struct xop *x, uint32_t lanes, const struct mma *o)
{
	const struct args *a = o->args;
	struct cta *cta[2];
	const struct shape s = shape_of(o, tc_ctas(w->cta, a->pair, cta));
	const uint32_t ctas = tc_mask(cta, s.ctas);
	struct event_tcgen05 t = { .op = TC_MMA, .ctas = ctas, .d = o->d, .shape = shape_key(o),
		.columns = (uint16_t)n_of(o->idesc), .collector = (enum ev_collector)a->collector,
		.buffer = a->buffer, .matrix = a->buffer ? o->b : o->a, .pair = a->pair, .ws = a->ws };
	struct tc_areas areas = { .n = 0 };
	uint32_t piece[2 * TC_N];

	if (!a->a_tmem)
		tc_spans(w, &t, piece, pieces_of(o->a, field(o->idesc, 15, 1), s.m, s.k, 256 / s.k,
			piece));
	t.part = t.spans.n;
	tc_spans(w, &t, piece, pieces_of(o->b, field(o->idesc, 16, 1), s.n, s.k, 256 / s.k, piece));
	for (unsigned h = 0; h < s.ctas; h++)
		area_d(&areas, o, &s, cta[h], h);
	areas_in(&areas, o, &s, ctas);
	tc_emit(w, x, lanes, &o->o.g.op, t, &areas);
}

static enum step op_mma(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct args *a = x->i.p;

	for EACH_LANE(l, lanes) {
		struct mma *o = async_new(w, x, 1u << l, sizeof *o);

		o->args = a;
		o->o.g.op.perform = perform;
		o->d = r32(w, a->d)[l];
		o->a = a->a_tmem ? r32(w, a->a)[l] : r64(w, a->a)[l];
		o->b = r64(w, a->b)[l];
		o->idesc = r32(w, a->idesc)[l];
		o->enable = a->imm_enable ? a->enable : (rp(w, a->pred)[0] ^ a->flip) >> l & 1;
		for (unsigned k = 0; k < a->ndisabled; k++)
			o->disabled[k] = r32(w, a->disabled[k])[l];
		for (unsigned k = 0; a->scale_vec && k < 2; k++)
			o->scales[k] = r32(w, a->scales[k])[l];
		if (!valid(w, x, o) || !inside(w, x, o)) {
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

static bool decode_kind(struct decoder *d, const struct ptx_insn *i, struct args *a)
{
	switch (ptx_pick(i, MG_kind)) {
	case MOD_kind_f16: a->kind = K_f16; break;
	case MOD_kind_tf32: a->kind = K_tf32; break;
	case MOD_kind_f8f6f4: a->kind = K_f8f6f4; break;
	case MOD_kind_i8: a->kind = K_i8; break;
	case MOD_kind_mxf8f6f4: a->kind = K_mxf8f6f4; a->scale_vec = 1; break;
	case MOD_kind_mxf4: a->kind = K_mxf4; a->scale_vec = 2; break;
	case MOD_kind_mxf4nvf4: a->kind = K_mxf4nvf4; a->scale_vec = 2; break;
	default: return dec_unsupported(d, "this kind of tcgen05.mma");
	}
	if (a->kind == K_mxf4nvf4 && (ptx_has(i, MOD_scale_vec_4X) || ptx_has(i, MOD_block16)))
		a->scale_vec = 4;
	return true;
}

static bool decode_rest(struct decoder *d, const struct ptx_insn *i, unsigned at, struct args *a)
{
	if (a->scale_vec) {
		for (unsigned k = 0; k < 2; k++)
			if (at >= i->noperands || !dec_tmem(d, &i->operand[at++], &a->scales[k]))
				return dec_unsupported(d, "a block-scaled tcgen05.mma without scales");
	} else if (at < i->noperands && i->operand[at].kind == PO_VEC) {
		const struct ptx_operand *v = &i->operand[at++];

		a->ndisabled = (uint8_t)(v->n < 8 ? v->n : 8);
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
	if (++at < i->noperands && !a->ws) {
		if (i->operand[at].kind != PO_IMM)
			return dec_unsupported(d, "scale-input-d that is not a constant");
		a->scale_d = (uint8_t)i->operand[at].imm;
	} else if (at < i->noperands) {
		return dec_unsupported(d, "tcgen05.mma.ws with a zero-column mask");
	}
	return true;
}

static bool decode(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool ws)
{
	struct args *a = dec_alloc(d, sizeof *a);
	const struct ptx_operand *oa = &i->operand[1];

	dec_unchecked(d, TMEM_UNCHECKED);
	a->ws = ws;
	a->pair = ptx_has(i, MOD_cta_group_2);
	a->a_tmem = oa->kind == PO_ADDR;
	if (ptx_pick(i, MG_collector)) {
		const unsigned c = (unsigned)(ptx_pick(i, MG_collector) - MOD_collector_a_fill);

		a->collector = (uint8_t)(COLLECTOR_FILL + c % 4);
		a->buffer = (uint8_t)(c / 4);
	}
	if (ptx_has(i, MOD_ashift))
		return dec_unsupported(d, "tcgen05.mma with .ashift");
	if (!decode_kind(d, i, a) || !dec_tmem(d, &i->operand[0], &a->d))
		return false;
	if (a->a_tmem && !dec_tmem(d, oa, &a->a))
		return false;
	if (!a->a_tmem)
		a->a = dec_src(d, oa, TY_b64);
	a->b = dec_src(d, &i->operand[2], TY_b64);
	a->idesc = dec_src(d, &i->operand[3], TY_b32);
	x->i.p = a;
	x->fn = op_mma;
	return decode_rest(d, i, 4, a);
}

DECODER(tcgen05_mma)
{
	return decode(d, i, x, false);
}

DECODER(tcgen05_mma_ws)
{
	return decode(d, i, x, true);
}
