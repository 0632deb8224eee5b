/* report: `consan report`, `consan merge` and `consan suppress`, which read JSON reports. */
#include "internal.h"
#include "shards.h"

#include "libconsan/finding/finding.h"
#include "libconsan/options/options.h"
#include "reports/reports.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct args {
	struct options options;
	VEC(const char *) file;
	VEC(unsigned) only;        /* --finding: positions from 1, a headline with its group; empty: all */
	const char *to, *out, *reason, *rule;
	bool folders;              /* an argument may be a folder of shards */
};

enum { KEY_TO = 0x100, KEY_FINDING, KEY_REASON, KEY_RULE, KEY_OUT };

static bool add_numbers(struct args *a, const char *list)
{
	while (*list) {
		char *end;
		const unsigned long n = strtoul(list, &end, 10);

		if (end == list || !n || n > UINT32_MAX || (*end && *end != ','))
			return false;
		vec_push(&a->only, (unsigned)n);
		list = *end ? end + 1 : end;
	}
	return a->only.n > 0;
}

static void unknown_rule(struct argp_state *state, const char *code)
{
	struct similar near = { .word = code };

	for (unsigned r = 1; r <= rule_count(); r++)
		similar_try(&near, rule_get(r)->code);
	argp_error(state, "--rule=%s: unknown rule%s%s%s (`consan explain' lists all rules)", code,
		near.best ? "; did you mean " : "", near.best ? near.best : "", near.best ? "?" : "");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	enum report_format format;

	switch (key) {
	case ARGP_KEY_INIT:
		if (state->child_inputs)
			state->child_inputs[0] = &a->options;
		return 0;
	case KEY_TO:
		if (!report_format(arg, &format))
			argp_error(state, "--to=%s: must be html, json, sarif, junit, github, "
				"perfetto or text", arg);
		a->to = arg;
		return 0;
	case KEY_FINDING:
		if (!add_numbers(a, arg))
			argp_error(state, "--finding=%s: must be numbers from 1, separated by commas", arg);
		return 0;
	case KEY_REASON:
		if (!arg[strspn(arg, " \t\n")])
			argp_error(state, "--reason: must not be empty");
		a->reason = arg;
		return 0;
	case KEY_RULE:
		if (rule_by_code(arg) == RULE_NONE)
			unknown_rule(state, arg);
		a->rule = arg;
		return 0;
	case KEY_OUT:
		a->out = arg;
		return 0;
	case ARGP_KEY_ARG:
		vec_push(&a->file, arg);
		return 0;
	case ARGP_KEY_END:
		if (!a->file.n)
			argp_error(state, "no file given");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* A folder of shards (--shard-dir): those of one run. */
static bool load_shards(struct results *r, const char *dir, struct consan_err *e)
{
	struct shards s;
	unsigned others = 0;
	bool ok = shards_scan(&s, dir, NULL, &others, e);

	if (ok)
		shards_load(&s, r);
	if (ok && others)
		fprintf(stderr, "consan: %s: the latest of %u runs is taken%s%s\n", dir, others + 1,
			*s.run.run ? ": " : "", s.run.run);
	shards_free(&s);
	return ok;
}

static bool is_dir(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Reads all files into r and keeps the findings that --finding and --rule select. */
static bool load(struct args *a, struct results *r, struct consan_err *e)
{
	size_t kept = 0, head = 0;

	for (size_t i = 0; i < a->file.n; i++)
		if (a->folders && is_dir(a->file.at[i]) ? !load_shards(r, a->file.at[i], e)
				: !results_load(r, a->file.at[i], e))
			return false;
	results_finish(r);
	for (size_t i = 0; i < a->options.suppressions.n; i++)
		if (!suppress_read(r, a->options.suppressions.at[i], e))
			return false;
	if (a->options.suppressions.n)
		suppress_apply(r);
	for (size_t k = 0; k < a->only.n; k++)
		if (a->only.at[k] > r->finding.n)
			return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--finding=%u: the report has %zu findings",
				a->only.at[k], r->finding.n);
	for (size_t i = 0; i < r->finding.n; i++) {
		bool wanted = !a->only.n;

		head = r->finding.at[i].rank ? head : i + 1;
		for (size_t k = 0; k < a->only.n; k++)
			wanted |= a->only.at[k] == i + 1 || a->only.at[k] == head;
		if (a->rule && strcmp(a->rule, rule_get(r->finding.at[i].rule)->code))
			wanted = false;
		if (wanted)
			r->finding.at[kept++] = r->finding.at[i];
		else
			finding_free(&r->finding.at[i]);
	}
	r->finding.n = kept;
	group_findings(r->finding.at, kept); /* what is left of a group has another headline */
	return true;
}

static void free_args(struct args *a, struct results *r)
{
	vec_free(&a->file);
	vec_free(&a->only);
	options_free(&a->options);
	results_free(r);
}

/* Prints the result to stdout in a format (NULL: not), and writes each --report. */
static int show(struct args *a, const char *format)
{
	struct results r = { 0 };
	struct consan_err e = { 0 };
	enum report_format to;
	bool ok = load(a, &r, &e);
	int status;

	if (ok && format && report_format(format, &to)) {
		report_as(&r, &a->options, to, stdout);
		if (ferror(stdout) || fflush(stdout))
			ok = err_set(&e, CONSAN_ERR_IO, 0, 0, "stdout: %s", strerror(errno));
	}
	ok = ok && report_files(&r, &a->options, &e);
	status = ok ? report_exit_status(&r, &a->options, 0) : command_fail(&e);
	free_args(a, &r);
	return status;
}

static const struct argp_option report_own[] = {
	{ "to", KEY_TO, "FORMAT", 0, "Print as html, json, sarif, junit, github, "
		"perfetto or text (the default, unless --report is given)", -1 },
	{ "finding", KEY_FINDING, "N,...", 0, "Only these findings, counted from 1", -1 },
	{ "rule", KEY_RULE, "CODE", 0, "Only findings of this rule", -1 },
	{ 0 },
};
static const struct argp_option merge_own[] = {
	{ "to", KEY_TO, "FORMAT", 0, "Print as html, json (the default, unless --report is "
		"given), sarif, junit, github, perfetto or text", -1 },
	{ 0 },
};
static const struct argp_option suppress_own[] = {
	{ "finding", KEY_FINDING, "N,...", 0, "These findings, counted from 1 as in the report", 0 },
	{ "rule", KEY_RULE, "CODE", 0, "All findings of this rule", 0 },
	{ "reason", KEY_REASON, "TEXT", 0, "Why this is not a problem; required", 0 },
	{ "output", KEY_OUT, "FILE", 0, "Append to FILE instead of writing to stdout", 0 },
	{ 0 },
};

const struct argp_option *command_report_options(const char *command)
{
	if (!strcmp(command, "report"))
		return report_own;
	if (!strcmp(command, "merge"))
		return merge_own;
	return !strcmp(command, "suppress") ? suppress_own : NULL;
}

/* Parses the command line; with: also the options of options.def. */
static bool take(struct args *a, const struct argp *argp, unsigned with, int argc, char **argv)
{
	const struct argp_child children[] = { { options_argp(with), 0, NULL, 0 }, { 0 } };
	struct argp full = *argp;
	struct consan_err e = { 0 };

	options_init(&a->options);
	if (!options_known(with, argp->options, argc, argv, NULL, &e)) {
		command_fail(&e);
		return false;
	}
	full.children = with ? children : NULL;
	argp_parse(&full, argc, argv, 0, NULL, a);
	return true;
}

int command_report(int argc, char **argv)
{
	static const struct argp argp = { report_own, parse, "FILE", "Converts a JSON report that "
		"`consan-run --report=FILE.json' wrote to another format, on stdout or in the files of "
		"--report. Exit status: as of consan-run.", NULL, NULL, NULL };
	struct args a = { 0 };

	if (!take(&a, &argp, OPTIONS_REPORT, argc, argv))
		return EXIT_USAGE;
	return show(&a, a.to ? a.to : a.options.report.n ? NULL : "text");
}

int command_merge(int argc, char **argv)
{
	static const struct argp argp = { merge_own, parse, "FILE|DIR...", "Joins the JSON reports of "
		"several runs, ranks or shards: a finding of several reports appears once, and counts "
		"are added. DIR is a folder of `consan-run --shard-dir': its shards that did not report "
		"count as not checked. Exit status: as of consan-run.", NULL, NULL, NULL };
	struct args a = { .folders = true };

	if (!take(&a, &argp, OPTIONS_REPORT, argc, argv))
		return EXIT_USAGE;
	return show(&a, a.to ? a.to : a.options.report.n ? NULL : "json");
}

/* ---- suppress ---- */

static bool write_entries(const struct args *a, const struct results *r, struct consan_err *e)
{
	FILE *out = a->out ? fopen(a->out, "ae") : stdout;
	struct text t = { 0 };
	bool ok = out != NULL;

	for (size_t i = 0; i < r->finding.n; i++)
		suppress_write(&t, &r->finding.at[i], a->reason);
	if (ok) {
		ok = fwrite(t.n ? t.at : "", 1, t.n, out) == t.n;
		ok = !(a->out ? fclose(out) : fflush(out)) && ok;
	}
	text_free(&t);
	return ok || err_set(e, CONSAN_ERR_IO, 0, 0, "%s: %s", a->out ? a->out : "stdout",
		strerror(errno));
}

int command_suppress(int argc, char **argv)
{
	static const struct argp argp = { suppress_own, parse, "FILE.json", "Writes an entry for "
		"`consan-run --suppressions' for findings of a JSON report.", NULL, NULL, NULL };
	struct results r = { 0 };
	struct args a = { 0 };
	struct consan_err e = { 0 };
	bool ok;

	if (!take(&a, &argp, 0, argc, argv))
		return EXIT_USAGE;
	ok = (a.reason || err_set(&e, CONSAN_ERR_OPTION, 0, 0, "--reason is required"))
		&& (a.only.n || a.rule || err_set(&e, CONSAN_ERR_OPTION, 0, 0,
			"--finding or --rule is required"))
		&& load(&a, &r, &e)
		&& (r.finding.n || err_set(&e, CONSAN_ERR_OPTION, 0, 0, "no finding is selected"))
		&& write_entries(&a, &r, &e);
	free_args(&a, &r);
	return ok ? 0 : command_fail(&e);
}
