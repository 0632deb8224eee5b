/* digest: on the GPU, after a launch: what each chunk of records says, as a
 * number, and chosen chunks in one piece. Clocks, tickets and failed polls do
 * not count: two clusters whose warps did the same have the same digests. */
#include "record.h"

typedef unsigned long long u64;

/* As digest.h has it: bits 0..11 words, 12..13 enum plan_class, 14 skipped. */
static __device__ unsigned units_of(uint32_t site, bool affine, uint32_t lanes)
{
	const unsigned words = site & 0xfff, how = site >> 12 & 3;

	if (how == 1)
		return affine ? 1 : 9;
	if (how == 2)
		return 1 + (__popc(lanes) * words + 3) / 4;
	return 1 + (words + 3) / 4;
}

static __device__ u64 mix(u64 h, u64 x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

extern "C" __global__ void consan_digest(const uint4 *pool, uint32_t n, const uint32_t *sites,
	uint32_t nsites, uint4 *out)
{
	const uint32_t k = blockIdx.x * blockDim.x + threadIdx.x;
	const uint4 *chunk = pool + (u64)(k + 1) * RECORD_CHUNK_UNITS;
	u64 sum = 0;
	uint32_t count = 0;

	if (k >= n)
		return;
	for (uint32_t at = 1; at < RECORD_CHUNK_UNITS;) {
		const uint4 r = chunk[at];
		const uint32_t id = r.x >> RECORD_SITE_SHIFT;

		if (!r.x || id >= nsites)
			break;
		const uint32_t site = sites[id];
		const bool affine = r.x & RECORD_AFFINE;
		const unsigned units = units_of(site, affine, r.y);

		if (!(site >> 14 & 1)) {
			u64 h = mix((u64)r.x << 32 | r.y, (site >> 12 & 3) == 1 ? r.w : 0);

			for (unsigned u = 1; u < units && at + u < RECORD_CHUNK_UNITS; u++) {
				const uint4 p = chunk[at + u];

				h = mix(mix(h, (u64)p.x << 32 | p.y), (u64)p.z << 32 | p.w);
			}
			sum = sum * RECORD_DIGEST_BASE + h;
			count++;
		}
		at += units;
	}
	out[k] = make_uint4(chunk[0].x, chunk[0].y | count << 16, (uint32_t)sum, (uint32_t)(sum >> 32));
}

extern "C" __global__ void consan_gather(const uint4 *pool, const uint32_t *list, uint4 *out)
{
	out[(u64)blockIdx.x * RECORD_CHUNK_UNITS + threadIdx.x] =
		pool[(u64)list[blockIdx.x] * RECORD_CHUNK_UNITS + threadIdx.x];
}
