/* exec_observer.first_write: called once for each allocation to which a launch writes, before it changes, and
 * not for one that it reads. */
#include "libconsan/exec/exec.h"
#include "libconsan/ptx/ptx.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 1024, WARPS = 4 };

#define HEAD ".version 8.7\n.target sm_90a\n.address_size 64\n" \
	".visible .entry k(.param .u64 to, .param .u64 from)\n{\n.reg .pred q;\n.reg .b32 t, a, r, w;\n.reg .f32 f;\n" \
	".reg .b64 d, s, o;\n.shared .align 128 .b8 tile[4096];\n" \
	"ld.param.u64 d, [to];\nld.param.u64 s, [from];\nmov.u32 t, %tid.x;\nmul.wide.u32 o, t, 4;\n" \
	"add.u64 d, d, o;\nadd.u64 s, s, o;\nmov.u32 a, tile;\nld.global.u32 r, [s];\n" \
	"setp.ne.u32 q, t, 0;\nmov.f32 f, 0f3F800000;\nmad.lo.u32 w, t, 4, a;\nst.shared.u32 [w], 7;\n" \
	"fence.proxy.async.shared::cta;\nbar.sync 0;\n"
#define BULK_END "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"

static struct statement { char text[200]; bool writes; } statements[] = {
	{ "st.global.u32 [d], 7;", true },
	{ "st.u32 [d], 7;", true },
	{ "@!q st.global.v4.u32 [d], {t, 1, 2, 3};", true },
	{ "st.relaxed.gpu.global.u32 [d], 7;", true },
	{ "st.global.u32 [d], 7;\nst.global.u32 [d], 8;", true },
	{ "red.global.add.u32 [d], 1;", true },
	{ "atom.global.exch.b32 r, [d], 7;", true },
	{ "atom.global.cas.b32 r, [d], r, 7;", true },
	{ "atom.add.f32 f, [d], f;", true },
	{ "@q ret;\ncp.async.bulk.global.shared::cta.bulk_group [d], [a], 256;\n" BULK_END, true },
	{ "@q ret;\ncp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [d], [a], 256;\n" BULK_END, true },
	{ "ld.global.u32 r, [d];", false },
	{ "ld.acquire.gpu.global.u32 r, [d];", false },
	{ "cp.async.ca.shared.global [a], [d], 4;\ncp.async.wait_all;", false },
	{ "prefetch.global.L2 [d];", false },
};

struct seen {
	uint64_t at[4], bytes[4];
	unsigned n;
	bool unchanged;
	const uint32_t *to, *before;
};

static void on_first_write(void *user, uint64_t at, uint64_t bytes)
{
	struct seen *s = user;

	if (s->n < 4) {
		s->at[s->n] = at;
		s->bytes[s->n] = bytes;
	}
	s->n++;
	s->unchanged &= !memcmp(s->to, s->before, WORDS * sizeof *s->to);
}

ParameterizedTestParameters(first_write, of)
{
	return cr_make_param_array(struct statement, statements, sizeof statements / sizeof *statements);
}

ParameterizedTest(struct statement *x, first_write, of)
{
	uint32_t *to = malloc(WORDS * sizeof *to), *from = malloc(WORDS * sizeof *from), before[WORDS];
	uint64_t params[] = { (uintptr_t)to, (uintptr_t)from };
	struct seen seen = { .unchanged = true, .to = to, .before = before };
	struct exec_observer o = { .user = &seen, .first_write = on_first_write };
	struct exec_launch l = { .device = exec_device_for(90), .grid = { 8, 1, 1 }, .block = { 32 * WARPS, 1, 1 },
		.cluster = { 1, 1, 1 }, .params = params, .jobs = 2, .timeout = 20, .observer = &o };
	struct consan_err e = { 0 };
	struct exec_module *m;
	struct ptx_module *p;
	struct exec_result r;
	char text[4096];

	for (unsigned i = 0; i < WORDS; i++)
		to[i] = before[i] = from[i] = 0xff00 + i;
	snprintf(text, sizeof text, "%s%s\nret;\n}\n", HEAD, x->text);
	p = ptx_parse("test.ptx", text, strlen(text), &e);
	m = p ? exec_load(p, &e) : NULL;
	cr_assert(m, "%s: line %d: %s", x->text, e.line, e.text);
	exec_mem_add(to, WORDS * sizeof *to, MEM_DEVICE, false);
	exec_mem_add(from, WORDS * sizeof *from, MEM_DEVICE, false);
	l.kernel = exec_kernel(m, "k", &e);
	exec_run(&l, &r);
	cr_expect_eq(r.status, EXEC_OK, "%s: %s", x->text, r.err.text);
	cr_expect_eq(seen.n, x->writes, "%s: %u calls", x->text, seen.n);
	cr_expect(seen.unchanged, "%s: too late", x->text);
	if (x->writes) {
		cr_expect_eq(seen.at[0], (uintptr_t)to, "%s", x->text);
		cr_expect_eq(seen.bytes[0], WORDS * sizeof *to, "%s", x->text);
		cr_expect(memcmp(to, before, sizeof before), "%s changes nothing", x->text);
	}
	exec_mem_remove(to);
	exec_mem_remove(from);
	exec_unload(m);
	free(to);
	free(from);
}
