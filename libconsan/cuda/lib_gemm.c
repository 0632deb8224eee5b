/* lib_gemm: see lib_gemm.h. The operands are converted to one type, which a BLAS multiplies: float,
 * or double for doubles and for integers, whose sums it holds exactly. */
#include "lib_gemm.h"
#include "lib_routine.h"

#include <limits.h>
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

/* The bytes of one matrix, or of all of a batch. */
static struct hb_span span_of(const struct matrix *m, const void *at, int batch, bool write)
{
	const size_t bytes = element_bytes(m->type);
	const long width = m->row_major ? m->columns : m->rows;
	const long lines = m->row_major ? m->rows : m->columns;

	return (struct hb_span){ at, (size_t)width * bytes, (size_t)m->ld * bytes, (size_t)lines,
		(size_t)m->stride * bytes, m->stride ? (size_t)batch : 1, 0, write };
}

static void accesses(struct product *p, const struct matrix *m, bool write)
{
	const struct hb_span s = span_of(m, m->at, p->batch, write);

	if (m->array)
		library_span(&p->call, false, m->at, sizeof(void *) * (size_t)p->batch, 0, 1, 0, 1);
	else if (m->stride >= 0)
		library_span(&p->call, write, m->at, s.width, s.pitch, s.rows, s.slice, s.slices);
}

/* Addresses in arrays are known only when the turn of the call has come. */
static void more_accesses(const struct library_call *call,
	void (*tell)(void *user, const struct hb_span *span), void *user)
{
	const struct product *p = (const struct product *)call;
	const struct matrix *matrix[] = { &p->a, &p->b, &p->c };

	for (unsigned i = 0; i < ARRAY_SIZE(matrix); i++)
		for (int k = 0; k < p->batch && matrix[i]->array; k++) {
			struct matrix one = *matrix[i];
			struct hb_span s;

			one.stride = 0;
			s = span_of(&one, matrix_at(matrix[i], k), 1, i == 2);
			if (s.width && s.rows && (i == 2 || depth(p)))
				tell(user, &s);
		}
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
	p->call.more = p->a.array || p->b.array || p->c.array ? more_accesses : NULL;
	note_accesses(p);
	return blas_status(library_issue(&p->call, sizeof *p));
}

/* ---- the calls of cuBLAS ---- */

struct shape { int op_a, op_b; int64_t m, n, k; };

static struct matrix operand(const void *at, int type, int op, int64_t rows, int64_t columns,
	int64_t ld, long long stride, bool array)
{
	return (struct matrix){ at, type, (int)(op == BLAS_N ? rows : columns),
		(int)(op == BLAS_N ? columns : rows), ld, stride, false, array };
}

static int gemm_ex(const char *name, void *handle, struct shape s, int scale_type,
	const void *alpha, const void *a, int ta, int64_t lda, long long sa, const void *b, int tb,
	int64_t ldb, long long sb, const void *beta, void *c, int tc, int64_t ldc, long long sc,
	int64_t batch, bool array)
{
	const struct blas *h = blas_of(handle);
	struct product p = { .call.name = name, .op_a = s.op_a, .op_b = s.op_b, .batch = (int)batch,
		.scale_type = scale_type };

	if (!h)
		return BLAS_NOT_INITIALIZED;
	if (s.m > INT_MAX || s.n > INT_MAX || s.k > INT_MAX || batch > INT_MAX) {
		library_refused(name, "for sizes of more than 31 bits");
		return BLAS_NOT_SUPPORTED;
	}
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

#define SHAPE(I) void *h, int ta, int tb, I m, I n, I k
#define GIVEN (struct shape){ ta, tb, m, n, k }
#define GEMM(name, I, t) \
	CALL(int, name, SHAPE(I), P alpha, P a, I lda, P b, I ldb, P beta, void *c, I ldc) \
	{ \
		return gemm_ex(__func__, h, GIVEN, t, alpha, a, t, lda, 0, b, t, ldb, 0, beta, c, \
			t, ldc, 0, 1, false); \
	}
#define STRIDED(name, I, t) \
	CALL(int, name, SHAPE(I), P alpha, P a, I lda, long long sa, P b, I ldb, long long sb, \
		P beta, void *c, I ldc, long long sc, I batch) \
	{ \
		return gemm_ex(__func__, h, GIVEN, t, alpha, a, t, lda, sa, b, t, ldb, sb, beta, \
			c, t, ldc, sc, batch, false); \
	}
#define BATCHED(name, I, t) \
	CALL(int, name, SHAPE(I), P alpha, P a, I lda, P b, I ldb, P beta, void *c, I ldc, \
		I batch) \
	{ \
		return gemm_ex(__func__, h, GIVEN, t, alpha, a, t, lda, 0, b, t, ldb, 0, beta, c, \
			t, ldc, 0, batch, true); \
	}
#define SDCZ(X, end) \
	BOTH(X, cublasS##end, EL_R32) \
	BOTH(X, cublasD##end, EL_R64) BOTH(X, cublasC##end, EL_C32) BOTH(X, cublasZ##end, EL_C64)
SDCZ(GEMM, gemm_v2)
BOTH(GEMM, cublasHgemm, EL_R16)
BOTH(GEMM, cublasCgemm3m, EL_C32)
BOTH(GEMM, cublasZgemm3m, EL_C64)
SDCZ(STRIDED, gemmStridedBatched)
BOTH(STRIDED, cublasHgemmStridedBatched, EL_R16)
SDCZ(BATCHED, gemmBatched)
BOTH(BATCHED, cublasHgemmBatched, EL_R16)

#define EX(name, I, scale) \
	CALL(int, name, SHAPE(I), P alpha, P a, int at, I lda, P b, int bt, I ldb, P beta, \
		void *c, int ct, I ldc) \
	{ \
		return gemm_ex(__func__, h, GIVEN, scale, alpha, a, at, lda, 0, b, bt, ldb, 0, \
			beta, c, ct, ldc, 0, 1, false); \
	}
BOTH(EX, cublasSgemmEx, EL_R32)
BOTH(EX, cublasCgemmEx, EL_C32)

#define GEMM_EX(name, I, none) \
	CALL(int, name, SHAPE(I), P alpha, P a, int at, I lda, P b, int bt, I ldb, P beta, void *c, \
		int ct, I ldc, int compute, int algorithm) \
	{ \
		return gemm_ex(__func__, h, GIVEN, product_scale_type(compute, ct), alpha, a, at, lda, 0, b, \
			bt, ldb, 0, beta, c, ct, ldc, 0, 1, false); \
	}
BOTH(GEMM_EX, cublasGemmEx, )

#define BATCHED_EX(name, I, none) \
	CALL(int, name, SHAPE(I), P alpha, P a, int at, I lda, P b, int bt, I ldb, P beta, \
		void *c, int ct, I ldc, I batch, int compute, int algorithm) \
	{ \
		return gemm_ex(__func__, h, GIVEN, product_scale_type(compute, ct), alpha, a, at, lda, 0, b, \
			bt, ldb, 0, beta, c, ct, ldc, 0, batch, true); \
	}
BOTH(BATCHED_EX, cublasGemmBatchedEx, )

#define STRIDED_EX(name, I, none) \
	CALL(int, name, SHAPE(I), P alpha, P a, int at, I lda, long long sa, P b, \
		int bt, I ldb, long long sb, P beta, void *c, int ct, I ldc, long long sc, I batch, \
		int compute, int algorithm) \
	{ \
		return gemm_ex(__func__, h, GIVEN, product_scale_type(compute, ct), alpha, a, at, lda, sa, \
			b, bt, ldb, sb, beta, c, ct, ldc, sc, batch, false); \
	}
BOTH(STRIDED_EX, cublasGemmStridedBatchedEx, )
