/* history_sample: a constructed history, for findings that reports draw. */
#ifndef CONSAN_TESTS_HISTORY_SAMPLE_H
#define CONSAN_TESTS_HISTORY_SAMPLE_H

#include "libconsan/finding/finding.h"
#include "libconsan/finding/rule_codes.h"
#include "tests/common/sample.h"

/* n steps of a producer and a consumer; side 1 after a third of them, side 0 last. */
static inline struct history *sample_history(uint32_t n)
{
	struct history *h = base_alloc(sizeof *h);

	h->step = base_alloc((n + 1) * sizeof *h->step);
	h->nsteps = n;
	h->before = 7;
	h->shared = 65536;
	h->side[0] = (int32_t)n - 1;
	h->side[1] = (int32_t)n / 3;
	for (uint32_t i = 0; i < n; i++)
		h->step[i] = (struct history_step){ .at = i + 1, .phase = i / 6, .site = sample_site("ring.cu",
			i % 9 + 1, 0, "mbarrier;"), .lanes = 1, .addr = 8, .count = 1, .op = i / 6 + 1,
			.warp = i % 6 > 3, .bytes = 4096, .tx = 4096,
			.kind = (const uint8_t[]){ STEP_arrive_expect, STEP_bulk_load, STEP_proxy_fence,
				STEP_signal, STEP_wait, STEP_mma }[i % 6], .completes = i % 6 == 3 };
	h->mbarrier = base_alloc(sizeof *h->mbarrier);
	h->mbarrier[0] = (struct history_mbarrier){ .name = "full", .addr = 8, .count = 1,
		.pending = 1, .phase = 2, .live = true, .recent = { { 0, 1, 4096, 4096, 0, 0 },
		{ 1, 1, 4096, 4096, 0, 0 }, { 2, 0, 0, 0, 0, 0 } }, .arriver = { { 0, 4 } }, .narrivers = 1 };
	h->nmbarriers = 1;
	h->buffer = base_alloc(2 * sizeof *h->buffer);
	h->buffer[0] = (struct history_buffer){ .name = "tile", .bytes = 4096 };
	h->buffer[1] = (struct history_buffer){ .kind = BUFFER_STAGE, .addr = 0, .bytes = 1024,
		.site = h->step[0].site };
	h->nbuffers = 2;
	return h;
}

/* A race with a history, a hang and a note. */
static inline void sample_three(struct results *r)
{
	struct finding race = sample_race("reduce.cu", 17), hang = sample_hang();
	struct finding note = sample_race("reduce.cu", 80);

	race.history = sample_history(60);
	note.rule = CS801;
	note.severity = SEV_NOTE;
	results_add_finding(r, &note);
	results_add_finding(r, &hang);
	results_add_finding(r, &race);
	finding_free(&race);
	finding_free(&hang);
}

#endif
