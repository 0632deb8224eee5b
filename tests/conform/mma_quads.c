/* mma.sync.m8n8k4 with f16, the form of sm_70: four products of 8 by 8 by 4. Reference: ISA, "Matrix
 * Fragments for mma.m8n8k4 with .f16 floating point type". */
#include "conform.h"
#include "matrix.h"

#include <string.h>

enum { P_A_COL, P_B_ROW, P_C, P_D, P_VALUES };
enum { M = 8, N = 8, K = 4 };
/* registers of a thread, each in 8 bytes */
struct in { uint64_t a[2], b[2], c[8]; };

static unsigned row_of(int type, unsigned lane, unsigned e)
{
	return (type == T_f16 ? lane % 4 : (lane & 1) + (e & 2)) + (lane < 16 ? 0 : 4);
}
static unsigned col_of(int type, unsigned lane, unsigned e)
{
	return type == T_f16 ? e : (e & 4) + (lane & 2) + (e & 1);
}

static void expect(const struct item *i, const void *inputs, const void *out, struct want *w)
{
	const struct dot dot = { T_f16, T_f16, (enum type)i->p[P_D], (enum values)i->p[P_VALUES],
		false, 0 };
	const enum type tc = (enum type)i->p[P_C];

	(void)out;
	for (unsigned group = 0; group < CTA_THREADS / 8; group++) { /* of eight threads */
		const unsigned warp = group / 4, quad = group % 4;
		const struct in *in = (const struct in *)inputs + warp * 32;
		long double a[M][K], b[N][K], c[M][N];

		for (unsigned lane = 0; lane < 32; lane++) {
			const unsigned t = lane % 4, high = lane < 16 ? 0 : 4;

			if (lane / 4 % 4 != quad)
				continue;
			for (unsigned e = 0; e < 4; e++) {
				const long double x = matrix_value(T_f16,
					packed_get(in[lane].a, 16, e / 2 * 4 + e % 2));
				const long double y = matrix_value(T_f16,
					packed_get(in[lane].b, 16, e / 2 * 4 + e % 2));

				if (i->p[P_A_COL])
					a[e + high][t] = x;
				else
					a[t + high][e] = x;
				if (i->p[P_B_ROW])
					b[e + high][t] = y;
				else
					b[t + high][e] = y;
			}
			for (unsigned e = 0; e < 8; e++)
				c[row_of(i->p[P_C], lane, e)][col_of(i->p[P_C], lane, e)]
					= matrix_value(tc, in[lane].c[e]);
		}
		for (unsigned lane = 0; lane < 32; lane++)
			for (unsigned e = 0; e < 8 && lane / 4 % 4 == quad; e++) {
				const unsigned row = row_of(i->p[P_D], lane, e);
				const unsigned col = col_of(i->p[P_D], lane, e);

				matrix_dot(&dot, a[row], b[col], K, c[row][col],
					&w[(warp * 32 + lane) * 8 + e]);
			}
	}
}

static void fill(const struct item *i, struct rng *r, void *inputs, void *out)
{
	const enum values v = (enum values)i->p[P_VALUES];
	struct in *in = inputs;

	(void)out;
	memset(in, 0, CTA_THREADS * sizeof *in);
	for (unsigned t = 0; t < CTA_THREADS; t++) {
		for (unsigned e = 0; e < 4; e++) {
			packed_set(in[t].a, 16, e / 2 * 4 + e % 2, matrix_pick(r, T_f16, v));
			packed_set(in[t].b, 16, e / 2 * 4 + e % 2, matrix_pick(r, T_f16, v));
		}
		for (unsigned e = 0; e < 8; e++)
			in[t].c[e] = matrix_pick_acc(r, (enum type)i->p[P_C], v);
	}
}

static void list(struct text *p, const char *name, unsigned n, const char *end)
{
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "%s%s%u", k ? ", " : "{", name, k);
	text_printf(p, "}%s", end);
}

static unsigned registers(int type)
{
	return type == T_f16 ? 4 : 8;
}

static void print(struct item *i)
{
	struct text *p = &i->ptx;
	const unsigned nc = registers(i->p[P_C]), nd = registers(i->p[P_D]);

	text_printf(p, "\t.reg .b32 a<2>, b<2>, c<%u>, d<%u>;\n\t.reg .b16 h, g;\n", nc, nd);
	for (unsigned k = 0; k < 2; k++)
		text_printf(p, "\tld.global.b32 a%u, [%%src+%zu];\n\tld.global.b32 b%u, [%%src+%zu];\n",
			k, offsetof(struct in, a) + 8 * k, k, offsetof(struct in, b) + 8 * k);
	for (unsigned k = 0; k < nc; k++) {
		const size_t at = offsetof(struct in, c);

		if (nc == 4)
			text_printf(p, "\tld.global.b16 h, [%%src+%zu];\n\tld.global.b16 g, [%%src+%zu];\n"
				"\tmov.b32 c%u, {h, g};\n", at + 16 * k, at + 16 * k + 8, k);
		else
			text_printf(p, "\tld.global.b32 c%u, [%%src+%zu];\n", k, at + 8 * k);
	}
	text_printf(p, "/**/\tmma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s ", i->p[P_A_COL] ? "col" : "row",
		i->p[P_B_ROW] ? "row" : "col", type_name((enum type)i->p[P_D]),
		type_name((enum type)i->p[P_C]));
	list(p, "d", nd, ", ");
	list(p, "a", 2, ", ");
	list(p, "b", 2, ", ");
	list(p, "c", nc, ";\n");
	for (unsigned k = 0; k < nd; k++)
		text_printf(p, "\tst.global.b32 [%%dst+%u], d%u;\n", 4 * k, k);
}

void class_mma_quads(struct item *i, struct rng *r)
{
	i->p[P_A_COL] = rng_once_in(r, 2);
	i->p[P_B_ROW] = rng_once_in(r, 2);
	i->p[P_D] = rng_once_in(r, 2) ? T_f16 : T_f32;
	i->p[P_C] = i->p[P_D] == T_f16 || rng_once_in(r, 2) ? T_f16 : T_f32;
	i->p[P_VALUES] = (int)rng_below(r, 3);
	item_block(i, sizeof(struct in), 32, 8, type_bits((enum type)i->p[P_D]), expect);
	i->fill = fill;
	i->approximate = i->p[P_VALUES] != VALUES_EXACT;
	print(i);
}
