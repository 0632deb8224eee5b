/* Stale reads (--reads): litmus tests, each run under many seeds. Outcomes that the PTX ISA allows
 * and no interleaving shows are seen; outcomes that it forbids never are. Random programs are
 * judged by the axioms of section 8.10, which are computed here from all pairs of operations.
 * One file, because the litmus tests and the random programs share what builds and runs them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libconsan/check/check.h"
#include "libconsan/exec/exec.h"
#include "tests/common/limits.h"

enum kind { LD, POLL, ST, RMW, FENCE }; /* POLL: until it is not 0 */

struct op {
	enum kind kind;
	enum ev_sem sem;
	enum ev_scope scope;
	unsigned at;             /* number of the location */
	unsigned value;          /* ST, RMW: unique in the program, not 0 */
	bool vector, mmio;       /* LD: with its neighbour; .mmio */
	/* after a run */
	unsigned got;            /* LD, POLL, RMW */
};

#define MAX_THREADS 4
#define MAX_OPS 6
#define LOCATIONS 4
#define WARPS 4

/* Where locations are: in global memory; in shared memory of the only CTA; in that of the first two
 * CTAs of a cluster; in global memory and, if their numbers are odd, in shared memory of the first. */
enum memory { GLOBAL, SHARED, CLUSTER, MIXED, MEMORIES };
static const char *const memory_text[] = { "global", "shared", "shared::cluster", "mixed" };

struct program {
	enum memory memory;
	unsigned threads;
	struct { unsigned cta, warp, n; struct op op[MAX_OPS]; } thread[MAX_THREADS];
	unsigned last[LOCATIONS]; /* values afterwards */
	char *text;
};

/* ---- to PTX, and runs ---- */

static const char *const sem_text[] = { "weak", "relaxed", "acquire", "release", "acq_rel", "sc",
	"volatile" };
static const char *const scope_text[] = { "", ".cta", ".cluster", ".gpu", ".sys" };

/* Locations 0 and 1 are neighbours, 2 and 3 too. */
static unsigned place(unsigned at)
{
	return 64 * (at / 2) + 4 * (at % 2);
}

static bool is_global(enum memory m, unsigned at)
{
	return m == GLOBAL || (m == MIXED && at % 2 == 0);
}

static void put_op(struct text *t, enum memory m, const struct op *o, unsigned reg)
{
	const char *sem = sem_text[o->sem];
	const char *scope = o->sem == SEM_VOLATILE || o->sem == SEM_WEAK ? ""
		: scope_text[o->scope];
	const char *space = is_global(m, o->at) ? "global" : m == SHARED ? "shared" : "shared::cluster";
	const char *base = is_global(m, o->at) ? "%rd1" : m == CLUSTER && o->at / 2 ? "%r59" : "%r58";

	switch (o->kind) {
	case FENCE:
		text_printf(t, "fence.%s%s;\n", sem, scope);
		return;
	case LD:
		if (o->vector)
			text_printf(t, o->at % 2 ? "ld.%s%s.%s.v2.u32 {%%r63, %%r%u}, [%s+%u];\n"
				: "ld.%s%s.%s.v2.u32 {%%r%u, %%r63}, [%s+%u];\n", sem, scope, space, reg, base,
				place(o->at & ~1u));
		else if (o->mmio)
			text_printf(t, "ld.mmio.relaxed.sys.global.u32 %%r%u, [%%rd1+%u];\n", reg, place(o->at));
		else
			text_printf(t, "ld.%s%s.%s.u32 %%r%u, [%s+%u];\n", sem, scope, space, reg, base,
				place(o->at));
		return;
	case POLL:
		text_printf(t, "$P%p:\nld.%s%s.%s.u32 %%r%u, [%s+%u];\n"
			"setp.eq.u32 %%p3, %%r%u, 0;\n@%%p3 bra $P%p;\n", (const void *)o, sem, scope, space, reg,
			base, place(o->at), reg, (const void *)o);
		return;
	case ST:
		text_printf(t, "st.%s%s.%s.u32 [%s+%u], %u;\n", sem, scope, space, base, place(o->at),
			o->value);
		return;
	case RMW:
		text_printf(t, "atom.%s%s.%s.exch.b32 %%r%u, [%s+%u], %u;\n", sem, scope, space, reg, base,
			place(o->at), o->value);
		return;
	}
}

static bool reads(const struct op *o)
{
	return o->kind == LD || o->kind == POLL || o->kind == RMW;
}

static void put_cluster_barrier(struct text *t)
{
	text_printf(t, "barrier.cluster.arrive;\nbarrier.cluster.wait;\n");
}

/* A word for each result: 1024 + 4 * (thread * MAX_OPS + op) bytes into the memory. What is in shared
 * memory in the end is copied to its place in global memory. */
static char *ptx_of(const struct program *p, unsigned ctas)
{
	struct text t = { 0 };

	text_printf(&t, ".version 8.7\n.target sm_90a\n.address_size 64\n"
		".visible .entry k(.param .u64 out)\n{\n.reg .pred %%p<8>;\n.reg .b32 %%r<64>;\n"
		".reg .b64 %%rd<4>;\n.shared .align 16 .b8 buf[128];\nld.param.u64 %%rd1, [out];\n"
		"mov.u32 %%r60, %%tid.x;\nmov.u32 %%r61, %%ctaid.x;\nmov.u32 %%r57, buf;\n"
		"mapa.shared::cluster.u32 %%r58, %%r57, 0;\nmapa.shared::cluster.u32 %%r59, %%r57, %u;\n"
		"setp.ne.u32 %%p1, %%r60, 0;\n", p->memory == CLUSTER && ctas > 1);
	for (unsigned at = 0; at < LOCATIONS && p->memory != GLOBAL; at++)
		text_printf(&t, "@!%%p1 st.shared.u32 [buf+%u], 0;\n", place(at));
	if (p->memory != GLOBAL)
		put_cluster_barrier(&t);
	text_printf(&t, "and.b32 %%r62, %%r60, 31;\nsetp.ne.u32 %%p1, %%r62, 0;\n"
		"@%%p1 ret;\nshr.u32 %%r60, %%r60, 5;\nmad.lo.u32 %%r60, %%r61, %u, %%r60;\n", WARPS);
	for (unsigned i = 0; i < p->threads; i++)
		text_printf(&t, "setp.eq.u32 %%p2, %%r60, %u;\n@%%p2 bra $T%u;\n",
			WARPS * p->thread[i].cta + p->thread[i].warp, i);
	text_printf(&t, "bra $END;\n");
	for (unsigned i = 0; i < p->threads; i++) {
		text_printf(&t, "$T%u:\n", i);
		for (unsigned k = 0; k < p->thread[i].n; k++)
			put_op(&t, p->memory, &p->thread[i].op[k], k);
		for (unsigned k = 0; k < p->thread[i].n; k++)
			if (reads(&p->thread[i].op[k]))
				text_printf(&t, "st.global.u32 [%%rd1+%u], %%r%u;\n",
					1024 + 4 * (i * MAX_OPS + k), k);
		text_printf(&t, "bra $END;\n");
	}
	text_printf(&t, "$END:\n");
	if (p->memory != GLOBAL) {
		put_cluster_barrier(&t);
		text_printf(&t, "setp.ne.u32 %%p1, %%r60, 0;\n");
	}
	for (unsigned at = 0; at < LOCATIONS; at++)
		if (!is_global(p->memory, at))
			text_printf(&t, "@!%%p1 ld.shared::cluster.u32 %%r63, [%s+%u];\n"
				"@!%%p1 st.global.u32 [%%rd1+%u], %%r63;\n",
				p->memory == CLUSTER && at / 2 ? "%r59" : "%r58", place(at), place(at));
	if (p->memory != GLOBAL)
		put_cluster_barrier(&t);
	text_printf(&t, "ret;\n}\n");
	return t.at;
}

struct ready { struct exec_module *m; const struct exec_kernel *k; unsigned ctas; };

static struct ready prepare(struct program *p)
{
	struct consan_err e = { 0 };
	struct ptx_module *ptx;
	struct ready r = { .ctas = 1 };

	for (unsigned i = 0; i < p->threads; i++)
		r.ctas = p->thread[i].cta >= r.ctas ? p->thread[i].cta + 1 : r.ctas;
	p->text = ptx_of(p, r.ctas);
	ptx = ptx_parse("test.ptx", p->text, strlen(p->text), &e);
	cr_assert(ptx, "%s\n%s", e.text, p->text);
	r.m = exec_load(ptx, &e);
	cr_assert(r.m, "%s", e.text);
	r.k = exec_kernel(r.m, "k", &e);
	cr_assert(r.k, "%s", e.text);
	return r;
}

static void done(struct program *p, struct ready *r)
{
	exec_unload(r->m);
	free(p->text);
}

static void run_observed(struct program *p, const struct ready *r, uint64_t seed,
	enum exec_reads which, const struct exec_observer *observer)
{
	static uint32_t memory[512];
	uint32_t *at = memory;
	struct exec_launch l = { .device = exec_device_for(90), .kernel = r->k,
		.grid = { r->ctas, 1, 1 }, .block = { 32 * WARPS, 1, 1 }, .params = &at,
		.cluster = { p->memory == GLOBAL ? 1 : r->ctas, 1, 1 }, .timeout = 20, .seed = seed, .reads = which, .observer = observer };
	struct exec_result result;

	memset(memory, 0, sizeof memory);
	exec_mem_add(memory, sizeof memory, MEM_DEVICE, false);
	cr_assert_eq(exec_run(&l, &result), EXEC_OK, "%s\n%s", result.err.text, p->text);
	exec_mem_remove(memory);
	for (unsigned i = 0; i < p->threads; i++)
		for (unsigned k = 0; k < p->thread[i].n; k++)
			p->thread[i].op[k].got = memory[256 + i * MAX_OPS + k];
	for (unsigned i = 0; i < LOCATIONS; i++)
		p->last[i] = memory[place(i) / 4];
}

static void run(struct program *p, const struct ready *r, uint64_t seed, enum exec_reads which)
{
	run_observed(p, r, seed, which, NULL);
}

/* ---- the axioms ---- */

#define MAX (MAX_THREADS * MAX_OPS + LOCATIONS)

struct node { struct op op; unsigned thread, cta; int from; };
static struct node ev[MAX];
static enum ev_scope between; /* the narrowest scope that includes threads of two CTAs */
static unsigned n;
static bool po[MAX][MAX], co[MAX][MAX], seen[MAX][MAX], sync[MAX][MAX], base[MAX][MAX];

static bool writes(unsigned i)
{
	return ev[i].op.kind == ST || ev[i].op.kind == RMW;
}

static bool includes(unsigned a, unsigned b)
{
	return ev[a].op.scope >= (ev[a].cta == ev[b].cta ? SCOPE_CTA : between);
}

/* 8.7. The first writes are the host's: ordered before all. */
static bool morally_strong(unsigned a, unsigned b)
{
	return ev[a].thread == ev[b].thread || (includes(a, b) && includes(b, a));
}

static bool same_place(unsigned a, unsigned b)
{
	return ev[a].op.kind != FENCE && ev[b].op.kind != FENCE && ev[a].op.at == ev[b].op.at;
}

static bool releases(unsigned x, unsigned w)
{
	return writes(w) && (x == w || po[x][w]) && sem_releases(ev[x].op.sem)
		&& (ev[x].op.kind == FENCE || (writes(x) && same_place(x, w)));
}

static bool acquires(unsigned r, unsigned y)
{
	return reads(&ev[r].op) && (r == y || po[r][y]) && sem_acquires(ev[y].op.sem)
		&& (ev[y].op.kind == FENCE || (reads(&ev[y].op) && same_place(r, y)));
}

static void collect(const struct program *p)
{
	n = 0;
	between = p->memory == GLOBAL ? SCOPE_GPU : SCOPE_CLUSTER;
	memset(po, 0, sizeof po);
	for (unsigned at = 0; at < LOCATIONS; at++)
		ev[n++] = (struct node){ { .kind = ST, .sem = SEM_RELAXED, .scope = SCOPE_SYS, .at = at },
			MAX_THREADS, 99, -1 };
	for (unsigned t = 0; t < p->threads; t++)
		for (unsigned k = 0, first = n; k < p->thread[t].n; k++, n++) {
			ev[n] = (struct node){ p->thread[t].op[k], t, p->thread[t].cta, -1 };
			for (unsigned i = first; i < n; i++)
				po[i][n] = true;
		}
	for (unsigned r = 0; r < n; r++)
		for (unsigned w = 0; w < n && reads(&ev[r].op); w++)
			if (writes(w) && same_place(w, r) && ev[w].op.value == ev[r].op.got)
				ev[r].from = (int)w;
}

static void observation(void)
{
	bool more = true;

	memset(seen, 0, sizeof seen);
	for (unsigned r = 0; r < n; r++)
		if (reads(&ev[r].op) && ev[r].from >= LOCATIONS && morally_strong((unsigned)ev[r].from, r))
			seen[ev[r].from][r] = true;
	while (more) {
		more = false;
		for (unsigned w = 0; w < n; w++)
			for (unsigned m = 0; m < n; m++)
				for (unsigned r = 0; seen[w][m] && ev[m].op.kind == RMW && r < n; r++)
					if (seen[m][r] && !seen[w][r])
						seen[w][r] = more = true;
	}
}

/* With this Fence-SC order. False: it contradicts causality. */
static bool causality(const unsigned *fence, unsigned nfences)
{
	memset(sync, 0, sizeof sync);
	for (unsigned w = 0; w < n; w++)
		for (unsigned r = 0; r < n; r++)
			for (unsigned x = 0; seen[w][r] && x < n; x++)
				for (unsigned y = 0; releases(x, w) && y < n; y++)
					sync[x][y] |= acquires(r, y) && morally_strong(x, y);
	for (unsigned i = 0; i < nfences; i++)
		for (unsigned k = i + 1; k < nfences; k++)
			sync[fence[i]][fence[k]] |= morally_strong(fence[i], fence[k]);
	for (unsigned x = 0; x < n; x++)
		for (unsigned y = 0; y < n; y++)
			base[x][y] = po[x][y] || sync[x][y] || (x < LOCATIONS && y >= LOCATIONS);
	for (unsigned z = 0; z < n; z++)
		for (unsigned x = 0; x < n; x++)
			for (unsigned y = 0; base[x][z] && y < n; y++)
				base[x][y] |= base[z][y];
	for (unsigned x = 0; x < n; x++)
		if (base[x][x])
			return false;
	return true;
}

static bool caused(unsigned x, unsigned y)
{
	for (unsigned z = 0; z < n; z++)
		if (seen[x][z] && base[z][y])
			return true;
	return base[x][y];
}

/* Is what b reads, or b itself if it only writes, older than a, or what a reads? */
static bool contradicts(unsigned a, unsigned b)
{
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < 2; k++) {
			const int x = i ? ev[a].from : writes(a) ? (int)a : -1;
			const int y = k ? ev[b].from : writes(b) ? (int)b : -1;

			if (x >= 0 && y >= 0 && co[y][x])
				return true;
			if (i && !k && x >= 0 && x == y) /* a reads what b writes */
				return true;
		}
	return false;
}

static bool consistent(void)
{
	for (unsigned a = 0; a < n; a++)
		for (unsigned b = 0; b < n; b++)
			if (a != b && same_place(a, b) && caused(a, b) && contradicts(a, b))
				return false;
	for (unsigned m = 0; m < n; m++)
		for (unsigned w = 0; ev[m].op.kind == RMW && w < n; w++)
			if (w != m && writes(w) && same_place(w, m) && co[ev[m].from][w] && co[w][m])
				return false; /* atomicity */
	return true;
}

static bool any_fence_order(unsigned *fence, unsigned done_, unsigned nfences)
{
	if (done_ == nfences)
		return causality(fence, nfences) && consistent();
	for (unsigned i = done_; i < nfences; i++) {
		unsigned was = fence[done_];
		bool ok;

		fence[done_] = fence[i];
		fence[i] = was;
		ok = any_fence_order(fence, done_ + 1, nfences);
		fence[i] = fence[done_];
		fence[done_] = was;
		if (ok)
			return true;
	}
	return false;
}

/* Is there a coherence order of location `at` and all later ones? */
static bool any_coherence(const struct program *p, unsigned at, unsigned *fence, unsigned nfences,
	unsigned *order, unsigned length)
{
	bool complete = true;

	if (at == LOCATIONS)
		return any_fence_order(fence, 0, nfences);
	for (unsigned w = LOCATIONS; w < n; w++) {
		bool placed = !writes(w) || ev[w].op.at != at;

		for (unsigned i = 0; i < length; i++)
			placed |= order[i] == w;
		if (placed)
			continue;
		complete = false;
		co[at][w] = true;
		for (unsigned i = 0; i < length; i++)
			co[order[i]][w] = true;
		order[length] = w;
		if (any_coherence(p, at, fence, nfences, order, length + 1))
			return true;
		co[at][w] = false;
		for (unsigned i = 0; i < length; i++)
			co[order[i]][w] = false;
	}
	if (!complete || (length ? ev[order[length - 1]].op.value : 0) != p->last[at])
		return false;
	return any_coherence(p, at + 1, fence, nfences, order + length, 0);
}

static bool allowed(const struct program *p)
{
	unsigned fence[MAX], nfences = 0, order[MAX];

	collect(p);
	memset(co, 0, sizeof co);
	for (unsigned i = 0; i < n; i++) {
		if (reads(&ev[i].op) && ev[i].from < 0)
			return false;
		if (ev[i].op.kind == FENCE && ev[i].op.sem == SEM_SC)
			fence[nfences++] = i;
	}
	observation();
	return any_coherence(p, 0, fence, nfences, order, 0);
}

/* ---- well-known tests ---- */

enum { X, Y, Z };
#define GPU SCOPE_GPU
#define W(s, a, v) { .kind = ST, .sem = SEM_##s, .scope = GPU, .at = a, .value = v }
#define R(s, a) { .kind = LD, .sem = SEM_##s, .scope = GPU, .at = a }
#define V(s, a) { .kind = LD, .sem = SEM_##s, .scope = GPU, .at = a, .vector = true }
#define M(a) { .kind = LD, .sem = SEM_RELAXED, .scope = SCOPE_SYS, .at = a, .mmio = true }
#define P(s, a) { .kind = POLL, .sem = SEM_##s, .scope = GPU, .at = a }
#define A(s, a, v) { .kind = RMW, .sem = SEM_##s, .scope = GPU, .at = a, .value = v }
#define F(s) { .kind = FENCE, .sem = SEM_##s, .scope = GPU }

#define RUNS 300

/* In how many runs did thread t's k-th operation return `value`, for all of the triples? */
static unsigned count(struct program *p, enum exec_reads which, const unsigned (*want)[3],
	unsigned nwant)
{
	struct ready r = prepare(p);
	unsigned times = 0;

	for (uint64_t seed = 0; seed < RUNS; seed++) {
		bool all = true;

		run(p, &r, seed, which);
		for (unsigned i = 0; i < nwant; i++)
			all &= p->thread[want[i][0]].op[want[i][1]].got == want[i][2];
		times += all;
		cr_expect(allowed(p), "seed %llu: an outcome that the ISA forbids\n%s",
			(unsigned long long)seed, p->text);
	}
	done(p, &r);
	return times;
}

static struct program spread(struct program p)
{
	for (unsigned i = 0; i < MAX_THREADS; i++) {
		p.thread[i].cta = i;
		while (p.thread[i].n < MAX_OPS && (p.thread[i].op[p.thread[i].n].sem))
			p.thread[i].n++;
		p.threads += p.thread[i].n > 0;
	}
	return p;
}

#define PROGRAM(...) spread((struct program){ .thread = { __VA_ARGS__ } })
#define T(...) { .op = { __VA_ARGS__ } }
#define WANT(...) (const unsigned[][3]){ __VA_ARGS__ }, \
	sizeof (const unsigned[][3]){ __VA_ARGS__ } / sizeof (unsigned[3])

/* How often the outcome is seen: never; with random reads; with the oldest, too */
enum often { NEVER, RANDOM, OLDEST };

static void judge_in(const char *name, enum memory m, struct program p, enum often often,
	const unsigned (*want)[3], unsigned nwant)
{
	unsigned random, oldest;

	p.memory = m;
	random = count(&p, READS_RANDOM, want, nwant);
	oldest = count(&p, READS_OLDEST, want, nwant);
	cr_expect_eq(count(&p, READS_NEWEST, want, nwant), 0, "%s, %s: newest", name, memory_text[m]);
	cr_expect_eq(random > 0, often >= RANDOM, "%s, %s: %u times with random reads", name,
		memory_text[m], random);
	if (often != RANDOM)
		cr_expect_eq(oldest > 0, often == OLDEST, "%s, %s: %u times with the oldest", name,
			memory_text[m], oldest);
}

static bool fits(const struct program *p, enum memory m)
{
	bool fits = true;

	for (unsigned i = 0; i < p->threads; i++)
		for (unsigned k = 0; k < p->thread[i].n; k++)
			fits &= (m != MIXED || !p->thread[i].op[k].vector) && (m == GLOBAL || !p->thread[i].op[k].mmio);
	return fits;
}

static struct program in_one_cta(struct program p)
{
	for (unsigned i = 0; i < MAX_THREADS; i++) {
		p.thread[i].cta = 0;
		p.thread[i].warp = i;
	}
	return p;
}

/* Some of what only random reads show needs a late load of shared memory, which no seed gives beside
 * global memory: there a write waits until no load can be performed. */
static void judge(const char *name, struct program p, enum often often,
	const unsigned (*want)[3], unsigned nwant)
{
	for (enum memory m = GLOBAL; m < MEMORIES; m++)
		if (fits(&p, m) && (m != MIXED || often != RANDOM))
			judge_in(name, m, m == SHARED ? in_one_cta(p) : p, often, want, nwant);
}

Test(reads, store_buffering)
{
	judge("acq_rel", PROGRAM(T(W(RELAXED, X, 1), F(ACQ_REL), R(RELAXED, Y)),
		T(W(RELAXED, Y, 2), F(ACQ_REL), R(RELAXED, X))), OLDEST, WANT({ 0, 2, 0 }, { 1, 2, 0 }));
	judge("one sc", PROGRAM(T(W(RELAXED, X, 1), F(SC), R(RELAXED, Y)),
		T(W(RELAXED, Y, 2), F(ACQ_REL), R(RELAXED, X))), OLDEST, WANT({ 0, 2, 0 }, { 1, 2, 0 }));
	judge("sc", PROGRAM(T(W(RELAXED, X, 1), F(SC), R(RELAXED, Y)),
		T(W(RELAXED, Y, 2), F(SC), R(RELAXED, X))), NEVER, WANT({ 0, 2, 0 }, { 1, 2, 0 }));
	judge("atomics", PROGRAM(T(A(ACQ_REL, X, 1), R(ACQUIRE, Y)),
		T(A(ACQ_REL, Y, 2), R(ACQUIRE, X))), OLDEST, WANT({ 0, 1, 0 }, { 1, 1, 0 }));
	judge("mmio", PROGRAM(T(W(RELAXED, X, 1), M(Y)), T(W(RELAXED, Y, 2), M(X))), OLDEST,
		WANT({ 0, 1, 0 }, { 1, 1, 0 }));
	judge("vectors", PROGRAM(T(W(RELAXED, X, 1), V(RELAXED, Z)), T(W(RELAXED, Z, 2), V(RELAXED, X))),
		OLDEST, WANT({ 0, 1, 0 }, { 1, 1, 0 }));
	judge("vectors, fence.sc", PROGRAM(T(W(RELAXED, X, 1), F(SC), V(RELAXED, Z)),
		T(W(RELAXED, Z, 2), F(SC), V(RELAXED, X))), NEVER, WANT({ 0, 2, 0 }, { 1, 2, 0 }));
	judge("release", PROGRAM(T(W(RELEASE, X, 1), R(ACQUIRE, Y)),
		T(W(RELEASE, Y, 2), R(ACQUIRE, X))), OLDEST, WANT({ 0, 1, 0 }, { 1, 1, 0 }));
}

/* The first thread reads 0, so its fence is the first, and what precedes it is handed on. */
Test(reads, fence_sc_is_transitive)
{
	judge("fence.sc", PROGRAM(T(W(RELAXED, X, 1), F(SC), R(RELAXED, Z)),
		T(W(RELAXED, Z, 2), F(SC), W(RELEASE, Y, 3)), T(P(ACQUIRE, Y), R(RELAXED, X))), NEVER,
		WANT({ 0, 2, 0 }, { 2, 1, 0 }));
	judge("fence.acq_rel", PROGRAM(T(W(RELAXED, X, 1), F(ACQ_REL), R(RELAXED, Z)),
		T(W(RELAXED, Z, 2), F(ACQ_REL), W(RELEASE, Y, 3)), T(P(ACQUIRE, Y), R(RELAXED, X))), OLDEST,
		WANT({ 0, 2, 0 }, { 2, 1, 0 }));
}

Test(reads, message_passing)
{
	judge("relaxed", PROGRAM(T(W(RELAXED, X, 1), W(RELAXED, Y, 2)),
		T(P(RELAXED, Y), R(RELAXED, X))), OLDEST, WANT({ 1, 1, 0 }));
	judge("volatile", PROGRAM(T(W(VOLATILE, X, 1), W(VOLATILE, Y, 2)),
		T(P(VOLATILE, Y), R(VOLATILE, X))), OLDEST, WANT({ 1, 1, 0 }));
	judge("without a loop", PROGRAM(T(W(RELAXED, X, 1), W(RELAXED, Y, 2)),
		T(R(RELAXED, Y), R(RELAXED, X))), RANDOM, WANT({ 1, 0, 2 }, { 1, 1, 0 }));
	judge("no acquire", PROGRAM(T(W(RELAXED, X, 1), W(RELEASE, Y, 2)),
		T(P(RELAXED, Y), R(RELAXED, X))), OLDEST, WANT({ 1, 1, 0 }));
	judge("no release", PROGRAM(T(W(RELAXED, X, 1), W(RELAXED, Y, 2)),
		T(P(ACQUIRE, Y), R(RELAXED, X))), OLDEST, WANT({ 1, 1, 0 }));
	judge("release, acquire", PROGRAM(T(W(RELAXED, X, 1), W(RELEASE, Y, 2)),
		T(P(ACQUIRE, Y), R(RELAXED, X))), NEVER, WANT({ 1, 1, 0 }));
	judge("fences", PROGRAM(T(W(RELAXED, X, 1), F(ACQ_REL), W(RELAXED, Y, 2)),
		T(P(RELAXED, Y), F(ACQ_REL), R(RELAXED, X))), NEVER, WANT({ 1, 2, 0 }));
	judge("a relaxed read, then an acquire", PROGRAM(T(W(RELAXED, X, 1), W(RELEASE, Y, 2)),
		T(P(RELAXED, Y), R(ACQUIRE, Y), R(RELAXED, X))), NEVER, WANT({ 1, 2, 0 }));
	judge("a release, then a relaxed write",
		PROGRAM(T(W(RELAXED, X, 1), W(RELEASE, Y, 2), W(RELAXED, Y, 3)),
		T(P(ACQUIRE, Y), R(RELAXED, X))), NEVER, WANT({ 1, 1, 0 }));
	judge("a chain", PROGRAM(T(W(RELAXED, X, 1), W(RELEASE, Y, 2)),
		T(P(RELAXED, Y), A(RELAXED, Y, 3)), T(P(ACQUIRE, Y), R(RELAXED, X))), NEVER,
		WANT({ 2, 1, 0 }));
	judge("a store ends the chain", PROGRAM(T(W(RELAXED, X, 1), W(RELEASE, Y, 2)),
		T(P(RELAXED, Y), W(RELAXED, Y, 3)), T(P(ACQUIRE, Y), R(RELAXED, X))), RANDOM,
		WANT({ 2, 0, 3 }, { 2, 1, 0 }));
}

Test(reads, scopes)
{
	for (unsigned i = 0; i < 4; i++) {
		struct program p = PROGRAM(T(W(RELAXED, X, 1), W(RELEASE, Y, 2)),
			T(P(ACQUIRE, Y), R(RELAXED, X)));
		const bool same = i & 1, fence = i & 2;

		if (fence)
			p = PROGRAM(T(W(RELAXED, X, 1), F(ACQ_REL), W(RELAXED, Y, 2)),
				T(P(RELAXED, Y), F(ACQ_REL), R(RELAXED, X)));
		p.thread[0].op[1].scope = SCOPE_CTA;
		p.thread[1].cta = !same;
		p.thread[1].warp = same;
		for (enum memory m = GLOBAL; m < MEMORIES; m++)
			if (m != SHARED || same)
				judge_in(same ? "cta scope in a CTA" : "cta scope between CTAs", m, p,
					same ? NEVER : OLDEST, WANT({ 1, fence ? 2 : 1, 0 }));
		p.thread[0].op[1].scope = SCOPE_CLUSTER;
		for (enum memory m = GLOBAL; m < MEMORIES; m++)
			if (m != SHARED || same)
				judge_in(same ? "cluster scope in a CTA" : "cluster scope between CTAs", m, p,
					same || m != GLOBAL ? NEVER : OLDEST, WANT({ 1, fence ? 2 : 1, 0 }));
	}
}

Test(reads, coherence)
{
	judge("CoRR", PROGRAM(T(W(RELAXED, X, 1), W(RELAXED, X, 2)), T(R(RELAXED, X), R(RELAXED, X))),
		NEVER, WANT({ 1, 0, 2 }, { 1, 1, 1 }));
	judge("CoRR of the first", PROGRAM(T(W(RELAXED, X, 1)), T(P(RELAXED, X), R(RELAXED, X))),
		NEVER, WANT({ 1, 1, 0 }));
	judge("CoWR", PROGRAM(T(W(RELAXED, X, 1), R(RELAXED, X))), NEVER, WANT({ 0, 1, 0 }));
	judge("CoRW", PROGRAM(T(P(RELAXED, X), W(RELAXED, X, 1)), T(W(RELAXED, X, 2), R(RELAXED, X))),
		NEVER, WANT({ 1, 1, 0 }));
	judge("atomics", PROGRAM(T(A(RELAXED, X, 1)), T(A(RELAXED, X, 2))), NEVER,
		WANT({ 0, 0, 0 }, { 1, 0, 0 }));
}

Test(reads, independent_writes)
{
	judge("IRIW", PROGRAM(T(W(RELAXED, X, 1)), T(W(RELAXED, Y, 2)),
		T(P(ACQUIRE, X), R(ACQUIRE, Y)), T(P(ACQUIRE, Y), R(ACQUIRE, X))), OLDEST,
		WANT({ 2, 1, 0 }, { 3, 1, 0 }));
	judge("IRIW with fence.sc", PROGRAM(T(W(RELAXED, X, 1)), T(W(RELAXED, Y, 2)),
		T(P(RELAXED, X), F(SC), R(RELAXED, Y)), T(P(RELAXED, Y), F(SC), R(RELAXED, X))), NEVER,
		WANT({ 2, 2, 0 }, { 3, 2, 0 }));
}

Test(reads, three_threads)
{
	judge("WRC", PROGRAM(T(W(RELAXED, X, 1)), T(P(RELAXED, X), W(RELEASE, Y, 2)),
		T(P(ACQUIRE, Y), R(RELAXED, X))), NEVER, WANT({ 2, 1, 0 }));
	judge("WRC relaxed", PROGRAM(T(W(RELAXED, X, 1)), T(P(RELAXED, X), W(RELAXED, Y, 2)),
		T(P(ACQUIRE, Y), R(RELAXED, X))), OLDEST, WANT({ 2, 1, 0 }));
	judge("ISA2", PROGRAM(T(W(RELAXED, X, 1), W(RELEASE, Y, 2)),
		T(P(ACQUIRE, Y), W(RELEASE, Z, 3)), T(P(ACQUIRE, Z), R(RELAXED, X))), NEVER,
		WANT({ 2, 1, 0 }));
}

/* ---- random programs ---- */

static uint64_t rng;

static unsigned rnd(unsigned k)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(rng >> 33) % k;
}

static struct op random_op(unsigned *value)
{
	static const enum ev_sem of_ld[] = { SEM_RELAXED, SEM_RELAXED, SEM_ACQUIRE };
	static const enum ev_sem of_st[] = { SEM_RELAXED, SEM_RELAXED, SEM_RELEASE };
	static const enum ev_sem of_rmw[] = { SEM_RELAXED, SEM_ACQUIRE, SEM_RELEASE, SEM_ACQ_REL };
	static const enum ev_sem of_fence[] = { SEM_ACQ_REL, SEM_SC, SEM_SC };
	struct op o = { .scope = rnd(4) ? SCOPE_GPU : rnd(2) ? SCOPE_CTA : SCOPE_CLUSTER, .at = rnd(3) };
	const unsigned what = rnd(10);

	if (what < 4) {
		o.kind = LD;
		o.sem = of_ld[rnd(3)];
	} else if (what < 7) {
		o.kind = ST;
		o.sem = of_st[rnd(3)];
		o.value = ++*value;
	} else if (what < 8) {
		o.kind = RMW;
		o.sem = of_rmw[rnd(4)];
		o.value = ++*value;
	} else {
		o = (struct op){ .kind = FENCE, .sem = of_fence[rnd(3)], .scope = o.scope };
	}
	return o;
}

static struct op vary(struct op o, enum memory m)
{
	const unsigned how = o.kind == LD ? rnd(8) : 0;

	if (how == 1 && o.sem == SEM_RELAXED && m == GLOBAL) {
		o.mmio = true;
		o.scope = SCOPE_SYS;
	}
	o.vector = how > 5 && m != MIXED;
	return o;
}

static void print(const struct program *p, uint64_t number, uint64_t seed)
{
	fprintf(stderr, "program %llu, seed %llu, %s\n", (unsigned long long)number,
		(unsigned long long)seed, memory_text[p->memory]);
	for (unsigned i = 0; i < p->threads; i++) {
		fprintf(stderr, "thread %u: cta %u warp %u\n", i, p->thread[i].cta, p->thread[i].warp);
		for (unsigned k = 0; k < p->thread[i].n; k++) {
			const struct op *o = &p->thread[i].op[k];
			struct text t = { 0 };

			put_op(&t, p->memory, o, k);
			fprintf(stderr, "  %.*s -> %u\n", (int)t.n - 1, t.at, o->got);
			text_free(&t);
		}
	}
}

/* READS_PROGRAMS=100000 runs more. */
Test(reads, agree_with_the_axioms, .timeout = TEST_LIMIT)
{
	const uint64_t programs = getenv("READS_PROGRAMS")
		? strtoull(getenv("READS_PROGRAMS"), NULL, 0) : 300;

	for (uint64_t i = 0; i < programs; i++) {
		struct program p = { .memory = i % MEMORIES };
		unsigned value = 0;
		struct ready r;

		rng = (i + 1) * 0x9e3779b97f4a7c15u;
		p.threads = 2 + rnd(3);
		for (unsigned t = 0; t < p.threads; t++) {
			p.thread[t].cta = rnd(3) ? t : t / 2;
			p.thread[t].warp = p.thread[t].cta == t ? 0 : t % 2;
			p.thread[t].n = 2 + rnd(p.threads == 2 ? 5 : 3);
			for (unsigned k = 0; k < p.thread[t].n; k++)
				p.thread[t].op[k] = vary(random_op(&value), p.memory);
		}
		if (p.threads > 2 && p.thread[1].cta == p.thread[2].cta)
			p.thread[2].cta = 2, p.thread[2].warp = 1;
		p = p.memory == SHARED ? in_one_cta(p) : p;
		r = prepare(&p);
		for (uint64_t seed = 0; seed < 12; seed++) {
			run(&p, &r, seed, seed % 4 ? READS_RANDOM : READS_OLDEST);
			if (allowed(&p))
				continue;
			print(&p, i, seed);
			cr_assert_fail("an outcome that the ISA forbids");
		}
		done(&p, &r);
	}
}

/* ---- the checker judges what has been read ---- */

static struct event_sink *check_begin(void *user, const struct cluster_info *c)
{
	return check_cluster_begin(user, c);
}

static void check_end(void *user, struct event_sink *sink)
{
	check_cluster_end(user, sink);
}

static bool checker_finds(struct program *p, const struct ready *r, uint64_t seed)
{
	struct check_config config = { .global = true, .launch = { .kernel = "k",
		.grid = { r->ctas, 1, 1 }, .block = { 32 * WARPS, 1, 1 }, .sm = 90,
		.cluster = { p->memory == GLOBAL ? 1 : r->ctas, 1, 1 } } };
	struct exec_observer observer = { .cluster_begin = check_begin, .cluster_end = check_end };
	const struct finding *const *f;
	bool any;

	check_policy_strict(&config.policy);
	observer.user = check_open(&config);
	run_observed(p, r, seed, (enum exec_reads)(seed % 3), &observer);
	any = check_findings(observer.user, &f) > 0;
	check_close(observer.user);
	return any;
}

/* Weak accesses are to location 3 only. */
static bool axioms_find(const struct program *p)
{
	collect(p);
	observation();
	cr_assert(causality(NULL, 0));
	for (unsigned x = LOCATIONS; x < n; x++)
		for (unsigned y = x + 1; y < n; y++)
			if (ev[x].op.sem == SEM_WEAK && ev[y].op.sem == SEM_WEAK && (writes(x) || writes(y))
				&& !base[x][y] && !base[y][x])
				return true;
	return false;
}

Test(reads, checked_by_what_was_read, .timeout = TEST_LIMIT)
{
	const uint64_t programs = getenv("READS_PROGRAMS")
		? strtoull(getenv("READS_PROGRAMS"), NULL, 0) : 300;
	unsigned racy = 0, runs = 0;

	for (uint64_t i = 0; i < programs; i++) {
		struct program p = { .threads = 2 + i % 2, .memory = i / 2 % MEMORIES };
		unsigned value = 0;
		struct ready r;

		rng = (i + 1) * 0xd1342543de82ef95u;
		for (unsigned t = 0; t < p.threads; t++) {
			p.thread[t].cta = rnd(3) ? t : 0;
			p.thread[t].warp = p.thread[t].cta == t ? 0 : 1;
			p.thread[t].n = MAX_OPS;
			for (unsigned k = 0; k < MAX_OPS; k++) {
				struct op *o = &p.thread[t].op[k];

				do
					*o = random_op(&value);
				while (o->sem == SEM_SC);
				o->at = o->at ? 0 : 1;
				o->scope = o->kind == FENCE ? o->scope : SCOPE_GPU; /* else they race */
			}
			p.thread[t].op[t ? MAX_OPS - 1 : 0] = (struct op){ .kind = t ? LD : ST,
				.sem = SEM_WEAK, .at = 3, .value = t ? 0 : ++value };
		}
		if (p.threads == 3 && !p.thread[2].cta)
			p.thread[2].cta = 2;
		p = p.memory == SHARED ? in_one_cta(p) : p;
		r = prepare(&p);
		for (uint64_t seed = 0; seed < 12; seed++, runs++) {
			const bool got = checker_finds(&p, &r, seed), want = axioms_find(&p);

			racy += want;
			if (got == want)
				continue;
			print(&p, i, seed);
			cr_assert_fail("the checker says %d, the axioms %d", got, want);
		}
		done(&p, &r);
	}
	fprintf(stderr, "reads: %u executions, %u with a race\n", runs, racy);
	cr_assert(racy > runs / 10 && racy < runs);
}
