/* tmem_alloc: see tmem_alloc.h. The executor rejects what it cannot execute (numbers of columns,
 * an allocation without the permit, columns that are not allocated); what it can execute although
 * the ISA forbids it is found here. */
#include "tmem_alloc.h"
#include "tcgen05.h"
#include "libconsan/finding/rule_codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tmem_allocs *allocs_of(struct cluster *c, unsigned cta)
{
	return &c->cta[cta].allocs;
}

static struct alloc_site here(const struct cluster *c, const struct event *e)
{
	return (struct alloc_site){ e->site, e->cta * c->per_cta + e->warp };
}

/* A finding at the event, and at an earlier instruction unless that has site 0. */
static struct finding *finding_at(struct cluster *c, unsigned rule, const struct event *e,
	const char *what, struct alloc_site other, const char *other_what)
{
	struct finding *f = report_new(c, rule, rule_severity(rule), e->site, other.site);

	if (!f)
		return NULL;
	report_side(c, f, warp_of(c, e)->index, only_lane(e->lanes), e->site, what);
	if (other.site)
		report_side(c, f, other.warp, -1, other.site, other_what);
	return f;
}

/* ---- allocation ---- */

static const char alloc_name[] = "tcgen05.alloc", dealloc_name[] = "tcgen05.dealloc";

/* With cta_group::2 the peer must be known to have been launched (E10), and not have exited (E13). */
static void check_launched(struct cluster *c, const struct event *e, const char *what)
{
	const unsigned peer = e->cta ^ 1u;

	if (peer < c->nctas)
		cluster_check_peer(c, warp_of(c, e), e, peer, what);
}

static void on_alloc(struct cluster *c, struct tmem_allocs *t, const struct event *e)
{
	const struct event_tmem_alloc *a = &e->tmem_alloc;
	const struct allocation now = { here(c, e), (uint16_t)a->column, (uint16_t)a->columns, a->pair };
	struct finding *f;

	/* an allocation of a pair waits for the peer by itself */
	if (a->pair && c->check->config.policy.tcgen05_alloc_launched)
		check_launched(c, e, alloc_name);
	if (t->last.by.site && a->columns > t->last.columns) {
		f = finding_at(c, CS623, e, alloc_name, t->last.by, "smaller tcgen05.alloc");
		if (f) {
			report_edge(f, "%u columns after an allocation of %u: successive allocations of a CTA "
				"must not grow", a->columns, t->last.columns);
			report_send(c, f);
		}
	}
	t->last = now;
	vec_push(&t->live, now);
}

static bool overlap(const struct allocation *x, const struct event_tmem_alloc *y)
{
	return x->column < y->column + y->columns && y->column < x->column + x->columns;
}

/* Columns that no allocation has: the executor reports CS627 itself. */
static void on_dealloc(struct cluster *c, struct tmem_allocs *t, const struct event *e)
{
	const struct event_tmem_alloc *a = &e->tmem_alloc;
	struct finding *f;

	for (size_t i = 0; i < t->live.n; i++) {
		const struct allocation x = t->live.at[i];

		if (!overlap(&x, a))
			continue;
		t->live.at[i--] = t->live.at[--t->live.n];
		if (x.column == a->column && x.columns == a->columns && x.pair == a->pair)
			continue;
		f = finding_at(c, CS627, e, dealloc_name, x.by, alloc_name);
		if (!f)
			continue;
		if (x.pair != a->pair)
			report_edge(f, "allocated with cta_group::%u, deallocated with cta_group::%u",
				1 + x.pair, 1 + a->pair);
		else
			report_edge(f, "deallocates columns %u to %u of an allocation of columns %u to %u",
				a->column, a->column + a->columns - 1, x.column, x.column + x.columns - 1);
		report_send(c, f);
	}
}

/* The warp that has allocated frees before it exits. Other warps of a block with one dimension do not
 * execute this. */
static void edit_leak(struct cluster *c, struct finding *f, const struct allocation *x)
{
	const struct warp *w = &c->warp[x->by.warp];
	const uint32_t *block = c->check->config.launch.block;
	const bool pair = strstr(site_get(x->by.site)->ptx, "cta_group::2");

	if (!w->exit_site || block[1] > 1 || block[2] > 1)
		return;
	report_edit(f, w->exit_site, EDIT_BEFORE, "{ .reg .u32 %%w; .reg .pred %%p; mov.u32 %%w, %%tid.x; "
		"shr.u32 %%w, %%w, 5; setp.eq.u32 %%p, %%w, %u; "
		"@%%p tcgen05.dealloc.cta_group::%u.sync.aligned.b32 %u, %u; }", w->id, 1u + pair, x->column,
		x->columns);
	report_words(f, "tcgen05.dealloc of these %u columns by warp %u", x->columns, w->id);
}

/* E06: what is left when the CTA has exited */
static void report_leaks(struct cluster *c, struct tmem_allocs *t)
{
	for (size_t i = 0; i < t->live.n; i++) {
		const struct allocation *x = &t->live.at[i];
		struct finding *f = report_new(c, CS622, rule_severity(CS622), x->by.site, 0);

		if (!f)
			continue;
		report_side(c, f, x->by.warp, -1, x->by.site, alloc_name);
		report_edge(f, "columns %u to %u are still allocated when the CTA exits", x->column,
			x->column + x->columns - 1u);
		edit_leak(c, f, x);
		report_send(c, f);
	}
}

/* ---- cta_group (E11) ---- */

static void check_group(struct cluster *c, struct tmem_allocs *t, const struct event *e, bool pair,
	const char *what)
{
	const struct alloc_site other = t->group[!pair];
	struct finding *f;

	if (!t->group[pair].site)
		t->group[pair] = here(c, e);
	if (!other.site)
		return;
	f = finding_at(c, CS626, e, what, other, "tcgen05 instruction");
	if (!f)
		return;
	report_edge(f, "cta_group::%u here, cta_group::%u there", 1 + pair, 1 + !pair);
	report_send(c, f);
}

/* ---- issue by several lanes (E12) ---- */

static const char *const op_name[] = { [TC_MMA] = "tcgen05.mma", [TC_CP] = "tcgen05.cp",
	[TC_SHIFT] = "tcgen05.shift" };

/* Lanes that execute one instruction with destinations of their own are unusual, but right; with
 * one destination the operation is done several times. */
static void check_issue(struct cluster *c, struct tmem_allocs *t, const struct event *e)
{
	const struct event_tcgen05 *x = &e->tcgen05;
	const bool again = t->several.site == e->site && t->several.warp == e->warp
		&& t->several.d == x->d && t->several.count + 1 == c->stats.events;
	struct finding *f;

	if (!x->several)
		return;
	t->several.site = e->site;
	t->several.warp = e->warp;
	t->several.d = x->d;
	t->several.count = c->stats.events;
	if (!again)
		return;
	f = finding_at(c, CS632, e, op_name[x->op], (struct alloc_site){ 0 }, NULL);
	if (!f)
		return;
	report_edge(f, "several lanes of warp %u begin the same operation on the same tensor memory",
		e->warp);
	report_send(c, f);
}

static void check_commit(struct cluster *c, const struct event *e)
{
	const struct event_tcgen05_commit *x = &e->tcgen05_commit;
	const unsigned cta = (unsigned)__builtin_ctz(x->ctas ? x->ctas : 1);
	const struct mbar *m = cta < c->nctas ? mbar_of(c, cta, x->addr) : NULL;
	struct finding *f;

	/* with a count for every lane the arrivals are meant */
	if (!x->several || (m && m->live && m->expected >= 32))
		return;
	f = finding_at(c, CS632, e, "tcgen05.commit", (struct alloc_site){ 0 }, NULL);
	if (!f)
		return;
	report_edge(f, "each lane that executes the commit makes an arrival of its own");
	report_send(c, f);
}

/* ---- collector buffers (E26) ---- */

static void check_collector(struct cluster *c, struct tmem_allocs *t, const struct event *e)
{
	const struct event_tcgen05 *x = &e->tcgen05;
	const enum ev_collector what = x->collector;
	struct collector *b = &t->collector[x->buffer < COLLECTORS ? x->buffer : 0];
	struct finding *f;

	if ((what == COLLECTOR_USE || what == COLLECTOR_LASTUSE)
			&& (!b->fill.site || b->matrix != x->matrix)) {
		f = finding_at(c, CS634, e, op_name[TC_MMA], b->fill.site ? b->fill : b->gone,
			b->fill.site ? "fill with another matrix" : "discards the contents");
		if (f) {
			if (b->fill.site)
				report_edge(f, "the buffer was filled with another matrix");
			else
				report_edge(f, "the buffer holds nothing");
			report_send(c, f);
		}
	}
	if (what == COLLECTOR_FILL)
		*b = (struct collector){ .fill = here(c, e), .matrix = x->matrix };
	else if (what != COLLECTOR_USE)
		*b = (struct collector){ .gone = here(c, e) };
}

/* ---- instructions that order nothing, and the permit (E29) ---- */

/* An instruction is redundant if no execution of it was of use although the CTA has operations that
 * it could order: in a CTA without work it may be. */
static void note_use(struct cluster *c, struct tmem_allocs *t, const struct event *e,
	enum alloc_order kind, bool useful)
{
	size_t i = 0;

	while (i < t->use.n && t->use.at[i].by.site != e->site)
		i++;
	if (i == t->use.n)
		vec_push(&t->use, ((struct alloc_use){ .by = here(c, e), .kind = kind }));
	t->use.at[i].useful |= useful;
}

static void begin_use(struct tmem_allocs *t, const struct event *e, enum alloc_order kind)
{
	t->pending[kind] |= 1u << (e->warp & 31);
	t->pending[ORDERS_BEFORE] |= 1u << (e->warp & 31);
	t->used[kind] = t->used[ORDERS_BEFORE] = t->used[ORDERS_AFTER] = true;
}

static void end_use(struct cluster *c, struct tmem_allocs *t, const struct event *e,
	enum alloc_order kind, bool synchronised)
{
	const uint32_t warp = 1u << (e->warp & 31);

	note_use(c, t, e, kind, t->pending[kind] & warp || synchronised);
	t->pending[kind] &= ~warp;
}

static void on_wait(struct cluster *c, struct tmem_allocs *t, const struct event *e)
{
	end_use(c, t, e, e->tmem_wait.mode == MODE_WRITE ? ORDERS_STORES : ORDERS_LOADS, false);
	t->pending[ORDERS_BEFORE] |= 1u << (e->warp & 31);
}

static void on_order(struct cluster *c, struct tmem_allocs *t, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	const bool before = e->tcgen05_fence.before;
	uint32_t *last = &tc_of(w)->fenced[before];

	end_use(c, t, e, before ? ORDERS_BEFORE : ORDERS_AFTER, *last != w->syncs);
	*last = w->syncs;
}

static void report_redundant(struct cluster *c, struct tmem_allocs *t)
{
	static const struct { const char *name, *why; } text[] = {
		[ORDERS_LOADS] = { "tcgen05.wait::ld", "no warp that executes it has a load to wait for" },
		[ORDERS_STORES] = { "tcgen05.wait::st", "no warp that executes it has a store to wait for" },
		[ORDERS_BEFORE] = { "tcgen05.fence::before_thread_sync", "no thread that executes it has a "
			"tcgen05 operation or a synchronisation behind it since its last one" },
		[ORDERS_AFTER] = { "tcgen05.fence::after_thread_sync", "no thread that executes it has "
			"synchronised since its last one" },
	};

	for (size_t i = 0; i < t->use.n; i++) {
		const struct alloc_use *u = &t->use.at[i];
		struct finding *f;

		if (u->useful || !t->used[u->kind])
			continue;
		f = report_new(c, CS803, rule_severity(CS803), u->by.site, 0);
		if (!f)
			continue;
		report_side(c, f, u->by.warp, -1, u->by.site, text[u->kind].name);
		report_edge(f, "%s", text[u->kind].why);
		report_send(c, f);
	}
}

/* Columns that another CTA of the SM could allocate, but for the permit */
static void report_permit(struct cluster *c, const struct tmem_allocs *t)
{
	struct finding *f;

	if (!t->last.by.site || t->relinquished || 2 * t->last.columns > TMEM_COLUMNS)
		return;
	f = report_new(c, CS804, rule_severity(CS804), t->last.by.site, 0);
	if (!f)
		return;
	report_side(c, f, t->last.by.warp, -1, t->last.by.site, alloc_name);
	report_edge(f, "no tcgen05.relinquish_alloc_permit follows this allocation of %u of %u columns",
		t->last.columns, TMEM_COLUMNS);
	report_send(c, f);
}

/* ---- events ---- */

/* E01, E15: all threads of the warp execute it; the executor waits for those that have not exited. */
static void check_lanes(struct cluster *c, const struct event *e)
{
	const uint32_t gone = warp_of(c, e)->all & ~e->lanes;
	struct finding *f;

	if (!gone)
		return;
	f = finding_at(c, CS410, e, "tcgen05 instruction", (struct alloc_site){ 0 }, NULL);
	if (!f)
		return;
	report_edge(f, "lanes 0x%08x of warp %u have exited", gone, e->warp);
	report_send(c, f);
}

void alloc_on_event(struct cluster *c, const struct event *e)
{
	struct tmem_allocs *t = allocs_of(c, e->cta);

	if (e->kind != EV_TCGEN05 && e->kind != EV_TCGEN05_COMMIT && e->kind != EV_TCGEN05_FENCE)
		check_lanes(c, e);
	switch (e->kind) {
	case EV_TMEM_ALLOC:
		check_group(c, t, e, e->tmem_alloc.pair, alloc_name);
		on_alloc(c, t, e);
		break;
	case EV_TMEM_DEALLOC:
		check_group(c, t, e, e->tmem_dealloc.pair, dealloc_name);
		on_dealloc(c, t, e);
		break;
	case EV_TMEM_RELINQUISH:
		check_group(c, t, e, e->tmem_relinquish.pair, "tcgen05.relinquish_alloc_permit");
		t->relinquished = true;
		break;
	case EV_TMEM_ACCESS:
		begin_use(t, e, e->tmem_access.mode == MODE_WRITE ? ORDERS_STORES : ORDERS_LOADS);
		break;
	case EV_TMEM_WAIT:
		on_wait(c, t, e);
		break;
	case EV_TCGEN05_FENCE:
		on_order(c, t, e);
		break;
	case EV_TCGEN05:
		begin_use(t, e, ORDERS_BEFORE);
		check_group(c, t, e, e->tcgen05.pair, op_name[e->tcgen05.op]);
		if (e->tcgen05.pair)
			check_launched(c, e, op_name[e->tcgen05.op]);
		check_issue(c, t, e);
		if (e->tcgen05.op == TC_MMA)
			check_collector(c, t, e);
		break;
	case EV_TCGEN05_COMMIT:
		check_group(c, t, e, e->tcgen05_commit.pair, "tcgen05.commit");
		check_commit(c, e);
		break;
	default:
		break;
	}
}

void alloc_cta_end(struct cluster *c, const struct event *e)
{
	struct tmem_allocs *t = allocs_of(c, e->cta);

	report_leaks(c, t);
	report_redundant(c, t);
	report_permit(c, t);
}

void alloc_reset(struct tmem_allocs *t)
{
	t->live.n = t->use.n = 0;
	t->last = (struct allocation){ 0 };
	memset(t->group, 0, sizeof t->group);
	memset(t->collector, 0, sizeof t->collector);
	memset(t->pending, 0, sizeof t->pending);
	memset(t->used, 0, sizeof t->used);
	t->relinquished = false;
	memset(&t->several, 0, sizeof t->several);
}

void alloc_free(struct tmem_allocs *t)
{
	vec_free(&t->live);
	vec_free(&t->use);
}

/* ---- hangs ---- */

char *alloc_holders(const struct cluster *c, unsigned cta, char *to, size_t n)
{
	const struct tmem_allocs *t = &c->cta[cta].allocs;
	char place[PLACE_BYTES];
	size_t used = 0;

	*to = 0;
	for (size_t i = 0; i < t->live.n && used < n; i++) {
		const struct allocation *x = &t->live.at[i];

		used += (size_t)snprintf(to + used, n - used, "%scolumns %u to %u by warp %u at %s",
			i ? ", " : "", x->column, x->column + x->columns - 1u, c->warp[x->by.warp].id,
			report_place(x->by.site, place));
	}
	return to;
}

unsigned alloc_free_columns(const struct cluster *c, unsigned cta)
{
	const struct tmem_allocs *t = &c->cta[cta].allocs;
	unsigned n = 512;

	for (size_t i = 0; i < t->live.n; i++)
		n -= t->live.at[i].columns < n ? t->live.at[i].columns : n;
	return n;
}

struct allocation alloc_newest(const struct cluster *c, unsigned cta)
{
	const struct tmem_allocs *t = &c->cta[cta].allocs;

	return t->live.n ? t->live.at[t->live.n - 1] : (struct allocation){ 0 };
}
