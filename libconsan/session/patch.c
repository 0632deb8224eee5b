/* patch: the text of a module with edits (place.h). */
#include "flow.h"
#include "place.h"

#include <stdlib.h>
#include <string.h>

/* The place is a row of instructions, those of a statement of the source, and not one of them. */
static bool is_row(const struct flow *w, const struct place *x)
{
	const uint32_t at = (uint32_t)(x->insn - w->f->insn);

	return x->kind != EDIT_CHANGE && (x->kind == EDIT_AFTER ? w->last : w->first)[at] == at;
}

const struct ptx_insn *place_next_copy(const struct flow *w, const struct place *x, uint32_t *at)
{
	for (++*at; *at < w->f->ninsn; ++*at) {
		const struct ptx_insn *i = &w->f->insn[*at];

		if (i == x->insn || !i->text_len)
			continue;
		if (!flow_same_place(w->own[*at], w->own[x->insn - w->f->insn])
			|| (!x->wide && !flow_same_callers(w->own[*at], w->own[x->insn - w->f->insn])))
			continue;
		if (is_row(w, x) ? (x->kind == EDIT_AFTER ? w->last : w->first)[*at] == *at
			: i->op == x->insn->op
				&& flow_same_chain(x->insn->loc, i->loc, w->own[x->insn - w->f->insn]))
			return i;
	}
	return NULL;
}

struct patch { /* replaces [from, to) */
	size_t from, to;
	unsigned rank; /* place_rank() */
	char ptx[sizeof ((struct place *)0)->ptx];
};
typedef VEC(struct patch) patches;

static void add_patch(patches *all, const struct ptx_module *m, const struct place *p,
	const struct ptx_insn *i)
{
	struct patch x = { .from = i->text_at, .to = i->text_at, .rank = place_rank(p) };

	snprintf(x.ptx, sizeof x.ptx, "%s", p->ptx);
	if (p->kind == EDIT_AFTER)
		x.from = x.to = ptx_statement_end(m, i);
	if (p->kind == EDIT_CHANGE)
		x.to = ptx_statement_end(m, i);
	if (p->kind == EDIT_CHANGE && i != p->insn) {
		char *text = base_strndup(m->text + i->text_at, i->text_len);

		edit_statement(text, p->form, x.ptx, sizeof x.ptx);
		free(text);
	}
	vec_push(all, x);
}

unsigned place_rank(const struct place *p)
{
	return p->moved ? 2 : !strncmp(p->ptx, "bar", 3);
}

/* Insertions before the change of the same instruction. */
static int by_offset(const void *a, const void *b)
{
	const struct patch *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_address(const void *a, const void *b)
{
	const struct ptx_insn *const *x = a, *const *y = b;

	return (*x > *y) - (*x < *y);
}

typedef VEC(const struct ptx_insn *) insns;

static void all_copies(const struct flow *w, const struct place *x, insns *out)
{
	const struct ptx_insn *i;
	uint32_t at = UINT32_MAX;

	vec_push(out, x->insn);
	while (x->copies && (i = place_next_copy(w, x, &at)))
		vec_push(out, i);
	qsort(out->at, out->n, sizeof *out->at, by_address);
}

/* Each copy of the instruction is moved to the copy of the place that has its number; if a loop
 * behind it was unrolled, to the last of its copies. */
static void add_move(patches *all, const struct ptx_module *m, const struct flow *w,
	const struct place *p)
{
	struct place moved = { .func = p->func, .insn = p->moved, .kind = EDIT_CHANGE, .copies = 1 };
	struct place to = *p;
	insns from = { 0 }, at = { 0 };

	all_copies(w, &moved, &from);
	all_copies(w, p, &at);
	for (size_t i = 0, each = at.n / from.n; i < from.n && !(at.n % from.n); i++) {
		const struct ptx_insn *behind = at.at[(i + 1) * each - 1];

		if (!place_moved(w, from.at[i], behind, to.ptx, sizeof to.ptx))
			break;
		add_patch(all, m, &to, behind);
		vec_push(all, ((struct patch){ .from = from.at[i]->text_at,
			.to = ptx_statement_end(m, from.at[i]), .ptx = " " }));
	}
	vec_free(&from);
	vec_free(&at);
}

void place_apply(struct placer *p, const struct place *at, size_t n, struct text *out)
{
	const struct ptx_module *m = p->m;
	patches all = { 0 };
	size_t from = 0;

	for (size_t k = 0; k < n; k++) {
		const struct flow *w = flow_of(p, at[k].func);
		insns to = { 0 };

		if (at[k].moved) {
			add_move(&all, m, w, &at[k]);
			continue;
		}
		all_copies(w, &at[k], &to);
		for (size_t i = 0; i < to.n; i++)
			add_patch(&all, m, &at[k], to.at[i]);
		vec_free(&to);
	}
	if (all.n)
		qsort(all.at, all.n, sizeof *all.at, by_offset);
	text_add(out, "", 0);
	for (size_t k = 0; k < all.n; k++) {
		const struct patch *x = &all.at[k];

		if (x->from < from || !*x->ptx)
			continue; /* a second change of one instruction */
		text_add(out, m->text + from, x->from - from);
		text_printf(out, " %s ", x->ptx);
		from = x->to;
	}
	text_add(out, m->text + from, m->ntext - from);
	vec_free(&all);
}
