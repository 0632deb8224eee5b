/* place: where in a kernel an edit (finding/edit.h) belongs. The checker names instructions; the
 * control flow says which points between two of them all paths pass, and which of these all threads
 * of the CTA are likely to pass. */
#ifndef CONSAN_PLACE_H
#define CONSAN_PLACE_H

#include "libconsan/finding/finding.h"
#include "libconsan/ptx/ptx.h"

enum { PLACES = 12 };
struct place {
	const struct ptx_func *func;
	const struct ptx_insn *insn;
	const struct site_loc *own;  /* its frame in the program's own code, or NULL */
	enum finding_edit_kind kind; /* EDIT_CHANGE, EDIT_BEFORE or EDIT_AFTER */
	/* also at so many other instructions that the compiler made of this source place */
	uint32_t copies;
	bool wide;  /* wherever its function was inlined; else only in loops that were unrolled */
	const struct ptx_insn *moved; /* EDIT_MOVE: the instruction, which is removed at its place; ptx
				 has it with the condition under which it is executed there */
	char form[sizeof ((struct finding_edit *)0)->form];
	char words[sizeof ((struct finding_edit *)0)->words];
	char ptx[sizeof ((struct finding_edit *)0)->ptx];
};

/* What is known of the module's functions; m must outlive it. */
struct placer;
struct placer *placer_open(const struct ptx_module *m);
void placer_close(struct placer *p);

/* The site of the instruction on this line that begins with this text; 0: none. */
uint32_t place_site(const struct placer *p, uint32_t line, const char *ptx);
/* The places of an edit that can be made (its ptx is not ""), the best first, at most so many.
 * Returns their number: 0 if the instructions are not in this module. */
size_t place_edit(struct placer *p, const struct finding_edit *e, size_t most,
	struct place to[PLACES]);
/* Where the fence of an EDIT_AFTER or EDIT_BEFORE stands if it is that of the thread that
 * releases or acquires: before the first synchronization that follows the instruction, or behind
 * or before the last one that precedes it. Returns the number of places, at most PLACES. */
size_t place_beside(struct placer *p, const struct finding_edit *e, struct place to[PLACES]);
/* Before the innermost loop around the instruction of an EDIT_BEFORE. Returns 0 or 1. */
size_t place_outside(struct placer *p, const struct finding_edit *e, struct place to[PLACES]);
/* The barrier of the CTA, or of a part of it, that the thread has passed last before the
 * instruction. False: none. */
bool place_barrier(struct placer *p, uint32_t site, char *to, size_t n);
/* The place as an edit. */
struct finding_edit place_to_edit(const struct place *p);
bool place_same(const struct place *a, const struct place *b);
struct flow;
/* The next instruction that the source place of `x` became, after the index *at, or NULL. Of a row
 * that is inserted at, the first or last one. */
const struct ptx_insn *place_next_copy(const struct flow *w, const struct place *x, uint32_t *at);
/* The statement of an instruction that is moved to `to`: under the condition of the branch around
 * it, if that does not hold there. False: it cannot be moved there. */
bool place_moved(const struct flow *w, const struct ptx_insn *moved, const struct ptx_insn *to,
	char *ptx, size_t n);
/* Of what is inserted at one instruction, the lowest comes first: fences and waits belong before a
 * barrier, and a barrier before an arrive that is moved there. */
unsigned place_rank(const struct place *p);
/* The text of the module with n edits. Lines keep their numbers. The caller frees `out`. */
void place_apply(struct placer *p, const struct place *at, size_t n, struct text *out);

#endif
