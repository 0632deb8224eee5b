/* lib_levels: levels 1 to 3 of cuBLAS but for products of matrices, which are in lib_gemm.c. A BLAS
 * of the distribution does the work, by its Fortran interface; what has no equivalent there (geam,
 * dgmm, the element of least magnitude) is here. Elements are not looked at, so that a shape of
 * arguments has one function for all types. */
#include "lib_blas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct routine {
	struct library_call call;
	void *function;
	char flag[4];                /* side, uplo, trans, diag as the routine takes them */
	int m, n, k, la, lb, lc;     /* sizes, leading dimensions or steps */
	const void *a, *b;
	void *c;
	struct scalar alpha, beta;
	size_t bytes;                /* of an element */
	int type;                    /* of an element */
};

static struct routine *of(struct library_call *call)
{
	return (struct routine *)call;
}

static char trans(int t)
{
	return t == BLAS_T ? 'T' : t == BLAS_C ? 'C' : 'N';
}

static char side(int s)
{
	return s ? 'R' : 'L';
}

static char uplo(int u)
{
	return u ? 'U' : 'L';
}

static char diag(int d)
{
	return d ? 'U' : 'N';
}

static int begin(struct routine *r, const char *name, const char *function, const struct blas *b,
	int type, void (*run)(struct library_call *))
{
	if (!b)
		return BLAS_NOT_INITIALIZED;
	r->call = (struct library_call){ .name = name, .stream = b->stream, .run = run };
	r->type = type;
	r->bytes = element_bytes(type);
	if (!function)
		return BLAS_SUCCESS;
	r->function = host_function(HOST_BLAS, function);
	return r->function ? BLAS_SUCCESS : BLAS_NOT_SUPPORTED;
}

static int issue(struct routine *r)
{
	if (r->m < 0 || r->n < 0 || r->k < 0)
		return BLAS_INVALID_VALUE;
	if (r->alpha.device)
		library_span(&r->call, false, r->alpha.device, r->bytes, 0, 1, 0, 1);
	if (r->beta.device)
		library_span(&r->call, false, r->beta.device, r->bytes, 0, 1, 0, 1);
	return blas_status(library_issue(&r->call, sizeof *r));
}

#define TYPES(X) X(S, s, EL_R32) X(D, d, EL_R64) X(C, c, EL_C32) X(Z, z, EL_C64)
typedef const int *L;  /* as the Fortran interface passes them */
typedef const void *P;

/* axpy, copy, swap, scal */
static void run_axpy(struct library_call *call)
{
	struct routine *r = of(call);

	((void (*)(L, P, P, L, void *, L))r->function)(&r->n, scalar_at(&r->alpha), r->a, &r->la,
		r->c, &r->lc);
}

static void run_copy(struct library_call *call)
{
	struct routine *r = of(call);

	((void (*)(L, P, L, void *, L))r->function)(&r->n, r->a, &r->la, r->c, &r->lc);
}

static void run_scal(struct library_call *call)
{
	struct routine *r = of(call);

	((void (*)(L, P, void *, L))r->function)(&r->n, scalar_at(&r->alpha), r->c, &r->lc);
}

/* alpha, x: NULL where the routine has none; x_too: x is written as well. */
static int level1(const char *name, const char *function, void (*run)(struct library_call *),
	int type, void *handle, int n, const void *alpha, size_t alpha_bytes, const void *x,
	int incx, void *y, int incy, bool reads_y, bool x_too)
{
	struct routine r = { .n = n, .a = x, .la = incx, .c = y, .lc = incy };
	struct blas *b = blas_of(handle);
	int status = begin(&r, name, function, b, type, run);

	if (status || n <= 0)
		return status;
	if (alpha)
		r.alpha = scalar_of(b, alpha, alpha_bytes);
	blas_vector(&r.call, x_too, x, x ? n : 0, incx, r.bytes);
	if (reads_y)
		blas_vector(&r.call, false, y, n, incy, r.bytes);
	blas_vector(&r.call, true, y, n, incy, r.bytes);
	return issue(&r);
}

#define LEVEL1(T, t, type) \
	CALL(int, cublas##T##axpy_v2, void *h, int n, P alpha, P x, int incx, void *y, int incy) \
	{ \
		return level1(__func__, #t "axpy_", run_axpy, type, h, n, alpha, \
			element_bytes(type), x, incx, y, incy, true, false); \
	} \
	CALL(int, cublas##T##copy_v2, void *h, int n, P x, int incx, void *y, int incy) \
	{ \
		return level1(__func__, #t "copy_", run_copy, type, h, n, NULL, 0, x, incx, y, \
			incy, false, false); \
	} \
	CALL(int, cublas##T##swap_v2, void *h, int n, void *x, int incx, void *y, int incy) \
	{ \
		return level1(__func__, #t "swap_", run_copy, type, h, n, NULL, 0, x, incx, y, \
			incy, true, true); \
	} \
	CALL(int, cublas##T##scal_v2, void *h, int n, P alpha, void *x, int incx) \
	{ \
		return level1(__func__, #t "scal_", run_scal, type, h, n, alpha, \
			element_bytes(type), NULL, 0, x, incx, true, false); \
	}
TYPES(LEVEL1)

/* the scalar is real */
CALL(int, cublasCsscal_v2, void *h, int n, P alpha, void *x, int incx)
{
	return level1(__func__, "csscal_", run_scal, EL_C32, h, n, alpha, sizeof(float), NULL, 0, x,
		incx, true, false);
}

CALL(int, cublasZdscal_v2, void *h, int n, P alpha, void *x, int incx)
{
	return level1(__func__, "zdscal_", run_scal, EL_C64, h, n, alpha, sizeof(double), NULL, 0,
		x, incx, true, false);
}

/* ---- routines with a result: the C interface, whose results have no ABI of their own ---- */

static void run_sdot(struct library_call *call)
{
	struct routine *r = of(call);

	*(float *)r->c =
		((float (*)(int, P, int, P, int))r->function)(r->n, r->a, r->la, r->b, r->lb);
}

static void run_ddot(struct library_call *call)
{
	struct routine *r = of(call);

	*(double *)r->c =
		((double (*)(int, P, int, P, int))r->function)(r->n, r->a, r->la, r->b, r->lb);
}

static void run_dot_sub(struct library_call *call)
{
	struct routine *r = of(call);

	((void (*)(int, P, int, P, int, void *))r->function)(r->n, r->a, r->la, r->b, r->lb, r->c);
}

static void run_float(struct library_call *call)
{
	struct routine *r = of(call);

	*(float *)r->c = ((float (*)(int, P, int))r->function)(r->n, r->a, r->la);
}

static void run_double(struct library_call *call)
{
	struct routine *r = of(call);

	*(double *)r->c = ((double (*)(int, P, int))r->function)(r->n, r->a, r->la);
}

/* The first element of the greatest (k: 1) or least (k: -1) magnitude, from 1; 0: there is none. */
static void run_extreme(struct library_call *call)
{
	struct routine *r = of(call);
	double best = 0, v;
	int at = 0;

	for (int i = 0; i < r->n && r->la > 0; i++) {
		double complex e = element_load(r->type, r->a, (size_t)i * (size_t)r->la);

		v = fabs(creal(e)) + fabs(cimag(e));
		if (!at || (r->lc > 0 ? v > best : v < best)) {
			best = v;
			at = i + 1;
		}
	}
	*(int *)r->c = at;
}

/* result_bytes: of the result, which is on the host unless the handle says otherwise. */
static int reduction(const char *name, const char *function, void (*run)(struct library_call *),
	int type, void *handle, int n, const void *x, int incx, const void *y, int incy,
	void *result, size_t result_bytes, int sign)
{
	struct routine
		r = { .n = n, .a = x, .la = incx, .b = y, .lb = incy, .c = result, .lc = sign };
	struct blas *b = blas_of(handle);
	int status = begin(&r, name, function, b, type, run);

	if (status)
		return status;
	if (!result)
		return BLAS_INVALID_VALUE;
	blas_vector(&r.call, false, x, n, incx, r.bytes);
	blas_vector(&r.call, false, y, y ? n : 0, incy, r.bytes);
	if (b->on_device)
		library_span(&r.call, true, result, result_bytes, 0, 1, 0, 1);
	if (n < 0)
		r.n = 0;
	status = issue(&r);
	if (!b->on_device)
		library_wait(b->stream);
	return status;
}

#define DOT(name, function, run, type, bytes) \
	CALL(int, name, void *h, int n, P x, int incx, P y, int incy, void *result) \
	{ \
		return reduction(__func__, function, run, type, h, n, x, incx, y, incy, result, \
			bytes, 0); \
	}
DOT(cublasSdot_v2, "cblas_sdot", run_sdot, EL_R32, 4)
DOT(cublasDdot_v2, "cblas_ddot", run_ddot, EL_R64, 8)
DOT(cublasCdotu_v2, "cblas_cdotu_sub", run_dot_sub, EL_C32, 8)
DOT(cublasCdotc_v2, "cblas_cdotc_sub", run_dot_sub, EL_C32, 8)
DOT(cublasZdotu_v2, "cblas_zdotu_sub", run_dot_sub, EL_C64, 16)
DOT(cublasZdotc_v2, "cblas_zdotc_sub", run_dot_sub, EL_C64, 16)

#define REDUCTION(name, function, run, type, bytes, sign) \
	CALL(int, name, void *h, int n, P x, int incx, void *result) \
	{ \
		return reduction(__func__, function, run, type, h, n, x, incx, NULL, 0, result, \
			bytes, sign); \
	}
REDUCTION(cublasSnrm2_v2, "cblas_snrm2", run_float, EL_R32, 4, 0)
REDUCTION(cublasDnrm2_v2, "cblas_dnrm2", run_double, EL_R64, 8, 0)
REDUCTION(cublasScnrm2_v2, "cblas_scnrm2", run_float, EL_C32, 4, 0)
REDUCTION(cublasDznrm2_v2, "cblas_dznrm2", run_double, EL_C64, 8, 0)
REDUCTION(cublasSasum_v2, "cblas_sasum", run_float, EL_R32, 4, 0)
REDUCTION(cublasDasum_v2, "cblas_dasum", run_double, EL_R64, 8, 0)
REDUCTION(cublasScasum_v2, "cblas_scasum", run_float, EL_C32, 4, 0)
REDUCTION(cublasDzasum_v2, "cblas_dzasum", run_double, EL_C64, 8, 0)
#define EXTREMES(T, t, type) \
	REDUCTION(cublasI##t##amax_v2, NULL, run_extreme, type, 4, 1) \
	REDUCTION(cublasI##t##amin_v2, NULL, run_extreme, type, 4, -1)
TYPES(EXTREMES)

/* ---- level 2 ---- */

static void run_gemv(struct library_call *call)
{
	struct routine *r = of(call);

	((void (*)(P, L, L, P, P, L, P, L, P, void *, L))r->function)(r->flag, &r->m, &r->n,
		scalar_at(&r->alpha), r->a, &r->la, r->b, &r->lb, scalar_at(&r->beta), r->c,
		&r->lc);
}

static int gemv(const char *name, const char *function, int type, void *handle, int t, int m, int n,
	P alpha, P a, int lda, P x, int incx, P beta, void *y, int incy)
{
	struct routine r = { .flag = { trans(t) },
		.m = m,
		.n = n,
		.a = a,
		.la = lda,
		.b = x,
		.lb = incx,
		.c = y,
		.lc = incy };
	struct blas *b = blas_of(handle);
	int status = begin(&r, name, function, b, type, run_gemv);

	if (status)
		return status;
	r.alpha = scalar_of(b, alpha, r.bytes);
	r.beta = scalar_of(b, beta, r.bytes);
	blas_matrix(&r.call, false, a, m, n, lda, r.bytes);
	blas_vector(&r.call, false, x, t ? m : n, incx, r.bytes);
	blas_vector(&r.call, true, y, t ? n : m, incy, r.bytes);
	return issue(&r);
}

static void run_ger(struct library_call *call)
{
	struct routine *r = of(call);

	((void (*)(L, L, P, P, L, P, L, void *, L))r->function)(&r->m, &r->n, scalar_at(&r->alpha),
		r->a, &r->la, r->b, &r->lb, r->c, &r->lc);
}

static int ger(const char *name, const char *function, int type, void *handle, int m, int n,
	P alpha, P x, int incx, P y, int incy, void *a, int lda)
{
	struct routine
		r = { .m = m, .n = n, .a = x, .la = incx, .b = y, .lb = incy, .c = a, .lc = lda };
	struct blas *b = blas_of(handle);
	int status = begin(&r, name, function, b, type, run_ger);

	if (status)
		return status;
	r.alpha = scalar_of(b, alpha, r.bytes);
	blas_vector(&r.call, false, x, m, incx, r.bytes);
	blas_vector(&r.call, false, y, n, incy, r.bytes);
	blas_matrix(&r.call, true, a, m, n, lda, r.bytes);
	return issue(&r);
}

static void run_symv(struct library_call *call)
{
	struct routine *r = of(call);

	((void (*)(P, L, P, P, L, P, L, P, void *, L))r->function)(r->flag, &r->n,
		scalar_at(&r->alpha), r->a, &r->la, r->b, &r->lb, scalar_at(&r->beta), r->c,
		&r->lc);
}

static int symv(const char *name, const char *function, int type, void *handle, int u, int n,
	P alpha, P a, int lda, P x, int incx, P beta, void *y, int incy)
{
	struct routine r = { .flag = { uplo(u) },
		.n = n,
		.a = a,
		.la = lda,
		.b = x,
		.lb = incx,
		.c = y,
		.lc = incy };
	struct blas *b = blas_of(handle);
	int status = begin(&r, name, function, b, type, run_symv);

	if (status)
		return status;
	r.alpha = scalar_of(b, alpha, r.bytes);
	r.beta = scalar_of(b, beta, r.bytes);
	blas_matrix(&r.call, false, a, n, n, lda, r.bytes);
	blas_vector(&r.call, false, x, n, incx, r.bytes);
	blas_vector(&r.call, true, y, n, incy, r.bytes);
	return issue(&r);
}

static void run_trsv(struct library_call *call)
{
	struct routine *r = of(call);

	((void (*)(P, P, P, L, P, L, void *, L))r->function)(r->flag, r->flag + 1, r->flag + 2,
		&r->n, r->a, &r->la, r->c, &r->lc);
}

static int trsv(const char *name, const char *function, int type, void *handle, int u, int t, int d,
	int n, P a, int lda, void *x, int incx)
{
	struct routine r = { .flag = { uplo(u), trans(t), diag(d) },
		.n = n,
		.a = a,
		.la = lda,
		.c = x,
		.lc = incx };
	int status = begin(&r, name, function, blas_of(handle), type, run_trsv);

	if (status)
		return status;
	blas_matrix(&r.call, false, a, n, n, lda, r.bytes);
	blas_vector(&r.call, true, x, n, incx, r.bytes);
	return issue(&r);
}

#define LEVEL2(T, t, type) \
	CALL(int, cublas##T##gemv_v2, void *h, int op, int m, int n, P alpha, P a, int lda, P x, \
		int incx, P beta, void *y, int incy) \
	{ \
		return gemv(__func__, #t "gemv_", type, h, op, m, n, alpha, a, lda, x, incx, beta, \
			y, incy); \
	} \
	CALL(int, cublas##T##trsv_v2, void *h, int u, int op, int d, int n, P a, int lda, void *x, \
		int incx) \
	{ \
		return trsv(__func__, #t "trsv_", type, h, u, op, d, n, a, lda, x, incx); \
	}
TYPES(LEVEL2)
#define GER(name, function, type) \
	CALL(int, name, void *h, int m, int n, P alpha, P x, int incx, P y, int incy, void *a, \
		int lda) \
	{ \
		return ger(__func__, function, type, h, m, n, alpha, x, incx, y, incy, a, lda); \
	}
GER(cublasSger_v2, "sger_", EL_R32)
GER(cublasDger_v2, "dger_", EL_R64)
GER(cublasCgeru_v2, "cgeru_", EL_C32)
GER(cublasCgerc_v2, "cgerc_", EL_C32)
GER(cublasZgeru_v2, "zgeru_", EL_C64)
GER(cublasZgerc_v2, "zgerc_", EL_C64)
#define SYMV(name, function, type) \
	CALL(int, name, void *h, int u, int n, P alpha, P a, int lda, P x, int incx, P beta, \
		void *y, int incy) \
	{ \
		return symv(__func__, function, type, h, u, n, alpha, a, lda, x, incx, beta, y, \
			incy); \
	}
SYMV(cublasSsymv_v2, "ssymv_", EL_R32)
SYMV(cublasDsymv_v2, "dsymv_", EL_R64)
SYMV(cublasChemv_v2, "chemv_", EL_C32)
SYMV(cublasZhemv_v2, "zhemv_", EL_C64)

/* ---- level 3 ---- */

static void run_syrk(struct library_call *call)
{
	struct routine *r = of(call);

	((void (*)(P, P, L, L, P, P, L, P, void *, L))r->function)(r->flag, r->flag + 1, &r->n,
		&r->k, scalar_at(&r->alpha), r->a, &r->la, scalar_at(&r->beta), r->c, &r->lc);
}

static int syrk(const char *name, const char *function, int type, void *handle, int u, int t, int n,
	int k, P alpha, P a, int lda, P beta, void *c, int ldc)
{
	struct routine r = { .flag = { uplo(u), trans(t) },
		.n = n,
		.k = k,
		.a = a,
		.la = lda,
		.c = c,
		.lc = ldc };
	struct blas *b = blas_of(handle);
	int status = begin(&r, name, function, b, type, run_syrk);

	if (status)
		return status;
	r.alpha = scalar_of(b, alpha, r.bytes);
	r.beta = scalar_of(b, beta, r.bytes);
	blas_matrix(&r.call, false, a, t ? k : n, t ? n : k, lda, r.bytes);
	blas_matrix(&r.call, true, c, n, n, ldc, r.bytes);
	return issue(&r);
}

static void run_symm(struct library_call *call)
{
	struct routine *r = of(call);

	((void (*)(P, P, L, L, P, P, L, P, L, P, void *, L))r->function)(r->flag, r->flag + 1,
		&r->m, &r->n, scalar_at(&r->alpha), r->a, &r->la, r->b, &r->lb, scalar_at(&r->beta),
		r->c, &r->lc);
}

static int symm(const char *name, const char *function, int type, void *handle, int s, int u, int m,
	int n, P alpha, P a, int lda, P b, int ldb, P beta, void *c, int ldc)
{
	struct routine r = { .flag = { side(s), uplo(u) },
		.m = m,
		.n = n,
		.a = a,
		.la = lda,
		.b = b,
		.lb = ldb,
		.c = c,
		.lc = ldc };
	struct blas *h = blas_of(handle);
	int status = begin(&r, name, function, h, type, run_symm);

	if (status)
		return status;
	r.alpha = scalar_of(h, alpha, r.bytes);
	r.beta = scalar_of(h, beta, r.bytes);
	blas_matrix(&r.call, false, a, s ? n : m, s ? n : m, lda, r.bytes);
	blas_matrix(&r.call, false, b, m, n, ldb, r.bytes);
	blas_matrix(&r.call, true, c, m, n, ldc, r.bytes);
	return issue(&r);
}

static void run_trsm(struct library_call *call)
{
	struct routine *r = of(call);

	/* trmm of cuBLAS leaves its operand b as it is, unless it is c */
	for (long j = 0; r->b && r->b != r->c && j < r->n; j++)
		memcpy((char *)r->c + j * r->lc * r->bytes,
			(const char *)r->b + j * r->lb * r->bytes, (size_t)r->m * r->bytes);
	((void (*)(P, P, P, P, L, L, P, P, L, void *, L))r->function)(r->flag, r->flag + 1,
		r->flag + 2, r->flag + 3, &r->m, &r->n, scalar_at(&r->alpha), r->a, &r->la, r->c,
		&r->lc);
}

/* b: NULL for trsm, which works in place. */
static int trsm(const char *name, const char *function, int type, void *handle, int s, int u, int t,
	int d, int m, int n, P alpha, P a, int lda, P b, int ldb, void *c, int ldc)
{
	struct routine r = { .flag = { side(s), uplo(u), trans(t), diag(d) },
		.m = m,
		.n = n,
		.a = a,
		.la = lda,
		.b = b,
		.lb = ldb,
		.c = c,
		.lc = ldc };
	struct blas *h = blas_of(handle);
	int status = begin(&r, name, function, h, type, run_trsm);

	if (status)
		return status;
	r.alpha = scalar_of(h, alpha, r.bytes);
	blas_matrix(&r.call, false, a, s ? n : m, s ? n : m, lda, r.bytes);
	blas_matrix(&r.call, false, b, b ? m : 0, n, ldb, r.bytes);
	blas_matrix(&r.call, true, c, m, n, ldc, r.bytes);
	return issue(&r);
}

static double complex at(const struct routine *r, const void *a, long ld, char t, long i, long j)
{
	double complex v = element_load(r->type, a, (size_t)(t == 'N' ? i + j * ld : j + i * ld));

	return t == 'C' ? conj(v) : v;
}

/* C = alpha op(A) + beta op(B); C may be A or B where that one is not transposed. */
static void run_geam(struct library_call *call)
{
	struct routine *r = of(call);
	double complex alpha = element_load(r->type, scalar_at(&r->alpha), 0);
	double complex beta = element_load(r->type, scalar_at(&r->beta), 0), v;

	for (long j = 0; j < r->n; j++)
		for (long i = 0; i < r->m; i++) {
			v = alpha != 0 ? alpha * at(r, r->a, r->la, r->flag[0], i, j) : 0;
			if (beta != 0)
				v += beta * at(r, r->b, r->lb, r->flag[1], i, j);
			element_store(r->type, r->c, (size_t)(i + j * r->lc), v);
		}
}

static int geam(const char *name, int type, void *handle, int ta, int tb, int m, int n, P alpha,
	P a, int lda, P beta, P b, int ldb, void *c, int ldc)
{
	struct routine r = { .flag = { trans(ta), trans(tb) },
		.m = m,
		.n = n,
		.a = a,
		.la = lda,
		.b = b,
		.lb = ldb,
		.c = c,
		.lc = ldc };
	struct blas *h = blas_of(handle);
	int status = begin(&r, name, NULL, h, type, run_geam);

	if (status)
		return status;
	r.alpha = scalar_of(h, alpha, r.bytes);
	r.beta = scalar_of(h, beta, r.bytes);
	if (r.alpha.device || element_load(type, r.alpha.host, 0) != 0)
		blas_matrix(&r.call, false, a, ta ? n : m, ta ? m : n, lda, r.bytes);
	if (r.beta.device || element_load(type, r.beta.host, 0) != 0)
		blas_matrix(&r.call, false, b, tb ? n : m, tb ? m : n, ldb, r.bytes);
	blas_matrix(&r.call, true, c, m, n, ldc, r.bytes);
	return issue(&r);
}

/* C = A diag(x), or diag(x) A */
static void run_dgmm(struct library_call *call)
{
	struct routine *r = of(call);
	long step = r->lb, first;

	for (long j = 0; j < r->n; j++)
		for (long i = 0; i < r->m; i++) {
			long k = r->flag[0] == 'L' ? i : j;

			first = step < 0 ? (1 - (r->flag[0] == 'L' ? r->m : r->n)) * step : 0;
			element_store(r->type, r->c, (size_t)(i + j * r->lc),
				element_load(r->type, r->a, (size_t)(i + j * r->la))
				* element_load(r->type, r->b, (size_t)(first + k * step)));
		}
}

static int dgmm(const char *name, int type, void *handle, int s, int m, int n, P a, int lda, P x,
	int incx, void *c, int ldc)
{
	struct routine r = { .flag = { side(s) },
		.m = m,
		.n = n,
		.a = a,
		.la = lda,
		.b = x,
		.lb = incx,
		.c = c,
		.lc = ldc };
	int status = begin(&r, name, NULL, blas_of(handle), type, run_dgmm);

	if (status)
		return status;
	blas_matrix(&r.call, false, a, m, n, lda, r.bytes);
	blas_vector(&r.call, false, x, s ? n : m, incx, r.bytes);
	blas_matrix(&r.call, true, c, m, n, ldc, r.bytes);
	return issue(&r);
}

#define LEVEL3(T, t, type) \
	CALL(int, cublas##T##syrk_v2, void *h, int u, int op, int n, int k, P alpha, P a, int lda, \
		P beta, void *c, int ldc) \
	{ \
		return syrk(__func__, #t "syrk_", type, h, u, op, n, k, alpha, a, lda, beta, c, \
			ldc); \
	} \
	CALL(int, cublas##T##symm_v2, void *h, int s, int u, int m, int n, P alpha, P a, int lda, \
		P b, int ldb, P beta, void *c, int ldc) \
	{ \
		return symm(__func__, #t "symm_", type, h, s, u, m, n, alpha, a, lda, b, ldb, \
			beta, c, ldc); \
	} \
	CALL(int, cublas##T##trsm_v2, void *h, int s, int u, int op, int d, int m, int n, P alpha, \
		P a, int lda, void *b, int ldb) \
	{ \
		return trsm(__func__, #t "trsm_", type, h, s, u, op, d, m, n, alpha, a, lda, NULL, \
			0, b, ldb); \
	} \
	CALL(int, cublas##T##trmm_v2, void *h, int s, int u, int op, int d, int m, int n, P alpha, \
		P a, int lda, P b, int ldb, void *c, int ldc) \
	{ \
		return trsm(__func__, #t "trmm_", type, h, s, u, op, d, m, n, alpha, a, lda, b, \
			ldb, c, ldc); \
	} \
	CALL(int, cublas##T##geam, void *h, int ta, int tb, int m, int n, P alpha, P a, int lda, \
		P beta, P b, int ldb, void *c, int ldc) \
	{ \
		return geam(__func__, type, h, ta, tb, m, n, alpha, a, lda, beta, b, ldb, c, ldc); \
	} \
	CALL(int, cublas##T##dgmm, void *h, int s, int m, int n, P a, int lda, P x, int incx, \
		void *c, int ldc) \
	{ \
		return dgmm(__func__, type, h, s, m, n, a, lda, x, incx, c, ldc); \
	}
TYPES(LEVEL3)
