/* chunk: see chunk.h. */
#include "chunk.h"

#include "instrument/record/record.h"

void chunk_sync_with_leader(struct text *t, const struct hook *h)
{
	if (h->drains && !h->pending)
		text_printf(t, "\tbar.warp.sync %s;\n", h->lanes);
}

/* ---- what --gpu-drain adds ---- */

/* Counts up the marks of the chunks of the lanes for which the predicate `who` holds: no lane
 * writes into these chunks any more. The other lanes of a record wrote their part before they
 * last synchronized with the leader, so the leader's release covers it. It is a release at
 * system scope, as a copy engine reads the chunk. */
static void close_chunk(struct text *t, const struct hook *h, const char *who)
{
	text_printf(t,
		"\tadd.u32 %%cs_u, %%cs_pos, %u;\n"
		"\tshr.u32 %%cs_u, %%cs_u, 8;\n"
		"\tld.const.u64 %%cs_e, [" RECORD_VARIABLE "%u+16];\n"
		"\tmad.wide.u32 %%cs_e, %%cs_u, 4, %%cs_e;\n"
		"\t@%s red.release.sys.global.add.u32 [%%cs_e+%u], 1;\n",
		RECORD_CHUNK_UNITS - 1, h->module, who, RECORD_MARKS_AT);
}

/* The record of an exit is in the leader's chunk, so the leader counts up its mark last: a
 * reader that sees it has seen the marks of the other lanes. */
void chunk_close_all(struct text *t, const struct hook *h)
{
	text_printf(t, "\tsetp.ne.and.u32 %%cs_q, %%cs_pos, 0, !%%cs_lead;\n");
	close_chunk(t, h, "%cs_q");
	text_printf(t, "\tbar.warp.sync %s;\n", h->lanes);
	close_chunk(t, h, "%cs_lead");
}

/* The number drawn (cs_t) is beyond the pool's chunks (cs_u): takes a chunk that the host has
 * recycled, waiting until there is one, for as many cycles from the record's clock as the head
 * allows. While wgmma is pending there must be no loop: the ring entry is exchanged once, and
 * if it is empty the number drawn stays in it, so that the host recycles no chunk for it. */
static void take_recycled(struct text *t, const struct hook *h)
{
	text_printf(t,
		"\t{ .reg .b32 %%cs_a, %%cs_x, %%cs_y; .reg .b64 %%cs_f;\n"
		"\tsub.u32 %%cs_y, %%cs_t, %%cs_u;\n"
		"\tand.b32 %%cs_t, %%cs_y, %u;\n"
		"\tld.const.u64 %%cs_e, [" RECORD_VARIABLE "%u+16];\n"
		"\tmad.wide.u32 %%cs_e, %%cs_t, 8, %%cs_e;\n", RECORD_RING - 1, h->module);
	if (h->pending)
		text_printf(t,
			"\tmov.b32 %%cs_a, -1;\n"
			"\tmov.b64 %%cs_f, {%%cs_y, %%cs_a};\n"
			"\tatom.relaxed.sys.global.exch.b64 %%cs_f, [%%cs_e], %%cs_f;\n");
	else
		text_printf(t,
			"$CSW%u:\n"
			"\tld.relaxed.sys.global.b64 %%cs_f, [%%cs_e];\n", h->label);
	text_printf(t,
		"\tmov.b64 {%%cs_a, %%cs_t}, %%cs_f;\n"
		"\tsetp.eq.u32 %%cs_q, %%cs_a, %%cs_y;\n"
		"\t@%%cs_q bra $CSG%u;\n", h->label);
	if (!h->pending)
		text_printf(t,
			"\tld.relaxed.sys.global.b32 %%cs_a, [%%cs_d+12];\n"
			"\tmov.u32 %%cs_x, %%clock;\n"
			"\tsub.u32 %%cs_x, %%cs_x, %%cs_c;\n"
			"\tsetp.lt.u32 %%cs_q, %%cs_x, %%cs_a;\n"
			"\t@%%cs_q nanosleep.u32 1000;\n"
			"\t@%%cs_q bra $CSW%u;\n"
			"\tst.relaxed.sys.global.b32 [%%cs_d+12], 0;\n", h->label);
	text_printf(t, "\t}\n");
}

/* Makes the number drawn, cs_t, that of a chunk. */
static void use_draw(struct text *t, const struct hook *h)
{
	text_printf(t, "\tsetp.ne.u32 %%cs_q, %%cs_pos, 0;\n");
	close_chunk(t, h, "%cs_q");
	text_printf(t,
		"\tld.const.u32 %%cs_u, [" RECORD_VARIABLE "%u+8];\n"
		"\tsetp.le.u32 %%cs_q, %%cs_t, %%cs_u;\n"
		"\t@%%cs_q bra $CSG%u;\n", h->module, h->label);
	take_recycled(t, h);
	text_printf(t,
		"\tadd.u32 %%cs_t, %%cs_u, 1;\n"
		"$CSG%u:\n"
		"\tsetp.gt.u32 %%cs_q, %%cs_t, %%cs_u;\n", h->label);
}

/* If the chunk taken is the one for dropped records (cs_q), marks the records of this CTA as
 * incomplete: bit cs_y at cs_x of the pool. With draining, draws are counted on; else the counter is
 * put back, so that its 32 bits do not overflow: by the same addition that counts the dropped draw. */
static void mark_incomplete(struct text *t, const struct hook *h)
{
	text_printf(t, "\tmov.b64 %%cs_h, %s;\n"
		"\t@%%cs_q red.global.add.u64 [%%cs_d], %%cs_h;\n"
		"\tmad.wide.u32 %%cs_f, %%cs_x, 1, %%cs_d;\n"
		"\t@%%cs_q red.global.or.b32 [%%cs_f], %%cs_y;\n",
		h->drains ? "0x100000000" : "0xffffffff");
}

/* Sets cs_a to the CTA in the grid, cs_b to the warp in the CTA and the lane, and cs_x and cs_y to where
 * in the pool which bit marks the records of this CTA as incomplete. */
static void chunk_head(struct text *t)
{
	text_printf(t,
		"\tmov.u32 %%cs_a, %%ctaid.z; mov.u32 %%cs_b, %%nctaid.y; mov.u32 %%cs_x, %%ctaid.y;\n"
		"\tmad.lo.u32 %%cs_a, %%cs_a, %%cs_b, %%cs_x;\n"
		"\tmov.u32 %%cs_b, %%nctaid.x; mov.u32 %%cs_x, %%ctaid.x;\n"
		"\tmad.lo.u32 %%cs_a, %%cs_a, %%cs_b, %%cs_x;\n"
		"\tmov.u32 %%cs_b, %%tid.z; mov.u32 %%cs_x, %%ntid.y; mov.u32 %%cs_y, %%tid.y;\n"
		"\tmad.lo.u32 %%cs_b, %%cs_b, %%cs_x, %%cs_y;\n"
		"\tmov.u32 %%cs_x, %%ntid.x; mov.u32 %%cs_y, %%tid.x;\n"
		"\tmad.lo.u32 %%cs_b, %%cs_b, %%cs_x, %%cs_y;\n"
		"\tand.b32 %%cs_x, %%cs_a, 31;\n\tmov.b32 %%cs_y, 1;\n"
		"\tshl.b32 %%cs_y, %%cs_y, %%cs_x;\n"
		"\tbfe.u32 %%cs_x, %%cs_a, 5, %u;\n"
		"\tmad.lo.u32 %%cs_x, %%cs_x, 4, %u;\n",
		RECORD_INCOMPLETE_BITS - 5, RECORD_INCOMPLETE_AT);
}

/* Makes this lane take a new chunk, whose clock is that of the record, as it must not be later. The address that
 * it adds to has a register of the lane, as ptxas would add up what the lanes of a warp add to the same address. */
static void take_chunk(struct text *t, const struct hook *h)
{
	text_printf(t, "\t{ .reg .b32 %%cs_a, %%cs_b, %%cs_x, %%cs_y; .reg .b64 %%cs_f, %%cs_h;\n");
	hook_zero_here(t, h);
	text_printf(t,
		"\tld.const.u64 %%cs_d, [" RECORD_VARIABLE "%u];\n"
		"\tmad.wide.u32 %%cs_d, %%cs_zero, 1, %%cs_d;\n"
		"\tatom.global.add.u32 %%cs_t, [%%cs_d], 1;\n", h->module);
	if (h->drains)
		use_draw(t, h);
	else
		text_printf(t,
			"\tld.const.u32 %%cs_u, [" RECORD_VARIABLE "%u+8];\n"
			"\tsetp.gt.u32 %%cs_q, %%cs_t, %%cs_u;\n"
			"\tadd.u32 %%cs_u, %%cs_u, 1;\n"
			"\tmin.u32 %%cs_t, %%cs_t, %%cs_u;\n", h->module);
	text_printf(t, "\tshl.b32 %%cs_pos, %%cs_t, 8;\n");
	chunk_head(t);
	text_printf(t,
		"\tmad.wide.u32 %%cs_f, %%cs_pos, 16, %%cs_d;\n"
		"\tst.global.v4.b32 [%%cs_f], {%%cs_a, %%cs_b, %%cs_c, %%cs_era};\n");
	mark_incomplete(t, h);
	text_printf(t, "\t}\n\tadd.u32 %%cs_pos, %%cs_pos, 1;\n");
}

/* Records have the low half of the clock, which a reader extends from one to the next. So a chunk ends when the
 * high half changes, and begins with the whole clock: a warp may wait for longer than the low half counts, two
 * seconds. A position that is a multiple of a chunk's units has none left. The clock is read before the leader
 * may wait for a chunk: the recorded operation did not happen after operations that others did meanwhile. */
void chunk_reserve(struct text *t, const struct hook *h)
{
	text_printf(t,
		"\tmov.u64 %%cs_e, %%clock64;\n\tmov.b64 {%%cs_c, %%cs_u}, %%cs_e;\n"
		"\tsetp.ne.u32 %%cs_q, %%cs_u, %%cs_era;\n"
		"\t@%%cs_lead mov.b32 %%cs_era, %%cs_u;\n"
		"\tadd.u32 %%cs_t, %%cs_pos, -1;\n"
		"\tand.b32 %%cs_t, %%cs_t, %u;\n"
		"\tadd.u32 %%cs_t, %%cs_t, %%cs_n;\n"
		"\tsetp.gt.or.u32 %%cs_q, %%cs_t, %u, %%cs_q;\n"
		"\tand.pred %%cs_q, %%cs_q, %%cs_lead;\n"
		"\t@!%%cs_q bra $CSR%u;\n",
		RECORD_CHUNK_UNITS - 1, RECORD_CHUNK_UNITS - 1 - h->reserve, h->label);
	take_chunk(t, h);
	text_printf(t, "$CSR%u:\n", h->label);
	chunk_sync_with_leader(t, h);
}
