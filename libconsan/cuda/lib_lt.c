/* lib_lt: cuBLASLt's matrix product. Its descriptors are data on the host, which the library's own
 * functions write and read (lib_calls.def); handles and the product are ours. */
#include "lib_gemm.h"

#include <stdlib.h>
#include <string.h>

enum { /* of cublasLtMatmulDescAttributes_t */
	MM_COMPUTE = 0,
	MM_SCALE = 1,
	MM_POINTER_MODE = 2,
	MM_OP_A = 3,
	MM_OP_B = 4,
	MM_EPILOGUE = 7,
	MM_BIAS = 8,
	MM_SCALE_A = 17,
	MM_SCALE_B = 18,
	MM_SCALE_C = 19,
	MM_SCALE_D = 20,
	MM_AMAX_D = 21,
	MM_BIAS_TYPE = 26,
	MM_SCALE_MODE_A = 31,
	MM_SCALE_MODE_B = 32,
};
enum { /* of cublasLtMatrixLayoutAttribute_t */
	LAYOUT_TYPE,
	LAYOUT_ORDER,
	LAYOUT_ROWS,
	LAYOUT_COLUMNS,
	LAYOUT_LD,
	LAYOUT_BATCH,
	LAYOUT_STRIDE,
};
enum { ORDER_COLUMN = 0, ORDER_ROW = 1 };
enum { EPILOGUE_DEFAULT = 1u, EPILOGUE_RELU = 2, EPILOGUE_BIAS = 4, EPILOGUE_GELU = 32 }; /* bits */

CALL(int, cublasLtCreate, void **out)
{
	if (!out)
		return BLAS_INVALID_VALUE;
	if (device_ready())
		return BLAS_NOT_INITIALIZED;
	*out = base_alloc(1);
	handle_put(*out, HANDLE_LT, *out);
	return BLAS_SUCCESS;
}

CALL(int, cublasLtDestroy, void *handle)
{
	if (!handle_drop(handle, HANDLE_LT))
		return BLAS_NOT_INITIALIZED;
	free(handle);
	return BLAS_SUCCESS;
}

/* A handle of cuBLAS is one of cuBLASLt as well. */
static bool is_handle(const void *handle)
{
	return handle_get(handle, HANDLE_LT) || blas_of(handle);
}

typedef int get(const void *descriptor, int attribute, void *to, size_t bytes, size_t *written);

static bool read_attribute(const char *function, const void *descriptor, int attribute, void *to,
	size_t bytes)
{
	get *call = (get *)library_own("libcublasLt.so", function);

	return call && descriptor && !call(descriptor, attribute, to, bytes, NULL);
}

#define LAYOUT(m, attribute, to) \
	read_attribute("cublasLtMatrixLayoutGetAttribute", m, attribute, &(to), sizeof(to))
#define OPERATION(o, attribute, to) \
	read_attribute("cublasLtMatmulDescGetAttribute", o, attribute, &(to), sizeof(to))

static bool read_layout(struct matrix *m, int *batch, const void *at, const void *layout)
{
	int32_t type, order = ORDER_COLUMN, count = 1;
	int64_t ld, stride = 0;
	uint64_t rows, columns;

	if (!LAYOUT(layout, LAYOUT_TYPE, type) || !LAYOUT(layout, LAYOUT_ROWS, rows)
		|| !LAYOUT(layout, LAYOUT_COLUMNS, columns) || !LAYOUT(layout, LAYOUT_LD, ld))
		return false;
	LAYOUT(layout, LAYOUT_ORDER, order);
	LAYOUT(layout, LAYOUT_BATCH, count);
	LAYOUT(layout, LAYOUT_STRIDE, stride);
	*m = (struct matrix){ at, type, (int)rows, (int)columns, ld, stride, order == ORDER_ROW,
		false };
	*batch = count;
	return order <= ORDER_ROW && rows <= INT32_MAX && columns <= INT32_MAX;
}

#define EPILOGUES (EPILOGUE_DEFAULT | EPILOGUE_RELU | EPILOGUE_BIAS | EPILOGUE_GELU)

/* False: it needs what is not done here. */
static bool read_operation(struct product *p, const struct blas *mode, const void *operation)
{
	int32_t compute = -1, op_a = 0, op_b = 0, bias_type = -1;
	int32_t scale_mode[2] = { 0 };
	uint32_t epilogue = EPILOGUE_DEFAULT;
	void *amax = NULL, *scale_c = NULL;

	OPERATION(operation, MM_COMPUTE, compute);
	OPERATION(operation, MM_OP_A, op_a);
	OPERATION(operation, MM_OP_B, op_b);
	OPERATION(operation, MM_EPILOGUE, epilogue);
	OPERATION(operation, MM_BIAS_TYPE, bias_type);
	OPERATION(operation, MM_AMAX_D, amax);
	OPERATION(operation, MM_SCALE_C, scale_c);
	OPERATION(operation, MM_SCALE_A, p->scale[0]);
	OPERATION(operation, MM_SCALE_B, p->scale[1]);
	OPERATION(operation, MM_SCALE_D, p->scale[2]);
	OPERATION(operation, MM_SCALE_MODE_A, scale_mode[0]);
	OPERATION(operation, MM_SCALE_MODE_B, scale_mode[1]);
	if (epilogue & EPILOGUE_BIAS)
		OPERATION(operation, MM_BIAS, p->bias);
	if (!OPERATION(operation, MM_SCALE, p->scale_type))
		p->scale_type = product_scale_type(compute, p->d.type);
	p->op_a = op_a;
	p->op_b = op_b;
	p->bias_type = bias_type < 0 ? p->d.type : bias_type;
	p->after = (epilogue & EPILOGUE_RELU ? AFTER_RELU : 0)
		| (epilogue & EPILOGUE_GELU ? AFTER_GELU : 0);
	return !(epilogue & ~EPILOGUES)
		&& !amax && !scale_c && !scale_mode[0] && !scale_mode[1] && mode->on_device <= 1
		&& !(element_is_complex(p->d.type) && epilogue != EPILOGUE_DEFAULT);
}

CALL(int, cublasLtMatmul, void *handle, const void *operation, const void *alpha, const void *a,
	const void *a_layout, const void *b, const void *b_layout, const void *beta, const void *c,
	const void *c_layout, void *d, const void *d_layout, const void *algorithm, void *workspace,
	size_t bytes, void *stream)
{
	struct product p = { .call = { .name = __func__, .stream = stream } };
	struct blas mode = { 0 };
	int batch[4];

	if (!is_handle(handle))
		return BLAS_NOT_INITIALIZED;
	if (!alpha || !beta)
		return BLAS_INVALID_VALUE;
	OPERATION(operation, MM_POINTER_MODE, mode.on_device);
	if (!read_layout(&p.a, &batch[0], a, a_layout) || !read_layout(&p.b, &batch[1], b, b_layout)
		|| !read_layout(&p.c, &batch[2], c, c_layout)
		|| !read_layout(&p.d, &batch[3], d, d_layout)
		|| !read_operation(&p, &mode, operation)) {
		library_refused(__func__, "with this layout, scaling or epilogue");
		return BLAS_NOT_SUPPORTED;
	}
	p.batch = batch[3];
	p.alpha = scalar_of(&mode, alpha, element_bytes(p.scale_type));
	p.beta = scalar_of(&mode, beta, element_bytes(p.scale_type));
	return product_issue(&p);
}

struct heuristic {
	uint64_t algorithm[8];
	size_t workspace;
	int state;
	float waves;
	int reserved[4];
};

/* There is one algorithm; which it is does not matter to cublasLtMatmul(). */
CALL(int, cublasLtMatmulAlgoGetHeuristic, void *handle, const void *operation, const void *a,
	const void *b, const void *c, const void *d, const void *preference, int wanted,
	struct heuristic *result, int *found)
{
	if (!is_handle(handle))
		return BLAS_NOT_INITIALIZED;
	if (!result || !found || wanted < 1)
		return BLAS_INVALID_VALUE;
	result[0] = (struct heuristic){ .waves = 1 };
	*found = 1;
	return BLAS_SUCCESS;
}
