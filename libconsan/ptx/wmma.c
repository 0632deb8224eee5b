/* wmma: shapes and types of 9.7.14.4, and what follows from them. */
#include "wmma.h"
#include "opcodes.h"

bool wmma_is(const struct ptx_insn *i)
{
	return i->op == OP_wmma_load_a || i->op == OP_wmma_load_b || i->op == OP_wmma_load_c ||
		i->op == OP_wmma_store_d;
}

uint32_t wmma_align(const struct wmma_part *p)
{
	return p->bits < 8 ? 1 : p->bits / 8u;
}

bool wmma_shape(unsigned m, unsigned n, unsigned k, enum ptx_type a)
{
	switch ((int)a) {
	case TY_f16: case TY_bf16: case TY_s8: case TY_u8:
		return k == 16 && ((m == 16 && n == 16) || (m == 32 && n == 8) || (m == 8 && n == 32));
	case TY_tf32: return m == 16 && n == 16 && k == 8;
	case TY_f64: return m == 8 && n == 8 && k == 4;
	case TY_s4: case TY_u4: return m == 8 && n == 8 && k == 32;
	case TY_b1: return m == 8 && n == 8 && k == 128;
	default: return false;
	}
}

static bool result_shape(const struct wmma_part *p)
{
	const unsigned m = p->m, n = p->n, k = p->k;

	switch ((int)p->type) {
	case TY_f16: return wmma_shape(m, n, k, TY_f16);
	case TY_f32: return wmma_shape(m, n, k, TY_f16) || wmma_shape(m, n, k, TY_tf32);
	case TY_s32:
		return wmma_shape(m, n, k, TY_s8) || wmma_shape(m, n, k, TY_s4) || wmma_shape(m, n, k, TY_b1);
	case TY_f64: return wmma_shape(m, n, k, TY_f64);
	default: return false;
	}
}

bool wmma_part_of(const struct ptx_insn *i, struct wmma_part *p)
{
	unsigned m, n, k, rows, columns;

	*p = (struct wmma_part){ .matrix = i->op == OP_wmma_load_a ? 'a' : i->op == OP_wmma_load_b
		? 'b' : 'c', .col = ptx_has(i, MOD_col), .type = (uint8_t)ptx_type_of(i, 0) };
	if (!ptx_shape(ptx_pick(i, MG_shape), &m, &n, &k))
		return false;
	p->m = (uint16_t)m;
	p->n = (uint16_t)n;
	p->k = (uint16_t)k;
	if (p->matrix == 'c' ? !result_shape(p) : !wmma_shape(m, n, k, (enum ptx_type)p->type))
		return false;
	rows = p->matrix == 'b' ? k : m;
	columns = p->matrix == 'a' ? k : n;
	p->lines = (uint16_t)(p->col ? columns : rows);
	p->length = (uint16_t)(p->col ? rows : columns);
	p->bits = p->type == TY_tf32 ? 32 : (uint16_t)ptx_type_bits((enum ptx_type)p->type);
	if (p->lines > 32) /* elements of less than a byte stand row by row in A, column by column in B */
		return false;
	p->lanes = (uint16_t)(32 / p->lines);
	p->lane_bytes = (uint16_t)(p->length * p->bits / 8u / p->lanes);
	return true;
}
