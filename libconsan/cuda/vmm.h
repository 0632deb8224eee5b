/* vmm: virtual memory management. Memory of a device is a file without a name, which is mapped into
 * reserved addresses and which other processes can map; a multicast object has no memory. */
#ifndef CONSAN_CUDA_VMM_H
#define CONSAN_CUDA_VMM_H

#include "internal.h"

enum { VMM_PAGE = 2 << 20 };   /* the granularity of all sizes and offsets, as on GPUs */

struct binding { size_t from, bytes, offset; struct memory *memory; };
/* What a CUmemGenericAllocationHandle names. It lives while it is referred to: by handles, mappings
 * and bindings. */
struct memory {
	unsigned refs;             /* in all */
	unsigned handles;          /* of them, handles */
	size_t bytes;
	int device;
	int fd;                    /* the file; -1: a multicast object */
	unsigned handle_types;     /* that it may be exported to */
	struct ipc_log *log;       /* behind it in the file: other processes may have it (ipc_race.c); or NULL */
	char *base;                /* a mapping of our own, for bindings; NULL: none yet */
	/* a multicast object */
	unsigned devices, added;   /* their number; those that were added, by bit */
	int token;                 /* an empty file that stands for it where it is exported; 0: not yet */
	VEC(struct binding) bound;
};
struct mapping {
	char *at;
	size_t bytes, offset;
	struct memory *memory;
	struct exec_access *access;
};

void vmm_lock(void);
void vmm_unlock(void);
/* ---- with the lock ---- */
struct memory *vmm_memory(CUmemGenericAllocationHandle handle); /* NULL: no such handle */
/* Each object is known here until it is released. */
void vmm_add(struct memory *m);
CUmemGenericAllocationHandle vmm_handle(struct memory *m);      /* one more */
void vmm_release(struct memory *m);                             /* one reference less */
struct mapping *vmm_mapping(const void *at);                    /* that contains at; or NULL */
/* The address of memory in its first mapping by the program that has all of these bytes, else in one
 * of our own; 0: out of address space. */
uint64_t vmm_address(struct memory *m, size_t offset, size_t bytes);
/* Shows kernels a mapping as it is now. */
void vmm_show(struct mapping *map);
/* Mappings of multicast objects have changed: of this memory, or of this object. */
void vmm_refresh(const struct memory *m);

#endif
