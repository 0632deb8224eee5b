/* global_layout: the layout of an access, made from the addresses of its lanes. */
#include "global_parts.h"

#include <string.h>

_Static_assert(GR_MAX_COUNT <= UINT8_MAX, "count is 8 bits");

/* In 32 bits, with its negative. */
static bool fits(int64_t distance)
{
	return distance >= -INT32_MAX && distance <= INT32_MAX;
}

/* Finds rows of lanes: lane l at first + (l >> row) * pitch + its offset in the row. */
static bool in_rows(struct global_record *r, const uint64_t *at)
{
	const uint64_t first = at[0];
	const int64_t inner = (int64_t)(at[1] - first);
	int64_t pitch;
	unsigned row, k;

	if (!fits(inner))
		return false;
	for (k = 1; k < 32 && at[k] == first + (uint64_t)(k * inner); k++)
		;
	row = 31 - (unsigned)__builtin_clz(k);
	pitch = row == 5 ? (int64_t)r->size * 32 : (int64_t)(at[1u << row] - first);
	if (!fits(pitch))
		return false;
	for (k = 0; k < 32; k++)
		if (at[k] != first + (uint64_t)((int64_t)(k >> row) * pitch
			+ (int64_t)(k & ((1u << row) - 1)) * inner))
			return false;
	r->base = first;
	r->row = (uint8_t)row;
	r->pitch = (int32_t)pitch;
	r->inner = (int32_t)inner;
	return true;
}

void global_set_layout(struct global_record *r, uint32_t lanes, const uint64_t *addr,
	uint64_t base, int32_t stride)
{
	r->lanes = lanes;
	r->addr = NULL;
	r->step = 0;
	r->count = 1;
	if (!addr) {
		r->base = base;
		r->row = stride == (int32_t)r->size ? 5 : 0;
		r->pitch = r->row ? (int32_t)r->size * 32 : stride;
		r->inner = (int32_t)r->size;
		return;
	}
	if (lanes == UINT32_MAX && in_rows(r, addr))
		return;
	r->base = 0;
	r->row = GR_LIST;
	r->pitch = r->inner = 0;
	r->addr = addr;
}

bool global_set_halves(struct global_record *r, uint32_t lanes, uint64_t base, int32_t inner,
	int64_t pitch)
{
	if (lanes != UINT32_MAX || !fits(pitch) || pitch == 16 * (int64_t)inner)
		return false;
	r->lanes = lanes;
	r->addr = NULL;
	r->step = 0;
	r->count = 1;
	r->base = base;
	r->row = 4;
	r->pitch = (int32_t)pitch;
	r->inner = inner;
	return true;
}

bool global_extend(struct global_record *r, const struct global_record *next)
{
	const unsigned count = r->count > 1 ? r->count : 1;
	const uint64_t last = r->base + (uint64_t)((int64_t)r->step * (count - 1));
	const int64_t step = (int64_t)(next->base - last);
	const struct global_pace pace = { next->epoch - r->epoch - r->pace.epoch * (count - 1),
		next->issue - r->issue - r->pace.issue * (count - 1) };

	if (r->row > 5 || r->row != next->row || r->pitch != next->pitch || r->inner != next->inner
		|| r->size != next->size || r->lanes != next->lanes || next->count > 1)
		return false;
	if (count == 1 && !step) {
		r->epoch = next->epoch;
		r->issue = next->issue;
		return true;
	}
	if (!fits(step) || count == GR_MAX_COUNT || (count > 1 && (step != r->step
			|| pace.epoch != r->pace.epoch || pace.issue != r->pace.issue)))
		return false;
	r->step = (int32_t)step;
	r->count = (uint8_t)(count + 1);
	r->pace = pace;
	return true;
}

struct global_span global_bounds(const struct global_record *r)
{
	const int64_t end[3] = { (int64_t)r->pitch * ((32 >> r->row) - 1),
		(int64_t)r->inner * ((1 << r->row) - 1), (int64_t)r->step * (r->count - (r->count > 0)) };
	struct global_span s = { r->base, r->size };

	for (unsigned i = 0; i < 3; i++) {
		s.addr += (uint64_t)(end[i] < 0 ? end[i] : 0);
		s.bytes += (uint64_t)(end[i] < 0 ? -end[i] : end[i]);
	}
	return s;
}

struct global_record global_place(const struct global_record *r, uint32_t i)
{
	struct global_record x = *r;

	x.base += (uint64_t)((int64_t)r->step * i);
	x.epoch += r->pace.epoch * i;
	x.issue += r->pace.issue * i;
	x.addr = NULL;
	x.step = 0;
	x.count = 1;
	return x;
}

bool global_same_layout(const struct global_record *a, const struct global_record *b)
{
	if (a->row != b->row || a->lanes != b->lanes)
		return false;
	if (a->row == GR_WHOLE)
		return true;
	if (a->base != b->base || a->size != b->size)
		return false;
	if (a->row <= 5)
		return a->pitch == b->pitch && a->inner == b->inner && a->step == b->step
			&& a->pace.epoch == b->pace.epoch && a->pace.issue == b->pace.issue
			&& (a->count > 1 ? a->count : 1) == (b->count > 1 ? b->count : 1);
	for (uint32_t m = a->lanes; m; m &= m - 1) {
		const unsigned l = (unsigned)__builtin_ctz(m);

		if (a->row == GR_LIST ? a->addr[l] != b->addr[l] : a->offset[l] != b->offset[l])
			return false;
	}
	return true;
}
