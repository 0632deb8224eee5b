/* statement: writes one statement of a function that records, and the hooks around it: under
 * its guard, around a call, behind a group of wgmma. plan.c decides what is recorded, hook.c
 * prints the record.
 *
 * Between wgmma.fence and wgmma.commit_group no code is inserted, as ptxas would serialize the
 * group. The operands are kept in registers, and one record for the whole group is written
 * after its commit. */
#include "statement.h"

#include <string.h>

#include "entry.h"
#include "external.h"
#include "hook.h"
#include "inflight.h"
#include "operands.h"
#include "ticket.h"
#include "libconsan/ptx/opcodes.h"
#include "conflict.h"

static uint32_t add_site(struct writer *w, const struct ptx_insn *i, enum site_phase phase)
{
	struct rewrite_site s = { .func = w->f, .insn = i, .phase = (uint8_t)phase };

	vec_push(&w->r->site, s);
	return (uint32_t)w->r->site.n - 1;
}

/* Loads all values of a plan into prefix<first> and following. */
static void values(struct writer *w, const struct plan *p, const char *prefix, unsigned first)
{
	operands_values(&(struct operands){ &w->out, w->r, w->f }, p, prefix, first);
}

/* Begins the code around an instruction: declares the registers, and loads what will be recorded. */
static void begin_hook(struct writer *w, const struct ptx_insn *i, const struct plan *p)
{
	text_printf(&w->out, "{\n");
	hook_registers(&w->out, plan_words(p) + p->conflicts);
	values(w, p, "%cs_v", 0);
	operands_tile(&(struct operands){ &w->out, w->r, w->f }, i, p);
	if (p->conflicts)
		conflict_values(&w->out, w->f, i, plan_words(p));
}

static void write_original(struct writer *w, const struct ptx_insn *i)
{
	const char *text = w->f->module->text + i->text_at, *at;

	w->inflight = inflight_after(i, w->inflight);
	if (ticket_ends(i))
		hook_forget_ticket(&w->out);
	if (external_statement(&w->out, w->r, w->f, i))
		return;
	at = w->r->emulated && i->op == OP_mbarrier_try_wait && i->noperands == 3
		? memmem(text, i->text_len, "try_wait", 8) : NULL;
	if (at) {
		text_printf(&w->out, "\t%.*stest_wait%.*s;\n", (int)(at - text), text,
			(int)(i->text_len - 8 - (size_t)(at - text)), at + 8);
		return;
	}
	text_printf(&w->out, "\t%.*s;\n", (int)i->text_len, w->f->module->text + i->text_at);
}

/* Is it here that lanes of a warp wait for the others, or end? Lanes may come here while others are still in
 * a loop: ptxas lets lanes that wait behind a loop go on (YIELD). It keeps the registers of the warp that
 * the loop needs from the code that those lanes execute, but not from the functions that this code calls.
 * So the record is written in place. Seen on an H200 with a function: the upper half of the address that
 * one thread polled was 0, as a function that the other lanes called before bar.sync had overwritten it. */
static bool ends_divergence(const struct rewrite_site *s)
{
	switch (ptx_effect_of(s->insn->op)) {
	case EF_BARRIER: case EF_WARP_SYNC: case EF_CLUSTER:
		return s->phase == PHASE_BEFORE;
	default:
		return rewrite_leaves(s->insn);
	}
}

static void write_words(struct writer *w, const struct plan *p, unsigned words, uint32_t site)
{
	struct hook h = { .site = site, .class = (enum plan_class)p->class, .words = words,
		.prefix = "%cs_v", .sync = p->sync, .elected = p->elected,
		.often_uniform = p->test || p->uniform, .label = w->labels++,
		.module = w->r->number, .reserve = w->reserve, .always = w->r->external,
		.in_place = w->inflight || ends_divergence(&w->r->site.at[site]), .functions = w->functions,
		.drains = w->r->drains };

	if (p->conflicts)
		h.conflict = (struct conflict){ p->conflicts, w->f, w->r->site.at[site].insn };
	h.earlier = p->sync && w->r->site.at[site].phase == PHASE_BEFORE &&
		ticket_may_be_earlier(w->r->site.at[site].insn);
	h.exits = w->r->site.at[site].phase == PHASE_BEFORE &&
		rewrite_leaves(w->r->site.at[site].insn);
	hook_record(&w->out, &h);
	if (w->tests && p->sync && !p->test) /* after a synchronization, a wait that fails again
						is recorded again */
		text_printf(&w->out, "\tmov.b32 %%cs_failed, 0;\n");
	if (w->polls && !p->poll)  /* after any other record, the same value may have been stored
				      again */
		text_printf(&w->out, "\tmov.b32 %%cs_polled, 0;\n");
}

static void write_record(struct writer *w, const struct plan *p, uint32_t site)
{
	write_words(w, p, plan_words(p), site);
}

/* Lanes that do not execute the instruction, or not on shared memory, skip its record. */
static bool some_skip(const struct ptx_insn *i, const struct plan *p)
{
	return i->guard != PTX_NO_REG || p->generic;
}

static void skip_unless_guard(struct writer *w, const struct ptx_insn *i, const struct plan *p,
	unsigned label)
{
	if (some_skip(i, p))
		text_printf(&w->out, "\tactivemask.b32 %%cs_together;\n");
	if (i->guard != PTX_NO_REG)
		text_printf(&w->out, "\t@%s%s bra $CSE%u;\n", i->guard_negated ? "" : "!",
			operand_name(w->f, i->guard), label);
	if (p->generic)
		text_printf(&w->out, "\t@!%%cs_g bra $CSE%u;\n", label);
}

/* A guard does not make lanes diverge, so those that skipped a record wait for the others: else they might
 * be the first to execute what follows, seen on an H200 as exits before a guarded arrival. */
static void end_of_skip(struct writer *w, const struct ptx_insn *i, const struct plan *p, unsigned label)
{
	text_printf(&w->out, "$CSE%u:\n", label);
	if (some_skip(i, p))
		text_printf(&w->out, "\tbar.warp.sync %%cs_together;\n");
}

/* The record of a token, where its instruction is executed. */
static void write_token(struct writer *w, const struct ptx_insn *i)
{
	struct plan p;

	if (!plan_token_of(w->f, i, &p))
		return;
	begin_hook(w, i, &p);
	write_record(w, &p, add_site(w, i, PHASE_TOKEN));
	text_printf(&w->out, "}\n");
}

/* A wait: each success is recorded, and the first of several failures in a row. %cs_failed has a
 * bit for each wait, so that lanes that poll several in turn record each of them once; waits that
 * share a bit are recorded as one. */
static void write_test(struct writer *w, const struct ptx_insn *i, const struct plan *p)
{
	unsigned label = w->labels++;
	uint32_t yes = add_site(w, i, PHASE_AFTER), no = add_site(w, i, PHASE_FAILED);
	const uint32_t bit = UINT32_C(1) << w->r->waits++ % 32;
	struct plan no_ticket = *p;

	skip_unless_guard(w, i, p, label);
	text_printf(&w->out, "\t@!%s bra $CSF%u;\n", operand_name(w->f, i->operand[0].reg), label);
	write_token(w, i);
	write_record(w, p, yes);
	text_printf(&w->out, "\tmov.b32 %%cs_failed, 0;\n\tbra $CSE%u;\n$CSF%u:\n"
		"\tand.b32 %%cs_t, %%cs_failed, %u;\n\tsetp.ne.u32 %%cs_q, %%cs_t, 0;\n"
		"\t@%%cs_q bra $CSE%u;\n", label, label, bit, label);
	no_ticket.sync = false;
	write_token(w, i);
	write_record(w, &no_ticket, no);
	text_printf(&w->out, "\tor.b32 %%cs_failed, %%cs_failed, %u;\n", bit);
	end_of_skip(w, i, p, label);
}

/* A strong load in a polling loop is recorded if it loads another value than before, or if
 * anything else was recorded in between, as the same value may then have been stored again. */
static void skip_repeated(struct writer *w, const struct ptx_insn *i, uint32_t site, unsigned label)
{
	const uint32_t reg = i->operand[0].reg;
	unsigned bits = operand_bits(w->f, reg);
	struct text *t = &w->out;

	if (bits > 64)
		return;
	text_printf(t, "\t{ .reg .b32 %%cs_a; .reg .b64 %%cs_f;\n");
	if (bits == 64)
		text_printf(t, "\tmov.b64 %%cs_f, %s;\n", operand_name(w->f, reg));
	else if (bits == 32)
		text_printf(t, "\tmov.b32 %%cs_a, %s;\n\tcvt.u64.u32 %%cs_f, %%cs_a;\n",
			operand_name(w->f, reg));
	else
		text_printf(t, "\tcvt.u64.u16 %%cs_f, %s;\n", operand_name(w->f, reg));
	text_printf(t, "\tadd.u32 %%cs_a, %%cs_v0, %u;\n"
		"\tsetp.eq.u32 %%cs_q, %%cs_a, %%cs_polled;\n"
		"\tsetp.eq.and.u64 %%cs_q, %%cs_f, %%cs_seen, %%cs_q;\n"
		"\tmov.b32 %%cs_polled, %%cs_a;\n\tmov.b64 %%cs_seen, %%cs_f;\n\t}\n"
		"\t@%%cs_q bra $CSE%u;\n", site * 0x9e3779b1u, label);
}

/* The ticket behind a relaxed atomic must not be drawn before the GPU has performed it: waits for its
 * result, by a branch that is never taken, as cs_zero is 0. */
static void await_result(struct writer *w, const struct ptx_insn *i, unsigned label)
{
	const struct ptx_operand *o = &i->operand[0];
	const unsigned bits = o->kind == PO_REG ? operand_bits(w->f, o->reg) : 0;

	if (bits != 32 && bits != 64)
		return;
	text_printf(&w->out, bits == 64 ? "\tmov.b64 {%%cs_t, %%cs_u}, %s;\n" : "\tmov.b32 %%cs_t, %s;\n",
		operand_name(w->f, o->reg));
	text_printf(&w->out, "\tand.b32 %%cs_t, %%cs_t, %%cs_zero;\n\tsetp.ne.u32 %%cs_q, %%cs_t, 0;\n"
		"\t@%%cs_q bra $CSE%u;\n", label);
}

/* The record of an instruction's global side. Its caller loads the address before all other records, as the
 * statement may overwrite it. */
static void write_global(struct writer *w, const struct ptx_insn *i, const struct plan *p,
	enum site_phase phase)
{
	unsigned label = w->labels++;
	uint32_t site = add_site(w, i, phase);

	skip_unless_guard(w, i, p, label);
	if (phase == PHASE_GLOBAL_AFTER)
		await_result(w, i, label);
	if (p->poll)
		skip_repeated(w, i, site, label);
	write_record(w, p, site);
	end_of_skip(w, i, p, label);
}

/* A wait for another CTA's mbarrier, which the ISA does not allow: the hardware may not return
 * from it, so it is recorded before. */
static void write_remote_wait(struct writer *w, const struct ptx_insn *i, const struct plan *p)
{
	unsigned label = w->labels++;
	struct plan no_ticket = *p;

	text_printf(&w->out, "\tmov.u32 %%cs_t, %%cluster_ctarank;\n"
		"\tshr.u32 %%cs_u, %%cs_v0, 24;\n"
		"\tsetp.ne.u32 %%cs_g, %%cs_t, %%cs_u;\n");
	no_ticket.generic = true;
	skip_unless_guard(w, i, &no_ticket, label);
	no_ticket.sync = false;
	write_record(w, &no_ticket, add_site(w, i, PHASE_REMOTE));
	end_of_skip(w, i, &no_ticket, label);
}

static void write_hooked(struct writer *w, const struct ptx_insn *i, const struct plan *p)
{
	struct plan returned;
	unsigned label;

	begin_hook(w, i, p);
	if (p->before || p->waits) {
		struct plan before = *p;

		before.sync = p->before && p->sync;
		label = w->labels++;
		skip_unless_guard(w, i, p, label);
		write_record(w, &before, add_site(w, i, p->before ? PHASE_BEFORE : PHASE_FAILED));
		end_of_skip(w, i, p, label);
	}
	if (p->remote && w->r->module->sm >= 90)
		write_remote_wait(w, i, p);
	write_original(w, i);
	if (p->test) {
		write_test(w, i, p);
	} else if (plan_token_of(w->f, i, &returned)) {
		label = w->labels++;
		skip_unless_guard(w, i, p, label);
		write_token(w, i);
		end_of_skip(w, i, p, label);
	} else if (p->after) {
		uint32_t site = add_site(w, i, PHASE_AFTER);

		label = w->labels++;
		skip_unless_guard(w, i, p, label);
		if (p->poll)
			skip_repeated(w, i, site, label);
		operands_loaded(&(struct operands){ &w->out, w->r, w->f }, p);
		write_record(w, p, site);
		end_of_skip(w, i, p, label);
	}
	text_printf(&w->out, "}\n");
	w->info->recorded++;
}

/* mapa is recorded only if its rank or address is invalid. */
static void write_mapa(struct writer *w, const struct ptx_insn *i, const struct plan *p)
{
	const struct ptx_operand *rank = &i->operand[2];
	struct plan bad = *p;
	unsigned label = w->labels++;
	struct text *t = &w->out;

	begin_hook(w, i, p);
	text_printf(t, "\tmov.u32 %%cs_t, %%cluster_nctarank;\n\tmov.b32 %%cs_u, ");
	if (rank->kind == PO_IMM)
		text_printf(t, "%lld;\n", (long long)rank->imm);
	else
		text_printf(t, "%%cs_v%u;\n", plan_words(p) - 1);
	text_printf(t, p->window ? "\tsetp.ge.or.u32 %%cs_g, %%cs_u, %%cs_t, !%%cs_g;\n"
		: "\tsetp.ge.u32 %%cs_g, %%cs_u, %%cs_t;\n");
	bad.generic = true;
	skip_unless_guard(w, i, &bad, label);
	write_record(w, p, add_site(w, i, PHASE_RANK));
	end_of_skip(w, i, &bad, label);
	text_printf(t, "}\n");
	write_original(w, i);
}

/* A warp collective of the same lanes as the one recorded last: that record stands for both. */
static bool repeats_collective(struct writer *w, uint32_t at, const struct plan *p)
{
	const struct ptx_insn *i = &w->f->insn[at], *first;

	if (!w->collective || !p->collective || p->nvalues || i->guard != PTX_NO_REG ||
			w->f->cfg->block_of[at] != w->collective_block)
		return false;
	first = w->r->site.at[w->collective].insn;
	if (first->guard != PTX_NO_REG || plan_mask(first)->imm != plan_mask(i)->imm)
		return false;
	vec_push(&w->r->batch, i);
	w->r->site.at[w->collective].nbatch++;
	w->group = (uint32_t)w->r->batch.n;
	write_original(w, i);
	return true;
}

static void write_collective(struct writer *w, uint32_t at, const struct plan *p)
{
	uint32_t site = (uint32_t)w->r->site.n;

	write_hooked(w, &w->f->insn[at], p);
	if (p->nvalues)
		return;
	w->r->site.at[site].batch = (uint32_t)w->r->batch.n;
	w->collective = site;
	w->collective_block = w->f->cfg->block_of[at];
}

void statement_mark_path(struct writer *w, const struct ptx_insn *i)
{
	struct plan nothing = { 0 };

	w->inflight = w->inflight_at && w->inflight_at[i - w->f->insn];
	text_printf(&w->out, "{\n");
	hook_registers(&w->out, 0);
	write_record(w, &nothing, add_site(w, i, PHASE_PATH));
	text_printf(&w->out, "}\n");
	w->collective = 0;
}

/* ---- groups of wgmma ---- */

/* A record must fit into a chunk. */
#define GROUP_WORDS 900

static bool commit_follows(const struct ptx_func *f, size_t at)
{
	const struct ptx_cfg *c = f->cfg;
	uint32_t end = c->block[c->block_of[at]].end;

	for (size_t k = at; k < end; k++)
		if (f->insn[k].op == OP_wgmma_commit_group)
			return f->insn[k].guard == PTX_NO_REG;
	return false;
}

bool statement_ends_group(const struct ptx_func *f, size_t at, unsigned words)
{
	const struct ptx_insn *i = &f->insn[at];

	return i->op == OP_wgmma_commit_group || i->guard != PTX_NO_REG || words > GROUP_WORDS
		|| !commit_follows(f, at);
}

static void end_group(struct writer *w, const struct ptx_insn *i)
{
	struct hook h = { .class = PLAN_UNIFORM, .words = w->words, .prefix = "%cs_w",
		.label = w->labels++, .module = w->r->number, .pending = true,
		.in_place = true, .always = w->r->external, .drains = w->r->drains };
	struct rewrite_site *s;

	h.site = add_site(w, i, PHASE_BATCH);
	s = &w->r->site.at[h.site];
	s->batch = w->group;
	s->nbatch = (uint32_t)w->r->batch.n - w->group;
	text_printf(&w->out, "{\n");
	hook_registers(&w->out, 0);
	hook_record(&w->out, &h);
	text_printf(&w->out, "}\n");
	if (w->most_words < w->words)
		w->most_words = w->words;
	w->words = 0;
	w->group = (uint32_t)w->r->batch.n;
}

static void write_wgmma(struct writer *w, uint32_t at, const struct plan *p)
{
	const struct ptx_insn *i = &w->f->insn[at];

	values(w, p, "%cs_w", w->words);
	w->words += plan_words(p);
	vec_push(&w->r->batch, i);
	write_original(w, i);
	w->info->recorded++;
	if (statement_ends_group(w->f, at, w->words))
		end_group(w, i);
}

/* ---- calls ---- */

/* Records an indirect call whose target is none of this module's functions: what such a
 * function does is not known. */
static void write_target_check(struct writer *w, const struct ptx_insn *i)
{
	const struct ptx_module *m = w->r->module;
	const char *target = operand_name(w->f, i->operand[0].reg), *with = "";
	struct plan nothing = { 0 };
	unsigned label = w->labels++;

	text_printf(&w->out, "{\n");
	hook_registers(&w->out, 0);
	skip_unless_guard(w, i, &nothing, label);
	for (size_t k = 0; k < m->nfunc; k++) {
		if (!w->calls->address_taken[k])
			continue;
		text_printf(&w->out, "\tmov.b64 %%cs_e, %s;\n"
			"\tsetp.eq%s.u64 %%cs_q, %%cs_e, %s%s;\n",
			m->func[k].name, with, target, *with ? ", %cs_q" : "");
		with = ".or";
	}
	if (*with)
		text_printf(&w->out, "\t@%%cs_q bra $CSE%u;\n", label);
	write_record(w, &nothing, add_site(w, i, PHASE_FOREIGN));
	end_of_skip(w, i, &nothing, label);
	text_printf(&w->out, "}\n");
}

static void write_call(struct writer *w, const struct ptx_insn *i)
{
	if (!calls_takes_state(w->calls, i)) {
		write_original(w, i);
		return;
	}
	w->collective = 0;
	if (w->group < w->r->batch.n)
		end_group(w, w->r->batch.at[w->r->batch.n - 1]);
	if (calls_indirect(i))
		write_target_check(w, i);
	text_printf(&w->out, "{\n\t.param .b64 " CALLS_PARAM "_to;\n");
	hook_save_state(&w->out, w->polls);
	text_printf(&w->out, "\tst.param.b64 [" CALLS_PARAM "_to], %%cs_at;\n");
	calls_statement(&w->out, w->f, i, CALLS_PARAM "_to");
	hook_load_state(&w->out, w->polls);
	hook_forget_ticket(&w->out);
	text_printf(&w->out, w->polls ? "\tmov.b32 %%cs_polled, 0;\n}\n" : "}\n");
}

void statement_save_state(struct writer *w)
{
	if (w->state == STATE_PASSED)
		hook_save_state(&w->out, w->polls);
}

/* ---- all statements ---- */

/* Some unrecorded instructions have effects by which other threads may store a polled value
 * again. */
static void write_unrecorded(struct writer *w, const struct ptx_insn *i, bool global)
{
	write_original(w, i);
	if (w->polls && entry_has_effect(i) && !global)
		text_printf(&w->out, "\tmov.b32 %%cs_polled, 0;\n");
}

/* A call of malloc or free, around the instruction that loads the result or stores the argument. */
static void write_heap(struct writer *w, const struct ptx_insn *i, const struct ptx_insn *call)
{
	struct plan p;

	if (i > call)
		write_original(w, i);
	if (plan_global_of(w->f, call, &p)) {
		begin_hook(w, call, &p);
		write_global(w, call, &p, PHASE_GLOBAL);
		text_printf(&w->out, "}\n");
	}
	if (i < call)
		write_original(w, i);
}

/* ---- groups of accesses (group.h) ---- */

static void add_group_sites(struct writer *w, const struct group *g, const struct plan *p, unsigned words)
{
	const uint32_t group = add_site(w, &w->f->insn[g->member[0].at], PHASE_GROUP);
	struct rewrite_site *s = &w->r->site.at[group];

	s->nmembers = (uint8_t)g->nmembers;
	s->class = p->class;
	s->lane_words = (uint8_t)words;
	for (unsigned k = 0; k < g->nmembers; k++) {
		const uint32_t site = add_site(w, &w->f->insn[g->member[k].at], PHASE_BEFORE);

		memcpy(w->r->site.at[site].value, g->member[k].value, sizeof g->member[k].value);
	}
}

static void write_group(struct writer *w, const struct group *g)
{
	struct plan p = { .class = g->nwords == 1 && g->word[0].kind == VAL_SHARED ? PLAN_ADDRESS : PLAN_LANES };
	const unsigned words = hook_lane_words(g->nwords);
	const uint32_t site = (uint32_t)w->r->site.n;

	for (unsigned k = 0; k < g->nmoves; k++) {
		write_original(w, &w->f->insn[g->move[k]]);
		w->written[g->move[k]] = WRITTEN_ALL;
	}
	for (unsigned k = 0; k < g->nmembers; k++)
		w->written[g->member[k].at] = WRITTEN_RECORD;
	add_group_sites(w, g, &p, words);
	text_printf(&w->out, "{\n");
	hook_registers(&w->out, words);
	for (unsigned k = 0; k < words; k++) {
		struct plan one = { .class = p.class, .nvalues = 1 };

		if (k >= g->nwords) {
			text_printf(&w->out, "\tmov.b32 %%cs_v%u, 0;\n", k);
			continue;
		}
		one.value[0].o = &g->word[k].o;
		one.value[0].kind = g->word[k].kind;
		values(w, &one, "%cs_v", k);
	}
	write_words(w, &p, words, site);
	text_printf(&w->out, "}\n");
}

/* True: nothing but the instruction itself is left to write, or that neither. */
static bool write_grouped(struct writer *w, uint32_t at)
{
	struct group g;

	if (w->written[at] == WRITTEN_ALL)
		return true;
	if (w->written[at] == WRITTEN_NOT && group_find(w->f, w->scope, at, w->r->global, &g))
		write_group(w, &g);
	if (w->written[at] == WRITTEN_NOT)
		return false;
	w->collective = 0;
	write_original(w, &w->f->insn[at]);
	w->info->recorded++;
	return true;
}

void statement_write(struct writer *w, uint32_t at)
{
	const struct ptx_insn *i = &w->f->insn[at];
	const struct ptx_insn *call = w->r->global ? plan_heap_at(w->f, i) : NULL;
	struct plan p, side, rank;
	bool recorded = plan_of(w->f, i, &p), global = plan_global_of(w->f, i, &side);

	w->inflight = w->inflight_at && w->inflight_at[at];
	if (!call && write_grouped(w, at))
		return;
	if (call) {
		w->collective = 0;
		write_heap(w, i, call);
		return;
	}
	if (recorded && repeats_collective(w, at, &p))
		return;
	global = global && w->r->global && !side.elsewhere;
	if (recorded || global)
		w->collective = 0;
	if (global)
		begin_hook(w, i, &side);
	if (global && side.before)
		write_global(w, i, &side, PHASE_GLOBAL);
	if (global && !side.after)
		text_printf(&w->out, "}\n");
	if (i->op == OP_call && !recorded)
		write_call(w, i);
	else if (!recorded && w->r->batch.n == w->group && plan_rank_of(i, &rank))
		write_mapa(w, i, &rank);
	else if (!recorded)
		write_unrecorded(w, i, global);
	else if (p.wgmma)
		write_wgmma(w, at, &p);
	else if (p.collective)
		write_collective(w, at, &p);
	else
		write_hooked(w, i, &p);
	if (!global || !side.after)
		return;
	write_global(w, i, &side, side.before ? PHASE_GLOBAL_AFTER : PHASE_GLOBAL);
	text_printf(&w->out, "}\n");
}
