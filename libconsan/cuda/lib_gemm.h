/* lib_gemm: products of matrices, for cuBLAS and cuBLASLt. */
#ifndef CONSAN_CUDA_LIB_GEMM_H
#define CONSAN_CUDA_LIB_GEMM_H

#include "lib_blas.h"

struct matrix {
	const void *at;
	int type;                    /* EL_... */
	int rows, columns;           /* as stored */
	long ld;
	long long stride;            /* from one matrix of a batch to the next, elements */
	bool row_major;
	bool array;                  /* `at` has addresses of matrices, on the device */
};

/* What is done to each element before it is stored. */
enum { AFTER_RELU = 1, AFTER_GELU = 2 };

/* D = after(alpha * op(A) op(B) + beta * C + bias). Complex types: no bias, no after. */
struct product {
	struct library_call call;
	struct matrix a, b, c, d;
	int op_a, op_b, batch;
	int scale_type;              /* of alpha and beta, EL_... */
	struct scalar alpha, beta;
	unsigned after;
	const void *bias;            /* one for each row of D, or NULL */
	int bias_type;
	const float *scale[3];       /* factors of A, B and D on the device, or NULL */
};

/* The type of alpha and beta for a cublasComputeType_t and a type of C; -1: no such. */
int product_scale_type(int compute, int type);
/* Checks the operands, notes what is accessed, puts it on its stream. Returns a cublasStatus_t. */
int product_issue(struct product *p);

#endif
