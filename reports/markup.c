/* markup: see markup.h. */
#include "reports/markup.h"

#include <stdlib.h>
#include <string.h>

/* ---- escaping ---- */

size_t markup_character(const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0;
	uint32_t c;

	if (!len || len > n)
		return 0;
	if (len == 1)
		return *s >= 0x20 || *s == '\t' || *s == '\n' ? 1 : 0;
	c = *s & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || c == 0xfffe
			|| c == 0xffff || (c >= 0x80 && c < 0xa0)
			|| (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
		return 0; /* the last two ranges reverse text, which could disguise a name */
	return len;
}

static void put(struct markup *m, const char *s, size_t n)
{
	fwrite(s, 1, n, m->out);
	m->bytes += n;
}

static void puts_to(struct markup *m, const char *s)
{
	put(m, s, strlen(s));
}

static void escaped(struct markup *m, const char *s, size_t n)
{
	while (n) {
		size_t k = 0, len = 1;

		while (k < n && (unsigned char)s[k] < 0x80 && (unsigned char)s[k] >= 0x20
				&& s[k] != '<' && s[k] != '>' && s[k] != '&' && s[k] != '"'
				&& s[k] != '\'')
			k++;
		if (k) {
			put(m, s, k);
			s += k;
			n -= k;
			continue;
		}
		switch (*s) {
		case '<': puts_to(m, "&lt;"); break;
		case '>': puts_to(m, "&gt;"); break;
		case '&': puts_to(m, "&amp;"); break;
		case '"': puts_to(m, "&quot;"); break;
		case '\'': puts_to(m, "&#39;"); break;
		default:
			len = markup_character(s, n);
			if (len)
				put(m, s, len);
			else
				puts_to(m, "\xef\xbf\xbd");
			len += !len;
		}
		s += len;
		n -= len;
	}
}

static void vescaped(struct markup *m, const char *fmt, va_list ap)
{
	char small[256];
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(small, sizeof small, fmt, ap);
	if (n >= 0 && (size_t)n < sizeof small) {
		escaped(m, small, (size_t)n);
	} else {
		struct text t = { 0 };

		text_vprintf(&t, fmt, again);
		escaped(m, t.at, t.n);
		text_free(&t);
	}
	va_end(again);
}

/* ---- elements ---- */

static void end_tag(struct markup *m)
{
	if (m->in_tag)
		puts_to(m, ">");
	m->in_tag = false;
}

void mu_open(struct markup *m, const char *name)
{
	end_tag(m);
	if (m->depth == MARKUP_DEPTH)
		base_die("a document is too deep at <%s>", name);
	m->open[m->depth++] = name;
	puts_to(m, "<");
	puts_to(m, name);
	m->in_tag = true;
}

void mu_attr(struct markup *m, const char *name, const char *fmt, ...)
{
	va_list ap;

	if (!m->in_tag)
		base_die("attribute %s outside of a tag", name);
	puts_to(m, " ");
	puts_to(m, name);
	puts_to(m, "=\"");
	va_start(ap, fmt);
	vescaped(m, fmt, ap);
	va_end(ap);
	puts_to(m, "\"");
}

void mu_flag(struct markup *m, const char *name)
{
	if (!m->in_tag)
		base_die("attribute %s outside of a tag", name);
	puts_to(m, " ");
	puts_to(m, name);
}

void mu_text(struct markup *m, const char *fmt, ...)
{
	va_list ap;

	end_tag(m);
	va_start(ap, fmt);
	vescaped(m, fmt, ap);
	va_end(ap);
}

void mu_textn(struct markup *m, const char *s, size_t n)
{
	end_tag(m);
	escaped(m, s, n);
}

static const char *pop(struct markup *m)
{
	if (!m->depth)
		base_die("an element is closed that is not open");
	return m->open[--m->depth];
}

void mu_close(struct markup *m, const char *name)
{
	const char *open = pop(m);

	if (strcmp(open, name))
		base_die("</%s> where <%s> is open", name, open);
	end_tag(m);
	puts_to(m, "</");
	puts_to(m, name);
	puts_to(m, ">");
}

void mu_void(struct markup *m)
{
	pop(m);
	end_tag(m);
}

void mu_empty(struct markup *m)
{
	pop(m);
	puts_to(m, "/>");
	m->in_tag = false;
}

void mu_newline(struct markup *m)
{
	end_tag(m);
	puts_to(m, "\n");
}

void mu_trusted(struct markup *m, const char *s, size_t n)
{
	end_tag(m);
	put(m, s, n);
}

void mu_class(struct markup *m, const char *name, const char *class)
{
	mu_open(m, name);
	if (class)
		mu_attr(m, "class", "%s", class);
}

void mu_element(struct markup *m, const char *name, const char *class, const char *fmt, ...)
{
	va_list ap;

	mu_class(m, name, class);
	end_tag(m);
	va_start(ap, fmt);
	vescaped(m, fmt, ap);
	va_end(ap);
	mu_close(m, name);
}
