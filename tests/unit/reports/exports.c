/* exports: the reports for other programs: annotations of GitHub Actions, traces for Perfetto, and
 * what made a report. */
#include "libconsan/finding/rule_codes.h"
#include "reports/reports.h"
#include "history_sample.h"
#include "tests/common/find.h"
#include "tests/common/shell.h"

#include <criterion/criterion.h>

static char *render(const struct results *r, enum report_format to, const char *settings, size_t *n)
{
	struct options o;
	struct consan_err e = { 0 };
	char *text;
	FILE *out = open_memstream(&text, n);

	options_init(&o);
	cr_assert(options_parse(&o, settings, &e), "%s", e.text);
	report_as(r, &o, to, out);
	fclose(out);
	options_free(&o);
	return text;
}

static struct results sample(void)
{
	struct finding race = sample_race("src/a,b:c%.cu", 17), hang = sample_hang(), note;
	struct coverage c = { .kernel = "odd", .launches = 1, .unchecked = "no PTX,\nreally" };
	struct results r = { 0 };

	note = sample_race("src/n.cu", 9);
	note.rule = CS801;
	note.severity = SEV_NOTE;
	race.history = sample_history(60);
	results_add_finding(&r, &race);
	results_add_finding(&r, &hang);
	results_add_finding(&r, &note);
	finding_free(&race);
	finding_free(&hang);
	results_add_coverage(&r, &c);
	results_add_run(&r, (struct result_run){ .command = base_strdup("consan-run './a b'"),
		.options = base_strdup("seed=3"), .version = base_strdup("9.9"),
		.date = base_strdup("2026-11-22T10:00:00Z") });
	results_finish(&r);
	return r;
}

/* ---- GitHub ---- */

/* One line for each annotation; what separates properties is escaped in them. */
Test(exports, github_annotations)
{
	struct results r = sample();
	char *t, *line, *rest;
	unsigned lines = 0;
	size_t n;

	t = render(&r, REPORT_github, "", &n);
	cr_expect(has(t, "::error file=src/a%2Cb%3Ac%25.cu,line=17,col=5,title=CS102 "), "%s", t);
	cr_expect(has(t, "put __syncthreads() after the write%0A"), "%s", t);
	cr_expect(has(t, "::error file=ring.cu,line=55,"), "%s", t);
	cr_expect(has(t, "waiting: warps 0-3, block (0,0,0) at ring.cu:55 on mbarrier full[1]: "));
	cr_expect(has(t, "not checked::odd: no PTX,%0Areally\n"), "%s", t);
	cr_expect_not(has(t, "::notice"));
	for (rest = t; (line = strsep(&rest, "\n")) && *line; lines++)
		cr_expect(!strncmp(line, "::error ", 8), "%s", line);
	cr_expect_eq(lines, 3);
	free(t);
	t = render(&r, REPORT_github, "print-level=info allow-unchecked", &n);
	cr_expect(has(t, "::notice file=src/n.cu,line=9,"));
	cr_expect(has(t, "::warning title=consan: not checked::odd"));
	free(t);
	results_free(&r);
}

/* ---- what made the report ---- */

Test(exports, the_run_is_in_every_format_that_has_a_place_for_it)
{
	struct results r = sample();
	json_t *all, *run;
	char *t;
	size_t n;

	t = render(&r, REPORT_json, "", &n);
	all = json_loads(t, 0, NULL);
	run = json_array_get(json_object_get(all, "runs"), 0);
	cr_expect_str_eq(rj_text(run, "command"), "consan-run './a b'");
	cr_expect_str_eq(rj_text(run, "options"), "seed=3");
	cr_expect_str_eq(rj_text(run, "version"), "9.9");
	cr_expect_str_eq(rj_text(run, "date"), "2026-11-22T10:00:00Z");
	json_decref(all);
	free(t);
	t = render(&r, REPORT_junit, "", &n);
	cr_expect(has(t, "timestamp=\"2026-11-22T10:00:00\""));
	cr_expect(has(t, "name=\"command\" value=\"consan-run &#39;./a b&#39;\""));
	free(t);
	t = render(&r, REPORT_html, "", &n);
	cr_expect(has(t, "consan-run &#39;./a b&#39;") && has(t, "2026-11-22T10:00:00Z"));
	free(t);
	t = render(&r, REPORT_sarif, "", &n);
	cr_expect(has(t, "\"commandLine\": \"consan-run './a b'\""));
	cr_expect(has(t, "\"endTimeUtc\": \"2026-11-22T10:00:00Z\""));
	free(t);
	results_free(&r);
}

/* ---- Perfetto ---- */

/* A field of a message; the value of a varint or fixed64, or the bytes. */
struct field {
	unsigned number, type;
	uint64_t value;
	const char *at;
};

static uint64_t varint(const char **at)
{
	uint64_t v = 0;
	unsigned shift = 0;

	do
		v |= (uint64_t)(**at & 0x7f) << shift;
	while (shift += 7, *(*at)++ & 0x80);
	return v;
}

static bool next_field(const char **at, const char *end, struct field *f)
{
	uint64_t key;

	if (*at >= end)
		return false;
	key = varint(at);
	f->number = (unsigned)(key >> 3);
	f->type = key & 7;
	cr_assert(f->type <= 2, "wire type %u", f->type);
	f->value = 0;
	if (f->type == 1) {
		for (unsigned i = 0; i < 8; i++)
			f->value |= (uint64_t)(unsigned char)*(*at)++ << 8 * i;
		return true;
	}
	f->value = varint(at);
	f->at = *at;
	if (f->type == 2)
		*at += f->value;
	cr_assert(*at <= end, "a field ends behind its message");
	return true;
}

/* The first field of this number; false if there is none. */
static bool find(struct field message, unsigned number, struct field *to)
{
	const char *at = message.at, *end = at + message.value;

	while (next_field(&at, end, to))
		if (to->number == number)
			return true;
	return false;
}

static uint64_t number_of(struct field message, unsigned number)
{
	struct field f;

	return find(message, number, &f) ? f.value : 0;
}

static bool text_is(struct field message, unsigned number, const char *want)
{
	struct field f;

	return find(message, number, &f) && f.value == strlen(want) && !memcmp(f.at, want, f.value);
}

struct seen {
	unsigned tracks, roots, slices, instants, findings, waits, phases, flights, wrong;
	uint64_t track[64];
	int open[64];
	unsigned flows_out, flows_in;
};

static unsigned track_index(const struct seen *s, uint64_t uuid)
{
	for (unsigned i = 0; i < s->tracks; i++)
		if (s->track[i] == uuid)
			return i;
	cr_assert_fail("an event or a track refers to track %llu, which does not exist yet",
		(unsigned long long)uuid);
	return 0;
}

static void see_track(struct seen *s, struct field m)
{
	const uint64_t parent = number_of(m, 5);

	s->roots += !parent;
	if (parent)
		track_index(s, parent);
	cr_assert(s->tracks < 64);
	s->track[s->tracks++] = number_of(m, 1);
}

static void see_event(struct seen *s, struct field m)
{
	const unsigned track = track_index(s, number_of(m, 11));
	const char *at = m.at;
	struct field f;

	switch (number_of(m, 9)) {
	case 1:
		s->slices++;
		s->open[track]++;
		s->waits += text_is(m, 22, "wait");
		s->phases += text_is(m, 22, "mbarrier");
		s->flights += text_is(m, 22, "async");
		break;
	case 2:
		s->wrong += !s->open[track]--;
		break;
	case 3:
		s->instants++;
		s->findings += text_is(m, 22, "finding");
		break;
	default:
		s->wrong++;
	}
	while (next_field(&at, m.at + m.value, &f)) {
		s->flows_out += f.number == 47;
		s->flows_in += f.number == 48;
	}
}

static struct seen read_trace(const char *t, size_t n)
{
	const char *at = t, *end = t + n;
	struct seen s = { 0 };
	struct field packet, f;

	while (next_field(&at, end, &packet)) {
		cr_assert_eq(packet.number, 1);
		cr_expect_eq(number_of(packet, 10), 1, "the sequence of a packet");
		if (find(packet, 60, &f))
			see_track(&s, f);
		else if (find(packet, 11, &f)) {
			cr_expect_gt(number_of(packet, 8), 0);
			see_event(&s, f);
		}
	}
	return s;
}

Test(exports, a_trace_has_tracks_slices_and_flows)
{
	struct results r = sample();
	struct seen s;
	size_t n;
	char *t = render(&r, REPORT_perfetto, "", &n);

	s = read_trace(t, n);
	cr_expect_eq(s.roots, 3, "one for each finding");
	/* of the race: its CTA, two warps, an mbarrier, and TMA and tensor cores with their overlaps */
	cr_expect_geq(s.tracks, s.roots + 6);
	cr_expect_eq(s.wrong, 0, "slices end once");
	cr_expect_eq(s.findings, 3 + 2, "a headline for each, and the two sides of the race");
	cr_expect_eq(s.phases, 10);
	cr_expect_eq(s.flights, 20, "bulk copies and wgmma");
	cr_expect_eq(s.flows_out, s.flows_in);
	cr_expect_geq(s.flows_in, 10 + 1, "one into each wait, and that of the race");
	free(t);
	results_free(&r);
}

/* ---- groups and edits ---- */

/* A race with an edit, and its consequence: another place of the same buffer. */
static struct results grouped(void)
{
	struct finding race = sample_race("src/a.cu", 17), other = sample_race("src/a.cu", 40);
	struct results r = { 0 };

	race.edit = (struct finding_edit){ .kind = EDIT_AFTER, .verified = VERIFIED_CLEAN,
		.site = race.side[1].site, .ptx = "bar.sync 0;" };
	results_add_finding(&r, &race);
	results_add_finding(&r, &other);
	results_finish(&r);
	r.finding.at[0].group = r.finding.at[1].group = 0;
	r.finding.at[0].rank = 0;
	r.finding.at[1].rank = 1;
	return r;
}

Test(exports, a_group_is_one_annotation_and_the_edit_is_in_all_formats)
{
	struct results r = grouped();
	char *t;
	size_t n;

	t = render(&r, REPORT_github, "", &n);
	cr_expect_eq(count(t, "::error "), 1);
	cr_expect(has(t, "and 1 consequence"));
	cr_expect(has(t, "change: a.cu:") && has(t, "bar.sync 0;"), "%s", t);
	free(t);
	t = render(&r, REPORT_html, "", &n);
	cr_expect_eq(count(t, "class=\"group\""), 1);
	cr_expect_eq(count(t, "<article "), 2);
	cr_expect(has(t, "and 1 consequence<"));
	cr_expect(has(t, "<span class=\"added\">+ bar.sync 0;</span>"));
	cr_expect(has(t, "with this change the launch is clean"));
	free(t);
	t = render(&r, REPORT_junit, "", &n);
	cr_expect(has(t, "change: a.cu:"));
	free(t);
	t = render(&r, REPORT_sarif, "", &n);
	cr_expect_eq(count(t, "\"fixes\""), 1);
	cr_expect(has(t, "\"text\": \"bar.sync 0;\\n\""), "without columns, a line of its own");
	cr_expect(has(t, "A consequence of CS102 at a.cu:17 / a.cu:21: "));
	free(t);
	results_free(&r);
}

/* ---- SARIF ---- */

/* Of the place of result i: the artifact that its index names. */
static const json_t *artifact_of(const json_t *all, size_t i)
{
	const json_t *run = json_array_get(json_object_get(all, "runs"), 0), *at;

	at = json_array_get(json_object_get(json_array_get(json_object_get(run, "results"), i),
		"locations"), 0);
	at = json_object_get(json_object_get(at, "physicalLocation"), "artifactLocation");
	return json_array_get(json_object_get(run, "artifacts"), rj_number(at, "index"));
}

/* Without line information, the place is in the PTX within the program. */
Test(exports, sarif_places_resolve)
{
	const struct site bare = { .kernel = "k", .module = "prog: module 2", .ptx_line = 81,
		.ptx = "st.shared.u32 [%r1], %r2;" };
	struct finding f = sample_race("src/a.cu", 17), g = f;
	struct results r = { 0 };
	const json_t *a, *artifacts;
	json_t *all;
	char *t;
	size_t n;

	g.rule = CS901; /* after f */
	g.severity = SEV_WARNING;
	g.side[0].site = site_add(&bare);
	results_add_finding(&r, &f);
	results_add_finding(&r, &g);
	results_add_process(&r, (struct result_process){ 1, base_strdup("build/prog"),
		base_strdup("H100") });
	results_finish(&r);
	t = render(&r, REPORT_sarif, "", &n);
	all = json_loads(t, 0, NULL);
	cr_assert_not_null(all);
	a = artifact_of(all, 0);
	cr_expect_str_eq(rj_text(json_object_get(a, "location"), "uri"), "src/a.cu");
	a = artifact_of(all, 1);
	cr_expect_str_eq(rj_text(json_object_get(a, "location"), "uri"), "/module%202.ptx");
	artifacts = json_object_get(json_array_get(json_object_get(all, "runs"), 0), "artifacts");
	cr_assert_not_null(json_object_get(a, "parentIndex"));
	a = json_array_get(artifacts, rj_number(a, "parentIndex"));
	cr_expect_str_eq(rj_text(json_object_get(a, "location"), "uri"), "build/prog");
	cr_expect(has(t, "\"snippet\": {") && has(t, "st.shared.u32 [%r1], %r2;"));
	json_decref(all);
	free(t);
	results_free(&r);
}

/* The path of a hang has the place of each wait. */
Test(exports, sarif_has_the_waits_of_a_hang)
{
	struct finding hang = sample_hang();
	struct results r = { 0 };
	char *t;
	size_t n;

	results_add_finding(&r, &hang);
	finding_free(&hang);
	results_finish(&r);
	t = render(&r, REPORT_sarif, "", &n);
	cr_expect_eq(count(t, "\"executionOrder\""), 2);
	cr_expect(has(t, "warps 0-3, block (0,0,0) on mbarrier full[1]: waits for phase 3"));
	cr_expect(has(t, "warp 4, block (0,0,0) on named barrier 2: "));
	free(t);
	results_free(&r);
}

/* The schema of OASIS is not ours to copy: $SARIF_SCHEMA is its path. */
Test(exports, sarif_by_the_schema_of_its_standard)
{
	const char *schema = getenv("SARIF_SCHEMA");
	char path[] = "/tmp/consan-exports-XXXXXX";
	struct results r;
	FILE *out;
	char *t;
	size_t n;

	if (!schema || shell("python3 -c 'import jsonschema' 2>&1")) {
		fprintf(stderr, "exports: SARIF is checked by our own schema only: %s\n", schema
			? "no jsonschema (pip install jsonschema)"
			: "SARIF_SCHEMA=sarif-schema-2.1.0.json, from oasis-tcs/sarif-spec, is not set");
		return;
	}
	r = sample();
	t = render(&r, REPORT_sarif, "", &n);
	out = fdopen(mkstemp(path), "w");
	fwrite(t, 1, n, out);
	fclose(out);
	cr_expect_eq(shell("python3 -c 'import json, jsonschema, sys; jsonschema.validate("
		"*(json.load(open(f)) for f in sys.argv[1:]))' %s %s 2>&1 | tail -5", path, schema), 0);
	cr_expect_str_empty(output, "%s", output);
	unlink(path);
	free(t);
	results_free(&r);
}
