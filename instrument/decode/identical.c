/* identical: which clusters of a launch recorded the same, so that only one of them, their
 * representative, is checked. A cluster's signature is a hash of what each lane recorded,
 * in that lane's order; how the records of several warps interleaved does not count. */
#include "decode.h"

#include <stdlib.h>
#include <string.h>

#include "instrument/record/record.h"
#include "instrument/rewrite/rewrite.h"

/* digest.cu computes the same polynomial in parallel. */
void decode_digest(const struct record_chunk *chunk, const uint32_t *word, uint32_t nwords,
	struct record_digest *d, uint32_t *left)
{
	const uint32_t *unit = (const uint32_t *)chunk;
	uint32_t at = 1, count = 0;
	uint64_t sum = 0;

	*left = 0;
	while (at < RECORD_CHUNK_UNITS) {
		const uint32_t *r = unit + 4 * (size_t)at;
		uint32_t site = *r >> RECORD_SITE_SHIFT, end;

		if (!*r || site >= nwords)
			break;
		end = at + digest_units(word[site], *r & RECORD_AFFINE,
			(uint32_t)__builtin_popcount(r[1]));
		end = end < RECORD_CHUNK_UNITS ? end : RECORD_CHUNK_UNITS;
		if (word[site] & DIGEST_LEAVES)
			*left += (uint32_t)__builtin_popcount(r[1]);
		if (!(word[site] & DIGEST_SKIPPED)) {
			uint64_t hash = 0;

			if (word[site] & DIGEST_PLACE)
				hash = digest_unit(0, site << RECORD_SITE_SHIFT, r[1], 0, 0);
			for (uint32_t k = at; !(word[site] & DIGEST_PLACE)
					&& k < end - digest_value(word[site]); k++)
				hash += digest_unit(k - at, unit[4 * k], unit[4 * k + 1],
					k > at || digest_class(word[site]) == 1
						? unit[4 * k + 3] : 0,
					k > at ? unit[4 * k + 2] : 0);
			sum = sum * RECORD_DIGEST_BASE + hash;
			count++;
		}
		at = end;
	}
	*d = (struct record_digest){ chunk->cta, (chunk->warp_lane & 0xffff) | count << 16,
		(uint32_t)sum, (uint32_t)(sum >> 32) };
}

/* What they accessed is not compared: clusters count as identical only in a launch that is screened. Where
 * they were counts, as it tells the path between other records (decode_record()). */
static uint32_t global_word(const struct rewrite_site *s)
{
	struct plan p;

	plan_global_of(s->func, s->insn, &p);
	if (p.class == PLAN_GLOBAL)
		return (1 + (p.conflicts > 0)) | 1 << 12 | DIGEST_GLOBAL | DIGEST_PLACE;
	return plan_words(&p) | (uint32_t)p.class << 12 | DIGEST_PLACE;
}

void decode_site_words(const struct rewrite *code, uint32_t *word)
{
	for (size_t k = 1; k < code->site.n; k++) {
		const struct rewrite_site *s = &code->site.at[k];
		uint32_t words = 0, class;
		struct plan p;

		if (s->phase == PHASE_GLOBAL || s->phase == PHASE_GLOBAL_AFTER) {
			word[k] = global_word(s);
			continue;
		}
		if (s->phase == PHASE_GROUP) {
			word[k] = s->lane_words | (uint32_t)s->class << 12;
			continue;
		}
		if (s->phase == PHASE_RANK)
			plan_rank_of(s->insn, &p);
		else if (s->phase == PHASE_TOKEN)
			plan_token_of(s->func, s->insn, &p);
		else
			plan_of(s->func, s->insn, &p);
		words = plan_words(&p);
		class = p.class;
		words += class == PLAN_ADDRESS && p.conflicts;
		if (s->phase == PHASE_BATCH) {
			class = PLAN_UNIFORM;
			words = 0;
			for (uint32_t b = 0; b < s->nbatch; b++) {
				plan_of(s->func, code->batch.at[s->batch + b], &p);
				words += plan_words(&p);
			}
		}
		word[k] = words | class << 12 |
			(s->phase == PHASE_FAILED || s->phase == PHASE_TOKEN ? DIGEST_SKIPPED : 0) |
			(s->phase == PHASE_BEFORE && rewrite_leaves(s->insn) ? DIGEST_LEAVES : 0);
	}
}

static uint64_t mix(uint64_t h)
{
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
	return h ^ h >> 32;
}

struct signature { uint64_t sum; uint32_t id; }; /* of a cluster */

static int by_sum(const void *a, const void *b)
{
	const struct signature *x = a, *y = b;

	if (x->sum != y->sum)
		return x->sum < y->sum ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* Appends a chunk to its lane's polynomial; the caller passes a lane's chunks in order. */
static void extend(uint64_t *h, const struct record_digest *d, const uint64_t power[256])
{
	*h = *h * power[d->warp_lane_count >> 16 & 255] + ((uint64_t)d->sum_hi << 32 | d->sum_lo);
}

static void find_powers(uint64_t power[256])
{
	power[0] = 1;
	for (unsigned k = 1; k < 256; k++)
		power[k] = power[k - 1] * RECORD_DIGEST_BASE;
}

/* The part of a CTA's signature that is due to a lane with this polynomial. */
static uint64_t sign_lane(uint64_t h, uint32_t rank, uint32_t lane)
{
	return h ? mix(h + mix((uint64_t)rank << 32 | (lane + 1))) : 0;
}

void decode_sign(const struct launch_info *i, const struct record_digest *chunk, uint32_t n,
	uint64_t *signature)
{
	uint32_t nctas = i->grid[0] * i->grid[1] * i->grid[2], rank;
	uint32_t lanes = (i->block[0] * i->block[1] * i->block[2] + 31) / 32 * 32;
	uint64_t *h = base_alloc((size_t)nctas * lanes * sizeof *h), power[256];

	find_powers(power);
	for (uint32_t k = 0; k < n; k++)
		if (chunk[k].cta < nctas && (chunk[k].warp_lane_count & 0xffff) < lanes)
			extend(&h[(size_t)chunk[k].cta * lanes
				+ (chunk[k].warp_lane_count & 0xffff)], &chunk[k], power);
	for (uint32_t k = 0; k < nctas; k++) {
		const uint64_t *of = h + (size_t)k * lanes;

		decode_cluster_of(i, k, &rank);
		signature[k] = 0;
		for (uint32_t l = 0; l < lanes; l++)
			signature[k] += sign_lane(of[l], rank, l);
	}
	free(h);
}

uint64_t decode_sign_one(const struct record_digest *chunk, uint32_t n, uint32_t rank)
{
	uint64_t sum = 0, h = 0, power[256];

	find_powers(power);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t lane = chunk[k].warp_lane_count & 0xffff;

		extend(&h, &chunk[k], power);
		if (k + 1 < n && (chunk[k + 1].warp_lane_count & 0xffff) == lane)
			continue;
		sum += sign_lane(h, rank, lane);
		h = 0;
	}
	return sum;
}

uint32_t decode_identical(const struct launch_info *i, const uint64_t *cta, uint64_t *signature,
	uint8_t *skip)
{
	uint32_t nctas = i->grid[0] * i->grid[1] * i->grid[2], nclusters = 0, same = 0, rank;
	struct signature *s = base_alloc((nctas + 1) * sizeof *s);

	for (uint32_t k = 0; k < nctas; k++) {
		uint32_t id = decode_cluster_of(i, k, &rank);

		nclusters = id >= nclusters ? id + 1 : nclusters;
		s[id].id = id;
		s[id].sum += cta[k];
	}
	qsort(s, nclusters, sizeof *s, by_sum);
	for (uint32_t k = 0; k < nclusters; k++) {
		skip[s[k].id] = k && s[k].sum == s[k - 1].sum;
		signature[s[k].id] = s[k].sum;
		same += skip[s[k].id];
	}
	free(s);
	return same;
}
