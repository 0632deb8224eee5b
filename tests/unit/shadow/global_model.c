/* The shadow of global memory against a model that forgets nothing: random accesses of every layout
 * at random addresses, by lanes that synchronize at random. The model keeps, for each byte, every
 * access with its lanes.
 *
 * What is asserted:
 *  - every record that the shadow compares has the bytes and lanes that were accessed, byte by
 *    byte, so that it reports no race that the model does not have;
 *  - when the model finds the first race on a byte, the shadow has found a race on it.
 * What the shadow may forget is in lost().
 *
 * Cases: seeds.h; with $SHADOW_VERBOSE also the accesses of a case. */
#include "shadow/global.h"
#include "seeds.h"
#include "tests/common/random.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLUSTERS 10u
#define WARPS 2u /* of a cluster */
#define AGENTS (CLUSTERS * WARPS)
#define MEMORY 8192u
#define ACCESSES 192u
#define PLACES 6u

/* ---- the model ---- */

struct made { /* an access */
	uint32_t agent, epoch, size;
	uint8_t flags;
};

struct touch { /* an access to a byte */
	uint32_t id, lanes;
};

struct byte {
	struct touch at[ACCESSES];
	uint32_t n;
	bool found; /* the shadow has found one of the races on it */
};

static struct made made[ACCESSES];
static bool found[ACCESSES][ACCESSES]; /* the shadow has reported this race: by [now][old] */
static uint32_t nmade;
static struct byte memory[MEMORY];
static uint64_t base; /* address of memory[0] */
static uint32_t window; /* bytes of it in use */
static uint32_t agents; /* in use */

static uint32_t known[AGENTS][AGENTS][32]; /* by all lanes of a warp: the epoch of each lane */
static uint32_t epoch[AGENTS];
static unsigned long races, may_miss;

static uint32_t lanes_of(uint32_t id, uint64_t addr)
{
	const struct byte *b = &memory[addr - base];

	cr_assert(addr - base < window);
	for (uint32_t i = b->n; i-- > 0 && b->at[i].id >= id;)
		if (b->at[i].id == id)
			return b->at[i].lanes;
	return 0;
}

/* The lanes of `agent` whose epoch the warp `by` knows. */
static uint32_t covered(uint32_t by, uint32_t agent, uint32_t at)
{
	uint32_t lanes = 0;

	for (unsigned l = 0; l < 32; l++)
		lanes |= (uint32_t)(known[by][agent][l] >= at) << l;
	return lanes;
}

/* Is every pair of lanes that accesses the byte ordered? */
static bool ordered(const struct made *old, uint32_t old_lanes, const struct made *now,
	uint32_t now_lanes)
{
	const uint32_t need = old_lanes & ~covered(now->agent, old->agent, old->epoch);

	return !need || (old->agent == now->agent && need == now_lanes && !(need & (need - 1)));
}

static bool morally_strong(const struct made *a, const struct made *b)
{
	return a->flags & b->flags & GR_STRONG && a->size == b->size;
}

/* Has a strong read seen the value of this strong write, or of one after it, and is it ordered
 * before now? The shadow may take the write as ordered before now, too. */
static bool observed(const struct byte *b, uint32_t write, const struct made *now,
	uint32_t now_lanes)
{
	for (uint32_t i = write + 1; i < b->n; i++) {
		const struct made *x = &made[b->at[i].id];

		if (x != now && x->flags & GR_STRONG && (x->flags & GR_RMW || !(x->flags & GR_WRITE))
			&& x->size == made[b->at[write].id].size && ordered(x, b->at[i].lanes, now, now_lanes))
			return true;
	}
	return false;
}

/* ---- the shadow ---- */

static struct global_shadow *shadow;

struct view {
	struct global_accessor accessor;
	uint32_t id;
};

static void same_lanes_as_made(const struct global_record *r, uint64_t at, uint32_t id)
{
	cr_assert_eq(global_lanes_at(r, at), lanes_of(id, at),
		"access %u (form %u, %u bytes), byte 0x%llx: lanes 0x%x, accessed by 0x%x", id, r->row,
		r->size, (unsigned long long)at, global_lanes_at(r, at), lanes_of(id, at));
}

static enum global_verdict classify(struct global_accessor *a, const struct global_record *old,
	const struct global_record *now, uint64_t addr, uint32_t bytes, bool *lanewise)
{
	const uint32_t id = ((struct view *)a)->id;
	const struct made *n = &made[id], *o = &made[old->issue];
	const uint32_t know = covered(n->agent, o->agent, old->epoch);
	const bool write = (old->flags | now->flags) & GR_WRITE;
	bool all = true;

	cr_assert(bytes && addr % GRANULE == 0);
	cr_assert_eq(now->issue, id);
	cr_assert_eq(old->epoch, o->epoch);
	cr_assert_eq(old->cluster * WARPS + old->agent, o->agent);
	for (uint32_t m = bytes; m; m &= m - 1) {
		const uint64_t at = addr + (unsigned)__builtin_ctz(m);

		same_lanes_as_made(now, at, id);
		if (old->flags & GR_MERGED) /* the newest of them, which accessed the bytes, too */
			cr_assert(lanes_of(old->issue, at));
		else
			same_lanes_as_made(old, at, old->issue);
		for (uint32_t k = m & global_same_lanes(old, now, at % GRANULE); k; k &= k - 1)
			cr_assert_eq(global_lanes_at(now, at), lanes_of(id, addr + (unsigned)__builtin_ctz(k)));
	}
	if (know == UINT32_MAX)
		return GLOBAL_ORDERED;
	if (know || o->agent == n->agent) {
		if (old->flags & GR_MERGED)
			return GLOBAL_ORDERED;
		*lanewise = true;
	}
	for (uint32_t m = bytes; m; m &= m - 1) {
		const uint64_t at = addr + (unsigned)__builtin_ctz(m);
		const bool is = ordered(o, global_lanes_at(old, at), n, global_lanes_at(now, at));

		all &= is;
		if (!is && write && !morally_strong(o, n))
			found[id][old->issue] = true;
	}
	if (all)
		return GLOBAL_ORDERED;
	if (!write)
		return GLOBAL_UNORDERED;
	return morally_strong(o, n) ? GLOBAL_MORALLY_STRONG : GLOBAL_CONFLICT;
}

/* ---- the comparison ---- */

/* How many accesses to the granule are like x: strong writes, or plain reads by its warp in its
 * epoch. */
static uint32_t like(uint64_t granule, const struct made *x)
{
	const uint8_t strong_write = GR_STRONG | GR_WRITE;
	bool seen[ACCESSES] = { 0 };
	uint32_t n = 0;

	for (uint64_t at = granule; at < granule + GRANULE && at < base + window; at++)
		for (uint32_t k = 0; k < memory[at - base].n; k++) {
			const uint32_t id = memory[at - base].at[k].id;
			const struct made *y = &made[id];

			n += !seen[id] && (x->flags & GR_WRITE ? (y->flags & strong_write) == strong_write
				: !(y->flags & strong_write) && y->agent == x->agent && y->epoch == x->epoch);
			seen[id] = true;
		}
	return n;
}

/* The two things that the shadow may forget:
 *  - more than 16 strong writes to a granule: those of the highest clusters are dropped;
 *  - more than 4 reads of a granule by a warp in one epoch may become one, without lanes: then only
 *    an access that knows nothing of the warp is compared with them. */
static bool lost(const struct byte *b, uint32_t i, const struct made *now)
{
	const struct made *x = &made[b->at[i].id];
	const uint64_t granule = (base + (uint64_t)(b - memory)) & ~(uint64_t)(GRANULE - 1);

	if (x->flags & GR_WRITE)
		return x->flags & GR_STRONG && like(granule, x) > 16;
	if (x->flags & GR_STRONG
		|| (x->agent != now->agent && !covered(now->agent, x->agent, x->epoch)))
		return false;
	return like(granule, x) > 4;
}

/* Does the model have a race of these two on the byte, for certain? */
static bool races_with(const struct byte *b, uint32_t i, const struct made *now, uint32_t lanes)
{
	const struct made *x = &made[b->at[i].id];

	if (x == now || !((x->flags | now->flags) & GR_WRITE) || morally_strong(x, now)
		|| ordered(x, b->at[i].lanes, now, lanes))
		return false;
	if ((x->flags & (GR_STRONG | GR_WRITE)) == (GR_STRONG | GR_WRITE)
		&& observed(b, i, now, lanes))
		return false;
	if (!lost(b, i, now))
		return true;
	may_miss++;
	return false;
}

/* A race of two accesses is reported once for all bytes that have the same past. */
static void compare(uint32_t id, uint64_t from)
{
	const struct made *now = &made[id];

	for (uint32_t at = 0; at < window; at++) {
		struct byte *b = &memory[at];
		const uint32_t lanes = lanes_of(id, base + at);
		uint32_t race = ACCESSES;

		if (!lanes || b->found)
			continue;
		for (uint32_t i = 0; i < b->n && !b->found; i++) {
			if (!races_with(b, i, now, lanes))
				continue;
			race = b->at[i].id;
			b->found = found[id][race];
		}
		races += b->found;
		cr_assert(b->found || race == ACCESSES, "case %llu: access %u (agent %u, flags %u, "
			"lanes 0x%x) and access %u (agent %u, flags %u) race on byte 0x%llx, and it is missed",
			(unsigned long long)from, id, now->agent, now->flags, lanes, race, made[race].agent,
			made[race].flags, (unsigned long long)(base + at));
	}
}

/* ---- accesses ---- */

static uint32_t some_lanes(void)
{
	switch (rnd(6)) {
	case 0: return 1u << rnd(32);
	case 1: return (2u << rnd(31)) - 1;
	case 2: return 0x55555555u << rnd(2);
	case 3: return (rnd(1u << 16) << 16 | rnd(1u << 16)) | 1;
	default: return UINT32_MAX;
	}
}

/* Addresses of the lanes, in units of their size; *stride: or, if true, lane 0's and the stride. */
static bool pattern(int32_t at[32], int32_t *stride)
{
	const int32_t row = 1 << rnd(6), pitch = (int32_t)rnd(41) - 20;
	const int32_t inner = rnd(2) ? 1 : (int32_t)rnd(9) - 4;

	*stride = 0;
	switch (rnd(8)) {
	case 0: case 1: /* by stride */
		*stride = rnd(3) ? 1 : (int32_t)rnd(17) - 8;
		for (int32_t l = 0; l < 32; l++)
			at[l] = *stride * l;
		return true;
	case 2: /* triangular numbers */
		for (int32_t l = 0; l < 32; l++)
			at[l] = (l * (l + 1) / 2 & 31) * (1 + inner * inner);
		return false;
	case 3: { /* scattered */
		const uint32_t range = 1u << (4 + rnd(8));

		for (int32_t l = 0; l < 32; l++)
			at[l] = (int32_t)rnd(range);
		return false;
	}
	case 4: { /* a permutation */
		for (int32_t l = 0; l < 32; l++)
			at[l] = l;
		for (int32_t l = 31; l > 0; l--) {
			const uint32_t k = rnd((uint32_t)l + 1);
			const int32_t x = at[l];

			at[l] = at[k];
			at[k] = x;
		}
		return false;
	}
	case 5: /* rows that are walked again */
		for (int32_t l = 0; l < 32; l++)
			at[l] = l % row * inner;
		return false;
	default: /* rows and columns */
		for (int32_t l = 0; l < 32; l++)
			at[l] = l / row * pitch + l % row * inner;
		return false;
	}
}

static void note(uint32_t id, uint32_t lane, uint64_t addr, uint32_t size)
{
	for (uint64_t at = addr; at < addr + size; at++) {
		struct byte *b = &memory[at - base];

		cr_assert(at - base < window);
		if (!b->n || b->at[b->n - 1].id != id)
			b->at[b->n++] = (struct touch){ id, 0 };
		b->at[b->n - 1].lanes |= 1u << lane;
	}
}

static struct global_record record_of(uint32_t agent, uint32_t size, uint8_t flags)
{
	return (struct global_record){ .cluster = agent / WARPS, .agent = (uint16_t)(agent % WARPS),
		.warp = (uint16_t)(agent % WARPS), .epoch = epoch[agent], .issue = nmade,
		.site = 1 + rnd(3), .size = (uint16_t)size, .element = (uint16_t)size, .scope = 2,
		.flags = flags, .lane = -1 };
}

static struct view view_of(uint32_t agent, bool synchronised)
{
	struct view v = { .accessor = { .synchronised = synchronised, .isolated = true,
		.classify = classify }, .id = nmade };

	for (uint32_t a = 0; a < agents; a++)
		for (unsigned l = 0; l < 32; l++)
			v.accessor.isolated &= a / WARPS == agent / WARPS || !known[agent][a][l];
	return v;
}

static void print(const struct global_record *r)
{
	if (!getenv("SHADOW_VERBOSE"))
		return;
	fprintf(stderr, "%u: agent %u epoch %u flags %u form %u lanes %#x of %u bytes at %#llx", nmade,
		r->cluster * WARPS + r->agent, r->epoch, r->flags, r->row, r->lanes, r->size,
		(unsigned long long)(r->row == GR_LIST ? r->addr[__builtin_ctz(r->lanes)] : r->base));
	fprintf(stderr, " pitch %d inner %d step %d count %u\n", r->pitch, r->inner, r->step, r->count);
}

/* As the checker does: reads that need not be recorded, or repeat others, are passed over. */
static void touch(struct global_record *r, struct view *v)
{
	const bool plain = !(r->flags & (GR_WRITE | GR_STRONG));
	uint64_t addr[32];

	for (unsigned l = 0; l < 32; l++)
		addr[l] = global_lane_addr(r, l);
	if (plain && !v->accessor.synchronised && r->count <= 1
		&& global_shadow_all_saturated(shadow, r, addr, r->lanes))
		return;
	if (!plain || !global_shadow_repeat(shadow, &v->accessor, r))
		global_shadow_touch(shadow, &v->accessor, r);
}

static void access_lanes(uint64_t from, bool synchronised)
{
	static const uint8_t kinds[] = { 0, 0, 0, 0, GR_NC, GR_WRITE, GR_WRITE,
		GR_STRONG, GR_STRONG | GR_WRITE, GR_STRONG | GR_WRITE | GR_RMW };
	const uint32_t size = 1u << rnd(5), agent = rnd(agents), lanes = some_lanes();
	const uint8_t flags = kinds[rnd(sizeof kinds)];
	const unsigned places = flags || rnd(2) ? 1 : 1 + rnd(PLACES);
	const int32_t step = rnd(3) ? (int32_t)rnd(17) - 8 : 32;
	struct global_record r = record_of(agent, size, flags);
	struct view v = view_of(agent, synchronised);
	uint64_t addr[PLACES][32];
	int32_t at[32], low = INT32_MAX, high = INT32_MIN, stride;
	const bool strided = pattern(at, &stride);

	for (unsigned l = 0; l < 32; l++)
		for (unsigned p = 0; p < places; p++) {
			const int32_t x = at[l] + step * (int32_t)p;

			low = x < low ? x : low;
			high = x > high ? x : high;
		}
	if ((uint32_t)(high - low + 1) * size > window)
		return;
	const uint64_t first = base + size * rnd(window / size - (uint32_t)(high - low))
		- (uint64_t)((int64_t)low * size);
	for (unsigned p = 0; p < places; p++)
		for (unsigned l = 0; l < 32; l++)
			addr[p][l] = first + (uint64_t)((int64_t)(at[l] + step * (int32_t)p) * size);

	made[nmade] = (struct made){ .agent = agent, .epoch = epoch[agent], .size = size,
		.flags = flags };
	global_set_layout(&r, lanes, strided ? NULL : addr[0], first, stride * (int32_t)size);
	for (unsigned p = 0; p < places; p++) {
		struct global_record further = r;

		global_set_layout(&further, lanes, strided ? NULL : addr[p], addr[p][0],
			stride * (int32_t)size);
		if (p && !global_extend(&r, &further))
			break;
		for (uint32_t m = lanes; m; m &= m - 1)
			note(nmade, (unsigned)__builtin_ctz(m), addr[p][__builtin_ctz(m)], size);
	}
	print(&r);
	touch(&r, &v);
	memset(addr, 0xff, sizeof addr); /* the shadow must have copied them */
	compare(nmade++, from);
}

/* An engine's access, on behalf of a lane. */
static void access_whole(uint64_t from, bool synchronised)
{
	const uint32_t agent = rnd(agents), lane = rnd(32);
	const uint8_t flags = rnd(2) ? GR_WRITE : 0;
	struct global_record r = record_of(agent, 0, flags);
	struct view v = view_of(agent, synchronised);
	struct global_span span[3];
	const uint32_t n = 1 + rnd(3);

	made[nmade] = (struct made){ .agent = agent, .epoch = epoch[agent], .flags = flags };
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t bytes = 1 + rnd(rnd(3) ? 64 : window);

		span[i] = (struct global_span){ base + rnd(window - bytes + 1), bytes };
	}
	for (uint32_t i = 0; i < n; i++)
		note(nmade, lane, span[i].addr, (uint32_t)span[i].bytes);
	r.row = GR_WHOLE;
	r.lanes = 1u << lane;
	r.base = span[0].addr;
	print(&r);
	global_shadow_touch_whole(shadow, &v.accessor, &r, span, n);
	compare(nmade++, from);
}

/* ---- synchronization ---- */

static void learn(uint32_t to, uint32_t from, uint32_t lanes)
{
	for (uint32_t a = 0; a < agents; a++)
		for (unsigned l = 0; l < 32; l++)
			if (known[to][a][l] < known[from][a][l])
				known[to][a][l] = known[from][a][l];
	for (unsigned l = 0; l < 32; l++)
		if (lanes >> l & 1)
			known[to][from][l] = epoch[from];
}

static void synchronize(bool clusters)
{
	const uint32_t a = rnd(agents), b = a / WARPS * WARPS + rnd(WARPS);

	switch (rnd(clusters ? 5 : 3)) {
	case 0: /* bar.warp.sync */
		learn(a, a, UINT32_MAX);
		break;
	case 1: /* a barrier of the cluster */
		for (unsigned twice = 0; twice < 2; twice++)
			for (uint32_t x = 0; x < WARPS; x++)
				for (uint32_t y = 0; y < WARPS; y++)
					learn(a / WARPS * WARPS + x, a / WARPS * WARPS + y, UINT32_MAX);
		for (uint32_t x = 0; x < WARPS; x++)
			epoch[a / WARPS * WARPS + x]++;
		return;
	case 2: /* release by a lane, acquire by another warp */
		learn(b, a, 1u << rnd(32));
		break;
	default:
		learn(rnd(agents), a, rnd(2) ? UINT32_MAX : 1u << rnd(32));
	}
	epoch[a]++;
}

static void one_case(uint64_t from)
{
	static const uint32_t windows[] = { 64, 256, 1024, 4096, MEMORY };
	bool synchronised;
	uint32_t calm, steps;

	seed = from;
	window = windows[rnd(5)];
	synchronised = rnd(2);
	calm = rnd(4);
	steps = 8 + rnd(window < 1024 ? 250 : 60);
	agents = rnd(3) ? AGENTS : rnd(2) ? 3 * WARPS : WARPS;
	/* any place on a page; boundaries of pages and of 64 KiB are in the middle of the window */
	base = 0x7f3200000000ull + (rnd(2) ? rnd(1u << 20) : 65536 - rnd(window)) / 32 * 32;
	for (uint32_t at = 0; at < window; at++) {
		memory[at].n = 0;
		memory[at].found = false;
	}
	memset(known, 0, sizeof known);
	memset(found, 0, sizeof found);
	for (uint32_t a = 0; a < AGENTS; a++)
		epoch[a] = 1;
	nmade = 0;
	shadow = global_shadow_open();
	for (uint32_t i = 0; i < steps && nmade < ACCESSES; i++)
		if (rnd(6) < calm)
			synchronize(synchronised);
		else if (rnd(12))
			access_lanes(from, synchronised);
		else
			access_whole(from, synchronised);
	global_shadow_close(shadow);
}

Test(global_model, agrees_with_the_model)
{
	const unsigned long n = seeds_run(1500, one_case);

	if (!n)
		return;
	fprintf(stderr, "global memory: %lu accesses to bytes with a race, %lu races may be missed\n",
		races, may_miss);
	cr_assert(races > n, "there must be races");
}
