/* rewrite: changes PTX so that it records what it does. The text stays as it is; hooks are put
 * around the statements that have an effect (plan.h). */
#ifndef CONSAN_INSTRUMENT_REWRITE_H
#define CONSAN_INSTRUMENT_REWRITE_H

#include "libconsan/ptx/ptx.h"

enum site_phase {
	PHASE_BEFORE, PHASE_AFTER, PHASE_FAILED, PHASE_BATCH, PHASE_PATH,
	PHASE_GLOBAL,              /* plan_global_of() */
	PHASE_GLOBAL_AFTER,        /* of an atomic: after it is executed */
	PHASE_RANK,                /* plan_rank_of() */
	PHASE_TOKEN,               /* plan_token_of() */
	PHASE_REMOTE,              /* plan.remote */
	PHASE_FOREIGN,             /* an indirect call of a function of another module */
	PHASE_GROUP,               /* one record for the accesses of the sites that follow (group.h) */
};

/* A value of a member of a group: a word of the record, to which a constant is added. */
struct rewrite_part { uint8_t word; uint32_t add; };
#define REWRITE_PARTS 2

/* What a record's site number stands for. */
struct rewrite_site {
	const struct ptx_func *func;
	const struct ptx_insn *insn;
	/* rewrite.batch[batch ..]. PHASE_BATCH: the instructions of the record; else the warp
	 * collectives that follow and have no record of their own */
	uint32_t batch, nbatch;
	uint8_t phase;             /* enum site_phase */
	/* PHASE_GROUP: the sites that follow and have no record of their own, the class of the record and
	 * the words of each lane. Of such a site: where its values are */
	uint8_t nmembers, class, lane_words;
	struct rewrite_part value[REWRITE_PARTS];
};

/* A plain instruction that uses registers of a wgmma. It is not recorded: its place in the
 * execution follows from the records before and after it. */
struct rewrite_reg_use {
	const struct ptx_func *func;
	const struct ptx_insn *insn;
	uint16_t nread, nwritten;
	bool operand;              /* one of them is an operand; else all are copies */
	uint32_t *reg;             /* those read, then those written */
};

struct rewrite_func {
	const struct ptx_func *func;
	/* Shared variables, also those of its functions, in the order in which the kernel
	 * reports their addresses (record.h). */
	const struct ptx_var **symbol; size_t nsymbols;
	bool hidden;               /* there may be shared variables that are not among its
				      symbols */
	bool reserved;             /* it uses the system's part of shared memory */
	uint32_t sites, recorded;  /* instructions whose effect is to be recorded; those that are
				      recorded; both with its functions */
	uint32_t *reg_use_of;      /* by instruction: 1 + index in rewrite.reg_use, or 0; NULL:
				      there is no wgmma */
	bool *recorded_block;      /* by block: an instruction in it is recorded */
	bool *mark;                /* by instruction: recorded only to identify the path
				      (wgmma_regs.c) */
	char *refused;             /* why it cannot be checked; NULL: it can */
	bool refused_global;       /* it could be if accesses to global memory were not recorded */
	bool orders_grid;          /* plan_orders_grid() of it or of one of its functions, with
				      --gpu-global */
	bool tensor;               /* it or one of its functions has tcgen05 instructions */
	bool hands_over;           /* ptx_hands_over() of an instruction, or it has a call */
	bool unbounded_stack;      /* calls_unbounded() */
	uint32_t unrecorded;       /* accesses to global memory that are not recorded */
};

struct rewrite {
	const struct ptx_module *module; /* not owned */
	unsigned number;
	bool emulated, global, drains, external; /* as rewrite_options */
	bool together;                   /* rewrite_has_together() of a function */
	unsigned waits;                  /* waits for mbarriers that were written */
	struct text text;
	VEC(struct rewrite_site) site;   /* element 0 is not used */
	VEC(const struct ptx_insn *) batch;
	VEC(struct rewrite_reg_use) reg_use;
	VEC(struct rewrite_func) func;   /* the entries */
};

struct rewrite_options {
	unsigned number;           /* the suffix of the variable's name (record.h) */
	bool emulated;             /* the text is for the executor: try_wait becomes test_wait, as the
				      executor's try_wait suspends the thread instead of failing */
	bool global;               /* accesses to global memory are recorded */
	bool drains;               /* lanes wait for chunks that the host recycles (--gpu-drain) */
	bool external;             /* variables in global memory are the program's own (external.h), and
				      a launch that is not recorded runs the program's own kernel */
};
struct rewrite *rewrite_module(const struct ptx_module *m, const struct rewrite_options *o);
/* Is this instruction counted in rewrite_func.sites? */
bool rewrite_counts(const struct ptx_insn *i, bool global);
/* wgmma_regs.c: finds the register uses of an entry. */
void rewrite_find_reg_uses(struct rewrite *r, struct rewrite_func *info);
/* The register uses that are executed between two instructions, on every path between them on
 * which nothing is recorded; the two are not included. from: UINT32_MAX: the entry. Writes at
 * most `cap` indices of r->reg_use; they are in execution order if there is only one path. */
unsigned rewrite_reg_uses_between(const struct rewrite *r, const struct rewrite_func *f,
	uint32_t from, uint32_t to, uint32_t *use, unsigned cap);
/* together.c: warp collectives of a whole warp that are not recorded, as mma.sync. Does the function
 * have any? Does one lie on every path between two of its instructions, exclusive? */
bool rewrite_has_together(const struct ptx_func *f);
bool rewrite_together_between(const struct ptx_func *f, uint32_t from, uint32_t to);
void rewrite_free(struct rewrite *r);
const struct rewrite_func *rewrite_find(const struct rewrite *r, const char *kernel);
/* A recorded instruction that ends its lanes. */
bool rewrite_leaves(const struct ptx_insn *i);

/* ---- the rest of what this module offers ---- */
#include "plan.h"
#include "plan_bulk.h"
#include "slice.h"

#endif
