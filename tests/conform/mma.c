/* mma.sync. References: ISA 9.7.14.5; the fragments of all shapes follow one pattern there: lane
 * 4g + t holds in register r of A row g (+ 8 if r is odd) and columns from t * per + (r / 2) * 4 *
 * per, where per is the number of elements in a register; of B column g and rows from t * per + r *
 * 4 * per; of C and D row g (+ 8) and columns 2t and 2t + 1. */
#include "conform.h"
#include "matrix.h"

#include <string.h>

struct mma {
	unsigned m, k;
	enum type a, b, d;
};

static const struct mma float_kinds[] = {
	{ 16, 8, T_f16, T_f16, T_f32 }, { 16, 16, T_f16, T_f16, T_f32 },
	{ 16, 8, T_f16, T_f16, T_f16 }, { 16, 16, T_f16, T_f16, T_f16 },
	{ 16, 8, T_bf16, T_bf16, T_f32 }, { 16, 16, T_bf16, T_bf16, T_f32 },
	{ 16, 4, T_tf32, T_tf32, T_f32 }, { 16, 8, T_tf32, T_tf32, T_f32 },
	{ 8, 4, T_f64, T_f64, T_f64 }, { 16, 4, T_f64, T_f64, T_f64 },
	{ 16, 8, T_f64, T_f64, T_f64 }, { 16, 16, T_f64, T_f64, T_f64 },
	{ 16, 32, T_e4m3, T_e4m3, T_f32 }, { 16, 32, T_e4m3, T_e5m2, T_f32 },
	{ 16, 32, T_e5m2, T_e4m3, T_f32 }, { 16, 32, T_e5m2, T_e5m2, T_f32 },
};
static const struct { unsigned m, k; char width; } int_shapes[] = {
	{ 8, 16, 8 }, { 16, 16, 8 }, { 16, 32, 8 }, { 8, 32, 4 }, { 16, 32, 4 }, { 16, 64, 4 },
	{ 8, 128, 1 }, { 16, 128, 1 }, { 16, 256, 1 },
};

enum { P_M, P_K, P_A, P_B, P_D, P_VALUES, P_SAT, P_B1 };
/* registers of a thread, each in 8 bytes */
struct in { uint64_t a[8], b[4], c[4]; };
enum { N = 8, MAX_K = 256 };

static unsigned per(enum type t) { return type_bits(t) == 64 ? 1 : 32 / type_bits(t); }
static unsigned regs_a(const struct item *i)
{
	return (unsigned)i->p[P_M] * (unsigned)i->p[P_K] / 32 / per((enum type)i->p[P_A]);
}
static unsigned regs_b(const struct item *i)
{
	return N * (unsigned)i->p[P_K] / 32 / per((enum type)i->p[P_A]);
}
static unsigned elements_d(const struct item *i)
{
	return (unsigned)i->p[P_M] * N / 32;
}

static void expect_mma(const struct item *i, const void *inputs, const void *out, struct want *w)
{
	const unsigned m = (unsigned)i->p[P_M], k = (unsigned)i->p[P_K];
	const enum type ta = (enum type)i->p[P_A], tb = (enum type)i->p[P_B];
	const unsigned bits = type_bits(ta), n = per(ta);
	const struct dot dot = { ta, tb, (enum type)i->p[P_D], (enum values)i->p[P_VALUES],
		i->p[P_SAT], (char)i->p[P_B1] };
	static long double a[16][MAX_K], b[N][MAX_K], c[16][N];

	(void)out;
	for (unsigned warp = 0; warp < CTA_THREADS / 32; warp++) {
		const struct in *in = (const struct in *)inputs + warp * 32;
		struct want *to = w + warp * 32 * i->nout;
		for (unsigned l = 0; l < 32; l++) {
			unsigned g = l / 4, t = l % 4;
			for (unsigned r = 0; r < regs_a(i); r++)
				for (unsigned e = 0; e < n; e++) {
					unsigned row = m == 8 ? g : g + 8 * (r & 1);
					unsigned at = m == 8 ? r : r / 2;
					a[row][t * n + at * 4 * n + e] = matrix_value(ta,
						packed_get(&in[l].a[r], bits, e));
				}
			for (unsigned r = 0; r < regs_b(i); r++)
				for (unsigned e = 0; e < n; e++)
					b[g][t * n + r * 4 * n + e] = matrix_value(tb,
						packed_get(&in[l].b[r], bits, e));
			for (unsigned e = 0; e < i->nout; e++)
				c[g + e / 2 * 8][2 * t + e % 2] = matrix_value(dot.d, in[l].c[e]);
		}
		for (unsigned l = 0; l < 32; l++)
			for (unsigned e = 0; e < i->nout; e++) {
				unsigned row = l / 4 + e / 2 * 8, col = l % 4 * 2 + e % 2;
				matrix_dot(&dot, a[row], b[col], k, c[row][col],
					&to[l * i->nout + e]);
			}
	}
}

static void fill_mma(const struct item *i, struct rng *r, void *inputs, void *out)
{
	struct in *in = inputs;
	const enum type ta = (enum type)i->p[P_A], tb = (enum type)i->p[P_B];
	const enum values v = (enum values)i->p[P_VALUES];

	(void)out;
	memset(in, 0, CTA_THREADS * sizeof *in);
	for (unsigned t = 0; t < CTA_THREADS; t++) {
		for (unsigned k = 0; k < regs_a(i); k++)
			for (unsigned e = 0; e < per(ta); e++)
				packed_set(&in[t].a[k], type_bits(ta), e, matrix_pick(r, ta, v));
		for (unsigned k = 0; k < regs_b(i); k++)
			for (unsigned e = 0; e < per(tb); e++)
				packed_set(&in[t].b[k], type_bits(tb), e, matrix_pick(r, tb, v));
		for (unsigned e = 0; e < elements_d(i); e++)
			in[t].c[e] = matrix_pick_acc(r, (enum type)i->p[P_D], v);
	}
}

static void list(struct text *p, const char *name, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "%s%s%u", k ? ", " : "{", name, k);
	text_printf(p, "}");
}

static void print(struct item *i)
{
	struct text *p = &i->ptx;
	const enum type ta = (enum type)i->p[P_A], d = (enum type)i->p[P_D];
	const unsigned na = regs_a(i), nb = regs_b(i), nd = elements_d(i);
	const unsigned nreg = d == T_f16 ? nd / 2 : nd;
	const char *ab = ta == T_f64 ? "b64" : "b32", *cd = d == T_f64 ? "b64" : "b32";

	text_printf(p, "\t.reg .%s a<%u>, b<%u>;\n\t.reg .%s c<%u>, d<%u>;\n\t.reg .b16 h, g;\n",
		ab, na, nb, cd, nreg, nreg);
	for (unsigned k = 0; k < na; k++)
		text_printf(p, "\tld.global.%s a%u, [%%src+%u];\n", ab, k, 8 * k);
	for (unsigned k = 0; k < nb; k++)
		text_printf(p, "\tld.global.%s b%u, [%%src+%zu];\n", ab, k, offsetof(struct in,
			b) + 8 * k);
	for (unsigned k = 0; k < nreg; k++) {
		size_t at = offsetof(struct in, c);
		if (d == T_f16)
			text_printf(p, "\tld.global.b16 h, [%%src+%zu];\n\tld.global.b16 g, "
				"[%%src+%zu];\n"
				"\tmov.b32 c%u, {h, g};\n", at + 16 * k, at + 16 * k + 8, k);
		else
			text_printf(p, "\tld.global.%s c%u, [%%src+%zu];\n", cd, k, at + 8 * k);
	}
	text_printf(p, "/**/\tmma.sync.aligned.m%dn8k%d.row.col%s.%s.%s.%s.%s%s ", i->p[P_M],
		i->p[P_K],
		i->p[P_SAT] ? ".satfinite" : "", type_name(d), type_name(ta),
		type_name((enum type)i->p[P_B]), type_name(d),
		i->p[P_B1] == '&' ? ".and.popc" : i->p[P_B1] ? ".xor.popc" : "");
	list(p, "d", nreg);
	text_printf(p, ", ");
	list(p, "a", na);
	text_printf(p, ", ");
	list(p, "b", nb);
	text_printf(p, ", ");
	list(p, "c", nreg);
	text_printf(p, ";\n");
	for (unsigned k = 0; k < nreg; k++)
		text_printf(p, "\tst.global.%s [%%dst+%u], d%u;\n", cd, k * (d == T_f64 ? 8 : 4),
			k);
}

static void describe(struct item *i, unsigned m, unsigned k, enum type a, enum type b, enum type d)
{
	i->p[P_M] = (int)m;
	i->p[P_K] = (int)k;
	i->p[P_A] = (int)a;
	i->p[P_B] = (int)b;
	i->p[P_D] = (int)d;
	item_block(i, sizeof(struct in), 32, m * N / 32, type_bits(d), expect_mma);
	i->fill = fill_mma;
	i->approximate = i->p[P_VALUES] != VALUES_EXACT;
	print(i);
}

void class_mma_float(struct item *i, struct rng *r)
{
	const struct mma *x = &RNG_OF(r, float_kinds);

	i->p[P_VALUES] = (int)rng_below(r, 3);
	describe(i, x->m, x->k, x->a, x->b, x->d);
}

void class_mma_int(struct item *i, struct rng *r)
{
	static const enum type bytes[] = { T_s8, T_u8 }, nibbles[] = { T_s4, T_u4 };
	unsigned k = rng_below(r, ARRAY_SIZE(int_shapes));
	char width = int_shapes[k].width;
	enum type a = width == 8 ? RNG_OF(r, bytes) : width == 4 ? RNG_OF(r, nibbles) : T_b1;
	enum type b = width == 8 ? RNG_OF(r, bytes) : width == 4 ? RNG_OF(r, nibbles) : T_b1;

	i->p[P_SAT] = width > 1 && rng_once_in(r, 2);
	i->p[P_B1] = width > 1 ? 0 : rng_once_in(r, 2) ? '&' : '^';
	describe(i, int_shapes[k].m, int_shapes[k].k, a, b, T_s32);
}
