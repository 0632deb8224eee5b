/* wgmma.mma_async, also .sp: each type, N, swizzle and major-ness, A in shared memory or registers.
 * References: ISA 9.7.15.5 (fragments, matrix layouts, descriptors).
 *
 * Shared memory is filled with an image of random elements; the reference reads the elements from
 * where the canonical layouts put them. Offsets, in bytes, of row m (or column n) and byte k:
 *   K-major, no swizzle: m / 8 * SBO + k / 16 * LBO + m % 8 * 16 + k % 16
 *   K-major, S bytes:    m / 8 * SBO + m % 8 * S + k, permuted
 * and, for 16-bit elements, of row m and element k:
 *   MN-major, no swizzle: m / 8 * SBO + k / 8 * LBO + k % 8 * 16 + m % 8 * 2
 *   MN-major, S bytes:    2m / S * LBO + k / 8 * SBO + k % 8 * S + 2m % S, permuted
 * The permutation exchanges 16-byte pieces: bits 4 to 6 (S = 128), 4 to 5 (64) or 4 (32) of the
 * address are xored with those from bit 7 on.
 *
 * A sparse A is stored as a dense one; B has twice the depth. Metadata, and which elements of B take
 * part, as in mma_sparse.c. */
#include "conform.h"
#include "matrix.h"

#include <string.h>

static const struct { enum type a, b, d; unsigned k; } kinds[] = {
	{ T_f16, T_f16, T_f32, 16 }, { T_f16, T_f16, T_f16, 16 }, { T_bf16, T_bf16, T_f32, 16 },
	{ T_tf32, T_tf32, T_f32, 8 },
	{ T_e4m3, T_e4m3, T_f32, 32 }, { T_e4m3, T_e5m2, T_f16, 32 }, { T_e5m2, T_e4m3, T_f32, 32 },
	{ T_e5m2, T_e5m2, T_f16, 32 },
	{ T_s8, T_s8, T_s32, 32 }, { T_s8, T_u8, T_s32, 32 }, { T_u8, T_s8, T_s32, 32 },
	{ T_u8, T_u8, T_s32, 32 },
	{ T_b1, T_b1, T_s32, 256 }, /* the last: not sparse */
};

enum { M = 64, MAX_K = 256, IMAGE = 40960, AT_B = 8192, A_REGS = 4, ACC = 128, META = A_REGS + ACC,
	THREAD = 4 * (META + 1), IN_BYTES = IMAGE / CTA_THREADS + THREAD };

/* Of A and of B: bytes of the swizzle or 16, LBO, SBO, offset of the start in the swizzle's rows */
struct layout { bool mn; unsigned span, lead, stride, start; };
enum { P_KIND, P_N, P_VALUES, P_FLAGS };
enum { A_IN_REGS = 1, SCALE_D = 2, NEGATE_A = 4, NEGATE_B = 8, SAT = 16, SPARSE = 32,
	SELECTOR = 64 };

/* The layouts are a function of the item's parameters, drawn again when they are needed. */
static struct layout layout(const struct item *i, bool b)
{
	struct rng r = rng_start((uint64_t)i->p[b ? 5 : 4], "layout", b);
	static const unsigned spans[] = { 16, 32, 64, 128 };
	const unsigned n = b ? (unsigned)i->p[P_N] : M;
	const enum type t = kinds[i->p[P_KIND]].a;
	struct layout x = { type_bits(t) == 16 && rng_once_in(&r, 2), RNG_OF(&r, spans), 0, 0, 0 };
	unsigned pad = rng_below(&r, 3) * 16;
	const bool deep = b && i->p[P_FLAGS] & SPARSE; /* 64 bytes of K */

	if (!x.mn && deep && x.span == 32)
		x.span = 64;
	if (!x.mn && x.span == 16) { /* pieces of a row side by side, or all rows side by side */
		bool rows = rng_once_in(&r, 2);
		x.stride = rows ? 128 : (deep ? 4 : 2) * (128 + pad);
		x.lead = rows ? n / 8 * 128 + pad : 128 + pad;
	} else if (!x.mn) {
		x.stride = 8 * x.span;
		x.start = rng_below(&r, x.span / (deep ? 64 : 32)) * (deep ? 64 : 32);
	} else if (x.span == 16) {
		x.stride = 128 + pad;
		x.lead = n / 8 * x.stride + pad;
	} else { /* n / (S / 2) groups of columns, two groups of k each */
		x.stride = 8 * x.span;
		x.lead = (deep ? 32 : 16) * x.span;
	}
	return x;
}

static unsigned offset(const struct layout *x, unsigned m, unsigned k, unsigned bits)
{
	unsigned at, byte = k * bits / 8;

	if (!x->mn && x->span == 16)
		return m / 8 * x->stride + byte / 16 * x->lead + m % 8 * 16 + byte % 16;
	if (!x->mn)
		at = x->start + m / 8 * x->stride + m % 8 * x->span + byte;
	else if (x->span == 16)
		return m / 8 * x->stride + k / 8 * x->lead + k % 8 * 16 + m % 8 * 2;
	else
		at = 2 * m / x->span * x->lead + k / 8 * x->stride + k % 8 * x->span
			+ 2 * m % x->span;
	return at ^ (at >> 3 & (x->span - 1) & ~15u);
}

static long double element(const char *image, const struct layout *x, enum type t, unsigned m,
	unsigned k)
{
	const unsigned bits = type_bits(t);

	return matrix_value(t, packed_get(image + offset(x, m, k, bits), bits,
		bits < 8 ? k % (8 / bits) : 0));
}

/* Row and column of accumulator element e of a thread */
static unsigned row_of(unsigned thread,
	unsigned e) { return thread / 32 * 16 + thread % 32 / 4 + (e >> 1 & 1) * 8; }
static unsigned col_of(unsigned thread, unsigned e) { return e / 4 * 8 + thread % 4 * 2 + (e & 1); }

static void read_a(const struct item *i, const char *in, long double (*a)[256])
{
	const enum type t = kinds[i->p[P_KIND]].a;
	const unsigned depth = kinds[i->p[P_KIND]].k, bits = type_bits(t), per = 32 / bits;
	const struct layout x = layout(i, false);

	for (unsigned m = 0; m < M; m++)
		for (unsigned k = 0; k < depth; k++)
			a[m][k] = element(in, &x, t, m, k);
	if (!(i->p[P_FLAGS] & A_IN_REGS))
		return;
	for (unsigned thread = 0; thread < CTA_THREADS; thread++)
		for (unsigned r = 0; r < A_REGS; r++)
			for (unsigned e = 0; e < per; e++)
				a[thread / 32 * 16 + thread % 32 / 4 + (r & 1) * 8]
					[thread % 4 * per + r / 2 * 4 * per + e] = matrix_value(t,
					packed_get(in + IMAGE + thread * THREAD + 4 * r, bits, e));
}

/* The columns of the dense A in which the stored ones of row m are. */
static void columns(const struct item *i, const char *in, unsigned m, unsigned *at)
{
	const unsigned stored = kinds[i->p[P_KIND]].k, bits = type_bits(kinds[i->p[P_KIND]].a);
	const unsigned w = bits == 32 ? 2 : 4, selector = i->p[P_FLAGS] & SELECTOR ? 1 : 0;

	if (!(i->p[P_FLAGS] & SPARSE)) {
		for (unsigned s = 0; s < stored; s++)
			at[s] = s;
		return;
	}
	for (unsigned s = 0; s < stored; s++) {
		const unsigned c = s / (w / 2), half = m / 8 % 2;
		const unsigned t = bits == 8 ? half + c / 8 * 2 : 2 * selector + c / 4;
		const unsigned bit = bits == 8 ? c % 8 * 4 : half * 16 + c % 4 * 4;
		const unsigned thread = m / 16 * 32 + m % 8 * 4 + t;
		const unsigned nibble = (unsigned)packed_get(in + IMAGE + thread * THREAD + 4 * META,
			32, 0) >> bit & 15;

		at[s] = c * w + (w == 2 ? nibble == 14 : nibble >> s % 2 * 2 & 3);
	}
}

static void expect_wgmma(const struct item *i, const void *inputs, const void *out, struct want *w)
{
	static long double a[M][256], b[256][256];
	unsigned at[M][MAX_K];
	const char *in = inputs;
	const int f = i->p[P_FLAGS];
	const unsigned n = (unsigned)i->p[P_N], stored = kinds[i->p[P_KIND]].k;
	const unsigned depth = stored << !!(f & SPARSE);
	const enum type tb = kinds[i->p[P_KIND]].b, td = kinds[i->p[P_KIND]].d;
	const struct dot dot = { kinds[i->p[P_KIND]].a, tb, td, (enum values)i->p[P_VALUES],
		f & SAT, tb == T_b1 ? '&' : 0 };
	const struct layout x = layout(i, true);

	(void)out;
	read_a(i, in, a);
	for (unsigned m = 0; m < M; m++)
		columns(i, in, m, at[m]);
	for (unsigned c = 0; c < n; c++)
		for (unsigned k = 0; k < depth; k++)
			b[c][k] = element(in + AT_B, &x, tb, c, k);
	if (!(f & NEGATE_A) != !(f & NEGATE_B))
		for (unsigned m = 0; m < M; m++)
			for (unsigned k = 0; k < stored; k++)
				a[m][k] = -a[m][k];
	for (unsigned thread = 0; thread < CTA_THREADS; thread++)
		for (unsigned e = 0; e < i->nout; e++) {
			const char *acc = in + IMAGE + thread * THREAD + 4 * A_REGS;
			long double c = f & SCALE_D ? matrix_value(td, packed_get(acc,
				type_bits(td), e)) : 0;
			const unsigned m = row_of(thread, e);
			long double chosen[MAX_K];

			for (unsigned s = 0; s < stored; s++)
				chosen[s] = b[col_of(thread, e)][at[m][s]];
			matrix_dot(&dot, a[m], chosen, stored, c, &w[thread * i->nout + e]);
		}
}

static void fill_wgmma(const struct item *i, struct rng *r, void *inputs, void *out)
{
	const enum type ta = kinds[i->p[P_KIND]].a, tb = kinds[i->p[P_KIND]].b,
		td = kinds[i->p[P_KIND]].d;
	const enum values v = (enum values)i->p[P_VALUES];
	static const uint8_t pairs[] = { 4, 8, 12, 9, 13, 14 };
	char *in = inputs;

	(void)out;
	for (unsigned k = 0; k < AT_B * 8 / type_bits(ta); k++)
		packed_set(in, type_bits(ta), k, matrix_pick(r, ta, v));
	for (unsigned k = 0; k < (IMAGE - AT_B) * 8 / type_bits(tb); k++)
		packed_set(in + AT_B, type_bits(tb), k, matrix_pick(r, tb, v));
	for (unsigned t = 0; t < CTA_THREADS; t++) {
		char *own = in + IMAGE + t * THREAD;
		for (unsigned k = 0; k < A_REGS * 32 / type_bits(ta); k++)
			packed_set(own, type_bits(ta), k, matrix_pick(r, ta, v));
		for (unsigned k = 0; k < ACC * 32 / type_bits(td); k++)
			packed_set(own + 4 * A_REGS, type_bits(td), k, matrix_pick_acc(r, td, v));
		for (unsigned k = 0; k < 8; k++)
			packed_set(own + 4 * META, 4, k, type_bits(ta) == 32 ? rng_once_in(r, 2) ? 4 : 14
				: RNG_OF(r, pairs));
	}
}

static void list(struct text *p, const char *name, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "%s%s%u", k ? ", " : "{", name, k);
	text_printf(p, "}");
}

static void descriptor(struct text *p, const char *name, const struct layout *x, unsigned at)
{
	const uint64_t mode = x->span == 128 ? 1 : x->span == 64 ? 2 : x->span == 32 ? 3 : 0;
	const uint64_t word = mode << 62 | (uint64_t)(x->stride >> 4) << 32
		| (uint64_t)(x->lead >> 4) << 16;

	text_printf(p, "\tmov.u32 t, smem;\n\tadd.u32 t, t, %u;\n\tshr.u32 t, t, 4;\n"
		"\tand.b32 t, t, 0x3fff;\n\tcvt.u64.u32 %s, t;\n\tor.b64 %s, %s, 0x%lx;\n",
		at + x->start, name, name, name, word);
}

static void print(struct item *i, unsigned nreg)
{
	struct text *p = &i->ptx;
	const enum type ta = kinds[i->p[P_KIND]].a, tb = kinds[i->p[P_KIND]].b,
		td = kinds[i->p[P_KIND]].d;
	const struct layout a = layout(i, false), b = layout(i, true);
	const int f = i->p[P_FLAGS];
	const bool regs = f & A_IN_REGS, floats = type_kind(ta) == KIND_FLOAT;

	text_printf(p, "\t.reg .b64 base, own, x, da, db;\n\t.reg .b32 t, a<4>, d<%u>, v<4>, e;\n"
		"\t.reg .pred p;\n\tmul.wide.u32 x, %%thr, %u;\n\tsub.u64 base, %%src, x;\n"
		"\tmad.wide.u32 own, %%thr, %u, base;\n\tmul.wide.u32 x, %%thr, 16;\n"
		"\tadd.u64 base, base, x;\n\tcvt.u32.u64 t, x;\n\tmov.u32 a0, smem;\n\tadd.u32 t, "
			"t, a0;\n"
		"\tbar.sync 0;\n", nreg, IN_BYTES, THREAD);
	for (unsigned k = 0; k < IMAGE; k += 16 * CTA_THREADS)
		text_printf(p, "\tld.global.v4.b32 {v0, v1, v2, v3}, [base+%u];\n"
			"\tst.shared.v4.b32 [t+%u], {v0, v1, v2, v3};\n", k, k);
	for (unsigned k = 0; k < A_REGS; k++)
		text_printf(p, "\tld.global.b32 a%u, [own+%u];\n", k, IMAGE + 4 * k);
	for (unsigned k = 0; k < nreg; k++)
		text_printf(p, "\tld.global.b32 d%u, [own+%u];\n", k, IMAGE + 4 * (A_REGS + k));
	text_printf(p, "\tld.global.b32 e, [own+%u];\n", IMAGE + 4 * META);
	descriptor(p, "da", &a, 0);
	descriptor(p, "db", &b, AT_B);
	text_printf(p, "\tsetp.ne.u32 p, %d, 0;\n\tfence.proxy.async;\n\tbar.sync 0;\n"
		"\twgmma.fence.sync.aligned;\n"
			"/**/\twgmma.mma_async%s.sync.aligned.m64n%dk%u%s.%s.%s.%s%s ",
		(f & SCALE_D) != 0, f & SPARSE ? ".sp" : "", i->p[P_N],
		kinds[i->p[P_KIND]].k << !!(f & SPARSE), f & SAT ? ".satfinite" : "",
		type_name(td), type_name(ta), type_name(tb), ta == T_b1 ? ".and.popc" : "");
	list(p, "d", nreg);
	text_printf(p, ", ");
	if (regs)
		list(p, "a", A_REGS);
	else
		text_printf(p, "da");
	text_printf(p, ", db, ");
	if (f & SPARSE)
		text_printf(p, "e, %d, ", (f & SELECTOR) != 0);
	text_printf(p, "p");
	if (floats)
		text_printf(p, ", %d, %d", f & NEGATE_A ? -1 : 1, f & NEGATE_B ? -1 : 1);
	if (type_bits(ta) == 16 && !regs)
		text_printf(p, ", %d", a.mn);
	if (type_bits(ta) == 16)
		text_printf(p, ", %d", b.mn);
	text_printf(p, ";\n\twgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned "
		"0;\n");
	for (unsigned k = 0; k < nreg; k++)
		text_printf(p, "\tst.global.b32 [%%dst+%u], d%u;\n", 4 * k, k);
}

static void describe(struct item *i, struct rng *r, bool sparse)
{
	unsigned n = 8 + 8 * rng_below(r, rng_once_in(r, 2) ? 8 : 32);
	bool floats;
	enum type td;

	i->p[P_KIND] = (int)rng_below(r, ARRAY_SIZE(kinds) - sparse);
	td = kinds[i->p[P_KIND]].d;
	floats = type_kind(td) == KIND_FLOAT;
	if (!floats && n > 32) /* 8, 16, 24, 32, then multiples of 16 */
		n &= ~15u;
	i->p[P_N] = (int)n;
	i->p[P_VALUES] = (int)rng_below(r, 3);
	i->p[P_FLAGS] = (rng_once_in(r, 2) ? A_IN_REGS : 0) | (rng_once_in(r, 4) ? 0 : SCALE_D)
		| (floats && rng_once_in(r, 3) ? NEGATE_A : 0)
		| (floats && rng_once_in(r, 3) ? NEGATE_B : 0)
		| (!floats && kinds[i->p[P_KIND]].a != T_b1 && rng_once_in(r, 2) ? SAT : 0)
		| (sparse ? SPARSE : 0)
		| (sparse && type_bits(kinds[i->p[P_KIND]].a) > 8 && rng_once_in(r, 2) ? SELECTOR : 0);
	i->p[4] = (int)rng_below(r, 1 << 20);
	i->p[5] = (int)rng_below(r, 1 << 20);
	item_block(i, IN_BYTES, M * n / CTA_THREADS * type_bits(td) / 8, M * n / CTA_THREADS,
		type_bits(td), expect_wgmma);
	i->fill = fill_wgmma;
	i->approximate = i->p[P_VALUES] != VALUES_EXACT;
	print(i, i->nout * type_bits(td) / 32);
}

void class_wgmma(struct item *i, struct rng *r)
{
	describe(i, r, false);
}

void class_wgmma_sparse(struct item *i, struct rng *r)
{
	describe(i, r, true);
}
