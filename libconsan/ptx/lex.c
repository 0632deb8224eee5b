/* lex: characters to tokens, with line and column. Knows no keyword. */
#include "lex.h"

#include <stdlib.h>
#include <string.h>

/* character classes, independent of the locale */
enum { C_NAME = 1, C_DIGIT = 2, C_SPACE = 4, C_HEX = 8, C_FIRST = 16 };

#define R4(c) c, c, c, c
#define R8(c) R4(c), R4(c)
#define R16(c) R8(c), R8(c)
#define L1_ (C_NAME | C_FIRST)
#define H1_ (C_NAME | C_FIRST | C_HEX)
#define D1_ (C_NAME | C_DIGIT | C_HEX)

static const unsigned char class_of[256] = {
	[' '] = C_SPACE, ['\t'] = C_SPACE, ['\r'] = C_SPACE, ['\n'] = C_SPACE,
	['\f'] = C_SPACE, ['\v'] = C_SPACE,
	['0'] = R8(D1_), D1_, D1_,
	['A'] = R4(H1_), H1_, H1_, R16(L1_), R4(L1_),
	['a'] = R4(H1_), H1_, H1_, R16(L1_), R4(L1_),
	['_'] = L1_, ['$'] = L1_, ['%'] = L1_,
};

#define IS(c, what) (class_of[(unsigned char)(c)] & (what))

void lex_start(struct lex *l, const char *text, size_t n)
{
	memset(l, 0, sizeof *l);
	l->p = l->line_start = text;
	l->end = text + n;
	l->line = 1;
}

static const char *comment(struct lex *l, const char *p)
{
	if (p[1] == '/') {
		const char *nl = memchr(p, '\n', (size_t)(l->end - p));

		return nl ? nl : l->end;
	}
	for (p += 2; p < l->end; p++) {
		if (*p == '\n') {
			l->line++;
			l->line_start = p + 1;
		} else if (p[0] == '*' && p[1] == '/') {
			return p + 2;
		}
	}
	return l->end;
}

static const char *blanks(struct lex *l, const char *p)
{
	for (;;) {
		if (*p == '\n') {
			l->line++;
			l->line_start = ++p;
		} else if (IS(*p, C_SPACE)) {
			p++;
		} else if (*p == '/' && (p[1] == '/' || p[1] == '*')) {
			p = comment(l, p);
		} else {
			return p;
		}
	}
}

static bool hex_bits(const char *p, int digits, uint64_t *v)
{
	int k;

	*v = 0;
	for (k = 0; k < digits; k++) {
		int c = p[k];

		if (!IS(c, C_HEX))
			return false;
		*v = *v << 4 | (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
	}
	return !IS(p[k], C_NAME);
}

static const char *integer(struct lex *l, const char *p)
{
	unsigned base = 10;
	uint64_t v = 0;
	const char *digits;

	if (*p == '0') {
		base = 8;
		if ((p[1] | 32) == 'x' || (p[1] | 32) == 'b') {
			base = (p[1] | 32) == 'x' ? 16 : 2;
			p += 2;
		}
	}
	for (digits = p; IS(*p, C_HEX); p++) {
		unsigned d = *p <= '9' ? (unsigned)(*p - '0') : (unsigned)((*p | 32) - 'a' + 10);

		if (d >= base)
			break;
		v = v * base + d;
	}
	l->value = v;
	l->kind = p == digits ? T_BAD : T_INT;
	if (*p == 'U' || *p == 'u')
		p++;
	if (IS(*p, C_NAME))
		l->kind = T_BAD;
	return p;
}

/* 0f3F800000, 0d3FF0000000000000, 1.5e-3, 17, 0x11, 0b10, 021, 17U */
static const char *number(struct lex *l, const char *p)
{
	const char *q = p;
	double d;

	if (*p == '0' && (p[1] | 32) == 'f') {
		l->kind = hex_bits(p + 2, 8, &l->value) ? T_F32 : T_BAD;
		return p + 2 + (l->kind == T_BAD ? 0 : 8);
	}
	if (*p == '0' && (p[1] | 32) == 'd') {
		l->kind = hex_bits(p + 2, 16, &l->value) ? T_F64 : T_BAD;
		return p + 2 + (l->kind == T_BAD ? 0 : 16);
	}
	while (IS(*q, C_DIGIT))
		q++;
	if (!(*q == '.' && IS(q[1], C_DIGIT)) && (*q | 32) != 'e')
		return integer(l, p);
	d = strtod(p, (char **)&q);
	memcpy(&l->value, &d, sizeof d);
	l->kind = IS(*q, C_NAME) ? T_BAD : T_F64;
	return q;
}

static const char *word(const char *p)
{
	while (IS(*p, C_NAME) || (p[0] == ':' && p[1] == ':' && IS(p[2], C_NAME)))
		p += *p == ':' ? 2 : 1;
	return p;
}

void lex_next(struct lex *l)
{
	const char *p = blanks(l, l->p);

	l->at = p;
	l->tok_line = l->line;
	l->tok_col = (uint32_t)(p - l->line_start) + 1;
	if (IS(*p, C_FIRST)) {
		do
			p++;
		while (IS(*p, C_NAME));
		l->kind = T_NAME;
	} else if (*p == '.' && IS(p[1], C_NAME)) {
		l->at = p + 1;
		p = word(p + 1);
		l->kind = T_WORD;
	} else if (IS(*p, C_DIGIT)) {
		p = number(l, p);
	} else if (*p == '"') {
		l->at = ++p;
		while (p < l->end && *p != '"' && *p != '\n')
			p += *p == '\\' && p + 1 < l->end && p[1] != '\n' ? 2 : 1;
		l->kind = *p == '"' ? T_STRING : T_BAD;
		l->n = (size_t)(p - l->at);
		l->p = p < l->end ? p + 1 : p;
		return;
	} else if (p >= l->end) {
		p = l->end;
		l->kind = T_END;
	} else {
		l->kind = *p > ' ' && *p < 127 ? T_PUNCT : T_BAD;
		p++;
	}
	l->n = (size_t)(p - l->at);
	l->p = p;
}

bool lex_is(const struct lex *l, char c)
{
	return l->kind == T_PUNCT && *l->at == c;
}

bool lex_word(const struct lex *l, const char *w)
{
	return l->kind == T_WORD && l->n == strlen(w) && !memcmp(l->at, w, l->n);
}

bool lex_name(const struct lex *l, const char *name)
{
	return l->kind == T_NAME && l->n == strlen(name) && !memcmp(l->at, name, l->n);
}

bool lex_label_follows(const struct lex *l)
{
	const char *p = l->p;

	while (*p == ' ' || *p == '\t')
		p++;
	return p[0] == ':' && p[1] != ':';
}

const char *lex_opcode(struct lex *l, size_t *n)
{
	const char *at = l->at, *p = l->p, *q;

	while (*p == '.' && IS(p[1], C_NAME))
		p = word(p + 1);
	for (q = p; *q == ' ' || *q == '\t'; q++)
		;
	if (*q == '.') {
		*n = 0;
		return at;
	}
	*n = (size_t)(p - at);
	l->p = p;
	lex_next(l);
	return at;
}

bool lex_skip_block(struct lex *l)
{
	const char *p = l->p;
	unsigned depth = 1;

	while (p < l->end) {
		switch (*p) {
		case '\n':
			l->line++;
			l->line_start = p + 1;
			break;
		case '{':
			depth++;
			break;
		case '}':
			if (--depth)
				break;
			l->p = p + 1;
			lex_next(l);
			return true;
		case '/':
			if (p[1] != '/' && p[1] != '*')
				break;
			p = comment(l, p);
			continue;
		}
		p++;
	}
	l->p = l->end;
	lex_next(l);
	return false;
}
