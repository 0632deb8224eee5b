/* record: what an instrumented kernel writes to device memory, and the variable
 * through which it learns where. Shared by the rewriter, which prints the code
 * that writes it, by the decoder and by the injection.
 *
 *   pool = head chunk, then `chunks` chunks, then one that takes what is dropped,
 *          then the ring, then a mark for each chunk
 *   chunk = 256 units of 16 bytes: struct record_chunk, then records
 *
 * A chunk belongs to one lane of one warp: the lane that leads (the lowest
 * active one) writes the record of all lanes that act with it. The records of
 * a warp are in the order of their clock; a word of 0 where a record should
 * begin ends the chunk, so the pool must be zero before a launch.
 *
 * A mark that is not what it was says that nobody writes into the chunk any more:
 * its lane has drawn another one or exits. The host may then copy and clear it
 * and give it back (drain.h): the k-th draw beyond the pool's chunks, from 1, takes
 * what stands at k % RECORD_RING in the ring: k, and in the upper half the chunk. Who
 * cannot wait leaves k there, as a sign for the host to give nothing for it.
 *
 *   record word 0: site << 13 | 1 << 12 if affine | stride + 2048, of an address
 *               1: lanes       2: %clock       3: affine: the leader's address;
 *                                                 else the ticket, 0: none
 *   an affine global address goes on: its upper half, s, t, k: the lane at
 *   distance d from the leader is at leader + (d mod 2^k) * s + (d >> k) * t
 *   then, by the site's plan (plan.h):
 *     address:  unless affine, 32 addresses, one a lane; of a store, word 3 has the
 *               lanes that write something else than the first lane of the same address
 *     global:   the same of 64 bits
 *     lanes:    the words of each lane of `lanes`, lowest first; affine: they are
 *               the same, and stand there once
 *     uniform:  the leader's words */
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

/* Where in the head chunk the grid's first thread says where things lie: the
 * shared variables, 32 bits each, RECORD_SYMBOLS of them, and the kernel's
 * parameters, a generic address, if one of them may be a tensor map. */
#define RECORD_SYMBOLS_AT 32u
#define RECORD_SYMBOLS 500u
#define RECORD_PARAMS_AT 2048u
/* ... and whoever copies through a tensor map that is none of these says so by
 * a 1, if accesses to global memory are recorded. */
#define RECORD_MAPS_AT 2056u
/* ... and whoever finds no chunk sets bit % 2^RECORD_SHORT_BITS of its CTA: what that
 * cluster did is not known, as a wait may be missing. */
#define RECORD_SHORT_AT 3072u
#define RECORD_SHORT_BITS 13
/* What is added to a place in the parameters that stands for an address. */
#define RECORD_PARAM (1ull << 63)

/* Entries of 64 bits, and where behind them chunk k's mark stands: at place k + 1. */
#define RECORD_RING 65536u
#define RECORD_MARKS_AT (8u * RECORD_RING)
/* Where in the pool the ring is. */
#define RECORD_RING_AT(chunks) (((uint64_t)(chunks) + 2) * RECORD_CHUNK_BYTES)
/* Chunks of a pool of so many bytes. */
#define RECORD_CHUNKS(bytes) ((uint32_t)(((bytes) - RECORD_MARKS_AT - 16) / (RECORD_CHUNK_BYTES + 4) - 2))

/* ... which has no more than these: 32 bits count units. */
#define RECORD_MOST_BYTES (60ull << 30)

/* The name of module number n's variable: this and the number. */
#define RECORD_VARIABLE "consan_gpu_"

struct record_params {
	uint64_t pool;     /* address of the head chunk; 0: record nothing */
	uint32_t chunks;   /* without the head and the last */
	uint32_t tickets;  /* 1: synchronisation takes tickets from the head, as
			      clocks of several CTAs do not compare */
	uint64_t ring;     /* address of what is behind the last chunk */
};

struct record_head {
	uint32_t next;     /* chunks given out, plus 1; 1 before a launch */
	uint32_t dropped;  /* chunks asked for when there were none left */
	uint32_t ticket;   /* 1 before a launch */
	uint32_t patience; /* how long a lane waits for a chunk that was given back, in cycles;
			      0: none is, which a lane also says that found none */
};
/* If somebody drains: over a second, but less than %clock counts, as a record's clock
 * follows that of the one before. */
#define RECORD_PATIENCE (3u << 30)

struct record_chunk {
	uint32_t cta;      /* linear in the grid */
	uint32_t warp_lane;/* warp in the CTA << 5 | lane */
	uint32_t clock_lo, clock_hi;
};

/* What digest.cu says of a chunk: the polynomial in RECORD_DIGEST_BASE whose
 * coefficients are its records' hashes, and how many those are. */
struct record_digest {
	uint32_t cta;
	uint32_t warp_lane_count;  /* record_chunk.warp_lane, count << 16 */
	uint32_t sum_lo, sum_hi;
};
#define RECORD_DIGEST_BASE 0xd6e8feb86659fd93ull
/* ... and as many of a CTA's chunks it can put together on the GPU. */
#define RECORD_SIGN_CHUNKS 2048u

/* ---- the rest of what this module offers ---- */
#include "digest.h"

#endif
