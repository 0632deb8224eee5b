/* Tests of options: parsing and formatting of words, refused values, kernel filters. */
#include "libconsan/options/options.h"

#include <argp.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Test(options, defaults)
{
	struct options o;

	options_init(&o);
	cr_assert_eq(o.error_exitcode, 66);
	cr_assert_eq(o.print_limit, 100);
	cr_assert_eq(o.async, OPT_ASYNC_AUTO);
	cr_assert_eq(o.print_level, PRINT_WARN);
	cr_assert_str_eq(o.save, "");
	cr_assert_not(o.strict);
	options_free(&o);
}

Test(options, round_trip)
{
	static const char words[] = "kernel-name=kns=a\\ b kernel_name=regex=^x\\\\d strict "
		"seed=7 timeout=1.5 async=random report=a.json report=b.txt save=e.%p "
		"arch=sm_90a knob=k2=1 prefix=\\ >";
	struct options o, again;
	struct text t = { 0 }, t2 = { 0 };
	struct consan_err e = { 0 };

	options_init(&o);
	cr_assert(options_parse(&o, words, &e), "%s", e.text);
	cr_assert_eq(o.kernel_name.n, 2);
	cr_assert_str_eq(o.kernel_name.at[0], "kns=a b");
	cr_assert_str_eq(o.kernel_name.at[1], "regex=^x\\d");
	cr_assert(o.strict);
	cr_assert_eq(o.seed, 7);
	cr_assert_eq(o.async, OPT_ASYNC_RANDOM);
	cr_assert_eq(o.report.n, 2);
	cr_assert_str_eq(o.prefix, " >");
	options_format(&o, &t);
	options_init(&again);
	cr_assert(options_parse(&again, t.at, &e), "%s", e.text);
	options_format(&again, &t2);
	cr_assert_str_eq(t.at, t2.at);
	cr_assert_str_eq(again.prefix, " >");
	cr_assert_float_eq(again.timeout, 1.5, 1e-9);
	text_free(&t);
	text_free(&t2);
	options_free(&o);
	options_free(&again);
}

Test(options, defaults_format_to_nothing)
{
	struct options o;
	struct text t = { 0 };
	struct consan_err e = { 0 };

	options_init(&o);
	cr_assert(options_parse(&o, NULL, &e));
	cr_assert(options_parse(&o, " \n ", &e));
	options_format(&o, &t);
	cr_assert_str_eq(t.at, "");
	text_free(&t);
	options_free(&o);
}

Test(options, refused)
{
	static const char *const bad[] = {
		"no-such-option", "seed=x", "seed=", "seed", "async=sometimes", "strict=maybe",
		"backend=tpu", "arch=hopper", "arch=sm_90x", "report=x.pdf", "report=html",
		"report=x", "kernel-name=x", "kernel-name=regex=(",
		"kernel-name=regex=a++++++++++++++++++++++++++++++++", "kernel-name=regex=((a{99}){99}){99}",
		"kernel-name=regex=aa{99999999999999999999}", "kernel-name=regex=[]a[:+:]](b{200}){,200}{200}",
		"timeout=-1", "timeout=soon",
		"knob=k1", "error-exitcode=256", "launch-skip=-1", "history=513", "quiet=maybe",
		"leak-check=full", "xml", "tool=sanity",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct options o;
		struct consan_err e = { 0 };

		options_init(&o);
		cr_assert_not(options_parse(&o, bad[i], &e), "%s was accepted", bad[i]);
		cr_assert_eq(e.code, CONSAN_ERR_OPTION);
		cr_assert_str_not_empty(e.text);
		options_free(&o);
	}
}

/* The former name of gpu-emulated is accepted; the new one is passed on. */
Test(options, alias)
{
	struct options o;
	struct text t = { 0 };
	struct consan_err e = { 0 };

	options_init(&o);
	cr_assert(options_parse(&o, "backend=rehearse", &e), "%s", e.text);
	cr_assert_eq(o.backend, OPT_BACKEND_GPU_EMULATED);
	options_format(&o, &t);
	cr_assert_str_eq(t.at, "backend=gpu-emulated");
	cr_assert_not(options_parse(&o, "async=rehearse", &e));
	text_free(&t);
	options_free(&o);
}

Test(options, argp_parses_the_table)
{
	char *argv[] = { "t", "--seed=5", "-k", "kns=x", "--no-source", "-q", NULL };
	struct options o;

	options_init(&o);
	cr_assert_eq(argp_parse(options_argp(OPTIONS_RUN), 6, argv, 0, NULL, &o), 0);
	cr_assert_eq(o.seed, 5);
	cr_assert_eq(o.kernel_name.n, 1);
	cr_assert(o.no_source && o.quiet);
	options_free(&o);
}

Test(options, arch)
{
	unsigned sm;
	char suffix;

	cr_assert(options_arch("sm_90a", &sm, &suffix) && sm == 90 && suffix == 'a');
	cr_assert(options_arch("compute_100f", &sm, &suffix) && sm == 100 && suffix == 'f');
	cr_assert(options_arch("80", &sm, &suffix) && sm == 80 && !suffix);
	cr_assert_not(options_arch("sm_", &sm, &suffix));
}

Test(options, path)
{
	char *s = options_path("log.%p.%%p", 42);

	cr_assert_str_eq(s, "log.42.%p");
	free(s);
}

Test(options, filters)
{
	static const char mangled[] = "_Z4gemmIfEvPKT_";
	static const char demangled[] = "void gemm<float>(float const*)";

	cr_assert(options_match("kns=gem", mangled, demangled));
	cr_assert(options_match("kne=gemm", mangled, demangled));
	cr_assert(options_match("kne=_Z4gemmIfEvPKT_", mangled, demangled));
	cr_assert(options_match("kernel_substring=float", mangled, demangled));
	cr_assert(options_match("regex=^gemm$", mangled, demangled));
	cr_assert_not(options_match("kne=gem", mangled, demangled));
	cr_assert_not(options_match("regex=^emm", mangled, demangled));
	cr_assert(options_match("regex=^(g+e{1,40}[[:alpha:]]m*){1,20}$", mangled, demangled));
	cr_assert(options_match("kne=k", "k", NULL));
}

/* A flag of a configuration file can be taken back. */
Test(options, flags_have_values)
{
	struct options o;
	struct consan_err e = { 0 };

	options_init(&o);
	cr_assert(options_parse(&o, "strict --quiet no-source=yes", &e), "%s", e.text);
	cr_assert(o.strict && o.quiet && o.no_source);
	cr_assert(options_parse(&o, "--strict=no quiet=0", &e), "%s", e.text);
	cr_assert(!o.strict && !o.quiet && o.no_source);
	options_free(&o);
}

/* What an unknown option, or a choice, is taken for; NULL: nothing. */
Test(options, did_you_mean)
{
	static const struct { unsigned command; const char *word, *like; } typed[] = {
		{ OPTIONS_RUN, "--sede=3", "--seed?" }, { OPTIONS_RUN, "--sead", "--seed?" },
		{ OPTIONS_RUN, "--kernel_nmae=kns=x", "--kernel-name?" },
		{ OPTIONS_RUN, "--vresion", "--version?" }, { OPTIONS_RUN, "--xyzzy", NULL },
		{ OPTIONS_REPORT, "--repot=x.html", "--report?" },
		{ OPTIONS_REPORT, "--seed=3", "option of consan-run" },
		{ OPTIONS_REPORT, "--tool=memcheck", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(typed); i++) {
		char *argv[] = { "t", (char *)typed[i].word, NULL };
		struct consan_err e = { 0 };

		cr_assert_not(options_known(typed[i].command, NULL, 2, argv, NULL, &e));
		cr_assert_eq(e.code, CONSAN_ERR_OPTION);
		if (typed[i].like)
			cr_expect(strstr(e.text, typed[i].like), "%s: %s", typed[i].word, e.text);
		else
			cr_expect_not(strstr(e.text, "did you mean"), "%s: %s", typed[i].word, e.text);
	}
}

/* The words of the program are its own; a value may be a word of its own. */
Test(options, known)
{
	char *argv[] = { "t", "--seed", "3", "-k", "--bad", "--str", "--tool", "racecheck", "--config",
		"x.conf", "./prog", "--own", NULL };
	const char *config = NULL;
	struct consan_err e = { 0 };

	cr_assert(options_known(OPTIONS_RUN, NULL, 12, argv, &config, &e), "%s", e.text);
	cr_assert_str_eq(config, "x.conf");
	cr_assert_not(options_known(OPTIONS_REPLAY, NULL, 12, argv, NULL, &e));
}

/* Each option of compute-sanitizer is taken, with our option, or refused with words. */
Test(options, compute_sanitizer)
{
	static const struct { const char *name, *value; } habit[] = {
#define SANITIZER(name, takes_value, value, to, answer) { #name, value },
#include "libconsan/options/compute_sanitizer.def"
#undef SANITIZER
	};
	struct options o;
	struct consan_err e = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(habit); i++) {
		struct consan_err why = { 0 };

		options_init(&o);
		if (!options_set(&o, habit[i].name, *habit[i].value ? habit[i].value : "kns=x", &why))
			cr_expect(strlen(why.text) > 20, "%s", why.text);
		options_free(&o);
	}
	options_init(&o);
	cr_assert(options_parse(&o, "kernel-regex=kns=gemm tool=racecheck racecheck-num-workers=3 "
		"print-level=fatal show-backtrace=device", &e), "%s", e.text);
	cr_assert_str_eq(o.kernel_name.at[0], "kns=gemm");
	cr_assert_eq(o.jobs, 3);
	cr_assert_eq(o.print_level, PRINT_ERROR);
	cr_assert_eq(o.show_backtrace, BACKTRACE_NO);
	cr_assert_not(o.remarks.n);
	cr_assert(options_parse(&o, "tool=memcheck", &e));
	cr_assert(o.remarks.n && strstr(o.remarks.at, "--tool=memcheck: "));
	options_free(&o);
}

static void write_config(char *path, const char *text)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* File, then environment, then command line; lists grow. */
Test(options, sources)
{
	char path[] = "/tmp/consan-options-XXXXXX";
	struct options o;
	struct text remarks = { 0 };
	struct consan_err e = { 0 };

	write_config(path, "# comment\n\n  seed = 3 \nstrict\nprefix = a  b\nkernel-name=kns=x\n"
		"--jobs=2\r\nreport = out/x.json\nreport=-.sarif\n"
		"suppressions=/etc/x\n");
	setenv("CONSAN_OPTIONS", "--seed=4 kernel-name=kns=y prefix=c", 1);
	options_init(&o);
	cr_assert(options_preset(&o, path, &remarks, &e), "%s", e.text);
	cr_assert(o.seed == 4 && o.strict && o.jobs == 2 && o.kernel_name.n == 2);
	cr_assert_str_eq(o.prefix, "c");
	cr_assert_str_eq(o.report.at[0], "/tmp/out/x.json");
	cr_assert_str_eq(o.report.at[1], "-.sarif"); /* stdout, not a file */
	cr_assert_str_eq(o.suppressions.at[0], "/etc/x");
	cr_assert(strstr(remarks.at, path) && strstr(remarks.at, "CONSAN_OPTIONS"));
	options_free(&o);
	text_free(&remarks);
	unlink(path);
}

Test(options, wrong_sources)
{
	static const struct { const char *text, *where; } bad[] = {
		{ "seed = 3\nsede = 4\n", ":2: unknown option --sede; did you mean --seed?" },
		{ "\n\nseed\n", ":3: --seed needs a value" },
		{ "= 3\n", ":1: " }, { "config = x\n", ":1: " }, { "xml\n", ":1: --xml" },
	};

	unsetenv("CONSAN_OPTIONS");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char path[] = "/tmp/consan-options-XXXXXX";
		struct text remarks = { 0 };
		struct options o;
		struct consan_err e = { 0 };

		write_config(path, bad[i].text);
		options_init(&o);
		cr_expect_not(options_preset(&o, path, &remarks, &e));
		cr_expect(strstr(e.text, bad[i].where) && strstr(e.text, path), "%s", e.text);
		options_free(&o);
		text_free(&remarks);
		unlink(path);
	}
}
