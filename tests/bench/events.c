/* events: events that the checker processes in a second of processor time, by kind, in one
 * thread. A rate of this machine; nothing is asserted. */
#include "tests/common/event_dsl.h"

#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Ends the run and prints its rates. */
static void show(const char *what, double from)
{
	double t = now() - from;
	const struct finding *const *f;
	struct check_stats s;
	size_t n;

	check_cluster_end(checker, sink);
	check_stats(checker, &s);
	n = check_findings(checker, &f);
	printf("%-34s %7.2f M events/s %8.1f M granules/s %5.2f ns/granule  %zu findings\n", what,
		1e-6 * (double)s.events / t, 1e-6 * (double)s.granules / t,
		1e9 * t / (double)(s.granules ? s.granules : 1), n);
	check_close(checker);
}

/* Eight warps write 128 bytes each, then read those of the next warp, with a barrier after each
 * step. */
static void contiguous(unsigned rounds)
{
	double t;

	begin(8);
	for (t = now(); rounds--;) {
		for (unsigned i = 0; i < 4; i++)
			for (unsigned w = 0; w < 8; w++)
				wr(w, ALL, (i * 8 + w) * 128, 4);
		bar_all();
		for (unsigned i = 0; i < 4; i++)
			for (unsigned w = 0; w < 8; w++)
				rd(w, ALL, (i * 8 + (w + 1) % 8) * 128, 4);
		bar_all();
	}
	show("contiguous warp accesses", t);
}

/* The same bytes by rows, as in ldmatrix: 16 bytes for each lane. */
static void rows(unsigned rounds)
{
	uint64_t addr[32];
	double t;

	for (unsigned l = 0; l < 32; l++)
		addr[l] = l * 128 + (l & 7) * 16;
	begin(8);
	for (t = now(); rounds--;)
		for (unsigned w = 0; w < 8; w++)
			emit((struct event){ .kind = EV_ACCESS, W(w), .access = { .space = SP_SHARED,
				.mode = MODE_READ, .flags = ACCESS_MATRIX, .bytes = 16,
				.at.lane = addr } });
	show("ldmatrix rows", t);
}

/* A stage of 16 KiB filled by TMA and read by wgmma, 32-byte pieces of rows. */
static void stages(unsigned rounds, bool compute)
{
	static struct ev_span span[64 + 128];
	double t;

	for (unsigned i = 0; i < 64 + 128; i++)
		span[i] = (struct ev_span){ (i < 64 ? 0 : 0x2000) + i % 64 * 128, 32 };
	begin(5);
	mb_init(4, 0, 0x4000, 1);
	mb_init(4, 0, 0x4040, 4);
	bar_all();
	t = now();
	for (unsigned k = 0; k < rounds; k++) {
		mb_wait(4, L(0), 0x4040, (k & 1) ^ 1);
		arrive_tx(4, 0, 0x4000, 0x4000);
		load(4, 0, k + 1, 0, 0x4000, 0x4000);
		signal_tx(4, k + 1, 0x4000, 0x4000);
		for (unsigned w = 0; w < 4; w++)
			mb_wait(w, ALL, 0x4000, k & 1);
		if (compute) {
			wg_fence(0);
			for (unsigned i = 0; i < 4; i++)
				emit((struct event){ .kind = EV_WGMMA, .wgmma = {
					.spans = { span, 192 },
					.parts = { { 0, 16, 32, 48, 64, 192 } } } });
			wg_commit(0);
			wg_wait(0, 0);
		}
		for (unsigned w = 0; w < 4; w++)
			arrive(w, L(0), 0x4040);
	}
	show(compute ? "TMA boxes and wgmma span lists" : "TMA boxes of 16 KiB", t);
}

int main(void)
{
	contiguous(20000);
	rows(50000);
	stages(4000, false);
	stages(2000, true);
	return 0;
}
