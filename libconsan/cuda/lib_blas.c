/* lib_blas: handles of cuBLAS, copies between host and device, operands. */
#include "lib_blas.h"

#include <stdlib.h>
#include <string.h>

/* ---- handles ---- */

struct blas *blas_of(const void *handle)
{
	return handle_get(handle, HANDLE_BLAS);
}

int blas_status(int error)
{
	if (!error)
		return BLAS_SUCCESS;
	return error == cudaErrorInvalidResourceHandle ? BLAS_INVALID_VALUE : BLAS_EXECUTION_FAILED;
}

CALL(int, cublasCreate_v2, void **out)
{
	struct blas *b;

	if (!out)
		return BLAS_INVALID_VALUE;
	if (device_ready())
		return BLAS_NOT_INITIALIZED;
	b = base_alloc(sizeof *b);
	*b = (struct blas){ .atomics = 0 };
	handle_put(b, HANDLE_BLAS, b);
	*out = b;
	return BLAS_SUCCESS;
}

CALL(int, cublasDestroy_v2, void *handle)
{
	struct blas *b = blas_of(handle);

	if (!handle_drop(handle, HANDLE_BLAS))
		return BLAS_NOT_INITIALIZED;
	free(b);
	return BLAS_SUCCESS;
}

CALL(int, cublasGetVersion_v2, void *handle, int *version)
{
	int (*property)(int type, int *value) =
		(int (*)(int, int *))library_own("libcublas.so", "cublasGetProperty");
	int part[3] = { 13, 0, 0 };

	if (!version)
		return BLAS_INVALID_VALUE;
	for (int k = 0; property && k < 3; k++)
		property(k, part + k);
	*version = part[0] * 10000 + part[1] * 100 + part[2];
	return BLAS_SUCCESS;
}

CALL(int, cublasSetWorkspace_v2, void *handle, void *at, size_t bytes)
{
	return blas_of(handle) ? BLAS_SUCCESS : BLAS_NOT_INITIALIZED;
}

#define PROPERTY(set, get, type, field) \
	CALL(int, set, void *handle, type value) \
	{ \
		struct blas *b = blas_of(handle); \
		if (!b) \
			return BLAS_NOT_INITIALIZED; \
		b->field = value; \
		return BLAS_SUCCESS; \
	} \
	CALL(int, get, void *handle, type *value) \
	{ \
		struct blas *b = blas_of(handle); \
		if (!b) \
			return BLAS_NOT_INITIALIZED; \
		if (!value) \
			return BLAS_INVALID_VALUE; \
		*value = b->field; \
		return BLAS_SUCCESS; \
	}
PROPERTY(cublasSetStream_v2, cublasGetStream_v2, void *, stream)
PROPERTY(cublasSetPointerMode_v2, cublasGetPointerMode_v2, int, on_device)
PROPERTY(cublasSetMathMode, cublasGetMathMode, int, math)
PROPERTY(cublasSetAtomicsMode, cublasGetAtomicsMode, int, atomics)
PROPERTY(cublasSetSmCountTarget, cublasGetSmCountTarget, int, sm_count)

/* ---- copies between host and device ---- */

static int copy(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
	size_t rows, enum cudaMemcpyKind kind, void *stream, bool async)
{
	int error = async
		? (int)cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, rows, kind, stream)
		: (int)cudaMemcpy2D(to, to_pitch, from, from_pitch, width, rows, kind);

	return error ? BLAS_INVALID_VALUE : BLAS_SUCCESS;
}

#define COPIES(set, end, I, kind) \
	CALL(int, cublas##set##Vector##end, I n, I bytes, const void *x, I incx, void *y, I incy) \
	{ \
		return copy(y, (size_t)incy * bytes, x, (size_t)incx * bytes, bytes, n, kind, \
			NULL, false); \
	} \
	CALL(int, cublas##set##VectorAsync##end, I n, I bytes, const void *x, I incx, void *y, \
		I incy, void *stream) \
	{ \
		return copy(y, (size_t)incy * bytes, x, (size_t)incx * bytes, bytes, n, kind, \
			stream, true); \
	} \
	CALL(int, cublas##set##Matrix##end, I rows, I cols, I bytes, const void *a, I lda, \
		void *b, I ldb) \
	{ \
		return copy(b, (size_t)ldb * bytes, a, (size_t)lda * bytes, (size_t)rows * bytes, \
			cols, kind, NULL, false); \
	} \
	CALL(int, cublas##set##MatrixAsync##end, I rows, I cols, I bytes, const void *a, I lda, \
		void *b, I ldb, void *stream) \
	{ \
		return copy(b, (size_t)ldb * bytes, a, (size_t)lda * bytes, (size_t)rows * bytes, \
			cols, kind, stream, true); \
	}
COPIES(Set, , int, cudaMemcpyHostToDevice)
COPIES(Get, , int, cudaMemcpyDeviceToHost)
COPIES(Set, _64, int64_t, cudaMemcpyHostToDevice)
COPIES(Get, _64, int64_t, cudaMemcpyDeviceToHost)

/* ---- operands ---- */

struct scalar scalar_of(const struct blas *b, const void *at, size_t bytes)
{
	struct scalar s = { .device = b->on_device ? at : NULL };

	if (!b->on_device && at)
		memcpy(s.host, at, bytes);
	return s;
}

const void *scalar_at(const struct scalar *s)
{
	return s->device ? s->device : s->host;
}

void blas_vector(struct library_call *call, bool write, const void *at, long n, long step,
	size_t bytes)
{
	size_t pitch = (size_t)labs(step) * bytes;

	if (n <= 0)
		return;
	if (step == 1)
		library_span(call, write, at, (size_t)n * bytes, 0, 1, 0, 1);
	else
		library_span(call, write, at, bytes, pitch, (size_t)n, 0, 1);
}

void blas_matrix(struct library_call *call, bool write, const void *at, long rows, long columns,
	long ld, size_t bytes)
{
	if (rows > 0 && columns > 0)
		library_span(call, write, at, (size_t)rows * bytes, (size_t)ld * bytes,
			(size_t)columns, 0, 1);
}

void blas_triangle(struct library_call *call, bool write, const void *at, bool upper, bool unit, long n,
	long ld, size_t bytes)
{
	const char *from = at;
	const long columns = unit ? n - 1 : n; /* upper: one element more in each; lower: one less */
	struct hb_span *s;

	if (columns <= 0)
		return;
	if (unit)
		from += upper ? (size_t)ld * bytes : bytes;
	library_span(call, write, from, upper ? bytes : (size_t)columns * bytes,
		(size_t)(upper ? ld : ld + 1) * bytes, (size_t)columns, 0, 1);
	s = &call->span[call->nspans - 1];
	s->grow = upper ? (long)bytes : -(long)bytes;
}
