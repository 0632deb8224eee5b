/* Types of operands, and values at which instructions change their behaviour. */
#include "conform.h"
#include "real.h"

static const struct { const char *name; unsigned bits; enum kind kind; unsigned n; } types[] = {
	[T_none] = { "", 0, KIND_BITS, 0 },
#define TYPE(id, bits, kind, n) [T_##id] = { #id, bits, KIND_##kind, n },
	TYPE_LIST
#undef TYPE
};

const char *type_name(enum type t) { return types[t].name; }
unsigned type_bits(enum type t) { return types[t].bits; }
enum kind type_kind(enum type t) { return types[t].kind; }
unsigned type_elements(enum type t) { return types[t].n; }
bool type_signed(enum type t) { return types[t].kind == KIND_SIGNED; }

enum type type_element(enum type t)
{
	switch (t) {
	case T_u16x2: return T_u16;
	case T_s16x2: return T_s16;
	case T_f16x2: return T_f16;
	case T_bf16x2: return T_bf16;
	case T_f32x2: return T_f32;
	case T_e4m3x2: return T_e4m3;
	case T_e5m2x2: return T_e5m2;
	case T_e3m2x2: return T_e3m2;
	case T_e2m3x2: return T_e2m3;
	case T_e2m1x2: return T_e2m1;
	case T_ue8m0x2: return T_ue8m0;
	default: return t;
	}
}

uint64_t type_mask(enum type t)
{
	return types[t].bits == 64 ? ~0ull : (1ull << types[t].bits) - 1;
}

int64_t type_extend(enum type t, uint64_t v)
{
	unsigned s = 64 - types[t].bits;

	return type_signed(t) ? (int64_t)(v << s) >> s : (int64_t)(v << s >> s);
}

static uint64_t pick_int(struct rng *r, unsigned bits)
{
	const uint64_t top = 1ull << (bits - 1);
	const uint64_t special[] = { 0, 1, 2, top, top - 1, top + 1, ~0ull, ~1ull, 0x7f, 0x80, 0xff,
		0x7fff, 0x8000, 0xffff, 0x55555555aaaaaaaa };

	switch (rng_below(r, 8)) {
	case 0: case 1: return RNG_OF(r, special);
	case 2: return rng_below(r, 2 * bits + 4); /* shift amounts and positions */
	case 3: return 0 - (uint64_t)rng_below(r, 40);
	case 4: return rng_bits(r) >> rng_below(r, 64); /* every magnitude */
	case 5: return 1ull << rng_below(r, 64);
	default: return rng_bits(r);
	}
}

static uint64_t pick_float(struct rng *r, enum type t)
{
	const struct fmt *f = real_fmt(t);
	const uint64_t sign = f->sign ? (rng_bits(r) & 1) << (f->ebits + f->mbits) : 0;
	const uint64_t one = (uint64_t)f->bias << f->mbits;
	const uint64_t man = f->mbits ? rng_bits(r) & ((1ull << f->mbits) - 1) : 0;
	const uint64_t all = (1ull << (f->ebits + f->mbits)) - 1;
	uint64_t v;

	switch (rng_below(r, 10)) {
	case 0: v = rng_once_in(r, 2) ? 0 : man; break; /* zero, subnormal */
	case 1: /* near the end of the codes; of 16 bits, the NaN that fills the outside of tensors */
		v = all - (rng_once_in(r, 3) ? 8 : rng_below(r, 3));
		break;
	case 2: { /* infinity, the codes beside it, smallest normal, largest subnormal */
		const uint64_t edge[] = { (1ull << f->ebits) - 1, 1, (1ull << f->ebits) - 2 };
		v = (RNG_OF(r, edge) << f->mbits) + rng_below(r, 3) - 1;
		break;
	}
	case 3: v = one + ((uint64_t)rng_below(r, 5) << f->mbits); break; /* powers of two */
	case 4: case 5: case 6: /* near 1: sums and roundings matter */
		v = one - (2ull << f->mbits) + ((uint64_t)rng_below(r, 5) << f->mbits) + man;
		break;
	case 7: /* few bits: exact ties */
		v = one + ((uint64_t)rng_below(r, 8) << f->mbits)
			+ (man & ~((1ull << (f->mbits / 2 + 1)) - 1));
		break;
	default: v = rng_bits(r); break;
	}
	return ((v & all) | sign) << f->shift;
}

uint64_t type_pick(struct rng *r, enum type t)
{
	const enum type e = type_element(t);
	uint64_t v = 0;

	switch (type_kind(t)) {
	case KIND_PRED:
		return rng_bits(r) & 1;
	case KIND_FLOAT:
		for (unsigned k = 0; k < type_elements(t); k++)
			v |= pick_float(r, e) << k * type_bits(e);
		return v;
	case KIND_BITS: /* may hold anything */
		if (type_bits(t) == 32 && rng_once_in(r, 3))
			return pick_float(r, T_f32);
		if (type_bits(t) == 64 && rng_once_in(r, 3))
			return pick_float(r, T_f64);
		break;
	case KIND_INT: case KIND_SIGNED:
		break;
	}
	for (unsigned k = 0; k < type_elements(t); k++)
		v |= (pick_int(r, type_bits(e)) & type_mask(e)) << k * type_bits(e);
	return v & type_mask(t);
}
