/* drain: each record reaches the host once, with pools that hold a small part of all records.
 * Lanes and host take turns here: the test does what hook.c prints and what inject/drain.c
 * calls. */
#include "instrument/decode/drain.h"
#include "instrument/record/digest.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Sites: 1 has a payload of a word, 2 is an exit. */
static const uint32_t word[] = { 0, 1, DIGEST_LEAVES };
#define SITES 3

struct lane { uint32_t cta, chunk, unit, waits, recorded; bool gone; };

struct simulation {
	uint32_t chunks, clears, bad_clear;  /* the number of the clear that fails; 0: none */
	char *pool;
	char *stage;
	uint32_t clock;
	struct drain *drain;
	bool identical;                      /* CTAs record the same */
};

static struct record_head *head_of(const struct simulation *p)
{
	return (void *)p->pool;
}

static size_t pool_bytes(uint32_t chunks)
{
	return RECORD_RING_AT(chunks) + RECORD_MARKS_AT + 4 * ((size_t)chunks + 4);
}

static const void *peek(void *user, uint64_t at, size_t bytes)
{
	const struct simulation *p = user;

	cr_assert_leq(at + bytes, pool_bytes(p->chunks));
	return memcpy(p->stage, p->pool + at, bytes);
}

static const void *fetch(void *user, const struct drain_run *run, uint32_t n)
{
	const struct simulation *p = user;

	drain_pack(p->stage, p->pool, run, n);
	return p->stage;
}

static bool clear(void *user, const struct drain_run *run, uint32_t n)
{
	struct simulation *p = user;

	if (++p->clears == p->bad_clear)
		return false;
	for (uint32_t k = 0; k < n; k++)
		memset(p->pool + (size_t)run[k].first * RECORD_CHUNK_BYTES, 0,
			(size_t)run[k].n * RECORD_CHUNK_BYTES);
	return true;
}

static bool put(void *user, uint64_t at, const void *from, size_t bytes)
{
	memcpy(((struct simulation *)user)->pool + at, from, bytes);
	return true;
}

static bool none_is_clean(const void *user, uint64_t key, uint64_t signature)
{
	(void)user, (void)key, (void)signature;
	return false;
}

static struct drain_pool access_to(struct simulation *p)
{
	return (struct drain_pool){ .user = p, .chunks = p->chunks, .peek = peek, .fetch = fetch,
		.clear = clear, .write = put };
}

static void begin(struct simulation *p, uint32_t chunks, uint32_t nctas, uint32_t lanes,
	bool retire, uint64_t most)
{
	struct drain_config c = { .shape = { .grid = { nctas, 1, 1 }, .block = { lanes, 1, 1 } },
		.word = base_alloc(sizeof word),
		.nwords = SITES, .retire = retire, .most = most, .jobs = 1, .clean = none_is_clean };
	struct drain_pool way;

	memcpy(c.word, word, sizeof word);
	*p = (struct simulation){ .chunks = chunks, .clock = 1 };
	p->pool = base_alloc(pool_bytes(chunks));
	p->stage = base_alloc((size_t)DRAIN_CHUNKS * RECORD_CHUNK_BYTES);
	*head_of(p) = (struct record_head){ .next = 1, .wait_cycles = RECORD_WAIT_CYCLES };
	way = access_to(p);
	p->drain = drain_open(&way, &c);
}

static void end(struct simulation *p)
{
	drain_close(p->drain);
	free(p->pool);
	free(p->stage);
}

/* ---- lanes ---- */

static uint32_t *unit(const struct simulation *p, uint32_t chunk, uint32_t k)
{
	return (uint32_t *)(void *)(p->pool + (size_t)chunk * RECORD_CHUNK_BYTES
		+ (size_t)k * RECORD_UNIT);
}

/* The lane's chunk is complete. */
static void close_chunk(const struct simulation *p, const struct lane *l)
{
	if (l->chunk)
		((uint32_t *)(void *)(p->pool + RECORD_RING_AT(p->chunks) + RECORD_MARKS_AT))[l->chunk + 1]++;
}

static bool enter(struct simulation *p, struct lane *l, uint32_t chunk)
{
	l->chunk = chunk;
	l->unit = 1;
	l->waits = 0;
	*(struct record_chunk *)(void *)unit(p, chunk, 0) = (struct record_chunk){ .cta = l->cta,
		.clock_lo = p->clock };
	p->clock++;
	return true;
}

/* False: it waits. */
static bool draw(struct simulation *p, struct lane *l)
{
	const uint64_t *ring = (const void *)(p->pool + RECORD_RING_AT(p->chunks));
	uint32_t number;

	if (!l->waits) {
		close_chunk(p, l);
		number = head_of(p)->next++;
		if (number <= p->chunks)
			return enter(p, l, number);
		l->waits = number - p->chunks;
	}
	if ((uint32_t)ring[l->waits % RECORD_RING] == l->waits)
		return enter(p, l, (uint32_t)(ring[l->waits % RECORD_RING] >> 32));
	if (head_of(p)->wait_cycles)
		return false;
	head_of(p)->dropped++;
	return enter(p, l, p->chunks + 1);
}

/* Fills this many chunks with this many records each, and exits. */
static void step(struct simulation *p, struct lane *l, uint32_t chunks, uint32_t each)
{
	const bool leaves = l->recorded == chunks * each;
	uint32_t *at;

	if (l->gone || ((l->waits || !l->chunk || (!leaves && l->recorded % each == 0)) && !draw(p, l)))
		return;
	at = unit(p, l->chunk, l->unit);
	at[0] = (leaves ? 2u : 1u) << RECORD_SITE_SHIFT;
	at[1] = 1;
	at[2] = p->clock++;
	if (!leaves) {
		at[4] = l->recorded + (p->identical ? 0 : l->cta << 16);
		l->unit += 2;
		l->recorded++;
		return;
	}
	l->gone = true;
	close_chunk(p, l);
}

/* Runs CTAs of one thread, at most `at_once` at a time. */
static void run(struct simulation *p, uint32_t nctas, uint32_t at_once, uint32_t chunks,
	uint32_t each)
{
	struct lane *l = base_alloc(nctas * sizeof *l);

	for (uint32_t first = 0, stuck = 0; first < nctas && stuck < 1000000; stuck++) {
		for (uint32_t k = first; k < nctas && k < first + at_once; k++) {
			l[k].cta = k;
			step(p, &l[k], chunks, each);
		}
		drain_turn(p->drain);
		while (first < nctas && l[first].gone) {
			first++;
			stuck = 0;
		}
	}
	for (uint32_t k = 0; k < nctas; k++)
		cr_assert(l[k].gone, "CTA %u of %u", k, nctas);
	free(l);
}

static int by_clock(const void *a, const void *b)
{
	const struct record_chunk *x = *(const struct record_chunk *const *)a,
		*y = *(const struct record_chunk *const *)b;

	return x->cta != y->cta ? (x->cta < y->cta ? -1 : 1)
		: (x->clock_lo > y->clock_lo) - (x->clock_lo < y->clock_lo);
}

/* All CTAs except those in skip have their records, once and in order; the others have none or
 * a part. */
static void expect_records(const struct simulation *p, const struct drained *r, const uint8_t *skip,
	uint32_t nctas, uint32_t records)
{
	uint32_t *next = base_alloc(nctas * sizeof *next);

	qsort(r->chunk, r->n, sizeof *r->chunk, by_clock);
	for (uint32_t k = 0; k < r->n; k++) {
		const uint32_t cta = r->chunk[k]->cta, *at = (const uint32_t *)(r->chunk[k] + 1);

		for (; *at >> RECORD_SITE_SHIFT == 1; at += 8, next[cta]++)
			cr_assert(skip[cta] || at[4] == next[cta] + (p->identical ? 0 : cta << 16), "CTA %u: %u", cta,
				next[cta]);
	}
	for (uint32_t k = 0; k < nctas; k++)
		cr_assert(skip[k] ? next[k] <= records : next[k] == records, "CTA %u: %u of %u", k, next[k],
			records);
	free(next);
}

static struct drained ended(struct simulation *p, bool completed)
{
	struct drain_pool way = access_to(p);
	struct drained r;

	cr_assert(drain_end(p->drain, &way, completed, &r));
	return r;
}

/* ---- tests ---- */

Test(drain, each_record_once)
{
	struct drained r;
	struct simulation p;

	begin(&p, 16, 30, 1, false, 100000);
	run(&p, 30, 12, 20, 100);
	r = ended(&p, true);
	cr_expect(drain_begun(p.drain));
	cr_expect_gt(r.drained, 500u);
	cr_expect_eq(r.lost + r.head->dropped + r.retired, 0u);
	expect_records(&p, &r, r.skip, 30, 2000);
	end(&p);
}

/* The pool is large enough: nothing is drained. */
Test(drain, not_begun)
{
	struct simulation p;

	begin(&p, 1000, 30, 1, false, 100000);
	run(&p, 30, 12, 20, 100);
	cr_expect_not(drain_begun(p.drain));
	end(&p);
}

/* More draws than the ring has entries; the records of identical clusters are discarded. */
Test(drain, round_the_ring)
{
	enum { CTAS = 100, DRAWS = 1000 };
	struct drained r;
	struct simulation p;

	begin(&p, 64, CTAS, 1, true, 100000);
	p.identical = true;
	run(&p, CTAS, 8, DRAWS, 1);
	r = ended(&p, true);
	cr_assert_gt(head_of(&p)->next, RECORD_RING + p.chunks);
	cr_expect_eq(r.lost + r.head->dropped, 0u);
	cr_expect_eq(r.retired, (unsigned)CTAS - 1);
	cr_expect_eq(r.n, (uint32_t)DRAWS);
	for (uint32_t k = 1; k < CTAS; k++)
		cr_assert_eq(r.cta[k], r.cta[0], "CTA %u", k);
	expect_records(&p, &r, r.skip, CTAS, DRAWS);
	end(&p);
}

static void representatives(const struct simulation *p, const struct drained *r, uint32_t nctas,
	uint8_t *skip)
{
	const struct launch_info i = { .grid = { nctas, 1, 1 }, .block = { 1, 1, 1 },
		.cluster = { 1, 1, 1 } };
	uint64_t *signature = base_alloc(nctas * sizeof *signature);

	decode_identical(&i, r->cta, signature, skip);
	drain_choose_representatives(p->drain, skip);
	free(signature);
}

static uint32_t left_of(const uint8_t *skip, uint32_t n)
{
	uint32_t left = 0;

	for (uint32_t k = 0; k < n; k++)
		left += !skip[k];
	return left;
}

/* The host keeps a limited number of chunks: what is missing is reported, with its cluster. */
Test(drain, host_memory)
{
	uint8_t skip[20];
	struct drained r;
	struct simulation p;

	begin(&p, 16, 20, 1, true, 100);
	run(&p, 20, 4, 10, 3);
	r = ended(&p, true);
	representatives(&p, &r, 20, skip);
	cr_expect_eq(r.lost, 100u);
	cr_expect_eq(left_of(skip, 20), 20u, "each did something else");
	cr_expect_eq(left_of(r.incomplete, 20), 8u);
	expect_records(&p, &r, r.incomplete, 20, 30);
	end(&p);
}

/* The representative of identical clusters need not be the first of them. */
Test(drain, representatives)
{
	uint8_t skip[20];
	struct drained r;
	struct simulation p;

	begin(&p, 16, 20, 1, true, 1000);
	p.identical = true;
	run(&p, 20, 4, 10, 3);
	r = ended(&p, true);
	representatives(&p, &r, 20, skip);
	cr_expect_eq(left_of(skip, 20), 1u);
	expect_records(&p, &r, skip, 20, 30);
	end(&p);
}

static void turns(struct simulation *p, double seconds)
{
	struct timespec pause = { 0, 1000000 };

	for (double t = 0; t < seconds; t += 0.001) {
		drain_turn(p->drain);
		nanosleep(&pause, NULL);
	}
}

/* Some lanes hold all chunks, others wait: these give up. While no lane waits, nothing times
 * out. */
Test(drain, all_wait)
{
	struct lane l[9] = { { 0 } };
	struct drained r;
	struct simulation p;

	begin(&p, 8, 9, 1, false, 1000);
	for (uint32_t k = 0; k < 8; k++) {
		l[k].cta = k;
		step(&p, &l[k], 1, 3);
	}
	turns(&p, 0.4);
	cr_expect_eq(head_of(&p)->wait_cycles, RECORD_WAIT_CYCLES, "no lane waits");
	l[8].cta = 8;
	step(&p, &l[8], 1, 3);
	cr_assert(l[8].waits);
	turns(&p, 0.4);
	cr_expect_eq(head_of(&p)->wait_cycles, 0u);
	step(&p, &l[8], 1, 3);
	cr_expect_not(l[8].waits);
	r = ended(&p, false);
	cr_expect_eq(r.head->dropped, 1u);
	cr_expect_eq(r.n, 8u);
	cr_expect_not(r.waited);
	end(&p);
}

/* A kernel is stopped while a lane waits for a chunk: its place is not known. */
Test(drain, stopped)
{
	struct lane l[9] = { { 0 } };
	struct simulation p;

	for (unsigned n = 8; n <= 9; n++) {
		memset(l, 0, sizeof l);
		begin(&p, 8, 9, 1, false, 1000);
		for (uint32_t k = 0; k < n; k++) {
			l[k].cta = k;
			step(&p, &l[k], 1, 3);
		}
		turns(&p, 0.01);
		cr_expect_eq(ended(&p, false).waited, n > 8);
		end(&p);
	}
}

/* Before the number of draws overflows, lanes stop waiting, and the counter is set back. */
Test(drain, counter_overflow)
{
	struct simulation p;

	begin(&p, 8, 9, 1, false, 1000);
	head_of(&p)->next = DRAIN_MOST_DRAWS;
	drain_turn(p.drain);
	cr_expect_eq(head_of(&p)->wait_cycles, RECORD_WAIT_CYCLES);
	head_of(&p)->next += 2;
	drain_turn(p.drain);
	cr_expect_eq(head_of(&p)->wait_cycles, 0u);
	drain_turn(p.drain);
	cr_expect_eq(head_of(&p)->next, DRAIN_MOST_DRAWS / 2);
	end(&p);
}

/* The GPU fails while chunks that were copied are being cleared: they are not copied a second
 * time. */
Test(drain, fault)
{
	uint8_t skip[12] = { 0 };
	struct lane l[12] = { { 0 } };
	struct drained r;
	struct simulation p;

	begin(&p, 16, 12, 1, true, 100000);
	p.bad_clear = 5;
	for (uint32_t n = 0; n < 4000; n++) {
		for (uint32_t k = 0; k < 12; k++) {
			l[k].cta = k;
			step(&p, &l[k], 100, 10);
		}
		drain_turn(p.drain);
	}
	cr_assert_eq(p.clears, 5);
	r = ended(&p, false);
	cr_expect_eq(r.lost, 0u);
	for (uint32_t k = 0; k < 12; k++)
		cr_assert(l[k].waits, "it ends in the middle");
	qsort(r.chunk, r.n, sizeof *r.chunk, by_clock);
	for (uint32_t k = 1; k < r.n; k++)
		cr_assert_neq(by_clock(&r.chunk[k - 1], &r.chunk[k]), 0, "chunk %u comes twice", k);
	for (uint32_t k = 0; k < 12; k++)
		skip[k] = l[k].recorded != l[0].recorded;
	expect_records(&p, &r, skip, 12, l[0].recorded);
	end(&p);
}

/* Tries once. False: it drops its record, and leaves its number in the ring. */
static bool draw_once(struct simulation *p, struct lane *l)
{
	uint64_t *ring = (void *)(p->pool + RECORD_RING_AT(p->chunks)), *at;
	uint32_t number = head_of(p)->next++, beyond = number - p->chunks;
	bool there;

	if (number <= p->chunks)
		return enter(p, l, number);
	at = &ring[beyond % RECORD_RING];
	there = (uint32_t)*at == beyond && enter(p, l, (uint32_t)(*at >> 32));
	*at = (uint64_t)UINT32_MAX << 32 | beyond;
	return there;
}

/* While wgmma is pending a lane does not wait: no chunk is recycled for the number that it
 * left. */
Test(drain, pending_wgmma)
{
	struct lane l = { 0 }, hasty = { 0 };
	struct simulation p;
	uint32_t went_without = 0;

	begin(&p, 4, 1, 2, false, 1000);
	for (uint32_t round = 0; round < 200; round++) {
		for (uint32_t k = 0; k < 2 * p.chunks; k++)
			if (draw_once(&p, &hasty))
				close_chunk(&p, &hasty);
			else
				went_without++;
		while (!draw(&p, &l))
			drain_turn(p.drain);
	}
	cr_expect_gt(went_without, 200 * p.chunks - 1);
	cr_expect_neq(head_of(&p)->wait_cycles, 0, "no lane gave up");
	cr_expect_eq(head_of(&p)->dropped, 0);
	end(&p);
}

/* ---- damage ---- */

/* A chunk names no CTA of the grid, and its lane exits. */
Test(drain, no_such_cta)
{
	const uint32_t damaged[] = { 3, 4, 1u << 20, UINT32_MAX };

	for (size_t k = 0; k < ARRAY_SIZE(damaged); k++) {
		struct simulation p;
		struct lane l = { .cta = damaged[k] };
		struct drained r;

		begin(&p, 8, 3, 1, true, 100000);
		for (unsigned i = 0; i < 100 && !l.gone; i++)
			step(&p, &l, 7, 10);
		cr_assert(l.gone);
		for (unsigned i = 0; i < 4; i++) { /* all marks are read more than once */
			head_of(&p)->next = 8 + i;
			drain_turn(p.drain);
		}
		r = ended(&p, true);
		cr_expect_eq(r.n, 7u, "%u", r.n);
		cr_expect_eq(r.retired, 2u, "%u", r.retired); /* of three that recorded nothing */
		end(&p);
	}
}

/* The number of draws becomes less while the marks are read in parts. */
Test(drain, fewer_draws)
{
	struct simulation p;
	uint32_t *mark;
	struct drained r;

	begin(&p, 10000, 1, 1, false, 100000);
	mark = (uint32_t *)(void *)(p.pool + RECORD_RING_AT(p.chunks) + RECORD_MARKS_AT);
	head_of(&p)->wait_cycles = 0; /* so that no chunk is given back */
	head_of(&p)->next = p.chunks + 1;
	for (uint32_t k = 0; k < 2 * DRAIN_CHUNKS; k++)
		mark[k + 2] = 1;
	cr_assert(drain_turn(p.drain));
	cr_assert(drain_turn(p.drain));
	head_of(&p)->next = 7601;
	mark[2] = 2;
	cr_expect(drain_turn(p.drain));
	r = ended(&p, true);
	cr_expect_eq(r.drained, 2 * DRAIN_CHUNKS + 1u);
	end(&p);
}
