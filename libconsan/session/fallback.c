/* fallback: see fallback.h. The copy of the process returns its verdict in shared memory. */
#include "fallback.h"

#include "libconsan/event/event.h"
#include "libconsan/finding/rule_codes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Operations that reach from one part of a cluster into another, in the order in which they are
 * suspected: those that move data, those that synchronize, those that depend on the size of the
 * cluster. */
#define CROSSINGS(X) \
	X(DSMEM, "DSMEM access") \
	X(STORE, "DSMEM store or copy") \
	X(ATOMIC, "atomic on global memory") \
	X(ARRIVE, "remote arrive") \
	X(BARRIER, "cluster barrier") \
	X(MULTICAST, "multicast")

enum crossing {
#define X(id, name) CROSS_##id,
	CROSSINGS(X)
#undef X
	CROSS_COUNT
};

static const char *const crossing_name[] = {
#define X(id, name) name,
	CROSSINGS(X)
#undef X
};

enum { PLACES = 4, TEXT = 2048 };

struct crossings {
	pthread_mutex_t lock;
	uint32_t fallback[3];
	uint32_t site[CROSS_COUNT][PLACES]; /* the first sites found; 0: none */
};

struct crossing_sink {
	struct event_sink sink;
	struct event_sink *next;
	struct crossings *x;
	uint32_t dims[3], near[32]; /* by rank: bit set of the CTAs of the same part */
};

static void note(struct crossings *x, enum crossing kind, uint32_t site)
{
	pthread_mutex_lock(&x->lock);
	for (unsigned i = 0; i < PLACES; i++) {
		if (x->site[kind][i] == site)
			break;
		if (!x->site[kind][i]) {
			x->site[kind][i] = site;
			break;
		}
	}
	pthread_mutex_unlock(&x->lock);
}

static bool is_far(uint32_t near, unsigned cta)
{
	return !(near >> cta % 32 & 1);
}

static void on_event(struct event_sink *sink, const struct event *e)
{
	struct crossing_sink *s = (struct crossing_sink *)sink;
	const uint32_t near = s->near[e->cta % 32];

	switch (e->kind) {
	case EV_ACCESS:
		if (e->access.space == SP_SHARED && is_far(near, e->access.owner))
			note(s->x, CROSS_DSMEM, e->site);
		else if (e->access.space == SP_GLOBAL && e->access.mode == MODE_RMW)
			note(s->x, CROSS_ATOMIC, e->site);
		break;
	case EV_BULK: case EV_TRY_CANCEL:
		if (e->bulk.multicast && e->bulk.cta_mask & ~near)
			note(s->x, CROSS_MULTICAST, e->site);
		else if (!e->bulk.multicast && e->bulk.bytes && is_far(near, e->bulk.owner))
			note(s->x, CROSS_STORE, e->site);
		break;
	case EV_MBARRIER_ARRIVE:
		if (is_far(near, e->mbarrier_arrive.owner))
			note(s->x, CROSS_ARRIVE, e->site);
		break;
	case EV_MBARRIER_EXPECT_TX:
		if (is_far(near, e->mbarrier_expect_tx.owner))
			note(s->x, CROSS_ARRIVE, e->site);
		break;
	case EV_MBARRIER_COMPLETE_TX:
		if (is_far(near, e->mbarrier_complete_tx.owner))
			note(s->x, CROSS_ARRIVE, e->site);
		break;
	case EV_CLUSTER_ARRIVE:
		note(s->x, CROSS_BARRIER, e->site);
		break;
	default:
		break;
	}
	if (s->next)
		s->next->event(s->next, e);
}

struct event_sink *crossings_begin(struct crossings *x, const struct cluster_info *info,
	struct event_sink *next)
{
	struct crossing_sink *s = base_alloc(sizeof *s);
	const uint32_t *f = x->fallback;
	uint32_t part[32], dims[3];

	cluster_dims(info, dims);
	for (uint32_t r = 0; r < info->nctas && r < 32; r++)
		part[r] = r % dims[0] / f[0] + (r / dims[0] % dims[1] / f[1]) * 64
			+ (r / dims[0] / dims[1] / f[2]) * 4096;
	for (uint32_t r = 0; r < info->nctas && r < 32; r++)
		for (uint32_t q = 0; q < info->nctas && q < 32; q++)
			s->near[r] |= (uint32_t)(part[r] == part[q]) << q;
	s->x = x;
	s->next = next;
	s->sink.event = on_event;
	s->sink.want_global = true;
	return &s->sink;
}

struct event_sink *crossings_end(struct event_sink *sink)
{
	struct crossing_sink *s = (struct crossing_sink *)sink;
	struct event_sink *next = s->next;

	free(s);
	return next;
}

/* ---- copies of device memory ---- */

struct copy {
	VEC(struct exec_mem) range;
	unsigned char **at;
};

static void copy_take(struct copy *c)
{
	struct exec_mem m;

	for (size_t k = 0; exec_mem_at(k, &m); k++)
		if (!m.read_only && !m.multicast)
			vec_push(&c->range, m);
	c->at = base_alloc((c->range.n + 1) * sizeof *c->at);
	for (size_t k = 0; k < c->range.n; k++) {
		c->at[k] = base_alloc(c->range.at[k].bytes);
		memcpy(c->at[k], (void *)(uintptr_t)c->range.at[k].at, c->range.at[k].bytes);
	}
}

static void copy_restore(const struct copy *c)
{
	for (size_t k = 0; k < c->range.n; k++)
		memcpy((void *)(uintptr_t)c->range.at[k].at, c->at[k], c->range.at[k].bytes);
}

/* The number of bytes that differ from the copy; where: the first, as "byte N of an
 * allocation". */
static uint64_t copy_differs(const struct copy *c, char *where, size_t size)
{
	uint64_t n = 0;

	for (size_t k = 0; k < c->range.n; k++) {
		const unsigned char *now = (void *)(uintptr_t)c->range.at[k].at;

		if (!memcmp(now, c->at[k], c->range.at[k].bytes))
			continue;
		for (uint64_t i = 0; i < c->range.at[k].bytes; i++) {
			if (now[i] == c->at[k][i])
				continue;
			if (!n++)
				snprintf(where, size, "byte %llu of an allocation of %llu",
					(unsigned long long)i, (unsigned long long)c->range.at[k].bytes);
		}
	}
	return n;
}

/* ---- in the copy of the process ---- */

struct verdict {
	bool done;
	enum consan_remark kind;
	char text[TEXT];
};

struct attempt {
	struct consan *c;
	const struct consan_launch *l;
	const void *params;
	struct check_config config;
	struct crossings across;
	uint32_t whole, split, parts; /* numbers of clusters: not split, split, and of parts */
};

static struct check *check_of(struct attempt *t, struct crossings *watch)
{
	struct exec_result r = { 0 };
	struct check *check = check_open(&t->config);

	session_run(t->c, t->l, t->params, &t->config.launch, check, watch, NULL, &r);
	check_truncate(check, session_last(&r));
	return check;
}

static void put_place(struct text *t, uint32_t id)
{
	const struct site *s = site_get(id);
	const struct site_loc *l = site_headline(s->loc);
	const char *file = l ? strrchr(l->file, '/') ? strrchr(l->file, '/') + 1 : l->file : s->module;

	text_printf(t, "%s:%u (%.*s)", file, l ? l->line : s->ptx_line,
		(int)strcspn(s->ptx, " \t["), s->ptx);
}

static bool same_line(uint32_t a, uint32_t b)
{
	const struct site_loc *l = site_headline(site_get(a)->loc), *m = site_headline(site_get(b)->loc);

	return a == b || (l && m && l->line == m->line && !strcmp(l->file, m->file));
}

static void put_crossings(struct text *t, const struct crossings *x, enum crossing kind)
{
	text_printf(t, "%s at ", crossing_name[kind]);
	for (unsigned i = 0; i < PLACES && x->site[kind][i]; i++) {
		bool again = false;

		for (unsigned k = 0; k < i && !again; k++)
			again = same_line(x->site[kind][i], x->site[kind][k]);
		if (again)
			continue;
		text_printf(t, "%s", i ? ", " : "");
		put_place(t, x->site[kind][i]);
	}
}

/* The first error of `mixed` that `whole` does not have. */
static const struct finding *new_error(struct check *mixed, struct check *whole)
{
	const struct finding *const *now, *const *before;
	const size_t n = check_findings(mixed, &now), m = check_findings(whole, &before);

	for (size_t i = 0; i < n; i++) {
		bool known = now[i]->severity != SEV_ERROR;

		for (size_t k = 0; k < m && !known; k++)
			known = finding_same(now[i], before[k]);
		if (!known)
			return now[i];
	}
	return NULL;
}

static bool hangs(unsigned r)
{
	return r == CS701 || r == CS702 || r == CS703 || r == CS704 || r == CS705;
}

/* The operation that the site's source line performs on another CTA in whole clusters */
static const char *reach_of(const struct crossings *x, uint32_t site)
{
	for (unsigned k = 0; k < CROSS_BARRIER; k++)
		for (unsigned i = 0; k != CROSS_ATOMIC && i < PLACES && x->site[k][i]; i++)
			if (same_line(site, x->site[k][i]))
				return crossing_name[k];
	return "access";
}

/* Describes the operation that depends on the preferred size, according to the finding. */
static void blame_finding(struct text *t, const struct finding *f, const struct crossings *x)
{
	const struct rule_info *rule = rule_get(f->rule);
	const uint32_t site = f->nsides ? f->side[0].site : f->nwaiters ? f->waiter[0].who.site : 0;
	const bool global = f->nsides && f->side[0].space == SP_GLOBAL;

	if (f->rule == CS501 && strstr(site_get(site)->ptx, "multicast"))
		text_printf(t, "multicast mask built from the preferred size: ");
	else if (f->rule == CS501)
		text_printf(t, "%s to a rank built from the preferred size: ", reach_of(x, site));
	else if (hangs(f->rule))
		text_printf(t, "a wait counts on the preferred size: ");
	else if (global && x->site[CROSS_BARRIER][0]) {
		text_printf(t, "data is exchanged through global memory across a ");
		put_crossings(t, x, CROSS_BARRIER);
		text_printf(t, ": ");
	}
	put_place(t, site);
	text_printf(t, " %s %s", rule->code, rule->title);
	if (f->nsides > 1) {
		text_printf(t, ", conflicts with ");
		put_place(t, f->side[1].site);
	}
	if (*f->edge)
		text_printf(t, ": %s", f->edge);
	else if (f->nwaiters)
		text_printf(t, ": %s", f->waiter[0].text);
}

static void blame_values(struct text *t, const struct crossings *x, uint64_t bytes,
	const char *where)
{
	unsigned k = 0;

	while (k < CROSS_ARRIVE && !x->site[k][0])
		k++;
	if (k < CROSS_ARRIVE)
		put_crossings(t, x, k);
	else
		text_printf(t, "a value computed from the size of the cluster");
	text_printf(t, ": %llu bytes of memory become different, the first %s",
		(unsigned long long)bytes, where);
}

static void put_shapes(struct text *t, const struct attempt *a)
{
	const uint32_t *c = a->config.launch.cluster, *f = a->across.fallback;

	text_printf(t, "%u cluster%s of %ux%ux%u and %u of %ux%ux%u", a->whole, a->whole == 1 ? "" : "s",
		c[0], c[1], c[2], a->parts, f[0], f[1], f[2]);
}

static void count_clusters(struct attempt *a)
{
	const struct launch_info *l = &a->config.launch;
	const uint32_t n = cluster_whole(l);
	struct exec_launch x = { .seed = l->seed };
	uint32_t per = 1;

	memcpy(x.fallback, a->across.fallback, sizeof x.fallback);
	for (unsigned d = 0; d < 3; d++)
		per *= l->cluster[d] / x.fallback[d];
	for (uint32_t k = 0; k < n; k++)
		a->split += exec_splits(&x, k, n);
	a->whole = n - a->split;
	a->parts = a->split * per;
}

static void judge(struct attempt *a, struct verdict *v)
{
	struct copy before = { 0 }, after = { 0 };
	struct check *whole, *mixed;
	const struct finding *f;
	struct text t = { 0 };
	char where[100] = "";
	uint64_t bytes;

	session_silence(a->c, &a->config);
	count_clusters(a);
	copy_take(&before);
	whole = check_of(a, &a->across);
	copy_take(&after);
	copy_restore(&before);
	memcpy(a->config.launch.fallback, a->across.fallback, sizeof a->across.fallback);
	mixed = check_of(a, NULL);

	f = new_error(mixed, whole);
	bytes = copy_differs(&after, where, sizeof where);
	text_printf(&t, "%s, launch %u: ", a->l->kernel->demangled, a->config.launch.id);
	v->kind = f || bytes ? REMARK_FALLBACK_NOT_INVARIANT : REMARK_FALLBACK_INVARIANT;
	if (f)
		blame_finding(&t, f, &a->across);
	else if (bytes)
		blame_values(&t, &a->across, bytes, where);
	text_printf(&t, f || bytes ? "; with " : "");
	put_shapes(&t, a);
	if (!f && !bytes) {
		text_printf(&t, " leave the same memory as whole clusters, with no error");
		for (unsigned k = 0, n = 0; k < CROSS_COUNT; k++)
			if (k != CROSS_ATOMIC && a->across.site[k][0]) {
				text_printf(&t, n++ ? "; " : "; operations across CTAs adapt to it: ");
				put_crossings(&t, &a->across, k);
			}
	}
	snprintf(v->text, sizeof v->text, "%s", t.at);
	v->done = true;
}

/* ---- in the process itself ---- */

/* The size of the smaller clusters, with k CTAs: the launch's own, if it has so many, else the
 * widest part of the preferred cluster. False: there is none. */
static bool fallback_of(const struct consan_launch *l, const uint32_t preferred[3], uint64_t k,
	uint32_t out[3])
{
	const uint32_t *own = l->cluster;
	uint64_t left = k;

	if (l->preferred[0] && (uint64_t)own[0] * own[1] * own[2] == k) {
		memcpy(out, own, 3 * sizeof *out);
		return true;
	}
	for (unsigned d = 0; d < 3; d++) {
		out[d] = preferred[d];
		while (left % out[d] || preferred[d] % out[d])
			out[d]--;
		left /= out[d];
	}
	return left == 1;
}

void fallback_try(struct consan *c, const struct consan_launch *l, const void *params,
	const struct check_config *config)
{
	const uint32_t *dims = config->launch.cluster;
	const uint64_t k = c->opt.cluster_fallback, n = (uint64_t)dims[0] * dims[1] * dims[2];
	struct attempt a = { .c = c, .l = l, .params = params, .config = *config,
		.across.lock = PTHREAD_MUTEX_INITIALIZER };
	struct text t = { 0 };
	struct verdict *v;
	pid_t pid;

	if (n <= k || !fallback_of(l, dims, k, a.across.fallback)) {
		text_printf(&t, "%s: a cluster of %llu cannot be split into clusters of %llu",
			l->kernel->demangled, (unsigned long long)n, (unsigned long long)k);
		consan_remark(c, REMARK_FALLBACK_NOT_TRIED, t.at);
		text_free(&t);
		return;
	}
	v = mmap(NULL, sizeof *v, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (v == MAP_FAILED)
		base_die("no memory for the verdict on cluster fallback");
	pid = fork();
	if (!pid) {
		judge(&a, v);
		_exit(0); /* without exit handlers of the program */
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (v->done) {
		consan_remark(c, v->kind, v->text);
	} else {
		text_printf(&t, "%s: the copy of the process ended early",
			l->kernel->demangled);
		consan_remark(c, REMARK_FALLBACK_NOT_TRIED, t.at);
		text_free(&t);
	}
	munmap(v, sizeof *v);
}
