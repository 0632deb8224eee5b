/* visible: see visible.h. */
#include "base.h"

#include <string.h>

/* Bytes of the character at s that must not reach a terminal as it is; 0: it may. */
static size_t hidden(const char *s, size_t n)
{
	const unsigned char *c = (const unsigned char *)s;

	if (c[0] < 0x20 || c[0] == 0x7f)
		return 1;
	if (n > 1 && c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) /* C1 */
		return 2;
	if (n < 3 || c[0] != 0xe2)
		return 0;
	/* U+2028 to U+202E: line and paragraph separators, embeddings; U+2066 to U+2069: isolates */
	if ((c[1] == 0x80 && c[2] >= 0xa8 && c[2] <= 0xae) || (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9))
		return 3;
	return 0;
}

bool visible_is(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (hidden(s + i, n - i))
			return false;
	return true;
}

void visible_add(struct text *t, const char *s, size_t n)
{
	for (size_t i = 0, k; i < n; i += k ? k : 1) {
		const unsigned char *c = (const unsigned char *)s + i;

		k = hidden(s + i, n - i);
		if (!k)
			text_add(t, s + i, 1);
		else if (*c == '\n' || *c == '\t' || *c == '\r')
			text_printf(t, "\\%c", *c == '\n' ? 'n' : *c == '\t' ? 't' : 'r');
		else if (k == 1)
			text_printf(t, "\\x%02x", *c);
		else
			text_printf(t, "\\u%04x", k == 2 ? c[1] : 0x2000u | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu));
	}
}

void visible_in_place(char *s)
{
	const size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		for (size_t k = s[i] == '\n' || s[i] == '\t' ? 0 : hidden(s + i, n - i); k; k--)
			s[i + k - 1] = '?';
}
