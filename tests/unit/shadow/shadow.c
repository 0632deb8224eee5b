/* The fast shadow and its frontiers against a slow, obviously correct model:
 * knowledge is a set of past accesses, one per lane and instruction, and every
 * byte keeps all accesses that could still matter. Random sequences of accesses, copies
 * and synchronisation; each access must be found (un)ordered by both. */
#include <criterion/criterion.h>

#include "tests/common/event_dsl.h"
#include "tests/common/random.h"
#include "libconsan/finding/rule_codes.h"
#include "libconsan/event/io.h"
#include "tests/unit/shadow/seeds.h"

#include <stdlib.h>

#define WARPS 5u
#define THREADS (WARPS * 32)
#define MEMORY 160u          /* bytes accessed */
#define IDS 4096u
#define OBJECTS 48u
#define UNREAD 1024u         /* sites from here on: read-modify-writes whose results nothing reads */

typedef uint64_t set[IDS / 64];
struct know { set g, p; };
struct past {
	uint32_t id;
	bool write, strong, generic;
	uint8_t shift;
	uint32_t insn;
	bool store, unread;
};

static struct know thread[THREADS], flag[8], object[OBJECTS], bar;
static struct past *byte[MEMORY];
static size_t nbyte[MEMORY];
static uint32_t ids;

struct fifo { uint32_t id[512], group[512], n, open, sealed[512], nsealed; };
static struct fifo copies[THREADS], stores[THREADS], mmas;
static struct { uint32_t id, op; bool armed, done; } loads[OBJECTS];
static uint32_t nloads;

static uint64_t column[32]; /* the addresses of the last columns() */

/* the model's result for each site */
static bool order_conflict[1024], fence_conflict[1024];

static bool has(const set s, uint32_t id) { return s[id / 64] >> id % 64 & 1; }
static void put(set s, uint32_t id) { s[id / 64] |= 1ull << id % 64; }
static void add(struct know *to, const struct know *from)
{
	for (unsigned i = 0; i < IDS / 64; i++) {
		to->g[i] |= from->g[i];
		to->p[i] |= from->p[i];
	}
}

/* Neither gives its thread a value: the program may go on alike after z came first. */
static bool by_chance(const struct past *x, const struct past *z)
{
	return z->unread && (x->store || x->unread);
}

/* Did a later strong access known in `in` observe the strong write x? Those of one instruction do
 * not observe each other; a store ends the chain. */
static bool observed(const set in, const struct past *x, const struct past *end)
{
	for (const struct past *z = x + 1; x->strong && x->write && z < end; z++) {
		if (!z->strong || z->insn == x->insn)
			continue;
		if (z->store)
			return false;
		if (z->shift == x->shift && !by_chance(x, z) && has(in, z->id))
			return true;
	}
	return false;
}

/* One lane touches a byte, or an engine on behalf of n threads with knowledge `know`, all of which
 * must know the old access. */
static void classify(unsigned b, struct past now, struct know *const *know, unsigned n, bool async)
{
	for (size_t i = 0; i < nbyte[b]; i++) {
		const struct past *x = &byte[b][i];
		bool g = true, p = true;

		if (!x->write && !now.write)
			continue;
		if (x->strong && now.strong && x->shift == now.shift)
			continue;
		for (unsigned k = 0; k < n; k++) {
			const struct past *end = byte[b] + nbyte[b];

			g &= has(know[k]->g, x->id) || observed(know[k]->g, x, end);
			p &= has(know[k]->p, x->id) || observed(know[k]->p, x, end);
		}
		if (!g)
			order_conflict[line] = true;
		else if (async && x->generic && !p)
			fence_conflict[line] = true;
	}
}

/* A weak write replaces what was there: an access ordered after it is ordered after that, too, or
 * it conflicted. Beside a strong write everything stays. */
static void record(unsigned b, struct past now)
{
	if (now.write && !now.strong)
		nbyte[b] = 0;
	byte[b] = realloc(byte[b], (nbyte[b] + 1) * sizeof now);
	byte[b][nbyte[b]++] = now;
}

static uint32_t log2_size(uint32_t size) { return (uint32_t)__builtin_ctz(size); }

enum { READ, WRITE, RMW, COPY, STRONG_READ, STRONG_WRITE };
static void access_lanes(unsigned w, uint32_t lanes, const uint64_t *addr, uint32_t size,
	unsigned mode)
{
	static const enum ev_scope scope[] = { SCOPE_CTA, SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU };
	const bool unread = mode == RMW && rnd(2);
	struct event e = { .warp = (uint16_t)w, .lanes = lanes };
	struct { uint32_t id; unsigned lane; } mine[32];
	unsigned n = 0;

	for (unsigned l = 0; l < 32; l++)
		if (lanes >> l & 1) {
			mine[n].id = ids++;
			mine[n++].lane = l;
		}
	for (int pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < n; i++) {
			struct know *k = &thread[w * 32 + mine[i].lane];
			struct past now = { mine[i].id, mode != READ && mode != STRONG_READ,
				mode == RMW || mode >= STRONG_READ, true, (uint8_t)log2_size(size), mine[0].id,
				mode == STRONG_WRITE, unread };

			for (uint32_t b = 0; b < size; b++)
				if (!pass)
					classify((unsigned)addr[mine[i].lane] + b, now, &k, 1, false);
				else
					record((unsigned)addr[mine[i].lane] + b, now);
		}
	for (unsigned i = 0; i < n; i++) {
		unsigned t = w * 32 + mine[i].lane;

		if (mode != COPY) {
			put(thread[t].g, mine[i].id);
		} else {
			copies[t].id[copies[t].n] = mine[i].id;
			copies[t].group[copies[t].n++] = copies[t].open;
		}
	}
	if (mode == COPY) {
		e.kind = EV_CP_ASYNC;
		e.cp_async = (struct event_cp_async){ .at.lane = addr, .bytes = size };
	} else {
		e.kind = EV_ACCESS;
		e.access = (struct event_access){ .at.lane = addr, .bytes = size, .space = SP_SHARED,
			.mode = mode == RMW ? MODE_RMW : mode == WRITE || mode == STRONG_WRITE ? MODE_WRITE
			: MODE_READ, .sem = mode == RMW || mode >= STRONG_READ ? SEM_RELAXED : SEM_WEAK,
			.scope = scope[rnd(4)], .flags = unread ? ACCESS_REDUCTION : 0 };
	}
	line += unread ? UNREAD : 0;
	emit(e);
	line %= UNREAD;
}

static uint32_t some_lanes(void)
{
	switch (rnd(5)) {
	case 0: return L(rnd(32));
	case 1: return L(rnd(4));
	case 2: return ALL;
	case 3: return 0xffff;
	default: return (rnd(1u << 16) << 16 | rnd(1u << 16)) | 1;
	}
}

/* Makes a random access of all lanes one of four columns, as of a fragment of mma that is stored by bytes, and one
 * of few lanes one of a lane to its byte of the columns before. */
static void columns(uint32_t *lanes, uint64_t addr[32])
{
	if (*lanes != ALL) {
		*lanes &= -*lanes;
		memcpy(addr, column, sizeof column);
		return;
	}
	for (unsigned l = 0; l < 32; l++)
		column[l] = addr[l] = l < 4 ? 40 * l + addr[l] % 32 : addr[l - 4] + 1;
}

static void random_access(void)
{
	uint32_t size = 1u << rnd(5), lanes = some_lanes(), slots = MEMORY / size, first = rnd(slots);
	unsigned mode = rnd(4) ? rnd(2) : RMW + rnd(4), pattern = rnd(5);
	uint64_t addr[32];

	if (mode == COPY && size < 4)
		size = 4, slots = MEMORY / size, first = rnd(slots);
	if (mode == RMW || mode >= STRONG_READ)
		size = rnd(4) ? 4 : mode == RMW ? 8 : 1u << rnd(4), slots = MEMORY / size, first = rnd(slots);
	if (pattern == 4 && size < 16)
		pattern = 3;
	if (pattern == 4) /* no granule twice, in few orders, as ldmatrix */
		lanes = 0x3ffu >> rnd(4) << rnd(2);
	for (unsigned l = 0; l < 32; l++) {
		uint32_t at = pattern == 0 ? first + l : pattern == 1 ? first : pattern == 2 ? first + l % 4
			: pattern == 3 ? rnd(slots) : first / 4 + 3 * l;

		addr[l] = at % slots * size;
	}
	if (size == 1 && pattern == 3 && first % 4)
		columns(&lanes, addr);
	/* no two lanes of one instruction write the same bytes: race_one_instruction() */
	for (unsigned l = 0; mode != READ && mode != STRONG_READ && mode != RMW && l < 32; l++)
		for (unsigned k = 0; k < l; k++)
			if (lanes >> l & 1 && lanes >> k & 1 && addr[l] == addr[k])
				lanes &= ~L(l);
	access_lanes(rnd(WARPS), lanes, addr, size, mode);
}

static void fifo_commit(struct fifo *f)
{
	f->sealed[f->nsealed++] = f->open++;
}

static void fifo_wait(struct fifo *f, uint32_t n, struct know *to)
{
	if (f->nsealed <= n)
		return;
	for (uint32_t i = 0; i < f->n; i++)
		if (f->group[i] <= f->sealed[f->nsealed - 1 - n])
			put(to->g, f->id[i]);
}

static void random_groups(void)
{
	unsigned w = rnd(WARPS), kind = rnd(4), n = rnd(3);
	uint32_t lanes = rnd(3) ? ALL : some_lanes();
	struct event e = { .warp = (uint16_t)w, .lanes = lanes };

	for (unsigned l = 0; l < 32; l++) {
		unsigned t = w * 32 + l;

		if (!(lanes >> l & 1))
			continue;
		if (kind == 0)
			fifo_commit(&copies[t]);
		else if (kind == 1)
			fifo_wait(&copies[t], n, &thread[t]);
		else if (kind == 2)
			fifo_commit(&stores[t]);
		else
			fifo_wait(&stores[t], n, &thread[t]);
	}
	e.kind = kind == 0 ? EV_CP_ASYNC_COMMIT : kind == 1 ? EV_CP_ASYNC_WAIT : kind == 2
		? EV_BULK_COMMIT : EV_BULK_WAIT;
	if (e.kind == EV_CP_ASYNC_WAIT)
		e.cp_async_wait.pending = n;
	else if (e.kind == EV_BULK_WAIT)
		e.bulk_wait.pending = n;
	emit(e);
}

static void random_bulk_store(void)
{
	unsigned w = rnd(WARPS), l = rnd(2), t = w * 32 + l;
	uint32_t from = rnd(MEMORY / 16) * 16, size = 16 * (1 + rnd(2)), id = ids++;
	struct know *k = &thread[t];

	if (from + size > MEMORY)
		size = 16;
	for (uint32_t b = from; b < from + size; b++) {
		struct past now = { id, false, false, false, 4, id, false, false };

		classify(b, now, &k, 1, true);
		record(b, now);
	}
	stores[t].id[stores[t].n] = id;
	stores[t].group[stores[t].n++] = stores[t].open;
	emit((struct event){ .kind = EV_BULK, .warp = (uint16_t)w, .lanes = L(l), .bulk = {
		.mode = MODE_READ, .addr = from, .bytes = size, .mbarrier = EV_NO_MBARRIER } });
}

static void random_bulk_load(void)
{
	unsigned w = rnd(WARPS), l = rnd(2), t = w * 32 + l, o = nloads;
	uint32_t from = rnd(MEMORY / 16) * 16, size = 16 * (1 + rnd(2)), id;
	struct know *k = &thread[t];

	if (o == OBJECTS)
		return;
	nloads++;
	id = ids++;
	if (from + size > MEMORY)
		size = 16;
	emit((struct event){ .kind = EV_MBARRIER_ARRIVE, .warp = (uint16_t)w, .lanes = L(l),
		.mbarrier_arrive = { .addr = 0x4000 + 8 * o, .arrivals = 1, .tx_count = size,
		.sem = SEM_RELEASE, .flags = ARRIVE_EXPECT_TX } });
	add(&object[o], k);
	for (uint32_t b = from; b < from + size; b++) {
		struct past now = { id, true, false, false, 4, id, false, false };

		classify(b, now, &k, 1, true);
		record(b, now);
	}
	loads[o].id = id;
	loads[o].op = o + 1;
	loads[o].done = false;
	emit((struct event){ .kind = EV_BULK, .warp = (uint16_t)w, .lanes = L(l), .bulk = {
		.async_op = o + 1, .mode = MODE_WRITE, .addr = from, .bytes = size, .tx_count = size,
		.mbarrier = 0x4000 + 8 * o } });
	/* completes now or later; the signal is kept for then */
	loads[o].armed = true;
	if (rnd(2)) {
		emit((struct event){ .kind = EV_MBARRIER_SIGNAL, .mbarrier_signal = {
			.async_op = o + 1, .addr = 0x4000 + 8 * o, .tx_count = size } });
		put(object[o].g, id);
		loads[o].done = true;
	}
}

static void random_mbar_wait(void)
{
	unsigned w = rnd(WARPS);
	uint32_t lanes = some_lanes();

	if (!nloads)
		return;
	unsigned o = rnd(2) ? nloads - 1 : rnd(nloads);
	if (!loads[o].done)
		return;
	for (unsigned l = 0; l < 32; l++)
		if (lanes >> l & 1)
			add(&thread[w * 32 + l], &object[o]);
	emit((struct event){ .kind = EV_MBARRIER_TEST, .warp = (uint16_t)w, .lanes = lanes,
		.mbarrier_test = { .addr = 0x4000 + 8 * o, .sem = SEM_ACQUIRE,
		.flags = TEST_TRUE | TEST_PARITY } });
}

static void random_mma(void)
{
	struct ev_span span[5];
	uint32_t id = ids++, a = rnd(MEMORY / 16), b = rnd(MEMORY / 16);
	struct know *all[128];

	for (unsigned i = 0; i < 5; i++) /* each warp has its own rows */
		span[i] = (struct ev_span){ (i < 4 ? a + i : b) % (MEMORY / 16) * 16, 16 };
	for (unsigned t = 0; t < 128; t++)
		all[t] = &thread[t];
	for (unsigned i = 0; i < 5; i++)
		for (uint32_t k = 0; k < 16; k++) {
			struct past now = { id, false, false, false, 4, id, false, false };

			classify(span[i].addr + k, now, i < 4 ? all + 32 * i : all, i < 4 ? 32 : 128, true);
		}
	for (unsigned i = 0; i < 5; i++)
		for (uint32_t k = 0; k < 16; k++)
			record(span[i].addr + k, (struct past){ id, false, false, false, 4, id, false, false });
	mmas.id[mmas.n] = id;
	mmas.group[mmas.n++] = mmas.open;
	emit((struct event){ .kind = EV_WGMMA, .wgmma = { .spans = { span, 5 },
		.parts = { { 0, 1, 2, 3, 4, 5 } } } });
}

static void random_mma_group(void)
{
	unsigned n = rnd(2);

	if (rnd(2)) {
		fifo_commit(&mmas);
		emit((struct event){ .kind = EV_WGMMA_COMMIT });
		return;
	}
	for (unsigned t = 0; t < 128; t++)
		fifo_wait(&mmas, n, &thread[t]);
	emit((struct event){ .kind = EV_WGMMA_WAIT, .wgmma_wait.pending = n });
}

static void random_sync(void)
{
	static struct know sum;
	unsigned w = rnd(WARPS), l = rnd(32), o = rnd(8);
	uint32_t lanes = rnd(2) ? ALL : some_lanes();

	switch (rnd(8)) {
	case 7: /* __syncthreads, perhaps with a proxy fence by all threads before it */
		memset(&bar, 0, sizeof bar);
		if (rnd(2))
			for (unsigned t = 0; t < THREADS; t++) {
				memcpy(thread[t].p, thread[t].g, sizeof thread[t].p);
				if (t % 32 == 0)
					emit((struct event){ .kind = EV_FENCE_PROXY, .warp = (uint16_t)(t / 32) });
			}
		for (unsigned t = 0; t < THREADS; t++)
			add(&bar, &thread[t]);
		for (unsigned t = 0; t < THREADS; t++)
			thread[t] = bar;
		bar_all_();
		return;
	case 0: case 1:
		memset(&sum, 0, sizeof sum);
		for (l = 0; l < 32; l++)
			if (lanes >> l & 1)
				add(&sum, &thread[w * 32 + l]);
		for (l = 0; l < 32; l++)
			if (lanes >> l & 1)
				add(&thread[w * 32 + l], &sum);
		emit((struct event){ .kind = EV_WARP_SYNC, .warp = (uint16_t)w, .lanes = lanes,
			.warp_sync.mask = lanes });
		return;
	case 2: case 3: { /* warps w and v through a named barrier; v acquires, w perhaps */
		unsigned v = (w + 1 + rnd(WARPS - 1)) % WARPS;
		bool both = rnd(2);

		memset(&bar, 0, sizeof bar);
		for (l = 0; l < 32; l++) {
			add(&bar, &thread[w * 32 + l]);
			add(&bar, &thread[v * 32 + l]);
		}
		emit((struct event){ .kind = EV_BARRIER_ARRIVE, .warp = (uint16_t)w, .barrier_arrive = {
			.id = 1, .threads = 64, .mode = both ? BAR_SYNC : BAR_ARRIVE } });
		emit((struct event){ .kind = EV_BARRIER_ARRIVE, .warp = (uint16_t)v, .barrier_arrive = {
			.id = 1, .threads = 64 } });
		emit((struct event){ .kind = EV_BARRIER_RESUME, .warp = (uint16_t)v,
			.barrier_resume.id = 1 });
		if (both)
			emit((struct event){ .kind = EV_BARRIER_RESUME, .warp = (uint16_t)w,
				.barrier_resume.id = 1 });
		for (l = 0; l < 32; l++) {
			add(&thread[v * 32 + l], &bar);
			if (both)
				add(&thread[w * 32 + l], &bar);
		}
		return;
	}
	case 4: /* a flag: release by one lane, acquire by another or many */
		flag[o] = thread[w * 32 + l];
		emit((struct event){ .kind = EV_ACCESS, .warp = (uint16_t)w, .lanes = L(l), .access = {
			.space = SP_SHARED, .mode = MODE_WRITE, .sem = SEM_RELEASE, .scope = SCOPE_CTA,
			.at.base = 0x3000 + 16 * o, .bytes = 4 } });
		return;
	case 5:
		for (l = 0; l < 32; l++)
			if (lanes >> l & 1)
				add(&thread[w * 32 + l], &flag[o]);
		emit((struct event){ .kind = EV_ACCESS, .warp = (uint16_t)w, .lanes = lanes, .access = {
			.space = SP_SHARED, .mode = MODE_READ, .sem = SEM_ACQUIRE, .scope = SCOPE_CTA,
			.at.base = 0x3000 + 16 * o, .bytes = 4 } });
		return;
	default:
		for (l = 0; l < 32; l++)
			if (lanes >> l & 1)
				for (unsigned i = 0; i < IDS / 64; i++)
					thread[w * 32 + l].p[i] |= thread[w * 32 + l].g[i];
		emit((struct event){ .kind = EV_FENCE_PROXY, .warp = (uint16_t)w, .lanes = lanes });
	}
}

static bool fence_rule(unsigned r)
{
	return r == CS110 || r == CS111 || r == CS112 || r == CS113;
}

static bool race_rule(unsigned r)
{
	return (r >= CS101 && r <= CS109) || r == CS117 || r == CS120 || r == CS121
		|| r == CS301 || fence_rule(r);
}

static unsigned long conflicts, accesses;

/* ---- sequences ---- */

#define STEPS 400u

/* The state of the generator before each step, so that a step is the same if others are left out. */
static uint64_t state[STEPS];
static bool left_out[STEPS];

static void one_step(unsigned calm)
{
	unsigned k = rnd(20);

	if (rnd(8) < calm) random_sync();
	else if (k < 8) random_access();
	else if (k < 9) random_bulk_store();
	else if (k < 10) random_bulk_load();
	else if (k < 11) random_mbar_wait();
	else if (k < 13) random_groups();
	else if (k < 14) random_mma();
	else if (k < 15) random_mma_group();
	else random_sync();
}

static void forget_all(void)
{
	static bool added;

	for (unsigned i = 1; !added && i < 2 * UNREAD; i++)
		cr_assert(site_add(&(struct site){ .unread = i >= UNREAD }) == i);
	added = true;
	memset(thread, 0, sizeof thread);
	memset(flag, 0, sizeof flag);
	memset(object, 0, sizeof object);
	memset(nbyte, 0, sizeof nbyte);
	memset(copies, 0, sizeof copies);
	memset(stores, 0, sizeof stores);
	memset(&mmas, 0, sizeof mmas);
	memset(order_conflict, 0, sizeof order_conflict);
	memset(fence_conflict, 0, sizeof fence_conflict);
	memset(column, 0, sizeof column);
	for (unsigned t = 0; t < THREADS; t++)
		copies[t].open = stores[t].open = 1;
	mmas.open = 1;
	ids = nloads = 0;
}

/* The first step, from `first` on, at which the checker and the model differ; 0: none. */
static unsigned first_difference(unsigned first)
{
	static bool order[1024], fence[1024];
	const struct finding *const *f;
	size_t n = check_findings(checker, &f);

	memset(order, 0, sizeof order);
	memset(fence, 0, sizeof fence);
	for (size_t i = 0; i < n; i++) {
		if (!race_rule(f[i]->rule))
			continue;
		/* the pair is unordered in a finding, but the later site is the one that conflicts */
		uint32_t at = f[i]->side[0].site % UNREAD;

		(fence_rule(f[i]->rule) ? fence : order)[at] = true;
	}
	for (uint32_t at = first; at < line; at++) {
		/* all lanes of a warp execute wgmma.wait_group together: what is ordered by that alone is
		 * CS109, or the missing fence if that is more serious */
		order[at] |= order_conflict[at] && fence[at];
		if (order[at] != order_conflict[at])
			return at;
		if (!order_conflict[at] && fence[at] != fence_conflict[at])
			return at;
		conflicts += order_conflict[at] + fence_conflict[at];
		accesses++;
	}
	return 0;
}

static struct event_sink *checked;

static void print_event(struct event_sink *self, const struct event *e)
{
	struct text t = { 0 };

	(void)self;
	event_print(e, &t);
	fprintf(stderr, "%.*s\n", (int)t.n, t.at);
	text_free(&t);
	(checked->event)(checked, e);
}

/* Runs the steps below `end` that are not left out. known: state[] is known. */
static unsigned run_steps(uint64_t from, unsigned end, bool known, bool print)
{
	struct event_sink printed = { print_event, false };
	unsigned calm, difference;

	seed = from;
	calm = rnd(8); /* the more synchronization, the fewer conflicts */
	forget_all();
	line = 1023;
	begin(WARPS);
	for (unsigned o = 0; o < OBJECTS; o++)
		mb_init(0, 0, 0x4000 + 8 * o, 1);
	bar_all();
	checked = sink;
	sink = print ? &printed : sink;
	for (line = 1; line < end && ids < IDS - 64; line++) {
		if (known)
			seed = state[line];
		else
			state[line] = seed;
		if (!left_out[line])
			one_step(calm);
	}
	check_cluster_end(checker, checked);
	difference = first_difference(1);
	check_close(checker);
	return difference;
}

/* Leaves out all steps without which the last one still differs, and prints the others' events. */
static void reduce(uint64_t from, unsigned last)
{
	for (unsigned size = 64, again = 1; size; size /= 2)
		for (again = 1; again;) {
			again = 0;
			for (unsigned at = 1; at < last; at += size) {
				bool before[STEPS], any = false;

				memcpy(before, left_out, sizeof before);
				for (unsigned k = at; k < at + size && k < last; k++) {
					any |= !left_out[k];
					left_out[k] = true;
				}
				if (any && run_steps(from, last + 1, true, false) == last)
					again = 1;
				else
					memcpy(left_out, before, sizeof before);
			}
		}
	run_steps(from, last + 1, true, true);
}

static void one_sequence(uint64_t from)
{
	unsigned at;

	memset(left_out, 0, sizeof left_out);
	at = run_steps(from, STEPS, false, false);
	if (!at)
		return;
	reduce(from, at);
	cr_assert(false, "seed %llu step %u: order conflict %d, fence conflict %d by the model alone",
		(unsigned long long)from, at, order_conflict[at], fence_conflict[at]);
}

/* the model has no synchronization by wgmma */
static void no_joining_wgmma(struct check_policy *p)
{
	p->wgmma_does_not_join = 1;
}

Test(shadow, agrees_with_the_model)
{
	unsigned long n;

	tune = no_joining_wgmma;
	/* 20,000: two defects so far showed in one sequence of about that many */
	n = seeds_run(20000, one_sequence);
	fprintf(stderr, "shadow: %lu steps, %lu conflicts agreed\n", accesses, conflicts);
	cr_assert(!n || conflicts > n, "the sequences must have conflicts");
}
