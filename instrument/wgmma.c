/* wgmma: groups of wgmma, of which one record stands for four warps, -> events. */
#include "events.h"

#include <stdlib.h>
#include <string.h>

#include "../libconsan/wg_desc.h"
#include "../shadow/cell.h"

/* ---- plain instructions on its registers ---- */

/* What rewrite_between() says, once for each pair of places. */
static const struct way_cache *way(struct dcluster *c, uint32_t from, uint32_t to)
{
	uint64_t key = ((uint64_t)from << 32 | to) + 1;
	struct way_cache *w = &c->way[(from * 31 + to) % WAYS];
	uint32_t note[4096];

	if (w->key == key)
		return w;
	w->key = key;
	w->n = rewrite_between(c->job->l->code, c->job->l->func, from, to, note, 4096);
	free(w->note);
	w->note = base_alloc((w->n + 1) * sizeof *w->note);
	memcpy(w->note, note, w->n * sizeof *w->note);
	return w;
}

static void tell_note(struct dcluster *c, uint32_t warp, uint32_t index, uint32_t lanes)
{
	const struct rewrite *code = c->job->l->code;
	const struct rewrite_note *n = &code->note.at[index];
	struct event e = record_event(c, warp, 0, EV_REGS, lanes);

	e.site = c->job->l->site[code->site.n + code->batch.n + index];
	e.flags = n->insn->op == OP_mov ? EVF_MOVE : 0;
	e.regs = n->reg;
	e.nregs_d = n->nread;
	e.mode = EVM_READ;
	if (n->nread)
		emit(c, &e);
	e.regs = n->reg + n->nread;
	e.nregs_d = n->nwritten;
	e.mode = EVM_WRITE;
	if (n->nwritten)
		emit(c, &e);
}

void tell_way(struct dcluster *c, uint32_t warp, const struct ptx_insn *i, uint32_t lanes)
{
	const struct rewrite_func *f = c->job->l->func;
	struct dwarp *w = &c->warp[warp];
	const struct way_cache *way_here;
	uint32_t to;

	if (!c->registers)
		return;
	to = (uint32_t)(i - f->func->insn);
	if (w->past == to + 1)
		return;
	way_here = way(c, w->past - 1, to);
	for (uint32_t k = 0; k < way_here->n; k++)
		tell_note(c, warp, way_here->note[k], lanes);
	if (f->note_of[to])
		tell_note(c, warp, f->note_of[to] - 1, lanes);
	w->past = to + 1;
}

/* ---- groups and waits ---- */

struct batch_info batch_of(const struct ptx_func *f, const struct ptx_insn *i)
{
	struct batch_info b = { .mma = i->op == OP_wgmma_mma_async };
	int64_t imm[4] = { 1, 1, 0, 0 };
	unsigned rows, cols, depth, n = 0;
	struct plan p;

	plan_of(f, i, &p);
	b.words = (uint8_t)plan_words(&p);
	if (!b.mma)
		return b;
	b.a_regs = i->operand[1].kind == PO_VEC;
	ptx_shape(ptx_pick(i, MG_shape), &rows, &cols, &depth);
	for (unsigned k = 4; k < i->noperands && n < 4; k++) {
		if (n == 2 && b.a_regs)
			n = 3;
		imm[n++] = i->operand[k].imm;
	}
	b.n = (uint16_t)cols;
	b.a_mn = imm[2];
	b.b_mn = imm[3];
	for (; b.nd < i->operand[0].n && b.nd < 128; b.nd++)
		b.regs[b.nd] = i->operand[0].list[b.nd].reg;
	for (; b.a_regs && b.na < i->operand[1].n && b.na < 4; b.na++)
		b.regs[b.nd + b.na] = i->operand[1].list[b.na].reg;
	return b;
}

/* What a wgmma reads, by its descriptors: they come back with each turn of a ring
 * of buffers, so it is worked out once. */
struct mma_pieces {
	const struct ptx_insn *insn;
	uint32_t words[4];         /* of its descriptors */
	uint32_t share;            /* who asked */
	uint32_t top[2];           /* the highest piece of A and B */
	uint16_t part[6];
	struct ev_span span[];     /* part[5] of them */
};

/* What this share will not look at need not be told. */
static unsigned keep_share(const struct dcluster *c, uint32_t *piece, unsigned n)
{
	unsigned kept = 0;

	if (c->job->parts == 1)
		return n;
	for (unsigned k = 0; k < n; k++)
		if (cell_share(piece[k], c->job->parts) == c->share)
			piece[kept++] = piece[k];
	return kept;
}

static uint32_t highest(const uint32_t *piece, unsigned n)
{
	uint32_t top = 0;

	for (unsigned k = 0; k < n; k++)
		top = piece[k] > top ? piece[k] : top;
	return top;
}

#define MOST_SPANS 640

static void find_pieces(const struct dcluster *c, const struct batch_info *m, const uint32_t *words,
	uint32_t top[2], uint16_t part[6], struct ev_span span[MOST_SPANS])
{
	uint32_t piece[512], rows[32];
	struct wg_desc d;
	unsigned n = 0, many;

	if (!m->a_regs) {
		d = wg_desc_decode(words[0] | (uint64_t)words[1] << 32);
		wg_desc_pieces(&d, m->a_mn, 64, piece);
		top[0] = highest(piece, 128);
		words += 2;
	}
	for (unsigned k = 0; k < 4; k++) {
		part[k] = (uint16_t)n;
		if (m->a_regs)
			continue;
		wg_desc_rows(piece, m->a_mn, k, rows);
		many = keep_share(c, rows, 32);
		if (many)
			n += wg_desc_spans(rows, many, span + n);
	}
	part[4] = (uint16_t)n;
	d = wg_desc_decode(words[0] | (uint64_t)words[1] << 32);
	wg_desc_pieces(&d, m->b_mn, m->n, piece);
	top[1] = highest(piece, 2 * m->n);
	many = keep_share(c, piece, 2 * m->n);
	if (many)
		n += wg_desc_spans(piece, many, span + n);
	part[5] = (uint16_t)n;
}

static const struct mma_pieces *pieces(struct dcluster *c, const struct ptx_insn *i,
	const struct batch_info *m, const uint32_t *words)
{
	size_t n = m->a_regs ? 2 : 4;
	uint32_t h = i->line;
	struct ev_span span[MOST_SPANS];
	struct mma_pieces **p;
	uint32_t top[2] = { 0 };
	uint16_t part[6];

	for (size_t k = 0; k < n; k++)
		h = (h ^ words[k]) * 0x9e3779b1u;
	p = &c->pieces[h >> 16 & (PIECES - 1)];
	if (*p && (*p)->insn == i && (*p)->share == c->share && !memcmp((*p)->words, words, n * sizeof *words))
		return *p;
	find_pieces(c, m, words, top, part, span);
	*p = base_resize(*p, sizeof **p + part[5] * sizeof *span);
	(*p)->insn = i;
	(*p)->share = c->share;
	memcpy((*p)->words, words, n * sizeof *words);
	memcpy((*p)->top, top, sizeof top);
	memcpy((*p)->part, part, sizeof part);
	memcpy((*p)->span, span, part[5] * sizeof *span);
	return *p;
}

static uint64_t wide(const uint32_t *words)
{
	return words[0] | (uint64_t)words[1] << 32;
}

static void refused_ends(struct dcluster *c, uint32_t first, uint32_t id, const struct batch_info *m,
	const uint32_t *words, const uint32_t top[2])
{
	const struct shared_view v = record_view(c, first);
	struct refusal why;

	if ((!m->a_regs && refuse_matrix_end(&why, &v, "A", wide(words), top[0])) ||
			refuse_matrix_end(&why, &v, "B", wide(words + 2 * !m->a_regs), top[1]))
		tell_refusal(c, first, id, FULL, &why);
}

/* The descriptors of the four warps, each in its own record of the group. */
static void refused_unlike(struct dcluster *c, uint32_t first, uint32_t id, const struct batch_info *m,
	const struct record *const r[4], ptrdiff_t at)
{
	struct refusal why;

	if (cut_short(c))
		return; /* a record may be torn */
	for (uint32_t w = 1; r[0] && w < 4; w++) {
		const uint32_t *mine = r[w] ? r[w]->words + at : NULL, *its = r[0]->words + at;

		if (!mine || r[w]->site != r[0]->site)
			continue;
		if ((!m->a_regs && refuse_unlike(&why, "A", wide(mine), wide(its))) ||
				refuse_unlike(&why, "B", wide(mine + 2 * !m->a_regs), wide(its + 2 * !m->a_regs))) {
			tell_refusal(c, first + w, id, 1, &why);
			return;
		}
	}
}

/* words: those of this mma in the record of its group. */
static void on_mma(struct dcluster *c, uint32_t first, uint32_t site, const struct ptx_insn *i,
	const struct batch_info *m, uint32_t id, const uint32_t *words)
{
	struct event e = record_event(c, first, site, EV_WG_MMA, FULL);
	const struct mma_pieces *p = pieces(c, i, m, words);

	refused_ends(c, first, id, m, words, p->top);
	e.site = id;
	e.op = ++c->ops;
	memcpy(e.part, p->part, sizeof e.part);
	e.spans = p->span;
	e.nspans = p->part[5];
	words += m->a_regs ? 2 : 4;
	e.flags = (i->operand[3].kind == PO_IMM ? i->operand[3].imm != 0 : words[0]) ? EVF_SCALE_D : 0;
	e.tx = (int64_t)(m->n | (uint64_t)ptx_type_of(i, 0) << 16 | (uint64_t)ptx_type_of(i, 1) << 24 |
		(uint64_t)ptx_type_of(i, 2) << 32);
	if (c->registers) {
		e.nregs_d = m->nd;
		e.nregs_a = m->na;
		e.regs = m->regs;
	}
	emit(c, &e);
}

/* Who has exited comes to no wgmma of its warpgroup any more. */
static void refused_gone(struct dcluster *c, uint32_t first, uint32_t id, const struct record *const r[4])
{
	const uint32_t left = c->info.warps_per_cta - first % c->info.warps_per_cta;
	struct refusal why;

	for (uint32_t w = 0; w < 4 && w < left; w++) {
		if (r[w] || c->warp[first + w].gone != c->warp[first + w].all)
			continue;
		refusal_set(&why, EVX_WG_DIVERGED, SP_ANY, 0, 0, "warp %u of the warpgroup has exited", w);
		tell_refusal(c, first, id, FULL, &why);
		return;
	}
}

void decode_meeting(struct dcluster *c, uint32_t first, const struct record *r[4])
{
	const struct rewrite_site *s;
	struct refusal why;
	const struct record *one = r[0] ? r[0] : r[1] ? r[1] : r[2] ? r[2] : r[3];
	const uint32_t *words;

	if (!one)
		return;
	s = record_site(c, one->site);
	words = one->words;
	if (c->stopped)
		return;
	if (refuse_group(&why, first % c->info.warps_per_cta, c->info.warps_per_cta))
		tell_refusal(c, first, s->phase == PHASE_BATCH ? record_batch_site(c, one->site, 0)
			: c->job->l->site[one->site], FULL, &why);
	refused_gone(c, first, s->phase == PHASE_BATCH ? record_batch_site(c, one->site,
		s->nbatch > 1 && c->job->l->code->batch.at[s->batch]->op == OP_wgmma_fence)
		: c->job->l->site[one->site], r);
	if (s->phase != PHASE_BATCH) {
		struct event e = record_event(c, first, one->site, EV_WG_WAIT, FULL);

		for (uint32_t w = 0; w < 4; w++)
			if (r[w])
				tell_way(c, first + w, s->insn, FULL);
		e.count = (uint32_t)s->insn->operand[0].imm;
		emit(c, &e);
		return;
	}
	for (uint32_t k = 0; k < s->nbatch; k++) {
		const struct ptx_insn *i = c->job->l->code->batch.at[s->batch + k];
		const struct batch_info *b = &c->job->batch[s->batch + k];
		struct event e;

		for (uint32_t w = 0; w < 4; w++)
			if (r[w])
				tell_way(c, first + w, i, FULL);
		if (b->mma) {
			if (!c->share)
				refused_unlike(c, first, record_batch_site(c, one->site, k), b, r,
					words - one->words);
			on_mma(c, first, one->site, i, b, record_batch_site(c, one->site, k), words);
			words += b->words;
			continue;
		}
		for (uint32_t w = 0; w < 4; w++) {
			if (!r[w] || (w && i->op != OP_wgmma_fence))
				continue;
			e = record_event(c, first + w, one->site, i->op == OP_wgmma_fence
				? EV_WG_FENCE : EV_WG_COMMIT, FULL);
			e.site = record_batch_site(c, one->site, k);
			emit(c, &e);
		}
	}
}
