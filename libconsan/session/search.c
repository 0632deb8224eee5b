/* search: controlled schedules of one launch, systematically (explore.h). Stateless bounded search
 * with partial-order reduction: from each schedule that ran, the next ones follow by one switch
 * more, at a later step. A switch from the warp that performs step i to another one matters only if
 * that one later performs an access that conflicts with step i (Flanagan and Godefroid, POPL 2005;
 * with a bound: Coons, Musuvathi and McKinley, OOPSLA 2013). */
#include "explore.h"

#include "libconsan/event/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct candidate { /* a schedule to run */
	struct exec_switch at[FINDING_SWITCHES];
	size_t n;
};

static bool conflict(const struct exec_step *a, const struct exec_step *b)
{
	return a->warp != b->warp && a->places & b->places && (a->mode | b->mode) & MODE_WRITE;
}

static bool performs_conflict(const struct exec_steps *s, size_t from, uint32_t warp)
{
	for (size_t j = from + 1; j < s->step.n; j++)
		if (s->step.at[j].warp == warp && conflict(&s->step.at[from], &s->step.at[j]))
			return true;
	return false;
}

typedef VEC(struct candidate) candidates;

static void add_successors(candidates *queue, const struct candidate *c, const struct exec_steps *s)
{
	for (size_t i = c->n ? c->at[c->n - 1].step + 1 : 0; i < s->step.n; i++) {
		const struct exec_step *step = &s->step.at[i];

		for (uint32_t k = 0; k < step->nready; k++) {
			const uint32_t warp = s->ready.at[step->ready + k];
			struct candidate next = *c;

			if (!performs_conflict(s, i, warp))
				continue;
			next.at[next.n++] = (struct exec_switch){ (uint32_t)i, warp };
			vec_push(queue, next);
		}
	}
}

/* The schedules with one switch are dealt out to the parts, and each part has those that follow from its
 * own. */
static void keep_part(candidates *queue, size_t from, const struct explorer *x)
{
	size_t kept = from;

	for (size_t i = from; i < queue->n; i++)
		if ((i - from) % x->parts == x->part - 1)
			queue->at[kept++] = queue->at[i];
	queue->n = kept;
}

void explore_search(const struct explorer *x, uint64_t most, struct explored *out)
{
	/* the schedule without switches shows the others, so each part runs it; it belongs to the first */
	struct explored unowned = { 0 };
	struct explorer unheard = *x;
	candidates queue = { 0 };
	bool recorded = true;
	uint64_t tried = 0;
	size_t at;

	unheard.found = NULL;
	vec_push(&queue, (struct candidate){ 0 });
	for (at = 0; at < queue.n && tried < most && !out->limited && !unowned.limited; at++) {
		const struct candidate c = queue.at[at];
		const bool owned = c.n || x->part == 1;
		struct exec_steps steps = { 0 };
		struct exec_control control = { .at = c.at, .n = c.n, .steps = &steps };

		tried += owned;
		if (explore_one(owned ? x : &unheard, x->seed, &control, owned ? out : &unowned)) {
			out->schedules += owned;
			recorded &= steps.n == steps.step.n;
			if (c.n < FINDING_SWITCHES)
				add_successors(&queue, &c, &steps);
			if (!c.n)
				keep_part(&queue, 1, x);
		}
		exec_steps_free(&steps);
	}
	out->lost += unowned.lost;
	out->waited += unowned.waited;
	out->limited |= unowned.limited;
	out->all = recorded && at == queue.n && !out->lost && !out->waited;
	explored_free(&unowned);
	vec_free(&queue);
}

/* ---- the option ---- */

void schedule_format(char *out, size_t n, uint32_t launch, const struct exec_control *c)
{
	int k = snprintf(out, n, "%u:%s", launch, c->reverse ? "reverse" : "");

	for (size_t i = 0; i < c->n && k >= 0 && (size_t)k < n; i++)
		k += snprintf(out + k, n - (size_t)k, "%s%u@%u", i ? "," : "", c->at[i].step,
			c->at[i].warp);
}

bool schedule_parse(const char *text, struct schedule *s)
{
	int used = 0;

	*s = (struct schedule){ 0 };
	if (sscanf(text, "%u:%n", &s->launch, &used) != 1 || !used)
		return false;
	s->reverse = !strcmp(text + used, "reverse");
	for (text += s->reverse ? (int)strlen(text) : used; *text; text += used) {
		struct exec_switch *at = &s->at[s->n];

		used = 0;
		if (s->n == ARRAY_SIZE(s->at) || (s->n && *text++ != ',')
			|| sscanf(text, "%u@%u%n", &at->step, &at->warp, &used) != 2)
			return false;
		s->n++;
	}
	return true;
}
