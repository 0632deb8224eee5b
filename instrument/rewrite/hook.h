/* hook: the PTX that writes one record; only rewrite.c and statement.c ask for it. */
#ifndef CONSAN_INSTRUMENT_HOOK_H
#define CONSAN_INSTRUMENT_HOOK_H

#include "plan.h"

/* A lane's place: function-wide registers "%cs_pos" (its next unit) and "%cs_failed"
 * (the site of the wait that failed last); polls: "%cs_polled" and "%cs_seen",
 * the site of the strong load that was last recorded, and what it loaded. Around
 * calls it lies in local memory of the entry, of which "%cs_at" is the address. */
enum hook_place {
	PLACE_STAYS,               /* nobody else needs it */
	PLACE_LENT,                /* an entry that calls functions that record */
	PLACE_GIVEN,               /* such a function; the address is its last parameter */
};
void hook_function(struct text *t, unsigned batch_words, bool polls, enum hook_place place);
/* Before a call or return, and after a call. */
void hook_lend(struct text *t, bool polls);
void hook_regain(struct text *t, bool polls);
/* The scratch registers of one block. */
void hook_registers(struct text *t, unsigned words);
/* Records site, with words named prefix0, prefix1 ...; label: a number that no
 * other hook of the function has. */
struct hook {
	uint32_t site;
	enum plan_class class;
	unsigned words;
	const char *prefix;
	bool sync;
	bool drains;               /* for --gpu-drain; if not, what follows does not count: */
	bool leaves;               /* the lanes exit: they are done with their chunks */
	bool flying;               /* wgmma may run: a loop would make ptxas serialise it, so
				      that no chunk is waited for here, if none was given
				      back yet, but ... */
	unsigned spare;            /* ... elsewhere: units of a chunk to leave for such a record */
	bool alike;                /* of PLAN_LANES: lanes mostly have the same words */
	unsigned rivals;           /* as in struct plan */
	unsigned label, module;
};
void hook_record(struct text *t, const struct hook *h);

#endif
