/* entry: facts about a kernel; see entry.c. */
#ifndef CONSAN_INSTRUMENT_ENTRY_H
#define CONSAN_INSTRUMENT_ENTRY_H

#include "calls.h"
#include "rewrite.h"

/* The instruction has an effect beyond registers. */
bool entry_has_effect(const struct ptx_insn *i);
/* Fills in the kernel's sites, its shared variables and, if it is refused, the reason. */
void entry_analyze(const struct calls *c, struct rewrite_func *info);
/* Called once all functions are rewritten: adds the sites recorded in the functions that it
 * calls. */
void entry_count(const struct calls *c, struct rewrite_func *info);

#endif
