/* global_lanes: which lanes of a past access touched a byte. */
#include "global_parts.h"

static uint32_t listed_at(const struct global_record *r, uint64_t addr)
{
	uint32_t found = 0;

	for (uint32_t m = r->lanes; m; m &= m - 1)
		if (addr - global_lane_addr(r, (unsigned)__builtin_ctz(m)) < r->size)
			found |= m & -m;
	return found;
}

/* The lanes of a row whose byte is at distance d from the first lane's first byte, for all places
 * that the row moved to in steps. */
static uint32_t row_at(const struct global_record *r, int64_t d)
{
	const int64_t size = r->size, inner = r->inner, most = (1 << r->row) - 1;
	const int64_t low = inner < 0 ? most * inner : 0;
	const int64_t high = (inner > 0 ? most * inner : 0) + size;
	const int64_t step = r->step, last = step && r->count > 1 ? r->count - 1 : 0;
	const int64_t all = step * last;
	int64_t k = 0;
	uint32_t found = 0;

	if (d < low + (all < 0 ? all : 0) || d >= high + (all > 0 ? all : 0))
		return 0;
	/* the first k for which low <= d - k * step < high, if there is one */
	if (step > 0 && d >= high)
		k = (d - high) / step + 1;
	else if (step < 0 && d < low)
		k = (low - d - 1) / -step + 1;
	for (; k <= last; k++) {
		int64_t in = d - k * step;

		if (in < low || in >= high)
			break;
		if (!inner)
			return (uint32_t)((2ull << most) - 1);
		if (inner == size) {
			found |= 1u << in / size;
			continue;
		}
		for (int64_t l = 0; l <= most; l++)
			if (in - l * inner >= 0 && in - l * inner < size)
				found |= 1u << l;
	}
	return found;
}

uint32_t global_lanes_at(const struct global_record *r, uint64_t addr)
{
	const int64_t d = (int64_t)(addr - r->base), width = (int64_t)r->size << (r->row & 31);
	uint32_t found = 0;

	if (r->row == GR_WHOLE)
		return r->lanes;
	if (r->row > 5)
		return listed_at(r, addr);
	if (r->count <= 1 && r->inner == r->size && r->pitch >= width) {
		int64_t k = 0, in = d;

		if (d < 0 || (in >= width && r->row == 5))
			return 0;
		if (in >= width) { /* divisions are slow */
			k = d / r->pitch;
			in = d % r->pitch;
		}
		if (in >= width || k >= 32 >> r->row)
			return 0;
		return r->lanes & 1u << ((k << r->row) + (int64_t)((uint32_t)in / r->size));
	}
	if (!r->pitch && !r->row && r->count <= 1)
		return d >= 0 && d < r->size ? r->lanes : 0;
	for (int64_t k = 0; k < 32 >> r->row; k++)
		found |= row_at(r, d - k * r->pitch) << (k << r->row);
	return found & r->lanes;
}

/* A power of two that divides all addresses at which the bytes of a lane begin or end, at most
 * GRANULE. Between two such addresses the lanes do not change. */
static uint32_t unit_of(const struct global_record *r)
{
	uint64_t all = GRANULE;

	if (r->row == GR_WHOLE)
		return GRANULE;
	all |= r->size;
	if (r->row <= 5)
		all |= r->base | (uint64_t)r->pitch | (uint64_t)r->inner
			| (r->count > 1 ? (uint64_t)r->step : 0);
	for (uint32_t m = r->row > 5 ? r->lanes : 0; m; m &= m - 1)
		all |= global_lane_addr(r, (unsigned)__builtin_ctz(m));
	return (uint32_t)(all & -all);
}

uint32_t global_same_lanes(const struct global_record *a, const struct global_record *b,
	unsigned byte)
{
	const uint32_t x = unit_of(a), y = unit_of(b), unit = x < y ? x : y;

	return ((1u << unit) - 1) << (byte & -unit);
}
