/* values: the operands of recorded instructions, and the fields that all events have. */
#include "events.h"

struct event record_event(const struct dcluster *c, uint32_t warp, uint32_t site,
	enum ev_kind kind, uint32_t lanes)
{
	uint32_t per = c->info.warps_per_cta;

	return (struct event){ .kind = kind, .cta = (uint16_t)(warp / per),
		.warp = (uint16_t)(warp % per), .lanes = lanes, .site = c->job->l->site[site] };
}

uint32_t record_batch_site(const struct dcluster *c, uint32_t site, uint32_t k)
{
	return c->job->l->site[c->job->l->code->site.n + record_site(c, site)->batch + k];
}

uint64_t record_value(const struct dcluster *c, const struct record *r, const struct ptx_operand *o,
	unsigned lane)
{
	const struct plan *p = &c->job->info[r->site].plan;
	unsigned word = 0;

	for (unsigned k = 0; k < p->nvalues; k++) {
		bool wide = p->value[k].kind == VAL_U64 || p->value[k].kind == VAL_MAP ||
			p->value[k].kind == VAL_GLOBAL;

		if (p->value[k].o == o) {
			if (p->class == PLAN_ADDRESS)
				return r->affine ? r->base + (uint32_t)(r->stride * ((int)lane -
					__builtin_ctz(r->lanes))) : r->words[lane];
			return record_word(c, r, lane, word) |
				(wide ? (uint64_t)record_word(c, r, lane, word + 1) << 32 : 0);
		}
		word += wide ? 2 : 1;
	}
	return o->kind == PO_IMM ? (uint64_t)o->imm : 0;
}

uint64_t record_global(const struct dcluster *c, const struct record *r, unsigned lane)
{
	const struct plan *p = &c->job->info[r->site].plan;
	uint32_t from = lane - (uint32_t)__builtin_ctz(r->lanes), row;

	if (p->class != PLAN_GLOBAL)
		return record_value(c, r, p->value[0].o, lane);
	if (!r->affine)
		return r->words[2 * lane] | (uint64_t)r->words[2 * lane + 1] << 32;
	row = from & (uint32_t)((1ull << (r->words[3] & 31)) - 1);
	return (r->base | (uint64_t)r->words[0] << 32) +
		(uint64_t)((int64_t)(int32_t)r->words[1] * row +
		(int64_t)(int32_t)r->words[2] * (from >> (r->words[3] & 31)));
}

uint32_t record_stored(const struct dcluster *c, const struct record *r)
{
	const struct plan *p = &c->job->info[r->site].plan;
	uint32_t word;

	if (c->job->l->coarse) /* severities do not matter there */
		return 0;
	if (!p->conflicts)
		word = plan_stores(record_site(c, r->site)->insn);
	else if (p->class == PLAN_GLOBAL)
		word = r->affine ? r->words[3] >> RECORD_VALUE_SHIFT : r->words[64];
	else
		word = r->words[r->affine ? 0 : 32];
	return (word & (RECORD_VALUE_SAME - 1)) | (word & RECORD_VALUE_SAME ? ACCESS_VALUE_SAME : 0);
}

uint16_t record_owner(const struct dcluster *c, const struct event *e, uint64_t a, bool cluster)
{
	uint32_t rank = (uint32_t)a >> 24;

	return cluster && rank < c->info.nctas ? (uint16_t)rank : e->cta;
}

void record_values(const struct dcluster *c, const struct record *r, const struct ptx_operand *o,
	uint32_t lanes, uint64_t out[32])
{
	const struct site_info *info = &c->job->info[r->site];
	const struct plan *p = &info->plan;
	const uint32_t *at = r->words;
	bool wide = false;
	unsigned k, step = info->phase == PHASE_BATCH || r->affine ? 0 : info->lane_words;

	for (k = 0; k < p->nvalues && p->value[k].o != o; k++)
		at += p->value[k].kind == VAL_U64 || p->value[k].kind == VAL_MAP ? 2 : 1;
	if (p->class != PLAN_LANES || k == p->nvalues) {
		for EACH_LANE(l, lanes)
			out[l] = record_value(c, r, o, l);
		return;
	}
	wide = p->value[k].kind == VAL_U64 || p->value[k].kind == VAL_MAP;
	for EACH_LANE(l, r->lanes) {
		out[l] = at[0] | (wide ? (uint64_t)at[1] << 32 : 0);
		at += step;
	}
}

uint32_t record_same(const struct dcluster *c, const struct record *r, uint32_t rest,
	const struct ptx_operand *o)
{
	uint64_t v[32], first;
	uint32_t same = 0;

	if (!(rest & (rest - 1)) || o->kind == PO_IMM ||
			(r->affine && c->job->info[r->site].plan.class == PLAN_LANES))
		return rest;
	record_values(c, r, o, rest, v);
	first = v[__builtin_ctz(rest)];
	for EACH_LANE(l, rest)
		same |= (uint32_t)(v[l] == first) << l;
	return same;
}

void record_place(struct ev_lanes *to, uint32_t lanes, const uint64_t at[32])
{
	unsigned first = (unsigned)__builtin_ctz(lanes), last = 31 - (unsigned)__builtin_clz(lanes);
	uint32_t rest = lanes & (lanes - 1);
	int64_t stride;

	*to = (struct ev_lanes){ .base = at[first] };
	if (first == last)
		return;
	stride = (int64_t)(at[last] - at[first]) / (int)(last - first);
	if (stride == (int32_t)stride) {
		while (rest && at[__builtin_ctz(rest)] == at[first] + (uint64_t)(stride *
				((int)__builtin_ctz(rest) - (int)first)))
			rest &= rest - 1;
	}
	if (rest) {
		to->lane = at;
		return;
	}
	to->stride = (int32_t)stride;
	to->base = at[first] - (uint64_t)(stride * (int)first);
}

const uint32_t *record_shared(const struct dcluster *c, const struct record *r,
	const struct ptx_operand *o, uint32_t buffer[32])
{
	const unsigned first = (unsigned)__builtin_ctz(r->lanes);
	uint64_t value[32];

	if (c->job->info[r->site].plan.class == PLAN_ADDRESS && !r->affine)
		return r->words;
	if (c->job->info[r->site].plan.class == PLAN_ADDRESS) {
		for (unsigned l = 0; l < 32; l++)
			buffer[l] = r->base + (uint32_t)r->stride * (l - first);
		return buffer;
	}
	record_values(c, r, o, r->lanes, value);
	for (unsigned l = 0; l < 32; l++)
		buffer[l] = r->lanes >> l & 1 ? (uint32_t)value[l] : 0;
	return buffer;
}

void record_addresses(struct dcluster *c, struct ev_lanes *to, uint32_t lanes,
	const struct record *r, const struct ptx_operand *o, uint64_t at[32])
{
	unsigned first = (unsigned)__builtin_ctz(r->lanes);
	const uint32_t *words;
	uint32_t buffer[32];

	if (c->job->info[r->site].plan.class == PLAN_ADDRESS && r->affine) {
		to->stride = r->stride;
		to->base = OFFSET(r->base) - (uint64_t)((int64_t)r->stride * (int)first);
		return;
	}
	words = record_shared(c, r, o, buffer);
	for (unsigned l = 0; l < 32; l++)
		at[l] = OFFSET(words[l]);
	to->base = at[__builtin_ctz(lanes)];
	to->lane = at;
}
