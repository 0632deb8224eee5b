/* drawing: the elements of which the maps of memory and the timeline are drawn. */
#include "reports/html/html.h"

void html_text_at(struct markup *m, const char *class, double x, double y, const char *fmt, ...)
{
	char s[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s, sizeof s, fmt, ap);
	va_end(ap);
	mu_open(m, "text");
	mu_attr(m, "class", "%s", class);
	mu_attr(m, "x", "%.1f", x);
	mu_attr(m, "y", "%.1f", y);
	mu_text(m, "%s", s);
	mu_close(m, "text");
}

void html_rectangle(struct markup *m, const char *class, double x, double y, double width,
	double height, const char *title)
{
	mu_open(m, "rect");
	mu_attr(m, "class", "%s", class);
	mu_attr(m, "x", "%.1f", x);
	mu_attr(m, "y", "%.1f", y);
	mu_attr(m, "width", "%.1f", width);
	mu_attr(m, "height", "%.1f", height);
	if (*title) {
		mu_element(m, "title", NULL, "%s", title);
		mu_close(m, "rect");
	} else {
		mu_empty(m);
	}
}

void html_map_begin(struct markup *m, const char *what, const char *in_conflict, int left, int width,
	int height)
{
	mu_class(m, "details", "fig");
	mu_flag(m, "open");
	mu_element(m, "summary", NULL, "%s", what);
	mu_class(m, "div", "scroll");
	mu_attr(m, "tabindex", "0");
	mu_attr(m, "role", "group");
	mu_attr(m, "aria-label", "%s", what);
	mu_open(m, "svg");
	mu_attr(m, "class", "map");
	mu_attr(m, "width", "%d", width);
	mu_attr(m, "height", "%d", height);
	mu_attr(m, "viewBox", "%d 0 %d %d", -1 - left, width + 2, height);
	mu_attr(m, "role", "img");
	mu_attr(m, "aria-label", "%s%s", what, in_conflict);
}

void html_map_end(struct markup *m)
{
	mu_close(m, "svg");
	mu_close(m, "div");
}
