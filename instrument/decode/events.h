/* events: what the files share that turn records into events, one file for each kind of
 * instruction; decode.c calls them by effect. Private to this module. */
#ifndef CONSAN_INSTRUMENT_EVENTS_H
#define CONSAN_INSTRUMENT_EVENTS_H

#include "internal.h"

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

/* A GPU stopped the kernel at a fault, with warps anywhere, also within the writing of a
 * record. The executor stops only between instructions. */
static inline bool cut_short(const struct dcluster *c)
{
	return c->job->l->fault && !c->job->l->code->emulated;
}

/* ---- values.c ---- */
struct event record_event(const struct dcluster *c, uint32_t warp, uint32_t site, enum ev_kind kind,
	uint32_t lanes);
/* The site id of the k-th instruction of a record that has several. */
uint32_t record_batch_site(const struct dcluster *c, uint32_t site, uint32_t k);
/* The value of operand o in a lane. A constant is taken from the instruction. */
uint64_t record_value(const struct dcluster *c, const struct record *r, const struct ptx_operand *o,
	unsigned lane);
/* For all of `lanes` at least. */
void record_values(const struct dcluster *c, const struct record *r, const struct ptx_operand *o,
	uint32_t lanes, uint64_t out[32]);
/* The global address of a lane, in a record of PHASE_GLOBAL. */
uint64_t record_global(const struct dcluster *c, const struct record *r, unsigned lane);
/* The lanes of `rest` that have the same value as its first lane. */
uint32_t record_same(const struct dcluster *c, const struct record *r, uint32_t rest,
	const struct ptx_operand *o);
/* The shared addresses of all lanes, with rank: in the record, or copied to `buffer`. */
const uint32_t *record_shared(const struct dcluster *c, const struct record *r,
	const struct ptx_operand *o, uint32_t buffer[32]);
/* access.value of a plain store */
uint32_t record_stored(const struct dcluster *c, const struct record *r);
/* The CTA of an address; addresses without .cluster are of the executing CTA. */
uint16_t record_owner(const struct dcluster *c, const struct event *e, uint64_t a, bool cluster);
/* Sets the addresses of e->lanes: a base and a stride if possible, else a list. */
void record_place(struct ev_lanes *to, uint32_t lanes, const uint64_t at[32]);
/* Sets the offsets of all lanes; at: buffer for a list. */
void record_addresses(struct dcluster *c, struct ev_lanes *to, uint32_t lanes,
	const struct record *r, const struct ptx_operand *o, uint64_t at[32]);

/* ---- access.c, global.c, bulk.c, mbarrier.c, tcgen05.c, wgmma.c, sync.c ---- */
/* Sets the fields of an instruction that accesses memory. */
void record_access(const struct ptx_insn *i, struct event_access *a);
void emit_access(struct dcluster *c, uint32_t warp, const struct record *r);
void emit_global(struct dcluster *c, uint32_t warp, const struct record *r);
/* A tensor map in global memory is read. known: an event of the copy's box follows. */
void emit_map_read(struct dcluster *c, uint32_t warp, uint32_t site, uint32_t lanes,
	const struct decode_box *box, bool known);
void emit_map_change(struct dcluster *c, uint32_t warp, const struct record *r);
void emit_cp_async(struct dcluster *c, uint32_t warp, const struct record *r);
void emit_bulk(struct dcluster *c, uint32_t warp, const struct record *r);
/* still: at a hang, the wait fails up to now. */
void emit_failed_wait(struct dcluster *c, uint32_t warp, const struct record *r, bool still);
/* A token that the lanes' last arrival returned, or that their next wait takes. */
void note_token(struct dcluster *c, uint32_t warp, const struct record *r);
void emit_tcgen05(struct dcluster *c, uint32_t warp, const struct record *r);
/* clusterlaunchcontrol */
void emit_cancel(struct dcluster *c, uint32_t warp, const struct record *r);
/* Lanes of the warp have exited: others may have waited for them only, at an .aligned tcgen05. */
void tcgen05_lanes_left(struct dcluster *c, uint32_t warp);
/* After a fault: lanes that were left at such an instruction. */
void tcgen05_missing(struct dcluster *c);
/* Does the warp wait at this record, its last one? Then what for; buf: for the text. */
bool tcgen05_waits(const struct dcluster *c, uint32_t warp, const struct record *r,
	struct event_blocked *b, char buf[200]);
/* A wait for another CTA's mbarrier. */
void check_remote_wait(struct dcluster *c, uint32_t warp, const struct record *r);
void emit_mbarrier(struct dcluster *c, uint32_t warp, const struct record *r);
/* mbarrier.pending_count */
void emit_pending(struct dcluster *c, uint32_t warp, const struct record *r);
/* The warp reaches an instruction that it recorded: emits its uses of wgmma registers on the
 * path to it. */
void emit_path_uses(struct dcluster *c, uint32_t warp, const struct ptx_insn *i, uint32_t lanes);
/* Emits a collective that was executed on the path to this record. */
void emit_together(struct dcluster *c, uint32_t warp, const struct record *r);
void emit_bar(struct dcluster *c, uint32_t warp, const struct record *r);
void refused_halves(struct dcluster *c);
/* Those that wait with this mask. */
uint32_t meeting_lanes(const struct meeting *m, uint32_t mask);
void emit_warp_sync(struct dcluster *c, uint32_t warp, const struct record *r);
void emit_collective(struct dcluster *c, uint32_t warp, const struct record *r);
void emit_fence(struct dcluster *c, uint32_t warp, const struct record *r);
/* Number of threads of the cluster that have not exited. */
uint32_t cluster_live(const struct dcluster *c);
void emit_cluster(struct dcluster *c, uint32_t warp, const struct record *r);
void emit_grid(struct dcluster *c, uint32_t warp, const struct record *r);
void emit_exit(struct dcluster *c, uint32_t warp, uint32_t site, uint32_t lanes);
void emit_other(struct dcluster *c, uint32_t warp, const struct record *r);

/* ---- gather.c: coarse events, for a pre-check ---- */
/* Gathers what lanes of ldmatrix read or of stmatrix write, what a cp.async of 16 bytes copies.
 * False: it needs an event of its own. */
bool gather_matrix(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o, uint32_t lanes, bool writes);
bool gather_copy(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o);

/* ---- refusals.c: refused operands. A refusal is an event, after which the cluster ends ---- */
struct shared_view record_view(const struct dcluster *c, uint32_t warp);
struct event_fault refusal_event(const struct refusal *why);
void emit_refusal(struct dcluster *c, uint32_t warp, uint32_t id, uint32_t lanes,
	const struct refusal *why);
/* Lanes of the record are refused, unless it is not complete. */
void refused(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t lanes,
	const struct refusal *why);
/* Fast check of all lanes: could one be refused that accesses `bytes` at the address in o,
 * which should be a multiple of `align`? Addresses in another CTA always could. */
bool refusable(const struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o, uint32_t lanes, uint32_t bytes, uint32_t align);
/* True: the GPU stopped the kernel before the record's addresses were written, so that it
 * cannot be used. */
bool refused_torn(const struct dcluster *c, uint32_t warp, const struct record *r);
/* Checks the lanes of e at the addresses in o. */
void refused_access(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o, uint32_t lanes, uint32_t bytes);
/* The same in global memory. */
void refused_global(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t bytes,
	const uint64_t at[32]);
void refused_st_bulk(struct dcluster *c, uint32_t warp, const struct record *r, unsigned lane,
	uint64_t at, uint64_t bytes);
void refused_cp(struct dcluster *c, uint32_t warp, const struct record *r, const uint64_t src[32],
	const uint32_t read[32]);
void refused_async(struct dcluster *c, uint32_t warp, const struct record *r, unsigned lane,
	uint64_t at, uint64_t mbar, uint32_t bytes, bool red);
/* A copy to check: addresses as recorded; other: 0 if it is not known. */
struct record_copy {
	enum plan_copy copy;
	bool tensor, far, pair, multicast;
	uint64_t at, other, mbar;
	uint32_t bytes, extent, align, mask;
	struct ev_gspans global;   /* of the global side, as far as known */
};
void refused_bulk(struct dcluster *c, uint32_t warp, const struct record *r, unsigned lane,
	const struct record_copy *b);
void refused_mbar(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t lanes,
	uint64_t at, bool remote);
/* The record itself means that the rank or address is invalid. */
void refused_rank(struct dcluster *c, uint32_t warp, const struct record *r);
void refused_bar(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t id,
	uint32_t count, bool arrives);
void refused_mask(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t lanes,
	uint32_t mask);
/* Notes lanes at an .aligned access that others of their warp do not execute: those lanes have
 * their next record elsewhere, with other lanes of the warp, or exit. */
void refused_aligned(struct dcluster *c, uint32_t warp, const struct record *r);
/* The executor stopped the kernel: reports what is left at .aligned accesses, where a GPU
 * would have gone on. */
void refused_missing(struct dcluster *c);
void refused_setmaxnreg(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t want,
	bool inc, uint32_t has);

#endif
