/* Tests of shards: the variables of launchers, and the folder where reports meet. The launcher is a shell
 * that sets what Open MPI would; tests/cuda/ranks.c has a race in the third of its eight launches. */
#include "tests/common/find.h"
#include "tests/common/limits.h"
#include "tests/common/shell.h"
#include "libconsan/base/base.h"

#include <criterion/criterion.h>

/* Runs a script in an empty folder. $B: the build folder; consan: without variables and options from
 * elsewhere; rank I OPTION... PROGRAM: rank I of 8. */
static int script(const char *text)
{
	return shell("exec 2>&1; B=%s; d=$(mktemp -d) && cd $d || exit 99; export COLUMNS=300; "
		"for v in $(env | grep -oE '^(CONSAN|OMPI|PMIX?|SLURM|CI|JOB|MV2|FLUX)_[A-Z_]*'); do unset $v; done; "
		"run() { " LIMITED "$B/consan-run --config=none \"$@\" </dev/null; }; "
		"rank() { r=$1; shift; OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=8 run --shard=auto "
		"--shard-dir=m \"$@\"; }; ranks=$B/tests/cuda/ranks; %s\n s=$?; cd /; rm -rf $d; exit $s",
		build_dir(), text);
}

static void expect(const char *text, int status, const char *words)
{
	const int is = script(text);

	cr_expect_eq(is, status, "%s: status %d, expected %d\n%s", text, is, status, output);
	cr_expect(!words || has(output, words), "%s: no \"%s\" in\n%s", text, words, output);
}

/* The file of a shard has its place and the name of the run. */
Test(shards, launchers, .timeout = TEST_LIMIT)
{
	static const struct { const char *variables, *option, *file; } rows[] = {
		{ "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=8 PMIX_NAMESPACE=5@6", "auto", "shard-3-of-8.5_6" },
		{ "SLURM_PROCID=0 SLURM_NTASKS=64 SLURM_JOB_ID=7 SLURM_STEP_ID=1", "auto", "shard-1-of-64.7-1" },
		{ "SLURM_PROCID=3 SLURM_NTASKS=64 SLURM_STEP_NUM_TASKS=4", "auto", "shard-4-of-4" },
		{ "SLURM_PROCID=0 SLURM_NTASKS=8 OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8", "auto",
			"shard-6-of-8" },
		{ "PMI_RANK=1 PMI_SIZE=2", "auto", "shard-2-of-2" },
		{ "JOB_COMPLETION_INDEX=9", "auto/10", "shard-10-of-10" },
		{ "JOB_COMPLETION_INDEX=0 CONSAN_SHARD_RUN=a", "auto/10", "shard-1-of-10.a" },
		{ "CI_NODE_INDEX=4 CI_NODE_TOTAL=4 CI_PIPELINE_ID=81", "auto", "shard-4-of-4.81" },
		{ "CONSAN_SHARD_INDEX=1 CONSAN_TOTAL_SHARDS=3", "", "shard-2-of-3" },
		{ "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=8", "1/2", "shard-1-of-2" },
	};
	char text[500];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof text, "export %s; run %s%s --shard-dir=m true; ls m", rows[i].variables,
			*rows[i].option ? "--shard=" : "", rows[i].option);
		snprintf(text + 400, 100, "%s.json\n", rows[i].file);
		expect(text, 0, text + 400);
		cr_expect_not(has(output, ".running"), "%s", output);
	}
}

Test(shards, refused, .timeout = TEST_LIMIT)
{
	static const struct { const char *text, *words; } rows[] = {
		{ "run --shard=auto true", "OMPI_COMM_WORLD_RANK" },
		{ "JOB_COMPLETION_INDEX=3 run --shard=auto true", "--shard=auto/N" },
		{ "JOB_COMPLETION_INDEX=3 run --shard=auto/3 true", "JOB_COMPLETION_INDEX=3" },
		{ "PMI_RANK=1 PMI_SIZE=4 run --shard=auto/8 true", "PMI_SIZE=4" },
		{ "PMI_RANK=x PMI_SIZE=4 run --shard=auto true", "PMI_RANK=x" },
		{ "CI_NODE_INDEX=0 CI_NODE_TOTAL=4 run --shard=auto true", "from 1 to the total" },
		{ "run --shard=autos true", "--shard=autos" }, { "run --shard=auto/0 true", "--shard=auto/0" },
		{ "run --shard-dir=m true", "needs --shard" },
		{ "run --shard=1/2 --shard-dir=/nonexistent/m true", "/nonexistent/m" },
		{ "run --shard=1/2 --shard-by=schedules true", "--explore" },
		/* the folder of an earlier run */
		{ "run --shard=1/1 --shard-dir=m true; run --shard=1/1 --shard-dir=m true", "earlier run" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		expect(rows[i].text, 64, rows[i].words);
}

/* Shards without a launch of their own do not fail; that nothing was launched at all does. */
Test(shards, with_nothing_to_do, .timeout = TEST_LIMIT)
{
	expect("run --shard=20/20 $ranks; echo status $?; run --shard=20/20 true", 67, "status 0\n");
	expect("for i in 3 19 20; do run --report=$i.json --shard=$i/20 $ranks || echo status $? of $i; done; "
		"$B/consan merge --to=text *.json", 66, "status 66 of 3\n");
	cr_expect(has(output, "error CS102") && !has(output, "of 19") && !has(output, "of 20\n"), "%s", output);
	expect("for i in 19 20; do run --report=$i.json --shard=$i/20 $ranks || exit 98; done; "
		"$B/consan merge --to=text *.json", 67, NULL);
}

/* A program that uses MPI has the same variables: its ranks are checked whole. */
Test(shards, only_if_asked_for, .timeout = TEST_LIMIT)
{
	expect("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=8 run $ranks", 66, "CS102");
}

/* Rank 2 finds the race; whichever ends last reports it, alone. */
Test(shards, last_one_merges, .timeout = TEST_LIMIT)
{
	expect("for i in 0 1 2 3 4 5 6 7; do (rank $i --report=all.json $ranks >o.$i 2>&1; echo $? >s.$i) & done; "
		"wait; echo statuses $(cat s.? | sort | uniq); cat o.*; ls m", 0, "statuses 0 66\n");
	cr_expect(has(output, "error CS102") && has(output, "1 of 1 kernel checked"), "%s", output);
	cr_expect(has(output, "merged-of-8.json") && !has(output, ".running"), "%s", output);

	expect("for i in 0 1 2 3 4 5 6 7; do rank $i --report=all.json $ranks; echo status $?; done; "
		"$B/consan merge m >1; $B/consan merge m >2; cmp 1 2 && $B/consan report all.json", 66,
		"status 0\nstatus 0\n");
	cr_expect_eq(count(output, "status 0\n"), 7);
	cr_expect_eq(count(output, "status 66\n"), 1);
	cr_expect_eq(count(output, "error CS102"), 2, "%s", output); /* by the last rank, and all.json */
}

/* A rank that was killed is not checked; if it is run again, it merges. */
Test(shards, killed, .timeout = TEST_LIMIT)
{
	expect("rank 4 sh -c 'kill -9 $PPID'; for i in 0 1 2 3 5 6 7; do rank $i $ranks || echo status $? of $i; "
		"done; ls m", 0, "status 66 of 7\n");
	cr_expect(has(output, "1 of 8 shards were killed before they reported: 5\n"), "%s", output);
	cr_expect(has(output, "shard-5-of-8.running"), "%s", output);

	expect("rank 2 sh -c 'kill -9 $PPID'; for i in 0 1 3 4 5 6 7; do rank $i $ranks || echo status $? of $i; "
		"done; rank 2 $ranks", 66, "status 67 of 7\n");
	cr_expect(has(output, "were killed before they reported: 3\n"), "%s", output);
	cr_expect(has(output, "error CS102"), "%s", output);
}

/* Ranks that may still come are waited for; `consan merge' does not. */
Test(shards, absent, .timeout = TEST_LIMIT)
{
	expect("for i in 0 1 4 7; do rank $i $ranks || exit 98; done; ls m; $B/consan merge --to=text m", 67,
		"4 of 8 shards did not report: 3-4, 6-7\n");
	cr_expect_not(has(output, "merged"), "%s", output);
	expect("mkfifo f; rank 0 sh -c 'read x <f' & for i in 1 2 3 4 5 6 7; do rank $i true || exit 98; done; "
		"while [ ! -e m/shard-1-of-8.running ]; do sleep .05; done; "
		"$B/consan merge --to=text m; ls m; echo >f; wait; ls m", 0, "1 of 8 shards still run: 1\n");
	cr_expect_eq(count(output, "merged-of-8.json"), 1, "%s", output);
	/* a damaged report */
	expect("for i in 0 1 2 3 4 5 6 7; do rank $i $ranks; done; echo x >m/shard-3-of-8.json; "
		"$B/consan merge --to=text m", 67, "shard-3-of-8.json");
	expect("mkdir m; $B/consan merge m", 2, "no reports of shards");
}

/* Others put pipes and links into the folder: nothing waits for them, is read or is written through them. */
Test(shards, no_files, .timeout = TEST_LIMIT)
{
	expect("mkdir m; echo kept >k; mkfifo m/shard-8-of-8.json m/shard-7-of-8.running; ln -s ../k m/shard-6-of-8.json; "
		"ln -s ../k m/merged-of-8.json; for i in 0 1 2 3 4; do rank $i $ranks; done; cat k; "
		"ln -sf ../k m/shard-5-of-8.json; $B/consan merge --to=text m", 66, "kept\n");
	cr_expect(has(output, "m/shard-6-of-8.json: not a regular file"), "%s", output);
	cr_expect(has(output, "m/shard-8-of-8.json: not a regular file"), "%s", output);
	cr_expect(has(output, "were killed before they reported: 7"), "%s", output);
	cr_expect_not(has(output, "near 'kept'"), "%s", output);
}

/* Of many shards, the others are not all looked for. */
Test(shards, many, .timeout = TEST_LIMIT)
{
	expect("export PMI_SIZE=500; many() { PMI_RANK=$1 run --shard=auto --shard-dir=m true; }; many 0; "
		"for i in $(seq 2 498); do cp m/shard-1-of-500.json m/shard-$i-of-500.json; done; "
		"many 498; ls m | grep -c merged; many 499; ls m | grep -c merged", 0, "0\n");
	cr_expect(has(output, "\n1\n"), "%s", output);
}

/* The folder has another run's report: it is not taken for one of this run. */
Test(shards, runs_are_kept_apart, .timeout = TEST_LIMIT)
{
	expect("export CONSAN_SHARD_RUN=1; for i in 0 1 2 3 4 5 6 7; do rank $i $ranks; done >/dev/null 2>&1; "
		"CONSAN_SHARD_RUN=2 rank 0 $ranks; $B/consan merge --to=text m", 67, "did not report: 2-8\n");
	cr_expect(has(output, "the latest of 2 runs is taken: 2\n"), "%s", output);
}
