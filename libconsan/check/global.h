/* global: races on global memory, over all clusters of a launch. Shared by global.c (accesses),
 * global_sync.c (which locations other clusters know of), global_race.c (meaning of a race) and
 * global_report.c (findings, pairs of clusters).
 *
 * Accesses of all clusters are recorded in one shadow. Accesses of two clusters are ordered by
 * release and acquire patterns on a strong location (location.h). The executor performs a strong
 * access and reports it in one step with respect to other threads, so that the order of events at a
 * location is the order of its values.
 *
 * Clusters are identified by cluster.number, which also counts those of earlier grids that may
 * overlap with this one (grids.h).
 *
 * Invariant: an access pair within one cluster is reported like a race on shared memory; a finding
 * about two clusters is the same whichever of them came second. */
#ifndef CONSAN_CHECK_GLOBAL_H
#define CONSAN_CHECK_GLOBAL_H

#include "shadow/shadow.h"
#include "foreign.h"
#include "beside.h"
#include "grids.h"
#include "internal.h"
#include "location.h"
#include "pairs.h"

struct global {
	struct global_shadow *shadow;
	bool inherited;          /* the shadow was taken over from earlier grids */
	struct grids grids;      /* those that may still run; also taken over */
	uint32_t base;           /* this launch's first cluster */
	uint32_t waited_from;    /* clusters from here on, below base: complete after the wait */
	struct foreign *wait_set; /* what is known after griddepcontrol.wait; NULL: nothing */
	struct beside *beside;   /* the grids that run at the same time, with this one */
	uint32_t beside_at;      /* its number among them */
	bool *before;            /* of those that began before: is it ordered after all of it? */
	struct foreign *start;   /* what all its threads know from the beginning; NULL: nothing */
	struct pairs pairs;      /* that showed a finding; low UINT32_MAX: with any cluster. Under
				    the check's lock */
};

/* A release and an acquire whose scopes do not include both threads. */
struct narrow_sync {
	struct foreign *set;
	struct foreign *enough;  /* what of it the scopes do include; NULL: nothing */
	uint32_t released, acquired; /* sites */
};

struct unfenced {                /* a release that was read without an acquire */
	struct foreign *set;
	uint32_t released, read; /* sites */
	bool rmw;                /* it was read by a read-modify-write */
	bool ticket;             /* of which reads_ticket() */
	uint8_t needed;          /* the scope of a fence that acquires it */
};

/* Reads of a warp that are not recorded yet (global_pending.c) */
#define PENDING 32u /* one for each site modulo this */
struct warp_reads {
	struct global_record read[PENDING];
	uint32_t early, late;    /* a bit for each that is in use */
	struct global_span all;  /* reaches over the late ones */
};

/* Plain reads of one address by many lanes: the lanes that read it in this epoch. */
#define RECENT 256u
struct recent {
	uint64_t key;            /* address, size, kind of read */
	uint32_t epoch, lanes;
};

struct global_stored {           /* the newest bulk store */
	uint64_t event;          /* number of the cluster's events up to it */
	uint64_t from, to;
	uint32_t site, size, warp;
	uint16_t peer;
	unsigned lane;           /* the first lane that made it */
};

#define MET_CACHE 16u
struct met_cache {               /* met_number() of a set of knowledge */
	struct foreign *foreign; /* a reference; NULL: none */
	uint16_t number;
};

struct cluster_global {
	struct met_cache met[MET_CACHE];
	uint32_t *host;          /* of each warp: what host_note() has noted */
	struct recent *recent;   /* RECENT for each warp */
	uint8_t *has_recent;     /* for each warp: some are in use */
	struct warp_reads *reads; /* of each warp */
	struct global_span late; /* reaches over all late ones */
	struct global_span written; /* reaches over all that the cluster has written */
	VEC(struct narrow_sync) narrow_sync;
	VEC(struct unfenced) unfenced;
	struct global_stored stored;
	VEC(struct global_span) spans; /* spans of the current event */
};

struct global_view {
	struct global_accessor accessor;   /* first member */
	struct cluster *c;
	struct warp *w;
	const struct frontier *f;
	uint32_t lanes;          /* lanes of the warp that take part */
	bool late;               /* it was made earlier than now: what it knew is not known */
};

/* Of which kind the agent of a record is: of a cluster of this launch, or of one beside it. */
static inline enum agent_kind global_agent(const struct cluster *c, const struct global_record *r,
	uint32_t *index)
{
	return beside_other(c->check, r->cluster)
		? agents_kind(beside_agents(c->check, r->cluster), r->agent, index)
		: agent_kind(c, r->agent, index);
}

struct global *global_open(void);
void global_close(struct global *g); /* NULL is fine */
void global_cluster_reset(struct cluster *c);
void global_cluster_free(struct cluster *c);

/* May clusters synchronize with each other? If not, an access that is not ordered after one other
 * cluster is not ordered after any. */
static inline bool global_synchronised(const struct cluster *c)
{
	return c->check->global->grids.n || !c->check->config.launch.apart;
}
static inline bool global_follows(const struct cluster *c)
{
	return c->repeat.state == REPEAT_FOLLOWS;
}
/* Have so many clusters read all this that one more adds nothing? False is always a safe result. */
static inline bool global_saturated(const struct cluster *c, const struct global_record *r)
{
	return !global_synchronised(c) && global_shadow_saturated_rows(c->check->global->shadow, r);
}

/* ---- global_pending.c ---- */
/* Records the warp's early reads; required before it acquires or releases. late: and the late ones. */
void global_flush(struct cluster *c, struct warp *w, bool late);
/* Records the reads that must be recorded before the warp, or for it an engine, writes these bytes. */
void global_before_write(struct cluster *c, struct warp *w, const struct global_span *x);
/* The read of the lanes is recorded later. early: it may be an early one. False: it must be recorded
 * now. Sets the layout of r. */
bool global_defer(struct cluster *c, struct warp *w, uint32_t lanes, const struct ev_lanes *at,
	const struct repeat_stamp *s, bool early, struct global_record *r);

/* ---- global.c ---- */
void global_layout_of(struct global_record *r, uint32_t lanes, const struct ev_lanes *at);
/* Notes what the thread knew of other grids, and of the host. */
void global_know(struct cluster *c, struct global_record *r, struct foreign *foreign);
struct global_view global_view_of(struct cluster *c, struct warp *w, uint32_t lanes,
	const struct frontier *f);
static inline bool global_flushes(const struct event *e)
{
	switch (e->kind) {
	case EV_ACCESS: /* a global write flushes by itself */
		return e->access.sem != SEM_WEAK;
	case EV_CP_ASYNC: case EV_CP_ASYNC_COMMIT: case EV_CP_ASYNC_WAIT: case EV_BULK_COMMIT:
	case EV_REGISTER_ACCESS:
		return false;
	default:
		return true;
	}
}
void global_access(struct cluster *c, const struct event *e);
void global_copy(struct cluster *c, const struct event *e);    /* cp.async's source */
void global_load(struct cluster *c, const struct event *e, struct warp *w, unsigned lane,
	uint32_t slot);                                        /* a bulk load's source */
void global_store(struct cluster *c, const struct event *e, struct warp *w, unsigned lane);

/* ---- global_sync.c ---- */
struct location_shard *global_shard(struct global *g, uint64_t at);
/* Marks the line of a location; which addresses need no lookup. Takes no lock. */
void global_mark(struct global *g, uint64_t at);
bool global_marked(const struct global *g, uint64_t at);
/* What fence.sc orders across clusters. scope: of the first fence and its access. The caller of the second
 * owns the set, or NULL: what threads of this device did; system: of other devices, at system scope. */
void global_publish_ordered(struct check *k, uint64_t at, unsigned size, unsigned scope,
	struct foreign *set);
struct foreign *global_take_ordered(struct check *k, uint64_t at, unsigned size, bool system);
/* Kept for explanations: what a release and an acquire would order if their scopes were wider, and
 * what a read would order if it acquired. */
void global_note_narrow(struct cluster *c, struct foreign *set, struct foreign *enough,
	uint32_t released, uint32_t acquired);
void global_note_unfenced(struct cluster *c, struct foreign *set, uint32_t released,
	unsigned needed, const struct event *e);
/* A fence follows such reads, at too narrow a scope for some. */
void global_note_narrow_fence(struct cluster *c, const struct event *e);
/* The release and acquire with too narrow scopes that would order the old access; NULL: none. */
const struct narrow_sync *global_narrow_sync(const struct cluster *c,
	const struct global_record *old);
/* The relaxed read after which an acquire would order the old access before this one; NULL:
 * none. */
const struct unfenced *global_unfenced(const struct global_view *v,
	const struct global_record *old);

/* Is it free of a kernel? No other generic access is one of whole spans. */
static inline bool global_frees(const struct global_record *r)
{
	return r->row == GR_WHOLE && (r->flags & (GR_WRITE | GR_ASYNC)) == GR_WRITE;
}

/* ---- global_race.c ---- */
enum global_verdict global_classify(struct global_accessor *a, const struct global_record *old,
	const struct global_record *now, uint64_t addr, uint32_t bytes, bool *lanewise);
void global_observed(struct global_accessor *a, const struct global_record *x,
	const struct global_record *z, const struct global_record *now, uint64_t addr, uint32_t bytes,
	uint32_t missing[16], bool *lanewise);
/* Two lanes of one instruction write the same bytes. */
void global_one_instruction(struct cluster *c, const struct event *e, unsigned lane,
	unsigned other, uint64_t addr);

/* ---- global_report.c ---- */
struct global_conflict {
	unsigned rule;
	enum severity severity;
	const struct global_record *old, *now;
	uint64_t addr;
	unsigned byte, bytes;    /* of the granule at addr: the first in conflict, and how many */
	int old_lane, now_lane;  /* of which lanes; -1: several, or an engine */
	const struct narrow_sync *narrow_sync;
	const struct unfenced *unfenced;
	bool ticket;             /* CS117: no acquire follows a ticket */
	bool incomplete;         /* only the issue of the old operation is known */
};
void global_report(struct global_view *v, const struct global_conflict *x);
/* Is the conflict, of which the byte is not known yet, one of two clusters and no better example
 * than that of a known finding? Then it is counted, and need not be reported. */
bool global_counted(const struct global_view *v, const struct global_conflict *x);

#endif
