/* rewrite: PTX that also records what it does. The text stays as it was, with
 * code put around the statements that have an effect (plan.h). */
#ifndef CONSAN_INSTRUMENT_REWRITE_H
#define CONSAN_INSTRUMENT_REWRITE_H

#include "../libconsan/ptx/ir.h"

enum site_phase { PHASE_BEFORE, PHASE_AFTER, PHASE_FAILED, PHASE_BATCH };

/* What a record's site number means. */
struct rewrite_site {
	const struct ptx_func *func;
	const struct ptx_insn *insn;
	uint32_t batch, nbatch;    /* PHASE_BATCH: rewrite.batch[batch ..] */
	uint8_t phase;             /* enum site_phase */
};

struct rewrite_func {
	const struct ptx_func *func;
	/* Shared variables, in the order in which the kernel reports where
	 * they lie: words of the head chunk from unit 2 on. */
	const struct ptx_var **symbol; size_t nsymbols;
	uint32_t sites, recorded;  /* instructions with an effect, of those recorded */
	char *refused;             /* why it cannot be checked, or NULL */
};

struct rewrite {
	const struct ptx_module *module; /* not owned */
	unsigned number;
	bool polls;
	struct text text;
	VEC(struct rewrite_site) site;   /* from 1 */
	VEC(const struct ptx_insn *) batch;
	VEC(struct rewrite_func) func;   /* the entries */
};

/* number: part of the name of the variable (record.h). polls: try_wait becomes
 * test_wait, as the executor's try_wait would sleep instead of failing. */
struct rewrite *rewrite_module(const struct ptx_module *m, unsigned number, bool polls);
void rewrite_free(struct rewrite *r);
const struct rewrite_func *rewrite_find(const struct rewrite *r, const char *kernel);

#endif
