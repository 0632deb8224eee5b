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
	const bool moved = e->kind == EDIT_MOVE || e->kind == EDIT_MOVE_BEFORE;
	const bool replaced = (e->kind == EDIT_CHANGE || moved) && *e->ptx;
	const char *until = e->until ? site_get(e->until)->ptx : "";
	struct markup *m = &h->m;

	mu_class(m, "pre", "ptx patch");
	mu_attr(m, "tabindex", "0");
	mu_attr(m, "role", "group");
	mu_attr(m, "aria-label", "change of the PTX");
	mu_element(m, "span", "c", "@@ %s:%u @@", file_base_name(s->module), s->ptx_line);
	mu_text(m, "\n");
	if (e->kind != EDIT_BEFORE)
		ptx_line(h, replaced ? "removed" : NULL, replaced ? "-" : " ", s->ptx);
	if (e->kind == EDIT_MOVE)
		ptx_line(h, NULL, " ", until);
	ptx_line(h, "added", "+", e->ptx);
	if (e->kind == EDIT_BEFORE)
		ptx_line(h, NULL, " ", s->ptx);
	if (e->kind != EDIT_MOVE)
		ptx_line(h, NULL, " ", until);
	mu_close(m, "pre");
}

static void one_edit(struct html *h, const struct finding_edit *e)
{
	struct text what = { 0 };

	describe_edit(&what, e);
	if (what.n)
		mu_element(&h->m, "strong", NULL, "%s", what.at);
	if (what.n && *e->ptx)
		patch(h, e);
	text_free(&what);
}

void html_edit(struct html *h, const struct finding *f)
{
	struct text verified = { 0 };
	struct markup *m = &h->m;

	if (f->edit.kind == EDIT_NONE)
		return;
	describe_verified(&verified, f);
	mu_element(m, "dt", NULL, "change");
	mu_class(m, "dd", "change");
	one_edit(h, &f->edit);
	one_edit(h, &f->also);
	if (verified.n)
		mu_element(m, "span", f->edit.verified == VERIFIED_CLEAN ? "chip ok" : "chip", "%s",
			verified.at);
	mu_close(m, "dd");
	text_free(&verified);
}
