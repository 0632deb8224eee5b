/* text: what the files of the text report share. Private to them.
 *
 *   report.c    the whole report: findings, coverage, summary line
 *   finding.c   one finding
 *   banks.c     the table of bank conflicts
 *   page.c      lines with labels, styles and wrapping */
#ifndef CONSAN_REPORTS_TEXT_H
#define CONSAN_REPORTS_TEXT_H

#include "reports/reports.h"

/* finding.c */
void text_finding(struct page *p, const struct options *o, const struct finding *f);

/* banks.c: prints nothing if bank conflicts were not counted. */
void text_banks(struct page *p, const struct results *r, const struct options *o);

#endif
