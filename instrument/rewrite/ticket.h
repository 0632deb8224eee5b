/* ticket: which records need a ticket of their own. A ticket is a number from a counter in global memory;
 * it orders the synchronization of different CTAs (record.h). To draw one takes as long as an access to
 * memory, and what follows waits for it.
 *
 * The record of an asynchronous operation (a bulk copy) may have the ticket that its lane drew last, if the
 * lane has acquired nothing since. The operation then counts as issued right after that. That is an order in
 * which it can have happened: nothing ordered it after more, what it signals takes place as late as the waits
 * allow (decode/barriers.c), and whoever sees it complete draws a ticket later, as it did in fact. Records
 * of one warp are decoded in the order of their clocks, so a ticket that is lower than that of an earlier
 * record of the warp places its record right behind that one.
 *
 * It is not so of arrivals, which take place at once: in a kernel with a bug, one that is moved to the front
 * of others completes phases earlier than the waits which have returned saw. */
#ifndef CONSAN_INSTRUMENT_TICKET_H
#define CONSAN_INSTRUMENT_TICKET_H

#include "libconsan/ptx/ptx.h"

/* May a record before this instruction have a ticket that was drawn earlier? */
bool ticket_may_be_earlier(const struct ptx_insn *i);
/* May the instruction make other threads' operations visible, or call a function that does? A ticket that
 * was drawn before it is not used after it. */
bool ticket_ends(const struct ptx_insn *i);

#endif
