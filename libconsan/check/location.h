/* location: strong locations, in shared and in global memory: what the writes there have released
 * (PTX ISA 8.8, 8.9.2, 8.9.4).
 *
 * A location is an address and a size: a read observes a write of the same location only (8.7). Its
 * *chain* is the newest write and the read-modify-writes before it that observed each other: a read
 * that is morally strong to the newest write observes them all. A *head* is what the release
 * patterns of one CTA with a write in the chain release: it reaches an acquire pattern whose last
 * operation is morally strong to the first one of the release pattern, which is what `scope` of a
 * head is for.
 *
 * A cluster has a table of locations with the heads of its own threads, as frontiers. Locations in
 * global memory are also in a table of the launch, with the chain and with what reaches other
 * clusters, as sets (foreign.h); it says which chain the cluster's heads belong to. location.c has
 * the tables and chains, release.c and acquire.c the patterns, fence_sc.c what only fence.sc
 * orders. */
#ifndef CONSAN_CHECK_LOCATION_H
#define CONSAN_CHECK_LOCATION_H

#include "foreign.h"
#include "internal.h"

/* A lane's newest release at a location; f NULL: none (release pattern 2). */
#define OWN_RELEASES 256u
struct own_release {
	uint64_t at;
	uint8_t size, lane, scope;
	uint32_t chain;          /* of the location, to which it belonged */
	struct frontier *f;
};

/* What a warp has handed over for its newest fence.sc */
#define SC_PUBLISHED 8u
struct sc_published {
	uint64_t at;
	uint32_t fences, lanes, kind;
};

struct polled {                  /* what a warp read last, as a loop polls repeatedly */
	uint64_t at;
	uint32_t version, lanes, site;
};

struct head {
	uint16_t cta;
	uint8_t scope;           /* enum ev_scope: of the first operations of the patterns */
	uint32_t site;           /* of the newest write */
	struct frontier *f;
};

struct heads {
	struct head *at;
	size_t n, cap;
};

#define MAX_NARROW_HEADS 16u

/* A head that does not reach other clusters: explains their races. */
struct narrow_head {
	uint32_t cluster, site;
	uint16_t cta;
	uint8_t scope;
	struct foreign *set;
};

/* What fence.sc orders after threads of one device; system: with operations of system scope only. */
struct ordered_by {
	uint32_t device;
	struct foreign *set, *system;
};

struct location {
	uint64_t at;             /* global address, or shared_at() */
	uint8_t size;
	uint8_t scope;           /* of the newest write, and its thread */
	bool read;               /* in the launch's table: a strong read has observed a write */
	uint16_t cta;
	uint32_t cluster;
	uint32_t version;        /* counts changes; 0: never written */
	uint32_t chain;          /* number of the chain */
	struct heads heads;      /* in a cluster's table */
	struct heads ordered;    /* by fence.sc, see fence_sc.c; never cleared */
	/* in the launch's table: all heads of gpu scope or wider, those of system scope, and the site
	 * of the newest */
	struct foreign *wide, *wide_system;
	uint32_t site;
	VEC(struct ordered_by) wide_ordered; /* like `ordered`, by threads of all clusters */
	VEC(struct narrow_head) narrow;
};

/* Locations in the same 16 bytes, which may overlap. */
struct place {
	uint64_t key;            /* location.at / 16 */
	VEC(struct location) at;
};

struct location_table {
	struct place *place;     /* hash by key; no locations: free */
	uint32_t n, cap;
};

static inline uint64_t shared_at(unsigned cta, uint64_t addr)
{
	return 1ull << 63 | (uint64_t)cta << 32 | addr;
}

static inline bool in_shared(uint64_t at)
{
	return at >> 63;
}

/* The scope that two operations of threads in these CTAs need to be morally strong. */
static inline unsigned scope_needed(uint32_t cluster, unsigned cta, uint32_t other_cluster,
	unsigned other_cta)
{
	if (cluster != other_cluster)
		return SCOPE_GPU;
	return cta == other_cta ? SCOPE_CTA : SCOPE_CLUSTER;
}

/* A04 */
static inline unsigned access_scope(const struct event_access *a)
{
	if (a->sem == SEM_VOLATILE || a->sem == SEM_MMIO)
		return SCOPE_SYS;
	return a->scope == SCOPE_NONE ? SCOPE_GPU : a->scope;
}

static inline uint64_t access_place(const struct event_access *a, unsigned lane)
{
	const uint64_t addr = lane_addr(&a->at, lane);

	return a->space == SP_SHARED ? shared_at(a->owner, addr) : addr;
}

/* Are the access's locations tracked? */
bool location_tracks(const struct cluster *c, const struct event_access *a);
/* Filters: may there be locations in that memory, and in these 16 bytes? */
bool location_any(const struct cluster *c, const struct event_access *a);
bool location_may_be(const struct cluster *c, uint64_t at);
/* NULL: there is none. Pointers are valid until a location is made. */
struct location *location_find(const struct location_table *t, uint64_t at, unsigned size);
struct location *location_make(struct location_table *t, uint64_t at, unsigned size);
/* Calls each() for the locations of which bytes are in [at, at + bytes), which is within 16 aligned bytes. */
void location_each(struct location_table *t, uint64_t at, uint64_t bytes,
	void (*each)(void *user, struct location *l), void *user);
/* In the cluster's own table */
struct location *location_make_local(struct cluster *c, uint64_t at, unsigned size);
/* A write of [at, at + bytes) ends the chains of all locations there, but that of `size` at `at`;
 * size 0: of all. bytes: within 16 aligned bytes. */
void location_overwrite(struct clock_space *s, struct location_table *t, uint64_t at,
	unsigned bytes, unsigned size);
/* A write of the location itself: unless it observes the chain, which takes scope `needed`, it begins
 * a new one. */
void location_write(struct clock_space *s, struct location *l, uint32_t cluster, unsigned cta,
	unsigned scope, bool rmw, unsigned needed);
/* The head of that CTA and scope; a new one knows nothing. */
struct head *location_head(struct clock_space *s, struct heads *h, unsigned cta, unsigned scope);
/* Forgets the chain's heads. */
void location_clear(struct clock_space *s, struct location *l);
void location_free(struct clock_space *s, struct location_table *t);

/* ---- patterns ---- */
/* A strong load or store after a fence.sc, and a strong write, before either is recorded. */
void sc_publish(struct cluster *c, struct warp *w, uint32_t lanes, uint64_t at, unsigned size,
	unsigned scope);
void sc_take(struct cluster *c, struct warp *w, uint32_t lanes, uint64_t at, unsigned size,
	unsigned scope);

void acquire_reads(struct cluster *c, struct warp *w, const struct event *e); /* ACCESS, OBSERVED */
void release_writes(struct cluster *c, struct warp *w, const struct event *e); /* ACCESS */
/* Weak writes end chains: what is read afterwards was not released. */
struct global_span;
void release_plain_writes(struct cluster *c, const struct global_span *spans, size_t n);
void release_plain_shared(struct cluster *c, const struct lanes_access *x);
void locations_open(struct cluster *c);
void locations_reset(struct cluster *c);
void locations_free(struct cluster *c); /* after locations_reset() */

#endif
