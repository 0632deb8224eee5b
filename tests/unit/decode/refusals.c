/* refusals: refused operands are found in records as the executor finds them: planted bugs and
 * specimens on the executor, and constructed records that only a GPU can write. */
#include "tests/common/limits.h"
#include "tests/common/shell.h"

#include <criterion/criterion.h>

#include "instrument/decode/decode.h"
#include "libconsan/ptx/opcodes.h"

/* The line of a report with this rule and its site. */
static bool headline(const char *rule, char line[256])
{
	char head[32];
	const char *at;

	snprintf(head, sizeof head, "error %s ", rule);
	at = strstr(output, head);
	if (at)
		snprintf(line, 256, "%.*s", (int)strcspn(at, "\n"), at);
	return at;
}

/* Operands that the executor refuses in the cpu backend and the decoder refuses in records:
 * the same finding at the same source line, once. */
Test(refusals, planted, .timeout = TEST_LIMIT)
{
	static const struct { const char *program, *bug, *rule; } bug[] = {
		{ "hgemm/hgemm", "stage_overrun", "CS902" },
		{ "hgemm/hgemm", "misaligned_row", "CS904" },
		{ "hgemm/hgemm --m=98", "diverged_barrier", "CS403" },
		{ "mlp/fused_mlp", "slots_of_one", "CS902" },
		{ "attention/mesh_kv", "off_the_end", "CS501" },
		{ "attention/mesh_kv", "own_barrier", "CS311" },
		{ "attention/mesh_mlo", "leaves_early", "CS503" },
		{ "attention/fa2_split_q --n=72", "rows_unguarded", "CS903" },
		{ "attention/fa2_split_q", "shuffle_mask", "CS407" },
		{ "wgmma_gemm/wgmma_gemm", "setmaxnreg_up", "CS408" },
	};
	static const char *const backend[] = { "cpu", "gpu-emulated --gpu-global", "gpu-emulated --jobs=1",
		"gpu-emulated --jobs=16" };
	const char *dir = build_dir();
	char line[4][256];

	for (size_t k = 0; k < sizeof bug / sizeof *bug; k++)
		for (size_t b = 0; b < (strcmp(bug[k].rule, "CS903") ? 4 : 2); b++) {
			cr_expect_eq(shell("%s/consan-run --backend=%s --no-source %s/kernels/%s --bug=%s 2>&1",
				dir, backend[b], dir, bug[k].program, bug[k].bug), 66, "%s: %s", bug[k].bug, output);
			cr_assert(headline(bug[k].rule, line[b]), "%s: %s: %s", bug[k].bug, backend[b], output);
			cr_expect_str_eq(line[b], line[0], "%s: %s", bug[k].bug, backend[b]);
		}
}

/* The specimens of those rules, the last two with --gpu-global only. */
Test(refusals, specimens, .timeout = TEST_LIMIT)
{
	static const char *const specimen[] = { "async/cs303*", "async/cs304_bulk_size", "async/cs305*",
		"async/cs306*", "barrier/cs401*", "barrier/cs403*", "barrier/cs407*", "barrier/cs408*",
		"cluster/cs217*", "cluster/cs311*", "cluster/cs501*", "cluster/cs902*", "mbarrier/cs201*",
		"mbarrier/cs220*", "values/cs902*",
		"async/cs32[45]_[dt]*", "barrier/cs410*", "sets/follower*", "*/*token*",
		"values/cs905*", "values/cs904*", "async/cs304*", "values/cs903*" };
	const size_t n = sizeof specimen / sizeof *specimen;
	const char *dir = build_dir();

	for (size_t k = 0; k < 2 * n - 2; k++) {
		const char *path = specimen[k % n];

		cr_expect_eq(shell("unset BXFI_MAP; CASES='tests/cases/%s.ptx' CASES_WITH='backend=gpu-emulated "
			"gpu-global=%d timeout=2' %s/tests/cases/harness/cases --filter cases/specimen 2>&1",
			path, k < n, dir), 0, "%s", output);
		cr_expect_null(strstr(output, "Tested: 0"), "%s: none", path);
	}
}

/* ---- constructed records ---- */

static const char kernel[] =
	".version 8.0\n.target sm_90a\n.address_size 64\n"
	".visible .entry k()\n{\n\t.reg .b32 %r<4>;\n\t.reg .b64 %d<4>;\n\t.reg .f32 %f<4>;\n"
	"\t.reg .pred %p;\n\t.shared .align 16 .b8 tile[4096];\n\tmov.u32 %r1, tile;\n"
	"\tst.shared.u32 [%r1], %r2;\n\tbar.sync 0;\n"
	"\tldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];\n"
	"\tmbarrier.init.shared.b64 [%r1], 1;\n\tmbarrier.arrive.shared.b64 %d1, [%r1];\n"
	"\tmbarrier.test_wait.shared.b64 %p, [%r1], %d1;\n"
	"\tmbarrier.try_wait.parity.shared.b64 %p, [%r1], 0;\n"
	"\twgmma.fence.sync.aligned;\n"
	"\twgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, "
	"%d1, %d2, %p, 1, 1, 0, 0;\n"
	"\twgmma.commit_group.sync.aligned;\n"
	"\tcp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
	"[%d1, {%r2}], [%r3];\n\tret;\n}\n";

enum { CHUNKS = 8, END = 1024 + 4096 };

/* The records of a launch, and what the decoder made of them. */
struct recording {
	struct event_sink sink;
	struct ptx_module *ptx;
	struct rewrite *code;
	uint32_t pool[CHUNKS + 1][RECORD_CHUNK_BYTES / 4], clock;
	uint32_t nchunks, at;      /* in the chunk */
	struct decode_sites *sites;
	uint32_t site[64];
	struct launch_info info;
	struct decode_launch l;
	unsigned nfaults;
	struct event fault;        /* the last one */
	struct event map, wait;
	unsigned narrivals;
};

static struct recording recording;

static void on_event(struct event_sink *sink, const struct event *e)
{
	struct recording *h = (struct recording *)sink;

	if (e->kind == EV_TENSOR_MAP || e->kind == EV_BULK)
		h->map = *e;
	if (e->kind == EV_MBARRIER_TEST)
		h->wait = *e;
	h->narrivals += e->kind == EV_MBARRIER_ARRIVE;
	if (e->kind != EV_FAULT)
		return;
	h->nfaults++;
	h->fault = *e;
}

static struct event_sink *on_begin(void *user, const struct cluster_info *c)
{
	(void)c;
	return &((struct recording *)user)->sink;
}

static void on_end(void *user, struct event_sink *sink)
{
	(void)user;
	(void)sink;
}

/* A launch of one cluster of two CTAs, as on a GPU. */
static struct recording *begin(void)
{
	struct recording *h = &recording;
	struct consan_err e = { 0 };

	memset(h, 0, sizeof *h);
	h->sink.event = on_event;
	h->ptx = ptx_parse("k.ptx", kernel, sizeof kernel - 1, &e);
	cr_assert_not_null(h->ptx, "%s", e.text);
	h->code = rewrite_module(h->ptx, &(struct rewrite_options){ .number = 0 });
	cr_assert_lt(h->code->site.n + h->code->batch.n + h->code->reg_use.n, 64);
	h->sites = decode_sites_open(h->code);
	for (uint32_t k = 0; k < 64; k++)
		h->site[k] = k;
	h->info = (struct launch_info){ .kernel = "k", .grid = { 2, 1, 1 }, .block = { 128, 1, 1 },
		.cluster = { 2, 1, 1 }, .shared_static = END, .regs_per_thread = 32, .sm = 90 };
	h->l = (struct decode_launch){ .code = h->code, .sites = h->sites,
		.func = rewrite_find(h->code, "k"),
		.site = h->site, .info = &h->info, .pool = h->pool, .shared = END, .ended = true,
		.jobs = 1, .user = h, .cluster_begin = on_begin, .cluster_end = on_end };
	return h;
}

static void chunk_of(struct recording *h, uint32_t cta, uint32_t warp_lane)
{
	h->nchunks++;
	h->pool[h->nchunks][0] = cta;
	h->pool[h->nchunks][1] = warp_lane;
	h->pool[h->nchunks][2] = h->clock;
	h->at = 4;
}

static void chunk(struct recording *h, uint32_t cta, uint32_t warp)
{
	chunk_of(h, cta, warp << 5);
}

/* A record is in a chunk of its lowest lane. */
static void go_to_leader(struct recording *h, uint32_t lanes)
{
	const uint32_t *now = h->pool[h->nchunks], leader = (uint32_t)__builtin_ctz(lanes);

	if (now[1] % 32 != leader)
		chunk_of(h, now[0], now[1] / 32 * 32 + leader);
}

static bool is_of(const struct rewrite_site *s, enum ptx_op op, enum site_phase phase)
{
	return s->insn->op == op && (s->phase == phase || (phase == PHASE_BEFORE &&
		(s->phase == PHASE_AFTER || s->phase == PHASE_BATCH)));
}

/* The words behind the record's first unit. */
static uint32_t *record_of(struct recording *h, enum ptx_op op, enum site_phase phase,
	uint32_t lanes, uint32_t words)
{
	uint32_t *r, k = 1;

	go_to_leader(h, lanes);
	r = &h->pool[h->nchunks][h->at];
	while (k < h->code->site.n && !is_of(&h->code->site.at[k], op, phase))
		k++;
	cr_assert_lt(k, h->code->site.n);
	r[0] = k << RECORD_SITE_SHIFT;
	r[1] = lanes;
	r[2] = ++h->clock;
	h->at += 4 + (words + 3) / 4 * 4;
	return r + 4;
}

/* Addresses, and the hash of what is stored */
enum { STORE_WORDS = 32 + 1 };

static uint32_t *record(struct recording *h, enum ptx_op op, uint32_t lanes, uint32_t words)
{
	return record_of(h, op, PHASE_BEFORE, lanes, words);
}

static void finish(struct recording *h)
{
	struct decode_result r;

	h->l.chunks = h->nchunks;
	decode_run(&h->l, &r);
	cr_expect_eq(r.damaged, h->l.ended && !h->nfaults && !r.unknown_maps, "no lane records its exit");
	cr_expect_eq(r.refused, h->nfaults ? 1 : 0);
	decode_sites_close(h->sites);
	rewrite_free(h->code);
	ptx_free(h->ptx);
}

static bool no_box(void *user, struct decode_box *b)
{
	(void)user;
	b->in_global = true;
	return false;
}

/* The content of a map that the kernel has changed is not known on a GPU: the read of the map
 * is an event. */
Test(refusals, unknown_map)
{
	struct recording *h = begin();
	uint32_t *at;

	h->l.box = no_box;
	chunk(h, 1, 2);
	at = record(h, OP_cp_async_bulk_tensor, 1, 4);
	at[0] = 1u << 24 | 1024;
	at[1] = 1u << 24 | 1032;
	at[2] = 0x1000;
	at[3] = 0x7f;
	finish(h);
	cr_assert_eq(h->map.kind, EV_TENSOR_MAP);
	cr_expect_eq(h->map.tensor_map.mode, MODE_READ);
	cr_expect_eq(h->map.tensor_map.addr, 0x7f00001000);
	cr_expect_eq(h->map.tensor_map.hash, 0);
	cr_expect_eq(h->map.tensor_map.no_bulk, true);
}

/* A GPU allocates shared memory in larger pieces, so it need not stop at the end of the
 * kernel's. */
Test(refusals, runs_on)
{
	struct recording *h = begin();
	uint32_t *at;

	chunk(h, 1, 2);
	at = record(h, OP_st, UINT32_MAX, STORE_WORDS);
	for (uint32_t l = 0; l < 32; l++)
		at[l] = 1u << 24 | (1024 + 4 * l);
	at = record(h, OP_st, UINT32_MAX, STORE_WORDS);
	for (uint32_t l = 0; l < 32; l++)
		at[l] = 1u << 24 | (END - 64 + 4 * l);
	finish(h);
	cr_assert_eq(h->nfaults, 1);
	cr_expect_eq(h->fault.fault.fault, FAULT_SHARED_OOB);
	cr_expect_eq(h->fault.lanes, 1u << 16);
	cr_expect_eq(h->fault.fault.addr, END);
	cr_expect_eq(h->fault.cta, 1);
	cr_expect_eq(h->fault.warp, 2);
}

/* A fault stops other warps while they write a record, which is the last of its stream. */
static unsigned torn(bool ended, bool last)
{
	struct recording *h = begin();
	uint32_t *at;

	h->l.ended = ended;
	h->l.fault = !ended;
	chunk(h, 1, 0);
	at = record(h, OP_st, UINT32_MAX, STORE_WORDS);
	for (uint32_t l = 0; l < 20; l++)
		at[l] = 1u << 24 | 1024;
	if (!last) {
		at = record(h, OP_st, 1, STORE_WORDS);
		at[0] = 1u << 24 | 1024;
	}
	finish(h);
	return h->nfaults;
}

Test(refusals, torn)
{
	cr_expect_eq(torn(false, true), 0);
	cr_expect_eq(torn(false, false), 1);
	cr_expect_eq(torn(true, true), 1);
	cr_expect_eq(recording.fault.fault.fault, FAULT_SHARED_OOB, "the window of another CTA");
	cr_expect_eq(recording.fault.lanes, 1u << 20);
}

/* Half a warp reaches a barrier, and the GPU stops. */
static unsigned halves(uint32_t first, uint32_t second, bool leaves)
{
	struct recording *h = begin();

	h->l.ended = false;
	h->l.fault = true;
	chunk(h, 0, 1);
	record(h, leaves ? OP_ret : OP_bar_sync, first, 0);
	if (second)
		record(h, OP_bar_sync, second, 0);
	finish(h);
	return h->nfaults;
}

Test(refusals, half_a_warp)
{
	cr_expect_eq(halves(UINT32_MAX, 0, false), 0);
	cr_expect_eq(halves(0xffff, 0xffff0000, false), 0);
	cr_expect_eq(halves(0xffff, 0xffff0000, true), 0, "they have left");
	cr_expect_eq(halves(0xffff, 0, false), 1);
	cr_expect_eq(recording.fault.fault.fault, FAULT_BAR_DIVERGED);
	cr_expect_eq(recording.fault.lanes, 0xffff);
}

/* Some lanes reach an ldmatrix; the other lanes reach it later, or go elsewhere. */
static unsigned matrix(enum ptx_op between, uint32_t lanes, uint32_t rest)
{
	struct recording *h = begin();
	uint32_t *at;

	chunk(h, 0, 0);
	at = record(h, OP_ldmatrix, 0xff, 32);
	memset(at, 0, 128);
	if (lanes)
		record(h, between, lanes, 0);
	if (rest)
		record(h, OP_ldmatrix, rest, 32);
	record(h, OP_bar_sync, UINT32_MAX, 0);
	finish(h);
	return h->nfaults;
}

Test(refusals, aligned)
{
	cr_expect_eq(matrix(OP_bar_sync, 0, 0xffffff00), 0);
	cr_expect_eq(matrix(OP_bar_sync, 0xffffff00, 0xffffff00), 0, "they were behind");
	cr_expect_eq(matrix(OP_bar_sync, 0xff, 0xffffff00), 0, "they are behind");
	cr_expect_eq(matrix(OP_bar_sync, 0, 0), 1);
	cr_expect_eq(recording.fault.fault.fault, FAULT_ALIGNED);
	cr_expect_eq(recording.fault.lanes, 0xff);
	cr_expect_eq(matrix(OP_ret, 0x100, 0xfffffe00), 1, "one has left");
}

/* A group of wgmma is recorded after it, so the executor stops before its record. */
static const uint64_t good = 0x0000001000080000u | 1024 >> 4;

static void group(struct recording *h, uint32_t warp, uint64_t a, uint64_t b)
{
	uint32_t *w;

	chunk(h, 0, warp);
	w = record(h, OP_wgmma_commit_group, UINT32_MAX, 5);
	memcpy(w, (uint64_t[]){ a, b }, 16);
	w[4] = 1;
}

Test(refusals, descriptors)
{
	struct recording *h = begin();

	for (uint32_t w = 0; w < 4; w++)
		group(h, w, good, good);
	finish(h);
	cr_expect_eq(h->nfaults, 0);
	h = begin();
	for (uint32_t w = 0; w < 4; w++)
		group(h, w, good, good + (w == 2));
	finish(h);
	cr_assert_eq(h->nfaults, 1);
	cr_expect_eq(h->fault.fault.fault, FAULT_WG_DESCRIPTOR);
	cr_expect_eq(h->fault.warp, 2);
	h = begin();
	for (uint32_t w = 0; w < 4; w++)
		group(h, w, good + (END >> 4), good);
	finish(h);
	cr_assert_eq(h->nfaults, 1);
	cr_expect_eq(h->fault.fault.fault, FAULT_WG_DESCRIPTOR);
	cr_expect_eq(h->fault.lanes, UINT32_MAX);
}

/* A warpgroup of two warps. */
Test(refusals, warpgroup)
{
	struct recording *h = begin();

	h->info.block[0] = 64;
	for (uint32_t w = 0; w < 2; w++)
		group(h, w, good, good);
	finish(h);
	cr_assert_eq(h->nfaults, 1);
	cr_expect_eq(h->fault.fault.fault, FAULT_WG_DIVERGED);
}

/* One warp exits, three reach a wgmma. */
Test(refusals, three_warps)
{
	struct recording *h = begin();

	for (uint32_t w = 0; w < 3; w++)
		group(h, w, good, good);
	chunk(h, 0, 3);
	record(h, OP_ret, UINT32_MAX, 0);
	finish(h);
	cr_assert_eq(h->nfaults, 1);
	cr_expect_eq(h->fault.fault.fault, FAULT_WG_DIVERGED);
}

/* ---- tokens: opaque values, known from the arrivals that returned them ---- */

static void token(struct recording *h, enum ptx_op op, uint32_t value)
{
	uint32_t *at;

	if (op == OP_mbarrier_arrive)
		record(h, op, 1, 1)[0] = 1024;
	at = record_of(h, op, PHASE_TOKEN, 1, 2);
	at[0] = value;
	at[1] = 0;
	if (op == OP_mbarrier_test_wait)
		record(h, op, 1, 1)[0] = 1024;
}

/* The phase of the token `last` that a wait in phase 2 takes. */
static int64_t phase_of(uint32_t first, uint32_t second, uint32_t last)
{
	struct recording *h = begin();

	chunk(h, 0, 0);
	record(h, OP_mbarrier_init, 1, 1)[0] = 1024;
	token(h, OP_mbarrier_arrive, first);
	token(h, OP_mbarrier_test_wait, first);
	token(h, OP_mbarrier_arrive, second);
	token(h, OP_mbarrier_test_wait, second);
	token(h, OP_mbarrier_test_wait, last);
	finish(h);
	return h->wait.mbarrier_test.phase;
}

Test(tokens, phases)
{
	cr_expect_eq(phase_of(5, 6, 6), 1);
	cr_expect_eq(phase_of(5, 6, 5), 0, "stale");
	cr_expect_eq(phase_of(5, 5, 5), 1, "the newest that it can be");
	cr_expect_eq(phase_of(5, 6, 7), 1, "not known: the newest phase that can be complete");
}

/* A poll fails in phase `first` and again in phase `last`: 1 + the phase that it waits for, if
 * the barrier is past that phase; else 0. */
static uint32_t lag(unsigned first, unsigned last)
{
	struct recording *h = begin();

	h->l.exact = true;
	chunk(h, 0, 0);
	record(h, OP_mbarrier_init, 1, 1)[0] = 1024;
	for (unsigned k = 0; k < first; k++)
		record(h, OP_mbarrier_arrive, 1, 1)[0] = 1024;
	chunk(h, 0, 1);
	record_of(h, OP_mbarrier_try_wait, PHASE_FAILED, 1, 1)[0] = 1024;
	chunk(h, 0, 0);
	for (unsigned k = first; k < last; k++)
		record(h, OP_mbarrier_arrive, 1, 1)[0] = 1024;
	record(h, OP_ret, UINT32_MAX, 0);
	chunk(h, 0, 1);
	record_of(h, OP_mbarrier_try_wait, PHASE_FAILED, 1, 1)[0] = 1024;
	finish(h);
	return h->wait.mbarrier_test.failed_phase;
}

Test(tokens, lag)
{
	cr_expect_eq(lag(0, 0), 0);
	cr_expect_eq(lag(0, 2), 1);
	cr_expect_eq(lag(0, 4), 1);
	cr_expect_eq(lag(2, 2), 0, "it began late");
	cr_expect_eq(lag(2, 4), 3);
	cr_expect_eq(lag(1, 2), 0, "it may have begun in phase 2");
}

/* Of the last record before a fault, only the first part may have been written. */
Test(refusals, torn_arrival)
{
	struct recording *h = begin();
	uint32_t *at;

	h->l.ended = false;
	h->l.fault = true;
	chunk(h, 0, 0);
	*record(h, OP_mbarrier_init, 1, 1) = 1024;
	at = record(h, OP_mbarrier_arrive, 3, 2);
	at[0] = at[1] = 1024;
	at = record(h, OP_mbarrier_arrive, 3, 2);
	at[0] = 1024;
	finish(h);
	cr_expect_eq(h->narrivals, 1);
	cr_expect_eq(h->nfaults, 0);
}
