/* edit: what to change in the program: in words, as a diff of the source place and of the PTX, and
 * what running the launch again with the change showed. */
#include "reports/html/html.h"

#include <string.h>

static void ptx_line(struct html *h, const char *class, const char *sign, const char *ptx)
{
	const size_t n = strlen(ptx);
	struct markup *m = &h->m;

	if (!n)
		return;
	mu_class(m, "span", class);
	mu_text(m, "%s %s%s", sign, ptx, ptx[n - 1] == ';' || ptx[n - 1] == '}' ? "" : ";");
	mu_close(m, "span");
	mu_text(m, "\n");
}

static void patch(struct html *h, const struct finding_edit *e)
{
	const struct site *s = site_get(e->site);
	const bool replaced = e->kind == EDIT_CHANGE && *e->ptx;
	struct markup *m = &h->m;

	mu_class(m, "pre", "ptx patch");
	mu_attr(m, "tabindex", "0");
	mu_attr(m, "role", "group");
	mu_attr(m, "aria-label", "change of the PTX");
	mu_element(m, "span", "c", "@@ %s:%u @@", file_base_name(s->module), s->ptx_line);
	mu_text(m, "\n");
	if (e->kind != EDIT_BEFORE)
		ptx_line(h, replaced ? "removed" : NULL, replaced ? "-" : " ", s->ptx);
	ptx_line(h, "added", "+", e->ptx);
	if (e->kind == EDIT_BEFORE)
		ptx_line(h, NULL, " ", s->ptx);
	if (e->until)
		ptx_line(h, NULL, " ", site_get(e->until)->ptx);
	mu_close(m, "pre");
}

void html_edit(struct html *h, const struct finding *f)
{
	const struct finding_edit *e = &f->edit;
	struct text what = { 0 }, verified = { 0 };
	struct markup *m = &h->m;

	describe_edit(&what, e);
	if (!what.n)
		return;
	describe_verified(&verified, e);
	mu_element(m, "dt", NULL, "change");
	mu_class(m, "dd", "change");
	mu_element(m, "strong", NULL, "%s", what.at);
	if (verified.n)
		mu_element(m, "span", e->verified == VERIFIED_CLEAN ? "chip ok" : "chip", "%s",
			verified.at);
	if (*e->ptx)
		patch(h, e);
	mu_close(m, "dd");
	text_free(&what);
	text_free(&verified);
}
