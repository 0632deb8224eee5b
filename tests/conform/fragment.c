/* ldmatrix, stmatrix and movmatrix: 8x8 matrices of 16-bit elements; lane 4g + t of a register
 * holds elements 2t and 2t + 1 of row g. References: ISA 9.7.14.5.15 to 9.7.14.5.17. */
#include "conform.h"

#include <string.h>

enum { P_OP, P_N, P_TRANS, P_BITS };
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

/* The rows of the warp are in shared memory; `at`, and `wide` as a generic address, is that of the
 * row that the thread addresses. */
static void prepare(struct text *p)
{
	text_printf(p, "\t.reg .b32 d<4>, at, own, row;\n\t.reg .b64 wide;\n"
		"\tld.global.v4.b32 {d0, d1, d2, d3}, [%%src];\n\tld.global.b32 row, [%%src+16];\n"
		"\tmov.u32 at, smem;\n\tmad.lo.u32 own, %%thr, 16, at;\n\tbar.sync 0;\n"
		"\tst.shared.v4.b32 [own], {d0, d1, d2, d3};\n\tbar.sync 0;\n"
		"\tsub.u32 at, %%thr, %%lane;\n\tadd.u32 row, row, at;\n\tmov.u32 at, smem;\n"
		"\tmad.lo.u32 at, row, 16, at;\n\tcvt.u64.u32 wide, at;\n\tcvta.shared.u64 wide, "
			"wide;\n");
}

/* The operands of n registers, and the stores of the results. */
static void finish(struct text *p, bool store, unsigned n, const char *address)
{
	if (!store) {
		list(p, n);
		text_printf(p, ", [%s];\n", address);
	} else {
		text_printf(p, "[%s], ", address);
		list(p, n);
		text_printf(p, ";\n\tbar.sync 0;\n\tld.shared.v4.b32 {d0, d1, d2, d3}, [own];\n");
		n = 4;
	}
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "\tst.global.b32 [%%dst+%u], d%u;\n", 4 * k, k);
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
	prepare(p);
	if (op == MOVMATRIX) {
		text_printf(p, "/**/\tmovmatrix.sync.aligned.m8n8.trans.b16 d0, d0;\n"
			"\tst.global.b32 [%%dst], d0;\n");
		return;
	}
	text_printf(p, "/**/\t%smatrix.sync.aligned.m8n8.x%u%s%s.b16 ", op == LDMATRIX ? "ld"
		: "st", n, t, space);
	finish(p, op == STMATRIX, n, *space ? "at" : "wide");
}

/* ---- bytes: ldmatrix .m8n16 and .m16n16, stmatrix .m16n8, of sm_100 ---- */

enum { LD_M8N16, LD_M16N16, ST_M16N8 };

/* Element c of a row of 16 elements at its start */
static unsigned element(const struct in *row, unsigned bits, unsigned c)
{
	const unsigned char *b = (const unsigned char *)row->data;
	unsigned v = 0;

	for (unsigned k = 0; k < bits; k++)
		v |= (unsigned)(b[(c * bits + k) / 8] >> (c * bits + k) % 8 & 1) << k;
	return v;
}

/* Byte b of a lane's register k is element (row, column): the figures of ISA 9.7.14.5.15 and
 * 9.7.14.5.16. */
static void place(int op, unsigned lane, unsigned k, unsigned b, unsigned *row, unsigned *column)
{
	const unsigned g = lane / 4, t = lane % 4;

	*row = op == LD_M8N16 ? 8 * k + g : op == LD_M16N16 ? k / 2 * 16 + 4 * t + b
		: 8 * k + 2 * t + b % 2;
	*column = op == LD_M8N16 ? 4 * t + b : op == LD_M16N16 ? g + k % 2 * 8 : g + b / 2 * 8;
}

static void expect_bytes(const struct item *i, const void *inputs, const void *before,
	struct want *w)
{
	const int op = i->p[P_OP];
	const unsigned n = (unsigned)i->p[P_N];

	for (unsigned x = 0; x < CTA_THREADS; x += 32) {
		const struct in *warp = (const struct in *)inputs + x;
		struct want *to = w + x * 4;

		for (unsigned k = 0; k < 128; k++)
			to[k].v = op == ST_M16N8 ? warp[k / 4].data[k % 4]
				: ((const uint32_t *)before)[x * 4 + k];
		for (unsigned l = 0; l < 32; l++)
			for (unsigned k = 0; k < n; k++) {
				uint32_t v = 0;

				for (unsigned b = 0; b < 4; b++) {
					unsigned row, column;
					uint64_t *word;

					place(op, l, k, b, &row, &column);
					row = warp[row].row;
					v |= element(&warp[row], (unsigned)i->p[P_BITS], column) << 8 * b;
					if (op != ST_M16N8)
						continue;
					word = &to[row * 4 + column / 4].v;
					*word &= ~(0xffull << column % 4 * 8);
					*word |= (uint64_t)(warp[l].data[k] >> 8 * b & 0xff) << column % 4 * 8;
				}
				if (op != ST_M16N8)
					to[l * 4 + k].v = v;
			}
	}
}

void class_fragment_bytes(struct item *i, struct rng *r)
{
	static const char *const shapes[] = { "m8n16", "m16n16", "m16n8" };
	struct text *p = &i->ptx;
	const int op = (int)rng_below(r, 3);
	const unsigned matrices = 1u << rng_below(r, op == LD_M16N16 ? 2 : 3);
	const unsigned bits = op == ST_M16N8 ? 8 : op == LD_M8N16 ? 4 + 2 * rng_below(r, 2)
		: 4 + 2 * rng_below(r, 3);

	item_block(i, sizeof(struct in), 16, 4, 32, expect_bytes);
	i->fill = fill_fragment;
	i->p[P_OP] = op;
	i->p[P_N] = (int)(matrices * (op == LD_M16N16 ? 2 : 1));
	i->p[P_BITS] = (int)bits;
	prepare(p);
	text_printf(p, "/**/\t%smatrix.sync.aligned.%s.x%u%s.shared%s ", op == ST_M16N8 ? "st" : "ld",
		shapes[op], matrices, op == LD_M8N16 ? "" : ".trans", bits == 8 ? ".b8"
		: bits == 6 ? ".b8x16.b6x16_p32" : ".b8x16.b4x16_p64");
	finish(p, op == ST_M16N8, (unsigned)i->p[P_N], "at");
}
