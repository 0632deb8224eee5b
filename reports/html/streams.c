/* streams: the timeline of a finding about operations of the host API: a column for each stream and
 * the host, a row for each call, in the order in which the host made them. */
#include "html.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 8 };

static size_t column_of(const char *name, const char *columns[COLUMNS], size_t *n)
{
	for (size_t i = 0; i < *n; i++)
		if (!strcmp(columns[i], name))
			return i;
	if (*n == COLUMNS)
		return COLUMNS - 1;
	columns[(*n)++] = name;
	return *n - 1;
}

void html_streams(struct html *h, const struct finding *f)
{
	char *text = base_strdup(f->timeline), *rest = text, *line;
	const char *columns[COLUMNS];
	struct { size_t column; const char *mark, *text; } row[64];
	struct markup *m = &h->m;
	size_t ncolumns = 0, n = 0;

	while (n < ARRAY_SIZE(row) && (line = strsep(&rest, "\n")) && *line) {
		const char *name = strsep(&line, "\t"), *mark = strsep(&line, "\t");

		if (!mark || !line)
			break;
		row[n].column = column_of(name, columns, &ncolumns);
		row[n].mark = mark;
		row[n++].text = line;
	}
	if (!n) {
		free(text);
		return;
	}
	mu_class(m, "section", "drawing");
	mu_element(m, "h4", NULL, "Calls of the host, in their order");
	mu_class(m, "div", "scroll");
	mu_class(m, "table", "streams");
	mu_open(m, "thead");
	mu_open(m, "tr");
	for (size_t k = 0; k < ncolumns; k++) {
		mu_open(m, "th");
		mu_attr(m, "scope", "col");
		mu_text(m, "%s", columns[k]);
		mu_close(m, "th");
	}
	mu_close(m, "tr");
	mu_close(m, "thead");
	mu_open(m, "tbody");
	for (size_t i = 0; i < n; i++) {
		mu_open(m, "tr");
		for (size_t k = 0; k < ncolumns; k++) {
			mu_class(m, "td", k == row[i].column && *row[i].mark ? row[i].mark : NULL);
			if (k == row[i].column)
				mu_text(m, "%s%s%s%s", row[i].text, *row[i].mark ? " (" : "",
					row[i].mark, *row[i].mark ? ")" : "");
			mu_close(m, "td");
		}
		mu_close(m, "tr");
	}
	mu_close(m, "tbody");
	mu_close(m, "table");
	mu_close(m, "div");
	mu_close(m, "section");
	free(text);
}
