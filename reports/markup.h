/* markup: writes elements of HTML, SVG or XML. Callers pass text and attribute values
 * unescaped; only mu_trusted() writes markup. Bytes that are not UTF-8 and characters that XML
 * forbids become U+FFFD. */
#ifndef CONSAN_MARKUP_H
#define CONSAN_MARKUP_H

#include "libconsan/base/base.h"

#include <stdio.h>

#define MARKUP_DEPTH 32

struct markup {
	FILE *out;
	uint64_t bytes;         /* written so far */
	const char *open[MARKUP_DEPTH];
	unsigned depth;
	bool in_tag;            /* the start tag is still open for attributes */
};

/* Opens <name; name must be a literal or outlive the element. */
void mu_open(struct markup *m, const char *name);
/* An attribute of the element just opened. */
void mu_attr(struct markup *m, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);
void mu_flag(struct markup *m, const char *name); /* HTML: without a value */
void mu_text(struct markup *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
void mu_textn(struct markup *m, const char *s, size_t n);
/* Closes the innermost element, which must have this name. */
void mu_close(struct markup *m, const char *name);
void mu_void(struct markup *m);  /* HTML's <br>, <meta>: no end tag */
void mu_empty(struct markup *m); /* <name/>: SVG, XML */
void mu_newline(struct markup *m);
/* Writes s unescaped: only for our own style and script. */
void mu_trusted(struct markup *m, const char *s, size_t n);

/* <name class="class">text</name>; class may be NULL. */
void mu_element(struct markup *m, const char *name, const char *class, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
/* mu_open() with a class, which may be NULL. */
void mu_class(struct markup *m, const char *name, const char *class);

/* Bytes of the UTF-8 character at s, n bytes; 0 if it is malformed or not allowed in a
 * document. */
size_t markup_character(const char *s, size_t n);

#endif
