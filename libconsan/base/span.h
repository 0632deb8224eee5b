/* span: bytes of one CTA's shared memory; events and the shadow both list them. */
#ifndef CONSAN_SPAN_H
#define CONSAN_SPAN_H

#include <stdint.h>

struct ev_span {
	uint32_t addr, bytes; /* shared offset */
};

/* The runs of a set of 16-byte pieces, piece k of word w lying at (64 w + k) * 16: its
 * words `low` to `high`, in order; at most one for every second piece. */
static inline uint32_t span_runs(const uint64_t *set, uint32_t low, uint32_t high, struct ev_span *out)
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

#endif
