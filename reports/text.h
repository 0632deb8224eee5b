/* text: the pieces of the text report that coverage.c, text.c and banks.c share. */
#ifndef CONSAN_TEXT_H
#define CONSAN_TEXT_H

#include "page.h"
#include "reports.h"

void text_finding(struct page *p, const struct options *o, const struct finding *f);

/* Shared-memory bank conflicts, if they were counted. */
void report_banks(struct page *p, const struct results *r, const struct options *o);

#endif
