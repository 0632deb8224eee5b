/* junit: findings as JUnit XML. There is a test case for each kernel, with an error if it was
 * not checked, and one for each finding: errors are failures, warnings and notes are output of
 * a passed test case. */
#include "reports/markup.h"
#include "reports/reports.h"
#include "reports/describe.h"

#include "libconsan/base/base.h"

#include <stdlib.h>

static void begin_case(struct markup *m, const char *name, const char *class)
{
	mu_open(m, "testcase");
	mu_attr(m, "name", "%s", name);
	mu_attr(m, "classname", "%s", class);
}

static void end_case(struct markup *m)
{
	mu_close(m, "testcase");
	mu_newline(m);
}

static void finding(struct markup *m, const struct options *o, const struct finding *f,
	const char *suppressed)
{
	const struct rule_info *rule = rule_get(f->rule);
	char *kernel = demangle(f->kernel, NAME_SIMPLE);
	struct text name = { 0 }, t = { 0 };

	text_printf(&name, "%s ", rule->code);
	describe_places(&name, f);
	report_finding_text(&t, o, f);
	begin_case(m, name.at, kernel);
	if (suppressed) {
		mu_open(m, "skipped");
		mu_attr(m, "message", "suppressed: %s", suppressed);
		mu_empty(m);
	} else if (f->severity == SEV_ERROR) {
		mu_open(m, "failure");
		mu_attr(m, "type", "%s", rule->code);
		mu_attr(m, "message", "%s%s%s", rule->title, *f->edge ? ": " : "", f->edge);
		mu_text(m, "%s", t.at);
		mu_close(m, "failure");
	} else {
		mu_open(m, "system-out");
		mu_text(m, "%s %s: %s\n%s", severity_text[f->severity], rule->code, rule->title,
			t.at);
		mu_close(m, "system-out");
	}
	end_case(m);
	text_free(&name);
	text_free(&t);
	free(kernel);
}

static void kernel_case(struct markup *m, const struct coverage *c)
{
	char *name = demangle(c->kernel, NAME_SIMPLE);

	begin_case(m, "checked", name);
	if (*c->unchecked) {
		mu_open(m, "error");
		mu_attr(m, "type", "unchecked");
		mu_attr(m, "message", "%s", c->unchecked);
		mu_empty(m);
	} else if (report_filtered_out(c)) {
		mu_open(m, "skipped");
		mu_attr(m, "message", "excluded by the filters");
		mu_empty(m);
	}
	end_case(m);
	free(name);
}

static void gap_case(struct markup *m, const char *name, const char *why)
{
	begin_case(m, name, "consan");
	mu_open(m, "error");
	mu_attr(m, "type", "unchecked");
	mu_attr(m, "message", "%s", why);
	mu_empty(m);
	end_case(m);
}

static void property(struct markup *m, const char *name, const char *value)
{
	mu_open(m, "property");
	mu_attr(m, "name", "%s", name);
	mu_attr(m, "value", "%s", value);
	mu_empty(m);
}

static void properties(struct markup *m, const struct results *r)
{
	if (!r->run.n)
		return;
	mu_open(m, "properties");
	for (size_t i = 0; i < r->run.n; i++) {
		property(m, "command", r->run.at[i].command);
		property(m, "options", r->run.at[i].options);
		property(m, "consan", r->run.at[i].version);
	}
	mu_close(m, "properties");
	mu_newline(m);
}

void report_junit(const struct results *r, const struct options *o, FILE *out)
{
	struct markup mu = { .out = out }, *m = &mu;
	size_t unchecked = r->cut > 0, skipped = r->suppressed.n, failures = 0;
	struct report_counts n;
	char cut[80];

	report_count(r, &n);
	unchecked += n.gaps;
	for (size_t i = 0; i < r->coverage.n; i++) {
		unchecked += *r->coverage.at[i].unchecked != 0;
		skipped += report_filtered_out(&r->coverage.at[i]);
	}
	for (size_t i = 0; i < r->finding.n; i++)
		failures += r->finding.at[i].severity == SEV_ERROR;
	mu_trusted(m, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", 39);
	mu_open(m, "testsuites");
	mu_newline(m);
	mu_open(m, "testsuite");
	mu_attr(m, "name", "consan");
	mu_attr(m, "tests", "%zu", r->coverage.n + r->finding.n + r->suppressed.n
		+ n.gaps + (r->cut > 0));
	mu_attr(m, "failures", "%zu", failures);
	mu_attr(m, "errors", "%zu", unchecked);
	mu_attr(m, "skipped", "%zu", skipped);
	if (r->run.n)
		mu_attr(m, "timestamp", "%.19s", r->run.at[0].date); /* without the zone: UTC */
	mu_newline(m);
	properties(m, r);
	for (size_t i = 0; i < r->coverage.n; i++)
		kernel_case(m, &r->coverage.at[i]);
	if (r->cut) {
		snprintf(cut, sizeof cut, "%llu records could not be read", (unsigned long long)r->cut);
		gap_case(m, "records", cut);
	}
	for (size_t i = 0; i < r->remark.n; i++)
		if (report_gap(&r->remark.at[i]))
			gap_case(m, rj_remark_name[r->remark.at[i].kind], r->remark.at[i].text);
	for (size_t i = 0; i < r->finding.n; i++)
		finding(m, o, &r->finding.at[i], NULL);
	for (size_t i = 0; i < r->suppressed.n; i++)
		finding(m, o, &r->suppressed.at[i].f,
			r->suppression.at[r->suppressed.at[i].by].reason);
	mu_close(m, "testsuite");
	mu_newline(m);
	mu_close(m, "testsuites");
	mu_newline(m);
}
