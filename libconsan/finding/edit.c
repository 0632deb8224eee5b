/* edit: see edit.h. Statements are text, "@%p1 mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1],
 * %r2;", with or without the semicolon. */
#include "edit.h"
#include "hint_codes.h"

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {
	[EDIT_NONE] = "", [EDIT_CHANGE] = "change", [EDIT_BEFORE] = "insert before",
	[EDIT_AFTER] = "insert after", [EDIT_BETWEEN] = "insert between", [EDIT_MOVE] = "move after",
	[EDIT_MOVE_BEFORE] = "move before",
};

static const char *const verdicts[] = {
	[VERIFIED_NOT_TRIED] = "", [VERIFIED_CLEAN] = "clean", [VERIFIED_PART] = "part",
	[VERIFIED_NOT] = "not clean",
};

static unsigned find_name(const char *const *names, size_t n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return i;
	return 0;
}

const char *edit_name(unsigned kind)
{
	return kinds[kind < ARRAY_SIZE(kinds) ? kind : 0];
}

unsigned edit_by_name(const char *name)
{
	return find_name(kinds, ARRAY_SIZE(kinds), name);
}

const char *edit_verified_name(unsigned verified)
{
	return verdicts[verified < ARRAY_SIZE(verdicts) ? verified : 0];
}

unsigned edit_verified_by_name(const char *name)
{
	return find_name(verdicts, ARRAY_SIZE(verdicts), name);
}

static const char *const untried[] = {
	"",
#define UNTRIED(id, why) #id,
#include "untried.def"
#undef UNTRIED
};

static const char *const untried_why[] = {
	"",
#define UNTRIED(id, why) why,
#include "untried.def"
#undef UNTRIED
};

const char *edit_untried_name(unsigned n)
{
	return untried[n < ARRAY_SIZE(untried) ? n : 0];
}

unsigned edit_untried_by_name(const char *name)
{
	return find_name(untried, ARRAY_SIZE(untried), name);
}

const char *edit_untried_why(unsigned n)
{
	return untried_why[n < ARRAY_SIZE(untried_why) ? n : 0];
}

/* ---- statements ---- */

/* The opcode with its modifiers, after the guard. */
static const char *opcode_of(const char *ptx)
{
	if (*ptx == '@')
		ptx += strcspn(ptx, " \t");
	return ptx + strspn(ptx, " \t");
}

/* Where the modifier begins in the opcode, or NULL. ".cta" is no part of ".shared::cta". */
static const char *find_modifier(const char *ptx, const char *modifier, size_t n)
{
	const char *at = opcode_of(ptx), *end = at + strcspn(at, " \t;");

	for (at += strcspn(at, ". \t;"); at < end; at += 1 + strcspn(at + 1, ". \t;"))
		if (!strncmp(at, modifier, n) && (at + n == end || at[n] == '.'))
			return at;
	return NULL;
}

bool edit_has_modifier(const char *ptx, const char *modifier)
{
	return find_modifier(ptx, modifier, strlen(modifier)) != NULL;
}

/* Operand k, from 0, without blanks around it; commas in brackets belong to an operand. */
static bool find_operand(const char *ptx, unsigned k, const char **from, const char **to)
{
	const char *at = opcode_of(ptx), *begin;
	int depth = 0;

	at += strcspn(at, " \t;");
	for (begin = at;; at++) {
		depth += *at == '[' || *at == '{' || *at == '(';
		depth -= *at == ']' || *at == '}' || *at == ')';
		if (*at && *at != ';' && (*at != ',' || depth))
			continue;
		if (!k--)
			break;
		if (*at != ',')
			return false;
		begin = at + 1;
	}
	*from = begin + strspn(begin, " \t");
	*to = at;
	while (*to > *from && (to[0][-1] == ' ' || to[0][-1] == '\t'))
		--*to;
	return *to > *from;
}

/* ptx with [from, to) replaced. */
static void replace(struct text *out, const char *ptx, const char *from, const char *to,
	const char *by, size_t n)
{
	text_add(out, ptx, (size_t)(from - ptx));
	text_add(out, by, n);
	text_add(out, to, strlen(to));
}

/* The operand with bit 0 flipped. A register is flipped in a copy. */
static bool flip(struct text *out, const char *ptx, const char *from, const char *to)
{
	char *end, number[24];
	unsigned long value = strtoul(from, &end, 0);

	if (end == to) {
		snprintf(number, sizeof number, "%lu", value ^ 1);
		replace(out, ptx, from, to, number, strlen(number));
		return true;
	}
	if (*from != '%')
		return false;
	text_printf(out, "{ .reg .b32 %%parity; xor.b32 %%parity, %.*s, 1; ", (int)(to - from), from);
	replace(out, ptx, from, to, "%parity", 7);
	text_printf(out, " }");
	return true;
}

/* Another instruction under the same guard; "[]" in it is the address of the old one. */
static bool replace_all(struct text *out, const char *ptx, const char *form)
{
	const char *address = strchr(ptx, '['), *hole = strstr(form, "[]");

	text_printf(out, "%.*s", (int)(opcode_of(ptx) - ptx), ptx);
	if (hole && !address)
		return false;
	if (hole)
		text_printf(out, "%.*s%.*s%s", (int)(hole - form), form, (int)(strcspn(address, "]") + 1),
			address, hole + 2);
	else
		text_printf(out, "%s", form);
	return *form != 0;
}

static bool change(struct text *out, const char *ptx, const char *form)
{
	const char *arrow = strchr(form, '>'), *from, *to;
	char *rest;

	if (*form == '#' || *form == '^') {
		if (!find_operand(ptx, (unsigned)strtoul(form + 1, &rest, 10), &from, &to))
			return false;
		if (*form == '^')
			return flip(out, ptx, from, to);
		replace(out, ptx, from, to, rest + 1, strlen(rest + 1));
		return true;
	}
	if (*form == '+') {
		to = strrchr(ptx, ']');
		if (to)
			replace(out, ptx, to, to, form, strlen(form));
		return to;
	}
	if (*form != '.' || !arrow)
		return replace_all(out, ptx, form);
	from = find_modifier(ptx, form, (size_t)(arrow - form));
	if (!from)
		return false;
	replace(out, ptx, from, from + (arrow - form), arrow + 1, strlen(arrow + 1));
	return true;
}

bool edit_statement(const char *ptx, const char *form, char *to, size_t n)
{
	struct text out = { 0 }, whole = { 0 };
	bool ok;

	text_printf(&whole, "%.*s;", (int)strcspn(ptx, ";"), ptx);
	ok = change(&out, whole.at, form) && out.n < n;
	snprintf(to, n, "%s", ok ? out.at : "");
	text_free(&out);
	text_free(&whole);
	return ok;
}

/* ---- edits ---- */

void edit_set(struct finding *f, enum finding_edit_kind kind, uint32_t site, uint32_t until,
	const char *form)
{
	struct finding_edit *e = &f->edit;

	if (kind == EDIT_NONE || !site)
		return;
	*e = (struct finding_edit){ .kind = (uint8_t)kind, .site = site, .until = until };
	if (kind == EDIT_MOVE)
		snprintf(e->ptx, sizeof e->ptx, "%.*s;", (int)strcspn(site_get(site)->ptx, ";"),
			site_get(site)->ptx);
	if (*form == '?') {
		snprintf(e->form, sizeof e->form, "%s", form + 1);
		return;
	}
	if (kind == EDIT_CHANGE && edit_statement(site_get(site)->ptx, form, e->ptx, sizeof e->ptx))
		snprintf(e->form, sizeof e->form, "%s", form);
	else if (kind != EDIT_CHANGE)
		snprintf(e->ptx, sizeof e->ptx, "%s", form);
}

static const struct {
	const char *code, *form;
	enum finding_edit_kind kind;
	unsigned side;
} rules[] = {
#define EDIT_BY_RULE(code, edit, side, form) { #code, form, EDIT_##edit, side },
#include "edits.def"
#undef EDIT_BY_RULE
};

/* The instruction that makes all threads that are involved meet: those of a warp, a CTA or a
 * cluster. "?": nothing makes blocks of a grid meet. */
static const char *barrier_for(const struct finding *f, const char *form)
{
	const struct finding_side *a = &f->side[0], *b = &f->side[1];

	if (strcmp(form, "bar.sync 0;") || f->nsides < 2)
		return form;
	if (!memcmp(a->ctaid, b->ctaid, sizeof a->ctaid))
		return a->warp == b->warp && a->lane >= 0 && b->lane >= 0
			? "bar.warp.sync 0xffffffff;" : form;
	return a->space == SP_SHARED ? "barrier.cluster.arrive; barrier.cluster.wait;" : "?";
}

/* A finding that nothing says more of has the instruction at which it was found, if it is one that
 * a person would edit. */
static bool is_place_to_edit(const struct finding *f)
{
	return f->nsides && !f->side[0].host && !f->nwaiters && site_get(f->side[0].site)->ptx_line
		&& f->severity > SEV_NOTE;
}

void edit_by_rule(struct finding *f)
{
	const char *code = rule_get(f->rule)->code;

	/* one thread should write: a barrier would be the wrong repair */
	if (f->hint_id == HINT_equal_values || f->hint_id == HINT_same_instruction)
		edit_set(f, EDIT_CHANGE, f->side[0].site, 0, "?");
	for (size_t i = 0; i < ARRAY_SIZE(rules) && f->edit.kind == EDIT_NONE; i++) {
		const bool between = rules[i].kind == EDIT_BETWEEN;

		if (strcmp(rules[i].code, code) || rules[i].side >= f->nsides)
			continue;
		if (rules[i].kind == EDIT_NONE)
			return;
		edit_set(f, rules[i].kind, f->side[rules[i].side].site,
			between ? f->side[0].site : 0, between ? barrier_for(f, rules[i].form) : rules[i].form);
	}
	if (f->edit.kind == EDIT_NONE && is_place_to_edit(f))
		edit_set(f, EDIT_CHANGE, f->side[0].site, 0, "?");
}

static const struct { const char *ptx, *cuda; } idioms[] = {
	{ "bar.sync 0;", "__syncthreads()" },
	{ "bar.warp.sync 0xffffffff;", "__syncwarp()" },
	{ "fence.acq_rel.cta;", "__threadfence_block()" },
	{ "fence.acq_rel.gpu;", "__threadfence()" },
	{ "griddepcontrol.wait;", "cudaGridDependencySynchronize()" },
	{ "barrier.cluster.arrive; barrier.cluster.wait;", "cg::this_cluster().sync()" },
	{ "cp.async.commit_group;", "__pipeline_commit()" },
	{ "cp.async.wait_all;", "__pipeline_wait_prior(0)" },
	{ "cp.async.wait_group ", NULL }, /* with its operand */
};

const char *edit_cuda(const char *ptx, char *to, size_t n)
{
	*to = 0;
	for (size_t i = 0; i < ARRAY_SIZE(idioms); i++) {
		const size_t length = strlen(idioms[i].ptx);
		char operand[16];

		if (strncmp(ptx, idioms[i].ptx, length))
			continue;
		snprintf(operand, sizeof operand, "%.*s", (int)strcspn(ptx + length, ";"), ptx + length);
		if (!idioms[i].cuda)
			snprintf(to, n, "__pipeline_wait_prior(%s)", operand);
		else if (!ptx[length])
			snprintf(to, n, "%s", idioms[i].cuda);
	}
	return to;
}

/* Modules that are loaded again have sites of their own. */
static bool same_place(uint32_t a, uint32_t b)
{
	const struct site *x = site_get(a), *y = site_get(b);

	return a == b || (x->ptx_line == y->ptx_line && x->ptx_col == y->ptx_col
		&& !strcmp(x->module, y->module) && !strcmp(x->kernel, y->kernel));
}

bool edit_same(const struct finding_edit *a, const struct finding_edit *b)
{
	return a->kind == b->kind && same_place(a->site, b->site) && same_place(a->until, b->until)
		&& !strcmp(a->ptx, b->ptx);
}
