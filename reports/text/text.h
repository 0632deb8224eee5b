/* text: what the files of the text report share. Private to them.
 *
 *   report.c    the whole report: findings, coverage, summary line
 *   finding.c   a finding and its consequences
 *   banks.c     the table of bank conflicts
 *   page.c      lines with labels, styles and wrapping */
#ifndef CONSAN_REPORTS_TEXT_H
#define CONSAN_REPORTS_TEXT_H

#include "reports/reports.h"

/* finding.c: a group of n findings. */
void text_group(struct page *p, const struct options *o, const struct finding *f, size_t n);

/* banks.c: prints nothing if bank conflicts were not counted. */
void text_banks(struct page *p, const struct results *r, const struct options *o);

#endif
