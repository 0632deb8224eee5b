/* results: the findings and the coverage of a session, as records in a file.
 *
 * A record is a JSON object in one line, which is appended and flushed at once: a crash of the
 * program loses at most the line being written, and several processes may share a file. An
 * update of a record is a complete new record, which replaces the earlier one: coverage, launches
 * and remarks are overwritten in their place, so that the file does not grow with the number of
 * launches. A session's first record about a site has it as a row, with its chain of places; others
 * refer to it by number. Reading adds sites to the site table of the process (site.h). Next
 * to the file, while it is written, is a page that counts clusters (live.h).
 *
 * Record types: process, launch, finding, coverage, banks, remark. */
#ifndef CONSAN_RESULTS_H
#define CONSAN_RESULTS_H

#include "libconsan/base/base.h"
#include "libconsan/finding/banks.h"
#include "libconsan/finding/types.h"

#include <stdio.h>

#define RESULTS_VERSION 2
#define REPORT_VERSION 2 /* of the JSON report, reports/schema.json */

/* What made the report: one for each report that was merged. */
struct result_run {
	char *command;          /* its command line, quoted for a shell */
	char *options;          /* words for the options that differ from their default, or "" */
	char *version;          /* of consan */
	char *date;             /* of the report, UTC: "2026-11-22T15:04:05Z" */
};

/* A checked process. */
struct result_process {
	int64_t pid;
	char *program;          /* argv[0], or "" */
	char *device;           /* the GPU, real or emulated; "" before its first use */
};

/* A launch is written when it begins and when it ends, so that launches that did not end are
 * known. Of a process the first 1000 are kept, and up to 1000 later ones that have findings or did
 * not end well; of merged reports 20,000, and 20,000. */
enum launch_state { LAUNCH_RUNNING, LAUNCH_DONE, LAUNCH_ENDED_EARLY };
struct result_launch {
	int64_t pid;
	uint32_t id;
	char *kernel;           /* mangled */
	uint32_t grid[3], block[3], cluster[3];
	uint64_t seed;
	enum launch_state state;
	char *status;           /* "ok", "fault", ...; while it runs "" or */
#define RESULT_RECORDED "recorded" /* it is checked when it has ended */
	uint64_t done, whole;   /* clusters that have ended, of all; whole is 0 if that is not known */
};

/* In the order of enum consan_remark (consan.h). */
#define RESULT_REMARKS(X) X(call_unsupported) X(no_ptx) X(bad_module) X(note) \
	X(fallback_invariant) X(fallback_not_invariant) X(fallback_not_tried) X(not_loaded) X(not_seen)
enum result_remark_kind {
#define X(id) RESULT_REMARK_##id,
	RESULT_REMARKS(X)
#undef X
	RESULT_REMARK_COUNT
};
struct result_remark {
	enum result_remark_kind kind;
	char *text;
	uint64_t count;         /* occurrences in all processes */
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
/* Opens path for appending, and creates it. NULL on failure, described in e. */
struct results_writer *results_create(const char *path, struct consan_err *e);
void results_close(struct results_writer *w); /* w may be NULL, as below */

/* No record can be written to `path`: leaves a note in its folder that the findings of this process are lost, and
 * why. That needs neither a descriptor nor room on the disk. */
void results_lose(const char *path, const char *why);
#define RESULTS_LOST FOLDER_LOST /* the names of these notes end so */
void results_lost(struct text *to, const char *path); /* appends a line about the note */

/* All are thread-safe, and do nothing if w is NULL. `id` identifies a finding of the process: a
 * record with the same id replaces the earlier one; a finding with seen == 0 removes it. */
void results_process(struct results_writer *w, const char *program, const char *device);
void results_launch(struct results_writer *w, const struct result_launch *l);
/* A launch that may be checked waits in a queue; it has begun, or never will. Those that wait when the
 * process ends were not checked. Not for launches of a forked child. */
void results_issued(struct results_writer *w);
void results_over(struct results_writer *w);
/* Which of these are to be checked, in the order in which they begin from now on: not the first `skip`, then
 * one in `every`, not 0, at most `most`, from which launches that run are not subtracted. Without it, all. */
struct results_next { uint64_t skip, every, most; };
void results_next(struct results_writer *w, const struct results_next *next);
void results_cluster(struct results_writer *w, uint32_t launch); /* one of its clusters has ended */
void results_finding(struct results_writer *w, uint32_t id, const struct finding *f);
void results_coverage(struct results_writer *w, const struct coverage *c);
/* Replaces the earlier record of the same site. */
void results_bank_use(struct results_writer *w, const struct bank_use *u);
void results_remark(struct results_writer *w, enum result_remark_kind kind, const char *text);

/* ---- reading ---- */

/* The merged records of all launches and processes: findings by (rule, kernel, source places),
 * or by instruction without line information, in the order of finding_compare(); bank conflicts
 * by place; coverage by kernel name. */
struct results {
	VEC(struct result_run) run;
	VEC(struct result_process) process;
	VEC(struct result_launch) launch;
	VEC(struct finding) finding;
	VEC(struct coverage) coverage;
	VEC(struct bank_use) bank; /* the most conflicts first */
	VEC(struct result_remark) remark;
	VEC(struct result_suppression) suppression;
	VEC(struct result_suppressed) suppressed; /* findings that an entry matched */
	uint64_t cut;           /* records that could not be read or written, after a crash or on a
				   full disk */
	struct results_merge *merge; /* private */
};

/* Adds the records of a file to r, which must be zeroed before the first call. Counts and skips
 * damaged lines. False if the file cannot be read or has no records. */
bool results_read(struct results *r, const char *path, struct consan_err *e);
/* Add a record directly, without a file. */
void results_add_finding(struct results *r, const struct finding *f);
void results_add_coverage(struct results *r, const struct coverage *c);
void results_add_bank_use(struct results *r, const struct bank_use *u);
void results_add_remark(struct results *r, enum result_remark_kind kind, const char *text);
/* The same, `count` times. */
void results_add_remarks(struct results *r, enum result_remark_kind kind, const char *text,
	uint64_t count);
/* r takes ownership of the strings of n, p and l. */
void results_add_run(struct results *r, struct result_run n);
void results_add_process(struct results *r, struct result_process p);
void results_add_launch(struct results *r, struct result_launch l);
/* Adds the contents of a JSON report (reports/schema.json). False on failure; e has line and
 * column if the file is not JSON. r then has a part of the contents. */
bool results_load(struct results *r, const char *path, struct consan_err *e);
/* Replaces the host's call stacks of all findings, which are sites: of results_read() only, before
 * results_finish(). */
void results_map_hosts(struct results *r, uint32_t (*map)(void *user, uint32_t site), void *user);
/* Must be called once after the last addition: merges, sorts, and marks launches that did not
 * end. */
void results_finish(struct results *r);
void results_free(struct results *r);

/* Are both shown as one? The first one that is added is, with its history; the other one only adds
 * its counts. Unrolling and inlining make several instructions of one source place. */
bool results_same_bug(const struct finding *a, const struct finding *b);
uint64_t results_hash_bug(const struct finding *f); /* of what results_same_bug() compares */

/* Adds n to a count; the sum is at most what a file can have. */
void results_sum(uint64_t *count, uint64_t n);

/* Deep copy; finding_free() the copy. */
void results_copy_finding(struct finding *to, const struct finding *from);

/* ---- the structs as JSON, for the JSON report ---- */
struct json_t;
struct json_t *results_coverage_json(const struct coverage *c);
struct json_t *results_bank_use_json(const struct bank_use *u);
struct json_t *results_site_json(uint32_t site); /* null if the site is unknown */

#endif
