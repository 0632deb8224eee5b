/* Tests of the commands: their output and exit status. */
#include "tests/common/shell.h"
#include "libconsan/event/io.h"
#include "libconsan/finding/finding.h"
#include "libconsan/event/site.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int consan(const char *arguments)
{
	return shell("%s/consan %s 2>&1", build_dir(), arguments);
}

/* Runs a program that says that it ran, without options from elsewhere. */
static int run(const char *options)
{
	return shell("unset CONSAN_OPTIONS; cd / && %s/consan-run %s echo it ran 2>&1", build_dir(),
		options);
}

static bool has(const char *what)
{
	return strstr(output, what) != NULL;
}

static char *write_file(char *path, const char *text)
{
	int fd = mkstemps(path, 4);
	size_t n = strlen(text);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, n), (ssize_t)n);
	close(fd);
	return path;
}

/* The commands that read JSON reports, on a small and on a malformed report. */
Test(cli, report_merge_suppress)
{
	char path[] = "/tmp/consan-cli-XXXXXX.jsn", bad[] = "/tmp/consan-cli-XXXXXX.jsn";
	char command[512];

	write_file(path, "{\"consan_report\": 2, \"findings\": [{\"rule\": \"CS102\", \"severity\":"
		" \"error\", \"kernel\": \"k\", \"sides\": [], \"seen\": 1}], \"coverage\":"
		" [{\"kernel\": \"k\", \"launches\": 1, \"checked\": 1}]}");
	write_file(bad, "{\"consan_report\": 2,\n\"findings\": oops}");
	snprintf(command, sizeof command, "report %s", path);
	cr_expect_eq(consan(command), 66);
	cr_expect(has("error CS102") && has("SUMMARY consan: 1 error"));
	snprintf(command, sizeof command, "report --to=html %s", path);
	cr_expect_eq(consan(command), 66);
	cr_expect(has("<!DOCTYPE html>"));
	snprintf(command, sizeof command, "report --to=pdf %s", path);
	cr_expect_eq(consan(command), 2);
	snprintf(command, sizeof command, "report --finding=2 %s", path);
	cr_expect_eq(consan(command), 2);
	snprintf(command, sizeof command, "merge %s %s", path, path);
	cr_expect_eq(consan(command), 66);
	cr_expect(has("\"seen\": 2") && has("\"launches\": 2"));
	snprintf(command, sizeof command, "suppress %s --finding=1 --reason=why", path);
	cr_expect_eq(consan(command), 0);
	cr_expect(has("CS102\n") && has("reason: why\n"));
	snprintf(command, sizeof command, "suppress %s --finding=1", path);
	cr_expect_eq(consan(command), 2);
	snprintf(command, sizeof command, "report %s", bad);
	cr_expect_eq(consan(command), 2);
	cr_expect(has(":2:"), "%s", output);
	unlink(path);
	unlink(bad);
}

/* Wrong options are found before the program runs: status 64, and the option in the message. */
Test(cli, run_checks_its_options)
{
	static const struct { const char *options, *words; } bad[] = {
		{ "--sede=3", "--seed" }, { "--knob=fence_aftr_read=1", "fence_after_read" },
		{ "--knob=foo=1", "--knob=foo=1" }, { "--knob=fence_after_read=300", "255" },
		{ "--save=/nonexistent/x", "--save=/nonexistent/x" },
		{ "--dump-ptx=/nonexistent/x/y", "--dump-ptx" },
		{ "--report=/nonexistent/x.json", "--report=/nonexistent/x.json" },
		{ "--log-file=/nonexistent/x", "--log-file" }, { "--log-file=/", "directory" },
		{ "--replace-ptx=/nonexistent.ptx", "--replace-ptx" },
		{ "--suppressions=/nonexistent.supp", "/nonexistent.supp" },
		{ "--history=9999", "512" }, { "--arch=sm_75", "sm_80" }, { "--schedule=x", "--schedule" },
		{ "--config=/nonexistent.conf", "/nonexistent.conf" }, { "--leak-check full", "leaks" },
		{ "--print-level=warning", "warn" }, { "--timeout=soon", "--timeout" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cr_expect_eq(run(bad[i].options), 64, "%s: %s", bad[i].options, output);
		cr_expect(has(bad[i].words), "%s: %s", bad[i].options, output);
		cr_expect_not(has("it ran"), "%s: %s", bad[i].options, output);
	}
	cr_expect_eq(run("--allow-unchecked --tool memcheck --leak-check no --xyz"), 64);
	cr_expect_eq(run("--allow-unchecked --tool memcheck --leak-check no"), 0, "%s", output);
	cr_expect(has("it ran"));
}

/* No file is left behind, or changed, by checking that it can be written. */
Test(cli, checked_files_are_left_alone)
{
	cr_assert_eq(shell("unset CONSAN_OPTIONS; d=$(mktemp -d) && cd $d && echo old >log && "
		"%s/consan-run --save=s --dump-ptx=p --log-file=log --knob=foo=1 true; ls; cat log; "
		"rm -r $d", build_dir()), 0);
	cr_assert_str_eq(output, "log\nold\n");
}

/* A code cache in which others can put code is not used, which is said in a line; nor can it be filled. */
Test(cli, code_cache_of_others)
{
	const char *const how = "unset CONSAN_OPTIONS; d=$(mktemp -d) && mkdir -p $d/consan/origin-1 && cd $d/consan && "
		"chmod %s origin-1 && XDG_CACHE_HOME=$d %s/consan-run --allow-unchecked --prefix= %s 2>&1; "
		"echo $?; ls origin-1; rm -r $d";
	static const char *const cache[] = { "", "--code-cache=origin-1" };

	for (size_t k = 0; k < ARRAY_SIZE(cache); k++) {
		char words[100];

		snprintf(words, sizeof words, "%s true", cache[k]);
		cr_assert_eq(shell(how, "777", build_dir(), words), 0);
		cr_expect(has("remark: the code cache is not used") && has("\n0\n"), "%s: %s", words, output);
		cr_assert_eq(shell(how, "755", build_dir(), words), 0);
		cr_expect(!has("code cache") && has("\n0\n"), "%s: %s", words, output);
		snprintf(words, sizeof words, "--gpu-prepare --arch=sm_90a %s /dev/null", cache[k]);
		cr_assert_eq(shell(how, "777", build_dir(), words), 0);
		cr_expect(has("--gpu-prepare: ") && has("origin-1: ") && has("\n64\n"), "%s: %s", words, output);
	}
}

/* The command line overrides the environment, which overrides the nearest file. */
Test(cli, options_from_elsewhere)
{
	static const char *const in_order[] = { "\ntop SUMMARY", "\nnear SUMMARY", "\nenv SUMMARY",
		"\ncmd SUMMARY", "\nSUMMARY", "consan.conf:1: unknown option --wrong", "\n64\n" };
	const char *at = output;

	cr_assert_eq(shell("exec 2>&1; d=$(mktemp -d) && mkdir -p $d/a/b && cd $d/a/b && run='%s/consan-run "
		"--allow-unchecked' && echo 'prefix = top' >../../consan.conf && $run true && "
		"echo 'prefix = near' >../consan.conf && $run true && "
		"CONSAN_OPTIONS=prefix=env $run true && CONSAN_OPTIONS=prefix=env $run --prefix=cmd true && "
		"$run --config=none true && echo wrong >../consan.conf; $run true; echo $?; "
		"rm -r $d", build_dir()), 0);
	for (size_t i = 0; i < ARRAY_SIZE(in_order); i++) {
		at = strstr(at, in_order[i]);
		cr_assert_not_null(at, "no %s in %s", in_order[i], output);
	}
}

Test(cli, help_and_version)
{
	cr_assert_eq(consan("--version"), 0);
	cr_assert(has("consan "));
	cr_assert_eq(consan("--help"), 0);
	cr_assert(has("explain") && has("replay") && has("dump"));
	cr_assert_eq(shell("%s/consan-run --version 2>&1", build_dir()), 0, "%s", output);
	cr_assert(has("consan-run "));
	cr_assert_eq(consan("replay --help"), 0);
	cr_assert(has("--strict") && has("--report") && has("--print-limit"));
	cr_assert_eq(consan(""), 2);
	cr_assert_eq(consan("frobnicate"), 2);
	cr_assert(has("frobnicate"));
	cr_assert_eq(consan("exlpain"), 2);
	cr_assert(has("did you mean explain?"));
	cr_assert_eq(consan("report --help"), 0);
	cr_assert(has("--print-level") && !has("--seed") && !has("--backend"));
	cr_assert_eq(consan("report --seed=3 x.json"), 2);
	cr_assert(has("option of consan-run"));
	for (const char *const *c = (const char *const[]){ "explain", "report", "merge", "suppress",
			"replay", "recover", "dump", "completion", NULL }; *c; c++) {
		char words[40];

		snprintf(words, sizeof words, "%s --version", *c);
		cr_assert_eq(consan(words), 0, "%s", *c);
	}
}

Test(cli, completion)
{
	cr_assert_eq(consan("completion bash | bash -n"), 0);
	cr_assert_eq(consan("completion bash"), 0);
	cr_assert(has("--backend=") && has("complete -F _consan_run consan-run") && has("CS102"));
	cr_assert_eq(consan("completion zsh"), 0);
	cr_assert(has("#compdef") && has("--backend=[") && has("compadd -- bash zsh fish"));
	cr_assert_eq(consan("completion fish"), 0);
	cr_assert(has("-l backend") && has("complete -c consan-run") && has("-f -a 'bash zsh fish'"));
	cr_assert_eq(consan("completion csh"), 2);
	cr_assert(has("expected bash, zsh or fish"));
	cr_assert_eq(consan("completion"), 2);
}

Test(cli, explain)
{
	cr_assert_eq(consan("explain CS102"), 0);
	cr_assert(has("CS102"));
	cr_assert_eq(consan("explain"), 0);
	cr_assert(has("CS101") && has("CS906"));
	cr_assert_eq(consan("explain knobs"), 0);
	cr_assert(has("fence_by_writer"));
	cr_assert_eq(consan("explain CS106 | grep -c '^  [-+] '"), 0,
		"the example does not show both twins");
	cr_assert_eq(consan("explain html | grep -c '<article'"), 0);
	cr_assert_eq(strtol(output, NULL, 10), rule_count());
	cr_assert_eq(consan("explain CS999"), 2);
}

Test(cli, explain_ptx_rules)
{
	cr_assert_eq(consan("explain a12"), 0);
	cr_assert(has("A12") && has("9.7.13.2") && has("CS103"));
	cr_assert_eq(consan("explain A25"), 0);
	cr_assert(has("not checked"));
	cr_assert_eq(consan("explain cs103 106"), 0);
	cr_assert(has("A12") && has("CS106"), "a rule shows the PTX rules that it implements");
	cr_assert_eq(consan("explain ptx | grep -c '^  [A-H][0-3][0-9] '"), 0);
	cr_assert_eq(strtol(output, NULL, 10), ptx_rule_count());
	cr_assert_eq(consan("explain CS1O6"), 2);
	cr_assert(has("did you mean CS106"));
	cr_assert_eq(consan("explain xyzzy"), 2);
	cr_assert(!has("did you mean"));
}

Test(cli, dump_ptx)
{
	char good[] = "/tmp/consan-cli-XXXXXX.ptx", bad[] = "/tmp/consan-cli-XXXXXX.ptx";
	char line[100];

	write_file(good, ".version 8.0\n.target sm_90\n.address_size 64\n"
		".visible .entry k()\n{\n\tbar.sync 0;\n\tret;\n}\n");
	snprintf(line, sizeof line, "dump --cfg %s", good);
	cr_assert_eq(consan(line), 0);
	cr_assert(has("bar.sync") && has("ret"));
	write_file(bad, ".version 8.0\n.target sm_90\n.address_size 64\n"
		".visible .entry k()\n{\n\tbar.sync [;\n\tret;\n}\n");
	snprintf(line, sizeof line, "dump %s", bad);
	cr_assert_eq(consan(line), 2);
	cr_assert(has("6") && has("^"), "no line number or caret");
	cr_assert_eq(consan("dump /nonexistent"), 2);
	cr_assert_eq(consan("dump"), 2);
	unlink(good);
	unlink(bad);
}

Test(cli, dump_and_replay_events)
{
	static const struct launch_info l = { .kernel = "k", .grid = { 1, 1, 1 },
		.block = { 32, 1, 1 }, .cluster = { 1, 1, 1 }, .sm = 90 };
	struct cluster_info c = { .launch = &l, .nctas = 1, .warps_per_cta = 1 };
	char path[] = "/tmp/consan-cli-XXXXXX.evt", line[100];
	struct site s = { .kernel = "k", .module = "k.ptx", .ptx_line = 9, .ptx = "ret;" };
	struct event e = { .kind = EV_CTA_BEGIN, .lanes = UINT32_MAX,
		.cta_begin.threads = 32 };
	struct consan_err err = { 0 };
	struct event_writer *w = event_writer_open(write_file(path, ""), &err);
	struct event_sink *sink;

	event_writer_launch(w, &l);
	sink = event_writer_begin(w, &c, NULL);
	sink->event(sink, &e);
	e.kind = EV_THREAD_EXIT;
	e.site = site_add(&s);
	sink->event(sink, &e);
	e.kind = EV_CTA_END;
	sink->event(sink, &e);
	event_writer_end(sink);
	event_writer_launch_end(w, &l, UINT32_MAX, "");
	cr_assert(event_writer_close(w, &err));
	snprintf(line, sizeof line, "dump %s", path);
	cr_assert_eq(consan(line), 0);
	cr_assert(has("0/0 CTA_BEGIN") && has("0/0 THREAD_EXIT") && has("k.ptx:9"));
	snprintf(line, sizeof line, "replay %s", path);
	cr_assert_eq(consan(line), 0);
	cr_assert(has("SUMMARY consan: 0 errors") && has("1 of 1 kernel checked"));
	cr_assert_eq(truncate(path, 150), 0);
	cr_assert_eq(consan(line), 67, "a truncated stream counts as unchecked");
	snprintf(line, sizeof line, "replay --backend=tpu %s", path);
	cr_assert_eq(consan(line), 2);
	unlink(path);
}
