/* span: a range of bytes of one CTA's shared memory, as in events and in shadow memory. */
#ifndef CONSAN_SPAN_H
#define CONSAN_SPAN_H

#include <stdbool.h>
#include <stdint.h>

struct ev_span {
	uint32_t addr, bytes; /* addr: offset in shared memory */
};

/* Converts a bit set of 16-byte pieces to spans and returns their number. Bit k of word w is
 * the piece at (64 w + k) * 16; words `low` to `high` are read. out: 32 elements for each
 * word. */
static inline uint32_t span_runs(const uint64_t *set, uint32_t low, uint32_t high,
	struct ev_span *out)
{
	uint32_t n = 0, end = UINT32_MAX;

	for (uint32_t w = low; w <= high; w++)
		for (uint64_t left = set[w]; left;) {
			const unsigned from = (unsigned)__builtin_ctzll(left);
			const uint64_t rest = ~(left >> from);
			const unsigned run = rest ? (unsigned)__builtin_ctzll(rest) : 64;
			const uint32_t at = (w * 64 + from) * 16;

			if (at == end)
				out[n - 1].bytes += run * 16;
			else
				out[n++] = (struct ev_span){ at, run * 16 };
			end = at + run * 16;
			left = from + run >= 64 ? 0 : left >> (from + run) << (from + run);
		}
	return n;
}

/* The bytes that cp.async.bulk.cp_mask copies: those of each 16 whose bit is set in the mask. Finds
 * the next range of them at or behind *at. False: there is none below `end`. */
static inline bool span_masked(uint32_t mask, uint32_t end, uint32_t *at, uint32_t *bytes)
{
	uint32_t from = *at, to;

	while (from < end && !(mask >> (from & 15) & 1))
		from++;
	to = (mask & 0xffff) == 0xffff ? end : from;
	while (to < end && mask >> (to & 15) & 1)
		to++;
	*at = from;
	*bytes = to - from;
	return from < end;
}

#endif
