/* merge: brings the records of a cluster into an order in which they can have happened. Within
 * a warp the clock decides. Between warps only the records that synchronize are ordered: by
 * the clock within a CTA, by tickets in clusters. A record between two of them directly
 * follows the first; in the exact order, its place among the other warps of the CTA is decided
 * by its clock. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* ---- reading streams ---- */

unsigned record_units(const struct site_info *s, bool affine, uint32_t lanes)
{
	if (s->plan.class == PLAN_ADDRESS && s->phase != PHASE_BATCH)
		return (affine ? 1 : 9) + (s->plan.conflicts > 0);
	if (s->plan.class == PLAN_GLOBAL && s->phase != PHASE_BATCH)
		return affine ? 2 : 17 + (s->plan.conflicts > 0);
	if (s->plan.class == PLAN_LANES && s->phase != PHASE_BATCH)
		return 1 + ((affine ? 1 : (unsigned)__builtin_popcount(lanes)) *
			s->lane_words + 3) / 4;
	return 1 + (s->uniform_words + 3u) / 4;
}

/* Can the record at `next` have been written? Its units, or 0. A lane that leads others writes to its own
 * chunk, and it is the lowest of them. */
static unsigned valid_units(const struct dcluster *c, const struct stream *s)
{
	const uint32_t site = *s->next >> RECORD_SITE_SHIFT, lanes = s->next[1];
	unsigned units;

	if (!site || site >= c->job->l->code->site.n || lanes & ~s->lanes || !(lanes & s->leader))
		return 0;
	units = record_units(&c->job->info[site], *s->next & RECORD_AFFINE, lanes);
	return units * (RECORD_UNIT / 4) <= (size_t)(s->end - s->next) ? units : 0;
}

/* Moves to the next record and extends its clock to 64 bits: the low half continues from the
 * record before. */
static void advance(struct dcluster *c, struct stream *s)
{
	for (;;) {
		uint32_t low;

		if (s->next && s->next < s->end && *s->next) {
			s->units = valid_units(c, s);
			if (!s->units) {
				c->result.damaged++;
				s->next = s->end;
				continue;
			}
			low = s->next[2];
			__builtin_prefetch(s->next + 64); /* as many streams are read in turn */
			__builtin_prefetch(s->next + 80);
			s->clock += (uint32_t)(low - (uint32_t)s->clock);
			return;
		}
		if (s->at == s->nchunks) {
			s->clock = UINT64_MAX;
			return;
		}
		s->next = (const uint32_t *)(s->chunk[s->at] + 1);
		s->end = (const uint32_t *)s->chunk[s->at] + RECORD_CHUNK_BYTES / 4;
		s->clock = (uint64_t)s->chunk[s->at]->clock_hi << 32 | s->chunk[s->at]->clock_lo;
		s->at++;
	}
}

static void take_record(struct dcluster *c, struct stream *s, struct record *r)
{
	uint32_t word = *s->next;
	const struct site_info *info = &c->job->info[word >> RECORD_SITE_SHIFT];

	r->site = word >> RECORD_SITE_SHIFT;
	r->lanes = s->next[1];
	r->affine = word & RECORD_AFFINE;
	r->stride = (int32_t)(word & (RECORD_AFFINE - 1)) - RECORD_STRIDE_BIAS;
	r->base = s->next[3];
	r->key = c->job->l->tickets && info->sync ? s->next[3] : s->clock;
	r->words = s->next + 4;
	s->next += 4 * s->units;
	s->sync_known &= !info->sync;
	advance(c, s);
	c->result.records++;
	/* all threads share this cache line, so it is written only once */
	if (!__atomic_load_n(&c->job->seen[r->site], __ATOMIC_RELAXED))
		__atomic_store_n(&c->job->seen[r->site], 1, __ATOMIC_RELAXED);
}

/* ---- warps ---- */

/* Finds the clock and key of the stream's next record that synchronizes. */
static void find_next_sync(struct dcluster *c, struct stream *s)
{
	struct decode_result counted = c->result;
	struct stream at = *s;

	s->sync_known = true;
	s->sync_clock = s->sync_key = NEVER;
	for (; at.clock != UINT64_MAX; advance(c, &at)) {
		const struct site_info *info = &c->job->info[*at.next >> RECORD_SITE_SHIFT];

		if (info->sync) {
			s->sync_clock = at.clock;
			s->sync_key = c->job->l->tickets ? at.next[3] : at.clock;
			break;
		}
		at.next += 4 * at.units;
	}
	c->result = counted;
}

/* The key of the warp's next record that synchronizes. */
static uint64_t next_sync_key(struct dcluster *c, const struct dwarp *w)
{
	uint64_t first = NEVER, key = NEVER - 1;

	for (uint32_t k = 0; k < w->nstreams; k++) {
		struct stream *s = &c->stream.at[w->first + k];

		if (!s->sync_known)
			find_next_sync(c, s);
		if (s->sync_clock < first) {
			first = s->sync_clock;
			key = s->sync_key;
		}
	}
	return key;
}

/* In the exact order: the turn of a warp whose next record does not synchronize. It is not
 * later than the next synchronization of a warp of its warpgroup that waits for it at a join. */
static uint64_t exact_turn(struct dcluster *c, const struct dwarp *w)
{
	const uint32_t per = c->info.warps_per_cta, index = (uint32_t)(w - c->warp),
		in = index % per;
	uint64_t key = next_sync_key(c, w);

	for (uint32_t k = in - in % 4; c->nat_join && k < per && k < in - in % 4 + 4; k++) {
		const struct dwarp *other = &c->warp[index - in + k];

		if (other->at_join && other->join_key < key)
			key = other->join_key;
	}
	return key;
}

static void set_turn(struct dcluster *c, struct dwarp *w)
{
	uint64_t best = UINT64_MAX;
	const struct site_info *info;
	const struct stream *s;

	for (uint32_t k = 0; k < w->nstreams; k++)
		if (c->stream.at[w->first + k].clock < best) {
			best = c->stream.at[w->first + k].clock;
			w->current = w->first + k;
		}
	if (best == UINT64_MAX) {
		w->over = true;
		c->turn[w - c->warp] = NEVER;
		return;
	}
	s = &c->stream.at[w->current];
	info = &c->job->info[*s->next >> RECORD_SITE_SHIFT];
	if (info->sync)
		c->turn[w - c->warp] = c->job->l->tickets ? s->next[3] : s->clock;
	else
		c->turn[w - c->warp] = c->job->l->exact ? exact_turn(c, w) : 0;
}

/* A warp reaches a join. */
static void reach_join(struct dcluster *c, uint32_t index)
{
	const uint32_t per = c->info.warps_per_cta, in = index % per;
	struct dwarp *w = &c->warp[index];

	w->at_join = true;
	c->nat_join++;
	c->turn[index] = NEVER;
	w->join_key = 0;
	if (!c->job->l->exact)
		return;
	w->join_key = next_sync_key(c, w);
	for (uint32_t k = in - in % 4; k < per && k < in - in % 4 + 4; k++) {
		const uint32_t other = index - in + k;

		if (c->turn[other] != NEVER)
			set_turn(c, &c->warp[other]);
	}
}

/* The warps of a warpgroup that wait at this join leave it together. */
static void leave_join(struct dcluster *c, uint32_t first, uint32_t join)
{
	const uint32_t left = c->info.warps_per_cta - first % c->info.warps_per_cta;
	const struct record *r[4] = { NULL };

	for (uint32_t k = 0; k < 4 && k < left; k++) {
		struct dwarp *w = &c->warp[first + k];

		if (!w->at_join || w->joins != join)
			continue;
		r[k] = &w->join_record;
		if (c->seen)
			hang_note(c, first + k, r[k]);
	}
	decode_warpgroup(c, first, r);
	for (uint32_t k = 0; k < 4 && k < left; k++) {
		struct dwarp *w = &c->warp[first + k];

		if (!r[k])
			continue;
		c->nat_join--;
		w->at_join = false;
		w->joins++;
	}
	for (uint32_t k = 0; k < 4 && k < left; k++)
		if (!c->warp[first + k].at_join)
			set_turn(c, &c->warp[first + k]);
}

/* The warpgroup continues if all its warps wait at the join, apart from those that have ended
 * and those that are past it. */
static void try_join(struct dcluster *c, uint32_t warp, bool force)
{
	uint32_t per = c->info.warps_per_cta, in = warp % per, first = warp - in % 4;
	uint32_t left = per - (in - in % 4), join = UINT32_MAX;

	for (uint32_t k = 0; k < 4 && k < left; k++) {
		const struct dwarp *w = &c->warp[first + k];

		if ((force ? w->at_join : !w->over) && w->joins < join)
			join = w->joins;
	}
	for (uint32_t k = 0; !force && k < 4 && k < left; k++) {
		const struct dwarp *w = &c->warp[first + k];

		if (!w->over && !w->at_join && w->joins == join)
			return;
	}
	leave_join(c, first, join);
}

/* wgmma.wait_group does not make a warp wait for the others of its warpgroup, although one
 * event stands for all four. If a warp that waits here has a later synchronization before
 * `key`, it has left the join by then. */
static bool leave_join_before(struct dcluster *c, uint64_t key)
{
	const uint32_t per = c->info.warps_per_cta, n = c->job->nctas * per;

	for (uint32_t k = 0; k < n; k++) {
		struct dwarp *w = &c->warp[k];

		if (!w->at_join || c->job->info[w->join_record.site].phase == PHASE_BATCH)
			continue;
		if (!w->join_key)
			w->join_key = next_sync_key(c, w);
		if (w->join_key >= key)
			continue;
		leave_join(c, k - k % per % 4, w->joins);
		return true;
	}
	return false;
}

static const struct site_info *next_site(const struct dcluster *c, const struct dwarp *w)
{
	return &c->job->info[*c->stream.at[w->current].next >> RECORD_SITE_SHIFT];
}

/* Takes the warp's next record. False: the warp now waits for its warpgroup. */
static bool run_record(struct dcluster *c, uint32_t index)
{
	struct dwarp *w = &c->warp[index];
	bool join = next_site(c, w)->join;
	struct record r;

	w->clock = c->stream.at[w->current].clock;
	take_record(c, &c->stream.at[w->current], &r);
	if (join) {
		w->join_record = r;
		reach_join(c, index);
		try_join(c, index, false);
		return false;
	}
	decode_record(c, index, &r);
	set_turn(c, w);
	return true;
}

/* A warp has ended: other warps of its warpgroup may have waited for it only. */
static void join_without(struct dcluster *c, uint32_t index)
{
	for (uint32_t k = 0; k < 4; k++) {
		uint32_t in = index % c->info.warps_per_cta, other = in - in % 4 + k;

		if (other < c->info.warps_per_cta && c->warp[index - in + other].at_join) {
			try_join(c, index - in + other, false);
			return;
		}
	}
}

/* Runs a warp up to its next record that synchronizes. If it is at one now, it is that
 * record's turn, and the warp runs up to the one after. */
static void run_warp(struct dcluster *c, uint32_t index)
{
	struct dwarp *w = &c->warp[index];

	for (bool first = true; !w->over; first = false) {
		if (next_site(c, w)->sync && !first)
			return;
		if (!run_record(c, index))
			return;
	}
	join_without(c, index);
}

/* The time at which the warp executes its next record. The join of a warpgroup is as early as
 * its first warp's record, as that warp's later releases come after it. The other warps may
 * write their record after these releases, so each warp reaches the join at once. */
static uint64_t next_clock(const struct dcluster *c, const struct dwarp *w)
{
	return next_site(c, w)->join ? w->clock : c->stream.at[w->current].clock;
}

static void run_one(struct dcluster *c, uint32_t index)
{
	if (run_record(c, index) && c->warp[index].over)
		join_without(c, index);
}

/* The warp of the CTA with the earliest next record, unless that record synchronizes; NONE. */
static uint32_t first_free(const struct dcluster *c, uint32_t cta)
{
	uint32_t per = c->info.warps_per_cta, first = NONE;

	for (uint32_t k = cta * per; k < (cta + 1) * per; k++)
		if (c->turn[k] != NEVER && (first == NONE ||
				next_clock(c, &c->warp[k]) < next_clock(c, &c->warp[first])))
			first = k;
	return first == NONE || next_site(c, &c->warp[first])->sync ? NONE : first;
}

/* In the exact order: runs a record that is earlier than all records of its CTA that
 * synchronize. */
static bool run_free(struct dcluster *c)
{
	for (uint32_t cta = 0; cta < c->job->nctas; cta++) {
		uint32_t k = first_free(c, cta);

		if (k != NONE) {
			run_one(c, k);
			return true;
		}
	}
	return false;
}

/* The index of the lowest turn; the first of several. The comparison is signed so that the
 * compiler can use vectors. */
static uint32_t first_turn(const uint64_t *turn, uint32_t n)
{
	int64_t first = NEVER;
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++)
		first = (int64_t)turn[i] < first ? (int64_t)turn[i] : first;
	while (k + 1 < n && turn[k] != (uint64_t)first)
		k++;
	return k;
}

bool merge_step(struct dcluster *c, uint64_t until, uint64_t *key)
{
	uint32_t n = c->job->nctas * c->info.warps_per_cta, next;

	if (c->job->l->exact && run_free(c))
		return true;
	next = first_turn(c->turn, n);
	*key = c->turn[next];
	if (*key != NEVER) {
		if (c->nat_join && *key && leave_join_before(c, *key))
			return true;
		if (*key > until)
			return false;
		if (c->job->l->exact)
			run_one(c, next);
		else
			run_warp(c, next);
		return true;
	}
	for (uint32_t k = 0; c->nat_join && k < n; k++)
		if (c->warp[k].at_join) {
			try_join(c, k, true);
			return true;
		}
	return false;
}

void merge_run(struct dcluster *c)
{
	uint64_t key;

	while (merge_step(c, NEVER, &key))
		;
}

/* ---- clusters ---- */

static void open_streams(struct dcluster *c, uint32_t from, uint32_t to)
{
	const struct record_chunk **chunk = c->job->chunk;
	uint32_t per = c->info.warps_per_cta, n = c->job->nctas * per;
	const uint32_t *block = c->info.launch->block;
	uint32_t threads = block[0] * block[1] * block[2];

	memset(c->warp, 0, n * sizeof *c->warp);
	c->stream.n = 0;
	c->arrived = 0;
	c->nat_join = 0;
	c->running = c->job->nctas;
	memset(c->tmem, 0, c->job->nctas * sizeof *c->tmem);
	for (uint32_t k = 0; k < c->job->nctas; k++)
		c->left[k] = threads;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t lanes = threads - k % per * 32;

		c->warp[k].all = lanes >= 32 ? UINT32_MAX : (1u << lanes) - 1;
		c->warp[k].over = true;
		c->turn[k] = NEVER;
		c->warp[k].maxnreg = c->info.launch->regs_per_thread;
	}
	while (from < to) {
		uint32_t end = from;
		struct stream s = { 0 };
		struct dwarp *w;

		while (end < to && chunk[end]->cta == chunk[from]->cta &&
				chunk[end]->warp_lane == chunk[from]->warp_lane)
			end++;
		w = &c->warp[c->job->first[c->job->nclusters + 1 + chunk[from]->cta] * per +
			chunk[from]->warp_lane / 32];
		s.chunk = chunk + from;
		s.nchunks = end - from;
		s.leader = 1u << chunk[from]->warp_lane % 32;
		s.lanes = w->all & ~(s.leader - 1);
		advance(c, &s);
		if (!w->nstreams)
			w->first = (uint32_t)c->stream.n;
		w->nstreams++;
		vec_push(&c->stream, s);
		from = end;
	}
	for (uint32_t k = 0; k < n; k++)
		if (c->warp[k].nstreams) {
			c->warp[k].over = false;
			set_turn(c, &c->warp[k]);
		}
}

void merge_begin(struct dcluster *c, uint32_t id)
{
	struct job *j = c->job;

	c->info.id = id;
	c->sink = j->l->cluster_begin(j->l->user, &c->info);
	c->ops = 0;
	c->stopped = false;
	c->blind = j->blind && j->blind[id];
	open_streams(c, j->first[id], c->blind ? j->first[id] : j->first[id + 1]);
	decode_begin(c);
}

void merge_end(struct dcluster *c)
{
	struct job *j = c->job;

	decode_end(c);
	j->l->cluster_end(j->l->user, c->sink);
	for (size_t k = 0; k < c->model.n; k++)
		model_close(&c->model.at[k]);
	c->model.n = 0;
}

void merge_open_caches(struct dcluster *c)
{
	c->path = base_alloc(PATHS * sizeof *c->path);
	if (c->job->l->code->together && !c->job->l->coarse)
		c->together = base_alloc(PATHS * sizeof *c->together);
	c->pieces = base_alloc(PIECES * sizeof *c->pieces);
	c->book = base_alloc(sizeof *c->book);
}

void merge_close_caches(struct dcluster *c)
{
	for (uint32_t k = 0; k < PATHS; k++) {
		free(c->path[k].use);
		free(c->path[k].reg);
	}
	free(c->path);
	free(c->together);
	for (uint32_t k = 0; k < PIECES; k++)
		free(c->pieces[k]);
	free(c->pieces);
	tc_book_close(c->book);
	free(c->book);
	gather_close(c->gather);
}

void merge_open(struct dcluster *c, struct job *j)
{
	*c = (struct dcluster){ .job = j, .registers = j->l->func->reg_use_of,
		.info = { .launch = j->l->info, .nctas = j->nctas,
			.warps_per_cta = j->nwarps / j->nctas } };
	c->warp = base_alloc(j->nwarps * sizeof *c->warp);
	c->turn = base_alloc(j->nwarps * sizeof *c->turn);
	c->left = base_alloc(j->nctas * sizeof *c->left);
	c->tmem = base_alloc(j->nctas * sizeof *c->tmem);
	if (!j->l->ended && !j->l->fault)
		c->seen = base_alloc(j->nwarps * 32 * sizeof *c->seen);
}

void merge_close(struct dcluster *c)
{
	vec_free(&c->stream);
	vec_free(&c->model);
	vec_free(&c->span);
	vec_free(&c->gspan);
	free(c->warp);
	free(c->turn);
	free(c->left);
	free(c->tmem);
	free(c->seen);
}
