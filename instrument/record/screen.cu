/* screen: runs on the GPU after a launch. consan_screen enters the accesses to global memory of each
 * record into the table of pages (screen.h), consan_screen_scan looks for entries that a check may find
 * something about, and empties the table. decode/screen.c computes the same on the host. */
#include "search.h"

typedef unsigned long long u64;

/* Which page and which allocation a lane found last. */
struct lane_state {
	uint64_t page;             /* its number + 1; 0: none */
	uint32_t slot;             /* its place in the table */
	uint64_t from, to;         /* of the allocation */
	uint32_t which;            /* its number, as screen_range_of() */
	uint32_t site;             /* of the record */
	bool over;                 /* the launch is not clean */
};

static __device__ uint32_t why_so_far(const struct screen_job *j)
{
	uint32_t why;

	asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(why)
		: "l"(__cvta_generic_to_global(&j->result->why)) : "memory");
	return why;
}

/* One reason of each kind is enough: atomics of all threads on one word would take long. */
static __device__ void refuse(const struct screen_job *j, uint32_t site, uint32_t why, uint64_t addr)
{
	if (why_so_far(j) & why)
		return;
	atomicOr(&j->result->why, why);
	if (atomicCAS(&j->result->site, 0, site ? site : UINT32_MAX) == 0)
		atomicExch((u64 *)&j->result->addr, (u64)addr);
}

static __device__ void refuse_record(const struct screen_job *j, struct lane_state *l, uint32_t why,
	uint64_t addr)
{
	l->over = true;
	refuse(j, l->site, why, addr);
}

static __device__ u64 load(const uint64_t *at)
{
	u64 x;

	asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(x)
		: "l"(__cvta_generic_to_global(at)) : "memory");
	return x;
}

static __device__ ulonglong2 load_two(const uint64_t *at)
{
	ulonglong2 x;

	asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(x.x), "=l"(x.y)
		: "l"(__cvta_generic_to_global(at)) : "memory");
	return x;
}

/* Sets l->slot. False: there is no space. */
static __device__ bool find_page(const struct screen_job *j, struct lane_state *l, uint64_t page)
{
	uint32_t at = screen_place(page);

	if (l->page == page + 1)
		return true;
	for (uint32_t k = 0; k < SCREEN_PROBES; k++, at++) {
		uint64_t *key = &j->key[at & (j->pages - 1)];
		u64 has = load(key);

		if (!has)
			has = atomicCAS((u64 *)key, 0ull, (u64)page + 1);
		if (has && has != page + 1)
			continue;
		l->page = page + 1;
		l->slot = at & (j->pages - 1);
		return true;
	}
	refuse_record(j, l, SCREEN_FULL, page << SCREEN_PAGE_SHIFT);
	return false;
}

/* old: what the word may have. It changes only a few times, as entries only grow. Returns whether this
 * changed it. */
static __device__ bool grow(const struct screen_job *j, struct lane_state *l, uint64_t *word,
	u64 old, u64 add)
{
	for (uint32_t k = 0; k < 64; k++) {
		const u64 want = screen_merge_word(old, add);
		u64 has;

		if (want == old)
			return false;
		has = atomicCAS((u64 *)word, old, want);
		if (has == old)
			return true;
		old = has;
	}
	refuse_record(j, l, SCREEN_FULL, 0);
	return true;
}

/* Notes which instruction accessed these half words of a page. Of several any is good, so that the last
 * one may stay. */
static __device__ void note_place(const struct screen_job *j, const struct lane_state *l, uint32_t first,
	uint32_t end, bool writes)
{
	uint16_t *seen = j->seen + (u64)l->slot * SCREEN_PAGE_SEEN + (writes ? SCREEN_PAGE_HALVES : 0);
	const uint16_t place = j->place[l->site];

	for (uint32_t k = first; k < end; k++)
		asm volatile("st.relaxed.gpu.global.u16 [%0], %1;" : : "l"(__cvta_generic_to_global(seen + k)),
			"h"(place) : "memory");
}

/* Bytes [from, to) of the 16 at `at`. */
static __device__ void touch(const struct screen_job *j, struct lane_state *l, uint64_t at,
	uint32_t from, uint32_t to, uint32_t tag)
{
	const uint32_t in = (uint32_t)at % (1u << SCREEN_PAGE_SHIFT);
	ulonglong2 low, high;
	uint64_t *word;
	bool more;

	if (!find_page(j, l, at >> SCREEN_PAGE_SHIFT))
		return;
	word = j->entry + (u64)l->slot * SCREEN_PAGE_WORDS + in / 4;
	low = load_two(word);
	high = load_two(word + 2);
	more = grow(j, l, word, low.x, screen_add(tag, from, to, 0));
	more |= grow(j, l, word + 1, low.y, screen_add(tag, from, to, 1));
	more |= grow(j, l, word + 2, high.x, screen_add(tag, from, to, 2));
	more |= grow(j, l, word + 3, high.y, screen_add(tag, from, to, 3));
	if (j->seen && more)
		note_place(j, l, (in + from) / 2, (in + to + 1) / 2, tag & SCREEN_WRITES);
}

/* False: some are outside of all allocations. Sets l->which. */
static __device__ bool inside(const struct screen_job *j, struct lane_state *l, uint64_t addr,
	uint64_t bytes)
{
	if (!j->range)
		return true;
	if (l->which && addr >= l->from && addr < l->to && bytes <= l->to - addr)
		return true;
	l->which = screen_range_of(j->range, j->nranges, addr, bytes);
	if (l->which == UINT32_MAX) {
		l->which = 0;
		refuse_record(j, l, SCREEN_OUTSIDE, addr);
		return false;
	}
	if (l->which) {
		l->from = j->range[l->which - 1].from;
		l->to = j->range[l->which - 1].to;
	}
	return true;
}

/* The lane's chunk after chunk k, which is that of the last records of this lane; NULL: not known. */
static __device__ const uint32_t *following(const struct screen_job *j, const struct search *s, uint32_t k,
	uint32_t lane)
{
	const uint32_t cta = s->unit[0].x, owner = s->unit[0].y;
	const uint32_t n = j->many ? j->many[cta] : 0;
	uint32_t best = UINT32_MAX;

	if (n > j->cap)
		return NULL;
	for (uint32_t i = lane; i < n; i += 32) {
		const uint32_t e = j->list[(u64)cta * j->cap + i];

		if (e > k && e < best && (j->digests[e].warp_lane_count & 0xffff) == owner)
			best = e;
	}
	for (uint32_t d = 16; d; d /= 2) {
		const uint32_t x = __shfl_xor_sync(~0u, best, d);

		best = x < best ? x : best;
	}
	return best == UINT32_MAX ? NULL
		: (const uint32_t *)((const uint4 *)j->pool + (u64)(best + 1) * RECORD_CHUNK_UNITS + 1);
}

/* The other record of a copy of chunk k; NULL: not known. */
static __device__ const uint32_t *other_record(const struct screen_job *j, const struct search *s,
	uint32_t at, uint32_t k, uint32_t lane)
{
	const uint32_t *r = (const uint32_t *)&s->unit[at];
	const uint32_t next = s->next[at];
	const uint32_t *other = next < END && s->unit[next].x ? (const uint32_t *)&s->unit[next]
		: following(j, s, k, lane);

	return other && screen_is_other(r, other) ? other : NULL;
}

/* Each lane enters its own access. other: of a copy. */
static __device__ void enter_access(const struct screen_job *j, struct lane_state *l, const uint32_t *r,
	uint32_t word, const uint32_t *other, uint32_t lane, uint32_t thread)
{
	const uint32_t bytes = 1u << (word >> SCREEN_DETAIL & 15);
	const uint32_t tag = screen_tag(word & SCREEN_KIND, thread + lane);
	uint32_t n = bytes;
	uint64_t addr;

	if (!(r[1] >> lane & 1))
		return;
	if ((word & SCREEN_KIND) == SCREEN_COPY)
		n = screen_copied(word, bytes, other, __popc(r[1] & ((1u << lane) - 1)));
	if (!n)
		return;
	addr = screen_address(r, lane, __ffs(r[1]) - 1);
	if (addr & (bytes - 1) || n > bytes) {
		refuse_record(j, l, SCREEN_ALIGN, addr);
		return;
	}
	if (!inside(j, l, addr, n))
		return;
	for (uint32_t k = 0; k < n; k += 16)
		touch(j, l, (addr + k) & ~15ull, (uint32_t)addr & 15, n < 16 ? ((uint32_t)addr & 15) + n : 16, tag);
}

/* The warp enters the bytes of each lane's copy. */
static __device__ void enter_bulk(const struct screen_job *j, struct lane_state *l, const uint32_t *r,
	uint32_t word, uint32_t lane_words, uint32_t lane)
{
	const uint32_t tag = screen_tag(word & SCREEN_KIND, 0);
	const uint32_t n = __popc(r[1]);

	for (uint32_t before = 0; before < n; before++) {
		const uint32_t *w = screen_words(r, lane_words, before);
		const uint64_t addr = w[0] | (uint64_t)w[1] << 32;
		const uint32_t bytes = word >> SCREEN_DETAIL ? word >> SCREEN_DETAIL : w[2];

		if ((addr | bytes) & 15 || bytes > SCREEN_MOST_BYTES) {
			refuse_record(j, l, SCREEN_ALIGN, addr);
			continue;
		}
		if (!bytes || !inside(j, l, addr, bytes))
			continue;
		for (uint32_t k = 16 * lane; k < bytes; k += 16 * 32)
			touch(j, l, addr + k, 0, 16, tag);
		__syncwarp();
	}
}

/* The warp enters the rows of a box; false if they are not in one allocation. */
static __device__ bool enter_box(const struct screen_job *j, struct lane_state *l,
	const struct screen_map *m, const int32_t at[SCREEN_RANKS], uint32_t rows, uint32_t kind, uint32_t lane)
{
	const uint32_t tag = screen_tag(kind, 0), each = (m->count[0] * m->bits / 8 + 15) / 16;
	uint32_t low = UINT32_MAX, high = 0;

	for (uint32_t k = lane; k < rows * each; k += 32) {
		const uint32_t from = k % each * 16;
		uint32_t bytes;
		uint64_t addr;

		if (!screen_row(m, at, k / each, kind, &addr, &bytes) || from >= bytes
				|| !inside(j, l, addr, bytes))
			continue;
		low = l->which < low ? l->which : low;
		high = l->which > high ? l->which : high;
		touch(j, l, addr + from, 0, bytes - from < 16 ? bytes - from : 16, tag);
	}
	__syncwarp();
	for (uint32_t d = 16; d; d /= 2) {
		const uint32_t x = __shfl_xor_sync(~0u, low, d), y = __shfl_xor_sync(~0u, high, d);

		low = x < low ? x : low;
		high = y > high ? y : high;
	}
	return low == UINT32_MAX || low == high;
}

static __device__ void enter_tensor(const struct screen_job *j, struct lane_state *l, const uint32_t *r,
	uint32_t word, uint32_t lane_words, uint32_t lane)
{
	const uint64_t base = *(const uint64_t *)((const char *)j->pool + RECORD_PARAMS_AT);
	const struct screen_tensor *t = &j->tensor[word >> SCREEN_DETAIL];
	const uint32_t n = __popc(r[1]), kind = word & SCREEN_KIND;

	for (uint32_t before = 0; before < n; before++) {
		const uint32_t *w = screen_words(r, lane_words, before);
		int32_t at[SCREEN_RANKS];
		uint32_t rows, k = screen_coords(t, w, at);
		const uint64_t name = w[k] | (uint64_t)w[k + 1] << 32;

		k = screen_map_of(j->map, j->nmaps, name, base, j->param_bytes);
		if (k == j->nmaps || !screen_box(&j->map[k], t, at, kind, &rows))
			refuse_record(j, l, SCREEN_MAP, name);
		else if (!enter_box(j, l, &j->map[k], at, rows, kind, lane))
			refuse_record(j, l, SCREEN_OUTSIDE, j->map[k].address);
		__syncwarp();
	}
}

static __device__ void enter_record(const struct screen_job *j, const struct search *s,
	struct lane_state *l, uint32_t chunk, uint32_t at, uint32_t lane, uint32_t thread)
{
	const uint32_t *r = (const uint32_t *)&s->unit[at], *other = NULL;
	const uint32_t site = r[0] >> RECORD_SITE_SHIFT;
	uint32_t word, digest;

	l->site = site < j->nsites ? site : 0;
	if (!l->site || !r[1]) {
		refuse_record(j, l, SCREEN_DAMAGED, 0);
		return;
	}
	word = j->site[site];
	digest = j->digest[site];
	if (at + digest_units(digest, r[0] & RECORD_AFFINE, __popc(r[1])) > RECORD_CHUNK_UNITS) {
		refuse_record(j, l, SCREEN_DAMAGED, 0);
		return;
	}
	if ((word & SCREEN_KIND) == SCREEN_COPY && word & SCREEN_SIZED)
		other = other_record(j, s, at, chunk, lane);
	if ((word & SCREEN_KIND) == SCREEN_COPY && word & SCREEN_MAYBE && !other && j->seen) {
		refuse_record(j, l, SCREEN_INEXACT, 0);
		return;
	}
	switch (word & SCREEN_KIND) {
	case SCREEN_NONE:
		break;
	case SCREEN_LOAD: case SCREEN_STORE: case SCREEN_REDUCE:
		enter_bulk(j, l, r, word, digest & 0xfff, lane);
		break;
	case SCREEN_TENSOR_LOAD: case SCREEN_TENSOR_STORE: case SCREEN_TENSOR_REDUCE:
		enter_tensor(j, l, r, word, digest & 0xfff, lane);
		break;
	case SCREEN_HOST:
		refuse_record(j, l, SCREEN_OTHER, 0);
		break;
	default:
		enter_access(j, l, r, word, other, lane, thread);
	}
}

/* Is the record at this unit to be entered, or damaged? */
static __device__ bool is_wanted(const struct screen_job *j, const struct search *s, uint32_t at)
{
	const uint32_t x = s->unit[at].x, site = x >> RECORD_SITE_SHIFT;

	return s->begins[at] && x && (site >= j->nsites || !s->unit[at].y
		|| (s->next[at] == END && at + digest_units(j->digest[site], x & RECORD_AFFINE,
			__popc(s->unit[at].y)) > END)
		|| (j->site[site] & SCREEN_KIND) != SCREEN_NONE);
}

/* Each warp enters one chunk after the other, until the launch is known not to be clean. */
extern "C" __global__ void __launch_bounds__(32 * WARPS) consan_screen(const struct screen_job job)
{
	__shared__ struct search held[WARPS];
	const struct screen_job *j = &job;
	const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const uint32_t given = ((const struct record_head *)j->pool)->next - 1;
	const uint32_t n = given < j->chunks ? given : j->chunks;
	struct lane_state l = { 0 };
	struct search *s = &held[warp];

	for (uint32_t k = blockIdx.x * WARPS + warp; k < n; k += gridDim.x * WARPS) {
		uint32_t cta, warp_lane;

		if (__any_sync(~0u, why_so_far(j) != 0))
			break;
		search_chunk(s, lane, (const uint4 *)j->pool + (u64)(k + 1) * RECORD_CHUNK_UNITS, j->digest,
			j->nsites);
		cta = s->unit[0].x;
		warp_lane = s->unit[0].y;
		if (cta >= j->nctas || warp_lane >= j->threads)
			refuse_record(j, &l, SCREEN_DAMAGED, 0);
		for (uint32_t i = 0; i < EACH; i++) {
			uint32_t rest = __ballot_sync(~0u, is_wanted(j, s, lane + 32 * i));

			for (; rest && !__any_sync(~0u, l.over); rest &= rest - 1) {
				enter_record(j, s, &l, k, 32 * i + __ffs(rest) - 1, lane,
					cta * j->threads + (warp_lane & ~31u));
				__syncwarp();
			}
		}
		if (!lane)
			atomicAdd(&j->result->chunks, 1);
		__syncwarp();
	}
}

/* The key of a half word of a page, and whether single bytes of it were accessed. */
static __device__ uint32_t key_of(const struct screen_job *j, uint32_t slot, uint32_t half, uint32_t *part)
{
	const uint32_t entry = (uint32_t)(j->entry[(u64)slot * SCREEN_PAGE_WORDS + half / 2] >> half % 2 * 32);
	const uint16_t *seen = j->seen + (u64)slot * SCREEN_PAGE_SEEN + half;

	*part |= entry & SCREEN_PART;
	return screen_edge_key(entry, seen[0], seen[SCREEN_PAGE_HALVES]);
}

static __device__ void add_edge(const struct screen_job *j, uint64_t addr, uint32_t key)
{
	const uint32_t k = atomicAdd(&j->result->edges, 1);

	if (k >= j->most_edges)
		return;
	j->edge[k].addr = addr;
	j->edge[k].key = key;
}

/* The block finds the edges in a page, which begins at this address. */
static __device__ void find_edges(const struct screen_job *j, uint32_t slot, uint64_t addr)
{
	uint32_t part = 0;

	for (uint32_t k = threadIdx.x; k < SCREEN_PAGE_HALVES; k += blockDim.x) {
		const uint32_t key = key_of(j, slot, k, &part);

		if (!screen_alike(j->like, key, k ? key_of(j, slot, k - 1, &part) : 0))
			add_edge(j, addr + 2 * k, key);
		if (k + 1 == SCREEN_PAGE_HALVES && key)
			add_edge(j, addr + 2 * k + 2, 0);
	}
	if (part)
		refuse(j, 0, SCREEN_INEXACT, addr);
}

/* Looks at the pages that are used, and empties them. */
extern "C" __global__ void __launch_bounds__(256) consan_screen_scan(const struct screen_job job)
{
	__shared__ u64 key[SCREEN_SCAN_PAGES];
	const struct screen_job *j = &job;
	const uint32_t first = blockIdx.x * SCREEN_SCAN_PAGES;

	for (uint32_t k = threadIdx.x; k < SCREEN_SCAN_PAGES; k += blockDim.x)
		key[k] = first + k < j->pages ? j->key[first + k] : 0;
	__syncthreads();
	for (uint32_t k = 0; k < SCREEN_SCAN_PAGES; k++) {
		ulonglong2 *entry = (ulonglong2 *)(j->entry + (u64)(first + k) * SCREEN_PAGE_WORDS);
		ulonglong2 *seen = (ulonglong2 *)(j->seen + (u64)(first + k) * SCREEN_PAGE_SEEN);

		if (!key[k])
			continue;
		if (j->seen)
			find_edges(j, first + k, (key[k] - 1) << SCREEN_PAGE_SHIFT);
		__syncthreads();
#pragma unroll 4
		for (uint32_t i = threadIdx.x; i < SCREEN_PAGE_WORDS / 2; i += blockDim.x) {
			const ulonglong2 e = entry[i];

			if (screen_is_bad((uint32_t)e.x) || screen_is_bad((uint32_t)(e.x >> 32))
					|| screen_is_bad((uint32_t)e.y) || screen_is_bad((uint32_t)(e.y >> 32)))
				refuse(j, 0, SCREEN_RACE, ((key[k] - 1) << SCREEN_PAGE_SHIFT) + 8ull * i);
			entry[i] = make_ulonglong2(0, 0);
			if (j->seen)
				seen[i] = make_ulonglong2(0, 0);
		}
		if (!threadIdx.x)
			j->key[first + k] = 0;
	}
	if (!threadIdx.x)
		atomicAdd(&j->result->scanned, 1);
}
