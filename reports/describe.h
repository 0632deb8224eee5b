/* describe: the descriptions of places, threads, bytes and barriers that every renderer
 * prints. Plain text; the renderer escapes and styles it. */
#ifndef CONSAN_DESCRIBE_H
#define CONSAN_DESCRIBE_H

#include "libconsan/event/event.h"
#include "libconsan/finding/finding.h"
#include "libconsan/options/options.h"

extern const char *const severity_text[]; /* by enum severity */
extern const char *const remark_text[];   /* by enum result_remark_kind */

/* A short label for side i: "later" (side 0) and "earlier"; "at" if it is the only side. */
const char *side_label(const struct finding *f, unsigned i);

/* The label of the finding's `edge`: what is missing, or the error of a call of the host. */
const char *edge_label(const struct finding *f);

/* "s" unless n is 1 */
static inline const char *plural_s(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* The part behind the last slash. */
const char *file_base_name(const char *file);
/* Relative to the working directory if below it; a/b/../c becomes a/c. free() it. */
char *display_path(const struct options *o, const char *file);
/* The instruction in one line; a long {list, of, registers} is reduced to its first and
 * last one. free() it. */
char *short_instruction(const char *ptx);
const char *space_text(uint8_t space); /* of enum ev_space */

/* The number of different warps among the waiters: a diverged warp may wait at two places. */
unsigned blocked_warps(const struct finding *f);

/* The describe functions append to t. */
/* "reduce.cu:17", or "prog.ptx:170" without line information. */
void describe_place(struct text *t, uint32_t site);
/* "hgemm.cu:173 ldmatrix.sync": the line in the kernel itself, which calls the functions
 * that are inlined there, and the opcode. */
void describe_access(struct text *t, uint32_t site);
/* A frame of the host's call stack: "main.cu:17 in run"; "run in prog", "prog+0x1234" without line
 * information. */
void describe_host(struct text *t, const struct options *o, const struct site_loc *l);
/* The places of all sides, separated by " / ". */
void describe_places(struct text *t, const struct finding *f);
/* Thread or warp, block, and rank in the cluster. */
void describe_thread(struct text *t, const struct finding_side *s);
/* "4 B at tile+0x80 (shared 0x80)"; nothing if the side accesses no memory. */
void describe_bytes(struct text *t, const struct finding_side *s);
/* "lanes 0-31 of columns 64-127"; nothing if there are none. */
void describe_cells(struct text *t, const struct finding_cells *c);
void describe_barrier_name(struct text *t, const struct finding_barrier *b);
/* Name and state. */
void describe_barrier(struct text *t, const struct finding_barrier *b);
/* What to do, in one sentence: "hgemm.cu:87: insert __syncthreads() before this line". "": nothing
 * is known. */
void describe_edit(struct text *t, const struct finding_edit *e);
/* What running the launch again with the edit showed: "with this change the launch is clean"; or
 * why that was not done; or "". */
void describe_verified(struct text *t, const struct finding *f);
/* "1,024 occurrences, 8 clusters, 2 instruction pairs" */
void describe_occurrences(struct text *t, const struct finding *f);
/* The options that select the schedule of the finding; "" if that is the default one. */
void describe_schedule(struct text *t, const struct finding *f);
/* What --explore has run: "all 57 schedules with at most 2 switches, and 43 seeds"; or "". */
/* Bits of enum finding_hidden, unless each checked launch was replayed whole on the CPU */
uint64_t describe_hides(const struct coverage *c);
/* What a GPU can hide of the kernel, and what was replayed of it; or nothing */
void describe_replayed(struct text *t, const struct coverage *c);
void describe_explored(struct text *t, const struct coverage *c);
/* A size in KiB if it is a multiple of one, else in bytes. */
void describe_size(struct text *t, uint64_t bytes);

#endif
