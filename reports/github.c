/* github: workflow commands of GitHub Actions, which shows them as annotations of the files:
 *
 *     ::error file=src/gemm.cu,line=17,col=5,title=CS102 read-write race::MESSAGE
 *
 * A runner finds them in the output of a step. It shows few of them (ten errors and ten warnings
 * of a step), so that there is one annotation for each group of findings, and notes appear only with
 * --print-level=info. */
#include "reports/reports.h"

#include <stdlib.h>
#include <string.h>

/* Escapes what would end the command, and in a property also what would end the property. */
static void put(FILE *out, const char *s, bool property)
{
	for (; *s; s++)
		if (strchr("%\r\n", *s) || (property && strchr(":,", *s)))
			fprintf(out, "%%%02X", (unsigned char)*s);
		else if ((unsigned char)*s >= ' ' || *s == '\t')
			fputc(*s, out);
}

static void put_property(FILE *out, char before, const char *name, const char *value)
{
	fprintf(out, "%c%s=", before, name);
	put(out, value, true);
}

/* Relative to the checkout, which GitHub requires. free() it. */
static char *path_in_checkout(const struct options *o, const char *file)
{
	const char *root = getenv("GITHUB_WORKSPACE");
	const size_t n = root ? strlen(root) : 0;
	char *path = display_path(o, file);

	if (n && !strncmp(path, root, n) && path[n] == '/')
		memmove(path, path + n + 1, strlen(path + n + 1) + 1);
	return path;
}

static void put_place(FILE *out, const struct options *o, uint32_t site)
{
	const struct site_loc *l = site_headline(site_get(site)->loc);
	char number[16], *path;

	if (!l || !l->line)
		return;
	path = path_in_checkout(o, l->file);
	put_property(out, ' ', "file", path);
	snprintf(number, sizeof number, "%u", l->line);
	put_property(out, ',', "line", number);
	if (l->col) {
		snprintf(number, sizeof number, "%u", l->col);
		put_property(out, ',', "col", number);
	}
	free(path);
}

/* A headline with n consequences. */
static void put_finding(FILE *out, const struct options *o, const struct finding *f, size_t n)
{
	static const char *const command[] = { [SEV_NOTE] = "notice", [SEV_WARNING] = "warning",
		[SEV_ERROR] = "error" };
	const struct rule_info *rule = rule_get(f->rule);
	char *kernel = demangle(f->kernel, NAME_SIMPLE);
	const uint32_t site = f->nsides ? f->side[0].site : 0;
	const struct site_loc *l = site_headline(site_get(site)->loc);
	size_t group = n + 1;
	const enum severity severity = group_severity(f, &group);
	struct text title = { 0 }, t = { 0 };

	text_printf(&title, "%s %s", rule->code, rule->title);
	if (*kernel)
		text_printf(&t, "kernel: %s\n", kernel);
	report_finding_text(&t, o, f);
	if (n)
		text_printf(&t, "and %zu consequence%s\n", n, plural_s(n));
	fprintf(out, "::%s", command[severity]);
	put_place(out, o, site);
	put_property(out, l && l->line ? ',' : ' ', "title", title.at);
	fputs("::", out);
	put(out, t.at, false);
	fputc('\n', out);
	text_free(&title);
	text_free(&t);
	free(kernel);
}

static void put_gap(FILE *out, const struct options *o, const char *what, const char *why)
{
	fprintf(out, "::%s title=consan: not checked::", o->allow_unchecked ? "warning" : "error");
	put(out, what, false);
	if (*what)
		fputs(": ", out);
	put(out, why, false);
	fputc('\n', out);
}

void report_github(const struct results *r, const struct options *o, FILE *out)
{
	for (size_t i = 0, n; i < r->finding.n; i += n) {
		n = r->finding.n - i;
		if (group_severity(&r->finding.at[i], &n) != SEV_NOTE || o->print_level == PRINT_INFO)
			put_finding(out, o, &r->finding.at[i], n - 1);
	}
	for (size_t i = 0; i < r->coverage.n; i++) {
		const struct coverage *c = &r->coverage.at[i];
		char *kernel = demangle(c->kernel, NAME_SIMPLE);

		if (*c->unchecked)
			put_gap(out, o, kernel, c->unchecked);
		free(kernel);
	}
	for (size_t i = 0; i < r->remark.n; i++)
		if (report_gap(&r->remark.at[i]))
			put_gap(out, o, "", r->remark.at[i].text);
	if (r->cut)
		put_gap(out, o, "", "records could not be read: findings may be missing");
}
