/* conflict: conflicting lanes of one store, that is lanes that store different values to the same
 * address. The store's record holds a mask of the lanes whose value differs from that of the first
 * lane with the same address. The words to be stored follow those of the address, which are %cs_v0,
 * and %cs_v1 for global memory. Constants need no comparison.
 *
 * A store also records what it writes, as one word (record.h), so that the checker can tell whether
 * stores that race write the same. */
#ifndef CONSAN_INSTRUMENT_CONFLICT_H
#define CONSAN_INSTRUMENT_CONFLICT_H

#include "libconsan/ptx/ptx.h"

/* Number of register words that this store writes; 0: its lanes cannot conflict. */
unsigned conflict_words(const struct ptx_func *f, const struct ptx_insn *i);
/* Loads them into %cs_v<first> and following. */
void conflict_values(struct text *t, const struct ptx_func *f, const struct ptx_insn *i,
	unsigned first);
struct conflict {
	unsigned words;          /* conflict_words(); 0: no such store */
	const struct ptx_func *f;
	const struct ptx_insn *insn;
};
/* Sets %cs_h to the word of the value, %cs_o and %cs_same. Before sm_80 only that of lanes that all store the same. */
void conflict_hash(struct text *t, const struct conflict *c, unsigned first);
/* Sets %cs_h to that of a store by one lane alone. */
void conflict_hash_alone(struct text *t, const struct conflict *c, unsigned first);
/* For the case that all lanes store to one address, %cs_s being the biased stride: clears
 * %cs_all if their values differ. */
void conflict_same_address(struct text *t);
/* Sets %cs_u to the mask of conflicting lanes. */
void conflict_lanes(struct text *t);
/* The same for a store to global memory: sets %cs_w, and clears %cs_all if any lane conflicts. The
 * lanes of an affine access, %cs_x apart in rows of 1 << %cs_z, can only if they are in rows. */
void conflict_global(struct text *t, unsigned label);

#endif
