/* Tests of `make install`: the installed commands, the library with pkg-config, and the
 * examples, built as doc/library.md describes. */
#include "tests/common/limits.h"
#include "tests/common/sanitized.h"
#include "tests/common/shell.h"
#include "tests/common/skip.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>


TestSuite(installed, .timeout = TEST_LIMIT);

/* Runs a shell command. $R is the root of the installation (DESTDIR), $B a scratch folder that
 * is kept. BXFI_MAP is unset, or a Criterion program would take itself for our worker. */
__attribute__((format(printf, 1, 2))) static int sh(const char *fmt, ...)
{
	char line[PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	return shell("exec 2>&1; export R='%s/install'; B=\"$R/../examples\"; "
		"mkdir -p \"$B\"; unset BXFI_MAP; export PKG_CONFIG_SYSROOT_DIR=\"$R\" "
		"PKG_CONFIG_PATH=\"$R/usr/lib/pkgconfig\" LD_LIBRARY_PATH=\"$R/usr/lib\" "
		"PATH=\"$PATH:$PWD/build/cuda/bin\"; %s",
		build_dir(), line);
}

/* The examples need the sanitizers with which the library was built; a program that is there already, their
 * runtime. Python does not free all that it has. */
#ifdef CONSAN_ASAN
#define SANITIZED "-fsanitize=address,undefined "
#define WITH_RUNTIME "LD_PRELOAD=$(cc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 "
#else
#define SANITIZED ""
#define WITH_RUNTIME ""
#endif
#define FLAGS SANITIZED "$(pkg-config --cflags --libs consan)"
#define RUNS(status, ...) \
	do { \
		int rc_ = sh(__VA_ARGS__); \
		cr_assert_eq(rc_, status, "exit status %d:\n%s", rc_, output); \
	} while (0)

Test(installed, plain_c_example_finds_its_race)
{
	RUNS(0, "cc -std=c11 -Wall -Wextra -Werror tests/examples/plain.c -o $B/plain %s", FLAGS);
	RUNS(1, "$B/plain");
	cr_assert(strstr(output, "CS102"));
	RUNS(0, "cc -std=c11 tests/examples/plain.c -o $B/plain_static " SANITIZED
		"$(pkg-config --cflags consan) $R/usr/lib/libconsan.a -ljansson -llz4 -lzstd -lm -lpthread");
	RUNS(1, "LD_LIBRARY_PATH= $B/plain_static");
}

Test(installed, plain_c_example_leaks_nothing)
{
	if (*SANITIZED)
		SKIP_TEST("in this build, the leak sanitizer looks at all examples");
	if (sh("command -v valgrind"))
		SKIP_TEST("no valgrind on this machine");
	RUNS(0, "cc -g tests/examples/plain.c -o $B/plain_leaks %s", FLAGS);
	RUNS(1, "valgrind -q --error-exitcode=9 --leak-check=full $B/plain_leaks");
}

/* A launch that fails is no success, whatever was found before. */
Test(installed, plain_c_example_fails_when_its_launch_fails)
{
	RUNS(0, "sed 's/.block = { 64, 1, 1 }/.block = { 2000, 1, 1 }/' tests/examples/plain.c >$B/refused.c && "
		"cc -std=c11 $B/refused.c -o $B/refused %s", FLAGS);
	RUNS(2, "$B/refused");
}

/* Names of the static library, and of the shared one, that do not begin with consan_. */
Test(installed, only_prefixed_names)
{
	RUNS(0, "nm -g --defined-only $R/usr/lib/libconsan.a | awk 'NF == 3 && $3 !~ /^consan_/ "
		"&& $3 !~ /^(__asan|__odr_asan|__sanitizer)/' | head");
	cr_expect_str_eq(output, "", "in the static library: %s", output);
	RUNS(0, "nm -D --defined-only $R/usr/lib/libconsan.so.0 | awk '$3 !~ /^consan_/' | head");
	cr_expect_str_eq(output, "", "in the shared library: %s", output);
	RUNS(0, "cat $R/usr/include/consan/*.h | sed 's|/[*].*||' | grep -oE "
		"'^(#define|struct|enum|typedef|union) +[A-Za-z_]+' | awk '{ print $2 }' | "
		"grep -viE '^(consan_|consan$|cr_assert_consan_|ERR$)' | sort -u");
	cr_expect_str_eq(output, "", "in the headers: %s", output);
}

Test(installed, cmake_package)
{
	if (sh("command -v cmake"))
		SKIP_TEST("no cmake on this machine");
	RUNS(0, "rm -rf $B/cmake && mkdir -p $B/cmake && cp tests/examples/plain.c $B/cmake && "
		"printf '%%s\\n' 'cmake_minimum_required(VERSION 3.16)' 'project(t C)' "
		"'find_package(consan 0.1 REQUIRED)' 'add_executable(shared plain.c)' "
		"'target_link_libraries(shared PRIVATE consan::consan)' 'add_executable(static plain.c)' "
		"'target_link_libraries(static PRIVATE consan::static)' >$B/cmake/CMakeLists.txt && "
		"cmake -S $B/cmake -B $B/cmake/build -DCMAKE_PREFIX_PATH=$R/usr -DCMAKE_C_FLAGS='" SANITIZED "' && "
		"cmake --build $B/cmake/build");
	RUNS(1, "$B/cmake/build/shared");
	RUNS(1, "LD_LIBRARY_PATH= $B/cmake/build/static");
	RUNS(1, "cd $B/cmake && sed -i 's/consan 0.1/consan 99/' CMakeLists.txt && "
		"cmake -S . -B other -DCMAKE_PREFIX_PATH=$R/usr");
}

Test(installed, criterion_example_passes)
{
	RUNS(0, "nvcc -arch=sm_80 -lineinfo -fatbin -o $B/exchange.fatbin tests/examples/exchange.cu");
	RUNS(0, "cc -Wall -Wextra -Werror -DEXCHANGE=\\\"$B/exchange.fatbin\\\" "
		"tests/examples/criterion.c -o $B/criterion %s -lcriterion", FLAGS);
	RUNS(0, "$B/criterion");
}

Test(installed, googletest_example_passes)
{
	RUNS(0, "nvcc -arch=sm_80 -lineinfo -fatbin -o $B/exchange2.fatbin tests/examples/exchange.cu");
	RUNS(0, "c++ -std=c++17 -Wall -Wextra -Werror -DEXCHANGE=\\\"$B/exchange2.fatbin\\\" "
		"tests/examples/gtest.cc -o $B/gtest %s -lgtest -lgtest_main -lpthread", FLAGS);
	RUNS(0, "$B/gtest");
}

Test(installed, python_example_alone_and_under_consan_run)
{
	if (sh("command -v python3"))
		SKIP_TEST("no python3 on this machine");
	RUNS(0, WITH_RUNTIME "LD_LIBRARY_PATH= PYTHONPATH=$R/usr/lib/consan/python python3 -B tests/examples/session.py");
	cr_assert(strstr(output, "read-write race in exchange"));
	RUNS(66, "$R/usr/bin/consan-run --arch=sm_80 python3 -B tests/examples/session.py");
	cr_assert(strstr(output, "CS102") && strstr(output, "session.py:4"), "%s", output);
}
Test(installed, regions_of_a_program)
{
	RUNS(0, "nvcc -arch=sm_80 -I$R/usr/include -o $B/regions tests/examples/regions.cu");
	sh("$B/regions"); /* its exit status depends on whether there is a GPU */
	cr_assert(strstr(output, "0 occurrences of errors"));
	RUNS(66, "$R/usr/bin/consan-run $B/regions");
	cr_assert(strstr(output, "region without its barrier"));
	RUNS(66, "$R/usr/bin/consan-run --regions $B/regions");
	RUNS(0, "CONSAN_SHARD_INDEX=1 CONSAN_TOTAL_SHARDS=3 $R/usr/bin/consan-run $B/regions");
	RUNS(66, "CONSAN_SHARD_INDEX=2 CONSAN_TOTAL_SHARDS=3 $R/usr/bin/consan-run $B/regions");
	RUNS(64, "CONSAN_SHARD_INDEX=3 CONSAN_TOTAL_SHARDS=3 $R/usr/bin/consan-run $B/regions");
}

/* Suppressed findings do not count in regions, also if the program changes its folder. */
Test(installed, regions_use_suppressions)
{
	RUNS(0, "nvcc -arch=sm_80 -I$R/usr/include -o $B/suppressed tests/examples/regions.cu");
	RUNS(0, "export B; cd $B && printf 'CS102\n reason: a test\n' > suppressed.supp && "
		"$R/usr/bin/consan-run --suppressions=suppressed.supp sh -c 'cd / && exec $B/suppressed'");
	cr_assert_not(strstr(output, "was expected to be clean"), "%s", output);
}

/* All processes of a run contribute to one report. */
Test(installed, a_tree_of_processes_has_one_report)
{
	RUNS(0, "nvcc -arch=sm_80 -I$R/usr/include -o $B/tree tests/examples/regions.cu");
	RUNS(66, "printf 'all:\\n\\t%%s\\n\\t%%s\\n' $B/tree $B/tree > $B/tree.mk && "
		"$R/usr/bin/consan-run --report=$B/tree.json make -s -f $B/tree.mk");
	cr_assert(strstr(output, "1 of 1 kernel checked"));
	RUNS(0, "grep -c '\"launches\": 6' $B/tree.json");
}

Test(installed, documented_example_works)
{
	RUNS(0, "sed -n '/^```c$/,/^```$/p' libconsan/doc/library.md | grep -v '^```' > $B/readme.c && test -s $B/readme.c");
	RUNS(0, "cc -std=c11 -Wall -Wextra -Werror $B/readme.c -o $B/readme %s", FLAGS);
	/* in a folder of its own: another test writes and loads the same file */
	RUNS(0, "mkdir -p $B/in_readme && "
		"nvcc -arch=sm_80 -lineinfo -fatbin -o $B/in_readme/exchange.fatbin tests/examples/exchange.cu");
	RUNS(1, "cd $B/in_readme && ../readme");
}

Test(installed, manual_pages_parse)
{
	RUNS(0, "for p in man1/consan-run.1 man1/consan.1 man3/consan.3; do "
		"zcat $R/usr/share/man/$p.gz | grep -q '^.TH CONSAN' || exit 1; done");
}

/* What bash offers for these words of a command line. '=' is a word of its own there. */
static void offers(const char *words, const char *offer)
{
	RUNS(0, "bash -c '. $R/usr/share/bash-completion/completions/consan-run; COMP_WORDS=(%s); "
		"COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); compopt() { :; }; _${COMP_WORDS[0]//-/_}; "
		"echo \"${COMPREPLY[*]}\"'", words);
	output[strcspn(output, "\n")] = 0;
	cr_expect_str_eq(output, offer, "%s: %s, not %s", words, output, offer);
}

Test(installed, completion_of_bash)
{
	offers("consan-run --str", "--strict --strip-paths");
	offers("consan-run --backend = gpu-", "gpu-emulated");
	offers("consan-run --backend =", "auto cpu gpu gpu-emulated");
	offers("consan-run --see", "--seed=");
	offers("consan-run --seed = 3 --asy", "--async=");
	offers("consan rep", "report replay");
	offers("consan report --to = ht", "html");
	offers("consan report --fi", "--finding=");
	offers("consan replay --see", "");
	offers("consan explain CS90", "CS901 CS902 CS903 CS904 CS905 CS906 CS907 CS908 CS909");
}

Test(installed, completion_of_other_shells)
{
	if (!sh("command -v zsh"))
		RUNS(0, "zsh -n $R/usr/share/zsh/vendor-completions/_consan");
	if (!sh("command -v fish"))
		RUNS(0, "fish -c 'source $R/usr/share/fish/vendor_completions.d/consan-run.fish; "
			"complete -C \"consan-run --backend=gpu-\"' | grep -q -- --backend=gpu-emulated");
	RUNS(0, "grep -q -- '--seed=' $R/usr/share/zsh/vendor-completions/_consan");
	RUNS(0, "grep -q -- '-l seed' $R/usr/share/fish/vendor_completions.d/consan.fish");
}
