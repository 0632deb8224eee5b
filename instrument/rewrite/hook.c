/* hook: prints the PTX that writes one record (record.h). The code uses few registers and no shared
 * memory. The active lanes write one record together; the lowest of them, the leader, allocates its
 * space and writes the first unit.
 *
 * The code is in functions, one for all records that are alike: the time that ptxas takes grows faster
 * than the code. ptxas knows all of their calls, so it has no calling convention to keep and chooses
 * their registers as for the code around them. But it serializes wgmma if a call may be executed while
 * one is in flight; there the code is in place (inflight.h), and also where lanes may come before others
 * of their warp (ends_divergence() in statement.c).
 *
 * Registers of a hook: %cs_site, in a function, the site's part of word 0, %cs_m the active mask, %cs_i the lane,
 * %cs_l the leader's lane, %cs_lead whether this lane is the leader, %cs_d the pool, %cs_c the clock, %cs_k the
 * ticket or the leader's address, %cs_s word 0, %cs_n the record's units, %cs_all whether the record is affine,
 * %cs_v<k> the words of this lane, %cs_lanes, in a function, the lanes of the record, %cs_h what the record stores,
 * %cs_o the hash of this lane's value, %cs_same whether all lanes have it, %cs_together the lanes that execute the
 * statement. %cs_q, %cs_t, %cs_u and %cs_e are temporaries. */
#include "hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "instrument/record/record.h"
#include "calls.h"
#include "chunk.h"

/* The state of a lane: %cs_pos, the unit of the pool where its next record begins; %cs_era, the high half of
 * the clock when it last took space for one; %cs_failed, %cs_polled and %cs_seen, of polls. In local
 * memory: pos, failed, polled, era, seen. */
#define STATE_BYTES 32

/* Of the functions that write records. */
#define NAME "consan_record_"

void hook_save_state(struct text *t, bool polls)
{
	text_printf(t, "\tst.local.v2.b32 [%%cs_at], {%%cs_pos, %%cs_failed};\n"
		"\tst.local.b32 [%%cs_at+12], %%cs_era;\n");
	if (polls)
		text_printf(t, "\tst.local.b32 [%%cs_at+8], %%cs_polled;\n"
			"\tst.local.b64 [%%cs_at+16], %%cs_seen;\n");
}

void hook_load_state(struct text *t, bool polls)
{
	text_printf(t, "\tld.local.v2.b32 {%%cs_pos, %%cs_failed}, [%%cs_at];\n"
		"\tld.local.b32 %%cs_era, [%%cs_at+12];\n");
	if (polls)
		text_printf(t, "\tld.local.b32 %%cs_polled, [%%cs_at+8];\n"
			"\tld.local.b64 %%cs_seen, [%%cs_at+16];\n");
}

void hook_forget_ticket(struct text *t)
{
	text_printf(t, "\tmov.b32 %%cs_ticket, %%cs_zero;\n");
}

void hook_zero(struct text *t)
{
	text_printf(t, "\tmov.u32 %%cs_zero, %%lanemask_lt;\n\tshr.u32 %%cs_zero, %%cs_zero, 31;\n");
}

void hook_zero_here(struct text *t, const struct hook *h)
{
	if (!h->in_place)
		text_printf(t, "\tshr.u32 %%cs_zero, %%cs_era, 31;\n");
}

void hook_function(struct text *t, unsigned batch_words, bool polls, enum hook_state state)
{
	text_printf(t, "\n\t.reg .b32 %%cs_pos, %%cs_era, %%cs_ticket, %%cs_failed, %%cs_zero;\n");
	hook_zero(t);
	hook_forget_ticket(t);
	if (polls)
		text_printf(t, "\t.reg .b32 %%cs_polled;\n\t.reg .b64 %%cs_seen;\n");
	if (state != STATE_PRIVATE)
		text_printf(t, "\t.reg .b64 %%cs_at;\n");
	if (state == STATE_PASSED) {
		text_printf(t, "\tld.param.b64 %%cs_at, [" CALLS_PARAM "];\n");
		hook_load_state(t, polls);
	} else {
		text_printf(t, "\tmov.b32 %%cs_pos, 0;\n\tmov.b32 %%cs_era, 0;\n\tmov.b32 %%cs_failed, 0;\n");
		if (polls)
			text_printf(t, "\tmov.b32 %%cs_polled, 0;\n\tmov.b64 %%cs_seen, 0;\n");
	}
	if (state == STATE_OWNED)
		text_printf(t, "\t.local .align 16 .b8 " CALLS_PARAM "[%u];\n"
			"\tmov.b64 %%cs_at, " CALLS_PARAM ";\n\tst.local.b32 [%%cs_at+8], 0;\n",
			STATE_BYTES);
	if (batch_words)
		text_printf(t, "\t.reg .b32 %%cs_w<%u>;\n", batch_words);
}

void hook_registers(struct text *t, unsigned words)
{
	text_printf(t, "\t.reg .b32 %%cs_m, %%cs_l, %%cs_i, %%cs_t, %%cs_u, %%cs_n, %%cs_c, "
		"%%cs_k, %%cs_s, %%cs_h, %%cs_o, %%cs_together;\n"
		"\t.reg .pred %%cs_lead, %%cs_all, %%cs_q, %%cs_g, %%cs_same;\n\t.reg .b64 %%cs_d, %%cs_e;\n");
	if (words)
		text_printf(t, "\t.reg .b32 %%cs_v<%u>;\n", words);
}

/* Sets cs_e to the address of a unit of the pool, of which the module's number follows. */
#define UNIT_ADDRESS(unit) "\tld.const.u64 %%cs_e, [" RECORD_VARIABLE "%u];\n" \
	"\tmad.wide.u32 %%cs_e, " unit ", 16, %%cs_e;\n"

/* Without a pool nothing is recorded. */
static void skip_without_pool(struct text *t, const struct hook *h)
{
	if (!h->always)
		text_printf(t, "\tld.const.u64 %%cs_d, [" RECORD_VARIABLE "%u];\n"
			"\tsetp.eq.u64 %%cs_q, %%cs_d, 0;\n\t@%%cs_q bra $CSZ%u;\n", h->module, h->label);
}

static void find_leader(struct text *t)
{
	text_printf(t,
		"\tbrev.b32 %%cs_t, %%cs_m;\n"
		"\tclz.b32 %%cs_l, %%cs_t;\n"
		"\tmov.u32 %%cs_i, %%laneid;\n"
		"\tsetp.eq.u32 %%cs_lead, %%cs_l, %%cs_i;\n");
}

/* The record's ticket, if the launch uses tickets: a new one, or the last one of the leader (ticket.h). In place
 * there is a fence that is never executed. It makes ptxas keep the atomic, whose result nothing else needs, before
 * the statement that follows. An instruction that ends the thread would do the same, but between a wgmma and its
 * wait ptxas would have to wait for the wgmma before it, and would serialize wgmma. The atomic's address has a register
 * of the lane, as in take_chunk(). */
static void ticket(struct text *t, const struct hook *h)
{
	text_printf(t,
		"\tmov.b32 %%cs_k, %s;\n"
		"\tld.const.u32 %%cs_t, [" RECORD_VARIABLE "%u+12];\n"
		"\tsetp.ne.and.u32 %%cs_q, %%cs_t, 0, %%cs_lead;\n", h->earlier ? "%cs_ticket" : "0", h->module);
	if (h->earlier)
		text_printf(t, "\tsetp.eq.and.u32 %%cs_q, %%cs_k, 0, %%cs_q;\n");
	hook_zero_here(t, h);
	text_printf(t,
		"\tld.const.u64 %%cs_e, [" RECORD_VARIABLE "%u+24];\n"
		"\tmad.wide.u32 %%cs_e, %%cs_zero, 1, %%cs_e;\n"
		"\t@%%cs_q atom.relaxed.sys.global.add.u32 %%cs_k, [%%cs_e], 1;\n"
		"\t@%%cs_q mov.b32 %%cs_ticket, %%cs_k;\n", h->module);
	if (h->in_place)
		text_printf(t, "\tsetp.eq.and.u32 %%cs_q, %%cs_k, -1, %%cs_q;\n"
		"\t@%%cs_q fence.acq_rel.cta;\n");
}

/* Writes the first unit; cs_s is word 0. */
static void header(struct text *t, const struct hook *h)
{
	text_printf(t, UNIT_ADDRESS("%%cs_pos")
		"\t@%%cs_lead st.global.v4.b32 [%%cs_e], {%%cs_s, %s, %%cs_c, %%cs_k};\n", h->module, h->lanes);
}

/* Do all lanes agree with leader + stride * distance? */
static void begin_address(struct text *t, const struct hook *h)
{
	const unsigned value = h->conflict.words ? 1 : 0; /* units */

	if (value)
		conflict_hash(t, &h->conflict, 1);
	text_printf(t,
		"\tshfl.sync.idx.b32 %%cs_k, %%cs_v0, %%cs_l, 31, %%cs_m;\n"
		"\tshr.u32 %%cs_t, %%cs_m, %%cs_l;\n"
		"\tbfe.u32 %%cs_t, %%cs_t, 1, 1;\n"
		"\tadd.u32 %%cs_u, %%cs_l, %%cs_t;\n"
		"\tshfl.sync.idx.b32 %%cs_s, %%cs_v0, %%cs_u, 31, %%cs_m;\n"
		"\tsub.u32 %%cs_s, %%cs_s, %%cs_k;\n"
		"\tsub.u32 %%cs_t, %%cs_i, %%cs_l;\n"
		"\tmad.lo.u32 %%cs_u, %%cs_t, %%cs_s, %%cs_k;\n"
		"\tadd.u32 %%cs_s, %%cs_s, %d;\n"
		"\tsetp.lt.u32 %%cs_q, %%cs_s, %d;\n"
		"\tsetp.eq.and.u32 %%cs_q, %%cs_u, %%cs_v0, %%cs_q;\n"
		"\tvote.sync.all.pred %%cs_all, %%cs_q, %%cs_m;\n",
		RECORD_STRIDE_BIAS, 2 * RECORD_STRIDE_BIAS);
	if (value)
		conflict_same_address(t);
	text_printf(t, "\tselp.b32 %%cs_n, %u, %u, %%cs_all;\n"
		"\tor.b32 %%cs_s, %%cs_s, %u;\n"
		"\tselp.b32 %%cs_s, %%cs_s, 0, %%cs_all;\n"
		"\tadd.u32 %%cs_s, %%cs_s, %s;\n", 1 + value, 9 + value, RECORD_AFFINE, h->word);
}

static void begin_address_alone(struct text *t, const struct hook *h)
{
	if (h->conflict.words)
		conflict_hash_alone(t, &h->conflict, 1);
	text_printf(t, "\tmov.b32 %%cs_k, %%cs_v0;\n\tmov.b32 %%cs_n, %u;\n\tadd.u32 %%cs_s, %s, %u;\n",
		h->conflict.words ? 2 : 1, h->word, RECORD_AFFINE | RECORD_STRIDE_BIAS);
}

static void end_address(struct text *t, const struct hook *h)
{
	chunk_reserve(t, h);
	header(t, h);
	if (h->conflict.words)
		text_printf(t, "\tand.pred %%cs_q, %%cs_lead, %%cs_all;\n"
			"\t@%%cs_q st.global.b32 [%%cs_e+16], %%cs_h;\n");
	text_printf(t, "\t@%%cs_all bra $CSA%u;\n", h->label);
	if (h->conflict.words) {
		conflict_lanes(t);
		text_printf(t, "\t@%%cs_lead st.global.b32 [%%cs_e+12], %%cs_u;\n"
			"\t@%%cs_lead st.global.b32 [%%cs_e+144], %%cs_h;\n");
	}
	text_printf(t,
		"\tshfl.sync.idx.b32 %%cs_t, %%cs_pos, %%cs_l, 31, %%cs_m;\n"
		UNIT_ADDRESS("%%cs_t")
		"\tmad.wide.u32 %%cs_e, %%cs_i, 4, %%cs_e;\n"
		"\tst.global.b32 [%%cs_e+16], %%cs_v0;\n", h->module);
	chunk_sync_with_leader(t, h);
	text_printf(t, "$CSA%u:\n", h->label);
}

/* Takes the leader's address, s from the next lane, then t from the first lane that does not
 * have the address that s alone gives. The record is affine if all lanes agree with these. */
static void begin_global(struct text *t, const struct hook *h)
{
	if (h->conflict.words)
		conflict_hash(t, &h->conflict, 2);
	text_printf(t,
		"\tshfl.sync.idx.b32 %%cs_k, %%cs_v0, %%cs_l, 31, %%cs_m;\n"
		"\tshfl.sync.idx.b32 %%cs_a, %%cs_v1, %%cs_l, 31, %%cs_m;\n"
		"\tadd.u32 %%cs_t, %%cs_l, 1;\n"
		"\tand.b32 %%cs_t, %%cs_t, 31;\n"
		"\tshfl.sync.idx.b32 %%cs_x, %%cs_v0, %%cs_t, 31, %%cs_m;\n"
		"\tsub.u32 %%cs_x, %%cs_x, %%cs_k;\n"
		"\tsub.u32 %%cs_t, %%cs_i, %%cs_l;\n"
		"\tmad.lo.u32 %%cs_u, %%cs_t, %%cs_x, %%cs_k;\n"
		"\tsetp.ne.u32 %%cs_q, %%cs_u, %%cs_v0;\n"
		"\tvote.sync.ballot.b32 %%cs_u, %%cs_q, %%cs_m;\n"
		/* k: log2 of the distance of that first lane, rounded down */
		"\tbrev.b32 %%cs_z, %%cs_u;\n"
		"\tclz.b32 %%cs_z, %%cs_z;\n"
		"\tsub.u32 %%cs_z, %%cs_z, %%cs_l;\n"
		"\tsetp.eq.u32 %%cs_q, %%cs_u, 0;\n"
		"\tselp.b32 %%cs_z, 32, %%cs_z, %%cs_q;\n"
		"\tclz.b32 %%cs_z, %%cs_z;\n"
		"\tsub.u32 %%cs_z, 31, %%cs_z;\n"
		"\tshl.b32 %%cs_u, 1, %%cs_z;\n"
		"\tadd.u32 %%cs_b, %%cs_l, %%cs_u;\n"
		"\tand.b32 %%cs_b, %%cs_b, 31;\n"
		"\tshfl.sync.idx.b32 %%cs_y, %%cs_v0, %%cs_b, 31, %%cs_m;\n"
		"\tsub.u32 %%cs_y, %%cs_y, %%cs_k;\n"
		"\tadd.u32 %%cs_u, %%cs_u, -1;\n"
		"\tand.b32 %%cs_u, %%cs_u, %%cs_t;\n"
		"\tmad.lo.u32 %%cs_u, %%cs_u, %%cs_x, %%cs_k;\n"
		"\tshr.u32 %%cs_t, %%cs_t, %%cs_z;\n"
		"\tmad.lo.u32 %%cs_u, %%cs_t, %%cs_y, %%cs_u;\n"
		"\tsetp.eq.u32 %%cs_q, %%cs_u, %%cs_v0;\n"
		"\tsetp.eq.and.u32 %%cs_q, %%cs_a, %%cs_v1, %%cs_q;\n"
		"\tvote.sync.all.pred %%cs_all, %%cs_q, %%cs_m;\n");
	if (h->conflict.words)
		conflict_global(t, h->label);
	text_printf(t, "\tselp.b32 %%cs_n, 2, %u, %%cs_all;\n"
		"\tselp.b32 %%cs_s, %u, 0, %%cs_all;\n"
		"\tadd.u32 %%cs_s, %%cs_s, %s;\n", h->conflict.words ? 18 : 17, RECORD_AFFINE, h->word);
}

static void begin_global_alone(struct text *t, const struct hook *h)
{
	if (h->conflict.words)
		conflict_hash_alone(t, &h->conflict, 2);
	text_printf(t, "\tmov.b32 %%cs_k, %%cs_v0;\n\tmov.b32 %%cs_a, %%cs_v1;\n"
		"\tmov.b32 %%cs_x, 0;\n\tmov.b32 %%cs_y, 0;\n\tmov.b32 %%cs_z, 5;\n"
		"\tmov.b32 %%cs_n, 2;\n\tadd.u32 %%cs_s, %s, %u;\n", h->word, RECORD_AFFINE);
}

static void end_global(struct text *t, const struct hook *h)
{
	chunk_reserve(t, h);
	header(t, h);
	if (h->conflict.words)
		text_printf(t, "\tshl.b32 %%cs_t, %%cs_h, %u;\n\tor.b32 %%cs_z, %%cs_z, %%cs_t;\n",
			RECORD_VALUE_SHIFT);
	text_printf(t,
		"\tand.pred %%cs_q, %%cs_lead, %%cs_all;\n"
		"\t@%%cs_q st.global.v4.b32 [%%cs_e+16], {%%cs_a, %%cs_x, %%cs_y, %%cs_z};\n"
		"\t@%%cs_all bra $CSA%u;\n", h->label);
	if (h->conflict.words)
		text_printf(t, "\t@%%cs_lead st.global.b32 [%%cs_e+12], %%cs_w;\n"
			"\t@%%cs_lead st.global.b32 [%%cs_e+272], %%cs_h;\n");
	text_printf(t,
		"\tshfl.sync.idx.b32 %%cs_t, %%cs_pos, %%cs_l, 31, %%cs_m;\n"
		UNIT_ADDRESS("%%cs_t")
		"\tmad.wide.u32 %%cs_e, %%cs_i, 8, %%cs_e;\n"
		"\tst.global.v2.b32 [%%cs_e+16], {%%cs_v0, %%cs_v1};\n", h->module);
	chunk_sync_with_leader(t, h);
	text_printf(t, "$CSA%u:\n", h->label);
}

/* Stores the words from cs_e + 16 on, several at a time. aligned: cs_e is that of a unit; else it is a multiple
 * of the size of all words. */
static void store_words(struct text *t, const struct hook *h, const char *guard, bool aligned)
{
	const unsigned most = aligned || h->words % 4 == 0 ? 4 : h->words % 2 == 0 ? 2 : 1;
	const char *p = h->prefix;

	for (unsigned k = 0, n; k < h->words; k += n) {
		for (n = most; n > h->words - k; n /= 2)
			;
		text_printf(t, "\t%sst.global%s.b32 [%%cs_e+%u], ", guard, n == 4 ? ".v4" : n == 2 ? ".v2" : "",
			16 + 4 * k);
		for (unsigned i = 0; i < n; i++)
			text_printf(t, "%s%s%u", i ? ", " : n > 1 ? "{" : "", p, k + i);
		text_printf(t, n > 1 ? "};\n" : ";\n");
	}
}

/* Sets word 3: the ticket, or 0. */
static void ticket_or_none(struct text *t, const struct hook *h)
{
	if (h->sync)
		ticket(t, h);
	else
		text_printf(t, "\tmov.b32 %%cs_k, 0;\n");
}

/* Of a record with the words of one lane. */
static unsigned units_of_one(const struct hook *h)
{
	return 1 + (h->words + 3) / 4;
}

static void begin_uniform(struct text *t, const struct hook *h)
{
	text_printf(t, "\tmov.b32 %%cs_n, %u;\n\tmov.b32 %%cs_s, %s;\n", units_of_one(h), h->word);
}

static void end_uniform(struct text *t, const struct hook *h)
{
	ticket_or_none(t, h);
	chunk_reserve(t, h);
	header(t, h);
	store_words(t, h, "@%cs_lead ", true);
}

/* cs_all: all lanes have the same words. Each instruction for which lanes wait for each other costs some 20 of the
 * machine, as a function may be executed by lanes that come apart, so two words are compared at once. */
static void compare_words(struct text *t, const struct hook *h)
{
	const char *p = h->prefix;

	for (unsigned k = 0; k < h->words; k += 2) {
		if (k + 1 < h->words)
			text_printf(t, "\tmov.b64 %%cs_e, {%s%u, %s%u};\n"
				"\tmatch.all.sync.b64 %%cs_t|%s, %%cs_e, %%cs_m;\n", p, k, p, k + 1,
				k ? "%cs_q" : "%cs_all");
		else
			text_printf(t, "\tmatch.all.sync.b32 %%cs_t|%s, %s%u, %%cs_m;\n",
				k ? "%cs_q" : "%cs_all", p, k);
		if (k)
			text_printf(t, "\tand.pred %%cs_all, %%cs_all, %%cs_q;\n");
	}
}

unsigned hook_lane_words(unsigned words)
{
	return words < 3 ? words : (words + 1) & ~1u;
}

/* Sets the record's units and word 0. If the lanes often have the same words (h->often_uniform), the leader's
 * words are recorded once where they are the same. */
static void begin_lanes(struct text *t, const struct hook *h)
{
	text_printf(t, "\tpopc.b32 %%cs_n, %%cs_m;\n\tmov.b32 %%cs_s, %s;\n", h->word);
	if (!h->often_uniform) {
		text_printf(t, "\tsetp.ne.u32 %%cs_all, 0, 0;\n");
	} else {
		compare_words(t, h);
		text_printf(t, "\tselp.b32 %%cs_n, 1, %%cs_n, %%cs_all;\n"
			"\t@%%cs_all add.u32 %%cs_s, %%cs_s, %u;\n", RECORD_AFFINE);
	}
	text_printf(t,
		"\tmad.lo.u32 %%cs_n, %%cs_n, %u, 31;\n"
		"\tshr.u32 %%cs_n, %%cs_n, 4;\n", 4 * h->words);
}

/* With AFFINE, as the words are those of all lanes that record together. */
static void begin_lanes_alone(struct text *t, const struct hook *h)
{
	text_printf(t, "\tmov.b32 %%cs_n, %u;\n\tadd.u32 %%cs_s, %s, %u;\n", units_of_one(h), h->word,
		RECORD_AFFINE);
}

static void end_lanes(struct text *t, const struct hook *h)
{
	const bool once = h->often_uniform || !h->in_place; /* may the leader's words be those of all? */

	ticket_or_none(t, h);
	chunk_reserve(t, h);
	header(t, h);
	if (once) {
		text_printf(t, "\tand.pred %%cs_q, %%cs_lead, %%cs_all;\n");
		store_words(t, h, "@%cs_q ", true);
		text_printf(t, "\t@%%cs_all bra $CSA%u;\n", h->label);
	}
	text_printf(t,
		"\tshfl.sync.idx.b32 %%cs_t, %%cs_pos, %%cs_l, 31, %%cs_m;\n"
		UNIT_ADDRESS("%%cs_t")
		"\tshl.b32 %%cs_t, 1, %%cs_i;\n"
		"\tadd.u32 %%cs_t, %%cs_t, -1;\n"
		"\tand.b32 %%cs_t, %%cs_t, %%cs_m;\n"
		"\tpopc.b32 %%cs_t, %%cs_t;\n"
		"\tmad.wide.u32 %%cs_e, %%cs_t, %u, %%cs_e;\n", h->module, 4 * h->words);
	store_words(t, h, "", false);
	chunk_sync_with_leader(t, h);
	if (once)
		text_printf(t, "$CSA%u:\n", h->label);
}

/* ---- records of any class ---- */

/* A record is begun with its size, cs_n, word 0, cs_s, the leader's address, cs_k, and what else its class needs:
 * by all lanes of cs_m together, or by each for itself, which is then its own leader and in cs_all. After both the
 * record is written by the same code. */
static const struct class {
	void (*begin)(struct text *t, const struct hook *h);
	void (*begin_alone)(struct text *t, const struct hook *h);
	void (*end)(struct text *t, const struct hook *h);
	const char *registers;
} class[] = {
	[PLAN_ADDRESS] = { begin_address, begin_address_alone, end_address, "" },
	[PLAN_GLOBAL] = { begin_global, begin_global_alone, end_global,
		"\t.reg .b32 %cs_a, %cs_b, %cs_w, %cs_x, %cs_y, %cs_z;\n" },
	[PLAN_LANES] = { begin_lanes, begin_lanes_alone, end_lanes, "" },
	[PLAN_UNIFORM] = { begin_uniform, begin_uniform, end_uniform, "" },
	[PLAN_NOTHING] = { begin_uniform, begin_uniform, end_uniform, "" },
};

static void begin_record(struct text *t, const struct hook *h)
{
	find_leader(t);
	class[h->class].begin(t, h);
}

static void end_record(struct text *t, const struct hook *h)
{
	class[h->class].end(t, h);
	text_printf(t, "\t@%%cs_lead add.u32 %%cs_pos, %%cs_pos, %%cs_n;\n");
	if (h->drains && h->exits)
		chunk_close_all(t, h);
}

static void record_in_place(struct text *t, const struct hook *h)
{
	skip_without_pool(t, h);
	text_printf(t, "\t{\n%s\tactivemask.b32 %%cs_m;\n", class[h->class].registers);
	begin_record(t, h);
	end_record(t, h);
	text_printf(t, "\t}\n");
	if (!h->always)
		text_printf(t, "$CSZ%u:\n", h->label);
}

/* ---- functions that write records ---- */

/* Lanes that came from different statements may execute a function together, as nothing forbids a GPU to do so:
 * seen on an H200 where one lane arrives at an mbarrier and then all lanes store. Then each lane makes a record of
 * its own, without what lanes do together: ptxas knows that an active mask is that of the lanes which execute what
 * follows, but not so of another mask, for which it adds code. One lane alone, as an elected one, needs no more. */
static void record_in_function(struct text *t, const struct hook *h)
{
	skip_without_pool(t, h);
	text_printf(t, "\t.reg .b32 %%cs_lanes;\n%s"
		"\tactivemask.b32 %%cs_m;\n\tmov.b32 %%cs_lanes, %%cs_m;\n", class[h->class].registers);
	if (h->elected)
		text_printf(t, "\tadd.u32 %%cs_t, %%cs_m, -1;\n\tand.b32 %%cs_t, %%cs_t, %%cs_m;\n"
			"\tsetp.eq.u32 %%cs_q, %%cs_t, 0;\n\t@%%cs_q bra $CSL%u;\n", h->label);
	text_printf(t, "\tmatch.all.sync.b32 %%cs_t|%%cs_q, %%cs_site, %%cs_m;\n"
		"\t@%%cs_q bra $CSO%u;\n"
		"$CSL%u:\n\tmov.u32 %%cs_i, %%laneid;\n\tshl.b32 %%cs_lanes, 1, %%cs_i;\n"
		"\tsetp.eq.u32 %%cs_lead, 0, 0;\n\tsetp.eq.u32 %%cs_all, 0, 0;\n", h->label, h->label);
	class[h->class].begin_alone(t, h);
	text_printf(t, "\tbra $CSB%u;\n$CSO%u:\n", h->label, h->label);
	begin_record(t, h);
	text_printf(t, "$CSB%u:\n", h->label);
	end_record(t, h);
	text_printf(t, "$CSZ%u:\n", h->label);
}

/* What a function gets and returns of the lane's recording state: the position and the era, and of one that
 * has a ticket also that. */
static void state_param(struct text *t, const char *name, const struct hook *h)
{
	text_printf(t, ".param .align 8 .b8 %s[%d]", name, h->sync ? 16 : 8);
}

static void store_state(struct text *t, const char *name, const struct hook *h, const char *ticket)
{
	text_printf(t, "\tst.param.v2.b32 [%s], {%%cs_pos, %%cs_era};\n", name);
	if (h->sync)
		text_printf(t, "\tst.param.b32 [%s+8], %s;\n", name, ticket);
}

static void load_state(struct text *t, const char *name, bool ticket)
{
	text_printf(t, "\tld.param.v2.b32 {%%cs_pos, %%cs_era}, [%s];\n", name);
	if (ticket)
		text_printf(t, "\tld.param.b32 %%cs_ticket, [%s+8];\n", name);
}

/* Without its name, so that functions that do the same have the same text. */
static void print_function(struct text *t, const struct hook *h)
{
	const unsigned words = h->words + h->conflict.words;

	text_printf(t, "(.param .b32 consan_site, ");
	state_param(t, "consan_state", h);
	for (unsigned k = 0; k < words; k++)
		text_printf(t, ", .param .b32 consan_v%u", k);
	text_printf(t, ")\n{\n\t.reg .b32 %%cs_pos, %%cs_era, %%cs_ticket, %%cs_zero, %%cs_site;\n");
	hook_registers(t, words);
	text_printf(t, "\tld.param.b32 %%cs_site, [consan_site];\n");
	load_state(t, "consan_state", h->sync);
	for (unsigned k = 0; k < words; k++)
		text_printf(t, "\tld.param.b32 %%cs_v%u, [consan_v%u];\n", k, k);
	record_in_function(t, h);
	store_state(t, "consan_next", h, "%cs_ticket");
	text_printf(t, "\tret;\n}\n");
}

/* All that print_function() depends on. Hooks with different keys may have the same function. */
static struct text key_of(const struct hook *h)
{
	struct text key = { 0 };

	text_printf(&key, "%d %u %u %d%d%d%d%d%d%d%d %u %u\n", (int)h->class, h->words, h->conflict.words,
		h->sync, h->earlier, h->elected, h->always, h->drains, h->exits, h->pending, h->often_uniform,
		h->reserve, h->module);
	if (h->conflict.words)
		conflict_hash(&key, &h->conflict, 1);
	return key;
}

static bool equal(const struct text *a, const struct text *b)
{
	return a->n == b->n && !memcmp(a->at, b->at, a->n);
}

static void free_code(struct hook_code *c)
{
	text_free(&c->returns);
	text_free(&c->text);
}

static size_t add_function(struct hook_functions *all, const struct hook *h)
{
	struct hook any = *h;
	struct hook_code c = { 0 };
	size_t k = 0;

	any.word = "%cs_site";
	any.prefix = "%cs_v";
	any.label = 0;
	state_param(&c.returns, "consan_next", h);
	print_function(&c.text, &any);
	while (k < all->n && !equal(&all->at[k].text, &c.text))
		k++;
	if (k < all->n)
		free_code(&c);
	else
		vec_push(all, c);
	return k;
}

/* What the function of a record must do. Those of elected lanes are alike: they draw a ticket if they are not given
 * one, and a record that needs none is given one that has no meaning. */
static struct hook of_function(const struct hook *h)
{
	struct hook f = *h;

	if (h->elected)
		f.sync = f.earlier = f.often_uniform = true;
	return f;
}

/* The number of the function that writes such records. */
static size_t function_of(struct hook_functions *all, const struct hook *h)
{
	struct text key = key_of(h);
	size_t k = 0;

	while (k < all->key.n && !equal(&all->key.at[k].text, &key))
		k++;
	if (k < all->key.n)
		text_free(&key);
	else
		vec_push(&all->key, ((struct hook_key){ key, add_function(all, h) }));
	return all->key.at[k].function;
}

/* ptxas passes a value that is the same in all lanes in a register of the warp. But it also puts a YIELD
 * at the beginning of a function that has an atomic, so that lanes which wait for these, behind a branch, go
 * on, and their code may overwrite the register: seen on an H200 as an mbarrier at address 1, the count of
 * its mbarrier.init. So each value is made one that may differ: cs_zero is 0, which ptxas does not know. */
static void call_function(struct text *t, const struct hook *h)
{
	const unsigned words = h->words + h->conflict.words;
	const struct hook f = of_function(h);
	const size_t k = function_of(h->functions, &f);

	text_printf(t, "\t{ ");
	state_param(t, "consan_next", &f);
	text_printf(t, ";\n\t");
	state_param(t, "consan_state", &f);
	text_printf(t, ";\n\t.param .b32 consan_site;\n\t.reg .b32 %%cs_own;\n");
	for (unsigned v = 0; v < words; v++)
		text_printf(t, "\tor.b32 %%cs_own, %s%u, %%cs_zero;\n"
			"\t.param .b32 consan_v%u;\n\tst.param.b32 [consan_v%u], %%cs_own;\n", h->prefix, v, v, v);
	text_printf(t, "\tst.param.b32 [consan_site], %s;\n", h->word);
	store_state(t, "consan_state", &f, !h->sync ? "1" : h->earlier ? "%cs_ticket" : "0");
	text_printf(t, "\tcall (consan_next), " NAME "%zu, (consan_site, consan_state", k);
	for (unsigned v = 0; v < words; v++)
		text_printf(t, ", consan_v%u", v);
	text_printf(t, ");\n");
	load_state(t, "consan_next", h->sync);
	text_printf(t, "\t}\n");
}

void hook_functions(struct text *t, const struct hook_functions *all)
{
	for (size_t k = 0; k < all->n; k++)
		text_printf(t, ".func (%.*s) " NAME "%zu%.*s", (int)all->at[k].returns.n, all->at[k].returns.at, k,
			(int)all->at[k].text.n, all->at[k].text.at);
}

void hook_functions_free(struct hook_functions *all)
{
	for (size_t k = 0; k < all->n; k++)
		free_code(&all->at[k]);
	for (size_t k = 0; k < all->key.n; k++)
		text_free(&all->key.at[k].text);
	vec_free(&all->key);
	vec_free(all);
}

void hook_record(struct text *t, const struct hook *h)
{
	struct hook here = *h;
	struct text word = { 0 };

	text_printf(&word, "%u", h->site << RECORD_SITE_SHIFT);
	here.word = word.at;
	here.lanes = h->in_place ? "%cs_m" : "%cs_lanes";
	if (h->in_place)
		record_in_place(t, &here);
	else
		call_function(t, &here);
	text_free(&word);
}
