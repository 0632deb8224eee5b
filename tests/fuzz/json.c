/* json: JSON reports, and records, through all formats of reports. */
#include "fuzz.h"

#include "libconsan/finding/finding.h"
#include "libconsan/options/options.h"
#include "reports/reports.h"

#include <stdio.h>

static void write_all(const struct results *r)
{
	static FILE *out;
	struct options o;

	if (!out)
		out = fopen("/dev/null", "w");
	FUZZ_CHECK(out);
	options_init(&o);
	for (unsigned f = 0; f <= REPORT_text; f++)
		report_as(r, &o, (enum report_format)f, out);
	report_exit_status(r, &o, 0);
	options_free(&o);
}

static void write_suppressions(const struct results *r)
{
	for (size_t i = 0; i < r->finding.n; i++) {
		struct results again = { 0 };
		struct consan_err e = { 0 };
		struct text t = { 0 };

		suppress_write(&t, &r->finding.at[i], "a reason");
		FUZZ_CHECK(suppress_parse(&again, "x", t.at, &e));
		FUZZ_CHECK(again.suppression.n == 1);
		FUZZ_CHECK(!suppress_match(&again, &r->finding.at[i]));
		results_free(&again);
		text_free(&t);
	}
}

/* What is written can be read, whatever was read. */
static void read_back(const struct results *r)
{
	struct results again = { 0 };
	struct consan_err e = { 0 };
	struct options o;
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	FUZZ_CHECK(out);
	options_init(&o);
	report_as(r, &o, REPORT_json, out);
	options_free(&o);
	fclose(out);
	FUZZ_CHECK(results_load(&again, fuzz_file(text, n), &e));
	results_free(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct consan_err e = { 0 };

	for (unsigned records = 0; records < 2; records++) {
		const char *path = fuzz_file(data, n);
		struct results r = { 0 };

		if (records ? results_read(&r, path, &e) : results_load(&r, path, &e)) {
			results_finish(&r);
			write_suppressions(&r);
			write_all(&r);
			read_back(&r);
		}
		results_free(&r);
	}
	return 0;
}
