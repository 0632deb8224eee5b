/* race: accesses of operations and the host, and which of them conflict. See internal.h. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one access ---- */

enum { MOST = 64, MEMO = 64 }; /* accesses of a state; remembered steps */

struct step { /* while an access is applied to memory */
	struct order *o;
	bool quiet;            /* it has been compared */
	struct order_access now;
	struct { struct order_state *from, *to; } memo[MEMO]; /* to: a reference */
};

static bool writes(const struct order_access *a)
{
	return a->flags & ORDER_WRITE;
}

static bool lifetime(const struct order_access *a)
{
	return a->flags & (LIFE_ALLOC | LIFE_FREE);
}

/* Are both strong, with scopes that include the other side? The host's accesses count as strong. */
static bool strong_to_each_other(const struct order_access *a, const struct order_access *b)
{
	const unsigned both = (a->flags | (a->flags & HOST_ACCESS ? ORDER_STRONG | ORDER_SYSTEM : 0u))
		& (b->flags | (b->flags & HOST_ACCESS ? ORDER_STRONG | ORDER_SYSTEM : 0u));

	return both & ORDER_STRONG && (both & ORDER_SYSTEM || a->op->device == b->op->device);
}

/* Everything conflicts with the begin and the end of the memory's life. */
static bool conflicts(const struct order_access *a, const struct order_access *b)
{
	if (strong_to_each_other(a, b) && !lifetime(a) && !lifetime(b))
		return false;
	return writes(a) || writes(b);
}

/* Is every access that is compatible with a compatible with b? */
static bool as_strict(const struct order_access *a, const struct order_access *b)
{
	return !(a->flags & (ORDER_STRONG | ORDER_SYSTEM) & ~b->flags);
}

/* Does every later access that conflicts with `old` and is not ordered after it conflict with `now`,
 * too? `old` is ordered before `now`. */
static bool replaces(const struct order_access *now, const struct order_access *old)
{
	if (lifetime(old) && !lifetime(now))
		return false; /* else the lifetime would be lost */
	if (writes(now) && !(now->flags & ORDER_STRONG))
		return true;
	if (now->flags & ORDER_STRONG)
		return as_strict(now, old) && now->op->device == old->op->device
			&& (writes(now) || !writes(old));
	return !writes(old);
}

/* Of one operation: does `a` conflict with everything that `b` conflicts with? */
static bool covers(const struct order_access *a, const struct order_access *b)
{
	return a->op == b->op && a->part == b->part && lifetime(a) == lifetime(b)
		&& (writes(a) || !writes(b)) && as_strict(a, b);
}

static bool is_before(const struct order_op *a, const struct order_op *b)
{
	return order_op_before(a, b, ORDER_PROMISED);
}

/* Do others check races between them? */
static bool beside(const struct order_op *a, const struct order_op *b)
{
	return a->beside && a->beside == b->beside;
}

/* The pair that may order `first` before `then`; NULL: none. */
static struct met *find_met(const struct order *o, const struct order_op *first,
	const struct order_op *then, bool exact)
{
	for (size_t i = 0; i < o->met.n; i++)
		if (o->met.at[i].exact == exact && is_before(first, o->met.at[i].writer)
			&& is_before(o->met.at[i].reader, then))
			return &o->met.at[i];
	return NULL;
}

/* Did grids on the way from one to the other exchange values, though nothing that orders them? */
bool order_only_saw(const struct order *o, const struct order_op *a, const struct order_op *b)
{
	return find_met(o, a, b, true) || find_met(o, b, a, true);
}

void order_forget_met(struct order *o)
{
	for (size_t i = 0; i < o->met.n; i++) {
		op_unref(o->met.at[i].writer);
		op_unref(o->met.at[i].reader);
	}
	for (size_t i = 0; i < o->unseen.n; i++)
		op_unref(o->unseen.at[i].op);
	o->met.n = o->unseen.n = 0;
}

enum { MOST_UNSEEN = 1024 };

void order_host_unseen(struct order *o, struct order_op *op, bool wrote, bool observed)
{
	pthread_mutex_lock(&o->lock);
	if (o->unseen.n == MOST_UNSEEN) {
		map_clear(&o->map);
		order_forget_met(o);
		if (o->config.unchecked)
			o->config.unchecked(o->config.user, "races between operations: they exchanged values with the "
				"host so often that earlier accesses were forgotten");
	}
	op->kept++;
	vec_push(&o->unseen, ((struct unseen){ op, wrote, observed, false }));
	pthread_mutex_unlock(&o->lock);
}

/* May the host, by words that u wrote or observed, order `first` before `then`? */
static bool may_order(const struct unseen *u, const struct order_op *first, const struct order_op *then)
{
	return (u->wrote && (first == u->op || is_before(first, u->op)) && then != u->op
			&& then->issued_at >= u->op->issued_at)
		|| (u->observed && (then == u->op || is_before(u->op, then)) && first != u->op);
}

static struct unseen *find_unseen(const struct order *o, const struct order_op *a, const struct order_op *b)
{
	for (size_t i = 0; i < o->unseen.n; i++)
		if (may_order(&o->unseen.at[i], a, b) || may_order(&o->unseen.at[i], b, a))
			return &o->unseen.at[i];
	return NULL;
}

/* `now` and `old` are not ordered, and one of them is strong. Host code has no strong accesses that
 * could be distinguished from others: what it reads of a strong write, or writes for a strong read, counts as
 * synchronization. */
static void meet(struct order *o, const struct order_access *now, const struct order_access *old)
{
	const struct order_access *from = writes(old) ? old : now, *to = writes(old) ? now : old;
	const bool exact = beside(now->op, old->op);

	if (!writes(from) || !(to->flags & (ORDER_OBSERVES | HOST_ACCESS)))
		return;
	if (to->flags & HOST_ACCESS && from->op->silent)
		return;
	/* what the host and grids of its set acquire of each other is known exactly (order_config.met) */
	if (exact && (from->flags | to->flags) & HOST_ACCESS)
		return;
	if (now->flags & HOST_ACCESS)
		order_host_met(o, now->op, old->op, !writes(now));
	else if (old->flags & HOST_ACCESS)
		order_host_met(o, old->op, now->op, false);
	for (size_t i = 0; i < o->met.n; i++)
		if (o->met.at[i].writer == from->op && o->met.at[i].reader == to->op)
			return;
	from->op->kept++;
	to->op->kept++;
	vec_push(&o->met, ((struct met){ from->op, to->op, exact, false }));
}

/* Did memory order the two? Accesses are reported when their operation has ended, so that the one that
 * was reported later may be the first. */
static bool have_met(const struct order *o, const struct order_access *now, const struct order_access *old)
{
	const struct order_config *c = &o->config;

	return c->met && (c->met(c->user, old->op, old->part, now->op, now->part)
		|| c->met(c->user, now->op, now->part, old->op, old->part));
}

static const char *name_of(const struct order_op *op)
{
	return op->call.kernel ? op->call.kernel : op->call.name;
}

static void not_checked(const struct order *o, const struct order_access *now, const struct order_access *old,
	const char *how)
{
	char why[512];

	snprintf(why, sizeof why, "races between %s in %s and %s in %s, which %s", name_of(now->op),
		now->op->where, name_of(old->op), old->op->where, how);
	if (o->config.unchecked)
		o->config.unchecked(o->config.user, why);
}

/* False: the pair may be ordered by memory, which is not checked. */
static bool is_checked(struct order *o, const struct order_access *now, const struct order_access *old)
{
	struct met *m = find_met(o, old->op, now->op, false);
	struct unseen *u = find_unseen(o, old->op, now->op);

	if (!m)
		m = find_met(o, now->op, old->op, false);
	if (!m && !u)
		return true;
	if (u && !u->reported)
		not_checked(o, now, old, "the host may have ordered by memory that both access; its accesses are "
			"not seen");
	if (u) {
		u->reported = true;
		return false;
	}
	if (m->reported || (now->flags | old->flags) & HOST_ACCESS)
		return false;
	m->reported = true;
	not_checked(o, now, old, "may run at the same time and synchronize through memory");
	return false;
}

/* Did the thread that issued `now` know that `old` was issued? */
static bool knew_issue(const struct order_op *now, const struct order_op *old)
{
	return now->issued.line == old->issued.line
		|| clock_get(&now->seen, old->issued.line) >= old->issued.epoch;
}

enum { UNSETTLED = 1024 };

/* The strong writes of what still runs are not reported yet. */
static void settle_later(struct order *o, const struct order_access *now, const struct order_access *old,
	enum order_lack lacks, uint64_t addr, uint64_t bytes)
{
	for (size_t i = 0; i < o->unsettled.n; i++) {
		const struct unsettled *u = &o->unsettled.at[i];

		if (u->now.op == now->op && u->old.op == old->op && u->now.site == now->site
			&& u->old.site == old->site)
			return;
	}
	if (o->unsettled.n == UNSETTLED)
		order_settle(o);
	now->op->kept++;
	old->op->kept++;
	vec_push(&o->unsettled, ((struct unsettled){ *now, *old, addr, bytes, lacks }));
}

void order_settle(struct order *o)
{
	for (size_t i = 0; i < o->unsettled.n; i++) {
		const struct unsettled *u = &o->unsettled.at[i];

		if (is_checked(o, &u->now, &u->old))
			order_conflict(o, &u->now, &u->old, u->lacks, u->addr, u->bytes);
		op_unref(u->now.op);
		op_unref(u->old.op);
	}
	o->unsettled.n = 0;
}

static void found(struct order *o, const struct order_access *now, const struct order_access *old,
	uint64_t addr, uint64_t bytes)
{
	const enum order_lack lacks = is_before(old->op, now->op) ? LACKS_VISIBLE
		: order_op_before(old->op, now->op, ORDER_KNOWN) ? LACKS_PROMISE : LACKS_ALL;

	if (strong_to_each_other(now, old) && !lifetime(now) && !lifetime(old)) {
		meet(o, now, old);
		return;
	}
	if ((lacks == LACKS_PROMISE && !o->config.documented) || beside(now->op, old->op))
		return;
	if (!conflicts(now, old) || have_met(o, now, old) || !is_checked(o, now, old))
		return;
	if (o->observed && o->running > 1 && !((now->flags | old->flags) & HOST_ACCESS))
		settle_later(o, now, old, lacks, addr, bytes);
	else
		order_conflict(o, now, old, lacks, addr, bytes);
}

static struct order_state *advance(struct step *s, const struct order_state *old, uint64_t addr,
	uint64_t bytes)
{
	struct order_access at[MOST + 1];
	const struct order_access *now = &s->now;
	uint32_t n = 0;
	bool add = true;

	for (uint32_t i = 0; old && i < old->n; i++) {
		const struct order_access *x = &old->at[i];
		const bool ordered = order_op_before(x->op, now->op, order_relation(s->o));

		if (x->op == now->op) {
			add &= !covers(x, now);
			if (!add || !covers(now, x))
				at[n++] = *x;
			continue;
		}
		/* what ran beside others may be reported after what it is ordered before */
		if (!ordered && !s->quiet && !order_op_before(now->op, x->op, order_relation(s->o)))
			found(s->o, now, x, addr, bytes);
		if (ordered && x->flags & LIFE_FREE && !(now->flags & LIFE_ALLOC))
			order_conflict(s->o, now, x, LACKS_ALL, addr, bytes);
		if (ordered && s->o->config.threads && x->op->line == now->op->line && conflicts(now, x)
				&& !knew_issue(now->op, x->op))
			order_conflict(s->o, now, x, LACKS_ISSUE, addr, bytes);
		if (ordered && replaces(now, x))
			continue;
		at[n++] = *x;
	}
	if (add && n == MOST)
		memmove(at, at + 1, --n * sizeof *at);
	if (add)
		at[n++] = *now;
	return state_new(&s->o->map, at, n);
}

static struct order_state *step(void *user, struct order_state *old, uint64_t addr, uint64_t bytes)
{
	struct step *s = user;
	const size_t i = (size_t)((uintptr_t)old >> 5) % MEMO;

	if (s->memo[i].to && s->memo[i].from == old) {
		s->memo[i].to->refs++;
		return s->memo[i].to;
	}
	state_put(&s->o->map, s->memo[i].to);
	state_put(&s->o->map, s->memo[i].from);
	s->memo[i].from = old;
	if (old)
		old->refs++; /* its address must not be that of another one */
	s->memo[i].to = advance(s, old, addr, bytes);
	s->memo[i].to->refs++;
	return s->memo[i].to;
}

/* ---- many accesses ---- */

_Static_assert(ORDER_STRONG > ORDER_WRITE && ORDER_OBSERVES > ORDER_STRONG, "see by_kind()");

static int by_kind(const void *a, const void *b)
{
	const struct order_range *x = a, *y = b;

	/* strong ones first: they show which operations may synchronize */
	if (x->flags != y->flags)
		return x->flags > y->flags ? -1 : 1;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Joins ranges of one kind that overlap or touch. Returns how many remain. */
static size_t join_ranges(struct order_range *r, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct order_range *last = kept ? &r[kept - 1] : NULL;

		if (!r[i].bytes)
			continue;
		if (last && last->flags == r[i].flags && last->site == r[i].site
			&& last->part == r[i].part && last->addr + last->bytes >= r[i].addr) {
			const uint64_t end = r[i].addr + r[i].bytes;

			if (last->addr + last->bytes < end)
				last->bytes = end - last->addr;
			continue;
		}
		r[kept++] = r[i];
	}
	return kept;
}

/* The limit of memory: what is known is forgotten, which hides races and makes none. */
static void limit(struct order *o)
{
	if (o->map.bytes <= o->config.most_bytes)
		return;
	map_clear(&o->map);
	if (!o->full && o->config.unchecked)
		o->config.unchecked(o->config.user, "races between operations: their accesses took more "
			"memory than the limit, and earlier ones were forgotten");
	o->full = true;
}

void order_forget_all(struct order *o, const char *why)
{
	pthread_mutex_lock(&o->lock);
	map_clear(&o->map);
	if (o->config.unchecked)
		o->config.unchecked(o->config.user, why);
	pthread_mutex_unlock(&o->lock);
}

static void apply(struct order *o, struct order_op *op, const struct order_range *range, size_t n,
	unsigned more, bool quiet)
{
	struct order_range *r = n ? base_alloc(n * sizeof *r) : NULL;
	size_t from = 0;

	if (n) {
		memcpy(r, range, n * sizeof *r);
		qsort(r, n, sizeof *r, by_kind);
	}
	n = join_ranges(r, n);
	while (from < n) {
		struct step s = { .o = o, .quiet = quiet, .now = { .op = op, .site = r[from].site,
			.part = r[from].part, .flags = (uint16_t)(r[from].flags | more) } };
		size_t to = from;

		o->observed |= r[from].flags & ORDER_OBSERVES;
		while (to < n && r[to].flags == r[from].flags && r[to].site == r[from].site
			&& r[to].part == r[from].part)
			to++;
		op->kept++; /* while states come and go */
		map_apply(&o->map, r + from, to - from, step, &s);
		for (size_t i = 0; i < MEMO; i++) {
			state_put(&o->map, s.memo[i].to);
			state_put(&o->map, s.memo[i].from);
		}
		op_unref(op);
		from = to;
	}
	free(r);
	limit(o);
}

void order_accesses(struct order *o, struct order_op *op, const struct order_range *range, size_t n)
{
	const struct order_access a = { .op = op };
	order_accessed *accessed;

	pthread_mutex_lock(&o->lock);
	apply(o, op, range, n, 0, false);
	accessed = o->accessed;
	pthread_mutex_unlock(&o->lock);
	if (accessed && n) {
		const struct order_side side = order_side_of(&a);

		accessed(o->accessed_user, &side, order_place(op), op->issued_at, range, n);
	}
}

void order_watch(struct order *o, order_accessed *accessed, void *user)
{
	pthread_mutex_lock(&o->lock);
	o->accessed = accessed;
	o->accessed_user = user;
	pthread_mutex_unlock(&o->lock);
}

/* All operations so far are before all later ones if none is still running and the host knows them
 * to be complete. With config.threads there may be threads that have made no call yet. */
void order_retire(struct order *o)
{
	if (o->running || o->config.threads)
		return;
	for (uint32_t i = 0; i < o->line.n; i++) {
		const struct line *l = &o->line.at[i];

		if (l->thread ? l->held : !order_all_know(o, i, l->epoch))
			return;
	}
	map_clear(&o->map);
	order_forget_met(o);
	o->observed = false;
	if (o->config.retired)
		o->config.retired(o->config.user);
}

/* ---- the host ---- */

struct look { /* an access that is compared, but not kept */
	struct order *o;
	struct order_access now;
	uint32_t (*stack)(void);
	bool any;
};

static void compare(void *user, const struct order_state *s, uint64_t addr, uint64_t bytes)
{
	struct look *l = user;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct order_access *x = &s->at[i];

		if (x->flags & HOST_ACCESS || order_op_before(x->op, l->now.op, order_relation(l->o))
				|| beside(x->op, l->now.op))
			continue;
		if (!conflicts(x, &l->now)) {
			found(l->o, &l->now, x, addr, bytes); /* it may synchronize */
			continue;
		}
		if (!l->any && l->stack)
			l->now.op->call.stack = l->stack();
		l->any = true;
		found(l->o, &l->now, x, addr, bytes);
	}
}

/* Operations that are issued later are ordered after it, so that it is kept only for those that were
 * issued and have not run. */
bool order_host_access(struct order *o, const struct order_range *range, const struct order_host *host,
	uint32_t (*stack)(void))
{
	const struct order_call call = { .name = "access by the host" };
	struct look l = { .o = o, .stack = stack, .now = { .part = range->part,
		.flags = (uint16_t)(range->flags | HOST_ACCESS) } };

	pthread_mutex_lock(&o->lock);
	l.now.op = order_host_op(o, &call);
	l.now.op->beside = host->beside;
	l.now.op->met = host->met;
	map_each(&o->map, range->addr, range->bytes, compare, &l);
	if (o->running && !host->alone && stack && !l.any)
		l.now.op->call.stack = stack();
	if (o->running && !host->alone)
		apply(o, l.now.op, range, 1, HOST_ACCESS, true);
	order_host_op_put(l.now.op);
	pthread_mutex_unlock(&o->lock);
	return l.any;
}

static struct order_access host_side(const struct order_host_race *r, struct order_op *op)
{
	return (struct order_access){ .op = op, .flags = (uint16_t)(r->host.flags | HOST_ACCESS) };
}

void order_host_raced(struct order *o, const struct order_host_race *r)
{
	const struct order_call call = { .name = "access by the host", .stack = r->stack };
	struct order_access host, grid = { .op = (struct order_op *)r->op, .site = r->grid.site,
		.flags = (uint16_t)r->grid.flags };
	struct order_op *op;

	pthread_mutex_lock(&o->lock);
	op = order_op_new(o, r->at->line, &call);
	op->epoch = r->at->epoch;
	op->issued = r->at->issued;
	op->clock = clock2_copy(&r->at->clock);
	host = host_side(r, op);
	order_conflict_as(o, r->host_first ? &grid : &host, r->host_first ? &host : &grid, LACKS_ALL,
		r->grid.addr, r->grid.bytes, r->hint);
	order_host_op_put(op);
	pthread_mutex_unlock(&o->lock);
}

struct pending {
	const struct order *o;
	void (*each)(void *user, uint64_t addr, uint64_t bytes, bool write);
	void *user;
};

/* With config.threads, another thread may access it that does not know. */
static bool is_known(const struct pending *p, const struct order_op *op)
{
	return p->o->config.threads ? order_all_know(p->o, op->line, op->epoch)
		: clock_get(&p->o->host.by[ORDER_PROMISED], op->line) >= op->epoch;
}

static void on_state(void *user, const struct order_state *s, uint64_t addr, uint64_t bytes)
{
	const struct pending *p = user;
	bool any = false, write = false;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct order_access *x = &s->at[i];

		if (x->flags & HOST_ACCESS || is_known(p, x->op))
			continue;
		any = true;
		write |= writes(x);
	}
	if (any)
		p->each(p->user, addr, bytes, write);
}

void order_pending(struct order *o, uint64_t addr, uint64_t bytes,
	void (*each)(void *user, uint64_t addr, uint64_t bytes, bool write), void *user)
{
	struct pending p = { .o = o, .each = each, .user = user };

	pthread_mutex_lock(&o->lock);
	map_each(&o->map, addr, bytes, on_state, &p);
	pthread_mutex_unlock(&o->lock);
}

/* ---- lifetimes ---- */

static void life(struct order *o, struct order_op *op, uint64_t addr, uint64_t bytes, unsigned flag)
{
	const struct order_range r = { .addr = addr, .bytes = bytes, .flags = ORDER_WRITE };

	pthread_mutex_lock(&o->lock);
	apply(o, op, &r, 1, flag, false);
	pthread_mutex_unlock(&o->lock);
}

struct release {
	struct order *o;
	struct order_access now;
	const struct order_clock *begun;
	uint32_t (*stack)(const char **name);
};

static void on_release(void *user, const struct order_state *s, uint64_t addr, uint64_t bytes)
{
	struct release *r = user;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct order_place at = s->at[i].op->issued;
		const bool promised = clock_get(&r->begun->by[ORDER_PROMISED], at.line) >= at.epoch;

		if (s->at[i].flags & HOST_ACCESS || at.line == r->now.op->line
			|| clock_get(&r->begun->by[order_relation(r->o)], at.line) >= at.epoch)
			continue;
		if (!r->now.op->call.stack)
			r->now.op->call.stack = r->stack(NULL);
		order_conflict(r->o, &r->now, &s->at[i], promised ? LACKS_VISIBLE : LACKS_ISSUE, addr, bytes);
	}
}

void order_host_frees(struct order *o, uint64_t addr, uint64_t bytes, uint32_t (*stack)(const char **name))
{
	struct order_call call = { .name = "release" };
	struct release r = { .o = o, .stack = stack, .now = { .flags = ORDER_WRITE | LIFE_FREE } };

	pthread_mutex_lock(&o->lock);
	if (o->threads > 1) {
		r.now.op = order_host_op(o, &call);
		r.begun = &order_self(o)->begun;
		map_each(&o->map, addr, bytes, on_release, &r);
		order_host_op_put(r.now.op);
	}
	pthread_mutex_unlock(&o->lock);
}

static struct order_state *forget(void *user, struct order_state *old, uint64_t addr, uint64_t bytes)
{
	(void)user, (void)old, (void)addr, (void)bytes;
	return NULL;
}

void order_forget(struct order *o, uint64_t addr, uint64_t bytes)
{
	const struct order_range r = { .addr = addr, .bytes = bytes };

	pthread_mutex_lock(&o->lock);
	if (bytes)
		map_apply(&o->map, &r, 1, forget, NULL);
	pthread_mutex_unlock(&o->lock);
}

void order_alloc(struct order *o, struct order_op *op, uint64_t addr, uint64_t bytes)
{
	life(o, op, addr, bytes, LIFE_ALLOC);
}

void order_free(struct order *o, struct order_op *op, uint64_t addr, uint64_t bytes)
{
	life(o, op, addr, bytes, LIFE_FREE);
}
