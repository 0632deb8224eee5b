/* The checker's use of the shadow of global memory against a model that forgets nothing: events of
 * several clusters with random accesses and synchronization. The model's knowledge is a set of past
 * accesses, one for each lane and instruction, and every byte keeps all its accesses.
 *
 *  - every finding is a pair of instructions that race in the model;
 *  - on every byte with a race in the model, a pair that races there is found.
 * The environment variables are those of seeds.h. */
#include "libconsan/check/check.h"
#include "libconsan/finding/rule_codes.h"
#include "tests/common/event_dsl.h"
#include "tests/common/random.h"
#include "seeds.h"

#include <criterion/criterion.h>

#define CLUSTERS 3u
#define WARPS 2u /* of a cluster */
#define AGENTS (CLUSTERS * WARPS)
#define THREADS (AGENTS * 32)
#define DATA 1024u
#define FLAGS 16u  /* each after a word of data */
#define MEMORY (DATA + 8 * FLAGS)
#define IDS 8192u
#define LINES 400u
#define PAIRS 64u  /* kept for a byte */

typedef uint64_t set[IDS / 64];

struct touch {
	uint32_t id, thread, line, event;
	bool write;
};

struct byte {
	struct touch at[2048];
	uint32_t n, npairs;
	struct { uint32_t a, b; } pair[PAIRS];
	bool lost;
};

static set know[THREADS], flag[FLAGS];
static struct byte memory[MEMORY];
static bool pairs[LINES][LINES];
static uint64_t base;
static uint32_t ids, events;
static struct event_sink *sinks[CLUSTERS];
static bool apart;
static unsigned long races;

static void add(set to, const set from)
{
	for (unsigned i = 0; i < IDS / 64; i++)
		to[i] |= from[i];
}

static bool has(const set s, uint32_t id)
{
	return s[id / 64] >> id % 64 & 1;
}

static void act(uint32_t agent)
{
	sink = sinks[agent / WARPS];
}

/* ---- accesses ---- */

/* More than 4 reads of a granule by a warp may be merged, see global_model.c. */
static bool many_reads(uint32_t at, uint32_t agent)
{
	uint32_t reads = 0, last = 0;

	for (uint32_t b = at & -16u; b < (at & -16u) + 16; b++)
		for (uint32_t i = 0; i < memory[b].n; i++) {
			const struct touch *x = &memory[b].at[i];

			reads += !x->write && x->thread / 32 == agent && x->event != last;
			last = x->event;
		}
	return reads > 4;
}

static void compare(uint32_t at, struct touch now)
{
	struct byte *b = &memory[at];

	for (uint32_t i = 0; i < b->n; i++) {
		const struct touch *x = &b->at[i];

		if (x->line == now.line || !(x->write || now.write) || has(know[now.thread], x->id))
			continue;
		pairs[x->line][now.line] = pairs[now.line][x->line] = true;
		b->lost |= !x->write && many_reads(at, x->thread / 32);
		if (b->npairs < PAIRS) {
			b->pair[b->npairs].a = x->line;
			b->pair[b->npairs++].b = now.line;
		}
	}
	cr_assert(b->n < ARRAY_SIZE(b->at));
	b->at[b->n++] = now;
}

static void access_lanes(uint32_t agent, uint32_t lanes, const uint32_t at[32], int32_t stride,
	uint32_t size, bool write)
{
	uint32_t first = ids;
	uint64_t addr[32];

	events++;
	for (unsigned l = 0; l < 32; l++)
		addr[l] = base + at[l];
	for (uint32_t m = lanes; m; m &= m - 1) {
		const unsigned l = (unsigned)__builtin_ctz(m);

		for (uint32_t i = 0; i < size; i++)
			compare(at[l] + i, (struct touch){ ids, agent * 32 + l, line, events,
				write });
		ids++;
	}
	for (uint32_t m = lanes; m; m &= m - 1, first++)
		know[agent * 32 + (unsigned)__builtin_ctz(m)][first / 64] |= 1ull << first % 64;
	if (getenv("SHADOW_VERBOSE")) {
		fprintf(stderr, "%u: agent %u %s size %u lanes %#x stride %d:", line, agent,
			write ? "write" : "read", size, lanes, stride);
		for (unsigned l = 0; l < 32; l++)
			fprintf(stderr, " %u", at[l]);
		fprintf(stderr, "%s\n", apart ? " apart" : "");
	}
	act(agent);
	emit((struct event){ .kind = EV_ACCESS, .warp = (uint16_t)(agent % WARPS), .lanes = lanes,
		.access = { .space = SP_GLOBAL, .mode = write ? MODE_WRITE : MODE_READ, .sem = SEM_WEAK,
		.bytes = size, .at = { .lane = stride == INT32_MAX ? addr : NULL,
		.base = addr[0], .stride = stride == INT32_MAX ? 0 : stride } } });
}

static uint32_t some_lanes(void)
{
	switch (rnd(6)) {
	case 0: return 1u << rnd(32);
	case 1: return (2u << rnd(31)) - 1;
	case 2: return 0x55555555u << rnd(2);
	case 3: return (rnd(1u << 16) << 16 | rnd(1u << 16)) | 1;
	default: return UINT32_MAX;
	}
}

static void random_sync(uint32_t agent);

static void random_access(void)
{
	const uint32_t size = 1u << rnd(5), agent = rnd(AGENTS), slots = DATA / size;
	const uint32_t lanes = some_lanes(), form = rnd(6), row = 1u << rnd(6);
	const bool write = !rnd(3);
	uint32_t places = write || rnd(2) ? 1 : 1 + rnd(5), at[32];
	const bool loop = rnd(2); /* there is synchronization between the places */
	int32_t first[32], low = 0, high = 0, step = (int32_t)rnd(9) - 4;
	const int32_t stride = form ? INT32_MAX : rnd(2) ? 1 : (int32_t)rnd(5) - 2;
	const int32_t pitch = (int32_t)rnd(17) - 8, inner = rnd(2) ? 1 : (int32_t)rnd(5) - 2;
	uint32_t start;

	for (uint32_t l = 0; l < 32; l++) {
		first[l] = form == 0 ? stride * (int32_t)l
			: form == 1 ? (int32_t)(l * (l + 1) / 2 & 31)
			: form == 2 ? (int32_t)rnd(slots < 64 ? slots : 64)
			: (int32_t)(l / row) * (form == 3 ? 0 : pitch) + (int32_t)(l % row) * inner;
		low = first[l] < low ? first[l] : low;
		high = first[l] > high ? first[l] : high;
	}
	if (step < 0)
		low += step * (int32_t)(places - 1);
	else
		high += step * (int32_t)(places - 1);
	if (high - low >= (int32_t)slots)
		return;
	start = rnd(slots - (uint32_t)(high - low)) + (uint32_t)-low;
	for (uint32_t p = 0; p < places; p++) {
		if (p && loop)
			random_sync(agent);
		for (unsigned l = 0; l < 32; l++)
			at[l] = (start + (uint32_t)first[l] + p * (uint32_t)step) * size;
		access_lanes(agent, lanes, at, form ? INT32_MAX : stride * (int32_t)size, size, write);
	}
}

/* The words of data between the flags. */
static void between_flags(void)
{
	uint32_t at[32];

	for (unsigned l = 0; l < 32; l++)
		at[l] = DATA + 8 * (l % FLAGS);
	access_lanes(rnd(AGENTS), (some_lanes() & ((1u << FLAGS) - 1)) | 1, at, rnd(2) ? 8 : INT32_MAX,
		4, rnd(2));
}

/* ---- synchronization ---- */

static void flag_access(uint32_t agent, uint32_t lanes, uint32_t o, bool write)
{
	act(agent);
	emit((struct event){ .kind = EV_ACCESS, .warp = (uint16_t)(agent % WARPS), .lanes = lanes,
		.access = { .space = SP_GLOBAL, .mode = write ? MODE_WRITE : MODE_READ,
		.sem = write ? SEM_RELEASE : SEM_ACQUIRE, .scope = SCOPE_GPU, .bytes = 4,
		.at.base = base + DATA + 8 * o + 4 } });
}

static void random_sync(uint32_t agent)
{
	static set sum;
	const uint32_t lanes = rnd(2) ? ALL : some_lanes(), l = rnd(32), o = rnd(FLAGS);

	memset(sum, 0, sizeof sum);
	switch (rnd(apart ? 2 : 5)) {
	case 0: /* bar.warp.sync */
		for (unsigned i = 0; i < 32; i++)
			if (lanes >> i & 1)
				add(sum, know[agent * 32 + i]);
		for (unsigned i = 0; i < 32; i++)
			if (lanes >> i & 1)
				add(know[agent * 32 + i], sum);
		act(agent);
		emit((struct event){ .kind = EV_WARP_SYNC, .warp = (uint16_t)(agent % WARPS),
			.lanes = lanes, .warp_sync.mask = lanes });
		return;
	case 1: { /* __syncthreads */
		const uint32_t from = agent / WARPS * WARPS * 32;

		for (unsigned i = 0; i < WARPS * 32; i++)
			add(sum, know[from + i]);
		for (unsigned i = 0; i < WARPS * 32; i++)
			add(know[from + i], sum);
		act(agent);
		bar_all_();
		return;
	}
	case 2: /* release */
		memcpy(flag[o], know[agent * 32 + l], sizeof flag[o]);
		flag_access(agent, 1u << l, o, true);
		return;
	default: /* acquire */
		for (unsigned i = 0; i < 32; i++)
			if (lanes >> i & 1)
				add(know[agent * 32 + i], flag[o]);
		flag_access(agent, lanes, o, false);
	}
}

/* ---- one case ---- */

static void open_clusters(void)
{
	struct check_config config = { .global = true,
		.launch = { .kernel = "test", .grid = { CLUSTERS, 1, 1 }, .block = { WARPS * 32, 1, 1 },
			.sm = 90, .apart = apart } };

	check_policy_default(&config.policy);
	checker = check_open(&config);
	nwarps = WARPS;
	for (uint32_t i = 0; i < CLUSTERS; i++) {
		struct cluster_info info = { .launch = &config.launch, .id = i, .nctas = 1,
			.warps_per_cta = WARPS };

		sink = sinks[i] = check_cluster_begin(checker, &info);
		emit((struct event){ .kind = EV_CTA_BEGIN, .cta_begin = { .threads = WARPS * 32 } });
	}
}

static bool is_race(unsigned rule)
{
	return rule >= CS101 && rule <= CS109;
}

static void one_case(uint64_t from)
{
	const struct finding *const *f;
	static bool found[LINES][LINES];
	uint32_t calm;
	size_t n;

	seed = from;
	calm = rnd(6);
	apart = rnd(2);
	base = 0x7f3200000000ull + (rnd(2) ? rnd(1u << 18) : 65536 - rnd(MEMORY)) / 16 * 16;
	memset(know, 0, sizeof know);
	memset(flag, 0, sizeof flag);
	memset(pairs, 0, sizeof pairs);
	memset(found, 0, sizeof found);
	for (uint32_t i = 0; i < MEMORY; i++) {
		memory[i].n = memory[i].npairs = 0;
		memory[i].lost = false;
	}
	ids = 0;
	line = 0;
	open_clusters();
	for (line = 1; line < 20 + calm * 20 && line < LINES && ids < IDS - 200; line++)
		if (rnd(8) < calm)
			random_sync(rnd(AGENTS));
		else if (rnd(12))
			random_access();
		else
			between_flags();
	for (uint32_t i = 0; i < CLUSTERS; i++)
		check_cluster_end(checker, sinks[i]);
	n = check_findings(checker, &f);
	for (size_t i = 0; i < n; i++) {
		const uint32_t a = f[i]->side[0].site, b = f[i]->side[1].site;

		if (getenv("SHADOW_VERBOSE"))
			fprintf(stderr, "%s %u %u\n", rule_get(f[i]->rule)->code, a, b);
		if (!is_race(f[i]->rule) || a == b)
			continue;
		cr_assert(pairs[a][b], "case %llu: %s of lines %u and %u, which do not race",
			(unsigned long long)from, rule_get(f[i]->rule)->code, a, b);
		found[a][b] = found[b][a] = true;
	}
	for (uint32_t at = 0; at < MEMORY; at++) {
		const struct byte *b = &memory[at];
		bool is = b->lost || b->npairs == PAIRS;

		for (uint32_t i = 0; i < b->npairs && !is; i++)
			is = found[b->pair[i].a][b->pair[i].b];
		cr_assert(is || !b->npairs, "case %llu: no race is found on byte %u, where lines %u and %u "
			"race", (unsigned long long)from, at, b->pair[0].a, b->pair[0].b);
		races += b->npairs && !b->lost;
	}
	check_close(checker);
}

Test(global_check, agrees_with_the_model)
{
	const unsigned long n = seeds_run(400, one_case);

	if (!n)
		return;
	fprintf(stderr, "check of global memory: races on %lu bytes found\n", races);
	cr_assert(races > n, "there must be races");
}
