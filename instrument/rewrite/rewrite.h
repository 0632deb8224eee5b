/* rewrite: PTX that also records what it does. The text stays as it was, with
 * code put around the statements that have an effect (plan.h). */
#ifndef CONSAN_INSTRUMENT_REWRITE_H
#define CONSAN_INSTRUMENT_REWRITE_H

#include "libconsan/ptx/ptx.h"

enum site_phase {
	PHASE_BEFORE, PHASE_AFTER, PHASE_FAILED, PHASE_BATCH, PHASE_MARK,
	PHASE_GLOBAL,              /* plan_global_of() */
	PHASE_GLOBAL_SEEN,         /* ... of an atomic, behind it */
	PHASE_RANK,                /* plan_rank_of() */
	PHASE_TOKEN,               /* plan_token_of() */
	PHASE_STRAY,               /* plan.strays */
	PHASE_FOREIGN,             /* a call goes to a function of another module */
};

/* What a record's site number means. */
struct rewrite_site {
	const struct ptx_func *func;
	const struct ptx_insn *insn;
	/* rewrite.batch[batch ..]; PHASE_BATCH: what the record holds, else the
	 * meetings that follow without a record of their own */
	uint32_t batch, nbatch;
	uint8_t phase;             /* enum site_phase */
};

/* A plain instruction that touches registers which some wgmma works on. It is
 * not recorded: where it was executed follows from the records around it. */
struct rewrite_note {
	const struct ptx_func *func;
	const struct ptx_insn *insn;
	uint16_t nread, nwritten;
	uint32_t *reg;             /* read, then written */
};

struct rewrite_func {
	const struct ptx_func *func;
	/* Shared variables, its functions' too, in the order in which the kernel
	 * reports where they lie (record.h). */
	const struct ptx_var **symbol; size_t nsymbols;
	bool hidden;               /* there may be shared variables beside its symbols */
	bool reserved;             /* it asks for the system's part of shared memory */
	uint32_t sites, recorded;  /* instructions whose effect is to be recorded; those
				      that are; its functions' too */
	uint32_t *note_of;         /* instruction -> 1 + place in rewrite.note; NULL: no wgmma */
	bool *recorded_block;      /* by block: something in it is recorded */
	bool *mark;                /* by instruction: recorded only as a place on the way */
	char *refused;             /* why it cannot be checked, or NULL */
	bool orders_grid;          /* plan_orders_grid() of it or a function, if global
				      accesses are recorded */
	bool hands_over;           /* ptx_hands_over() of some instruction, or it calls */
	bool deep;                 /* calls_deep() */
	uint32_t unrecorded;       /* accesses to global memory that are not */
};

struct rewrite {
	const struct ptx_module *module; /* not owned */
	unsigned number;
	bool polls, global, drains;
	struct text text;
	VEC(struct rewrite_site) site;   /* from 1 */
	VEC(const struct ptx_insn *) batch;
	VEC(struct rewrite_note) note;
	VEC(struct rewrite_func) func;   /* the entries */
};

/* number: part of the name of the variable (record.h). polls: try_wait becomes
 * test_wait, as the executor's try_wait would sleep instead of failing. global:
 * accesses to global memory are recorded, too. drains: lanes wait for chunks that the
 * host gives back (drain.h). */
struct rewrite *rewrite_module(const struct ptx_module *m, unsigned number, bool polls, bool global,
	bool drains);
/* Is this one of rewrite_func.sites? */
bool rewrite_counts(const struct ptx_insn *i, bool global);
/* regs.c: the notes of an entry. */
void rewrite_notes(struct rewrite *r, struct rewrite_func *info);
/* The notes that are executed on every way from an instruction (UINT32_MAX: the
 * entry) to another one on which nothing is recorded, both left out. At most
 * room; in the order of the way if there is only one. */
unsigned rewrite_between(const struct rewrite *r, const struct rewrite_func *f, uint32_t from,
	uint32_t to, uint32_t *note, unsigned room);
void rewrite_free(struct rewrite *r);
const struct rewrite_func *rewrite_find(const struct rewrite *r, const char *kernel);
/* Of what is recorded: the lanes end. */
bool rewrite_leaves(const struct ptx_insn *i);

/* ---- the rest of what this module offers ---- */
#include "extents.h"
#include "plan.h"

#endif
