/* tcgen05_tile: the arithmetic of one tcgen05.mma in one CTA, without warps or events; also that of
 * a sparse mma.sync or wgmma (sparse.h). Built once for each vector width. Sums as in tile.h: products are added in order of ascending k, rounded to
 * f32 each; the integer kinds are exact. */
#ifndef CONSAN_EXEC_TCGEN05_TILE_H
#define CONSAN_EXEC_TCGEN05_TILE_H

#include <stdbool.h>
#include <stdint.h>

#include "simd.h"

#include "libconsan/ptx/ptx.h"

struct tc_tile {
	uint16_t m, n, k;          /* rows of this CTA, columns, elements along k */
	uint16_t b_n, b_first;     /* columns of B's image, a multiple of 8; the first one that is used */
	uint8_t a_type, b_type;    /* enum tc_in */
	uint8_t acc;               /* enum tc_acc */
	/* the image is k rows of m (b_n) elements; else m (b_n) rows of k elements */
	bool a_mn, b_mn;
	bool same_b;               /* B and its scales are those of the last call */
	bool negate_a, negate_b;
	bool accumulate;           /* false: D starts from zero */
	bool satfinite;
	float scale_d;             /* D is multiplied by it first */
	const unsigned char *a, *b; /* images without gaps, 64-aligned */
	/* Sparse A: the image has k / 2 elements of a row; slot[r * k / 2 + i] is where element i is in
	 * row r. Elements of B that no element of A selects take no part: infinity times the zeros
	 * that are not stored is not a NaN. NULL: dense */
	const uint8_t *slot;
	const uint64_t *zero;      /* bit c % 64 of word c / 64: column c of B counts as 0; NULL: none */
	/* Scales, or NULL: of rows (columns) for each block of `block` elements along k */
	const float *scale_a, *scale_b; /* [m][k / block], [n][k / block] */
	uint16_t block;
	/* D: groups of n / groups columns; cell[g * m + r] is row r of group g, NULL: not written */
	unsigned groups;
	uint32_t **cell;
};

/* Working memory of one thread; 64-aligned. */
struct tc_scratch {
	_Alignas(64) float a[TC_M * TC_K]; /* [row][k], or the stored elements */
	_Alignas(64) float b[TC_K * TC_B]; /* [k][column] */
	_Alignas(64) float line[TC_K * TC_B];
	/* images that the caller gathers */
	_Alignas(64) unsigned char image_a[TC_M * TC_ROW_A], image_b[TC_B * TC_ROW_B];
	float scale_a[TC_M * 6], scale_b[TC_N * 6];
	uint8_t slot[TC_M * TC_K / 2];
	uint64_t zero[TC_N / 64];
	uint32_t *cell[TC_M];
};

void tc_tile_avx2(const struct tc_tile *t, struct tc_scratch *s);
void tc_tile_avx512(const struct tc_tile *t, struct tc_scratch *s);

#endif
