/* statement: what rewrite.c, which iterates over functions, and statement.c, which writes
 * their statements, share. Used by these two only. */
#ifndef CONSAN_INSTRUMENT_STATEMENT_H
#define CONSAN_INSTRUMENT_STATEMENT_H

#include "calls.h"
#include "group.h"
#include "hook.h"
#include "rewrite.h"

/* The function that is being written. */
struct writer {
	struct rewrite *r;
	const struct calls *calls;
	struct hook_functions *functions;
	const struct ptx_func *f;
	struct rewrite_func *info; /* of an entry; of a device function only the counts are used */
	enum hook_state state;
	struct text out;           /* the function's body so side */
	unsigned labels;
	bool polls;                /* strong loads are recorded */
	bool tests;                /* waits for mbarriers are recorded */
	unsigned words, most_words;/* of the current wgmma group; the most of any */
	unsigned reserve;          /* see struct hook */
	uint32_t group;            /* index of its first instruction in rewrite.batch */
	uint32_t collective;       /* site of the warp collective recorded last, if nothing was
				      recorded since; else 0 */
	uint32_t collective_block;
	bool *inflight_at;         /* inflight_find() */
	uint32_t *scope;           /* group_scopes() */
	/* by instruction: it is in a group, whose record is written, or was moved before it */
	enum written { WRITTEN_NOT, WRITTEN_RECORD, WRITTEN_ALL } *written;
	bool inflight;             /* a wgmma may be in flight here */
};

/* Writes the instruction f->insn[at] with its hooks. */
void statement_write(struct writer *w, uint32_t at);
/* Does the record of a wgmma group end with this instruction of the group, up to which it has
 * so many words? */
bool statement_ends_group(const struct ptx_func *f, size_t at, unsigned words);
/* Records before the instruction that the lane takes this path (wgmma_regs.c). */
void statement_mark_path(struct writer *w, const struct ptx_insn *i);
/* Stores the recording state before the function returns. */
void statement_save_state(struct writer *w);

#endif
