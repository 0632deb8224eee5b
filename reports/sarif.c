/* sarif: findings as SARIF 2.1.0, for code scanning services. The location of a finding is that
 * of side 0; side 1 and the inlining chains are related locations. The earlier and the later
 * access together are a code flow. */
#include "reports/reports.h"
#include "reports/describe.h"

#include "libconsan/base/base.h"
#include "libconsan/finding/finding.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RELATED 32u

/* The path as a URI; characters that a URI does not allow are escaped. */
static json_t *uri(const struct options *o, const char *file)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		"-._~/+@,=";
	char *path = display_path(o, file);
	struct text t = { 0 };
	json_t *j;

	if (*path == '/')
		text_printf(&t, "file://");
	text_add(&t, "", 0);
	for (const char *c = path; *c; c++) {
		if (strchr(plain, *c))
			text_add(&t, c, 1);
		else
			text_printf(&t, "%%%02X", (unsigned char)*c);
	}
	j = json_string(t.at);
	text_free(&t);
	free(path);
	return j;
}

static json_t *message(const char *text)
{
	json_t *o = json_object();

	json_object_set_new(o, "text", rj_string(text));
	return o;
}

static json_t *physical(const struct options *o, const char *file, uint32_t line, uint32_t col)
{
	json_t *at = json_object(), *artifact = json_object(), *region = json_object();

	json_object_set_new(artifact, "uri", uri(o, file));
	if (*file != '/')
		json_object_set_new(artifact, "uriBaseId", json_string("SRCROOT"));
	json_object_set_new(at, "artifactLocation", artifact);
	json_object_set_new(region, "startLine", json_integer(line ? line : 1));
	if (col)
		json_object_set_new(region, "startColumn", json_integer(col));
	json_object_set_new(at, "region", region);
	return at;
}

static json_t *location(const struct options *o, uint32_t site, const struct site_loc *l,
	const char *text)
{
	const struct site *s = site_get(site);
	json_t *at = json_object();

	if (l && l->line)
		json_object_set_new(at, "physicalLocation", physical(o, l->file, l->line, l->col));
	else if (s->ptx_line)
		json_object_set_new(at, "physicalLocation", physical(o, s->module, s->ptx_line, 0));
	if (l && l->function && *l->function) {
		char *name = demangle(l->function, NAME_BARE);
		json_t *logical = json_object();

		json_object_set_new(logical, "name", rj_string(name));
		json_object_set_new(logical, "kind", json_string("function"));
		json_object_set_new(at, "logicalLocations", json_pack("[o]", logical));
		free(name);
	}
	if (text)
		json_object_set_new(at, "message", message(text));
	return at;
}

/* text: with a description of the access. */
static json_t *side_location(const struct options *o, const struct finding *f, unsigned i,
	bool text)
{
	const struct finding_side *s = &f->side[i];
	struct text t = { 0 };
	json_t *at;

	if (f->nsides > 1)
		text_printf(&t, "%s: ", side_label(f, i));
	text_printf(&t, "%s ", s->what);
	describe_bytes(&t, s);
	text_printf(&t, s->bytes ? " by " : "by ");
	describe_thread(&t, s);
	at = location(o, s->site, site_headline(site_get(s->site)->loc), text ? t.at : NULL);
	text_free(&t);
	return at;
}

static json_t *related(const struct options *o, const struct finding *f)
{
	json_t *list = json_array();

	if (f->nsides > 1)
		json_array_append_new(list, side_location(o, f, 1, true));
	for (unsigned i = 0; i < f->nsides; i++) {
		const struct site_loc *shown = site_headline(site_get(f->side[i].site)->loc);

		for (const struct site_loc *l = site_get(f->side[i].site)->loc; l; l = l->inlined_at)
			if (l != shown && json_array_size(list) < MAX_RELATED)
				json_array_append_new(list, location(o, f->side[i].site, l, i
					? "inlining chain of the earlier access" : "inlining chain"));
	}
	return list;
}

/* The earlier side, then the later one. */
static json_t *flow(const struct options *o, const struct finding *f)
{
	json_t *steps = json_array();

	for (unsigned i = f->nsides; i-- > 0;)
		json_array_append_new(steps, json_pack("{so}", "location",
			side_location(o, f, i, true)));
	return json_pack("[{s[{so}]}]", "threadFlows", "locations", steps);
}

static const char *level(enum severity s)
{
	switch (s) {
	case SEV_NOTE: return "note";
	case SEV_WARNING: return "warning";
	case SEV_ERROR: return "error";
	}
	return "none";
}

/* Of rule, kernel, files, functions and accesses, so that it does not change with line
 * numbers. */
static json_t *fingerprint(const struct finding *f)
{
	uint64_t sum = 0xcbf29ce484222325u;
	struct text t = { 0 };
	char hex[24];

	text_printf(&t, "%s %s", rule_get(f->rule)->code, f->kernel);
	for (unsigned i = 0; i < f->nsides; i++) {
		const struct site_loc *l = site_headline(site_get(f->side[i].site)->loc);

		text_printf(&t, "|%s %s %s", f->side[i].what, l ? file_base_name(l->file) : "",
			l && l->function ? l->function : "");
	}
	for (size_t i = 0; i < t.n; i++)
		sum = (sum ^ (unsigned char)t.at[i]) * 0x100000001b3u;
	snprintf(hex, sizeof hex, "%016llx", (unsigned long long)sum);
	text_free(&t);
	return json_pack("{ss}", "consan/v1", hex);
}

static json_t *result(const struct options *o, const struct finding *f, const char *reason)
{
	const struct rule_info *rule = rule_get(f->rule);
	json_t *r = json_object();
	struct text t = { 0 };

	text_printf(&t, "%s", rule->title);
	if (*f->edge)
		text_printf(&t, ": %s", f->edge);
	if (*rule->fix)
		text_printf(&t, ". Fix: %s", rule->fix);
	if (*f->hint)
		text_printf(&t, ". Hint: %s", f->hint);
	text_printf(&t, ".");
	json_object_set_new(r, "ruleId", json_string(rule->code));
	json_object_set_new(r, "level", json_string(level(f->severity)));
	json_object_set_new(r, "message", message(t.at));
	text_free(&t);
	json_object_set_new(r, "locations", f->nsides
		? json_pack("[o]", side_location(o, f, 0, false)) : json_array());
	json_object_set_new(r, "relatedLocations", related(o, f));
	if (f->nsides > 1)
		json_object_set_new(r, "codeFlows", flow(o, f));
	json_object_set_new(r, "partialFingerprints", fingerprint(f));
	json_object_set_new(r, "occurrenceCount", json_integer(f->seen ? (json_int_t)f->seen : 1));
	json_object_set_new(r, "properties", json_pack("{so si}", "kernel", rj_string(f->kernel),
		"clusters", (int)f->clusters));
	if (reason)
		json_object_set_new(r, "suppressions", json_pack("[{ss so}]", "kind", "external",
			"justification", rj_string(reason)));
	return r;
}

static void add_rule(json_t *rules, unsigned id)
{
	const struct rule_info *rule = rule_get(id);
	size_t i;
	json_t *r;

	for (i = 0; i < json_array_size(rules); i++)
		if (!strcmp(rj_text(json_array_get(rules, i), "id"), rule->code))
			return;
	r = json_object();
	json_object_set_new(r, "id", json_string(rule->code));
	json_object_set_new(r, "shortDescription", message(rule->title));
	json_object_set_new(r, "fullDescription", message(*rule->why ? rule->why : rule->title));
	json_object_set_new(r, "help", message(*rule->fix ? rule->fix : rule->title));
	json_object_set_new(r, "defaultConfiguration", json_pack("{ss}", "level",
		level(rule->severity)));
	json_array_append_new(rules, r);
}

static json_t *notification(const char *level_of, const char *text)
{
	json_t *o = json_object();

	json_object_set_new(o, "level", json_string(level_of));
	json_object_set_new(o, "message", message(text));
	return o;
}

/* Notifications about kernels that were not checked, unreadable records and remarks. */
static json_t *invocation(const struct results *r)
{
	json_t *notes = json_array();
	bool good = !r->cut;

	for (size_t i = 0; i < r->coverage.n; i++) {
		const struct coverage *c = &r->coverage.at[i];
		struct text t = { 0 };

		if (!*c->unchecked)
			continue;
		good = false;
		text_printf(&t, "kernel %s was not checked: %s", c->kernel, c->unchecked);
		json_array_append_new(notes, notification("error", t.at));
		text_free(&t);
	}
	if (r->cut)
		json_array_append_new(notes, notification("error",
			"some records could not be read: findings may be missing"));
	for (size_t i = 0; i < r->remark.n; i++) {
		const bool gap = report_gap(&r->remark.at[i]);

		good &= !gap;
		json_array_append_new(notes, notification(gap ? "error" : "note",
			r->remark.at[i].text));
	}
	return json_pack("[{sb so}]", "executionSuccessful", (int)good,
		"toolExecutionNotifications", notes);
}

void report_sarif(const struct results *r, const struct options *o, FILE *out)
{
	json_t *list = json_array(), *rules = json_array(), *driver = json_object();
	json_t *run = json_object(), *all = json_object();

	for (size_t i = 0; i < r->finding.n; i++) {
		add_rule(rules, r->finding.at[i].rule);
		json_array_append_new(list, result(o, &r->finding.at[i], NULL));
	}
	for (size_t i = 0; i < r->suppressed.n; i++) {
		add_rule(rules, r->suppressed.at[i].f.rule);
		json_array_append_new(list, result(o, &r->suppressed.at[i].f,
			r->suppression.at[r->suppressed.at[i].by].reason));
	}
	json_object_set_new(driver, "name", json_string("consan"));
	json_object_set_new(driver, "version", json_string(CONSAN_VERSION));
	json_object_set_new(driver, "rules", rules);
	json_object_set_new(run, "tool", json_pack("{so}", "driver", driver));
	json_object_set_new(run, "invocations", invocation(r));
	json_object_set_new(run, "originalUriBaseIds", json_pack("{s{s{ss}}}", "SRCROOT",
		"description", "text", "the working directory of consan-run"));
	json_object_set_new(run, "columnKind", json_string("utf16CodeUnits"));
	json_object_set_new(run, "results", list);
	json_object_set_new(all, "$schema",
		json_string("https://json.schemastore.org/sarif-2.1.0.json"));
	json_object_set_new(all, "version", json_string("2.1.0"));
	json_object_set_new(all, "runs", json_pack("[o]", run));
	json_dumpf(all, out, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	fputc('\n', out);
	json_decref(all);
}
