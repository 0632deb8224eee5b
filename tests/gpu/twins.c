/* twins: every bundled kernel and each of its planted bugs, side by side, under a backend
 * that instruments:
 *   twins [--sanitizer] [--jobs=N] BUILD BACKEND [PROGRAM [I/N]]
 * I/N: the I-th of N parts of its bugs. The bug's own rule must be reported, at lines at
 * which --backend=cpu reports it; the clean kernel must be silent and right. On a GPU, where
 * nobody chooses the schedule, another rule may name the bug first. --sanitizer runs
 * NVIDIA's racecheck and synccheck beside, for the table in the README. */
#include "../../libconsan/base.h"
#include "../found.h"
#include "../shell.h"
#include "side.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const program[] = {
	"ring/ring", "hgemm/hgemm", "wgmma_gemm/wgmma_gemm", "attention/fa2_split_q",
	"attention/fa2_split_kv", "attention/fa2_shared_kv", "attention/fa2_shared_qkv",
	"attention/fa2_tiling_qk", "attention/hopper", "attention/mesh_kv", "attention/mesh_mlo",
	"mlp/fused_mlp",
};

static const struct { const char *rule, *why; } unseen[] = {
#define UNSEEN(rule, why) { #rule, why },
#define UNSEEN_SPECIMEN(specimen, why)
#include "unseen.def"
#undef UNSEEN
#undef UNSEEN_SPECIMEN
};

enum outcome { GOOD, OTHER, NOT_SEEN, BAD, OUTCOMES };
static const char *const outcome_name[] = { "ok", "other", "-", "BAD" };

struct run { const char *program, *bug, *rule; };

/* Of each run: under both backends, then under the sanitizers. */
enum { JOB_CPU, JOB_THERE, JOBS };

struct all {
	const char *build, *backend;
	bool gpu, sanitizer;
	unsigned part, parts;
	struct { struct run *at; size_t n, cap; } run;
	struct { struct side_job *at; size_t n, cap; } job; /* JOBS of each run, or two more */
	char folder[32];           /* of their reports */
	struct arena names;
	unsigned count[OUTCOMES];
};

/* "CS104 CS106" of the report's last line. */
static void codes(char *to, size_t room, const char *report)
{
	const char *at = strstr(report, "SUMMARY"), *open = at ? strchr(at, '(') : NULL;
	const char *line = at ? strchr(at, '\n') : NULL;

	snprintf(to, room, "%s", at ? "" : "no report");
	if (open && line && open < line && !strncmp(open, "(CS", 3))
		snprintf(to, room, "%.*s", (int)strcspn(open + 1, ")"), open + 1);
}

static const char *why_unseen(const char *rule)
{
	for (size_t i = 0; i < ARRAY_SIZE(unseen); i++)
		if (!strcmp(unseen[i].rule, rule))
			return unseen[i].why;
	return NULL;
}

/* ---- what there is to run ---- */

static void add_job(struct all *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void add_job(struct all *a, const char *fmt, ...)
{
	struct side_job j = { 0 };
	struct text t = { 0 };
	va_list ap;

	va_start(ap, fmt);
	text_vprintf(&t, fmt, ap);
	va_end(ap);
	j.command = t.at;
	vec_push(&a->job, j);
}

static void add(struct all *a, const char *name, const char *bug, const char *rule, const char *options)
{
	static const char *const tool[] = { "racecheck", "synccheck" };

	const struct run r = { .program = name, .bug = bug, .rule = rule };

	vec_push(&a->run, r);
	for (unsigned k = 0; k < JOBS; k++)
		add_job(a, "%s timeout 120 %s/consan-run --backend=%s --no-source --print-level=info --timeout=2 %s "
			"--report=%s/%zu.%u.json %s/kernels/%s %s %s%s 2>&1 </dev/null",
			k == JOB_CPU && !*bug ? "true ||" : "", a->build, k == JOB_CPU ? "cpu" : a->backend,
			strcmp(rule, "CS903") || k == JOB_CPU ? "" : "--gpu-global", a->folder, a->run.n - 1, k,
			a->build, name, options, *bug ? "--bug=" : "", bug);
	for (size_t k = 0; a->sanitizer && k < ARRAY_SIZE(tool); k++)
		add_job(a, "%s timeout 40 compute-sanitizer --tool=%s %s/kernels/%s %s --bug=%s 2>&1 </dev/null | "
			"grep -E 'RACECHECK SUMMARY|ERROR SUMMARY' | tail -1", *bug ? "" : "true ||", tool[k],
			a->build, name, options, bug);
}

static void add_program(struct all *a, const char *name)
{
	char *list, *line, *save = NULL;
	unsigned n = 1;

	if (shell("%s/kernels/%s --list-bugs 2>/dev/null", a->build, name))
		return; /* not built */
	list = arena_strndup(&a->names, output, strlen(output));
	if (a->part == 1)
		add(a, name, "", "", "");
	for (line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *field[5] = { line };

		for (int k = 1; k < 5 && field[k - 1]; k++) {
			field[k] = strchr(field[k - 1], '\t');
			if (field[k])
				*field[k]++ = 0;
		}
		if (field[4] && field[1][0] && n++ % a->parts == a->part % a->parts)
			add(a, name, field[0], field[1], field[3]);
	}
}

/* ---- what came of it ---- */

static const char *sanitized(const char *said)
{
	if (!said[0])
		return "hangs";
	return strstr(said, " 0 hazards") || strstr(said, " 0 errors") ? "-" : "found";
}

static struct found found_by(const struct all *a, size_t run, unsigned job)
{
	struct found none = { 0 }, f;
	char path[64];
	json_t *report;

	snprintf(path, sizeof path, "%s/%zu.%u.json", a->folder, run, job);
	report = json_load_file(path, 0, NULL);
	unlink(path);
	if (!report)
		return none;
	f = found_of_report(report);
	json_decref(report);
	return f;
}

/* Is something found at lines at which the CPU finds the bug? By its rule, or by any. */
static bool same_lines(const struct found *cpu, const struct found *there, const char *rule, bool any)
{
	const size_t n = strlen(rule);

	for (size_t i = 0; i < cpu->n; i++)
		for (size_t k = 0; !strncmp(cpu->at[i], rule, n) && k < there->n; k++)
			if ((any || !strncmp(there->at[k], rule, n)) && found_same_places(cpu->at[i], there->at[k]))
				return true;
	return false;
}

static void judge(struct all *a, size_t i, const struct side_job *job)
{
	const struct run *r = &a->run.at[i];
	struct found cpu = found_by(a, i, JOB_CPU), there = found_by(a, i, JOB_THERE);
	const char *said = job[JOB_THERE].output, *why = *r->bug && a->gpu ? why_unseen(r->rule) : NULL;
	char found[512];
	enum outcome o;
	bool right;

	codes(found, sizeof found, said);
	right = *r->bug ? same_lines(&cpu, &there, r->rule, false) : !found[0] && strstr(said, ": right");
	if (*r->bug && a->gpu && strstr(said, "the GPU reported"))
		why = "the GPU stops at it, and says only that";
	else if (*r->bug && a->gpu && strstr(said, "NOT CHECKED"))
		why = "the kernel counts as not checked";
	o = right ? GOOD : *r->bug && found[0] && a->gpu ? OTHER : why ? NOT_SEEN : BAD;
	printf("%-5s %-24s %-20s %-6s %s", outcome_name[o], r->program, *r->bug ? r->bug : "(none)",
		r->rule, found);
	if (o == NOT_SEEN)
		printf(" (%s)", why);
	else if (*r->bug && !right)
		printf(" (%s)", same_lines(&cpu, &there, r->rule, true) ? "the same lines" : "other lines");
	if (a->sanitizer && *r->bug)
		printf(" | racecheck %s | synccheck %s", sanitized(job[JOBS].output),
			sanitized(job[JOBS + 1].output));
	printf("\n");
	fflush(stdout);
	a->count[o]++;
	found_drop(&cpu);
	found_drop(&there);
}

static void done(void *user, size_t i)
{
	struct all *a = user;
	const size_t each = a->sanitizer ? JOBS + 2 : JOBS;

	if (i % each != each - 1)
		return;
	judge(a, i / each, &a->job.at[i - (each - 1)]);
	for (size_t k = 0; k < each; k++) {
		free(a->job.at[i - k].command);
		free(a->job.at[i - k].output);
	}
}

static int usage(void)
{
	fprintf(stderr, "usage: twins [--sanitizer] [--jobs=N] BUILD BACKEND [PROGRAM [I/N]]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "sanitizer", no_argument, NULL, 's' },
		{ "jobs", required_argument, NULL, 'j' }, { 0 } };
	struct all a = { .part = 1, .parts = 1 };
	unsigned at_once = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 's')
			a.sanitizer = true;
		else if (c == 'j')
			at_once = (unsigned)strtoul(optarg, NULL, 0);
		else
			return usage();
	}
	argv += optind;
	argc -= optind;
	if (argc < 2 || (argc > 3 && (sscanf(argv[3], "%u/%u", &a.part, &a.parts) != 2 || !a.part ||
			a.part > a.parts)))
		return usage();
	a.build = argv[0];
	a.backend = argv[1];
	a.gpu = !strcmp(a.backend, "gpu");
	snprintf(a.folder, sizeof a.folder, "/tmp/consan-twins-XXXXXX");
	if (!mkdtemp(a.folder))
		base_die("no folder for reports");
	for (size_t i = 0; i < ARRAY_SIZE(program); i++)
		if (argc < 3 || strstr(program[i], argv[2]))
			add_program(&a, program[i]);
	side_run(a.job.at, a.job.n, at_once, done, &a);
	printf("%u as expected, %u by another rule, %u not visible to this backend, %u wrong\n",
		a.count[GOOD], a.count[OTHER], a.count[NOT_SEEN], a.count[BAD]);
	rmdir(a.folder);
	vec_free(&a.run);
	vec_free(&a.job);
	arena_free(&a.names);
	return a.count[BAD] || !a.count[GOOD];
}
