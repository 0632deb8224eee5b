/* place: see place.h. */
#include "place.h"

#include "libconsan/event/event.h"

#include <stdlib.h>
#include <string.h>

/* ---- control flow ---- */

struct flow {
	const struct ptx_func *f;
	const struct ptx_block *block;
	const struct ptx_cfg *g;
	uint32_t *idom; /* of each block; UINT32_MAX: of the entry, and of code that is never reached */
	uint32_t *end;  /* of each header: the last position of its loop in the order */
	/* of each instruction: the frame of the program's own code, or NULL, and the first and the last
	 * instruction of its row: those in sequence, in a block, with the same frame */
	const struct site_loc **own;
	uint32_t *first, *last;
};

struct placer {
	const struct ptx_module *m;
	VEC(struct flow) flows; /* of functions that were asked for */
};

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

static uint32_t position(const struct flow *w, uint32_t b)
{
	return w->block[b].order;
}

static uint32_t meet(const struct flow *w, uint32_t a, uint32_t b)
{
	while (a != b) {
		while (position(w, a) > position(w, b))
			a = w->idom[a];
		while (position(w, b) > position(w, a))
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
	if (position(w, to) <= position(w, from) && w->end[to] < position(w, from))
		w->end[to] = position(w, from);
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

/* Is it the same place of the program's own source? An edit there changes all instructions that
 * the compiler made of it, in loops that it unrolled and in functions that it inlined. */
static bool same_place(const struct site_loc *a, const struct site_loc *b)
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
			&& same_place(own, w->own[k - 1]) ? w->first[k - 1] : k;
	}
	for (uint32_t k = (uint32_t)n; k-- > 0;)
		w->last[k] = k + 1 < n && w->first[k + 1] != k + 1
			&& ptx_effect_of(w->f->insn[k + 1].op) != EF_CONTROL ? w->last[k + 1] : k;
}

static const struct flow *flow_of(struct placer *p, const struct ptx_func *f)
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

static bool inside(const struct flow *w, uint32_t b, uint32_t loop)
{
	return loop == UINT32_MAX || (position(w, b) >= position(w, loop)
		&& position(w, b) <= w->end[loop]);
}

/* The innermost loop around both blocks; UINT32_MAX: none. */
static uint32_t common_loop(const struct flow *w, uint32_t a, uint32_t b)
{
	for (uint32_t k = position(w, a) + 1; k-- > 0;) {
		const uint32_t h = w->g->order[k];

		if (w->block[h].loop == h && inside(w, a, h) && inside(w, b, h))
			return h;
	}
	return UINT32_MAX;
}

static bool dominates(const struct flow *w, uint32_t a, uint32_t b)
{
	while (b != UINT32_MAX && b != a)
		b = w->idom[b];
	return b == a;
}

/* Do all threads that enter the innermost loop around the block (without one, the function) pass it,
 * in each iteration? */
static bool passed_by_all(const struct flow *w, uint32_t b)
{
	const uint32_t loop = w->block[b].loop;

	for (uint32_t k = loop == UINT32_MAX ? w->g->order[0] : loop; k != UINT32_MAX;
		k = w->block[k].ipdom)
		if (k == b)
			return true;
	if (loop == UINT32_MAX)
		return false;
	for (uint32_t k = position(w, loop); k <= w->end[loop]; k++) {
		const uint32_t u = w->g->order[k];

		for (uint32_t i = 0; i < w->block[u].nsucc; i++)
			if (w->block[u].succ[i] == loop && !dominates(w, b, u))
				return false;
	}
	return true;
}

/* Is it inlined at the same places, too? If so the compiler has unrolled a loop around it. */
static bool same_callers(const struct site_loc *a, const struct site_loc *b)
{
	for (a = a->inlined_at, b = b->inlined_at; a && b; a = a->inlined_at, b = b->inlined_at)
		if (a == b || a->line != b->line || a->col != b->col || strcmp(a->file, b->file))
			return a == b;
	return a == b;
}

/* The same instruction of that source place: also in the library code inlined there. */
static bool same_chain(const struct site_loc *a, const struct site_loc *b,
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

/* ---- candidates ---- */

struct places {
	const struct flow *w;
	const char *ptx;
	struct place *to;
	bool all[PLACES]; /* passed_by_all() */
	size_t n;
	bool one_row;     /* the two instructions are of one source place */
	bool in_order;    /* the first one added is the best */
};

/* Those that all threads pass come first. */
static void add(struct places *p, uint32_t insn, enum finding_edit_kind kind)
{
	const uint32_t block = p->w->g->block_of[insn];
	const bool all = passed_by_all(p->w, block);
	struct place x = { .func = p->w->f, .kind = kind };
	size_t at = p->n;

	if (!p->one_row)
		insn = kind == EDIT_AFTER ? p->w->last[insn] : p->w->first[insn];
	/* to an instruction with a source line, if only registers are written on the way */
	while (kind == EDIT_BEFORE && p->w->f->insn[insn].loc && !p->w->f->insn[insn].loc->line
		&& ptx_effect_of(p->w->f->insn[insn].op) == EF_NONE && insn + 1 < p->w->block[block].end)
		insn++;
	x.insn = &p->w->f->insn[insn];
	x.own = p->w->own[insn];
	if (!x.insn->text_len)
		return; /* the ret that the parser added */
	snprintf(x.ptx, sizeof x.ptx, "%s", p->ptx);
	for (size_t i = 0; i < p->n; i++)
		if (place_same(&p->to[i], &x))
			return;
	while (all && at && !p->all[at - 1] && !p->in_order)
		at--;
	if (at == PLACES)
		return;
	p->n += p->n < PLACES;
	memmove(&p->to[at + 1], &p->to[at], (p->n - at - 1) * sizeof *p->to);
	memmove(&p->all[at + 1], &p->all[at], (p->n - at - 1) * sizeof *p->all);
	p->to[at] = x;
	p->all[at] = all;
}

static void add_start(struct places *p, uint32_t block)
{
	add(p, p->w->block[block].first, EDIT_BEFORE);
}

/* At the end of the block, before it branches. */
static void add_end(struct places *p, uint32_t block)
{
	const uint32_t last = p->w->block[block].end - 1;

	add(p, last, ptx_effect_of(p->w->f->insn[last].op) == EF_CONTROL ? EDIT_BEFORE : EDIT_AFTER);
}

/* Points that every path from `from` forward to `to` passes, in the innermost loop around both. */
static void add_forward(struct places *p, uint32_t from, uint32_t to)
{
	const struct flow *w = p->w;
	const uint32_t a = w->g->block_of[from], b = w->g->block_of[to];
	const uint32_t loop = common_loop(w, a, b);

	if (w->block[b].loop == loop)
		add(p, to, EDIT_BEFORE);
	if (w->block[a].loop == loop)
		add(p, from, EDIT_AFTER);
	for (uint32_t k = w->idom[b]; a != b && k != UINT32_MAX && inside(w, k, loop)
		&& position(w, k) >= position(w, a); k = w->idom[k])
		if (w->block[k].loop == loop)
			add_end(p, k);
	for (uint32_t k = w->block[a].ipdom; a != b && k != UINT32_MAX
		&& position(w, k) > position(w, a) && position(w, k) < position(w, b);
		k = w->block[k].ipdom)
		if (w->block[k].loop == loop)
			add_start(p, k);
}

/* Points between `from` in one iteration of their loop and `to` in the next one. */
static void add_around(struct places *p, uint32_t from, uint32_t to)
{
	const struct flow *w = p->w;
	const uint32_t a = w->g->block_of[from], b = w->g->block_of[to];
	const uint32_t loop = common_loop(w, a, b);

	if (loop == UINT32_MAX)
		return;
	if (w->block[a].loop == loop)
		add(p, from, EDIT_AFTER);
	for (uint32_t k = w->block[a].ipdom; k != UINT32_MAX && inside(w, k, loop)
		&& position(w, k) > position(w, a); k = w->block[k].ipdom)
		if (w->block[k].loop == loop)
			add_start(p, k);
	if (w->block[b].loop == loop)
		add(p, to, EDIT_BEFORE);
	for (uint32_t k = w->idom[b]; k != UINT32_MAX && inside(w, k, loop); k = w->idom[k])
		if (w->block[k].loop == loop)
			add_end(p, k);
}

static bool is_cta_barrier(const struct ptx_insn *i)
{
	return ptx_effect_of(i->op) == EF_BARRIER || ptx_effect_of(i->op) == EF_CLUSTER;
}

/* Does a barrier stand on every path between the two, of which the first dominates the second? */
static bool barrier_between(const struct flow *w, uint32_t from, uint32_t to)
{
	uint32_t b = w->g->block_of[to], i = to;
	const uint32_t a = w->g->block_of[from];

	for (; b != UINT32_MAX; b = b == a ? UINT32_MAX : w->idom[b],
		i = b == UINT32_MAX ? 0 : w->block[b].end)
		while (i-- > (b == a ? from + 1 : w->block[b].first))
			if (is_cta_barrier(&w->f->insn[i]))
				return true;
	return false;
}

/* Threads may be at different places, so that the access that took place first may be the one that
 * comes second in the code. */
static void add_between(struct places *p, uint32_t from, uint32_t to)
{
	const struct flow *w = p->w;
	const uint32_t a = position(w, w->g->block_of[from]), b = position(w, w->g->block_of[to]);
	const uint32_t first = a < b || (a == b && from < to) ? from : to;
	const uint32_t second = first == from ? to : from;
	const bool around = barrier_between(w, first, second);

	if (around)
		add_around(p, second, first);
	add_forward(p, first, second);
	if (!around)
		add_around(p, second, first);
}

/* Behind `from`, where the code is again in the same loop as `like`. */
static void add_behind(struct places *p, uint32_t from, uint32_t like)
{
	const struct flow *w = p->w;
	const uint32_t a = w->g->block_of[from], loop = w->block[w->g->block_of[like]].loop;

	if (w->block[a].loop == loop)
		add(p, from, EDIT_AFTER);
	for (uint32_t k = w->block[a].ipdom; k != UINT32_MAX && position(w, k) > position(w, a);
		k = w->block[k].ipdom)
		if (w->block[k].loop == loop)
			add_start(p, k);
}

static bool follows_always(const struct flow *w, uint32_t a, uint32_t b)
{
	while (a != UINT32_MAX && a != b)
		a = w->block[a].ipdom;
	return a == b;
}

/* Before the instruction, or before the branches that lead to it: a barrier must be executed by all
 * threads that it names, so rather before a condition than under it. */
static void add_before(struct places *p, uint32_t insn)
{
	const struct flow *w = p->w;
	const uint32_t b = w->g->block_of[insn];
	uint32_t k = w->idom[b];

	p->in_order = true;
	if (k != UINT32_MAX && !follows_always(w, k, b)) {
		add_end(p, k);
		k = w->idom[k];
	}
	add(p, insn, EDIT_BEFORE);
	for (; k != UINT32_MAX && p->n < PLACES; k = w->idom[k])
		add_end(p, k);
}

static bool synchronizes(const struct ptx_insn *i)
{
	const enum ptx_effect e = ptx_effect_of(i->op);

	return e == EF_BARRIER || e == EF_WARP_SYNC || e == EF_CLUSTER || e == EF_MBARRIER;
}

/* Before the first synchronization that follows on every path. */
static void add_before_release(struct places *p, uint32_t from)
{
	const struct flow *w = p->w;
	uint32_t b = w->g->block_of[from], i = from + 1;

	for (; b != UINT32_MAX; b = w->block[b].ipdom, i = b == UINT32_MAX ? 0 : w->block[b].first)
		for (; i < w->block[b].end; i++)
			if (synchronizes(&w->f->insn[i])) {
				add(p, i, EDIT_BEFORE);
				return;
			}
}

/* Before the last synchronization that precedes on every path. */
static void add_before_acquire(struct places *p, uint32_t to)
{
	const struct flow *w = p->w;
	uint32_t b = w->g->block_of[to], i = to;

	for (; b != UINT32_MAX; b = w->idom[b], i = b == UINT32_MAX ? 0 : w->block[b].end)
		for (; i-- > w->block[b].first;)
			if (synchronizes(&w->f->insn[i])) {
				add(p, i, EDIT_BEFORE);
				return;
			}
}

/* ---- instructions by site ---- */

static const struct ptx_insn *find(const struct ptx_module *m, uint32_t site,
	const struct ptx_func **f)
{
	const struct site *s = site_get(site);
	const size_t n = strlen(s->ptx);

	for (size_t i = 0; i < m->nfunc; i++) {
		*f = &m->func[i];
		if (strcmp(m->func[i].name, s->kernel))
			continue;
		for (size_t k = 0; k < m->func[i].ninsn; k++) {
			const struct ptx_insn *x = &m->func[i].insn[k];

			if (x->line == s->ptx_line && x->text_len == n && m->func[i].cfg
				&& !memcmp(m->text + x->text_at, s->ptx, n))
				return x;
		}
	}
	return NULL;
}

/* The next instruction that the source place of `x` became, after the index *at, or NULL. Of a row
 * that is inserted at, the first or last one. */
static const struct ptx_insn *next_copy(const struct flow *w, const struct place *x, uint32_t *at)
{
	for (++*at; *at < w->f->ninsn; ++*at) {
		const struct ptx_insn *i = &w->f->insn[*at];

		if (i == x->insn || !i->text_len)
			continue;
		if (!same_place(w->own[*at], w->own[x->insn - w->f->insn])
			|| (!x->wide && !same_callers(w->own[*at], w->own[x->insn - w->f->insn])))
			continue;
		if (x->kind == EDIT_CHANGE ? i->op == x->insn->op
			&& same_chain(x->insn->loc, i->loc, w->own[x->insn - w->f->insn])
			: (x->kind == EDIT_AFTER ? w->last : w->first)[*at] == *at)
			return i;
	}
	return NULL;
}

static uint32_t count_copies(const struct flow *w, const struct place *x)
{
	uint32_t at = UINT32_MAX, n = 0;

	while (next_copy(w, x, &at))
		n++;
	return n;
}

/* Copies in unrolled loops are always edited. An inlined function may be the place to edit, or one
 * of its callers: both are candidates. A parity is mostly the caller's. */
static size_t with_copies(const struct flow *w, struct place to[PLACES], size_t n)
{
	const size_t narrow = n;

	for (size_t i = 0; i < narrow; i++) {
		struct place wide = to[i], swap;

		to[i].copies = count_copies(w, &to[i]);
		wide.wide = true;
		wide.copies = count_copies(w, &wide);
		if (wide.copies == to[i].copies || n == PLACES)
			continue;
		swap = to[i];
		to[i] = *swap.form == '^' ? swap : wide;
		to[n++] = *swap.form == '^' ? wide : swap;
	}
	return n;
}

static bool is_barrier(const char *ptx)
{
	return !strncmp(ptx, "bar", 3);
}

size_t place_edit(struct placer *placer, const struct finding_edit *e, struct place to[PLACES])
{
	const struct ptx_module *m = placer->m;
	const struct ptx_func *f, *g;
	const struct ptx_insn *x = *e->ptx ? find(m, e->site, &f) : NULL;
	const struct ptx_insn *until = x && e->until ? find(m, e->until, &g) : NULL;
	struct places p = { .ptx = e->ptx, .to = to };
	uint32_t at;

	if (!x)
		return 0;
	p.w = flow_of(placer, f);
	if (e->kind != EDIT_BETWEEN && e->kind != EDIT_MOVE && (e->kind != EDIT_BEFORE || !is_barrier(e->ptx))) {
		to[0] = (struct place){ .func = f, .insn = x, .kind = e->kind };
		snprintf(to[0].ptx, sizeof to[0].ptx, "%s", e->ptx);
		snprintf(to[0].form, sizeof to[0].form, "%s", e->form);
		to[0].own = p.w->own[x - f->insn];
		return with_copies(p.w, to, 1);
	}
	at = (uint32_t)(x - f->insn);
	p.one_row = until && f == g && p.w->first[at] == p.w->first[until - f->insn];
	if (e->kind == EDIT_MOVE) {
		if (until && f == g)
			add_behind(&p, (uint32_t)(until - f->insn), at);
		for (size_t i = 0; i < p.n; i++)
			to[i].moved = x;
		for (size_t i = 0; i < p.n; i++)
			to[i].copies = count_copies(p.w, &to[i]);
		return p.n;
	}
	if (e->kind == EDIT_BEFORE) {
		add_before(&p, at);
	} else if (is_barrier(e->ptx)) {
		if (until && f == g)
			add_between(&p, at, (uint32_t)(until - f->insn));
	} else {
		add_before_release(&p, at);
		add(&p, at, EDIT_AFTER);
		if (until && f == g) {
			add_before_acquire(&p, (uint32_t)(until - f->insn));
			add(&p, (uint32_t)(until - f->insn), EDIT_BEFORE);
		}
	}
	return with_copies(p.w, to, p.n);
}

bool place_barrier(struct placer *p, uint32_t site, char *to, size_t n)
{
	const struct ptx_module *m = p->m;
	const struct ptx_func *f;
	const struct ptx_insn *x = find(m, site, &f);
	const struct flow *w;
	uint32_t b, i;

	*to = 0;
	if (!x)
		return false;
	w = flow_of(p, f);
	i = (uint32_t)(x - f->insn);
	for (b = w->g->block_of[i]; b != UINT32_MAX && !*to; b = w->idom[b],
		i = b == UINT32_MAX ? 0 : w->block[b].end)
		while (i-- > w->block[b].first && !*to) {
			const struct ptx_insn *k = &f->insn[i];

			if (ptx_effect_of(k->op) == EF_BARRIER && k->guard == PTX_NO_REG
				&& memmem(m->text + k->text_at, k->text_len, ".sync", 5))
				snprintf(to, n, "%.*s;", (int)k->text_len, m->text + k->text_at);
		}
	return *to;
}

struct finding_edit place_to_edit(const struct place *p)
{
	const struct ptx_module *m = p->func->module;
	char *text = base_strndup(m->text + p->insn->text_at, p->insn->text_len);
	const struct site s = { .kernel = p->func->name, .module = m->name, .ptx_line = p->insn->line,
		.ptx = text, .loc = p->insn->loc };
	struct finding_edit e = { .kind = (uint8_t)p->kind, .site = site_intern(&s) };

	snprintf(e.ptx, sizeof e.ptx, "%s", p->ptx);
	snprintf(e.form, sizeof e.form, "%s", p->form);
	e.copies = p->copies ? p->copies + 1 : 0;
	free(text);
	return e;
}

bool place_same(const struct place *a, const struct place *b)
{
	const bool same = a->insn == b->insn || (a->copies && b->copies
		&& same_place(a->own, b->own) && (a->wide || same_callers(a->own, b->own)) && (a->kind != EDIT_CHANGE || (a->insn->op == b->insn->op
			&& same_chain(a->insn->loc, b->insn->loc, a->own))));

	return same && a->wide == b->wide && a->kind == b->kind && a->moved == b->moved
		&& !strcmp(*a->form ? a->form : a->ptx, *b->form ? b->form : b->ptx);
}

/* ---- the changed text ---- */

/* The end of the statement, behind its semicolon. */
static size_t end_of(const struct ptx_module *m, const struct ptx_insn *i)
{
	const size_t end = i->text_at + i->text_len;
	const char *semicolon = memchr(m->text + end, ';', m->ntext - end);

	return semicolon ? (size_t)(semicolon - m->text) + 1 : end;
}

struct patch { /* replaces [from, to) */
	size_t from, to;
	char ptx[sizeof ((struct place *)0)->ptx];
};
typedef VEC(struct patch) patches;

static void add_patch(patches *all, const struct ptx_module *m, const struct place *p,
	const struct ptx_insn *i)
{
	struct patch x = { i->text_at, i->text_at, "" };

	snprintf(x.ptx, sizeof x.ptx, "%s", p->ptx);
	if (p->kind == EDIT_AFTER)
		x.from = x.to = end_of(m, i);
	if (p->kind == EDIT_CHANGE)
		x.to = end_of(m, i);
	if (p->kind == EDIT_CHANGE && i != p->insn) {
		char *text = base_strndup(m->text + i->text_at, i->text_len);

		edit_statement(text, p->form, x.ptx, sizeof x.ptx);
		free(text);
	}
	vec_push(all, x);
}

/* Insertions before the change of the same instruction. */
static int by_offset(const void *a, const void *b)
{
	const struct patch *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static int by_address(const void *a, const void *b)
{
	const struct ptx_insn *const *x = a, *const *y = b;

	return (*x > *y) - (*x < *y);
}

typedef VEC(const struct ptx_insn *) insns;

static void all_copies(const struct flow *w, const struct place *x, insns *out)
{
	const struct ptx_insn *i;
	uint32_t at = UINT32_MAX;

	vec_push(out, x->insn);
	while (x->copies && (i = next_copy(w, x, &at)))
		vec_push(out, i);
	qsort(out->at, out->n, sizeof *out->at, by_address);
}

/* Each copy of the instruction is moved to the copy of the place that has its number. */
static void add_move(patches *all, const struct ptx_module *m, const struct flow *w,
	const struct place *p)
{
	struct place moved = { .func = p->func, .insn = p->moved, .kind = EDIT_CHANGE, .copies = 1 };
	struct place to = *p;
	insns from = { 0 }, at = { 0 };

	all_copies(w, &moved, &from);
	all_copies(w, p, &at);
	for (size_t i = 0; i < from.n && from.n == at.n; i++) {
		snprintf(to.ptx, sizeof to.ptx, "%.*s;", (int)from.at[i]->text_len,
			m->text + from.at[i]->text_at);
		add_patch(all, m, &to, at.at[i]);
		vec_push(all, ((struct patch){ from.at[i]->text_at, end_of(m, from.at[i]), " " }));
	}
	vec_free(&from);
	vec_free(&at);
}

void place_apply(struct placer *p, const struct place *at, size_t n, struct text *out)
{
	const struct ptx_module *m = p->m;
	patches all = { 0 };
	size_t from = 0;

	for (size_t k = 0; k < n; k++) {
		const struct flow *w = flow_of(p, at[k].func);
		insns to = { 0 };

		if (at[k].moved) {
			add_move(&all, m, w, &at[k]);
			continue;
		}
		all_copies(w, &at[k], &to);
		for (size_t i = 0; i < to.n; i++)
			add_patch(&all, m, &at[k], to.at[i]);
		vec_free(&to);
	}
	if (all.n)
		qsort(all.at, all.n, sizeof *all.at, by_offset);
	text_add(out, "", 0);
	for (size_t k = 0; k < all.n; k++) {
		const struct patch *x = &all.at[k];

		if (x->from < from || !*x->ptx)
			continue; /* a second change of one instruction */
		text_add(out, m->text + from, x->from - from);
		text_printf(out, " %s ", x->ptx);
		from = x->to;
	}
	text_add(out, m->text + from, m->ntext - from);
	vec_free(&all);
}
