/* markup: checks that HTML or XML is well-formed, as far as our writer could fail: every
 * element is closed in order, and every < and & is part of a tag or a known entity. */
#ifndef CONSAN_TESTS_MARKUP_H
#define CONSAN_TESTS_MARKUP_H

#include "libconsan/base/base.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline bool markup_is(const char *name, size_t n, const char *list)
{
	char padded[40];

	snprintf(padded, sizeof padded, " %.*s ", (int)(n < 30 ? n : 30), name);
	return strstr(list, padded) != NULL;
}

static inline const char *markup_entity(const char *s)
{
	static const char *const known[] = { "&lt;", "&gt;", "&amp;", "&quot;", "&#39;" };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strncmp(s, known[i], strlen(known[i])))
			return s + strlen(known[i]);
	return NULL;
}

/* NULL if well-formed; else the position of the error. */
static inline const char *markup_check(const char *s, bool html)
{
	struct { const char *at; size_t n; } open[64];
	unsigned depth = 0;

	while (*s) {
		const char *name = s + 1, *end;
		size_t n;

		if (*s == '&' && !(end = markup_entity(s)))
			return s;
		if (*s != '<') {
			if ((unsigned char)*s < 0x20 && *s != '\n' && *s != '\t')
				return s;
			s = *s == '&' ? end : s + 1;
			continue;
		}
		if (*name == '!' || *name == '?') {
			s = strchr(s, '>') + 1;
			continue;
		}
		n = strcspn(name + (*name == '/'), " >/") + (*name == '/');
		for (end = name + n; *end && *end != '>'; end++) {
			if (*end != '"')
				continue;
			for (end++; *end && *end != '"'; end++)
				if (*end == '<' || (*end == '&' && !markup_entity(end)))
					return end;
		}
		if (!*end)
			return s;
		s = end + 1;
		if (*name == '/') {
			if (!depth || open[depth - 1].n != n - 1
					|| strncmp(open[depth - 1].at, name + 1, n - 1))
				return name;
			depth--;
		} else if (html && markup_is(name, n, " script style ")) {
			s = strstr(s, *name == 's' && name[1] == 'c' ? "</script>" : "</style>");
			if (!s)
				return name;
			s = strchr(s, '>') + 1;
		} else if (end[-1] != '/' && !(html && markup_is(name, n, " meta link input "))) {
			if (depth == 64)
				return name;
			open[depth].at = name;
			open[depth++].n = n;
		}
	}
	return depth ? open[depth - 1].at : NULL;
}

static inline char *markup_read(const char *path)
{
	FILE *in = fopen(path, "r");
	struct text t = { 0 };
	char part[65536];
	size_t n;

	text_add(&t, "", 0);
	while (in && (n = fread(part, 1, sizeof part, in)) > 0)
		text_add(&t, part, n);
	if (in)
		fclose(in);
	return t.at;
}

#endif
