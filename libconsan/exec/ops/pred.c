/* pred: comparisons and selections: setp, set, selp, slct, testp; logic on predicates. */
#include "libconsan/exec/half.h"

/* ---- comparisons: bit l of the result is lane l; a in o[2], b in o[3] ---- */

typedef uint32_t (*cmpfn)(const struct warp *, const struct xop *);

/* Defines a comparison and its setp. */
static inline enum step setp_done(struct warp *w, const struct xop *x,
	uint32_t lanes, uint32_t m);
#define CMP(fn, T, cond) \
LANE_MASK(cmp_##fn, T, 2, T, 3, cond) \
static enum step setp_##fn(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	return setp_done(w, x, lanes, cmp_##fn(w, x)); \
}

/* o[0] p, o[1] q; o[4] third predicate, o[5] its negation; o[6] how it is combined; o[7] FULL: the
 * comparison is the negation of the handler's */
enum { COMBINE_AND, COMBINE_OR, COMBINE_XOR };
static inline uint32_t combine(uint32_t how, uint32_t m, uint32_t c)
{
	return how == COMBINE_AND ? m & c : how == COMBINE_OR ? m | c : m ^ c;
}
static inline enum step setp_done(struct warp *w, const struct xop *x,
	uint32_t lanes, uint32_t m)
{
	uint32_t c = rp(w, x->o[4])[0] ^ x->o[5];

	m ^= x->o[7];
	ex_set_pred(w, x->o[0], LANE_ALL(lanes), combine(x->o[6], m, c));
	if (x->o[1] != SLOT_NONE)
		ex_set_pred(w, x->o[1], LANE_ALL(lanes), combine(x->o[6], ~m, c));
	return LANE_NEXT(lanes);
}

/* gt and ge are lt and le with the operands exchanged by the decoder; the unordered comparisons
 * negate an ordered one */
enum base_cmp { CMP_EQ, CMP_LT, CMP_LE, CMP_LG, CMP_NUM, CMP_COUNT };

#ifdef __AVX512BW__
/* The processor compares into masks, which compilers do not use directly. Each of these compares n
 * lanes, 64 bytes, of type s. */
#define LANES_512(k, n) \
	_mm512_load_si512((const void *)(w->r + x->o[k] + 64 * (n)))
#define PART_u16(n, imm) (uint32_t)_mm512_cmp_epu16_mask(LANES_512(2, n), LANES_512(3, n), imm)
#define PART_s16(n, imm) (uint32_t)_mm512_cmp_epi16_mask(LANES_512(2, n), LANES_512(3, n), imm)
#define PART_u32(n, imm) (uint32_t)_mm512_cmp_epu32_mask(LANES_512(2, n), LANES_512(3, n), imm)
#define PART_s32(n, imm) (uint32_t)_mm512_cmp_epi32_mask(LANES_512(2, n), LANES_512(3, n), imm)
#define PART_u64(n, imm) (uint32_t)_mm512_cmp_epu64_mask(LANES_512(2, n), LANES_512(3, n), imm)
#define PART_s64(n, imm) (uint32_t)_mm512_cmp_epi64_mask(LANES_512(2, n), LANES_512(3, n), imm)
#define PART_f32(n, imm) (uint32_t)_mm512_cmp_ps_mask(_mm512_castsi512_ps(LANES_512(2, n)), \
	_mm512_castsi512_ps(LANES_512(3, n)), imm)
#define PART_f64(n, imm) (uint32_t)_mm512_cmp_pd_mask(_mm512_castsi512_pd(LANES_512(2, n)), \
	_mm512_castsi512_pd(LANES_512(3, n)), imm)
#define ALL_16(part, imm) part(0, imm)
#define ALL_32(part, imm) (part(0, imm) | part(1, imm) << 16)
#define ALL_64(part, imm) \
	(part(0, imm) | part(1, imm) << 8 | part(2, imm) << 16 | part(3, imm) << 24)
#define CMP_512(fn, all, part, imm) \
static inline uint32_t cmp_##fn(const struct warp *w, const struct xop *x) \
{ \
	return all(part, imm); \
} \
static enum step setp_##fn(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	return setp_done(w, x, lanes, cmp_##fn(w, x)); \
}
#define CMP_INT(s, T, all) \
CMP_512(eq_##s, all, PART_##s, _MM_CMPINT_EQ) \
CMP_512(lt_##s, all, PART_##s, _MM_CMPINT_LT) \
CMP_512(le_##s, all, PART_##s, _MM_CMPINT_LE)
#define CMP_REAL(s, T, all) \
CMP_512(eq_##s, all, PART_##s, _CMP_EQ_OQ) \
CMP_512(lt_##s, all, PART_##s, _CMP_LT_OQ) \
CMP_512(le_##s, all, PART_##s, _CMP_LE_OQ) \
CMP_512(lg_##s, all, PART_##s, _CMP_NEQ_OQ) \
CMP_512(num_##s, all, PART_##s, _CMP_ORD_Q)
#else
#define CMP_INT(s, T, all) \
CMP(eq_##s, T, A == B) \
CMP(lt_##s, T, A < B) \
CMP(le_##s, T, A <= B)
#define CMP_REAL(s, T, all) CMP_FLOAT(s, T, )
#endif
CMP_INT(u16, l16, ALL_16)
CMP_INT(s16, ls16, ALL_16)
CMP_INT(u32, l32, ALL_32)
CMP_INT(s32, ls32, ALL_32)
CMP_INT(u64, l64, ALL_64)
CMP_INT(s64, ls64, ALL_64)
#define CMP_FLOAT(s, T, in) \
CMP(eq_##s, T, in(A) == in(B)) \
CMP(lt_##s, T, in(A) < in(B)) \
CMP(le_##s, T, in(A) <= in(B)) \
CMP(lg_##s, T, in(A) < in(B) || in(A) > in(B)) \
CMP(num_##s, T, in(A) == in(A) && in(B) == in(B))
CMP_REAL(f32, lf32, ALL_32)
CMP_REAL(f64, lf64, ALL_64)
CMP_FLOAT(f32_ftz, lf32, num_ftz)
CMP_FLOAT(bf16, l16, num_from_bf16)
CMP_FLOAT(f16, l16, num_from_f16)
NUM_INLINE float f16_ftz(uint16_t h) { return num_from_f16(h & 0x7c00 ? h : h & 0x8000); }
CMP_FLOAT(f16_ftz, l16, f16_ftz)

struct cmp_row {
	xfn setp;
	cmpfn cmp;
};
#define ROW(s) { setp_##s, cmp_##s }
#define INT_ROWS(s) { ROW(eq_##s), ROW(lt_##s), ROW(le_##s), { 0 }, { 0 } }
#define FLOAT_ROWS(s) { ROW(eq_##s), ROW(lt_##s), ROW(le_##s), ROW(lg_##s), ROW(num_##s) }
enum cmp_type { CT_U16, CT_S16, CT_U32, CT_S32, CT_U64, CT_S64,
	CT_F16, CT_F16_FTZ, CT_BF16, CT_F32, CT_F32_FTZ, CT_F64, CT_COUNT };
static const struct cmp_row cmp_rows[CT_COUNT][CMP_COUNT] = {
	[CT_U16] = INT_ROWS(u16), [CT_S16] = INT_ROWS(s16),
	[CT_U32] = INT_ROWS(u32), [CT_S32] = INT_ROWS(s32),
	[CT_U64] = INT_ROWS(u64), [CT_S64] = INT_ROWS(s64),
	[CT_F16] = FLOAT_ROWS(f16), [CT_F16_FTZ] = FLOAT_ROWS(f16_ftz),
	[CT_BF16] = FLOAT_ROWS(bf16), [CT_F32] = FLOAT_ROWS(f32),
	[CT_F32_FTZ] = FLOAT_ROWS(f32_ftz), [CT_F64] = FLOAT_ROWS(f64),
};

/* The comparison of a modifier and type: its row and operands. */
struct choice {
	struct cmp_row row;
	bool swap;
	uint32_t negate; /* FULL or 0 */
};
static bool choose(struct decoder *d, const struct ptx_insn *i, enum ptx_type t,
	struct choice *c)
{
	enum ptx_mod m = ptx_pick(i, MG_cmp);
	bool ftz = ptx_has(i, MOD_ftz), is_float = ptx_type_class(t) == 'f';
	enum base_cmp base;
	enum cmp_type ct;

	/* .lo and .hi are in the tables also as halves of a product */
	if (m == MOD_NONE && ptx_has(i, MOD_lo))
		m = MOD_cmp_lo;
	if (m == MOD_NONE && ptx_has(i, MOD_hi))
		m = MOD_cmp_hi;
	memset(c, 0, sizeof *c);
	switch ((int)m) {
	case MOD_eq: base = CMP_EQ; break;
	case MOD_ne: base = is_float ? CMP_LG : CMP_EQ; c->negate = is_float ? 0 : FULL; break;
	case MOD_lt: case MOD_cmp_lo: base = CMP_LT; break;
	case MOD_le: case MOD_cmp_ls: base = CMP_LE; break;
	case MOD_gt: case MOD_cmp_hi: base = CMP_LT; c->swap = true; break;
	case MOD_ge: case MOD_cmp_hs: base = CMP_LE; c->swap = true; break;
	case MOD_equ: base = CMP_LG; c->negate = FULL; break;
	case MOD_neu: base = CMP_EQ; c->negate = FULL; break;
	case MOD_ltu: base = CMP_LE; c->swap = true; c->negate = FULL; break;
	case MOD_leu: base = CMP_LT; c->swap = true; c->negate = FULL; break;
	case MOD_gtu: base = CMP_LE; c->negate = FULL; break;
	case MOD_geu: base = CMP_LT; c->negate = FULL; break;
	case MOD_num: base = CMP_NUM; break;
	case MOD_nan: base = CMP_NUM; c->negate = FULL; break;
	default: return dec_unsupported(d, "a comparison without an operator");
	}
	switch ((int)t) {
	case TY_b16: case TY_u16: ct = CT_U16; break;
	case TY_s16: ct = CT_S16; break;
	case TY_b32: case TY_u32: ct = CT_U32; break;
	case TY_s32: ct = CT_S32; break;
	case TY_b64: case TY_u64: ct = CT_U64; break;
	case TY_s64: ct = CT_S64; break;
	case TY_f16: case TY_f16x2: ct = ftz ? CT_F16_FTZ : CT_F16; break;
	case TY_bf16: case TY_bf16x2: ct = CT_BF16; break;
	case TY_f32: ct = ftz ? CT_F32_FTZ : CT_F32; break;
	case TY_f64: ct = CT_F64; break;
	default: return dec_unsupported(d, "a comparison of this type is not supported");
	}
	c->row = cmp_rows[ct][base];
	return c->row.setp || dec_unsupported(d, "this comparison is not for this type");
}
static uint32_t combine_of(const struct ptx_insn *i)
{
	return ptx_has(i, MOD_or) ? COMBINE_OR : ptx_has(i, MOD_xor) ? COMBINE_XOR : COMBINE_AND;
}
/* o[4] o[5] o[6]: the optional third predicate, operand k */
static void third(struct decoder *d, const struct ptx_insn *i, struct xop *x, unsigned k)
{
	x->o[4] = SLOT_TRUE;
	x->o[6] = COMBINE_AND;
	if (i->noperands <= k)
		return;
	x->o[4] = dec_pred(d, &i->operand[k], &x->o[5]);
	x->o[6] = combine_of(i);
}

/* ---- f16x2 and bf16x2: two comparisons, at the halves of the register ----
 * They run on copies of the halves as 16-bit lanes in scratch slots. */

struct halves {
	cmpfn cmp;
	uint32_t negate, a, b; /* the packed operands */
};
static void split(l16 *lo, l16 *hi, const l16 *v)
{
	for (unsigned l = 0; l < LANES; l++) {
		lo[l] = v[2 * l];
		hi[l] = v[2 * l + 1];
	}
}
static void compare_halves(struct warp *w, const struct halves *h, uint32_t m[2])
{
	/* a separate register file for the comparison: 4 slots of 64 bytes */
	unsigned char file[4 * 64] __attribute__((aligned(64)));
	struct warp tmp = { .r = file };
	struct xop lo = { .o = { [2] = 0, [3] = 64 } }, hi = { .o = { [2] = 128, [3] = 192 } };

	split((l16 *)file, (l16 *)(file + 128), r16(w, h->a));
	split((l16 *)(file + 64), (l16 *)(file + 192), r16(w, h->b));
	m[0] = h->cmp(&tmp, &lo) ^ h->negate;
	m[1] = h->cmp(&tmp, &hi) ^ h->negate;
}
/* p is the low half's result, q the high half's; both are combined with c */
static enum step setp_halves(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint32_t m[2], c = rp(w, x->o[4])[0] ^ x->o[5];

	compare_halves(w, x->i.p, m);
	ex_set_pred(w, x->o[0], lanes, combine(x->o[6], m[0], c));
	ex_set_pred(w, x->o[1], lanes, combine(x->o[6], m[1], c));
	return STEP_NEXT;
}

static struct halves *halves_of(struct decoder *d, const struct ptx_insn *i,
	const struct choice *c, enum ptx_type t, unsigned k)
{
	struct halves *h = dec_alloc(d, sizeof *h);

	h->cmp = c->row.cmp;
	h->negate = c->negate;
	h->a = dec_src(d, &i->operand[k + c->swap], t);
	h->b = dec_src(d, &i->operand[k + !c->swap], t);
	return h;
}

DECODER(setp)
{
	enum ptx_type t = ptx_type_of(i, 0);
	const struct ptx_operand *dst = &i->operand[0];
	struct choice c;

	if (!choose(d, i, t, &c))
		return false;
	x->pure = true;
	x->o[1] = SLOT_NONE;
	if (dst->kind == PO_PAIR) {
		x->o[0] = dec_dst(d, &dst->list[0], TY_pred);
		x->o[1] = dec_dst(d, &dst->list[1], TY_pred);
	} else {
		x->o[0] = dec_dst(d, dst, TY_pred);
	}
	third(d, i, x, 3);
	if (t == TY_f16x2 || t == TY_bf16x2) {
		x->fn = setp_halves;
		x->i.p = halves_of(d, i, &c, t, 1);
		return true;
	}
	x->fn = x->run = c.row.setp;
	x->o[2] = dec_src(d, &i->operand[1 + c.swap], t);
	x->o[3] = dec_src(d, &i->operand[1 + !c.swap], t);
	x->o[7] = c.negate;
	return true;
}

/* ---- set: all ones, or 1.0 for a float destination ---- */

/* i.p: struct set; o[0] destination, o[2] o[3] operands, o[4..6] as setp */
struct set {
	cmpfn cmp;
	const struct halves *halves; /* or NULL */
	uint32_t negate, one;        /* the value of true, for one lane or half */
	unsigned width;              /* width of the destination: 16 or 32; 2: two halves */
};
static enum step set(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct set *s = x->i.p;
	uint32_t m[2], c = rp(w, x->o[4])[0] ^ x->o[5];

	if (s->halves) {
		compare_halves(w, s->halves, m);
		m[1] = combine(x->o[6], m[1], c);
	} else {
		m[0] = s->cmp(w, x) ^ s->negate;
	}
	m[0] = combine(x->o[6], m[0], c);
	if (s->width == 16)
		for EACH_LANE(l, lanes)
			r16(w, x->o[0])[l] = (l16)(m[0] >> l & 1 ? s->one : 0);
	else if (s->width == 32)
		for EACH_LANE(l, lanes)
			r32(w, x->o[0])[l] = m[0] >> l & 1 ? s->one : 0;
	else
		for EACH_LANE(l, lanes) {
			r16(w, x->o[0])[2 * l] = (l16)(m[0] >> l & 1 ? s->one : 0);
			r16(w, x->o[0])[2 * l + 1] = (l16)(m[1] >> l & 1 ? s->one : 0);
		}
	return STEP_NEXT;
}

DECODER(set)
{
	enum ptx_type td = ptx_type_of(i, 0), ts = ptx_type_of(i, 1);
	bool packed = ts == TY_f16x2 || ts == TY_bf16x2;
	struct set *s = dec_alloc(d, sizeof *s);
	struct choice c;

	if (!choose(d, i, ts, &c))
		return false;
	x->fn = set;
	x->pure = true;
	x->i.p = s;
	s->cmp = c.row.cmp;
	s->negate = c.negate;
	switch ((int)td) {
	case TY_u16: case TY_s16: s->width = 16; s->one = 0xffff; break;
	case TY_f16: s->width = 16; s->one = 0x3c00; break;
	case TY_bf16: s->width = 16; s->one = 0x3f80; break;
	case TY_u32: case TY_s32: s->width = 32; s->one = FULL; break;
	case TY_f32: s->width = 32; s->one = 0x3f800000; break;
	case TY_f16x2: s->width = 2; s->one = 0x3c00; break;
	case TY_bf16x2: s->width = 2; s->one = 0x3f80; break;
	default: return dec_unsupported(d, "set with this destination type is not supported");
	}
	if (packed && s->width == 32) {
		/* set.u32.f16x2: each half all ones */
		s->width = 2;
		s->one = 0xffff;
	}
	if (packed != (s->width == 2))
		return dec_unsupported(d, "set of two halves from one, or of one from two");
	x->o[0] = dec_dst(d, &i->operand[0], td);
	third(d, i, x, 3);
	if (packed) {
		s->halves = halves_of(d, i, &c, ts, 1);
		return true;
	}
	x->o[2] = dec_src(d, &i->operand[1 + c.swap], ts);
	x->o[3] = dec_src(d, &i->operand[1 + !c.swap], ts);
	return true;
}

/* ---- selp slct: o[0] = choice ? o[1] : o[2] ---- */

#define PICK(bits, T) \
static inline void pick##bits(struct warp *w, const struct xop *x, uint32_t lanes, uint32_t m) \
{ \
	T t[LANES]; \
	const T *a = LANE_AT(const T, 1), *b = LANE_AT(const T, 2); \
	LANE_LOOP \
	for (unsigned l = 0; l < LANES; l++) { \
		T mask = (T)((T)(m >> l & 1) - 1); \
		t[l] = (T)((a[l] & ~mask) | (b[l] & mask)); \
	} \
	lane_blend##bits(LANE_AT(T, 0), t, lanes); \
} \
static enum step selp##bits(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	pick##bits(w, x, LANE_ALL(lanes), rp(w, x->o[3])[0] ^ x->o[4]); \
	return LANE_NEXT(lanes); \
}
PICK(16, l16)
PICK(32, l32)
PICK(64, l64)

static enum step selp_pred(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint32_t c = rp(w, x->o[3])[0] ^ x->o[4];
	uint32_t a = rp(w, x->o[1])[0] ^ x->o[5], b = rp(w, x->o[2])[0] ^ x->o[6];

	ex_set_pred(w, x->o[0], lanes, (a & c) | (b & ~c));
	return STEP_NEXT;
}

static bool operands_ab(struct decoder *d, const struct ptx_insn *i, struct xop *x, enum ptx_type t)
{
	x->pure = true;
	x->o[0] = dec_dst(d, &i->operand[0], t);
	x->o[1] = dec_src(d, &i->operand[1], t);
	x->o[2] = dec_src(d, &i->operand[2], t);
	return true;
}

DECODER(selp)
{
	enum ptx_type t = ptx_type_of(i, 0);

	x->o[3] = dec_pred(d, &i->operand[3], &x->o[4]);
	if (t == TY_pred) {
		x->fn = selp_pred;
		x->pure = true;
		x->o[0] = dec_dst(d, &i->operand[0], t);
		x->o[1] = dec_pred(d, &i->operand[1], &x->o[5]);
		x->o[2] = dec_pred(d, &i->operand[2], &x->o[6]);
		return true;
	}
	switch (ptx_type_bits(t)) {
	case 16: x->fn = x->run = selp16; break;
	case 32: x->fn = x->run = selp32; break;
	case 64: x->fn = x->run = selp64; break;
	default: return dec_unsupported(d, "selp of this type is not supported");
	}
	return operands_ab(d, i, x, t);
}

/* slct: a if c >= 0, b if not (or NaN); -0 counts as 0 */
LANE_MASK(not_negative, ls32, 3, ls32, 3, A >= 0)
LANE_MASK(not_below_zero, lf32, 3, lf32, 3, A >= 0)
LANE_MASK(not_below_zero_ftz, lf32, 3, lf32, 3, num_ftz(A) >= 0)
#define SLCT(bits) \
static enum step slct_s##bits(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	pick##bits(w, x, lanes, not_negative(w, x)); \
	return STEP_NEXT; \
} \
static enum step slct_f##bits(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	pick##bits(w, x, lanes, x->o[4] ? not_below_zero_ftz(w, x) : not_below_zero(w, x)); \
	return STEP_NEXT; \
}
SLCT(16)
SLCT(32)
SLCT(64)

DECODER(slct)
{
	enum ptx_type t = ptx_type_of(i, 0), tc = ptx_type_of(i, 1);
	bool f = tc == TY_f32;

	if (!f && tc != TY_s32)
		return dec_unsupported(d, "slct by this type is not supported");
	switch (ptx_type_bits(t)) {
	case 16: x->fn = f ? slct_f16 : slct_s16; break;
	case 32: x->fn = f ? slct_f32 : slct_s32; break;
	case 64: x->fn = f ? slct_f64 : slct_s64; break;
	default: return dec_unsupported(d, "slct of this type is not supported");
	}
	x->o[3] = dec_src(d, &i->operand[3], tc);
	x->o[4] = ptx_has(i, MOD_ftz);
	return operands_ab(d, i, x, t);
}

/* ---- testp ---- */

#define TESTP(bits, T, EXP, INF) \
LANE_MASK(finite##bits, T, 1, T, 1, (A & INF) != INF) \
LANE_MASK(infinite##bits, T, 1, T, 1, (A & (INF | (EXP - 1))) == INF) \
LANE_MASK(nan##bits, T, 1, T, 1, (A & (INF | (EXP - 1))) > INF) \
/* ISA: zero counts as normal */ \
LANE_MASK(normal##bits, T, 1, T, 1, \
	(A & INF) != INF && ((A & INF) != 0 || (A & (EXP - 1)) == 0)) \
LANE_MASK(subnormal##bits, T, 1, T, 1, (A & INF) == 0 && (A & (EXP - 1)) != 0)
TESTP(32, l32, 0x00800000u, 0x7f800000u)
TESTP(64, l64, 0x0010000000000000u, 0x7ff0000000000000u)

static enum step testp(struct warp *w, const struct xop *x, uint32_t lanes)
{
	cmpfn f;

	memcpy(&f, &x->i.u, sizeof f);
	ex_set_pred(w, x->o[0], lanes, f(w, x) ^ x->o[2]);
	return STEP_NEXT;
}

DECODER(testp)
{
	enum ptx_type t = ptx_type_of(i, 0);
	bool wide = t == TY_f64;
	cmpfn f;

	if (!wide && t != TY_f32)
		return dec_unsupported(d, "testp of this type is not supported");
	switch ((int)ptx_pick(i, MG_fpclass)) {
	case MOD_finite: f = wide ? finite64 : finite32; break;
	case MOD_infinite: f = wide ? infinite64 : infinite32; break;
	case MOD_number: f = wide ? nan64 : nan32; x->o[2] = FULL; break;
	case MOD_notanumber: f = wide ? nan64 : nan32; break;
	case MOD_normal: f = wide ? normal64 : normal32; break;
	case MOD_subnormal: f = wide ? subnormal64 : subnormal32; break;
	default: return dec_unsupported(d, "testp without a class");
	}
	x->fn = testp;
	x->pure = true;
	memcpy(&x->i.u, &f, sizeof f);
	x->o[0] = dec_dst(d, &i->operand[0], TY_pred);
	x->o[1] = dec_src(d, &i->operand[1], t);
	return true;
}
