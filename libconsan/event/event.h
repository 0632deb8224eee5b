/* event: what a kernel did, in the terms of the PTX ISA. The emulator and the decoder of GPU
 * records produce events; the checker, the recorder and the event files consume them.
 *
 *  - An event reports what happened and does not judge it.
 *  - The producer owns every pointer in an event; they are valid during the call.
 *  - The events of one cluster come one after the other from one thread;
 *    different clusters may be handled in parallel, each with its own sink.
 *  - A change of event.def bumps EVENT_VERSION, the version of saved events (io.h). */
#ifndef CONSAN_EVENT_H
#define CONSAN_EVENT_H

#include "libconsan/base/base.h"
#include "launch_info.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENT_VERSION 14

#define EV_PACKED __attribute__((packed)) /* an enum of one byte */

enum EV_PACKED ev_kind {
#define EV(id, member, meaning, fields) EV_##id,
#define EV_LIKE(id, member, like_id, like, meaning) EV_##id,
#include "event.def"
#undef EV_LIKE
#undef EV
	EV_COUNT
};

/* ---- types of fields ---- */

enum EV_PACKED ev_space { SP_ANY, SP_SHARED, SP_GLOBAL, SP_LOCAL, SP_CONST, SP_PARAM, SP_TMEM };

/* PTX memory order of an access, fence, arrive or wait */
enum EV_PACKED ev_sem { SEM_WEAK, SEM_RELAXED, SEM_ACQUIRE, SEM_RELEASE, SEM_ACQ_REL,
	SEM_SC, SEM_VOLATILE, SEM_MMIO };
static inline bool sem_acquires(unsigned sem)
{
	return sem == SEM_ACQUIRE || sem == SEM_ACQ_REL || sem == SEM_SC;
}
static inline bool sem_releases(unsigned sem)
{
	return sem == SEM_RELEASE || sem == SEM_ACQ_REL || sem == SEM_SC;
}
enum EV_PACKED ev_scope { SCOPE_NONE, SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_SYS };

enum EV_PACKED ev_mode { MODE_READ = 1, MODE_WRITE = 2, MODE_RMW = MODE_READ | MODE_WRITE };

enum EV_PACKED ev_access_flags {
	ACCESS_NONCOHERENT = 1 << 0, /* ld.global.nc, textures and surfaces: outside the memory
					model */
	ACCESS_MATRIX = 1 << 1,      /* ldmatrix, stmatrix, wmma: on behalf of the whole warp */
	ACCESS_REDUCTION = 1 << 2,   /* red: a read-modify-write that never acquires */
	ACCESS_FOLLOWED = 1 << 3,    /* a load; LOAD_USED follows if an unwritten value is used */
	ACCESS_FLAG = 1 << 4,        /* a volatile load of a flag (ptx/flag.h) */
	ACCESS_STALE = 1 << 5,       /* a strong load of a value that is not the newest, of a write
					with which no release pattern ends: it synchronizes with nothing */
	ACCESS_VALUES_UNKNOWN = 1 << 6, /* a store: it is not known what it changes */
};

#define ACCESS_VALUE_SAME (1u << 31)

enum EV_PACKED ev_arrive_flags {
	ARRIVE_DROP = 1 << 0,
	ARRIVE_NO_COMPLETE = 1 << 1,
	ARRIVE_EXPECT_TX = 1 << 2,
};

enum EV_PACKED ev_test_flags {
	TEST_TRUE = 1 << 0,          /* the phase is complete */
	TEST_PARITY = 1 << 1,
	TEST_TRY = 1 << 2,           /* try_wait */
	TEST_SUSPENDED = 1 << 3,     /* the wait suspends here; its result is another event */
};

enum EV_PACKED ev_bar { BAR_SYNC, BAR_ARRIVE, BAR_RED };

enum EV_PACKED ev_proxy {
	PROXY_ASYNC,                 /* fence.proxy.async[.space]: both directions */
	PROXY_ASYNC_RELEASE,         /* fence.proxy.async::generic.release.sync_restrict */
	PROXY_ASYNC_ACQUIRE,         /* ... .acquire.sync_restrict */
	PROXY_ALIAS,
	PROXY_TENSORMAP_RELEASE,
	PROXY_TENSORMAP_ACQUIRE,
};

enum EV_PACKED ev_tc { TC_MMA, TC_CP, TC_SHIFT };

/* What a tcgen05.mma does with a collector buffer */
enum EV_PACKED ev_collector { COLLECTOR_NONE, COLLECTOR_FILL, COLLECTOR_USE, COLLECTOR_LASTUSE,
	COLLECTOR_DISCARD };

/* What an operation has in an area of tensor memory */
enum EV_PACKED ev_operand { OPERAND_NONE, OPERAND_D, OPERAND_A, OPERAND_SCALES, OPERAND_METADATA };

enum EV_PACKED ev_fault {
#define FAULT(id, rule, text) FAULT_##id,
#include "fault.def"
#undef FAULT
	FAULT_COUNT
};

/* What blocked lanes wait for. */
enum EV_PACKED ev_wait { WAIT_MBARRIER, WAIT_BAR, WAIT_CLUSTER, WAIT_WARP, WAIT_WARPGROUP,
	WAIT_SETMAXNREG, WAIT_TMEM, WAIT_SPIN };

/* HANG_LOST: what follows is not known, so nothing left over is judged. */
enum EV_PACKED ev_hang { HANG_DEADLOCK, HANG_LIVELOCK, HANG_TIMEOUT, HANG_LOST };

/* Addresses of the event's lanes: lane l acts at base + l * stride, or, if `lane` is not NULL,
 * at lane[l]. A producer that knows that all 32 lanes act and are two halves, in each of which lanes are
 * `stride` bytes apart, may say so (`halves`), which spares consumers the search. */
struct ev_lanes {
	uint64_t base;
	const uint64_t *lane;
	int32_t stride;
	bool halves;                 /* within the process only */
};

struct ev_spans {
	const struct ev_span *at;
	uint32_t n;
};

struct ev_gspans {
	const struct ev_gspan {
		uint64_t addr, bytes; /* global */
	} *at;
	uint32_t n;
};

/* Tensor memory: cells of 32 bits in 128 lanes and 512 columns (PTX ISA, "Tensor Memory"). */
struct ev_areas {
	const struct ev_area {
		uint32_t lanes[4]; /* lane l: bit l % 32 of word l / 32 */
		uint16_t column, columns;
		uint16_t ctas;     /* ranks, a mask */
		enum ev_mode mode;
		enum ev_operand operand;
	} *at;
	uint16_t n;
};

struct ev_regs {
	const uint32_t *at;
	uint16_t n;
};

struct ev_parts {
	uint16_t at[6];
};

/* Lanes of a store that find in memory what they store. Called during the event only. */
struct ev_stored {
	uint32_t (*unchanged)(const struct ev_stored *);
};

/* TYPE(id, type): FIELD(id, ...) of event.def is a member of this type. */
#define EVENT_TYPES(TYPE) \
	TYPE(flag, bool) \
	TYPE(number, uint32_t) \
	TYPE(number64, uint64_t) \
	TYPE(async_op, uint32_t)                    /* of the cluster, from 1 on */ \
	TYPE(tx, int64_t)                           /* of an mbarrier */ \
	TYPE(address, uint64_t)                     /* global */ \
	TYPE(offset, uint32_t)                      /* shared */ \
	TYPE(mask, uint32_t)                        /* of lanes, CTAs or warps */ \
	TYPE(cta, uint16_t)                         /* rank in the cluster */ \
	TYPE(count, uint16_t)                       /* of elements of a list */ \
	TYPE(site, uint32_t)                        /* site.h */ \
	TYPE(space, enum ev_space) \
	TYPE(sem, enum ev_sem) \
	TYPE(scope, enum ev_scope) \
	TYPE(mode, enum ev_mode) \
	TYPE(access_flags, enum ev_access_flags) \
	TYPE(arrive_flags, enum ev_arrive_flags) \
	TYPE(test_flags, enum ev_test_flags) \
	TYPE(bar, enum ev_bar) \
	TYPE(proxy, enum ev_proxy) \
	TYPE(fault, enum ev_fault) \
	TYPE(wait, enum ev_wait) \
	TYPE(hang, enum ev_hang) \
	TYPE(number8, uint8_t) \
	TYPE(tc, enum ev_tc) \
	TYPE(collector, enum ev_collector) \
	TYPE(lanes, struct ev_lanes) \
	TYPE(sources, const uint64_t *)             /* by lane, 32 */ \
	TYPE(spans, struct ev_spans) \
	TYPE(gspans, struct ev_gspans) \
	TYPE(areas, struct ev_areas) \
	TYPE(regs, struct ev_regs) \
	TYPE(text, const char *) \
	TYPE(unwritten, uint32_t *)                 /* within the process only */ \
	TYPE(stored, const struct ev_stored *)      /* within the process only */ \
	TYPE(parts, struct ev_parts)

#define EV_NO_MBARRIER UINT32_MAX

/* ---- events ---- */

#define TYPE(id, type) typedef type event_##id##_t;
EVENT_TYPES(TYPE)
#undef TYPE
#define FIELD(type, name, meaning) event_##type##_t name;
#define EV_LIKE(id, member, like_id, like, meaning)
#define EV(id, member, meaning, fields) struct event_##member { fields };
#include "event.def"
#undef EV_LIKE
#undef EV
#undef FIELD

#define EVENT_WORDS 11 /* of the largest kind */

struct event {
	enum ev_kind kind;
	uint16_t cta;   /* rank in the cluster of the CTA that acts */
	uint16_t warp;  /* in the CTA */
	uint32_t lanes; /* the lanes that act; bit l: lane l. Never 0 */
	uint32_t site;  /* site.h */
	union {
		uint64_t word[EVENT_WORDS]; /* first: an initializer clears all of it */
#define EV(id, member, meaning, fields) struct event_##member member;
#define EV_LIKE(id, member, like_id, like, meaning) struct event_##like member;
#include "event.def"
#undef EV_LIKE
#undef EV
	};
};
_Static_assert(sizeof(struct event) == 16 + 8 * EVENT_WORDS, "EVENT_WORDS fits the union");

static inline uint64_t lane_addr(const struct ev_lanes *at, unsigned lane)
{
	return at->lane ? at->lane[lane] : at->base + (uint64_t)((int64_t)at->stride * (int)lane);
}
static inline uint32_t access_unchanged(const struct event_access *a)
{
	return a->stored ? a->stored->unchanged(a->stored) : a->unchanged;
}
/* May clusters synchronize by this access to global memory? */
static inline bool access_is_strong(const struct event_access *a)
{
	return a->sem != SEM_WEAK || a->mode == MODE_RMW;
}

/* Where the events of one cluster go. */
struct event_sink {
	void (*event)(struct event_sink *, const struct event *);
	bool want_global; /* accesses to global memory are wanted as well */
};

const char *event_name(enum ev_kind kind);
const char *event_fault_text(unsigned fault);
const char *event_fault_rule(unsigned fault); /* "CS903" */
bool event_fault_passed(unsigned fault);      /* the instruction is executed all the same */
const char *event_sem_name(enum ev_sem s);
const char *event_scope_name(enum ev_scope s);

/* ---- the rest of what this module offers ---- */
#include "io.h"
#include "queue.h"
#include "site.h"

#endif
