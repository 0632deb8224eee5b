/* operations: what the program does with streams, for libconsan/order: the operations that it issues,
 * the edges that its calls make, and the bytes that copies, fills and kernels access. The handlers of
 * the driver's calls are in operation_calls.c.
 *
 * Accesses are reported in the order in which the operations were issued: an operation that may still
 * run holds back those that were issued after it, so that none is reported after one that it is
 * ordered before. */
#ifndef CONSAN_INSTRUMENT_INJECT_OPERATIONS_H
#define CONSAN_INSTRUMENT_INJECT_OPERATIONS_H

#include "internal.h"

/* The session's happens-before. */
struct order *operations_order(void);

/* ---- streams ---- */

/* The line of a stream, in the current context: opened when it is first asked for. */
order_line operations_line(CUstream s);
void operations_stream_ended(CUstream s);
/* The line (ORDER_NO_LINE: each one) is after all that was issued until now, whatever its stream. */
void operations_join_all(order_line line);
/* NULL: the current context. */
CUdevice operations_context_device(CUcontext c);

/* Can kernels and host code exchange data: does pinned or managed memory exist? */
bool operations_host_has_memory(void);

/* ---- operations ---- */

/* The program issues an operation by a call of the driver; the report has the name of the runtime's,
 * if that made it. kernel: mangled; NULL: it is no launch. The caller owns a reference. */
struct order_op *operations_issue(CUstream s, const char *call, const char *kernel);
/* The same for the node of a graph's launch; see order_issue_node(). node: "memcpy node"; stack: that of
 * the launch. */
struct order_op *operations_issue_node(const struct order_op *start, struct order_op *const *after,
	size_t nafter, const char *node, const char *kernel, uint32_t stack);

/* The call stack of the current call, 0 if no operations are compared. launch: its Python frames are
 * those of consan_python_launches(); else the caller holds no lock. */
uint32_t operations_stack(bool launch);

/* The accesses of an operation that are not reported yet. */
struct operation;
/* It holds back the accesses of later operations until operations_close(). Takes over the reference. */
struct operation *operations_open(struct order_op *op);
void operations_accessed(struct operation *o, const struct order_range *range, size_t n);
/* It has no more accesses. NULL is fine. */
void operations_close(struct operation *o);

/* All functions below that get an operation take over the reference to it.
 * Rows of bytes; addr 0: memory that has no addresses (a CUDA array). */
struct operations_area {
	uint64_t addr;
	size_t pitch, slice;       /* bytes from a row, or a slice of rows, to the next one */
	size_t width, height, depth; /* bytes, rows, slices */
};
struct operations_area operations_row(uint64_t addr, size_t bytes);
void operations_copy(struct order_op *op, const struct operations_area *to,
	const struct operations_area *from);
/* A copy of a batch that may read its source out of the order of the stream; during_call: before the
 * call `call` returns. */
void operations_copy_apart(CUstream s, struct order_op *op, const char *call, const struct operations_area *to,
	const struct operations_area *from, bool during_call);
void operations_fill(struct order_op *op, const struct operations_area *at);
/* A stream memory operation. */
void operations_value(struct order_op *op, uint64_t addr, unsigned bytes, bool write);
enum order_memory operations_memory(uint64_t addr);
void operations_copy_areas(const CUDA_MEMCPY3D *c, struct operations_area *to,
	struct operations_area *from);
struct operations_area operations_fill_area(const CUDA_MEMSET_NODE_PARAMS *f);

/* A stream-ordered allocation and release, and memory that has a new owner without a race. */
void operations_alloc(struct order_op *op, uint64_t addr, uint64_t bytes);
void operations_free(struct order_op *op, uint64_t addr);
void operations_forget(uint64_t addr, uint64_t bytes);
void operations_shared_with_host(void); /* such memory is made that the host can access */
/* The memory around an address that other operations can name. */
bool operations_find(uint64_t addr, uint64_t *from, uint64_t *bytes);

/* The event is recorded in the stream. */
void operations_recorded(CUevent event, CUstream s);
/* The node of a graph's launch records the event, or waits for it. */
void operations_node_recorded(CUevent event, const struct order_op *op);
void operations_node_waits(struct order_op *op, CUevent event);

/* Operations whose accesses are not known, by a call or in a graph: adds a note to the report. */
void operations_not_followed(const char *what);

#endif
