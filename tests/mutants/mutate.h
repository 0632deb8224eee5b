/* mutate: a kernel's PTX with one synchronisation instruction deleted or
 * weakened. It edits text and runs nothing. */
#ifndef MUTATE_H
#define MUTATE_H

#include "libconsan/ptx/ir.h"

struct mutant {
	const struct ptx_insn *insn;
	unsigned row;        /* of mutation.def */
	struct text ptx;     /* the whole module; lines keep their numbers */
};
struct mutants {
	struct mutant *at;
	size_t n, cap;
};

/* Adds the mutants of f, in the order of its instructions. `threads`: of a
 * block, for barriers that name no count. */
void mutate(const struct ptx_func *f, unsigned threads, struct mutants *out);
/* "drop", "bytes + 16", ...; and the beginning of the opcode it is for */
const char *mutation_name(unsigned row);
const char *mutation_opcode(unsigned row);

#endif
