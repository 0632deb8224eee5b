/* number_map: a growing map from 64-bit numbers to 64-bit numbers. Zeroed it is empty. */
#ifndef CONSAN_NUMBER_MAP_H
#define CONSAN_NUMBER_MAP_H

#include <stddef.h>
#include <stdint.h>

struct number_map {
	struct { uint64_t key, value; } *at; /* a hash table of cap entries, key 0: empty */
	size_t n, cap;             /* cap is a power of two */
};

uint64_t number_map_get(const struct number_map *m, uint64_t key); /* 0: none */
/* key: not 0. Replaces an earlier value. */
void number_map_put(struct number_map *m, uint64_t key, uint64_t value);
void number_map_free(struct number_map *m); /* it may be used again */

#endif
