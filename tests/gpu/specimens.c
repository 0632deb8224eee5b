/* specimens: runs both twins of every specimen of tests/cases/ as CUDA programs, each in a
 * process of its own, under a backend that instruments. To be run in the folder that holds
 * tests/cases/:
 *   specimens [--seed=N] [--jobs=N] [--log=FILE] BUILD BACKEND [FILTER [I/N]]
 * FILTER: what the name, "race/cs102_plain", must contain; I/N: the I-th of N parts.
 *
 * The correct twin must have no findings. The racy one must show its rules at their lines, or
 * emulated.def has the reason why not. On a GPU, where the schedule cannot be chosen, and with
 * --seed, the racy twin must show what it shows under --backend=cpu in some schedule
 * (schedules.h), which may be nothing, or hang; hardware.def lists what differs on hardware, of either twin.
 * stdout gets what is not as expected, FILE all results, with the whole output of those. */
#include "tests/cases/harness/judge.h"
#include "schedules.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct { const char *specimen, *what, *why; } differences[] = {
#define DIFFERS(specimen, what, why) { specimen, what, why },
#include "tests/cases/harness/emulated.def"
#undef DIFFERS
};

static const struct { const char *specimen, *why; } hardware[] = {
#define HARDWARE(specimen, why) { specimen, why },
#include "hardware.def"
#undef HARDWARE
};

static const char *const twin_name[] = { "racy", "fixed" };

struct run {
	struct specimen s;
	char name[128];         /* "race/cs102_plain" */
	enum twin twin;
	char report[64];        /* path of its report */
};

struct all {
	struct runner o;
	struct { struct run *at; size_t n, cap; } run;
	struct runner_job *job; /* one for each run */
};

/* The result of a run */
struct result {
	json_t *report;
	struct seen_list seen;
	bool any, checked;      /* anything above a note; all launches were checked */
	bool crashed;           /* the program, on the host */
	char unchecked[320];    /* why not */
	char status[512];       /* that the program printed: "ran", "stopped: WHY" */
};

/* ---- what to run ---- */

/* any_schedule: leaves out the options that choose a schedule of the executor. --reads is for the
 * executor only. */
static void add_options(struct text *t, bool any_schedule, const char *options)
{
	char copy[sizeof ((struct specimen *)0)->options], *save, *word;

	snprintf(copy, sizeof copy, "%s", options);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		if (strncmp(word, "reads=", 6) && (!any_schedule || !strncmp(word, "knob=", 5)))
			text_printf(t, "--%s ", word);
}

static char *command_of(const struct all *a, const struct run *r)
{
	struct text t = { 0 };

	text_printf(&t, "timeout 600 %s/consan-run --backend=%s --gpu-global --gpu-memory=256 --jobs=2 "
		"--no-source --report=%s ", a->o.build, a->o.backend, r->report);
	add_options(&t, a->o.any_schedule, r->s.options);
	if (a->o.any_schedule && !a->o.gpu)
		text_printf(&t, "--seed=%s ", a->o.seed);
	text_printf(&t, "--timeout=8 %s/tests/gpu/specimen %s %s 2>&1 </dev/null", a->o.build,
		r->s.path, twin_name[r->twin]);
	return t.at;
}

static void add_specimen(struct all *a, const char *path, const char *name, int length)
{
	for (int twin = RACY; twin < NTWINS; twin++) {
		struct run r = { .twin = twin };

		specimen_read(&r.s, path);
		if ((twin == RACY && !r.s.twins) || r.s.cpu_only) {
			free(r.s.text);
			continue;
		}
		snprintf(r.name, sizeof r.name, "%.*s", length, name);
		snprintf(r.report, sizeof r.report, "%s/%zu.json", a->o.folder, a->run.n);
		vec_push(&a->run, r);
	}
}

static void list(struct all *a, const glob_t *g)
{
	unsigned nth = 0;

	for (size_t i = 0; i < g->gl_pathc; i++) {
		const char *name = g->gl_pathv[i] + sizeof "tests/cases/" - 1;
		const int length = (int)(strlen(name) - sizeof ".ptx" + 1);
		char stem[128];

		snprintf(stem, sizeof stem, "%.*s", length, name);
		if (strstr(stem, a->o.filter) && ++nth % a->o.parts == a->o.part % a->o.parts)
			add_specimen(a, g->gl_pathv[i], name, length);
	}
	a->job = base_alloc((a->run.n + 1) * sizeof *a->job);
	for (size_t i = 0; i < a->run.n; i++)
		a->job[i].command = command_of(a, &a->run.at[i]);
}

/* ---- results ---- */

static void take_coverage(struct result *r, const json_t *report)
{
	const json_t *rows = json_object_get(report, "coverage"), *row;
	size_t i;

	r->checked = json_array_size(rows) > 0;
	snprintf(r->unchecked, sizeof r->unchecked, "%s", r->checked ? "" : "no launch was recorded");
	json_array_foreach(rows, i, row) {
		const char *why = json_string_value(json_object_get(row, "unchecked"));

		if (json_integer_value(json_object_get(row, "launches")) ==
				json_integer_value(json_object_get(row, "checked")))
			continue;
		r->checked = false;
		snprintf(r->unchecked, sizeof r->unchecked, "%s", why ? why : "not checked");
	}
}

static struct result result_of(const struct run *run, const struct runner_job *job)
{
	json_t *report = json_load_file(run->report, 0, NULL);
	const char *status = strstr(job->output, "specimen: ");
	struct result r = { .report = report, .seen = seen_of_report(report) };

	r.crashed = job->status == 128 + SIGSEGV;
	take_coverage(&r, report);
	for (size_t i = 0; i < r.seen.n; i++)
		r.any |= !r.seen.at[i].note;
	if (status)
		status += sizeof "specimen: " - 1;
	snprintf(r.status, sizeof r.status, "%.*s", status ? (int)line_length(status) : 0,
		status ? status : "");
	unlink(run->report);
	return r;
}

/* ---- judgement ---- */

/* The reason in emulated.def for what is missing and what is reported in addition, or NULL */
static const char *why_different(const struct run *run, const struct result *r)
{
	char word[16];

	for (size_t k = 0; k < ARRAY_SIZE(differences); k++) {
		const char *what = differences[k].what;
		bool all = !strcmp(differences[k].specimen, run->name);

		for (size_t i = 0; all && i < run->s.nexpect; i++) {
			snprintf(word, sizeof word, "-%s", run->s.expect[i].code);
			all = seen_matches(&r->seen, &run->s.expect[i], true) ||
				has_word(what, strlen(what), word);
		}
		for (size_t i = 0; all && i < r->seen.n; i++) {
			snprintf(word, sizeof word, "+%s", r->seen.at[i].code);
			all = seen_allowed(&r->seen.at[i], &run->s) || has_word(what, strlen(what), word);
		}
		if (all)
			return differences[k].why;
	}
	return NULL;
}

static const char *why_on_hardware(const char *name)
{
	for (size_t k = 0; k < ARRAY_SIZE(hardware); k++)
		if (!strcmp(hardware[k].specimen, name))
			return hardware[k].why;
	return NULL;
}

/* What is expected is not reported, or not alone: does the cpu backend have a schedule that
 * shows the same? */
static enum outcome judge_schedules(const struct all *a, const struct run *run,
	const struct result *r, struct text *why)
{
	const char *known = why_on_hardware(run->name), *other;
	struct text options = { 0 }, program = { 0 };
	struct schedules s;
	struct shown shown;

	text_add(&options, "", 0);
	add_options(&options, false, run->s.options);
	text_printf(&program, "%s/tests/gpu/specimen %s racy", a->o.build, run->s.path);
	s = (struct schedules){ &a->o, options.at, program.at, NULL };
	shown = schedules_show(&s, r->report);
	if (shown.words.n)
		text_printf(why, "%s%s%s", shown.words.at, known ? ": " : "", known ? known : "");
	else if ((other = runner_why_stopped(r->unchecked)))
		text_printf(why, "%s", other);
	else if (known)
		text_printf(why, "nothing: %s", known);
	else if ((other = schedules_silent(&s)))
		text_printf(why, "nothing, as under %s", other);
	text_free(&options);
	text_free(&program);
	text_free(&shown.words);
	return shown.outcome == NOT_SEEN && !why->n ? WRONG : shown.outcome;
}

static enum outcome judge_found(const struct all *a, const struct run *run, const struct result *r,
	struct text *why)
{
	struct text wrong = { 0 };
	const bool right = judge_racy(&run->s, &r->seen, true, &wrong);
	const char *known = right ? NULL : why_different(run, r);
	enum outcome o = right ? GOOD : known ? NOT_SEEN : WRONG;

	if (right && !r->checked && !strstr(r->unchecked, "until then was checked")) {
		text_printf(why, "not checked: %s", r->unchecked);
		o = WRONG;
	} else if (known) {
		text_printf(why, "%s", known);
	} else if (!right && a->o.any_schedule && r->report) {
		o = judge_schedules(a, run, r, why);
	}
	if (!why->n && wrong.n)
		text_printf(why, "%s", wrong.at);
	text_free(&wrong);
	return o;
}

#define TIMED_OUT 124 /* exit status of timeout */

/* Does the driver refuse or crash with the kernel without consan, too? */
static bool refused(const struct all *a, const struct run *run)
{
	struct text t = { 0 };
	struct runner_job job = { 0 };
	bool yes;

	text_printf(&t, "timeout 20 %s/tests/gpu/specimen %s %s", a->o.build, run->s.path,
		twin_name[run->twin]);
	job.command = t.at;
	runner_run_one(&job);
	yes = strstr(job.output, "specimen: refused: ") ||
		(job.status != TIMED_OUT && !strstr(job.output, "specimen: "));
	free(job.output);
	text_free(&t);
	return yes;
}

static enum outcome judge(const struct all *a, const struct run *run, const struct result *r,
	struct text *why)
{
	const char *known;

	if (r->crashed || !strncmp(r->status, "refused: ", 9)) {
		const bool always = a->o.gpu && refused(a, run);

		text_printf(why, "%s%s", r->crashed ? "it crashes on the host" : r->status + 9,
			always || !a->o.gpu ? "" : ", not so without consan");
		return always ? NOT_RUN : WRONG;
	}
	if (run->twin == RACY)
		return judge_found(a, run, r, why);
	if (!judge_silent(&run->s, &r->seen, true))
		text_printf(why, "the correct twin has findings");
	else if (strcmp(r->status, "ran"))
		text_printf(why, "%s", *r->status ? r->status : "the program did not end");
	else if (!r->checked)
		text_printf(why, "not checked: %s", r->unchecked);
	known = a->o.gpu && why->n ? why_on_hardware(run->name) : NULL;
	if (known)
		text_printf(why, ": %s", known);
	return known ? OTHER : why->n ? WRONG : GOOD;
}

static void one(void *user, size_t i)
{
	struct all *a = user;
	struct run *run = &a->run.at[i];
	struct runner_job *job = &a->job[i];
	struct result r = result_of(run, job);
	struct text why = { 0 }, line = { 0 };
	enum outcome o = judge(a, run, &r, &why);

	text_printf(&line, "%-5s %-5s %-44s ", outcome_word(o), twin_name[run->twin],
		run->name);
	seen_print(&line, &r.seen);
	if (why.n)
		text_printf(&line, " (%s)", why.at);
	if (o != GOOD)
		printf("%s\n", line.at);
	fflush(stdout);
	if (a->o.log)
		fprintf(a->o.log, "%s\n", line.at);
	if (a->o.log && o != GOOD)
		fprintf(a->o.log, "$ %s\nexits with %d\n%s\n", job->command, job->status, job->output);
	if (a->o.log)
		fflush(a->o.log);
	a->o.count[o]++;
	text_free(&why);
	text_free(&line);
	seen_free(&r.seen);
	json_decref(r.report);
	free(run->s.text);
	free(job->command);
	free(job->output);
}

/* Every row of hardware.def must name an existing specimen. */
static void check_hardware_table(struct all *a)
{
	for (size_t k = 0; k < ARRAY_SIZE(hardware); k++) {
		char path[160];

		snprintf(path, sizeof path, "tests/cases/%s.ptx", hardware[k].specimen);
		if (!access(path, R_OK))
			continue;
		printf("%-5s hardware.def: no %s\n", outcome_word(WRONG), path);
		a->o.count[WRONG]++;
	}
}

int main(int argc, char **argv)
{
	struct all a = { 0 };
	glob_t g;

	if (!runner_begin(&a.o, argc, argv))
		return 2;
	if (glob(SPECIMENS, 0, NULL, &g))
		base_die("no specimens here");
	check_hardware_table(&a);
	list(&a, &g);
	runner_run(a.job, a.run.n, a.o.at_once, one, &a);
	printf("specimens: %zu runs: ", a.run.n);
	globfree(&g);
	free(a.job);
	vec_free(&a.run);
	return runner_end(&a.o);
}
