/* results: what a session found and looked at, as records in a file.
 *
 * One record is one JSON object in one line, appended and flushed at once, so
 * that a crash of the program loses at most the line being written and many
 * processes may share a file. A record that updates an earlier one repeats it
 * whole: the last one counts. Sites are embedded by value; reading adds them to
 * this process's table (site.h).
 *
 * Record types: process, launch, finding, coverage, banks, remark.
 * This knows no output format and judges nothing. */
#ifndef CONSAN_RESULTS_H
#define CONSAN_RESULTS_H

#include "libconsan/base/base.h"
#include "libconsan/finding/banks.h"
#include "libconsan/finding/types.h"

#include <stdio.h>

#define RESULTS_VERSION 1
#define REPORT_VERSION 2 /* of the JSON report, reports/schema.json */

/* One process that consan was in. */
struct result_process {
	int64_t pid;
	char *program;          /* argv[0], or "" */
	char *device;           /* the emulated GPU, "" before the first use */
};

/* A launch is written when it begins and again when it ends, so that one that
 * never ended is known. */
enum launch_state { LAUNCH_RUNNING, LAUNCH_DONE, LAUNCH_ENDED_EARLY };
struct result_launch {
	int64_t pid;
	uint32_t id;
	char *kernel;           /* mangled */
	uint32_t grid[3], block[3], cluster[3];
	uint64_t seed;
	enum launch_state state;
	char *status;           /* "ok", "fault", ...; "" while it runs */
};

/* In the order of enum consan_remark (consan.h). */
#define RESULT_REMARKS(X) X(call_unsupported) X(no_ptx) X(bad_module) X(note) \
	X(fallback_invariant) X(fallback_not_invariant) X(fallback_not_tried)
enum result_remark_kind {
#define X(id) RESULT_REMARK_##id,
	RESULT_REMARKS(X)
#undef X
	RESULT_REMARK_COUNT
};
struct result_remark {
	enum result_remark_kind kind;
	char *text;
	uint64_t count;         /* how often it was said, over all processes */
};

/* One entry of a --suppressions file (suppress.h). Absent patterns are NULL. */
struct result_suppression {
	char *rule;             /* code, or "*" */
	char *kernel, *source, *symbol, *reason;
	char *where;            /* "file:line" */
	uint64_t matched;       /* findings */
};
struct result_suppressed {
	struct finding f;
	uint32_t by;            /* suppression.at[by] */
};

/* ---- writing ---- */

struct results_writer;
/* Appends to path, creating it. NULL and e if that is not possible. */
struct results_writer *results_create(const char *path, struct err *e);
void results_close(struct results_writer *w); /* NULL is fine, as below */

/* All are thread-safe, and do nothing when w is NULL. `id` tells a process's
 * findings apart: the same id again replaces the earlier record, and withdraws
 * it if the finding was seen 0 times. */
void results_process(struct results_writer *w, const char *program, const char *device);
void results_launch(struct results_writer *w, const struct result_launch *l);
void results_finding(struct results_writer *w, uint32_t id, const struct finding *f);
void results_coverage(struct results_writer *w, const struct coverage *c);
/* Replaces the earlier record of the same site. */
void results_bank_use(struct results_writer *w, const struct bank_use *u);
void results_remark(struct results_writer *w, enum result_remark_kind kind, const char *text);

/* ---- reading ---- */

/* Everything, merged: findings over launches and processes by (rule, kernel,
 * source places) in canonical order - by instruction where there is no line
 * information -, bank conflicts likewise, coverage by kernel name. */
struct results {
	VEC(struct result_process) process;
	VEC(struct result_launch) launch;
	VEC(struct finding) finding;
	VEC(struct coverage) coverage;
	VEC(struct bank_use) bank; /* the most conflicts first */
	VEC(struct result_remark) remark;
	VEC(struct result_suppression) suppression;
	VEC(struct result_suppressed) suppressed; /* findings that an entry matched */
	uint64_t cut;           /* lines that could not be read: of a crash, a full disk */
	struct results_merge *merge; /* private */
};

/* Adds the records of a file to r (zeroed before the first). A line that is
 * cut or damaged is counted and skipped. False: no such file or not ours. */
bool results_read(struct results *r, const char *path, struct err *e);
/* Adds data that never was in a file (consan replay). */
void results_add_finding(struct results *r, const struct finding *f);
void results_add_coverage(struct results *r, const struct coverage *c);
void results_add_bank_use(struct results *r, const struct bank_use *u);
void results_add_remark(struct results *r, enum result_remark_kind kind, const char *text);
/* The strings of p and l become r's. */
void results_add_process(struct results *r, struct result_process p);
void results_add_launch(struct results *r, struct result_launch l);
/* Adds what a JSON report (report_json, reports/schema.json) says. False + e, with
 * line and column where it is not JSON: r is as far as it came. */
bool results_load(struct results *r, const char *path, struct err *e);
/* To be called once after the last addition: sorts, and turns launches that
 * never ended into ended early. */
void results_finish(struct results *r);
void results_free(struct results *r);

/* Deep copy; finding_free() the copy. */
void results_copy_finding(struct finding *to, const struct finding *from);

/* ---- the same structs as JSON, for reports/json.c ---- */
struct json_t;
struct json_t *results_finding_json(const struct finding *f);
struct json_t *results_coverage_json(const struct coverage *c);
struct json_t *results_bank_use_json(const struct bank_use *u);
struct json_t *results_site_json(uint32_t site); /* null if unknown */

#endif
