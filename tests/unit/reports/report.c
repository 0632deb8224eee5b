/* The text report, exit status and JSON document of constructed findings: codes, sites and
 * structure rather than prose. */
#include "reports/reports.h"
#include "tests/common/find.h"
#include "tests/common/limits.h"
#include "tests/common/sample.h"
#include "libconsan/finding/rule_codes.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static char dir[] = "/tmp/consan-report-XXXXXX";

/* Every test runs in a directory with a source file reduce.cu. */
static void enter(void)
{
	FILE *out;

	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	out = fopen("reduce.cu", "w");
	for (int i = 1; i <= 200; i++)
		fprintf(out, i == 17 ? "\t\ts[t] += s[t + 17];\n" : "\tline(%d);\n", i);
	fclose(out);
}

static void leave(void)
{
	unlink("reduce.cu");
	unlink("out.json");
	unlink("out.txt");
	cr_assert_eq(chdir("/"), 0);
	rmdir(dir);
}

TestSuite(report, .init = enter, .fini = leave);

static struct results sample(void)
{
	struct results r = { 0 };
	struct coverage c = { .kernel = "_Z6reducePfi", .launches = 3, .checked = 3,
		.clusters = 384, .ctas = 384, .events = 4123456, .sites = 1024,
		.sites_executed = 812, .gpu_timed = 2, .gpu_ns = 1234567 };
	struct finding race = sample_race("/somewhere/else/reduce.cu", 17), hang = sample_hang();
	struct finding note = sample_race("reduce.cu", 80);

	note.rule = CS801;
	note.severity = SEV_NOTE;
	results_add_finding(&r, &note);
	results_add_finding(&r, &hang);
	results_add_finding(&r, &race);
	results_add_coverage(&r, &c);
	snprintf(c.kernel, sizeof c.kernel, "odd");
	snprintf(c.unchecked, sizeof c.unchecked, "tcgen05.mma is not supported, odd.ptx:812");
	c.checked = c.gpu_timed = 0;
	results_add_coverage(&r, &c);
	results_finish(&r);
	finding_free(&hang);
	return r;
}

static char *render(const struct results *r, const char *settings, bool color, unsigned width)
{
	struct options o;
	struct consan_err e = { 0 };
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	options_init(&o);
	cr_assert(options_parse(&o, settings, &e), "%s", e.text);
	report_text(r, &o, color, width, out);
	fclose(out);
	options_free(&o);
	return text;
}

Test(report, both_sides_missing_edge_and_fix)
{
	struct results r = sample();
	char *t = render(&r, "demangle=simple", false, 0);

	cr_assert(has(t, "error CS102  "));
	cr_assert(has(t, "reduce.cu:17 / reduce.cu:21\n"));
	cr_assert(has(t, "/somewhere/else/reduce.cu:17:5"));
	cr_assert(has(t, "inlined at /somewhere/else/reduce.cu:117:5"));
	cr_assert(has(t, "thread (44,0,0)"));
	cr_assert(has(t, "warp 1 lane 12"));
	cr_assert(has(t, "block (3,0,0)"));
	cr_assert(has(t, "tile+0x80 (shared 0x80)"));
	cr_assert(has(t, "128 B at shared 0x80"));
	cr_assert(has(t, "ld.shared.f32 %f1, [%r1+128];"));
	cr_assert(has(t, "[prog.ptx:170]"));
	cr_assert(has(t, "--seed=7"));
	cr_assert(has(t, "1,024 occurrences, 8 clusters; "));
	cr_assert(has(t, "kernel   reduce, launch 3"));
	cr_assert(has(t, "no barrier between the write and the read"));
	cr_assert(has(t, "put __syncthreads() after the write"));
	free(t);
	results_free(&r);
}

/* A race with `n` further ones at the same write, and a note at it. */
static struct results group_of(unsigned n)
{
	struct results r = { 0 };
	struct finding f = sample_race("reduce.cu", 17);
	struct coverage c = { .kernel = "_Z6reducePfi", .launches = 1, .checked = 1 };

	f.order = 100;
	results_add_finding(&r, &f);
	for (unsigned i = 1; i <= n; i++) {
		f.order++;
		f.side[0].site = sample_site("reduce.cu", 30 + i, 0, "ld.shared.f32 %f1, [%r1];");
		results_add_finding(&r, &f);
	}
	f.rule = CS901;
	f.severity = SEV_NOTE;
	results_add_finding(&r, &f);
	results_add_coverage(&r, &c);
	results_finish(&r);
	return r;
}

Test(report, consequences_have_a_line_each)
{
	struct results r = group_of(2);
	struct report_counts n;
	char *t = render(&r, "", false, 0);

	report_count(&r, &n);
	cr_expect_eq(n.errors, 1);
	cr_expect_eq(n.notes, 0);
	cr_expect_eq(n.consequences, 3);
	cr_expect(has(t, "\n  and 2 consequences (--consequences"));
	cr_expect(has(t, "\n    error CS102  read-write race  reduce.cu:31 / reduce.cu:21\n"));
	cr_expect(has(t, "\n    error CS102  read-write race  reduce.cu:32 / reduce.cu:21\n"));
	cr_expect_not(has(t, "note CS901"));
	cr_expect(has(t, "SUMMARY consan: 1 error, 0 warnings, 0 notes, 3 consequences (CS102); "));
	free(t);
	t = render(&r, "print-level=info", false, 0);
	cr_expect(has(t, "\n  and 3 consequences (--consequences"));
	cr_expect(has(t, "\n    note CS901  "));
	free(t);
	t = render(&r, "consequences", false, 0);
	cr_expect(has(t, "\nerror CS102  read-write race  reduce.cu:32 / reduce.cu:21\n  kernel "));
	free(t);
	results_free(&r);
}

Test(report, many_consequences_are_cut)
{
	struct results r = group_of(40);
	char *t = render(&r, "", false, 0);

	cr_expect(has(t, "and 40 consequences"));
	cr_expect(has(t, "... and 28 more"));
	free(t);
	results_free(&r);
}

/* The group of a suppressed headline has another one. */
Test(report, a_suppressed_headline)
{
	struct results r = group_of(2);
	struct result_suppression s = { .rule = base_strdup("CS102"),
		.source = base_strdup("reduce.cu:17"), .reason = base_strdup("test"),
		.where = base_strdup("x:1") };
	struct report_counts n;

	vec_push(&r.suppression, s);
	suppress_apply(&r);
	report_count(&r, &n);
	cr_expect_eq(r.suppressed.n, 1);
	cr_expect_eq(n.errors, 1);
	cr_expect_eq(n.consequences, 2);
	cr_expect_eq(r.finding.at[0].rank, 0);
	cr_expect_eq(site_get(r.finding.at[0].side[0].site)->loc->line, 31);
	results_free(&r);
}

Test(report, caret_is_under_the_column)
{
	struct results r = sample();
	char *t = render(&r, "", false, 0);
	const char *line = strstr(t, "   17 | "), *caret;

	cr_assert_not_null(line);
	/* column 5 of "\t\ts[t] +=" is the first t */
	caret = memrchr(line, 't', (size_t)(strchr(line, ']') - line));
	line = memrchr(t, '\n', (size_t)(line - t));
	cr_assert_eq(caret - line, strchr(strchr(line + 1, '\n'), '^') - strchr(line + 1, '\n'));
	free(t);
	t = render(&r, "no-source", false, 0);
	cr_assert_not(has(t, " 17 | "));
	free(t);
	results_free(&r);
}

Test(report, a_missing_source_is_reported_and_ptx_shown)
{
	struct results r = sample();
	char *t;

	cr_assert_eq(unlink("reduce.cu"), 0);
	t = render(&r, "", false, 0);
	cr_expect(has(t, "source file not found") && has(t, "ld.shared.f32 %f1, [%r1+128];"));
	free(t);
	t = render(&r, "no-source", false, 0);
	cr_expect_not(has(t, "source file not found"));
	free(t);
	results_free(&r);
}

/* Moves the sides of the first finding to a module of this name; without line information if lines
 * is false. */
static void move(struct results *r, const char *module, bool lines)
{
	for (unsigned i = 0; i < r->finding.at[0].nsides; i++) {
		struct site s = *site_get(r->finding.at[0].side[i].site);

		s.module = module;
		s.loc = lines ? s.loc : NULL;
		r->finding.at[0].side[i].site = site_add(&s);
	}
}

/* Only of a module in the program's file. */
Test(report, a_source_of_long_lines)
{
	struct results r = sample();
	FILE *out = fopen("reduce.cu", "w");
	char *t;

	for (int i = 1; i <= 20; i++) {
		for (int k = 0; k < 500000; k++)
			fputs("\xc3\xa9", out);
		fputc('\n', out);
	}
	fclose(out);
	cpu_limit(60); /* what is cut does not take the square of the length */
	t = render(&r, "", false, 100);
	cr_assert(has(t, " \xc3\xa9\xc3\xa9") && !strstr(t, "\xc3\n"));
	free(t);
	results_free(&r);
}

Test(report, a_source_newer_than_the_program_is_reported)
{
	struct results r = sample();
	struct result_process p = { .program = base_strdup("old"), .device = base_strdup("GPU") };
	char *t;

	move(&r, "old: module 1", true);

	fclose(fopen("old", "w"));
	vec_push(&r.process, p);
	t = render(&r, "", false, 0);
	cr_assert_not(has(t, "\n  reduce.cu was changed"));
	free(t);
	cr_assert_eq(utimes("old", (struct timeval[2]){ { 1000, 0 }, { 1000, 0 } }), 0);
	t = render(&r, "", false, 0);
	cr_assert(has(t, "reduce.cu was changed"));
	free(t);
	move(&r, "old: JIT module 2", true);
	t = render(&r, "", false, 0);
	cr_assert_not(has(t, "reduce.cu was changed"));
	free(t);
	move(&r, "liba.so: module 3", true);
	t = render(&r, "", false, 0);
	cr_assert_not(has(t, "reduce.cu was changed"));
	free(t);
	unlink("old");
	results_free(&r);
}

/* Only of a module in which nothing has a line. */
Test(report, missing_line_information_is_said)
{
	struct results r = sample();
	char *t = render(&r, "", false, 0);

	cr_expect_not(has(t, "-lineinfo"));
	free(t);
	move(&r, "prog: module 1", false);
	t = render(&r, "", false, 0);
	cr_expect(has(t, "module 1 has no line information: compile with -lineinfo"));
	free(t);
	move(&r, "prog: JIT module 2", false);
	t = render(&r, "", false, 0);
	cr_expect(has(t, "JIT compiler"));
	free(t);
	move(&r, "prog.ptx", false); /* where other findings have lines */
	t = render(&r, "", false, 0);
	cr_expect_not(has(t, "-lineinfo"), "%s", t);
	free(t);
	results_free(&r);
}

Test(report, hang_lists_the_blocked_warps)
{
	struct results r = sample();
	char *t = render(&r, "", false, 0);

	cr_assert(has(t, "CS703"));
	cr_assert(has(t, "5 warps are blocked:"));
	cr_assert(has(t, "mbarrier full[1] (shared 0x28): in phase 3 (parity 1), "
		"1 of 2 arrivals pending, tx-count -4096 B"));
	cr_assert(has(t, "<- warps 0-3 at "));
	cr_assert(has(t, "named barrier 2: "));
	cr_assert(has(t, "<- warp 4 at "));
	free(t);
	results_free(&r);
}

Test(report, summary_and_coverage)
{
	struct results r = sample();
	char *t = render(&r, "demangle=simple", false, 100);
	const char *last = strstr(t, "SUMMARY consan: ");

	cr_assert_not_null(last);
	cr_assert(has(last, "2 errors, 0 warnings, 1 note (CS102 CS703); 1 of 2 kernels checked\n"));
	cr_assert_eq(count(last, "\n"), 1, "the summary is one line");
	cr_assert(has(t, "NOT CHECKED"));
	cr_assert(has(t, "812/1024"));
	cr_assert(has(t, "4.1 M"));
	cr_assert_eq(count(t, "1.235 ms on the GPU with recording, in 2 launches\n"), 1);
	cr_assert_not(has(t, "CS801"), "notes are hidden by default");
	free(t);
	t = render(&r, "print-level=info", false, 0);
	cr_assert(has(t, "note CS801"));
	cr_assert(has(t, "(CS102 CS703 CS801)"));
	free(t);
	results_free(&r);
}

Test(report, bank_conflicts)
{
	struct results r = sample();
	char *text = render(&r, "", false, 100);

	cr_expect(!has(text, "wavefronts"), "%s", text);
	free(text);
	for (uint32_t line = 10; line < 13; line++)
		results_add_bank_use(&r, &(struct bank_use){
			.site = sample_site("/a/b/reduce.cu", line, 5, "ld.shared.f32 %f1, [%r1];"),
			.worst = line == 11 ? 32 : 1, .accesses = 100, .wavefronts = line == 11 ? 3200 : 100,
			.least = 100 });
	text = render(&r, "", false, 100);
	cr_expect(has(text, "reduce.cu:111 ld.shared.f32"), "%s", text); /* the caller's line */
	cr_expect(has(text, "32-way"), "%s", text);
	cr_expect_eq(count(text, " 3100 "), 2, "%s", text); /* that place, and the total */
	cr_expect(has(text, " 3400 "), "%s", text);
	free(text);
	text = render(&r, "print-limit=1", false, 100);
	cr_expect_eq(count(text, "ld.shared.f32"), 1 + 1, "%s", text); /* the race has one */
	free(text);
	results_free(&r);
}

Test(report, limits_prefix_colors)
{
	struct results r = sample();
	char *t = render(&r, "print-limit=1 prefix=======", false, 60);

	cr_assert(has(t, "CS102"));
	cr_assert_not(has(t, "error CS703"));
	cr_assert(has(t, "(CS102 CS703)"), "all are counted");
	cr_assert_eq(count(t, "\n"), count(t, "======"), "each line has the prefix");
	cr_assert_not(has(t, "\033"));
	free(t);
	t = render(&r, "", true, 80);
	cr_assert(has(t, "\033[1;31m"));
	free(t);
	results_free(&r);
}

Test(report, lines_keep_to_the_width)
{
	struct results r = sample();
	char *t = render(&r, "strip-paths", false, 80);
	char *line = strtok(t, "\n");

	for (; line; line = strtok(NULL, "\n"))
		if (strncmp(line, "SUMMARY", 7))
			cr_assert_leq(strlen(line), 80u, "%s", line);
	free(t);
	results_free(&r);
}

Test(report, quiet_when_clean)
{
	struct results r = { 0 };
	struct coverage c = { .kernel = "k", .launches = 1, .checked = 1 };
	char *t;

	results_add_coverage(&r, &c);
	results_finish(&r);
	t = render(&r, "quiet", false, 0);
	cr_assert_str_eq(t, "");
	free(t);
	t = render(&r, "", false, 0);
	cr_assert(has(t, "SUMMARY consan: 0 errors, 0 warnings, 0 notes; 1 of 1 kernel checked\n"));
	free(t);
	results_free(&r);
	r = (struct results){ 0 };
	results_finish(&r);
	t = render(&r, "quiet", false, 0);
	cr_assert(has(t, "SUMMARY consan: "), "that no kernel was launched is reported even so");
	free(t);
	results_free(&r);
}

Test(report, exit_status)
{
	static const struct { enum result_remark_kind kind; int status; } remarks[] = {
		{ RESULT_REMARK_note, 0 }, { RESULT_REMARK_fallback_not_tried, 0 },
		{ RESULT_REMARK_no_ptx, 0 }, { RESULT_REMARK_bad_module, 0 },
		{ RESULT_REMARK_not_loaded, 67 }, { RESULT_REMARK_call_unsupported, 67 },
	};
	struct results clean = { 0 }, bad = sample(), none = { 0 }, filtered = { 0 };
	struct coverage c = { .kernel = "k", .launches = 1, .checked = 1 };
	struct options o;
	struct consan_err e = { 0 };

	options_init(&o);
	results_add_coverage(&clean, &c);
	c.checked = 0;
	c.skipped = 1;
	results_add_coverage(&filtered, &c);
	cr_assert_eq(report_exit_status(&clean, &o, 0), 0);
	cr_assert_eq(report_exit_status(&clean, &o, 3), 3);
	for (size_t i = 0; i < ARRAY_SIZE(remarks); i++) {
		struct results gap = { 0 };

		c.skipped = 0;
		c.checked = 1;
		results_add_coverage(&gap, &c);
		results_add_remark(&gap, remarks[i].kind, "x");
		cr_assert_eq(report_exit_status(&gap, &o, 0), remarks[i].status, "remark %zu", i);
		cr_assert_eq(report_exit_status(&gap, &o, 2), 2);
		results_free(&gap);
	}
	cr_assert_eq(report_exit_status(&bad, &o, 0), 66);
	cr_assert_eq(report_exit_status(&none, &o, 0), 67);
	cr_assert_eq(report_exit_status(&none, &o, 1), 1);
	cr_assert_eq(report_exit_status(&filtered, &o, 0), 67, "nothing at all was checked");
	cr_assert(options_parse(&o, "shard=2/3", &e));
	cr_assert_eq(report_exit_status(&filtered, &o, 0), 0, "other shards have the launches");
	cr_assert_eq(report_exit_status(&none, &o, 0), 67, "nothing was launched");
	cr_assert(options_parse(&o, "shard=1/1", &e));
	cr_assert_eq(report_exit_status(&filtered, &o, 0), 67, "there are no other shards");
	clean.cut = 1;
	cr_assert_eq(report_exit_status(&clean, &o, 0), 67, "records are missing");
	cr_assert(options_parse(&o, "error-exitcode=0", &e));
	cr_assert_eq(report_exit_status(&bad, &o, 0), 67);
	cr_assert(options_parse(&o, "allow-unchecked", &e));
	cr_assert_eq(report_exit_status(&bad, &o, 0), 0);
	cr_assert_eq(report_exit_status(&none, &o, 0), 0);
	cr_assert_eq(report_exit_status(&bad, &o, 5), 5);
	cr_assert(options_parse(&o, "error-exitcode=9", &e));
	cr_assert_eq(report_exit_status(&bad, &o, 5), 9);
	options_free(&o);
	results_free(&clean);
	results_free(&bad);
	results_free(&none);
	results_free(&filtered);
}

Test(report, json_document)
{
	struct results r = sample();
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	const json_t *f;
	json_t *all;

	report_json(&r, out);
	fclose(out);
	all = json_loads(text, 0, NULL);
	cr_assert_not_null(all);
	cr_assert_eq(json_integer_value(json_object_get(all, "consan_report")), REPORT_VERSION);
	cr_assert_eq(json_integer_value(json_object_get(json_object_get(all, "summary"),
		"errors")), 2);
	cr_assert_eq(json_array_size(json_object_get(all, "findings")), 3);
	f = json_array_get(json_object_get(all, "findings"), 0);
	cr_assert_str_eq(json_string_value(json_object_get(f, "rule")), "CS102");
	f = json_array_get(json_object_get(f, "sides"), 1);
	f = json_array_get(json_object_get(json_object_get(f, "site"), "source"), 0);
	cr_assert_eq(json_integer_value(json_object_get(f, "line")), 21);
	cr_assert_eq(json_array_size(json_object_get(all, "coverage")), 2);
	cr_assert_not_null(json_object_get(json_object_get(all, "rules"), "CS703"));
	json_decref(all);
	free(text);
	results_free(&r);
}

Test(report, files)
{
	struct results r = sample();
	struct options o;
	struct consan_err e = { 0 };
	struct stat st;

	options_init(&o);
	cr_assert(options_parse(&o, "report=out.json report=out.txt log-file=/dev/null", &e));
	cr_assert(report_write(&r, &o, &e), "%s", e.text);
	cr_assert_eq(stat("out.json", &st), 0);
	cr_assert_eq(stat("out.txt", &st), 0);
	cr_assert(options_parse(&o, "report=/nonexistent/x.json", &e));
	cr_assert_not(report_write(&r, &o, &e));
	cr_assert_eq(e.code, CONSAN_ERR_IO);
	options_free(&o);
	results_free(&r);
}

Test(report, source_is_found_by_the_end_of_its_path)
{
	char *s = report_source_line("/build/machine/src/reduce.cu", 17);

	cr_assert_str_eq(s, "\t\ts[t] += s[t + 17];");
	free(s);
	cr_assert_null(report_source_line("reduce.cu", 201));
	cr_assert_null(report_source_line("reduce.cu", 0));
	cr_assert_null(report_source_line("none.cu", 1));
}

/* Debug information may name any file; a report that quotes it may be passed on. */
Test(report, sources_outside_of_the_roots_are_not_quoted)
{
	struct options o;
	struct consan_err e = { 0 };

	options_init(&o);
	cr_assert_eq(symlink("/etc/passwd", "innocent.cu"), 0);
	cr_assert_eq(rename("reduce.cu", ".hidden.cu"), 0);
	report_source_roots(&o);
	cr_expect_null(report_source_line("/etc/passwd", 1));
	cr_expect(report_source_outside("/etc/passwd"));
	cr_expect_null(report_source_line("innocent.cu", 1));
	cr_expect_null(report_source_line(".hidden.cu", 17));
	cr_expect_not(report_source_outside("none.cu"));
	cr_assert_eq(mkdir("src", 0777), 0);
	cr_assert_eq(rename(".hidden.cu", "src/reduce.cu"), 0);
	cr_assert(options_parse(&o, "source-root=src", &e));
	report_source_roots(&o);
	cr_expect_not_null(report_source_line("/build/reduce.cu", 17));
	cr_expect_null(report_source_line("../outside.cu", 1));
	options_free(&o);
}
