/* tensor_memory: a map of a CTA's tensor memory, 128 lanes by 512 columns, with the columns that
 * are allocated and the cells in conflict. */
#include "reports/html/html.h"

#include "libconsan/event/event.h"

#include <string.h>

enum { LANES = 128, COLUMNS = 512, WARP_LANES = 32 };
enum { WIDTH = 900, HEIGHT = 192, TOP = 18, CELL = 6 }; /* SVG units, as all lengths here */

static double x_of(unsigned column)
{
	return (double)column * WIDTH / COLUMNS;
}

static double y_of(unsigned lane)
{
	return TOP + (double)lane * HEIGHT / LANES;
}

static void rectangle(struct markup *m, const char *class, double x, double y, double width,
	double height, const char *title)
{
	mu_open(m, "rect");
	mu_attr(m, "class", "%s", class);
	mu_attr(m, "x", "%.1f", x);
	mu_attr(m, "y", "%.1f", y);
	mu_attr(m, "width", "%.1f", width);
	mu_attr(m, "height", "%.1f", height);
	mu_element(m, "title", NULL, "%s", title);
	mu_close(m, "rect");
}

static void label(struct markup *m, const char *class, double x, double y, const char *text)
{
	mu_open(m, "text");
	mu_attr(m, "class", "%s", class);
	mu_attr(m, "x", "%.1f", x);
	mu_attr(m, "y", "%.1f", y);
	mu_text(m, "%s", text);
	mu_close(m, "text");
}

static void draw_columns(struct markup *m, const struct history_buffer *b)
{
	const double x = x_of(b->addr), width = x_of(b->bytes);
	struct text name = { 0 }, title = { 0 };

	text_printf(&name, "%u-%u", b->addr, b->addr + b->bytes - 1);
	text_printf(&title, "columns %s, allocated at ", name.at);
	describe_place(&title, b->site);
	rectangle(m, "bs", x, TOP, width, HEIGHT, title.at);
	if (width > 7.0 * (double)name.n)
		label(m, "bn", x + width / 2, TOP + 13, name.at);
	text_free(&title);
	text_free(&name);
}

static void draw_cell(struct markup *m, const struct finding *f, unsigned i)
{
	const struct finding_side *s = &f->side[i];
	const unsigned lane = (unsigned)(s->addr >> 16), column = (unsigned)s->addr & 0xffff;
	const double x = x_of(column), y = y_of(lane);
	struct text t = { 0 };

	text_printf(&t, "%s: %s: lane %u, column %u", side_label(f, i), s->what, lane, column);
	rectangle(m, "bl", x, TOP, x_of(1), HEIGHT, t.at);
	rectangle(m, "bl", 0, y, WIDTH, (double)HEIGHT / LANES, t.at);
	/* both sides have the cell in common: halves of one mark */
	rectangle(m, i ? "bx earlier" : "bx", x - CELL * (i ? 1.0 : 0.0), y - CELL / 2.0, CELL, CELL,
		t.at);
	text_free(&t);
}

void html_tensor_memory(struct html *h, const struct finding *f, const struct finding_side *at)
{
	const struct history *y = f->history;
	struct markup *m = &h->m;
	struct text what = { 0 };

	text_printf(&what, "Tensor memory of CTA %u", at->peer);
	mu_class(m, "details", "fig");
	mu_flag(m, "open");
	mu_element(m, "summary", NULL, "%s", what.at);
	mu_class(m, "div", "scroll");
	mu_attr(m, "tabindex", "0");
	mu_attr(m, "role", "group");
	mu_attr(m, "aria-label", "%s", what.at);
	mu_open(m, "svg");
	mu_attr(m, "class", "map");
	mu_attr(m, "width", "%d", WIDTH);
	mu_attr(m, "height", "%d", TOP + HEIGHT + 6);
	mu_attr(m, "viewBox", "-1 0 %d %d", WIDTH + 2, TOP + HEIGHT + 6);
	mu_attr(m, "role", "img");
	mu_attr(m, "aria-label", "%s: lanes by columns, with the cells in conflict", what.at);
	label(m, "bt", 0, 11, "columns 0 to 511");
	rectangle(m, "bb", 0, TOP, WIDTH, HEIGHT, what.at);
	for (uint32_t i = 0; y && i < y->nbuffers; i++)
		if (y->buffer[i].kind == BUFFER_COLUMNS && y->buffer[i].peer == at->peer)
			draw_columns(m, &y->buffer[i]);
	for (unsigned lane = WARP_LANES; lane < LANES; lane += WARP_LANES)
		rectangle(m, "bb", 0, y_of(lane), WIDTH, 0.1, "");
	for (unsigned i = 0; i < f->nsides; i++)
		if (f->side[i].space == SP_TMEM && f->side[i].peer == at->peer && f->side[i].bytes)
			draw_cell(m, f, i);
	mu_close(m, "svg");
	mu_close(m, "div");
	mu_element(m, "p", "legend", "128 lanes from top to bottom; tcgen05.ld and tcgen05.st of a "
		"warp access the 32 lanes of its number modulo 4");
	mu_close(m, "details");
	text_free(&what);
}
