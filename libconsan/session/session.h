/* door: what the rooms of consan's own ask of a session beyond its public
 * interface. The only header, with consan.h, that libconsan/cuda/ includes of
 * what lies behind; implemented by session.c, consan.c and replay.c. */
#ifndef CONSAN_DOOR_H
#define CONSAN_DOOR_H

#include "libconsan/base/base.h"
#include "libconsan/consan.h"
#include "libconsan/finding/finding.h"

/* Where the session's records go as they are made (results.h): one JSON
 * object a line, flushed, so that a crash loses nothing. NULL: nowhere. */
bool consan_record_to(struct consan *c, const char *path, struct err *e);
/* Shows how far each launch is in the page of this file (progress.h). */
void consan_progress_to(struct consan *c, const char *path);
/* There will be a module for this device: see consan_device(). */
void consan_arch_hint(struct consan *c, unsigned sm, char suffix);
/* The allocation that holds at. */
bool consan_mem_find(struct consan *c, const void *at, void **base, uint64_t *bytes,
	enum consan_mem *kind);
/* After CONSAN_FAULT: which row of fault.def ended the last launch, an FAULT_
 * of event.h. */
unsigned consan_fault(struct consan *c);

/* How often errors were seen so far, in all launches that are over. */
uint64_t consan_errors_seen(struct consan *c);
/* With the option `regions`, launches count only while this is so. */
void consan_in_region(struct consan *c, bool inside);

/* As the checker made them: valid until the next launch or consan_close. */
size_t consan_raw_findings(struct consan *c, const struct finding *const **out);
size_t consan_raw_coverage(struct consan *c, const struct coverage **out);

/* ---- what is known about the program itself, for the report ---- */
enum consan_remark { REMARK_CALL_UNSUPPORTED, REMARK_NO_PTX, REMARK_BAD_MODULE, REMARK_NOTE,
	REMARK_FALLBACK_INVARIANT, REMARK_FALLBACK_NOT_INVARIANT, REMARK_FALLBACK_NOT_TRIED };
void consan_remark(struct consan *c, enum consan_remark kind, const char *text);

/* ---- the end: records of all processes -> reports and exit status ---- */
struct options;
/* Reads the record files (results.h; a path that does not exist is a process
 * that never got to consan), writes every report the options ask for (text on
 * stderr or --log-file, --report), and says in *exit_status what a wrapper
 * should exit with: `program` (the watched program's own status), the
 * --error-exitcode, or 67. False: a report could not be written or a record
 * file not be read; *exit_status is set all the same. */
bool consan_report(const struct options *o, const char *const *record, size_t nrecords,
	int program, int *exit_status, struct err *e);
/* Checks the events in a file that --save wrote, and reports likewise. */
bool consan_replay(const struct options *o, const char *path, int *exit_status, struct err *e);
enum { CONSAN_EXIT_UNCHECKED = 67 };

/* ---- the rest of what this module offers ---- */
#include "gpu.h"

#endif
