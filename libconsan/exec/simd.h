/* simd: one source, two vector widths. A file in SIMD_SRC is compiled twice, with SIMD=avx2 and
 * SIMD=avx512. Its external names carry the width, and the plain C files choose one of the two at
 * run time.
 *
 * Plain C declares both names and selects with SIMD_PICK(x). Without AVX2 neither may be called:
 * check simd_missing() first. Decoders are selected by decode.c. */
#ifndef CONSAN_EXEC_SIMD_H
#define CONSAN_EXEC_SIMD_H

#define SIMD_CAT_(a, b) a##_##b
#define SIMD_CAT(a, b) SIMD_CAT_(a, b)
/* The name of x in this compilation: x_avx2 or x_avx512. */
#define SIMD_NAME(x) SIMD_CAT(x, SIMD)
#define SIMD_PICK(x) (simd_level() == SIMD_512 ? x##_avx512 : x##_avx2)

enum simd_level { SIMD_NONE, SIMD_256, SIMD_512 };
/* The level of this processor, determined once (CONSAN_SIMD=avx2 in the environment lowers it, to
 * test the narrow build on a wide machine). */
enum simd_level simd_level(void);
/* NULL, or a text with what this processor lacks. */
const char *simd_missing(void);

#endif
