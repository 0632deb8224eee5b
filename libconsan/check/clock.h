/* clock: vector clocks, called frontiers: which past accesses happened before.
 *
 * Agents of a cluster, in this order:
 *   warp i                generic accesses of warp i; epoch: increased when the
 *                         warp releases
 *   cp.async of warp i    epoch: sequence number of the commit group
 *   ---- generic proxy above (the first `ngeneric`), async below ----
 *   bulk stores of warp i their reads of shared memory; epoch: bulk group
 *   warpgroup j           reads of wgmma; epoch: wgmma group
 *   tcgen05 of warp i     its mma, cp and shift; epoch: number of the operation
 *   tensor loads, stores of warp i; epoch: increased by the wait
 *   slot k                one bulk load; epoch: the slot's use
 *
 * A frontier records for every agent up to which epoch *all lanes* are known, in two planes: G,
 * happened before; P, happened before and covered by a proxy fence since (generic agents only).
 * What is known of some lanes only is in a short exact list (partials), as are the sparse planes.
 *
 * Invariants: a frontier only grows, except by frontier_clear() and frontier_forget(); knowledge of
 * epoch e is knowledge of every earlier epoch, lane by lane. */
#ifndef CONSAN_CHECK_CLOCK_H
#define CONSAN_CHECK_CLOCK_H

#include "libconsan/base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Planes after P are sparse: they are in the partial list only, as they are empty in all but a few
 * kernels. */
enum plane { PLANE_G, PLANE_P,
	PLANE_HALF,             /* covered by the release half of a uni-directional proxy fence (A21) */
	/* only for the shared memory of the accessor's own CTA: by a
	 * fence.release.sync_restrict::shared::cta (A11) */
	PLANE_CTA_G, PLANE_CTA_P,
	/* only for shared memory: by a fence.acquire.sync_restrict::shared::cluster (A11) */
	PLANE_SHARED_G, PLANE_SHARED_P,
	PLANE_NARROW,   /* would be known, were it not for a scope that is too narrow (B24, G09) */
	PLANE_COLLECTIVE_G, PLANE_COLLECTIVE_P, /* known if warp collectives ordered memory (A12) */
	PLANE_Q,                /* generic agents: covered by a proxy fence over global memory since */
	PLANE_STORED, /* bulk stores: their writes to global memory are complete */
	PLANE_FENCED, /* asynchronous agents: a proxy fence since (st.async; A27, K6) */
	/* agents of tensor memory, only if tcgen05.fence is required (K4): exported by a fence before
	 * a synchronization or by a commit, imported by a fence after one */
	PLANE_TC_BEFORE, PLANE_TC,
	/* agents of tensor memory: ordered before accesses to it, by fences of tcgen05 around a relaxed
	 * synchronization. What they read in shared memory may not be overwritten yet */
	PLANE_TMEM,
	/* loads of tensor memory that are complete as their registers were read (E16) */
	PLANE_LOADED,
	/* + m: generic accesses to the shared memory of CTA m by warps of other CTAs, covered by a
	 * proxy fence; P does not cover these, as .shared::cta is the memory of one CTA (A19) */
	PLANE_MEMORY, PLANES = PLANE_MEMORY + 16 };

/* An epoch that began again at 0 would be taken as known by all. */
static inline uint32_t epoch_next(uint32_t epoch)
{
	if (epoch == UINT32_MAX)
		base_die("more than 2^32 synchronizations by one agent of a launch");
	return epoch + 1;
}

struct partial {
	uint16_t agent;
	uint16_t plane;
	uint32_t lanes, epoch; /* entries of one agent and plane have disjoint lanes */
};

/* What is known of other clusters of the launch: NULL if nothing, as in all kernels but the few
 * whose clusters synchronize through global memory. Immutable, with a reference count; foreign.c,
 * foreign.h. */
struct foreign;
void foreign_put(struct foreign *f);                 /* NULL is fine */
struct foreign *foreign_get(struct foreign *f);      /* takes a reference */
void foreign_join(struct foreign **f, struct foreign *from);
void foreign_fence(struct foreign **f);
bool foreign_covers(const struct foreign *f, const struct foreign *of);

/* What would be known (SEEN), or released (READY), if a fence of another thread counted: relaxed reads
 * gave the one, fences at gpu scope covered the other. _SYSTEM: what is of another device, or was covered
 * at system scope; the fence, or flag, that makes it count needs system scope. */
enum { SEEN, SEEN_SYSTEM, READY, READY_SYSTEM, BY_OTHERS };

struct frontier {
	uint32_t *g, *p;        /* [cap], [ngeneric] */
	uint32_t *q;            /* plane Q: [ngeneric], or NULL, which is all 0 */
	struct foreign *foreign;
	struct foreign *by_others[BY_OTHERS];
	uint32_t cap;
	bool empty;             /* nothing was added to g, p, q and part since they were cleared */
	uint32_t npart, cap_part;
	struct partial *part;
	struct frontier *next;  /* in the pool */
};

/* Must outlive the frontiers made from it. */
struct clock_space {
	uint32_t ngeneric, nagents;
	struct frontier *pool;
	uint64_t joins;
};

/* That of a frontier of any cluster, whatever its shape. */
static inline struct clock_space frontier_space(const struct frontier *f)
{
	return (struct clock_space){ .ngeneric = (uint32_t)(f->g - f->p), .nagents = f->cap };
}
struct frontier *frontier_new(struct clock_space *s); /* empty */
void frontier_put(struct clock_space *s, struct frontier *f); /* NULL is fine */
void clock_space_close(struct clock_space *s); /* frees the pool */

void frontier_clear(struct clock_space *s, struct frontier *f);
void frontier_copy(struct clock_space *s, struct frontier *f, const struct frontier *from);
/* Removes all knowledge of this generic agent. */
void frontier_forget(struct frontier *f, uint32_t agent);
/* Adds all knowledge of `from`. */
void frontier_join(struct clock_space *s, struct frontier *f, const struct frontier *from);
/* Does f know everything that `of` knows? */
bool frontier_covers(const struct frontier *f, const struct frontier *of);
/* Adds: `lanes` of agent up to epoch. `all` are all lanes of the agent; if they are all known
 * afterwards, no partial remains. */
void frontier_add(struct clock_space *s, struct frontier *f, enum plane plane,
	uint32_t agent, uint32_t lanes, uint32_t all, uint32_t epoch);
/* Grows f so that g can be indexed by every agent. */
void frontier_fit(struct clock_space *s, struct frontier *f);
/* The agents a with a % step in [first, first + n) */
struct agent_range { uint32_t first, n, step; };
/* P := P u G: a proxy fence over what is known of the range's generic agents */
void frontier_fence(struct clock_space *s, struct frontier *f, struct agent_range r);
/* Adds what f knows of the agent in G, of whichever kind, to its sparse plane `to`. */
void frontier_fence_agent(struct clock_space *s, struct frontier *f, enum plane to, uint32_t agent);
/* Q := Q u G: a proxy fence over global memory */
void frontier_fence_global(struct clock_space *s, struct frontier *f);
/* HALF := HALF u G, and P := P u HALF: the two halves of such a fence */
void frontier_half(struct clock_space *s, struct frontier *f, struct agent_range r);
void frontier_whole(struct clock_space *s, struct frontier *f);
/* Adds what `from` knows in `plane` and in `to` to f's plane `to`, which is sparse and not Q. */
void frontier_join_as(struct frontier *f, enum plane to, const struct frontier *from,
	enum plane plane);
/* The same for what it knows of n agents. */
void frontier_join_range_as(struct frontier *f, enum plane to, const struct frontier *from,
	enum plane plane, uint32_t first, uint32_t n);
/* Adds what `from` knows to f, for shared memory only. */
void frontier_join_shared(struct clock_space *s, struct frontier *f, const struct frontier *from);

static inline uint32_t frontier_full(const struct clock_space *s, const struct frontier *f,
	enum plane plane, uint32_t agent)
{
	if (plane == PLANE_P && agent < s->ngeneric)
		return f->p[agent];
	if (plane == PLANE_Q)
		return f->q && agent < s->ngeneric ? f->q[agent] : 0;
	if (plane >= PLANE_MEMORY)
		return 0;
	return agent < f->cap ? f->g[agent] : 0;
}

/* The lanes of agent whose `epoch` f knows. */
uint32_t frontier_lanes(const struct clock_space *s, const struct frontier *f,
	enum plane plane, uint32_t agent, uint32_t epoch);
/* Does f know `epoch` of all these lanes of agent, of one of them, in PLANE_G? */
bool frontier_knows(const struct clock_space *s, const struct frontier *f, uint32_t agent,
	uint32_t lanes, uint32_t epoch);
bool frontier_knows_one(const struct clock_space *s, const struct frontier *f, uint32_t agent,
	uint32_t lanes, uint32_t epoch);

#endif
