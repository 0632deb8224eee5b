/* Changes of a statement, and the edits that follow from a rule alone. */
#include "libconsan/base/base.h"
#include "libconsan/event/event.h"
#include "libconsan/finding/finding.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct { const char *ptx, *form, *result; } changes[] = {
	{ "cp.async.wait_group 2", "#0=1", "cp.async.wait_group 1;" },
	{ "@%p1 cp.async.bulk.wait_group.read 1;", "#0=0", "@%p1 cp.async.bulk.wait_group.read 0;" },
	{ "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+8], 2048", "#2=1024",
		"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+8], 1024;" },
	{ "mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0", "^2",
		"mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 1;" },
	{ "mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], %r7, 100;", "^2",
		"{ .reg .b32 %parity; xor.b32 %parity, %r7, 1; "
		"mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], %parity, 100; }" },
	{ "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar]", ".relaxed>.release",
		"mbarrier.arrive.release.cta.shared::cta.b64 _, [bar];" },
	{ "cp.async.bulk.wait_group.read 0", ".read>", "cp.async.bulk.wait_group 0;" },
	{ "st.release.cta.shared::cta.u32 [%r1], 1", ".cta>.gpu", "st.release.gpu.shared::cta.u32 [%r1], 1;" },
	{ "@!%p2 fence.proxy.async.global", "fence.proxy.async;", "@!%p2 fence.proxy.async;" },
	{ "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r75]", "+16",
		"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r75+16];" },
	{ "mbarrier.arrive.shared::cta.b64 _, [bar+8];", "+-8",
		"mbarrier.arrive.shared::cta.b64 _, [bar+8+-8];" },
	{ "@%p1 mbarrier.arrive.shared::cta.b64 _, [%r9+8]", "tcgen05.commit.shared::cluster.b64 [];",
		"@%p1 tcgen05.commit.shared::cluster.b64 [%r9+8];" },
	{ "wgmma.mma_async {%f0, %f1}, %rd1, %rd2", "#1=%rd9", "wgmma.mma_async {%f0, %f1}, %rd9, %rd2;" },
};

Test(edit, statements)
{
	char to[256];

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		cr_expect(edit_statement(changes[i].ptx, changes[i].form, to, sizeof to), "%s",
			changes[i].ptx);
		cr_expect_str_eq(to, changes[i].result);
	}
}

Test(edit, forms_that_do_not_apply)
{
	static const struct { const char *ptx, *form; } none[] = {
		{ "bar.sync 0", "#1=64" }, { "ld.shared::cta.u32 %r1, [%r2]", ".cta>.gpu" },
		{ "bar.sync 0", "+8" }, { "bar.sync 0", "tcgen05.commit []" },
		{ "cp.async.wait_all", "#0=1" }, { "mbarrier.try_wait.b64 %p1, [bar], x", "^2" },
	};
	char to[256];

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		cr_expect(!edit_statement(none[i].ptx, none[i].form, to, sizeof to), "%s", none[i].ptx);
		cr_expect_str_eq(to, "");
	}
	cr_expect(!edit_statement("cp.async.wait_group 2", "#0=1", to, 8), "too long");
}

static struct finding race(unsigned warp0, unsigned warp1, unsigned block0, unsigned block1,
	uint8_t space)
{
	const uint32_t site = site_add(&(struct site){ .kernel = "k", .module = "m", .ptx_line = 3,
		.ptx = "ld.shared.u32 %r1, [%r2]" });
	struct finding f = { .rule = rule_by_code("CS102"), .nsides = 2 };

	f.side[0] = (struct finding_side){ .site = site, .warp = (uint16_t)warp0, .space = space,
		.ctaid = { block0, 0, 0 } };
	f.side[1] = (struct finding_side){ .site = site, .warp = (uint16_t)warp1, .space = space,
		.ctaid = { block1, 0, 0 } };
	return f;
}

Test(edit, barrier_of_those_who_race)
{
	struct finding warps = race(0, 1, 0, 0, SP_SHARED), lanes = race(2, 2, 0, 0, SP_SHARED);
	struct finding cluster = race(0, 0, 0, 1, SP_SHARED), grid = race(0, 0, 0, 1, SP_GLOBAL);

	edit_by_rule(&warps);
	edit_by_rule(&lanes);
	edit_by_rule(&cluster);
	edit_by_rule(&grid);
	cr_expect_eq(warps.edit.kind, EDIT_BETWEEN);
	cr_expect_str_eq(warps.edit.ptx, "bar.sync 0;");
	cr_expect_str_eq(lanes.edit.ptx, "bar.warp.sync 0xffffffff;");
	cr_expect_str_eq(cluster.edit.ptx, "barrier.cluster.arrive; barrier.cluster.wait;");
	cr_expect_eq(grid.edit.kind, EDIT_BETWEEN);
	cr_expect_str_eq(grid.edit.ptx, "", "no barrier makes the blocks of a grid meet");
}

/* Every error and warning names a line to edit, if only the one at which it was found; but for races of
 * operations (CS10..), which are not repaired at the accesses. */
Test(edit, a_line_for_each_rule)
{
	for (unsigned r = 1; r <= rule_count(); r++) {
		struct finding f = race(0, 1, 0, 0, SP_SHARED);

		f.rule = r;
		f.severity = rule_get(r)->severity;
		edit_by_rule(&f);
		cr_expect(f.edit.kind != EDIT_NONE || f.severity == SEV_NOTE || strlen(rule_get(r)->code) == 6,
			"%s", rule_get(r)->code);
	}
}

Test(edit, part_of_an_instruction_to_change)
{
	struct finding f = race(0, 0, 0, 0, SP_SHARED);

	f.rule = rule_by_code("CS407");
	f.severity = SEV_ERROR;
	edit_by_rule(&f);
	cr_expect_eq(f.edit.kind, EDIT_CHANGE);
	cr_expect_str_eq(f.edit.ptx, "");
	cr_expect_str_eq(f.edit.form, "mask");
}

Test(edit, names_read_back)
{
	for (unsigned k = EDIT_NONE; k <= EDIT_MOVE_BEFORE; k++)
		cr_expect_eq(edit_by_name(edit_name(k)), k);
	for (unsigned v = VERIFIED_NOT_TRIED; v <= VERIFIED_NOT; v++)
		cr_expect_eq(edit_verified_by_name(edit_verified_name(v)), v);
	for (unsigned u = UNTRIED_NONE; u <= UNTRIED_not_patched; u++)
		cr_expect_eq(edit_untried_by_name(edit_untried_name(u)), u);
}

Test(edit, cuda_idioms)
{
	char to[64];

	cr_expect_str_eq(edit_cuda("bar.sync 0;", to, sizeof to), "__syncthreads()");
	cr_expect_str_eq(edit_cuda("bar.sync 0, 64;", to, sizeof to), "");
	cr_expect_str_eq(edit_cuda("cp.async.wait_group 2;", to, sizeof to), "__pipeline_wait_prior(2)");
}

/* The frame shown first: the user's, not that of a library or of a helper header. */
Test(edit, headline_outside_libraries)
{
	const struct site_loc kernel = { "/home/u/gemm.cu", 80, 1, NULL, NULL, 0 };
	const struct site_loc helper = { "/home/u/helpers.cuh", 7, 1, "load", &kernel, 0 };
	const struct site_loc cute = { "/opt/cutlass/include/cute/arch/copy_sm90_tma.hpp", 129, 1,
		"copy", &helper, 0 };
	const struct site_loc cuda = { "/usr/local/cuda/include/cuda_bf16.hpp", 113, 1, "f", NULL, 0 };
	const struct site_loc only = { "/home/u/helpers.cuh", 7, 1, "load", NULL, 0 };
	const struct site_loc inner = { "/opt/cutlass/include/cute/x.hpp", 1, 1, "g", &only, 0 };
	static const char *const own[] = { "*/helpers.cuh", "gemm.cu" };

	cr_expect_eq(site_headline(&cute), &kernel);
	cr_expect_eq(site_headline(&cuda), &cuda, "all frames are of libraries");
	cr_expect_eq(site_headline(&inner), &only);
	site_libraries(own, 2);
	cr_expect_eq(site_headline(&helper), &helper, "all frames are of libraries");
	site_libraries(NULL, 0);
	cr_expect_eq(site_headline(&helper), &kernel);
}
