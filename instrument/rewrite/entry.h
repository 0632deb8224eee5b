/* entry: see entry.c. */
#ifndef CONSAN_INSTRUMENT_ENTRY_H
#define CONSAN_INSTRUMENT_ENTRY_H

#include "calls.h"
#include "rewrite.h"

/* The instruction has an effect beyond registers. */
bool entry_acts(const struct ptx_insn *i);
/* Its sites, its shared variables, and why it is refused, if it is. */
void entry_know(const struct calls *c, struct rewrite_func *info);
/* Once all functions are rewritten: the sites recorded in those that it calls. */
void entry_count(const struct calls *c, struct rewrite_func *info);

#endif
