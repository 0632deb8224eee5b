/* mutate: see mutate.h. Applies the rows of mutation.def. */
#include "mutate.h"
#include "libconsan/ptx/opcodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum what { DROP, TRUE, ADD, SET, XOR, SAME, NEXT, COUNT, ARRIVE, SPELL, TWICE, EARLY };

static const struct row {
	const char *opcode, *with, *without;
	enum what what;
	unsigned operand;
	int amount;
	const char *to, *name;
} row[] = {
#define MUTATION(opcode, with, without, what, operand, amount, to, name) \
	{ opcode, with, without, what, operand, amount, to, name },
#include "mutation.def"
#undef MUTATION
};

const char *mutation_name(unsigned r)
{
	return row[r].name;
}

const char *mutation_opcode(unsigned r)
{
	return row[r].opcode;
}

/* ---- parsing a statement: "@%p7 op.mod a, [b], {c, d}" ---- */

enum { PARTS = 8 };

struct piece {
	const char *at;
	size_t n;
};

struct statement {
	struct piece guard;  /* with its blank, or empty */
	struct piece opcode; /* with its modifiers */
	struct piece operand[PARTS];
	unsigned n;
};

static size_t blanks(const char *at, const char *end)
{
	size_t n = 0;

	while (at + n < end && (unsigned char)at[n] <= ' ')
		n++;
	return n;
}

static size_t word(const char *at, const char *end)
{
	size_t n = 0;

	while (at + n < end && (unsigned char)at[n] > ' ')
		n++;
	return n;
}

static struct statement take_apart(const struct ptx_module *m, const struct ptx_insn *i)
{
	const char *at = m->text + i->text_at, *end = at + i->text_len;
	struct statement s = { .guard.at = at };
	unsigned deep = 0;

	if (i->guard != PTX_NO_REG) {
		at += word(at, end);
		at += blanks(at, end);
	}
	s.guard.n = (size_t)(at - s.guard.at);
	s.opcode = (struct piece){ at, word(at, end) };
	at += s.opcode.n;
	while (at < end && s.n < PARTS) {
		const char *from;

		at += blanks(at, end);
		for (from = at; at < end && (deep || *at != ','); at++)
			deep += *at == '[' || *at == '{' ? 1u
				: *at == ']' || *at == '}' ? -1u : 0;
		s.operand[s.n++] = (struct piece){ from, (size_t)(at - from) };
		at += at < end;
	}
	return s;
}

static const char *find(struct piece p, const char *what)
{
	return memmem(p.at, p.n, what, strlen(what));
}

static bool begins(struct piece p, const char *with)
{
	return p.n >= strlen(with) && !memcmp(p.at, with, strlen(with));
}

static bool answers(const struct row *r, struct piece opcode)
{
	size_t n = strlen(r->opcode);

	return begins(opcode, r->opcode) && (opcode.n == n || opcode.at[n] == '.')
		&& (!*r->with || find(opcode, r->with))
		&& (!*r->without || !find(opcode, r->without));
}

/* ---- new statements ---- */

static bool is_number(struct piece p, long *value)
{
	char digits[32], *end;

	if (!p.n || p.n >= sizeof digits)
		return false;
	memcpy(digits, p.at, p.n);
	digits[p.n] = 0;
	*value = strtol(digits, &end, 0);
	return !*end;
}

/* Writes the statement with another text for operand k. */
static void put_with(struct text *t, const struct statement *s, unsigned k, const char *text)
{
	const char *from = s->guard.at;
	const struct piece *last = &s->operand[s->n - 1];

	text_add(t, from, (size_t)(s->operand[k].at - from));
	text_printf(t, "%s", text);
	from = s->operand[k].at + s->operand[k].n;
	text_add(t, from, (size_t)(last->at + last->n - from));
	text_add(t, ";", 1);
}

/* Writes the statement with operand k changed by an operation on 32 bits. */
static bool put_changed(struct text *t, const struct statement *s, unsigned k, const char *op,
	int amount)
{
	struct piece p;
	char digits[32];
	long value;

	if (k >= s->n)
		return false;
	p = s->operand[k];
	if (!is_number(p, &value)) {
		text_printf(t, "{ .reg .b32 %%mutant; %s %%mutant, %.*s, %d; ", op, (int)p.n, p.at,
			amount);
		put_with(t, s, k, "%mutant");
		text_printf(t, " }");
		return true;
	}
	snprintf(digits, sizeof digits, "%ld", *op == 'x' ? value ^ amount : value + amount);
	put_with(t, s, k, digits);
	return true;
}

/* [a] becomes [a+8]: the next mbarrier */
static bool put_next(struct text *t, const struct statement *s, unsigned k)
{
	struct text address = { 0 };

	if (k >= s->n || s->operand[k].at[s->operand[k].n - 1] != ']')
		return false;
	text_printf(&address, "%.*s+8]", (int)s->operand[k].n - 1, s->operand[k].at);
	put_with(t, s, k, address.at);
	text_free(&address);
	return true;
}

static bool put_count(struct text *t, const struct statement *s, unsigned k, int amount,
	unsigned threads)
{
	if (k < s->n)
		return put_changed(t, s, k, "add.s32", amount);
	text_printf(t, "%.*s%.*s %.*s, %d;", (int)s->guard.n, s->guard.at, (int)s->opcode.n,
		s->opcode.at, (int)s->operand[0].n, s->operand[0].at, (int)threads + amount);
	return true;
}

static void put_arrive(struct text *t, const struct statement *s, unsigned threads)
{
	text_printf(t, "%.*sbar.arrive %.*s, ", (int)s->guard.n, s->guard.at,
		(int)s->operand[0].n, s->operand[0].at);
	if (s->n > 1)
		text_printf(t, "%.*s;", (int)s->operand[1].n, s->operand[1].at);
	else
		text_printf(t, "%u;", threads);
}

static void put_spelled(struct text *t, const struct statement *s, const struct ptx_insn *i,
	const struct row *r)
{
	const char *from = find(s->opcode, r->with), *end = s->guard.at + i->text_len;

	text_add(t, s->guard.at, (size_t)(from - s->guard.at));
	text_printf(t, "%s", r->to);
	from += strlen(r->with);
	text_add(t, from, (size_t)(end - from));
	text_add(t, ";", 1);
}

static bool put_instead(struct text *t, const struct row *r, const struct statement *s,
	const struct ptx_insn *i, unsigned threads)
{
	char digits[16];
	long value;

	switch (r->what) {
	case DROP:
		return true;
	case TRUE:
		text_printf(t, "setp.eq.s32 %.*s, 0, 0;", (int)s->operand[0].n, s->operand[0].at);
		return true;
	case ADD:
		return put_changed(t, s, r->operand, "add.s32", r->amount);
	case XOR:
		return put_changed(t, s, r->operand, "xor.b32", r->amount);
	case SAME:
		if (is_number(s->operand[r->operand], &value))
			return false;
		/* fallthrough */
	case SET:
		snprintf(digits, sizeof digits, "%d", r->amount);
		if (r->operand < s->n)
			put_with(t, s, r->operand, digits);
		return r->operand < s->n;
	case NEXT:
		return put_next(t, s, r->operand);
	case TWICE:
		text_printf(t, "%.*s; %.*s;", (int)i->text_len, s->guard.at, (int)i->text_len,
			s->guard.at);
		return true;
	case COUNT:
		return put_count(t, s, r->operand, r->amount, threads);
	case ARRIVE:
		put_arrive(t, s, threads);
		return true;
	case SPELL:
		put_spelled(t, s, i, r);
		return true;
	case EARLY:
		break;
	}
	return false;
}

/* ---- EARLY ---- */

/* A block that a branch may skip: the arrive is in `then`, the branch at the end of `before`.
 * Without such a branch both are the same block. */
struct around {
	const struct ptx_block *before, *then;
	bool jumps_in;       /* the branch goes to `then` if taken, else around it */
};

static bool find_around(const struct ptx_func *f, uint32_t index, struct around *a)
{
	const struct ptx_cfg *g = f->cfg;
	uint32_t then = g->block_of[index], n = 0;

	a->then = a->before = &g->block[then];
	a->jumps_in = false;
	for (size_t b = 0; b < g->nblock; b++)
		for (unsigned k = 0; k < g->block[b].nsucc; k++)
			if (g->block[b].succ[k] == then) {
				a->before = &g->block[b];
				a->jumps_in = k == 0;
				n++;
			}
	if (n != 1 || a->before->nsucc != 2)
		a->before = a->then;
	return true;
}

static bool is_sync(const struct ptx_insn *i)
{
	switch (ptx_effect_of(i->op)) {
	case EF_BARRIER: case EF_WARP_SYNC: case EF_CLUSTER: case EF_FENCE:
	case EF_WGMMA: case EF_CP_ASYNC: case EF_BULK:
		return true;
	case EF_NONE: case EF_RANK: case EF_CONTROL: case EF_EXIT: case EF_READ: case EF_WRITE:
	case EF_RMW: case EF_HINT: case EF_MBARRIER: case EF_TCGEN05: case EF_WARP: case EF_TENSORMAP:
	case EF_SETMAXNREG: case EF_GRID: case EF_STOP: case EF_UNKNOWN: case EF_COUNT:
		break;
	}
	return false;
}

static void need(bool *needed, const struct ptx_operand *o, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		if ((o[k].kind == PO_REG || o[k].kind == PO_ADDR) && o[k].reg != PTX_NO_REG)
			needed[o[k].reg] = true;
		if (o[k].kind == PO_VEC || o[k].kind == PO_PAIR || o[k].kind == PO_TADDR)
			need(needed, o[k].list, o[k].n);
	}
}

static bool defines(const struct ptx_insn *i, const bool *needed)
{
	return i->noperands && i->operand[0].kind == PO_REG && needed[i->operand[0].reg]
		&& (ptx_effect_of(i->op) == EF_NONE || i->op == OP_mapa);
}

/* Writes the text to insert before `target`, the last sync before the arrive: the arrive, with its
 * condition and the instructions that it needs. */
static bool put_early(struct text *t, const struct ptx_func *f, uint32_t index,
	uint32_t *target)
{
	const struct ptx_insn *insn = f->insn, *arrive = &insn[index];
	bool *needed = base_alloc(f->nreg), *copied = base_alloc(f->ninsn);
	const struct ptx_module *m = f->module;
	uint32_t jump, k;
	struct around a;

	find_around(f, index, &a);
	jump = a.before->end - 1;
	need(needed, arrive->operand, arrive->noperands);
	if (a.before != a.then)
		needed[insn[jump].guard] = true;
	for (k = index; k-- > a.then->first && !is_sync(&insn[k]);)
		if ((copied[k] = defines(&insn[k], needed)))
			need(needed, insn[k].operand + 1, insn[k].noperands - 1u);
	if (k + 1 == a.then->first && a.before != a.then)
		for (k = jump; k-- > a.before->first && !is_sync(&insn[k]);)
			if ((copied[k] = defines(&insn[k], needed)))
				need(needed, insn[k].operand + 1, insn[k].noperands - 1u);
	*target = k;
	k = k < index && is_sync(&insn[k]) ? k : index;
	for (uint32_t c = k; c < index; c++)
		if (copied[c])
			text_printf(t, "%.*s; ", (int)insn[c].text_len, m->text + insn[c].text_at);
	if (*target < a.then->first && a.before != a.then) {
		const char *guard = m->text + insn[jump].text_at;
		bool negated = insn[jump].guard_negated == a.jumps_in;
		size_t skip = insn[jump].guard_negated ? 2 : 1; /* @! or @ */

		text_printf(t, "@%s%.*s ", negated ? "!" : "",
			(int)(word(guard, guard + insn[jump].text_len) - skip), guard + skip);
	}
	text_printf(t, "%.*s; ", (int)arrive->text_len, m->text + arrive->text_at);
	free(needed);
	free(copied);
	return k < index && arrive->guard == PTX_NO_REG;
}

/* ---- all mutants of a function ---- */

static const char *after(const struct ptx_module *m, const struct ptx_insn *i)
{
	const char *end = m->text + i->text_at + i->text_len;

	return end + strcspn(end, ";") + 1;
}

static bool make(struct text *out, const struct ptx_func *f, uint32_t index,
	const struct row *r, unsigned threads)
{
	const struct ptx_module *m = f->module;
	const struct ptx_insn *i = &f->insn[index];
	const char *from = m->text, *at = m->text + i->text_at;
	struct statement s = take_apart(m, i);
	struct text t = { 0 };
	uint32_t target;
	bool ok;

	if (r->what == EARLY) {
		ok = put_early(&t, f, index, &target);
		if (ok) {
			const char *to = m->text + f->insn[target].text_at;

			text_add(out, from, (size_t)(to - from));
			text_add(out, t.at, t.n);
			text_add(out, to, (size_t)(at - to));
		}
	} else {
		ok = put_instead(&t, r, &s, i, threads);
		text_add(out, from, (size_t)(at - from));
		text_add(out, t.at ? t.at : "", t.n);
	}
	from = after(m, i);
	text_add(out, from, (size_t)(m->text + m->ntext - from));
	text_free(&t);
	if (!ok)
		text_free(out);
	return ok;
}

void mutate(const struct ptx_func *f, unsigned threads, struct mutants *out)
{
	for (uint32_t k = 0; k < f->ninsn; k++) {
		struct statement s;

		if (!f->insn[k].text_len)
			continue;
		s = take_apart(f->module, &f->insn[k]);
		for (unsigned r = 0; r < ARRAY_SIZE(row); r++) {
			struct mutant x = { .insn = &f->insn[k], .row = r };

			if (answers(&row[r], s.opcode) && make(&x.ptx, f, k, &row[r], threads))
				vec_push(out, x);
		}
	}
}
