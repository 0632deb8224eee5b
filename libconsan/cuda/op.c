/* op: the operations that streams and graphs have. */
#include "internal.h"
#include "library.h"

#include <stdlib.h>
#include <string.h>

/* ---- stream memory operations ---- */

int value_check(const struct value *v)
{
	if (!v->at || (uintptr_t)v->at % v->bytes)
		return cudaErrorInvalidValue;
	return mem_check(v->at, v->bytes);
}

/* A 64-bit value, or a 32-bit one that is extended by its sign, so that differences are those of 32
 * bits. */
static uint64_t value_now(const struct value *v)
{
	uint64_t wide = 0;
	int32_t narrow = 0;

	guard_peek(v->at, v->bytes, v->bytes == 8 ? (void *)&wide : (void *)&narrow);
	return v->bytes == 8 ? wide : (uint64_t)(int64_t)narrow;
}

static void value_write(const struct value *v)
{
	if (v->bytes == 8)
		__atomic_store_n((uint64_t *)v->at, v->value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)v->at, (uint32_t)v->value, __ATOMIC_RELEASE);
}

/* "CUstreamWaitValue_flags" of the CUDA Driver API */
static bool value_reached(const struct value *v)
{
	const uint64_t all = v->bytes == 8 ? UINT64_MAX : UINT32_MAX, now = value_now(v);

	switch (v->condition) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return v->bytes == 8 ? (int64_t)(now - v->value) >= 0
			: (int32_t)((uint32_t)now - (uint32_t)v->value) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return ((now ^ v->value) & all) == 0;
	case CU_STREAM_WAIT_VALUE_AND:
		return now & v->value & all;
	}
	return ~(now | v->value) & all; /* CU_STREAM_WAIT_VALUE_NOR */
}

bool op_ready(const struct op *op)
{
	return op->kind != OP_WAIT || value_reached(&op->value);
}

int op_run(const struct op *op, struct order_op *order)
{
	switch (op->kind) {
	case OP_EMPTY:
	case OP_RECORD:
	case OP_EVENT_RECORD:
	case OP_EVENT_WAIT:
	case OP_ALLOC:
	case OP_RELEASE:
	case OP_GRAPH:     /* inside another task: its nodes follow (inside.c) */
	case OP_CONDITION:
	case OP_ENVIRONMENT:
		return 0;
	case OP_DEFAULTS:
		conditions_assign(op->defaults);
		return 0;
	case OP_WRITE:
		value_write(&op->value);
		hb_done(order, op);
		return 0;
	case OP_WAIT:
		hb_done(order, op);
		return op_ready(op) ? 0 : cudaErrorLaunchTimeout; /* it was part of a deadlock */
	case OP_FREE:
		if (!hb_free(order, op->at))
			mem_release(op->at);
		return 0;
	case OP_LAUNCH:
		return launch_run(&op->launch, order);
	case OP_COPY:
		copy_run(&op->copy);
		hb_done(order, op);
		return 0;
	case OP_FILL:
		fill_run(&op->fill);
		hb_done(order, op);
		return 0;
	case OP_HOST:
		if (order)
			order_host_runs(hb(), order);
		ipc_race_known(false);
		if (order && !op->host.ours)
			guard_function();
		op->host.call(op->host.user);
		return 0;
	case OP_LIBRARY:
		return library_run(op->library, order);
	}
	return cudaErrorUnknown;
}

struct op op_dup(const struct op *op)
{
	struct op copy = *op;

	if (op->kind == OP_LAUNCH) {
		size_t n = op->launch.func->info.param_bytes + 1;

		copy.launch.params = base_alloc(n);
		memcpy(copy.launch.params, op->launch.params, n);
		copy.launch.conditions = NULL;
	} else if (op->kind == OP_GRAPH) {
		copy.graph = graph_dup(op->graph, false);
	} else if (op->kind == OP_LIBRARY) {
		library_get(op->library);
	} else if (op->kind == OP_CONDITION) {
		copy.condition = condition_dup(&op->condition);
	}
	return copy;
}

size_t op_bytes(const struct op *op)
{
	return op->kind == OP_COPY && op->copy.staged ? copy_bytes(&op->copy) : 0;
}

void op_free(struct op *op)
{
	if (op->kind == OP_LAUNCH) {
		free(op->launch.params);
		conditions_put(op->launch.conditions);
	} else if (op->kind == OP_COPY) {
		free(op->copy.staged);
	} else if (op->kind == OP_GRAPH || (op->kind == OP_ENVIRONMENT && op->graph)) {
		graph_free(op->graph);
	} else if (op->kind == OP_LIBRARY) {
		library_put(op->library);
	} else if (op->kind == OP_CONDITION) {
		condition_free(&op->condition);
	} else if (op->kind == OP_DEFAULTS) {
		conditions_put(op->defaults);
	}
	op->kind = OP_EMPTY;
}
