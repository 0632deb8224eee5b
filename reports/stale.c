/* stale: sources that were changed after the program was built, and modules without line
 * information. */
#include "reports/reports.h"

#include "libconsan/event/event.h"

#include <string.h>
#include <sys/stat.h>

/* Is the module part of this program's file? Other modules were built at another time, or, by a JIT
 * compiler, in this run. */
static bool is_in(const char *module, const char *program)
{
	const char *base = file_base_name(program);
	const size_t n = strlen(base);

	return !strncmp(module, base, n) && !strncmp(module + n, ": module ", strlen(": module "));
}

bool report_is_jit(uint32_t site)
{
	return strstr(site_get(site)->module, ": JIT module ") != NULL;
}

bool report_stale(const struct results *r, uint32_t site, const char *file)
{
	const char *module = site_get(site)->module;
	struct stat st;

	for (size_t i = 0; i < r->process.n; i++)
		if (is_in(module, r->process.at[i].program) && !stat(r->process.at[i].program, &st))
			return report_source_newer(file, st.st_mtime);
	return false;
}

/* Has a finding in this module line information? Then the module was compiled with it, and what has
 * none has none to give. */
static bool has_lines(const struct results *r, const char *module)
{
	for (size_t i = 0; i < r->finding.n; i++)
		for (unsigned k = 0; k < r->finding.at[i].nsides; k++) {
			const struct site *s = site_get(r->finding.at[i].side[k].site);

			if (s->loc && !strcmp(s->module, module))
				return true;
		}
	return false;
}

bool report_lacks_lines(const struct results *r, const struct finding *f)
{
	const struct site *s = site_get(f->side[0].site);

	return f->nsides && s->ptx_line && !s->loc && !has_lines(r, s->module);
}
