/* formats: the JSON, HTML, SARIF and JUnit reports of constructed findings: structure, escaping,
 * sizes, reading back, merging and suppressing. Long because all formats are tested with the same
 * findings. */
#include "libconsan/base/progress.h"
#include "libconsan/finding/rule_codes.h"
#include "libconsan/finding/suppress.h"
#include "reports/reports.h"
#include "history_sample.h"
#include "proof.h"
#include "tests/common/find.h"
#include "tests/common/sample.h"
#include "tests/common/shell.h"

#include <criterion/criterion.h>
#include <time.h>

static char dir[] = "/tmp/consan-formats-XXXXXX";

static void enter(void)
{
	cr_assert_not_null(mkdtemp(dir));
}

static void leave(void)
{
	cr_assert_eq(shell("rm -r %s", dir), 0);
}

TestSuite(formats, .init = enter, .fini = leave);

static const char *in_dir(const char *name)
{
	static char path[4][128];
	static unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, 128, "%s/%s", dir, name);
	return p;
}

static struct results sample(void)
{
	struct results r = { 0 };
	struct coverage c = { .kernel = "_Z6reducePfi", .launches = 3, .checked = 3, .clusters = 384,
		.ctas = 384, .events = 4123456, .sites = 1024, .sites_executed = 812,
		.gpu_timed = 2, .gpu_ns = 1234567 };

	sample_three(&r);
	results_add_coverage(&r, &c);
	snprintf(c.kernel, sizeof c.kernel, "odd");
	snprintf(c.unchecked, sizeof c.unchecked, "tcgen05.mma is not supported");
	c.checked = 0;
	results_add_coverage(&r, &c);
	results_add_process(&r, (struct result_process){ 1, base_strdup("prog"), base_strdup("H100") });
	results_add_remark(&r, RESULT_REMARK_note, "a remark");
	results_finish(&r);
	return r;
}

static char *render(const struct results *r, enum report_format to)
{
	struct options o;
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	options_init(&o);
	report_as(r, &o, to, out);
	fclose(out);
	options_free(&o);
	return text;
}

static void write_all(const struct results *r)
{
	static const char *const name[] = { "x.json", "x.html", "x.sarif", "x.xml" };
	struct options o;
	struct consan_err e = { 0 };

	options_init(&o);
	for (size_t i = 0; i < ARRAY_SIZE(name); i++)
		cr_assert(options_set(&o, "report", in_dir(name[i]), &e));
	cr_assert(report_files(r, &o, &e), "%s", e.text);
	options_free(&o);
}

static void expect_sound(const struct results *r)
{
	struct text bad = { 0 };

	write_all(r);
	proof_reports(&bad, in_dir("x"));
	cr_expect(!bad.n, "%s", bad.at);
	text_free(&bad);
}

Test(formats, all_are_sound)
{
	struct results r = sample(), none = { 0 };

	expect_sound(&r);
	results_finish(&none);
	expect_sound(&none);
	results_free(&r);
	results_free(&none);
}

Test(formats, a_page_has_every_part)
{
	struct results r = sample();
	char *t = render(&r, REPORT_html);

	cr_expect_eq(count(t, "<article "), 3);
	cr_expect(has(t, "id=\"f1\"") && has(t, "href=\"#f1\""));
	cr_expect(has(t, "data-r=\"CS102\"") && has(t, "data-s=\"note\""));
	cr_expect(has(t, "no barrier between the write and the read"));
	cr_expect(has(t, "class=\"tl\"") && has(t, "class=\"miss\""), "a timeline, the missing edge");
	cr_expect(has(t, "class=\"map\"") && has(t, "class=\"wait\""));
	cr_expect(has(t, "4096 of 4096 B"), "mbarrier state history");
	cr_expect(has(t, "Source file not found"));
	cr_expect(has(t, "%f1"), "PTX is shown");
	cr_expect(has(t, "tcgen05.mma is not supported") && has(t, "a remark"));
	free(t);
	results_free(&r);
}

/* Warps 0-3 wait for full[1], on which warp 4 arrives, and warp 4 for empty, on which they arrive. */
Test(formats, a_hang_is_a_graph_of_barriers)
{
	struct finding hang = sample_hang();
	struct results r = { 0 };
	struct history_mbarrier *m;
	char *t;

	hang.waiter[4].on = (struct finding_barrier){ .kind = "mbarrier", .name = "empty",
		.addr = 0x30, .expected = 4, .pending = 4 };
	hang.history = sample_history(3);
	m = hang.history->mbarrier = realloc(hang.history->mbarrier, 2 * sizeof *m);
	m[0].addr = 0x28;
	m[1] = (struct history_mbarrier){ .name = "empty", .addr = 0x30, .live = true,
		.arriver = { { 0, 2 } }, .narrivers = 1 };
	hang.history->nmbarriers = 2;
	results_add_finding(&r, &hang);
	results_finish(&r);
	t = render(&r, REPORT_html);
	cr_expect_eq(count(t, "<g class=\"node"), 2);
	cr_expect_eq(count(t, "<g class=\"node hit\""), 1, "the barrier of the finding");
	cr_expect_eq(count(t, "class=\"edge\""), 2);
	cr_expect_not(has(t, "class=\"edge stub\"") || has(t, "node end"));
	cr_expect_eq(count(t, ">warps 0-3<"), 1);
	cr_expect_eq(count(t, ">warp 4<"), 1);
	free(t);
	results_free(&r);
	m[0].narrivers = 0; /* no warp has arrived on full[1] */
	r = (struct results){ 0 };
	results_add_finding(&r, &hang);
	results_finish(&r);
	t = render(&r, REPORT_html);
	cr_expect_eq(count(t, "class=\"edge\""), 1);
	cr_expect_eq(count(t, "class=\"edge stub\""), 1);
	free(t);
	results_free(&r);
	finding_free(&hang);
}

/* A warp that diverged may wait at two places. */
Test(formats, blocked_warps_are_counted_once)
{
	struct finding hang = sample_hang();

	cr_expect_eq(blocked_warps(&hang), 5);
	hang.waiter[4].who.warp = 0;
	cr_expect_eq(blocked_warps(&hang), 4);
	hang.waiter[4].who.ctaid[0] = 1;
	cr_expect_eq(blocked_warps(&hang), 5);
	finding_free(&hang);
}

Test(formats, sarif_and_junit_have_fix_and_hint)
{
	struct results r = sample();
	char *sarif = render(&r, REPORT_sarif), *junit = render(&r, REPORT_junit);
	const char *const fix = rule_get(CS102)->fix;

	cr_expect(has(sarif, ". Fix: ") && has(sarif, ". Hint: put __syncthreads() after"));
	cr_expect(has(sarif, "earlier: write ") && has(sarif, "later: read "));
	cr_expect(has(junit, "\nfix: ") && has(junit, "\nhint: put __syncthreads() after"));
	cr_expect(has(junit, "later: read ") && has(junit, "\nearlier: write "));
	cr_expect(has(junit, "waiting: warp 4, block (0,0,0) at ring.cu:55 on named barrier 2: "));
	cr_expect(has(sarif, fix));
	free(sarif);
	free(junit);
	results_free(&r);
}

/* A module that was not loaded: an error in formats for machines. */
Test(formats, gaps_are_errors)
{
	struct results r = sample();
	char *sarif, *junit;

	results_add_remark(&r, RESULT_REMARK_not_loaded, "module 2: only machine code");
	sarif = render(&r, REPORT_sarif);
	junit = render(&r, REPORT_junit);
	cr_expect(has(sarif, "module 2: only machine code"));
	cr_expect(has(junit, " errors=\"2\""), "one kernel and one module");
	cr_expect(has(junit, "message=\"module 2: only machine code\""));
	free(sarif);
	free(junit);
	expect_sound(&r);
	results_free(&r);
}

Test(formats, bank_conflicts_have_a_table)
{
	struct results r = sample();
	char *t = render(&r, REPORT_html);

	cr_expect_not(has(t, "id=\"banks\""));
	free(t);
	results_add_bank_use(&r, &(struct bank_use){ .site = sample_site("a<b>.cu", 12, 5,
		"ld.shared.f32 %f1, [%r1];"), .worst = 32, .accesses = 100, .wavefronts = 3200,
		.least = 100 });
	t = render(&r, REPORT_html);
	cr_expect(has(t, "id=\"banks\"") && has(t, ">3100<") && has(t, ">32-way<"));
	free(t);
	expect_sound(&r);
	results_free(&r);
}

/* Of two blocks: a map of the buffer, and a timeline that names the blocks. */
Test(formats, global_races_have_drawings)
{
	struct finding f = sample_race("reduce.cu", 17);
	struct results r = { 0 };
	char *t;

	for (unsigned i = 0; i < 2; i++) {
		f.side[i].space = SP_GLOBAL;
		f.side[i].addr = 0x7f0000001040;
		f.side[i].buffer = 0x7f0000001000;
		f.side[i].buffer_bytes = 8192;
		f.side[i].ctaid[0] = i ? 2 : 5;
		f.side[i].cta = 0;
	}
	f.history = sample_history(40);
	f.history->other = 1;
	for (uint32_t i = 20; i < 40; i++)
		f.history->step[i].cta = f.history->step[i].peer = 1;
	results_add_finding(&r, &f);
	finding_free(&f);
	results_finish(&r);
	t = render(&r, REPORT_html);
	cr_expect_eq(count(t, "class=\"map\""), 1);
	cr_expect(has(t, "class=\"bx\"") && has(t, "class=\"bx earlier\""));
	cr_expect(has(t, "8 KiB at 0x7f0000001000"));
	cr_expect(has(t, "(5,0,0) ") && has(t, "(2,0,0) "));
	cr_expect(has(t, "class=\"gap\"") && has(t, "class=\"miss\""));
	cr_expect(has(t, ">detail: "));
	free(t);
	expect_sound(&r);
	for (unsigned i = 0; i < 2; i++) {
		r.finding.at[0].side[i].addr = f.side[i].buffer;
		r.finding.at[0].side[i].bytes = (uint32_t)f.side[i].buffer_bytes;
	}
	t = render(&r, REPORT_html);
	cr_expect(has(t, ">all: ") && !has(t, ">detail: "), "the whole buffer is in conflict");
	free(t);
	results_free(&r);
}

/* A load of one warp's half window in a product's columns: the cells of both in the map, and both
 * commits that have arrived on the mbarrier. */
Test(formats, tensor_memory_has_a_map_of_lanes_and_columns)
{
	struct finding f = sample_race("reduce.cu", 17);
	struct results r = { 0 }, back = { 0 };
	struct consan_err e = { 0 };
	char *t;

	for (unsigned i = 0; i < 2; i++) {
		f.side[i].space = SP_TMEM;
		f.side[i].addr = 96;
		f.side[i].bytes = 4;
		f.side[i].cells = i ? (struct finding_cells){ { UINT32_MAX, UINT32_MAX, UINT32_MAX,
			UINT32_MAX }, 64, 64 } : (struct finding_cells){ { 0xffff, 0xffff }, 96, 8 };
	}
	f.history = sample_history(40);
	f.history->mbarrier[0].recent[1] = (struct history_phase){ .phase = 1, .arrivals = 2,
		.commits = 2, .committers = 5 };
	results_add_finding(&r, &f);
	finding_free(&f);
	results_finish(&r);
	expect_sound(&r);
	cr_assert(results_load(&back, in_dir("x.json"), &e), "%s", e.text);
	results_finish(&back);
	t = render(&back, REPORT_html);
	cr_expect(has(t, "lanes 0-15,32-47 of columns 96-103"));
	cr_expect(has(t, "lanes 0-127 of columns 64-127"));
	cr_expect_eq(count(t, "class=\"ba\""), 4, "two runs of lanes in both maps");
	cr_expect_eq(count(t, "class=\"ba earlier\""), 2);
	cr_expect(has(t, "2 arrivals by tcgen05.commit of CTA 0, 2"));
	free(t);
	results_free(&r);
	results_free(&back);
}

/* Puts a property that SARIF does not define into each object of v except property bags and
 * maps; returns how often the schema check accepts it. */
static unsigned unnoticed(const json_t *schema, const json_t *all, json_t *v, const char *name)
{
	unsigned n = 0;
	const char *key;
	json_t *at;
	char *why;
	size_t i;

	if (json_is_array(v))
		json_array_foreach(v, i, at)
			n += unnoticed(schema, all, at, name);
	if (!json_is_object(v) || !strcmp(name, "properties") || !strcmp(name, "partialFingerprints"))
		return n;
	json_object_set_new(v, "surprise", json_integer(1));
	why = schema_check_value(schema, all);
	n += !*why;
	cr_expect(*why, "in %s", name);
	free(why);
	json_object_del(v, "surprise");
	json_object_foreach(v, key, at)
		n += unnoticed(schema, all, at, key);
	return n;
}

Test(formats, sarif_has_only_properties_of_its_schema)
{
	struct results r = sample();
	struct consan_err e = { 0 };
	json_t *schema, *all;
	char *why = NULL;

	cr_assert(suppress_parse(&r, "s", "CS703\n reason: a test\n", &e), "%s", e.text);
	suppress_apply(&r);
	write_all(&r);
	schema = schema_load("tests/unit/reports/sarif.json", &why);
	all = schema_load(in_dir("x.sarif"), &why);
	cr_assert(schema && all, "%s", why);
	why = schema_check_value(schema, all);
	cr_assert_str_empty(why);
	cr_expect_eq(unnoticed(schema, all, all, ""), 0);
	free(why);
	json_decref(schema);
	json_decref(all);
	results_free(&r);
}

/* Names that contain markup or are not valid UTF-8. */
Test(formats, names_are_escaped)
{
	static const char evil[] = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
		"\"'&]]>\x01\x1b[31m\xff\xc0\xe2\x80\xae";
	struct results r = { 0 };
	struct coverage c = { .launches = 1, .checked = 1 };
	struct finding f = sample_race(evil, 17);
	char *t;

	snprintf(f.kernel, sizeof f.kernel, "%s", evil);
	snprintf(f.edge, sizeof f.edge, "%s", evil);
	snprintf(f.side[0].variable, sizeof f.side[0].variable, "%.60s", evil);
	snprintf(c.kernel, sizeof c.kernel, "%s", evil);
	f.history = sample_history(20);
	snprintf(f.history->mbarrier[0].name, 64, "%.60s", evil);
	snprintf(f.history->buffer[0].name, 64, "%.60s", evil);
	results_add_finding(&r, &f);
	finding_free(&f);
	results_add_coverage(&r, &c);
	results_add_process(&r, (struct result_process){ 1, base_strdup(evil), base_strdup("H100") });
	results_add_launch(&r, (struct result_launch){ .kernel = base_strdup(evil),
		.status = base_strdup(evil), .state = LAUNCH_DONE });
	results_add_remark(&r, RESULT_REMARK_note, evil);
	results_finish(&r);
	t = render(&r, REPORT_html);
	cr_expect_eq(count(t, "<script"), 1, "only our own");
	cr_expect_not(has(t, "<img"));
	cr_expect_null(markup_check(t, true));
	free(t);
	t = render(&r, REPORT_junit);
	cr_expect_null(markup_check(t, false));
	cr_expect_not(has(t, "\x1b") || has(t, "\xff"));
	free(t);
	expect_sound(&r);
	results_free(&r);
}

Test(formats, json_is_read_back_and_merged)
{
	struct results r = sample(), back = { 0 }, both = { 0 };
	char *first, *again;
	struct consan_err e = { 0 };

	r.cut = 1;
	expect_sound(&r);
	write_all(&r);
	cr_assert(results_load(&back, in_dir("x.json"), &e), "%s", e.text);
	results_finish(&back);
	first = render(&r, REPORT_json);
	again = render(&back, REPORT_json);
	cr_expect_str_eq(first, again);
	free(first);
	free(again);
	for (int i = 0; i < 2; i++)
		cr_assert(results_load(&both, in_dir("x.json"), &e), "%s", e.text);
	results_finish(&both);
	cr_expect_eq(both.finding.n, r.finding.n);
	cr_expect_eq(both.cut, 2);
	cr_expect_eq(both.finding.at[0].seen, 2 * r.finding.at[0].seen);
	cr_expect_eq(both.coverage.at[0].launches, 2 * r.coverage.at[0].launches);
	cr_expect_eq(both.coverage.at[0].gpu_timed, 4);
	cr_expect_eq(both.coverage.at[0].gpu_ns, 2 * 1234567);
	results_free(&r);
	results_free(&back);
	results_free(&both);
}

static int load_text(const char *text, struct consan_err *e)
{
	struct results r = { 0 };
	FILE *out = fopen(in_dir("bad.json"), "w");
	bool ok;

	fputs(text, out);
	fclose(out);
	*e = (struct consan_err){ 0 };
	ok = results_load(&r, in_dir("bad.json"), e);
	results_free(&r);
	return ok ? 0 : e->code;
}

Test(formats, malformed_json_is_located)
{
	static const char *const other[] = {
		"[]", "{}", "{\"consan_report\": 99}", "{\"consan_report\": 2, \"findings\": 3}",
		"{\"consan_report\": 2, \"findings\": [4], \"coverage\": []}",
		"{\"consan_report\": 2, \"findings\": [{\"rule\": \"CS999\"}], \"coverage\": []}",
		"{\"consan_report\": 2, \"findings\": [], \"coverage\": [{}]}",
		"{\"consan_report\":2,\"findings\":[],\"coverage\":[],\"suppressed\":[{\"where\":\"x\"}]}",
	};
	struct consan_err e;

	cr_expect_eq(load_text("{\"consan_report\": 2,\n  oops}", &e), CONSAN_ERR_FORMAT);
	cr_expect_eq(e.line, 2);
	cr_expect_geq(e.col, 3);
	for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
		cr_expect_eq(load_text(other[i], &e), CONSAN_ERR_FORMAT, "%s", other[i]);
		cr_expect(has(e.text, "bad.json"), "%s", e.text);
	}
}

/* ---- suppressions ---- */

static unsigned left_by(const char *entries, uint64_t *unused)
{
	struct results r = sample();
	struct consan_err e = { 0 };
	unsigned n;

	cr_assert(suppress_parse(&r, "s", entries, &e), "%s", e.text);
	suppress_apply(&r);
	*unused = 0;
	for (size_t i = 0; i < r.suppression.n; i++)
		*unused += !r.suppression.at[i].matched;
	cr_expect_eq(r.finding.n + r.suppressed.n, 3);
	expect_sound(&r);
	n = (unsigned)r.finding.n;
	results_free(&r);
	return n;
}

Test(formats, suppressions)
{
	static const struct { const char *text; unsigned left; uint64_t unused; } entry[] = {
		{ "# nothing\n", 3, 0 },
		{ "CS102\n reason: r\n", 2, 0 },
		{ "CS102 # a comment\n\treason: r # another\n", 2, 0 },
		{ "*\n reason: r\n", 0, 0 },
		{ "CS102\n kernel: reduce*\n reason: r\n", 2, 0 },
		{ "CS102\n kernel: _Z6reduce*\n reason: r\n", 2, 0 },
		{ "CS102\n kernel: other\n reason: r\n", 3, 1 },
		{ "CS102\n source: reduce.cu:17\n reason: r\n", 2, 0 },
		{ "CS102\n source: *.cu:117\n reason: inlined at\n", 2, 0 },
		{ "CS102\n source: reduce.cu:18\n reason: r\n", 3, 1 },
		{ "CS102\n symbol: tile\n reason: r\n", 2, 0 },
		{ "*\n symbol: full*\n reason: r\n", 2, 0 },
		{ "CS102\n symbol: load\n reason: a function\n", 2, 0 },
		{ "CS102\n reason: r\nCS703\n reason: r\nCS101\n reason: r\n", 1, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(entry); i++) {
		uint64_t unused;

		cr_expect_eq(left_by(entry[i].text, &unused), entry[i].left, "%s", entry[i].text);
		cr_expect_eq(unused, entry[i].unused, "%s", entry[i].text);
	}
}

Test(formats, malformed_suppressions_are_located)
{
	static const struct { const char *text; int line, col; } bad[] = {
		{ "CS999\n reason: r\n", 1, 1 }, { " kernel: x\n", 1, 2 },
		{ "CS102\n\nCS703\n reason: r\n", 1, 1 }, { "CS102\n kernl: x\n", 2, 2 },
		{ "CS102\n  kernel:\n", 2, 10 }, { "CS102\n kernel x\n", 2, 2 },
		{ "CS102\n reason: a\n reason: b\n", 3, 2 }, { "CS102", 1, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct results r = { 0 };
		struct consan_err e = { 0 };

		cr_expect_not(suppress_parse(&r, "s", bad[i].text, &e), "%s", bad[i].text);
		cr_expect_eq(e.line, bad[i].line, "%s: %s", bad[i].text, e.text);
		cr_expect_eq(e.col, bad[i].col, "%s: %s", bad[i].text, e.text);
		results_free(&r);
	}
}

Test(formats, a_written_entry_suppresses_its_finding)
{
	struct results r = sample();
	struct text t = { 0 };
	struct consan_err e = { 0 };

	suppress_write(&t, &r.finding.at[0], "because\nit is # fine");
	cr_assert(suppress_parse(&r, "s", t.at, &e), "%s", e.text);
	suppress_apply(&r);
	cr_expect_eq(r.finding.n, 2);
	cr_expect_eq(r.suppressed.n, 1);
	text_free(&t);
	results_free(&r);
}

/* ---- sizes and speed ---- */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct results many(unsigned n, uint32_t steps)
{
	struct results r = { 0 };

	for (unsigned i = 0; i < n; i++) {
		struct finding f = sample_race("reduce.cu", i + 1);

		snprintf(f.kernel, sizeof f.kernel, "kernel%u", i % 7);
		f.rule = i % 3 ? CS102 : CS101;
		f.history = sample_history(steps);
		results_add_finding(&r, &f);
		finding_free(&f);
	}
	results_finish(&r);
	return r;
}

Test(formats, a_thousand_findings_stay_small)
{
	struct results r = many(1000, 64);
	char *t = render(&r, REPORT_html);

	cr_expect_lt(strlen(t), 5u << 20);
	cr_expect_eq(count(t, "<article "), 1000);
	cr_expect(has(t, "left out to keep this page small"));
	cr_log_info("1000 findings: %zu kB", strlen(t) >> 10);
	free(t);
	results_free(&r);
}

/* Merging takes linear time. */
Test(formats, a_hundred_thousand_findings_merge)
{
	enum { MANY = 100000 };
	struct results r = many(MANY, 0);
	struct finding f;
	double from;

	cr_assert_eq(r.finding.n, MANY);
	from = seconds();
	for (unsigned i = 0; i < MANY; i++) {
		results_copy_finding(&f, &r.finding.at[i]);
		results_add_finding(&r, &f);
		finding_free(&f);
	}
	cr_expect_lt(seconds() - from, 5.0);
	cr_expect_eq(r.finding.n, MANY);
	cr_expect_eq(r.finding.at[MANY / 2].seen, 2 * 1024);
	results_free(&r);
}

Test(formats, a_hundred_thousand_steps_are_quick)
{
	struct results r = many(10, 10000);
	double from = seconds();
	char *t = render(&r, REPORT_html);

	cr_expect_lt(seconds() - from, 1.0);
	cr_expect_lt(strlen(t), 2u << 20);
	free(t);
	results_free(&r);
}

Test(formats, a_full_disk_is_reported)
{
	struct results r = sample();
	struct options o;
	struct consan_err e = { 0 };

	options_init(&o);
	cr_assert_eq(symlink("/dev/full", in_dir("full.html")), 0);
	cr_assert(options_set(&o, "report", in_dir("full.html"), &e));
	cr_expect_not(report_files(&r, &o, &e));
	cr_expect_eq(e.code, CONSAN_ERR_IO);
	options_free(&o);
	results_free(&r);
}

/* ---- progress ---- */

Test(formats, progress_line)
{
	struct progress p = { .begun = 1 };
	struct text t = { 0 };

	progress_launch(&p, "a very long name of a kernel that does not fit the line \033[31m whole", 40);
	p.done = 10;
	p.findings = 2;
	cr_expect_not(progress_line(&p, p.begun + 500000000, 79, &t));
	cr_assert(progress_line(&p, p.begun + 2000000000, 79, &t));
	cr_expect(has(t.at, "10/40 clusters  2 findings  5.0/s  6 s left"), "%s", t.at);
	cr_expect_leq(t.n, 79);
	cr_expect_not(has(t.at, "\033"));
	progress_idle(&p);
	cr_expect_not(progress_line(&p, progress_now(), 79, &t));
	text_free(&t);
}

/* A report from another source: its names reach a terminal, a log and a file of suppressions. */
Test(formats, names_of_a_report_are_made_visible)
{
	static const char json[] = "{\"consan_report\": 2, \"findings\": [{\"rule\": \"CS101\", "
		"\"severity\": \"error\", \"kernel\": \"k\\n\\treason: x\\nCS102\", \"seen\": 1, \"sides\": ["
		"{\"what\": \"write\", \"site\": {\"kernel\": \"k\", \"module\": \"m\\u001b]0;x\\u0007\", "
		"\"ptx_line\": 3, \"ptx\": \"st;\\u202e\", \"source\": [{\"file\": \"a\\u001b[2Jb.cu\", "
		"\"line\": 5, \"col\": 1}]}}]}], \"coverage\": [{\"kernel\": \"k\\u009b\", \"launches\": 1}]}";
	struct results r = { 0 }, again = { 0 };
	struct consan_err e = { 0 };
	struct text t = { 0 };
	FILE *f = fopen(in_dir("hostile.json"), "w");
	const struct site *s;
	struct options o;

	fputs(json, f);
	fclose(f);
	cr_assert(results_load(&r, in_dir("hostile.json"), &e), "%s", e.text);
	results_finish(&r);
	cr_assert_eq(r.finding.n, 1);
	s = site_get(r.finding.at[0].side[0].site);
	cr_expect_str_eq(r.finding.at[0].kernel, "k\\n\\treason: x\\nCS102");
	cr_expect_str_eq(s->loc->file, "a\\x1b[2Jb.cu");
	cr_expect_str_eq(s->ptx, "st;\\u202e");
	suppress_write(&t, &r.finding.at[0], "why");
	cr_assert(suppress_parse(&again, "x", t.at, &e), "%s", e.text);
	cr_expect_eq(again.suppression.n, 1);
	text_free(&t);
	options_init(&o);
	f = fopen(in_dir("hostile.txt"), "w");
	report_as(&r, &o, REPORT_text, f);
	fclose(f);
	cr_assert(text_read(&t, in_dir("hostile.txt"), &e));
	cr_expect_null(memchr(t.at, 0x1b, t.n));
	options_free(&o);
	text_free(&t);
	results_free(&again);
	results_free(&r);
}
