/* planted_bugs: runs every bundled kernel, and each of its planted bugs, under a backend that
 * instruments:
 *   planted_bugs [--sanitizer] [--all] [--seed=N] [--jobs=N] [--log=FILE]
 *                BUILD BACKEND [FILTER [I/N]]
 * FILTER: what "PROGRAM BUG" must contain; I/N: the I-th of N parts of a program's bugs.
 *
 * The clean kernel must have no findings and correct results. A bug's own rule must be
 * reported at lines at which --backend=cpu reports it. On a GPU, where the schedule cannot be
 * chosen, and with --seed, a schedule of the cpu backend (schedules.h) must show what is
 * reported, or it is a hang. --all: this holds for all that is reported of a bug, not only
 * for its own rule. --sanitizer also runs NVIDIA's racecheck and synccheck, for the table in
 * README.md. FILE gets the whole output of runs that are not as expected. */
#include "tests/cases/harness/found.h"
#include "tests/common/shell.h"
#include "schedules.h"

static const char *const programs[] = {
	"ring/ring", "hgemm/hgemm", "wgmma_gemm/wgmma_gemm", "attention/fa2_split_q",
	"attention/fa2_split_kv", "attention/fa2_shared_kv", "attention/fa2_shared_qkv",
	"attention/fa2_tiling_qk", "attention/hopper", "attention/mesh_kv", "attention/mesh_mlo",
	"mlp/fused_mlp",
};

static const struct { const char *program, *what; } differences[] = {
#define DIFFERS(program, what, why) { program, what },
#include "tests/cases/harness/emulated.def"
#undef DIFFERS
};

struct run { const char *program, *bug, *rule, *options; };

/* The jobs of a run: one for each of the two backends, then those of the sanitizers */
enum { JOB_CPU, JOB_BACKEND, JOBS };

struct all {
	struct runner o;
	struct { struct run *at; size_t n, cap; } run;
	struct { struct runner_job *at; size_t n, cap; } job; /* JOBS of each run, or two more */
	struct arena names;
};

/* "CS104 CS106" of the report's last line. */
static void codes(char *to, size_t size, const char *report)
{
	const char *at = strstr(report, "SUMMARY"), *open = at ? strchr(at, '(') : NULL;
	const char *line = at ? strchr(at, '\n') : NULL;

	snprintf(to, size, "%s", at ? "" : "no report");
	if (open && line && open < line && !strncmp(open, "(CS", 3))
		snprintf(to, size, "%.*s", (int)strcspn(open + 1, ")"), open + 1);
}

/* ---- what to run ---- */

static void add_job(struct all *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void add_job(struct all *a, const char *fmt, ...)
{
	struct runner_job j = { 0 };
	struct text t = { 0 };
	va_list ap;

	va_start(ap, fmt);
	text_vprintf(&t, fmt, ap);
	va_end(ap);
	j.command = t.at;
	vec_push(&a->job, j);
}

static void add(struct all *a, const char *name, const char *bug, const char *rule,
	const char *options)
{
	static const char *const tool[] = { "racecheck", "synccheck" };
	const struct run r = { .program = name, .bug = bug, .rule = rule, .options = options };
	char both[128];

	snprintf(both, sizeof both, "%s %s", name, *bug ? bug : "(none)");
	if (!strstr(both, a->o.filter))
		return;
	vec_push(&a->run, r);
	for (unsigned k = 0; k < JOBS; k++) {
		const bool cpu = k == JOB_CPU;

		add_job(a, "%s timeout 600 %s/consan-run --backend=%s --gpu-memory=512 --no-source "
			"--print-level=info --timeout=%s %s --seed=%s --report=%s/%zu.%u.json "
			"%s/kernels/%s %s %s%s 2>&1 </dev/null",
			cpu && !*bug ? "true ||" : "", a->o.build, cpu ? "cpu" : a->o.backend,
			a->o.gpu ? "2" : "30",
			cpu || strcmp(rule, "CS903") ? "" : "--gpu-global", cpu ? "0" : a->o.seed,
			a->o.folder, a->run.n - 1, k, a->o.build, name, options, *bug ? "--bug=" : "", bug);
	}
	for (size_t k = 0; a->o.sanitizer && k < ARRAY_SIZE(tool); k++)
		add_job(a, "%s timeout 40 compute-sanitizer --tool=%s %s/kernels/%s %s --bug=%s 2>&1 "
			"</dev/null | grep -E 'RACECHECK SUMMARY|ERROR SUMMARY' | tail -1",
			*bug ? "" : "true ||", tool[k], a->o.build, name, options, bug);
}

static void add_program(struct all *a, const char *name)
{
	char *list, *line, *save = NULL;
	unsigned n = 1;

	if (shell("%s/kernels/%s --list-bugs 2>/dev/null", a->o.build, name))
		return; /* not built */
	list = arena_strndup(&a->names, output, strlen(output));
	if (a->o.part == 1)
		add(a, name, "", "", "");
	for (line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *field[5] = { line };

		for (int k = 1; k < 5 && field[k - 1]; k++) {
			field[k] = strchr(field[k - 1], '\t');
			if (field[k])
				*field[k]++ = 0;
		}
		if (field[4] && field[1][0] && n++ % a->o.parts == a->o.part % a->o.parts)
			add(a, name, field[0], field[1], field[3]);
	}
}

/* ---- results ---- */

static const char *sanitizer_result(const char *summary)
{
	if (!summary[0])
		return "hangs";
	return strstr(summary, " 0 hazards") || strstr(summary, " 0 errors") ? "-" : "found";
}

/* The report of a run, or NULL. */
static json_t *report_of(const struct all *a, size_t run, unsigned job)
{
	char path[64];
	json_t *report;

	snprintf(path, sizeof path, "%s/%zu.%u.json", a->o.folder, run, job);
	report = json_load_file(path, 0, NULL);
	unlink(path);
	return report;
}

/* Does `report` have the rule at lines at which the cpu backend has it? */
static bool same_lines(const json_t *cpu, const json_t *report, const char *rule)
{
	struct found here = found_of_report(cpu), found = found_of_report(report);
	const size_t n = strlen(rule);
	bool same = false;

	for (size_t i = 0; i < here.n; i++)
		for (size_t k = 0; !strncmp(here.at[i], rule, n) && k < found.n; k++)
			same |= found_same(here.at[i], found.at[k]);
	found_drop(&here);
	found_drop(&found);
	return same;
}

/* The rules that emulated.def lists for the bug, or NULL */
static const char *differs(const struct run *r)
{
	char both[128];

	snprintf(both, sizeof both, "%s %s", r->program, r->bug);
	for (size_t k = 0; k < ARRAY_SIZE(differences); k++)
		if (!strcmp(differences[k].program, both))
			return differences[k].what;
	return NULL;
}

/* good: the bug's own rule is reported. why: text for the caller to print */
static enum outcome judge_schedules(const struct all *a, const struct run *r, const json_t *report,
	bool good, struct text *why)
{
	struct text program = { 0 };
	struct shown shown;

	text_printf(&program, "%s/kernels/%s %s --bug=%s", a->o.build, r->program, r->options, r->bug);
	shown = schedules_show(&(struct schedules){ &a->o, "", program.at, differs(r) }, report);
	if (shown.words.n)
		text_printf(why, "%s", shown.words.at);
	text_free(&shown.words);
	text_free(&program);
	if (shown.outcome == NOT_SEEN)
		return good ? GOOD : WRONG;
	return good && shown.outcome == SCHEDULE ? GOOD : shown.outcome;
}

/* any: something above a note is reported */
static enum outcome judge_bug(const struct all *a, size_t i, const char *out, bool any,
	struct text *why)
{
	const struct run *r = &a->run.at[i];
	json_t *cpu = report_of(a, i, JOB_CPU), *report = report_of(a, i, JOB_BACKEND);
	const char *known;
	enum outcome o = same_lines(cpu, report, r->rule) ? GOOD : WRONG;

	if (any && (a->o.all || (o == WRONG && a->o.any_schedule)))
		o = judge_schedules(a, r, report, o == GOOD, why);
	json_decref(cpu);
	json_decref(report);
	if (o != WRONG || !a->o.gpu || why->n)
		return o;
	known = runner_why_stopped(out);
	if (!known && strstr(out, "NOT CHECKED"))
		known = "the kernel counts as not checked";
	text_printf(why, "%s", known ? known : "");
	return known ? NOT_SEEN : WRONG;
}

static void judge(struct all *a, size_t i, const struct runner_job *job)
{
	const struct run *r = &a->run.at[i];
	const char *out = job[JOB_BACKEND].output;
	struct text why = { 0 };
	char found[512];
	enum outcome o;

	codes(found, sizeof found, out);
	if (*r->bug)
		o = judge_bug(a, i, out, !strncmp(found, "CS", 2), &why);
	else
		o = !found[0] && strstr(out, ": right") ? GOOD : WRONG;
	printf("%-5s %-24s %-20s %-6s %s", outcome_word(o), r->program, *r->bug ? r->bug : "(none)",
		r->rule, found);
	if (why.n)
		printf(" (%s)", why.at);
	if (a->o.sanitizer && *r->bug)
		printf(" | racecheck %s | synccheck %s", sanitizer_result(job[JOBS].output),
			sanitizer_result(job[JOBS + 1].output));
	printf("\n");
	fflush(stdout);
	if (a->o.log && o != GOOD) {
		fprintf(a->o.log, "%s %s %s\n$ %s\n%s\n", outcome_word(o), r->program, r->bug,
			job[JOB_BACKEND].command, out);
		fflush(a->o.log);
	}
	a->o.count[o]++;
	text_free(&why);
}

static void done(void *user, size_t i)
{
	struct all *a = user;
	const size_t each = a->o.sanitizer ? JOBS + 2 : JOBS;

	if (i % each != each - 1)
		return;
	judge(a, i / each, &a->job.at[i - (each - 1)]);
	for (size_t k = 0; k < each; k++) {
		free(a->job.at[i - k].command);
		free(a->job.at[i - k].output);
	}
}

int main(int argc, char **argv)
{
	struct all a = { 0 };

	if (!runner_begin(&a.o, argc, argv))
		return 2;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		add_program(&a, programs[i]);
	runner_run(a.job.at, a.job.n, a.o.at_once, done, &a);
	vec_free(&a.run);
	vec_free(&a.job);
	arena_free(&a.names);
	return runner_end(&a.o);
}
