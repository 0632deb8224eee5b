/* events: what the files that turn records into events share: one file for each
 * kind of instruction, decode.c calls them by effect. Private to them. */
#ifndef CONSAN_INSTRUMENT_EVENTS_H
#define CONSAN_INSTRUMENT_EVENTS_H

#include "merge.h"

#include "libconsan/ptx/ptx.h"

#define FULL UINT32_MAX
#define EACH_LANE(l, mask) (uint32_t l##_rest = (mask), l; \
	l##_rest && (l = (uint32_t)__builtin_ctz(l##_rest), true); l##_rest &= l##_rest - 1)

/* A shared address is rank << 24 | offset. */
#define OFFSET(a) ((uint32_t)(a) & 0xffffffu)

static inline const struct rewrite_site *record_site(const struct dcluster *c, uint32_t site)
{
	return &c->job->l->code->site.at[site];
}

/* A GPU stopped the kernel at a fault: every warp wherever it was, some in the midst of
 * a record. The executor, whose waits are polls, stops between instructions. */
static inline bool cut_short(const struct dcluster *c)
{
	return c->job->l->fault && !c->job->l->code->polls;
}

/* ---- values.c ---- */
struct event record_event(const struct dcluster *c, uint32_t warp, uint32_t site, enum ev_kind kind,
	uint32_t lanes);
/* site.h's id of a site's k-th instruction that has no record of its own. */
uint32_t record_batch_site(const struct dcluster *c, uint32_t site, uint32_t k);
/* What operand o was in a lane. A constant is the instruction's. */
uint64_t record_value(const struct dcluster *c, const struct record *r, const struct ptx_operand *o,
	unsigned lane);
/* ... in all of `lanes` at least. */
void record_values(const struct dcluster *c, const struct record *r, const struct ptx_operand *o,
	uint32_t lanes, uint64_t out[32]);
/* Where in global memory a lane acts, in a record of PHASE_GLOBAL. */
uint64_t record_global(const struct dcluster *c, const struct record *r, unsigned lane);
/* Lanes of `rest` that have the same value as its first. */
uint32_t record_alike(const struct dcluster *c, const struct record *r, uint32_t rest,
	const struct ptx_operand *o);
/* Where in shared memory all lanes of the record act, rank and offset: in the record
 * or in `room`. */
const uint32_t *record_shared(const struct dcluster *c, const struct record *r,
	const struct ptx_operand *o, uint32_t room[32]);
/* Addresses without .cluster are this CTA's. */
uint16_t record_owner(const struct dcluster *c, const struct event *e, uint64_t a, bool cluster);
/* Addresses of e->lanes, as a base and a stride where they are such. */
void record_place(struct event *e, uint64_t at[32]);
/* The offsets of all lanes, affine or not; at: room for them. */
void record_addresses(struct dcluster *c, struct event *e, const struct record *r,
	const struct ptx_operand *o, uint64_t at[32]);

/* ---- access.c, global.c, bulk.c, mbarrier.c, wgmma.c, sync.c ---- */
/* What an instruction that accesses memory says of itself. */
void record_access(const struct ptx_insn *i, struct event *e);
void tell_access(struct dcluster *c, uint32_t warp, const struct record *r);
void tell_global(struct dcluster *c, uint32_t warp, const struct record *r);
/* A tensor map in global memory is read; known: a copy of its box will be told. */
void tell_map_read(struct dcluster *c, uint32_t warp, uint32_t site, uint32_t lanes,
	const struct decode_box *box, bool known);
void tell_map_change(struct dcluster *c, uint32_t warp, const struct record *r);
void tell_cp_async(struct dcluster *c, uint32_t warp, const struct record *r);
void tell_bulk(struct dcluster *c, uint32_t warp, const struct record *r);
void tell_failed_wait(struct dcluster *c, uint32_t warp, const struct record *r);
/* What the last arrival of lanes returned, or their next wait waits by. */
void tell_token(struct dcluster *c, uint32_t warp, const struct record *r);
/* A wait for another CTA's mbarrier. */
void tell_stray(struct dcluster *c, uint32_t warp, const struct record *r);
void tell_mbarrier(struct dcluster *c, uint32_t warp, const struct record *r);
/* mbarrier.pending_count */
void tell_pending(struct dcluster *c, uint32_t warp, const struct record *r);
/* The warp comes to an instruction of which it has a record: what it did on
 * its way with the registers of wgmma. */
void tell_way(struct dcluster *c, uint32_t warp, const struct ptx_insn *i, uint32_t lanes);
void tell_bar(struct dcluster *c, uint32_t warp, const struct record *r);
void tell_halves(struct dcluster *c);
void tell_warp_sync(struct dcluster *c, uint32_t warp, const struct record *r);
void tell_meeting(struct dcluster *c, uint32_t warp, const struct record *r);
void tell_fence(struct dcluster *c, uint32_t warp, const struct record *r);
/* Threads of the cluster that have not exited. */
uint32_t cluster_live(const struct dcluster *c);
void tell_cluster(struct dcluster *c, uint32_t warp, const struct record *r);
void tell_grid(struct dcluster *c, uint32_t warp, const struct record *r);
void tell_leave(struct dcluster *c, uint32_t warp, uint32_t site, uint32_t lanes);
void tell_other(struct dcluster *c, uint32_t warp, const struct record *r);

/* ---- gather.c: coarse events, for a pre-check ---- */
/* Gathers what lanes of ldmatrix read or of stmatrix write, what a cp.async of 16 bytes copies.
 * False: it needs an event of its own. */
bool gather_matrix(struct dcluster *c, uint32_t warp, const struct record *r, const struct ptx_operand *o,
	uint32_t lanes, bool writes);
bool gather_copy(struct dcluster *c, uint32_t warp, const struct record *r, const struct ptx_operand *o);

/* ---- refusals.c: operands that may not be. What is refused is told, and the
 * cluster goes no further ---- */
struct shared_view record_view(const struct dcluster *c, uint32_t warp);
void tell_refusal(struct dcluster *c, uint32_t warp, uint32_t id, uint32_t lanes,
	const struct refusal *why);
/* One look at all lanes: may one of them be refused, `bytes` at what o was, which
 * should be multiples of `align`? Those that reach into another CTA always may. */
bool refusable(const struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o, uint32_t lanes, uint32_t bytes, uint32_t align);
/* Its addresses never came to memory, as the GPU stopped the kernel: nothing can be said of it. */
bool refused_torn(const struct dcluster *c, uint32_t warp, const struct record *r);
/* Of the lanes of e at the addresses that o had. */
void refused_access(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o, const struct event *e);
/* The same in global memory. */
void refused_global(struct dcluster *c, uint32_t warp, const struct record *r, const struct event *e,
	const uint64_t at[32]);
void refused_st_bulk(struct dcluster *c, uint32_t warp, const struct record *r, unsigned lane,
	uint64_t at, uint64_t bytes);
void refused_cp(struct dcluster *c, uint32_t warp, const struct record *r, const uint64_t src[32],
	const uint32_t read[32]);
void refused_async(struct dcluster *c, uint32_t warp, const struct record *r, unsigned lane,
	uint64_t at, uint64_t mbar, uint32_t bytes, bool red);
/* Addresses as recorded; other: 0 if it is not known. */
struct record_copy {
	enum plan_copy copy;
	bool tensor, far, pair, multicast;
	uint64_t at, other, mbar;
	uint32_t bytes, extent, align, mask;
	const struct ev_gspan *gspans; /* of the global side, as far as it is known */
	uint32_t ngspans;
};
void refused_bulk(struct dcluster *c, uint32_t warp, const struct record *r, unsigned lane,
	const struct record_copy *b);
void refused_mbar(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t lanes,
	uint64_t at, bool remote);
/* It is recorded because it is bad. */
void refused_rank(struct dcluster *c, uint32_t warp, const struct record *r);
void refused_bar(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t id,
	uint32_t count, bool arrives);
void refused_mask(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t lanes,
	uint32_t mask);
/* Lanes at an .aligned access that some of their warp do not execute: those are recorded
 * elsewhere next, together with these, or exit. */
void refused_aligned(struct dcluster *c, uint32_t warp, const struct record *r);
/* The executor has stopped the kernel: where it stands, which is where a GPU goes on. */
void refused_behind(struct dcluster *c);
void refused_setmaxnreg(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t want,
	bool inc, uint32_t has);

#endif
