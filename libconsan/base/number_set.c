/* number_set: see number_set.h. Open addressing, at most half full. */
#include "number_set.h"

#include "base.h"

#include <stdlib.h>

/* The entry that holds the number, or else the empty one where it belongs. */
static uint64_t *entry_of(const struct number_set *s, uint64_t number)
{
	size_t k = number & (s->cap - 1);

	while (s->at[k] && s->at[k] != number)
		k = (k + 1) & (s->cap - 1);
	return &s->at[k];
}

bool number_set_has(const struct number_set *s, uint64_t number)
{
	return s->cap && *entry_of(s, number);
}

static void grow(struct number_set *s)
{
	const struct number_set old = *s;

	s->cap = old.cap ? 2 * old.cap : 256;
	s->at = base_alloc(s->cap * sizeof *s->at);
	for (size_t k = 0; k < old.cap; k++)
		if (old.at[k])
			*entry_of(s, old.at[k]) = old.at[k];
	free(old.at);
}

void number_set_add(struct number_set *s, uint64_t number)
{
	if (number_set_has(s, number))
		return;
	if (2 * s->n >= s->cap)
		grow(s);
	*entry_of(s, number) = number;
	s->n++;
}

void number_set_free(struct number_set *s)
{
	free(s->at);
}
