/* Tests of numbers in reports and records that come from elsewhere (finding/results/numbers.def): refused, or
 * counts that stay at the most that a file can have. */
#include "libconsan/finding/history.h"
#include "libconsan/finding/results/results.h"
#include "tests/common/find.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/consan-numbers-XXXXXX";

static void open_path(void)
{
	int fd = mkstemp(path);

	cr_assert(fd >= 0);
	close(fd);
}

static void remove_path(void)
{
	unlink(path);
}

TestSuite(numbers, .init = open_path, .fini = remove_path);

static void put(const char *text)
{
	FILE *out = fopen(path, "w");

	cr_assert(out);
	fputs(text, out);
	fclose(out);
}

/* $ in `text` becomes `value`. */
static void put_value(const char *text, const char *value)
{
	const char *at = strchr(text, '$');
	struct text t = { 0 };

	text_printf(&t, "%.*s%s%s", (int)(at - text), text, value, at + 1);
	put(t.at);
	text_free(&t);
}

#define REPORT(findings, coverage, rest) \
	"{\"consan_report\": 2, \"findings\": [" findings "], \"coverage\": [" coverage "]" rest "}"
#define FINDING(rest) REPORT("{\"rule\": \"CS101\", \"kernel\": \"k\", \"seen\": 1, " rest "}", "", "")

static const struct row { const char *text, *where; int64_t least, most; } rows[] = {
	{ REPORT("{\"rule\": \"CS101\", \"seen\": $}", "", ""), "findings[0].seen", 0, INT64_MAX },
	{ FINDING("\"folded\": $"), "findings[0].folded", 0, UINT32_MAX - 1 },
	{ FINDING("\"seed\": $"), "findings[0].seed", INT64_MIN, INT64_MAX },
	{ FINDING("\"sides\": [{}, {\"lane\": $}]"), "findings[0].sides[1].lane", -1, 31 },
	{ FINDING("\"sides\": [{\"block\": [1, $, 1]}]"), "findings[0].sides[0].block[1]", 0, UINT32_MAX },
	{ FINDING("\"sides\": [{\"cells\": {\"column\": $}}]"), "findings[0].sides[0].cells.column", 0, UINT16_MAX },
	{ FINDING("\"sides\": [{\"buffer\": {\"bytes\": $}}]"), "findings[0].sides[0].buffer.bytes", 0, INT64_MAX },
	{ FINDING("\"waiters\": [{\"on\": {\"expected\": $}}]"), "findings[0].waiters[0].on.expected", 0, UINT32_MAX },
	{ FINDING("\"history\": {\"steps\": [{\"do\": \"access\", \"phase\": $}]}"),
		"findings[0].history.steps[0].phase", -1, INT64_MAX },
	{ FINDING("\"history\": {\"mbarriers\": [{\"phase\": $}]}"), "findings[0].history.mbarriers[0].phase", 0,
		INT64_MAX },
	{ FINDING("\"history\": {\"mbarriers\": [{\"arrived\": [[0, $]]}]}"),
		"findings[0].history.mbarriers[0].arrived[0][1]", 0, UINT16_MAX },
	{ REPORT("", "{\"kernel\": \"k\", \"launches\": $}", ""), "coverage[0].launches", 0, INT64_MAX },
	{ REPORT("", "", ", \"launches\": [{\"id\": $}]"), "launches[0].id", 0, UINT32_MAX },
	{ REPORT("", "", ", \"remarks\": [{\"kind\": \"note\", \"text\": \"\", \"count\": $}]"), "remarks[0].count", 0,
		INT64_MAX },
	{ REPORT("", "", ", \"bank_conflicts\": [{\"accesses\": $}]"), "bank_conflicts[0].accesses", 0, INT64_MAX },
	{ REPORT("", "", ", \"cut\": $"), "cut", 0, INT64_MAX },
};

static const char not_json[] = "not JSON";

/* why: NULL if it is read */
static void expect(const struct row *row, const char *value, const char *why)
{
	struct results r = { 0 };
	struct consan_err e = { 0 };

	put_value(row->text, value);
	cr_expect_eq(results_load(&r, path, &e), !why, "%s: %s: %s", row->where, value, e.text);
	cr_expect(!why || (has(e.text, why) && (why == not_json || has(e.text, row->where))), "%s", e.text);
	results_free(&r);
}

Test(numbers, of_a_report)
{
	static const char *const bad[] = { "1.0", "-0.5", "1e3", "\"1\"", "true", "null" };
	static const char *const worse[] = { "1e400", "NaN", "-Infinity", "9223372036854775808",
		"18446744073709551616", "-9223372036854775809" };
	static const char why[] = "no whole number from";
	char value[32];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(bad); k++)
			expect(&rows[i], bad[k], why);
		for (size_t k = 0; k < ARRAY_SIZE(worse); k++)
			expect(&rows[i], worse[k], not_json);
		snprintf(value, sizeof value, "%lld", (long long)rows[i].least);
		expect(&rows[i], value, NULL);
		snprintf(value, sizeof value, "%lld", (long long)rows[i].most);
		expect(&rows[i], value, NULL);
		if (rows[i].most < INT64_MAX) {
			snprintf(value, sizeof value, "%lld", (long long)rows[i].most + 1);
			expect(&rows[i], value, why);
		}
		if (rows[i].least > INT64_MIN) {
			snprintf(value, sizeof value, "%lld", (long long)rows[i].least - 1);
			expect(&rows[i], value, why);
		}
	}
}

/* A damaged record is missed by the report, as one that was cut. */
Test(numbers, of_a_record)
{
	static const char text[] = "{\"consan\": 2, \"type\": \"process\", \"session\": 1, \"pid\": 1}\n"
		"{\"consan\": 2, \"type\": \"finding\", \"session\": 1, \"id\": 0, \"rule\": \"CS101\", \"seen\": $}\n";
	static const char *const bad[] = { "-1", "1.5", "1e3", "\"1\"" };

	for (size_t i = 0; i <= ARRAY_SIZE(bad); i++) {
		struct results r = { 0 };
		struct consan_err e = { 0 };

		put_value(text, i < ARRAY_SIZE(bad) ? bad[i] : "1");
		cr_assert(results_read(&r, path, &e), "%s", e.text);
		results_finish(&r);
		cr_expect_eq(r.cut, i < ARRAY_SIZE(bad));
		cr_expect_eq(r.finding.n, i == ARRAY_SIZE(bad));
		results_free(&r);
	}
}

/* Counts of merged reports do not begin again at 0, nor become negative. */
Test(numbers, sums)
{
#define MOST "9223372036854775807"
	static const char text[] = REPORT("{\"rule\": \"CS101\", \"kernel\": \"k\", \"seen\": " MOST ", \"clusters\": "
		"4294967295, \"folded\": 4294967294}", "{\"kernel\": \"k\", \"launches\": " MOST ", \"checked\": " MOST
		", \"events\": " MOST "}", ", \"cut\": " MOST ", \"remarks\": [{\"kind\": \"note\", \"text\": \"t\", "
		"\"count\": " MOST "}], \"bank_conflicts\": [{\"accesses\": " MOST ", \"wavefronts\": 5, \"least\": " MOST
		", \"worst\": 4294967295}]");
	struct results r = { 0 };
	struct consan_err e = { 0 };

	put(text);
	for (unsigned i = 0; i < 3; i++)
		cr_assert(results_load(&r, path, &e), "%s", e.text);
	results_finish(&r);
	cr_assert(r.finding.n == 1 && r.coverage.n == 1 && r.remark.n == 1 && r.bank.n == 1);
	cr_expect_eq(r.finding.at[0].seen, INT64_MAX);
	cr_expect_eq(r.finding.at[0].clusters, UINT32_MAX - 1);
	cr_expect_eq(r.finding.at[0].folded, UINT32_MAX - 1);
	cr_expect_eq(r.coverage.at[0].launches, INT64_MAX);
	cr_expect_eq(r.coverage.at[0].checked, INT64_MAX);
	cr_expect_eq(r.coverage.at[0].events, INT64_MAX);
	cr_expect_eq(r.remark.at[0].count, INT64_MAX);
	cr_expect_eq(r.cut, INT64_MAX);
	cr_expect_eq(r.bank.at[0].accesses, INT64_MAX);
	cr_expect_eq(r.bank.at[0].wavefronts, 15);
	cr_expect_leq(r.bank.at[0].least, r.bank.at[0].wavefronts);
	results_free(&r);
}

/* Lists that are longer than what consan writes take memory and time in proportion to the file. */
Test(numbers, of_elements)
{
	struct results r = { 0 };
	struct consan_err e = { 0 };
	struct text t = { 0 };

	text_printf(&t, "{\"consan_report\": 2, \"coverage\": [], \"findings\": [{\"rule\": \"CS702\", \"seen\": 1, "
		"\"waiters\": [{\"who\": {}, \"on\": {}}");
	for (unsigned i = 0; i < 100000; i++)
		text_printf(&t, ",{}");
	for (unsigned i = 0; i < 20000; i++)
		text_printf(&t, ",{\"who\":{},\"on\":{}}");
	text_printf(&t, "], \"history\": {\"mbarriers\": [{}");
	for (unsigned i = 0; i < 10000; i++)
		text_printf(&t, ",{}");
	text_printf(&t, "], \"buffers\": [{}");
	for (unsigned i = 0; i < 10000; i++)
		text_printf(&t, ",{\"kind\":\"stage\"}");
	text_printf(&t, "]}}]}");
	put(t.at);
	text_free(&t);
	cr_assert(results_load(&r, path, &e), "%s", e.text);
	results_finish(&r);
	cr_assert_eq(r.finding.n, 1);
	cr_expect_eq(r.finding.at[0].nwaiters, 16384); /* a cluster has no more threads */
	cr_expect_eq(r.finding.at[0].history->nmbarriers, 512);
	cr_expect_eq(r.finding.at[0].history->nbuffers, 256);
	results_free(&r);
}
