/* cfg: blocks, the order code is laid out in, loops and post-dominators.
 *
 * The order is a weak topological order: strongly connected parts are found,
 * put in topological order, and each taken apart again without its header.
 * So loops are contiguous, also irreducible ones, and jumps go forward in the
 * order except those to the header of a loop around them. */
#include "cfg.h"
#include "opcodes.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct graph {
	const struct ptx_func *f;
	struct ptx_block *block;
	uint32_t n;
	uint32_t *block_of;
	/* edges, by block: to[first[b] .. first[b + 1]) and the same reversed */
	uint32_t *first, *to, *rfirst, *from;
};

/* ---- blocks and edges ---- */

static bool ends_block(const struct ptx_insn *i)
{
	enum ptx_effect e = ptx_effect_of(i->op);

	return e == EF_EXIT || i->op == OP_trap || (e == EF_CONTROL && i->op != OP_call);
}

static void mark(const struct ptx_func *f, bool *leader)
{
	leader[0] = true;
	for (size_t k = 0; k < f->ninsn; k++) {
		const struct ptx_insn *i = &f->insn[k];

		if (i->op == OP_bra)
			leader[i->operand->imm] = true;
		for (uint32_t t = 0; t < i->ntarget; t++)
			leader[i->target[t]] = true;
		if (ends_block(i) && k + 1 < f->ninsn)
			leader[k + 1] = true;
	}
}

static void successors(struct graph *g, struct ptx_block *b)
{
	const struct ptx_insn *i = &g->f->insn[b->end - 1];
	bool falls = !ends_block(i) || i->guard != PTX_NO_REG;

	if (i->op == OP_bra)
		b->succ[b->nsucc++] = g->block_of[i->operand->imm];
	if (falls && b->end < g->f->ninsn)
		b->succ[b->nsucc++] = g->block_of[b->end];
}

/* Calls fn for each edge. */
static void each_edge(struct graph *g, void (*fn)(struct graph *, uint32_t from, uint32_t to))
{
	for (uint32_t b = 0; b < g->n; b++) {
		const struct ptx_insn *i = &g->f->insn[g->block[b].end - 1];

		for (uint32_t t = 0; t < i->ntarget; t++)
			fn(g, b, g->block_of[i->target[t]]);
		for (uint32_t s = 0; s < g->block[b].nsucc; s++)
			fn(g, b, g->block[b].succ[s]);
	}
}

static void count(struct graph *g, uint32_t from, uint32_t to)
{
	g->first[from + 1]++;
	g->rfirst[to + 1]++;
}

static void fill(struct graph *g, uint32_t from, uint32_t to)
{
	g->to[g->first[from]++] = to;
	g->from[g->rfirst[to]++] = from;
}

static void edges(struct graph *g)
{
	g->first = base_alloc((g->n + 2) * sizeof *g->first);
	g->rfirst = base_alloc((g->n + 2) * sizeof *g->rfirst);
	each_edge(g, count);
	for (uint32_t b = 0; b < g->n; b++) {
		g->first[b + 1] += g->first[b];
		g->rfirst[b + 1] += g->rfirst[b];
	}
	g->to = base_alloc((g->first[g->n] + 1) * sizeof *g->to);
	g->from = base_alloc((g->first[g->n] + 1) * sizeof *g->from);
	each_edge(g, fill); /* moves first[b] to first[b + 1] */
	memmove(g->first + 1, g->first, g->n * sizeof *g->first);
	memmove(g->rfirst + 1, g->rfirst, g->n * sizeof *g->rfirst);
	g->first[0] = g->rfirst[0] = 0;
}

static void blocks(struct arena *a, struct graph *g)
{
	const struct ptx_func *f = g->f;
	bool *leader = base_alloc(f->ninsn * sizeof *leader);
	uint32_t b = 0;

	mark(f, leader);
	for (size_t k = 0; k < f->ninsn; k++)
		g->n += leader[k];
	g->block = arena_alloc(a, g->n * sizeof *g->block);
	g->block_of = arena_alloc(a, f->ninsn * sizeof *g->block_of);
	for (uint32_t k = 0; k < f->ninsn; k++) {
		b += leader[k];
		if (leader[k])
			g->block[b - 1].first = k;
		g->block[b - 1].end = k + 1;
		g->block_of[k] = b - 1;
	}
	free(leader);
	for (b = 0; b < g->n; b++)
		successors(g, &g->block[b]);
	edges(g);
}

/* ---- order and loops ---- */

/* A range of the order whose blocks are not arranged yet: the body of a loop,
 * without its header. */
struct part {
	uint32_t at, n, header;
};

struct visit {
	uint32_t block, edge;
};

struct order {
	struct graph *g;
	uint32_t *order;           /* a permutation of the blocks at all times */
	uint32_t *region;          /* block -> number of the part it was last in */
	uint32_t regions;
	/* Tarjan's search; low is NONE once a block's component is complete */
	uint32_t *index, *low, next;
	VEC(struct visit) path;
	VEC(uint32_t) open;
	/* components, in reverse topological order */
	VEC(uint32_t) member;      /* one after the other, each one's root last */
	VEC(uint32_t) start;       /* of each in member */
	VEC(struct part) todo;
};

static void complete(struct order *o, uint32_t root)
{
	uint32_t b;

	vec_push(&o->start, (uint32_t)o->member.n);
	do {
		b = o->open.at[--o->open.n];
		o->low[b] = NONE;
		vec_push(&o->member, b);
	} while (b != root);
}

static void enter(struct order *o, uint32_t b)
{
	struct visit v = { b, o->g->first[b] };

	o->index[b] = o->low[b] = o->next++;
	vec_push(&o->open, b);
	vec_push(&o->path, v);
}

/* Finds the strongly connected components of region r that root leads to. */
static void search(struct order *o, uint32_t root, uint32_t r)
{
	struct graph *g = o->g;

	if (o->region[root] != r || o->index[root] != NONE)
		return;
	enter(o, root);
	while (o->path.n) {
		struct visit *top = &o->path.at[o->path.n - 1];
		uint32_t b = top->block, to;

		if (top->edge < g->first[b + 1]) {
			to = g->to[top->edge++];
			if (o->region[to] != r)
				continue;
			if (o->index[to] == NONE)
				enter(o, to);
			else if (o->low[to] != NONE && o->index[to] < o->low[b])
				o->low[b] = o->index[to];
			continue;
		}
		o->path.n--;
		if (o->path.n) {
			uint32_t up = o->path.at[o->path.n - 1].block;

			if (o->low[b] < o->low[up])
				o->low[up] = o->low[b];
		}
		if (o->low[b] == o->index[b])
			complete(o, b);
	}
}

static bool loops_to_itself(const struct graph *g, uint32_t b)
{
	for (uint32_t e = g->first[b]; e < g->first[b + 1]; e++)
		if (g->to[e] == b)
			return true;
	return false;
}

/* Lays the components out from position `at` on and returns the position after
 * them. A component's root is its header, the block that control reaches first. */
static uint32_t lay_out(struct order *o, uint32_t at, uint32_t loop)
{
	uint32_t end = (uint32_t)o->member.n;

	for (size_t s = o->start.n; s-- > 0; end = o->start.at[s]) {
		uint32_t from = o->start.at[s], n = end - from;
		uint32_t header = o->member.at[end - 1];
		struct part inside = { at + 1, n - 1, header };

		o->order[at] = header;
		memcpy(o->order + at + 1, o->member.at + from, (n - 1) * sizeof *o->order);
		for (uint32_t k = at; k < at + n; k++)
			o->g->block[o->order[k]].loop =
				n > 1 || loops_to_itself(o->g, header) ? header : loop;
		if (n > 1)
			vec_push(&o->todo, inside);
		at += n;
	}
	o->member.n = o->start.n = 0;
	return at;
}

/* The part's blocks become a region that search() has not seen. */
static uint32_t begin_region(struct order *o, const struct part *p)
{
	o->regions++;
	for (uint32_t k = p->at; k < p->at + p->n; k++) {
		o->region[o->order[k]] = o->regions;
		o->index[o->order[k]] = NONE;
	}
	return o->regions;
}

static void arrange(struct graph *g, uint32_t *order)
{
	struct order o = { .g = g, .order = order };
	struct part all = { 0, g->n, NONE };
	uint32_t r, at;

	o.region = base_alloc(g->n * sizeof *o.region);
	o.index = base_alloc(g->n * sizeof *o.index);
	o.low = base_alloc(g->n * sizeof *o.low);
	for (uint32_t b = 0; b < g->n; b++)
		order[b] = b;
	r = begin_region(&o, &all);
	search(&o, 0, r);
	at = lay_out(&o, 0, NONE);
	for (uint32_t b = 0; b < g->n; b++) /* unreachable blocks come last */
		search(&o, b, r);
	lay_out(&o, at, NONE);
	while (o.todo.n) {
		struct part p = o.todo.at[--o.todo.n];

		r = begin_region(&o, &p);
		for (uint32_t e = g->first[p.header]; e < g->first[p.header + 1]; e++)
			search(&o, g->to[e], r);
		lay_out(&o, p.at, p.header);
	}
	for (uint32_t k = 0; k < g->n; k++)
		g->block[order[k]].order = k;
	free(o.region);
	free(o.index);
	free(o.low);
	vec_free(&o.path);
	vec_free(&o.open);
	vec_free(&o.member);
	vec_free(&o.start);
	vec_free(&o.todo);
}

/* ---- post-dominators (Cooper, Harvey, Kennedy) ---- */

/* Does control leave the function here? A guarded exit does not count: the
 * lanes that take it have exited, and the others reconverge after it. */
static bool leaves(const struct graph *g, uint32_t b)
{
	const struct ptx_insn *i = &g->f->insn[g->block[b].end - 1];

	return g->first[b] == g->first[b + 1] || i->op == OP_ret;
}

static uint32_t common_postdominator(const uint32_t *ipdom, const uint32_t *number, uint32_t a,
	uint32_t b)
{
	while (a != b) {
		while (number[a] < number[b])
			a = ipdom[a];
		while (number[b] < number[a])
			b = ipdom[b];
	}
	return a;
}

/* Blocks in the order a search backwards from the exit leaves them, which
 * number[] counts; the virtual exit, block n, has the highest number. */
static uint32_t backwards(const struct graph *g, uint32_t *number, uint32_t *left)
{
	VEC(struct visit) path = { 0 };
	uint32_t n = 0;

	memset(number, 0xff, (g->n + 1) * sizeof *number);
	for (uint32_t root = 0; root < g->n; root++) {
		struct visit v = { root, g->rfirst[root] };

		if (!leaves(g, root) || number[root] != NONE)
			continue;
		number[root] = NONE - 1;
		vec_push(&path, v);
		while (path.n) {
			struct visit *top = &path.at[path.n - 1];
			uint32_t b = top->block;

			if (top->edge < g->rfirst[b + 1]) {
				v.block = g->from[top->edge++];
				v.edge = g->rfirst[v.block];
				if (number[v.block] != NONE)
					continue;
				number[v.block] = NONE - 1;
				vec_push(&path, v);
				continue;
			}
			number[b] = n;
			left[n++] = b;
			path.n--;
		}
	}
	number[g->n] = n;
	vec_free(&path);
	return n;
}

static void post_dominators(struct graph *g)
{
	uint32_t *number = base_alloc((g->n + 1) * sizeof *number);
	uint32_t *left = base_alloc((g->n + 1) * sizeof *left);
	uint32_t *ipdom = base_alloc((g->n + 1) * sizeof *ipdom);
	uint32_t n = backwards(g, number, left);
	bool changed;

	memset(ipdom, 0xff, (g->n + 1) * sizeof *ipdom);
	ipdom[g->n] = g->n;
	do {
		changed = false;
		for (uint32_t k = n; k-- > 0;) {
			uint32_t b = left[k], d = leaves(g, b) ? g->n : NONE;

			for (uint32_t e = g->first[b]; e < g->first[b + 1]; e++) {
				uint32_t to = g->to[e];

				if (ipdom[to] != NONE)
					d = d == NONE ? to : common_postdominator(ipdom, number, d, to);
			}
			changed |= d != ipdom[b];
			ipdom[b] = d;
		}
	} while (changed);
	for (uint32_t b = 0; b < g->n; b++)
		g->block[b].ipdom = ipdom[b] == g->n ? NONE : ipdom[b];
	free(number);
	free(left);
	free(ipdom);
}

const struct ptx_cfg *cfg_build(struct arena *a, const struct ptx_func *f)
{
	struct ptx_cfg *c = arena_alloc(a, sizeof *c);
	struct graph g = { .f = f };

	blocks(a, &g);
	c->block = g.block;
	c->nblock = g.n;
	c->block_of = g.block_of;
	c->order = arena_alloc(a, g.n * sizeof *c->order);
	arrange(&g, c->order);
	post_dominators(&g);
	free(g.first);
	free(g.to);
	free(g.rfirst);
	free(g.from);
	return c;
}
