/* mma_quads: mma.sync.m8n8k4 with f16, the form of sm_70. A warp computes four products of 8 by 8 by
 * 4; the one of quad q has threads 4q to 4q + 3 and, for the other half of the rows or columns, 16
 * threads further (ISA, "Matrix Fragments for mma.m8n8k4 with .f16"). */
#include "internal.h"
#include "mma_types.h"
#include "num.h"

#include <math.h>

enum { M = 8, N = 8, K = 4, QUADS = 4 };

struct args {
	bool a_col, b_row;
	uint8_t c, d;              /* enum tile_acc: f32 or f16 */
	uint32_t a_at[2], b_at[2], c_at[8], d_at[8]; /* slots */
};

/* Thread t of a quad's eight: 4 to 7 are the upper ones. */
static unsigned lane_of(unsigned quad, unsigned t)
{
	return 4 * quad + t % 4 + (t & 4 ? 16 : 0);
}

/* Element e, of four, of thread t: along K in rows of A (columns of B), or across it. */
static void get_factor(const struct warp *w, const uint32_t *at, unsigned quad, bool across,
	float out[8][K])
{
	for (unsigned t = 0; t < 8; t++)
		for (unsigned e = 0; e < 4; e++) {
			const uint32_t two = r32(w, at[e / 2])[lane_of(quad, t)];
			const float v = num_from_f16((uint16_t)(two >> e % 2 * 16));

			if (across)
				out[e + (t & 4)][t % 4] = v;
			else
				out[t][e] = v;
		}
}

/* Element e, of eight, of thread t of C and D */
static void place(enum tile_acc acc, unsigned t, unsigned e, unsigned *row, unsigned *col)
{
	*row = acc == ACC_f16 ? t : (t & 1) + (e & 2) + (t & 4);
	*col = acc == ACC_f16 ? e : (e & 4) + (t & 2) + (e & 1);
}

static void get_c(const struct warp *w, const struct args *a, unsigned quad, float c[M][N])
{
	for (unsigned t = 0; t < 8; t++)
		for (unsigned e = 0; e < 8; e++) {
			const unsigned l = lane_of(quad, t);
			unsigned row, col;

			place(a->c, t, e, &row, &col);
			c[row][col] = a->c == ACC_f32 ? num_f32(r32(w, a->c_at[e])[l])
				: num_from_f16((uint16_t)(r32(w, a->c_at[e / 2])[l] >> e % 2 * 16));
		}
}

static void put_d(struct warp *w, const struct args *a, unsigned quad, float d[M][N])
{
	for (unsigned t = 0; t < 8; t++)
		for (unsigned e = 0; e < 8; e++) {
			l32 *to = r32(w, a->d_at[a->d == ACC_f32 ? e : e / 2]) + lane_of(quad, t);
			unsigned row, col;

			place(a->d, t, e, &row, &col);
			if (a->d == ACC_f32)
				*to = num_bits32(d[row][col]);
			else
				*to = (*to & 0xffffu << (e % 2 ? 0 : 16))
					| (uint32_t)num_to_f16(d[row][col]) << e % 2 * 16;
		}
}

static enum step op_mma(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct args *a = x->i.p;
	float f[QUADS][M][K], g[QUADS][N][K], d[QUADS][M][N];
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (w->sink)
		warp_emit_together(w, x);
	for (unsigned q = 0; q < QUADS; q++) {
		get_factor(w, a->a_at, q, a->a_col, f[q]);
		get_factor(w, a->b_at, q, a->b_row, g[q]);
		get_c(w, a, q, d[q]);
		for (unsigned i = 0; i < M * N; i++)
			for (unsigned k = 0; k < K; k++)
				d[q][i / N][i % N] = fmaf(f[q][i / N][k], g[q][i % N][k],
					d[q][i / N][i % N]);
	}
	for (unsigned q = 0; q < QUADS; q++)
		put_d(w, a, q, d[q]);
	return STEP_NEXT;
}

static bool take(struct decoder *d, const struct ptx_operand *o, unsigned n, bool dst, uint32_t *slot)
{
	if (o->kind != PO_VEC || o->n != n)
		return dec_unsupported(d, "mma.m8n8k4 whose number of registers does not match its types");
	for (unsigned k = 0; k < n; k++)
		slot[k] = dst ? dec_dst(d, &o->list[k], TY_b32) : dec_src(d, &o->list[k], TY_b32);
	return true;
}

bool dec_mma_quads(struct decoder *d, const struct ptx_insn *i, struct xop *x)
{
	struct args *a = dec_alloc(d, sizeof *a);

	*a = (struct args){ .a_col = ptx_nth(i, MG_layout, 0) == MOD_col,
		.b_row = ptx_nth(i, MG_layout, 1) == MOD_row,
		.d = (uint8_t)tile_acc_of(ptx_type_of(i, 0)),
		.c = (uint8_t)tile_acc_of(ptx_type_of(i, 3)) };
	x->i.p = a;
	x->fn = op_mma;
	return take(d, &i->operand[0], a->d == ACC_f32 ? 8 : 4, true, a->d_at)
		&& take(d, &i->operand[1], 2, false, a->a_at)
		&& take(d, &i->operand[2], 2, false, a->b_at)
		&& take(d, &i->operand[3], a->c == ACC_f32 ? 8 : 4, false, a->c_at);
}
