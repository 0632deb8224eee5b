/* group: see group.h. Findings that are related form sets (RELATED), then sets of consequences join
 * the set of their cause (FOLLOWS). */
#include "group.h"

#include "group_internal.h"
#include "hint_codes.h"
#include "rule_codes.h"

#include <stdlib.h>
#include <string.h>

#define FAMILY(name, span, meaning)
#define MEMBER(rule, family, family_mbarrier, sure)
#define BY_HINT(hint, rule, family, surer, surer_in_warp)
#define SURER(rule, with, surer)
#define RELATED(a, b, link)
#define FOLLOWS(consequence, cause, link)

static const unsigned spans[] = {
#undef FAMILY
#define FAMILY(name, span, meaning) [FAMILY_##name] = span,
#include "group.def"
#undef FAMILY
#define FAMILY(name, span, meaning)
};

static const struct member { enum family family, with_mbarrier; int sure; } members[] = {
#undef MEMBER
#define MEMBER(rule, family, family_mbarrier, sure) \
	[rule] = { FAMILY_##family, FAMILY_##family_mbarrier, sure },
#include "group.def"
#undef MEMBER
#define MEMBER(rule, family, family_mbarrier, sure)
};

static const struct {
	unsigned hint, rule;
	enum family family;
	int surer, surer_in_warp;
} by_hint[] = {
#undef BY_HINT
#define BY_HINT(hint, rule, family, surer, surer_in_warp) \
	{ HINT_##hint, rule, FAMILY_##family, surer, surer_in_warp },
#include "group.def"
#undef BY_HINT
#define BY_HINT(hint, rule, family, surer, surer_in_warp)
};

static const struct { unsigned rule, with; int surer; } surer_with[] = {
#undef SURER
#define SURER(rule, with, surer) { rule, with, surer },
#include "group.def"
#undef SURER
#define SURER(rule, with, surer)
};

static const struct { enum family a, b; enum link link; } related[] = {
#undef RELATED
#define RELATED(a, b, link) { FAMILY_##a, FAMILY_##b, LINK_##link },
#include "group.def"
#undef RELATED
#define RELATED(a, b, link)
};

static const struct { enum family consequence, cause; enum link link; } follows[] = {
#undef FOLLOWS
#define FOLLOWS(consequence, cause, link) \
	{ FAMILY_##consequence, FAMILY_##cause, LINK_##link },
#include "group.def"
#undef FOLLOWS
#define FOLLOWS(consequence, cause, link)
};

/* Each rule has one row. */
_Static_assert(0
#undef MEMBER
#define MEMBER(rule, family, family_mbarrier, sure) + 1
#include "group.def"
#define RULE(code, severity, ids, title, why, fix) - 1
#include "rules.def"
#undef RULE
	== 0, "a rule without a family, or with two");

/* ---- items ---- */

static struct group_item item_of(struct finding *f, uint32_t number)
{
	const struct member *m = &members[f->rule < ARRAY_SIZE(members) ? f->rule : CS000];
	struct group_item it = { .f = f, .sure = m->sure, .parent = number };
	bool in_warp;

	in_warp = f->nsides == 2 && f->side[0].warp == f->side[1].warp
		&& f->side[0].cta == f->side[1].cta;
	it.family = strcmp(f->barrier.kind, "mbarrier") ? m->family : m->with_mbarrier;
	for (size_t i = 0; i < ARRAY_SIZE(by_hint); i++)
		if (by_hint[i].hint == f->hint_id && by_hint[i].rule == f->rule) {
			it.family = by_hint[i].family;
			it.sure += by_hint[i].surer + in_warp * by_hint[i].surer_in_warp;
		}
	it.span = spans[it.family];
	return it;
}

/* By the time of occurrence in their launches; what has no time comes last. */
static int by_occurrence(const void *p, const void *q)
{
	const struct finding *a = ((const struct group_item *)p)->f;
	const struct finding *b = ((const struct group_item *)q)->f;

	if (a->launch != b->launch)
		return a->launch < b->launch ? -1 : 1;
	if (a->order != b->order)
		return a->order - 1 < b->order - 1 ? -1 : 1;
	return finding_compare(a, b);
}

static uint32_t root(struct group_item *item, uint32_t i)
{
	while (item[i].parent != i)
		i = item[i].parent = item[item[i].parent].parent;
	return i;
}

/* The root is the item of the lowest number. */
static void join(struct group_item *item, uint32_t a, uint32_t b)
{
	a = root(item, a);
	b = root(item, b);
	item[a > b ? a : b].parent = a > b ? b : a;
}

/* ---- one cause ---- */

/* Joins the items of families a and b among those with one key. */
static void join_bucket(struct group_item *item, const struct group_key *k, size_t n,
	enum family a, enum family b)
{
	const struct group_key *first_a = NULL, *first_b = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!first_a && item[k[i].item].family == a)
			first_a = &k[i];
		if (!first_b && item[k[i].item].family == b)
			first_b = &k[i];
	}
	if (!first_a || !first_b)
		return;
	for (size_t i = 0; i < n; i++) {
		if (item[k[i].item].family == a)
			join(item, k[i].item, first_b->item);
		if (item[k[i].item].family == b)
			join(item, k[i].item, first_a->item);
	}
}

/* Findings that disappeared with one edit when the launch was run again have one cause. */
static void join_edits(struct group_item *item, const struct group_keys *keys)
{
	const struct group_key *k = keys->link[LINK_EDIT].at;

	for (size_t i = 1; i < keys->link[LINK_EDIT].n; i++)
		if (k[i].key == k[i - 1].key)
			join(item, k[i].item, k[i - 1].item);
}

static void join_related(struct group_item *item, const struct group_keys *keys)
{
	for (size_t r = 0; r < ARRAY_SIZE(related); r++) {
		const struct group_key *k = keys->link[related[r].link].at;
		const size_t n = keys->link[related[r].link].n;

		for (size_t i = 0, end; i < n; i = end) {
			for (end = i + 1; end < n && k[end].key == k[i].key; end++)
				;
			join_bucket(item, k + i, end - i, related[r].a, related[r].b);
		}
	}
}

/* ---- the headline ---- */

/* Names a of one group its cause more surely than b? */
static bool surer(const struct group_item *a, const struct group_item *b)
{
	/* a consequence is no cause, and a note is none of anything else */
	const bool note_a = a->f->severity == SEV_NOTE, note_b = b->f->severity == SEV_NOTE;

	if (a->consequence != b->consequence)
		return b->consequence;
	if (note_a != note_b)
		return note_b;
	if (a->sure / 10 != b->sure / 10)
		return a->sure / 10 > b->sure / 10;
	if (a->f->launch != b->f->launch || a->f->order != b->f->order)
		return by_occurrence(a, b) < 0;
	if (a->sure != b->sure)
		return a->sure > b->sure;
	return by_occurrence(a, b) < 0;
}

/* head[i]: for a root the surest item of its set */
static void find_heads(struct group_item *item, size_t n, uint32_t *head)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t r = root(item, i);

		if (r == i || surer(&item[i], &item[head[r]]))
			head[r] = i;
	}
}

/* Applies SURER. The items of a key are in the order of their occurrence. */
static void compare_with_others(struct group_item *item, const struct group_keys *keys)
{
	const struct group_key *k = keys->link[LINK_PLACE].at;
	const size_t n = keys->link[LINK_PLACE].n;

	for (size_t s = 0; s < ARRAY_SIZE(surer_with); s++) {
		const struct finding *with = NULL;

		for (size_t i = 0; i < n; i++) {
			struct group_item *it = &item[k[i].item];

			if (!i || k[i].key != k[i - 1].key)
				with = NULL;
			for (size_t j = i; !with && j < n && k[j].key == k[i].key; j++)
				if (item[k[j].item].f->rule == surer_with[s].with)
					with = item[k[j].item].f;
			if (it->f->rule == surer_with[s].rule && with && with->launch == it->f->launch
					&& with->order <= it->f->order)
				it->sure += surer_with[s].surer;
		}
	}
}

/* ---- consequences ---- */

/* Of a set, by its root: the cause that the first row of FOLLOWS names. */
struct cause { uint32_t item; size_t row; bool found; };

struct search {
	struct group_item *item;
	const uint32_t *head;    /* of each set */
	struct cause *cause;     /* of each set */
	size_t row;
};

static bool in_time(const struct finding *cause, const struct finding *consequence)
{
	return cause->order && cause->order <= consequence->order;
}

/* Takes item `cause` for the set of `consequence` if that has none of an earlier row or item. */
static void take_cause(struct search *s, uint32_t consequence, uint32_t cause)
{
	struct cause *c = &s->cause[root(s->item, consequence)];

	if (!c->found || (c->row == s->row && cause < c->item))
		*c = (struct cause){ cause, s->row, true };
}

/* Items that have the link in common, and consequences that are notes, or are none: a note causes
 * nothing but notes. The earliest cause counts; it may be in the set of the consequence, where the
 * earliest one of another set does. */
static void search_bucket(struct search *s, const struct group_key *k, size_t n, bool notes)
{
	const bool later = follows[s->row].link == LINK_LATER;
	uint32_t cause[2], found = 0;

	for (size_t i = 0; i < n && found < 2; i++) {
		const struct group_item *it = &s->item[k[i].item];

		if (it->family == follows[s->row].cause && (notes || it->f->severity > SEV_NOTE)
				&& (!found || root(s->item, k[i].item) != root(s->item, cause[0])))
			cause[found++] = k[i].item;
	}
	for (size_t i = 0; i < n && found; i++) {
		const struct group_item *it = &s->item[k[i].item];
		const uint32_t set = root(s->item, k[i].item);
		const uint32_t c = root(s->item, cause[0]) == set ? 1 : 0;

		if (it->family != follows[s->row].consequence || notes != (it->f->severity == SEV_NOTE)
				|| s->item[s->head[set]].family != follows[s->row].consequence)
			continue;
		if (c < found && (!later || in_time(s->item[cause[c]].f, it->f)))
			take_cause(s, k[i].item, cause[c]);
	}
}

static void join_causes(struct group_item *item, uint32_t n, const struct group_keys *keys,
	const uint32_t *head)
{
	struct search s = { item, head, base_alloc(n * sizeof *s.cause), 0 };

	for (s.row = 0; s.row < ARRAY_SIZE(follows); s.row++) {
		const bool later = follows[s.row].link == LINK_LATER;
		const enum link link = later ? LINK_KERNEL : follows[s.row].link;
		const struct group_key *k = keys->link[link].at;

		for (size_t i = 0, end; i < keys->link[link].n; i = end) {
			end = i + 1;
			while (end < keys->link[link].n && k[end].key == k[i].key && (!later
					|| item[k[end].item].f->launch == item[k[i].item].f->launch))
				end++;
			search_bucket(&s, k + i, end - i, false);
			search_bucket(&s, k + i, end - i, true);
		}
	}
	for (uint32_t i = 0; i < n; i++)
		item[i].consequence = s.cause[root(item, i)].found;
	for (uint32_t i = 0; i < n; i++)
		if (s.cause[i].found)
			join(item, i, s.cause[i].item);
	free(s.cause);
}

/* ---- the result ---- */

static int by_group_and_rank(const void *p, const void *q)
{
	const struct finding *a = p, *b = q;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return (a->rank > b->rank) - (a->rank < b->rank);
}

struct head { uint32_t root; enum severity severity; };

/* By severity; then the group that began first, as later ones may follow from it after all. */
static int by_importance(const void *p, const void *q)
{
	const struct head *a = p, *b = q;

	if (a->severity != b->severity)
		return a->severity > b->severity ? -1 : 1;
	return (a->root > b->root) - (a->root < b->root);
}

/* Numbers the groups, and the findings of each in the order of the items. */
static void number(struct group_item *item, uint32_t n, const uint32_t *head)
{
	struct head *group = base_alloc(n * sizeof *group);
	uint32_t *number_of = base_alloc(n * sizeof *number_of), *next, ngroups = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t r = root(item, i);

		if (r == i) {
			number_of[r] = ngroups;
			group[ngroups++] = (struct head){ r, item[r].f->severity };
		}
		if (group[number_of[r]].severity < item[i].f->severity)
			group[number_of[r]].severity = item[i].f->severity;
	}
	qsort(group, ngroups, sizeof *group, by_importance);
	for (uint32_t g = 0; g < ngroups; g++)
		number_of[group[g].root] = g;
	next = base_alloc(ngroups * sizeof *next);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t r = root(item, i);

		item[i].f->group = number_of[r];
		item[i].f->rank = head[r] == i ? 0 : ++next[number_of[r]];
	}
	free(next);
	free(number_of);
	free(group);
}

void group_findings(struct finding *f, size_t count)
{
	const uint32_t n = (uint32_t)count;
	struct group_keys keys = { 0 };
	struct group_item *item;
	uint32_t *head;

	if (!n)
		return;
	item = base_alloc(n * sizeof *item);
	head = base_alloc(n * sizeof *head);
	for (uint32_t i = 0; i < n; i++)
		item[i] = item_of(&f[i], 0);
	qsort(item, n, sizeof *item, by_occurrence);
	for (uint32_t i = 0; i < n; i++)
		item[i].parent = i;
	group_make_keys(&keys, item, n);
	compare_with_others(item, &keys);
	join_related(item, &keys);
	join_edits(item, &keys);
	find_heads(item, n, head);
	join_causes(item, n, &keys, head);
	find_heads(item, n, head);
	number(item, n, head);
	for (unsigned l = 0; l < KEY_LINKS; l++)
		vec_free(&keys.link[l]);
	free(head);
	free(item);
	qsort(f, n, sizeof *f, by_group_and_rank);
}

enum severity group_severity(const struct finding *f, size_t *n)
{
	enum severity highest = f->severity;
	size_t k = 1;

	for (; k < *n && f[k].group == f->group; k++)
		if (f[k].severity > highest)
			highest = f[k].severity;
	*n = k;
	return highest;
}
