/* number_set: a growing set of 64-bit numbers, such as signatures. Zeroed it is empty. */
#ifndef CONSAN_NUMBER_SET_H
#define CONSAN_NUMBER_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct number_set {
	uint64_t *at;              /* a hash table of cap entries, 0: empty; cap is a power of two */
	size_t n, cap;
};

/* number: not 0. The low bits should be random, as the hash is the number itself. */
bool number_set_has(const struct number_set *s, uint64_t number);
void number_set_add(struct number_set *s, uint64_t number);
void number_set_free(struct number_set *s);

#endif
