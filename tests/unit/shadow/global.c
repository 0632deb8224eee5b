/* The shadow of global memory against a model that keeps everything, and the lanes of a record's
 * forms. */
#include "shadow/global.h"
#include "tests/common/limits.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#define CLUSTERS 4u
#define BYTES 8192u
#define BASE 0x7f000000f000ull /* the bytes from here on are in two zones of the log */

static bool conflicted[64]; /* the cluster read what another wrote, or wrote it */

struct test_accessor {
	struct global_accessor accessor;
	bool conflict[CLUSTERS][CLUSTERS];
};

/* A cluster is one thread here: it is ordered after its own accesses only. */
static enum global_verdict classify(struct global_accessor *a, const struct global_record *old,
	const struct global_record *now, uint64_t addr, uint32_t bytes, bool *lanewise)
{
	struct test_accessor *k = (struct test_accessor *)a;

	cr_assert(bytes && addr % GRANULE == 0);
	*lanewise = now->site % 3 == 0; /* always allowed */
	if (old->cluster == now->cluster)
		return GLOBAL_ORDERED;
	if (!((old->flags | now->flags) & GR_WRITE))
		return GLOBAL_UNORDERED;
	__atomic_store_n(&conflicted[old->cluster % 64], true, __ATOMIC_RELAXED);
	__atomic_store_n(&conflicted[now->cluster % 64], true, __ATOMIC_RELAXED);
	if (old->cluster >= CLUSTERS || now->cluster >= CLUSTERS)
		return GLOBAL_CONFLICT;
	k->conflict[old->cluster][now->cluster] = k->conflict[now->cluster][old->cluster] = true;
	return GLOBAL_CONFLICT;
}

static uint32_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*seed >> 33);
}

static void trial(uint64_t seed)
{
	static uint8_t read[CLUSTERS][BYTES], written[CLUSTERS][BYTES];
	struct test_accessor k = { .accessor = { .synchronised = true, .classify = classify } };
	bool want[CLUSTERS][CLUSTERS] = { 0 };
	struct global_shadow *g = global_shadow_open();

	memset(read, 0, sizeof read);
	memset(written, 0, sizeof written);
	for (uint32_t i = 1; i <= 12; i++) {
		struct global_record r = { .cluster = next(&seed) % CLUSTERS, .site = i, .epoch = i,
			.row = GR_WHOLE, .lanes = 1, .lane = -1, .flags = next(&seed) % 4 ? 0 : GR_WRITE };
		struct global_span s[3] = { 0 };
		unsigned n = 1 + next(&seed) % 3;

		for (unsigned p = 0; p < n; p++) {
			uint32_t at = next(&seed) % 2 ? next(&seed) % (BYTES - 600) : next(&seed) % 8 * 512;
			uint32_t size = next(&seed) % 5 ? 1 + next(&seed) % 40 : 512;

			s[p] = (struct global_span){ BASE + at, size };
			for (uint32_t b = at; b < at + size; b++)
				(r.flags & GR_WRITE ? written : read)[r.cluster][b] = 1;
		}
		global_shadow_touch_whole(g, &k.accessor, &r, s, n);
	}
	for (unsigned a = 0; a < CLUSTERS; a++)
		for (unsigned b = 0; b < CLUSTERS; b++)
			for (unsigned i = 0; a != b && i < BYTES; i++)
				if (written[a][i] && (written[b][i] || read[b][i]))
					want[a][b] = want[b][a] = true;
	cr_assert_arr_eq(k.conflict, want, sizeof want, "seed %llu", (unsigned long long)seed);
	cr_assert_eq(global_shadow_dropped(g), 0);
	global_shadow_close(g);
}

Test(global, finds_every_pair_of_clusters)
{
	for (uint64_t seed = 1; seed < 3000; seed++)
		trial(seed);
}

/* The same by threads, one for each cluster, that access few places: in whatever order, one of two
 * accesses that conflict finds the other. */
struct runner {
	struct test_accessor k;
	struct global_shadow *g;
	pthread_barrier_t *start;
	uint64_t seed;
	uint32_t cluster;
	uint64_t read, written; /* places of 128 bytes */
};

static void *run(void *arg)
{
	struct runner *x = arg;

	pthread_barrier_wait(x->start);
	for (uint32_t i = 1; i <= 6; i++) {
		const uint32_t place = next(&x->seed) % 64, word = next(&x->seed) % 4 ? 0 : 64;
		struct global_record r = { .base = BASE + 128 * place + word, .cluster = x->cluster,
			.site = i, .epoch = i, .row = 5, .pitch = 128, .inner = 4, .size = 4,
			.lanes = word ? 0xffff : UINT32_MAX, .lane = -1,
			.flags = next(&x->seed) % 8 ? 0 : GR_WRITE };

		*(r.flags ? &x->written : &x->read) |= 1ull << place;
		if (r.flags || !global_shadow_repeat(x->g, &x->k.accessor, &r))
			global_shadow_touch(x->g, &x->k.accessor, &r);
	}
	return NULL;
}

static void trial_of_threads(uint64_t seed)
{
	struct global_shadow *g = global_shadow_open();
	struct runner x[CLUSTERS];
	pthread_t thread[CLUSTERS];
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, CLUSTERS);
	for (uint32_t c = 0; c < CLUSTERS; c++) {
		x[c] = (struct runner){ .k.accessor = { .synchronised = seed % 2, .isolated = true,
			.classify = classify }, .g = g, .start = &start, .seed = seed * CLUSTERS + c,
			.cluster = c };
		cr_assert_eq(pthread_create(&thread[c], NULL, run, &x[c]), 0);
	}
	for (uint32_t c = 0; c < CLUSTERS; c++)
		pthread_join(thread[c], NULL);
	for (uint32_t a = 0; a < CLUSTERS; a++)
		for (uint32_t b = 0; b < a; b++) {
			bool want = x[a].written & (x[b].written | x[b].read) || x[b].written & x[a].read;

			cr_assert_eq(x[a].k.conflict[a][b] || x[b].k.conflict[a][b], want, "seed %llu",
				(unsigned long long)seed);
		}
	global_shadow_close(g);
	pthread_barrier_destroy(&start);
}

Test(global, finds_every_pair_of_threads)
{
	for (uint64_t seed = 1; seed < 1000; seed++)
		trial_of_threads(seed);
}

/* While no clusters synchronize, a few readers represent all: a write still conflicts if another
 * cluster has read a byte of it, in whatever order they come, and whichever readers were kept. */
static void many_readers(uint64_t seed, bool write_first)
{
	enum { READERS = 60, READS = 12, WORDS = 64 };
	static bool read[READERS + 1][4 * WORDS];
	struct test_accessor k = { .accessor = { .classify = classify, .isolated = true } };
	struct global_shadow *g = global_shadow_open();
	const uint32_t writer = next(&seed) % (READERS + 1), size = 1u << next(&seed) % 5;
	const uint32_t at = next(&seed) % (4 * WORDS) & -size;
	const uint8_t nc = next(&seed) % 2 ? GR_NC : 0;
	const struct global_record w = { .cluster = writer, .site = 1, .row = GR_WHOLE, .lanes = 1,
		.lane = -1, .flags = GR_WRITE };
	const struct global_span ws = { BASE + at, size };
	bool want = false, got = false;

	memset(read, 0, sizeof read);
	memset(conflicted, 0, sizeof conflicted);
	if (write_first)
		global_shadow_touch_whole(g, &k.accessor, &w, &ws, 1);
	for (uint32_t i = 0; i < READERS * READS; i++) {
		/* mostly rising, as clusters start, and some that lag behind */
		uint32_t c = next(&seed) % 4 ? i / READS : next(&seed) % READERS;
		uint32_t bytes = 1u << next(&seed) % 6, a = next(&seed) % (4 * WORDS) & -bytes;
		struct global_record r = { .cluster = c, .site = 2 + i % 5, .epoch = i, .row = GR_WHOLE,
			.lanes = 1, .lane = -1, .flags = nc };
		struct global_span s = { BASE + a, bytes };

		global_shadow_touch_whole(g, &k.accessor, &r, &s, 1);
		memset(&read[c][a], 1, bytes);
	}
	if (!write_first)
		global_shadow_touch_whole(g, &k.accessor, &w, &ws, 1);
	for (uint32_t c = 0; c < READERS; c++)
		for (uint32_t b = at; c != writer && b < at + size; b++)
			want |= read[c][b];
	for (uint32_t c = 0; c < READERS; c++)
		got |= conflicted[c];
	cr_assert_eq(got, want, "seed %llu", (unsigned long long)seed);
	global_shadow_close(g);
}

Test(global, a_few_readers_stand_for_all)
{
	for (uint64_t seed = 1; seed < 1500; seed++) {
		many_readers(seed, false);
		many_readers(seed, true);
	}
}

/* A strong access flushes the log of its zone to the granules. */
static void flush_log(struct global_shadow *g, struct test_accessor *k, uint64_t addr)
{
	const struct global_record r = { .row = GR_WHOLE, .lanes = 1, .lane = -1, .flags = GR_STRONG };
	const struct global_span s = { addr, 4 };

	global_shadow_touch_whole(g, &k->accessor, &r, &s, 1);
}

/* Repeated reads of the same place are soon not recorded any more. */
Test(global, readers_of_one_table_are_cheap)
{
	struct test_accessor k = { .accessor = { .classify = classify, .isolated = true } };
	struct global_shadow *g = global_shadow_open();
	struct global_record r = { .row = GR_WHOLE, .lanes = 1, .lane = -1 };
	struct global_span s = { BASE, 1024 };
	size_t bytes = global_shadow_footprint(g);

	for (r.cluster = 0; r.cluster < 10000; r.cluster++)
		global_shadow_touch_whole(g, &k.accessor, &r, &s, 1);
	cr_assert_eq(global_shadow_visits(g), 0);
	cr_assert_lt(global_shadow_footprint(g), bytes + 64 * 1024);
	flush_log(g, &k, BASE + 2048);
	for (r.cluster = 0; r.cluster < 10000; r.cluster++)
		global_shadow_touch_whole(g, &k.accessor, &r, &s, 1);
	cr_assert_lt(global_shadow_visits(g), 64 * 1024 / GRANULE);
	cr_assert(global_shadow_saturated(g, &r, BASE, 1024));
	r.flags = GR_NC;
	cr_assert_not(global_shadow_saturated(g, &r, BASE, 4), "another kind of read");
	r.flags = GR_WRITE;
	s.bytes = 4;
	global_shadow_touch_whole(g, &k.accessor, &r, &s, 1);
	r.flags = 0;
	cr_assert_not(global_shadow_saturated(g, &r, BASE, 4), "it was written");
	cr_assert(global_shadow_saturated(g, &r, BASE + GRANULE, 4));
	global_shadow_forget(g, BASE, 1024);
	cr_assert_not(global_shadow_saturated(g, &r, BASE + GRANULE, 4), "given out anew");
	cpu_limit(60); /* by pages, not by granules: 2^30 of these would take minutes */
	global_shadow_forget(g, BASE, 1ull << 34);
	global_shadow_close(g);
}

Test(global, a_page_touched_whole_takes_nothing)
{
	struct test_accessor k = { .accessor = { .classify = classify } };
	struct global_shadow *g = global_shadow_open();
	struct global_record r = { .row = GR_WHOLE, .lanes = 1, .site = 1 };
	struct global_span s = { 0x7f0000000000ull, 16u << 20 };

	global_shadow_touch_whole(g, &k.accessor, &r, &s, 1);
	cr_assert_eq(global_shadow_visits(g), 0);
	cr_assert_lt(global_shadow_footprint(g), s.bytes / 8);
	for (uint64_t at = 0; at < s.bytes; at += 1u << 16)
		flush_log(g, &k, s.addr + at);
	cr_assert_geq(global_shadow_visits(g), s.bytes / GRANULE);
	cr_assert_lt(global_shadow_footprint(g), s.bytes / 3);
	global_shadow_close(g);
}

static void lanes(struct global_record r, uint64_t addr, uint32_t want)
{
	cr_assert_eq(global_lanes_at(&r, addr), want, "0x%llx: 0x%x", (unsigned long long)addr,
		global_lanes_at(&r, addr));
}

Test(global, lanes_of_a_byte)
{
	/* 4 lanes of 8 bytes to a row, rows 256 bytes apart */
	struct global_record rows = { .base = BASE, .lanes = UINT32_MAX, .row = 2, .size = 8,
		.inner = 8, .pitch = 256 };
	/* the same address in a half warp, then 64 bytes on, three times, 4 bytes apart */
	struct global_record loop = { .base = BASE, .lanes = UINT32_MAX, .row = 4, .size = 4,
		.inner = 0, .pitch = 64, .step = 4, .count = 3 };

	lanes(rows, BASE + 7, 1);
	lanes(rows, BASE + 8, 2);
	lanes(rows, BASE + 32, 0);
	lanes(rows, BASE + 256 * 7 + 24, 1u << 31);
	lanes(rows, BASE + 256 * 8, 0);
	lanes(rows, BASE - 1, 0);
	lanes(loop, BASE, 0xffff);
	lanes(loop, BASE + 11, 0xffff);
	lanes(loop, BASE + 12, 0);
	lanes(loop, BASE + 64 + 8, 0xffff0000);
}

/* The spans are the bytes that have lanes, ascending and separate. */
static void spans(const struct global_record *r)
{
	enum { LOW = 32768, ALL = 65536 };
	static bool in[ALL];
	struct global_spans s;
	uint64_t end = 0;

	memset(in, 0, sizeof in);
	global_spans_open(&s);
	global_spans_of(r, &s);
	for (size_t i = 0; i < s.n; i++) {
		cr_assert(s.at[i].bytes && (!i || s.at[i].addr > end));
		end = s.at[i].addr + s.at[i].bytes;
		memset(&in[s.at[i].addr - BASE + LOW], 1, s.at[i].bytes);
	}
	for (uint64_t i = LOW - 8192; i < LOW + 8192; i++)
		cr_assert_eq(in[i], global_lanes_at(r, BASE + i - LOW) != 0);
	global_spans_close(&s);
}

/* The lanes of every form, computed from its definition lane by lane. */
Test(global, lanes_of_every_form)
{
	uint64_t seed = 5;

	for (unsigned i = 0; i < 5000; i++) {
		struct global_record r = { .base = BASE, .lanes = next(&seed) % 3 ? UINT32_MAX
			: next(&seed),
			.row = (uint8_t)(next(&seed) % 6), .size = (uint16_t)(1u << next(&seed) % 5) };
		const int32_t size = r.size;
		const uint64_t addr = BASE + next(&seed) % 512 - 128;
		uint32_t want = 0;

		r.inner = next(&seed) % 3 ? size : next(&seed) % 2 ? 0
			: size * ((int32_t)(next(&seed) % 7) - 3);
		r.pitch = size * ((int32_t)(next(&seed) % 41) - 20);
		r.step = size * ((int32_t)(next(&seed) % 11) - 5);
		r.count = (uint8_t)(next(&seed) % 9);
		for (unsigned l = 0; l < 32; l++)
			for (unsigned k = 0; k < (r.count ? r.count : 1u); k++) {
				uint64_t at = r.base + (uint64_t)((int64_t)(l >> r.row) * r.pitch
					+ (int64_t)(l & ((1u << r.row) - 1)) * r.inner + (int64_t)k * r.step);

				if (addr - at < r.size)
					want |= r.lanes & 1u << l;
			}
		lanes(r, addr, want);
		for (uint64_t a = addr & ~15ull, b = 0; b < 16; b++)
			if (global_same_lanes(&r, &r, (unsigned)(addr & 15)) >> b & 1)
				lanes(r, a + b, want);
		spans(&r);
	}
}
