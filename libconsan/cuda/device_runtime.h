/* device_runtime: grids that kernels launch (CUDA Dynamic Parallelism), and what else they ask of the
 * device runtime.
 *
 * A grid that a kernel launches is a task inside of that of its launch (queue_add_inside()), so that the
 * kernel's task is done when all of them are. It may run from the launch on: while the launching grid is
 * suspended, or when it has ended. */
#ifndef CONSAN_CUDA_DEVICE_RUNTIME_H
#define CONSAN_CUDA_DEVICE_RUNTIME_H

#include "queue.h"

/* The task has run, and all other grids that it launched are done: adds the next one that it launched into
 * cudaStreamTailLaunch. False: none. Under the lock of the queue. */
bool device_grid_last(struct task *t);
void device_grid_free(struct task *t);
/* op is to be added so; takes ownership of its contents. */
void device_grid_add_last(struct task *t, struct op *op);

/* Launches that device_grid_add_last() has got and that have not begun; `of` (or NULL): those of this graph
 * only. */
size_t device_grid_waiting(const struct task *t, const struct graph *of);

/* ---- device_copy.c ---- */

/* The launch that a copy or fill by a kernel is; sets c->stream. Returns an error. */
int device_copy(struct exec_call *c, int device, struct launch *l);

/* ---- device_graph.c ---- */

/* The task of a host's launch has begun: adds the graph. */
bool device_graph_begin(struct task *t);
/* cudaGraphLaunch() by a thread of the kernel t; not under the lock. */
int device_graph_launch(struct task *t, struct exec_call *c);
/* The handle of the graph that can be launched by kernels and that t is part of; 0: none. */
uint64_t device_graph_current(const struct task *t);

#endif
