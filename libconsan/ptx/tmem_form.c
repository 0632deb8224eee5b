/* tmem_form: see tmem_form.h. */
#include "tmem_form.h"

#include "opcodes.h"

/* SHAPE(mod, shape, lanes, columns of .x1, registers of .x1) */
#define SHAPES \
	SHAPE(MOD_32x32b, S32x32b, 32, 1, 1) \
	SHAPE(MOD_16x64b, S16x64b, 16, 2, 1) \
	SHAPE(MOD_16x128b, S16x128b, 16, 4, 2) \
	SHAPE(MOD_16x256b, S16x256b, 16, 8, 4) \
	SHAPE(MOD_16x32bx2, S16x32bx2, 16, 1, 1)

static unsigned repetitions(const struct ptx_insn *i)
{
	const enum ptx_mod first = MOD_x1, m = ptx_pick(i, MG_num);

	return m ? 1u << (m - first) : 1;
}

const char *tmem_form_of(const struct ptx_insn *i, struct tmem_form *f)
{
	const bool is_store = i->op == OP_tcgen05_st, split = ptx_has(i, MOD_16x32bx2);
	const unsigned first = is_store ? 0 : i->op == OP_tcgen05_ld_red ? 2 : 1;
	const unsigned times = repetitions(i);

	*f = (struct tmem_form){ .address = &i->operand[first], .store = is_store,
		.regs = &i->operand[!is_store ? 0 : split ? 2 : 1],
		.halves = ptx_has(i, is_store ? MOD_unpack_16b : MOD_pack_16b) };
	switch (ptx_pick(i, MG_tshape)) {
#define SHAPE(mod, s, l, c, n) case mod: \
	f->shape = s; f->lanes = l; f->columns = (uint16_t)(c * times); \
	f->nregs = (uint16_t)(n * times); break;
	SHAPES
#undef SHAPE
	default:
		return "this shape of a tensor memory access";
	}
	if (f->halves)
		f->columns *= 2;
	if (split) {
		f->split = (int32_t)i->operand[first + 1].imm;
		if (f->split < 0)
			return "a negative distance between the two parts";
		f->columns = (uint16_t)(f->columns + f->split);
	}
	if (f->nregs > 128 || (f->regs->kind == PO_VEC ? f->regs->n : 1) != f->nregs)
		return "a tensor memory access with another number of registers";
	return NULL;
}

/* ---- areas ---- */

void tc_area(struct tc_areas *s, enum ev_mode mode, enum ev_operand operand, uint32_t ctas,
	uint32_t column, uint32_t columns)
{
	if (s->n < ARRAY_SIZE(s->at))
		s->at[s->n++] = (struct ev_area){ .column = (uint16_t)column,
			.columns = (uint16_t)columns, .ctas = (uint16_t)ctas, .mode = mode,
			.operand = operand };
}

void tc_area_lanes(struct tc_areas *s, unsigned first, unsigned n)
{
	struct ev_area *a = &s->at[s->n - 1];

	for (unsigned l = first, end = first + n, k; l < end && l < TMEM_LANES; l += k) {
		k = 32 - l % 32 < end - l ? 32 - l % 32 : end - l;
		a->lanes[l / 32] |= UINT32_MAX >> (32 - k) << l % 32;
	}
}

void tmem_areas(const struct tmem_form *f, uint32_t at, uint32_t rank, struct tc_areas *s)
{
	const uint32_t column = at & 0xffff;

	s->n = 0;
	for (unsigned part = 0; part < (f->split ? 2u : 1u); part++) {
		tc_area(s, f->store ? MODE_WRITE : MODE_READ, OPERAND_NONE, 1u << rank,
			column + (part ? (uint32_t)f->split : 0), f->columns - (uint32_t)f->split);
		tc_area_lanes(s, at >> 16, f->lanes);
	}
}

/* ---- checks ---- */

bool tmem_allocated(uint32_t units, uint32_t addr, unsigned lanes, unsigned columns)
{
	const uint32_t lane = addr >> 16, column = addr & 0xffff;

	if (!columns || lane + lanes > TMEM_LANES || column + columns > TMEM_COLUMNS)
		return false;
	for (uint32_t u = column / TMEM_UNIT; u <= (column + columns - 1) / TMEM_UNIT; u++)
		if (!(units >> u & 1))
			return false;
	return true;
}

bool refuse_tmem(struct refusal *r, uint32_t units, uint32_t rank, uint32_t addr, unsigned lanes,
	unsigned columns)
{
	return !tmem_allocated(units, addr, lanes, columns) && refusal_set(r, FAULT_TMEM_ADDRESS, SP_TMEM,
		addr, 4 * columns, "lanes %u to %u, columns %u to %u of the tensor memory of CTA %u are not "
		"allocated", addr >> 16, (addr >> 16) + lanes - 1, addr & 0xffff,
		(addr & 0xffff) + columns - 1, rank);
}

bool refuse_window(struct refusal *r, const struct tmem_form *f, uint32_t at)
{
	const uint32_t lane = at >> 16;

	return lane % 32 + f->lanes > 32 && refusal_set(r, FAULT_TMEM_WINDOW, SP_TMEM, at, 4,
		"lanes %u to %u are not of one warp", lane, lane + f->lanes - 1);
}

/* A warp's window is that of its rank modulo 4 (ISA, "Access restrictions"). */
bool refuse_other_window(struct refusal *r, const struct tmem_form *f, uint32_t warp, uint32_t *at)
{
	const uint32_t addr = *at, lane = addr >> 16;

	*at = (warp % 4 * 32 + lane % 32) << 16 | (addr & 0xffff);
	return lane / 32 != warp % 4 && refusal_set(r, FAULT_TMEM_OTHER_WINDOW, SP_TMEM, addr, 4,
		"warp %u does not access lanes %u to %u", warp, lane, lane + f->lanes - 1);
}

bool refuse_columns(struct refusal *r, uint32_t n)
{
	return (n < TMEM_UNIT || n > TMEM_COLUMNS || n & (n - 1)) && refusal_set(r, FAULT_TMEM_COLUMNS,
		SP_TMEM, n, 0, "%u columns: neither 32, 64, 128, 256 nor 512", n);
}

bool refuse_permit(struct refusal *r, bool relinquished)
{
	return relinquished && refusal_set(r, FAULT_TMEM_PERMIT, SP_TMEM, 0, 0,
		"this CTA has given up its permit to allocate");
}

bool refuse_free(struct refusal *r, uint32_t units, uint32_t column, uint32_t n)
{
	return !tmem_allocated(units, column, TMEM_LANES, n) && refusal_set(r, FAULT_TMEM_FREE, SP_TMEM,
		column, 4 * n, "columns %u to %u are not allocated", column, column + n - 1);
}

bool refuse_meeting(struct refusal *r, const struct tmem_call *mine, const struct tmem_call *peer,
	uint32_t rank)
{
	return (peer->alloc != mine->alloc || peer->columns != mine->columns
			|| (!mine->alloc && peer->column != mine->column))
		&& refusal_set(r, FAULT_TMEM_PAIR, SP_TMEM, mine->column, 4 * mine->columns,
			"the warp of CTA %u executes tcgen05.%s of %u columns at %u", rank,
			peer->alloc ? "alloc" : "dealloc", peer->columns, peer->alloc ? 0 : peer->column);
}
