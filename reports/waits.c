/* waits: see waits.h. */
#include "reports/waits.h"

#include "reports/describe.h"

#include <string.h>

bool waits_same_object(const struct finding_waiter *a, const struct finding_waiter *b)
{
	if (strcmp(a->on.kind, b->on.kind))
		return false;
	if (strstr(a->on.kind, "cluster")) /* there is one, of all CTAs */
		return true;
	if (a->on.addr != b->on.addr || a->on.peer != b->on.peer)
		return false;
	/* a named barrier belongs to its CTA, a condition to the place that polls it */
	if (*a->on.kind && strstr(a->on.kind, "mbarrier"))
		return true;
	return a->who.cta == b->who.cta && (*a->on.kind || a->who.site == b->who.site);
}

/* The same place in the program's own code, whatever helper the instruction is in. */
static bool same_place(uint32_t a, uint32_t b)
{
	const struct site_loc *l = site_headline(site_get(a)->loc);
	const struct site_loc *m = site_headline(site_get(b)->loc);

	return a == b || (l && m && l->line == m->line && !strcmp(l->file, m->file));
}

static bool same_wait(const struct finding_waiter *a, const struct finding_waiter *b)
{
	return a->who.cta == b->who.cta && !memcmp(a->who.ctaid, b->who.ctaid, sizeof a->who.ctaid)
		&& waits_same_object(a, b) && !strcmp(a->text, b->text)
		&& same_place(a->who.site, b->who.site);
}

bool waits_in(const struct wait_group *g, const struct finding *f, unsigned i)
{
	return same_wait(&f->waiter[g->first], &f->waiter[i]);
}

static void list_warps(struct wait_group *g, const struct finding *f)
{
	uint64_t warps = 0; /* bits; a CTA has at most 32 warps */

	for (unsigned i = g->first; i < f->nwaiters; i++)
		if (waits_in(g, f, i))
			warps |= 1ull << f->waiter[i].who.warp % 64;
	for (unsigned w = 0; w < 64; w++) {
		const unsigned from = w;

		if (!(warps >> w & 1))
			continue;
		while (w < 63 && warps >> (w + 1) & 1)
			w++;
		text_printf(&g->warps, g->warps.n ? " %u" : "%u", from);
		if (w > from)
			text_printf(&g->warps, "-%u", w);
	}
}

void waits_find(struct wait_groups *w, const struct finding *f)
{
	*w = (struct wait_groups){ 0 };
	for (unsigned i = 0; i < f->nwaiters; i++) {
		size_t k = 0;

		while (k < w->group.n && !waits_in(&w->group.at[k], f, i))
			k++;
		if (k == w->group.n)
			vec_push(&w->group, ((struct wait_group){ .first = i, .n = 1 }));
		else
			w->group.at[k].n++;
	}
	for (size_t k = 0; k < w->group.n; k++)
		list_warps(&w->group.at[k], f);
}

void waits_free(struct wait_groups *w)
{
	for (size_t i = 0; i < w->group.n; i++)
		text_free(&w->group.at[i].warps);
	vec_free(&w->group);
}

void waits_describe(struct text *t, const struct wait_group *g, const struct finding *f)
{
	const uint32_t *block = f->waiter[g->first].who.ctaid;

	text_printf(t, "warp%s %s, block (%u,%u,%u)", plural_s(g->n), g->warps.at, block[0],
		block[1], block[2]);
}
