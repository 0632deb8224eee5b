/* lib_levels: levels 1 to 3 of cuBLAS but for products of matrices, which are in lib_gemm.c. A BLAS
 * of the distribution does the work; what has no equivalent there (geam, dgmm, the element of least
 * magnitude) is here. Each function has its other one for sizes of 64 bits. */
#include "lib_routine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- level 1: the Fortran interface ---- */

#define AXPY(name, I, function, type) \
	CALL(int, name, void *h, I n, P alpha, P x, I incx, void *y, I incy) \
	{ \
		return routine_issue(__func__, function, type, "naXY!", h, (N)n, alpha, x, \
			(N)incx, y, (N)incy); \
	}
#define COPY(name, I, function, type) \
	CALL(int, name, void *h, I n, P x, I incx, void *y, I incy) \
	{ \
		return routine_issue(__func__, function, type, "nXY!", h, (N)n, x, (N)incx, y, \
			(N)incy); \
	}
#define SWAP(name, I, function, type) \
	CALL(int, name, void *h, I n, void *x, I incx, void *y, I incy) \
	{ \
		return routine_issue(__func__, function, type, "nX!Y!", h, (N)n, x, (N)incx, y, \
			(N)incy); \
	}
#define SCAL(name, I, function, type, shape) \
	CALL(int, name, void *h, I n, P alpha, void *x, I incx) \
	{ \
		return routine_issue(__func__, function, type, shape, h, (N)n, alpha, x, (N)incx); \
	}
#define ROT(name, I, function, type, shape) \
	CALL(int, name, void *h, I n, void *x, I incx, void *y, I incy, P c, P s) \
	{ \
		return routine_issue(__func__, function, type, shape, h, (N)n, x, (N)incx, y, \
			(N)incy, c, s); \
	}
#define LEVEL1(T, t, type) \
	BOTH(AXPY, cublas##T##axpy_v2, #t "axpy_", type) \
	BOTH(COPY, cublas##T##copy_v2, #t "copy_", type) \
	BOTH(SWAP, cublas##T##swap_v2, #t "swap_", type) \
	BOTH(SCAL, cublas##T##scal_v2, #t "scal_", type, "naX!") \
	BOTH(ROT, cublas##T##rot_v2, #t "rot_", type, "nX!Y!rb")
#define SDCZ(X) X(S, s, EL_R32) X(D, d, EL_R64) X(C, c, EL_C32) X(Z, z, EL_C64)
SDCZ(LEVEL1)
BOTH(SCAL, cublasCsscal_v2, "csscal_", EL_C32, "nrX!")
BOTH(SCAL, cublasZdscal_v2, "zdscal_", EL_C64, "nrX!")
BOTH(ROT, cublasCsrot_v2, "csrot_", EL_C32, "nX!Y!re")
BOTH(ROT, cublasZdrot_v2, "zdrot_", EL_C64, "nX!Y!re")

/* ---- routines with a result: the C interface, whose results have no ABI of their own ---- */

struct reduction {
	struct library_call call;
	void *function;
	int64_t n, incx, incy;
	const void *x, *y;
	void *result;
	size_t result_bytes;
	int type;                    /* of an element */
	bool least;                  /* of all magnitudes is wanted, not the greatest */
};

static const struct reduction *reduction_of(const struct library_call *call)
{
	return (const struct reduction *)call;
}

static void run_sdot(struct library_call *call)
{
	const struct reduction *r = reduction_of(call);

	*(float *)r->result = ((float (*)(int, P, int, P, int))r->function)((int)r->n, r->x,
		(int)r->incx, r->y, (int)r->incy);
}

static void run_ddot(struct library_call *call)
{
	const struct reduction *r = reduction_of(call);

	*(double *)r->result = ((double (*)(int, P, int, P, int))r->function)((int)r->n, r->x,
		(int)r->incx, r->y, (int)r->incy);
}

static void run_dot_sub(struct library_call *call)
{
	const struct reduction *r = reduction_of(call);

	((void (*)(int, P, int, P, int, void *))r->function)((int)r->n, r->x, (int)r->incx, r->y,
		(int)r->incy, r->result);
}

static void run_float(struct library_call *call)
{
	const struct reduction *r = reduction_of(call);

	*(float *)r->result = ((float (*)(int, P, int))r->function)((int)r->n, r->x, (int)r->incx);
}

static void run_double(struct library_call *call)
{
	const struct reduction *r = reduction_of(call);

	*(double *)r->result = ((double (*)(int, P, int))r->function)((int)r->n, r->x, (int)r->incx);
}

/* The first element of the greatest or least magnitude, from 1; 0: there is none. */
static void run_extreme(struct library_call *call)
{
	const struct reduction *r = reduction_of(call);
	int64_t at = 0;
	double best = 0, v;

	for (int64_t i = 0; i < r->n && r->incx > 0; i++) {
		double complex e = element_load(r->type, r->x, (size_t)i * (size_t)r->incx);

		v = fabs(creal(e)) + fabs(cimag(e));
		if (!at || (r->least ? v < best : v > best)) {
			best = v;
			at = i + 1;
		}
	}
	if (r->result_bytes == sizeof at)
		*(int64_t *)r->result = at;
	else
		*(int *)r->result = (int)at;
}

/* result: on the host unless the handle says otherwise. */
static int reduce(struct reduction r, const char *name, const char *function, void *handle,
	void (*run)(struct library_call *))
{
	const struct blas *b = blas_of(handle);
	struct routine begun;
	int status = routine_begin(&begun, name, function, b, r.type, run);

	if (status)
		return status;
	if (!r.result)
		return BLAS_INVALID_VALUE;
	r.call = begun.call;
	r.function = function ? begun.function : NULL;
	r.n = r.n < 0 ? 0 : r.n;
	blas_vector(&r.call, false, r.x, r.n, r.incx, element_bytes(r.type));
	blas_vector(&r.call, false, r.y, r.y ? r.n : 0, r.incy, element_bytes(r.type));
	if (b->on_device)
		library_span(&r.call, true, r.result, r.result_bytes, 0, 1, 0, 1);
	status = routine_put(&r.call, sizeof r, (int64_t[]){ r.n, r.incx, r.incy }, 3);
	if (!b->on_device)
		library_wait(b->stream);
	return status;
}

#define DOT(name, I, function, run, t, bytes) \
	CALL(int, name, void *h, I count, P a, I inca, P b, I incb, void *to) \
	{ \
		return reduce((struct reduction){ .n = count, .x = a, .incx = inca, .y = b, \
			.incy = incb, .result = to, .result_bytes = bytes, .type = t }, __func__, \
			function, h, run); \
	}
BOTH(DOT, cublasSdot_v2, "cblas_sdot", run_sdot, EL_R32, 4)
BOTH(DOT, cublasDdot_v2, "cblas_ddot", run_ddot, EL_R64, 8)
BOTH(DOT, cublasCdotu_v2, "cblas_cdotu_sub", run_dot_sub, EL_C32, 8)
BOTH(DOT, cublasCdotc_v2, "cblas_cdotc_sub", run_dot_sub, EL_C32, 8)
BOTH(DOT, cublasZdotu_v2, "cblas_zdotu_sub", run_dot_sub, EL_C64, 16)
BOTH(DOT, cublasZdotc_v2, "cblas_zdotc_sub", run_dot_sub, EL_C64, 16)

#define REDUCTION(name, I, function, run, t, bytes, of_least) \
	CALL(int, name, void *h, I count, P a, I inca, void *to) \
	{ \
		return reduce((struct reduction){ .n = count, .x = a, .incx = inca, .result = to, \
			.result_bytes = bytes, .type = t, .least = of_least }, __func__, function, \
			h, run); \
	}
BOTH(REDUCTION, cublasSnrm2_v2, "cblas_snrm2", run_float, EL_R32, 4, false)
BOTH(REDUCTION, cublasDnrm2_v2, "cblas_dnrm2", run_double, EL_R64, 8, false)
BOTH(REDUCTION, cublasScnrm2_v2, "cblas_scnrm2", run_float, EL_C32, 4, false)
BOTH(REDUCTION, cublasDznrm2_v2, "cblas_dznrm2", run_double, EL_C64, 8, false)
BOTH(REDUCTION, cublasSasum_v2, "cblas_sasum", run_float, EL_R32, 4, false)
BOTH(REDUCTION, cublasDasum_v2, "cblas_dasum", run_double, EL_R64, 8, false)
BOTH(REDUCTION, cublasScasum_v2, "cblas_scasum", run_float, EL_C32, 4, false)
BOTH(REDUCTION, cublasDzasum_v2, "cblas_dzasum", run_double, EL_C64, 8, false)
#define EXTREME(name, I, type, least) \
	REDUCTION(name, I, NULL, run_extreme, type, sizeof(I), least)
#define EXTREMES(T, t, type) \
	BOTH(EXTREME, cublasI##t##amax_v2, type, false) \
	BOTH(EXTREME, cublasI##t##amin_v2, type, true)
SDCZ(EXTREMES)

/* ---- level 2: matrix A as such, as a band, packed ---- */

#define GEMV(name, I, function, type) \
	CALL(int, name, void *h, int t, I m, I n, P alpha, P a, I lda, P x, I incx, P beta, \
		void *y, I incy) \
	{ \
		return routine_issue(__func__, function, type, "tmnaGXbY!", h, t, (N)m, (N)n, \
			alpha, a, (N)lda, x, (N)incx, beta, y, (N)incy); \
	}
#define GBMV(name, I, function, type) \
	CALL(int, name, void *h, int t, I m, I n, I kl, I ku, P alpha, P a, I lda, P x, I incx, \
		P beta, void *y, I incy) \
	{ \
		return routine_issue(__func__, function, type, "tmnlvaDXbY!", h, t, (N)m, (N)n, \
			(N)kl, (N)ku, alpha, a, (N)lda, x, (N)incx, beta, y, (N)incy); \
	}
#define GER(name, I, function, type) \
	CALL(int, name, void *h, I m, I n, P alpha, P x, I incx, P y, I incy, void *a, I lda) \
	{ \
		return routine_issue(__func__, function, type, "mnaYXG!", h, (N)m, (N)n, alpha, \
			x, (N)incx, y, (N)incy, a, (N)lda); \
	}
#define SYMV(name, I, function, type) \
	CALL(int, name, void *h, int u, I n, P alpha, P a, I lda, P x, I incx, P beta, void *y, \
		I incy) \
	{ \
		return routine_issue(__func__, function, type, "unaTXbY!", h, u, (N)n, alpha, a, \
			(N)lda, x, (N)incx, beta, y, (N)incy); \
	}
#define SBMV(name, I, function, type) \
	CALL(int, name, void *h, int u, I n, I k, P alpha, P a, I lda, P x, I incx, P beta, \
		void *y, I incy) \
	{ \
		return routine_issue(__func__, function, type, "unkaEXbY!", h, u, (N)n, (N)k, \
			alpha, a, (N)lda, x, (N)incx, beta, y, (N)incy); \
	}
#define SPMV(name, I, function, type) \
	CALL(int, name, void *h, int u, I n, P alpha, P a, P x, I incx, P beta, void *y, I incy) \
	{ \
		return routine_issue(__func__, function, type, "unaPXbY!", h, u, (N)n, alpha, a, \
			x, (N)incx, beta, y, (N)incy); \
	}
#define TRMV(name, I, function, type) \
	CALL(int, name, void *h, int u, int t, int d, I n, P a, I lda, void *x, I incx) \
	{ \
		return routine_issue(__func__, function, type, "utdnTX!", h, u, t, d, (N)n, a, \
			(N)lda, x, (N)incx); \
	}
#define TBMV(name, I, function, type) \
	CALL(int, name, void *h, int u, int t, int d, I n, I k, P a, I lda, void *x, I incx) \
	{ \
		return routine_issue(__func__, function, type, "utdnkEX!", h, u, t, d, (N)n, (N)k, \
			a, (N)lda, x, (N)incx); \
	}
#define TPMV(name, I, function, type) \
	CALL(int, name, void *h, int u, int t, int d, I n, P a, void *x, I incx) \
	{ \
		return routine_issue(__func__, function, type, "utdnPX!", h, u, t, d, (N)n, a, x, \
			(N)incx); \
	}
#define SYR(name, I, function, type, shape) \
	CALL(int, name, void *h, int u, I n, P alpha, P x, I incx, void *a, I lda) \
	{ \
		return routine_issue(__func__, function, type, shape, h, u, (N)n, alpha, x, \
			(N)incx, a, (N)lda); \
	}
#define SPR(name, I, function, type, shape) \
	CALL(int, name, void *h, int u, I n, P alpha, P x, I incx, void *a) \
	{ \
		return routine_issue(__func__, function, type, shape, h, u, (N)n, alpha, x, \
			(N)incx, a); \
	}
#define SYR2(name, I, function, type) \
	CALL(int, name, void *h, int u, I n, P alpha, P x, I incx, P y, I incy, void *a, I lda) \
	{ \
		return routine_issue(__func__, function, type, "unaXYT!", h, u, (N)n, alpha, x, \
			(N)incx, y, (N)incy, a, (N)lda); \
	}
#define SPR2(name, I, function, type) \
	CALL(int, name, void *h, int u, I n, P alpha, P x, I incx, P y, I incy, void *a) \
	{ \
		return routine_issue(__func__, function, type, "unaXYP!", h, u, (N)n, alpha, x, \
			(N)incx, y, (N)incy, a); \
	}
#define LEVEL2(T, t, type) \
	BOTH(GEMV, cublas##T##gemv_v2, #t "gemv_", type) \
	BOTH(GBMV, cublas##T##gbmv_v2, #t "gbmv_", type) \
	BOTH(TRMV, cublas##T##trmv_v2, #t "trmv_", type) \
	BOTH(TRMV, cublas##T##trsv_v2, #t "trsv_", type) \
	BOTH(TBMV, cublas##T##tbmv_v2, #t "tbmv_", type) \
	BOTH(TBMV, cublas##T##tbsv_v2, #t "tbsv_", type) \
	BOTH(TPMV, cublas##T##tpmv_v2, #t "tpmv_", type) \
	BOTH(TPMV, cublas##T##tpsv_v2, #t "tpsv_", type)
SDCZ(LEVEL2)
#define SYMMETRIC(T, t, type) \
	BOTH(GER, cublas##T##ger_v2, #t "ger_", type) \
	BOTH(SYMV, cublas##T##symv_v2, #t "symv_", type) \
	BOTH(SBMV, cublas##T##sbmv_v2, #t "sbmv_", type) \
	BOTH(SPMV, cublas##T##spmv_v2, #t "spmv_", type) \
	BOTH(SYR, cublas##T##syr_v2, #t "syr_", type, "unaXT!") \
	BOTH(SPR, cublas##T##spr_v2, #t "spr_", type, "unaXP!") \
	BOTH(SYR2, cublas##T##syr2_v2, #t "syr2_", type) \
	BOTH(SPR2, cublas##T##spr2_v2, #t "spr2_", type)
SYMMETRIC(S, s, EL_R32)
SYMMETRIC(D, d, EL_R64)
#define HERMITIAN(T, t, type) \
	BOTH(GER, cublas##T##geru_v2, #t "geru_", type) \
	BOTH(GER, cublas##T##gerc_v2, #t "gerc_", type) \
	BOTH(SYMV, cublas##T##hemv_v2, #t "hemv_", type) \
	BOTH(SBMV, cublas##T##hbmv_v2, #t "hbmv_", type) \
	BOTH(SPMV, cublas##T##hpmv_v2, #t "hpmv_", type) \
	BOTH(SYR, cublas##T##her_v2, #t "her_", type, "unrXT!") \
	BOTH(SPR, cublas##T##hpr_v2, #t "hpr_", type, "unrXP!") \
	BOTH(SYR2, cublas##T##her2_v2, #t "her2_", type) \
	BOTH(SPR2, cublas##T##hpr2_v2, #t "hpr2_", type)
HERMITIAN(C, c, EL_C32)
HERMITIAN(Z, z, EL_C64)

/* ---- level 3 ---- */

#define SYRK(name, I, function, type, shape) \
	CALL(int, name, void *h, int u, int t, I n, I k, P alpha, P a, I lda, P beta, void *c, \
		I ldc) \
	{ \
		return routine_issue(__func__, function, type, shape, h, u, t, (N)n, (N)k, alpha, \
			a, (N)lda, beta, c, (N)ldc); \
	}
#define SYR2K(name, I, function, type, shape) \
	CALL(int, name, void *h, int u, int t, I n, I k, P alpha, P a, I lda, P b, I ldb, P beta, \
		void *c, I ldc) \
	{ \
		return routine_issue(__func__, function, type, shape, h, u, t, (N)n, (N)k, alpha, \
			a, (N)lda, b, (N)ldb, beta, c, (N)ldc); \
	}
#define SYMM(name, I, function, type) \
	CALL(int, name, void *h, int s, int u, I m, I n, P alpha, P a, I lda, P b, I ldb, P beta, \
		void *c, I ldc) \
	{ \
		return routine_issue(__func__, function, type, "sumnaSRbR!", h, s, u, (N)m, (N)n, \
			alpha, a, (N)lda, b, (N)ldb, beta, c, (N)ldc); \
	}
#define TRSM(name, I, function, type) \
	CALL(int, name, void *h, int s, int u, int t, int d, I m, I n, P alpha, P a, I lda, \
		void *b, I ldb) \
	{ \
		return routine_issue(__func__, function, type, "sutdmnaSR!", h, s, u, t, d, (N)m, \
			(N)n, alpha, a, (N)lda, b, (N)ldb); \
	}
/* B remains as it is, unless it is C. */
#define TRMM(name, I, function, type) \
	CALL(int, name, void *h, int s, int u, int t, int d, I m, I n, P alpha, P a, I lda, P b, \
		I ldb, void *c, I ldc) \
	{ \
		int status = b == c ? BLAS_SUCCESS \
			: copied(__func__, h, type, m, n, b, ldb, c, ldc); \
		return status ? status : routine_issue(__func__, function, type, "sutdmnaSR!", h, \
			s, u, t, d, (N)m, (N)n, alpha, a, (N)lda, c, (N)ldc); \
	}
static int copied(const char *name, void *handle, int type, int64_t m, int64_t n, P b, int64_t ldb,
	void *c, int64_t ldc);
#define LEVEL3(T, t, type) \
	BOTH(SYMM, cublas##T##symm_v2, #t "symm_", type) \
	BOTH(TRSM, cublas##T##trsm_v2, #t "trsm_", type) \
	BOTH(TRMM, cublas##T##trmm_v2, #t "trmm_", type)
SDCZ(LEVEL3)
#define UPDATES(T, t, type, trans) \
	BOTH(SYRK, cublas##T##syrk_v2, #t "syrk_", type, "u" trans "nkaObT!") \
	BOTH(SYR2K, cublas##T##syr2k_v2, #t "syr2k_", type, "u" trans "nkaOObT!")
UPDATES(S, s, EL_R32, "t")
UPDATES(D, d, EL_R64, "t")
UPDATES(C, c, EL_C32, "y")
UPDATES(Z, z, EL_C64, "y")
#define HERMITIAN3(T, t, type) \
	BOTH(SYMM, cublas##T##hemm_v2, #t "hemm_", type) \
	BOTH(SYRK, cublas##T##herk_v2, #t "herk_", type, "uhnkrOeT!") \
	BOTH(SYR2K, cublas##T##her2k_v2, #t "her2k_", type, "uhnkaOOeT!")
HERMITIAN3(C, c, EL_C32)
HERMITIAN3(Z, z, EL_C64)

/* ---- what a BLAS does not have ---- */

struct combination {
	struct library_call call;
	int64_t m, n, lda, ldb, ldc;
	const void *a, *b;
	void *c;
	struct scalar alpha, beta;
	int ta, tb;                  /* cublasOperation_t; of dgmm: on the right side? */
	int type;
};

static double complex at(const struct combination *r, const void *a, int64_t ld, int t, int64_t i,
	int64_t j)
{
	double complex v = element_load(r->type, a, (size_t)(t == BLAS_N ? i + j * ld : j + i * ld));

	return t == BLAS_C ? conj(v) : v;
}

/* C = alpha op(A) + beta op(B); C may be A or B where that one is not transposed. */
static void run_geam(struct library_call *call)
{
	const struct combination *r = (const struct combination *)call;
	double complex alpha = element_load(r->type, scalar_at(&r->alpha), 0);
	double complex beta = element_load(r->type, scalar_at(&r->beta), 0), v;

	for (int64_t j = 0; j < r->n; j++)
		for (int64_t i = 0; i < r->m; i++) {
			v = alpha != 0 ? alpha * at(r, r->a, r->lda, r->ta, i, j) : 0;
			if (beta != 0)
				v += beta * at(r, r->b, r->ldb, r->tb, i, j);
			element_store(r->type, r->c, (size_t)(i + j * r->ldc), v);
		}
}

static bool is_used(const struct combination *r, const struct scalar *s)
{
	return s->device || element_load(r->type, s->host, 0) != 0;
}

static void note_scalar(struct combination *r, const struct scalar *s)
{
	if (s->device)
		library_span(&r->call, false, s->device, element_bytes(r->type), 0, 1, 0, 1);
}

/* begun: by routine_begin() */
static int combine(struct combination r, const struct routine *begun, bool uses_a, bool uses_b)
{
	const size_t bytes = element_bytes(r.type);

	if (r.m < 0 || r.n < 0 || r.ta < BLAS_N || r.ta > BLAS_C || r.tb < BLAS_N || r.tb > BLAS_C)
		return BLAS_INVALID_VALUE;
	r.call = begun->call;
	note_scalar(&r, &r.alpha);
	note_scalar(&r, &r.beta);
	if (uses_a)
		blas_matrix(&r.call, false, r.a, r.ta ? r.n : r.m, r.ta ? r.m : r.n, r.lda, bytes);
	if (uses_b)
		blas_matrix(&r.call, false, r.b, r.tb ? r.n : r.m, r.tb ? r.m : r.n, r.ldb, bytes);
	blas_matrix(&r.call, true, r.c, r.m, r.n, r.ldc, bytes);
	return blas_status(library_issue(&r.call, sizeof r));
}

static int geam(const char *name, void *handle, struct combination r, P alpha, P beta)
{
	const struct blas *h = blas_of(handle);
	struct routine begun;
	int status = routine_begin(&begun, name, NULL, h, r.type, run_geam);

	if (status)
		return status;
	if (!alpha || !beta)
		return BLAS_INVALID_VALUE;
	r.alpha = scalar_of(h, alpha, element_bytes(r.type));
	r.beta = scalar_of(h, beta, element_bytes(r.type));
	return combine(r, &begun, is_used(&r, &r.alpha), is_used(&r, &r.beta));
}

static void run_copy(struct library_call *call)
{
	const struct combination *r = (const struct combination *)call;
	const size_t bytes = element_bytes(r->type);

	for (int64_t j = 0; j < r->n; j++)
		memcpy((char *)r->c + (size_t)(j * r->ldc) * bytes,
			(const char *)r->b + (size_t)(j * r->ldb) * bytes, (size_t)r->m * bytes);
}

static int copied(const char *name, void *handle, int type, int64_t m, int64_t n, P b, int64_t ldb,
	void *c, int64_t ldc)
{
	struct combination r = { .m = m, .n = n, .b = b, .ldb = ldb, .c = c, .ldc = ldc, .type = type };
	struct routine begun;
	int status = routine_begin(&begun, name, NULL, blas_of(handle), type, run_copy);

	begun.call.part = true;
	return status ? status : combine(r, &begun, false, true);
}

/* C = A diag(x), or diag(x) A; b and ldb: x and its step. */
static void run_dgmm(struct library_call *call)
{
	const struct combination *r = (const struct combination *)call;
	const int64_t length = r->ta ? r->n : r->m;
	const int64_t first = r->ldb < 0 ? (1 - length) * r->ldb : 0;

	for (int64_t j = 0; j < r->n; j++)
		for (int64_t i = 0; i < r->m; i++)
			element_store(r->type, r->c, (size_t)(i + j * r->ldc),
				element_load(r->type, r->a, (size_t)(i + j * r->lda))
				* element_load(r->type, r->b,
					(size_t)(first + (r->ta ? j : i) * r->ldb)));
}

static int dgmm(const char *name, void *handle, struct combination r)
{
	const size_t bytes = element_bytes(r.type);
	struct routine begun;
	int status = routine_begin(&begun, name, NULL, blas_of(handle), r.type, run_dgmm);

	if (status)
		return status;
	if (r.m < 0 || r.n < 0 || r.ta < 0 || r.ta > 1)
		return BLAS_INVALID_VALUE;
	r.call = begun.call;
	blas_matrix(&r.call, false, r.a, r.m, r.n, r.lda, bytes);
	blas_vector(&r.call, false, r.b, r.ta ? r.n : r.m, r.ldb, bytes);
	blas_matrix(&r.call, true, r.c, r.m, r.n, r.ldc, bytes);
	return blas_status(library_issue(&r.call, sizeof r));
}

#define GEAM(name, I, t) \
	CALL(int, name, void *h, int opa, int opb, I rows, I columns, P alpha, P x, I ldx, P beta, \
		P y, I ldy, void *z, I ldz) \
	{ \
		return geam(__func__, h, (struct combination){ .m = rows, .n = columns, .a = x, \
			.lda = ldx, .b = y, .ldb = ldy, .c = z, .ldc = ldz, .ta = opa, .tb = opb, \
			.type = t }, alpha, beta); \
	}
#define DGMM(name, I, t) \
	CALL(int, name, void *h, int right, I rows, I columns, P x, I ldx, P y, I incy, void *z, \
		I ldz) \
	{ \
		return dgmm(__func__, h, (struct combination){ .m = rows, .n = columns, .a = x, \
			.lda = ldx, .b = y, .ldb = incy, .c = z, .ldc = ldz, .ta = right, \
			.type = t }); \
	}
#define COMBINATIONS(T, t, type) \
	BOTH(GEAM, cublas##T##geam, type) \
	BOTH(DGMM, cublas##T##dgmm, type)
SDCZ(COMBINATIONS)
