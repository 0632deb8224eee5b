/* wait_graph: drawing of the wait-for graph of a hang. A node is a barrier or a condition. An edge
 * from A to B is a set of warps that have arrived on A before and are now blocked on B: A waits for
 * them, and they wait for B. The layout has ranks from left to right; edges of a cycle that lead
 * back run below the nodes. */
#include "reports/html/html.h"
#include "reports/waits.h"

#include <stdlib.h>
#include <string.h>

#define NODES 24u
#define EDGES 64u

/* Lengths in SVG units. */
#define NODE_WIDTH 212
#define NODE_HEIGHT 48
#define ROW 88           /* from node to node of a rank */
#define GAP 176          /* between ranks, for the labels of edges */
#define STUB 160         /* left of a node: an edge from no node */
#define CHAR_WIDTH 7     /* estimated */
#define LABEL_HEIGHT 36  /* two lines */
#define LABEL_CHARS 26u

struct node {
	unsigned waiter;        /* the first one that waits on it */
	unsigned rank, row;
	bool source;            /* an edge begins here */
	bool visited, active;   /* of the depth-first search */
};

struct edge {
	int from;               /* node, or -1 */
	unsigned to, group;
	bool back;              /* closes a cycle */
	int x, y;               /* the middle, for the label */
};

struct graph {
	const struct finding *f;
	struct wait_groups waits;
	struct node node[NODES];
	struct edge edge[EDGES];
	unsigned nnodes, nedges, ranks, rows;
	unsigned hidden;        /* groups that are not drawn */
	bool ctas;              /* several CTAs */
	bool stubs;             /* an edge begins at no node */
	struct { int x, y, width; } label[EDGES]; /* drawn so far */
	unsigned nlabels;
};

/* ---- the graph ---- */

static int node_of(struct graph *g, unsigned waiter)
{
	for (unsigned i = 0; i < g->nnodes; i++)
		if (waits_same_object(&g->f->waiter[g->node[i].waiter], &g->f->waiter[waiter]))
			return (int)i;
	if (g->nnodes == NODES)
		return -1;
	g->node[g->nnodes] = (struct node){ .waiter = waiter };
	return (int)g->nnodes++;
}

/* Is this warp one of the group? */
static bool has_warp(const struct graph *g, const struct wait_group *at, unsigned cta, unsigned warp)
{
	for (unsigned k = at->first; k < g->f->nwaiters; k++)
		if (g->f->waiter[k].who.cta == cta && g->f->waiter[k].who.warp == warp
				&& waits_in(at, g->f, k))
			return true;
	return false;
}

/* Did a warp of the group arrive on the object, according to the history? */
static bool arrived_before(const struct graph *g, const struct wait_group *at,
	const struct finding_waiter *object)
{
	const struct history *y = g->f->history;
	const bool mbarrier = strstr(object->on.kind, "mbarrier") != NULL;
	const struct history_mbarrier *m = y && mbarrier
		? history_mbarrier(y, object->on.peer, (uint32_t)object->on.addr) : NULL;

	for (uint32_t i = 0; m && i < m->narrivers; i++)
		if (has_warp(g, at, m->arriver[i].cta, m->arriver[i].warp))
			return true;
	for (uint32_t i = 0; y && !mbarrier && i < y->nsteps; i++) {
		const struct history_step *s = &y->step[i];

		if (s->kind == STEP_bar_arrive && !strcmp(object->on.kind, "named barrier")
				&& s->addr == object->on.addr && s->cta == object->who.cta
				&& has_warp(g, at, s->cta, s->warp))
			return true;
	}
	return false;
}

static void add_edge(struct graph *g, int from, unsigned to, unsigned group)
{
	if (g->nedges == EDGES)
		return;
	g->edge[g->nedges++] = (struct edge){ .from = from, .to = to, .group = group };
	if (from >= 0)
		g->node[from].source = true;
	else
		g->stubs = true;
}

/* It waits for all threads of the cluster: for warps of which no other arrival is known, too. */
static int cluster_barrier(const struct graph *g)
{
	for (unsigned i = 0; i < g->nnodes; i++)
		if (strstr(g->f->waiter[g->node[i].waiter].on.kind, "cluster barrier"))
			return (int)i;
	return -1;
}

static void add_edges(struct graph *g)
{
	int to[EDGES];
	const unsigned n = g->waits.group.n < EDGES ? (unsigned)g->waits.group.n : EDGES;

	g->hidden = (unsigned)g->waits.group.n - n;
	for (unsigned i = 0; i < n; i++) {
		to[i] = node_of(g, g->waits.group.at[i].first);
		g->hidden += to[i] < 0;
	}
	for (unsigned i = 0; i < n; i++) {
		bool any = false;
		int cluster;

		for (unsigned k = 0; to[i] >= 0 && k < g->nnodes; k++) {
			if ((int)k == to[i] || !arrived_before(g, &g->waits.group.at[i],
					&g->f->waiter[g->node[k].waiter]))
				continue;
			add_edge(g, (int)k, (unsigned)to[i], i);
			any = true;
		}
		if (to[i] < 0 || any)
			continue;
		cluster = cluster_barrier(g);
		add_edge(g, cluster != to[i] ? cluster : -1, (unsigned)to[i], i);
	}
}

/* Finds the edges that close a cycle. */
static void search(struct graph *g, unsigned i)
{
	g->node[i].visited = g->node[i].active = true;
	for (unsigned k = 0; k < g->nedges; k++) {
		struct edge *e = &g->edge[k];

		if (e->from != (int)i)
			continue;
		if (g->node[e->to].active)
			e->back = true;
		else if (!g->node[e->to].visited)
			search(g, e->to);
	}
	g->node[i].active = false;
}

/* The rank of a node is the longest path to it without the edges that close cycles. */
static void place(struct graph *g)
{
	unsigned used[NODES] = { 0 };

	for (unsigned i = 0; i < g->nnodes; i++)
		if (!g->node[i].visited)
			search(g, i);
	for (unsigned round = 0; round < g->nnodes; round++)
		for (unsigned k = 0; k < g->nedges; k++) {
			const struct edge *e = &g->edge[k];

			if (e->from >= 0 && !e->back && g->node[e->to].rank <= g->node[e->from].rank)
				g->node[e->to].rank = g->node[e->from].rank + 1;
		}
	for (unsigned i = 0; i < g->nnodes; i++) {
		struct node *n = &g->node[i];

		n->row = used[n->rank]++;
		if (g->ranks <= n->rank)
			g->ranks = n->rank + 1;
		if (g->rows <= n->row)
			g->rows = n->row + 1;
	}
	for (unsigned i = 1; i < g->f->nwaiters; i++)
		g->ctas |= g->f->waiter[i].who.cta != g->f->waiter[0].who.cta;
}

/* ---- drawing ---- */

static int left_of(const struct graph *g, const struct node *n)
{
	return (g->stubs ? STUB : 8) + (int)n->rank * (NODE_WIDTH + GAP);
}

static int top_of(const struct node *n)
{
	return 28 + (int)n->row * ROW;
}

static void line_of_text(struct markup *m, const char *class, int x, int y, const char *s, size_t room)
{
	mu_open(m, "text");
	mu_attr(m, "class", "%s", class);
	mu_attr(m, "x", "%d", x);
	mu_attr(m, "y", "%d", y);
	mu_text(m, "%.*s%s", (int)room, s, strlen(s) > room ? "..." : "");
	mu_close(m, "text");
}

/* What it lacks: "phase 3, 1 of 2 arrivals pending, tx-count -4096 B" */
static void describe_state(struct text *t, const struct finding_waiter *w)
{
	const struct finding_barrier *b = &w->on;

	text_add(t, "", 0);
	if (strstr(b->kind, "mbarrier"))
		text_printf(t, "phase %llu", (unsigned long long)b->phase);
	if (b->expected)
		text_printf(t, "%s%u of %u pending", t->n ? ", " : "", b->pending, b->expected);
	if (b->tx)
		text_printf(t, ", tx-count %lld B", (long long)b->tx);
	if (!t->n)
		text_printf(t, "%s", w->text);
}

static void draw_node(struct html *h, const struct graph *g, const struct node *n)
{
	const struct finding_waiter *w = &g->f->waiter[n->waiter];
	const struct finding_barrier *headline = &g->f->barrier;
	const bool hit = *headline->kind && headline->addr == w->on.addr
		&& headline->peer == w->on.peer && !strcmp(headline->kind, w->on.kind);
	const int x = left_of(g, n), y = top_of(n);
	struct text name = { 0 }, state = { 0 };
	struct markup *m = &h->m;

	if (*w->on.kind)
		describe_barrier_name(&name, &w->on);
	else
		text_printf(&name, "a condition");
	if (g->ctas && !strstr(w->on.kind, "cluster"))
		text_printf(&name, ", CTA %u", strstr(w->on.kind, "mbarrier") ? w->on.peer
			: w->who.cta);
	describe_state(&state, w);
	mu_class(m, "g", hit ? "node hit" : n->source ? "node" : "node end");
	mu_open(m, "rect");
	mu_attr(m, "x", "%d", x);
	mu_attr(m, "y", "%d", y);
	mu_attr(m, "width", "%d", NODE_WIDTH);
	mu_attr(m, "height", "%d", NODE_HEIGHT);
	mu_attr(m, "rx", "8");
	mu_empty(m);
	mu_element(m, "title", NULL, "%s: %s%s", name.at, state.at, n->source ? ""
		: "; no blocked warp has arrived on it, in the steps that are kept");
	line_of_text(m, "name", x + 12, y + 20, name.at, NODE_WIDTH / CHAR_WIDTH);
	line_of_text(m, "state", x + 12, y + 38, state.at, NODE_WIDTH / (CHAR_WIDTH - 1));
	mu_close(m, "g");
	text_free(&name);
	text_free(&state);
}

/* Moves a label down until it covers no other. */
static int free_place(struct graph *g, int x, int y, int width)
{
	for (unsigned i = 0; i < g->nlabels; i++) {
		const int dx = x - g->label[i].x, reach = (width + g->label[i].width) / 2;

		if (dx < reach && -dx < reach && y > g->label[i].y - LABEL_HEIGHT
				&& y < g->label[i].y + LABEL_HEIGHT) {
			y = g->label[i].y + LABEL_HEIGHT;
			i = (unsigned)-1; /* look at all again */
		}
	}
	g->label[g->nlabels].x = x;
	g->label[g->nlabels].y = y;
	g->label[g->nlabels++].width = width;
	return y;
}

/* Who waits above the edge, and where below it. */
static void draw_label(struct html *h, struct graph *g, const struct edge *e)
{
	const struct wait_group *at = &g->waits.group.at[e->group];
	const struct finding_waiter *w = &g->f->waiter[at->first];
	struct text who = { 0 }, where = { 0 };
	int y;
	size_t n;

	text_printf(&who, "warp%s %s", plural_s(at->n), at->warps.at);
	if (g->ctas)
		text_printf(&who, ", CTA %u", w->who.cta);
	text_add(&where, "", 0);
	describe_place(&where, w->who.site);
	n = who.n > where.n ? who.n : where.n;
	y = free_place(g, e->x, e->y, (int)n * CHAR_WIDTH);
	line_of_text(&h->m, "label", e->x, y - 7, who.at, LABEL_CHARS);
	line_of_text(&h->m, "label", e->x, y + 15, where.at, LABEL_CHARS);
	text_free(&who);
	text_free(&where);
}

static void draw_edge(struct html *h, const struct graph *g, struct edge *e)
{
	const struct node *to = &g->node[e->to], *from = e->from >= 0 ? &g->node[e->from] : NULL;
	const int x2 = left_of(g, to), y2 = top_of(to) + NODE_HEIGHT / 2;
	const struct wait_group *at = &g->waits.group.at[e->group];
	struct markup *m = &h->m;
	char path[120];
	int x, y, x1, y1;

	if (!from) {
		x1 = x2 - STUB + 8;
		x = (x1 + x2) / 2;
		y = y1 = y2;
		snprintf(path, sizeof path, "M%d %dH%d", x1, y1, x2 - 2);
	} else if (from->rank < to->rank) {
		x1 = left_of(g, from) + NODE_WIDTH;
		y1 = top_of(from) + NODE_HEIGHT / 2;
		x = (x1 + x2) / 2;
		snprintf(path, sizeof path, "M%d %dC%d %d %d %d %d %d", x1, y1, x, y1, x, y2, x2 - 2,
			y2);
		x = x2 - GAP * 4 / 9; /* edges from one node are apart there */
		y = y2;
	} else { /* below both */
		x1 = left_of(g, from) + NODE_WIDTH / 2;
		y1 = top_of(from) + NODE_HEIGHT;
		x = (x1 + x2 + NODE_WIDTH / 2) / 2;
		y = (y1 > top_of(to) + NODE_HEIGHT ? y1 : top_of(to) + NODE_HEIGHT) + 30;
		snprintf(path, sizeof path, "M%d %dC%d %d %d %d %d %d", x1, y1, x1, y + 10,
			x2 + NODE_WIDTH / 2 + (x1 == x2 + NODE_WIDTH / 2 ? 60 : 0), y + 10,
			x2 + NODE_WIDTH / 2, top_of(to) + NODE_HEIGHT + 2);
	}
	mu_open(m, "path");
	mu_attr(m, "class", from ? "edge" : "edge stub");
	mu_attr(m, "d", "%s", path);
	mu_element(m, "title", NULL, "%s", g->f->waiter[at->first].text);
	mu_close(m, "path");
	e->x = x;
	e->y = y;
}

static void draw(struct html *h, struct graph *g)
{
	const int width = (g->stubs ? STUB : 8) + (int)g->ranks * (NODE_WIDTH + GAP) - GAP + 8;
	const int height = 28 + (int)g->rows * ROW + (int)g->nedges * 2;
	struct markup *m = &h->m;

	mu_class(m, "div", "scroll");
	mu_attr(m, "tabindex", "0");
	mu_attr(m, "role", "group");
	mu_attr(m, "aria-label", "wait-for graph");
	mu_open(m, "svg");
	mu_attr(m, "class", "wait");
	mu_attr(m, "style", "min-width:min(42rem,%dpx)", width);
	mu_attr(m, "width", "%d", width);
	mu_attr(m, "height", "%d", height);
	mu_attr(m, "viewBox", "0 0 %d %d", width, height);
	mu_attr(m, "role", "img");
	mu_attr(m, "aria-label", "%u warps are blocked on %u objects; the table below lists them",
		blocked_warps(g->f), g->nnodes);
	for (unsigned i = 0; i < g->nnodes; i++)
		draw_node(h, g, &g->node[i]);
	for (unsigned i = 0; i < g->nedges; i++)
		draw_edge(h, g, &g->edge[i]);
	for (unsigned i = 0; i < g->nedges; i++)
		draw_label(h, g, &g->edge[i]);
	mu_close(m, "svg");
	mu_close(m, "div");
}

static void list_waits(struct html *h, const struct graph *g)
{
	static const char *const head[] = { "warps", "wait at", "for", "state" };
	struct markup *m = &h->m;

	html_table(m, head, ARRAY_SIZE(head), "Blocked warps");
	for (size_t i = 0; i < g->waits.group.n; i++) {
		const struct wait_group *at = &g->waits.group.at[i];
		const struct finding_waiter *w = &g->f->waiter[at->first];
		struct text who = { 0 }, place = { 0 }, on = { 0 };

		waits_describe(&who, at, g->f);
		describe_place(&place, w->who.site);
		if (*w->on.kind)
			describe_barrier_name(&on, &w->on);
		mu_open(m, "tr");
		mu_element(m, "td", NULL, "%s", who.at);
		mu_open(m, "td");
		mu_element(m, "code", NULL, "%s", place.n ? place.at : "");
		mu_close(m, "td");
		mu_element(m, "td", NULL, "%s", on.n ? on.at : "");
		mu_element(m, "td", NULL, "%s", w->text);
		mu_close(m, "tr");
		text_free(&who);
		text_free(&place);
		text_free(&on);
	}
	html_table_end(m);
}

void html_wait_graph(struct html *h, const struct finding *f)
{
	struct graph g = { .f = f };
	struct markup *m = &h->m;

	if (!f->nwaiters)
		return;
	waits_find(&g.waits, f);
	add_edges(&g);
	place(&g);
	mu_class(m, "details", "fig");
	mu_flag(m, "open");
	mu_element(m, "summary", NULL, "Wait-for graph: %u warp%s blocked", blocked_warps(f),
		blocked_warps(f) == 1 ? " is" : "s are");
	draw(h, &g);
	mu_element(m, "p", "legend", "An arrow from A to B: these warps arrive on A and are blocked on B, "
		"so that A waits for B. Dashed: no arrival of these warps is known. Amber: no warp that "
		"is blocked has arrived here; the missing arrivals must come from code that was not "
		"reached.");
	if (g.hidden)
		mu_element(m, "p", "note", "%u more waits are not drawn.", g.hidden);
	list_waits(h, &g);
	mu_close(m, "details");
	waits_free(&g.waits);
}
