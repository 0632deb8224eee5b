/* count: the numbers of a summary, and the exit status that follows from them. */
#include "reports/reports.h"

#define EXIT_UNCHECKED 67 /* a kernel was not checked, or none was launched, or there are gaps */

bool report_filtered_out(const struct coverage *c)
{
	return !*c->unchecked && !c->checked && c->skipped;
}

bool report_gap(const struct result_remark *m)
{
	return m->kind == RESULT_REMARK_not_loaded || m->kind == RESULT_REMARK_call_unsupported
		|| m->kind == RESULT_REMARK_not_seen;
}

void report_count(const struct results *r, struct report_counts *n)
{
	*n = (struct report_counts){ 0 };
	for (size_t i = 0, k; i < r->finding.n; i += k) {
		k = r->finding.n - i;
		switch (group_severity(&r->finding.at[i], &k)) {
		case SEV_NOTE: n->notes++; break;
		case SEV_WARNING: n->warnings++; break;
		case SEV_ERROR: n->errors++; break;
		}
		n->consequences += (unsigned)k - 1;
	}
	for (size_t i = 0; i < r->coverage.n; i++) {
		const struct coverage *c = &r->coverage.at[i];

		if (report_filtered_out(c)) {
			n->skipped++;
			continue;
		}
		n->kernels++;
		n->checked += !*c->unchecked;
	}
	for (size_t i = 0; i < r->remark.n; i++) {
		n->gaps += report_gap(&r->remark.at[i]);
		n->unseen += r->remark.at[i].kind == RESULT_REMARK_not_seen;
	}
}

/* All launches belong to other shards: that nothing was checked here says nothing about the program. The
 * merged report says whether anything was. */
static bool others_check(const struct options *o, const struct report_counts *n)
{
	unsigned shard, shards;

	return !n->kernels && n->skipped && options_shard(o->shard, &shard, &shards) && shards > 1;
}

int report_exit_status(const struct results *r, const struct options *o, int program)
{
	struct report_counts n;

	report_count(r, &n);
	if (n.errors && o->error_exitcode)
		return (int)o->error_exitcode;
	if (program)
		return program;
	if (!o->allow_unchecked && (n.checked < n.kernels || (!n.kernels && !others_check(o, &n)) || n.gaps
			|| r->cut))
		return EXIT_UNCHECKED;
	return 0;
}
