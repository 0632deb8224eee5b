/* digest: runs on the GPU after a launch. consan_digest hashes each chunk of records,
 * consan_sign combines the digests of a CTA's chunks into its signature, consan_gather copies
 * chosen chunks into one piece of memory. Clocks, tickets and failed polls are left out, so
 * that CTAs whose warps did the same have the same signature. identical.c computes the same
 * on the host, where a CTA has too many chunks for consan_sign. */
#include "search.h"

typedef unsigned long long u64;

/* The polynomial of the chunk's records, in all lanes. A record's hash is the sum of its
 * units' hashes, so that each lane hashes its own units, whichever records they are part of. */
static __device__ u64 sum_of(const struct search *s, uint32_t lane, const u64 *powers, uint32_t *count)
{
	uint32_t marks[EACH], counts[EACH], after[EACH], start = 0;
	u64 sum = 0;

#pragma unroll
	for (uint32_t i = 0; i < EACH; i++) {
		const bool begins = s->begins[lane + 32 * i];

		marks[i] = __ballot_sync(~0u, begins);
		counts[i] = __ballot_sync(~0u, begins && !(s->kind[lane + 32 * i] & SKIPPED));
	}
	*count = 0;
#pragma unroll
	for (uint32_t i = EACH; i-- > 0;) {
		after[i] = *count;
		*count += __popc(counts[i]);
	}
#pragma unroll
	for (uint32_t i = 0; i < EACH; i++) {
		const uint32_t at = lane + 32 * i, below = marks[i] & (2u << lane) - 1;
		const uint4 r = s->unit[at];
		uint32_t of = start, kind;

		if (below)
			of = 32 * i + 31 - __clz(below);
		if (marks[i])
			start = 32 * i + 31 - __clz(marks[i]);
		kind = s->kind[of];
		if (!of || at >= s->next[of] || kind & SKIPPED || (kind & VALUE && at + 1 == s->next[of]))
			continue;
		if (kind & PLACE && at != of)
			continue;
		const uint32_t j = of / 32;
		uint32_t rest = 0; /* records after this one */

#pragma unroll
		for (uint32_t k = 0; k < EACH; k++)
			if (k == j)
				rest = after[k] + __popc(counts[k] >> (of & 31) >> 1);
		if (kind & PLACE)
			sum += digest_unit(0, r.x >> RECORD_SITE_SHIFT << RECORD_SITE_SHIFT, r.y, 0, 0)
				* powers[rest];
		else
			sum += digest_unit(at - of, r.x, r.y, at != of || (kind & 3) == 1 ? r.w : 0,
				at != of ? r.z : 0) * powers[rest];
	}
	for (uint32_t d = 16; d; d /= 2)
		sum += __shfl_xor_sync(~0u, sum, d);
	return sum;
}

static __device__ u64 power(uint32_t n)
{
	u64 p = 1, b = RECORD_DIGEST_BASE;

	for (; n; n >>= 1, b *= b)
		if (n & 1)
			p *= b;
	return p;
}

/* Each warp digests one chunk after the other. list: the numbers of the chunks of each CTA, at most
 * `cap`; many: how many chunks each CTA has. */
extern "C" __global__ void __launch_bounds__(32 * WARPS) consan_digest(const uint4 *pool,
	uint32_t most, const uint32_t *sites, uint32_t nsites, uint4 *out, uint32_t nctas, uint32_t *many,
	uint32_t *list, uint32_t cap)
{
	__shared__ struct search held[WARPS];
	__shared__ u64 powers[RECORD_CHUNK_UNITS];
	const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const uint32_t given = ((const struct record_head *)pool)->next - 1;
	const uint32_t n = given < most ? given : most;
	struct search *s = &held[warp];

	for (uint32_t k = threadIdx.x; k < RECORD_CHUNK_UNITS; k += blockDim.x)
		powers[k] = power(k);
	__syncthreads();
	for (uint32_t k = blockIdx.x * WARPS + warp; k < n; k += gridDim.x * WARPS) {
		const uint4 *from = pool + (u64)(k + 1) * RECORD_CHUNK_UNITS;
		uint32_t count;
		u64 sum;

		search_chunk(s, lane, from, sites, nsites);
		sum = sum_of(s, lane, powers, &count);
		if (!lane) {
			const uint32_t cta = s->unit[0].x;

			out[k] = make_uint4(cta, s->unit[0].y | count << 16, (uint32_t)sum, (uint32_t)(sum >> 32));
			if (cta < nctas) {
				const uint32_t at = atomicAdd(&many[cta], 1);

				if (at < cap)
					list[(u64)cta * cap + at] = k;
			}
		}
		__syncwarp();
	}
}

/* mix() of identical.c */
static __device__ u64 mix(u64 h)
{
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	return h ^ h >> 32;
}

/* A block for each CTA. The records of each lane make one polynomial; the sum of their hashes
 * is the CTA's signature. */
extern "C" __global__ void consan_sign(const struct record_digest *d, const uint32_t *many,
	const uint32_t *list, uint32_t cap, uint3 grid, uint3 cluster, u64 *out)
{
	__shared__ uint2 entry[RECORD_SIGN_CHUNKS]; /* chunk; lane, count << 16 */
	__shared__ u64 term[RECORD_SIGN_CHUNKS];
	__shared__ u64 total;
	const uint32_t cta = blockIdx.x, n = many[cta];
	const uint32_t x = cta % grid.x, y = cta / grid.x % grid.y, z = cta / grid.x / grid.y;
	const uint32_t rank = x % cluster.x + cluster.x * (y % cluster.y + cluster.y * (z % cluster.z));

	if (n > cap || n > RECORD_SIGN_CHUNKS)
		return;
	if (!threadIdx.x)
		total = 0;
	for (uint32_t k = threadIdx.x; k < n; k += blockDim.x) {
		const uint32_t chunk = list[(u64)cta * cap + k];

		entry[k] = make_uint2(chunk, d[chunk].warp_lane_count);
	}
	__syncthreads();
	for (uint32_t k = threadIdx.x; k < n; k += blockDim.x) {
		const uint2 e = entry[k];
		uint32_t after = 0;

		for (uint32_t i = 0; i < n; i++)
			if (((entry[i].y ^ e.y) & 0xffff) == 0 && entry[i].x > e.x)
				after += entry[i].y >> 16;
		term[k] = ((u64)d[e.x].sum_hi << 32 | d[e.x].sum_lo) * power(after);
	}
	__syncthreads();
	for (uint32_t k = threadIdx.x; k < n; k += blockDim.x) {
		const uint2 e = entry[k];
		bool newest = true;
		u64 h = 0;

		for (uint32_t i = 0; i < n && newest; i++)
			if (((entry[i].y ^ e.y) & 0xffff) == 0) {
				h += term[i];
				newest = entry[i].x <= e.x;
			}
		if (newest && h)
			atomicAdd(&total, mix(h + mix((u64)rank << 32 | ((e.y & 0xffff) + 1))));
	}
	__syncthreads();
	if (!threadIdx.x)
		out[cta] = total;
}

/* want: indices into list. out: the pool's head, then the chunks. */
extern "C" __global__ void consan_gather(const uint4 *pool, const uint32_t *list,
	const uint32_t *want, uint4 *out)
{
	const uint32_t chunk = blockIdx.x ? list[want[blockIdx.x - 1]] + 1 : 0;

	out[(u64)blockIdx.x * RECORD_CHUNK_UNITS + threadIdx.x] =
		pool[(u64)chunk * RECORD_CHUNK_UNITS + threadIdx.x];
}
