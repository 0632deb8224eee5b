/* device_memory: memory of the emulated device with given content. */
#ifndef CONSAN_TESTS_DEVICE_MEMORY_H
#define CONSAN_TESTS_DEVICE_MEMORY_H

#include <criterion/criterion.h>
#include <string.h>

#include "libconsan/session/session.h"

/* from NULL: zero */
static inline void *device_memory(struct consan *c, const void *from, size_t bytes)
{
	void *to = consan_malloc(c, bytes, CONSAN_MEM_DEVICE);

	cr_assert_not_null(to);
	memset(to, 0, bytes);
	if (from)
		memcpy(to, from, bytes);
	return to;
}

#endif
