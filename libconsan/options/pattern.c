/* pattern: the size of a regular expression before it is compiled. regcomp() copies what `+' and `{m,n}'
 * repeat, also within each other, so that 30 of them in a row need more memory than there is. */
#include "internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 200 };

/* Behind a bracket expression. A `]' at its beginning is a member, and so is one within [: :], [. .] or [= =]. */
static const char *after_bracket(const char *s)
{
	s += s[1] == '^' ? 2 : 1;
	s += *s == ']';
	while (*s && *s != ']') {
		const char kind = *s == '[' && strchr(":.=", s[1]) ? s[1] : 0;

		s++;
		if (!kind || !*s)
			continue;
		for (s++; *s && !(s[0] == kind && s[1] == ']'); s++)
			;
		s += *s ? 2 : 0;
	}
	return *s ? s + 1 : s;
}

/* How often `{m,n}' repeats; sets the position behind it. */
static unsigned long interval(const char **at)
{
	char *end;
	unsigned long most = strtoul(*at + 1, &end, 10);

	if (*end == ',') {
		const unsigned long n = strtoul(end + 1, &end, 10);

		most = n > most ? n : most;
	}
	*at = *end == '}' ? end + 1 : *at + 1;
	return most ? most : 1;
}

static unsigned long bounded(unsigned long size)
{
	return size < OPTIONS_PATTERN_MOST ? size : OPTIONS_PATTERN_MOST + 1;
}

/* Of what stands before the end, or the `)' of a group. */
static unsigned long size_of(const char **at, unsigned depth)
{
	const char *s = *at;
	unsigned long sum = 0;

	while (*s && (*s != ')' || !depth)) {
		unsigned long size = 1;

		if (*s == '(' && depth >= DEEPEST) {
			size = OPTIONS_PATTERN_MOST + 1;
			s++;
		} else if (*s == '(') {
			s++;
			size += size_of(&s, depth + 1);
			s += *s == ')';
		} else if (*s == '[') {
			s = after_bracket(s);
		} else {
			s += *s == '\\' && s[1] ? 2 : 1;
		}
		while (*s && strchr("*+?{", *s)) {
			const unsigned long times = *s == '{' && isdigit((unsigned char)s[1]) ? interval(&s)
				: *s++ == '+' ? 2 : 1;

			size = bounded(size * bounded(times));
		}
		sum = bounded(sum + size);
	}
	*at = s;
	return sum;
}

unsigned long options_pattern_size(const char *pattern)
{
	return size_of(&pattern, 0);
}
