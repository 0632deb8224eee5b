/* bench: the cost of --backend=gpu on a machine with a GPU, compared with NVIDIA's
 * compute-sanitizer in the same run: `bench BUILD`. All times are of one launch:
 *   native     by events
 *   first      by --gpu-times: the first launch, without the time to make the pool; the median
 *              and the range over several processes
 *   again      by --gpu-times: the median of launches that record what is known to be clean
 *   recording  the kernel alone of those, by the GPU's clock
 *   racecheck, synccheck
 *              the wall clock of a run that checks one launch, less a run that checks none
 * This is without global memory. A second table has the same of --gpu-global, which is the default, compared with
 * that; ours: all kernels of consan, by the GPU's clock; screen: of these, those that find launches whose
 * accesses to global memory are clean by themselves; scan: of these, the one that looks at the tables; clean: how many of the launches are */
#include "tests/common/shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct { const char *name, *path, *options; double limit; } work[] = {
	{ "TMA ring", "ring/ring", "--rows=65536 --ctas=0", 100 },
	{ "wgmma matmul 2048", "wgmma_gemm/wgmma_gemm", "--m=2048 --n=2048 --k=2048", 100 },
	{ "mma.sync hgemm 2048", "hgemm/hgemm", "--m=2048 --n=2048 --k=2048", 200 },
	{ "attention N=4096", "attention/fa2_split_q", "--n=4096", 200 },
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of the numbers after `key` in the lines of --gpu-times, without the first line,
 * whose launch makes the pool */
static double median(const char *key)
{
	double v[64];
	size_t n = 0;
	const char *line = strstr(output, "times of");

	while (line && n < COUNT(v)) {
		const char *at = strstr(line, key);

		if (!at)
			break;
		v[n++] = atof(at + strlen(key));
		line = strstr(at, "times of");
	}
	if (n < 2)
		return 0;
	qsort(v + 1, n - 1, sizeof *v, by_value);
	return v[1 + (n - 1) / 2];
}

/* The number after `key` for the first launch; the line of a module is before it */
static double first(const char *key)
{
	const char *line = strstr(output, ": prepare "), *at = line ? strstr(line, key) : NULL;

	return at ? atof(at + strlen(key)) : 0;
}

/* The parts of the first launch's time, and the time to instrument the module, in ms */
struct spent { double whole, insns, load, run, digest, copy, check, rest, clusters; };

static struct spent spent(void)
{
	struct spent s = { .run = first(" run "), .digest = first("; digest "),
		.copy = first(" copy ") };
	const char *at = strstr(output, ": instrumented ");
	const char *line = strstr(output, " check "), *open = line ? strchr(line, '(') : NULL;

	if (at)
		sscanf(at, ": instrumented %lf instructions in %lf", &s.insns, &s.load);
	if (open) {
		sscanf(open, "(%lf clusters", &s.clusters);
		open = strstr(open, ": ");
		s.check = open ? atof(open + 2) : 0;
	}
	s.rest = first(" check ") - s.check;
	s.whole = s.run + s.copy + first(" check ");
	return s;
}

static int by_whole(const void *a, const void *b)
{
	return by_value(&((const struct spent *)a)->whole, &((const struct spent *)b)->whole);
}

#define NO_GLOBAL "--gpu-global=no"

static void run_consan(const char *build, size_t k, unsigned launches, const char *options)
{
	shell("timeout 100 %s/consan-run --backend=gpu --gpu-times --launch-count=%u %s %s/kernels/%s %s "
		"--no-check --bench 2>&1", build, launches, options, build, work[k].path, work[k].options);
}

/* The first launches of so many processes, sorted by time */
#define PROCESSES 7

static void first_launches(const char *build, size_t k, const char *options, struct spent s[PROCESSES])
{
	for (unsigned i = 0; i < PROCESSES; i++) {
		run_consan(build, k, 1, options);
		s[i] = spent();
	}
	qsort(s, PROCESSES, sizeof *s, by_whole);
}

/* ---- --gpu-global ---- */

/* Of a run with these options: the median time of a first launch, and of a later one */
struct cost { double recording, first, again, ours, screen, scan; unsigned clean, screened; };

static unsigned count(const char *what)
{
	unsigned n = 0;

	for (const char *at = output; (at = strstr(at, what)); at++)
		n++;
	return n;
}

static struct cost cost_with(const char *build, size_t k, const char *options)
{
	struct cost c = { 0 };
	struct spent s[PROCESSES];

	run_consan(build, k, 8, options);
	c.recording = median("'s clock: kernel ");
	c.again = median(" whole ");
	c.ours = median(", ours ");
	c.screen = median(", screen ");
	c.scan = median("of it scan ");
	c.screened = count("screen of ");
	c.clean = count(": clean");
	first_launches(build, k, options, s);
	c.first = s[PROCESSES / 2].whole;
	return c;
}

#define GLOBAL_LIMIT 3 /* times what a launch takes without */

/* Returns how many are above the limit. without: by program. */
static int bench_global(const char *build, const struct cost *without)
{
	int bad = 0;

	printf("\n%-20s %9s %9s %9s %6s %6s %9s %9s %6s %6s %9s %9s %9s\n", "--gpu-global", "recording", "first ms",
		"without", "x", "limit", "again ms", "without", "x", "clean", "ours", "screen", "scan");
	for (size_t k = 0; k < COUNT(work); k++) {
		const struct cost c = cost_with(build, k, "--gpu-global"), *d = &without[k];
		const double first_x = d->first > 0 ? c.first / d->first : 0;
		const double again_x = d->again > 0 ? c.again / d->again : 0;
		char clean[16];

		snprintf(clean, sizeof clean, "%u/%u", c.clean, c.screened);
		printf("%-20s %9.3f %9.3f %9.3f %6.1f %6d %9.3f %9.3f %6.1f %6s %9.3f %9.3f %9.3f\n", work[k].name,
			c.recording, c.first, d->first, first_x, GLOBAL_LIMIT, c.again, d->again, again_x, clean,
			c.ours, c.screen, c.scan);
		fflush(stdout);
		bad += !(first_x > 0 && first_x <= GLOBAL_LIMIT && again_x > 0 && again_x <= GLOBAL_LIMIT);
	}
	return bad;
}

static double native(const char *build, size_t k)
{
	const char *at;

	shell("%s/kernels/%s %s --no-check --bench 2>&1", build, work[k].path, work[k].options);
	at = strstr(output, " ms");
	while (at && at > output && at[-1] != ' ')
		at--;
	return at ? atof(at) : 0;
}

/* The seconds of a run under the tool */
static double sanitized(const char *tool, const char *options, const char *build, size_t k)
{
	double start = now();

	shell("timeout 100 compute-sanitizer --tool=%s %s %s/kernels/%s %s --no-check 2>&1", tool,
		options, build, work[k].path, work[k].options);
	return now() - start;
}

static double sanitizer(const char *tool, const char *build, size_t k)
{
	double none = sanitized(tool, "--launch-skip=100", build, k);
	double one = sanitized(tool, "", build, k);

	return strstr(output, "SUMMARY") ? (one - none) * 1e3 : 0;
}

/* "-" if the run took no longer than one that checks nothing: the tool reported nothing. */
static const char *in_ms(double ms, char text[32])
{
	snprintf(text, 32, ms > 0 ? "%.0f ms" : "-", ms);
	return text;
}

int main(int argc, char **argv)
{
	const char *build = argc > 1 ? argv[1] : "build";
	struct spent went[COUNT(work)];
	struct cost plain[COUNT(work)] = { 0 };
	int bad = 0;

	printf("%-20s %9s %9s %6s %9s %6s %10s %6s %9s %6s %10s %10s %9s\n", "", "native ms",
		"recording", "x", "first ms", "x", "x, range", "limit", "again ms", "x", "racecheck",
		"synccheck", "KiB");
	for (size_t k = 0; k < COUNT(work); k++) {
		double n = native(build, k), run, once, whole, kib, race, sync;
		struct spent s[PROCESSES];
		char range[32], racecheck[32], synccheck[32];

		run_consan(build, k, 8, NO_GLOBAL);
		run = median("'s clock: kernel ");
		if (!run) /* CUPTI has no times */
			run = median(" run ");
		whole = median(" whole ");
		kib = first("KiB of ");
		first_launches(build, k, NO_GLOBAL, s);
		went[k] = s[PROCESSES / 2];
		once = went[k].whole;
		plain[k] = (struct cost){ .first = once, .again = whole };
		snprintf(range, sizeof range, "%.0f to %.0f", n > 0 ? s[0].whole / n : 0,
			n > 0 ? s[PROCESSES - 1].whole / n : 0);
		race = sanitizer("racecheck", build, k);
		sync = sanitizer("synccheck", build, k);
		printf("%-20s %9.3f %9.3f %6.1f %9.3f %6.0f %10s %6.0f %9.3f %6.0f %10s %10s %9.0f\n",
			work[k].name, n, run, n > 0 ? run / n : 0, once, n > 0 ? once / n : 0, range,
			work[k].limit, whole, n > 0 ? whole / n : 0, in_ms(race, racecheck),
			in_ms(sync, synccheck), kib);
		fflush(stdout);
		bad += !(n > 0 && once > 0 && once / n <= work[k].limit);
	}
	printf("\n%-20s %9s %9s %9s %9s %9s %9s   %s\n", "first launch, ms", "recording", "copy",
		"check", "rest", "(digest)", "clusters", "instrumenting, at load");
	for (size_t k = 0; k < COUNT(work); k++)
		printf("%-20s %9.3f %9.3f %9.3f %9.3f %9.3f %9.0f   %.0f instructions in "
			"%.1f ms\n",
			work[k].name, went[k].run, went[k].copy, went[k].check, went[k].rest, went[k].digest,
			went[k].clusters, went[k].insns, went[k].load);
	bad += bench_global(build, plain);
	if (bad)
		printf("%d of %zu above the limit\n", bad, 2 * COUNT(work));
	return bad != 0;
}
