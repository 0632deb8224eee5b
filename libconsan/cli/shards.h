/* shards: the folder in which the shards of a run leave their reports (--shard-dir), for consan-run and
 * `consan merge'.
 *
 *	shard-I-of-N.RUN.json     the report of shard I; written elsewhere and renamed, so it is whole
 *	shard-I-of-N.RUN.running  there from the begin of the shard to its report, and locked; if it is
 *	                          not locked, consan-run was killed
 *	merged-of-N.RUN.json      the merged report
 *
 * RUN names the run, and is left out where it has no name. No shard waits for another one: each leaves
 * its report first and then looks for the others', so the last one sees all of them; two that end together
 * may both merge, with the same result. Locks only show which shards still run: where they do not work,
 * all do, and `consan merge' is the only one that merges without the missing ones. */
#ifndef CONSAN_CLI_SHARDS_H
#define CONSAN_CLI_SHARDS_H

#include "libconsan/base/base.h"

struct results;

struct shard {
	unsigned at, of;        /* from 1; of 0: the run is not divided */
	char *run;              /* name of the run, or ""; free() it */
};
/* Replaces characters that are not for file names. */
void shards_run_name(char *run);

/* The shard begins: creates the folder and its file, and removes the report of an earlier attempt. Returns
 * a descriptor that is to stay open; -1: failed, or the shard has reported and its run was merged. */
int shards_begin(const char *dir, const struct shard *s, struct consan_err *e);
/* The path of the shard's report. free() it. */
char *shards_report(const char *dir, const struct shard *s);
char *shards_merged(const char *dir, const struct shard *s);
/* Removes a link or a pipe at such a path, which the report would go through. */
void shards_make_way(const char *path);
/* The report is written. */
void shards_end(const char *dir, const struct shard *s);

enum shard_state { SHARD_ABSENT, SHARD_BEGUN, SHARD_RUNS, SHARD_KILLED, SHARD_REPORTED, SHARD_STATES };
struct shards {
	const char *dir;
	struct shard run;       /* at is 0 */
	uint8_t *state;         /* enum shard_state of each; [0] is shard 1 */
	unsigned n[SHARD_STATES];
};
/* Finds the shards of a run; `one` NULL: of the latest, and *others is the number of other runs. */
bool shards_scan(struct shards *s, const char *dir, const struct shard *one, unsigned *others,
	struct consan_err *e);
/* *ended: has each shard of this run reported, or been killed? Then they are in *s. */
bool shards_ended(struct shards *s, const char *dir, const struct shard *own, bool *ended,
	struct consan_err *e);
/* Adds the reports to r, and remarks about shards that are not checked. */
void shards_load(struct shards *s, struct results *r);
void shards_free(struct shards *s);

#endif
