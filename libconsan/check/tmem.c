/* tmem: accesses to tensor memory, which are all asynchronous. Each CTA has a shadow table in which
 * a granule is a column of 16 lanes and a "byte" of it one cell of 32 bits: all that instructions
 * can address is exact, the half windows of M = 64 and the masks of disable-output-lane included.
 *
 * An operation is ordered after another one if its thread knows that the other one is complete, or
 * if both are of one thread (of one warp for tcgen05.ld and st) and the ISA calls the pair
 * pipelined. Shared memory operands are never pipelined; tcgen05.c has these. */
#include "tcgen05.h"
#include "libconsan/finding/rule_codes.h"

#include <string.h>

/* The operand of an entry, in bits that only accesses of threads use otherwise */
enum role { ROLE_D, ROLE_A, ROLE_OTHER /* scales, metadata */ };

static uint32_t role_bits(const struct ev_area *a)
{
	const uint32_t role = a->operand == OPERAND_A ? ROLE_A
		: a->operand == OPERAND_SCALES || a->operand == OPERAND_METADATA ? ROLE_OTHER : ROLE_D;

	return role << CELL_SCOPE_AT;
}
static enum role role_of(const struct cell_entry *e)
{
	return (enum role)((e->what & CELL_SCOPE_MASK) >> CELL_SCOPE_AT);
}

/* ---- pipelined pairs (E18, K9) ---- */

/* Tensorcore 5th Generation Family Instructions, "Pipelined tcgen05 Instructions": 9.1 lists pairs
 * of instructions, 9.4 pairs of their operands. */
static unsigned mma_after(const struct tc_op *old, enum role r, const struct tc_op *now,
	enum role q)
{
	const bool same = old->d == now->d && old->shape == now->shape;

	switch (old->op) {
	case TC_MMA:
		if (same)
			return ISA_91 | (q == ROLE_D ? ISA_94 : 0);
		return r != ROLE_D && q == ROLE_D ? ISA_94 : 0;
	case TC_CP:
		return ISA_91 | (q != ROLE_D ? ISA_94 : 0);
	case TC_SHIFT:
		return ISA_ALL;
	}
	return 0;
}

static unsigned op_after(const struct tc_warp *t, const struct cell_entry *old,
	const struct tc_op *a, const struct tc_op *b, enum role now)
{
	const enum role r = role_of(old);

	switch (b->op) {
	case TC_MMA:
		return mma_after(a, r, b, now);
	case TC_SHIFT:
		return a->op != TC_MMA ? 0 : ISA_91 | (r != ROLE_D ? ISA_94 : 0);
	case TC_CP:
		if (a->op == TC_SHIFT)
			return b->four_lanes ? ISA_ALL : 0;
		if (a->op == TC_MMA)
			return r != ROLE_D ? ISA_94 : 0;
		/* through the mma between them, which has read what the first one copied */
		return t->mma > old->epoch ? ISA_94 : 0;
	}
	return 0;
}

/* The versions of the ISA that order the two; now is by the same warp. */
static unsigned pipelined(const struct tmem_view *t, enum agent_kind kind,
	const struct cell_entry *old, const struct cell_entry *now)
{
	const struct tc_warp *w = t->v.w->tc;
	const struct tc_op *op;
	unsigned isa;

	if (t->frees)
		return 0;
	if (!t->op) /* loads and stores of one warp */
		return kind == AGENT_TC ? 0 : ISA_94;
	if (kind != AGENT_TC)
		return 0;
	op = tc_op_at(w, old->epoch);
	isa = op ? op_after(w, old, op, t->op, role_of(now)) : 0;
	/* 9.1 speaks of one thread, 9.4 of one warp */
	return old->lanes == t->v.lanes ? isa : isa & ISA_94;
}

/* ---- the rule ---- */

bool tmem_waited_first(const struct tmem_view *t, const struct warp *by, unsigned store,
	uint32_t number)
{
	const uint32_t issued = by->tc->access[store].issued[number % TC_RECENT];

	if (by->tc->access[store].done < number)
		return false;
	return by->tc->access[store].newest - number >= TC_RECENT || by == t->v.w
		|| !frontier_knows_one(&t->v.c->space, t->v.f, by->index, UINT32_MAX, issued);
}

static unsigned pick_rule(const struct tmem_view *t, enum agent_kind kind, const struct warp *by,
	const struct cell_entry *old, const struct cell_entry *now)
{
	const bool one_instruction = !((old->what ^ now->what) & CELL_SITE_MASK);

	if (t->frees)
		return CS621;
	switch (kind) {
	case AGENT_TMEM_LD: /* an accumulator that was not handed back, waited for or not (E25) */
		return !t->op && tmem_waited_first(t, by, 0, old->epoch) ? CS601 : CS602;
	case AGENT_TMEM_ST:
		return tmem_waited_first(t, by, 1, old->epoch) ? CS601 : CS603;
	default:
		if (t->op && one_instruction && by->cta != t->v.w->cta)
			return CS635;
		return t->op && by == t->v.w ? CS605 : CS604;
	}
}

/* K4: is there a tcgen05.fence on both sides? Waits of the same warp need none. */
static bool fenced(const struct tmem_view *t, enum agent_kind kind, const struct warp *by,
	const struct cell_entry *old)
{
	if (t->frees || (by == t->v.w && kind != AGENT_TC))
		return true;
	return !(old->lanes & ~frontier_lanes(&t->v.c->space, t->v.f, PLANE_TC, old->agent, old->epoch));
}

bool tmem_ordered(const struct cluster *c, const struct frontier *f, uint32_t agent, uint32_t lanes,
	uint32_t epoch)
{
	return frontier_knows(&c->space, f, agent, lanes, epoch)
		|| !(lanes & ~frontier_lanes(&c->space, f, PLANE_TMEM, agent, epoch));
}

/* For a deallocation it is enough that threads knew the operation to be complete before they exited,
 * and that a cluster barrier waited for their exit. */
static bool known_by_exited(const struct tmem_view *t, const struct cell_entry *old)
{
	const struct frontier *gone = cluster_gone(t->v.c, t->v.w);

	return gone && tmem_ordered(t->v.c, gone, old->agent, old->lanes, old->epoch);
}

bool tmem_is_loaded(const struct tmem_view *t, const struct cell_entry *old)
{
	const struct cluster *c = t->v.c;
	const struct frontier *gone = t->frees ? cluster_gone(c, t->v.w) : NULL;

	return !c->check->config.policy.tcgen05_wait_ld
		&& (frontier_lanes(&c->space, t->v.f, PLANE_LOADED, old->agent, old->epoch)
		|| (gone && frontier_lanes(&c->space, gone, PLANE_LOADED, old->agent, old->epoch)));
}

/* Is it known already that no thread has waited for this operation? A deallocation after it is a
 * consequence. */
static bool already_reported(const struct warp *by, enum agent_kind kind, uint32_t epoch)
{
	const struct tc_warp *t = by->tc;

	return t && epoch <= (kind == AGENT_TC ? t->reported
		: t->access[kind == AGENT_TMEM_ST].reported);
}

static enum shadow_verdict classify(struct shadow_view *s, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t granule, uint32_t lanes)
{
	const struct tmem_view *t = (const struct tmem_view *)s;
	struct cluster *c = t->v.c;
	const struct check_policy *policy = &c->check->config.policy;
	uint32_t index;
	const enum agent_kind kind = agent_kind(c, old->agent, &index);
	const struct warp *by = &c->warp[index];
	unsigned isa = 0;

	if (old->agent == now->agent && old->epoch == now->epoch)
		return SHADOW_ORDERED; /* operands of one operation */
	if (t->frees && (already_reported(by, kind, old->epoch) || known_by_exited(t, old)))
		return SHADOW_ORDERED;
	if (tmem_ordered(c, t->v.f, old->agent, old->lanes, old->epoch)) {
		if (!policy->tcgen05_fence || fenced(t, kind, by, old))
			return SHADOW_ORDERED;
		tmem_report(t, CS607, 0, old, now, granule, lanes);
		return SHADOW_CONFLICT;
	}
	if (by == t->v.w)
		isa = pipelined(t, kind, old, now);
	if (isa == ISA_ALL || isa & policy->tcgen05_pipelining)
		return SHADOW_ORDERED;
	tmem_report(t, isa && !policy->tcgen05_pipelining ? CS606 : pick_rule(t, kind, by, old, now), isa,
		old, now, granule, lanes);
	return SHADOW_CONFLICT;
}

static void invalid(struct shadow_view *s, const struct cell_entry *now, uint32_t granule,
	uint32_t lanes, unsigned why)
{
	(void)why;
	tmem_report_unwritten((const struct tmem_view *)s, now, granule, lanes);
}

/* ---- accesses ---- */

/* What the warp knows that executes an instruction together: what any of its lanes does. */
static const struct frontier *known_together(struct cluster *c, struct warp *w)
{
	if (w->ngroups == 1)
		return w->group[0].f;
	frontier_clear(&c->space, c->together);
	for (unsigned i = 0; i < w->ngroups; i++)
		frontier_join(&c->space, c->together, w->group[i].f);
	return c->together;
}

static void open_view(struct tmem_view *t, struct cluster *c, struct warp *w, uint32_t lanes,
	const struct frontier *f, uint16_t cta)
{
	*t = (struct tmem_view){ .area = NULL };
	view_open(&t->v, c, w, lanes, f, ROLE_GENERIC, cta);
	t->v.s.self = NO_AGENT;
	t->v.s.classify = classify;
	t->v.s.anywhere = true;
	t->v.s.invalid = invalid;
	if (c->check->config.policy.tcgen05_fence)
		t->v.s.known = c->zero_epochs;
}

static uint32_t columns_of(const struct ev_area *a)
{
	return a->column >= TMEM_COLUMNS ? 0 : a->column + a->columns > TMEM_COLUMNS
		? TMEM_COLUMNS - a->column : a->columns;
}

/* The blocks of an area, a bit each, and the mask of its lanes in each block */
static uint32_t blocks_of(const struct ev_area *a, uint16_t mask[TMEM_BLOCKS])
{
	uint32_t blocks = 0;

	for (unsigned b = 0; b < TMEM_BLOCKS; b++) {
		mask[b] = (uint16_t)(a->lanes[b / 2] >> 16 * (b & 1));
		blocks |= (uint32_t)(mask[b] != 0) << b;
	}
	return blocks;
}

#define EACH_BLOCK(b, blocks) \
	(uint32_t left_b_ = (blocks), b; left_b_ && (b = (uint32_t)__builtin_ctz(left_b_), true); \
		left_b_ &= left_b_ - 1)

/* For n columns of the area at a time: those whose granules are consecutive in each block */
#define EACH_UNIT(at, n, area) \
	(uint32_t at = (area)->column, n, left_ = columns_of(area); left_ && (n = TMEM_UNIT - at % TMEM_UNIT, \
		n = n < left_ ? n : left_, true); at += n, left_ -= n)

static void add_granules(struct ev_span *span, uint32_t *n, uint32_t granule, uint32_t granules)
{
	struct ev_span *last = *n ? &span[*n - 1] : NULL;

	if (last && last->addr + last->bytes == granule * CELL_BYTES)
		last->bytes += granules * CELL_BYTES;
	else
		span[(*n)++] = (struct ev_span){ granule * CELL_BYTES, granules * CELL_BYTES };
}

static void touch(struct cluster *c, struct tmem_view *t, const struct ev_area *a,
	struct cell_entry now)
{
	struct shadow *s = &c->cta[t->v.peer].tmem;
	struct ev_span span[TMEM_COLUMNS / TMEM_UNIT * TMEM_BLOCKS];
	uint16_t mask[TMEM_BLOCKS];
	const uint32_t blocks = blocks_of(a, mask);
	uint32_t spans = 0;

	t->area = a;
	for EACH_UNIT(column, n, a)
		for EACH_BLOCK(b, blocks) {
			const uint32_t granule = tmem_granule(b, column);

			if (mask[b] == 0xffff)
				add_granules(span, &spans, granule, n);
			now.bytes = mask[b];
			for (uint32_t i = 0; mask[b] != 0xffff && i < n; i++)
				shadow_touch(s, &t->v.s, granule + i, now);
		}
	shadow_spans(s, &t->v.s, span, spans, now);
}

#define NO_GRANULE UINT32_MAX

/* The first granule of block b in the area of whose `lanes` some were never written, with these */
static uint32_t first_unwritten(const struct shadow *s, const struct ev_area *a, unsigned b,
	uint32_t *lanes)
{
	for EACH_UNIT(column, n, a) {
		const uint32_t granule = tmem_granule(b, column), i = shadow_unwritten(s, granule, n, lanes);

		if (i < n)
			return granule + i;
	}
	return NO_GRANULE;
}

/* E27: an accumulator that is read and written is recorded as written; were its cells? */
static void check_written(struct cluster *c, const struct tmem_view *t, const struct ev_area *a,
	const struct cell_entry *now)
{
	uint16_t mask[TMEM_BLOCKS];

	for EACH_BLOCK(b, blocks_of(a, mask)) {
		uint32_t lanes = mask[b], granule = first_unwritten(&c->cta[t->v.peer].tmem, a, b, &lanes);

		if (granule == NO_GRANULE)
			continue;
		tmem_report_unwritten(t, now, granule, lanes);
		return;
	}
}

/* Has the area both blocks that were written and others? M = 64 uses half of each warp's window, and
 * loads of the whole window leave the other half out later. */
static bool partly_written(struct cluster *c, unsigned cta, const struct ev_area *a)
{
	bool some = false, all = true;
	uint16_t mask[TMEM_BLOCKS];

	for EACH_BLOCK(b, blocks_of(a, mask)) {
		uint32_t lanes = mask[b];
		const bool written = first_unwritten(&c->cta[cta].tmem, a, b, &lanes) == NO_GRANULE;

		some |= written;
		all &= written;
	}
	return some && !all;
}

static struct cell_entry entry_of(const struct event *e, const struct ev_area *a, uint32_t agent,
	uint32_t epoch, uint32_t lanes)
{
	return (struct cell_entry){ .epoch = epoch, .agent = (uint16_t)agent, .lanes = lanes,
		.what = (e->site & CELL_SITE_MASK) | CELL_SAME | role_bits(a)
			| (a->mode & MODE_WRITE ? CELL_WRITE : 0) };
}

void tmem_operation(struct cluster *c, struct warp *w, const struct event *e,
	const struct frontier *f)
{
	const struct event_tcgen05 *o = &e->tcgen05;
	const struct tc_op *op = tc_op_at(w->tc, w->tc->ops), *last = tc_op_at(w->tc, w->tc->ops - 1);
	const bool again = last && last->op == TC_MMA && last->d == op->d && last->shape == op->shape;
	const uint32_t agent = agent_tensor(c, AGENT_TC, w->index);
	struct tmem_view t;

	/* reads first: an operation does not conflict with itself */
	for (unsigned writes = 0; writes < 2; writes++)
		for (unsigned i = 0; i < o->areas.n; i++) {
			const struct ev_area *a = &o->areas.at[i];
			const struct cell_entry now = entry_of(e, a, agent, w->tc->ops, e->lanes);

			if (!(a->mode & MODE_WRITE) != !writes)
				continue;
			for (uint32_t m = a->ctas; m; m &= m - 1) {
				const uint16_t r = (uint16_t)__builtin_ctz(m);

				if (r >= c->nctas || !c->cta[r].tmem_open)
					continue;
				open_view(&t, c, w, e->lanes, f, r);
				t.op = op;
				t.area = a;
				if (a->mode == MODE_RMW && !again)
					check_written(c, &t, a, &now);
				touch(c, &t, a, now);
			}
		}
}

void on_tmem_access(struct cluster *c, const struct event *e)
{
	const struct event_tmem_access *x = &e->tmem_access;
	const unsigned store = x->mode == MODE_WRITE;
	const enum agent_kind kind = store ? AGENT_TMEM_ST : AGENT_TMEM_LD;
	struct warp *w = warp_of(c, e);
	const struct frontier *f;
	struct tmem_view t;
	struct tc_warp *tc;

	alloc_on_event(c, e);
	if (!c->ntensor || !c->cta[e->cta].tmem_open || !w->ngroups)
		return;
	c->stats.async_ops++;
	tc = tc_of(w);
	tc->access[store].newest = epoch_next(tc->access[store].newest);
	tc->access[store].issued[tc->access[store].newest % TC_RECENT]
		= warp_stamp_apart(w, e->lanes);
	f = known_together(c, w);
	for (unsigned i = 0; i < x->areas.n; i++) {
		const struct ev_area *a = &x->areas.at[i];

		open_view(&t, c, w, e->lanes, f, e->cta);
		t.partly = !store && partly_written(c, e->cta, a);
		touch(c, &t, a, entry_of(e, a, agent_tensor(c, kind, w->index),
			tc->access[store].newest, UINT32_MAX));
	}
	tc->access[store].unread |= !x->used;
	for (unsigned i = 0; i < w->ngroups && !tc->access[store].unread; i++)
		frontier_add(&c->space, w->group[i].f, PLANE_LOADED, agent_tensor(c, kind, w->index),
			UINT32_MAX, UINT32_MAX, tc->access[store].newest);
	warp_executed_together(c, w, e->lanes);
}

void on_tmem_wait(struct cluster *c, const struct event *e)
{
	const unsigned store = e->tmem_wait.mode == MODE_WRITE;
	struct warp *w = warp_of(c, e);
	struct tc_warp *tc;

	alloc_on_event(c, e);
	if (!c->ntensor)
		return;
	tc = tc_of(w);
	tc->access[store].wait_site = e->site;
	tc->access[store].done = tc->access[store].newest;
	tc->access[store].unread = false;
	warp_learn(c, w, agent_tensor(c, store ? AGENT_TMEM_ST : AGENT_TMEM_LD, w->index),
		tc->access[store].newest);
	warp_executed_together(c, w, e->lanes);
}

/* ---- fences (E19, K4) ---- */

/* A relaxed synchronization orders tensor memory between the two fences: what they export and
 * import is that of an acquire, for the agents of tensor memory and accesses to it alone. */
void tmem_export(struct cluster *c, struct frontier *into, const struct frontier *from)
{
	const uint32_t first = agent_tensor(c, AGENT_TC, 0), n = 3 * c->ntensor;

	frontier_join_range_as(into, PLANE_TMEM, from, PLANE_G, first, n);
	frontier_join_range_as(into, PLANE_TC_BEFORE, from, PLANE_TC_BEFORE, first, n);
}

/* Of an earlier fence like this, by the same lanes. */
static struct released *exported(struct warp *w, uint32_t lanes)
{
	for (size_t i = 0; i < w->released.n; i++)
		if (w->released.at[i].tmem && w->released.at[i].lanes == lanes)
			return &w->released.at[i];
	return NULL;
}

static void drop_exported(struct cluster *c, struct warp *w, uint32_t lanes)
{
	for (size_t i = 0; i < w->released.n;) {
		struct released *r = &w->released.at[i];

		if (r->tmem)
			r->lanes &= ~lanes;
		if (r->lanes) {
			i++;
			continue;
		}
		order_drop_released(c, r);
		*r = w->released.at[--w->released.n];
	}
}

/* Keeps all that the lanes know: few fences are followed by a relaxed release, which takes of it what
 * the fence exports. */
static void export_relaxed(struct cluster *c, struct warp *w, uint32_t lanes)
{
	for (unsigned i = 0; i < w->ngroups; i++) {
		const uint32_t m = w->group[i].lanes & lanes;
		struct released *r = exported(w, m);

		if (!m)
			continue;
		if (!r) {
			drop_exported(c, w, m);
			vec_push(&w->released, ((struct released){ .lanes = m, .wide = true, .tmem = true,
				.scope = SCOPE_CLUSTER, .f = frontier_new(&c->space) }));
			r = &w->released.at[w->released.n - 1];
		}
		frontier_copy(&c->space, r->f, w->group[i].f);
	}
}

static void import_relaxed(struct cluster *c, struct warp *w, uint32_t lanes)
{
	for (size_t i = 0; i < w->observed.n; i++) {
		const uint32_t m = w->observed.at[i].lanes & lanes;
		struct frontier *f;

		if (!m || w->observed.at[i].sc)
			continue;
		f = frontier_new(&c->space);
		tmem_export(c, f, w->observed.at[i].f);
		warp_acquire(c, w, m, f);
		frontier_put(&c->space, f);
	}
}

/* By default every release and acquire orders tensor memory, too. If fences are required, the
 * plane TC_BEFORE has what a fence::before_thread_sync or a commit has exported, and TC what a
 * fence::after_thread_sync has imported. */
static void move_planes(struct cluster *c, struct warp *w, uint32_t lanes, bool before)
{
	struct frontier *f = frontier_new(&c->space);

	for (unsigned i = 0, n = w->ngroups; i < n; i++) {
		const uint32_t m = w->group[i].lanes & lanes;

		if (!m)
			continue;
		frontier_clear(&c->space, f);
		frontier_join_as(f, before ? PLANE_TC_BEFORE : PLANE_TC, w->group[i].f,
			before ? PLANE_G : PLANE_TC_BEFORE);
		warp_acquire(c, w, m, f);
	}
	frontier_put(&c->space, f);
}

void on_tcgen05_fence(struct cluster *c, const struct event *e)
{
	const bool before = e->tcgen05_fence.before;
	struct warp *w = warp_of(c, e);

	if (!c->ntensor)
		return;
	alloc_on_event(c, e);
	if (!before)
		import_relaxed(c, w, e->lanes);
	if (c->check->config.policy.tcgen05_fence)
		move_planes(c, w, e->lanes, before);
	if (before)
		export_relaxed(c, w, e->lanes);
}

/* ---- allocation ---- */

void on_tmem_alloc(struct cluster *c, const struct event *e)
{
	const struct event_tmem_alloc *x = &e->tmem_alloc;
	struct cta *cta = &c->cta[e->cta];

	alloc_on_event(c, e);
	if (!c->ntensor)
		return;
	if (!cta->tmem_open)
		shadow_open(&cta->tmem, TMEM_LANES * TMEM_COLUMNS);
	cta->tmem_open = true;
	for (uint32_t u = x->column / TMEM_UNIT; u < (x->column + x->columns) / TMEM_UNIT
		&& u < ARRAY_SIZE(cta->freed); u++)
		cta->freed[u].site = 0;
	warp_executed_together(c, warp_of(c, e), e->lanes);
}

/* E09: for what follows, nothing has accessed the columns; the executor refuses uses before the
 * next allocation. */
void on_tmem_dealloc(struct cluster *c, const struct event *e)
{
	const struct event_tmem_alloc *x = &e->tmem_dealloc;
	const struct ev_area all = { .lanes = { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX },
		.column = (uint16_t)x->column, .columns = (uint16_t)x->columns, .mode = MODE_WRITE };
	struct cta *cta = &c->cta[e->cta];
	struct warp *w = warp_of(c, e);
	struct cell_entry now = entry_of(e, &all, w->index, warp_stamp(w, e->lanes), e->lanes);
	struct tmem_view t;

	alloc_on_event(c, e);
	if (!cta->tmem_open || !w->ngroups)
		return;
	warp_executed_together(c, w, e->lanes);
	open_view(&t, c, w, e->lanes, known_together(c, w), e->cta);
	t.frees = true;
	touch(c, &t, &all, now);
	for EACH_UNIT(column, n, &all)
		for (unsigned b = 0; b < TMEM_BLOCKS; b++)
			shadow_forget(&cta->tmem, tmem_granule(b, column), n);
	for (uint32_t u = x->column / TMEM_UNIT; u < (x->column + x->columns) / TMEM_UNIT
		&& u < ARRAY_SIZE(cta->freed); u++)
		cta->freed[u] = (struct past_op){ (uint16_t)w->index, e->lanes, 0, e->site };
}

void on_tmem_relinquish(struct cluster *c, const struct event *e)
{
	alloc_on_event(c, e);
	warp_executed_together(c, warp_of(c, e), e->lanes);
}
