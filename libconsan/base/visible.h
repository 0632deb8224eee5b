/* visible: text that a file or a program under test chose, made fit for a terminal, a log and a line of
 * a text file. Control characters, those of Unicode (C1) included, and characters that change the
 * direction of text become visible: \n, \t, \x1b, \u202e. All else stays, UTF-8 as well. */
#ifndef CONSAN_VISIBLE_H
#define CONSAN_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>

struct text;

/* Is there nothing to change? */
bool visible_is(const char *s, size_t n);
/* Appends the visible form. */
void visible_add(struct text *t, const char *s, size_t n);
/* The same within the bytes that are there: each byte concerned becomes a question mark. Newlines and
 * tabs stay. */
void visible_in_place(char *s);

#endif
