/* real: exact arithmetic on floating-point numbers, rounded once. The reference for every format;
 * slow and plain. */
#ifndef CONFORM_REAL_H
#define CONFORM_REAL_H

#include "conform.h"

enum rounding { RN, RZ, RM, RP, RNA };

/* A format: sign, exponent, mantissa. The bits of tf32 are at the top of a word. */
struct fmt {
	unsigned ebits, mbits;
	int bias;
	bool sign;
	bool has_inf;              /* codes of exponent all ones are infinity and NaN */
	uint64_t nan;              /* canonical NaN; 0: the format has none */
	uint64_t max;              /* largest finite code */
	unsigned shift;
};
const struct fmt *real_fmt(enum type t);

/* m * 2^e. m has at most 120 bits; its lowest bit may stand for bits below that were lost, if 100
 * or more bits are kept. */
struct real {
	enum { REAL_ZERO, REAL_FINITE, REAL_INF, REAL_NAN } kind;
	bool negative;
	unsigned __int128 m;
	int e;
};

struct real real_of(enum type t, uint64_t bits);
struct real real_of_int(__int128 v);
bool real_is_nan(enum type t, uint64_t bits);
bool real_is_subnormal(enum type t, uint64_t bits);

/* Zero results of sums: -0 if both are -0, or when rounding down. */
struct real real_add(struct real a, struct real b, enum rounding r);
struct real real_mul(struct real a, struct real b);
struct real real_div(struct real a, struct real b);
struct real real_sqrt(struct real a);
struct real real_negate(struct real a);
/* -1, 0, 1; no NaN */
int real_compare(struct real a, struct real b);
/* Of such an order: 0 to 5 are eq, ne, lt, le, gt, ge. */
bool real_order(int cmp, int order);
/* To an integer, still a real */
struct real real_integral(struct real a, enum rounding r);
/* The integer value of an integral number; saturates at +-2^120. */
__int128 real_int(struct real a);

/* The code nearest to a. satfinite: beyond the range is the largest finite number, also for
 * infinity. A NaN gives the canonical one. */
uint64_t real_round(enum type t, struct real a, enum rounding r, bool satfinite);

/* The value, rounded to 64 bits, and back. */
long double real_approx(struct real a);
struct real real_of_long(long double v);

#endif
