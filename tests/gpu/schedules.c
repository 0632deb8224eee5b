/* schedules: see schedules.h. */
#include "schedules.h"
#include "tests/cases/harness/found.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FINDINGS 256 /* of a run */

/* The first is the default schedule; the others run only if it does not show all. */
static const struct { const char *options, *name; } batch[] = {
	{ "", "" }, { "--explore=64", "" }, { "--async=early --explore=64", "--async=early" },
	{ "--seed=65 --explore=447", "" },
};

static const char *const silent[] = {
	"--seed=0", "--seed=1", "--seed=2", "--seed=3", "--seed=4", "--seed=5", "--seed=6", "--seed=7",
	"--seed=8", "--seed=9", "--seed=10", "--seed=11", "--seed=12", "--seed=13", "--seed=14",
	"--async=early", "--async=early --seed=1", "--async=early --seed=2", "--async=early --seed=3",
};

static json_t *run(const struct schedules *s, const char *options)
{
	struct runner_job job = { 0 };
	const struct runner *r = s->runner;
	struct text t = { 0 };
	char path[128];
	json_t *report;

	snprintf(path, sizeof path, "%s/schedule.json", r->folder);
	text_printf(&t, "timeout 300 %s/consan-run --backend=cpu --no-source --timeout=5 %s %s "
		"--report=%s %s >/dev/null 2>&1 </dev/null", r->build, s->options, options, path,
		s->program);
	job.command = t.at;
	runner_run_one(&job);
	report = json_load_file(path, 0, NULL);
	unlink(path);
	free(job.output);
	text_free(&t);
	return report;
}

static bool compared(const struct schedules *s, const json_t *finding)
{
	const char *rule = json_string_value(json_object_get(finding, "rule"));
	char more[16];

	snprintf(more, sizeof more, "+%s", rule);
	return strcmp(json_string_value(json_object_get(finding, "severity")), "note") &&
		strcmp(rule, "CS901") && !(s->known && strstr(s->known, more));
}

/* Is name one of a list "a, b, c"? */
static bool listed(const struct text *list, const char *name)
{
	const size_t n = strlen(name);

	for (const char *at = list->n ? list->at : NULL; at;) {
		if (!strncmp(at, name, n) && (!at[n] || at[n] == ','))
			return true;
		at = strchr(at, ',');
		at = at ? at + 2 : NULL;
	}
	return false;
}

/* Adds the schedule in which a finding was seen first to `to`, if it is not there. */
static void add_name(struct text *to, unsigned k, const json_t *finding)
{
	const long long seed = (long long)json_integer_value(json_object_get(finding, "seed"));
	const char *schedule = json_string_value(json_object_get(finding, "schedule"));
	struct text name = { 0 };

	text_printf(&name, "%s", batch[k].name);
	if (seed)
		text_printf(&name, "%s--seed=%lld", name.n ? " " : "", seed);
	if (schedule)
		text_printf(&name, "%s--schedule=%s", name.n ? " " : "", schedule);
	if (!name.n)
		text_printf(&name, "the default");
	if (!listed(to, name.at))
		text_printf(to, "%s%s", to->n ? ", " : "", name.at);
	text_free(&name);
}

/* Frees those of the n keys that this report shows, and sets them to NULL. */
static void look_up(char **key, size_t n, unsigned k, const json_t *report, struct text *names)
{
	const json_t *findings = json_object_get(report, "findings"), *f;
	size_t i;

	json_array_foreach(findings, i, f) {
		char *here = found_key(f);

		for (size_t m = 0; m < n; m++) {
			if (!key[m] || !(found_same(key[m], here) || found_waits(f, key[m])))
				continue;
			add_name(names, k, f);
			free(key[m]);
			key[m] = NULL;
		}
		free(here);
	}
}

static bool left(char *const *key, size_t n)
{
	for (size_t m = 0; m < n; m++)
		if (key[m])
			return true;
	return false;
}

struct shown schedules_show(const struct schedules *s, const json_t *found)
{
	const json_t *findings = json_object_get(found, "findings"), *f;
	struct text names = { 0 };
	struct shown shown = { .outcome = NOT_SEEN };
	char *key[MAX_FINDINGS];
	size_t i, n = 0;
	bool other = false, hangs = false;

	json_array_foreach(findings, i, f)
		if (n < MAX_FINDINGS && compared(s, f))
			key[n++] = found_key(f);
	for (unsigned k = 0; k < ARRAY_SIZE(batch) && left(key, n); k++) {
		json_t *report = run(s, batch[k].options);

		look_up(key, n, k, report, &names);
		json_decref(report);
	}
	if (names.n)
		text_printf(&shown.words, "as under %s", names.at);
	for (size_t m = 0; m < n; m++) {
		const bool hang = key[m] && !strncmp(key[m], "CS7", 3);

		hangs |= hang;
		other |= key[m] && !hang;
		if (key[m])
			text_printf(&shown.words, "%sno schedule shows %s", shown.words.n ? ", " : "", key[m]);
		free(key[m]);
	}
	if (n)
		shown.outcome = other ? OTHER : names.n ? SCHEDULE : HANGS;
	if (!s->runner->gpu && (hangs || other))
		shown.outcome = WRONG;
	text_free(&names);
	return shown;
}

const char *schedules_silent(const struct schedules *s)
{
	for (size_t k = 0; k < ARRAY_SIZE(silent); k++) {
		json_t *report = run(s, silent[k]);
		const json_t *findings = json_object_get(report, "findings"), *f;
		bool any = !findings;
		size_t i;

		json_array_foreach(findings, i, f)
			any |= strcmp(json_string_value(json_object_get(f, "severity")), "note") != 0;
		json_decref(report);
		if (!any)
			return silent[k];
	}
	return NULL;
}
