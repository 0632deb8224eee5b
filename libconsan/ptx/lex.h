/* lex: PTX text to tokens. For the files of ptx/ only.
 *
 * The text ends in NUL bytes that the lexer may read; one token is current,
 * lex_next() replaces it. */
#ifndef CONSAN_PTX_LEX_H
#define CONSAN_PTX_LEX_H

#include "ir.h"

enum token_kind {
	T_END,
	T_NAME,    /* ld, %r1, $L__BB0_1, _ */
	T_WORD,    /* .global, .shared::cta, .2d; at points behind the first dot */
	T_INT,     /* value */
	T_F32,     /* value: bits */
	T_F64,     /* value: bits */
	T_STRING,  /* at points behind the quote, n without the quotes */
	T_PUNCT,   /* at[0] */
	T_BAD,     /* not PTX: an unknown byte, an open string, a broken number */
};

struct lex {
	const char *p, *end;       /* behind the current token; end of text */
	const char *line_start;
	uint32_t line;
	/* the current token */
	enum token_kind kind;
	const char *at;
	size_t n;
	uint64_t value;
	uint32_t tok_line, tok_col;
};

/* Positions the lexer before the first token: call lex_next(). */
void lex_start(struct lex *l, const char *text, size_t n);
void lex_next(struct lex *l);
/* Is the current token this punctuation, this .word (without dot)? */
bool lex_is(const struct lex *l, char c);
bool lex_word(const struct lex *l, const char *word);
bool lex_name(const struct lex *l, const char *name);
/* Whether the current name is followed by a colon (a label), not by :: */
bool lex_label_follows(const struct lex *l);
/* The spelling of an instruction, from the current T_NAME on with all .words. The
 * current token is then the one after it. *n = 0 if there are blanks inside the
 * spelling; the lexer has not moved then. */
const char *lex_opcode(struct lex *l, size_t *n);
/* Skips from after a '{' to after its '}' without making tokens; false at the end
 * of the text. */
bool lex_skip_block(struct lex *l);

#endif
