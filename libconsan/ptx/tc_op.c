/* tc_op: see tc_op.h. */
#include "tc_op.h"

#include <stdio.h>
#include <string.h>

#include "opcodes.h"
#include "tc_desc.h"
#include "wg_desc.h"

/* ---- the text of a tcgen05.mma ---- */

/* KIND(kind, N of .scale_vec::NX without a qualifier; 0: no scales) */
#define KINDS \
	KIND(f16, 0) KIND(tf32, 0) KIND(f8f6f4, 0) KIND(i8, 0) KIND(mxf8f6f4, 1) KIND(mxf4, 2) \
	KIND(mxf4nvf4, 2)

static const char *kind_of(const struct ptx_insn *i, struct tc_form *f)
{
	switch (ptx_pick(i, MG_kind)) {
#define KIND(k, vec) case MOD_kind_##k: f->kind = K_##k; f->scale_vec = vec; break;
	KINDS
#undef KIND
	default: return "this kind of tcgen05.mma";
	}
	if (f->kind == K_mxf4nvf4 && (ptx_has(i, MOD_scale_vec_4X) || ptx_has(i, MOD_block16)))
		f->scale_vec = 4;
	return NULL;
}

/* The operands behind the instruction descriptor */
static const char *rest_of(const struct ptx_insn *i, unsigned at, struct tc_syntax *s)
{
	const struct ptx_operand *o;

	if (s->form.scale_vec) {
		if (at + 2 > i->noperands)
			return "a block-scaled tcgen05.mma without scales";
		s->scales[0] = &i->operand[at++];
		s->scales[1] = &i->operand[at++];
	} else if (at < i->noperands && i->operand[at].kind == PO_VEC) {
		s->disabled = &i->operand[at++];
		if (s->disabled->n != (s->form.pair ? 8 : 4))
			return "disable-output-lane of another number of elements";
	}
	if (at >= i->noperands)
		return "tcgen05.mma without enable-input-d";
	s->enable = &i->operand[at++];
	if (at == i->noperands)
		return NULL;
	o = &i->operand[at];
	if (s->form.ws) {
		s->mask = o;
		return NULL;
	}
	if (o->kind != PO_IMM || o->imm < 0 || o->imm > 15)
		return "scale-input-d that is not a constant from 0 to 15";
	if (s->form.kind != K_f16 && s->form.kind != K_tf32)
		return "scale-input-d with this kind of tcgen05.mma";
	s->scale_d = (uint8_t)o->imm;
	return NULL;
}

const char *tc_syntax_of(const struct ptx_insn *i, struct tc_syntax *s)
{
	const bool sparse = i->op == OP_tcgen05_mma_sp || i->op == OP_tcgen05_mma_ws_sp;
	const enum ptx_mod m = ptx_pick(i, MG_collector);
	const char *why;
	unsigned at = 3;

	*s = (struct tc_syntax){ .d = &i->operand[0], .a = &i->operand[1], .b = &i->operand[2],
		.form = { .ws = i->op == OP_tcgen05_mma_ws || i->op == OP_tcgen05_mma_ws_sp,
			.sparse = sparse, .pair = ptx_has(i, MOD_cta_group_2),
			.a_tmem = i->operand[1].kind == PO_ADDR, .ashift = ptx_has(i, MOD_ashift) } };
	if (m) {
		s->collector = (uint8_t)(COLLECTOR_FILL + (m - MOD_collector_a_fill) % 4);
		s->buffer = (uint8_t)((m - MOD_collector_a_fill) / 4);
	}
	if (s->form.ashift && !s->form.a_tmem)
		return ".ashift of a matrix in shared memory";
	why = kind_of(i, &s->form);
	if (why)
		return why;
	if (sparse)
		s->meta = &i->operand[at++];
	s->idesc = &i->operand[at++];
	return rest_of(i, at, s);
}

/* ---- checks ---- */

/* top: the highest piece */
static bool refuse_pieces(struct refusal *r, const char *name, uint32_t top, const struct tc_view *v)
{
	for (unsigned h = 0; h < v->n; h++)
		if (top + 16 > v->cta[h].shared_bytes)
			return refusal_set(r, FAULT_TCGEN05_OPERAND, SP_SHARED, top, 0,
				"%s reaches to 0x%x, beyond the %u bytes of shared memory of CTA %u", name,
				top + 15, v->cta[h].shared_bytes, v->cta[h].rank);
	return false;
}

static bool refuse_columns_of(struct refusal *r, uint32_t at, unsigned lanes, unsigned columns,
	const struct tc_view *v)
{
	for (unsigned h = 0; h < v->n; h++)
		if (refuse_tmem(r, v->cta[h].units, v->cta[h].rank, at, lanes, columns))
			return true;
	return false;
}

unsigned tc_more_columns(const struct tc_mma *m)
{
	return m->syntax->mask ? ((unsigned)(m->mask >> 56 & 63) + 15) & ~15u : 0;
}

static bool refuse_matrix_of(struct refusal *r, const struct tc_mma *m, bool is_b,
	const struct tc_view *v, struct tc_book *book)
{
	const struct tc_shape *s = &m->shape;
	const uint64_t desc = is_b ? m->b : m->a;
	const struct tc_desc d = tc_desc_decode(desc);
	const char *name = is_b ? "B" : "A", *why;
	const struct tc_reads *reads;

	why = tc_desc_fault(&d, is_b ? s->b_mn : s->a_mn, (is_b ? s->b_bytes : s->a_bytes) / 16u,
		s->a_type == TC_tf32);
	if (why)
		return refusal_set(r, FAULT_TCGEN05_OPERAND, SP_ANY, 0, 0, "the descriptor of %s has %s",
			name, why);
	reads = is_b ? tc_book_b(book, s, m->b, tc_more_columns(m)) : tc_book_a(book, s, m->a);
	return refuse_pieces(r, name, reads->top, v);
}

/* Half of the datapath: lanes 0 or 16 on, else lane 0 (ISA, "Data Path Layout Organization"). */
static bool refuse_cells(struct refusal *r, const struct tc_mma *m, const char *name,
	uint32_t address, unsigned columns, const struct tc_view *v)
{
	const uint32_t lane = address >> 16;

	if (lane && !(m->shape.half && lane == m->d >> 16 && lane == 16))
		return refusal_set(r, FAULT_TCGEN05_OPERAND, SP_ANY, lane, 0,
			"lane %u in the address of %s", lane, name);
	return refuse_columns_of(r, address & 0xffff, TMEM_LANES, columns, v);
}

static bool refuse_operands(struct refusal *r, const struct tc_mma *m, const struct tc_view *v,
	struct tc_book *book)
{
	const struct tc_form *f = &m->syntax->form;
	const struct tc_shape *s = &m->shape;
	unsigned groups;

	if ((!f->a_tmem && refuse_matrix_of(r, m, false, v, book)) || refuse_matrix_of(r, m, true, v, book))
		return true;
	if (refuse_cells(r, m, "D", m->d, tc_d_columns(s), v))
		return true;
	if (f->a_tmem && refuse_cells(r, m, "A", (uint32_t)m->a, tc_a_columns(s), v))
		return true;
	if (f->sparse && refuse_cells(r, m, "the metadata", m->meta, tc_meta_columns(s), v))
		return true;
	for (unsigned k = 0; s->scales && k < 2; k++)
		if (refuse_cells(r, m, "the scales", m->scales[k] & 0xffff,
				tc_scale_columns(s, k, &groups), v))
			return true;
	return false;
}

bool refuse_mma(struct refusal *r, struct tc_mma *m, const struct tc_view *v, struct tc_book *book)
{
	const struct tc_form *f = &m->syntax->form;
	const char *why;
	uint32_t value;
	char text[200];

	if (f->pair && v->nctas % 2)
		return refusal_set(r, FAULT_TCGEN05_OPERAND, SP_ANY, 0, 0,
			"the cluster has no pairs of CTAs");
	if (!tc_shape_of(f, m->idesc, f->pair ? 2 : 1, &m->shape, &why, &value)) {
		snprintf(text, sizeof text, why, value);
		return refusal_set(r, FAULT_TCGEN05_OPERAND, SP_ANY, value, 0, "%s", text);
	}
	value = (uint32_t)(m->mask >> 56 & 63);
	if (m->syntax->mask && value > (m->shape.m == 32 ? 16u : 32u))
		return refusal_set(r, FAULT_TCGEN05_OPERAND, SP_ANY, value, 0,
			"a column shift of %u in the zero-column mask", value);
	return refuse_operands(r, m, v, book);
}

/* ---- areas of a tcgen05.mma ---- */

bool tc_disabled(const struct tc_mma *m, unsigned h, unsigned lane)
{
	const unsigned word = 4 * h + lane / 32;

	return m->syntax->disabled && word < m->syntax->disabled->n
		&& m->disabled[word] >> lane % 32 & 1;
}

unsigned tc_d_lane(const struct tc_mma *m, unsigned group, unsigned row)
{
	return (m->d >> 16) + tc_lane(&m->shape, row) + group * m->shape.rows;
}

/* Those of the rows of a matrix that is repeated for each group of columns of D */
static void lanes_of_rows(struct tc_areas *areas, const struct tc_shape *s, unsigned first)
{
	const unsigned n = s->half ? 16 : s->rows; /* whose lanes follow each other */

	for (unsigned g = 0; g < s->groups; g++)
		for (unsigned r = 0; r < s->rows; r += n)
			tc_area_lanes(areas, first + tc_lane(s, r) + g * s->rows, n);
}

static void area_d(struct tc_areas *areas, const struct tc_mma *m, uint32_t rank, unsigned h)
{
	tc_area(areas, m->enable ? MODE_RMW : MODE_WRITE, OPERAND_D, 1u << rank, m->d & 0xffff,
		tc_d_columns(&m->shape));
	if (!m->syntax->disabled) {
		lanes_of_rows(areas, &m->shape, m->d >> 16);
		return;
	}
	for (unsigned g = 0; g < m->shape.groups; g++)
		for (unsigned r = 0; r < m->shape.rows; r++)
			if (!tc_disabled(m, h, tc_d_lane(m, g, r)))
				tc_area_lanes(areas, tc_d_lane(m, g, r), 1);
}

/* A and metadata are repeated for each group of columns of D, scales in the window of each warp. */
static void area_rows(struct tc_areas *areas, const struct tc_mma *m, enum ev_operand operand,
	uint32_t ctas, uint32_t address, unsigned columns)
{
	tc_area(areas, MODE_READ, operand, ctas, address & 0xffff, columns);
	lanes_of_rows(areas, &m->shape, address >> 16);
}

static void areas_in(struct tc_areas *areas, const struct tc_mma *m, uint32_t ctas)
{
	const struct tc_form *f = &m->syntax->form;
	const struct tc_shape *s = &m->shape;
	unsigned groups;

	if (f->a_tmem)
		area_rows(areas, m, OPERAND_A, ctas, (uint32_t)m->a, tc_a_columns(s));
	if (f->sparse)
		area_rows(areas, m, OPERAND_METADATA, ctas, m->meta
			+ (tc_meta_columns(s) == 2 && s->a_type > TC_tf32 ? 0 : s->selector),
			s->a_type > TC_tf32 ? 2 : 1);
	for (unsigned k = 0; s->scales && k < 2; k++) {
		tc_area(areas, MODE_READ, OPERAND_SCALES, ctas, m->scales[k] & 0xffff,
			tc_scale_columns(s, k, &groups));
		tc_area_lanes(areas, 0, TMEM_LANES);
	}
}

/* What must be equal for two mma to be pipelined: sizes, kind and the type of D. */
static uint64_t shape_key(const struct tc_mma *m)
{
	const struct tc_form *f = &m->syntax->form;

	return m->shape.m | (uint64_t)m->shape.n << 16 | (uint64_t)f->kind << 32
		| (uint64_t)f->pair << 40 | (uint64_t)f->ws << 41 | (uint64_t)m->shape.acc << 48;
}

static uint32_t ranks(const struct tc_view *v)
{
	return 1u << v->cta[0].rank | (v->n > 1 ? 1u << v->cta[1].rank : 0);
}

static void finish(struct event_tcgen05 *t, const struct tc_arrays *x)
{
	t->spans.at = x->span;
	t->areas = (struct ev_areas){ x->areas.at, (uint16_t)x->areas.n };
}

static uint16_t add_spans(struct tc_arrays *x, uint16_t n, const struct tc_reads *reads)
{
	memcpy(x->span + n, reads->span, reads->nspans * sizeof *x->span);
	return (uint16_t)(n + reads->nspans);
}

struct event_tcgen05 tc_mma_event(const struct tc_mma *m, const struct tc_view *v,
	struct tc_book *book, struct tc_arrays *x)
{
	const struct tc_syntax *y = m->syntax;
	struct event_tcgen05 t = { .op = TC_MMA, .ctas = ranks(v), .d = m->d, .shape = shape_key(m),
		.columns = m->shape.n, .collector = (enum ev_collector)y->collector, .buffer = y->buffer,
		.matrix = y->buffer ? m->b : m->a, .pair = y->form.pair, .ws = y->form.ws };

	if (!y->form.a_tmem)
		t.part = add_spans(x, 0, tc_book_a(book, &m->shape, m->a));
	t.spans.n = add_spans(x, t.part, tc_book_b(book, &m->shape, m->b, tc_more_columns(m)));
	x->areas.n = 0;
	for (unsigned h = 0; h < m->shape.ctas && h < v->n; h++)
		area_d(&x->areas, m, v->cta[h].rank, h);
	areas_in(&x->areas, m, t.ctas);
	finish(&t, x);
	return t;
}

/* ---- cp ---- */

const char *tc_cp_of(const struct ptx_insn *i, struct tc_cp *c)
{
	static const struct { uint16_t shape, warpx; uint8_t rows, columns, height, part[4]; } form[] = {
		{ MOD_128x256b, 0, 128, 8, 32, { 0, 1, 2, 3 } },
		{ MOD_128x128b, 0, 128, 4, 32, { 0, 1, 2, 3 } },
		{ MOD_4x256b, 0, 4, 8, 1, { 0, 1, 2, 3 } },
		{ MOD_64x128b, MOD_warpx2_02_13, 64, 4, 32, { 0, 1, 0, 1 } },
		{ MOD_64x128b, MOD_warpx2_01_23, 64, 4, 32, { 0, 0, 1, 1 } },
		{ MOD_32x128b, MOD_warpx4, 32, 4, 32, { 0, 0, 0, 0 } },
	};

	*c = (struct tc_cp){ .to = &i->operand[0], .from = &i->operand[1],
		.pair = ptx_has(i, MOD_cta_group_2) };
	for (size_t k = 0; k < ARRAY_SIZE(form); k++)
		if (form[k].shape == ptx_pick(i, MG_tshape) && form[k].warpx == ptx_pick(i, MG_warpx)) {
			c->rows = form[k].rows;
			c->columns = form[k].columns;
			c->height = form[k].height;
			memcpy(c->part, form[k].part, sizeof c->part);
		}
	for (unsigned k = 0; k < 2; k++)
		c->packed = ptx_type_of(i, k) == TY_b6x16_p32 ? 6
			: ptx_type_of(i, k) == TY_b4x16_p64 ? 4 : c->packed;
	return c->rows ? NULL : "this shape of tcgen05.cp";
}

unsigned tc_cp_pieces(const struct tc_cp *c, uint64_t desc, uint32_t *out)
{
	const struct tc_desc d = tc_desc_decode(desc);

	tc_desc_k_pieces(&d, c->rows, c->columns / 4, out);
	return c->rows * (c->columns / 4u);
}

bool refuse_cp(struct refusal *r, const struct tc_cp *c, uint32_t at, uint64_t desc,
	const struct tc_view *v)
{
	const struct tc_desc d = tc_desc_decode(desc);
	const char *why = tc_desc_fault(&d, false, c->columns / 4u, false);
	uint32_t piece[TC_CP_PIECES];

	if (why)
		return refusal_set(r, FAULT_TCGEN05_OPERAND, SP_ANY, desc, 0, "the descriptor has %s", why);
	if ((at >> 16) + c->height > TC_WINDOW)
		return refusal_set(r, FAULT_TCGEN05_OPERAND, SP_TMEM, at, 0,
			"lane %u in the address of a copy to %u lanes of each warp's window", at >> 16,
			c->height);
	return refuse_pieces(r, "the source", tc_desc_top(piece, tc_cp_pieces(c, desc, piece)), v)
		|| refuse_columns_of(r, at & 0xffff, TMEM_LANES, c->columns, v);
}

struct event_tcgen05 tc_cp_event(const struct tc_cp *c, uint32_t at, uint64_t desc,
	const struct tc_view *v, struct tc_arrays *x)
{
	struct event_tcgen05 t = { .op = TC_CP, .ctas = ranks(v), .d = at, .pair = c->pair };
	uint32_t piece[TC_CP_PIECES];

	t.part = t.spans.n = (uint16_t)wg_desc_spans(piece, tc_cp_pieces(c, desc, piece), x->span);
	x->areas.n = 0;
	tc_area(&x->areas, MODE_WRITE, OPERAND_D, t.ctas, at & 0xffff, c->columns);
	for (unsigned k = 0; k < 4; k++)
		tc_area_lanes(&x->areas, tc_cp_lane(at, k, 0), c->height);
	finish(&t, x);
	return t;
}

/* ---- shift ---- */

bool refuse_shift(struct refusal *r, uint32_t at, const struct tc_view *v)
{
	if (at >> 16 & (TC_WINDOW - 1))
		return refusal_set(r, FAULT_TCGEN05_OPERAND, SP_TMEM, at, 0,
			"lane %u in the address, which must be a multiple of %u", at >> 16, TC_WINDOW);
	return refuse_columns_of(r, at, TC_WINDOW, TC_SHIFT_COLUMNS, v);
}

struct event_tcgen05 tc_shift_event(bool pair, uint32_t at, const struct tc_view *v,
	struct tc_arrays *x)
{
	struct event_tcgen05 t = { .op = TC_SHIFT, .ctas = ranks(v), .d = at, .pair = pair };

	x->areas.n = 0;
	tc_area(&x->areas, MODE_WRITE, OPERAND_D, t.ctas, at & 0xffff, TC_SHIFT_COLUMNS);
	tc_area_lanes(&x->areas, at >> 16, TC_WINDOW - 1);
	tc_area(&x->areas, MODE_READ, OPERAND_D, t.ctas, at & 0xffff, TC_SHIFT_COLUMNS);
	tc_area_lanes(&x->areas, (at >> 16) + 1, TC_WINDOW - 1);
	finish(&t, x);
	return t;
}
