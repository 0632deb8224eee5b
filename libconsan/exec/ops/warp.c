/* warp: exchange between lanes of a warp: shfl, vote, match, redux, movmatrix. None of them orders
 * memory; the rendezvous of the lanes is reported as an event. Reading a lane outside the mask
 * gives its register's value; the ISA does not define it. */
#include "libconsan/exec/fmath.h"
#include "libconsan/exec/lane.h"

/* The lanes of `rest` whose member mask equals that of its first lane: one group, which acts
 * together. */
static inline uint32_t group_of(const l32 *mask, uint32_t rest)
{
	uint32_t want = mask[__builtin_ctz(rest)], same = 0;

	LANE_LOOP
	for (unsigned l = 0; l < LANES; l++)
		same |= mask[l] == want ? 1u << l : 0;
	return same & rest;
}

/* Runs body for each group of the lanes that may continue. The slot of the member mask is
 * o[slot]. */
#define SYNC_LANES(slot) \
	bool fault_; \
	uint32_t ready = warp_sync_mask(w, x, lanes, x->o[slot], &fault_); \
	const l32 *mask_ LANE_USED = r32(w, x->o[slot]); \
	if (!ready) \
		return fault_ ? STEP_FAULT : STEP_BLOCK; \
	if (w->sink) \
		warp_emit_collective(w, x, ready, mask_)
#define EACH_GROUP(g) \
	(uint32_t left_ = ready, g; left_ && (g = group_of(mask_, left_), 1); left_ &= ~g)

/* ---- shfl.sync d|p, a, b, c, mask: o[0] d, o[1] a, o[2] b, o[3] c, o[4] mask,
 * o[5] p ---- */

enum { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };
static inline uint32_t shfl_source(unsigned mode, uint32_t l, uint32_t b, uint32_t c, bool *ok)
{
	uint32_t seg = c >> 8 & 31, n = b & 31;
	uint32_t max = (l & seg) | (c & 31 & ~seg), min = l & seg;
	/* up: signed, may leave the segment at the bottom */
	int32_t j = mode == SHFL_UP ? (int32_t)l - (int32_t)n
		: mode == SHFL_DOWN ? (int32_t)(l + n)
		: mode == SHFL_BFLY ? (int32_t)(l ^ n) : (int32_t)(min | (n & ~seg));

	*ok = mode == SHFL_UP ? j >= (int32_t)max : j <= (int32_t)max;
	return *ok ? (uint32_t)j : l;
}
/* t[l] = a[from[l]] */
static inline void lane_take(l32 *t, const l32 *a, const l32 *from)
{
#ifdef __AVX512F__
	const __m512i lo = _mm512_loadu_si512(a), hi = _mm512_loadu_si512(a + 16);

	for (unsigned k = 0; k < LANES; k += 16)
		_mm512_storeu_si512(t + k,
			_mm512_permutex2var_epi32(lo, _mm512_loadu_si512(from + k), hi));
#else
	for (unsigned l = 0; l < LANES; l++)
		t[l] = a[from[l]];
#endif
}
#define SHFL(name, mode) \
static enum step shfl_##name(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	l32 t[LANES], from[LANES]; \
	uint32_t p = 0; \
	SYNC_LANES(4); \
	const l32 *a = LANE_AT(const l32, 1), *b = LANE_AT(const l32, 2), \
		*c = LANE_AT(const l32, 3); \
	LANE_LOOP \
	for (unsigned l = 0; l < LANES; l++) { \
		bool ok; \
		from[l] = shfl_source(mode, l, b[l], c[l], &ok) & 31; \
		p |= ok ? 1u << l : 0; \
	} \
	if (w->sink && ready != FULL) \
		warp_emit_bad_source(w, x, ready, mask_, from); \
	lane_take(t, a, from); \
	lane_blend32(LANE_AT(l32, 0), t, ready); \
	if (x->o[5] != SLOT_NONE) \
		ex_set_pred(w, x->o[5], ready, p); \
	return STEP_NEXT; \
}
SHFL(up, SHFL_UP)
SHFL(down, SHFL_DOWN)
SHFL(bfly, SHFL_BFLY)
SHFL(idx, SHFL_IDX)

DECODER(shfl_sync)
{
	const struct ptx_operand *dst = &i->operand[0];

	switch ((int)ptx_pick(i, MG_shfl)) {
	case MOD_up: x->fn = shfl_up; break;
	case MOD_down: x->fn = shfl_down; break;
	case MOD_bfly: x->fn = shfl_bfly; break;
	case MOD_idx: x->fn = shfl_idx; break;
	default: return dec_unsupported(d, "shfl without a mode");
	}
	x->o[5] = SLOT_NONE;
	if (dst->kind == PO_PAIR) {
		x->o[0] = dec_dst(d, &dst->list[0], TY_b32);
		x->o[5] = dec_dst(d, &dst->list[1], TY_pred);
	} else {
		x->o[0] = dec_dst(d, dst, TY_b32);
	}
	for (unsigned k = 1; k <= 4; k++)
		x->o[k] = dec_src(d, &i->operand[k], TY_b32);
	return true;
}

/* ---- vote.sync d, p, mask: o[0] d, o[1] p, o[2] p's flip, o[3] mask ---- */

enum { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
static enum step vote(struct warp *w, const struct xop *x, uint32_t lanes)
{
	SYNC_LANES(3);
	const uint32_t p = rp(w, x->o[1])[0] ^ x->o[2];

	for EACH_GROUP(g) {
		uint32_t yes = p & g;

		if (x->i.w[0] == VOTE_BALLOT) {
			for EACH_LANE(l, g)
				r32(w, x->o[0])[l] = yes;
			continue;
		}
		bool is = x->i.w[0] == VOTE_ALL ? yes == g : x->i.w[0] == VOTE_ANY ? yes != 0
			: yes == g || yes == 0;
		ex_set_pred(w, x->o[0], g, is ? FULL : 0);
	}
	return STEP_NEXT;
}
static bool decode_vote(struct decoder *d, const struct ptx_insn *i, struct xop *x)
{
	enum ptx_mod m = ptx_pick(i, MG_vote);

	if (i->noperands != 3)
		return dec_unsupported(d, "vote without a member mask");
	x->fn = vote;
	x->i.w[0] = m == MOD_all ? VOTE_ALL : m == MOD_any ? VOTE_ANY
		: m == MOD_ballot ? VOTE_BALLOT : VOTE_UNI;
	x->o[0] = dec_dst(d, &i->operand[0], m == MOD_ballot ? TY_b32 : TY_pred);
	x->o[1] = dec_pred(d, &i->operand[1], &x->o[2]);
	x->o[3] = dec_src(d, &i->operand[2], TY_b32);
	return true;
}
DECODER(vote_sync) { return decode_vote(d, i, x); }
DECODER(vote) { return decode_vote(d, i, x); }

/* ---- match: o[0] d, o[1] a, o[2] mask, o[3] p, o[4] 64 bits? ---- */

static inline uint64_t match_value(const struct warp *w, const struct xop *x, unsigned l)
{
	return x->o[4] ? r64(w, x->o[1])[l] : r32(w, x->o[1])[l];
}
static enum step match_any(struct warp *w, const struct xop *x, uint32_t lanes)
{
	l32 t[LANES];

	SYNC_LANES(2);
	for EACH_GROUP(g) {
		uint32_t todo = g;
		while (todo) {
			uint64_t v = match_value(w, x, (unsigned)__builtin_ctz(todo));
			uint32_t same = 0;
			for EACH_LANE(l, todo)
				same |= match_value(w, x, l) == v ? 1u << l : 0;
			for EACH_LANE(k, same)
				t[k] = same;
			todo &= ~same;
		}
	}
	for EACH_LANE(l, ready)
		r32(w, x->o[0])[l] = t[l];
	return STEP_NEXT;
}
static enum step match_all(struct warp *w, const struct xop *x, uint32_t lanes)
{
	l32 t[LANES];
	uint32_t p = 0;

	SYNC_LANES(2);
	for EACH_GROUP(g) {
		uint64_t v = match_value(w, x, (unsigned)__builtin_ctz(g));
		bool all = true;
		for EACH_LANE(l, g)
			all &= match_value(w, x, l) == v;
		for EACH_LANE(k, g)
			t[k] = all ? g : 0;
		p |= all ? g : 0;
	}
	for EACH_LANE(l, ready)
		r32(w, x->o[0])[l] = t[l];
	if (x->o[3] != SLOT_NONE)
		ex_set_pred(w, x->o[3], ready, p);
	return STEP_NEXT;
}
static bool match(struct decoder *d, const struct ptx_insn *i, struct xop *x)
{
	enum ptx_type t = ptx_type_of(i, 0);
	const struct ptx_operand *dst = &i->operand[0];
	bool pair = dst->kind == PO_PAIR;

	if (t != TY_b32 && t != TY_b64)
		return dec_unsupported(d, "match of this type is not supported");
	x->o[0] = dec_dst(d, pair ? &dst->list[0] : dst, TY_b32);
	x->o[3] = pair ? dec_dst(d, &dst->list[1], TY_pred) : SLOT_NONE;
	x->o[1] = dec_src(d, &i->operand[1], t);
	x->o[2] = dec_src(d, &i->operand[2], TY_b32);
	x->o[4] = t == TY_b64;
	return true;
}
DECODER(match_any_sync)
{
	x->fn = match_any;
	return match(d, i, x);
}
DECODER(match_all_sync)
{
	x->fn = match_all;
	return match(d, i, x);
}

/* ---- redux.sync d, a, mask: o[0] d, o[1] a, o[2] mask ---- */

#define REDUX(fn, T, start, step_) \
static enum step redux_##fn(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	SYNC_LANES(2); \
	const T *a = LANE_AT(const T, 1); \
	T t[LANES]; \
	for EACH_GROUP(g) { \
		T r = (start); \
		for EACH_LANE(l, g) { \
			const T v = a[l]; \
			r = (T)(step_); \
		} \
		for EACH_LANE(k, g) \
			t[k] = r; \
	} \
	lane_blend32(LANE_AT(l32, 0), (const l32 *)t, ready); \
	return STEP_NEXT; \
}
REDUX(add, l32, 0, r + v)
REDUX(min_u, l32, UINT32_MAX, v < r ? v : r)
REDUX(max_u, l32, 0, v > r ? v : r)
REDUX(min_s, ls32, INT32_MAX, v < r ? v : r)
REDUX(max_s, ls32, INT32_MIN, v > r ? v : r)
REDUX(and, l32, FULL, r & v)
REDUX(or, l32, 0, r | v)
REDUX(xor, l32, 0, r ^ v)
/* NaN is the start value: every number is preferred to it, and two are canonical */
#define REDUX_F(fn, core, in, nan) \
REDUX(fn, l32, nan ? 0xffc00000u : NUM_NAN32, \
	nan && r == 0xffc00000u ? num_canon32(num_bits32(in(num_f32(v)))) \
		: num_canon(core(num_f32(r), in(num_f32(v)), nan)))
REDUX_F(min_f, fm_min, , false)
REDUX_F(max_f, fm_max, , false)
REDUX_F(min_f_nan, fm_min, , true)
REDUX_F(max_f_nan, fm_max, , true)
REDUX_F(min_fa, fm_min, fabsf, false)
REDUX_F(max_fa, fm_max, fabsf, false)
REDUX_F(min_fa_nan, fm_min, fabsf, true)
REDUX_F(max_fa_nan, fm_max, fabsf, true)

DECODER(redux_sync)
{
	static const xfn floats[2][2][2] = { /* [max][abs][NaN] */
		{ { redux_min_f, redux_min_f_nan }, { redux_min_fa, redux_min_fa_nan } },
		{ { redux_max_f, redux_max_f_nan }, { redux_max_fa, redux_max_fa_nan } } };
	enum ptx_type t = ptx_type_of(i, 0);
	enum ptx_mod op = ptx_pick(i, MG_redop);
	bool s = t == TY_s32, f = t == TY_f32, max = op == MOD_max;
	xfn fn = NULL;

	if (!f && !s && t != TY_u32 && t != TY_b32)
		return dec_unsupported(d, "redux of this type is not supported");
	switch ((int)op) {
	case MOD_add: fn = f ? NULL : redux_add; break;
	case MOD_and: fn = redux_and; break;
	case MOD_or: fn = redux_or; break;
	case MOD_xor: fn = redux_xor; break;
	case MOD_min: case MOD_max:
		fn = f ? floats[max][ptx_has(i, MOD_abs)][ptx_has(i, MOD_NaN)]
			: max ? (s ? redux_max_s : redux_max_u) : (s ? redux_min_s : redux_min_u);
		break;
	}
	LANE_DECODE(fn, t, t, TY_b32);
	/* lanes that exited take no part */
	x->pure = false;
	x->run = NULL;
	return fn != NULL;
}

/* ---- movmatrix: lane l holds row l / 4, columns 2 (l % 4) and the next ---- */

static enum step movmatrix(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const l16 *a = r16(w, x->o[1]);
	l16 t[2 * LANES];
	enum step s;

	if (!warp_aligned(w, x, lanes, &s))
		return s;
	if (w->sink)
		warp_emit_together(w, x);
	for (unsigned l = 0; l < LANES; l++)
		for (unsigned k = 0; k < 2; k++) {
			unsigned row = l / 4, col = l % 4 * 2 + k;
			/* element (col, row) of the source */
			t[2 * l + k] = a[2 * (col * 4 + row / 2) + row % 2];
		}
	lane_blend32(r32(w, x->o[0]), (const l32 *)t, lanes);
	return STEP_NEXT;
}
DECODER(movmatrix)
{
	LANE_DECODE(movmatrix, TY_b32, TY_b32);
	x->pure = false;
	x->run = NULL;
	return true;
}
