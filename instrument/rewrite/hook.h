/* hook: the PTX that writes one record. Used by rewrite.c and statement.c only. */
#ifndef CONSAN_INSTRUMENT_HOOK_H
#define CONSAN_INSTRUMENT_HOOK_H

#include "conflict.h"
#include "plan.h"

/* The recording state of a lane, in registers of the whole function: "%cs_pos", its next unit
 * in the pool, "%cs_ticket", the ticket that it drew last, or 0 (ticket.h), and "%cs_failed", a bit for
 * each wait that failed since one succeeded. With
 * polls also "%cs_polled" and "%cs_seen", the site of the strong load that was recorded last
 * and the value loaded. Around calls the state is kept in local memory of the entry, at "%cs_at". */
enum hook_state {
	STATE_PRIVATE,             /* in registers only */
	STATE_OWNED,               /* an entry that calls functions that record: it has the local
				      memory */
	STATE_PASSED,              /* such a function: the address is its last parameter */
};
/* Prints that the lane's last ticket will do for no later record. */
void hook_forget_ticket(struct text *t);
/* Sets %cs_zero to 0, which ptxas does not know, nor that all lanes have the same. */
void hook_zero(struct text *t);
void hook_function(struct text *t, unsigned batch_words, bool polls, enum hook_state state);
/* Prints the stores of the state before a call or return, and its loads after a call. */
void hook_save_state(struct text *t, bool polls);
void hook_load_state(struct text *t, bool polls);
/* Declares the scratch registers of one block. */
void hook_registers(struct text *t, unsigned words);
/* Functions that write records, each from the parameters on, with what it returns, and which of them the
 * hooks seen so far call. */
struct hook_functions {
	struct hook_code { struct text returns, text; } *at;
	size_t n, cap;
	VEC(struct hook_key { struct text text; size_t function; }) key;
};
/* Prints the code that records `site`, with the words in prefix0, prefix1 and so on. What changes the code
 * of a function is in key_of(). */
struct hook {
	uint32_t site;
	enum plan_class class;
	unsigned words;
	const char *prefix;
	bool sync;
	bool earlier;              /* sync: a ticket that the lane drew before will do */
	bool elected;              /* as plan.elected */
	bool always;               /* a kernel runs only if there is a pool */
	bool in_place;             /* no function is called */
	struct hook_functions *functions;
	bool drains;               /* for --gpu-drain; if false, the next three do not matter */
	bool exits;                /* the lanes exit, so their chunks are complete */
	bool pending;              /* wgmma may be pending. A loop would make ptxas serialize it,
				      so the hook does not wait for a chunk */
	unsigned reserve;          /* units that other hooks leave free in a chunk, so that a
				      record under `pending` rarely needs a new one */
	bool often_uniform;        /* PLAN_LANES: lanes often have the same words */
	struct conflict conflict;  /* a plain store */
	unsigned label, module;
	/* hook_record() sets these: the site's part of word 0, a number or a register; the mask of the lanes that
	 * record together */
	const char *word, *lanes;
};
void hook_record(struct text *t, const struct hook *h);
/* The same within a function that writes records: the upper bit of a clock. In place %cs_zero is that of the
 * function around it. */
void hook_zero_here(struct text *t, const struct hook *h);
/* The words of a lane that has to record this many: with others that have no meaning, if stores of several
 * words at a time need these. */
unsigned hook_lane_words(unsigned words);
/* Prints the functions that were called. */
void hook_functions(struct text *t, const struct hook_functions *all);
void hook_functions_free(struct hook_functions *all);

#endif
