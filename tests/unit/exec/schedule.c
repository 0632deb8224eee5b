/* The schedule of a launch is a function of the launch and the seed: the same events in the same
 * order and the same memory, for any number of jobs. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libconsan/exec/exec.h"
#include "tests/common/limits.h"

#define HEAD ".version 8.7\n.target sm_90a\n.address_size 64\n" \
	".visible .entry k(.param .u64 out)\n{\n" \
	".reg .pred %p<10>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<10>;\n" \
	"ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n" \
	"mul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd2, %rd1, %rd2;\n"

/* Each warp takes tickets and stores them where others do, waits in turn for a lock, and leaves
 * under it the number of its block in a list. The plain accesses race. */
static const char contended[] = HEAD
	"and.b32 %r3, %r1, 31;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 ret;\n"
	"atom.global.add.u32 %r4, [%rd1+1024], 1;\n"
	"ld.global.u32 %r5, [%rd1+2048];\nadd.u32 %r5, %r5, %r4;\nst.global.u32 [%rd1+2048], %r5;\n"
	"$W:\natom.acquire.gpu.global.cas.b32 %r6, [%rd1+1028], 0, 1;\nsetp.ne.u32 %p2, %r6, 0;\n"
	"@%p2 bra $W;\n"
	"ld.global.u32 %r7, [%rd1+4096];\nadd.u32 %r8, %r7, 1;\nst.global.u32 [%rd1+4096], %r8;\n"
	"mul.wide.u32 %rd3, %r7, 4;\nadd.s64 %rd3, %rd1, %rd3;\nst.global.u32 [%rd3+4100], %r2;\n"
	"st.release.gpu.global.u32 [%rd1+1028], 0;\n"
	"ret;\n}\n";

/* All blocks change one word without an atomic: clusters are not coupled, and small launches run on
 * one worker. */
static const char plain[] = HEAD
	"ld.global.u32 %r4, [%rd1+4096];\nadd.u32 %r4, %r4, 1;\nst.global.u32 [%rd1+4096], %r4;\n"
	"mul.wide.u32 %rd3, %r4, 4;\nadd.s64 %rd3, %rd1, %rd3;\nst.global.u32 [%rd3+4100], %r2;\n"
	"ret;\n}\n";

/* Blocks long enough that other workers take part; one fails. */
static const char failing[] = HEAD
	"mov.u32 %r3, 0;\n"
	"$W:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 1000;\n@%p1 bra $W;\n"
	"setp.eq.u32 %p2, %r2, 300;\n@%p2 trap;\nst.global.u32 [%rd2], %r3;\n"
	"ret;\n}\n";

/* Blocks wait for all others in a loop that changes global memory: they take a lock to look. */
static const char looks_under_a_lock[] = HEAD
	"setp.ne.u32 %p1, %r1, 0;\n@%p1 ret;\n"
	"atom.global.add.u32 %r3, [%rd1], 1;\n"
	"$W:\natom.acquire.gpu.global.cas.b32 %r4, [%rd1+4], 0, 1;\nsetp.ne.u32 %p2, %r4, 0;\n"
	"@%p2 bra $W;\n"
	"ld.relaxed.gpu.global.u32 %r5, [%rd1];\nst.release.gpu.global.u32 [%rd1+4], 0;\n"
	"setp.ne.u32 %p3, %r5, 16;\n@%p3 bra $W;\n"
	"ret;\n}\n";

/* The first waits for the second. The loop changes only shared memory, no access in it parks. */
static const char counts_its_looks[] = HEAD
	".shared .b32 looks;\n"
	"setp.ne.u32 %p1, %r1, 0;\n@%p1 ret;\n"
	"atom.global.add.u32 %r3, [%rd1], 1;\nmov.u32 %r6, 0;\n"
	"$W:\nadd.u32 %r6, %r6, 1;\nst.shared.u32 [looks], %r6;\n"
	"ld.relaxed.gpu.global.u32 %r5, [%rd1];\n"
	"setp.lt.u32 %p3, %r5, 2;\n@%p3 bra $W;\n"
	"ret;\n}\n";

#define WORDS 4096

struct observed {
	uint32_t *memory;
	uint64_t hash;
	pthread_mutex_t lock;
};

struct sink { struct event_sink sink; struct observed *of; uint32_t cluster; };

static void mix(struct observed *o, uint64_t x)
{
	o->hash = (o->hash ^ x) * 0x9e3779b97f4a7c15ull;
	o->hash ^= o->hash >> 29;
}

static void on_event(struct event_sink *s, const struct event *e)
{
	const struct sink *from = (struct sink *)s;
	struct observed *o = from->of;

	uint64_t offset = e->kind == EV_ACCESS ? e->access.at.base - (uintptr_t)o->memory : 0;

	pthread_mutex_lock(&o->lock);
	mix(o, e->kind | (uint64_t)from->cluster << 8 | (uint64_t)e->warp << 32);
	mix(o, e->lanes);
	if (e->kind == EV_ACCESS)
		mix(o, offset < WORDS * 4 ? offset : e->access.at.base);
	pthread_mutex_unlock(&o->lock);
}

static struct event_sink *begin(void *user, const struct cluster_info *c)
{
	struct sink *s = calloc(1, sizeof *s);

	*s = (struct sink){ { .event = on_event, .want_global = true }, user, c->id };
	return &s->sink;
}

static void end(void *user, struct event_sink *s)
{
	(void)user;
	free(s);
}

/* Runs the kernel; the caller frees the memory. */
static struct observed observe_grid(const char *text, unsigned grid, uint64_t seed, unsigned jobs,
	struct exec_result *r)
{
	struct consan_err e = { 0 };
	struct observed o = { .memory = calloc(WORDS, 4), .lock = PTHREAD_MUTEX_INITIALIZER };
	struct exec_observer observer = { .user = &o, .cluster_begin = begin, .cluster_end = end };
	struct exec_launch l = { .device = exec_device_for(90), .grid = { grid, 1, 1 },
		.block = { 128, 1, 1 }, .cluster = { 1, 1, 1 }, .params = &o.memory, .jobs = jobs,
		.timeout = 200, .observer = &observer, .seed = seed };
	struct ptx_module *p = ptx_parse("test.ptx", text, strlen(text), &e);
	struct exec_module *m;

	cr_assert(p, "line %d: %s", e.line, e.text);
	m = exec_load(p, &e);
	cr_assert(m, "%s", e.text);
	l.kernel = exec_kernel(m, "k", &e);
	exec_mem_add(o.memory, WORDS * 4, MEM_DEVICE, false);
	exec_run(&l, r);
	exec_mem_remove(o.memory);
	exec_unload(m);
	return o;
}

static struct observed observe(const char *text, uint64_t seed, unsigned jobs)
{
	struct exec_result r;
	struct observed o = observe_grid(text, 16, seed, jobs, &r);

	cr_assert_eq(r.status, EXEC_OK, "%s", r.err.text);
	return o;
}

static void same_for_any_jobs(const char *text, unsigned runs)
{
	uint64_t other = 0;

	for (uint64_t seed = 0; seed < 3; seed++) {
		struct observed first = observe(text, seed, 1);

		cr_assert_neq(first.hash, other, "seed %d is the one before", (int)seed);
		for (unsigned i = 0; i < runs; i++) {
			struct observed o = observe(text, seed, 1u << i % 3);

			cr_assert_eq(o.hash, first.hash, "seed %d, run %u", (int)seed, i);
			cr_assert_arr_eq(o.memory, first.memory, WORDS * 4);
			free(o.memory);
		}
		other = first.hash;
		free(first.memory);
	}
}

Test(schedule, contended_atomics, .timeout = TEST_LIMIT)
{
	same_for_any_jobs(contended, 100);
}

Test(schedule, plain_races_of_small_launches, .timeout = TEST_LIMIT)
{
	same_for_any_jobs(plain, 30);
}

Test(schedule, waits_that_change_global_memory, .timeout = TEST_LIMIT)
{
	same_for_any_jobs(looks_under_a_lock, 6);
}

Test(schedule, waits_that_change_shared_memory, .timeout = TEST_LIMIT)
{
	struct observed one = observe(counts_its_looks, 0, 1);
	struct observed two = observe(counts_its_looks, 0, 2);

	cr_assert_eq(one.hash, two.hash);
	free(one.memory);
	free(two.memory);
}

/* Seeds start blocks in other orders, also with one job. */
Test(schedule, seeds_permute_blocks)
{
	unsigned first[16] = { 0 }, blocks = 0;

	for (uint64_t seed = 0; seed < 40; seed++) {
		struct observed o = observe(plain, seed, 1);
		uint32_t block = o.memory[1024 + 1 + 1];

		cr_assert_lt(block, 16);
		cr_assert(seed || !block);
		blocks += !first[block]++;
		free(o.memory);
	}
	cr_assert_gt(blocks, 5);
}

/* The list that the lock protects holds every warp once: locks exclude in all schedules. */
Test(schedule, locks_exclude, .timeout = TEST_LIMIT)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct observed o = observe(contended, seed, 2);
		unsigned entries[16] = { 0 };

		cr_assert_eq(o.memory[1024], 64);
		for (unsigned i = 0; i < 64; i++)
			entries[o.memory[1025 + i] & 15]++;
		for (unsigned b = 0; b < 16; b++)
			cr_assert_eq(entries[b], 4);
		free(o.memory);
	}
}

/* The same block fails first, and all that would have ended before it have ended. */
Test(schedule, the_first_failure_ends_a_launch, .timeout = TEST_LIMIT)
{
	for (uint64_t seed = 0; seed < 3; seed++) {
		struct exec_result first, r;

		free(observe_grid(failing, 512, seed, 1, &first).memory);
		cr_assert_eq(first.status, EXEC_TRAP);
		cr_assert_eq(first.bad_cluster, 300);
		for (unsigned i = 0; i < 12; i++) {
			free(observe_grid(failing, 512, seed, 1u << i % 3, &r).memory);
			cr_assert_eq(r.status, EXEC_TRAP);
			cr_assert_eq(r.bad_cluster, 300);
			cr_assert_eq(r.cut, first.cut, "seed %d, run %u", (int)seed, i);
			cr_assert_geq(r.clusters, first.clusters);
		}
	}
}

/* Clusters are coupled by what an atomic returns, or by the acquire that a fence makes of it. */
Test(schedule, coupled_kernels)
{
	static const struct { const char *body; bool coupled; } row[] = {
		{ "atom.global.add.u32 %r4, [%rd1], 1;\nret;\n}\n", false },
		{ "atom.relaxed.cta.global.add.u32 %r4, [%rd1], 1;\nbar.sync 0;\nret;\n}\n", false },
		{ "atom.global.add.u32 %r4, [%rd1], 1;\nfence.acq_rel.gpu;\nret;\n}\n", true },
		{ "atom.acquire.gpu.global.add.u32 %r4, [%rd1], 1;\nret;\n}\n", true },
		{ "atom.global.add.u32 %r4, [%rd1], 1;\nst.global.u32 [%rd2], %r4;\nret;\n}\n", true },
		{ "red.global.add.u32 [%rd1], 1;\nfence.acq_rel.gpu;\nret;\n}\n", false },
		{ "ld.relaxed.gpu.global.u32 %r4, [%rd1];\nret;\n}\n", true },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		char text[1024];
		struct consan_err e = { 0 };
		struct exec_kernel_info info;
		struct exec_module *m;
		struct ptx_module *p;

		snprintf(text, sizeof text, "%s%s", HEAD, row[i].body);
		p = ptx_parse("test.ptx", text, strlen(text), &e);
		cr_assert(p, "line %d: %s", e.line, e.text);
		m = exec_load(p, &e);
		exec_kernel_info(exec_kernel(m, "k", &e), &info);
		cr_expect_eq(info.coupled, row[i].coupled, "%s", row[i].body);
		exec_unload(m);
	}
}
