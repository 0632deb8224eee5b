/* records: the folder in which the processes of a program leave their records; for consan-run and
 * `consan recover'. */
#ifndef CONSAN_CLI_RECORDS_H
#define CONSAN_CLI_RECORDS_H

#include "libconsan/base/base.h"

#include <sys/types.h>

struct options;

/* Creates the folder, in $TMPDIR or, where that is not writable or full, elsewhere; remarks: why. plain:
 * its path is to be one that the dynamic linker takes in lists. NULL: none can be created. free() it. */
char *records_make_dir(bool plain, struct text *remarks, struct consan_err *e);
/* The folder in which the processes of the program record: that one, or if root created it, one in it. free() it. */
char *records_folder(const char *dir);
/* Could the dynamic linker misunderstand the path in $LD_PRELOAD or $LD_LIBRARY_PATH? */
bool records_odd_path(const char *path);

struct records {
	VEC(char *) path; /* of the record files, by name */
	VEC(char *) lost; /* of the notes of processes that could not record (results_lose()) */
	uint32_t nlost;   /* processes that could not even leave a note */
};
/* False: no such folder. */
bool records_list(struct records *r, const char *dir);
void records_lost(const struct records *r, struct text *unseen); /* appends lines about the notes */
/* The process that still writes one of them; 0: none. */
pid_t records_writer(const struct records *r);
/* Adds a file of records to r, which it creates in the folder, with these remarks, one a line: notes; and of what was not
 * seen. */
void records_remark(struct records *r, const char *dir, const char *notes, const char *not_seen);
/* Reports: what consan-run and `consan recover' have in common. program: its path, NULL if
 * it is not known; ended: its exit status; only: as of consan_report(). */
bool records_report(const struct records *r, const struct options *o, const char *only,
	const char *program, int ended, int *status, struct consan_err *e);
void records_free(struct records *r);
/* Removes the records and what belongs to them from the folder, and the folder if nothing is left. */
void records_remove(const char *dir);

#endif
