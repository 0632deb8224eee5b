/* matrix: ldmatrix and stmatrix: 8x8 matrices of 16-bit elements between shared memory and the
 * registers of a warp. Lane 4g + t of a register holds elements 2t and 2t + 1 of row g, so a
 * register is a dense matrix. */
#include "async.h"

struct args {
	struct xaddr addr;
	uint8_t n;                 /* number of matrices: 1, 2, 4 */
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

/* Lane 8i + r holds the address of row r of matrix i. */
static bool find_rows(struct warp *w, const struct xop *x, const struct args *a,
	unsigned char *row[LANES], uint64_t at[LANES], uint16_t *peer)
{
	uint64_t base = (uint64_t)w->cta->rank << 24, addr[LANES], odd = 0, top = 0;
	unsigned n = 8u * a->n;

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
	struct event e = ex_event(w, x, EV_ACCESS, a->n == 4 ? FULL : (1u << 8 * a->n) - 1);

	e.access.space = SP_SHARED;
	e.access.mode = a->store ? MODE_WRITE : MODE_READ;
	e.access.flags = ACCESS_MATRIX;
	e.access.owner = peer;
	e.access.bytes = 16;
	ex_lanes(&e.access.at, e.lanes, at);
	ex_emit(w->cluster, &e);
}

static enum step op_matrix(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct args *a = x->i.p;
	unsigned char *row[LANES];
	uint64_t at[LANES];
	uint16_t m[4][8][8], t[8][8], peer;
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (!find_rows(w, x, a, row, at, &peer))
		return STEP_FAULT;
	if (w->sink)
		emit_access(w, x, a, at, peer);
	for (unsigned i = 0; i < a->n; i++) {
		if (a->store) {
			memcpy(m[i], w->r + a->reg[i], 128);
			if (a->trans)
				transpose(t, m[i]);
			for (unsigned r = 0; r < 8; r++)
				memcpy(row[8 * i + r], a->trans ? t[r] : m[i][r], 16);
			continue;
		}
		for (unsigned r = 0; r < 8; r++)
			memcpy(m[i][r], row[8 * i + r], 16);
	}
	if (a->store) {
		ex_work(w);
		return STEP_NEXT;
	}
	for (unsigned i = 0; i < a->n; i++) {
		if (a->trans)
			transpose(t, m[i]);
		memcpy(w->r + a->reg[i], a->trans ? t : m[i], 128);
	}
	return STEP_NEXT;
}

static bool decode(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool store)
{
	const struct ptx_operand *o = &i->operand[store ? 1 : 0];
	unsigned n = o->kind == PO_VEC ? o->n : 1;
	struct args *a;

	if (ptx_pick(i, MG_shape) != MOD_m8n8)
		return dec_unsupported(d, "%s of other than 8x8 matrices of 16 bits",
			store ? "stmatrix" : "ldmatrix");
	if (n != (ptx_has(i, MOD_x4) ? 4 : ptx_has(i, MOD_x2) ? 2 : 1))
		return dec_unsupported(d, "number of registers and matrices differ");
	a = dec_alloc(d, sizeof *a);
	a->addr = dec_addr(d, &i->operand[store ? 0 : 1]);
	a->n = (uint8_t)n;
	a->trans = ptx_has(i, MOD_trans);
	a->store = store;
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
