/* wgmma: operands, groups and registers of warpgroups; setmaxnreg. One event represents four warps;
 * the knowledge of each is checked separately (S10), completion is one event for all four (S9). */
#include "internal.h"
#include "libconsan/finding/rule_codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- registers (D03-D07) ----
 *
 * ptxas repairs these hazards by inserting fences and waits (C7510-C7520), and NVVM itself places
 * moves of accumulators where the ISA forbids them (S11, S34). So by default a plain move is a
 * note, any other access a warning. */
static enum severity register_severity(const struct cluster *c, bool moved)
{
	if (c->check->config.policy.wgmma_registers)
		return SEV_ERROR;
	return moved ? SEV_NOTE : SEV_WARNING;
}

/* The place of a register in the tables below. A function has thousands of virtual registers, of
 * which few take part in a wgmma: they are numbered as they come. */
static uint32_t index_of(struct cluster *c, uint32_t id)
{
	if (id >= c->cap_reg_index)
		vec_grow_zero((void **)&c->reg_index, &c->cap_reg_index, id + 1, sizeof *c->reg_index);
	if (!c->reg_index[id])
		c->reg_index[id] = ++c->nreg_index;
	return c->reg_index[id] - 1;
}

static struct wg_reg *reg_of(struct cluster *c, struct warpgroup *g, uint32_t id)
{
	uint32_t k = index_of(c, id);

	if (k >= g->nreg)
		vec_grow_zero((void **)&g->reg, &g->nreg, k + 1, sizeof *g->reg);
	return &g->reg[k];
}

/* The wgmma accesses to a register as part of D; NULL: none. */
static const struct wg_tile *tile_of(struct cluster *c, struct warpgroup *g, uint32_t id)
{
	static const struct wg_tile none;
	uint32_t tile = reg_of(c, g, id)->tile;

	return tile ? &g->tile.at[tile] : &none;
}

static bool same_list(const struct warpgroup *g, const struct wg_tile *t, const uint32_t *regs,
	uint32_t n)
{
	return t->n == n && !memcmp(g->list.at + t->first, regs, n * sizeof *regs);
}

static struct wg_tile *find_tile(struct warpgroup *g, const uint32_t *regs, uint32_t n)
{
	struct wg_tile t = { .first = (uint32_t)g->list.n, .n = n };

	for (size_t i = 1; i < g->tile.n; i++)
		if (same_list(g, &g->tile.at[i], regs, n))
			return &g->tile.at[i];
	for (uint32_t i = 0; i < n; i++)
		vec_push(&g->list, regs[i]);
	vec_push(&g->tile, t);
	return &g->tile.at[g->tile.n - 1];
}

void wgmma_reset(struct warpgroup *g)
{
	struct warpgroup was = *g;

	if (g->nreg)
		memset(g->reg, 0, g->nreg * sizeof *g->reg);
	*g = (struct warpgroup){ .open = 1, .reg = was.reg, .nreg = was.nreg, .tile = was.tile,
		.list = was.list, .reg_site = was.reg_site };
	g->tile.n = g->list.n = g->reg_site.n = 0;
}

static struct plain_reg *plain_of(struct cluster *c, struct warp *w, uint32_t id)
{
	uint32_t k = index_of(c, id);

	if (k >= w->nreg)
		vec_grow_zero((void **)&w->reg, &w->nreg, k + 1, sizeof *w->reg);
	return &w->reg[k];
}

static struct finding *begin(struct cluster *c, unsigned rule, bool moved, struct warp *w,
	uint32_t site, const char *what, uint32_t other, const char *other_what)
{
	struct finding *f = report_new(c, rule, register_severity(c, moved), site, other);

	if (!f)
		return NULL;
	report_side(c, f, w->index, -1, site, what);
	if (other)
		report_side(c, f, w->index, -1, other, other_what);
	return f;
}

/* ---- copies that movs make of accumulators in flight ---- */

/* The value in flight that the register holds, for these lanes; lanes 0: none. */
static struct wg_copy in_flight(struct cluster *c, struct warpgroup *g, struct warp *w, uint32_t id,
	uint32_t lanes)
{
	const struct wg_tile *t = tile_of(c, g, id);
	struct wg_copy copy = plain_of(c, w, id)->copy;

	if (t->d > g->done)
		return (struct wg_copy){ lanes, t->d, t->d_site, 0 };
	copy.lanes = copy.group > g->done ? copy.lanes & lanes : 0;
	return copy;
}

static void in_flight_hints(struct cluster *c, const struct warpgroup *g, struct finding *f,
	uint32_t group, const struct wg_copy *copy)
{
	char place[PLACE_BYTES];

	snprintf(f->barrier.kind, sizeof f->barrier.kind, "wgmma group");
	f->barrier.phase = group;
	report_edge(f, "wgmma.wait_group must cover the wgmma before its registers are accessed");
	if (copy) {
		report_hint(f, HINT(wgmma_copied), report_place(copy->site, place));
		report_edit(f, copy->site, EDIT(wgmma_copied));
	}
	if (group >= g->open) {
		report_hint(f, HINT(wgmma_not_committed));
		report_edit(f, g->site, EDIT(wgmma_not_committed));
	} else if (g->wait_site) {
		report_hint(f, HINT(wgmma_left_pending), g->open - 1 - group, g->wait_count);
		if (g->wait_count > g->open - 1 - group)
			report_edit(f, g->wait_site, EDIT(wgmma_left_pending), g->open - 1 - group);
	}
	report_send(c, f);
}

/* D05 through a mov: the register holds an accumulator in flight, which this access reads. */
static void copy_used(struct cluster *c, struct warp *w, const struct event *e,
	const struct wg_copy *copy, const char *what)
{
	struct finding *f = begin(c, CS321, false, w, e->site, what, copy->wgmma_site, "wgmma");

	if (f)
		in_flight_hints(c, &c->wg[wg_of(c, w)], f, copy->group, copy);
}

/* A mov reads: what it writes, in the event that follows, holds the newest of these values. */
static void move_from(struct warp *w, const struct event *e, const struct wg_copy *from)
{
	if (w->moving.lanes && w->moving.group > from->group)
		return;
	w->moving = *from;
	if (!w->moving.site)
		w->moving.site = e->site;
}

static void write_copy(struct warp *w, const struct event *e, struct plain_reg *p)
{
	const bool moved = e->register_access.move && w->moving.lanes && w->moving_site == e->site;
	const uint32_t others = p->copy.lanes & ~e->lanes;

	if (moved && (!others || w->moving.group >= p->copy.group))
		p->copy = w->moving;
	p->copy.lanes = others | (moved ? e->lanes : 0);
}

/* ---- accesses ---- */

/* Reports registers that this warp has accessed after its last wgmma.fence. */
static void touched_since(struct cluster *c, struct warp *w, const struct event *e,
	const struct ev_regs *regs, const char *used_as)
{
	for (unsigned i = 0; i < regs->n; i++) {
		const struct plain_reg *r = plain_of(c, w, regs->at[i]);
		struct finding *f;

		if (!r->touched || r->fence != w->wg_fences)
			continue;
		f = begin(c, CS320, r->moved, w, e->site, "wgmma", r->site, "register access");
		if (!f)
			continue;
		report_edge(f, "wgmma.fence must come between the register access and the wgmma that uses "
			"the register as %s", used_as);
		report_send(c, f);
	}
}

/* D03: a fence is needed between this warp's own register accesses and the wgmma. */
static void needs_fence(struct cluster *c, struct warp *w, const struct event *e)
{
	struct finding *f;

	if (!w->wg_fences) {
		f = begin(c, CS320, false, w, e->site, "wgmma", 0, NULL);
		if (!f)
			return;
		report_edge(f, "warp %u executed no wgmma.fence before its first wgmma", w->id);
		report_send(c, f);
		return;
	}
	if (!w->reg_touched)
		return;
	touched_since(c, w, e, &e->wgmma.accumulators, "accumulator");
	touched_since(c, w, e, &e->wgmma.fragment, "A fragment");
}

/* D04: accumulating with the same shape needs no fence. */
static bool shape_changes(const struct wg_tile *t, const struct warp *w, const struct event *e)
{
	return t->d && t->shape != e->wgmma.shape && t->fence == w->wg_fences;
}

static void use_accumulator(struct cluster *c, struct warp *w, struct warpgroup *g,
	const struct event *e)
{
	const struct ev_regs *d = &e->wgmma.accumulators;
	struct wg_tile *t, *old;
	struct finding *f;

	if (!d->n)
		return;
	if (!g->tile.n)
		vec_push(&g->tile, (struct wg_tile){ 0 });
	t = &g->tile.at[reg_of(c, g, d->at[0])->tile];
	if (t->whole != t->n || !same_list(g, t, d->at, d->n) || shape_changes(t, w, e)) {
		t = find_tile(g, d->at, d->n);
		for (unsigned i = 0; i < d->n; i++) {
			struct wg_reg *r = reg_of(c, g, d->at[i]);

			old = &g->tile.at[r->tile];
			f = shape_changes(old, w, e) ? begin(c, CS320, false, w, e->site, "wgmma", old->d_site,
				"wgmma of another shape") : NULL;
			if (f) {
				report_edge(f, "two wgmmas of different shapes use the accumulator without a "
					"wgmma.fence between them");
				report_send(c, f);
			}
			old->whole -= r->tile != 0;
			t->whole++;
			r->tile = (uint32_t)(t - g->tile.at);
		}
	}
	t->d = g->open;
	t->d_site = e->site;
	t->shape = e->wgmma.shape;
	t->fence = w->wg_fences;
}

static void use_registers(struct cluster *c, struct warp *w, struct warpgroup *g,
	const struct event *e)
{
	const struct ev_regs *a = &e->wgmma.fragment;
	struct finding *f;
	unsigned i;

	for (i = 0; i < 4; i++)
		needs_fence(c, w + i, e);
	use_accumulator(c, w, g, e);
	for (i = 0; i < a->n; i++) {
		const struct wg_tile *t = tile_of(c, g, a->at[i]);
		struct wg_reg *r = reg_of(c, g, a->at[i]);

		f = t->d > g->done ? begin(c, CS321, false, w, e->site, "wgmma read of the A fragment",
			t->d_site, "wgmma") : NULL;
		if (f) {
			report_edge(f, "the A fragment is the accumulator of a wgmma still in flight: "
				"wgmma.wait_group must cover it first");
			report_send(c, f);
		}
		r->a = g->open;
		r->a_site = e->site;
		for (unsigned k = 0; k < 4 && t->d <= g->done; k++) {
			const struct wg_copy held = in_flight(c, g, w + k, a->at[i], UINT32_MAX);

			if (held.lanes)
				copy_used(c, w + k, e, &held, "wgmma read of the A fragment");
		}
	}
}

void on_register_access(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	struct warpgroup *g = &c->wg[wg_of(c, w)];
	const struct ev_regs *regs = &e->register_access.regs;
	bool move = e->register_access.move, write = e->register_access.mode & MODE_WRITE;
	struct finding *f;

	w->reg_touched = true;
	if (!write) {
		w->moving = (struct wg_copy){ 0 };
		w->moving_site = e->site;
	}
	for (unsigned i = 0; i < regs->n; i++) {
		struct plain_reg *p = plain_of(c, w, regs->at[i]);
		const struct wg_tile *t = tile_of(c, g, regs->at[i]);
		const struct wg_reg *r = reg_of(c, g, regs->at[i]);
		const struct wg_copy held = in_flight(c, g, w, regs->at[i], e->lanes);


		if (!p->touched || p->fence != w->wg_fences || (p->moved && !move)) {
			p->site = e->site;
			p->moved = move;
		}
		p->touched = true;
		p->fence = w->wg_fences;
		if (write)
			write_copy(w, e, p);
		else if (move && held.lanes)
			move_from(w, e, &held);
		f = NULL;
		if (t->d > g->done)
			f = begin(c, CS321, move, w, e->site, write ? "register write" : "register read",
				t->d_site, "wgmma");
		else if (write && r->a > g->done)
			f = begin(c, CS322, move, w, e->site, "register write", r->a_site, "wgmma");
		else if (!write && !move && held.lanes)
			copy_used(c, w, e, &held, "register read");
		if (f)
			in_flight_hints(c, g, f, f->rule == CS321 ? t->d : r->a, NULL);
	}
}

/* ---- operands (D08-D11) ---- */

/* Computes what every lane of the four warps knows. */
static void find_common(struct cluster *c, const struct warp *w)
{
	struct frontier *f = c->common;
	uint32_t i, n;
	bool first = true;

	frontier_fit(&c->space, f);
	for (unsigned k = 0; k < 4; k++)
		for (unsigned g = 0; g < w[k].ngroups; g++) {
			const struct frontier *o = w[k].group[g].f;

			n = c->space.ngeneric + (f->cap < o->cap ? f->cap : o->cap);
			if (first)
				frontier_copy(&c->space, f, o);
			else
				for (i = 0; i < n; i++)
					f->p[i] = f->p[i] < o->p[i] ? f->p[i] : o->p[i];
			if (!first && f->cap > o->cap)
				memset(f->g + o->cap, 0, (f->cap - o->cap) * sizeof *f->g);
			first = false;
		}
	f->npart = 0;
	frontier_fit(&c->space, f);
}

void on_wgmma(struct cluster *c, const struct event *e)
{
	const struct ev_spans *spans = &e->wgmma.spans;
	const uint16_t *parts = e->wgmma.parts.at;
	struct warp *w = warp_of(c, e);
	struct warpgroup *g = &c->wg[wg_of(c, w)];
	struct cell_entry now = {
		.epoch = g->open, .agent = (uint16_t)agent_wgmma(c, wg_of(c, w)), .lanes = UINT32_MAX,
		.what = (e->site & CELL_SITE_MASK) | CELL_SAME,
	};
	struct view v;

	if (w->id + 3u >= c->per_cta)
		return;
	c->stats.async_ops++;
	g->inside++;
	g->last = g->open;
	g->site = e->site;
	use_registers(c, w, g, e);
	if (!spans->n)
		return;
	/* between consecutive wgmmas the warps have acquired nothing */
	if (c->common_of != w || c->common_at + 1 != c->stats.events)
		find_common(c, w);
	c->common_of = w;
	c->common_at = c->stats.events;
	for (unsigned part = 0; part < 5; part++) {
		bool own_rows = part < 4 && !c->check->config.policy.wgmma_a_by_warpgroup;
		const struct frontier *f = c->common;

		if (part == 4)
			now.what |= CELL_PART;
		if (own_rows && w[part].ngroups == 1)
			f = w[part].group[0].f;
		view_open(&v, c, w, UINT32_MAX, f, ROLE_WGMMA, e->cta);
		v.wgmma_warp = own_rows ? part : 4;
		shadow_spans(&c->cta[e->cta].shadow, &v.s, spans->at + parts[part],
			parts[part + 1] - parts[part], now);
	}
}

/* ---- groups ---- */

/* `other`: the site that makes this one redundant, or 0 */
static struct finding *redundant(struct cluster *c, const struct event *e, const char *what,
	uint32_t other)
{
	struct finding *f = report_new(c, CS801, rule_severity(CS801), e->site, other);

	if (f)
		report_side(c, f, warp_of(c, e)->index, -1, e->site, what);
	return f;
}

static void redundant_commit(struct cluster *c, const struct event *e)
{
	struct finding *f = redundant(c, e, "wgmma.commit_group", 0);

	if (!f)
		return;
	report_edge(f, "no wgmma was issued since the last commit");
	report_send(c, f);
}

static void redundant_wait(struct cluster *c, const struct event *e, struct warpgroup *g)
{
	struct finding *f = redundant(c, e, "wgmma.wait_group", g->flush_site);

	g->idle++;
	if (!f)
		return;
	if (g->flush_site) {
		report_side(c, f, warp_of(c, e)->index, -1, g->flush_site, "the wait that covers them");
		report_edge(f, "no wgmma was issued since an earlier wait that left none in flight: "
			"of %u waits for the same wgmmas one is sufficient", g->idle + 1);
	} else {
		report_edge(f, "no committed group is pending");
	}
	report_send(c, f);
}

void on_wgmma_fence(struct cluster *c, const struct event *e)
{
	warp_of(c, e)->wg_fences++;
	warp_of(c, e)->reg_touched = false;
}

void on_wgmma_commit(struct cluster *c, const struct event *e)
{
	struct warpgroup *g = &c->wg[wg_of(c, warp_of(c, e))];

	if (!g->inside)
		redundant_commit(c, e);
	g->open = epoch_next(g->open);
	g->inside = 0;
}

void on_wgmma_wait(struct cluster *c, const struct event *e)
{
	const struct event_wgmma_wait *x = &e->wgmma_wait;
	struct warp *w = warp_of(c, e);
	struct warpgroup *g = &c->wg[wg_of(c, w)];
	uint32_t committed = g->open - 1;
	uint32_t done = committed > x->pending ? committed - x->pending : 0;

	/* Pending groups that hold no wgmma are nothing to wait for. */
	if (!x->warps && (g->done == committed || g->last <= g->done))
		redundant_wait(c, e, g);
	g->wait_site = e->site;
	g->wait_count = x->pending;
	for (unsigned i = 0; i < 4 && w->id + i < c->per_cta; i++) {
		if ((!x->warps && done > g->done) || x->warps & 1u << i)
			warp_learn(c, w + i, agent_wgmma(c, wg_of(c, w)), done);
		warp_executed_together(c, w + i, UINT32_MAX);
	}
	if (done <= g->done)
		return;
	if (g->last > g->done && g->last <= done) {
		g->flush_site = e->site;
		g->idle = 0;
	}
	g->done = done;
}

void wgmma_exit(struct cluster *c, struct warp *w, const struct event *e)
{
	struct warpgroup *g = &c->wg[wg_of(c, w)];
	struct finding *f;

	if (w->live || g->reported || (g->last <= g->done && !g->inside))
		return;
	g->reported = true;
	f = report_new(c, CS326, rule_severity(CS326), e->site, g->site);
	if (!f)
		return;
	report_side(c, f, w->index, -1, e->site, "exit");
	report_side(c, f, w->index, -1, g->site, "wgmma");
	snprintf(f->barrier.kind, sizeof f->barrier.kind, "wgmma group");
	f->barrier.phase = g->open;
	report_edge(f, g->inside ? "the last wgmmas were not committed to a group"
		: "wgmma.wait_group 0 must precede the exit");
	report_send(c, f);
}

/* ---- setmaxnreg (F13, F14); the number of registers before the first one is not known exactly
 * ---- */

static void report_divergent(struct cluster *c, const struct event *e, const struct warp *w,
	const char *what, const struct past_op *other, const char *other_what, const char *why)
{
	struct finding *f = report_new(c, CS409, rule_severity(CS409), e->site, other->site);

	if (!f)
		return;
	report_side(c, f, w->index, -1, e->site, what);
	report_side(c, f, other->warp, -1, other->site, other_what);
	report_edge(f, why, w->id, c->warp[other->warp].id);
	report_send(c, f);
}

static void check_together(struct cluster *c, const struct event *e, struct warp *w)
{
	struct warpgroup *g = &c->wg[wg_of(c, w)];
	uint32_t first = w->index - w->id % 4;

	if (w->reg_ops == g->reg_site.n)
		vec_push(&g->reg_site, e->site);
	for (uint32_t i = first; i < first + 4 && i < (w->cta + 1u) * c->per_cta; i++) {
		struct warp *o = &c->warp[i];

		if (o == w || !o->reg_ops)
			continue;
		if (o->reg_ops > w->reg_ops + 1)
			report_divergent(c, e, w, "setmaxnreg", &o->reg_op, "next setmaxnreg",
				"warp %u executes its setmaxnreg after warp %u of the warpgroup has executed the "
				"next one");
		if (o->reg_ops == w->reg_ops + 1 && o->reg_op.site != e->site)
			report_divergent(c, e, w, "setmaxnreg", &o->reg_op, "setmaxnreg",
				"warp %u and warp %u of one warpgroup execute different setmaxnreg instructions");
		else if (o->reg_ops == w->reg_ops && !warp_all_know(c, w, e->lanes, &o->reg_op))
			report_divergent(c, e, w, "setmaxnreg", &o->reg_op, "previous setmaxnreg",
				"no synchronisation orders this setmaxnreg of warp %u after the previous one of "
				"warp %u");
	}
	w->reg_ops++;
	/* The lanes execute it together, so whoever knows one of them knows it: an epoch of one lane. */
	w->reg_op = (struct past_op){ (uint16_t)w->index, e->lanes, warp_stamp(w, e->lanes & -e->lanes),
		e->site };
}

void on_setmaxnreg(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	uint32_t n = e->setmaxnreg.registers;
	bool bad = n < 24 || n > 256 || n % 8, inc = e->setmaxnreg.increase;
	struct finding *f;

	if (!bad && w->nregs)
		bad = inc ? n < w->nregs : n > w->nregs;
	f = bad ? report_new(c, CS408, rule_severity(CS408), e->site, 0) : NULL;
	if (f) {
		report_side(c, f, w->index, -1, e->site, inc ? "setmaxnreg.inc" : "setmaxnreg.dec");
		report_edge(f, "%u registers: the operand must be a multiple of 8 from 24 to 256 and %s "
			"than the %u that the warp has", n, inc ? "not less" : "not more", w->nregs);
		report_send(c, f);
	}
	if (e->setmaxnreg.ignored && (f = report_new(c, CS802, rule_severity(CS802), e->site, 0))) {
		report_side(c, f, w->index, -1, e->site, inc ? "setmaxnreg.inc" : "setmaxnreg.dec");
		report_edge(f, "the kernel has neither .maxnreg nor .minnctapersm with .maxntid or .reqntid");
		report_send(c, f);
	}
	w->nregs = n;
	check_together(c, e, w);
}

void wgmma_cta_end(struct cluster *c, const struct event *e)
{
	for (uint32_t i = e->cta * c->per_cta; i < (e->cta + 1u) * c->per_cta; i++) {
		struct warp *w = &c->warp[i], *o = w - w->id % 4;

		if (w->all && o->all && w->reg_ops < o->reg_ops)
			report_divergent(c, e, w, "exit", &o->reg_op, "setmaxnreg",
				"warp %u has exited without the setmaxnreg that warp %u of its warpgroup executed");
		else if (w->all && o->all && w->reg_ops > o->reg_ops)
			report_divergent(c, e, o, "exit", &w->reg_op, "setmaxnreg",
				"warp %u has exited without the setmaxnreg that warp %u of its warpgroup executed");
	}
}
