#include "redop.h"
#include "real.h"

const char *redop_name(enum redop op)
{
	static const char *const name[] = { "", "add", "min", "max", "inc", "dec", "and", "or",
		"xor",
		"exch", "cas" };

	return name[op];
}

static struct real operand(enum type t, enum subnormals s, uint64_t v)
{
	struct real a = real_of(t, v);

	if (s == SUBNORMALS_FLUSHED && real_is_subnormal(t, v))
		a.kind = REAL_ZERO;
	return a;
}

/* add, min or max; min and max prefer a number to a NaN, and order -0 before +0 */
static void apply_float(enum redop op, enum type t, enum subnormals s, uint64_t o, uint64_t b,
	struct want *w)
{
	struct real x, y, r;
	int c;

	if (t != T_f32)
		s = SUBNORMALS_KEPT;
	x = operand(t, s, o);
	y = operand(t, s, b);
	if (op == RED_ADD)
		r = real_add(x, y, RN);
	else if (x.kind == REAL_NAN || y.kind == REAL_NAN)
		r = x.kind == REAL_NAN ? y : x;
	else {
		c = real_compare(x, y);
		c = c ? c : y.negative - x.negative;
		r = (op == RED_MIN) == (c < 0) ? x : y;
	}
	w->type = t;
	w->v = real_round(t, r, RN, false);
	if (s == SUBNORMALS_OPEN && (real_is_subnormal(t, o) || real_is_subnormal(t, b)
			|| real_is_subnormal(t, w->v)))
		w->how = WANT_ANY;
	else if (r.kind == REAL_NAN)
		w->how = WANT_NAN;
	if (s == SUBNORMALS_FLUSHED && real_is_subnormal(t, w->v))
		w->v &= 0x80000000;
}

static uint64_t apply_int(enum redop op, enum type t, uint64_t o, uint64_t b, uint64_t c)
{
	bool less = type_signed(t) ? type_extend(t, o) < type_extend(t, b) : o < b;

	switch (op) {
	case RED_ADD: return o + b;
	case RED_MIN: return less ? o : b;
	case RED_MAX: return less ? b : o;
	case RED_INC: return o >= b ? 0 : o + 1;
	case RED_DEC: return o == 0 || o > b ? b : o - 1;
	case RED_AND: return o & b;
	case RED_OR: return o | b;
	case RED_XOR: return o ^ b;
	case RED_CAS: return o == b ? c : o;
	default: return b;
	}
}

void redop_apply(enum redop op, enum type t, enum subnormals s, uint64_t o, uint64_t b, uint64_t c,
	struct want *w)
{
	const enum type e = type_element(t);
	uint64_t v = 0;

	if (type_kind(t) != KIND_FLOAT || op == RED_NONE || op >= RED_EXCH) {
		w->v = apply_int(op, t, o, b, c) & type_mask(t);
		return;
	}
	for (unsigned k = 0; k < type_elements(t); k++) {
		const unsigned at = k * type_bits(e);
		apply_float(op, e, s, o >> at & type_mask(e), b >> at & type_mask(e), w);
		v |= w->v << at;
	}
	w->v = v;
	if (type_elements(t) > 1)
		w->how = WANT_BITS;
}
