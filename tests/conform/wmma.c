/* wmma: matrices of a warp in global memory, row or column major, with a stride; the fragments are
 * opaque. References: ISA 9.7.14.4. */
#include "conform.h"
#include "matrix.h"

#include <stdio.h>
#include <string.h>

struct wmma {
	unsigned m, n, k;
	enum type a, b, c, d;
	unsigned na, nb, nc, nd; /* registers */
};
#define HALF(m, n) { m, n, 16, T_f16, T_f16, T_f16, T_f16, 8, 8, 4, 4 }, \
	{ m, n, 16, T_f16, T_f16, T_f32, T_f16, 8, 8, 8, 4 }, \
	{ m, n, 16, T_f16, T_f16, T_f16, T_f32, 8, 8, 4, 8 }, \
	{ m, n, 16, T_f16, T_f16, T_f32, T_f32, 8, 8, 8, 8 }
#define BYTE(t, m, n, na, nb) { m, n, 16, t, t, T_s32, T_s32, na, nb, 8, 8 }
static const struct wmma kinds[] = {
	HALF(16, 16), HALF(8, 32), HALF(32, 8),
	{ 16, 16, 16, T_bf16, T_bf16, T_f32, T_f32, 4, 4, 8, 8 },
	{ 8, 32, 16, T_bf16, T_bf16, T_f32, T_f32, 2, 8, 8, 8 },
	{ 32, 8, 16, T_bf16, T_bf16, T_f32, T_f32, 8, 2, 8, 8 },
	{ 16, 16, 8, T_tf32, T_tf32, T_f32, T_f32, 4, 4, 8, 8 },
	BYTE(T_s8, 16, 16, 2, 2), BYTE(T_s8, 8, 32, 1, 4), BYTE(T_s8, 32, 8, 4, 1),
	BYTE(T_u8, 16, 16, 2, 2), BYTE(T_u8, 8, 32, 1, 4), BYTE(T_u8, 32, 8, 4, 1),
	{ 8, 8, 4, T_f64, T_f64, T_f64, T_f64, 1, 1, 2, 2 },
	{ 8, 8, 32, T_s4, T_s4, T_s32, T_s32, 1, 1, 2, 2 },
	{ 8, 8, 32, T_u4, T_u4, T_s32, T_s32, 1, 1, 2, 2 },
	{ 8, 8, 128, T_b1, T_b1, T_s32, T_s32, 1, 1, 2, 2 },
};

/* p: kind; is A, B, C, D column major; extra elements of a row; values */
enum { P_KIND, P_COLS, P_PAD, P_VALUES, P_SAT, P_B1 };
enum { COL_A = 1, COL_B = 2, COL_C = 4, COL_D = 8 };
/* Each warp's part of the input and output, by its first thread */
enum { WARP_IN = 32 * 256, AT_A = 0, AT_B = 2048, AT_C = 4096, WARP_OUT = 32 * 128 };

/* Elements from a row (column) to the next */
static unsigned stride(const struct item *i, unsigned width)
{
	return width + (unsigned)i->p[P_PAD] * 16;
}
static unsigned offset(const struct item *i, unsigned rows, unsigned cols, int col_bit,
	unsigned row, unsigned col)
{
	return i->p[P_COLS] & col_bit ? col * stride(i, rows) + row : row * stride(i, cols) + col;
}

static void expect_wmma(const struct item *i, const void *inputs, const void *before,
	struct want *w)
{
	const struct wmma *x = &kinds[i->p[P_KIND]];
	const struct dot dot = { x->a, x->b, x->d, (enum values)i->p[P_VALUES], i->p[P_SAT],
		(char)i->p[P_B1] };
	const unsigned bits = type_bits(x->d), per_warp = WARP_OUT * 8 / bits;

	for (unsigned warp = 0; warp < CTA_THREADS / 32; warp++) {
		const char *in = (const char *)inputs + warp * WARP_IN;
		const char *out = (const char *)before + warp * WARP_OUT;
		struct want *to = w + warp * per_warp;
		for (unsigned k = 0; k < per_warp; k++)
			to[k].v = packed_get(out, bits, k);
		for (unsigned m = 0; m < x->m; m++)
			for (unsigned n = 0; n < x->n; n++) {
				long double a[128], b[128];
				for (unsigned k = 0; k < x->k; k++) {
					a[k] = matrix_value(x->a, packed_get(in + AT_A,
						type_bits(x->a),
						offset(i, x->m, x->k, COL_A, m, k)));
					b[k] = matrix_value(x->b, packed_get(in + AT_B,
						type_bits(x->b),
						offset(i, x->k, x->n, COL_B, k, n)));
				}
				matrix_dot(&dot, a, b, x->k, matrix_value(x->c,
					packed_get(in + AT_C,
					type_bits(x->c), offset(i, x->m, x->n, COL_C, m, n))),
					&to[offset(i, x->m, x->n, COL_D, m, n)]);
			}
	}
}

static void fill_wmma(const struct item *i, struct rng *r, void *inputs, void *out)
{
	const struct wmma *x = &kinds[i->p[P_KIND]];
	const enum values v = (enum values)i->p[P_VALUES];

	(void)out;
	for (unsigned warp = 0; warp < CTA_THREADS / 32; warp++) {
		char *in = (char *)inputs + warp * WARP_IN;
		for (unsigned k = 0; k < 2048 * 8 / type_bits(x->a); k++)
			packed_set(in + AT_A, type_bits(x->a), k, matrix_pick(r, x->a, v));
		for (unsigned k = 0; k < 2048 * 8 / type_bits(x->b); k++)
			packed_set(in + AT_B, type_bits(x->b), k, matrix_pick(r, x->b, v));
		for (unsigned k = 0; k < 4096 * 8 / type_bits(x->c); k++)
			packed_set(in + AT_C, type_bits(x->c), k, matrix_pick_acc(r, x->c, v));
	}
}

static void list(struct text *p, const char *name, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "%s%s%u", k ? ", " : "{", name, k);
	text_printf(p, "}");
}

static void load(struct item *i, const char *name, const char *shape, enum type t, unsigned n,
	bool col, unsigned at, unsigned width)
{
	text_printf(&i->ptx, "\twmma.load.%s.sync.aligned.%s.%s.global.%s ", name,
		col ? "col" : "row", shape, type_name(t));
	list(&i->ptx, name, n);
	text_printf(&i->ptx, ", [in+%u], %u;\n", at, stride(i, width));
}

static void print(struct item *i, const struct wmma *x)
{
	struct text *p = &i->ptx;
	const int c = i->p[P_COLS];
	const char *reg = x->a == T_f64 ? "b64" : "b32";
	char shape[32];

	snprintf(shape, sizeof shape, "m%un%uk%u", x->m, x->n, x->k);
	text_printf(p, "\t.reg .b64 in, out, x;\n\t.reg .b32 y;\n\t.reg .%s a<%u>, b<%u>, c<%u>, "
		"d<%u>;\n"
		"\tmul.wide.u32 x, %%lane, %u;\n\tsub.u64 in, %%src, x;\n"
		"\tmul.wide.u32 x, %%lane, %u;\n\tsub.u64 out, %%dst, x;\n",
		reg, x->na, x->nb, x->nc, x->nd, i->in_bytes, i->out_bytes);
	load(i, "a", shape, x->a, x->na, c & COL_A, AT_A, c & COL_A ? x->m : x->k);
	load(i, "b", shape, x->b, x->nb, c & COL_B, AT_B, c & COL_B ? x->k : x->n);
	load(i, "c", shape, x->c, x->nc, c & COL_C, AT_C, c & COL_C ? x->m : x->n);
	text_printf(p, "/**/\twmma.mma%s.sync.aligned.%s.%s.%s.%s", i->p[P_B1] == '&' ? ".and.popc"
		: i->p[P_B1] ? ".xor.popc" : "", c & COL_A ? "col" : "row", c & COL_B ? "col"
			: "row",
		shape, type_name(x->d));
	if (x->a != T_f16)
		text_printf(p, ".%s.%s", type_name(x->a), type_name(x->b));
	text_printf(p, ".%s%s ", type_name(x->c), i->p[P_SAT] ? ".satfinite" : "");
	list(p, "d", x->nd);
	text_printf(p, ", ");
	list(p, "a", x->na);
	text_printf(p, ", ");
	list(p, "b", x->nb);
	text_printf(p, ", ");
	list(p, "c", x->nc);
	text_printf(p, ";\n\twmma.store.d.sync.aligned.%s.%s.global.%s [out], ",
		c & COL_D ? "col" : "row", shape, type_name(x->d));
	list(p, "d", x->nd);
	text_printf(p, ", %u;\n", stride(i, c & COL_D ? x->m : x->n));
}

void class_wmma(struct item *i, struct rng *r)
{
	const struct wmma *x;

	i->p[P_KIND] = (int)rng_below(r, ARRAY_SIZE(kinds));
	x = &kinds[i->p[P_KIND]];
	i->p[P_COLS] = (int)rng_below(r, 16);
	if (type_bits(x->a) < 8) /* A row, B column major */
		i->p[P_COLS] = (i->p[P_COLS] & ~COL_A) | COL_B;
	/* a padded row of 16 elements keeps the alignment of 16 bytes; strides of sub-byte types
	 * are multiples of 32 and 128 elements */
	i->p[P_PAD] = type_bits(x->a) >= 8 && rng_once_in(r, 2);
	i->p[P_VALUES] = (int)rng_below(r, 3);
	i->p[P_SAT] = type_kind(x->d) != KIND_FLOAT && x->a != T_b1 && rng_once_in(r, 2);
	i->p[P_B1] = x->a != T_b1 ? 0 : rng_once_in(r, 2) ? '&' : '^';
	item_block(i, 256, 128, 128 * 8 / type_bits(x->d), type_bits(x->d), expect_wmma);
	i->fill = fill_wmma;
	i->approximate = i->p[P_VALUES] != VALUES_EXACT;
	print(i, x);
}
