/* html: what the files of the HTML report share. Private to them.
 *
 *   html.c      the page, its overview, a finding's head and story
 *   side.c      one side: who, what, highlighted source and PTX
 *   timeline.c  the history as a picture: lanes, arrows, the missing edge
 *   memory.c    the maps of shared and global memory and the mbarrier table
 *   waits.c     the wait-for graph of a hang
 *   covered.c   what was looked at, bank conflicts */
#ifndef CONSAN_HTML_H
#define CONSAN_HTML_H

#include "markup.h"
#include "reports.h"
#include "words.h"

#include "libconsan/finding/finding.h"

struct html {
	struct markup m;
	const struct options *o;
	const struct results *r;
	int64_t built;          /* when the newest program was; 0: not known */
	unsigned context;       /* source lines shown before and after the one */
	unsigned frames;        /* of an inlining chain; of more, the ends */
	size_t shown;           /* findings, from the first */
	unsigned id;            /* of the finding at hand, from 1 */
};

/* html.c: from the doctype to </head>. */
void html_head(struct html *h, const char *title);

/* side.c */
void html_side(struct html *h, const struct finding *f, unsigned i);
void html_ptx(struct html *h, const char *ptx); /* highlighted */

/* timeline.c: nothing if there is no history. */
void html_timeline(struct html *h, const struct finding *f);
void html_timeline_defs(struct html *h); /* once a page: the marks */

/* memory.c */
void html_memory(struct html *h, const struct finding *f);
void html_mbarriers(struct html *h, const struct finding *f);

/* waits.c */
void html_waits(struct html *h, const struct finding *f);

/* covered.c */
void html_coverage(struct html *h);
void html_banks(struct html *h); /* nothing if they were not counted */

/* A step's object in words: "full+0x8", "barrier 2", "cluster". Adds to t. */
void html_object(struct text *t, const struct history *y, const struct history_step *s);

/* assets.c: reports/report.css and report.js, linked in */
extern const char report_css[], report_css_end[], report_js[], report_js_end[];

#endif
