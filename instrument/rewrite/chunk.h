/* chunk: prints the PTX by which a lane takes a chunk of the pool (record.h), and gives it back with
 * --gpu-drain. Registers as in hook.c. */
#ifndef CONSAN_INSTRUMENT_CHUNK_H
#define CONSAN_INSTRUMENT_CHUNK_H

#include "hook.h"

/* Reads the record's clock, cs_c, and makes the leader take a new chunk if its current one has less than cs_n units
 * left. */
void chunk_reserve(struct text *t, const struct hook *h);
/* With --gpu-drain: the chunks of the lanes that record are complete. */
void chunk_close_all(struct text *t, const struct hook *h);
/* A lane that polls for a chunk yields, and a point of reconvergence does not wait for a lane
 * that yields. Without this barrier the other lanes would continue, and their next accesses
 * would be recorded before what the leader has still to record for them. */
void chunk_sync_with_leader(struct text *t, const struct hook *h);
#endif
