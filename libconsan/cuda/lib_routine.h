/* lib_routine: routines of a BLAS by its Fortran interface, all of whose arguments are addresses. The
 * functions of cuBLAS have the same arguments in the same order, after the handle. */
#ifndef CONSAN_CUDA_LIB_ROUTINE_H
#define CONSAN_CUDA_LIB_ROUTINE_H

#include "lib_blas.h"

enum { ROUTINE_ARGS = 14 };
struct routine {
	struct library_call call;
	void *function;
	int type;                    /* of an element, EL_... */
	unsigned n;                  /* arguments */
	struct argument {
		char kind;           /* as in routine_issue() */
		char flag;
		int64_t number;      /* a BLAS with integers of 32 bits reads the lower half */
		const void *at;
		struct scalar scalar;
	} arg[ROUTINE_ARGS];
};

/* Begins a routine; function: of the BLAS, NULL for one of ours. Returns a cublasStatus_t. */
int routine_begin(struct routine *r, const char *name, const char *function, const struct blas *b,
	int type, void (*run)(struct library_call *));
/* Puts `call` of `bytes` bytes on its stream, if the numbers fit in 31 bits and a sign: those of the
 * distribution's BLAS. Returns a cublasStatus_t. */
int routine_put(struct library_call *call, size_t bytes, const int64_t *number, unsigned n);

/* Checks the arguments of a routine, notes what it accesses, and puts it on its stream. shape: one
 * letter for each argument; numbers are int64_t, flags int, others addresses:
 *   s u t d    side, uplo, trans, diag; y h: trans, but not conjugated, not without conjugation
 *   m n k      sizes; l v: the numbers of diagonals below and above
 *   a b        alpha and beta; r e: the same, real where the elements are complex
 *   G D        matrix of m x n, as such or as a band; followed, as all matrices but P, by its leading
 *              dimension
 *   T E P      half of a matrix of n x n: as such, as a band of k diagonals, packed
 *   S          half of a matrix of m x m, or of n x n on the right side
 *   O          matrix of n x k, or of k x n if it is transposed
 *   R          matrix of m x n
 *   X Y        vector of n and m elements if there is an m, the reverse if the matrix is transposed, else
 *              of n; followed by its step
 *   !          the operand before is written
 * Returns a cublasStatus_t. */
int routine_issue(const char *name, const char *function, int type, const char *shape, void *handle, ...);

/* For a function of cuBLAS with int and its other one with int64_t. */
#define BOTH(X, name, ...) X(name, int, __VA_ARGS__) X(name##_64, int64_t, __VA_ARGS__)
typedef int64_t N;
typedef const void *P;

#endif
