/* drain: see drain.h. What is drained is kept by CTA, as a digest and, while its cluster
 * may be wanted, as the records themselves. */
#include "drain.h"

#include "../libconsan/crew.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BLOCK_CHUNKS 512u
#define WINDOW (DRAIN_PEEK / 4)
/* Nothing was closed for so long, and lanes wait: they are all that there is. */
#define STUCK 0.25

/* A chunk that was drawn. Its records lie here, or, as long as `number` says so, in the
 * pool; or they are gone. */
struct piece {
	struct piece *next;
	uint64_t clock;
	struct record_digest digest;
	uint32_t number;
	struct record_chunk *here;
};

struct cta {
	struct piece *first;
	uint64_t signature;
	uint32_t left;             /* threads that have not exited */
	uint32_t sweep;            /* ... none: since when */
	bool over;
};

/* gone: another one stands for it; lacks: records of it are missing. */
struct cluster { uint64_t signature; uint32_t left; bool gone, lacks; };

struct drain {
	struct drain_pool pool;
	struct drain_config c;
	uint32_t nctas, nclusters, per, threads;
	bool begun, ended, stuck, dead;
	uint32_t *mark;            /* of each chunk, when it was last given back */
	bool unclear;              /* run could not be cleared: it is here, and may be there */
	uint32_t cursor, sweep;    /* of marks: where it goes on; how often it was through */
	VEC(struct drain_run) run;
	VEC(uint32_t) unused;      /* chunks that may be given back, in this order, */
	size_t taken;              /* but for so many, which were */
	uint32_t given;
	double idle;               /* since when nothing was found; 0: it was */
	struct cta *cta;           /* the last: what says it is of none */
	struct cluster *cluster;
	VEC(uint32_t) ending;      /* CTAs whose threads have exited */
	VEC(struct seen { uint64_t signature; bool used; }) seen; /* a table by signature */
	uint32_t nseen;
	struct record_chunk *free; /* kept chunks' memory, chained by its first word */
	VEC(void *) block;
	uint64_t kept;
	uint32_t late;
	_Alignas(16) char head[RECORD_CHUNK_BYTES];
	VEC(const struct record_chunk *) out;
	uint64_t *signatures;
	uint8_t *skip, *lacks;
	uint64_t drained;
};

struct drain *drain_open(const struct drain_pool *p, const struct drain_config *c)
{
	struct drain *d = base_alloc(sizeof *d);
	const struct launch_info *i = &c->shape;

	d->pool = *p;
	d->c = *c;
	d->nctas = i->grid[0] * i->grid[1] * i->grid[2];
	for (unsigned k = 0; k < 3; k++)
		d->c.shape.cluster[k] = i->cluster[k] ? i->cluster[k] : 1;
	i = &d->c.shape;
	d->per = i->cluster[0] * i->cluster[1] * i->cluster[2];
	d->nclusters = d->nctas / d->per;
	d->threads = i->block[0] * i->block[1] * i->block[2];
	return d;
}

static void begin(struct drain *d)
{
	d->begun = true;
	d->mark = base_alloc(((size_t)d->pool.chunks + 1) * sizeof *d->mark);
	d->cta = base_alloc(((size_t)d->nctas + 1) * sizeof *d->cta);
	d->cluster = base_alloc(((size_t)d->nclusters + 1) * sizeof *d->cluster);
	for (uint32_t k = 0; k < d->nctas; k++)
		d->cta[k].left = d->threads;
	for (uint32_t k = 0; k < d->nclusters; k++)
		d->cluster[k].left = d->per;
}

bool drain_begun(const struct drain *d)
{
	return d && d->begun;
}

/* ---- memory ---- */

/* NULL: as much is kept as may be. */
static struct record_chunk *keep(struct drain *d)
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

static void let_go(struct drain *d, struct record_chunk *c)
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
	const struct piece *x = *(const struct piece *const *)a, *y = *(const struct piece *const *)b;
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

static void drop_pieces(struct drain *d, struct cta *a)
{
	for (struct piece *p = a->first, *next; p; p = next) {
		next = p->next;
		let_go(d, p->here);
		free(p);
	}
	a->first = NULL;
}

/* Has it been seen before? If it speaks, now it has. */
static bool saw(struct drain *d, uint64_t signature, bool speaks)
{
	uint64_t k;

	if (2 * (size_t)d->nseen >= d->seen.n) {
		struct seen *old = d->seen.at;
		size_t n = d->seen.n;

		d->seen.n = d->seen.cap = n ? 2 * n : 256;
		d->seen.at = base_alloc(d->seen.n * sizeof *d->seen.at);
		d->nseen = 0;
		for (size_t i = 0; i < n; i++)
			if (old[i].used)
				saw(d, old[i].signature, true);
		free(old);
	}
	for (k = signature; d->seen.at[k & (d->seen.n - 1)].used; k++)
		if (d->seen.at[k & (d->seen.n - 1)].signature == signature)
			return true;
	if (speaks) {
		d->seen.at[k & (d->seen.n - 1)] = (struct seen){ signature, true };
		d->nseen++;
	}
	return false;
}

/* Its CTAs, by walking over all of them, would take too long: they are near by. */
static void retire(struct drain *d, uint32_t cluster, uint32_t near)
{
	const struct launch_info *i = &d->c.shape;
	uint32_t x = near % i->grid[0], y = near / i->grid[0] % i->grid[1], z = near / i->grid[0] / i->grid[1];

	d->cluster[cluster].gone = true;
	x -= x % i->cluster[0];
	y -= y % i->cluster[1];
	z -= z % i->cluster[2];
	for (uint32_t k = 0; k < d->per; k++)
		drop_pieces(d, &d->cta[x + k % i->cluster[0] + i->grid[0] * (y + k / i->cluster[0] % i->cluster[1]
			+ i->grid[1] * (z + k / i->cluster[0] / i->cluster[1]))]);
}

/* All that it recorded is here. */
static void end_cta(struct drain *d, uint32_t id)
{
	uint32_t rank, of = decode_cluster_of(&d->c.shape, id, &rank);
	struct cluster *c = &d->cluster[of];

	sign(d, id, rank);
	d->cta[id].over = true;
	c->signature += d->cta[id].signature;
	if (!--c->left && (d->c.clean(d->c.user, d->c.key, c->signature) || saw(d, c->signature, !c->lacks)))
		retire(d, of, id);
}

/* Each lane marks its chunk behind the record of its exit: when all marks have been looked
 * at since, there are no more. */
static void end_ctas(struct drain *d)
{
	size_t n = 0;

	for (size_t k = 0; k < d->ending.n; k++)
		if (d->sweep >= d->cta[d->ending.at[k]].sweep + 2)
			end_cta(d, d->ending.at[k]);
		else
			d->ending.at[n++] = d->ending.at[k];
	d->ending.n = n;
}

/* ---- what comes out of the pool ---- */

struct batch {
	const struct drain *d;
	const struct record_chunk *from; /* packed */
	uint32_t n, next;
	struct piece **piece;
	uint32_t *left;
};

static const struct record_chunk *packed(const struct record_chunk *from, uint32_t k)
{
	return (const void *)((const char *)from + (size_t)k * RECORD_CHUNK_BYTES);
}

static void digest_some(void *user)
{
	struct batch *b = user;
	uint32_t k;

	while ((k = __atomic_fetch_add(&b->next, 16, __ATOMIC_RELAXED)) < b->n)
		for (uint32_t end = k + 16 < b->n ? k + 16 : b->n; k < end; k++) {
			const struct record_chunk *c = packed(b->from, k);
			struct piece *p = b->piece[k];

			p->clock = (uint64_t)c->clock_hi << 32 | c->clock_lo;
			if (b->d->c.retire)
				decode_digest(c, b->d->c.word, b->d->c.nwords, &p->digest, &b->left[k]);
			else
				p->digest = (struct record_digest){ c->cta, c->warp_lane & 0xffff, 0, 0 };
			if (p->here)
				memcpy(p->here, c, RECORD_CHUNK_BYTES);
		}
}

static void digest_all(struct batch *b)
{
	struct crew_task task[CREW_MOST];
	unsigned n = b->d->c.jobs, most = 1 + b->n / 64;

	n = n > most ? most : n;
	n = n > CREW_MOST ? CREW_MOST : n;
	for (unsigned k = 1; k < n; k++) {
		task[k] = (struct crew_task){ .work = digest_some, .arg = b };
		if (!crew_give(&task[k]))
			n = k;
	}
	digest_some(b);
	for (unsigned k = 1; k < n; k++)
		crew_wait(&task[k]);
}

/* A lane that drew a chunk and wrote nothing yet; or the chunk was given back. */
static bool is_empty(const struct record_chunk *c)
{
	return !c->clock_lo && !c->clock_hi && !*(const uint32_t *)(c + 1);
}

/* A cluster of which records are missing would look as if it had done wrong. */
static void lacks(struct drain *d, uint32_t cta)
{
	uint32_t rank;

	if (cta < d->nctas)
		d->cluster[decode_cluster_of(&d->c.shape, cta, &rank)].lacks = true;
}

static void take(struct drain *d, struct piece *p, uint32_t left)
{
	struct cta *a = &d->cta[p->digest.cta < d->nctas ? p->digest.cta : d->nctas];

	if (a->over) {
		d->late++;
		lacks(d, p->digest.cta);
		let_go(d, p->here);
		free(p);
		return;
	}
	p->next = a->first;
	a->first = p;
	if (!p->here && !p->number)
		lacks(d, p->digest.cta);
	if (!left)
		return;
	a->left -= left < a->left ? left : a->left;
	if (!a->left && !a->sweep) {
		a->sweep = d->sweep + 1;
		vec_push(&d->ending, p->digest.cta);
	}
}

/* stays: the pool keeps them, so that there is no need to keep them here. */
static bool absorb(struct drain *d, const struct drain_run *run, uint32_t nruns, bool stays)
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
			b.piece[k]->here = stays || is_empty(packed(b.from, k)) ? NULL : keep(d);
		}
	digest_all(&b);
	for (k = 0; k < b.n; k++)
		if (is_empty(packed(b.from, k)))
			free(b.piece[k]);
		else
			take(d, b.piece[k], b.left[k]);
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

/* ---- while the kernel runs ---- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void add_to_runs(struct drain *d, uint32_t chunk)
{
	struct drain_run *last = d->run.n ? &d->run.at[d->run.n - 1] : NULL;

	if (last && last->first + last->n == chunk)
		last->n++;
	else
		vec_push(&d->run, ((struct drain_run){ chunk, 1 }));
}

/* Chunks that are closed, as far as one batch goes, or once round; -1: lost. */
static int find_closed(struct drain *d, uint32_t drawn)
{
	uint32_t n = 0, seen = 0;

	d->run.n = 0;
	while (seen < drawn && n < DRAIN_CHUNKS) {
		uint32_t window = drawn - d->cursor < WINDOW ? drawn - d->cursor : WINDOW, k;
		const uint32_t *mark = d->pool.peek(d->pool.user, RECORD_RING_AT(d->pool.chunks) +
			RECORD_MARKS_AT + 4 * ((uint64_t)d->cursor + 2), 4 * (size_t)window);

		if (!mark)
			return -1;
		for (k = 0; k < window && n < DRAIN_CHUNKS; k++) {
			uint32_t chunk = d->cursor + 1 + k;

			if (mark[k] == d->mark[chunk])
				continue;
			d->mark[chunk] = mark[k];
			add_to_runs(d, chunk);
			n++;
		}
		d->cursor += k;
		seen += k;
		if (d->cursor >= drawn) {
			d->cursor = 0;
			d->sweep++;
		}
	}
	return (int)n;
}

/* Entries for the draws after those that were given, up to so many: a chunk for each, but
 * for those whose lane could not wait and has handed its number back. How many; -1: lost. */
static int fill(struct drain *d, uint64_t at, uint32_t most, uint64_t *entry)
{
	const uint64_t *there = d->pool.peek(d->pool.user, at, most * sizeof *there);
	uint32_t n = 0;

	for (; there && n < most; n++) {
		uint32_t number = d->given + 1 + n;

		if ((uint32_t)there[n] == number)
			entry[n] = there[n];
		else if (d->taken < d->unused.n)
			entry[n] = (uint64_t)d->unused.at[d->taken++] << 32 | number;
		else
			break;
	}
	return there ? (int)n : -1;
}

/* Once somebody has gone on without, so do all: what is missing then is at the end.
 * No further ahead of those who draw than half of the ring, so that nobody finds his
 * place there taken by another one. */
static bool give(struct drain *d, uint32_t drawn)
{
	uint32_t beyond = drawn > d->pool.chunks ? drawn - d->pool.chunks : 0;
	uint64_t ring = RECORD_RING_AT(d->pool.chunks);

	while (!d->stuck && (d->taken < d->unused.n || (int32_t)(d->given - beyond) < 0)
			&& (int32_t)(d->given - beyond) < (int32_t)(RECORD_RING / 2)) {
		uint64_t entry[DRAIN_CHUNKS / 2];
		uint32_t first = (d->given + 1) & (RECORD_RING - 1), left = RECORD_RING - first;
		int n = fill(d, ring + 8 * (uint64_t)first, left < ARRAY_SIZE(entry) ? left : ARRAY_SIZE(entry), entry);

		if (n < 0 || (n && !d->pool.write(d->pool.user, ring + 8 * (uint64_t)first, entry, (uint32_t)n * sizeof *entry)))
			return false;
		if (!n)
			break;
		d->given += (uint32_t)n;
	}
	if (d->taken == d->unused.n)
		d->taken = d->unused.n = 0;
	return true;
}

/* All lanes that are left wait, and nobody closes a chunk any more; or it is enough. */
static bool hopeless(struct drain *d, uint32_t drawn, bool wanted)
{
	if (!wanted)
		d->idle = 0;
	else if (!d->idle)
		d->idle = now();
	return !d->stuck && (drawn > DRAIN_MOST_DRAWS || (d->idle > 0 && now() - d->idle > STUCK));
}

/* All lanes go on without. */
static bool give_up(struct drain *d)
{
	static const uint32_t none;

	d->stuck = true;
	return d->pool.write(d->pool.user, offsetof(struct record_head, patience), &none, sizeof none);
}

/* Where nobody waits any more, what is drawn in vain must not come round. */
static bool count_on(const struct drain *d, const struct record_head *head)
{
	static const uint32_t less = DRAIN_MOST_DRAWS / 2;

	return head->patience || head->next < DRAIN_MOST_DRAWS ||
		d->pool.write(d->pool.user, offsetof(struct record_head, next), &less, sizeof less);
}

/* The run comes here, and its chunks may be given back. */
static bool take_out(struct drain *d)
{
	d->idle = 0;
	if (!absorb(d, d->run.at, (uint32_t)d->run.n, false))
		return false;
	if (!d->pool.clear(d->pool.user, d->run.at, (uint32_t)d->run.n)) {
		d->unclear = true;
		return false;
	}
	for (size_t k = 0; k < d->run.n; k++) {
		for (uint32_t i = 0; i < d->run.at[k].n; i++)
			vec_push(&d->unused, d->run.at[k].first + i);
		d->drained += d->run.at[k].n;
	}
	return true;
}

static bool turn(struct drain *d)
{
	const struct record_head *head = d->pool.peek(d->pool.user, 0, sizeof *head);
	uint32_t drawn, there;
	int64_t left;
	int n;

	if (!head) {
		d->dead = true;
		return false;
	}
	drawn = head->next - 1;
	d->stuck |= !head->patience;
	if (!count_on(d, head)) {
		d->dead = true;
		return false;
	}
	left = (int64_t)d->pool.chunks + d->given - drawn;
	if (left > d->pool.chunks / 4)
		return false;
	if (!d->begun)
		begin(d);
	there = drawn < d->pool.chunks ? drawn : d->pool.chunks;
	n = find_closed(d, there);
	if (n > 0)
		n = take_out(d) ? n : -1;
	if (n < 0 || !give(d, drawn) || (hopeless(d, drawn, !n && left < 0 && !d->unused.n) && !give_up(d))) {
		d->dead = true;
		return false;
	}
	end_ctas(d);
	return n > 0;
}

bool drain_turn(struct drain *d)
{
	return !d->dead && turn(d);
}

/* ---- at the end ---- */

/* Chunks that are here already, although they could not be cleared: no marks are looked at
 * any more. */
static void note_unclear(struct drain *d)
{
	memset(d->mark, 0, ((size_t)d->pool.chunks + 1) * sizeof *d->mark);
	for (size_t k = 0; d->unclear && k < d->run.n; k++)
		for (uint32_t i = 0; i < d->run.at[k].n; i++)
			d->mark[d->run.at[k].first + i] = 1;
}

static uint32_t head_draws(const struct drain *d)
{
	return ((const struct record_head *)(const void *)d->head)->next - 1;
}

/* Of a kernel that came to its end, only digests: most of it nobody wants. */
static bool take_rest(struct drain *d)
{
	uint32_t drawn = head_draws(d), n;

	drawn = drawn < d->pool.chunks ? drawn : d->pool.chunks;
	note_unclear(d);
	for (uint32_t k = 1; k <= drawn;) {
		d->run.n = 0;
		for (n = 0; k <= drawn && n < DRAIN_CHUNKS; k++)
			if (!d->mark[k]) {
				add_to_runs(d, k);
				n++;
			}
		if (n && !absorb(d, d->run.at, (uint32_t)d->run.n, d->ended && d->c.retire))
			return false;
	}
	return true;
}

/* Those whose records are still in the pool come here. */
static bool fetch_wanted(struct drain *d)
{
	VEC(struct piece *) all = { 0 };
	bool good = true;

	for (uint32_t k = 0; k <= d->nctas; k++)
		for (struct piece *p = d->cta[k].first; p; p = p->next)
			if (p->number)
				vec_push(&all, p);
	for (size_t k = 0, n; good && k < all.n; k += n) {
		const struct record_chunk *from;

		d->run.n = 0;
		for (n = 0; n < DRAIN_CHUNKS && k + n < all.n; n++)
			vec_push(&d->run, ((struct drain_run){ all.at[k + n]->number, 1 }));
		from = d->pool.fetch(d->pool.user, d->run.at, (uint32_t)n);
		good = from;
		for (size_t i = 0; good && i < n; i++) {
			struct piece *p = all.at[k + i];

			p->number = 0;
			p->here = keep(d);
			if (p->here)
				memcpy(p->here, packed(from, (uint32_t)i), RECORD_CHUNK_BYTES);
		}
	}
	vec_free(&all);
	return good;
}

static void end_all(struct drain *d)
{
	d->ending.n = 0;
	for (uint32_t k = 0; k < d->nctas; k++)
		if (!d->cta[k].over)
			end_cta(d, k);
}

struct voice { uint64_t signature; uint32_t id; uint8_t mute; bool speaks; };

static int by_voice(const void *a, const void *b)
{
	const struct voice *x = a, *y = b;

	if (x->signature != y->signature)
		return x->signature < y->signature ? -1 : 1;
	return x->mute != y->mute ? x->mute - y->mute : (x->id > y->id) - (x->id < y->id);
}

void drain_speakers(const struct drain *d, uint8_t *skip)
{
	struct voice *v = base_alloc(((size_t)d->nclusters + 1) * sizeof *v);

	for (uint32_t k = 0; k < d->nclusters; k++) {
		const struct cluster *c = &d->cluster[k];

		v[k] = (struct voice){ .signature = c->signature, .id = k, .mute = c->gone ? 2 : c->lacks };
	}
	qsort(v, d->nclusters, sizeof *v, by_voice);
	for (uint32_t k = 0, first = 0; k < d->nclusters; k++) {
		first = v[k].signature == v[first].signature ? first : k;
		if (!skip[v[k].id] && v[first].mute < 2)
			v[first].speaks = true;
		skip[v[k].id] = 1;
	}
	for (uint32_t k = 0; k < d->nclusters; k++)
		if (v[k].speaks)
			skip[v[k].id] = 0;
	free(v);
}

static void gather(struct drain *d, struct drained *r)
{
	d->signatures = base_alloc(((size_t)d->nctas + 1) * sizeof *d->signatures);
	d->skip = base_alloc((size_t)d->nclusters + 1);
	d->lacks = base_alloc((size_t)d->nclusters + 1);
	for (uint32_t k = 0; k <= d->nctas; k++) {
		d->signatures[k] = d->cta[k].signature;
		for (struct piece *c = d->cta[k].first; c; c = c->next)
			if (c->here) {
				vec_push(&d->out, c->here);
			} else {
				lacks(d, k);
				r->lost++;
			}
	}
	for (uint32_t k = 0; k < d->nclusters; k++) {
		d->skip[k] = d->cluster[k].gone;
		d->lacks[k] = d->cluster[k].lacks;
		r->retired += d->cluster[k].gone;
	}
}

bool drain_end(struct drain *d, const struct drain_pool *p, bool ended, struct drained *r)
{
	const struct record_head *head;

	if (!d->begun)
		begin(d);
	d->pool = *p;
	d->ended = ended;
	head = d->pool.peek(d->pool.user, 0, RECORD_CHUNK_BYTES);
	if (!head)
		return false;
	memcpy(d->head, head, RECORD_CHUNK_BYTES);
	if (!take_rest(d))
		return false;
	if (ended && d->c.retire)
		end_all(d);
	if (!fetch_wanted(d))
		return false;
	*r = (struct drained){ .head = (const void *)d->head, .drained = d->drained, .lost = d->late };
	r->waited = !ended && !d->stuck && head_draws(d) > (uint64_t)d->pool.chunks + d->given;
	gather(d, r);
	r->chunk = d->out.at;
	r->n = (uint32_t)d->out.n;
	r->skip = d->skip;
	r->lacks = r->lost ? d->lacks : NULL;
	r->cta = ended && d->c.retire ? d->signatures : NULL;
	return true;
}

void drain_close(struct drain *d)
{
	if (!d)
		return;
	for (uint32_t k = 0; d->cta && k <= d->nctas; k++)
		drop_pieces(d, &d->cta[k]);
	for (size_t k = 0; k < d->block.n; k++)
		free(d->block.at[k]);
	vec_free(&d->block);
	vec_free(&d->run);
	vec_free(&d->unused);
	vec_free(&d->ending);
	vec_free(&d->out);
	free(d->c.word);
	free(d->seen.at);
	free(d->mark);
	free(d->cta);
	free(d->cluster);
	free(d->signatures);
	free(d->skip);
	free(d->lacks);
	free(d);
}
