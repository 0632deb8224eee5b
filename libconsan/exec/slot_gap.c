/* slot_gap: in builds with ASan, bytes behind each slot that nothing may access. So ASan detects a handler that
 * accesses a slot as wider than it is. */
#include "internal.h"

#if SLOT_GAP
#include <sanitizer/asan_interface.h>

struct slot_range {
	struct slot_range *next;
	uint32_t at, bytes;
};

void slot_gap_add(struct exec_kernel *k, uint32_t at, uint32_t bytes)
{
	struct slot_range *s = arena_alloc(&k->arena, sizeof *s);

	*s = (struct slot_range){ k->slots, at, bytes };
	k->slots = s;
}

void slot_gap_poison(const struct exec_kernel *k, const unsigned char *r)
{
	/* not before: a source that an operation does not have is slot 0 */
	ASAN_POISON_MEMORY_REGION(r + SLOT_FIRST, k->reg_bytes - SLOT_FIRST);
	for (const struct slot_range *s = k->slots; s; s = s->next)
		ASAN_UNPOISON_MEMORY_REGION(r + s->at, s->bytes);
}
#endif
