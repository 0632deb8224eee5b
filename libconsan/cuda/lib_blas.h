/* lib_blas: what the files for cuBLAS share: handles, scalars, elements. */
#ifndef CONSAN_CUDA_LIB_BLAS_H
#define CONSAN_CUDA_LIB_BLAS_H

#include "library.h"

#include <complex.h>

/* A function that the program calls. */
#define CALL(type, name, ...) \
	__attribute__((visibility("default"))) type name(__VA_ARGS__); \
	type name(__VA_ARGS__)

enum { /* cublasStatus_t */
	BLAS_SUCCESS = 0,
	BLAS_NOT_INITIALIZED = 1,
	BLAS_INVALID_VALUE = 7,
	BLAS_EXECUTION_FAILED = 13,
	BLAS_NOT_SUPPORTED = 15,
};
enum { BLAS_N, BLAS_T, BLAS_C }; /* cublasOperation_t */

struct blas { void *stream; int on_device, math, atomics, sm_count; };
struct blas *blas_of(const void *handle); /* NULL: not a live handle */
int blas_status(int error);                /* of library_issue()'s error */

/* alpha, beta: copied when the program calls, or read on the device when the call runs. */
struct scalar { const void *device; _Alignas(16) char host[16]; };
struct scalar scalar_of(const struct blas *b, const void *at, size_t bytes);
const void *scalar_at(const struct scalar *s);

/* Vectors and matrices that a call reads or writes. rows: contiguous elements of a column. */
void blas_vector(struct library_call *call, bool write, const void *at, long n, long step,
	size_t bytes);
void blas_matrix(struct library_call *call, bool write, const void *at, long rows, long columns,
	long ld, size_t bytes);

/* Half of a matrix of n x n; unit: without its diagonal. */
void blas_triangle(struct library_call *call, bool write, const void *at, bool upper, bool unit, long n,
	long ld, size_t bytes);

/* Elements, by cudaDataType. */
enum {
	EL_R32 = 0,
	EL_R64 = 1,
	EL_R16 = 2,
	EL_I8 = 3,
	EL_C32 = 4,
	EL_C64 = 5,
	EL_U8 = 8,
	EL_I32 = 10,
	EL_BF16 = 14,
	EL_E4M3 = 28,
	EL_E5M2 = 29,
};
size_t element_bytes(int type);   /* 0: not supported */
bool element_is_complex(int type);
double complex element_load(int type, const void *at, size_t i);
/* Rounds to nearest even; integers are cut off at the limits of their type. Not for EL_E4M3,
 * EL_E5M2. */
void element_store(int type, void *at, size_t i, double complex value);

#endif
