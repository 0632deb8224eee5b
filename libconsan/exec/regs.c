/* regs: assigns slots to virtual registers. Liveness over the control-flow graph, then a linear
 * scan in code order. Lanes take different paths, but each lane has its own column of a slot, so an
 * assignment that is right for one path is right for all. Registers that are written late are never
 * shared: those of a wgmma and of the movs of its accumulators, and those of a tcgen05.ld. */
#include "internal.h"

#include <stdlib.h>

struct interval { uint32_t start, end, reg; };

struct live {
	const struct ptx_func *f;
	size_t words;              /* words of one bit set */
	uint64_t *use, *def, *in;  /* by block */
	uint32_t *start, *end;     /* by register; end 0: never used */
	uint8_t *unshared;         /* shares its column with no other register; NULL: all may */
};

typedef void (*visit)(struct live *v, uint32_t reg, bool is_def, size_t block, uint32_t pos);

static void each_reg(struct live *v, const struct ptx_operand *o, bool def, bool kills,
	size_t block, uint32_t pos, visit fn)
{
	switch ((enum ptx_operand_kind)o->kind) {
	case PO_REG:
		fn(v, o->reg, def && kills && !o->elem, block, pos);
		return;
	case PO_ADDR:
		if (o->reg != PTX_NO_REG)
			fn(v, o->reg, false, block, pos);
		return;
	case PO_VEC:
	case PO_TADDR:
	case PO_PAIR:
		for (unsigned i = 0; i < o->n; i++)
			each_reg(v, &o->list[i], def, kills, block, pos, fn);
		return;
	case PO_NONE:
	case PO_IMM:
	case PO_F32:
	case PO_F64:
	case PO_SREG:
	case PO_SYM:
	case PO_FUNC:
	case PO_LABEL:
	case PO_SINK:
		return;
	}
}

/* Sources first, then destinations. */
static void each_operand(struct live *v, const struct ptx_insn *i, size_t block, uint32_t pos,
	visit fn)
{
	unsigned ndst = ptx_written(i);

	if (i->guard != PTX_NO_REG)
		fn(v, i->guard, false, block, pos);
	for (unsigned k = 0; k < i->narg; k++)
		each_reg(v, &i->arg[k], false, false, block, pos, fn);
	for (unsigned k = ndst; k < i->noperands; k++)
		each_reg(v, &i->operand[k], false, false, block, pos, fn);
	for (unsigned k = 0; k < ndst; k++)
		each_reg(v, &i->operand[k], true, i->guard == PTX_NO_REG, block, pos, fn);
	for (unsigned k = 0; k < i->nret; k++)
		each_reg(v, &i->ret[k], true, i->guard == PTX_NO_REG, block, pos, fn);
}

static void add_to_block(struct live *v, uint32_t reg, bool kills, size_t block, uint32_t pos)
{
	uint64_t bit = 1ull << (reg & 63);
	size_t at = block * v->words + reg / 64;

	(void)pos;
	if (kills)
		v->def[at] |= bit;
	else if (!(v->def[at] & bit))
		v->use[at] |= bit;
}

static void extend_range(struct live *v, uint32_t reg, bool kills, size_t block, uint32_t pos)
{
	(void)block;
	(void)kills;
	if (v->start[reg] > pos)
		v->start[reg] = pos;
	if (v->end[reg] < pos + 1)
		v->end[reg] = pos + 1;
}

/* live-out of a block, or'ed into out */
static void live_out(const struct live *v, const struct ptx_cfg *cfg, size_t b, uint64_t *out)
{
	const struct ptx_block *k = &cfg->block[b];
	const struct ptx_insn *last = k->end > k->first ? &v->f->insn[k->end - 1] : NULL;

	for (uint32_t s = 0; s < k->nsucc; s++)
		for (size_t i = 0; i < v->words; i++)
			out[i] |= v->in[k->succ[s] * v->words + i];
	for (uint32_t t = 0; last && t < last->ntarget; t++) {
		if (last->target[t] >= v->f->ninsn)
			continue;
		for (size_t i = 0; i < v->words; i++)
			out[i] |= v->in[cfg->block_of[last->target[t]] * v->words + i];
	}
}

static void solve(struct live *v, const struct ptx_cfg *cfg)
{
	uint64_t *out = base_alloc(v->words * 8 + 8);
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t k = cfg->nblock; k-- > 0;) {
			size_t b = cfg->order[k];
			uint64_t *in = v->in + b * v->words;
			const uint64_t *use = v->use + b * v->words, *def = v->def + b * v->words;

			memset(out, 0, v->words * 8);
			live_out(v, cfg, b, out);
			for (size_t i = 0; i < v->words; i++) {
				uint64_t now = use[i] | (out[i] & ~def[i]);

				changed |= now != in[i];
				in[i] = now;
			}
		}
	}
	free(out);
}

static void extend(struct live *v, const uint64_t *set, uint32_t from, uint32_t to)
{
	for (size_t i = 0; i < v->words; i++)
		for (uint64_t bits = set[i]; bits; bits &= bits - 1) {
			uint32_t r = (uint32_t)(i * 64 + (size_t)__builtin_ctzll(bits));

			if (v->start[r] > from)
				v->start[r] = from;
			if (v->end[r] < to)
				v->end[r] = to;
		}
}

static void intervals(struct live *v, const struct ptx_cfg *cfg)
{
	uint64_t *out = base_alloc(v->words * 8 + 8);
	uint32_t pos = 2;

	for (size_t k = 0; k < cfg->nblock; k++) {
		const struct ptx_block *b = &cfg->block[cfg->order[k]];
		uint32_t first = pos;

		for (uint32_t i = b->first; i < b->end; i++, pos += 2)
			each_operand(v, &v->f->insn[i], cfg->order[k], pos, extend_range);
		extend(v, v->in + cfg->order[k] * v->words, first, first + 1);
		memset(out, 0, v->words * 8);
		live_out(v, cfg, cfg->order[k], out);
		extend(v, out, pos - 1, pos);
	}
	free(out);
}

static int by_start(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->reg > y->reg) - (x->reg < y->reg);
}

/* ---- columns in use, earliest end first ---- */

struct busy { uint32_t end, column; };

static void heap_push(struct busy *heap, size_t n, struct busy b)
{
	size_t at = n;

	for (; at && heap[(at - 1) / 2].end > b.end; at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = b;
}

/* Removes the first entry; n: entries left afterwards. */
static void heap_pop(struct busy *heap, size_t n)
{
	struct busy last = heap[n];
	size_t at = 0;

	for (size_t kid = 1; kid < n; kid = 2 * at + 1) {
		if (kid + 1 < n && heap[kid + 1].end < heap[kid].end)
			kid++;
		if (heap[kid].end >= last.end)
			break;
		heap[at] = heap[kid];
		at = kid;
	}
	heap[at] = last;
}

/* Assigns columns to the registers of one class, in order of their start. The column freed last is
 * reused first: it is most likely cached. */
static void colour_class(const struct live *v, struct kfunc *fn, enum reg_class c,
	const struct interval *in, size_t n, struct busy *heap)
{
	const struct ptx_func *f = v->f;
	VEC(uint32_t) idle = { 0 };
	size_t busy = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ptx_reg *reg = &f->reg[in[i].reg];
		unsigned vec = reg->vec ? reg->vec : 1;
		uint32_t column, *slot = &fn->slot[fn->first[in[i].reg]];

		if (dec_class((enum ptx_type)reg->type) != c)
			continue;
		while (busy && heap[0].end < in[i].start) {
			vec_push(&idle, heap[0].column);
			heap_pop(heap, --busy);
		}
		if (vec > 1 || (v->unshared && v->unshared[in[i].reg])) {
			for (unsigned e = 0; e < vec; e++)
				slot[e] = fn->n[c]++;
			continue;
		}
		column = idle.n ? idle.at[--idle.n] : fn->n[c]++;
		*slot = column;
		heap_push(heap, busy++, (struct busy){ in[i].end, column });
	}
	vec_free(&idle);
}

static void colour(const struct live *v, struct kfunc *fn)
{
	size_t nreg = v->f->nreg, n = 0;
	struct interval *in = base_alloc((nreg + 1) * sizeof *in);
	struct busy *heap = base_alloc((nreg + 1) * sizeof *heap);

	for (uint32_t r = 0; r < nreg; r++)
		if (v->end[r])
			in[n++] = (struct interval){ v->start[r], v->end[r], r };
	qsort(in, n, sizeof *in, by_start);
	for (unsigned c = 0; c < RC_COUNT; c++)
		colour_class(v, fn, (enum reg_class)c, in, n, heap);
	free(heap);
	free(in);
}

/* Registers that an asynchronous instruction may write when their ranges have ended */
static uint8_t *unshared(const struct ptx_func *f)
{
	uint8_t *regs = wgmma_regs(f), *loaded = tmem_loaded(f);

	if (!regs || !loaded)
		return regs ? regs : loaded;
	for (uint32_t r = 0; r < f->nreg; r++)
		regs[r] |= loaded[r];
	free(loaded);
	return regs;
}

void regs_allocate(struct exec_kernel *k, struct kfunc *fn)
{
	const struct ptx_func *f = fn->f;
	const struct ptx_cfg *cfg = f->cfg;
	struct live v = { .f = f, .words = (f->nreg + 63) / 64 };
	size_t cells = v.words * (cfg->nblock ? cfg->nblock : 1) + 1;
	size_t n = 0;

	fn->first = arena_alloc(&k->arena, (f->nreg + 1) * sizeof *fn->first);
	for (uint32_t r = 0; r < f->nreg; r++) {
		fn->first[r] = (uint32_t)n;
		n += f->reg[r].vec ? f->reg[r].vec : 1;
	}
	fn->slot = arena_alloc(&k->arena, (n + 1) * sizeof *fn->slot);
	v.use = base_alloc(cells * 8);
	v.def = base_alloc(cells * 8);
	v.in = base_alloc(cells * 8);
	v.start = base_alloc((f->nreg + 1) * sizeof *v.start);
	v.end = base_alloc((f->nreg + 1) * sizeof *v.end);
	v.unshared = unshared(f);
	memset(v.start, 0xff, f->nreg * sizeof *v.start);
	for (size_t b = 0; b < cfg->nblock; b++)
		for (uint32_t i = cfg->block[b].first; i < cfg->block[b].end; i++)
			each_operand(&v, &f->insn[i], b, 0, add_to_block);
	solve(&v, cfg);
	intervals(&v, cfg);
	colour(&v, fn);

	fn->zero = arena_alloc(&k->arena, (f->nreg + 1) * sizeof *fn->zero);
	for (uint32_t r = 0; r < f->nreg && cfg->nblock; r++)
		if (v.in[cfg->order[0] * v.words + r / 64] >> (r & 63) & 1)
			fn->zero[fn->nzero++] = r;
	free(v.use);
	free(v.def);
	free(v.in);
	free(v.start);
	free(v.end);
	free(v.unshared);
}
