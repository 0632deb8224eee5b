/* jump: replaces the first bytes of functions by jumps. A jump of 5 bytes reaches 2 GiB, so it leads to
 * an island, memory near the function, with a jump to any address; where no memory is free within
 * reach, that jump is written into the function itself. */
#ifndef CONSAN_CUDA_JUMP_H
#define CONSAN_CUDA_JUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct island { uint8_t *at; size_t used; };

/* Jumps of functions that are near each other; zero it to begin. */
struct jumps {
	struct island island;
	bool nowhere;              /* no memory is free within reach */
};

/* size: bytes of the function; 0: not known. False: it is too short, or cannot be written. */
bool jump_write(struct jumps *j, uint8_t *function, uint64_t size, void *to);
void jumps_end(struct jumps *j);

#endif
