/* cvt_rs: cvt with stochastic rounding. Random bits are added to the part of the significand that is
 * cut off, the highest to the highest; a carry rounds away from zero (ISA, cvt, "rbits").
 *
 * Which bits of rbits an element gets: of a pair, the half of its own place, 13 bits of it for f16.
 * Of four, each two share 16 bits, and the upper one has them in reverse order (the ISA's figures, and
 * as found on a B200): the upper or the lower half, or for e2m1 the upper or the lower byte of each
 * half. The ISA does not say what a too large value becomes without .satfinite: infinity here. */
#include "machine.h"
#include "num.h"

struct args {
	struct num_fmt fmt;
	unsigned n, bits;          /* elements of the result, and bits of each */
	unsigned width;            /* random bits */
	unsigned result, from[4];  /* bits of the registers */
	bool satfinite, relu;
	uint32_t d, src[4], random; /* slots; src[0]: of the lowest element */
};

static uint32_t reverse16(uint32_t v)
{
	uint32_t r = 0;

	for (unsigned i = 0; i < 16; i++)
		r |= (v >> i & 1) << (15 - i);
	return r;
}

static uint32_t random_of(const struct args *a, uint32_t bits, unsigned k)
{
	uint32_t v;

	if (a->n == 2)
		return bits >> 16 * k & ((1u << a->width) - 1);
	if (a->bits == 4)
		v = (bits >> 8 * (k / 2) & 0xff) | (bits >> (16 + 8 * (k / 2)) & 0xff) << 8;
	else
		v = bits >> 16 * (k / 2) & 0xffff;
	return k % 2 ? reverse16(v) : v;
}

static uint32_t round_off(const struct args *a, uint32_t x, uint32_t random)
{
	const struct num_fmt *f = &a->fmt;
	const uint32_t sign = (x & 0x80000000u) >> (32 - f->bits), abs = x & 0x7fffffffu, e = abs >> 23;
	const uint64_t m = (abs & 0x7fffffu) | (e ? 0x800000u : 0);
	int32_t t = (int32_t)(e ? e : 1) - 127 + f->bias;
	const uint32_t places = 23 - f->mant + (t < 1 ? (uint32_t)(1 - t) : 0);
	const uint32_t cut = places < 41 ? places : 41; /* of 24 bits and 16; then nothing carries */
	const uint64_t lost = m & ((1ull << cut) - 1);
	uint32_t v;

	if (abs > 0x7f800000u)
		return f->nan;
	if (a->relu && sign)
		return 0;
	t = t < 1 ? 1 : t;
	v = ((uint32_t)(t - 1) << f->mant) + (uint32_t)(m >> cut)
		+ ((lost << a->width) + ((uint64_t)random << cut) >= 1ull << (a->width + cut));
	if (v > f->max || abs == 0x7f800000u)
		v = a->satfinite ? f->max : f->inf;
	return v | sign;
}

static uint32_t value_at(const struct warp *w, const struct args *a, unsigned k, unsigned lane)
{
	return a->from[k] == 32 ? r32(w, a->src[k])[lane] : (uint32_t)r64(w, a->src[k])[lane];
}

static enum step op_cvt(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct args *a = x->i.p;

	for EACH_LANE(l, lanes) {
		const uint32_t bits = r32(w, a->random)[l];
		uint32_t r = 0;

		for (unsigned k = 0; k < a->n; k++)
			r |= round_off(a, value_at(w, a, k, l), random_of(a, bits, k)) << a->bits * k;
		if (a->result <= 16)
			r16(w, a->d)[l] = (uint16_t)r;
		else if (a->result == 32)
			r32(w, a->d)[l] = r;
		else
			r64(w, a->d)[l] = r;
	}
	return STEP_NEXT;
}

static bool format(struct args *a, enum ptx_type t)
{
	a->n = t == TY_f16x2 || t == TY_bf16x2 ? 2 : 4;
	a->bits = ptx_type_bits(t) / a->n;
	a->width = t == TY_f16x2 ? 13 : 16;
	switch ((int)t) {
	case TY_f16x2: a->fmt = NUM_FMT_f16; return true;
	case TY_bf16x2: a->fmt = NUM_FMT_bf16; return true;
	case TY_e4m3x4: a->fmt = NUM_FMT_e4m3; return true;
	case TY_e5m2x4: a->fmt = NUM_FMT_e5m2; return true;
	case TY_e3m2x4: a->fmt = NUM_FMT_e3m2; return true;
	case TY_e2m3x4: a->fmt = NUM_FMT_e2m3; return true;
	case TY_e2m1x4: a->fmt = NUM_FMT_e2m1; return true;
	}
	return false;
}

bool dec_cvt_rs(struct decoder *d, const struct ptx_insn *i, struct xop *x)
{
	const enum ptx_type t = ptx_type_of(i, 0);
	struct args *a = dec_alloc(d, sizeof *a);
	const struct ptx_operand *from = &i->operand[1];
	const bool four = from->kind == PO_VEC;

	if (!format(a, t) || ptx_type_of(i, 1) != TY_f32 || i->noperands != (four ? 3 : 4)
			|| a->n != (four ? from->n : 2))
		return dec_unsupported(d, "stochastic rounding between these types");
	for (unsigned k = 0; k < a->n; k++)
		a->src[a->n - 1 - k] = dec_wide_src(d, four ? &from->list[k] : from + k, TY_f32,
			&a->from[a->n - 1 - k]);
	a->random = dec_src(d, &i->operand[four ? 2 : 3], TY_b32);
	a->d = dec_wide_dst(d, &i->operand[0], t, &a->result);
	a->satfinite = ptx_has(i, MOD_satfinite);
	a->relu = ptx_has(i, MOD_relu);
	x->i.p = a;
	x->fn = op_cvt;
	x->pure = true;
	return true;
}
