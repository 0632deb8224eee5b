/* search: finds the records of a chunk with one warp. For digest.cu and screen.cu. */
#ifndef CONSAN_INSTRUMENT_SEARCH_H
#define CONSAN_INSTRUMENT_SEARCH_H

#include "record.h"

#define WARPS 4                    /* of a block */

/* A warp's search for the records of its chunk. If a record begins at unit k, the next one
 * begins at next[k], or there is none (END). Unit 0 is the chunk's head. */
#define END RECORD_CHUNK_UNITS
#define EACH (RECORD_CHUNK_UNITS / 32)

struct search {
	uint4 unit[RECORD_CHUNK_UNITS];
	uint16_t next[RECORD_CHUNK_UNITS + 1], step[RECORD_CHUNK_UNITS + 1];
	uint8_t begins[RECORD_CHUNK_UNITS + 1], kind[RECORD_CHUNK_UNITS];
};
/* in kind, with enum plan_class in the lower bits */
#define SKIPPED 4
#define VALUE 8 /* the last unit does not count */
#define PLACE 16 /* only the site and the lanes count */

/* Sets begins[] by pointer jumping: after k rounds the first 2^k records are marked. */
static __device__ void find_records(struct search *s, uint32_t lane)
{
	for (bool more = true; more;) {
		uint32_t to[EACH], far[EACH];

		more = false;
		for (uint32_t i = 0; i < EACH; i++) {
			to[i] = s->step[lane + 32 * i];
			far[i] = s->step[to[i]];
			if (!s->begins[lane + 32 * i])
				to[i] = END;
			more |= to[i] != END;
		}
		more = __any_sync(~0u, more);
		__syncwarp();
		for (uint32_t i = 0; i < EACH; i++) {
			s->step[lane + 32 * i] = (uint16_t)far[i];
			if (to[i] != END)
				s->begins[to[i]] = true;
		}
		__syncwarp();
	}
}

/* Copies a chunk, and finds its records by the words of their sites (digest.h). */
static __device__ void search_chunk(struct search *s, uint32_t lane, const uint4 *chunk,
	const uint32_t *sites, uint32_t nsites)
{
	for (uint32_t i = 0; i < EACH; i++)
		s->unit[lane + 32 * i] = chunk[lane + 32 * i];
	__syncwarp();
#pragma unroll
	for (uint32_t i = 0; i < EACH; i++) {
		const uint32_t at = lane + 32 * i, x = s->unit[at].x, id = x >> RECORD_SITE_SHIFT;
		const bool good = at && x && id < nsites;
		const uint32_t word = good ? sites[id] : DIGEST_SKIPPED;
		uint32_t next = END;

		if (good)
			next = at + digest_units(word, x & RECORD_AFFINE, __popc(s->unit[at].y));
		s->next[at] = s->step[at] = (uint16_t)(next < END ? next : END);
		s->kind[at] = (uint8_t)((word >> 12 & 7) | (digest_value(word) ? VALUE : 0)
			| (word & DIGEST_PLACE ? PLACE : 0));
		s->begins[at] = at == 1;
	}
	if (!lane)
		s->next[END] = s->step[END] = END;
	__syncwarp();
	find_records(s, lane);
}

#endif
