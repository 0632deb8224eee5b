/* record: the layout of what an instrumented kernel writes to device memory, and of the
 * variable that holds the address of this memory. Shared by the rewriter, which prints the
 * code that writes records, the decoder and the injected library.
 *
 *    pool  = head chunk, `chunks` chunks, one chunk for dropped records, ring, marks
 *    chunk = 256 units of 16 bytes: struct record_chunk, then records
 *
 * A chunk belongs to one lane of one warp. The lanes that are active together at an
 * instruction write one record; the lowest of them, the leader, writes it to its chunk. Each
 * lane's records are in the order of their clocks. A word of 0 where a record would begin ends
 * the chunk, so the pool must be zero before a launch.
 *
 * Draining (--gpu-drain, drain.h): each chunk has a mark, a counter that its lane increments
 * when it takes another chunk or exits. A mark that has changed means that the chunk is
 * complete: the host may copy it, clear it and recycle it. The k-th draw beyond the pool's
 * chunks, counted from 1, reads entry k % RECORD_RING of the ring, which holds k and, in its
 * upper half, the number of a recycled chunk. A lane that cannot wait for the entry leaves k
 * in it, so that the host recycles no chunk for this draw.
 *
 *    record: word 0: site << 13 | affine << 12 | stride + 2048, for an affine shared address
 *            word 1: lanes
 *            word 2: %clock
 *            word 3: affine shared address: the leader's address; else the ticket, or 0 if
 *                    the launch has none. It counts only for what synchronizes
 *    An affine global address has 4 more words: its upper half, s, t and k. The lane at
 *    distance d from the leader has the address leader + (d mod 2^k) * s + (d >> k) * t.
 *    What a store writes from registers is one word: a hash of what each lane writes if all
 *    write the same (RECORD_VALUE_SAME), else one of what which lane writes; 0: not known. It
 *    is in the upper bits of k, or else the first word of one more unit.
 *    Other records continue as the site's plan says (plan.h):
 *      address: if not affine, 32 addresses, one for each lane; word 3 of a store is the mask
 *               of conflicting lanes: those that write something else than the first lane
 *               with the same address
 *      global:  the same with addresses of 64 bits
 *      lanes:   the words of each lane, lowest lane first; affine: all lanes have the same
 *               words, which are stored once
 *      uniform: the leader's words
 *    A record may stand for several accesses (PHASE_GROUP): its class is that of its site. */
#ifndef CONSAN_INSTRUMENT_RECORD_H
#define CONSAN_INSTRUMENT_RECORD_H

#include <stdint.h>

#define RECORD_UNIT 16u
#define RECORD_CHUNK_UNITS 256u
#define RECORD_CHUNK_BYTES (RECORD_UNIT * RECORD_CHUNK_UNITS)
#define RECORD_SITE_SHIFT 13
#define RECORD_SITES (1u << 19)
#define RECORD_AFFINE 0x1000u
#define RECORD_STRIDE_BIAS 2048
#define RECORD_VALUE_SAME (1u << 26)
#define RECORD_VALUE_SHIFT 5    /* in the word of k */

/* The head chunk: the grid's first thread writes the addresses of the shared variables (32
 * bits each, at most RECORD_SYMBOLS) and, if a parameter of the kernel may be a tensor map,
 * the generic address of the parameters. */
#define RECORD_SYMBOLS_AT 32u
#define RECORD_SYMBOLS 500u
#define RECORD_PARAMS_AT 2048u
/* A thread that copies through a tensor map that is not a parameter writes 1 here, with
 * --gpu-global. */
#define RECORD_MAPS_AT 2056u
/* A lane that finds no chunk sets the bit of its CTA, modulo 2^RECORD_INCOMPLETE_BITS. The
 * records of that CTA's cluster are incomplete, so it is not checked: a wait could be missing. */
#define RECORD_INCOMPLETE_AT 3072u
#define RECORD_INCOMPLETE_BITS 13
/* Added to an offset in the parameters that is recorded instead of an address. */
#define RECORD_PARAM (1ull << 63)

/* Entries of 64 bits. Behind them are the marks, of chunk k at index k + 1. */
#define RECORD_RING 65536u
#define RECORD_MARKS_AT (8u * RECORD_RING)
/* The offset of the ring in the pool. */
#define RECORD_RING_AT(chunks) (((uint64_t)(chunks) + 2) * RECORD_CHUNK_BYTES)
/* Chunks of a pool of this size. */
#define RECORD_CHUNKS(bytes) \
	((uint32_t)(((bytes) - RECORD_MARKS_AT - 16) / (RECORD_CHUNK_BYTES + 4) - 2))

/* The largest pool: units are numbered by 32 bits. */
#define RECORD_MOST_BYTES (60ull << 30)

/* A module's variable has this name, followed by the module's number. */
#define RECORD_VARIABLE "consan_gpu_"

struct record_params {
	uint64_t pool;     /* address of the head chunk; 0: nothing is recorded */
	uint32_t chunks;   /* without the head chunk and the last one */
	uint32_t tickets;  /* 1: synchronizing instructions draw tickets, as the clocks of different
			      CTAs cannot be compared */
	uint64_t ring;     /* address of the ring */
	uint64_t ticket;   /* address of the next ticket, 32 bits: a counter that launches which run at the
			      same time share, as their threads may synchronize with each other */
};

struct record_head {
	uint32_t next;     /* 1 + number of chunks drawn */
	uint32_t dropped;  /* number of draws that got no chunk */
	uint32_t unused;
	uint32_t wait_cycles; /* how long a lane waits for a recycled chunk; 0: no lane waits. A
			      lane that waited in vain sets it to 0 */
};
/* Its value with --gpu-drain, in cycles: more than a second, but less than %clock can count,
 * as clocks are extended to 64 bits from one record to the next. */
#define RECORD_WAIT_CYCLES (3u << 30)

struct record_chunk {
	uint32_t cta;      /* linear index in the grid */
	uint32_t warp_lane;/* warp in the CTA << 5 | lane */
	uint32_t clock_lo, clock_hi;
};

/* The digest of a chunk (digest.cu): the polynomial in RECORD_DIGEST_BASE whose coefficients
 * are the hashes of its records, and their number. */
struct record_digest {
	uint32_t cta;
	uint32_t warp_lane_count;  /* record_chunk.warp_lane | number of records << 16 */
	uint32_t sum_lo, sum_hi;
};
#define RECORD_DIGEST_BASE 0xd6e8feb86659fd93ull
/* The most chunks of a CTA that are combined on the GPU. */
#define RECORD_SIGN_CHUNKS 2048u

/* ---- the rest of the module's interface ---- */
#include "digest.h"
#include "screen.h"

#endif
