/* tcgen05: tensor memory and the asynchronous operations on it (PTX ISA, "Tensorcore 5th Generation
 * Family Instructions"). Kernels with such instructions run without a checker so far. */
#include "internal.h"

#define UNCHECKED(member) \
void on_##member(struct cluster *c, const struct event *e) \
{ \
	(void)c; \
	(void)e; \
}
UNCHECKED(tmem_alloc)
UNCHECKED(tmem_dealloc)
UNCHECKED(tmem_relinquish)
UNCHECKED(tmem_access)
UNCHECKED(tmem_wait)
UNCHECKED(tcgen05_fence)
UNCHECKED(tcgen05)
UNCHECKED(tcgen05_commit)
