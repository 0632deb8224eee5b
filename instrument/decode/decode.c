/* decode: chooses by instruction what a record means. The events are the same that the
 * executor makes for the instruction. merge.c has brought the records into order. */
#include "events.h"
#include "libconsan/ptx/opcodes.h"

void emit(struct dcluster *c, const struct event *e)
{
	if (c->stopped)
		return;
	if (c->gather)
		gather_flush(c);
	c->result.events++;
	if (c->sink)
		c->sink->event(c->sink, e);
}

static void decode_one(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct rewrite_site *s = record_site(c, r->site);

	if (c->registers && s->phase != PHASE_FAILED && s->phase != PHASE_REMOTE
			&& s->phase != PHASE_FOREIGN && s->func == c->job->l->func->func)
		emit_path_uses(c, warp, s->insn, r->lanes);
	if (c->together)
		emit_together(c, warp, r);
	if (c->warp[warp].missing || (r->lanes != FULL && c->job->info[r->site].aligned))
		refused_aligned(c, warp, r);
	if (s->phase == PHASE_PATH)
		return;
	if (s->phase == PHASE_FAILED) {
		if (ptx_effect_of(s->insn->op) == EF_TCGEN05)
			emit_tcgen05(c, warp, r);
		else
			emit_failed_wait(c, warp, r, false);
		return;
	}
	if (s->phase == PHASE_REMOTE) {
		check_remote_wait(c, warp, r);
		return;
	}
	if (s->phase == PHASE_FOREIGN) {
		c->result.foreign++;
		return;
	}
	if (s->phase == PHASE_RANK) {
		refused_rank(c, warp, r);
		return;
	}
	if (s->phase == PHASE_GLOBAL || s->phase == PHASE_GLOBAL_AFTER) {
		if (c->job->l->screened)
			return;
		if (ptx_effect_of(s->insn->op) == EF_GRID)
			emit_grid(c, warp, r);
		else
			emit_global(c, warp, r);
		return;
	}
	switch (ptx_effect_of(s->insn->op)) {
	case EF_READ: case EF_WRITE: case EF_RMW: emit_access(c, warp, r); break;
	case EF_CP_ASYNC: emit_cp_async(c, warp, r); break;
	case EF_BULK: emit_bulk(c, warp, r); break;
	case EF_MBARRIER: emit_mbarrier(c, warp, r); break;
	case EF_BARRIER: emit_bar(c, warp, r); break;
	case EF_WARP_SYNC: emit_warp_sync(c, warp, r); break;
	case EF_WARP: emit_collective(c, warp, r); break;
	case EF_CLUSTER: emit_cluster(c, warp, r); break;
	case EF_FENCE: emit_fence(c, warp, r); break;
	case EF_TENSORMAP: emit_map_change(c, warp, r); break;
	case EF_SETMAXNREG: case EF_STOP: emit_other(c, warp, r); break;
	case EF_EXIT: emit_exit(c, warp, r->site, r->lanes); break;
	case EF_CONTROL:
		if (plan_asserts(s->insn))
			emit_other(c, warp, r);
		else
			emit_exit(c, warp, r->site, r->lanes);
		break;
	case EF_NONE:
		if (s->insn->op == OP_mbarrier_pending_count)
			emit_pending(c, warp, r);
		else
			emit_cancel(c, warp, r);
		break;
	case EF_GRID: emit_cancel(c, warp, r); break;
	case EF_TCGEN05: emit_tcgen05(c, warp, r); break;
	case EF_WGMMA: case EF_RANK: case EF_HINT: case EF_UNKNOWN:
	case EF_COUNT:
		break;
	}
}

/* ---- groups (group.h in rewrite/) ---- */

/* The record that a member would have. buffer: REWRITE_PARTS words for each lane. */
static struct record member_record(const struct dcluster *c, const struct record *r, uint32_t site,
	uint32_t *buffer)
{
	const struct rewrite_part *part = record_site(c, site)->value;
	const struct site_info *group = &c->job->info[r->site], *info = &c->job->info[site];
	const bool by_lane = group->plan.class == PLAN_ADDRESS; /* else the words of the active lanes */
	const uint32_t *row = r->words;
	struct record m = *r;

	m.site = site;
	if (r->affine) {
		m.base += part->add;
		return m;
	}
	m.words = buffer;
	for EACH_LANE(l, r->lanes) {
		const uint32_t *word = by_lane ? r->words + l : row;

		row += group->lane_words;
		if (info->plan.class == PLAN_ADDRESS) {
			buffer[l] = word[part->word] + part->add;
			continue;
		}
		for (unsigned v = 0; v < info->lane_words; v++)
			*buffer++ = word[part[v].word] + part[v].add;
	}
	return m;
}

static void decode_group(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const uint32_t first = r->site + 1, end = first + record_site(c, r->site)->nmembers;
	struct record last = *r;

	last.site = end - 1;
	if (c->seen)
		hang_note(c, warp, &last);
	for (uint32_t site = first; site < end && !c->stopped; site++) {
		uint32_t buffer[32 * REWRITE_PARTS];
		const struct record m = member_record(c, r, site, buffer);

		if (!__atomic_load_n(&c->job->seen[site], __ATOMIC_RELAXED))
			__atomic_store_n(&c->job->seen[site], 1, __ATOMIC_RELAXED);
		decode_one(c, warp, &m);
	}
}

void decode_record(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct rewrite_site *s = record_site(c, r->site);

	if (c->stopped || refused_torn(c, warp, r))
		return;
	if (s->phase == PHASE_TOKEN) {
		note_token(c, warp, r);
		return;
	}
	if (s->phase == PHASE_GROUP) {
		decode_group(c, warp, r);
		return;
	}
	if (c->seen)
		hang_note(c, warp, r);
	decode_one(c, warp, r);
}

/* ---- clusters ---- */

void decode_begin(struct dcluster *c)
{
	const struct launch_info *i = c->info.launch;

	for (uint32_t r = 0; r < c->info.nctas; r++) {
		uint32_t id[3];
		struct event e = { .kind = EV_CTA_BEGIN, .cta = (uint16_t)r, .lanes = FULL,
			.cta_begin = { .threads = i->block[0] * i->block[1] * i->block[2],
			.shared_bytes = c->job->l->shared_all } };

		cluster_ctaid(&c->info, r, id);
		e.cta_begin.linear_id = id[0]
			+ (uint64_t)i->grid[0] * (id[1] + (uint64_t)i->grid[1] * id[2]);
		emit(c, &e);
	}
}

static bool all_exited(const struct dcluster *c)
{
	for (uint32_t k = 0; k < c->info.nctas * c->info.warps_per_cta; k++)
		if (c->warp[k].gone != c->warp[k].all)
			return false;
	return true;
}

/* Each lane records its exit, and its lack means that other records are missing, too. A canceled cluster
 * records nothing. */
static bool lacks_exits(const struct dcluster *c)
{
	const bool none = !c->stream.n && (c->job->l->sites->cancels || !c->job->l->chunks);

	return !c->blind && !c->stopped && !none && !all_exited(c);
}

void decode_end(struct dcluster *c)
{
	uint32_t n = c->info.nctas * c->info.warps_per_cta;

	if (c->gather)
		gather_flush(c);
	if (cut_short(c))
		refused_halves(c);
	else if (c->job->l->fault)
		refused_missing(c);
	if (c->job->l->fault && !cut_short(c))
		tcgen05_missing(c);
	model_land_all(c);
	if (!c->job->l->ended)
		c->result.unfinished += !all_exited(c);
	else if (lacks_exits(c))
		c->result.damaged++;
	for (uint32_t k = 0; c->job->l->ended && k < n; k++)
		emit_exit(c, k, 0, c->warp[k].all);
	hang_report(c);
}
