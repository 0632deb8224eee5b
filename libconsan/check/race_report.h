/* race_report: what race.c, invalid.c and race_report.c share: the questions about a race, and its finding. */
#ifndef CONSAN_CHECK_RACE_REPORT_H
#define CONSAN_CHECK_RACE_REPORT_H

#include "internal.h"

/* The entry with its lanes as they are at byte 0 of this granule, so that equal results for
 * consecutive granules compare equal. */
static inline struct cell_entry race_here(const struct cell_entry *e, uint32_t granule)
{
	struct cell_entry local = *e;

	local.lanes = cell_lanes_at(e, granule * CELL_BYTES);
	return local;
}

/* ---- race.c ---- */
/* The CTA of the warp that executed or issued it. */
unsigned race_cta_of(const struct cluster *c, const struct cell_entry *e);
/* The plane in which the view's access must know the entry. */
enum plane race_plane(const struct view *v, const struct cell_entry *old);
/* Two lanes that access a byte without an order between them. */
struct race_gap {
	unsigned byte;           /* of the granule */
	int old_lane, now_lane;  /* -1: an engine, or all lanes of a wgmma */
	const struct warp *now;  /* set by race_unordered(): of a wgmma's warps, the first */
};
/* Is there a byte and a lane whose access `old` the frontier does not know, as seen by the lanes of
 * `now` that touch the same byte? self: the warp whose program order and own waits count, or NULL;
 * collective: warp collectives count as if they ordered memory. */
bool race_gap(struct cluster *c, const struct frontier *f, const struct warp *self,
	enum plane plane, unsigned peer, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t bytes, bool collective, struct race_gap *gap);
/* The same for all that the new access's threads know; a wgmma's must all know it. */
bool race_unordered(const struct view *v, enum plane plane, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t bytes, bool collective, struct race_gap *gap);
enum severity race_severity(const struct view *v, unsigned r, const struct cell_entry *old);

/* ---- race_report.c ---- */
struct accessor {
	unsigned warp;
	int lane;                /* -1: several, or an engine */
	const char *what;        /* kind of access, for findings */
};
/* The accessor of the entry at `byte`; of several lanes, the lowest. */
struct accessor race_accessor(const struct cluster *c, const struct cell_entry *e, unsigned byte);
void race_report(const struct view *v, unsigned rule, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t granule, uint32_t bytes);

/* ---- need.c ---- */
/* Adds the hint why warp w, or this lane of it, has not observed the phase of an mbarrier of its CTA;
 * false: it has. */
bool race_explain_wait(struct cluster *c, struct finding *f, const struct mbar *m, uint64_t phase,
	const struct warp *w, int lane);
/* The same for an mbarrier of warp b's CTA on which warp a has arrived after its operation of this
 * epoch, and b does not; false: there is none, or b has waited for it. */
bool race_explain_handoff(struct cluster *c, struct finding *f, const struct warp *a,
	uint32_t epoch, const struct warp *b, int lane);

#endif
