/* view: findings and coverage as the public interface shows them: numbers of sites and rules
 * become places and texts. */
#include "internal.h"

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static const char *keep_demangled(struct arena *a, const char *mangled)
{
	char *name = demangle(mangled, NAME_FULL);
	const char *kept = arena_strndup(a, name, strlen(name));

	free(name);
	return kept;
}

static void set_source(struct consan_place *p, const struct site_loc *l)
{
	p->file = l ? or_empty(l->file) : "";
	p->function = l ? or_empty(l->function) : "";
	p->line = l ? l->line : 0;
	p->column = l ? l->col : 0;
}

/* All places of an inlining chain have the same PTX instruction. */
static void show_place(struct arena *a, uint32_t site, struct consan_place *p)
{
	const struct site *s = site_get(site);
	const struct site_loc *l = s->loc;

	for (;; l = l->inlined_at) {
		struct consan_place *outer;

		set_source(p, l);
		p->module = or_empty(s->module);
		p->ptx_line = s->ptx_line;
		p->ptx = or_empty(s->ptx);
		p->inlined_at = NULL;
		if (!l || !l->inlined_at)
			return;
		p->inlined_at = outer = arena_alloc(a, sizeof *outer);
		p = outer;
	}
}

static const char *keep(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

static void show_side(struct arena *a, const struct finding_side *from, struct consan_side *to)
{
	struct consan_place *place = arena_alloc(a, sizeof *place);

	*to = (struct consan_side){
		.what = keep(a, from->what), .cluster_rank = from->cta, .warp = from->warp,
		.lane = from->lane, .addr = from->addr, .bytes = from->bytes,
		.owner = from->peer, .variable = keep(a, from->variable),
	};
	memcpy(to->block, from->ctaid, sizeof to->block);
	memcpy(to->thread, from->thread, sizeof to->thread);
	to->place = place;
	show_place(a, from->site, place);
}

/* The strings of `to` are in the arena, or static. */
static void view_finding(struct arena *a, const struct finding *from, uint64_t seen_before,
	struct consan_finding *to)
{
	static const enum consan_severity severity[] = {
		[SEV_NOTE] = CONSAN_NOTE, [SEV_WARNING] = CONSAN_WARNING, [SEV_ERROR] = CONSAN_ERROR,
	};
	const struct rule_info *r = rule_get(from->rule);

	*to = (struct consan_finding){
		.rule = r->code, .severity = severity[from->severity],
		.title = r->title, .why = r->why, .fix = r->fix,
		.kernel = keep_demangled(a, from->kernel), .launch = from->launch,
		.nsides = from->nsides, .edge = keep(a, from->edge), .hint = keep(a, from->hint),
		.seen = from->seen - seen_before, .clusters = from->clusters, .seed = from->seed,
		.schedule = keep(a, from->schedule), .reads = finding_reads(from),
	};
	for (unsigned i = 0; i < from->nsides; i++) {
		struct consan_side *side = arena_alloc(a, sizeof *side);

		show_side(a, &from->side[i], side);
		to->side[i] = side;
	}
}

/* ---- findings of a session ---- */

static bool is_shown(const struct session_finding *s)
{
	return s->f.seen > s->cleared && !s->suppressed;
}

/* Makes c->views from the findings. */
static void refresh_views(struct consan *c)
{
	size_t n;

	arena_free(&c->shown);
	c->views.n = 0;
	pthread_mutex_lock(&c->lock);
	n = session_sort(c);
	for (size_t i = 0; i < n; i++) {
		const struct session_finding *s = (const struct session_finding *)c->sorted.at[i];
		struct consan_finding f;

		if (!is_shown(s))
			continue;
		view_finding(&c->shown, &s->f, s->cleared, &f);
		vec_push(&c->views, f);
	}
	pthread_mutex_unlock(&c->lock);
}

size_t consan_findings(struct consan *c)
{
	size_t n;

	pthread_mutex_lock(&c->showing);
	refresh_views(c);
	n = c->views.n;
	pthread_mutex_unlock(&c->showing);
	return n;
}

const struct consan_finding *consan_finding(struct consan *c, size_t k)
{
	const struct consan_finding *f;

	pthread_mutex_lock(&c->showing);
	f = k < c->views.n ? &c->views.at[k] : NULL;
	pthread_mutex_unlock(&c->showing);
	return f;
}

size_t consan_errors(struct consan *c)
{
	size_t n = 0;

	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->findings.n; i++) {
		const struct session_finding *s = c->findings.at[i];

		n += is_shown(s) && s->f.severity == SEV_ERROR;
	}
	pthread_mutex_unlock(&c->lock);
	return n;
}

void consan_clear(struct consan *c)
{
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->findings.n; i++)
		c->findings.at[i]->cleared = c->findings.at[i]->f.seen;
	pthread_mutex_unlock(&c->lock);
}

/* Does `path` end in the path components of `wanted`? */
static bool same_file(const char *path, const char *wanted)
{
	size_t n = strlen(path), m = strlen(wanted);

	return m <= n && !strcmp(path + n - m, wanted) && (m == n || path[n - m - 1] == '/');
}

static bool is_at(const struct consan_place *p, const char *file, uint32_t line)
{
	if (same_file(p->module, file ? file : p->module) && (!line || p->ptx_line == line))
		return true;
	for (; p; p = p->inlined_at)
		if (*p->file && same_file(p->file, file ? file : p->file)
				&& (!line || p->line == line))
			return true;
	return false;
}

static bool finding_matches(const struct finding *raw, const char *rule, const char *file,
	uint32_t line)
{
	struct arena a = { 0 };
	struct consan_finding f;
	bool found = !raw->nsides && !file && !line; /* of a launch as a whole */

	if (rule && strcmp(rule_get(raw->rule)->code, rule))
		return false;
	view_finding(&a, raw, 0, &f);
	for (unsigned k = 0; k < f.nsides; k++)
		found |= is_at(f.side[k]->place, file, line);
	arena_free(&a);
	return found;
}

/* Does not invalidate the result of consan_findings(). */
bool consan_finds(struct consan *c, const char *rule, const char *file, uint32_t line)
{
	bool found = false;

	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->findings.n && !found; i++)
		if (is_shown(c->findings.at[i]))
			found = finding_matches(&c->findings.at[i]->f, rule, file, line);
	pthread_mutex_unlock(&c->lock);
	return found;
}

/* ---- as text ---- */

static void describe_side(struct text *t, const struct consan_side *s)
{
	const struct consan_place *p = s->place;

	text_printf(t, "\n  %s by ", s->what);
	if (s->lane >= 0)
		text_printf(t, "thread (%u,%u,%u)", s->thread[0], s->thread[1], s->thread[2]);
	else
		text_printf(t, "warp %u", s->warp);
	text_printf(t, " of block (%u,%u,%u)", s->block[0], s->block[1], s->block[2]);
	if (*s->variable)
		text_printf(t, ", %s", s->variable);
	if (*p->file)
		text_printf(t, "\n    at %s:%u", p->file, p->line);
	text_printf(t, "%s%s:%u  %s", *p->file ? ", " : "\n    at ", p->module, p->ptx_line, p->ptx);
}

int consan_describe(const struct consan_finding *f, char *out, size_t n)
{
	static const char *const severity[] = {
		[CONSAN_NOTE] = "note", [CONSAN_WARNING] = "warning", [CONSAN_ERROR] = "error",
	};
	struct text t = { 0 };
	int length;

	text_printf(&t, "%s %s: %s in %s", severity[f->severity], f->rule, f->title, f->kernel);
	for (unsigned i = 0; i < f->nsides; i++)
		describe_side(&t, f->side[i]);
	if (*f->edge)
		text_printf(&t, "\n  missing: %s", f->edge);
	text_printf(&t, "\n  fix: %s", *f->hint ? f->hint : f->fix);
	length = snprintf(out, n, "%s", t.at);
	text_free(&t);
	return length;
}

/* ---- coverage ---- */

size_t consan_kernels(struct consan *c)
{
	const struct coverage *raw;
	size_t n;

	pthread_mutex_lock(&c->launching);
	pthread_mutex_lock(&c->showing);
	n = consan_raw_coverage(c, &raw);
	arena_free(&c->covered);
	c->coverage_views.n = 0;
	for (size_t i = 0; i < n; i++) {
		const struct coverage *v = &raw[i];

		vec_push(&c->coverage_views, ((struct consan_coverage){
			.kernel = keep_demangled(&c->covered, v->kernel),
			.launches = v->launches, .checked = v->checked, .skipped = v->skipped,
			.clusters = v->clusters, .ctas = v->ctas,
			.events = v->events, .dropped = v->dropped,
			.sites = v->sites, .sites_executed = v->sites_executed,
			.unchecked = keep(&c->covered, v->unchecked),
		}));
	}
	pthread_mutex_unlock(&c->showing);
	pthread_mutex_unlock(&c->launching);
	return n;
}

const struct consan_coverage *consan_coverage(struct consan *c, size_t k)
{
	const struct consan_coverage *v;

	pthread_mutex_lock(&c->showing);
	v = k < c->coverage_views.n ? &c->coverage_views.at[k] : NULL;
	pthread_mutex_unlock(&c->showing);
	return v;
}

/* ---- callbacks ---- */

void consan_on_finding(struct consan *c,
	void (*found)(void *user, const struct consan_finding *f), void *user)
{
	pthread_mutex_lock(&c->launching);
	c->found = found;
	c->found_user = user;
	pthread_mutex_unlock(&c->launching);
}

void consan_on_print(struct consan *c,
	void (*print)(void *user, const char *text, size_t n), void *user)
{
	pthread_mutex_lock(&c->launching);
	c->print = print;
	c->print_user = user;
	pthread_mutex_unlock(&c->launching);
}

void view_announce(struct consan *c)
{
	const struct finding *const *raw;
	struct arena a = { 0 };
	size_t n;

	if (!c->found)
		return;
	pthread_mutex_lock(&c->showing);
	n = consan_raw_findings(c, &raw);
	for (size_t i = 0; i < n; i++) {
		struct session_finding *s = (struct session_finding *)raw[i];
		struct consan_finding f;

		if (s->announced || s->suppressed)
			continue;
		s->announced = true;
		view_finding(&a, &s->f, s->cleared, &f);
		c->found(c->found_user, &f);
	}
	pthread_mutex_unlock(&c->showing);
	arena_free(&a);
}
