/* clock: what an agent knows to have happened.
 *
 * Agents of a cluster, in this order:
 *   warp i                generic accesses of warp i; epoch: counted up when
 *                         the warp publishes something
 *   cp.async of warp i    epoch: sequence number of the commit group
 *   ---- generic proxy above (the first `ngeneric`), async below ----
 *   bulk stores of warp i their reads of shared memory; epoch: bulk group
 *   warpgroup j           reads of wgmma; epoch: wgmma group
 *   slot k                one bulk load; epoch: the slot's use
 *
 * A frontier says for every agent up to which epoch *all lanes* are known, in
 * two planes: G, happened before; P, happened before and covered by a
 * proxy fence since (generic agents only). What is known of some lanes only
 * stands in a short exact list, as do the thin planes.
 *
 * House rules: a frontier only grows, except by frontier_clear() and frontier_forget(); knowledge
 * of epoch e is knowledge of every epoch before it, lane by lane. */
#ifndef CONSAN_CHECK_CLOCK_H
#define CONSAN_CHECK_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Planes after P are thin: they stand in the partial list only, as they are
 * empty in all but a few kernels. */
enum plane { PLANE_G, PLANE_P,
	PLANE_HALF,   /* covered by the release half of a uni-directional proxy fence (A21) */
	PLANE_OWN_G, PLANE_OWN_P, /* as to the shared memory of the doer's own CTA only:
			 by a fence.release.sync_restrict::shared::cta (A11) */
	PLANE_HELD,   /* would be known, were a scope on the way not too narrow (B24, G09) */
	PLANE_SOFT_G, PLANE_SOFT_P, /* known if warp collectives ordered memory (A12) */
	PLANE_Q,      /* generic agents: covered by a proxy fence over global memory since */
	PLANE_STORED, /* bulk stores: their writes to global memory are complete */
	PLANE_FENCED, /* asynchronous agents: a proxy fence since (st.async; A27, K6) */
	PLANES };

struct partial {
	uint16_t agent;
	uint16_t plane;
	uint32_t lanes, epoch; /* no two of an agent and a plane share a lane */
};

/* What is known of other clusters of the launch: NULL, nothing, but in the few
 * kernels whose clusters synchronise through global memory. Immutable, counted
 * and shared; foreign.c, foreign.h. */
struct foreign;
void foreign_put(struct foreign *f);                 /* NULL is fine */
struct foreign *foreign_get(struct foreign *f);      /* one more holder */
void foreign_join(struct foreign **f, struct foreign *from);
void foreign_fence(struct foreign **f);
bool foreign_covers(const struct foreign *f, const struct foreign *of);

struct frontier {
	uint32_t *g, *p;        /* [cap], [ngeneric] */
	uint32_t *q;            /* plane Q: [ngeneric], or NULL, which is all 0 */
	struct foreign *foreign;
	/* What would be known, or published, but for a fence of another thread's on
	 * the way: relaxed reads gave `seen`, fences at gpu scope covered `ready`. */
	struct foreign *seen, *ready;
	uint32_t cap;
	bool empty;             /* g, p, q and part were not added to since they were cleared */
	uint32_t npart, cap_part;
	struct partial *part;
	struct frontier *next;  /* while in the pool */
};

/* Lives as long as the frontiers made from it. */
struct clock_space {
	uint32_t ngeneric, nagents;
	struct frontier *pool;
	uint64_t joins;
};

struct frontier *frontier_new(struct clock_space *s); /* empty */
void frontier_put(struct clock_space *s, struct frontier *f); /* NULL is fine */
void clock_space_close(struct clock_space *s); /* frees the pool */

void frontier_clear(struct clock_space *s, struct frontier *f);
void frontier_copy(struct clock_space *s, struct frontier *f, const struct frontier *from);
/* Nothing is known of this generic agent any more. */
void frontier_forget(struct frontier *f, uint32_t agent);
/* Adds all that `from` knows. */
void frontier_join(struct clock_space *s, struct frontier *f, const struct frontier *from);
/* f knows everything that `of` knows */
bool frontier_covers(const struct frontier *f, const struct frontier *of);
/* Adds: `lanes` of agent up to epoch. `all` are the lanes that make the agent
 * whole; if they are among `lanes`, nothing partial remains. */
void frontier_add(struct clock_space *s, struct frontier *f, enum plane plane,
	uint32_t agent, uint32_t lanes, uint32_t all, uint32_t epoch);
/* Makes room, so that g can be indexed by every agent there is. */
void frontier_fit(struct clock_space *s, struct frontier *f);
/* P := P u G: a proxy fence over all that is known; async: over what engines did, too */
void frontier_fence(struct clock_space *s, struct frontier *f, bool async);
/* Q := Q u G: a proxy fence over global memory */
void frontier_fence_global(struct clock_space *s, struct frontier *f);
/* HALF := HALF u G, and P := P u HALF: the two halves of such a fence */
void frontier_half(struct clock_space *s, struct frontier *f, bool async);
void frontier_whole(struct clock_space *s, struct frontier *f);
/* Adds what `from` knows in `plane` (or better) to f's thin plane `to`. */
void frontier_join_as(struct clock_space *s, struct frontier *f, enum plane to,
	const struct frontier *from, enum plane plane);

static inline uint32_t frontier_full(const struct clock_space *s, const struct frontier *f,
	enum plane plane, uint32_t agent)
{
	if (plane == PLANE_P && agent < s->ngeneric)
		return f->p[agent];
	if (plane == PLANE_Q)
		return f->q && agent < s->ngeneric ? f->q[agent] : 0;
	return agent < f->cap ? f->g[agent] : 0;
}

/* The lanes of agent whose `epoch` f knows. */
uint32_t frontier_lanes(const struct clock_space *s, const struct frontier *f,
	enum plane plane, uint32_t agent, uint32_t epoch);

#endif
