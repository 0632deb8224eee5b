/* access: what the instruction of a fault does to memory, by its machine code. */
#ifndef CONSAN_CUDA_ACCESS_H
#define CONSAN_CUDA_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

struct host_access {
	size_t bytes;            /* 1: not known */
	bool reads, writes;      /* both: a read-modify-write */
};
/* may_read: the page may be read, so that the fault is one of a write. */
struct host_access access_of_fault(const ucontext_t *u, bool may_read);
/* The thread traps behind the instruction, when it goes on. False: it cannot. */
bool access_trap(ucontext_t *u, bool on);

#endif
