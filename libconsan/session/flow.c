/* flow: see flow.h. */
#include "flow.h"

#include "place.h"

#include <stdlib.h>
#include <string.h>

typedef void visit(struct flow *w, uint32_t from, uint32_t to, void *user);

static void each_edge(struct flow *w, visit *fn, void *user)
{
	for (uint32_t b = 0; b < w->g->nblock; b++) {
		const struct ptx_insn *last = &w->f->insn[w->block[b].end - 1];

		for (uint32_t i = 0; i < w->block[b].nsucc; i++)
			fn(w, b, w->block[b].succ[i], user);
		for (uint32_t i = 0; i < last->ntarget; i++)
			fn(w, b, w->g->block_of[last->target[i]], user);
	}
}

static uint32_t meet(const struct flow *w, uint32_t a, uint32_t b)
{
	while (a != b) {
		while (flow_position(w, a) > flow_position(w, b))
			a = w->idom[a];
		while (flow_position(w, b) > flow_position(w, a))
			b = w->idom[b];
	}
	return a;
}

struct edges {
	uint32_t *first, *from; /* from[first[b]..first[b + 1]): the predecessors of b */
	uint32_t *fill;
};

static void count_edge(struct flow *w, uint32_t from, uint32_t to, void *user)
{
	struct edges *p = user;

	p->first[to + 1]++;
	if (flow_position(w, to) <= flow_position(w, from) && w->end[to] < flow_position(w, from))
		w->end[to] = flow_position(w, from);
}

static void add_edge(struct flow *w, uint32_t from, uint32_t to, void *user)
{
	struct edges *p = user;

	(void)w;
	p->from[p->first[to] + p->fill[to]++] = from;
}

/* Cooper, Harvey, Kennedy: a simple, fast dominance algorithm. */
static void dominators(struct flow *w, const struct edges *p)
{
	const uint32_t entry = w->g->order[0];
	bool again = true;

	for (uint32_t b = 0; b < w->g->nblock; b++)
		w->idom[b] = UINT32_MAX;
	w->idom[entry] = entry;
	while (again) {
		again = false;
		for (uint32_t k = 1; k < w->g->nblock; k++) {
			const uint32_t b = w->g->order[k];
			uint32_t d = UINT32_MAX;

			for (uint32_t i = p->first[b]; i < p->first[b + 1]; i++) {
				const uint32_t from = p->from[i];

				if (w->idom[from] != UINT32_MAX)
					d = d == UINT32_MAX ? from : meet(w, from, d);
			}
			again |= w->idom[b] != d;
			w->idom[b] = d;
		}
	}
	w->idom[entry] = UINT32_MAX;
}

static void flow_open(struct flow *w, const struct ptx_func *f)
{
	const size_t n = f->cfg->nblock;
	struct edges p = { .first = base_alloc((n + 2) * sizeof *p.first) };

	*w = (struct flow){ .f = f, .g = f->cfg, .block = f->cfg->block,
		.idom = base_alloc(n * sizeof *w->idom), .end = base_alloc(n * sizeof *w->end) };
	each_edge(w, count_edge, &p);
	for (size_t b = 0; b < n; b++) {
		p.first[b + 1] += p.first[b];
		if (w->block[b].loop < n && w->end[w->block[b].loop] < w->block[b].order)
			w->end[w->block[b].loop] = w->block[b].order;
	}
	p.from = base_alloc((p.first[n] + 1) * sizeof *p.from);
	p.fill = base_alloc((n + 1) * sizeof *p.fill);
	each_edge(w, add_edge, &p);
	dominators(w, &p);
	free(p.first);
	free(p.from);
	free(p.fill);
}

bool flow_same_place(const struct site_loc *a, const struct site_loc *b)
{
	return a && b && a->line && (a == b || (a->line == b->line && a->col == b->col
		&& !strcmp(a->file, b->file)));
}

static void find_rows(struct flow *w)
{
	const size_t n = w->f->ninsn;
	const struct site_loc *loc = NULL, *own = NULL;

	w->own = base_alloc(n * sizeof *w->own);
	w->first = base_alloc(n * sizeof *w->first);
	w->last = base_alloc(n * sizeof *w->last);
	for (uint32_t k = 0; k < n; k++) {
		if (w->f->insn[k].loc != loc) {
			loc = w->f->insn[k].loc;
			own = site_headline(loc);
		}
		w->own[k] = own;
		w->first[k] = k && w->g->block_of[k] == w->g->block_of[k - 1]
			&& flow_same_place(own, w->own[k - 1]) ? w->first[k - 1] : k;
	}
	for (uint32_t k = (uint32_t)n; k-- > 0;)
		w->last[k] = k + 1 < n && w->first[k + 1] != k + 1
			&& ptx_effect_of(w->f->insn[k + 1].op) != EF_CONTROL ? w->last[k + 1] : k;
}

const struct flow *flow_of(struct placer *p, const struct ptx_func *f)
{
	struct flow w;

	for (size_t i = 0; i < p->flows.n; i++)
		if (p->flows.at[i].f == f)
			return &p->flows.at[i];
	flow_open(&w, f);
	find_rows(&w);
	vec_push(&p->flows, w);
	return &p->flows.at[p->flows.n - 1];
}

struct placer *placer_open(const struct ptx_module *m)
{
	struct placer *p = base_alloc(sizeof *p);

	p->m = m;
	return p;
}

void placer_close(struct placer *p)
{
	for (size_t i = 0; i < p->flows.n; i++) {
		const struct flow *w = &p->flows.at[i];

		free(w->idom);
		free(w->end);
		free(w->own);
		free(w->first);
		free(w->last);
	}
	vec_free(&p->flows);
	free(p);
}

bool flow_inside(const struct flow *w, uint32_t b, uint32_t loop)
{
	return loop == UINT32_MAX || (flow_position(w, b) >= flow_position(w, loop)
		&& flow_position(w, b) <= w->end[loop]);
}

uint32_t flow_common_loop(const struct flow *w, uint32_t a, uint32_t b)
{
	for (uint32_t k = flow_position(w, a) + 1; k-- > 0;) {
		const uint32_t h = w->g->order[k];

		if (w->block[h].loop == h && flow_inside(w, a, h) && flow_inside(w, b, h))
			return h;
	}
	return UINT32_MAX;
}

bool flow_dominates(const struct flow *w, uint32_t a, uint32_t b)
{
	while (b != UINT32_MAX && b != a)
		b = w->idom[b];
	return b == a;
}

bool flow_passed_by_all(const struct flow *w, uint32_t b)
{
	const uint32_t loop = w->block[b].loop;

	for (uint32_t k = loop == UINT32_MAX ? w->g->order[0] : loop; k != UINT32_MAX;
		k = w->block[k].ipdom)
		if (k == b)
			return true;
	if (loop == UINT32_MAX)
		return false;
	for (uint32_t k = flow_position(w, loop); k <= w->end[loop]; k++) {
		const uint32_t u = w->g->order[k];

		for (uint32_t i = 0; i < w->block[u].nsucc; i++)
			if (w->block[u].succ[i] == loop && !flow_dominates(w, b, u))
				return false;
	}
	return true;
}

bool flow_same_callers(const struct site_loc *a, const struct site_loc *b)
{
	for (a = a->inlined_at, b = b->inlined_at; a && b; a = a->inlined_at, b = b->inlined_at)
		if (a == b || a->line != b->line || a->col != b->col || strcmp(a->file, b->file))
			return a == b;
	return a == b;
}

bool flow_same_chain(const struct site_loc *a, const struct site_loc *b,
	const struct site_loc *own)
{
	for (; a && b; a = a->inlined_at, b = b->inlined_at) {
		if (a->line != b->line || a->col != b->col || strcmp(a->file, b->file))
			return false;
		if (a == own)
			return true;
	}
	return a == b;
}

bool flow_follows(const struct flow *w, uint32_t a, uint32_t b)
{
	while (a != UINT32_MAX && a != b)
		a = w->block[a].ipdom;
	return a == b;
}
