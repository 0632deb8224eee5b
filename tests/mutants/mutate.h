/* mutate: makes mutants of a kernel: its PTX text with one synchronization instruction deleted or
 * weakened. */
#ifndef MUTATE_H
#define MUTATE_H

#include "libconsan/ptx/ir.h"

struct mutant {
	const struct ptx_insn *insn;
	unsigned row;        /* of mutation.def */
	struct text ptx;     /* the whole module; line numbers are unchanged */
};
struct mutants {
	struct mutant *at;
	size_t n, cap;
};

/* Appends the mutants of f, in the order of its instructions. threads: of a block, for barriers
 * without a count. */
void mutate(const struct ptx_func *f, unsigned threads, struct mutants *out);
/* The name of a row, such as "drop" or "bytes + 16", and the beginning of its opcodes. */
const char *mutation_name(unsigned row);
const char *mutation_opcode(unsigned row);

#endif
