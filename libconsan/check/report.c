/* report: findings of a launch, deduplicated. A finding is made in its cluster and passed to the
 * launch; a known one is only counted. */
#include "internal.h"

#include "libconsan/event/event.h"
#include "libconsan/finding/rule_codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct seen {                /* per cluster: how often a finding occurred */
	uint32_t key[3];         /* rule, sites; rule 0: free slot */
	uint32_t count;
	enum severity severity;  /* the highest so far */
};

int only_lane(uint32_t lanes)
{
	return lanes && !(lanes & (lanes - 1)) ? __builtin_ctz(lanes) : -1;
}

enum severity rule_severity(unsigned r)
{
	return rule_get(r)->severity;
}

bool report_equal_stores(uint32_t site0, uint32_t site1, bool one_cta)
{
	const enum site_constant need = one_cta ? CONSTANT_IN_CTA : CONSTANT_IN_GRID;
	const struct site *a = site_get(site0), *b = site_get(site1);

	return a->constant >= need && b->constant >= need && a->value == b->value;
}

bool report_unread_load(uint32_t site)
{
	return site_get(site)->unread_load;
}

void report_values(const struct cluster *c, struct finding *f, bool both_write)
{
	if (!*f->hint && (report_unread_load(f->side[0].site) || report_unread_load(f->side[1].site)))
		report_hint(f, HINT(value_unread));
	if (f->rule != CS101 && f->rule != CS103)
		return;
	if (f->severity == SEV_WARNING)
		report_hint(f, HINT(equal_values));
	else if (both_write && !*f->hint && c->now->kind == EV_ACCESS
		&& c->now->access.flags & ACCESS_VALUES_UNKNOWN)
		report_hint(f, HINT(values_unknown));
}

/* The same pair in the other order is the same bug. */
static void make_key(uint32_t key[3], unsigned rule, uint32_t a, uint32_t b)
{
	key[0] = rule;
	key[1] = a < b ? a : b;
	key[2] = a < b ? b : a;
}

static uint32_t hash_key(const uint32_t key[3])
{
	return (key[0] * 0x9e3779b1u ^ key[1] * 0x85ebca6bu ^ key[2] * 0xc2b2ae35u) >> 5;
}

static struct seen *find_seen(struct cluster *c, const uint32_t key[3])
{
	uint32_t i;

	if (2 * (c->nseen + 1) > c->cap_seen) {
		struct seen *old = c->seen;
		uint32_t cap = c->cap_seen;

		c->cap_seen = cap ? 2 * cap : 64;
		c->seen = base_alloc(c->cap_seen * sizeof *c->seen);
		for (uint32_t k = 0; k < cap; k++) {
			if (!old[k].key[0])
				continue;
			for (i = hash_key(old[k].key); c->seen[i & (c->cap_seen - 1)].key[0];)
				i++;
			c->seen[i & (c->cap_seen - 1)] = old[k];
		}
		free(old);
	}
	for (i = hash_key(key);; i++) {
		struct seen *s = &c->seen[i & (c->cap_seen - 1)];

		if (!s->key[0] || memcmp(s->key, key, sizeof s->key) == 0)
			return s;
	}
}

struct finding *report_new(struct cluster *c, unsigned rule, enum severity sev,
	uint32_t site0, uint32_t site1)
{
	const struct launch_info *l = &c->check->config.launch;
	uint32_t key[3];
	struct seen *s;
	struct finding *f;

	make_key(key, rule, site0, site1);
	repeat_finding(c, key);
	s = find_seen(c, key);
	s->count++;
	if (s->key[0] && sev <= s->severity)
		return NULL;
	c->nseen += !s->key[0];
	memcpy(s->key, key, sizeof key);
	s->severity = sev;
	f = base_alloc(sizeof *f);
	f->rule = rule;
	f->severity = sev;
	f->order = c->stats.events;
	finding_set_launch(f, l);
	return f;
}

/* The index slot of the launch's finding with that key, or a free one. */
static uint32_t *find_index(struct check *k, const uint32_t key[3])
{
	uint32_t i, other[3];

	if (2 * (k->nfindings + 1) > k->cap_index) {
		free(k->index);
		k->cap_index = k->cap_index ? 2 * k->cap_index : 64;
		k->index = base_alloc(k->cap_index * sizeof *k->index);
		for (size_t n = 0; n < k->nfindings; n++) {
			const struct finding *f = k->finding[n];

			make_key(other, f->rule, f->side[0].site, f->side[1].site);
			for (i = hash_key(other); k->index[i & (k->cap_index - 1)];)
				i++;
			k->index[i & (k->cap_index - 1)] = (uint32_t)n + 1;
		}
	}
	for (i = hash_key(key);; i++) {
		uint32_t *at = &k->index[i & (k->cap_index - 1)];
		const struct finding *f;

		if (!*at)
			return at;
		f = k->finding[*at - 1];
		make_key(other, f->rule, f->side[0].site, f->side[1].site);
		if (memcmp(other, key, sizeof other) == 0)
			return at;
	}
}

int finding_rank_compare(const struct finding_rank *a, const struct finding_rank *b)
{
	if (a->high != b->high)
		return a->high < b->high ? -1 : 1;
	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	for (unsigned i = 0; i < 2; i++)
		if (a->by[i] != b->by[i])
			return a->by[i] < b->by[i] ? -1 : 1;
	return 0;
}

size_t report_find(struct check *k, unsigned rule, uint32_t site0, uint32_t site1)
{
	uint32_t key[3], *at;

	make_key(key, rule, site0, site1);
	at = find_index(k, key);
	return *at ? *at - 1 : k->nfindings;
}

bool report_replaces(const struct check *k, size_t at, enum severity severity,
	const struct finding_rank *rank)
{
	if (severity != k->finding[at]->severity)
		return severity > k->finding[at]->severity;
	return finding_rank_compare(rank, &k->first[at]) < 0;
}

void report_one_more(struct cluster *c, const uint32_t key[3])
{
	struct seen *s = find_seen(c, key);

	c->nseen += !s->key[0];
	memcpy(s->key, key, sizeof s->key);
	s->count++;
}

bool report_is_of_lower(struct check *k, const uint32_t key[3], uint32_t cluster)
{
	const uint32_t *at = find_index(k, key);

	return *at && k->first[*at - 1].high < cluster;
}

bool report_is_shown(struct cluster *c, const struct finding *f)
{
	const struct finding_rank rank = { .high = c->info.id, .low = c->info.id };
	struct check *k = c->check;
	uint32_t key[3], *at;
	bool shown;

	make_key(key, f->rule, f->side[0].site, f->side[1].site);
	pthread_mutex_lock(&k->lock);
	at = find_index(k, key);
	shown = !*at || report_replaces(k, *at - 1, f->severity, &rank);
	pthread_mutex_unlock(&k->lock);
	return shown;
}

/* Counts are updated in report_cluster_end(), where each cluster adds its own. */
void report_send(struct cluster *c, struct finding *f)
{
	const struct finding_rank rank = { .high = c->info.id, .low = c->info.id };

	if (!report_is_shown(c, f)) { /* nor with the severity that a profile gives it, which is lower */
		finding_free(f);
		free(f);
		return;
	}
	if (c->info.recorder)
		f->history = recorder_history(c->info.recorder, f);
	report_ranked(c->check, f, rank);
}

void report_ranked(struct check *k, struct finding *f, struct finding_rank rank)
{
	uint32_t key[3], *at;

	profile_apply(k, f);
	edit_by_rule(f);
	make_key(key, f->rule, f->side[0].site, f->side[1].site);
	pthread_mutex_lock(&k->lock);
	at = find_index(k, key);
	if (*at) {
		struct finding *old = k->finding[*at - 1];

		if (report_replaces(k, *at - 1, f->severity, &rank)) {
			struct finding swap = *old;

			*old = *f;
			*f = swap;
			old->seen = swap.seen;
			old->clusters = swap.clusters;
			k->first[*at - 1] = rank;
		}
		pthread_mutex_unlock(&k->lock);
		finding_free(f);
		free(f);
		return;
	}
	if (k->nfindings == k->cap_findings) {
		k->cap_findings = k->cap_findings ? 2 * k->cap_findings : 16;
		k->finding = base_resize(k->finding, k->cap_findings * sizeof(struct finding *));
		k->first = base_resize(k->first, k->cap_findings * sizeof *k->first);
	}
	k->first[k->nfindings] = rank;
	k->finding[k->nfindings++] = f;
	*at = (uint32_t)k->nfindings;
	f->seen = 1;
	f->clusters = 1;
	if (k->config.found)
		k->config.found(k->config.user, f);
	f->seen = 0;
	f->clusters = 0;
	pthread_mutex_unlock(&k->lock);
}

void report_cluster_end(struct cluster *c)
{
	struct check *k = c->check;

	if (!c->nseen)
		return;
	pthread_mutex_lock(&k->lock);
	for (uint32_t i = 0; i < c->cap_seen; i++) {
		struct seen *s = &c->seen[i];
		uint32_t *at;

		if (!s->key[0])
			continue;
		at = find_index(k, s->key);
		if (*at) {
			k->finding[*at - 1]->seen += s->count;
			k->finding[*at - 1]->clusters++;
		}
	}
	pthread_mutex_unlock(&k->lock);
	memset(c->seen, 0, c->cap_seen * sizeof *c->seen);
	c->nseen = 0;
}

void report_side(struct cluster *c, struct finding *f, unsigned warp, int lane,
	uint32_t site, const char *what)
{
	struct finding_side *s = &f->side[f->nsides++];
	const struct warp *w = &c->warp[warp];
	const uint32_t *block = c->check->config.launch.block;

	s->site = site;
	snprintf(s->what, sizeof s->what, "%s", what);
	cluster_ctaid(&c->info, w->cta, s->ctaid);
	s->cta = w->cta;
	s->warp = w->id;
	s->lane = (int16_t)lane;
	s->peer = w->cta;
	if (lane >= 0) {
		uint32_t t = w->id * 32 + (uint32_t)lane;
		uint32_t x = block[0] ? block[0] : 1, y = block[1] ? block[1] : 1;

		s->thread[0] = t % x;
		s->thread[1] = t / x % y;
		s->thread[2] = t / x / y;
	}
}

void report_memory(struct cluster *c, struct finding *f, unsigned side, unsigned peer,
	uint64_t addr, uint32_t bytes)
{
	struct finding_side *s = &f->side[side];

	s->space = SP_SHARED;
	s->peer = (uint16_t)peer;
	s->addr = addr;
	s->bytes = bytes;
	launch_symbol(&c->check->config.launch, addr,
		bytes == 8 && mbar_of(c, peer, (uint32_t)addr), s->variable, sizeof s->variable);
}

void report_mbar(struct cluster *c, struct finding *f, const struct mbar *m)
{
	struct finding_barrier *b = &f->barrier;

	snprintf(b->kind, sizeof b->kind, "mbarrier");
	launch_symbol(&c->check->config.launch, m->addr, true, b->name, sizeof b->name);
	if (!*b->name)
		snprintf(b->name, sizeof b->name, "at shared+0x%x", m->addr);
	b->peer = m->cta;
	b->addr = m->addr;
	b->phase = m->phase;
	b->expected = m->expected;
	b->pending = m->pending;
	b->tx = m->tx;
	b->init = m->init.site;
}

const char *report_place(uint32_t site, char to[PLACE_BYTES])
{
	const struct site *s = site_get(site);
	const struct site_loc *l = site_headline(s->loc);
	const char *file = l ? l->file : s->module, *slash = strrchr(file, '/');
	const struct site_loc *at = l ? l->inlined_at : NULL;
	int n = snprintf(to, PLACE_BYTES, "%s:%u", slash ? slash + 1 : file, l ? l->line : s->ptx_line);

	while (at && site_in_library(at->file))
		at = at->inlined_at;
	if (!at || n >= PLACE_BYTES)
		return to;
	slash = strrchr(at->file, '/');
	snprintf(to + n, (size_t)(PLACE_BYTES - n), " (called at %s:%u)", slash ? slash + 1 : at->file,
		at->line);
	return to;
}

uint32_t report_narrower(uint32_t release, uint32_t acquire)
{
	return edit_has_modifier(site_get(release)->ptx, ".cta") ? release : acquire;
}

void report_edge(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->edge, sizeof f->edge, fmt, ap);
	va_end(ap);
}

void report_hint(struct finding *f, unsigned hint, const char *fmt, ...)
{
	va_list ap;

	f->hint_id = (uint16_t)hint;
	va_start(ap, fmt);
	vsnprintf(f->hint, sizeof f->hint, fmt, ap);
	va_end(ap);
}

void report_edit(struct finding *f, uint32_t site, enum finding_edit_kind kind, const char *form, ...)
{
	char filled[sizeof f->edit.ptx];
	va_list ap;

	va_start(ap, form);
	vsnprintf(filled, sizeof filled, form, ap);
	va_end(ap);
	edit_set(f, kind, site, 0, filled);
}

void report_words(struct finding *f, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(f->edit.words, sizeof f->edit.words, format, ap);
	va_end(ap);
}

void report_between(struct finding *f, uint32_t site, uint32_t until, enum finding_edit_kind kind,
	const char *form, ...)
{
	char filled[sizeof f->edit.ptx];
	va_list ap;

	va_start(ap, form);
	vsnprintf(filled, sizeof filled, form, ap);
	va_end(ap);
	edit_set(f, kind, site, until, filled);
}
