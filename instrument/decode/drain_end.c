/* drain_end: takes what is left in the pool after the kernel, or while it hangs, and chooses
 * representatives among identical clusters. */
#include "drain_parts.h"

#include <stdlib.h>
#include <string.h>

/* Marks in d->mark the chunks that were copied but could not be cleared; the marks that it held
 * are not needed any more. */
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

/* Takes the chunks that are still in the pool. If the kernel came to its end only their digests are
 * taken first, as most of their clusters will be skipped. */
static bool take_rest(struct drain *d)
{
	uint32_t drawn = head_draws(d), n;

	drawn = drawn < d->pool.chunks ? drawn : d->pool.chunks;
	note_unclear(d);
	for (uint32_t k = 1; k <= drawn;) {
		d->run.n = 0;
		for (n = 0; k <= drawn && n < DRAIN_CHUNKS; k++)
			if (!d->mark[k]) {
				drain_add_to_runs(d, k);
				n++;
			}
		if (n && !drain_absorb(d, d->run.at, (uint32_t)d->run.n, d->ended && d->c.retire))
			return false;
	}
	return true;
}

/* Copies the chunks that are still in the pool, and wanted. */
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
			p->here = drain_keep(d);
			if (p->here)
				memcpy(p->here, drain_packed(from, (uint32_t)i),
					RECORD_CHUNK_BYTES);
		}
	}
	vec_free(&all);
	return good;
}

static void end_all(struct drain *d)
{
	d->ending.n = 0;
	for (uint32_t k = 0; k < d->nctas; k++)
		if (!d->cta[k].ended)
			drain_end_cta(d, k);
}

/* flaw: 1: it is incomplete; 2: its records were discarded. */
struct candidate { uint64_t signature; uint32_t id; uint8_t flaw; bool chosen; };

static int by_signature(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->signature != y->signature)
		return x->signature < y->signature ? -1 : 1;
	return x->flaw != y->flaw ? x->flaw - y->flaw : (x->id > y->id) - (x->id < y->id);
}

void drain_choose_representatives(const struct drain *d, uint8_t *skip)
{
	struct candidate *v = base_alloc(((size_t)d->nclusters + 1) * sizeof *v);

	for (uint32_t k = 0; k < d->nclusters; k++) {
		const struct cluster *c = &d->cluster[k];

		v[k] = (struct candidate){ .signature = c->signature, .id = k,
			.flaw = c->retired ? 2 : c->incomplete };
	}
	qsort(v, d->nclusters, sizeof *v, by_signature);
	for (uint32_t k = 0, first = 0; k < d->nclusters; k++) {
		first = v[k].signature == v[first].signature ? first : k;
		if (!skip[v[k].id] && v[first].flaw < 2)
			v[first].chosen = true;
		skip[v[k].id] = 1;
	}
	for (uint32_t k = 0; k < d->nclusters; k++)
		if (v[k].chosen)
			skip[v[k].id] = 0;
	free(v);
}

static void collect(struct drain *d, struct drained *r)
{
	d->signatures = base_alloc(((size_t)d->nctas + 1) * sizeof *d->signatures);
	d->skip = base_alloc((size_t)d->nclusters + 1);
	d->incomplete = base_alloc((size_t)d->nclusters + 1);
	for (uint32_t k = 0; k <= d->nctas; k++) {
		d->signatures[k] = d->cta[k].signature;
		for (struct piece *c = d->cta[k].first; c; c = c->next)
			if (c->here) {
				vec_push(&d->out, c->here);
			} else {
				drain_set_incomplete(d, k);
				r->lost++;
			}
	}
	for (uint32_t k = 0; k < d->nclusters; k++) {
		d->skip[k] = d->cluster[k].retired;
		d->incomplete[k] = d->cluster[k].incomplete;
		r->retired += d->cluster[k].retired;
	}
}

bool drain_end(struct drain *d, const struct drain_pool *p, bool ended, struct drained *r)
{
	const struct record_head *head;

	if (!d->begun)
		drain_begin(d);
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
	*r = (struct drained){ .head = (const void *)d->head, .drained = d->drained,
		.lost = d->late };
	r->waited = !ended && !d->stuck && head_draws(d) > (uint64_t)d->pool.chunks + d->given;
	collect(d, r);
	r->chunk = d->out.at;
	r->n = (uint32_t)d->out.n;
	r->skip = d->skip;
	r->incomplete = r->lost ? d->incomplete : NULL;
	r->cta = ended && d->c.retire ? d->signatures : NULL;
	return true;
}
