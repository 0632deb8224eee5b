/* kernels: runs the bundled kernels, and tests/cases/cxx/ in CUDA C++, under consan-run on the
 * CPU executor and in emulated GPU mode. The unmodified kernels have no findings, and each
 * planted bug is found at its lines, as one group of findings that its own rule heads (groups.def
 * has the others). --list-bugs prints the planted bugs; comments "@bug NAME
 * RULE" after or above the code mark their lines. Compares rule codes and lines, not texts. */
#include "bug_edits.h"
#include "emulated.h"
#include "late.h"
#include "tests/common/limits.h"
#include "tests/common/shell.h"
#include "specimen.h"
#include "libconsan/base/base.h"
#include "tests/unit/reports/proof.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BUGS 600

static const struct { const char *program; unsigned groups; const char *headline; } grouped[] = {
#define GROUPED(program, groups, headline, why) { program, groups, headline },
#include "groups.def"
#undef GROUPED
};

static const char *const kernels[] = { "kernels/hgemm/hgemm", "kernels/ring/ring",
	"kernels/wgmma_gemm/wgmma_gemm", "kernels/attention/fa2_split_q",
	"kernels/attention/fa2_split_kv", "kernels/attention/fa2_shared_kv",
	"kernels/attention/fa2_shared_qkv", "kernels/attention/fa2_tiling_qk",
	"kernels/mlp/fused_mlp",
	"kernels/attention/hopper", "kernels/attention/mesh_kv", "kernels/attention/mesh_mlo",
	"kernels/tcgen05_gemm/tcgen05_gemm", "kernels/tcgen05_gemm/scaled_gemm",
	"kernels/tcgen05_gemm/clc_gemm", "kernels/attention/blackwell", "cases/cxx/libcuxx",
	"kernels/allreduce/allreduce", "kernels/pipeline/pipeline",
	"kernels/distributed/gather_gemm", "kernels/distributed/ring_attention" };

/* Rules that are only raised with an option */
static const struct { const char *rule, *option; } enabled[] = {
	{ "CS607", "--knob=tcgen05_fence=1" },
};

static const char *option_of(const char *rule)
{
	for (size_t i = 0; i < ARRAY_SIZE(enabled); i++)
		if (!strcmp(rule, enabled[i].rule))
			return enabled[i].option;
	return "";
}

/* Other configurations of the kernels, which must have no findings either */
static const struct { const char *kernel, *args; } forms[] = {
	{ "kernels/hgemm/hgemm", "--stages=2 --m=136 --n=264 --k=200" },
	{ "kernels/hgemm/hgemm", "--stages=3" },
	{ "kernels/hgemm/hgemm", "--stages=5 --m=264 --band=2" },
	{ "kernels/attention/fa2_split_q", "--stages=2 --n=200" },
	{ "kernels/attention/fa2_split_q", "--d=128 --n=72 --causal=1" },
	{ "kernels/attention/fa2_split_kv", "--stages=2 --n=200" },
	{ "kernels/attention/fa2_split_kv", "--d=128 --n=72 --causal=1" },
	{ "kernels/attention/fa2_shared_kv", "--stages=2 --n=200 --smem=padded" },
	{ "kernels/attention/fa2_shared_kv", "--d=128 --n=72 --causal=1" },
	{ "kernels/attention/fa2_shared_qkv", "--stages=2 --n=200 --smem=naive" },
	{ "kernels/attention/fa2_shared_qkv", "--d=128 --n=72 --causal=1" },
	{ "kernels/mlp/fused_mlp", "--m=200 --n=264 --k=328 --ctas=1" },
	{ "kernels/mlp/fused_mlp", "--form=independent --m=200 --n=264 --k=328 --ctas=1" },
	{ "kernels/mlp/fused_mlp", "--form=epilogue --m=200 --n=264 --k=328 --ctas=1" },
	{ "kernels/attention/fa2_tiling_qk", "--stages=2 --n=72 --d=256" },
	{ "kernels/attention/fa2_tiling_qk", "--stages=4 --n=72 --d=1024 --causal=1" },
	{ "kernels/attention/hopper", "--d=128 --n=200 --causal=1" },
	{ "kernels/attention/hopper", "--cluster=2 --n=300" },
	{ "kernels/attention/hopper", "--cluster=2 --n=600 --causal=1" },
	{ "kernels/attention/hopper", "--cluster=4 --n=520 --d=128" },
	{ "kernels/attention/hopper", "--cluster=4 --n=1024 --causal=1 --slack=0" },
	{ "kernels/attention/hopper", "--d=128 --slack=1" },
	{ "kernels/attention/blackwell", "--n=100" },
	{ "kernels/attention/blackwell", "--n=700 --causal=1 --grid=2" },
	{ "kernels/attention/blackwell", "--d=128 --n=300 --h=2" },
	{ "kernels/attention/blackwell", "--ctas=2 --n=300 --h=3" },
	{ "kernels/attention/blackwell", "--ctas=2 --d=128 --n=800 --causal=1" },
	{ "kernels/attention/mesh_kv", "--ranks=8 --n=1000" },
	{ "kernels/attention/mesh_kv", "--rank_axis=1 --causal=1" },
	{ "kernels/attention/mesh_mlo", "--ranks=8 --n=1000" },
	{ "kernels/attention/mesh_mlo", "--rank_axis=1" },
	{ "kernels/wgmma_gemm/wgmma_gemm", "--cluster=1 --m=200 --n=520 --k=200" },
	{ "kernels/wgmma_gemm/wgmma_gemm", "--cluster=1x2 --m=200 --n=520 --ctas=2" },
	{ "kernels/wgmma_gemm/wgmma_gemm", "--cluster=2x2 --m=264 --n=1032 --ctas=4" },
	{ "kernels/wgmma_gemm/wgmma_gemm", "--cluster=4x1 --warpgroups=1" },
	{ "kernels/wgmma_gemm/wgmma_gemm", "--cluster=1x4 --warpgroups=1 --fallback=1x2" },
	{ "kernels/tcgen05_gemm/tcgen05_gemm", "--group=1 --cluster=1 --m=200 --n=1000 --k=584 --ctas=1" },
	{ "kernels/tcgen05_gemm/tcgen05_gemm", "--group=1 --cluster=4 --n=1032 --ctas=4" },
	{ "kernels/tcgen05_gemm/tcgen05_gemm", "--group=2 --cluster=2 --m=520 --n=520 --k=968 --ctas=2" },
	{ "kernels/tcgen05_gemm/tcgen05_gemm", "--cluster=4 --fallback=2 --m=300 --n=1800 --k=200 --ctas=4" },
	{ "kernels/tcgen05_gemm/tcgen05_gemm", "--cluster=8" },
	{ "kernels/tcgen05_gemm/scaled_gemm", "--group=1 --m=200 --n=520 --k=1056 --ctas=1" },
	{ "kernels/tcgen05_gemm/scaled_gemm", "--format=nvfp4 --group=1 --m=200 --n=520 --k=3104 --ctas=1" },
	{ "kernels/tcgen05_gemm/scaled_gemm", "--format=nvfp4 --n=520 --k=3104 --ctas=2" },
	{ "kernels/tcgen05_gemm/clc_gemm", "--group=1 --m=600 --n=1000 --k=400" },
	{ "kernels/allreduce/allreduce", "--shots=two --n=1000" },
	{ "kernels/allreduce/allreduce", "--ranks=4" },
	{ "kernels/allreduce/allreduce", "--ranks=3 --shots=two --n=600" },
	{ "kernels/pipeline/pipeline", "--form=graph" },
	{ "kernels/distributed/gather_gemm", "--ranks=4 --products=3" },
	{ "kernels/distributed/ring_attention", "--ranks=4 --rows=40" },
	{ "kernels/fallback/fallback", "" }, { "kernels/fallback/fallback", "--form=counted" },
	{ "kernels/fallback/fallback", "--form=scratch" }, { "kernels/fallback/fallback", "--form=dsmem" },
	{ "kernels/fallback/fallback", "--form=atomic" }, { "kernels/fallback/fallback", "--form=rank" },
	{ "kernels/fallback/fallback", "--form=count" }, { "kernels/fallback/fallback", "--form=mask" },
};

struct planted {
	char kernel[64], bug[64], rule[16], source[128], args[128]; /* bug "": clean */
};

/* Reads up to `max` planted bugs of a kernel. */
static size_t list_bugs(const char *kernel, struct planted *to, size_t max)
{
	char *line, *save = NULL;
	size_t n = 0;

	shell("%s/%s --list-bugs", build_dir(), kernel);
	for (line = strtok_r(output, "\n", &save); line && n < max; line = strtok_r(NULL, "\n", &save)) {
		char *at = line, *bug = strsep(&at, "\t"), *rule = strsep(&at, "\t");

		snprintf(to[n].source, sizeof to->source, "%s", strsep(&at, "\t"));
		snprintf(to[n].kernel, sizeof to->kernel, "%s", kernel);
		snprintf(to[n].bug, sizeof to->bug, "%s", bug);
		snprintf(to[n].rule, sizeof to->rule, "%s", rule);
		snprintf(to[n++].args, sizeof to->args, "%s", strsep(&at, "\t"));
	}
	return n;
}

/* Is the site, or a call where it is inlined, on line `line` of file? */
static bool site_on(const json_t *site, const char *file, unsigned line)
{
	const json_t *places = json_object_get(site, "source");

	for (size_t i = 0; i < json_array_size(places); i++) {
		const json_t *at = json_array_get(places, i);
		const char *name = json_string_value(json_object_get(at, "file"));
		const size_t n = name ? strlen(name) : 0;

		if (n >= strlen(file) && !strcmp(name + n - strlen(file), file) &&
			json_integer_value(json_object_get(at, "line")) == line)
			return true;
	}
	return false;
}

/* Is a side of the finding, or a waiting thread of a hang, on this line? */
static bool finding_on(const json_t *finding, const char *file, unsigned line)
{
	const json_t *sides = json_object_get(finding, "sides");
	const json_t *waiters = json_object_get(finding, "waiters");

	for (size_t i = 0; i < json_array_size(sides); i++)
		if (site_on(json_object_get(json_array_get(sides, i), "site"), file, line))
			return true;
	for (size_t i = 0; i < json_array_size(waiters); i++) {
		const json_t *who = json_object_get(json_array_get(waiters, i), "who");

		if (site_on(json_object_get(who, "site"), file, line))
			return true;
	}
	return false;
}

static bool reported(const json_t *report, const char *rule, const char *file, unsigned line)
{
	const json_t *findings = json_object_get(report, "findings");

	for (size_t i = 0; i < json_array_size(findings); i++) {
		const json_t *f = json_array_get(findings, i);

		if (!strcmp(json_string_value(json_object_get(f, "rule")), rule) &&
			finding_on(f, file, line))
			return true;
	}
	return false;
}

/* The lines marked "@bug NAME RULE", at most MARKS. */
#define MARKS 16
static unsigned marked_lines(const struct planted *p, unsigned to[MARKS])
{
	char mark[128];
	char *text;
	unsigned line = 1, n = 0;
	bool due = false;

	snprintf(mark, sizeof mark, "@bug %s %s", p->bug, p->rule);
	text = read_file(p->source);
	for (const char *at = text; *at; at += line_length(at) + (at[line_length(at)] != 0), line++) {
		const char *m = strstr(at, mark);

		due |= m && m < at + line_length(at);
		if (!due || !strncmp(at + strspn(at, "\t"), "//", 2))
			continue; /* a comment line marks the code below it */
		due = false;
		if (n < MARKS)
			to[n++] = line;
	}
	cr_expect(n > 0, "%s: no line is marked \"%s\"", p->source, mark);
	free(text);
	return n;
}

/* Each of these lines is one of a finding of the rule. */
static void judge_bug(const struct planted *p, const json_t *report, const unsigned *line,
	unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cr_expect(reported(report, p->rule, p->source, line[i]), "%s --bug=%s: no %s at %s:%u",
			p->kernel, p->bug, p->rule, p->source, line[i]);
}

/* Programs of several operations: edits of one kernel repair few of their bugs, and only the
 * executor's backend compares accesses of operations and of grids that run at the same time. */
static bool is_of_operations(const struct planted *p)
{
	const char *kernel = strchr(p->kernel, '/') + 1;

	return !strcmp(kernel, "allreduce/allreduce") || !strcmp(kernel, "pipeline/pipeline")
		|| !strncmp(kernel, "distributed/", 12);
}

/* The edit is at least as good as the table says. */
static void judge_edit(const char *program, const struct planted *p, const json_t *report,
	const unsigned *line, unsigned n)
{
	static const char *const what[] = { "unknown", "NO_LINE", "LINE", "CLEAN" };
	const struct bug_edit is = bug_edit_found(report, p->source, line, n);
	const struct bug_edit expected = bug_edit_of(program);

	cr_expect(expected.what != EDIT_UNKNOWN, "BUG_EDIT(\"%s\", %s, %s) is not in bug_edits.def",
		program, what[is.what], is.where == NEAR ? "NEAR" : "FAR");
	cr_expect(is.what >= expected.what && (is.what > expected.what || is.where >= expected.where),
		"%s: the edit is %s %s, not %s %s", program, what[is.what],
		is.where == NEAR ? "NEAR" : "FAR", what[expected.what],
		expected.where == NEAR ? "NEAR" : "FAR");
}

static bool is_note(const json_t *finding)
{
	return !strcmp(json_string_value(json_object_get(finding, "severity")), "note");
}

/* The findings of a bug are one group and its own rule is the headline, unless groups.def says
 * otherwise. Groups of notes count if the bug itself is reported as a note. */
static void judge_groups(const char *program, const char *rule, const json_t *report)
{
	const json_t *findings = json_object_get(report, "findings"), *first = json_array_get(findings, 0);
	const char *head = first ? json_string_value(json_object_get(first, "rule")) : "nothing";
	const bool notes = first && is_note(first);
	json_int_t last = -1;
	unsigned n = 0, expected = 1;

	for (size_t i = 0; i < ARRAY_SIZE(grouped); i++)
		if (!strcmp(grouped[i].program, program)) {
			expected = grouped[i].groups;
			rule = grouped[i].headline;
		}
	for (size_t i = 0; i < json_array_size(findings); i++) {
		const json_t *f = json_array_get(findings, i);
		const json_int_t group = json_integer_value(json_object_get(f, "group"));

		n += group != last && (notes || !is_note(f));
		if (notes || !is_note(f))
			last = group;
	}
	cr_expect(n == expected && !strcmp(head, rule), "%s: %u groups headed by %s, not %u by %s",
		program, n, head, expected, rule);
}

/* Options for the reports of the other formats: "--report=BASE.html ..." */
static void add_reports(struct text *cmd, const char *base)
{
	static const char *const suffix[] = { "html", "sarif", "xml" };

	for (size_t i = 0; i < ARRAY_SIZE(suffix); i++)
		text_printf(cmd, "--report=%s.%s ", base, suffix[i]);
}

static void judge_reports(const struct planted *p, const char *base)
{
	struct text bad = { 0 };

	proof_reports(&bad, base);
	cr_expect(!bad.n, "%s --bug=%s: %s", p->kernel, p->bug, bad.at);
	text_free(&bad);
}

/* Returns the JSON report. all: writes and checks the reports of all formats, and tries edits of
 * bugs for which one is known to be clean. */
static json_t *run_kernel(const struct planted *p, const char *options, bool all, int *status)
{
	char out[] = "/tmp/consan-case-XXXXXX.json";
	char *base;
	const char *build = build_dir();
	struct text written = { 0 };
	char program[sizeof p->kernel + sizeof p->bug];
	json_error_t why;
	json_t *report;
	bool tried;

	close(mkstemps(out, 5));
	base = base_strndup(out, sizeof out - sizeof ".json");
	text_add(&written, "", 0);
	if (all)
		add_reports(&written, base);
	snprintf(program, sizeof program, "%s %s", strchr(p->kernel, '/') + 1, p->bug);
	tried = all && bug_edit_of(program).what == CLEAN;
	*status = shell("%s/consan-run --quiet --devices=%d --log-file=/dev/null --verify-fixes=%s --report=%s "
		"%s %s -- %s/%s %s %s%s 2>&1", build, strstr(p->args, "--ranks") ? 4 : 2,
		tried ? "yes" : "no", out, written.at, options, build,
		p->kernel, p->args, *p->bug ? "--bug=" : "", p->bug);
	report = json_load_file(out, 0, &why);
	cr_assert(report, "%s --bug=%s: no report: %s\n%s", p->kernel, p->bug, why.text, output);
	if (all)
		judge_reports(p, base);
	unlink(out);
	free(base);
	text_free(&written);
	return report;
}

ParameterizedTestParameters(kernels, bug)
{
	struct planted *list = cr_malloc(MAX_BUGS * sizeof *list);
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		n += list_bugs(kernels[i], list + n, MAX_BUGS - n);
	for (size_t i = n; getenv("BUG") && i-- > 0;) /* this one only, of each kernel that has it */
		if (strcmp(list[i].bug, getenv("BUG")))
			list[i] = list[--n];
	return cr_make_param_array(struct planted, list, n);
}

/* The findings for the comparison with emulated GPU mode: without trials, as a verified edit
 * decides which wait heads a hang. */
static struct found found_untried(const struct planted *p, const json_t *report)
{
	const json_t *f;
	size_t i;
	int status;

	json_array_foreach(json_object_get(report, "findings"), i, f)
		if (json_object_get(f, "waiters")) {
			json_t *untried = run_kernel(p, option_of(p->rule), false, &status);
			struct found k = found_of_report(untried);

			json_decref(untried);
			return k;
		}
	return found_of_report(report);
}

/* The findings in the events of the run, if operations complete as late as in GPU mode */
static struct found found_late(const struct planted *p)
{
	char base[] = "/tmp/consan-late-XXXXXX", from[64], to[64], out[64], save[128];
	struct found k;
	json_t *report;
	int status;

	cr_assert(mkdtemp(base));
	snprintf(from, sizeof from, "%s/events", base);
	snprintf(to, sizeof to, "%s/late", base);
	snprintf(out, sizeof out, "%s/out.json", base);
	snprintf(save, sizeof save, "--save=%s %s", from, option_of(p->rule));
	json_decref(run_kernel(p, save, false, &status));
	late_copy(from, to);
	shell("%s/consan replay --log-file=/dev/null --report=%s %s %s 2>&1", build_dir(), out,
		option_of(p->rule), to);
	report = json_load_file(out, 0, NULL);
	cr_assert(report, "%s --bug=%s: %s", p->kernel, p->bug, output);
	k = found_of_report(report);
	json_decref(report);
	unlink(from);
	unlink(to);
	unlink(out);
	rmdir(base);
	return k;
}

static void judge_late(const struct planted *p, const struct found *emulated)
{
	struct found late = found_late(p);

	cr_expect_eq(late.n, emulated->n, "%s --bug=%s", p->kernel, p->bug);
	for (size_t i = 0; i < late.n; i++)
		cr_expect(found_has(emulated, late.at[i]), "%s --bug=%s: emulated GPU mode lacks %s", p->kernel,
			p->bug, late.at[i]);
	found_drop(&late);
}

static void judge_seed(const struct planted *p, const char *program, const struct found *cpu,
	const struct found *emulated)
{
	char options[100];
	struct found seeded;
	json_t *report;
	int status;

	snprintf(options, sizeof options, "--seed=%u %s", emulated_seed(program), option_of(p->rule));
	report = run_kernel(p, options, false, &status);
	seeded = found_of_report(report);
	emulated_judge_seed(program, cpu, emulated, &seeded);
	found_drop(&seeded);
	json_decref(report);
}

/* What only the cpu backend finds, a replay in GPU mode finds. */
static void judge_replay(const struct planted *p, const char *program, const struct found *cpu)
{
	char options[160];
	struct found replayed;
	json_t *report;
	int status;

	snprintf(options, sizeof options, "--backend=gpu-emulated --gpu-then-cpu --gpu-then-ctas=0 "
		"--gpu-then-launches=0 %s", option_of(p->rule));
	report = run_kernel(p, options, false, &status);
	replayed = found_of_report(report);
	emulated_judge_replay(program, cpu, &replayed);
	found_drop(&replayed);
	json_decref(report);
}

ParameterizedTest(struct planted *p, kernels, bug, .timeout = TEST_LIMIT)
{
	const char *kernel = strchr(p->kernel, '/') + 1;
	char program[sizeof p->kernel + sizeof p->bug], options[100];
	int status;
	json_t *report = run_kernel(p, option_of(p->rule), true, &status), *emulation;
	struct found cpu = found_untried(p, report), emulated;
	unsigned line[MARKS];
	const unsigned n = marked_lines(p, line);

	judge_bug(p, report, line, n);
	snprintf(program, sizeof program, "%s %s", kernel, p->bug);
	if (!is_of_operations(p))
		judge_edit(program, p, report, line, n);
	judge_groups(program, p->rule, report);
	if (is_of_operations(p)) {
		found_drop(&cpu);
		json_decref(report);
		return;
	}
	snprintf(options, sizeof options, "--backend=gpu-emulated %s", option_of(p->rule));
	emulation = run_kernel(p, options, false, &status);
	emulated = found_of_report(emulation);
	emulated_judge(program, p->rule, &cpu, &emulated);
	if (emulated_is_late(program))
		judge_late(p, &emulated);
	if (emulated_lacks(program))
		judge_replay(p, program, &cpu);
	if (emulated_seed(program))
		judge_seed(p, program, &cpu, &emulated);
	found_drop(&emulated);
	found_drop(&cpu);
	json_decref(emulation);
	json_decref(report);
}

/* The rows of groups.def are existing bugs, at most one in twenty. */
Test(kernels, groups_of_most_bugs)
{
	static struct planted list[MAX_BUGS];
	unsigned found = 0;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		n += list_bugs(kernels[i], list + n, MAX_BUGS - n);
	for (size_t i = 0; i < n; i++) {
		char program[sizeof list->kernel + sizeof list->bug];

		snprintf(program, sizeof program, "%s %s", strchr(list[i].kernel, '/') + 1, list[i].bug);
		for (size_t k = 0; k < ARRAY_SIZE(grouped); k++)
			found += !strcmp(grouped[k].program, program);
	}
	cr_expect_eq(found, ARRAY_SIZE(grouped), "%u of the rows of groups.def are bugs", found);
	cr_expect(20 * ARRAY_SIZE(grouped) <= n, "%zu exceptions of %zu", ARRAY_SIZE(grouped), n);
}

/* The rows of bug_edits.def are existing bugs; of most an edit is clean, or the line is named. */
Test(kernels, edits_of_most_bugs)
{
	enum { CLEAN_PERCENT = 58, NEAR_PERCENT = 82, LINE_PERCENT = 97 };
	static struct planted list[MAX_BUGS];
	unsigned rows = 0, found = 0, is_clean = 0, is_near = 0, has_line = 0;
	const struct bug_edit *row;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		n += list_bugs(kernels[i], list + n, MAX_BUGS - n);
	for (size_t i = n; i-- > 0;)
		if (is_of_operations(&list[i]))
			list[i] = list[--n];
	for (; (row = bug_edit_row(rows)); rows++) {
		is_clean += row->what == CLEAN;
		is_near += row->what == CLEAN || row->where == NEAR;
		has_line += row->what >= LINE;
		for (size_t i = 0; i < n; i++) {
			char program[sizeof list->kernel + sizeof list->bug];

			snprintf(program, sizeof program, "%s %s", strchr(list[i].kernel, '/') + 1,
				list[i].bug);
			found += !strcmp(row->program, program);
		}
	}
	cr_expect_eq(found, rows, "%u of the %u rows are bugs", found, rows);
	cr_expect_eq(rows, n, "%zu planted bugs", n);
	cr_expect(100 * is_clean >= CLEAN_PERCENT * n && 100 * is_near >= NEAR_PERCENT * n
		&& 100 * has_line >= LINE_PERCENT * n, "%u clean, %u clean or near, %u with a line, of %zu",
		is_clean, is_near, has_line, n);
}

/* The rows of emulated.def are existing bugs and specimens. */
Test(kernels, emulated_programs_exist)
{
	static struct planted list[MAX_BUGS];
	const char *program, *bug;

	for (size_t k = 0; (program = emulated_program(k)); k++) {
		char path[160];
		size_t n, i = 0;

		bug = strchr(program, ' ');
		snprintf(path, sizeof path, bug ? "kernels/%.*s" : "tests/cases/%.*s.ptx",
			(int)strcspn(program, " "), program);
		if (!bug) {
			cr_expect(!access(path, R_OK), "no %s", path);
			continue;
		}
		n = list_bugs(path, list, MAX_BUGS);
		while (i < n && strcmp(list[i].bug, bug + 1))
			i++;
		cr_expect_lt(i, n, "no %s", program);
	}
}

/* No known multicast pipeline satisfies K6, see policy.def. */
#define STRICT "--strict --knob=async_across_ctas=0 "

/* Others are strict but for what the kernel relies on */
static const char *strict_of(const char *kernel)
{
	if (!strncmp(kernel, "cases/cxx/", 10)) /* cooperative groups and libcu++ do not satisfy A12 */
		return STRICT "--knob=collectives_order_nothing=0";
	if (!strcmp(kernel, "kernels/attention/blackwell")) /* P before S in the same columns: 9.4 only */
		return STRICT "--knob=tcgen05_pipelining=2";
	if (!strcmp(kernel, "kernels/wgmma_gemm/wgmma_gemm") || !strcmp(kernel, "kernels/attention/hopper"))
		return STRICT "--knob=scope_as_written=0"; /* releases of slots that were only read */
	return STRICT;
}

/* The unmodified program passes its own check and has no findings. */
ParameterizedTestParameters(kernels, clean)
{
	const size_t n = ARRAY_SIZE(kernels) + ARRAY_SIZE(forms);
	struct planted *list = cr_calloc(n, sizeof *list), *at = list;

	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++, at++)
		snprintf(at->kernel, sizeof at->kernel, "%s", kernels[i]);
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++, at++) {
		snprintf(at->kernel, sizeof at->kernel, "%s", forms[i].kernel);
		snprintf(at->args, sizeof at->args, "%s", forms[i].args);
	}
	return cr_make_param_array(struct planted, list, n);
}

ParameterizedTest(struct planted *p, kernels, clean, .timeout = TEST_LIMIT)
{
	const char *const options[] = { "", strict_of(p->kernel),
		"--async=early --reads=oldest", "--seed=7 --reads=random",
		"--backend=gpu-emulated" };

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		int status;
		json_t *report = run_kernel(p, options[i], false, &status);
		const json_t *sum = json_object_get(report, "summary");

		cr_expect_eq(status, 0, "%s %s %s: status %d", p->kernel, p->args, options[i], status);
		cr_expect_eq(json_integer_value(json_object_get(sum, "errors")), 0, "%s %s",
			p->kernel, options[i]);
		cr_expect_eq(json_integer_value(json_object_get(sum, "warnings")), 0, "%s %s",
			p->kernel, options[i]);
		json_decref(report);
	}
}

/* The conflicts that --bank-conflicts counts for an opcode, over all sites */
static uint64_t conflicts(const json_t *report, const char *opcode, uint64_t *accesses)
{
	const json_t *banks = json_object_get(report, "bank_conflicts");
	uint64_t n = 0;

	*accesses = 0;
	for (size_t i = 0; i < json_array_size(banks); i++) {
		const json_t *u = json_array_get(banks, i);
		const char *ptx = json_string_value(json_object_get(json_object_get(u, "site"), "ptx"));

		if (!strstr(ptx, opcode))
			continue;
		*accesses += (uint64_t)json_integer_value(json_object_get(u, "accesses"));
		n += (uint64_t)json_integer_value(json_object_get(u, "wavefronts"));
		n -= (uint64_t)json_integer_value(json_object_get(u, "least"));
	}
	return n;
}

/* Swizzled and padded tiles have no conflicts. In naive tiles, 8 rows share a bank: 8 wavefronts
 * for each of the 4 matrices of ldmatrix. */
Test(kernels, bank_conflicts, .timeout = TEST_LIMIT)
{
	static const struct { const char *kernel, *args; uint64_t each; } run[] = {
		{ "kernels/attention/fa2_split_q", "--smem=swizzled", 0 },
		{ "kernels/attention/fa2_split_q", "--smem=padded --stages=2", 0 },
		{ "kernels/attention/fa2_split_q", "--smem=naive", 28 },
		{ "kernels/attention/fa2_split_kv", "--d=128", 0 },
		{ "kernels/attention/fa2_shared_kv", "", 0 },
		{ "kernels/attention/fa2_shared_qkv", "", 0 },
		{ "kernels/attention/fa2_shared_qkv", "--smem=naive", 28 },
		{ "kernels/attention/fa2_tiling_qk", "", 0 },
		{ "kernels/attention/fa2_tiling_qk", "--d=256", 0 },
		{ "kernels/hgemm/hgemm", "", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(run); i++) {
		struct planted p = { 0 };
		uint64_t accesses, n;
		json_t *report;
		int status;

		snprintf(p.kernel, sizeof p.kernel, "%s", run[i].kernel);
		snprintf(p.args, sizeof p.args, "%s", run[i].args);
		report = run_kernel(&p, "--bank-conflicts", false, &status);
		n = conflicts(report, "ldmatrix", &accesses);
		cr_expect(accesses > 0, "%s %s", p.kernel, p.args);
		cr_expect_eq(n, accesses * run[i].each, "%s %s: %lu conflicts of %lu ldmatrix",
			p.kernel, p.args, (unsigned long)n, (unsigned long)accesses);
		json_decref(report);
	}
}

/* --list-bugs lists at least 24 bugs. */
Test(kernels, enough_bugs)
{
	static struct planted list[MAX_BUGS];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		n += list_bugs(kernels[i], list, MAX_BUGS);
	cr_expect(n >= 24, "%zu planted bugs", n);
}
