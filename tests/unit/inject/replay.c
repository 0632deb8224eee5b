/* replay: --gpu-then-cpu with a fake driver, whose kernels do nothing (tests/gpu/replay_client.c). */
#include "tests/common/fake_gpu.h"
#include "tests/common/limits.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int replayed(const char *options, const char *args)
{
	const char *dir = build_dir();

	needs_gpu_mode();
	return shell("%s %s/consan-run --backend=gpu --gpu-global=no --no-source "
		"--code-cache=none --report=-.json %s %s/tests/gpu/replay_client %s", fake_gpu("driver"), dir, options, dir,
		args);
}

static bool has(const char *what)
{
	return strstr(output, what);
}

#define HAS(what) cr_expect(has(what), "no %s in:\n%s", what, output)
#define LACKS(what) cr_expect_not(has(what), "%s in:\n%s", what, output)
#define RUNS(status, ...) cr_expect_eq(replayed(__VA_ARGS__), status, "%s", output)

/* --backend=auto: a program suits the GPU if its own file has PTX, of which the GPU's records show all. */
static void choose(const char *options, const char *program, const char *device)
{
	const char *dir = build_dir();

	shell("%s %s/consan-run --backend=auto %s --allow-unchecked "
		"--report=-.json --code-cache=none %s/tests/gpu/%s race 2>/dev/null", fake_gpu("driver"), dir, options, dir,
		program);
	HAS(device);
}

Test(replay, chooses, .timeout = TEST_LIMIT)
{
	needs_gpu_mode();
	choose("", "suits_client", "(emulated)");
	choose("--gpu-global", "suits_client", "fake GPU 0");
	choose("--gpu-global=no", "suits_client", "(emulated)");
	choose("--no-global", "suits_client", "fake GPU 0");
	choose("--gpu-then-cpu", "suits_client", "fake GPU 0");
	choose("--no-global --seed=1", "suits_client", "(emulated)");
	choose("--no-global", "replay_client", "(emulated)");
}

/* The parameter, what it points to, and the variables have their contents, or the kernel traps. */
Test(replay, whole, .timeout = TEST_LIMIT)
{
	RUNS(0, "", "race 4");
	LACKS("\"replayed\": 1");
	RUNS(66, "--gpu-then-cpu", "race 4");
	HAS("memory unchanged");
	HAS("\"rule\": \"CS1");
	LACKS("CS9");
	HAS("\"backends\": 2");
	HAS("\"replayed\": 1");
	HAS("\"replay_ctas\": 4");
	HAS("\"replayed_ctas\": 4");
	LACKS("not_replayed");
}

Test(replay, sample, .timeout = TEST_LIMIT)
{
	RUNS(66, "--gpu-then-cpu --gpu-then-ctas=6", "race 100");
	HAS("\"replay_ctas\": 100");
	HAS("\"replayed_ctas\": 6");
	HAS("\"clusters\": 6");
}

/* CTAs of a sample wait for others; all of them together do not. */
Test(replay, waits, .timeout = TEST_LIMIT)
{
	RUNS(0, "--gpu-then-cpu --gpu-then-ctas=6", "waits 100");
	HAS("waits for CTAs outside the sample");
	LACKS("CS7");
	RUNS(0, "--gpu-then-cpu --gpu-then-ctas=0", "waits 100");
	HAS("\"replayed_ctas\": 100");
	LACKS("not_replayed");
}

Test(replay, limits, .timeout = TEST_LIMIT)
{
	RUNS(0, "--gpu-then-cpu --gpu-then-memory=0", "race 4");
	HAS("--gpu-then-memory");
	HAS("\"replayed\": 0");
}

/* An access behind an allocation is a finding; one in memory to which nothing points is none. */
Test(replay, addresses, .timeout = TEST_LIMIT)
{
	RUNS(66, "--gpu-then-cpu --gpu-global", "outside"); /* which has guards behind allocations */
	HAS("CS903");
	LACKS("not_replayed");
	RUNS(0, "--gpu-then-cpu", "stray");
	LACKS("CS903");
	HAS("in memory that was not copied");
}

/* A word that is an address of consan's own memory is no pointer to an input: of records, of a counter that
 * devices share, of the words of sites. */
Test(replay, memory_of_consan, .timeout = TEST_LIMIT)
{
	needs_gpu_mode();
	setenv("DRIVER_DEVICES", "2", 1);
	/* CS903 where it lies near an allocation of the program */
	replayed("--gpu-then-cpu --gpu-then-launches=0 --gpu-drain", "others");
	HAS("others: many");
	HAS("in memory that was not copied");
	HAS("\"replayed_ctas\": 1,"); /* of the first launch, which reads the program's */
}

/* Nor may a kernel access it, behind an allocation of the program. */
Test(replay, neighbour_of_consan, .timeout = TEST_LIMIT)
{
	needs_gpu_mode();
	setenv("DRIVER_CHUNKS", "1", 1);
	RUNS(66, "--gpu-global --gpu-each", "neighbour");
	HAS("neighbour: yes");
	HAS("CS903");
}

/* The kernel never ends, and the user ends the program: what the replay found is reported. There is no
 * --timeout, so the program waits for the GPU. It is ended when the records have the finding. */
static void ended_in_a_launch(const char *options, const char *end)
{
	const char *dir = build_dir();

	needs_gpu_mode();
	shell("d=$(mktemp -d) && export TMPDIR=$d; %s setsid env DRIVER_CHUNKS=1 DRIVER_END=%s %s/consan-run --backend=gpu "
		"--no-source --code-cache=none --report=-.json --gpu-then-cpu %s %s/tests/gpu/replay_client race 4 & "
		"p=$!; n=0; until grep -rqs CS10 $d || [ $((n += 1)) = 3000 ]; do sleep 0.1; done; "
		"kill -- -$p; wait $p; rm -rf $d", fake_gpu("driver"), end, dir, options, dir);
	HAS("\"rule\": \"CS1");
	HAS("\"replayed\": 1");
	HAS("\"replayed_ctas\": 4");
}

Test(replay, of_a_launch_that_does_not_end, .timeout = TEST_LIMIT)
{
	ended_in_a_launch("", "hang");
}
