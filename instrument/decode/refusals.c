/* refusals: checks recorded operands by the rules of the executor (refuse.h). Hooks write a
 * record before the instruction is executed, so there is a record of what a GPU stops at, and
 * of what a GPU executes although the PTX ISA forbids it. A refusal ends its cluster, as what
 * happens after it is undefined. */
#include "events.h"

#include "libconsan/ptx/opcodes.h"
#include "libconsan/ptx/ptx.h"

#define ANY_OFFSET (1u << 24)

struct shared_view record_view(const struct dcluster *c, uint32_t warp)
{
	return (struct shared_view){ warp / c->info.warps_per_cta, c->info.nctas,
		c->job->l->shared ? c->job->l->shared : ANY_OFFSET };
}

struct event_fault refusal_event(const struct refusal *why)
{
	return (struct event_fault){ .fault = (enum ev_fault)why->mode, .text = why->why,
		.space = (enum ev_space)why->space, .addr = why->addr, .bytes = why->size };
}

void emit_refusal(struct dcluster *c, uint32_t warp, uint32_t id, uint32_t lanes,
	const struct refusal *why)
{
	struct event e = record_event(c, warp, 0, EV_FAULT, lanes);

	e.site = id;
	e.fault = refusal_event(why);
	emit(c, &e);
	c->stopped = true;
	c->result.refused = c->info.id + 1;
}

/* A fault stops all warps, some of them while they write a record, which is then the last of
 * its stream. */
static bool may_be_torn(const struct dcluster *c, uint32_t warp, const struct record *r)
{
	return cut_short(c) && c->stream.at[c->warp[warp].current].clock == UINT64_MAX &&
		!(r->affine && c->job->info[r->site].plan.class != PLAN_LANES);
}

/* The first value of each member is an address. */
static bool torn_group(const struct dcluster *c, const struct record *r)
{
	const struct rewrite_site *s = record_site(c, r->site);

	for (unsigned k = 1; k <= s->nmembers; k++)
		for EACH_LANE(l, r->lanes)
			if (!(s->class == PLAN_ADDRESS ? r->words[l] : record_word(c, r, l, s[k].value[0].word)))
				return true;
	return false;
}

/* An address of 0 means that it was not written. */
bool refused_torn(const struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct plan *p = &c->job->info[r->site].plan;

	if (!may_be_torn(c, warp, r) || record_site(c, r->site)->phase == PHASE_BATCH)
		return false;
	if (record_site(c, r->site)->phase == PHASE_GROUP)
		return torn_group(c, r);
	for (unsigned k = 0; k < p->nvalues; k++)
		if (p->value[k].kind == VAL_SHARED)
			for EACH_LANE(l, r->lanes)
				if (!record_value(c, r, p->value[k].o, l))
					return true;
	return false;
}

/* Is the operand that would be refused missing? The words of a lane are written in order. */
static bool torn(const struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct site_info *s = &c->job->info[r->site];

	if (!may_be_torn(c, warp, r))
		return false;
	for EACH_LANE(l, r->lanes)
		switch ((enum plan_class)s->plan.class) {
		case PLAN_NOTHING: return false;
		case PLAN_UNIFORM: return !r->words[s->lane_words - 1];
		case PLAN_ADDRESS: if (!r->words[l]) return true; break;
		case PLAN_GLOBAL: if (!r->words[2 * l + 1]) return true; break;
		case PLAN_LANES: if (!record_word(c, r, l, s->lane_words - 1u)) return true; break;
		}
	return false;
}

void refused(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t lanes,
	const struct refusal *why)
{
	if (!torn(c, warp, r))
		emit_refusal(c, warp, c->job->l->site[r->site], lanes, why);
}

/* ---- accesses ---- */

/* Addresses below `own` wrap around and are larger than the limit. */
bool refusable(const struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o, uint32_t lanes, uint32_t bytes, uint32_t align)
{
	const struct shared_view v = record_view(c, warp);
	const uint32_t own = v.rank << 24, limit = v.bytes - bytes;
	uint32_t odd = 0, bad = bytes > v.bytes, first = (uint32_t)__builtin_ctz(lanes);
	uint32_t last = 31 - (uint32_t)__builtin_clz(lanes), a, b;
	uint32_t buffer[32];
	const uint32_t *at;

	if (c->job->info[r->site].plan.class == PLAN_ADDRESS && r->affine) {
		a = r->base + (uint32_t)r->stride * (first - (uint32_t)__builtin_ctz(r->lanes));
		b = a + (uint32_t)r->stride * (last - first);
		return bad || a - own > limit || b - own > limit ||
			((a | (first != last ? (uint32_t)r->stride : 0)) & (align - 1));
	}
	at = record_shared(c, r, o, buffer);
	if (lanes == FULL) { /* a loop that the compiler can vectorise */
		for (unsigned l = 0; l < 32; l++) {
			odd |= at[l];
			bad |= at[l] - own > limit;
		}
		return bad || odd & (align - 1);
	}
	for EACH_LANE(l, lanes) {
		odd |= at[l];
		bad |= at[l] - own > limit;
	}
	return bad || odd & (align - 1);
}

static uint32_t access_align(const struct ptx_insn *i, uint32_t bytes)
{
	struct wmma_part part;

	return wmma_is(i) && wmma_part_of(i, &part) ? wmma_align(&part) : bytes;
}

void refused_access(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o, uint32_t lanes, uint32_t bytes)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const bool far = ptx_space_of(i, 0) != PS_shared;
	const bool matrix = i->op == OP_ldmatrix || i->op == OP_stmatrix;
	const struct shared_view v = record_view(c, warp);
	const uint32_t align = access_align(i, bytes);
	struct refusal why;

	if (!refusable(c, warp, r, o, lanes, bytes, align))
		return;
	for EACH_LANE(l, lanes) {
		uint64_t at = record_value(c, r, o, l);

		if (!refuse_align(&why, SP_SHARED, at, bytes, align) &&
				!refuse_shared(&why, &v, far, at, bytes) &&
				!(matrix && refuse_matrix(&why, &v, SP_SHARED, SHARED_RANK(at), at)))
			continue;
		refused(c, warp, r, 1u << l, &why);
		return;
	}
}

/* The allocation found last at the same site nearly always fits. */
static bool outside(struct dcluster *c, uint32_t site, uint64_t at, uint64_t bytes,
	struct refusal *why)
{
	const struct decode_launch *l = c->job->l;
	uint64_t *from = &c->place[site % PLACES].from, *size = &c->place[site % PLACES].bytes;

	if (!bytes || (at - *from < *size && bytes <= *size - (at - *from)))
		return false;
	if (!l->memory || !l->memory(l->user, at, from, size)) {
		*size = 0;
		return false;
	}
	return (at - *from >= *size || bytes > *size - (at - *from)) &&
		refuse_global(why, at, bytes, *from, *size);
}

void refused_global(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t bytes,
	const uint64_t at[32])
{
	const uint32_t align = access_align(record_site(c, r->site)->insn, bytes);
	struct refusal why;

	for EACH_LANE(l, r->lanes) {
		if (!refuse_align(&why, SP_GLOBAL, at[l], bytes, align) &&
				!outside(c, r->site, at[l], bytes, &why))
			continue;
		refused(c, warp, r, 1u << l, &why);
		return;
	}
}

void refused_st_bulk(struct dcluster *c, uint32_t warp, const struct record *r, unsigned lane,
	uint64_t at, uint64_t bytes)
{
	const bool far = ptx_space_of(record_site(c, r->site)->insn, 0) != PS_shared;
	const struct shared_view v = record_view(c, warp);
	struct refusal why;

	if (bytes && (refuse_align(&why, SP_SHARED, at, bytes, 8)
			|| refuse_shared(&why, &v, far, at, bytes)
			|| refuse_st_bulk(&why, SP_SHARED, SHARED_OFFSET(at), bytes)))
		refused(c, warp, r, 1u << lane, &why);
}

/* ---- copies ---- */

/* The sources are known with --gpu-global. read: of 32 lanes. */
void refused_cp(struct dcluster *c, uint32_t warp, const struct record *r, const uint64_t src[32],
	const uint32_t read[32])
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const bool far = ptx_space_of(i, 0) != PS_shared, global = decodes_global(c->job);
	const struct shared_view v = record_view(c, warp);
	uint32_t size = (uint32_t)i->operand[2].imm, over = 0;
	struct refusal why;

	for (unsigned l = 0; l < 32; l++)
		over |= read[l] > size;
	for EACH_LANE(l, over ? r->lanes : 0) {
		if (!refuse_cp_read(&why, src[l], size, read[l]))
			continue;
		refused(c, warp, r, 1u << l, &why);
		return;
	}
	if (!global && !refusable(c, warp, r, &i->operand[0], r->lanes, size, size))
		return;
	for EACH_LANE(l, r->lanes) {
		uint64_t to = record_value(c, r, &i->operand[0], l);

		if (!refuse_cp_align(&why, to, global ? src[l] : 0, size, read[l]) &&
				!refuse_shared(&why, &v, far, to, size) &&
				!refuse_cp_owner(&why, &v, SP_SHARED, SHARED_RANK(to), to, size) &&
				!(global && outside(c, r->site, src[l], read[l], &why)))
			continue;
		refused(c, warp, r, 1u << l, &why);
		return;
	}
}

void refused_async(struct dcluster *c, uint32_t warp, const struct record *r, unsigned lane,
	uint64_t at, uint64_t mbar, uint32_t bytes, bool red)
{
	const struct shared_view v = record_view(c, warp);
	struct refusal why;

	if (refuse_align(&why, SP_SHARED, at, bytes, bytes) || refuse_shared(&why, &v, true, at, bytes) ||
			refuse_mbar_align(&why, mbar) || refuse_shared(&why, &v, true, mbar, 8) ||
			refuse_signal(&why, SHARED_RANK(at), SHARED_RANK(mbar), SHARED_OFFSET(mbar), false) ||
			(red && refuse_red_async(&why, &v, SHARED_RANK(at), SHARED_OFFSET(at), bytes)))
		refused(c, warp, r, 1u << lane, &why);
}

static bool bad_shared(struct refusal *why, const struct shared_view *v,
	const struct record_copy *b)
{
	const uint32_t rank = SHARED_RANK(b->at);

	return (b->tensor ? refuse_box_align(why, b->at, b->bytes, b->align)
			: refuse_bulk_align(why, SP_SHARED, b->at, b->bytes)) ||
		refuse_shared(why, v, b->far, b->at, b->extent) ||
		((b->copy == COPY_STORE || !b->far) && refuse_bulk_owner(why, v, rank, SHARED_OFFSET(b->at),
			b->bytes));
}

static bool bad_signal(struct refusal *why, const struct shared_view *v,
	const struct record_copy *b)
{
	return refuse_mbar_align(why, b->mbar) || refuse_shared(why, v, b->far || b->pair, b->mbar, 8) ||
		refuse_signal(why, SHARED_RANK(b->at), SHARED_RANK(b->mbar), SHARED_OFFSET(b->mbar), b->pair);
}

/* The other side: shared memory of the executing CTA, or global memory. */
static bool bad_other(struct dcluster *c, uint32_t site, struct refusal *why,
	const struct shared_view *v, const struct record_copy *b)
{
	const bool peer = b->copy == COPY_PEER;

	if (peer && refuse_peer(why, c->info.launch, SHARED_OFFSET(b->other), b->bytes))
		return true;
	if (!b->tensor && (refuse_bulk_size(why, b->at, b->bytes) ||
			refuse_bulk_align(why, peer ? SP_SHARED : SP_GLOBAL, b->other, b->bytes) ||
			(peer && b->bytes && refuse_shared(why, v, false, b->other, b->bytes))))
		return true;
	for (uint32_t k = 0; k < b->global.n; k++)
		if (outside(c, site, b->global.at[k].addr, b->global.at[k].bytes, why))
			return !b->tensor || refusal_set(why, FAULT_GLOBAL_OOB, SP_GLOBAL, b->global.at[k].addr,
				b->global.at[k].bytes, "the tensor map describes memory outside every allocation");
	return false;
}

void refused_bulk(struct dcluster *c, uint32_t warp, const struct record *r, unsigned lane,
	const struct record_copy *b)
{
	const struct shared_view v = record_view(c, warp);
	struct refusal why;

	if (bad_other(c, r->site, &why, &v, b) || bad_shared(&why, &v, b)
			|| (b->copy != COPY_STORE && (bad_signal(&why, &v, b)
			|| (b->multicast && refuse_ctas(&why, &v, b->mask, SHARED_OFFSET(b->at), b->bytes)))))
		refused(c, warp, r, 1u << lane, &why);
}

void refused_rank(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const struct shared_view v = record_view(c, warp);
	unsigned first = (unsigned)__builtin_ctz(r->lanes);
	uint64_t at = record_value(c, r, &i->operand[1], first);
	struct refusal why;

	if (!refuse_rank(&why, &v, at, (uint32_t)record_value(c, r, &i->operand[2], first)))
		refuse_mapa(&why, at);
	refused(c, warp, r, 1u << first, &why);
}

/* ---- barriers ---- */

void refused_mbar(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t lanes,
	uint64_t at, bool remote)
{
	const bool far = ptx_space_of(record_site(c, r->site)->insn, 0) != PS_shared;
	const struct shared_view v = record_view(c, warp);
	struct refusal why;

	if (refuse_mbar_align(&why, at) || refuse_shared(&why, &v, far, at, 8) ||
			(!remote && refuse_mbar_owner(&why, &v, SHARED_RANK(at), SHARED_OFFSET(at))))
		refused(c, warp, r, lanes & -lanes, &why);
}

void refused_bar(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t id,
	uint32_t count, bool arrives)
{
	struct refusal why;

	if (refuse_bar(&why, id, count, c->info.warps_per_cta * 32, arrives))
		refused(c, warp, r, r->lanes, &why);
}

void refused_mask(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t lanes,
	uint32_t mask)
{
	struct refusal why;

	refuse_mask(&why, mask);
	refused(c, warp, r, lanes, &why);
}

void refused_setmaxnreg(struct dcluster *c, uint32_t warp, const struct record *r, uint32_t want,
	bool inc, uint32_t has)
{
	struct refusal why;

	if (refuse_setmaxnreg(&why, want, inc, has))
		refused(c, warp, r, r->lanes, &why);
}

static void refuse_missing(struct dcluster *c, uint32_t warp)
{
	const struct dwarp *w = &c->warp[warp];
	struct refusal why;

	refusal_set(&why, FAULT_ALIGNED, SP_ANY, 0, 0, "lanes 0x%08x of the warp do not execute it",
		w->missing);
	emit_refusal(c, warp, c->job->l->site[w->aligned_site], w->at_aligned, &why);
}

void refused_aligned(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct rewrite_site *s = record_site(c, r->site);
	struct dwarp *w = &c->warp[warp];
	const uint32_t live = w->all & ~w->gone;
	const bool leaves = rewrite_leaves(s->insn);

	if (w->missing && s->insn == record_site(c, w->aligned_site)->insn) {
		w->at_aligned |= r->lanes;
		w->missing &= ~r->lanes;
		return;
	}
	if (r->lanes & w->missing && (leaves || r->lanes & w->at_aligned)) {
		refuse_missing(c, warp);
		return;
	}
	if (w->missing || !c->job->info[r->site].aligned)
		return; /* the other lanes may come later */
	w->at_aligned = r->lanes;
	w->missing = live & ~r->lanes;
	w->aligned_site = r->site;
}

void refused_missing(struct dcluster *c)
{
	for (uint32_t k = 0; k < c->info.nctas * c->info.warps_per_cta && !c->stopped; k++)
		if (c->warp[k].missing)
			refuse_missing(c, k);
}
