/* decode: instructions to dense ops, through the table of decoders. Functions are placed callees
 * first, and their blocks in the order of the control-flow graph, so that the lanes with the lowest
 * pc are those that the others wait for. */
#include "libconsan/ptx/opcodes.h"
#include "libconsan/ptx/ptx.h"
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "simd.h"
#include "tcgen05_regs.h"

typedef bool (*decode_fn)(struct decoder *d, const struct ptx_insn *i, struct xop *x);

/* ---- the table of decoders: ops.def against ptx.def ---- */

enum { WHERE_PLAIN, WHERE_SIMD, WHERE_NONE };

/* a row of ops.def that is missing or duplicated in ptx.def fails to compile here */
#define ROW(id, where, why) ROW_##id = OP_##id,
enum {
#include "ops.def"
};
#undef ROW
#define ROW(id, where, why) + 1
_Static_assert(1
#include "ops.def"
	== OP_COUNT, "ops.def needs one line for every row of ptx.def");
#undef ROW

#define DECLARE_PLAIN(id) bool dec_##id(struct decoder *, const struct ptx_insn *, struct xop *);
#define DECLARE_SIMD(id) \
	bool dec_##id##_avx2(struct decoder *, const struct ptx_insn *, struct xop *); \
	bool dec_##id##_avx512(struct decoder *, const struct ptx_insn *, struct xop *);
#define DECLARE_NONE(id)
#define ROW(id, where, why) DECLARE_##where(id)
#include "ops.def"
#undef ROW

#define NAME_PLAIN(id) dec_##id, dec_##id
#define NAME_SIMD(id) dec_##id##_avx2, dec_##id##_avx512
#define NAME_NONE(id) NULL, NULL
static const struct decode_row {
	decode_fn avx2, avx512;
	const char *why; /* reason if not supported */
} rows[OP_COUNT] = {
#define ROW(id, where, why) [OP_##id] = { NAME_##where(id), why },
#include "ops.def"
#undef ROW
};

enum reg_class dec_class(enum ptx_type t)
{
	if (t == TY_pred)
		return RC_PRED;
	return reg_class_of(ptx_type_bits(t) == 1 ? 8 : ptx_type_bits(t));
}

enum reg_class reg_class_of(unsigned bits)
{
	return bits == 1 ? RC_PRED : bits <= 16 ? RC_16 : bits <= 32 ? RC_32
		: bits <= 64 ? RC_64 : RC_128;
}

unsigned reg_class_bytes(enum reg_class c)
{
	static const unsigned bytes[RC_COUNT] = { 4, 64, 128, 256, 512 };

	return bytes[c];
}

unsigned reg_class_stride(enum reg_class c)
{
	const unsigned bytes = reg_class_bytes(c);

	return SLOT_GAP ? ((bytes + 63) & ~63u) + SLOT_GAP : bytes;
}

/* ---- unsupported instructions ---- */

enum step ex_refuse_op(struct warp *w, const struct xop *x, const char *fmt, ...)
{
	const struct site *s = site_get(x->site);
	char text[400], why[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	snprintf(text, sizeof text, "%s line %u: %.120s: %s", s->module ? s->module : "",
		s->ptx_line, s->ptx ? s->ptx : "", why);
	w->cluster->stop = true;
	grid_fail(w->worker->grid, w->cluster->info.id, EXEC_UNSUPPORTED, x->site, text);
	return STEP_FAULT;
}

static enum step op_unsupported(struct warp *w, const struct xop *x, uint32_t lanes)
{
	(void)lanes;
	return ex_refuse_op(w, x, "%s", w->worker->grid->k->why[x->i.u]);
}

bool dec_load_is_read(const struct decoder *d, const struct ptx_insn *i)
{
	return ptx_load_is_read(d->fn->f, i);
}

bool dec_unsupported(struct decoder *d, const char *fmt, ...)
{
	va_list ap;

	if (!d->failed) {
		va_start(ap, fmt);
		vsnprintf(d->why, sizeof d->why, fmt, ap);
		va_end(ap);
	}
	d->failed = true;
	return false;
}

/* ---- functions ---- */

static void refuse(struct decoder *d, struct xop *x)
{
	struct exec_kernel *k = d->k;
	struct exec_kernel_info *info = &k->info;

	x->fn = op_unsupported;
	x->pure = false;
	k->why = base_resize(k->why, (k->nwhy + 1) * sizeof *k->why);
	memcpy(k->why[k->nwhy], d->why, sizeof d->why);
	x->i.u = k->nwhy++;
	info->nunsupported++;
	if (!info->first_unsupported)
		info->first_unsupported = d->insn;
}

static uint32_t site_of(const struct decoder *d, const struct ptx_insn *i)
{
	const struct ptx_func *f = d->fn->f;
	uint32_t **site = &d->k->module->site[f - d->k->module->ptx->func];

	if (!*site)
		*site = base_alloc(f->ninsn * sizeof **site);
	if (!(*site)[i - f->insn])
		(*site)[i - f->insn] = ptx_site_add(f, i);
	return (*site)[i - f->insn];
}

static void decode_insn(struct decoder *d, const struct ptx_insn *i, const uint8_t *wgmma,
	const struct tmem_regs *tmem)
{
	const struct decode_row *row = &rows[i->op];
	decode_fn fn = d->avx512 ? row->avx512 : row->avx2;
	struct xop x = { .guard = SLOT_TRUE, .site = site_of(d, i) };
	struct reg_access *moved;
	struct xop bare;

	d->insn = i;
	d->failed = false;
	if (i->guard != PTX_NO_REG) {
		struct ptx_operand g = { .kind = PO_REG, .reg = i->guard };

		x.guard = dec_src(d, &g, TY_pred);
		x.negated = i->guard_negated;
	}
	moved = wgmma_regs_before(d, i, wgmma, &x);
	tmem_regs_before(d, i, tmem, &x);
	bare = x;
	if (!fn) {
		dec_unsupported(d, "%s", i->op == OP_unknown
			? "not a PTX instruction that consan knows"
			: row->why);
		refuse(d, &x);
	} else if (!fn(d, i, &x) || d->failed) {
		x = bare;
		refuse(d, &x);
	} else if (moved) {
		x.run = NULL;
		wgmma_regs_move(&x, moved);
	}
	if (i->guard != PTX_NO_REG && x.run != run_jump)
		x.run = NULL;
	vec_push(&d->code, x);
	vec_push(&d->insn_of, i);
	vec_push(&d->func_of, d->fn->f);
}

static void add_jump(struct decoder *d, uint32_t insn)
{
	struct xop *x = dec_before(d, op_jump);

	x->run = run_jump;
	x->i.u = insn;
	vec_push(&d->fixup, (uint32_t)d->code.n - 1);
}

void dec_branch(struct decoder *d, struct xop *x, uint32_t insn)
{
	x->i.u = insn;
	vec_push(&d->fixup, (uint32_t)d->code.n); /* index of x, which is appended next */
}

static void decode_function(struct decoder *d, struct kfunc *fn)
{
	const struct ptx_func *f = fn->f;
	const struct ptx_cfg *cfg = f->cfg;
	struct tmem_regs tmem;
	uint8_t *wgmma;

	d->fn = fn;
	d->fixup.n = 0;
	d->pc_of = base_alloc((f->ninsn + 1) * sizeof *d->pc_of);
	wgmma = wgmma_regs(f);
	tmem = tmem_regs_find(f);
	fn->entry_pc = (uint32_t)d->code.n;
	/* lanes enter at the top, wherever the first block was placed */
	if (cfg->nblock && cfg->block[cfg->order[0]].first != 0)
		add_jump(d, 0);
	for (size_t k = 0; k < cfg->nblock; k++) {
		const struct ptx_block *b = &cfg->block[cfg->order[k]];
		uint32_t next = k + 1 < cfg->nblock ? cfg->block[cfg->order[k + 1]].first
			: (uint32_t)f->ninsn;

		for (uint32_t i = b->first; i < b->end; i++) {
			d->pc_of[i] = (uint32_t)d->code.n;
			decode_insn(d, &f->insn[i], wgmma, &tmem);
		}
		if (b->end > b->first && b->end != next && dec_falls_through(&f->insn[b->end - 1]))
			add_jump(d, b->end);
	}
	d->pc_of[f->ninsn] = (uint32_t)d->code.n;
	dec_before(d, f == d->k->func ? op_exit : op_ret)->i.p = fn;
	for (size_t i = 0; i < d->fixup.n; i++) {
		struct xop *x = &d->code.at[d->fixup.at[i]];

		if (x->fn == op_brx)
			dec_brx_targets(d, x);
		else
			x->i.u = d->pc_of[x->i.u];
	}
	free(d->pc_of);
	free(wgmma);
	tmem_regs_free(&tmem);
}

static void *keep(struct exec_kernel *k, const void *at, size_t bytes)
{
	void *to = arena_alloc(&k->arena, bytes ? bytes : 1);

	if (bytes)
		memcpy(to, at, bytes);
	return to;
}

static void fill_info(struct decoder *d)
{
	struct exec_kernel *k = d->k;
	struct exec_kernel_info *n = &k->info;
	const struct ptx_func *f = k->func;
	uint64_t max = 1;

	for (unsigned i = 0; i < 3; i++)
		max *= f->reqntid[i] ? f->reqntid[i] : f->maxntid[i] ? f->maxntid[i] : 1;
	n->name = f->name;
	n->func = f;
	n->shared_static = d->shared_end;
	n->local_bytes = k->local_stack;
	n->const_bytes = (uint32_t)k->module->const_bytes;
	n->param_bytes = (uint32_t)f->param_bytes;
	n->max_threads = max > 1 ? (uint32_t)max : 1024;
	if (n->max_threads > 1024)
		n->max_threads = 1024;
	n->nregs = 16;
	n->nregs_known = k->module->nregs[f - k->module->ptx->func] != 0;
	if (n->nregs_known) {
		n->nregs = k->module->nregs[f - k->module->ptx->func];
	} else if (f->maxnreg) {
		n->nregs = f->maxnreg;
	} else if (k->nfn) {
		const struct kfunc *e = &k->fn[k->nfn - 1];
		uint32_t most = ex_regs_within(n->max_threads, f->minnctapersm ? f->minnctapersm : 1);

		n->nregs = e->n[RC_32] + 2 * e->n[RC_64] + e->n[RC_16] / 2 + 8;
		if (n->nregs > most && max > 1)
			n->nregs = most;
		if (n->nregs > 255)
			n->nregs = 255;
		if (n->nregs * n->max_threads > 65536) /* what ptxas does without a bound: 64
							  registers fit 1024 threads */
			n->nregs = ex_regs_within(n->max_threads, 1);
	}
}

/* Does the instruction couple clusters? A relaxed atomic whose result no instruction reads does only
 * if some fence can make an acquire of it, as compilers emit one for each reduction. */
static void observe(const struct ptx_func *f, const struct ptx_insn *i, bool *coupled, bool *unread,
	bool *fence)
{
	const bool relaxed = i->op == OP_atom && !sem_acquires(ptx_sem_of(i, SEM_RELAXED))
		&& ptx_result_unread(f, i);

	*fence |= i->op == OP_fence || i->op == OP_membar || ptx_effect_of(i->op) == EF_UNKNOWN;
	if (ptx_observes(i))
		*(relaxed ? unread : coupled) = true;
}

static enum exec_function function_called(const struct ptx_insn *i)
{
	const bool call = i->op == OP_call && i->noperands && i->operand[0].kind == PO_FUNC
		&& i->operand[0].func;

	return call ? runtime_function(i->operand[0].func->name) : RUNTIME_FUNCTIONS;
}

/* Which grids run as part of this one? */
static void note_launches(struct exec_kernel_info *to, const struct ptx_insn *i)
{
	const enum exec_function f = function_called(i);

	to->launches_graphs |= f == RUNTIME_GraphLaunch;
	to->launches_grids |= f == RUNTIME_LaunchDevice || f == RUNTIME_LaunchDeviceV2;
}

static struct exec_kernel *decode(struct exec_module *m, const struct ptx_func *f)
{
	struct arena arena = { 0 };
	struct exec_kernel *k = arena_alloc(&arena, sizeof *k);
	struct decoder d = { .k = k, .avx512 = simd_level() == SIMD_512 };
	bool unread = false, fence = false;

	k->least_inc = UINT32_MAX;
	k->arena = arena;
	k->module = m;
	k->func = f;
	layout_functions(k);
	d.const_at = k->reg_bytes;
	layout_shared(&d);
	k->info.apart = true;
	for (size_t i = 0; i < k->nfn; i++) {
		const struct ptx_func *fn = k->fn[i].f;

		k->info.ninsn += (uint32_t)fn->ninsn;
		for (size_t n = 0; n < fn->ninsn; n++) {
			k->fills_sm |= fn->insn[n].op == OP_tcgen05_alloc;
			k->info.tensor |= ptx_effect_of(fn->insn[n].op) == EF_TCGEN05;
			k->info.apart &= !ptx_hands_over(&fn->insn[n]);
			observe(fn, &fn->insn[n], &k->info.coupled, &unread, &fence);
			note_launches(&k->info, &fn->insn[n]);
			k->info.polls_shared |= ptx_polls_shared(&fn->insn[n]);
			k->info.takes_locks = k->info.takes_locks || ptx_takes_lock(fn, &fn->insn[n]);
			k->info.polls = k->info.polls
				|| (ptx_observes(&fn->insn[n]) && ptx_is_polled(fn, &fn->insn[n]));
		}
		decode_function(&d, &k->fn[i]);
	}
	k->info.coupled |= unread && fence;
	k->reg_bytes = (d.const_at + 63) & ~63u;
	k->entry_pc = k->fn[k->nfn - 1].entry_pc;
	k->ncode = d.code.n;
	k->code = arena_alloc(&k->arena, d.code.n * sizeof *k->code + 64);
	k->code = (struct xop *)(((uintptr_t)k->code + 63) & ~(uintptr_t)63);
	memcpy(k->code, d.code.at, d.code.n * sizeof *k->code);
	for (size_t i = 0; i < k->ncode; i++)
		if (!k->code[i].run)
			k->code[i].run = run_step;
	k->insn_of = keep(k, d.insn_of.at, d.insn_of.n * sizeof *k->insn_of);
	k->func_of = keep(k, d.func_of.at, d.func_of.n * sizeof *k->func_of);
	k->konst = keep(k, d.konst.at, d.konst.n * sizeof *k->konst);
	k->nkonst = d.konst.n;
	k->symbol = keep(k, d.symbol.at, d.symbol.n * sizeof *k->symbol);
	k->nsymbol = d.symbol.n;
	if (k->nwhy) {
		void *kept = keep(k, k->why, k->nwhy * sizeof *k->why);

		free(k->why);
		k->why = kept;
	}
	fill_info(&d);
	k->info.symbols = k->symbol;
	k->info.nsymbols = k->nsymbol;
	vec_free(&d.code);
	vec_free(&d.insn_of);
	vec_free(&d.func_of);
	vec_free(&d.konst);
	vec_free(&d.symbol);
	vec_free(&d.shared_var);
	vec_free(&d.shared_at);
	vec_free(&d.fixup);
	free(d.const_hash);
	return k;
}

const struct exec_kernel *exec_kernel(struct exec_module *m, const char *name, struct consan_err *e)
{
	const struct ptx_func *f = ptx_find(m->ptx, name);
	struct exec_kernel **k;

	if (!f || !f->entry || !f->cfg) {
		err_set(e, CONSAN_ERR_PTX_SYMBOL, 0, 0, "no kernel %s in %s", name, m->ptx->name);
		return NULL;
	}
	if (simd_missing()) {
		err_set(e, CONSAN_ERR_UNSUPPORTED, 0, 0, "%s", simd_missing());
		return NULL;
	}
	k = &m->kernel[f - m->ptx->func];
	pthread_mutex_lock(&m->lock);
	if (!*k)
		*k = decode(m, f);
	pthread_mutex_unlock(&m->lock);
	return *k;
}

void exec_kernel_info(const struct exec_kernel *k, struct exec_kernel_info *out)
{
	*out = k->info;
}
