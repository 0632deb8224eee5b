/* refuse: invalid operand values: size, alignment, location, owner, count. Used by the
 * executor before it acts on operands and by the decoder of GPU records afterwards.
 * Pure functions: they keep no state and report nothing.
 *
 * Each refuse_x() returns whether the operands are invalid; if so, *r has the reason. */
#ifndef CONSAN_REFUSE_H
#define CONSAN_REFUSE_H

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"

struct ptx_func;

struct refusal { /* what EV_FAULT carries */
	uint8_t mode;              /* FAULT_ */
	uint8_t space;             /* enum ev_space */
	uint32_t size;
	uint64_t addr;
	char why[200];
};

/* How a CTA sees its cluster's shared memory. An address there is
 * rank << 24 | offset; bytes: of each CTA. */
#define SHARED_RANK(a) ((uint32_t)(a) >> 24)
#define SHARED_OFFSET(a) ((uint32_t)(a) & 0xffffffu)
struct shared_view { uint32_t rank, nctas, bytes; };

bool refusal_set(struct refusal *r, unsigned mode, enum ev_space space, uint64_t addr,
	uint64_t size, const char *fmt, ...) PRINTF_LIKE(6, 7); /* fills *r; true */

/* ---- addresses ---- */

static inline bool refuse_align(struct refusal *r, enum ev_space space, uint64_t addr,
	uint64_t bytes, uint32_t align)
{
	return align > 1 && (addr & (align - 1)) && refusal_set(r, FAULT_MISALIGNED, space, addr, bytes,
		"the address must be a multiple of %u", align);
}

bool refuse_outside(struct refusal *r, const struct shared_view *v, bool cluster, uint64_t addr,
	uint64_t bytes);
/* cluster: the address may be in any CTA of the cluster, otherwise only in the own one. */
static inline bool refuse_shared(struct refusal *r, const struct shared_view *v, bool cluster,
	uint64_t addr, uint64_t bytes)
{
	uint32_t at = SHARED_OFFSET(addr), rank = SHARED_RANK(addr);

	return (addr >> 32 || (rank != v->rank && (!cluster || rank >= v->nctas)) ||
		at > v->bytes || bytes > v->bytes - at) && refuse_outside(r, v, cluster, addr, bytes);
}

/* The address is outside every allocation. from, bytes: the last allocation that
 * begins at or below addr; bytes 0: there is none. Always true. */
bool refuse_global(struct refusal *r, uint64_t addr, uint64_t size, uint64_t from, uint64_t bytes);
/* mapa. */
bool refuse_rank(struct refusal *r, const struct shared_view *v, uint64_t addr, uint32_t rank);
bool refuse_mapa(struct refusal *r, uint64_t addr); /* true */

/* ---- matrices, cp.async ---- */

bool refuse_matrix(struct refusal *r, const struct shared_view *v, enum ev_space space,
	uint32_t owner, uint64_t addr);
bool refuse_st_bulk(struct refusal *r, enum ev_space space, uint64_t addr, uint64_t bytes);
/* read: what is read of `size`; without a source (read 0) src does not matter. */
bool refuse_cp_read(struct refusal *r, uint64_t src, uint32_t size, uint32_t read);
bool refuse_cp_align(struct refusal *r, uint64_t dst, uint64_t src, uint32_t size, uint32_t read);
bool refuse_cp_owner(struct refusal *r, const struct shared_view *v, enum ev_space space,
	uint32_t owner, uint64_t addr, uint32_t size);

/* ---- bulk copies, st.async ---- */

bool refuse_bulk_size(struct refusal *r, uint64_t shared, uint32_t bytes);
/* For either side of the copy. */
bool refuse_bulk_align(struct refusal *r, enum ev_space space, uint64_t addr, uint32_t bytes);
bool refuse_box_align(struct refusal *r, uint64_t addr, uint32_t bytes, uint32_t align);
bool refuse_map_align(struct refusal *r, uint64_t addr);
/* The memory is in CTA `owner`, but must be in the acting CTA. */
bool refuse_bulk_owner(struct refusal *r, const struct shared_view *v, uint32_t owner, uint64_t at,
	uint32_t bytes);
/* pair: the destination's neighbour may own the mbarrier, too. */
bool refuse_signal(struct refusal *r, uint32_t owner, uint32_t mbar_owner, uint64_t mbar,
	bool pair);
/* A copy from shared to shared memory in this launch. */
bool refuse_peer(struct refusal *r, const struct launch_info *l, uint64_t at, uint32_t bytes);
bool refuse_ctas(struct refusal *r, const struct shared_view *v, uint32_t mask, uint64_t at,
	uint32_t bytes);
/* clusterlaunchcontrol.try_cancel: response and mbarrier, both in shared memory of the cluster */
bool refuse_cancel(struct refusal *r, const struct shared_view *v, uint64_t response, uint64_t mbar);
bool refuse_red_async(struct refusal *r, const struct shared_view *v, uint32_t owner, uint64_t at,
	uint32_t bytes);

/* ---- mbarriers, barriers, warps ---- */

static inline bool refuse_mbar_align(struct refusal *r, uint64_t addr)
{
	return addr & 7 && refusal_set(r, FAULT_MB_PLACE, SP_SHARED, addr, 8,
		"the address must be a multiple of 8");
}
static inline bool refuse_mbar_owner(struct refusal *r, const struct shared_view *v, uint32_t owner,
	uint64_t at)
{
	return owner != v->rank && refusal_set(r, FAULT_MB_OWNER, SP_SHARED, at, 8,
		"the object lies in the CTA with rank %u", owner);
}
#define NAMED_BARRIERS 16
/* threads: of the CTA, whole warps; arrives: bar.arrive, which needs a count. */
bool refuse_bar(struct refusal *r, uint32_t id, uint32_t count, uint32_t threads, bool arrives);
bool refuse_mask(struct refusal *r, uint32_t mask);
/* ptxas ignores setmaxnreg (C7508) unless it knows the registers of the launch: from .maxnreg, or from
 * .maxntid or .reqntid with .minnctapersm. The ISA says that it may then have no effect. */
bool setmaxnreg_counts(const struct ptx_func *f);
/* has: the warp's registers; 0: not known. */
bool refuse_setmaxnreg(struct refusal *r, uint32_t want, bool inc, uint32_t has);

/* ---- wgmma ---- */

/* name: the operand's; top: its highest piece of 16 bytes. */
bool refuse_matrix_end(struct refusal *r, const struct shared_view *v, const char *name,
	uint64_t desc, uint32_t top);
bool refuse_unlike(struct refusal *r, const char *name, uint64_t desc, uint64_t first);
/* The CTA has fewer than four warps from `warp` on. */
bool refuse_group(struct refusal *r, uint32_t warp, uint32_t nwarps);

#endif
