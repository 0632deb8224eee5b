/* ticket: which instructions are asynchronous, so that their record may have an earlier ticket, and which may
 * acquire, so that no earlier ticket is used after them. */
#include "instrument/rewrite/ticket.h"
#include "libconsan/finding/hint_codes.h"
#include "tests/cases/harness/run.h"

#include <criterion/criterion.h>

enum { NEITHER, EARLIER = 1, ENDS = 2 };

static const struct { const char *text; int is; } rows[] = {
	{ "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r0]", NEITHER },
	{ "mbarrier.arrive.shared::cta.b64 %rd0, [%r0]", NEITHER },
	{ "mbarrier.init.shared::cta.b64 [%r0], 1", NEITHER },
	{ "mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], 0", ENDS },
	{ "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%rd0], 16, [%r1]", EARLIER },
	{ "cp.async.commit_group", NEITHER },
	{ "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r0]", EARLIER },
	{ "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r0], %r1, [%r2]", EARLIER },
	{ "barrier.cluster.arrive.release", NEITHER },
	{ "barrier.cluster.wait.acquire", ENDS },
	{ "bar.sync 0", ENDS },
	{ "ld.acquire.gpu.global.u32 %r0, [%rd0]", ENDS },
	{ "ld.relaxed.cta.shared.u32 %r0, [%r1]", ENDS },
	{ "ld.global.u32 %r0, [%rd0]", NEITHER },
	{ "st.release.gpu.global.u32 [%rd0], %r0", NEITHER },
	{ "st.shared.u32 [%r0], %r1", NEITHER },
	{ "atom.global.add.u32 %r0, [%rd0], 1", ENDS },
	{ "red.global.add.u32 [%rd0], 1", ENDS },
	{ "griddepcontrol.wait", ENDS },
	{ "call helper", ENDS },
	{ "add.u32 %r0, %r1, 1", NEITHER },
};

Test(ticket, rows)
{
	struct text t = { 0 };
	struct consan_err e = { 0 };
	const struct ptx_func *f;
	struct ptx_module *m;

	text_printf(&t, ".version 8.8\n.target sm_90a\n.address_size 64\n.func helper()\n{\n\tret;\n}\n"
		".visible .entry k()\n{\n\t.reg .b32 %%r<3>;\n\t.reg .b64 %%rd<1>;\n\t.reg .pred %%p<1>;\n");
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
		text_printf(&t, "\t%s;\n", rows[k].text);
	text_printf(&t, "\tret;\n}\n");
	m = ptx_parse("k.ptx", t.at, t.n, &e);
	cr_assert_not_null(m, "%s", e.text);
	f = &m->func[1];
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		cr_expect_eq(ticket_may_be_earlier(&f->insn[k]), !!(rows[k].is & EARLIER), "%s", rows[k].text);
		cr_expect_eq(ticket_ends(&f->insn[k]), !!(rows[k].is & ENDS), "%s", rows[k].text);
	}
	ptx_free(m);
	text_free(&t);
}

/* A thread that learns by a flag that it may arrive arrives behind the flag, also where the flag has no record,
 * so that the phases are those of the program. That nothing orders the arrival (CS209) is all that is reported
 * then. */
Test(ticket, unrecorded_flag)
{
	const struct finding *const *f;
	struct consan_err e = { 0 };
	struct specimen s = { 0 };
	struct run g = { 0 };

	specimen_read(&s, "tests/cases/quiet/arrival_after_a_global_flag.ptx");
	g.c = consan_open("backend=gpu-emulated gpu-global=0", &e);
	cr_assert(g.c, "%s", e.text);
	cr_expect_eq(run_specimen(&s, FIXED, &g), CONSAN_OK);
	cr_assert_eq(consan_raw_findings(g.c, &f), 1);
	cr_expect_str_eq(rule_get(f[0]->rule)->code, "CS209");
	cr_expect_eq(f[0]->hint_id, HINT_wait_not_ordered);
	run_close(&g);
}
