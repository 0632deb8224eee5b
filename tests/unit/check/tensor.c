/* Tensor memory: random operations of a few warps, judged by the checker and by a model that
 * compares each operation with every earlier one and forgets nothing. Both must name the same first
 * operation that is not ordered after an earlier one. CHECK_RUNS=n runs more sequences. */
#include <criterion/criterion.h>

#include "tests/common/event_dsl.h"
#include "libconsan/finding/rule_codes.h"

enum { WARPS = 6, MAX_OPS = 60, COLUMNS = 32, LANES = 128, BARRIERS = 0x4000 };

static uint64_t random_state;

static uint32_t roll(uint32_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % n;
}

/* ---- the model ---- */

enum kind { LD, ST, MMA, CP };
enum role { NOT, READS, WRITES }; /* of a cell */

struct op {
	enum kind kind;
	unsigned warp, lane;     /* MMA, CP: the thread */
	unsigned d, shape;       /* MMA */
	uint8_t data[LANES][COLUMNS]; /* D, or what a load, a store or a copy accesses: enum role */
	uint8_t a[LANES][COLUMNS]; /* matrix A of an mma */
};

static struct op op[MAX_OPS];
static unsigned n;
static bool dry;                         /* operations are only tried */
static bool known[WARPS][MAX_OPS];       /* is it complete, as far as the warp knows? */
static bool published[WARPS][MAX_OPS];   /* by the newest commit of the warp on its mbarrier */
static unsigned phases[WARPS];           /* of that mbarrier */

static bool conflict(uint8_t x[LANES][COLUMNS], uint8_t y[LANES][COLUMNS])
{
	for (unsigned l = 0; l < LANES; l++)
		for (unsigned c = 0; c < COLUMNS; c++)
			if (x[l][c] && y[l][c] && (x[l][c] == WRITES || y[l][c] == WRITES))
				return true;
	return false;
}

/* Do PTX ISA 9.1 and 9.4 both order these operations of one thread? */
static bool pipelined(const struct op *x, const struct op *y, bool reads_a)
{
	if (x->warp != y->warp || x->lane != y->lane || y->kind != MMA)
		return false;
	if (x->kind == MMA)
		return x->d == y->d && x->shape == y->shape && !reads_a;
	return x->kind == CP && reads_a;
}

/* Is the newest operation in conflict with one that it is not ordered after? */
static bool races(void)
{
	struct op *y = &op[n - 1];

	for (unsigned i = 0; i + 1 < n; i++) {
		struct op *x = &op[i];

		if (known[y->warp][i])
			continue;
		if ((conflict(x->data, y->data) || conflict(x->a, y->data)) && !pipelined(x, y, false))
			return true;
		if (conflict(x->data, y->a) && !pipelined(x, y, true))
			return true;
	}
	return false;
}

static void learn(unsigned to, const bool from[MAX_OPS])
{
	for (unsigned i = 0; i < n; i++)
		known[to][i] |= from[i];
}

/* ---- events ---- */

static void issue(struct event e)
{
	if (!dry)
		emit(e);
}

static void fill(uint8_t cell[LANES][COLUMNS], struct ev_area *area, unsigned first,
	unsigned lanes, unsigned column, unsigned columns, bool write)
{
	*area = (struct ev_area){ .column = (uint16_t)column, .columns = (uint16_t)columns, .ctas = 1,
		.mode = write ? MODE_WRITE : MODE_READ };
	for (unsigned l = first; l < first + lanes; l++) {
		area->lanes[l / 32] |= 1u << l % 32;
		for (unsigned c = column; c < column + columns; c++)
			cell[l][c] = write ? WRITES : READS;
	}
}

static void access_by(unsigned w, bool store, unsigned first, unsigned lanes, unsigned column,
	unsigned columns)
{
	struct op *o = &op[n++];
	struct ev_area area;

	*o = (struct op){ .kind = store ? ST : LD, .warp = w };
	fill(o->data, &area, first, lanes, column, columns, store);
	issue((struct event){ .kind = EV_TMEM_ACCESS, W(w), .tmem_access = { .areas = { &area, 1 },
		.mode = store ? MODE_WRITE : MODE_READ } });
}

static void random_access(unsigned w)
{
	const bool half = !roll(3);
	const unsigned columns = 1 + roll(8), first = w % 4 * 32 + (half ? 16 * roll(2) : 0);

	access_by(w, roll(2), first, half ? 16 : 32, roll(COLUMNS + 1 - columns), columns);
}

static void random_mma(unsigned w)
{
	struct op *o = &op[n++];
	struct ev_area area[2];
	unsigned areas = 1;

	*o = (struct op){ .kind = MMA, .warp = w, .lane = !roll(6), .d = 8 * roll(4),
		.shape = 1 + !roll(4) };
	/* M = 64 has half of each warp's window */
	fill(o->data, &area[0], 0, o->shape == 2 ? 16 : LANES, o->d, 8, true);
	area[0].operand = OPERAND_D;
	if (roll(2)) {
		fill(o->a, &area[1], 0, LANES, (o->d + 8 + 8 * roll(3)) % COLUMNS, 8, false);
		area[areas++].operand = OPERAND_A;
	}
	issue((struct event){ .kind = EV_TCGEN05, W(w), .lanes = L(o->lane), .tcgen05 = {
		.areas = { area, (uint16_t)areas }, .op = TC_MMA, .d = o->d, .shape = o->shape,
		.ctas = 1 } });
}

static void random_copy(unsigned w)
{
	struct op *o = &op[n++];
	struct ev_area area;

	*o = (struct op){ .kind = CP, .warp = w };
	fill(o->data, &area, 0, LANES, 8 * roll(4), 4 + 4 * roll(2), true);
	area.operand = OPERAND_D;
	issue((struct event){ .kind = EV_TCGEN05, W(w), .lanes = 1, .tcgen05 = {
		.areas = { &area, 1 }, .op = TC_CP, .d = area.column, .ctas = 1 } });
}

static void wait_access(unsigned w, bool store)
{
	for (unsigned i = 0; i < n; i++)
		if (op[i].warp == w && op[i].kind == (store ? ST : LD))
			known[w][i] = true;
	emit((struct event){ .kind = EV_TMEM_WAIT, W(w), .tmem_wait.mode = store ? MODE_WRITE
		: MODE_READ });
}

static void commit(unsigned w, unsigned lane)
{
	static uint32_t number;

	memcpy(published[w], known[w], sizeof published[w]);
	for (unsigned i = 0; i < n; i++)
		if (op[i].warp == w && op[i].lane == lane && op[i].kind >= MMA)
			published[w][i] = true;
	phases[w]++;
	number++;
	emit((struct event){ .kind = EV_TCGEN05_COMMIT, W(w), .lanes = L(lane), .tcgen05_commit = {
		.async_op = number, .addr = BARRIERS + 8 * w, .ctas = 1 } });
	emit((struct event){ .kind = EV_MBARRIER_SIGNAL, W(w), .lanes = L(lane), .mbarrier_signal = {
		.async_op = number, .addr = BARRIERS + 8 * w, .arrivals = 1 } });
}

static void wait_commit(unsigned w, unsigned of)
{
	if (!phases[of])
		return;
	learn(w, published[of]);
	emit((struct event){ .kind = EV_MBARRIER_TEST, W(w), .mbarrier_test = {
		.addr = BARRIERS + 8 * of, .phase = (phases[of] - 1) & 1, .sem = SEM_ACQUIRE,
		.scope = SCOPE_CTA, .flags = TEST_TRUE | TEST_PARITY } });
}

/* A named barrier of two warps */
static void meet(unsigned a, unsigned b)
{
	if (a == b)
		return;
	learn(a, known[b]);
	learn(b, known[a]);
	bar_enter(a, 1, 64);
	bar_enter(b, 1, 64);
	bar_leave(a, 1);
	bar_leave(b, 1);
}

static bool found_race(void)
{
	const struct finding *const *f;
	const size_t count = check_findings(checker, &f);

	for (size_t i = 0; i < count; i++)
		if (f[i]->rule >= CS601 && f[i]->rule <= CS606)
			return true;
	return false;
}

/* Each warp stores its window; all know that. */
static void initialise(void)
{
	begin(WARPS);
	n = 0;
	memset(known, 0, sizeof known);
	memset(phases, 0, sizeof phases);
	for (unsigned w = 0; w < WARPS; w++)
		mb_init(0, 0, BARRIERS + 8 * w, 1);
	emit((struct event){ .kind = EV_TMEM_ALLOC, W(0), .tmem_alloc.columns = COLUMNS });
	for (unsigned w = 0; w < 4; w++) {
		access_by(w, true, 32 * w, 32, 0, COLUMNS);
		wait_access(w, true);
	}
	for (unsigned w = 0; w < 4; w++)
		for (unsigned v = 0; v < WARPS; v++)
			learn(v, known[w]);
	bar_all();
}

static void random_operation(unsigned w)
{
	switch (roll(4)) {
	case 0: case 1: random_access(w); break;
	case 2: random_mma(w); break;
	default: random_copy(w); break;
	}
}

/* Most sequences shall be long: an operation that races is mostly left out. */
static void try_operation(unsigned w)
{
	const uint64_t state = random_state;
	bool leave;

	dry = true;
	random_operation(w);
	dry = false;
	leave = races() && roll(12);
	n--;
	if (leave)
		return;
	random_state = state;
	random_operation(w);
}

static void run(uint64_t seed)
{
	unsigned found[16], steps = 0;
	enum severity sev[16];
	bool want = false, got = false;

	random_state = seed;
	initialise();
	while (!want && !got && n < MAX_OPS && steps++ < 400) {
		const unsigned w = roll(WARPS), before = n;

		switch (roll(12)) {
		case 0: case 1: case 2: case 3: try_operation(w); break;
		case 4: wait_access(w, false); break;
		case 5: wait_access(w, true); break;
		case 6: commit(w, !roll(6)); break;
		case 7: case 8: wait_commit(roll(WARPS), w); break;
		default: meet(w, roll(WARPS)); break;
		}
		if (n == before)
			continue;
		want = races();
		got = found_race();
	}
	cr_expect_eq(want, got, "seed %llu, operation %u: the model %s, the checker %s",
		(unsigned long long)seed, n - 1, want ? "finds a race" : "finds none",
		got ? "does" : "does not");
	finish(found, sev);
}

Test(tensor, model)
{
	const char *text = getenv("CHECK_RUNS");
	const uint64_t runs = text ? strtoull(text, NULL, 10) : 3000;

	for (uint64_t seed = 1; seed <= runs; seed++)
		run(seed);
}

/* Cells of an accumulator whose mmas are ordered by the pipeline keep one history. */
Test(tensor, pipelined_mmas_share_cells)
{
	struct ev_area d = { .columns = 256, .ctas = 1, .mode = MODE_WRITE, .operand = OPERAND_D,
		.lanes = { ALL, ALL, ALL, ALL } };
	struct check_stats stats;

	begin(1);
	emit((struct event){ .kind = EV_TMEM_ALLOC, W(0), .tmem_alloc.columns = 256 });
	for (unsigned i = 0; i < 8; i++)
		emit((struct event){ .kind = EV_TCGEN05, W(0), .lanes = 1, .tcgen05 = {
			.areas = { &d, 1 }, .op = TC_MMA, .shape = 1, .ctas = 1 } });
	cr_expect_not(found_race());
	check_cluster_end(checker, sink);
	check_stats(checker, &stats);
	cr_expect_lt(stats.shadow_bytes, 128 << 10, "%lu bytes", (unsigned long)stats.shadow_bytes);
	check_close(checker);
}
