/* parse: declarations shared by the files of the parser only.
 *
 *   parse.c   module: directives, functions, putting the arrays together
 *   decl.c    variables and registers, attributes, parameters
 *   init.c    initialisers
 *   body.c    blocks, labels, instructions
 *   operand.c operands
 *   scope.c   names and what they are bound to
 *   loc.c     .file, .loc, .debug_str
 *
 * Conventions:
 *  - a function returns false once the error is set; the first error wins;
 *  - variables and functions move once, into the arrays of ptx_module and
 *    ptx_func; until then each pointer to one is registered in `var_slot` or
 *    `func_slot`, to be redirected;
 *  - memory that outlives parsing is in the module's arena, the rest in `tmp`. */
#ifndef CONSAN_PTX_PARSE_H
#define CONSAN_PTX_PARSE_H

#include "lex.h"
#include "table.h"

/* ---- names ---- */

enum bind_kind { B_REG, B_RANGE, B_VAR, B_FUNC, B_LABEL, B_TARGETS };

struct name;
struct bind {
	struct name *name;
	struct bind *outer;        /* what it hides */
	uint32_t depth;            /* of its scope; 0 = module */
	enum bind_kind kind;
	uint32_t first, count;     /* register(s), label's instruction, targets */
	struct ptx_var *var;
	struct fn *fn;
	const uint32_t *targets;
};

/* One spelling. "%r12" records that it is number 12 of "%r" (.reg .b32 %r<100>). */
struct name {
	const char *at;
	uint32_t n, hash;
	struct bind *bind, *range;
	struct name *prefix;
	uint32_t number;
};

/* A function while it is parsed; `f` moves to ptx_module.func[index], but for
 * the .callprototypes, which do not move. */
#define FN_PROTOTYPE UINT32_MAX
struct fn {
	struct ptx_func f;
	uint32_t index;
	bool defined;
	struct fn *alias;          /* .alias: this one is called instead */
};

struct names {
	struct name **slot;
	size_t cap, n;
	VEC(struct bind *) bound;  /* in order of binding */
	VEC(size_t) scope;         /* bound.n at the start of each open scope */
};

/* A forward reference to a label: an operand's imm or an element of a list. */
struct label_ref {
	struct name *name;
	int64_t *imm;
	uint32_t *index;
	uint32_t line, col;
};

struct loc_table;

struct parser {
	struct ptx_module *m;
	struct arena *keep;        /* the module's */
	struct arena tmp;
	struct lex l;
	struct consan_err *e;
	struct names names;
	uint32_t name_line, name_col;    /* of the name last looked up */
	struct loc_table *locs;
	VEC(struct fn *) fns;
	VEC(struct ptx_var *) vars;
	VEC(const struct ptx_var **) var_slot;
	VEC(const struct ptx_func **) func_slot;
	VEC(struct ptx_reloc *) relocs;
	struct spelling_slot *spelling;  /* cache; body.c */
	size_t nspelling, spelling_cap;
	/* the function being parsed */
	struct fn *fn;
	VEC(struct ptx_reg) regs;
	VEC(struct ptx_insn) insns;
	VEC(struct ptx_var *) locals;
	VEC(struct label_ref) refs;
	VEC(struct ptx_operand) stack;   /* operands of the open instruction */
	uint64_t frame;                  /* bytes in use by the open scopes */
	const struct site_loc *loc;
};

/* ---- errors ---- */

/* At the current token; adds the line and a caret. Always false. */
bool parse_fail(struct parser *p, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
bool parse_fail_at(struct parser *p, int code, uint32_t line, uint32_t col,
	const char *fmt, ...) PRINTF_LIKE(5, 6);
bool parse_expect(struct parser *p, char c);
/* If the current token is c, advances and returns true. */
bool parse_take(struct parser *p, char c);
/* A non-negative integer. */
bool parse_number(struct parser *p, uint64_t *v);

/* ---- scope.c ---- */

struct name *name_of(struct parser *p, const char *at, size_t n);
void scope_open(struct parser *p);
void scope_close(struct parser *p);
/* In the innermost scope; NULL and an error if the name is taken there. */
struct bind *scope_bind(struct parser *p, struct name *n, enum bind_kind kind);
/* The register of this name, declared by itself or by a range. */
bool scope_register(const struct name *n, uint32_t *reg);
void names_free(struct names *n);

/* ---- decl.c ---- */

/* From the state-space word on. */
bool decl_variable(struct parser *p, bool is_extern, bool visible, bool weak);
bool decl_registers(struct parser *p);
/* "(.param .., ..)"; the current token is '('. Offsets by C's layout rules. */
bool decl_params(struct parser *p, struct ptx_var **out, size_t *n, uint64_t *bytes);
/* Binds parameters in the open scope, those called _ excepted. */
bool decl_bind(struct parser *p, struct ptx_var *v, size_t n);

/* ---- init.c ---- */

#define MAX_DIMS 8
/* of a variable */
struct shape {
	unsigned n;                /* dimensions, the vector's included */
	uint64_t extent[MAX_DIMS + 2]; /* elements in one item of this level */
	bool open;                 /* the first dimension is [] */
};

/* Behind '='. */
bool init_parse(struct parser *p, struct ptx_var *v, const struct shape *s);
/* At the end of the module: the symbols that initialisers named. */
bool init_resolve(struct parser *p);

/* ---- operand.c ---- */

struct ptx_operand *operand_push(struct parser *p, enum ptx_operand_kind kind);
/* Pops the operands from `first` on and moves them to the module's arena. */
struct ptx_operand *operand_keep(struct parser *p, size_t first);
/* Parse and push: one operand, one that is a name, all up to the ';'. */
bool operand_one(struct parser *p);
bool operand_named(struct parser *p);
bool operand_all(struct parser *p);
/* The error for the current name. */
bool operand_undeclared(struct parser *p);

/* ---- body.c ---- */

bool body_block(struct parser *p);

/* ---- loc.c ---- */

struct loc_table *loc_new(void);
void loc_free(struct loc_table *t);
void loc_function_starts(struct loc_table *t);
bool loc_directive(struct parser *p);
bool loc_file(struct parser *p);
bool loc_section(struct parser *p);
void loc_finish(struct parser *p);

#endif
