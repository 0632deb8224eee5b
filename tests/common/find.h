/* find: search in texts. */
#ifndef CONSAN_TESTS_FIND_H
#define CONSAN_TESTS_FIND_H

#include <stdbool.h>
#include <string.h>

/* Does text contain `what`? */
static inline bool has(const char *text, const char *what)
{
	return strstr(text, what) != NULL;
}

/* The number of occurrences of `what`. */
static inline unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

#endif
