/* event_valid: see valid.h. */
#include "valid.h"
#include "fields.h"

#define MAX_SHARED (256u << 10) /* bytes of a CTA; no GPU has more */
#define MAX_THREADS 1024u       /* of a CTA */
#define MAX_ACCESS 4096u        /* bytes that a lane accesses */
#define MAX_GLOBAL (1u << 20)   /* bytes of global memory that one bulk copy accesses */
#define MAX_BLOCK (1ull << 34)  /* bytes of one block of the device heap; readers look at each page of it */
#define MAX_REG (1u << 22)      /* number of a register; a table is as long */
#define TMEM_MOST 512u          /* columns of tensor memory */

/* When an event may come. A CTA acts from its CTA_BEGIN to its CTA_END. */
enum when {
	ACTS,    /* lanes that have not exited act */
	FIRST,   /* CTA_BEGIN */
	ENDS,    /* CTA_END */
	EXITS,   /* lanes that have not exited, and do now */
	EFFECT,  /* of what was issued before: at any time after CTA_BEGIN */
};

/* ---- launches and clusters ---- */

/* The product; 0: too large, or one of the numbers is 0. */
static uint64_t product(const uint32_t n[3], uint64_t most)
{
	uint64_t all = 1;

	for (unsigned d = 0; d < 3; d++) {
		if (!n[d] || n[d] > most / all)
			return 0;
		all *= n[d];
	}
	return all;
}

static uint64_t grid_ctas(const struct launch_info *l)
{
	return product(l->grid, UINT64_MAX >> 2);
}

const char *launch_wrong(const struct launch_info *l)
{
	const bool clustered = l->cluster[0] || l->cluster[1] || l->cluster[2];

	if (!grid_ctas(l))
		return "dimensions of a grid";
	if (!product(l->block, MAX_THREADS))
		return "dimensions of a block";
	if (clustered && !product(l->cluster, EVENT_MAX_CTAS))
		return "dimensions of a cluster";
	if (l->shared_static > MAX_SHARED || l->shared_dynamic > MAX_SHARED)
		return "size of shared memory";
	return l->reads > 2 ? "which write loads read" : NULL;
}

const char *event_valid_begin(struct event_valid *v, const struct cluster_info *c)
{
	const struct launch_info *l = c->launch;

	v->launch = l;
	v->nctas = c->nctas;
	v->warps = c->warps_per_cta;
	v->threads = (uint32_t)product(l->block, MAX_THREADS);
	if (!c->nctas || c->nctas > EVENT_MAX_CTAS)
		return "number of CTAs of a cluster";
	if (v->warps != (v->threads + 31) / 32)
		return "number of warps of a CTA";
	/* a launch with two cluster sizes numbers the smaller ones after the others */
	return c->id >= 2 * grid_ctas(l) ? "number of a cluster" : NULL;
}

/* ---- events ---- */

static uint32_t all_ctas(const struct event_valid *v)
{
	return (1u << v->nctas) - 1;
}

static bool range_fits(const struct event_valid *v, unsigned cta, uint64_t addr, uint64_t bytes)
{
	return cta < v->nctas && v->cta[cta].begun && bytes <= v->cta[cta].bytes
		&& addr <= v->cta[cta].bytes - bytes;
}

static bool in_shared(const struct event_valid *v, unsigned cta, const struct event *e,
	const struct ev_lanes *at, uint32_t bytes)
{
	for (uint32_t m = e->lanes; m; m &= m - 1)
		if (!range_fits(v, cta, lane_addr(at, (unsigned)__builtin_ctz(m)), bytes))
			return false;
	return true;
}

static bool spans_in_shared(const struct event_valid *v, unsigned cta, const struct ev_spans *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (!range_fits(v, cta, s->at[i].addr, s->at[i].bytes))
			return false;
	return true;
}

static bool spans_in_each(const struct event_valid *v, uint32_t ctas, const struct ev_spans *s)
{
	for (; ctas; ctas &= ctas - 1)
		if (!spans_in_shared(v, (unsigned)__builtin_ctz(ctas), s))
			return false;
	return true;
}

static bool gspans_fit(const struct ev_gspans *s)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < s->n; i++) {
		if (s->at[i].bytes > MAX_GLOBAL || s->at[i].addr > UINT64_MAX - s->at[i].bytes)
			return false;
		all += s->at[i].bytes;
	}
	return all <= MAX_GLOBAL;
}

static bool bulk_fits(const struct event_valid *v, const struct event *e,
	const struct event_bulk *x)
{
	const uint32_t lane = (uint32_t)__builtin_ctz(e->lanes);
	const uint32_t to = x->multicast ? x->cta_mask : 1u << x->owner;

	if (x->cta_mask & ~all_ctas(v) || x->padding > x->global.n || (x->multicast && !to))
		return false;
	if (x->prefetch)
		return true;
	for (uint32_t m = to; m; m &= m - 1)
		if (!range_fits(v, (unsigned)__builtin_ctz(m), x->addr, x->bytes))
			return false;
	if (x->source && !range_fits(v, e->cta, x->source[lane], x->bytes))
		return false;
	return x->mode && spans_in_each(v, to, &x->spans) && gspans_fit(&x->global);
}

static bool regs_fit(const struct ev_regs *r)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->at[i] > MAX_REG)
			return false;
	return true;
}

static bool areas_fit(const struct event_valid *v, const struct ev_areas *a)
{
	for (unsigned i = 0; i < a->n; i++)
		if (a->at[i].column + (uint32_t)a->at[i].columns > TMEM_MOST || !a->at[i].mode
				|| a->at[i].ctas & ~all_ctas(v))
			return false;
	return true;
}

static bool type_fits(const struct event_valid *v, const struct event_field *f, uint64_t value)
{
	switch ((enum event_type)f->type) {
#define MOST(type, most) case TYPE_##type: return value <= (uint64_t)(most);
#define LIMIT(id, member, field, most)
#define HOLDS(id, member, condition)
#define WHEN(id, when)
#include "valid.def"
#undef WHEN
#undef HOLDS
#undef LIMIT
#undef MOST
	default: return true;
	}
}

static bool fields_fit(const struct event_valid *v, const struct event *e)
{
	const struct event_fields *k = event_fields(e->kind);

	for (unsigned i = k->narrays; i < k->n; i++)
		if (!type_fits(v, &k->at[i], event_number(e, &k->at[i])))
			return false;
#define MOST(type, most)
#define LIMIT(id, member, field, most) HOLDS(id, member, (uint64_t)x->field <= (uint64_t)(most))
#define HOLDS(id, member, condition) \
	if (e->kind == EV_##id) { \
		const __typeof__(e->member) *const x = &e->member; \
		(void)x; \
		if (!(condition)) \
			return false; \
	}
#define WHEN(id, when)
#include "valid.def"
#undef WHEN
#undef HOLDS
#undef LIMIT
#undef MOST
	return true;
}

static enum when when_of(enum ev_kind kind)
{
	switch (kind) {
#define MOST(type, most)
#define LIMIT(id, member, field, most)
#define HOLDS(id, member, condition)
#define WHEN(id, when) case EV_##id: return when;
#include "valid.def"
#undef WHEN
#undef HOLDS
#undef LIMIT
#undef MOST
	default: return ACTS;
	}
}

static void begin(struct event_valid *v, const struct event *e)
{
	uint32_t left = v->threads;

	v->cta[e->cta].begun = true;
	v->cta[e->cta].bytes = e->cta_begin.shared_bytes;
	for (unsigned w = 0; w < v->warps; w++) {
		const uint32_t n = left < 32 ? left : 32;

		v->cta[e->cta].live[w] = n == 32 ? UINT32_MAX : (1u << n) - 1;
		left -= n;
	}
}

const char *event_wrong(struct event_valid *v, const struct event *e)
{
	const enum when when = when_of(e->kind);
	const bool acts = when == ACTS || when == EXITS;

	if (e->cta >= v->nctas)
		return "an event of a CTA that the cluster does not have";
	if (e->warp >= v->warps)
		return "an event of a warp that the CTA does not have";
	if (!e->lanes)
		return "an event of no lane";
	if (v->cta[e->cta].begun == (when == FIRST))
		return when == FIRST ? "a CTA begins twice" : "an event before its CTA begins";
	if (when != FIRST && when != EFFECT && v->cta[e->cta].ended)
		return "an event after its CTA has ended";
	if (acts && e->lanes & ~v->cta[e->cta].live[e->warp])
		return "an event of lanes that have exited or do not exist";
	if (!fields_fit(v, e))
		return "a field of an event is out of range";
	if (when == FIRST)
		begin(v, e);
	else if (when == ENDS)
		v->cta[e->cta].ended = true;
	else if (when == EXITS)
		v->cta[e->cta].live[e->warp] &= ~e->lanes;
	return NULL;
}
