/* sites: what is known of a module's recording sites before any is executed. */
#include "internal.h"
#include "libconsan/ptx/opcodes.h"

#include <stdlib.h>

static void describe_sites(const struct rewrite *code, struct site_info *info,
	struct batch_info *batch)
{
	for (size_t k = 1; k < code->site.n; k++) {
		const struct rewrite_site *s = &code->site.at[k];
		enum ptx_effect effect = ptx_effect_of(s->insn->op);
		struct site_info *i = &info[k];

		i->phase = s->phase;
		if (s->phase == PHASE_GROUP) {
			i->plan.class = s->class;
			i->lane_words = s->lane_words;
			continue;
		}
		if (s->phase == PHASE_GLOBAL || s->phase == PHASE_GLOBAL_AFTER)
			plan_global_of(s->func, s->insn, &i->plan);
		else if (s->phase == PHASE_RANK)
			plan_rank_of(s->insn, &i->plan);
		else if (s->phase == PHASE_TOKEN)
			plan_token_of(s->func, s->insn, &i->plan);
		else
			plan_of(s->func, s->insn, &i->plan);
		i->lane_words = (uint8_t)plan_words(&i->plan);
		i->uniform_words = i->lane_words;
		i->sync = i->plan.sync && s->phase != PHASE_FAILED && s->phase != PHASE_REMOTE;
		/* with a generic address, lanes outside of shared memory write no record */
		i->aligned = s->phase == PHASE_BEFORE && !i->plan.generic &&
			ptx_has(s->insn, MOD_aligned)
			&& (effect == EF_READ || effect == EF_WRITE || effect == EF_WARP);
		i->used = (s->insn->op == OP_tcgen05_ld || s->insn->op == OP_tcgen05_ld_red) &&
			 ptx_load_is_read(s->func, s->insn);
		i->flag = effect == EF_READ && ptx_sem_of(s->insn, SEM_WEAK) == SEM_VOLATILE
			&& ptx_reads_flag(s->func, s->insn);
		i->join = s->phase == PHASE_BATCH || (s->insn->op == OP_wgmma_wait_group);
		for (uint32_t b = 0; s->phase == PHASE_BATCH && b < s->nbatch; b++) {
			if (!b)
				i->uniform_words = 0;
			batch[s->batch + b] = batch_of(s->func, code->batch.at[s->batch + b]);
			i->uniform_words = (uint16_t)(i->uniform_words + batch[s->batch + b].words);
		}
	}
}

struct decode_sites *decode_sites_open(const struct rewrite *code)
{
	struct decode_sites *s = base_alloc(sizeof *s);

	s->info = base_alloc((code->site.n + 1) * sizeof *s->info);
	s->batch = base_alloc((code->batch.n + 1) * sizeof *s->batch);
	describe_sites(code, s->info, s->batch);
	for (size_t k = 1; k < code->site.n; k++)
		s->cancels |= code->site.at[k].insn->op == OP_clusterlaunchcontrol_try_cancel;
	return s;
}

void decode_sites_close(struct decode_sites *s)
{
	if (!s)
		return;
	free(s->info);
	free(s->batch);
	free(s);
}

/* Counts instructions: an instruction has several sites, one after the other. */
uint32_t sites_executed(const struct rewrite *code, const uint8_t *seen)
{
	const struct ptx_insn *last = NULL;
	uint32_t n = 0;

	for (size_t k = 1; k < code->site.n; k++) {
		const struct rewrite_site *s = &code->site.at[k];

		if (!seen[k] || s->phase == PHASE_GROUP)
			continue;
		if (s->phase == PHASE_BATCH)
			n += s->nbatch;
		else if (s->insn != last && s->phase != PHASE_PATH)
			n += rewrite_counts(s->insn, code->global);
		last = s->insn;
	}
	return n;
}
