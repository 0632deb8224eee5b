/* load: reads a JSON report, to convert or merge it. */
#include "results.h"

#include "json.h"

#include <stdlib.h>
#include <string.h>

static bool refuse(struct consan_err *e, const char *path, const char *where, size_t i,
	const char *what)
{
	return err_set(e, CONSAN_ERR_FORMAT, 0, 0, "%s: %s[%zu]: %s", path, where, i, what);
}

static char *keep(const json_t *o, const char *key)
{
	return base_strdup(rj_text(o, key));
}

static char *keep_or_null(const json_t *o, const char *key)
{
	return json_object_get(o, key) ? keep(o, key) : NULL;
}

/* ---- elements of the lists ---- */

static bool load_finding(struct results *r, const json_t *o)
{
	struct finding f;

	if (!rj_finding(o, NULL, &f))
		return false;
	results_add_finding(r, &f);
	finding_free(&f);
	return true;
}

static bool load_coverage(struct results *r, const json_t *o)
{
	struct coverage c;

	if (!rj_coverage(o, &c))
		return false;
	results_add_coverage(r, &c);
	return true;
}

#define LAUNCHES_KEPT 20000u /* of merged reports, the first ones */
#define LAUNCHES_MOST 40000u /* ... with later ones that did not end well */

/* The coverage counts all launches; the list is of some. */
static bool keeps_launch(const struct results *r, const json_t *o)
{
	if (r->launch.n < LAUNCHES_KEPT)
		return true;
	return strcmp(rj_text(o, "status"), "ok") && r->launch.n < LAUNCHES_MOST;
}

static bool load_launch(struct results *r, const json_t *o)
{
	struct result_launch l;

	if (!keeps_launch(r, o))
		return true;
	l = (struct result_launch){
		.pid = (int64_t)rj_number(o, "pid"), .id = (uint32_t)rj_number(o, "id"),
		.kernel = keep(o, "kernel"), .seed = rj_number(o, "seed"),
		.status = keep(o, "status"),
		/* the coverage already contains launches that had not ended */
		.state = strcmp(rj_text(o, "state"), "done") ? LAUNCH_ENDED_EARLY : LAUNCH_DONE,
	};

	rj_triple(o, "grid", l.grid);
	rj_triple(o, "block", l.block);
	rj_triple(o, "cluster", l.cluster);
	results_add_launch(r, l);
	return true;
}

static bool load_run(struct results *r, const json_t *o)
{
	results_add_run(r, (struct result_run){ .command = keep(o, "command"),
		.options = keep(o, "options"), .version = keep(o, "version"),
		.date = keep(o, "date") });
	return true;
}

static bool load_process(struct results *r, const json_t *o)
{
	results_add_process(r, (struct result_process){ .pid = (int64_t)rj_number(o, "pid"),
		.program = keep(o, "program"), .device = keep(o, "device") });
	return true;
}

static bool load_remark(struct results *r, const json_t *o)
{
	for (size_t k = 0; k < ARRAY_SIZE(rj_remark_name); k++)
		if (!strcmp(rj_remark_name[k], rj_text(o, "kind")))
			results_add_remarks(r, (enum result_remark_kind)k, rj_text(o, "text"),
				rj_number(o, "count"));
	return true;
}

static bool load_banks(struct results *r, const json_t *o)
{
	struct bank_use u;

	if (rj_bank_use(o, NULL, &u))
		results_add_bank_use(r, &u);
	return true;
}

static bool load_suppression(struct results *r, const json_t *o)
{
	struct result_suppression *have = r->suppression.at;
	struct result_suppression s;

	for (size_t i = 0; i < r->suppression.n; i++, have++)
		if (!strcmp(have->where, rj_text(o, "where"))) {
			results_sum(&have->matched, rj_number(o, "matched"));
			return true;
		}
	s = (struct result_suppression){
		.rule = keep(o, "rule"), .kernel = keep_or_null(o, "kernel"),
		.source = keep_or_null(o, "source"), .symbol = keep_or_null(o, "symbol"),
		.reason = keep(o, "reason"), .where = keep(o, "where"),
		.matched = rj_number(o, "matched"),
	};

	vec_push(&r->suppression, s);
	return true;
}

/* The suppression is referred to by its place, because indices change when files are merged. */
static bool load_suppressed(struct results *r, const json_t *o)
{
	const char *where = rj_text(o, "where");
	struct result_suppressed s = { 0 };

	while (s.by < r->suppression.n && strcmp(r->suppression.at[s.by].where, where))
		s.by++;
	if (s.by == r->suppression.n || !rj_finding(json_object_get(o, "finding"), NULL, &s.f))
		return false;
	vec_push(&r->suppressed, s);
	return true;
}

static const struct list {
	const char *name;
	bool required;
	bool (*load)(struct results *r, const json_t *o);
	const char *refusal;
} lists[] = {
	{ "findings", true, load_finding, "not a finding of a rule that this consan knows" },
	{ "coverage", true, load_coverage, "no kernel is named" },
	{ "launches", false, load_launch, "" },
	{ "runs", false, load_run, "" },
	{ "processes", false, load_process, "" },
	{ "remarks", false, load_remark, "" },
	{ "bank_conflicts", false, load_banks, "" },
	{ "suppressions", false, load_suppression, "" },
	{ "suppressed", false, load_suppressed, "no such suppression, or no finding" },
};

static bool load_lists(struct results *r, const char *path, const json_t *all, struct consan_err *e)
{
	for (size_t k = 0; k < ARRAY_SIZE(lists); k++) {
		const json_t *rows = json_object_get(all, lists[k].name);

		if (!rows && !lists[k].required)
			continue;
		if (!json_is_array(rows))
			return err_set(e, CONSAN_ERR_FORMAT, 0, 0, "%s: %s: %s", path, lists[k].name,
				rows ? "not a list" : "missing");
		for (size_t i = 0; i < json_array_size(rows); i++) {
			const json_t *o = json_array_get(rows, i);

			if (!json_is_object(o))
				return refuse(e, path, lists[k].name, i, "not an object");
			if (!lists[k].load(r, o))
				return refuse(e, path, lists[k].name, i, lists[k].refusal);
		}
	}
	return true;
}

bool results_load(struct results *r, const char *path, struct consan_err *e)
{
	json_error_t why;
	json_t *all = rj_visible(json_load_file(path, JSON_REJECT_DUPLICATES, &why));
	struct text wrong = { 0 };
	json_int_t version;
	bool ok;

	if (!all && why.line < 0)
		return err_set(e, CONSAN_ERR_IO, 0, 0, "%s", why.text);
	if (!all)
		return err_set(e, CONSAN_ERR_FORMAT, why.line, why.column, "%s:%d:%d: not JSON: %s", path,
			why.line, why.column, why.text);
	version = json_integer_value(json_object_get(all, "consan_report"));
	if (version < 1)
		ok = err_set(e, CONSAN_ERR_FORMAT, 0, 0, "%s: not a JSON report of consan", path);
	else if (version > REPORT_VERSION)
		ok = err_set(e, CONSAN_ERR_FORMAT, 0, 0, "%s: written by a newer consan", path);
	else if (!rj_numbers(all, &wrong))
		ok = err_set(e, CONSAN_ERR_FORMAT, 0, 0, "%s: %s", path, wrong.at);
	else
		ok = load_lists(r, path, all, e);
	text_free(&wrong);
	results_sum(&r->cut, ok ? rj_number(all, "cut") : 0);
	json_decref(all);
	return ok;
}
