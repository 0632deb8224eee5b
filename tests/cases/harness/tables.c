/* tables: checks the tables tests/cases/DIR/NAME.def, which name the specimens for a scenario
 * of a similar tool, a public bug, a trap, or a row of the three CTA sets: the specimens exist
 * and expect the rules of the row. Runs none of them. */
#include "specimen.h"
#include "libconsan/base/base.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct row {
	const char *dir, *name, *rules, *files; /* files: in dir, or DIR/NAME; rules "": no findings */
};

static const struct row rows[] = {
#define SCENARIO(line, name, what, there, rules, files) { "triton", name, rules, files },
#define NOT_HERE(line, name, why)
#include "tests/cases/triton/scenarios.def"
#undef SCENARIO
#undef NOT_HERE
#define BUG(where, what, sanitizer, rules, files) { "public", where, rules, files },
#define NOT_HERE(where, why)
#include "tests/cases/public/bugs.def"
#undef BUG
#undef NOT_HERE
#define TRAP(number, what, rules, files) { "traps", number, rules, files },
#define NOT_HERE(number, why)
#include "tests/cases/traps/traps.def"
#undef TRAP
#undef NOT_HERE
#define SET(row, what, rules, files) { "sets", row, rules, files },
#define NOT_HERE(row, why)
#include "tests/cases/sets/sets.def"
#undef SET
#undef NOT_HERE
};

static const char *const table_dirs[] = { "triton", "public", "traps", "sets" };

/* Each specimen of a row expects one of the rules of the row, or no findings. */
static void row_test(const struct row *r, char *named, size_t size)
{
	char files[512], *save, *file;
	bool any = false;

	snprintf(files, sizeof files, "%s", r->files);
	for (file = strtok_r(files, " ", &save); file; file = strtok_r(NULL, " ", &save)) {
		char path[128];
		struct specimen s;
		bool one = false;

		snprintf(path, sizeof path, "tests/cases/%s%s%s.ptx", strchr(file, '/') ? "" : r->dir,
			strchr(file, '/') ? "" : "/", file);
		if (access(path, R_OK)) {
			cr_expect_fail("%s: %s: no file %s", r->dir, r->name, path);
			continue;
		}
		snprintf(named + strlen(named), size - strlen(named), " %s", path);
		specimen_read(&s, path);
		for (size_t i = 0; i < s.nexpect; i++)
			one |= has_word(r->rules, strlen(r->rules), s.expect[i].code);
		cr_expect(one || !s.nexpect, "%s: %s: %s raises no rule of the row", r->dir, r->name, file);
		any |= one;
		free(s.text);
	}
	cr_expect(any || !*r->rules, "%s: %s: no specimen raises %s", r->dir, r->name, r->rules);
}

Test(cases, tables_name_specimens)
{
	static char named[64 * 1024];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		row_test(&rows[i], named, sizeof named);
	for (size_t i = 0; i < ARRAY_SIZE(table_dirs); i++) {
		char pattern[64];
		glob_t g;

		snprintf(pattern, sizeof pattern, "tests/cases/%s/*.ptx", table_dirs[i]);
		cr_assert_eq(glob(pattern, 0, NULL, &g), 0);
		for (size_t k = 0; k < g.gl_pathc; k++)
			cr_expect(has_word(named, strlen(named), g.gl_pathv[k]), "no row names %s",
				g.gl_pathv[k]);
		globfree(&g);
	}
}
