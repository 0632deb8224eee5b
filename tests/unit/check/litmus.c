/* Litmus tests of the memory model. Random executions of a few threads, in one or two clusters,
 * are judged by the checker and by the axioms of the PTX ISA (section 8), which are computed here
 * from all pairs of operations: observation order, release and acquire patterns, synchronization,
 * causality order. Both must name the same first access that races with an earlier one. Long because the
 * axioms share relations over all operations of an execution, which only they and the generator use. */
#include <criterion/criterion.h>

#include "libconsan/check/check.h"
#include "tests/common/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPS 256
#define MAX_THREADS 12

struct thread { unsigned cluster, cta, warp, lane; };

/* A scalar memory operation, a fence, or the arrival at a barrier or the departure from it.
 * Elements of one vector access, and what several lanes do in one instruction, have one site. */
struct op {
	unsigned thread, site;
	bool fence, read, write, red;
	bool unread;             /* a read-modify-write whose result no instruction reads */
	bool arrives, leaves;
	bool last;               /* no later lane of the instruction accesses the location */
	unsigned sem, scope;     /* enum ev_sem, ev_scope */
	uint64_t at;             /* address; shared memory: in a space of its own */
	unsigned size;
	int from;                /* the operation whose value it reads; -1: none, or several */
};

static struct thread thread[MAX_THREADS];
static unsigned nthreads;
static struct op op[MAX_OPS];
static unsigned n;
static bool chain[MAX_OPS][MAX_OPS], seen[MAX_OPS][MAX_OPS];
static bool sync[MAX_OPS][MAX_OPS], base[MAX_OPS][MAX_OPS];

/* ---- the axioms ---- */

static bool strong(const struct op *o)
{
	return o->fence || o->sem != SEM_WEAK;
}

static bool includes(const struct op *o, unsigned other)
{
	const struct thread *a = &thread[o->thread], *b = &thread[other];

	if (a->cluster != b->cluster)
		return o->scope >= SCOPE_GPU;
	return o->scope >= (a->cta == b->cta ? SCOPE_CTA : SCOPE_CLUSTER);
}

/* 8.7; all are of the generic proxy */
static bool morally_strong(const struct op *a, const struct op *b)
{
	if (!a->fence && !b->fence && (a->at != b->at || a->size != b->size))
		return false;
	return a->thread == b->thread || (strong(a) && strong(b) && includes(a, b->thread)
		&& includes(b, a->thread));
}

static bool same_location(const struct op *a, const struct op *b)
{
	return !a->fence && !b->fence && a->at == b->at && a->size == b->size;
}

static bool overlap(const struct op *a, const struct op *b)
{
	return !a->fence && !b->fence && a->at < b->at + b->size && b->at < a->at + a->size;
}

/* 8.9.2. The order in which the lanes of one instruction are executed is a choice of the executor:
 * what they see of each other is only in chain[][]. */
static void observation_order(void)
{
	memset(chain, 0, sizeof chain);
	for (unsigned r = 0; r < n; r++) {
		const int w = op[r].from;

		if (!op[r].read || w < 0 || !strong(&op[w]) || !strong(&op[r])
			|| !morally_strong(&op[w], &op[r]))
			continue;
		chain[w][r] = true;
		for (int x = 0; op[w].read && x < w; x++) /* w is a read-modify-write */
			chain[x][r] |= chain[x][w];
	}
	for (unsigned x = 0; x < n; x++)
		for (unsigned r = 0; r < n; r++)
			seen[x][r] = chain[x][r] && op[x].site != op[r].site;
}

/* Neither gives its thread a value: the execution in which z comes first is allowed, too, and
 * there z orders nothing before what follows it. */
static bool by_chance(unsigned x, unsigned z)
{
	return op[z].unread && (!op[x].read || op[x].unread);
}

/* Is that certain? If an operation between the two gave its thread a value, z cannot come before it,
 * unless x or one between is a store, which makes that value the same. The checker, which may have
 * forgotten x for that operation, may find either. */
static bool certainly_by_chance(unsigned x, unsigned z)
{
	for (unsigned w = x + 1; w < z; w++)
		if (seen[x][w] && seen[w][z] && !op[w].unread)
			return false;
	return by_chance(x, z);
}

/* Is (first, w) a release pattern (8.8)? */
static bool releases(unsigned first, unsigned w)
{
	const struct op *f = &op[first], *o = &op[w];

	if (!o->write || !strong(o) || f->thread != o->thread || first > w || !sem_releases(f->sem))
		return false;
	return f->fence || (f->write && same_location(f, o));
}

/* Is (r, last) an acquire pattern? */
static bool acquires(unsigned r, unsigned last)
{
	const struct op *l = &op[last], *o = &op[r];

	if (!o->read || o->red || !strong(o) || l->thread != o->thread || last < r
		|| !sem_acquires(l->sem))
		return false;
	return l->fence || (l->read && !l->red && same_location(l, o));
}

/* In Fence-SC order every pair of morally strong fence.sc is related (8.9.3). If an access after x
 * precedes one before y in communication order, y cannot precede x. */
static bool fence_order(unsigned x, unsigned y)
{
	if (!op[x].fence || !op[y].fence || op[x].sem != SEM_SC || op[y].sem != SEM_SC
		|| !morally_strong(&op[x], &op[y]))
		return false;
	for (unsigned a = x + 1; a < y; a++)
		for (unsigned b = a + 1; b < y; b++)
			if (op[a].thread == op[x].thread && op[b].thread == op[y].thread
				&& same_location(&op[a], &op[b]) && strong(&op[a]) && strong(&op[b])
				&& morally_strong(&op[a], &op[b])
				&& (op[b].write || op[b].from == (int)a))
				return true;
	return false;
}

/* The checker takes a vector access for one release and one acquire of all its elements, although
 * they are in no order among each other. */
static bool same_access(unsigned x, unsigned y)
{
	return op[x].site == op[y].site && op[x].thread == op[y].thread;
}

/* after: only with what follows y in its thread */
static void synchronizes(unsigned x, unsigned y, bool after)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < n; k++)
			if (same_access(i, x) && (after ? k > y && op[k].thread == op[y].thread
				&& op[k].site != op[y].site : same_access(k, y)))
				sync[i][k] = true;
}

/* Does r read what w released? Of the lanes of one read-modify-write the last does (A08). That counts
 * if they or fences release and acquire, and orders only what follows: its own access may have come
 * first. */
static bool takes_from(unsigned w, unsigned r)
{
	return seen[w][r] || (chain[w][r] && op[r].last && !op[r].red);
}

/* 8.9.4 and the base of 8.9.5 */
static void causality_order(void)
{
	memset(sync, 0, sizeof sync);
	for (unsigned w = 0; w < n; w++)
		for (unsigned r = w + 1; r < n; r++)
			for (unsigned x = 0; takes_from(w, r) && x <= w; x++)
				for (unsigned y = r; releases(x, w) && y < n; y++)
					if (acquires(r, y) && morally_strong(&op[x], &op[y])
						&& (seen[w][r] || ((r == y || op[y].fence)
							&& (x == w || op[x].fence))))
						synchronizes(x, y, !seen[w][r]);
	for (unsigned x = 0; x < n; x++)
		for (unsigned y = x + 1; y < n; y++) {
			sync[x][y] |= fence_order(x, y)
				|| (op[x].arrives && op[y].leaves && op[x].site == op[y].site);
			base[x][y] = op[x].thread == op[y].thread || sync[x][y];
		}
	/* every edge points forward in time */
	for (unsigned z = 0; z < n; z++)
		for (unsigned x = 0; x < z; x++)
			for (unsigned y = z + 1; base[x][z] && y < n; y++)
				base[x][y] |= base[z][y];
}

static bool ordered(unsigned x, unsigned y)
{
	for (unsigned z = x + 1; z < y; z++)
		if (seen[x][z] && !certainly_by_chance(x, z) && base[z][y])
			return true;
	return base[x][y];
}

/* The checker may forget a strong access x for a later one that is ordered after it, and with which
 * y does not race, also another lane's of the same instruction, or which it has forgotten for the
 * like. If y has observed that one, coherence decides what y reads; else the scopes of accesses to
 * one location differ. */
static bool hidden(unsigned x, unsigned y)
{
	for (unsigned k = x + 1; strong(&op[x]) && k < n && op[k].site <= op[y].site; k++)
		if (k != y && strong(&op[k]) && overlap(&op[x], &op[k]) && ordered(x, k)
			&& (ordered(k, y) || morally_strong(&op[k], &op[y]) || (k < y && hidden(k, y))))
			return true;
	return false;
}

/* The site of the first access that races with an earlier one (8.7.1), or 0 */
static unsigned first_race(void)
{
	for (unsigned y = 0; y < n; y++)
		for (unsigned x = 0; x < y; x++)
			if (op[x].site != op[y].site && overlap(&op[x], &op[y])
				&& (op[x].write || op[y].write) && !morally_strong(&op[x], &op[y])
				&& !ordered(x, y) && !hidden(x, y))
				return op[y].site;
	return 0;
}

/* The checker forgets a read-modify-write z for a later one that observed it, also if it had
 * forgotten a read for z, and does not know then that what is ordered after z alone is ordered
 * after x, a write that z observed. That matters where the scopes of accesses to one location
 * differ. */
static bool observer_forgotten(unsigned x, unsigned z, unsigned y)
{
	for (unsigned k = z + 1; k < y; k++) {
		if (!op[k].read || !op[k].write || !seen[x][k])
			continue;
		if (op[z].write ? seen[z][k] : base[z][k] && observer_forgotten(x, k, y))
			return true;
	}
	return false;
}

static bool known_to_be_ordered(unsigned x, unsigned y)
{
	for (unsigned z = x + 1; z < y; z++)
		if (seen[x][z] && !by_chance(x, z) && base[z][y] && !observer_forgotten(x, z, y)
			&& morally_strong(&op[x], &op[z])) /* not only through others of the chain */
			return true;
	return base[x][y];
}

/* May the checker report that the access of this site races? */
static bool races(unsigned at)
{
	for (unsigned y = 0; y < n; y++)
		for (unsigned x = 0; op[y].site == at && x < y; x++)
			if (op[x].site != op[y].site && overlap(&op[x], &op[y])
				&& (op[x].write || op[y].write) && !morally_strong(&op[x], &op[y])
				&& !known_to_be_ordered(x, y))
				return true;
	return false;
}

/* ---- the same for the checker ---- */

#define GLOBAL 0x100000000ull
#define SHARED(cluster, cta) ((uint64_t)(1 + (cluster) * 4 + (cta)) << 16)

static struct check *checker;
static struct event_sink *sink[2];
static unsigned site;

static void emit(unsigned cluster, struct event e)
{
	sink[cluster]->event(sink[cluster], &e);
}

/* Sites from UNREAD on are those of read-modify-writes whose results no instruction reads. */
#define UNREAD MAX_OPS

static void add_sites(void)
{
	static bool added;

	for (unsigned i = 1; !added && i < 2 * MAX_OPS; i++)
		cr_assert(site_add(&(struct site){ .unread = i >= UNREAD }) == i);
	added = true;
}

static void begin(unsigned clusters, unsigned ctas, unsigned warps)
{
	struct check_config config = {
		.launch = { .kernel = "litmus", .grid = { clusters * ctas, 1, 1 },
			.block = { warps * 32, 1, 1 }, .cluster = { ctas, 1, 1 }, .sm = 90 },
		.global = true, .aborted = true,
	};
	struct cluster_info info = { .launch = &config.launch, .nctas = (uint16_t)ctas,
		.warps_per_cta = (uint16_t)warps };

	add_sites();
	check_policy_strict(&config.policy);
	checker = check_open(&config);
	for (info.id = 0; info.id < clusters; info.id++) {
		const unsigned c = info.id;

		sink[c] = check_cluster_begin(checker, &info);
		for (uint16_t r = 0; r < ctas; r++) {
			emit(c, (struct event){ .kind = EV_CTA_BEGIN, .cta = r, .lanes = UINT32_MAX,
				.cta_begin = { .threads = warps * 32, .shared_bytes = 1024 } });
			emit(c, (struct event){ .kind = EV_ACCESS, .cta = r, .lanes = UINT32_MAX,
				.access = { .space = SP_SHARED, .mode = MODE_WRITE, .bytes = 16, .owner = r,
				.at.stride = 16 } });
		}
		for (int wait = 0; wait < 2; wait++)
			for (uint16_t r = 0; r < ctas; r++)
				for (uint16_t w = 0; w < warps; w++)
					emit(c, wait ? (struct event){ .kind = EV_CLUSTER_WAIT, .cta = r, .warp = w,
						.lanes = UINT32_MAX, .cluster_wait.sem = SEM_ACQUIRE }
						: (struct event){ .kind = EV_CLUSTER_ARRIVE, .cta = r, .warp = w,
						.lanes = UINT32_MAX, .cluster_arrive.sem = SEM_RELEASE });
	}
	n = site = 0;
}

/* Ends the run and returns the site of the first access that the checker says races. */
static unsigned end(unsigned clusters, unsigned ctas, unsigned warps)
{
	const struct finding *const *f;
	unsigned first = 0;
	size_t nf;

	for (unsigned c = 0; c < clusters; c++) {
		for (unsigned w = 0; w < ctas * warps; w++)
			emit(c, (struct event){ .kind = EV_THREAD_EXIT, .cta = (uint16_t)(w / warps),
				.warp = (uint16_t)(w % warps), .lanes = UINT32_MAX, .site = 2 * MAX_OPS });
		check_cluster_end(checker, sink[c]);
	}
	nf = check_findings(checker, &f);
	for (size_t i = 0; i < nf; i++) {
		const unsigned a = f[i]->side[0].site % UNREAD, b = f[i]->side[1].site % UNREAD;
		const unsigned later = a > b ? a : b;

		if (getenv("CHECK_VERBOSE"))
			fprintf(stderr, "%s %u %u\n", rule_get(f[i]->rule)->code, a, b);

		if (!first || later < first)
			first = later;
	}
	check_close(checker);
	return first;
}

/* Bytes from several writes, or of a write of another location, are no value of one write. */
static int source_of(const struct op *o)
{
	int from = -1;

	for (unsigned b = 0; b < o->size; b++) {
		int w = (int)n - 1;

		while (w >= 0 && (!op[w].write || o->at + b < op[w].at
			|| o->at + b >= op[w].at + op[w].size))
			w--;
		if (w < 0 || !same_location(&op[w], o))
			return -1;
		from = w;
	}
	return from;
}

/* The next access is a load of an older value, of a write that handed nothing over (--reads). */
static bool stale;

/* Plain reads are recorded when the warp synchronizes: at once here, by each lane with itself. */
static void flush_reads(const struct thread *x, uint32_t lanes)
{
	for (; lanes; lanes &= lanes - 1)
		emit(x->cluster, (struct event){ .kind = EV_WARP_SYNC, .cta = (uint16_t)x->cta,
			.warp = (uint16_t)x->warp, .lanes = lanes & -lanes, .site = site,
			.warp_sync.mask = lanes & -lanes });
}

/* The thread of that lane in the warp of thread t, or nthreads. */
static unsigned lane_of(unsigned t, unsigned lane)
{
	struct thread want = thread[t];
	unsigned k = 0;

	for (want.lane = lane; k < nthreads && memcmp(&thread[k], &want, sizeof want); k++)
		;
	return k;
}

/* An instruction of these lanes of the warp of thread t, each of which is a thread; lane l accesses
 * at + (l - the lowest lane) * stride. */
static void access_lanes(unsigned t, uint32_t lanes, unsigned stride, enum ev_mode mode, unsigned sem,
	unsigned scope, uint64_t at, unsigned size, unsigned count, bool red, bool unread)
{
	const struct thread *x = &thread[t];
	const unsigned low = (unsigned)__builtin_ctz(lanes), first = n;
	struct event e = { .kind = EV_ACCESS, .cta = (uint16_t)x->cta, .warp = (uint16_t)x->warp,
		.lanes = lanes, .site = ++site + (unread ? UNREAD : 0), .access = { .mode = mode,
		.sem = (enum ev_sem)sem, .scope = (enum ev_scope)scope, .bytes = size * count,
		.element_bytes = size, .flags = stale ? ACCESS_STALE : red ? ACCESS_REDUCTION : 0 } };
	uint64_t addr[32];

	cr_assert(site < MAX_OPS);
	for (unsigned l = 0; l < 32; l++)
		addr[l] = at + (l - low) * stride;
	for (uint32_t m = lanes; m; m &= m - 1)
		for (unsigned i = 0; i < count; i++) {
			const unsigned l = (unsigned)__builtin_ctz(m);
			struct op o = { .thread = lane_of(t, l), .site = site, .read = mode & MODE_READ,
				.write = mode & MODE_WRITE, .red = red, .unread = unread, .last = true,
				.sem = sem, .scope = scope, .at = addr[l] + i * size, .size = size };

			cr_assert(o.thread < nthreads && n < MAX_OPS);
			for (unsigned k = first; k < n; k++)
				op[k].last &= op[k].at != o.at;
			o.from = stale ? -1 : source_of(&o);
			op[n++] = o;
		}
	stale = false;
	e.access.space = at >= GLOBAL ? SP_GLOBAL : SP_SHARED;
	e.access.owner = (uint16_t)(at >= GLOBAL ? x->cta : ((at >> 16) - 1) % 4);
	for (unsigned l = 0; l < 32 && at < GLOBAL; l++)
		addr[l] &= 0xffff;
	e.access.at.base = addr[0];
	e.access.at.stride = (int64_t)stride;
	if (lanes & (lanes - 1))
		e.access.at.lane = addr;
	else
		e.access.at.base = addr[low], e.access.at.stride = 0;
	emit(x->cluster, e);
	flush_reads(x, lanes);
}

static void access_(unsigned t, enum ev_mode mode, unsigned sem, unsigned scope, uint64_t at,
	unsigned size, unsigned count, bool red)
{
	access_lanes(t, 1u << thread[t].lane, 0, mode, sem, scope, at, size, count, red, false);
}

static void barrier_op(unsigned t, bool arrives)
{
	cr_assert(n < MAX_OPS);
	op[n++] = (struct op){ .thread = t, .site = site, .arrives = arrives, .leaves = !arrives,
		.from = -1 };
}

/* bar.warp.sync */
static void warp_sync(unsigned t, uint32_t lanes)
{
	const struct thread *x = &thread[t];

	site++;
	for (unsigned i = 0; i < 64; i++)
		if (lanes >> i % 32 & 1)
			barrier_op(lane_of(t, i % 32), i < 32);
	emit(x->cluster, (struct event){ .kind = EV_WARP_SYNC, .cta = (uint16_t)x->cta,
		.warp = (uint16_t)x->warp, .lanes = lanes, .site = site, .warp_sync.mask = lanes });
}

/* bar.sync of two warps */
static void cta_sync(unsigned t)
{
	const struct thread *x = &thread[t];

	site++;
	for (unsigned i = 0; i < 2 * nthreads; i++) {
		const struct thread *y = &thread[i % nthreads];

		if (y->cluster == x->cluster && y->cta == x->cta)
			barrier_op(i % nthreads, i < nthreads);
	}
	for (unsigned i = 0; i < 4; i++)
		emit(x->cluster, i < 2 ? (struct event){ .kind = EV_BARRIER_ARRIVE, .cta = (uint16_t)x->cta,
			.warp = (uint16_t)(i % 2), .lanes = UINT32_MAX, .site = site }
			: (struct event){ .kind = EV_BARRIER_RESUME, .cta = (uint16_t)x->cta,
			.warp = (uint16_t)(i % 2), .lanes = UINT32_MAX, .site = site });
}

static void fence(unsigned t, unsigned sem, unsigned scope)
{
	const struct thread *x = &thread[t];

	op[n++] = (struct op){ .thread = t, .site = ++site, .fence = true, .sem = sem, .scope = scope };
	emit(x->cluster, (struct event){ .kind = EV_FENCE, .cta = (uint16_t)x->cta,
		.warp = (uint16_t)x->warp, .lanes = 1u << x->lane, .site = site,
		.fence = { .sem = (enum ev_sem)sem, .scope = (enum ev_scope)scope } });
}

static void print(void)
{
	static const char *const name[] = { "weak", "relaxed", "acquire", "release", "acq_rel", "sc" };

	for (unsigned i = 0; i < n; i++) {
		const struct op *o = &op[i];
		const struct thread *x = &thread[o->thread];

		fprintf(stderr, "%2u  cluster %u cta %u warp %u lane %u: %s.%s scope %u", o->site,
			x->cluster, x->cta, x->warp, x->lane, o->fence ? "fence" : o->arrives ? "arrive"
			: o->leaves ? "leave" : o->red ? "red" : o->unread ? "atom (unread)"
			: o->read && o->write ? "atom" : o->read ? "ld" : "st", name[o->sem], o->scope);
		if (!o->fence && !o->arrives && !o->leaves)
			fprintf(stderr, " [%llx] %u bytes, from %d", (unsigned long long)o->at, o->size,
				o->from < 0 ? -1 : (int)op[o->from].site);
		fprintf(stderr, "\n");
	}
}

/* Ends the execution; both must say that the access of that site, or none (0), races first. */
static void judge_at(unsigned clusters, unsigned ctas, unsigned want, int from)
{
	unsigned got;

	memset(base, 0, sizeof base);
	observation_order();
	causality_order();
	got = end(clusters, ctas, 2);
	if (got != want || first_race() != want)
		print();
	cr_expect(got == want, "line %d: the first race is at %u, not at %u", from, got, want);
	cr_expect(first_race() == want, "line %d: the axioms say %u, not %u", from, first_race(), want);
}
#define judge(clusters, ctas, want) judge_at(clusters, ctas, want, __LINE__)

/* ---- well-known litmus tests; thread 0 is in another place than the others, as given ---- */

#define PLACES 4
static unsigned clusters_of(unsigned place) { return place == 3 ? 2 : 1; }
static unsigned ctas_of(unsigned place) { return place == 2 ? 2 : 1; }

/* place: 0 another lane, 1 another warp, 2 another CTA of the cluster, 3 another cluster */
static void at_place(unsigned place)
{
	nthreads = 3;
	thread[0] = (struct thread){ 0, 0, 0, 0 };
	thread[1] = (struct thread){ place == 3, place == 2, place == 1, 1 };
	thread[2] = (struct thread){ place == 3, place == 2, place == 1, 0 };
	if (!place)
		thread[2].warp = 1;
	begin(clusters_of(place), ctas_of(place), 2);
}

#define ST(t, sem, scope, at) access_(t, MODE_WRITE, sem, scope, at, 4, 1, false)
#define LD(t, sem, scope, at) access_(t, MODE_READ, sem, scope, at, 4, 1, false)
#define RMW(t, sem, scope, at) access_(t, MODE_RMW, sem, scope, at, 4, 1, false)

static bool enough(unsigned place, unsigned scope)
{
	return scope >= (place == 3 ? SCOPE_GPU : place == 2 ? SCOPE_CLUSTER : SCOPE_CTA);
}

/* In every size and scope of release and acquire */
Test(litmus, message_passing)
{
	for (unsigned i = 0; i < PLACES * 4 * 4 * 4 * 4 * 2; i++) {
		const unsigned place = i % 4, by = i / 4 % 4 + SCOPE_CTA, to = i / 16 % 4 + SCOPE_CTA;
		const unsigned bytes = 1u << i / 64 % 4, read = 1u << i / 256 % 4;
		const bool shared = i / 1024;
		const uint64_t data = shared ? SHARED(0, 0) : GLOBAL, flag = data + 64;

		if (shared && place == 3)
			continue;
		at_place(place);
		ST(0, SEM_WEAK, 0, data);
		access_(0, MODE_WRITE, SEM_RELEASE, by, flag, bytes, 1, false);
		access_(1, MODE_READ, SEM_ACQUIRE, to, flag, read, 1, false);
		LD(1, SEM_WEAK, 0, data);
		judge(clusters_of(place), ctas_of(place), bytes == read && enough(place, by)
			&& enough(place, to) ? 0 : 3);
	}
}

/* Thread 1 passes on what thread 0 wrote: by a release (ISA2), or only an observation (WRC). */
Test(litmus, three_threads)
{
	for (unsigned i = 0; i < PLACES * 2 * 2; i++) {
		const unsigned place = i % 4;
		const bool release = i / 4 % 2, shared = i / 8;
		const uint64_t x = shared ? SHARED(0, 0) : GLOBAL, y = x + 64, z = x + 128;

		if (shared && place == 3)
			continue;
		at_place(place);
		ST(0, SEM_WEAK, 0, x);
		ST(0, release ? SEM_RELEASE : SEM_RELAXED, SCOPE_GPU, y);
		LD(1, SEM_ACQUIRE, SCOPE_GPU, y);
		ST(1, SEM_RELEASE, SCOPE_GPU, z);
		LD(2, SEM_ACQUIRE, SCOPE_GPU, z);
		LD(2, SEM_WEAK, 0, y); /* was observed */
		LD(2, SEM_WEAK, 0, x);
		judge(clusters_of(place), ctas_of(place), release ? 0 : 7);
	}
}

/* Through read-modify-writes: the chain holds as long as each is morally strong to the next, and
 * ends with a store. */
Test(litmus, chains)
{
	for (unsigned place = 0; place < PLACES; place++)
		for (unsigned scope = SCOPE_CTA; scope <= SCOPE_SYS; scope++) {
			at_place(place);
			ST(0, SEM_WEAK, 0, GLOBAL);
			ST(0, SEM_RELEASE, SCOPE_GPU, GLOBAL + 64);
			RMW(2, SEM_RELAXED, scope, GLOBAL + 64);
			LD(1, SEM_ACQUIRE, SCOPE_GPU, GLOBAL + 64);
			LD(1, SEM_WEAK, 0, GLOBAL);
			judge(clusters_of(place), ctas_of(place), enough(place, scope) ? 0 : 3);
			at_place(place);
			ST(0, SEM_WEAK, 0, GLOBAL);
			ST(0, SEM_RELEASE, SCOPE_GPU, GLOBAL + 64);
			ST(2, SEM_RELAXED, SCOPE_GPU, GLOBAL + 64);
			LD(1, SEM_ACQUIRE, SCOPE_GPU, GLOBAL + 64);
			LD(1, SEM_WEAK, 0, GLOBAL);
			judge(clusters_of(place), ctas_of(place), 5);
		}
}

/* Store buffering: thread 0 reads y before thread 1 writes it, so its fence comes first. */
Test(litmus, store_buffering)
{
	for (unsigned i = 0; i < PLACES * 4 * 2 * 2; i++) {
		const unsigned place = i % 4, scope = i / 4 % 4 + SCOPE_CTA;
		const bool sc = i / 16 % 2, shared = i / 32;
		const uint64_t data = shared ? SHARED(0, 0) : GLOBAL, x = data + 64, y = data + 128;

		if (shared && place == 3)
			continue;
		at_place(place);
		ST(0, SEM_WEAK, 0, data);
		ST(0, SEM_RELAXED, SCOPE_GPU, x);
		fence(0, sc ? SEM_SC : SEM_ACQ_REL, scope);
		LD(0, SEM_RELAXED, SCOPE_GPU, y);
		ST(1, SEM_RELAXED, SCOPE_GPU, y);
		fence(1, sc ? SEM_SC : SEM_ACQ_REL, SCOPE_GPU);
		LD(1, SEM_RELAXED, SCOPE_GPU, x);
		LD(1, SEM_WEAK, 0, data);
		judge(clusters_of(place), ctas_of(place), sc && enough(place, scope) ? 0 : 8);
	}
}

/* A load of an older value takes nothing from the newest write, and a later one does. */
Test(litmus, stale_loads)
{
	for (unsigned i = 0; i < PLACES * 4; i++) {
		const unsigned place = i % 4;
		const bool again = i / 4 % 2, shared = i / 8;
		const uint64_t data = shared ? SHARED(0, 0) : GLOBAL, flag = data + 64;

		if (shared && place == 3)
			continue;
		at_place(place);
		ST(0, SEM_WEAK, 0, data);
		ST(0, SEM_RELEASE, SCOPE_GPU, flag);
		stale = true;
		LD(1, SEM_ACQUIRE, SCOPE_GPU, flag);
		if (again)
			LD(1, SEM_ACQUIRE, SCOPE_GPU, flag);
		LD(1, SEM_WEAK, 0, flag); /* only the write that was read is ordered before */
		LD(1, SEM_WEAK, 0, data);
		judge(clusters_of(place), ctas_of(place), again ? 0 : 4);
	}
}

/* ---- random executions ---- */

static unsigned some_scope(void)
{
	return rnd(3) ? SCOPE_GPU : SCOPE_CTA + rnd(4);
}

static uint64_t some_place(unsigned cluster, unsigned ctas, bool shared)
{
	return shared ? SHARED(cluster, rnd(ctas)) : GLOBAL;
}

/* Some lanes of the warp of thread t that are threads, and its own lane. */
static uint32_t some_lanes(unsigned t)
{
	uint32_t lanes = 1u << thread[t].lane;

	for (unsigned l = 0; l < 32; l++)
		if (rnd(2) && lane_of(t, l) < nthreads)
			lanes |= 1u << l;
	return lanes;
}

/* shared: flags, and perhaps data, are in shared memory */
static void random_op(unsigned t, unsigned ctas, bool shared, bool sc)
{
	static const unsigned of_read[] = { SEM_RELAXED, SEM_ACQUIRE, SEM_ACQUIRE };
	static const unsigned of_write[] = { SEM_RELAXED, SEM_RELEASE, SEM_RELEASE };
	static const unsigned of_rmw[] = { SEM_RELAXED, SEM_ACQUIRE, SEM_RELEASE, SEM_ACQ_REL };
	static const unsigned of_fence[] = { SEM_ACQ_REL, SEM_ACQUIRE, SEM_RELEASE };
	const uint64_t flags = some_place(thread[t].cluster, ctas, shared) + 64;
	const uint64_t data = some_place(thread[t].cluster, ctas, shared && rnd(2));
	/* mostly one word, and one size */
	const unsigned size = rnd(6) ? 4 : 1u << rnd(4), word = rnd(5) ? 0 : rnd(4);
	const unsigned count = rnd(8) || size < 4 ? 1 : 16 / size;
	const uint64_t flag = count > 1 ? flags : flags + word * 4 / size * size;

	const bool many = count == 1 && size >= 4 && rnd(2);
	const uint32_t lanes = many ? some_lanes(t) : 1u << thread[t].lane;
	const unsigned apart = rnd(3) ? 0 : size; /* what several lanes write */

	switch (rnd(sc ? 11 : 14)) {
	case 0: case 1:
		access_lanes(t, some_lanes(t), 4, rnd(3) ? MODE_WRITE : MODE_READ, SEM_WEAK, SCOPE_NONE,
			data + rnd(4) * 4, 4, 1, false, false);
		return;
	case 2: /* a weak access to a flag */
		access_lanes(t, lanes, size, rnd(2) ? MODE_WRITE : MODE_READ, SEM_WEAK, SCOPE_NONE, flag,
			size, count, false, false);
		return;
	case 3: case 4: case 5:
		access_lanes(t, lanes, size, MODE_WRITE, of_write[rnd(3)], some_scope(), flag, size, count,
			false, false);
		return;
	case 6: case 7:
		stale = !rnd(4);
		access_lanes(t, lanes, apart, MODE_READ, of_read[rnd(3)], some_scope(), flag, size, count,
			false, false);
		return;
	case 8: case 9:
		fence(t, sc && rnd(3) ? SEM_SC : of_fence[rnd(3)], some_scope());
		return;
	case 10:
		if (rnd(4))
			warp_sync(t, some_lanes(t));
		else
			cta_sync(t);
		return;
	default:
		if (rnd(3))
			access_lanes(t, lanes, apart, MODE_RMW, of_rmw[rnd(4)], some_scope(), flag,
				size < 4 ? 4 : size, 1, false, false);
		else
			access_lanes(t, lanes, apart, MODE_RMW, rnd(2) ? SEM_RELAXED : SEM_RELEASE,
				some_scope(), flag, size < 4 ? 4 : size, 1, true, rnd(4));
	}
}

static unsigned long racy;

static void one_execution(uint64_t from)
{
	unsigned clusters, ctas, length, last = 0, got, want;
	bool shared, sc;

	seed = from;
	clusters = 1 + rnd(2);
	ctas = 1 + rnd(2);
	length = 4 + rnd(16);
	shared = rnd(2);
	sc = !rnd(4);
	nthreads = 2 + rnd(MAX_THREADS - 1);
	for (unsigned t = 0; t < nthreads; t++)
		thread[t] = (struct thread){ rnd(clusters), rnd(ctas), rnd(2), rnd(3) };
	begin(clusters, ctas, 2);
	for (unsigned i = 0; i < length; i++) {
		unsigned t = rnd(3) ? last : rnd(nthreads);

		for (unsigned k = 0; k < t; k++) /* two names of one thread */
			if (!memcmp(&thread[k], &thread[t], sizeof thread[t]))
				t = k;
		last = t;
		random_op(t, ctas, shared, sc);
	}
	memset(base, 0, sizeof base);
	observation_order();
	causality_order();
	want = first_race();
	got = end(clusters, ctas, 2);
	if (got != want && got && (got < want || !want) && races(got))
		want = got;
	if (got != want)
		print();
	cr_assert(got == want, "seed %llu: the first race is at %u, the axioms say %u",
		(unsigned long long)from, got, want);
	racy += want != 0;
}

Test(litmus, agrees_with_the_axioms)
{
	unsigned long runs = getenv("LITMUS_RUNS") ? strtoul(getenv("LITMUS_RUNS"), NULL, 0) : 20000;
	unsigned long from = getenv("LITMUS_FROM") ? strtoul(getenv("LITMUS_FROM"), NULL, 0) : 0;

	if (getenv("LITMUS_SEED")) {
		one_execution(strtoull(getenv("LITMUS_SEED"), NULL, 0));
		return;
	}
	for (unsigned long i = from; i < from + runs; i++)
		one_execution(i * 0x9e3779b97f4a7c15u + 1);
	fprintf(stderr, "litmus: %lu executions, %lu with a race\n", runs, racy);
	cr_assert(racy > runs / 10 && racy < runs / 10 * 9);
}
