/* words: what every renderer says in the same way: places, names, who did what.
 * Plain text; escaping and style are the renderer's. */
#ifndef CONSAN_WORDS_H
#define CONSAN_WORDS_H

#include "libconsan/event/event.h"
#include "libconsan/finding/finding.h"
#include "libconsan/options/options.h"

extern const char *const words_severity[]; /* by enum severity */
extern const char *const words_remark[];   /* by enum result_remark_kind */
/* "s" unless there is one of it */
static inline const char *words_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

const char *words_base_name(const char *file);
/* Relative to the working directory when below it; a/b/../c is a/c. free() it. */
char *words_file(const struct options *o, const char *file);
/* In one line; of {a long, list, of, registers} the ends. free() it. */
char *words_instruction(const char *ptx);
const char *words_space(uint8_t space); /* enum ev_space */

/* The following add to t. */
void words_place(struct text *t, uint32_t site);   /* "reduce.cu:17", or "prog.ptx:170" */
/* "hgemm.cu:173 ldmatrix.sync": the line of the kernel itself, which calls what is
 * inlined there, and the opcode. */
void words_access(struct text *t, uint32_t site);
void words_places(struct text *t, const struct finding *f); /* of both sides, " / " between */
void words_who(struct text *t, const struct finding_side *s);
void words_bytes(struct text *t, const struct finding_side *s); /* nothing if there are none */
void words_barrier_name(struct text *t, const struct finding_barrier *b);
void words_barrier(struct text *t, const struct finding_barrier *b); /* with its state */
void words_bytes_count(struct text *t, uint64_t bytes); /* "16 KiB" if it is whole */
/* An object in shared memory as recorder.c names it, with its variable demangled. */
void words_symbol(struct text *t, const char *name);

#endif
