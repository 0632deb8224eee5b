/* twins: every bundled kernel and each of its planted bugs, side by side, under a backend
 * that instruments:
 *   twins [--sanitizer] [--jobs=N] BUILD BACKEND [PROGRAM [I/N]]
 * I/N: the I-th of N parts of its bugs. The bug's own rule must be reported, the clean
 * kernel must be silent and right. On a GPU, where nobody chooses the schedule, another
 * rule may name the bug first. --sanitizer runs NVIDIA's racecheck and synccheck beside,
 * for the table in the README. */
#include "../../libconsan/base.h"
#include "../shell.h"
#include "side.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

struct all {
	const char *build, *backend;
	bool gpu, sanitizer;
	unsigned part, parts;
	struct { struct run *at; size_t n, cap; } run;
	struct { struct side_job *at; size_t n, cap; } job; /* of each run one, or three */
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
	add_job(a, "timeout 120 %s/consan-run --backend=%s --no-source --print-level=info --timeout=2 %s "
		"%s/kernels/%s %s %s%s 2>&1 </dev/null", a->build, a->backend,
		strcmp(rule, "CS903") ? "" : "--gpu-global", a->build, name, options, *bug ? "--bug=" : "", bug);
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

static void judge(struct all *a, const struct run *r, const struct side_job *job)
{
	char found[512];
	const char *said = job->output, *why = *r->bug && a->gpu ? why_unseen(r->rule) : NULL;
	enum outcome o;
	bool right;

	codes(found, sizeof found, said);
	right = *r->bug ? strstr(said, r->rule) != NULL : !found[0] && strstr(said, ": right");
	if (*r->bug && a->gpu && strstr(said, "the GPU reported"))
		why = "the GPU stops at it, and says only that";
	else if (*r->bug && a->gpu && strstr(said, "NOT CHECKED"))
		why = "the kernel counts as not checked";
	o = right ? GOOD : *r->bug && found[0] && a->gpu ? OTHER : why ? NOT_SEEN : BAD;
	printf("%-5s %-24s %-20s %-6s %s", outcome_name[o], r->program, *r->bug ? r->bug : "(none)",
		r->rule, found);
	if (o == NOT_SEEN)
		printf(" (%s)", why);
	if (a->sanitizer && *r->bug)
		printf(" | racecheck %s | synccheck %s", sanitized(job[1].output), sanitized(job[2].output));
	printf("\n");
	fflush(stdout);
	a->count[o]++;
}

static void done(void *user, size_t i)
{
	struct all *a = user;
	const size_t each = a->sanitizer ? 3 : 1;

	if (i % each != each - 1)
		return;
	judge(a, &a->run.at[i / each], &a->job.at[i - (each - 1)]);
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
	for (size_t i = 0; i < ARRAY_SIZE(program); i++)
		if (argc < 3 || strstr(program[i], argv[2]))
			add_program(&a, program[i]);
	side_run(a.job.at, a.job.n, at_once, done, &a);
	printf("%u as expected, %u by another rule, %u not visible to this backend, %u wrong\n",
		a.count[GOOD], a.count[OTHER], a.count[NOT_SEEN], a.count[BAD]);
	vec_free(&a.run);
	vec_free(&a.job);
	arena_free(&a.names);
	return a.count[BAD] || !a.count[GOOD];
}
