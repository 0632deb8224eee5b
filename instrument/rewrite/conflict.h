/* conflict: conflicting lanes of one store to shared memory, that is lanes that store
 * different values to the same address. The store's record holds a mask of the lanes whose
 * value differs from that of the first lane with the same address. The words to be stored are
 * in %cs_v1 and following, behind the address in %cs_v0. Constants need no comparison. */
#ifndef CONSAN_INSTRUMENT_CONFLICT_H
#define CONSAN_INSTRUMENT_CONFLICT_H

#include "libconsan/ptx/ptx.h"

/* Number of register words that this store writes; 0: its lanes cannot conflict. */
unsigned conflict_words(const struct ptx_func *f, const struct ptx_insn *i);
void conflict_values(struct text *t, const struct ptx_func *f, const struct ptx_insn *i);
/* For the case that all lanes store to one address, %cs_s being the biased stride: clears
 * %cs_all if their values differ. */
void conflict_same_address(struct text *t, unsigned words, unsigned label);
/* Sets %cs_u to the mask of conflicting lanes. */
void conflict_lanes(struct text *t, unsigned words);

#endif
