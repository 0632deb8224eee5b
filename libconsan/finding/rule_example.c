/* rule_example: reads the tags of the specimens, as tests/cases/harness/specimen.c does. */
#include "rule_example.h"

#include <string.h>

const struct rule_example *rule_example_of(const char *code)
{
	for (const struct rule_example *x = rule_examples; x->code; x++)
		if (!strcmp(x->code, code))
			return x;
	return NULL;
}

static bool has(const char *from, const char *end, const char *what)
{
	return memmem(from, (size_t)(end - from), what, strlen(what)) != NULL;
}

bool rule_example_line(const char *text, struct rule_example_line *l)
{
	const char *end = strchrnul(text, '\n');
	const char *tag = memmem(text, (size_t)(end - text), " // ", 4);

	if (!*text)
		return false;
	*l = (struct rule_example_line){ .sign = ' ', .at = text, .n = (int)(end - text),
		.next = end + (*end != 0) };
	if (!tag)
		return true;
	if (has(tag, end, "racy"))
		l->sign = '-';
	else if (has(tag, end, "fixed"))
		l->sign = '+';
	l->reported = has(tag, end, "@");
	if (l->sign != ' ' || l->reported)
		l->n = (int)(tag - text);
	return true;
}
