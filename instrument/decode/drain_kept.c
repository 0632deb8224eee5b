/* drain_kept: keeps the chunks that were drained, by CTA: their digests and, until their cluster
 * turns out to be identical to another one, the records themselves. */
#include "drain_parts.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_CHUNKS 512u

/* ---- memory ---- */

struct record_chunk *drain_keep(struct drain *d)
{
	struct record_chunk *c;

	if (!d->free && d->kept < d->c.most) {
		char *block = malloc((size_t)BLOCK_CHUNKS * RECORD_CHUNK_BYTES);

		if (!block)
			return NULL;
		vec_push(&d->block, block);
		for (uint32_t k = 0; k < BLOCK_CHUNKS; k++, block += RECORD_CHUNK_BYTES) {
			*(void **)(void *)block = d->free;
			d->free = (void *)block;
		}
	}
	if (!d->free || d->kept >= d->c.most)
		return NULL;
	c = d->free;
	d->free = *(void **)(void *)c;
	d->kept++;
	return c;
}

static void release(struct drain *d, struct record_chunk *c)
{
	if (!c)
		return;
	*(void **)(void *)c = d->free;
	d->free = c;
	d->kept--;
}

/* ---- CTAs ---- */

static int by_lane(const void *a, const void *b)
{
	const struct piece *x = *(const struct piece *const *)a;
	const struct piece *y = *(const struct piece *const *)b;
	uint32_t l = x->digest.warp_lane_count & 0xffff, m = y->digest.warp_lane_count & 0xffff;

	return l != m ? (l < m ? -1 : 1) : (x->clock > y->clock) - (x->clock < y->clock);
}

static void sign(struct drain *d, uint32_t id, uint32_t rank)
{
	struct cta *a = &d->cta[id];
	VEC(const struct piece *) all = { 0 };
	struct record_digest *digest;

	for (const struct piece *p = a->first; p; p = p->next)
		vec_push(&all, p);
	if (all.n)
		qsort(all.at, all.n, sizeof *all.at, by_lane);
	digest = base_alloc((all.n + 1) * sizeof *digest);
	for (size_t k = 0; k < all.n; k++)
		digest[k] = all.at[k]->digest;
	a->signature = decode_sign_one(digest, (uint32_t)all.n, rank);
	free(digest);
	vec_free(&all);
}

void drain_discard(struct drain *d, struct cta *a)
{
	for (struct piece *p = a->first, *next; p; p = next) {
		next = p->next;
		release(d, p->here);
		free(p);
	}
	a->first = NULL;
}

/* Is there a cluster that is identical to this one and can be its representative? If not, this one
 * becomes it, unless it is incomplete. */
static bool has_representative(struct drain *d, const struct cluster *c)
{
	const uint64_t number = c->signature | 1; /* not 0 */

	if (number_set_has(&d->representatives, number))
		return true;
	if (!c->incomplete)
		number_set_add(&d->representatives, number);
	return false;
}

/* Discards the records of a cluster, one of whose CTAs is `cta`. */
static void retire(struct drain *d, uint32_t cluster, uint32_t cta)
{
	const struct launch_info *i = &d->c.shape;
	const uint32_t *grid = i->grid, *size = i->cluster;
	uint32_t x = cta % grid[0], y = cta / grid[0] % grid[1], z = cta / grid[0] / grid[1];

	d->cluster[cluster].retired = true;
	x -= x % size[0];
	y -= y % size[1];
	z -= z % size[2];
	for (uint32_t k = 0; k < d->per; k++)
		drain_discard(d, &d->cta[x + k % size[0] + grid[0] * (y + k / size[0] % size[1]
			+ grid[1] * (z + k / size[0] / size[1]))]);
}

void drain_end_cta(struct drain *d, uint32_t id)
{
	uint32_t rank, of = decode_cluster_of(&d->c.shape, id, &rank);
	struct cluster *c = &d->cluster[of];

	sign(d, id, rank);
	d->cta[id].ended = true;
	c->signature += d->cta[id].signature;
	if (--c->left)
		return;
	if (d->c.clean(d->c.user, d->c.key, c->signature) || has_representative(d, c))
		retire(d, of, id);
}

/* A lane changes its chunk's mark after it has recorded its exit. A CTA whose threads have all
 * recorded theirs has no more chunks once all marks were read twice since then. */
void drain_end_ctas(struct drain *d)
{
	size_t n = 0;

	for (size_t k = 0; k < d->ending.n; k++)
		if (d->sweep >= d->cta[d->ending.at[k]].sweep + 2)
			drain_end_cta(d, d->ending.at[k]);
		else
			d->ending.at[n++] = d->ending.at[k];
	d->ending.n = n;
}

/* ---- what comes out of the pool ---- */

struct batch {
	const struct drain *d;
	const struct record_chunk *from; /* drain_packed() */
	uint32_t n, next;          /* chunks; the next one to digest */
	struct piece **piece;      /* of each */
	uint32_t *left;            /* of each, how many lanes exit in it */
};

/* One thread's share: 16 chunks at a time. */
static void digest_some(void *user)
{
	struct batch *b = user;
	const struct drain_config *config = &b->d->c;
	uint32_t k;

	while ((k = __atomic_fetch_add(&b->next, 16, __ATOMIC_RELAXED)) < b->n)
		for (uint32_t end = k + 16 < b->n ? k + 16 : b->n; k < end; k++) {
			const struct record_chunk *c = drain_packed(b->from, k);
			struct piece *p = b->piece[k];

			p->clock = (uint64_t)c->clock_hi << 32 | c->clock_lo;
			p->digest = (struct record_digest){ c->cta, c->warp_lane & 0xffff, 0, 0 };
			if (config->retire)
				decode_digest(c, config->word, config->nwords, &p->digest,
					&b->left[k]);
			if (p->here)
				memcpy(p->here, c, RECORD_CHUNK_BYTES);
		}
}

static void digest_all(struct batch *b)
{
	const unsigned n = b->d->c.jobs, most = 1 + b->n / 64;

	pool_run(digest_some, b, n < most ? n : most);
}

/* Its lane has written nothing yet, or it was drained and cleared. */
static bool is_empty(const struct record_chunk *c)
{
	return !c->clock_lo && !c->clock_hi && !*(const uint32_t *)(c + 1);
}

void drain_set_incomplete(struct drain *d, uint32_t cta)
{
	uint32_t rank;

	if (cta < d->nctas)
		d->cluster[decode_cluster_of(&d->c.shape, cta, &rank)].incomplete = true;
}

/* left: lanes that exit in it */
static void add_piece(struct drain *d, struct piece *p, uint32_t left)
{
	struct cta *a = &d->cta[p->digest.cta < d->nctas ? p->digest.cta : d->nctas];

	if (a->ended) {
		d->late++;
		drain_set_incomplete(d, p->digest.cta);
		release(d, p->here);
		free(p);
		return;
	}
	p->next = a->first;
	a->first = p;
	if (!p->here && !p->number)
		drain_set_incomplete(d, p->digest.cta);
	if (!left || a == &d->cta[d->nctas])
		return;
	a->left -= left < a->left ? left : a->left;
	if (!a->left && !a->sweep) {
		a->sweep = d->sweep + 1;
		vec_push(&d->ending, p->digest.cta);
	}
}

bool drain_absorb(struct drain *d, const struct drain_run *run, uint32_t nruns, bool stays)
{
	struct batch b = { .d = d };
	uint32_t k = 0;

	for (uint32_t r = 0; r < nruns; r++)
		b.n += run[r].n;
	b.from = d->pool.fetch(d->pool.user, run, nruns);
	if (!b.from)
		return false;
	b.piece = base_alloc((b.n + 1) * sizeof *b.piece);
	b.left = base_alloc((b.n + 1) * sizeof *b.left);
	for (uint32_t r = 0; r < nruns; r++)
		for (uint32_t i = 0; i < run[r].n; i++, k++) {
			b.piece[k] = base_alloc(sizeof *b.piece[k]);
			b.piece[k]->number = stays ? run[r].first + i : 0;
			if (!stays && !is_empty(drain_packed(b.from, k)))
				b.piece[k]->here = drain_keep(d);
		}
	digest_all(&b);
	for (k = 0; k < b.n; k++)
		if (is_empty(drain_packed(b.from, k)))
			free(b.piece[k]);
		else
			add_piece(d, b.piece[k], b.left[k]);
	free(b.piece);
	free(b.left);
	return true;
}

void drain_pack(char *to, const char *pool, const struct drain_run *run, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		const size_t bytes = (size_t)run[k].n * RECORD_CHUNK_BYTES;

		memcpy(to, pool + (size_t)run[k].first * RECORD_CHUNK_BYTES, bytes);
		to += bytes;
	}
}
