/* page: lines of text with styles, labels and wrapping, for text.c and
 * coverage.c. Knows no finding. */
#ifndef CONSAN_PAGE_H
#define CONSAN_PAGE_H

#include "libconsan/base/base.h"

#include <stdio.h>

enum page_style { PLAIN, BOLD, DIM, RED, YELLOW, CYAN, GREEN };

struct page {
	FILE *out;
	bool color;
	unsigned width;         /* columns, 0: never wrap */
	const char *prefix;     /* before every line, or "" */
	struct text line;       /* with escapes */
	unsigned col, indent;   /* visible columns; where wrapped lines begin */
	bool blank;             /* the line holds indentation only */
};

/* A non-breaking blank, printed as a blank. */
#define NBSP "\001"

/* Ends the line before, if one is begun; starts one at column `indent` - the
 * label's width - with a label, or without. */
void page_label(struct page *p, const char *label, enum page_style style);
/* A new line that begins at this column. */
void page_indent(struct page *p, unsigned column);
/* Words, wrapped. */
void page_add(struct page *p, enum page_style style, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/* As it stands, never wrapped: cut at the width. */
void page_verbatim(struct page *p, enum page_style style, const char *s);
void page_end(struct page *p);   /* ends a line that is begun */
void page_blank(struct page *p); /* ends it, and adds an empty one */

#endif
