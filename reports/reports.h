/* reports: findings -> something to read.
 *
 * House rules:
 *  - includes the vocabulary only; knows nothing of PTX, events or shadow;
 *  - renderers add no logic: what they say stands in the finding, its rule or
 *    the coverage;
 *  - tests pin codes, sites and structure, never prose. */
#ifndef CONSAN_REPORT_H
#define CONSAN_REPORT_H

#include "libconsan/finding/finding.h"
#include "libconsan/options/options.h"

#include <stdio.h>

struct report_counts {
	unsigned errors, warnings, notes;
	unsigned kernels;       /* seen and not filtered out */
	unsigned checked;       /* of these, every launch wanted was checked */
	unsigned skipped;       /* left out by the user's filters */
	unsigned launches;      /* checked ones */
};
void report_count(const struct results *r, struct report_counts *n);

/* What a wrapper exits with; `program` is the watched program's own status. */
int report_exit_status(const struct results *r, const struct options *o, int program);

/* r must be finished (results_finish). width: columns, 0: do not wrap. */
void report_text(const struct results *r, const struct options *o, bool color,
	unsigned width, FILE *out);
void report_json(const struct results *r, FILE *out);
/* All rules as one page of HTML. */
void report_rules(FILE *out);
void report_html(const struct results *r, const struct options *o, FILE *out);
void report_sarif(const struct results *r, const struct options *o, FILE *out);
void report_junit(const struct results *r, const struct options *o, FILE *out);

enum report_format { REPORT_html, REPORT_json, REPORT_sarif, REPORT_junit, REPORT_text };
/* "html", "json", ...; false: there is no such format. */
bool report_format(const char *name, enum report_format *to);
void report_as(const struct results *r, const struct options *o, enum report_format to, FILE *out);

/* All that the options ask for: the text on stderr or in --log-file, and every
 * --report file. All are tried; e holds the first failure. */
bool report_write(const struct results *r, const struct options *o, struct err *e);

/* One file; the path's suffix says which format, %p in it is the process id. */
bool report_file(const struct results *r, const struct options *o, const char *path,
	struct err *e);
/* The --report files only. */
bool report_files(const struct results *r, const struct options *o, struct err *e);

/* One line of a source file, without its newline; NULL if there is none.
 * Looked for as given, then below the working directory. free() it. */
char *report_source_line(const char *file, unsigned line);
/* The same in place, n bytes: valid until report_source_forget(). Not thread-safe. */
const char *report_source_at(const char *file, unsigned line, size_t *n);
/* Forgets the files read so far, so that they are read again; what
 * report_source_at() returned is gone. */
void report_source_forget(void);
bool report_source_newer(const char *file, int64_t built);
/* Was a source file that report_source_line() showed changed after `built`? Its
 * name, or NULL. */
const char *report_source_changed(int64_t built);

/* ---- the rest of what this module offers ---- */
#include "page.h"
#include "words.h"

#endif
