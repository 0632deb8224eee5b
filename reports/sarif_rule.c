/* sarif_rule: the rules as code scanning services show them. */
#include "reports/sarif.h"

#include <ctype.h>
#include <string.h>

#define PTX_ISA "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html"

/* By the group of the rule's first row in ptx_rules.def: the chapter of the ISA. */
static const char *chapter(char group)
{
	switch (group) {
	case 'A': return PTX_ISA "#memory-consistency-model";
	case 'B': return PTX_ISA "#parallel-synchronization-and-communication-instructions-mbarrier";
	case 'C': return PTX_ISA "#data-movement-and-conversion-instructions-asynchronous-copy";
	case 'D': return PTX_ISA "#asynchronous-warpgroup-level-matrix-instructions";
	case 'E': return PTX_ISA "#tensorcore-5th-generation-family-instructions";
	case 'F': return PTX_ISA "#parallel-synchronization-and-communication-instructions-bar";
	case 'G': return PTX_ISA
		"#parallel-synchronization-and-communication-instructions-barrier-cluster";
	}
	return PTX_ISA;
}

/* By the first digit of the code (rules.def). */
static json_t *tags(const char *code)
{
	static const char *const family[] = { [1] = "data-race", [2] = "mbarrier",
		[3] = "async-copy", [4] = "barrier", [5] = "cluster", [6] = "tensor-memory",
		[7] = "hang", [8] = "performance", [9] = "memory" };
	const unsigned digit = (unsigned)code[2] - '0';
	json_t *all = json_pack("[ss]", "cuda", "concurrency");

	if (digit < ARRAY_SIZE(family) && family[digit])
		json_array_append_new(all, json_string(family[digit]));
	return all;
}

/* A finding is derived from what the program did, by rules of the ISA. What hardware does not show
 * (a note, a warning) is a matter of what the program relies on. */
static json_t *properties(const struct rule_info *rule)
{
	static const char *const precision[] = { [SEV_NOTE] = "medium", [SEV_WARNING] = "high",
		[SEV_ERROR] = "very-high" };
	static const char *const problem[] = { [SEV_NOTE] = "recommendation",
		[SEV_WARNING] = "warning", [SEV_ERROR] = "error" };

	return json_pack("{so ss ss}", "tags", tags(rule->code), "precision",
		precision[rule->severity], "problem.severity", problem[rule->severity]);
}

/* Text and Markdown: why, fix, and what the ISA says. */
static json_t *help(const struct rule_info *rule)
{
	struct text plain = { 0 }, markdown = { 0 };
	const char *ids = rule->ids;
	const struct ptx_rule *ptx;
	json_t *h = json_object();

	text_printf(&plain, "Why: %s.\nFix: %s.", rule->why, rule->fix);
	text_printf(&markdown, "**Why**: %s.\n\n**Fix**: %s.\n", rule->why, rule->fix);
	while ((ptx = ptx_rule_next(&ids))) {
		text_printf(&plain, "\n%s: %s", ptx->code, ptx->text);
		text_printf(&markdown, "\n- **%s** %s", ptx->code, ptx->text);
		if (*ptx->section)
			text_printf(&markdown, " (PTX ISA %s)", ptx->section);
	}
	text_printf(&markdown, "\n\n`consan explain %s` shows a kernel with this bug.\n", rule->code);
	json_object_set_new(h, "text", rj_string(plain.at));
	json_object_set_new(h, "markdown", rj_string(markdown.at));
	text_free(&plain);
	text_free(&markdown);
	return h;
}

size_t sarif_rule(json_t *rules, unsigned id)
{
	const struct rule_info *rule = rule_get(id);
	json_t *r;
	size_t i;

	json_array_foreach(rules, i, r)
		if (!strcmp(rj_text(r, "id"), rule->code))
			return i;
	r = json_object();
	json_object_set_new(r, "id", json_string(rule->code));
	json_object_set_new(r, "shortDescription", sarif_message(rule->title));
	json_object_set_new(r, "fullDescription", sarif_message(*rule->why ? rule->why
		: rule->title));
	json_object_set_new(r, "help", help(rule));
	json_object_set_new(r, "helpUri", json_string(chapter(*rule->ids)));
	json_object_set_new(r, "defaultConfiguration", json_pack("{ss}", "level",
		sarif_level(rule->severity)));
	json_object_set_new(r, "properties", properties(rule));
	json_array_append_new(rules, r);
	return i;
}
