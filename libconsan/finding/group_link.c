/* group_link: what findings have in common, as keys. */
#include "group_internal.h"

#include "libconsan/event/event.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FRAMES = 12 }; /* the innermost ones of a longer chain are left out */

static uint64_t mix(uint64_t hash, uint64_t n)
{
	hash = (hash ^ n) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static uint64_t mix_text(uint64_t hash, const char *s)
{
	for (; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 0x100000001b3u;
	return mix(hash, 0);
}

static void put(struct group_keys *to, enum link link, uint64_t key, uint32_t item)
{
	vec_push(&to->link[link], ((struct group_key){ key, item }));
}

/* Instructions of one source place are one: unrolling and inlining copy them. Locations are
 * interned. */
static uint64_t place_of(uint32_t id)
{
	const struct site *s = site_get(id);

	return s->loc ? (uintptr_t)s->loc : id;
}

static void put_places(struct group_keys *to, uint64_t kernel, const struct finding *f,
	uint32_t item)
{
	uint64_t a = 0, b = 0;

	for (unsigned i = 0; i < f->nsides; i++)
		if (f->side[i].site)
			put(to, LINK_PLACE, mix(kernel, place_of(f->side[i].site)), item);
	if (f->nsides < 2 || !f->side[0].site || !f->side[1].site)
		return;
	a = place_of(f->side[0].site);
	b = place_of(f->side[1].site);
	put(to, LINK_PAIR, mix(mix(kernel, a < b ? a : b), a < b ? b : a), item);
}

/* What operations of the host API and kernels did, in any kernel: where, and which thread issued it. */
static void put_operations(struct group_keys *to, const struct finding *f, uint32_t item)
{
	for (unsigned i = 0; i < f->nsides; i++) {
		if (f->side[i].site)
			put(to, LINK_OPERATION, place_of(f->side[i].site), item);
		if (f->side[i].call && f->side[i].call != f->side[i].site)
			put(to, LINK_OPERATION, place_of(f->side[i].call), item);
	}
}

/* A barrier of one address has one role in all CTAs. */
static void put_barrier(struct group_keys *to, uint64_t kernel, const struct finding_barrier *b,
	uint32_t item)
{
	if (!strcmp(b->kind, "mbarrier") || !strcmp(b->kind, "named barrier"))
		put(to, LINK_BARRIER, mix(mix_text(kernel, b->kind), b->addr), item);
}

static uint64_t mix_edit(uint64_t hash, const struct finding_edit *e)
{
	hash = mix(mix(hash, e->kind), place_of(e->site));
	return mix_text(mix(hash, site_get(e->site)->ptx_line), e->ptx);
}

/* An edit that removes the finding was seen to do so. */
static void put_edit(struct group_keys *to, uint64_t kernel, const struct finding *f, uint32_t item)
{
	if (f->edit.verified == VERIFIED_CLEAN || f->edit.verified == VERIFIED_PART)
		put(to, LINK_EDIT, mix_edit(mix_edit(kernel, &f->edit), &f->also), item);
}

/* ---- twins ---- */

static unsigned frames_of(uint32_t id, const struct site_loc *frame[MAX_FRAMES])
{
	unsigned n = 0, k = 0;

	for (const struct site_loc *l = site_get(id)->loc; l; l = l->inlined_at)
		n++;
	for (const struct site_loc *l = site_get(id)->loc; l; l = l->inlined_at)
		if (n-- <= MAX_FRAMES)
			frame[k++] = l;
	return k;
}

/* All frames but one. */
static uint64_t mix_frames(uint64_t hash, const struct site_loc *const *frame, unsigned n,
	unsigned without)
{
	for (unsigned i = 0; i < n; i++)
		if (i != without)
			hash = mix(mix_text(hash, frame[i]->file), frame[i]->line);
	return mix(hash, n);
}

static void put_twins(struct group_keys *to, uint64_t kernel, const struct finding *f,
	uint32_t item)
{
	const struct site_loc *frame[FINDING_SIDES][MAX_FRAMES];
	unsigned n[FINDING_SIDES] = { 0 };

	for (unsigned i = 0; i < f->nsides; i++) {
		n[i] = frames_of(f->side[i].site, frame[i]);
		if (n[i] < 2 && f->side[i].site)
			return; /* not inlined */
	}
	if (!n[0] && !n[1])
		return;
	/* the innermost frame is the instruction itself, the others are calls */
	for (unsigned a = n[0] > 0; a < n[0] + !n[0]; a++)
		for (unsigned b = n[1] > 0; b < n[1] + !n[1]; b++)
			put(to, LINK_TWIN, mix_frames(mix_frames(mix(kernel, f->rule), frame[0], n[0], a),
				frame[1], n[1], b), item);
}

/* ---- spans ---- */

/* The part of the program from the earlier to the later access, in which a synchronization would
 * order them. `around`: the later one comes first in the program, so that the earlier one was made
 * in another turn of a loop; first and last are then those of the loop that are known. */
struct span {
	uint64_t kernel;
	unsigned domain;
	bool around;
	uint32_t first, last;    /* sites */
	uint32_t item;
};

/* In the order of the program text. Frames are compared from the kernel inwards, so that this is
 * the order of execution in one turn of all loops, whatever the compiler copied or moved. */
static int compare_lines(uint32_t a, uint32_t b, bool *same)
{
	const struct site_loc *x[MAX_FRAMES], *y[MAX_FRAMES];
	unsigned n = frames_of(a, x), k = frames_of(b, y);

	*same = a == b;
	while (n && k && !strcmp(x[n - 1]->file, y[k - 1]->file)) {
		n--;
		k--;
		if (x[n]->line != y[k]->line)
			return x[n]->line < y[k]->line ? -1 : 1;
		*same |= !n && !k;
	}
	return 0;
}

static int compare_sites(uint32_t a, uint32_t b)
{
	const uint32_t line_a = site_get(a)->ptx_line, line_b = site_get(b)->ptx_line;
	bool same;
	const int d = compare_lines(a, b, &same);

	return d ? d : (line_a > line_b) - (line_a < line_b);
}

static bool same_lines(uint32_t a, uint32_t b)
{
	bool same;

	compare_lines(a, b, &same);
	return same;
}

static int by_end(const void *p, const void *q)
{
	const struct span *a = p, *b = q;

	if (a->kernel != b->kernel)
		return a->kernel < b->kernel ? -1 : 1;
	if (a->domain != b->domain)
		return a->domain < b->domain ? -1 : 1;
	if (a->around != b->around)
		return a->around ? 1 : -1;
	return a->around ? compare_sites(a->first, b->first) : compare_sites(a->last, b->last);
}

static bool span_of(const struct group_item *it, struct span *s)
{
	const struct finding *f = it->f;
	const uint32_t later = f->side[0].site, earlier = f->side[f->nsides > 1].site;

	if (!it->span || !f->nsides || !later || !earlier)
		return false;
	if (strcmp(site_get(later)->kernel, site_get(earlier)->kernel))
		return false; /* of two functions that are not inlined */
	s->around = f->nsides > 1 && compare_sites(later, earlier) <= 0;
	s->first = s->around ? later : earlier;
	s->last = s->around ? earlier : later;
	if (it->family == FAMILY_named) { /* the barrier itself */
		s->around = false;
		s->first = s->last = later;
	}
	return true;
}

/* The places of one kernel and domain at which a synchronization may be missing, ascending:
 * directly before end[i]; or, behind the straight ones, somewhere around the loop of which the last
 * known site is end[i]. */
struct places {
	VEC(uint32_t) end;
	size_t straight;
};

/* The first straight place that is behind a site, or p->straight. */
static size_t place_behind(const struct places *p, uint32_t site)
{
	size_t low = 0, high = p->straight;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (compare_sites(site, p->end.at[middle]) < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The straight place directly before the line of a site, or p->straight. */
static size_t place_at(const struct places *p, uint32_t site)
{
	const size_t behind = place_behind(p, site);

	for (size_t i = behind ? behind - 1 : 0; i <= behind && i < p->straight; i++)
		if (same_lines(site, p->end.at[i]))
			return i;
	return p->straight;
}

/* The first place that is in the span, or a new one. Spans come in the order of their ends: so the
 * places are the fewest that reach all spans. */
static size_t place_in(struct places *p, const struct span *s)
{
	const size_t i = s->around ? place_at(p, s->first) : place_behind(p, s->first);
	uint32_t *end = p->end.n > p->straight ? &p->end.at[p->end.n - 1] : NULL;

	if (i < p->straight)
		return i;
	if (end && compare_sites(s->first, *end) <= 0) {
		if (compare_sites(s->last, *end) > 0)
			*end = s->last;
		return p->end.n - 1;
	}
	vec_push(&p->end, s->last);
	p->straight += !s->around;
	return p->end.n - 1;
}

/* The fewest places at which synchronizations can order everything: each span has one of them, and
 * the spans that share one may have one cause. Those around a loop share a place if they overlap,
 * or begin where a synchronization is missing anyway. */
static void put_spans(struct group_keys *to, const struct group_item *item, size_t n)
{
	struct span *s = base_alloc((n + 1) * sizeof *s);
	struct places p = { 0 };
	uint64_t base = 0;
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (!span_of(&item[i], &s[k]))
			continue;
		s[k].kernel = mix_text(0, item[i].f->kernel);
		s[k].domain = item[i].span;
		s[k++].item = (uint32_t)i;
	}
	if (k)
		qsort(s, k, sizeof *s, by_end);
	for (size_t i = 0; i < k; i++) {
		if (i && (s[i].kernel != s[i - 1].kernel || s[i].domain != s[i - 1].domain)) {
			base += p.end.n;
			p.end.n = p.straight = 0;
		}
		put(to, LINK_SPAN, base + place_in(&p, &s[i]), s[i].item);
	}
	vec_free(&p.end);
	free(s);
}

/* ---- all keys ---- */

static int by_key(const void *p, const void *q)
{
	const struct group_key *a = p, *b = q;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return (a->item > b->item) - (a->item < b->item);
}

void group_make_keys(struct group_keys *to, const struct group_item *item, size_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct finding *f = item[i].f;
		const uint64_t kernel = mix_text(0, f->kernel);

		put_places(to, kernel, f, i);
		if (item[i].family == FAMILY_operations)
			put_operations(to, f, i);
		put_barrier(to, kernel, &f->barrier, i);
		for (unsigned k = 0; k < f->nwaiters; k++)
			put_barrier(to, kernel, &f->waiter[k].on, i);
		put_twins(to, kernel, f, i);
		put_edit(to, kernel, f, i);
		put(to, LINK_KERNEL, kernel, i);
	}
	put_spans(to, item, n);
	for (unsigned l = 0; l < KEY_LINKS; l++)
		if (to->link[l].n)
			qsort(to->link[l].at, to->link[l].n, sizeof *to->link[l].at, by_key);
}
