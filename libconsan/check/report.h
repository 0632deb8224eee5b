/* report: construction and bookkeeping of findings, for the files of this module.
 *
 * A rule calls report_new(), describes the accesses with report_side() and report_memory() (side 0
 * is the later one), states what is missing with report_edge() and a remedy with report_hint(), and
 * ends with report_send(). */
#ifndef CONSAN_CHECK_REPORT_H
#define CONSAN_CHECK_REPORT_H

#include "libconsan/finding/finding.h"
#include "libconsan/finding/hint_codes.h"

struct check;
struct cluster;
struct mbar;

/* Returns a new finding to fill in, or NULL if (rule, sites) is known with this severity or a
 * higher one: then it is only counted. The caller must pass it to report_send(). */
struct finding *report_new(struct cluster *c, unsigned rule, enum severity sev,
	uint32_t site0, uint32_t site1);
void report_send(struct cluster *c, struct finding *f);
/* Would the finding, whose sites are set, be new, or replace another example? If not, what costs time to
 * describe may be left out. */
bool report_is_shown(struct cluster *c, const struct finding *f);
enum severity rule_severity(unsigned r);
/* Do two stores, by threads of one CTA or of any two, always write the same value? */
bool report_equal_stores(uint32_t site0, uint32_t site1, bool one_cta);
/* Is it a weak load whose value no instruction reads? */
bool report_unread_load(uint32_t site);
void report_side(struct cluster *c, struct finding *f, unsigned warp, int lane,
	uint32_t site, const char *what);
void report_memory(struct cluster *c, struct finding *f, unsigned side, unsigned peer,
	uint64_t addr, uint32_t bytes);
void report_mbar(struct cluster *c, struct finding *f, const struct mbar *m);
void report_edge(struct finding *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A hint on the values of two writes, the later one by the event c->now (CS101, CS103), or of a load
 * whose value is not used. */
void report_values(const struct cluster *c, struct finding *f, bool both_write);
/* hint and format: HINT(id), a row of finding/hints.def. */
void report_hint(struct finding *f, unsigned hint, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* What to change at this instruction; kind and form: EDIT(id), of a row of finding/hints.def.
 * report_between() is for EDIT_BETWEEN, `site` the earlier instruction. No call: edits.def decides. */
void report_edit(struct finding *f, uint32_t site, enum finding_edit_kind kind, const char *form, ...)
	PRINTF_LIKE(4, 5);
void report_between(struct finding *f, uint32_t site, uint32_t until, enum finding_edit_kind kind,
	const char *form, ...) PRINTF_LIKE(5, 6);
/* What the edit does, in words. */
void report_words(struct finding *f, const char *format, ...) PRINTF_LIKE(2, 3);
/* "file.cu:12", the place of a site in the program's own code where it was inlined into it, and
 * " (called at file.cu:30)" if that is in a function that was inlined. Returns `to`. */
#define PLACE_BYTES 128
const char *report_place(uint32_t site, char to[PLACE_BYTES]);
/* Of a release and an acquire the one that has .cta scope; the first if both have it. */
uint32_t report_narrower(uint32_t release, uint32_t acquire);
int only_lane(uint32_t lanes); /* the lane's number if there is just one, else -1 */
void report_cluster_end(struct cluster *c);
/* Of several examples of a finding the most severe is reported, of those the one of the lowest
 * rank, so that the report does not depend on thread timing. */
struct finding_rank {
	uint32_t high, low;      /* clusters; equal if only one is involved */
	uint64_t addr;
	uint32_t by[2];
};
int finding_rank_compare(const struct finding_rank *a, const struct finding_rank *b);
/* The index of the launch's finding, or nfindings; called under the lock. */
size_t report_find(struct check *k, unsigned rule, uint32_t site0, uint32_t site1);
/* For clusters that repeat another one; key: rule, sites. One more of a finding that is known; is the
 * launch's example of it of a lower cluster? The latter is called under the lock. */
void report_one_more(struct cluster *c, const uint32_t key[3]);
bool report_is_of_lower(struct check *k, const uint32_t key[3], uint32_t cluster);
/* Would an example replace the one that finding[at] shows? Called under the lock. */
bool report_replaces(const struct check *k, size_t at, enum severity severity,
	const struct finding_rank *rank);
/* Adds f to the launch, where it replaces a less severe example, or an equally severe one of higher
 * rank. Takes ownership. */
void profile_apply(const struct check *k, struct finding *f); /* profile.def; before it is kept */
void report_ranked(struct check *k, struct finding *f, struct finding_rank rank);

#endif
