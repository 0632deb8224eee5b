/* mma: decodes mma.sync and runs it on the warp's registers (mma_tile.c does the arithmetic). */
#include "async.h"
#include "mma_types.h"
#include "tile.h"

struct args {
	struct mma_shape s;
	mma_tile_fn tile;
	uint8_t nd, na, nb, nc;
	uint32_t d[4], a[8], b[4], c[4]; /* slots */
};

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
		a->na == a->nb * halves && a->nc == nc && a->nd == nd;
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

DECODER(mma)
{
	unsigned m, n, k;
	struct args *a;

	if (ptx_has(i, MOD_block_scale))
		return dec_unsupported(d, "mma.sync with block scales");
	if (!ptx_shape(ptx_pick(i, MG_shape), &m, &n, &k) || n != 8)
		return dec_unsupported(d, "this shape of mma.sync");
	a = dec_alloc(d, sizeof *a);
	a->s = (struct mma_shape){ .m = (uint8_t)m, .k = (uint16_t)k,
		.d = (uint8_t)tile_acc_of(ptx_type_of(i, 0)),
		.a = (uint8_t)tile_in_of(ptx_type_of(i, 1)),
		.b = (uint8_t)tile_in_of(ptx_type_of(i, 2)),
		.c = (uint8_t)tile_acc_of(ptx_type_of(i, 3)),
		.satfinite = ptx_has(i, MOD_satfinite), .and = ptx_has(i, MOD_and) };
	a->nd = (uint8_t)operands(&i->operand[0]);
	a->na = (uint8_t)operands(&i->operand[1]);
	a->nb = (uint8_t)operands(&i->operand[2]);
	a->nc = (uint8_t)operands(&i->operand[3]);
	if (!known_shape(&a->s) || !counts_fit(&a->s, a))
		return dec_unsupported(d, "these types of mma.sync with this shape");
	take(d, &i->operand[0], a->s.d == ACC_f64 ? TY_f64 : a->s.d == ACC_f32 ? TY_f32 : TY_b32,
		a->d, true);
	take(d, &i->operand[1], a->s.a == IN_f64 ? TY_f64 : TY_b32, a->a, false);
	take(d, &i->operand[2], a->s.a == IN_f64 ? TY_f64 : TY_b32, a->b, false);
	take(d, &i->operand[3], a->s.c == ACC_f64 ? TY_f64 : a->s.c == ACC_f32 ? TY_f32 : TY_b32,
		a->c, false);
	a->tile = SIMD_PICK(mma_tile);
	x->i.p = a;
	x->fn = op_mma;
	return true;
}
