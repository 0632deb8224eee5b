/* page: lines of text with labels, styles and wrapping. Does not depend on findings. */
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
	unsigned col, indent;   /* visible columns so far; column at which wrapped lines begin */
	bool blank;             /* the line contains only indentation */
};

/* A blank at which a line is not wrapped. */
#define NBSP "\001"

/* Starts a new line with a label; its text is indented by the width of the label column. */
void page_label(struct page *p, const char *label, enum page_style style);
/* Starts a new line at this column. */
void page_indent(struct page *p, unsigned column);
/* Appends text, wrapped between words. */
void page_add(struct page *p, enum page_style style, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/* Appends s unchanged and not wrapped: it is cut at the width. */
void page_verbatim(struct page *p, enum page_style style, const char *s);
void page_end(struct page *p);   /* ends the current line, if there is one */
void page_blank(struct page *p); /* the same, and adds an empty line */

#endif
