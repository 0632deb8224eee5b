/* event_dsl: event sequences for tests of the checker, with one CTA. Each call emits one event,
 * whose site is the line of the call. */
#ifndef CONSAN_TESTS_EVENT_DSL_H
#define CONSAN_TESTS_EVENT_DSL_H

#include "libconsan/check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL 0xffffffffu
#define L(n) (1u << (n))

static struct check *checker;
static struct event_sink *sink;
static unsigned nwarps;
static uint32_t line; /* site of the next event */
static void (*tune)(struct check_policy *); /* changes policies, called by begin() */

static inline void emit(struct event e)
{
	e.site = line;
	if (!e.lanes)
		e.lanes = ALL;
	sink->event(sink, &e);
}

static inline void begin_with(unsigned warps, bool strict)
{
	static const struct ev_symbol symbol[] = {
		{ "tile", 0, 0x4000 }, { "full", 0x4000, 64 }, { "empty", 0x4040, 64 },
	};
	struct check_config config = {
		.launch = { .kernel = "test", .grid = { 1, 1, 1 }, .block = { warps * 32, 1, 1 },
			.shared_static = 64 << 10, .symbols = symbol, .nsymbols = 3, .sm = 90, .tensor = true },
	};
	struct cluster_info info = { .launch = &config.launch, .nctas = 1, .warps_per_cta = warps };

	if (strict)
		check_policy_strict(&config.policy);
	else
		check_policy_default(&config.policy);
	if (tune)
		tune(&config.policy);
	nwarps = warps;
	checker = check_open(&config);
	sink = check_cluster_begin(checker, &info);
	emit((struct event){ .kind = EV_CTA_BEGIN, .cta_begin = { .threads = warps * 32,
		.shared_bytes = 0x8000 } });
}

static inline void begin(unsigned warps)
{
	begin_with(warps, false);
	/* write the tile and synchronize, so that reads of it are not CS901 */
	for (uint32_t a = 0; a < 0x4000; a += 512)
		emit((struct event){ .kind = EV_ACCESS, .access = { .space = SP_SHARED,
			.mode = MODE_WRITE, .bytes = 16, .at = { .base = a, .stride = 16 } } });
	for (unsigned w = 0; w < nwarps; w++)
		emit((struct event){ .kind = EV_FENCE_PROXY, .warp = (uint16_t)w,
			.fence_proxy.proxy = PROXY_ASYNC });
	for (unsigned w = 0; w < nwarps; w++)
		emit((struct event){ .kind = EV_BARRIER_ARRIVE, .warp = (uint16_t)w });
	for (unsigned w = 0; w < nwarps; w++)
		emit((struct event){ .kind = EV_BARRIER_RESUME, .warp = (uint16_t)w });
}

/* Ends the run. Stores up to 16 rules and severities, most severe first, and returns the number
 * of findings. $CHECK_VERBOSE prints them. */
static inline size_t finish(unsigned found[16], enum severity sev[16])
{
	const struct finding *const *f;
	size_t n, i;

	check_cluster_end(checker, sink);
	n = check_findings(checker, &f);
	for (i = 0; i < n && i < 16; i++) {
		found[i] = f[i]->rule;
		sev[i] = f[i]->severity;
		if (getenv("CHECK_VERBOSE"))
			fprintf(stderr, "%s sev %d lines %u/%u: %s w%u l%d | %s w%u l%d | %s | %s | %s%s\n",
				rule_get(f[i]->rule)->code, f[i]->severity, f[i]->side[0].site, f[i]->side[1].site,
				f[i]->side[0].what, f[i]->side[0].warp, f[i]->side[0].lane,
				f[i]->side[1].what, f[i]->side[1].warp, f[i]->side[1].lane, f[i]->edge, f[i]->hint,
				f[i]->side[0].variable, f[i]->nwaiters ? f[i]->waiter[0].text : "");
	}
	check_close(checker);
	return n;
}

#define AT(call) (line = __LINE__, call)

static inline void access_(uint32_t w, uint32_t lanes, uint64_t addr, uint32_t size, int stride,
	enum ev_mode mode, enum ev_sem sem)
{
	emit((struct event){ .kind = EV_ACCESS, .warp = (uint16_t)w, .lanes = lanes,
		.access = { .space = SP_SHARED, .mode = mode, .sem = sem,
		.scope = sem ? SCOPE_CTA : SCOPE_NONE, .bytes = size,
		.at = { .base = addr, .stride = stride } } });
}
/* lane l accesses `size` bytes at addr + l * size */
#define wr(w, lanes, addr, size) AT(access_(w, lanes, addr, size, size, MODE_WRITE, SEM_WEAK))
#define rd(w, lanes, addr, size) AT(access_(w, lanes, addr, size, size, MODE_READ, SEM_WEAK))
/* all lanes access the same `size` bytes at addr */
#define wr1(w, lanes, addr, size) AT(access_(w, lanes, addr, size, 0, MODE_WRITE, SEM_WEAK))
#define rd1(w, lanes, addr, size) AT(access_(w, lanes, addr, size, 0, MODE_READ, SEM_WEAK))
#define strong(w, lanes, addr, size, mode, sem) AT(access_(w, lanes, addr, size, 0, mode, sem))
/* a volatile load whose value only decides a branch, or that is polled */
#define rd_flag(w, m, a, s) event(.kind = EV_ACCESS, W(w), .lanes = m, .access = { \
	.space = SP_SHARED, .mode = MODE_READ, .sem = SEM_VOLATILE, .scope = SCOPE_SYS, \
	.flags = ACCESS_FLAG, .bytes = s, .at.base = a })

#define event(...) AT(emit((struct event){ __VA_ARGS__ }))
#define W(w) .warp = (uint16_t)(w)

#define ws(w, m) event(.kind = EV_WARP_SYNC, W(w), .lanes = m, .warp_sync.mask = m)
#define bar_with(w, i, n, m) event(.kind = EV_BARRIER_ARRIVE, W(w), \
	.barrier_arrive = { .id = i, .threads = n, .mode = m })
#define bar_arrive(w, id, n) bar_with(w, id, n, BAR_ARRIVE)
#define bar_enter(w, id, n) bar_with(w, id, n, BAR_SYNC)
#define bar_leave(w, i) event(.kind = EV_BARRIER_RESUME, W(w), .barrier_resume.id = i)
static inline void bar_all_(void)
{
	for (unsigned w = 0; w < nwarps; w++)
		emit((struct event){ .kind = EV_BARRIER_ARRIVE, W(w) });
	for (unsigned w = 0; w < nwarps; w++)
		emit((struct event){ .kind = EV_BARRIER_RESUME, W(w) });
}
#define bar_all() AT(bar_all_())

#define fence(w, m, s) event(.kind = EV_FENCE, W(w), .lanes = m, \
	.fence = { .sem = s, .scope = SCOPE_CTA })
#define pfence_in(w, m, sp) event(.kind = EV_FENCE_PROXY, W(w), .lanes = m, \
	.fence_proxy = { .proxy = PROXY_ASYNC, .space = sp })
#define pfence(w, m) pfence_in(w, m, SP_ANY)

#define cpa(w, m, a, s) event(.kind = EV_CP_ASYNC, W(w), .lanes = m, \
	.cp_async = { .at = { .base = a, .stride = s }, .bytes = s })
#define cp_commit(w, m) event(.kind = EV_CP_ASYNC_COMMIT, W(w), .lanes = m)
#define cp_wait(w, m, n) event(.kind = EV_CP_ASYNC_WAIT, W(w), .lanes = m, \
	.cp_async_wait.pending = n)
#define cp_wait_all(w, m) event(.kind = EV_CP_ASYNC_WAIT, W(w), .lanes = m, \
	.cp_async_wait.all = true)
#define cp_arrive_with(w, m, a, o, no) event(.kind = EV_CP_ASYNC_ARRIVE, W(w), .lanes = m, \
	.cp_async_arrive = { .addr = a, .async_op = o, .noinc = no })
#define cp_arrive(w, m, a, o) cp_arrive_with(w, m, a, o, false)
#define cp_arrive_noinc(w, m, a, o) cp_arrive_with(w, m, a, o, true)

#define load(w, l, o, dst, n, mb) event(.kind = EV_BULK, W(w), .lanes = L(l), \
	.bulk = { .async_op = o, .mode = MODE_WRITE, .addr = dst, .bytes = n, .tx_count = n, \
	.mbarrier = mb, .tensor = true })
#define store(w, l, o, src, n) event(.kind = EV_BULK, W(w), .lanes = L(l), \
	.bulk = { .async_op = o, .mode = MODE_READ, .addr = src, .bytes = n, .mbarrier = EV_NO_MBARRIER })
#define bulk_commit(w, m) event(.kind = EV_BULK_COMMIT, W(w), .lanes = m)
#define bulk_wait(w, m, n) event(.kind = EV_BULK_WAIT, W(w), .lanes = m, .bulk_wait.pending = n)
#define bulk_wait_read(w, m, n) event(.kind = EV_BULK_WAIT, W(w), .lanes = m, \
	.bulk_wait = { .pending = n, .read = true })

#define mb_init(w, l, a, n) event(.kind = EV_MBARRIER_INIT, W(w), .lanes = L(l), \
	.mbarrier_init = { .addr = a, .arrivals = n })
#define mb_inval(w, l, a) event(.kind = EV_MBARRIER_INVAL, W(w), .lanes = L(l), \
	.mbarrier_inval.addr = a)
#define arrive_as(w, m, a, n, t, s, fl) event(.kind = EV_MBARRIER_ARRIVE, W(w), .lanes = m, \
	.mbarrier_arrive = { .addr = a, .arrivals = n, .tx_count = t, .sem = s, \
		.scope = SCOPE_CTA, .flags = fl })
#define arrive(w, m, a) arrive_as(w, m, a, 1, 0, SEM_RELEASE, 0)
#define arrive_relaxed(w, m, a) arrive_as(w, m, a, 1, 0, SEM_RELAXED, 0)
#define arrive_tx(w, l, a, n) arrive_as(w, L(l), a, 1, n, SEM_RELEASE, ARRIVE_EXPECT_TX)
#define arrive_with(w, m, a, n, fl) arrive_as(w, m, a, n, 0, SEM_RELEASE, fl)
#define mb_expect(w, l, a, n) event(.kind = EV_MBARRIER_EXPECT_TX, W(w), .lanes = L(l), \
	.mbarrier_expect_tx = { .addr = a, .tx_count = n })
#define mb_complete(w, l, a, n) event(.kind = EV_MBARRIER_COMPLETE_TX, W(w), .lanes = L(l), \
	.mbarrier_complete_tx = { .addr = a, .tx_count = n })
#define mb_test(w, m, a, p, s, sc, fl) event(.kind = EV_MBARRIER_TEST, W(w), .lanes = m, \
	.mbarrier_test = { .addr = a, .phase = p, .sem = s, .scope = sc, .flags = fl })
#define mb_wait_sem(w, m, a, p, s) mb_test(w, m, a, p, s, SCOPE_CTA, \
	TEST_TRUE | TEST_PARITY | TEST_TRY)
#define mb_wait(w, m, a, p) mb_wait_sem(w, m, a, p, SEM_ACQUIRE)
#define mb_poll(w, m, a, p) mb_test(w, m, a, p, SEM_ACQUIRE, SCOPE_CTA, TEST_PARITY | TEST_TRY)
#define mb_token(w, m, a, t, fl) mb_test(w, m, a, t, SEM_ACQUIRE, SCOPE_NONE, fl)
#define signal_with(w, o, a, n, t) event(.kind = EV_MBARRIER_SIGNAL, W(w), \
	.mbarrier_signal = { .async_op = o, .addr = a, .arrivals = n, .tx_count = t })
#define signal_tx(w, o, a, n) signal_with(w, o, a, 0, n)
#define signal_arrive(w, o, a, n) signal_with(w, o, a, n, 0)

static inline void wg_fence_(unsigned w)
{
	for (unsigned i = 0; i < 4; i++)
		emit((struct event){ .kind = EV_WGMMA_FENCE, W(w + i) });
}
/* A: 64 rows of 32 bytes at a, 16 a warp; B: n bytes at b; D: registers d.. */
static inline void mma_(unsigned w, uint32_t a, uint32_t b, uint32_t n, uint32_t d, uint64_t shape)
{
	struct ev_span span[5] = { { a, 512 }, { a + 512, 512 }, { a + 1024, 512 }, { a + 1536, 512 },
		{ b, n } };
	uint32_t regs[4] = { d, d + 1, d + 2, d + 3 };

	emit((struct event){ .kind = EV_WGMMA, W(w), .wgmma = { .spans = { span, 5 },
		.parts = { { 0, 1, 2, 3, 4, 5 } }, .accumulators = { regs, 4 }, .shape = shape } });
}
/* A from registers a.. */
static inline void mma_rs_(unsigned w, uint32_t a, uint32_t b, uint32_t n, uint32_t d)
{
	struct ev_span span[1] = { { b, n } };
	uint32_t accumulators[4] = { d, d + 1, d + 2, d + 3 }, fragment[4] = { a, a + 1, a + 2, a + 3 };

	emit((struct event){ .kind = EV_WGMMA, W(w), .wgmma = { .spans = { span, 1 },
		.parts = { { 0, 0, 0, 0, 0, 1 } }, .accumulators = { accumulators, 4 },
		.fragment = { fragment, 4 }, .shape = 1 } });
}
static inline void regs_(unsigned w, uint32_t r, enum ev_mode mode, bool move)
{
	emit((struct event){ .kind = EV_REGISTER_ACCESS, W(w), .register_access = { .regs = { &r, 1 },
		.mode = mode, .move = move } });
}
#define wg_fence(w) AT(wg_fence_(w))
#define mma(w, a, b, n) AT(mma_(w, a, b, n, 100, 1))
#define mma_shape(w, a, b, n, shape) AT(mma_(w, a, b, n, 100, shape))
#define mma_rs(w, a, b, n, d) AT(mma_rs_(w, a, b, n, d))
#define wg_commit(w) event(.kind = EV_WGMMA_COMMIT, W(w))
#define wg_wait(w, n) event(.kind = EV_WGMMA_WAIT, W(w), .wgmma_wait.pending = n)
#define reg_read(w, r) AT(regs_(w, r, MODE_READ, false))
#define reg_write(w, r) AT(regs_(w, r, MODE_WRITE, false))
#define reg_move(w, r) AT(regs_(w, r, MODE_WRITE, true))
static inline void copy_(unsigned w, uint32_t to, uint32_t from)
{
	regs_(w, from, MODE_READ, true);
	regs_(w, to, MODE_WRITE, true);
}
#define reg_copy(w, to, from) AT(copy_(w, to, from))

#define leave(w, m) event(.kind = EV_THREAD_EXIT, W(w), .lanes = m)
static inline void end_all_(void)
{
	for (unsigned w = 0; w < nwarps; w++)
		emit((struct event){ .kind = EV_THREAD_EXIT, W(w) });
	emit((struct event){ .kind = EV_CTA_END });
}
#define end_all() AT(end_all_())

#endif
