/* global_race: classifies two overlapping accesses to global memory and determines what is missing
 * between them; the counterpart of race.c across clusters. */
#include "global.h"
#include "host.h"
#include "met.h"
#include "libconsan/finding/rule_codes.h"

#include <string.h>

/* The same lanes touch every byte of both, and no byte is touched by two lanes. */
static bool same_lanes(const struct global_record *a, const struct global_record *b)
{
	return a->row <= 5 && global_same_layout(a, b) && a->inner == a->size && a->count <= 1
		&& (a->row == 5 || a->pitch >= (a->size << a->row) || -a->pitch >= (a->size << a->row));
}

/* Up to which epoch a lane knows its own operations as that agent. */
static uint32_t own_epoch(const struct warp *w, enum agent_kind k, enum plane plane, unsigned lane)
{
	if (k == AGENT_STORES)
		return plane == PLANE_STORED ? w->progress.stored.at[lane] : w->progress.stores.at[lane];
	if (k == AGENT_WARP && plane == PLANE_Q)
		return w->progress.fenced_global.at[lane];
	return warp_progress(w, k, PLANE_G, lane);
}

/* A byte of the granule, and a lane of each access that touch it; -1: several, or an engine. */
struct gap {
	unsigned byte;
	int old_lane, now_lane;
};

static uint32_t lanes_of(const struct global_record *r, uint64_t at)
{
	return r->lane >= 0 ? 1u << r->lane : global_lanes_at(r, at);
}

/* Two different lanes, if there are; old: those in question of the old access. */
static struct gap gap_at(unsigned byte, const struct global_record *a, uint32_t old,
	const struct global_record *b, uint32_t now)
{
	const bool same_warp = a->cluster == b->cluster && a->warp == b->warp;
	struct gap gap = { byte, -1, -1 };

	if (same_warp && !(now & ~(old & -old)) && old & ~now)
		old &= ~now;
	if (same_warp && now & ~(old & -old))
		now &= ~(old & -old);
	if (old && !(a->flags & GR_MERGED))
		gap.old_lane = __builtin_ctz(old);
	if (now)
		gap.now_lane = __builtin_ctz(now);
	return gap;
}

static struct gap first_gap(const struct global_record *old, const struct global_record *now,
	uint64_t addr, uint32_t bytes)
{
	const unsigned byte = (unsigned)__builtin_ctz(bytes);

	return gap_at(byte, old, lanes_of(old, addr + byte), now, lanes_of(now, addr + byte));
}

/* The lanes whose accesses up to that of `old` the frontier knows. */
static uint32_t covered_lanes(const struct frontier *f, enum plane plane, const struct global_record *old,
	bool collective)
{
	const struct clock_space s = frontier_space(f);
	uint32_t lanes;

	if (plane != PLANE_STORED && frontier_full(&s, f, plane, old->agent) >= old->epoch)
		return UINT32_MAX;
	if (!f->npart)
		return 0;
	lanes = frontier_lanes(&s, f, plane, old->agent, old->epoch);
	if (collective)
		lanes |= frontier_lanes(&s, f, plane == PLANE_Q ? PLANE_COLLECTIVE_P : PLANE_COLLECTIVE_G,
			old->agent, old->epoch);
	return lanes;
}

/* Does the frontier know the accesses of `old` to those bytes? self: the warp whose program order
 * and own waits count, or NULL. gap: receives the first that it does not know; may be NULL. */
static bool knows(const struct cluster *c, const struct frontier *f, const struct warp *self,
	enum plane plane, const struct global_record *old, const struct global_record *now,
	uint64_t addr, uint32_t bytes, bool collective, bool *lanewise, struct gap *gap)
{
	const uint32_t covered = covered_lanes(f, plane, old, collective);
	enum agent_kind kind;
	uint32_t index;

	if (gap)
		*gap = first_gap(old, now, addr, bytes);
	if (covered == UINT32_MAX)
		return true;
	kind = global_agent(c, old, &index);
	if (kind >= AGENT_WGMMA || !self || index != self->index)
		self = NULL;
	if (!self && !covered)
		return false;
	if (old->flags & GR_MERGED)
		return true; /* known by some lanes at least */
	if (self && !covered && kind == AGENT_WARP && plane == PLANE_G && same_lanes(old, now))
		return true; /* program order, lane by lane */
	*lanewise = true;
	for (uint32_t same_lanes_mask; bytes; bytes &= ~same_lanes_mask) {
		unsigned byte = (unsigned)__builtin_ctz(bytes);
		uint64_t at = addr + byte;
		uint32_t need = global_lanes_at(old, at) & ~covered, lanes = lanes_of(now, at);

		same_lanes_mask = global_same_lanes(old, now, byte);
		if (!need)
			continue;
		/* only a lane itself knows its own operations without synchronization */
		if (self && !(need & (need - 1)) && need == lanes
			&& own_epoch(self, kind, plane, (unsigned)__builtin_ctz(need)) >= old->epoch)
			continue;
		if (gap)
			*gap = gap_at(byte, old, need, now, lanes);
		return false;
	}
	return true;
}

/* The plane in which the old access must be known. */
static enum plane plane_of(const struct cluster *c, const struct global_record *old,
	const struct global_record *now)
{
	uint32_t index;

	if (old->flags & GR_ASYNC)
		return old->flags & GR_WRITE ? PLANE_STORED : PLANE_G;
	return now->flags & GR_ASYNC && global_agent(c, old, &index) == AGENT_WARP ? PLANE_Q : PLANE_G;
}

struct comparison {
	const struct global_view *v;
	const struct frontier *f;        /* what is known of the old access's cluster */
	const struct foreign_entry *foreign; /* set if that is another cluster */
	const struct warp *self;
	const struct global_record *old, *now;
	uint64_t addr;
	uint32_t bytes;
	bool *lanewise;
};

static bool knows_in(const struct comparison *q, enum plane plane, bool collective)
{
	if (!q->f)
		return false;
	if (knows(q->v->c, q->f, q->self, plane, q->old, q->now, q->addr, q->bytes, collective,
		q->lanewise, NULL))
		return true;
	return plane == PLANE_Q && q->foreign && q->foreign->fenced
		&& knows(q->v->c, q->foreign->fenced->f, NULL,
		PLANE_G, q->old, q->now, q->addr, q->bytes, false, q->lanewise, NULL);
}

/* Names a byte and two lanes that the plane does not order. */
static void find_witness(const struct comparison *q, enum plane plane, struct global_conflict *x)
{
	static const struct frontier nothing;
	struct gap gap;
	bool dummy;

	if (grids_earlier(q->v->c->check, q->old->cluster))
		gap = first_gap(q->old, q->now, q->addr, q->bytes);
	else
		knows(q->v->c, q->f ? q->f : &nothing, q->self, plane, q->old, q->now, q->addr, q->bytes,
			false, &dummy, &gap);
	x->byte = gap.byte;
	x->bytes = (unsigned)__builtin_ctz(~(q->bytes >> x->byte));
	x->old_lane = gap.old_lane;
	x->now_lane = gap.now_lane;
}

/* Is the instruction that began the operation known, if not its completion? */
static bool knows_issue(const struct comparison *q)
{
	struct global_record issue = *q->old;
	uint32_t lane = q->old->lane >= 0 ? 1u << q->old->lane : 0;
	bool dummy;

	if (!(q->old->flags & GR_ASYNC) || !q->f)
		return false;
	issue.agent = q->old->warp;
	issue.epoch = q->old->issue;
	issue.row = GR_WHOLE;
	issue.lanes = lane;
	if (frontier_full(&q->v->c->space, q->f, PLANE_G, issue.agent) >= issue.epoch
		|| frontier_lanes(&q->v->c->space, q->f, PLANE_G, issue.agent, issue.epoch) & lane)
		return true;
	return !q->foreign && issue.agent == q->v->w->index
		&& knows(q->v->c, q->f, q->v->w, PLANE_G, &issue, q->now, q->addr, q->bytes, false, &dummy,
			NULL);
}

static bool of_one_cta(const struct cluster *c, const struct global_record *a,
	const struct global_record *b)
{
	const uint32_t per_cta = beside_other(c->check, a->cluster)
		? beside_per_cta(c->check, a->cluster) : c->per_cta;

	return a->cluster == b->cluster && a->warp / per_cta == b->warp / per_cta;
}

/* A03: both strong, same proxy, scopes that include both threads, and a complete overlap: elements
 * of one size. */
static bool morally_strong(const struct global_view *v, const struct global_record *a,
	const struct global_record *b)
{
	unsigned scope = a->scope < b->scope ? a->scope : b->scope;

	if (!(a->flags & b->flags & GR_STRONG) || (a->flags ^ b->flags) & GR_ASYNC
		|| a->element != b->element)
		return false;
	if (a->cluster != b->cluster)
		return scope == 2 && (a->flags & b->flags & GR_SYSTEM || beside_scope_needed(v->c->check,
			a->cluster, 0, b->cluster, 0) < SCOPE_SYS);
	return scope || of_one_cta(v->c, a, b);
}

/* Both are morally strong. Do volatile accesses exchange data that nothing orders (CS123)? */
static bool volatile_race(const struct comparison *q)
{
	const struct global_record *old = q->old, *now = q->now;
	const struct global_record *one = old->flags & GR_VOLATILE ? old : now;
	const struct global_record *other = one == old ? now : old;
	const struct global_view *v = q->v;

	if (!(one->flags & GR_VOLATILE))
		return false;
	if (!(other->flags & GR_VOLATILE) && (!(other->flags & GR_RMW) || !(one->flags & GR_WRITE)
		|| one->flags & GR_PUBLISHES))
		return false;
	if (!q->foreign && knows_in(q, PLANE_G, true))
		return false;
	if (old->flags & now->flags & GR_WRITE && old->size == now->size
		&& report_equal_stores(old->site, now->site, of_one_cta(v->c, old, now)))
		return false;
	if (now->flags & GR_WRITE)
		return !volatile_is_flag(v->c, VOLATILE_GLOBAL, q->addr
			+ (unsigned)__builtin_ctz(q->bytes));
	return old->cluster == now->cluster
		? warp_observed(v->c, v->w, v->lanes, old->agent, old->epoch) == OBSERVED_NOT
		: !global_unfenced(v, old);
}

/* As in race.c */
static bool observed_by_chance(const struct global_record *x, const struct global_record *z)
{
	return z->flags & GR_UNREAD && x->flags & GR_WRITE
		&& (!(x->flags & GR_RMW) || x->flags & GR_UNREAD);
}

/* ---- clusters that repeat another one ---- */

static struct repeat_question question_of(const struct global_record *old, const struct global_record *now,
	enum plane plane)
{
	return (struct repeat_question){ .old_epoch = old->epoch, .now_epoch = now->epoch,
		.old_agent = old->agent, .now_agent = now->agent, .plane = (uint16_t)plane };
}

/* For clusters that follow this one. Their accesses have other addresses and layouts, so an answer is kept
 * if it depends on neither. */
static void keep_answer(const struct comparison *q, enum plane plane)
{
	const struct repeat_question question = question_of(q->old, q->now, plane);
	uint32_t covered, index;

	if (!repeat_keeps_answers(q->v->c))
		return;
	covered = covered_lanes(q->f, plane, q->old, false);
	if (covered == UINT32_MAX)
		repeat_answered(q->v->c, &question, REPEAT_KNOWN);
	else if (!covered && (global_agent(q->v->c, q->old, &index) >= AGENT_WGMMA || index != q->self->index))
		repeat_answered(q->v->c, &question, REPEAT_UNKNOWN);
}

/* The cluster only repeated another one so far: from now on it is checked as any. */
static void learn(struct global_view *v)
{
	repeat_leave(v->c);
	if (!v->late)
		v->f = warp_frontier(v->w, (unsigned)__builtin_ctz(v->lanes));
}

/* Is it known without what the accessor knows that this is no race? */
static bool is_free_of_races(const struct global_view *v, const struct global_record *old,
	const struct global_record *now)
{
	const bool write = (old->flags | now->flags) & GR_WRITE;

	return old->cluster != now->cluster && !beside_other(v->c->check, old->cluster)
		&& (!write || (!((old->flags | now->flags) & GR_VOLATILE) && morally_strong(v, old, now)));
}

/* Says the stream that is followed what classify() would return for two accesses of this cluster, of which
 * nothing is to be reported? */
static bool is_answered(const struct global_view *v, const struct global_record *old,
	const struct global_record *now, enum plane plane, enum global_verdict *is)
{
	const struct repeat_question question = question_of(old, now, plane);
	const bool write = (old->flags | now->flags) & GR_WRITE;
	enum repeat_answer answer;

	if (old->cluster != now->cluster || v->late
		|| (write && (old->flags | now->flags) & (GR_NC | GR_PADDING)))
		return false;
	answer = repeat_ask(v->c, &question);
	*is = answer == REPEAT_KNOWN ? GLOBAL_ORDERED : GLOBAL_UNORDERED;
	return answer == REPEAT_KNOWN || (answer == REPEAT_UNKNOWN && !write);
}

/* The lanes of now that know z by program order; its lanes at a byte are `lanes`. */
static uint32_t own_lanes(const struct global_view *v, const struct global_record *z, enum plane plane,
	uint32_t lanes)
{
	uint32_t own = 0;

	if (z->cluster != v->c->number || z->agent != v->w->index)
		return 0;
	for (; lanes; lanes &= lanes - 1)
		if (own_epoch(v->w, AGENT_WARP, plane, (unsigned)__builtin_ctz(lanes)) >= z->epoch)
			own |= lanes & -lanes;
	return own;
}

void global_observed(struct global_accessor *a, const struct global_record *x,
	const struct global_record *z, const struct global_record *now, uint64_t addr, uint32_t bytes,
	uint32_t missing[16], bool *lanewise)
{
	struct global_view *v = (struct global_view *)a;
	const struct cluster *c = v->c;
	const bool own = z->cluster == now->cluster;
	const enum plane plane = plane_of(c, z, now);
	const struct foreign_entry *foreign;
	const struct frontier *f;
	struct clock_space s;
	uint32_t known, alone;

	if ((own || x->cluster == now->cluster) && v->f == c->repeat.nothing)
		learn(v);
	foreign = own ? NULL : foreign_find(v->f->foreign, z->cluster);
	f = own ? v->f : foreign ? foreign->known->f : NULL;
	if (!f || grids_earlier(c->check, z->cluster) || !morally_strong(v, x, z)
		|| observed_by_chance(x, z))
		return;
	s = frontier_space(f);
	known = frontier_full(&s, f, plane, z->agent) >= z->epoch ? UINT32_MAX
		: frontier_lanes(&s, f, plane, z->agent, z->epoch);
	*lanewise |= known != UINT32_MAX;
	for (; bytes; bytes &= bytes - 1) {
		const unsigned b = (unsigned)__builtin_ctz(bytes);
		const uint64_t at = addr + b;

		if (known == UINT32_MAX || global_lanes_at(z, at) & known) {
			missing[b] = 0;
			continue;
		}
		missing[b] &= now->lane >= 0 ? 1u << now->lane : global_lanes_at(now, at);
		missing[b] &= ~own_lanes(v, z, plane, missing[b] & global_lanes_at(z, at));
		alone = global_lanes_at(x, at);
		if (!(alone & (alone - 1)))
			missing[b] &= ~own_lanes(v, x, plane, missing[b] & alone);
	}
}

static bool copies(const struct cluster *c, const struct global_record *r)
{
	uint32_t index;

	return global_agent(c, r, &index) == AGENT_COPIES;
}

static unsigned pick_rule(const struct comparison *q, bool issued)
{
	const struct global_record *old = q->old, *now = q->now;
	bool both = old->flags & now->flags & GR_WRITE;

	if (global_frees(old) || global_frees(now))
		return CS124;
	if (both && old->flags & now->flags & GR_ASYNC)
		return beside_other(q->v->c->check, old->cluster) ? CS1001 : CS107;
	/* bar.warp.sync does not complete an operation of the own warp */
	if (issued || (old->cluster == now->cluster && old->warp == now->warp
		&& (old->flags & GR_ASYNC || copies(q->v->c, old))))
		return old->flags & GR_WRITE ? CS116 : CS105;
	if (old->flags & now->flags & GR_STRONG)
		return CS108;
	if (old->cluster == now->cluster && old->warp == now->warp)
		return CS103;
	if (beside_other(q->v->c->check, old->cluster))
		return both ? CS1001 : CS1002;
	return both ? CS101 : CS102;
}

static unsigned unfenced(const struct comparison *q)
{
	if (!(q->now->flags & GR_WRITE))
		return CS110;
	return q->old->flags & GR_WRITE ? CS111 : CS112;
}

/* Two writes: as in race.c */
static bool equal_values(const struct comparison *q)
{
	const struct event *e = q->v->c->now;
	uint32_t lanes = 0;

	if (!(q->old->flags & q->now->flags & GR_WRITE) || (q->old->flags | q->now->flags) & GR_RMW)
		return false;
	if (q->old->size == q->now->size && report_equal_stores(q->old->site, q->now->site,
		of_one_cta(q->v->c, q->old, q->now)))
		return true;
	if (e->kind != EV_ACCESS || e->access.mode != MODE_WRITE)
		return false;
	if (q->now->value)
		return q->old->value == q->now->value && q->old->size == q->now->size
			&& (q->now->value & ACCESS_VALUE_SAME || global_same_layout(q->old, q->now));
	*q->lanewise = true;
	for (uint32_t b = q->bytes; b; b &= b - 1)
		lanes |= lanes_of(q->now, q->addr + (unsigned)__builtin_ctz(b));
	return !(lanes & ~access_unchanged(&e->access));
}

static enum severity severity_of(const struct comparison *q, const struct global_conflict *x)
{
	const struct check_policy *p = &q->v->c->check->config.policy;
	const unsigned r = x->rule;

	if (!p->unread_loads && (report_unread_load(x->old->site) || report_unread_load(x->now->site)))
		return SEV_NOTE;
	/* whichever comes last, the result is the same */
	if ((r == CS101 || r == CS103) && equal_values(q))
		return SEV_WARNING;
	if (r == CS112)
		return p->fence_after_read ? SEV_ERROR : SEV_NOTE;
	if (r == CS109 && p->collectives_order_nothing)
		return SEV_ERROR;
	if (r == CS117 && x->ticket && !p->acquire_after_atomic)
		return SEV_WARNING;
	return rule_severity(r);
}

/* "Texture and Surface Memory, Read/Write Coherency" of the CUDA C++ Programming Guide: what the kernel
 * writes after the read is another matter. */
static bool texture_read_first(const struct global_record *old, bool ordered)
{
	return ordered && old->flags & GR_NC && site_get(old->site)->texture;
}

/* A26: outside the memory model. A read ordered before the write is harmless on current GPUs; the
 * compiler emits such reads for whatever a pointer declares constant. */
static void read_only(const struct comparison *q, struct global_conflict *x, bool ordered)
{
	if (site_get((q->old->flags & GR_NC ? q->old : q->now)->site)->texture) {
		x->rule = CS125;
		x->severity = rule_severity(CS125);
		return;
	}
	x->rule = CS115;
	x->severity = ordered && q->old->flags & GR_NC ? SEV_NOTE : rule_severity(CS115);
}

/* G15 to G17: the old access is of an earlier grid, which may still run. */
static enum global_verdict classify_grids(struct global_view *v, const struct comparison *q,
	struct global_conflict *x, bool write)
{
	const struct check *k = v->c->check;

	if (grids_waited_for(k, v->f->foreign, x->old->cluster))
		return GLOBAL_ORDERED;
	if (!write)
		return GLOBAL_UNORDERED;
	if (morally_strong(v, x->old, x->now))
		return GLOBAL_MORALLY_STRONG;
	x->rule = x->old->cluster >= k->global->waited_from ? CS118 : CS119;
	x->severity = rule_severity(x->rule);
	find_witness(q, PLANE_G, x);
	global_report(v, x);
	return GLOBAL_CONFLICT;
}

/* A tensor's store overwrites bytes beside the tensor that the kernel wrote before, or reads
 * afterwards: ordered, so no race, but they hold what the box has there. */
static bool overwrites_neighbour(const struct global_record *old, const struct global_record *now)
{
	return now->flags & GR_PADDING ? !(old->flags & GR_PADDING) && old->flags & GR_WRITE
		: old->flags & GR_PADDING && !(now->flags & GR_WRITE);
}

/* Were the two ordered if an acquire followed the read of a flag or ticket? warp_observed() takes an agent of
 * the own cluster. */
static void missing_acquire(const struct comparison *q, struct global_conflict *x)
{
	enum observed_by by = OBSERVED_NOT;

	if (x->unfenced)
		by = x->unfenced->ticket ? OBSERVED_BY_TICKET : OBSERVED_BY_FLAG;
	else if (q->old->cluster == q->now->cluster)
		by = warp_observed(q->v->c, q->v->w, q->v->lanes, q->old->agent, q->old->epoch);
	x->ticket = by == OBSERVED_BY_TICKET;
	x->rule = by != OBSERVED_NOT ? CS117 : x->rule;
}

enum global_verdict global_classify(struct global_accessor *a, const struct global_record *old,
	const struct global_record *now, uint64_t addr, uint32_t bytes, bool *lanewise)
{
	struct global_view *v = (struct global_view *)a;
	struct comparison q = { .v = v, .old = old, .now = now, .addr = addr, .bytes = bytes,
		.lanewise = lanewise };
	bool write = (old->flags | now->flags) & GR_WRITE, ordered;
	const enum plane plane = plane_of(v->c, old, now);
	struct global_conflict x = { .old = old, .now = now, .addr = addr };
	enum global_verdict answered;

	if (v->late && !write)
		return GLOBAL_UNORDERED;
	if (v->f == v->c->repeat.nothing && !is_free_of_races(v, old, now)) {
		if (is_answered(v, old, now, plane, &answered))
			return answered;
		learn(v);
	}
	if (grids_earlier(v->c->check, old->cluster))
		return classify_grids(v, &q, &x, write);
	if (host_is(v->c->check, old->cluster))
		return host_classify(v, old, now, addr, bytes);
	if (beside_other(v->c->check, old->cluster) && (beside_before(v->c->check, old->cluster)
		|| beside_complete(v->c->check, v->f->foreign, old->cluster)))
		return GLOBAL_ORDERED;
	if (old->cluster == now->cluster) {
		q.f = v->f;
		q.self = v->w;
		if (!v->late)
			keep_answer(&q, plane);
	} else {
		q.foreign = foreign_find(v->f->foreign, old->cluster);
		q.f = q.foreign ? q.foreign->known->f : NULL;
	}
	ordered = knows_in(&q, plane, false);
	if (!write)
		return ordered ? GLOBAL_ORDERED : GLOBAL_UNORDERED;
	if (global_frees(old)) { /* whether it is ordered or not */
		x.rule = CS124;
		x.severity = rule_severity(CS124);
		global_report(v, &x);
		return GLOBAL_CONFLICT;
	}
	if (texture_read_first(old, ordered))
		return GLOBAL_ORDERED;
	if ((old->flags | now->flags) & GR_NC && !global_frees(now)) {
		read_only(&q, &x, ordered);
		find_witness(&q, plane, &x);
		global_report(v, &x);
		return ordered ? GLOBAL_ORDERED : GLOBAL_CONFLICT;
	}
	if (ordered && overwrites_neighbour(old, now)) {
		x.rule = CS314;
		x.severity = rule_severity(CS314);
		global_report(v, &x);
		return GLOBAL_ORDERED;
	}
	if (ordered) {
		/* A28, K6: from TMA to TMA of another CTA */
		if (!v->c->check->config.policy.async_across_ctas || !q.foreign
			|| !(old->flags & now->flags & GR_ASYNC) || (q.foreign->fenced && knows(v->c,
			q.foreign->fenced->f, NULL, plane, old, now, addr, bytes, false, lanewise, NULL)))
			return GLOBAL_ORDERED;
		x.rule = CS114;
		x.severity = rule_severity(CS114);
		find_witness(&q, plane, &x);
		global_report(v, &x);
		return GLOBAL_ORDERED;
	}
	if (morally_strong(v, old, now)) {
		if (!volatile_race(&q))
			return GLOBAL_MORALLY_STRONG;
		x.rule = CS123;
		x.severity = rule_severity(CS123);
		x.narrow_sync = global_narrow_sync(v->c, old);
		x.unfenced = old->cluster != now->cluster && !x.narrow_sync
			? global_unfenced(v, old) : NULL;
		find_witness(&q, plane, &x);
		global_report(v, &x);
		return GLOBAL_MORALLY_STRONG;
	}
	if (plane == PLANE_Q && knows_in(&q, PLANE_G, false)) {
		x.rule = unfenced(&q);
	} else if (!q.foreign && knows_in(&q, plane == PLANE_Q ? PLANE_G : plane, true)) {
		x.rule = CS109;
	} else {
		x.incomplete = knows_issue(&q);
		x.rule = pick_rule(&q, x.incomplete);
		x.narrow_sync = x.incomplete ? NULL : global_narrow_sync(v->c, old);
		if (x.narrow_sync && (x.rule == CS101 || x.rule == CS102 || x.rule == CS1001
			|| x.rule == CS1002))
			x.rule = CS222;
		else if (!x.incomplete)
			x.unfenced = old->cluster != now->cluster && !x.narrow_sync
				? global_unfenced(v, old) : NULL;
		if ((x.rule == CS101 || x.rule == CS102 || x.rule == CS108 || (x.unfenced
			&& (x.rule == CS1001 || x.rule == CS1002)))
			&& !((old->flags | now->flags) & GR_ASYNC))
			missing_acquire(&q, &x);
	}
	x.severity = severity_of(&q, &x);
	if (global_counted(v, &x))
		return GLOBAL_CONFLICT;
	find_witness(&q, x.rule == CS110 || x.rule == CS111 || x.rule == CS112 || plane != PLANE_Q
		? plane : PLANE_G, &x);
	global_report(v, &x);
	return GLOBAL_CONFLICT;
}
