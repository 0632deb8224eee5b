/* statement: between rewrite.c, which goes through functions, and statement.c, which
 * writes their statements. Private to them. */
#ifndef CONSAN_INSTRUMENT_STATEMENT_H
#define CONSAN_INSTRUMENT_STATEMENT_H

#include "calls.h"
#include "hook.h"
#include "rewrite.h"

/* The function that is being written. */
struct writer {
	struct rewrite *r;
	const struct calls *calls;
	const struct ptx_func *f;
	struct rewrite_func *info; /* an entry's; a function's is only counted in */
	enum hook_place place;
	struct text out;           /* the function's body so far */
	unsigned labels;
	bool polls;                /* strong loads are recorded */
	bool tests;                /* waits for mbarriers are */
	unsigned words, most_words;/* of the wgmma group at hand */
	unsigned spare;            /* see struct hook */
	uint32_t group;            /* its first in rewrite.batch */
	uint32_t meeting;          /* site of the meeting that was recorded last, if
				      nothing was recorded since */
	uint32_t meeting_block;
};

/* The at-th instruction's. */
void statement_write(struct writer *w, uint32_t at);
/* Does the record of a wgmma group end with this instruction, which is one of it, and with
 * which it has so many words? */
bool statement_ends_group(const struct ptx_func *f, size_t at, unsigned words);
/* Before it: the lane comes this way (regs.c). */
void statement_mark(struct writer *w, const struct ptx_insn *i);
/* Before the function returns. */
void statement_leave(struct writer *w);

#endif
