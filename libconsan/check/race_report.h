/* race_report: what race.c and race_report.c share: the questions about a race, and its finding. */
#ifndef CONSAN_CHECK_RACE_REPORT_H
#define CONSAN_CHECK_RACE_REPORT_H

#include "internal.h"

/* ---- race.c ---- */
/* The CTA of the warp that executed or issued it. */
unsigned race_cta_of(const struct cluster *c, const struct cell_entry *e);
/* Does a frontier of warp w (self: its program order and own waits count) know the accesses of
 * `old` to `bytes` of CTA `peer`, as seen by the lanes of `now` that touch the same bytes?
 * collective: or would it, if warp collectives ordered memory? */
bool race_known_from(struct cluster *c, const struct frontier *f, const struct warp *self,
	enum plane plane, unsigned peer, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t bytes, bool collective);
enum severity race_severity(const struct view *v, unsigned r, const struct cell_entry *old);

/* ---- race_report.c ---- */
struct accessor {
	unsigned warp;
	int lane;                /* -1: several, or an engine */
	const char *what;        /* kind of access, for findings */
};
/* The accessor of the entry at `byte`, preferably another lane than those of not_lane. */
struct accessor race_accessor(const struct cluster *c, const struct cell_entry *e,
	unsigned byte, uint32_t not_lane);
void race_report(const struct view *v, unsigned rule, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t granule, uint32_t bytes);

#endif
