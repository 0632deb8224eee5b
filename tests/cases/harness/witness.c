/* witness: the two accesses that a race names must conflict. Each racy twin is run with --save, and
 * the sides of its findings are compared with the events: the named lane accessed the named bytes
 * at the named line, the bytes of both sides overlap, and two ordinary accesses are those of two
 * threads. */
#include "run.h"
#include "libconsan/event/event.h"
#include "libconsan/finding/finding.h"
#include "libconsan/finding/rule_codes.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What one lane, or an engine on its behalf, accessed. */
struct piece {
	uint32_t line, block;
	uint16_t warp, peer;
	unsigned lane;
	enum ev_space space;
	uint64_t addr, bytes;
	bool async, whole;       /* whole: the access of one lane, of 1 to 16 bytes */
};

struct tap {                     /* collects the pieces of one cluster */
	struct event_sink sink;  /* first member */
	struct pieces { struct piece *at; size_t n, cap; } *to;
	struct cluster_info info;
};

static void add(struct tap *t, const struct event *e, unsigned lane, struct piece p)
{
	p.line = site_get(e->site)->ptx_line;
	p.block = t->info.id * t->info.nctas + e->cta;
	p.warp = e->warp;
	p.lane = lane;
	vec_push(t->to, p);
}

static void add_bulk(struct tap *t, const struct event *e, unsigned lane)
{
	const struct event_bulk *b = &e->bulk;

	for (uint16_t peer = 0; peer < t->info.nctas; peer++) {
		if (b->multicast ? !(b->cta_mask >> peer & 1) : peer != b->owner)
			continue;
		add(t, e, lane, (struct piece){ .space = SP_SHARED, .peer = peer, .addr = b->addr,
			.bytes = b->bytes, .async = true });
	}
	if (b->source)
		add(t, e, lane, (struct piece){ .space = SP_SHARED, .peer = e->cta,
			.addr = b->source[lane], .bytes = b->bytes, .async = true });
	for (unsigned i = 0; i < b->global.n; i++)
		add(t, e, lane, (struct piece){ .space = SP_GLOBAL, .addr = b->global.at[i].addr,
			.bytes = b->global.at[i].bytes, .async = true });
}

static void on_event(struct event_sink *s, const struct event *e)
{
	struct tap *t = (struct tap *)s;

	for (uint32_t m = e->lanes; m; m &= m - 1) {
		unsigned l = (unsigned)__builtin_ctz(m);

		if (e->kind == EV_ACCESS)
			add(t, e, l, (struct piece){ .space = e->access.space, .peer = e->access.owner,
				.addr = lane_addr(&e->access.at, l), .bytes = e->access.bytes, .whole = true });
		if (e->kind == EV_CP_ASYNC) {
			add(t, e, l, (struct piece){ .space = SP_SHARED, .peer = e->cta, .async = true,
				.addr = lane_addr(&e->cp_async.at, l), .bytes = e->cp_async.bytes,
				.whole = true });
			add(t, e, l, (struct piece){ .space = SP_GLOBAL, .async = true,
				.addr = e->cp_async.source[l], .bytes = e->cp_async.source_bytes,
				.whole = true });
		}
		if (e->kind == EV_BULK)
			add_bulk(t, e, l);
		if (e->kind == EV_WGMMA)
			add(t, e, l, (struct piece){ .async = true });
	}
}

static struct event_sink *on_begin(void *user, const struct cluster_info *c)
{
	struct tap *t = base_alloc(sizeof *t);

	*t = (struct tap){ .sink = { .event = on_event, .want_global = true }, .to = user, .info = *c };
	return &t->sink;
}

static void on_end(void *user, const struct cluster_info *c, struct event_sink *sink, bool whole)
{
	(void)user;
	(void)c;
	(void)whole;
	free(sink);
}

/* Is it an access of this side's thread at its line? */
static bool same_access(const struct piece *p, const struct finding_side *s)
{
	return p->line == site_get(s->site)->ptx_line && p->block == s->ctaid[0] && p->warp == s->warp
		&& (s->lane < 0 || p->lane == (unsigned)s->lane);
}

static bool at_place(const struct piece *p, const struct finding_side *s)
{
	if (p->space != s->space || (s->space == SP_SHARED && p->peer != s->peer))
		return false;
	if (p->whole && p->bytes <= 16 && !(p->bytes & (p->bytes - 1)))
		return p->addr == s->addr && p->bytes == s->bytes;
	if (s->lane < 0) /* several lanes together */
		return p->addr < s->addr + s->bytes && s->addr < p->addr + p->bytes;
	return s->addr >= p->addr && s->addr + s->bytes <= p->addr + p->bytes;
}

/* Did that thread execute that line, and did it access these bytes there? */
static void judge_side(const char *path, const struct finding *f, unsigned side,
	const struct pieces *all, bool *async)
{
	const struct finding_side *s = &f->side[side];
	bool executed = false, there = false;

	*async = false;
	for (size_t i = 0; i < all->n; i++)
		if (same_access(&all->at[i], s)) {
			executed = true;
			*async |= all->at[i].async;
			there |= all->at[i].space == SP_ANY || at_place(&all->at[i], s);
		}
	cr_expect(!executed || there, "%s: %s: side %u: lane %d of warp %u at line %u did not access "
		"%u bytes at 0x%llx", path, rule_get(f->rule)->code, side, s->lane, s->warp,
		site_get(s->site)->ptx_line, s->bytes, (unsigned long long)s->addr);
	*async |= !executed;
}

/* The rules about two accesses to the same bytes. */
static bool is_race(unsigned rule)
{
	const char *code = rule_get(rule)->code;

	return !strncmp(code, "CS1", 3) || !strcmp(code, "CS222") || !strcmp(code, "CS301");
}

static void judge(const char *path, const struct finding *f, const struct pieces *all)
{
	const struct finding_side *a = &f->side[0], *b = &f->side[1];
	const char *code = rule_get(f->rule)->code;
	bool async[2];

	if (!is_race(f->rule) || f->nsides != 2 || !a->bytes || !b->bytes)
		return;
	cr_expect(a->space == b->space && (a->space != SP_SHARED || a->peer == b->peer)
		&& a->addr < b->addr + b->bytes && b->addr < a->addr + a->bytes, "%s: %s: %u bytes at 0x%llx and %u at 0x%llx do not "
		"overlap", path, code, a->bytes, (unsigned long long)a->addr, b->bytes,
		(unsigned long long)b->addr);
	judge_side(path, f, 0, all, &async[0]);
	judge_side(path, f, 1, all, &async[1]);
	/* CS118 and CS119 are about threads of two launches */
	cr_expect(async[0] || async[1] || f->rule == CS118 || f->rule == CS119
		|| a->ctaid[0] != b->ctaid[0] || a->warp != b->warp || a->lane != b->lane, "%s: %s: both sides are lane %d of warp %u", path, code, a->lane,
		a->warp);
}

static void specimen_test(const char *path)
{
	char saved[] = "/tmp/consan-witness-XXXXXX", words[512];
	struct event_read_stats stats;
	struct pieces all = { 0 };
	struct event_reader reader = { .user = &all, .cluster_begin = on_begin,
		.cluster_end = on_end };
	const struct finding *const *f;
	struct specimen s;
	struct run g = { 0 };
	struct consan_err e = { 0 };
	size_t n;

	specimen_read(&s, path);
	close(mkstemp(saved));
	snprintf(words, sizeof words, "%s save=%s", s.options, saved);
	g.c = consan_open(words, &e);
	cr_assert(g.c, "%s: %s", path, e.text);
	run_specimen(&s, s.twins ? RACY : FIXED, &g);
	n = consan_raw_findings(g.c, &f);
	cr_assert(event_read(saved, &reader, &stats, &e), "%s: %s", path, e.text);
	for (size_t i = 0; i < n; i++)
		judge(path, f[i], &all);
	run_close(&g);
	unlink(saved);
	vec_free(&all);
	free(s.text);
}

Test(witness, the_two_accesses_conflict)
{
	const char *some = getenv("CASES");
	glob_t g;

	cr_assert_eq(glob(some ? some : SPECIMENS, 0, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc; i++)
		specimen_test(g.gl_pathv[i]);
	globfree(&g);
}
