/* harness: what every kernel program does on the host: options, the list of
 * planted bugs, checking of results, timing. It depends on no kernel.
 *
 * Exit status: 0 right, 1 wrong results, 2 bad usage, 3 a CUDA call failed. */
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A planted bug. The lines that a checker should report carry the comment
 * "@bug NAME RULE" in the program's source. */
struct bug {
	const char *name;
	const char *rule;
	const char *args; /* options with which it shows, or "" */
	const char *what;
};

/* Makes from a list of BUG(name, rule, args, what) an enum of the names and the
 * table `bugs` in the same order. */
#define PLANT(BUGS) \
	enum { BUGS(PLANT_NAME) }; \
	static const struct bug bugs[] = { BUGS(PLANT_ROW) };
#define PLANT_NAME(name, rule, args, what) name,
#define PLANT_ROW(name, rule, args, what) {#name, #rule, args, what},

/* The value is a number, or an index into `choices`: "first|second|third". */
struct option {
	const char *name;
	long *value;
	const char *help;
	const char *choices;
};

struct program {
	const char *name, *what, *source;
	const struct option *option;
	size_t noptions;
	const struct bug *bug;
	size_t nbugs;
};

template <size_t noptions, size_t nbugs>
static struct program harness_program(const char *name, const char *what, const char *source,
	const struct option (&options)[noptions], const struct bug (&bugs)[nbugs])
{
	return {name, what, source, options, noptions, bugs, nbugs};
}

struct run {
	int bug;      /* index into program.bug, or -1 */
	bool bench;
	int check;    /* 1: yes, 0: no */
};

/* A kernel is a template over one of these. With no_bug the compiler removes all
 * planted code; with planted_bug the kernel decides at run time. */
struct no_bug {
	__host__ __device__ static constexpr bool is(int) { return false; }
};

struct planted_bug {
	int id;
	__host__ __device__ __forceinline__ bool is(int bug) const { return id == bug; }
};

#define CUDA(call) cuda_check((call), #call, __FILE__, __LINE__)

static void cuda_check(cudaError_t status, const char *call, const char *file, int line)
{
	if (status == cudaSuccess)
		return;
	fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(status));
	exit(3);
}

/* The choice with that index, *length bytes long, or NULL */
static const char *harness_choice(const char *choices, long number, size_t *length)
{
	for (; choices; choices = strchr(choices, '|') ? strchr(choices, '|') + 1 : NULL)
		if (number-- == 0) {
			*length = strcspn(choices, "|");
			return choices;
		}
	return NULL;
}

static void harness_help(const struct program &p)
{
	printf("%s: %s\n\n", p.name, p.what);
	for (size_t i = 0; i < p.noptions; i++) {
		const struct option &o = p.option[i];
		size_t n = 0;
		const char *word = harness_choice(o.choices, *o.value, &n);

		printf("  --%s=%s%*s%s ", o.name, word ? o.choices : "N",
			(int)(12 - strlen(o.name)), word ? " " : "", o.help);
		if (word)
			printf("(%.*s)\n", (int)n, word);
		else
			printf("(%ld)\n", *o.value);
	}
	printf("  --check         compare the results with the host's (default); --no-check: do not\n"
		"  --bench         time the kernel\n"
		"  --normal        normally distributed inputs, which draw more power; not checked\n"
		"  --bug=NAME      run the kernel with this planted bug\n"
		"  --list-bugs     one line for each bug: name, rule, source, options, description\n"
		"  --help          this text\n");
}

/* Reads the option's value; exits if `text` is not a valid one. */
static void harness_value_of(const struct program &p, const struct option &o, const char *text)
{
	const char *word;
	size_t n;
	char *end;

	for (long i = 0; (word = harness_choice(o.choices, i, &n)); i++)
		if (strlen(text) == n && !strncmp(text, word, n)) {
			*o.value = i;
			return;
		}
	*o.value = strtol(text, &end, 0);
	if (!o.choices && end != text && !*end)
		return;
	fprintf(stderr, "%s: --%s=%s: it must be %s%s\n", p.name, o.name, text,
		o.choices ? "one of " : "a number", o.choices ? o.choices : "");
	exit(2);
}

static bool harness_option(const struct program &p, const char *word, size_t n,
	const char *value)
{
	for (size_t i = 0; i < p.noptions; i++)
		if (strlen(p.option[i].name) == n && !strncmp(p.option[i].name, word, n)) {
			harness_value_of(p, p.option[i], value);
			return true;
		}
	return false;
}

static int harness_bug(const struct program &p, const char *name)
{
	for (size_t i = 0; i < p.nbugs; i++)
		if (!strcmp(p.bug[i].name, name))
			return (int)i;
	fprintf(stderr, "%s: no bug %s; the bugs are", p.name, name);
	for (size_t i = 0; i < p.nbugs; i++)
		fprintf(stderr, "%s %s", i ? "," : "", p.bug[i].name);
	fprintf(stderr, "\n");
	exit(2);
}

/* --normal: the distribution of what harness_elements() returns */
static bool harness_normal;

/* Reads the command line into the options' values; may exit. */
static struct run harness_args(int argc, char **argv, const struct program &p)
{
	struct run r = {-1, false, 1};

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i], *value = NULL;
		size_t n;

		if (strncmp(word, "--", 2))
			goto bad;
		word += 2;
		n = strcspn(word, "=");
		if (word[n])
			value = word + n + 1;
		if (!strcmp(word, "help")) {
			harness_help(p);
			exit(0);
		}
		if (!strcmp(word, "list-bugs")) {
			for (size_t k = 0; k < p.nbugs; k++)
				printf("%s\t%s\t%s\t%s\t%s\n", p.bug[k].name, p.bug[k].rule,
					p.source, p.bug[k].args, p.bug[k].what);
			exit(0);
		}
		if (!strcmp(word, "check") || !strcmp(word, "no-check")) {
			r.check = word[0] == 'c';
			continue;
		}
		if (!strcmp(word, "normal")) {
			harness_normal = true;
			r.check = false;
			continue;
		}
		if (!strcmp(word, "bench")) {
			r.bench = true;
			continue;
		}
		if (!value && ++i < argc)
			value = argv[i];
		if (!value)
			goto bad;
		if (n == 3 && !strncmp(word, "bug", 3)) {
			r.bug = harness_bug(p, value);
			continue;
		}
		if (!harness_option(p, word, n, value))
			goto bad;
		continue;
bad:
		fprintf(stderr, "%s: bad option %s; see --help\n", p.name, argv[i < argc ? i : argc - 1]);
		exit(2);
	}
	return r;
}

static void harness_require(bool ok, const struct program &p, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", p.name, what);
	exit(2);
}

/* ---- inputs ---- */

static inline uint32_t harness_hash(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

/* Multiples of 1/8 from -1 to 1: sums of products are exact in fp32. */
static inline float harness_value(uint32_t seed, uint64_t i)
{
	return ((int)(harness_hash(seed + (uint32_t)i * 2654435761u) % 17) - 8) / 8.0f;
}

/* Nearly normal, as a sum of uniform values: variance 1. */
static inline float harness_normal_value(uint32_t seed, uint64_t i)
{
	float sum = 0;

	for (uint32_t k = 0; k < 12; k++)
		sum += harness_hash(seed + k * 0x9e3779b9u + (uint32_t)i * 2654435761u) * 0x1p-32f;
	return sum - 6;
}

template <class T> static T *harness_elements(uint32_t seed, uint64_t n)
{
	T *to = (T *)malloc(n * sizeof *to);

	if (!to) {
		fprintf(stderr, "no memory for %llu elements\n", (unsigned long long)n);
		exit(3);
	}
	for (uint64_t i = 0; i < n; i++)
		to[i] = T(harness_normal ? harness_normal_value(seed, i) : harness_value(seed, i));
	return to;
}

/* The caller frees it with cudaFree. */
template <class T> static T *harness_device(const T *host, uint64_t n)
{
	T *at;

	CUDA(cudaMalloc(&at, n * sizeof *at));
	if (host)
		CUDA(cudaMemcpy(at, host, n * sizeof *at, cudaMemcpyHostToDevice));
	else
		CUDA(cudaMemset(at, 0, n * sizeof *at));
	return at;
}

/* The same elements on the host and on the device, freed by the destructor */
template <class T> struct elements {
	T *host, *device;

	elements(uint32_t seed, uint64_t n) : elements(harness_elements<T>(seed, n), n) {}
	/* of n elements that malloc() returned */
	elements(T *made, uint64_t n) : host(made), device(harness_device(host, n)) {}
	elements(const elements &) = delete;
	~elements()
	{
		cudaFree(device);
		free(host);
	}
};
using halves = elements<__half>;

/* ---- checking ---- */

struct checker {
	uint64_t seen, wrong;
	double worst;
};

static void checker_see(struct checker &c, uint64_t at, double got, double want,
	double tolerance)
{
	const double off = fabs(got - want);

	c.seen++;
	if (off <= tolerance * (1 + fabs(want)))
		return;
	if (c.wrong++ < 3)
		fprintf(stderr, "element %llu: %g, should be %g\n", (unsigned long long)at, got, want);
	if (off > c.worst || isnan(off))
		c.worst = off;
}

/* The program's exit status. */
static int checker_verdict(const struct checker &c, const struct program &p)
{
	if (c.wrong) {
		printf("%s: WRONG: %llu of %llu values, worst by %g\n", p.name,
			(unsigned long long)c.wrong, (unsigned long long)c.seen, c.worst);
		return 1;
	}
	printf("%s: right (%llu values compared)\n", p.name, (unsigned long long)c.seen);
	return 0;
}

/* ---- running ---- */

/* Seconds of one launch, the mean of `repeats` after one warm-up */
template <class F> static double harness_time(F launch, int repeats = 20)
{
	cudaEvent_t from, to;
	float ms;

	launch();
	CUDA(cudaEventCreate(&from));
	CUDA(cudaEventCreate(&to));
	CUDA(cudaEventRecord(from));
	for (int i = 0; i < repeats; i++)
		launch();
	CUDA(cudaEventRecord(to));
	CUDA(cudaEventSynchronize(to));
	CUDA(cudaEventElapsedTime(&ms, from, to));
	CUDA(cudaEventDestroy(from));
	CUDA(cudaEventDestroy(to));
	return ms / 1e3 / repeats;
}

/* All that a program does once its options are read and its inputs made: launches the
 * kernel, without a bug or with the planted one, compares, times. launch(bug) launches it
 * once and check(checker) compares its results. `work` is what one launch does, for the rate
 * in `unit`; `sizes` and what follows are the sizes to print. Returns the exit status. */
template <class Launch, class Check>
__attribute__((format(printf, 7, 8)))
static int harness_run(const struct program &p, const struct run &r, Launch launch, Check check,
	double work, const char *unit, const char *sizes, ...)
{
	struct checker c = {};

	if (r.bug >= 0)
		launch(planted_bug{r.bug});
	else
		launch(no_bug{});
	CUDA(cudaDeviceSynchronize());
	if (r.check)
		check(c);
	if (r.bench) {
		const double seconds = harness_time([&] { launch(no_bug{}); });
		va_list args;

		printf("%s: ", p.name);
		va_start(args, sizes);
		vprintf(sizes, args);
		va_end(args);
		printf(": %.3f ms, %.1f %s\n", seconds * 1e3, work / seconds, unit);
	}
	return r.check ? checker_verdict(c, p) : 0;
}

/* The CTAs that the user asked for; if none, as many as the device has SMs */
static int harness_ctas(long asked)
{
	int n;

	if (asked > 0)
		return (int)asked;
	CUDA(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0));
	return n;
}
