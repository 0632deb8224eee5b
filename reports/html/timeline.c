/* timeline: drawing of the steps around a finding, from its history: a lane for each warp and
 * asynchronous engine, a column for each step, arrows from arrivals to the waits that they
 * complete, bars for asynchronous operations in flight, and the missing edge, dashed. */
#include "reports/html/timeline.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ARROWS 4u    /* into one wait */
#define MAX_LABEL 30u    /* bytes of a label above a column */
#define TICK 5u          /* steps */
#define NAMES 140        /* width of the lanes' names, which do not scroll; SVG units */
#define RIGHT 118        /* space for the last label, which is rotated; SVG units */

/* ---- descriptions ---- */

static void title(struct timeline *p, const struct history_step *s)
{
	struct text t = { 0 };

	if (step_is_signal((enum step_kind)s->kind))
		text_printf(&t, "asynchronous engine");
	else if (s->warp == HISTORY_OTHERS)
		text_printf(&t, "other warps");
	else
		text_printf(&t, "warp %u", s->warp);
	if (p->ctas) {
		text_printf(&t, " of ");
		describe_cta(&t, p->f, s->cta);
	}
	text_printf(&t, ": ");
	describe_step(&t, p->f, s);
	if (s->completes)
		text_printf(&t, "; completes the phase");
	if (s->tx)
		text_printf(&t, "; %lld B", (long long)s->tx);
	if (s->site) {
		text_printf(&t, "; ");
		describe_place(&t, s->site);
	}
	mu_element(&p->h->m, "title", NULL, "%s", t.at);
	text_free(&t);
}

/* ---- drawing ---- */

static void use(struct markup *m, const char *href, const char *class, int x, int y)
{
	mu_open(m, "use");
	mu_attr(m, "href", "%s", href);
	mu_attr(m, "class", "%s", class);
	mu_attr(m, "x", "%d", x);
	mu_attr(m, "y", "%d", y);
}

static void path(struct markup *m, const char *class, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void path(struct markup *m, const char *class, const char *fmt, ...)
{
	char d[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d, sizeof d, fmt, ap);
	va_end(ap);
	mu_open(m, "path");
	mu_attr(m, "class", "%s", class);
	mu_attr(m, "d", "%s", d);
	mu_empty(m);
}

static void arrow(struct markup *m, const char *class, int x1, int y1, int x2, int y2)
{
	const int bend = (x2 - x1) / 2 > 12 ? (x2 - x1) / 2 : 12;
	const int from = y1 < y2 ? 6 : y1 > y2 ? -6 : 0, to = y1 < y2 ? -8 : y1 > y2 ? 8 : 0;

	if (y1 == y2)
		path(m, class, "M%d %dQ%d %d %d %d", x1, y1 + 7, (x1 + x2) / 2,
			y1 + 9 + (x2 - x1 > 80 ? 26 : 16), x2, y2 + 9);
	else
		path(m, class, "M%d %dC%d %d %d %d %d %d", x1, y1 + from, x1 + bend, y1 + from,
			x2 - bend / 2, y2 + to, x2, y2 + to);
}

static const char *const family_mark[][2] = { /* symbol, class */
	[FAMILY_ACCESS] = { "#mX", "mx" }, [FAMILY_RELEASE] = { "#mR", "mr" },
	[FAMILY_ACQUIRE] = { "#mA", "ma" }, [FAMILY_FENCE] = { "#mF", "mf" },
	[FAMILY_ISSUE] = { "#mI", "mi" }, [FAMILY_COMPLETE] = { "#mL", "mi" },
	[FAMILY_OBJECT] = { "#mO", "mo" }, [FAMILY_SYNC] = { "#mM", "mo" },
};

/* A label above a column, cut to MAX_LABEL. */
static void label(struct markup *m, const char *s)
{
	size_t n = strlen(s);

	if (n <= MAX_LABEL) {
		mu_text(m, "%s", s);
		return;
	}
	for (n = MAX_LABEL - 3; (s[n] & 0xc0) == 0x80; n--)
		; /* do not cut a character */
	mu_textn(m, s, n);
	mu_text(m, "...");
}

static void draw_marks(struct timeline *p)
{
	struct markup *m = &p->h->m;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct history_step *s = &p->y->step[p->pick[i]];
		const enum step_family family = step_family((enum step_kind)s->kind);
		const int x = timeline_x(p, i), y = timeline_step_y(p, s);
		const bool side = history_is_side(p->y, p->pick[i]);
		struct text t = { 0 };

		describe_step(&t, p->f, s);
		mu_open(m, "text");
		mu_attr(m, "class", side ? "cl hit" : "cl");
		mu_attr(m, "data-step", "%u", i);
		mu_attr(m, "transform", "translate(%d %d)rotate(-52)", x + 3, TOP - 8);
		label(m, t.at);
		mu_close(m, "text");
		text_free(&t);
		if (s->completes) {
			use(m, "#mC", "mc", x, y);
			mu_empty(m);
		}
		use(m, side ? "#mX" : s->kind == STEP_poll ? "#mP" : family_mark[family][0],
			side ? "mx" : family_mark[family][1], x, y);
		mu_attr(m, "data-step", "%u", i);
		title(p, s);
		mu_close(m, "use");
	}
}

/* Arrows into a wait from the arrivals and completions of its phase. */
static void draw_causes(struct timeline *p, uint32_t i)
{
	const struct history_step *w = &p->y->step[p->pick[i]];
	unsigned n = 0;

	for (uint32_t k = i; k-- > 0 && n < MAX_ARROWS;) {
		const struct history_step *s = &p->y->step[p->pick[k]];
		const enum step_family family = step_family((enum step_kind)s->kind);

		if ((family != FAMILY_RELEASE && family != FAMILY_COMPLETE) || !step_same_phase(s, w))
			continue;
		n++;
		arrow(&p->h->m, s->completes ? "ar" : "ar thin", timeline_x(p, k), timeline_step_y(p, s),
			timeline_x(p, i), timeline_step_y(p, w));
	}
}

static void draw_flight(struct timeline *p, uint32_t i)
{
	const struct history_step *a = &p->y->step[p->pick[i]], *s = NULL;
	const struct lane *l = timeline_lane(p, a->cta, 0, step_engine(a));
	struct markup *m = &p->h->m;
	int x = timeline_x(p, i), end, y;
	uint32_t k = i + 1;

	if (!l)
		return;
	for (; k < p->n; k++) {
		s = &p->y->step[p->pick[k]];
		if (step_ends(a, s))
			break;
	}
	end = k < p->n ? timeline_x(p, k) : timeline_x(p, p->n) - COLUMN / 4;
	y = timeline_lane_y(p, l) - 9 + (int)(a->op % 3) * 6;
	mu_open(m, "rect");
	mu_attr(m, "class", k < p->n ? "fl" : "fl open");
	mu_attr(m, "x", "%d", x);
	mu_attr(m, "y", "%d", y);
	mu_attr(m, "width", "%d", end - x);
	mu_attr(m, "height", "5");
	title(p, a);
	mu_close(m, "rect");
	path(m, "ar thin", "M%d %dV%d", x, timeline_step_y(p, a) + 7, y);
	if (k < p->n && !step_is_signal((enum step_kind)s->kind))
		path(m, "ar thin", "M%d %dV%d", end, y, timeline_step_y(p, s) + 8);
}

static void draw_arrows(struct timeline *p)
{
	for (uint32_t i = 0; i < p->n; i++) {
		const struct history_step *s = &p->y->step[p->pick[i]];

		if (step_is_issue(s) && s->warp != HISTORY_OTHERS)
			draw_flight(p, i);
		if (step_is_wait(s))
			draw_causes(p, i);
	}
}

static void draw_missing(struct timeline *p)
{
	const struct finding *f = p->f;
	struct markup *m = &p->h->m;
	int x[FINDING_SIDES] = { -1, -1 }, y[FINDING_SIDES] = { 0, 0 };

	for (unsigned i = 0; i < f->nsides; i++) {
		const struct lane *l = timeline_lane(p, history_side_cta(p->f, i), f->side[i].warp, WARP);

		x[i] = timeline_side_x(p, i);
		y[i] = timeline_lane_y(p, l ? l : p->lane);
		if (x[i] >= 0)
			continue;
		x[i] = LEFT + COLUMN / 2; /* the column reserved for it */
		mu_open(m, "text");
		mu_attr(m, "class", "cl hit");
		mu_attr(m, "transform", "translate(%d %d)rotate(-52)", x[i] + 3, TOP - 8);
		mu_text(m, "earlier: %.40s", f->side[i].what);
		mu_close(m, "text");
		use(m, "#mX", "mx", x[i], y[i]);
		mu_empty(m);
	}
	if (f->nsides == 2)
		arrow(m, "miss", x[1], y[1], x[0], y[0]);
}

/* The positions of steps in the order of their cluster. */
static void draw_axis(struct timeline *p, int width)
{
	const int y = timeline_axis_y(p);

	path(&p->h->m, "axis", "M0 %dH%d", y, width - RIGHT);
	for (uint32_t i = 0; i < p->n; i += TICK) {
		char number[24];

		snprintf(number, sizeof number, "%llu",
			(unsigned long long)p->y->step[p->pick[i]].at);
		path(&p->h->m, "axis", "M%d %dv4", timeline_x(p, i), y);
		html_text_at(&p->h->m, "tick", timeline_x(p, i), y + 16, "%s", number);
	}
}

static void draw_names(struct timeline *p, int height)
{
	struct markup *m = &p->h->m;

	mu_class(m, "svg", "names");
	mu_attr(m, "width", "%d", NAMES);
	mu_attr(m, "height", "%d", height);
	mu_attr(m, "viewBox", "0 0 %d %d", NAMES, height);
	mu_attr(m, "aria-hidden", "true");
	html_text_at(m, "tick name", NAMES - 8, timeline_axis_y(p) + 16, "%s", "step of the cluster");
	for (unsigned i = 0; i < p->nlanes; i++) {
		const struct lane *l = &p->lane[i];
		struct text cta = { 0 };

		mu_open(m, "text");
		mu_attr(m, "class", l->engine == WARP ? "ll" : "ll eng");
		mu_attr(m, "x", "%d", NAMES - 8);
		mu_attr(m, "y", "%d", timeline_lane_y(p, l) + 4);
		if (p->ctas) {
			describe_cta(&cta, p->f, l->cta);
			mu_text(m, "%s ", cta.at);
			text_free(&cta);
		}
		if (l->engine != WARP)
			mu_text(m, "%s", engine_name[l->engine]);
		else if (l->warp == HISTORY_OTHERS)
			mu_text(m, "other warps");
		else
			mu_text(m, "warp %u", l->warp);
		mu_close(m, "text");
	}
	mu_close(m, "svg");
}

static void draw_lanes(struct timeline *p, int width)
{
	struct markup *m = &p->h->m;

	for (unsigned i = 0; i < p->nlanes; i++) {
		const struct lane *l = &p->lane[i];
		const int y = timeline_lane_y(p, l);

		if (i && l->cta != p->lane[i - 1].cta)
			path(m, "cta", "M0 %dH%d", y - LANE / 2, width);
		path(m, l->engine == WARP ? "lane" : "lane eng", "M0 %dH%d", y, width - RIGHT);
	}
	/* gaps where steps are left out or the other cluster begins */
	for (uint32_t i = 1; i < p->n; i++)
		if (p->pick[i] != p->pick[i - 1] + 1 || (p->y->other
				&& (p->y->step[p->pick[i]].cta < p->y->other)
				!= (p->y->step[p->pick[i - 1]].cta < p->y->other)))
			path(m, "gap", "M%d %dV%d", timeline_x(p, i) - COLUMN / 2, TOP - 4,
				TOP + (int)p->nlanes * LANE);
	for (uint32_t i = 0; i < p->n; i++) {
		if (!history_is_side(p->y, p->pick[i]))
			continue;
		mu_open(m, "rect");
		mu_attr(m, "class", "band");
		mu_attr(m, "x", "%d", timeline_x(p, i) - COLUMN / 2);
		mu_attr(m, "y", "%d", TOP - 4);
		mu_attr(m, "width", "%d", COLUMN);
		mu_attr(m, "height", "%d", (int)p->nlanes * LANE + 8);
		mu_empty(m);
	}
}

static void legend(struct html *h)
{
	static const char *const entry[][3] = {
		{ "#mR", "mr", "release: arrive, commit" },
		{ "#mA", "ma", "acquire: wait returns" },
		{ "#mP", "ma", "wait begins" }, { "#mC", "mc", "phase completes" },
		{ "#mI", "mi", "operation is issued" }, { "#mL", "mi", "operation completes" },
		{ "#mF", "mf", "fence" }, { "#mX", "mx", "the finding" },
	};
	struct markup *m = &h->m;

	mu_class(m, "p", "legend marks");
	for (size_t i = 0; i < ARRAY_SIZE(entry); i++) {
		mu_open(m, "span");
		mu_open(m, "svg");
		mu_attr(m, "width", "16");
		mu_attr(m, "height", "16");
		mu_attr(m, "viewBox", "-10 -10 20 20");
		mu_attr(m, "aria-hidden", "true");
		use(m, entry[i][0], entry[i][1], 0, 0);
		mu_empty(m);
		mu_close(m, "svg");
		mu_text(m, "%s", entry[i][2]);
		mu_close(m, "span");
	}
	mu_close(m, "p");
}

static void list_steps(struct timeline *p)
{
	struct markup *m = &p->h->m;

	mu_class(m, "details", "steps");
	mu_element(m, "summary", NULL, "List of the %u steps", p->n);
	mu_open(m, "ol");
	for (uint32_t i = 0; i < p->n; i++) {
		const struct history_step *s = &p->y->step[p->pick[i]];
		struct text t = { 0 };

		if (p->y->other) {
			describe_cta(&t, p->f, s->cta);
			text_printf(&t, " ");
		}
		if (step_is_signal((enum step_kind)s->kind))
			text_printf(&t, "%s: ", engine_name[step_engine(s)]);
		else if (s->warp == HISTORY_OTHERS)
			text_printf(&t, "other warps: ");
		else
			text_printf(&t, "warp %u: ", s->warp);
		describe_step(&t, p->f, s);
		if (s->completes)
			text_printf(&t, ", completes the phase");
		mu_class(m, "li", history_is_side(p->y, p->pick[i]) ? "hit" : NULL);
		mu_text(m, "%s ", t.at);
		t.n = 0;
		if (s->site) {
			describe_place(&t, s->site);
			mu_element(m, "code", NULL, "%s", t.n ? t.at : "");
		}
		text_free(&t);
		mu_close(m, "li");
	}
	mu_close(m, "ol");
	mu_close(m, "details");
}

static void draw(struct timeline *p)
{
	struct markup *m = &p->h->m;
	const int width = timeline_x(p, p->n) + RIGHT, height = timeline_axis_y(p) + 22;

	mu_class(m, "div", "lanes");
	draw_names(p, height);
	mu_class(m, "div", "scroll end"); /* scrolled to the end, where the later side is */
	mu_attr(m, "tabindex", "0");
	mu_attr(m, "role", "group");
	mu_attr(m, "aria-label", "timeline; + and - zoom");
	mu_attr(m, "style", "--w:%d", width);
	mu_open(m, "svg");
	mu_attr(m, "class", "tl");
	mu_attr(m, "width", "%d", width);
	mu_attr(m, "height", "%d", height);
	mu_attr(m, "viewBox", "0 0 %d %d", width, height);
	mu_attr(m, "role", "img");
	mu_attr(m, "aria-label", "timeline of %u steps by %u warps and engines", p->n, p->nlanes);
	draw_lanes(p, width);
	draw_axis(p, width);
	draw_arrows(p);
	draw_missing(p);
	draw_marks(p);
	mu_close(m, "svg");
	mu_close(m, "div");
	mu_close(m, "div");
}

/* For the script: zoom and search. */
static void tools(struct markup *m)
{
	static const char *const button[][3] = {
		{ "out", "\xe2\x88\x92", "zoom out" }, { "in", "+", "zoom in" },
		{ "fit", "fit", "show all steps" }, { "one", "1:1", "original size" },
	};

	mu_class(m, "div", "tools js");
	for (size_t i = 0; i < ARRAY_SIZE(button); i++) {
		mu_open(m, "button");
		mu_attr(m, "type", "button");
		mu_attr(m, "data-zoom-to", "%s", button[i][0]);
		mu_attr(m, "aria-label", "%s", button[i][2]);
		mu_attr(m, "title", "%s", button[i][2]);
		mu_text(m, "%s", button[i][1]);
		mu_close(m, "button");
	}
	mu_open(m, "input");
	mu_attr(m, "type", "search");
	mu_attr(m, "placeholder", "warp 3, full[1], line");
	mu_attr(m, "aria-label", "Find a warp, a barrier or a place in the timeline; Enter: the next");
	mu_void(m);
	mu_element(m, "output", "hits count", "%s", "");
	mu_close(m, "div");
}

void html_timeline(struct html *h, const struct finding *f)
{
	struct timeline p = { .h = h, .f = f, .y = f->history };
	struct markup *m = &h->m;
	uint64_t left;

	if (!f->history || (!f->history->nsteps && !f->nsides))
		return;
	timeline_choose(&p);
	if (!p.nlanes)
		return;
	mu_class(m, "details", "fig timeline");
	mu_flag(m, "open");
	mu_element(m, "summary", NULL, "Timeline");
	tools(m);
	draw(&p);
	legend(h);
	if (f->history->other)
		mu_element(m, "p", "note", "The two clusters run concurrently. The steps of each "
			"are in order; the order between the clusters is unknown.");
	left = f->history->before + (f->history->nsteps - p.n);
	if (left)
		mu_element(m, "p", "note",
			"%llu earlier step%s of %s not shown. --history=N keeps more.",
			(unsigned long long)left, plural_s(left),
			f->history->other ? "these clusters" : "this cluster");
	if (h->r->finding.n <= 50)
		list_steps(&p);
	mu_close(m, "details");
}

void html_timeline_defs(struct html *h)
{
	static const struct { const char *id, *d; } mark[] = {
		{ "mX", "M-5-5L5 5M5-5L-5 5" }, { "mR", "M-5 4L0-5 5 4Z" },
		{ "mA", "M-5-4L0 5 5-4Z" }, { "mP", "M-4-3L0 4 4-3" },
		{ "mF", "M-2-6H2V6H-2Z" }, { "mI", "M-4-5L5 0-4 5Z" }, { "mL", "M-4-4H4V4H-4Z" },
		{ "mO", "M0-5L5 0 0 5-5 0Z" }, { "mM", "M-5 0A5 5 0 1 1 5 0A5 5 0 1 1-5 0" },
		{ "mC", "M-9 0A9 9 0 1 1 9 0A9 9 0 1 1-9 0" },
	};
	struct markup *m = &h->m;

	mu_class(m, "svg", "defs");
	mu_attr(m, "width", "0");
	mu_attr(m, "height", "0");
	mu_attr(m, "aria-hidden", "true");
	mu_open(m, "defs");
	for (size_t i = 0; i < ARRAY_SIZE(mark); i++) {
		mu_open(m, "path");
		mu_attr(m, "id", "%s", mark[i].id);
		mu_attr(m, "d", "%s", mark[i].d);
		mu_empty(m);
	}
	for (int i = 0; i < 2; i++) {
		mu_open(m, "marker");
		mu_attr(m, "id", i ? "eM" : "eA");
		mu_attr(m, "viewBox", "0 0 8 8");
		mu_attr(m, "refX", "7");
		mu_attr(m, "refY", "4");
		mu_attr(m, "markerWidth", "6");
		mu_attr(m, "markerHeight", "6");
		mu_attr(m, "orient", "auto");
		mu_open(m, "path");
		mu_attr(m, "class", i ? "em" : "ea");
		mu_attr(m, "d", "M0 0L8 4 0 8Z");
		mu_empty(m);
		mu_close(m, "marker");
	}
	mu_close(m, "defs");
	mu_close(m, "svg");
}
