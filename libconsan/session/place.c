/* place: see place.h. */
#include "place.h"

#include "flow.h"

#include <stdlib.h>
#include <string.h>

/* ---- candidates ---- */

struct places {
	const struct flow *w;
	const char *ptx;
	struct place *to;
	bool all[PLACES]; /* flow_passed_by_all() */
	size_t n;
	bool one_row;     /* the two instructions are of one source place */
	bool in_order;    /* the first one added is the best */
};

/* Those that all threads pass come first. */
static void add(struct places *p, uint32_t insn, enum finding_edit_kind kind)
{
	const uint32_t block = p->w->g->block_of[insn];
	const bool all = flow_passed_by_all(p->w, block);
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
	const uint32_t loop = flow_common_loop(w, a, b);

	if (w->block[b].loop == loop)
		add(p, to, EDIT_BEFORE);
	if (w->block[a].loop == loop)
		add(p, from, EDIT_AFTER);
	for (uint32_t k = w->idom[b]; a != b && k != UINT32_MAX && flow_inside(w, k, loop)
		&& flow_position(w, k) >= flow_position(w, a); k = w->idom[k])
		if (w->block[k].loop == loop)
			add_end(p, k);
	for (uint32_t k = w->block[a].ipdom; a != b && k != UINT32_MAX
		&& flow_position(w, k) > flow_position(w, a) && flow_position(w, k) < flow_position(w, b);
		k = w->block[k].ipdom)
		if (w->block[k].loop == loop)
			add_start(p, k);
}

/* Points between `from` in one iteration of their loop and `to` in the next one. */
static void add_around(struct places *p, uint32_t from, uint32_t to)
{
	const struct flow *w = p->w;
	const uint32_t a = w->g->block_of[from], b = w->g->block_of[to];
	const uint32_t loop = flow_common_loop(w, a, b);

	if (loop == UINT32_MAX)
		return;
	if (w->block[a].loop == loop)
		add(p, from, EDIT_AFTER);
	for (uint32_t k = w->block[a].ipdom; k != UINT32_MAX && flow_inside(w, k, loop)
		&& flow_position(w, k) > flow_position(w, a); k = w->block[k].ipdom)
		if (w->block[k].loop == loop)
			add_start(p, k);
	if (w->block[b].loop == loop)
		add(p, to, EDIT_BEFORE);
	for (uint32_t k = w->idom[b]; k != UINT32_MAX && flow_inside(w, k, loop); k = w->idom[k])
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
	const uint32_t a = flow_position(w, w->g->block_of[from]);
	const uint32_t b = flow_position(w, w->g->block_of[to]);
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
	for (uint32_t k = w->block[a].ipdom; k != UINT32_MAX && flow_position(w, k) > flow_position(w, a);
		k = w->block[k].ipdom)
		if (w->block[k].loop == loop)
			add_start(p, k);
}

/* Before the instruction, or before the branches that lead to it: a barrier must be executed by all
 * threads that it names, so rather before a condition than under it. */
static void add_before(struct places *p, uint32_t insn)
{
	const struct flow *w = p->w;
	const uint32_t b = w->g->block_of[insn];
	uint32_t k = w->idom[b];

	p->in_order = true;
	if (k != UINT32_MAX && !flow_follows(w, k, b)) {
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

/* Behind the last synchronization that precedes on every path, which may be a loop of its own. */
static void add_behind_acquire(struct places *p, uint32_t to)
{
	const struct flow *w = p->w;
	uint32_t b = w->g->block_of[to], i = to, below = UINT32_MAX;

	for (; b != UINT32_MAX; below = b, b = w->idom[b], i = b == UINT32_MAX ? 0 : w->block[b].end)
		while (i-- > w->block[b].first) {
			if (!synchronizes(&w->f->insn[i]))
				continue;
			if (below == UINT32_MAX)
				add(p, i, EDIT_AFTER);
			else
				add_start(p, below);
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

			if (x->line == s->ptx_line && (!s->ptx_col || x->col == s->ptx_col)
				&& x->text_len == n && m->func[i].cfg
				&& !memcmp(m->text + x->text_at, s->ptx, n))
				return x;
		}
	}
	return NULL;
}

uint32_t place_site(const struct placer *p, uint32_t line, const char *ptx)
{
	const size_t n = strlen(ptx);

	for (size_t i = 0; i < p->m->nfunc; i++)
		for (size_t k = 0; k < p->m->func[i].ninsn; k++) {
			const struct ptx_insn *x = &p->m->func[i].insn[k];

			if (x->line == line && x->text_len >= n && !memcmp(p->m->text + x->text_at, ptx, n))
				return ptx_site_intern(&p->m->func[i], x);
		}
	return 0;
}

static uint32_t count_copies(const struct flow *w, const struct place *x)
{
	uint32_t at = UINT32_MAX, n = 0;

	while (place_next_copy(w, x, &at))
		n++;
	return n;
}

/* Copies in unrolled loops are always edited. An inlined function may be the place to edit, or one
 * of its callers: both are candidates. A parity is mostly the caller's. */
static size_t with_copies(const struct flow *w, struct place to[PLACES], size_t n, size_t most)
{
	const size_t narrow = n = n < most ? n : most;

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

static bool names_register(const struct ptx_operand *o, uint32_t reg)
{
	bool named = o->kind == PO_REG && o->reg == reg;

	for (unsigned i = 0; i < o->n && !named; i++)
		named = names_register(&o->list[i], reg);
	return named;
}

/* Does one instruction only write the register? */
static bool written_once(const struct ptx_func *f, uint32_t reg)
{
	unsigned n = 0;

	for (size_t i = 0; i < f->ninsn; i++)
		for (unsigned k = 0; k < ptx_written(&f->insn[i]); k++)
			n += names_register(&f->insn[i].operand[k], reg);
	return n == 1;
}

bool place_moved(const struct flow *w, const struct ptx_insn *moved, const struct ptx_insn *to,
	char *ptx, size_t n)
{
	const struct ptx_func *f = w->f;
	const uint32_t b = w->g->block_of[moved - f->insn], d = w->idom[b];
	const char *text = f->module->text + moved->text_at, *condition;
	const struct ptx_insn *branch;
	bool negated;

	*ptx = 0;
	if (flow_dominates(w, b, w->g->block_of[to - f->insn]) || d == UINT32_MAX)
		return snprintf(ptx, n, "%.*s;", (int)moved->text_len, text) < (int)n;
	branch = &f->insn[w->block[d].end - 1];
	if (branch->guard == PTX_NO_REG || w->block[d].nsucc != 2 || moved->guard != PTX_NO_REG
		|| (w->block[d].succ[0] != b && w->block[d].succ[1] != b)
		|| !written_once(f, branch->guard))
		return false;
	condition = f->reg[branch->guard].name;
	negated = branch->guard_negated != (w->block[d].succ[0] != b);
	return snprintf(ptx, n, "@%s%s %.*s;", negated ? "!" : "", condition, (int)moved->text_len,
		text) < (int)n;
}

/* Keeps the places to which the instruction can be moved. */
static size_t moves(const struct flow *w, const struct ptx_insn *moved, struct place to[PLACES],
	size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct place x = to[i];

		if (!place_moved(w, moved, x.insn, x.ptx, sizeof x.ptx))
			continue;
		x.moved = moved;
		x.copies = count_copies(w, &x);
		to[kept++] = x;
	}
	return kept;
}

static bool is_barrier(const char *ptx)
{
	return !strncmp(ptx, "bar", 3);
}

size_t place_edit(struct placer *placer, const struct finding_edit *e, size_t most,
	struct place to[PLACES])
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
	if (e->kind != EDIT_BETWEEN && e->kind != EDIT_MOVE
		&& (e->kind != EDIT_BEFORE || !is_barrier(e->ptx))) {
		to[0] = (struct place){ .func = f, .insn = x, .kind = e->kind };
		snprintf(to[0].ptx, sizeof to[0].ptx, "%s", e->ptx);
		snprintf(to[0].form, sizeof to[0].form, "%s", e->form);
		snprintf(to[0].words, sizeof to[0].words, "%s", e->words);
		to[0].own = p.w->own[x - f->insn];
		return with_copies(p.w, to, 1, most);
	}
	at = (uint32_t)(x - f->insn);
	p.one_row = until && f == g && p.w->first[at] == p.w->first[until - f->insn];
	if (e->kind == EDIT_MOVE) {
		if (until && f == g)
			add_behind(&p, (uint32_t)(until - f->insn), at);
		return moves(p.w, x, to, p.n);
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
	return with_copies(p.w, to, p.n, most);
}

size_t place_beside(struct placer *placer, const struct finding_edit *e, struct place to[PLACES])
{
	const struct ptx_func *f;
	const struct ptx_insn *x = find(placer->m, e->site, &f);
	struct places p = { .ptx = e->ptx, .to = to, .in_order = true };

	if (!x)
		return 0;
	p.w = flow_of(placer, f);
	if (e->kind == EDIT_AFTER) {
		add_before_release(&p, (uint32_t)(x - f->insn));
	} else {
		add_behind_acquire(&p, (uint32_t)(x - f->insn));
		add_before_acquire(&p, (uint32_t)(x - f->insn));
	}
	return with_copies(p.w, to, p.n, PLACES);
}

size_t place_outside(struct placer *placer, const struct finding_edit *e, struct place to[PLACES])
{
	const struct ptx_func *f;
	const struct ptx_insn *x = find(placer->m, e->site, &f);
	struct places p = { .ptx = e->ptx, .to = to };
	uint32_t loop;

	if (!x)
		return 0;
	p.w = flow_of(placer, f);
	loop = p.w->block[p.w->g->block_of[x - f->insn]].loop;
	if (loop == UINT32_MAX || p.w->idom[loop] == UINT32_MAX)
		return 0;
	add_end(&p, p.w->idom[loop]);
	return p.n;
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
	struct finding_edit e = { .kind = (uint8_t)p->kind, .site = ptx_site_intern(p->func, p->insn) };

	snprintf(e.ptx, sizeof e.ptx, "%s", p->ptx);
	snprintf(e.form, sizeof e.form, "%s", p->form);
	snprintf(e.words, sizeof e.words, "%s", p->words);
	e.copies = p->copies ? p->copies + 1 : 0;
	return e;
}

bool place_same(const struct place *a, const struct place *b)
{
	bool same = a->insn == b->insn;

	if (a->copies && b->copies && flow_same_place(a->own, b->own)
		&& (a->wide || flow_same_callers(a->own, b->own)))
		same |= a->kind != EDIT_CHANGE || (a->insn->op == b->insn->op
			&& flow_same_chain(a->insn->loc, b->insn->loc, a->own));
	return same && a->wide == b->wide && a->kind == b->kind && a->moved == b->moved
		&& !strcmp(*a->form ? a->form : a->ptx, *b->form ? b->form : b->ptx);
}
