/* operations: races between operations under a backend that instruments:
 *   operations [--jobs=N] [--log=FILE] BUILD BACKEND [FILTER [I/N]]
 * Both forms of each pair of tests/cuda/order.cu and order_served.cuh, and the bundled programs that overlap streams or use
 * several devices, with each of their planted bugs. What must be found is found, or operations.def says
 * why this backend does not see it; the repaired forms are checked and have no finding. Programs that need more devices
 * than there are do not run. Modules are loaded at once: a kernel that is first launched while another one
 * waits for it would wait for that one, with and without consan. */
#include "tests/common/shell.h"
#include "runner.h"

static const char *const programs[] = {
	"pipeline/pipeline", "allreduce/allreduce", "distributed/gather_gemm", "distributed/ring_attention",
};

static const struct unseen { const char *what, *instead, *why; } unseen[] = {
#define UNSEEN(what, instead, why) { what, instead, why },
#include "operations.def"
#undef UNSEEN
};

struct run { const char *what, *rule; bool racy; };

struct all {
	struct runner o;
	VEC(struct run) run;
	VEC(struct runner_job) job;
	struct arena names;
};

/* rule: what the racy form must have */
static void add(struct all *a, const char *what, const char *rule, bool racy, const char *options,
	const char *program)
{
	struct runner_job j = { 0 };
	struct text t = { 0 };

	if (!strstr(what, a->o.filter))
		return;
	text_printf(&t, "CUDA_MODULE_LOADING=EAGER timeout 600 %s/consan-run --backend=%s --gpu-global --gpu-memory=512 --timeout=20 "
		"--no-source --allow-unchecked %s %s 2>&1 </dev/null", a->o.build, a->o.backend, options,
		program);
	j.command = t.at;
	vec_push(&a->job, j);
	vec_push(&a->run, ((struct run){ arena_strndup(&a->names, what, strlen(what)),
		arena_strndup(&a->names, rule, strlen(rule)), racy }));
}

static void add_pairs(struct all *a, const char *file)
{
	FILE *in = fopen(file, "r");
	char line[512], name[64], rule[16], what[100], program[4200];

	while (in && fgets(line, sizeof line, in)) {
		if (sscanf(line, "CASE(%63[a-z_], %15[A-Z0-9])", name, rule) != 2)
			continue;
		for (unsigned racy = 0; racy < 2; racy++) {
			snprintf(what, sizeof what, "order %s %s", name, racy ? "racy" : "fixed");
			snprintf(program, sizeof program, "%s/tests/cuda/order %s %s", a->o.build, name,
				racy ? "racy" : "fixed");
			add(a, what, rule, racy, strcmp(rule, "CS1009") ? "" : "--knob=documented_order=1",
				program);
		}
	}
	if (in)
		fclose(in);
}

static void add_program(struct all *a, const char *name)
{
	char *list, *line, *save = NULL, what[200], program[4400];

	if (shell("%s/kernels/%s --list-bugs 2>/dev/null", a->o.build, name))
		return; /* not built */
	list = arena_strndup(&a->names, output, strlen(output));
	snprintf(what, sizeof what, "%s (none)", name);
	snprintf(program, sizeof program, "%s/kernels/%s", a->o.build, name);
	add(a, what, "", false, "", program);
	for (line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *field[5] = { line };

		for (int k = 1; k < 5 && field[k - 1]; k++) {
			field[k] = strchr(field[k - 1], '\t');
			if (field[k])
				*field[k]++ = 0;
		}
		if (!field[4] || !field[1][0])
			continue;
		snprintf(what, sizeof what, "%s %s", name, field[0]);
		snprintf(program, sizeof program, "%s/kernels/%s %s --bug=%s", a->o.build, name, field[3],
			field[0]);
		add(a, what, field[1], true, "", program);
	}
}

/* Lines may be folded: white space is any. */
static bool says(const char *text, const char *what)
{
	for (; *text; text++) {
		const char *a = text, *w = what;

		while (*w && (*a == *w || (*w == ' ' && *a == '\n'))) {
			a += *w == ' ' ? strspn(a, " \n") : 1;
			w++;
		}
		if (!*w)
			return true;
	}
	return false;
}

static const struct unseen *find_unseen(const struct run *r, const char *text)
{
	for (size_t k = 0; k < ARRAY_SIZE(unseen); k++)
		if ((!strcmp(unseen[k].what, r->what) || !strcmp(unseen[k].what, r->rule))
				&& says(text, unseen[k].instead))
			return &unseen[k];
	return NULL;
}

/* All kernels ran to their ends, were checked, and nothing was found. */
static bool is_clean(const char *text, const char *summary)
{
	return summary && strstr(summary, " 0 errors, 0 warnings") && !strstr(text, ": wrong")
		&& !strstr(text, "    NOT CHECKED:") && !strstr(text, "was killed by signal");
}

/* A kernel that could not be loaded beside a running one is loaded ahead by the next run. */
static void run_again(struct runner_job *j)
{
	if (!says(j->output, "the next run loads it before"))
		return;
	free(j->output);
	runner_run_one(j);
}

static void done(void *user, size_t i)
{
	struct all *a = user;
	const struct run *r = &a->run.at[i];
	struct runner_job *j = &a->job.at[i];
	const char *summary, *why = "";
	char rule[20];
	enum outcome o = WRONG;

	run_again(j);
	summary = strstr(j->output, "SUMMARY");
	snprintf(rule, sizeof rule, " %s ", r->rule);
	if (j->status == 3 || strstr(j->output, "devices, and there are"))
		o = NOT_RUN;
	else if (!r->racy)
		o = is_clean(j->output, summary) ? GOOD : WRONG;
	else if (strstr(j->output, rule))
		o = GOOD;
	else if (summary && find_unseen(r, j->output))
		o = NOT_SEEN;
	if (o == NOT_SEEN)
		why = find_unseen(r, j->output)->why;
	printf("%-5s %-44s %-6s %.*s%s%s\n", outcome_word(o), r->what, r->rule,
		(int)(summary ? strcspn(summary, "\n") : 0), summary ? summary : "", *why ? " | " : "", why);
	fflush(stdout);
	if (a->o.log && o != GOOD)
		fprintf(a->o.log, "%s %s\n$ %s\n%s\n", outcome_word(o), r->what, j->command, j->output);
	a->o.count[o]++;
	free(j->command);
	free(j->output);
}

int main(int argc, char **argv)
{
	struct all a = { 0 };

	if (!runner_begin(&a.o, argc, argv))
		return 2;
	add_pairs(&a, "tests/cuda/order.cu");
	add_pairs(&a, "tests/cuda/order_served.cuh");
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		add_program(&a, programs[i]);
	runner_run(a.job.at, a.job.n, a.o.at_once, done, &a);
	vec_free(&a.run);
	vec_free(&a.job);
	arena_free(&a.names);
	return runner_end(&a.o);
}
