/* jump: see jump.h. */
#include "jump.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	JUMP = 5,      /* bytes at the start of a function: jmp rel32 to its slot of an island */
	ABSOLUTE = 14, /* bytes of jmp *0(%rip) and the address */
	SLOT = 16,     /* bytes of a slot, which has such a jump */
	ISLAND = 4096, /* bytes of an island */
};

/* Can the function jump to the island's next slot? */
static bool reaches(const struct island *island, const uint8_t *function)
{
	const int64_t distance = (int64_t)((uintptr_t)island->at + island->used - ((uintptr_t)function + JUMP));

	return island->at && island->used + SLOT <= ISLAND && (int32_t)distance == distance;
}

/* The free address nearest to `near` for a mapping of so many bytes, below it if one is in reach:
 * above the program is its heap, which grows. 0: all within reach is taken. */
static uint64_t free_address(uint64_t near, size_t bytes)
{
	const uint64_t reach = UINT64_C(0x7ff00000), lowest = 1 << 16;
	uint64_t from, to, end = lowest, below = 0, above = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t size = 0;

	while (maps && getline(&line, &size, maps) > 0) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &from, &to) != 2)
			continue;
		if (from >= end && from - end >= bytes) {
			if (from <= near && near - (from - bytes) < reach)
				below = from - bytes;
			if (from > near && !above && end + bytes - near < reach)
				above = end;
		}
		end = to;
	}
	if (maps)
		fclose(maps);
	free(line);
	return below ? below : above;
}

/* Maps memory within reach of a rel32 jump from the function. */
static bool new_island(struct island *island, const uint8_t *function)
{
	uint64_t at;
	void *page;

	/* another thread may take the address first */
	for (unsigned tries = 0; tries < 8; tries++) {
		at = free_address((uintptr_t)function, ISLAND);
		page = at ? mmap((void *)at, ISLAND, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) : MAP_FAILED;
		if (at && page == (void *)at) {
			*island = (struct island){ page, 0 };
			return true;
		}
		if (page != MAP_FAILED)
			munmap(page, ISLAND);
	}
	return false;
}

/* Writes jmp *0(%rip) and the address. */
static void write_absolute(uint8_t *at, void *to)
{
	static const uint8_t jump[6] = { 0xff, 0x25, 0, 0, 0, 0 };

	memcpy(at, jump, sizeof jump);
	memcpy(at + sizeof jump, &to, sizeof to);
}

/* Replaces the function's beginning by a jump. island: NULL, no memory is within reach: then `to` is
 * written into the function. ThreadSanitizer has no shadow memory for writes to program text. */
__attribute__((no_sanitize("thread")))
static bool patch(uint8_t *function, void *to, struct island *island)
{
	uintptr_t page = (uintptr_t)function & ~UINT64_C(4095);
	size_t n = (uintptr_t)function + (island ? JUMP : ABSOLUTE) - page;
	uint8_t *slot;
	int32_t near;

	/* stays executable: the dynamic linker itself may run code of this page */
	if (mprotect((void *)page, n, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	if (island) {
		slot = island->at + island->used;
		near = (int32_t)(slot - (function + JUMP));
		write_absolute(slot, to);
		island->used += SLOT;
		function[0] = 0xe9;
		memcpy(function + 1, &near, sizeof near);
	} else {
		write_absolute(function, to);
	}
	return !mprotect((void *)page, n, PROT_READ | PROT_EXEC);
}

/* Can a jump of n bytes be written? Functions are aligned to 16, so that padding follows a short one. */
static bool fits_jump(const uint8_t *function, uint64_t size, size_t n)
{
	return size >= n || (uintptr_t)function % 16 == 0;
}

bool jump_write(struct jumps *j, uint8_t *function, uint64_t size, void *to)
{
	bool near;

	if (!fits_jump(function, size, JUMP))
		return false;
	near = reaches(&j->island, function);
	if (!near && !j->nowhere) {
		jumps_end(j);
		near = new_island(&j->island, function);
		j->nowhere = !near;
	}
	if (near)
		return patch(function, to, &j->island);
	return fits_jump(function, size, ABSOLUTE) && patch(function, to, NULL);
}

void jumps_end(struct jumps *j)
{
	if (j->island.at)
		mprotect(j->island.at, ISLAND, PROT_READ | PROT_EXEC);
	j->island.at = NULL;
}
