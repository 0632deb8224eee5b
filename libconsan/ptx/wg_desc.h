/* wg_desc: which shared memory a wgmma descriptor describes (PTX ISA, Asynchronous
 * warpgroup level matrix: Strides, Matrix Descriptor Format). */
#ifndef CONSAN_WG_DESC_H
#define CONSAN_WG_DESC_H

#include "libconsan/event/event.h"

struct wg_desc {
	uint32_t start, lead, stride; /* bytes */
	uint32_t base;             /* in units of 128 bytes */
	uint32_t span;             /* of the swizzle: 16 (none), 32, 64, 128 */
};

struct wg_desc wg_desc_decode(uint64_t word);
/* Offsets of the 16-byte pieces of an operand that is 32 bytes deep in K:
 * K-major two for each of n rows, MN-major (mn) n / 8 for each of 16 k. */
void wg_desc_pieces(const struct wg_desc *d, bool mn, unsigned n, uint32_t *out);
/* The same of a B that may be 64 bytes deep, as that of a sparse wgmma. Returns their number. */
unsigned wg_desc_b_pieces(const struct wg_desc *d, bool mn, bool deep, unsigned n, uint32_t *out);
/* MN-major: n pieces for each of k rows. */
void wg_desc_mn_pieces(const struct wg_desc *d, unsigned k, unsigned n, uint32_t *out);
/* Runs of pieces, merged and in order of address; at most n. */
unsigned wg_desc_spans(const uint32_t *piece, unsigned n, struct ev_span *out);
/* Rows 16 * i to 16 * i + 15 of A, 32 of the 128 pieces. */
void wg_desc_rows(const uint32_t *piece, bool mn, unsigned i, uint32_t out[32]);

/* ---- all that a wgmma reads ---- */

struct wg_operands {
	uint64_t a, b;             /* descriptors; a is 0 if A is in registers */
	unsigned n;                /* columns of B, up to 256 */
	bool a_regs, a_mn, b_mn;
	bool b_deep;               /* B is 64 bytes deep in K, not 32 */
};

struct wg_reads {
	struct wg_operands of;
	uint32_t top_a, top_b;     /* the highest piece */
	uint16_t part[6];          /* span: A's rows of warp 0, 1, 2, 3, then B */
	uint32_t a[128], b[1024];  /* pieces */
	struct ev_span span[128 + 1024];
};

/* A cache; zero it before the first use. The same operands return in each iteration
 * over a ring of buffers, so their memory is computed once. */
struct wg_book {
	struct wg_reads *page[128];
};

/* Valid until the next call. */
const struct wg_reads *wg_book_find(struct wg_book *book, const struct wg_operands *of);
void wg_book_close(struct wg_book *book);

#endif
