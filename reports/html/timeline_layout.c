/* timeline_layout: chooses the steps and lanes of a timeline, and computes positions. */
#include "reports/html/timeline.h"

#include <stdlib.h>

/* Both sides should be visible at once. If the earlier one is more than FAR steps back, the
 * drawing has only the steps up to NEAR before and after it, a gap, and the last steps. */
#define FAR 38u
#define NEAR 9u
#define MAX_WARPS 10u    /* with a lane of their own */

static void pick_range(struct timeline *p, uint32_t from, uint32_t to)
{
	for (; from < to && p->n < MAX_STEPS; from++)
		p->pick[p->n++] = from;
}

/* Chooses the newest steps, and those around the earlier side. */
static void pick_steps(struct timeline *p)
{
	const struct history *y = p->y;
	const uint32_t newest = y->nsteps > MAX_STEPS ? y->nsteps - MAX_STEPS : 0;
	uint32_t early;

	if (y->side[1] < 0 || (uint32_t)y->side[1] + FAR >= y->nsteps) {
		pick_range(p, newest, y->nsteps);
		return;
	}
	early = (uint32_t)y->side[1];
	pick_range(p, early > NEAR ? early - NEAR : 0, early + NEAR + 1);
	pick_range(p, y->nsteps - (FAR - NEAR - 1), y->nsteps);
}

const struct lane *timeline_lane(const struct timeline *p, unsigned cta, unsigned warp,
	enum engine e)
{
	for (unsigned i = 0; i < p->nlanes; i++)
		if (p->lane[i].cta == cta && p->lane[i].engine == e
				&& (e != WARP || p->lane[i].warp == warp))
			return &p->lane[i];
	return NULL;
}

static void add_lane(struct timeline *p, unsigned cta, unsigned warp, enum engine e)
{
	unsigned warps = 0;

	if (timeline_lane(p, cta, warp, e) || p->nlanes == MAX_LANES)
		return;
	for (unsigned i = 0; i < p->nlanes; i++)
		warps += p->lane[i].engine == WARP && p->lane[i].warp != HISTORY_OTHERS;
	if (e == WARP && warps >= MAX_WARPS) {
		warp = HISTORY_OTHERS;
		if (timeline_lane(p, cta, warp, e))
			return;
	}
	p->lane[p->nlanes++] = (struct lane){ (uint16_t)cta, (uint16_t)warp, (uint8_t)e };
}

static int by_lane(const void *a, const void *b)
{
	const struct lane *l = a, *k = b;

	if (l->cta != k->cta)
		return l->cta < k->cta ? -1 : 1;
	if (l->engine != k->engine)
		return l->engine < k->engine ? -1 : 1;
	return l->warp < k->warp ? -1 : l->warp > k->warp;
}

static void find_lanes(struct timeline *p)
{
	for (unsigned i = 0; i < p->f->nsides; i++)
		add_lane(p, history_side_cta(p->f, i), p->f->side[i].warp, WARP);
	for (uint32_t i = 0; i < p->n; i++) {
		const struct history_step *s = &p->y->step[p->pick[i]];

		if (step_is_signal((enum step_kind)s->kind) || step_is_issue(s))
			add_lane(p, s->cta, 0, step_engine(s));
		if (!step_is_signal((enum step_kind)s->kind))
			add_lane(p, s->cta, s->warp, WARP);
	}
	qsort(p->lane, p->nlanes, sizeof *p->lane, by_lane);
	for (unsigned i = 1; i < p->nlanes; i++)
		p->ctas |= p->lane[i].cta != p->lane[0].cta;
	p->ctas |= p->lane[0].cta != 0;
}

int timeline_x(const struct timeline *p, uint32_t i)
{
	return LEFT + (int)(i + p->shift) * COLUMN + COLUMN / 2;
}

int timeline_lane_y(const struct timeline *p, const struct lane *l)
{
	return TOP + (int)(l - p->lane) * LANE + LANE / 2;
}

int timeline_step_y(const struct timeline *p, const struct history_step *s)
{
	const struct lane *l = timeline_lane(p, s->cta, s->warp, step_is_signal((enum step_kind)s->kind)
		? step_engine(s) : WARP);

	if (!l)
		l = timeline_lane(p, s->cta, HISTORY_OTHERS, WARP);
	return timeline_lane_y(p, l ? l : p->lane);
}

int timeline_side_x(const struct timeline *p, unsigned side)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->y->side[side] == (int32_t)p->pick[i])
			return timeline_x(p, i);
	return -1;
}

void timeline_choose(struct timeline *p)
{
	pick_steps(p);
	for (unsigned i = 0; i < p->f->nsides; i++)
		p->shift |= timeline_side_x(p, i) < 0;
	find_lanes(p);
}

int timeline_axis_y(const struct timeline *p)
{
	return TOP + (int)p->nlanes * LANE + 6;
}
