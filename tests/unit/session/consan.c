/* consan: launches of PTX kernels, their findings, and equal findings in records, saved events
 * and the replay. */
#include "libconsan/finding/rule_codes.h"
#include "libconsan/session/session.h"
#include "libconsan/event/io.h"
#include "libconsan/options/options.h"
#include "libconsan/finding/results/results.h"
#include "libconsan/event/site.h"
#include "tests/common/limits.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each thread stores its number and reads that of a thread of the other warp. `hole` comes in
 * between: a barrier or nothing. CTA 0 writes what it read to global memory. */
#define EXCHANGE(name, hole) \
	".visible .entry " name "(.param .u64 out)\n{\n" \
	".reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<4>;\n" \
	".shared .align 4 .b8 tile[256];\n" \
	"mov.u32 %r1, %tid.x;\n" \
	"mov.u32 %r2, tile;\n" \
	"shl.b32 %r3, %r1, 2;\n" \
	"add.u32 %r4, %r2, %r3;\n" \
	"st.shared.u32 [%r4], %r1;\n" \
	hole \
	"xor.b32 %r3, %r3, 128;\n" \
	"add.u32 %r4, %r2, %r3;\n" \
	"ld.shared.u32 %r5, [%r4];\n" \
	"mov.u32 %r0, %ctaid.x;\n" \
	"setp.ne.u32 %p1, %r0, 0;\n" \
	"@%p1 ret;\n" \
	"ld.param.u64 %rd1, [out];\n" \
	"cvta.to.global.u64 %rd1, %rd1;\n" \
	"mul.wide.u32 %rd2, %r1, 4;\n" \
	"add.u64 %rd1, %rd1, %rd2;\n" \
	"st.global.u32 [%rd1], %r5;\n" \
	"ret;\n}\n"

static const char ptx[] =
	".version 8.0\n.target sm_90a\n.address_size 64\n"
	EXCHANGE("racy", "")
	EXCHANGE("clean", "bar.sync 0;\n")
	/* warp 1 writes a word and arrives; warp 0 ignores the result of its try_wait */
	".visible .entry untested_wait(.param .u64 out)\n{\n.reg .pred %p<4>; .reg .b32 %r<4>; .reg .b64 "
		"%rd<2>;\n"
	".shared .align 8 .b64 bar; .shared .align 4 .b32 word;\n"
	"mov.u32 %r1, %tid.x;\n"
	"setp.eq.u32 %p1, %r1, 0;\n"
	"setp.eq.u32 %p2, %r1, 32;\n"
	"@%p1 mbarrier.init.shared::cta.b64 [bar], 1;\n"
	"@%p1 st.shared.u32 [word], 0;\n"
	"bar.sync 0;\n"
	"@%p2 st.shared.u32 [word], 7;\n"
	"@%p2 mbarrier.arrive.shared::cta.b64 _, [bar];\n"
	"@!%p1 bra HOME;\n"
	"mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0;\n"
	"ld.shared.u32 %r2, [word];\n"
	"HOME: ret;\n}\n"
	".visible .entry odd(.param .u32 go)\n{\n.reg .pred %p<2>; .reg .b32 %r<2>;\n"
	"ld.param.u32 %r1, [go];\n"
	"setp.eq.u32 %p1, %r1, 0;\n"
	"@%p1 bra DONE;\n"
	"some.future.instruction.b32 %r1;\n"
	"DONE: ret;\n}\n";

struct fixture {
	struct consan *c;
	struct consan_module *m;
	uint32_t *out;
};

static struct fixture open_fixture(const char *options)
{
	struct consan_err e = { 0 };
	struct fixture s = { .c = consan_open(options, &e) };

	cr_assert_not_null(s.c, "%s", e.text);
	consan_arch_hint(s.c, 90, 'a');
	s.m = consan_load_ptx(s.c, "test.ptx", ptx, sizeof ptx - 1, &e);
	cr_assert_not_null(s.m, "%s", e.text);
	s.out = consan_malloc(s.c, 64 * 4, CONSAN_MEM_DEVICE);
	return s;
}

static void close_fixture(struct fixture *s)
{
	consan_free(s->c, s->out);
	consan_unload(s->m);
	consan_close(s->c);
}

static enum consan_status launch(struct fixture *s, const char *kernel, const void *params)
{
	struct consan_err e = { 0 };
	struct consan_launch l = {
		.kernel = consan_kernel(s->m, kernel, &e), .grid = { 4, 1, 1 },
		.block = { 64, 1, 1 }, .params = params,
	};

	cr_assert_not_null(l.kernel, "%s", e.text);
	return consan_launch(s->c, &l, &e);
}

static bool is_race(const struct finding *f)
{
	return (f->rule == CS101 || f->rule == CS102) && f->nsides == 2;
}

Test(consan, a_race_is_found_and_its_twin_is_silent)
{
	struct fixture s = open_fixture("");
	const struct finding *const *f;
	const struct coverage *v;
	size_t n;

	cr_assert_eq(launch(&s, "clean", &s.out), CONSAN_OK);
	cr_assert_eq(consan_raw_findings(s.c, &f), 0);
	for (uint32_t t = 0; t < 64; t++)
		cr_assert_eq(s.out[t], t ^ 32);
	cr_assert_eq(launch(&s, "racy", &s.out), CONSAN_OK);
	n = consan_raw_findings(s.c, &f);
	cr_assert_geq(n, 1);
	cr_assert(is_race(f[0]));
	cr_assert_str_eq(f[0]->kernel, "racy");
	cr_assert_eq(f[0]->clusters, 4);
	cr_assert_str_eq(site_get(f[0]->side[0].site)->kernel, "racy");
	cr_assert_eq(launch(&s, "racy", &s.out), CONSAN_OK);
	cr_assert_eq(consan_raw_findings(s.c, &f), n, "the same bug is one finding");
	cr_assert_eq(f[0]->clusters, 8);
	cr_assert_eq(consan_raw_coverage(s.c, &v), 2);
	cr_assert_eq(v[1].launches, 2);
	cr_assert_eq(v[1].checked, 2);
	close_fixture(&s);
}

/* Programs that were compiled with an earlier and with a later header. */
Test(consan, structs_of_other_versions)
{
	struct { struct consan_launch l; uint64_t later; } longer = { .later = 0 };
	struct fixture s = open_fixture("");
	struct consan_err e = { 0 };
	struct consan_launch l = { .kernel = consan_kernel(s.m, "clean", &e), .grid = { 1, 1, 1 },
		.block = { 64, 1, 1 }, .params = &s.out, .queue = 99 };
	struct { struct consan_kernel_info i; uint64_t later; } info;
	struct consan_kernel_info part;

	cr_assert_str_eq(consan_version(), CONSAN_VERSION);
	cr_assert_eq(consan_launch_sized(s.c, &l, offsetof(struct consan_launch, args), &e), CONSAN_OK);
	longer.l = l;
	cr_assert_eq(consan_launch_sized(s.c, &longer.l, sizeof longer, &e), CONSAN_OK);
	longer.later = 1;
	cr_assert_eq(consan_launch_sized(s.c, &longer.l, sizeof longer, &e), CONSAN_BAD_LAUNCH);
	cr_assert_eq(e.code, CONSAN_ERR_LAUNCH);
	memset(&info, 0xff, sizeof info);
	consan_kernel_info_sized(l.kernel, &info.i, sizeof info);
	cr_assert(info.i.nparams == 1 && info.i.sm == 90 && !info.later);
	memset(&part, 0xff, sizeof part);
	consan_kernel_info_sized(l.kernel, &part, offsetof(struct consan_kernel_info, sm));
	cr_assert(part.nparams == 1 && part.sm == UINT32_MAX);
	close_fixture(&s);
}

/* No launch runs after one with an error, until it is cleared. */
Test(consan, halts_on_error)
{
	struct fixture s = open_fixture("halt-on-error");

	cr_assert_eq(launch(&s, "clean", &s.out), CONSAN_OK);
	cr_assert_eq(launch(&s, "racy", &s.out), CONSAN_OK);
	s.out[0] = 99;
	cr_assert_eq(launch(&s, "clean", &s.out), CONSAN_STOPPED);
	cr_assert_eq(s.out[0], 99);
	consan_clear(s.c);
	cr_assert_eq(launch(&s, "clean", &s.out), CONSAN_OK);
	cr_assert_eq(s.out[0], 32);
	close_fixture(&s);
}

Test(consan, filters)
{
	struct fixture s = open_fixture("kernel-name-exclude=kns=rac launch-skip=1 launch-count=1");
	const struct finding *const *f;
	const struct coverage *v;

	for (int i = 0; i < 3; i++)
		launch(&s, "clean", &s.out);
	launch(&s, "racy", &s.out);
	cr_assert_eq(consan_raw_findings(s.c, &f), 0);
	cr_assert_eq(consan_raw_coverage(s.c, &v), 2);
	cr_assert_eq(v[0].checked, 1);
	cr_assert_eq(v[0].skipped, 2);
	cr_assert_eq(v[1].skipped, 1);
	close_fixture(&s);
}

Test(consan, unsupported_only_counts_when_it_is_reached)
{
	struct fixture s = open_fixture("");
	const struct coverage *v;
	uint32_t go = 0;

	cr_assert_eq(launch(&s, "odd", &go), CONSAN_OK);
	go = 1;
	cr_assert_eq(launch(&s, "odd", &go), CONSAN_UNCHECKED);
	cr_assert_eq(consan_raw_coverage(s.c, &v), 1);
	cr_assert_eq(v[0].checked, 1);
	cr_assert_str_not_empty(v[0].unchecked);
	close_fixture(&s);
}

Test(consan, records_and_replay_agree)
{
	char records[] = "/tmp/consan-rec-XXXXXX", saved[] = "/tmp/consan-ev-XXXXXX";
	char words[200], json[] = "/tmp/consan-rep-XXXXXX.json";
	struct event_read_stats stats;
	struct event_reader none = { 0 };
	struct options o;
	struct results r = { 0 };
	struct consan_err e = { 0 };
	struct fixture s;
	struct stat st;
	int status;

	close(mkstemp(records));
	close(mkstemp(saved));
	close(mkstemps(json, 5));
	snprintf(words, sizeof words, "save=%s", saved);
	s = open_fixture(words);
	cr_assert(consan_record_to(s.c, records, &e), "%s", e.text);
	launch(&s, "clean", &s.out);
	launch(&s, "racy", &s.out);
	close_fixture(&s);

	cr_assert(results_read(&r, records, &e), "%s", e.text);
	results_finish(&r);
	cr_assert_geq(r.finding.n, 1);
	cr_assert(is_race(&r.finding.at[0]));
	cr_assert_eq(r.coverage.n, 2);
	cr_assert_eq(r.launch.n, 2);
	results_free(&r);

	cr_assert(event_read(saved, &none, &stats, &e), "%s", e.text);
	cr_assert_eq(stats.launches, 2);
	cr_assert_eq(stats.clusters, 8);
	cr_assert_eq(stats.damaged + stats.incomplete, 0);

	options_init(&o);
	snprintf(words, sizeof words, "log-file=/dev/null report=%s", json);
	cr_assert(options_parse(&o, words, &e));
	cr_assert(consan_replay(&o, saved, &status, &e), "%s", e.text);
	cr_assert_eq(status, 66);
	cr_assert_eq(stat(json, &st), 0);
	cr_assert_gt(st.st_size, 100);
	cr_assert(consan_report(&o, (const char *const[]){ records, "/nonexistent" }, 2, NULL, 0,
		NULL, NULL, &status, &e), "%s", e.text);
	cr_assert_eq(status, 66);
	options_free(&o);
	unlink(records);
	unlink(saved);
	unlink(json);
}

Test(consan, options_and_ptx_are_refused_with_a_reason)
{
	struct consan_err e = { 0 };
	struct consan *c;

	cr_assert_null(consan_open("seed=x", &e));
	cr_assert_eq(e.code, CONSAN_ERR_OPTION);
	e = (struct consan_err){ 0 };
	cr_assert_null(consan_open("knob=nonsense=1", &e));
	cr_assert_eq(e.code, CONSAN_ERR_OPTION);
	e = (struct consan_err){ 0 };
	cr_assert_null(consan_open("save=/nonexistent/x", &e));
	cr_assert_eq(e.code, CONSAN_ERR_IO);
	e = (struct consan_err){ 0 };
	c = consan_open("strict knob=fence-by-writer=0", &e);
	cr_assert_not_null(c, "%s", e.text);
	cr_assert_null(consan_load_ptx(c, "bad.ptx", "entry point\n", 12, &e));
	cr_assert_neq(e.code, CONSAN_ERR_NONE);
	consan_close(c);
}

static void write_file(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	cr_assert_not_null(out);
	fputs(text, out);
	fclose(out);
}

static void announced(void *user, const struct consan_finding *f)
{
	(void)f;
	++*(unsigned *)user;
}

Test(consan, suppressed_findings_are_not_shown)
{
	char dir[] = "/tmp/consan-supp-XXXXXX", path[64], options[96];
	struct consan_err e = { 0 };
	unsigned announcements = 0;
	struct fixture s;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/entries", dir);
	snprintf(options, sizeof options, "suppressions=%s", path);
	write_file(path, "CS102\n kernel: racy\n source: test.ptx:*\n reason: a test\n"
		"CS901\n kernel: racy\n reason: a test\n");
	s = open_fixture(options);
	consan_on_finding(s.c, announced, &announcements);
	cr_assert_eq(launch(&s, "racy", &s.out), CONSAN_OK);
	cr_expect_eq(consan_findings(s.c), 0);
	cr_expect_eq(consan_errors(s.c), 0);
	cr_expect_eq(consan_errors_seen(s.c), 0);
	cr_expect_not(consan_finds(s.c, "CS102", NULL, 0));
	cr_expect_eq(announcements, 0);
	close_fixture(&s);
	write_file(path, "CS102\n kernel: other\n reason: a test\n");
	s = open_fixture(options);
	launch(&s, "racy", &s.out);
	cr_expect(consan_finds(s.c, "CS102", NULL, 0));
	close_fixture(&s);
	write_file(path, "CS102\n kernel: racy\n raison: misspelt\n");
	cr_assert_null(consan_open(options, &e));
	cr_expect_eq(e.code, CONSAN_ERR_FORMAT);
	cr_expect_eq(e.line, 3);
	cr_expect_eq(e.col, 2);
	unlink(path);
	rmdir(dir);
}

static struct results written(struct consan *c, const char *path)
{
	struct results r = { 0 };
	struct consan_err e = { 0 };

	cr_assert(consan_write_report(c, path, &e), "%s", e.text);
	cr_assert(results_load(&r, path, &e), "%s", e.text);
	results_finish(&r);
	return r;
}

Test(consan, a_session_writes_reports)
{
	char dir[] = "/tmp/consan-write-XXXXXX", path[64], options[96];
	struct consan_err e = { 0 };
	struct results r;
	struct fixture s;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/entries", dir);
	snprintf(options, sizeof options, "suppressions=%s", path);
	write_file(path, "CS101\n kernel: nowhere\n reason: a test\n*\n symbol: tile\n"
		" kernel: clean\n reason: a test\nCS102\n reason: a test\n");
	s = open_fixture(options);
	snprintf(path, sizeof path, "%s/x.json", dir);
	launch(&s, "racy", &s.out);
	launch(&s, "clean", &s.out);
	for (int i = 0; i < 2; i++) { /* writing changes nothing */
		r = written(s.c, path);
		cr_expect_eq(r.finding.n, consan_findings(s.c));
		cr_expect_eq(r.suppressed.n, 1);
		cr_expect_eq(r.suppression.at[1].matched, 0);
		cr_expect_eq(r.suppression.at[2].matched, 1);
		cr_expect_eq(r.coverage.n, 2);
		cr_expect_not_null(r.finding.at[0].history);
		results_free(&r);
	}
	consan_clear(s.c);
	r = written(s.c, path);
	cr_expect_eq(r.finding.n + r.suppressed.n, 0);
	results_free(&r);
	unlink(path);
	cr_expect_not(consan_write_report(s.c, "/dev/full", &e));
	cr_expect_eq(e.code, CONSAN_ERR_IO);
	e = (struct consan_err){ 0 };
	cr_expect_not(consan_write_report(s.c, "/nonexistent/x.html", &e));
	cr_expect_eq(e.code, CONSAN_ERR_IO);
	close_fixture(&s);
	snprintf(path, sizeof path, "%s/entries", dir);
	unlink(path);
	cr_expect_eq(rmdir(dir), 0);
}

struct worker {
	struct fixture *s;
	const char *path;
	unsigned bad;
};

static void *launch_and_look(void *arg)
{
	struct worker *w = arg;
	struct consan_err e = { 0 };

	for (int i = 0; i < 8; i++) {
		w->bad += launch(w->s, i & 1 ? "racy" : "clean", &w->s->out) != CONSAN_OK;
		consan_findings(w->s->c);
		consan_kernels(w->s->c);
		w->bad += i && !consan_finds(w->s->c, "CS102", "test.ptx", 0);
		w->bad += i % 4 == 3 && !consan_write_report(w->s->c, w->path, &e);
	}
	return NULL;
}

/* Two sessions, three threads in each. */
Test(consan, sessions_are_thread_safe, .timeout = TEST_LIMIT)
{
	char dir[] = "/tmp/consan-threads-XXXXXX", path[6][64];
	struct fixture s[2];
	struct worker w[6];
	pthread_t t[6];

	cr_assert_not_null(mkdtemp(dir));
	for (int i = 0; i < 2; i++)
		s[i] = open_fixture("jobs=2");
	for (int i = 0; i < 6; i++) {
		snprintf(path[i], sizeof path[i], "%s/%d.html", dir, i);
		w[i] = (struct worker){ .s = &s[i % 2], .path = path[i] };
		cr_assert_eq(pthread_create(&t[i], NULL, launch_and_look, &w[i]), 0);
	}
	for (int i = 0; i < 6; i++) {
		pthread_join(t[i], NULL);
		cr_expect_eq(w[i].bad, 0);
		cr_expect_eq(unlink(path[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(consan_kernels(s[i].c), 2);
		cr_expect_eq(consan_coverage(s[i].c, 0)->launches, 12);
		cr_expect_eq(consan_coverage(s[i].c, 0)->checked + consan_coverage(s[i].c, 1)->checked, 24);
		cr_expect_null(consan_coverage(s[i].c, 2));
		close_fixture(&s[i]);
	}
	cr_expect_eq(rmdir(dir), 0);
}

Test(consan, memory)
{
	struct fixture s = open_fixture("");
	enum consan_mem kind;
	uint64_t bytes;
	void *base;

	cr_assert_eq((uintptr_t)s.out % 256, 0);
	cr_assert(consan_mem_find(s.c, s.out + 5, &base, &bytes, &kind));
	cr_assert(base == s.out && bytes == 256 && kind == CONSAN_MEM_DEVICE);
	cr_assert_not(consan_mem_find(s.c, s.out + 64, &base, &bytes, &kind));
	cr_assert_null(consan_malloc(s.c, 1ull << 60, CONSAN_MEM_DEVICE));
	cr_assert_not(consan_free(s.c, &s));
	close_fixture(&s);
}

/* One of the explored schedules has a finding that the launch's own has not; a run with its seed
 * has the same finding. */
Test(consan, explored_schedules_are_found_again)
{
	struct fixture s = open_fixture("explore=16"), again;
	const struct finding *const *f, *const *g;
	char seed[40];

	cr_assert_eq(launch(&s, "untested_wait", &s.out), CONSAN_OK);
	cr_assert_eq(consan_raw_findings(s.c, &f), 1);
	cr_assert_eq(f[0]->rule, CS102);
	cr_assert_neq(f[0]->seed, 0);
	cr_assert_leq(f[0]->seed, 16);

	snprintf(seed, sizeof seed, "seed=%llu", (unsigned long long)f[0]->seed);
	again = open_fixture(seed);
	cr_assert_eq(launch(&again, "untested_wait", &again.out), CONSAN_OK);
	cr_assert_eq(consan_raw_findings(again.c, &g), 1);
	cr_assert_eq(g[0]->seed, f[0]->seed);
	cr_assert_eq(g[0]->seen, f[0]->seen);
	cr_assert_str_eq(g[0]->edge, f[0]->edge);
	cr_assert_str_eq(g[0]->hint, f[0]->hint);
	for (unsigned i = 0; i < 2; i++) {
		struct finding_side a = f[0]->side[i], b = g[0]->side[i];

		cr_assert_eq(site_get(a.site)->ptx_line, site_get(b.site)->ptx_line);
		a.site = b.site = 0; /* the module was loaded twice */
		cr_assert_eq(memcmp(&a, &b, sizeof a), 0);
	}
	close_fixture(&again);
	close_fixture(&s);

	/* the program's own run uses the default schedule, without findings */
	s = open_fixture("");
	cr_assert_eq(launch(&s, "untested_wait", &s.out), CONSAN_OK);
	cr_assert_eq(consan_raw_findings(s.c, &f), 0);
	close_fixture(&s);
}

/* A launch that --timeout ends is not checked, even if no cluster was running at that moment. */
Test(consan, cut_off_is_not_checked, .timeout = TEST_LIMIT)
{
	static const char loop[] =
		".version 8.0\n.target sm_90a\n.address_size 64\n"
		".visible .entry loop()\n{\n.reg .pred %p<2>; .reg .b32 %r<2>;\n"
		"mov.u32 %r1, 0;\n"
		"AGAIN: add.u32 %r1, %r1, 1;\n"
		"setp.lt.u32 %p1, %r1, 100000;\n"
		"@%p1 bra AGAIN;\n"
		"ret;\n}\n";
	struct consan_err e = { 0 };
	struct consan *c = consan_open("timeout=0.1 jobs=2", &e);
	struct consan_module *m = consan_load_ptx(c, "loop.ptx", loop, sizeof loop - 1, &e);
	struct consan_launch l = { .kernel = consan_kernel(m, "loop", &e), .grid = { 65536, 1, 1 },
		.block = { 32, 1, 1 } };
	const struct coverage *v;

	cr_assert_eq(consan_launch(c, &l, &e), CONSAN_HANG);
	cr_assert_eq(consan_raw_coverage(c, &v), 1);
	cr_assert_eq(v->launches, 1);
	cr_assert_eq(v->checked, 0);
	cr_assert(strstr(v->unchecked, "of 65536 clusters ended"), "%s", v->unchecked);
	consan_unload(m);
	consan_close(c);
}

/* ---- the time is up while no cluster is resident ---- */

static struct text report_of(struct consan *c)
{
	char path[] = "/tmp/consan-rep-XXXXXX.json";
	struct consan_err e = { 0 };
	struct text t = { 0 };

	close(mkstemps(path, 5));
	cr_assert(consan_write_report(c, path, &e), "%s", e.text);
	cr_assert(text_read(&t, path, &e), "%s", e.text);
	unlink(path);
	return t;
}

/* Each cluster ends in its first turn, so none is there to be stopped. The launch is an error all the
 * same, and not checked: in the library, with further schedules, and in a replay. */
static void check_stopped(const char *words)
{
	static const char nothing[] = ".version 8.0\n.target sm_90a\n.address_size 64\n"
		".visible .entry nothing()\n{\nret;\n}\n";
	char saved[] = "/tmp/consan-ev-XXXXXX", all[200], path[] = "/tmp/consan-rep-XXXXXX.json";
	struct consan_err e = { 0 };
	struct consan_launch l = { .grid = { 100000000, 1, 1 }, .block = { 32, 1, 1 } };
	struct consan_module *m;
	const struct coverage *v;
	struct text t = { 0 };
	struct options o;
	struct consan *c;
	int status;

	close(mkstemp(saved));
	close(mkstemps(path, 5));
	snprintf(all, sizeof all, "timeout=0.05 save=%s %s", saved, words);
	c = consan_open(all, &e);
	cr_assert_not_null(c, "%s", e.text);
	m = consan_load_ptx(c, "nothing.ptx", nothing, sizeof nothing - 1, &e);
	l.kernel = consan_kernel(m, "nothing", &e);
	cr_assert_eq(consan_launch(c, &l, &e), CONSAN_HANG);
	cr_assert_eq(consan_raw_coverage(c, &v), 1);
	cr_assert_eq(v->checked, 0);
	cr_assert(strstr(v->unchecked, "of 100000000 clusters ended"), "%s", v->unchecked);
	cr_assert(consan_finds(c, "CS705", NULL, 0));
	t = report_of(c);
	cr_assert(strstr(t.at, "of 100000000 clusters ended") && strstr(t.at, "CS705"), "%s", t.at);
	text_free(&t);
	consan_unload(m);
	consan_close(c);

	options_init(&o);
	snprintf(all, sizeof all, "log-file=/dev/null report=%s", path);
	cr_assert(options_parse(&o, all, &e));
	cr_assert(consan_replay(&o, saved, &status, &e), "%s", e.text);
	cr_assert(text_read(&t, path, &e), "%s", e.text);
	cr_assert(strstr(t.at, "of 100000000 clusters ended"), "%s", t.at);
	cr_assert_eq(status, 67);
	text_free(&t);
	options_free(&o);
	unlink(saved);
	unlink(path);
}

Test(consan, a_launch_is_stopped_between_clusters)
{
	check_stopped("jobs=1");
	check_stopped("jobs=2");
	check_stopped("jobs=1 explore=2");
}
