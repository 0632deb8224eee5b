/* global_spans: the bytes of an access, from its layout: as spans, which are ascending and separate
 * whatever order the lanes have, and as runs of granules. */
#include "global_parts.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

/* ---- spans ---- */

void global_spans_open(struct global_spans *s)
{
	s->at = s->few;
	s->n = 0;
	s->cap = GLOBAL_SPANS;
}

void global_spans_close(struct global_spans *s)
{
	if (s->at != s->few)
		free(s->at);
}

static void reserve(struct global_spans *s, size_t n)
{
	struct global_span *was = s->at;

	if (n <= s->cap)
		return;
	s->cap = n;
	s->at = base_resize(was == s->few ? NULL : was, n * sizeof *s->at);
	if (was == s->few)
		memcpy(s->at, was, s->n * sizeof *was);
}

/* Appends [addr, addr + bytes); extends the newest span if it overlaps or touches it on the
 * right. There must be capacity. */
static inline void append(struct global_spans *s, uint64_t addr, uint64_t bytes)
{
	struct global_span *last = s->n ? &s->at[s->n - 1] : NULL;

	if (last && addr >= last->addr && addr - last->addr <= last->bytes) {
		if (addr + bytes > last->addr + last->bytes)
			last->bytes = addr + bytes - last->addr;
		return;
	}
	s->at[s->n++] = (struct global_span){ addr, bytes };
}

static int by_address(const void *a, const void *b)
{
	const uint64_t x = ((const struct global_span *)a)->addr;
	const uint64_t y = ((const struct global_span *)b)->addr;

	return x < y ? -1 : x > y;
}

/* Sorts the spans, and joins those that overlap or touch. */
static void normalise(struct global_spans *s)
{
	const size_t n = s->n;
	size_t i = 1;

	while (i < n && s->at[i].addr > s->at[i - 1].addr + s->at[i - 1].bytes)
		i++;
	if (i >= n)
		return;
	if (n > GLOBAL_SPANS) {
		qsort(s->at, n, sizeof *s->at, by_address);
	} else {
		for (; i < n; i++) {
			const struct global_span x = s->at[i];
			size_t k = i;

			for (; k && s->at[k - 1].addr > x.addr; k--)
				s->at[k] = s->at[k - 1];
			s->at[k] = x;
		}
	}
	s->n = 0;
	for (i = 0; i < n; i++)
		append(s, s->at[i].addr, s->at[i].bytes);
}

/* A set of places: n of them, the first at base, a positive distance apart. */
struct places {
	uint64_t base;
	int64_t distance;
	uint32_t n;
};

static struct places places_of(uint64_t base, int64_t distance, uint32_t n)
{
	if (!distance)
		n = 1;
	if (distance < 0) {
		base += (uint64_t)(distance * (n - 1));
		distance = -distance;
	}
	return (struct places){ base, distance, n };
}

/* Spans of `bytes` at these places are one span. */
static void join(struct places *p, uint64_t *bytes)
{
	if (p->n == 1 || (uint64_t)p->distance > *bytes)
		return;
	*bytes += (uint64_t)p->distance * (p->n - 1);
	p->n = 1;
}

/* All 32 lanes, in rows. */
static void all_lanes(const struct global_record *r, struct global_spans *s)
{
	struct places in = places_of(r->base, r->inner, 1u << r->row);
	struct places out = places_of(in.base, r->pitch, 32u >> r->row);
	const uint64_t base = out.base;
	uint64_t bytes = r->size;

	if (out.n > 1 && out.distance < in.distance) { /* columns: neighbours are in the next row */
		const struct places x = in;

		in = out;
		out = x;
	}
	join(&in, &bytes);
	if (in.n == 1)
		join(&out, &bytes);
	for (uint32_t i = 0; i < out.n; i++)
		for (uint32_t k = 0; k < in.n; k++)
			append(s, base + (uint64_t)(out.distance * i + in.distance * k), bytes);
}

static void some_lanes(const struct global_record *r, struct global_spans *s)
{
	for (uint32_t m = r->lanes; m; m &= m - 1)
		append(s, global_lane_addr(r, (unsigned)__builtin_ctz(m)), r->size);
}

/* The same spans at the further places of a loop. */
static void add_steps(const struct global_record *r, struct global_spans *s)
{
	const size_t n = s->n;
	const uint64_t extent = s->at[n - 1].addr + s->at[n - 1].bytes - s->at[0].addr;
	const struct places all = places_of(0, r->step, r->count);
	struct global_spans first;

	global_spans_open(&first);
	reserve(&first, n);
	memcpy(first.at, s->at, n * sizeof *s->at);
	first.n = n;
	reserve(s, n * r->count);
	s->n = 0;
	if ((uint64_t)all.distance >= extent) {
		for (uint32_t k = 0; k < all.n; k++)
			for (size_t i = 0; i < n; i++)
				append(s, first.at[i].addr + all.base + (uint64_t)(all.distance * k),
					first.at[i].bytes);
	} else {
		for (size_t i = 0; i < n; i++) {
			struct places p = all;
			uint64_t bytes = first.at[i].bytes;

			join(&p, &bytes);
			for (uint32_t k = 0; k < p.n; k++)
				append(s, first.at[i].addr + p.base + (uint64_t)(p.distance * k), bytes);
		}
	}
	global_spans_close(&first);
	normalise(s);
}

void global_spans_of(const struct global_record *r, struct global_spans *s)
{
	s->n = 0;
	if (!r->lanes || !r->size)
		return;
	if (r->row <= 5 && r->lanes == UINT32_MAX)
		all_lanes(r, s);
	else
		some_lanes(r, s);
	normalise(s);
	if (r->count > 1 && r->step)
		add_steps(r, s);
}

void global_spans_set(struct global_spans *s, const struct global_span *at, size_t n)
{
	s->n = 0;
	reserve(s, n);
	for (size_t i = 0; i < n; i++)
		append(s, at[i].addr, at[i].bytes);
	normalise(s);
}

/* ---- runs ---- */

void global_runs_open(struct global_runs *c)
{
	c->at = c->few;
	c->n = 0;
	c->cap = GLOBAL_RUNS;
}

void global_runs_close(struct global_runs *c)
{
	if (c->at != c->few)
		free(c->at);
}

void global_runs_push(struct global_runs *c, struct global_run x)
{
	struct global_run *was = c->at;

	if (c->n == c->cap) {
		c->cap *= 2;
		c->at = base_resize(was == c->few ? NULL : was, c->cap * sizeof *c->at);
		if (was == c->few)
			memcpy(c->at, was, c->n * sizeof *was);
	}
	c->at[c->n++] = x;
}

static uint64_t run_end(const struct global_run *x)
{
	return x->addr + (uint64_t)x->granules * GRANULE;
}

/* Appends granules of one zone, the first of which may be the last that there is. */
static void add_granules(struct global_runs *c, uint64_t addr, uint32_t granules, uint16_t mask)
{
	struct global_run *last = c->n ? &c->at[c->n - 1] : NULL;

	if (last && run_end(last) - GRANULE == addr) { /* granules is 1 */
		mask |= last->mask;
		if (!--last->granules)
			c->n--;
		last = c->n ? &c->at[c->n - 1] : NULL;
	}
	if (last && run_end(last) == addr && last->mask == mask
		&& last->addr >> ZONE_SHIFT == addr >> ZONE_SHIFT)
		last->granules += granules;
	else
		global_runs_push(c, (struct global_run){ addr, granules, mask });
}

static uint16_t mask_of(uint64_t from, uint64_t to)
{
	return (uint16_t)((1u << to) - (1u << from));
}

void global_runs_of(struct global_runs *c, const struct global_spans *s)
{
	for (size_t i = 0; i < s->n; i++) {
		uint64_t addr = s->at[i].addr, end = addr + s->at[i].bytes, n;

		if (addr % GRANULE) {
			const uint64_t at = addr & ~(uint64_t)(GRANULE - 1);

			n = end - at < GRANULE ? end - at : GRANULE;
			add_granules(c, at, 1, mask_of(addr - at, n));
			addr = at + n;
		}
		for (; end - addr >= GRANULE; addr += n) {
			const uint64_t zone = (addr | (ZONE_BYTES - 1)) + 1;

			n = ((end < zone ? end : zone) - addr) & ~(uint64_t)(GRANULE - 1);
			add_granules(c, addr, (uint32_t)(n / GRANULE), 0xffff);
		}
		if (addr < end)
			add_granules(c, addr, 1, mask_of(0, end - addr));
	}
}
