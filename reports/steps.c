/* steps: see steps.h. */
#include "reports/steps.h"

#include "reports/describe.h"

const char *const engine_name[] = {
	[WARP] = "warp", [COPIES] = "cp.async", [TMA] = "TMA", [TENSOR] = "tensor core",
	[TMEM] = "tensor memory",
};

enum engine step_engine(const struct history_step *s)
{
	switch (step_on((enum step_kind)s->kind)) {
	case ON_COPIES: return COPIES;
	case ON_BULKS: return TMA;
	case ON_MMAS: case ON_TENSOR: return TENSOR;
	case ON_LOADS: case ON_STORES: return TMEM;
	case ON_MBARRIER:
		return s->kind == STEP_signal ? TMA : s->kind == STEP_tc_signal ? TENSOR : WARP;
	case ON_NOTHING: case ON_BARRIER: case ON_CLUSTER: case ON_COLUMNS: return WARP;
	}
	return WARP;
}

bool step_is_issue(const struct history_step *s)
{
	return step_family((enum step_kind)s->kind) == FAMILY_ISSUE || s->kind == STEP_copy_commit;
}

bool step_ends(const struct history_step *a, const struct history_step *s)
{
	if (step_is_signal((enum step_kind)s->kind) || step_on((enum step_kind)a->kind) == ON_TENSOR)
		return step_is_signal((enum step_kind)s->kind) && a->op && a->op == s->op;
	if (s->cta != a->cta || step_family((enum step_kind)s->kind) != FAMILY_ACQUIRE
			|| step_on((enum step_kind)s->kind) != step_on((enum step_kind)a->kind))
		return false;
	if (a->kind == STEP_mma ? s->warp / 4 != a->warp / 4 : s->warp != a->warp)
		return false;
	return s->phase > a->phase;
}

bool step_same_phase(const struct history_step *a, const struct history_step *b)
{
	return step_on((enum step_kind)a->kind) == step_on((enum step_kind)b->kind)
		&& a->peer == b->peer && a->addr == b->addr && a->phase == b->phase;
}

bool step_is_wait(const struct history_step *s)
{
	const enum step_on on = step_on((enum step_kind)s->kind);

	return step_family((enum step_kind)s->kind) == FAMILY_ACQUIRE && s->kind != STEP_poll
		&& s->phase != HISTORY_NO_PHASE && on != ON_NOTHING && on <= ON_CLUSTER;
}

unsigned history_side_cta(const struct finding *f, unsigned i)
{
	return f->side[i].cta + (i ? 0u : f->history->other);
}

bool history_is_side(const struct history *y, uint32_t i)
{
	return y->side[0] == (int32_t)i || y->side[1] == (int32_t)i;
}

/* ---- descriptions ---- */

void describe_cta(struct text *t, const struct finding *f, unsigned cta)
{
	const unsigned other = f->history->other;

	for (unsigned i = 0; other && i < f->nsides; i++) {
		const uint32_t *id = f->side[i].ctaid;

		if (history_side_cta(f, i) != cta)
			continue;
		text_printf(t, "(%u,%u,%u)", id[0], id[1], id[2]);
		return;
	}
	text_printf(t, "CTA %u", other && cta >= other ? cta - other : cta);
}

void describe_step_object(struct text *t, const struct history *y, const struct history_step *s)
{
	const struct history_mbarrier *m;

	switch (step_on((enum step_kind)s->kind)) {
	case ON_MBARRIER:
		m = history_mbarrier(y, s->peer, s->addr);
		if (m)
			demangle_symbol(t, m->name);
		else
			text_printf(t, "shared+0x%x", s->addr);
		return;
	case ON_BARRIER:
		text_printf(t, "%u", s->addr);
		return;
	case ON_BULKS:
		if (s->bytes)
			describe_size(t, s->bytes);
		return;
	case ON_COLUMNS:
		text_printf(t, "columns %u to %u", s->addr, s->addr + s->bytes - 1);
		return;
	case ON_NOTHING: case ON_CLUSTER: case ON_COPIES: case ON_MMAS: case ON_LOADS: case ON_STORES:
	case ON_TENSOR:
		return;
	}
}

void describe_step(struct text *t, const struct finding *f, const struct history_step *s)
{
	const enum step_on on = step_on((enum step_kind)s->kind);
	const size_t from = t->n;
	size_t named;

	if (s->kind == STEP_access)
		for (unsigned i = 0; i < f->nsides; i++)
			if (f->history->side[i] >= 0 && s == &f->history->step[f->history->side[i]])
				text_printf(t, "%s", f->side[i].what);
	if (t->n == from)
		text_printf(t, "%s", step_text((enum step_kind)s->kind));
	text_printf(t, " ");
	named = t->n;
	describe_step_object(t, f->history, s);
	if (t->n == named)
		t->at[--t->n] = 0;
	if (on == ON_MBARRIER && s->kind != STEP_init && s->kind != STEP_inval
			&& s->phase != HISTORY_NO_PHASE)
		text_printf(t, " \xc2\xb7 %llu", (unsigned long long)s->phase);
	if (s->repeat)
		text_printf(t, " \xc3\x97%u", s->repeat + 1);
}
