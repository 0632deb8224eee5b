/* global_state: the records of past accesses and the states that granules share. Both have
 * reference counts and are reused; their content is not interpreted here. */
#include "global_parts.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

/* Makes r, a copy of a GR_LIST, a GR_OFFSETS. */
static void to_offsets(struct shard *s, struct global_record *r, uint64_t number)
{
	const uint64_t *addr = r->addr;
	int16_t *offset = base_alloc(32 * sizeof *offset);

	_Static_assert(REGION_BYTES <= INT16_MAX, "offsets have 16 bits");
	s->bytes += 32 * sizeof *offset;
	r->base = number << REGION_SHIFT;
	for (uint32_t m = r->lanes; m; m &= m - 1) {
		const unsigned l = (unsigned)__builtin_ctz(m);
		const int64_t at = (int64_t)(addr[l] - r->base);

		if (at > -(int64_t)r->size && at < (int64_t)REGION_BYTES && at >= INT16_MIN)
			offset[l] = (int16_t)at;
		else
			r->lanes &= ~(1u << l);
	}
	r->row = GR_OFFSETS;
	r->offset = offset;
}

uint32_t global_record_new(struct shard *s, const struct global_record *from, uint64_t number)
{
	uint32_t i = s->free_record;
	struct global_record *r;

	if (i) {
		s->free_record = record_at(s, i)->refs;
	} else {
		i = s->nrecords ? s->nrecords : 1;
		if (i % CHUNK == 0 || i == 1) {
			s->record = base_resize(s->record, (i / CHUNK + 1) * sizeof *s->record);
			s->record[i / CHUNK] = base_alloc(CHUNK * sizeof *r);
			s->bytes += CHUNK * sizeof *r;
		}
		s->nrecords = i + 1;
	}
	r = record_at(s, i);
	*r = *from;
	r->refs = 1; /* held by the access while it is applied */
	if (r->row == GR_LIST)
		to_offsets(s, r, number);
	return i;
}

static void record_free(struct shard *s, uint32_t i)
{
	struct global_record *r = record_at(s, i);

	if (r->row == GR_OFFSETS) {
		free(r->offset);
		s->bytes -= 32 * sizeof *r->offset;
	}
	r->row = 0;
	r->refs = s->free_record;
	s->free_record = i;
}

void global_record_put(struct shard *s, uint32_t i)
{
	if (--record_at(s, i)->refs == 0)
		record_free(s, i);
}

/* ---- states ---- */

static struct entry *entries_new(struct shard *s, uint32_t cap)
{
	unsigned class = (unsigned)__builtin_ctz(cap);
	struct entry *at = s->spare[class];

	if (at) {
		memcpy(&s->spare[class], at, sizeof(void *));
		return at;
	}
	s->bytes += cap * sizeof *at;
	return base_alloc(cap * sizeof *at);
}

static void entries_free(struct shard *s, struct entry *at, uint32_t cap)
{
	unsigned class = (unsigned)__builtin_ctz(cap);

	memcpy(at, &s->spare[class], sizeof(void *));
	s->spare[class] = at;
}

_Static_assert(sizeof(struct entry) >= sizeof(struct entry *), "a free array links to the next");

static uint32_t capacity_for(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

uint32_t global_state_new(struct visit *v, const struct entry *at, uint32_t n)
{
	struct shard *s = v->s;
	uint32_t i = s->free_state;
	struct state *x;

	if (i) {
		s->free_state = s->state[i].refs;
	} else {
		if (s->nstates == s->cap_states) {
			uint32_t cap = s->cap_states ? 2 * s->cap_states : 64;

			s->state = base_resize(s->state, cap * sizeof *s->state);
			s->bytes += (cap - s->cap_states) * sizeof *s->state;
			s->cap_states = cap;
			if (!s->nstates)
				s->state[s->nstates++] = (struct state){ 0 };
		}
		i = s->nstates++;
	}
	x = &s->state[i];
	x->refs = 0;
	x->n = (uint16_t)n;
	x->cap = (uint16_t)capacity_for(n);
	x->at = entries_new(s, x->cap);
	memcpy(x->at, at, n * sizeof *at);
	memcpy(x->saturated, v->saturated, sizeof x->saturated);
	for (uint32_t k = 0; k < n; k++)
		record_at(s, at[k].record)->refs++;
	return i;
}

static void state_free(struct shard *s, uint32_t i)
{
	struct state *x = &s->state[i];

	for (uint32_t k = 0; k < x->n; k++)
		global_record_put(s, x->at[k].record);
	entries_free(s, x->at, x->cap);
	x->cap = x->n = 0;
	x->at = NULL;
	x->refs = s->free_state;
	s->free_state = i;
}

static void forget_memo(struct visit *v, uint32_t state)
{
	if (v->last == state)
		v->last = 0;
	for (unsigned k = 0; k < v->nmemo;)
		if (v->memo[k].from == state || v->memo[k].to == state)
			v->memo[k] = v->memo[--v->nmemo];
		else
			k++;
}

void global_state_put(struct visit *v, uint32_t i, uint32_t granules)
{
	struct state *x = &v->s->state[i];

	if (!i)
		return;
	x->refs -= granules;
	if (x->refs)
		return;
	forget_memo(v, i);
	state_free(v->s, i);
}

void global_state_set(struct visit *v, uint32_t i, const struct entry *at, uint32_t n)
{
	struct shard *s = v->s;
	struct state *x = &s->state[i];
	uint32_t cap = capacity_for(n);
	struct entry *was = x->at;
	uint32_t nwas = x->n, capwas = x->cap;

	for (uint32_t k = 0; k < n; k++)
		record_at(s, at[k].record)->refs++;
	if (cap > capwas || 4 * cap <= capwas) {
		x->at = entries_new(s, cap);
		x->cap = (uint16_t)cap;
	}
	for (uint32_t k = 0; k < nwas; k++)
		global_record_put(s, was[k].record);
	memcpy(x->at, at, n * sizeof *at);
	memcpy(x->saturated, v->saturated, sizeof x->saturated);
	x->n = (uint16_t)n;
	if (x->at != was)
		entries_free(s, was, capwas);
	forget_memo(v, i);
}
