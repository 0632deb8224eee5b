/* timeline: what the timeline of a finding shows. Private to timeline.c, which draws it, and
 * timeline_layout.c, which chooses steps and lanes and computes positions. */
#ifndef CONSAN_REPORTS_TIMELINE_H
#define CONSAN_REPORTS_TIMELINE_H

#include "reports/html/html.h"
#include "reports/steps.h"

#define MAX_STEPS 96u    /* of a drawing */
#define MAX_LANES 20u

/* Lengths in SVG units. */
#define LEFT 10
#define TOP 148          /* height of the labels */
#define COLUMN 21
#define LANE 30

struct lane {
	uint16_t cta, warp;
	uint8_t engine;
};

struct timeline {
	struct html *h;
	const struct finding *f;
	const struct history *y;
	uint32_t pick[MAX_STEPS], n; /* steps that are drawn; pick[i] is in column i + shift */
	unsigned shift;            /* 1: the first column is for a side that precedes all steps */
	struct lane lane[MAX_LANES];
	unsigned nlanes;
	bool ctas;                 /* several CTAs: the names of lanes include the CTA */
};

/* Chooses the steps and lanes; none if the history is empty. */
void timeline_choose(struct timeline *p);

/* NULL if there is no such lane. */
const struct lane *timeline_lane(const struct timeline *p, unsigned cta, unsigned warp,
	enum engine e);

/* The x of the column of pick[i]. */
int timeline_x(const struct timeline *p, uint32_t i);
/* The x of a side; -1 if it precedes all drawn steps. */
int timeline_side_x(const struct timeline *p, unsigned side);
int timeline_axis_y(const struct timeline *p);
/* The y of a lane, and of a step's symbol. */
int timeline_lane_y(const struct timeline *p, const struct lane *l);
int timeline_step_y(const struct timeline *p, const struct history_step *s);

#endif
