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

#endif
