/* ldmatrix, stmatrix and movmatrix: 8x8 matrices of 16-bit elements; lane 4g + t of a register
 * holds elements 2t and 2t + 1 of row g. References: ISA 9.7.14.5.15 to 9.7.14.5.17. */
#include "conform.h"

#include <string.h>

enum { P_OP, P_N, P_TRANS };
enum { LDMATRIX, STMATRIX, MOVMATRIX };
enum { ROWS = 32 };
/* The warp's matrices are 32 rows of 16 bytes. A lane provides one row of them, or registers, and
 * the number of the row that it addresses. */
struct in { uint32_t data[4], row, pad[3]; };

/* Two elements of register n of a lane: of the matrix, or of its transpose */
static uint32_t pair(uint16_t m[8][8], unsigned lane, bool trans)
{
	unsigned g = lane / 4, t = lane % 4 * 2;

	return trans ? m[t][g] | (uint32_t)m[t + 1][g] << 16
		: m[g][t] | (uint32_t)m[g][t + 1] << 16;
}

static void unpack(uint16_t m[8][8], const struct in *warp, unsigned n, bool trans)
{
	for (unsigned l = 0; l < 32; l++)
		for (unsigned h = 0; h < 2; h++) {
			unsigned g = l / 4, t = l % 4 * 2 + h;
			uint16_t v = (uint16_t)(warp[l].data[n] >> 16 * h);
			*(trans ? &m[t][g] : &m[g][t]) = v;
		}
}

static void expect_fragment(const struct item *i, const void *inputs, const void *before,
	struct want *w)
{
	const unsigned n = (unsigned)i->p[P_N];
	const bool trans = i->p[P_TRANS];

	for (unsigned x = 0; x < CTA_THREADS; x += 32) {
		const struct in *warp = (const struct in *)inputs + x;
		struct want *to = w + x * 4;
		uint16_t m[8][8];

		for (unsigned k = 0; k < 128; k++)
			to[k].v = ((const uint32_t *)before)[x * 4 + k];
		if (i->p[P_OP] == STMATRIX) /* memory was the rows of data */
			for (unsigned k = 0; k < 128; k++)
				to[k].v = warp[k / 4].data[k % 4];
		for (unsigned k = 0; k < n; k++) {
			if (i->p[P_OP] == LDMATRIX) {
				for (unsigned r = 0; r < 8; r++)
					memcpy(m[r], warp[warp[8 * k + r].row].data, 16);
				for (unsigned l = 0; l < 32; l++)
					to[l * 4 + k].v = pair(m, l, trans);
				continue;
			}
			unpack(m, warp, k, trans && i->p[P_OP] == STMATRIX);
			if (i->p[P_OP] == MOVMATRIX)
				for (unsigned l = 0; l < 32; l++)
					to[l * 4].v = pair(m, l, true);
			else
				for (unsigned r = 0; r < 8; r++)
					for (unsigned c = 0; c < 4; c++)
						to[warp[8 * k + r].row * 4 + c].v = m[r][2 * c]
							| (uint32_t)m[r][2 * c + 1] << 16;
		}
	}
}

static void fill_fragment(const struct item *i, struct rng *r, void *inputs, void *out)
{
	struct in *in = inputs;
	bool twice = i->p[P_OP] == LDMATRIX && rng_once_in(r, 2); /* rows may be read twice */

	(void)out;
	for (unsigned x = 0; x < CTA_THREADS; x += 32) {
		for (unsigned l = 0; l < 32; l++) {
			in[x + l].row = l;
			for (unsigned k = 0; k < 4; k++)
				in[x + l].data[k] = (uint32_t)rng_bits(r);
		}
		for (unsigned l = 31; l > 0; l--) {
			unsigned o = rng_below(r, l + 1), t = in[x + l].row;
			in[x + l].row = twice ? rng_below(r, ROWS) : in[x + o].row;
			if (!twice)
				in[x + o].row = t;
		}
	}
}

static void list(struct text *p, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "%sd%u", k ? ", " : "{", k);
	text_printf(p, "}");
}

void class_fragment(struct item *i, struct rng *r)
{
	struct text *p = &i->ptx;
	int op = (int)rng_below(r, 3);
	bool trans = op == MOVMATRIX || rng_once_in(r, 2);
	unsigned n = op == MOVMATRIX ? 1 : 1u << rng_below(r, 3);
	const char *t = trans ? ".trans" : "", *space = rng_once_in(r, 2) ? ".shared" : "";

	item_block(i, sizeof(struct in), 16, 4, 32, expect_fragment);
	i->fill = fill_fragment;
	i->p[P_OP] = op;
	i->p[P_N] = (int)n;
	i->p[P_TRANS] = trans;
	text_printf(p, "\t.reg .b32 d<4>, at, own, row;\n\t.reg .b64 wide;\n"
		"\tld.global.v4.b32 {d0, d1, d2, d3}, [%%src];\n\tld.global.b32 row, [%%src+16];\n"
		"\tmov.u32 at, smem;\n\tmad.lo.u32 own, %%thr, 16, at;\n\tbar.sync 0;\n"
		"\tst.shared.v4.b32 [own], {d0, d1, d2, d3};\n\tbar.sync 0;\n"
		"\tsub.u32 at, %%thr, %%lane;\n\tadd.u32 row, row, at;\n\tmov.u32 at, smem;\n"
		"\tmad.lo.u32 at, row, 16, at;\n\tcvt.u64.u32 wide, at;\n\tcvta.shared.u64 wide, "
			"wide;\n");
	if (op == MOVMATRIX) {
		text_printf(p, "/**/\tmovmatrix.sync.aligned.m8n8.trans.b16 d0, d0;\n"
			"\tst.global.b32 [%%dst], d0;\n");
		return;
	}
	text_printf(p, "/**/\t%smatrix.sync.aligned.m8n8.x%u%s%s.b16 ", op == LDMATRIX ? "ld"
		: "st",
		n, t, space);
	if (op == LDMATRIX) {
		list(p, n);
		text_printf(p, ", [%s];\n", *space ? "at" : "wide");
	} else {
		text_printf(p, "[%s], ", *space ? "at" : "wide");
		list(p, n);
		text_printf(p, ";\n\tbar.sync 0;\n\tld.shared.v4.b32 {d0, d1, d2, d3}, [own];\n");
		n = 4;
	}
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "\tst.global.b32 [%%dst+%u], d%u;\n", 4 * k, k);
}
