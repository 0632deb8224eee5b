/* banks: how many wavefronts an access to shared memory takes. */
#include "libconsan/finding/banks.h"

#include <criterion/criterion.h>

#define ALL 0xffffffffu

static void nothing(struct event_sink *sink, const struct event *e)
{
	(void)sink;
	(void)e;
}

/* The counts of one event. */
static struct bank_use use_of(struct event e)
{
	struct event_sink next = { .event = nothing };
	struct banks *b = banks_open();
	struct event_sink *sink = banks_begin(b, &next);
	const struct bank_use *use;
	struct bank_use u = { 0 };

	e.site = 7;
	sink->event(sink, &e);
	cr_assert_eq(banks_end(sink), &next);
	if (banks_uses(b, &use)) {
		u = *use;
		cr_expect_eq(u.site, 7);
		cr_expect_eq(u.accesses, 1);
	}
	banks_close(b);
	return u;
}

static void expect(struct event e, uint64_t wavefronts, uint64_t least, uint32_t worst)
{
	const struct event_access *a = &e.access;
	const struct bank_use u = use_of(e);

	cr_expect_eq(u.wavefronts, wavefronts, "size %u, stride %d: %lu wavefronts", a->bytes,
		a->at.stride, (unsigned long)u.wavefronts);
	cr_expect_eq(u.least, least, "size %u, stride %d: %lu passes", a->bytes, a->at.stride,
		(unsigned long)u.least);
	cr_expect_eq(u.worst, worst, "size %u, stride %d: %u-way", a->bytes, a->at.stride, u.worst);
}

static struct event load(uint32_t size, int32_t stride)
{
	return (struct event){ .kind = EV_ACCESS, .lanes = ALL, .access = { .space = SP_SHARED,
		.mode = MODE_READ, .bytes = size, .at.stride = stride } };
}

Test(banks, four_bytes)
{
	expect(load(4, 4), 1, 1, 1);
	expect(load(4, 0), 1, 1, 1);   /* a broadcast */
	expect(load(4, 8), 2, 1, 2);
	expect(load(4, 12), 1, 1, 1);  /* an odd stride uses every bank once */
	expect(load(4, 128), 32, 1, 32);
	expect(load(4, 132), 1, 1, 1); /* padded */
	expect(load(4, -4), 1, 1, 1);
}

Test(banks, halves_share_words)
{
	expect(load(2, 2), 1, 1, 1);
	expect(load(1, 1), 1, 1, 1);
	expect(load(2, 128), 32, 1, 32);
}

Test(banks, wide_lanes_take_several_passes)
{
	expect(load(8, 8), 2, 2, 1);
	expect(load(16, 16), 4, 4, 1);
	expect(load(16, 32), 8, 4, 2);
	expect(load(16, 128), 32, 4, 8); /* ldmatrix of rows of 64 halves */
	expect(load(16, 144), 4, 4, 1);  /* ... padded */
	expect(load(16, 0), 4, 4, 1);
}

Test(banks, inactive_lanes)
{
	struct event e = load(4, 128);

	e.lanes = 0x11;
	expect(e, 2, 1, 2);
	e = load(16, 128);
	e.lanes = 0xff00; /* ldmatrix .x1 would have 8 rows: one pass */
	expect(e, 8, 1, 8);
}

Test(banks, addresses_one_by_one)
{
	uint64_t swizzled[32], same[32];
	struct event e = load(16, 0);

	for (unsigned lane = 0; lane < 32; lane++) {
		swizzled[lane] = lane * 128 + ((2 ^ lane % 8) * 16);
		same[lane] = 64 + lane % 2 * 128;
	}
	e.access.at.lane = swizzled;
	expect(e, 4, 4, 1);
	e.access.at.lane = same; /* two rows in the same banks, each read by many lanes */
	expect(e, 8, 4, 2);
}

Test(banks, events_that_are_not_counted)
{
	struct event e = load(4, 128);

	e.access.mode = MODE_RMW;
	cr_expect_eq(use_of(e).accesses, 0, "an atomic");
	e = load(4, 128);
	e.access.owner = 1;
	cr_expect_eq(use_of(e).accesses, 0, "another CTA's memory");
	e = (struct event){ .kind = EV_BULK, .lanes = 1, .bulk = { .mode = MODE_WRITE, .bytes = 16 } };
	cr_expect_eq(use_of(e).accesses, 0, "TMA");
	e = (struct event){ .kind = EV_CP_ASYNC, .lanes = ALL,
		.cp_async = { .bytes = 4, .at.stride = 128 } };
	cr_expect_eq(use_of(e).wavefronts, 32);
}

Test(banks, clusters_add_up)
{
	struct event_sink next = { .event = nothing };
	struct banks *b = banks_open();
	const struct bank_use *use;

	for (unsigned cluster = 0; cluster < 3; cluster++) {
		struct event_sink *sink = banks_begin(b, &next);

		for (uint32_t site = 9; site > 5; site -= 2) {
			struct event e = load(4, (int32_t)(4 * (cluster + 1)));

			e.site = site;
			sink->event(sink, &e);
		}
		banks_end(sink);
	}
	cr_assert_eq(banks_uses(b, &use), 2);
	cr_expect_eq(use[0].site, 7);
	cr_expect_eq(use[1].site, 9);
	cr_expect_eq(use[1].accesses, 3);
	cr_expect_eq(use[1].wavefronts, 1 + 2 + 1);
	cr_expect_eq(use[1].least, 3);
	cr_expect_eq(use[1].worst, 2);
	banks_close(b);
}
