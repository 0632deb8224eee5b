/* outcome: see outcome.h. */
#include "outcome.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static enum kind kind_of(const char *severity)
{
	return !strcmp(severity, "error") ? BY_ERROR
		: !strcmp(severity, "warning") ? BY_WARNING : BY_NOTE;
}

static void judge(struct outcome *o, const json_t *report, const char *known)
{
	const json_t *launches = json_object_get(report, "launches"), *x;
	size_t i;

	json_array_foreach(json_object_get(report, "findings"), i, x) {
		const char *rule = text_of(x, "rule");
		enum kind kind = kind_of(text_of(x, "severity"));

		if (strstr(known, rule) || kind >= o->kind)
			continue;
		o->kind = kind;
		snprintf(o->rule, sizeof o->rule, "%s", rule);
	}
	json_array_foreach(json_object_get(report, "coverage"), i, x) {
		if (json_integer_value(json_object_get(x, "launches")))
			snprintf(o->kernel, sizeof o->kernel, "%s", text_of(x, "kernel"));
		/* a launch that hung or faulted is not checked, and has an error that says why */
		if (*text_of(x, "unchecked") && o->kind != BY_ERROR) {
			o->kind = BROKEN;
			snprintf(o->text, sizeof o->text, "%s", text_of(x, "unchecked"));
		}
	}
	o->threads = 1;
	json_array_foreach(json_object_get(json_array_get(launches, 0), "block"), i, x)
		o->threads *= (unsigned)json_integer_value(x);
	json_array_foreach(json_object_get(report, "remarks"), i, x)
		if (!*o->kernel && strcmp(text_of(x, "kind"), "note"))
			snprintf(o->text, sizeof o->text, "%s", text_of(x, "text"));
}

struct outcome outcome_of(const char *build, const char *options, const char *program,
	const char *arguments, unsigned seconds, const char *known, const char *scratch)
{
	struct outcome o = { .kind = SURVIVED };
	struct text command = { 0 }, path = { 0 };
	json_t *report;
	int status;

	text_printf(&path, "%s/%d.json", scratch, (int)getpid());
	text_printf(&command, "exec timeout -k 1 %u %s/consan-run --jobs=1 --verify-fixes=no --timeout=%u "
		"--error-exitcode=0 --report=%s --log-file=/dev/null %s %s %s "
		">/dev/null 2>&1", 60 + 20 * seconds, build, seconds, path.at, options, program,
		arguments);
	status = system(command.at);
	report = json_load_file(path.at, 0, NULL);
	unlink(path.at);
	if (report)
		judge(&o, report, known);
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
	if (o.kind == SURVIVED && (status == 124 || status == 137))
		o.kind = BY_TIME;
	else if (!report || !*o.kernel)
		o.kind = BROKEN;
	else if (o.kind == SURVIVED && status)
		o.kind = BY_RESULT;
	if (o.kind == BROKEN && !*o.text)
		snprintf(o.text, sizeof o.text, "status %d of: %.150s", status, command.at);
	json_decref(report);
	text_free(&command);
	text_free(&path);
	return o;
}
