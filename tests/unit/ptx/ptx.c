/* ptx: the PTX front end: tables, scopes, source places, errors, printing, control flow. Malformed
 * text must give an error and have no other effect. Long because of the PTX texts. */
#include "libconsan/ptx/constant.h"
#include "libconsan/ptx/flag.h"
#include "libconsan/ptx/ir.h"
#include "libconsan/ptx/opcodes.h"
#include "libconsan/ptx/table.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 9.0\n.target sm_90a\n.address_size 64\n"

static struct ptx_module *parse(const char *text)
{
	struct consan_err e = { 0 };
	struct ptx_module *m = ptx_parse("t", text, strlen(text), &e);

	cr_assert(m, "%s", e.text);
	cr_assert(ptx_verify(m, &e), "%s", e.text);
	return m;
}

/* A kernel `k` with this body. */
static struct ptx_module *body(const char *text)
{
	struct text t = { 0 };
	struct ptx_module *m;

	text_printf(&t, HEAD ".visible .entry k(.param .u64 a, .param .u32 b)\n{\n%s\n}\n", text);
	m = parse(t.at);
	text_free(&t);
	return m;
}

static const struct ptx_insn *insn(const struct ptx_module *m, size_t k)
{
	cr_assert(m->nfunc && k < m->func[0].ninsn);
	return &m->func[0].insn[k];
}

/* ---- tables ---- */

Test(ptx_tables, rows_are_well_formed)
{
	const char *wrong = table_check();

	cr_assert_null(wrong, "%s", wrong);
}

Test(ptx_tables, every_row_with_its_required_modifiers_is_found)
{
	/* the name alone gives its row, or none if a part is missing, but never another row */
	for (unsigned op = OP_NONE + 1; op < OP_COUNT; op++) {
		const char *name = ptx_op_name(op);
		struct spelling s;

		if (op == OP_unknown)
			continue;
		table_spell(name, strlen(name), &s);
		cr_assert(s.op == op || s.op == OP_unknown, "%s found %s", name,
			ptx_op_name(s.op));
	}
}

Test(ptx_tables, types)
{
	struct ptx_insn i = { .nmods = 3, .mod = { MOD_rn, MOD_f16x2, MOD_f32 } };

	cr_assert_eq(ptx_type_of(&i, 0), TY_f16x2);
	cr_assert_eq(ptx_type_of(&i, 1), TY_f32);
	cr_assert_eq(ptx_type_of(&i, 2), TY_none);
	cr_assert_eq(ptx_type_bits(TY_f32x2), 64);
	cr_assert_eq(ptx_type_class(TY_bf16), 'f');
	cr_assert_eq(ptx_type_class(TY_pred), 'p');
	cr_assert_str_eq(ptx_mod_name(MOD_shared_cluster), ".shared::cluster");
	cr_assert_eq(ptx_group_of(MOD_acquire), MG_sem);
}

Test(ptx_tables, shapes)
{
	unsigned m, n, k;

	cr_assert(ptx_shape(MOD_m64n176k16, &m, &n, &k) && m == 64 && n == 176 && k == 16);
	cr_assert(ptx_shape(MOD_m8n8, &m, &n, &k) && m == 8 && n == 8 && k == 0);
	cr_assert(!ptx_shape(MOD_row, &m, &n, &k));
}

struct spelled { const char *text; enum ptx_op op; };

Test(ptx_tables, spellings)
{
	static const struct spelled all[] = {
		{ "ld.acquire.gpu.global.b32", OP_ld },
		{ "ld.global.acquire.gpu.b32", OP_ld },
		{ "ld.global.L1::no_allocate.L2::256B.v8.b32", OP_ld },
		{ "atom.global.cta.add.u32", OP_atom },
		{ "atom.add.acq_rel.gpu.u64", OP_atom },
		{ "stmatrix.sync.aligned.x4.trans.m8n8.shared.b16", OP_stmatrix },
		{ "stmatrix.sync.aligned.x4.m8n8.shared.b16.trans", OP_stmatrix },
		{ "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64",
		OP_mbarrier_arrive_expect_tx },
		{ "mbarrier.arrive.shared.b64", OP_mbarrier_arrive },
		{ "cp.async.cg.shared.global.L2::128B", OP_cp_async },
		{ "cp.async.bulk.commit_group", OP_cp_async_bulk_commit_group },
		{ "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
			".cta_group::2.multicast::cluster", OP_cp_async_bulk_tensor },
		{ "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global"
			".mbarrier::complete_tx::bytes.L2::cache_hint", OP_cp_async_bulk_tensor },
		{ "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col"
			".f32.e2m1.e2m1.f32.ue4m3", OP_mma },
		{ "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.s32.s4.s4.s32.satfinite",
			OP_mma_sp_ordered_metadata },
		{ "wgmma.mma_async.sp.sync.aligned.m64n128k32.f32.f16.f16", OP_wgmma_mma_async_sp },
		{ "fence.proxy.tensormap::generic.acquire.gpu", OP_fence_proxy_tensormap },
		{ "fence.proxy.async.shared::cta", OP_fence_proxy_async },
		{ "fence.proxy.async", OP_fence_proxy_async },
		{ "fence.acq_rel.gpu", OP_fence },
		{ "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32", OP_st_async },
		{ "st.async.mmio.release.sys.global.u32", OP_st },
		{ "red.async.release.gpu.global.add.u64", OP_red },
		{ "st.async.weak.global.u32", OP_st_async },
		{ "tcgen05.wait::ld.sync.aligned", OP_tcgen05_wait_ld },
		{ "bar.warp.sync", OP_bar_warp_sync },
		{ "cvt.rn.satfinite.e4m3x2.f32", OP_cvt },
		{ "cvt.rn.relu.f16x2.f32", OP_cvt },
		{ "exit", OP_exit },
		/* not PTX */
		{ "ld.global.acquire.acquire.gpu.b32", OP_unknown },
		{ "ld.global", OP_unknown },
		{ "add.u32.u32.u32", OP_unknown },
		{ "frobnicate.u32", OP_unknown },
		{ "exit.u32", OP_unknown },
		{ "mbarrier", OP_unknown },
		{ "", OP_unknown },
	};

	for (size_t k = 0; k < ARRAY_SIZE(all); k++) {
		struct spelling s;

		table_spell(all[k].text, strlen(all[k].text), &s);
		cr_expect_eq(s.op, all[k].op, "%s: %s", all[k].text, ptx_op_name(s.op));
	}
}

Test(ptx_tables, one_spelling_two_meanings)
{
	struct spelling s;

	table_spell("setp.lo.u32", 11, &s);
	cr_expect_eq(s.mod[0], MOD_cmp_lo);
	table_spell("mul.lo.u32", 10, &s);
	cr_expect_eq(s.mod[0], MOD_lo);
	table_spell("vote.sync.uni.pred", 18, &s);
	cr_expect_eq(s.mod[0], MOD_vote_uni);
	table_spell("bra.uni", 7, &s);
	cr_expect_eq(s.mod[0], MOD_uni);
}

Test(ptx_tables, order_within_a_group_is_kept)
{
	struct ptx_module *m = body(".reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
		"[%r0], [%rd0], 16, [%r1];\n"
		"cvt.u64.u32 %rd0, %r0;");

	cr_expect_eq(ptx_nth(insn(m, 0), MG_space, 0), MOD_shared_cluster);
	cr_expect_eq(ptx_nth(insn(m, 0), MG_space, 1), MOD_global);
	cr_expect_eq(ptx_type_of(insn(m, 1), 0), TY_u64);
	cr_expect_eq(ptx_type_of(insn(m, 1), 1), TY_u32);
	ptx_free(m);
}

/* ---- scopes ---- */

Test(ptx_scopes, registers_hide_and_return)
{
	struct ptx_module *m = body(
		".reg .b32 %r<4>; .reg .pred p; .reg.b16 a;\n"
		"mov.u32 %r3, 1;\n"
		"{ .reg .b32 %r<2>; .reg .f32 p; mov.u32 %r1, 2; mov.u32 %r3, 3; "
		"mov.f32 p, 0f3F800000; }\n"
		"{ .reg .b64 %r3; mov.u64 %r3, 4; mov.u32 %r2, 5; }\n"
		"@p mov.u32 %r1, 6;");
	const struct ptx_func *f = &m->func[0];

	cr_expect_eq(f->nreg, 4 + 2 + 2 + 1 + 1);
	cr_expect_eq(insn(m, 0)->operand[0].reg, 3);
	cr_expect_eq(insn(m, 1)->operand[0].reg, 7);  /* the inner %r1 */
	cr_expect_eq(insn(m, 2)->operand[0].reg, 3);  /* past the inner range */
	cr_expect_eq(f->reg[insn(m, 3)->operand[0].reg].type, TY_f32);
	cr_expect_eq(f->reg[insn(m, 4)->operand[0].reg].type, TY_b64);
	cr_expect_eq(insn(m, 5)->operand[0].reg, 2);
	cr_expect_eq(insn(m, 6)->operand[0].reg, 1);
	cr_expect_eq(f->reg[insn(m, 6)->guard].type, TY_pred);
	cr_expect_str_eq(f->reg[3].name, "%r3");
	ptx_free(m);
}

Test(ptx_scopes, labels_of_sibling_scopes)
{
	struct ptx_module *m = body(
		".reg .pred p;\n"
		"{ LAB: @p bra DONE; bra LAB; DONE: }\n"
		"{ LAB: @p bra DONE; bra LAB; DONE: }\n"
		"bra.uni LAB;\n"
		"{ bra LAB; }\n"
		"LAB: ret;");

	cr_expect_eq(insn(m, 0)->operand[0].imm, 2);
	cr_expect_eq(insn(m, 1)->operand[0].imm, 0);
	cr_expect_eq(insn(m, 2)->operand[0].imm, 4);
	cr_expect_eq(insn(m, 3)->operand[0].imm, 2);
	cr_expect_eq(insn(m, 4)->operand[0].imm, 6);
	cr_expect_eq(insn(m, 5)->operand[0].imm, 6);
	ptx_free(m);
}

Test(ptx_scopes, a_body_never_runs_off_its_end)
{
	struct ptx_module *m = body(".reg .pred p; @p bra E; exit; E:");

	cr_expect_eq(m->func[0].ninsn, 3);
	cr_expect_eq(insn(m, 2)->op, OP_ret);
	cr_expect_eq(insn(m, 0)->operand[0].imm, 2);
	ptx_free(m);
}

Test(ptx_scopes, frames_of_sibling_scopes_overlap)
{
	struct ptx_module *m = body(
		".local .align 16 .b8 depot[20];\n"
		"{ .param .b64 x; .param .align 8 .b8 y[40]; st.param.b64 [x], 0; "
		"st.param.b64 [y+8], 1; }\n"
		"{ .param .b32 x; st.param.b32 [x], 0; }");
	const struct ptx_func *f = &m->func[0];

	cr_expect_eq(f->nvar, 4);
	cr_expect_eq(f->var[1].offset, 24);
	cr_expect_eq(f->var[2].offset, 32);
	cr_expect_eq(f->var[3].offset, 20);
	cr_expect_eq(f->local_bytes, 72);
	cr_expect_eq(insn(m, 1)->operand[0].var, &f->var[2]);
	cr_expect_eq(insn(m, 1)->operand[0].imm, 8);
	ptx_free(m);
}

/* ---- operands ---- */

Test(ptx_operands, forms)
{
	struct ptx_module *m = body(
		".reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<3>; .reg .v4 .f32 v; "
		".reg .f64 d;\n"
		".shared .align 8 .b8 sm[64];\n"
		"ld.global.v4.u32 {%r0, _, %r2, %r3}, [%rd1+-24];\n"
		"shfl.sync.bfly.b32 %r0|%p1, %r1, 16, 31, -1;\n"
		"setp.lt.and.s32 %p1|%p2, %r0, 0x7fffffff, !%p0;\n"
		"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd0, {%r0, 7}], [sm+8];\n"
		"mov.u32 %r0, sm+4;\n"
		"mov.u32 %r1, %tid.x;\n"
		"mov.f64 d, 0dBFF0000000000000;\n"
		"add.f32 v.y, v.w, 0f3F800000;\n"
		"ld.shared.u32 %r0, [16];\n"
		"mov.u64 %rd0, a;\n"
		"elect.sync _|%p1, -1;\n"
		"mov.b64 %rd0, 1.5;");
	const struct ptx_operand *o = insn(m, 0)->operand;

	cr_expect(o[0].kind == PO_VEC && o[0].n == 4 && o[0].list[1].kind == PO_SINK);
	cr_expect(o[1].kind == PO_ADDR && o[1].imm == -24 && o[1].reg != PTX_NO_REG);
	o = insn(m, 1)->operand;
	cr_expect(o[0].kind == PO_PAIR && o[0].n == 2 && o[4].imm == -1);
	cr_expect_eq(ptx_written(insn(m, 1)), 1);
	o = insn(m, 2)->operand;
	cr_expect(o[2].imm == 0x7fffffff && o[3].negated);
	cr_expect_eq(ptx_pick(insn(m, 2), MG_redop), MOD_and);
	o = insn(m, 3)->operand;
	cr_expect(o[0].kind == PO_TADDR && o[0].list[0].kind == PO_ADDR && o[0].list[1].n == 2);
	cr_expect(o[1].kind == PO_ADDR && o[1].var && o[1].imm == 8);
	o = insn(m, 4)->operand;
	cr_expect(o[1].kind == PO_SYM && o[1].imm == 4 && o[1].var->space == PS_shared);
	cr_expect(insn(m, 5)->operand[1].sreg == SR_tid_x);
	cr_expect_eq((uint64_t)insn(m, 6)->operand[1].imm, 0xBFF0000000000000u);
	o = insn(m, 7)->operand;
	cr_expect(o[0].elem == 2 && o[1].elem == 4 && o[2].kind == PO_F32
		&& o[2].imm == 0x3F800000);
	cr_expect(insn(m, 8)->operand[1].kind == PO_ADDR && insn(m, 8)->operand[1].imm == 16);
	cr_expect_eq(insn(m, 9)->operand[1].var, &m->func[0].param[0]);
	cr_expect(insn(m, 10)->operand[0].list[0].kind == PO_SINK);
	cr_expect(insn(m, 11)->operand[1].kind == PO_F64 &&
		insn(m, 11)->operand[1].imm == 0x3FF8000000000000);
	ptx_free(m);
}

Test(ptx_operands, unknown_instructions_keep_their_text)
{
	struct ptx_module *m = body(
		".reg .b32 %r<4>;\n"
		"quux.sync.b32 %r1,   %r2, /* c */ [%r3];\n"
		"quux2 <<whatever>> %nobody;\n"
		"add.u32 %r1, %r2;\n"
		"xor .b32 %r1, %r2, %r3;\n"
		"ret;");
	struct text t = { 0 };

	cr_expect_eq(insn(m, 0)->op, OP_unknown);
	cr_expect_eq(insn(m, 0)->noperands, 3);
	cr_expect_eq(ptx_effect_of(insn(m, 0)->op), EF_UNKNOWN);
	ptx_statement(m, insn(m, 0), &t);
	cr_expect_str_eq(t.at, "quux.sync.b32 %r1, %r2, [%r3]");
	cr_expect_eq(insn(m, 1)->op, OP_unknown);
	cr_expect_eq(insn(m, 1)->noperands, 0);
	cr_expect_eq(insn(m, 2)->op, OP_unknown, "too few operands");
	cr_expect_eq(insn(m, 3)->op, OP_xor);
	text_free(&t);
	ptx_free(m);
}

/* ---- functions and calls ---- */

Test(ptx_functions, calls)
{
	struct ptx_module *m = parse(HEAD
		".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);\n"
		".func (.param .b32 r) twice (.param .b32 x);\n"
		".global .align 8 .u64 table[2] = {twice, generic(table)};\n"
		".visible .entry k(.param .u64 .ptr .global .align 4 p,\n"
		"\t.param .align 4 .b8 s[10], .param .u64 q)\n"
		".maxntid 128, 2\n.minnctapersm 2\n.reqnctapercluster 2, 1, 1\n.explicitcluster\n"
		"{ .reg .b64 %rd<2>; .reg .b32 %r<3>;\n"
		"{ .param .b32 r0; .param .b32 a0; st.param.b32 [a0], 3;\n"
		"call.uni (r0), twice, (a0); ld.param.b32 %r1, [r0]; }\n"
		"mov.u64 %rd0, twice;\n"
		"{ .param .b32 r0; .param .b32 a0;\n"
		"proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
		"call (r0), %rd0, (a0), proto; }\n"
		"ret; }\n"
		".func (.param .b32 r) twice (.param .b32 x) .noreturn\n"
		"{ .reg .b32 %r<2>; ld.param.b32 %r0, [x]; st.param.b32 [r], %r0; ret; }\n");
	const struct ptx_func *k = ptx_find(m, "k"), *twice = ptx_find(m, "twice");

	cr_assert(k && twice && k->entry && !twice->entry && twice->noreturn);
	cr_expect_eq(m->nfunc, 3);
	cr_expect(!ptx_find(m, "vprintf")->ninsn && ptx_find(m, "vprintf")->is_extern);
	cr_expect(k->maxntid[0] == 128 && k->maxntid[1] == 2 && k->maxntid[2] == 1);
	cr_expect(k->minnctapersm == 2 && k->reqnctapercluster[0] == 2 && k->explicitcluster);
	cr_expect(k->param[0].ptr && k->param[1].offset == 8 && k->param[2].offset == 24);
	cr_expect_eq(k->param_bytes, 32);
	cr_expect_eq(k->insn[1].op, OP_call);
	cr_expect_eq(k->insn[1].operand[0].func, twice);
	cr_expect(k->insn[1].nret == 1 && k->insn[1].narg == 1 && k->insn[1].arg[0].var->func == k);
	cr_expect(k->insn[3].operand[1].kind == PO_FUNC && k->insn[3].operand[1].func == twice);
	cr_expect(k->insn[4].operand[0].kind == PO_REG && k->insn[4].prototype->nparam == 1);
	cr_expect_eq(m->var[0].reloc[0].func, twice);
	cr_expect(m->var[0].reloc[1].var == &m->var[0] && m->var[0].reloc[1].generic);
	cr_expect_eq(twice->insn[1].operand[0].var, &twice->ret[0]);
	ptx_free(m);
}

Test(ptx_functions, alias_and_branch_table)
{
	struct ptx_module *m = parse(HEAD
		".func f();\n.func g() { ret; }\n.alias f, g;\n"
		".entry k() { .reg .b32 %r<2>; call f;\n"
		"t: .branchtargets A, B, A;\n"
		"brx.idx %r0, t; A: mov.u32 %r1, 1; B: ret; }\n");
	const struct ptx_func *k = ptx_find(m, "k");

	cr_expect_eq(k->insn[0].operand[0].func, ptx_find(m, "g"));
	cr_assert_eq(k->insn[1].ntarget, 3);
	cr_expect(k->insn[1].target[0] == 2 && k->insn[1].target[1] == 3
		&& k->insn[1].target[2] == 2);
	ptx_free(m);
}

/* ---- variables ---- */

Test(ptx_variables, initialisers)
{
	struct ptx_module *m = parse(HEAD
		".extern .shared .align 16 .b8 dyn[];\n"
		".global .align 4 .u32 x;\n"
		".global .u32 a[4] = {1, 0x2, -3};\n"
		".global .f32 f[] = {0f3F800000, 2.0, 3};\n"
		".global .u16 n[2][3] = {{1}, {2, 3}};\n"
		".global .u64 p[2] = {generic(x)+4, x};\n"
		".global .b8 m[2] = {0xFF(x), 0xFF00(generic(x)+1)};\n"
		".visible .const .align 8 .f64 d = 0d3FF0000000000000;\n"
		".weak .global .attribute(.managed) .v4 .f32 v;\n"
		".global .texref t;\n");
	const struct ptx_var *v = m->var;
	const float one_two_three[] = { 1, 2, 3 };
	const uint16_t nested[] = { 1, 0, 0, 2, 3, 0 };
	const int32_t ints[] = { 1, 2, -3, 0 };

	cr_assert_eq(m->nvar, 10);
	cr_expect(v[0].is_extern && !v[0].size && v[0].space == PS_shared && v[0].align == 16);
	cr_expect(v[1].size == 4 && !v[1].init);
	cr_expect(v[2].size == 16 && !memcmp(v[2].init, ints, 16));
	cr_expect(v[3].size == 12 && !memcmp(v[3].init, one_two_three, 12));
	cr_expect(v[4].size == 12 && !memcmp(v[4].init, nested, 12));
	cr_expect(v[5].nreloc == 2 && v[5].reloc[0].generic && v[5].reloc[0].addend == 4 &&
		v[5].reloc[1].offset == 8 && v[5].reloc[1].var == &v[1]);
	cr_expect(v[6].reloc[0].bytes == 1 && v[6].reloc[0].shift == 0 &&
		v[6].reloc[1].shift == 1 && v[6].reloc[1].generic);
	cr_expect(v[7].visible && v[7].space == PS_const && v[7].init[7] == 0x3F);
	cr_expect(v[8].weak && v[8].managed && v[8].vec == 4 && v[8].size == 16
		&& v[8].align == 16);
	ptx_free(m);
}

/* ---- places ---- */

Test(ptx_places, chains_of_inlined_calls)
{
	struct ptx_module *m = parse(HEAD
		".entry k() { .reg .b32 %r<2>;\n"
		"mov.u32 %r0, 0;\n"
		".loc 1 10 3\n mov.u32 %r0, 1;\n"
		".loc 2 20 5, function_name $S0, inlined_at 1 10 3\n mov.u32 %r0, 2;\n"
		".loc 2 30 7, function_name $S1, inlined_at 2 20 5\n mov.u32 %r0, 3;\n"
		".loc 1 10 3\n mov.u32 %r0, 4;\n"
		"ret; }\n"
		".file 1 \"a.cu\"\n.file 2 \"b.h\", 123, 456\n"
		".section .debug_abbrev { .b8 1 /* } */ }\n"
		".section .debug_str {\n$S0:\n.b8 102,0\n$S1: .b8 103,104\n.b8 105,0 }\n");
	const struct site_loc *l = insn(m, 3)->loc;

	cr_expect_null(insn(m, 0)->loc);
	cr_assert(l && l->inlined_at && l->inlined_at->inlined_at);
	cr_expect_str_eq(l->file, "b.h");
	cr_expect_str_eq(l->function, "ghi");
	cr_expect(l->line == 30 && l->col == 7);
	l = l->inlined_at;
	cr_expect_str_eq(l->function, "f");
	cr_expect_eq(l, insn(m, 2)->loc);
	l = l->inlined_at;
	cr_expect_str_eq(l->file, "a.cu");
	cr_expect(l->line == 10 && !l->function && !l->inlined_at);
	cr_expect_eq(insn(m, 4)->loc, insn(m, 1)->loc, "equal places are one");
	ptx_free(m);
}

/* ---- errors ---- */

struct mistake { const char *text; int code, line, col; };

Test(ptx_errors, line_and_column)
{
	static const struct mistake all[] = {
		{ "", CONSAN_ERR_PTX_SYNTAX, 1, 1 },
		{ "hello", CONSAN_ERR_PTX_SYNTAX, 1, 1 },
		{ HEAD ".entry k() {\n\tadd.u32 %r1, 1, 2;\n}", CONSAN_ERR_PTX_SYMBOL, 5, 10 },
		{ HEAD ".entry k() {\n.reg .b32 r;\n  mov.u32 r 1;\n}", CONSAN_ERR_PTX_SYNTAX, 6, 13 },
		{ HEAD ".entry k() {\nbra L;\n}", CONSAN_ERR_PTX_SYMBOL, 5, 5 },
		{ HEAD ".entry k() {\n{ L: } bra L;\n}", CONSAN_ERR_PTX_SYMBOL, 5, 12 },
		{ HEAD ".entry k() { .reg .b32 a; .reg .b16 a; }", CONSAN_ERR_PTX_SYMBOL, 4, 37 },
		{ HEAD ".entry k() { L: L: }", CONSAN_ERR_PTX_SYMBOL, 4, 17 },
		{ HEAD ".entry k() { ret; } .entry k() { ret; }", CONSAN_ERR_PTX_SYMBOL, 4, 32 },
		{ HEAD ".entry k() { .reg .b32 r; @r ret; }", CONSAN_ERR_PTX_SYNTAX, 4, 28 },
		{ HEAD ".global .u32 x[2] = {1, 2, 3};", CONSAN_ERR_PTX_SYNTAX, 4, 30 },
		{ HEAD ".global .u64 x = nobody;", CONSAN_ERR_PTX_SYMBOL, 0, 0 },
		{ HEAD ".global .u32 x[2][0] = {{1}};", CONSAN_ERR_PTX_SYNTAX, 4, 25 },
		{ HEAD ".global .align 3 .u32 x;", CONSAN_ERR_PTX_SYNTAX, 4, 16 },
		{ HEAD ".frobnicate 3", CONSAN_ERR_UNSUPPORTED, 4, 1 },
		{ HEAD ".entry k() { ret;", CONSAN_ERR_PTX_SYNTAX, 4, 18 },
		{ HEAD ".entry k() { frob % }", CONSAN_ERR_PTX_SYNTAX, 4, 21 },
		{ HEAD ".entry k() { frob \"x\"; }", CONSAN_ERR_PTX_SYNTAX, 4, 19 },
		{ HEAD ".entry k() { .reg .b32 a; mov.u32 a, 0x; }", CONSAN_ERR_PTX_SYNTAX, 4, 38 },
		{ HEAD ".entry k() { /* never closed", CONSAN_ERR_PTX_SYNTAX, 0, 0 },
		{ ".version 9.0\n.target sm_90\n.address_size 32\n", CONSAN_ERR_UNSUPPORTED, 3, 15 },
	};

	for (size_t k = 0; k < ARRAY_SIZE(all); k++) {
		struct consan_err e = { 0 };
		struct ptx_module *m = ptx_parse("x.ptx", all[k].text, strlen(all[k].text), &e);

		cr_assert_null(m, "accepted: %s", all[k].text);
		cr_expect_eq(e.code, all[k].code, "%s", e.text);
		if (all[k].line)
			cr_expect(e.line == all[k].line && e.col == all[k].col, "%s", e.text);
		cr_expect(strstr(e.text, "x.ptx:") == e.text, "%s", e.text);
		cr_expect(strstr(e.text, "^"), "%s", e.text);
	}
}

Test(ptx_errors, the_caret_stands_below_the_mistake)
{
	static const char text[] = HEAD ".entry k() {\n\tadd.u32 %r1, 1, 2;\n}";
	struct consan_err e = { 0 };

	cr_assert_null(ptx_parse("x", text, sizeof text - 1, &e));
	cr_expect_str_eq(e.text, "x:5:10: %r1 is not declared\n add.u32 %r1, 1, 2;\n         ^");
}

/* Selectors and negated registers are for video instructions only. */
Test(ptx_table, selectors)
{
	static const struct { const char *text; uint16_t op; } row[] = {
		{ "vadd.u32.u32.u32 r.b0, r.h1, r, r;", OP_vadd },
		{ "vmad.s32.s32.s32 r, -r.b3, r, -r;", OP_vmad },
		{ "vmad.s32.s32.s32 r.b0, r, r, r;", OP_unknown },
		{ "vadd.u32.u32.u32 r, -r, r;", OP_unknown },
		{ "add.u32 r, r.b0, r;", OP_unknown },
		{ "add.s32 r, -r, r;", OP_unknown },
		{ "mov.b64 q, {r.h0, r};", OP_unknown },
	};

	for (size_t k = 0; k < ARRAY_SIZE(row); k++) {
		struct text t = { 0 };
		struct ptx_module *m;

		text_printf(&t, HEAD ".visible .entry k()\n{\n.reg .b32 r; .reg .b64 q;\n%s\n}\n",
			row[k].text);
		m = parse(t.at);
		cr_expect_eq(m->func[0].insn[0].op, row[k].op, "%s", row[k].text);
		ptx_free(m);
		text_free(&t);
	}
}

/* ---- printing ---- */

static const char sample[] = HEAD
	".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);\n"
	".extern .shared .align 16 .b8 dyn[];\n"
	".global .align 8 .u64 tab[3] = {generic(str)+1, f, 7};\n"
	".global .align 1 .b8 str[6] = {104, 105, 0xFF00(tab), 0};\n"
	".const .align 4 .f32 c[2] = {0f3F800000, 0f40000000};\n"
	".func (.param .b32 r) f (.param .b32 x)\n"
	"{ .reg .b32 %r<3>; .loc 1 2 3\n ld.param.b32 %r1, [x]; st.param.b32 [r], %r1; ret; }\n"
	".visible .entry k(.param .align 128 .b8 p[256], .param .u32 n)\n.maxntid 128, 1, 1\n"
	"{ .reg .pred %p<4>; .reg .b32 %r<40>; .reg .b64 %rd<8>; .reg .f32 %f<16>; "
	".reg .v4 .f32 v;\n"
	".shared .align 8 .b64 bar[2]; .local .align 8 .b8 depot[64];\n"
	".loc 1 5 1\n mov.u32 %r1, %tid.x; setp.ge.s32 %p1, %r1, 32; @%p1 bra $L1;\n"
	".loc 2 7 1, function_name $S0, inlined_at 1 5 1\n"
	"{ .reg .pred p; .reg .b32 %r1; mov.u32 %r1, bar;\n"
	"LAB: mbarrier.try_wait.parity.shared::cta.b64 p, [%r1+8], 0; @!p bra LAB; }\n"
	"{ .reg .pred p; LAB: mbarrier.test_wait.shared.b64 p, [bar], %rd1;\n"
	"@p bra DONE; bra LAB; DONE: }\n"
	"wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16\n"
	"{%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, %rd1, %rd2, %p1, 1, -1, 0, 1;\n"
	"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes\n"
	"[%r2], [%rd3, {%r1, 0}], [%r3];\n"
	"vadd4.u32.u32.u32 %r1.b31, %r2.b0724, %r3, %r1; vmad.s32.s32.s32 %r1, -%r2.h1, %r3, 7;\n"
	"unknown.thing %r1, {%r2}; add.f32 v.x, v.y, %f1;\n"
	"{ .param .b32 a0; .param .b32 r0; st.param.b32 [a0], %r1;\n"
	"call.uni (r0), f, (a0); ld.param.b32 %r4, [r0]; }\n"
	"{ .param .b32 a0; .param .b32 r0; mov.u64 %rd1, f;\n"
	"pr: .callprototype (.param .b32 _) _ (.param .b32 _); call (r0), %rd1, (a0), pr; }\n"
	"t: .branchtargets $L1, $L2; brx.idx %r1, t; $L1: bar.sync 0; $L2: ret; }\n"
	".file 1 \"a.cu\"\n.file 2 \"b.h\"\n.section .debug_str { $S0: .b8 102,0 }\n";

Test(ptx_print, parses_again_to_the_same)
{
	struct ptx_module *m = parse(sample), *again;
	struct text one = { 0 }, two = { 0 };

	ptx_print(m, &one);
	again = parse(one.at);
	ptx_print(again, &two);
	cr_expect_str_eq(one.at, two.at);
	cr_expect_eq(again->func[1].ninsn, m->func[1].ninsn);
	cr_expect_eq(again->func[2].ninsn, m->func[2].ninsn);
	cr_expect_str_eq(again->func[2].insn[4].loc->function, "f");
	text_free(&one);
	text_free(&two);
	ptx_free(m);
	ptx_free(again);
}

/* ---- broken input ---- */

static uint64_t seed = 88172645463325252u;

static uint32_t draw(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % n;
}

/* Parses exactly n bytes at the end of an allocation, so that a sanitizer detects a read beyond
 * them. An error must have a line. */
static void survives(const char *text, size_t n)
{
	char *copy = malloc(n ? n : 1);
	struct consan_err e = { 0 };
	struct ptx_module *m;

	memcpy(copy, text, n);
	m = ptx_parse("m", copy, n, &e);
	free(copy);
	if (m)
		cr_assert(ptx_verify(m, &e), "%s", e.text);
	else
		cr_assert(e.code && e.line && *e.text);
	ptx_free(m);
}

Test(ptx_robust, every_truncation)
{
	for (size_t n = 0; n < sizeof sample - 1; n++)
		survives(sample, n);
}

Test(ptx_robust, mutations)
{
	static const char bytes[] = "{}[]();,.:@!|%$_0123456789-+<>\"/* \n";
	char text[sizeof sample];

	for (int k = 0; k < 4000; k++) {
		memcpy(text, sample, sizeof sample);
		for (uint32_t n = 1 + draw(6); n--;)
			text[draw(sizeof sample - 1)] = draw(2) ? bytes[draw(sizeof bytes - 1)]
				: (char)draw(256);
		survives(text, sizeof sample - 1);
	}
}

Test(ptx_robust, deep_nesting_and_long_vectors)
{
	struct text t = { 0 };
	struct consan_err e = { 0 };

	text_printf(&t, HEAD ".entry k() {");
	for (int k = 0; k < 100000; k++)
		text_add(&t, "{", 1);
	cr_expect_null(ptx_parse("m", t.at, t.n, &e));
	text_free(&t);
	e.code = 0;
	text_printf(&t, HEAD ".entry k() { .reg .b32 r; mov.b64 {r");
	for (int k = 0; k < 100000; k++)
		text_add(&t, ",r", 2);
	cr_expect_null(ptx_parse("m", t.at, t.n, &e));
	text_free(&t);
}

/* ---- control flow ---- */

static const struct ptx_cfg *cfg(const struct ptx_module *m)
{
	cr_assert(m->func[0].cfg);
	return m->func[0].cfg;
}

Test(ptx_cfg, diamond)
{
	struct ptx_module *m = body(".reg .pred p; .reg .b32 r;\n"
		"@p bra A; mov.u32 r, 1; bra B; A: mov.u32 r, 2; B: mov.u32 r, 3; ret;");
	const struct ptx_cfg *g = cfg(m);

	cr_assert_eq(g->nblock, 4);
	cr_expect_eq(g->block[0].ipdom, 3);
	cr_expect_eq(g->block[1].ipdom, 3);
	cr_expect_eq(g->block[2].ipdom, 3);
	cr_expect_eq(g->block[3].ipdom, UINT32_MAX);
	cr_expect_eq(g->block[1].order, 1, "what falls through comes first");
	cr_expect_eq(g->block[3].order, 3);
	cr_expect(g->block[0].nsucc == 2 && g->block[0].succ[0] == 2 && g->block[0].succ[1] == 1);
	ptx_free(m);
}

Test(ptx_cfg, a_loop_is_contiguous_even_if_its_text_is_not)
{
	struct ptx_module *m = body(".reg .pred p; .reg .b32 r;\n"
		"H: @p bra OUT; mov.u32 r, 1; @p bra FAR; BACK: bra H;\n"
		"OUT: mov.u32 r, 2; ret;\n"
		"FAR: mov.u32 r, 3; bra BACK;");
	const struct ptx_cfg *g = cfg(m);
	uint32_t out = g->block_of[4], far = g->block_of[6];

	cr_expect(g->block[far].order < g->block[out].order);
	cr_expect_eq(g->block[far].loop, 0);
	cr_expect_eq(g->block[0].loop, 0);
	cr_expect_eq(g->block[out].loop, UINT32_MAX);
	cr_expect_eq(g->block[0].ipdom, out);
	ptx_free(m);
}

Test(ptx_cfg, guarded_exit_keeps_the_post_dominator)
{
	struct ptx_module *m = body(".reg .pred p; .reg .b32 r;\n"
		"@p bra A; @p exit; mov.u32 r, 1; A: mov.u32 r, 2; ret;\n"
		"L: bra L;");
	const struct ptx_cfg *g = cfg(m);
	uint32_t a = g->block_of[3], l = g->block_of[5];

	cr_expect_eq(g->block[0].ipdom, a);
	cr_expect_eq(g->block[l].loop, l);
	cr_expect_eq(g->block[l].order, g->nblock - 1, "unreachable code comes last");
	ptx_free(m);
}

/* Natural loops of random graphs, reducible or not: the blocks of a loop are contiguous in the
 * order, beginning with the header. */
static void check_loops(const struct ptx_func *f)
{
	const struct ptx_cfg *g = f->cfg;
	bool *in = calloc(g->nblock, sizeof *in), *reached = calloc(g->nblock, sizeof *reached);

	reached[0] = true;
	for (uint32_t k = 0; k < g->nblock; k++)
		for (uint32_t s = 0; s < g->block[g->order[k]].nsucc && reached[g->order[k]]; s++)
			reached[g->block[g->order[k]].succ[s]] = true;
	for (uint32_t u = 0; u < g->nblock; u++) {
		for (uint32_t s = 0; s < g->block[u].nsucc; s++) {
			uint32_t h = g->block[u].succ[s], lo = g->block[h].order, hi;
			bool more = true;

			if (lo > g->block[u].order || !reached[u])
				continue;
			/* u reaches h and h reaches u: search backwards from u, within the blocks
			 * that follow h */
			memset(in, 0, g->nblock * sizeof *in);
			in[u] = in[h] = true;
			while (more) {
				more = false;
				for (uint32_t b = 0; b < g->nblock; b++)
					for (uint32_t k = 0; k < g->block[b].nsucc
							&& !in[b] && reached[b]; k++) {
						uint32_t to = g->block[b].succ[k];

						if (in[to] && to != h && g->block[b].order > lo)
							more = in[b] = true;
					}
			}
			hi = lo;
			for (uint32_t k = lo; k < g->nblock; k++)
				if (in[g->order[k]])
					hi = k;
			for (uint32_t k = lo; k <= hi; k++) {
				uint32_t b = g->order[k];

				/* in the loop, or in one that shares the header */
				cr_assert(g->block[b].loop != UINT32_MAX, "block %u is in no loop",
					b);
				cr_assert(g->block[g->block[b].loop].order >= lo);
			}
		}
	}
	free(in);
	free(reached);
}

Test(ptx_cfg, random_graphs)
{
	for (int round = 0; round < 300; round++) {
		uint32_t n = 2 + draw(14);
		struct text t = { 0 };
		struct ptx_module *m;

		text_printf(&t, ".reg .pred p; .reg .b32 r;\n");
		for (uint32_t k = 0; k < n; k++) {
			text_printf(&t, "L%u: mov.u32 r, %u;\n", k, k);
			if (draw(3))
				text_printf(&t, "@p bra L%u;\n", draw(n));
			if (!draw(4))
				text_printf(&t, draw(3) ? "bra L%u;\n" : "exit; // %u\n", draw(n));
		}
		m = body(t.at); /* verifies that the order is one */
		check_loops(&m->func[0]);
		ptx_free(m);
		text_free(&t);
	}
}

/* ---- what a load reads, what a store writes ---- */

static bool flag_at(const char *text, size_t k)
{
	struct ptx_module *m = body(text);
	bool is = ptx_reads_flag(&m->func[0], &m->func[0].insn[k]);

	ptx_free(m);
	return is;
}

Test(ptx_flag, polled_or_only_decides_a_branch)
{
#define REGS ".reg .pred p; .reg .b32 v, w, i; .reg .b64 a;\n"
	/* polled, although the value is stored as well; the first iteration may stand before the loop */
	cr_expect(flag_at(REGS "L: ld.volatile.global.u32 v, [a]; setp.eq.u32 p, v, 0; @p bra L;"
		"st.global.u32 [a+8], v;", 0));
	cr_expect(flag_at(REGS "ld.volatile.global.u32 v, [a]; setp.ne.u32 p, v, 0; @p bra M;"
		"L: ld.volatile.global.u32 v, [a]; setp.eq.u32 p, v, 0; @p bra L;"
		"M: st.global.u32 [a+8], v;", 0));
	/* a vote passes the value on to other threads' branches */
	cr_expect(flag_at(REGS "ld.volatile.global.u32 v, [a]; setp.eq.u32 p, v, 0;"
		"vote.sync.any.pred p, p, -1; @p exit;", 0));
	cr_expect(flag_at(REGS "ld.volatile.global.u32 v, [a]; and.b32 w, v, 1; setp.eq.u32 p, w, 0;"
		"@p exit;", 0));
	/* data: stored, used as an address, or of another address in each iteration */
	cr_expect_not(flag_at(REGS "ld.volatile.global.u32 v, [a]; add.u32 v, v, 1;"
		"st.volatile.global.u32 [a], v;", 0));
	cr_expect_not(flag_at(REGS "ld.volatile.global.u32 v, [a]; cvt.u64.u32 a, v;"
		"ld.global.u32 w, [a];", 0));
	cr_expect_not(flag_at(REGS "L: ld.volatile.global.u32 v, [a]; add.u64 a, a, 4; add.u32 w, w, v;"
		"setp.lt.u32 p, v, 9; @p bra L; st.global.u32 [a], w;", 0));
#undef REGS
}

/* The stored value as a number, by the last statement; 0: not known. *kind: for whom. */
static uint64_t stored_value(const char *text, enum site_constant *kind)
{
	struct ptx_module *m = body(text);
	const struct ptx_func *f = &m->func[0];
	uint64_t value = 0;
	size_t last = 0;

	for (size_t n = 0; n < f->ninsn; n++)
		if (f->insn[n].op == OP_st)
			last = n;
	*kind = ptx_stores_constant(f, &f->insn[last], &value);
	ptx_free(m);
	return *kind ? value : 0;
}

Test(ptx_constant, of_a_store)
{
#define REGS ".reg .b64 a; .reg .b32 v, w; .reg .pred p;\n"
	static const struct { const char *text; enum site_constant kind; } all[] = {
		{ REGS "st.global.u32 [a], 7;", CONSTANT_IN_GRID },
		{ REGS "mov.u32 v, 3; st.global.u32 [a], v;", CONSTANT_IN_GRID },
		{ REGS "mov.u32 v, 3; mov.u32 v, 4; st.global.u32 [a], v;", CONSTANT_NOT },
		{ REGS "mov.u32 v, %tid.x; st.global.u32 [a], v;", CONSTANT_NOT },
		{ REGS "mov.u32 v, %ntid.x; mul.lo.u32 w, v, 2; st.global.u32 [a], w;", CONSTANT_IN_GRID },
		{ REGS "mov.u32 v, %ctaid.x; mul.lo.u32 w, v, 2; st.global.u32 [a], w;", CONSTANT_IN_CTA },
		{ REGS "mov.u32 v, %laneid; mul.lo.u32 w, v, 2; st.global.u32 [a], w;", CONSTANT_NOT },
		{ REGS "@p mov.u32 v, 3; st.global.u32 [a], v;", CONSTANT_NOT },
		{ REGS "add.u32 v, v, 1; st.global.u32 [a], v;", CONSTANT_NOT },
		{ REGS "ld.global.u32 v, [a]; st.global.u32 [a], v;", CONSTANT_NOT },
		{ REGS "activemask.b32 v; st.global.u32 [a], v;", CONSTANT_NOT },
	};
	static const struct { const char *one, *other; bool same; } pair[] = {
		{ REGS "st.global.u32 [a], 7;", REGS "mov.u32 v, 7; st.global.u32 [a], v;", true },
		{ REGS "st.global.u32 [a], 7;", REGS "mov.u32 v, 8; st.global.u32 [a], v;", false },
		{ REGS "mov.u32 v, %ntid.x; add.u32 w, v, 1; st.global.u32 [a], w;",
			REGS "mov.u32 w, %ntid.x; add.u32 v, w, 1; st.global.u32 [a+4], v;", true },
		{ REGS "mov.u32 v, %ntid.x; add.u32 w, v, 1; st.global.u32 [a], w;",
			REGS "mov.u32 v, %ntid.y; add.u32 w, v, 1; st.global.u32 [a], w;", false },
		{ REGS "mov.u32 v, %ntid.x; add.u32 w, v, 1; st.global.u32 [a], w;",
			REGS "mov.u32 v, %ntid.x; sub.u32 w, v, 1; st.global.u32 [a], w;", false },
		{ REGS "mov.u32 v, %ntid.x; shr.u32 w, v, 1; st.global.u32 [a], w;",
			REGS "mov.u32 v, %ntid.x; shr.s32 w, v, 1; st.global.u32 [a], w;", false },
	};

	enum site_constant kind;

	for (size_t k = 0; k < ARRAY_SIZE(all); k++) {
		stored_value(all[k].text, &kind);
		cr_expect_eq(kind, all[k].kind, "%s: %d", all[k].text, kind);
	}
	for (size_t k = 0; k < ARRAY_SIZE(pair); k++)
		cr_expect_eq(stored_value(pair[k].one, &kind) == stored_value(pair[k].other, &kind),
			pair[k].same, "%s and %s", pair[k].one, pair[k].other);
#undef REGS
}
