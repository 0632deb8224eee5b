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

static struct check *world;
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
		.launch = { .kernel = "test", .grid = { 1, 1, 1 }, .block = { warps * 32, 1, 1 }, .shared_static = 64 << 10,
			.symbols = symbol, .nsymbols = 3, .sm = 90 },
	};
	struct cluster_info info = { .launch = &config.launch, .nctas = 1, .warps_per_cta = warps };

	if (strict)
		check_policy_strict(&config.policy);
	else
		check_policy_default(&config.policy);
	if (tune)
		tune(&config.policy);
	nwarps = warps;
	world = check_open(&config);
	sink = check_cluster_begin(world, &info);
	emit((struct event){ .kind = EV_CTA_BEGIN, .count = warps * 32, .size = 0x8000 });
}

static inline void begin(unsigned warps)
{
	begin_with(warps, false);
	/* write the tile and synchronize, so that reads of it are not CS901 */
	for (uint32_t a = 0; a < 0x4000; a += 512)
		emit((struct event){ .kind = EV_ACCESS, .space = SP_SHARED, .mode = EVM_WRITE,
			.size = 16, .stride = 16, .addr = a });
	for (unsigned w = 0; w < nwarps; w++)
		emit((struct event){ .kind = EV_FENCE_PROXY, .mode = EVP_ASYNC, .warp = (uint16_t)w });
	for (unsigned w = 0; w < nwarps; w++)
		emit((struct event){ .kind = EV_BAR_ARRIVE, .warp = (uint16_t)w });
	for (unsigned w = 0; w < nwarps; w++)
		emit((struct event){ .kind = EV_BAR_RESUME, .warp = (uint16_t)w });
}

/* Ends the run. Stores up to 16 rules and severities, most severe first, and returns the number
 * of findings. $CHECK_VERBOSE prints them. */
static inline size_t finish(unsigned found[16], enum severity sev[16])
{
	const struct finding *const *f;
	size_t n, i;

	check_cluster_end(world, sink);
	n = check_findings(world, &f);
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
	check_close(world);
	return n;
}

#define AT(call) (line = __LINE__, call)

static inline void access_(uint32_t w, uint32_t lanes, uint64_t addr, uint32_t size, int stride,
	unsigned mode, unsigned sem)
{
	emit((struct event){ .kind = EV_ACCESS, .space = SP_SHARED, .mode = (uint8_t)mode,
		.sem = (uint8_t)sem, .scope = sem ? SCOPE_CTA : SCOPE_NONE, .warp = (uint16_t)w,
		.lanes = lanes, .addr = addr, .size = size, .stride = stride });
}
/* lane l accesses `size` bytes at addr + l * size */
#define wr(w, lanes, addr, size) AT(access_(w, lanes, addr, size, size, EVM_WRITE, SEM_WEAK))
#define rd(w, lanes, addr, size) AT(access_(w, lanes, addr, size, size, EVM_READ, SEM_WEAK))
/* all lanes access the same `size` bytes at addr */
#define wr1(w, lanes, addr, size) AT(access_(w, lanes, addr, size, 0, EVM_WRITE, SEM_WEAK))
#define rd1(w, lanes, addr, size) AT(access_(w, lanes, addr, size, 0, EVM_READ, SEM_WEAK))
#define strong(w, lanes, addr, size, mode, sem) AT(access_(w, lanes, addr, size, 0, mode, sem))

#define event(...) AT(emit((struct event){ __VA_ARGS__ }))
#define W(w) .warp = (uint16_t)(w)

#define ws(w, m) event(.kind = EV_WARP_SYNC, W(w), .lanes = m, .mask = m)
#define bar_arrive(w, id, n) event(.kind = EV_BAR_ARRIVE, W(w), .addr = id, .count = n, .mode = EVB_ARRIVE)
#define bar_enter(w, id, n) event(.kind = EV_BAR_ARRIVE, W(w), .addr = id, .count = n, .mode = EVB_SYNC)
#define bar_leave(w, id) event(.kind = EV_BAR_RESUME, W(w), .addr = id)
static inline void bar_all_(void)
{
	for (unsigned w = 0; w < nwarps; w++)
		emit((struct event){ .kind = EV_BAR_ARRIVE, W(w) });
	for (unsigned w = 0; w < nwarps; w++)
		emit((struct event){ .kind = EV_BAR_RESUME, W(w) });
}
#define bar_all() AT(bar_all_())

#define fence(w, m, s) event(.kind = EV_FENCE, W(w), .lanes = m, .sem = s, .scope = SCOPE_CTA)
#define pfence(w, m) event(.kind = EV_FENCE_PROXY, W(w), .lanes = m, .mode = EVP_ASYNC)
#define pfence_in(w, m, sp) event(.kind = EV_FENCE_PROXY, W(w), .lanes = m, .mode = EVP_ASYNC, .space = sp)

#define cpa(w, m, a, s) event(.kind = EV_CP_ASYNC, W(w), .lanes = m, .addr = a, .size = s, .stride = s)
#define cp_commit(w, m) event(.kind = EV_CP_COMMIT, W(w), .lanes = m)
#define cp_wait(w, m, n) event(.kind = EV_CP_WAIT, W(w), .lanes = m, .count = n)
#define cp_wait_all(w, m) event(.kind = EV_CP_WAIT, W(w), .lanes = m, .flags = EVF_ALL)
#define cp_arrive(w, m, a, o) event(.kind = EV_CP_ARRIVE, W(w), .lanes = m, .addr = a, .op = o)
#define cp_arrive_noinc(w, m, a, o) event(.kind = EV_CP_ARRIVE, W(w), .lanes = m, .addr = a, .op = o, .flags = EVF_NOINC)

#define load(w, l, o, dst, n, mb) event(.kind = EV_BULK, W(w), .lanes = L(l), .op = o, .mode = EVM_WRITE, \
	.addr = dst, .size = n, .tx = n, .mbar = mb, .flags = EVF_TENSOR)
#define store(w, l, o, src, n) event(.kind = EV_BULK, W(w), .lanes = L(l), .op = o, .mode = EVM_READ, \
	.addr = src, .size = n, .mbar = EV_NO_MBAR)
#define bulk_commit(w, m) event(.kind = EV_BULK_COMMIT, W(w), .lanes = m)
#define bulk_wait(w, m, n) event(.kind = EV_BULK_WAIT, W(w), .lanes = m, .count = n)
#define bulk_wait_read(w, m, n) event(.kind = EV_BULK_WAIT, W(w), .lanes = m, .count = n, .flags = EVF_READ)

#define mb_init(w, l, a, n) event(.kind = EV_MB_INIT, W(w), .lanes = L(l), .addr = a, .count = n)
#define mb_inval(w, l, a) event(.kind = EV_MB_INVAL, W(w), .lanes = L(l), .addr = a)
#define arrive(w, m, a) event(.kind = EV_MB_ARRIVE, W(w), .lanes = m, .addr = a, .count = 1, .sem = SEM_RELEASE, .scope = SCOPE_CTA)
#define arrive_relaxed(w, m, a) event(.kind = EV_MB_ARRIVE, W(w), .lanes = m, .addr = a, .count = 1, .sem = SEM_RELAXED, .scope = SCOPE_CTA)
#define arrive_tx(w, l, a, n) event(.kind = EV_MB_ARRIVE, W(w), .lanes = L(l), .addr = a, .count = 1, .tx = n, \
	.sem = SEM_RELEASE, .scope = SCOPE_CTA, .flags = EVF_EXPECT)
#define arrive_with(w, m, a, n, fl) event(.kind = EV_MB_ARRIVE, W(w), .lanes = m, .addr = a, .count = n, \
	.sem = SEM_RELEASE, .scope = SCOPE_CTA, .flags = fl)
#define mb_expect(w, l, a, n) event(.kind = EV_MB_EXPECT, W(w), .lanes = L(l), .addr = a, .tx = n)
#define mb_complete(w, l, a, n) event(.kind = EV_MB_COMPLETE, W(w), .lanes = L(l), .addr = a, .tx = n)
#define mb_wait_sem(w, m, a, p, s) event(.kind = EV_MB_TEST, W(w), .lanes = m, .addr = a, .tx = p, .sem = s, \
	.scope = SCOPE_CTA, .flags = EVF_TRUE | EVF_PARITY | EVF_TRY)
#define mb_wait(w, m, a, p) mb_wait_sem(w, m, a, p, SEM_ACQUIRE)
#define mb_poll(w, m, a, p) event(.kind = EV_MB_TEST, W(w), .lanes = m, .addr = a, .tx = p, .sem = SEM_ACQUIRE, \
	.scope = SCOPE_CTA, .flags = EVF_PARITY | EVF_TRY)
#define mb_token(w, m, a, t, fl) event(.kind = EV_MB_TEST, W(w), .lanes = m, .addr = a, .tx = t, .sem = SEM_ACQUIRE, .flags = fl)
#define signal_tx(w, o, a, n) event(.kind = EV_MB_SIGNAL, W(w), .op = o, .addr = a, .tx = n)
#define signal_arrive(w, o, a, n) event(.kind = EV_MB_SIGNAL, W(w), .op = o, .addr = a, .count = n)

static inline void wg_fence_(unsigned w)
{
	for (unsigned i = 0; i < 4; i++)
		emit((struct event){ .kind = EV_WG_FENCE, W(w + i) });
}
/* A: 64 rows of 32 bytes at a, 16 a warp; B: n bytes at b; D: registers d.. */
static inline void mma_(unsigned w, uint32_t a, uint32_t b, uint32_t n, uint32_t d, int64_t shape)
{
	struct ev_span span[5] = { { a, 512 }, { a + 512, 512 }, { a + 1024, 512 }, { a + 1536, 512 }, { b, n } };
	uint32_t regs[4] = { d, d + 1, d + 2, d + 3 };

	emit((struct event){ .kind = EV_WG_MMA, W(w), .spans = span, .nspans = 5,
		.part = { 0, 1, 2, 3, 4, 5 }, .regs = regs, .nregs_d = 4, .tx = shape });
}
/* A from registers a.. */
static inline void mma_rs_(unsigned w, uint32_t a, uint32_t b, uint32_t n, uint32_t d)
{
	struct ev_span span[1] = { { b, n } };
	uint32_t regs[8] = { d, d + 1, d + 2, d + 3, a, a + 1, a + 2, a + 3 };

	emit((struct event){ .kind = EV_WG_MMA, W(w), .spans = span, .nspans = 1,
		.part = { 0, 0, 0, 0, 0, 1 }, .regs = regs, .nregs_d = 4, .nregs_a = 4, .tx = 1 });
}
static inline void regs_(unsigned w, uint32_t r, unsigned mode, unsigned flags)
{
	emit((struct event){ .kind = EV_REGS, W(w), .regs = &r, .nregs_d = 1, .mode = (uint8_t)mode,
		.flags = (uint8_t)flags });
}
#define wg_fence(w) AT(wg_fence_(w))
#define mma(w, a, b, n) AT(mma_(w, a, b, n, 100, 1))
#define mma_shape(w, a, b, n, shape) AT(mma_(w, a, b, n, 100, shape))
#define mma_rs(w, a, b, n, d) AT(mma_rs_(w, a, b, n, d))
#define wg_commit(w) event(.kind = EV_WG_COMMIT, W(w))
#define wg_wait(w, n) event(.kind = EV_WG_WAIT, W(w), .count = n)
#define reg_read(w, r) AT(regs_(w, r, EVM_READ, 0))
#define reg_write(w, r) AT(regs_(w, r, EVM_WRITE, 0))
#define reg_move(w, r) AT(regs_(w, r, EVM_WRITE, EVF_MOVE))

#define leave(w, m) event(.kind = EV_EXIT, W(w), .lanes = m)
static inline void end_all_(void)
{
	for (unsigned w = 0; w < nwarps; w++)
		emit((struct event){ .kind = EV_EXIT, W(w) });
	emit((struct event){ .kind = EV_CTA_END });
}
#define end_all() AT(end_all_())

#endif
