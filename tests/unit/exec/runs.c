/* Ops that jump from one to the next (xop.run) change nothing: with and without them a launch has
 * the same events, memory, ops and faults. Accesses of rows (row.h) do what each lane would do by
 * itself. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libconsan/exec/exec.h"

#define HEAD ".version 8.7\n.target sm_90a\n.address_size 64\n" \
	".visible .entry k(.param .u64 out)\n{\n" \
	".reg .pred %p<10>;\n.reg .b32 %r<20>;\n.reg .f32 %f<10>;\n.reg .b64 %rd<10>;\n" \
	".shared .align 16 .b8 tile[4096];\n" \
	"ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n"

static const char *const programs[] = {
	/* a divergent loop, guards, a jump that some lanes take, a predicate that is true in none */
	HEAD
	"and.b32 %r3, %r1, 7;\nmov.u32 %r4, 0;\nmov.u32 %r5, 1;\n"
	"L:\nadd.u32 %r4, %r4, 1;\nmad.lo.u32 %r5, %r5, 5, %r4;\n"
	"setp.eq.u32 %p1, %r4, %r3;\n@%p1 xor.b32 %r5, %r5, 99;\n@!%p1 add.u32 %r5, %r5, 3;\n"
	"setp.gt.u32 %p2, %r4, 1000;\n@%p2 bra E;\n"
	"setp.le.u32 %p3, %r4, %r3;\n@%p3 bra L;\n"
	"E:\nmad.lo.u32 %r6, %r2, 128, %r1;\nmul.wide.u32 %rd2, %r6, 4;\nadd.s64 %rd2, %rd1, %rd2;\n"
	"st.global.u32 [%rd2], %r5;\nret;\n}\n",
	/* a long uniform loop that ends turns, with barriers and shuffles */
	HEAD
	"mov.u32 %r4, 0;\nshl.b32 %r7, %r1, 2;\nmov.u32 %r8, tile;\nadd.u32 %r7, %r7, %r8;\n"
	"L:\nst.shared.u32 [%r7], %r4;\nbar.sync 0;\nld.shared.u32 %r5, [%r7];\n"
	"shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;\nadd.u32 %r4, %r4, %r6;\nadd.u32 %r4, %r4, 1;\n"
	"add.u32 %r9, %r9, 1;\nsetp.lt.u32 %p1, %r9, 300;\n@%p1 bra L;\n"
	"mad.lo.u32 %r6, %r2, 128, %r1;\nmul.wide.u32 %rd2, %r6, 4;\nadd.s64 %rd2, %rd1, %rd2;\n"
	"st.global.u32 [%rd2], %r4;\nret;\n}\n",
	/* polls of a flag in shared memory, and a value that no thread has written */
	HEAD
	"setp.ge.u32 %p1, %r1, 32;\n@%p1 bra W;\n"
	"ld.shared.u32 %r3, [tile+64];\nadd.u32 %r3, %r3, 1;\nst.volatile.shared.u32 [tile], 1;\nbra E;\n"
	"W:\nld.volatile.shared.u32 %r4, [tile];\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra W;\n"
	"E:\nst.shared.u32 [tile+128], %r3;\nret;\n}\n",
	/* a fault in the middle of a run */
	HEAD
	"add.u32 %r3, %r1, 1;\nmov.u64 %rd3, 16;\nxor.b32 %r3, %r3, 5;\nst.global.u32 [%rd3], %r3;\n"
	"add.u32 %r3, %r3, 1;\nret;\n}\n",
};

enum { WORDS = 4096 };

struct observed {
	uint32_t *memory;
	uint64_t hash, events;
	struct exec_result result;
};

struct sink { struct event_sink sink; struct observed *of; };

static void mix(struct observed *o, uint64_t x)
{
	o->hash = (o->hash ^ x) * 0x9e3779b97f4a7c15ull;
	o->hash ^= o->hash >> 29;
}

static void on_event(struct event_sink *s, const struct event *e)
{
	struct observed *o = ((struct sink *)s)->of;
	const struct event_access *a = &e->access;

	o->events++;
	mix(o, e->kind | (uint64_t)e->cta << 8 | (uint64_t)e->warp << 32);
	mix(o, (uint64_t)e->lanes << 32 | site_get(e->site)->ptx_line);
	if (e->kind != EV_ACCESS)
		return;
	for (uint32_t m = e->lanes; m; m &= m - 1) {
		uint64_t at = lane_addr(&a->at, (unsigned)__builtin_ctz(m));

		mix(o, at - (a->space == SP_GLOBAL ? (uintptr_t)o->memory : 0));
	}
	mix(o, a->bytes | (uint64_t)a->element_bytes << 8 | (uint64_t)a->mode << 16
		| (uint64_t)a->flags << 24 | (uint64_t)a->overwritten << 32);
	if (a->mode == MODE_WRITE)
		mix(o, access_unchanged(a));
	/* as for memory that was never written: follow.c takes over */
	if (a->unwritten && a->at.base % 4096 == 64)
		*a->unwritten = e->lanes;
}

static struct event_sink *begin(void *user, const struct cluster_info *c)
{
	struct sink *s = calloc(1, sizeof *s);

	(void)c;
	*s = (struct sink){ { .event = on_event, .want_global = true }, user };
	return &s->sink;
}

static void end(void *user, struct event_sink *s)
{
	(void)user;
	free(s);
}

static void initial(uint32_t *memory)
{
	for (unsigned i = 0; i < WORDS; i++)
		memory[i] = i % 7 * 0x01010101u + i;
}

/* The caller frees the memory. */
static void observe(struct observed *o, const char *text, unsigned blocks, unsigned threads,
	uint64_t seed)
{
	struct consan_err e = { 0 };
	struct exec_observer observer = { .user = o, .cluster_begin = begin, .cluster_end = end };
	struct ptx_module *p = ptx_parse("test.ptx", text, strlen(text), &e);
	struct exec_module *m = p ? exec_load(p, &e) : NULL;
	struct exec_launch l = { .device = exec_device_for(90), .grid = { blocks, 1, 1 },
		.block = { threads, 1, 1 }, .cluster = { 1, 1, 1 }, .jobs = 1, .observer = &observer,
		.seed = seed, .timeout = 100 };

	*o = (struct observed){ .memory = calloc(WORDS, 4) };
	initial(o->memory);
	cr_assert(m, "%s", e.text);
	l.kernel = exec_kernel(m, "k", &e);
	cr_assert(l.kernel, "%s", e.text);
	l.params = &o->memory;
	exec_mem_add(o->memory, WORDS * 4, MEM_DEVICE, false);
	exec_run(&l, &o->result);
	exec_mem_remove(o->memory);
	exec_unload(m);
}

static void same(const struct observed *a, const struct observed *b, const char *what)
{
	cr_assert_eq(a->result.status, b->result.status, "%s", what);
	cr_assert_eq(a->result.warp_ops, b->result.warp_ops, "%s", what);
	cr_assert_eq(a->events, b->events, "%s: %lu and %lu events", what, a->events, b->events);
	cr_assert_eq(a->hash, b->hash, "%s: other events", what);
	cr_assert(!memcmp(a->memory, b->memory, WORDS * 4), "%s: other memory", what);
}

Test(runs, the_step_loop_does_the_same)
{
	static const unsigned threads[] = { 128, 32, 70, 5 };

	for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++)
		for (unsigned t = 0; t < 4; t++)
			for (uint64_t seed = 0; seed < 4; seed++) {
				struct observed run, step;
				char what[80];

				snprintf(what, sizeof what, "program %u, %u threads, seed %u", i, threads[t],
					(unsigned)seed);
				unsetenv("CONSAN_STEP");
				observe(&run, programs[i], 3, threads[t], seed);
				setenv("CONSAN_STEP", "1", 1);
				observe(&step, programs[i], 3, threads[t], seed);
				same(&run, &step, what);
				free(run.memory);
				free(step.memory);
			}
}

/* ---- rows ---- */

/* Address of lane l: from + l % 16 * across + l / 16 * down, in bytes. */
static const struct shape { int from, across, down; } shapes[] = {
	{ 0, 1, 16 }, { 256, 1, 0 }, { 256, 0, 1 }, { 256, 0, 0 }, { 512, 1, 32 }, { 512, 1, -16 },
	{ 512, 1, 8 }, { 512, 1, 1 }, { 512, 2, 32 }, { 512, -1, -16 }, { 1008, 1, 0 }, { 256, 0, -5 },
	{ 256, 1, 3 }, { 256, 1, -15 },
};

static const struct form { const char *type, *values; int bytes, n; } forms[] = {
	{ "u8", "%r10", 1, 1 }, { "u16", "%r10", 2, 1 }, { "u32", "%r10", 4, 1 }, { "u64", "%rd5", 8, 1 },
	{ "v2.u32", "{%r10, %r11}", 8, 2 }, { "v4.u32", "{%r10, %r11, %r12, %r13}", 16, 4 },
	{ "v2.u64", "{%rd5, %rd6}", 16, 2 }, { "v2.u8", "{%r10, %r11}", 2, 2 },
};

/* The kernel: lanes load by the shape, change the values, and store them there. Shared memory is a
 * copy of the first 4 KiB of global memory, and is copied to 8 KiB from there in the end. */
static void kernel_of(char *to, size_t n, const struct form *f, const struct shape *s,
	const char *space)
{
	const bool shared = !strcmp(space, ".shared");
	const char *head = HEAD, *at = shared ? "%r6" : "%rd4";
	const char *copy = "mov.u32 %r14, 0;\n"
		"@:\nmad.lo.u32 %r15, %r14, 32, %r1;\nmul.wide.u32 %rd2, %r15, 4;\n"
		"add.s64 %rd2, %rd1, %rd2;\nshl.b32 %r15, %r15, 2;\nadd.u32 %r7, %r8, %r15;\n";
	const char *next = "add.u32 %r14, %r14, 1;\nsetp.lt.u32 %p2, %r14, 32;\n@%p2 bra ";

	snprintf(to, n, "%s"
		"and.b32 %%r3, %%r1, 15;\nshr.u32 %%r4, %%r1, 4;\n"
		"mad.lo.s32 %%r5, %%r3, %d, %d;\nmad.lo.s32 %%r5, %%r4, %d, %%r5;\n"
		"mov.u32 %%r8, tile;\nadd.u32 %%r6, %%r8, %%r5;\ncvt.s64.s32 %%rd3, %%r5;\n"
		"add.s64 %%rd4, %%rd1, %%rd3;\n"
		"%s ld.global.u32 %%r9, [%%rd2];\nst.shared.u32 [%%r7], %%r9;\n%sF;\n"
		"ld%s.%s %s, [%s];\n"
		"add.u32 %%r10, %%r10, 3;\nadd.u32 %%r11, %%r11, %%r1;\nadd.s64 %%rd5, %%rd5, 7;\n"
		"st%s.%s [%s], %s;\n"
		"%s ld.shared.u32 %%r9, [%%r7];\nst.global.u32 [%%rd2+8192], %%r9;\n%sG;\n"
		"ret;\n}\n", head, s->across * f->bytes, s->from * f->bytes, s->down * f->bytes,
		copy, next, space, f->type, f->values, at, space, f->type, at, f->values, copy, next);
	*strchr(strstr(to, "\n@:") + 1, '@') = 'F';
	*strchr(strstr(to, "\n@:") + 1, '@') = 'G';
}

/* What it leaves in memory */
static void expect(uint32_t *memory, const struct form *f, const struct shape *s, bool shared)
{
	const int element = f->bytes / f->n;
	unsigned char tile[4096], value[32][16], *at = shared ? tile : (unsigned char *)memory;

	memcpy(tile, memory, sizeof tile);
	for (int pass = 0; pass < 2; pass++)
		for (int l = 0; l < 32; l++) {
			unsigned char *place = at + f->bytes
				* (s->from + l % 16 * s->across + l / 16 * s->down);
			uint64_t v = 0;

			if (pass) {
				memcpy(place, value[l], (size_t)f->bytes);
				continue;
			}
			memcpy(value[l], place, (size_t)f->bytes);
			memcpy(&v, value[l], (size_t)element);
			v += element == 8 ? 7 : 3;
			memcpy(value[l], &v, (size_t)element);
			if (f->n == 1 || element == 8)
				continue;
			memcpy(&v, value[l] + element, (size_t)element);
			v += (unsigned)l;
			memcpy(value[l] + element, &v, (size_t)element);
		}
	memcpy(memory + 2048, tile, sizeof tile);
}

Test(runs, rows_are_accessed_as_lanes_are)
{
	static const char *const spaces[] = { ".shared", ".global", "" };

	unsetenv("CONSAN_STEP");
	for (unsigned f = 0; f < sizeof forms / sizeof *forms; f++)
		for (unsigned s = 0; s < sizeof shapes / sizeof *shapes; s++)
			for (unsigned k = 0; k < 3; k++) {
				uint32_t memory[WORDS];
				struct observed o;
				char text[4000], what[120];
				struct shape at = shapes[s];

				while ((at.from + 40) * forms[f].bytes > 4096)
					at.from /= 2;
				snprintf(what, sizeof what, "%s.%s at %d + %d, %d", spaces[k], forms[f].type,
					at.from, at.across, at.down);
				kernel_of(text, sizeof text, &forms[f], &at, spaces[k]);
				observe(&o, text, 1, 32, 0);
				cr_assert_eq(o.result.status, EXEC_OK, "%s: %s\n%s", what, o.result.err.text, text);
				initial(memory);
				expect(memory, &forms[f], &at, k == 0);
				for (unsigned i = 0; i < WORDS; i++)
					cr_assert_eq(o.memory[i], memory[i], "%s: word %u is %x, not %x", what, i,
						o.memory[i], memory[i]);
				free(o.memory);
			}
}
