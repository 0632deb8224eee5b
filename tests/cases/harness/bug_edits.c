/* bug_edits: see bug_edits.h. */
#include "bug_edits.h"

#include "libconsan/base/base.h"

#include <string.h>

enum { BESIDE = 3 }; /* lines */

static const struct bug_edit rows[] = {
#define BUG_EDIT(program, what, where) { program, what, where },
#include "bug_edits.def"
#undef BUG_EDIT
};

const struct bug_edit *bug_edit_row(unsigned i)
{
	return i < ARRAY_SIZE(rows) ? &rows[i] : NULL;
}

struct bug_edit bug_edit_of(const char *program)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].program, program))
			return rows[i];
	return (struct bug_edit){ program, EDIT_UNKNOWN, FAR };
}

/* Is the instruction, or a call where it is inlined, beside one of the lines? */
static bool is_near(const json_t *site, const char *file, const unsigned *line, unsigned n)
{
	const json_t *places = json_object_get(site, "source"), *at;
	size_t i;

	json_array_foreach((json_t *)places, i, at) {
		const char *name = json_string_value(json_object_get(at, "file"));
		const json_int_t here = json_integer_value(json_object_get(at, "line"));
		const size_t length = name ? strlen(name) : 0;

		if (length < strlen(file) || strcmp(name + length - strlen(file), file))
			continue;
		for (unsigned k = 0; k < n; k++)
			if (here + BESIDE >= line[k] && here <= (json_int_t)line[k] + BESIDE)
				return true;
	}
	return false;
}

static bool is_clean(const json_t *edit)
{
	const char *verified = json_string_value(json_object_get(edit, "verified"));

	return verified && !strcmp(verified, "clean");
}

struct bug_edit bug_edit_found(const json_t *report, const char *file, const unsigned *line,
	unsigned n)
{
	const json_t *findings = json_object_get(report, "findings"), *f;
	struct bug_edit found = { .what = NO_LINE };
	size_t i;

	json_array_foreach((json_t *)findings, i, f) {
		const json_t *edit = json_object_get(f, "edit");
		const enum edit_what what = is_clean(edit) ? CLEAN : LINE;
		const bool near = is_near(json_object_get(edit, "site"), file, line, n)
			|| is_near(json_object_get(edit, "until"), file, line, n);

		if (!edit || (what < CLEAN && json_integer_value(json_object_get(f, "rank"))))
			continue;
		if (what > found.what)
			found = (struct bug_edit){ .what = what, .where = FAR };
		if (what == found.what && near)
			found.where = NEAR;
	}
	return found;
}
