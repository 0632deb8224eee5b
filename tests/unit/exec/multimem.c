/* Tests of exec: bulk copies to multicast addresses, and which devices a multicast range has. The
 * other multimem instructions are a class of tests/conform. */
#include "libconsan/base/base.h"
#include "libconsan/exec/exec.h"
#include "libconsan/ptx/ptx.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 3, WORDS = 64, PAGE = 4096 };
#define MULTICAST (UINT64_C(1) << 50)

#define KERNEL(statement) \
	".version 9.1\n.target sm_100a\n.address_size 64\n" \
	".visible .entry k(.param .u64 p)\n{\n.reg .b64 d, m;\n.reg .b32 t, a;\n.reg .pred q;\n" \
	".shared .align 128 .b8 s[256];\n" \
	"ld.param.u64 m, [p];\nmov.u32 t, %tid.x;\nmov.u32 a, s;\nmad.lo.u32 a, t, 4, a;\n" \
	"st.shared.u32 [a], t;\nfence.proxy.async.shared::cta;\nbar.sync 0;\nsetp.ne.u32 q, t, 0;\n" \
	"@q ret;\n" statement "\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;\n}\n"

struct seen { struct event_sink sink; unsigned copies, pieces; uint64_t at[DEVICES + 1], bytes; };

static void on_event(struct event_sink *sink, const struct event *e)
{
	struct seen *s = (struct seen *)sink;

	if (e->kind != EV_BULK)
		return;
	s->copies++;
	for (unsigned k = 0; k < e->bulk.global.n; k++) {
		s->bytes += e->bulk.global.at[k].bytes;
		if (s->pieces <= DEVICES)
			s->at[s->pieces] = e->bulk.global.at[k].addr;
		s->pieces++;
	}
}

static struct event_sink *begin(void *user, const struct cluster_info *c)
{
	(void)c;
	return user;
}

/* Runs the kernel; bound: the number of devices that have bound memory. */
static struct exec_result run(const char *text, unsigned bound, uint32_t memory[DEVICES][WORDS],
	struct seen *seen)
{
	struct exec_multicast *m = base_alloc(sizeof *m + (bound + 1) * sizeof m->bound[0]);
	struct exec_observer o = { .user = seen, .cluster_begin = begin };
	struct consan_err e = { 0 };
	struct ptx_module *p = ptx_parse("test.ptx", text, strlen(text), &e);
	struct exec_module *module = p ? exec_load(p, &e) : NULL;
	uint64_t param = MULTICAST;
	struct exec_launch l = { .device = exec_device_for(100), .grid = { 1, 1, 1 }, .block = { WORDS, 1, 1 },
		.cluster = { 1, 1, 1 }, .params = &param, .jobs = 1, .timeout = 20, .observer = &o };
	struct exec_result r;

	cr_assert(module, "line %d: %s", e.line, e.text);
	*seen = (struct seen){ .sink = { .event = on_event, .want_global = true } };
	m->devices = DEVICES;
	for (unsigned d = 0; d < bound; d++)
		m->bound[m->n++] = (struct exec_binding){ MULTICAST, WORDS * 4, (uintptr_t)memory[d], d };
	exec_mem_put(&(struct exec_mem){ MULTICAST, PAGE, MEM_DEVICE, false, 0, NULL, false, m });
	l.kernel = exec_kernel(module, "k", &e);
	exec_run(&l, &r);
	exec_mem_remove((void *)(uintptr_t)MULTICAST);
	exec_unload(module);
	free(m);
	return r;
}

Test(multimem, bulk_copy)
{
	static uint32_t memory[DEVICES][WORDS];
	struct seen seen;
	struct exec_result r;

	r = run(KERNEL("multimem.cp.async.bulk.global.shared::cta.bulk_group [m], [s], 256;"), DEVICES, memory,
		&seen);
	cr_assert_eq(r.status, EXEC_OK, "%s", r.err.text);
	for (unsigned d = 0; d < DEVICES; d++)
		for (unsigned i = 0; i < WORDS; i++)
			cr_assert_eq(memory[d][i], i);
	cr_assert(seen.copies == 1 && seen.pieces == DEVICES && seen.bytes == DEVICES * 256);
	for (unsigned d = 0; d < DEVICES; d++)
		cr_assert_eq(seen.at[d], (uintptr_t)memory[d]);
}

Test(multimem, bulk_reduction)
{
	static uint32_t memory[DEVICES][WORDS];
	struct seen seen;
	struct exec_result r;

	for (unsigned d = 0; d < DEVICES; d++)
		for (unsigned i = 0; i < WORDS; i++)
			memory[d][i] = 1000 * d;
	r = run(KERNEL("multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [m+128], [s+128], "
		"128;"), DEVICES, memory, &seen);
	cr_assert_eq(r.status, EXEC_OK, "%s", r.err.text);
	for (unsigned d = 0; d < DEVICES; d++)
		for (unsigned i = 0; i < WORDS; i++)
			cr_assert_eq(memory[d][i], 1000 * d + (i < 32 ? 0 : i));
}

Test(multimem, faults)
{
	static uint32_t memory[DEVICES][WORDS];
	struct seen seen;
	struct exec_result r;

	r = run(KERNEL("multimem.cp.async.bulk.global.shared::cta.bulk_group [m], [s], 256;"), DEVICES - 1,
		memory, &seen);
	cr_assert(r.status == EXEC_FAULT && r.fault == FAULT_MULTICAST);
	r = run(KERNEL("multimem.cp.async.bulk.global.shared::cta.bulk_group [m+128], [s], 256;"), DEVICES,
		memory, &seen);
	cr_assert(r.status == EXEC_FAULT && r.fault == FAULT_MULTICAST);
	r = run(KERNEL("multimem.st.weak.global.u32 [m+2], t;"), DEVICES, memory, &seen);
	cr_assert(r.status == EXEC_FAULT && r.fault == FAULT_MISALIGNED);
	r = run(KERNEL("cp.async.bulk.global.shared::cta.bulk_group [m], [s], 256;"), DEVICES, memory, &seen);
	cr_assert(r.status == EXEC_FAULT && r.fault == FAULT_MULTICAST);
	cr_assert_eq(memory[0][5], 0);
}
