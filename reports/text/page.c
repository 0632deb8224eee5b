/* page: see page.h. */
#include "reports/text/page.h"

#include <stdlib.h>
#include <string.h>

#define LABEL_WIDTH 11 /* two blanks, label of at most 8 characters, blank */

static const char *const escape[] = {
	[PLAIN] = "", [BOLD] = "\033[1m", [DIM] = "\033[2m", [RED] = "\033[1;31m",
	[YELLOW] = "\033[1;33m", [CYAN] = "\033[36m", [GREEN] = "\033[1;32m",
};

/* Columns of UTF-8 text: continuation bytes take none. */
static unsigned columns(const char *s, size_t n)
{
	unsigned k = 0;

	for (; n; n--, s++)
		k += ((unsigned char)*s & 0xc0) != 0x80;
	return k;
}

static void styled(struct page *p, enum page_style style, const char *s, size_t n)
{
	bool on = p->color && style != PLAIN;

	if (on)
		text_add(&p->line, escape[style], strlen(escape[style]));
	text_add(&p->line, s, n);
	if (on)
		text_add(&p->line, "\033[0m", 4);
	p->col += columns(s, n);
}

static void blanks(struct page *p, unsigned to)
{
	while (p->col < to)
		styled(p, PLAIN, " ", 1);
}

void page_end(struct page *p)
{
	if (!p->line.n)
		return;
	while (p->line.n && p->line.at[p->line.n - 1] == ' ')
		p->line.at[--p->line.n] = 0;
	fprintf(p->out, "%s%s%s\n", p->prefix, *p->prefix ? " " : "", p->line.at);
	p->line.n = 0;
	p->col = 0;
}

void page_blank(struct page *p)
{
	page_end(p);
	fprintf(p->out, "%s\n", p->prefix);
}

void page_indent(struct page *p, unsigned column)
{
	page_end(p);
	p->indent = column;
	blanks(p, column);
	p->blank = true;
}

void page_label(struct page *p, const char *label, enum page_style style)
{
	page_indent(p, 2);
	styled(p, style, label, strlen(label));
	p->indent = LABEL_WIDTH;
	blanks(p, LABEL_WIDTH - 1);
	styled(p, PLAIN, " ", 1);
}

static void word(struct page *p, enum page_style style, const char *s, size_t n)
{
	char *copy = base_strndup(s, n);

	for (char *c = copy; *c; c++)
		if (*c == *NBSP)
			*c = ' ';
	if (!p->blank && p->width && p->col + columns(s, n) > p->width) {
		page_end(p);
		blanks(p, p->indent);
		p->blank = true;
	}
	styled(p, style, copy, n);
	p->blank = false;
	free(copy);
}

void page_add(struct page *p, enum page_style style, const char *fmt, ...)
{
	struct text t = { 0 };
	const char *s;
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	text_vprintf(&t, fmt, ap);
	va_end(ap);
	for (s = t.n ? t.at : ""; *s; s += n) {
		n = strcspn(s, " \n");
		if (n) {
			word(p, style, s, n);
			continue;
		}
		n = 1;
		if (!p->blank)
			styled(p, PLAIN, " ", 1);
	}
	text_free(&t);
}

void page_verbatim(struct page *p, enum page_style style, const char *s)
{
	unsigned left = p->width > p->col ? p->width - p->col : 0;
	size_t n = 0;

	/* no character is cut: continuation bytes take no column */
	while (s[n] && (!p->width || ((unsigned char)s[n] & 0xc0) == 0x80 || left)) {
		left -= p->width && ((unsigned char)s[n] & 0xc0) != 0x80;
		n++;
	}
	styled(p, style, s, n);
	p->blank = false;
}
