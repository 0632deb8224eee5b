/* table: matches spellings of instructions against the rows of ptx.def.
 *
 * Words are the pieces between dots. Instruction names form a trie over words;
 * a row's syntax is compiled to a list of items, each of which matches one
 * written modifier. Operand values and types are not checked. */
#include "table.h"
#include "opcodes.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *mods, *operands;
	enum ptx_effect effect;
} op_row[OP_COUNT] = {
	[OP_NONE] = { "", "", "", EF_UNKNOWN },
#define OP(id, name, mods, operands, effect, doc) [OP_##id] = { name, mods, operands, EF_##effect },
#include "ptx.def"
#undef OP
};

static const struct {
	const char *spelling;
	uint8_t group;
} mod_row[MOD_COUNT] = {
	[MOD_NONE] = { ".", MG_COUNT },
#define GROUP(id, doc)
#define MOD(group, id, spelling) [MOD_##id] = { spelling, MG_##group },
#include "mods.def"
#undef GROUP
#undef MOD
};

static const char *const mod_id[MOD_COUNT] = {
	[MOD_NONE] = "",
#define GROUP(id, doc)
#define MOD(group, id, spelling) [MOD_##id] = #id,
#include "mods.def"
#undef GROUP
#undef MOD
};

static const char *const group_id[MG_COUNT] = {
#define GROUP(id, doc) #id,
#define MOD(group, id, spelling)
#include "mods.def"
#undef GROUP
#undef MOD
};

static const struct {
	const char *name;
	uint16_t bits;
	char class;
	uint16_t mod;
} type_row[TY_COUNT] = {
	[TY_none] = { "", 0, 0, MOD_NONE },
#define TYPE(id, bits, class) { #id, bits, #class[0], MOD_##id },
#include "types.def"
#undef TYPE
};

static const struct {
	const char *name;
	uint8_t type;
} sreg_row[SR_COUNT] = {
#define SREG(id, spelling, type) { spelling, TY_##type },
#include "sreg.def"
#undef SREG
};

/* ---- compiled rows ---- */

#define MAX_ITEMS 20

struct item {
	uint16_t group, mod;   /* a group (MG_COUNT: none) or one modifier */
	bool required;
};

struct arg {
	bool pair, optional, written, parts, minus;
	enum { ARG_VALUE, ARG_ADDRESS, ARG_EITHER } kind;
};

static struct row {
	uint8_t nitems, nargs;
	struct item item[MAX_ITEMS];
	struct arg arg[PTX_MAX_OPERANDS + 2];
} row[OP_COUNT];

/* ---- words ---- */

#define WORD_SLOTS 2048    /* power of two, > 2 * words */
#define MAX_WORDS 1024

static struct { const char *at; size_t n; uint16_t mod; } word[MAX_WORDS];
static unsigned nwords = 1;            /* word 0: none */
static uint16_t word_slot[WORD_SLOTS];
static uint16_t mod_same[MOD_COUNT];   /* next modifier of the same spelling */

/* trie: edges (node, word) -> node */
#define EDGE_SLOTS 1024
#define MAX_NODES 512
static struct { uint16_t node, word, to; } edge[EDGE_SLOTS];
static uint16_t node_op[MAX_NODES];
static unsigned nnodes = 1;

#define SREG_SLOTS 256
static uint16_t sreg_slot[SREG_SLOTS]; /* 1 + sreg */

static char complaint[200];

static uint32_t hash(const char *s, size_t n)
{
	uint32_t h = 2166136261u;

	for (size_t k = 0; k < n; k++)
		h = (h ^ (unsigned char)s[k]) * 16777619u;
	return h ^ h >> 15;
}

/* The number of a word; with `add` never 0. */
static unsigned word_find(const char *s, size_t n, bool add)
{
	uint32_t h = hash(s, n);

	for (;; h++) {
		uint16_t *slot = &word_slot[h & (WORD_SLOTS - 1)];

		if (!*slot) {
			if (!add)
				return 0;
			if (nwords == MAX_WORDS)
				base_die("table.c: MAX_WORDS is too small");
			word[nwords].at = s;
			word[nwords].n = n;
			return *slot = (uint16_t)nwords++;
		}
		if (word[*slot].n == n && !memcmp(word[*slot].at, s, n))
			return *slot;
	}
}

static unsigned trie_step(unsigned node, unsigned w, bool add)
{
	uint32_t h = node * 2654435761u + w * 40503u;

	for (h ^= h >> 13;; h++) {
		unsigned k = h & (EDGE_SLOTS - 1);

		if (!edge[k].to) {
			if (!add)
				return 0;
			if (nnodes == MAX_NODES)
				base_die("table.c: MAX_NODES is too small");
			edge[k].node = (uint16_t)node;
			edge[k].word = (uint16_t)w;
			return edge[k].to = (uint16_t)nnodes++;
		}
		if (edge[k].node == node && edge[k].word == w)
			return edge[k].to;
	}
}

/* The length of the piece at s, which ends at a dot or at the end. */
static size_t piece(const char *s, const char *end)
{
	const char *dot = memchr(s, '.', (size_t)(end - s));

	return (size_t)((dot ? dot : end) - s);
}

/* ---- building ---- */

static void broken(const char *what, unsigned op, const char *at)
{
	if (!*complaint)
		snprintf(complaint, sizeof complaint, "ptx.def: %s: %s at '%.40s'",
			op_row[op].name, what, at);
}

static bool item_named(const char *s, size_t n, struct item *i)
{
	for (unsigned g = 0; g < MG_COUNT; g++) {
		if (strlen(group_id[g]) == n && !memcmp(group_id[g], s, n)) {
			i->group = (uint16_t)g;
			i->mod = MOD_NONE;
			return true;
		}
	}
	for (unsigned m = 1; m < MOD_COUNT; m++) {
		if (strlen(mod_id[m]) == n && !memcmp(mod_id[m], s, n)) {
			i->group = MG_COUNT;
			i->mod = (uint16_t)m;
			return true;
		}
	}
	return false;
}

static void compile_mods(unsigned op)
{
	struct row *r = &row[op];

	for (const char *s = op_row[op].mods; *s;) {
		struct item *i = &r->item[r->nitems];
		size_t n;

		i->required = *s != '{';
		if (*s == '{')
			s++;
		if (*s != '.' || r->nitems == MAX_ITEMS) {
			broken("syntax", op, s);
			return;
		}
		n = strcspn(++s, ".{}");
		if (!item_named(s, n, i)) {
			broken("no such group or modifier", op, s);
			return;
		}
		s += n;
		if (!i->required && *s++ != '}') {
			broken("missing }", op, s - 1);
			return;
		}
		r->nitems++;
	}
}

static void compile_operands(unsigned op)
{
	struct row *r = &row[op];

	for (const char *s = op_row[op].operands; *s;) {
		struct arg *a = &r->arg[r->nargs];

		if (r->nargs == ARRAY_SIZE(r->arg)) {
			broken("too many operands", op, s);
			return;
		}
		a->optional = *s == '{';
		s += strspn(s, "{, ");
		a->minus = *s == '-';
		s += a->minus;
		a->kind = *s == '[' ? ARG_ADDRESS : *s == '?' ? ARG_EITHER : ARG_VALUE;
		a->written = *s == 'd' || *s == 'e';
		a->parts = s[1] == '.';
		s += strcspn(s, ",{}|");
		if (*s == '|') {
			a->pair = true;
			s += strcspn(s, ",{}");
		}
		if (a->optional && *s++ != '}') {
			broken("missing }", op, s - 1);
			return;
		}
		if (*s == ',')
			s += strspn(s, ", ");
		r->nargs++;
	}
}

static void build(void)
{
	for (unsigned m = MOD_COUNT - 1; m; m--) {
		const char *s = mod_row[m].spelling + 1;
		unsigned w = word_find(s, strlen(s), true);

		mod_same[m] = word[w].mod;
		word[w].mod = (uint16_t)m;
	}
	for (unsigned op = 1; op < OP_COUNT; op++) {
		const char *s = op_row[op].name, *end = s + strlen(s);
		unsigned node = 0;

		compile_mods(op);
		compile_operands(op);
		if (op == OP_unknown)
			continue;
		for (;;) {
			size_t n = piece(s, end);

			node = trie_step(node, word_find(s, n, true), true);
			if (s + n == end)
				break;
			s += n + 1;
		}
		if (node_op[node])
			broken("two rows of one name", op, "");
		node_op[node] = (uint16_t)op;
	}
	for (unsigned k = 0; k < SR_COUNT; k++) {
		uint32_t h = hash(sreg_row[k].name, strlen(sreg_row[k].name));

		while (sreg_slot[h & (SREG_SLOTS - 1)])
			h++;
		sreg_slot[h & (SREG_SLOTS - 1)] = (uint16_t)(k + 1);
	}
}

static void table_build(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, build);
}

const char *table_check(void)
{
	table_build();
	return *complaint ? complaint : NULL;
}

/* ---- matching ---- */

/* The item of the row that takes modifier word w; required ones first. */
static int take(const struct row *r, unsigned w, uint32_t used, uint16_t *mod)
{
	int found = -1;

	for (unsigned m = word[w].mod; m; m = mod_same[m]) {
		for (int k = 0; k < r->nitems; k++) {
			const struct item *i = &r->item[k];

			if (used >> k & 1)
				continue;
			if (i->mod != m && i->group != mod_row[m].group)
				continue;
			if (found >= 0 && !(i->required && !r->item[found].required))
				continue;
			found = k;
			*mod = (uint16_t)m;
		}
	}
	return found;
}

static bool matches(unsigned op, const uint16_t *w, unsigned n, struct spelling *s)
{
	const struct row *r = &row[op];
	uint32_t used = 0;

	if (n > PTX_MAX_MODS)
		return false;
	for (unsigned k = 0; k < n; k++) {
		int i = take(r, w[k], used, &s->mod[k]);

		if (i < 0)
			return false;
		used |= 1u << i;
	}
	for (int k = 0; k < r->nitems; k++)
		if (r->item[k].required && !(used >> k & 1))
			return false;
	s->op = (uint16_t)op;
	s->nmods = (uint8_t)n;
	return true;
}

/* st.async and red.async without an mbarrier are a st and a red with release semantics (ISA 9.7.9.12),
 * whose completion no thread can observe. */
static void without_mbarrier(struct spelling *s)
{
	bool release = false, completes = false;

	for (unsigned k = 0; k < s->nmods; k++) {
		release |= s->mod[k] == MOD_release;
		completes |= mod_row[s->mod[k]].group == MG_completion;
	}
	if (!release || completes)
		return;
	if (s->op == OP_st_async)
		s->op = OP_st;
	if (s->op == OP_red_async)
		s->op = OP_red;
}

void table_spell(const char *text, size_t n, struct spelling *s)
{
	const char *end = text + n;
	uint16_t w[32], op_at[32];
	unsigned nw = 0, node = 0;
	bool more = true;

	table_build();
	memset(s, 0, sizeof *s);
	s->op = OP_unknown;
	for (const char *p = text; more && nw < ARRAY_SIZE(w); nw++) {
		size_t len = piece(p, end);

		w[nw] = (uint16_t)word_find(p, len, false);
		if ((node || !nw) && w[nw])
			node = trie_step(node, w[nw], false);
		else
			node = 0;
		op_at[nw] = node ? node_op[node] : OP_NONE;
		more = p + len < end;
		p += len + 1;
	}
	if (more)
		return;
	for (unsigned k = nw; k-- > 0;)
		if (op_at[k] && matches(op_at[k], w + k + 1, nw - k - 1, s)) {
			without_mbarrier(s);
			return;
		}
	for (unsigned k = 1; k < nw && s->nmods < PTX_MAX_MODS; k++)
		if (word[w[k]].mod)
			s->mod[s->nmods++] = word[w[k]].mod;
}

static bool arg_takes(const struct arg *a, const struct ptx_operand *o)
{
	if ((o->nparts && !a->parts) || (o->minus && !a->minus))
		return false;
	for (unsigned k = 0; k < o->n; k++)
		if (o->list[k].nparts || o->list[k].minus)
			return false;
	switch ((enum ptx_operand_kind)o->kind) {
	case PO_ADDR:
	case PO_TADDR:
		return a->kind != ARG_VALUE;
	case PO_PAIR:
		return a->pair;
	case PO_REG:
	case PO_IMM:
	case PO_F32:
	case PO_F64:
	case PO_SREG:
	case PO_SYM:
	case PO_FUNC:
	case PO_VEC:
	case PO_LABEL:
	case PO_SINK:
		return a->kind != ARG_ADDRESS;
	case PO_NONE:
		return false;
	}
	return false;
}

bool table_fits(unsigned op, const struct ptx_operand *o, size_t n)
{
	const struct row *r = &row[op];
	size_t at = 0;

	table_build();
	for (unsigned k = 0; k < r->nargs; k++) {
		if (at < n && arg_takes(&r->arg[k], &o[at]))
			at++;
		else if (!r->arg[k].optional)
			return false;
	}
	return at == n;
}

unsigned ptx_written(const struct ptx_insn *i)
{
	const struct row *r = &row[i->op];
	unsigned n = 0;

	table_build();
	while (n < r->nargs && n < i->noperands && r->arg[n].written &&
	       r->arg[n].kind == ARG_VALUE)
		n++;
	return n;
}

/* ---- names ---- */

enum ptx_type table_type(const char *name, size_t n)
{
	unsigned w, m;

	table_build();
	w = word_find(name, n, false);
	for (m = w ? word[w].mod : 0; m; m = mod_same[m])
		if (mod_row[m].group == MG_type)
			return (enum ptx_type)(TY_none + 1 + m - type_row[1].mod);
	return TY_none;
}

bool table_sreg(const char *name, size_t n, enum ptx_sreg *r)
{
	uint32_t h = hash(name, n);
	unsigned k;

	table_build();
	for (; (k = sreg_slot[h & (SREG_SLOTS - 1)]); h++) {
		const char *s = sreg_row[k - 1].name;

		if (strlen(s) == n && !memcmp(s, name, n)) {
			*r = (enum ptx_sreg)(k - 1);
			return true;
		}
	}
	return false;
}

const char *table_sreg_name(enum ptx_sreg r) { return sreg_row[r].name; }
const char *table_type_name(enum ptx_type t) { return type_row[t].name; }

const char *ptx_mod_name(enum ptx_mod m) { return mod_row[m].spelling; }
const char *ptx_op_name(unsigned op) { return op_row[op].name; }
enum ptx_effect ptx_effect_of(unsigned op) { return op_row[op].effect; }
unsigned ptx_type_bits(enum ptx_type t) { return type_row[t].bits; }

unsigned ptx_type_atomic_bits(enum ptx_type t)
{
	return t == TY_f16x2 || t == TY_bf16x2 ? 16 : ptx_type_bits(t);
}

char ptx_type_class(enum ptx_type t) { return type_row[t].class; }

enum ptx_group ptx_group_of(enum ptx_mod m)
{
	return (enum ptx_group)mod_row[m].group;
}

/* ---- questions to an instruction ---- */

bool ptx_has(const struct ptx_insn *i, enum ptx_mod m)
{
	for (unsigned k = 0; k < i->nmods; k++)
		if (i->mod[k] == m)
			return true;
	return false;
}

enum ptx_mod ptx_nth(const struct ptx_insn *i, enum ptx_group g, unsigned n)
{
	for (unsigned k = 0; k < i->nmods; k++)
		if (mod_row[i->mod[k]].group == g && !n--)
			return (enum ptx_mod)i->mod[k];
	return MOD_NONE;
}

enum ptx_mod ptx_pick(const struct ptx_insn *i, enum ptx_group g)
{
	return ptx_nth(i, g, 0);
}

enum ptx_space ptx_space_of(const struct ptx_insn *i, unsigned k)
{
	for (unsigned m = 0; m < i->nmods; m++) {
		enum ptx_space s;

		switch (i->mod[m]) {
		case MOD_const: s = PS_const; break;
		case MOD_global: s = PS_global; break;
		case MOD_local: s = PS_local; break;
		case MOD_param: case MOD_param_entry: case MOD_param_func: s = PS_param; break;
		case MOD_shared: case MOD_shared_cta: s = PS_shared; break;
		case MOD_shared_cluster: s = PS_shared_cluster; break;
		default: continue;
		}
		if (!k--)
			return s;
	}
	return PS_none;
}

bool ptx_fences_own_cta(const struct ptx_insn *i)
{
	return ptx_space_of(i, 0) == PS_shared || ptx_has(i, MOD_sync_restrict_shared_cta);
}

enum ptx_type ptx_type_of(const struct ptx_insn *i, unsigned k)
{
	enum ptx_mod m = ptx_nth(i, MG_type, k);

	/* types.def opens mods.def: the two enums run in step */
	return m ? (enum ptx_type)(TY_none + 1 + m - type_row[1].mod) : TY_none;
}

bool ptx_shape(enum ptx_mod m, unsigned *rows, unsigned *cols, unsigned *depth)
{
	*depth = 0;
	return mod_row[m].group == MG_shape &&
		sscanf(mod_row[m].spelling, ".m%un%uk%u", rows, cols, depth) >= 2;
}
