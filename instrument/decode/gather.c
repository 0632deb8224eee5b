/* gather: where only whether there is anything to find is asked: what a warp reads by
 * ldmatrix, writes by stmatrix and copies by cp.async between two other events is told as
 * one, by the granule. All lanes of it stand for each of its bytes: more may look like a race than
 * is one, never less. Whoever asks has what looks like one decoded anew. */
#include "events.h"

#include "shadow/shadow.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BYTES 0x40000u        /* of shared memory */
#define WORD_BYTES (64 * CELL_BYTES)
#define WORDS (MOST_BYTES / WORD_BYTES)

enum side { SIDE_READ, SIDE_WRITE, SIDE_COPY, SIDES };

/* Where the lanes of one instruction went: the same places come back with each turn
 * of a loop. */
struct pattern {
	uint32_t lanes, at[32];
	bool twice;                /* two lanes in one granule */
	uint32_t n;
	struct { uint32_t word; uint64_t bits; } part[]; /* what they are in a set */
};
#define PATTERNS 2048

/* A bit for each granule. */
struct gather {
	uint32_t warp;
	struct {
		uint32_t lanes, site; /* no lanes: nothing was gathered */
		uint32_t low, high;   /* words that may be set */
		uint64_t set[WORDS];
	} side[SIDES];
	struct ev_span span[WORDS * 32];
	struct pattern *pattern[PATTERNS]; /* each in one of two places */
};

void gather_close(struct gather *g)
{
	for (unsigned k = 0; g && k < PATTERNS; k++)
		free(g->pattern[k]);
	free(g);
}

static void tell_side(struct dcluster *c, struct gather *g, enum side side)
{
	const uint32_t low = g->side[side].low, high = g->side[side].high;
	uint64_t *set = g->side[side].set;
	struct event e = record_event(c, g->warp, g->side[side].site,
		side == SIDE_COPY ? EV_CP_ASYNC : EV_ACCESS, g->side[side].lanes);

	g->side[side].lanes = 0;
	e.nspans = (uint16_t)span_runs(set, low, high, g->span);
	memset(&set[low], 0, (high - low + 1) * sizeof *set);
	if (c->stopped)
		return;
	e.space = SP_SHARED;
	e.mode = side == SIDE_READ ? EVM_READ : EVM_WRITE;
	e.size = CELL_BYTES;
	e.addr = g->span[0].addr;
	e.spans = g->span;
	c->sink->event(c->sink, &e); /* each of what it stands for was counted */
}

void gather_tell(struct dcluster *c)
{
	struct gather *g = c->gather;

	for (unsigned side = 0; side < SIDES; side++)
		if (g->side[side].lanes)
			tell_side(c, g, (enum side)side);
}

static uint32_t key_of(const struct record *r, const uint32_t *at, uint32_t lanes)
{
	const uint32_t first = (uint32_t)__builtin_ctz(lanes), last = 31 - (uint32_t)__builtin_clz(lanes);

	return (at[first] ^ at[last] << 13 ^ at[(first + last) / 2] << 7 ^ lanes ^ r->affine) * 0x9e3779b1u >> 16;
}

static struct pattern *put_down(struct pattern *p, const uint32_t at[32], uint32_t lanes)
{
	p = base_resize(p, sizeof *p + (size_t)__builtin_popcount(lanes) * sizeof *p->part);
	p->lanes = lanes;
	p->n = 0;
	p->twice = false;
	for EACH_LANE(l, lanes) {
		const uint32_t word = OFFSET(at[l]) / WORD_BYTES;
		const uint64_t bit = 1ull << at[l] / CELL_BYTES % 64;
		uint32_t k = 0;

		p->at[l] = at[l];
		while (k < p->n && p->part[k].word != word)
			k++;
		if (k == p->n) {
			p->part[k].word = word;
			p->part[p->n++].bits = 0;
		}
		p->twice |= (p->part[k].bits & bit) != 0;
		p->part[k].bits |= bit;
	}
	return p;
}

static bool in_reach(const uint32_t at[32], uint32_t lanes)
{
	uint32_t far = 0;

	for EACH_LANE(l, lanes)
		far |= OFFSET(at[l]);
	return far < MOST_BYTES;
}

static bool same_places(const struct pattern *p, const uint32_t at[32], uint32_t lanes)
{
	if (!p || p->lanes != lanes)
		return false;
	if (lanes == FULL)
		return !memcmp(p->at, at, sizeof p->at);
	for EACH_LANE(l, lanes)
		if (p->at[l] != at[l])
			return false;
	return true;
}

/* NULL: one of them may be refused, or lies beyond what there is room for. */
static const struct pattern *pattern_of(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o, uint32_t lanes)
{
	uint32_t room[32];
	const uint32_t *at = record_shared(c, r, o, room);
	struct pattern **p = &c->gather->pattern[key_of(r, at, lanes) % PATTERNS & ~1u];

	if (same_places(p[0], at, lanes))
		return p[0];
	if (same_places(p[1], at, lanes))
		return p[1];
	if (refusable(c, warp, r, o, lanes, CELL_BYTES, CELL_BYTES) || !in_reach(at, lanes))
		return NULL;
	p += p[0] != NULL;
	return *p = put_down(*p, at, lanes);
}

static bool touches(const struct gather *g, enum side side, const struct pattern *p)
{
	uint64_t both = 0;

	if (!g->side[side].lanes)
		return false;
	for (uint32_t k = 0; k < p->n; k++)
		both |= g->side[side].set[p->part[k].word] & p->part[k].bits;
	return both;
}

/* Nothing gathered so far has an order with what comes that matters. */
static bool fits(const struct gather *g, uint32_t warp, enum side side, const struct pattern *p)
{
	if (!g->side[SIDE_READ].lanes && !g->side[SIDE_WRITE].lanes && !g->side[SIDE_COPY].lanes)
		return true;
	return g->warp == warp && !touches(g, SIDE_COPY, p) && !touches(g, SIDE_WRITE, p) &&
		(side == SIDE_READ || !touches(g, SIDE_READ, p));
}

static bool gather(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o, uint32_t lanes, enum side side)
{
	const struct pattern *p;
	struct gather *g;

	if (!c->job->l->brief)
		return false;
	if (!c->gather)
		c->gather = base_alloc(sizeof *c->gather);
	g = c->gather;
	p = pattern_of(c, warp, r, o, lanes);
	if (!p || (p->twice && side != SIDE_READ))
		return false;
	if (!fits(g, warp, side, p))
		gather_tell(c);
	g->warp = warp;
	if (!g->side[side].lanes) {
		g->side[side].site = r->site;
		g->side[side].low = WORDS;
		g->side[side].high = 0;
	}
	g->side[side].lanes |= lanes;
	for (uint32_t i = 0; i < p->n; i++) {
		const uint32_t k = p->part[i].word;

		g->side[side].set[k] |= p->part[i].bits;
		g->side[side].low = k < g->side[side].low ? k : g->side[side].low;
		g->side[side].high = k > g->side[side].high ? k : g->side[side].high;
	}
	c->result.events++;
	return true;
}

bool gather_matrix(struct dcluster *c, uint32_t warp, const struct record *r, const struct ptx_operand *o,
	uint32_t lanes, bool writes)
{
	return gather(c, warp, r, o, lanes, writes ? SIDE_WRITE : SIDE_READ);
}

bool gather_copy(struct dcluster *c, uint32_t warp, const struct record *r, const struct ptx_operand *o)
{
	return gather(c, warp, r, o, r->lanes, SIDE_COPY);
}
