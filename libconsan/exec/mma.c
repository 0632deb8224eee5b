/* mma: decodes mma.sync and runs it on the warp's registers (mma_tile.c does the arithmetic; that of
 * a sparse A is in sparse.h). */
#include "async.h"
#include "mma_types.h"
#include "num.h"
#include "sparse.h"
#include "tile.h"

/* Scales of A or B (ISA, "Block scaling for mma.sync"): bytes of a register, from `byte` on, of
 * lanes that depend on `thread`. */
struct scales { uint32_t data, byte, thread; /* slots: u32, u16, u16 */ };

struct args {
	struct mma_shape s;
	mma_tile_fn tile;
	uint16_t nd, na, nb, nc;
	bool sparse;
	uint8_t selector, chunks;  /* sparse.h */
	bool ue4m3;                /* type of the scales; else ue8m0 */
	uint32_t d[4], a[8], b[4], c[4], meta; /* slots */
	struct scales scale_a, scale_b;
};

/* A row of packed A is 16 bytes of each second register, a column of B 16 bytes of each. */
static void sparse_product(const struct args *a, struct warp *w, const struct mma_regs *r)
{
	const unsigned bits = tile_in_bits(a->s.a), half = a->s.k / 2u;
	struct tc_scratch *x = ex_scratch(w->worker, sizeof *x);
	uint32_t d[16 * 8];
	struct tc_tile t = sparse_tile((uint8_t[]){ a->s.a, a->s.b }, (enum tile_acc)a->s.d, 16, 8,
		a->s.k, d, x);

	for (unsigned row = 0; row < 16; row++) {
		for (unsigned k = row / 8; k < a->na; k += 2)
			memcpy(x->image_a + (row * a->na + k - row / 8) * 8,
				(const l32 *)r->a[k] + row % 8 * 4, 16);
		sparse_slots(x->slot + row * half, bits, half, sparse_meta(r32(w, a->meta),
			a->selector, row, a->chunks, bits >= 16));
		memcpy(x->scale_a + row * a->s.nscale, r->scale_a[row], a->s.nscale * sizeof(float));
	}
	for (unsigned n = 0; n < 8; n++) {
		for (unsigned k = 0; k < a->nb; k++)
			memcpy(x->image_b + (n * a->nb + k) * 16, (const l32 *)r->b[k] + n * 4, 16);
		memcpy(x->scale_b + n * a->s.nscale, r->scale_b[n], a->s.nscale * sizeof(float));
	}
	if (a->s.nscale) {
		t.block = (uint16_t)(a->s.k / a->s.nscale);
		t.scale_a = x->scale_a;
		t.scale_b = x->scale_b;
	}
	t.accumulate = true;
	t.satfinite = a->s.satfinite;
	sparse_get_d(d, 8, (enum tile_acc)a->s.c, r->c);
	SIMD_PICK(tc_tile)(&t, x);
	sparse_put_d(d, 8, (enum tile_acc)a->s.d, r->d);
}

static void load_scales(const struct args *a, const struct warp *w, const struct scales *from,
	bool rows, float (*to)[4])
{
	const unsigned thread = r16(w, from->thread)[0], byte = r16(w, from->byte)[0] & 3;

	for (unsigned n = 0; n < (rows ? 16 : 8); n++) {
		const unsigned lane = n % 8 * 4 + (rows ? (thread & 1) * 2 + n / 8 : thread & 3);
		const uint32_t data = r32(w, from->data)[lane];

		for (unsigned k = 0; k < a->s.nscale; k++) {
			const uint8_t v = (uint8_t)(data >> 8 * ((byte + k) & 3));

			to[n][k] = a->ue4m3 ? num_from_e4m3(v & 0x7f) : num_from_ue8m0(v);
		}
	}
}

static enum step op_mma(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct args *a = x->i.p;
	struct mma_regs r;
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (w->sink)
		warp_emit_together(w, x);
	for (unsigned k = 0; k < a->nd; k++)
		r.d[k] = w->r + a->d[k];
	for (unsigned k = 0; k < a->na; k++)
		r.a[k] = w->r + a->a[k];
	for (unsigned k = 0; k < a->nb; k++)
		r.b[k] = w->r + a->b[k];
	for (unsigned k = 0; k < a->nc; k++)
		r.c[k] = w->r + a->c[k];
	if (a->s.nscale) {
		load_scales(a, w, &a->scale_a, true, r.scale_a);
		load_scales(a, w, &a->scale_b, false, r.scale_b);
	}
	if (a->sparse)
		sparse_product(a, w, &r);
	else
		a->tile(&a->s, &r);
	return STEP_NEXT;
}

static unsigned operands(const struct ptx_operand *o)
{
	return o->kind == PO_VEC ? o->n : 1;
}

static void take(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, uint32_t *slot,
	bool dst)
{
	for (unsigned k = 0; k < operands(o); k++) {
		const struct ptx_operand *r = o->kind == PO_VEC ? &o->list[k] : o;

		slot[k] = dst ? dec_dst(d, r, t) : dec_src(d, r, t);
	}
}

/* Do the register counts match the fragments of the shape? */
static bool counts_fit(const struct mma_shape *s, const struct args *a)
{
	unsigned bits = tile_in_bits(s->a), halves = s->m / 8u;
	unsigned per = bits == 64 ? 4 : 128 / bits; /* elements along k of 8 rows in a register */
	unsigned nc = s->c == ACC_f16 ? halves : 2 * halves;
	unsigned nd = s->d == ACC_f16 ? halves : 2 * halves;

	return s->k % per == 0 && s->k / per <= 4 && a->nb == s->k / per &&
		a->na * (a->sparse ? 2u : 1u) == a->nb * halves && a->nc == nc && a->nd == nd;
}

static bool known_shape(const struct mma_shape *s)
{
	bool is_int = tile_in_int(s->a);

	if (s->a == IN_COUNT || s->b == IN_COUNT || tile_in_bits(s->a) != tile_in_bits(s->b))
		return false;
	if (is_int != tile_in_int(s->b) || is_int != (s->d == ACC_s32))
		return false;
	if (s->m == 8 && !is_int && s->a != IN_f64)
		return false;
	return (s->a == IN_f64) == (s->d == ACC_f64) && (s->c == s->d ||
		(s->c != ACC_s32 && s->c != ACC_f64 && s->d != ACC_s32 && s->d != ACC_f64));
}

/* mxf4 and mxf4nvf4 hold two elements in a byte, f8f6f4 and mxf8f6f4 one. */
static enum tile_in type_of(const struct ptx_insn *i, unsigned n)
{
	const enum ptx_mod kind = ptx_pick(i, MG_kind);
	const enum tile_in t = tile_in_of(ptx_type_of(i, n));

	return t == IN_e2m1 && (kind == MOD_kind_mxf4 || kind == MOD_kind_mxf4nvf4) ? IN_e2m1x2 : t;
}

static unsigned scales_of(const struct ptx_insn *i)
{
	switch (ptx_pick(i, MG_scale_vec)) {
	case MOD_scale_vec_1X: return 1;
	case MOD_scale_vec_2X: return 2;
	case MOD_scale_vec_4X: return 4;
	default: return ptx_pick(i, MG_kind) == MOD_kind_mxf4 ? 2 : 1;
	}
}

/* A value, or a vector of one. */
static uint32_t single(struct decoder *d, const struct ptx_operand *o)
{
	return dec_src(d, o->kind == PO_VEC && o->n == 1 ? &o->list[0] : o, TY_b32);
}

static bool take_scale(struct decoder *d, const struct ptx_operand *o, struct scales *to)
{
	if (o[1].kind != PO_VEC || o[1].n != 2)
		return dec_unsupported(d, "block scales without {byte, thread}");
	to->data = single(d, &o[0]);
	to->byte = dec_src(d, &o[1].list[0], TY_u16);
	to->thread = dec_src(d, &o[1].list[1], TY_u16);
	return true;
}

/* operands from the metadata on */
static bool take_more(struct decoder *d, const struct ptx_insn *i, struct args *a)
{
	unsigned k = 4;

	if (a->sparse) {
		if (i->noperands < 6 || i->operand[5].kind != PO_IMM)
			return dec_unsupported(d, "a sparsity selector that is not a constant");
		a->selector = (uint8_t)i->operand[5].imm;
		if (i->operand[5].imm < 0 || !sparse_selector(a->selector, a->chunks))
			return dec_unsupported(d, "this sparsity selector");
		a->meta = single(d, &i->operand[4]);
		k = 6;
	}
	if (!a->s.nscale)
		return true;
	if (i->noperands < k + 4)
		return dec_unsupported(d, "mma.sync without the operands of its block scales");
	return take_scale(d, &i->operand[k], &a->scale_a)
		&& take_scale(d, &i->operand[k + 2], &a->scale_b);
}

static bool decode(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool sparse)
{
	unsigned m, n, k;
	struct args *a;

	if (!ptx_shape(ptx_pick(i, MG_shape), &m, &n, &k) || n != 8 || (sparse && m != 16))
		return dec_unsupported(d, "this shape of mma.sync");
	if (m == 8 && ptx_type_of(i, 1) == TY_f16 && ptx_type_of(i, 2) == TY_f16)
		return dec_mma_quads(d, i, x);
	a = dec_alloc(d, sizeof *a);
	a->s = (struct mma_shape){ .m = (uint8_t)m, .k = (uint16_t)k,
		.d = (uint8_t)tile_acc_of(ptx_type_of(i, 0)),
		.a = (uint8_t)type_of(i, 1), .b = (uint8_t)type_of(i, 2),
		.c = (uint8_t)tile_acc_of(ptx_type_of(i, 3)),
		.satfinite = ptx_has(i, MOD_satfinite), .and = ptx_has(i, MOD_and),
		.nscale = (uint8_t)(ptx_has(i, MOD_block_scale) ? scales_of(i) : 0) };
	a->sparse = sparse;
	a->ue4m3 = ptx_type_of(i, 4) == TY_ue4m3;
	a->nd = (uint16_t)operands(&i->operand[0]);
	a->na = (uint16_t)operands(&i->operand[1]);
	a->nb = (uint16_t)operands(&i->operand[2]);
	a->nc = (uint16_t)operands(&i->operand[3]);
	if (!known_shape(&a->s) || !counts_fit(&a->s, a)
		|| (sparse && (a->s.a == IN_f64 || a->s.a == IN_b1)))
		return dec_unsupported(d, "these types of mma.sync with this shape");
	a->chunks = (uint8_t)(k * tile_in_bits(a->s.a) / (tile_in_bits(a->s.a) >= 16 ? 64 : 32));
	take(d, &i->operand[0], a->s.d == ACC_f64 ? TY_f64 : a->s.d == ACC_f32 ? TY_f32 : TY_b32,
		a->d, true);
	take(d, &i->operand[1], a->s.a == IN_f64 ? TY_f64 : TY_b32, a->a, false);
	take(d, &i->operand[2], a->s.a == IN_f64 ? TY_f64 : TY_b32, a->b, false);
	take(d, &i->operand[3], a->s.c == ACC_f64 ? TY_f64 : a->s.c == ACC_f32 ? TY_f32 : TY_b32,
		a->c, false);
	if (!take_more(d, i, a))
		return false;
	a->tile = SIMD_PICK(mma_tile);
	x->i.p = a;
	x->fn = op_mma;
	return true;
}

/* The kind may come before .sp: mma.sync.aligned.kind::f8f6f4.sp::ordered_metadata */
DECODER(mma)
{
	return decode(d, i, x, ptx_has(i, MOD_sp) || ptx_has(i, MOD_sp_ordered_metadata));
}

DECODER(mma_sp)
{
	return decode(d, i, x, true);
}

DECODER(mma_sp_ordered_metadata)
{
	return decode(d, i, x, true);
}
