/* global_report: findings about global memory, in words. Of a finding that two clusters are
 * involved in, the one with the higher number comes first, and of all pairs that show the same bug
 * the lowest is reported, so that a report does not depend on thread timing. */
#include "libconsan/base/base.h"
#include "libconsan/event/event.h"
#include "libconsan/finding/rule_codes.h"
#include "global.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *what_of(const struct cluster *c, const struct global_record *r)
{
	uint32_t index;

	switch (global_agent(c, r, &index)) {
	case AGENT_WARP:
		if (global_frees(r))
			return "free";
		if (r->flags & GR_NC)
			return site_get(r->site)->texture ? "texture or surface read"
				: "read-only load (ld.nc)";
		if (r->flags & GR_RMW)
			return "atomic read-modify-write";
		if (r->flags & GR_VOLATILE)
			return r->flags & GR_WRITE ? "volatile write" : "volatile read";
		if (r->flags & GR_STRONG)
			return r->flags & GR_WRITE ? "strong write" : "strong read";
		return r->flags & GR_WRITE ? "write" : "read";
	case AGENT_COPIES:
		return "cp.async read";
	case AGENT_STORES:
		if (r->flags & GR_RMW)
			return r->flags & GR_TENSOR ? "TMA reduction" : "bulk reduction";
		return r->flags & GR_TENSOR ? "TMA store write" : "bulk store write";
	case AGENT_SLOT:
		return r->flags & GR_TENSOR ? "TMA load read" : "bulk load read";
	case AGENT_WGMMA: case AGENT_TC: case AGENT_TMEM_LD: case AGENT_TMEM_ST:
		break;
	}
	return "access";
}

/* The bytes that the record's lane accessed around the byte in conflict; of an engine's access, the
 * part in conflict. An access of a power of two bytes is aligned to them. */
static void name_bytes(struct finding_side *s, const struct global_record *r,
	const struct global_conflict *x)
{
	const uint64_t at = x->addr + x->byte;

	s->space = SP_GLOBAL;
	s->addr = at;
	s->bytes = x->bytes;
	if (r->size && r->row != GR_WHOLE && !(r->size & (r->size - 1))) {
		s->addr = at & -(uint64_t)r->size;
		s->bytes = r->size;
	}
}

static void name_place(const struct cluster *c, struct finding_side *s)
{
	const struct check_config *k = &c->check->config;
	uint64_t base, bytes;

	if (!k->where || !k->where(k->user, s->addr, &base, &bytes))
		return;
	s->buffer = base;
	s->buffer_bytes = bytes;
	snprintf(s->variable, sizeof s->variable, "+0x%llx of a buffer of %llu B",
		(unsigned long long)(s->addr - base), (unsigned long long)bytes);
}

/* A record of an earlier grid, whose clusters may have another shape. */
static const char *what_before(const struct global_record *r)
{
	const bool tensor = r->flags & GR_TENSOR, reduction = r->flags & GR_RMW;

	if (r->flags & GR_ASYNC && r->flags & GR_WRITE)
		return reduction ? tensor ? "TMA reduction" : "bulk reduction"
			: tensor ? "TMA store write" : "bulk store write";
	if (r->flags & GR_ASYNC)
		return tensor ? "TMA load read" : "bulk load read";
	if (reduction)
		return "atomic read-modify-write";
	if (global_frees(r))
		return "free";
	return r->flags & GR_WRITE ? "write" : "read";
}

static void side_before(struct cluster *c, struct finding *f, const struct global_record *r,
	int lane, const struct global_conflict *x)
{
	const struct past_grid *g = beside_other(c->check, r->cluster) ? beside_of(c->check, r->cluster)
		: grids_of(c->check, r->cluster);
	const uint32_t *block = g->info.block;
	const uint32_t warps = (block[0] * block[1] * block[2] + 31) / 32;
	struct finding_side *s = &f->side[f->nsides++];
	struct cluster_info info = { .launch = &g->info, .id = r->cluster - g->base };

	s->site = r->site;
	snprintf(s->what, sizeof s->what, "%s", what_before(r));
	s->cta = s->peer = (uint16_t)(r->warp / warps);
	s->warp = (uint16_t)(r->warp % warps);
	s->lane = (int16_t)lane;
	cluster_ctaid(&info, s->cta, s->ctaid);
	if (lane >= 0) {
		uint32_t t = s->warp * 32u + (uint32_t)lane;

		s->thread[0] = t % block[0];
		s->thread[1] = t / block[0] % block[1];
		s->thread[2] = t / block[0] / block[1];
	}
	name_bytes(s, r, x);
	name_place(c, s);
}

static void side(struct cluster *c, struct finding *f, const struct global_record *r, int lane,
	const struct global_conflict *x)
{
	struct finding_side *s = &f->side[f->nsides];
	struct cluster_info info = c->info;

	if (grids_earlier(c->check, r->cluster) || beside_other(c->check, r->cluster)) {
		side_before(c, f, r, lane, x);
		return;
	}
	report_side(c, f, r->warp, lane, r->site, what_of(c, r));
	info.id = r->cluster - c->check->global->base;
	cluster_ctaid(&info, s->cta, s->ctaid);
	name_bytes(s, r, x);
	name_place(c, s);
}

static const char *block(const struct finding_side *s, char out[40])
{
	snprintf(out, 40, "block (%u,%u,%u)", s->ctaid[0], s->ctaid[1], s->ctaid[2]);
	return out;
}

/* The release was read: the acquire is missing. */
/* The scope that includes the threads of both accesses. */
static const char *scope_of(const struct cluster *c, const struct global_conflict *x)
{
	return beside_other(c->check, x->old->cluster) && beside_of(c->check, x->now->cluster)->info.device
		!= beside_of(c->check, x->old->cluster)->info.device ? "sys" : "gpu";
}

static void explain_unfenced(const struct cluster *c, struct finding *f, const struct global_conflict *x)
{
	const struct unfenced *u = x->unfenced;
	const char *scope = scope_of(c, x);
	char from[PLACE_BYTES], to[PLACE_BYTES];

	report_place(u->released, from);
	report_place(u->read, to);
	report_edge(f, "the relaxed %s at %s reads the release at %s, but no acquire fence "
		"(__threadfence) follows it before the bytes are accessed",
		u->rmw ? "read-modify-write" : "read", to, from);
	report_hint(f, HINT(acquire_fence), *scope == 's' ? "__threadfence_system()" : "__threadfence()",
		scope, to);
	report_edit(f, u->read, EDIT(acquire_fence), scope);
}

static bool stores_async(const struct global_record *r)
{
	return r->flags & GR_ASYNC && r->flags & GR_WRITE;
}

static void explain_pair(const struct cluster *c, struct finding *f, const struct global_conflict *x)
{
	char a[40], b[40];

	block(&f->side[0], a);
	block(&f->side[1], b);
	report_edge(f, "%s and %s run concurrently, and no release by the first is acquired by the "
		"second between the two accesses", b, a);
	if (x->now->flags & x->old->flags & GR_ASYNC || stores_async(x->old) || stores_async(x->now))
		report_hint(f, HINT(wait_and_release), scope_of(c, x));
	else if ((x->now->flags | x->old->flags) & GR_STRONG)
		report_hint(f, HINT(strong_and_weak));
	else
		report_hint(f, HINT(release_and_acquire));
}

/* A03: why two strong accesses are not morally strong. */
static void explain_strong(struct finding *f, const struct global_conflict *x)
{
	static const char *const scope[] = { "cta", "cluster", "gpu" };
	const struct global_record *old = x->old, *now = x->now;
	const struct global_record *narrow = old->scope < now->scope ? old : now;

	report_edge(f, "the two strong accesses are not atomic to each other, so they race like weak "
		"ones, and nothing else orders them");
	if ((old->flags ^ now->flags) & GR_ASYNC)
		report_hint(f, HINT(proxies_differ));
	else if (old->element != now->element)
		report_hint(f, HINT(sizes_differ), old->element, now->element);
	else if (narrow->scope < 2) {
		const char *wide = old->cluster != now->cluster ? "gpu" : "cluster";

		report_hint(f, HINT(scope_too_narrow), f->side[f->side[0].site != narrow->site].what,
			scope[narrow->scope], wide);
		report_edit(f, narrow->site, EDIT(scope_too_narrow), wide);
	}
}

static void explain_volatile(struct cluster *c, struct finding *f, const struct global_conflict *x)
{
	const struct global_record *old = x->old, *now = x->now;
	char a[40], b[40];

	if (x->unfenced) {
		explain_unfenced(c, f, x);
		return;
	}
	if (old->cluster != now->cluster)
		report_edge(f, "no release by %s is acquired by %s between the two accesses",
			block(&f->side[1], b), block(&f->side[0], a));
	else if (old->warp == now->warp)
		report_edge(f, "no bar.warp.sync (__syncwarp) orders lane %d's %s before this %s",
			f->side[1].lane, what_of(c, old), what_of(c, now));
	else
		report_edge(f, "no synchronisation orders warp %u's %s before this %s by warp %u",
			c->warp[old->warp].id, what_of(c, old), what_of(c, now), c->warp[now->warp].id);
	if (old->cluster == now->cluster && old->warp == now->warp) {
		report_hint(f, HINT(warp_synchronous));
		report_between(f, f->side[1].site, f->side[0].site, EDIT(warp_synchronous));
	} else
		report_hint(f, HINT(volatile_orders_nothing));
}

/* G15 to G17 */
static void explain_grids(struct cluster *c, struct finding *f, const struct global_conflict *x)
{
	const struct past_grid *g = grids_of(c->check, x->old->cluster);
	char *name = demangle(g->kernel, NAME_FULL);

	if (strlen(name) > 80)
		name[80] = 0;
	if (x->rule == CS118) {
		report_edge(f, "launch %u (%s) may still be running here: it executes "
			"griddepcontrol.launch_dependents, and no griddepcontrol.wait is ordered before "
			"this %s", g->info.id, name, f->side[0].what);
		report_hint(f, HINT(wait_for_grid));
		report_edit(f, f->side[0].site, EDIT(wait_for_grid));
		free(name);
		return;
	}
	report_edge(f, "launch %u (%s) may still be running here: a grid between it and this one never "
		"executes griddepcontrol.wait, so a wait for that grid does not cover this launch",
		g->info.id, name);
	free(name);
	report_hint(f, HINT(wait_in_every_grid));
}

static void explain(struct cluster *c, struct finding *f, const struct global_conflict *x)
{
	const struct global_record *old = x->old, *now = x->now;
	uint32_t index;

	switch ((int)x->rule) {
	case CS108:
		explain_strong(f, x);
		return;
	case CS109:
		report_edge(f, "only a warp collective (shfl, vote, match, redux) is executed between "
			"them: it converges the lanes but orders no memory");
		return;
	case CS110: case CS111: case CS112:
		report_edge(f, "the %s is ordered before this %s, but without a fence.proxy.async that "
			"covers global memory between them", what_of(c, old), what_of(c, now));
		report_hint(f, HINT(fence_of_shared));
		report_between(f, f->side[1].site, f->side[0].site, EDIT(fence_of_shared));
		return;
	case CS123:
		explain_volatile(c, f, x);
		return;
	case CS124:
		if (global_frees(now))
			report_edge(f, "no synchronisation orders the %s before this free of the block",
				what_of(c, old));
		else
			report_edge(f, "the block was freed before this %s, and malloc has not returned it "
				"again", what_of(c, now));
		return;
	case CS114:
		report_edge(f, "the asynchronous operations of two CTAs are ordered, but without a "
			"fence.proxy.async that covers global memory between them");
		return;
	case CS115:
		report_edge(f, "this kernel writes the bytes, and ld.global.nc may read them from a cache "
			"in which the write is not visible");
		if (x->severity == SEV_NOTE)
			report_hint(f, HINT(read_before_write));
		else
			report_hint(f, HINT(const_restrict));
		return;
	case CS125:
		report_edge(f, "the texture cache is not coherent with writes of the same kernel, whatever "
			"orders them before the read");
		return;
	case CS116:
		report_edge(f, "the thread that issued the %s must execute cp.async.bulk.wait_group "
			"without .read before it releases the bytes to other threads", what_of(c, old));
		if (old->cluster == c->number && global_agent(c, old, &index) == AGENT_STORES
			&& c->warp[index].progress.stores.at[old->lane] >= old->epoch) {
			report_hint(f, HINT(waited_with_read));
			report_edit(f, c->warp[index].stores.wait_site[old->lane], EDIT(waited_with_read));
		}
		return;
	case CS105:
		report_edge(f, "the %s may still be in flight: its completion, observed by %s, must be "
			"ordered before the write", what_of(c, old),
			global_agent(c, old, &index) == AGENT_COPIES
			? "cp.async.wait_group or a wait on its mbarrier" : "a wait on its mbarrier");
		return;
	case CS107:
		report_edge(f, "the %s and this %s are not ordered: the thread that issued the first must "
			"execute cp.async.bulk.wait_group without .read before the second is issued",
			what_of(c, old), what_of(c, now));
		if (old->cluster != now->cluster || old->warp != now->warp)
			report_hint(f, HINT(sync_with_issuer), old->cluster == now->cluster ? "a barrier"
				: "release and acquire at .gpu scope");
		return;
	case CS314:
		report_edge(f, "the bytes are beside the tensor, in the last unit of 16 bytes of a row: the "
			"%s puts there what the box has", what_of(c, old->flags & GR_PADDING ? old : now));
		return;
	case CS118: case CS119:
		explain_grids(c, f, x);
		return;
	case CS117:
		if (x->unfenced) {
			explain_unfenced(c, f, x);
			return;
		}
		report_edge(f, "warp %u read a flag that warp %u released after its %s, but no acquire "
			"fence follows that relaxed read", c->warp[now->warp].id, c->warp[old->warp].id,
			what_of(c, old));
		report_hint(f, HINT(acquire_after_flag));
		report_edit(f, now->site, EDIT(acquire_after_flag), old->cluster == now->cluster ? "cluster"
			: "gpu");
		return;
	case CS222:
		report_edge(f, "a release and an acquire pair up between the two blocks, but their scopes "
			"do not include both threads: blocks of a grid need .gpu scope");
		return;
	default:
		break;
	}
	if (x->unfenced) {
		explain_unfenced(c, f, x);
		return;
	}
	if (old->cluster != now->cluster) {
		explain_pair(c, f, x);
		return;
	}
	if (old->warp == now->warp) {
		report_edge(f, "no bar.warp.sync (__syncwarp) orders the %s before this %s",
			what_of(c, old), what_of(c, now));
		return;
	}
	report_edge(f, "no synchronisation orders warp %u's %s before this %s by warp %u",
		c->warp[old->warp].id, what_of(c, old), what_of(c, now), c->warp[now->warp].id);
}

/* A race that too narrow scopes explain: their sites. */
static void explain_scopes(struct finding *f, const struct narrow_sync *m)
{
	char from[PLACE_BYTES], to[PLACE_BYTES];

	report_hint(f, HINT(narrow_sites), report_place(m->released, from),
		report_place(m->acquired, to));
	report_edit(f, report_narrower(m->released, m->acquired), EDIT(narrow_sites));
}

/* Two grids that run at the same time */
static void explain_beside(struct cluster *c, struct finding *f, const struct global_conflict *x)
{
	const struct launch_info *then = &beside_of(c->check, x->now->cluster)->info;
	const struct launch_info *first = &beside_of(c->check, x->old->cluster)->info;
	const bool far = then->device != first->device;

	if (x->rule == CS222)
		report_edge(f, "a release and an acquire pair up between launch %u on device %u and launch %u on "
			"device %u, but their scopes do not include both threads: %s", first->id, first->device,
			then->id, then->device, far ? "threads of two devices need .sys scope"
			: "grids need .gpu scope");
	else if (x->rule == CS1001 || x->rule == CS1002)
		report_edge(f, "launch %u on device %u and launch %u on device %u run at the same time, and no "
			"release and acquire at .%s scope orders the %s of the one and the %s of the other",
			first->id, first->device, then->id, then->device, far ? "sys" : "gpu",
			what_before(x->old), what_before(x->now));
}

static void fill(struct cluster *c, struct finding *f, const struct global_conflict *x,
	const struct global_record *first, const struct global_record *second)
{
	side(c, f, first, first == x->now ? x->now_lane : x->old_lane, x);
	side(c, f, second, second == x->now ? x->now_lane : x->old_lane, x);
	explain(c, f, x);
	if (beside_other(c->check, x->old->cluster))
		explain_beside(c, f, x);
	report_values(c, f, x->old->flags & x->now->flags & GR_WRITE);
	if (x->narrow_sync && x->rule != CS108)
		explain_scopes(f, x->narrow_sync);
}

/* ---- two clusters ---- */

/* Called under the lock. */
static void count_pair(struct check *k, size_t finding, uint32_t high, uint32_t low)
{
	if (!pairs_add(&k->global->pairs, (uint32_t)finding, high, low))
		return;
	k->finding[finding]->seen++;
	if (pairs_add(&k->global->pairs, (uint32_t)finding, high, UINT32_MAX))
		k->finding[finding]->clusters++;
}

struct pair { const struct global_record *high, *low; };

static struct pair pair_of(const struct global_conflict *x)
{
	return x->now->cluster > x->old->cluster ? (struct pair){ x->now, x->old }
		: (struct pair){ x->old, x->now };
}

static struct finding_rank rank_of(const struct check *k, const struct pair *p, uint64_t addr)
{
	/* check_truncate() refers to clusters of this launch only */
	const uint32_t base = k->global->base, low = p->low->cluster, high = p->high->cluster;

	if (beside_other(k, high))
		return (struct finding_rank){ low - base, high, addr, { p->low->warp, p->high->warp } };
	return (struct finding_rank){ high - base, low < base ? low : low - base, addr,
		{ p->high->warp, p->low->warp } };
}

/* Is the finding known by an example that one of this rank does not replace? It is counted. */
static bool counted(struct check *k, const struct global_conflict *x, const struct pair *p,
	const struct finding_rank *rank)
{
	bool known = false;
	size_t at;

	pthread_mutex_lock(&k->lock);
	at = report_find(k, x->rule, p->high->site, p->low->site);
	if (at < k->nfindings) {
		count_pair(k, at, p->high->cluster, p->low->cluster);
		known = !report_replaces(k, at, x->severity, rank);
	}
	pthread_mutex_unlock(&k->lock);
	return known;
}

bool global_counted(const struct global_view *v, const struct global_conflict *x)
{
	const struct pair p = pair_of(x);
	const struct finding_rank rank = rank_of(v->c->check, &p, 0);

	return x->old->cluster != x->now->cluster && counted(v->c->check, x, &p, &rank);
}

static void report_pair(struct cluster *c, const struct global_conflict *x)
{
	const struct launch_info *l = &c->check->config.launch;
	const struct pair p = pair_of(x);
	const struct finding_rank rank = rank_of(c->check, &p, x->addr + x->byte);
	struct check *k = c->check;
	struct finding *f;
	size_t at;

	if (counted(k, x, &p, &rank))
		return;
	f = base_alloc(sizeof *f);
	f->rule = x->rule;
	f->severity = x->severity;
	finding_set_launch(f, l);
	fill(c, f, x, p.high, p.low);
	report_ranked(k, f, rank);
	pthread_mutex_lock(&k->lock);
	at = report_find(k, x->rule, p.high->site, p.low->site);
	if (at < k->nfindings)
		count_pair(k, at, p.high->cluster, p.low->cluster);
	pthread_mutex_unlock(&k->lock);
}

void global_report(struct global_view *v, const struct global_conflict *x)
{
	struct cluster *c = v->c;
	struct finding *f;

	if (x->old->cluster != x->now->cluster) {
		report_pair(c, x);
		return;
	}
	f = report_new(c, x->rule, x->severity, x->now->site, x->old->site);
	if (!f)
		return;
	fill(c, f, x, x->now, x->old);
	report_send(c, f);
}

void global_one_instruction(struct cluster *c, const struct event *e, unsigned lane,
	unsigned other, uint64_t addr)
{
	const bool differ = e->access.overwritten & (1u << lane | 1u << other);
	struct finding *f = report_new(c, CS103, differ ? SEV_WARNING : SEV_NOTE, e->site,
		differ ? 0 : e->site);

	if (!f)
		return;
	for (unsigned i = 0; i < 2u - differ; i++) {
		report_side(c, f, warp_of(c, e)->index, (int)(i ? other : lane), e->site, "write");
		f->side[i].space = SP_GLOBAL;
		f->side[i].addr = addr;
		f->side[i].bytes = e->access.bytes;
		name_place(c, &f->side[i]);
	}
	if (differ) {
		report_edge(f, "lanes %u and %u write different values to the same bytes in one "
			"instruction: which value remains is undefined", lane, other);
		report_send(c, f);
		return;
	}
	report_edge(f, "lanes %u and %u write the same bytes in one instruction", lane, other);
	report_hint(f, HINT(same_instruction));
	report_send(c, f);
}
