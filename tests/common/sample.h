/* sample: constructed findings for tests of results and reports. */
#ifndef CONSAN_TESTS_SAMPLE_H
#define CONSAN_TESTS_SAMPLE_H

#include "libconsan/event/event.h"
#include "libconsan/finding/finding.h"
#include "libconsan/event/site.h"
#include "libconsan/finding/rule_codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline uint32_t sample_site(const char *file, uint32_t line, uint32_t col,
	const char *ptx)
{
	struct site_loc outer = { .file = file, .line = line + 100, .col = 5 };
	struct site_loc loc = { file, line, col, "_Z4loadPf", &outer, 0 };
	struct site s = { .kernel = "_Z6reducePfi", .module = "prog.ptx",
		.ptx_line = line * 10, .ptx = ptx, .loc = &loc };

	return site_intern(&s);
}

static inline struct finding sample_race(const char *file, uint32_t line)
{
	struct finding f = {
		.rule = CS102, .severity = SEV_ERROR, .launch = 3, .nsides = 2,
		.seen = 1024, .clusters = 8, .seed = 7,
	};

	snprintf(f.kernel, sizeof f.kernel, "_Z6reducePfi");
	f.side[0] = (struct finding_side){
		.site = sample_site(file, line, 5, "ld.shared.f32 %f1, [%r1+128];"),
		.what = "read", .ctaid = { 3, 0, 0 }, .warp = 1, .lane = 12,
		.thread = { 44, 0, 0 }, .space = SP_SHARED, .addr = 0x80, .bytes = 4,
		.variable = "tile+0x80",
	};
	f.side[1] = (struct finding_side){
		.site = sample_site(file, line + 4, 0, "st.shared.f32 [%r2], %f2;"),
		.what = "write", .ctaid = { 3, 0, 0 }, .warp = 0, .lane = -1,
		.space = SP_SHARED, .addr = 0x80, .bytes = 128,
	};
	snprintf(f.edge, sizeof f.edge, "no barrier between the write and the read");
	snprintf(f.hint, sizeof f.hint, "put __syncthreads() after the write");
	return f;
}

static inline struct finding sample_hang(void)
{
	struct finding f = {
		.rule = CS703, .severity = SEV_ERROR, .launch = 4, .nsides = 1, .seen = 1, .clusters = 1,
		.nwaiters = 5,
	};

	snprintf(f.kernel, sizeof f.kernel, "_Z4ringPf");
	f.side[0] = (struct finding_side){
		.site = sample_site("ring.cu", 55, 3, "mbarrier.try_wait.parity.shared.b64 p, [a], 1;"),
		.what = "mbarrier wait", .lane = -1,
	};
	f.barrier = (struct finding_barrier){ .kind = "mbarrier", .name = "full[1]",
		.addr = 0x28, .phase = 3, .expected = 2, .pending = 1, .tx = -4096 };
	f.waiter = calloc(f.nwaiters, sizeof *f.waiter);
	for (unsigned i = 0; i < f.nwaiters; i++) {
		f.waiter[i].who = f.side[0];
		f.waiter[i].who.warp = (uint16_t)i;
		f.waiter[i].on = f.barrier;
		snprintf(f.waiter[i].text, sizeof f.waiter[i].text,
			"waits for phase 3 (parity 1); 1 of 2 arrivals missing");
	}
	f.waiter[4].on = (struct finding_barrier){ .kind = "named barrier", .addr = 2,
		.expected = 160, .pending = 32 };
	snprintf(f.waiter[4].text, sizeof f.waiter[4].text, "32 of 160 threads missing");
	return f;
}

#endif
