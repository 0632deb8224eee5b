/* wait_graph: drawing of the wait-for graph of a hang: warps on the left, the objects that
 * they wait on on the right, and dashed arrows from an object to warps that arrived on it. */
#include "reports/html/html.h"

#include <stdlib.h>
#include <string.h>

#define GROUPS 24u
#define ROW 54
#define BOX 42
#define LEFT_WIDTH 460
#define RIGHT_AT 620
#define RIGHT_WIDTH 460
#define CHARS 72u        /* that fit into a line of a box */

struct group {               /* warps that wait at the same place on the same object */
	unsigned first, n;
	unsigned object;
	struct text warps;
};

struct graph {
	const struct finding *f;
	struct group group[GROUPS];
	unsigned ngroups;
	unsigned object[GROUPS], nobjects; /* the first waiter on each object */
	unsigned hidden;           /* waiters that are not drawn */
	bool peers;                /* the objects are in several CTAs */
};

static bool same_object(const struct finding_waiter *a, const struct finding_waiter *b)
{
	return a->on.addr == b->on.addr && a->on.peer == b->on.peer
		&& !strcmp(a->on.kind, b->on.kind);
}

static bool same_wait(const struct finding_waiter *a, const struct finding_waiter *b)
{
	return a->who.site == b->who.site && a->who.cta == b->who.cta && same_object(a, b)
		&& !strcmp(a->text, b->text)
		&& !memcmp(a->who.ctaid, b->who.ctaid, sizeof a->who.ctaid);
}

static unsigned object_of(struct graph *g, unsigned waiter)
{
	unsigned i = 0;

	while (i < g->nobjects && !same_object(&g->f->waiter[g->object[i]], &g->f->waiter[waiter]))
		i++;
	if (i == g->nobjects)
		g->object[g->nobjects++] = waiter;
	return i;
}

static void add_waiter(struct graph *g, unsigned w)
{
	const struct finding_waiter *x = &g->f->waiter[w];
	struct group *at = NULL;

	for (unsigned i = 0; i < g->ngroups && !at; i++)
		if (same_wait(&g->f->waiter[g->group[i].first], x))
			at = &g->group[i];
	if (!at && g->ngroups == GROUPS) {
		g->hidden++;
		return;
	}
	if (!at) {
		at = &g->group[g->ngroups++];
		at->first = w;
		at->object = object_of(g, w);
	}
	if (at->warps.n < CHARS)
		text_printf(&at->warps, at->n ? " %u" : "%u", x->who.warp);
	at->n++;
}

/* ---- drawing ---- */

static void box(struct markup *m, const char *class, int x, int y, int width, const char *first,
	const char *second)
{
	const char *const line[2] = { first, second };

	mu_open(m, "rect");
	mu_attr(m, "class", "%s", class);
	mu_attr(m, "x", "%d", x);
	mu_attr(m, "y", "%d", y);
	mu_attr(m, "width", "%d", width);
	mu_attr(m, "height", "%d", BOX);
	mu_attr(m, "rx", "6");
	mu_element(m, "title", NULL, "%s: %s", first, second);
	mu_close(m, "rect");
	for (int i = 0; i < 2; i++) {
		mu_open(m, "text");
		mu_attr(m, "class", i ? "w2" : "w1");
		mu_attr(m, "x", "%d", x + 12);
		mu_attr(m, "y", "%d", y + 17 + 17 * i);
		mu_text(m, "%.*s%s", (int)CHARS, line[i], strlen(line[i]) > CHARS ? "..." : "");
		mu_close(m, "text");
	}
}

static void edge(struct markup *m, const char *class, int x1, int y1, int x2, int y2)
{
	mu_open(m, "path");
	mu_attr(m, "class", "%s", class);
	mu_attr(m, "d", "M%d %dC%d %d %d %d %d %d", x1, y1, (x1 + x2) / 2, y1, (x1 + x2) / 2, y2,
		x2, y2);
	mu_empty(m);
}

static void draw_group(struct html *h, const struct graph *g, unsigned i)
{
	const struct group *at = &g->group[i];
	const struct finding_waiter *w = &g->f->waiter[at->first];
	struct text first = { 0 }, second = { 0 };

	text_printf(&first, "warp%s %s, block (%u,%u,%u)", at->n == 1 ? "" : "s", at->warps.at,
		w->who.ctaid[0], w->who.ctaid[1], w->who.ctaid[2]);
	describe_place(&second, w->who.site);
	text_printf(&second, second.n ? ": %s" : "%s", w->text);
	box(&h->m, "ww", 1, 8 + (int)i * ROW, LEFT_WIDTH, first.at, second.at);
	text_free(&first);
	text_free(&second);
}

static void draw_object(struct html *h, const struct graph *g, unsigned i, int y)
{
	const struct finding_waiter *w = &g->f->waiter[g->object[i]];
	struct text first = { 0 }, second = { 0 };

	size_t name;

	if (*w->on.kind)
		describe_barrier_name(&first, &w->on);
	else
		text_printf(&first, "%s", "a condition");
	describe_barrier(&second, &w->on);
	name = first.n;
	if (g->peers)
		text_printf(&first, " of CTA %u", w->on.peer);
	box(&h->m, "wo", RIGHT_AT, y, RIGHT_WIDTH, first.at,
		*w->on.kind ? second.at + (second.n > name + 2 ? name + 2 : 0) : w->text);
	text_free(&first);
	text_free(&second);
}

/* Did a warp of the group arrive on the object, according to the history? */
static bool arrived_before(const struct graph *g, const struct group *at,
	const struct finding_waiter *object)
{
	const struct history *y = g->f->history;

	for (uint32_t i = 0; y && i < y->nsteps; i++) {
		const struct history_step *s = &y->step[i];
		const enum step_on on = step_on((enum step_kind)s->kind);

		if (step_family((enum step_kind)s->kind) != FAMILY_RELEASE
				|| (on != ON_MBARRIER && on != ON_BARRIER) || s->addr != object->on.addr
				|| (on == ON_MBARRIER) != (strstr(object->on.kind, "mbarrier") != NULL)
				|| s->peer != object->on.peer)
			continue;
		for (unsigned k = at->first; k < g->f->nwaiters; k++)
			if (same_wait(&g->f->waiter[at->first], &g->f->waiter[k])
					&& g->f->waiter[k].who.cta == s->cta
					&& g->f->waiter[k].who.warp == s->warp)
				return true;
	}
	return false;
}

static void draw(struct html *h, const struct graph *g)
{
	const int space = g->nobjects ? (int)g->ngroups * ROW / (int)g->nobjects : 0;
	struct markup *m = &h->m;

	mu_class(m, "div", "scroll");
	mu_attr(m, "tabindex", "0");
	mu_open(m, "svg");
	mu_attr(m, "class", "wait");
	mu_attr(m, "width", "%d", RIGHT_AT + RIGHT_WIDTH + 2);
	mu_attr(m, "height", "%d", (int)g->ngroups * ROW + 10);
	mu_attr(m, "role", "img");
	mu_attr(m, "aria-label", "%u warps wait on %u objects", blocked_warps(g->f), g->nobjects);
	for (unsigned i = 0; i < g->ngroups; i++) {
		const int y = 8 + (int)i * ROW + BOX / 2;

		for (unsigned k = 0; k < g->nobjects; k++) {
			const int to = 8 + (int)k * space + (space - ROW) / 2 + BOX / 2;

			if (g->group[i].object == k)
				edge(m, "we", LEFT_WIDTH + 2, y - 5, RIGHT_AT - 2, to - 5);
			if (arrived_before(g, &g->group[i], &g->f->waiter[g->object[k]]))
				edge(m, "wb", RIGHT_AT - 2, to + 8, LEFT_WIDTH + 4, y + 8);
		}
	}
	for (unsigned i = 0; i < g->ngroups; i++)
		draw_group(h, g, i);
	for (unsigned k = 0; k < g->nobjects; k++)
		draw_object(h, g, k, 8 + (int)k * space + (space - ROW) / 2);
	mu_close(m, "svg");
	mu_close(m, "div");
}

void html_wait_graph(struct html *h, const struct finding *f)
{
	struct graph g = { .f = f };
	struct markup *m = &h->m;

	if (!f->nwaiters)
		return;
	for (unsigned i = 0; i < f->nwaiters; i++)
		add_waiter(&g, i);
	for (unsigned i = 1; i < g.nobjects; i++)
		g.peers |= f->waiter[g.object[i]].on.peer != f->waiter[g.object[0]].on.peer;
	mu_class(m, "details", "fig");
	mu_flag(m, "open");
	mu_element(m, "summary", NULL, "Wait-for graph: %u warp%s blocked", blocked_warps(f),
		blocked_warps(f) == 1 ? " is" : "s are");
	draw(h, &g);
	mu_element(m, "p", "legend", "Solid: waits on. Dashed: a warp of the group has arrived on it "
		"before.");
	if (g.hidden)
		mu_element(m, "p", "note", "%u more waits are not shown.", g.hidden);
	mu_close(m, "details");
	for (unsigned i = 0; i < g.ngroups; i++)
		text_free(&g.group[i].warps);
}
