/* results: records are written and read back; updates, merging, damaged lines. */
#include "libconsan/finding/history.h"
#include "libconsan/finding/results/results.h"
#include "libconsan/finding/rule_codes.h"
#include "tests/common/sample.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[] = "/tmp/consan-results-XXXXXX";

static void open_path(void)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
}

static void remove_path(void)
{
	char live[sizeof path + 5];

	unlink(path);
	snprintf(live, sizeof live, "%s.live", path);
	unlink(live);
}

TestSuite(results, .init = open_path, .fini = remove_path);

static struct results_writer *create(void)
{
	struct consan_err e = { 0 };
	struct results_writer *w = results_create(path, &e);

	cr_assert_not_null(w, "%s", e.text);
	return w;
}

static struct results read_back(void)
{
	struct results r = { 0 };
	struct consan_err e = { 0 };

	cr_assert(results_read(&r, path, &e), "%s", e.text);
	results_finish(&r);
	return r;
}

Test(results, a_finding_is_read_back)
{
	struct results_writer *w = create();
	struct finding f = sample_race("reduce.cu", 17), h = sample_hang();
	const struct finding *g;
	struct results r;

	results_finding(w, 0, &f);
	results_finding(w, 1, &h);
	results_close(w);
	r = read_back();
	cr_assert_eq(r.finding.n, 2);
	g = &r.finding.at[0];
	cr_assert_eq(g->rule, CS102);
	cr_assert_eq(g->severity, SEV_ERROR);
	cr_assert_str_eq(g->kernel, f.kernel);
	cr_assert_eq(g->nsides, 2);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(g->side[i].site, f.side[i].site); /* interned */
		cr_assert_str_eq(g->side[i].what, f.side[i].what);
		cr_assert_eq(g->side[i].lane, f.side[i].lane);
		cr_assert_eq(g->side[i].ctaid[0], 3);
		cr_assert_eq(g->side[i].addr, 0x80);
		cr_assert_eq(g->side[i].bytes, f.side[i].bytes);
		cr_assert_eq(g->side[i].space, SP_SHARED);
		cr_assert_str_eq(g->side[i].variable, f.side[i].variable);
	}
	cr_assert_eq(g->side[0].thread[0], 44);
	cr_assert_str_eq(g->edge, f.edge);
	cr_assert_str_eq(g->hint, f.hint);
	cr_assert(g->seen == 1024 && g->clusters == 8 && g->seed == 7 && g->launch == 3);
	g = &r.finding.at[1];
	cr_assert_eq(g->rule, CS703);
	cr_assert_str_eq(g->barrier.name, "full[1]");
	cr_assert_eq(g->barrier.tx, -4096);
	cr_assert_eq(g->nwaiters, 5);
	cr_assert_eq(g->waiter[4].on.addr, 2);
	cr_assert_str_eq(g->waiter[4].text, h.waiter[4].text);
	results_free(&r);
	finding_free(&h);
}

Test(results, a_later_record_replaces_an_earlier_one)
{
	struct results_writer *w = create();
	struct finding f = sample_race("reduce.cu", 17), gone = sample_race("reduce.cu", 90);
	struct coverage c = { .kernel = "k", .launches = 1, .checked = 1 };
	struct results r;

	results_finding(w, 0, &f);
	f.seen = 5000;
	results_finding(w, 0, &f);
	results_finding(w, 1, &gone);
	gone.seen = 0; /* removed */
	results_finding(w, 1, &gone);
	results_coverage(w, &c);
	c.launches = c.checked = 2;
	results_coverage(w, &c);
	results_close(w);
	r = read_back();
	cr_assert_eq(r.finding.n, 1);
	cr_assert_eq(r.finding.at[0].seen, 5000);
	cr_assert_eq(r.coverage.n, 1);
	cr_assert_eq(r.coverage.at[0].launches, 2);
	results_free(&r);
}

Test(results, processes_are_merged)
{
	struct finding f = sample_race("reduce.cu", 17), g = sample_race("reduce.cu", 30);
	struct coverage c = { .kernel = "k", .launches = 1, .checked = 1, .sites = 10,
		.sites_executed = 5 };
	struct results r;

	for (int process = 0; process < 2; process++) { /* a writer is a session */
		struct results_writer *w = create();

		results_process(w, "./prog", "GPU");
		results_finding(w, 0, process ? &f : &g);
		results_finding(w, 1, process ? &g : &f);
		results_coverage(w, &c);
		results_remark(w, RESULT_REMARK_call_unsupported, "cudaGraphLaunch");
		results_close(w);
	}
	r = read_back();
	cr_assert_eq(r.process.n, 2);
	cr_assert_eq(r.finding.n, 2);
	cr_assert_eq(r.finding.at[0].seen, 2048);
	cr_assert_eq(r.finding.at[0].clusters, 16);
	cr_assert_eq(r.coverage.at[0].launches, 2);
	cr_assert_eq(r.coverage.at[0].sites, 10);
	cr_assert_eq(r.remark.n, 1);
	cr_assert_eq(r.remark.at[0].count, 2);
	cr_assert_eq(r.remark.at[0].kind, RESULT_REMARK_call_unsupported);
	results_free(&r);
}

Test(results, unrolled_instructions_of_one_place_are_one_bug)
{
	struct finding f = sample_race("reduce.cu", 17), g = f;
	struct site other = *site_get(f.side[0].site);
	struct results r = { 0 };

	other.ptx_line++;
	g.side[0].site = site_intern(&other);
	results_add_finding(&r, &f);
	results_add_finding(&r, &g);
	other.loc = NULL; /* without line information only equal instructions are merged */
	g.side[0].site = site_intern(&other);
	results_add_finding(&r, &g);
	results_finish(&r);
	cr_assert_eq(r.finding.n, 2);
	cr_assert_eq(r.finding.at[0].folded + r.finding.at[1].folded, 1);
	results_free(&r);
}

Test(results, a_damaged_line_loses_only_itself)
{
	struct results_writer *w = create();
	struct finding f = sample_race("reduce.cu", 17);
	FILE *out;
	struct results r;

	results_finding(w, 0, &f);
	results_close(w);
	out = fopen(path, "a");
	fprintf(out, "{\"consan\":1,\"type\":\"finding\",\"rule\":\"CS1");
	fclose(out);
	r = read_back();
	cr_assert_eq(r.finding.n, 1);
	cr_assert_eq(r.cut, 1);
	results_free(&r);
}

Test(results, a_launch_that_did_not_end_is_reported)
{
	struct results_writer *w = create();
	struct result_launch l = { .id = 4, .kernel = (char *)"_Z1kv", .grid = { 1, 2, 3 },
		.state = LAUNCH_RUNNING };
	struct results r;

	results_launch(w, &l);
	l.id = 5;
	results_launch(w, &l);
	l.state = LAUNCH_DONE;
	l.status = (char *)"ok";
	results_launch(w, &l);
	results_close(w);
	r = read_back();
	cr_assert_eq(r.launch.n, 2);
	cr_assert_eq(r.launch.at[0].state, LAUNCH_ENDED_EARLY);
	cr_assert_eq(r.launch.at[1].state, LAUNCH_DONE);
	cr_assert_eq(r.launch.at[0].grid[2], 3);
	cr_assert_eq(r.coverage.n, 1);
	cr_assert_str_not_empty(r.coverage.at[0].unchecked);
	results_free(&r);
}

/* As after a full disk. */
Test(results, an_empty_file_counts_as_truncated)
{
	static const char *const text[] = { "", "{\"consan\":1,\"ty" };

	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		FILE *out = fopen(path, "w");
		struct results r;

		fputs(text[i], out);
		fclose(out);
		r = read_back();
		cr_expect_eq(r.cut, 1, "%s", text[i]);
		results_free(&r);
	}
}

Test(results, files_without_records)
{
	struct results r = { 0 };
	struct consan_err e = { 0 };
	FILE *out = fopen(path, "w");

	fprintf(out, "hello\n{\"a\":1}\n");
	fclose(out);
	cr_assert_not(results_read(&r, path, &e));
	cr_assert_eq(e.code, CONSAN_ERR_FORMAT);
	out = fopen(path, "w");
	fprintf(out, "{\"consan\":999,\"type\":\"note\"}\n");
	fclose(out);
	e = (struct consan_err){ 0 };
	cr_assert_not(results_read(&r, path, &e));
	cr_assert_eq(e.code, CONSAN_ERR_FORMAT);
	e = (struct consan_err){ 0 };
	cr_assert_not(results_read(&r, "/nonexistent/x", &e));
	cr_assert_eq(e.code, CONSAN_ERR_IO);
	cr_assert_null(results_create("/nonexistent/x", &e));
	results_free(&r);
}

Test(results, bytes_that_are_not_text)
{
	struct results_writer *w = create();
	struct results r;

	results_remark(w, RESULT_REMARK_note, "na\xefve \xff\xfe");
	results_close(w);
	r = read_back();
	cr_assert_eq(r.remark.n, 1);
	cr_assert_eq(strlen(r.remark.at[0].text), 8);
	results_free(&r);
}

static void *write_many(void *arg)
{
	struct finding f = sample_race("reduce.cu", 17);

	for (uint32_t i = 0; i < 200; i++)
		results_finding(arg, i, &f);
	return NULL;
}

Test(results, from_several_threads)
{
	struct results_writer *w = create();
	struct results r;
	pthread_t t[4];

	for (int k = 0; k < 4; k++)
		pthread_create(&t[k], NULL, write_many, w);
	for (int k = 0; k < 4; k++)
		pthread_join(t[k], NULL);
	results_close(w);
	r = read_back();
	cr_assert_eq(r.cut, 0);
	cr_assert_eq(r.finding.n, 1);
	cr_assert_eq(r.finding.at[0].seen, 200 * 1024);
	results_free(&r);
}

/* Two sites in a function that is inlined into two others, with a long name. */
static void inlined_sites(struct finding *f, char name[3000])
{
	const struct site_loc kernel = { .file = "a.cu", .line = 3 };
	const struct site_loc caller = { "pipe.cuh", 40, 2, "stage<>", &kernel, 0 };
	const struct site_loc place[2] = { { "copy.cuh", 7, 1, name, &caller, 0 },
		{ "copy.cuh", 9, 1, name, &caller, 0 } };

	memset(name, 'x', 2999);
	name[2999] = 0;
	for (unsigned i = 0; i < 2; i++) {
		struct site s = *site_get(f->side[i].site);

		s.loc = &place[i];
		f->side[i].site = site_intern(&s);
	}
}

static size_t size_of_file(void)
{
	struct stat s;

	cr_assert_eq(stat(path, &s), 0);
	return (size_t)s.st_size;
}

Test(results, sites_are_written_once)
{
	struct results_writer *w = create();
	struct finding f = sample_race("reduce.cu", 17);
	struct history h = { .references = 1, .nsteps = 3, .side = { -1, -1 } };
	struct history_step step[3] = { { .kind = STEP_access }, { .kind = STEP_access } };
	const struct history *g;
	static char name[3000];
	struct results r;
	size_t first;

	inlined_sites(&f, name);
	step[0].site = f.side[1].site;
	step[2].site = f.side[0].site;
	h.step = step;
	f.history = &h;
	results_finding(w, 0, &f);
	first = size_of_file();
	results_finding(w, 0, &f);
	cr_expect_lt(size_of_file() - first, 2000);
	results_finding(w, 1, &f);
	results_close(w);
	r = read_back();
	cr_assert_eq(r.finding.n, 1);
	cr_expect_eq(r.finding.at[0].side[0].site, f.side[0].site);
	cr_expect_eq(r.finding.at[0].side[1].site, f.side[1].site);
	cr_assert_not_null(g = r.finding.at[0].history);
	cr_assert_eq(g->nsteps, 3);
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(g->step[i].site, step[i].site, "step %u", i);
	results_free(&r);
}

/* A child of the program goes on in the same file: what the parent wrote is not the child's. */
Test(results, sites_of_a_forked_process)
{
	struct results_writer *w = create();
	struct finding f = sample_race("reduce.cu", 17), g = sample_race("reduce.cu", 30);
	static char name[3000];
	struct results r;
	pid_t child;

	inlined_sites(&f, name);
	results_finding(w, 0, &f);
	child = fork();
	if (!child) {
		results_finding(w, 0, &g);
		results_finding(w, 1, &f);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, NULL, 0), child);
	results_close(w);
	r = read_back();
	cr_assert_eq(r.finding.n, 2);
	for (unsigned i = 0; i < 2; i++) {
		const bool inlined = !strcmp(site_get(r.finding.at[i].side[0].site)->loc->file, "copy.cuh");
		const struct finding *was = inlined ? &f : &g;

		cr_expect_eq(r.finding.at[i].seen, inlined ? 2048 : 1024);
		for (unsigned k = 0; k < 2; k++)
			cr_expect_eq(r.finding.at[i].side[k].site, was->side[k].site);
	}
	results_free(&r);
}

/* In a file that lost lines, a site may be unknown, but never another one. */
Test(results, a_site_of_a_lost_line_is_unknown)
{
	struct results_writer *w = create();
	struct finding f = sample_race("reduce.cu", 17), g = sample_race("reduce.cu", 30);
	struct results r;
	size_t first;

	g.side[1].site = f.side[1].site;
	results_finding(w, 0, &f);
	first = size_of_file();
	results_finding(w, 1, &g);
	results_close(w);
	{ /* the first line is overwritten */
		FILE *out = fopen(path, "r+");

		for (size_t i = 0; i + 1 < first; i++)
			fputc(' ', out);
		fclose(out);
	}
	r = read_back();
	cr_expect_eq(r.cut, 1);
	cr_assert_eq(r.finding.n, 1);
	cr_expect_eq(r.finding.at[0].side[0].site, g.side[0].site);
	cr_expect_eq(r.finding.at[0].side[1].site, 0);
	results_free(&r);
}

Test(results, a_writer_may_be_null)
{
	struct finding f = sample_race("reduce.cu", 17);

	results_finding(NULL, 0, &f);
	results_process(NULL, "", "");
	results_remark(NULL, RESULT_REMARK_note, "");
	results_close(NULL);
}

Test(results, bank_conflicts_by_place)
{
	const uint32_t load = sample_site("reduce.cu", 17, 5, "ld.shared.f32 %f1, [%r1];");
	struct site unrolled = *site_get(load);
	struct bank_use u = { .site = load, .worst = 4, .accesses = 2, .wavefronts = 8, .least = 2 };
	struct bank_use clean = { .site = sample_site("reduce.cu", 30, 5, "st.shared.f32 [%r1], %f1;"),
		.worst = 1, .accesses = 9, .wavefronts = 9, .least = 9 };
	struct results r;

	unrolled.ptx_line++;
	for (int process = 0; process < 2; process++) {
		struct results_writer *w = create();

		results_bank_use(w, &clean);
		u.site = load;
		u.worst = 2;
		results_bank_use(w, &u);
		u.worst = 4;
		results_bank_use(w, &u); /* replaces the record before */
		u.site = site_intern(&unrolled);
		results_bank_use(w, &u);
		results_close(w);
	}
	r = read_back();
	cr_assert_eq(r.cut, 0);
	cr_assert_eq(r.bank.n, 2);
	cr_expect_eq(r.bank.at[0].accesses, 8);
	cr_expect_eq(r.bank.at[0].wavefronts, 32);
	cr_expect_eq(r.bank.at[0].least, 8);
	cr_expect_eq(r.bank.at[0].worst, 4);
	cr_expect_eq(r.bank.at[1].accesses, 18);
	cr_expect_eq(r.bank.at[1].worst, 1);
	cr_expect_eq(site_get(r.bank.at[1].site)->loc->line, 30);
	results_free(&r);
}

/* ---- many launches, and launches that did not end ---- */

static off_t size_now(void)
{
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	return st.st_size;
}

/* The file, and the list of launches in the report, are bounded; the counts are not. */
Test(results, many_launches_take_bounded_space)
{
	struct results_writer *w = create();
	struct finding f = sample_race("reduce.cu", 17);
	struct coverage c = { .kernel = "_Z1kv" };
	struct result_launch l = { .kernel = (char *)"_Z1kv" };
	const unsigned n = 20000;
	off_t early = 0;
	struct results r;

	for (l.id = 0; l.id < n; l.id++) {
		l.state = LAUNCH_RUNNING;
		l.status = NULL;
		results_launch(w, &l);
		if (l.id == 15000) {
			f.launch = l.id;
			results_finding(w, 1, &f);
		}
		c.launches = c.checked = l.id + 1;
		results_coverage(w, &c);
		results_remark(w, RESULT_REMARK_note, "the same again");
		l.state = LAUNCH_DONE;
		l.status = (char *)(l.id == 16000 ? "hang" : "ok");
		results_launch(w, &l);
		if (l.id == 2000)
			early = size_now();
	}
	cr_assert_lt(size_now(), early + 8192);
	results_close(w);
	r = read_back();
	cr_assert_eq(r.cut, 0);
	cr_assert_eq(r.coverage.at[0].launches, n);
	cr_assert_eq(r.remark.at[0].count, n);
	cr_assert_leq(r.launch.n, 1004);
	cr_assert_str_eq(r.launch.at[0].status, "ok");
	for (uint32_t id = 15000; id <= 16000; id += 1000) {
		size_t i = 0;

		while (i < r.launch.n && r.launch.at[i].id != id)
			i++;
		cr_assert_lt(i, r.launch.n, "launch %u is not in the report", id);
	}
	results_free(&r);
}

/* Killed while two launches run: how far each of them had come is known. */
Test(results, clusters_of_launches_that_did_not_end)
{
	struct result_launch l = { .kernel = (char *)"_Z1kv", .state = LAUNCH_RUNNING, .whole = 9 };
	struct results_writer *w = create();
	struct results r = { 0 };
	struct consan_err e = { 0 };
	int status;
	pid_t pid;

	results_close(w);
	unlink(path); /* and its page */
	pid = fork();
	if (!pid) {
		w = results_create(path, NULL);
		results_launch(w, &l);
		l.id = 1;
		l.kernel = (char *)"_Z1mv";
		l.whole = 5;
		results_launch(w, &l);
		for (unsigned i = 0; i < 7; i++)
			results_cluster(w, i % 3 == 2);
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, &status, 0);
	cr_assert(results_read(&r, path, &e), "%s", e.text);
	results_finish(&r);
	cr_assert_eq(r.coverage.n, 2);
	cr_assert(strstr(r.coverage.at[0].unchecked, "5 of 9 clusters"), "%s", r.coverage.at[0].unchecked);
	cr_assert(strstr(r.coverage.at[1].unchecked, "2 of 5 clusters"), "%s", r.coverage.at[1].unchecked);
	results_free(&r);
}

/* Killed while launches wait: those that were not to be checked are not missed. */
Test(results, launches_that_wait)
{
	static const struct { unsigned issued, begun, running; struct results_next next; unsigned missed; } row[] = {
		{ 7, 0, 0, { 0, 0, 0 }, 7 }, { 7, 2, 2, { 0, 1, UINT64_MAX }, 5 }, { 7, 7, 0, { 0, 1, UINT64_MAX }, 0 },
		{ 7, 0, 0, { 3, 1, UINT64_MAX }, 4 }, { 7, 0, 0, { 7, 1, UINT64_MAX }, 0 }, { 7, 0, 0, { 0, 1, 3 }, 3 },
		{ 7, 1, 1, { 0, 1, 3 }, 2 }, { 7, 1, 1, { 0, 1, 1 }, 0 }, { 7, 0, 0, { 1, 3, UINT64_MAX }, 2 },
		{ 7, 0, 0, { 0, 3, UINT64_MAX }, 3 }, { 7, 0, 0, { 6, 1, 3 }, 1 },
	};

	for (size_t k = 0; k < ARRAY_SIZE(row); k++) {
		struct result_launch l = { .kernel = (char *)"_Z1kv", .state = LAUNCH_RUNNING };
		struct results_writer *w = create();
		struct results r = { 0 };
		struct consan_err e = { 0 };
		char words[100];

		if (row[k].next.every)
			results_next(w, &row[k].next);
		for (unsigned i = 0; i < row[k].issued; i++)
			results_issued(w);
		for (unsigned i = 0; i < row[k].begun; i++)
			results_over(w);
		for (; l.id < row[k].running; l.id++)
			results_launch(w, &l);
		cr_assert(results_read(&r, path, &e), "%s", e.text);
		snprintf(words, sizeof words, "%u launch%s issued, but had not begun", row[k].missed,
			row[k].missed == 1 ? " was" : "es were");
		cr_expect_eq(r.remark.n, row[k].missed != 0, "row %zu", k);
		cr_expect(!r.remark.n || strstr(r.remark.at[0].text, words), "row %zu: %s", k, r.remark.at[0].text);
		results_free(&r);
		results_close(w);
		remove_path();
	}
}

/* A record that does not fit on the disk is missed, even if later ones fit again. */
Test(results, lost_records_are_counted)
{
	struct results_writer *w = create();
	struct rlimit old, none;
	struct results r;

	signal(SIGXFSZ, SIG_IGN);
	results_remark(w, RESULT_REMARK_note, "first");
	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	none = old;
	none.rlim_cur = (rlim_t)size_now();
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
	results_remark(w, RESULT_REMARK_note, "lost");
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
	results_remark(w, RESULT_REMARK_note, "last");
	results_close(w);
	r = read_back();
	cr_assert_eq(r.remark.n, 2);
	cr_assert_geq(r.cut, 1);
	results_free(&r);
}
