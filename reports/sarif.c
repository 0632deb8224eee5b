/* sarif: findings as SARIF 2.1.0, for code scanning services. The location of a finding is that
 * of side 0; side 1 and the inlining chains are related locations. The earlier and the later
 * access together are a code flow. */
#include "reports/sarif.h"
#include "reports/waits.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RELATED 32u
#define MAX_WAITS 32u

json_t *sarif_message(const char *text)
{
	json_t *o = json_object();

	json_object_set_new(o, "text", rj_string(text));
	return o;
}

/* text: with a description of the access. */
static json_t *side_location(struct sarif_places *p, const struct finding *f, unsigned i,
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
	at = sarif_location(p, s->site, site_headline(site_get(s->site)->loc), text ? t.at : NULL);
	text_free(&t);
	return at;
}

static json_t *related(struct sarif_places *p, const struct finding *f)
{
	json_t *list = json_array();

	if (f->nsides > 1)
		json_array_append_new(list, side_location(p, f, 1, true));
	for (unsigned i = 0; i < f->nsides; i++) {
		const struct site_loc *shown = site_headline(site_get(f->side[i].site)->loc);

		for (const struct site_loc *l = site_get(f->side[i].site)->loc; l; l = l->inlined_at)
			if (l != shown && json_array_size(list) < MAX_RELATED)
				json_array_append_new(list, sarif_location(p, f->side[i].site, l, i
					? "inlining chain of the earlier access" : "inlining chain"));
	}
	return list;
}

static void add_step(json_t *steps, json_t *location)
{
	json_array_append_new(steps, json_pack("{so si}", "location", location, "executionOrder",
		(int)json_array_size(steps) + 1));
}

/* Where warps of a hang wait. */
static void add_waits(json_t *steps, struct sarif_places *p, const struct finding *f)
{
	struct wait_groups w;

	waits_find(&w, f);
	for (size_t i = 0; i < w.group.n && i < MAX_WAITS; i++) {
		const struct finding_waiter *at = &f->waiter[w.group.at[i].first];
		struct text t = { 0 };

		waits_describe(&t, &w.group.at[i], f);
		if (*at->on.kind) {
			text_printf(&t, " on ");
			describe_barrier_name(&t, &at->on);
		}
		text_printf(&t, ": %s", at->text);
		add_step(steps, sarif_location(p, at->who.site,
			site_headline(site_get(at->who.site)->loc), t.at));
		text_free(&t);
	}
	waits_free(&w);
}

/* The earlier side, then the later one; of a hang, the waits. */
static json_t *flow(struct sarif_places *p, const struct finding *f)
{
	json_t *steps = json_array();

	if (f->nwaiters)
		add_waits(steps, p, f);
	for (unsigned i = f->nwaiters ? 0 : f->nsides; i-- > 0;)
		add_step(steps, side_location(p, f, i, true));
	return json_pack("[{s[{so}]}]", "threadFlows", "locations", steps);
}

/* The host's call stack of the launch. */
static json_t *stacks(struct sarif_places *p, const struct finding *f)
{
	json_t *frames = json_array();

	for (const struct site_loc *l = site_get(f->host)->loc; l; l = l->inlined_at)
		json_array_append_new(frames, json_pack("{so}", "location",
			sarif_location(p, f->host, l, NULL)));
	return json_pack("[{so so}]", "message", sarif_message("the launch"), "frames", frames);
}

const char *sarif_level(enum severity s)
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

/* A replacement in the PTX. A change replaces the statement, an insertion an empty region before
 * it or behind it. The region is exact, but in replays: saved events lack columns, and the
 * instruction is taken to be alone on its line. */
static json_t *replacement(const struct finding_edit *e)
{
	const struct site *s = site_get(e->site);
	const bool known = s->ptx_col;
	const json_int_t line[2] = { s->ptx_line, known ? s->end_line : (json_int_t)s->ptx_line + 1 };
	const json_int_t col[2] = { known ? s->ptx_col : 1, known ? s->end_col : 1 };
	const bool after = e->kind == EDIT_AFTER;
	const unsigned from = after ? 1 : 0, to = e->kind == EDIT_BEFORE ? 0 : 1;
	const size_t n = strlen(e->ptx);
	struct text text = { 0 };
	json_t *o;

	text_printf(&text, "%s%s%s%s", known && after ? " " : "", e->ptx,
		!n || e->ptx[n - 1] == ';' || e->ptx[n - 1] == '}' ? "" : ";",
		!known ? "\n" : e->kind == EDIT_BEFORE ? " " : "");
	o = json_pack("{s{sI sI sI sI} s{so}}", "deletedRegion", "startLine", line[from],
		"startColumn", col[from], "endLine", line[to], "endColumn", col[to],
		"insertedContent", "text", rj_string(text.at));
	text_free(&text);
	return o;
}

static bool is_mechanical(const struct finding_edit *e)
{
	return (e->kind == EDIT_CHANGE || e->kind == EDIT_BEFORE || e->kind == EDIT_AFTER) && *e->ptx
		&& e->copies < 2 && site_get(e->site)->ptx_line;
}

/* The edits as replacements in the PTX; NULL if they are not known, not mechanical, or at more
 * places than the finding names. */
static json_t *fixes(struct sarif_places *p, const struct finding *f)
{
	const bool two = f->also.kind != EDIT_NONE;
	struct text what = { 0 };
	json_t *list, *fix;

	if (!is_mechanical(&f->edit) || (two && !is_mechanical(&f->also)))
		return NULL;
	describe_edit(&what, &f->edit);
	if (two)
		text_printf(&what, ", and ");
	describe_edit(&what, &f->also);
	text_printf(&what, "; ");
	describe_verified(&what, f);
	list = json_pack("[o]", replacement(&f->edit));
	if (two)
		json_array_append_new(list, replacement(&f->also));
	fix = json_pack("[{so s[{so so}]}]", "description", sarif_message(what.at), "artifactChanges",
		"artifactLocation", sarif_module(p, site_get(f->edit.site)->module), "replacements", list);
	text_free(&what);
	return fix;
}

/* head: the headline of its group. */
static json_t *result(struct sarif_places *p, json_t *rules, const struct finding *f,
	const struct finding *head, const char *reason)
{
	const struct rule_info *rule = rule_get(f->rule);
	json_t *r = json_object(), *fix;
	struct text t = { 0 };

	if (head != f) {
		text_printf(&t, "A consequence of %s at ", rule_get(head->rule)->code);
		describe_places(&t, head);
		text_printf(&t, ": ");
	}
	text_printf(&t, "%s", rule->title);
	if (*f->edge)
		text_printf(&t, ": %s", f->edge);
	if (f->edit.kind != EDIT_NONE) {
		text_printf(&t, ". Change: ");
		describe_edit(&t, &f->edit);
	}
	if (f->also.kind != EDIT_NONE) {
		text_printf(&t, ", and ");
		describe_edit(&t, &f->also);
	}
	if (*finding_fix(f))
		text_printf(&t, ". Fix: %s", finding_fix(f));
	if (*f->hint)
		text_printf(&t, ". Hint: %s", f->hint);
	text_printf(&t, ".");
	json_object_set_new(r, "ruleId", json_string(rule->code));
	json_object_set_new(r, "ruleIndex", json_integer((json_int_t)sarif_rule(rules, f->rule)));
	json_object_set_new(r, "level", json_string(sarif_level(f->severity)));
	json_object_set_new(r, "message", sarif_message(t.at));
	text_free(&t);
	json_object_set_new(r, "locations", f->nsides
		? json_pack("[o]", side_location(p, f, 0, false)) : json_array());
	json_object_set_new(r, "relatedLocations", related(p, f));
	if (f->nsides > 1 || f->nwaiters)
		json_object_set_new(r, "codeFlows", flow(p, f));
	if (f->host && p->o->show_backtrace == BACKTRACE_YES)
		json_object_set_new(r, "stacks", stacks(p, f));
	json_object_set_new(r, "partialFingerprints", fingerprint(f));
	json_object_set_new(r, "occurrenceCount", json_integer(f->seen ? (json_int_t)f->seen : 1));
	json_object_set_new(r, "properties", json_pack("{so sI si si}", "kernel",
		rj_string(f->kernel), "clusters", (json_int_t)f->clusters, "group", (int)f->group,
		"consequence", (int)f->rank));
	if ((fix = fixes(p, f)))
		json_object_set_new(r, "fixes", fix);
	if (reason)
		json_object_set_new(r, "suppressions", json_pack("[{ss so}]", "kind", "external",
			"justification", rj_string(reason)));
	return r;
}

static json_t *notification(const char *level_of, const char *text)
{
	json_t *o = json_object();

	json_object_set_new(o, "level", json_string(level_of));
	json_object_set_new(o, "message", sarif_message(text));
	return o;
}

/* Notifications about kernels that were not checked, unreadable records and remarks. */
static json_t *invocation(const struct results *r)
{
	json_t *notes = json_array(), *one;
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
	one = json_pack("{sb so}", "executionSuccessful", (int)good,
		"toolExecutionNotifications", notes);
	if (r->run.n) {
		json_object_set_new(one, "commandLine", rj_string(r->run.at[0].command));
		json_object_set_new(one, "endTimeUtc", rj_string(r->run.at[0].date));
		json_object_set_new(one, "properties", json_pack("{so}", "options",
			rj_string(r->run.at[0].options)));
	}
	return json_pack("[o]", one);
}

void report_sarif(const struct results *r, const struct options *o, FILE *out)
{
	struct sarif_places p = { o, r, json_array() };
	json_t *list = json_array(), *rules = json_array(), *driver = json_object();
	json_t *run = json_object(), *all = json_object();
	const struct finding *head = NULL;

	for (size_t i = 0; i < r->finding.n; i++) {
		head = r->finding.at[i].rank ? head : &r->finding.at[i];
		json_array_append_new(list, result(&p, rules, &r->finding.at[i], head, NULL));
	}
	for (size_t i = 0; i < r->suppressed.n; i++)
		json_array_append_new(list, result(&p, rules, &r->suppressed.at[i].f,
			&r->suppressed.at[i].f, r->suppression.at[r->suppressed.at[i].by].reason));
	json_object_set_new(driver, "name", json_string("consan"));
	json_object_set_new(driver, "version", json_string(CONSAN_VERSION));
	json_object_set_new(driver, "rules", rules);
	json_object_set_new(run, "tool", json_pack("{so}", "driver", driver));
	json_object_set_new(run, "invocations", invocation(r));
	json_object_set_new(run, "originalUriBaseIds", json_pack("{s{so s{ss}}}", "SRCROOT",
		"uri", sarif_root(), "description", "text", "the working directory of consan-run"));
	json_object_set_new(run, "artifacts", p.artifacts);
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
