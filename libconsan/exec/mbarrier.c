/* mbarrier: the objects and the instructions on them (PTX ISA, Parallel Synchronization: mbarrier).
 * A phase is a 64-bit number here. A state token holds the low bits of the phase at the arrival,
 * the object and the pending count. An instruction on memory that holds no live object has no
 * effect beyond its event. */
#include "async.h"
#include "internal.h"

#include <stdio.h>

#define TAG 0x6d6ull              /* in the top 12 bits of the object */
#define NO_OBJECT UINT32_MAX

/* Bits of a state token: 28 of the phase, 15 of the object (1 + its number in the CTA's shared
 * memory; 0: there was none), 20 of the pending count, and the top one. */
#define TOKEN_OBJECT_AT 28
#define TOKEN_COUNT_AT 43
#define TOKEN_COUNTS (1ull << 63)  /* from a .noComplete arrive: for pending_count */

/* ---- objects ---- */

static uint64_t word_of(const struct mbar *m, size_t index)
{
	return TAG << 52 | (uint64_t)index << 32 | (uint32_t)m->phase;
}

static l64 *object(struct cta *c, uint32_t at)
{
	return (l64 *)(c->shared + at);
}

struct mbar *mbar_find(struct cta *c, uint32_t at)
{
	uint64_t word = *object(c, at);
	size_t i = word >> 32 & 0xfffff;
	struct mbar *m;

	if (word >> 52 != TAG || i >= c->async->mbar.n)
		return NULL;
	m = &c->async->mbar.at[i];
	return m->at == at && (uint32_t)m->phase == (uint32_t)word ? m : NULL;
}

static void publish(struct cta *c, const struct mbar *m)
{
	*object(c, m->at) = word_of(m, (size_t)(m - c->async->mbar.at));
}

static void init(struct cta *c, uint32_t at, uint32_t count)
{
	struct cta_async *a = c->async;
	size_t i = 0;

	while (i < a->mbar.n && a->mbar.at[i].at != at && a->mbar.at[i].at != NO_OBJECT)
		i++;
	if (i == a->mbar.n)
		vec_push(&a->mbar, (struct mbar){ .at = at });
	a->mbar.at[i] = (struct mbar){ .at = at, .expected = count, .pending = count };
	publish(c, &a->mbar.at[i]);
}

/* Completes the phase when no arrival is pending and no bytes are missing. */
static void test(struct cta *c, struct mbar *m)
{
	if (m->pending || m->tx)
		return;
	m->phase++;
	m->pending = m->expected;
	publish(c, m);
}

static void arrive(struct cta *c, struct mbar *m, uint32_t count, bool drop)
{
	if (drop)
		m->expected -= count < m->expected ? count : m->expected;
	m->pending -= count < m->pending ? count : m->pending;
	test(c, m);
}

void mbar_signal(struct async_op *op, struct cta *c, uint32_t at, uint32_t count, int64_t tx)
{
	struct mbar *m = mbar_find(c, at);

	if (c->cluster->sink) {
		struct event e = { .kind = EV_MBARRIER_SIGNAL, .cta = (uint16_t)op->warp->cta->rank,
			.warp = op->warp->id, .lanes = op->lanes, .site = op->site,
			.mbarrier_signal = { .owner = (uint16_t)c->rank, .addr = at,
			.async_op = op->id, .arrivals = count, .tx_count = tx } };

		ex_emit(c->cluster, &e);
	}
	if (!m)
		return;
	m->tx -= tx;
	if (count)
		arrive(c, m, count, false);
	else
		test(c, m);
	ex_work(op->warp);
}

void mbar_raise(struct cta *c, uint32_t at, uint32_t n)
{
	struct mbar *m = mbar_find(c, at);

	if (m)
		m->pending += n;
}

bool mbar_place(struct warp *w, const struct xop *x, unsigned l, enum ptx_space space,
	uint64_t addr, bool remote, struct cta **cta, uint32_t *at)
{
	const struct shared_view v = ex_view(w);
	struct refusal why;
	struct xplace p;

	if (refuse_mbar_align(&why, addr)) {
		ex_refuse(w, x, 1u << l, &why);
		return false;
	}
	if (!ex_resolve(w, x, 1u << l, space, addr, 8, 1, true, &p))
		return false;
	if (p.space != SP_SHARED) {
		ex_fault(w, x, 1u << l, FAULT_MB_PLACE, p.space, addr, 8, "not in shared memory");
		return false;
	}
	if (!remote && refuse_mbar_owner(&why, &v, p.cta->rank, p.addr)) {
		ex_refuse(w, x, 1u << l, &why);
		return false;
	}
	*cta = p.cta;
	*at = (uint32_t)p.addr;
	return true;
}

static uint64_t token_make(const struct mbar *m)
{
	return (m->phase & ((1u << TOKEN_OBJECT_AT) - 1)) | (uint64_t)(m->at / 8 + 1) << TOKEN_OBJECT_AT
		| (uint64_t)(m->pending & 0xfffff) << TOKEN_COUNT_AT;
}

/* Offset + 1 of the object that returned it; 0: none. */
static uint32_t token_object(uint64_t token)
{
	const uint32_t n = (uint32_t)(token >> TOKEN_OBJECT_AT) & 0x7fff;

	return n ? (n - 1) * 8 + 1 : 0;
}

/* Its phase, the one nearest to that of the object. */
static uint64_t token_phase(const struct mbar *m, uint64_t token)
{
	const unsigned unused = 32 - TOKEN_OBJECT_AT;
	const uint32_t behind = ((uint32_t)m->phase - (uint32_t)token) << unused;

	return m->phase - (uint64_t)(int64_t)((int32_t)behind >> unused);
}

/* ---- instructions ----
 *
 * o[0..1] address, o[2] destination, o[3] count, parity or token, o[4] bytes. i.b: space, sem,
 * scope, flags of the event, and B_REMOTE. */
enum { B_SPACE, B_SEM, B_SCOPE, B_FLAGS, B_REMOTE };

static enum ptx_space space_of(const struct xop *x)
{
	return (enum ptx_space)x->i.b[B_SPACE];
}

/* Lanes that initialise one object with the same count share one event. */
static enum step op_init(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const uint32_t *counts = r32(w, x->o[3]);
	uint32_t at[LANES], left = lanes;
	struct cta *cta[LANES];

	for EACH_LANE(l, lanes)
		if (!mbar_place(w, x, l, space_of(x), ex_addr(w, get_addr(x, 0), l), false, &cta[l],
				&at[l]))
			return STEP_FAULT;
	while (left) {
		unsigned l = (unsigned)__builtin_ctz(left);
		uint32_t same = 0;

		for EACH_LANE(k, left)
			if (cta[k] == cta[l] && at[k] == at[l] && counts[k] == counts[l])
				same |= 1u << k;
		left &= ~same;
		if (w->sink) {
			struct event e = ex_event(w, x, EV_MBARRIER_INIT, same);

			e.mbarrier_init = (struct event_mbarrier_init){
				.owner = (uint16_t)cta[l]->rank, .addr = at[l],
				.arrivals = counts[l] };
			ex_emit(w->cluster, &e);
		}
		init(cta[l], at[l], counts[l]);
	}
	ex_work(w);
	return STEP_NEXT;
}

static enum step op_inval(struct warp *w, const struct xop *x, uint32_t lanes)
{
	for EACH_LANE(l, lanes) {
		struct cta *cta;
		struct mbar *m;
		uint32_t at;

		if (!mbar_place(w, x, l, space_of(x), ex_addr(w, get_addr(x, 0), l), false, &cta,
				&at))
			return STEP_FAULT;
		if (w->sink) {
			struct event e = ex_event(w, x, EV_MBARRIER_INVAL, 1u << l);

			e.mbarrier_inval.owner = (uint16_t)cta->rank;
			e.mbarrier_inval.addr = at;			ex_emit(w->cluster, &e);
		}
		m = mbar_find(cta, at);
		*object(cta, at) = 0;
		if (m)
			m->at = NO_OBJECT;
	}
	ex_work(w);
	return STEP_NEXT;
}

/* All lanes of `same` arrive at one object with the same count and bytes. */
static void arrive_lanes(struct warp *w, const struct xop *x, uint32_t same,
	struct cta *cta, uint32_t at, uint32_t count, uint32_t bytes)
{
	struct mbar *m = mbar_find(cta, at);
	uint8_t flags = x->i.b[B_FLAGS];
	l64 *token = r64(w, x->o[2]);

	for EACH_LANE(l, same) {
		token[l] = m ? token_make(m) : 0;
		if (flags & ARRIVE_NO_COMPLETE)
			token[l] |= TOKEN_COUNTS;
		if (!m)
			continue;
		if (flags & ARRIVE_EXPECT_TX)
			m->tx += bytes;
		arrive(cta, m, count, flags & ARRIVE_DROP);
	}
}

static enum step op_arrive(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint64_t addr[LANES], amount[LANES];
	const l32 *count = r32(w, x->o[3]), *bytes = r32(w, x->o[4]);
	const enum ev_arrive_flags flags = (enum ev_arrive_flags)x->i.b[B_FLAGS];

	lane_addrs(w, get_addr(x, 0), addr);
	for (unsigned l = 0; l < LANES; l++)
		amount[l] = (uint64_t)count[l] << 32 | bytes[l];
	for (uint32_t rest = lanes, same; rest; rest &= ~same) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		struct cta *cta;
		uint32_t at;

		same = same_lanes(amount, same_lanes(addr, rest, l), l);
		if (!mbar_place(w, x, l, space_of(x), addr[l], x->i.b[B_REMOTE], &cta, &at))
			return STEP_FAULT;
		if (w->sink) {
			struct event e = ex_event(w, x, EV_MBARRIER_ARRIVE, same);

			e.mbarrier_arrive = (struct event_mbarrier_arrive){
				.owner = (uint16_t)cta->rank, .addr = at,
				.sem = (enum ev_sem)x->i.b[B_SEM],
				.scope = (enum ev_scope)x->i.b[B_SCOPE], .flags = flags,
				.arrivals = count[l],
				.tx_count = flags & ARRIVE_EXPECT_TX ? bytes[l] : 0 };
			ex_emit(w->cluster, &e);
		}
		arrive_lanes(w, x, same, cta, at, count[l], bytes[l]);
	}
	ex_work(w);
	return STEP_NEXT;
}

static void tx_event(struct warp *w, const struct xop *x, unsigned l, bool complete,
	const struct cta *cta, uint32_t at, uint32_t bytes)
{
	const uint16_t owner = (uint16_t)cta->rank;
	struct event e = ex_event(w, x, complete ? EV_MBARRIER_COMPLETE_TX : EV_MBARRIER_EXPECT_TX,
		1u << l);

	if (complete)
		e.mbarrier_complete_tx = (struct event_mbarrier_complete_tx){ .owner = owner,
			.addr = at, .tx_count = bytes };
	else
		e.mbarrier_expect_tx = (struct event_mbarrier_expect_tx){ .owner = owner,
			.addr = at, .tx_count = bytes };
	ex_emit(w->cluster, &e);
}

/* expect_tx, complete_tx: i.b[B_FLAGS] is 1 for complete_tx */
static enum step op_tx(struct warp *w, const struct xop *x, uint32_t lanes)
{
	bool complete = x->i.b[B_FLAGS];

	for EACH_LANE(l, lanes) {
		uint32_t at, bytes = r32(w, x->o[3])[l];
		struct cta *cta;
		struct mbar *m;

		if (!mbar_place(w, x, l, space_of(x), ex_addr(w, get_addr(x, 0), l),
				x->i.b[B_REMOTE], &cta, &at))
			return STEP_FAULT;
		if (w->sink)
			tx_event(w, x, l, complete, cta, at, bytes);
		m = mbar_find(cta, at);
		if (!m)
			continue;
		m->tx += complete ? -(int64_t)bytes : (int64_t)bytes;
		if (complete)
			test(cta, m);
	}
	ex_work(w);
	return STEP_NEXT;
}

/* ---- waits ---- */

static void explain(const struct warp *w, const struct xwait *wait, struct event_blocked *e,
	char *buf, size_t n)
{
	const struct mbar *m = mbar_find(w->cta, (uint32_t)wait->addr);

	e->text = buf;
	if (!m) {
		snprintf(buf, n, "there is no initialised mbarrier at this address");
		return;
	}
	e->missing = m->pending;
	e->tx_count = m->tx;
	snprintf(buf, n, "in phase %llu, waiting for %s %llu: %u of %u arrivals pending, "
		"tx-count %lld",
		(unsigned long long)m->phase, wait->arg >> 63 ? "parity" : "phase",
		(unsigned long long)(wait->arg >> 63 ? wait->arg & 1 : wait->arg), m->pending,
		m->expected, (long long)m->tx);
}

/* What lanes wait for: a parity, or the phase of a token. */
struct awaited {
	bool parity;
	uint64_t phase;
	uint32_t token_of;
};

/* value: the parity or the token */
static struct awaited awaited_by(const struct mbar *m, uint64_t value, bool parity)
{
	return (struct awaited){ .parity = parity, .phase = parity ? value & 1
		: m ? token_phase(m, value) : value & ((1u << TOKEN_OBJECT_AT) - 1),
		.token_of = parity ? 0 : token_object(value) };
}

static bool complete(const struct mbar *m, const struct awaited *a)
{
	return m && (a->parity ? (m->phase & 1) != a->phase : m->phase > a->phase);
}

static void wait_event(struct warp *w, const struct xop *x, uint32_t lanes, struct cta *cta,
	uint32_t at, const struct awaited *a, unsigned flags)
{
	struct event e = ex_event(w, x, EV_MBARRIER_TEST, lanes);

	e.mbarrier_test = (struct event_mbarrier_test){ .owner = (uint16_t)cta->rank, .addr = at,
		.sem = (enum ev_sem)x->i.b[B_SEM], .scope = (enum ev_scope)x->i.b[B_SCOPE],
		.flags = (enum ev_test_flags)(x->i.b[B_FLAGS] | flags),
		.phase = a->phase, .token_of = a->token_of };
	ex_emit(w->cluster, &e);
}

/* The time limit of a try_wait may expire at once (B26). With a seed it does so at random. Without
 * a seed it does so the first time that the warp would sleep there, so that every run detects code
 * that does not retry. It also expires where nothing else can progress, see warp_expire(). */
static bool try_wait_expires(struct warp *w, const struct xop *x)
{
	const uint64_t here = 1ull << (x->site & 63);
	const bool first = !(w->tried & here), over = w->expire & here;

	w->expire &= ~here;
	if (over)
		return true;
	if (w->cluster->grid->l->seed)
		return !(ex_random(w->cluster) & 3);
	w->tried |= here;
	return first;
}

static enum step op_wait(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint8_t flags = x->i.b[B_FLAGS];
	bool parity = flags & TEST_PARITY;
	uint64_t addr[LANES], value[LANES];
	uint32_t yes = 0;

	lane_addrs(w, get_addr(x, 0), addr);
	/* tokens of one phase differ in the counts seen by each arrival */
	for (unsigned l = 0; l < LANES; l++)
		value[l] = parity ? r32(w, x->o[3])[l]
			: r64(w, x->o[3])[l] & ((1ull << TOKEN_COUNT_AT) - 1);
	for (uint32_t rest = lanes, same; rest; rest &= ~same) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		struct cta *cta;
		uint32_t at;
		struct awaited a;
		bool done, expired;

		same = same_lanes(value, same_lanes(addr, rest, l), l);
		if (!mbar_place(w, x, l, space_of(x), addr[l], false, &cta, &at))
			return STEP_FAULT;
		a = awaited_by(mbar_find(cta, at), value[l], parity);
		done = complete(mbar_find(cta, at), &a);
		expired = !done && flags & TEST_TRY && !w->retry && try_wait_expires(w, x);
		if (!done && same == lanes && flags & TEST_TRY && !expired) {
			/* All lanes wait for the same phase: they sleep together. A warp whose
			 * lanes differ polls, so that no lane sleeps on a phase that another lane
			 * must complete. */
			if (w->sink && !w->retry)
				wait_event(w, x, same, cta, at, &a, TEST_SUSPENDED);
			ex_wait(w, WAIT_MBARRIER, object(cta, at), ~0ull, at);
			w->wait.explain = explain;
			w->wait.arg = parity ? 1ull << 63 | a.phase : a.phase;
			return STEP_BLOCK;
		}
		if (w->sink)
			wait_event(w, x, same, cta, at, &a, done ? TEST_TRUE : 0);
		yes |= done ? same : 0;
	}
	ex_set_pred(w, x->o[2], lanes, yes);
	if (yes)
		return STEP_NEXT;
	ex_poll(w);
	return STEP_YIELD;
}

static enum step op_pending(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const l64 *state = r64(w, x->o[3]);
	l32 *d = r32(w, x->o[2]);
	uint64_t v[LANES];

	memcpy(v, (const void *)state, sizeof v);
	for (uint32_t rest = lanes, same; w->sink && rest; rest &= ~same) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		struct event e;

		same = same_lanes(v, rest, l);
		e = ex_event(w, x, EV_MBARRIER_PENDING_COUNT, same);
		e.mbarrier_pending_count.state = v[l];
		e.mbarrier_pending_count.no_complete = v[l] & TOKEN_COUNTS;
		ex_emit(w->cluster, &e);
	}
	for EACH_LANE(l, lanes)
		d[l] = (uint32_t)(v[l] >> TOKEN_COUNT_AT) & 0xfffff;
	return STEP_NEXT;
}

/* ---- decoding ---- */

static void common(struct decoder *d, const struct ptx_insn *i, struct xop *x, unsigned addr,
	enum ev_sem sem)
{
	enum ev_sem s = ptx_sem_of(i, SEM_WEAK);

	put_addr(x, 0, dec_addr(d, &i->operand[addr]));
	x->o[2] = SLOT_NONE;
	x->i.b[B_SPACE] = (uint8_t)ptx_space_of(i, 0);
	x->i.b[B_SEM] = (uint8_t)(s == SEM_WEAK ? sem : s);
	x->i.b[B_SCOPE] = (uint8_t)ptx_scope_of(i, SCOPE_NONE); /* SCOPE_NONE if not written */
}

DECODER(mbarrier_init)
{
	common(d, i, x, 0, SEM_WEAK);
	x->o[3] = dec_src(d, &i->operand[1], TY_u32);
	x->fn = op_init;
	return true;
}

DECODER(mbarrier_inval)
{
	common(d, i, x, 0, SEM_WEAK);
	x->fn = op_inval;
	return true;
}

static bool decode_tx(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool completes)
{
	common(d, i, x, 0, SEM_RELAXED);
	x->o[3] = dec_src(d, &i->operand[1], TY_u32);
	x->i.b[B_FLAGS] = completes;
	x->i.b[B_REMOTE] = true;
	x->fn = op_tx;
	return true;
}

DECODER(mbarrier_expect_tx)
{
	return decode_tx(d, i, x, false);
}

DECODER(mbarrier_complete_tx)
{
	return decode_tx(d, i, x, true);
}

/* The state operand may be missing: older syntax for remote objects. */
static bool decode_arrive(struct decoder *d, const struct ptx_insn *i, struct xop *x,
	unsigned flags)
{
	unsigned a = i->operand[0].kind == PO_ADDR ? 0 : 1;
	bool more = i->noperands > a + 1u;

	common(d, i, x, a, SEM_RELEASE);
	if (a)
		x->o[2] = dec_dst(d, &i->operand[0], TY_b64);
	x->o[3] = dec_const(d, 32, 1);
	x->o[4] = x->o[3];
	if (flags & ARRIVE_EXPECT_TX)
		x->o[4] = dec_src(d, &i->operand[a + 1], TY_u32);
	else if (more)
		x->o[3] = dec_src(d, &i->operand[a + 1], TY_u32);
	if (ptx_has(i, MOD_noComplete))
		flags |= ARRIVE_NO_COMPLETE;
	x->i.b[B_FLAGS] = (uint8_t)flags;
	x->i.b[B_REMOTE] = true;
	x->fn = op_arrive;
	return true;
}

DECODER(mbarrier_arrive)
{
	return decode_arrive(d, i, x, 0);
}

DECODER(mbarrier_arrive_expect_tx)
{
	return decode_arrive(d, i, x, ARRIVE_EXPECT_TX);
}

DECODER(mbarrier_arrive_drop)
{
	return decode_arrive(d, i, x, ARRIVE_DROP);
}

DECODER(mbarrier_arrive_drop_expect_tx)
{
	return decode_arrive(d, i, x, ARRIVE_DROP | ARRIVE_EXPECT_TX);
}

static bool decode_wait(struct decoder *d, const struct ptx_insn *i, struct xop *x, unsigned flags)
{
	if (ptx_has(i, MOD_parity))
		flags |= TEST_PARITY;
	common(d, i, x, 1, SEM_ACQUIRE);
	x->o[2] = dec_dst(d, &i->operand[0], TY_pred);
	x->o[3] = dec_src(d, &i->operand[2], flags & TEST_PARITY ? TY_u32 : TY_b64);
	x->i.b[B_FLAGS] = (uint8_t)flags;
	x->fn = op_wait;
	return true;
}

DECODER(mbarrier_test_wait)
{
	return decode_wait(d, i, x, 0);
}

DECODER(mbarrier_try_wait)
{
	return decode_wait(d, i, x, TEST_TRY);
}

DECODER(mbarrier_pending_count)
{
	x->o[2] = dec_dst(d, &i->operand[0], TY_u32);
	x->o[3] = dec_src(d, &i->operand[1], TY_b64);
	x->fn = op_pending;
	return true;
}
