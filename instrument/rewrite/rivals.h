/* rivals: lanes of one store to shared memory that write to the same place: which
 * of them write something else than the first of them does, told in the store's
 * record, as far as PTX goes. The words that lanes write stand behind their
 * address, in %cs_v1 and on; where lanes write constants, all write the same. */
#ifndef CONSAN_INSTRUMENT_RIVALS_H
#define CONSAN_INSTRUMENT_RIVALS_H

#include "libconsan/ptx/ptx.h"

/* Words that this store writes out of registers; 0: it can have no rivals. */
unsigned rivals_words(const struct ptx_func *f, const struct ptx_insn *i);
void rivals_values(struct text *t, const struct ptx_func *f, const struct ptx_insn *i);
/* All lanes store to one address, with %cs_s the biased stride: %cs_all stays
 * true only if they write the same. */
void rivals_of_one(struct text *t, unsigned words, unsigned label);
/* The lanes that write something else, to %cs_u. */
void rivals_lost(struct text *t, unsigned words);

#endif
