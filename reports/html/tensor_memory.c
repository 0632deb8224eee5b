/* tensor_memory: a map of a CTA's tensor memory, 128 lanes by 512 columns, with the columns that
 * are allocated, the cells of both accesses, and the first cell in conflict. A second one shows the
 * columns of the accesses alone. */
#include "reports/html/html.h"

#include "libconsan/event/event.h"

enum { LANES = 128, COLUMNS = 512, WARP_LANES = 32 };
/* SVG units, as all lengths here. LEFT: for the lanes of each warp */
enum { LEFT = 62, WIDTH = 838, HEIGHT = 192, TOP = 18, GAP = 30, CELL = 6 };

struct map {
	struct markup *m;
	const struct finding *f;
	unsigned peer;          /* the CTA */
	unsigned from, to;      /* columns that it shows */
	double top;
};

static double x_of(const struct map *p, unsigned column)
{
	if (column < p->from)
		column = p->from;
	if (column > p->to)
		column = p->to;
	return (double)(column - p->from) * WIDTH / (p->to - p->from);
}

static double y_of(const struct map *p, unsigned lane)
{
	return p->top + (double)lane * HEIGHT / LANES;
}

static bool on_map(const struct map *p, const struct finding_side *s)
{
	return s->space == SP_TMEM && s->peer == p->peer && s->bytes;
}

static void draw_columns(struct map *p, const struct history_buffer *b)
{
	const double x = x_of(p, b->addr), width = x_of(p, b->addr + b->bytes) - x;
	struct text name = { 0 }, title = { 0 };

	text_printf(&name, "%u-%u", b->addr, b->addr + b->bytes - 1);
	text_printf(&title, "columns %s, allocated at ", name.at);
	describe_place(&title, b->site);
	if (width > 0)
		html_rectangle(p->m, "bs", x, p->top, width, HEIGHT, title.at);
	if (width > 7.0 * (double)name.n)
		html_text_at(p->m, "bn", x + width / 2, p->top + 13, "%s", name.at);
	text_free(&title);
	text_free(&name);
}

static void describe_side(struct text *t, const struct finding *f, unsigned i)
{
	text_printf(t, "%s: %s: ", side_label(f, i), f->side[i].what);
	describe_bytes(t, &f->side[i]);
}

/* The cells of an access: one rectangle for each run of lanes. */
static void draw_access(struct map *p, unsigned i)
{
	const struct finding_cells *c = &p->f->side[i].cells;
	const double x = x_of(p, c->column), width = x_of(p, c->column + c->columns) - x;
	struct text t = { 0 };

	describe_side(&t, p->f, i);
	for (unsigned lane = 0, end; lane < LANES && c->columns; lane = end + 1) {
		for (end = lane; end < LANES && c->lanes[end / 32] >> end % 32 & 1; end++)
			;
		if (end > lane)
			html_rectangle(p->m, i ? "ba earlier" : "ba", x, y_of(p, lane), width,
				y_of(p, end) - y_of(p, lane), t.at);
	}
	text_free(&t);
}

/* Both sides have the cell in common: halves of one mark. */
static void draw_cell(struct map *p, unsigned i)
{
	const struct finding_side *s = &p->f->side[i];
	const unsigned lane = (unsigned)(s->addr >> 16), column = (unsigned)s->addr & 0xffff;
	struct text t = { 0 };

	describe_side(&t, p->f, i);
	html_rectangle(p->m, i ? "bx earlier" : "bx", x_of(p, column) - CELL * (i ? 1.0 : 0.0),
		y_of(p, lane) - CELL / 2.0, CELL, CELL, t.at);
	text_free(&t);
}

static void draw_map(struct map *p, const char *what)
{
	const struct history *y = p->f->history;

	html_text_at(p->m, "bt", 0, p->top - 7, "%s: columns %u to %u", what, p->from, p->to - 1);
	html_rectangle(p->m, "bb", 0, p->top, WIDTH, HEIGHT, "");
	for (uint32_t i = 0; y && i < y->nbuffers; i++)
		if (y->buffer[i].kind == BUFFER_COLUMNS && y->buffer[i].peer == p->peer)
			draw_columns(p, &y->buffer[i]);
	for (unsigned lane = 0; lane < LANES; lane += WARP_LANES) {
		html_text_at(p->m, "bt", -LEFT, y_of(p, lane) + 13, "%u-%u", lane, lane + WARP_LANES - 1);
		if (lane)
			html_rectangle(p->m, "bb", 0, y_of(p, lane), WIDTH, 0.1, "");
	}
	for (unsigned i = p->f->nsides; i-- > 0;) /* the later one on top */
		if (on_map(p, &p->f->side[i]))
			draw_access(p, i);
	for (unsigned i = 0; i < p->f->nsides; i++)
		if (on_map(p, &p->f->side[i]))
			draw_cell(p, i);
}

/* The columns of the accesses and some on both sides. False: they are most of the map. */
static bool zoom(struct map *p)
{
	unsigned from = COLUMNS, to = 0, pad;

	for (unsigned i = 0; i < p->f->nsides; i++) {
		const struct finding_cells *c = &p->f->side[i].cells;

		if (!on_map(p, &p->f->side[i]) || !c->columns)
			continue;
		from = c->column < from ? c->column : from;
		to = c->column + c->columns > to ? c->column + c->columns : to;
	}
	if (to <= from || to - from > COLUMNS / 4)
		return false;
	pad = (to - from) / 2 > 8 ? (to - from) / 2 : 8;
	p->from = from > pad ? from - pad : 0;
	p->to = to + pad < COLUMNS ? to + pad : COLUMNS;
	return true;
}

void html_tensor_memory(struct html *h, const struct finding *f, const struct finding_side *at)
{
	struct map p = { .m = &h->m, .f = f, .peer = at->peer, .to = COLUMNS, .top = TOP };
	struct map detail = p;
	const bool two = zoom(&detail);
	struct text what = { 0 };

	text_printf(&what, "Tensor memory of CTA %u", at->peer);
	html_map_begin(&h->m, what.at, ": lanes by columns, with the cells in conflict", LEFT,
		LEFT + WIDTH, TOP + HEIGHT + 6 + (two ? GAP + HEIGHT : 0));
	draw_map(&p, "all");
	detail.top = TOP + HEIGHT + GAP;
	if (two)
		draw_map(&detail, "detail");
	html_map_end(&h->m);
	mu_element(&h->m, "p", "legend", "128 lanes from top to bottom; tcgen05.ld and tcgen05.st of a "
		"warp access the 32 lanes of its number modulo 4; red: the later access, amber: the earlier "
		"one, green: allocated");
	mu_close(&h->m, "details");
	text_free(&what);
}
