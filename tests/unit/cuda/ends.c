/* Tests of how programs end: however they do, from whichever thread and at whichever moment of a
 * launch, they end as without consan, what was found is reported, and a launch that did not run to
 * its end counts as not checked. tests/cuda/ends.cu is the program. */
#include "tests/common/ended.h"
#include "tests/common/limits.h"
#include "tests/common/sanitized.h"
#include "tests/common/skip.h"
#include "libconsan/base/base.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

static int run(const char *words)
{
	return shell("cd %s/tests/cuda && COLUMNS=400 " KEEP_SEGV "exec " LIMITED "../../consan-run %s 2>&1 </dev/null",
		build_dir(), words);
}

static void expect(const char *words, int status, const char *piece)
{
	expect_ended(words, run(words), status, piece);
}

/* Why a program cannot run in a build with ASan; NULL: it can. */
static const char *excluded(const char *program)
{
#ifdef CONSAN_ASAN
	if (strstr(program, "small-stack"))
		return "ASan needs larger stacks";
#ifdef __clang__
	if (strstr(program, "ends_asan"))
		return "it has gcc's ASan, and consan has clang's: one process cannot have both";
#endif
#endif
	(void)program;
	return NULL;
}

/* Else says why not. */
static bool can_run(const char *program)
{
	const char *why = excluded(program);

	if (why)
		fprintf(stderr, "[SKIP] %s: %s\n", program, why);
	return !why;
}

/* ---- the matrix ---- */

enum { CONTINUES = 4 }; /* the status of the program if it does not end early */

/* before: has it a meaning before the first call of CUDA? */
static struct how { char name[16]; int status; bool before; } hows[] = {
	{ "return", CONTINUES, true }, { "exit", 3, true }, { "quick_exit", 3, true }, { "_exit", 3, true },
	{ "abort", 134, true }, { "throw", 134, true }, { "term", 143, true }, { "kill", 137, true },
	{ "segv", 139, true }, { "exec", 6, true }, { "pthread_exit", CONTINUES, true },
	{ "fork-exit", CONTINUES, true }, { "fork-_exit", CONTINUES, true },
	{ "fork-exec", CONTINUES, true }, { "fork-calls", CONTINUES, false },
	{ "dlclose", CONTINUES, false }, { "unload", CONTINUES, false }, { "launch", CONTINUES, false },
	{ "free", CONTINUES, false }, { "reset", CONTINUES, false },
};
static const struct { const char *when; const char *from[5]; } whens[] = {
	{ "before", { "main", "thread", "handler", "atexit" } },
	{ "after", { "main", "thread", "handler", "callback", "atexit" } },
	{ "during", { "main", "thread", "handler", "process" } },
};

/* Does the launch that runs then lose its end? */
static bool cuts_off(const struct how *h, const char *from)
{
	if (!strcmp(h->name, "pthread_exit"))
		return strcmp(from, "thread") != 0; /* the main thread launches, or else ends the process */
	return h->status != CONTINUES;
}

static void one(const struct how *h, const char *from, const char *when)
{
	const bool early = !strcmp(when, "before"), amid = !strcmp(when, "during");
	char words[128];

	if (early && !h->before)
		return;
	/* the interrupted launch has locks: a launch by the handler is refused, not waited for */
	if (amid && !strcmp(h->name, "launch") && strcmp(from, "main") && strcmp(from, "thread"))
		return;
	snprintf(words, sizeof words, "--error-exitcode=0 ./ends %s %s %s", h->name, from, when);
	expect(words, h->status, early ? "never called CUDA" : "CS102");
	if (early)
		return;
	cr_assert_eq(has(output, "of 4 clusters ended"), amid && cuts_off(h, from), "%s\n%s", words, output);
	cr_assert_eq(has(output, "NOT CHECKED"), amid && cuts_off(h, from), "%s\n%s", words, output);
}

ParameterizedTestParameters(ends, matrix)
{
	return cr_make_param_array(struct how, hows, ARRAY_SIZE(hows));
}

ParameterizedTest(struct how *h, ends, matrix, .timeout = TEST_LIMIT)
{
	for (size_t w = 0; w < ARRAY_SIZE(whens); w++)
		for (size_t f = 0; f < ARRAY_SIZE(whens[w].from) && whens[w].from[f]; f++)
			one(h, whens[w].from[f], whens[w].when);
}

/* What is queued runs at the end of a program that can wait for it; else it counts as not checked. */
Test(ends, queued, .timeout = TEST_LIMIT)
{
	static const char *const waits[] = { "return", "exit", "quick_exit", "_exit" };
	static const char *const options[] = { "", "--backend=gpu-emulated --gpu-drain " };
	char words[128];

	for (size_t i = 0; i < 2 * ARRAY_SIZE(hows); i++) {
		const struct how *h = &hows[i / 2];
		bool waited = false;

		if (!cuts_off(h, "thread") || !strcmp(h->name, "pthread_exit"))
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(waits); k++)
			waited |= !strcmp(h->name, waits[k]);
		snprintf(words, sizeof words, "%s--error-exitcode=0 --allow-unchecked ./ends %s main queued",
			options[i % 2], h->name);
		expect(words, h->status, "CS102");
		cr_assert(has(output, "2 of 2 kernels checked") || (!waited && has(output, "had not begun when")),
			"%s\n%s", words, output);
	}
	expect("--error-exitcode=0 ./ends exec main queued", 6, "NOT CHECKED: what was not seen");
	/* not one that is to be checked */
	expect("--error-exitcode=0 --kernel-name=kns=racy ./ends kill main queued", 137, "1 of 1 kernel checked\n");
}

/* What is not to be checked is not missed: of what waits in the queue, and of what runs. */
Test(ends, queued_and_excluded, .timeout = TEST_LIMIT)
{
	static const struct { const char *option, *when; bool missed; } row[] = {
		{ "", "queued", true }, { "--launch-count=1", "queued", false }, { "--launch-count=2", "queued", true },
		{ "--launch-skip=1", "queued", true }, { "--launch-skip=2", "queued", false },
		{ "--shard=1/2", "queued", false }, { "--shard=2/2", "queued", true },
		{ "--launch-skip=2", "during", false },
	};
	static const char *const backends[] = { "cpu", "gpu-emulated" };
	char words[128];

	for (size_t i = 0; i < 2 * ARRAY_SIZE(row); i++) {
		snprintf(words, sizeof words, "--backend=%s --error-exitcode=0 --allow-unchecked %s ./ends kill main %s",
			backends[i % 2], row[i / 2].option, row[i / 2].when);
		expect(words, 137, "SUMMARY");
		cr_assert_eq(has(output, "had not begun when"), row[i / 2].missed, "%s\n%s", words, output);
	}
}

/* A launch by the handler of a signal that interrupted a launch. */
Test(ends, no_launch_waits_for_itself, .timeout = TEST_LIMIT)
{
	cr_assert_neq(run("--error-exitcode=0 ./ends launch handler during"), 124, "%s", output);
	/* it is queued, and runs later; the handler must not wait for it */
	cr_assert(has(output, "the launch failed") && has(output, "3 of 3 kernels checked"), "%s", output);
}

/* A handler jumps out of a launch, out of a wait for another thread's, out of a read(), and out of calls of
 * all kinds. What was left is not checked, and launches work afterwards. */
Test(ends, jumps, .timeout = TEST_LIMIT)
{
	static const struct { const char *options, *from; bool cut; const char *checked; } row[] = {
		{ "", "handler", true, "2 of 3 kernels checked" },
		{ "", "process", true, "2 of 3 kernels checked" },
		{ "--seed=3 --jobs=4", "handler", true, "2 of 3 kernels checked" },
		{ "--launch-blocking", "handler", true, "2 of 3 kernels checked" },
		{ "--backend=gpu-emulated", "handler", true, "2 of 3 kernels checked" },
		{ "", "waiter", false, "3 of 3 kernels checked" },
		{ "--backend=gpu-emulated", "waiter", false, "3 of 3 kernels checked" },
		{ "", "read", false, "2 of 2 kernels checked" },
		{ "", "storm", false, NULL },
		{ "--backend=gpu-emulated", "storm", false, NULL },
	};
	char words[200];

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		snprintf(words, sizeof words, "--error-exitcode=0 %s ./ends jump %s during", row[i].options,
			row[i].from);
		expect(words, CONTINUES, "CS102");
		cr_assert_not(has(output, "CS705"), "%s\n%s", words, output);
		if (!row[i].checked)
			continue;
		cr_assert(has(output, row[i].checked), "%s\n%s", words, output);
		cr_assert_eq(has(output, "NOT CHECKED"), row[i].cut, "%s\n%s", words, output);
	}
	expect("./ends jump handler during", 66, "NOT CHECKED");
	if (!can_run("./ends_asan jump"))
		return;
	expect("--error-exitcode=0 ./ends_asan jump handler during", CONTINUES, "2 of 3 kernels checked");
	expect("--error-exitcode=0 ./ends_asan jump storm during", CONTINUES, "CS102");
}

/* A thread that is cancelled in a launch ends behind it. */
Test(ends, cancelled, .timeout = TEST_LIMIT)
{
	static const char *const how[] = { "cancel", "cancel-at-once", "--launch-blocking cancel",
		"--backend=gpu-emulated cancel" };
	char words[200];

	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		const char *const at = strrchr(how[i], ' '), *const act = at ? at + 1 : how[i];

		snprintf(words, sizeof words, "--error-exitcode=0 %.*s ./ends %s main during",
			(int)(act - how[i]), how[i], act);
		expect(words, CONTINUES, "3 of 3 kernels checked");
	}
}

/* The same with kernels that are instrumented. */
Test(ends, instrumented, .timeout = TEST_LIMIT)
{
	static const char *const from[] = { "main", "thread", "handler", "process" };
	char words[700];

	for (const struct how *h = hows; h < hows + ARRAY_SIZE(hows); h++) {
		/* all of "thread", one of the others for each */
		const char *const where[] = { "thread", from[(size_t)(h - hows) % ARRAY_SIZE(from)] };

		for (size_t i = 0; i < ARRAY_SIZE(where); i++) {
			if (!cuts_off(h, where[i]))
				continue;
			snprintf(words, sizeof words, "--backend=gpu-emulated --error-exitcode=0 ./ends %s %s "
				"during", h->name, where[i]);
			expect(words, h->status, "CS102");
			/* a handler ends the launch before it ends its thread, and tells the kernel to end before:
			 * a cluster may have seen that */
			if (!strcmp(h->name, "pthread_exit"))
				cr_assert(has(output, " of 4 clusters ended"), "%s", output);
			else
				cr_assert(has(output, "did not finish") && has(output, ": 0 of 4 clusters were checked"),
					"%s", output);
		}
	}
	expect("--backend=gpu-emulated --timeout=0.3 --error-exitcode=0 ./ends return stays during", CONTINUES,
		"of 4 clusters ended");
	expect("--backend=gpu-emulated --error-exitcode=0 ./ends return thread during", CONTINUES,
		"2 of 2 kernels checked");
}

/* ---- every report says so ---- */

/* A launch that did not end, and one that was stopped by the time, in each format. */
Test(ends, in_every_format, .timeout = TEST_LIMIT)
{
	static const char *const format[] = { "txt", "json", "html", "sarif", "xml", "github" };
	char words[200];

	for (size_t i = 0; i < ARRAY_SIZE(format); i++) {
		snprintf(words, sizeof words, "--error-exitcode=0 --log-file=/dev/null --report=-.%s "
			"./ends exit thread during", format[i]);
		expect(words, 3, "0 of 4 clusters ended");
		snprintf(words, sizeof words, "--error-exitcode=0 --log-file=/dev/null --report=-.%s "
			"--timeout=0.3 ./ends return stays during", format[i]);
		expect(words, CONTINUES, "0 of 4 clusters ended");
		cr_assert(has(output, "CS705") || !strcmp(format[i], "github"), "%s", output);
	}
}

/* ---- what else programs and machines do ---- */

Test(ends, strange_programs, .timeout = TEST_LIMIT)
{
	static const char *const program[] = { "./ends plain", "./ends clearenv", "./ends daemon",
		"./ends close-all", "./ends small-stack", "./ends protect-registered", "./ends impossible-sizes",
		"./ends_asan plain" };
	static const char *const backend[] = { "cpu", "gpu-emulated" };
	char words[100];

	for (size_t i = 0; i < 2 * ARRAY_SIZE(program); i++) {
		if (!can_run(program[i / 2]))
			continue;
		snprintf(words, sizeof words, "--backend=%s --error-exitcode=0 %s", backend[i % 2], program[i / 2]);
		expect(words, CONTINUES, "CS102");
		cr_assert_not(has(output, "INCOMPLETE"), "%s: %s", program[i / 2], output);
	}
}

/* Fails as it would without the guard of registered memory; does not hang. */
Test(ends, unmapped, .timeout = TEST_LIMIT)
{
	expect("--error-exitcode=0 ./ends unmap-registered", 139, "CS102");
	cr_expect(has(output, "NOT CHECKED"), "%s", output);
}

/* Programs that are started with an environment of their own are checked, too; unless that says not to. */
Test(ends, cleared_environments, .timeout = 100)
{
	static const char *const how[] = { "execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle",
		"fexecve", "spawn", "spawnp", "vfork", "system" };
	char words[100];

	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		snprintf(words, sizeof words, "--backend=%s --error-exitcode=0 ./ends start-%s",
			i % 2 ? "gpu-emulated" : "cpu", how[i]);
		expect(words, CONTINUES, "CS102");
	}
	expect("--error-exitcode=0 env -i ./ends plain", CONTINUES, "CS102");
	expect("--error-exitcode=0 env -u LD_PRELOAD ./ends plain", CONTINUES, "CS102");
	expect("--error-exitcode=0 env LD_PRELOAD=libm.so.6 ./ends plain", CONTINUES, "CS102");
	expect("--error-exitcode=0 sh -c 'LD_PRELOAD= ./ends plain'", CONTINUES, "CS102");
	expect("--allow-unchecked ./ends start-unwatched", 127, "no kernel was launched");
}

/* A shell script in a folder of its own, which is $d; $run is consan-run. Returns its status. */
static int script(const char *text)
{
	const char *build = build_dir();

	return shell("exec 2>&1 </dev/null; export COLUMNS=400 build=%s run=%s/consan-run; cd $build/tests/cuda; "
		"ends=$PWD/ends; d=$(mktemp -d -p $PWD) && { (%s\n); s=$?; rm -rf $d; exit $s; }", build,
		build, text);
}

static void expect_script(const char *text, int status, const char *piece)
{
	const int is = script(text);

	cr_assert_eq(is, status, "%s\nstatus %d, expected %d\n%s", text, is, status, output);
	cr_assert(!piece || has(output, piece), "%s\nno \"%s\" in\n%s", text, piece, output);
}

/* As started by a process that ignores the end of its children. */
Test(ends, ignored_signals)
{
	expect_script("trap '' CHLD PIPE; exec $run --error-exitcode=0 $ends plain", CONTINUES, "CS102");
}

/* consan-run itself may write no files, or small ones only. */
Test(ends, limits_of_consan_run, .timeout = TEST_LIMIT)
{
	expect_script("mkdir $d/t; export TMPDIR=$d/t; (ulimit -f 0; $run $ends plain); s=$?; ls -A $d/t; exit $s", 70,
		"File too large");
	cr_expect_not(has(output, "\nconsan-"), "%s", output);
	expect_script("mkdir $d/t; export TMPDIR=$d/t; (ulimit -f 600; $run --error-exitcode=0 --report=$d/r.html $ends "
		"impossible-sizes; s=$?; dd if=/dev/zero of=$d/x bs=1k count=301 2>/dev/null; echo program $?; exit $s); s=$?; "
		"ls -A $d/t; exit $s", CONTINUES, "1 of 1 kernel checked");
	cr_expect(has(output, "program 153") && !has(output, "\nconsan-"), "%s", output);
}

/* No process reads what consan-run prints; its standard descriptors are closed. */
Test(ends, without_readers, .timeout = TEST_LIMIT)
{
	expect_script("($run --report=$d/r.json $ends plain 2>&1; echo $? >$d/status) | true; cat $d/status; "
		"grep -c '\"rule\": \"CS102\"' $d/r.json && ls $d", 0, "66\n1\n");
	expect_script("(exec <&- >&- 2>&-; $run --report=$d/r.json $ends plain; echo $? >$d/status); "
		"cat $d/status; grep -c '\"rule\": \"CS102\"' $d/r.json", 0, "66\n1\n");
}

Test(ends, wherever_files_are, .timeout = TEST_LIMIT)
{
	expect_script("TMPDIR=/nonexistent $run $ends plain", 66, "/nonexistent: No such file or directory: "
		"using /tmp");
	expect_script("mkdir '$d/a' 2>/dev/null; mkdir \"$d/a: b\" && cd \"$d/a: b\" && mkdir $'%p \\n;' tmp && "
		"export TMPDIR=tmp && cd $'%p \\n;' && $run --save=e --dump-ptx=p --report=r.json "
		"sh -c \"cd /; exec $ends plain\" >/dev/null; ls e p/0.ptx r.json && $build/consan replay e", 66,
		"CS102");
	/* installed under a path that the dynamic linker would split */
	expect_script("mkdir \"$d/a: b;c\" && cd \"$d/a: b;c\" && ln $build/consan-run x && "
		"ln -s $build/libc* $build/python . && ./x $ends plain", 66, "1 of 1 kernel checked");
}

Test(ends, a_full_disk, .timeout = TEST_LIMIT)
{
	if (script("mkdir $d/t && mount -t tmpfs -o size=400k tmpfs $d/t && umount $d/t"))
		SKIP_TEST("no file system can be mounted");
	expect_script("mkdir $d/t && mount -t tmpfs -o size=16k tmpfs $d/t && TMPDIR=$d/t $run $ends plain; "
		"s=$?; umount $d/t; exit $s", 66, "No space left on device: using /tmp");
	/* what cannot be written does not change the program, and no part of it is left */
	expect_script("mkdir $d/t && mount -t tmpfs -o size=16k tmpfs $d/t && mkdir $d/t/p && "
		"head -c 16k /dev/zero >$d/t/x; $run --dump-ptx=$d/t/p $ends plain; s=$?; ls $d/t/p; "
		"umount $d/t; exit $s", 66, "/0.ptx: not written: No space left");
	cr_expect_not(has(output, "\n0.ptx"), "%s", output);
	/* it becomes full while the program runs */
	expect_script("mkdir $d/t && mount -t tmpfs -o size=400k tmpfs $d/t && TMPDIR=$d/t $run "
		"--error-exitcode=0 sh -c \"head -c 400k /dev/zero >$d/t/x; $ends plain; exit 0\"; "
		"s=$?; umount $d/t; exit $s", 67, NULL);
}

/* What a process cannot record is missed by the report, and no other signal ends the program. */
Test(ends, records_that_cannot_be_written, .timeout = TEST_LIMIT)
{
	static const struct { const char *what, *missed; bool found; } row[] = {
		{ "limit-descriptors", "is not recorded: ", false },
		{ "limit-sizes", "INCOMPLETE: records are lost", false },
		{ "limit-sizes-later", "INCOMPLETE: records are lost", true },
		{ "remove-folder", "was removed while the program ran", false },
		{ "remove-folder-later", "was removed while the program ran", false },
		{ "remove-records", "is not recorded: its records were removed while it ran", false },
	};
	static const char *const backend[] = { "cpu", "gpu-emulated" };
	char text[400];

	for (size_t i = 0; i < 2 * ARRAY_SIZE(row); i++) {
		snprintf(text, sizeof text, "mkdir $d/t; TMPDIR=$d/t $run --error-exitcode=0 --backend=%s "
			"sh -c \"$ends %s; echo program \\$?\"; s=$?; ls -A $d/t; exit $s", backend[i % 2], row[i / 2].what);
		expect_script(text, 67, row[i / 2].missed);
		cr_expect(has(output, "program 4\n"), "%s\n%s", text, output);
		cr_expect_eq(has(output, "CS102"), row[i / 2].found, "%s\n%s", text, output);
		cr_expect_not(has(output, "never called") || has(output, "\nconsan-"), "%s\n%s", text, output);
	}
}

/* Records that consan-run cannot read, as they are of another version. */
Test(ends, unreadable_records, .timeout = TEST_LIMIT)
{
	expect_script("$run --error-exitcode=0 --report=$d/r.json sh -c \"$ends plain; echo '{\\\"consan\\\": 999}' "
		">\\$CONSAN_RESULTS/9.jsonl\"; s=$?; grep -c not_seen $d/r.json; exit $s", 67, "NOT CHECKED: what was not seen");
	cr_expect(has(output, "CS102") && has(output, "newer consan") && has(output, "\n1\n"), "%s", output);
}

/* A process that gives up root's rights before its first call of CUDA. */
Test(ends, rights_given_up)
{
	if (getuid())
		SKIP_TEST("only root can give up rights");
	expect_script("chmod 711 $d; mkdir -m 1777 $d/t; TMPDIR=$d/t $run --error-exitcode=0 $ends drop-rights; s=$?; "
		"ls -A $d/t; exit $s", CONTINUES, "1 of 1 kernel checked");
	cr_expect(has(output, "CS102") && !has(output, "\nconsan-"), "%s", output);
	/* which other users do not find */
	expect_script("chmod 711 $d; mkdir -m 1777 $d/t; TMPDIR=$d/t $run --error-exitcode=0 --allow-unchecked sh -c "
		"\"stat -c '%a %F' $d/t/consan-* \\$CONSAN_RESULTS; setpriv --reuid=65534 ls $d/t/consan-*\"", 2,
		"711 directory\n1733 directory\n");
}

/* A process that changes its root, or what is mounted, before its first call of CUDA. What it starts there is
 * recorded, too, or missed by the report. */
Test(ends, other_roots, .timeout = TEST_LIMIT)
{
	static const char *const program[] = { "change-root", "change-root-later", "change-mounts",
		"change-mounts-and-start", "working-folder-removed" };
	static const char *const backend[] = { "cpu", "gpu-emulated" };
	char text[400];

	if (script("mkdir $d/r && mount -t tmpfs tmpfs $d/r && umount $d/r && unshare -m chroot / true"))
		SKIP_TEST("this user cannot mount file systems and change the root");
	for (size_t i = 0; i < 2 * ARRAY_SIZE(program); i++) {
		snprintf(text, sizeof text, "mkdir $d/t; export TMPDIR=$d/t; $run --error-exitcode=0 --backend=%s $ends %s; "
			"s=$?; ls -A $d/t; exit $s", backend[i % 2], program[i / 2]);
		expect_script(text, CONTINUES, "1 of 1 kernel checked");
		cr_expect(has(output, "CS102") && !has(output, "INCOMPLETE") && !has(output, "\nconsan-"), "%s\n%s", text, output);
	}
	/* without a descriptor; and without consan's files in the new root */
	expect_script("mkdir $d/t; export TMPDIR=$d/t; $run --error-exitcode=0 sh -c \"$ends plain; $ends "
		"change-root-and-close-all; ls -A $d/t; exit 0\"; s=$?; ls -A $d/t; exit $s", 67,
		"what 1 process found is not recorded");
	cr_expect(has(output, "CS102") && has(output, "NOT CHECKED"), "%s", output);
	expect_script("mkdir $d/r; for f in $(ldd /bin/true | grep -o '/[^ ]*') /bin/true; do "
		"mkdir -p $d/r/${f%/*}; cp $f $d/r/$f; done; $run --error-exitcode=0 sh -c \"$ends plain; chroot $d/r /bin/true\"",
		67, "is not recorded: it starts /bin/true, for which another root");
	cr_expect(has(output, "CS102"), "%s", output);
}

/* consan-run is killed: no report is there, neither an old one nor a part of one, and recover makes it,
 * while the program runs and afterwards. */
Test(ends, recover, .timeout = TEST_LIMIT)
{
	expect_script("export TMPDIR=$d; echo old >$d/r.json; $run --report=$d/r.json $ends return stays during & "
		"while ! grep -qs 'slow.*running' $(find $d -name '*.jsonl'); do sleep 0.05; done; "
		"p=$(cat /proc/$!/task/*/children); kill -9 $!; wait; ls $d/r.json; "
		"$build/consan recover $d/consan-*; echo status $?; $build/consan recover | grep $d; kill -9 $p; "
		"while kill -0 $p; do sleep 0.05; done; "
		"$build/consan recover --error-exitcode=0 --report=$d/r.json $d/consan-*; echo status $?; "
		"grep -c 'of 4 clusters ended' $d/r.json; $build/consan recover $d; echo status $?", 0,
		"r.json': No such file");
	cr_expect(has(output, "still runs") && has(output, "status 66\n"), "%s", output);
	cr_expect(has(output, "still running\n"), "%s", output);
	cr_expect(has(output, "did not see how the program ended"), "%s", output);
	cr_expect(has(output, "status 67\n1\n"), "%s", output);
	cr_expect(has(output, "no records of a run are there\nstatus 2\n"), "%s", output);
}

/* A report for a pipe that no process reads: a signal ends the waiting, and the other reports are written. */
Test(ends, a_pipe_without_readers, .timeout = TEST_LIMIT)
{
	expect_script("export TMPDIR=$d; mkfifo $d/f.json; $run --report=$d/f.json --report=$d/r.json $ends plain 2>$d/log & "
		"p=$!; while ! grep -qs SUMMARY $d/log; do sleep 0.05; done; "
		"while kill -TERM $p 2>/dev/null; do sleep 0.1; done; wait $p; s=$?; cat $d/log; "
		"grep -c '\"rule\": \"CS102\"' $d/r.json; rm $d/*; ls -A $d; exit $s", 66, "report not written: Interrupted");
	/* nothing is left behind the reports */
	cr_expect(strlen(output) > 3 && !strcmp(output + strlen(output) - 3, "\n1\n"), "%s", output);
}

/* The lines of the host's calls are read when the program has ended, and something else may be in its place. */
Test(ends, program_file_replaced, .timeout = TEST_LIMIT)
{
	static const char *const by[] = { "true", "mkfifo $d/x", "ln -s /dev/zero $d/x", "mkdir $d/x",
		"head -c 3000 $ends >$d/x" };
	char text[300];

	for (size_t i = 0; i < ARRAY_SIZE(by); i++) {
		snprintf(text, sizeof text, "cp $ends $d/x; $run --error-exitcode=0 sh -c \"$d/x plain; rm $d/x; %s\"", by[i]);
		expect_script(text, 0, "1 of 1 kernel checked");
	}
}

/* What was found in the schedules that were tried is kept if the process is killed while it tries others. */
Test(ends, explored, .timeout = TEST_LIMIT)
{
	expect_script("export TMPDIR=$d; $run --error-exitcode=0 --explore=1000000000 $ends plain 2>$d/log & p=$!; "
		"while ! grep -qs CS102 $(find $d -name '*.jsonl'); do sleep 0.05; done; kill -9 $(cat /proc/$p/task/*/children); "
		"wait $p; s=$?; cat $d/log; exit $s", 137, "CS102");
	cr_expect(has(output, "NOT CHECKED: launch 0 did not finish"), "%s", output);
}

/* The report of consan-run is not that of a `consan recover' at the same time. */
Test(ends, recover_meanwhile, .timeout = TEST_LIMIT)
{
	expect_script("export TMPDIR=$d; $run --error-exitcode=0 --log-file=$d/log sh -c "
		"\"$ends plain; until test -e $d/go; do sleep 0.01; done\" & p=$!; "
		"while ! grep -qs CS102 $(find $d -name '*.jsonl'); do sleep 0.05; done; "
		"for i in 1 2 3; do while test ! -s $d/log; do $build/consan recover $d/consan-*/ >/dev/null 2>&1; done & done; "
		"touch $d/go; wait $p; s=$?; wait; cat $d/log; rm $d/log $d/go; ls -A $d; exit $s", 0, "1 of 1 kernel checked\n");
	cr_expect_not(has(output, "not seen") || has(output, "consan-"), "%s", output);
}

/* Neither /proc nor some system calls are there in a sandbox. */
Test(ends, without_proc)
{
	if (script("unshare -m umount -l /proc"))
		SKIP_TEST("/proc cannot be unmounted");
#ifdef CONSAN_ASAN
	SKIP_TEST("ASan reads its options from /proc");
#endif
	expect_script("$run --error-exitcode=0 unshare -m sh -c \"umount -l /proc; exec $ends plain\"", CONTINUES,
		"1 of 1 kernel checked");
	cr_expect(has(output, "launched"), "%s", output);
}

/* A process that goes on when the program has ended is waited for, until a signal. */
Test(ends, daemons, .timeout = TEST_LIMIT)
{
	expect_script("export TMPDIR=$d; $run --error-exitcode=0 $ends daemon-stays 2>$d/printed & "
		"while ! grep -qs CS102 $(find $d -name '*.jsonl') || ! grep -qs 'waiting for process' $d/printed; "
		"do sleep 0.05; done; "
		"p=$(grep -ho '\"pid\":[0-9]*' $(find $d -name '*.jsonl') | head -1 | tr -dc 0-9); "
		"kill -INT $!; wait $!; s=$?; kill -9 $p; cat $d/printed; ls $d; exit $s", CONTINUES, "still runs");
	cr_expect(has(output, "NOT CHECKED: what was not seen"), "%s", output);
	cr_expect_not(has(output, "\nconsan-"), "%s", output);
}

Test(ends, set_user_id)
{
	if (getuid())
		SKIP_TEST("only root can make such a program");
	expect_script("cp $ends $d/x && chown 1 $d/x && chmod u+s $d/x && $run $d/x plain", 67, "gains rights");
	expect_script("cp $ends $d/x && chmod u+s $d/x && $run $d/x plain", 66, "CS102");
}
