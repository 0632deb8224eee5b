/* gather: for the pre-check, which only asks whether a launch has anything to report. What
 * a warp reads by ldmatrix, writes by stmatrix and copies by cp.async between two other
 * events becomes one event each, in granules of CELL_BYTES: a set of granules that all
 * its lanes access. So an access may be reported as a race that is none, but no race is
 * missed. If anything is reported, the launch is decoded and checked again without this. */
#include "events.h"

#include "shadow/shadow.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BYTES 0x40000u        /* of shared memory */
#define WORD_BYTES (64 * CELL_BYTES)
#define WORDS (MOST_BYTES / WORD_BYTES)

enum side { SIDE_READ, SIDE_WRITE, SIDE_COPY, SIDES };

/* The addresses of one instruction's lanes as parts of a set. Loops use the same addresses
 * again, so patterns are kept. */
struct pattern {
	uint32_t lanes, at[32];
	bool twice;                /* two lanes access the same granule */
	uint32_t n;
	struct { uint32_t word; uint64_t bits; } part[];
};
#define PATTERNS 2048

/* What one warp has accessed since the last event. */
struct gather {
	uint32_t warp;
	struct {
		uint32_t lanes, site; /* no lanes: the set is empty */
		uint32_t low, high;   /* words that may be set */
		uint64_t set[WORDS];  /* a bit for each granule */
	} side[SIDES];
	struct ev_span span[WORDS * 32];
	struct pattern *pattern[PATTERNS]; /* a hash table, two entries for each hash */
};

void gather_close(struct gather *g)
{
	for (unsigned k = 0; g && k < PATTERNS; k++)
		free(g->pattern[k]);
	free(g);
}

static void flush_side(struct dcluster *c, struct gather *g, enum side side)
{
	const uint32_t low = g->side[side].low, high = g->side[side].high;
	uint64_t *set = g->side[side].set;
	struct event e = record_event(c, g->warp, g->side[side].site,
		side == SIDE_COPY ? EV_CP_ASYNC : EV_ACCESS, g->side[side].lanes);
	const struct ev_spans spans = { g->span, (uint16_t)span_runs(set, low, high, g->span) };
	const struct ev_lanes at = { .base = g->span[0].addr };

	g->side[side].lanes = 0;
	memset(&set[low], 0, (high - low + 1) * sizeof *set);
	if (c->stopped)
		return;
	if (side == SIDE_COPY)
		e.cp_async = (struct event_cp_async){ .at = at, .spans = spans, .bytes = CELL_BYTES };
	else
		e.access = (struct event_access){ .at = at, .spans = spans, .bytes = CELL_BYTES,
			.space = SP_SHARED, .mode = side == SIDE_READ ? MODE_READ : MODE_WRITE,
			.owner = e.cta };
	c->sink->event(c->sink, &e); /* gather() has counted its accesses as events */
}

void gather_flush(struct dcluster *c)
{
	struct gather *g = c->gather;

	for (unsigned side = 0; side < SIDES; side++)
		if (g->side[side].lanes)
			flush_side(c, g, (enum side)side);
}

static uint32_t hash_of(const struct record *r, const uint32_t *at, uint32_t lanes)
{
	const uint32_t first = (uint32_t)__builtin_ctz(lanes);
	const uint32_t last = 31 - (uint32_t)__builtin_clz(lanes), middle = (first + last) / 2;

	return (at[first] ^ at[last] << 13 ^ at[middle] << 7 ^ lanes ^ r->affine) * 0x9e3779b1u >> 16;
}

static struct pattern *fill_pattern(struct pattern *p, const uint32_t at[32], uint32_t lanes)
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

static bool in_range(const uint32_t at[32], uint32_t lanes)
{
	uint32_t bits = 0;

	for EACH_LANE(l, lanes)
		bits |= OFFSET(at[l]);
	return bits < MOST_BYTES;
}

static bool same_addresses(const struct pattern *p, const uint32_t at[32], uint32_t lanes)
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

/* NULL: an address may have to be refused, or lies outside of the set. */
static const struct pattern *pattern_of(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o, uint32_t lanes)
{
	uint32_t buffer[32];
	const uint32_t *at = record_shared(c, r, o, buffer);
	struct pattern **p = &c->gather->pattern[hash_of(r, at, lanes) % PATTERNS & ~1u];

	if (same_addresses(p[0], at, lanes))
		return p[0];
	if (same_addresses(p[1], at, lanes))
		return p[1];
	if (refusable(c, warp, r, o, lanes, CELL_BYTES, CELL_BYTES) || !in_range(at, lanes))
		return NULL;
	p += p[0] != NULL;
	return *p = fill_pattern(*p, at, lanes);
}

static bool overlaps(const struct gather *g, enum side side, const struct pattern *p)
{
	uint64_t both = 0;

	if (!g->side[side].lanes)
		return false;
	for (uint32_t k = 0; k < p->n; k++)
		both |= g->side[side].set[p->part[k].word] & p->part[k].bits;
	return both;
}

/* May the access be added, or does its order with what was gathered matter? */
static bool may_add(const struct gather *g, uint32_t warp, enum side side, const struct pattern *p)
{
	if (!g->side[SIDE_READ].lanes && !g->side[SIDE_WRITE].lanes && !g->side[SIDE_COPY].lanes)
		return true;
	return g->warp == warp && !overlaps(g, SIDE_COPY, p) && !overlaps(g, SIDE_WRITE, p) &&
		(side == SIDE_READ || !overlaps(g, SIDE_READ, p));
}

static bool gather(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o, uint32_t lanes, enum side side)
{
	const struct pattern *p;
	struct gather *g;

	if (!c->job->l->coarse)
		return false;
	if (!c->gather)
		c->gather = base_alloc(sizeof *c->gather);
	g = c->gather;
	p = pattern_of(c, warp, r, o, lanes);
	if (!p || (p->twice && side != SIDE_READ))
		return false;
	if (!may_add(g, warp, side, p))
		gather_flush(c);
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

bool gather_matrix(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o, uint32_t lanes, bool writes)
{
	return gather(c, warp, r, o, lanes, writes ? SIDE_WRITE : SIDE_READ);
}

bool gather_copy(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o)
{
	return gather(c, warp, r, o, r->lanes, SIDE_COPY);
}
