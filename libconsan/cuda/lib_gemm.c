/* lib_gemm: see lib_gemm.h. The operands are converted to one type, which a BLAS multiplies: float,
 * or double for doubles and for integers, whose sums it holds exactly. */
#include "lib_gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int product_scale_type(int compute, int type)
{
	switch (compute) {
	case 64: case 65:
		return EL_R16;
	case 68: case 69: case 74: case 75: case 77: case 78:
		return element_is_complex(type) ? EL_C32 : EL_R32;
	case 70: case 71: case 79:
		return element_is_complex(type) ? EL_C64 : EL_R64;
	case 72: case 73:
		return EL_I32;
	}
	return -1;
}

/* ---- the work ---- */

static const char *matrix_at(const struct matrix *m, int k)
{
	if (m->array)
		return ((const char *const *)m->at)[k];
	return (const char *)m->at + k * m->stride * (long long)element_bytes(m->type);
}

static size_t place(const struct matrix *m, long i, long j)
{
	return (size_t)(m->row_major ? j + i * m->ld : i + j * m->ld);
}

/* The type in which is multiplied. */
static int work_type(const struct product *p)
{
	if (p->scale_type == EL_C32 || p->scale_type == EL_C64 || p->scale_type == EL_R64)
		return p->scale_type;
	return p->scale_type == EL_I32 || p->a.type == EL_I8 ? EL_R64 : EL_R32;
}

/* op(M) without gaps, in columns; rows and columns: of op(M). */
static void *gather(const struct matrix *m, const char *from, int op, int rows, int columns,
	int type)
{
	void *to = base_alloc((size_t)rows * (size_t)columns * element_bytes(type) + 1);

	for (long j = 0; j < columns; j++)
		for (long i = 0; i < rows; i++) {
			double complex v = element_load(m->type, from,
				op == BLAS_N ? place(m, i, j) : place(m, j, i));

			element_store(type, to, (size_t)(i + j * rows), op == BLAS_C ? conj(v) : v);
		}
	return to;
}

static double gelu(double x) /* the approximation by tanh, which cuBLASLt's documentation names */
{
	return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static void finish(const struct product *p, int k, const void *sum, int type)
{
	const struct matrix *c = &p->c, *d = &p->d;
	double complex alpha = element_load(p->scale_type, scalar_at(&p->alpha), 0);
	double complex beta = element_load(p->scale_type, scalar_at(&p->beta), 0), v;
	const char *from = matrix_at(c, k);
	char *to = (char *)matrix_at(d, k);

	if (p->scale[0])
		alpha *= *p->scale[0];
	if (p->scale[1])
		alpha *= *p->scale[1];
	for (long j = 0; j < d->columns; j++)
		for (long i = 0; i < d->rows; i++) {
			v = alpha * element_load(type, sum, (size_t)(i + j * d->rows));
			if (beta != 0)
				v += beta * element_load(c->type, from, place(c, i, j));
			if (p->bias)
				v += element_load(p->bias_type, p->bias, (size_t)i);
			if (p->after & AFTER_RELU)
				v = fmax(creal(v), 0);
			if (p->after & AFTER_GELU)
				v = gelu(creal(v));
			if (p->scale[2])
				v *= *p->scale[2];
			element_store(d->type, to, place(d, i, j), v);
		}
}

typedef void gemm(const char *op_a, const char *op_b, const int *m, const int *n, const int *k,
	const void *alpha, const void *a, const int *lda, const void *b, const int *ldb,
	const void *beta, void *c, const int *ldc);

static gemm *gemm_of(int type)
{
	const char *name = type == EL_R32 ? "sgemm_" : type == EL_R64 ? "dgemm_"
		: type == EL_C32 ? "cgemm_" : "zgemm_";

	return (gemm *)host_function(HOST_BLAS, name);
}

static int depth(const struct product *p)
{
	return p->op_a == BLAS_N ? p->a.columns : p->a.rows;
}

static void multiply(struct library_call *call)
{
	const struct product *p = (const struct product *)call;
	const int type = work_type(p), m = p->d.rows, n = p->d.columns, k = depth(p);
	_Alignas(16) char one[16], zero[16] = { 0 };
	void *a, *b, *sum;

	element_store(type, one, 0, 1);
	for (int batch = 0; batch < p->batch; batch++) {
		sum = base_alloc((size_t)m * (size_t)n * element_bytes(type) + 1);
		memset(sum, 0, (size_t)m * (size_t)n * element_bytes(type));
		if (k) {
			a = gather(&p->a, matrix_at(&p->a, batch), p->op_a, m, k, type);
			b = gather(&p->b, matrix_at(&p->b, batch), p->op_b, k, n, type);
			gemm_of(type)("N", "N", &m, &n, &k, one, a, &m, b, &k, zero, sum, &m);
			free(a);
			free(b);
		}
		finish(p, batch, sum, type);
		free(sum);
	}
}

/* ---- what it accesses ---- */

static void accesses(struct product *p, const struct matrix *m, bool write)
{
	const size_t bytes = element_bytes(m->type);
	const long width = m->row_major ? m->columns : m->rows;
	const long lines = m->row_major ? m->rows : m->columns;

	if (m->array)
		/* the matrices are known only when its turn has come: they are not noted */
		library_span(&p->call, false, m->at, sizeof(void *) * (size_t)p->batch, 0, 1, 0, 1);
	else if (m->stride >= 0 && width > 0 && lines > 0)
		library_span(&p->call, write, m->at, (size_t)width * bytes, (size_t)m->ld * bytes,
			(size_t)lines, (size_t)m->stride * bytes, m->stride ? (size_t)p->batch : 1);
}

static void note_accesses(struct product *p)
{
	const bool scaled = p->beta.device || element_load(p->scale_type, p->beta.host, 0) != 0;

	if (depth(p)) {
		accesses(p, &p->a, false);
		accesses(p, &p->b, false);
	}
	if (scaled)
		accesses(p, &p->c, false);
	accesses(p, &p->d, true);
	if (p->bias)
		library_span(&p->call, false, p->bias,
			(size_t)p->d.rows * element_bytes(p->bias_type), 0, 1, 0, 1);
	if (p->alpha.device)
		library_span(&p->call, false, p->alpha.device, element_bytes(p->scale_type), 0, 1,
			0, 1);
	if (p->beta.device)
		library_span(&p->call, false, p->beta.device, element_bytes(p->scale_type), 0, 1, 0,
			1);
}

static bool is_short(const struct matrix *m)
{
	return m->rows < 0 || m->columns < 0 || m->ld < (m->row_major ? m->columns : m->rows)
		|| m->ld < 1;
}

static bool can_store(int type)
{
	return element_bytes(type) && type != EL_E4M3 && type != EL_E5M2;
}

int product_issue(struct product *p)
{
	const bool is_complex = p->scale_type == EL_C32 || p->scale_type == EL_C64;

	if (is_short(&p->a) || is_short(&p->b) || is_short(&p->c) || is_short(&p->d) || p->batch < 0
		|| p->op_a < BLAS_N || p->op_a > BLAS_C || p->op_b < BLAS_N || p->op_b > BLAS_C)
		return BLAS_INVALID_VALUE;
	if (p->scale_type < 0 || !element_bytes(p->a.type) || !element_bytes(p->b.type)
		|| !element_bytes(p->c.type) || !can_store(p->d.type)
		|| is_complex != element_is_complex(p->d.type)) {
		library_refused(p->call.name, "for these types");
		return BLAS_NOT_SUPPORTED;
	}
	if (!gemm_of(work_type(p)))
		return BLAS_NOT_SUPPORTED;
	if (!p->d.rows || !p->d.columns || !p->batch)
		return BLAS_SUCCESS;
	p->call.run = multiply;
	note_accesses(p);
	return blas_status(library_issue(&p->call, sizeof *p));
}

/* ---- the calls of cuBLAS ---- */

struct shape { int op_a, op_b, m, n, k; };

static struct matrix operand(const void *at, int type, int op, int rows, int columns, int ld,
	long long stride, bool array)
{
	return (struct matrix){ at, type, op == BLAS_N ? rows : columns,
		op == BLAS_N ? columns : rows, ld, stride, false, array };
}

static int gemm_ex(const char *name, void *handle, struct shape s, int scale_type,
	const void *alpha, const void *a, int ta, int lda, long long sa, const void *b, int tb,
	int ldb, long long sb, const void *beta, void *c, int tc, int ldc, long long sc, int batch,
	bool array)
{
	const struct blas *h = blas_of(handle);
	struct product p = { .call.name = name, .op_a = s.op_a, .op_b = s.op_b, .batch = batch,
		.scale_type = scale_type };

	if (!h)
		return BLAS_NOT_INITIALIZED;
	if (s.m < 0 || s.n < 0 || s.k < 0 || !alpha || !beta)
		return BLAS_INVALID_VALUE;
	p.call.stream = h->stream;
	p.a = operand(a, ta, s.op_a, s.m, s.k, lda, sa, array);
	p.b = operand(b, tb, s.op_b, s.k, s.n, ldb, sb, array);
	p.c = p.d = operand(c, tc, BLAS_N, s.m, s.n, ldc, sc, array);
	if (scale_type >= 0) {
		p.alpha = scalar_of(h, alpha, element_bytes(scale_type));
		p.beta = scalar_of(h, beta, element_bytes(scale_type));
	}
	return product_issue(&p);
}

typedef const void *P;
#define SHAPE void *h, int ta, int tb, int m, int n, int k
#define GIVEN (struct shape){ ta, tb, m, n, k }
#define GEMM(name, t) \
	CALL(int, name, SHAPE, P alpha, P a, int lda, P b, int ldb, P beta, void *c, int ldc) \
	{ \
		return gemm_ex(__func__, h, GIVEN, t, alpha, a, t, lda, 0, b, t, ldb, 0, beta, c, \
			t, ldc, 0, 1, false); \
	}
#define STRIDED(name, t) \
	CALL(int, name, SHAPE, P alpha, P a, int lda, long long sa, P b, int ldb, long long sb, \
		P beta, void *c, int ldc, long long sc, int batch) \
	{ \
		return gemm_ex(__func__, h, GIVEN, t, alpha, a, t, lda, sa, b, t, ldb, sb, beta, \
			c, t, ldc, sc, batch, false); \
	}
#define BATCHED(name, t) \
	CALL(int, name, SHAPE, P alpha, P a, int lda, P b, int ldb, P beta, void *c, int ldc, \
		int batch) \
	{ \
		return gemm_ex(__func__, h, GIVEN, t, alpha, a, t, lda, 0, b, t, ldb, 0, beta, c, \
			t, ldc, 0, batch, true); \
	}
#define TYPES(X, end) \
	X(cublasS##end, EL_R32) \
	X(cublasD##end, EL_R64) X(cublasC##end, EL_C32) X(cublasZ##end, EL_C64)
TYPES(GEMM, gemm_v2)
GEMM(cublasHgemm, EL_R16)
GEMM(cublasCgemm3m, EL_C32)
GEMM(cublasZgemm3m, EL_C64)
TYPES(STRIDED, gemmStridedBatched)
STRIDED(cublasHgemmStridedBatched, EL_R16)
TYPES(BATCHED, gemmBatched)
BATCHED(cublasHgemmBatched, EL_R16)

#define EX(name, scale) \
	CALL(int, name, SHAPE, P alpha, P a, int at, int lda, P b, int bt, int ldb, P beta, \
		void *c, int ct, int ldc) \
	{ \
		return gemm_ex(__func__, h, GIVEN, scale, alpha, a, at, lda, 0, b, bt, ldb, 0, \
			beta, c, ct, ldc, 0, 1, false); \
	}
EX(cublasSgemmEx, EL_R32)
EX(cublasCgemmEx, EL_C32)

CALL(int, cublasGemmEx, SHAPE, P alpha, P a, int at, int lda, P b, int bt, int ldb, P beta, void *c,
	int ct, int ldc, int compute, int algorithm)
{
	return gemm_ex(__func__, h, GIVEN, product_scale_type(compute, ct), alpha, a, at, lda, 0, b,
		bt, ldb, 0, beta, c, ct, ldc, 0, 1, false);
}

CALL(int, cublasGemmBatchedEx, SHAPE, P alpha, P a, int at, int lda, P b, int bt, int ldb, P beta,
	void *c, int ct, int ldc, int batch, int compute, int algorithm)
{
	return gemm_ex(__func__, h, GIVEN, product_scale_type(compute, ct), alpha, a, at, lda, 0, b,
		bt, ldb, 0, beta, c, ct, ldc, 0, batch, true);
}

CALL(int, cublasGemmStridedBatchedEx, SHAPE, P alpha, P a, int at, int lda, long long sa, P b,
	int bt, int ldb, long long sb, P beta, void *c, int ct, int ldc, long long sc, int batch,
	int compute, int algorithm)
{
	return gemm_ex(__func__, h, GIVEN, product_scale_type(compute, ct), alpha, a, at, lda, sa,
		b, bt, ldb, sb, beta, c, ct, ldc, sc, batch, false);
}
