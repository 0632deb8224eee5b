/* proof: checks the reports of one run, BASE.json, .html, .sarif and .xml: schema and
 * well-formedness. To be called in the root of the checkout. */
#ifndef CONSAN_TESTS_PROOF_H
#define CONSAN_TESTS_PROOF_H

#include "markup.h"
#include "schema.h"

#include <unistd.h>

static inline void proof_markup(struct text *bad, const char *path, bool html)
{
	char *s = markup_read(path);
	const char *at = markup_check(s, html);

	if (!*s || at)
		text_printf(bad, "%s: malformed at %.60s\n", path, at ? at : "(empty)");
	if (html && (strstr(s, "http://") || strstr(s, "https://") || strstr(s, " src=\"")))
		text_printf(bad, "%s: refers to another server or file\n", path);
	free(s);
}

static inline void proof_schema(struct text *bad, const char *schema, const char *path)
{
	char *why = schema_check(schema, path);

	if (*why)
		text_printf(bad, "%s: %s\n", path, why);
	free(why);
}

/* Appends all defects to bad, and removes the files except the JSON. */
static inline void proof_reports(struct text *bad, const char *base)
{
	static const char *const suffix[] = { ".json", ".html", ".sarif", ".xml" };
	char path[ARRAY_SIZE(suffix)][256];

	for (size_t i = 0; i < ARRAY_SIZE(suffix); i++)
		snprintf(path[i], sizeof path[i], "%.200s%s", base, suffix[i]);
	proof_schema(bad, "reports/schema.json", path[0]);
	proof_markup(bad, path[1], true);
	proof_schema(bad, "tests/unit/reports/sarif.json", path[2]);
	proof_markup(bad, path[3], false);
	for (size_t i = 1; i < ARRAY_SIZE(suffix); i++)
		unlink(path[i]);
}

#endif
