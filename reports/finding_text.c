/* finding_text: all that is known of a finding as plain text, for formats that have one field for it. */
#include "reports/reports.h"
#include "reports/waits.h"

#include <stdlib.h>

#define WAITS_SHOWN 24u

static void add_stack(struct text *t, const struct options *o, const struct site_loc *l)
{
	for (; l; l = l->inlined_at) {
		text_printf(t, "\n    ");
		describe_host(t, o, l);
	}
}

static void add_side(struct text *t, const struct options *o, const struct finding_side *s,
	const char *label)
{
	const struct site *site = site_get(s->site);

	text_printf(t, "%s: %s ", label, s->what);
	describe_bytes(t, s);
	text_printf(t, "%sby ", s->bytes ? " " : "");
	describe_thread(t, s);
	add_stack(t, o, s->host && o->show_backtrace != BACKTRACE_YES ? NULL : site->loc);
	if (site->ptx_line)
		text_printf(t, "\n    %s [%s:%u]", site->ptx, site->module, site->ptx_line);
	if (s->call && !(s->host && s->call == s->site) && o->show_backtrace == BACKTRACE_YES) {
		text_printf(t, "\n  issued by %s", s->api);
		add_stack(t, o, site_get(s->call)->loc);
	}
	text_printf(t, "\n");
}

static void add_waits(struct text *t, const struct finding *f)
{
	struct wait_groups w;

	waits_find(&w, f);
	if (f->nwaiters)
		text_printf(t, "blocked: %u warp%s\n", blocked_warps(f),
			plural_s(blocked_warps(f)));
	for (size_t i = 0; i < w.group.n && i < WAITS_SHOWN; i++) {
		const struct finding_waiter *at = &f->waiter[w.group.at[i].first];

		text_printf(t, "waiting: ");
		waits_describe(t, &w.group.at[i], f);
		text_printf(t, " at ");
		describe_place(t, at->who.site);
		if (*at->on.kind) {
			text_printf(t, " on ");
			describe_barrier_name(t, &at->on);
		}
		text_printf(t, ": %s\n", at->text);
	}
	if (w.group.n > WAITS_SHOWN)
		text_printf(t, "waiting: %zu more places\n", w.group.n - WAITS_SHOWN);
	waits_free(&w);
}

static void add_edit(struct text *t, const struct finding_edit *e, const char *verified)
{
	struct text what = { 0 };

	describe_edit(&what, e);
	if (what.n)
		text_printf(t, "change: %s%s%s\n", what.at, *verified ? "; " : "", verified);
	if (what.n && *e->ptx)
		text_printf(t, "    %s\n", e->ptx);
	text_free(&what);
}

static void add_edits(struct text *t, const struct finding *f)
{
	struct text verified = { 0 };

	text_add(&verified, "", 0);
	describe_verified(&verified, f);
	add_edit(t, &f->edit, f->also.kind == EDIT_NONE ? verified.at : "");
	add_edit(t, &f->also, verified.at);
	text_free(&verified);
}

void report_finding_text(struct text *t, const struct options *o, const struct finding *f)
{
	const struct rule_info *rule = rule_get(f->rule);
	struct text schedule = { 0 };

	if (*f->edge)
		text_printf(t, "%s: %s\n", edge_label(f), f->edge);
	add_edits(t, f);
	text_printf(t, "why: %s\nfix: %s\n", rule->why, finding_fix(f));
	if (*f->hint)
		text_printf(t, "hint: %s\n", f->hint);
	for (unsigned i = 0; i < f->nsides; i++)
		add_side(t, o, &f->side[i], side_label(f, i));
	if (f->host && o->show_backtrace == BACKTRACE_YES) {
		text_printf(t, "launched:");
		add_stack(t, o, site_get(f->host)->loc);
		text_printf(t, "\n");
	}
	if (*f->barrier.kind) {
		text_printf(t, "barrier: ");
		describe_barrier(t, &f->barrier);
		text_printf(t, "\n");
	}
	add_waits(t, f);
	text_printf(t, "seen: ");
	describe_occurrences(t, f);
	describe_schedule(&schedule, f);
	if (schedule.n)
		text_printf(t, "; reproduce with %s", schedule.at);
	text_printf(t, "\n");
	text_free(&schedule);
}
