/* side: one side of a finding: thread, access, inlining chain, source and PTX. */
#include "reports/html/html.h"

#include "libconsan/base/base.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SHOWN 240   /* bytes of a source line; the rest is cut */

/* ---- highlighting: by tokens, without parsing ---- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

static bool keyword(const char *s, size_t n)
{
	static const char words[] = " alignas alignof asm auto bool break case char class const "
		"constexpr continue decltype default delete do double else enum extern false float "
		"for goto half if inline int long namespace new nullptr operator private public "
		"register return short signed sizeof static static_cast struct switch template "
		"this true typedef typename union unsigned using void volatile while "
		"uint32_t uint64_t int32_t int64_t size_t uint8_t uint16_t "
		"__global__ __device__ __shared__ __host__ __restrict__ __forceinline__ "
		"__launch_bounds__ __align__ __cluster_dims__ __grid_constant__ __constant__ ";
	char padded[40];

	if (n + 3 > sizeof padded)
		return false;
	snprintf(padded, sizeof padded, " %.*s ", (int)n, s);
	return strstr(words, padded) != NULL;
}

static void span(struct html *h, const char *class, const char *s, size_t n)
{
	if (!n)
		return;
	if (class)
		mu_class(&h->m, "i", class);
	mu_textn(&h->m, s, n);
	if (class)
		mu_close(&h->m, "i");
}

/* Bytes of the token at s, and its class: k keyword, n number, s string, c comment, f call,
 * p preprocessor, NULL plain text. */
static size_t token(const char *s, size_t n, const char **class)
{
	size_t k = 1;

	*class = NULL;
	if (n > 1 && s[0] == '/' && (s[1] == '/' || s[1] == '*')) {
		*class = "c";
		for (k = 2; k < n && (s[1] == '/' || s[k - 1] != '*' || s[k] != '/' || k < 3); k++)
			;
		return k < n ? k + 1 : n;
	}
	if (*s == '"' || *s == '\'') {
		*class = "s";
		for (; k < n && s[k] != *s; k++)
			k += s[k] == '\\';
		return k < n ? k + 1 : n;
	}
	if (*s == '#') {
		*class = "p";
		while (k < n && is_word(s[k]))
			k++;
		return k;
	}
	if (!is_word(*s))
		return 1;
	while (k < n && (is_word(s[k])
			|| (isdigit((unsigned char)*s) && (s[k] == '.' || s[k] == '\''))))
		k++;
	if (isdigit((unsigned char)*s))
		*class = "n";
	else if (keyword(s, k))
		*class = "k";
	else if (k < n && (s[k] == '(' || s[k] == '<'))
		*class = "f";
	return k;
}

static void source_text(struct html *h, const char *s, size_t n)
{
	size_t plain = 0;

	if (h->shown > HTML_MANY) {
		mu_textn(&h->m, s, n);
		return;
	}
	for (size_t at = 0; at < n;) {
		const char *class;
		const size_t k = token(s + at, n - at, &class);

		if (class) {
			span(h, NULL, s + plain, at - plain);
			span(h, class, s + at, k);
			plain = at + k;
		}
		at += k;
	}
	span(h, NULL, s + plain, n - plain);
}

void html_ptx(struct html *h, const char *ptx)
{
	char *s = short_instruction(ptx);
	const size_t n = strlen(s);
	size_t at = 0, plain = 0;

	if (h->shown > HTML_MANY) {
		mu_textn(&h->m, s, n);
		free(s);
		return;
	}
	if (*s == '@') /* the guard */
		at = plain = strcspn(s, " ");
	if (at) {
		span(h, "n", s, at);
		while (s[at] == ' ')
			at++;
		span(h, NULL, s + plain, at - plain);
		plain = at;
	}
	at += strcspn(s + at, " ;");
	span(h, "k", s + plain, at - plain);
	plain = at;
	while (at < n) {
		const bool reg = s[at] == '%', number = isdigit((unsigned char)s[at]);
		size_t k = 1;

		while (at + k < n && (is_word(s[at + k]) || (reg && s[at + k] == '.')))
			k++;
		if (reg || number) {
			span(h, NULL, s + plain, at - plain);
			span(h, reg ? "f" : "n", s + at, k);
			plain = at + k;
		}
		at += reg || number || is_word(s[at]) ? k : 1;
	}
	span(h, NULL, s + plain, n - plain);
	free(s);
}

/* ---- source ---- */

static void code_line(struct html *h, const struct site_loc *l, unsigned line, bool marked)
{
	struct markup *m = &h->m;
	size_t n, cut = 0;
	const char *s = report_source_at(l->file, line, &n);

	if (!s)
		return;
	if (n > LINE_SHOWN) {
		for (cut = LINE_SHOWN; (s[cut] & 0xc0) == 0x80; cut--)
			; /* do not cut a character */
		n = cut;
	}
	mu_class(m, "span", marked ? "l at" : "l");
	mu_element(m, "b", NULL, "%5u ", line);
	source_text(h, s, n);
	if (cut)
		mu_text(m, " ...");
	mu_text(m, "\n");
	mu_close(m, "span");
}

static void excerpt(struct html *h, const struct site_loc *l, uint32_t site)
{
	struct markup *m = &h->m;
	size_t n;

	if (h->o->no_source)
		return;
	if (!report_source_at(l->file, l->line, &n)) {
		mu_element(m, "p", "note", report_source_outside(l->file)
			? "Source file outside of --source-root." : "Source file not found.");
		return;
	}
	mu_class(m, "pre", "src");
	mu_attr(m, "tabindex", "0");
	mu_attr(m, "role", "group");
	mu_attr(m, "aria-label", "source of %s", file_base_name(l->file));
	for (unsigned line = l->line > h->context ? l->line - h->context : 1;
			line <= l->line + h->context; line++)
		code_line(h, l, line, line == l->line);
	mu_close(m, "pre");
	if (report_stale(h->r, site, l->file))
		mu_element(m, "p", "note", "This file was changed after the program was built: "
			"source lines may not match.");
}

static void frame(struct html *h, const struct site_loc *l, const char *how)
{
	struct markup *m = &h->m;
	char *file = display_path(h->o, l->file);

	mu_open(m, "li");
	mu_text(m, "%s ", how);
	if (!l->line) {
		struct text t = { 0 };

		describe_host(&t, h->o, l);
		mu_element(m, "code", NULL, "%s", t.at);
		mu_close(m, "li");
		text_free(&t);
		free(file);
		return;
	}
	if (l->col)
		mu_element(m, "code", NULL, "%s:%u:%u", file, l->line, l->col);
	else
		mu_element(m, "code", NULL, "%s:%u", file, l->line);
	if (l->function && *l->function) {
		char *name = demangle(l->function, NAME_BARE);

		mu_text(m, " in ");
		mu_element(m, "code", NULL, "%s", name);
		free(name);
	}
	mu_close(m, "li");
	free(file);
}

/* The inlining chain from the innermost frame outwards. `shown` is the frame whose source is
 * shown; it is always part of the list. */
static void frames(struct html *h, const struct site_loc *first, const struct site_loc *shown,
	bool host)
{
	unsigned n = 0, k = 0, left = 0;
	bool outer = false;

	for (const struct site_loc *l = first; l; l = l->inlined_at)
		n++;
	mu_class(&h->m, "ol", "frames");
	for (const struct site_loc *l = first; l; l = l->inlined_at, k++) {
		const bool show = n <= h->frames || k < h->frames / 2 || k >= n - h->frames / 2
			|| l == shown;

		if (!show)
			left++;
		else if (left)
			mu_element(&h->m, "li", NULL, "%u call%s between", left, plural_s(left));
		left = show ? 0 : left;
		if (show)
			frame(h, l, l == shown ? "at" : !outer ? "through" : host ? "from" : "inlined at");
		outer |= l == shown;
	}
	mu_close(&h->m, "ol");
}

void html_launched(struct html *h, const struct finding *f)
{
	const struct site_loc *stack = site_get(f->host)->loc;

	if (!stack || h->o->show_backtrace != BACKTRACE_YES || h->shown > HTML_MANY)
		return;
	mu_class(&h->m, "section", "side");
	mu_open(&h->m, "h4");
	mu_element(&h->m, "span", "which", "launched");
	mu_close(&h->m, "h4");
	frames(h, stack, site_headline(stack), true);
	mu_close(&h->m, "section");
}

void html_side(struct html *h, const struct finding *f, unsigned i)
{
	const struct finding_side *s = &f->side[i];
	const struct site *site = site_get(s->site);
	const struct site_loc *at = site_headline(site->loc);
	struct markup *m = &h->m;
	struct text t = { 0 };

	mu_class(m, "section", i ? "side earlier-side" : "side");
	mu_class(m, "h4", NULL);
	mu_element(m, "span", "which", "%s%s", side_label(f, i),
		f->nsides > 1 && s->bytes ? " access" : "");
	mu_text(m, " %s", s->what);
	mu_close(m, "h4");
	describe_bytes(&t, s);
	text_printf(&t, t.n ? ", by " : "by ");
	describe_thread(&t, s);
	mu_element(m, "p", "who", "%s", t.at);
	text_free(&t);
	if (at && !(s->host && h->o->show_backtrace != BACKTRACE_YES)) {
		frames(h, site->loc, at, s->host);
		if (at->line)
			excerpt(h, at, s->site);
	}
	if (site->ptx && *site->ptx) {
		mu_class(m, "pre", "ptx");
		mu_attr(m, "tabindex", "0");
		mu_attr(m, "role", "group");
		mu_attr(m, "aria-label", "PTX");
		html_ptx(h, site->ptx);
		mu_element(m, "span", "c", "  %s:%u", file_base_name(site->module), site->ptx_line);
		mu_close(m, "pre");
	}
	if (s->call && !(s->host && s->call == s->site) && h->o->show_backtrace == BACKTRACE_YES
		&& h->shown <= HTML_MANY) {
		mu_element(m, "p", "who", "issued by %s", s->api);
		frames(h, site_get(s->call)->loc, site_headline(site_get(s->call)->loc), true);
	}
	mu_close(m, "section");
}
