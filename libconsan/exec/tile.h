/* tile: the arithmetic of matrix instructions on register files, without
 * warps, decoding or events. Built once per vector width (mma_tile.c,
 * wgmma_tile.c).
 *
 * Sums: the product of two narrow elements is exact; products are added in
 * order of ascending k with one rounding to f32 (f64) each, starting from the
 * accumulator; a 16-bit result is rounded once at the end. Hardware adds several
 * products at a time and truncates: last bits may differ.
 *
 * A 32-bit register of a fragment, [32 lanes], is a dense block of 8 rows (of a
 * column of B) by 16 bytes along k: lane 4g + t holds bytes 4t..4t+3 of row g. */
#ifndef CONSAN_EXEC_TILE_H
#define CONSAN_EXEC_TILE_H

#include <stdbool.h>
#include <stdint.h>

#include "simd.h"

/* TILE_IN(id, bits): element types of A and B. e3m2, e2m3 and e2m1 take one byte each, as in
 * kind::f8f6f4; e2m1x2 is dense, as in kind::mxf4. */
#define TILE_IN_LIST \
	TILE_IN(f16, 16) TILE_IN(bf16, 16) TILE_IN(tf32, 32) \
	TILE_IN(e4m3, 8) TILE_IN(e5m2, 8) TILE_IN(e3m2, 8) TILE_IN(e2m3, 8) TILE_IN(e2m1, 8) \
	TILE_IN(e2m1x2, 4) \
	TILE_IN(s8, 8) TILE_IN(u8, 8) TILE_IN(s4, 4) TILE_IN(u4, 4) TILE_IN(b1, 1) TILE_IN(f64, 64)

enum tile_in {
#define TILE_IN(id, bits) IN_##id,
	TILE_IN_LIST
#undef TILE_IN
	IN_COUNT
};
enum tile_acc { ACC_f32, ACC_f16, ACC_s32, ACC_f64 };

/* mma.sync: D = A * B + C, N = 8 */
struct mma_shape {
	uint8_t m;                 /* 8 or 16 */
	uint16_t k;
	uint8_t a, b;              /* enum tile_in */
	uint8_t c, d;              /* enum tile_acc */
	bool satfinite;            /* s32: clamps the sum */
	bool and;                  /* b1: .and.popc, else .xor.popc */
	uint8_t nscale;            /* scales of a row of A and of a column of B, each for k / nscale
				      elements; 0: none */
};
/* Pointers to registers of 32 lanes; d may name the same registers as any other. */
struct mma_regs {
	void *d[4];
	const void *a[8], *b[4], *c[4];
	float scale_a[16][4], scale_b[8][4];
};
typedef void (*mma_tile_fn)(const struct mma_shape *s, const struct mma_regs *r);
void mma_tile_avx2(const struct mma_shape *s, const struct mma_regs *r);
void mma_tile_avx512(const struct mma_shape *s, const struct mma_regs *r);

/* wgmma: D = +-A * B (+ D), M = 64, 32 bytes along k */
struct wg_tile {
	uint16_t n;                /* 8 to 256 */
	uint8_t a_type, b_type;    /* enum tile_in */
	uint8_t acc;               /* ACC_f32, ACC_f16, ACC_s32 */
	bool a_mn, b_mn;           /* the dense image is k rows of 16-bit elements */
	bool scale_d;              /* false: D starts from zero */
	bool negate;
	bool satfinite;
	/* Dense images, 64-aligned: 64 (n) rows of 32 bytes, or 16 rows of 64 (n) elements */
	const unsigned char *a, *b;
	unsigned char *r[4];       /* register files of the four warps */
	const uint32_t *slot;      /* accumulators: n / 2, or n / 4 for ACC_f16 */
};
/* Working memory of one thread for panels; 64-aligned. */
struct wg_scratch {
	_Alignas(64) uint32_t a[4 * 32 * 64]; /* [warp][unit][row of 16][4 copies] */
	_Alignas(64) uint32_t b[32 * 256];    /* [unit][column, even before odd] */
	_Alignas(64) float d[128 * 32];       /* ACC_f16: D of one warp, widened */
	/* b holds the panel of the image with these bytes */
	_Alignas(64) unsigned char image[256 * 32];
	uint32_t key;              /* parameters b was made with, 0: none */
};
void wg_tile_avx2(const struct wg_tile *t, struct wg_scratch *s);
void wg_tile_avx512(const struct wg_tile *t, struct wg_scratch *s);

#endif
