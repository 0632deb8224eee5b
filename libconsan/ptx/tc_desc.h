/* tc_desc: which shared memory a tcgen05 descriptor describes (PTX ISA, "Shared memory descriptor"
 * and "Major-ness supported by Strides"). A piece is 16 bytes. */
#ifndef CONSAN_TC_DESC_H
#define CONSAN_TC_DESC_H

#include <stdbool.h>
#include <stdint.h>

/* Bits 61 to 63 of a descriptor; 3, 5 and 7 are invalid. */
enum tc_swizzle { TC_SWIZZLE_NONE = 0, TC_SWIZZLE_128B_32B = 1, TC_SWIZZLE_128B = 2,
	TC_SWIZZLE_64B = 4, TC_SWIZZLE_32B = 6 };

struct tc_desc {
	uint32_t start, lead, stride; /* bytes */
	uint32_t base;             /* in units of 128 bytes */
	uint32_t span;             /* bytes in a row of an atom: 16 (no swizzling), 32, 64, 128 */
	uint8_t swizzle;           /* enum tc_swizzle */
	bool absolute;             /* lead is the address where a row goes on behind 128 bytes */
};

/* NULL, or why the descriptor cannot be of an operand of `pieces` pieces along K (K-major) or of
 * this major-ness. wide: elements of 32 bits. */
const char *tc_desc_fault(const struct tc_desc *d, bool mn, unsigned pieces, bool wide);
struct tc_desc tc_desc_decode(uint64_t word);

/* K-major: the offsets of n pieces along K for each of `rows` rows. */
void tc_desc_k_pieces(const struct tc_desc *d, unsigned rows, unsigned n, uint32_t *out);
/* MN-major: n pieces along M or N for each of k rows. */
void tc_desc_mn_pieces(const struct tc_desc *d, unsigned k, unsigned n, uint32_t *out);
/* The highest of n pieces. */
uint32_t tc_desc_top(const uint32_t *piece, unsigned n);

#endif
