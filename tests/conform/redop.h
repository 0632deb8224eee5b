/* redop: what atomics and reductions leave in memory. */
#ifndef CONFORM_REDOP_H
#define CONFORM_REDOP_H

#include "conform.h"

enum redop { RED_NONE, RED_ADD, RED_MIN, RED_MAX, RED_INC, RED_DEC, RED_AND, RED_OR, RED_XOR,
	RED_EXCH, RED_CAS, RED_COUNT };
const char *redop_name(enum redop op); /* "add"; "" for RED_NONE */

/* Subnormals of f32. ISA: atom and red flush them in global memory, not in shared memory. It does
 * not say what copies do: results are then WANT_ANY. */
enum subnormals { SUBNORMALS_KEPT, SUBNORMALS_FLUSHED, SUBNORMALS_OPEN };

/* One element of memory that held o, with operand b (and c of cas). RED_NONE stores b. NaN results
 * are WANT_NAN, but packed types always WANT_BITS with canonical NaNs. */
void redop_apply(enum redop op, enum type t, enum subnormals s, uint64_t o, uint64_t b, uint64_t c,
	struct want *w);

#endif
