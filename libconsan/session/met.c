/* met: which accesses of operations memory orders (order_config.met): grids that ran at the same time
 * may have released and acquired (libconsan/check/met.h), and order by that what is before the one and
 * after the other.
 *
 * An access x is before an access y if
 *   x is before the end of a grid by memory, and that is before y, or before the begin of a grid that is
 *   before y by memory; or
 *   x is before the begin of a grid, and that is before y by memory; or
 *   x is before the begin of a grid i, which is before the end of a grid j of its set by memory, and j is
 *   before y; or
 *   the host has acquired x (host.c), and has issued y since, or something that is before y.
 * "Before" without "by memory" is the order of the host API. Within a set no longer chains are needed, as
 * what threads know is handed on, also to grids that begin later. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SETS = 64 };         /* of which the newest grids are remembered */

struct met_set {
	struct beside *of;               /* a reference */
	VEC(struct order_op *) grid;     /* by number in the set, kept; NULL: not known, or the host */
	struct met_op *host;             /* the host's accesses; NULL: there are none */
};

/* What order_op_met() of a grid is. */
struct met_op {
	struct met_set *set;             /* NULL: it is forgotten */
	VEC(struct check_part) part;     /* number 1 is the first */
	struct number_map number;        /* hash of a part -> its number */
};

struct met_pair {                /* an answer of passed() */
	struct order_place x, y;
	size_t sets;
	bool passed;
};
enum { LAST = 16 };

struct mets {
	struct met_pair last[LAST];
	VEC(struct met_set *) set;       /* oldest first */
	VEC(struct met_op *) op;
	bool stale;                      /* none will be asked for */
};

static void free_set(struct consan *c, struct met_set *s)
{
	for (size_t k = 0; k < s->grid.n; k++)
		if (s->grid.at[k]) {
			order_op_set_met(s->grid.at[k], NULL);
			order_op_drop(c->order, s->grid.at[k]);
		}
	vec_free(&s->grid);
	check_met_put(s->of);
	free(s);
}

static void free_parts(struct met_op *x)
{
	vec_free(&x->part);
	number_map_free(&x->number);
}

/* The oldest set, of which the host is a member: it counts as having waited for its grids, which can hide a race,
 * and makes none. False: it is none. */
static bool forget_oldest(struct consan *c)
{
	struct mets *m = c->mets;
	struct met_set *s = m->set.at[0];

	if (!s->host)
		return false;
	for (size_t i = 0; i < s->grid.n; i++)
		if (s->grid.at[i])
			order_host_assumes(c->order, s->grid.at[i]);
	for (size_t i = 0; i < m->op.n; i++)
		if (m->op.at[i]->set == s) {
			free_parts(m->op.at[i]);
			m->op.at[i]->set = NULL;
		}
	host_forget(c, s->of);
	free_set(c, s);
	m->set.n--;
	memmove(m->set.at, m->set.at + 1, m->set.n * sizeof *m->set.at);
	return true;
}

static void forget(struct consan *c)
{
	struct mets *m = c->mets;

	for (size_t i = 0; i < m->set.n; i++)
		free_set(c, m->set.at[i]);
	for (size_t i = 0; i < m->op.n; i++) {
		free_parts(m->op.at[i]);
		free(m->op.at[i]);
	}
	m->set.n = m->op.n = 0;
	m->stale = false;
}

void met_close(struct consan *c)
{
	if (!c->mets)
		return;
	forget(c);
	vec_free(&c->mets->set);
	vec_free(&c->mets->op);
	free(c->mets);
}

void met_retired(void *user)
{
	struct consan *c = user;

	if (c->mets)
		c->mets->stale = true;
}

static struct met_set *set_of(struct consan *c, struct beside *of)
{
	struct mets *m = c->mets;
	struct met_set *s = NULL;

	for (size_t i = 0; i < m->set.n; i++)
		if (m->set.at[i]->of == of)
			s = m->set.at[i];
	if (!s && m->set.n == MOST_SETS && !forget_oldest(c)) {
		order_forget_all(c->order, "races between operations: kernels synchronized through memory so "
			"often that earlier accesses were forgotten");
		forget(c);
	}
	if (!s) {
		s = base_alloc(sizeof *s);
		s->of = of;
		vec_push(&m->set, s);
	} else {
		check_met_put(of);
	}
	for (uint32_t i = 0; i < check_met_grids(of); i++) {
		struct order_op *op = session_launched(c, check_met_launch(of, i));

		if (i == s->grid.n)
			vec_push(&s->grid, NULL);
		if (!s->grid.at[i] && op)
			s->grid.at[i] = order_op_keep(c->order, op);
	}
	return s;
}

static struct met_op *add_op(struct consan *c, struct met_set *s)
{
	struct met_op *x = base_alloc(sizeof *x);

	x->set = s;
	vec_push(&c->mets->op, x);
	return x;
}

static void begin(struct consan *c)
{
	if (c->mets && c->mets->stale)
		forget(c);
	if (!c->mets)
		c->mets = base_alloc(sizeof *c->mets);
}

struct met_op *met_begin(struct consan *c, struct order_op *op, const struct check *check)
{
	struct beside *of = check_met(check);
	struct met_op *x;

	if (c->mets && c->mets->stale)
		forget(c);
	if (!of)
		return NULL;
	begin(c);
	x = add_op(c, set_of(c, of));
	order_op_set_met(op, x);
	return x;
}

struct met_op *met_of_host(struct consan *c, struct beside *of)
{
	struct met_set *s;

	begin(c);
	s = set_of(c, of);
	if (!s->host)
		s->host = add_op(c, s);
	return s->host;
}

static uint64_t hash_of(const struct check_part *p)
{
	uint64_t h = (uint64_t)p->cluster << 32 ^ p->epoch ^ (uint64_t)p->host << 20;

	h = (h ^ (uint64_t)p->agent << 48 ^ (uint64_t)p->met << 32 ^ p->lanes) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29 ^ p->stored;
}

static bool same_part(const struct check_part *a, const struct check_part *b)
{
	return a->cluster == b->cluster && a->epoch == b->epoch && a->lanes == b->lanes
		&& a->agent == b->agent && a->met == b->met && a->stored == b->stored && a->host == b->host;
}

uint32_t met_part(struct met_op *x, const struct check_part *p)
{
	uint64_t key = hash_of(p), at;

	if (!x)
		return 0;
	for (; (at = number_map_get(&x->number, key)); key++)
		if (same_part(&x->part.at[at - 1], p))
			return (uint32_t)at;
	vec_push(&x->part, *p);
	number_map_put(&x->number, key, x->part.n);
	return (uint32_t)x->part.n;
}

/* ---- questions ---- */

static bool before(const struct order_op *a, const struct order_op *b)
{
	return a && b && order_before(a, b, ORDER_PROMISED);
}

struct access {
	const struct order_op *op;
	const struct met_op *of;
	const struct check_part *part;
};

static struct access access_of(const struct order_op *op, uint32_t part)
{
	const struct met_op *of = part ? order_op_met(op) : NULL;

	if (of && !of->set)
		of = NULL;
	return (struct access){ op, of, of ? &of->part.at[part - 1] : NULL };
}

/* Is there a grid before whose begin x is, and whose begin is before y by memory? */
static bool begun_after(const struct access *x, const struct order_op *grid, const struct access *y)
{
	const struct met_set *s = y->of ? y->of->set : NULL;

	for (uint32_t q = 0; s && q < s->grid.n; q++)
		if (s->grid.at[q] != y->op && before(x ? x->op : grid, s->grid.at[q])
			&& check_met_begun(s->of, q, y->part))
			return true;
	return false;
}

/* Is x before the end of a grid by memory, and that before y? */
static bool ended_before(const struct access *x, const struct access *y)
{
	const struct met_set *s = x->of ? x->of->set : NULL;

	for (uint32_t p = 0; s && p < s->grid.n; p++)
		if (s->grid.at[p] != x->op && (before(s->grid.at[p], y->op)
			|| begun_after(NULL, s->grid.at[p], y)) && check_met_ended(s->of, p, x->part))
			return true;
	return false;
}

/* Is x before the begin of a grid of the set, and y after the end of one that is after it by memory? */
static bool passed_in(const struct met_set *s, const struct order_op *x, const struct order_op *y)
{
	for (uint32_t j = 0; j < s->grid.n; j++)
		for (uint32_t i = 0; before(s->grid.at[j], y) && i < s->grid.n; i++)
			if (i != j && before(x, s->grid.at[i]) && check_met_passed(s->of, i, j))
				return true;
	return false;
}

bool met_after_host(const struct consan *c, const struct beside *of, uint32_t epoch, const struct order_op *op)
{
	for (size_t i = 0; i < c->mets->set.n; i++) {
		const struct met_set *s = c->mets->set.at[i];

		for (uint32_t k = 0; s->of == of && k < s->grid.n; k++)
			if (before(s->grid.at[k], op) && check_met_host(of, k) >= epoch)
				return true;
	}
	return false;
}

static bool passed(struct mets *m, const struct order_op *x, const struct order_op *y)
{
	const struct met_pair pair = { order_place(x), order_place(y), m->set.n, false };
	struct met_pair *last = &m->last[(pair.x.epoch ^ pair.y.epoch << 2) % LAST];

	if (last->sets == pair.sets && last->x.line == pair.x.line && last->x.epoch == pair.x.epoch
		&& last->y.line == pair.y.line && last->y.epoch == pair.y.epoch)
		return last->passed;
	*last = pair;
	for (size_t i = 0; i < m->set.n && !last->passed; i++)
		last->passed = passed_in(m->set.at[i], x, y);
	return last->passed;
}

bool met_orders(void *user, const struct order_op *a, uint32_t a_part, const struct order_op *b,
	uint32_t b_part)
{
	const struct consan *c = user;
	const struct access x = access_of(a, a_part), y = access_of(b, b_part);

	if (!c->mets)
		return false;
	return begun_after(&x, NULL, &y) || ended_before(&x, &y) || passed(c->mets, a, b)
		|| host_orders(c, &(struct host_side){ a, x.of ? x.of->set->of : NULL, x.part },
			&(struct host_side){ b, y.of ? y.of->set->of : NULL, y.part });
}
