/* ptx/ir: a PTX module, parsed and resolved.
 *
 * Invariants:
 *  - ptx_parse() fills it; it is constant afterwards;
 *  - all memory belongs to the module's arena: ptx_free() frees everything;
 *  - registers and labels are resolved through the lexical scopes: an operand
 *    holds a register number or an instruction index, never a name to look up;
 *  - modifiers keep the order in which they were written, but rows of ptx.def
 *    match them as a set (real code permutes them), types excepted. */
#ifndef CONSAN_PTX_IR_H
#define CONSAN_PTX_IR_H

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"

/* ---- vocabulary from the tables ---- */

/* what an instruction does beyond writing registers */
enum ptx_effect {
#define EFFECT(id, doc) EF_##id,
#include "effect.def"
#undef EFFECT
	EF_COUNT
};

/* groups and modifiers: MOD(group, id, spelling); GROUP(id, doc) */
enum ptx_group {
#define GROUP(id, doc) MG_##id,
#define MOD(group, id, spelling)
#include "mods.def"
#undef GROUP
#undef MOD
	MG_COUNT
};
enum ptx_mod {
	MOD_NONE,
#define GROUP(id, doc)
#define MOD(group, id, spelling) MOD_##id,
#include "mods.def"
#undef GROUP
#undef MOD
	MOD_COUNT
};

/* Types: the modifiers of group `type` are MOD_u32 and so on; TY_u32 is the same
 * type as a plain enumerator. TYPE(id, bits, class): class u s b f p (packed float: f). */
enum ptx_type {
	TY_none,
#define TYPE(id, bits, class) TY_##id,
#include "types.def"
#undef TYPE
	TY_COUNT
};

enum ptx_space { PS_none, PS_reg, PS_sreg, PS_const, PS_global, PS_local,
	PS_param, PS_shared, PS_shared_cluster };

/* special registers: SREG(id, spelling, type) */
enum ptx_sreg {
#define SREG(id, spelling, type) SR_##id,
#include "sreg.def"
#undef SREG
	SR_COUNT
};

/* ---- operands ---- */

enum ptx_operand_kind {
	PO_NONE,
	PO_REG,    /* reg */
	PO_IMM,    /* imm: integer, sign-extended as written */
	PO_F32,    /* imm: the 32 bits of 0f.... */
	PO_F64,    /* imm: the 64 bits of 0d.... or of a decimal literal */
	PO_SREG,   /* sreg */
	PO_SYM,    /* var: address of a variable, plus imm */
	PO_FUNC,   /* func: a function named in call or mov */
	PO_ADDR,   /* [reg+imm] (reg != PTX_NO_REG), [var+imm] or [imm] */
	PO_VEC,    /* {a, b, ..}: n operands at list */
	PO_TADDR,  /* [a, {coords..}]: list[0] address (PO_ADDR), list[1] PO_VEC */
	PO_PAIR,   /* a|b: list[0], list[1] */
	PO_LABEL,  /* imm: instruction index */
	PO_SINK,   /* _ */
};

#define PTX_NO_REG UINT32_MAX

struct ptx_operand {
	uint8_t kind;
	bool negated;              /* !p */
	bool minus;                /* -a, of vmad */
	uint8_t elem;              /* 1 + component for .x .y .z .w of a vector register, 0: none */
	uint8_t part_bits, nparts; /* selector of a video instruction: 8 (.b..) or 16 (.h..), and its
				      digits; 0: none */
	uint16_t parts;            /* the digits, 4 bits each, the last one lowest */
	uint16_t n;                /* PO_VEC, PO_PAIR, PO_TADDR: operands at list */
	uint32_t reg;
	uint16_t sreg;             /* enum ptx_sreg */
	int64_t imm;
	const struct ptx_var *var;
	const struct ptx_func *func;
	const struct ptx_operand *list;
};

/* ---- instructions ---- */

#define PTX_MAX_MODS 20
#define PTX_MAX_OPERANDS 10

struct ptx_insn {
	uint16_t op;               /* enum ptx_op of opcodes.h */
	uint8_t nmods, noperands;
	uint16_t mod[PTX_MAX_MODS];  /* enum ptx_mod, in written order, without the op's own name */
	uint32_t guard;            /* predicate register or PTX_NO_REG */
	bool guard_negated;
	uint32_t line, col;        /* in the PTX text */
	uint32_t text_at, text_len;/* the statement in ptx_module.text */
	const struct site_loc *loc;/* .loc in force, inlined-at chain; or NULL */
	struct ptx_operand *operand; /* noperands; destinations first, as written */
	/* call: operand[0] target; the others: */
	const struct ptx_operand *ret, *arg;
	uint16_t nret, narg;
	/* bra: operand 0 is the label; brx.idx: operand 0 is the index into */
	const uint32_t *target;    /* instruction indices */
	uint32_t ntarget;
	const struct ptx_func *prototype; /* indirect call's .callprototype, or NULL */
};

bool ptx_has(const struct ptx_insn *i, enum ptx_mod m);
/* The (first) modifier of this group, or MOD_NONE. */
enum ptx_mod ptx_pick(const struct ptx_insn *i, enum ptx_group g);
/* The k-th (0-based) modifier of this group: of a copy's two spaces, 0 is the
 * destination's. */
enum ptx_mod ptx_nth(const struct ptx_insn *i, enum ptx_group g, unsigned k);
/* The state space of the k-th (0-based) modifier that names one; PS_none: generic. */
enum ptx_space ptx_space_of(const struct ptx_insn *i, unsigned k);
/* Does a fence cover the shared memory of the executing CTA alone? */
bool ptx_fences_own_cta(const struct ptx_insn *i);
enum ptx_group ptx_group_of(enum ptx_mod m);
/* Splits "m64n128k16" into its numbers, k = 0 for "m8n8"; false if m is no shape. */
bool ptx_shape(enum ptx_mod m, unsigned *rows, unsigned *cols, unsigned *depth);
/* How many of the leading operands are written (ptx.def: d, e). */
unsigned ptx_written(const struct ptx_insn *i);
/* The k-th type modifier (0-based), or TY_none. */
enum ptx_type ptx_type_of(const struct ptx_insn *i, unsigned k);
unsigned ptx_type_bits(enum ptx_type t);
/* Bits that an access performs at once: packed types are atomic by element. */
unsigned ptx_type_atomic_bits(enum ptx_type t);
char ptx_type_class(enum ptx_type t);  /* u s b f p */
const char *ptx_mod_name(enum ptx_mod m); /* ".acquire" */
const char *ptx_op_name(unsigned op);
enum ptx_effect ptx_effect_of(unsigned op);

/* ---- variables, functions, modules ---- */

/* An initialiser is a byte image plus symbol addresses to add in. */
struct ptx_reloc {
	uint64_t offset;           /* in the image */
	uint8_t bytes;             /* 8, or 1 for mask() pieces */
	uint8_t shift;             /* byte pieces: which byte of the address */
	bool generic;              /* generic(sym) */
	const char *name;          /* resolved by: */
	const struct ptx_var *var;
	const struct ptx_func *func;
	int64_t addend;
};

struct ptx_var {
	const char *name;
	uint8_t space;             /* enum ptx_space */
	uint8_t type;              /* enum ptx_type of one element */
	uint8_t vec;               /* 1, 2, 4 */
	bool is_extern, visible, weak, managed;
	bool is_param;             /* entry parameter, or a body/func .param */
	bool ptr;                  /* .ptr attribute */
	uint32_t align;            /* bytes, 2^n */
	uint64_t size;             /* bytes; 0: extern [] (dynamic shared) */
	uint64_t offset;           /* params: in the parameter block; .local and
				      .shared in a function: see ptx_func */
	const unsigned char *init; /* size bytes or NULL = zero */
	const struct ptx_reloc *reloc;
	size_t nreloc;
	const struct ptx_func *func; /* declared in this function, or NULL = module */
	uint32_t index;            /* position in module->var or func->var */
};

struct ptx_reg {
	uint8_t type;              /* declared type; only its width matters */
	uint8_t vec;               /* 1, 2, 4: .reg .v4 */
	const char *name;          /* "%r12", as written */
};

struct ptx_func {
	const char *name;
	bool entry, is_extern, visible, weak, noreturn;
	struct ptx_var *param; size_t nparam;   /* offsets by C layout rules */
	uint64_t param_bytes;
	struct ptx_var *ret; size_t nret;
	struct ptx_reg *reg; size_t nreg;
	struct ptx_var *var; size_t nvar;       /* .shared .local .param .const in the body */
	uint64_t local_bytes;                   /* frame: .local and .param of the body, laid out */
	/* The last instruction is an unguarded jump, ret, exit or trap: the parser
	 * appends a ret without text to a body that could run off its end. */
	struct ptx_insn *insn; size_t ninsn;
	/* performance directives, 0 = absent */
	uint32_t maxntid[3], reqntid[3], minnctapersm, maxnreg;
	uint32_t reqnctapercluster[3], maxclusterrank;
	bool explicitcluster;
	uint32_t line;
	const struct ptx_module *module;
	const struct ptx_cfg *cfg;              /* below; NULL without a body */
	/* by register: the only instruction that writes it, or NULL; NULL without a body */
	const struct ptx_insn **only_writer;
	const struct ptx_readers *readers;      /* below; NULL without a body */
};

struct ptx_module {
	struct arena arena;
	const char *name;          /* for messages and sites */
	const char *text; size_t ntext; /* the arena's copy */
	unsigned version;          /* 90 = .version 9.0 */
	unsigned sm;               /* 90 */
	char sm_suffix;            /* 'a', 'f' or 0 */
	bool debug;
	struct ptx_var *var; size_t nvar;
	struct ptx_func *func; size_t nfunc;
};

/* Parses text[0..n) (NUL bytes at the end are ignored). NULL on error, with
 * line, column and the offending line and a caret in e->text. An instruction
 * that ptx.def does not know is no error: it parses to OP_unknown, keeps its
 * text, and the executor reports the kernel as not checked if it is reached. */
struct ptx_module *ptx_parse(const char *name, const char *text, size_t n,
	struct consan_err *e);
void ptx_free(struct ptx_module *m);
/* Is v one of these n variables? at may be NULL if there are none. */
static inline bool ptx_var_in(const struct ptx_var *v, const struct ptx_var *at, size_t n)
{
	return n && v >= at && v < at + n;
}
const struct ptx_func *ptx_find(const struct ptx_module *m, const char *name);

/* Prints the IR as PTX again, one instruction a line (consan dump): scopes are
 * flattened, names that occur in several scopes get a number. The text parses to
 * the same IR. */
void ptx_print(const struct ptx_module *m, struct text *out);
/* The statement as written, without comments and with single blanks; "ret" where
 * the parser appended one. */
void ptx_statement(const struct ptx_module *m, const struct ptx_insn *i, struct text *out);
/* Checks the invariants above; false and e for the first violation. */
bool ptx_verify(const struct ptx_module *m, struct consan_err *e);

/* ---- control flow (cfg.c) ---- */

struct ptx_block {
	uint32_t first, end;       /* instructions [first, end) */
	uint32_t succ[2]; uint32_t nsucc; /* the jump's target first, then what
				      follows; brx: what follows if guarded, and
				      ptx_insn.target of the last instruction */
	uint32_t order;            /* position in a reverse post-order in which
				      every loop is contiguous: a block comes
				      after all its predecessors, back edges
				      excepted. Running the lowest order first
				      reconverges at post-dominators. */
	uint32_t ipdom;            /* immediate post-dominator, UINT32_MAX = exit */
	uint32_t loop;             /* header block of the innermost loop, UINT32_MAX = none */
};

/* By register r: the instructions that read it are insn[first[r]] to insn[first[r + 1] - 1], as indices in
 * the order of the text; one that reads it twice may be there twice. */
struct ptx_readers {
	uint32_t *first;           /* nreg + 1 */
	uint32_t *insn;
};

struct ptx_cfg {
	struct ptx_block *block; size_t nblock;
	uint32_t *order;           /* order[k]: the block at position k */
	uint32_t *block_of;        /* instruction index -> block */
};

#endif
