/* html: what the files of the HTML report share. Private to them.
 *
 *   report.c      the page: banner, filters, table of contents, findings
 *   finding.c     one finding
 *   edit.c        the change that repairs it
 *   side.c        one side of a finding: thread, access, highlighted source and PTX
 *   timeline.c    drawing of the history: lanes, arrows, the missing edge; timeline_layout.c
 *                 chooses what it shows
 *   drawing.c     what maps and timeline are drawn of
 *   memory.c      maps of shared and global memory, table of mbarrier states
 *   tensor_memory.c  map of tensor memory
 *   wait_graph.c  wait-for graph of a hang
 *   coverage.c    tables of checked kernels, remarks and bank conflicts
 *   rules.c       the rules of the findings on the page; the page of all rules
 *   assets.c      page.css, drawings.css, findings.js, timeline.js */
#ifndef CONSAN_REPORTS_HTML_H
#define CONSAN_REPORTS_HTML_H

#include "reports/markup.h"
#include "reports/reports.h"
#include "reports/describe.h"

#include "libconsan/finding/finding.h"

struct html {
	struct markup m;
	const struct options *o;
	const struct results *r;
	unsigned context;       /* source lines shown before and after that of a side */
	unsigned frames;        /* shown of an inlining chain; a longer one loses its middle */
	size_t shown;           /* findings on the page, from the first */
	unsigned id;            /* of the current finding, from 1 */
};

/* report.c: from the doctype to </head>. */
void html_head(struct html *h, const char *title);

/* finding.c: finding h->id. The bodies of findings after the first HTML_NEAR are in <noscript>: a
 * browser with scripts takes them for text, which costs nothing to load, and the script turns it
 * into markup when it comes near the window. */
#define HTML_NEAR 8u
#define HTML_MANY 300u   /* more findings have shorter texts, without highlighting */
void html_finding(struct html *h, const struct finding *f, unsigned kernel);

/* edit.c: nothing if no change is known. */
void html_edit(struct html *h, const struct finding *f);

/* rules.c */
void html_rules(struct html *h);

/* side.c */
void html_side(struct html *h, const struct finding *f, unsigned i);
void html_launched(struct html *h, const struct finding *f); /* the host's call stack */
void html_ptx(struct html *h, const char *ptx); /* with syntax highlighting */

/* timeline.c: nothing without a history. */
void html_timeline(struct html *h, const struct finding *f);
void html_timeline_defs(struct html *h); /* the symbols, once on a page */

/* drawing.c: elements of an SVG. title: "" for none */
void html_text_at(struct markup *m, const char *class, double x, double y, const char *fmt, ...)
	PRINTF_LIKE(5, 6);
void html_rectangle(struct markup *m, const char *class, double x, double y, double width,
	double height, const char *title);
/* A section with an SVG of this size, whose x begins at -left; in_conflict: added to its label. The
 * caller may add to the section after html_map_end(), and closes <details>. */
void html_map_begin(struct markup *m, const char *what, const char *in_conflict, int left, int width,
	int height);
void html_map_end(struct markup *m);

/* memory.c */
void html_memory(struct html *h, const struct finding *f);
void html_mbarriers(struct html *h, const struct finding *f);

/* tensor_memory.c: of the CTA of this side. */
void html_tensor_memory(struct html *h, const struct finding *f, const struct finding_side *s);

/* wait_graph.c: nothing if no warp waits. */
void html_streams(struct html *h, const struct finding *f);
void html_wait_graph(struct html *h, const struct finding *f);

/* coverage.c */
void html_table(struct markup *m, const char *const *head, size_t n, const char *label);
void html_table_end(struct markup *m);
void html_coverage(struct html *h);
void html_banks(struct html *h); /* nothing if bank conflicts were not counted */

/* assets.c */
extern const char page_css[], page_css_end[], drawings_css[], drawings_css_end[];
extern const char findings_js[], findings_js_end[], timeline_js[], timeline_js_end[];

#endif
