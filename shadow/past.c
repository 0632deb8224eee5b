/* past: effect of a new access on the accesses that a granule remembers. Finds conflicts and drops
 * accesses that can no longer take part in one; does not interpret a conflict.
 *
 * What may be dropped. Let x be recorded and n be the new access, both on byte b; "y knows x" means
 * that the frontier of y holds x's agent, lane and epoch, in the generic plane G or in the
 * proxy-fenced plane P.
 *  - n writes: any later access that conflicts with x conflicts with n, too. If n knows x, every
 *    access that knows n knows x (frontiers are joined as a whole), so x can be dropped. The same
 *    holds in plane P: a fence that covers n was executed by a thread that knew n, hence x, in G,
 *    and it added all of that G to P. If n does not know x, that has just been reported, and one
 *    report is sufficient. Only a pair of morally strong accesses is kept: neither ordered nor a
 *    race, both matter to a later weak access. If n is a read-modify-write that has observed the
 *    strong write x, what is ordered after n is ordered after x, and x can be dropped if the two
 *    race with the same strong accesses. The lanes of one instruction have not observed each
 *    other: each read-modify-write has an epoch of its own, by which its entries are known.
 *  - n is a read-modify-write whose result is not used, and so is x, or x is a store: nothing shows
 *    which came first, and x is kept as if n had not observed it. Those of one warp and epoch are
 *    one entry with the lanes of all, as nothing has observed one of them alone.
 *  - n reads, x reads: only a later write w matters. If n knows x, a w that knows n knows x: x can
 *    be dropped. If x is the same agent's and x's lanes are among n's, knowing n (at a later or
 *    equal epoch) includes knowing x: x can be dropped, whether or not the lanes are ordered with
 *    each other. An asynchronous n may only replace a generic x that it knows in P, because a
 *    later asynchronous w must know x in P and does not get that through n. The view's
 *    known_generic of an asynchronous accessor holds exactly that.
 *  - n reads, x is the same lanes' write of the same epoch: n adds nothing, as every access that
 *    conflicts with n conflicts with x, with the same knowledge required.
 *  - A strong n does not replace a weak x, see as_strict().
 *
 * Entries are in the order of the accesses, as far as strong accesses are concerned: a strong read
 * or read-modify-write z has observed the strong writes of its chain that are before it (PTX ISA
 * 8.9.2), unless it returned an older value. An access after which z is ordered is ordered after
 * those, too (8.9.5): see shadow_observed().
 *
 * Exceptions. Of more than MOST_REDUCTIONS reductions the oldest are dropped without a proof. For
 * locations that are accessed with several scopes, or from several CTAs:
 *  - a strong n replaces a strong x of another CTA that it knows: y with a scope that includes the
 *    thread of n, and not that of x, is compared with n only;
 *  - a read-modify-write is dropped for one that observed it although an older strong write stays:
 *    of who is ordered after the former alone it is not known that it is ordered after that write.
 *
 * Reads of bulk stores and of wgmma become known only through the issuing lane or warps, which then
 * still know all that they knew at issue. */
#include "past.h"

#include <string.h>

/* Of more reductions than this of one granule, which nothing orders, the oldest are dropped: one for
 * each warp and word. */
#define MOST_REDUCTIONS 128u

/* What to do with a recorded entry when a new access is made. SKIP_NEW: it makes the new entry
 * redundant, which therefore is not recorded; the new access is still compared with the other
 * entries. */
enum action { KEEP, DROP, TRIM, SKIP_NEW };

static inline bool same_track(const struct cell_entry *x, const struct cell_entry *now)
{
	return x->agent == now->agent
		&& (x->what & CELL_SHIFT_MASK) == (now->what & CELL_SHIFT_MASK);
}

static inline bool lookup(const struct shadow_view *v, const struct cell_entry *x)
{
	const uint32_t *known = x->agent < v->ngeneric ? v->known_generic : v->known;

	return known[x->agent] >= x->epoch;
}

/* Is every access that does not race with now free of a race with x? Then now may replace x. Not if
 * only now is strong: a third strong access would then race with x alone. */
static inline bool as_strict(const struct cell_entry *x, const struct cell_entry *now)
{
	if (!(now->what & CELL_STRONG))
		return true;
	return x->what & CELL_STRONG && !((x->what ^ now->what) & CELL_SHIFT_MASK)
		&& (x->what & CELL_SCOPE_MASK) >= (now->what & CELL_SCOPE_MASK);
}

static inline bool is_rmw(const struct cell_entry *e)
{
	const uint32_t rmw = CELL_WRITE | CELL_STRONG | CELL_PART;

	return (e->what & rmw) == rmw;
}

/* What an access whose result is not used observed shows no order, see race_observed(). */
static inline bool now_reads_as_much(const struct cell_entry *x, const struct cell_entry *now)
{
	return !(now->what & CELL_UNREAD) || x->what & CELL_UNREAD;
}

/* A read-modify-write whose result is not used: what it observed shows no order. */
static inline bool gives_nothing(const struct cell_entry *e)
{
	return is_rmw(e) && e->what & CELL_UNREAD;
}

static inline bool reads(const struct cell_entry *e)
{
	return !(e->what & CELL_WRITE) || is_rmw(e);
}

/* Are both of one read-modify-write instruction, by other lanes? Nothing orders its lanes. */
static inline bool same_instruction(const struct cell_entry *x, const struct cell_entry *y)
{
	return x->agent == y->agent && x->epoch == y->epoch && x->what == y->what && is_rmw(x);
}

/* The entries after one, which are still in their places. */
struct newer {
	const struct shadow *s;
	uint32_t cell, at, left;
};

static const struct cell_entry *next_of(struct newer *n)
{
	if (!n->left)
		return NULL;
	n->left--;
	if (n->at == CELL_ENTRIES) {
		n->cell = n->s->cell[n->cell].more;
		n->at = 0;
	}
	return &n->s->cell[n->cell].entry[n->at++];
}

enum shadow_observed shadow_observed(struct shadow_view *v, const struct cell_entry *x,
	const struct cell_entry *now, uint32_t granule, uint32_t bytes)
{
	struct newer n = *v->newer;
	const struct cell_entry *z;
	uint32_t missing[CELL_BYTES]; /* lanes */
	bool unfenced = false;

	if ((x->what & (CELL_WRITE | CELL_STRONG)) != (CELL_WRITE | CELL_STRONG))
		return SHADOW_NOT_OBSERVED;
	memset(missing, 0xff, sizeof missing);
	while (bytes && (z = next_of(&n))) {
		const uint32_t both = z->bytes & bytes;

		if (!both)
			continue;
		if (!reads(z))
			return SHADOW_NOT_OBSERVED; /* the end of the chain */
		if (same_instruction(x, z))
			continue;
		for (uint32_t m = z->what & CELL_STRONG ? both : 0; m; m &= m - 1) {
			const unsigned b = (unsigned)__builtin_ctz(m);

			missing[b] = v->observed(v, x, z, now, granule, b, missing[b], &unfenced);
			bytes &= missing[b] ? ~0u : ~(1u << b);
		}
	}
	if (bytes)
		return SHADOW_NOT_OBSERVED;
	return unfenced ? SHADOW_OBSERVED_UNFENCED : SHADOW_OBSERVED;
}

/* A pass over the entries. Strong accesses are also kept for what they observed. */
struct run {
	uint32_t at;             /* number of the entry at hand */
	/* if now is strong: 1 + number of the newest write of any bytes; of now's bytes: write, store,
	 * and strong access that reads; 0: none */
	uint32_t any_write, write, store, read;
	uint32_t observer;       /* the same, of what may have observed a reduction, or hides it */
	uint32_t written;        /* bytes of older strong writes */
	uint32_t scope;          /* CELL_SCOPE_MASK: the narrowest of these */
	/* the accessor's first strong read since the newest of these: lanes, bytes */
	uint32_t lanes, bytes;
};

static inline bool is_strong_read(const struct cell_entry *e)
{
	return (e->what & (CELL_STRONG | CELL_WRITE)) == CELL_STRONG;
}

static struct run run_over(const struct shadow *s, uint32_t home, const struct cell_entry *now)
{
	struct newer all = { s, home, 0, s->cell[home].n };
	const struct cell_entry *e;
	struct run run = { 0 };

	if (!(now->what & CELL_STRONG))
		return run;
	for (uint32_t i = 1; (e = next_of(&all)); i++) {
		run.any_write = e->what & CELL_WRITE ? i : run.any_write;
		if (!(e->bytes & now->bytes))
			continue;
		run.write = e->what & CELL_WRITE ? i : run.write;
		run.store = reads(e) ? run.store : i;
		run.read = reads(e) && e->what & CELL_STRONG ? i : run.read;
		run.observer = e->what & (CELL_STRONG | CELL_WRITE) && !gives_nothing(e) ? i : run.observer;
	}
	return run;
}

/* Is there an entry after the one at hand? newest: as in struct run */
static inline bool since(const struct run *run, uint32_t newest)
{
	return newest > run->at + 1;
}

/* Are both reductions of one size and of a scope that includes any thread of the cluster? */
static inline bool alike_reductions(const struct cell_entry *x, const struct cell_entry *now)
{
	const uint32_t scope = now->what & CELL_SCOPE_MASK;

	return gives_nothing(now) && !((x->what ^ now->what) & ~CELL_SITE_MASK) && scope
		&& scope != CELL_VOLATILE;
}

/* Are both reductions by one warp in one epoch, of which nothing has observed x alone? */
static inline bool extends_reduction(const struct run *run, const struct cell_entry *x,
	const struct cell_entry *now, const struct cell_entry *rec)
{
	return gives_nothing(now) && x->what == now->what && x->agent == now->agent
		&& x->epoch == now->epoch && x->bytes == rec->bytes && !since(run, run->observer);
}

/* May now, which conflicts with whatever conflicts with the strong access x, replace x although
 * older strong writes are recorded? A store x ends their chain, for what has read since; else x may
 * have observed them, and now must observe the same. A weak write ends what matters. */
static bool observes_as_much(const struct run *run, const struct cell_entry *x,
	const struct cell_entry *now)
{
	const bool alike = !((x->what ^ now->what) & (CELL_SCOPE_MASK | CELL_SHIFT_MASK));

	if (!(run->written & x->bytes) || (now->what & (CELL_WRITE | CELL_STRONG)) == CELL_WRITE
		|| cell_is_stale(x))
		return true;
	if (!reads(x))
		return !reads(now) && !since(run, run->read);
	if (is_rmw(now))
		return alike && now_reads_as_much(x, now) && run->scope >= (now->what & CELL_SCOPE_MASK)
			&& !since(run, run->store);
	/* of the reads by one warp the first and the newest are kept */
	return reads(now) && !cell_is_stale(now) && alike && now->what & CELL_STRONG
		&& x->agent == now->agent
		&& !(x->lanes & ~run->lanes) && !(x->bytes & ~run->bytes);
}

/* Has now observed the strong write x? Then what is ordered after now is ordered after x. */
static inline bool observed_by(const struct run *run, const struct cell_entry *x,
	const struct cell_entry *now)
{
	return is_rmw(now) && x->what & CELL_WRITE && !since(run, run->store)
		&& !same_instruction(x, now);
}

static void extend_run(struct run *run, const struct cell_entry *x, const struct cell_entry *now)
{
	if (x->what & CELL_WRITE && x->bytes & now->bytes) {
		const uint32_t scope = x->what & CELL_SCOPE_MASK;

		run->lanes = run->bytes = 0;
		if (!(x->what & CELL_STRONG))
			return;
		run->scope = run->written && run->scope < scope ? run->scope : scope;
		run->written |= x->bytes;
	} else if (is_strong_read(x) && !cell_is_stale(x) && x->agent == now->agent && !run->lanes
		&& !((x->what ^ now->what) & (CELL_SCOPE_MASK | CELL_SHIFT_MASK))) {
		run->lanes = x->lanes;
		run->bytes = x->bytes;
	}
}

/* now: the access; rec: the entry to record for it, extended by entries of the same instruction and
 * epoch that it replaces. */
static inline enum action compare(struct shadow_view *v, const struct cell_entry *x,
	const struct cell_entry *now, struct cell_entry *rec, const struct newer *newer,
	const struct run *run, uint32_t granule)
{
	uint32_t both = x->bytes & now->bytes;
	enum shadow_verdict verdict;
	bool track, retire = true;
	/* a strong access adds something after another write: it may have observed that */
	const bool same_epoch = x->epoch == now->epoch && x->agent == now->agent
		&& !since(run, both ? run->write : run->any_write);

	if (extends_reduction(run, x, now, rec)) {
		rec->lanes |= x->lanes;
		return DROP;
	}
	if (same_epoch && x->what == now->what) {
		if (x->lanes == rec->lanes) {
			/* writes of an asynchronous engine are not ordered even in this case
			 * (C03) */
			if (!(rec->bytes & ~x->bytes)
				&& (x->agent == v->self || !(now->what & CELL_WRITE)))
				return SKIP_NEW;
			if (!both) {
				rec->bytes |= x->bytes;
				return DROP;
			}
		} else if (x->bytes == rec->bytes && !(now->what & CELL_WRITE)) {
			rec->lanes |= x->lanes;
			return DROP;
		}
	}
	if (!both)
		return KEEP;
	if (!as_strict(x, now))
		retire = false;
	track = same_track(x, now) && !(x->lanes & ~now->lanes);
	if (x->what & CELL_STRONG && run->written && !observes_as_much(run, x, now))
		retire = false;
	if (!((x->what | now->what) & CELL_WRITE))
		return retire && (track || lookup(v, x)) ? TRIM : KEEP;
	if (lookup(v, x)) {
		verdict = SHADOW_ORDERED;
	} else if (alike_reductions(x, now)) {
		verdict = SHADOW_MORALLY_STRONG; /* without the exact order: there may be many */
	} else if (track && x->agent == v->self && x->lanes == now->lanes
		&& !(x->lanes & (x->lanes - 1))) {
		verdict = SHADOW_ORDERED; /* program order, lane by lane */
	} else {
		v->newer = newer;
		verdict = v->classify(v, x, now, granule, both);
		v->reported |= !v->anywhere;
	}
	if (gives_nothing(x) && gives_nothing(now) && newer->left >= MOST_REDUCTIONS)
		verdict = SHADOW_EQUIVALENT;
	if (verdict == SHADOW_EQUIVALENT && !observed_by(run, x, now))
		verdict = SHADOW_MORALLY_STRONG;
	if (now->what & CELL_WRITE)
		return retire && (track || verdict != SHADOW_MORALLY_STRONG) ? TRIM : KEEP;
	if (track && as_strict(now, x) && same_epoch && x->lanes == rec->lanes
		&& !(rec->bytes & ~x->bytes) && x->agent == v->self)
		return SKIP_NEW;
	return KEEP;
}

/* Does x, perhaps with fewer bytes, stay beside the new access? *skip: the new access adds
 * nothing. */
static inline bool apply(struct shadow_view *v, struct cell_entry *x,
	const struct cell_entry *now, struct cell_entry *rec, const struct newer *newer,
	struct run *run, uint32_t granule, bool *skip)
{
	bool stays = true;

	switch (compare(v, x, now, rec, newer, run, granule)) {
	case KEEP:
		break;
	case DROP:
		stays = *skip;
		break;
	case TRIM:
		x->bytes &= ~now->bytes;
		stays = x->bytes;
		break;
	case SKIP_NEW:
		*skip = true;
		break;
	}
	if (stays && (x->what | now->what) & CELL_STRONG)
		extend_run(run, x, now);
	run->at++;
	return stays;
}

/* touch_all() for a cell that has a chain or needs one: moves entries towards the front, so that
 * the chain stays compact. */
static void touch_chain(struct shadow *s, struct shadow_view *v, uint32_t home,
	uint32_t granule, const struct cell_entry *now)
{
	struct cell_entry rec = *now;
	uint32_t n = s->cell[home].n, kept = 0, i = 0, k = 0, from = home, to = home;
	struct run run = run_over(s, home, now);
	bool skip = false;

	s->cell[home].writes = s->cell[home].readers = 0;
	for (; n; n--, i++) {
		struct newer newer;
		struct cell_entry x;

		if (i == CELL_ENTRIES) {
			from = s->cell[from].more;
			i = 0;
		}
		x = s->cell[from].entry[i];
		newer = (struct newer){ s, from, i + 1, n - 1 };
		if (!apply(v, &x, now, &rec, &newer, &run, granule, &skip))
			continue;
		if (k == CELL_ENTRIES) {
			to = s->cell[to].more;
			k = 0;
		}
		s->cell[to].entry[k++] = x;
		note_entry(&s->cell[home], &x, kept++);
	}
	if (!skip) {
		if (k == CELL_ENTRIES) {
			to = s->cell[to].more ? s->cell[to].more : cells_grow(s, to);
			k = 0;
		}
		s->cell[to].entry[k] = rec;
		note_entry(&s->cell[home], &rec, kept++);
	}
	s->cell[home].n = (uint16_t)kept;
	cells_cut(s, to);
}

static void touch_all(struct shadow *s, struct shadow_view *v, uint32_t at, uint32_t granule,
	const struct cell_entry *now)
{
	struct cell *c = &s->cell[at];
	struct cell_entry rec = *now;
	uint32_t n = c->n, i, k;
	struct run run = run_over(s, at, now);
	bool skip = false;

	c->writes = c->readers = 0;
	for (i = k = 0; i < n; i++) {
		const struct newer newer = { s, at, i + 1, n - i - 1 };
		struct cell_entry x = c->entry[i];

		if (!apply(v, &x, now, &rec, &newer, &run, granule, &skip))
			continue;
		note_entry(c, &x, k);
		c->entry[k++] = x;
	}
	if (!skip) {
		note_entry(c, &rec, k);
		c->entry[k++] = rec;
	}
	c->n = (uint16_t)k;
}

/* Adds the lanes of a reduction to those of its warp's and epoch's if all entries of these bytes are
 * such reductions, or weak and known. False: nothing was done. */
static bool add_lanes(const struct shadow *s, const struct shadow_view *v, uint32_t home,
	const struct cell_entry *now)
{
	struct newer all = { s, home, 0, s->cell[home].n };
	struct cell_entry *own = NULL;
	const struct cell_entry *e;

	while ((e = next_of(&all))) {
		if (!(e->bytes & now->bytes))
			continue;
		if (!alike_reductions(e, now) && (e->what & CELL_STRONG || !lookup(v, e)))
			return false;
		if (e->agent == now->agent && e->epoch == now->epoch && e->what == now->what
			&& e->bytes == now->bytes)
			own = (struct cell_entry *)e;
	}
	if (own)
		own->lanes |= now->lanes;
	return own;
}

void past_touch(struct shadow *s, struct shadow_view *v,
	uint32_t at, uint32_t granule, const struct cell_entry *now)
{
	struct cell *c = &s->cell[at];

	if (c->guard & now->bytes) {
		v->reported = true;
		v->invalid(v, now, granule, c->guard & now->bytes, SHADOW_GUARDED);
	}
	if (now->bytes & ~c->init && reads(now)) {
		v->reported = true;
		v->invalid(v, now, granule, now->bytes & ~c->init, SHADOW_UNWRITTEN);
	}
	if (now->what & CELL_WRITE)
		c->init |= now->bytes;
	if (gives_nothing(now) && add_lanes(s, v, at, now))
		return;
	if (c->n < CELL_ENTRIES)
		touch_all(s, v, at, granule, now);
	else
		touch_chain(s, v, at, granule, now);
}

