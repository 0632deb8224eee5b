/* event: the narrow waist between whoever runs a kernel and whoever checks it.
 *
 * House rules:
 *  - an event says what happened, in the ISA's terms, never what it means;
 *  - producers own every pointer in an event; they are valid during the call;
 *  - the events of one cluster arrive one after the other from one thread;
 *    different clusters may arrive in parallel, each at its own sink;
 *  - a new field or kind bumps EVENT_VERSION (the saved format, event_io.h). */
#ifndef CONSAN_EVENT_H
#define CONSAN_EVENT_H

#include "libconsan/base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENT_VERSION 5

enum ev_kind {
#define EV(id, fields, meaning) EV_##id,
#include "event.def"
#undef EV
	EV_COUNT
};

enum ev_space { SP_ANY, SP_SHARED, SP_GLOBAL, SP_LOCAL, SP_CONST, SP_PARAM, SP_TMEM };

/* PTX memory order of an access, fence, arrive or wait */
enum ev_sem { SEM_WEAK, SEM_RELAXED, SEM_ACQUIRE, SEM_RELEASE, SEM_ACQ_REL,
	SEM_SC, SEM_VOLATILE, SEM_MMIO };
static inline bool sem_acquires(unsigned sem)
{
	return sem == SEM_ACQUIRE || sem == SEM_ACQ_REL || sem == SEM_SC;
}
static inline bool sem_releases(unsigned sem)
{
	return sem == SEM_RELEASE || sem == SEM_ACQ_REL || sem == SEM_SC;
}
enum ev_scope { SCOPE_NONE, SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_SYS };

/* mode of EV_ACCESS, EV_REGS and the two sides of EV_BULK (bits) */
enum { EVM_READ = 1, EVM_WRITE = 2, EVM_RMW = 3 };

/* flags */
enum {
	EVF_NC         = 1 << 0, /* ACCESS: ld.global.nc, outside the model */
	EVF_MATRIX     = 1 << 1, /* ACCESS: ldmatrix/stmatrix, on behalf of the whole warp */
	EVF_RED        = 1 << 2, /* ACCESS: red, an RMW that never acquires */
	EVF_FOLLOWED   = 1 << 3, /* ACCESS: a load, and USED follows if what nobody wrote is used */
	EVF_ALL        = 1 << 0, /* CP_WAIT */
	EVF_NOINC      = 1 << 0, /* CP_ARRIVE */
	EVF_READ       = 1 << 0, /* BULK_WAIT: .read */
	EVF_TENSOR     = 1 << 1, /* BULK: cp.async.bulk.tensor */
	EVF_REDUCE     = 1 << 2, /* BULK: cp.reduce */
	EVF_MULTICAST  = 1 << 3, /* BULK: `mask` holds the destination CTAs */
	EVF_PREFETCH   = 1 << 4, /* BULK: a hint, no effect */
	EVF_GENERIC    = 1 << 5, /* BULK: st.async, red.async: in the generic proxy */
	EVF_DROP       = 1 << 0, /* MB_ARRIVE */
	EVF_NOCOMPLETE = 1 << 1,
	EVF_EXPECT     = 1 << 2,
	EVF_TRUE       = 1 << 0, /* MB_TEST */
	EVF_PARITY     = 1 << 1,
	EVF_TRY        = 1 << 2,
	EVF_BLOCKED    = 1 << 3,
	EVF_SCALE_D    = 1 << 0, /* WG_MMA: the accumulator is read */
	EVF_MOVE       = 1 << 0, /* REGS: a plain mov, which a compiler may have placed */
	EVF_ALIGNED    = 1 << 0, /* CLUSTER_* */
	EVF_STRAY      = 1 << 0, /* WARP_MEET: it is a shfl, and these lanes read others
				    that do not take part */
};

/* mode of EV_BAR_ARRIVE */
enum { EVB_SYNC, EVB_ARRIVE, EVB_RED };

/* mode of EV_FENCE_PROXY */
enum { EVP_ASYNC,            /* fence.proxy.async[.space]: both directions */
	EVP_ASYNC_RELEASE,   /* fence.proxy.async::generic.release.sync_restrict */
	EVP_ASYNC_ACQUIRE,   /* ... .acquire.sync_restrict */
	EVP_ALIAS,
	EVP_TENSORMAP_RELEASE, EVP_TENSORMAP_ACQUIRE };

/* mode of EV_FAULT */
enum {
#define FAULT(id, rule, text) EVX_##id,
#include "fault.def"
#undef FAULT
	EVX_COUNT
};

/* mode of EV_BLOCKED: what a warp waits for */
enum { EVW_MBARRIER, EVW_BAR, EVW_CLUSTER, EVW_WARP, EVW_WARPGROUP,
	EVW_SETMAXNREG, EVW_SPIN };

/* mode of EV_HANG; lost: what comes now nobody knows, so nothing left over is judged */
enum ev_hang { EVH_DEADLOCK, EVH_LIVELOCK, EVH_TIMEOUT, EVH_LOST };

struct ev_gspan {
	uint64_t addr, bytes; /* global */
};

/* the part of EV_BULK beyond struct event: one side is shared memory
 * (event.peer/addr/size; a tensor box is dense there), the other global.
 *   mode   EVM_READ: shared is the source; EVM_WRITE: shared is the destination
 *   size   bytes on the shared side (0: none, a prefetch)
 *   tx     bytes that the completion subtracts from the tx-count
 *   mask   EVF_MULTICAST: destination CTA ranks
 *   lane_src  copy from shared to shared memory: the source's address in the
 *          acting CTA; else NULL
 *   mbar   completes on the mbarrier at offset `mbar` of CTA `mbar_peer`,
 *          or by bulk group when mbar == EV_NO_MBAR
 * spans, if there are any, are the pieces of the shared side, which has holes
 * then: size is from the first byte to the last.
 * spans of ACCESS and CP_ASYNC, if there are any, are several instructions' together, of
 * any of the lanes; only from who was not asked for more than whether something is found.
 * gspans is filled only if the sink asks for global memory (event_sink). */
#define EV_NO_MBAR UINT32_MAX

struct event {
	uint8_t kind;   /* enum ev_kind */
	uint8_t space;  /* enum ev_space */
	uint8_t mode;
	uint8_t sem;    /* enum ev_sem */
	uint8_t scope;  /* enum ev_scope */
	uint8_t flags;
	uint16_t cta;   /* rank in the cluster of the CTA that acts */
	uint16_t warp;  /* in the CTA */
	uint16_t peer;  /* rank of the CTA whose shared memory is meant */
	uint32_t lanes; /* the lanes that act; bit l: lane l. Never 0 */
	uint32_t site;  /* site.h */
	uint32_t size;
	uint32_t count;
	uint32_t op;    /* async operation: unique in the cluster, from 1 */
	uint32_t mask;
	uint32_t mbar;
	uint16_t mbar_peer;
	uint16_t src_size;
	int32_t stride;
	uint64_t addr;  /* lane l acts at addr + l * stride ...            */
	const uint64_t *lane_addr; /* ... or, when not NULL, at lane_addr[l] */
	const uint64_t *lane_src;
	int64_t tx;
	const struct ev_span *spans;
	const struct ev_gspan *gspans;
	const uint32_t *regs;   /* REGS; WG_MMA: first regs_d, then regs_a */
	uint16_t nspans, ngspans, nregs_d, nregs_a;
	uint16_t part[6];       /* WG_MMA: part i is spans[part[i]..part[i+1]) */
	const char *text;
	/* EVF_FOLLOWED, while it happens: the checker ors in the lanes that load what
	 * nobody wrote. NULL: nobody asks */
	uint32_t *unwritten;
};

static inline uint64_t event_lane_addr(const struct event *e, unsigned lane)
{
	return e->lane_addr ? e->lane_addr[lane]
		: e->addr + (uint64_t)((int64_t)e->stride * (int)lane);
}
/* Is `count` another site? */
static inline bool event_counts_site(const struct event *e)
{
	return e->kind == EV_USED || e->kind == EV_FAULT;
}

/* Where the events of one cluster go. */
struct event_sink {
	void (*event)(struct event_sink *, const struct event *);
	bool want_global; /* accesses to global memory are wanted, too */
};

/* What is known of a launch before its first event. */
struct launch_info {
	const char *kernel;      /* mangled name */
	uint32_t id;             /* how many launches came before, in this process */
	uint32_t grid[3], block[3], cluster[3];
	/* Some clusters may be split into smaller ones of these sizes: cluster ids
	 * from cluster_whole() on count them, as if there were no others. 0: none */
	uint32_t fallback[3];
	uint32_t shared_static, shared_dynamic; /* bytes per CTA */
	uint32_t regs_per_thread; /* at entry, for setmaxnreg */
	uint32_t sm;              /* 90 for sm_90a */
	uint64_t seed;
	uint64_t queue;           /* launches of one queue begin in order ... */
	bool programmatic;        /* ... this one perhaps before the one before has ended */
	bool apart;               /* nothing in the kernel hands anything over from cluster to
				     cluster: no strong write to global memory, no griddepcontrol */
	const struct ev_symbol {  /* named shared variables */
		const char *name;
		uint32_t addr, bytes;
	} *symbols;
	size_t nsymbols;
};

/* One cluster of a launch. ctaid of rank r: see cluster_ctaid() in event.c. */
struct cluster_info {
	const struct launch_info *launch;
	uint32_t id;             /* linear cluster id in the grid */
	uint32_t nctas;
	uint32_t warps_per_cta;
	struct recorder *recorder; /* remembers its steps (recorder.h), or NULL */
};

const char *event_name(enum ev_kind kind);
const char *event_fault_text(unsigned fault);
const char *event_fault_rule(unsigned fault); /* "CS903" */
const char *event_sem_name(enum ev_sem s);
const char *event_scope_name(enum ev_scope s);
/* How many clusters of the size `cluster` make up the grid. */
uint32_t cluster_whole(const struct launch_info *l);
/* Its sizes: the launch's cluster, or fallback. Never 0. */
void cluster_dims(const struct cluster_info *c, uint32_t dims[3]);
/* blockIdx of the CTA with this rank in this cluster */
void cluster_ctaid(const struct cluster_info *c, unsigned rank, uint32_t id[3]);

/* ---- the rest of what this module offers ---- */
#include "io.h"
#include "site.h"

#endif
