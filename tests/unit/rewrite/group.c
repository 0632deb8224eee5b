/* Tests of group: which accesses share a record, what is recorded, and what moves before the first. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "instrument/rewrite/group.h"
#include "libconsan/ptx/ptx.h"

#define KERNEL(body) ".version 8.0\n.target sm_80\n.address_size 64\n" \
	".visible .entry k()\n{\n\t.reg .b32 %r<20>;\n\t.reg .pred %p<4>;\n\t.reg .b64 %d;\n" body "\tret;\n}\n"

/* The group that begins at this instruction; nmembers 0: none. */
static struct group find(const char *text, uint32_t at)
{
	struct consan_err e = { 0 };
	struct ptx_module *m = ptx_parse("k", text, strlen(text), &e);
	struct group g = { 0 };
	uint32_t *scope;

	cr_assert_not_null(m, "%s", e.text);
	scope = group_scopes(&m->func[0]);
	if (!group_find(&m->func[0], scope, at, false, &g))
		g.nmembers = 0;
	free(scope);
	ptx_free(m);
	return g;
}

Test(group, constants_need_no_word)
{
	const struct group g = find(KERNEL("\tld.shared.u32 %r1, [%r0+4];\n\tadd.s32 %r2, %r0, 256;\n"
		"\tld.shared.u32 %r3, [%r2+8];\n\tadd.s32 %r4, %r2, -16;\n\tld.shared.u32 %r5, [%r4];\n"), 0);

	cr_assert_eq(g.nmembers, 3);
	cr_expect_eq(g.nwords, 1);
	cr_expect_eq(g.nmoves, 0);
	cr_expect_eq(g.member[1].value[0].add, 260);
	cr_expect_eq(g.member[2].value[0].add, 236);
}

Test(group, computations_move_before_the_record)
{
	static const uint32_t moved[] = { 1, 3, 4, 5 };
	const struct group g = find(KERNEL("\tld.shared.u32 %r1, [%r0];\n\tshl.b32 %r2, %r6, 1;\n"
		"\txor.b32 %r7, %r7, 1;\n\tadd.s32 %r3, %r0, %r2;\n\tsetp.eq.u32 %p1, %r6, 0;\n"
		"\tselp.b32 %r4, 16, 0, %p1;\n\tcp.async.cg.shared.global [%r3], [%d], 16, %r4;\n"), 0);

	cr_assert_eq(g.nmembers, 2);
	cr_expect_eq(g.nwords, 3);
	cr_assert_eq(g.nmoves, 4);
	for (unsigned k = 0; k < 4; k++)
		cr_expect_eq(g.move[k], moved[k]);
}

/* Nothing moves past what uses its register, or that is more than a computation. */
Test(group, what_does_not_move)
{
	static const char *const body[] = {
		KERNEL("\tld.shared.u32 %r1, [%r0];\n\tadd.s32 %r2, %r1, 4;\n\tld.shared.u32 %r3, [%r2];\n"),
		KERNEL("\tld.shared.u32 %r1, [%r0];\n\tshl.b32 %r0, %r6, 2;\n\tld.shared.u32 %r3, [%r0];\n"),
		KERNEL("\tld.shared.u32 %r1, [%r0];\n\tld.global.u32 %r2, [%d];\n\tld.shared.u32 %r3, [%r2];\n"),
		KERNEL("\tld.shared.u32 %r1, [%r0];\n\t@%p1 shl.b32 %r2, %r6, 2;\n\tld.shared.u32 %r3, [%r2];\n"),
		KERNEL("\tld.shared.u32 %r1, [%r0];\n\tmov.u32 %r2, %clock;\n\tld.shared.u32 %r3, [%r2];\n"),
		KERNEL("\tld.shared.u32 %r1, [%r0];\n\t{ .reg .b32 %r0;\n\tshl.b32 %r0, %r6, 2;\n"
			"\tld.shared.u32 %r3, [%r0]; }\n"),
	};

	for (size_t k = 0; k < ARRAY_SIZE(body); k++)
		cr_expect_eq(find(body[k], 0).nmembers, 0, "%zu", k);
}

/* Recorded instructions, guards and other blocks end a group. */
Test(group, what_ends_a_group)
{
	static const char *const body[] = {
		KERNEL("\tld.shared.u32 %r1, [%r0];\n\tbar.sync 0;\n\tld.shared.u32 %r3, [%r0];\n"),
		KERNEL("\tld.shared.u32 %r1, [%r0];\n\tst.shared.u32 [%r0], %r5;\n\tld.shared.u32 %r3, [%r0];\n"),
		KERNEL("\tld.shared.u32 %r1, [%r0];\n\t@%p1 ld.shared.u32 %r3, [%r0];\n"),
		KERNEL("\tld.shared.u32 %r1, [%r0];\nL:\tld.shared.u32 %r3, [%r0];\n\t@%p1 bra L;\n"),
		KERNEL("\tld.shared.u32 %r1, [%r0];\n\tld.volatile.shared.u32 %r3, [%r0];\n"),
	};

	for (size_t k = 0; k < ARRAY_SIZE(body); k++)
		cr_expect_eq(find(body[k], 0).nmembers, 0, "%zu", k);
	cr_expect_eq(find(KERNEL("\tadd.s32 %r0, %r0, 4;\n\tld.shared.u32 %r1, [%r0];\n"
		"\tld.shared.u32 %r3, [%r0];\n"), 0).nmembers, 0);
}
