/* similar: see similar.h. */
#include "similar.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST = 63 }; /* bytes of a candidate; longer ones are not compared */

static char plain(char c)
{
	return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

/* Insertions, deletions, replacements and swaps of neighbours that turn a into b (optimal string
 * alignment). */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[3][LONGEST + 1], n = (unsigned)strlen(b), i;

	for (unsigned j = 0; j <= n; j++)
		row[0][j] = j;
	for (i = 1; a[i - 1]; i++) {
		unsigned *now = row[i % 3];
		const unsigned *one = row[(i - 1) % 3], *two = row[(i + 1) % 3];

		now[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			const char c = plain(a[i - 1]), d = plain(b[j - 1]);

			now[j] = one[j - 1] + (c != d);
			if (one[j] + 1 < now[j])
				now[j] = one[j] + 1;
			if (now[j - 1] + 1 < now[j])
				now[j] = now[j - 1] + 1;
			if (i > 1 && j > 1 && c == plain(b[j - 2]) && d == plain(a[i - 2])
					&& two[j - 2] + 1 < now[j])
				now[j] = two[j - 2] + 1;
		}
	}
	return row[(i - 1) % 3][n];
}

void similar_try(struct similar *s, const char *candidate)
{
	const size_t n = strlen(s->word);
	/* a word of three letters with two changes could be any other one */
	const unsigned most = n < 3 ? 0 : n < 5 ? 1 : n < 9 ? 2 : 3;
	unsigned changes;

	if (strlen(candidate) > LONGEST)
		return;
	changes = distance(s->word, candidate);
	if (changes > most || (s->best && changes >= s->changes))
		return;
	s->best = candidate;
	s->changes = changes;
}
