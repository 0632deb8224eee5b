/* matrix: what the references of mma, wmma and wgmma share. Values are long double: products of
 * narrow numbers are exact in it, sums are exact for integers and as good as exact for floats.
 *
 * The ISA leaves the order and the rounding of a float sum open ("at least single precision"), so
 * two kinds of inputs are used: small integers, whose sums are exact in every order and must agree
 * bit by bit; and any values, whose result must lie within a bound that grows with the sum of the
 * magnitudes. */
#ifndef CONFORM_MATRIX_H
#define CONFORM_MATRIX_H

#include "conform.h"

enum values { VALUES_EXACT, VALUES_ANY, VALUES_SPECIAL /* also NaN, infinity */ };

/* Bits of an element of a matrix operand, and of an accumulator, for this kind of values. */
uint64_t matrix_pick(struct rng *r, enum type t, enum values v);
uint64_t matrix_pick_acc(struct rng *r, enum type t, enum values v);

long double matrix_value(enum type t, uint64_t bits);

/* The sum of products of a row of A and a column of B, both of k elements, plus c. How an
 * accumulator of type d must look. b1: '&' or '^'. */
struct dot {
	enum type a, b, d;
	enum values values;
	bool satfinite;
	char b1;
};
void matrix_dot(const struct dot *x, const long double *a, const long double *b, unsigned k,
	long double c, struct want *w);

/* Reads and writes element n of a row of packed elements of `bits` bits, from 1 to 64. */
uint64_t packed_get(const void *at, unsigned bits, unsigned n);
void packed_set(void *at, unsigned bits, unsigned n, uint64_t v);

#endif
