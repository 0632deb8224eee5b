/* together: collectives that a whole warp executes and that have no record of their own
 * (rewrite/together.c). One has taken place before a record if all paths to it, from the lane's
 * record before, lead through it. Then all lanes of the warp have executed it. */
#include "events.h"

static bool between(struct dcluster *c, uint32_t from, uint32_t to)
{
	const uint64_t key = ((uint64_t)from << 32 | to) + 1;
	struct together_path *p = &c->together[(from * 31 + to) % PATHS];
	const struct rewrite_site *a = record_site(c, from), *b = record_site(c, to);

	if (p->key == key)
		return p->yes;
	p->key = key;
	/* the records of one execution are in the order of their sites, and nothing is between them: a cp.async
	 * has one of its global and one of its shared side */
	p->yes = a->func == b->func && !(a->insn == b->insn && from < to) && rewrite_together_between(a->func,
		(uint32_t)(a->insn - a->func->insn), (uint32_t)(b->insn - b->func->insn));
	return p->yes;
}

/* Lanes that have not exited and have no such path count against it: their last record may come
 * after the collective. Lanes whose part in it was taken before do not count for it. */
static bool passed(struct dcluster *c, const struct dwarp *w, const struct record *r, uint32_t live)
{
	if (!(r->lanes & ~w->counted))
		return false;
	for (uint32_t rest = live, same; rest; rest &= ~same) {
		const uint32_t from = w->from_site[__builtin_ctz(rest)];

		same = 0;
		for EACH_LANE(l, rest)
			same |= (uint32_t)(w->from_site[l] == from) << l;
		if (!from || !between(c, from, r->site))
			return false;
	}
	return true;
}

void emit_together(struct dcluster *c, uint32_t warp, const struct record *r)
{
	struct dwarp *w = &c->warp[warp];
	const uint32_t live = w->all & ~w->gone;

	if (passed(c, w, r, live)) {
		struct event e = record_event(c, warp, r->site, EV_WARP_COLLECTIVE, live);

		emit(c, &e);
		w->counted = live;
	}
	w->counted &= ~r->lanes;
	for EACH_LANE(l, r->lanes)
		w->from_site[l] = r->site;
}
