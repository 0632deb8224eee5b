/* ticket: which records need a ticket of their own. A ticket is a number from a counter in global memory;
 * it orders the synchronization of different CTAs (record.h). To draw one takes as long as an access to
 * memory, and what follows waits for it: a producer that draws one for each arrival and copy is several
 * times slower.
 *
 * A record made before an operation that only releases (an arrival, a bulk copy) may have the ticket that
 * its lane drew last, if the lane has acquired nothing since. The operation then counts as executed right
 * after the lane's last acquisition. That is an order in which it can have happened: nothing ordered it
 * after more, and whoever acquires what it releases draws a ticket later, as it did in fact. Records of
 * one warp are decoded in the order of their clocks, so a ticket that is lower than that of an earlier
 * record of the warp places its record right behind that one. */
#ifndef CONSAN_INSTRUMENT_TICKET_H
#define CONSAN_INSTRUMENT_TICKET_H

#include "libconsan/ptx/ptx.h"

/* May a record before this instruction have a ticket that was drawn earlier? */
bool ticket_may_be_earlier(const struct ptx_insn *i);
/* May the instruction make other threads' operations visible, or call a function that does? A ticket that
 * was drawn before it is not used after it. */
bool ticket_ends(const struct ptx_insn *i);

#endif
