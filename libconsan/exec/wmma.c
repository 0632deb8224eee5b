/* wmma: fragments between memory and registers, and their product, which is that of mma.sync
 * (mma_tile.c) block by block. The ISA does not define which lane holds which element. Here the
 * layout is that of mma.sync fragments, 16 rows by 8 columns at a time; for 8 rows by 32 columns it
 * is the transpose. Unused parts of the registers are 0. */
#include "async.h"
#include "mma_types.h"
#include "tile.h"

#include "libconsan/ptx/opcodes.h"
#include "libconsan/ptx/ptx.h"

#define MOST 8                 /* registers of a fragment */

/* ---- layout of elements ---- */

struct element { unsigned reg, lane, bit; };

/* The element at row, column of a matrix. */
static struct element element_at(const struct wmma_part *p, unsigned row, unsigned col)
{
	bool transposed = p->m == 8 && p->n == 32;
	char matrix = p->matrix;
	unsigned m = p->m, n = p->n, word = p->bits == 64 ? 64 : 32, swap, halves, e, chunk;
	struct element s;

	if (transposed) {
		matrix = matrix == 'a' ? 'b' : matrix == 'b' ? 'a' : 'c';
		swap = row; row = col; col = swap;
		swap = m; m = n; n = swap;
	}
	halves = m == 8 ? 1 : 2;
	if (matrix == 'c') {
		bool narrow = p->bits == 16;
		unsigned block = row / 16 * (n / 8) + col / 8, odd = col % 2;

		s.lane = row % 8 * 4 + col % 8 / 2;
		s.reg = narrow ? block * halves + row % 16 / 8
			: block * 2 * halves + row % 16 / 8 * 2 + odd;
		s.bit = narrow ? 16 * odd : 0;
		return s;
	}
	e = word / p->bits;
	if (matrix == 'b') { /* k is the row */
		swap = row; row = col; col = swap;
	}
	chunk = col / (4 * e);
	s.lane = row % 8 * 4 + col % (4 * e) / e;
	s.bit = col % e * p->bits;
	s.reg = matrix == 'b' ? row / 8 * (p->k / (4 * e)) + chunk
		: (row / 16 * (p->k / (4 * e)) + chunk) * halves + row % 16 / 8;
	return s;
}

static bool wide(enum ptx_type t)
{
	return t == TY_f64;
}

static enum ptx_type register_type(enum ptx_type t)
{
	return t == TY_f64 || t == TY_f32 ? t : TY_b32;
}

/* Number of registers that the fragment fills. */
static unsigned fills(const struct wmma_part *p)
{
	unsigned rows = p->matrix == 'b' ? p->k : p->m, cols = p->matrix == 'a' ? p->k : p->n;

	return rows * cols * p->bits / (32u * (wide((enum ptx_type)p->type) ? 64 : 32));
}

/* ---- load and store ---- */

struct args {
	struct xaddr addr;
	struct wmma_part part;
	struct { uint8_t reg, lane, bit, host; uint16_t at; } *map; /* place of each element, by
								       line */
	uint32_t stride;           /* slot; UINT32_MAX: the line's length */
	bool store;
	uint8_t space, n;
	uint32_t reg[MOST];
};

static bool find(struct warp *w, const struct xop *x, const struct args *a,
	struct xplace place[LANES])
{
	const struct wmma_part *p = &a->part;
	uint64_t stride = (a->stride == UINT32_MAX ? p->length
		: r32(w, a->stride)[0]) * (uint64_t)p->bits / 8;

	for (unsigned l = 0; l < LANES; l++) {
		uint64_t at = ex_addr(w, a->addr, l) + l / p->lanes * stride
			+ l % p->lanes * p->lane_bytes;

		if (!ex_resolve(w, x, 1u << l, (enum ptx_space)a->space, at, p->lane_bytes,
				wmma_align(p), a->store,
				&place[l]))
			return false;
	}
	return true;
}

static void emit_accesses(struct warp *w, const struct xop *x, const struct args *a,
	const struct xplace place[LANES])
{
	uint64_t at[LANES];

	for (unsigned l = 0; l < LANES; l++)
		at[l] = place[l].addr;
	for (uint32_t rest = FULL, same; rest; rest &= ~same) {
		const struct xplace *first = &place[__builtin_ctz(rest)];
		struct event e;

		same = 0;
		for EACH_LANE(l, rest)
			same |= (uint32_t)(place[l].space == first->space
				&& place[l].cta == first->cta) << l;
		if (first->space != SP_SHARED
				&& !(first->space == SP_GLOBAL && w->sink->want_global))
			continue;
		e = ex_event(w, x, EV_ACCESS, same);
		e.access.space = first->space;
		e.access.mode = a->store ? MODE_WRITE : MODE_READ;
		e.access.flags = ACCESS_MATRIX;
		e.access.owner = (uint16_t)(first->cta ? first->cta->rank : w->cta->rank);
		e.access.bytes = a->part.lane_bytes;
		e.access.element_bytes = first->space == SP_GLOBAL ? wmma_align(&a->part) : 0;
		ex_lanes(&e.access.at, same, at);
		ex_emit(w->cluster, &e);
	}
}

static enum step op_part(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct args *a = x->i.p;
	const struct wmma_part *p = &a->part;
	unsigned bytes = wide((enum ptx_type)p->type) ? 8 : 4, n = p->lines * p->length;
	_Alignas(64) unsigned char r[MOST][8 * LANES] = { 0 };
	struct xplace place[LANES];
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (!find(w, x, a, place))
		return STEP_FAULT;
	if (w->sink)
		emit_accesses(w, x, a, place);
	for (unsigned k = 0; a->store && k < a->n; k++)
		memcpy(r[k], w->r + a->reg[k], bytes * LANES);
	for (unsigned k = 0; k < n; k++) {
		unsigned char *reg = r[a->map[k].reg] + a->map[k].lane * bytes + a->map[k].bit / 8;
		unsigned char *at = place[a->map[k].host].host + a->map[k].at;

		if (p->bits >= 8)
			memcpy(a->store ? at : reg, a->store ? reg : at, p->bits / 8u);
		else /* of A or B: never stored */
			*reg |= (unsigned char)((*at >> k * p->bits % 8 & ((1u << p->bits) - 1))
				<< a->map[k].bit % 8);
	}
	if (a->store)
		ex_work(w);
	for (unsigned k = 0; !a->store && k < a->n; k++)
		memcpy(w->r + a->reg[k], r[k], bytes * LANES);
	return STEP_NEXT;
}

static void make_map(struct decoder *d, struct args *a)
{
	const struct wmma_part *p = &a->part;

	a->map = dec_alloc(d, p->lines * p->length * sizeof *a->map);
	for (unsigned line = 0; line < p->lines; line++)
		for (unsigned x = 0; x < p->length; x++) {
			struct element s = element_at(p, p->col ? x : line, p->col ? line : x);
			unsigned byte = x * p->bits / 8;

			a->map[line * p->length + x].reg = (uint8_t)s.reg;
			a->map[line * p->length + x].lane = (uint8_t)s.lane;
			a->map[line * p->length + x].bit = (uint8_t)s.bit;
			a->map[line * p->length + x].host = (uint8_t)(line * p->lanes
				+ byte / p->lane_bytes);
			a->map[line * p->length + x].at = (uint16_t)(byte % p->lane_bytes);
		}
}

static bool decode_part(struct decoder *d, const struct ptx_insn *i, struct xop *x)
{
	bool store = i->op == OP_wmma_store_d;
	const struct ptx_operand *regs = &i->operand[store];
	struct args *a = dec_alloc(d, sizeof *a);
	enum ptx_type t;

	if (!wmma_part_of(i, &a->part))
		return dec_unsupported(d, "this shape of wmma with this type");
	a->n = (uint8_t)(regs->kind == PO_VEC ? regs->n : 1);
	if (a->n > MOST || a->n < fills(&a->part))
		return dec_unsupported(d, "a fragment of %u registers", a->n);
	a->addr = dec_addr(d, &i->operand[!store]);
	a->stride = i->noperands > 2 ? dec_src(d, &i->operand[2], TY_u32) : UINT32_MAX;
	a->store = store;
	a->space = (uint8_t)ptx_space_of(i, 0);
	t = register_type((enum ptx_type)a->part.type);
	for (unsigned k = 0; k < a->n; k++) {
		const struct ptx_operand *r = regs->kind == PO_VEC ? &regs->list[k] : regs;

		a->reg[k] = store ? dec_src(d, r, t) : dec_dst(d, r, t);
	}
	make_map(d, a);
	x->i.p = a;
	x->fn = op_part;
	return true;
}

DECODER(wmma_load_a) { return decode_part(d, i, x); }
DECODER(wmma_load_b) { return decode_part(d, i, x); }
DECODER(wmma_load_c) { return decode_part(d, i, x); }
DECODER(wmma_store_d) { return decode_part(d, i, x); }

/* ---- the product ---- */

struct product {
	struct mma_shape s;
	mma_tile_fn tile;
	bool transposed;
	uint8_t rows, columns;     /* blocks */
	uint8_t na, nb, nc, nd;    /* registers of a block */
	uint8_t bytes;             /* of a register of D, one lane */
	uint32_t d[MOST], a[MOST], b[MOST], c[MOST];
};

static enum step op_product(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct product *p = x->i.p;
	_Alignas(64) unsigned char out[MOST][8 * LANES]; /* D may be A's or B's registers */
	struct mma_regs r;
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (w->sink)
		warp_emit_together(w, x);
	for (unsigned k = 0; k < (unsigned)p->rows * p->columns; k++) {
		unsigned row = k / p->columns, column = k % p->columns;

		for (unsigned j = 0; j < p->na; j++)
			r.a[j] = w->r + (p->transposed ? p->b : p->a)[row * p->na + j];
		for (unsigned j = 0; j < p->nb; j++)
			r.b[j] = w->r + (p->transposed ? p->a : p->b)[column * p->nb + j];
		for (unsigned j = 0; j < p->nc; j++)
			r.c[j] = w->r + p->c[k * p->nc + j];
		for (unsigned j = 0; j < p->nd; j++)
			r.d[j] = out[k * p->nd + j];
		p->tile(&p->s, &r);
	}
	for (unsigned k = 0; k < (unsigned)p->rows * p->columns * p->nd; k++)
		memcpy(w->r + p->d[k], out[k], (size_t)p->bytes * LANES);
	return STEP_NEXT;
}

static bool take(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, unsigned least,
	uint32_t slot[MOST], bool dst)
{
	unsigned n = o->kind == PO_VEC ? o->n : 1;

	if (n < least || n > MOST)
		return dec_unsupported(d, "a fragment of %u registers", n);
	for (unsigned k = 0; k < n; k++) {
		const struct ptx_operand *r = o->kind == PO_VEC ? &o->list[k] : o;

		slot[k] = dst ? dec_dst(d, r, t) : dec_src(d, r, t);
	}
	return true;
}

DECODER(wmma_mma)
{
	bool halves = !ptx_type_of(i, 2); /* .f16 alone: only the types of D and C are written */
	enum ptx_type td = ptx_type_of(i, 0), ta = halves ? TY_f16 : ptx_type_of(i, 1);
	enum ptx_type tb = halves ? TY_f16 : ptx_type_of(i, 2), tc = ptx_type_of(i, halves ? 1 : 3);
	struct product *p = dec_alloc(d, sizeof *p);
	unsigned m, n, k, per;

	if (!ptx_shape(ptx_pick(i, MG_shape), &m, &n, &k) || !wmma_shape(m, n, k, ta) ||
			!wmma_shape(m, n, k, tb))
		return dec_unsupported(d, "this shape of wmma with these types");
	p->transposed = m == 8 && n == 32;
	if (p->transposed) {
		m = 32;
		n = 8;
	}
	p->s = (struct mma_shape){ .m = m == 8 ? 8 : 16, .k = (uint16_t)k,
		.satfinite = ptx_has(i, MOD_satfinite),
		.and = ptx_has(i, MOD_and), .d = (uint8_t)tile_acc_of(td),
		.c = (uint8_t)tile_acc_of(tc),
		.a = (uint8_t)tile_in_of(p->transposed ? tb : ta),
		.b = (uint8_t)tile_in_of(p->transposed ? ta : tb) };
	p->rows = (uint8_t)(m == 8 ? 1 : m / 16);
	p->columns = (uint8_t)(n / 8);
	per = ta == TY_f64 ? 4 : 128 / tile_in_bits((enum tile_in)p->s.a);
	p->nb = (uint8_t)(k / per);
	p->na = (uint8_t)(p->nb * (p->s.m / 8u));
	p->nc = (uint8_t)(p->s.m / 8u * (tc == TY_f16 ? 1 : 2));
	p->nd = (uint8_t)(p->s.m / 8u * (td == TY_f16 ? 1 : 2));
	p->bytes = wide(td) ? 8 : 4;
	p->tile = SIMD_PICK(mma_tile);
	x->i.p = p;
	x->fn = op_product;
	return take(d, &i->operand[0], register_type(td), p->nd * p->rows * p->columns, p->d,
		true) &&
		take(d, &i->operand[1], register_type(ta),
		(p->transposed ? p->nb * p->columns : p->na * p->rows),
			p->a, false) &&
		take(d, &i->operand[2], register_type(tb),
		(p->transposed ? p->na * p->rows : p->nb * p->columns),
			p->b, false) &&
		take(d, &i->operand[3], register_type(tc), p->nc * p->rows * p->columns, p->c,
		false);
}
