/* wgmma: turns records of wgmma groups into events. One event stands for the four warps of a
 * warpgroup. */
#include "events.h"

#include <stdlib.h>
#include <string.h>

#include "libconsan/ptx/opcodes.h"
#include "libconsan/ptx/ptx.h"
#include "shadow/shadow.h"

/* ---- plain instructions on registers of a wgmma ---- */

/* Copies of accumulators can be left out: each is made by a mov of an accumulator in flight, which
 * alone is something to report. */
static uint32_t only_operands(const struct rewrite_reg_use *all, uint32_t *use, uint32_t n)
{
	uint32_t left = 0;

	for (uint32_t k = 0; k < n; k++)
		if (all[use[k]].operand)
			use[left++] = use[k];
	return left;
}

static void merge_uses(const struct dcluster *c, struct path_cache *w)
{
	const struct rewrite_reg_use *all = c->job->l->code->reg_use.at;
	uint32_t n = 0, at = 0;

	w->n = only_operands(all, w->use, w->n);
	for (uint32_t k = 0; k < w->n; k++)
		n += all[w->use[k]].nread + all[w->use[k]].nwritten;
	free(w->reg);
	w->reg = base_alloc((n + 1) * sizeof *w->reg);
	for (uint32_t k = 0; k < w->n; at += all[w->use[k++]].nread)
		memcpy(w->reg + at, all[w->use[k]].reg, all[w->use[k]].nread * sizeof *w->reg);
	w->nread = at;
	for (uint32_t k = 0; k < w->n; at += all[w->use[k++]].nwritten)
		memcpy(w->reg + at, all[w->use[k]].reg + all[w->use[k]].nread,
			all[w->use[k]].nwritten * sizeof *w->reg);
	w->nwritten = at - w->nread;
}

/* The result of rewrite_reg_uses_between(), cached by the two instructions. */
static const struct path_cache *path_between(struct dcluster *c, uint32_t from, uint32_t to)
{
	uint64_t key = ((uint64_t)from << 32 | to) + 1;
	struct path_cache *w = &c->path[(from * 31 + to) % PATHS];
	uint32_t use[4096];

	if (w->key == key)
		return w;
	w->key = key;
	w->n = rewrite_reg_uses_between(c->job->l->code, c->job->l->func, from, to, use, 4096);
	free(w->use);
	w->use = base_alloc((w->n + 1) * sizeof *w->use);
	memcpy(w->use, use, w->n * sizeof *w->use);
	if (c->job->l->coarse)
		merge_uses(c, w);
	return w;
}

static void emit_registers(struct dcluster *c, struct event *e, unsigned mode,
	const uint32_t *regs, uint32_t n)
{
	e->register_access.mode = mode;
	while (n) {
		const uint16_t some = n < UINT16_MAX ? (uint16_t)n : UINT16_MAX;

		e->register_access.regs = (struct ev_regs){ regs, some };
		emit(c, e);
		regs += some;
		n -= some;
	}
}

static void emit_reg_use(struct dcluster *c, uint32_t warp, uint32_t index, uint32_t lanes)
{
	const struct rewrite *code = c->job->l->code;
	const struct rewrite_reg_use *n = &code->reg_use.at[index];
	struct event e = record_event(c, warp, 0, EV_REGISTER_ACCESS, lanes);

	e.site = c->job->l->site[code->site.n + code->batch.n + index];
	e.register_access.move = n->insn->op == OP_mov;
	emit_registers(c, &e, MODE_READ, n->reg, n->nread);
	emit_registers(c, &e, MODE_WRITE, n->reg + n->nread, n->nwritten);
}

/* An epilogue uses each accumulator by an instruction of its own. The pre-check asks only whether
 * there is a finding, which depends on the registers and not on the instructions. */
static void emit_merged_uses(struct dcluster *c, uint32_t warp, const struct path_cache *path,
	uint32_t lanes)
{
	const struct rewrite *code = c->job->l->code;
	struct event e = record_event(c, warp, 0, EV_REGISTER_ACCESS, lanes);

	if (!path->n)
		return;
	e.site = c->job->l->site[code->site.n + code->batch.n + path->use[0]];
	emit_registers(c, &e, MODE_READ, path->reg, path->nread);
	emit_registers(c, &e, MODE_WRITE, path->reg + path->nread, path->nwritten);
}

void emit_path_uses(struct dcluster *c, uint32_t warp, const struct ptx_insn *i, uint32_t lanes)
{
	const struct rewrite_func *f = c->job->l->func;
	struct dwarp *w = &c->warp[warp];
	const struct path_cache *path;
	uint32_t to;

	if (!c->registers)
		return;
	to = (uint32_t)(i - f->func->insn);
	if (w->last_insn == to + 1)
		return;
	path = path_between(c, w->last_insn - 1, to);
	if (c->job->l->coarse)
		emit_merged_uses(c, warp, path, lanes);
	for (uint32_t k = 0; !c->job->l->coarse && k < path->n; k++)
		emit_reg_use(c, warp, path->use[k], lanes);
	if (f->reg_use_of[to])
		emit_reg_use(c, warp, f->reg_use_of[to] - 1, lanes);
	w->last_insn = to + 1;
}

/* ---- groups and waits ---- */

struct batch_info batch_of(const struct ptx_func *f, const struct ptx_insn *i)
{
	struct batch_info b = { .mma = i->op == OP_wgmma_mma_async
		|| i->op == OP_wgmma_mma_async_sp, .deep = i->op == OP_wgmma_mma_async_sp };
	int64_t imm[4] = { 1, 1, 0, 0 };
	unsigned rows, cols, depth, n = 0;
	struct plan p;

	plan_of(f, i, &p);
	b.words = (uint8_t)plan_words(&p);
	if (!b.mma)
		return b;
	b.a_regs = i->operand[1].kind == PO_VEC;
	ptx_shape(ptx_pick(i, MG_shape), &rows, &cols, &depth);
	for (unsigned k = plan_scale_d(i) + 1; k < i->noperands && n < 4; k++) {
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

/* What wgmmas read, by their descriptors: these come back with each turn of a ring of
 * buffers, so it is worked out once. Mostly of one; of several of a group, one after
 * the other, where only whether there is anything to find is asked: they are one agent
 * at one epoch, and buffers that they read as a whole are few spans. */
#define RUN_MOST 8u
#define RUN_WORDS (5 * RUN_MOST)

struct mma_pieces {
	const struct batch_info *first;
	uint32_t n;                /* number of wgmmas */
	uint32_t nwords, words[RUN_WORDS]; /* their words in the record */
	uint32_t top[RUN_MOST][2]; /* the highest piece of A and of B */
	uint16_t part[6];
	struct ev_span span[];     /* part[5] elements */
};

static uint32_t highest(const uint32_t *piece, unsigned n)
{
	uint32_t top = 0;

	for (unsigned k = 0; k < n; k++)
		top = piece[k] > top ? piece[k] : top;
	return top;
}

static uint64_t wide(const uint32_t *words)
{
	return words[0] | (uint64_t)words[1] << 32;
}

/* The pieces found so far, by part. */
struct collected {
	unsigned n[5];
	uint32_t rows[4][32 * RUN_MOST], b[1024 * RUN_MOST];
};

static void collect(const struct batch_info *m, const uint32_t *words, uint32_t top[2],
	struct collected *g)
{
	uint32_t piece[128], *b = g->b + g->n[4];
	struct wg_desc d;
	unsigned n;

	top[0] = 0;
	if (!m->a_regs) {
		d = wg_desc_decode(wide(words));
		wg_desc_pieces(&d, m->a_mn, 64, piece);
		top[0] = highest(piece, 128);
		words += 2;
	}
	for (unsigned k = 0; !m->a_regs && k < 4; k++) {
		wg_desc_rows(piece, m->a_mn, k, g->rows[k] + g->n[k]);
		g->n[k] += 32;
	}
	d = wg_desc_decode(wide(words));
	n = wg_desc_b_pieces(&d, m->b_mn, m->deep, m->n, b);
	top[1] = highest(b, n);
	g->n[4] += n;
}

/* words: of the first wgmma and those after it. */
static struct mma_pieces *find_pieces(struct mma_pieces *p, const struct batch_info *first,
	unsigned n, const uint32_t *words, unsigned nwords)
{
	unsigned most = 0, at = 0;
	struct collected *g = base_alloc(sizeof *g); /* the stack may be that of a small thread of the program */

	p = base_resize(p, sizeof *p);
	*p = (struct mma_pieces){ .first = first, .n = n, .nwords = nwords };
	memcpy(p->words, words, nwords * sizeof *words);
	for (unsigned k = 0; k < n; first++) {
		if (!first->mma)
			continue;
		collect(first, words, p->top[k++], g);
		words += first->words;
	}
	for (unsigned k = 0; k < 5; k++)
		most += g->n[k];
	p = base_resize(p, sizeof *p + most * sizeof *p->span);
	for (unsigned k = 0; k < 5; k++) {
		p->part[k] = (uint16_t)at;
		if (g->n[k])
			at += wg_desc_spans(k < 4 ? g->rows[k] : g->b, g->n[k], p->span + at);
	}
	p->part[5] = (uint16_t)at;
	free(g);
	return p;
}

static const struct mma_pieces *pieces(struct dcluster *c, const struct batch_info *first,
	unsigned n, const uint32_t *words, unsigned nwords)
{
	uint32_t h = (uint32_t)(first - c->job->batch) + n;
	struct mma_pieces **at;
	const struct mma_pieces *p;

	for (size_t k = 0; k < nwords; k++)
		h = (h ^ words[k]) * 0x9e3779b1u;
	at = &c->pieces[h >> 16 & (PIECES - 1)];
	p = *at;
	if (!p || p->first != first || p->n != n || memcmp(p->words, words, nwords * sizeof *words))
		*at = find_pieces(*at, first, n, words, nwords);
	return *at;
}

static void refused_ends(struct dcluster *c, uint32_t first, uint32_t id,
	const struct batch_info *m, const uint32_t *words, const uint32_t top[2])
{
	const struct shared_view v = record_view(c, first);
	struct refusal why;

	if ((!m->a_regs && refuse_matrix_end(&why, &v, "A", wide(words), top[0])) ||
			refuse_matrix_end(&why, &v, "B", wide(words + 2 * !m->a_regs), top[1]))
		emit_refusal(c, first, id, FULL, &why);
}

/* Compares the descriptors of the four warps, which each has in its own record. */
static void refused_different(struct dcluster *c, uint32_t first, uint32_t id,
	const struct batch_info *m, const struct record *const r[4], ptrdiff_t at)
{
	struct refusal why;

	if (cut_short(c))
		return; /* a record may be incomplete */
	for (uint32_t w = 1; r[0] && w < 4; w++) {
		const uint32_t *mine = r[w] ? r[w]->words + at : NULL, *its = r[0]->words + at;

		if (!mine || r[w]->site != r[0]->site)
			continue;
		if ((!m->a_regs && refuse_unlike(&why, "A", wide(mine), wide(its))) ||
				refuse_unlike(&why, "B", wide(mine + 2 * !m->a_regs), wide(its + 2 * !m->a_regs))) {
			emit_refusal(c, first + w, id, 1, &why);
			return;
		}
	}
}

/* How many wgmmas from this entry of the batch on belong to one group, so that one event may
 * stand for all of their reads; *nwords of the record are theirs. */
static unsigned run_of(const struct dcluster *c, const struct rewrite_site *s, uint32_t k,
	unsigned *nwords)
{
	unsigned n = 0;

	*nwords = 0;
	for (; k < s->nbatch && n < (c->job->l->coarse ? RUN_MOST : 1); k++) {
		const struct batch_info *b = &c->job->batch[s->batch + k];

		if (c->job->l->code->batch.at[s->batch + k]->op == OP_wgmma_commit_group ||
				*nwords + b->words > RUN_WORDS)
			break;
		*nwords += b->words;
		n += b->mma;
	}
	return n;
}

static void refused_run(struct dcluster *c, uint32_t first, uint32_t site, uint32_t k,
	const struct mma_pieces *p)
{
	const struct batch_info *m = p->first;
	const uint32_t *words = p->words;

	for (uint32_t i = 0; i < p->n; m++, k++) {
		if (!m->mma)
			continue;
		refused_ends(c, first, record_batch_site(c, site, k), m, words, p->top[i++]);
		words += m->words;
	}
}

/* The reads of the wgmmas from this batch entry on. Returns their number. */
static unsigned emit_reads(struct dcluster *c, uint32_t first, const struct record *r, uint32_t k,
	const uint32_t *words, struct event_wgmma *e)
{
	unsigned nwords, n = run_of(c, record_site(c, r->site), k, &nwords);
	const struct mma_pieces *p = pieces(c, &c->job->batch[record_site(c, r->site)->batch + k], n,
		words, nwords);

	refused_run(c, first, r->site, k, p);
	memcpy(e->parts.at, p->part, sizeof e->parts.at);
	e->spans = (struct ev_spans){ p->span, p->part[5] };
	return n;
}

/* The event of a wgmma, without its reads. */
static struct event mma_of(struct dcluster *c, uint32_t first, const struct record *r, uint32_t k,
	const uint32_t *words)
{
	const struct rewrite_site *s = record_site(c, r->site);
	const struct ptx_insn *i = c->job->l->code->batch.at[s->batch + k];
	const struct batch_info *m = &c->job->batch[s->batch + k];
	const struct ptx_operand *scale = &i->operand[plan_scale_d(i)];
	struct event e = record_event(c, first, r->site, EV_WGMMA, FULL);

	e.site = record_batch_site(c, r->site, k);
	e.wgmma.async_op = ++c->ops;
	words += m->a_regs ? 2 : 4;
	e.wgmma.scale_d = scale->kind == PO_IMM ? scale->imm != 0 : words[0];
	e.wgmma.shape = m->n | (uint64_t)ptx_type_of(i, 0) << 16 | (uint64_t)ptx_type_of(i, 1) << 24 |
		(uint64_t)ptx_type_of(i, 2) << 32 | (uint64_t)m->deep << 40;
	if (c->registers) {
		e.wgmma.accumulators = (struct ev_regs){ m->regs, m->nd };
		e.wgmma.fragment = (struct ev_regs){ m->regs + m->nd, m->na };
	}
	return e;
}

/* The record of a group comes after its last instruction. Did this warp write another record
 * between `i` and the last one, such as a proxy fence after wgmma.fence? The path up to there
 * contains `i`. */
static bool passed(const struct dcluster *c, uint32_t warp, const struct ptx_insn *i,
	const struct ptx_insn *last)
{
	const uint32_t n = c->warp[warp].last_insn;
	const struct ptx_insn *at = c->job->l->func->func->insn + n - 1;

	return n && at > i && at < last;
}

/* A warp that has exited does not execute the wgmma of its warpgroup. */
static void refused_exited(struct dcluster *c, uint32_t first, uint32_t id,
	const struct record *const r[4])
{
	const uint32_t left = c->info.warps_per_cta - first % c->info.warps_per_cta;
	const uint32_t join = c->warp[first + (r[0] ? 0 : r[1] ? 1 : r[2] ? 2 : 3)].joins;
	struct refusal why;

	for (uint32_t w = 0; w < 4 && w < left; w++) {
		if (r[w] || c->warp[first + w].joins > join ||
				c->warp[first + w].gone != c->warp[first + w].all)
			continue;
		refusal_set(&why, FAULT_WG_DIVERGED, SP_ANY, 0, 0, "warp %u of the warpgroup has exited", w);
		emit_refusal(c, first, id, FULL, &why);
		return;
	}
}

void decode_warpgroup(struct dcluster *c, uint32_t first, const struct record *r[4])
{
	const struct rewrite_site *s;
	struct refusal why;
	const struct record *one = r[0] ? r[0] : r[1] ? r[1] : r[2] ? r[2] : r[3];
	const uint32_t *words;
	const struct ptx_insn *last;
	unsigned read = 0; /* wgmmas from here on whose reads an event before contains */

	if (!one)
		return;
	s = record_site(c, one->site);
	words = one->words;
	if (c->stopped)
		return;
	if (refuse_group(&why, first % c->info.warps_per_cta, c->info.warps_per_cta))
		emit_refusal(c, first, s->phase == PHASE_BATCH ? record_batch_site(c, one->site, 0)
			: c->job->l->site[one->site], FULL, &why);
	refused_exited(c, first, s->phase == PHASE_BATCH ? record_batch_site(c, one->site,
		s->nbatch > 1 && c->job->l->code->batch.at[s->batch]->op == OP_wgmma_fence)
		: c->job->l->site[one->site], r);
	if (s->phase != PHASE_BATCH) {
		struct event e = record_event(c, first, one->site, EV_WGMMA_WAIT, FULL);

		for (uint32_t w = 0; w < 4; w++) {
			if (!r[w])
				continue;
			emit_path_uses(c, first + w, s->insn, FULL);
			e.wgmma_wait.warps |= 1u << w;
		}
		if (e.wgmma_wait.warps == 15)
			e.wgmma_wait.warps = 0;
		e.wgmma_wait.pending = (uint32_t)s->insn->operand[0].imm;
		emit(c, &e);
		return;
	}
	last = c->job->l->code->batch.at[s->batch + s->nbatch - 1];
	for (uint32_t k = 0; k < s->nbatch; k++) {
		const struct ptx_insn *i = c->job->l->code->batch.at[s->batch + k];
		const struct batch_info *b = &c->job->batch[s->batch + k];
		struct event e;

		for (uint32_t w = 0; w < 4; w++)
			if (r[w] && !passed(c, first + w, i, last))
				emit_path_uses(c, first + w, i, FULL);
		if (b->mma) {
			e = mma_of(c, first, one, k, words);
			refused_different(c, first, e.site, b, r, words - one->words);
			if (!read)
				read = emit_reads(c, first, one, k, words, &e.wgmma);
			read -= read > 0;
			emit(c, &e);
			words += b->words;
			continue;
		}
		for (uint32_t w = 0; w < 4; w++) {
			const bool fence = i->op == OP_wgmma_fence;

			if (!r[w] || (w && !fence))
				continue;
			e = record_event(c, first + w, one->site, fence ? EV_WGMMA_FENCE : EV_WGMMA_COMMIT, FULL);
			e.site = record_batch_site(c, one->site, k);
			emit(c, &e);
		}
	}
}
