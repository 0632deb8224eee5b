/* profile: findings that the code generation of Triton causes (profile.def) become notes. */
#include "internal.h"

#include "libconsan/event/event.h"
#include "libconsan/finding/hint_codes.h"
#include "libconsan/finding/rule_codes.h"

#include <string.h>

/* The extern variable has no size, or in GPU mode that of the dynamic shared memory. */
static bool uses_global_smem(const struct launch_info *l)
{
	for (size_t i = 0; i < l->nsymbols; i++)
		if ((!l->symbols[i].bytes || l->symbols[i].bytes == l->shared_dynamic)
				&& !strcmp(l->symbols[i].name, "global_smem"))
			return true;
	return false;
}

static bool in_python(const struct check *k, uint32_t site)
{
	const struct site_loc *l = site_get(site)->loc;
	const size_t n = l && l->file ? strlen(l->file) : 0;

	if (!l)
		return k->config.xla;
	return n > 3 && !strcmp(l->file + n - 3, ".py");
}

static bool same_line(uint32_t a, uint32_t b)
{
	const struct site_loc *x = site_get(a)->loc, *y = site_get(b)->loc;

	return x && y && x->line == y->line && !strcmp(x->file, y->file);
}

/* ---- the conditions of profile.def ---- */

static bool is_ANY(const struct finding *f)
{
	(void)f;
	return true;
}

static bool is_ONE_STORE(const struct finding *f)
{
	/* one side: the lanes of one execution */
	for (unsigned i = 0; i < f->nsides; i++)
		if (f->side[i].site != f->side[0].site || f->side[i].space != SP_SHARED
				|| strcmp(f->side[i].what, "write"))
			return false;
	return true;
}

static bool is_SAME_VALUE(const struct finding *f)
{
	return is_ONE_STORE(f) && f->severity == SEV_WARNING && f->hint_id == HINT_equal_values;
}

static bool is_ONE_CTA(const struct finding *f)
{
	const struct finding_side *s = f->side;

	return f->nsides == 2 && same_line(s[0].site, s[1].site)
		&& !memcmp(s[0].ctaid, s[1].ctaid, sizeof s[0].ctaid);
}

static bool is_BY_GROUPS(const struct finding *f)
{
	const struct finding_side *s = f->side;

	return f->severity == SEV_WARNING && f->hint_id == HINT_equal_values && is_ONE_CTA(f)
		&& s[0].site != s[1].site && s[0].lane == s[1].lane && s[0].warp != s[1].warp
		&& s[0].warp % 4 == s[1].warp % 4;
}

/* tl.load and tl.store of one element by two threads of a program. */
static bool is_unordered_copy(const struct check *k, const struct finding *f)
{
	const struct finding_side *s = f->side;

	return k->config.triton && !f->hint_id && f->severity != SEV_NOTE && f->nsides == 2
		&& (f->rule == CS102 || f->rule == CS103)
		&& s[0].space == SP_GLOBAL && s[1].space == SP_GLOBAL
		&& !memcmp(s[0].ctaid, s[1].ctaid, sizeof s[0].ctaid)
		&& in_python(k, s[0].site) && in_python(k, s[1].site);
}

void profile_apply(const struct check *k, struct finding *f)
{
	static const struct {
		unsigned rule;
		bool (*is)(const struct finding *f);
		bool gluon;
	} row[] = {
#define PROFILE(rule, where, gluon, doc) { rule, is_##where, gluon },
#include "profile.def"
#undef PROFILE
	};
	const bool gluon = k->config.gluon;

	if (is_unordered_copy(k, f))
		report_hint(f, HINT(triton_order));
	if (f->severity == SEV_NOTE || k->config.policy.triton_codegen || !f->nsides
			|| !uses_global_smem(&k->config.launch))
		return;
	for (unsigned i = 0; i < f->nsides; i++)
		if (!in_python(k, f->side[i].site))
			return;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		if (row[i].rule != f->rule || (gluon && !row[i].gluon) || !row[i].is(f))
			continue;
		f->severity = SEV_NOTE;
		f->edit = f->also = (struct finding_edit){ .kind = EDIT_NONE };
		report_hint(f, HINT(triton_codegen));
		return;
	}
}
