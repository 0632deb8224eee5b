/* text: the pieces of the text report that coverage.c and text.c share. */
#ifndef CONSAN_TEXT_H
#define CONSAN_TEXT_H

#include "page.h"
#include "report.h"

void text_finding(struct page *p, const struct options *o, const struct finding *f);

#endif
