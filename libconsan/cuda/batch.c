/* batch: batches of copies. "The batch as a whole executes in stream order but copies within a batch are not
 * guaranteed to execute in any specific order" (CUDA Runtime API): the copies are tasks side by side, as the
 * nodes of a graph without edges are. For libconsan/order, those that may depend on another one are operations
 * of their own, and all others are one: batches may have thousands of copies. A source that is read out of the
 * order of the stream is read by an operation of its own. */
#include "array.h"
#include "queue.h"

#include <stdlib.h>
#include <string.h>

struct batch {
	struct stream *stream;
	struct order_op *start;      /* for libconsan/order: the whole batch */
	struct task *first;
	VEC(struct task *) task;     /* references, as those of order */
	VEC(struct order_op *) order; /* of each copy */
	bool waits;                  /* a copy to pageable memory: the call returns when it is done */
};

/* ---- copies that may depend on others ---- */

struct bytes { uintptr_t from, to; size_t copy; bool write; };

static int by_address(const void *a, const void *b)
{
	const struct bytes *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

static struct bytes bytes_of(const struct copy *c, size_t copy, bool write)
{
	const uintptr_t at = (uintptr_t)(write ? c->dst : c->src);
	const size_t pitch = write ? c->dst_pitch : c->src_pitch, slice = write ? c->dst_slice : c->src_slice;

	return (struct bytes){ at, at + (c->depth - 1) * slice + (c->height - 1) * pitch + c->width, copy, write };
}

/* Which copies may write what one that begins at a lower address accesses, or read what that one writes. */
static bool *find_dependent(const struct op *op, size_t n)
{
	struct bytes *all = base_alloc(2 * n * sizeof *all);
	bool *dependent = base_alloc(n * sizeof *dependent);
	uintptr_t written = 0, accessed = 0;
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (!copy_bytes(&op[i].copy))
			continue;
		all[k++] = bytes_of(&op[i].copy, i, false);
		all[k++] = bytes_of(&op[i].copy, i, true);
	}
	qsort(all, k, sizeof *all, by_address);
	for (size_t i = 0; i < k; i++) {
		const struct bytes *b = &all[i];

		dependent[b->copy] |= b->from < (b->write ? accessed : written);
		if (b->to > accessed)
			accessed = b->to;
		if (b->write && b->to > written)
			written = b->to;
	}
	free(all);
	return dependent;
}

static void issue_copies(struct batch *b, const struct op *op, size_t n)
{
	bool *dependent = find_dependent(op, n);
	struct order_op *others = NULL;

	for (size_t i = 0; i < n; i++) {
		if (dependent[i])
			vec_push(&b->order, hb_issue_copy(b->start, &op[i]));
		else if (others)
			vec_push(&b->order, order_op_get(hb(), others));
		else
			vec_push(&b->order, others = hb_issue_copy(b->start, &op[i]));
	}
	free(dependent);
	order_join_nodes(hb(), b->start, b->order.at, b->order.n);
}

/* ---- the batch ---- */

static bool out_of_order(int order)
{
	return order != cudaMemcpySrcAccessOrderStream;
}

/* What the copy has to be when the call returns. */
static void prepare(struct batch *b, struct op *op, int order)
{
	struct copy *c = &op->copy;
	const bool during = order == cudaMemcpySrcAccessOrderDuringApiCall;
	const bool to_host = c->dst && mem_pageable(c->dst);

	if (!copy_bytes(c))
		return;
	b->waits |= to_host;
	c->read_apart = out_of_order(order);
	if (c->read_apart)
		hb_read_apart(b->stream, op, during);
	if (!during && (!mem_pageable(c->src) || to_host))
		return;
	guard_suspend();
	copy_stage(c);
	guard_resume();
}

/* Under the lock of the queue. */
static void add(struct batch *b, struct op *op)
{
	struct task *t = queue_add_after(b->stream, op, NULL, &b->first, 1);

	t->order = order_op_get(hb(), b->order.at[b->task.n]);
	vec_push(&b->task, t);
}

/* Returns a reference to a task after all copies, which ends the batch for its stream. */
static struct task *add_end(struct batch *b)
{
	struct op none = { .kind = OP_EMPTY };
	struct task *last;

	vec_push(&b->task, task_get(b->first));
	last = queue_add_after(b->stream, &none, NULL, b->task.at, b->task.n);
	task_put(b->stream->tail);
	b->stream->tail = task_get(last);
	return last;
}

static void returned(struct batch *b, const struct op *op, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hb_returned(b->order.at[i], &op[i], false);
	guard_update();
	for (size_t i = 0; i < n; i++)
		order_op_put(hb(), b->order.at[i]);
	order_op_put(hb(), b->start);
	vec_free(&b->order);
}

static int enqueue(struct stream *s, struct op *op, const int *order, size_t n)
{
	struct batch b = { .stream = s };
	struct op begin = { .kind = OP_EMPTY };
	struct op *issued = base_alloc(n * sizeof *issued);
	struct task *last;
	int error;

	memcpy(issued, op, n * sizeof *issued); /* what they name, not what they own */
	hb_begin();
	for (size_t i = 0; i < n; i++)
		prepare(&b, &op[i], order[i]);
	b.start = hb_issue(s, &begin);
	issue_copies(&b, issued, n);
	pthread_mutex_lock(&queue.lock);
	b.first = queue_add(s, &begin, NULL, NULL);
	for (size_t i = 0; i < n; i++)
		add(&b, &op[i]);
	last = add_end(&b);
	for (size_t i = 0; i < b.task.n; i++)
		task_put(b.task.at[i]);
	task_put(b.first);
	vec_free(&b.task);
	pthread_mutex_unlock(&queue.lock);
	s->launched = false;
	error = engine_issued();
	if (b.waits)
		error = engine_wait(last, WAIT_DONE);
	returned(&b, issued, n);
	pthread_mutex_lock(&queue.lock);
	task_put(last);
	pthread_mutex_unlock(&queue.lock);
	free(issued);
	return error;
}

/* Nodes side by side: the next one that is captured comes after all of them. */
static int capture(struct stream *s, struct op *op, size_t n)
{
	VEC(struct node *) all = { 0 };
	int error = 0;

	for (size_t i = 0; i < n && !error; i++) {
		struct node *node;

		error = graph_add(s->capture, &op[i], (const void *const *)s->front.at, s->front.n, &node);
		if (!error)
			vec_push(&all, node);
	}
	if (error) {
		vec_free(&all);
		return error;
	}
	vec_free(&s->front);
	memcpy(&s->front, &all, sizeof all);
	return 0;
}

/* The copies, which were checked. */
static int issue(const void *handle, const struct copy *copy, const int *order, size_t n)
{
	struct stream *s = stream_of(handle);
	struct op *op;
	int error;

	if (!s)
		return cudaErrorInvalidResourceHandle;
	if (s == stream_legacy(s->device)) /* "Must not be legacy NULL stream" */
		return cudaErrorInvalidValue;
	op = base_alloc(n * sizeof *op);
	for (size_t i = 0; i < n; i++)
		op[i] = (struct op){ .kind = OP_COPY, .copy = copy[i] };
	error = s->capture ? capture(s, op, n) : enqueue(s, op, order, n);
	free(op);
	return error;
}

/* ---- rows ---- */

static bool valid_order(int order)
{
	return order >= cudaMemcpySrcAccessOrderStream && order <= cudaMemcpySrcAccessOrderAny;
}

/* Sets the order of each copy. "Each memcpy operation in the batch must have a valid cudaMemcpyAttributes
 * corresponding to it". */
static int orders_of(const struct cudaMemcpyAttributes *a, const size_t *index, size_t na, int *order, size_t n)
{
	if (!a || !index || !na || na > n || index[0])
		return cudaErrorInvalidValue;
	for (size_t k = 0; k < na; k++) {
		const size_t end = k + 1 < na ? index[k + 1] : n;

		if (index[k] >= end || end > n || !valid_order(a[k].srcAccessOrder))
			return cudaErrorInvalidValue;
		for (size_t i = index[k]; i < end; i++)
			order[i] = (int)a[k].srcAccessOrder;
	}
	return 0;
}

/* error: of the checks of these copies. Frees them and their orders. */
static int issue_checked(const void *stream, struct copy *copy, int *order, size_t n, int error)
{
	if (!error)
		error = issue(stream, copy, order, n);
	free(copy);
	free(order);
	return error;
}

/* *failed: the copy that is wrong, SIZE_MAX: none in particular. */
static int copy_rows(void *const *dst, const void *const *src, const size_t *bytes, size_t n,
	const struct cudaMemcpyAttributes *a, const size_t *index, size_t na, const void *stream, size_t *failed)
{
	struct copy *copy;
	int *order, error;

	*failed = SIZE_MAX;
	if (!dst || !src || !bytes || !n)
		return cudaErrorInvalidValue;
	copy = base_alloc(n * sizeof *copy);
	order = base_alloc(n * sizeof *order);
	error = orders_of(a, index, na, order, n);
	for (size_t i = 0; i < n && !error; i++) {
		copy[i] = copy_line(dst[i], src[i], bytes[i], cudaMemcpyDefault);
		error = copy_check(&copy[i]);
		if (error)
			*failed = i;
	}
	return issue_checked(stream, copy, order, n, error);
}

cudaError_t cudaMemcpyBatchAsync(void *const *dst, const void *const *src, const size_t *bytes,
	size_t n, struct cudaMemcpyAttributes *attributes, size_t *index, size_t nattributes,
	cudaStream_t stream)
{
	size_t failed;

	return rt(copy_rows(dst, src, bytes, n, attributes, index, nattributes, stream, &failed));
}

_Static_assert(sizeof(CUmemcpyAttributes) == sizeof(struct cudaMemcpyAttributes)
	&& (int)CU_MEMCPY_SRC_ACCESS_ORDER_ANY == (int)cudaMemcpySrcAccessOrderAny, "both APIs have the same layout");

CUresult cuMemcpyBatchAsync(CUdeviceptr *dst, CUdeviceptr *src, size_t *bytes, size_t n,
	CUmemcpyAttributes *attributes, size_t *index, size_t nattributes, size_t *failed, CUstream stream)
{
	size_t wrong;
	int error = drv_ready();

	if (error)
		return drv(error);
	error = copy_rows((void *const *)dst, (const void *const *)src, bytes, n,
		(const struct cudaMemcpyAttributes *)attributes, index, nattributes, stream, &wrong);
	if (failed)
		*failed = wrong;
	return drv(error);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dst, CUdeviceptr *src, size_t *bytes, size_t n,
	CUmemcpyAttributes *attributes, size_t *index, size_t nattributes, CUstream stream)
{
	return cuMemcpyBatchAsync(dst, src, bytes, n, attributes, index, nattributes, NULL, stream);
}

/* ---- boxes, also of arrays ---- */

/* Packed if no lengths are given; element: bytes. */
static int batch_side(const struct cudaMemcpy3DOperand *o, struct cudaExtent e, size_t element, struct place *to)
{
	const size_t row = o->op.ptr.rowLength ? o->op.ptr.rowLength : e.width;
	const size_t rows = o->op.ptr.layerHeight ? o->op.ptr.layerHeight : e.height;
	const struct cudaOffset3D at = o->op.array.offset;

	if (o->type == cudaMemcpyOperandTypeArray)
		return array_place(o->op.array.array, at.x * element, at.y, at.z, e.width * element, e.height, e.depth,
			to);
	if (o->type != cudaMemcpyOperandTypePointer || row < e.width || rows < e.height)
		return cudaErrorInvalidValue;
	*to = (struct place){ o->op.ptr.ptr, row * element, rows * row * element };
	return 0;
}

static int batch_copy(const struct cudaMemcpy3DBatchOp *b, struct copy *c)
{
	const struct array *to = b->dst.type == cudaMemcpyOperandTypeArray ? array_of(b->dst.op.array.array) : NULL;
	const struct array *from = b->src.type == cudaMemcpyOperandTypeArray ? array_of(b->src.op.array.array) : NULL;
	const size_t element = to ? array_element(to) : from ? array_element(from) : 1;
	struct place dst, src;
	int error;

	if (!b->extent.width || !b->extent.height || !b->extent.depth || (from && array_element(from) != element)
			|| !valid_order(b->srcAccessOrder))
		return cudaErrorInvalidValue;
	error = batch_side(&b->dst, b->extent, element, &dst);
	if (!error)
		error = batch_side(&b->src, b->extent, element, &src);
	if (error)
		return error;
	*c = (struct copy){ .dst = dst.at, .src = src.at, .dst_pitch = dst.pitch, .src_pitch = src.pitch,
		.dst_slice = dst.slice, .src_slice = src.slice, .width = b->extent.width * element,
		.height = b->extent.height, .depth = b->extent.depth, .kind = cudaMemcpyDefault };
	return 0;
}

static int boxes(struct cudaMemcpy3DBatchOp *list, size_t n, unsigned long long flags, const void *stream,
	size_t *failed)
{
	struct copy *copy;
	int *order, error = 0;

	*failed = SIZE_MAX;
	if (!list || !n || flags)
		return cudaErrorInvalidValue;
	copy = base_alloc(n * sizeof *copy);
	order = base_alloc(n * sizeof *order);
	for (size_t i = 0; i < n && !error; i++) {
		order[i] = (int)list[i].srcAccessOrder;
		error = batch_copy(&list[i], &copy[i]);
		if (!error)
			error = copy_check(&copy[i]);
		if (error)
			*failed = i;
	}
	return issue_checked(stream, copy, order, n, error);
}

cudaError_t cudaMemcpy3DBatchAsync(size_t n, struct cudaMemcpy3DBatchOp *list, unsigned long long flags,
	cudaStream_t stream)
{
	size_t failed;

	return rt(boxes(list, n, flags, stream, &failed));
}

_Static_assert(sizeof(CUDA_MEMCPY3D_BATCH_OP) == sizeof(struct cudaMemcpy3DBatchOp)
	&& (int)CU_MEMCPY_OPERAND_TYPE_ARRAY == (int)cudaMemcpyOperandTypeArray, "both APIs have the same layout");

CUresult cuMemcpy3DBatchAsync(size_t n, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags,
	CUstream stream)
{
	size_t wrong;
	int error = drv_ready();

	if (error)
		return drv(error);
	error = boxes((struct cudaMemcpy3DBatchOp *)list, n, flags, stream, &wrong);
	if (failed)
		*failed = wrong;
	return drv(error);
}

CUresult cuMemcpy3DBatchAsync_v2(size_t n, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream stream)
{
	return cuMemcpy3DBatchAsync(n, list, NULL, flags, stream);
}
