/* matrix: ldmatrix and stmatrix: rows of 16 bytes of shared memory to and from the registers of a
 * warp. Lane 4g + t of a register of
 *   .m8n8             holds 16-bit elements 2t and 2t + 1 of row g, so a register is a dense matrix;
 *   .m8n16            bytes 4t to 4t + 3 of row g, which is the same;
 *   .m16n16.trans     column g (the first of two registers) or g + 8 of rows 4t to 4t + 3;
 *   stmatrix .m16n8.trans   columns g and g + 8 of rows 2t and 2t + 1: bytes (2t, g), (2t + 1, g),
 *                     (2t, g + 8), (2t + 1, g + 8).
 * .m8n16 and .m16n16 may unpack 16 elements of 4 or 6 bits at the start of each row to bytes. */
#include "async.h"

enum shape { M8N8, M8N16, M16N16, M16N8 };

struct args {
	struct xaddr addr;
	uint8_t shape;             /* enum shape */
	uint8_t rows;              /* of all matrices */
	uint8_t nregs;
	uint8_t packed;            /* bits of an element in memory, 4 or 6; 0: not packed */
	bool trans, store;
	uint8_t space;
	uint32_t reg[4];
};

static void transpose(uint16_t out[8][8], const uint16_t in[8][8])
{
	for (unsigned i = 0; i < 8; i++)
		for (unsigned j = 0; j < 8; j++)
			out[j][i] = in[i][j];
}

/* Bytes of a row that are accessed: padding is not. */
static unsigned row_bytes(const struct args *a)
{
	return a->packed ? 2u * a->packed : 16;
}

/* Lane l holds the address of row l of all matrices. */
static bool find_rows(struct warp *w, const struct xop *x, const struct args *a,
	unsigned char *row[LANES], uint64_t at[LANES], uint16_t *peer)
{
	uint64_t base = (uint64_t)w->cta->rank << 24, addr[LANES], odd = 0, top = 0;
	const unsigned n = a->rows;

	lane_addrs(w, a->addr, addr);
	for (unsigned l = 0; l < n; l++) {
		uint64_t off = addr[l] - base;

		at[l] = off;
		odd |= off;
		top = off > top ? off : top;
	}
	*peer = (uint16_t)w->cta->rank;
	if (a->space == PS_shared && !(odd & 15) && top < w->cta->shared_bytes &&
			top + 16 <= w->cta->shared_bytes) {
		for (unsigned l = 0; l < n; l++)
			row[l] = w->cta->shared + at[l];
		return true;
	}
	for (unsigned l = 0; l < n; l++) {
		const struct shared_view v = ex_view(w);
		struct refusal why;
		struct xplace p;

		if (!ex_resolve(w, x, 1u << l, (enum ptx_space)a->space, addr[l], 16, 16,
				a->store, &p))
			return false;
		if (refuse_matrix(&why, &v, p.space, p.cta ? p.cta->rank : 0, addr[l])) {
			ex_refuse(w, x, 1u << l, &why);
			return false;
		}
		at[l] = p.addr;
		row[l] = p.host;
	}
	return true;
}

static void emit_access(struct warp *w, const struct xop *x, const struct args *a,
	const uint64_t at[LANES],
	uint16_t peer)
{
	struct event e = ex_event(w, x, EV_ACCESS, a->rows == 32 ? FULL : (1u << a->rows) - 1);

	e.access.space = SP_SHARED;
	e.access.mode = a->store ? MODE_WRITE : MODE_READ;
	e.access.flags = ACCESS_MATRIX;
	e.access.owner = peer;
	e.access.bytes = row_bytes(a);
	ex_lanes(&e.access.at, e.lanes, at);
	ex_emit(w->cluster, &e);
}

/* Element e of a packed row */
static unsigned char packed(const unsigned char *row, unsigned bits, unsigned e)
{
	const unsigned at = e * bits;

	return (unsigned char)((row[at / 8] | row[(at + bits - 1) / 8] << 8) >> at % 8
		& ((1u << bits) - 1));
}

static void read_row(const struct args *a, unsigned char to[16], const unsigned char *row)
{
	if (!a->packed) {
		memcpy(to, row, 16);
		return;
	}
	for (unsigned e = 0; e < 16; e++)
		to[e] = packed(row, a->packed, e);
}

/* Columns of bytes: register k of two for each matrix of 16 rows. */
static void load_columns(struct warp *w, const struct args *a, unsigned char (*m)[16])
{
	for (unsigned k = 0; k < a->nregs; k++) {
		l8 *to = (l8 *)r32(w, a->reg[k]);

		for (unsigned l = 0; l < LANES; l++)
			for (unsigned b = 0; b < 4; b++)
				to[4 * l + b] = m[k / 2 * 16 + l % 4 * 4 + b][l / 4 + k % 2 * 8];
	}
}

static void store_columns(struct warp *w, const struct args *a, unsigned char *row[LANES])
{
	for (unsigned k = 0; k < a->nregs; k++) {
		const l8 *from = (const l8 *)r32(w, a->reg[k]);

		for (unsigned l = 0; l < LANES; l++)
			for (unsigned b = 0; b < 4; b++)
				row[8 * k + l % 4 * 2 + b % 2][l / 4 + b / 2 * 8] = from[4 * l + b];
	}
}

static void load(struct warp *w, const struct args *a, unsigned char *row[LANES])
{
	unsigned char m[LANES][16];

	if (!a->trans && !a->packed) {
		for (unsigned r = 0; r < a->rows; r++)
			memcpy(w->r + a->reg[r / 8] + 16 * (r % 8), row[r], 16);
		return;
	}
	for (unsigned r = 0; r < a->rows; r++)
		read_row(a, m[r], row[r]);
	if (a->shape == M16N16) {
		load_columns(w, a, m);
		return;
	}
	for (unsigned k = 0; k < a->nregs; k++) {
		uint16_t plain[8][8], turned[8][8];

		memcpy(plain, m[8 * k], sizeof plain);
		if (a->trans)
			transpose(turned, plain);
		memcpy(w->r + a->reg[k], a->trans ? turned : plain, sizeof plain);
	}
}

static void store(struct warp *w, const struct args *a, unsigned char *row[LANES])
{
	if (a->shape == M16N8) {
		store_columns(w, a, row);
		return;
	}
	for (unsigned k = 0; k < a->nregs; k++) {
		uint16_t plain[8][8], turned[8][8];

		memcpy(plain, w->r + a->reg[k], sizeof plain);
		if (a->trans)
			transpose(turned, plain);
		for (unsigned r = 0; r < 8; r++)
			memcpy(row[8 * k + r], a->trans ? turned[r] : plain[r], 16);
	}
}

static enum step op_matrix(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct args *a = x->i.p;
	unsigned char *row[LANES];
	uint64_t at[LANES];
	uint16_t peer;
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (!find_rows(w, x, a, row, at, &peer))
		return STEP_FAULT;
	if (w->sink)
		emit_access(w, x, a, at, peer);
	if (!a->store) {
		load(w, a, row);
		return STEP_NEXT;
	}
	store(w, a, row);
	ex_work(w);
	return STEP_NEXT;
}

static bool shape_of(const struct ptx_insn *i, bool store, struct args *a)
{
	const enum ptx_type t = ptx_type_of(i, ptx_type_of(i, 1) == TY_none ? 0 : 1);

	a->packed = t == TY_b6x16_p32 ? 6 : t == TY_b4x16_p64 ? 4 : 0;
	switch (ptx_pick(i, MG_shape)) {
	case MOD_m8n8: a->shape = M8N8; return t == TY_b16;
	case MOD_m8n16: a->shape = M8N16; return !store && !a->trans && a->packed;
	case MOD_m16n16: a->shape = M16N16; return !store && a->trans && (a->packed || t == TY_b8);
	case MOD_m16n8: a->shape = M16N8; return store && a->trans && t == TY_b8;
	default: return false;
	}
}

static bool decode(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool store)
{
	const struct ptx_operand *o = &i->operand[store ? 1 : 0];
	const unsigned n = o->kind == PO_VEC ? o->n : 1;
	const unsigned matrices = ptx_has(i, MOD_x4) ? 4 : ptx_has(i, MOD_x2) ? 2 : 1;
	struct args *a = dec_alloc(d, sizeof *a);

	a->trans = ptx_has(i, MOD_trans);
	a->store = store;
	if (!shape_of(i, store, a))
		return dec_unsupported(d, "this shape of %s", store ? "stmatrix" : "ldmatrix");
	if (n > 4 || n != (a->shape == M16N16 ? 2 : 1) * matrices)
		return dec_unsupported(d, "number of registers and matrices differ");
	a->addr = dec_addr(d, &i->operand[store ? 0 : 1]);
	a->nregs = (uint8_t)n;
	a->rows = (uint8_t)(8 * n);
	a->space = (uint8_t)ptx_space_of(i, 0);
	for (unsigned k = 0; k < n; k++) {
		const struct ptx_operand *r = o->kind == PO_VEC ? &o->list[k] : o;

		a->reg[k] = store ? dec_src(d, r, TY_b32) : dec_dst(d, r, TY_b32);
	}
	x->i.p = a;
	x->fn = op_matrix;
	return true;
}

DECODER(ldmatrix)
{
	return decode(d, i, x, false);
}

DECODER(stmatrix)
{
	return decode(d, i, x, true);
}
