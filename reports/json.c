/* json: the JSON report, one document with all findings and the coverage. schema.json
 * describes it. */
#include "reports/reports.h"

#include "libconsan/finding/finding.h"

static json_t *runs_json(const struct results *r)
{
	json_t *runs = json_array();

	for (size_t i = 0; i < r->run.n; i++)
		json_array_append_new(runs, json_pack("{so so so so}",
			"command", rj_string(r->run.at[i].command),
			"options", rj_string(r->run.at[i].options),
			"version", rj_string(r->run.at[i].version),
			"date", rj_string(r->run.at[i].date)));
	return runs;
}

static json_t *launch_json(const struct result_launch *l)
{
	return json_pack("{sI sI so s[III] s[III] s[III] sI ss so}",
		"pid", (json_int_t)l->pid, "id", (json_int_t)l->id, "kernel", rj_string(l->kernel),
		"grid", (json_int_t)l->grid[0], (json_int_t)l->grid[1], (json_int_t)l->grid[2],
		"block", (json_int_t)l->block[0], (json_int_t)l->block[1],
		(json_int_t)l->block[2],
		"cluster", (json_int_t)l->cluster[0], (json_int_t)l->cluster[1],
		(json_int_t)l->cluster[2],
		"seed", (json_int_t)l->seed, "state", rj_state_name[l->state],
		"status", rj_string(l->status));
}

static json_t *rule_json(unsigned rule)
{
	const struct rule_info *i = rule_get(rule);

	return json_pack("{ss ss ss}", "title", i->title, "why", i->why, "fix", i->fix);
}

static void put_text(json_t *o, const char *key, const char *s)
{
	if (s)
		json_object_set_new(o, key, rj_string(s));
}

static void add_suppressed(json_t *all, const struct results *r, struct rj_sites *sites)
{
	json_t *entries = json_array(), *findings = json_array();

	for (size_t i = 0; i < r->suppression.n; i++) {
		const struct result_suppression *s = &r->suppression.at[i];
		json_t *o = json_object();

		put_text(o, "rule", s->rule);
		put_text(o, "kernel", s->kernel);
		put_text(o, "source", s->source);
		put_text(o, "symbol", s->symbol);
		put_text(o, "reason", s->reason);
		put_text(o, "where", s->where);
		json_object_set_new(o, "matched", json_integer((json_int_t)s->matched));
		json_array_append_new(entries, o);
	}
	for (size_t i = 0; i < r->suppressed.n; i++) {
		json_t *o = json_object();

		put_text(o, "where", r->suppression.at[r->suppressed.at[i].by].where);
		json_object_set_new(o, "finding", rj_from_finding(&r->suppressed.at[i].f, sites));
		json_array_append_new(findings, o);
	}
	json_object_set_new(all, "suppressions", entries);
	json_object_set_new(all, "suppressed", findings);
}

/* A member of the document, or an element of its lists, a line. Indented throughout, the steps of
 * histories would make it half as large again. */
static void dump(json_t *all, FILE *out)
{
	const char *key, *before = "{\n";
	json_t *member, *row;
	size_t i;

	json_object_foreach(all, key, member) {
		fprintf(out, "%s \"%s\": ", before, key);
		before = ",\n";
		if (!json_is_array(member) || !json_array_size(member)) {
			json_dumpf(member, out, JSON_ENCODE_ANY);
			continue;
		}
		json_array_foreach(member, i, row) {
			fputs(i ? ",\n  " : "[\n  ", out);
			json_dumpf(row, out, JSON_ENCODE_ANY);
		}
		fputs("\n ]", out);
	}
	fputs("\n}\n", out);
}

void report_json(const struct results *r, FILE *out)
{
	json_t *findings = json_array(), *rules = json_object(), *coverage = json_array();
	json_t *launches = json_array(), *processes = json_array(), *remarks = json_array();
	struct rj_sites sites = { .whole = true };
	struct report_counts n;
	json_t *all;

	report_count(r, &n);
	for (size_t i = 0; i < r->finding.n; i++) {
		json_array_append_new(findings, rj_from_finding(&r->finding.at[i], &sites));
		json_object_set_new(rules, rule_get(r->finding.at[i].rule)->code,
			rule_json(r->finding.at[i].rule));
	}
	for (size_t i = 0; i < r->coverage.n; i++)
		json_array_append_new(coverage, results_coverage_json(&r->coverage.at[i]));
	for (size_t i = 0; i < r->launch.n; i++)
		json_array_append_new(launches, launch_json(&r->launch.at[i]));
	for (size_t i = 0; i < r->process.n; i++)
		json_array_append_new(processes, json_pack("{sI so so}",
			"pid", (json_int_t)r->process.at[i].pid,
			"program", rj_string(r->process.at[i].program),
			"device", rj_string(r->process.at[i].device)));
	for (size_t i = 0; i < r->remark.n; i++)
		json_array_append_new(remarks, json_pack("{ss so sI}",
			"kind", rj_remark_name[r->remark.at[i].kind],
			"text", rj_string(r->remark.at[i].text),
			"count", (json_int_t)r->remark.at[i].count));
	all = json_pack("{si so s{si si si si si si si} so so so so so so}",
		"consan_report", REPORT_VERSION, "runs", runs_json(r),
		"summary", "errors", (int)n.errors, "warnings", (int)n.warnings,
		"notes", (int)n.notes, "consequences", (int)n.consequences, "kernels", (int)n.kernels, "checked", (int)n.checked,
		"left_out", (int)n.skipped,
		"findings", findings, "rules", rules, "coverage", coverage,
		"launches", launches, "processes", processes, "remarks", remarks);
	add_suppressed(all, r, &sites);
	if (r->cut)
		json_object_set_new(all, "cut", json_integer((json_int_t)r->cut));
	if (r->bank.n) {
		json_t *banks = json_array();

		for (size_t i = 0; i < r->bank.n; i++)
			json_array_append_new(banks, results_bank_use_json(&r->bank.at[i]));
		json_object_set_new(all, "bank_conflicts", banks);
	}
	dump(all, out);
	rj_sites_clear(&sites);
	json_decref(all);
}
