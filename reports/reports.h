/* reports: writes findings as text, HTML, JSON, SARIF, JUnit XML, GitHub annotations and a trace
 * for Perfetto. The public header
 * of this module.
 *
 * Rules of this module:
 *  - It uses findings, options and sites; it does not know PTX, events or shadow memory.
 *  - Renderers make no decisions: all that they print comes from the finding, its rule
 *    or the coverage.
 *  - Tests check codes, sites and structure, not prose. */
#ifndef CONSAN_REPORTS_H
#define CONSAN_REPORTS_H

#include "libconsan/finding/finding.h"
#include "libconsan/options/options.h"

#include <stdio.h>

struct report_counts {
	unsigned errors, warnings, notes; /* groups of findings, by their highest severity */
	unsigned consequences;  /* findings that are no headline of a group */
	unsigned kernels;       /* launched, and not excluded by the filters */
	unsigned checked;       /* of these, the kernels whose launches were all checked */
	unsigned skipped;       /* kernels that the user's filters excluded */
	unsigned unseen;        /* gaps of this kind: remarks `not_seen` */
	unsigned gaps;          /* modules that were not loaded, unsupported calls and processes
				   that were not seen: kernels may be missing, or have run on
				   other data */
};
/* Is it one of the gaps? */
bool report_gap(const struct result_remark *m);
/* Counts the groups of findings and the kernels of r. */
void report_count(const struct results *r, struct report_counts *n);

/* Was every launch of the kernel excluded by the user's filters? */
bool report_filtered_out(const struct coverage *c);

/* The exit status of a wrapper; `program` is the exit status of the checked program. */
int report_exit_status(const struct results *r, const struct options *o, int program);

/* Does a stream get colours? color: COLOR_AUTO, ... (options.h) */
bool report_color(int color, FILE *out);

/* The renderers. r must be finished (results_finish()). */
/* width: columns of a line; 0: no line is wrapped. */
void report_text(const struct results *r, const struct options *o, bool color,
	unsigned width, FILE *out);
void report_json(const struct results *r, FILE *out);
void report_html(const struct results *r, const struct options *o, FILE *out);
void report_sarif(const struct results *r, const struct options *o, FILE *out);
void report_junit(const struct results *r, const struct options *o, FILE *out);
/* Workflow commands of GitHub Actions: one annotation for each finding and for each gap. */
void report_github(const struct results *r, const struct options *o, FILE *out);
/* The histories of the findings as a trace for ui.perfetto.dev. */
void report_perfetto(const struct results *r, FILE *out);
/* All rules as one HTML page. */
void report_rules(FILE *out);

/* Appends all that is known of a finding, as lines "label: text". */
void report_finding_text(struct text *t, const struct options *o, const struct finding *f);

enum report_format {
#define FORMAT(name, suffix) REPORT_##name,
#include "libconsan/options/formats.def"
#undef FORMAT
};
/* Looks up a format by its name, "html", "json", ...; false if there is no such format. */
bool report_format(const char *name, enum report_format *to);
void report_as(const struct results *r, const struct options *o, enum report_format to, FILE *out);

/* Writes every report that the options ask for: the text on stderr or into --log-file,
 * and every --report file. Continues after a failure; e holds the first one. */
bool report_write(const struct results *r, const struct options *o, struct consan_err *e);

/* Writes one file. The suffix of its path selects the format; %p is the process id; "-" in place
 * of the name ("-.github") is stdout. */
bool report_file(const struct results *r, const struct options *o, const char *path,
	struct consan_err *e);
/* Writes every --report file. */
bool report_files(const struct results *r, const struct options *o, struct consan_err *e);

/* One line of a source file, without its newline; NULL if the file or the line does not
 * exist. Looks for the file as given, then below the working directory. free() it. */
char *report_source_line(const char *file, unsigned line);
/* Sets the folders below which files are quoted: those of --source-root, or the working tree of the
 * working directory and those of report_source_also(). It forgets all files. */
void report_source_roots(const struct options *o);
/* Adds the working tree of a folder to the default. The folder is the user's, or of the program that the
 * user has started; never one that a file names. */
void report_source_also(const char *folder);
/* Was the file found, but outside of the roots, so that it is not quoted? */
bool report_source_outside(const char *file);
/* The same without a copy: n bytes, valid until report_source_forget(). Not thread-safe. */
const char *report_source_at(const char *file, unsigned line, size_t *n);
/* Drops the cached source files, so that the next use reads them again. Invalidates what
 * report_source_at() returned. */
void report_source_forget(void);
/* Was the source file changed after `built`, in seconds since the epoch? */
bool report_source_newer(const char *file, int64_t built);
/* Was the source file changed after the program was built that holds the module of this site? */
bool report_stale(const struct results *r, uint32_t site, const char *file);
/* Was the module of this site compiled or read by the program, in this run? */
bool report_is_jit(uint32_t site);
/* Was the module of the finding compiled without line information? */
bool report_lacks_lines(const struct results *r, const struct finding *f);

#include "reports/describe.h"
#include "reports/text/page.h"

#endif
