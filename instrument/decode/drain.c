/* drain: see drain.h. Empties the pool while the kernel runs.
 *
 * A lane that has filled a chunk, or exits, changes the chunk's mark. A turn reads the marks,
 * copies the chunks whose mark has changed, clears them, and writes their numbers into the ring,
 * from which lanes draw when the pool is used up. record.h has the layout. */
#include "drain_parts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW (DRAIN_PEEK / 4)    /* marks that are read at once */
/* Seconds without a closed chunk while lanes wait: those that hold the chunks wait, too. */
#define STUCK 0.25

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

void drain_begin(struct drain *d)
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

/* ---- while the kernel runs ---- */

void drain_add_to_runs(struct drain *d, uint32_t chunk)
{
	struct drain_run *last = d->run.n ? &d->run.at[d->run.n - 1] : NULL;

	if (last && last->first + last->n == chunk)
		last->n++;
	else
		vec_push(&d->run, ((struct drain_run){ chunk, 1 }));
}

/* Puts closed chunks into d->run, at most one batch, and reads each mark at most once. Returns
 * how many; -1: the pool cannot be accessed. */
static int find_closed(struct drain *d, uint32_t drawn)
{
	uint32_t n = 0, seen = 0;

	d->run.n = 0;
	if (d->cursor >= drawn) /* the number of draws was overwritten */
		d->cursor = 0;
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
			drain_add_to_runs(d, chunk);
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

/* Makes up to `most` entries of the ring, for the draws after the last one that was given: an
 * unused chunk for each, except where the lane did not wait and has written its number there
 * itself. Returns how many; -1: the pool cannot be accessed. */
static int make_entries(struct drain *d, uint64_t at, uint32_t most, uint64_t *entry)
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

/* Gives unused chunks back through the ring. Not if lanes no longer wait: when one lane has gone
 * on without a chunk, all do, so that only records at the end are missing. At most half of the
 * ring ahead of the draws, so that no entry is overwritten before its lane has read it. */
static bool give(struct drain *d, uint32_t drawn)
{
	uint32_t beyond = drawn > d->pool.chunks ? drawn - d->pool.chunks : 0;
	uint64_t ring = RECORD_RING_AT(d->pool.chunks);

	while (!d->stuck && (d->taken < d->unused.n || (int32_t)(d->given - beyond) < 0)
			&& (int32_t)(d->given - beyond) < (int32_t)(RECORD_RING / 2)) {
		uint64_t entry[DRAIN_CHUNKS / 2];
		uint32_t first = (d->given + 1) & (RECORD_RING - 1), left = RECORD_RING - first;
		uint64_t at = ring + 8 * (uint64_t)first;
		int n = make_entries(d, at, left < ARRAY_SIZE(entry) ? left : ARRAY_SIZE(entry),
			entry);

		if (n < 0 || (n && !d->pool.write(d->pool.user, at, entry,
				(uint32_t)n * sizeof *entry)))
			return false;
		if (!n)
			break;
		d->given += (uint32_t)n;
	}
	if (d->taken == d->unused.n)
		d->taken = d->unused.n = 0;
	return true;
}

/* No more chunks can be expected: lanes have waited for too long, or the limit of draws is
 * reached. waiting: lanes wait, and there is no chunk for them. */
static bool is_stuck(struct drain *d, uint32_t drawn, bool waiting)
{
	if (!waiting)
		d->idle = 0;
	else if (!d->idle)
		d->idle = progress_seconds();
	return !d->stuck && (drawn > DRAIN_MOST_DRAWS
		|| (d->idle > 0 && progress_seconds() - d->idle > STUCK));
}

/* Lets all lanes go on without chunks. */
static bool stop_waiting(struct drain *d)
{
	static const uint32_t none;

	d->stuck = true;
	return d->pool.write(d->pool.user, offsetof(struct record_head, wait_cycles), &none,
		sizeof none);
}

/* When lanes no longer wait they still draw: the counter of draws must not overflow. */
static bool limit_draws(const struct drain *d, const struct record_head *head)
{
	static const uint32_t less = DRAIN_MOST_DRAWS / 2;

	return head->wait_cycles || head->next < DRAIN_MOST_DRAWS ||
		d->pool.write(d->pool.user, offsetof(struct record_head, next), &less, sizeof less);
}

/* Copies the chunks of d->run and clears them, so that they can be given back. */
static bool take_out(struct drain *d)
{
	d->idle = 0;
	if (!drain_absorb(d, d->run.at, (uint32_t)d->run.n, false))
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

/* Returns how many chunks were drained; -1: the pool cannot be accessed. */
static int turn(struct drain *d)
{
	const struct record_head *head = d->pool.peek(d->pool.user, 0, sizeof *head);
	uint32_t drawn, there;
	int64_t left;
	int n;

	if (!head || !limit_draws(d, head))
		return -1;
	drawn = head->next - 1;
	d->stuck |= !head->wait_cycles;
	left = (int64_t)d->pool.chunks + d->given - drawn;
	if (left > d->pool.chunks / 4)
		return 0;
	if (!d->begun)
		drain_begin(d);
	there = drawn < d->pool.chunks ? drawn : d->pool.chunks;
	n = find_closed(d, there);
	if (n < 0 || (n && !take_out(d)) || !give(d, drawn)
			|| (is_stuck(d, drawn, !n && left < 0 && !d->unused.n) && !stop_waiting(d)))
		return -1;
	drain_end_ctas(d);
	return n;
}

bool drain_turn(struct drain *d)
{
	const int n = d->dead ? 0 : turn(d);

	d->dead |= n < 0;
	return n > 0;
}

void drain_close(struct drain *d)
{
	if (!d)
		return;
	for (uint32_t k = 0; d->cta && k <= d->nctas; k++)
		drain_discard(d, &d->cta[k]);
	for (size_t k = 0; k < d->block.n; k++)
		free(d->block.at[k]);
	vec_free(&d->block);
	vec_free(&d->run);
	vec_free(&d->unused);
	vec_free(&d->ending);
	vec_free(&d->out);
	free(d->c.word);
	number_set_free(&d->representatives);
	free(d->mark);
	free(d->cta);
	free(d->cluster);
	free(d->signatures);
	free(d->skip);
	free(d->incomplete);
	free(d);
}
