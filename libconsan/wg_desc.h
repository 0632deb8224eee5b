/* wg_desc: where the matrices lie that a wgmma descriptor describes (PTX ISA,
 * Asynchronous warpgroup level matrix: Strides, Matrix Descriptor Format). Knows
 * no instruction. */
#ifndef CONSAN_WG_DESC_H
#define CONSAN_WG_DESC_H

#include "event.h"

struct wg_desc {
	uint32_t start, lead, stride; /* bytes */
	uint32_t base;             /* in units of 128 bytes */
	uint32_t span;             /* of the swizzle: 16 (none), 32, 64, 128 */
};

struct wg_desc wg_desc_decode(uint64_t word);
/* Offsets of the 16-byte pieces of an operand that is 32 bytes deep in K:
 * K-major two for each of n rows, MN-major (mn) n / 8 for each of 16 k. */
void wg_desc_pieces(const struct wg_desc *d, bool mn, unsigned n, uint32_t *out);
/* Runs of pieces, merged and in order of address; at most n. */
unsigned wg_desc_spans(const uint32_t *piece, unsigned n, struct ev_span *out);
/* Rows 16 * i to 16 * i + 15 of A, 32 of the 128 pieces. */
void wg_desc_rows(const uint32_t *piece, bool mn, unsigned i, uint32_t out[32]);

#endif
