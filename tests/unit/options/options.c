/* Tests of options: parsing and formatting of words, refused values, kernel filters. */
#include "libconsan/options/options.h"

#include <argp.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

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
	struct err e = { 0 };

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
	struct err e = { 0 };

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
		"no-such-option", "seed=x", "seed=", "seed", "async=sometimes", "strict=yes",
		"backend=tpu", "arch=hopper", "arch=sm_90x", "report=x.pdf", "report=html",
		"report=x", "kernel-name=x", "kernel-name=regex=(", "timeout=-1", "timeout=soon",
		"knob=k1", "error-exitcode=256", "launch-skip=-1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct options o;
		struct err e = { 0 };

		options_init(&o);
		cr_assert_not(options_parse(&o, bad[i], &e), "%s was accepted", bad[i]);
		cr_assert_eq(e.code, ERR_OPTION);
		cr_assert_str_not_empty(e.text);
		options_free(&o);
	}
}

/* The former name of gpu-emulated is accepted; the new one is passed on. */
Test(options, alias)
{
	struct options o;
	struct text t = { 0 };
	struct err e = { 0 };

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
	cr_assert_eq(argp_parse(&options_argp, 6, argv, 0, NULL, &o), 0);
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
	cr_assert(options_match("kne=k", "k", NULL));
}
